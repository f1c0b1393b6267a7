//! A compiled statement: which executor runs it, and what it reports about itself.

pub(crate) mod compound;
pub(crate) mod explain;

use dialect::lowered::Write;
use store::definition::SqlType;
use store::value::Value;

use compound::Compound;
use explain::{EXPLAIN, Explained};

use crate::core::{Core, check_count};
use crate::describe::ColumnDescription;
use crate::done::{ComputedBy, Done, RowSink};
use crate::error::{SqlError, state};
use crate::journal::Reach;
use crate::native::{Known, NativePlan, Ran};
use crate::query::ReadPlan;
use crate::text::rows::Rows;
use crate::write::{self, Given, WritePlan};

/// A compiled statement.
#[derive(Debug)]
pub(crate) enum Plan {
    /// SQLite runs it as it stands.
    Read(ReadPlan),
    /// Its rows are computed, then applied.
    Write(Box<WritePlan>),
    /// It needs no SQLite, or only for values that turn up while it runs.
    Native { native: Box<NativePlan>, general: General },
    /// What is shown is how another is run.
    Explained(Box<Explained>),
    /// Several statements and one commit.
    Compound(Box<Compound>),
}

/// The same statement by SQLite.
#[derive(Debug)]
pub(crate) enum General {
    /// A query, compiled when it is needed.
    Text(String),
    /// What writes, compiled when it is needed.
    Pieces(Box<Write>),
    Ready(Box<Plan>),
}

impl General {
    fn plan(&self) -> Option<&Plan> {
        match self {
            Self::Text(_) | Self::Pieces(_) => None,
            Self::Ready(plan) => Some(plan),
        }
    }

    /// What it knows of the statement.
    fn known(&self) -> Known<'_> {
        match self.plan() {
            Some(Plan::Read(plan)) => Known { columns: Some(&plan.columns), values: &[] },
            Some(Plan::Write(plan)) => Known { columns: None, values: plan.values() },
            _ => Known::default(),
        }
    }

    /// The plan, compiled.
    fn ready(&mut self, core: &Core) -> Result<&mut Plan, SqlError> {
        let compiled = match self {
            Self::Text(sql) => Some(Plan::Read(ReadPlan::new(core, sql, "SELECT")?)),
            Self::Pieces(write) => Some(Plan::Write(Box::new(write::build(core, write)?))),
            Self::Ready(_) => None,
        };
        if let Some(plan) = compiled {
            *self = Self::Ready(Box::new(plan));
        }
        match self {
            Self::Ready(plan) => Ok(plan),
            Self::Text(_) | Self::Pieces(_) => {
                Err(SqlError::new(state::INTERNAL, "a statement was not compiled"))
            }
        }
    }
}

impl Plan {
    /// How many parameters it takes, and what it is.
    pub(crate) fn head(&self) -> (usize, &'static str) {
        match self {
            Self::Read(plan) => (plan.parameters, plan.tag),
            Self::Write(plan) => (plan.parameters, plan.tag()),
            Self::Native { native, .. } => (native.parameters, native.tag()),
            Self::Explained(explained) => (explained.parameters(), EXPLAIN),
            Self::Compound(compound) => (compound.parameters, compound.tag()),
        }
    }

    /// The columns of its rows; `None` when it returns none.
    pub(crate) fn columns(&self) -> Option<&[ColumnDescription]> {
        match self {
            Self::Read(plan) => Some(&plan.columns),
            Self::Write(plan) => plan.columns(),
            Self::Native { native, general } => native.columns().or_else(|| general.plan()?.columns()),
            Self::Explained(explained) => Some(explained.columns()),
            Self::Compound(compound) => compound.columns(),
        }
    }

    /// The same, to set their types.
    pub(crate) fn columns_mut(&mut self) -> Option<&mut [ColumnDescription]> {
        match self {
            Self::Read(plan) => Some(&mut plan.columns),
            Self::Write(plan) => plan.returning.as_mut().map(|returning| returning.columns.as_mut_slice()),
            Self::Native { general: General::Ready(plan), .. } => plan.columns_mut(),
            // These are all columns of tables, or known already.
            Self::Native { .. } | Self::Explained(_) | Self::Compound(_) => None,
        }
    }

    /// Whether a broken constraint ends the transaction.
    pub(crate) fn rolls_back(&self) -> bool {
        match self {
            Self::Read(_) | Self::Compound(_) => false,
            Self::Write(plan) => plan.rolls_back,
            Self::Native { general, .. } => general.plan().is_some_and(Self::rolls_back),
            Self::Explained(explained) => explained.runs().is_some_and(Self::rolls_back),
        }
    }

