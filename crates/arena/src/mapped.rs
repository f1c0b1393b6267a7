//! A mapped arena: what its owner and those who only read it have in common.

use std::io;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use rapidhash::v3::RapidSecrets;

use crate::file::map::{Bytes, Lazy, Map};
use crate::index::hint::Hits;
use crate::index::{BUCKET_WORDS, shape};
use crate::layout::{
    CATALOGUE_HALF_BYTES, FIRST_LEVEL, Hash, Layout, Location, SEGMENT_HEADER_BYTES, SHARED_LOCATIONS,
    SHARED_SLOTS, SHARED_UNITS, SegmentId, SlotId, TABLE_LINE_BYTES, TableId, UNIT_WORDS, word,
};
use crate::limits::{MAX_CATALOGUE_BYTES, MAX_TABLES};
use crate::segments::kind::{Kind, UNIT_HEAD, UNIT_TAIL};

/// A mapped file, and how rows are found in it.
#[derive(Debug)]
pub struct Mapped {
    pub(crate) map: Map,
    pub(crate) layout: Layout,
    pub(crate) secrets: RapidSecrets,
    pub(crate) epoch_ns: u64,
    /// What is known of the hits on each index slot's row, indexed as slots are; empty in a process that only reads.
    pub(crate) hints: Lazy<AtomicU16>,
    /// Where a process that only reads tells the owner of hits.
    pub(crate) counts: Option<Counts>,
    /// The arena is the shared one of two: what leaves it bears the bits that say so.
    pub(crate) is_shared: bool,
    /// What no other mapping of this process is called.
    pub(crate) number: u64,
    /// This process only reads: nobody vouches for the words of the file, so each is bounded before it is followed.
    pub(crate) reader: bool,
}

/// A reader's side.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) bytes: Bytes,
    /// So many of them are known to have pages, which they keep.
    pub(crate) known: AtomicU64,
}

/// The number of the next mapping. Relaxed: only that no two have the same.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// A number that no other mapping of this process ever has.
fn new_number() -> u64 {
    NEXT_NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// The words of a table's line up to that of a flush to come.
const END_WORDS: usize = 3;

/// Which rows of a table are dead, whatever they say themselves.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// The tick of a flush to come: from then on rows that were written before it are dead. 0: there is none.
    pub flush_at: u32,
    /// Rows with a smaller stamp are dead by the flushes so far.
    pub dead_below: u64,
    /// So are these, if they have no deadline of their own: they reached a time to live that the table had once.
    pub aged_below: u64,
}

impl Mapped {
    /// A file of this layout and seed; `slots` hints of the owner's.
    pub(crate) fn new(map: Map, layout: Layout, seed: u64, slots: usize) -> io::Result<Self> {
        let epoch_ns = map.load(word::EPOCH, Ordering::Relaxed);
        let secrets = RapidSecrets::seed(seed);
        let hints = Lazy::new(slots)?;
        let number = new_number();
        let (counts, is_shared, reader) = (None, false, false);
        Ok(Self { map, layout, secrets, epoch_ns, hints, counts, is_shared, number, reader })
    }

    /// A place as the owner of two arenas knows it.
    #[inline]
    pub(crate) fn outer_location(&self, location: Location) -> Location {
        if self.is_shared { Location::from_bits(location.bits() | SHARED_LOCATIONS) } else { location }
    }

    #[inline]
    pub(crate) fn outer_segment(&self, segment: SegmentId) -> SegmentId {
        if self.is_shared { SegmentId(segment.0 | SHARED_UNITS) } else { segment }
    }

    #[inline]
    pub(crate) fn outer_slot(&self, slot: SlotId) -> SlotId {
        if self.is_shared { SlotId(slot.0 | SHARED_SLOTS) } else { slot }
    }

