//! Why rows leave a table, as it is counted.

use crate::table::removal_event::Cause;

/// Why a row left its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalCause {
    /// Somebody removed it.
    Invalidated,
    /// Somebody removed all rows of the table.
    Flushed,
    /// Its own deadline came, or its table's `ttl`.
    Ttl,
    /// It had `max_ops` operations.
    Operations,
    /// An expiry rule applied to it.
    Rule,
    /// The table had `max_rows`.
    MaxRows,
    /// The table had `max_memory`.
    MaxMemory,
    /// The server's memory was needed.
    Memory,
}

impl RemovalCause {
    /// How many causes there are.
    pub(crate) const COUNT: usize = Self::Memory as usize + 1;
    /// Those by which a row expires.
    pub(crate) const EXPIRED: &'static [Self] = &[Self::Ttl, Self::Operations, Self::Rule];
    /// Those by which it is evicted.
    pub(crate) const EVICTED: &'static [Self] = &[Self::MaxRows, Self::MaxMemory, Self::Memory];

    /// As it is announced; a flush is for the whole table.
    pub(crate) fn cause(self) -> Option<Cause> {
        match self {
            Self::Invalidated => Some(Cause::Invalidate),
            Self::Flushed => None,
            Self::Ttl | Self::Operations | Self::Rule => Some(Cause::Expire),
            Self::MaxRows | Self::MaxMemory | Self::Memory => Some(Cause::Evict),
        }
    }
}
