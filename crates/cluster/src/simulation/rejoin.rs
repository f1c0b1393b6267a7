//! Caches that lack rows take those of others, by words that are lost, late, repeated and garbled, while clients write
//! and remove rows everywhere. What is promised of rows holds all the while; and where one cache has all of them, each
//! other one has all of them in the end.

use std::sync::Arc;

use engine::{Outbox, Replica, TableName};
use store::GivePlace;

use super::cache::Cache;
use super::rows::{KEYS, NAME, key_of, number_of, replica, table};
use super::world::World;
use super::{MAX_LAG_NS, Mistake, SECOND_NS, STEP_NS, seed, told};
use crate::carrier::To;
use crate::follow::Numbered;
use crate::rejoin::{At, Check, Out, Page, Put, Settled, Standing, Tables, Wanted, Word};

/// Rows that are given at once: few, so that much happens in between.
const PAGE_ROWS: usize = 3;

/// A word on its way.
pub(super) struct Letter {
    to: To,
    due: u64,
    bytes: Arc<[u8]>,
}

/// The rows of a cache that travel.
struct Held<'c> {
    rows: &'c mut Rows,
    outbox: &'c Outbox,
    wants: bool,
    mistake: Option<Mistake>,
}

type Rows = std::collections::HashMap<u16, usize>;

impl Held<'_> {
    fn is_under_way(&self, key: u16) -> bool {
        self.outbox.is_under_way(NAME, Some(&key.to_le_bytes()))
    }
}

impl Tables for Held<'_> {
    fn standing(&self, _: &TableName) -> Standing {
        if self.wants { Standing::Lacks } else { Standing::Has(self.rows.len() as u64) }
    }

    fn changes_any_key(&self, _: &TableName) -> bool {
        self.outbox.changes_any_key(NAME)
    }

    fn read(&self, _: &TableName, from: Option<GivePlace>) -> Option<Page> {
        let begin = from.map_or(0, |place| place.group);
        let mut rows = Vec::new();
        for key in u16::try_from(begin).ok()?..KEYS {
            if rows.len() == PAGE_ROWS {
                let place = GivePlace { groups: u64::from(KEYS), group: u64::from(key), behind: None };
                return Some((rows, Some(place)));
            }
            let gives = self.mistake == Some(Mistake::GivesWhatIsUnderWay) || !self.is_under_way(key);
            if let Some(number) = self.rows.get(&key).filter(|_| gives) {
                rows.push((key.to_le_bytes().into(), replica(*number)));
            }
        }
        Some((rows, None))
    }

    fn put(&mut self, _: &TableName, rows: &[(Box<[u8]>, Replica)]) -> Put {
        let mut taken = 0;
        for (key, row) in rows {
            let (key, over) = (key_of(key), self.mistake == Some(Mistake::TakesOverOwn));
            if over || !self.is_under_way(key) && !self.rows.contains_key(&key) {
                self.rows.insert(key, number_of(row));
                taken += 1;
            }
        }
        Put::Done { taken, evicted: 0 }
    }
}

impl Cache {
    /// It lacks rows from now on.
    pub(super) fn want_rows(&mut self) {
        self.wants = true;
        self.rejoin.want(vec![Wanted { table: table(), anew: true }]);
    }

    fn split(&mut self, now_ns: u64) -> (&mut crate::rejoin::Rejoin, At<'_>, Held<'_>) {
        let follower = self.member.follower();
        let fresh = follower.fresh_ns().is_some_and(|fresh| now_ns.saturating_sub(fresh) <= MAX_LAG_NS);
        let at = At { follower, now_ns, fresh };
        let held =
            Held { rows: &mut self.held, outbox: &self.outbox, wants: self.wants, mistake: self.mistake };
        (&mut self.rejoin, at, held)
    }

    fn hear_word(&mut self, word: Word, now_ns: u64) -> Option<Out> {
        let (rejoin, at, held) = self.split(now_ns);
        rejoin.hear(word, at, &held)
    }

    fn get_rows(&mut self, now_ns: u64) -> Vec<Out> {
        let (rejoin, at, mut held) = self.split(now_ns);
        rejoin.turn(at, &mut held).0
    }
}

impl World {
    /// A cache hears words, takes rows and gives some.
    pub(super) fn exchange_rows(&mut self, at: usize, faulty: bool) {
        let (own, now) = (self.caches[at].member.node(), self.now);
        let is_for =
            |letter: &mut Letter| letter.due <= now && (letter.to == To::All || letter.to == To::One(own));
        let heard: Vec<Arc<[u8]>> =
            self.letters[at].extract_if(.., is_for).map(|letter| letter.bytes).collect();
        for bytes in heard {
            if let Ok(word) = Word::decode(&bytes)
                && word.node != own
                && let Some(out) = self.caches[at].hear_word(word, now)
            {
                self.carry_out(at, out, faulty);
            }
        }
        for out in self.caches[at].get_rows(now) {
            self.carry_out(at, out, faulty);
        }
        // Those to a process of before.
        self.letters[at].retain(|letter| letter.due + 2 * SECOND_NS > now);
    }

