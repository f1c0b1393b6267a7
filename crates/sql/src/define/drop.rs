//! `DROP TABLE`, `DROP INDEX`, `DROP VIEW`.

use std::sync::Arc;

use pgcatalog::sequence::column_of;
use pgcatalog::system;
use sqltext::definition::{Drop, Name, ObjectKind};
use store::definition::{ForeignKey, Identity, IndexDef, RoutineDef, TableDef, ViewDef};

use store::{BUILT_IN, Sequence, Table};

use super::materialized;
use super::words::Words;
use super::{Defined, Note, Undo, alter, altered, enumeration, schema, sequence};
use crate::compute::mentions;
use crate::core::Core;
use crate::error::{SqlError, state};
use crate::governed::MATERIALIZED;

/// What errors advise where something else needs what is to go.
const CASCADE: &str = "Use DROP ... CASCADE to drop the dependent objects too.";

/// What is to go, and what is said of it.
struct Going<'g> {
    core: &'g Core,
    done: Defined,
}

/// All that are named are looked for before the first goes.
pub(super) fn run(core: &Core, words: &Words<'_>, dropped: &Drop) -> Result<Defined, SqlError> {
    let (tag, what) = match dropped.kind {
        ObjectKind::Table => ("DROP TABLE", "table"),
        ObjectKind::Index => ("DROP INDEX", "index"),
        ObjectKind::View => ("DROP VIEW", "view"),
        ObjectKind::Materialized => ("DROP MATERIALIZED VIEW", MATERIALIZED),
        ObjectKind::Enum => ("DROP TYPE", "type"),
        ObjectKind::Schema => ("DROP SCHEMA", "schema"),
        ObjectKind::Sequence => ("DROP SEQUENCE", "sequence"),
    };
    let mut names: Vec<&Name> = Vec::new();
    let mut notes = Vec::new();
    for name in &dropped.names {
        if matches!(dropped.kind, ObjectKind::Table | ObjectKind::Index) {
            system::refuse_change(&name.text)?;
        }
        match missing(core, dropped.kind, &name.text) {
            None if names.iter().any(|known| known.text.eq_ignore_ascii_case(&name.text)) => {}
            None => {
                refuse_needed(core, dropped, &name.text)?;
                names.push(name);
            }
            Some(_) if dropped.if_exists => notes.push(Note::missing(what, &name.text)),
            Some(error) => return Err(error),
        }
    }
    let done =
        Defined { tag, fill: None, notes, skipped: names.is_empty(), undo: Vec::new(), invalidated: None };
    let mut going = Going { core, done };
    for name in names {
        match dropped.kind {
            ObjectKind::Table | ObjectKind::Materialized => going.table(&name.text, dropped.cascade)?,
            ObjectKind::Index => going.index(&name.text)?,
            ObjectKind::View => going.view(&name.text, dropped.cascade)?,
            ObjectKind::Enum => going.enumeration(words, &name.text, dropped.cascade)?,
            ObjectKind::Schema => going.schema(words, &name.text)?,
            ObjectKind::Sequence => going.sequence(words, &name.text)?,
        }
    }
    Ok(going.done)
}

/// What is said of a name that nothing of the kind has.
fn missing(core: &Core, kind: ObjectKind, name: &str) -> Option<SqlError> {
    let catalog = &core.catalog;
    let error = |state, what: &str| Some(SqlError::new(state, format!("{what} \"{name}\" does not exist")));
    match kind {
        ObjectKind::Table if catalog.table(name).is_none() => Some(SqlError::unknown_table(name)),
        ObjectKind::Table => materialized::refuse(catalog.table(name)?)
            .err()
            .map(|error| error.with_hint("Use DROP MATERIALIZED VIEW to remove a materialized view.")),
        ObjectKind::Materialized if !catalog.has(name) => error(state::UNKNOWN_TABLE, MATERIALIZED),
        ObjectKind::Materialized => materialized::of_name(core, name).err(),
        ObjectKind::Index if catalog.index_owner(name).is_none() => error(state::UNKNOWN_OBJECT, "index"),
        ObjectKind::View if catalog.view(name).is_none() => error(state::UNKNOWN_TABLE, "view"),
        ObjectKind::Enum if catalog.enumeration(name).is_none() => error(state::UNKNOWN_OBJECT, "type"),
        ObjectKind::Sequence if catalog.sequence(name).is_none() && column_of(catalog, name).is_none() => {
            error(state::UNKNOWN_TABLE, "sequence")
        }
        ObjectKind::Schema if !schema::is_built_in(name) && catalog.namespace(name).is_none() => {
            error(state::UNKNOWN_SCHEMA, "schema")
        }
        _ => None,
    }
}

