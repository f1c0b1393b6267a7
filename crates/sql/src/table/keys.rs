//! Keys that are looked up one after the other.

use store::definition::ColumnKind;
use store::value::ValueRef;
use store::{Store, Table, Use};

/// Keys whose cache lines are asked for before the first is looked up: what a core can wait for at once.
pub(super) const KEYS_AHEAD: usize = 16;

/// Encoded keys, one behind the other, and how many of them were looked up.
#[derive(Debug, Default)]
pub(crate) struct KeyList {
    bytes: Vec<u8>,
    /// Where each begins and ends.
    spans: Vec<(usize, usize)>,
    next: usize,
}

impl KeyList {
    /// Forgets all keys.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
        self.next = 0;
    }

    /// Adds the key of these values. False: values that cannot be a key are no row's.
    pub(crate) fn encode(&mut self, table: &Table, values: &[ValueRef<'_>]) -> bool {
        let begin = self.bytes.len();
        let encoded = table.keys().encode(values, &mut self.bytes).is_ok();
        if encoded {
            self.spans.push((begin, self.bytes.len()));
        } else {
            self.bytes.truncate(begin);
        }
        encoded
    }

    /// Adds an encoded key.
    pub(crate) fn push(&mut self, key: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.spans.push((begin, self.bytes.len()));
    }

    /// Each key once, for a row must come once.
    pub(crate) fn sort(&mut self) {
        if self.spans.len() > 1 {
            let bytes = &self.bytes;
            let key = |span: &(usize, usize)| &bytes[span.0..span.1];
            self.spans.sort_unstable_by(|a, b| key(a).cmp(key(b)));
            self.spans.dedup_by(|a, b| key(a) == key(b));
        }
    }

    /// The next key.
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        let &(begin, end) = self.spans.get(self.next)?;
        self.next += 1;
        self.bytes.get(begin..end)
    }

    /// Asks memory for the first rows.
    pub(crate) fn prefetch(&self, store: &Store, table: &Table) {
        if self.spans.len() < 2 {
            return;
        }
        let first = self.spans.iter().take(KEYS_AHEAD);
        let buckets = first.map(|&(begin, end)| store.prefetch(table, &self.bytes[begin..end]));
        let mut asked = [None; KEYS_AHEAD];
        for (place, bucket) in asked.iter_mut().zip(buckets) {
            *place = Some(bucket);
        }
        for bucket in asked.into_iter().flatten() {
            store.prefetch_row(bucket, Use::Read);
        }
    }
}

/// Whether a value is stored in a column of this kind just as it is, so that a look-up needs no conversion.
pub(crate) fn is_plain(kind: ColumnKind, value: ValueRef<'_>) -> bool {
    matches!(
        (kind, value),
        (ColumnKind::Text, ValueRef::Text(_))
            | (ColumnKind::Integer, ValueRef::Integer(_))
            | (ColumnKind::Blob, ValueRef::Blob(_))
    )
}
