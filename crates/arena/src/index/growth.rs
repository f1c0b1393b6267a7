//! Growth of the index by linear hashing: one bucket at a time, while readers read.
//!
//! Copies are published at the new place first; then the index word advances; then the old ones are cleared
//! under an odd version. A reader with the old word finds an entry in the old bucket until it is cleared, and
//! if it misses it sees that the word or the version changed.

use std::sync::atomic::{Ordering, fence};

use crate::index::{BUCKET_WORDS, header, index_word, overflow_link, shape, version};
use crate::layout::{BUCKET_BYTES, BUCKET_SLOTS, Hash, INDEX_STEP_BYTES, Location, SHARDS, SlotId, word};
use crate::{Arena, ShardToken, order};

/// A split is due above this share of used slots: the last point at which most chains are one bucket long.
const LOAD_PERCENT: u64 = 78;

/// Overflow buckets that have pages before they are needed. Where the file system is full and no unit is free, an
/// insert takes one of these, and segments are asked to make room, which they do before so many more are taken.
const OVERFLOW_SPARE: u64 = 64;

/// The buckets behind the first ones, and how much of both regions has pages. Guarded by `Arena::buckets`.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    /// Main buckets that are committed.
    pub(crate) main_committed: u64,
    /// Overflow buckets that are committed.
    pub(crate) overflow_committed: u64,
    /// Extents of main buckets that are one page each: so many of the first.
    pub(crate) main_huge: u64,
    /// As many of overflow buckets.
    pub(crate) overflow_huge: u64,
    /// Overflow buckets handed out so far, the free ones included.
    pub(crate) overflow_used: u64,
    /// Links of overflow buckets that were used and are free.
    pub(crate) overflow_free: Vec<u64>,
}

/// One entry of a chain that splits.
#[derive(Clone, Copy)]
struct Moving {
    value: u64,
    hint: u16,
}

impl Arena {
    /// The shard to lock for the next split, if the index is full enough for one.
    #[inline]
    pub fn split_due(&self) -> Option<usize> {
        self.split_due_for(0)
    }

    /// As [`Arena::split_due`], for the rows that are there and so many more.
    #[inline]
    pub fn split_due_for(&self, more: u64) -> Option<usize> {
        let (level, split) = shape(self.index_word());
        let buckets = (1u64 << level) + split;
        let rows = self.rows.load(Ordering::Relaxed) + more;
        let due = rows * 100 > buckets * BUCKET_SLOTS * LOAD_PERCENT;
        (due && buckets < self.layout.max_buckets).then_some(split as usize % SHARDS)
    }

    /// Splits the next bucket if it belongs to this shard and a split is due; whether it did.
    ///
    /// False also where the file system has no page for the new bucket: chains grow longer instead.
    pub fn split(&self, token: &mut ShardToken) -> bool {
        self.split_for(token, 0)
    }

    /// As [`Arena::split`], for the rows that are there and so many more.
    pub fn split_for(&self, token: &mut ShardToken, more: u64) -> bool {
        if self.split_due_for(more) != Some(token.shard()) {
            return false;
        }
        let (level, old) = shape(self.index_word());
        if old as usize % SHARDS != token.shard() {
            return false;
        }
        self.ensure_proved(old);
        let new = (1u64 << level) + old;
        if !self.commit_main(new) {
            return false;
        }
        let (kept, moved) = self.divide(old, level);
        if !self.write_chain(new, &moved) {
            return false;
        }
        let next = if old + 1 == 1 << level { index_word(level + 1, 0) } else { index_word(level, old + 1) };
        // Release: pairs with the Acquire load of the index word; the new bucket is complete behind it. Only the
        // holder of this shard can advance the word past this bucket, so a plain store loses nothing.
        self.map.store(word::INDEX, next, order::INDEX_STORE);
        self.repack(old, &kept);
        true
    }

    /// The entries of a chain that stay in its bucket and those that leave, with the place of those that stay.
    fn divide(&self, bucket: u64, level: u32) -> (Vec<(SlotId, Moving)>, Vec<Moving>) {
        let (mut kept, mut moved) = (Vec::with_capacity(8), Vec::with_capacity(8));
        let mut key = Vec::with_capacity(256);
        for (slot, value) in self.slots(bucket) {
            if value == 0 {
                continue;
            }
            let entry = Moving { value, hint: self.hints[slot.in_file() as usize].load(Ordering::Relaxed) };
            match self.hash_of_row(Location::from_bits(value), &mut key) {
                Some(hash) if (hash.0 >> level) & 1 == 1 => moved.push(entry),
                _ => kept.push((slot, entry)),
            }
        }
        (kept, moved)
    }

    /// Hashes the key of a published row again; the shard's token keeps it from being recycled.
    pub(crate) fn hash_of_row(&self, location: Location, key: &mut Vec<u8>) -> Option<Hash> {
        let head = self.parse(location)?;
        key.clear();
        self.append_key(location, &head, key);
        Some(self.hash(head.table, key))
    }

