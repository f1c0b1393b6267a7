//! The arena's limits, each with its reason. Those of the file's format are part of its layout version.

/// Tables that one arena can hold: the 12 bits that the plan of the table words allows.
pub const MAX_TABLES: usize = 4096;

/// The largest row, header and padding included: the 32-bit fill word of a segment must hold it.
pub const MAX_ROW_BYTES: usize = 256 << 20;

/// Units of the largest segment: the 32 bits of room in a fill word hold its bytes.
pub(crate) const MAX_SEGMENT_UNITS: u32 = u32::MAX / (64 << 10);

/// The largest key, encoded: keys are copied under a lock, so they stay small.
pub const MAX_KEY_BYTES: usize = 64 * 1024;

/// Bytes of the largest catalogue: a mebibyte, without the two words of its header.
pub const MAX_CATALOGUE_BYTES: usize = (1 << 20) - 16;

/// Buckets that one chain may have; a reader's loop over a chain is bounded by it.
pub(crate) const MAX_CHAIN: usize = 8;

/// Bytes of its file system that an arena leaves to readers who make pages: 256 of them in one tick, after which they
/// are given back.
pub(crate) const SPARE_BYTES_MAX: u64 = 1 << 20;

/// Stamps have 48 bits in a row.
pub(crate) const STAMP_LIMIT: u64 = 1 << 48;

/// The hits that a slot counts: eviction asks for no more.
pub(crate) const FREQUENCY_MAX: u16 = 3;

/// Cache lines that are prefetched of one row: the rest of a longer one comes in their wake, for it is read from its
/// beginning to its end.
pub(crate) const PREFETCHED_LINES_MAX: usize = 8;

/// Hits that a reader reports of one slot at most: eviction asks for no more.
pub(crate) const HITS_TOLD_MAX: u8 = 3;

/// Words of the longest part of a row that is checked in several at once: rows of up to 2 KiB are divided once.
#[cfg(target_arch = "x86_64")]
pub(crate) const PART_WORDS_MAX: usize = 85;
