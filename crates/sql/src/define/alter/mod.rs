//! `ALTER TABLE` and `ALTER INDEX`.

mod add;
mod column;
pub(super) mod depend;
pub(super) mod follow;
mod rename;

use std::sync::Arc;

use pgcatalog::system;
use sqltext::definition::{self, AlterTable, Setting};
use store::definition::{ColumnDef, DefinitionError, IndexDef, TableDef, TableOptions, ViewDef};

use self::depend::{check_droppable, dependents, reads_all};
use super::drop::{is_of_key, last_reader_of, materialized_reader_of};
use super::materialized;
use super::server;
use super::storage::without_storage;
use super::undo::{Undo, redefine, undo_all};
use super::view;
use super::words::Words;
use super::{Defined, Note};
use crate::compute::mentions;
use crate::core::Core;
use crate::error::{SqlError, state};
use crate::governed::MATERIALIZED;
use crate::needs::reads_column;
use store::Table;

pub(super) use column::refuse_type_change;
pub(super) use rename::{index as rename_index, renamed_table};

pub(super) fn run(core: &Core, words: &Words<'_>, alter: &AlterTable) -> Result<Defined, SqlError> {
    let tag = match (alter.materialized, alter.view) {
        (true, _) => "ALTER MATERIALIZED VIEW",
        (false, true) => "ALTER VIEW",
        (false, false) => "ALTER TABLE",
    };
    let table = alter.table.text.as_str();
    system::refuse_change(table)?;
    if let Some(known) = core.catalog.view(table).filter(|_| !alter.materialized) {
        return view::alter(core, tag, known, alter);
    }
    let Some(known) = core.catalog.table(table).cloned() else {
        return if alter.if_exists {
            Ok(Defined::missing(tag, "relation", table))
        } else {
            Err(SqlError::unknown_table(table))
        };
    };
    if alter.materialized {
        materialized::of_name(core, table)?;
    } else if alter.view {
        return Err(SqlError::new(
            state::NOT_A_TABLE,
            format!("\"{}\" is not a view", known.def().own_name()),
        ));
    }
    if known.def().materialized.is_some() {
        alter.changes.iter().try_for_each(|change| check_of_view(&known, change))?;
    }
    let mut change = Change::new(core, words, table);
    let (before, since) = (change.def()?, core.store.last_stamp());
    if let Err(error) = alter.changes.iter().try_for_each(|wanted| change.one(wanted)) {
        redefine(&core.store, &change.table, &before, |_| {})?;
        undo_all(&core.store, change.undo.into_iter())?;
        return Err(error);
    }
    let (before, rewritten) = (Box::new(before), change.rewritten);
    let undo = if change.def()?.allows_more_than(&before) || rewritten {
        Undo::Loosened { table: known, before, since, rewritten }
    } else {
        Undo::Altered(known, before)
    };
    // What it did to others is undone after it: views read its columns.
    change.undo.push(undo);
    Ok(Defined { notes: change.notes, undo: change.undo, ..tag.into() })
}

/// Refuses a change of a materialized view that would make its rows others than those of its query.
fn check_of_view(view: &Table, change: &definition::Change) -> Result<(), SqlError> {
    use definition::Change as Wanted;
    let action = match change {
        Wanted::RenameTable(_)
        | Wanted::SetSchema(_)
        | Wanted::RenameColumn(..)
        | Wanted::Set(_)
        | Wanted::Reset(_) => return Ok(()),
        Wanted::AddColumn { .. } => "ADD COLUMN",
        Wanted::AddConstraint(_) => "ADD CONSTRAINT",
        Wanted::DropColumn { .. } => "DROP COLUMN",
        Wanted::DropConstraint { .. } | Wanted::RenameConstraint(..) => "DROP CONSTRAINT",
        Wanted::Column(..) => "ALTER COLUMN",
    };
    let name = view.def().own_name();
    let message = format!("ALTER action {action} cannot be performed on relation \"{name}\"");
    Err(SqlError::new(state::NOT_A_TABLE, message)
        .with_detail("This operation is not supported for materialized views."))
}

/// `DROP COLUMN ... CASCADE`, for a type that goes. Returns its notices and what undoes it.
pub(super) fn drop_column(
    core: &Core,
    words: &Words<'_>,
    table: &str,
    column: &str,
) -> Result<(Vec<Note>, Vec<Undo>), SqlError> {
    let mut change = Change::new(core, words, table);
    let undo = loosened(core, table, false);
    change.drop_column(column, false, true)?;
    change.undo.extend(undo);
    Ok((change.notes, change.undo))
}

