//! Statements of a transaction that `COMMIT` computes again: deletions and soft invalidations that showed their client
//! nothing.
//!
//! A cache is filled all the time, so a deletion that must find its rows at `COMMIT` as it found them before would
//! often be refused. What such a statement means does not depend on what it found: `COMMIT` deletes the rows that fit
//! then. The transaction keeps the statement itself, and what it wrote afterwards, and `COMMIT` makes the list of
//! writes from these.

use std::sync::Arc;

use dialect::Chosen;
use store::definition::{RoutineDef, SqlType};
use store::value::Value;
use store::{Change, TableId, Write};

/// Bytes that a step takes beside its text, values and rows.
const STEP_BYTES: usize = 128;

/// What a statement shows of tables to its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Nothing but a number: it deletes rows of this table or makes them stale, whatever they hold.
    Blind(TableId),
    /// Nothing: its rows are new and come from the client.
    Puts,
    /// What it read, and of the table that it writes what was there.
    Reads(Option<TableId>),
}

/// What `COMMIT` makes its list from, since the first blind statement that still is one.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    pub(crate) steps: Vec<Step>,
    pub(crate) bytes: usize,
    /// Tables of which the client was shown something: a deletion there may rest on that.
    pub(crate) shown: Vec<TableId>,
    /// The steps are being computed again.
    pub(crate) again: bool,
}

#[derive(Debug)]
pub(crate) enum Step {
    /// Computed again, with these values of its parameters, and the types that the client chose for them.
    Blind {
        table: TableId,
        text: Box<str>,
        parameters: Vec<Value>,
        chosen: Box<[Option<SqlType>]>,
        /// As a statement of the body of this function.
        body: Option<Arc<RoutineDef>>,
    },
    /// Written as it was computed.
    Fixed(Vec<Write>),
    /// A savepoint's name.
    Savepoint(String),
}

impl Journal {
    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Nothing is to be computed again; what was shown was.
    pub(crate) fn restart(&mut self) {
        self.truncate(0);
        self.again = false;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(crate) fn push(&mut self, step: Step) {
        self.bytes += weight(&step);
        self.steps.push(step);
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        for gone in self.steps.drain(len..) {
            self.bytes -= weight(&gone);
        }
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&mut Step) -> bool) {
        self.steps.retain_mut(keep);
        self.bytes = self.steps.iter().map(weight).sum();
    }

    pub(crate) fn mark(&self, name: &str) -> Option<usize> {
        self.steps.iter().rposition(|step| matches!(step, Step::Savepoint(own) if own == name))
    }

    /// Sets a mark, if there is anything to go back from.
    pub(crate) fn savepoint(&mut self, name: &str) {
        if !self.is_empty() {
            self.push(Step::Savepoint(name.to_owned()));
        }
    }

    /// Forgets what came after the newest mark of this name: all, if that lies before the first step.
    pub(crate) fn roll_back_to(&mut self, name: &str) {
        self.truncate(self.mark(name).map_or(0, |mark| mark + 1));
    }

    /// Forgets the newest mark of this name and those after it.
    pub(crate) fn release(&mut self, name: &str) {
        let mark = self.mark(name).unwrap_or(0);
        let tail: Vec<Step> = self.steps.drain(mark..).collect();
        self.steps.extend(tail.into_iter().filter(|step| !matches!(step, Step::Savepoint(_))));
        self.bytes = self.steps.iter().map(weight).sum();
    }
}

pub(crate) fn weight(step: &Step) -> usize {
    STEP_BYTES
        + match step {
            Step::Blind { text, parameters, chosen, .. } => naming_bytes(text, parameters, chosen),
            Step::Fixed(writes) => writes.iter().map(|write| STEP_BYTES + bytes_of(write)).sum(),
            Step::Savepoint(name) => name.len(),
        }
}

/// Bytes that it takes to say what a statement was.
pub(crate) fn naming_bytes(text: &str, values: &[Value], chosen: Chosen<'_>) -> usize {
    text.len() + values.iter().map(value_bytes).sum::<usize>() + size_of_val(chosen)
}

pub(crate) fn value_bytes(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::Text(text) => text.len(),
            Value::Blob(bytes) => bytes.len(),
            _ => 0,
        }
}

/// Bytes of a row that is written.
pub(crate) fn bytes_of(write: &Write) -> usize {
    let payload = match &write.change {
        Change::Put(row) => row.payload.len(),
        Change::Delete => 0,
    };
    write.key.len() + payload
}
