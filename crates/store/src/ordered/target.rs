//! Positions in the order: what a search of the tree compares entries with.

use std::cmp::Ordering;
use std::ops::Bound;

use super::{Range, SortKeys};
use crate::codec::Prefix;

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

/// Reads keys of rows into buffers that it keeps; it allocates on the first read only.
pub(super) struct RowReader<'a, K: SortKeys + ?Sized> {
    keys: &'a K,
    spare: Vec<Vec<u8>>,
}

impl<'a, K: SortKeys + ?Sized> RowReader<'a, K> {
    pub(super) fn new(keys: &'a K) -> Self {
        Self { keys, spare: Vec::new() }
    }

    /// The key of a row, in a buffer to be given back.
    pub(super) fn take(&mut self, location: u64) -> Vec<u8> {
        let mut key = self.spare.pop().unwrap_or_default();
        key.clear();
        self.keys.sort_key(location, &mut key);
        key
    }

    pub(super) fn give_back(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }
}

/// A position, and the means to compare entries with it.
pub(super) struct Target<'a, K: SortKeys + ?Sized> {
    key: &'a [u8],
    place: Place,
    rows: RowReader<'a, K>,
}

impl<'a, K: SortKeys + ?Sized> Target<'a, K> {
    pub(super) fn new(key: &'a [u8], place: Place, keys: &'a K) -> Self {
        Self { key, place, rows: RowReader::new(keys) }
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

    /// The whole key.
    pub(super) fn key(&self) -> &'a [u8] {
        self.key
    }

    pub(super) fn rows(&mut self) -> &mut RowReader<'a, K> {
        &mut self.rows
    }

    /// Whether the place is this row's entry.
    pub(super) fn names(&self, location: u64) -> bool {
        matches!(self.place, Place::BeforeEntry(own) | Place::ThroughEntry(own) if own == location)
    }

    /// Asks something of the position before another entry with the same key.
    pub(super) fn at_entry<T>(&mut self, location: u64, ask: impl FnOnce(&mut Self) -> T) -> T {
        let place = std::mem::replace(&mut self.place, Place::BeforeEntry(location));
        let answer = ask(self);
        self.place = place;
        answer
    }

    /// How many of these sorted entries lie before the position; `head` is of the target's key what the heads
    /// are of theirs.
    pub(super) fn position(&mut self, head: Prefix, heads: &[u64], locations: &[u64]) -> usize {
        let below = count_below(heads, head.bytes);
        if heads.get(below) != Some(&head.bytes) || (head.exact && self.place == Place::BeforeKey) {
            return below;
        }
        let ties = &locations[below..count_through(heads, head.bytes)];
        below
            + match self.place {
                // Equal keys stand in the order of their locations.
                Place::BeforeEntry(own) if head.exact => count_below(ties, own),
                Place::ThroughEntry(own) if head.exact => count_through(ties, own),
                _ => ties.partition_point(|&location| self.tie_is_before(head.exact, location)),
            }
    }

    /// Whether an entry with the same head lies before the position.
    fn tie_is_before(&mut self, exact: bool, location: u64) -> bool {
        match self.place {
            // The bound ends within the head, so an entry that ties begins with it and is not smaller. It
            // cannot end before the bound does, for no key is the beginning of another, and the bound is the
            // beginning of a key or ends in a byte above zero.
            Place::BeforeKey if exact => false,
            Place::BeforeKey => self.compare_key(location).is_lt(),
            Place::AfterKey => self.compare_key(location).is_le(),
            Place::BeforeEntry(own) => self.compare_entry(exact, location, own).is_lt(),
            Place::ThroughEntry(own) => self.compare_entry(exact, location, own).is_le(),
        }
    }

    fn compare_entry(&mut self, exact: bool, location: u64, own: u64) -> Ordering {
        if exact || location == own {
            return location.cmp(&own);
        }
        self.compare_key(location).then(location.cmp(&own))
    }

    /// Compares a row's key with the target's.
    fn compare_key(&mut self, location: u64) -> Ordering {
        let key = self.rows.take(location);
        let order = key.as_slice().cmp(self.key);
        self.rows.give_back(key);
        order
    }
}

/// Heads or locations in a cache line.
const LINE: usize = 8;

/// How many of these sorted words are below a bound.
///
/// Counts the lines that begin below it, then within the last of them. A binary search would wait for one
/// line after the other when the node is not in the processor's cache, and guess wrong every other time; these loads
/// do not wait for each other.
fn count_below(words: &[u64], bound: u64) -> usize {
    let lines = words.iter().step_by(LINE).filter(|&&word| word < bound).count();
    let Some(last) = lines.checked_sub(1) else {
        return 0;
    };
    let line = words[last * LINE..].iter().take(LINE);
    last * LINE + line.filter(|&&word| word < bound).count()
}

/// How many of these sorted words are not above a bound.
fn count_through(words: &[u64], bound: u64) -> usize {
    bound.checked_add(1).map_or(words.len(), |above| count_below(words, above))
}
