//! A row on its way into a table, but for its place.

use crate::row::renewal::Renewal;
use crate::row::request::Expiry;

/// A whole new row but for its key.
#[derive(Clone, Debug)]
pub struct NewRow {
    /// The encoded columns outside the key.
    pub payload: Vec<u8>,
    /// When it ends.
    pub expiry: Expiry,
    /// The memcached client's 32 bits.
    pub client_flags: u32,
    /// A CAS value set by a client.
    pub cas: Option<u64>,
    /// Whether it is stale, and whether somebody refreshes it.
    pub renewal: Renewal,
}

/// A row to be written, in its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewParts<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) payload: &'a [&'a [u8]],
    pub(crate) client_flags: u32,
    pub(crate) expiry: Expiry,
    pub(crate) cas: Option<u64>,
    pub(crate) renewal: Renewal,
}

impl NewRow {
    pub(crate) fn parts<'a>(&self, key: &'a [u8], payload: &'a [&'a [u8]; 1]) -> NewParts<'a> {
        let Self { client_flags, expiry, cas, renewal, .. } = *self;
        NewParts { key, payload, client_flags, expiry, cas, renewal }
    }
}
