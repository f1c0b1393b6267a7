//! The shared-memory file: layout, segments, hash index, the read protocol, recovery.
#![allow(
    unused_variables,
    dead_code,
    clippy::unused_self,
    clippy::needless_pass_by_ref_mut,
    reason = "signatures first"
)]

mod error;
mod layout;

use std::path::Path;

pub use error::{ArenaError, CatalogueError, IndexFull};
pub use layout::{
    BLOCK_UNITS, COMMIT_SLOTS, Hash, LAYOUT_VERSION, Location, MAX_CATALOGUE_BYTES, MAX_KEY_BYTES,
    MAX_ROW_BYTES, MAX_TABLES, Queue, SHARDS, SegmentId, SegmentTag, SlotId, TableId, UNIT_BYTES,
};

/// How large an arena is to be.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// Bytes of segments; the virtual range reserved at creation is at least four times as large.
    pub memory_bytes: u64,
}

/// What to write as a row.
#[derive(Clone, Copy, Debug)]
pub struct RowParts<'a> {
    /// Its table.
    pub table: TableId,
    /// Whether it is part of a commit of many rows.
    pub multi: bool,
    /// Tick at which it expires; 0: it has no expiry word.
    pub expiry: u32,
    /// The client's flags; 0: it has no word for them.
    pub client_flags: u32,
    /// A CAS value that the client chose.
    pub cas: Option<u64>,
    /// The encoded key.
    pub key: &'a [u8],
    /// The payload in pieces, written one after the other.
    pub payload: &'a [&'a [u8]],
}

impl RowParts<'_> {
    /// Bytes that the row takes in a segment: what to reserve. A multiple of 8.
    pub fn total_bytes(&self) -> usize {
        unimplemented!()
    }
}

/// The head of a row, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowHead {
    /// Its table.
    pub table: TableId,
    /// Its stamp: commit number, CAS value and age in one.
    pub stamp: u64,
    /// The flag bits.
    pub flags: u8,
    /// Bytes of the key.
    pub key_len: usize,
    /// Bytes of the payload.
    pub payload_len: usize,
    /// Tick of expiry; 0: never, or no expiry word.
    pub expiry: u32,
    /// The client's flags; 0 if the row has no word for them.
    pub client_flags: u32,
    /// The CAS value that a client chose.
    pub explicit_cas: Option<u64>,
    /// Bytes that the row takes in its segment.
    pub total_bytes: usize,
}

impl RowHead {
    /// The row's CAS value: the client's own if it chose one, else the stamp.
    pub fn cas(&self) -> u64 {
        unimplemented!()
    }

    /// Whether the row is part of a commit of many rows.
    pub fn is_multi(&self) -> bool {
        unimplemented!()
    }

    /// Whether the row has a word for its expiry, so that [`Arena::set_expiry`] may be called.
    pub fn has_expiry(&self) -> bool {
        unimplemented!()
    }
}

/// An arena that this process owns.
#[derive(Debug)]
pub struct Arena {}

/// What [`Arena::attach`] found.
#[derive(Debug)]
pub enum Attach {
    /// A usable arena and what recovery did.
    Warm(Arena, Recovery),
    /// The file cannot be used, and why. The caller logs, unlinks and creates.
    Unusable(String),
}

/// What recovery found in an arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Rows kept.
    pub rows: u64,
    /// Index slots cleared because what they pointed at was not a row of theirs.
    pub dropped: u64,
    /// Rows of committed transactions that were swapped in.
    pub redone: u64,
}

/// What a lock-free lookup found.
#[derive(Debug)]
pub enum Lookup<'a> {
    /// The row. Its head is whole; bytes copied from it count only if [`RowRead::is_valid`] afterwards.
    Hit(RowRead<'a>),
    /// No such row.
    Miss,
    /// The bucket kept changing; ask again under the shard's lock.
    Busy,
}

/// A row found in the arena, by place and generation.
#[derive(Debug)]
pub struct RowRead<'a> {
    arena: &'a Arena,
    head: RowHead,
}

