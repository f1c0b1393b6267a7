//! Sequences: `CREATE SEQUENCE`, `ALTER SEQUENCE`, and defaults that take their numbers.

use pgcatalog::sequence::{column_of, identity_of, named_in, shown};
use sqltext::definition::{AlterSequence, CreateSequence, Name, SequenceChange, SequenceOptions};
use sqltext::grant::Kind;
use store::definition::{DefinitionError, Place, SequenceDef, SqlType, qualified};
use store::{Catalog, Table};

use super::grant::of_new;
use super::{Defined, Note, Undo, altered, check_table_name, refuse_temporary};
use crate::core::Core;
use crate::error::{SqlError, state};
use crate::text::token::{sql_literal, text_of, tokens};

pub(super) fn create(core: &Core, wanted: &CreateSequence) -> Result<Defined, SqlError> {
    const TAG: &str = "CREATE SEQUENCE";
    refuse_temporary(wanted.temporary)?;
    let name = &wanted.name.text;
    let taken = core.catalog.has(name) || column_of(&core.catalog, name).is_some();
    if taken && wanted.if_not_exists {
        return Ok(Defined::present(TAG, name));
    }
    if taken {
        return Err(SqlError::new(state::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")));
    }
    check_table_name(&wanted.name)?;
    let mut def = SequenceDef {
        id: 0,
        name: name.clone(),
        namespace: wanted.name.namespace.clone(),
        bits: 64,
        start: 1,
        increment: 1,
        min: 1,
        max: i64::MAX,
        cache: 1,
        cycle: false,
        owner: None,
        access: of_new(core, Kind::Sequence, wanted.name.namespace.as_deref()),
        place: Place { last: 1, called: false },
    };
    let whole = SequenceOptions { restart: None, ..copied(&wanted.options) };
    let whole = SequenceOptions { min: whole.min.or(Some(None)), max: whole.max.or(Some(None)), ..whole };
    set(core, &mut def, &whole)?;
    def.start = whole.start.unwrap_or(if def.increment > 0 { def.min } else { def.max });
    def.place = Place { last: def.start, called: false };
    core.store.create_sequence(def)?;
    Ok(Defined::undone_by(TAG, Undo::Sequence(name.clone())))
}

fn copied(options: &SequenceOptions) -> SequenceOptions {
    SequenceOptions {
        declared: options.declared.clone(),
        owned: options.owned.clone(),
        name: None,
        ..*options
    }
}

/// Takes over what options say.
fn set(core: &Core, def: &mut SequenceDef, options: &SequenceOptions) -> Result<(), SqlError> {
    let before = def.bounds();
    if let Some(declared) = &options.declared {
        def.bits = match SqlType::of_declared(declared) {
            Some(SqlType::Int2) => 16,
            Some(SqlType::Int4) => 32,
            Some(SqlType::Int8) => 64,
            _ => {
                let message = "sequence type must be smallint, integer, or bigint";
                return Err(SqlError::new(state::BAD_PARAMETER, message));
            }
        };
    }
    def.increment = options.increment.unwrap_or(def.increment);
    def.cache = options.cache.unwrap_or(def.cache);
    def.cycle = options.cycle.unwrap_or(def.cycle);
    let (least, greatest) = def.bounds();
    let (min, max) = if def.increment > 0 { (1, greatest) } else { (least, -1) };
    // Bounds that were the type's are those of the new one.
    let follows =
        |bound: i64| (options.declared.is_some() && (bound == before.0 || bound == before.1)).then_some(None);
    if let Some(wanted) = options.min.or_else(|| follows(def.min)) {
        def.min = wanted.unwrap_or(min);
    }
    if let Some(wanted) = options.max.or_else(|| follows(def.max)) {
        def.max = wanted.unwrap_or(max);
    }
    def.start = options.start.unwrap_or(def.start);
    if let Some(restart) = options.restart {
        def.place = Place { last: restart.unwrap_or(def.start), called: false };
    }
    if let Some(owned) = &options.owned {
        def.owner = owned.as_ref().map(|(table, column)| owner(core, table, column)).transpose()?;
    }
    Ok(())
}

/// The column with which a sequence goes.
fn owner(core: &Core, table: &Name, column: &Name) -> Result<(u16, String), SqlError> {
    let of = core.catalog.table(&table.text).ok_or_else(|| SqlError::unknown_table(&table.text))?;
    let at = of.def().column_index(&column.text);
    let at = at.ok_or_else(|| SqlError::unknown_column(of.def().own_name(), &column.text))?;
    Ok((of.def().id, of.def().columns[at].name.clone()))
}

pub(super) fn alter(core: &Core, wanted: &AlterSequence) -> Result<Defined, SqlError> {
    const TAG: &str = "ALTER SEQUENCE";
    let name = &wanted.name.text;
    let Some(known) = core.catalog.sequence(name) else {
        return match column_of(&core.catalog, name) {
            Some((table, _)) => of_column(core, &table, &wanted.change).map(|()| TAG.into()),
            None if wanted.if_exists => Ok(Defined::missing(TAG, "relation", name)),
            None => Err(unknown(name)),
        };
    };
    let (own, namespace) = (known.def().own_name().to_owned(), known.def().namespace.clone());
    let (renamed, namespace) = match &wanted.change {
        SequenceChange::Nothing => return Ok(Defined { undo: Vec::new(), ..TAG.into() }),
        SequenceChange::Options(options) => {
            let mut changed = known.current();
            set(core, &mut changed, options)?;
            let before = core.store.alter_sequence(name, &mut |def| {
                // Numbers may have been given out meanwhile.
                let place = if options.restart.is_some() { changed.place } else { def.place };
                *def = SequenceDef { place, access: def.access.clone(), ..changed.clone() };
                Ok(())
            })?;
            let restarted = options.restart.is_some();
            return Ok(Defined::undone_by(
                TAG,
                Undo::SequenceAltered(name.clone(), Box::new(before), restarted),
            ));
        }
        SequenceChange::Rename(to) => (to.text.clone(), namespace),
        SequenceChange::SetSchema(to) => (own, to.as_ref().map(|to| to.text.clone())),
    };
    let to = qualified(namespace.as_deref(), &renamed);
    let before = core.store.alter_sequence(name, &mut |def| {
        (def.name, def.namespace) = (to.clone(), namespace.clone());
        Ok(())
    })?;
    let mut undo = rename_in_defaults(core, name, &shown(namespace.as_deref(), &renamed))?;
    undo.push(Undo::SequenceAltered(to, Box::new(before), false));
    Ok(Defined { undo, ..TAG.into() })
}

/// `ALTER SEQUENCE` of the sequence of a numbered column.
fn of_column(core: &Core, table: &Table, change: &SequenceChange) -> Result<(), SqlError> {
    let refused = || {
        Err(SqlError::not_supported("this change of a numbered column's sequence")
            .with_hint("RESTART is; DEFAULT nextval('s') of a sequence of its own has the others"))
    };
    match change {
        SequenceChange::Nothing => Ok(()),
        SequenceChange::Options(options) => {
            if options.increment.is_some_and(|by| by != 1) || options.cycle == Some(true) {
                return refused();
            }
            match options.restart {
                Some(restart) => {
                    let first = table.def().numbers_from.max(1);
                    Ok(core.store.set_number(table, restart.unwrap_or(first))?)
                }
                None => Ok(()),
            }
        }
        SequenceChange::Rename(_) | SequenceChange::SetSchema(_) => refused(),
    }
}

pub(super) fn unknown(name: &str) -> SqlError {
    SqlError::new(state::UNKNOWN_TABLE, format!("relation \"{name}\" does not exist"))
}

/// The columns whose default takes numbers of a sequence, each behind its table.
pub(super) fn users_of(catalog: &Catalog, name: &str) -> Vec<(String, String)> {
    let takes = |sql: &String| named_in(sql).iter().any(|taken| taken.eq_ignore_ascii_case(name));
    let of_table = |table: &std::sync::Arc<Table>| {
        let columns =
            table.def().columns.iter().filter(|column| column.default_sql.as_ref().is_some_and(takes));
        columns.map(|column| (table.name().to_owned(), column.name.clone())).collect::<Vec<_>>()
    };
    catalog.tables().flat_map(of_table).collect()
}

/// Takes a default away.
pub(super) fn drop_default(core: &Core, table: &str, column: &str) -> Result<Option<Undo>, SqlError> {
    let before = core.store.catalog().table(table).map(altered);
    core.store.alter_table(table, &mut |def| {
        if let Some(at) = def.column_index(column) {
            def.columns[at].default_sql = None;
        }
        Ok(())
    })?;
    Ok(before)
}

/// Defaults that take numbers of a sequence keep doing so when it has another name.
fn rename_in_defaults(core: &Core, name: &str, to: &str) -> Result<Vec<Undo>, SqlError> {
    let mut undo = Vec::new();
    for (table, column) in users_of(&core.store.catalog(), name) {
        undo.extend(core.store.catalog().table(&table).map(altered));
        core.store.alter_table(&table, &mut |def| rename_default(def, &column, name, to))?;
    }
    Ok(undo)
}

fn rename_default(
    def: &mut store::definition::TableDef,
    column: &str,
    name: &str,
    to: &str,
) -> Result<(), DefinitionError> {
    let Some(at) = def.column_index(column) else { return Ok(()) };
    if let Some(sql) = &mut def.columns[at].default_sql {
        *sql = with_names(sql, &mut |taken: &str| {
            let is = identity_of(taken).is_some_and(|taken| taken.eq_ignore_ascii_case(name));
            Ok(is.then(|| to.to_owned()))
        })
        .map_err(|error| DefinitionError::new(error.state, error.message))?;
    }
    Ok(())
}

/// A default in which sequences have the names that are the same for every session.
pub(super) fn resolved(catalog: &Catalog, sql: &str) -> Result<String, SqlError> {
    with_names(sql, &mut |name: &str| pgcatalog::sequence::named_for(catalog, name).map(Some))
}

/// Puts other names into `nextval('name')` and `nextval(regclass('name'))`.
fn with_names(
    sql: &str,
    name: &mut dyn FnMut(&str) -> Result<Option<String>, SqlError>,
) -> Result<String, SqlError> {
    let all = tokens(sql);
    let mut out = String::new();
    let mut copied = 0;
    for at in 0..all.len() {
        let opens = |at: usize, word: &str| {
            all.get(at).is_some_and(|token| token.is(word))
                && all.get(at + 1).is_some_and(|next| next.is_sign("("))
        };
        if !opens(at, "NEXTVAL") {
            continue;
        }
        let wrapped = opens(at + 2, "REGCLASS");
        let (text, last) = if wrapped { (at + 4, at + 5) } else { (at + 2, at + 2) };
        let Some(named) = all.get(text).and_then(text_of) else { continue };
        if wrapped && !all.get(last).is_some_and(|token| token.is_sign(")")) {
            continue;
        }
        if let Some(new) = name(&named)? {
            out.push_str(&sql[copied..all[at + 1].end()]);
            out.push_str(&sql_literal(&new.into()));
            copied = all[last].end();
        }
    }
    out.push_str(&sql[copied..]);
    Ok(out)
}

/// What is said of a default that goes with its sequence.
pub(super) fn note_of_default(table: &str, column: &str) -> Note {
    Note::plain(format!("drop cascades to default value for column {column} of table {table}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_defaults_are_replaced() {
        let mut new = |name: &str| Ok((name == "s").then(|| "x.\"S\"".to_owned()));
        for (sql, expected) in [
            ("nextval('s')", "nextval('x.\"S\"')"),
            ("'a' || nextval(regclass('s')) || nextval('t')", "'a' || nextval('x.\"S\"') || nextval('t')"),
            ("nextval(s)", "nextval(s)"),
            ("nextval(regclass('s', 1))", "nextval(regclass('s', 1))"),
            ("nextval", "nextval"),
        ] {
            assert_eq!(with_names(sql, &mut new), Ok(expected.to_owned()), "{sql}");
        }
    }
}
