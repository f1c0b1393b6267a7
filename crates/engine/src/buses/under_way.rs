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
