//! `CREATE SCHEMA` and `CREATE EXTENSION`: what migrations ask for at their start, and is here anyway.

use sqltext::definition::Known;

use super::words::Words;
use super::{Defined, Told};
use crate::error::{SqlError, state};

/// Schemas that are there.
const SCHEMAS: &[&str] = &["public", "pg_catalog", "information_schema", "sqlcached"];
/// Extensions whose functions and types are built in, as far as they are there.
const EXTENSIONS: &[&str] = &["plpgsql", "pgcrypto", "uuid-ossp", "citext"];

pub(super) fn run(words: &Words<'_>, known: &Known) -> Result<Defined, SqlError> {
    outcome(known).map_err(|error| words.at(error, known.place))
}

fn outcome(known: &Known) -> Result<Defined, SqlError> {
    let (names, what) = if known.extension { (EXTENSIONS, "extension") } else { (SCHEMAS, "schema") };
    let name = known.name.text.as_str();
    let tag = match (known.drops, known.extension) {
        (false, false) => "CREATE SCHEMA",
        (false, true) => "CREATE EXTENSION",
        (true, false) => "DROP SCHEMA",
        (true, true) => "DROP EXTENSION",
    };
    let there = names.contains(&name);
    match (known.drops, there, known.conditional) {
        (false, true, true) => {
            let message = format!("{what} \"{name}\" already exists, skipping");
            Ok(Defined::skipped(tag, Told { state: present(known.extension), message, hint: None }))
        }
        (false, true, false) => {
            let message = format!("{what} \"{name}\" already exists");
            Err(SqlError::new(present(known.extension), message))
        }
        (true, false, true) => Ok(Defined::missing(tag, what, name)),
        (true, true, _) => Err(SqlError::new(
            state::DEPENDED_ON,
            format!("cannot drop {what} {name} because the server needs it"),
        )),
        (_, false, _) if known.extension => Err(SqlError::not_supported(format!("extension \"{name}\""))
            .with_hint("docs/functions.md lists the available functions")),
        (true, false, false) => {
            Err(SqlError::new(state::UNKNOWN_SCHEMA, format!("schema \"{name}\" does not exist")))
        }
        (false, false, _) => {
            Err(SqlError::not_supported("a schema of your own").with_hint("all tables are in \"public\""))
        }
    }
}

fn present(extension: bool) -> &'static str {
    if extension { state::DUPLICATE_OBJECT } else { state::DUPLICATE_SCHEMA }
}
