//! Rows that are known to be dead, so that whoever empties a segment passes them by.
//!
//! A row that is replaced or removed keeps its bytes, and whether it still counts is what the index says: a cache miss,
//! a lock and a hash for each. So the owner notes its death beside the segment. The note is private, lost with the
//! process, and only ever an answer of one kind: a row that bears it is dead; one that does not is asked for.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Arena;
use crate::file::map::Lazy;
use crate::layout::{Location, UNIT_WORDS};

/// Words of the file that share one bit: no row is shorter than two, so no two rows begin in the same.
const WORDS_PER_BIT: u64 = 2;
/// Words of notes for a unit: 512 bytes for 64 KiB.
const NOTES_PER_UNIT: u64 = UNIT_WORDS / WORDS_PER_BIT / 64;

const _: () = assert!(crate::row::MIN_ROW_BYTES >= WORDS_PER_BIT * 8, "a bit belongs to one row");

/// The notes of all units; pages of units without a dead row take no memory.
#[derive(Debug)]
pub(crate) struct DeadRows(Lazy<AtomicU64>);

impl DeadRows {
    /// Notes for so many units.
    pub(crate) fn new(units: u32) -> std::io::Result<Self> {
        let words = u64::from(units) * NOTES_PER_UNIT;
        let words =
            usize::try_from(words).map_err(|_| std::io::Error::from(std::io::ErrorKind::OutOfMemory))?;
        Lazy::new(words).map(Self)
    }

    #[inline]
    fn place(location: Location) -> (usize, u64) {
        let bit = location.bits() / WORDS_PER_BIT;
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    /// Asks memory for the note of a row.
    #[inline]
    pub(crate) fn prefetch(&self, location: Location) {
        let (word, _) = Self::place(location);
        self.0.get(word).into_iter().for_each(crate::line::line);
    }

    /// Takes back all notes of a unit that nobody uses yet.
    pub(crate) fn forget(&self, unit: u32) {
        let first = (u64::from(unit) * NOTES_PER_UNIT) as usize;
        for word in &self.0[first..first + NOTES_PER_UNIT as usize] {
            // A page that was never noted in is left without memory. Relaxed: the segment is handed out behind its
            // kind.
            if word.load(Ordering::Relaxed) != 0 {
                word.store(0, Ordering::Relaxed);
            }
        }
    }
}

impl Arena {
    /// Asks memory for the rows of which it is noted, in the words from a location up to the end of a word of notes.
    /// Returns how many words these are.
    #[inline]
    pub(crate) fn prefetch_dead(&self, from: Location) -> u64 {
        let (word, first) = DeadRows::place(from);
        // Relaxed: what is asked for in vain is lost time only. Rows before the location are left out.
        let mut rows = self.segments.dead_rows.0[word].load(Ordering::Relaxed) & first.wrapping_neg();
        let begin = word as u64 * 64 * WORDS_PER_BIT;
        while rows != 0 {
            let row = begin + u64::from(rows.trailing_zeros()) * WORDS_PER_BIT;
            if let Some(word) = self.map.words().get(self.layout.at(Location::from_bits(row)) as usize) {
                crate::line::line(word);
            }
            rows &= rows - 1;
        }
        begin + 64 * WORDS_PER_BIT - from.bits()
    }

    /// Notes that nothing leads to the row any more. The caller holds the lock of its shard, and counts its bytes as
    /// dead afterwards: until then its segment is not recycled.
    #[inline]
    pub fn note_dead(&self, location: Location) {
        let location = location.in_file();
        let (word, bit) = DeadRows::place(location);
        // Release: pairs with the Acquire in `is_noted_dead`; who sees the bit sees the slot without the row.
        self.segments.dead_rows.0[word].fetch_or(bit, Ordering::Release);
    }

    /// Whether nothing leads to the row any more, as far as that was noted.
    #[inline]
    pub fn is_noted_dead(&self, location: Location) -> bool {
        let location = location.in_file();
        let (word, bit) = DeadRows::place(location);
        // Acquire: pairs with the Release in `note_dead`.
        self.segments.dead_rows.0[word].load(Ordering::Acquire) & bit != 0
    }
}