/// Refuses to drop what must stay, before anything goes.
fn refuse_needed(core: &Core, dropped: &Drop, name: &str) -> Result<(), SqlError> {
    match dropped.kind {
        ObjectKind::Schema => schema::refuse_needed(&core.catalog, name, dropped.cascade),
        ObjectKind::Sequence => refuse_needed_sequence(core, name, dropped.cascade),
        ObjectKind::Table if name.eq_ignore_ascii_case(BUILT_IN) => Ok(core.store.drop_table(name)?),
        ObjectKind::Table | ObjectKind::View | ObjectKind::Materialized => {
            refuse_used(core, dropped, name)?;
            refuse_read(core, dropped, name)
        }
        ObjectKind::Index => {
            let Some(owner) = core.catalog.index_owner(name) else { return Ok(()) };
            let name = within(owner.def(), name).unwrap_or(name);
            if is_of_key(owner.def(), name) {
                let message = format!("index \"{name}\" defines which keys of the table are equal");
                return Err(SqlError::new(state::DEPENDED_ON, message));
            }
            // The store says why the index of a key stays.
            let own = owner.def().indexes.iter().any(|index| index.name.eq_ignore_ascii_case(name));
            if own { Ok(()) } else { Ok(core.store.drop_index(&owner.def().qualified(name))?) }
        }
        ObjectKind::Enum => Ok(()),
    }
}

/// A function whose body was no text keeps what it needs.
fn refuse_used(core: &Core, dropped: &Drop, name: &str) -> Result<(), SqlError> {
    let Some(user) = users_of(core, name).into_iter().find(|_| !dropped.cascade) else { return Ok(()) };
    let what = word_of(dropped.kind);
    let message = format!("cannot drop {what} {name} because other objects depend on it");
    Err(SqlError::new(state::DEPENDED_ON, message)
        .with_detail(format!("{} {} depends on {what} {name}", user.word(), user.name))
        .with_hint(CASCADE))
}

/// What errors call it.
fn word_of(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::View => "view",
        ObjectKind::Materialized => MATERIALIZED,
        _ => "table",
    }
}

/// A materialized view keeps what it reads: without it, its rows would be those of no query.
fn refuse_read(core: &Core, dropped: &Drop, name: &str) -> Result<(), SqlError> {
    let goes = |view: &Table| {
        dropped.kind == ObjectKind::Materialized
            && dropped.names.iter().any(|name| name.text.eq_ignore_ascii_case(view.name()))
    };
    let reader = materialized_reader_of(core, name).filter(|view| !dropped.cascade && !goes(view));
    let Some(reader) = reader else { return Ok(()) };
    let what = word_of(dropped.kind);
    let message = format!("cannot drop {what} {name} because other objects depend on it");
    Err(SqlError::new(state::DEPENDED_ON, message)
        .with_detail(format!("{MATERIALIZED} {} depends on {what} {name}", reader.def().own_name()))
        .with_hint(CASCADE))
}

/// A materialized view that reads a table or view of this name, or is refreshed when it changes.
pub(super) fn materialized_reader_of(core: &Core, name: &str) -> Option<Arc<Table>> {
    let reads = |table: &&Arc<Table>| {
        let def = table.def();
        let Some(query) = &def.materialized else { return false };
        !table.name().eq_ignore_ascii_case(name) && (mentions(&query.sql, name) || def.is_refreshed_on(name))
    };
    core.store.catalog().tables().find(reads).cloned()
}

/// Functions and procedures that need a table or view.
fn users_of(core: &Core, name: &str) -> Vec<Arc<RoutineDef>> {
    let catalog = core.store.catalog();
    let needs = |own: &&Arc<RoutineDef>| own.needs.iter().any(|need| need.eq_ignore_ascii_case(name));
    catalog.routines().iter().filter(needs).cloned().collect()
}

/// The sequence of a numbered column stays, and without `CASCADE` one whose numbers a default takes.
fn refuse_needed_sequence(core: &Core, name: &str, cascade: bool) -> Result<(), SqlError> {
    let needed = |what: String| {
        let message = format!("cannot drop sequence {name} because other objects depend on it");
        Err(SqlError::new(state::DEPENDED_ON, message)
            .with_detail(format!("{what} depends on sequence {name}")))
    };
    let of_column = column_of(&core.catalog, name).filter(|_| core.catalog.sequence(name).is_none());
    if let Some((table, at)) = of_column {
        let column = &table.def().columns[at];
        if column.identity != Some(Identity::Serial) {
            return needed(format!("column {} of table {}", column.name, table.name()));
        }
        if !cascade {
            return needed(format!("default value for column {} of table {}", column.name, table.name()))
                .map_err(|error: SqlError| error.with_hint(CASCADE));
        }
        return Ok(());
    }
    match sequence::users_of(&core.catalog, name).first().filter(|_| !cascade) {
        Some((table, column)) => needed(format!("default value for column {column} of table {table}"))
            .map_err(|error: SqlError| error.with_hint(CASCADE)),
        None => Ok(()),
    }
}

