//! A compiled statement that writes, and how it is run.

use pgcatalog::sequence::{self, Numbered};
use std::sync::Arc;

use sqlite::{Row, Statement};
use store::definition::SqlType;
use store::scalar::has_form;
use store::value::{Value, ValueRef};
use store::{Table, WriteError};

use super::batch::{Batch, Constraint};
use super::change::ChangePlan;
use super::insert::{InsertPlan, Operand, Source};
use super::merge::MergePlan;
use super::taken::taken;
use super::target::Target;
use crate::core::Core;
use crate::describe::ColumnDescription;
use crate::done::{ComputedBy, Done, DoneKind, Invalidated, RowSink};
use crate::error::{SqlError, state};
use crate::journal::Reach;
use crate::limits::RETRIES_MAX;
use crate::table::{ListRow, NEW_ROWS};
use crate::text::rows::Rows;

/// A compiled statement that writes one table.
#[derive(Debug)]
pub(crate) struct WritePlan {
    pub(crate) table: Arc<Table>,
    /// How many parameters it takes.
    pub(crate) parameters: usize,
    pub(crate) verb: Verb,
    pub(crate) returning: Option<Returning>,
    /// `OR ROLLBACK`: a broken constraint ends the transaction.
    pub(crate) rolls_back: bool,
    /// What its rows are computed by, for `EXPLAIN QUERY PLAN`.
    pub(crate) source_sql: String,
}

/// What it does.
#[derive(Debug)]
pub(crate) enum Verb {
    /// `INSERT` and `REPLACE`
    Insert(InsertPlan),
    /// `UPDATE` and `DELETE`
    Change(ChangePlan),
    /// `MERGE`
    Merge(MergePlan),
}

/// `RETURNING`, as a query of the list of written rows.
#[derive(Debug)]
pub(crate) struct Returning {
    pub(crate) statement: Statement,
    /// Whether there is a query in it.
    pub(crate) queries: bool,
    /// Whether it names the rows' CAS values.
    pub(crate) numbers: bool,
    pub(crate) columns: Vec<ColumnDescription>,
}

/// Why a statement failed, and how many rows it wrote nevertheless. Boxed, so that results stay small.
struct Failed {
    error: Box<SqlError>,
    written: u64,
}

impl From<SqlError> for Failed {
    fn from(error: SqlError) -> Self {
        Self { error: Box::new(error), written: 0 }
    }
}

/// One run of a statement.
pub(crate) struct Run<'a> {
    pub(crate) core: &'a Core,
    pub(crate) table: &'a Arc<Table>,
    pub(crate) parameters: &'a [Value],
    /// Rows in the place of the one in its `VALUES`.
    pub(crate) rows: Option<&'a Rows<'a>>,
}

/// What a run is given.
#[derive(Clone, Copy)]
pub(crate) enum Given<'a> {
    /// Values of its parameters.
    Parameters(&'a [Value]),
    /// Rows of a statement that [takes](WritePlan::takes) them.
    Rows(&'a Rows<'a>),
}

impl WritePlan {
    /// The rows of its `VALUES`, if these are literals and parameters.
    pub(crate) fn values(&self) -> &[Vec<Operand>] {
        match &self.verb {
            Verb::Insert(InsertPlan { source: Source::Values(rows), .. }) => rows,
            _ => &[],
        }
    }

    /// Whether these rows may stand in the place of the one row of parameters in its `VALUES`: literals mean there what
    /// parameters of the same values do.
    pub(crate) fn takes(&self, rows: &Rows<'_>) -> bool {
        let Verb::Insert(InsertPlan { targets, source: Source::Values(values), .. }) = &self.verb else {
            return false;
        };
        let [row] = values.as_slice() else { return false };
        let in_order = row.iter().enumerate().all(|(at, operand)| *operand == Operand::Parameter(at));
        if !in_order || row.len() != rows.width || self.parameters != rows.width {
            return false;
        }
        // A text for a type with forms of its own is put into form when it is parsed.
        targets.iter().enumerate().all(|(at, target)| {
            let formed =
                matches!(target, Target::Stored(column) if has_form(self.table.column_type(*column)));
            !formed || (0..rows.len()).all(|row| !matches!(rows.value(row, at), ValueRef::Text(_)))
        })
    }

    /// Which values of such rows go to columns of these types.
    pub(crate) fn values_of(&self, types: &[SqlType]) -> Vec<usize> {
        let Verb::Insert(InsertPlan { targets, .. }) = &self.verb else { return Vec::new() };
        let is_so = |target: &Target| matches!(target, Target::Stored(column) if types.contains(&self.table.column_type(*column)));
        targets.iter().enumerate().filter(|(_, target)| is_so(target)).map(|(at, _)| at).collect()
    }

