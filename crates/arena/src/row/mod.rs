//! The bytes of a row, written once before anybody can reach it.

pub(crate) mod check;
pub(crate) mod copy;

use std::sync::atomic::{Ordering, fence};

use crate::layout::{Location, TableId, padded_len};
use crate::limits::MAX_KEY_BYTES;
use crate::{Arena, order};

/// The row has a word for expiry and lease, the only one that changes after publication.
pub(crate) const FLAG_EXPIRY: u8 = 1;
/// The row has a word for the client's flags.
pub(crate) const FLAG_CLIENT: u8 = 2;
/// The row has a word for a CAS value that a client chose.
pub(crate) const FLAG_CAS: u8 = 4;
/// The lengths did not fit the header and follow in a word of their own.
pub(crate) const FLAG_LONG: u8 = 8;
/// The row is part of a commit of many rows.
pub(crate) const FLAG_MULTI: u8 = 16;
/// The row was invalidated softly: it may be served, marked as stale, until somebody has refreshed it.
pub(crate) const FLAG_STALE: u8 = 32;
/// The flags that exist; a row with others is not one.
pub(crate) const FLAGS_KNOWN: u8 = 63;

/// In place of a table's number: no row but a gap, its length in words where a row has its stamp.
pub(crate) const FILLER_TABLE: u16 = u16::MAX;
/// Largest payload whose length fits the header.
const SHORT_PAYLOAD: usize = (1 << 24) - 1;
/// Largest key whose length fits the header.
const SHORT_KEY: usize = 255;
/// Bits of the check in the header word.
const CHECK_MASK: u64 = (1 << 24) - 1;

/// What to write as a row.
#[derive(Clone, Copy, Debug)]
pub struct RowParts<'a> {
    /// Its table.
    pub table: TableId,
    /// Whether it is part of a commit of many rows.
    pub multi: bool,
    /// Whether it was invalidated softly.
    pub stale: bool,
    /// Tick at which it expires; 0: never by itself.
    pub expiry: u32,
    /// Tick until which somebody refreshes the row, 0 for nobody; with `None` the row has a word for it only if it
    /// has one for its expiry.
    pub lease: Option<u32>,
    /// The client's flags; 0: it has no word for them.
    pub client_flags: u32,
    /// A CAS value that the client chose.
    pub cas: Option<u64>,
    /// The encoded key, at most [`MAX_KEY_BYTES`].
    pub key: &'a [u8],
    /// The payload in pieces, written one after the other.
    pub payload: &'a [&'a [u8]],
}

impl RowParts<'_> {
    pub(crate) fn payload_len(&self) -> usize {
        self.payload.iter().map(|piece| piece.len()).sum()
    }

    fn flags(&self, payload_len: usize) -> u8 {
        let long = payload_len > SHORT_PAYLOAD || self.key.len() > SHORT_KEY;
        (if self.expiry == 0 && self.lease.is_none() { 0 } else { FLAG_EXPIRY })
            | (if self.client_flags == 0 { 0 } else { FLAG_CLIENT })
            | (if self.cas.is_none() { 0 } else { FLAG_CAS })
            | (if long { FLAG_LONG } else { 0 })
            | (if self.multi { FLAG_MULTI } else { 0 })
            | (if self.stale { FLAG_STALE } else { 0 })
    }

    /// The head that the row has once it is written, without a stamp.
    pub fn head(&self) -> RowHead {
        let payload_len = self.payload_len();
        RowHead {
            table: self.table,
            stamp: 0,
            flags: self.flags(payload_len),
            key_len: self.key.len(),
            payload_len,
            expiry: self.expiry,
            lease: self.lease.unwrap_or(0),
            client_flags: self.client_flags,
            explicit_cas: self.cas,
            total_bytes: self.total_bytes(),
        }
    }

    /// Bytes that the row takes in a segment: what to reserve. A multiple of 8.
    #[inline]
    pub fn total_bytes(&self) -> usize {
        self.total_bytes_before(0)
    }

    /// As [`RowParts::total_bytes`], where so many bytes of payload are to follow those that are here.
    #[inline]
    pub fn total_bytes_before(&self, coming: usize) -> usize {
        let payload_len = self.payload_len() + coming;
        let words = 2 + optional_words(self.flags(payload_len));
        words * 8 + padded_len(self.key.len()) + padded_len(payload_len)
    }
}

/// Words between the two header words and the key.
#[inline]
pub(crate) fn optional_words(flags: u8) -> usize {
    // How many of the lowest four bits are set, for each of their values: not every processor can count bits.
    const COUNTS: u64 = 0x4332_3221_3221_2110;
    const _: () = assert!(FLAG_EXPIRY | FLAG_CLIENT | FLAG_CAS | FLAG_LONG == 15);
    (COUNTS >> (u32::from(flags & 15) * 4)) as usize & 15
}

