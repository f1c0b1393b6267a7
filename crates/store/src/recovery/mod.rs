//! The start behind the start: rows of an earlier process are served at once, and proved, counted and indexed while
//! everybody reads and writes.
//!
//! A row is proved with its chain of the hash index, by whoever comes first: who asks for it, or the thread that calls
//! [`Recovery::recover`]. Every proved row is counted once, under its shard's lock. When all are proved, their segments
//! join the queues, from which memory is freed; then the ordered indexes are filled, a few buckets at a time. Who must
//! know more than one row waits for what it needs, and does its share: it never gets a wrong answer.

mod indexes;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arena::{Arena, Entry, Location, Queue, RowHead, SegmentId, TableId, Witness};
use parking_lot::{Mutex, ReentrantMutexGuard};

use crate::mutation::Mutation;
use crate::row::RowBuf;
use crate::table::Table;
use crate::table::catalog::Catalog;
use crate::table::queue::place;
use crate::table::removal_cause::RemovalCause;
use crate::value::ValueRef;
use crate::versions::Versions;

/// Shares of the proof that a writer does who finds no memory before it is refused: about two milliseconds.
pub(crate) const SHARES_PER_WRITE: usize = 16;

/// How far the start behind the start has come.
#[derive(Debug, Default)]
pub(crate) struct Recovering {
    /// Every row is proved, and its segment stands in a queue. Release when it is, Acquire by who looks.
    settled: AtomicBool,
    /// All is done, the indexes too. As `settled`.
    done: AtomicBool,
    /// Held by who settles the rows, and by who fills the indexes; taken before every other lock.
    rows_job: Mutex<()>,
    indexes_job: Mutex<()>,
}

/// What the start behind the start came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Rows proved so far.
    pub rows: u64,
    /// Rows dropped because they were torn or damaged.
    pub dropped: u64,
    /// Whether every row is proved and every index filled.
    pub complete: bool,
}

/// Counts the rows that are proved.
#[derive(Debug)]
struct Counting(HashMap<TableId, Arc<Table>>);

impl Witness for Counting {
    fn row(&self, head: &RowHead, queue: Queue, key: &[u8]) {
        // Rows of a table that was dropped go with their segments.
        let Some(table) = self.0.get(&head.table) else { return };
        let counters = &table.state.counters;
        counters.rows[place(queue)].fetch_add(1, Ordering::Relaxed);
        counters.bytes.fetch_add(head.total_bytes as u64, Ordering::Relaxed);
        table.state.row_count.change(None, Some(head.stamp));
        table.state.row_count.note_deadline(head.expiry);
        if table.def().has_row_id()
            && let Ok(ValueRef::Integer(id)) = table.keys().column(key, 0)
        {
            table.state.next_row_id.fetch_max(id.saturating_add(1), Ordering::Relaxed);
        }
    }
}

/// The start behind the start, over [`Versions`].
#[derive(Debug)]
pub struct Recovery {
    versions: Versions,
    /// What the start has left to do.
    recovering: Recovering,
}

impl Deref for Recovery {
    type Target = Versions;

    #[inline]
    fn deref(&self) -> &Versions {
        &self.versions
    }
}

impl Recovery {
    pub(crate) fn new(versions: Versions) -> Self {
        Self { versions, recovering: Recovering::default() }
    }

