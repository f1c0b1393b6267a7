//! The list that a writing statement makes: at most one change for each key, laid over the store.
//!
//! A statement that meets a row twice (an upsert of the same key, a key that moves) sees its own changes here;
//! nobody else sees anything before the list is committed.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use pgcatalog::sequence;
use store::value::{Value, ValueRef};
use store::{Catalog, Change, Expiry, KeyBounds, Made, RowBuf, Store, Table, Task, View, Write, WriteError};

use super::before::Before;
use super::head::NewHead;
use super::route;
use super::target::Draft;
use crate::error::{SqlError, state};
use crate::limits::{BYTES_PER_STATEMENT_MAX, ROWS_PER_STATEMENT_MAX};
use crate::table::{Identity, ListRow, word_of_expiry};

/// A row of the table as the statement sees it.
#[derive(Clone, Debug)]
pub(crate) struct Current {
    pub(crate) values: Vec<Value>,
    pub(crate) identity: Identity,
}

/// One key's change.
#[derive(Debug)]
struct Pending {
    key: Vec<u8>,
    before: Before,
    /// `None`: the key is removed.
    after: Option<After>,
}

impl Pending {
    /// The row as the statement leaves it.
    fn current(&self, view: &View<'_>) -> Option<Current> {
        let After { draft, .. } = self.after.as_ref()?;
        let identity = Identity {
            cas: 0,
            stamp: 0,
            expiry: word_of_expiry(draft.head.expiry, view.now()),
            deadline: draft.head.expiry,
            client_flags: draft.head.client_flags,
            renewal: draft.head.renewal,
            key: self.key.clone(),
        };
        Some(Current { values: draft.values.clone(), identity })
    }
}

/// A row that will be stored.
#[derive(Debug)]
struct After {
    draft: Draft,
    payload: Vec<u8>,
}

/// One row that the statement counts, and returns if asked to.
#[derive(Debug)]
struct Effect {
    pending: usize,
    row: Option<Box<ListRow>>,
}

/// The constraint that a row would break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Constraint {
    /// The primary key.
    Primary,
    /// The unique index at this position.
    Index(usize),
}

/// A statement's list.
#[derive(Debug)]
pub(crate) struct Batch {
    table: Arc<Table>,
    catalog: Arc<Catalog>,
    pending: Vec<Pending>,
    by_key: HashMap<Vec<u8>, usize>,
    /// For each unique index, the values that rows of this list take, if the statement asks for conflicts.
    taken: Vec<(usize, HashMap<Vec<u8>, usize>)>,
    effects: Vec<Effect>,
    /// Whether rows are returned.
    returning: bool,
    bytes: usize,
    /// The key of the row inserted last.
    inserted: Option<Vec<u8>>,
    /// The number made last for a row.
    made: Cell<Option<i64>>,
    /// Why the statement ends here, after what it wrote so far: `OR FAIL`.
    stopped: Option<SqlError>,
    /// Others changed what it was decided by, so it is worth nothing.
    outrun: bool,
}

impl Batch {
    /// An empty list. `overlaid` says that the statement looks for conflicts with its own rows.
    pub(crate) fn new(catalog: &Arc<Catalog>, table: &Arc<Table>, returning: bool, overlaid: bool) -> Self {
        let unique = table
            .indexes()
            .iter()
            .enumerate()
            .filter(|(_, index)| overlaid && is_constraint(table, index.name()) && index.def().unique);
        Self {
            table: Arc::clone(table),
            catalog: Arc::clone(catalog),
            pending: Vec::new(),
            by_key: HashMap::new(),
            taken: unique.map(|(at, _)| (at, HashMap::new())).collect(),
            effects: Vec::new(),
            returning,
            bytes: 0,
            inserted: None,
            made: Cell::new(None),
            stopped: None,
            outrun: false,
        }
    }

    /// Notes that others changed what this list was decided by: the statement computes another one.
    pub(crate) fn note_outrun(&mut self) {
        self.outrun = true;
    }

