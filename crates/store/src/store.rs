//! The store: every table over one arena, and the locks between them.
//!
//! Order of locks, outermost first: `recovering`'s, `firm`, `definitions`, `committing`, `cleaning`, a table's
//! `evicting`, a table's queue lists, one index shard, one ordered index, its reserved values. No thread holds two
//! ordered indexes, and none two shards but who empties a table, who takes all of them in their order.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena::{ArenaError, Arenas};

use crate::clock::Clock;
use crate::commit::Commits;
use crate::error::DdlError;
use crate::memory::Memory;
use crate::recovery::Recovery;
use crate::rows::Rows;
use crate::schema::Schema;
use crate::table::catalog::Catalog;
use crate::table::dropped::Dropped;
use crate::time::Time;
use crate::versions::Versions;
use crate::versions::shard::Shard;

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
///
/// The parts lie one upon the other: each owns the one below, uses its methods, and knows none above. Whoever has a
/// store has them all: it hands over to [`Commits`], that to [`Rows`](crate::Rows), and so on down to
/// [`Time`](crate::Time), at no cost, for they are one value in memory.
#[derive(Debug)]
pub struct Store {
    commits: Commits,
    /// The file of the tables that other processes may read; none where there cannot be such.
    pub(crate) shared_path: Option<PathBuf>,
    /// See `define/dropped.rs`.
    pub(crate) dropped: Dropped,
}

impl Deref for Store {
    type Target = Commits;

    #[inline]
    fn deref(&self) -> &Commits {
        &self.commits
    }
}

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
        arena.private().set_huge_pages(true);
        let shards = arena.take_tokens().into_iter().map(Shard::guarded).collect();
        let schema = Schema::new(Time::new(arena, options.clock.clone()), catalog);
        let recovery = Recovery::new(Versions::new(schema, shards, options.memory_bytes));
        let rows = Rows::new(Memory::new(recovery, options.row_bytes_max));
        Self { commits: Commits::new(rows), shared_path, dropped: Dropped::default() }
    }

    /// Changes the memory limit. What is above a lower one is evicted by the ticks that follow. False: the arena has
    /// not reserved addresses for so much.
    pub fn set_memory_bytes(&self, bytes: u64) -> bool {
        let fits = bytes <= self.arena.private().reserved_bytes();
        if fits {
            self.memory_bytes.store(bytes, Ordering::Relaxed);
            self.share_memory(self.now());
        }
        fits
    }

    /// Whether rows and the hash index are kept on pages of 2 MiB where the kernel gives them.
    pub fn set_huge_pages(&self, on: bool) {
        self.arena.private().set_huge_pages(on);
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
}

/// For tests that die behind every store to the arena's file.
#[cfg(feature = "record")]
impl Store {
    /// The bytes of the file as they are now.
    pub fn image(&self) -> arena::Image {
        self.arena.private().image()
    }

    /// Begins to record every store to the file.
    pub fn start_recording(&self) {
        self.arena.private().start_recording();
    }

    /// Ends recording: each store made since as (word of the file, value), in order.
    pub fn stop_recording(&self) -> Vec<(u64, u64)> {
        self.arena.private().stop_recording()
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

impl StoreError {
    /// Whether another process has the arena's file.
    pub fn is_locked(&self) -> bool {
        matches!(self, Self::Arena(ArenaError::Locked(_)))
    }
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
