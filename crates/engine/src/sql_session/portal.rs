//! Portals: statements with their values, under way.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use sql::{Allowance, Held, RowSink, SqlError};
use store::value::Value;

use super::Outcome;
use super::prepared::{Prepared, check_name};
use super::rows::Rows;
use super::utility::Direction;
use crate::limits::{HELD_FROM_BYTES, PORTALS_MAX, SPARE_VALUES_MAX};

/// Which columns the client wants in binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Formats {
    /// None.
    #[default]
    Text,
    /// All.
    Binary,
    /// Those marked.
    Each(Arc<[bool]>),
}

impl Formats {
    /// Whether a column is wanted in binary.
    #[inline]
    pub fn is_binary(&self, column: usize) -> bool {
        match self {
            Self::Text => false,
            Self::Binary => true,
            Self::Each(marks) => marks.get(column).copied().unwrap_or(false),
        }
    }
}

/// A statement with its values.
#[derive(Debug)]
pub struct Portal {
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) values: Vec<Value>,
    formats: Formats,
    pub(crate) state: State,
    /// A cursor that stays when its transaction ends.
    pub(crate) hold: bool,
    /// A cursor that may not go back.
    pub(crate) forward_only: bool,
    /// Made by the transaction that is open.
    new: bool,
    /// What its values take of the session's allowance; none where they are short.
    held: Option<Held>,
}

/// How far it is.
#[derive(Debug)]
pub(crate) enum State {
    /// Not begun.
    Fresh,
    /// All its rows are here, and those from `next` on were not asked for yet.
    Rows {
        /// The rows.
        rows: Rows,
        /// The next of them.
        next: usize,
    },
    /// Run to its end.
    Ended,
}

impl Portal {
    pub(crate) fn new(prepared: Arc<Prepared>, values: Vec<Value>, formats: Formats) -> Self {
        Self {
            prepared,
            values,
            formats,
            state: State::Fresh,
            hold: false,
            forward_only: false,
            new: true,
            held: None,
        }
    }

    /// Counts its values, which stay as long as the portal.
    fn hold(&mut self, allowance: &Arc<Allowance>, from: usize) -> Result<(), SqlError> {
        let bytes = bytes_of(&self.values);
        if bytes >= from {
            let mut held = allowance.account();
            held.try_set(bytes)?;
            self.held = Some(held);
        }
        Ok(())
    }

    /// Its statement.
    pub fn prepared(&self) -> &Arc<Prepared> {
        &self.prepared
    }

    /// How its rows are wanted.
    pub fn formats(&self) -> &Formats {
        &self.formats
    }

    /// A cursor over rows that are made already.
    pub(crate) fn cursor(prepared: Arc<Prepared>, rows: Rows, hold: bool, forward_only: bool) -> Self {
        let state = State::Rows { rows, next: 0 };
        Self { state, hold, forward_only, ..Self::new(prepared, Vec::new(), Formats::Text) }
    }

    /// Gives the rows in a direction, and moves there. `None` for the sink only counts.
    pub(crate) fn fetch(
        &mut self,
        direction: Direction,
        sink: Option<&mut dyn RowSink>,
    ) -> Result<u64, SqlError> {
        let State::Rows { rows, next } = &mut self.state else { return Ok(0) };
        let Steps { rows: wanted, backward, position } = steps(direction, *next, rows.len());
        if self.forward_only && (backward || position < *next) {
            return Err(SqlError::new("55000", "cursor can only scan forward")
                .with_hint("Declare it with SCROLL option to enable backward scan."));
        }
        let count = wanted.len();
        *next = position;
        match sink {
            Some(sink) if backward => rows.replay(wanted.rev(), sink)?,
            Some(sink) => rows.replay(wanted, sink)?,
            None => {}
        }
        u64::try_from(count).map_err(|_| SqlError::new("54000", "too many rows"))
    }

