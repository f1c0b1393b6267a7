//! What a column in `INSERT (...)` or `SET` stands for, and the row that its values make.

use std::time::Duration;

use store::definition::{ColumnDef, Identity};
use store::scalar::interval::Interval;
use store::scalar::moment::micros_of;
use store::value::{Affinity, Value};
use store::{Expiry, Renewal, Store, Table, WriteError};

use crate::error::{SqlError, state};
use crate::table::is_stored_as_it_is;
use crate::table::{Column, Head, Shape};

/// Where an assigned value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The table's column at this position.
    Stored(usize),
    /// The memcached client's flags.
    Flags,
    /// The deadline, as a Unix second; NULL is none.
    ExpiresAt,
    /// The deadline, as seconds from now; NULL is none.
    Ttl,
    /// Whether it is stale: TRUE invalidates softly.
    Stale,
    /// Whether a client refreshes it: TRUE says that it is the one that sent the statement.
    Leased,
}

impl Target {
    /// What a column's name stands for; columns that are only read are refused.
    pub(crate) fn named(table: &Table, shape: &Shape, name: &str) -> Result<Self, SqlError> {
        Self::named_by(table, shape, name, false)
    }

    /// The same. `overrides`: numbers that the server gives may be given instead.
    pub(crate) fn named_by(
        table: &Table,
        shape: &Shape,
        name: &str,
        overrides: bool,
    ) -> Result<Self, SqlError> {
        let shown = shape.named(name).ok_or_else(|| SqlError::unknown_column(table.name(), name))?;
        match shown.column {
            Column::Stored(at) if overrides && table.def().columns[at].identity.is_some() => {
                Ok(Self::Stored(at))
            }
            Column::Stored(at) if is_made(&table.def().columns[at]) => {
                Err(WriteError::Generated(shown.name.clone()).into())
            }
            Column::Stored(at) => Ok(Self::Stored(at)),
            Column::Head(Head::Flags) => Ok(Self::Flags),
            Column::Head(Head::ExpiresAt) => Ok(Self::ExpiresAt),
            Column::Head(Head::Ttl) => Ok(Self::Ttl),
            Column::Head(Head::Stale) => Ok(Self::Stale),
            Column::Head(Head::Leased) => Ok(Self::Leased),
            Column::Head(_) => {
                let message = format!("column \"{}\" can only be read: the server computes it", shown.name);
                Err(SqlError::new("428C9", message))
            }
        }
    }
}

/// A row as it will be written, before it is encoded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Draft {
    /// One value for each column of the table.
    pub(crate) values: Vec<Value>,
    /// The columns that wait for the value of their default expression.
    pub(crate) defaults: Vec<usize>,
    pub(crate) expiry: Expiry,
    pub(crate) client_flags: u32,
    /// The CAS value that it keeps, where the write changes nothing that a client read.
    pub(crate) cas: Option<u64>,
    pub(crate) renewal: Renewal,
}

impl Draft {
    /// A row of defaults.
    pub(crate) fn defaults(table: &Table) -> Self {
        let columns = &table.def().columns;
        let values = columns.iter().map(|column| column.default.clone().unwrap_or_default());
        let computed = (0..columns.len()).filter(|&at| columns[at].default_sql.is_some());
        Self {
            values: values.collect(),
            defaults: computed.collect(),
            expiry: Expiry::Table,
            client_flags: 0,
            cas: None,
            renewal: Renewal::default(),
        }
    }

    /// Assigns a computed value, converted to what the column stores.
    pub(crate) fn assign(
        &mut self,
        store: &Store,
        table: &Table,
        target: Target,
        value: Value,
    ) -> Result<(), SqlError> {
        match target {
            Target::Stored(at) => {
                self.values[at] = accept(table, at, value)?;
                self.defaults.retain(|&waiting| waiting != at);
            }
            Target::Flags => self.client_flags = flags(value)?,
            Target::ExpiresAt => self.expiry = expires_at(store, value)?,
            Target::Ttl => self.expiry = ttl(store, value)?,
            Target::Stale => {
                self.renewal = Renewal { stale: truth(value, "_stale")?, lease: Some(0), same_lease: false };
            }
            Target::Leased => {
                let until = if truth(value, "_leased")? { store.lease_end(table, store.now()) } else { 0 };
                self.renewal = Renewal { lease: Some(until), same_lease: false, ..self.renewal };
            }
        }
        Ok(())
    }