/// Takes the default of a column away that was declared `SERIAL`. Returns what undoes it.
pub(super) fn drop_serial(
    core: &Core,
    words: &Words<'_>,
    table: &str,
    column: &str,
) -> Result<Vec<Undo>, SqlError> {
    let mut change = Change::new(core, words, table);
    let undo = loosened(core, table, false);
    change.drop_serial(column)?;
    change.undo.extend(undo);
    Ok(change.undo)
}

/// What puts the definition of now in force again.
pub(super) fn loosened(core: &Core, table: &str, rewritten: bool) -> Option<Undo> {
    let table = Arc::clone(core.store.catalog().table(table)?);
    let (before, since) = (Box::new(table.def().clone()), core.store.last_stamp());
    Some(Undo::Loosened { table, before, since, rewritten })
}

/// Gives every row another value in a column, which an expression of it makes.
pub(super) fn convert_column(
    core: &Core,
    words: &Words<'_>,
    table: &str,
    column: &str,
    sql: &str,
) -> Result<(), SqlError> {
    Change::new(core, words, table).convert(column, sql)
}

/// What is done to one table. Several changes of one statement are made one after the other; when one fails, those
/// before it are taken back.
struct Change<'c> {
    core: &'c Core,
    words: &'c Words<'c>,
    table: String,
    /// What the client is to know of it.
    notes: Vec<Note>,
    /// What takes back what was done to other tables, views and sequences.
    undo: Vec<Undo>,
    /// Every row was written again.
    rewritten: bool,
}

impl<'c> Change<'c> {
    fn new(core: &'c Core, words: &'c Words<'c>, table: &str) -> Self {
        let (notes, undo) = (Vec::new(), Vec::new());
        Self { core, words, table: table.to_owned(), notes, undo, rewritten: false }
    }
}

