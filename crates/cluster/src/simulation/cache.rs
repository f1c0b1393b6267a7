//! A cache of the simulation: the real member and outbox, and rows that are numbers.

use std::collections::HashMap;

use engine::{Operation, Outbox};

use super::{MAX_LAG_NS, Mistake};
use crate::broken::Origin;
use crate::chain::Noted;
use crate::follow::Numbered;
use crate::member::Member;
use crate::rejoin::{Rejoin, Settled};

/// See the module.
pub(super) struct Cache {
    pub(super) member: Member,
    pub(super) outbox: Outbox,
    /// The version of each key that it has.
    pub(super) rows: HashMap<u16, u64>,
    /// Of rows that travel, the number of the write that it has.
    pub(super) held: HashMap<u16, usize>,
    /// Rows that took the place of others since that was looked at.
    pub(super) replaced: Vec<(usize, usize)>,
    /// Those that the next process may believe.
    pub(super) noted_rows: HashMap<u16, usize>,
    /// Whether rows were lacking then.
    pub(super) noted_wants: bool,
    /// What it wrote down for the next process.
    pub(super) noted: Option<(Noted, Origin)>,
    /// The next message that the bus gives it; none: it has to join.
    pub(super) next: Option<u64>,
    /// Where the bus began to give it messages.
    pub(super) from: u64,
    pub(super) cut_off_until: u64,
    pub(super) distrusts: u64,
    pub(super) distrusted_ns: u64,
    /// The stream has lost what it had acknowledged: since then the cache hears it again.
    pub(super) doubtful_ns: Option<u64>,
    /// What is in its outbox: keys, and the versions that they had then.
    pub(super) told: Vec<(u16, u64)>,
    /// What is under way.
    pub(super) flying: Vec<(u16, u64)>,
    pub(super) mistake: Option<Mistake>,
    pub(super) rejoin: Rejoin,
    /// It lacks rows that travel.
    pub(super) wants: bool,
    /// How the rows that it lacked came, last.
    pub(super) taken: Option<Settled>,
    /// It hears and says nothing until then, though it could.
    pub(super) slow_until: u64,
}

impl Cache {
    /// All of them have one name, which nothing hangs on.
    pub(super) fn new(
        node: u64,
        numbered: Numbered,
        noted: Option<(Noted, Origin)>,
        now: u64,
        mistake: Option<Mistake>,
    ) -> Self {
        let mut member = Member::new(node, "cache", numbered, noted.clone().unzip());
        let mut rejoin = Rejoin::new(node);
        match mistake {
            Some(Mistake::LeavesOut(checks)) => member.omit(checks),
            Some(Mistake::Takes(check)) => rejoin.omit(Some(check)),
            _ => {}
        }
        Self {
            member,
            outbox: Outbox::default(),
            rows: HashMap::new(),
            held: HashMap::new(),
            replaced: Vec::new(),
            noted_rows: HashMap::new(),
            noted_wants: false,
            noted,
            next: None,
            from: 0,
            cut_off_until: 0,
            distrusts: 0,
            distrusted_ns: now,
            doubtful_ns: None,
            told: Vec::new(),
            flying: Vec::new(),
            mistake,
            rejoin,
            wants: false,
            taken: None,
            slow_until: 0,
        }
    }

    /// Nothing that it has is believed.
    pub(super) fn distrust(&mut self, now: u64) {
        if self.mistake != Some(Mistake::TrustsAfterBreaks) {
            self.rows.clear();
            self.held.clear();
        }
        self.distrusts += 1;
        self.distrusted_ns = now;
        self.want_rows();
    }

    /// Of a message that the stream has lost, the cache learns from another one that had received it: at most `max_lag`
    /// after it is connected to that one again.
    pub(super) fn note_doubt(&mut self, now: u64) {
        if self.next.is_none() {
            self.doubtful_ns = self.doubtful_ns.map(|_| now);
        }
        self.doubtful_ns = self.doubtful_ns.filter(|since| now < since + MAX_LAG_NS);
    }

    pub(super) fn apply(&mut self, operations: Vec<Operation>) {
        self.apply_rows(&operations, false);
        for operation in operations.into_iter().filter(|operation| &*operation.table().name == "page") {
            match operation {
                Operation::Key { key, .. } => {
                    self.rows.remove(&u16::from_le_bytes([key[0], key[1]]));
                }
                Operation::Whole { .. } if self.mistake == Some(Mistake::KeepsWholeTables) => {}
                Operation::Whole { .. } => self.rows.clear(),
                Operation::Row { .. } | Operation::Statement { .. } => panic!("nobody says that here"),
            }
        }
    }

    /// Writes down how far it has heard.
    pub(super) fn note(&mut self) {
        let origin = self.member.origin().cloned().unwrap_or_default();
        self.noted_rows.clone_from(&self.held);
        self.noted_wants = self.wants;
        self.noted = self.member.follower().noted().map(|noted| (noted, origin));
    }
}
