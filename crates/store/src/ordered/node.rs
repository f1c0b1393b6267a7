//! Nodes of the tree, leaf or inner, and what is done the same way to both.

use super::SortKeys;
use super::inner::{INNER_CHILDREN, Inner};
use super::leaf::{Entry, LEAF_ENTRIES, Leaf};
use super::target::Target;

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
    /// It has the new location, in the old place.
    InPlace,
    /// It is not here.
    Missing,
    /// It is here, and its new place may be another one.
    Moves,
}

/// Bulk building leaves an eighth of each node free for the insertions to come.
const LEAF_FILL: usize = LEAF_ENTRIES - LEAF_ENTRIES / 8;
const INNER_FILL: usize = INNER_CHILDREN - INNER_CHILDREN / 8;

impl Node {
    /// A leaf of one entry.
    pub(super) fn single(entry: Entry, tally: &mut Tally) -> Self {
        tally.leaves += 1;
        let mut leaf = Leaf::new();
        leaf.push(entry);
        Self::Leaf(Box::new(leaf))
    }

    /// The parent of two nodes.
    pub(super) fn above(left: Self, right: Self, tally: &mut Tally) -> Self {
        tally.inners += 1;
        let mut inner = Inner::new();
        inner.push(left);
        inner.push(right);
        Self::Inner(Box::new(inner))
    }

    /// The tree of sorted entries; `None` of none.
    pub(super) fn from_sorted(entries: impl Iterator<Item = Entry>, tally: &mut Tally) -> Option<Self> {
        let mut leaves: Vec<Leaf> = Vec::new();
        for entry in entries {
            match leaves.last_mut() {
                Some(leaf) if leaf.len() < LEAF_FILL => leaf.push(entry),
                _ => {
                    let mut leaf = Leaf::new();
                    leaf.push(entry);
                    leaves.push(leaf);
                }
            }
        }
        tally.leaves += leaves.len();
        let mut level: Vec<Self> = leaves.into_iter().map(|leaf| Self::Leaf(Box::new(leaf))).collect();
        while level.len() > 1 {
            let mut above: Vec<Inner> = Vec::new();
            for node in level {
                match above.last_mut() {
                    Some(inner) if inner.children() < INNER_FILL => inner.push(node),
                    _ => {
                        let mut inner = Inner::new();
                        inner.push(node);
                        above.push(inner);
                    }
                }
            }
            tally.inners += above.len();
            level = above.into_iter().map(|inner| Self::Inner(Box::new(inner))).collect();
        }
        level.pop()
    }

    /// The first entry below this node.
    pub(super) fn first(&self) -> Entry {
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

    /// How many entries or children a node has, and for how many there is room.
    pub(super) fn fill(&self) -> (usize, usize) {
        match self {
            Self::Leaf(leaf) => (leaf.len(), LEAF_ENTRIES),
            Self::Inner(inner) => (inner.children(), INNER_CHILDREN),
        }
    }

    /// Adds an entry. `edge` is true along the right edge of the tree.
    pub(super) fn insert<K: SortKeys + ?Sized>(
        &mut self,
        entry: Entry,
        target: &mut Target<'_, K>,
        edge: bool,
        tally: &mut Tally,
    ) -> Inserted {
        match self {
            Self::Leaf(leaf) => insert_in_leaf(leaf, entry, target, edge, tally),
            Self::Inner(inner) => inner.insert(entry, target, edge, tally),
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

    /// Gives the entry that the target names another location, where that keeps its place.
    pub(super) fn replace_location<K: SortKeys + ?Sized>(
        &mut self,
        target: &mut Target<'_, K>,
        new: u64,
    ) -> Replaced {
        match self {
            Self::Leaf(leaf) => replace_in_leaf(leaf, target, new),
            Self::Inner(inner) => {
                let child = inner.child_of(target);
                inner.child_mut(child).replace_location(target, new)
            }
        }
    }

    /// The root after a removal: inner nodes with one child give way to it, an empty one to nothing.
    pub(super) fn lowered(self, tally: &mut Tally) -> Option<Self> {
        match self {
            Self::Leaf(leaf) if leaf.len() == 0 => {
                tally.leaves -= 1;
                None
            }
            Self::Inner(mut inner) if inner.children() <= 1 => {
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
    leaf: &mut Leaf,
    entry: Entry,
    target: &mut Target<'_, K>,
    edge: bool,
    tally: &mut Tally,
) -> Inserted {
    let Err(at) = leaf.find(target) else {
        return Inserted { added: false, split: None };
    };
    if !leaf.is_full() {
        leaf.insert(at, entry);
        return Inserted { added: true, split: None };
    }
    // Keys that only grow leave full leaves behind them, not half-full ones.
    let middle = if edge && at == leaf.len() { at } else { leaf.len() / 2 };
    let mut right = leaf.split_off(middle);
    tally.leaves += 1;
    if at < middle || (at == middle && right.len() > 0) {
        leaf.insert(at, entry);
    } else {
        right.insert(at - middle, entry);
    }
    Inserted { added: true, split: Some(Node::Leaf(Box::new(right))) }
}

/// The neighbours in the leaf decide whether the entry may stay where it is; at the ends of the leaf, and
/// where only full keys could tell, it is taken out and put in anew.
fn replace_in_leaf<K: SortKeys + ?Sized>(leaf: &mut Leaf, target: &mut Target<'_, K>, new: u64) -> Replaced {
    let Ok(at) = leaf.find(target) else {
        return Replaced::Missing;
    };
    if at == 0 || at + 1 == leaf.len() {
        return Replaced::Moves;
    }
    let prefix = target.prefix();
    let (before, after) = (leaf.entry(at - 1), leaf.entry(at + 1));
    let exact = target.is_exact();
    let stays = (before.prefix != prefix || exact && before.location < new)
        && (after.prefix != prefix || exact && new < after.location);
    if stays {
        leaf.set_location(at, new);
        return Replaced::InPlace;
    }
    Replaced::Moves
}

#[cfg(test)]
impl Node {
    /// Proves the shape below this node and counts its nodes.
    pub(super) fn check(&self, tally: &mut Tally) {
        assert!(self.count() > 0, "no node is empty");
        match self {
            Self::Leaf(leaf) => {
                tally.leaves += 1;
                assert!(leaf.prefixes().is_sorted());
            }
            Self::Inner(inner) => {
                tally.inners += 1;
                inner.check(tally);
            }
        }
    }
}
