//! How a cache takes the rows that it lacks: it looks for one that has them, and asks that one for some, again and
//! again, one table after the other.
//!
//! Rows are put in as if they had been there when the giver read them. So each question says how much of the stream
//! the giver is to have applied; from then on this cache notes what the stream says. What was read later than it has
//! heard itself waits. What the stream has said of a key since counts, and not the row that was read before.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use engine::{Operation, Replica, TableName};
use store::GivePlace;

use super::notes::Notes;
use super::words::{Ask, Given, What};
use crate::carrier::To;
use crate::chain::Compared;
use crate::follow::Follower;
use crate::limits::{
    EVICTED_MIN, EVICTED_PART, GIVE_TRIES, GIVE_WAIT_NS, GIVERS_MAX, LOOK_FOR_GIVERS_NS, MUTE_NS, OFFERS_MAX,
    OFFERS_WAIT_NS, REREADS_MAX, TAKE_PAUSE_NS, WANT_PAUSE_NS, WANTS_MIN,
};

/// A table of which rows are lacking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) table: TableName,
    /// Some went just now, so what was taken before is of no use.
    pub(crate) anew: bool,
}

/// How a table got to have what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Another cache gave all that it had.
    Taken { rows: u64, giver: u64 },
    /// Nobody has rows of it.
    Nobody,
    /// Those that have some did not give them all.
    GivenUp { rows: u64, why: &'static str },
    /// The memory is full.
    Full { rows: u64 },
}

impl fmt::Display for Settled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken { rows, giver } => write!(f, "{rows} rows were taken from node {giver:016x}"),
            Self::Nobody => f.write_str("no other cache has rows of it"),
            Self::GivenUp { rows, why } => write!(f, "{rows} rows were taken, and no more: {why}"),
            Self::Full { rows } => write!(f, "{rows} rows were taken, and no more: the memory is full"),
        }
    }
}

/// What comes of it for others.
#[derive(Debug, PartialEq)]
pub(crate) enum Out {
    Say(To, What),
    /// No more rows of the table are looked for.
    Settled(Arc<str>, Settled),
    /// The table of this name is another one at that cache.
    Differs(Arc<str>, u64),
}

/// What became of rows that were put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// So many of them are there, and so many rows of all tables were evicted so far.
    Done { taken: u64, evicted: u64 },
    /// There is no room.
    Full,
    /// They are no rows of this table.
    Wrong,
    /// The table is gone, or another one.
    Gone,
}

/// Rows that are to be put in now.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) table: TableName,
    pub(super) rows: Vec<(Box<[u8]>, Replica)>,
    next: Option<GivePlace>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Take {
    own: u64,
    /// Of these rows are lacking. The first is under way.
    wanted: Vec<TableName>,
    state: State,
    /// The number of the last question.
    number: u64,
    /// What the first of the tables has come to.
    sofar: SoFar,
    /// When rows of a table were looked for last.
    begun_ns: HashMap<Arc<str>, u64>,
    pub(super) outs: Vec<Out>,
    /// A check that a test leaves out, to see that it notices it.
    pub(super) omits: Option<Check>,
}

/// What rows that were given are held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// What the stream has said of a key since they were read.
    Keys,
    /// What it has said of all keys since.
    Statements,
    /// How far this cache has heard.
    Place,
    /// The history that was heard here.
    History,
}

/// What is to be done with rows that were given.
enum Judged {
    Put,
    Wait,
    /// They are to be read again.
    Again,
    /// They are not to be believed.
    Refuse,
}

/// How far a table is.
#[derive(Debug, Default)]
struct SoFar {
    rows: u64,
    /// Rows of all tables that were evicted before.
    evicted: Option<u64>,
    /// Caches that did not give what they had.
    failed: Vec<u64>,
    rereads: u32,
}

#[derive(Debug)]
enum State {
    Looking(Looking),
    Taking(Taking),
}

