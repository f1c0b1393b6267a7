//! The segments of one table: open ones that writers append to, and two FIFO queues of sealed ones.
//!
//! Segments are grouped by queue (small, main) and by time-to-live class, so that rows that end together lie together
//! and expired memory comes back whole. Each group has an open segment for small rows and one for large rows; a row
//! larger than that gets a run of its own.

use std::sync::atomic::{AtomicU64, Ordering};

use arena::{Queue, SegmentId};
use parking_lot::{Mutex, MutexGuard};

use crate::clock::{NEVER, TICKS_PER_SECOND, Tick, ticks_between};
use crate::table::sealed::SealedLists;

/// Rows up to this size share one-unit segments: at most an eighth of a unit is lost at its end.
const SMALL_ROW_BYTES: usize = arena::UNIT_BYTES / 8;
/// Rows up to this size share runs of a block, unless they fill units of their own; larger ones get a run of their own.
const LARGE_ROW_BYTES: usize = 256 << 10;
/// A shared run has room for so many of the rows it is made for, where a block does: so its end loses an eighth at
/// most.
const ROWS_IN_A_RUN: u32 = 8;
/// The memory of a table has room for so many shared runs, if runs of [`ROWS_IN_A_RUN`] allow it: rows leave run by
/// run, and the coarser the runs, the worse the choice of what leaves.
const RUNS_IN_MEMORY: u64 = 128;
/// Of a row, the part that may be lost at the end of a run of its own, for the row to have one where it could share: as
/// much as rows between 128 and 256 KiB lose at the end of a shared run.
const OWN_LOSS: usize = 10;
/// Upper bounds of the time-to-live classes in seconds; a longer life, and none at all, have classes of their own.
const CLASS_SECONDS: [u64; 6] = [60, 300, 1_800, 7_200, 43_200, 259_200];
/// Classes of rows by the time they have to live.
pub(crate) const TTL_CLASSES: usize = CLASS_SECONDS.len() + 2;
/// The last class: rows without a deadline of their own.
pub(crate) const NO_DEADLINE_CLASS: u8 = 7;
const _: () = assert!(NO_DEADLINE_CLASS as usize + 1 == TTL_CLASSES, "the last class");
/// Sizes of open segments: one unit, and a run of sixteen.
const SIZES: usize = 2;
/// The S3-FIFO queues.
pub(crate) const QUEUES: usize = 2;

/// How large a segment a row goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentSize {
    /// The open segment, of this many units at least.
    Shared(u32),
    /// A run for this row alone.
    Own(u32),
}

impl SegmentSize {
    /// The size for a row of so many bytes.
    pub(crate) fn of(bytes: usize) -> Self {
        if bytes <= SMALL_ROW_BYTES {
            return Self::Shared(1);
        }
        let units = bytes.div_ceil(arena::UNIT_BYTES);
        let fits = (units * arena::UNIT_BYTES - bytes) * OWN_LOSS <= bytes;
        if bytes <= LARGE_ROW_BYTES && !fits {
            let units = (bytes * ROWS_IN_A_RUN as usize).div_ceil(arena::UNIT_BYTES).next_power_of_two();
            return Self::Shared(
                u32::try_from(units).map_or(arena::BLOCK_UNITS, |n| n.min(arena::BLOCK_UNITS)),
            );
        }
        Self::Own(u32::try_from(units).unwrap_or(u32::MAX))
    }

    /// The fewest units that a row of this size can do with.
    pub(crate) fn least_units(self) -> u32 {
        match self {
            Self::Shared(units) => (units / ROWS_IN_A_RUN).max(1),
            Self::Own(units) => units,
        }
    }

    /// The units that are taken for it by a table that may have so many bytes.
    pub(crate) fn units(self, memory_bytes: u64) -> u32 {
        match self {
            Self::Shared(1) => 1,
            Self::Shared(least) => {
                let part = memory_bytes / RUNS_IN_MEMORY / arena::UNIT_BYTES as u64;
                let part =
                    u32::try_from(part).map_or(arena::BLOCK_UNITS, |part| part.min(arena::BLOCK_UNITS));
                least.max(1 << part.max(1).ilog2())
            }
            Self::Own(units) => units,
        }
    }

    fn place(self) -> usize {
        usize::from(self != Self::Shared(1))
    }
}

/// The class of a row that ends at `expiry` (0 and `NEVER`: by no deadline of its own).
pub(crate) fn ttl_class(expiry: Tick, now: Tick) -> u8 {
    if expiry == 0 || expiry == NEVER {
        return NO_DEADLINE_CLASS;
    }
    let seconds = ticks_between(now, expiry).div_ceil(TICKS_PER_SECOND);
    CLASS_SECONDS.iter().map(|&bound| u8::from(seconds > bound)).sum()
}

