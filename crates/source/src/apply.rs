//! Applies what a source changes: statements of one transaction here, by a session like any other's.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use engine::{
    Cancel, ClientSink, ColumnDescription, CopyOptions, Engine, Formats, Outcome, Prepared, RowSink,
    SqlError, SqlSession, SqlThreadContext, TransactionStatus, Value, ValueRef,
};

use store::TableId;
use store::definition::{ColumnDef, SqlType};

use crate::batch::{Batch, Changes, Keys};
use crate::change::{Change, Field, Key, Row};
use crate::limits::COMMIT_TRIES;
use crate::plan::{Plan, Target};
use crate::time::now;
use crate::values::value;

/// The state of a commit that met another one, and of a table that is gone.
const LOST: &str = "40001";
const UNKNOWN_TABLE: &str = "42P01";

/// A session of the source's thread.
pub(crate) struct Applier {
    engine: Arc<Engine>,
    session: SqlSession,
    context: SqlThreadContext,
    /// What the transaction under way removes, by target.
    removed: Vec<Removed>,
    /// What it updates.
    done: Updates,
    /// Tables of which the log has said that a value does not fit.
    said: HashSet<TableId>,
}

/// Rows that became those of the source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Updates {
    pub(crate) rows: u64,
    /// Rows that went, beside tables that were emptied.
    pub(crate) removed: u64,
    /// Rows with a value that is none of our column's type: these went instead.
    pub(crate) misfits: u64,
    /// Mirrors that are not what the source's table is any more, and why.
    pub(crate) broken: Vec<(usize, String)>,
}

/// Rows of a table that changes of a source removed.
#[derive(Clone, Copy, Debug, Default)]
struct Removed {
    rows: u64,
    took: Duration,
}

impl Applier {
    pub(crate) fn new(engine: &Arc<Engine>) -> Self {
        let session = SqlSession::source(Arc::clone(engine));
        let (engine, context) = (Arc::clone(engine), SqlThreadContext::new(engine.context()));
        let (removed, done, said) = (Vec::new(), Updates::default(), HashSet::new());
        Self { engine, session, context, removed, done, said }
    }

    /// Invalidates or updates the rows of these keys. A reader in SQL sees all of it or nothing.
    pub(crate) fn apply(&mut self, plan: &Plan, batch: &Batch) -> Result<Updates, SqlError> {
        self.removed.clear();
        self.removed.resize(plan.targets.len(), Removed::default());
        let mut broken = Vec::new();
        for (number, keys) in batch.targets() {
            if let (Keys::All, Some(target)) = (keys, plan.targets.get(*number)) {
                self.empty(target)?;
                if target.is_mirror() {
                    broken.push((*number, format!("a change of {} cannot be told", target.on)));
                }
            }
        }
        let mut why = String::new();
        for _ in 0..COMMIT_TRIES {
            let failed = match self.change(plan, batch) {
                Ok(()) => {
                    self.note(plan);
                    let mut done = std::mem::take(&mut self.done);
                    done.broken.extend(broken);
                    done.removed = self.removed.iter().map(|removed| removed.rows).sum();
                    return Ok(done);
                }
                Err(error) => {
                    self.roll_back();
                    error
                }
            };
            why = failed.message;
            // A table that is gone, or has another name, is left out when it is tried again.
            if ![LOST, UNKNOWN_TABLE].contains(&failed.state) {
                break;
            }
        }
        // A key that is none of this table's type, a row that others write without end: nothing stays that may be old.
        for (number, _) in batch.targets() {
            let Some(target) = plan.targets.get(*number) else { continue };
            self.empty(target)?;
            if target.is_mirror() {
                broken.push((*number, why.clone()));
            }
        }
        Ok(Updates { broken, ..Updates::default() })
    }

    /// Rows of a table may have missed changes: they go, or are stale, as the table says. `lost`: the changes will not
    /// come any more, so leases that were taken before end, too; else rows that are stale already stay as they are.
    pub(crate) fn distrust(&mut self, target: &Target, lost: bool) -> Result<(), SqlError> {
        if target.distrust.ages.is_none() || target.is_mirror() {
            return self.empty(target);
        }
        self.engine.sources.spoil_fetches(&target.table, None);
        let (rows, began) = (target.table.stats().rows, now());
        let aged = target.distrust.make_stale(lost, |sql| self.run(sql).inspect_err(|_| self.roll_back()));
        match aged {
            Some(ages) => {
                self.note_removed(target, &ages, true, rows, began.elapsed());
                Ok(())
            }
            None => self.empty(target),
        }
    }

