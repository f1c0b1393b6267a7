//! Many caches on a bus that loses, repeats and reorders messages, is emptied, cut and away, while caches are cut off,
//! killed and started again. What is checked is the promise: a cache that says it is fresh since a moment has applied
//! every invalidation that was acknowledged before. The seed is printed; `SEED` replays it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use engine::{KeyChange, Operation, Outbox, TableName};

use crate::chain::Seen;
use crate::follow::Heard;
use crate::member::{Joined, Member};

const STEP_NS: u64 = 50_000_000;
const SECOND_NS: u64 = 1_000_000_000;
const MAX_LAG_NS: u64 = 15 * SECOND_NS;
const KEYS: u16 = 50;

/// A stream.
#[derive(Default)]
struct Stream {
    messages: Vec<Arc<[u8]>>,
    names: HashMap<String, u64>,
    /// Messages that expired at its beginning.
    expired: u64,
}

impl Stream {
    fn end(&self) -> u64 {
        self.expired + self.messages.len() as u64
    }

    /// Stores a message: its number, and whether it was there.
    fn store(&mut self, name: &str, bytes: &Arc<[u8]>, behind: Option<u64>) -> Result<(u64, bool), ()> {
        if let Some(known) = self.names.get(name) {
            return Ok((*known, true));
        }
        if behind.is_some_and(|behind| behind != self.end()) {
            return Err(());
        }
        self.messages.push(Arc::clone(bytes));
        self.names.insert(name.to_owned(), self.end());
        Ok((self.end(), false))
    }

    fn get(&self, sequence: u64) -> Option<&Arc<[u8]>> {
        let at = sequence.checked_sub(self.expired + 1)?;
        self.messages.get(usize::try_from(at).ok()?)
    }

    fn expire(&mut self, count: usize) {
        let count = count.min(self.messages.len());
        self.messages.drain(..count);
        self.expired += count as u64;
    }

    /// What was stored last is gone, as after a power loss.
    fn cut(&mut self, count: usize) {
        let left = self.messages.len().saturating_sub(count);
        self.messages.truncate(left);
        let end = self.end();
        self.names.retain(|_, sequence| *sequence <= end);
    }
}

/// A cache.
struct Cache {
    member: Member,
    outbox: Outbox,
    /// The version of each key that it has.
    rows: HashMap<u16, u64>,
    /// What it wrote down for the next process.
    noted: Option<Seen>,
    /// The next message that the bus gives it; none: it has to join.
    next: Option<u64>,
    cut_off_until: u64,
    distrusts: u64,
    distrusted_ns: u64,
    /// What is in its outbox: keys, and the versions that they had then.
    told: Vec<(u16, u64)>,
    /// What is under way.
    flying: Vec<(u16, u64)>,
}

impl Cache {
    fn new(node: u64, noted: Option<Seen>, now: u64) -> Self {
        Self {
            member: Member::new(node, "cache", noted),
            outbox: Outbox::default(),
            rows: HashMap::new(),
            noted,
            next: None,
            cut_off_until: 0,
            distrusts: 0,
            distrusted_ns: now,
            told: Vec::new(),
            flying: Vec::new(),
        }
    }

    fn distrust(&mut self, now: u64) {
        self.rows.clear();
        self.distrusts += 1;
        self.distrusted_ns = now;
    }

    fn apply(&mut self, operations: Vec<Operation>) {
        for operation in operations {
            match operation {
                Operation::Key { key, .. } => {
                    self.rows.remove(&u16::from_le_bytes([key[0], key[1]]));
                }
                Operation::Whole { .. } => self.rows.clear(),
                Operation::Statement { .. } => panic!("nobody says that here"),
            }
        }
    }
}

struct World {
    random: fastrand::Rng,
    now: u64,
    stream: Stream,
    caches: Vec<Cache>,
    /// The version of each key at its origin.
    origin: HashMap<u16, u64>,
    /// Acknowledged invalidations: key, version that must be at least, when.
    acknowledged: Vec<(u16, u64, u64)>,
    /// Since when the stream may have lost what it had acknowledged.
    cut_ns: Option<u64>,
    away_until: u64,
    faults: HashMap<&'static str, u64>,
    first_break: Option<String>,
    checks: u64,
}

fn table() -> TableName {
    TableName { name: "page".into(), likeness: 1 }
}

impl World {
    fn new(seed: u64, caches: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let caches = (0..caches).map(|_| Cache::new(random.u64(1..), None, 0)).collect();
        Self {
            random,
            now: SECOND_NS,
            stream: Stream::default(),
            caches,
            origin: HashMap::new(),
            acknowledged: Vec::new(),
            cut_ns: None,
            away_until: 0,
            faults: HashMap::new(),
            first_break: None,
            checks: 0,
        }
    }

    fn chance(&mut self, one_in: u32) -> bool {
        self.random.u32(..one_in) == 0
    }

