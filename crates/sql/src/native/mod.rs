//! Statements that need no SQLite.
//!
//! [`recognise`] reads a statement and finds out whether it is of a form that is run here; what is not goes to SQLite.
//! [`access`] leads to its rows, [`expr`] computes their values as SQLite would, and what comes of them is columns,
//! groups or a count ([`query`]), rows that go ([`delete`]), or rows that are written ([`update`], [`single`],
//! [`bulk`]).
//!
//! A statement means here exactly what SQLite makes of it. Where a value turns up whose meaning is SQLite's to say,
//! nothing was given or written yet, and the statement's general plan takes over: [`crate::plan::Plan::Native`].

mod access;
mod aggregate;
mod assign;
mod bulk;
mod delete;
mod expr;
mod grouping;
mod groups;
mod join;
mod query;
mod recognise;
mod scope;
mod single;
mod source;
mod update;
mod values;

use store::View;
use store::value::Value;

use bulk::{BulkPlan, Tuples};
use delete::Deletion;
use query::Query;

pub(crate) use recognise::{of_change, of_deletion, of_query};
use single::SinglePlan;
use update::Update;

use crate::core::Core;
use crate::describe::ColumnDescription;
use crate::done::{Done, RowSink};
use crate::error::SqlError;
use crate::journal::Reach;
use crate::write::{Given, Operand};

/// A statement that needs no SQLite.
#[derive(Debug)]
pub(crate) struct NativePlan {
    /// How many parameters it takes.
    pub(crate) parameters: usize,
    job: Job,
}

#[derive(Debug)]
enum Job {
    Query(Box<Query>),
    Delete(Box<Deletion>),
    Update(Box<Update>),
    /// One row by its key, or the rows of an `INSERT`.
    Write {
        single: Option<Box<SinglePlan>>,
        bulk: Option<Box<BulkPlan>>,
    },
}

/// What the general plan of a statement knows about it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known<'g> {
    /// Its columns as clients see them.
    pub(crate) columns: Option<&'g [ColumnDescription]>,
    /// The rows of its `VALUES`.
    pub(crate) values: &'g [Vec<Operand>],
}

/// What a run came to.
#[derive(Debug)]
pub(crate) enum Ran<'v> {
    Done(Done),
    /// It is SQLite's to compute, through the view that was begun, if one was. Nothing was given or written.
    Left(Option<View<'v>>),
}

impl NativePlan {
    fn new(parameters: usize, job: Job) -> Self {
        Self { parameters, job }
    }

    /// What it is called; the general plan of one that writes rows says that.
    pub(crate) fn tag(&self) -> &'static str {
        match &self.job {
            Job::Query(_) => "SELECT",
            Job::Delete(_) => delete::TAG,
            Job::Update(_) => update::TAG,
            Job::Write { single: Some(single), .. } => single.tag(),
            Job::Write { single: None, .. } => "INSERT",
        }
    }

    /// Whether SQLite has to compile the statement before it runs here, to say what its columns are or what is wrong
    /// with it.
    pub(crate) fn needs_general(&self) -> bool {
        match &self.job {
            Job::Query(query) => query.columns.is_none(),
            Job::Delete(_) => false,
            Job::Update(_) | Job::Write { .. } => true,
        }
    }

    /// How many columns the rows of a query have.
    pub(crate) fn width(&self) -> Option<usize> {
        let Job::Query(query) = &self.job else { return None };
        Some(query.width())
    }

    /// The columns of its rows, where it knows them by itself.
    pub(crate) fn columns(&self) -> Option<&[ColumnDescription]> {
        let Job::Query(query) = &self.job else { return None };
        query.columns.as_deref()
    }

    pub(crate) fn writes(&self) -> bool {
        !matches!(self.job, Job::Query(_))
    }

    /// What it shows of its table, where the general plan is not asked.
    pub(crate) fn reach(&self) -> Reach {
        match &self.job {
            Job::Delete(deletion) => Reach::Blind(deletion.table.id()),
            _ => Reach::Reads(None),
        }
    }

    /// Whether it runs here with these parameters, as far as that is known before a row was looked at.
    pub(crate) fn runs_with(&self, core: &Core, parameters: &[Value]) -> bool {
        match &self.job {
            Job::Query(query) => query.runs_with(core, parameters),
            Job::Delete(deletion) => deletion.is_plain(parameters),
            Job::Update(update) => update.runs_with(parameters),
            Job::Write { single, .. } => {
                !core.in_transaction() || single.as_ref().is_some_and(|single| single.runs_in(core))
            }
        }
    }

    pub(crate) fn run<'c>(
        &mut self,
        core: &'c Core,
        given: Given<'_>,
        known: Known<'_>,
        out: &mut dyn RowSink,
    ) -> Result<Ran<'c>, SqlError> {
        let left = |done: Option<Done>| done.map_or(Ran::Left(None), Ran::Done);
        match (&mut self.job, given) {
            (Job::Query(query), Given::Parameters(parameters)) => {
                query.run(core, parameters, known.columns, out)
            }
            (Job::Delete(deletion), Given::Parameters(parameters)) => deletion.run(core, parameters),
            (Job::Update(update), Given::Parameters(parameters)) => update.run(core, parameters),
            (Job::Write { single, bulk }, Given::Parameters(parameters)) => {
                let mut done = None;
                if let Some(single) = single {
                    done = single.run(core, parameters)?;
                }
                // What one row's plan declines, as a value that is to be converted, this one may take.
                if let Some(bulk) = bulk
                    && done.is_none()
                {
                    done = bulk.run(core, parameters, &Tuples::Operands(known.values))?;
                }
                Ok(left(done))
            }
            (Job::Write { bulk: Some(bulk), .. }, Given::Rows(rows)) => {
                bulk.run(core, &[], &Tuples::Rows(rows)).map(left)
            }
            _ => Ok(Ran::Left(None)),
        }
    }
}