    /// A mirror is filled from here on.
    pub(crate) fn begin_copy(&mut self, target: &Target) -> Result<(), SqlError> {
        self.empty(target)?;
        self.truncate(target)?;
        // There is nothing in its way, and this runs without SQLite whatever the columns are.
        let insert = target.inserts.as_deref().unwrap_or_default();
        self.session.parse(&mut self.context, "", insert, std::iter::empty())
    }

    /// Writes a row of a mirror that is being filled.
    pub(crate) fn copy_row(&mut self, target: &Target, fields: Box<[Field]>) -> Result<(), SqlError> {
        let prepared = Arc::clone(self.session.prepared("")?);
        let mut values = self.session.recycled_values();
        read_row(target, &Row { fields, from: None }, prepared.parameter_oids(), &mut values)?;
        self.execute(prepared, values).map(drop)
    }

    /// Removes all rows of a mirror, as the source did.
    pub(crate) fn truncate(&mut self, target: &Target) -> Result<(), SqlError> {
        self.run(&target.distrust.empties)
    }

    /// Makes all rows of a table invisible, in one step. Of a mirror nobody reads any. A view is refreshed.
    pub(crate) fn empty(&mut self, target: &Target) -> Result<(), SqlError> {
        if target.is_view() {
            target.table.note_source_change();
            return Ok(());
        }
        self.engine.sources.spoil_fetches(&target.table, None);
        if target.is_mirror() {
            target.table.set_whole(false);
            return Ok(());
        }
        let (rows, began) = (target.table.stats().rows, now());
        match self.run(&target.distrust.empties) {
            Err(error) if error.state == UNKNOWN_TABLE => Ok(()),
            Ok(()) => {
                self.note_removed(target, &target.distrust.empties, true, rows, began.elapsed());
                Ok(())
            }
            done => done,
        }
    }

    /// Takes note of what the last transaction removed.
    fn note(&self, plan: &Plan) {
        for (target, Removed { rows, took }) in plan.targets.iter().zip(&self.removed) {
            let statement = target.invalidates.as_deref().unwrap_or_default();
            self.note_removed(target, statement, false, *rows, *took);
        }
    }

    /// `whole`: all rows of the table.
    fn note_removed(&self, target: &Target, statement: &str, whole: bool, rows: u64, took: Duration) {
        let source = target.table.def().options.source.as_deref().unwrap_or_default();
        self.engine.note_source(source, (target.table.name(), whole), statement, rows, took);
    }

    fn change(&mut self, plan: &Plan, batch: &Batch) -> Result<(), SqlError> {
        let catalog = self.engine.store().catalog();
        let here = |number: usize| plan.targets.get(number).filter(|target| target.is_here(&catalog));
        let each = batch.targets().iter().filter_map(|(number, keys)| match keys {
            Keys::Each(keys) => Some((*number, here(*number)?, keys)),
            Keys::All => None,
        });
        let alone = batch.len() == 1;
        let mut began = false;
        self.removed.fill(Removed::default());
        self.done = Updates::default();
        for (number, target, changes) in each {
            if !alone && !began {
                self.run("BEGIN")?;
                began = true;
            }
            let gone = if target.is_mirror() {
                self.mirror(number, target, changes)?
            } else {
                self.update(target, changes)?
            };
            self.invalidate(number, target, &gone)?;
        }
        if began { self.run("COMMIT") } else { Ok(()) }
    }

    fn invalidate(&mut self, number: usize, target: &Target, keys: &[&Key]) -> Result<(), SqlError> {
        let Some(invalidates) = target.invalidates.as_ref().filter(|_| !keys.is_empty()) else {
            return Ok(());
        };
        self.session.parse(&mut self.context, "", invalidates, std::iter::empty())?;
        let (began, mut rows) = (now(), 0);
        for key in keys {
            rows += self.invalidate_key(key)?;
        }
        self.removed[number] = Removed { rows, took: began.elapsed() };
        Ok(())
    }

    fn invalidate_key(&mut self, key: &Key) -> Result<u64, SqlError> {
        let prepared = Arc::clone(self.session.prepared("")?);
        let mut values = self.session.recycled_values();
        for (text, oid) in key.iter().zip(prepared.parameter_oids()) {
            values.push(value(*oid, text)?);
        }
        self.execute(prepared, values)
    }

