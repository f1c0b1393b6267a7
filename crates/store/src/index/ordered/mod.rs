//! The ordered secondary index: a B+tree from sort keys to row locations.
//!
//! An entry is some bytes of the row's sort key, and the row's location. Where keys are short, as numbers are, a leaf
//! keeps all of them in a byte or two beside what they share; of long ones it keeps eight bytes from behind what its
//! keys share, for the row has the rest, and asks for the full key through [`SortKeys`] where entries tie in these:
//! that is seldom. Rows with equal keys are ordered by location, so every entry has one place. What is a location here
//! may bear more than that in its highest sixteen bits: the store puts bits of the row's key there, so that a row that
//! is written again keeps its place among its equals, and only the word of its entry changes.
//!
//! The tree knows nothing of columns beyond this: keys are what [`crate::codec::sort_key`] makes, and no key
//! of one index is the beginning of another. Bounds of a range are a key, the encoding of a key's first
//! columns, [`crate::codec::text_prefix`] or [`crate::codec::prefix_end`] of one of these, which is how
//! "everything that begins with this" is said: from the beginning itself, included, up to its
//! `prefix_end`, excluded.
//!
//! It has no lock of its own. A scan takes a bounded chunk of locations, leaves the lock, and comes back with
//! the [`Resume`] it was given.
//!
//! **Invariant:** the row behind an entry can be read for as long as the entry is here, so the tree keeps no
//! copy of an entry that was removed; inner nodes name the first live entry of each child.

use std::fmt;
use std::ops::Bound;

use crate::codec::{column_ends, prefix_end};
use crate::limits::RECENT_ARRIVALS_MAX;

mod block;
mod entries;
mod inner;
mod leaf;
mod node;
mod run;
mod target;
#[cfg(test)]
mod tests;

pub use entries::EntryList;

use entries::Entries;
use node::{Edges, Node, Replaced, Tally};
use target::{Place, Target};

/// Reads the sort key of a row that is in the index.
pub trait SortKeys {
    /// Appends the full sort key of the row at this location.
    fn sort_key(&self, location: u64, out: &mut Vec<u8>);
}

impl<F: Fn(u64, &mut Vec<u8>)> SortKeys for F {
    fn sort_key(&self, location: u64, out: &mut Vec<u8>) {
        self(location, out);
    }
}

/// Which entries a scan visits, and in which direction.
///
/// [`Bound::Included`] below and [`Bound::Excluded`] above are the cheap ones: they never read a row whose
/// key fits in eight bytes.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    /// Where keys begin.
    pub lower: Bound<&'a [u8]>,
    /// Where keys end.
    pub upper: Bound<&'a [u8]>,
    /// From the greatest key to the smallest.
    pub reverse: bool,
    /// Where the chunk before ended.
    pub resume_after: Option<&'a Resume>,
}

impl Range<'_> {
    /// Every entry, ascending.
    pub const ALL: Range<'static> =
        Range { lower: Bound::Unbounded, upper: Bound::Unbounded, reverse: false, resume_after: None };
}

/// The entry after which a scan goes on; its row may be gone by then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The entry's full sort key.
    pub key: Vec<u8>,
    /// Its location.
    pub location: u64,
}

/// An ordered index.
pub struct OrderedIndex {
    /// `None` while empty, so that the indexes of empty tables cost nothing.
    root: Option<Node>,
    /// How many entries there are.
    len: usize,
    /// How many entries have come, those that replaced another included.
    arrivals: u64,
    /// The locations of the last ones, a ring.
    recent: Vec<u64>,
    /// How many nodes there are, for [`OrderedIndex::memory_bytes`].
    tally: Tally,
}

impl Default for OrderedIndex {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for OrderedIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrderedIndex")
            .field("len", &self.len)
            .field("tally", &self.tally)
            .finish_non_exhaustive()
    }
}

/// How many entries [`OrderedIndex::distinct_estimate`] looks at.
const DISTINCT_SAMPLES: usize = 32;

