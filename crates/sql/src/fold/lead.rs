//! What leads to the rows of a statement: equal columns of an index or a key, and from each row to those of a second
//! table.

use std::sync::Arc;

use sqlite3_parser::ast::{Expr, Operator};
use store::definition::ColumnKind;
use store::{KeyBounds, Table, View};

use super::number::Test;
use super::scope::{Place, Scope, Side};
use super::walk::Join;
use crate::direct::{CONDITIONS_MAX, Conditions, Way, way, with_values};
use crate::write::{Operand, operand};
use store::value::{Value, ValueRef};

/// How the rows of the outer table are found, and those of the inner one for each.
#[derive(Debug)]
pub(super) struct Lead {
    pub(super) table: Arc<Table>,
    pub(super) side: Side,
    pub(super) conditions: Conditions,
    pub(super) way: Way,
    pub(super) join: Option<Join>,
    /// The inner table may be the smaller one, and something leads from it to the rows of this.
    reversible: bool,
}

/// One of the conditions that `AND` joins.
enum Term {
    Equal(Place, Operand),
    Joined([Place; 2]),
    Test(Test),
}

/// All of a statement's conditions.
#[derive(Default)]
struct Terms {
    equal: Vec<(Place, Operand)>,
    joined: Vec<[Place; 2]>,
    tests: Option<Test>,
}

impl Terms {
    /// Adds what an expression says; `None`: something else is in it.
    fn gather(&mut self, scope: &Scope, expression: &Expr<'_>) -> Option<()> {
        match expression {
            Expr::Binary(left, Operator::And, right) => {
                self.gather(scope, left)?;
                self.gather(scope, right)
            }
            Expr::Parenthesized(one) if one.len() == 1 => self.gather(scope, one.first()?),
            _ => {
                match Term::of(scope, expression)? {
                    Term::Equal(place, operand) => self.equal.push((place, operand)),
                    Term::Joined(places) => self.joined.push(places),
                    Term::Test(test) => {
                        self.tests = Some(match self.tests.take() {
                            Some(before) => Test::And(Box::new([before, test])),
                            None => test,
                        });
                    }
                }
                Some(())
            }
        }
    }

    /// The conditions that say what columns of one table equal.
    fn of_side(&self, side: Side) -> Conditions {
        let own = self.equal.iter().filter(|(place, _)| place.side == side);
        own.map(|(place, operand)| (place.column, operand.clone())).collect()
    }

    /// The columns of one table, each with that of the other which it equals.
    fn links(&self, side: Side) -> Vec<(usize, usize)> {
        let pair = |[a, b]: &[Place; 2]| {
            if a.side == side { (a.column, b.column) } else { (b.column, a.column) }
        };
        self.joined.iter().map(pair).collect()
    }
}

impl Term {
    fn of(scope: &Scope, expression: &Expr<'_>) -> Option<Self> {
        if let Expr::Binary(left, Operator::Equals, right) = expression {
            match (scope.place(left), scope.place(right)) {
                (Some(left), Some(right)) if left.side != right.side => {
                    return is_comparable(scope, [left, right]).then_some(Self::Joined([left, right]));
                }
                (Some(place), None) | (None, Some(place)) => {
                    let other = if scope.place(left).is_some() { right } else { left };
                    if let Some(operand) = operand(other) {
                        return Some(Self::Equal(place, operand));
                    }
                }
                _ => {}
            }
        }
        Test::of(scope, expression).map(Self::Test)
    }
}

/// Whether two columns hold values of one kind, which are equal where their bytes are.
fn is_comparable(scope: &Scope, places: [Place; 2]) -> bool {
    let [a, b] =
        places.map(|place| scope.table(place.side).map(|table| table.def().columns[place.column].kind));
    a == b && matches!(a, Some(ColumnKind::Integer | ColumnKind::Text | ColumnKind::Blob))
}