    /// The next rows; 0 is all that are left.
    pub(crate) fn replay(&mut self, max_rows: u32, sink: &mut dyn RowSink) -> Result<Outcome, SqlError> {
        let State::Rows { rows, next } = &mut self.state else { return self.again() };
        let left = rows.len().saturating_sub(*next);
        let wanted =
            if max_rows == 0 { left } else { left.min(usize::try_from(max_rows).unwrap_or(usize::MAX)) };
        rows.replay(*next..*next + wanted, sink)?;
        *next += wanted;
        // As PostgreSQL has it, just exhausted rows are reported with the next call, unless there was no limit.
        if max_rows != 0 && wanted > 0 && wanted == usize::try_from(max_rows).unwrap_or(usize::MAX) {
            return Ok(Outcome::Suspended);
        }
        self.state = State::Ended;
        Ok(Outcome::Complete { tag: self.prepared.tag(), count: u64::try_from(wanted).ok() })
    }

    /// A portal that has ended gives no more rows; one that changed something is not run twice.
    pub(crate) fn again(&self) -> Result<Outcome, SqlError> {
        if self.prepared.columns().is_some() {
            return Ok(Outcome::Complete { tag: self.prepared.tag(), count: Some(0) });
        }
        Err(SqlError::new("55000", "portal cannot be run anymore"))
    }
}

/// What values take.
pub(crate) fn bytes_of(values: &[Value]) -> usize {
    let long = |value: &Value| match value {
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
        _ => 0,
    };
    size_of_val(values) + values.iter().map(long).sum::<usize>()
}

/// Which rows a direction means, counted from 0, and where the cursor stands after them.
#[derive(Debug, PartialEq, Eq)]
struct Steps {
    rows: Range<usize>,
    /// The last of them first.
    backward: bool,
    position: usize,
}

/// `position` is the number of the row on which the cursor stands, from 1; 0 is before the first, and one more than
/// there are is behind the last.
fn steps(direction: Direction, position: usize, len: usize) -> Steps {
    let forward = |to: usize| {
        let end = to.min(len);
        Steps { rows: position.min(end)..end, backward: false, position: to.min(len + 1) }
    };
    let backward = |count: usize| {
        let end = position.saturating_sub(1).min(len);
        let start = position.saturating_sub(count.saturating_add(1)).min(end);
        Steps { rows: start..end, backward: true, position: position.saturating_sub(count) }
    };
    let one = |to: Option<usize>| match to {
        Some(to) if (1..=len).contains(&to) => {
            Steps { rows: to - 1..to, backward: to < position, position: to }
        }
        Some(to) => Steps { rows: 0..0, backward: to < position, position: to.min(len + 1) },
        None => Steps { rows: 0..0, backward: position > 0, position: 0 },
    };
    let count = |count: i64| usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    match direction {
        Direction::All => forward(len + 1),
        Direction::BackwardAll => backward(position),
        Direction::Relative(0) | Direction::Offset(0) => one(Some(position)),
        Direction::Relative(by) if by > 0 => forward(position.saturating_add(count(by))),
        Direction::Relative(by) => backward(count(by)),
        Direction::Offset(by) if by > 0 => one(Some(position.saturating_add(count(by)))),
        Direction::Offset(by) => one(position.checked_sub(count(by))),
        Direction::Absolute(to) if to >= 0 => one(Some(count(to))),
        Direction::Absolute(to) => one((len + 1).checked_sub(count(to))),
    }
}

/// A session's portals.
#[derive(Debug, Default)]
pub(crate) struct Portals {
    unnamed: Option<Portal>,
    named: HashMap<Box<str>, Portal>,
    /// The unnamed portal's list of values from before, emptied.
    spare: Vec<Value>,
}

impl Portals {
    #[inline]
    pub(crate) fn get(&self, name: &str) -> Result<&Portal, SqlError> {
        let found = if name.is_empty() { self.unnamed.as_ref() } else { self.named.get(name) };
        found.ok_or_else(|| unknown(name))
    }

