//! Names, sizes and word formats of the file: the one place that knows where a byte lies.
//!
//! `docs/arena-format.md` draws what this module computes. Whoever changes one changes the other and
//! raises [`LAYOUT_VERSION`].

pub use crate::limits::MAX_CATALOGUE_BYTES;
pub use crate::limits::MAX_KEY_BYTES;
pub use crate::limits::MAX_ROW_BYTES;
use crate::limits::MAX_SEGMENT_UNITS;
pub use crate::limits::MAX_TABLES;

/// Raised whenever a byte of the file changes its meaning; another version is not attached.
pub const LAYOUT_VERSION: u64 = 6;
/// First word of the file: `SQLCARNA` in little-endian bytes.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"SQLCARNA");
/// A big-endian machine would read this number differently and refuse the file.
pub(crate) const BYTE_ORDER_MARK: u64 = 0x0102_0304_0506_0708;

/// Index shards; a shard owns every bucket whose low eight bits are its number.
pub const SHARDS: usize = 256;
/// Commits of many rows that can be in flight at once: one word each in the superblock.
pub const COMMIT_SLOTS: usize = 16;
/// Bytes of one unit, the smallest segment.
pub const UNIT_BYTES: usize = 64 * 1024;
/// Words of one unit: what 13 bits of a location can address.
pub(crate) const UNIT_WORDS: u64 = (UNIT_BYTES / 8) as u64;
/// Units that share one allocation block, so that runs of 16 stay possible.
pub const BLOCK_UNITS: u32 = 16;
const _: () = assert!(MAX_SEGMENT_UNITS as usize * UNIT_BYTES >= MAX_ROW_BYTES, "a row fits its segment");
/// The smallest virtual range: below it the saving is nothing, sparse pages cost nothing.
pub(crate) const MIN_RESERVE_BYTES: u64 = if cfg!(miri) { 4 << 20 } else { 1 << 30 };

/// Bytes of a page: memory comes and goes in these.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// Bytes of an extent: what one page of the larger kind holds, where it begins at a multiple of them in the file and in
/// the address space.
pub(crate) const EXTENT_BYTES: u64 = 2 << 20;
/// Bytes of the superblock.
pub(crate) const SUPERBLOCK_BYTES: u64 = 4096;
/// Bytes of one table's line.
pub(crate) const TABLE_LINE_BYTES: u64 = 64;
/// Levels of the log of checkpoints; level n keeps one in 16^n ticks.
pub(crate) const CHECKPOINT_LEVELS: usize = 5;
/// Entries of one level: 256 s at full detail, 194 days at the coarsest.
pub(crate) const CHECKPOINT_ENTRIES: u64 = 4096;
/// Bytes of one half of the catalogue, its two words of header included.
pub(crate) const CATALOGUE_HALF_BYTES: u64 = 1 << 20;
/// Bytes of one segment header.
pub(crate) const SEGMENT_HEADER_BYTES: u64 = 64;
/// Bytes of one bucket: a header word and seven slots, one cache line.
pub(crate) const BUCKET_BYTES: u64 = 64;
/// Slots of one bucket.
pub(crate) const BUCKET_SLOTS: u64 = 7;
/// Buckets of a fresh index; at least [`SHARDS`], so that a split never leaves its shard.
pub(crate) const FIRST_LEVEL: u32 = 10;
/// The index is committed by this many bytes at a time: a unit's, which the segments cede to it.
pub(crate) const INDEX_STEP_BYTES: u64 = UNIT_BYTES as u64;

/// Number of a table; the low nine bits are repeated in index slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u16);

/// The bit of a table's number that says that its rows lie in the shared arena.
pub const SHARED_TABLES: u16 = 2048;

/// The same of a segment: no arena has so many units.
pub(crate) const SHARED_UNITS: u32 = 1 << 25;

/// The same of a location, whose upper part is a unit.
pub(crate) const SHARED_LOCATIONS: u64 = (SHARED_UNITS as u64) << 13;

/// The same of a slot.
pub(crate) const SHARED_SLOTS: u64 = 1 << 63;

impl TableId {
    /// Whether the table's rows lie in the shared arena.
    #[inline]
    pub fn is_shared(self) -> bool {
        self.0 & SHARED_TABLES != 0
    }
}

/// What says by a bit of its own which of two arenas it is of. An arena hands its ids out with the bit, and takes them
/// with it or without; in the file it is never set.
pub trait InFile: Copy {
    /// Whether it is of the shared arena.
    fn is_in_shared(self) -> bool;
}

impl InFile for TableId {
    #[inline]
    fn is_in_shared(self) -> bool {
        self.is_shared()
    }
}

