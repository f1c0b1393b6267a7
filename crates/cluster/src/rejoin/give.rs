//! Who asks this cache for rows, and when each can be answered. What is given stands in the question, so nothing is
//! kept of who takes.

use std::collections::VecDeque;

use super::words::Ask;
use crate::limits::{GIVE_WAIT_NS, TAKERS_MAX};

/// A question that waits.
#[derive(Debug)]
struct Waiting {
    node: u64,
    ask: Ask,
    since_ns: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Give {
    waiting: VecDeque<Waiting>,
}

impl Give {
    /// A cache asks. What it asked before it does not want to know any more.
    pub(super) fn hear(&mut self, node: u64, ask: Ask, now_ns: u64) {
        self.waiting.retain(|own| own.node != node);
        // It asks again, or somebody else.
        if self.waiting.len() < TAKERS_MAX {
            self.waiting.push_back(Waiting { node, ask, since_ns: now_ns });
        }
    }

    /// The next that can be answered. Who asked too long ago asks again.
    pub(super) fn next(&mut self, now_ns: u64, can: impl Fn(&Ask) -> bool) -> Option<(u64, Ask)> {
        self.waiting.retain(|own| now_ns.saturating_sub(own.since_ns) < GIVE_WAIT_NS);
        let at = self.waiting.iter().position(|own| can(&own.ask))?;
        self.waiting.remove(at).map(|own| (own.node, own.ask))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether one can be answered.
    pub(super) fn has_next(&self, can: impl Fn(&Ask) -> bool) -> bool {
        self.waiting.iter().any(|own| can(&own.ask))
    }
}

#[cfg(test)]
mod tests {
    use engine::TableName;

    use super::*;

    fn ask(number: u64, at_least: u64) -> Ask {
        Ask { number, table: TableName { name: "sess".into(), likeness: 1 }, from: None, at_least }
    }

    #[test]
    fn who_asks_again_is_answered_once_and_in_turn() {
        let mut give = Give::default();
        give.hear(1, ask(1, 5), 0);
        give.hear(2, ask(1, 9), 0);
        give.hear(1, ask(2, 6), 1);
        let up_to = |applied: u64| move |ask: &Ask| ask.at_least <= applied;
        assert!(!give.has_next(up_to(5)) && give.has_next(up_to(6)));
        assert_eq!(give.next(2, up_to(6)), Some((1, ask(2, 6))));
        assert_eq!(give.next(2, up_to(8)), None, "the other one waits");
        assert_eq!(give.next(GIVE_WAIT_NS, up_to(9)), None, "it asks again by now");
        for node in 0..2 * TAKERS_MAX as u64 {
            give.hear(node, ask(1, 0), 0);
        }
        assert_eq!(give.waiting.len(), TAKERS_MAX);
    }
}
