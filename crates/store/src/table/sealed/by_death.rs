//! The sealed segments of one table by how much of them is dead.
//!
//! Rows of 1 KiB bring a segment one part further with every eighth death, larger ones with each, so it is many a write
//! that moves a segment here: it takes a look-up and some links, where three searches in trees were an eighth of a
//! write.

use arena::SegmentId;
use hashbrown::HashTable;

use super::{KINDS, PARTS, SegmentKind};

/// Segments of which as much is dead that are looked at: a writer holds one at most, and what has no room to move to is
/// a large run, beside which stand smaller ones.
const LOOKS: usize = 16;

/// In place of a node's number: there is none.
const NONE: u32 = u32::MAX;

/// A segment among those of its kind of which as much is dead, or a place for one.
#[derive(Clone, Copy, Debug)]
struct Node {
    segment: SegmentId,
    kind: SegmentKind,
    /// Which change of them all brought it here.
    since: u64,
    /// Parts of it that were dead when somebody looked last.
    dead: usize,
    before: u32,
    behind: u32,
}

/// The segments of a kind of which as many parts are dead, in the order in which they came to that.
#[derive(Clone, Copy, Debug)]
struct Row {
    first: u32,
    last: u32,
}

/// Every sealed segment, linked to those of its kind of which as many parts are dead.
#[derive(Debug)]
pub(super) struct ByDeath {
    nodes: Vec<Node>,
    /// Nodes without a segment.
    free: Vec<u32>,
    /// The number of each segment's node.
    numbers: HashTable<u32>,
    rows: [[Row; PARTS + 1]; KINDS],
    /// Changes so far.
    changes: u64,
}

impl Default for ByDeath {
    fn default() -> Self {
        let rows = [[Row { first: NONE, last: NONE }; PARTS + 1]; KINDS];
        Self { nodes: Vec::new(), free: Vec::new(), numbers: HashTable::new(), rows, changes: 0 }
    }
}

impl ByDeath {
    /// Puts a segment in, or where it belongs now.
    pub(super) fn insert(&mut self, segment: SegmentId, kind: SegmentKind, dead: usize) {
        if self.note(segment, dead) {
            return;
        }
        let node = Node { segment, kind, since: 0, dead, before: NONE, behind: NONE };
        let number = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(node);
            // Segments have numbers of 32 bits, too.
            u32::try_from(self.nodes.len() - 1).unwrap_or(NONE)
        });
        self.nodes[number as usize] = node;
        let nodes = &self.nodes;
        self.numbers.insert_unique(hash(segment), number, |number| hash(nodes[*number as usize].segment));
        self.link(number);
    }

    /// Notes how many parts of a segment are dead now. False: it is not here.
    pub(super) fn note(&mut self, segment: SegmentId, dead: usize) -> bool {
        let Some(number) = self.find(segment) else { return false };
        if self.nodes[number as usize].dead != dead {
            self.unlink(number);
            self.nodes[number as usize].dead = dead;
            self.link(number);
        }
        true
    }

    /// Takes a segment out.
    pub(super) fn remove(&mut self, segment: SegmentId) {
        let nodes = &self.nodes;
        let found = self.numbers.find_entry(hash(segment), |at| nodes[*at as usize].segment == segment);
        if let Ok(entry) = found {
            let (number, _) = entry.remove();
            self.unlink(number);
            self.free.push(number);
        }
    }

    /// Of the segments of some kinds that will do, the one of which the most was dead when somebody looked, at least so
    /// many parts, and of these the one that was so first; with its dead parts. Of those of which as much is dead the
    /// first few are looked at.
    pub(super) fn first(
        &self,
        kinds: &[SegmentKind],
        least: usize,
        will_do: impl Fn(SegmentId) -> bool,
    ) -> Option<(usize, SegmentId)> {
        let first = |row: &Row| self.along(row).take(LOOKS).find(|node| will_do(node.segment));
        (least..=PARTS).rev().find_map(|dead| {
            let rows = kinds.iter().map(|&kind| &self.rows[kind as usize][dead]);
            let node = rows.filter_map(first).min_by_key(|node| node.since)?;
            Some((dead, node.segment))
        })
    }

    fn along(&self, row: &Row) -> impl Iterator<Item = &Node> {
        let node = |number: u32| self.nodes.get(number as usize);
        std::iter::successors(node(row.first), move |last| node(last.behind))
    }

    fn find(&self, segment: SegmentId) -> Option<u32> {
        self.numbers.find(hash(segment), |at| self.nodes[*at as usize].segment == segment).copied()
    }

    /// Puts a node at the end of the row of its dead parts.
    fn link(&mut self, number: u32) {
        let Node { kind, dead, .. } = self.nodes[number as usize];
        let row = &mut self.rows[kind as usize][dead];
        let last = std::mem::replace(&mut row.last, number);
        match self.nodes.get_mut(last as usize) {
            Some(node) => node.behind = number,
            None => row.first = number,
        }
        let node = &mut self.nodes[number as usize];
        (node.before, node.behind, node.since) = (last, NONE, self.changes);
        self.changes += 1;
    }

    fn unlink(&mut self, number: u32) {
        let Node { kind, dead, before, behind, .. } = self.nodes[number as usize];
        let row = &mut self.rows[kind as usize][dead];
        match self.nodes.get_mut(before as usize) {
            Some(node) => node.behind = behind,
            None => row.first = behind,
        }
        match self.nodes.get_mut(behind as usize) {
            Some(node) => node.before = before,
            None => row.last = before,
        }
    }
}

