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
    /// The first message of it that was heard, and the last, by their places in the stream.
    spoke: (u64, u64),
    /// When it was heard.
    pub(crate) heard_ns: u64,
}

impl Node {
    /// Whether both call themselves alike, and are there at once: each was heard after the other had come. A process
    /// that took the place of another one is heard when that is not any more.
    pub(crate) fn is_namesake_of(&self, other: &Self) -> bool {
        !self.said.name.is_empty()
            && self.said.name == other.said.name
            && self.spoke.0 < other.spoke.1
            && other.spoke.0 < self.spoke.1
    }
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

    pub(crate) fn get(&self, node: u64) -> Option<&Node> {
        self.0.get(&node)
    }

    /// Takes note of a message, by its place in the stream.
    pub(crate) fn note(
        &mut self,
        sequence: u64,
        (node, counter, seen): (u64, u64, Option<Seen>),
        now_ns: u64,
    ) -> &mut Node {
        if self.0.len() >= NODES_MAX && !self.0.contains_key(&node) {
            self.forget_longest_silent();
        }
        let own = self.0.entry(node).or_default();
        (own.counter, own.heard_ns) = (counter, now_ns);
        own.applied = seen.map(|seen| seen.sequence);
        own.spoke = (if own.spoke.0 > 0 { own.spoke.0 } else { sequence }, sequence);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_of_one_name_are_there_at_once() {
        let mut nodes = Nodes::default();
        let mut say = |sequence, node, name: &str| {
            let said = Heartbeat { name: name.to_owned(), ..Heartbeat::default() };
            nodes.note(sequence, (node, sequence, None), 0).said = said;
            let (one, other) = (nodes.get(1)?, nodes.get(2)?);
            assert_eq!(one.is_namesake_of(other), other.is_namesake_of(one));
            Some(one.is_namesake_of(other))
        };
        assert_eq!(say(1, 1, "a:1"), None);
        assert_eq!(say(2, 1, "a:1"), None);
        // A process that took the place of another one.
        assert_eq!(say(3, 2, "a:1"), Some(false));
        assert_eq!(say(4, 2, "a:1"), Some(false));
        // It is there all the same.
        assert_eq!(say(5, 1, "a:1"), Some(true));
        assert_eq!(say(6, 2, "b:1"), Some(false));
    }
}
