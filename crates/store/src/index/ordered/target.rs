//! Positions in the order: what a search of the tree compares entries with.

use std::cmp::Ordering;
use std::ops::{Bound, Range};

use super::SortKeys;

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

/// Sorted entries, each a head of its key and a location.
pub(super) trait Sorted {
    /// How many heads are below one.
    fn below(&self, head: u64) -> usize;
    /// How many heads are not above one, of which those before `below` are below it and no other is.
    fn through(&self, head: u64, below: usize) -> usize;
    /// The location of an entry.
    fn location(&self, at: usize) -> u64;
    /// How many entries are before the first of these, which have equal keys, whose location is not below one.
    fn below_location(&self, ties: Range<usize>, location: u64) -> usize;
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

    /// An empty buffer, to be given back.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// The key of a row, in a buffer to be given back.
    pub(super) fn take(&mut self, location: u64) -> Vec<u8> {
        let mut key = self.buffer();
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

    /// Makes it the position behind another entry.
    pub(super) fn aim(&mut self, key: &'a [u8], location: u64) {
        (self.key, self.place) = (key, Place::ThroughEntry(location));
    }

    /// The positions where a range begins and ends; `None` is the end of the tree.
    pub(super) fn edges(range: &super::Range<'a>, keys: &'a K) -> (Option<Self>, Option<Self>) {
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

    /// How many of these entries lie before the position. `head` is of the target's key what theirs are of their keys;
    /// `exact`: equal heads are then equal keys.
    pub(super) fn position(&mut self, head: u64, exact: bool, entries: &impl Sorted) -> usize {
        let below = entries.below(head);
        if exact && self.place == Place::BeforeKey {
            return below;
        }
        let ties = below..entries.through(head, below);
        if ties.is_empty() {
            return below;
        }
        match self.place {
            // Equal keys stand in the order of their locations.
            Place::BeforeEntry(own) if exact => entries.below_location(ties, own),
            Place::ThroughEntry(own) if exact => {
                own.checked_add(1).map_or(ties.end, |above| entries.below_location(ties, above))
            }
            _ => self.among_ties(ties, exact, entries),
        }
    }

    /// Halves the range until it is known where the position is in it; each step may read a row.
    fn among_ties(&mut self, mut ties: Range<usize>, exact: bool, entries: &impl Sorted) -> usize {
        while !ties.is_empty() {
            let middle = ties.start + ties.len() / 2;
            if self.tie_is_before(exact, entries.location(middle)) {
                ties.start = middle + 1;
            } else {
                ties.end = middle;
            }
        }
        ties.start
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

/// Bytes of a cache line.
const LINE: usize = 64;

/// How many of these sorted words, as they stand in memory, are below a bound.
///
/// Counts the lines that begin below it, then within the last of them. A binary search would wait for one
/// line after the other when the node is not in the processor's cache, and guess wrong every other time; these loads
/// do not wait for each other.
#[inline]
pub(super) fn below<W: Copy, T: Ord + Copy>(words: &[W], bound: T, read: impl Fn(W) -> T) -> usize {
    let in_line = LINE / size_of::<W>();
    let lines = words.iter().step_by(in_line).filter(|word| read(**word) < bound).count();
    let Some(last) = lines.checked_sub(1) else {
        return 0;
    };
    let begin = last * in_line;
    let line = words[begin..].iter().take(in_line);
    // Counted in a byte, which holds as many as a line has, so that vectors of narrow words need not be widened.
    begin + usize::from(line.fold(0_u8, |count, word| count.wrapping_add(u8::from(read(*word) < bound))))
}

/// How many bytes two keys share.
pub(super) fn common_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
