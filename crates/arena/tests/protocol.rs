//! The protocol between writers and readers without a lock, model-checked.
//!
//! Each model is one encounter of the protocol, with the orderings of the shipping code (`src/order.rs` is compiled
//! into this test, and so are the steps of a segment's fill word, `src/segments/fill.rs`): read x replace x recycle x
//! reuse, read x split, read x overflow, read x a bucket that another thread uses again, read x restart, hold x close
//! x recycle x open, reserve x the same, reserve x seal x look, doom x seal of a commit. loom runs it through every
//! interleaving and every value that a weakly ordered processor could show, at most three preemptions apart. Then each
//! ordering is weakened in turn: some model must fail, or [`NOT_ALONE`] says why not. And each mistake that was made
//! once is made again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that fails says where")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence as loom_fence};
use loom::sync::{Arc, Mutex};
use loom::thread;

#[path = "../src/segments/fill.rs"]
#[allow(dead_code, reason = "the file is the arena's; the models take the steps that they need")]
mod fill;
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
    BucketFence = BUCKET_FENCE,
    FillOpen = FILL_OPEN,
    FillReserve = FILL_RESERVE,
    FillHold = FILL_HOLD,
    FillRelease = FILL_RELEASE,
    FillSeal = FILL_SEAL,
    FillClose = FILL_CLOSE,
    FillLook = FILL_LOOK,
    CommitChange = EXCHANGE,
    CommitRefused = EXCHANGE_REFUSED,
    CommitLook = COMMIT_LOOK,
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
    (
        Site::FillHold,
        &[Site::ReadFence],
        "the fence between the hold and the look at the generation acquires what the hold did not",
    ),
    (Site::FillSeal, &[], "that nobody reserves behind it is the order of the one word"),
    (
        Site::CommitRefused,
        &[],
        "who could not doom a commit looks at its word again, and acquires what stands before it then",
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
    ("read x a bucket that is used again", bucket_used_again),
    ("read x restart", restart),
    ("hold x close x recycle x open", |weak| hold(weak, None)),
    ("reserve x close x recycle x open", |weak| reserve(weak, None)),
    ("reserve x seal x look", seal_and_look),
    ("doom x seal of a commit", doom_and_seal),
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

/// A row is replaced, its unit recycled, and the bytes written again by another thread while it is read.
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

/// What a bucket holds of another chain.
const OTHER: u64 = 3;

/// A chain's entry moves to its first bucket, and the further one, freed, is filled for another chain by another
/// thread, while the entry is looked for.
fn bucket_used_again(weak: Weak) {
    struct Chain {
        /// Version, of which the entry moves under the odd one; and whether there is a further bucket.
        header: [AtomicU64; 2],
        first: AtomicU64,
        further: AtomicU64,
        free: Mutex<bool>,
    }
    let cell = AtomicU64::new;
    let chain = Arc::new(Chain {
        header: [cell(0), cell(1)],
        first: cell(0),
        further: cell(STAYS),
        free: Mutex::new(false),
    });
    let (owner, other) = (Arc::clone(&chain), Arc::clone(&chain));
    let owner = thread::spawn(move || {
        owner.header[0].store(1, Ordering::Relaxed);
        fence(weak, Site::SplitFence);
        owner.first.store(STAYS, at(weak, Site::SlotStore));
        owner.further.store(0, at(weak, Site::SlotStore));
        owner.header[0].store(2, at(weak, Site::VersionStore));
        *owner.free.lock().unwrap() = true;
    });
    let other = thread::spawn(move || {
        let free = *other.free.lock().unwrap();
        if free {
            fence(weak, Site::BucketFence);
            other.further.store(OTHER, Ordering::Relaxed);
        }
    });
    for _ in 0..ROUNDS {
        let version = chain.header[0].load(at(weak, Site::VersionLoad));
        let slots = [&chain.first, &chain.further];
        if slots.iter().any(|slot| slot.load(at(weak, Site::SlotLoad)) == STAYS) {
            break;
        }
        fence(weak, Site::MissFence);
        let unchanged = chain.header[0].load(Ordering::Relaxed) == version;
        assert!(!unchanged || !version.is_multiple_of(2), "a key that is there all the time is missed");
        thread::yield_now();
    }
    owner.join().unwrap();
    other.join().unwrap();
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

/// A mistake that was made once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// A segment began with a store over whatever its fill word held.
    OpenStores,
    /// Who reserved read the length of the segment before its fill word.
    LengthFirst,
}

/// A segment: where it begins, and the first of its rows.
struct Segment {
    fill: AtomicU64,
    /// How many rows it has room for.
    kind: AtomicU64,
    generation: AtomicU64,
    row: AtomicU64,
}

impl Segment {
    fn new(fill: u64, kind: u64) -> Arc<Self> {
        let cell = AtomicU64::new;
        Arc::new(Self { fill: cell(fill), kind: cell(kind), generation: cell(0), row: cell(OLD) })
    }

    fn step(&self, weak: Weak, site: Site, step: fn(u64) -> Option<u64>) -> Option<u64> {
        self.fill.fetch_update(at(weak, site), Ordering::Relaxed, step).ok()
    }

    fn reserve(&self, weak: Weak) -> Option<u64> {
        self.step(weak, Site::FillReserve, |word| fill::reserved(word, 1))
    }

    fn release(&self, weak: Weak) {
        let before = self.fill.fetch_sub(fill::HOLDER, at(weak, Site::FillRelease));
        assert!(fill::holders(before) > 0, "a count that is nobody's is taken away");
    }

    fn seal(&self, weak: Weak) {
        self.fill.fetch_or(fill::SEALED, at(weak, Site::FillSeal));
    }

    fn close(&self, weak: Weak) -> Option<u64> {
        self.step(weak, Site::FillClose, fill::closed)
    }

    /// Recycles what was closed and begins a segment of one row in its place.
    fn begin_again(&self, weak: Weak, mistake: Option<Mistake>) {
        self.generation.store(1, at(weak, Site::GenerationStore));
        fence(weak, Site::RecycleFence);
        self.kind.store(1, Ordering::Relaxed);
        if mistake == Some(Mistake::OpenStores) {
            self.fill.store(fill::OPEN | 1, at(weak, Site::FillOpen));
        } else {
            self.step(weak, Site::FillOpen, |word| fill::opened(word, 1)).unwrap();
        }
    }

    fn write(&self, weak: Weak, row: u64) {
        fence(weak, Site::WriteFence);
        self.row.store(row, Ordering::Relaxed);
    }
}

/// Somebody holds a row while its segment is closed, recycled and begun again, with a writer in it. With the mistake,
/// the unit was a tail: nothing closed it.
fn hold(weak: Weak, mistake: Option<Mistake>) {
    let segment = Segment::new(fill::OPEN | fill::SEALED, 1);
    let owner = Arc::clone(&segment);
    let owner = thread::spawn(move || {
        let free = mistake == Some(Mistake::OpenStores) || owner.close(weak).is_some();
        if free {
            owner.begin_again(weak, mistake);
            owner.reserve(weak).unwrap();
            owner.write(weak, FOREIGN);
        }
        free
    });
    if segment.step(weak, Site::FillHold, fill::held).is_some() {
        fence(weak, Site::ReadFence);
        if segment.generation.load(Ordering::Relaxed) == 0 {
            assert_eq!(segment.row.load(Ordering::Relaxed), OLD, "a row that is held is overwritten");
            thread::yield_now();
            assert_eq!(segment.row.load(Ordering::Relaxed), OLD, "a row that is held is overwritten");
        }
        segment.release(weak);
    }
    let writers = u64::from(owner.join().unwrap());
    assert_eq!(fill::holders(segment.fill.load(Ordering::Relaxed)), writers, "who writes is counted");
}

/// Somebody reserves by an old idea of a segment, which is given away and is shorter when it begins again.
fn reserve(weak: Weak, mistake: Option<Mistake>) {
    let segment = Segment::new(fill::OPEN | 2, 2);
    let owner = Arc::clone(&segment);
    let owner = thread::spawn(move || {
        owner.seal(weak);
        if let Some(word) = owner.close(weak) {
            let written = fill::room(word) < 2;
            assert!(
                !written || owner.row.load(Ordering::Relaxed) == NEW,
                "a row is walked before it is written"
            );
            owner.begin_again(weak, mistake);
        }
    });
    let before = segment.kind.load(Ordering::Relaxed);
    if let Some(word) = segment.reserve(weak) {
        let now = segment.kind.load(Ordering::Relaxed);
        let kind = if mistake == Some(Mistake::LengthFirst) { before } else { now };
        assert_eq!(kind.checked_sub(fill::room(word)), Some(0), "the first row lies at the beginning");
        segment.write(weak, NEW);
        segment.release(weak);
    }
    owner.join().unwrap();
}

/// Somebody writes a row while the segment is sealed, and its rows are looked at when nobody is in it.
fn seal_and_look(weak: Weak) {
    let segment = Segment::new(fill::OPEN | 2, 2);
    let owner = Arc::clone(&segment);
    let owner = thread::spawn(move || {
        owner.seal(weak);
        let word = owner.fill.load(at(weak, Site::FillLook));
        if fill::holders(word) == 0 && fill::room(word) < 2 {
            assert_eq!(owner.row.load(Ordering::Relaxed), NEW, "a row is walked before it is written");
        }
    });
    if segment.reserve(weak).is_some() {
        segment.write(weak, NEW);
        segment.release(weak);
    }
    owner.join().unwrap();
}

/// States of a commit's word.
const STAGING: u64 = 1;
const DOOMED: u64 = 2;
const COMMITTED: u64 = 3;

/// A commit is sealed while a single write dooms it, or finishes its row, and another commit waits for its end.
fn doom_and_seal(weak: Weak) {
    let word = Arc::new(AtomicU64::new(STAGING));
    // What was done before the commit was sealed: stamps, and the record of it.
    let record = Arc::new(AtomicU64::new(0));
    let change = move |word: &AtomicU64, to| {
        let (change, refused) = (at(weak, Site::CommitChange), at(weak, Site::CommitRefused));
        word.compare_exchange(STAGING, to, change, refused).is_ok()
    };
    let finish = move |word: &AtomicU64, record: &AtomicU64| {
        let state = word.load(at(weak, Site::CommitLook));
        if state == COMMITTED {
            assert_eq!(record.load(Ordering::Relaxed), NEW, "a row is put in its place before it is stamped");
        }
        state
    };
    let (its_word, its_record) = (Arc::clone(&word), Arc::clone(&record));
    let commit = thread::spawn(move || {
        its_record.store(NEW, Ordering::Relaxed);
        change(&its_word, COMMITTED)
    });
    let (its_word, its_record) = (Arc::clone(&word), Arc::clone(&record));
    let waits = thread::spawn(move || {
        finish(&its_word, &its_record);
    });
    let doomed = change(&word, DOOMED) || finish(&word, &record) == DOOMED;
    let committed = commit.join().unwrap();
    waits.join().unwrap();
    assert_ne!(doomed, committed, "one of both");
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

#[test]
fn every_mistake_of_the_past_is_found() {
    let mistakes: [Model; 2] = [
        ("a segment begins with a store", |weak| hold(weak, Some(Mistake::OpenStores))),
        ("the length is read first", |weak| reserve(weak, Some(Mistake::LengthFirst))),
    ];
    for model in &mistakes {
        assert!(!holds(model, &[]), "{}: no model misses it", model.0);
    }
}
