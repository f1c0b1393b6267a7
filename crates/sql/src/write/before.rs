//! What a write expects to find under its key.

use store::Expect;

use super::head::{HeadColumn, NewHead};
use crate::table::Identity;

/// What stood under a key before the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// Nobody looked, and it does not matter.
    Anything,
    /// No row, or so the statement expects.
    Absent,
    /// The row with this CAS value.
    Version(u64),
    /// The row with this CAS value and this lease: of those who found it without one, one takes it.
    Lease {
        /// The CAS value.
        cas: u64,
        /// Until when somebody refreshed it, as it was read; 0 for nobody.
        lease: u32,
    },
    /// The row with this CAS value, which nobody gave another deadline since: the statement gives it one itself, or
    /// chose the row by its deadline.
    Untouched {
        /// The CAS value.
        cas: u64,
        /// Its expiry word as it was read.
        expiry: u32,
        /// Its lease, where the row was chosen by it.
        lease: Option<u32>,
    },
}

impl Before {
    /// What a write expects of the row that it read. One that sets the deadline may have computed it of the earlier
    /// one.
    pub(crate) fn of(identity: &Identity, new: Option<&NewHead>) -> Self {
        let Identity { cas, stamp, expiry, .. } = *identity;
        match new {
            Some(head) if stamp != 0 && !head.expiry.is_kept() => {
                Self::Untouched { cas, expiry, lease: None }
            }
            _ => Self::Version(cas),
        }
    }

    /// What a change expects of the row that it read: what it was chosen by, and what the `new` one was computed of.
    /// `columns` are those of the head that it assigns, `by_times` says that it looked at deadlines or leases.
    pub(crate) fn of_change(
        columns: &[HeadColumn],
        identity: &Identity,
        by_times: bool,
        new: Option<&NewHead>,
    ) -> Self {
        if by_times && identity.stamp != 0 {
            return Self::as_chosen(identity);
        }
        if columns.contains(&HeadColumn::Leased) {
            return Self::Lease { cas: identity.cas, lease: identity.renewal.lease.unwrap_or(0) };
        }
        Self::of(identity, new)
    }

    /// What a write expects of a row that was chosen by its deadline or its lease: `touch` and claims change these, and
    /// leave the CAS value as it is.
    fn as_chosen(identity: &Identity) -> Self {
        let Identity { cas, expiry, renewal, .. } = *identity;
        Self::Untouched { cas, expiry, lease: Some(renewal.lease.unwrap_or(0)) }
    }

    /// Whether there was a row.
    pub(crate) fn was_there(self) -> bool {
        !matches!(self, Self::Anything | Self::Absent)
    }

    /// As the store takes it.
    pub(crate) fn expect(self) -> Expect {
        match self {
            Self::Anything => Expect::Anything,
            Self::Absent => Expect::Absent,
            Self::Version(cas) => Expect::Version(cas),
            Self::Lease { cas, lease } => Expect::Lease { cas, lease },
            Self::Untouched { cas, expiry, lease } => Expect::Untouched { cas, expiry, lease },
        }
    }
}
