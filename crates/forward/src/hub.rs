//! What all forwarded sessions of one server share, with the stream of its changes.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

use inspect::{Dependences, Refusal, Verdict};
use parking_lot::{Condvar, Mutex, RwLock};
use store::definition::ServerDef;

use crate::answers::{TagColumns, Texts};
use crate::choice::Choice;
use crate::freshness::Freshness;
use crate::gate::{Gate, Moment, Touched};
use crate::limits::{
    DEFINITIONS_PATIENCE, INSPECT_AFTER, INSPECTIONS_WAITING_MAX, LEASE, PLACE_PATIENCE, SETTINGS_MAX,
    TEXT_BYTES_MAX, TEXTS_MAX, micros,
};
use crate::misses::Misses;
use crate::places::{Places, Ticket};
use crate::state::{Names, Question, State};
use crate::text::{Phase, Statement, Text};

/// See the module.
#[derive(Debug)]
pub struct Hub {
    /// The server's name.
    server: String,
    /// The statements that find and keep answers.
    pub(crate) answers: Texts,
    gate: Gate,
    choice: Choice,
    /// The stream follows, and what is kept is believed.
    live: AtomicBool,
    /// What the definitions of the source are; 0: not known. It is part of each answer's key.
    definitions: AtomicU64,
    defined: Mutex<Defined>,
    /// When they were first awaited, in microseconds; 0: nobody has.
    definitions_awaited: AtomicU64,
    places: Places,
    /// Tells its marks in the log from those of other servers and of other processes.
    marks: u64,
    /// What is being asked for, so that it can be kept.
    pub(crate) misses: Arc<Misses>,
    /// By a hash of the text and its types.
    texts: RwLock<HashMap<u64, Arc<Text>>>,
    unknown: Arc<Text>,
    /// Statements whose source is to be asked.
    inspections: Mutex<VecDeque<Arc<Statement>>>,
    wanted: Condvar,
    told: RwLock<Told>,
    /// Settings that statements read.
    settings: RwLock<Names>,
    /// The gate holds transactions that it was told of by nobody but us.
    awaits: AtomicBool,
    /// Which server the stream comes from; 0: not known.
    identity: AtomicU64,
    /// A stream has begun in this process.
    was_followed: AtomicBool,
    /// Until when it is believed that commits of the source wait for us, in microseconds; 0: they do not.
    awaited_until: AtomicU64,
}

/// From what the number of the definitions is made.
#[derive(Debug, Default)]
struct Defined {
    /// The digest that was read last; 0: none was.
    digest: u64,
    /// How often the stream told of a change since a new one was read.
    told: u64,
}

impl Defined {
    /// 0 as long as no digest was read.
    fn number(&self) -> u64 {
        let bytes = [self.digest.to_be_bytes(), self.told.to_be_bytes()].concat();
        // The digest alone where nothing was told since: another process reads it, too, and finds the answers.
        match (self.digest, self.told) {
            (0, _) | (_, 0) => self.digest,
            _ => rapidhash::v3::rapidhash_v3(&bytes).max(1),
        }
    }
}

/// Which changes drop answers, and the tags that name them.
#[derive(Debug, Default)]
struct Told {
    /// The columns of a table whose values stand in the tags of its changes.
    columns: HashMap<u32, Arc<BTreeSet<String>>>,
    /// The tables whose rows the changes of another are, too: what it is a partition or a child of.
    roots: HashMap<u32, BTreeSet<u32>>,
}

/// A table that a change is one of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touches {
    /// The number that the source has for it.
    pub relation: u32,
    /// The columns whose values stand in its tags.
    pub columns: Arc<BTreeSet<String>>,
}

