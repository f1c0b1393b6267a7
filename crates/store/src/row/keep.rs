//! What a new version takes over from the one that it replaces.
//!
//! `touch` gives a row another deadline where it stands, and a claim a lease: the version and its CAS value stay. A
//! write that leaves deadline or lease as they are must not put back what it read, for somebody may have changed them
//! since and had that acknowledged. So it says that it keeps them, and they are taken from the row under the lock of
//! its shard.

use arena::RowHead;

use crate::clock::Tick;
use crate::row::request::Expiry;
use crate::rows::write::{NewParts, Version};
use crate::store::Store;

/// What is taken over at the publication of a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keep {
    /// The deadline; this word stands for it where the row has none of its own.
    deadline: Option<Tick>,
    lease: bool,
}

impl Keep {
    pub(crate) fn of(new: &NewParts<'_>) -> Self {
        let deadline = match new.expiry {
            // One that had a deadline of its own has it still, or is another version.
            Expiry::Kept(_) => Some(0),
            Expiry::KeptOr(own) => Some(own),
            Expiry::Never | Expiry::At(_) | Expiry::Table | Expiry::Now => None,
        };
        Self { deadline, lease: new.renewal.same_lease }
    }

    #[inline]
    pub(crate) fn is_some(self) -> bool {
        self.lease || self.deadline.is_some()
    }
}

impl Expiry {
    /// Whether it is that of the row that is replaced.
    pub fn is_kept(self) -> bool {
        matches!(self, Self::Kept(_) | Self::KeptOr(_))
    }

    /// The same as it was read, for a row that replaces none.
    #[must_use]
    pub fn settled(self) -> Self {
        match self {
            Self::Kept(word) | Self::KeptOr(word) => Self::of_word(word),
            own => own,
        }
    }
}

impl Store {
    /// Gives a version in its place what it keeps of the row that it is going to replace, whose shard is locked. False:
    /// the place has no word for it. The row was written again since it was read, in a way that its CAS value does not
    /// show, so the caller reads it again.
    pub(crate) fn take_over(&self, version: &mut Version, found: &RowHead) -> bool {
        let Some(new) = self.arena.row(version.location).map(|row| *row.head()) else { return false };
        if version.keep.lease && new.lease != found.lease {
            if !new.has_expiry() {
                return false;
            }
            self.arena.set_lease(version.location, found.lease);
        }
        let Some(own) = version.keep.deadline else { return true };
        let word = if found.expiry == 0 { own } else { found.expiry };
        if (word == 0) != (new.expiry == 0) {
            return false;
        }
        if word != new.expiry {
            self.note_deadline(version.segment, word);
            self.arena.set_expiry(version.location, word);
            version.expiry = word;
        }
        true
    }
}
