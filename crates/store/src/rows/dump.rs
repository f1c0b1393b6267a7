//! A walk through every row that memcached can reach, in steps: who asks for all keys waits for them, and nobody else.
//!
//! Between two steps nothing is held, no lock and no version, so a reader may take as long as it likes. A row that is
//! there from the beginning to the end is met exactly once; one that comes or goes meanwhile may be met or not.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena::{Arena, Hits, Location, ScanShape};

use crate::clock::Tick;
use crate::row::meta::ItemMeta;
use crate::rows::Rows;
use crate::rows::read::value_len;
use crate::table::Table;

/// Where a walk stands.
#[derive(Debug)]
pub struct Dump {
    /// Tables that are not done; the first is under way.
    tables: VecDeque<Arc<Table>>,
    /// The groups of buckets of the table under way, once it has begun, and which is next. A key stays in its group
    /// however the index grows.
    shape: Option<ScanShape>,
    group: u64,
    locations: Vec<Location>,
}

/// A row as a step meets it.
#[derive(Debug)]
pub struct Dumped<'d> {
    /// Its table.
    pub table: &'d Arc<Table>,
    /// Its key as memcached clients write it, with the table's prefix.
    pub key: &'d [u8],
    /// What is known of it.
    pub meta: ItemMeta,
    /// What is known of hits on it.
    pub hits: Hits,
}

impl Rows {
    /// A walk that begins.
    pub fn begin_dump(&self) -> Dump {
        let catalog = self.catalog();
        let tables = catalog.tables().filter(|table| table.def().answers_to_memcached()).cloned();
        Dump { tables: tables.collect(), shape: None, group: 0, locations: Vec::new() }
    }

    /// Goes on by one group of buckets, which holds some rows, and gives those that are live. False: that was the last.
    pub fn dump_step(&self, dump: &mut Dump, now: Tick, give: &mut dyn FnMut(&Dumped<'_>)) -> bool {
        let Some(table) = dump.tables.front() else { return false };
        // Acquire: pairs with the store that marks a dropped table, whose number another one may have by now.
        let shape = *dump.shape.get_or_insert_with(|| self.arena.of(table.id()).scan_shape());
        if dump.group < shape.groups && self.may_hold_rows(table) && !table.state.gone.load(Ordering::Acquire)
        {
            self.dump_group(table, shape, dump.group, &mut dump.locations, now, give);
            dump.group += 1;
        } else {
            dump.tables.pop_front();
            dump.shape = None;
            dump.group = 0;
        }
        !dump.tables.is_empty()
    }

    /// Whether a walk through the table may find something. Rows of an earlier process are counted behind the start.
    fn may_hold_rows(&self, table: &Table) -> bool {
        table.rows() > 0 || self.is_unsettled()
    }

    /// The rows of one group, under the lock that keeps them in place.
    fn dump_group(
        &self,
        table: &Arc<Table>,
        shape: ScanShape,
        group: u64,
        locations: &mut Vec<Location>,
        now: Tick,
        give: &mut dyn FnMut(&Dumped<'_>),
    ) {
        let shard = self.shard_at(Arena::shard_of_group(group)).lock();
        locations.clear();
        self.arena.of(table.id()).scan_group(&shard.token, shape, group, table.id(), locations);
        let (mut stored, mut key) = (Vec::new(), Vec::new());
        for &location in locations.iter() {
            let Some(read) = self.arena.of(location).row(location) else { continue };
            if read.head().table != table.id() || !self.is_live(table, read.head(), now) {
                continue;
            }
            stored.clear();
            read.copy_key(&mut stored);
            let hash = self.arena.of(table.id()).hash(table.id(), &stored);
            let Some(slot) = self.arena.of(location).find_location(&shard.token, hash, location) else {
                continue;
            };
            key.clear();
            key.extend_from_slice(table.def().options.prefix.as_deref().unwrap_or_default().as_bytes());
            // A key that no memcached client can write is none of theirs.
            if table.keys().to_text(&stored, &mut key).is_err() {
                continue;
            }
            let meta = ItemMeta::of(read.head(), value_len(table, &read));
            give(&Dumped { table, key: &key, meta, hits: self.arena.of(slot).hits(slot, now) });
        }
    }
}
