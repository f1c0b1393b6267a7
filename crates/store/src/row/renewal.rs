//! What a row bears for those who refresh it, and where it stands between its write and its end.

use arena::RowHead;

use crate::clock::Tick;

/// What a row bears for those who refresh it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Renewal {
    /// It was invalidated softly.
    pub stale: bool,
    /// Until when somebody refreshes it, 0 for nobody; none where the table decides whether there is room to say.
    pub lease: Option<Tick>,
    /// The lease is that of the row which is replaced, as it stands in the moment of the write.
    pub same_lease: bool,
}

/// Where a row stands between its write and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Within its time.
    Fresh,
    /// So near its deadline that the table wants it refreshed.
    Due,
    /// Invalidated softly, or past its deadline and still served.
    Stale,
}

impl Renewal {
    /// What the head of a row says.
    pub(crate) fn of(head: &RowHead) -> Self {
        Self { stale: head.is_stale(), lease: head.has_expiry().then_some(head.lease), same_lease: false }
    }

    /// The same for a version that leaves the lease to its holder.
    pub(crate) fn kept(head: &RowHead) -> Self {
        Self { same_lease: true, ..Self::of(head) }
    }
}
