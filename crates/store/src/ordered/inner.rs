//! Inner nodes: children, the first entry below each, and how many entries lie below each.

use super::SortKeys;
use super::block::{BLOCK_ENTRIES, Block};
use super::node::{FILL, Inserted, Node, Replaced, Tally};
use super::target::{RowReader, Target};

/// A leaf gives entries to a neighbour instead of splitting where that has so much room; it keeps leaves
/// about five sixths full.
const ROOM_TO_SHARE: usize = BLOCK_ENTRIES / 4;
/// A node with less than this is joined with a neighbour...
const SPARSE: usize = BLOCK_ENTRIES / 4;
/// ...where the two fill no more than this of one, so that it does not split again soon.
const JOINED_MAX: usize = BLOCK_ENTRIES / 4 * 3;

pub(super) struct Inner {
    /// The first entry below each child, which is live, so its row can be read.
    firsts: Block,
    /// How many entries lie below each child: positions by addition.
    counts: Vec<usize>,
    children: Vec<Node>,
}

impl Inner {
    /// The heap that an inner node takes.
    pub(super) const BYTES: usize =
        size_of::<Self>() + BLOCK_ENTRIES * (size_of::<usize>() + size_of::<Node>());

    pub(super) fn new() -> Self {
        Self {
            firsts: Block::new(),
            counts: Vec::with_capacity(BLOCK_ENTRIES),
            children: Vec::with_capacity(BLOCK_ENTRIES),
        }
    }

    pub(super) fn width(&self) -> usize {
        self.children.len()
    }

    pub(super) fn child(&self, at: usize) -> &Node {
        &self.children[at]
    }

    pub(super) fn first(&self) -> u64 {
        self.firsts.first()
    }

    pub(super) fn count(&self) -> usize {
        self.counts.iter().sum()
    }

    pub(super) fn count_before(&self, child: usize) -> usize {
        self.counts[..child].iter().sum()
    }

    /// The child below which a position lies: the last whose first entry lies before it.
    pub(super) fn child_of<K: SortKeys + ?Sized>(&self, target: &mut Target<'_, K>) -> usize {
        self.firsts.position(target).saturating_sub(1)
    }

    /// The child below which the entry with `rank` entries before it lies, and its rank there.
    pub(super) fn child_at(&self, mut rank: usize) -> Option<(&Node, usize)> {
        for (child, &count) in self.children.iter().zip(&self.counts) {
            match rank.checked_sub(count) {
                Some(rest) => rank = rest,
                None => return Some((child, rank)),
            }
        }
        None
    }

    pub(super) fn push<K: SortKeys + ?Sized>(&mut self, node: Node, rows: &mut RowReader<'_, K>) {
        self.insert_child(self.children.len(), node, rows);
    }

    pub(super) fn pop(&mut self) -> Option<Node> {
        (!self.children.is_empty()).then(|| self.remove_child(self.children.len() - 1))
    }

    pub(super) fn tighten<K: SortKeys + ?Sized>(&mut self, rows: &mut RowReader<'_, K>) {
        self.firsts.tighten(rows);
    }

    fn insert_child<K: SortKeys + ?Sized>(&mut self, at: usize, node: Node, rows: &mut RowReader<'_, K>) {
        self.firsts.insert_row(at, node.first(), rows);
        self.counts.insert(at, node.count());
        self.children.insert(at, node);
    }

    fn remove_child(&mut self, at: usize) -> Node {
        self.firsts.remove(at);
        self.counts.remove(at);
        self.children.remove(at)
    }

    /// Names a child's first entry again where that is another one now.
    fn refresh_first<K: SortKeys + ?Sized>(&mut self, at: usize, rows: &mut RowReader<'_, K>) {
        let first = self.children[at].first();
        if self.firsts.locations()[at] != first {
            self.firsts.set_row(at, first, rows);
        }
    }

    /// The children from `at` on, as a new node.
    fn split_off<K: SortKeys + ?Sized>(&mut self, at: usize, rows: &mut RowReader<'_, K>) -> Self {
        let mut right = Self::new();
        right.firsts = self.firsts.split_off(at);
        right.counts.extend(self.counts.drain(at..));
        right.children.extend(self.children.drain(at..));
        self.tighten(rows);
        right.tighten(rows);
        right
    }

    pub(super) fn insert<K: SortKeys + ?Sized>(
        &mut self,
        location: u64,
        target: &mut Target<'_, K>,
        edge: bool,
        tally: &mut Tally,
    ) -> Inserted {
        let mut at = self.child_of(target);
        if self.share(at, target.rows()) {
            at = self.child_of(target);
        }
        let edge = edge && at + 1 == self.children.len();
        let below = self.children[at].insert(location, target, edge, tally);
        self.refresh_first(at, target.rows());
        let Some(right) = below.split else {
            self.counts[at] += usize::from(below.added);
            return below;
        };
        self.counts[at] = self.children[at].count();
        Inserted { added: true, split: self.add_child(at + 1, right, edge, target.rows(), tally) }
    }

    /// Puts a new child in; the right half of this node where it had to be split.
    fn add_child<K: SortKeys + ?Sized>(
        &mut self,
        at: usize,
        child: Node,
        edge: bool,
        rows: &mut RowReader<'_, K>,
        tally: &mut Tally,
    ) -> Option<Node> {
        if self.children.len() < BLOCK_ENTRIES {
            self.insert_child(at, child, rows);
            return None;
        }
        // As with leaves: growth at the right edge leaves nearly full nodes behind.
        let middle = if edge { FILL } else { BLOCK_ENTRIES / 2 };
        let mut right = self.split_off(middle, rows);
        tally.inners += 1;
        match at.checked_sub(middle) {
            Some(at) => right.insert_child(at, child, rows),
            None => self.insert_child(at, child, rows),
        }
        Some(Node::Inner(Box::new(right)))
    }

