//! The gate against late fills.
//!
//! A source streams a transaction before it shows it to others: see [`crate::settle`]. So a row that was fetched may
//! be older than a change that was applied here already, after which no further event comes. Each fetch brings the
//! snapshot that it was read in. A row is stored only if every transaction that was streamed for its key is visible in
//! that snapshot. The gate knows the recent transactions: those that no snapshot of the source has shown yet, and
//! those that were shown since the oldest fetch under way began. All others every later snapshot shows.
//!
//! | moment | stream | fetch | row here |
//! |---|---|---|---|
//! | 1 | the change arrives: the gate has it, then the row goes | | none |
//! | 2 | | reads in a snapshot without the change: the old row | none |
//! | 3 | | the gate refuses it; who waits gets the old row | none |
//! | 4 | a snapshot shows the change | | none |
//! | 5 | | reads in a later snapshot: the new row, stored | the new one |

use std::collections::{HashSet, VecDeque};

use parking_lot::{Mutex, MutexGuard};

use crate::limits::GATE_EVENTS_MAX;
use crate::settle::Snapshot;

/// What transactions touched in one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    /// These keys, as the table encodes them.
    Keys(HashSet<Box<[u8]>>),
    /// It is not known which.
    All,
}

/// Transactions that were applied together.
#[derive(Debug)]
struct Event {
    /// By their numbers in the stream.
    transactions: Vec<u64>,
    /// By the tables' numbers.
    touched: Vec<(u64, Touched)>,
    /// It is not known what they touched.
    of_all: bool,
    /// When a snapshot had shown all of them; none: not yet.
    shown: Option<u64>,
}

/// The gate of one source.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<State>);

/// Ends with the stream, however that ends.
#[derive(Debug)]
pub(crate) struct Followed<'g>(pub(crate) &'g Gate);

impl Drop for Followed<'_> {
    fn drop(&mut self) {
        self.0.lose();
    }
}

/// What a fetch shows at the gate: when it began.
#[derive(Debug)]
pub(crate) struct Pass {
    moment: u64,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// The changes are followed from the moment on that stands here.
    followed_since: Option<u64>,
    events: VecDeque<Event>,
    /// When the fetches under way began.
    under_way: Vec<u64>,
    /// Counts snapshots and connections.
    moment: u64,
    /// Of fetches that began before, not all is known any more.
    known_since: u64,
}

impl Gate {
    /// A stream begins: fetches that began before are refused. `running`: transactions of which it is not known whether
    /// they will be streamed.
    pub(crate) fn follow(&self, running: Vec<u64>) {
        let mut state = self.0.lock();
        state.moment += 1;
        state.followed_since = Some(state.moment);
        state.events.clear();
        if !running.is_empty() {
            state.events.push_back(Event {
                transactions: running,
                touched: Vec::new(),
                of_all: true,
                shown: None,
            });
        }
    }

    /// It ended: nothing is stored until the next.
    pub(crate) fn lose(&self) {
        let mut state = self.0.lock();
        state.followed_since = None;
        state.events.clear();
    }

    /// A fetch begins: its snapshot will be a later one.
    pub(crate) fn begin(&self) -> Pass {
        let mut state = self.0.lock();
        let moment = state.moment;
        state.under_way.push(moment);
        Pass { moment }
    }

    /// It ended.
    #[expect(clippy::needless_pass_by_value, reason = "a fetch passes once")]
    pub(crate) fn end(&self, pass: Pass) {
        let mut state = self.0.lock();
        if let Some(own) = state.under_way.iter().position(|moment| *moment == pass.moment) {
            state.under_way.swap_remove(own);
        }
        state.forget();
    }

    /// Transactions were streamed: before anything of them is applied.
    pub(crate) fn meet(&self, transactions: Vec<u64>, touched: Vec<(u64, Touched)>) {
        if touched.is_empty() {
            return;
        }
        let mut state = self.0.lock();
        state.events.push_back(Event { transactions, touched, of_all: false, shown: None });
        state.bound();
    }

    /// A snapshot of the source that was taken just now.
    pub(crate) fn show(&self, snapshot: &Snapshot) {
        let mut state = self.0.lock();
        if state.events.is_empty() {
            return;
        }
        state.moment += 1;
        let moment = state.moment;
        for event in state.events.iter_mut().filter(|event| event.shown.is_none()) {
            if event.is_seen(snapshot) {
                event.shown = Some(moment);
            }
        }
        state.forget();
    }

