//! Keys that were written here, and of which the stream has not brought that back yet. What others have told of them
//! meanwhile lies before it in the stream, so it is of no account here.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use super::operation::Operation;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    /// Of each key, how many writes are under way.
    keys: HashMap<Arc<str>, HashMap<Box<[u8]>, u32>>,
    /// Of each table, what is under way of which nobody can say which keys it changes.
    broad: HashMap<Arc<str>, u32>,
}

impl UnderWay {
    pub(super) fn of<'o>(operations: impl Iterator<Item = &'o Operation>) -> Self {
        let mut own = Self::default();
        operations.for_each(|operation| own.add(operation));
        own
    }

    pub(super) fn add(&mut self, operation: &Operation) {
        if let Some(key) = operation.decided_key() {
            let keys = self.keys.entry(Arc::clone(&operation.table().name)).or_default();
            *keys.entry(key.into()).or_default() += 1;
        }
        self.add_broad(operation);
    }

    /// The same, unless it is about one key.
    pub(super) fn add_broad(&mut self, operation: &Operation) {
        if operation.is_broad() {
            *self.broad.entry(Arc::clone(&operation.table().name)).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, operation: &Operation) {
        let table = &operation.table().name;
        if operation.is_broad() {
            take_one(&mut self.broad, table);
        }
        if let Some(key) = operation.decided_key()
            && let Some(keys) = self.keys.get_mut(table)
        {
            take_one(keys, key);
            if keys.is_empty() {
                self.keys.remove(table);
            }
        }
    }

    /// Whether a key is among them; none: any.
    pub(super) fn has(&self, table: &str, key: Option<&[u8]>) -> bool {
        self.keys.get(table).is_some_and(|keys| key.is_none_or(|key| keys.contains_key(key)))
    }

    /// Whether something is of which nobody can say which keys of the table it changes.
    pub(super) fn has_broad(&self, table: &str) -> bool {
        self.broad.contains_key(table)
    }
}

/// Counts one less of something, which is forgotten when none is left.
fn take_one<K, Q>(counts: &mut HashMap<K, u32>, of: &Q)
where
    K: Borrow<Q> + Eq + Hash,
    Q: Eq + Hash + ?Sized,
{
    if let Some(count) = counts.get_mut(of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(of);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use store::{Ends, Replica};

    use super::super::operation::{KeyChange, TableName};
    use super::super::outbox::Outbox;
    use super::super::receipt::Receipt;
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

    #[test]
    fn what_changes_any_key_is_under_way_until_it_is_back() {
        let (outbox, whole) = (Outbox::default(), Operation::Whole { table: table() });
        outbox.push_row(row("a", 1), 0);
        assert!(!outbox.changes_any_key("sess"));
        outbox.push_row(whole.clone(), 0);
        outbox.push(vec![whole.clone()], None, 0);
        assert!(outbox.changes_any_key("sess") && !outbox.changes_any_key("page"));
        let parcel = outbox.take(1_000, 0).unwrap();
        outbox.note_delivered();
        assert!(outbox.changes_any_key("sess"), "it is not back");
        for operation in &parcel {
            outbox.note_back(operation);
        }
        assert!(!outbox.changes_any_key("sess"));
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

    /// Who waits for a row that was withdrawn must not hear that others have it, and who waits beside it must.
    #[test]
    fn who_waits_for_a_withdrawn_row_hears_so() {
        let outbox = Outbox::of("bus");
        let wait_since = |since_ns: u64, now_ns: u64| {
            let receipt = Arc::new(Receipt::new(1));
            outbox.push_behind(Vec::new(), Some(Arc::clone(&receipt)), since_ns, now_ns);
            receipt
        };
        outbox.push_row(row("late", 1), 0);
        outbox.push_row(row("long", 1), 5);
        // A statement that takes long: its first row is withdrawn before it ends.
        let soon = ACKNOWLEDGE_NS;
        outbox.push_row(row("fresh", 1), soon);
        let fresh = wait_since(soon, soon);
        let parcel = outbox.take(10_000, soon + 5).unwrap();
        let withdrawn = |key| change(key, KeyChange::Withdraw);
        assert_eq!(parcel, [withdrawn("late"), withdrawn("long"), row("fresh", 1)]);
        assert!(!outbox.withdraws(soon + 6), "nothing else is late");
        outbox.push_row(row("end", 1), soon + 7);
        let long = wait_since(5, soon + 8);
        outbox.note_delivered();
        assert!(fresh.is_over() && fresh.result().is_ok() && !long.is_over());
        assert_eq!(outbox.take(10_000, soon + 9).unwrap(), [row("end", 1)]);
        // The next try comes too late for it, too.
        assert!(outbox.withdraws(2 * soon + 7) && !outbox.withdraws(2 * soon + 8));
        outbox.note_delivered();
        assert!(long.result().unwrap_err().message.contains("\"bus\""));
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