    /// Writes a chain that no reader can reach yet; false if there are no overflow buckets for it.
    fn write_chain(&self, bucket: u64, entries: &[Moving]) -> bool {
        let slots = BUCKET_SLOTS as usize;
        let needed = entries.len().div_ceil(slots).saturating_sub(1);
        let links: Vec<u64> = (0..needed).map_while(|_| self.take_overflow()).collect();
        if links.len() < needed {
            for link in links {
                self.free_overflow(link);
            }
            return false;
        }
        let values: Vec<u64> = entries.iter().map(|entry| entry.value).collect();
        let mut chunks = values.chunks(slots);
        let mut at = bucket;
        for place in 0..=needed {
            let link = links.get(place).copied().unwrap_or(0);
            self.fill_bucket(at, header(0, link), chunks.next().unwrap_or(&[]));
            for (i, entry) in entries.iter().skip(place * slots).take(slots).enumerate() {
                let slot = at * BUCKET_WORDS + 1 + i as u64;
                self.hints[slot as usize].store(entry.hint, Ordering::Relaxed);
            }
            at = self.layout.max_buckets + link.saturating_sub(1);
        }
        true
    }

    /// Moves the entries that stay to the front of their chain, clears the rest, and frees buckets left empty.
    fn repack(&self, bucket: u64, kept: &[(SlotId, Moving)]) {
        let at = self.bucket_word(bucket);
        let before = self.map.load(at, Ordering::Relaxed);
        let odd = (version(before) + 1) & 0xffff_ffff;
        self.map.store(at, header(odd, overflow_link(before)), Ordering::Relaxed);
        // Pairs with the Acquire fence of a reader that missed: if it missed because of a store below, it sees
        // the odd version or a later one.
        fence(order::SPLIT_FENCE);
        let places: Vec<SlotId> = self.slots(bucket).map(|(slot, _)| slot).collect();
        for ((from, entry), place) in kept.iter().zip(&places) {
            if from != place {
                self.hints[place.0 as usize].store(entry.hint, Ordering::Relaxed);
                // An entry is copied forward before its old place is overwritten or cleared.
                self.set_slot(*place, entry.value);
            }
        }
        for place in &places[kept.len()..] {
            if self.slot_word(*place) != 0 {
                self.set_slot(*place, 0);
            }
        }
        let chain: Vec<u64> = self.chain(bucket).collect();
        let stay = kept.len().div_ceil(BUCKET_SLOTS as usize).max(1);
        if stay > 1 {
            let last = self.bucket_word(chain[stay - 1]);
            self.map.store(last, header(0, 0), Ordering::Relaxed);
        }
        let link = if stay > 1 { overflow_link(before) } else { 0 };
        // Release: pairs with the Acquire load of the version.
        self.map.store(at, header((odd + 1) & 0xffff_ffff, link), order::VERSION_STORE);
        for bucket in &chain[stay..] {
            self.free_overflow(bucket - self.layout.max_buckets + 1);
        }
    }

    /// Makes sure that a main bucket has pages.
    fn commit_main(&self, bucket: u64) -> bool {
        let step = INDEX_STEP_BYTES / BUCKET_BYTES;
        let mut buckets = self.buckets.lock();
        if bucket >= buckets.main_committed {
            let from = buckets.main_committed;
            let to = (bucket + 1).next_multiple_of(step).min(self.layout.max_buckets);
            if !self.commit_index(self.bucket_word(from) * 8, (to - from) * BUCKET_BYTES) {
                return false;
            }
            buckets.main_committed = to;
        }
        true
    }

    /// Takes a free overflow bucket: its link, counted from 1.
    pub(crate) fn take_overflow(&self) -> Option<u64> {
        let mut buckets = self.buckets.lock();
        if let Some(link) = buckets.overflow_free.pop() {
            return Some(link);
        }
        if buckets.overflow_used >= self.layout.max_overflow {
            return None;
        }
        if buckets.overflow_used + OVERFLOW_SPARE >= buckets.overflow_committed {
            self.commit_overflow(&mut buckets);
        }
        if buckets.overflow_used >= buckets.overflow_committed {
            return None;
        }
        buckets.overflow_used += 1;
        Some(buckets.overflow_used)
    }

    /// Has the next overflow buckets get pages, if there are any to be had.
    fn commit_overflow(&self, buckets: &mut Buckets) {
        let from = buckets.overflow_committed;
        let to = (from + INDEX_STEP_BYTES / BUCKET_BYTES).min(self.layout.max_overflow);
        let byte = self.bucket_word(self.layout.max_buckets + from) * 8;
        if from < to && self.commit_index(byte, (to - from) * BUCKET_BYTES) {
            buckets.overflow_committed = to;
            // Recovery follows links below this number only.
            self.map.store(word::OVERFLOW_COMMITTED, to, Ordering::Release);
        }
    }

    fn free_overflow(&self, link: u64) {
        self.buckets.lock().overflow_free.push(link);
    }

    /// Bytes of the hints of all slots that may have been used: one for each word of a bucket.
    pub(crate) fn hint_bytes(&self) -> u64 {
        self.index_bytes() / size_of::<u64>() as u64 * size_of::<std::sync::atomic::AtomicU16>() as u64
    }

    /// Bytes of buckets that have pages.
    pub(crate) fn index_bytes(&self) -> u64 {
        let buckets = self.buckets.lock();
        (buckets.main_committed + buckets.overflow_committed) * BUCKET_BYTES
    }
}
