//! Inner nodes: children, the first entry below each, and how many entries lie below each.

use super::SortKeys;
use super::leaf::{Entry, LEAF_ENTRIES};
use super::node::{Inserted, Node, Tally};
use super::target::Target;

/// Children of an inner node: two levels of them index a million rows.
pub(super) const INNER_CHILDREN: usize = 128;
/// A leaf gives entries to a neighbour instead of splitting where that has so much room; it keeps leaves
/// about five sixths full.
const ROOM_TO_SHARE: usize = LEAF_ENTRIES / 4;

pub(super) struct Inner {
    /// The first entry below each child, as two columns that are searched like a leaf's. They are live
    /// entries, so their rows can be read.
    prefixes: Vec<u64>,
    locations: Vec<u64>,
    /// How many entries lie below each child: positions by addition.
    counts: Vec<usize>,
    children: Vec<Node>,
}

impl Inner {
    /// The heap that an inner node takes.
    pub(super) const BYTES: usize =
        size_of::<Self>() + INNER_CHILDREN * (2 * size_of::<u64>() + size_of::<usize>() + size_of::<Node>());

    pub(super) fn new() -> Self {
        Self {
            prefixes: Vec::with_capacity(INNER_CHILDREN),
            locations: Vec::with_capacity(INNER_CHILDREN),
            counts: Vec::with_capacity(INNER_CHILDREN),
            children: Vec::with_capacity(INNER_CHILDREN),
        }
    }

    pub(super) fn children(&self) -> usize {
        self.children.len()
    }

    pub(super) fn child(&self, at: usize) -> &Node {
        &self.children[at]
    }

    pub(super) fn child_mut(&mut self, at: usize) -> &mut Node {
        &mut self.children[at]
    }

    pub(super) fn first(&self) -> Entry {
        Entry { prefix: self.prefixes[0], location: self.locations[0] }
    }

    pub(super) fn count(&self) -> usize {
        self.counts.iter().sum()
    }

    pub(super) fn count_before(&self, child: usize) -> usize {
        self.counts[..child].iter().sum()
    }