    /// Hashes a key of a table under the file's seed.
    #[inline]
    pub fn hash(&self, table: TableId, key: &[u8]) -> Hash {
        let key = rapidhash::v3::rapidhash_v3_inline::<true, false, false>(key, &self.secrets);
        // One folded multiplication brings the table into every bit: shard, bucket and tag are cut from all over.
        let table = (u64::from(table.0) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let product = u128::from(key ^ table) * u128::from(self.secrets.secrets[0] | 1);
        Hash(product as u64 ^ (product >> 64) as u64)
    }

    /// The monotonic time at which the arena was created; ticks count from it.
    #[inline]
    pub fn epoch_ns(&self) -> u64 {
        self.epoch_ns
    }

    /// What is known of the hits on a slot's row.
    #[inline]
    pub fn hits(&self, slot: SlotId, now: u32) -> Hits {
        let hint = self.hints.get(slot.in_file() as usize);
        hint.map_or_else(Hits::default, |hint| Hits::of(hint.load(Ordering::Relaxed), now))
    }

    /// The word in the file at which a bucket begins; overflow bucket n has number `max_buckets + n - 1`.
    #[inline]
    pub(crate) fn bucket_word(&self, bucket: u64) -> u64 {
        self.layout.index + bucket * BUCKET_WORDS
    }

    #[inline]
    pub(crate) fn index_word(&self) -> u64 {
        self.map.load(word::INDEX, crate::order::INDEX_LOAD)
    }

    /// Whether the buckets that an index word names lie in the index. The owner proved the word, and nobody else
    /// stores it.
    #[inline]
    pub(crate) fn is_bounded(&self, index_word: u64) -> bool {
        let (level, split) = shape(index_word);
        !self.reader
            || (FIRST_LEVEL..40).contains(&level)
                && split <= 1 << level
                && (1 << level) + split <= self.layout.max_buckets
    }

    /// Locations in units from here on are not followed.
    #[inline]
    pub(crate) fn units_bound(&self) -> u32 {
        if !self.reader {
            return self.layout.max_units;
        }
        // Acquire: pairs with the Release in `open_segment`; the header of a unit below the word has pages.
        let used = self.map.load(word::UNITS_USED, Ordering::Acquire);
        u32::try_from(used).map_or(0, |used| used.min(self.layout.max_units))
    }

    /// Links of overflow buckets above this one are not followed.
    pub(crate) fn overflow_bound(&self) -> u64 {
        if !self.reader {
            return self.layout.max_overflow;
        }
        // Acquire: pairs with the Release in `take_overflow`; buckets below the word have pages.
        self.map.load(word::OVERFLOW_COMMITTED, Ordering::Acquire).min(self.layout.max_overflow)
    }

    /// The word in the file at which a unit's header begins.
    pub(crate) fn header_word(&self, unit: u32) -> u64 {
        self.layout.headers + u64::from(unit) * (SEGMENT_HEADER_BYTES / 8)
    }

    /// Whether so many words from a location on lie in its segment, by the headers in the file. Whoever holds no lock
    /// validates the generation afterwards.
    pub(crate) fn fits_run(&self, location: Location, words: u64) -> bool {
        let bound = self.units_bound();
        let unit = location.unit();
        if unit >= bound {
            return false;
        }
        let kind = |unit: u32| Kind::of(self.map.load(self.header_word(unit), Ordering::Acquire));
        let own = kind(unit);
        let head = if own.state == UNIT_TAIL { unit.saturating_sub(own.units) } else { unit };
        let run = kind(head);
        let end = u64::from(head) + u64::from(run.units);
        run.state == UNIT_HEAD && end <= u64::from(bound) && location.bits() + words <= end * UNIT_WORDS
    }

    pub(crate) fn table_word(&self, table: TableId) -> u64 {
        debug_assert!(usize::from(table.0) < MAX_TABLES);
        self.layout.tables + (u64::from(table.0) % MAX_TABLES as u64) * (TABLE_LINE_BYTES / 8)
    }

    /// Rows of the table with a smaller stamp are dead.
    #[inline]
    pub fn dead_below(&self, table: TableId) -> u64 {
        // Acquire: pairs with the Release exchange of who raises it, so that a flush is seen by whoever is told of it.
        self.map.load(self.table_word(table), Ordering::Acquire)
    }

    /// Rows of the table with a smaller stamp and no deadline of their own are dead: they reached a time to live that
    /// the table had once.
    #[inline]
    pub fn aged_below(&self, table: TableId) -> u64 {
        // Acquire: as above.
        self.map.load(self.table_word(table) + 1, Ordering::Acquire)
    }

    /// The tick of a flush to come: from then on rows that were written before it are dead. 0: there is none.
    #[inline]
    pub fn flush_at(&self, table: TableId) -> u32 {
        self.ends(table).flush_at
    }

    /// Which rows are dead. The words are neighbours, so a reader pays one check of their place.
    #[inline]
    pub fn ends(&self, table: TableId) -> Ends {
        let at = self.table_word(table) as usize;
        let words = &self.map.words()[at..at + END_WORDS];
        // The tick first. Acquire: pairs with the Release of who takes it back: `dead_below` was raised before.
        let tick = words[2].load(Ordering::Acquire);
        Ends {
            // A tick that is none never comes.
            flush_at: u32::try_from(tick).unwrap_or(0),
            // Acquire: pairs with the Release exchange of who raises it.
            dead_below: words[0].load(Ordering::Acquire),
            // Acquire: as above.
            aged_below: words[1].load(Ordering::Acquire),
        }
    }

    pub(crate) fn catalogue_half(&self, root: u64) -> u64 {
        self.layout.catalogue + (root - 1) % 2 * (CATALOGUE_HALF_BYTES / 8)
    }

    /// The definitions in force; an error if the words that should hold them do not.
    pub(crate) fn read_catalogue(&self) -> Result<Option<Vec<u8>>, &'static str> {
        let root = self.map.load(word::CATALOGUE, Ordering::Acquire);
        if root == 0 {
            return Ok(None);
        }
        let half = self.catalogue_half(root);
        let len = usize::try_from(self.map.load(half, Ordering::Relaxed)).unwrap_or(usize::MAX);
        if len > MAX_CATALOGUE_BYTES {
            return Err("the table definitions are longer than their space");
        }
        let mut bytes = Vec::new();
        let first = half as usize + 2;
        crate::row::copy::append(&self.map.words()[first..first + len.div_ceil(8)], 0, len, &mut bytes);
        if u64::from(crc32c::crc32c(&bytes)) != self.map.load(half + 1, Ordering::Relaxed) {
            return Err("the check field of the table definitions is wrong");
        }
        Ok(Some(bytes))
    }
}
