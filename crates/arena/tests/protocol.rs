//! The protocol between writers and readers without a lock, model-checked.
//!
//! Each model is one encounter of the protocol, with the orderings of the shipping code (`src/order.rs` is compiled into
//! this test): read x replace x recycle x reuse, read x split, read x overflow, read x restart. loom runs it through
//! every interleaving and every value that a weakly ordered processor could show, at most three preemptions apart. Then
//! each ordering is weakened in turn: some model must fail, or [`NOT_ALONE`] says why not.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that fails says where")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence as loom_fence};
use loom::sync::{Arc, Mutex};
use loom::thread;

#[path = "../src/order.rs"]
mod order;

/// Preemptions in one run: more find nothing in so small models, and take minutes.
const PREEMPTIONS: usize = 3;
/// Rounds of a reader before it says that it is busy.
const ROUNDS: usize = 2;

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
    SlotStore = SLOT_STORE,
    SlotLoad = SLOT_LOAD,
    SlotAgain = SLOT_AGAIN,
    GenerationStore = GENERATION_STORE,
    GenerationLoad = GENERATION_LOAD,
    RecycleFence = RECYCLE_FENCE,
    WriteFence = WRITE_FENCE,
    ReadFence = READ_FENCE,
    IndexStore = INDEX_STORE,
    IndexLoad = INDEX_LOAD,
    LinkStore = LINK_STORE,
    LinkLoad = LINK_LOAD,
    SplitFence = SPLIT_FENCE,
    VersionStore = VERSION_STORE,
    VersionLoad = VERSION_LOAD,
    MissFence = MISS_FENCE,
    ProvedStore = PROVED_STORE,
    ProvedLoad = PROVED_LOAD,
    Left = LEFT,
    PendingStore = PENDING_STORE,
    PendingLoad = PENDING_LOAD,
}

/// Orderings that no model misses alone, each with what stands in for it: some model holds without that, and fails
/// without both.
const NOT_ALONE: &[(Site, &[Site], &str)] = &[
    (
        Site::SlotLoad,
        &[Site::SlotAgain],
        "the second look at the same word acquires what the first one did not",
    ),
    (
        Site::SlotAgain,
        &[Site::SlotLoad],
        "the first look acquired the row; that the word changed is coherence's to show",
    ),
    (
        Site::RecycleFence,
        &[],
        "who writes into recycled bytes has a fence of its own; this one is for pages that are given back to the system",
    ),
    (
        Site::SplitFence,
        &[Site::SlotStore],
        "every slot is stored with Release after the odd version, so who sees one moved sees the version",
    ),
    (
        Site::MissFence,
        &[Site::SlotLoad],
        "every slot was loaded with Acquire, which keeps the second look at the version behind it",
    ),
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
    ("read x replace x recycle x reuse", replace_and_recycle),
    ("read x split: a key that stays", |weak| split(weak, STAYS)),
    ("read x split: a key that moves", |weak| split(weak, MOVES)),
    ("read x overflow", overflow),
    ("read x restart", restart),
];

/// Words of two rows of one key, of a row of another key, and what unwritten bytes hold. Tens are the key.
const OLD: u64 = 11;
const NEW: u64 = 12;
const FOREIGN: u64 = 23;

struct Units {
    /// The unit in which the key's row lies, from 1.
    slot: AtomicU64,
    generations: [AtomicU64; 2],
    rows: [[AtomicU64; 2]; 2],
    /// Whether unit 0 is free: the pool of units, which is guarded by a lock.
    pool: Mutex<bool>,
}

impl Units {
    fn write(&self, weak: Weak, unit: usize, word: u64) {
        fence(weak, Site::WriteFence);
        for at in &self.rows[unit] {
            at.store(word, Ordering::Relaxed);
        }
    }

    fn recycle(&self, weak: Weak, unit: usize) {
        let generation = self.generations[unit].load(Ordering::Relaxed);
        self.generations[unit].store(generation + 1, at(weak, Site::GenerationStore));
        fence(weak, Site::RecycleFence);
        *self.pool.lock().unwrap() = true;
    }

