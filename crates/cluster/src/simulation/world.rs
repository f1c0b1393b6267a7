//! Caches, their clients and the stream between them, by a clock that steps.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use engine::{KeyChange, Operation, TableName};

use super::cache::Cache;
use super::rejoin::Letter;
use super::rows::Written;
use super::stream::Stream;
use super::{KEYS, MAX_LAG_NS, Mistake, SECOND_NS, STEP_NS};
use crate::broken::Break;
use crate::chain::Noted;
use crate::follow::{Heard, Numbered};
use crate::member::{Joined, Stored};
use crate::wire::Message;

/// More keys than an outbox keeps of a table.
const MORE_THAN_FIT: usize = 10_001;

/// How many faults the report of an old row names.
const LATELY: usize = 12;

/// Commands of clients and checks are no more in a step, however many caches there are.
const BUSY_CACHES: usize = 10;

/// An invalidation that was acknowledged.
struct Acknowledged {
    key: u16,
    /// It, or a later one, is all that a cache may have.
    version: u64,
    when: u64,
    /// The name of the message that has it.
    told_by: Rc<str>,
    /// The stream does not have it any more, or elsewhere than where some have heard it.
    is_lost: bool,
}

/// See the module.
pub(super) struct World {
    pub(super) random: fastrand::Rng,
    pub(super) now: u64,
    pub(super) numbered: Numbered,
    pub(super) stream: Stream,
    pub(super) caches: Vec<Cache>,
    /// Clients write rows that travel, or have done so.
    pub(super) writes_rows: bool,
    pub(super) follows_rows: bool,
    pub(super) written: Written,
    mistake: Option<Mistake>,
    /// The version of each key at its origin.
    origin: HashMap<u16, u64>,
    acknowledged: Vec<Acknowledged>,
    pub(super) away_until: u64,
    /// The words on their way to each cache, and whether they may get lost.
    pub(super) letters: Vec<Vec<Letter>>,
    pub(super) bad_words: bool,
    /// How often a cache took all rows of another one, and how many those were.
    pub(super) taken: (u64, u64),
    pub(super) faults: HashMap<&'static str, u64>,
    /// The last faults with their times, for the report of an old row.
    lately: VecDeque<(u64, &'static str)>,
    /// How often each kind of break was noticed.
    pub(super) breaks: HashMap<String, u64>,
    pub(super) checks: u64,
    /// The first old row that a fresh cache had.
    pub(super) violation: Option<String>,
}

fn table() -> TableName {
    TableName { name: "page".into(), likeness: 1 }
}

fn delete(key: u16) -> Operation {
    Operation::Key { table: table(), key: key.to_le_bytes().into(), change: KeyChange::Delete }
}

impl World {
    pub(super) fn new(seed: u64, numbered: Numbered, caches: usize, mistake: Option<Mistake>) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let letters = (0..caches).map(|_| Vec::new()).collect();
        let caches = (0..caches).map(|_| Cache::new(random.u64(1..), numbered, None, 0, mistake)).collect();
        Self {
            letters,
            bad_words: false,
            taken: (0, 0),
            random,
            now: SECOND_NS,
            numbered,
            stream: Stream::new(numbered, seed),
            caches,
            writes_rows: false,
            follows_rows: false,
            written: Written::default(),
            mistake,
            origin: HashMap::new(),
            acknowledged: Vec::new(),
            away_until: 0,
            faults: HashMap::new(),
            lately: VecDeque::new(),
            breaks: HashMap::new(),
            checks: 0,
            violation: None,
        }
    }

    pub(super) fn chance(&mut self, one_in: u32) -> bool {
        self.random.u32(..one_in) == 0
    }

    pub(super) fn count(&mut self, fault: &'static str) {
        *self.faults.entry(fault).or_default() += 1;
        self.lately.push_back((self.now / 1_000_000, fault));
        if self.lately.len() > LATELY {
            self.lately.pop_front();
        }
    }

