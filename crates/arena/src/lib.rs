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

mod ahead;
mod arenas;
mod check;
mod checkpoints;
mod commit;
mod copy;
mod error;
pub mod failpoint;
mod fill;
mod gather;
mod gone;
mod growth;
mod hint;
mod hits_file;
mod hold;
mod huge;
mod index;
mod landing;
mod layout;
mod map;
mod mapped;
mod mend;
mod order;
mod pool;
mod prefetch;
mod proof;
mod read;
mod reader;
#[cfg(any(test, feature = "record"))]
mod record;
mod recover;
mod row;
mod segments;
mod settle;
mod shared_file;
mod superblock;
mod sweep;
#[cfg(test)]
mod tests;
mod wait;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

pub use arenas::{Arenas, SHARED_TABLES};
pub use checkpoints::Checkpoints;
pub use commit::{CommitSlot, CommitState, Redo, RedoEntry};
pub use error::{ArenaError, CatalogueError, IndexFull};
pub use gather::Gathered;
pub use hint::Hits;
pub use hold::HeldRow;
pub use index::{Entry, ScanShape, ShardToken};
pub use landing::{Landing, Received};
pub use layout::{
    BLOCK_UNITS, COMMIT_SLOTS, Hash, LAYOUT_VERSION, LOCATION_BITS, Location, MAX_CATALOGUE_BYTES,
    MAX_KEY_BYTES, MAX_ROW_BYTES, MAX_TABLES, Queue, SHARDS, SegmentId, SegmentTag, SlotId, TableId,
    UNIT_BYTES,
};
pub use mapped::{Ends, Mapped};
pub use prefetch::{Foreseen, line as prefetch_line};
pub use proof::Witness;
pub use read::{Lookup, RowRead, Seen};
pub use reader::Reader;
#[cfg(any(test, feature = "record"))]
pub use record::Image;
pub use recover::{Attach, Recovery, Unusable};
pub use row::{RowHead, RowParts};
pub use segments::Rows;
pub use settle::Settled;
pub use shared_file::{AttachBoth, begins_as_arena};
pub use wait::Ticket;

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
    proof: proof::Proof,
    /// Which of its chains are mended.
    mending: mend::Mending,
    /// Slots in use, of chains that are mended.
    rows: Counter,
    stamps: superblock::Stamps,
    segments: segments::Segments,
    buckets: Mutex<growth::Buckets>,
    /// Where readers tell of hits.
    hits: std::sync::OnceLock<hits_file::HitsFile>,
    checkpoints: checkpoints::CheckpointRings,
    /// Held while the definitions are read or replaced, so that a reader's half is not overwritten twice.
    catalogue_lock: Mutex<()>,
    /// What is known of pages that readers made.
    sweep: Mutex<sweep::Sweep>,
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
        map: map::Map,
        layout: Layout,
        geometry: &Geometry,
        seed: u64,
        next_stamp: u64,
        owner: Option<&Self>,
    ) -> io::Result<Self> {
        let limit_units = (geometry.memory_bytes / UNIT_BYTES as u64).min(u64::from(layout.max_units));
        let budget = owner.map_or_else(|| Arc::new(pool::Budget::new(limit_units)), Self::budget);
        let slots = (layout.max_buckets + layout.max_overflow) * index::BUCKET_WORDS;
        Ok(Self {
            mapped: Mapped { is_shared: owner.is_some(), ..Mapped::new(map, layout, seed, slots as usize)? },
            proof: proof::Proof::none(),
            mending: mend::Mending::default(),
            rows: Counter::default(),
            stamps: superblock::Stamps::new(next_stamp),
            segments: segments::Segments {
                states: map::Lazy::new(layout.max_units as usize)?,
                pool: Mutex::new(pool::Pool::new(layout.max_units, budget)),
                listed: settle::Listed::default(),
                gone: gone::Gone::new(layout.max_units)?,
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
