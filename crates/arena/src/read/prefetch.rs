//! Asking for cache lines ahead of time.
//!
//! A lookup waits for memory twice: for the bucket and its hints, and for the row. Whoever has several keys to look up
//! asks for the lines of all of them first, and waits once. Nothing here has an effect but on time.

use std::sync::atomic::Ordering;

use crate::layout::{BUCKET_SLOTS, Hash, LOCATION_BITS, Location, TableId, slot_prefix};
use crate::limits::PREFETCHED_LINES_MAX;
use crate::line::line;
use crate::row::short_lengths;
use crate::{Arena, Mapped};

/// Words of a cache line.
const LINE_WORDS: usize = 8;
/// Lines of a value that are asked for: 1 KiB. The processor foresees the further ones of a long copy itself.
const VALUE_LINES: usize = 16;
/// Bytes between a row and the places behind it that are asked for: a few rows of the smallest size, so that the lines
/// have come when they are written.
const PLACES_AHEAD: usize = 512;
/// Lines of a place that are asked for: whoever fills it goes on with an atomic operation, which waits for all of them.
/// The processor foresees the rest of a longer row.
const PLACE_LINES: usize = 24;
/// Words of a row that finding it looks at: head and a key of usual length.
const HEAD_WORDS: usize = 5;
/// As many are asked for where a row's length is not known: head, key and a short value.
const ROW_LINES: usize = 3;

/// What a bucket says of the place of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreseen {
    /// It seems to lie there.
    Row(Location),
    /// Another bucket has to be looked at, which is on its way.
    Further,
    /// There is no such row.
    Nothing,
}

impl Mapped {
    /// Asks for the bucket of a hash and its hints.
    #[inline]
    pub fn prefetch_bucket(&self, hash: Hash) {
        let bucket = crate::index::bucket_of(self.index_word(), hash);
        let at = self.bucket_word(bucket) as usize;
        if let Some(word) = self.map.words().get(at) {
            line(word);
        }
        self.prefetch_hits(at);
    }

    /// Asks for what is known of the hits on the rows of the bucket that begins at a word.
    #[inline]
    pub(crate) fn prefetch_hits(&self, at: usize) {
        let slot = at - self.layout.index as usize;
        match &self.counts {
            Some(counts) => counts.bytes.get(slot).into_iter().for_each(line),
            None => self.hints.get(slot).into_iter().for_each(line),
        }
    }

    /// Asks for the row that a lookup of this hash will look at first. Its bucket should have come by now.
    #[inline]
    pub fn prefetch_row(&self, hash: Hash, table: TableId) {
        if let Foreseen::Row(location) = self.foresee(hash, table) {
            self.prefetch_location(location);
        }
    }

    /// Where the row seems to lie that a lookup of this hash will look at first, by its first bucket, which should have
    /// come by now. Where that does not name it, the next one is asked for.
    #[inline]
    pub fn foresee(&self, hash: Hash, table: TableId) -> Foreseen {
        let bucket = crate::index::bucket_of(self.index_word(), hash);
        if let Some(location) = self.foresee_in(bucket, hash, table) {
            return Foreseen::Row(self.outer_location(location));
        }
        let Some(next) = self.next_bucket(bucket) else { return Foreseen::Nothing };
        if let Some(word) = self.map.words().get(self.bucket_word(next) as usize) {
            line(word);
        }
        Foreseen::Further
    }

    /// The same by the second bucket of the chain.
    #[inline]
    pub fn foresee_further(&self, hash: Hash, table: TableId) -> Option<Location> {
        let bucket = crate::index::bucket_of(self.index_word(), hash);
        let location = self.foresee_in(self.next_bucket(bucket)?, hash, table)?;
        Some(self.outer_location(location))
    }

    #[inline]
    fn foresee_in(&self, bucket: u64, hash: Hash, table: TableId) -> Option<Location> {
        let at = self.bucket_word(bucket) as usize;
        let slots = self.map.words().get(at + 1..=at + BUCKET_SLOTS as usize)?;
        let want = slot_prefix(hash, table);
        // Relaxed: what is asked for in vain is lost time only.
        let found = slots.iter().map(|slot| slot.load(Ordering::Relaxed));
        let found = found.into_iter().find(|found| (found ^ want) >> LOCATION_BITS == 0)?;
        Some(Location::from_bits(found))
    }

