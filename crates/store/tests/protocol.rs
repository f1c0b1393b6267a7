//! The protocol between statements and commits of many rows, model-checked.
//!
//! Each model is one encounter, with the orderings of the shipping code (`src/versions/order.rs` is compiled into this
//! test): statement x commit, statement x purge of old versions, statement x commit that stops keeping, and a commit's
//! word between who seals it and who meets its mark. loom runs each through every interleaving and every value that a
//! weakly ordered processor could show, at most three preemptions apart. Then each ordering is weakened in turn: some
//! model must fail, or [`NOT_ALONE`] says why not.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test that fails says where")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence as loom_fence};
use loom::sync::{Arc, Mutex};
use loom::thread;

#[path = "../src/versions/order.rs"]
mod order;

/// Preemptions in one run: more find nothing in so small models, and take minutes.
const PREEMPTIONS: usize = 3;

macro_rules! sites {
    ($($name:ident = $constant:ident,)*) => {
        /// A place in the protocol that has an ordering.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Site { $($name,)* }

        const SITES: &[Site] = &[$(Site::$name,)*];

        fn shipping(site: Site) -> Ordering {
            match site { $(Site::$name => order::$constant,)* }
        }
    };
}

sites! {
    FlightStore = FLIGHT_STORE,
    FlightFence = FLIGHT_FENCE,
    FlightLoad = FLIGHT_LOAD,
    ActiveFence = ACTIVE_FENCE,
    PublishedStore = PUBLISHED_STORE,
    PublishedLoad = PUBLISHED_LOAD,
    PurgeFence = PURGE_FENCE,
    KeptStore = KEPT_STORE,
    KeptLoad = KEPT_LOAD,
    GiveUpFence = GIVE_UP_FENCE,
    GivenUpStore = GIVEN_UP_STORE,
    GivenUpLoad = GIVEN_UP_LOAD,
    KeepStore = KEEP_STORE,
    KeepLoad = KEEP_LOAD,
    NotesFence = NOTES_FENCE,
    NotesStore = NOTES_STORE,
    NotesLoad = NOTES_LOAD,
    NotesAgain = NOTES_AGAIN,
}

/// Orderings that no model misses alone, each with what stands in for it: some model holds without that, and fails
/// without both.
const NOT_ALONE: &[(Site, &[Site], &str)] = &[
    (
        Site::FlightStore,
        &[],
        "each store of the word is followed by a fence, or by the version of the notes or the number of commits, which release",
    ),
    (Site::FlightLoad, &[Site::NotesAgain], "the fence behind the notes acquires"),
    (
        Site::NotesAgain,
        &[Site::FlightLoad],
        "the last note was loaded with Acquire, which keeps the second look behind it",
    ),
    (Site::PublishedLoad, &[], "the fence behind it acquires"),
    (Site::KeptStore, &[], "the slot is stored after it, with Release"),
    (Site::KeptLoad, &[], "the slot was loaded before it, with Acquire"),
    (
        Site::GivenUpStore,
        &[],
        "the slot is stored after it, with Release, by this thread or by one that sees it keep nothing",
    ),
    (Site::GivenUpLoad, &[], "the slot was loaded before it, with Acquire"),
];

/// Which orderings are weakened in this run.
type Weak = &'static [Site];

fn at(weak: Weak, site: Site) -> Ordering {
    if weak.contains(&site) { Ordering::Relaxed } else { shipping(site) }
}

fn fence(weak: Weak, site: Site) {
    // A fence has no weaker form than none.
    if !weak.contains(&site) {
        loom_fence(shipping(site));
    }
}