impl Hub {
    pub(crate) fn new(server: &str) -> Self {
        Self {
            server: server.to_owned(),
            answers: Texts::of(server),
            gate: Gate::default(),
            choice: Choice::default(),
            live: AtomicBool::new(false),
            definitions: AtomicU64::new(0),
            defined: Mutex::default(),
            definitions_awaited: AtomicU64::new(0),
            places: Places::default(),
            marks: fastrand::u64(..),
            misses: Arc::default(),
            texts: RwLock::default(),
            unknown: Text::unknown(),
            inspections: Mutex::default(),
            wanted: Condvar::new(),
            told: RwLock::default(),
            settings: RwLock::new(Names::from([])),
            awaits: AtomicBool::new(false),
            identity: AtomicU64::new(0),
            was_followed: AtomicBool::new(false),
            awaited_until: AtomicU64::new(0),
        }
    }

    /// The server's name.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// What the server's definition says of keeping answers.
    pub fn choose(&self, server: &ServerDef) {
        if self.choice.set(server) {
            // Sessions that have prepared one of them hold the same text.
            self.texts.write().values().for_each(|text| text.set_wish(self.choice.wish(&text.sql)));
        }
    }

    // What the stream says.

    /// A stream begins. `running`: transactions of which it is not known whether they will be streamed.
    pub fn follow(&self, running: Vec<u64>) {
        self.gate.follow(running);
        self.await_snapshot();
    }

    /// Whether no stream has begun before in this process. It is asked once at the beginning of each. Answers of an
    /// earlier process have tags of which this one does not know.
    pub fn is_first_stream(&self) -> bool {
        // Relaxed: the thread of the stream alone asks.
        !self.was_followed.swap(true, Ordering::Relaxed)
    }

    /// Has changes be told by the tags that answers of an earlier process have. `leaves`: each part of a table, with
    /// the table that it is a part of.
    pub fn tell_again(&self, tags: &TagColumns, leaves: &[(u32, u32)]) {
        let mut told = self.told.write();
        for (relation, columns) in tags {
            Arc::make_mut(told.columns.entry(*relation).or_default()).extend(columns.iter().cloned());
        }
        for (leaf, root) in leaves {
            told.roots.entry(*leaf).or_default().insert(*root);
        }
    }

    /// At this time, as [`Hands::now_us`](crate::Hands) counts, all commits of the source waited for us, or not. It is
    /// believed for [`LEASE`]: who has them wait no more waits that long before.
    pub fn set_awaited(&self, now_us: u64, are: bool) {
        // Release: pairs with the Acquire of `is_awaited`.
        self.awaited_until
            .store(if are { now_us.saturating_add(micros(LEASE)) } else { 0 }, Ordering::Release);
    }

    /// Whether every commit that was acknowledged before this time is applied here.
    pub(crate) fn is_awaited(&self, now_us: u64) -> bool {
        now_us < self.awaited_until.load(Ordering::Acquire)
    }

    /// Whether commits waited for us when that was asked last.
    pub(crate) fn was_awaited(&self) -> bool {
        self.is_awaited(1)
    }

    /// What is kept is believed from now on, or not.
    pub fn set_live(&self, live: bool) {
        // Release: pairs with the Acquire of `is_live`: what was not believed is gone.
        self.live.store(live, Ordering::Release);
    }

    /// The stream ended.
    pub fn lose(&self) {
        self.set_live(false);
        self.gate.lose();
    }

    /// Transactions have arrived; before anything of them is removed.
    pub fn arrive(&self, transactions: &[u64], touched: Touched<'_>) {
        self.gate.arrive(transactions.to_vec(), touched);
    }

    /// A snapshot of the source shows these transactions.
    pub fn show(&self, shows: impl Fn(u64) -> bool) {
        if self.gate.show(shows) {
            // Relaxed: the thread of the stream alone reads it, which calls this.
            self.awaits.store(false, Ordering::Relaxed);
        }
    }

    /// Whether a snapshot of the source is awaited.
    pub fn awaits_snapshot(&self) -> bool {
        self.awaits.load(Ordering::Relaxed)
    }

    fn await_snapshot(&self) {
        self.awaits.store(true, Ordering::Relaxed);
    }

