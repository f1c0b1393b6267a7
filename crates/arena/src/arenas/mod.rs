//! Two arenas under one owner: a private one, and a second one whose file other users may be allowed to read.
//!
//! A file is a security domain: a process that may map it can read every table in it. So the tables that may be read
//! live in a file of their own, with an index, segments and words for tables of its own, made when the first of them
//! is. One bit says where a thing lies: of a table's number, and of the ids that are handed out (locations, segments,
//! slots). So [`Arenas::of`] leads from each to its arena, which takes the id as it is. In the files themselves the bit
//! of a place is never set.
//!
//! What is one for both: the stamps, which the private file reserves; the memory limit ([`Budget`]); the locks of the
//! shards; and commits, whose words and redo records are in the private file and name rows in either, so that one store
//! commits both and recovery finishes both. The shared file belongs to one private file, by its instance; with any
//! other it is not taken over.

mod attach;
mod in_place;

pub use attach::AttachBoth;

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::error::{ArenaError, CatalogueError};
use crate::index::ShardToken;
use crate::layout::{Hash, InFile, Queue, SegmentId, SegmentTag};
use crate::read::RowRead;
use crate::recovery::Recovery;
use crate::recovery::proof::Witness;
use crate::recovery::segments::Settled;
use crate::segments::pool::Budget;
use crate::{Arena, UNIT_BYTES, Usage};

/// The same of the number of a chain that is to be proved: no shard depends on it.
const SHARED_CHAINS: u64 = 1 << 63;

/// The arenas of one owner.
#[derive(Debug)]
pub struct Arenas {
    private: Arena,
    shared: OnceLock<Arena>,
}

impl Arenas {
    /// One owner's arenas; the shared one may come later.
    pub fn new(private: Arena, shared: Option<Arena>) -> Self {
        Self { private, shared: shared.map_or_else(OnceLock::new, OnceLock::from) }
    }

    /// The shared arena, if there is one.
    pub fn shared(&self) -> Option<&Arena> {
        self.shared.get()
    }

    /// Makes the shared arena in a file, which must not exist; one that is there is kept. `tick` and `first` are noted
    /// in its log of checkpoints: every smaller stamp was issued before.
    pub fn make_shared(&self, path: &Path, now_ns: u64, tick: u32, first: u64) -> Result<(), ArenaError> {
        if self.shared.get().is_none() {
            let made = Arena::create_shared(path, &self.private, now_ns)?;
            made.checkpoints().record(tick, first);
            // Another caller that made one meanwhile would have failed on the existing file.
            let _first = self.shared.set(made);
        }
        Ok(())
    }

    /// Tells readers of both that nothing in them counts any more.
    pub fn retire(&self) {
        self.each().for_each(Arena::retire);
    }

    /// What both share.
    pub(crate) fn private_budget(&self) -> Arc<Budget> {
        self.private.budget()
    }

    /// Both arenas, or the one that there is.
    pub(crate) fn each(&self) -> impl Iterator<Item = &Arena> {
        std::iter::once(&self.private).chain(self.shared.get())
    }

    /// The arena that a table, a place, a segment or a slot is of.
    #[inline]
    pub fn of(&self, id: impl InFile) -> &Arena {
        self.file(id.is_in_shared())
    }

    /// The private arena, which has what is one for both: stamps, the memory limit, the definitions, commits.
    #[inline]
    pub fn private(&self) -> &Arena {
        &self.private
    }

    #[inline]
    pub(crate) fn file(&self, is_shared: bool) -> &Arena {
        // Without a shared arena nothing bears its bit; who asks all the same finds nothing in the private one.
        if is_shared { self.shared.get().unwrap_or(&self.private) } else { &self.private }
    }
}

