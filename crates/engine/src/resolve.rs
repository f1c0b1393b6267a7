//! From the text of a memcached key to a table and the key in it.

use std::sync::Arc;

use store::codec::KeyError;
use store::{Catalog, Table};

/// The table that answers to a memcached key, and the key in it, which may be written to `encoded`.
#[inline]
pub(crate) fn resolve<'c, 'k>(
    catalog: &'c Catalog,
    key: &'k [u8],
    encoded: &'k mut Vec<u8>,
) -> (&'c Arc<Table>, Result<&'k [u8], Misfit<'k>>) {
    let (table, rest) = catalog.route(key);
    if table.keys().is_raw() {
        return (table, Ok(rest));
    }
    encoded.clear();
    match table.keys().from_text(rest, encoded) {
        Ok(()) => (table, Ok(&encoded[..])),
        Err(_) if table.def().options.loose_keys => (catalog.built_in(), Ok(key)),
        Err(error) => (table, Err(Misfit { rest, error })),
    }
}

/// A text that is no key of the table whose prefix it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Misfit<'k> {
    /// What stands behind the prefix.
    pub(crate) rest: &'k [u8],
    pub(crate) error: KeyError,
}