    /// All was applied up to this place of the log.
    pub fn advance(&self, place: u64) {
        self.places.advance(place);
    }

    /// Which tables a change of one is told of.
    pub fn touches(&self, relation: u32) -> Vec<Touches> {
        let told = self.told.read();
        let own = std::iter::once(&relation);
        let roots = told.roots.get(&relation).into_iter().flatten().filter(|root| **root != relation);
        let touches = |relation: &u32| {
            Some(Touches { relation: *relation, columns: Arc::clone(told.columns.get(relation)?) })
        };
        own.chain(roots).filter_map(touches).collect()
    }

    // What asks the source.

    /// The last place that is asked for, if one is within this time.
    pub fn next_place(&self, wait: Duration) -> Option<Ticket> {
        self.places.next(wait)
    }

    /// What marks a place in the log: one of a database may be followed for several servers of ours.
    pub fn mark_of(&self, ticket: Ticket) -> String {
        format!("{:016x} {}", self.marks, ticket.number())
    }

    /// The place that something marks; none: another has written it.
    pub fn place_of(&self, mark: &str) -> Option<Ticket> {
        let (marks, number) = mark.rsplit_once(' ')?;
        let is_own = u64::from_str_radix(marks, 16) == Ok(self.marks);
        is_own.then(|| number.parse().ok().map(Ticket::of)).flatten()
    }

    /// Whether the stream is soon applied up to a place that the log has now.
    pub fn reaches(&self, place: u64, now: Instant) -> bool {
        self.places.wait_for(place, now + PLACE_PATIENCE)
    }

    /// The stream has passed a place.
    pub fn pass(&self, ticket: Ticket) {
        self.places.pass(ticket);
    }

    /// Which server the changes come from. Sessions at another one behind the same name only forward.
    pub fn set_identity(&self, identity: u64) {
        // Relaxed: a session compares it with its own, which it has had before.
        self.identity.store(identity, Ordering::Relaxed);
    }

    pub(crate) fn is_source(&self, identity: u64) -> bool {
        identity != 0 && self.identity.load(Ordering::Relaxed) == identity
    }

    /// The definitions of the source were read, and this is their digest. True: what was kept under others is to go.
    pub fn define(&self, digest: u64) -> bool {
        let mut defined = self.defined.lock();
        let digest = digest.max(1);
        if defined.digest != digest {
            *defined = Defined { digest, told: 0 };
        }
        let definitions = defined.number();
        // Relaxed: the gate's lock orders what is kept, and a hit is one of before or after.
        self.definitions.store(definitions, Ordering::Relaxed);
        let others = self.gate.define(definitions);
        if others {
            self.texts.write().clear();
        }
        others
    }

    /// The stream tells that definitions are others now. What was kept under those of before is removed as what an
    /// event of every table touches.
    pub fn redefine(&self) {
        let mut defined = self.defined.lock();
        defined.told += 1;
        let definitions = defined.number();
        // Relaxed: as in `define`.
        self.definitions.store(definitions, Ordering::Relaxed);
        self.gate.redefine(definitions);
        self.texts.write().clear();
    }

    /// The next statement to be inspected, if one comes within this time, and the source shows the definitions of which
    /// the stream has told.
    pub fn next_inspection(&self, wait: Duration) -> Option<Arc<Statement>> {
        let mut inspections = self.inspections.lock();
        if inspections.is_empty() || !self.gate.shows_definitions() {
            let _timed_out = self.wanted.wait_for(&mut inspections, wait);
        }
        if self.gate.shows_definitions() { inspections.pop_front() } else { None }
    }

