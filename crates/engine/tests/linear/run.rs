//! Makes histories: windows of a few operations of each client on one row, begun and ended together, so that the search
//! stays small.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};

use super::row::State;
use super::search::{ends, first_unexplained};
use super::{Answer, Event, Op, Seen, TTL_STEP};

/// Operations of each client in a window.
const STEPS: usize = 6;

/// Keys, used in turn.
const KEYS: usize = 50;

/// Kinds of operations, some of them counted several times.
const KINDS: u8 = 45;

/// A client: it works on the row of a key by whatever protocol it has.
pub(crate) trait Worker {
    fn run(&mut self, key: usize, op: &Op) -> Answer;
}

/// Moments of a window at which the test may do something: clients have begun, all are at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Begun,
    Resting,
}

/// What is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) operations: u64,
    pub(crate) clients: usize,
}

/// What was checked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Checked {
    pub(crate) operations: u64,
    /// How many of them met one of another client.
    pub(crate) concurrent: u64,
}

impl std::fmt::Display for Checked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { operations, concurrent } = self;
        write!(
            f,
            "{operations} operations checked, {concurrent} of them concurrent with another, 0 violations"
        )
    }
}

/// What the threads share.
struct Stage {
    plan: Plan,
    clock: AtomicU64,
    /// How often a client began a window.
    started: AtomicU64,
    is_over: AtomicBool,
    begin: Barrier,
    end: Barrier,
    history: Mutex<Vec<Event>>,
    /// What a client failed with.
    failure: Mutex<Option<String>>,
}

/// Runs windows of operations on one key after the other, and looks for an order of each. The error is the window that
/// no order explains.
pub(crate) fn check<W: Worker>(
    plan: Plan,
    client: impl Fn(usize) -> W + Sync,
    mut at: impl FnMut(Phase, u64),
) -> Result<Checked, String> {
    let stage = Stage::new(plan);
    let windows = plan.operations.div_ceil((plan.clients * STEPS + 2) as u64);
    std::thread::scope(|scope| {
        for number in 0..plan.clients {
            let (stage, client) = (&stage, &client);
            scope.spawn(move || stage.work(number, client(number)));
        }
        let mut looks = client(plan.clients);
        let mut states = vec![HashSet::from([State::default()]); KEYS];
        let found = (0..windows).try_fold(Checked::default(), |checked, window| {
            stage.begin.wait();
            at(Phase::Begun, window);
            stage.end.wait();
            at(Phase::Resting, window);
            stage.judge(&mut looks, &mut states[key_of(window)], window, checked)
        });
        // Pairs with the load in `work`, by the barrier.
        stage.is_over.store(true, Ordering::Relaxed);
        stage.begin.wait();
        found
    })
}

impl Stage {
    fn new(plan: Plan) -> Self {
        let barrier = || Barrier::new(plan.clients + 1);
        let (clock, started) = (AtomicU64::new(0), AtomicU64::new(0));
        let (is_over, history, failure) = (AtomicBool::new(false), Mutex::default(), Mutex::default());
        Self { plan, clock, started, is_over, begin: barrier(), end: barrier(), history, failure }
    }

    /// One operation, with the moments between which it ran.
    fn event<W: Worker>(&self, worker: &mut W, client: usize, key: usize, op: Op) -> Event {
        // SeqCst: the numbers are the order of beginnings and ends of all threads.
        let began = self.clock.fetch_add(1, Ordering::SeqCst);
        let run = catch_unwind(AssertUnwindSafe(|| worker.run(key, &op)));
        let ended = self.clock.fetch_add(1, Ordering::SeqCst);
        // The others still wait for this client at the end of the window.
        let answer = run.unwrap_or_else(|panic| {
            let message = panic.downcast_ref::<String>().map_or("a panic", String::as_str);
            self.failure.lock().unwrap().get_or_insert_with(|| format!("client {client}, {op:?}: {message}"));
            Answer::Unknown
        });
        Event { client, op, answer, began, ended }
    }

    /// A client's thread.
    fn work<W: Worker>(&self, number: usize, mut worker: W) {
        let mut random = fastrand::Rng::with_seed(self.plan.seed.wrapping_add(number as u64));
        let mut cas = 0;
        for window in 0.. {
            self.begin.wait();
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            self.await_others(window);
            let kinds = kinds_of(self.plan.seed, window);
            let mut events = Vec::with_capacity(STEPS);
            for _ in 0..STEPS {
                let op = random_op(&mut random, &kinds, cas);
                let event = self.event(&mut worker, number, key_of(window), op);
                if let Answer::Row(Seen { cas: Some(seen), .. }) = &event.answer {
                    cas = *seen;
                }
                let is_dead = event.answer == Answer::Unknown;
                events.push(event);
                if is_dead {
                    break;
                }
            }
            self.history.lock().unwrap().append(&mut events);
            self.end.wait();
        }
    }

