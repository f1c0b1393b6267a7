//! Many caches on a bus that loses, repeats and reorders messages, is emptied, cut and away, and to which others write,
//! while caches are cut off, killed and started again. What is checked is the promise: a cache that says it is fresh
//! since a moment has applied every invalidation that was acknowledged before. The seed is printed; `SEED` replays it,
//! `ROUNDS` says how many worlds there are, and `CACHES` how many caches the largest has.

mod cache;
mod faults;
mod rejoin;
mod rows;
mod stream;
mod world;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::broken::check::{BEGUN, COUNTER, ENDED, GAP, HISTORY, MOVED, OWN_LOST, REPLACED};
use crate::follow::Numbered;
use crate::rejoin::Check;
use world::World;

const STEP_NS: u64 = 50_000_000;
const SECOND_NS: u64 = 1_000_000_000;
const MAX_LAG_NS: u64 = 15 * SECOND_NS;
const KEYS: u16 = 50;
/// Messages that a power loss takes from the stream's end.
const CUTS: Range<usize> = 1..6;

/// What is made wrong, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// It leaves these checks of the product's out.
    LeavesOut(u8),
    TrustsAfterBreaks,
    KeepsWholeTables,
    AnswersAtOnce,
    /// What others told of a row counts, though a write of its own is under way.
    SparesNothing,
    /// It does not hold rows that others give against this.
    Takes(Check),
    /// Rows that others give count more than what was written here and is under way.
    TakesOverOwn,
    /// It gives rows that the bus may not have.
    GivesWhatIsUnderWay,
}

/// The seed of a random test: `SEED` in the environment replays one.
pub(crate) fn seed() -> u64 {
    let seed = told("SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("SEED={seed}");
    seed
}

#[expect(clippy::disallowed_methods, reason = "a test may be told how much it does")]
fn told(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|number| number.parse().unwrap())
}

/// A world after so many steps with faults.
fn broken(seed: u64, numbered: Numbered, caches: usize, steps: usize, mistake: Option<Mistake>) -> World {
    let mut world = World::new(seed, numbered, caches, mistake);
    for _ in 0..steps {
        world.step(true);
        if world.violation.is_some() {
            break;
        }
    }
    world
}

/// Without faults all of them come to one history.
fn heal(world: &mut World) {
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
    let end = world.stream.end();
    assert!(world.noted().all(|noted| noted.seen.sequence <= end), "it has heard more than there is");
}

fn run(seed: u64, numbered: Numbered, caches: usize, steps: usize) -> World {
    let mut world = broken(seed, numbered, caches, steps, None);
    assert_eq!(world.violation, None, "SEED={seed}");
    heal(&mut world);
    assert_eq!(world.violation, None, "SEED={seed}");
    world
}

/// Many worlds. Returns which breaks were found.
fn many_worlds(numbered: Numbered) -> HashMap<String, u64> {
    let seed = seed();
    let (mut checks, mut faults, mut breaks) = (0, HashMap::new(), HashMap::new());
    for round in 0..told("ROUNDS").unwrap_or(6) {
        let world = run(seed.wrapping_add(round), numbered, 5, 2_500);
        checks += world.checks;
        for (fault, count) in world.faults {
            *faults.entry(fault).or_insert(0) += count;
        }
        for (kind, count) in world.breaks {
            *breaks.entry(kind).or_insert(0) += count;
        }
    }
    println!("{checks} checks, {faults:?}, breaks {breaks:?}");
    assert!(checks > 100_000, "{checks}");
    // The others are too seldom to be there in each run.
    assert!(faults.values().sum::<u64>() > 200, "{faults:?}");
    breaks
}

#[test]
fn fresh_caches_have_heard_all_that_was_acknowledged() {
    let breaks = many_worlds(Numbered::OneByOne);
    assert!(["Gap", "Ended", "History", "Begun"].iter().all(|kind| breaks.contains_key(*kind)), "{breaks:?}");
}

