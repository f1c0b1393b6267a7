//! The shared-memory file: layout, segments, hash index, the read protocol, recovery.
//!
//! An arena is one sparse file, mapped once, that outlives the process which writes it. Rows are appended to segments
//! of 64 KiB and never change. A hash index of one-word slots says where the current version of each row is.
//!
//! - **A write** reserves bytes in a segment, writes the row where nobody can reach it, and publishes it by one store
//!   of its slot.
//! - **A read** copies words and then checks the segment's generation: it says whether the words still were the row's.
//!   Readers take no lock and write nothing.
//! - **A process that dies** at any instruction leaves nothing to undo. The next one maps the file again, drops torn
//!   rows, and serves.
//!
//! The index is split into 256 shards. A change of a shard needs its [`ShardToken`], which the caller keeps in a lock
//! of its own; [`Arena::lookup`] needs none. The arena keeps bytes. The caller decides what rows mean: when they die,
//! which to evict, what a commit is.
//!
//! ```
//! use arena::*;
//!
//! let mut arena = Arena::create(None, &Geometry { memory_bytes: 4 << 20 }, 0)?;
//! let mut tokens = arena.take_tokens();
//!
//! // A segment to append to, and a row in it.
//! let table = TableId(1);
//! let tag = SegmentTag { table, queue: Queue::Small, ttl_class: 0, schema: 1 };
//! let segment = arena.allocate(1, &tag).ok_or("no memory")?;
//! let parts = RowParts {
//!     table, multi: false, stale: false, lease: None, expiry: 0, client_flags: 0, cas: None,
//!     key: b"page:17", payload: &[b"<html>", b"</html>"],
//! };
//! let location = arena.reserve(segment, parts.total_bytes()).ok_or("segment full")?;
//! arena.write_row(location, &parts);
//! arena.stamp_row(location, arena.next_stamp());
//!
//! // Publish it under the shard's lock (here nobody else is about).
//! let hash = arena.hash(table, b"page:17");
//! arena.insert(&mut tokens[Arena::shard_of(hash)], hash, table, location)?;
//! arena.add_live(segment, parts.total_bytes());
//! arena.release(segment);
//!
//! // Read it without one.
//! let Lookup::Hit(row) = arena.lookup(hash, table, b"page:17") else { return Err("lost".into()) };
//! let mut body = Vec::new();
//! row.copy_payload(0, row.head().payload_len, &mut body);
//! assert!(row.is_valid());
//! assert_eq!(body, b"<html></html>");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where things are
//!
//! | Folder | Owns |
//! |---|---|
//! | `layout.rs`, `row/` | where a byte lies; how a row is written, copied and checked |
//! | `file/` | the file, mapped; its superblock, and what must hold before it is mapped |
//! | `index/` | the hash index: buckets, their growth, hints of hits |
//! | `segments/` | runs of units that rows are appended to, and the memory behind them |
//! | `read/` | the read protocol: lookups, rows that are held in place, prefetching, scans in the order of memory |
//! | `recovery/` | a file of an earlier process: what is validated before the first row is served, and what behind it |
//! | `reader/` | other processes, which only read: their hits, and waiting for a row |
//! | `arenas/` | the private and the shared arena of one owner |
//!
//! `docs/arena-format.md` draws every byte of the file.

#![allow(
    clippy::cast_possible_truncation,
    clippy::unused_self,
    clippy::needless_pass_by_ref_mut,
    clippy::trivially_copy_pass_by_ref,
    reason = "fields are cut out of 64-bit words on purpose; a token is asked for as proof, not for its content; \
              parameters that will grow are references"
)]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("an arena is larger than a 32-bit address space");

// The fuzz target of attach is compiled into the unit tests too, and calls this crate by its name.
#[cfg(test)]
extern crate self as arena;

mod arenas;
mod checkpoints;
mod commit;
mod error;
pub mod failpoint;
mod file;
mod in_place;
mod index;
mod layout;
mod limits;
mod line;
mod mapped;
mod order;
mod read;
mod reader;
#[cfg(any(test, feature = "record"))]
mod record;
mod recovery;
mod row;
mod segments;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

pub use arenas::{Arenas, AttachBoth};
pub use checkpoints::Checkpoints;
pub use commit::{CommitSlot, CommitState, Redo, RedoEntry};
pub use error::{ArenaError, CatalogueError, IndexFull};
pub use in_place::{InPlace, Received};
pub use index::hint::Hits;
pub use index::{Entry, ScanShape, ShardToken};
pub use layout::{
    BLOCK_UNITS, COMMIT_SLOTS, Hash, InFile, LAYOUT_VERSION, LOCATION_BITS, Location, MAX_CATALOGUE_BYTES,
    MAX_KEY_BYTES, MAX_ROW_BYTES, MAX_TABLES, Queue, SHARDS, SHARED_TABLES, SegmentId, SegmentTag, SlotId,
    TableId, UNIT_BYTES,
};
pub use line::line as prefetch_line;
pub use mapped::{Ends, Mapped};
pub use read::gather::Gathered;
pub use read::pin::PinnedRow;
pub use read::prefetch::Foreseen;
pub use read::{Lookup, Place, RowRead, Seen};
pub use reader::Reader;
pub use reader::wait::Ticket;
#[cfg(any(test, feature = "record"))]
pub use record::Image;
pub use recovery::proof::Witness;
pub use recovery::segments::Settled;
pub use recovery::shared_file::begins_as_arena;
pub use recovery::{Attach, Recovery, Unusable};
pub use row::{RowHead, RowParts};
pub use segments::Rows;