    /// The child below which a position lies: the last whose first entry lies before it.
    pub(super) fn child_of<K: SortKeys + ?Sized>(&self, target: &mut Target<'_, K>) -> usize {
        target.position(&self.prefixes, &self.locations).saturating_sub(1)
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

    pub(super) fn push(&mut self, node: Node) {
        self.insert_child(self.children.len(), node);
    }

    pub(super) fn pop(&mut self) -> Option<Node> {
        (!self.children.is_empty()).then(|| self.remove_child(self.children.len() - 1))
    }

    fn insert_child(&mut self, at: usize, node: Node) {
        let first = node.first();
        self.prefixes.insert(at, first.prefix);
        self.locations.insert(at, first.location);
        self.counts.insert(at, node.count());
        self.children.insert(at, node);
    }

    fn remove_child(&mut self, at: usize) -> Node {
        self.prefixes.remove(at);
        self.locations.remove(at);
        self.counts.remove(at);
        self.children.remove(at)
    }

    /// Writes a child's first entry down again after it may have changed.
    fn refresh_first(&mut self, at: usize) {
        let first = self.children[at].first();
        self.prefixes[at] = first.prefix;
        self.locations[at] = first.location;
    }

    /// The children from `at` on, as a new node.
    fn split_off(&mut self, at: usize) -> Self {
        let mut right = Self::new();
        right.prefixes.extend(self.prefixes.drain(at..));
        right.locations.extend(self.locations.drain(at..));
        right.counts.extend(self.counts.drain(at..));
        right.children.extend(self.children.drain(at..));
        right
    }

    /// Takes over all children of the node on the right.
    fn append(&mut self, right: &mut Self) {
        self.prefixes.append(&mut right.prefixes);
        self.locations.append(&mut right.locations);
        self.counts.append(&mut right.counts);
        self.children.append(&mut right.children);
    }

    pub(super) fn insert<K: SortKeys + ?Sized>(
        &mut self,
        entry: Entry,
        target: &mut Target<'_, K>,
        edge: bool,
        tally: &mut Tally,
    ) -> Inserted {
        let mut at = self.child_of(target);
        if self.share(at) {
            at = self.child_of(target);
        }
        let last = at + 1 == self.children.len();
        let below = self.children[at].insert(entry, target, edge && last, tally);
        self.refresh_first(at);
        let Some(right) = below.split else {
            self.counts[at] += usize::from(below.added);
            return below;
        };
        self.counts[at] = self.children[at].count();
        let split = (self.children.len() == INNER_CHILDREN).then(|| {
            tally.inners += 1;
            // As with leaves: growth at the right edge leaves nearly full nodes behind.
            self.split_off(if edge && last {
                INNER_CHILDREN - INNER_CHILDREN / 8
            } else {
                INNER_CHILDREN / 2
            })
        });
        let Some(mut other) = split else {
            self.insert_child(at + 1, right);
            return Inserted { added: true, split: None };
        };
        match (at + 1).checked_sub(self.children.len()) {
            Some(at) => other.insert_child(at, right),
            None => self.insert_child(at + 1, right),
        }
        Inserted { added: true, split: Some(Node::Inner(Box::new(other))) }
    }

    /// Gives entries of a full leaf to a neighbour with room; true where entries moved.
    fn share(&mut self, at: usize) -> bool {
        if !matches!(&self.children[at], Node::Leaf(leaf) if leaf.is_full()) {
            return false;
        }
        let room = |node: Option<&Node>| match node {
            Some(Node::Leaf(leaf)) => LEAF_ENTRIES - leaf.len(),
            _ => 0,
        };
        let right = room(self.children.get(at + 1));
        let left = room(at.checked_sub(1).and_then(|left| self.children.get(left)));
        if right.max(left) < ROOM_TO_SHARE {
            return false;
        }
        let (boundary, count) =
            if right >= left { (at, right.div_ceil(2)) } else { (at - 1, left.div_ceil(2)) };
        if let [Node::Leaf(a), Node::Leaf(b)] = &mut self.children[boundary..boundary + 2] {
            if boundary == at {
                a.move_tail(count, b);
            } else {
                a.take_front(count, b);
            }
        }
        for child in [boundary, boundary + 1] {
            self.counts[child] = self.children[child].count();
        }
        self.refresh_first(boundary + 1);
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
        self.refresh_first(at);
        self.merge(at, tally);
        true
    }

    /// Joins a child that is less than a quarter full with a neighbour, where the two fill no more than three
    /// quarters of one node, so that it does not split again soon.
    fn merge(&mut self, at: usize, tally: &mut Tally) {
        let (size, room) = self.children[at].fill();
        if size >= room / 4 {
            return;
        }
        let fits = |other: Option<&Node>| other.is_some_and(|other| size + other.fill().0 <= room / 4 * 3);
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
                left.take_front(right.len(), &mut right);
                tally.leaves -= 1;
            }
            (Node::Inner(left), Node::Inner(mut right)) => {
                left.append(&mut right);
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

/// Uncounts an empty node: a leaf, or inner nodes whose last child was dropped before.
fn forget(node: &Node, tally: &mut Tally) {
    match node {
        Node::Leaf(_) => tally.leaves -= 1,
        Node::Inner(_) => tally.inners -= 1,
    }
}

#[cfg(test)]
impl Inner {
    /// Proves that what is noted of each child is so.
    pub(super) fn check(&self, tally: &mut Tally) {
        assert!(self.children.len() <= INNER_CHILDREN);
        for (at, child) in self.children.iter().enumerate() {
            child.check(tally);
            assert_eq!(child.first(), Entry { prefix: self.prefixes[at], location: self.locations[at] });
            assert_eq!(child.count(), self.counts[at]);
        }
    }
}
