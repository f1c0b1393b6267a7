//! The segments of one table: open ones that writers append to, and two FIFO queues of sealed ones.
//!
//! Segments are grouped by queue (small, main) and by time-to-live class, so that rows that end together lie together
//! and expired memory comes back whole. Each group has an open segment for small rows and one for large rows; a row
//! larger than that gets a run of its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use arena::{Queue, SegmentId};
use parking_lot::{Mutex, MutexGuard};

use crate::clock::{TICKS_PER_SECOND, Tick};
use crate::row::NEVER;

/// Rows up to this size share one-unit segments: at most an eighth of a unit is lost at its end.
const SMALL_ROW_BYTES: usize = arena::UNIT_BYTES / 8;
/// Rows up to this size share runs of a block, unless they fill units of their own; larger ones get a run of their own.
const LARGE_ROW_BYTES: usize = 256 << 10;
/// A shared run has room for so many of the rows it is made for, where a block does: so its end loses an eighth at most.
const ROWS_IN_A_RUN: usize = 8;
/// The memory of a table has room for so many shared runs, if runs of [`ROWS_IN_A_RUN`] allow it: rows leave run by run,
/// and the coarser the runs, the worse the choice of what leaves.
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
            let units = (bytes * ROWS_IN_A_RUN).div_ceil(arena::UNIT_BYTES).next_power_of_two();
            return Self::Shared(
                u32::try_from(units).map_or(arena::BLOCK_UNITS, |n| n.min(arena::BLOCK_UNITS)),
            );
        }
        Self::Own(u32::try_from(units).unwrap_or(u32::MAX))
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
    let seconds = u64::from(expiry.saturating_sub(now)).div_ceil(TICKS_PER_SECOND);
    CLASS_SECONDS.iter().map(|&bound| u8::from(seconds > bound)).sum()
}

/// A sealed segment and the newest stamp that can be in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sealed {
    pub(crate) segment: SegmentId,
    pub(crate) newest: u64,
}

/// Where a sealed segment stands: its group, and its number in the order of allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) queue: Queue,
    pub(crate) class: u8,
    pub(crate) order: u64,
    pub(crate) segment: SegmentId,
}

/// One group's segments.
#[derive(Debug)]
struct List {
    /// Each with the newest stamp in it. The number of the segment is part of the key, for the orders in a damaged file
    /// may repeat.
    sealed: BTreeMap<(u64, SegmentId), u64>,
    /// No segment's newest stamp is smaller.
    least: u64,
}

impl Default for List {
    fn default() -> Self {
        Self { sealed: BTreeMap::new(), least: u64::MAX }
    }
}

impl List {
    /// Takes out the first segments for which the predicate holds, up to `limit`. The others are looked at only until
    /// so many were found, for the oldest end first.
    fn take_if(&mut self, limit: usize, mut dead: impl FnMut(&Sealed) -> bool) -> Vec<SegmentId> {
        let (mut found, mut least) = (Vec::new(), u64::MAX);
        for (&place, &newest) in &self.sealed {
            if found.len() == limit {
                // What was not looked at may be as old as it was.
                least = self.least;
                break;
            }
            if dead(&Sealed { segment: place.1, newest }) {
                found.push(place);
            } else {
                least = least.min(newest);
            }
        }
        self.least = least;
        for place in &found {
            self.sealed.remove(place);
        }
        found.into_iter().map(|(_, segment)| segment).collect()
    }
}

/// The sealed segments of a table by queue and class, each list by the order of allocations: the oldest is the first,
/// and one from the middle, where sparse segments are found, is taken without a search.
#[derive(Debug, Default)]
pub(crate) struct SealedLists {
    lists: [[List; TTL_CLASSES]; QUEUES],
}

impl SealedLists {
    pub(crate) fn push(&mut self, at: Standing, newest: u64) {
        let list = self.list(at);
        list.sealed.insert((at.order, at.segment), newest);
        list.least = list.least.min(newest);
    }

    /// The oldest segment of a queue over all classes that can be had: writers who reserved in a segment hold it until
    /// they are done.
    pub(crate) fn oldest(&self, queue: Queue, held: impl Fn(SegmentId) -> bool) -> Option<(u64, SegmentId)> {
        let first = |list: &List| list.sealed.keys().find(|&&(_, segment)| !held(segment)).copied();
        self.lists[place(queue)].iter().filter_map(first).min()
    }

    /// Takes a segment out of its list. False: it is not there, so somebody else has it.
    pub(crate) fn take(&mut self, at: Standing) -> bool {
        self.list(at).sealed.remove(&(at.order, at.segment)).is_some()
    }

    fn list(&mut self, at: Standing) -> &mut List {
        &mut self.lists[place(at.queue)][usize::from(at.class)]
    }

    /// Takes out up to `limit` segments for which the predicate holds. It holds for none without deadlines whose newest
    /// stamp is `below` or greater, so that a table of which nothing ends is not looked through.
    pub(crate) fn take_if(
        &mut self,
        limit: usize,
        below: u64,
        mut dead: impl FnMut(&Sealed) -> bool,
    ) -> Vec<SegmentId> {
        let mut taken = Vec::new();
        for lists in &mut self.lists {
            for (class, list) in lists.iter_mut().enumerate() {
                if taken.len() == limit {
                    return taken;
                }
                if class == usize::from(NO_DEADLINE_CLASS) && list.least >= below {
                    continue;
                }
                taken.extend(list.take_if(limit - taken.len(), &mut dead));
            }
        }
        taken
    }
}

/// The open and sealed segments of one table.
#[derive(Debug)]
pub(crate) struct Queues {
    /// Segment + 1, or 0 for none. A writer that reserved space re-reads the word: while it is unchanged the segment
    /// is still this table's. Acquire and Release pair, so that the segment's tag is written before its number is seen.
    open: [[[AtomicU64; SIZES]; TTL_CLASSES]; QUEUES],
    /// Guards the sealed lists and every change of `open`. Taken after no shard or index lock.
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

    #[test]
    fn the_oldest_front_of_all_classes_wins() {
        let mut lists = SealedLists::default();
        let at = |class, id: u32| Standing {
            queue: Queue::Small,
            class,
            order: u64::from(id),
            segment: SegmentId(id),
        };
        for (class, id) in [(0, 9), (0, 10), (7, 11), (7, 4)] {
            lists.push(at(class, id), 0);
        }
        let free = |_| false;
        assert_eq!(lists.oldest(Queue::Small, free), Some((4, SegmentId(4))));
        assert_eq!(lists.oldest(Queue::Small, |segment| segment.0 == 4), Some((9, SegmentId(9))));
        assert!(lists.take(at(7, 4)) && !lists.take(at(7, 4)));
        assert_eq!(lists.take_if(1, u64::MAX, |sealed| sealed.segment.0 > 9), vec![SegmentId(10)]);
        assert_eq!(lists.oldest(Queue::Small, free), Some((9, SegmentId(9))));
        assert!(lists.oldest(Queue::Main, free).is_none());
    }
}