    /// The bucket that a bucket is linked to. Its line alone is looked at.
    #[inline]
    fn next_bucket(&self, bucket: u64) -> Option<u64> {
        let header = self.map.words().get(self.bucket_word(bucket) as usize)?.load(Ordering::Relaxed);
        let link = crate::index::overflow_link(header);
        (link != 0 && link <= self.overflow_bound()).then(|| self.layout.max_buckets + link - 1)
    }

    /// Asks for what follows the first lines of a row, whose head should have come by now, as far as copying it would
    /// not ask for it by itself in time.
    #[inline]
    pub fn prefetch_value(&self, location: Location) {
        let location = location.in_file();
        let words = self.map.words();
        let row = self.layout.at(location) as usize;
        // Relaxed: a torn length asks for lines in vain.
        let Some(header) = words.get(row + 1) else { return };
        let (_, payload) = short_lengths(header.load(Ordering::Relaxed));
        for at in (row + ROW_LINES * LINE_WORDS..row + payload / 8).step_by(LINE_WORDS).take(VALUE_LINES) {
            let Some(word) = words.get(at) else { return };
            line(word);
        }
    }

    /// Asks for a row: head, key and a short value.
    #[inline]
    pub fn prefetch_location(&self, location: Location) {
        let location = location.in_file();
        if let Some(word) = self.map.words().get(self.layout.at(location) as usize) {
            line(word);
        }
        self.prefetch_behind(location);
    }

    /// Asks for the lines of a row behind the one in which it begins.
    #[inline]
    pub(crate) fn prefetch_behind(&self, location: Location) {
        let begin = self.layout.at(location) as usize;
        for ahead in 1..ROW_LINES {
            if let Some(word) = self.map.words().get(begin + ahead * LINE_WORDS) {
                line(word);
            }
        }
    }

    /// Asks for so many bytes of a row from its beginning on, up to [`PREFETCHED_LINES_MAX`] lines.
    #[inline]
    pub(crate) fn prefetch_bytes(&self, location: Location, bytes: usize) {
        let words = self.map.words();
        let row = self.layout.at(location) as usize;
        let lines = (row % LINE_WORDS + bytes.div_ceil(8)).div_ceil(LINE_WORDS).min(PREFETCHED_LINES_MAX);
        for at in (row..).step_by(LINE_WORDS).take(lines) {
            if let Some(word) = words.get(at) {
                line(word);
            }
        }
    }

    /// Asks for the rows of a bucket that is going to be proved; it has pages. Its overflow buckets are left to
    /// themselves.
    pub(crate) fn prefetch_chain(&self, bucket: u64) {
        let words = self.map.words();
        let at = self.bucket_word(bucket) as usize;
        let Some(slots) = words.get(at + 1..=at + BUCKET_SLOTS as usize) else { return };
        for slot in slots {
            // Relaxed: what is asked for in vain is lost time only.
            let found = slot.load(Ordering::Relaxed);
            if found != 0 {
                self.prefetch_location(Location::from_bits(found));
            }
        }
    }
}

impl Arena {
    /// Asks for the places of the rows that will follow one that was just given its place in an open segment. The
    /// processor foresees them itself, but not across a page.
    #[inline]
    pub(crate) fn prefetch_places(&self, location: Location, bytes: usize) {
        let words = self.map.words();
        let from = self.layout.at(location) as usize + (bytes + PLACES_AHEAD) / 8;
        for at in (from..from + bytes / 8).step_by(LINE_WORDS).take(PLACE_LINES) {
            let Some(word) = words.get(at) else { return };
            line(word);
        }
    }

    /// Asks for what replacing a row will look at: of the row itself head and key, its generation, and the accounts of
    /// its segment.
    #[inline]
    pub fn prefetch_replaced(&self, location: Location) {
        let location = location.in_file();
        let row = self.layout.at(location) as usize;
        let generation = self.layout.generations as usize + location.unit() as usize;
        for at in [row, row + HEAD_WORDS, generation] {
            if let Some(word) = self.map.words().get(at) {
                line(word);
            }
        }
        self.segments.prefetch_accounts(location);
    }
}
