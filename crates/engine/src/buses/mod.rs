//! The buses on which caches tell one another which rows are not valid any more, as far as everybody may know of them.
//! Their connections are the crate `cluster`'s.

mod operation;
mod outbox;
mod receipt;
mod tap;
mod under_way;
mod wanted;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use sql::{BusFacts, NodeFacts};
use store::Clock;

use crate::distrust::Lag;

pub use operation::{KeyChange, Operation, Said, TableName};
pub use outbox::Outbox;
pub use receipt::Receipt;
pub(crate) use receipt::when_all_are_over;
pub(crate) use tap::{Tap, end_first, hold_first, note_told, take_receipt};
use wanted::Wanted;

/// All buses that tables name.
#[derive(Debug, Default)]
pub struct Buses {
    all: Mutex<Vec<Arc<Bus>>>,
}

/// A bus: sessions put in what they made invalid, its thread sends that, and everybody reads what is known of it.
#[derive(Debug)]
pub struct Bus {
    name: String,
    clock: Clock,
    /// What it has not acknowledged.
    pub outbox: Outbox,
    facts: Mutex<BusFacts>,
    /// All that was in the stream then is applied; 0: nobody knows how far it is. Release and Acquire: who reads it
    /// finds the rows as they are after that.
    fresh_ns: AtomicU64,
    nodes: Mutex<Vec<NodeFacts>>,
    /// How old its rows may be, while no thread looks at that: it outlives them.
    lag: Mutex<Option<Lag>>,
    /// Wakes who waits until more is applied.
    advanced: Condvar,
    /// Its thread ends in an orderly way. Relaxed: it is asked after the thread was told to stop.
    stopping: AtomicBool,
    /// Tables of which other caches may have rows that this one lacks.
    wanted: Mutex<Wanted>,
}

impl Buses {
    /// A bus by its name. It is there as soon as somebody has something to tell on it, so that nothing is lost while
    /// its thread begins.
    pub fn named(&self, name: &str, clock: &Clock) -> Arc<Bus> {
        let mut all = self.all.lock();
        if let Some(known) = all.iter().find(|bus| bus.name.eq_ignore_ascii_case(name)) {
            return Arc::clone(known);
        }
        let bus = Arc::new(Bus::new(name, clock));
        all.push(Arc::clone(&bus));
        bus
    }

    /// No table names it any more.
    pub fn remove(&self, bus: &Arc<Bus>) {
        self.all.lock().retain(|own| !Arc::ptr_eq(own, bus));
    }

    fn known(&self, name: &str) -> Option<Arc<Bus>> {
        self.all.lock().iter().find(|bus| bus.name.eq_ignore_ascii_case(name)).cloned()
    }

    fn each(&self) -> Vec<Arc<Bus>> {
        self.all.lock().clone()
    }

