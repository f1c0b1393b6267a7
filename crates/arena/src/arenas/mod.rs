//! Two arenas under one owner: a private one, and a second one whose file other users may be allowed to read.
//!
//! A file is a security domain: a process that may map it can read every table in it. So the tables that may be read
//! live in a file of their own, with an index, segments and words for tables of its own, made when the first of them
//! is. One bit says where a thing lies: of a table's number, so that every operation on a row knows its file, and of
//! the places that are handed out (locations, segments, slots), so that they find their way back. In the files
//! themselves the bit of a place is never set.
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

use crate::commit::{CommitSlot, CommitState, Redo, RedoEntry};
use crate::error::{ArenaError, CatalogueError, IndexFull};
use crate::index::hint::Hits;
use crate::index::{Entry, ScanShape, ShardToken};
use crate::layout::{
    Hash, Location, Queue, SHARED_LOCATIONS, SHARED_SLOTS, SHARED_UNITS, SegmentId, SegmentTag, SlotId,
    TableId,
};
use crate::read::gather::Gathered;
use crate::read::prefetch::Foreseen;
use crate::read::{Lookup, RowRead, Seen};
use crate::recovery::Recovery;
use crate::recovery::proof::Witness;
use crate::recovery::segments::Settled;
use crate::row::{RowHead, RowParts};
use crate::segments::Rows;
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

    #[inline]
    pub(crate) fn of(&self, is_shared: bool) -> &Arena {
        // Without a shared arena nothing bears its bit; who asks all the same finds nothing in the private one.
        if is_shared { self.shared.get().unwrap_or(&self.private) } else { &self.private }
    }

    #[inline]
    fn of_table(&self, table: TableId) -> &Arena {
        self.of(table.is_shared())
    }

    #[inline]
    pub(crate) fn at(&self, location: Location) -> (&Arena, Location) {
        let bits = location.bits();
        (self.of(bits & SHARED_LOCATIONS != 0), Location::from_bits(bits & !SHARED_LOCATIONS))
    }

    #[inline]
    pub(crate) fn in_segment(&self, segment: SegmentId) -> (&Arena, SegmentId) {
        (self.of(segment.0 & SHARED_UNITS != 0), SegmentId(segment.0 & !SHARED_UNITS))
    }

    #[inline]
    fn in_slot(&self, slot: SlotId) -> (&Arena, SlotId) {
        (self.of(slot.0 & SHARED_SLOTS != 0), SlotId(slot.0 & !SHARED_SLOTS))
    }
}

/// Finding and changing rows: see [`Arena`] and [`crate::Mapped`] for each.
impl Arenas {
    /// Hashes a key of a table with the seed of the table's file.
    #[inline]
    pub fn hash(&self, table: TableId, key: &[u8]) -> Hash {
        self.of_table(table).hash(table, key)
    }

