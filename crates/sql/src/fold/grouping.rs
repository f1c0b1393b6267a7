//! Aggregates of rows, grouped or not.

use sqlite3_parser::ast::{As, Expr, Literal, ResultColumn};
use store::value::{Value, ValueRef};

use super::aggregate::Aggregate;
use super::groups::{Group, Groups, Key};
use super::number::{Beyond, Number};
use super::scope::{Given, Place, Scope};
use crate::text::token::unquoted;

/// What is told of groups of rows.
#[derive(Debug)]
pub(super) struct Grouping {
    keys: Vec<Key>,
    grouped: bool,
    aggregates: Vec<Aggregate>,
    columns: Vec<Shown>,
}

/// A column of the result.
#[derive(Clone, Copy, Debug)]
enum Shown {
    /// The term of `GROUP BY` at this position.
    Key(usize),
    /// The aggregate at this position.
    Aggregate(usize),
}

impl Grouping {
    /// `None`: something else is in the list or in the terms.
    pub(super) fn of(scope: &Scope, list: &[ResultColumn<'_>], terms: &[Expr<'_>]) -> Option<Self> {
        let keys: Option<Vec<Key>> = terms.iter().map(|term| group_key(scope, list, term)).collect();
        let (aggregates, columns) = (Vec::new(), Vec::new());
        let mut grouping = Self { keys: keys?, grouped: !terms.is_empty(), aggregates, columns };
        grouping.show(scope, list)?;
        Some(grouping)
    }

    /// Takes the list of results: aggregates, and terms of `GROUP BY`.
    fn show(&mut self, scope: &Scope, list: &[ResultColumn<'_>]) -> Option<()> {
        for item in list {
            let ResultColumn::Expr(expression, _) = item else { return None };
            let shown = if let Some(aggregate) = Aggregate::of(scope, expression) {
                self.aggregates.push(aggregate);
                Shown::Aggregate(self.aggregates.len() - 1)
            } else {
                let key = key(scope, expression)?;
                Shown::Key(self.keys.iter().position(|known| *known == key)?)
            };
            self.columns.push(shown);
        }
        (self.grouped || !self.aggregates.is_empty()).then_some(())
    }

    /// How many columns are told.
    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }

    /// The column whose least or greatest value is all that is asked for.
    pub(super) fn extreme(&self) -> Option<Place> {
        match self.aggregates.as_slice() {
            [only] if !self.grouped => only.extreme(),
            _ => None,
        }
    }

    /// The groups of no rows.
    pub(super) fn begin(&self) -> Groups {
        if self.grouped { Groups::default() } else { Groups::one(self.aggregates.len()) }
    }

    /// Takes a row in.
    #[inline]
    pub(super) fn take(
        &self,
        groups: &mut Groups,
        given: Given<'_>,
        heap_bytes_max: usize,
    ) -> Result<(), Beyond> {
        let group = groups.of_row(&self.keys, given, self.aggregates.len(), heap_bytes_max)?;
        for (aggregate, running) in self.aggregates.iter().zip(&mut group.running) {
            aggregate.step(running, given)?;
        }
        Ok(())
    }

    /// What is told of a group.
    pub(super) fn row<'g>(&self, group: &'g Group) -> Vec<ValueRef<'g>> {
        let shown = |shown: &Shown| match *shown {
            Shown::Key(at) => group.key.get(at).map_or(ValueRef::Null, Value::as_ref),
            Shown::Aggregate(at) => match (self.aggregates.get(at), group.running.get(at)) {
                (Some(aggregate), Some(running)) => aggregate.result(*running),
                _ => ValueRef::Null,
            },
        };
        self.columns.iter().map(shown).collect()
    }
}

/// A term of `GROUP BY`: a place in the list, a column, a name that the list gives, or an expression.
fn group_key(scope: &Scope, list: &[ResultColumn<'_>], term: &Expr<'_>) -> Option<Key> {
    match term {
        Expr::Literal(Literal::Numeric(digits)) => {
            let place = digits.parse::<usize>().ok()?.checked_sub(1)?;
            let ResultColumn::Expr(expression, _) = list.get(place)? else { return None };
            key(scope, expression)
        }
        Expr::Literal(_) | Expr::Unary(..) | Expr::Variable(_) => None,
        Expr::Parenthesized(one) if one.len() == 1 => group_key(scope, list, one.first()?),
        Expr::Id(id) if !scope.knows(&unquoted(id.0)) => {
            if is_of_every_table(&unquoted(id.0)) {
                return None;
            }
            let mut named = list.iter().filter_map(|item| match item {
                ResultColumn::Expr(expression, Some(As::As(name) | As::Elided(name))) => {
                    unquoted(name.0).eq_ignore_ascii_case(&unquoted(id.0)).then_some(expression)
                }
                _ => None,
            });
            let expression = named.next()?;
            key(scope, expression).filter(|_| named.next().is_none())
        }
        expression => key(scope, expression),
    }
}

/// Whether a column that no definition names may be meant: those that tell of the row itself, and its number.
fn is_of_every_table(name: &str) -> bool {
    name.starts_with('_') || ["rowid", "oid"].iter().any(|own| own.eq_ignore_ascii_case(name))
}

fn key(scope: &Scope, expression: &Expr<'_>) -> Option<Key> {
    let text = scope.place(expression).and_then(|place| Key::text(scope, place));
    text.or_else(|| Number::of(scope, expression).map(Key::Number))
}