    /// From now on the changes that a statement depends on are told. `running` is asked afterwards: the transactions of
    /// the source that nobody is sure to see.
    ///
    /// # Errors
    ///
    /// That of `running`: nothing is kept of the statement.
    pub fn keep<E>(
        &self,
        statement: &Statement,
        dependences: Dependences,
        running: impl FnOnce() -> Result<Vec<u64>, E>,
    ) -> Result<(), E> {
        let mut told = self.told.write();
        for relation in &dependences.relations {
            told.columns.entry(relation.oid).or_default();
            for leaf in &relation.leaves {
                told.roots.entry(*leaf).or_default().insert(relation.oid);
            }
        }
        for occurrence in &dependences.occurrences {
            if let Some(guard) = &occurrence.guard {
                let columns = told.columns.entry(occurrence.relation).or_default();
                Arc::make_mut(columns).insert(guard.column.clone());
            }
        }
        drop(told);
        self.gate.arrive(running()?, Touched::All);
        self.await_snapshot();
        statement.enter(Phase::Kept(Arc::new(dependences)));
        Ok(())
    }

    /// What an inspection came to where nothing is kept.
    pub fn refuse(&self, statement: &Statement, refusal: Refusal) {
        statement.enter(Phase::Refused(refusal));
    }

    /// The source could not be asked: it is when the statement comes again.
    pub fn put_off(&self, statement: &Statement) {
        statement.enter(Phase::New);
    }

    // What sessions ask.