/// The head of a row, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowHead {
    /// Its table.
    pub table: TableId,
    /// Its stamp: commit number, CAS value and age in one.
    pub stamp: u64,
    /// The flag bits.
    pub flags: u8,
    /// Bytes of the key.
    pub key_len: usize,
    /// Bytes of the payload.
    pub payload_len: usize,
    /// Tick of expiry; 0: never, or no expiry word.
    pub expiry: u32,
    /// Tick until which somebody refreshes the row; 0: nobody does.
    pub lease: u32,
    /// The client's flags; 0 if the row has no word for them.
    pub client_flags: u32,
    /// The CAS value that a client chose.
    pub explicit_cas: Option<u64>,
    /// Bytes that the row takes in its segment.
    pub total_bytes: usize,
}

impl RowHead {
    /// The row's CAS value: the client's own if it chose one, else the stamp.
    #[inline]
    pub fn cas(&self) -> u64 {
        self.explicit_cas.unwrap_or(self.stamp)
    }

    /// Whether the row is part of a commit of many rows.
    #[inline]
    pub fn is_multi(&self) -> bool {
        self.flags & FLAG_MULTI != 0
    }

    /// Whether the row was invalidated softly.
    #[inline]
    pub fn is_stale(&self) -> bool {
        self.flags & FLAG_STALE != 0
    }

    /// Whether the row has a word for expiry and lease, so that [`Arena::set_expiry`] and [`Arena::set_lease`] may be
    /// called.
    #[inline]
    pub fn has_expiry(&self) -> bool {
        self.flags & FLAG_EXPIRY != 0
    }
}

/// The check: over the lengths and flags, the words that never change, key and payload.
///
/// Not over stamp and expiry: the one is unknown when the row is written, the other changes.
#[derive(Debug)]
pub(crate) struct Check(u32);

impl Check {
    pub(crate) fn new(header: u64) -> Self {
        Self(check::append(0, &(header & !CHECK_MASK).to_le_bytes()))
    }

    pub(crate) fn word(&mut self, word: u64) {
        self.bytes(&word.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0 = check::append(self.0, bytes);
    }

    pub(crate) fn pieces(&mut self, pieces: &[&[u8]]) {
        self.0 = check::append_all(self.0, pieces);
    }

    pub(crate) fn field(&self) -> u64 {
        u64::from(self.0) & CHECK_MASK
    }
}

/// Whether a header word bears this check.
pub(crate) fn has_check(header: u64, check: &Check) -> bool {
    header & CHECK_MASK == check.field()
}

/// Word 1 without the check. A long row has zeros for its lengths.
fn header_word(flags: u8, key_len: usize, payload_len: usize) -> u64 {
    let lengths =
        if flags & FLAG_LONG != 0 { 0 } else { ((payload_len as u64) << 40) | ((key_len as u64) << 32) };
    lengths | (u64::from(flags) << 24)
}

/// Lengths as a word of their own.
fn long_word(key_len: usize, payload_len: usize) -> u64 {
    ((payload_len as u64) << 24) | key_len as u64
}

/// Key and payload length of a header word, if it says them itself.
#[inline]
pub(crate) fn short_lengths(header: u64) -> (usize, usize) {
    ((header >> 32) as usize & 0xff, (header >> 40) as usize)
}

/// Key and payload length of a long word.
#[inline]
pub(crate) fn long_lengths(word: u64) -> (usize, usize) {
    (word as usize & 0xff_ffff, (word >> 24) as usize)
}

/// The flags of a header word.
#[inline]
pub(crate) fn header_flags(header: u64) -> u8 {
    (header >> 24) as u8
}

/// Word 0 of a row.
#[inline]
pub(crate) fn stamp_word(table: TableId, stamp: u64) -> u64 {
    (stamp << 16) | u64::from(table.0)
}

/// The word of expiry and lease.
#[inline]
pub(crate) fn expiry_word(expiry: u32, lease: u32) -> u64 {
    (u64::from(expiry) << 32) | u64::from(lease)
}

/// The filler word for a gap.
#[inline]
pub(crate) fn filler_word(bytes: usize) -> u64 {
    ((bytes as u64 / 8) << 16) | u64::from(FILLER_TABLE)
}

/// A row that has been written up to its payload.
pub(crate) struct BegunRow {
    /// The word after the key: the first of the payload.
    pub(crate) next: u64,
    /// The header word, which is still to be stored, without the check.
    pub(crate) header: u64,
    /// The check, which the payload is still to be added to.
    pub(crate) check: Check,
}

impl Arena {
    /// Writes a row with stamp 0 into bytes that the caller reserved for it.
    pub fn write_row(&self, location: Location, parts: &RowParts<'_>) {
        let location = location.in_file();
        let BegunRow { next, header, mut check } = self.begin_row(location, parts, parts.payload_len());
        check.pieces(parts.payload);
        self.write_pieces(next, parts.payload);
        self.map.store(self.layout.at(location) + 1, header | check.field(), Ordering::Relaxed);
    }

