//! Aggregates over whole and decimal numbers.

use pgcatalog::function::Sum;
use store::scalar::numeric;
use store::value::{Value, ValueRef};

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
    /// Of a column of decimal or whole numbers.
    Decimal(Decimal, Place),
}

/// What is exact of decimal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decimal {
    Sum,
    Average,
}

impl Decimal {
    /// The function of this name.
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            "numeric_sum" => Some(Self::Sum),
            "numeric_avg" => Some(Self::Average),
            _ => None,
        }
    }

    /// Takes a value in. What 128 bits do not hold, and what has no digits, is SQLite's.
    #[inline]
    fn step(running: &mut Running, value: ValueRef<'_>) -> Result<(), Beyond> {
        let number = match value {
            ValueRef::Null => return Ok(()),
            ValueRef::Integer(integer) => (i128::from(integer), 0),
            ValueRef::Text(text) => numeric::small(text).ok_or(Beyond)?,
            ValueRef::Real(_) | ValueRef::Blob(_) => return Err(Beyond),
        };
        let scale = running.scale.max(number.1);
        if scale > running.scale {
            running.value = numeric::at_scale((running.value, running.scale), scale).ok_or(Beyond)?;
            running.scale = scale;
        }
        let units =
            if scale == number.1 { number.0 } else { numeric::at_scale(number, scale).ok_or(Beyond)? };
        running.value = running.value.checked_add(units).ok_or(Beyond)?;
        running.count += 1;
        Ok(())
    }

    fn result(self, Running { count, value, scale }: Running) -> Result<Value, Beyond> {
        let sum = Sum::of((value, scale), count);
        match self {
            Self::Sum => sum.total(),
            Self::Average => sum.mean(),
        }
        .map_err(|_| Beyond)
    }
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
    value: i128,
    /// Decimal numbers are counted in units of this power of ten.
    scale: u32,
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
            Self::Decimal(_, place) => Decimal::step(running, given.column(*place))?,
        }
        Ok(())
    }

    /// What it comes to.
    pub(super) fn result(&self, running: Running) -> Result<Value, Beyond> {
        match self {
            Self::Rows | Self::Present(_) => Ok(Value::Integer(running.count)),
            Self::Of(function, _) => Ok(function.result(running)),
            Self::Decimal(function, _) => function.result(running),
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
        let Running { count, value: so_far, .. } = running;
        let value = i128::from(value);
        match self {
            // What overflows is an error of `sum` and a float of the others: SQLite's to say.
            Self::Sum | Self::Total | Self::Average => {
                *so_far += value;
                i64::try_from(*so_far).map_err(|_| Beyond)?;
            }
            Self::Min if *count == 0 || value < *so_far => *so_far = value,
            Self::Max if *count == 0 || value > *so_far => *so_far = value,
            Self::Count | Self::Min | Self::Max => {}
        }
        *count += 1;
        Ok(())
    }

    fn result(self, Running { count, value, .. }: Running) -> Value {
        match self {
            Self::Count => Value::Integer(count),
            Self::Total => Value::Real(value as f64),
            _ if count == 0 => Value::Null,
            Self::Average => Value::Real(value as f64 / count as f64),
            // No step lets it leave 64 bits.
            Self::Sum | Self::Min | Self::Max => i64::try_from(value).map_or(Value::Null, Value::Integer),
        }
    }
}