impl RowRead<'_> {
    /// The head of the row, private and validated.
    pub fn head(&self) -> &RowHead {
        unimplemented!()
    }
    /// Where the row lies.
    pub fn location(&self) -> Location {
        unimplemented!()
    }
    /// The index slot through which it was found; `None` for [`Arena::row`].
    pub fn slot(&self) -> Option<SlotId> {
        unimplemented!()
    }
    /// Appends the key to `out`.
    pub fn copy_key(&self, out: &mut Vec<u8>) {
        unimplemented!()
    }
    /// Appends `len` bytes of the payload from byte `from` to `out` (fewer where the payload ends).
    pub fn copy_payload(&self, from: usize, len: usize, out: &mut Vec<u8>) {
        unimplemented!()
    }
    /// Whether the row's key is `key`.
    pub fn key_equals(&self, key: &[u8]) -> bool {
        unimplemented!()
    }
    /// Whether everything copied from the row so far was the row's: its memory has not been recycled.
    pub fn is_valid(&self) -> bool {
        unimplemented!()
    }
    /// Counts a hit in the row's hint, which saturates at 3.
    pub fn touch(&self) {
        unimplemented!()
    }
}

/// The right to change one shard of the index. There is one per shard; the caller keeps it in the shard's lock.
#[derive(Debug)]
pub struct ShardToken {
    shard: u16,
}

impl ShardToken {
    /// The shard's number.
    pub fn shard(&self) -> usize {
        usize::from(self.shard)
    }
}

/// A row's entry in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The slot that holds it.
    pub slot: SlotId,
    /// Where the row lies.
    pub location: Location,
}

/// The shape of a scan: groups of buckets that hold the same keys however often the index splits meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanShape {
    /// Groups to visit, from 0.
    pub groups: u64,
}

/// What the arena takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of segments in use.
    pub segments_bytes: u64,
    /// Bytes of segments that the file system has committed, free ones included.
    pub committed_bytes: u64,
    /// Bytes of index buckets, overflow buckets included.
    pub index_bytes: u64,
    /// Rows in the index.
    pub rows: u64,
}

/// State of a commit of many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitState {
    /// Nobody's.
    Free,
    /// Marks are being set; any single-key write may doom it.
    Staging,
    /// It must start again or fail.
    Doomed,
    /// It cannot fail any more; its rows are being swapped in.
    Committed,
}

/// One word of the superblock, claimed by one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommitSlot(pub u8);

/// One row of a commit of many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedoEntry {
    /// Hash of its key.
    pub hash: Hash,
    /// Its table.
    pub table: TableId,
    /// The new version; `None` deletes.
    pub new: Option<Location>,
    /// The version that it replaces.
    pub old: Option<Location>,
    /// That version's stamp (0: there is none).
    pub old_stamp: u64,
}

/// A redo record in the arena: a chain of segments.
#[derive(Debug)]
pub struct Redo {
    segments: Vec<SegmentId>,
}

impl Redo {
    /// The first segment of the chain.
    pub fn head(&self) -> SegmentId {
        unimplemented!()
    }
}

/// The rows of a segment, in order.
#[derive(Debug)]
pub struct Rows<'a> {
    arena: &'a Arena,
}

impl Rows<'_> {
    /// The word from the start of the segment at which the next row begins: where to resume.
    pub fn position(&self) -> u32 {
        unimplemented!()
    }
}

impl Iterator for Rows<'_> {
    type Item = (Location, RowHead);
    fn next(&mut self) -> Option<Self::Item> {
        unimplemented!()
    }
}

/// The log of (tick, stamp) that turns an age into a stamp.
#[derive(Debug)]
pub struct Checkpoints {}

impl Checkpoints {
    /// Notes that at `tick` every stamp below `stamp` had been issued. A tick not above the last one noted is ignored.
    pub fn record(&self, tick: u32, stamp: u64) {
        unimplemented!()
    }
    /// A stamp such that every smaller one was issued before `tick`; the largest one known, 0 if none is.
    pub fn stamp_before(&self, tick: u32) -> u64 {
        unimplemented!()
    }
}