    fn count(&mut self, fault: &'static str) {
        *self.faults.entry(fault).or_default() += 1;
    }

    fn step(&mut self, faulty: bool) {
        self.now += STEP_NS;
        if faulty {
            self.break_something();
        }
        for at in 0..self.caches.len() {
            // As many commands, however many caches there are.
            if self.caches.len() < 10 || self.random.usize(..self.caches.len()) < 10 {
                self.use_cache(at);
            }
            self.turn(at, faulty);
            self.check(at);
        }
        let (now, oldest) = (self.now, self.now.saturating_sub(60 * SECOND_NS));
        self.acknowledged.retain(|(_, _, when)| *when >= oldest);
        self.cut_ns = self.cut_ns.filter(|cut| now < cut + 2 * MAX_LAG_NS);
    }

    fn break_something(&mut self) {
        let scale = 400;
        if self.chance(scale) {
            self.stream.expire(1_000_000);
            self.count("expired");
        }
        if self.chance(scale * 2) {
            self.stream = Stream::default();
            self.cut_ns = Some(self.now);
            self.count("emptied");
        }
        if self.chance(scale * 2) {
            let count = self.random.usize(1..6);
            self.stream.cut(count);
            self.cut_ns = Some(self.now);
            self.count("cut");
        }
        if self.chance(scale * 2) {
            self.away_until = self.now + self.random.u64(1..20) * SECOND_NS;
            self.count("away");
        }
        let at = self.random.usize(..self.caches.len());
        if self.chance(scale / 4) {
            self.caches[at].cut_off_until = self.now + self.random.u64(1..40) * SECOND_NS;
            self.count("cut off");
        }
        if self.chance(scale / 4) {
            let node = self.random.u64(1..);
            let warm = self.random.bool();
            let (now, old) = (self.now, &mut self.caches[at]);
            let rows = std::mem::take(&mut old.rows);
            let noted = old.noted.filter(|_| warm);
            *old = Cache::new(node, noted, now);
            // Rows of before whose history is known stay.
            if noted.is_some() {
                old.rows = rows;
            }
            self.count(if warm { "started warm" } else { "started cold" });
        }
    }

    /// A client fills or invalidates.
    fn use_cache(&mut self, at: usize) {
        let key = self.random.u16(..KEYS);
        if self.chance(3) {
            let version = self.origin.get(&key).copied().unwrap_or(0);
            self.caches[at].rows.insert(key, version);
        } else if self.chance(6) {
            let version = self.origin.entry(key).or_default();
            *version += 1;
            let (version, cache) = (*version, &mut self.caches[at]);
            cache.rows.remove(&key);
            let operation =
                Operation::Key { table: table(), key: key.to_le_bytes().into(), change: KeyChange::Delete };
            cache.outbox.push(vec![operation], None, self.now);
            cache.told.push((key, version));
        }
    }

    fn is_reached(&self, at: usize) -> bool {
        self.now >= self.away_until && self.now >= self.caches[at].cut_off_until
    }

    fn turn(&mut self, at: usize, faulty: bool) {
        if self.is_reached(at) {
            if self.caches[at].next.is_none() {
                self.join(at, faulty);
            }
            if self.caches[at].next.is_some() {
                self.deliver(at, faulty);
                self.send(at, faulty);
            }
        } else {
            self.caches[at].next = None;
        }
        // What is not fresh is not believed.
        let (now, cache) = (self.now, &mut self.caches[at]);
        let fresh = cache.member.follower().fresh_ns().is_some_and(|fresh| now - fresh <= MAX_LAG_NS);
        if fresh {
            cache.distrusted_ns = now;
        } else if now - cache.distrusted_ns >= MAX_LAG_NS {
            cache.distrust(now);
        }
        if self.random.u32(..20) == 0 {
            let cache = &mut self.caches[at];
            cache.noted = cache.member.follower().seen();
        }
    }

    /// Sends the message that is under way. Says where it is stored; none: it was known before, or nothing came back.
    fn publish(&mut self, at: usize, faulty: bool) -> Option<u64> {
        let flight = self.caches[at].member.flight()?.clone();
        if faulty && self.chance(40) {
            return None;
        }
        let stored = self.stream.store(&flight.name, &flight.bytes, flight.behind);
        if faulty && self.chance(40) {
            return None;
        }
        let Ok((sequence, known)) = stored else {
            self.caches[at].member.refused();
            return None;
        };
        let cache = &mut self.caches[at];
        let result = cache.member.acknowledged(&cache.outbox, (!known).then_some(sequence));
        let now = self.now;
        self.acknowledged.extend(cache.flying.drain(..).map(|(key, version)| (key, version, now)));
        if let Err(broken) = result {
            let cache = &mut self.caches[at];
            cache.member.lose_history(&broken);
            cache.next = None;
            return None;
        }
        (!known).then_some(sequence)
    }

