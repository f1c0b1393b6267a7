//! Schemas: `CREATE SCHEMA`, and what `DROP SCHEMA` takes along.

use sqltext::definition::CreateSchema;
use store::Catalog;
use store::definition::NamespaceDef;

use super::{Defined, Note, Undo};
use crate::core::Core;
use crate::error::{SqlError, state};

/// Schemas that are always there.
const BUILT_IN: &[&str] = &["public", "pg_catalog", "information_schema", "sqlcached"];

pub(super) fn create(core: &Core, wanted: &CreateSchema) -> Result<Defined, SqlError> {
    const TAG: &str = "CREATE SCHEMA";
    let role = || core.system.identity().role.clone();
    let named = wanted.name.as_ref().or(wanted.role.as_ref());
    let name = named.map_or_else(role, |name| name.text.clone());
    if is_built_in(&name) || core.catalog.namespace(&name).is_some() {
        let message = format!("schema \"{name}\" already exists");
        return if wanted.if_not_exists {
            let message = format!("{message}, skipping");
            Ok(Defined::skipped(TAG, Note { state: state::DUPLICATE_SCHEMA, message, hint: None }))
        } else {
            Err(SqlError::new(state::DUPLICATE_SCHEMA, message))
        };
    }
    check_name(&name)?;
    core.store.create_namespace(NamespaceDef { id: 0, name: name.clone() })?;
    Ok(Defined::undone_by(TAG, Undo::Schema(name)))
}

pub(super) fn is_built_in(name: &str) -> bool {
    BUILT_IN.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Names that PostgreSQL, SQLite or this server keep for themselves.
fn check_name(name: &str) -> Result<(), SqlError> {
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("pg_") || ["main", "temp"].contains(&lower.as_str()) {
        return Err(SqlError::new(state::RESERVED_NAME, format!("unacceptable schema name \"{name}\""))
            .with_hint("the prefix \"pg_\" and the names \"main\" and \"temp\" are reserved"));
    }
    Ok(())
}

/// Refuses to drop a schema that must stay, or in which something is that is not to go along.
pub(super) fn refuse_needed(catalog: &Catalog, name: &str, cascade: bool) -> Result<(), SqlError> {
    if is_built_in(name) {
        let message = format!("cannot drop schema {name} because the server needs it");
        return Err(SqlError::new(state::DEPENDED_ON, message));
    }
    let Some((kind, inside)) = catalog.names_in(name).next().filter(|_| !cascade) else { return Ok(()) };
    let message = format!("cannot drop schema {name} because other objects depend on it");
    Err(SqlError::new(state::DEPENDED_ON, message)
        .with_detail(format!("{kind} {inside} depends on schema {name}"))
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too."))
}

/// What `CASCADE` says of the objects that go along.
pub(super) fn note(inside: &[(&'static str, String)]) -> Option<Note> {
    Some(Note::plain(match inside {
        [] => return None,
        [(kind, name)] => format!("drop cascades to {kind} {name}"),
        more => format!("drop cascades to {} other objects", more.len()),
    }))
}
