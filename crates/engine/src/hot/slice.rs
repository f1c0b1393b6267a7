//! What was sampled in some seconds, in bounded memory.
//!
//! A slice has room for so many keys. When they are there, the half that was used least is forgotten: what is hot was
//! met often by then, and what is hot from now on comes back with its next use. So a count is never too high, and too
//! low only for a key that was among the least used.

use std::collections::HashMap;
use std::sync::Arc;

use rapidhash::fast::RandomState;
use store::{Catalog, Table, TableId};

use super::Used;
use crate::limits::HOT_SLICE_KEYS_MAX;

/// How often something was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) reads: u64,
    pub(super) writes: u64,
}

impl Counts {
    pub(super) fn all(self) -> u64 {
        self.reads + self.writes
    }

    pub(super) fn add(&mut self, other: Self) {
        self.reads += other.reads;
        self.writes += other.writes;
    }
}

impl From<Used> for Counts {
    fn from(Used { writes, times }: Used) -> Self {
        let times = u64::from(times);
        if writes { Self { reads: 0, writes: times } } else { Self { reads: times, writes: 0 } }
    }
}

/// The keys of one table.
#[derive(Debug)]
struct OfTable {
    table: Arc<Table>,
    keys: HashMap<Box<[u8]>, Counts, RandomState>,
    /// Of all keys, also of those that were forgotten.
    sum: Counts,
}

/// The keys of all tables.
#[derive(Debug, Default)]
pub(super) struct Slice {
    tables: HashMap<TableId, OfTable, RandomState>,
    /// Keys of all of them.
    len: usize,
}

impl Slice {
    /// Counts a key of a table of this catalogue.
    pub(super) fn add(&mut self, catalog: &Catalog, table: &Arc<Table>, key: &[u8], used: Used) {
        if self.len >= HOT_SLICE_KEYS_MAX {
            self.forget_half();
        }
        let of_table = self.tables.entry(table.id()).or_insert_with(|| OfTable::new(table));
        if !Arc::ptr_eq(&of_table.table, table) {
            // It was altered, or another table has its number.
            if catalog.current(&of_table.table).is_some() {
                of_table.table = Arc::clone(table);
            } else {
                self.len -= of_table.keys.len();
                *of_table = OfTable::new(table);
            }
        }
        of_table.sum.add(used.into());
        if let Some(counts) = of_table.keys.get_mut(key) {
            counts.add(used.into());
        } else {
            of_table.keys.insert(key.into(), used.into());
            self.len += 1;
        }
    }

    /// Forgets the keys that were not used more often than half of all are.
    fn forget_half(&mut self) {
        let each = self.tables.values().flat_map(|of_table| of_table.keys.values());
        let mut uses: Vec<u64> = each.map(|counts| counts.all()).collect();
        let middle = uses.len() / 2;
        let (_, median, _) = uses.select_nth_unstable(middle);
        let median = *median;
        self.len = 0;
        for of_table in self.tables.values_mut() {
            of_table.keys.retain(|_, counts| counts.all() > median);
            self.len += of_table.keys.len();
        }
    }

    /// The tables that have keys here.
    pub(super) fn tables(&self) -> impl Iterator<Item = TableId> {
        self.tables.keys().copied()
    }

    /// The table of a number, as it was when it was counted last.
    pub(super) fn table(&self, id: TableId) -> Option<&Arc<Table>> {
        self.tables.get(&id).map(|of_table| &of_table.table)
    }

    /// The keys of a table.
    pub(super) fn keys(&self, id: TableId) -> impl Iterator<Item = (&[u8], Counts)> {
        let keys = self.tables.get(&id).into_iter().flat_map(|of_table| &of_table.keys);
        keys.map(|(key, counts)| (&**key, *counts))
    }

    /// How often all keys of a table were used.
    pub(super) fn sum(&self, id: TableId) -> Counts {
        self.tables.get(&id).map_or_else(Counts::default, |of_table| of_table.sum)
    }
}

impl OfTable {
    fn new(table: &Arc<Table>) -> Self {
        Self { table: Arc::clone(table), keys: HashMap::default(), sum: Counts::default() }
    }
}