/// A segment's number is spread over all bits by an odd factor.
fn hash(segment: SegmentId) -> u64 {
    u64::from(segment.0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [SegmentKind; KINDS] = [SegmentKind::Unit, SegmentKind::Run];

    fn kind_of(segment: SegmentId) -> SegmentKind {
        BOTH[segment.0 as usize % KINDS]
    }

    /// Segments with their dead parts, in the order in which they came to that.
    #[derive(Default)]
    struct Model(Vec<(SegmentId, usize)>);

    impl Model {
        fn take(&mut self, segment: SegmentId) -> Option<usize> {
            let at = self.0.iter().position(|(other, _)| *other == segment)?;
            Some(self.0.remove(at).1)
        }

        fn note(&mut self, segment: SegmentId, dead: usize) -> bool {
            let Some(before) = self.0.iter().find(|(other, _)| *other == segment) else { return false };
            if before.1 != dead {
                self.take(segment);
                self.0.push((segment, dead));
            }
            true
        }

        fn first(
            &self,
            kinds: &[SegmentKind],
            least: usize,
            will_do: impl Fn(SegmentId) -> bool,
        ) -> Option<(usize, SegmentId)> {
            let may = |segment: SegmentId| kinds.contains(&kind_of(segment)) && will_do(segment);
            let first = |dead| self.0.iter().find(|(segment, of)| *of == dead && may(*segment));
            (least..=PARTS).rev().find_map(first).map(|(segment, dead)| (*dead, *segment))
        }
    }

    #[test]
    fn links_lead_where_a_list_does() {
        let mut random = crate::testing::seeded();
        for _ in 0..100 {
            let (mut rows, mut model) = (ByDeath::default(), Model::default());
            for _ in 0..400 {
                let segment = SegmentId(random.u32(..40));
                let dead = random.usize(..=PARTS);
                match random.u8(..4) {
                    0 => {
                        if !model.note(segment, dead) {
                            model.0.push((segment, dead));
                        }
                        rows.insert(segment, kind_of(segment), dead);
                    }
                    1 => {
                        model.take(segment);
                        rows.remove(segment);
                    }
                    _ => assert_eq!(rows.note(segment, dead), model.note(segment, dead)),
                }
                let held = random.u32(..40);
                let is_free = |segment: SegmentId| segment.0 >= held;
                let least = random.usize(1..PARTS);
                for kinds in [&BOTH[..], &BOTH[..1], &BOTH[1..]] {
                    assert_eq!(rows.first(kinds, least, is_free), model.first(kinds, least, is_free));
                }
            }
            assert!(rows.nodes.len() <= 40, "places are used again");
        }
    }

    #[test]
    fn a_search_looks_at_the_first_few() {
        let mut rows = ByDeath::default();
        let count = u32::try_from(LOOKS).unwrap();
        (0..=count).for_each(|id| rows.insert(SegmentId(id), SegmentKind::Run, PARTS));
        let first = |from| rows.first(&BOTH, 1, |segment| segment.0 >= from);
        assert_eq!(first(count - 1), Some((PARTS, SegmentId(count - 1))));
        assert_eq!(first(count), None);
    }
}