    /// One round of a lookup: the row's word, or `None` for another round.
    fn read(&self, weak: Weak) -> Option<u64> {
        let slot = self.slot.load(at(weak, Site::SlotLoad));
        let unit = usize::try_from(slot).unwrap() - 1;
        let generation = self.generations[unit].load(at(weak, Site::GenerationLoad));
        if self.slot.load(at(weak, Site::SlotAgain)) != slot {
            return None;
        }
        let still = || {
            fence(weak, Site::ReadFence);
            self.generations[unit].load(Ordering::Relaxed) == generation
        };
        let head = self.rows[unit][0].load(Ordering::Relaxed);
        if !still() {
            return None;
        }
        assert_eq!(head / 10, 1, "a key that is there all the time is missed");
        let payload = self.rows[unit][1].load(Ordering::Relaxed);
        still().then(|| {
            assert_eq!(head, payload, "a mixture of two rows");
            head
        })
    }
}

/// A row is replaced, its unit recycled, and the bytes written anew by another thread while it is read.
fn replace_and_recycle(weak: Weak) {
    let cell = AtomicU64::new;
    let units = Arc::new(Units {
        slot: cell(1),
        generations: [cell(0), cell(0)],
        rows: [[cell(OLD), cell(OLD)], [cell(0), cell(0)]],
        pool: Mutex::new(false),
    });
    let (owner, other) = (Arc::clone(&units), Arc::clone(&units));
    let owner = thread::spawn(move || {
        owner.write(weak, 1, NEW);
        owner.slot.store(2, at(weak, Site::SlotStore));
        owner.recycle(weak, 0);
    });
    let other = thread::spawn(move || {
        let free = *other.pool.lock().unwrap();
        if free {
            other.write(weak, 0, FOREIGN);
        }
    });
    for _ in 0..ROUNDS {
        if units.read(weak).is_some_and(|row| row == OLD || row == NEW) {
            break;
        }
    }
    owner.join().unwrap();
    other.join().unwrap();
}

const STAYS: u64 = 1;
const MOVES: u64 = 2;

struct Index {
    word: AtomicU64,
    version: AtomicU64,
    old: [AtomicU64; 2],
    new: AtomicU64,
}

impl Index {
    /// What one walk comes to: `Some(true)` a hit, `Some(false)` a miss, `None` another round.
    fn find(&self, weak: Weak, key: u64) -> Option<bool> {
        let word = self.word.load(at(weak, Site::IndexLoad));
        if word == 1 && key == MOVES {
            // Nothing ever splits the new bucket: its version stays.
            let found = self.new.load(at(weak, Site::SlotLoad)) == key;
            fence(weak, Site::MissFence);
            return if found || self.word.load(Ordering::Relaxed) == word { Some(found) } else { None };
        }
        let version = self.version.load(at(weak, Site::VersionLoad));
        for slot in &self.old {
            // The second look at a slot, and the row, are another model's.
            if slot.load(at(weak, Site::SlotLoad)) == key {
                return Some(true);
            }
        }
        fence(weak, Site::MissFence);
        let unchanged =
            self.version.load(Ordering::Relaxed) == version && self.word.load(Ordering::Relaxed) == word;
        (unchanged && version.is_multiple_of(2)).then_some(false)
    }
}

/// A bucket of two rows splits, and the row that stays moves to the front, while one of them is looked for.
fn split(weak: Weak, key: u64) {
    let cell = AtomicU64::new;
    let index =
        Arc::new(Index { word: cell(0), version: cell(0), old: [cell(MOVES), cell(STAYS)], new: cell(0) });
    let owner = Arc::clone(&index);
    let owner = thread::spawn(move || {
        owner.new.store(MOVES, Ordering::Relaxed);
        owner.word.store(1, at(weak, Site::IndexStore));
        owner.version.store(1, Ordering::Relaxed);
        fence(weak, Site::SplitFence);
        owner.old[0].store(STAYS, at(weak, Site::SlotStore));
        owner.old[1].store(0, at(weak, Site::SlotStore));
        owner.version.store(2, at(weak, Site::VersionStore));
    });
    for _ in 0..ROUNDS {
        match index.find(weak, key) {
            Some(found) => {
                assert!(found, "a key that is there all the time is missed");
                break;
            }
            None => thread::yield_now(),
        }
    }
    owner.join().unwrap();
}

