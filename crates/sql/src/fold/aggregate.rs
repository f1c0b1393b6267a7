//! Aggregates over whole numbers.

use sqlite3_parser::ast::Expr;
use store::value::ValueRef;

use super::number::{Beyond, Number};
use super::scope::{Given, Place, Scope};
use crate::text::token::unquoted;

/// An aggregate function and what it is of.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Aggregate {
    /// `count(*)`
    Rows,
    /// `count(column)`, whatever the column holds.
    Present(Place),
    Of(Function, Number),
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
    /// `None`: it is none of these.
    pub(super) fn of(scope: &Scope, expression: &Expr<'_>) -> Option<Self> {
        match expression {
            Expr::Parenthesized(one) if one.len() == 1 => Self::of(scope, one.first()?),
            Expr::FunctionCallStar { name, filter_over: None } => {
                unquoted(name.0).eq_ignore_ascii_case("count").then_some(Self::Rows)
            }
            Expr::FunctionCall {
                name,
                distinctness: None,
                args: Some([of]),
                order_by: None,
                filter_over: None,
            } => {
                let function = Function::of(&unquoted(name.0))?;
                match (function, scope.place(of)) {
                    (Function::Count, Some(place)) => Some(Self::Present(place)),
                    _ => Some(Self::Of(function, Number::of(scope, of)?)),
                }
            }
            _ => None,
        }
    }

    /// The column whose least or greatest value is asked for.
    pub(super) fn extreme(&self) -> Option<Place> {
        match self {
            Self::Of(Function::Min | Function::Max, Number::Column(place)) => Some(*place),
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
            Self::Of(function, number) => {
                if let Some(value) = number.value(given)? {
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
    fn of(name: &str) -> Option<Self> {
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