    /// A thread that sleeps wakes up later than a window takes, so those that are awake wait for the others.
    fn await_others(&self, window: u64) {
        self.started.fetch_add(1, Ordering::SeqCst);
        while self.started.load(Ordering::SeqCst) < (window + 1) * self.plan.clients as u64 {
            std::thread::yield_now();
        }
    }

    /// Looks for an order of the window that has ended.
    fn judge<W: Worker>(
        &self,
        looks: &mut W,
        states: &mut HashSet<State>,
        window: u64,
        mut checked: Checked,
    ) -> Result<Checked, String> {
        let mut events = std::mem::take(&mut *self.history.lock().unwrap());
        // What is there now leaves few states.
        let (own, key) = (self.plan.clients, key_of(window));
        events.extend([Op::Select, Op::Get].map(|op| self.event(looks, own, key, op)));
        let after = ends(states, &events);
        let failure = self.failure.lock().unwrap().take();
        if after.is_empty() || failure.is_some() {
            events.sort_unstable_by_key(|event| event.began);
            let lines: Vec<String> = events.iter().map(|event| format!("{event:?}")).collect();
            let why = failure
                .unwrap_or_else(|| format!("no order of the first {}", first_unexplained(states, &events)));
            let (seed, lines) = (self.plan.seed, lines.join("\n"));
            return Err(format!("SEED={seed}, window {window} began in {states:?}; {why}:\n{lines}"));
        }
        *states = after;
        checked.operations += events.len() as u64;
        let met = |event: &&Event| events.iter().any(|other| event.meets(other));
        checked.concurrent += events.iter().filter(met).count() as u64;
        Ok(checked)
    }
}

fn key_of(window: u64) -> usize {
    usize::try_from(window).unwrap_or(0) % KEYS
}

/// The kinds of a window: all of them, or a few, which then meet each other more often.
fn kinds_of(seed: u64, window: u64) -> Vec<u8> {
    // The golden ratio spreads the numbers of windows over all seeds.
    let mut random = fastrand::Rng::with_seed(seed ^ window.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    match random.u8(..4) {
        0 => (0..KINDS).collect(),
        _ => (0..random.usize(2..6)).map(|_| random.u8(..KINDS)).collect(),
    }
}

/// A random operation of these kinds. `cas` is what the client saw last.
fn random_op(random: &mut fastrand::Rng, kinds: &[u8], cas: u64) -> Op {
    let value = random.u64(0..1_000_000);
    let exptime = if random.u8(..4) == 0 { 0 } else { random.u64(1..=250) * TTL_STEP };
    let flags = random.u32(..8);
    let delta = random.u64(1..100);
    match kinds[random.usize(..kinds.len())] {
        0 | 1 => Op::Set { value, flags, exptime },
        2 | 3 => Op::Add { value, flags, exptime },
        4 => Op::Replace { value, flags, exptime },
        5..=7 => Op::Cas { cas, value, flags, exptime },
        8 => Op::Append(b'0' + random.u8(..10)),
        9 => Op::Prepend(b'1' + random.u8(..9)),
        10..=13 => Op::Incr(delta),
        14 => Op::Decr(delta),
        15..=18 => Op::Get,
        19 | 20 => Op::GetAndTouch(exptime),
        21..=24 => Op::Touch(exptime),
        25 => Op::Delete,
        26 | 27 => Op::MetaGet,
        28 => Op::MetaGetAndTouch(exptime),
        29 => Op::MetaIncr { delta, exptime },
        30 => Op::Invalidate,
        31 | 32 => Op::Select,
        33 => Op::Near,
        34 => Op::Insert { value, n: random.i64(0..50) },
        35 => Op::Upsert { value },
        36 | 37 => Op::UpdateValue(value),
        38 | 39 => Op::AddToN(random.i64(1..50)),
        40 => Op::UpdateTtl(exptime),
        41 => Op::UpdateStale,
        42 => Op::Claim,
        43 => Op::DeleteSoon(exptime.max(TTL_STEP)),
        _ => Op::SqlDelete,
    }
}