    /// Whether others changed what it was decided by.
    pub(crate) fn is_outrun(&self) -> bool {
        self.outrun
    }

    /// Ends the statement with an error that leaves what it wrote.
    pub(crate) fn stop(&mut self, error: SqlError) {
        self.stopped = Some(error);
    }

    /// Why it ended early, if it did.
    pub(crate) fn take_stopped(&mut self) -> Option<SqlError> {
        self.stopped.take()
    }

    /// How many rows the statement wrote.
    pub(crate) fn affected(&self) -> u64 {
        self.effects.len() as u64
    }

    /// Takes note of a row that is new.
    pub(crate) fn note_inserted(&mut self, key: &[u8]) {
        let last = self.inserted.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
    }

    /// The key of the row inserted last.
    pub(crate) fn last_inserted(&self) -> Option<&[u8]> {
        self.inserted.as_deref()
    }

    /// The number made last for a row without one.
    pub(crate) fn last_made(&self) -> Option<i64> {
        self.made.get()
    }

    /// Whether the statement returns rows.
    pub(crate) fn returns(&self) -> bool {
        self.returning
    }

    /// Whether this statement already decided about a key.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        self.by_key.contains_key(key)
    }

    /// Whether this statement already writes a row under a key.
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        self.by_key.get(key).is_some_and(|&at| self.pending[at].after.is_some())
    }

    /// Completes a row with what the server makes of it, and checks it. `new`: it gets a number if it has none.
    pub(crate) fn complete(&self, store: &Store, draft: &mut Draft, new: bool) -> Result<(), WriteError> {
        let table = self.table.as_ref();
        if let Some(column) = table.def().identity() {
            match &draft.values[column] {
                Value::Integer(number) => store.note_number(table, *number)?,
                _ if new => {
                    sequence::allow_number(table).map_err(|error| WriteError::expression(error.message))?;
                    let number = store.next_number(table)?;
                    self.made.set(Some(number));
                    draft.values[column] = Value::Integer(number);
                }
                _ => {}
            }
        }
        if !table.def().computes() {
            return Ok(());
        }
        let mut made = Made::new();
        let values: Vec<ValueRef<'_>> = draft.values.iter().map(Value::as_ref).collect();
        let defaults = std::mem::take(&mut draft.defaults);
        store.complete(&Task { table, values: &values, defaults: &defaults, checks: true }, &mut made)?;
        for (column, value) in made {
            draft.values[column] = value;
        }
        Ok(())
    }

    /// Encodes a row's key and payload; a table without a key gets a new number.
    pub(crate) fn encode(&self, store: &Store, draft: &Draft) -> Result<(Vec<u8>, Vec<u8>), SqlError> {
        let table = &self.table;
        if let Some(column) = draft.null_column(table) {
            return Err(SqlError::null_value(table.def().own_name(), &table.def().columns[column].name));
        }
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        let values: Vec<ValueRef<'_>> = draft.values.iter().map(Value::as_ref).collect();
        table.encode_row(&values, &mut key, &mut payload)?;
        if table.def().has_row_id() {
            key.clear();
            let number = ValueRef::Integer(store.next_row_id(table));
            let encoded = table.keys().encode(&[number], &mut key);
            encoded.map_err(|error| SqlError::new(state::INTERNAL, error.to_string()))?;
        }
        route::check(&self.catalog, table, &key)?;
        Ok((key, payload))
    }

    /// The payload of a row whose key is known.
    pub(crate) fn encode_payload(&self, draft: &Draft, key: &mut Vec<u8>) -> Result<Vec<u8>, SqlError> {
        let table = &self.table;
        if let Some(column) = draft.null_column(table) {
            return Err(SqlError::null_value(table.def().own_name(), &table.def().columns[column].name));
        }
        let mut payload = Vec::new();
        let values: Vec<ValueRef<'_>> = draft.values.iter().map(Value::as_ref).collect();
        if table.def().has_row_id() {
            let mut none = Vec::new();
            table.encode_row(&values, &mut none, &mut payload)?;
        } else {
            key.clear();
            table.encode_row(&values, key, &mut payload)?;
        }
        route::check(&self.catalog, table, key)?;
        Ok(payload)
    }

    /// Writes a row under a key, and says which change that is. `before` counts only where the statement has not met
    /// the key yet.
    pub(crate) fn put(
        &mut self,
        key: Vec<u8>,
        before: Before,
        draft: Draft,
        payload: Vec<u8>,
    ) -> Result<usize, SqlError> {
        self.charge(key.len() + payload.len())?;
        let at = self.place(key, before);
        self.forget_taken(at);
        for (index, taken) in &mut self.taken {
            if let Some(values) = self.table.indexes()[*index].unique_key(&draft.values) {
                taken.insert(values, at);
            }
        }
        self.pending[at].after = Some(After { draft, payload });
        Ok(at)
    }

    /// Removes the row under a key, and says which change that is.
    pub(crate) fn remove(&mut self, key: Vec<u8>, before: Before) -> Result<usize, SqlError> {
        self.charge(key.len())?;
        let at = self.place(key, before);
        self.forget_taken(at);
        self.pending[at].after = None;
        Ok(at)
    }

    /// Counts a change, and keeps what `RETURNING` shows of it.
    pub(crate) fn count(&mut self, change: usize, row: impl FnOnce() -> ListRow) {
        let row = self.returning.then(|| Box::new(row()));
        self.effects.push(Effect { pending: change, row });
    }

    fn charge(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.bytes += bytes;
        if self.pending.len() >= ROWS_PER_STATEMENT_MAX {
            let message = format!("the statement writes more than {ROWS_PER_STATEMENT_MAX} rows; split it");
            return Err(SqlError::new(state::TOO_LARGE, message));
        }
        if self.bytes > BYTES_PER_STATEMENT_MAX {
            let message = format!("the statement writes more than {BYTES_PER_STATEMENT_MAX} bytes; split it");
            return Err(SqlError::new(state::TOO_LARGE, message));
        }
        Ok(())
    }

    fn place(&mut self, key: Vec<u8>, before: Before) -> usize {
        if let Some(&at) = self.by_key.get(&key) {
            return at;
        }
        let at = self.pending.len();
        self.by_key.insert(key.clone(), at);
        self.pending.push(Pending { key, before, after: None });
        at
    }

    fn forget_taken(&mut self, at: usize) {
        let Some(after) = &self.pending[at].after else { return };
        for (index, taken) in &mut self.taken {
            if let Some(values) = self.table.indexes()[*index].unique_key(&after.draft.values)
                && taken.get(&values) == Some(&at)
            {
                taken.remove(&values);
            }
        }
    }

    /// The row under a key as the statement sees it.
    pub(crate) fn current(&self, view: &View<'_>, key: &[u8]) -> Result<Option<Current>, SqlError> {
        if let Some(&at) = self.by_key.get(key) {
            return Ok(self.pending[at].current(view));
        }
        let mut row = RowBuf::new();
        if !view.get(&self.table, key, &mut row)? {
            return Ok(None);
        }
        Ok(Some(current_of(&self.table, &row)))
    }

    /// The first constraint that a row under this key would break, and the row in its way. A row does not stand in the
    /// way of the one that replaces it (`own`). The row itself is returned, for whoever looked again might find it
    /// gone.
    pub(crate) fn conflict(
        &self,
        view: &View<'_>,
        key: &[u8],
        draft: &Draft,
        own: Option<&[u8]>,
        asked: impl Fn(Constraint) -> bool,
    ) -> Result<Option<(Constraint, Current)>, SqlError> {
        if asked(Constraint::Primary)
            && own != Some(key)
            && let Some(other) = self.current(view, key)?
        {
            return Ok(Some((Constraint::Primary, other)));
        }
        for (index, taken) in self.taken.iter().filter(|(index, _)| asked(Constraint::Index(*index))) {
            let Some(values) = self.table.indexes()[*index].unique_key(&draft.values) else { continue };
            let of_list = taken.get(&values).map(|&at| &self.pending[at]);
            let other = match of_list.filter(|pending| own != Some(pending.key.as_slice())) {
                Some(pending) => pending.current(view),
                None => self.stored_conflict(view, *index, draft, own)?,
            };
            if let Some(other) = other {
                return Ok(Some((Constraint::Index(*index), other)));
            }
        }
        Ok(None)
    }

    /// Whether a row still is what the statement read.
    pub(crate) fn is_current(&self, view: &View<'_>, read: &Current) -> Result<bool, SqlError> {
        let now = self.current(view, &read.identity.key)?;
        Ok(now.is_some_and(|now| now.identity.cas == read.identity.cas))
    }

    /// Whether a row stands in the way of one under this key by a constraint that is asked for.
    pub(crate) fn stands_in_way(
        &self,
        other: &Current,
        key: &[u8],
        draft: &Draft,
        asked: impl Fn(Constraint) -> bool,
    ) -> bool {
        let same = |index: usize| {
            let index = &self.table.indexes()[index];
            let values = index.unique_key(&draft.values);
            values.is_some() && values == index.unique_key(&other.values)
        };
        (asked(Constraint::Primary) && other.identity.key == key)
            || self.taken.iter().any(|(index, _)| asked(Constraint::Index(*index)) && same(*index))
    }

    /// A unique index whose values two rows would share after this list, and which change of the list is one of them.
    pub(crate) fn broken(&self, view: &View<'_>) -> Result<Option<(Constraint, usize)>, SqlError> {
        for (at, pending) in self.pending.iter().enumerate() {
            let Some(after) = &pending.after else { continue };
            for (index, taken) in &self.taken {
                let Some(values) = self.table.indexes()[*index].unique_key(&after.draft.values) else {
                    continue;
                };
                if taken.get(&values) != Some(&at)
                    || self.stored_conflict(view, *index, &after.draft, Some(&pending.key))?.is_some()
                {
                    // Of two rows of the list, the later one is to blame.
                    let row = taken.get(&values).copied().unwrap_or(at);
                    return Ok(Some((Constraint::Index(*index), row)));
                }
            }
        }
        Ok(None)
    }

    /// The values of the row that a write of the list stores, if each write up to it stores one.
    pub(crate) fn values_of(&self, write: usize) -> Option<&[Value]> {
        let before = self.pending.get(..=write)?;
        let rows = before.iter().map(|pending| pending.after.as_ref());
        rows.collect::<Option<Vec<_>>>()?.last().map(|after| after.draft.values.as_slice())
    }

    /// A stored row that holds the same unique values and that this statement leaves as it is.
    fn stored_conflict(
        &self,
        view: &View<'_>,
        index: usize,
        draft: &Draft,
        own: Option<&[u8]>,
    ) -> Result<Option<Current>, SqlError> {
        let index = &self.table.indexes()[index];
        let values = index.def().columns.iter().map(|&column| draft.values[column].clone()).collect();
        let mut rows = view.range(&self.table, index, &KeyBounds::equal(values), false);
        let mut row = RowBuf::new();
        while rows.next(view, &mut row)? {
            if own != Some(row.key()) && !self.has(row.key()) {
                return Ok(Some(current_of(&self.table, &row)));
            }
        }
        Ok(None)
    }

    /// Drops the changes at these positions of the list last committed, to be computed again; returns their keys.
    pub(crate) fn forget(&mut self, writes: &[usize]) -> Vec<Vec<u8>> {
        let mut lost = vec![false; self.pending.len()];
        let written: Vec<usize> = self.written().map(|(at, _)| at).collect();
        for at in writes.iter().filter_map(|&write| written.get(write)) {
            lost[*at] = true;
        }
        let mut keys = Vec::with_capacity(writes.len());
        let mut moved: Vec<Option<usize>> = vec![None; self.pending.len()];
        let pending = std::mem::take(&mut self.pending);
        self.by_key.clear();
        for (at, pending) in pending.into_iter().enumerate() {
            if lost[at] {
                keys.push(pending.key);
                continue;
            }
            moved[at] = Some(self.pending.len());
            self.by_key.insert(pending.key.clone(), self.pending.len());
            self.pending.push(pending);
        }
        self.effects.retain_mut(|effect| match moved[effect.pending] {
            Some(to) => {
                effect.pending = to;
                true
            }
            None => false,
        });
        keys
    }

    /// The changes that reach the store: a row that came and went within the statement does not.
    fn written(&self) -> impl Iterator<Item = (usize, &Pending)> {
        self.pending.iter().enumerate().filter(|(_, pending)| {
            pending.before != Before::Absent
                || pending.after.as_ref().is_some_and(|after| after.draft.head.expiry != Expiry::Now)
        })
    }

    /// The list for the store. The payloads move into it when they are not needed again.
    pub(crate) fn writes(&mut self) -> Vec<Write> {
        let table = Arc::clone(&self.table);
        let places: Vec<usize> = self.written().map(|(at, _)| at).collect();
        let write = |at: usize| {
            let pending = &mut self.pending[at];
            let change = match &pending.after {
                Some(After { draft, payload }) => draft.head.change(payload.clone()),
                None => Change::Delete,
            };
            let expect = pending.before.expect();
            Write { table: Arc::clone(&table), key: pending.key.clone(), change, expect }
        };
        places.into_iter().map(write).collect()
    }

    /// Gives this CAS value to all rows that would get one when they are committed.
    pub(crate) fn number(&mut self, cas: u64) {
        for after in self.pending.iter_mut().filter_map(|pending| pending.after.as_mut()) {
            after.draft.head.cas.get_or_insert(cas);
        }
        for row in self.effects.iter_mut().filter_map(|effect| effect.row.as_mut()) {
            row.cas.get_or_insert(cas);
        }
    }

    /// The rows that `RETURNING` shows.
    pub(crate) fn take_returned(&mut self) -> Vec<ListRow> {
        self.effects.iter_mut().filter_map(|effect| effect.row.take()).map(|row| *row).collect()
    }
}