/// The open and sealed segments of one table.
#[derive(Debug)]
pub(crate) struct Queues {
    /// Segment + 1, or 0 for none. A writer that reserved space re-reads the word: while it is unchanged the segment
    /// is still this table's. Acquire and Release pair, so that the segment's tag is written before its number is seen.
    open: [[[AtomicU64; SIZES]; TTL_CLASSES]; QUEUES],
    /// Guards the sealed lists and every change of `open`. The innermost lock: a death is noted under a shard's, and no
    /// other is taken while this one is held.
    sealed: Mutex<SealedLists>,
}

impl Queues {
    pub(crate) fn new() -> Self {
        Self {
            open: [const { [const { [const { AtomicU64::new(0) }; SIZES] }; TTL_CLASSES] }; QUEUES],
            sealed: Mutex::new(SealedLists::default()),
        }
    }

    pub(crate) fn open(&self, queue: Queue, class: u8, size: SegmentSize) -> Option<SegmentId> {
        let word = self.word(queue, class, size).load(Ordering::Acquire);
        u32::try_from(word).ok()?.checked_sub(1).map(SegmentId)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, SealedLists> {
        self.sealed.lock()
    }

    /// Puts `next` in the place of the open segment. The caller holds the lock, which `_lists` shows.
    pub(crate) fn set_open(
        &self,
        _lists: &mut SealedLists,
        queue: Queue,
        class: u8,
        size: SegmentSize,
        next: Option<SegmentId>,
    ) {
        let word = next.map_or(0, |segment| u64::from(segment.0) + 1);
        self.word(queue, class, size).store(word, Ordering::Release);
    }

    /// Every open segment with its place.
    pub(crate) fn open_segments(&self) -> impl Iterator<Item = (Queue, u8, SegmentSize, SegmentId)> + '_ {
        let queues = [Queue::Small, Queue::Main];
        let sizes = [SegmentSize::Shared(1), SegmentSize::Shared(arena::BLOCK_UNITS)];
        queues.into_iter().flat_map(move |queue| {
            (0..=NO_DEADLINE_CLASS).flat_map(move |class| {
                sizes.into_iter().filter_map(move |size| {
                    self.open(queue, class, size).map(|segment| (queue, class, size, segment))
                })
            })
        })
    }

    fn word(&self, queue: Queue, class: u8, size: SegmentSize) -> &AtomicU64 {
        &self.open[place(queue)][usize::from(class)][size.place()]
    }
}

pub(crate) fn place(queue: Queue) -> usize {
    usize::from(queue == Queue::Main)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_the_time_left() {
        let second = Tick::try_from(TICKS_PER_SECOND).unwrap();
        assert_eq!(ttl_class(0, 5), 7);
        assert_eq!(ttl_class(NEVER, 5), 7);
        assert_eq!(ttl_class(5 + 60 * second, 5), 0);
        assert_eq!(ttl_class(6 + 60 * second, 5), 1);
        assert_eq!(ttl_class(5 + 259_200 * second, 5), 5);
        assert_eq!(ttl_class(6 + 259_200 * second, 5), 6);
    }

    #[test]
    fn rows_find_their_size() {
        assert_eq!(SegmentSize::of(100), SegmentSize::Shared(1));
        assert_eq!(SegmentSize::of(SMALL_ROW_BYTES + 1), SegmentSize::Shared(2));
        assert_eq!(SegmentSize::of(33 << 10), SegmentSize::Shared(8));
        assert_eq!(SegmentSize::of(1 << 20), SegmentSize::Own(16));
        // Without a loss, a row has a run of its own.
        assert_eq!(SegmentSize::of(130 << 10), SegmentSize::Shared(arena::BLOCK_UNITS));
        assert_eq!(SegmentSize::of(190 << 10), SegmentSize::Own(3));
        assert_eq!(SegmentSize::of((256 << 10) + 8), SegmentSize::Own(5));
    }

    #[test]
    fn runs_are_as_fine_as_the_memory_asks() {
        let run = SegmentSize::of(SMALL_ROW_BYTES + 1);
        let taken = [8, 16, 32, 64, 128, 1 << 20].map(|mib| run.units(mib << 20));
        assert_eq!(taken, [2, 2, 4, 8, 16, 16], "of 1 MiB at most, an unlimited table's too");
        assert_eq!(SegmentSize::of(100 << 10).units(8 << 20), 16, "eight rows before that");
        assert_eq!(SegmentSize::of(100).units(1 << 40), 1);
        assert_eq!(SegmentSize::of(300 << 10).units(8 << 20), 5);
    }
}