    /// What is known of all, by their names.
    pub(crate) fn facts(&self) -> Vec<BusFacts> {
        let mut all: Vec<_> = self.each().iter().map(|bus| bus.facts()).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// The caches that are heard on all of them.
    pub(crate) fn nodes(&self) -> Vec<NodeFacts> {
        self.each().iter().flat_map(|bus| bus.nodes.lock().clone()).collect()
    }

    /// See `Server::bus_applied`.
    pub(crate) fn applied(&self, name: &str, sequence: u64, wait: Duration) -> Option<bool> {
        Some(self.known(name)?.is_applied(sequence, wait))
    }

    /// Ends the waits for acknowledgements that have taken too long.
    pub(crate) fn tick(&self) {
        let all = self.all.lock();
        if all.is_empty() {
            return;
        }
        let all = all.clone();
        for bus in all {
            bus.outbox.expire(bus.clock.now_ns());
        }
    }
}

impl Bus {
    fn new(name: &str, clock: &Clock) -> Self {
        let facts = BusFacts { name: name.to_owned(), ..BusFacts::default() };
        let bus = Self {
            name: name.to_owned(),
            clock: clock.clone(),
            outbox: Outbox::of(name),
            facts: Mutex::new(facts),
            fresh_ns: AtomicU64::new(0),
            nodes: Mutex::default(),
            lag: Mutex::default(),
            advanced: Condvar::new(),
            stopping: AtomicBool::new(false),
            wanted: Mutex::default(),
        };
        bus.enter("connecting");
        bus
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Changes what is known, and wakes who waits for it.
    pub fn update(&self, change: impl FnOnce(&mut BusFacts)) {
        change(&mut self.facts.lock());
        self.advanced.notify_all();
    }

    /// Says what it does from now on; false: it did that already.
    pub fn enter(&self, state: &'static str) -> bool {
        let mut facts = self.facts.lock();
        let new = facts.state != state;
        if new {
            facts.state = state;
            facts.since_ms = i64::try_from(self.clock.unix_ms()).unwrap_or(i64::MAX);
        }
        new
    }

    /// Whether its thread is about to end.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Says whether it is.
    pub fn set_stopping(&self, stopping: bool) {
        self.stopping.store(stopping, Ordering::Relaxed);
    }

    /// The caches that are heard on it.
    pub fn set_nodes(&self, nodes: Vec<NodeFacts>) {
        *self.nodes.lock() = nodes;
    }

    /// Says since when it has applied all; none: nobody knows.
    pub fn set_fresh(&self, fresh_ns: Option<u64>) {
        self.fresh_ns.store(fresh_ns.unwrap_or(0), Ordering::Release);
    }

    /// Since when it has applied all; none: nobody knows.
    pub fn fresh_ns(&self) -> Option<u64> {
        Some(self.fresh_ns.load(Ordering::Acquire)).filter(|fresh_ns| *fresh_ns > 0)
    }

    /// Rows of a table that travel are gone, or about to go, and other caches may have them.
    pub fn want(&self, table: &str) {
        self.wanted.lock().want(table);
    }

    /// Nobody has more rows of a table for this cache, unless rows went since there were so many losses.
    pub fn settle_wanted(&self, table: &str, losses: u64) {
        self.wanted.lock().settle(table, losses);
    }

    /// The tables of which it wants rows, and how often rows of some table went.
    pub fn wanted(&self) -> (Vec<Arc<str>>, u64) {
        self.wanted.lock().all()
    }

    /// Whether it wants rows of a table.
    pub fn wants(&self, table: &str) -> bool {
        self.wanted.lock().has(table)
    }

    /// Rows up to this stamp were made stale, because they are not believed any more. A later one that is stale was
    /// invalidated.
    pub fn note_stale(&self, stamp: u64) {
        self.wanted.lock().note_stale(stamp);
    }

    /// See [`Self::note_stale`].
    pub fn stale_to(&self) -> u64 {
        self.wanted.lock().stale_to()
    }

    /// How often rows of some table went.
    pub fn losses(&self) -> u64 {
        self.wanted.lock().losses()
    }

    /// Who looks at the lag leaves it to who does so next.
    pub fn keep_lag(&self, lag: Lag) {
        *self.lag.lock() = Some(lag);
    }

    /// What was left, once.
    pub fn take_lag(&self) -> Option<Lag> {
        self.lag.lock().take()
    }

    /// What is known. The lag is that of this moment, also while its thread does nothing.
    pub fn facts(&self) -> BusFacts {
        let outbox = u64::try_from(self.outbox.len()).unwrap_or(u64::MAX);
        let lag_ms = self.fresh_ns().map(|fresh_ns| self.now_ns().saturating_sub(fresh_ns) as f64 / 1e6);
        let tables_wanted = u64::try_from(self.wanted.lock().len()).unwrap_or(u64::MAX);
        BusFacts { outbox, lag_ms, tables_wanted, ..self.facts.lock().clone() }
    }

    /// Now, as its outbox counts the time.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Whether it is applied so far, or is after a wait that is no longer than this.
    fn is_applied(&self, sequence: u64, wait: Duration) -> bool {
        let mut facts = self.facts.lock();
        let done = |facts: &BusFacts| facts.follows() && facts.applied >= sequence;
        if !done(&facts) {
            let _timed_out = self.advanced.wait_for(&mut facts, wait);
        }
        done(&facts)
    }
}
