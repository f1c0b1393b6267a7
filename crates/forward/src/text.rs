//! Statements that clients send, and what is known of each.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use inspect::{Dependences, Refusal, may_be_read};
use parking_lot::RwLock;
use ring::digest::{Context, SHA256};

use crate::choice::Wish;
use crate::limits::{JOINED_FOR, JOINED_FOR_MAX, JOINED_FROM, STATES_MAX};
use crate::state::{Hash, State, finished};

/// A text, and the types that its client gave to parameters.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) sql: Box<str>,
    pub(crate) types: Box<[u32]>,
    /// The definitions of the source under which it came, as a number. What it depends on was asked under them.
    pub(crate) definitions: u64,
    /// Why it is no read, as far as that can be seen without the source.
    pub(crate) refusal: Option<Refusal>,
    /// What it says of caching, itself or as a cached query, as a number.
    wish: AtomicU8,
    /// The cached query that it is.
    name: RwLock<Option<String>>,
    /// It may concern prepared statements by their names.
    pub(crate) concerns_names: bool,
    /// Its client has said the types of all parameters.
    pub(crate) is_typed: bool,
    /// What it is in each state of a session that has sent it.
    statements: RwLock<Vec<Arc<Statement>>>,
    /// How often it came.
    pub(crate) calls: AtomicU64,
}

/// A text in one state of sessions.
#[derive(Debug)]
pub struct Statement {
    /// Tells it from the others of its server.
    pub(crate) number: u64,
    pub(crate) text: Arc<Text>,
    pub(crate) state: Arc<State>,
    hash: Hash,
    phase: RwLock<Phase>,
    /// What the source answers where it is described.
    described: OnceLock<Box<[u8]>>,
    /// The last answer that came was kept: the next will be, too.
    is_kept: AtomicBool,
    pub(crate) counts: Counts,
}

/// What became of a statement's executions.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Executions that the source answered, and how long that took.
    pub(crate) forwarded: AtomicU64,
    pub(crate) forwarded_us: AtomicU64,
    /// Executions that were answered here.
    pub(crate) hits: AtomicU64,
    /// Answers that were kept, and those that were not.
    pub(crate) kept: AtomicU64,
    pub(crate) late: AtomicU64,
    /// Hits that waited for another session's answer.
    pub(crate) joined: AtomicU64,
}

/// What is known of a statement.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// It did not come often enough.
    New,
    /// Its source is being asked.
    Asked,
    /// Its answers are kept.
    Kept(Arc<Dependences>),
    /// They are not.
    Refused(Refusal),
}

/// The greatest number of a parameter in a text. One within a literal counts, too.
fn parameters(sql: &str) -> usize {
    let number = |rest: &str| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest[..digits].parse().unwrap_or(0)
    };
    sql.split('$').skip(1).map(number).max().unwrap_or(0)
}

/// Whether a text may concern prepared statements by their names.
pub(crate) fn concerns_names(sql: &str) -> bool {
    const WORDS: [&str; 5] = ["PREPARE", "EXECUTE", "DEALLOCATE", "DISCARD", "PG_PREPARED_STATEMENTS"];
    let upper = sql.to_ascii_uppercase();
    WORDS.iter().any(|word| upper.contains(word))
}

impl Text {
    /// `wish`: what it says of keeping its answers, and the cached query that it is.
    pub(crate) fn new(sql: &str, types: &[u32], definitions: u64, wish: (Wish, Option<String>)) -> Self {
        let (wish, name) = wish;
        Self {
            sql: sql.into(),
            types: types.into(),
            definitions,
            refusal: may_be_read(sql).err(),
            wish: AtomicU8::new(wish.number()),
            name: RwLock::new(name),
            concerns_names: concerns_names(sql),
            is_typed: parameters(sql) <= types.len() && !types.contains(&0),
            statements: RwLock::default(),
            calls: AtomicU64::new(0),
        }
    }

    /// One that nothing is kept of.
    pub(crate) fn unknown() -> Arc<Self> {
        let reason = "the source has too many statements, or this one is too long".to_owned();
        Arc::new(Self {
            sql: Box::default(),
            types: Box::default(),
            definitions: 0,
            refusal: Some(Refusal { reason, cure: None }),
            wish: AtomicU8::new(Wish::None.number()),
            name: RwLock::default(),
            concerns_names: true,
            is_typed: false,
            statements: RwLock::default(),
            calls: AtomicU64::new(0),
        })
    }

    pub(crate) fn is(&self, sql: &str, types: impl ExactSizeIterator<Item = u32>) -> bool {
        *self.sql == *sql && self.types.len() == types.len() && self.types.iter().copied().eq(types)
    }

