//! What became of a row of the source, as far as a table here has its columns.
//!
//! A large value that did not change is not sent. It is that of an earlier change of the same transaction, or that of
//! the row here; so a change may lean on the row under a key, which is another one if the key moved.

use std::collections::HashMap;

/// The values of a key, as text.
pub(crate) type Key = Box<[Box<[u8]>]>;

/// What became of the row of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is gone, or what it is now cannot be told: it is not to stay here.
    Gone,
    /// It is this.
    Row(Row),
}

/// The columns of a row that a table here has, in the order of its plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) fields: Box<[Field]>,
    /// The key of the row that has what did not change; none: its own.
    pub(crate) from: Option<Key>,
}

/// A column's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Null,
    Text(Box<[u8]>),
    /// It is that of the row before.
    Unchanged,
}

impl Row {
    pub(crate) fn is_whole(&self) -> bool {
        !self.fields.contains(&Field::Unchanged)
    }

    /// Bytes of its values.
    pub(crate) fn len(&self) -> usize {
        let len = |field: &Field| match field {
            Field::Text(text) => text.len(),
            Field::Null | Field::Unchanged => 0,
        };
        self.fields.iter().map(|field| size_of::<Field>() + len(field)).sum()
    }

    /// Takes what did not change from what an earlier change says.
    pub(crate) fn lean_on(&mut self, key: &Key, before: &HashMap<Key, Change>) {
        if self.is_whole() {
            return;
        }
        let Some(Change::Row(earlier)) = before.get(self.from.as_ref().unwrap_or(key)) else { return };
        for (own, earlier) in self.fields.iter_mut().zip(&earlier.fields) {
            if *own == Field::Unchanged {
                own.clone_from(earlier);
            }
        }
        if earlier.from.is_some() {
            self.from.clone_from(&earlier.from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn key(text: &str) -> Key {
        [text.as_bytes().into()].into()
    }

    fn row(texts: &[&str], from: Option<&str>) -> Row {
        let field = |text: &&str| match *text {
            "=" => Field::Unchanged,
            text => Field::Text(text.as_bytes().into()),
        };
        Row { fields: texts.iter().map(field).collect(), from: from.map(key) }
    }

    #[test]
    fn what_did_not_change_is_that_of_the_change_before() {
        let mut before = HashMap::from([(key("1"), Change::Row(row(&["1", "new", "="], None)))]);
        // The row of 1 moves to 2; its last column is that of the row that lies here under 1.
        let mut moved = row(&["2", "=", "="], Some("1"));
        moved.lean_on(&key("2"), &before);
        assert_eq!(moved, row(&["2", "new", "="], Some("1")));
        before.insert(key("2"), Change::Row(moved));
        let mut again = row(&["3", "newer", "="], Some("2"));
        again.lean_on(&key("3"), &before);
        assert_eq!(again, row(&["3", "newer", "="], Some("1")));
        let mut whole = row(&["1", "a", "b"], None);
        whole.lean_on(&key("1"), &before);
        assert_eq!(whole, row(&["1", "a", "b"], None));
        assert!(whole.is_whole() && !again.is_whole());
    }
}