/// The same where the messages are in the log of a database.
#[test]
fn fresh_caches_have_heard_all_that_was_acknowledged_in_a_log() {
    let breaks = many_worlds(Numbered::ByPlaces);
    assert!(["Gap", "Moved", "Begun"].iter().all(|kind| breaks.contains_key(*kind)), "{breaks:?}");
}

/// Who makes one of these mistakes breaks the promise in some world. Of the checks some stand for one another: what one
/// cache misses another finds, and says so. The worlds are always the same, so that this test is.
#[test]
fn mistakes_are_found() {
    // Each with a world shortly before the first in which it is found, so that this takes seconds.
    for (mistake, first) in [
        (Mistake::TrustsAfterBreaks, 1),
        (Mistake::AnswersAtOnce, 90),
        (Mistake::KeepsWholeTables, 16),
        (Mistake::LeavesOut(GAP), 8),
        (Mistake::LeavesOut(REPLACED), 1),
        (Mistake::LeavesOut(ENDED | BEGUN), 105),
        (Mistake::LeavesOut(ENDED | HISTORY), 40),
        (Mistake::LeavesOut(COUNTER | OWN_LOST | HISTORY | ENDED | BEGUN), 2),
    ] {
        let finds =
            |seed: &u64| broken(*seed, Numbered::OneByOne, 5, 2_000, Some(mistake)).violation.is_some();
        let found = (first..first + 300).find(finds);
        println!("{mistake:?}: found in world {found:?}");
        assert!(found.is_some(), "{mistake:?} is not found");
    }
}

/// The same in a log, whose places say less: other checks find what is missing.
#[test]
fn mistakes_are_found_in_a_log() {
    for (mistake, first) in [
        (Mistake::TrustsAfterBreaks, 1),
        (Mistake::AnswersAtOnce, 1),
        (Mistake::KeepsWholeTables, 1),
        (Mistake::LeavesOut(REPLACED | ENDED | COUNTER | OWN_LOST | HISTORY | BEGUN), 1),
        (Mistake::LeavesOut(MOVED | REPLACED | ENDED | COUNTER | OWN_LOST | HISTORY | BEGUN), 1),
    ] {
        let finds =
            |seed: &u64| broken(*seed, Numbered::ByPlaces, 5, 2_000, Some(mistake)).violation.is_some();
        let found = (first..first + 300).find(finds);
        println!("{mistake:?}: found in world {found:?}");
        assert!(found.is_some(), "{mistake:?} is not found");
    }
}

#[test]
fn without_faults_nobody_distrusts_anything() {
    for numbered in [Numbered::OneByOne, Numbered::ByPlaces] {
        let mut world = World::new(seed(), numbered, 8, None);
        for _ in 0..600 {
            world.step(false);
        }
        // Each once: when it came.
        let distrusts: Vec<u64> = world.caches.iter().map(|cache| cache.distrusts).collect();
        assert!(distrusts.iter().all(|distrusts| *distrusts == 1), "{distrusts:?} {:?}", world.breaks);
        assert!(world.checks > 10_000, "{}", world.checks);
    }
}

/// The stream has all that the way to a cache loses or repeats.
#[test]
fn a_bad_way_breaks_nothing() {
    let mut world = World::new(seed(), Numbered::OneByOne, 5, None);
    for step in 0..2_000 {
        world.step(false);
        // By then each knows the history.
        if step > 200 && step % 7 == 0 {
            world.lose_on_the_way(step % 5);
        } else if step > 200 && step % 11 == 0 {
            world.begin_delivery_again(step % 5);
        }
    }
    assert!(world.breaks.is_empty(), "{:?}", world.breaks);
    assert_eq!(world.violation, None);
    assert!(world.caches.iter().all(|cache| cache.distrusts == 1));
    assert!(world.checks > 10_000, "{}", world.checks);
}

#[test]
fn hundreds_of_caches_come_to_one_history() {
    let caches = usize::try_from(told("CACHES").unwrap_or(300)).unwrap();
    let world = run(seed(), Numbered::OneByOne, caches, 40);
    println!("{} messages, {} checks, {:?}", world.stream.end(), world.checks, world.faults);
}