impl Arena {
    /// Creates an arena of its own file, which must not exist; without a path, in anonymous memory.
    pub fn create(path: Option<&Path>, geometry: &Geometry, now_ns: u64) -> Result<Self, ArenaError> {
        unimplemented!()
    }
    /// Opens the arena that another process left, and recovers it.
    pub fn attach(path: &Path, geometry: &Geometry) -> Result<Attach, ArenaError> {
        unimplemented!()
    }
    /// Hashes a key of a table under the file's seed.
    pub fn hash(&self, table: TableId, key: &[u8]) -> Hash {
        unimplemented!()
    }
    /// Finds a row without a lock.
    pub fn lookup(&self, hash: Hash, table: TableId, key: &[u8]) -> Lookup<'_> {
        unimplemented!()
    }
    /// The row at a location, if there is one. The caller holds a lock that keeps it published, or validates afterwards
    /// and compares the key.
    pub fn row(&self, location: Location) -> Option<RowRead<'_>> {
        unimplemented!()
    }
    /// Hands out the tokens of all shards; a second call returns none.
    pub fn take_tokens(&mut self) -> Vec<ShardToken> {
        unimplemented!()
    }
    /// The shard of a hash.
    pub fn shard_of(hash: Hash) -> usize {
        unimplemented!()
    }
    /// Finds a key's entry.
    pub fn find(&self, token: &ShardToken, hash: Hash, table: TableId, key: &[u8]) -> Option<Entry> {
        unimplemented!()
    }
    /// Finds the slot that points at a location.
    pub fn find_location(&self, token: &ShardToken, hash: Hash, location: Location) -> Option<SlotId> {
        unimplemented!()
    }
    /// Publishes a row whose key is not in the index.
    pub fn insert(
        &self,
        token: &mut ShardToken,
        hash: Hash,
        table: TableId,
        location: Location,
    ) -> Result<SlotId, IndexFull> {
        unimplemented!()
    }
    /// Publishes another version in a slot: one release store.
    pub fn replace(
        &self,
        token: &mut ShardToken,
        slot: SlotId,
        hash: Hash,
        table: TableId,
        location: Location,
    ) {
        unimplemented!()
    }
    /// Clears a slot.
    pub fn remove(&self, token: &mut ShardToken, slot: SlotId) {
        unimplemented!()
    }
    /// The shard to lock for the next split, if the index is full enough for one.
    pub fn split_due(&self) -> Option<usize> {
        unimplemented!()
    }
    /// Splits the next bucket if it belongs to this shard and a split is due; whether it did.
    pub fn split(&self, token: &mut ShardToken) -> bool {
        unimplemented!()
    }
    /// Hits counted for a slot, at most 3.
    pub fn frequency(&self, slot: SlotId) -> u8 {
        unimplemented!()
    }
    /// Sets the count of a slot.
    pub fn set_frequency(&self, slot: SlotId, frequency: u8) {
        unimplemented!()
    }
    /// Begins a scan of the whole index.
    pub fn scan_shape(&self) -> ScanShape {
        unimplemented!()
    }
    /// Appends the locations of a table's rows in one group; the token is of [`Arena::shard_of_group`].
    pub fn scan_group(
        &self,
        token: &ShardToken,
        shape: ScanShape,
        group: u64,
        table: TableId,
        out: &mut Vec<Location>,
    ) {
        unimplemented!()
    }
    /// The shard that a group of a scan belongs to.
    pub fn shard_of_group(group: u64) -> usize {
        unimplemented!()
    }

    /// Takes a free run of units. `None`: the limit is reached, there is no contiguous run, or the file system is full.
    pub fn allocate(&self, units: u32, tag: &SegmentTag) -> Option<SegmentId> {
        unimplemented!()
    }
    /// Reserves bytes in a segment and counts the caller as a writer. `None`: full or sealed (not counted).
    pub fn reserve(&self, segment: SegmentId, bytes: usize) -> Option<Location> {
        unimplemented!()
    }
    /// The writer that reserved is done: the row is published, or a filler is written.
    pub fn release(&self, segment: SegmentId) {
        unimplemented!()
    }
    /// Writes a row with stamp 0 into reserved bytes.
    pub fn write_row(&self, location: Location, parts: &RowParts<'_>) {
        unimplemented!()
    }
    /// Declares reserved bytes to hold no row.
    pub fn write_filler(&self, location: Location, bytes: usize) {
        unimplemented!()
    }
    /// Stamps a row before it is published.
    pub fn stamp_row(&self, location: Location, stamp: u64) {
        unimplemented!()
    }
    /// Changes the expiry of a row that has an expiry word.
    pub fn set_expiry(&self, location: Location, expiry: u32) {
        unimplemented!()
    }
    /// Refuses further reservations.
    pub fn seal(&self, segment: SegmentId) {
        unimplemented!()
    }
    /// Whether the segment is sealed.
    pub fn is_sealed(&self, segment: SegmentId) -> bool {
        unimplemented!()
    }
    /// Writers that reserved and have not released.
    pub fn writers(&self, segment: SegmentId) -> u32 {
        unimplemented!()
    }
    /// Bytes reserved so far.
    pub fn used(&self, segment: SegmentId) -> usize {
        unimplemented!()
    }
    /// What the segment was allocated for.
    pub fn tag(&self, segment: SegmentId) -> SegmentTag {
        unimplemented!()
    }
    /// Units of the segment.
    pub fn units(&self, segment: SegmentId) -> u32 {
        unimplemented!()
    }
    /// Its place in the order of allocations.
    pub fn order(&self, segment: SegmentId) -> u64 {
        unimplemented!()
    }
    /// The segment in which a location lies.
    pub fn head_of(&self, location: Location) -> SegmentId {
        unimplemented!()
    }
    /// Counts bytes as live; returns the live bytes.
    pub fn add_live(&self, segment: SegmentId, bytes: usize) -> usize {
        unimplemented!()
    }
    /// Counts bytes as dead; returns the live bytes that remain.
    pub fn sub_live(&self, segment: SegmentId, bytes: usize) -> usize {
        unimplemented!()
    }
    /// The live bytes.
    pub fn live(&self, segment: SegmentId) -> usize {
        unimplemented!()
    }
    /// Notes the expiry of a row in the segment; 0 (never) outranks every tick.
    pub fn note_expiry(&self, segment: SegmentId, expiry: u32) {
        unimplemented!()
    }
    /// The latest expiry noted; `None` if a row that never expires was noted, or none at all.
    pub fn max_expiry(&self, segment: SegmentId) -> Option<u32> {
        unimplemented!()
    }
    /// The rows of a segment from a word on; sealed, or the caller knows that what it visits is written.
    pub fn rows(&self, segment: SegmentId, from_word: u32) -> Rows<'_> {
        unimplemented!()
    }
    /// Frees a segment. No slot points into it and it has no writer.
    pub fn recycle(&self, segment: SegmentId) {
        unimplemented!()
    }
    /// Every segment in use, by order of allocation.
    pub fn segments(&self) -> Vec<SegmentId> {
        unimplemented!()
    }
    /// Sets the most bytes that segments may take.
    pub fn set_limit(&self, segment_bytes: u64) {
        unimplemented!()
    }
    /// Bytes that may still be allocated.
    pub fn free_bytes(&self) -> u64 {
        unimplemented!()
    }
    /// What the arena takes.
    pub fn usage(&self) -> Usage {
        unimplemented!()
    }
    /// Gives the memory of free units back to the system.
    pub fn trim(&self) {
        unimplemented!()
    }

    /// Issues the next stamp; it never repeats, not even across a crash.
    pub fn next_stamp(&self) -> u64 {
        unimplemented!()
    }
    /// The last stamp issued.
    pub fn last_stamp(&self) -> u64 {
        unimplemented!()
    }
    /// Rows of the table with a smaller stamp are dead.
    pub fn dead_below(&self, table: TableId) -> u64 {
        unimplemented!()
    }
    /// Raises `dead_below`; a smaller value is ignored.
    pub fn set_dead_below(&self, table: TableId, stamp: u64) {
        unimplemented!()
    }
    /// The table definitions, if any were stored.
    pub fn catalogue(&self) -> Option<Vec<u8>> {
        unimplemented!()
    }
    /// Replaces the table definitions by one store.
    pub fn set_catalogue(&self, bytes: &[u8]) -> Result<(), CatalogueError> {
        unimplemented!()
    }
    /// The monotonic time at which the arena was created; ticks count from it.
    pub fn epoch_ns(&self) -> u64 {
        unimplemented!()
    }
    /// Tells readers that the owner lives.
    pub fn heartbeat(&self, now_ns: u64) {
        unimplemented!()
    }
    /// The log of checkpoints.
    pub fn checkpoints(&self) -> &Checkpoints {
        unimplemented!()
    }

    /// Claims a free commit word and sets it to staging.
    pub fn claim_commit(&self) -> Option<CommitSlot> {
        unimplemented!()
    }
    /// The state of a commit.
    pub fn commit_state(&self, slot: CommitSlot) -> CommitState {
        unimplemented!()
    }
    /// Dooms a staging commit; false if it is not staging.
    pub fn doom(&self, slot: CommitSlot) -> bool {
        unimplemented!()
    }
    /// Commits: staging to committed in one store; false if it was doomed.
    pub fn seal_commit(&self, slot: CommitSlot, redo: &Redo) -> bool {
        unimplemented!()
    }
    /// A doomed commit stages again.
    pub fn reset_commit(&self, slot: CommitSlot) {
        unimplemented!()
    }
    /// Frees the commit word.
    pub fn finish_commit(&self, slot: CommitSlot) {
        unimplemented!()
    }
    /// Writes the redo record of a commit. `None`: no memory.
    pub fn write_redo(&self, entries: &[RedoEntry]) -> Option<Redo> {
        unimplemented!()
    }
    /// Entry `index` is swapped in; called under the shard's lock, after the swap.
    pub fn redo_done(&self, redo: &Redo, index: usize) {
        unimplemented!()
    }
    /// Frees a redo record; its commit word is free.
    pub fn free_redo(&self, redo: Redo) {
        unimplemented!()
    }
}
