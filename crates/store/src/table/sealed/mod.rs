//! The sealed segments of one table: which is the oldest, and which holds the most that is dead.

use std::collections::BTreeMap;

use arena::{Queue, SegmentId};
use by_death::ByDeath;

use crate::table::queue::{NO_DEADLINE_CLASS, QUEUES, TTL_CLASSES, place};

mod by_death;

/// Parts of a segment in which is told how much of it is dead.
const PARTS: usize = 8;
/// A sealed segment is sparse if so many of its parts are dead. To empty it moves three bytes at most for each that it
/// frees; and memory of which a quarter is dead always has a sparse segment.
const SPARSE_PARTS: usize = 2;
/// A segment of the kind that is wanted is emptied before a sparser one of the other kind if so many of its parts are
/// dead: it moves no more than it frees. Units of the other kind would do worse: single ones seldom lie side by side,
/// so that a run takes fresh memory all the same, and a run is lost to single ones.
const SPARSE_OWN: usize = PARTS / 2;
/// Kinds of segments.
const KINDS: usize = 2;

/// How many parts of a segment of so many units are dead, rounded down. What nobody wrote to is not: moving the rest
/// does not win it; but a segment without a live row is dead as a whole.
#[inline]
pub(crate) fn parts_dead(used: usize, live: usize, units: u32) -> usize {
    if live == 0 && used > 0 {
        return PARTS;
    }
    let dead = used.saturating_sub(live) >> (arena::UNIT_BYTES / PARTS).ilog2() >> units.max(1).ilog2();
    // A run whose units are no power of two is one row's: all of it is dead or nothing.
    dead.min(PARTS)
}

/// A sealed segment and the newest stamp that can be in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sealed {
    pub(crate) segment: SegmentId,
    pub(crate) newest: u64,
}

/// What a segment is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentKind {
    /// One unit.
    Unit,
    /// A run of several.
    Run,
}

impl SegmentKind {
    /// The kind of a segment of so many units.
    pub(crate) fn of(units: u32) -> Self {
        if units > 1 { Self::Run } else { Self::Unit }
    }
}

/// Where a sealed segment stands: its group, and its number in the order of allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) queue: Queue,
    pub(crate) class: u8,
    pub(crate) order: u64,
    pub(crate) segment: SegmentId,
    pub(crate) kind: SegmentKind,
}

/// A segment by its age. Its number is part of the key, for the orders in a damaged file may repeat.
type Age = (u64, SegmentId);

impl Standing {
    fn age(self) -> Age {
        (self.order, self.segment)
    }
}

/// One group's segments.
#[derive(Debug)]
struct List {
    /// The newest stamp in each.
    sealed: BTreeMap<Age, u64>,
    /// No segment's newest stamp is smaller.
    least: u64,
}

impl Default for List {
    fn default() -> Self {
        Self { sealed: BTreeMap::new(), least: u64::MAX }
    }
}

impl List {
    /// The first segments for which the predicate holds, up to `limit`. The others are looked at only until so many
    /// were found, for the oldest end first.
    fn find_if(&mut self, limit: usize, mut dead: impl FnMut(&Sealed) -> bool) -> Vec<Age> {
        let (mut found, mut least) = (Vec::new(), u64::MAX);
        for (&age, &newest) in &self.sealed {
            if found.len() == limit {
                // What was not looked at may be as old as it was.
                least = self.least;
                break;
            }
            if dead(&Sealed { segment: age.1, newest }) {
                found.push(age);
            } else {
                least = least.min(newest);
            }
        }
        self.least = least;
        found
    }
}

/// The sealed segments of a table by queue and class, each list by the order of allocations: the oldest is the first,
/// and one from the middle, where sparse segments are found, is taken without a search.
#[derive(Debug, Default)]
pub(crate) struct SealedLists {
    lists: [[List; TTL_CLASSES]; QUEUES],
    by_death: ByDeath,
}

impl SealedLists {
    /// Puts in a segment of which so many parts are dead.
    pub(crate) fn push(&mut self, at: Standing, newest: u64, dead: usize) {
        let list = self.list(at);
        list.sealed.insert(at.age(), newest);
        list.least = list.least.min(newest);
        self.by_death.insert(at.segment, at.kind, dead);
    }

    /// Notes how many parts of a segment are dead now. False: it is not here.
    pub(crate) fn note(&mut self, segment: SegmentId, dead: usize) -> bool {
        self.by_death.note(segment, dead)
    }

    /// The oldest segment of a queue over all classes that can be had: writers who reserved in a segment hold it until
    /// they are done.
    pub(crate) fn oldest(&self, queue: Queue, held: impl Fn(SegmentId) -> bool) -> Option<(u64, SegmentId)> {
        let first = |list: &List| list.sealed.keys().find(|&&(_, segment)| !held(segment)).copied();
        self.lists[place(queue)].iter().filter_map(first).min()
    }

    /// The segment that will do of which the most was dead when somebody looked, with those parts; none if no segment
    /// is sparse. For somebody who wants a run, or a single unit, one of that kind comes first if it is sparse enough.
    pub(crate) fn sparsest(
        &self,
        wanted: Option<SegmentKind>,
        will_do: impl Fn(SegmentId) -> bool,
    ) -> Option<(usize, SegmentId)> {
        let own = wanted.and_then(|kind| self.by_death.first(&[kind], SPARSE_OWN, &will_do));
        own.or_else(|| self.by_death.first(&[SegmentKind::Unit, SegmentKind::Run], SPARSE_PARTS, &will_do))
    }