    /// What it shows of tables.
    pub(crate) fn reach(&self) -> Reach {
        match self {
            Self::Read(_) => Reach::Reads(None),
            Self::Write(plan) => plan.reach(),
            Self::Native { native, general } => general.plan().map_or_else(|| native.reach(), Self::reach),
            Self::Compound(compound) => compound.reach(),
            // It shows how many rows there are.
            Self::Explained(explained) => match explained.runs().map(Self::reach) {
                Some(Reach::Blind(table)) => Reach::Reads(Some(table)),
                reach => reach.unwrap_or(Reach::Reads(None)),
            },
        }
    }

    /// What it is called, if it writes.
    pub(crate) fn writes(&self) -> Option<&'static str> {
        match self {
            Self::Read(_) => None,
            Self::Write(plan) => Some(plan.tag()),
            Self::Native { native, .. } => native.writes().then(|| native.tag()),
            Self::Explained(explained) => explained.runs().and_then(Self::writes),
            Self::Compound(compound) => compound.writes(),
        }
    }

    /// Whether it is an `INSERT` in which these rows may stand in the place of its one row of parameters.
    pub(crate) fn takes(&self, rows: &Rows<'_>) -> bool {
        match self {
            Self::Read(_) | Self::Explained(_) | Self::Compound(_) => false,
            Self::Write(plan) => plan.takes(rows),
            Self::Native { general, .. } => general.plan().is_some_and(|plan| plan.takes(rows)),
        }
    }

    /// Which values of such rows go to columns of these types.
    pub(crate) fn values_of(&self, types: &[SqlType]) -> Vec<usize> {
        match self {
            Self::Read(_) | Self::Explained(_) | Self::Compound(_) => Vec::new(),
            Self::Write(plan) => plan.values_of(types),
            Self::Native { general, .. } => {
                general.plan().map(|plan| plan.values_of(types)).unwrap_or_default()
            }
        }
    }

    /// Who runs it with these parameters, as far as that is known before a row was looked at.
    pub(crate) fn computed_by(&self, core: &Core, parameters: &[Value]) -> ComputedBy {
        match self {
            Self::Native { native, .. } if native.runs_with(core, parameters) => ComputedBy::Native,
            _ => ComputedBy::Sqlite,
        }
    }

    pub(crate) fn run(
        &mut self,
        core: &Core,
        given: Given<'_>,
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        if let Given::Parameters(parameters) = given {
            check_count(parameters.len(), self.head().0)?;
        }
        match self {
            Self::Native { native, general } => run_native(native, general, core, given, out),
            Self::Compound(compound) if let Given::Parameters(parameters) = given => {
                compound.run(core, parameters, out)
            }
            Self::Explained(explained) if let Given::Parameters(parameters) = given => {
                explained.run(core, parameters, out)
            }
            general => general.run_from(core, None, given, out),
        }
    }

    /// Runs it by SQLite, through a view that was begun or a new one.
    fn run_from<'c>(
        &mut self,
        core: &'c Core,
        view: Option<store::View<'c>>,
        given: Given<'_>,
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        match (self, given) {
            (Self::Read(plan), Given::Parameters(parameters)) => plan.run_from(core, view, parameters, out),
            (Self::Write(plan), _) => {
                // Its own views end before its commit, which would otherwise keep old versions for this one.
                drop(view);
                plan.run(core, given, out)
            }
            // It was asked whether it takes rows, and no general plan is a native one.
            _ => Err(SqlError::new(state::INTERNAL, "a statement was given what it does not take")),
        }
    }
}

/// Runs a statement without SQLite, and by its general plan where that has to say what it means.
fn run_native(
    native: &mut NativePlan,
    general: &mut General,
    core: &Core,
    given: Given<'_>,
    out: &mut dyn RowSink,
) -> Result<Done, SqlError> {
    let row: Vec<Value>;
    let given = match given {
        Given::Rows(rows) if rows.len() == 1 => {
            row = (0..rows.width).map(|at| rows.value(0, at).to_owned()).collect();
            Given::Parameters(&row)
        }
        given => given,
    };
    match native.run(core, given, general.known(), out) {
        Ok(Ran::Done(done)) => Ok(done),
        Ok(Ran::Left(view)) => general.ready(core)?.run_from(core, view, given, out),
        Err(error) => {
            if native.writes() {
                core.sight.note_failed(0);
            }
            Err(error)
        }
    }
}