/// It looks for a cache that has rows.
#[derive(Debug, Default)]
struct Looking {
    since_ns: Option<u64>,
    said: u32,
    next_ns: u64,
    /// Each with the number of its rows.
    offers: Vec<(u64, u64)>,
    offered_ns: u64,
    /// Caches that have none to give.
    lacking: HashSet<u64>,
}

/// One gives it rows.
#[derive(Debug)]
struct Taking {
    giver: u64,
    ask: Ask,
    asked_ns: u64,
    tries: u32,
    given: Option<Given>,
    notes: Notes,
}

impl Take {
    pub(super) fn new(own: u64) -> Self {
        Self {
            own,
            wanted: Vec::new(),
            state: State::Looking(Looking::default()),
            number: 0,
            sofar: SoFar::default(),
            begun_ns: HashMap::new(),
            outs: Vec::new(),
            omits: None,
        }
    }

    /// Rows of these tables are lacking. The one that is under way goes on, unless some of its rows went.
    pub(super) fn want(&mut self, mut tables: Vec<Wanted>) {
        let first = self.wanted.first();
        if let Some(at) = tables.iter().position(|own| !own.anew && Some(&own.table) == first) {
            tables[..=at].rotate_right(1);
        } else {
            self.look_again();
            self.sofar = SoFar::default();
        }
        self.wanted = tables.into_iter().map(|own| own.table).collect();
        let wanted = &self.wanted;
        self.begun_ns.retain(|table, _| wanted.iter().any(|own| own.name == *table));
    }

    /// The stream says something of tables.
    pub(super) fn note(&mut self, sequence: u64, operations: &[Operation]) {
        let (keys, all) = (self.checks(Check::Keys), self.checks(Check::Statements));
        let State::Taking(taking) = &mut self.state else { return };
        for operation in operations {
            let counts = if operation.is_broad() { all } else { keys };
            if counts && operation.table().name.eq_ignore_ascii_case(&taking.ask.table.name) {
                taking.notes.note(sequence, operation);
            }
        }
    }

    /// Another cache says something.
    pub(super) fn hear(&mut self, node: u64, what: What, now_ns: u64) {
        let Some(table) = self.wanted.first() else { return };
        let name = Arc::clone(&table.name);
        match (what, &mut self.state) {
            (What::Offers { table, rows }, State::Looking(looking)) if table == name => {
                let knows = looking.offers.iter().any(|(known, _)| *known == node);
                if !knows && looking.offers.len() < OFFERS_MAX && !self.sofar.failed.contains(&node) {
                    if looking.offers.is_empty() {
                        looking.offered_ns = now_ns;
                    }
                    looking.offers.push((node, rows));
                }
            }
            (What::Lacks { table }, State::Looking(looking)) if table == name => {
                looking.note_lacking(node);
            }
            (What::Differs { table }, State::Looking(looking)) if table == name => {
                let is_new = looking.note_lacking(node);
                self.outs.extend(is_new.then_some(Out::Differs(name, node)));
            }
            (What::Gives(given), State::Taking(taking))
                if taking.giver == node && taking.ask.number == given.number && taking.given.is_none() =>
            {
                taking.given = Some(given);
            }
            (What::Refuses { number }, State::Taking(taking))
                if taking.giver == node && taking.ask.number == number =>
            {
                self.fail(node);
            }
            _ => {}
        }
    }

