//! Blocks: the sorted entries of one node.
//!
//! An entry is eight bytes of sort key, its *head*, and a location; heads and locations stand apart, so that a
//! search reads heads only. Keys of one node often begin alike (`https://...`, one page's number before many
//! users'), and then their first eight bytes would tell nothing apart. So a block skips bytes that all its keys
//! share, keeps these once, and takes its heads from behind them. Where heads tie and are not the whole rest of
//! their keys, the rows are asked.

use super::SortKeys;
use super::target::{RowReader, Target};
use crate::codec::prefix8;

/// Entries of a block. A search reads at most a kilobyte of heads, an insertion moves one on average.
pub(super) const BLOCK_ENTRIES: usize = 128;
/// Most shared bytes that a block skips: enough for a scheme, a host and a path, and a thirtieth of a block.
const SHARED_MAX: usize = 64;
/// Blocks skip multiples of this, so that neighbours mostly skip the same and can exchange heads as they are.
const SKIP_STEP: usize = 4;

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

    pub(super) fn is_full(&self) -> bool {
        self.len == BLOCK_ENTRIES
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
        target.position(prefix8(rest), &self.heads[..self.len], self.locations())
    }

    /// Where the entry that the target names is, or else belongs.
    pub(super) fn find<K: SortKeys + ?Sized>(&self, target: &mut Target<'_, K>) -> Result<usize, usize> {
        let after = self.position(target);
        match after.checked_sub(1) {
            Some(at) if target.names(self.locations[at]) => Ok(at),
            _ => Err(after),
        }
    }

    /// Inserts a key where there is room.
    pub(super) fn insert<K: SortKeys + ?Sized>(
        &mut self,
        at: usize,
        key: &[u8],
        location: u64,
        rows: &mut RowReader<'_, K>,
    ) {
        self.share_with(key, rows);
        let head = self.head(key);
        self.heads.copy_within(at..self.len, at + 1);
        self.locations.copy_within(at..self.len, at + 1);
        self.heads[at] = head;
        self.locations[at] = location;
        self.len += 1;
        // A block that is split looks at what its halves share; one that has not been yet looks now and then.
        if self.len.is_power_of_two() {
            self.tighten(rows);
        }
    }

    /// As [`Block::insert`], of the key that a row has.
    pub(super) fn insert_row<K: SortKeys + ?Sized>(
        &mut self,
        at: usize,
        location: u64,
        rows: &mut RowReader<'_, K>,
    ) {
        let key = rows.take(location);
        self.insert(at, &key, location, rows);
        rows.give_back(key);
    }

    /// Appends an entry whose whole key begins with these eight bytes, before any are skipped.
    pub(super) fn push_whole(&mut self, head: u64, location: u64) {
        self.heads[self.len] = head;
        self.locations[self.len] = location;
        self.len += 1;
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.heads.copy_within(at + 1..self.len, at);
        self.locations.copy_within(at + 1..self.len, at);
        self.len -= 1;
    }

    /// Names another row with another key in the same place.
    pub(super) fn set_row<K: SortKeys + ?Sized>(
        &mut self,
        at: usize,
        location: u64,
        rows: &mut RowReader<'_, K>,
    ) {
        self.remove(at);
        self.insert_row(at, location, rows);
    }

    /// Gives the entry at `at`, which the target names, another location. False, and nothing changed, where it
    /// may belong into another block then.
    pub(super) fn move_entry<K: SortKeys + ?Sized>(
        &mut self,
        at: usize,
        new: u64,
        target: &mut Target<'_, K>,
    ) -> bool {
        let (head, old) = (self.heads[at], self.locations[at]);
        // A neighbour stays on its side if its key is another, or if its location lies so to the new one as to the old.
        let stays = |other: Option<usize>| {
            other.is_some_and(|other| {
                let location = self.locations[other];
                self.heads[other] != head || (location < old) == (location < new)
            })
        };
        if stays(at.checked_sub(1)) && stays(Some(at + 1).filter(|&after| after < self.len)) {
            self.locations[at] = new;
            return true;
        }
        self.remove(at);
        let to = target.at_entry(new, |target| self.position(target));
        let inside = 0 < to && to < self.len;
        let (at, location) = if inside { (to, new) } else { (at, old) };
        self.heads.copy_within(at..self.len, at + 1);
        self.locations.copy_within(at..self.len, at + 1);
        self.heads[at] = head;
        self.locations[at] = location;
        self.len += 1;
        inside
    }

    /// Takes the entries from `at` on away into a new block.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        let mut right = Self { skip: self.skip, shared: self.shared, ..Self::new() };
        self.move_tail(self.len - at, &mut right);
        right
    }

    /// Whether two blocks skip the same bytes, so that entries can change over as they are.
    pub(super) fn shares_with(&self, other: &Self) -> bool {
        self.shared() == other.shared()
    }

    /// Moves the last `count` entries to the front of the block on the right, which skips the same.
    pub(super) fn move_tail(&mut self, count: usize, right: &mut Self) {
        let from = self.len - count;
        right.heads.copy_within(..right.len, count);
        right.locations.copy_within(..right.len, count);
        right.heads[..count].copy_from_slice(&self.heads[from..self.len]);
        right.locations[..count].copy_from_slice(&self.locations[from..self.len]);
        right.len += count;
        self.len = from;
    }

    /// Moves the first `count` entries of the block on the right, which skips the same, to the end of this one.
    pub(super) fn take_front(&mut self, count: usize, right: &mut Self) {
        let to = self.len + count;
        self.heads[self.len..to].copy_from_slice(&right.heads[..count]);
        self.locations[self.len..to].copy_from_slice(&right.locations[..count]);
        right.heads.copy_within(count..right.len, 0);
        right.locations.copy_within(count..right.len, 0);
        right.len -= count;
        self.len = to;
    }

    /// Takes over all entries of the block on the right, whatever the two skip.
    pub(super) fn append<K: SortKeys + ?Sized>(&mut self, right: &mut Self, rows: &mut RowReader<'_, K>) {
        if !self.shares_with(right) {
            let both = skip_for(common_len(self.shared(), right.shared()));
            self.rebase(both, rows);
            right.rebase(both, rows);
        }
        self.take_front(right.len, right);
    }

    /// Skips more where the heads have become too much alike: their upper halves are all the same. It reads
    /// two rows to see how much the keys share, and all of them where that is more than was known.
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
                self.rebase(skip, rows);
            }
            rows.give_back(last);
        }
        rows.give_back(first);
    }

    /// Skips no more than this key shares with the others.
    fn share_with<K: SortKeys + ?Sized>(&mut self, key: &[u8], rows: &mut RowReader<'_, K>) {
        let shared = common_len(self.shared(), key);
        if shared < self.skip {
            self.rebase(skip_for(shared), rows);
        }
    }

    /// Takes all heads anew behind `skip` bytes, which `shared` holds already.
    fn rebase<K: SortKeys + ?Sized>(&mut self, skip: usize, rows: &mut RowReader<'_, K>) {
        if skip == self.skip {
            return;
        }
        self.skip = skip;
        self.shared[skip..].fill(0);
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

/// How many bytes two keys share.
fn common_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// How many bytes to skip where so many are shared.
fn skip_for(shared: usize) -> usize {
    shared.min(SHARED_MAX) / SKIP_STEP * SKIP_STEP
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
