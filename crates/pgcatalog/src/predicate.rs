//! The predicate of a partial index: the definition of a hidden column that is true in the rows of the index.

use sqltext::error::SqlError;
use store::definition::{ColumnDef, Generated};

/// What stands around a predicate, so that its value is 1, 0 or NULL.
const PREDICATE: (&str, &str) = ("NOT NOT (", ")");

/// The hidden column of a partial index's predicate.
pub fn predicate_column(name: &str, sql: &str) -> Result<ColumnDef, SqlError> {
    let sql = format!("{}{sql}{}", PREDICATE.0, PREDICATE.1);
    let generated = Some(Generated { sql, stored: true });
    Ok(ColumnDef { hidden: true, generated, ..ColumnDef::new(name, "BOOLEAN")? })
}

/// The predicate of a partial index as it was written.
pub fn predicate_of(sql: &str) -> Option<&str> {
    sql.strip_prefix(PREDICATE.0)?.strip_suffix(PREDICATE.1)
}
