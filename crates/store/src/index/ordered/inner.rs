//! Inner nodes: children, the first entry below each, and how many entries lie below each.

use std::ops::Range;

use super::SortKeys;
use super::block::{BLOCK_ENTRIES, Block};
use super::entries::Entries;
use super::leaf::Leaf;
use super::node::{Edges, Inserted, Node, Replaced, Tally};
use super::run::{FREE_PART, KEPT_BYTES, New, Run, tighten};
use super::target::{RowReader, Target, common_len};

use crate::limits::JOINED_MAX;
use crate::limits::NEW_LEAVES_MAX;

/// Most leaves over which the entries of a full one are spread. Where all of them are full one more takes a part of
/// each, so leaves of random insertions are nine tenths full in the mean, and four fifths at least.
const WINDOW: usize = 4;
const _: () = assert!(NEW_LEAVES_MAX == 2 * WINDOW, "all of a window, as wide as can be");
const _: () = assert!(JOINED_MAX == BLOCK_ENTRIES / 4 * 3, "room for what comes");
/// An inner node with less than this is joined with a neighbour, and a leaf that is filled to less than one part of so
/// many...
const SPARSE: usize = BLOCK_ENTRIES / SPARSE_PART;
const SPARSE_PART: usize = 4;

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
        self.tighten_at_times(rows);
    }

    pub(super) fn pop(&mut self) -> Option<Node> {
        (!self.children.is_empty()).then(|| self.remove_child(self.children.len() - 1))
    }

    /// A node that is split looks at what the keys of its halves share; one that has not been yet looks now and then.
    fn tighten_at_times<K: SortKeys + ?Sized>(&mut self, rows: &mut RowReader<'_, K>) {
        if self.firsts.len().is_power_of_two() {
            self.firsts.tighten(rows);
        }
    }

    fn insert_child<K: SortKeys + ?Sized>(&mut self, at: usize, node: Node, rows: &mut RowReader<'_, K>) {
        let key = node.first_key(rows);
        self.firsts.insert(at, &key, node.first());
        rows.give_back(key);
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
            let key = self.children[at].first_key(rows);
            self.firsts.rename(at, &key, first);
            rows.give_back(key);
        }
    }

    /// The children from `at` on, as a new node.
    fn split_off<K: SortKeys + ?Sized>(&mut self, at: usize, rows: &mut RowReader<'_, K>) -> Self {
        let mut right = Self::new();
        right.firsts = self.firsts.split_off(at);
        right.counts.extend(self.counts.drain(at..));
        right.children.extend(self.children.drain(at..));
        self.firsts.tighten(rows);
        right.firsts.tighten(rows);
        right
    }

    pub(super) fn insert<K: SortKeys + ?Sized>(
        &mut self,
        location: u64,
        target: &mut Target<'_, K>,
        edges: Edges,
        tally: &mut Tally,
    ) -> Inserted {
        let before = self.firsts.position(target);
        let at = before.saturating_sub(1);
        let below = match &mut self.children[at] {
            Node::Leaf(leaf) => match leaf.insert(location, target) {
                Ok(added) => Inserted { added, split: None },
                Err(place) => return self.insert_making_room(at, place, location, target, edges, tally),
            },
            Node::Inner(inner) => {
                inner.insert(location, target, edges.of_child(at, self.firsts.len()), tally)
            }
        };
        // Only what comes before the first of all is a first one: the leaf's own need not be looked at.
        if before == 0 {
            self.refresh_first(at, target.rows());
        }
        let Some(right) = below.split else {
            self.counts[at] += usize::from(below.added);
            return below;
        };
        self.counts[at] = self.children[at].count();
        Inserted { added: true, split: self.add_child(at + 1, right, edges, target.rows(), tally) }
    }

    /// Adds an entry that belongs into the leaf `at` at a place, where it has no room.
    fn insert_making_room<K: SortKeys + ?Sized>(
        &mut self,
        at: usize,
        place: usize,
        location: u64,
        target: &mut Target<'_, K>,
        edges: Edges,
        tally: &mut Tally,
    ) -> Inserted {
        let new = New { at: place, key: target.key(), location };
        let rows = target.rows();
        if self.children.len() + NEW_LEAVES_MAX <= BLOCK_ENTRIES {
            self.make_room(at, new, edges, rows, tally);
            return Inserted { added: true, split: None };
        }
        let middle = edges.middle(at, self.children.len());
        let mut right = self.split_off(middle, rows);
        tally.inners += 1;
        match at.checked_sub(middle) {
            Some(at) => right.make_room(at, new, edges.of_right_half(), rows, tally),
            None => self.make_room(at, new, edges.of_left_half(), rows, tally),
        }
        Inserted { added: true, split: Some(Self::node(right)) }
    }

    fn node(self) -> Node {
        Node::Inner(Box::new(self))
    }

    /// Spreads the entries of a leaf and a new one over it, its neighbours and, where these are full too, a new leaf.
    fn make_room<K: SortKeys + ?Sized>(
        &mut self,
        at: usize,
        new: New<'_>,
        edges: Edges,
        rows: &mut RowReader<'_, K>,
        tally: &mut Tally,
    ) {
        match edges.of_child(at, self.children.len()) {
            Edges { right: true, .. } if self.grows(at, &new) => self.append_leaf(at, new, rows, tally),
            Edges { left: true, .. } if self.falls(at, &new) => self.prepend_leaf(at, new, rows, tally),
            own => self.spread(at, new, edges, own, rows, tally),
        }
        self.tighten_at_times(rows);
    }

    /// `own` are the edges of the tree that the leaf lies at.
    fn spread<K: SortKeys + ?Sized>(
        &mut self,
        at: usize,
        new: New<'_>,
        edges: Edges,
        own: Edges,
        rows: &mut RowReader<'_, K>,
        tally: &mut Tally,
    ) {
        // Where new entries come last or first, the leaves beside them are full and stay as they are.
        let window = if own.any() { at..at + 1 } else { self.window(at, new.key) };
        let run = Run::gather(self.leaves(window.clone()), Some((at - window.start, new)));
        let parts = if edges.right && window.end == self.children.len() {
            run.deal_full()
        } else if edges.left && window.start == 0 {
            run.deal_full_at_end()
        } else {
            run.deal(window.len())
        };
        let divided = parts.len() > window.len();
        // Entries may take less in the forms that they have now.
        for child in (window.start + parts.len()..window.end).rev() {
            self.remove_child(child);
            tally.leaves -= 1;
        }
        for (child, (part, form)) in (window.start..).zip(parts) {
            let mut leaf = run.leaf(part, form);
            if divided {
                tighten(&mut leaf, rows);
            }
            self.put_leaf(child, window.end, leaf, rows, tally);
        }
    }

    /// Puts a leaf in the place of the one there, or in front of the children from `end` on.
    fn put_leaf<K: SortKeys + ?Sized>(
        &mut self,
        at: usize,
        end: usize,
        leaf: Leaf,
        rows: &mut RowReader<'_, K>,
        tally: &mut Tally,
    ) {
        if let Some(Node::Leaf(old)) = self.children.get_mut(at).filter(|_| at < end) {
            **old = leaf;
            self.counts[at] = self.children[at].count();
            self.refresh_first(at, rows);
        } else {
            tally.leaves += 1;
            self.insert_child(at, Node::Leaf(Box::new(leaf)), rows);
        }
    }

    /// Whether a new entry is among the last of the last leaf: keys that only grow leave full leaves behind them.
    fn grows(&self, at: usize, new: &New<'_>) -> bool {
        matches!(&self.children[at], Node::Leaf(leaf) if new.at + leaf.len() / FREE_PART >= leaf.len())
    }

    /// The same of the first leaf and keys that descend.
    fn falls(&self, at: usize, new: &New<'_>) -> bool {
        matches!(&self.children[at], Node::Leaf(leaf) if new.at <= leaf.len() / FREE_PART)
    }

    /// Begins a leaf with a new entry and those of the last leaf that are behind it.
    fn append_leaf<K: SortKeys + ?Sized>(
        &mut self,
        at: usize,
        new: New<'_>,
        rows: &mut RowReader<'_, K>,
        tally: &mut Tally,
    ) {
        let run = Run::gather(self.leaves(at..at + 1), Some((0, new)));
        let right = run.tight_leaf(new.at..run.len(), rows);
        self.cut_leaf(at, 0..new.at, rows);
        self.put_leaf(at + 1, at + 1, right, rows, tally);
    }

    /// Begins a leaf with a new entry and those of the first leaf that are before it.
    fn prepend_leaf<K: SortKeys + ?Sized>(
        &mut self,
        at: usize,
        new: New<'_>,
        rows: &mut RowReader<'_, K>,
        tally: &mut Tally,
    ) {
        let run = Run::gather(self.leaves(at..at + 1), Some((0, new)));
        let left = run.tight_leaf(0..new.at + 1, rows);
        self.cut_leaf(at, new.at..usize::MAX, rows);
        self.put_leaf(at, at, left, rows, tally);
    }

    /// Leaves a leaf these of its entries only.
    fn cut_leaf<K: SortKeys + ?Sized>(&mut self, at: usize, kept: Range<usize>, rows: &mut RowReader<'_, K>) {
        if let Node::Leaf(leaf) = &mut self.children[at] {
            leaf.keep(kept);
            tighten(leaf, rows);
            self.counts[at] = leaf.len();
        }
        self.refresh_first(at, rows);
    }

    fn leaves(&self, range: Range<usize>) -> impl Iterator<Item = &Leaf> + Clone {
        self.children[range].iter().filter_map(|child| match child {
            Node::Leaf(leaf) => Some(&**leaf),
            Node::Inner(_) => None,
        })
    }

    /// The leaf at a place and neighbours with which it can exchange entries without a look at rows, as many as it
    /// takes for some room.
    fn window(&self, at: usize, key: &[u8]) -> Range<usize> {
        let mut window = at..at + 1;
        let Some(Node::Leaf(full)) = self.children.get(at) else { return window };
        let mut exchange = Exchange::new(full, key);
        let (mut room, mut enough) = (0, full.form().capacity() / FREE_PART);
        while window.len() < WINDOW && room < enough * window.len() {
            let beside = |child: Option<usize>| {
                let Node::Leaf(leaf) = self.children.get(child?)? else { return None };
                Some((leaf, exchange.with(leaf)?))
            };
            let left = beside(window.start.checked_sub(1));
            let right = beside(Some(window.end));
            let is_left = match (&left, &right) {
                (Some((left, _)), Some((right, _))) => left.room() > right.room(),
                (left, _) => left.is_some(),
            };
            let Some((leaf, with)) = (if is_left { left } else { right }) else { break };
            exchange = with;
            room += leaf.room();
            enough = enough.min(leaf.form().capacity() / FREE_PART);
            window = window.start - usize::from(is_left)..window.end + usize::from(!is_left);
        }
        window
    }

    /// Puts a new child in; the right half of this node where it had to be split.
    fn add_child<K: SortKeys + ?Sized>(
        &mut self,
        at: usize,
        child: Node,
        edges: Edges,
        rows: &mut RowReader<'_, K>,
        tally: &mut Tally,
    ) -> Option<Node> {
        if self.children.len() < BLOCK_ENTRIES {
            self.insert_child(at, child, rows);
            self.tighten_at_times(rows);
            return None;
        }
        let middle = edges.middle(at - 1, BLOCK_ENTRIES);
        let mut right = self.split_off(middle, rows);
        tally.inners += 1;
        match at.checked_sub(middle) {
            Some(at) => right.insert_child(at, child, rows),
            None => self.insert_child(at, child, rows),
        }
        Some(Self::node(right))
    }

    pub(super) fn remove<K: SortKeys + ?Sized>(
        &mut self,
        target: &mut Target<'_, K>,
        tally: &mut Tally,
    ) -> bool {
        let at = self.child_of(target);
        let first = target.names(self.firsts.locations()[at]);
        if !self.children[at].remove(target, tally) {
            return false;
        }
        self.counts[at] -= 1;
        if self.counts[at] == 0 {
            forget(&self.remove_child(at), tally);
            return true;
        }
        if first {
            self.refresh_first(at, target.rows());
        }
        self.join(at, target.rows(), tally);
        true
    }

    /// From the right to the left: a child that goes, or that a neighbour takes, moves only those whose turn has been.
    pub(super) fn remove_ordered<'l, K: SortKeys + ?Sized>(
        &mut self,
        entries: Entries<'l>,
        target: &mut Target<'l, K>,
        tally: &mut Tally,
    ) -> usize {
        let mut child_of = |entry| {
            entries.aim(entry, target);
            self.child_of(target)
        };
        let (first, last) = (child_of(0), child_of(entries.len() - 1));
        // They are in order: what lies between two of one child is the child's.
        if first == last {
            return self.remove_below(first, entries, target, tally);
        }
        let parts = self.parts(entries, target);
        parts
            .into_iter()
            .rev()
            .map(|(at, part)| self.remove_below(at, entries.part(part), target, tally))
            .sum()
    }

    /// Removes entries that lie below one child.
    fn remove_below<'l, K: SortKeys + ?Sized>(
        &mut self,
        at: usize,
        entries: Entries<'l>,
        target: &mut Target<'l, K>,
        tally: &mut Tally,
    ) -> usize {
        let removed = self.children[at].remove_ordered(entries, target, tally);
        self.counts[at] -= removed;
        if self.counts[at] == 0 {
            forget(&self.remove_child(at), tally);
        } else if removed > 0 {
            self.refresh_first(at, target.rows());
            self.join(at, target.rows(), tally);
        }
        removed
    }

    /// The children below which entries lie, each with its part of them. Memory is asked for all of them.
    fn parts<'l, K: SortKeys + ?Sized>(
        &self,
        entries: Entries<'l>,
        target: &mut Target<'l, K>,
    ) -> Vec<(usize, Range<usize>)> {
        let mut parts: Vec<(usize, Range<usize>)> = Vec::new();
        for entry in 0..entries.len() {
            entries.aim(entry, target);
            let child = self.child_of(target);
            match parts.last_mut() {
                Some((last, part)) if *last == child => part.end = entry + 1,
                _ => {
                    self.children[child].prefetch();
                    parts.push((child, entry..entry + 1));
                }
            }
        }
        parts
    }

    pub(super) fn replace_location<K: SortKeys + ?Sized>(
        &mut self,
        target: &mut Target<'_, K>,
        new: u64,
    ) -> Replaced {
        let at = self.child_of(target);
        let first = target.names(self.firsts.locations()[at]);
        let replaced = self.children[at].replace_location(target, new);
        if first {
            self.refresh_first(at, target.rows());
        }
        replaced
    }

    /// Joins a sparse child with a neighbour, where the two fit into one node.
    fn join<K: SortKeys + ?Sized>(&mut self, at: usize, rows: &mut RowReader<'_, K>, tally: &mut Tally) {
        if !self.children[at].is_sparse() {
            return;
        }
        let own = &self.children[at];
        let fits = |other: Option<&Node>| other.is_some_and(|other| own.joins(other));
        let left = if fits(self.children.get(at + 1)) {
            at
        } else if at > 0 && fits(self.children.get(at - 1)) {
            at - 1
        } else {
            return;
        };
        if let (Node::Leaf(_), Node::Leaf(_)) = (&self.children[left], &self.children[left + 1]) {
            return self.join_leaves(left, rows, tally);
        }
        let right = self.remove_child(left + 1);
        if let (Node::Inner(left), Node::Inner(mut right)) = (&mut self.children[left], right) {
            left.firsts.append(&mut right.firsts);
            left.counts.append(&mut right.counts);
            left.children.append(&mut right.children);
            tally.inners -= 1;
        }
        self.counts[left] = self.children[left].count();
    }

    fn join_leaves<K: SortKeys + ?Sized>(
        &mut self,
        left: usize,
        rows: &mut RowReader<'_, K>,
        tally: &mut Tally,
    ) {
        let run = Run::gather(self.leaves(left..left + 2), None);
        let form = run.form(0..run.len());
        if form.capacity() < run.len() {
            return;
        }
        let mut joined = run.leaf(0..run.len(), form);
        tighten(&mut joined, rows);
        self.remove_child(left + 1);
        tally.leaves -= 1;
        self.put_leaf(left, left + 1, joined, rows, tally);
    }

    /// Whether so few children are left that a neighbour should take them.
    pub(super) fn is_sparse(&self) -> bool {
        self.width() < SPARSE
    }

    /// Whether one node should hold the children of two.
    pub(super) fn joins(&self, other: &Self) -> bool {
        self.width() + other.width() <= JOINED_MAX
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

/// Leaves that can exchange entries, a new one among these, so that none knows less of its keys afterwards.
#[derive(Clone, Copy)]
struct Exchange<'a> {
    full: &'a Leaf,
    key: &'a [u8],
    /// How much of its keys the leaf knows that knows most.
    known: usize,
    /// What all keys share of that.
    common: usize,
}

impl<'a> Exchange<'a> {
    fn new(full: &'a Leaf, key: &'a [u8]) -> Self {
        let known = full.known_bytes().max(key.len());
        Self { full, key, known, common: common_len(full.shared(), key) }
    }

    /// These and one more.
    fn with(self, leaf: &Leaf) -> Option<Self> {
        if !self.full.is_exact() || !leaf.is_exact() {
            let shared = leaf.shared();
            let alike = self.full.is_exact() == leaf.is_exact() && self.full.shared() == shared;
            return (alike && self.key.starts_with(shared)).then_some(self);
        }
        let known = self.known.max(leaf.known_bytes());
        let common = self.common.min(common_len(self.key, leaf.shared()));
        (known - common <= KEPT_BYTES).then_some(Self { known, common, ..self })
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