/// Memory of both: see [`Arena`] for what is done to one of them.
impl Arenas {
    /// As [`Arena::allocate`], for rows of about so many bytes. Memory that one arena keeps for its next rows is the
    /// other's to have.
    pub fn allocate(&self, units: u32, tag: &SegmentTag, row_bytes: usize) -> Option<SegmentId> {
        let arena = self.of(tag.table);
        if self.shared.get().is_some() {
            let missing = arena.commit_excess(units);
            for other in self.each().filter(|other| missing > 0 && !std::ptr::eq(*other, arena)) {
                other.release_units(missing);
            }
        }
        arena.allocate_for(units, tag, row_bytes)
    }

    /// The queue of the segment in which a row was found.
    #[inline]
    pub fn queue_of(&self, read: &RowRead<'_>) -> Queue {
        self.file(read.is_shared()).home_of(read.inner_location()).1
    }

    /// Those of each arena by order of allocation.
    pub fn segments(&self) -> Vec<SegmentId> {
        self.each().flat_map(Arena::segments).collect()
    }

    /// Gives the memory of free units back to the system: at least `bytes` bytes, if so many were free for a tick.
    /// Memory above the limit is given back at once.
    pub fn trim(&self, bytes: u64) {
        let units = bytes.div_ceil(UNIT_BYTES as u64);
        let left = self.each().fold(units, |left, arena| left.saturating_sub(arena.release_calm_units(left)));
        let over = self.private.budget().over(0).min(left);
        self.each().fold(over, |left, arena| left.saturating_sub(arena.release_units(left)));
    }

    /// See [`Arena::sweep_pages`].
    pub fn sweep_pages(&self) {
        self.each().for_each(Arena::sweep_pages);
    }

    /// Turns a bounded number of small pages into pages of 2 MiB. One thread calls it regularly.
    pub fn enlarge_pages(&self) {
        self.each().for_each(Arena::enlarge_pages);
    }

    /// What both take.
    pub fn usage(&self) -> Usage {
        self.each().map(Arena::usage).fold(Usage::default(), |sum, one| Usage {
            segments_bytes: sum.segments_bytes + one.segments_bytes,
            committed_bytes: sum.committed_bytes + one.committed_bytes,
            index_bytes: sum.index_bytes + one.index_bytes,
            hint_bytes: sum.hint_bytes + one.hint_bytes,
            frame_bytes: sum.frame_bytes + one.frame_bytes,
            huge_bytes: sum.huge_bytes + one.huge_bytes,
            rows: sum.rows + one.rows,
        })
    }
}

/// Proving what an earlier process left: see [`Arena`] for each. A chain of the shared arena has a bit that says so.
impl Arenas {
    /// Sets the witness of rows that are validated. Called once, before the arena is used.
    pub fn watch(&self, witness: &Arc<dyn Witness>) {
        self.each().for_each(|arena| arena.watch(Arc::clone(witness)));
    }

    /// Whether every row of an earlier process is validated.
    pub fn is_proved(&self) -> bool {
        self.each().all(Arena::is_proved)
    }

    /// Hands out chains to validate, by the numbers of their buckets. `None`: all were handed out.
    pub fn unproved(&self) -> Option<Range<u64>> {
        let tagged = |arena: &Arena| {
            let chains = arena.unproved()?;
            let tag = if arena.is_shared { SHARED_CHAINS } else { 0 };
            Some(chains.start | tag..chains.end | tag)
        };
        self.each().find_map(tagged)
    }

    /// Validates a chain, unless that was done already.
    pub fn prove(&self, token: &ShardToken, chain: u64) {
        self.file(chain & SHARED_CHAINS != 0).prove(token, chain & !SHARED_CHAINS);
    }

    /// The results of recovery so far, of both arenas.
    pub fn recovery(&self) -> Recovery {
        self.each().map(Arena::recovery).fold(Recovery::default(), |sum, one| Recovery {
            rows: sum.rows + one.rows,
            dropped: sum.dropped + one.dropped,
            redone: sum.redone + one.redone,
        })
    }

