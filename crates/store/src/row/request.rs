//! What a write asks for, and what became of it.

use arena::RowHead;

use crate::clock::{NEVER, Tick};

/// When a row ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Not by time, whatever the table's `ttl` says.
    Never,
    /// At this tick.
    At(Tick),
    /// By the table's `ttl`, if it has one.
    Table,
    /// At once: the row is not stored, and an older one goes.
    Now,
    /// When the row ends that it replaces, as that stands in the moment of the write; this was its expiry word when it
    /// was read.
    Kept(Tick),
    /// The same, where the row has a deadline of its own by then; else at this tick.
    KeptOr(Tick),
}

/// What a write expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Whatever is there.
    Anything,
    /// No live row.
    Absent,
    /// A live row.
    Present,
    /// The live row with this CAS value.
    Version(u64),
    /// The live row with this stamp. A client may give two versions the same CAS value; a stamp never comes twice.
    Stamp(u64),
    /// The live row with this stamp, which nobody claimed since it was read.
    Unclaimed {
        /// The stamp.
        stamp: u64,
        /// Until when somebody refreshed it when it was read, 0 for nobody.
        lease: Tick,
    },
    /// The live row with this CAS value, which nobody claimed since it was read.
    Lease {
        /// The CAS value.
        cas: u64,
        /// Until when somebody refreshed it when it was read, 0 for nobody.
        lease: Tick,
    },
    /// The live row with this CAS value, which was read when `since` was the newest stamp; or no row, if it was evicted
    /// or expired meanwhile. One that was removed or flushed since is missed.
    Unremoved {
        /// The CAS value.
        cas: u64,
        /// No newer than the read.
        since: u64,
        /// Its expiry word as it was read, if it must be that still.
        expiry: Option<Tick>,
        /// Its lease as it was read, if it must be that still.
        lease: Option<Tick>,
    },
    /// The live row with this CAS value, which nobody gave another deadline since it was read.
    Untouched {
        /// The CAS value.
        cas: u64,
        /// Its expiry word as it was read.
        expiry: Tick,
        /// Until when somebody refreshed it when it was read, if it must be that still.
        lease: Option<Tick>,
    },
}

/// Another deadline for a row.
#[derive(Clone, Copy, Debug)]
pub struct Touch {
    /// What the row must be.
    pub expect: Expect,
    /// When it ends.
    pub expiry: Expiry,
    /// Until when the caller refreshes the row from here on; without it the lease stays as it is. It goes with
    /// [`Expect::Unclaimed`].
    pub lease: Option<Tick>,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Applied, under this stamp.
    Done(u64),
    /// Not applied: a row is there, or another version of it.
    Exists,
    /// Not applied: no live row.
    Missing,
    /// Not applied: the caller's edit decided to leave the row.
    Left,
}

impl Expiry {
    /// The word that the row bears.
    pub(crate) fn word(self) -> Tick {
        match self {
            Self::Never => NEVER,
            Self::At(tick) | Self::KeptOr(tick) => tick.clamp(1, NEVER - 1),
            Self::Kept(word) => word,
            Self::Table | Self::Now => 0,
        }
    }

    /// The deadline that a row's expiry word says.
    pub fn of_word(word: Tick) -> Self {
        match word {
            0 => Self::Table,
            NEVER => Self::Never,
            tick => Self::At(tick),
        }
    }

    pub(crate) fn has_come(self, now: Tick) -> bool {
        match self {
            Self::Now => true,
            Self::At(tick) | Self::KeptOr(tick) => tick <= now,
            // The row was alive when it was read, and if it is not any more, it is not found.
            Self::Never | Self::Table | Self::Kept(_) => false,
        }
    }
}

/// Compares what is there, a live row or nothing, with what is expected.
#[inline]
pub(crate) fn check(expect: Expect, live: Option<&RowHead>) -> Result<(), Outcome> {
    match (expect, live) {
        (Expect::Absent, Some(_)) => Err(Outcome::Exists),
        (Expect::Anything | Expect::Absent, None) => Ok(()),
        (_, None) => Err(Outcome::Missing),
        (Expect::Lease { cas, lease }, Some(head)) if (cas, lease) != (head.cas(), head.lease) => {
            Err(Outcome::Exists)
        }
        (Expect::Version(wanted) | Expect::Unremoved { cas: wanted, .. }, Some(head))
            if wanted != head.cas() =>
        {
            Err(Outcome::Exists)
        }
        (Expect::Untouched { cas, expiry, lease }, Some(head))
            if (cas, expiry) != (head.cas(), head.expiry)
                || lease.is_some_and(|lease| lease != head.lease) =>
        {
            Err(Outcome::Exists)
        }
        (Expect::Unremoved { expiry, lease, .. }, Some(head))
            if expiry.is_some_and(|expiry| expiry != head.expiry)
                || lease.is_some_and(|lease| lease != head.lease) =>
        {
            Err(Outcome::Exists)
        }
        (Expect::Stamp(wanted), Some(head)) if wanted != head.stamp => Err(Outcome::Exists),
        (Expect::Unclaimed { stamp, lease }, Some(head)) if (stamp, lease) != (head.stamp, head.lease) => {
            Err(Outcome::Exists)
        }
        _ => Ok(()),
    }
}
