//! What a row bears beside its values: a deadline, a client's flags, a CAS value, staleness and lease.

use std::time::Duration;

use pgcatalog::shape::DEADLINE_OF_TABLE;
use store::scalar::interval::Interval;
use store::scalar::moment::micros_of;
use store::value::{Affinity, Value};
use store::{Change, Expiry, NewRow, Renewal, Store, Table};

use crate::error::{SqlError, state};
use crate::table::Identity;

/// A column that is assigned and is none of the table's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadColumn {
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

/// The head of a row as it will be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewHead {
    pub(crate) expiry: Expiry,
    pub(crate) client_flags: u32,
    /// The CAS value that it keeps, where the write changes nothing that a client read.
    pub(crate) cas: Option<u64>,
    pub(crate) renewal: Renewal,
}

impl Default for NewHead {
    /// That of a new row.
    fn default() -> Self {
        Self { expiry: Expiry::Table, client_flags: 0, cas: None, renewal: Renewal::default() }
    }
}

impl NewHead {
    /// That of a version whose columns are written, in the place of another: it is fresh, and ends when that one does.
    pub(crate) fn fresh(expiry: Expiry, client_flags: u32) -> Self {
        Self { expiry, client_flags, ..Self::default() }
    }

    /// That of a version in whose head alone something is written, before it is.
    pub(crate) fn same(identity: &Identity) -> Self {
        Self { renewal: identity.renewal, ..Self::fresh(identity.deadline, identity.client_flags) }
    }

    /// Assigns a computed value.
    pub(crate) fn assign(
        &mut self,
        store: &Store,
        table: &Table,
        column: HeadColumn,
        value: Value,
    ) -> Result<(), SqlError> {
        match column {
            HeadColumn::Flags => self.client_flags = flags(value)?,
            HeadColumn::ExpiresAt => self.expiry = expires_at(store, value)?,
            HeadColumn::Ttl => self.expiry = ttl(store, value)?,
            HeadColumn::Stale => {
                self.renewal = Renewal { stale: truth(value, "_stale")?, lease: Some(0), same_lease: false };
            }
            HeadColumn::Leased => {
                let until = if truth(value, "_leased")? { store.lease_end(table, store.now()) } else { 0 };
                self.renewal = Renewal { lease: Some(until), same_lease: false, ..self.renewal };
            }
        }
        Ok(())
    }

    /// An update of these columns alone, staleness or lease among them, is no new value: the row still ends when its
    /// table's `ttl` says. A claim keeps the CAS value, too: a client that read the row before may still write it.
    pub(crate) fn keep_what_was_read(
        &mut self,
        store: &Store,
        table: &Table,
        identity: &Identity,
        columns: &[HeadColumn],
    ) {
        let marks = columns.iter().any(|column| matches!(column, HeadColumn::Stale | HeadColumn::Leased));
        if marks && self.expiry == Expiry::Kept(0) && identity.stamp != 0 {
            self.expiry = store.kept_or_own(table, identity.stamp);
        }
        if claims(columns) && identity.stamp != 0 {
            self.cas = Some(identity.cas);
        }
    }

    /// The change that writes a row of this payload.
    pub(crate) fn change(self, payload: Vec<u8>) -> Change {
        let Self { expiry, client_flags, cas, renewal } = self;
        match expiry {
            Expiry::Now => Change::Delete,
            expiry => Change::Put(NewRow { payload, expiry, client_flags, cas, renewal }),
        }
    }

    /// The row goes to another key, where there is no row whose deadline and lease it could take over.
    pub(crate) fn settle(&mut self) {
        self.expiry = self.expiry.settled();
        self.renewal.same_lease = false;
    }
}

/// Whether an update takes or gives back a lease, and changes nothing else but a deadline.
fn claims(columns: &[HeadColumn]) -> bool {
    let of_claim =
        |column: &HeadColumn| matches!(column, HeadColumn::Leased | HeadColumn::Ttl | HeadColumn::ExpiresAt);
    columns.contains(&HeadColumn::Leased) && columns.iter().all(of_claim)
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

/// Whether it is what `DEFAULT` is for a deadline.
fn is_of_table(value: &Value) -> bool {
    matches!(value, Value::Text(text) if text == DEADLINE_OF_TABLE)
}

fn ttl(store: &Store, value: Value) -> Result<Expiry, SqlError> {
    if is_of_table(&value) {
        return Ok(Expiry::Table);
    }
    let expected = "_ttl is a number of seconds, an interval ('10 min') or NULL for never";
    let span = |text: &str| Interval::parse(text).ok().map(Interval::seconds);
    let Some(seconds) = seconds(value, span, expected)? else { return Ok(Expiry::Never) };
    Ok(after(store, seconds))
}

fn expires_at(store: &Store, value: Value) -> Result<Expiry, SqlError> {
    if is_of_table(&value) {
        return Ok(Expiry::Table);
    }
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
