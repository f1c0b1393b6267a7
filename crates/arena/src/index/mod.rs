//! The hash index: buckets of a header word and seven one-word slots, changed under a shard's token.
//!
//! A slot changes by one store. A bucket's version is odd only while a split moves entries along its chain, so
//! that a lock-free reader that missed knows to look again.

pub(crate) mod growth;
pub(crate) mod hint;

use std::sync::atomic::{Ordering, fence};

use crate::layout::{
    BUCKET_BYTES, BUCKET_SLOTS, Hash, LOCATION_BITS, LOCATION_MASK, Location, SHARDS, SlotId, TableId,
    slot_prefix,
};
use crate::limits::MAX_CHAIN;
use crate::row::RowHead;
use crate::{Arena, IndexFull, order};

/// Words of a bucket.
pub(crate) const BUCKET_WORDS: u64 = BUCKET_BYTES / 8;

/// The right to change one shard of the index. There is one per shard; the caller keeps it inside the shard's lock.
#[derive(Debug)]
pub struct ShardToken {
    pub(crate) shard: u16,
}

impl ShardToken {
    /// The shard's number.
    pub fn shard(&self) -> usize {
        usize::from(self.shard)
    }
}

/// A row's entry in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The slot that holds it.
    pub slot: SlotId,
    /// Where the row lies.
    pub location: Location,
}

/// The shape of a scan: groups of buckets that hold the same keys however often the index splits meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanShape {
    /// Groups to visit, from 0.
    pub groups: u64,
}

/// The bucket of a hash under an index word.
#[inline]
pub(crate) fn bucket_of(index_word: u64, hash: Hash) -> u64 {
    let (level, split) = shape(index_word);
    let mask = (1u64 << level) - 1;
    let bucket = hash.0 & mask;
    if bucket < split { hash.0 & (2 * mask + 1) } else { bucket }
}

/// Level and next bucket to split of an index word.
#[inline]
pub(crate) fn shape(index_word: u64) -> (u32, u64) {
    // 63 keeps the shift defined whatever the word is.
    ((index_word >> 56) as u32 & 63, index_word & ((1 << 56) - 1))
}

/// The index word of a shape.
pub(crate) fn index_word(level: u32, split: u64) -> u64 {
    (u64::from(level) << 56) | split
}

/// The version in a bucket's header.
#[inline]
pub(crate) fn version(header: u64) -> u64 {
    header >> 32
}

/// The number of the next bucket of the chain, counted from 1; 0 ends it.
#[inline]
pub(crate) fn overflow_link(header: u64) -> u64 {
    header & 0xffff_ffff
}

/// A bucket's header.
pub(crate) fn header(version: u64, link: u64) -> u64 {
    (version << 32) | link
}

impl Arena {
    /// The shard of a hash.
    #[inline]
    pub fn shard_of(hash: Hash) -> usize {
        hash.0 as usize % SHARDS
    }

    /// Hands out the tokens of all shards; a second call returns none.
    pub fn take_tokens(&mut self) -> Vec<ShardToken> {
        std::mem::take(&mut self.tokens)
    }

    pub(crate) fn all_tokens() -> Vec<ShardToken> {
        (0..SHARDS as u16).map(|shard| ShardToken { shard }).collect()
    }

    /// The buckets of a chain by number, at most [`MAX_CHAIN`].
    #[inline]
    pub(crate) fn chain(&self, first: u64) -> impl Iterator<Item = u64> {
        let mut next = Some(first);
        std::iter::from_fn(move || {
            let bucket = next?;
            let link = overflow_link(self.map.load(self.bucket_word(bucket), Ordering::Relaxed));
            next =
                (link != 0 && link <= self.layout.max_overflow).then(|| self.layout.max_buckets + link - 1);
            Some(bucket)
        })
        .take(MAX_CHAIN)
    }

    /// The slots of a chain in order, each with its word.
    #[inline]
    pub(crate) fn slots(&self, first: u64) -> impl Iterator<Item = (SlotId, u64)> {
        self.chain(first).flat_map(move |bucket| {
            (1..=BUCKET_SLOTS).map(move |slot| {
                let id = SlotId(bucket * BUCKET_WORDS + slot);
                (id, self.slot_word(id))
            })
        })
    }

