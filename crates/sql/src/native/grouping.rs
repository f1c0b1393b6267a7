//! Aggregates of rows, grouped or not.

use store::value::{Value, ValueRef};

use super::aggregate::Aggregate;
use super::expr::Beyond;
use super::groups::{Group, Groups, Key};
use super::scope::{Given, Place};

/// What is returned of groups of rows.
#[derive(Debug)]
pub(super) struct Grouping {
    /// Empty: all rows are one group.
    keys: Vec<Key>,
    aggregates: Vec<Aggregate>,
    columns: Vec<Shown>,
}

/// A column of the result.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shown {
    /// The term of `GROUP BY` at this position.
    Key(usize),
    /// The aggregate at this position.
    Aggregate(usize),
}

impl Grouping {
    /// What is returned of groups by these keys; `None`: of all rows there is at least one aggregate.
    pub(super) fn new(keys: Vec<Key>, aggregates: Vec<Aggregate>, columns: Vec<Shown>) -> Option<Self> {
        let any = !keys.is_empty() || !aggregates.is_empty();
        any.then_some(Self { keys, aggregates, columns })
    }

    /// How many columns it has.
    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }

    /// The column whose least or greatest value is all that is asked for.
    pub(super) fn extreme(&self) -> Option<Place> {
        match self.aggregates.as_slice() {
            [only] if self.keys.is_empty() => only.extreme(),
            _ => None,
        }
    }

    /// The groups of no rows.
    pub(super) fn begin(&self) -> Groups {
        if self.keys.is_empty() { Groups::one(self.aggregates.len()) } else { Groups::default() }
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

    /// What the aggregates of a group come to.
    pub(super) fn results(&self, group: &Group) -> Result<Vec<Value>, Beyond> {
        self.aggregates
            .iter()
            .zip(&group.running)
            .map(|(aggregate, running)| aggregate.result(*running))
            .collect()
    }

    /// The row of a group with these results.
    pub(super) fn row<'g>(&self, group: &'g Group, results: &'g [Value]) -> Vec<ValueRef<'g>> {
        let shown = |shown: &Shown| {
            let value = match *shown {
                Shown::Key(at) => group.key.get(at),
                Shown::Aggregate(at) => results.get(at),
            };
            value.map_or(ValueRef::Null, Value::as_ref)
        };
        self.columns.iter().map(shown).collect()
    }
}