    /// The row goes to another key, where there is no row whose deadline and lease it could take over.
    pub(crate) fn settle(&mut self) {
        self.expiry = self.expiry.settled();
        self.renewal.same_lease = false;
    }

    /// The first column that is NULL and must not be.
    pub(crate) fn null_column(&self, table: &Table) -> Option<usize> {
        let columns = table.def().columns.iter().zip(&self.values);
        columns.into_iter().position(|(column, value)| column.not_null && value.is_null())
    }
}

/// Whether the server alone makes the column's values.
fn is_made(column: &ColumnDef) -> bool {
    column.generated.is_some() || column.identity == Some(Identity::Always)
}

/// A value as the column stores it.
pub(crate) fn accept(table: &Table, at: usize, value: Value) -> Result<Value, SqlError> {
    if is_stored_as_it_is(table, at, value.as_ref()) { Ok(value) } else { Ok(table.accept(at, value)?) }
}

fn truth(value: Value, column: &str) -> Result<bool, SqlError> {
    match value.with_affinity(Affinity::Numeric) {
        Value::Integer(truth @ (0 | 1)) => Ok(truth == 1),
        _ => Err(SqlError::new(state::BAD_VALUE, format!("{column} is TRUE or FALSE"))),
    }
}

fn flags(value: Value) -> Result<u32, SqlError> {
    match value.with_affinity(Affinity::Integer) {
        Value::Null => Ok(0),
        Value::Integer(flags) => u32::try_from(flags).map_err(|_| {
            SqlError::new(state::OUT_OF_RANGE, format!("flags {flags} are out of range: they are 32 bits"))
        }),
        _ => Err(SqlError::new(state::BAD_VALUE, "flags must be an integer of 32 bits")),
    }
}

/// Seconds as a number, or what `read` makes of a text; `None` for NULL.
fn seconds(
    value: Value,
    read: impl FnOnce(&str) -> Option<f64>,
    expected: &str,
) -> Result<Option<f64>, SqlError> {
    let found = match value.with_affinity(Affinity::Numeric) {
        Value::Null => return Ok(None),
        Value::Integer(integer) => Some(integer as f64),
        Value::Real(real) => Some(real),
        Value::Text(text) => read(&text),
        Value::Blob(_) => None,
    };
    found.map(Some).ok_or_else(|| SqlError::new(state::BAD_VALUE, expected))
}

fn ttl(store: &Store, value: Value) -> Result<Expiry, SqlError> {
    let expected = "_ttl is a number of seconds, an interval ('10 min') or NULL for never";
    let span = |text: &str| Interval::parse(text).ok().map(Interval::seconds);
    let Some(seconds) = seconds(value, span, expected)? else { return Ok(Expiry::Never) };
    Ok(after(store, seconds))
}

fn expires_at(store: &Store, value: Value) -> Result<Expiry, SqlError> {
    let expected = "_expires_at is a Unix time in seconds, a time ('2026-11-21 20:00+01') or NULL for never";
    let moment = |text: &str| Some(micros_of(text).ok()?? as f64 / 1e6);
    let Some(moment) = seconds(value, moment, expected)? else { return Ok(Expiry::Never) };
    Ok(after(store, moment - store.clock().unix_ms() as f64 / 1e3))
}

fn after(store: &Store, seconds: f64) -> Expiry {
    if seconds <= 0.0 {
        return Expiry::Now;
    }
    // The store's last moment comes before this; a later one is the last one.
    Duration::try_from_secs_f64(seconds).map_or(Expiry::Never, |ahead| Expiry::At(store.tick_after(ahead)))
}