    /// Updates the rows that are here. Returns the keys of those that are not to stay: gone at the source, or told in
    /// part only, or of a value that does not fit.
    fn update<'c>(&mut self, target: &Target, changes: &'c Changes) -> Result<Vec<&'c Key>, SqlError> {
        let mut gone = Vec::new();
        let mut prepared = None;
        for (key, change) in changes.iter() {
            let (Change::Row(row), Some(updates)) = (change, &target.updates) else {
                gone.push(key);
                continue;
            };
            if prepared.is_none() {
                self.session.parse(&mut self.context, "", updates, std::iter::empty())?;
                prepared = Some(Arc::clone(self.session.prepared("")?));
            }
            let Some(prepared) = &prepared else { continue };
            if !row.is_whole() {
                gone.push(key);
                continue;
            }
            let mut values = self.session.recycled_values();
            match read_row(target, row, prepared.parameter_oids(), &mut values) {
                Ok(()) => self.done.rows += self.execute(Arc::clone(prepared), values)?,
                Err(error) => {
                    self.done.misfits += 1;
                    self.say_misfit(target, &error);
                    gone.push(key);
                }
            }
        }
        Ok(gone)
    }

    /// Writes the rows of a mirror, and returns the keys of those that are gone. What did not change is read before
    /// anything is written.
    fn mirror<'c>(
        &mut self,
        number: usize,
        target: &Target,
        changes: &'c Changes,
    ) -> Result<Vec<&'c Key>, SqlError> {
        let is_row = |change: &Change| matches!(change, Change::Row(_));
        let gone = changes.iter().filter(|(_, change)| !is_row(change)).map(|(key, _)| key).collect();
        let mut before = HashMap::new();
        for (key, change) in changes.iter() {
            if let Change::Row(row) = change
                && !row.is_whole()
            {
                before.insert(key, self.read(target, row.from.as_ref().unwrap_or(key))?);
            }
        }
        let upserts = target.upserts().unwrap_or_default();
        self.session.parse(&mut self.context, "", &upserts, std::iter::empty())?;
        let prepared = Arc::clone(self.session.prepared("")?);
        for (key, change) in changes.iter() {
            let Change::Row(row) = change else { continue };
            let mut values = self.session.recycled_values();
            let mut read = read_row(target, row, prepared.parameter_oids(), &mut values);
            if !row.is_whole() {
                let unchanged = before.remove(key).unwrap_or_default();
                read = read.and_then(|()| complete(row, &mut values, unchanged));
            }
            match read {
                Ok(()) => self.done.rows += self.execute(Arc::clone(&prepared), values)?,
                Err(error) => {
                    self.done.misfits += 1;
                    self.done.broken.push((number, format!("a value does not fit: {}", error.message)));
                }
            }
        }
        Ok(gone)
    }

    /// The store that it applies to.
    pub(crate) fn store(&self) -> &store::Store {
        self.engine.store()
    }

    /// In which column the row here differs from the source's; none: in none, or it is not here and need not be.
    pub(crate) fn differs(
        &mut self,
        target: &Target,
        key: &Key,
        theirs: Option<&[Field]>,
    ) -> Result<Option<String>, SqlError> {
        let ours = self.read(target, key)?;
        let Some(fields) = theirs else {
            return Ok((!ours.is_empty()).then(|| "which the source does not have".to_owned()));
        };
        if ours.is_empty() {
            return Ok(target.is_mirror().then(|| "which is not here".to_owned()));
        }
        let columns = target.copied.iter().flat_map(|copied| &copied.columns);
        for ((field, (name, at)), ours) in fields.iter().zip(columns).zip(&ours) {
            let column = &target.table.def().columns[*at];
            let theirs = match field {
                Field::Text(text) => column
                    .accept(value(column.sql_type().oid(), plain(column, text))?)
                    .map_err(|_| SqlError::new("22000", format!("column {name}")))?,
                Field::Null | Field::Unchanged => Value::Null,
            };
            if theirs != *ours {
                return Ok(Some(format!("column {name}")));
            }
        }
        Ok(None)
    }

    /// The row that a table here has under a key; nothing: there is none.
    fn read(&mut self, target: &Target, key: &Key) -> Result<Vec<Value>, SqlError> {
        let reads = target.reads().unwrap_or_default();
        self.session.parse(&mut self.context, "", &reads, std::iter::empty())?;
        let prepared = Arc::clone(self.session.prepared("")?);
        let mut values = self.session.recycled_values();
        for (text, oid) in key.iter().zip(prepared.parameter_oids()) {
            values.push(value(*oid, text)?);
        }
        self.session.bind("", prepared, values, Formats::Text)?;
        let mut row = OneRow::default();
        self.session.execute(&mut self.context, "", 0, false, &mut row)?;
        self.session.sync(&mut self.context)?;
        Ok(row.0)
    }

    /// Once for each table: what does not fit comes again and again.
    fn say_misfit(&mut self, target: &Target, error: &SqlError) {
        if self.said.insert(target.table.id()) {
            let (table, state) = (target.table.name(), error.state);
            tracing::warn!(
                "a value of {} does not fit {table}, whose row goes instead ({state}): {}",
                target.on,
                error.message
            );
        }
    }

    fn execute(&mut self, prepared: Arc<Prepared>, values: Vec<Value>) -> Result<u64, SqlError> {
        self.session.bind("", prepared, values, Formats::Text)?;
        let outcome = self.session.execute(&mut self.context, "", 0, false, &mut Nobody)?;
        self.session.sync(&mut self.context)?;
        let Outcome::Complete { count, .. } = outcome else { return Ok(0) };
        Ok(count.unwrap_or(0))
    }

    fn run(&mut self, sql: &str) -> Result<(), SqlError> {
        self.session.run_text(&mut self.context, sql, true, &mut Nobody).map(drop)
    }

    fn roll_back(&mut self) {
        if self.session.status() != TransactionStatus::Idle && self.run("ROLLBACK").is_err() {
            self.session = SqlSession::source(Arc::clone(&self.engine));
        }
    }
}