impl OrderedIndex {
    /// An empty index.
    pub fn new() -> Self {
        Self { root: None, len: 0, arrivals: 0, recent: Vec::new(), tally: Tally::default() }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// How many entries have come so far.
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// The locations of the entries that came since there were so many, the newest last; `None`: they are too many to
    /// be remembered. Some may have left again.
    pub fn arrived_since(&self, arrivals: u64) -> Option<impl Iterator<Item = u64> + '_> {
        let count = usize::try_from(self.arrivals.checked_sub(arrivals)?).ok()?;
        let place = |number: u64| usize::try_from(number % RECENT_ARRIVALS_MAX as u64).unwrap_or(0);
        let recent = (arrivals..self.arrivals).map(move |number| self.recent[place(number)]);
        (count <= RECENT_ARRIVALS_MAX).then_some(recent)
    }

    fn arrived(&mut self, location: u64) {
        let place = usize::try_from(self.arrivals % RECENT_ARRIVALS_MAX as u64).unwrap_or(0);
        match self.recent.get_mut(place) {
            Some(oldest) => *oldest = location,
            None => self.recent.push(location),
        }
        self.arrivals += 1;
    }

    /// Whether this very entry is here.
    pub fn contains<K: SortKeys + ?Sized>(&self, key: &[u8], location: u64, keys: &K) -> bool {
        let Some(before) = location.checked_sub(1) else { return false };
        let after = Resume { key: key.to_vec(), location: before };
        let mut found = Vec::with_capacity(1);
        self.locations(&Range { resume_after: Some(&after), ..Range::ALL }, keys, 1, &mut found);
        found == [location]
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The heap that the index takes.
    pub fn memory_bytes(&self) -> usize {
        self.tally.bytes()
    }

    /// Removes every entry.
    pub fn clear(&mut self) {
        *self = Self { arrivals: self.arrivals, recent: std::mem::take(&mut self.recent), ..Self::new() };
    }

    /// Adds a row, which is readable from now on; false where this very entry is here already.
    pub fn insert<K: SortKeys + ?Sized>(&mut self, key: &[u8], location: u64, keys: &K) -> bool {
        self.arrived(location);
        let mut target = Target::new(key, Place::ThroughEntry(location), keys);
        let inserted = loop {
            let Some(root) = &mut self.root else {
                self.root = Some(Node::single(key, location, &mut self.tally));
                self.len = 1;
                return true;
            };
            if let Some(inserted) = root.insert(location, &mut target, Edges::ROOT, &mut self.tally) {
                break inserted;
            }
            // A leaf makes room among its neighbours, and these have a parent.
            self.root = self.root.take().map(|leaf| Node::above([leaf], target.rows(), &mut self.tally));
        };
        if let Some(right) = inserted.split
            && let Some(left) = self.root.take()
        {
            self.root = Some(Node::above([left, right], target.rows(), &mut self.tally));
        }
        self.len += usize::from(inserted.added);
        inserted.added
    }

    /// Removes a row; false where it is not here.
    pub fn remove<K: SortKeys + ?Sized>(&mut self, key: &[u8], location: u64, keys: &K) -> bool {
        let Some(root) = &mut self.root else {
            return false;
        };
        let mut target = Target::new(key, Place::ThroughEntry(location), keys);
        if !root.remove(&mut target, &mut self.tally) {
            return false;
        }
        self.len -= 1;
        self.root = self.root.take().and_then(|root| root.lowered(&mut self.tally));
        true
    }

    /// Asks memory for the leaf of an entry.
    fn prefetch<K: SortKeys + ?Sized>(&self, key: &[u8], location: u64, keys: &K) {
        if let Some(root) = &self.root {
            root.prefetch_leaf(&mut Target::new(key, Place::ThroughEntry(location), keys));
        }
    }

    /// Removes entries, those of a leaf at once.
    fn remove_ordered<K: SortKeys + ?Sized>(&mut self, entries: Entries<'_>, keys: &K) {
        let Some(root) = self.root.as_mut().filter(|_| entries.len() > 0) else { return };
        let mut target = Target::new(&[], Place::ThroughEntry(0), keys);
        self.len -= root.remove_ordered(entries, &mut target, &mut self.tally);
        self.root = self.root.take().and_then(|root| root.lowered(&mut self.tally));
    }

    /// Tells that a row with this key has moved; false where it was not here, and nothing changes.
    ///
    /// Both locations must be readable during the call.
    pub fn replace_location<K: SortKeys + ?Sized>(
        &mut self,
        key: &[u8],
        old: u64,
        new: u64,
        keys: &K,
    ) -> bool {
        let Some(root) = &mut self.root else {
            return false;
        };
        let mut target = Target::new(key, Place::ThroughEntry(old), keys);
        match root.replace_location(&mut target, new) {
            Replaced::Done => {
                self.arrived(new);
                true
            }
            Replaced::Missing => false,
            Replaced::Elsewhere => {
                self.remove(key, old, keys);
                self.insert(key, new, keys);
                true
            }
        }
    }

    /// Appends the locations of up to `limit` rows whose key is exactly this, ascending.
    pub fn equal<K: SortKeys + ?Sized>(&self, key: &[u8], keys: &K, limit: usize, out: &mut Vec<u64>) {
        let end = prefix_end(key);
        let upper = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let range = Range { lower: Bound::Included(key), upper, ..Range::ALL };
        self.locations(&range, keys, limit, out);
    }

    /// The smallest location whose key is exactly this, if there is one: the question of a unique index.
    pub fn first_equal<K: SortKeys + ?Sized>(&self, key: &[u8], keys: &K) -> Option<u64> {
        let mut found = Vec::with_capacity(1);
        self.equal(key, keys, 1, &mut found);
        found.pop()
    }

    /// Appends the locations of up to `limit` entries in order. `Some` where the limit was reached and more
    /// may follow.
    pub fn range<K: SortKeys + ?Sized>(
        &self,
        range: &Range<'_>,
        keys: &K,
        limit: usize,
        out: &mut Vec<u64>,
    ) -> Option<Resume> {
        let begin = out.len();
        self.locations(range, keys, limit, out);
        let last = out[begin..].last().copied().filter(|_| out.len() - begin == limit)?;
        let mut key = Vec::new();
        keys.sort_key(last, &mut key);
        Some(Resume { key, location: last })
    }

    /// Appends the locations of up to `limit` entries in order.
    pub fn locations<K: SortKeys + ?Sized>(
        &self,
        range: &Range<'_>,
        keys: &K,
        limit: usize,
        out: &mut Vec<u64>,
    ) {
        let Some(root) = &self.root else {
            return;
        };
        let (mut start, mut end) = Target::edges(range, keys);
        let full = out.len().saturating_add(limit);
        root.collect(start.as_mut(), end.as_mut(), range.reverse, full, out);
    }

    /// How many entries lie in a range, by arithmetic on positions: exact, and two descents of the tree.
    pub fn estimate<K: SortKeys + ?Sized>(&self, range: &Range<'_>, keys: &K) -> usize {
        let Some(root) = &self.root else {
            return 0;
        };
        let (start, end) = Target::edges(range, keys);
        let start = start.map_or(0, |mut start| root.rank(&mut start));
        let end = end.map_or(self.len, |mut end| root.rank(&mut end));
        end.saturating_sub(start)
    }

    /// About how many different values the first 1, 2, ... `columns` columns have together.
    ///
    /// Looks at a few entries spread evenly and how many rows share each one's columns: an entry that shares
    /// its value with r rows stands for 1/r of a distinct value. Exact where all values are equally
    /// frequent. The planner should keep the answer for a while.
    pub fn distinct_estimate<K: SortKeys + ?Sized>(&self, keys: &K, columns: usize) -> Vec<u64> {
        let samples = self.len.min(DISTINCT_SAMPLES);
        let mut shares = vec![0.0; columns];
        let mut key = Vec::new();
        for sample in 0..samples {
            let Some(location) = self.location_at((2 * sample + 1) * self.len / (2 * samples)) else {
                continue;
            };
            key.clear();
            keys.sort_key(location, &mut key);
            for (share, end) in shares.iter_mut().zip(column_ends(&key)) {
                *share += 1.0 / self.beginning_with(&key[..end], keys).max(1) as f64;
            }
        }
        let scale = self.len as f64 / samples.max(1) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to len")]
        let counts = shares.into_iter().map(|share: f64| (share * scale).round() as u64);
        counts.collect()
    }

    /// How many keys begin with these bytes.
    fn beginning_with<K: SortKeys + ?Sized>(&self, prefix: &[u8], keys: &K) -> usize {
        let end = prefix_end(prefix);
        let upper = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.estimate(&Range { lower: Bound::Included(prefix), upper, ..Range::ALL }, keys)
    }

    /// The location of the entry with so many before it.
    pub fn location_at(&self, rank: usize) -> Option<u64> {
        self.root.as_ref()?.location_at(rank)
    }
}