    pub(crate) fn run(
        &mut self,
        core: &Core,
        given: Given<'_>,
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let result = self.written(core, given, out);
        if let Err(failed) = &result {
            core.sight.note_failed(failed.written);
        }
        result.map_err(|failed| *failed.error)
    }

    fn written(&mut self, core: &Core, given: Given<'_>, out: &mut dyn RowSink) -> Result<Done, Failed> {
        let run = match given {
            Given::Rows(rows) => Run { core, table: &self.table, parameters: &[], rows: Some(rows) },
            Given::Parameters(parameters) => Run { core, table: &self.table, parameters, rows: None },
        };
        let returning = self.returning.is_some();
        let mut again = match &mut self.verb {
            Verb::Insert(plan) => Again::Insert(plan),
            Verb::Change(plan) => Again::Change(plan),
            Verb::Merge(plan) => Again::Merge(plan),
        };
        let (mut batch, rows) = run.commit(&mut again, returning, self.returning.as_mut())?;
        if let Some(key) = batch.last_inserted() {
            core.sight.note_inserted(&self.table, key);
        }
        if let Some(number) = batch.last_made() {
            sequence::note(Numbered::Table(self.table.def().id), number);
        }
        if let Some(error) = batch.take_stopped() {
            let error = Box::new(SqlError { partial: true, ..error });
            return Err(Failed { error, written: batch.affected() });
        }
        if let Some(returning) = &self.returning {
            out.columns(&returning.columns);
            for row in &rows {
                let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
                out.row(&values)?;
            }
        }
        let kind = if returning { DoneKind::Rows } else { DoneKind::Write };
        let (affected, by) = (batch.affected(), ComputedBy::Sqlite);
        let done = Done { kind, affected, tag: self.tag(), by, invalidated: None };
        let how = match &self.verb {
            Verb::Insert(_) => None,
            Verb::Change(plan) => plan.invalidates(),
            Verb::Merge(plan) => {
                let table = self.table.id();
                let invalidated = plan.invalidates().map(|(how, rows)| Invalidated { table, rows, how });
                return Ok(Done { invalidated, ..done });
            }
        };
        Ok(how.map_or(done, |how| done.invalidating(self.table.id(), how)))
    }

    /// The columns of its rows; `None` when it returns none.
    pub(crate) fn columns(&self) -> Option<&[ColumnDescription]> {
        self.returning.as_ref().map(|returning| returning.columns.as_slice())
    }

    pub(crate) fn tag(&self) -> &'static str {
        match &self.verb {
            Verb::Insert(_) => "INSERT",
            Verb::Change(plan) => plan.tag(),
            Verb::Merge(_) => "MERGE",
        }
    }

    /// What it shows of its table.
    pub(crate) fn reach(&self) -> Reach {
        let table = self.table.id();
        match &self.verb {
            Verb::Change(plan) if self.returning.is_none() && plan.is_blind() => Reach::Blind(table),
            Verb::Insert(plan) if plan.puts() && self.returning.as_ref().is_none_or(|rows| !rows.queries) => {
                Reach::Puts
            }
            _ => Reach::Reads(Some(table)),
        }
    }
}