use layout::Layout;

/// How large an arena is to be.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// Bytes of segments; the virtual range reserved at creation is at least four times as large.
    pub memory_bytes: u64,
}

/// What the arena takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of segments in use.
    pub segments_bytes: u64,
    /// Bytes of segments that the file system has committed, free ones included.
    pub committed_bytes: u64,
    /// Bytes of index buckets that are committed, overflow buckets included.
    pub index_bytes: u64,
    /// Bytes of what is known of the hits on each slot's row, which lie in the process's own memory.
    pub hint_bytes: u64,
    /// Bytes of what else has pages: headers of segments, and what lies before them.
    pub frame_bytes: u64,
    /// Bytes of segments and buckets that are known to be on pages of 2 MiB.
    pub huge_bytes: u64,
    /// Rows in the index; those of an earlier process count as their chains are mended.
    pub rows: u64,
}

/// An arena that this process owns.
#[derive(Debug)]
pub struct Arena {
    /// The file, and how rows are found in it.
    mapped: Mapped,
    /// What of an earlier process's index is proved.
    proof: recovery::proof::Proof,
    /// Which of its chains are mended.
    mending: recovery::chains::Mending,
    /// Slots in use, of chains that are mended.
    rows: Counter,
    stamps: file::superblock::Stamps,
    segments: segments::Segments,
    buckets: Mutex<index::growth::Buckets>,
    /// Where readers tell of hits.
    hits: std::sync::OnceLock<reader::hits_file::HitsFile>,
    checkpoints: checkpoints::CheckpointRings,
    /// Held while the definitions are read or replaced, so that a reader's half is not overwritten twice.
    catalogue_lock: Mutex<()>,
    /// What is known of pages that readers made.
    sweep: Mutex<segments::sweep::Sweep>,
    /// Tokens not yet handed out.
    tokens: Vec<ShardToken>,
}

/// A counter that every insert changes, alone on its line.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

impl std::ops::Deref for Counter {
    type Target = AtomicU64;

    #[inline]
    fn deref(&self) -> &AtomicU64 {
        &self.0
    }
}

impl std::ops::Deref for Arena {
    type Target = Mapped;

    #[inline]
    fn deref(&self) -> &Mapped {
        &self.mapped
    }
}

impl Arena {
    /// The private side of a mapped file; nothing in it is counted yet. `owner`: the private arena that this one is the
    /// shared one of.
    fn with_map(
        map: file::map::Map,
        layout: Layout,
        geometry: &Geometry,
        seed: u64,
        next_stamp: u64,
        owner: Option<&Self>,
    ) -> io::Result<Self> {
        let limit_units = (geometry.memory_bytes / UNIT_BYTES as u64).min(u64::from(layout.max_units));
        let budget = owner.map_or_else(|| Arc::new(segments::pool::Budget::new(limit_units)), Self::budget);
        let slots = (layout.max_buckets + layout.max_overflow) * index::BUCKET_WORDS;
        Ok(Self {
            mapped: Mapped { is_shared: owner.is_some(), ..Mapped::new(map, layout, seed, slots as usize)? },
            proof: recovery::proof::Proof::none(),
            mending: recovery::chains::Mending::default(),
            rows: Counter::default(),
            stamps: file::superblock::Stamps::new(next_stamp),
            segments: segments::Segments {
                states: file::map::Lazy::new(layout.max_units as usize)?,
                pool: Mutex::new(segments::pool::Pool::new(layout.max_units, budget)),
                listed: segments::listed::Listed::default(),
                dead_rows: segments::dead_rows::DeadRows::new(layout.max_units)?,
            },
            buckets: Mutex::default(),
            hits: std::sync::OnceLock::new(),
            checkpoints: Mutex::default(),
            catalogue_lock: Mutex::default(),
            sweep: Mutex::default(),
            tokens: Self::all_tokens(),
        })
    }

    /// What the arena takes.
    pub fn usage(&self) -> Usage {
        let (segments_bytes, committed_bytes) = self.segment_usage();
        Usage {
            segments_bytes,
            committed_bytes,
            index_bytes: self.index_bytes() + self.hits_used(),
            hint_bytes: self.hint_bytes(),
            frame_bytes: self.front_bytes() + self.header_bytes(),
            huge_bytes: self.huge_bytes(),
            rows: self.rows.load(Ordering::Relaxed),
        }
    }
}
