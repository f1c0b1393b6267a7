//! What in a definition depends on a column.

use store::definition::TableDef;

use crate::compute::mentions;
use crate::error::{SqlError, state};
use crate::text::token::tokens;

/// Refuses to drop a column that something else needs.
pub(super) fn check_droppable(def: &TableDef, at: usize) -> Result<(), SqlError> {
    let name = &def.columns[at].name;
    let index = || def.indexes.iter().find(|index| index.reads().any(|read| read == at));
    let why = if def.is_key(at) {
        "it is part of the primary key".to_owned()
    } else if def.options.value == Some(at) {
        "it is the value column of memcached clients".to_owned()
    } else if def.options.tags == Some(at) {
        "it is the tags column of memcached clients".to_owned()
    } else if let Some(index) = index() {
        format!("index \"{}\" has it", index.name)
    } else if def.visible_columns().count() == 1 {
        "it is the only one".to_owned()
    } else if let Some(what) = reader_of(def, at) {
        format!("{what} reads it")
    } else {
        return Ok(());
    };
    Err(SqlError::new(state::DEPENDED_ON, format!("cannot drop column \"{name}\": {why}"))
        .with_hint("drop the objects that depend on it first"))
}

/// The indexes that have a column, or whose expressions read it.
pub(super) fn dependents(def: &TableDef, at: usize) -> Vec<String> {
    let name = &def.columns[at].name;
    let reads = |read: usize| {
        let column = &def.columns[read];
        let generated = column.generated.as_ref().filter(|_| column.hidden);
        read == at || generated.is_some_and(|generated| mentions(&generated.sql, name))
    };
    let concerned = def.indexes.iter().filter(|index| index.reads().any(reads));
    concerned.map(|index| index.name.clone()).collect()
}

/// Whether a query may read columns that it does not name: by a star, or by joining equal names.
pub(in crate::define) fn reads_all(sql: &str) -> bool {
    let all = tokens(sql);
    let is_count = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| all.get(before));
        before.is_some_and(|open| open.is_sign("("))
            && all.get(at + 1).is_some_and(|close| close.is_sign(")"))
    };
    all.iter().enumerate().any(|(at, token)| token.is("NATURAL") || (token.is_sign("*") && !is_count(at)))
}

/// An expression of the definition that reads a column.
pub(super) fn reader_of(def: &TableDef, at: usize) -> Option<String> {
    let name = &def.columns[at].name;
    let generated = def.columns.iter().enumerate().find(|(other, column)| {
        *other != at && column.generated.as_ref().is_some_and(|generated| mentions(&generated.sql, name))
    });
    if let Some((other, column)) = generated {
        let index = def.indexes.iter().find(|index| index.reads().any(|read| read == other));
        return Some(match index.filter(|_| column.hidden) {
            Some(index) => format!("index \"{}\"", index.name),
            None => format!("generated column \"{}\"", column.name),
        });
    }
    if let Some(check) = def.checks.iter().find(|check| mentions(&check.sql, name)) {
        return Some(format!("constraint \"{}\"", check.name));
    }
    let rule = def.rules.iter().find(|rule| mentions(&rule.condition, name))?;
    Some(format!("expiry rule \"{}\"", rule.name))
}
