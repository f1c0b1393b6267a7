//! Rows that travel between caches: what one says of a row, and how another has it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::clock::{NEVER, TICKS_PER_SECOND, Tick, ticks_between};
use crate::error::WriteError;
use crate::mutation::Mutation;
use crate::row::RowBuf;
use crate::row::meta::ItemMeta;
use crate::row::new::NewRow;
use crate::row::renewal::Renewal;
use crate::row::request::{Expect, Expiry, Outcome};
use crate::row::version::Version;
use crate::rows::Rows;
use crate::rows::write::{Glance, Target};
use crate::table::Table;
use crate::time::Time;
use crate::value::{Value, ValueRef};

/// When a row ends, in words of all machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// By the rules of its table.
    Table,
    /// Not by time.
    Never,
    /// At this time, in milliseconds since 1970.
    At(u64),
}

/// A row without its key, as caches tell it to one another.
#[derive(Clone, Debug, PartialEq)]
pub struct Replica {
    /// The columns outside the key that statements can name, in the order of the table.
    pub values: Vec<Value>,
    /// The memcached client's 32 bits.
    pub client_flags: u32,
    /// When it ends.
    pub ends: Ends,
    /// It is stale.
    pub stale: bool,
}

impl Replica {
    /// What there is to say of a row that is written at this moment.
    pub fn of(time: &Time, table: &Table, row: &RowBuf) -> Self {
        let values = told_columns(table).map(|column| table.column(row, column).to_owned()).collect();
        Self {
            values,
            client_flags: row.client_flags(),
            ends: time.ends(table, row.expiry()),
            stale: row.head().is_stale(),
        }
    }

    /// What there is to say of a row that was written some time ago.
    pub(crate) fn given(time: &Time, table: &Table, row: &RowBuf) -> Self {
        let meta = ItemMeta::of(row.head(), 0);
        let ends = match (meta.word, time.remaining(table, &meta, time.now())) {
            (NEVER, _) => Ends::Never,
            (_, None) => Ends::Table,
            (_, Some(left)) => time.ends_after(left),
        };
        Self { ends, ..Self::of(time, table, row) }
    }

    /// Bytes of its values.
    pub fn bytes(&self) -> usize {
        let of = |value: &Value| match value {
            Value::Text(text) => text.len(),
            Value::Blob(bytes) => bytes.len(),
            Value::Null | Value::Integer(_) | Value::Real(_) => 0,
        };
        self.values.iter().map(|value| of(value) + size_of::<Value>()).sum()
    }
}

/// The columns whose values are told.
fn told_columns(table: &Table) -> impl Iterator<Item = usize> {
    let def = table.def();
    def.visible_columns().map(|(at, _)| at).filter(|at| !def.is_key(*at))
}

impl Time {
    /// When a row with this expiry word ends that is written now.
    fn ends(&self, table: &Table, word: Tick) -> Ends {
        // Relaxed: a rule that changes takes effect soon.
        let ttl = table.state.limits.ttl_ticks.load(Ordering::Relaxed);
        let ticks = match word {
            NEVER => return Ends::Never,
            0 if ttl == 0 => return Ends::Table,
            0 => u64::from(ttl),
            deadline => ticks_between(self.now(), deadline),
        };
        self.ends_after(ticks)
    }

    fn ends_after(&self, ticks: u64) -> Ends {
        let ms = ticks.saturating_mul(1_000) / TICKS_PER_SECOND;
        Ends::At(self.clock.unix_ms().saturating_add(ms))
    }

    /// The same as this machine has it.
    fn expiry_of(&self, ends: Ends) -> Expiry {
        match ends {
            Ends::Table => Expiry::Table,
            Ends::Never => Expiry::Never,
            Ends::At(unix_ms) => match unix_ms.saturating_sub(self.clock.unix_ms()) {
                0 => Expiry::Now,
                left => Expiry::At(self.tick_after(Duration::from_millis(left))),
            },
        }
    }
}

impl Rows {
    /// Gives a key the row that another cache has told. False: a write of this cache is under way, and decides.
    pub fn put_replica(
        &self,
        table: &Table,
        key: &[u8],
        replica: &Replica,
        now: Tick,
    ) -> Result<bool, WriteError> {
        self.by_newest(table, |table| self.put_replica_by(table, key, replica, now))
    }

    fn put_replica_by(
        &self,
        table: &Table,
        key: &[u8],
        replica: &Replica,
        now: Tick,
    ) -> Result<bool, WriteError> {
        let row = self.row_of(table, replica)?;
        self.publish_of_peer(table, key, Some(&row), Expect::Anything, now)
    }

    /// The row of this table that another cache means.
    pub(crate) fn row_of(&self, table: &Table, replica: &Replica) -> Result<NewRow, WriteError> {
        let mut values = vec![ValueRef::Null; table.def().columns.len()];
        for (column, value) in told_columns(table).zip(&replica.values) {
            values[column] = value.as_ref();
        }
        let mut payload = Vec::new();
        table.encode_payload(&values, &mut payload)?;
        let renewal = Renewal { stale: replica.stale, ..Renewal::default() };
        let (client_flags, expiry) = (replica.client_flags, self.expiry_of(replica.ends));
        Ok(NewRow { payload, expiry, client_flags, cas: None, renewal })
    }

    /// Removes a key that another cache has told. False: a write of this cache is under way, and decides.
    pub fn remove_replica(&self, table: &Table, key: &[u8], now: Tick) -> Result<bool, WriteError> {
        self.publish_of_peer(table, key, None, Expect::Anything, now)
    }

    /// Whether a write of this cache to a key is under way.
    pub fn is_replica_under_way(&self, table: &Table, key: &[u8]) -> bool {
        self.is_under_way(table, Some(key))
    }

    /// Has a key be what another cache says, unless a write of this cache is under way.
    pub(crate) fn publish_of_peer(
        &self,
        table: &Table,
        key: &[u8],
        new: Option<&NewRow>,
        expect: Expect,
        now: Tick,
    ) -> Result<bool, WriteError> {
        let hash = self.arena.of(table.id()).hash(table.id(), key);
        let new = new.filter(|row| !table.has_ended(row.expiry, now));
        let Some(row) = new else {
            let target = Target { hash, key, seen: None, copy: None };
            return self.publish_spared(table, &target, None, expect, now);
        };
        let Ok(Glance { queue, seen }) = self.glance(table, hash, key, expect, now) else { return Ok(false) };
        self.checkpoint(now);
        let placed = self.place(table, queue, &row.parts(key, &[&row.payload]), false, now)?;
        let target = Target { hash, key, seen, copy: None };
        let done = self.publish_spared(table, &target, Some(placed.version), expect, now);
        drop(placed);
        self.after_write(table, now);
        done
    }

    fn publish_spared(
        &self,
        table: &Table,
        target: &Target<'_>,
        new: Option<Version>,
        expect: Expect,
        now: Tick,
    ) -> Result<bool, WriteError> {
        let mut shard = self.shard(target.hash).lock();
        let _mutation = Mutation;
        self.settle_mark(&mut shard, table, target.hash, target.key);
        if self.is_under_way(table, Some(target.key)) {
            return Ok(false);
        }
        let outcome = self.publish_locked(&mut shard, table, target, new, expect, now)?;
        Ok(matches!(outcome, Outcome::Done(_)))
    }
}