    /// Who decides about rows holds the gate until they are stored, so that no change is applied in between.
    pub(crate) fn hold(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl State {
    /// Whether a row may be stored that was read in this snapshot.
    pub(crate) fn lets_in(&self, pass: &Pass, snapshot: &Snapshot, table: u64, key: &[u8]) -> bool {
        let follows = self.followed_since.is_some_and(|since| pass.moment >= since);
        follows && pass.moment >= self.known_since && !self.is_late(pass, snapshot, table, key)
    }

    fn is_late(&self, pass: &Pass, snapshot: &Snapshot, table: u64, key: &[u8]) -> bool {
        self.events.iter().any(|event| {
            // What was shown before the fetch began, its snapshot shows too.
            let known = event.shown.is_some_and(|shown| shown <= pass.moment);
            !known && event.touches(table, key) && !event.is_seen(snapshot)
        })
    }

    /// Lets go of what every fetch sees that is under way or to come.
    fn forget(&mut self) {
        let oldest = self.under_way.iter().copied().min().unwrap_or(self.moment);
        self.events.retain(|event| event.shown.is_none_or(|shown| shown > oldest));
    }

    /// Holds no more than may be: a fetch for which something was let go is refused.
    fn bound(&mut self) {
        while self.events.len() > GATE_EVENTS_MAX {
            if let Some(at) = self.events.iter().position(|event| event.shown.is_some()) {
                let shown = self.events.remove(at).and_then(|event| event.shown);
                self.known_since = self.known_since.max(shown.unwrap_or(self.moment));
                continue;
            }
            // None was shown: the oldest half is one from now on.
            let mut all = Event { transactions: Vec::new(), touched: Vec::new(), of_all: false, shown: None };
            for event in self.events.drain(..GATE_EVENTS_MAX / 2) {
                all.absorb(event);
            }
            self.events.push_front(all);
        }
    }
}

impl Event {
    fn touches(&self, table: u64, key: &[u8]) -> bool {
        let mut own = self.touched.iter().filter(|(number, _)| *number == table);
        self.of_all
            || own.any(|(_, touched)| match touched {
                Touched::All => true,
                Touched::Keys(keys) => keys.contains(key),
            })
    }

    /// Whether a snapshot shows all of it.
    fn is_seen(&self, snapshot: &Snapshot) -> bool {
        self.transactions.iter().all(|one| snapshot.shows(*one))
    }

    fn absorb(&mut self, other: Self) {
        self.transactions.extend(other.transactions);
        self.of_all |= other.of_all;
        // Which keys is not worth keeping for so many.
        for (table, _) in other.touched {
            if !self.touched.iter().any(|(number, _)| *number == table) {
                self.touched.push((table, Touched::All));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: u64 = 7;

    fn keys(keys: &[&[u8]]) -> Vec<(u64, Touched)> {
        vec![(TABLE, Touched::Keys(keys.iter().map(|key| Box::from(*key)).collect()))]
    }

    fn snapshot(text: &str) -> Snapshot {
        Snapshot::read(text).unwrap()
    }

    fn lets_in(gate: &Gate, pass: &Pass, text: &str, key: &[u8]) -> bool {
        gate.hold().lets_in(pass, &snapshot(text), TABLE, key)
    }

    /// The table of the race, step by step: transaction 739 is streamed while a standby still has to confirm it.
    #[test]
    fn a_row_from_before_a_change_is_refused_until_the_source_shows_the_change() {
        let gate = Gate::default();
        let early = gate.begin();
        assert!(!lets_in(&gate, &early, "739:739:", b"a"), "nobody follows the changes yet");
        gate.follow(Vec::new());
        assert!(!lets_in(&gate, &early, "739:739:", b"a"), "it began before");
        gate.end(early);
        let pass = gate.begin();
        assert!(lets_in(&gate, &pass, "739:739:", b"a"));
        gate.meet(vec![739], keys(&[b"a"]));
        assert!(!lets_in(&gate, &pass, "739:740:739", b"a"), "the old row");
        assert!(lets_in(&gate, &pass, "739:740:739", b"b"), "another row");
        assert!(lets_in(&gate, &pass, "740:740:", b"a"), "the new row");
        let late = gate.begin();
        assert!(!lets_in(&gate, &late, "739:740:739", b"a"), "the event came, and the old row is still read");
        // A snapshot shows it. The fetch that began before may not have seen it, and is asked.
        gate.show(&snapshot("740:740:"));
        assert!(!lets_in(&gate, &late, "739:740:739", b"a"));
        gate.end(pass);
        assert!(!lets_in(&gate, &late, "739:740:739", b"a"));
        gate.end(late);
        assert_eq!(gate.hold().events.len(), 0, "every fetch to come sees it");
        gate.lose();
        let pass = gate.begin();
        assert!(!lets_in(&gate, &pass, "740:740:", b"a"));
    }

    #[test]
    fn what_ran_when_the_stream_began_is_not_known() {
        let gate = Gate::default();
        gate.follow(vec![738]);
        let pass = gate.begin();
        assert!(!lets_in(&gate, &pass, "738:740:738", b"a"));
        assert!(lets_in(&gate, &pass, "740:740:", b"a"));
    }

    #[test]
    fn the_gate_is_bounded_and_then_refuses() {
        let gate = Gate::default();
        gate.follow(Vec::new());
        let pass = gate.begin();
        let last = GATE_EVENTS_MAX as u64 * 3;
        for xid in 1..=last {
            gate.meet(vec![xid], keys(&[&xid.to_be_bytes()]));
            if xid % 100 == 0 {
                gate.show(&snapshot(&format!("{0}:{0}:", xid + 1)));
            }
            assert!(gate.hold().events.len() <= GATE_EVENTS_MAX);
        }
        assert!(!lets_in(&gate, &pass, &format!("{0}:{0}:", last + 1), b"another"), "not all is known of it");
        let pass = gate.begin();
        assert!(lets_in(&gate, &pass, &format!("{0}:{0}:", last + 1), b"another"));
        assert!(!lets_in(&gate, &pass, "1:1:", &last.to_be_bytes()));
        // Transactions that are shown to nobody: none of their keys is stored.
        let gate = Gate::default();
        gate.follow(Vec::new());
        for xid in 1..=last {
            gate.meet(vec![xid], keys(&[&xid.to_be_bytes()]));
        }
        assert!(gate.hold().events.len() <= GATE_EVENTS_MAX);
        let pass = gate.begin();
        assert!(!lets_in(&gate, &pass, "1:1:", &1_u64.to_be_bytes()));
        assert!(lets_in(&gate, &pass, &format!("{0}:{0}:", last + 1), &1_u64.to_be_bytes()));
    }
}
