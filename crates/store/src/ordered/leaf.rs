//! Leaves: sorted entries, prefixes and locations apart, so that a search reads prefixes only.

use super::SortKeys;
use super::target::Target;

/// Entries of a leaf. A search touches a kilobyte of prefixes, an insertion moves one on average; half as
/// many made inner nodes the cost, twice as many the moving.
pub(super) const LEAF_ENTRIES: usize = 128;

/// One row of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) prefix: u64,
    pub(super) location: u64,
}

pub(super) struct Leaf {
    len: usize,
    prefixes: [u64; LEAF_ENTRIES],
    locations: [u64; LEAF_ENTRIES],
}

impl Leaf {
    pub(super) fn new() -> Self {
        Self { len: 0, prefixes: [0; LEAF_ENTRIES], locations: [0; LEAF_ENTRIES] }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == LEAF_ENTRIES
    }

    pub(super) fn prefixes(&self) -> &[u64] {
        &self.prefixes[..self.len]
    }

    pub(super) fn locations(&self) -> &[u64] {
        &self.locations[..self.len]
    }

    /// The first entry; a leaf in the tree is never empty.
    pub(super) fn first(&self) -> Entry {
        self.entry(0)
    }

    pub(super) fn entry(&self, at: usize) -> Entry {
        Entry { prefix: self.prefixes[at], location: self.locations[at] }
    }

    /// How many entries lie before a position.
    pub(super) fn position<K: SortKeys + ?Sized>(&self, target: &mut Target<'_, K>) -> usize {
        target.position(self.prefixes(), self.locations())
    }

    /// Where the entry that the target names is.
    pub(super) fn find<K: SortKeys + ?Sized>(&self, target: &mut Target<'_, K>) -> Result<usize, usize> {
        let after = self.position(target);
        match after.checked_sub(1) {
            Some(at) if target.is(self.prefixes[at], self.locations[at]) => Ok(at),
            _ => Err(after),
        }
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.insert(self.len, entry);
    }

    /// Inserts where there is room.
    pub(super) fn insert(&mut self, at: usize, entry: Entry) {
        self.prefixes.copy_within(at..self.len, at + 1);
        self.locations.copy_within(at..self.len, at + 1);
        self.prefixes[at] = entry.prefix;
        self.locations[at] = entry.location;
        self.len += 1;
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.prefixes.copy_within(at + 1..self.len, at);
        self.locations.copy_within(at + 1..self.len, at);
        self.len -= 1;
    }

    pub(super) fn set_location(&mut self, at: usize, location: u64) {
        self.locations[at] = location;
    }

    /// Takes the entries from `at` on away into a new leaf.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        let mut right = Self::new();
        self.move_tail(self.len - at, &mut right);
        right
    }

    /// Moves the last `count` entries to the front of the leaf on the right.
    pub(super) fn move_tail(&mut self, count: usize, right: &mut Self) {
        let from = self.len - count;
        right.prefixes.copy_within(..right.len, count);
        right.locations.copy_within(..right.len, count);
        right.prefixes[..count].copy_from_slice(&self.prefixes[from..self.len]);
        right.locations[..count].copy_from_slice(&self.locations[from..self.len]);
        right.len += count;
        self.len = from;
    }

    /// Moves the first `count` entries of the leaf on the right to the end of this one.
    pub(super) fn take_front(&mut self, count: usize, right: &mut Self) {
        let to = self.len + count;
        self.prefixes[self.len..to].copy_from_slice(&right.prefixes[..count]);
        self.locations[self.len..to].copy_from_slice(&right.locations[..count]);
        right.prefixes.copy_within(count..right.len, 0);
        right.locations.copy_within(count..right.len, 0);
        right.len -= count;
        self.len = to;
    }
}