impl Going<'_> {
    fn sequence(&mut self, words: &Words<'_>, name: &str) -> Result<(), SqlError> {
        if let Some((table, at)) =
            column_of(&self.core.catalog, name).filter(|_| !self.core.catalog.has(name))
        {
            let (table, column) = (table.name(), &table.def().columns[at].name);
            self.done.notes.push(sequence::note_of_default(table, column));
            self.done.undo.extend(alter::drop_serial(self.core, words, table, column)?);
        }
        for (table, column) in sequence::users_of(&self.core.store.catalog(), name) {
            self.done.notes.push(sequence::note_of_default(&table, &column));
            self.done.undo.extend(sequence::drop_default(self.core, &table, &column)?);
        }
        let own = self.core.store.catalog().sequence(name).map(|own| own.current());
        self.core.store.drop_sequence(name)?;
        // Taken back first, for defaults take its numbers.
        self.done.undo.extend(own.map(|own| Undo::SequenceGone(Box::new(own))));
        Ok(())
    }

    fn routine(&mut self, own: &RoutineDef) -> Result<(), SqlError> {
        self.core.store.drop_routine(&own.name)?;
        self.done.undo.push(Undo::RoutineGone(Box::new(own.clone())));
        Ok(())
    }

    /// The functions and procedures that need what goes, go with it.
    fn users(&mut self, name: &str) -> Result<(), SqlError> {
        for own in users_of(self.core, name) {
            self.done.notes.push(Note::plain(format!("drop cascades to {} {}", own.word(), own.name)));
            self.routine(&own)?;
        }
        Ok(())
    }

    fn table(&mut self, name: &str, cascade: bool) -> Result<(), SqlError> {
        if cascade {
            self.users(name)?;
            self.readers(name)?;
        }
        let catalog = self.core.store.catalog();
        let Some(table) = catalog.table(name) else { return Ok(()) };
        let goes = |own: &&Arc<Sequence>| own.def().owner.as_ref().is_some_and(|of| of.0 == table.def().id);
        let own = catalog.sequences().iter().filter(goes).map(|own| own.current()).collect();
        self.core.store.drop_table(name)?;
        self.done.undo.push(Undo::TableGone(Arc::clone(table), own));
        self.foreign_keys(name)
    }

    /// Foreign keys that refer to a table go with it. Nobody enforces them, so they hinder nobody without `CASCADE`.
    fn foreign_keys(&mut self, name: &str) -> Result<(), SqlError> {
        let catalog = self.core.store.catalog();
        for table in catalog.tables().filter(|table| references(table.def(), name)) {
            let refers = |key: &&ForeignKey| key.table.eq_ignore_ascii_case(name);
            self.done.notes.extend(table.def().foreign_keys.iter().filter(refers).map(|key| {
                Note::plain(format!("drop cascades to constraint {} on table {}", key.name, table.name()))
            }));
            self.done.undo.push(altered(table));
            self.core.store.alter_table(table.name(), &mut |def| {
                def.foreign_keys.retain(|key| !refers(&key));
                Ok(())
            })?;
        }
        Ok(())
    }

    fn index(&mut self, name: &str) -> Result<(), SqlError> {
        // Of now: an index that was named before this one may have been of the same table.
        let catalog = self.core.store.catalog();
        let owner = catalog.index_owner(name);
        let loosened = owner.and_then(|table| alter::loosened(self.core, table.name(), false));
        self.core.store.drop_index(name)?;
        // It may have forbidden rows, and the hidden columns of indexed expressions go with it.
        let Some(table) = owner else { return Ok(()) };
        let now = self.core.store.catalog().current(table).cloned();
        let allows_more = now.is_some_and(|now| now.def().allows_more_than(table.def()));
        self.done.undo.extend(loosened.filter(|_| allows_more).or_else(|| Some(altered(table))));
        Ok(())
    }

    fn enumeration(&mut self, words: &Words<'_>, name: &str, cascade: bool) -> Result<(), SqlError> {
        let columns = if cascade { enumeration::users_of(self.core, name) } else { Vec::new() };
        for (table, column) in columns {
            let (notes, undo) = alter::drop_column(self.core, words, &table, &column)?;
            self.done.notes.extend(notes);
            self.done.notes.push(Note::plain(format!("drop cascades to column {column} of table {table}")));
            self.done.undo.extend(undo);
        }
        let own = self.core.catalog.enumeration(name).cloned();
        self.core.store.drop_enum(name)?;
        self.done.undo.extend(own.map(Undo::EnumGone));
        Ok(())
    }

    /// A schema with all that is in it: first what reads others.
    fn schema(&mut self, words: &Words<'_>, name: &str) -> Result<(), SqlError> {
        let inside = |core: &Core| -> Vec<(&'static str, String)> {
            let catalog = core.store.catalog();
            catalog.names_in(name).map(|(kind, name)| (kind, name.to_owned())).collect()
        };
        let all = inside(self.core);
        self.done.notes.extend(schema::note(&all));
        let notes = self.done.notes.len();
        for (kind, own) in all {
            let routine = self.core.store.catalog().routine(&own).cloned();
            if let Some(routine) = routine.filter(|routine| routine.word() == kind) {
                self.routine(&routine)?;
            } else if self.core.store.catalog().has(&own) {
                match kind {
                    "table" => self.table(&own, true)?,
                    "view" => self.view(&own, true)?,
                    "sequence" => self.sequence(words, &own)?,
                    _ => self.enumeration(words, &own, true)?,
                }
            }
        }
        self.done.notes.truncate(notes);
        let own = self.core.store.catalog().namespace(name).cloned();
        self.core.store.drop_namespace(name)?;
        self.done.undo.extend(own.map(Undo::SchemaGone));
        Ok(())
    }

    fn view(&mut self, name: &str, cascade: bool) -> Result<(), SqlError> {
        if cascade {
            self.users(name)?;
            self.readers(name)?;
        }
        // It may have gone with one that was named before.
        let Some(view) = self.core.store.catalog().view(name).cloned() else { return Ok(()) };
        self.core.store.drop_view(name)?;
        self.done.undo.push(Undo::ViewGone(Box::new(ViewDef::clone(&view))));
        Ok(())
    }

    /// The views that read what goes, go with it, and those that read these.
    fn readers(&mut self, name: &str) -> Result<(), SqlError> {
        while let Some(view) = materialized_reader_of(self.core, name) {
            self.done.notes.push(Note::plain(format!("drop cascades to {MATERIALIZED} {}", view.name())));
            self.table(view.name(), true)?;
        }
        while let Some(view) = reader_of(self.core, name) {
            self.readers(&view.name)?;
            self.done.notes.push(Note::plain(format!("drop cascades to view {}", view.name)));
            self.users(&view.name)?;
            self.core.store.drop_view(&view.name)?;
            self.done.undo.push(Undo::ViewGone(Box::new(ViewDef::clone(&view))));
        }
        Ok(())
    }
}