    /// Says what is to be said at this time.
    pub(super) fn turn(&mut self, follower: &Follower, now_ns: u64) {
        let Some(table) = self.wanted.first().cloned() else { return };
        match &mut self.state {
            State::Taking(taking) if now_ns.saturating_sub(taking.asked_ns) < GIVE_WAIT_NS => {}
            State::Taking(taking) if taking.given.is_some() => self.ask_again(follower, now_ns),
            State::Taking(taking) if taking.tries >= GIVE_TRIES => {
                let giver = taking.giver;
                self.fail(giver);
            }
            State::Taking(taking) => {
                let (giver, from, tries) = (taking.giver, taking.ask.from, taking.tries);
                self.ask(giver, table, from, tries + 1, (follower, now_ns));
            }
            State::Looking(looking) => {
                let begun = self.begun_ns.get(&table.name).filter(|_| self.sofar.failed.is_empty());
                let rests = begun.is_some_and(|begun| now_ns.saturating_sub(*begun) < TAKE_PAUSE_NS);
                if looking.since_ns.is_some() || !rests {
                    let since_ns = *looking.since_ns.get_or_insert(now_ns);
                    self.begun_ns.insert(Arc::clone(&table.name), since_ns);
                    self.look(table, follower, now_ns);
                }
            }
        }
    }

    fn look(&mut self, table: TableName, follower: &Follower, now_ns: u64) {
        let State::Looking(looking) = &mut self.state else { return };
        if !looking.offers.is_empty() {
            if now_ns.saturating_sub(looking.offered_ns) >= OFFERS_WAIT_NS {
                let giver = looking.choose(self.own);
                self.ask(giver, table, None, 1, (follower, now_ns));
            }
            return;
        }
        if now_ns < looking.next_ns {
            return;
        }
        if looking.is_over(self.own, follower, now_ns) {
            let rows = self.sofar.rows;
            let failed = !self.sofar.failed.is_empty();
            let why = "the caches that have them went or lost them";
            return self.settle(if failed { Settled::GivenUp { rows, why } } else { Settled::Nobody });
        }
        looking.said += 1;
        looking.next_ns = now_ns + WANT_PAUSE_NS;
        self.outs.push(Out::Say(To::All, What::Wants(table)));
    }

    fn ask(
        &mut self,
        giver: u64,
        table: TableName,
        from: Option<GivePlace>,
        tries: u32,
        (follower, now_ns): (&Follower, u64),
    ) {
        self.number += 1;
        let ask = Ask { number: self.number, table, from, at_least: follower.last() };
        self.outs.push(Out::Say(To::One(giver), What::Asks(ask.clone())));
        // What the stream has said so far the giver has applied when it reads.
        let notes = Notes::default();
        self.state = State::Taking(Taking { giver, ask, asked_ns: now_ns, tries, given: None, notes });
    }

    /// Asks for the same rows once more: they are not what they were.
    fn ask_again(&mut self, follower: &Follower, now_ns: u64) {
        let State::Taking(taking) = &self.state else { return };
        let (giver, table, from) = (taking.giver, taking.ask.table.clone(), taking.ask.from);
        self.sofar.rereads += 1;
        if self.sofar.rereads > REREADS_MAX {
            let (rows, why) = (self.sofar.rows, "its rows change too fast");
            return self.settle(Settled::GivenUp { rows, why });
        }
        self.ask(giver, table, from, 1, (follower, now_ns));
    }

    /// A cache does not give what it has. Another one may.
    fn fail(&mut self, giver: u64) {
        self.sofar.failed.push(giver);
        if self.sofar.failed.len() >= GIVERS_MAX {
            let (rows, why) = (self.sofar.rows, "no cache that has them gives all of them");
            return self.settle(Settled::GivenUp { rows, why });
        }
        self.look_again();
    }

    fn look_again(&mut self) {
        self.state = State::Looking(Looking::default());
    }

    /// It is not known how far it has heard, or that is too old. What it was given it has no use for.
    pub(super) fn pause(&mut self) {
        let is_new = matches!(&self.state, State::Looking(looking) if looking.since_ns.is_none());
        if !is_new {
            self.look_again();
        }
    }

    /// No more rows of the first table are looked for.
    fn settle(&mut self, how: Settled) {
        let table = self.wanted.remove(0);
        self.outs.push(Out::Settled(table.name, how));
        self.sofar = SoFar::default();
        self.look_again();
    }