    /// Finds a row without a lock. A hit writes nothing. A chain of an earlier process is `Busy` until it is validated.
    #[inline]
    pub fn lookup(&self, hash: Hash, table: TableId, key: &[u8]) -> Lookup<'_> {
        self.of_table(table).lookup(hash, table, key)
    }

    /// As [`Arenas::lookup`], for callers that want the row's place and not its bytes.
    #[inline]
    pub fn lookup_place(&self, hash: Hash, table: TableId, key: &[u8]) -> Lookup<'_> {
        self.of_table(table).lookup_place(hash, table, key)
    }

    /// The row at a location. The caller holds a lock that keeps the row published, or validates the row afterwards.
    #[inline]
    pub fn row(&self, location: Location) -> Option<RowRead<'_>> {
        let (arena, location) = self.at(location);
        arena.row(location)
    }

    /// Finds the entry of a key under its shard's lock.
    #[inline]
    pub fn find(&self, token: &ShardToken, hash: Hash, table: TableId, key: &[u8]) -> Option<Entry> {
        self.find_row(token, hash, table, key).map(|(entry, _)| entry)
    }

    /// As [`Arenas::find`], with the head of the row.
    #[inline]
    pub fn find_row(
        &self,
        token: &ShardToken,
        hash: Hash,
        table: TableId,
        key: &[u8],
    ) -> Option<(Entry, RowHead)> {
        let arena = self.of_table(table);
        let (Entry { slot, location }, head) = arena.find_row(token, hash, table, key)?;
        Some((Entry { slot: arena.outer_slot(slot), location: arena.outer_location(location) }, head))
    }

    /// The row that a lookup saw, if its slot still names it.
    #[inline]
    pub fn find_seen(&self, token: &ShardToken, seen: &Seen) -> Option<(Entry, RowHead)> {
        let (arena, location) = self.at(seen.location);
        let inner = Seen { slot: self.in_slot(seen.slot).1, location, generation: seen.generation };
        let (_, head) = arena.find_seen(token, &inner)?;
        Some((Entry { slot: seen.slot, location: seen.location }, head))
    }

    /// The slot that points to a location.
    #[inline]
    pub fn find_location(&self, token: &ShardToken, hash: Hash, location: Location) -> Option<SlotId> {
        let (arena, location) = self.at(location);
        arena.find_location(token, hash, location).map(|slot| arena.outer_slot(slot))
    }

    /// Publishes a row whose key is not in the index. Fails if a chain of the index is full.
    pub fn insert(
        &self,
        token: &mut ShardToken,
        hash: Hash,
        table: TableId,
        location: Location,
    ) -> Result<SlotId, IndexFull> {
        let (arena, location) = self.at(location);
        arena.insert(token, hash, table, location).map(|slot| arena.outer_slot(slot))
    }

    /// Publishes another version in a slot by one store. The key keeps its count of hits; the new version was not
    /// fetched.
    #[inline]
    pub fn replace(
        &self,
        token: &mut ShardToken,
        slot: SlotId,
        hash: Hash,
        table: TableId,
        location: Location,
    ) {
        let (arena, location) = self.at(location);
        arena.replace(token, self.in_slot(slot).1, hash, table, location);
    }

    /// Publishes a copy of the same version in a slot by one store.
    #[inline]
    pub fn relocate(
        &self,
        token: &mut ShardToken,
        slot: SlotId,
        hash: Hash,
        table: TableId,
        location: Location,
    ) {
        let (arena, location) = self.at(location);
        arena.relocate(token, self.in_slot(slot).1, hash, table, location);
    }

    /// Clears a slot.
    #[inline]
    pub fn remove(&self, token: &mut ShardToken, slot: SlotId) {
        let (arena, slot) = self.in_slot(slot);
        arena.remove(token, slot);
    }

    /// Hits counted for a slot: 0 to 3.
    #[inline]
    pub fn frequency(&self, slot: SlotId) -> u8 {
        let (arena, slot) = self.in_slot(slot);
        arena.frequency(slot)
    }

    /// Sets the count of hits of a slot: 0 to 3.
    #[inline]
    pub fn set_frequency(&self, slot: SlotId, frequency: u8) {
        let (arena, slot) = self.in_slot(slot);
        arena.set_frequency(slot, frequency);
    }

    /// The hits on a slot's row, as known at tick `now`.
    #[inline]
    pub fn hits(&self, slot: SlotId, now: u32) -> Hits {
        let (arena, slot) = self.in_slot(slot);
        arena.hits(slot, now)
    }

    /// Begins a scan of the whole index of a table's file.
    pub fn scan_shape(&self, table: TableId) -> ScanShape {
        self.of_table(table).scan_shape()
    }

    /// Appends the locations of a table's rows in one group of buckets; the token is that of the group's shard.
    pub fn scan_group(
        &self,
        token: &ShardToken,
        shape: ScanShape,
        group: u64,
        table: TableId,
        out: &mut Vec<Location>,
    ) {
        let arena = self.of_table(table);
        let begin = out.len();
        arena.scan_group(token, shape, group, table, out);
        for location in &mut out[begin..] {
            *location = arena.outer_location(*location);
        }
    }

    /// Prefetches the bucket of a hash and its hints.
    #[inline]
    pub fn prefetch_bucket(&self, hash: Hash, table: TableId) {
        self.of_table(table).prefetch_bucket(hash);
    }

    /// The probable place of the row with this hash, by its first bucket, which was prefetched; or prefetches the next
    /// bucket.
    #[inline]
    pub fn foresee(&self, hash: Hash, table: TableId) -> Foreseen {
        let arena = self.of_table(table);
        match arena.foresee(hash, table) {
            Foreseen::Row(location) => Foreseen::Row(arena.outer_location(location)),
            other => other,
        }
    }

    /// As [`Arenas::foresee`], by the second bucket of the chain.
    #[inline]
    pub fn foresee_further(&self, hash: Hash, table: TableId) -> Option<Location> {
        let arena = self.of_table(table);
        arena.foresee_further(hash, table).map(|location| arena.outer_location(location))
    }

    /// Prefetches what replacing a row reads: its head and key, its generation, the counters of its segment.
    #[inline]
    pub fn prefetch_replaced(&self, location: Location) {
        let (arena, location) = self.at(location);
        arena.prefetch_replaced(location);
    }

    /// Prefetches the rest of a row whose head was prefetched.
    #[inline]
    pub fn prefetch_value(&self, location: Location) {
        let (arena, location) = self.at(location);
        arena.prefetch_value(location);
    }

    /// Prefetches a row: head, key and a short value.
    #[inline]
    pub fn prefetch_location(&self, location: Location) {
        let (arena, location) = self.at(location);
        arena.prefetch_location(location);
    }

    /// Appends the index entries of a table's rows in one group, which gets the number `number`. Rows of other tables
    /// may be among them: a slot has nine bits of the table.
    pub fn gather_group(
        &self,
        token: &ShardToken,
        shape: ScanShape,
        group: u64,
        table: TableId,
        number: u32,
        out: &mut Vec<Gathered>,
    ) {
        self.of_table(table).gather_group(token, shape, group, table, number, out);
    }

    /// The row of a gathered entry. `None`: its memory was recycled meanwhile.
    #[inline]
    pub fn gathered_row(&self, table: TableId, gathered: &Gathered) -> Option<RowRead<'_>> {
        self.of_table(table).gathered_row(gathered)
    }

    /// Prefetches the first `bytes` bytes of a gathered row.
    #[inline]
    pub fn prefetch_gathered(&self, table: TableId, gathered: &Gathered, bytes: usize) {
        self.of_table(table).prefetch_gathered(gathered, bytes);
    }
}

