//! The keys that clients read and write most in the last minute, by table, from samples of memcached's commands.
//!
//! A thread takes a sample where it times a command anyway, so a command between two samples costs nothing
//! (`sampling.rs`). The key goes into a buffer of the thread (`samples.rs`). Each tick the housekeeping resolves what
//! is in the buffers, and counts it in a slice of ten seconds (`slice.rs`). A view adds the slices up.

mod samples;
mod sampling;
mod slice;

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use rapidhash::fast::RandomState;
use sql::HotKeyFacts;
use store::{Catalog, Store, Table, TableId, Tick, ticks_between};

use self::slice::{Counts, Slice};
use crate::limits::{HOT_KEYS_SHOWN, HOT_SLICE_TICKS, HOT_SLICES};
use crate::resolve::resolve;

pub(crate) use self::samples::{Samples, Used};
pub(crate) use self::sampling::Sampling;

/// What was sampled in the last minute. Taken by the housekeeping each tick, and by who looks.
#[derive(Debug, Default)]
pub(crate) struct HotKeys(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    /// The newest last.
    slices: VecDeque<Slice>,
    /// When the newest began.
    since: Tick,
    /// Samples on their way from the threads to the slice; kept so that a tick allocates nothing.
    taken: Vec<u8>,
}

impl HotKeys {
    /// Counts what the threads sampled since the last tick.
    pub(crate) fn count<'s>(&self, store: &Store, buffers: impl Iterator<Item = &'s Samples>) {
        let mut window = self.0.lock();
        let Window { slices, since, taken } = &mut *window;
        turn_to(store.now(), slices, since);
        buffers.for_each(|samples| samples.take_into(taken));
        let Some(slice) = slices.back_mut().filter(|_| !taken.is_empty()) else { return };
        let (catalog, mut encoded) = (store.catalog(), Vec::new());
        for (key, used) in samples::each(taken) {
            if let (table, Ok(key)) = resolve(&catalog, key, &mut encoded) {
                slice.add(&catalog, table, key, used);
            }
        }
        taken.clear();
    }

    /// The keys used most, of the table of this name or of each.
    pub(crate) fn list(&self, catalog: &Catalog, table: Option<&str>) -> Vec<HotKeyFacts> {
        let window = self.0.lock();
        let slices = &window.slices;
        let mut ids: Vec<TableId> = slices.iter().flat_map(Slice::tables).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut all = Vec::new();
        for id in ids {
            // A table that was dropped meanwhile shows no keys, also where another one has its number now.
            let counted = slices.iter().rev().find_map(|slice| slice.table(id));
            let Some(current) = counted.and_then(|counted| catalog.current(counted)) else { continue };
            if table.is_none_or(|name| current.name() == name) {
                all.extend(hottest(slices, current));
            }
        }
        all
    }
}

/// Begins another slice if the time of the newest is over, and forgets those that are older than a minute.
fn turn_to(now: Tick, slices: &mut VecDeque<Slice>, since: &mut Tick) {
    let passed = ticks_between(*since, now) / HOT_SLICE_TICKS;
    if passed == 0 && !slices.is_empty() {
        return;
    }
    *since = now;
    // Slices in which nobody looked are slices without samples.
    for _ in 0..usize::try_from(passed).unwrap_or(usize::MAX).clamp(1, HOT_SLICES) {
        slices.push_back(Slice::default());
    }
    slices.drain(..slices.len().saturating_sub(HOT_SLICES));
}

/// The keys of a table that were read most, and those of the others that were written most.
fn hottest<'s>(slices: &'s VecDeque<Slice>, table: &Arc<Table>) -> Vec<HotKeyFacts> {
    let mut keys: HashMap<&'s [u8], Counts, RandomState> = HashMap::default();
    let mut sum = Counts::default();
    for slice in slices {
        for (key, counts) in slice.keys(table.id()) {
            keys.entry(key).or_default().add(counts);
        }
        sum.add(slice.sum(table.id()));
    }
    let mut keys: Vec<(&[u8], Counts)> = keys.into_iter().collect();
    keys.sort_unstable_by_key(|(key, counts)| (Reverse(counts.reads), Reverse(counts.writes), *key));
    let mut others = keys.split_off(HOT_KEYS_SHOWN.min(keys.len()));
    others.retain(|(_, counts)| counts.writes > 0);
    others.sort_unstable_by_key(|(key, counts)| (Reverse(counts.writes), *key));
    others.truncate(HOT_KEYS_SHOWN);
    let facts = |(key, counts): (&[u8], Counts)| HotKeyFacts {
        table: Arc::clone(table),
        key: key.into(),
        reads: counts.reads,
        writes: counts.writes,
        table_uses: sum.all(),
    };
    keys.into_iter().chain(others).map(facts).collect()
}
