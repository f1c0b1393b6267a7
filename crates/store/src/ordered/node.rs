//! Nodes of the tree, leaf or inner, and what is done the same way to both.

use super::SortKeys;
use super::block::{BLOCK_ENTRIES, Block};
use super::inner::Inner;
use super::target::{RowReader, Target};

/// A leaf or an inner node; neither is ever empty while it is in the tree.
pub(super) enum Node {
    Leaf(Box<Block>),
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
        self.leaves * size_of::<Block>() + self.inners * Inner::BYTES
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

/// Bulk building leaves an eighth of each node free for the insertions to come.
pub(super) const FILL: usize = BLOCK_ENTRIES - BLOCK_ENTRIES / 8;

impl Node {
    /// A leaf of one entry.
    pub(super) fn single<K: SortKeys + ?Sized>(
        target: &mut Target<'_, K>,
        location: u64,
        tally: &mut Tally,
    ) -> Self {
        tally.leaves += 1;
        let mut leaf = Block::new();
        leaf.insert(0, target.key(), location, target.rows());
        Self::Leaf(Box::new(leaf))
    }

    /// The parent of two nodes.
    pub(super) fn above<K: SortKeys + ?Sized>(
        left: Self,
        right: Self,
        rows: &mut RowReader<'_, K>,
        tally: &mut Tally,
    ) -> Self {
        tally.inners += 1;
        let mut inner = Inner::new();
        inner.push(left, rows);
        inner.push(right, rows);
        Self::Inner(Box::new(inner))
    }

    /// The tree of sorted entries; `None` of none.
    pub(super) fn from_sorted<K: SortKeys + ?Sized>(
        entries: &[(u64, u64)],
        rows: &mut RowReader<'_, K>,
        tally: &mut Tally,
    ) -> Option<Self> {
        let mut level: Vec<Self> = Vec::new();
        for chunk in entries.chunks(FILL) {
            let mut leaf = Block::new();
            for &(head, location) in chunk {
                leaf.push_whole(head, location);
            }
            leaf.tighten(rows);
            tally.leaves += 1;
            level.push(Self::Leaf(Box::new(leaf)));
        }
        while level.len() > 1 {
            let mut below = level.into_iter().peekable();
            level = Vec::new();
            while below.peek().is_some() {
                let mut inner = Inner::new();
                for node in below.by_ref().take(FILL) {
                    inner.push(node, rows);
                }
                inner.tighten(rows);
                tally.inners += 1;
                level.push(Self::Inner(Box::new(inner)));
            }
        }
        level.pop()
    }

    /// The location of the first entry below this node.
    pub(super) fn first(&self) -> u64 {
        match self {
            Self::Leaf(leaf) => leaf.first(),
            Self::Inner(inner) => inner.first(),
        }
    }

    /// How many entries are below this node.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.len(),
            Self::Inner(inner) => inner.count(),
        }
    }

    /// How many entries or children this node itself has.
    pub(super) fn width(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.len(),
            Self::Inner(inner) => inner.width(),
        }
    }

    /// Adds the entry that the target names. `edge` is true along the right edge of the tree.
    pub(super) fn insert<K: SortKeys + ?Sized>(
        &mut self,
        location: u64,
        target: &mut Target<'_, K>,
        edge: bool,
        tally: &mut Tally,
    ) -> Inserted {
        match self {
            Self::Leaf(leaf) => insert_in_leaf(leaf, location, target, edge, tally),
            Self::Inner(inner) => inner.insert(location, target, edge, tally),
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
            Self::Leaf(leaf) => leaf.locations().get(rank).copied(),
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
                let found = leaf.locations().get(from..to).unwrap_or_default();
                let room = full.saturating_sub(out.len());
                if reverse {
                    out.extend(found.iter().rev().take(room));
                } else {
                    out.extend(found.iter().take(room));
                }
            }
            Self::Inner(inner) => inner.collect(start, end, reverse, full, out),
        }
    }
}

fn insert_in_leaf<K: SortKeys + ?Sized>(
    leaf: &mut Block,
    location: u64,
    target: &mut Target<'_, K>,
    edge: bool,
    tally: &mut Tally,
) -> Inserted {
    let Err(at) = leaf.find(target) else {
        return Inserted { added: false, split: None };
    };
    let key = target.key();
    if !leaf.is_full() {
        leaf.insert(at, key, location, target.rows());
        return Inserted { added: true, split: None };
    }
    // Keys that only grow leave full leaves behind them, not half-full ones.
    let grows = edge && at == leaf.len();
    let middle = if grows { at } else { leaf.len() / 2 };
    // The halves share more than the whole did; the new key comes last, for it may share less.
    if grows {
        leaf.tighten(target.rows());
    }
    let mut right = leaf.split_off(middle);
    tally.leaves += 1;
    if !grows {
        leaf.tighten(target.rows());
        right.tighten(target.rows());
    }
    if at < middle {
        leaf.insert(at, key, location, target.rows());
    } else {
        right.insert(at - middle, key, location, target.rows());
    }
    Inserted { added: true, split: Some(Node::Leaf(Box::new(right))) }
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
