//! The store: every table over one arena, and the locks between them.
//!
//! Order of locks, outermost first: `recovering`'s, `firm`, `definitions`, `committing`, `cleaning`, a table's
//! `evicting`, a table's queue lists, one index shard, one ordered index, its reserved values. No thread holds two
//! ordered indexes, and none two shards but who empties a table, who takes all of them in their order.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use arena::{Arena, ArenaError, Arenas, Hash};
use parking_lot::{Mutex, RwLock};

use crate::clock::{Clock, Tick, moment_at, ticks_between};
use crate::define::dropped::Dropped;
use crate::error::DdlError;
use crate::memory::eviction::Evictions;
use crate::mutation::Mutation;
use crate::recovery::Recovering;
use crate::schema::compute::Maker;
use crate::table::catalog::Catalog;
use crate::table::departure::{Departure, Departures};
use crate::versions::kept::KeptAccount;
use crate::versions::shard::{Guarded, Shard};
use crate::versions::statement::Statements;

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The arena's file; none for an arena that ends with the process.
    pub path: Option<PathBuf>,
    /// Bytes for everything that holds data: segments, hash index, ordered indexes, ghosts, kept versions.
    pub memory_bytes: u64,
    /// Start empty whatever the file holds.
    pub cold: bool,
    /// Where time comes from.
    pub clock: Clock,
    /// Bytes of the largest row.
    pub row_bytes_max: usize,
}

/// How a start found the arena.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// Rows of an earlier process are served.
    Warm {
        /// Bytes of the segments in which they lie; they are proved behind the start.
        bytes: u64,
        /// Commits of many rows finished.
        redone: u64,
    },
    /// Empty, for the reason given.
    Cold {
        /// Why nothing was taken over.
        reason: String,
    },
}

/// A store and how it started.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: Arc<Store>,
    /// How it started.
    pub start: Start,
}

/// Every table over one arena.
#[derive(Debug)]
pub struct Store {
    pub(crate) arena: Arenas,
    /// The file of the tables that other processes may read; none where there cannot be such.
    pub(crate) shared_path: Option<PathBuf>,
    pub(crate) clock: Clock,
    pub(crate) shards: Box<[Guarded]>,
    /// Changed by one swap under `definitions`.
    pub(crate) catalog: ArcSwap<Catalog>,
    /// The catalogue's generation, so that a cached one is checked by one load. Release/Acquire with the swap.
    pub(crate) generation: AtomicU64,
    /// Serialises changes of definitions.
    pub(crate) definitions: Mutex<()>,
    /// Held for reading by each commit of many rows; who must know that all before it have ended takes it for writing.
    pub(crate) committing: RwLock<()>,
    /// Held by the one commit that goes first.
    pub(crate) firm: Mutex<()>,
    pub(crate) statements: Statements,
    pub(crate) kept: KeptAccount,
    /// Serialises making room.
    pub(crate) cleaning: Mutex<()>,
    /// Tick and tables of a flush that lies in the future; at most one, as in memcached.
    pub(crate) pending_flush: Mutex<Option<Tick>>,
    pub(crate) row_bytes_max: usize,
    /// The limit, which may change while others read it: Relaxed, as each of them takes it for a moment's.
    pub(crate) memory_bytes: AtomicU64,
    /// Whether live rows make room for others.
    pub(crate) evictions: AtomicBool,
    /// The tick whose first stamp was noted.
    pub(crate) checkpointed: AtomicU32,
    /// The tick at which the last look through the sealed segments left none that was due.
    pub(crate) nothing_due: AtomicU32,
    pub(crate) departures: Departures,
    /// See [`crate::define::dropped`].
    pub(crate) dropped: Dropped,
    /// What the start has left to do.
    pub(crate) recovering: Recovering,
    pub(crate) evictions_seen: Evictions,
    /// Bytes of the segments that landings hold.
    pub(crate) landing_bytes: AtomicU64,
    /// How a thread gets what computes expressions for it.
    pub(crate) compute: OnceLock<Maker>,
    /// Tells this store from others of the process.
    pub(crate) number: u64,
}

/// The next store's number. Relaxed: only that no two are the same.
static STORES: AtomicU64 = AtomicU64::new(1);

