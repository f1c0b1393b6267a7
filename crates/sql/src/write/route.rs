//! Whether memcached clients look for a row where it is written: the longest prefix wins.

use std::sync::Arc;

use store::{BUILT_IN, Catalog, Table};

use crate::error::{SqlError, state};

/// The prefix by which memcached clients find a table's rows; none: they find none of them.
pub(crate) fn prefix(table: &Table) -> Option<&str> {
    match &table.def().options.prefix {
        Some(prefix) => Some(prefix),
        None => (table.name() == BUILT_IN).then_some(""),
    }
}

/// The other table in which memcached clients look for a row under this key, if there is one. `text` holds the key as
/// they write it then.
pub(crate) fn other<'c>(
    catalog: &'c Catalog,
    table: &Table,
    key: &[u8],
    text: &mut Vec<u8>,
) -> Option<&'c Arc<Table>> {
    let prefix = prefix(table)?;
    text.clear();
    text.extend_from_slice(prefix.as_bytes());
    // No memcached key names a row whose key is no text.
    table.keys().to_text(key, text).ok()?;
    Some(catalog.owner(text)).filter(|owner| owner.id() != table.id())
}

/// Refuses a row that they look for in another table.
pub(crate) fn check(catalog: &Catalog, table: &Table, key: &[u8]) -> Result<(), SqlError> {
    let mut text = Vec::new();
    let Some(owner) = other(catalog, table, key, &mut text) else { return Ok(()) };
    let key = String::from_utf8_lossy(&text);
    let message = format!("key \"{key}\" belongs to table \"{}\"; write it there", owner.name());
    Err(SqlError::new(state::CHECK, message))
}