    fn carry_out(&mut self, at: usize, out: Out, faulty: bool) {
        match out {
            Out::Say(to, what) => {
                let word = Word { node: self.caches[at].member.node(), what };
                self.say(to, &word.encode().into(), faulty);
            }
            Out::Settled(_, how) => {
                let cache = &mut self.caches[at];
                cache.wants = false;
                if let Settled::Taken { rows, .. } = &how {
                    self.taken.0 += 1;
                    self.taken.1 += rows;
                }
                cache.taken = Some(how);
            }
            Out::Differs(..) => panic!("all tables are alike"),
        }
    }

    /// A word goes on its way to each cache, or not.
    fn say(&mut self, to: To, bytes: &Arc<[u8]>, faulty: bool) {
        for at in 0..self.caches.len() {
            if !self.is_reached(at) || faulty && self.chance(12) {
                continue;
            }
            let copies = if faulty && self.chance(12) { 2 } else { 1 };
            for _ in 0..copies {
                let late = if faulty { self.random.u64(..12) } else { 0 };
                let bytes = if faulty && self.chance(40) { self.garble(bytes) } else { Arc::clone(bytes) };
                self.letters[at].push(Letter { to, due: self.now + late * STEP_NS, bytes });
            }
        }
    }

    /// A word that cannot be read. One that can be would be a lie, and nobody lies.
    fn garble(&mut self, bytes: &[u8]) -> Arc<[u8]> {
        bytes[..self.random.usize(..bytes.len())].into()
    }
}

/// Caches that start cold, with words that go wrong, while clients write everywhere; the stream itself is good, and the
/// first cache stays. Then nobody writes, and nothing goes wrong.
fn run(seed: u64, mistake: Option<Mistake>) -> World {
    let mut world = World::new(seed, Numbered::OneByOne, 4, mistake);
    world.follows_rows = true;
    for step in 0..2_500 {
        // Seldom, so that most rows come from other caches and not of the stream.
        world.writes_rows = step > 100 && world.chance(6);
        world.step_with_words(step > 200);
        if world.violation.is_some() {
            return world;
        }
    }
    world.writes_rows = false;
    (0..800).for_each(|_| world.step(false));
    world.check_equal();
    world
}

impl World {
    fn step_with_words(&mut self, faulty: bool) {
        if faulty && self.chance(60) {
            let at = self.random.usize(1..self.caches.len());
            self.start_again(at, false);
            self.count("started cold");
        }
        if faulty && self.chance(20) {
            let at = self.random.usize(..self.caches.len());
            self.caches[at].slow_until = self.now + self.random.u64(1..20) * STEP_NS;
            self.count("slow");
        }
        self.bad_words = faulty;
        self.step(false);
        self.bad_words = false;
    }
}

#[test]
fn cold_caches_take_the_rows_of_others() {
    let seed = seed();
    let (mut checks, mut taken, mut rows) = (0, 0, 0);
    for round in 0..told("ROUNDS").unwrap_or(5) {
        let seed = seed.wrapping_add(round);
        let world = run(seed, None);
        assert_eq!(world.violation, None, "SEED={seed} {:?}", world.faults);
        let [first, others @ ..] = &world.caches[..] else { panic!("there are four") };
        for cache in others {
            assert!(!cache.wants, "SEED={seed}: it still lacks rows");
            let is_whole = matches!(cache.taken, Some(Settled::Taken { .. }));
            assert!(!is_whole || cache.held == first.held, "SEED={seed} {:?}", cache.taken);
        }
        checks += world.checks;
        taken += world.taken.0;
        rows += world.taken.1;
    }
    println!("{checks} checks, {taken} times {rows} rows were taken");
    assert!(checks > 50_000 && taken > 30 && rows > 60, "{checks} {taken} {rows}");
}

/// Without faults it takes a second or two, and each row is there.
#[test]
fn a_cold_cache_has_all_rows_soon() {
    let mut world = World::new(seed(), Numbered::OneByOne, 3, None);
    (0..200).for_each(|_| world.step(false));
    world.follows_rows = true;
    (0..KEYS).for_each(|key| world.put_row(0, key));
    (0..40).for_each(|_| world.step(false));
    world.start_again(2, false);
    (0..60).for_each(|_| world.step(false));
    let [first, _, last] = &world.caches[..] else { panic!("there are three") };
    assert_eq!((first.held.len(), &first.held), (KEYS.into(), &last.held));
    assert!(matches!(&last.taken, Some(Settled::Taken { rows, .. }) if *rows == u64::from(KEYS)));
}

/// Who makes one of these mistakes breaks a promise in some world.
#[test]
fn mistakes_with_rows_that_are_given_are_found() {
    for mistake in [
        Mistake::Takes(Check::Keys),
        Mistake::Takes(Check::Statements),
        Mistake::Takes(Check::Place),
        Mistake::TakesOverOwn,
        Mistake::GivesWhatIsUnderWay,
    ] {
        let found = (1..100).find(|seed| run(*seed, Some(mistake)).violation.is_some());
        println!("{mistake:?}: found in world {found:?}");
        assert!(found.is_some(), "{mistake:?} is not found");
    }
}
