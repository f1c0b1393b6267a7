//! Rows whose value is still on its way: a large one is received where it is going to lie.
//!
//! The head and the beginning of the payload are written at once, into bytes that the caller reserved; the value comes
//! piece by piece, from memory or straight from a file descriptor, and the check grows with it while the bytes are
//! warm. Nothing leads to the row before the caller publishes it, and its header bears no check before it is whole: if
//! the process dies meanwhile, it is bytes that no slot points at. The caller's reservation keeps the segment in its
//! place, as it does for every writer.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use crate::layout::Location;
use crate::row::{BegunRow, Check};
use crate::{Arena, Mapped, RowParts};

/// A row that was begun, and how much of its value has come.
#[derive(Debug)]
pub struct InPlace {
    pub(crate) location: Location,
    /// Where the header word stands in the file, and the word without its check.
    header_at: u64,
    header: u64,
    check: Check,
    /// The value's first byte in the file, and how many bytes it has.
    first_byte: u64,
    len: usize,
    received: usize,
    /// The mapping that they lie in.
    pub(crate) base: usize,
}

/// What one call received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes of the value.
    pub received: usize,
    /// Bytes behind it.
    pub spilled: usize,
}

impl InPlace {
    /// Bytes of the value.
    pub fn value_bytes(&self) -> usize {
        self.len
    }

    /// Bytes of it that have not come.
    pub fn missing(&self) -> usize {
        self.len - self.received
    }

    #[cfg(test)]
    pub(crate) fn location(&self) -> Location {
        self.location
    }

    fn next_byte(&self) -> u64 {
        self.first_byte + self.received as u64
    }
}

impl Arena {
    /// Writes a row up to its value, of which so many bytes are to come; `parts` has the payload before it. The caller
    /// has reserved [`RowParts::total_bytes_before`] and keeps the reservation until the row is published or given up.
    pub fn begin_in_place(&self, location: Location, parts: &RowParts<'_>, coming: usize) -> InPlace {
        let inner = location.in_file();
        let before = parts.payload_len();
        let BegunRow { next, header, mut check } = self.begin_row(inner, parts, before + coming);
        check.pieces(parts.payload);
        if let Some(more) = (before + coming).div_ceil(8).checked_sub(1) {
            // Zeros behind the payload's end, whatever lay there; the value is written over the others.
            self.map.store(next + more as u64, 0, Ordering::Relaxed);
        }
        self.write_pieces(next, parts.payload);
        // Whoever walks the segment finds the next row.
        let header_at = self.layout.at(inner) + 1;
        self.map.store(header_at, header, Ordering::Relaxed);
        let first_byte = next * 8 + before as u64;
        InPlace {
            location,
            header_at,
            header,
            check,
            first_byte,
            len: coming,
            received: 0,
            base: self.base(),
        }
    }

    pub(crate) fn append(&self, in_place: &mut InPlace, bytes: &[u8]) {
        in_place.check.bytes(bytes);
        self.map.store_at(in_place.next_byte(), bytes);
        in_place.received += bytes.len();
    }

    pub(crate) fn receive(
        &self,
        in_place: &mut InPlace,
        from: BorrowedFd<'_>,
        most: usize,
        spill: &mut [u8],
    ) -> io::Result<Received> {
        let room = in_place.missing().min(most);
        // What comes behind a piece that is not the last belongs to the value.
        let spill = if room < in_place.missing() { &mut [] } else { spill };
        let count = self.map.receive(from, in_place.next_byte(), room, spill)?;
        let received = count.min(room);
        in_place.check.bytes(self.own_bytes(in_place.next_byte(), received));
        in_place.received += received;
        Ok(Received { received, spilled: count - received })
    }

    pub(crate) fn finish_in_place(&self, in_place: &InPlace) {
        debug_assert!(in_place.missing() == 0, "only a whole row bears its check");
        self.map.store(in_place.header_at, in_place.header | in_place.check.field(), Ordering::Relaxed);
    }
}

impl Mapped {
    /// Bytes of a row that is being written by whoever borrows its [`InPlace`] meanwhile.
    fn own_bytes(&self, from_byte: u64, len: usize) -> &[u8] {
        let first = (from_byte / 8) as usize;
        let skip = (from_byte % 8) as usize;
        let words = &self.map.words()[first..first + (skip + len).div_ceil(8)];
        // SAFETY: as many bytes as the words have, in the mapping. They belong to a row that is not published: only the
        // owner of its row writes to them, who has lent it to our caller, and its reservation keeps the segment
        // from being used again. A reader who comes with the place of an earlier row loads words, and stores nothing.
        let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), words.len() * 8) };
        &bytes[skip..skip + len]
    }

    pub(crate) fn received_bytes<'a>(&'a self, in_place: &'a InPlace) -> &'a [u8] {
        self.own_bytes(in_place.first_byte, in_place.received)
    }
}