/// A model: what it is called, and the run.
type Model = (&'static str, fn(Weak));

const MODELS: &[Model] = &[
    ("statement x commit", begin_together),
    ("statement x purge", purge),
    ("statement x two commits", notes),
    ("statement x commit that stops keeping", stop_keeping),
];

/// What one slot of the index names: the version before the commit, or the commit's.
const OLD: u64 = 1;
const NEW: u64 = 2;

/// A commit's word: nothing in flight, in flight without keeping, in flight and keeping.
const NONE: u64 = 0;
const BARE: u64 = 2;
const KEEPS: u64 = 3;

/// What a statement found in a commit's word when it began.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Noted {
    /// It waits and begins again.
    Waits,
    /// It sees the commit.
    Sees,
    /// It needs the versions before.
    Unseen,
}

fn noted(word: u64) -> Noted {
    match word {
        NONE => Noted::Sees,
        BARE => Noted::Waits,
        _ => Noted::Unseen,
    }
}

/// A statement and a commit begin together: of the two, one sees the other.
fn begin_together(weak: Weak) {
    struct World {
        flight: AtomicU64,
        active: AtomicU64,
        kept: AtomicU64,
        slot: AtomicU64,
    }
    let world = Arc::new(World {
        flight: AtomicU64::new(NONE),
        active: AtomicU64::new(0),
        kept: AtomicU64::new(0),
        slot: AtomicU64::new(OLD),
    });
    let commit = Arc::clone(&world);
    let commit = thread::spawn(move || {
        commit.flight.store(BARE, at(weak, Site::FlightStore));
        fence(weak, Site::FlightFence);
        if commit.active.load(Ordering::Relaxed) > 0 {
            commit.flight.store(KEEPS, at(weak, Site::FlightStore));
            commit.kept.fetch_add(1, at(weak, Site::KeptStore));
        }
        // The slot's own orderings are the arena's.
        commit.slot.store(NEW, Ordering::Release);
    });
    world.active.fetch_add(1, Ordering::Relaxed);
    fence(weak, Site::ActiveFence);
    let begun = noted(world.flight.load(at(weak, Site::FlightLoad)));
    let slot = world.slot.load(Ordering::Acquire);
    // Where it was not in flight yet, the commit has seen the statement, and keeps for it.
    if begun != Noted::Waits && slot == NEW {
        assert!(world.kept.load(at(weak, Site::KeptLoad)) > 0, "a replaced version was not kept");
    }
    commit.join().unwrap();
}

/// A commit ends, and what it kept is dropped, while a statement begins that may still have noted it.
fn purge(weak: Weak) {
    struct World {
        flight: AtomicU64,
        published: AtomicU64,
        active: AtomicU64,
        kept: AtomicBool,
    }
    let world = Arc::new(World {
        flight: AtomicU64::new(KEEPS),
        published: AtomicU64::new(0),
        active: AtomicU64::new(0),
        kept: AtomicBool::new(true),
    });
    let (commit, cleaner) = (Arc::clone(&world), Arc::clone(&world));
    let commit = thread::spawn(move || {
        commit.flight.store(NONE, at(weak, Site::FlightStore));
        commit.published.fetch_add(1, at(weak, Site::PublishedStore));
    });
    let cleaner = thread::spawn(move || {
        let published = cleaner.published.load(at(weak, Site::PublishedLoad));
        fence(weak, Site::PurgeFence);
        let seen = match cleaner.active.load(Ordering::Acquire) {
            0 => published,
            begin => published.min(begin - 1),
        };
        if seen >= 1 {
            // Under the shard's lock, as the look below.
            cleaner.kept.store(false, Ordering::SeqCst);
        }
    });
    let begin = world.published.load(Ordering::Relaxed) + 1;
    world.active.store(begin, Ordering::Relaxed);
    fence(weak, Site::ActiveFence);
    let unseen = noted(world.flight.load(at(weak, Site::FlightLoad))) == Noted::Unseen;
    commit.join().unwrap();
    cleaner.join().unwrap();
    assert!(!unseen || world.kept.load(Ordering::SeqCst), "a version that is needed was dropped");
}