/// A bucket with the remains of its former use is filled and linked while its chain is walked.
fn overflow(weak: Weak) {
    let header = Arc::new(AtomicU64::new(0));
    let slot = Arc::new(AtomicU64::new(OLD));
    let (owner_header, owner_slot) = (Arc::clone(&header), Arc::clone(&slot));
    let owner = thread::spawn(move || {
        owner_slot.store(NEW, Ordering::Relaxed);
        owner_header.store(1, at(weak, Site::LinkStore));
    });
    if header.load(at(weak, Site::LinkLoad)) == 1 {
        assert_eq!(slot.load(at(weak, Site::SlotLoad)), NEW, "an entry of the bucket's former use");
    }
    owner.join().unwrap();
}

struct Remains {
    /// The slot of each chain: 1 is damaged, and goes when the chain is proved.
    slots: [AtomicU64; 2],
    proved: AtomicU64,
    left: AtomicU64,
    pending: AtomicBool,
}

impl Remains {
    fn prove(&self, weak: Weak, chain: usize) {
        self.slots[chain].store(0, at(weak, Site::SlotStore));
        self.proved.fetch_or(1 << chain, at(weak, Site::ProvedStore));
        if self.left.fetch_sub(1, at(weak, Site::Left)) == 1 {
            self.pending.store(false, at(weak, Site::PendingStore));
        }
    }

    fn is_proved(&self, weak: Weak, chain: usize) -> bool {
        !self.pending.load(at(weak, Site::PendingLoad))
            || self.proved.load(at(weak, Site::ProvedLoad)) & (1 << chain) != 0
    }
}

/// Two threads prove what an earlier process left, while a third looks a row up.
fn restart(weak: Weak) {
    let remains = Arc::new(Remains {
        slots: [AtomicU64::new(1), AtomicU64::new(1)],
        proved: AtomicU64::new(0),
        left: AtomicU64::new(2),
        pending: AtomicBool::new(true),
    });
    let provers = [0, 1].map(|chain| {
        let remains = Arc::clone(&remains);
        thread::spawn(move || remains.prove(weak, chain))
    });
    if remains.is_proved(weak, 0) {
        assert_eq!(remains.slots[0].load(at(weak, Site::SlotLoad)), 0, "a damaged row is served");
    }
    for prover in provers {
        prover.join().unwrap();
    }
}

/// Whether a model holds with these orderings weakened.
fn holds((_, model): &Model, weak: Weak) -> bool {
    let model = *model;
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    catch_unwind(AssertUnwindSafe(|| builder.check(move || model(weak)))).is_ok()
}

/// The first model that fails.
fn failing(weak: Weak) -> Option<&'static str> {
    MODELS.iter().find(|model| !holds(model, weak)).map(|(name, _)| *name)
}

/// A list that lives as long as the models ask for.
fn kept(sites: Vec<Site>) -> Weak {
    Box::leak(sites.into_boxed_slice())
}

#[test]
fn the_protocol_holds_with_the_orderings_that_ship() {
    assert_eq!(failing(&[]), None);
}

#[test]
fn every_ordering_is_needed_or_listed() {
    for &site in SITES {
        let found = failing(kept(vec![site]));
        println!("{site:?} weakened: {}", found.unwrap_or("nothing fails"));
        let listed = NOT_ALONE.iter().find(|(own, ..)| *own == site);
        assert_eq!(found.is_none(), listed.is_some(), "{site:?}: {found:?}");
        if let Some((_, others, reason)) = listed.filter(|(_, others, _)| !others.is_empty()) {
            let together = kept([&[site], *others].concat());
            let missed = MODELS.iter().find(|model| holds(model, others) && !holds(model, together));
            println!("  {reason}; without {others:?} too: {:?}", missed.map(|(name, _)| name));
            assert!(missed.is_some(), "{site:?} with {others:?}");
        }
    }
}