impl InFile for Location {
    #[inline]
    fn is_in_shared(self) -> bool {
        self.0 & SHARED_LOCATIONS != 0
    }
}

impl InFile for SegmentId {
    #[inline]
    fn is_in_shared(self) -> bool {
        self.0 & SHARED_UNITS != 0
    }
}

impl InFile for SlotId {
    #[inline]
    fn is_in_shared(self) -> bool {
        self.0 & SHARED_SLOTS != 0
    }
}

impl SegmentId {
    /// The unit in which it begins, without the bit that says which of two arenas it is of.
    #[inline]
    pub(crate) fn unit(self) -> u32 {
        self.0 & !SHARED_UNITS
    }
}

impl SlotId {
    /// Its number in the file, without that bit.
    #[inline]
    pub(crate) fn in_file(self) -> u64 {
        self.0 & !SHARED_SLOTS
    }
}

/// Number of a segment: the unit in which it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentId(pub u32);

/// Where a row lies: the unit in which it starts, and the word in that unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location(u64);

/// Bits of a location's word part.
const WORD_BITS: u32 = 13;
/// Bits of a location: 26 of unit, 13 of word.
pub const LOCATION_BITS: u32 = 39;
/// Where the tag of a slot begins, above nine bits of the table.
pub(crate) const TAG_SHIFT: u32 = LOCATION_BITS + 9;
/// The bits of a slot that are its location.
pub(crate) const LOCATION_MASK: u64 = (1 << LOCATION_BITS) - 1;

impl Location {
    /// The location as one number below 2^39, for callers that keep it in their own structures.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The inverse of [`Location::bits`]; other bits are dropped. Any number is safe to look at.
    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        Self(bits & LOCATION_MASK)
    }

    /// The unit in which the row starts; for a run this need not be the segment's head.
    #[inline]
    pub fn unit(self) -> u32 {
        (self.0 >> WORD_BITS) as u32
    }

    /// The word inside its unit.
    #[inline]
    pub fn word(self) -> u32 {
        (self.0 & (UNIT_WORDS - 1)) as u32
    }

    /// The location as it stands in the file, without the bit that says which of two arenas it is of.
    #[inline]
    pub(crate) fn in_file(self) -> Self {
        Self(self.0 & !SHARED_LOCATIONS)
    }

    #[inline]
    pub(crate) fn in_run(head: u32, word: u64) -> Self {
        Self((u64::from(head) << WORD_BITS) + word)
    }
}

/// A place in the index; valid while the shard's token is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotId(pub(crate) u64);

/// Hash of (table, key) under the file's seed: the low bits choose shard and bucket, the top 16 are the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash(pub u64);

/// What a segment is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queue {
    /// New rows.
    Small,
    /// Rows that proved themselves.
    Main,
    /// Redo records of commits of many rows; no rows.
    Redo,
}

/// What a segment was allocated for; kept in its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentTag {
    /// The table whose rows it holds.
    pub table: TableId,
    /// Its queue.
    pub queue: Queue,
    /// The caller's class of time to live.
    pub ttl_class: u8,
    /// The schema version under which its rows were written.
    pub schema: u32,
}

/// Words of the superblock. The first twelve never change after creation and are covered by a check.
pub(crate) mod word {
    /// [`super::MAGIC`].
    pub(crate) const MAGIC: u64 = 0;
    /// [`super::LAYOUT_VERSION`].
    pub(crate) const VERSION: u64 = 1;
    /// [`super::BYTE_ORDER_MARK`].
    pub(crate) const BYTE_ORDER: u64 = 2;
    /// Bytes reserved for segments; every offset follows from it.
    pub(crate) const RESERVE: u64 = 3;
    /// Bytes of the file.
    pub(crate) const TOTAL: u64 = 4;
    /// Seed of the hash.
    pub(crate) const SEED: u64 = 5;
    /// A random number for this file.
    pub(crate) const INSTANCE: u64 = 6;
    /// The boot under which the file was made: two words.
    pub(crate) const BOOT: u64 = 7;
    /// Monotonic time at creation.
    pub(crate) const EPOCH: u64 = 9;
    /// In a shared arena the instance of the private one that it belongs to; else 0.
    pub(crate) const OWNER: u64 = 10;
    /// CRC32C of the words before it.
    pub(crate) const CHECK: u64 = 11;
    /// 1 once everything above is written.
    pub(crate) const STATE: u64 = 16;
    /// Process that owns the arena.
    pub(crate) const PID: u64 = 17;
    /// Stamps below this one may have been issued.
    pub(crate) const STAMP_CEILING: u64 = 18;
    /// Units at or above this one were never used.
    pub(crate) const UNITS_USED: u64 = 19;
    /// Overflow buckets that are committed.
    pub(crate) const OVERFLOW_COMMITTED: u64 = 20;
    /// How many catalogues there were: the first half holds the odd ones, the second the even ones, 0 is none. One load
    /// tells a reader whether the one that it knows is in force.
    pub(crate) const CATALOGUE: u64 = 21;
    /// Bytes of the file of readers' hits that have pages; 0 where there is no such file.
    pub(crate) const HITS_BYTES: u64 = 22;
    /// Index word: level in the top 8 bits, next bucket to split below. Alone on its line.
    pub(crate) const INDEX: u64 = 32;
    /// Monotonic time of the owner's last sign of life. Alone on its line.
    pub(crate) const HEARTBEAT: u64 = 40;
    /// The commit words.
    pub(crate) const COMMITS: u64 = 64;
    /// A word for each shard that changes when a lease on a row of it ends; the second half of the superblock.
    pub(crate) const WAKES: u64 = 256;
}

