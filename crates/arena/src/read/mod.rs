//! Reading: the lock-free lookup, and rows copied out word by word.
//!
//! The protocol in four steps: load the slot; load the generation of the unit it names; load the slot again
//! (so the slot was in force under that generation); compare and copy, then see that the generation is still
//! the same. Bytes are written once per generation, before any slot points at them, so what was copied is
//! the row and nothing else.

pub(crate) mod gather;
pub(crate) mod pin;
pub(crate) mod prefetch;

use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::failpoint::{self, Point};
use crate::index::hint::Hits;
use crate::index::{Entry, ShardToken, hint};
use crate::layout::{
    BUCKET_SLOTS, Hash, InFile, LOCATION_BITS, LOCATION_MASK, Location, SlotId, TableId, UNIT_WORDS,
    slot_prefix, word,
};
use crate::limits::MAX_CHAIN;
use crate::row::{
    FLAG_CAS, FLAG_CLIENT, FLAG_EXPIRY, FLAG_LONG, FLAGS_KNOWN, RowHead, copy, header_flags, long_lengths,
    optional_words, short_lengths,
};
use crate::{Arena, Mapped, order};

/// Rounds before a reader gives up on a bucket that keeps changing.
const ROUNDS: usize = 64;

/// What a lock-free lookup found.
#[derive(Debug)]
pub enum Lookup<'a> {
    /// The row. Its head is whole; bytes copied from it count only if [`RowRead::is_valid`] says so afterwards.
    Hit(RowRead<'a>),
    /// No such row.
    Miss,
    /// The bucket kept changing, or is not proved since the start; ask again under the shard's lock.
    Busy,
}

/// A row found in the arena, by place and generation.
#[derive(Clone, Copy, Debug)]
pub struct RowRead<'a> {
    arena: &'a Mapped,
    head: RowHead,
    location: Location,
    slot: Option<SlotId>,
    generation: u64,
}

/// Where a lookup found a row: whoever holds the row's shard afterwards finds it there again without another walk.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub(crate) slot: SlotId,
    pub(crate) location: Location,
    pub(crate) generation: u64,
}

impl InFile for Seen {
    #[inline]
    fn is_in_shared(self) -> bool {
        self.location.is_in_shared()
    }
}

impl Seen {
    /// Where the row lies.
    #[inline]
    pub fn location(&self) -> Location {
        self.location
    }

    /// Where it lies, and the generation of what lies there.
    #[inline]
    pub fn place(&self) -> Place {
        Place { location: self.location, generation: self.generation }
    }

    /// Its slot and where it lies, for as long as the lock of its shard is held.
    #[inline]
    pub fn entry(&self) -> Entry {
        Entry { slot: self.slot, location: self.location }
    }
}

/// Where a row was copied from. A place and its generation name one row for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where it lay.
    pub location: Location,
    /// The generation of its unit then.
    pub generation: u64,
}

impl InFile for Place {
    #[inline]
    fn is_in_shared(self) -> bool {
        self.location.is_in_shared()
    }
}

impl Arena {
    /// Finds a row without a lock. A hit writes nothing. A chain that an earlier process left is busy until it is
    /// proved.
    #[inline]
    pub fn lookup(&self, hash: Hash, table: TableId, key: &[u8]) -> Lookup<'_> {
        // A bucket that is split is proved before, so what is asked here holds in every round.
        if self.proof.is_pending() && !self.proof.is_proved(crate::index::bucket_of(self.index_word(), hash))
        {
            return Lookup::Busy;
        }
        self.mapped.lookup(hash, table, key)
    }

    /// As [`Arena::lookup`], for who wants to know where the row lies and not what is in it.
    #[inline]
    pub fn lookup_place(&self, hash: Hash, table: TableId, key: &[u8]) -> Lookup<'_> {
        if self.proof.is_pending() && !self.proof.is_proved(crate::index::bucket_of(self.index_word(), hash))
        {
            return Lookup::Busy;
        }
        self.mapped.lookup_for::<false>(hash, table, key)
    }

    /// The row that a lookup saw, if its slot still names it: what [`Arena::find_row`] would find.
    #[inline]
    pub fn find_seen(&self, _token: &ShardToken, seen: &Seen) -> Option<(Entry, RowHead)> {
        let &Seen { slot, location, generation } = seen;
        // Nobody else changes the slots of the shard, and a segment is not recycled while a slot names a row in it. So
        // the bytes are those that were compared with the key if they are of the same generation. Relaxed: the lock of
        // the shard is behind whoever published the row.
        let (word, inner) = (self.slot_word(slot), location.in_file());
        // An empty slot is no row at the very beginning.
        let is_there = word != 0
            && word & LOCATION_MASK == inner.bits()
            && self.generation(inner).load(Ordering::Relaxed) == generation;
        let head = is_there.then(|| self.parse(inner))??;
        Some((Entry { slot, location }, head))
    }

    /// The row that was copied from a place, if a slot of its hash still names it: what [`Arena::find_row`] would find,
    /// without a look at the key.
    #[inline]
    pub fn find_place(&self, token: &ShardToken, hash: Hash, place: &Place) -> Option<(Seen, RowHead)> {
        let &Place { location, generation } = place;
        let seen = Seen { slot: self.find_location(token, hash, location)?, location, generation };
        self.find_seen(token, &seen).map(|(_, head)| (seen, head))
    }

    /// What was found under the lock of a shard, to find it again under the next one.
    #[inline]
    pub fn seen(&self, _token: &ShardToken, entry: Entry) -> Seen {
        // Relaxed: no segment is recycled while a slot names a row in it, and slots are the caller's now.
        let generation = self.generation(entry.location.in_file()).load(Ordering::Relaxed);
        Seen { slot: entry.slot, location: entry.location, generation }
    }
}

