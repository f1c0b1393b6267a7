//! `stats detail`: how often keys with the same beginning are fetched, stored and removed.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::limits::PREFIXES_MAX;
use crate::watch::Seen;

/// memcached's delimiter, where nobody chooses another.
const DELIMITER: u8 = b':';

/// Counts by prefix. Tables have counts of their own; this is for keys that belong to none.
#[derive(Debug)]
pub(crate) struct Prefixes {
    delimiter: u8,
    /// Taken for each command while it is switched on, as memcached does.
    counts: Mutex<HashMap<Box<[u8]>, Counts>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    gets: u64,
    hits: u64,
    sets: u64,
    deletes: u64,
}

impl Prefixes {
    pub(crate) fn new(delimiter: Option<u8>) -> Self {
        Self { delimiter: delimiter.unwrap_or(DELIMITER), counts: Mutex::default() }
    }

    /// What ends a prefix.
    pub(crate) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Counts a command. A key without the delimiter has no prefix; of prefixes beyond the limit none is counted that
    /// is not known yet.
    pub(crate) fn count(&self, key: &[u8], seen: &Seen<'_>) {
        let Some(end) = key.iter().position(|byte| *byte == self.delimiter) else { return };
        let prefix = &key[..end];
        let mut counts = self.counts.lock();
        if !counts.contains_key(prefix) {
            if counts.len() >= PREFIXES_MAX {
                return;
            }
            counts.insert(prefix.into(), Counts::default());
        }
        let Some(count) = counts.get_mut(prefix) else { return };
        match seen {
            Seen::Fetched(found) => {
                count.gets += 1;
                count.hits += u64::from(found.is_some());
            }
            Seen::Stored { .. } => count.sets += 1,
            Seen::Deleted { .. } => count.deletes += 1,
        }
    }

    /// Begins again at nothing.
    pub(crate) fn clear(&self) {
        self.counts.lock().clear();
    }

    /// Gives each prefix with its line's end, in the order of prefixes.
    pub(crate) fn dump(&self, give: &mut dyn FnMut(&[u8], [u64; 4])) {
        let mut found: Vec<(Box<[u8]>, Counts)> =
            self.counts.lock().iter().map(|(prefix, counts)| (prefix.clone(), *counts)).collect();
        found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (prefix, Counts { gets, hits, sets, deletes }) in found {
            give(&prefix, [gets, hits, sets, deletes]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_bounded() {
        let prefixes = Prefixes::new(None);
        for number in 0..PREFIXES_MAX + 10 {
            prefixes.count(format!("p{number}:k").as_bytes(), &Seen::Fetched(None));
        }
        prefixes.count(b"p0:other", &Seen::Deleted { command: "delete", bytes: None });
        prefixes.count(b"without", &Seen::Fetched(None));
        let (mut count, mut first) = (0, [0; 4]);
        prefixes.dump(&mut |prefix, counts| {
            count += 1;
            if prefix == b"p0" {
                first = counts;
            }
        });
        assert_eq!((count, first), (PREFIXES_MAX, [1, 0, 0, 1]));
    }
}