    /// Writes what stands before a payload of so many bytes, but for the header word.
    #[inline]
    pub(crate) fn begin_row(&self, location: Location, parts: &RowParts<'_>, payload_len: usize) -> BegunRow {
        debug_assert!(parts.key.len() <= MAX_KEY_BYTES);
        let flags = parts.flags(payload_len);
        let header = header_word(flags, parts.key.len(), payload_len);
        let mut check = Check::new(header);
        // Pairs with the Acquire fence before a reader's second look at the generation: who sees a word stored
        // below sees the generation that recycling stored before this unit was allocated again.
        fence(order::WRITE_FENCE);
        let at = self.layout.at(location);
        self.map.store(at, stamp_word(parts.table, 0), Ordering::Relaxed);
        let mut next = at + 2;
        let mut put = |value| {
            self.map.store(next, value, Ordering::Relaxed);
            next += 1;
        };
        if flags & FLAG_LONG != 0 {
            let word = long_word(parts.key.len(), payload_len);
            check.word(word);
            put(word);
        }
        if flags & FLAG_EXPIRY != 0 {
            put(expiry_word(parts.expiry, parts.lease.unwrap_or(0)));
        }
        if flags & FLAG_CLIENT != 0 {
            let word = u64::from(parts.client_flags) << 32;
            check.word(word);
            put(word);
        }
        if let Some(cas) = parts.cas {
            check.word(cas);
            put(cas);
        }
        check.bytes(parts.key);
        let next = self.write_pieces(next, &[parts.key]);
        BegunRow { next, header, check }
    }

    /// Writes pieces one after the other, zero-padded to a whole word; returns the word after them.
    pub(crate) fn write_pieces(&self, at: u64, pieces: &[&[u8]]) -> u64 {
        let (mut next, mut carry, mut carried) = (at, 0, 0);
        for piece in pieces {
            let mut rest = *piece;
            if carried > 0 {
                // The word that the piece before began is filled up first: from there on both sides go by whole words.
                let (first, others) = rest.split_at(rest.len().min(8 - carried));
                carry |= copy::padded(first) << (8 * carried);
                carried += first.len();
                if carried < 8 {
                    continue;
                }
                self.map.store(next, carry, Ordering::Relaxed);
                next += 1;
                rest = others;
            }
            let (whole, tail) = rest.split_at(rest.len() & !7);
            self.map.store_bytes(next, whole);
            next += whole.len() as u64 / 8;
            (carry, carried) = (copy::padded(tail), tail.len());
        }
        if carried > 0 {
            self.map.store(next, carry, Ordering::Relaxed);
            next += 1;
        }
        next
    }

    /// Declares reserved bytes to hold no row: one store.
    pub fn write_filler(&self, location: Location, bytes: usize) {
        let location = location.in_file();
        // Pairs as in `write_row`.
        fence(order::WRITE_FENCE);
        self.map.store(self.layout.at(location), filler_word(bytes), Ordering::Relaxed);
    }

    /// Stamps a row before it is published.
    #[inline]
    pub fn stamp_row(&self, location: Location, stamp: u64) {
        let location = location.in_file();
        let at = self.layout.at(location);
        let table = TableId(self.map.load(at, Ordering::Relaxed) as u16);
        self.map.store(at, stamp_word(table, stamp), Ordering::Relaxed);
    }

    /// Changes the expiry of a published row that has an expiry word. The caller holds the shard's lock.
    pub fn set_expiry(&self, location: Location, expiry: u32) {
        self.change_expiry_word(location, |word| expiry_word(expiry, word as u32));
    }

    /// Changes the lease of a published row, which has an expiry word. The caller holds the shard's
    /// lock.
    pub fn set_lease(&self, location: Location, lease: u32) {
        self.change_expiry_word(location, |word| expiry_word((word >> 32) as u32, lease));
    }

    /// Changes both at once.
    pub fn set_times(&self, location: Location, expiry: u32, lease: u32) {
        self.change_expiry_word(location, |_| expiry_word(expiry, lease));
    }

    /// One load and one store: whoever holds the shard's lock is the only one to change the word.
    fn change_expiry_word(&self, location: Location, change: impl FnOnce(u64) -> u64) {
        let location = location.in_file();
        let at = self.layout.at(location);
        let flags = header_flags(self.map.load(at + 1, Ordering::Relaxed));
        debug_assert!(flags & FLAG_EXPIRY != 0, "the row has an expiry word");
        if flags & FLAG_EXPIRY != 0 {
            let word = at + 2 + u64::from(flags & FLAG_LONG != 0);
            self.map.store(word, change(self.map.load(word, Ordering::Relaxed)), Ordering::Relaxed);
        }
    }
}

/// The smallest row: two header words.
pub(crate) const MIN_ROW_BYTES: u64 = 16;