    /// What it is in a state. None: it has come in too many.
    pub(crate) fn in_state(self: &Arc<Self>, state: &Arc<State>) -> Option<Arc<Statement>> {
        let is = |own: &&Arc<Statement>| own.state.hash() == state.hash();
        if let Some(found) = self.statements.read().iter().find(is) {
            return Some(Arc::clone(found));
        }
        let mut statements = self.statements.write();
        if let Some(found) = statements.iter().find(is) {
            return Some(Arc::clone(found));
        }
        if statements.len() >= STATES_MAX {
            return None;
        }
        let new = Arc::new(Statement::new(Arc::clone(self), Arc::clone(state)));
        statements.push(Arc::clone(&new));
        Some(new)
    }

    /// What it says of caching.
    pub(crate) fn wish(&self) -> Wish {
        // Relaxed: it takes effect soon.
        Wish::numbered(self.wish.load(Ordering::Relaxed))
    }

    /// The cached query that it is.
    pub(crate) fn name(&self) -> Option<String> {
        self.name.read().clone()
    }

    /// It is another cached query now, or none any more.
    pub(crate) fn set_wish(&self, (wish, name): (Wish, Option<String>)) {
        self.wish.store(wish.number(), Ordering::Relaxed);
        *self.name.write() = name;
    }

    pub(crate) fn statements(&self) -> Vec<Arc<Statement>> {
        self.statements.read().clone()
    }
}

/// The number by which people tell a statement from others: that of the same statement in every process.
fn number_of(hash: &Hash) -> u64 {
    let (first, _) = hash.split_first_chunk().expect("a hash has more bytes");
    u64::from_be_bytes(*first) >> 1
}

impl Statement {
    fn new(text: Arc<Text>, state: Arc<State>) -> Self {
        let mut hash = Context::new(&SHA256);
        hash.update(state.hash());
        hash.update(&(text.sql.len() as u64).to_be_bytes());
        hash.update(text.sql.as_bytes());
        text.types.iter().for_each(|number| hash.update(&number.to_be_bytes()));
        let hash = finished(hash);
        Self {
            number: number_of(&hash),
            text,
            state,
            hash,
            phase: RwLock::new(Phase::New),
            described: OnceLock::new(),
            is_kept: AtomicBool::new(false),
            counts: Counts::default(),
        }
    }

    pub(crate) fn hash(&self) -> &Hash {
        &self.hash
    }

    /// Its text.
    pub fn sql(&self) -> &str {
        &self.text.sql
    }

    /// The types that clients give to its parameters; 0 leaves one open.
    pub fn types(&self) -> &[u32] {
        &self.text.types
    }

    /// The state of the sessions that send it.
    pub fn state(&self) -> &State {
        &self.state
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.read().clone()
    }

    /// What its answers depend on, if they are kept.
    pub(crate) fn dependences(&self) -> Option<Arc<Dependences>> {
        match &*self.phase.read() {
            Phase::Kept(dependences) => Some(Arc::clone(dependences)),
            Phase::New | Phase::Asked | Phase::Refused(_) => None,
        }
    }

    pub(crate) fn enter(&self, phase: Phase) {
        *self.phase.write() = phase;
    }

    /// It came once more. True: its source is to be asked now, once.
    pub(crate) fn is_to_be_asked(&self, after: u64) -> bool {
        // Relaxed: a count.
        if self.counts.forwarded.load(Ordering::Relaxed) < after || !matches!(*self.phase.read(), Phase::New)
        {
            return false;
        }
        let mut phase = self.phase.write();
        let is_new = matches!(*phase, Phase::New);
        if is_new {
            *phase = Phase::Asked;
        }
        is_new
    }

    /// An answer came, and was kept or not.
    pub(crate) fn note_kept(&self, kept: bool) {
        // Relaxed: counts, and a guess at what becomes of the next.
        let counter = if kept { &self.counts.kept } else { &self.counts.late };
        counter.fetch_add(1, Ordering::Relaxed);
        self.is_kept.store(kept, Ordering::Relaxed);
    }

    /// An answer came that is none to keep.
    pub(crate) fn note_unkept(&self) {
        self.is_kept.store(false, Ordering::Relaxed);
    }

    /// How long another session's answer is worth waiting for; none: not at all.
    pub(crate) fn patience(&self) -> Option<Duration> {
        // Relaxed: as above.
        let forwarded = self.counts.forwarded.load(Ordering::Relaxed).max(1);
        let usual = Duration::from_micros(self.counts.forwarded_us.load(Ordering::Relaxed) / forwarded);
        let is_worth_it = self.is_kept.load(Ordering::Relaxed) && usual >= JOINED_FROM;
        is_worth_it.then(|| (usual * JOINED_FOR).min(JOINED_FOR_MAX))
    }

    /// What the source says of its parameters and columns, once that was heard.
    pub(crate) fn described(&self) -> Option<&[u8]> {
        self.described.get().map(|described| &**described)
    }

    pub(crate) fn set_described(&self, described: Vec<u8>) {
        // Sessions in one state are told the same.
        let _first = self.described.set(described.into());
    }
}