    #[inline]
    pub(crate) fn slot_word(&self, slot: SlotId) -> u64 {
        self.map.load(self.layout.index + slot.in_file(), Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set_slot(&self, slot: SlotId, value: u64) {
        // Release: pairs with the Acquire load of a slot; who sees it sees the row, or that a row is gone.
        self.map.store(self.layout.index + slot.in_file(), value, order::SLOT_STORE);
    }

    fn bucket_under(&self, token: &ShardToken, hash: Hash) -> u64 {
        debug_assert_eq!(token.shard(), Self::shard_of(hash), "the token of the hash's shard");
        let bucket = bucket_of(self.index_word(), hash);
        self.ensure_proved(bucket);
        bucket
    }

    /// Finds a key's entry.
    #[inline]
    pub fn find(&self, token: &ShardToken, hash: Hash, table: TableId, key: &[u8]) -> Option<Entry> {
        self.find_row(token, hash, table, key).map(|(entry, _)| entry)
    }

    /// Finds a key's entry, and the head of its row.
    #[inline]
    pub fn find_row(
        &self,
        token: &ShardToken,
        hash: Hash,
        table: TableId,
        key: &[u8],
    ) -> Option<(Entry, RowHead)> {
        let want = slot_prefix(hash, table);
        self.slots(self.bucket_under(token, hash))
            .filter(|(_, found)| (found ^ want) >> LOCATION_BITS == 0)
            .find_map(|(slot, found)| {
                let location = Location::from_bits(found);
                let head = self.parse(location)?;
                let entry = Entry { slot: self.outer_slot(slot), location: self.outer_location(location) };
                self.is_row_of(location, &head, table, key).then_some((entry, head))
            })
    }

    /// Finds the slot that points at a location.
    #[inline]
    pub fn find_location(&self, token: &ShardToken, hash: Hash, location: Location) -> Option<SlotId> {
        self.slots(self.bucket_under(token, hash))
            .find(|(_, found)| *found != 0 && found & LOCATION_MASK == location.in_file().bits())
            .map(|(slot, _)| self.outer_slot(slot))
    }

    /// Publishes a row whose key is not in the index.
    pub fn insert(
        &self,
        token: &mut ShardToken,
        hash: Hash,
        table: TableId,
        location: Location,
    ) -> Result<SlotId, IndexFull> {
        let value = slot_prefix(hash, table) | location.in_file().bits();
        let first = self.bucket_under(token, hash);
        let empty = self.slots(first).find(|(_, found)| *found == 0).map(|(slot, _)| slot);
        let slot = match empty {
            Some(slot) => {
                self.hints[slot.in_file() as usize].store(0, Ordering::Relaxed);
                self.set_slot(slot, value);
                slot
            }
            None => self.insert_overflow(first, value)?,
        };
        self.rows.fetch_add(1, Ordering::Relaxed);
        Ok(self.outer_slot(slot))
    }

    /// Hangs another bucket with one entry on a full chain.
    #[cold]
    fn insert_overflow(&self, first: u64, value: u64) -> Result<SlotId, IndexFull> {
        let chain: Vec<u64> = self.chain(first).collect();
        let last = *chain.last().ok_or(IndexFull)?;
        if chain.len() >= MAX_CHAIN {
            return Err(IndexFull);
        }
        let link = self.take_overflow().ok_or(IndexFull)?;
        let bucket = self.layout.max_buckets + link - 1;
        self.fill_bucket(bucket, header(0, 0), &[value]);
        let slot = SlotId(bucket * BUCKET_WORDS + 1);
        self.hints[slot.in_file() as usize].store(0, Ordering::Relaxed);
        let at = self.bucket_word(last);
        let version = version(self.map.load(at, Ordering::Relaxed));
        // Release: pairs with the Acquire load of a header; who follows the link sees the bucket filled.
        self.map.store(at, header(version, link), order::LINK_STORE);
        Ok(slot)
    }

    /// Writes a whole bucket that no reader can reach.
    pub(crate) fn fill_bucket(&self, bucket: u64, header: u64, values: &[u64]) {
        let at = self.bucket_word(bucket);
        // It may have been another chain's a moment ago. Pairs with the Acquire of a slot: a reader who still walks
        // that chain, and sees a word from here, sees its version changed, and does not take the key that moved for
        // missing.
        fence(order::BUCKET_FENCE);
        self.map.store(at, header, Ordering::Relaxed);
        for slot in 0..BUCKET_SLOTS {
            let value = values.get(slot as usize).copied().unwrap_or(0);
            self.map.store(at + 1 + slot, value, Ordering::Relaxed);
        }
    }

    /// Publishes another version in a slot: one store. The count of hits is the key's, and kept; that the version was
    /// fetched is not.
    #[inline]
    pub fn replace(
        &self,
        token: &mut ShardToken,
        slot: SlotId,
        hash: Hash,
        table: TableId,
        location: Location,
    ) {
        debug_assert_eq!(token.shard(), Self::shard_of(hash), "the token of the hash's shard");
        let hint = &self.hints[slot.in_file() as usize];
        let before = hint.load(Ordering::Relaxed);
        if before != hint::of_new_version(before) {
            hint.store(hint::of_new_version(before), Ordering::Relaxed);
        }
        self.set_slot(slot, slot_prefix(hash, table) | location.in_file().bits());
    }

    /// Publishes a copy of the same version in a slot: one store.
    #[inline]
    pub fn relocate(
        &self,
        token: &mut ShardToken,
        slot: SlotId,
        hash: Hash,
        table: TableId,
        location: Location,
    ) {
        debug_assert_eq!(token.shard(), Self::shard_of(hash), "the token of the hash's shard");
        self.set_slot(slot, slot_prefix(hash, table) | location.in_file().bits());
    }

    /// Clears a slot.
    #[inline]
    pub fn remove(&self, _token: &mut ShardToken, slot: SlotId) {
        debug_assert_ne!(self.slot_word(slot), 0, "a slot in use is removed");
        self.set_slot(slot, 0);
        self.rows.fetch_sub(1, Ordering::Relaxed);
    }

    /// Hits counted for a slot, at most 3.
    #[inline]
    pub fn frequency(&self, slot: SlotId) -> u8 {
        hint::frequency(self.hints[slot.in_file() as usize].load(Ordering::Relaxed))
    }

    /// Sets the count of a slot.
    #[inline]
    pub fn set_frequency(&self, slot: SlotId, frequency: u8) {
        let hint = &self.hints[slot.in_file() as usize];
        hint.store(hint::with_frequency(hint.load(Ordering::Relaxed), frequency), Ordering::Relaxed);
    }

    /// Begins a scan of the whole index.
    ///
    /// A group is all buckets whose numbers agree in the low bits of today's level. A bucket splits into
    /// buckets of its own group, so a row that stays is met exactly once.
    pub fn scan_shape(&self) -> ScanShape {
        ScanShape { groups: 1 << shape(self.index_word()).0 }
    }

    /// Appends the locations of a table's rows in one group; the token is of [`Arena::shard_of_group`].
    pub fn scan_group(
        &self,
        token: &ShardToken,
        shape: ScanShape,
        group: u64,
        table: TableId,
        out: &mut Vec<Location>,
    ) {
        self.each_of_group(token, shape, group, table, |found| {
            let location = Location::from_bits(found);
            // The slot has nine bits of the table; the row has them all.
            if self.map.load(self.layout.at(location), Ordering::Relaxed) as u16 == table.0 {
                out.push(self.outer_location(location));
            }
        });
    }

    /// Shows the words of the slots of one group that may be of a table.
    #[inline]
    pub(crate) fn each_of_group(
        &self,
        token: &ShardToken,
        shape: ScanShape,
        group: u64,
        table: TableId,
        mut show: impl FnMut(u64),
    ) {
        debug_assert_eq!(token.shard(), Self::shard_of_group(group), "the token of the group's shard");
        let (level, split) = self::shape(self.index_word());
        let buckets = (1u64 << level) + split;
        let want = u64::from(table.0 & 0x1ff) << LOCATION_BITS;
        for bucket in (group..buckets).step_by(shape.groups as usize) {
            self.ensure_proved(bucket);
            for (_, found) in self.slots(bucket) {
                if found != 0 && (found ^ want) & (0x1ff << LOCATION_BITS) == 0 {
                    show(found);
                }
            }
        }
    }

    /// The shard that a group of a scan belongs to.
    pub fn shard_of_group(group: u64) -> usize {
        group as usize % SHARDS
    }
}
