//! Lists of rows that are to be removed together.

use crate::row::RowBuf;

/// Rows of one table that are to be removed together, each as it was read.
#[derive(Debug, Default)]
pub struct Removals {
    /// The keys, one behind the other.
    keys: Vec<u8>,
    /// Where each key ends, and the CAS value of its row.
    rows: Vec<(usize, u64)>,
}

impl Removals {
    /// Adds a row.
    #[inline]
    pub fn push(&mut self, row: &RowBuf) {
        self.add(row.key(), row.cas());
    }

    fn add(&mut self, key: &[u8], cas: u64) {
        self.keys.extend_from_slice(key);
        self.rows.push((self.keys.len(), cas));
    }

    /// Bytes of all keys.
    pub(super) fn key_bytes(&self) -> usize {
        self.keys.len()
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.rows.clear();
    }

    /// The keys, and the CAS values of their rows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        let mut begin = 0;
        self.rows.iter().map(move |&(end, cas)| {
            let key = &self.keys[begin..end];
            begin = end;
            (key, cas)
        })
    }

    /// Leaves of each row that was added more than once only what was read last.
    pub fn drop_twins(&mut self) {
        let all: Vec<(&[u8], u64)> = self.iter().collect();
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_unstable_by_key(|&at| (all[at].0, at));
        if order.windows(2).all(|pair| all[pair[0]].0 != all[pair[1]].0) {
            return;
        }
        let mut left = Self::default();
        for twins in order.chunk_by(|&a, &b| all[a].0 == all[b].0) {
            if let Some(&(key, cas)) = twins.last().map(|&last| &all[last]) {
                left.add(key, cas);
            }
        }
        *self = left;
    }

    /// The same without the rows at these positions, and with those read again that `read` finds.
    pub fn judged_anew<E>(
        &self,
        lost: &[usize],
        mut read: impl FnMut(&[u8]) -> Result<Option<u64>, E>,
    ) -> Result<Self, E> {
        let mut left = Self::default();
        let lost: std::collections::HashSet<usize> = lost.iter().copied().collect();
        for (at, (key, cas)) in self.iter().enumerate() {
            let cas = if lost.contains(&at) { read(key)? } else { Some(cas) };
            if let Some(cas) = cas {
                left.add(key, cas);
            }
        }
        Ok(left)
    }
}

#[cfg(test)]
mod tests {
    use super::Removals;

    #[test]
    fn what_was_read_last_stands_for_a_row() {
        let mut list = Removals::default();
        for (key, cas) in [("b", 1), ("a", 2), ("b", 3), ("c", 4), ("a", 5)] {
            list.add(key.as_bytes(), cas);
        }
        list.drop_twins();
        let left: Vec<(&[u8], u64)> = list.iter().collect();
        assert_eq!(left, [(&b"a"[..], 5), (b"b", 3), (b"c", 4)]);
        assert_eq!(list.key_bytes(), 3);
    }
}