    /// A row number for a table without a primary key.
    pub fn next_row_id(&self, table: &Table) -> i64 {
        // After a start the greatest number in use is known when every row has been seen.
        self.await_rows();
        table.state.next_row_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Prepares to take over the rows of an earlier process. Nobody uses the store yet.
    pub(crate) fn begin_recovery(&self) {
        if self.arena.is_proved() {
            self.recovering.settled.store(true, Ordering::Release);
            self.recovering.done.store(true, Ordering::Release);
            return;
        }
        let tables: HashMap<_, _> =
            self.catalog().tables().map(|table| (table.id(), Arc::clone(table))).collect();
        for segment in self.arena.segments() {
            let tag = self.arena.of(segment).tag(segment);
            if let Some(table) = tables.get(&tag.table).filter(|_| tag.queue != Queue::Redo) {
                let units = u64::from(self.arena.of(segment).units(segment));
                table.state.counters.units[place(tag.queue)].fetch_add(units, Ordering::Relaxed);
            }
        }
        let counting: Arc<dyn Witness> = Arc::new(Counting(tables));
        self.arena.watch(&counting);
    }

    /// Proves every row that an earlier process left and fills the ordered indexes, while everybody reads and writes.
    /// Returns at once where that is done; who comes while another is at it waits for the end.
    pub fn recover(&self) -> Recovered {
        if !self.recovering.done.load(Ordering::Acquire) {
            self.await_rows();
            let _one = self.recovering.indexes_job.lock();
            if !self.recovering.done.load(Ordering::Acquire) {
                self.fill_indexes();
                self.recovering.done.store(true, Ordering::Release);
            }
        }
        self.recovered()
    }

    /// How far that has come.
    pub fn recovered(&self) -> Recovered {
        let found = self.arena.recovery();
        let complete = self.recovering.done.load(Ordering::Acquire);
        Recovered { rows: found.rows, dropped: found.dropped, complete }
    }

    /// Whether rows are still being proved: counts of rows are too small, and their segments are out of reach.
    pub(crate) fn is_unsettled(&self) -> bool {
        !self.recovering.settled.load(Ordering::Acquire)
    }

    /// Waits until every row is proved, and helps.
    pub(crate) fn await_rows(&self) {
        if !self.is_unsettled() {
            return;
        }
        while self.prove_some() {}
        let _one = self.recovering.rows_job.lock();
        // The last chains may be in other hands for another moment.
        while !self.arena.is_proved() {
            std::thread::yield_now();
        }
        if self.is_unsettled() {
            self.settle_rows();
        }
    }

    /// A share of what stands between a writer and the memory of the rows that are there. True: it may look again.
    pub(crate) fn help_settling(&self) -> bool {
        if self.prove_some() {
            return true;
        }
        match self.recovering.rows_job.try_lock() {
            Some(_one) if self.is_unsettled() && self.arena.is_proved() => self.settle_rows(),
            // Somebody else has the rest.
            _ => std::thread::yield_now(),
        }
        true
    }

    /// Waits until the unique indexes of a table know every row: a value that is taken must not be given twice.
    #[inline]
    pub(crate) fn await_unique(&self, table: &Table) {
        if table.indexes().iter().any(|index| index.def().unique && !index.is_ready()) {
            self.recover();
        }
    }

    /// Takes the lock that serialises changes of definitions, when the indexes of the start are filled.
    pub(crate) fn lock_definitions(&self) -> ReentrantMutexGuard<'_, ()> {
        self.recover();
        self.definitions.lock()
    }

    /// A share of the proof; false where all of it is handed out.
    pub(crate) fn prove_some(&self) -> bool {
        let Some(chains) = self.arena.unproved() else { return false };
        let _mutation = Mutation;
        for bucket in chains {
            let shard = self.shard_at(Arena::shard_of_chain(bucket)).lock();
            self.arena.prove(&shard.token, bucket);
        }
        true
    }

    /// Puts the segments of the earlier process into the queues of their tables.
    fn settle_rows(&self) {
        let _mutation = Mutation;
        let catalog = self.catalog();
        let settled = self.arena.settle();
        for location in settled.overlapping {
            self.drop_overlapping(&catalog, location);
        }
        for (tag, units) in settled.freed {
            let owner = catalog.tables().find(|table| table.id() == tag.table && tag.queue != Queue::Redo);
            owner.inspect(|table| {
                table.state.counters.units[place(tag.queue)].fetch_sub(u64::from(units), Ordering::Relaxed);
            });
        }
        for segment in settled.segments {
            self.adopt(&catalog, segment);
        }
        self.recovering.settled.store(true, Ordering::Release);
    }

    /// Takes a row out of the index whose bytes are another's.
    fn drop_overlapping(&self, catalog: &Catalog, location: Location) {
        let mut row = RowBuf::new();
        if !self.load_stable(location, &mut row) {
            return;
        }
        let table = row.head().table;
        let hash = self.arena.of(table).hash(table, row.key());
        let mut shard = self.shard(hash).lock();
        let Some(slot) = self.arena.of(location).find_location(&shard.token, hash, location) else { return };
        match catalog.tables().find(|own| own.id() == table) {
            Some(table) => self.unpublish(&mut shard, table, Entry { slot, location }, RemovalCause::Memory),
            None => self.arena.of(slot).remove(&mut shard.token, slot),
        }
    }

    /// Puts a segment into its table's queue; one whose table is gone is emptied and recycled.
    fn adopt(&self, catalog: &Catalog, segment: SegmentId) {
        let tag = self.arena.of(segment).tag(segment);
        let Some(table) = catalog.tables().find(|table| table.id() == tag.table) else {
            return self.purge_segment(segment);
        };
        self.put_back(&table.state, segment);
    }

    fn purge_segment(&self, segment: SegmentId) {
        let mut key = Vec::new();
        for (location, head) in self.arena.of(segment).rows(segment, 0) {
            let Some(read) = self.arena.of(location).row(location) else { continue };
            key.clear();
            read.copy_key(&mut key);
            let hash = self.arena.of(head.table).hash(head.table, &key);
            let mut shard = self.shard(hash).lock();
            if let Some(slot) = self.arena.of(location).find_location(&shard.token, hash, location) {
                self.arena.of(slot).remove(&mut shard.token, slot);
            }
        }
        self.arena.of(segment).recycle(segment);
    }
}