    /// The rows that can be put in now. `changes_any`: something was done here that may change any key of the table,
    /// and is under way.
    pub(super) fn due(
        &mut self,
        (follower, now_ns): (&Follower, u64),
        changes_any: impl FnOnce(&TableName) -> bool,
    ) -> Option<Due> {
        let State::Taking(taking) = &self.state else { return None };
        let judged = self.judge(taking, taking.given.as_ref()?, follower);
        match judged {
            Judged::Put if !changes_any(&taking.ask.table) => return self.take_given(),
            Judged::Put | Judged::Wait => {}
            Judged::Again => self.ask_again(follower, now_ns),
            Judged::Refuse => self.fail(taking.giver),
        }
        None
    }

    fn judge(&self, taking: &Taking, given: &Given, follower: &Follower) -> Judged {
        let read_at = given.seen.sequence;
        if read_at > follower.last() && self.checks(Check::Place) {
            return Judged::Wait;
        }
        if read_at < taking.ask.at_least || !goes_on(taking.ask.from, given.next) {
            return Judged::Refuse;
        }
        match follower.compare(given.seen) {
            Compared::Other if self.checks(Check::History) => Judged::Refuse,
            // It lies too far back.
            Compared::Unknown if self.checks(Check::Place) => Judged::Again,
            _ if taking.notes.any_since(read_at) => Judged::Again,
            _ => Judged::Put,
        }
    }

    fn take_given(&mut self) -> Option<Due> {
        let State::Taking(taking) = &mut self.state else { return None };
        let Given { seen, mut rows, next, .. } = taking.given.take()?;
        rows.retain(|(key, _)| !taking.notes.is_newer(key, seen.sequence));
        Some(Due { table: taking.ask.table.clone(), rows, next })
    }

    /// Whether rows are held against something.
    fn checks(&self, check: Check) -> bool {
        self.omits != Some(check)
    }

    /// They were put in.
    pub(super) fn note_put(&mut self, due: &Due, put: Put, follower: &Follower, now_ns: u64) {
        let State::Taking(taking) = &self.state else { return };
        let giver = taking.giver;
        match put {
            Put::Wrong => self.fail(giver),
            Put::Full => self.settle(Settled::Full { rows: self.sofar.rows }),
            Put::Gone => self.settle(Settled::GivenUp { rows: self.sofar.rows, why: "the table is gone" }),
            Put::Done { taken, evicted } => {
                self.sofar.rows += taken;
                let before = *self.sofar.evicted.get_or_insert(evicted);
                let rows = self.sofar.rows;
                match due.next {
                    None => self.settle(Settled::Taken { rows, giver }),
                    _ if evicted.saturating_sub(before) > EVICTED_MIN + rows / EVICTED_PART => {
                        self.settle(Settled::Full { rows });
                    }
                    next => self.ask(giver, due.table.clone(), next, 1, (follower, now_ns)),
                }
            }
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.wanted.is_empty()
    }
}

impl Looking {
    /// False: it was known.
    fn note_lacking(&mut self, node: u64) -> bool {
        self.lacking.len() < crate::limits::NODES_MAX && self.lacking.insert(node)
    }