/// Rows and segments: see [`Arena`] for each.
impl Arenas {
    /// Writes a row with stamp 0 into bytes that the caller reserved.
    #[inline]
    pub fn write_row(&self, location: Location, parts: &RowParts<'_>) {
        let (arena, location) = self.at(location);
        arena.write_row(location, parts);
    }

    /// Marks `bytes` reserved bytes as no row, by one store.
    pub fn write_filler(&self, location: Location, bytes: usize) {
        let (arena, location) = self.at(location);
        arena.write_filler(location, bytes);
    }

    /// Writes the stamp of a row before it is published.
    #[inline]
    pub fn stamp_row(&self, location: Location, stamp: u64) {
        let (arena, location) = self.at(location);
        arena.stamp_row(location, stamp);
    }

    /// Changes the expiry (a moment) of a published row with an expiry word. The caller holds the shard's lock.
    pub fn set_expiry(&self, location: Location, expiry: u32) {
        let (arena, location) = self.at(location);
        arena.set_expiry(location, expiry);
    }

    /// Changes the lease (a moment) of a published row with an expiry word. The caller holds the shard's lock.
    pub fn set_lease(&self, location: Location, lease: u32) {
        let (arena, location) = self.at(location);
        arena.set_lease(location, lease);
    }

    /// Changes expiry and lease (moments) of a published row with an expiry word by one store. The caller holds the
    /// shard's lock.
    pub fn set_times(&self, location: Location, expiry: u32, lease: u32) {
        let (arena, location) = self.at(location);
        arena.set_times(location, expiry, lease);
    }