/// Memory and counts of the whole store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreUsage {
    /// The limit.
    pub memory_bytes: u64,
    /// Segments that hold rows.
    pub segment_bytes: u64,
    /// The hash index with its hints.
    pub index_bytes: u64,
    /// Ordered indexes, ghosts and kept versions on the heap.
    pub heap_bytes: u64,
    /// Bytes of rows and of the hash index that are known to lie on pages of 2 MiB.
    pub huge_bytes: u64,
    /// Rows, counting those that expired but were not yet cleared away.
    pub rows: u64,
    /// Bytes of these rows.
    pub row_bytes: u64,
    /// Rows evicted.
    pub evicted: u64,
    /// Rows cleared away after their time came.
    pub expired: u64,
}

impl Store {
    pub(crate) fn assemble(
        mut arena: Arenas,
        options: &StoreOptions,
        shared_path: Option<PathBuf>,
        catalog: Catalog,
    ) -> Self {
        arena.set_huge_pages(true);
        let shards = arena.take_tokens().into_iter().map(Shard::guarded).collect();
        Self {
            shards,
            clock: options.clock.clone(),
            generation: AtomicU64::new(catalog.generation),
            catalog: ArcSwap::from_pointee(catalog),
            definitions: Mutex::new(()),
            committing: RwLock::new(()),
            firm: Mutex::new(()),
            statements: Statements::new(),
            kept: KeptAccount::default(),
            cleaning: Mutex::new(()),
            pending_flush: Mutex::default(),
            row_bytes_max: options.row_bytes_max,
            memory_bytes: AtomicU64::new(options.memory_bytes),
            evictions: AtomicBool::new(true),
            checkpointed: AtomicU32::new(0),
            nothing_due: AtomicU32::new(0),
            departures: Departures::default(),
            dropped: Dropped::default(),
            recovering: Recovering::default(),
            evictions_seen: Evictions::default(),
            landing_bytes: AtomicU64::new(0),
            compute: OnceLock::new(),
            number: STORES.fetch_add(1, Ordering::Relaxed),
            shared_path,
            arena,
        }
    }

    /// Where this store's time comes from.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Bytes for everything that holds data.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    /// Changes the memory limit. What is above a lower one is evicted by the ticks that follow. False: the arena has
    /// not reserved addresses for so much.
    pub fn set_memory_bytes(&self, bytes: u64) -> bool {
        let fits = bytes <= self.arena.reserved_bytes();
        if fits {
            self.memory_bytes.store(bytes, Ordering::Relaxed);
            self.share_memory();
        }
        fits
    }

    /// Whether live rows make room for others when memory is short. Rows above a table's `max_rows` go all the same:
    /// the table asked for that.
    pub fn set_evictions(&self, on: bool) {
        // Relaxed: a setting that takes effect soon.
        self.evictions.store(on, Ordering::Relaxed);
    }

    /// Whether rows and the hash index are kept on pages of 2 MiB where the kernel gives them.
    pub fn set_huge_pages(&self, on: bool) {
        self.arena.set_huge_pages(on);
    }

    /// Memory is made ready ahead of writers by a thread that is in [`Store::make_ready`], or soon will be.
    pub fn begin_ready(&self) {
        self.arena.begin_ready();
    }

    /// Makes memory ready ahead of writers until [`Store::end_ready`] is called.
    pub fn make_ready(&self) {
        self.arena.make_ready();
    }

    /// Has [`Store::make_ready`] return.
    pub fn end_ready(&self) {
        self.arena.end_ready();
    }

    /// See [`Store::set_evictions`].
    pub fn evicts(&self) -> bool {
        self.evictions.load(Ordering::Relaxed)
    }

    /// The current tick.
    #[inline]
    pub fn now(&self) -> Tick {
        self.tick_at(self.clock.now_ns())
    }

    /// The tick of a moment on the store's clock.
    #[inline]
    pub fn tick_at(&self, now_ns: u64) -> Tick {
        moment_at(now_ns.saturating_sub(self.arena.epoch_ns()))
    }

