//! A `WHERE`, taken apart into what leads to rows and what is left to be tested.

use dialect::lowered::{Node, Operator};
use store::definition::ColumnKind;
use store::value::Value;

use super::super::access::{Access, Equals, Wanted};
use super::super::expr::{Comparison, Term, Test};
use super::super::scope::{Place, Scope, Side};
use super::names::place;
use super::terms;
use crate::table::Asked;
use crate::write::{Operand, operand};

/// Conditions joined by `OR` at most: more are hardly written by hand, and each is judged for itself.
const BRANCHES_MAX: usize = 8;

/// Conditions that are joined by `AND`.
#[derive(Debug, Default)]
pub(in super::super) struct Where {
    pub(in super::super) equal: Vec<(Place, Operand)>,
    /// Columns that are one of a list.
    pub(in super::super) listed: Vec<(Place, Vec<Operand>)>,
    /// Arrays, and what is asked of their elements.
    pub(in super::super) elements: Vec<(Place, Asked, Wanted)>,
    /// Columns of two tables.
    pub(in super::super) joined: Vec<[Place; 2]>,
    /// The others.
    pub(in super::super) tests: Vec<Test>,
}

impl Where {
    /// What an expression says; `None`: something else is in it.
    pub(super) fn of(scope: &Scope, expression: Option<&Node>) -> Option<Self> {
        let mut found = Self::default();
        if let Some(expression) = expression {
            found.gather(scope, expression)?;
        }
        Some(found)
    }

    fn gather(&mut self, scope: &Scope, expression: &Node) -> Option<()> {
        match expression.bare() {
            Node::Binary(Operator::And, sides) => {
                let [left, right] = &**sides;
                self.gather(scope, left)?;
                self.gather(scope, right)
            }
            Node::Binary(Operator::Equal, sides) if self.equals(scope, sides) => Some(()),
            Node::In(left, list) => {
                let values: Option<Vec<Operand>> = list.iter().map(operand).collect();
                self.listed.push((place(scope, left)?, values?));
                Some(())
            }
            always if is_true(scope, always) => Some(()),
            Node::Call { name, arguments } => {
                self.elements.push(elements(scope, name, arguments)?);
                Some(())
            }
            other => {
                self.tests.push(terms::test(scope, other)?);
                Some(())
            }
        }
    }

    /// Takes an equation in, if it is of a column and a value, or of columns of two tables.
    fn equals(&mut self, scope: &Scope, [left, right]: &[Node; 2]) -> bool {
        match (place(scope, left), place(scope, right)) {
            (Some(left), Some(right)) if left.side != right.side && is_comparable(scope, [left, right]) => {
                self.joined.push([left, right]);
                true
            }
            (Some(place), None) => self.equal_to(place, right),
            (None, Some(place)) => self.equal_to(place, left),
            _ => false,
        }
    }

    fn equal_to(&mut self, place: Place, value: &Node) -> bool {
        let value = operand(value);
        self.equal.extend(value.clone().map(|value| (place, value)));
        value.is_some()
    }

    /// The columns of one table, and what they equal.
    pub(in super::super) fn of_side(&self, side: Side) -> Equals {
        let own = self.equal.iter().filter(|(place, _)| place.side == side);
        own.map(|(place, operand)| (place.column, operand.clone())).collect()
    }

    /// The columns of one table, each with that of the other which it equals.
    pub(in super::super) fn links(&self, side: Side) -> Vec<(usize, usize)> {
        let pair = |[a, b]: &[Place; 2]| {
            if a.side == side { (a.column, b.column) } else { (b.column, a.column) }
        };
        self.joined.iter().map(pair).collect()
    }