impl Mapped {
    /// Finds a row without a lock. A hit writes nothing.
    #[inline]
    pub fn lookup(&self, hash: Hash, table: TableId, key: &[u8]) -> Lookup<'_> {
        self.lookup_for::<true>(hash, table, key)
    }

    /// `VALUE`: the row's value is going to be read, too.
    #[inline]
    fn lookup_for<const VALUE: bool>(&self, hash: Hash, table: TableId, key: &[u8]) -> Lookup<'_> {
        for _ in 0..ROUNDS {
            match self.lookup_round::<VALUE>(hash, table, key) {
                Some(found) => return found,
                None => std::hint::spin_loop(),
            }
        }
        Lookup::Busy
    }

    /// One walk along a chain of buckets. `None`: what it saw was changing.
    #[allow(
        clippy::inline_always,
        reason = "a head that is handed on through memory takes longer than the walk"
    )]
    #[inline(always)]
    fn lookup_round<const VALUE: bool>(&self, hash: Hash, table: TableId, key: &[u8]) -> Option<Lookup<'_>> {
        let words = self.map.words();
        let want = slot_prefix(hash, table);
        // Acquire: pairs with the Release in `split`; the new bucket's slots are visible with the word.
        let index_word = words[word::INDEX as usize].load(order::INDEX_LOAD);
        if !self.is_bounded(index_word) {
            return None;
        }
        let first = self.bucket_word(crate::index::bucket_of(index_word, hash)) as usize;
        self.prefetch_hits(first);
        // Acquire: pairs with the Release store of an even version at the end of `split`.
        let version = words[first].load(order::VERSION_LOAD);
        let (mut at, mut header) = (first, version);
        for _ in 0..MAX_CHAIN {
            for slot in 1..=BUCKET_SLOTS as usize {
                // Acquire: pairs with the Release store that published the row.
                let found = words[at + slot].load(order::SLOT_LOAD);
                if (found ^ want) >> LOCATION_BITS != 0 {
                    continue;
                }
                let location = Location::from_bits(found);
                if location.unit() >= self.units_bound() {
                    continue;
                }
                if VALUE {
                    self.prefetch_behind(location);
                }
                // Acquire: pairs with the Release in `recycle`; a raised generation comes with cleared slots.
                let generation = self.generation(location).load(order::GENERATION_LOAD);
                if words[at + slot].load(order::SLOT_AGAIN) != found {
                    return None;
                }
                let head = self.parse(location).filter(|head| self.is_row_of(location, head, table, key));
                // The fence keeps the second look at the generation behind every load above; pairs with the
                // Release fence of `write_row`.
                fence(order::READ_FENCE);
                if self.generation(location).load(Ordering::Relaxed) != generation {
                    return None;
                }
                if let Some(head) = head {
                    failpoint::reach(Point::Found);
                    let slot = Some(SlotId((at + slot) as u64 - self.layout.index));
                    return Some(Lookup::Hit(RowRead { arena: self, head, location, slot, generation }));
                }
            }
            let next = crate::index::overflow_link(header);
            if next == 0 || next > self.overflow_bound() {
                break;
            }
            at = self.bucket_word(self.layout.max_buckets + next - 1) as usize;
            // Acquire: pairs with the Release that linked a further overflow bucket.
            header = words[at].load(order::LINK_LOAD);
        }
        fence(order::MISS_FENCE);
        let still = words[first].load(Ordering::Relaxed);
        let unchanged = crate::index::version(still) == crate::index::version(version)
            && words[word::INDEX as usize].load(Ordering::Relaxed) == index_word;
        (unchanged && crate::index::version(version).is_multiple_of(2)).then_some(Lookup::Miss)
    }

    /// The generation word of the unit in which a location lies.
    #[inline]
    pub(crate) fn generation(&self, location: Location) -> &AtomicU64 {
        &self.map.words()[self.layout.generations as usize + location.unit() as usize]
    }

    /// Takes the head of a row apart. `None`: what lies there is no row within its segment. The words may be
    /// torn by recycling; whoever holds no lock validates the generation afterwards.
    #[allow(clippy::inline_always, reason = "as for `lookup_round`: the head stays in registers")]
    #[inline(always)]
    pub(crate) fn parse(&self, location: Location) -> Option<RowHead> {
        let words = self.map.words();
        let at = self.layout.at(location) as usize;
        let unit_left = (UNIT_WORDS - u64::from(location.word())) as usize;
        if unit_left < 2 && !self.fits_run(location, 2) {
            return None;
        }
        let stamp_word = words.get(at)?.load(Ordering::Relaxed);
        let header = words.get(at + 1)?.load(Ordering::Relaxed);
        let flags = header_flags(header);
        if flags & !FLAGS_KNOWN != 0 {
            return None;
        }
        let lead = 2 + optional_words(flags);
        if unit_left < lead && !self.fits_run(location, lead as u64) {
            return None;
        }
        let mut next = at + 2;
        let (mut key_len, mut payload_len) = short_lengths(header);
        let (mut expiry, mut lease, mut client_flags, mut explicit_cas) = (0, 0, 0, None);
        if flags & (FLAG_LONG | FLAG_EXPIRY | FLAG_CLIENT | FLAG_CAS) != 0 {
            let mut take = || {
                let word = words.get(next).map(|word| word.load(Ordering::Relaxed));
                next += 1;
                word
            };
            if flags & FLAG_LONG != 0 {
                (key_len, payload_len) = long_lengths(take()?);
            }
            if flags & FLAG_EXPIRY != 0 {
                let word = take()?;
                (expiry, lease) = ((word >> 32) as u32, word as u32);
            }
            if flags & FLAG_CLIENT != 0 {
                client_flags = (take()? >> 32) as u32;
            }
            if flags & FLAG_CAS != 0 {
                explicit_cas = Some(take()?);
            }
        }
        let total_words = next - at + key_len.div_ceil(8) + payload_len.div_ceil(8);
        if total_words > unit_left && !self.fits_run(location, total_words as u64) {
            return None;
        }
        Some(RowHead {
            table: TableId(stamp_word as u16),
            stamp: stamp_word >> 16,
            flags,
            key_len,
            payload_len,
            expiry,
            lease,
            client_flags,
            explicit_cas,
            total_bytes: total_words * 8,
        })
    }

    /// The words of the key of a row whose head was parsed.
    #[inline]
    fn key_words(&self, location: Location, head: &RowHead) -> &[AtomicU64] {
        let at = self.layout.at(location) as usize + 2 + optional_words(head.flags);
        &self.map.words()[at..at + head.key_len.div_ceil(8)]
    }

    /// The words of key and payload.
    #[inline]
    fn body_words(&self, location: Location, head: &RowHead) -> &[AtomicU64] {
        let at = self.layout.at(location) as usize + 2 + optional_words(head.flags);
        &self.map.words()[at..at + head.key_len.div_ceil(8) + head.payload_len.div_ceil(8)]
    }

    #[inline]
    fn payload_words(&self, location: Location, head: &RowHead) -> &[AtomicU64] {
        let at =
            self.layout.at(location) as usize + 2 + optional_words(head.flags) + head.key_len.div_ceil(8);
        &self.map.words()[at..at + head.payload_len.div_ceil(8)]
    }

    #[inline]
    pub(crate) fn is_row_of(&self, location: Location, head: &RowHead, table: TableId, key: &[u8]) -> bool {
        head.table == table && head.key_len == key.len() && copy::equal(self.key_words(location, head), key)
    }

    /// Appends a row's key.
    pub(crate) fn append_key(&self, location: Location, head: &RowHead, out: &mut Vec<u8>) {
        copy::append(self.key_words(location, head), 0, head.key_len, out);
    }

    /// The row at a location, if there is one.
    ///
    /// The caller holds a lock that keeps the row published, or validates afterwards and compares the key.
    #[inline]
    pub fn row(&self, location: Location) -> Option<RowRead<'_>> {
        let location = location.in_file();
        if location.unit() >= self.units_bound() {
            return None;
        }
        // Acquire: pairs with the Release in `recycle`.
        let generation = self.generation(location).load(order::GENERATION_LOAD);
        let head = self.parse(location)?;
        let row = RowRead { arena: self, head, location, slot: None, generation };
        row.is_valid().then_some(row)
    }

    /// The row at a location that a slot named when its unit had this generation (its low half); `None` if the unit
    /// was recycled since.
    #[inline]
    pub(crate) fn row_of_slot(&self, location: Location, generation: u32) -> Option<RowRead<'_>> {
        // Acquire: pairs with the Release in `recycle`.
        let now = self.generation(location).load(order::GENERATION_LOAD);
        // Asked first: it may be long ago that the slot was seen, and where the unit has no pages any more, reading
        // would make one.
        let head = (now as u32 == generation).then(|| self.parse(location))??;
        let row = RowRead { arena: self, head, location, slot: None, generation: now };
        row.is_valid().then_some(row)
    }
}

