//! The gate against old answers.
//!
//! An answer is read in a snapshot that the source takes at `Bind`. The stream of changes may be ahead of what that
//! snapshot shows, and behind it. An answer is kept only if, for each of its tags, no change has arrived since the
//! moment before `Bind`, and at that moment every change that had arrived was shown by a snapshot of the source. Why
//! that is enough, for a change X that the answer does not have:
//!
//! - X arrives after the answer was kept: it removes it.
//! - X arrived between the moment and the end: refused.
//! - X arrived before and was not shown then: refused.
//! - X was shown before: every later snapshot shows it, and so does the answer.
//!
//! An event enters the gate before anything is removed, and answers are kept under the gate's lock.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::limits::{GATE_SLOTS, UNSHOWN_MAX};

/// What transactions changed.
#[derive(Debug)]
pub enum Touched<'t> {
    /// These tags.
    Tags(Vec<&'t [u8]>),
    /// It is not known what.
    All,
}

/// When a read began, as the gate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Every change up to this one was shown.
    shown: u64,
    /// The stream that brought them.
    stream: u64,
    /// The definitions of the source.
    definitions: u64,
}

impl Moment {
    /// Whether the definitions of the source were these.
    pub(crate) const fn is_under(&self, definitions: u64) -> bool {
        self.definitions == definitions
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Gate(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Groups of transactions that have arrived.
    arrived: u64,
    /// All of them up to this one were shown.
    shown: u64,
    /// Those that were not, each with its number.
    unshown: VecDeque<(u64, Vec<u64>)>,
    /// The last that touched a tag of each slot.
    last: Box<[u64]>,
    /// The last that may have touched anything.
    last_of_all: u64,
    /// Counts streams; what began under another one is refused.
    stream: u64,
    /// The stream follows.
    follows: bool,
    /// What the definitions of the source are; 0: not known.
    definitions: u64,
    /// The group of transactions that brought the last change of them.
    defined: u64,
}

impl Default for Gate {
    fn default() -> Self {
        Self(Mutex::new(State {
            arrived: 0,
            shown: 0,
            unshown: VecDeque::new(),
            last: vec![0; GATE_SLOTS].into(),
            last_of_all: 0,
            stream: 0,
            follows: false,
            definitions: 0,
            defined: 0,
        }))
    }
}

impl Gate {
    /// A stream begins. `running`: transactions of which it is not known whether they will be streamed.
    pub(crate) fn follow(&self, running: Vec<u64>) {
        let mut state = self.0.lock();
        state.stream += 1;
        state.follows = true;
        state.unshown.clear();
        state.arrive(running);
        state.last_of_all = state.arrived;
    }

    /// It ended: nothing is kept until the next.
    pub(crate) fn lose(&self) {
        self.0.lock().follows = false;
    }

    /// Definitions of the source are others now. True: they were known before, and were others.
    pub(crate) fn define(&self, definitions: u64) -> bool {
        let before = std::mem::replace(&mut self.0.lock().definitions, definitions);
        before != 0 && before != definitions
    }

    /// The same, as the last group of transactions says that has arrived.
    pub(crate) fn redefine(&self, definitions: u64) {
        let mut state = self.0.lock();
        state.definitions = definitions;
        state.defined = state.arrived;
    }

    /// Whether the source shows the definitions of which the stream told last.
    pub(crate) fn shows_definitions(&self) -> bool {
        let state = self.0.lock();
        state.shown >= state.defined
    }

    /// A read is about to be forwarded; none: what it gives cannot be kept.
    pub(crate) fn moment(&self) -> Option<Moment> {
        let State { shown, stream, follows, definitions, .. } = *self.0.lock();
        (follows && definitions != 0).then_some(Moment { shown, stream, definitions })
    }

    /// Transactions have arrived, before anything of them is removed.
    pub(crate) fn arrive(&self, transactions: Vec<u64>, touched: Touched<'_>) {
        let mut state = self.0.lock();
        state.arrive(transactions);
        let number = state.arrived;
        match touched {
            Touched::All => state.last_of_all = number,
            Touched::Tags(tags) => tags.iter().for_each(|tag| state.last[slot_of(tag)] = number),
        }
    }

    /// A snapshot of the source shows these transactions. True: all that have arrived were shown.
    pub(crate) fn show(&self, shows: impl Fn(u64) -> bool) -> bool {
        let mut state = self.0.lock();
        while let Some((number, transactions)) = state.unshown.front_mut() {
            transactions.retain(|one| !shows(*one));
            if !transactions.is_empty() {
                return false;
            }
            let number = *number;
            state.shown = number;
            state.unshown.pop_front();
        }
        state.shown = state.arrived;
        true
    }

    /// Keeps an answer, if it is none from before a change; says whether it was.
    pub(crate) fn keep(&self, moment: Moment, tags: &[String], keep: impl FnOnce() -> bool) -> bool {
        let state = self.0.lock();
        state.lets_in(moment, tags) && keep()
    }
}

impl State {
    fn arrive(&mut self, transactions: Vec<u64>) {
        self.arrived += 1;
        if transactions.is_empty() && self.unshown.is_empty() {
            self.shown = self.arrived;
            return;
        }
        let is_full = self.unshown.len() >= UNSHOWN_MAX;
        match self.unshown.back_mut().filter(|_| is_full) {
            Some((number, last)) => {
                *number = self.arrived;
                last.extend(transactions);
            }
            None => self.unshown.push_back((self.arrived, transactions)),
        }
    }

    fn lets_in(&self, moment: Moment, tags: &[String]) -> bool {
        let unchanged = |tag: &String| self.last[slot_of(tag.as_bytes())] <= moment.shown;
        self.follows
            && self.stream == moment.stream
            && self.definitions == moment.definitions
            && self.last_of_all <= moment.shown
            && tags.iter().all(unchanged)
    }
}

fn slot_of(tag: &[u8]) -> usize {
    // Below GATE_SLOTS, which fits.
    usize::try_from(rapidhash::v3::rapidhash_v3(tag) % GATE_SLOTS as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(gate: &Gate, transaction: u64, tags: &[&str]) {
        gate.arrive(vec![transaction], Touched::Tags(tags.iter().map(|tag| tag.as_bytes()).collect()));
    }

    fn following() -> Gate {
        let gate = Gate::default();
        gate.follow(Vec::new());
        gate.define(7);
        gate
    }

    fn lets_in(gate: &Gate, moment: Option<Moment>, tag: &str) -> bool {
        moment.is_some_and(|moment| gate.keep(moment, &[tag.to_owned()], || true))
    }

    #[test]
    fn an_answer_from_before_a_change_is_refused() {
        let gate = following();
        let before = gate.moment();
        assert!(lets_in(&gate, before, "a"));
        arrive(&gate, 740, &["a"]);
        assert!(!lets_in(&gate, before, "a"), "it may be older than the change");
        assert!(lets_in(&gate, before, "b"));
        let unshown = gate.moment();
        assert!(!lets_in(&gate, unshown, "a"), "no snapshot has shown the change");
        gate.show(|_| false);
        assert!(!lets_in(&gate, gate.moment(), "a"));
        gate.show(|one| one == 740);
        assert!(!lets_in(&gate, unshown, "a"), "its snapshot may be from before");
        assert!(lets_in(&gate, gate.moment(), "a"));
    }

    #[test]
    fn changes_are_shown_in_their_order() {
        let gate = following();
        arrive(&gate, 740, &["a"]);
        arrive(&gate, 741, &["b"]);
        gate.show(|one| one == 741);
        assert!(!lets_in(&gate, gate.moment(), "b"), "the one before is not");
        gate.show(|_| true);
        assert!(lets_in(&gate, gate.moment(), "a") && lets_in(&gate, gate.moment(), "b"));
    }

    #[test]
    fn what_began_under_another_stream_or_other_definitions_is_refused() {
        let gate = following();
        let moment = gate.moment();
        gate.lose();
        assert!(!lets_in(&gate, moment, "a") && gate.moment().is_none());
        gate.follow(vec![739]);
        assert!(!lets_in(&gate, moment, "a"));
        assert!(!lets_in(&gate, gate.moment(), "a"), "one of before may still change it");
        gate.show(|_| true);
        let moment = gate.moment();
        assert!(lets_in(&gate, moment, "a"));
        assert!(gate.define(8) && !gate.define(8));
        assert!(!lets_in(&gate, moment, "a"));
    }

    #[test]
    fn what_is_not_shown_is_bounded() {
        let gate = following();
        for transaction in 1..4 * UNSHOWN_MAX as u64 {
            arrive(&gate, transaction, &["a"]);
            assert!(gate.0.lock().unshown.len() <= UNSHOWN_MAX);
        }
        gate.show(|one| one + 1 < 4 * UNSHOWN_MAX as u64);
        assert!(!lets_in(&gate, gate.moment(), "b") || !lets_in(&gate, gate.moment(), "a"));
        gate.show(|_| true);
        assert!(lets_in(&gate, gate.moment(), "a"));
    }
}
