//! A compiled statement: by whom it is run, and what it tells of itself.

use store::value::Value;

use crate::describe::OwnedColumn;
use crate::direct::DirectPlan;
use crate::error::{SqlError, state};
use crate::executor::{ComputedBy, Core, Done, RowSink, check_count};
use crate::journal::Reach;
use crate::query::ReadPlan;
use crate::write::{Given, WritePlan};

/// A compiled statement.
#[derive(Debug)]
pub(crate) enum Plan {
    /// SQLite runs it as it stands.
    Read(ReadPlan),
    /// Its rows are computed, then applied.
    Write(Box<WritePlan>),
    /// It needs no SQLite.
    Direct(Box<DirectPlan>),
}

impl Plan {
    /// How many parameters it takes, and what it is.
    pub(crate) fn head(&self) -> (usize, &'static str) {
        match self {
            Self::Read(plan) => (plan.parameters, plan.tag),
            Self::Write(plan) => (plan.parameters, plan.tag()),
            Self::Direct(plan) => (plan.parameters, plan.tag()),
        }
    }

    /// The columns of its rows; `None` when it returns none.
    pub(crate) fn columns(&self) -> Option<&[OwnedColumn]> {
        match self {
            Self::Read(plan) => Some(&plan.columns),
            Self::Write(plan) => plan.columns(),
            Self::Direct(plan) => plan.columns(),
        }
    }

    /// The same, to tell them their types.
    pub(crate) fn columns_mut(&mut self) -> Option<&mut [OwnedColumn]> {
        match self {
            Self::Read(plan) => Some(&mut plan.columns),
            Self::Write(plan) => plan.returning.as_mut().map(|returning| returning.columns.as_mut_slice()),
            // These are all columns of tables.
            Self::Direct(_) => None,
        }
    }

    /// Whether a broken constraint ends the transaction.
    pub(crate) fn rolls_back(&self) -> bool {
        matches!(self, Self::Write(plan) if plan.rolls_back)
    }

    /// What it shows of tables.
    pub(crate) fn reach(&self) -> Reach {
        match self {
            Self::Read(_) => Reach::Reads(None),
            Self::Write(plan) => plan.reach(),
            Self::Direct(plan) => plan.reach(),
        }
    }

    /// What it is called, if it writes.
    pub(crate) fn writes(&self) -> Option<&'static str> {
        match self {
            Self::Read(_) => None,
            Self::Write(plan) => Some(plan.tag()),
            Self::Direct(plan) => plan.writes().then(|| plan.tag()),
        }
    }

    /// Who runs it with these parameters, as far as that is known before a row was looked at.
    pub(crate) fn computed_by(&self, core: &Core, parameters: &[Value]) -> ComputedBy {
        match self {
            Self::Read(plan) => plan.computed_by(core, parameters),
            Self::Write(plan) => plan.computed_by(core),
            Self::Direct(plan) => plan.computed_by(parameters),
        }
    }

    pub(crate) fn run(
        &mut self,
        core: &Core,
        given: Given<'_>,
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let parameters = match (&mut *self, given) {
            // It was asked whether it takes them.
            (Self::Write(plan), Given::Rows(_)) => return plan.run(core, given, out),
            (_, Given::Rows(_)) => {
                return Err(SqlError::new(state::INTERNAL, "a statement that takes no rows was given some"));
            }
            (_, Given::Parameters(parameters)) => parameters,
        };
        check_count(parameters.len(), self.head().0)?;
        match self {
            Self::Read(plan) => plan.run(core, parameters, out),
            Self::Write(plan) => plan.run(core, given, out),
            Self::Direct(plan) => plan.run(core, parameters, out),
        }
    }
}