    #[inline]
    pub(crate) fn put(
        &mut self,
        name: &str,
        mut portal: Portal,
        allowance: &Arc<Allowance>,
    ) -> Result<(), SqlError> {
        if name.is_empty() {
            // The one before ends first: what it holds is free.
            self.unnamed = None;
            portal.hold(allowance, HELD_FROM_BYTES)?;
            self.unnamed = Some(portal);
            return Ok(());
        }
        if self.named.contains_key(name) {
            return Err(SqlError::new("42P03", format!("cursor \"{name}\" already exists")));
        }
        check_name(name)?;
        if self.named.len() >= PORTALS_MAX {
            let message = format!("this session has {PORTALS_MAX} open portals and cursors");
            return Err(SqlError::new("53400", message).with_hint("close unused ones"));
        }
        portal.hold(allowance, 0)?;
        self.named.insert(name.into(), portal);
        Ok(())
    }

    /// Takes a portal out to be run.
    #[inline]
    pub(crate) fn take(&mut self, name: &str) -> Result<Portal, SqlError> {
        let taken = if name.is_empty() { self.unnamed.take() } else { self.named.remove(name) };
        taken.ok_or_else(|| unknown(name))
    }

    #[inline]
    pub(crate) fn give_back(&mut self, name: &str, portal: Portal) {
        if name.is_empty() {
            self.unnamed = Some(portal);
        } else {
            self.named.insert(name.into(), portal);
        }
    }

    pub(crate) fn remove(&mut self, name: &str) -> bool {
        if name.is_empty() { self.unnamed.take().is_some() } else { self.named.remove(name).is_some() }
    }

    #[inline]
    pub(crate) fn recycled_values(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.spare)
    }

    /// The transaction has ended, and its portals with it; cursors made to stay do, unless it was taken back.
    #[inline]
    pub(crate) fn end_block(&mut self, rolled_back: bool) {
        if let Some(portal) = self.unnamed.take() {
            self.spare = portal.values;
            self.spare.clear();
            if self.spare.capacity() > SPARE_VALUES_MAX {
                self.spare = Vec::new();
            }
        }
        if !self.named.is_empty() {
            self.named.retain(|_, portal| portal.hold && !(rolled_back && portal.new));
            self.named.values_mut().for_each(|portal| portal.new = false);
        }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.unnamed = None;
        self.named.clear();
    }
}

#[cold]
fn unknown(name: &str) -> SqlError {
    if name.is_empty() {
        return SqlError::new("34000", "portal \"\" does not exist");
    }
    SqlError::new("34000", format!("portal \"{name}\" does not exist"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows as PostgreSQL numbers them, in the order they come, and where the cursor stands then.
    fn walk(len: usize, directions: &[Direction]) -> Vec<(Vec<usize>, usize)> {
        let mut at = 0;
        let mut found = Vec::new();
        for direction in directions {
            let Steps { rows, backward, position } = steps(*direction, at, len);
            let mut rows: Vec<usize> = rows.map(|row| row + 1).collect();
            if backward {
                rows.reverse();
            }
            at = position;
            found.push((rows, at));
        }
        found
    }

    #[test]
    fn cursors_walk_as_in_postgresql() {
        use Direction::{Absolute, All, BackwardAll, Offset, Relative};
        let found =
            walk(3, &[Relative(2), Relative(-1), All, Relative(1), Relative(-2), BackwardAll, Relative(-1)]);
        let expected = [
            (vec![1, 2], 2),
            (vec![1], 1),
            (vec![2, 3], 4),
            (vec![], 4),
            (vec![3, 2], 2),
            (vec![1], 0),
            (vec![], 0),
        ];
        assert_eq!(found, expected);
        let found = walk(
            3,
            &[Absolute(2), Relative(0), Offset(1), Offset(5), Absolute(-3), Absolute(-4), Absolute(0)],
        );
        let expected =
            [(vec![2], 2), (vec![2], 2), (vec![3], 3), (vec![], 4), (vec![1], 1), (vec![], 0), (vec![], 0)];
        assert_eq!(found, expected);
        assert_eq!(walk(0, &[All, BackwardAll, Relative(i64::MIN)]), [(vec![], 1), (vec![], 0), (vec![], 0)]);
    }
}
