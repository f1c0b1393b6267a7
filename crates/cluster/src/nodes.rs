//! The caches that are heard on a bus.

use std::collections::HashMap;

use crate::chain::Seen;
use crate::limits::{NODE_SILENT_NS, NODES_MAX};
use crate::wire::Heartbeat;

/// What is known of a cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// How many messages it has sent.
    pub(crate) counter: u64,
    /// The last that it had heard.
    pub(crate) applied: Option<u64>,
    /// What it said of itself.
    pub(crate) said: Heartbeat,
    /// When it was heard.
    pub(crate) heard_ns: u64,
}

/// How a message's number follows those of its sender before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    /// It is the next.
    Next,
    /// The sender was not met before.
    New,
    /// It came once more. What it says may be done once more.
    Again,
    /// One is missing between them, or they changed places.
    Not {
        /// The number that was to come.
        expected: u64,
    },
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Nodes(HashMap<u64, Node>);

impl Nodes {
    pub(crate) fn follows(&self, node: u64, counter: u64) -> Follows {
        match self.0.get(&node) {
            None => Follows::New,
            Some(known) if known.counter + 1 == counter => Follows::Next,
            Some(known) if known.counter == counter => Follows::Again,
            Some(known) => Follows::Not { expected: known.counter + 1 },
        }
    }

    /// Takes note of a message.
    pub(crate) fn note(&mut self, node: u64, counter: u64, seen: Option<Seen>, now_ns: u64) -> &mut Node {
        if self.0.len() >= NODES_MAX && !self.0.contains_key(&node) {
            self.forget_longest_silent();
        }
        let own = self.0.entry(node).or_default();
        (own.counter, own.heard_ns) = (counter, now_ns);
        own.applied = seen.map(|seen| seen.sequence);
        own
    }

    fn forget_longest_silent(&mut self) {
        let silent = self.0.iter().min_by_key(|(_, own)| own.heard_ns).map(|(node, _)| *node);
        if let Some(node) = silent {
            self.0.remove(&node);
        }
    }

    /// Forgets how many messages they sent: some may be lost.
    pub(crate) fn forget_all(&mut self) {
        self.0.clear();
    }

    /// Those that are alive, as far as is known.
    pub(crate) fn alive(&self, now_ns: u64) -> impl Iterator<Item = (u64, &Node)> {
        let is_alive = move |own: &Node| now_ns.saturating_sub(own.heard_ns) < NODE_SILENT_NS;
        self.0.iter().filter(move |(_, own)| is_alive(own)).map(|(node, own)| (*node, own))
    }
}