/// A statement notes a commit, and the newest stamp, while the commit ends: both belong together.
fn notes(weak: Weak) {
    struct World {
        version: AtomicU64,
        flight: AtomicU64,
        stamp: AtomicU64,
    }
    let cell = AtomicU64::new;
    let world = Arc::new(World { version: cell(0), flight: cell(NONE), stamp: cell(0) });
    let writer = Arc::clone(&world);
    // Draws its stamp and is in flight with it at once.
    let writer = thread::spawn(move || {
        writer.version.store(1, Ordering::Relaxed);
        fence(weak, Site::NotesFence);
        writer.stamp.fetch_add(1, Ordering::Relaxed);
        writer.flight.store(KEEPS, at(weak, Site::FlightStore));
        writer.version.store(2, at(weak, Site::NotesStore));
    });
    let version = world.version.load(at(weak, Site::NotesLoad));
    if version.is_multiple_of(2) {
        let stamp = world.stamp.load(Ordering::Acquire);
        let flight = world.flight.load(at(weak, Site::FlightLoad));
        fence(weak, Site::NotesAgain);
        if world.version.load(Ordering::Relaxed) == version {
            assert_eq!((stamp, flight), if version == 0 { (0, NONE) } else { (1, KEEPS) }, "torn notes");
        }
    }
    writer.join().unwrap();
}

/// A commit stops keeping: its own thread swaps one row unkept, and another that meets a mark of it a second one.
fn stop_keeping(weak: Weak) {
    struct World {
        flight: AtomicU64,
        stamp: AtomicU64,
        given_up: AtomicU64,
        keep: AtomicBool,
        kept: AtomicU64,
        slots: [AtomicU64; 2],
    }
    let cell = AtomicU64::new;
    let world = Arc::new(World {
        flight: cell(KEEPS),
        stamp: cell(1),
        given_up: cell(0),
        keep: AtomicBool::new(true),
        kept: cell(0),
        slots: [cell(OLD), cell(OLD)],
    });
    let (commit, other) = (Arc::clone(&world), Arc::clone(&world));
    let commit = thread::spawn(move || {
        commit.flight.store(BARE, at(weak, Site::FlightStore));
        fence(weak, Site::GiveUpFence);
        let drawn = commit.stamp.fetch_add(1, Ordering::Relaxed) + 1;
        commit.given_up.fetch_max(drawn, at(weak, Site::GivenUpStore));
        commit.keep.store(false, at(weak, Site::KeepStore));
        commit.slots[0].store(NEW, Ordering::Release);
    });
    let other = thread::spawn(move || {
        if other.keep.load(at(weak, Site::KeepLoad)) {
            other.kept.fetch_add(1, at(weak, Site::KeptStore));
        }
        other.slots[1].store(NEW, Ordering::Release);
    });
    let stamp = world.stamp.load(Ordering::Acquire);
    if noted(world.flight.load(at(weak, Site::FlightLoad))) == Noted::Unseen {
        for slot in &world.slots {
            if slot.load(Ordering::Acquire) == NEW {
                let given_up = world.given_up.load(at(weak, Site::GivenUpLoad));
                let fails = given_up != 0 && given_up > stamp;
                let kept = world.kept.load(at(weak, Site::KeptLoad)) > 0;
                assert!(fails || kept, "a row is missed, and the statement goes on");
            }
        }
    }
    commit.join().unwrap();
    other.join().unwrap();
}

/// States of a commit's word.
const STAGING: u64 = 1;
const DOOMED: u64 = 2;
const COMMITTED: u64 = 3;

