//! Blocks: the sorted entries of an inner node, which are the first ones of its children.
//!
//! They are few beside those of the leaves, and not packed as these are, so that one entry can take the place of
//! another whatever its key is. An entry is eight bytes of sort key, its *head*, and a location. A block skips bytes
//! that all its keys share, keeps these once, and takes its heads from behind them. Where heads tie and are not the
//! whole rest of their keys, the rows are asked.

use std::ops::Range;

use super::SortKeys;
use super::run::skip_for;
use super::target::{RowReader, Sorted, Target, below, common_len};
use crate::codec::prefix8;
use crate::limits::SHARED_MAX;

/// Entries of a block. A search reads at most a kilobyte of heads.
pub(super) const BLOCK_ENTRIES: usize = 128;

pub(super) struct Block {
    len: usize,
    /// How many bytes all keys share that heads leave out.
    skip: usize,
    /// These bytes, and zeros.
    shared: [u8; SHARED_MAX],
    heads: [u64; BLOCK_ENTRIES],
    locations: [u64; BLOCK_ENTRIES],
}

impl Block {
    pub(super) fn new() -> Self {
        Self {
            len: 0,
            skip: 0,
            shared: [0; SHARED_MAX],
            heads: [0; BLOCK_ENTRIES],
            locations: [0; BLOCK_ENTRIES],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn locations(&self) -> &[u64] {
        &self.locations[..self.len]
    }

    fn shared(&self) -> &[u8] {
        &self.shared[..self.skip]
    }

    /// The first location; a node in the tree is never empty.
    pub(super) fn first(&self) -> u64 {
        self.locations[0]
    }

    /// How many entries lie before a position.
    pub(super) fn position<K: SortKeys + ?Sized>(&self, target: &mut Target<'_, K>) -> usize {
        let key = target.key();
        let Some(rest) = key.strip_prefix(self.shared()) else {
            // The key differs from the shared bytes, or ends within them and so lies before all that go on.
            return if key > self.shared() { self.len } else { 0 };
        };
        let head = prefix8(rest);
        target.position(head.bytes, head.exact, self)
    }

    /// Inserts a key where there is room.
    pub(super) fn insert(&mut self, at: usize, key: &[u8], location: u64) {
        self.heads.copy_within(at..self.len, at + 1);
        self.locations.copy_within(at..self.len, at + 1);
        self.len += 1;
        self.rename(at, key, location);
    }

    /// Gives an entry another key and location. Those of several may be changed one by one, and be out of order
    /// meanwhile: no row is read here, and nothing is concluded from the order.
    pub(super) fn rename(&mut self, at: usize, key: &[u8], location: u64) {
        self.share_with(key);
        self.heads[at] = self.head(key);
        self.locations[at] = location;
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.heads.copy_within(at + 1..self.len, at);
        self.locations.copy_within(at + 1..self.len, at);
        self.len -= 1;
    }

    /// Takes the entries from `at` on away into a new block.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        let mut right = Self { skip: self.skip, shared: self.shared, ..Self::new() };
        right.len = self.len - at;
        right.heads[..right.len].copy_from_slice(&self.heads[at..self.len]);
        right.locations[..right.len].copy_from_slice(&self.locations[at..self.len]);
        self.len = at;
        right
    }

    /// Takes over all entries of the block on the right, whatever the two skip.
    pub(super) fn append(&mut self, right: &mut Self) {
        if self.shared() != right.shared() {
            let both = skip_for(common_len(self.shared(), right.shared()));
            self.skip_less(both);
            right.skip_less(both);
        }
        let all = self.len + right.len;
        self.heads[self.len..all].copy_from_slice(&right.heads[..right.len]);
        self.locations[self.len..all].copy_from_slice(&right.locations[..right.len]);
        self.len = all;
    }

    /// Skips more where the heads have become too much alike: their upper halves are all the same. It reads
    /// two rows to see how much the keys share, and all of them where that is more than was known. The entries are in
    /// order, so that what the first and the last share is what all do.
    pub(super) fn tighten<K: SortKeys + ?Sized>(&mut self, rows: &mut RowReader<'_, K>) {
        if self.len < 2 || (self.heads[0] ^ self.heads[self.len - 1]) >> 32 != 0 {
            return;
        }
        let first = rows.take(self.locations[0]);
        // Keys that end within their heads are told apart already, or are equal.
        if first.len() > self.skip + 8 {
            let last = rows.take(self.locations[self.len - 1]);
            let skip = skip_for(common_len(&first, &last));
            if skip > self.skip {
                self.shared[..skip].copy_from_slice(&first[..skip]);
                self.skip = skip;
                self.read_heads(rows);
            }
            rows.give_back(last);
        }
        rows.give_back(first);
    }

    /// Skips no more than this key shares with the others.
    fn share_with(&mut self, key: &[u8]) {
        let shared = common_len(self.shared(), key);
        if shared < self.skip {
            self.skip_less(skip_for(shared));
        }
    }

    /// Takes bytes that were skipped into the heads.
    fn skip_less(&mut self, skip: usize) {
        let kept = &self.shared[skip..self.skip];
        let (lead, bits) = (prefix8(kept).bytes, 8 * u32::try_from(kept.len()).unwrap_or(u32::MAX));
        for head in &mut self.heads[..self.len] {
            *head = lead | head.checked_shr(bits).unwrap_or(0);
        }
        self.skip = skip;
        self.shared[skip..].fill(0);
    }

    /// Takes all heads again from the rows.
    fn read_heads<K: SortKeys + ?Sized>(&mut self, rows: &mut RowReader<'_, K>) {
        for at in 0..self.len {
            let key = rows.take(self.locations[at]);
            self.heads[at] = self.head(&key);
            rows.give_back(key);
        }
    }

    /// The head of a key that begins with the shared bytes.
    fn head(&self, key: &[u8]) -> u64 {
        prefix8(key.get(self.skip..).unwrap_or_default()).bytes
    }
}

impl Sorted for Block {
    fn below(&self, head: u64) -> usize {
        below(&self.heads[..self.len], head, |head| head)
    }

    fn through(&self, head: u64, below: usize) -> usize {
        let ties = self.heads[below..self.len].iter().take_while(|&&own| own == head);
        below + ties.count()
    }

    fn location(&self, at: usize) -> u64 {
        self.locations[at]
    }

    fn below_location(&self, ties: Range<usize>, location: u64) -> usize {
        ties.start + self.locations[ties].partition_point(|&own| own < location)
    }
}

#[cfg(test)]
impl Block {
    /// Proves that heads are what the rows say, in order.
    pub(super) fn check<K: SortKeys + ?Sized>(&self, rows: &mut RowReader<'_, K>) {
        let keys: Vec<_> =
            self.locations().iter().map(|location| (rows.take(*location), *location)).collect();
        assert!(keys.is_sorted());
        for (at, (key, _)) in keys.iter().enumerate() {
            assert_eq!(self.heads[at], prefix8(key.strip_prefix(self.shared()).expect("shared")).bytes);
        }
    }
}
