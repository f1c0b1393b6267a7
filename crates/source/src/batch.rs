//! What transactions of a source invalidate: keys of each target, or all of it. Bounded, whatever their size.

use std::collections::HashSet;

use crate::limits::{KEY_BYTES_MAX, KEYS_MAX};

/// Keys of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// These: each is the values of its columns.
    Each(HashSet<Key>),
    /// More than it is worth to look for, or it is not known which.
    All,
}

/// The values of a key, as text.
pub(crate) type Key = Box<[Box<[u8]>]>;

impl Keys {
    pub(crate) fn add(&mut self, key: &[&[u8]]) {
        let Self::Each(keys) = self else { return };
        let bytes: usize = key.iter().map(|part| part.len()).sum();
        if bytes <= KEY_BYTES_MAX {
            keys.insert(key.iter().map(|part| Box::from(*part)).collect());
        }
        if bytes > KEY_BYTES_MAX || keys.len() > KEYS_MAX {
            *self = Self::All;
        }
    }

    fn absorb(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::All, _) => {}
            (_, Self::All) => *self = Self::All,
            (Self::Each(own), Self::Each(other)) => {
                own.extend(other);
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
            self.targets.push((target, Keys::Each(HashSet::new())));
            self.targets.len() - 1
        });
        &mut self.targets[at].1
    }

    /// Takes over what another one has.
    pub(crate) fn absorb(&mut self, other: Self) {
        for (target, keys) in other.targets {
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

    pub(crate) fn targets(&self) -> &[(usize, Keys)] {
        &self.targets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
