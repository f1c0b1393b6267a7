//! What the stream has said of a table since rows of it were asked for. Rows that were read before count no more where
//! it has said something since.

use std::collections::HashMap;

use engine::Operation;

use crate::limits::{NOTED_BYTES_MAX, NOTED_KEYS_MAX};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// By its key, the last message about a row.
    keys: HashMap<Box<[u8]>, u64>,
    /// Bytes of these.
    bytes: usize,
    /// The last message that may be about any row.
    any: u64,
}

impl Notes {
    pub(super) fn note(&mut self, sequence: u64, operation: &Operation) {
        match operation.key() {
            Some(key) if self.has_room_for(key) => self.note_key(sequence, key),
            _ => self.any = sequence,
        }
    }

    fn has_room_for(&self, key: &[u8]) -> bool {
        let fits = self.keys.len() < NOTED_KEYS_MAX && self.bytes + key.len() <= NOTED_BYTES_MAX;
        fits || self.keys.contains_key(key)
    }

    fn note_key(&mut self, sequence: u64, key: &[u8]) {
        if self.keys.insert(key.into(), sequence).is_none() {
            self.bytes += key.len();
        }
    }

    /// Whether what was read at this message has to be read again.
    pub(super) fn any_since(&self, sequence: u64) -> bool {
        self.any > sequence
    }

    /// Whether the row under a key is another one since.
    pub(super) fn is_newer(&self, key: &[u8], sequence: u64) -> bool {
        self.keys.get(key).is_some_and(|noted| *noted > sequence)
    }
}

#[cfg(test)]
mod tests {
    use engine::{KeyChange, TableName};

    use super::*;

    #[test]
    fn keys_are_remembered_up_to_a_number() {
        let table = TableName { name: "sess".into(), likeness: 1 };
        let key = |number: usize| Operation::Key {
            table: table.clone(),
            key: number.to_le_bytes().into(),
            change: KeyChange::Delete,
        };
        let mut notes = Notes::default();
        for number in 0..NOTED_KEYS_MAX {
            notes.note(7, &key(number));
        }
        notes.note(8, &key(3));
        assert!(notes.is_newer(&3_usize.to_le_bytes(), 7) && !notes.is_newer(&4_usize.to_le_bytes(), 7));
        assert!(!notes.any_since(6));
        notes.note(9, &key(NOTED_KEYS_MAX));
        assert!(notes.any_since(8) && !notes.any_since(9));
        let mut notes = Notes::default();
        for byte in 0..=u8::MAX {
            let (table, key) = (table.clone(), vec![byte; NOTED_BYTES_MAX / 100].into());
            notes.note(3, &Operation::Key { table, key, change: KeyChange::Delete });
        }
        assert!(notes.any_since(2) && notes.keys.len() == 100);
        let mut notes = Notes::default();
        notes.note(5, &Operation::Whole { table: table.clone() });
        assert!(notes.any_since(4) && !notes.any_since(5));
    }
}
