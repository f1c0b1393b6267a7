//! Applies what a source invalidates: statements of one transaction here, by a session like any other's.

use std::sync::Arc;
use std::time::Duration;

use engine::{
    Cancel, ClientSink, ColumnDescription, CopyOptions, Engine, Formats, Outcome, RowSink, SqlError,
    SqlSession, SqlThreadContext, TransactionStatus, Value, ValueRef,
};

use crate::batch::{Batch, Key, Keys};
use crate::limits::COMMIT_TRIES;
use crate::plan::{Plan, Target};
use crate::time::now;

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
}

/// Rows of a table that changes of a source removed.
#[derive(Clone, Copy, Debug, Default)]
struct Removed {
    rows: u64,
    took: Duration,
}

impl Applier {
    pub(crate) fn new(engine: &Arc<Engine>) -> Self {
        let session = SqlSession::local(Arc::clone(engine));
        let (engine, context) = (Arc::clone(engine), SqlThreadContext::new(engine.context()));
        Self { engine, session, context, removed: Vec::new() }
    }

    /// Invalidates the rows of these keys, and returns how many there were beside tables that were emptied. A reader
    /// in SQL sees all of it or nothing.
    pub(crate) fn apply(&mut self, plan: &Plan, batch: &Batch) -> Result<u64, SqlError> {
        self.removed.clear();
        self.removed.resize(plan.targets.len(), Removed::default());
        for (target, keys) in batch.targets() {
            if let (Keys::All, Some(target)) = (keys, plan.targets.get(*target)) {
                self.empty(target)?;
            }
        }
        for _ in 0..COMMIT_TRIES {
            match self.invalidate(plan, batch) {
                Ok(()) => {
                    self.note(plan);
                    return Ok(self.removed.iter().map(|removed| removed.rows).sum());
                }
                Err(error) => {
                    self.roll_back();
                    match error.state {
                        LOST => {}
                        UNKNOWN_TABLE => return Ok(0),
                        _ => break,
                    }
                }
            }
        }
        // A key that is none of this table's type, a row that others write without end: nothing stays that may be old.
        batch
            .targets()
            .iter()
            .filter_map(|(target, _)| plan.targets.get(*target))
            .try_for_each(|target| self.empty(target))
            .map(|()| 0)
    }

    /// Rows of a table may have missed changes: they go, or are stale, as the table says. `lost`: the changes will not
    /// come any more, so leases that were taken before end, too; else rows that are stale already stay as they are.
    pub(crate) fn distrust(&mut self, target: &Target, lost: bool) -> Result<(), SqlError> {
        let Some(ages) = &target.ages else { return self.empty(target) };
        let ages = if lost { ages.clone() } else { format!("{ages} WHERE NOT _stale") };
        let (rows, began) = (target.table.stats().rows, now());
        for _ in 0..COMMIT_TRIES {
            match self.run(&ages) {
                Ok(()) => {
                    self.note_removed(target, &ages, true, rows, began.elapsed());
                    return Ok(());
                }
                Err(error) if error.state == LOST => self.roll_back(),
                Err(_) => break,
            }
        }
        // Too many rows for one step, or no memory for their new versions.
        self.roll_back();
        self.empty(target)
    }

    /// Makes all rows of a table invisible, in one step.
    pub(crate) fn empty(&mut self, target: &Target) -> Result<(), SqlError> {
        let (rows, began) = (target.table.stats().rows, now());
        match self.run(&target.empties) {
            Err(error) if error.state == UNKNOWN_TABLE => Ok(()),
            Ok(()) => {
                self.note_removed(target, &target.empties, true, rows, began.elapsed());
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

    fn invalidate(&mut self, plan: &Plan, batch: &Batch) -> Result<(), SqlError> {
        let each = batch.targets().iter().filter_map(|(target, keys)| match keys {
            Keys::Each(keys) => Some((*target, plan.targets.get(*target)?, keys)),
            Keys::All => None,
        });
        let alone = batch.len() == 1;
        let mut began = false;
        self.removed.fill(Removed::default());
        for (number, target, keys) in each {
            let Some(invalidates) = &target.invalidates else { continue };
            if !alone && !began {
                self.run("BEGIN")?;
                began = true;
            }
            self.session.parse(&mut self.context, "", invalidates, std::iter::empty())?;
            let (began, mut rows) = (now(), 0);
            for key in keys {
                rows += self.invalidate_key(key)?;
            }
            self.removed[number] = Removed { rows, took: began.elapsed() };
        }
        if began { self.run("COMMIT") } else { Ok(()) }
    }

    fn invalidate_key(&mut self, key: &Key) -> Result<u64, SqlError> {
        let prepared = Arc::clone(self.session.prepared("")?);
        let mut values = self.session.recycled_values();
        for (text, oid) in key.iter().zip(prepared.parameter_oids()) {
            values.push(value(*oid, text)?);
        }
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
            self.session = SqlSession::local(Arc::clone(&self.engine));
        }
    }
}

/// A value of the source as our type has it.
fn value(oid: u32, text: &[u8]) -> Result<Value, SqlError> {
    let read = postgres::decode(oid, postgres::Format::Text, text);
    let read = read.map_err(|error| SqlError::new(error.state, error.message))?;
    Ok(match read {
        postgres::Value::Null => Value::Null,
        postgres::Value::Integer(number) => Value::Integer(number),
        postgres::Value::Real(number) => Value::Real(number),
        postgres::Value::Text(text) => Value::Text(text),
        postgres::Value::Bytes(bytes) => Value::Blob(bytes),
    })
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