    /// As [`Arena::allocate`], for rows of about so many bytes. Memory that one arena keeps for its next rows is the
    /// other's to have.
    pub fn allocate(&self, units: u32, tag: &SegmentTag, row_bytes: usize) -> Option<SegmentId> {
        let arena = self.of_table(tag.table);
        if self.shared.get().is_some() {
            let missing = arena.commit_excess(units);
            for other in self.each().filter(|other| missing > 0 && !std::ptr::eq(*other, arena)) {
                other.release_units(missing);
            }
        }
        arena.allocate_for(units, tag, row_bytes).map(|segment| arena.outer_segment(segment))
    }

    /// Reserves bytes for a row. The segment has one more writer until [`Arenas::release`]. `None`: it is full or
    /// sealed.
    #[inline]
    pub fn reserve(&self, segment: SegmentId, bytes: usize) -> Option<Location> {
        let (arena, segment) = self.in_segment(segment);
        arena.reserve(segment, bytes).map(|location| arena.outer_location(location))
    }

    /// Ends a writer's reservation: its row is published, or a filler is written.
    #[inline]
    pub fn release(&self, segment: SegmentId) {
        let (arena, segment) = self.in_segment(segment);
        arena.release(segment);
    }

    /// Refuses further reservations in a segment.
    pub fn seal(&self, segment: SegmentId) {
        let (arena, segment) = self.in_segment(segment);
        arena.seal(segment);
    }

    /// Whether a segment is sealed.
    pub fn is_sealed(&self, segment: SegmentId) -> bool {
        let (arena, segment) = self.in_segment(segment);
        arena.is_sealed(segment)
    }

    /// Users of a segment: writers that have not released, and senders of its rows.
    pub fn writers(&self, segment: SegmentId) -> u32 {
        let (arena, segment) = self.in_segment(segment);
        arena.writers(segment)
    }

    /// Bytes reserved in a segment.
    pub fn used(&self, segment: SegmentId) -> usize {
        let (arena, segment) = self.in_segment(segment);
        arena.used(segment)
    }

    /// Bytes reserved so far in a segment, and its units.
    #[inline]
    pub fn extent(&self, segment: SegmentId) -> (usize, u32) {
        let (arena, segment) = self.in_segment(segment);
        arena.extent(segment)
    }

    /// The purpose of a segment: table, queue, class, schema.
    pub fn tag(&self, segment: SegmentId) -> SegmentTag {
        let (arena, segment) = self.in_segment(segment);
        arena.tag(segment)
    }

    /// The length of a segment in units of 64 KiB.
    pub fn units(&self, segment: SegmentId) -> u32 {
        let (arena, segment) = self.in_segment(segment);
        arena.units(segment)
    }

    /// The place of a segment in the order of allocations.
    pub fn order(&self, segment: SegmentId) -> u64 {
        let (arena, segment) = self.in_segment(segment);
        arena.order(segment)
    }

    /// The segment of a location.
    #[inline]
    pub fn head_of(&self, location: Location) -> SegmentId {
        let (arena, location) = self.at(location);
        arena.outer_segment(arena.head_of(location))
    }

    /// The segment of a location and its queue.
    #[inline]
    pub fn home_of(&self, location: Location) -> (SegmentId, Queue) {
        let (arena, location) = self.at(location);
        let (segment, queue) = arena.home_of(location);
        (arena.outer_segment(segment), queue)
    }

    /// The queue of the segment in which a row was found.
    #[inline]
    pub fn queue_of(&self, read: &RowRead<'_>) -> Queue {
        self.of(read.is_shared()).home_of(read.inner_location()).1
    }