    /// Gives entries of a full leaf to a neighbour with room that skips the same; true where entries moved.
    fn share<K: SortKeys + ?Sized>(&mut self, at: usize, rows: &mut RowReader<'_, K>) -> bool {
        let Node::Leaf(full) = &self.children[at] else {
            return false;
        };
        if !full.is_full() {
            return false;
        }
        let room = |node: Option<&Node>| match node {
            Some(Node::Leaf(leaf)) if leaf.shares_with(full) => BLOCK_ENTRIES - leaf.len(),
            _ => 0,
        };
        let right = room(self.children.get(at + 1));
        let left = room(at.checked_sub(1).and_then(|left| self.children.get(left)));
        if right.max(left) < ROOM_TO_SHARE {
            return false;
        }
        let boundary = if right >= left { at } else { at - 1 };
        if let [Node::Leaf(a), Node::Leaf(b)] = &mut self.children[boundary..boundary + 2] {
            if boundary == at {
                a.move_tail(right.div_ceil(2), b);
            } else {
                a.take_front(left.div_ceil(2), b);
            }
        }
        for child in [boundary, boundary + 1] {
            self.counts[child] = self.children[child].count();
        }
        self.refresh_first(boundary + 1, rows);
        true
    }

    pub(super) fn remove<K: SortKeys + ?Sized>(
        &mut self,
        target: &mut Target<'_, K>,
        tally: &mut Tally,
    ) -> bool {
        let at = self.child_of(target);
        if !self.children[at].remove(target, tally) {
            return false;
        }
        self.counts[at] -= 1;
        if self.counts[at] == 0 {
            forget(&self.remove_child(at), tally);
            return true;
        }
        self.refresh_first(at, target.rows());
        self.join(at, target.rows(), tally);
        true
    }

    pub(super) fn replace_location<K: SortKeys + ?Sized>(
        &mut self,
        target: &mut Target<'_, K>,
        new: u64,
    ) -> Replaced {
        let at = self.child_of(target);
        let replaced = self.children[at].replace_location(target, new);
        self.refresh_first(at, target.rows());
        replaced
    }

    /// Joins a sparse child with a neighbour, where the two fit into one node.
    fn join<K: SortKeys + ?Sized>(&mut self, at: usize, rows: &mut RowReader<'_, K>, tally: &mut Tally) {
        let width = self.children[at].width();
        if width >= SPARSE {
            return;
        }
        let fits = |other: Option<&Node>| other.is_some_and(|other| width + other.width() <= JOINED_MAX);
        let left = if fits(self.children.get(at + 1)) {
            at
        } else if at > 0 && fits(self.children.get(at - 1)) {
            at - 1
        } else {
            return;
        };
        let right = self.remove_child(left + 1);
        match (&mut self.children[left], right) {
            (Node::Leaf(left), Node::Leaf(mut right)) => {
                left.append(&mut right, rows);
                tally.leaves -= 1;
            }
            (Node::Inner(left), Node::Inner(mut right)) => {
                left.firsts.append(&mut right.firsts, rows);
                left.counts.append(&mut right.counts);
                left.children.append(&mut right.children);
                tally.inners -= 1;
            }
            // All children of a node are at one depth.
            (Node::Leaf(_), Node::Inner(_)) | (Node::Inner(_), Node::Leaf(_)) => {
                unreachable!("children of one node at two depths")
            }
        }
        self.counts[left] = self.children[left].count();
    }

    pub(super) fn collect<K: SortKeys + ?Sized>(
        &self,
        mut start: Option<&mut Target<'_, K>>,
        mut end: Option<&mut Target<'_, K>>,
        reverse: bool,
        full: usize,
        out: &mut Vec<u64>,
    ) {
        let low = start.as_deref_mut().map_or(0, |start| self.child_of(start));
        let high = end.as_deref_mut().map_or(self.children.len() - 1, |end| self.child_of(end));
        let steps = (high + 1).saturating_sub(low);
        for step in 0..steps {
            if out.len() >= full {
                return;
            }
            let at = if reverse { high - step } else { low + step };
            let start = start.as_deref_mut().filter(|_| at == low);
            let end = end.as_deref_mut().filter(|_| at == high);
            self.children[at].collect(start, end, reverse, full, out);
        }
    }
}

/// Uncounts an empty node: a leaf, or an inner node whose last child was dropped before.
fn forget(node: &Node, tally: &mut Tally) {
    match node {
        Node::Leaf(_) => tally.leaves -= 1,
        Node::Inner(_) => tally.inners -= 1,
    }
}

#[cfg(test)]
impl Inner {
    /// Proves that what is noted of each child is so.
    pub(super) fn check<K: SortKeys + ?Sized>(&self, rows: &mut RowReader<'_, K>, tally: &mut Tally) {
        assert!(self.children.len() <= BLOCK_ENTRIES);
        self.firsts.check(rows);
        assert_eq!(self.firsts.len(), self.children.len());
        for (at, child) in self.children.iter().enumerate() {
            child.check(rows, tally);
            assert_eq!(child.first(), self.firsts.locations()[at]);
            assert_eq!(child.count(), self.counts[at]);
        }
    }
}
