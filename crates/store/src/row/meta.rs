//! What there is to know of a row but its columns.

use arena::RowHead;

use crate::clock::Tick;

/// What a memcached client is told about an item before its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemMeta {
    /// The client's 32 bits.
    pub client_flags: u32,
    /// The CAS value.
    pub cas: u64,
    /// Bytes of the value.
    pub len: usize,
    /// The row's expiry word.
    pub(crate) word: Tick,
    /// The number of the write that made this version.
    pub stamp: u64,
    /// It was invalidated softly.
    pub stale: bool,
    /// Until when somebody refreshes it; 0: nobody does.
    pub lease: Tick,
    /// Bytes that the row takes.
    pub size: usize,
}

impl ItemMeta {
    #[inline]
    pub(crate) fn of(head: &RowHead, len: usize) -> Self {
        Self {
            client_flags: head.client_flags,
            cas: head.cas(),
            len,
            word: head.expiry,
            stamp: head.stamp,
            stale: head.is_stale(),
            lease: head.lease,
            size: head.total_bytes,
        }
    }
}

impl ItemMeta {
    /// What there is to know of a value that is in no row: it has no CAS.
    pub fn of_value(len: usize) -> Self {
        Self { client_flags: 0, cas: 0, len, word: 0, stamp: 0, stale: false, lease: 0, size: 0 }
    }

    /// Whether somebody refreshes this version.
    #[inline]
    pub fn is_leased(&self, now: Tick) -> bool {
        now < self.lease
    }
}