    /// Counts bytes of a segment as live. Returns its live bytes.
    #[inline]
    pub fn add_live(&self, segment: SegmentId, bytes: usize) -> usize {
        let (arena, segment) = self.in_segment(segment);
        arena.add_live(segment, bytes)
    }

    /// Counts bytes of a segment as dead. Returns its remaining live bytes.
    #[inline]
    pub fn sub_live(&self, segment: SegmentId, bytes: usize) -> usize {
        let (arena, segment) = self.in_segment(segment);
        arena.sub_live(segment, bytes)
    }

    /// Notes that nothing leads to a row any more. The caller holds the shard's lock and counts the bytes as dead
    /// afterwards.
    #[inline]
    pub fn note_dead(&self, location: Location) {
        let (arena, location) = self.at(location);
        arena.note_dead(location);
    }

    /// Whether [`Arenas::note_dead`] was called for the row.
    #[inline]
    pub fn is_noted_dead(&self, location: Location) -> bool {
        let (arena, location) = self.at(location);
        arena.is_noted_dead(location)
    }

    /// The live bytes of a segment.
    pub fn live(&self, segment: SegmentId) -> usize {
        let (arena, segment) = self.in_segment(segment);
        arena.live(segment)
    }

    /// Notes the expiry of a row in its segment; 0 (never) outranks every moment.
    #[inline]
    pub fn note_expiry(&self, segment: SegmentId, expiry: u32) {
        let (arena, segment) = self.in_segment(segment);
        arena.note_expiry(segment, expiry);
    }

    /// The latest expiry noted for a segment. `None`: none was noted, or a row never expires.
    pub fn max_expiry(&self, segment: SegmentId) -> Option<u32> {
        let (arena, segment) = self.in_segment(segment);
        arena.max_expiry(segment)
    }

