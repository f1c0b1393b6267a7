//! Values, whole-number arithmetic and conditions, as SQLite computes them.

use dialect::lowered::Operator;
use store::value::{Value, ValueRef};

use super::scope::{Given, Place};
use crate::write::Operand;

/// It is SQLite's to compute: the result is no whole number, or what it is made of is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beyond;

/// A value of a row: a column, a value of the statement, or what arithmetic makes of whole numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Term {
    Column(Place),
    Value(Operand),
    Negated(Box<Self>),
    /// By an operator of arithmetic.
    Computed(Operator, Box<[Self; 2]>),
}

/// What is true, false or unknown of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    Compared(Comparison, Term, Term),
    IsNull(Term),
    Not(Box<Self>),
    And(Box<[Self; 2]>),
    Or(Box<[Self; 2]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Less,
    LessOrEqual,
}

impl Term {
    /// What it comes to.
    #[inline]
    pub(super) fn value<'g>(&'g self, given: Given<'g>) -> Result<ValueRef<'g>, Beyond> {
        match self {
            Self::Column(place) => Ok(given.column(*place)),
            Self::Value(operand) => Ok(operand.value(given.parameters).as_ref()),
            computed => Ok(computed.whole(given)?.map_or(ValueRef::Null, ValueRef::Integer)),
        }
    }

    /// What it comes to where that is a whole number; `None` is NULL.
    #[inline]
    pub(super) fn whole(&self, given: Given<'_>) -> Result<Option<i64>, Beyond> {
        match self {
            Self::Column(place) => whole(given.column(*place)),
            Self::Value(operand) => whole(operand.value(given.parameters).as_ref()),
            Self::Negated(of) => match of.whole(given)? {
                Some(value) => value.checked_neg().map(Some).ok_or(Beyond),
                None => Ok(None),
            },
            Self::Computed(operator, of) => {
                let [left, right] = &**of;
                match (left.whole(given)?, right.whole(given)?) {
                    (Some(left), Some(right)) => computed(*operator, left, right),
                    _ => Ok(None),
                }
            }
        }
    }

    /// Whether each of its columns is as `is` wants it, and each literal may be a whole number: one that is none would
    /// only be found out row by row.
    pub(super) fn is_whole(&self, is: &dyn Fn(Place) -> bool) -> bool {
        self.all(&|leaf| match leaf {
            Self::Column(place) => is(*place),
            leaf => !matches!(
                leaf,
                Self::Value(Operand::Literal(Value::Real(_) | Value::Text(_) | Value::Blob(_)))
            ),
        })
    }

    /// Whether a column that `is` means is in it.
    pub(super) fn reads(&self, is: &dyn Fn(Place) -> bool) -> bool {
        !self.all(&|leaf| !matches!(leaf, Self::Column(place) if is(*place)))
    }

    /// Whether all that it is made of is as `is` wants it.
    fn all(&self, is: &dyn Fn(&Self) -> bool) -> bool {
        match self {
            Self::Negated(of) => of.all(is),
            Self::Computed(_, of) => of.iter().all(|of| of.all(is)),
            leaf => is(leaf),
        }
    }
}

/// What a column or a parameter holds, if it is a whole number or NULL.
#[inline]
fn whole(value: ValueRef<'_>) -> Result<Option<i64>, Beyond> {
    match value {
        ValueRef::Integer(value) => Ok(Some(value)),
        ValueRef::Null => Ok(None),
        _ => Err(Beyond),
    }
}

/// What overflows is a float to SQLite, and what is divided by zero an error: both are SQLite's to say.
#[inline]
fn computed(operator: Operator, left: i64, right: i64) -> Result<Option<i64>, Beyond> {
    let result = match operator {
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder if right != 0 => Some(left.wrapping_rem(right)),
        _ => None,
    };
    result.map(Some).ok_or(Beyond)
}

impl Test {
    /// Both.
    pub(super) fn and(self, other: Self) -> Self {
        Self::And(Box::new([self, other]))
    }

    /// `None` is unknown.
    pub(super) fn holds(&self, given: Given<'_>) -> Result<Option<bool>, Beyond> {
        Ok(match self {
            Self::Compared(comparison, left, right) => match (left.whole(given)?, right.whole(given)?) {
                (Some(left), Some(right)) => Some(match comparison {
                    Comparison::Equal => left == right,
                    Comparison::Less => left < right,
                    Comparison::LessOrEqual => left <= right,
                }),
                _ => None,
            },
            Self::IsNull(of) => Some(of.whole(given)?.is_none()),
            Self::Not(of) => of.holds(given)?.map(|holds| !holds),
            Self::And(of) => of[0].decided(&of[1], given, false)?,
            Self::Or(of) => of[0].decided(&of[1], given, true)?,
        })
    }

    /// The word of both where one alone decides by saying `word`, as AND does by false and OR by true.
    fn decided(&self, other: &Self, given: Given<'_>, word: bool) -> Result<Option<bool>, Beyond> {
        let first = self.holds(given)?;
        if first == Some(word) {
            return Ok(first);
        }
        let second = other.holds(given)?;
        Ok(if second == Some(word) { second } else { first.and(second) })
    }

    /// Whether a column that `is` means is in it.
    pub(super) fn reads(&self, is: &dyn Fn(Place) -> bool) -> bool {
        match self {
            Self::Compared(_, left, right) => left.reads(is) || right.reads(is),
            Self::IsNull(of) => of.reads(is),
            Self::Not(of) => of.reads(is),
            Self::And(of) | Self::Or(of) => of.iter().any(|of| of.reads(is)),
        }
    }
}
