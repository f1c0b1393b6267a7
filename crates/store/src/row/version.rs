//! What a new version takes over from the one that it replaces.
//!
//! `touch` gives a row another deadline where it stands, and a claim a lease: the version and its CAS value stay. A
//! write that leaves deadline or lease as they are must not put back what it read, for somebody may have changed them
//! since and had that acknowledged. So it says that it keeps them, and they are taken from the row under the lock of
//! its shard.

use arena::{Location, Queue, SegmentId};

use crate::clock::Tick;
use crate::row::new::NewParts;
use crate::row::request::Expiry;

/// What is taken over at the publication of a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keep {
    /// The deadline; this word stands for it where the row has none of its own.
    pub(crate) deadline: Option<Tick>,
    pub(crate) lease: bool,
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

/// A version in its place, to which nothing leads yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    pub(crate) location: Location,
    pub(crate) segment: SegmentId,
    pub(crate) queue: Queue,
    /// Bytes that it takes.
    pub(crate) bytes: usize,
    /// Its expiry word.
    pub(crate) expiry: Tick,
    /// What it takes over from the row that it replaces.
    pub(crate) keep: Keep,
}