    /// The rows of a segment from a word on. The segment is sealed and has no writer, or the caller knows that its rows
    /// are written.
    pub fn rows(&self, segment: SegmentId, from_word: u32) -> Rows<'_> {
        let (arena, segment) = self.in_segment(segment);
        arena.rows(segment, from_word)
    }

    /// Frees a segment. No slot points into it, and it has no writer.
    pub fn recycle(&self, segment: SegmentId) {
        let (arena, segment) = self.in_segment(segment);
        arena.recycle(segment);
    }

    /// Those of each arena by order of allocation.
    pub fn segments(&self) -> Vec<SegmentId> {
        let outer = |arena: &'_ Arena| {
            let inner = arena.segments();
            inner.into_iter().map(|segment| arena.outer_segment(segment)).collect::<Vec<_>>()
        };
        self.each().flat_map(outer).collect()
    }

    /// Sets the largest number of bytes of all segments. Segments above it stay until they are recycled.
    pub fn set_limit(&self, segment_bytes: u64) {
        self.private.set_limit(segment_bytes);
    }

    /// Of the private one, as the limit is.
    pub fn reserved_bytes(&self) -> u64 {
        self.private.reserved_bytes()
    }

    /// The largest number of bytes of all segments.
    pub fn limit_bytes(&self) -> u64 {
        self.private.limit_bytes()
    }

    /// Bytes that can still be allocated.
    pub fn free_bytes(&self) -> u64 {
        self.private.free_bytes()
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

    /// See [`Arena::set_huge_pages`]; a shared arena that is made later does as the private one.
    pub fn set_huge_pages(&self, on: bool) {
        self.private.set_huge_pages(on);
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
        self.of(chain & SHARED_CHAINS != 0).prove(token, chain & !SHARED_CHAINS);
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
            settled.segments.extend(own.segments.into_iter().map(|segment| arena.outer_segment(segment)));
            settled.freed.extend(own.freed);
            settled.overlapping.extend(own.overlapping.into_iter().map(|row| arena.outer_location(row)));
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

    /// Issues the next stamp. It never repeats, not even across a crash.
    #[inline]
    pub fn next_stamp(&self) -> u64 {
        self.private.next_stamp()
    }

    /// The last stamp issued; 0 before the first.
    pub fn last_stamp(&self) -> u64 {
        self.private.last_stamp()
    }

    /// The monotonic time of the arena's creation in nanoseconds; ticks count from it.
    #[inline]
    pub fn epoch_ns(&self) -> u64 {
        self.private.epoch_ns()
    }

    /// Rows of the table with a smaller stamp are dead.
    pub fn dead_below(&self, table: TableId) -> u64 {
        self.of_table(table).dead_below(table)
    }

    /// Raises `dead_below`; a smaller value is ignored.
    pub fn set_dead_below(&self, table: TableId, stamp: u64) {
        self.of_table(table).set_dead_below(table, stamp);
    }

    /// The tick of a future flush, 0 for none. From then on rows written before it are dead.
    pub fn flush_at(&self, table: TableId) -> u32 {
        self.of_table(table).flush_at(table)
    }

    /// Sets the tick of the future flush, 0 for none. It replaces an earlier one.
    pub fn set_flush_at(&self, table: TableId, tick: u32) {
        self.of_table(table).set_flush_at(table, tick);
    }

    /// Notes that the flush of this tick was carried out and `dead_below` raised.
    pub fn end_flush_at(&self, table: TableId, tick: u32) {
        self.of_table(table).end_flush_at(table, tick);
    }

    /// Rows of the table with a smaller stamp and without a deadline of their own are dead by a time to live.
    pub fn aged_below(&self, table: TableId) -> u64 {
        self.of_table(table).aged_below(table)
    }

    /// Raises `aged_below`; a smaller value is ignored.
    pub fn set_aged_below(&self, table: TableId, stamp: u64) {
        self.of_table(table).set_aged_below(table, stamp);
    }

    /// The current definitions as bytes. `None`: there are none, or they kept changing during the read.
    pub fn catalogue(&self) -> Option<Vec<u8>> {
        self.private.catalogue()
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

    /// The log of checkpoints.
    pub fn checkpoints(&self) -> crate::Checkpoints<'_> {
        self.private.checkpoints()
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

    /// The place in the order of allocations that the next segment gets.
    pub fn next_order(&self) -> u64 {
        self.private.next_order()
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

    /// Claims a free commit word and sets it to staging. `None`: all are in use.
    pub fn claim_commit(&self) -> Option<CommitSlot> {
        self.private.claim_commit()
    }

    /// The state of a commit.
    #[inline]
    pub fn commit_state(&self, slot: CommitSlot) -> CommitState {
        self.private.commit_state(slot)
    }

    /// Dooms a staging commit. Returns false if it is not staging.
    pub fn doom(&self, slot: CommitSlot) -> bool {
        self.private.doom(slot)
    }

    /// Commits: one store from staging to committed. Returns false if the commit was doomed.
    pub fn seal_commit(&self, slot: CommitSlot, redo: &Redo) -> bool {
        self.private.seal_commit(slot, redo)
    }

    /// Sets a doomed commit to staging again.
    pub fn reset_commit(&self, slot: CommitSlot) {
        self.private.reset_commit(slot);
    }

    /// Frees the commit word of a commit that was applied or given up.
    pub fn finish_commit(&self, slot: CommitSlot) {
        self.private.finish_commit(slot);
    }

    /// Writes the redo record of a commit. `None`: there is no memory.
    pub fn write_redo(&self, entries: &[RedoEntry]) -> Option<Redo> {
        self.private.write_redo(entries)
    }

    /// Marks entry `index` as put in place. Called under the shard's lock, after that.
    pub fn redo_done(&self, redo: &Redo, index: usize) {
        self.private.redo_done(redo, index);
    }

    /// Frees a redo record. Its commit word is free, or was never sealed with it.
    pub fn free_redo(&self, redo: Redo) {
        self.private.free_redo(redo);
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
