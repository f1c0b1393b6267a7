//! Nodes of the tree, leaf or inner, and what is done the same way to both.

use super::SortKeys;
use super::block::BLOCK_ENTRIES;
use super::entries::Entries;
use super::inner::Inner;
use super::leaf::Leaf;
use super::run::Run;
use super::target::{RowReader, Sorted, Target};

/// A leaf or an inner node; neither is ever empty while it is in the tree.
pub(super) enum Node {
    Leaf(Box<Leaf>),
    Inner(Box<Inner>),
}

/// How many nodes there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) leaves: usize,
    pub(super) inners: usize,
}

impl Tally {
    /// The heap that so many nodes take.
    pub(super) fn bytes(self) -> usize {
        self.leaves * size_of::<Leaf>() + self.inners * Inner::BYTES
    }
}

/// What an insertion did.
pub(super) struct Inserted {
    /// Whether the entry is new.
    pub(super) added: bool,
    /// The right half of the node, where it had to be split.
    pub(super) split: Option<Node>,
}

/// What became of a moved row's entry.
pub(super) enum Replaced {
    /// It has the new location, in the right place.
    Done,
    /// It is not here.
    Missing,
    /// It is here unchanged, and may belong into another leaf.
    Elsewhere,
}

/// Growth at an edge of the tree leaves inner nodes behind of which an eighth is free for the insertions to come.
const FILL: usize = BLOCK_ENTRIES - BLOCK_ENTRIES / 8;

/// Which edges of the tree a node lies at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edges {
    pub(super) left: bool,
    pub(super) right: bool,
}

impl Edges {
    /// Those of the root.
    pub(super) const ROOT: Self = Self { left: true, right: true };

    pub(super) fn any(self) -> bool {
        self.left || self.right
    }

    /// Those of one of a node's children.
    pub(super) fn of_child(self, at: usize, children: usize) -> Self {
        Self { left: self.left && at == 0, right: self.right && at + 1 == children }
    }

    pub(super) fn of_left_half(self) -> Self {
        Self { right: false, ..self }
    }

    pub(super) fn of_right_half(self) -> Self {
        Self { left: false, ..self }
    }

    /// Where a node divides its children: in the middle unless it grows at an edge, where `at` says.
    pub(super) fn middle(self, at: usize, children: usize) -> usize {
        let half = children / 2;
        match at >= half {
            true if self.right => FILL,
            false if self.left => children - FILL,
            _ => half,
        }
    }
}

impl Node {
    /// A leaf of one entry.
    pub(super) fn single(key: &[u8], location: u64, tally: &mut Tally) -> Self {
        tally.leaves += 1;
        let run = Run::single(key, location);
        Self::Leaf(Box::new(run.leaf(0..1, run.form(0..1))))
    }

    /// The parent of nodes.
    pub(super) fn above<K: SortKeys + ?Sized>(
        nodes: impl IntoIterator<Item = Self>,
        rows: &mut RowReader<'_, K>,
        tally: &mut Tally,
    ) -> Self {
        tally.inners += 1;
        let mut inner = Inner::new();
        for node in nodes {
            inner.push(node, rows);
        }
        Self::Inner(Box::new(inner))
    }

    /// Asks memory for what a search looks at first.
    pub(super) fn prefetch(&self) {
        match self {
            Self::Leaf(leaf) => leaf.prefetch(),
            Self::Inner(inner) => arena::prefetch_line(&**inner),
        }
    }

    /// Asks memory for the leaf where the target lies.
    pub(super) fn prefetch_leaf<K: SortKeys + ?Sized>(&self, target: &mut Target<'_, K>) {
        match self {
            Self::Leaf(leaf) => leaf.prefetch(),
            Self::Inner(inner) => inner.child(inner.child_of(target)).prefetch_leaf(target),
        }
    }

    /// The location of the first entry below this node.
    pub(super) fn first(&self) -> u64 {
        match self {
            Self::Leaf(leaf) => leaf.first(),
            Self::Inner(inner) => inner.first(),
        }
    }

    /// The key of that entry, with zeros behind where no row need be read for it.
    pub(super) fn first_key<K: SortKeys + ?Sized>(&self, rows: &mut RowReader<'_, K>) -> Vec<u8> {
        match self {
            Self::Leaf(leaf) => leaf.key(0, rows),
            Self::Inner(inner) => rows.take(inner.first()),
        }
    }

