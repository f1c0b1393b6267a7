//! Enum types: `CREATE TYPE ... AS ENUM`, `ALTER TYPE`.

use sqltext::definition::{AlterEnum, CreateEnum, EnumChange};
use sqltext::token::{quoted_name, sql_literal};
use store::definition::{DefinitionError, EnumDef, SqlType, qualified};
use store::value::Value;

use super::words::Words;
use super::{Defined, Note, Undo, alter};
use crate::core::Core;
use crate::error::{SqlError, state};

pub(super) fn create(core: &Core, wanted: &CreateEnum) -> Result<Defined, SqlError> {
    let name = wanted.name.text.clone();
    check_type_name(&name)?;
    let namespace = wanted.name.namespace.clone();
    core.store.create_enum(EnumDef { namespace, ..EnumDef::new(name.clone(), wanted.labels.clone()) })?;
    Ok(Defined::undone_by("CREATE TYPE", Undo::Enum(name)))
}

/// A name of PostgreSQL's own types would never be found.
fn check_type_name(name: &str) -> Result<(), SqlError> {
    let lower = name.to_ascii_lowercase();
    if SqlType::all().any(|ty| ty.name() == lower || ty.sql_name() == lower) {
        return Err(SqlError::new(state::DUPLICATE_OBJECT, format!("type \"{name}\" already exists")));
    }
    Ok(())
}

pub(super) fn alter(core: &Core, words: &Words<'_>, wanted: &AlterEnum) -> Result<Defined, SqlError> {
    const TAG: &str = "ALTER TYPE";
    let name = &wanted.name.text;
    let own = core.catalog.enumeration(name);
    let own =
        own.ok_or_else(|| SqlError::new(state::UNKNOWN_OBJECT, format!("type \"{name}\" does not exist")))?;
    match &wanted.change {
        EnumChange::Add { if_not_exists: true, label, .. } if own.rank(label).is_some() => {
            let message = format!("enum label \"{label}\" already exists, skipping");
            let note = Note { state: state::DUPLICATE_OBJECT, message, hint: None };
            Ok(Defined::skipped(TAG, note))
        }
        EnumChange::Add { label, beside, .. } => {
            let before = core.store.alter_enum(name, &mut |own| add(own, label, beside.as_ref()))?;
            Ok(Defined::undone_by(TAG, Undo::EnumAltered(name.clone(), before)))
        }
        EnumChange::RenameValue(from, to) => rename_value(core, words, name, from, to),
        EnumChange::Rename(to) => {
            check_type_name(&to.text)?;
            let to = qualified(own.namespace.as_deref(), &to.text);
            let before = core.store.alter_enum(name, &mut |own| {
                own.name.clone_from(&to);
                Ok(())
            })?;
            Ok(Defined::undone_by(TAG, Undo::EnumAltered(to, before)))
        }
        EnumChange::Nothing => Ok(Defined { undo: Vec::new(), ..TAG.into() }),
    }
}

fn add(own: &mut EnumDef, label: &str, beside: Option<&(String, bool)>) -> Result<(), DefinitionError> {
    let at = match beside {
        None => own.labels.len(),
        Some((other, behind)) => place_of(own, other)? + usize::from(*behind),
    };
    own.labels.insert(at, label.to_owned());
    Ok(())
}

fn place_of(own: &EnumDef, label: &str) -> Result<usize, DefinitionError> {
    let missing = || DefinitionError::new("22023", format!("\"{label}\" is not an existing enum label"));
    own.rank(label).ok_or_else(missing)
}

/// The type has the new label first, so that nobody writes the old one while the rows are given the new one.
fn rename_value(
    core: &Core,
    words: &Words<'_>,
    name: &str,
    from: &str,
    to: &str,
) -> Result<Defined, SqlError> {
    let Some(own) = core.catalog.enumeration(name) else { return Ok("ALTER TYPE".into()) };
    place_of(own, from)?;
    if own.rank(to).is_some() {
        let message = format!("enum label \"{to}\" already exists");
        return Err(SqlError::new(state::DUPLICATE_OBJECT, message));
    }
    let users = users_of(core, name);
    for (table, column) in &users {
        refuse_convert(core, table, column)?;
    }
    let before = core.store.alter_enum(name, &mut |own| {
        let at = place_of(own, from)?;
        to.clone_into(&mut own.labels[at]);
        Ok(())
    })?;
    let mut undo = vec![Undo::EnumAltered(name.to_owned(), before)];
    let (old, new) = (sql_literal(&Value::from(from)), sql_literal(&Value::from(to)));
    for (table, column) in &users {
        undo.extend(alter::loosened(core, table, true));
        let column_name = quoted_name(column);
        let sql = format!("CASE {column_name} WHEN {old} THEN {new} ELSE {column_name} END");
        set_default(core, table, column, from, to)?;
        alter::convert_column(core, words, table, column, &sql)?;
    }
    Ok(Defined { undo, ..Defined::from("ALTER TYPE") })
}

fn refuse_convert(core: &Core, table: &str, column: &str) -> Result<(), SqlError> {
    let Some(table) = core.catalog.table(table) else { return Ok(()) };
    let def = table.def();
    let Some(at) = def.column_index(column) else { return Ok(()) };
    if def.columns[at].sql_type().is_array() {
        let what =
            format!("RENAME VALUE while column \"{column}\" of table \"{}\" has arrays of it", def.name);
        return Err(SqlError::not_supported(what).with_hint("add the new value and update the rows"));
    }
    alter::refuse_type_change(def, at)
}

fn set_default(core: &Core, table: &str, column: &str, from: &str, to: &str) -> Result<(), SqlError> {
    core.store.alter_table(table, &mut |def| {
        let default = def.column_index(column).and_then(|at| def.columns[at].default.as_mut());
        if let Some(Value::Text(label)) = default
            && label == from
        {
            to.clone_into(label);
        }
        Ok(())
    })?;
    Ok(())
}

/// The columns that have an enum type or arrays of it, each behind its table.
pub(super) fn users_of(core: &Core, name: &str) -> Vec<(String, String)> {
    let catalog = core.store.catalog();
    let Some(id) = catalog.enumeration(name).map(|own| own.id) else { return Vec::new() };
    let columns = catalog.tables().flat_map(|table| {
        let of_type =
            move |own: &&store::definition::ColumnDef| own.enumeration.as_ref().is_some_and(|of| of.id == id);
        let columns = table.def().columns.iter().filter(of_type);
        columns.map(|column| (table.name().to_owned(), column.name.clone()))
    });
    columns.collect()
}