    /// Why a statement's answers are not kept, as the server, the session and its text say.
    pub(crate) fn refuses(&self, text: &Text, state: &State) -> Option<&'static str> {
        self.choice.refuses(state, text.wish())
    }

    /// How fresh a statement's answers are.
    pub(crate) fn freshness(&self, text: &Text, state: &State) -> Freshness {
        self.choice.freshness(state, text.wish())
    }

    /// Whether what is kept is believed.
    pub(crate) fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire)
    }

    pub(crate) fn definitions(&self) -> u64 {
        self.definitions.load(Ordering::Relaxed)
    }

    /// Whether the definitions of the source were read.
    pub(crate) fn knows_definitions(&self) -> bool {
        self.definitions() != 0
    }

    /// Until when they are awaited, in microseconds; none: they are known, or are not going to be soon.
    pub(crate) fn await_definitions(&self, now_us: u64) -> Option<u64> {
        if self.knows_definitions() {
            return None;
        }
        // Relaxed: whichever session is the first, all wait until about the same time.
        let first =
            self.definitions_awaited.compare_exchange(0, now_us, Ordering::Relaxed, Ordering::Relaxed);
        let until_us =
            first.map_or_else(|first| first, |_| now_us).saturating_add(micros(DEFINITIONS_PATIENCE));
        (now_us < until_us).then_some(until_us)
    }

    pub(crate) fn ask_place(&self) -> Ticket {
        self.places.ask()
    }

    /// The same for who waits for it, and is woken when a place is passed.
    pub(crate) fn await_place(&self, waker: &Waker) -> Ticket {
        self.places.wake(waker);
        self.places.ask()
    }

    /// Wakes this one when the next place is passed.
    pub(crate) fn wake_again(&self, waker: &Waker) {
        self.places.wake(waker);
    }

    pub(crate) fn has_passed(&self, ticket: Ticket) -> bool {
        self.places.has_passed(ticket)
    }

    /// A read of a text is about to be forwarded; none: what it gives cannot be kept.
    pub(crate) fn moment(&self, text: &Text) -> Option<Moment> {
        let moment = if self.is_live() { self.gate.moment() } else { None };
        moment.filter(|moment| moment.is_under(text.definitions))
    }

    pub(crate) fn let_in(&self, moment: Moment, tags: &[String], keep: impl FnOnce() -> bool) -> bool {
        self.gate.keep(moment, tags, keep)
    }

    /// A text, with the types that its client gave to parameters.
    pub(crate) fn text(&self, sql: &str, types: impl ExactSizeIterator<Item = u32> + Clone) -> Arc<Text> {
        if sql.len() > TEXT_BYTES_MAX {
            return Arc::clone(&self.unknown);
        }
        let hash = types.clone().fold(rapidhash::v3::rapidhash_v3(sql.as_bytes()), |hash, number| {
            hash.rotate_left(5) ^ u64::from(number)
        });
        // Read before a text is put there: one that comes under others is not for these.
        let definitions = self.definitions();
        let of_now = |text: &&Arc<Text>| text.definitions == definitions;
        if let Some(found) = self.texts.read().get(&hash).filter(of_now) {
            let same = found.is(sql, types);
            return Arc::clone(if same { found } else { &self.unknown });
        }
        let mut texts = self.texts.write();
        if texts.len() >= TEXTS_MAX {
            // Those that came once or twice make room.
            texts.retain(|_, text| text.calls.load(Ordering::Relaxed) > INSPECT_AFTER);
            if texts.len() >= TEXTS_MAX {
                return Arc::clone(&self.unknown);
            }
        }
        let types: Vec<u32> = types.collect();
        let new = || Arc::new(Text::new(sql, &types, definitions, self.choice.wish(sql)));
        let text = texts.entry(hash).or_insert_with(new);
        if text.definitions != definitions {
            *text = new();
        }
        Arc::clone(text)
    }

    /// Whether a text came under the definitions of now. One that did not depends on what is not known, and its client
    /// was told of other columns, perhaps.
    pub(crate) fn is_of_now(&self, text: &Text) -> bool {
        text.definitions == self.definitions()
    }

    /// The texts that are the same but for the types of their parameters.
    pub(crate) fn texts_of(&self, sql: &str) -> Vec<Arc<Text>> {
        // Clients send a text with its semicolon, or without.
        let plain = |sql: &str| sql.trim().trim_end_matches(';').trim_end().to_owned();
        let wanted = plain(sql);
        self.texts.read().values().filter(|text| plain(&text.sql) == wanted).cloned().collect()
    }

    /// Has the source asked what a statement depends on.
    pub(crate) fn inspect(&self, statement: &Arc<Statement>) {
        let mut inspections = self.inspections.lock();
        if inspections.len() >= INSPECTIONS_WAITING_MAX {
            return self.put_off(statement);
        }
        inspections.push_back(Arc::clone(statement));
        self.wanted.notify_one();
    }

    /// What an inspection said.
    ///
    /// # Errors
    ///
    /// That of `running`; see [`Hub::keep`].
    pub fn conclude<E>(
        &self,
        statement: &Statement,
        verdict: Verdict,
        running: impl FnOnce() -> Result<Vec<u64>, E>,
    ) -> Result<(), E> {
        match verdict {
            Verdict::Kept(dependences) if !self.ask_for(&dependences.settings) => {
                let reason = format!(
                    "it reads the setting {}, and other statements read {SETTINGS_MAX} others",
                    dependences.settings.join(", ")
                );
                self.refuse(statement, Refusal { reason, cure: None });
                Ok(())
            }
            Verdict::Kept(dependences) => self.keep(statement, dependences, running),
            Verdict::Refused(refusal) => {
                self.refuse(statement, refusal);
                Ok(())
            }
        }
    }

    /// Has the values of these settings asked for with the state of sessions; false: they are too many.
    fn ask_for(&self, names: &[String]) -> bool {
        let mut settings = self.settings.write();
        let new: Vec<&String> =
            names.iter().filter(|name| !settings.iter().any(|own| **own == ***name)).collect();
        if new.is_empty() {
            return true;
        }
        let fits = settings.len() + new.len() <= SETTINGS_MAX;
        if fits {
            *settings =
                settings.iter().cloned().chain(new.into_iter().map(|name| name.as_str().into())).collect();
        }
        fits
    }

    /// What a session is asked for its state.
    pub(crate) fn question(&self) -> Question {
        // Read before it is asked: an answer of others' time is not one of these.
        let definitions = self.definitions();
        Question { settings: Arc::clone(&self.settings.read()), definitions }
    }

    /// All texts that are known.
    pub(crate) fn texts(&self) -> Vec<Arc<Text>> {
        self.texts.read().values().cloned().collect()
    }
}