    /// The stream has lost these messages, though it may have acknowledged them.
    pub(super) fn lose(&mut self, names: &[String], fault: &'static str) {
        let is_among = |own: &Acknowledged| names.iter().any(|name| **name == *own.told_by);
        for own in self.acknowledged.iter_mut().filter(|own| is_among(own)) {
            own.is_lost = true;
        }
        self.lose_rows(names);
        self.caches.iter_mut().for_each(|cache| cache.doubtful_ns = Some(self.now));
        self.count(fault);
    }

    /// What delivers the stream is gone, so each cache has to join again.
    pub(super) fn end_deliveries(&mut self) {
        self.caches.iter_mut().for_each(|cache| cache.next = None);
    }

    /// A message does not arrive at a cache.
    pub(super) fn lose_on_the_way(&mut self, at: usize) {
        let cache = &mut self.caches[at];
        cache.next = cache.next.map(|next| next + 1);
    }

    /// What delivers the stream to a cache forgets how far it came, as when its server was killed.
    pub(super) fn begin_delivery_again(&mut self, at: usize) {
        let cache = &mut self.caches[at];
        cache.next = cache.next.map(|_| cache.from);
    }

    /// Another process in the place of a cache. A warm one finds the rows and what was written down.
    pub(super) fn start_again(&mut self, at: usize, warm: bool) {
        let node = self.random.u64(1..);
        let (now, mistake, old) = (self.now, self.mistake, &mut self.caches[at]);
        let rows = std::mem::take(&mut old.rows);
        let held = std::mem::take(&mut old.noted_rows);
        let wanted = old.noted_wants || old.wants;
        let (noted, doubtful) = (old.noted.take().filter(|_| warm), old.doubtful_ns.map(|_| now));
        let is_warm = noted.is_some();
        *old = Cache::new(node, self.numbered, noted, now, mistake);
        old.doubtful_ns = doubtful;
        // Rows of before whose history is known stay.
        if is_warm {
            old.rows = rows;
            (old.held, old.noted_rows) = (held.clone(), held);
            if wanted {
                old.want_rows();
            }
        }
    }

    pub(super) fn step(&mut self, faulty: bool) {
        self.now += STEP_NS;
        if faulty {
            self.break_something();
        }
        for at in 0..self.caches.len() {
            let busy = self.is_busy();
            if busy {
                self.use_cache(at, faulty);
            }
            if self.writes_rows {
                self.write_row(at);
            }
            self.turn(at, faulty);
            if self.writes_rows || self.follows_rows {
                self.exchange_rows(at, faulty || self.bad_words);
            }
            if busy || self.caches.len() <= BUSY_CACHES {
                self.check(at);
                if self.writes_rows || self.follows_rows {
                    self.check_rows(at);
                }
            }
        }
        let oldest = self.now.saturating_sub(60 * SECOND_NS);
        self.acknowledged.retain(|own| own.when >= oldest);
    }

    fn is_busy(&mut self) -> bool {
        self.caches.len() <= BUSY_CACHES || self.random.usize(..self.caches.len()) < BUSY_CACHES
    }

    /// A client fills or invalidates.
    fn use_cache(&mut self, at: usize, faulty: bool) {
        let key = self.random.u16(..KEYS);
        if self.chance(3) {
            let version = self.origin.get(&key).copied().unwrap_or(0);
            self.caches[at].rows.insert(key, version);
        } else if self.chance(6) {
            self.invalidate(at, key, 1);
        } else if faulty && self.chance(5_000) {
            self.invalidate(at, key, MORE_THAN_FIT);
            self.count("outbox full");
        }
    }

    /// The same key so often: the outbox does not look at what it has.
    fn invalidate(&mut self, at: usize, key: u16, times: usize) {
        let version = self.origin.entry(key).or_default();
        *version += 1;
        let (version, cache) = (*version, &mut self.caches[at]);
        cache.rows.remove(&key);
        for _ in 0..times {
            cache.outbox.push(vec![delete(key)], None, self.now);
        }
        cache.told.push((key, version));
    }

    pub(super) fn is_reached(&self, at: usize) -> bool {
        self.now >= self.away_until && self.now >= self.caches[at].cut_off_until
    }

