//! Aggregates over whole numbers.

use store::value::ValueRef;

use super::expr::{Beyond, Term};
use super::scope::{Given, Place};

/// An aggregate function and what it is of.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Aggregate {
    /// `count(*)`
    Rows,
    /// `count(column)`, whatever the column holds.
    Present(Place),
    Of(Function, Term),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Count,
    Sum,
    Total,
    Average,
    Min,
    Max,
}

/// How far an aggregate has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Running {
    /// Rows, or values that are not NULL.
    count: i64,
    /// Their sum, or the extreme one of them.
    value: i64,
}

impl Aggregate {
    /// The column whose least or greatest value is asked for.
    pub(super) fn extreme(&self) -> Option<Place> {
        match self {
            Self::Of(Function::Min | Function::Max, Term::Column(place)) => Some(*place),
            _ => None,
        }
    }

    /// Takes a row in.
    #[inline]
    pub(super) fn step(&self, running: &mut Running, given: Given<'_>) -> Result<(), Beyond> {
        match self {
            Self::Rows => running.count += 1,
            Self::Present(place) => {
                running.count += i64::from(given.column(*place) != ValueRef::Null);
            }
            Self::Of(function, term) => {
                if let Some(value) = term.whole(given)? {
                    function.step(running, value)?;
                }
            }
        }
        Ok(())
    }

    /// What it comes to.
    pub(super) fn result(&self, running: Running) -> ValueRef<'static> {
        match self {
            Self::Rows | Self::Present(_) => ValueRef::Integer(running.count),
            Self::Of(function, _) => function.result(running),
        }
    }
}

impl Function {
    /// The function of this name.
    pub(super) fn of(name: &str) -> Option<Self> {
        let all = [
            ("count", Self::Count),
            ("sum", Self::Sum),
            ("total", Self::Total),
            ("avg", Self::Average),
            ("min", Self::Min),
            ("max", Self::Max),
        ];
        all.into_iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, function)| function)
    }

    #[inline]
    fn step(self, running: &mut Running, value: i64) -> Result<(), Beyond> {
        let Running { count, value: so_far } = running;
        match self {
            // What overflows is an error of `sum` and a float of the others: SQLite's to say.
            Self::Sum | Self::Total | Self::Average => *so_far = so_far.checked_add(value).ok_or(Beyond)?,
            Self::Min if *count == 0 || value < *so_far => *so_far = value,
            Self::Max if *count == 0 || value > *so_far => *so_far = value,
            Self::Count | Self::Min | Self::Max => {}
        }
        *count += 1;
        Ok(())
    }

    fn result(self, Running { count, value }: Running) -> ValueRef<'static> {
        match self {
            Self::Count => ValueRef::Integer(count),
            Self::Total => ValueRef::Real(value as f64),
            _ if count == 0 => ValueRef::Null,
            Self::Average => ValueRef::Real(value as f64 / count as f64),
            Self::Sum | Self::Min | Self::Max => ValueRef::Integer(value),
        }
    }
}
