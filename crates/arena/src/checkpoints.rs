//! The log of (tick, stamp) that turns an age into a stamp.
//!
//! Five rings: every tick, then one in 16, 256, 4,096 and 65,536, so that minutes are exact to a tick, months
//! to an hour, and the whole takes 320 KiB.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use crate::Arena;
use crate::layout::{CHECKPOINT_ENTRIES, CHECKPOINT_LEVELS};

/// One ring: its entries in order of ticks, and the place in the file of the next one.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    entries: VecDeque<(u32, u64)>,
    next: u64,
}

/// The rings, as private copies of the file's.
#[derive(Debug, Default)]
pub(crate) struct Rings([Ring; CHECKPOINT_LEVELS]);

/// The log of checkpoints of an arena.
#[derive(Clone, Copy, Debug)]
pub struct Checkpoints<'a> {
    arena: &'a Arena,
}

impl Arena {
    /// The log of checkpoints.
    pub fn checkpoints(&self) -> Checkpoints<'_> {
        Checkpoints { arena: self }
    }

    fn checkpoint_word(&self, level: usize, entry: u64) -> u64 {
        self.layout.checkpoints + (level as u64 * CHECKPOINT_ENTRIES + entry) * 2
    }

    /// Reads the rings back from the file; entries that contradict the order of time are dropped.
    pub(crate) fn load_checkpoints(&self, stamp_ceiling: u64) {
        let mut rings = self.checkpoints.lock();
        for (level, ring) in rings.0.iter_mut().enumerate() {
            let mut found: Vec<(u32, u64, u64)> = (0..CHECKPOINT_ENTRIES)
                .map(|entry| {
                    let at = self.checkpoint_word(level, entry);
                    let tick = (self.map.load(at, Ordering::Relaxed) >> 32) as u32;
                    (tick, self.map.load(at + 1, Ordering::Relaxed), entry)
                })
                .filter(|(tick, stamp, _)| *tick != 0 && *stamp <= stamp_ceiling)
                .collect();
            found.sort_unstable();
            // A stamp too large for its tick would declare younger rows dead, so the smaller of two neighbours holds.
            let mut least = u64::MAX;
            for entry in found.iter_mut().rev() {
                least = least.min(entry.1);
                entry.1 = least;
            }
            ring.next = found.last().map_or(0, |(_, _, entry)| (entry + 1) % CHECKPOINT_ENTRIES);
            ring.entries = found.into_iter().map(|(tick, stamp, _)| (tick, stamp)).collect();
        }
    }
}

impl Checkpoints<'_> {
    /// Notes that every stamp below `stamp` was issued before `tick`. A tick not above the last one noted is
    /// ignored.
    pub fn record(&self, tick: u32, stamp: u64) {
        let arena = self.arena;
        let mut rings = arena.checkpoints.lock();
        for (level, ring) in rings.0.iter_mut().enumerate() {
            let interval = 4 * level as u32;
            let last = ring.entries.back().map_or(0, |(tick, _)| *tick);
            if tick <= last || (last != 0 && tick >> interval == last >> interval) {
                continue;
            }
            let at = arena.checkpoint_word(level, ring.next);
            // The tick goes last and is zero meanwhile: an entry half written is none.
            arena.map.store(at, 0, Ordering::Relaxed);
            arena.map.store(at + 1, stamp, Ordering::Release);
            arena.map.store(at, u64::from(tick) << 32, Ordering::Release);
            ring.next = (ring.next + 1) % CHECKPOINT_ENTRIES;
            if ring.entries.len() as u64 == CHECKPOINT_ENTRIES {
                ring.entries.pop_front();
            }
            ring.entries.push_back((tick, stamp));
        }
    }

    /// A stamp such that every smaller one was issued before the first tick noted after `tick`; where every write was
    /// preceded by a note of its tick, none of these was written later than `tick`, as far as the log still tells ticks
    /// apart. `None`: nothing was noted since.
    pub fn first_after(&self, tick: u32) -> Option<u64> {
        let rings = self.arena.checkpoints.lock();
        let in_ring = |ring: &Ring| {
            let after = ring.entries.partition_point(|(noted, _)| *noted <= tick);
            ring.entries.get(after).copied()
        };
        rings.0.iter().filter_map(in_ring).min().map(|(_, stamp)| stamp)
    }

    /// The last tick noted before the stamp was issued; `None`: it is older than the log.
    pub fn tick_of(&self, stamp: u64) -> Option<u32> {
        let rings = self.arena.checkpoints.lock();
        let in_ring = |ring: &Ring| {
            let after = ring.entries.partition_point(|(_, first)| *first <= stamp);
            after.checked_sub(1).and_then(|i| ring.entries.get(i)).map(|(noted, _)| *noted)
        };
        rings.0.iter().filter_map(in_ring).max()
    }
}

/// The rings behind the lock that guards them.
pub(crate) type CheckpointRings = Mutex<Rings>;

#[cfg(test)]
mod tests {
    use crate::tests::tiny;

    #[test]
    fn an_age_becomes_the_first_stamp_after_it() {
        let arena = tiny(1 << 20);
        let log = arena.checkpoints();
        assert_eq!(log.first_after(0), None);
        for tick in 1..=20_000 {
            log.record(tick, u64::from(tick) * 10);
        }
        assert_eq!(log.first_after(20_000), None);
        assert_eq!(log.first_after(19_999), Some(200_000));
        assert_eq!(log.tick_of(199_999), Some(19_999));
        // Beyond the first ring the answer is coarser, never too small.
        for tick in [1, 2, 17, 100, 5000, 15_000, 16_000] {
            let stamp = log.first_after(tick).unwrap();
            let exact = (u64::from(tick) + 1) * 10;
            assert!(stamp >= exact && stamp <= exact + 160, "{tick}: {stamp}");
        }
    }

    #[test]
    fn the_log_survives() {
        let arena = tiny(1 << 20);
        for tick in 1..=5000 {
            arena.checkpoints().record(tick, arena.next_stamp());
        }
        let (again, _) = crate::tests::warm(&arena.image());
        for tick in [1, 2, 3, 1000, 4999, 5000, 6000] {
            assert_eq!(again.checkpoints().first_after(tick), arena.checkpoints().first_after(tick));
        }
        again.checkpoints().record(5001, 99_999);
        assert_eq!(again.checkpoints().first_after(5000), Some(99_999));
    }
}