    /// Puts the segments of an earlier process in order and frees those without rows. Every row is validated before.
    pub fn settle(&self) -> Settled {
        let mut settled = Settled::default();
        for arena in self.each() {
            let own = arena.settle();
            settled.segments.extend(own.segments);
            settled.freed.extend(own.freed);
            settled.overlapping.extend(own.overlapping);
        }
        settled
    }
}

/// What is one for both arenas, or done to both: see [`Arena`] for each.
impl Arenas {
    /// The tokens of both arenas' shards: a token allows changes of its shard in both.
    pub fn take_tokens(&mut self) -> Vec<ShardToken> {
        if let Some(shared) = self.shared.get_mut() {
            drop(shared.take_tokens());
        }
        self.private.take_tokens()
    }

    /// Replaces the definitions: `all` in the private arena, and what readers may know in the shared one. Where one of
    /// them has no room for its own, both keep what they have.
    pub fn set_catalogue(&self, all: &[u8], shown: &[u8]) -> Result<(), CatalogueError> {
        let room = self.private.ready_catalogue(all.len())?;
        let shared = self.shared.get();
        let shared = shared.map(|shared| Ok((shared, shared.ready_catalogue(shown.len())?))).transpose()?;
        self.private.write_catalogue(&room, all);
        if let Some((shared, room)) = shared {
            shared.write_catalogue(&room, shown);
        }
        Ok(())
    }

    /// Shows readers that the owner is alive. Called once a tick.
    pub fn heartbeat(&self, now_ns: u64) {
        self.each().for_each(|arena| arena.heartbeat(now_ns));
    }

    /// Notes in both logs that every stamp below `stamp` was issued before `tick`.
    pub fn note_checkpoint(&self, tick: u32, stamp: u64) {
        self.each().for_each(|arena| arena.checkpoints().record(tick, stamp));
    }

    /// The shard to lock for the next split, if the index is full enough for one.
    #[inline]
    pub fn split_due(&self) -> Option<usize> {
        self.each().find_map(Arena::split_due)
    }

    /// As [`Arenas::split_due`], for `more` rows than there are.
    pub fn split_due_for(&self, more: u64) -> Option<usize> {
        self.each().find_map(|arena| arena.split_due_for(more))
    }

    /// Splits the next bucket if it belongs to this shard and a split is due. Returns whether it did.
    pub fn split(&self, token: &mut ShardToken) -> bool {
        self.split_for(token, 0)
    }

    /// As [`Arenas::split`], for `more` rows than there are.
    pub fn split_for(&self, token: &mut ShardToken, more: u64) -> bool {
        self.each().any(|arena| arena.split_for(token, more))
    }

    /// Listens to the readers of the shared arena through this file, which is made where there is none.
    pub fn use_hits(&self, path: &Path) -> Result<(), ArenaError> {
        self.shared.get().map_or(Ok(()), |shared| shared.use_hits(path))
    }

    /// Takes over a share of what readers have counted. Called by one thread.
    pub fn take_hits(&self, now: u32) {
        if let Some(shared) = self.shared.get() {
            shared.take_hits(now);
        }
    }

    /// Wakes who waits for a row of the shared arena. Called after the row was published or removed.
    pub fn wake(&self, hash: Hash) {
        if let Some(shared) = self.shared.get() {
            shared.wake(Arena::shard_of(hash));
        }
    }

    /// Wakes who waits for any row.
    pub fn wake_all(&self) {
        if let Some(shared) = self.shared.get() {
            shared.wake_all();
        }
    }
}

impl Arenas {
    /// From here on a thread is in [`Arenas::make_ready`], or soon will be.
    pub fn begin_ready(&self) {
        self.private_budget().ahead.begin();
    }

    /// Commits memory ahead of writers until [`Arenas::end_ready`] is called.
    pub fn make_ready(&self) {
        let budget = self.private_budget();
        while budget.ahead.wait() {
            if !self.each().all(Arena::commit_ahead) {
                budget.ahead.pause();
            }
        }
    }

    /// Has [`Arenas::make_ready`] return.
    pub fn end_ready(&self) {
        self.private_budget().ahead.end();
    }
}
