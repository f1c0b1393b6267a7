//! Entries that leave a tree together.

use super::SortKeys;
use super::target::Target;

/// Bytes of a key that are compared first, as one number.
const LEAD_BYTES: usize = size_of::<u128>();

/// Keys and locations of entries, in the order of the tree once they are [sorted](EntryList::sort).
#[derive(Debug, Default)]
pub struct EntryList {
    /// The keys, one behind the other.
    keys: Vec<u8>,
    list: Vec<Listed>,
}

/// One entry.
#[derive(Clone, Copy, Debug)]
struct Listed {
    /// The beginning of its key, with zeros behind.
    lead: u128,
    location: u64,
    /// Where its key begins and ends.
    key: (usize, usize),
}

/// Some entries of a list, one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'l> {
    keys: &'l [u8],
    list: &'l [Listed],
}

impl EntryList {
    /// Adds an entry.
    pub fn push(&mut self, key: &[u8], location: u64) {
        let begin = self.keys.len();
        self.keys.extend_from_slice(key);
        self.list.push(Listed { lead: lead(key), location, key: (begin, self.keys.len()) });
    }

    /// Bytes that an entry takes here.
    pub fn bytes(key: &[u8]) -> usize {
        size_of::<Listed>() + key.len()
    }

    /// Brings the entries in the order of the tree.
    pub fn sort(&mut self) {
        let Self { keys, list } = self;
        // No key is the beginning of another: short ones that are equal with zeros behind are equal.
        let rest = |entry: &Listed| keys.get(entry.key.0 + LEAD_BYTES..entry.key.1).unwrap_or_default();
        list.sort_unstable_by(|a, b| {
            let by_key = a.lead.cmp(&b.lead).then_with(|| rest(a).cmp(rest(b)));
            by_key.then(a.location.cmp(&b.location))
        });
    }

    /// The entries, so many at a time.
    pub fn chunks(&self, entries: usize) -> impl Iterator<Item = Entries<'_>> {
        self.list.chunks(entries).map(|list| Entries { keys: &self.keys, list })
    }

    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.list.clear();
    }
}

/// The first bytes of a key as a number that orders as they do.
fn lead(key: &[u8]) -> u128 {
    let mut bytes = [0; LEAD_BYTES];
    let len = key.len().min(LEAD_BYTES);
    bytes[..len].copy_from_slice(&key[..len]);
    u128::from_be_bytes(bytes)
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
        let Listed { location, key: (begin, end), .. } = self.list[at];
        target.aim(&self.keys[begin..end], location);
    }

    /// Those of a range.
    pub(super) fn part(self, range: std::ops::Range<usize>) -> Self {
        Self { list: &self.list[range], ..self }
    }
}