    /// All of it as conditions on whole numbers, if it is that.
    pub(in super::super) fn as_tests(&self, scope: &Scope) -> Option<Vec<Test>> {
        if !self.joined.is_empty() || !self.listed.is_empty() || !self.elements.is_empty() {
            return None;
        }
        let equal = self.equal.iter().map(|(place, operand)| {
            let (left, right) = (Term::Column(*place), Term::Value(operand.clone()));
            let whole = terms::is_whole(scope, &left) && terms::is_whole(scope, &right);
            whole.then_some(Test::Compared(Comparison::Equal, left, right))
        });
        equal.chain(self.tests.iter().cloned().map(Some)).collect()
    }

    /// How the rows of the only table are found, if all of it leads there.
    pub(super) fn access(&self, scope: &Scope) -> Option<Access> {
        let table = scope.alone().filter(|_| self.tests.is_empty() && self.joined.is_empty())?;
        match (&self.equal[..], &self.listed[..], &self.elements[..]) {
            ([], [], []) => Some(Access::all(table)),
            ([], [(place, keys)], []) => Access::by_keys(table, place.column, keys),
            ([], [], [(place, asked, wanted)]) => Access::by_elements(table, place.column, *asked, wanted),
            (_, [], []) => Access::by(table, &self.of_side(Side::First)),
            _ => None,
        }
    }

    /// Whether something in it leads to rows.
    fn leads(&self) -> bool {
        !(self.equal.is_empty() && self.listed.is_empty() && self.elements.is_empty())
    }
}

/// What a function asks of the elements of a column, if it does.
fn elements(scope: &Scope, function: &str, arguments: &[Node]) -> Option<(Place, Asked, Wanted)> {
    let [array, wanted] = arguments else { return None };
    let asked = Asked::of(function)?;
    let found = |array, wanted| Some((place(scope, array)?, asked, wanted_of(wanted)?));
    // Who overlaps whom is the same.
    found(array, wanted).or_else(|| found(wanted, array).filter(|_| asked == Asked::Overlaps))
}

fn wanted_of(expression: &Node) -> Option<Wanted> {
    match expression.bare() {
        Node::Array(list) => Some(Wanted::List(list.iter().map(operand).collect::<Option<_>>()?)),
        one => operand(one).map(Wanted::One),
    }
}

/// How the rows are found of which any of several conditions, joined by `OR`, is true; one alone is one of them.
pub(super) fn branches(scope: &Scope, condition: Option<&Node>) -> Option<Vec<Access>> {
    if let Some(access) = Where::of(scope, condition).and_then(|wanted| wanted.access(scope)) {
        return Some(vec![access]);
    }
    let mut found = Vec::new();
    gather_branches(scope, condition?, &mut found)?;
    Some(found)
}

fn gather_branches(scope: &Scope, condition: &Node, found: &mut Vec<Access>) -> Option<()> {
    match condition.bare() {
        Node::Binary(Operator::Or, sides) => {
            let [left, right] = &**sides;
            gather_branches(scope, left, found)?;
            gather_branches(scope, right, found)
        }
        _ if found.len() == BRANCHES_MAX => None,
        one => {
            let wanted = Where::of(scope, Some(one))?;
            found.push(wanted.access(scope).filter(|_| wanted.leads())?);
            Some(())
        }
    }
}

/// Whether a condition is true of every row, as programs write that: `1`, `TRUE`, `1 = 1`.
fn is_true(scope: &Scope, condition: &Node) -> bool {
    match condition {
        Node::Value(Value::Integer(number)) => *number != 0,
        Node::Truth(true) => !scope.knows("TRUE"),
        Node::Binary(Operator::Equal, sides) => match [sides[0].bare(), sides[1].bare()] {
            [Node::Value(left @ (Value::Integer(_) | Value::Real(_))), Node::Value(right)] => left == right,
            _ => false,
        },
        _ => false,
    }
}

/// Whether two columns hold values of one kind, which are equal where their bytes are.
fn is_comparable(scope: &Scope, places: [Place; 2]) -> bool {
    let [a, b] = places.map(|place| scope.kind(place));
    a == b && matches!(a, Some(ColumnKind::Integer | ColumnKind::Text | ColumnKind::Blob))
}