/// The values of a row as our columns have them. The error names the column, and not the value.
fn read_row(target: &Target, row: &Row, oids: &[u32], values: &mut Vec<Value>) -> Result<(), SqlError> {
    let columns = target.copied.iter().flat_map(|copied| &copied.columns);
    for ((field, oid), (theirs, at)) in row.fields.iter().zip(oids).zip(columns) {
        let column = &target.table.def().columns[*at];
        let misfit = |state| SqlError::new(state, format!("column {theirs}"));
        let read = match field {
            Field::Text(text) => value(*oid, plain(column, text)).map_err(|error| misfit(error.state))?,
            Field::Null if column.not_null => return Err(misfit("23502")),
            Field::Null => Value::Null,
            Field::Unchanged => {
                values.push(Value::Null);
                continue;
            }
        };
        column.accept(read.clone()).map_err(|_| misfit("22000"))?;
        values.push(read);
    }
    Ok(())
}

/// Gives what did not change the values of the row before.
fn complete(row: &Row, values: &mut [Value], before: Vec<Value>) -> Result<(), SqlError> {
    if before.len() != values.len() {
        return Err(SqlError::new("02000", "the row that it was is not here"));
    }
    for ((field, value), before) in row.fields.iter().zip(values).zip(before) {
        if *field == Field::Unchanged {
            *value = before;
        }
    }
    Ok(())
}

/// The last row of an answer.
#[derive(Default)]
struct OneRow(Vec<Value>);

impl RowSink for OneRow {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.0 = values.iter().map(|value| Value::from(*value)).collect();
        Ok(())
    }
}

impl ClientSink for OneRow {
    fn begin_copy(&mut self, _: &CopyOptions, _: &Cancel) {}
}

/// A whole number without the zeros that a `numeric` of the source has behind its point.
fn plain<'t>(column: &ColumnDef, text: &'t [u8]) -> &'t [u8] {
    let is_whole = matches!(column.sql_type(), SqlType::Int2 | SqlType::Int4 | SqlType::Int8);
    match text.iter().position(|byte| *byte == b'.').filter(|_| is_whole) {
        Some(point) if text[point + 1..].iter().all(|byte| *byte == b'0') => &text[..point],
        _ => text,
    }
}

/// Nobody reads what these statements give.
struct Nobody;

impl RowSink for Nobody {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, _: &[ValueRef<'_>]) -> Result<(), SqlError> {
        Ok(())
    }
}

impl ClientSink for Nobody {
    fn begin_copy(&mut self, _: &CopyOptions, _: &Cancel) {}
}