    /// One of those that have most, and not the same for each cache that lacks rows.
    fn choose(&self, own: u64) -> u64 {
        /// One that evicts at this moment has somewhat less.
        const ALIKE: u64 = 10;
        let most = self.offers.iter().map(|(_, rows)| *rows).max().unwrap_or_default();
        let alike = self.offers.iter().filter(|(_, rows)| *rows >= most - most / ALIKE);
        let chosen = alike.min_by_key(|(node, _)| (node ^ own).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        chosen.map_or(0, |(node, _)| *node)
    }

    /// Whether nobody is left who may answer.
    fn is_over(&self, own: u64, follower: &Follower, now_ns: u64) -> bool {
        let since_ns = self.since_ns.unwrap_or(now_ns);
        if self.said < WANTS_MIN {
            return false;
        }
        let answers = |node: u64, heard_ns: u64| {
            node != own && now_ns.saturating_sub(heard_ns) < MUTE_NS && !self.lacking.contains(&node)
        };
        let mut alive = follower.nodes().alive(now_ns);
        now_ns.saturating_sub(since_ns) >= LOOK_FOR_GIVERS_NS
            || !alive.any(|(node, known)| answers(node, known.heard_ns))
    }
}

/// Whether a place lies behind the one from which it was asked. Who never comes to an end is not to be followed.
fn goes_on(from: Option<GivePlace>, next: Option<GivePlace>) -> bool {
    match (from, next) {
        (_, None) => true,
        (None, Some(next)) => next.group > 0 || next.behind.is_some(),
        (Some(from), Some(next)) => {
            next.groups == from.groups && (next.group, next.behind) > (from.group, from.behind)
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::{Ends, KeyChange, Value};

    use super::*;
    use crate::chain::Seen;
    use crate::follow::Numbered;
    use crate::wire::{Body, Heartbeat, Message};

    const GIVER: u64 = 2;

    fn table() -> TableName {
        TableName { name: "sess".into(), likeness: 1 }
    }

    /// What a cache is that has heard so many messages, and which of them differ from those of others.
    fn heard(messages: u64, other: u64) -> Follower {
        let mut follower = Follower::at(1, Numbered::OneByOne, 0, None);
        (1..=messages).for_each(|number| hear(&mut follower, number, other));
        follower
    }

    fn hear(follower: &mut Follower, number: u64, other: u64) {
        let epoch = (number == 1).then_some(7);
        let lag_ms = u64::from(number == other);
        let body = Body::Heartbeat(Heartbeat { lag_ms, epoch, ..Heartbeat::default() });
        let message = Message { node: 3, counter: number, seen: None, body };
        follower.hear(number, &message.encode(), 0).unwrap();
    }

    fn row(key: u8) -> (Box<[u8]>, Replica) {
        let values = vec![Value::Integer(key.into())];
        (Box::from([key]), Replica { values, client_flags: 0, ends: Ends::Table, stale: false })
    }

    fn place(group: u64) -> GivePlace {
        GivePlace { groups: 256, group, behind: None }
    }

    /// A cache that has asked another one at this moment.
    fn asking(follower: &Follower, now_ns: u64) -> (Take, Ask) {
        let mut take = Take::new(1);
        take.want(vec![Wanted { table: table(), anew: true }]);
        take.turn(follower, now_ns);
        assert_eq!(take.outs, [Out::Say(To::All, What::Wants(table()))]);
        take.outs.clear();
        take.hear(GIVER, What::Offers { table: "sess".into(), rows: 5 }, now_ns);
        take.turn(follower, now_ns + OFFERS_WAIT_NS);
        let ask = asked(&mut take).unwrap();
        (take, ask)
    }

    /// What it has asked just now.
    fn asked(take: &mut Take) -> Option<Ask> {
        match take.outs.drain(..).next() {
            Some(Out::Say(To::One(GIVER), What::Asks(ask))) => Some(ask),
            _ => None,
        }
    }

    fn give(take: &mut Take, ask: &Ask, seen: Seen, next: Option<GivePlace>) {
        let given = Given { number: ask.number, seen, rows: vec![row(1), row(2)], next };
        take.hear(GIVER, What::Gives(given), 0);
    }

    fn due(take: &mut Take, follower: &Follower) -> Option<Due> {
        take.due((follower, 0), |_| false)
    }

    fn is_looking(take: &Take) -> bool {
        matches!(take.state, State::Looking(_))
    }

    #[test]
    fn rows_that_were_read_later_wait() {
        let mut follower = heard(3, 0);
        let (mut take, ask) = asking(&follower, 0);
        assert_eq!((ask.at_least, ask.from), (3, None));
        give(&mut take, &ask, heard(5, 0).seen().unwrap(), Some(place(4)));
        assert!(due(&mut take, &follower).is_none());
        hear(&mut follower, 4, 0);
        assert!(due(&mut take, &follower).is_none());
        hear(&mut follower, 5, 0);
        assert!(take.due((&follower, 0), |_| true).is_none(), "a statement of this cache is under way");
        let due = due(&mut take, &follower).unwrap();
        assert_eq!(due.rows, [row(1), row(2)]);
        take.note_put(&due, Put::Done { taken: 2, evicted: 0 }, &follower, 0);
        let next = asked(&mut take).unwrap();
        assert_eq!((next.at_least, next.from, next.number), (5, Some(place(4)), ask.number + 1));
        give(&mut take, &ask, follower.seen().unwrap(), None);
        assert!(self::due(&mut take, &follower).is_none(), "that one was answered before");
        give(&mut take, &next, follower.seen().unwrap(), None);
        let last = self::due(&mut take, &follower).unwrap();
        take.note_put(&last, Put::Done { taken: 1, evicted: 0 }, &follower, 0);
        assert_eq!(take.outs, [Out::Settled("sess".into(), Settled::Taken { rows: 3, giver: GIVER })]);
        assert!(take.is_idle());
    }

    #[test]
    fn what_was_heard_since_counts() {
        let mut follower = heard(3, 0);
        let seen = follower.seen().unwrap();
        let (mut take, ask) = asking(&follower, 0);
        hear(&mut follower, 4, 0);
        let delete = Operation::Key { table: table(), key: Box::from([1]), change: KeyChange::Delete };
        take.note(4, &[delete]);
        give(&mut take, &ask, seen, Some(place(4)));
        assert_eq!(due(&mut take, &follower).unwrap().rows, [row(2)]);
        // Another table is not this one, and a whole table is any row.
        let (mut take, ask) = asking(&follower, 0);
        let seen = follower.seen().unwrap();
        hear(&mut follower, 5, 0);
        take.note(5, &[Operation::Whole { table: TableName { name: "page".into(), likeness: 1 } }]);
        take.note(5, &[Operation::Whole { table: table() }]);
        give(&mut take, &ask, seen, Some(place(4)));
        assert!(due(&mut take, &follower).is_none());
        let again = asked(&mut take).unwrap();
        assert_eq!((again.at_least, again.from), (5, ask.from));
        give(&mut take, &again, follower.seen().unwrap(), Some(place(4)));
        assert_eq!(due(&mut take, &follower).unwrap().rows.len(), 2);
    }

    /// One that has heard something else, has not heard enough, or never comes to an end.
    #[test]
    fn who_is_not_to_be_believed_is_asked_no_more() {
        let follower = heard(3, 0);
        let seen = follower.seen().unwrap();
        let wrong = [
            (heard(3, 2).seen().unwrap(), Some(place(4))),
            (Seen { epoch: 8, ..seen }, Some(place(4))),
            (heard(2, 0).seen().unwrap(), Some(place(4))),
            (seen, Some(place(0))),
        ];
        for (seen, next) in wrong {
            let (mut take, ask) = asking(&follower, 0);
            give(&mut take, &ask, seen, next);
            assert!(due(&mut take, &follower).is_none() && is_looking(&take), "{seen:?} {next:?}");
            take.hear(GIVER, What::Offers { table: "sess".into(), rows: 5 }, 0);
            let State::Looking(looking) = &take.state else { panic!("it looks for another one") };
            assert!(looking.offers.is_empty());
        }
        let at = |group, behind| Some(GivePlace { groups: 256, group, behind });
        assert!(goes_on(at(4, None), at(4, Some(0))) && goes_on(at(4, Some(9)), at(5, None)));
        assert!(!goes_on(at(4, Some(9)), at(4, Some(9))) && !goes_on(at(4, Some(9)), at(4, None)));
        assert!(!goes_on(at(4, None), Some(GivePlace { groups: 512, group: 9, behind: None })));
    }

    #[test]
    fn who_does_not_answer_is_asked_some_times() {
        let follower = heard(3, 0);
        let (mut take, first) = asking(&follower, 0);
        let mut now_ns = OFFERS_WAIT_NS;
        for times in 1..GIVE_TRIES {
            now_ns += GIVE_WAIT_NS;
            take.turn(&follower, now_ns);
            assert_eq!(asked(&mut take).unwrap().number, first.number + u64::from(times));
        }
        take.turn(&follower, now_ns + GIVE_WAIT_NS);
        assert!(take.outs.is_empty() && is_looking(&take));
        // Nobody else says that it lives, so it goes on with what it has.
        for _ in 0..=WANTS_MIN {
            now_ns += 2 * GIVE_WAIT_NS;
            take.turn(&follower, now_ns);
        }
        let settled = take.outs.pop().unwrap();
        assert!(matches!(settled, Out::Settled(_, Settled::GivenUp { rows: 0, .. })), "{settled:?}");
    }

    #[test]
    fn where_the_memory_is_full_no_more_is_taken() {
        let follower = heard(3, 0);
        for (put, rows) in [(Put::Full, 0), (Put::Done { taken: 2, evicted: 2 * EVICTED_MIN }, 4)] {
            let (mut take, ask) = asking(&follower, 0);
            give(&mut take, &ask, follower.seen().unwrap(), Some(place(4)));
            let first = due(&mut take, &follower).unwrap();
            if rows > 0 {
                take.note_put(&first, Put::Done { taken: 2, evicted: 0 }, &follower, 0);
                let next = asked(&mut take).unwrap();
                give(&mut take, &next, follower.seen().unwrap(), Some(place(5)));
                let second = due(&mut take, &follower).unwrap();
                take.note_put(&second, put, &follower, 0);
            } else {
                take.note_put(&first, put, &follower, 0);
            }
            assert_eq!(take.outs, [Out::Settled("sess".into(), Settled::Full { rows })]);
        }
    }

    /// Whose rows went while others came begins again, but not at once.
    #[test]
    fn what_is_lost_again_and_again_is_not_asked_for_all_the_time() {
        let follower = heard(3, 0);
        let (mut take, _) = asking(&follower, 0);
        take.want(vec![Wanted { table: table(), anew: true }]);
        take.turn(&follower, TAKE_PAUSE_NS / 2);
        assert!(take.outs.is_empty());
        take.turn(&follower, TAKE_PAUSE_NS);
        assert_eq!(take.outs, [Out::Say(To::All, What::Wants(table()))]);
    }

    /// A table that is emptied again and again holds up no other one.
    #[test]
    fn what_another_table_loses_is_no_matter() {
        let follower = heard(3, 0);
        let (mut take, ask) = asking(&follower, 0);
        let other = TableName { name: "page".into(), likeness: 1 };
        for anew in [true, false] {
            let other = Wanted { table: other.clone(), anew };
            take.want(vec![other, Wanted { table: table(), anew: false }]);
            assert_eq!(take.wanted[0], table());
        }
        give(&mut take, &ask, follower.seen().unwrap(), None);
        let due = due(&mut take, &follower).unwrap();
        take.note_put(&due, Put::Done { taken: 2, evicted: 0 }, &follower, 0);
        assert_eq!(take.outs, [Out::Settled("sess".into(), Settled::Taken { rows: 2, giver: GIVER })]);
        assert_eq!(take.wanted, [other]);
    }

    /// Several that have rows are not all asked by everybody, and one that has few is not.
    #[test]
    fn one_of_those_that_have_most_is_chosen() {
        let offers = vec![(5, 1_000), (6, 990), (7, 10), (8, 950)];
        let looking = Looking { offers, ..Looking::default() };
        let chosen: HashSet<u64> =
            (0..100).map(|own: u64| looking.choose(own.wrapping_mul(0x9e37_79b9))).collect();
        assert!(chosen.len() > 1 && !chosen.contains(&7), "{chosen:?}");
    }
}