/// The ordered primary key is among a table's indexes, but the key itself is its constraint.
fn is_constraint(table: &Table, index: &str) -> bool {
    index != table.def().key_name()
}

/// A stored row, decoded.
pub(crate) fn current_of(table: &Table, row: &RowBuf) -> Current {
    let columns = 0..table.def().columns.len();
    Current {
        values: columns.map(|column| table.column(row, column).to_owned()).collect(),
        identity: Identity::of_row(row),
    }
}

impl Current {
    /// The row as a list shows it.
    pub(crate) fn to_list_row(&self) -> ListRow {
        ListRow {
            values: self.values.clone(),
            cas: Some(self.identity.cas),
            expiry: self.identity.expiry,
            client_flags: self.identity.client_flags,
            renewal: self.identity.renewal,
        }
    }

    /// The row as a draft of its replacement: what is not assigned stays.
    pub(crate) fn to_draft(&self) -> Draft {
        Draft {
            values: self.values.clone(),
            defaults: Vec::new(),
            // A row that is written is fresh, unless the statement says otherwise.
            head: NewHead::fresh(self.identity.deadline, self.identity.client_flags),
        }
    }

    /// What the write expects that removes it, or puts a new row in its place.
    pub(crate) fn before(&self, new: Option<&Draft>) -> Before {
        Before::of(&self.identity, new.map(|draft| &draft.head))
    }
}

/// A draft as a list shows it.
pub(crate) fn listed(draft: &Draft, now: u32) -> ListRow {
    ListRow {
        values: draft.values.clone(),
        cas: draft.head.cas,
        expiry: word_of_expiry(draft.head.expiry, now),
        client_flags: draft.head.client_flags,
        renewal: draft.head.renewal,
    }
}