impl Change<'_> {
    fn one(&mut self, wanted: &definition::Change) -> Result<(), SqlError> {
        use definition::Change as Wanted;
        match wanted {
            Wanted::AddColumn { if_not_exists, column } => self.add_column(column, *if_not_exists),
            Wanted::AddConstraint(constraint) => self.add_constraint(constraint),
            Wanted::DropColumn { if_exists, name, cascade } => {
                self.drop_column(&name.text, *if_exists, *cascade)
            }
            Wanted::DropConstraint { if_exists, name } => self.drop_constraint(&name.text, *if_exists),
            Wanted::RenameTable(to) => {
                let namespace = self.def()?.namespace;
                self.rename_table(&to.text, namespace.as_deref())
            }
            Wanted::SetSchema(schema) => {
                let name = self.def()?.own_name().to_owned();
                self.rename_table(&name, schema.as_ref().map(|schema| schema.text.as_str()))
            }
            Wanted::RenameColumn(from, to) => self.rename_column(&from.text, &to.text),
            Wanted::RenameConstraint(from, to) => self.rename_constraint(&from.text, &to.text),
            Wanted::Column(name, wanted) => self.column(&name.text, wanted),
            Wanted::Set(settings) => {
                let settings = self.own_settings(settings);
                self.options(|options, columns| {
                    settings.iter().try_for_each(|(name, value)| options.set(name, value, columns))
                })
            }
            Wanted::Reset(settings) => {
                let settings = self.own_settings(settings);
                self.options(|options, _| settings.iter().try_for_each(|(name, _)| options.reset(name)))
            }
        }
    }

    fn own_settings(&mut self, settings: &[Setting]) -> Vec<Setting> {
        let (own, notes) = without_storage(settings);
        self.notes.extend(notes);
        own
    }

    fn options(
        &mut self,
        mut change: impl FnMut(&mut TableOptions, &[ColumnDef]) -> Result<(), DefinitionError>,
    ) -> Result<(), SqlError> {
        // Before the lock of the definitions is taken: a source is asked over the network.
        let mut wanted = self.def()?;
        let of_source = |of: &TableOptions| {
            (
                of.source.clone(),
                of.depends.clone(),
                of.mode,
                of.query.clone(),
                of.refresh_on.clone(),
                of.bus.clone(),
            )
        };
        let before = of_source(&wanted.options);
        change(&mut wanted.options, &wanted.columns)?;
        materialized::check_refreshed_on(self.core, &wanted)?;
        if before != of_source(&wanted.options) {
            self.notes.extend(server::check_source(self.core, &wanted)?);
        }
        let claimed = self.core.store.set_options(&self.table, &mut change)?;
        self.notes.extend(Note::claimed(claimed, wanted.options.prefix.as_deref()));
        Ok(())
    }

    /// The definition as it is now.
    fn def(&self) -> Result<TableDef, SqlError> {
        let catalog = self.core.store.catalog();
        let table = catalog.table(&self.table).ok_or_else(|| SqlError::unknown_table(&self.table))?;
        Ok(table.def().clone())
    }

    fn alter(
        &self,
        mut change: impl FnMut(&mut TableDef) -> Result<(), DefinitionError>,
    ) -> Result<(), SqlError> {
        self.core.store.alter_table(&self.table, &mut change)?;
        Ok(())
    }

    fn drop_constraint(&mut self, name: &str, if_exists: bool) -> Result<(), SqlError> {
        let def = self.def()?;
        if def.checks.iter().any(|check| check.name.eq_ignore_ascii_case(name)) {
            return self.alter(|def| {
                def.checks.retain(|check| !check.name.eq_ignore_ascii_case(name));
                Ok(())
            });
        }
        let unique = |index: &IndexDef| index.constraint && index.name.eq_ignore_ascii_case(name);
        if def.indexes.iter().any(unique) {
            if is_of_key(&def, name) {
                let message = format!("constraint \"{name}\" defines which keys of the table are equal");
                return Err(SqlError::new(state::DEPENDED_ON, message));
            }
            return Ok(self.core.store.drop_index(&def.qualified(name))?);
        }
        if def.foreign_keys.iter().any(|key| key.name.eq_ignore_ascii_case(name)) {
            return self.alter(|def| {
                def.foreign_keys.retain(|key| !key.name.eq_ignore_ascii_case(name));
                Ok(())
            });
        }
        if def.is_key_name(name) && !def.key_dropped {
            return self.drop_key(name);
        }
        if !if_exists {
            return Err(unknown_constraint(&def, name));
        }
        let what = format!("constraint \"{name}\" of relation \"{}\" does not exist, skipping", self.table);
        self.notes.push(Note::plain(what));
        Ok(())
    }

    /// The key's constraint goes. Rows stay where they are, so its values stay unique.
    fn drop_key(&mut self, name: &str) -> Result<(), SqlError> {
        self.notes.push(Note::hinted(
            format!("values of the dropped primary key \"{name}\" stay unique"),
            "rows are stored under them; create a new table to be rid of the key",
        ));
        self.alter(|def| {
            def.key_dropped = true;
            Ok(())
        })
    }

    fn drop_column(&mut self, name: &str, if_exists: bool, cascade: bool) -> Result<(), SqlError> {
        let def = self.def()?;
        let Some(at) = def.column_index(name) else {
            if !if_exists {
                return Err(SqlError::unknown_column(def.own_name(), name));
            }
            let what = format!("column \"{name}\" of relation \"{}\" does not exist, skipping", self.table);
            self.notes.push(Note::plain(what));
            return Ok(());
        };
        if cascade {
            self.drop_readers(&def, at)?;
        } else {
            self.refuse_readers("DROP COLUMN", name)?;
        }
        self.drop_constraints_of(name)?;
        let def = self.def()?;
        let Some(at) = def.column_index(name) else { return Ok(()) };
        check_droppable(&def, at)?;
        self.alter(|def| {
            if let Some(at) = def.column_index(name) {
                check_droppable(def, at).map_err(|error| DefinitionError::new(error.state, error.message))?;
                def.remove_column(at);
            }
            Ok(())
        })?;
        self.drop_sequences_of(&def, name)
    }

    /// Sequences that go with a column.
    fn drop_sequences_of(&mut self, def: &TableDef, column: &str) -> Result<(), SqlError> {
        let catalog = self.core.store.catalog();
        let goes = |own: &(u16, String)| own.0 == def.id && own.1.eq_ignore_ascii_case(column);
        for own in catalog.sequences().iter().filter(|own| own.def().owner.as_ref().is_some_and(goes)) {
            self.core.store.drop_sequence(&own.def().name)?;
            self.undo.push(Undo::SequenceGone(Box::new(own.current())));
        }
        Ok(())
    }

    /// Indexes and checks of a column go with it, as in PostgreSQL; a unique constraint too.
    fn drop_constraints_of(&self, name: &str) -> Result<(), SqlError> {
        let def = self.def()?;
        let Some(at) = def.column_index(name) else { return Ok(()) };
        let is_memcached = [def.options.value, def.options.tags].contains(&Some(at));
        if def.is_key(at) || is_memcached || def.visible_columns().count() == 1 {
            return Ok(());
        }
        for index in dependents(&def, at) {
            self.core.store.drop_index(&def.qualified(&index))?;
        }
        let concerned = |def: &TableDef| {
            def.checks.iter().any(|check| mentions(&check.sql, name))
                || def
                    .foreign_keys
                    .iter()
                    .any(|key| key.columns.iter().any(|of| of.eq_ignore_ascii_case(name)))
        };
        if !concerned(&def) {
            return Ok(());
        }
        self.alter(|def| {
            def.checks.retain(|check| !mentions(&check.sql, name));
            def.foreign_keys.retain(|key| !key.columns.iter().any(|of| of.eq_ignore_ascii_case(name)));
            Ok(())
        })
    }

    /// `CASCADE`: what reads a column goes with it, and what reads that.
    fn drop_readers(&mut self, def: &TableDef, at: usize) -> Result<(), SqlError> {
        let name = &def.columns[at].name;
        let (views, materialized) = self.readers_of(name);
        for view in materialized {
            self.drop_materialized(&view)?;
        }
        for view in views {
            // Those first that read others.
            while let Some(reader) = materialized_reader_of(self.core, &view.name) {
                self.drop_materialized(&reader)?;
            }
            while let Some(reader) = last_reader_of(self.core, &view.name) {
                self.drop_view(&reader)?;
            }
            self.drop_view(&view)?;
        }
        let rules = def.rules.iter().filter(|rule| mentions(&rule.condition, name));
        for rule in rules {
            self.notes.push(Note::plain(format!("drop cascades to expiry rule {}", rule.name)));
            self.core.store.drop_rule(&rule.name)?;
        }
        let reads = |column: &&ColumnDef| {
            let generated = column.generated.as_ref().filter(|_| !column.hidden);
            generated.is_some_and(|generated| mentions(&generated.sql, name))
        };
        for column in def.columns.iter().filter(reads) {
            self.notes.push(Note::plain(format!(
                "drop cascades to column {} of table {}",
                column.name, self.table
            )));
            self.drop_column(&column.name, true, true)?;
        }
        Ok(())
    }

    fn drop_view(&mut self, view: &Arc<ViewDef>) -> Result<(), SqlError> {
        // It may have gone with another.
        if self.core.store.catalog().view(&view.name).is_none() {
            return Ok(());
        }
        self.notes.push(Note::plain(format!("drop cascades to view {}", view.name)));
        self.core.store.drop_view(&view.name)?;
        self.undo.push(Undo::ViewGone(Box::new(ViewDef::clone(view))));
        Ok(())
    }

    fn drop_materialized(&mut self, view: &Arc<Table>) -> Result<(), SqlError> {
        self.notes.push(Note::plain(format!("drop cascades to {MATERIALIZED} {}", view.name())));
        self.core.store.drop_table(view.name())?;
        self.undo.push(Undo::TableGone(Arc::clone(view), Vec::new()));
        Ok(())
    }

    /// The views that read a column of the table, and those of them that are materialized.
    fn readers_of(&self, column: &str) -> (Vec<Arc<ViewDef>>, Vec<Arc<Table>>) {
        let reads = |sql: &str| {
            mentions(sql, &self.table)
                && reads_column(self.core, sql, &self.table, column)
                    .unwrap_or_else(|| reads_all(sql) || mentions(sql, column))
        };
        let catalog = self.core.store.catalog();
        let views = catalog.views().filter(|view| reads(&view.sql)).cloned().collect();
        let is_reader =
            |table: &&Arc<Table>| table.def().materialized.as_ref().is_some_and(|query| reads(&query.sql));
        (views, catalog.tables().filter(is_reader).cloned().collect())
    }

    /// What reads a column would not find it any more.
    fn refuse_readers(&self, what: &str, column: &str) -> Result<(), SqlError> {
        let (views, materialized) = self.readers_of(column);
        let view = views.first().map(|view| ("view", view.name.as_str()));
        let materialized = materialized.first().map(|view| (MATERIALIZED, view.name()));
        match view.or(materialized) {
            Some((word, name)) => Err(self.refused_for(what, word, name)),
            None => Ok(()),
        }
    }

    fn refused_for(&self, what: &str, word: &str, name: &str) -> SqlError {
        let message = format!("{what} is refused: {word} \"{name}\" reads table \"{}\"", self.table);
        SqlError::new(state::DEPENDED_ON, message).with_hint("drop the view first")
    }
}

fn unknown_constraint(def: &TableDef, name: &str) -> SqlError {
    let message = format!("constraint \"{name}\" of table \"{}\" does not exist", def.own_name());
    SqlError::new(state::UNKNOWN_OBJECT, message)
}