/// The name of an index in the schema of its table; `None`: it is in another schema.
pub(super) fn within<'n>(def: &TableDef, name: &'n str) -> Option<&'n str> {
    let Some(namespace) = &def.namespace else { return Some(name) };
    let (schema, own) = (name.get(..namespace.len())?, name.get(namespace.len()..)?);
    own.strip_prefix('.').filter(|_| schema.eq_ignore_ascii_case(namespace))
}

/// Whether a foreign key of a table refers to the table of this name.
pub(super) fn references(def: &TableDef, name: &str) -> bool {
    def.foreign_keys.iter().any(|key| key.table.eq_ignore_ascii_case(name))
}

/// A view that reads a table or view of this name.
pub(super) fn reader_of(core: &Core, name: &str) -> Option<Arc<ViewDef>> {
    let catalog = core.store.catalog();
    let reads = |view: &&Arc<ViewDef>| !view.name.eq_ignore_ascii_case(name) && mentions(&view.sql, name);
    catalog.views().find(reads).cloned()
}

/// A view that reads a table or view of this name, directly or through others, and is read by none.
pub(super) fn last_reader_of(core: &Core, name: &str) -> Option<Arc<ViewDef>> {
    let mut last = reader_of(core, name)?;
    // As many views as there are cannot all read one another.
    for _ in 0..core.store.catalog().views().count() {
        match reader_of(core, &last.name) {
            Some(reader) => last = reader,
            None => break,
        }
    }
    Some(last)
}

/// Whether a constraint stands for a key that compares otherwise than by its bytes.
pub(super) fn is_of_key(def: &TableDef, name: &str) -> bool {
    let is_so = |index: &IndexDef| index.constraint && index.columns == def.primary_key;
    def.indexes.iter().any(|index| index.name.eq_ignore_ascii_case(name) && is_so(index))
}
