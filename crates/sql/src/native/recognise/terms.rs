//! Arithmetic, conditions and aggregates.

use dialect::lowered::{Node, Operator};
use store::definition::ColumnKind;

use super::super::aggregate::{Aggregate, Decimal, Function};
use super::super::expr::{Comparison, Term, Test};
use super::super::scope::{Place, Scope, Side};
use super::names::{any_place, place};
use crate::write::operand;

const ARITHMETIC: &[Operator] =
    &[Operator::Add, Operator::Subtract, Operator::Multiply, Operator::Divide, Operator::Remainder];

/// A value. `excluded`: the row that was to be inserted has this name.
pub(super) fn term(scope: &Scope, expression: &Node, excluded: bool) -> Option<Term> {
    let expression = expression.bare();
    if let Some(place) = place(scope, expression) {
        return Some(Term::Column(place));
    }
    if let Some(operand) = operand(expression) {
        return Some(Term::Value(operand));
    }
    let inner = |expression| term(scope, expression, excluded);
    match expression {
        Node::Column { table: Some(of), name } if excluded && of.eq_ignore_ascii_case("excluded") => {
            let column = scope.first.table.def().column_index(name)?;
            Some(Term::Column(Place { side: Side::Second, column }))
        }
        Node::Negative(of) => Some(Term::Negated(Box::new(inner(of)?))),
        Node::Binary(operator, sides) if ARITHMETIC.contains(operator) => {
            Some(Term::Computed(*operator, Box::new([inner(&sides[0])?, inner(&sides[1])?])))
        }
        _ => None,
    }
}

/// A whole number or NULL; `None`: something else may be in it.
pub(super) fn number(scope: &Scope, expression: &Node) -> Option<Term> {
    term(scope, expression, false).filter(|term| is_whole(scope, term))
}

/// Whether a term is a whole number or NULL, as far as the text says.
pub(super) fn is_whole(scope: &Scope, term: &Term) -> bool {
    term.is_whole(&|place| scope.kind(place) == Some(ColumnKind::Integer))
}

/// A condition on whole numbers; `None`: something else is in it.
pub(super) fn test(scope: &Scope, expression: &Node) -> Option<Test> {
    let number = |expression| number(scope, expression);
    let test = |expression| test(scope, expression);
    let not = |test| Test::Not(Box::new(test));
    let less = |left, right| Test::Compared(Comparison::Less, left, right);
    let up_to = |left, right| Test::Compared(Comparison::LessOrEqual, left, right);
    Some(match expression.bare() {
        // `NOT IN` is SQLite's.
        Node::Not(of) if matches!(**of, Node::In(..)) => return None,
        Node::Not(of) => not(test(of)?),
        Node::IsNull(of) => Test::IsNull(number(of)?),
        Node::Between(parts) => {
            let [of, from, to] = &**parts;
            up_to(number(from)?, number(of)?).and(up_to(number(of)?, number(to)?))
        }
        Node::Binary(operator, sides) => {
            let [left, right] = &**sides;
            match operator {
                Operator::And => return Some(test(left)?.and(test(right)?)),
                Operator::Or => return Some(Test::Or(Box::new([test(left)?, test(right)?]))),
                _ => {}
            }
            let (left, right) = (number(left)?, number(right)?);
            match operator {
                Operator::Equal => Test::Compared(Comparison::Equal, left, right),
                Operator::NotEqual => not(Test::Compared(Comparison::Equal, left, right)),
                Operator::Less => less(left, right),
                Operator::LessOrEqual => up_to(left, right),
                Operator::Greater => less(right, left),
                Operator::GreaterOrEqual => up_to(right, left),
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// An aggregate of whole or decimal numbers; `None`: it is none of these.
pub(super) fn aggregate(scope: &Scope, expression: &Node) -> Option<Aggregate> {
    let Node::Call { name, arguments } = expression.bare() else { return None };
    let of = match &arguments[..] {
        [] => return name.eq_ignore_ascii_case("count").then_some(Aggregate::Rows),
        [of] => of,
        _ => return None,
    };
    if let Some(function) = Decimal::of(name) {
        let place = any_place(scope, of)?;
        let known = matches!(scope.kind(place)?, ColumnKind::Integer | ColumnKind::Numeric);
        return known.then_some(Aggregate::Decimal(function, place));
    }
    let function = Function::of(name)?;
    match (function, place(scope, of)) {
        (Function::Count, Some(place)) => Some(Aggregate::Present(place)),
        _ => Some(Aggregate::Of(function, number(scope, of)?)),
    }
}
