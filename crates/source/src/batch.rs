//! What transactions of a source change: keys of each target, or all of it. Bounded, whatever their size.

use std::collections::HashMap;

use crate::change::{Change, Key, Row};
use crate::limits::{KEY_BYTES_MAX, KEYS_MAX, VALUES_BYTES_MAX};

/// Keys of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// These: each is the values of its columns.
    Each(Changes),
    /// More than it is worth to look for, or it is not known which.
    All,
}

/// What became of each key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    each: HashMap<Key, Change>,
    /// What their values take.
    bytes: usize,
}

impl Changes {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Change)> {
        self.each.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.each.len()
    }

    /// A row whose values find no room is one that cannot be told.
    fn put(&mut self, key: Key, mut change: Change) {
        if let Change::Row(row) = &change {
            if self.bytes + row.len() > VALUES_BYTES_MAX {
                change = Change::Gone;
            } else {
                self.bytes += row.len();
            }
        }
        if let Some(Change::Row(row)) = self.each.insert(key, change) {
            self.bytes -= row.len();
        }
    }

    /// Forgets all values: the rows are not to stay.
    fn strip(&mut self) {
        self.bytes = 0;
        self.each.values_mut().for_each(|change| *change = Change::Gone);
    }

    /// The changes of a later transaction; what leans on rows leans on those of before.
    fn absorb(&mut self, later: Self) {
        let later: Vec<_> = later.each.into_iter().map(|(key, change)| self.led(key, change)).collect();
        for (key, change) in later {
            self.put(key, change);
        }
    }

    fn renew(&mut self, later: &Self) {
        let both: Vec<_> = self.each.keys().filter(|key| later.each.contains_key(*key)).cloned().collect();
        for key in both {
            if let Some(change) = later.each.get(&key) {
                let (key, change) = self.led(key, change.clone());
                self.put(key, change);
            }
        }
    }

    fn led(&self, key: Key, mut change: Change) -> (Key, Change) {
        if let Change::Row(row) = &mut change {
            row.lean_on(&key, &self.each);
        }
        (key, change)
    }
}

impl Keys {
    /// The row of a key is gone, or changed in a way that is not told.
    pub(crate) fn add(&mut self, key: &[&[u8]]) {
        if matches!(self, Self::Each(_)) {
            self.put(key.iter().map(|part| Box::from(*part)).collect(), Change::Gone);
        }
    }

    /// The row of a key is another one.
    pub(crate) fn change(&mut self, key: Key, row: Row) {
        let Self::Each(changes) = self else { return };
        let (key, change) = changes.led(key, Change::Row(row));
        self.put(key, change);
    }

    fn put(&mut self, key: Key, change: Change) {
        let Self::Each(changes) = self else { return };
        let bytes: usize = key.iter().map(|part| part.len()).sum();
        if bytes <= KEY_BYTES_MAX {
            changes.put(key, change);
        }
        if bytes > KEY_BYTES_MAX || changes.len() > KEYS_MAX {
            *self = Self::All;
        }
    }

    fn absorb(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::All, _) => {}
            (_, Self::All) => *self = Self::All,
            (Self::Each(own), Self::Each(other)) => {
                own.absorb(other);
                if own.len() > KEYS_MAX {
                    *self = Self::All;
                }
            }
        }
    }
}

/// Keys of each target that has any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    /// By the target's number; few have any.
    targets: Vec<(usize, Keys)>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// The keys of a target.
    pub(crate) fn keys(&mut self, target: usize) -> &mut Keys {
        let at = self.targets.iter().position(|(own, _)| *own == target).unwrap_or_else(|| {
            self.targets.push((target, Keys::Each(Changes::default())));
            self.targets.len() - 1
        });
        &mut self.targets[at].1
    }

    /// Takes over what a later one has.
    pub(crate) fn absorb(&mut self, later: Self) {
        for (target, keys) in later.targets {
            self.keys(target).absorb(keys);
        }
    }

    /// The same for other numbers of the targets; one without is gone.
    pub(crate) fn renumber(&mut self, number: &dyn Fn(usize) -> Option<usize>) {
        let all = std::mem::take(&mut self.targets);
        self.targets = all.into_iter().filter_map(|(target, keys)| Some((number(target)?, keys))).collect();
    }

    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        let count = |keys: &Keys| match keys {
            Keys::Each(keys) => keys.len(),
            Keys::All => 1,
        };
        self.targets.iter().map(|(_, keys)| count(keys)).sum()
    }

    /// What the values of its rows take.
    pub(crate) fn value_bytes(&self) -> usize {
        let bytes = |keys: &Keys| match keys {
            Keys::Each(keys) => keys.bytes,
            Keys::All => 0,
        };
        self.targets.iter().map(|(_, keys)| bytes(keys)).sum()
    }

    /// The keys stay those that they are; their rows are those of a later batch, where it has any.
    pub(crate) fn renew(&mut self, later: &Self) {
        for (target, keys) in &mut self.targets {
            let newer = later.targets.iter().find(|(other, _)| other == target);
            match (keys, newer) {
                (Keys::Each(own), Some((_, Keys::Each(newer)))) => own.renew(newer),
                (keys, Some((_, Keys::All))) => *keys = Keys::All,
                _ => {}
            }
        }
    }

    /// The same without some targets.
    #[must_use]
    pub(crate) fn without(mut self, is_left_out: impl Fn(usize) -> bool) -> Self {
        self.targets.retain(|(target, _)| !is_left_out(*target));
        self
    }

    /// Forgets all values: the rows are not to stay.
    pub(crate) fn strip(&mut self) {
        for (_, keys) in &mut self.targets {
            if let Keys::Each(changes) = keys {
                changes.strip();
            }
        }
    }

    pub(crate) fn targets(&self) -> &[(usize, Keys)] {
        &self.targets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Field;

    #[test]
    fn keys_are_bounded() {
        let mut batch = Batch::default();
        for number in 0..KEYS_MAX {
            batch.keys(3).add(&[number.to_string().as_bytes()]);
        }
        batch.keys(3).add(&[b"1"]);
        assert_eq!(batch.len(), KEYS_MAX);
        batch.keys(3).add(&[b"one more"]);
        assert_eq!(batch.targets(), [(3, Keys::All)]);
        let mut other = Batch::default();
        other.keys(1).add(&[b"a", b"b"]);
        other.keys(2).add(&[&vec![b'x'; KEY_BYTES_MAX + 1]]);
        batch.absorb(other);
        assert_eq!(batch.len(), 3);
        assert_eq!(*batch.keys(2), Keys::All);
    }

    #[test]
    fn values_are_bounded() {
        let mut batch = Batch::default();
        let row = || Row { fields: [Field::Text(vec![b'x'; 1 << 20].into())].into(), from: None };
        for number in 0..100_u32 {
            batch.keys(1).change([number.to_string().into_bytes().into()].into(), row());
        }
        assert_eq!(batch.len(), 100);
        assert!(batch.value_bytes() <= VALUES_BYTES_MAX && batch.value_bytes() > VALUES_BYTES_MAX / 2);
        // A row that is replaced gives its room back.
        for number in 0..100_u32 {
            batch.keys(1).add(&[number.to_string().as_bytes()]);
        }
        assert_eq!(batch.value_bytes(), 0);
    }
}
