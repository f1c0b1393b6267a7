//! Positions in the order: what a search of the tree compares entries with.

use std::cmp::Ordering;
use std::ops::Bound;

use super::{Range, SortKeys};
use crate::codec::prefix8;

/// Which entries lie before a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Those with smaller keys.
    BeforeKey,
    /// Those with smaller keys and this one.
    AfterKey,
    /// Those before the entry of this key and location.
    BeforeEntry(u64),
    /// Those before that entry, and itself.
    ThroughEntry(u64),
}

/// A position, and the means to compare entries with it.
pub(super) struct Target<'a, K: SortKeys + ?Sized> {
    key: &'a [u8],
    prefix: u64,
    /// Whether the prefix is the whole key.
    exact: bool,
    place: Place,
    keys: &'a K,
    /// Keys of rows are read into it; it allocates on the first tie only.
    scratch: Vec<u8>,
}

impl<'a, K: SortKeys + ?Sized> Target<'a, K> {
    pub(super) fn new(key: &'a [u8], place: Place, keys: &'a K) -> Self {
        let prefix = prefix8(key);
        Self { key, prefix: prefix.bytes, exact: prefix.exact, place, keys, scratch: Vec::new() }
    }

    /// The positions where a range begins and ends; `None` is the end of the tree.
    pub(super) fn edges(range: &Range<'a>, keys: &'a K) -> (Option<Self>, Option<Self>) {
        let at = |key, place| Some(Target::new(key, place, keys));
        let lower = match range.lower {
            Bound::Included(key) => at(key, Place::BeforeKey),
            Bound::Excluded(key) => at(key, Place::AfterKey),
            Bound::Unbounded => None,
        };
        let upper = match range.upper {
            Bound::Included(key) => at(key, Place::AfterKey),
            Bound::Excluded(key) => at(key, Place::BeforeKey),
            Bound::Unbounded => None,
        };
        // A scan resumes inside its range, so the entry it ended at replaces one edge.
        match range.resume_after {
            None => (lower, upper),
            Some(last) if range.reverse => (lower, at(&last.key, Place::BeforeEntry(last.location))),
            Some(last) => (at(&last.key, Place::ThroughEntry(last.location)), upper),
        }
    }

    /// The first eight bytes of the key.
    pub(super) fn prefix(&self) -> u64 {
        self.prefix
    }

    /// Whether an entry is the one that the place names.
    pub(super) fn is(&self, prefix: u64, location: u64) -> bool {
        prefix == self.prefix
            && matches!(self.place, Place::BeforeEntry(own) | Place::ThroughEntry(own) if own == location)
    }

    /// Whether the first eight bytes decide every comparison with this key.
    pub(super) fn is_exact(&self) -> bool {
        self.exact
    }

    /// How many of these sorted entries lie before the position.
    pub(super) fn position(&mut self, prefixes: &[u64], locations: &[u64]) -> usize {
        let prefix = self.prefix;
        let below = prefixes.partition_point(|&other| other < prefix);
        if prefixes.get(below) != Some(&prefix) {
            return below;
        }
        if self.exact && self.place == Place::BeforeKey {
            return below;
        }
        let ties = prefixes[below..].partition_point(|&other| other == prefix);
        let ties = &locations[below..below + ties];
        below + ties.partition_point(|&location| self.tie_is_before(location))
    }

    /// Whether an entry whose first eight bytes are the target's lies before the position.
    fn tie_is_before(&mut self, location: u64) -> bool {
        match self.place {
            // A bound of up to eight bytes: an entry that ties begins with it, so it is not smaller. It
            // cannot end before the bound does, for no key is the beginning of another, and the bound is the
            // beginning of a key or ends in a byte above zero.
            Place::BeforeKey if self.exact => false,
            Place::BeforeKey => self.compare_key(location).is_lt(),
            Place::AfterKey => self.compare_key(location).is_le(),
            Place::BeforeEntry(own) => self.compare_entry(location, own).is_lt(),
            Place::ThroughEntry(own) => self.compare_entry(location, own).is_le(),
        }
    }

    fn compare_entry(&mut self, location: u64, own: u64) -> Ordering {
        if self.exact || location == own {
            return location.cmp(&own);
        }
        self.compare_key(location).then(location.cmp(&own))
    }

    /// Compares a row's key with the target's.
    fn compare_key(&mut self, location: u64) -> Ordering {
        self.scratch.clear();
        self.keys.sort_key(location, &mut self.scratch);
        self.scratch.as_slice().cmp(self.key)
    }
}