impl RowRead<'_> {
    /// The head of the row, private and validated.
    #[inline]
    pub fn head(&self) -> &RowHead {
        &self.head
    }

    /// Where the row lies.
    #[inline]
    pub fn location(&self) -> Location {
        self.arena.outer_location(self.location)
    }

    /// The index slot through which it was found; `None` for [`Mapped::row`].
    #[inline]
    pub fn slot(&self) -> Option<SlotId> {
        self.slot.map(|slot| self.arena.outer_slot(slot))
    }

    /// Whether the row lies in the shared one of two arenas.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        self.arena.is_shared
    }

    /// Where it lies in its file.
    #[inline]
    pub(crate) fn inner_location(&self) -> Location {
        self.location
    }

    /// The generation of the unit in which it lies. A place and its generation name one row for good; the place alone
    /// may hold a later one after its segment was recycled.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Where it was found; `None` if it was found by its location.
    #[inline]
    pub fn seen(&self) -> Option<Seen> {
        let (slot, location) = (self.slot()?, self.location());
        Some(Seen { slot, location, generation: self.generation })
    }

    /// The first word of the payload in its file.
    #[inline]
    pub(crate) fn payload_at(&self) -> u64 {
        let lead = 2 + optional_words(self.head.flags) + self.head.key_len.div_ceil(8);
        self.arena.layout.at(self.location) + lead as u64
    }

    /// The slot by its number in its file.
    #[inline]
    pub(crate) fn inner_slot(&self) -> Option<SlotId> {
        self.slot
    }

    /// Appends the key to `out`.
    #[inline]
    pub fn copy_key(&self, out: &mut Vec<u8>) {
        self.arena.append_key(self.location, &self.head, out);
    }

    /// Appends `len` bytes of the payload from byte `from` on to `out`; fewer where the payload ends.
    #[inline]
    pub fn copy_payload(&self, from: usize, len: usize, out: &mut Vec<u8>) {
        let from = from.min(self.head.payload_len);
        let len = len.min(self.head.payload_len - from);
        copy::append(self.arena.payload_words(self.location, &self.head), from, len, out);
    }

    /// The first eight bytes of the payload as a number, zeros behind where it is shorter.
    #[inline]
    pub fn payload_word(&self) -> u64 {
        let words = self.arena.payload_words(self.location, &self.head);
        words.first().map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Appends the key, zeros up to a whole word, and the payload, which lie so behind each other: one copy.
    #[inline]
    pub fn copy_key_and_payload(&self, out: &mut Vec<u8>) {
        let key_bytes = self.head.key_len.next_multiple_of(8);
        let words = self.arena.body_words(self.location, &self.head);
        copy::append(words, 0, key_bytes + self.head.payload_len, out);
    }

    /// Whether the row's key is `key`.
    #[inline]
    pub fn key_equals(&self, key: &[u8]) -> bool {
        self.head.key_len == key.len() && copy::equal(self.arena.key_words(self.location, &self.head), key)
    }

    /// Whether everything copied from the row so far was the row's: its memory has not been recycled.
    #[inline]
    pub fn is_valid(&self) -> bool {
        // Pairs with the Release fence of `write_row`: a copy that saw later bytes sees the later generation.
        fence(order::READ_FENCE);
        self.arena.generation(self.location).load(Ordering::Relaxed) == self.generation
    }

    /// Notes a hit in the row's hint, whose count saturates at 3.
    #[inline]
    pub fn touch(&self, now: u32) {
        if let Some(slot) = self.slot {
            let Some(hint) = self.arena.hints.get(slot.0 as usize) else { return };
            let before = hint.load(Ordering::Relaxed);
            // Relaxed, and a lost update is harmless: the hint is advice. A hot row costs one load.
            if !hint::is_saturated(before, now) {
                hint.store(hint::after_hit(before, now), Ordering::Relaxed);
            }
        }
    }

    /// What is known of the hits on this row.
    #[inline]
    pub fn hits(&self, now: u32) -> Hits {
        self.slot.map_or_else(Hits::default, |slot| self.arena.hits(slot, now))
    }
}
