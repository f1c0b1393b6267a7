//! Arithmetic, conditions and aggregates.

use sqlite3_parser::ast::{Expr, Literal, Operator, UnaryOperator};
use store::definition::ColumnKind;

use super::super::aggregate::{Aggregate, Function};
use super::super::expr::{Arithmetic, Comparison, Term, Test};
use super::super::scope::{Place, Scope, Side};
use super::names::{bare, operand, place};
use crate::text::token::unquoted;

/// A value. `excluded`: the row that was to be inserted has this name.
pub(super) fn term(scope: &Scope, expression: &Expr<'_>, excluded: bool) -> Option<Term> {
    let expression = bare(expression);
    if let Some(place) = place(scope, expression) {
        return Some(Term::Column(place));
    }
    if let Some(operand) = operand(expression) {
        return Some(Term::Value(operand));
    }
    let inner = |expression| term(scope, expression, excluded);
    match expression {
        Expr::Qualified(of, name) if excluded && unquoted(of.0).eq_ignore_ascii_case("excluded") => {
            let column = scope.first.table.def().column_index(&unquoted(name.0))?;
            Some(Term::Column(Place { side: Side::Second, column }))
        }
        Expr::Unary(UnaryOperator::Negative, of) => Some(Term::Negated(Box::new(inner(of)?))),
        Expr::Binary(left, operator, right) => {
            let arithmetic = match operator {
                Operator::Add => Arithmetic::Add,
                Operator::Subtract => Arithmetic::Subtract,
                Operator::Multiply => Arithmetic::Multiply,
                Operator::Divide => Arithmetic::Divide,
                Operator::Modulus => Arithmetic::Remainder,
                _ => return None,
            };
            Some(Term::Computed(arithmetic, Box::new([inner(left)?, inner(right)?])))
        }
        _ => None,
    }
}

/// A whole number or NULL; `None`: something else may be in it.
pub(super) fn number(scope: &Scope, expression: &Expr<'_>) -> Option<Term> {
    term(scope, expression, false).filter(|term| is_whole(scope, term))
}

/// Whether a term is a whole number or NULL, as far as the text tells.
pub(super) fn is_whole(scope: &Scope, term: &Term) -> bool {
    term.is_whole(&|place| {
        let table = scope.table(place.side);
        table.is_some_and(|table| table.def().columns[place.column].kind == ColumnKind::Integer)
    })
}

/// A condition on whole numbers; `None`: something else is in it.
pub(super) fn test(scope: &Scope, expression: &Expr<'_>) -> Option<Test> {
    let number = |expression| number(scope, expression);
    let test = |expression| test(scope, expression);
    let not = |test| Test::Not(Box::new(test));
    let less = |left, right| Test::Compared(Comparison::Less, left, right);
    let up_to = |left, right| Test::Compared(Comparison::LessOrEqual, left, right);
    Some(match bare(expression) {
        Expr::Unary(UnaryOperator::Not, of) => not(test(of)?),
        Expr::IsNull(of) | Expr::Binary(of, Operator::Is, Expr::Literal(Literal::Null)) => {
            Test::IsNull(number(of)?)
        }
        Expr::NotNull(of) | Expr::Binary(of, Operator::IsNot, Expr::Literal(Literal::Null)) => {
            not(Test::IsNull(number(of)?))
        }
        Expr::Between { lhs, not: negated, start, end } => {
            let between = up_to(number(start)?, number(lhs)?).and(up_to(number(lhs)?, number(end)?));
            if *negated { not(between) } else { between }
        }
        Expr::Binary(left, Operator::And, right) => test(left)?.and(test(right)?),
        Expr::Binary(left, Operator::Or, right) => Test::Or(Box::new([test(left)?, test(right)?])),
        Expr::Binary(left, operator, right) => {
            let (left, right) = (number(left)?, number(right)?);
            match operator {
                Operator::Equals => Test::Compared(Comparison::Equal, left, right),
                Operator::NotEquals => not(Test::Compared(Comparison::Equal, left, right)),
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

/// An aggregate of whole numbers; `None`: it is none of these.
pub(super) fn aggregate(scope: &Scope, expression: &Expr<'_>) -> Option<Aggregate> {
    match bare(expression) {
        Expr::FunctionCallStar { name, filter_over: None } => {
            unquoted(name.0).eq_ignore_ascii_case("count").then_some(Aggregate::Rows)
        }
        Expr::FunctionCall {
            name,
            distinctness: None,
            args: Some([of]),
            order_by: None,
            filter_over: None,
        } => {
            let function = Function::of(&unquoted(name.0))?;
            match (function, place(scope, of)) {
                (Function::Count, Some(place)) => Some(Aggregate::Present(place)),
                _ => Some(Aggregate::Of(function, number(scope, of)?)),
            }
        }
        _ => None,
    }
}