/// What is computed again when rows were lost.
enum Again<'a> {
    Insert(&'a mut InsertPlan),
    Change(&'a mut ChangePlan),
    Merge(&'a mut MergePlan),
}

impl Again<'_> {
    fn overlaid(&self) -> bool {
        match self {
            Self::Insert(plan) => plan.looks_for_conflicts(),
            Self::Change(plan) => plan.looks_for_conflicts(),
            Self::Merge(_) => false,
        }
    }
}

/// The rows that a statement returns.
type Returned = Vec<Vec<Value>>;

impl Run<'_> {
    /// Computes the list and applies it, again for the rows that others changed meanwhile.
    fn commit(
        &self,
        again: &mut Again<'_>,
        returning: bool,
        mut returned: Option<&mut Returning>,
    ) -> Result<(Batch, Returned), SqlError> {
        let new = |again: &Again<'_>| {
            let overlaid = again.overlaid() || self.core.in_transaction();
            Batch::new(&self.core.catalog, self.table, returning, overlaid)
        };
        let mut batch = new(again);
        let mut lost: Option<Vec<Vec<u8>>> = None;
        for _ in 0..RETRIES_MAX {
            self.core.sight.check_watch()?;
            let rows = self.compute(again, &mut batch, lost.as_deref(), returned.as_deref_mut())?;
            let applied = if batch.is_outrun() {
                Err(WriteError::Lost(Vec::new()))
            } else {
                self.core.apply(&mut batch.writes())
            };
            match applied {
                Ok(()) => return Ok((batch, rows)),
                Err(WriteError::Lost(writes)) => {
                    lost = Some(match again {
                        Again::Change(plan)
                            if plan.can_pick() && returned.is_none() && !batch.is_outrun() =>
                        {
                            batch.forget(&writes)
                        }
                        _ => {
                            batch = new(again);
                            Vec::new()
                        }
                    });
                }
                // Somebody took the value after we looked: look again.
                Err(WriteError::Unique { .. }) if again.overlaid() => {
                    batch = new(again);
                    lost = Some(Vec::new());
                }
                // A plain list of new rows has a write for each.
                Err(WriteError::Unique { index, write }) => {
                    return Err(self.taken_in(&batch, &index, write).of_row(write));
                }
                Err(error) => return Err(refused(self.table, error)),
            }
            std::thread::yield_now();
        }
        let message =
            format!("the rows changed each of the {RETRIES_MAX} times that they were computed; try again");
        Err(SqlError::new(state::LOST, message))
    }

    /// Computes the list, or the lost rows of it, and what the statement returns. The view ends with it: a commit would
    /// keep old versions for it.
    fn compute(
        &self,
        again: &mut Again<'_>,
        batch: &mut Batch,
        lost: Option<&[Vec<u8>]>,
        returned: Option<&mut Returning>,
    ) -> Result<Returned, SqlError> {
        // Within a transaction there is no commit yet that would find what a row breaks.
        let early = self.core.in_transaction();
        let view = self.core.view();
        match again {
            Again::Insert(plan) => plan.compute(self, &view, batch, early || lost.is_some())?,
            Again::Merge(plan) => plan.compute(self, &view, batch, early || lost.is_some())?,
            // No keys: all rows are to be found again, as for those that are returned.
            Again::Change(plan) => {
                plan.compute(self, &view, batch, lost.filter(|keys| !keys.is_empty()))?;
            }
        }
        if early && let Some((constraint, row)) = batch.broken(&view)? {
            if !again.overlaid() {
                return Err(taken(self, constraint, batch.values_of(row)).of_row(row));
            }
            // The statement looked for rows in its way and met none: this one came since.
            batch.note_outrun();
        }
        match returned {
            Some(returning) if !batch.is_outrun() => {
                self.core.sight.lend(&view, || returning.evaluate(self, batch))
            }
            _ => Ok(Vec::new()),
        }
    }

    /// What the store refused for a value that another row has.
    fn taken_in(&self, batch: &Batch, index: &str, write: usize) -> SqlError {
        let at = self.table.indexes().iter().position(|own| own.name() == index);
        let values = batch.values_of(write);
        at.map_or_else(|| SqlError::unique(index), |at| taken(self, Constraint::Index(at), values))
    }

    /// Runs a part of the statement with the parameters of the whole.
    pub(crate) fn query(
        &self,
        statement: &mut Statement,
        row: &mut dyn FnMut(&Row<'_>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        self.core.run(statement, self.parameters, row)
    }
}

/// A refusal of the store, with what it cannot know.
pub(crate) fn refused(table: &Table, error: WriteError) -> SqlError {
    match error {
        WriteError::NotNull(column) => SqlError::null_value(table.def().own_name(), &column),
        WriteError::TableGone => SqlError::unknown_table(table.name()),
        WriteError::Check(name) => SqlError::check(table.def().own_name(), &name),
        other => other.into(),
    }
}

impl Returning {
    /// What the statement returns for the rows of its list, before the list is applied: an error here refuses it.
    fn evaluate(&mut self, run: &Run<'_>, batch: &mut Batch) -> Result<Returned, SqlError> {
        if self.numbers {
            batch.number(run.core.store.reserve_cas());
        }
        let rows: Vec<ListRow> = batch.take_returned();
        run.core.sight.set_list(NEW_ROWS, rows);
        let mut returned = Vec::new();
        let result = run.query(&mut self.statement, &mut |row| {
            returned.push((0..row.columns()).map(|column| row.value(column).to_owned()).collect());
            Ok(())
        });
        run.core.sight.take_list(NEW_ROWS);
        result.map(|()| returned)
    }
}