/// [`word::STATE`] of a file that its owner uses no more: another one may be in its place.
pub(crate) const STATE_RETIRED: u64 = 2;
/// [`word::STATE`] of a complete superblock.
pub(crate) const STATE_READY: u64 = 1;

/// Where everything lies, in words from the start of the file. A function of the reserved bytes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) reserve_bytes: u64,
    pub(crate) total_bytes: u64,
    pub(crate) max_units: u32,
    pub(crate) max_buckets: u64,
    pub(crate) max_overflow: u64,
    pub(crate) tables: u64,
    pub(crate) checkpoints: u64,
    pub(crate) catalogue: u64,
    pub(crate) generations: u64,
    pub(crate) headers: u64,
    pub(crate) index: u64,
    pub(crate) segments: u64,
}

impl Layout {
    /// The layout for `reserve_bytes`: a power of two from 1 GiB to 2 TiB, else `None`.
    pub(crate) fn new(reserve_bytes: u64) -> Option<Self> {
        let units = reserve_bytes / UNIT_BYTES as u64;
        if !reserve_bytes.is_power_of_two()
            || reserve_bytes < MIN_RESERVE_BYTES
            || units > u64::from(SHARED_UNITS)
        {
            return None;
        }
        // One bucket in 256 bytes is more than rows of 32 bytes need while memory is a quarter of the reserve.
        let max_buckets = reserve_bytes / 256;
        let max_overflow = max_buckets / 2;
        let mut end = SUPERBLOCK_BYTES;
        let mut place = |bytes: u64, align: u64| {
            let at = end.next_multiple_of(align);
            end = at + bytes;
            at / 8
        };
        let tables = place(MAX_TABLES as u64 * TABLE_LINE_BYTES, PAGE_BYTES);
        let checkpoints = place(CHECKPOINT_LEVELS as u64 * CHECKPOINT_ENTRIES * 16, PAGE_BYTES);
        let catalogue = place(2 * CATALOGUE_HALF_BYTES, PAGE_BYTES);
        let generations = place(units * 8, PAGE_BYTES);
        let headers = place(units * SEGMENT_HEADER_BYTES, PAGE_BYTES);
        let index = place((max_buckets + max_overflow) * BUCKET_BYTES, EXTENT_BYTES);
        let segments = place(reserve_bytes, EXTENT_BYTES);
        Some(Self {
            reserve_bytes,
            total_bytes: end,
            max_units: units as u32,
            max_buckets,
            max_overflow,
            tables,
            checkpoints,
            catalogue,
            generations,
            headers,
            index,
            segments,
        })
    }

    /// The reserve for an arena of `memory_bytes`: room to find contiguous runs and to grow.
    pub(crate) fn reserve_for(memory_bytes: u64) -> Option<u64> {
        if memory_bytes == 0 {
            return None;
        }
        memory_bytes.checked_mul(4)?.max(MIN_RESERVE_BYTES).checked_next_power_of_two()
    }

    /// The word in the file of a location's first word.
    #[inline]
    pub(crate) fn at(&self, location: Location) -> u64 {
        self.segments + location.bits()
    }
}

/// Whole bytes of 8-byte words.
#[inline]
pub(crate) const fn padded_len(bytes: usize) -> usize {
    bytes.next_multiple_of(8)
}

/// The slot bits above the location: tag and low bits of the table. Never zero, so an empty slot is 0.
#[inline]
pub(crate) fn slot_prefix(hash: Hash, table: TableId) -> u64 {
    (slot_tag(hash) << TAG_SHIFT) | (u64::from(table.0 & 0x1ff) << LOCATION_BITS)
}

/// The top bits of a slot.
#[inline]
pub(crate) fn slot_tag(hash: Hash) -> u64 {
    (hash.0 >> 48).max(1)
}