    fn turn(&mut self, at: usize, faulty: bool) {
        if self.is_reached(at) {
            if self.caches[at].next.is_none() {
                self.join(at, faulty);
            }
            if self.caches[at].next.is_some() {
                self.deliver(at, faulty);
            }
            if self.caches[at].next.is_some() {
                self.send(at, faulty);
            }
        } else {
            self.caches[at].next = None;
        }
        let (now, cache) = (self.now, &mut self.caches[at]);
        cache.note_doubt(now);
        // What is not fresh is not believed.
        let fresh = cache.member.follower().fresh_ns().is_some_and(|fresh| now - fresh <= MAX_LAG_NS);
        if fresh {
            cache.distrusted_ns = now;
        } else if now - cache.distrusted_ns >= MAX_LAG_NS {
            cache.distrust(now);
        }
        // With rows, what is noted is what the bus has all of.
        let is_told = !self.writes_rows || self.caches[at].outbox.is_empty();
        if self.random.u32(..20) == 0 && is_told {
            self.caches[at].note();
        }
    }

    /// Sends the message that is under way. Says where it is stored; none: it was known before, or nothing came back.
    fn publish(&mut self, at: usize, faulty: bool) -> Option<Stored> {
        let cache = &mut self.caches[at];
        cache.member.look_at_flight(&cache.outbox, self.now);
        let flight = self.caches[at].member.flight()?.clone();
        if faulty && self.chance(40) {
            if self.mistake == Some(Mistake::AnswersAtOnce) {
                self.acknowledge(at, &flight.name);
            }
            return None;
        }
        let (name, bytes) = if faulty && self.chance(1_000) {
            self.count("counter is a lie");
            self.lie(&flight.bytes)
        } else {
            (flight.name, flight.bytes)
        };
        let stored = self.stream.store(&name, &bytes, flight.behind);
        if stored.is_ok() {
            self.note_stored(&bytes);
        }
        if faulty && self.chance(40) {
            return None;
        }
        let Ok((stored, known)) = stored else {
            self.caches[at].member.refused();
            return None;
        };
        let cache = &mut self.caches[at];
        let result = cache.member.acknowledged(&cache.outbox, (!known).then_some(stored));
        self.acknowledge(at, &name);
        self.acknowledge_rows(&name, &bytes);
        if let Err(broken) = result {
            self.break_off(at, &broken);
            return None;
        }
        (!known).then_some(stored)
    }

    /// The clients whose words are under way are answered.
    fn acknowledge(&mut self, at: usize, name: &str) {
        let (when, told_by, cache) = (self.now, Rc::from(name), &mut self.caches[at]);
        self.acknowledged.extend(cache.flying.drain(..).map(|(key, version)| Acknowledged {
            key,
            version,
            when,
            told_by: Rc::clone(&told_by),
            is_lost: false,
        }));
    }

    /// A message with another counter than its sender's next, and a name by which nobody knows it.
    fn lie(&mut self, bytes: &[u8]) -> (String, Arc<[u8]>) {
        let Ok(mut message) = Message::decode(bytes) else { panic!("what was written is read") };
        let ahead = self.random.u64(1..5);
        message.counter =
            if self.random.bool() { message.counter + ahead } else { message.counter.saturating_sub(ahead) };
        (format!("a lie of {}", self.now), message.encode().into())
    }

    fn break_off(&mut self, at: usize, broken: &Break) {
        let words = format!("{broken:?}");
        let kind = words.split(' ').next().unwrap_or_default().to_owned();
        *self.breaks.entry(kind).or_default() += 1;
        let cache = &mut self.caches[at];
        cache.member.lose_history(broken);
        cache.noted = None;
        cache.next = None;
    }

