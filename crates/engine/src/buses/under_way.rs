//! Keys that were written here, and of which the stream has not brought that back yet. What others have told of them
//! meanwhile lies before it in the stream, so it is of no account here.

use std::collections::HashMap;
use std::sync::Arc;

use super::operation::Operation;

/// See the module. Of each key, how many writes are under way.
#[derive(Debug, Default)]
pub(super) struct UnderWay(HashMap<Arc<str>, HashMap<Box<[u8]>, u32>>);

impl UnderWay {
    pub(super) fn of<'o>(operations: impl Iterator<Item = &'o Operation>) -> Self {
        let mut own = Self::default();
        operations.for_each(|operation| own.add(operation));
        own
    }

    pub(super) fn add(&mut self, operation: &Operation) {
        if let Some(key) = operation.decided_key() {
            let keys = self.0.entry(Arc::clone(&operation.table().name)).or_default();
            *keys.entry(key.into()).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, operation: &Operation) {
        if let Some(key) = operation.decided_key()
            && let Some(keys) = self.0.get_mut(&operation.table().name)
            && let Some(count) = keys.get_mut(key)
        {
            *count -= 1;
            if *count == 0 {
                keys.remove(key);
            }
            if keys.is_empty() {
                self.0.remove(&operation.table().name);
            }
        }
    }

    /// Whether a key is among them; none: any.
    pub(super) fn has(&self, table: &str, key: Option<&[u8]>) -> bool {
        self.0.get(table).is_some_and(|keys| key.is_none_or(|key| keys.contains_key(key)))
    }
}

#[cfg(test)]
mod tests {
    use store::{Ends, Replica};

    use super::super::operation::{KeyChange, TableName};
    use super::super::outbox::Outbox;
    use super::*;
    use crate::Value;
    use crate::limits::{ACKNOWLEDGE_NS, OUTBOX_ROW_BYTES_MAX, OUTBOX_ROWS_MAX, ROW_BYTES_MAX};

    fn table() -> TableName {
        TableName { name: "sess".into(), likeness: 1 }
    }

    fn row(key: &str, bytes: usize) -> Operation {
        let values = vec![Value::Blob(vec![0; bytes])];
        let row = Replica { values, client_flags: 0, ends: Ends::Table, stale: false };
        Operation::Row { table: table(), key: key.as_bytes().into(), row: Box::new(row) }
    }

    fn change(key: &str, change: KeyChange) -> Operation {
        Operation::Key { table: table(), key: key.as_bytes().into(), change }
    }

    #[test]
    fn a_key_is_under_way_until_the_last_of_it_is_back() {
        let outbox = Outbox::default();
        let is_under_way = |key: &str| outbox.is_under_way("sess", Some(key.as_bytes()));
        outbox.push_row(row("a", 1), 0);
        let first = outbox.take(1_000, 0).unwrap();
        outbox.push_row(change("a", KeyChange::Delete), 0);
        outbox.note_delivered();
        for operation in &first {
            outbox.note_back(operation);
        }
        assert!(is_under_way("a") && !is_under_way("b") && !outbox.is_under_way("page", None));
        let second = outbox.take(1_000, 0).unwrap();
        for operation in &second {
            outbox.note_back(operation);
        }
        assert!(!is_under_way("a") && !outbox.is_under_way("sess", None));
    }

    /// Another cache may have written it since.
    #[test]
    fn a_row_that_waited_too_long_is_withdrawn() {
        let outbox = Outbox::default();
        outbox.push_row(row("a", 1), 0);
        outbox.push_row(row("b", 1), 5);
        let parcel = outbox.take(1_000, ACKNOWLEDGE_NS).unwrap();
        assert_eq!(parcel, [change("a", KeyChange::Withdraw), row("b", 1)]);
        assert!(outbox.is_under_way("sess", Some(b"a")), "until that is back");
    }

    /// Who only waits for what was put in before is nothing that is owed.
    #[test]
    fn who_waits_owes_nothing() {
        let outbox = Outbox::default();
        let receipt = outbox.when_delivered(0);
        assert_eq!(outbox.oldest_ns(), None);
        outbox.push_row(row("a", 1), 7);
        assert_eq!(outbox.oldest_ns(), Some(7));
        assert!(outbox.take(1_000, 7).is_some() && !receipt.is_over());
        outbox.note_delivered();
        assert!(receipt.result().is_ok() && receipt.is_over());
    }

    #[test]
    fn rows_that_come_too_fast_are_told_as_invalidations_and_then_as_the_table() {
        let outbox = Outbox::default();
        let fit = OUTBOX_ROW_BYTES_MAX / 2 / ROW_BYTES_MAX;
        for key in 0..fit + 2 {
            outbox.push_row(row(&key.to_string(), ROW_BYTES_MAX), 0);
        }
        outbox.push_row(row("last", 1), 0);
        let parcel = outbox.take(usize::MAX, 0).unwrap();
        assert_eq!(parcel.last(), Some(&change("last", KeyChange::Delete)));
        outbox.note_delivered();
        outbox.forget_sent();
        for key in 0..=OUTBOX_ROWS_MAX {
            outbox.push_row(change(&key.to_string(), KeyChange::Delete), 0);
        }
        // What comes behind the table is told of it.
        outbox.push_row(row("a", 1), 0);
        assert_eq!(outbox.take(usize::MAX, 0).unwrap(), [Operation::Whole { table: table() }, row("a", 1)]);
        assert!(outbox.is_under_way("sess", Some(b"a")) && !outbox.is_under_way("sess", Some(b"1")));
    }
}
