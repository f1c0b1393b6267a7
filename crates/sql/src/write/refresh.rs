//! The rows of a materialized view: those that its query gives, beside those that are there. What is the same stays as
//! it is, so a refresh writes what has changed, and nothing in a view that is right.

use std::collections::HashMap;
use std::sync::Arc;

use store::value::{Value, ValueRef};
use store::{Catalog, Change, Expect, Expiry, NewRow, Renewal, RowBuf, Store, Table, Write, WriteError};

use super::batch::Batch;
use super::target::{Draft, accept};
use crate::describe::ColumnDescription;
use crate::done::RowSink;
use crate::error::{SqlError, state};
use crate::limits::ROWS_PER_STATEMENT_MAX;

/// What a row takes beside its key and its payload, in the arena.
const ROW_HEAD_BYTES: usize = 32;

/// Takes the rows of a view's query.
#[derive(Debug)]
pub(crate) struct ViewRows {
    store: Arc<Store>,
    /// The view, under a handle that may write it.
    table: Arc<Table>,
    batch: Batch,
    /// The columns that the query fills.
    columns: Vec<usize>,
    rows: Rows,
    count: u64,
    bytes: usize,
    bytes_max: u64,
}

/// The rows by what tells them apart.
#[derive(Debug)]
enum Rows {
    /// Payloads by their keys.
    Keyed(HashMap<Vec<u8>, Vec<u8>>),
    /// How often there is a row of this payload: they have numbers, which say nothing.
    Numbered(HashMap<Vec<u8>, usize>),
}

impl ViewRows {
    pub(crate) fn new(store: &Arc<Store>, catalog: &Arc<Catalog>, view: &Table) -> Self {
        let table = view.of_refresh();
        let rows = if table.def().has_row_id() {
            Rows::Numbered(HashMap::new())
        } else {
            Rows::Keyed(HashMap::new())
        };
        Self {
            store: Arc::clone(store),
            batch: Batch::new(catalog, &table, false, false),
            columns: table.def().visible_columns().map(|(at, _)| at).collect(),
            bytes_max: store.view_bytes_max(view),
            table,
            rows,
            count: 0,
            bytes: 0,
        }
    }

    /// How many rows there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Makes the view have these rows, in one step. Returns how many were written or removed.
    pub(crate) fn apply(self) -> Result<u64, SqlError> {
        let writes = self.writes()?;
        let changed = writes.len() as u64;
        let table = Arc::clone(&self.table);
        self.store.commit(&writes).map_err(|error| refused(&table, error))?;
        Ok(changed)
    }

    /// What is to be written and removed.
    fn writes(&self) -> Result<Vec<Write>, SqlError> {
        let view = self.store.own_view();
        let mut scan = view.scan(&self.table);
        let (mut row, mut writes) = (RowBuf::new(), Vec::new());
        match &self.rows {
            Rows::Keyed(rows) => {
                let mut same = Vec::new();
                while scan.next(&view, &mut row)? {
                    match rows.get(row.key()) {
                        Some(payload) if payload == row.payload() => same.push(row.key().to_vec()),
                        Some(_) => {}
                        None => writes.push(self.write(row.key().to_vec(), None)),
                    }
                }
                let same: std::collections::HashSet<Vec<u8>> = same.into_iter().collect();
                let new = rows.iter().filter(|(key, _)| !same.contains(*key));
                writes.extend(new.map(|(key, payload)| self.write(key.clone(), Some(payload))));
            }
            Rows::Numbered(rows) => {
                let mut missing = rows.clone();
                let mut old = Vec::new();
                while scan.next(&view, &mut row)? {
                    match missing.get_mut(row.payload()).filter(|count| **count > 0) {
                        Some(count) => *count -= 1,
                        None => old.push(row.key().to_vec()),
                    }
                }
                for (payload, count) in missing {
                    for _ in 0..count {
                        let key = old.pop().map_or_else(|| self.new_key(), Ok)?;
                        writes.push(self.write(key, Some(&payload)));
                    }
                }
                writes.extend(old.into_iter().map(|key| self.write(key, None)));
            }
        }
        Ok(writes)
    }

    /// The number of a row that is new.
    fn new_key(&self) -> Result<Vec<u8>, SqlError> {
        let mut key = Vec::new();
        let number = ValueRef::Integer(self.store.next_row_id(&self.table));
        let encoded = self.table.keys().encode(&[number], &mut key);
        encoded.map_err(|error| SqlError::new(state::INTERNAL, error.to_string()))?;
        Ok(key)
    }

    /// One write: nobody else writes the view, so it expects nothing.
    fn write(&self, key: Vec<u8>, payload: Option<&Vec<u8>>) -> Write {
        let change = match payload {
            None => Change::Delete,
            Some(payload) => Change::Put(NewRow {
                payload: payload.clone(),
                expiry: Expiry::Table,
                client_flags: 0,
                cas: None,
                renewal: Renewal::default(),
            }),
        };
        Write { table: Arc::clone(&self.table), key, change, expect: Expect::Anything }
    }

    /// A row of the query as the view stores it.
    fn draft(&self, values: &[ValueRef<'_>]) -> Result<Draft, SqlError> {
        let mut draft = Draft::defaults(&self.table);
        if values.len() != self.columns.len() {
            let message =
                format!("the query gives {} columns, and the view has {}", values.len(), self.columns.len());
            return Err(
                SqlError::new(state::BAD_DEFINITION, message).with_hint("drop the view and create it again")
            );
        }
        for (&at, value) in self.columns.iter().zip(values) {
            draft.values[at] = accept(&self.table, at, Value::from(*value))?;
        }
        self.batch.complete(&self.store, &mut draft, true)?;
        Ok(draft)
    }

    fn charge(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.count += 1;
        self.bytes += bytes + ROW_HEAD_BYTES;
        if self.count > ROWS_PER_STATEMENT_MAX as u64 {
            let message = format!("the query gives more than {ROWS_PER_STATEMENT_MAX} rows");
            return Err(SqlError::new(state::TOO_LARGE, message));
        }
        if self.bytes as u64 > self.bytes_max {
            let message = format!("the rows of the view take more than {} bytes", self.bytes_max);
            return Err(SqlError::new(state::OUT_OF_MEMORY, message).with_hint(
                "rows of views are not evicted, and take half of the memory (-m) at most, and max_memory",
            ));
        }
        Ok(())
    }
}

impl RowSink for ViewRows {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let draft = self.draft(values)?;
        let mut key = Vec::new();
        let payload = self.batch.encode_payload(&draft, &mut key)?;
        self.charge(key.len() + payload.len())?;
        match &mut self.rows {
            Rows::Numbered(rows) => *rows.entry(payload).or_default() += 1,
            Rows::Keyed(rows) => {
                if rows.insert(key, payload).is_some() {
                    return Err(twice(&self.table, &draft.values));
                }
            }
        }
        Ok(())
    }
}

/// The query gave a key twice.
#[cold]
fn twice(table: &Table, values: &[Value]) -> SqlError {
    let def = table.def();
    let error = SqlError::new(state::UNIQUE, format!("could not create unique index \"{}\"", def.key_name()));
    match super::taken::key_of(table, &def.primary_key, values) {
        Some(key) => error.with_detail(format!("Key {key} is duplicated.")),
        None => error,
    }
}

/// The error of a commit that was refused.
#[cold]
fn refused(table: &Table, error: WriteError) -> SqlError {
    match error {
        WriteError::Unique { index, .. } => {
            SqlError::new(state::UNIQUE, format!("could not create unique index \"{index}\""))
        }
        error => super::plan::refused(table, error),
    }
}