    /// The deadline that lies so far ahead, rounded down to a whole tick: nothing outlives its time.
    pub fn tick_after(&self, ahead: Duration) -> Tick {
        let elapsed = self.clock.now_ns().saturating_sub(self.arena.epoch_ns());
        let ahead = u64::try_from(ahead.as_nanos()).unwrap_or(u64::MAX);
        moment_at(elapsed.saturating_add(ahead))
    }

    /// How long ago the write with this stamp happened, in ticks, as exactly as the checkpoints say.
    pub fn age_ticks(&self, stamp: u64) -> u64 {
        let now = self.now();
        ticks_between(self.arena.checkpoints().tick_of(stamp).unwrap_or(0), now)
    }

    /// Every smaller stamp was issued at this moment or before, as exactly as the log of checkpoints says.
    pub(crate) fn first_stamp_after(&self, moment: Tick, now: Tick) -> u64 {
        self.checkpoint(now);
        self.arena.checkpoints().first_after(moment).unwrap_or(0)
    }

    /// All definitions of this moment.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// The number of the current definitions: one load tells whether a cached catalogue is still right.
    #[inline]
    pub fn generation(&self) -> u64 {
        // Acquire: pairs with the Release in `install`.
        self.generation.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn shard(&self, hash: Hash) -> &Mutex<Shard> {
        &self.shards[Arena::shard_of(hash)]
    }

    pub(crate) fn shard_at(&self, shard: usize) -> &Mutex<Shard> {
        &self.shards[shard]
    }

    /// Has the next tick look through all segments for rows whose time has come, due or not.
    pub fn look_for_expired(&self) {
        // Relaxed: a hint, as in `flush`.
        self.nothing_due.store(0, Ordering::Relaxed);
    }

    /// What left tables that name a channel since the last call.
    pub fn take_departures(&self) -> Vec<Departure> {
        self.departures.take()
    }

    /// A step of index growth; false if none is due, or there is no room for it.
    pub(crate) fn grow_index(&self) -> bool {
        self.arena.split_due().is_some_and(|shard| {
            let mut shard = self.shards[shard].lock();
            let _mutation = Mutation;
            self.arena.split(&mut shard.token)
        })
    }

    /// Grows the index for rows that are about to come, all of one shard after the other, so that no chain of buckets
    /// becomes too long for one of them. The caller holds no shard.
    pub(crate) fn grow_index_for(&self, more: u64) {
        while let Some(shard) = self.arena.split_due_for(more) {
            let mut shard = self.shards[shard].lock();
            let _mutation = Mutation;
            // Another writer may have split the bucket; where there is no page for one, the rest goes on unsplit.
            if !self.arena.split_for(&mut shard.token, more)
                && self.arena.split_due_for(more) == Some(shard.token.shard())
            {
                return;
            }
        }
    }

    /// Memory and counts of this moment.
    pub fn usage(&self) -> StoreUsage {
        let arena = self.arena.usage();
        let mut usage = StoreUsage {
            memory_bytes: self.memory_bytes(),
            segment_bytes: arena.segments_bytes,
            index_bytes: arena.index_bytes + arena.hint_bytes,
            heap_bytes: self.heap_bytes(),
            huge_bytes: arena.huge_bytes,
            ..StoreUsage::default()
        };
        for table in self.catalog().tables() {
            let stats = table.stats();
            usage.rows += stats.rows;
            usage.row_bytes += stats.bytes;
            usage.evicted += stats.evicted;
            usage.expired += stats.expired;
        }
        usage
    }

    pub(crate) fn heap_bytes(&self) -> u64 {
        let catalog = self.catalog();
        let tables = catalog.tables().map(|table| {
            let indexes: usize = table.indexes().iter().map(|index| index.heap_bytes()).sum();
            indexes + table.state.ghost.lock().memory_bytes()
        });
        (tables.sum::<usize>() + self.kept.bytes()) as u64
    }
}

/// Why a store could not be opened.
#[derive(Debug)]
pub enum StoreError {
    /// The arena's file cannot be made or taken over.
    Arena(ArenaError),
    /// The definitions cannot be written to it.
    Catalogue(DdlError),
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Arena(error) => error.fmt(f),
            Self::Catalogue(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Arena(error) => Some(error),
            Self::Catalogue(error) => Some(error),
        }
    }
}