/// A write of one row meets the mark of a commit that is being sealed: it dooms the commit, which learns of it, or it
/// applies the marked version first. Either way the write stands. The orderings of the word are the arena's.
fn doom_and_seal(exchange: Ordering, failed: Ordering) {
    struct World {
        word: AtomicU64,
        /// The commit's stamp, which is drawn before it is sealed.
        stamp: AtomicU64,
        /// What the shard's lock guards: whether the mark is there, and the versions that stood in the slot.
        shard: Mutex<(bool, Vec<u64>)>,
        lost: Mutex<bool>,
    }
    const WRITE: u64 = 9;
    let world = Arc::new(World {
        word: AtomicU64::new(STAGING),
        stamp: AtomicU64::new(0),
        shard: Mutex::new((true, Vec::new())),
        lost: Mutex::new(false),
    });
    let writer = Arc::clone(&world);
    let writer = thread::spawn(move || {
        let mut shard = writer.shard.lock().unwrap();
        if shard.0 {
            let doomed = writer.word.compare_exchange(STAGING, DOOMED, exchange, failed);
            // As `settle_mark`: doomed by this write, or by another before it.
            if matches!(doomed, Ok(_) | Err(DOOMED)) {
                *writer.lost.lock().unwrap() = true;
            } else {
                let stamp = writer.stamp.load(Ordering::Relaxed);
                assert_ne!(stamp, 0, "a version is applied whose stamp is not known");
                shard.1.push(stamp);
            }
            shard.0 = false;
        }
        shard.1.push(WRITE);
    });
    world.stamp.store(5, Ordering::Relaxed);
    let sealed = world.word.compare_exchange(STAGING, COMMITTED, exchange, failed).is_ok();
    {
        let mut shard = world.shard.lock().unwrap();
        if std::mem::take(&mut shard.0) && sealed {
            shard.1.push(5);
        }
    }
    if !sealed {
        assert!(*world.lost.lock().unwrap(), "a commit was doomed and is not told by whom");
    }
    writer.join().unwrap();
    let shard = world.shard.lock().unwrap();
    let versions: &[u64] = &shard.1;
    // Where the commit's own thread came to the mark last, the write was not there yet: then it comes after.
    assert_eq!(versions.last(), Some(&WRITE), "an acknowledged write was undone");
    assert_eq!(versions.len(), if sealed { 2 } else { 1 });
}

fn check(model: impl Fn() + Send + Sync + 'static) -> bool {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    catch_unwind(AssertUnwindSafe(|| builder.check(model))).is_ok()
}

/// Whether a model holds with these orderings weakened.
fn holds((_, model): &Model, weak: Weak) -> bool {
    let model = *model;
    check(move || model(weak))
}

/// The first model that fails.
fn failing(weak: Weak) -> Option<&'static str> {
    MODELS.iter().find(|model| !holds(model, weak)).map(|(name, _)| *name)
}

/// A list that lives as long as the models ask for.
fn leaked(sites: Vec<Site>) -> Weak {
    Box::leak(sites.into_boxed_slice())
}

#[test]
fn the_protocol_holds_with_the_orderings_that_ship() {
    assert_eq!(failing(&[]), None);
}

#[test]
fn every_ordering_is_needed_or_listed() {
    for &site in SITES {
        let found = failing(leaked(vec![site]));
        println!("{site:?} weakened: {}", found.unwrap_or("nothing fails"));
        let listed = NOT_ALONE.iter().find(|(own, ..)| *own == site);
        assert_eq!(found.is_none(), listed.is_some(), "{site:?}: {found:?}");
        if let Some((_, others, reason)) = listed.filter(|(_, others, _)| !others.is_empty()) {
            let together = leaked([&[site], *others].concat());
            let missed = MODELS.iter().find(|model| holds(model, others) && !holds(model, together));
            println!("  {reason}; without {others:?} too: {:?}", missed.map(|(name, _)| name));
            assert!(missed.is_some(), "{site:?} with {others:?}");
        }
    }
}

/// The arena exchanges the word with `AcqRel`, and reads it with `Acquire` where that fails.
#[test]
fn of_a_seal_and_a_doom_one_wins_and_the_other_learns_of_it() {
    assert!(check(|| doom_and_seal(Ordering::AcqRel, Ordering::Acquire)));
    assert!(
        !check(|| doom_and_seal(Ordering::Relaxed, Ordering::Acquire)),
        "the stamp needs the seal's Release"
    );
    assert!(!check(|| doom_and_seal(Ordering::AcqRel, Ordering::Relaxed)), "and the Acquire of who was late");
}