    /// How many entries are below this node.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.len(),
            Self::Inner(inner) => inner.count(),
        }
    }

    /// Whether so little is left in this node that a neighbour should take it.
    pub(super) fn is_sparse(&self) -> bool {
        match self {
            Self::Leaf(leaf) => leaf.is_sparse(),
            Self::Inner(inner) => inner.is_sparse(),
        }
    }

    /// Whether one node should hold what two neighbours do.
    pub(super) fn joins(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Leaf(leaf), Self::Leaf(other)) => leaf.joins(other),
            (Self::Inner(inner), Self::Inner(other)) => inner.joins(other),
            // All children of a node are at one depth.
            (Self::Leaf(_), Self::Inner(_)) | (Self::Inner(_), Self::Leaf(_)) => false,
        }
    }

    /// Adds the entry that the target names; `None` where this is a leaf that cannot hold it.
    pub(super) fn insert<K: SortKeys + ?Sized>(
        &mut self,
        location: u64,
        target: &mut Target<'_, K>,
        edges: Edges,
        tally: &mut Tally,
    ) -> Option<Inserted> {
        match self {
            Self::Leaf(leaf) => {
                let added = leaf.insert(location, target).ok()?;
                Some(Inserted { added, split: None })
            }
            Self::Inner(inner) => Some(inner.insert(location, target, edges, tally)),
        }
    }

    /// Removes the entry that the target names. The node may be empty afterwards; its parent drops it.
    pub(super) fn remove<K: SortKeys + ?Sized>(
        &mut self,
        target: &mut Target<'_, K>,
        tally: &mut Tally,
    ) -> bool {
        match self {
            Self::Leaf(leaf) => match leaf.find(target) {
                Ok(at) => {
                    leaf.remove(at);
                    true
                }
                Err(_) => false,
            },
            Self::Inner(inner) => inner.remove(target, tally),
        }
    }

    /// Removes entries and says how many were here. The node may be empty afterwards; its parent drops it.
    pub(super) fn remove_ordered<'l, K: SortKeys + ?Sized>(
        &mut self,
        entries: Entries<'l>,
        target: &mut Target<'l, K>,
        tally: &mut Tally,
    ) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.remove_ordered(entries, target),
            Self::Inner(inner) => inner.remove_ordered(entries, target, tally),
        }
    }

    /// Gives the entry that the target names another location, where it stays in its leaf.
    pub(super) fn replace_location<K: SortKeys + ?Sized>(
        &mut self,
        target: &mut Target<'_, K>,
        new: u64,
    ) -> Replaced {
        match self {
            Self::Inner(inner) => inner.replace_location(target, new),
            Self::Leaf(leaf) => match leaf.find(target) {
                Err(_) => Replaced::Missing,
                Ok(at) if leaf.move_entry(at, new, target) => Replaced::Done,
                Ok(_) => Replaced::Elsewhere,
            },
        }
    }

    /// The root after a removal: inner nodes with one child give way to it, an empty one to nothing.
    pub(super) fn lowered(self, tally: &mut Tally) -> Option<Self> {
        match self {
            Self::Leaf(leaf) if leaf.len() == 0 => {
                tally.leaves -= 1;
                None
            }
            Self::Inner(mut inner) if inner.width() <= 1 => {
                tally.inners -= 1;
                inner.pop()?.lowered(tally)
            }
            node => Some(node),
        }
    }

    /// How many entries lie before a position.
    pub(super) fn rank<K: SortKeys + ?Sized>(&self, target: &mut Target<'_, K>) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.position(target),
            Self::Inner(inner) => {
                let child = inner.child_of(target);
                inner.count_before(child) + inner.child(child).rank(target)
            }
        }
    }

    /// The location of the entry with `rank` entries before it.
    pub(super) fn location_at(&self, rank: usize) -> Option<u64> {
        match self {
            Self::Leaf(leaf) => (rank < leaf.len()).then(|| leaf.location(rank)),
            Self::Inner(inner) => {
                let (child, rank) = inner.child_at(rank)?;
                child.location_at(rank)
            }
        }
    }

    /// Appends locations between two positions until `out` has `full`.
    pub(super) fn collect<K: SortKeys + ?Sized>(
        &self,
        start: Option<&mut Target<'_, K>>,
        end: Option<&mut Target<'_, K>>,
        reverse: bool,
        full: usize,
        out: &mut Vec<u64>,
    ) {
        match self {
            Self::Leaf(leaf) => {
                let from = start.map_or(0, |start| leaf.position(start));
                let to = end.map_or(leaf.len(), |end| leaf.position(end));
                let found = leaf.locations(from..to);
                let room = full.saturating_sub(out.len());
                if reverse {
                    out.extend(found.rev().take(room));
                } else {
                    out.extend(found.take(room));
                }
            }
            Self::Inner(inner) => inner.collect(start, end, reverse, full, out),
        }
    }
}

#[cfg(test)]
impl Node {
    /// Proves the shape below this node and counts its nodes.
    pub(super) fn check<K: SortKeys + ?Sized>(&self, rows: &mut RowReader<'_, K>, tally: &mut Tally) {
        assert!(self.count() > 0, "no node is empty");
        match self {
            Self::Leaf(leaf) => {
                tally.leaves += 1;
                leaf.check(rows);
            }
            Self::Inner(inner) => {
                tally.inners += 1;
                inner.check(rows, tally);
            }
        }
    }
}