    fn join(&mut self, at: usize, faulty: bool) {
        if self.caches[at].member.flight().is_some() {
            self.publish(at, faulty);
        }
        let (now, cache) = (self.now, &mut self.caches[at]);
        if cache.member.flight().is_some() {
            return;
        }
        cache.member.beat(&cache.outbox, now);
        let Some(end) = self.publish(at, faulty) else { return };
        let cache = &mut self.caches[at];
        if let Joined::Anew(_) = cache.member.join(end) {
            cache.noted = None;
            cache.distrust(now);
        }
        cache.next = Some(cache.member.follower().last() + 1);
    }

    fn deliver(&mut self, at: usize, faulty: bool) {
        for _ in 0..self.random.usize(1..200) {
            let Some(mut next) = self.caches[at].next else { return };
            // Delivery begins at the first message that is left.
            next = next.max(self.stream.expired + 1);
            if faulty && self.chance(3_000) {
                next += 1;
                self.count("lost on the way");
            }
            let Some(bytes) = self.stream.get(next).cloned() else { return };
            let again = faulty && self.chance(3_000);
            if again {
                self.count("delivered twice");
            }
            let cache = &mut self.caches[at];
            cache.next = Some(next + u64::from(!again));
            match cache.member.hear(next, &bytes, self.now) {
                Ok(Heard::Apply(operations)) => cache.apply(operations),
                Ok(Heard::Own | Heard::Nothing) => {}
                Ok(Heard::Unreadable(why)) => panic!("{why}"),
                Err(broken) => {
                    self.first_break.get_or_insert_with(|| format!("cache {at}: {broken}"));
                    cache.member.lose_history(&broken);
                    cache.noted = None;
                    cache.next = None;
                    return;
                }
            }
        }
    }

    fn send(&mut self, at: usize, faulty: bool) {
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
        if self.cut_ns.is_some() {
            return;
        }
        for (key, version, when) in &self.acknowledged {
            // Within a step nobody knows what came first.
            if *when < fresh
                && let Some(own) = cache.rows.get(key)
            {
                self.checks += 1;
                assert!(
                    own >= version,
                    "cache {at} has version {own} of key {key}, and {version} was acknowledged"
                );
            }
        }
    }
}

/// The seed of a random test: `SEED` in the environment replays one.
pub(crate) fn seed() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a test may be told a seed")]
    let told = std::env::var("SEED");
    let seed = told.map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    seed
}

fn run(seed: u64, caches: usize, steps: usize) -> World {
    let mut world = World::new(seed, caches);
    for _ in 0..steps {
        world.step(true);
    }
    // Without faults all of them come to one history.
    world.away_until = 0;
    world.caches.iter_mut().for_each(|cache| cache.cut_off_until = 0);
    for _ in 0..(25 * SECOND_NS / STEP_NS) {
        world.step(false);
    }
    let epochs: HashSet<_> = world.caches.iter().map(|cache| cache.member.follower().epoch()).collect();
    assert!(epochs.len() == 1 && !epochs.contains(&None), "histories: {epochs:?}");
    for cache in &world.caches {
        let oldest = cache.outbox.oldest_ns().unwrap_or(world.now);
        assert!(world.now - oldest <= 2 * SECOND_NS, "it does not send what it has to tell");
        let fresh = cache.member.follower().fresh_ns().unwrap();
        let beat = SECOND_NS.max(SECOND_NS / 100 * world.caches.len() as u64);
        assert!(world.now - fresh <= 4 * beat, "fresh since {} ms", (world.now - fresh) / 1_000_000);
    }
    world
}

#[test]
fn fresh_caches_have_heard_all_that_was_acknowledged() {
    let seed = seed();
    let (mut checks, mut faults) = (0, HashMap::new());
    for round in 0..6 {
        let world = run(seed.wrapping_add(round), 5, 2_500);
        checks += world.checks;
        for (fault, count) in world.faults {
            *faults.entry(fault).or_insert(0) += count;
        }
    }
    println!("{checks} checks, {faults:?}");
    assert!(checks > 100_000, "{checks}");
    assert!(faults.len() >= 8, "{faults:?}");
}

#[test]
fn without_faults_nobody_distrusts_anything() {
    let mut world = World::new(seed(), 8);
    for _ in 0..600 {
        world.step(false);
    }
    // Each once: when it came.
    let distrusts: Vec<u64> = world.caches.iter().map(|cache| cache.distrusts).collect();
    assert!(distrusts.iter().all(|distrusts| *distrusts == 1), "{distrusts:?} {:?}", world.first_break);
    assert!(world.checks > 10_000, "{}", world.checks);
}

#[test]
fn hundreds_of_caches_come_to_one_history() {
    let world = run(seed(), 300, 40);
    println!("{} messages, {:?}", world.stream.end(), world.faults);
}