    fn join(&mut self, at: usize, faulty: bool) {
        if let Err(broken) = self.caches[at].member.meet(self.stream.origin.clone()) {
            self.break_off(at, &broken);
        }
        if self.caches[at].member.flight().is_some() {
            self.publish(at, faulty);
        }
        let (now, cache) = (self.now, &mut self.caches[at]);
        if cache.member.flight().is_some() {
            return;
        }
        cache.member.beat(&cache.outbox, now);
        let Some(stored) = self.publish(at, faulty) else { return };
        let cache = &mut self.caches[at];
        if let Joined::Anew(_) = cache.member.join(stored) {
            cache.outbox.forget_sent();
            cache.noted = None;
            cache.distrust(now);
        }
        cache.from = cache.member.follower().from();
        cache.next = Some(cache.from);
        let expected = cache.from;
        if self.stream.is_gone(expected) {
            self.break_off(at, &Break::Gap { expected, came: self.stream.end() });
        }
    }

    fn deliver(&mut self, at: usize, faulty: bool) {
        if self.now < self.caches[at].slow_until {
            return;
        }
        for _ in 0..self.random.usize(1..200) {
            let Some(mut next) = self.caches[at].next else { return };
            // A connection to a database loses nothing on the way.
            if faulty && self.numbered == Numbered::OneByOne && self.chance(3_000) {
                next += 1;
                self.count("lost on the way");
            }
            // Delivery begins at the first message that is left.
            let Some((next, bytes)) = self.stream.next(next) else { return };
            let again = faulty && self.chance(3_000);
            if again {
                self.count("delivered twice");
            }
            let (now, cache) = (self.now, &mut self.caches[at]);
            cache.next = Some(next + u64::from(!again));
            match cache.member.hear(next, &bytes, now) {
                Ok(Heard::Apply(operations)) => {
                    cache.rejoin.note(next, &operations);
                    cache.apply(operations);
                }
                Ok(Heard::Nothing) => {}
                Ok(Heard::Own { operations, again }) => {
                    cache.hear_own_rows(&operations, again);
                    cache.rejoin.note(next, &operations);
                    if operations.is_empty() && cache.member.is_all_back() {
                        cache.outbox.forget_sent();
                    }
                }
                Ok(Heard::Missed) => cache.next = None,
                Ok(Heard::Unreadable(_)) => cache.distrust(now),
                Err(broken) => return self.break_off(at, &broken),
            }
        }
    }

    fn send(&mut self, at: usize, faulty: bool) {
        if self.now < self.caches[at].slow_until {
            return;
        }
        let (now, cache) = (self.now, &mut self.caches[at]);
        if cache.member.flight().is_none() {
            let waited = cache.outbox.len();
            cache.member.prepare(&cache.outbox, now);
            if cache.outbox.len() < waited {
                cache.flying = std::mem::take(&mut cache.told);
            }
        }
        self.publish(at, faulty);
    }

    /// Holds what a cache has against what it promises.
    fn check(&mut self, at: usize) {
        let cache = &self.caches[at];
        let Some(fresh) = cache.member.follower().fresh_ns() else { return };
        for Acknowledged { key, version, when, is_lost, .. } in &self.acknowledged {
            // Within a step nobody knows what came first. What is lost was heard by some, who tell the others.
            if *when < fresh
                && !(*is_lost && cache.doubtful_ns.is_some())
                && let Some(own) = cache.rows.get(key)
            {
                self.checks += 1;
                if own < version {
                    self.violation.get_or_insert_with(|| {
                        format!(
                            "cache {at} has version {own} of key {key}, and {version} was acknowledged at {} ms; it is \
                             {} ms, and it says that it is fresh since {} ms; {:?}",
                            when / 1_000_000,
                            self.now / 1_000_000,
                            fresh / 1_000_000,
                            self.lately
                        )
                    });
                }
            }
        }
    }

    /// What a message of nobody looks like.
    pub(super) fn store_garbage(&mut self) {
        let bytes: Vec<u8> = (0..self.random.usize(..50)).map(|_| self.random.u8(..)).collect();
        let name = format!("garbage {}", self.now);
        // It is stored behind whatever there is.
        let _stored = self.stream.store(&name, &bytes.into(), None);
    }

    /// How far the caches have noted that they heard.
    pub(super) fn noted(&self) -> impl Iterator<Item = Noted> {
        self.caches.iter().filter_map(|cache| cache.noted.as_ref().map(|(noted, _)| *noted))
    }
}