    /// Takes a segment out of its list. False: it is not there, so somebody else has it.
    pub(crate) fn take(&mut self, at: Standing) -> bool {
        let known = self.list(at).sealed.remove(&at.age());
        if known.is_some() {
            self.by_death.remove(at.segment);
        }
        known.is_some()
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
                for age in list.find_if(limit - taken.len(), &mut dead) {
                    list.sealed.remove(&age);
                    self.by_death.remove(age.1);
                    taken.push(age.1);
                }
            }
        }
        taken
    }

    /// A stamp that is not above the newest of any segment without deadlines; none if there is no such segment.
    pub(crate) fn oldest_without_deadline(&self) -> Option<u64> {
        let lists = self.lists.iter().map(|lists| &lists[usize::from(NO_DEADLINE_CLASS)]);
        lists.filter(|list| !list.sealed.is_empty()).map(|list| list.least).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_front_of_all_classes_wins() {
        let mut lists = SealedLists::default();
        let at = |class, id: u32| Standing {
            queue: Queue::Small,
            class,
            order: u64::from(id),
            segment: SegmentId(id),
            kind: SegmentKind::Unit,
        };
        for (class, id) in [(0, 9), (0, 10), (7, 11), (7, 4)] {
            lists.push(at(class, id), 0, 0);
        }
        let free = |_| false;
        assert_eq!(lists.oldest(Queue::Small, free), Some((4, SegmentId(4))));
        assert_eq!(lists.oldest(Queue::Small, |segment| segment.0 == 4), Some((9, SegmentId(9))));
        assert!(lists.take(at(7, 4)) && !lists.take(at(7, 4)));
        assert_eq!(lists.take_if(1, u64::MAX, |sealed| sealed.segment.0 > 9), vec![SegmentId(10)]);
        assert_eq!(lists.oldest(Queue::Small, free), Some((9, SegmentId(9))));
        assert!(lists.oldest(Queue::Main, free).is_none());
    }

    fn main_segment(id: u32, kind: SegmentKind) -> Standing {
        Standing { queue: Queue::Main, class: 1, order: u64::from(id), segment: SegmentId(id), kind }
    }

    #[test]
    fn the_sparsest_is_found_as_parts_of_it_die() {
        let mut lists = SealedLists::default();
        let at = |id: u32| main_segment(id, SegmentKind::Unit);
        let free = |_| true;
        (1..=3).for_each(|id| lists.push(at(id), 0, SPARSE_PARTS - 1));
        assert!(lists.sparsest(None, free).is_none());
        assert!(lists.note(SegmentId(2), SPARSE_PARTS) && lists.note(SegmentId(3), SPARSE_PARTS));
        assert_eq!(lists.sparsest(None, free), Some((SPARSE_PARTS, SegmentId(2))), "the first of equals");
        assert_eq!(lists.sparsest(None, |segment| segment.0 != 2), Some((SPARSE_PARTS, SegmentId(3))));
        assert!(lists.note(SegmentId(3), PARTS));
        assert_eq!(lists.sparsest(None, free), Some((PARTS, SegmentId(3))));
        assert!(lists.note(SegmentId(3), 0), "somebody wrote who had reserved there");
        assert!(lists.take(at(2)) && !lists.note(SegmentId(2), PARTS));
        assert!(lists.sparsest(None, free).is_none());
        assert!(lists.note(SegmentId(1), 5));
        assert_eq!(lists.take_if(9, u64::MAX, |sealed| sealed.segment.0 == 1), vec![SegmentId(1)]);
        assert!(lists.sparsest(None, free).is_none());
    }

    #[test]
    fn a_run_is_made_of_a_run_while_one_is_half_dead() {
        let mut lists = SealedLists::default();
        let free = |_| true;
        let run = main_segment(7, SegmentKind::Run);
        lists.push(main_segment(1, SegmentKind::Unit), 0, PARTS);
        lists.push(run, 0, SPARSE_OWN);
        let sparsest =
            |lists: &SealedLists, wanted| lists.sparsest(wanted, free).map(|(_, segment)| segment.0);
        assert_eq!(sparsest(&lists, Some(SegmentKind::Run)), Some(7));
        assert_eq!(sparsest(&lists, Some(SegmentKind::Unit)), Some(1));
        assert_eq!(sparsest(&lists, None), Some(1));
        lists.note(run.segment, SPARSE_OWN - 1);
        assert_eq!(sparsest(&lists, Some(SegmentKind::Run)), Some(1), "moving most of it wins less");
        lists.take(main_segment(1, SegmentKind::Unit));
        assert_eq!(sparsest(&lists, Some(SegmentKind::Unit)), Some(7));
        lists.note(run.segment, PARTS);
        lists.push(main_segment(9, SegmentKind::Unit), 0, PARTS);
        assert_eq!(sparsest(&lists, None), Some(7), "the first of equals of both kinds");
    }

    #[test]
    fn parts_are_those_of_the_whole_run() {
        let unit = arena::UNIT_BYTES;
        assert_eq!(
            [0, unit / 8 - 1, unit / 8, unit].map(|dead| parts_dead(unit, unit - dead, 1)),
            [0, 0, 1, 8]
        );
        assert_eq!(
            [unit, 2 * unit, 16 * unit].map(|dead| parts_dead(16 * unit, 16 * unit - dead, 16)),
            [0, 1, 8]
        );
        assert_eq!([0, 5 * unit].map(|live| parts_dead(5 * unit, live, 5)), [PARTS, 0]);
        assert_eq!(parts_dead(unit / 2, unit / 2, 1), 0, "half of it was never used");
        assert_eq!([0, 8].map(|live| parts_dead(unit - 8, live, 1)), [PARTS, PARTS - 1], "dead as a whole");
    }
}
