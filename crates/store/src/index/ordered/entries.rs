//! Entries that leave a tree together.

use super::target::Target;
use super::{OrderedIndex, SortKeys};

/// Entries whose leaves are asked for ahead of the one that leaves.
const AHEAD: usize = 8;

/// Keys and locations of entries.
#[derive(Debug, Default)]
pub struct EntryList {
    /// The keys, one behind the other.
    keys: Vec<u8>,
    list: Vec<Listed>,
}

/// One entry.
#[derive(Clone, Copy, Debug)]
struct Listed {
    location: u64,
    /// Where its key begins and ends.
    key: (usize, usize),
}

/// Some entries of a list, one behind the other in the order of the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entries<'l> {
    keys: &'l [u8],
    list: &'l [Listed],
}

impl EntryList {
    /// Adds an entry.
    pub fn push(&mut self, key: &[u8], location: u64) {
        let begin = self.keys.len();
        self.keys.extend_from_slice(key);
        self.list.push(Listed { location, key: (begin, self.keys.len()) });
    }

    /// Memory that it takes.
    pub fn bytes(&self) -> usize {
        self.keys.capacity() + self.list.capacity() * size_of::<Listed>()
    }

    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.list.clear();
    }

    fn key(&self, entry: &Listed) -> &[u8] {
        &self.keys[entry.key.0..entry.key.1]
    }

    /// Whether the entries are in the order of the tree, each once.
    fn is_in_order(&self) -> bool {
        let place = |entry| (self.key(entry), entry.location);
        self.list.is_sorted_by(|a, b| place(a) < place(b))
    }
}

impl OrderedIndex {
    /// Removes entries. Ones that are not here are passed by. Those that come in the order of the tree leave each leaf
    /// together; the others leave one by one, for to bring them in order takes longer than it saves.
    pub fn remove_listed<K: SortKeys + ?Sized>(&mut self, entries: &EntryList, keys: &K) {
        if entries.is_in_order() {
            return self.remove_ordered(Entries { keys: &entries.keys, list: &entries.list }, keys);
        }
        for (at, entry) in entries.list.iter().enumerate() {
            if let Some(next) = entries.list.get(at + AHEAD) {
                self.prefetch(entries.key(next), next.location, keys);
            }
            self.remove(entries.key(entry), entry.location, keys);
        }
    }
}

impl<'l> Entries<'l> {
    pub(super) fn len(self) -> usize {
        self.list.len()
    }

    pub(super) fn location(self, at: usize) -> u64 {
        self.list[at].location
    }

    /// Points a target at one of them.
    pub(super) fn aim<K: SortKeys + ?Sized>(self, at: usize, target: &mut Target<'l, K>) {
        let Listed { location, key: (begin, end) } = self.list[at];
        target.aim(&self.keys[begin..end], location);
    }

    /// Those of a range.
    pub(super) fn part(self, range: std::ops::Range<usize>) -> Self {
        Self { list: &self.list[range], ..self }
    }
}
