//! `CREATE EXTENSION`: what migrations ask for at their start, and is here anyway.

use sqltext::definition::Known;

use super::words::Words;
use super::{Defined, Note};
use crate::error::{SqlError, state};

/// Extensions whose functions and types are built in, as far as they are there.
const EXTENSIONS: &[&str] = &["plpgsql", "pgcrypto", "uuid-ossp", "citext"];

pub(super) fn run(words: &Words<'_>, known: &Known) -> Result<Defined, SqlError> {
    outcome(known).map_err(|error| words.at(error, known.place))
}

fn outcome(known: &Known) -> Result<Defined, SqlError> {
    let name = known.name.text.as_str();
    let tag = if known.drops { "DROP EXTENSION" } else { "CREATE EXTENSION" };
    let there = EXTENSIONS.contains(&name);
    match (known.drops, there, known.conditional) {
        (false, true, true) => {
            let message = format!("extension \"{name}\" already exists, skipping");
            Ok(Defined::skipped(tag, Note { state: state::DUPLICATE_OBJECT, message, hint: None }))
        }
        (false, true, false) => {
            let message = format!("extension \"{name}\" already exists");
            Err(SqlError::new(state::DUPLICATE_OBJECT, message))
        }
        (true, false, true) => Ok(Defined::missing(tag, "extension", name)),
        (true, true, _) => Err(SqlError::new(
            state::DEPENDED_ON,
            format!("cannot drop extension {name} because the server needs it"),
        )),
        (_, false, _) => Err(SqlError::not_supported(format!("extension \"{name}\""))
            .with_hint("docs/functions.md lists the available functions")),
    }
}
