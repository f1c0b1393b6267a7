//! Portals: statements with their values, under way.

use std::collections::HashMap;
use std::sync::Arc;

use sql::{RowSink, SqlError};
use store::value::Value;

use super::Outcome;
use super::prepared::Prepared;
use super::rows::Rows;
use crate::limits::PORTALS_MAX;

/// Which columns the client wants in binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Formats {
    /// None.
    #[default]
    Text,
    /// All.
    Binary,
    /// Those marked.
    Each(Box<[bool]>),
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
        Self { prepared, values, formats, state: State::Fresh }
    }

    /// Its statement.
    pub fn prepared(&self) -> &Arc<Prepared> {
        &self.prepared
    }

    /// How its rows are wanted.
    pub fn formats(&self) -> &Formats {
        &self.formats
    }

    /// The next rows; 0 is all that are left.
    pub(crate) fn replay(&mut self, max_rows: u32, sink: &mut dyn RowSink) -> Result<Outcome, SqlError> {
        let State::Rows { rows, next } = &mut self.state else { return self.again() };
        let left = rows.len() - *next;
        let wanted =
            if max_rows == 0 { left } else { left.min(usize::try_from(max_rows).unwrap_or(usize::MAX)) };
        rows.replay(*next..*next + wanted, sink)?;
        *next += wanted;
        // As PostgreSQL has it, rows that are just exhausted are told with the next call, unless there was no limit.
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
    pub(crate) fn put(&mut self, name: &str, portal: Portal) -> Result<(), SqlError> {
        if name.is_empty() {
            self.unnamed = Some(portal);
            return Ok(());
        }
        if self.named.contains_key(name) {
            return Err(SqlError::new("42P03", format!("cursor \"{name}\" already exists")));
        }
        if self.named.len() >= PORTALS_MAX {
            let message = format!("this session has {PORTALS_MAX} open portals and cursors");
            return Err(SqlError::new("53400", message).with_hint("close those that are not used any more"));
        }
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

    #[inline]
    pub(crate) fn clear(&mut self) {
        if let Some(portal) = self.unnamed.take() {
            self.spare = portal.values;
            self.spare.clear();
        }
        if !self.named.is_empty() {
            self.named.clear();
        }
    }
}

#[cold]
fn unknown(name: &str) -> SqlError {
    if name.is_empty() {
        return SqlError::new("34000", "portal \"\" does not exist");
    }
    SqlError::new("34000", format!("portal \"{name}\" does not exist"))
}