/// What leads to the rows of a statement with these conditions, and what else is to hold of them.
pub(super) fn lead(
    scope: &Scope,
    on: Option<&Expr<'_>>,
    condition: Option<&Expr<'_>>,
) -> Option<(Lead, Option<Test>)> {
    let mut terms = Terms::default();
    if let Some(on) = on {
        terms.gather(scope, on)?;
    }
    // Of a left join these conditions are on the second table alone; the others come after it.
    let of_join = std::mem::take(&mut terms);
    if scope.left && (of_join.tests.is_some() || !of_join.of_side(Side::First).is_empty()) {
        return None;
    }
    terms.gather(scope, condition?)?;
    if scope.left && !(terms.joined.is_empty() && terms.of_side(Side::Second).is_empty()) {
        return None;
    }
    terms.equal.extend(of_join.equal);
    terms.joined.extend(of_join.joined);
    terms.tests = match (terms.tests.take(), of_join.tests) {
        (Some(a), Some(b)) => Some(Test::And(Box::new([a, b]))),
        (a, b) => a.or(b),
    };
    if terms.tests.as_ref().is_some_and(|test| test.reads(&|place| may_lead(scope, place))) {
        return None;
    }
    let sides = if scope.left { &[Side::First][..] } else { &[Side::First, Side::Second] };
    let lead = sides.iter().find_map(|&side| Lead::from(scope, &terms, side))?;
    Some((lead, terms.tests))
}

/// Whether a condition on a column might find an index of use, which SQLite would.
fn may_lead(scope: &Scope, place: Place) -> bool {
    scope.table(place.side).is_none_or(|table| {
        let is_made = |column: &usize| table.def().columns[*column].hidden;
        let mut indexes = table.indexes().iter().map(|index| index.def());
        table.def().is_key(place.column)
            || indexes.any(|index| {
                index.predicate.is_some()
                    || index.columns.contains(&place.column)
                    || index.columns.iter().any(is_made)
            })
    })
}

impl Lead {
    /// The lead that begins with the table of this side.
    fn from(scope: &Scope, terms: &Terms, side: Side) -> Option<Self> {
        let table = scope.table(side)?;
        let conditions = once_each(terms.of_side(side)).filter(|conditions| !conditions.is_empty())?;
        let (conditions, way) = way(table, &conditions)?;
        let Some(inner) = scope.table(side.other()) else {
            return Some(Self {
                table: Arc::clone(table),
                side,
                conditions,
                way,
                join: None,
                reversible: false,
            });
        };
        let links = terms.links(side.other());
        let given = terms.of_side(side.other());
        let join = Join::of(inner, &links, &given, scope.left)?;
        let leads = |column: usize| {
            let first = |columns: &[usize]| columns.first() == Some(&column);
            first(&table.def().primary_key) || table.indexes().iter().any(|index| first(&index.def().columns))
        };
        let reversible = !scope.left && links.iter().any(|(_, outer)| leads(*outer));
        Some(Self { table: Arc::clone(table), side, conditions, way, join: Some(join), reversible })
    }

    /// Whether the rows are better found from the other end: the conditions leave more of them than the inner table has.
    pub(super) fn is_long_way(&self, view: &View<'_>, parameters: &[Value]) -> bool {
        let (Way::Index(index), Some(join)) = (self.way, &self.join) else { return false };
        let inner = join.table.rows();
        if !self.reversible || inner >= self.table.rows() {
            return false;
        }
        with_values(&self.table, &self.conditions, parameters, |values| {
            values.is_some_and(|values| {
                let bounds = KeyBounds::equal(values.iter().copied().map(ValueRef::to_owned).collect());
                view.estimate(&self.table.indexes()[index], &bounds) > inner
            })
        })
    }
}

/// Conditions that name each column once, and no more of them than are gathered on the stack.
fn once_each(conditions: Conditions) -> Option<Conditions> {
    let again = |at: usize, column: usize| conditions[..at].iter().any(|(known, _)| *known == column);
    let repeats = conditions.iter().enumerate().any(|(at, (column, _))| again(at, *column));
    (!repeats && conditions.len() <= CONDITIONS_MAX).then_some(conditions)
}
