//! Whole-number arithmetic over the columns of a row, and conditions on it, as SQLite computes them.

use sqlite3_parser::ast::{Expr, Literal, Operator, UnaryOperator};
use store::definition::ColumnKind;
use store::value::{Value, ValueRef};

use super::scope::{Given, Place, Scope};
use crate::write::{Operand, operand};

/// It is SQLite's to compute: the result is no whole number, or what it is made of is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beyond;

/// A whole number, or NULL.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Number {
    Column(Place),
    Value(Operand),
    Negated(Box<Self>),
    Computed(Arithmetic, Box<[Self; 2]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// What is true, false or unknown of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    Compared(Comparison, Number, Number),
    IsNull(Number),
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

impl Number {
    /// `None`: something else may be in it.
    pub(super) fn of(scope: &Scope, expression: &Expr<'_>) -> Option<Self> {
        if let Some(place) = scope.place(expression) {
            let kind = scope.table(place.side)?.def().columns[place.column].kind;
            return (kind == ColumnKind::Integer).then_some(Self::Column(place));
        }
        if let Some(operand) = operand(expression) {
            // A literal that is none would only be found out row by row.
            let may_be =
                !matches!(operand, Operand::Literal(Value::Real(_) | Value::Text(_) | Value::Blob(_)));
            return may_be.then_some(Self::Value(operand));
        }
        let inner = |expression| Self::of(scope, expression);
        match expression {
            Expr::Parenthesized(one) if one.len() == 1 => inner(one.first()?),
            Expr::Unary(UnaryOperator::Negative, of) => Some(Self::Negated(Box::new(inner(of)?))),
            Expr::Binary(left, operator, right) => {
                let arithmetic = match operator {
                    Operator::Add => Arithmetic::Add,
                    Operator::Subtract => Arithmetic::Subtract,
                    Operator::Multiply => Arithmetic::Multiply,
                    Operator::Divide => Arithmetic::Divide,
                    Operator::Modulus => Arithmetic::Remainder,
                    _ => return None,
                };
                Some(Self::Computed(arithmetic, Box::new([inner(left)?, inner(right)?])))
            }
            _ => None,
        }
    }

    #[inline]
    pub(super) fn value(&self, given: Given<'_>) -> Result<Option<i64>, Beyond> {
        match self {
            Self::Column(place) => whole(given.column(*place)),
            Self::Value(operand) => whole(operand.value(given.parameters).as_ref()),
            Self::Negated(of) => match of.value(given)? {
                Some(value) => value.checked_neg().map(Some).ok_or(Beyond),
                None => Ok(None),
            },
            Self::Computed(arithmetic, of) => {
                let [left, right] = &**of;
                match (left.value(given)?, right.value(given)?) {
                    (Some(left), Some(right)) => arithmetic.of(left, right),
                    _ => Ok(None),
                }
            }
        }
    }

    /// Whether a column that `is` tells is in it.
    pub(super) fn reads(&self, is: &dyn Fn(Place) -> bool) -> bool {
        match self {
            Self::Column(place) => is(*place),
            Self::Value(_) => false,
            Self::Negated(of) => of.reads(is),
            Self::Computed(_, of) => of.iter().any(|of| of.reads(is)),
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

impl Arithmetic {
    /// What overflows is a float to SQLite, and what is divided by zero NULL.
    #[inline]
    fn of(self, left: i64, right: i64) -> Result<Option<i64>, Beyond> {
        let result = match self {
            Self::Add => left.checked_add(right),
            Self::Subtract => left.checked_sub(right),
            Self::Multiply => left.checked_mul(right),
            Self::Divide | Self::Remainder if right == 0 => return Ok(None),
            Self::Divide => left.checked_div(right),
            Self::Remainder => Some(left.wrapping_rem(right)),
        };
        result.map(Some).ok_or(Beyond)
    }
}

impl Test {
    /// `None`: something else is in it.
    pub(super) fn of(scope: &Scope, expression: &Expr<'_>) -> Option<Self> {
        let number = |expression| Number::of(scope, expression);
        let test = |expression| Self::of(scope, expression);
        let not = |test| Self::Not(Box::new(test));
        let less = |left, right| Self::Compared(Comparison::Less, left, right);
        let up_to = |left, right| Self::Compared(Comparison::LessOrEqual, left, right);
        Some(match expression {
            Expr::Parenthesized(one) if one.len() == 1 => test(one.first()?)?,
            Expr::Unary(UnaryOperator::Not, of) => not(test(of)?),
            Expr::IsNull(of) | Expr::Binary(of, Operator::Is, Expr::Literal(Literal::Null)) => {
                Self::IsNull(number(of)?)
            }
            Expr::NotNull(of) | Expr::Binary(of, Operator::IsNot, Expr::Literal(Literal::Null)) => {
                not(Self::IsNull(number(of)?))
            }
            Expr::Between { lhs, not: negated, start, end } => {
                let bounds = [up_to(number(start)?, number(lhs)?), up_to(number(lhs)?, number(end)?)];
                let between = Self::And(Box::new(bounds));
                if *negated { not(between) } else { between }
            }
            Expr::Binary(left, Operator::And, right) => Self::And(Box::new([test(left)?, test(right)?])),
            Expr::Binary(left, Operator::Or, right) => Self::Or(Box::new([test(left)?, test(right)?])),
            Expr::Binary(left, operator, right) => {
                let (left, right) = (number(left)?, number(right)?);
                match operator {
                    Operator::Equals => Self::Compared(Comparison::Equal, left, right),
                    Operator::NotEquals => not(Self::Compared(Comparison::Equal, left, right)),
                    Operator::Less => less(left, right),
                    Operator::LessEquals => up_to(left, right),
                    Operator::Greater => less(right, left),
                    Operator::GreaterEquals => up_to(right, left),
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    /// `None` is unknown.
    pub(super) fn holds(&self, given: Given<'_>) -> Result<Option<bool>, Beyond> {
        Ok(match self {
            Self::Compared(comparison, left, right) => match (left.value(given)?, right.value(given)?) {
                (Some(left), Some(right)) => Some(match comparison {
                    Comparison::Equal => left == right,
                    Comparison::Less => left < right,
                    Comparison::LessOrEqual => left <= right,
                }),
                _ => None,
            },
            Self::IsNull(of) => Some(of.value(given)?.is_none()),
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

    /// Whether a column that `is` tells is in it.
    pub(super) fn reads(&self, is: &dyn Fn(Place) -> bool) -> bool {
        match self {
            Self::Compared(_, left, right) => left.reads(is) || right.reads(is),
            Self::IsNull(of) => of.reads(is),
            Self::Not(of) => of.reads(is),
            Self::And(of) | Self::Or(of) => of.iter().any(|of| of.reads(is)),
        }
    }
}
