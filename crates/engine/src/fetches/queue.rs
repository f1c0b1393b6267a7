//! The keys of one source that are wanted, each once, however many wait for it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use sql::FetchFacts;
use store::Table;

use super::absent::{Absent, Place};
use super::waiter::{Fetched, Waiter, Wake};
use crate::limits::{FETCH_BATCH_KEYS, FETCH_KEY_BYTES_MAX, FETCH_QUEUE_KEYS, FETCH_TIMEOUT_MS};

/// The keys that are wanted of one source.
#[derive(Debug, Default)]
pub struct FetchQueue {
    state: Mutex<State>,
    /// Wakes who fetches.
    work: Condvar,
    /// Held by who stores a fetched row. Who spoils a fetch passes it, so that no row that was read before is stored
    /// behind his deletion. Taken before `state`.
    storing: Mutex<()>,
    counts: Counts,
}

/// Relaxed throughout: figures for people.
#[derive(Debug, Default)]
struct Counts {
    queries: AtomicU64,
    fills: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    flights: HashMap<Place, Flight>,
    /// Keys that nobody fetches yet, the oldest first.
    waiting: VecDeque<Place>,
    absent: Absent,
    /// Until then the source is taken for away.
    away_until_ns: u64,
    closed: bool,
    serial: u64,
}

/// A key on its way.
#[derive(Debug)]
struct Flight {
    /// Tells it from an earlier one of the same key.
    number: u64,
    table: Arc<Table>,
    waiters: Vec<Arc<Waiter>>,
    deadline_ns: u64,
    /// Somebody fetches it.
    taken: bool,
    /// Somebody deleted or wrote the key meanwhile: what was read before is not to be stored.
    spoiled: bool,
}

/// Keys of one table that are fetched together.
#[derive(Debug)]
pub struct FetchBatch {
    /// The table.
    pub table: Arc<Table>,
    /// The keys.
    pub keys: Vec<WantedKey>,
    /// When the first of those who wait gives up, in the clock's nanoseconds.
    pub deadline_ns: u64,
}

/// A key that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedKey {
    /// As the table encodes it.
    pub key: Box<[u8]>,
    /// Which fetch of the key it is.
    pub number: u64,
}

impl FetchQueue {
    /// Asks for keys of a table. `wake` is called when the last has arrived, unless all is known at once.
    pub fn ask<'k>(
        &self,
        table: &Arc<Table>,
        keys: impl IntoIterator<Item = &'k [u8]>,
        wake: Wake,
        now_ns: u64,
    ) -> Arc<Waiter> {
        let waiter = Waiter::new(wake);
        let mut state = self.state.lock();
        for key in keys {
            self.ask_for(&mut state, (table, key), &waiter, now_ns);
        }
        drop(state);
        self.work.notify_one();
        waiter
    }

    fn ask_for(
        &self,
        state: &mut State,
        (table, key): (&Arc<Table>, &[u8]),
        waiter: &Arc<Waiter>,
        now_ns: u64,
    ) {
        let place: Place = (table.number(), key.into());
        if state.absent.has(&place, now_ns) {
            return waiter.know(place.0, key, Fetched::Absent);
        }
        if let Some(flight) = state.flights.get_mut(&place) {
            waiter.expect();
            return flight.waiters.push(Arc::clone(waiter));
        }
        let full = state.waiting.len() >= FETCH_QUEUE_KEYS || key.len() > FETCH_KEY_BYTES_MAX;
        if full || state.closed || now_ns < state.away_until_ns {
            self.counts.failed.fetch_add(1, Ordering::Relaxed);
            return waiter.know(place.0, key, Fetched::Failed);
        }
        waiter.expect();
        state.serial += 1;
        let timeout_ms = table.def().options.fetch_timeout_ms.unwrap_or(FETCH_TIMEOUT_MS);
        let flight = Flight {
            number: state.serial,
            table: Arc::clone(table),
            waiters: vec![Arc::clone(waiter)],
            deadline_ns: now_ns.saturating_add(timeout_ms.saturating_mul(1_000_000)),
            taken: false,
            spoiled: false,
        };
        state.waiting.push_back(place.clone());
        state.flights.insert(place, flight);
    }

    /// Takes keys of one table out, which the caller fetches from now on. Waits for some; none: there were none so
    /// long, or nobody asks any more.
    pub fn take(&self, wait: Duration) -> Option<FetchBatch> {
        let mut state = self.state.lock();
        if state.waiting.is_empty() && !state.closed {
            let _timed_out = self.work.wait_for(&mut state, wait);
        }
        let batch = state.take()?;
        if !state.waiting.is_empty() {
            self.work.notify_one();
        }
        self.counts.queries.fetch_add(1, Ordering::Relaxed);
        Some(batch)
    }

    /// What stores rows holds this, row by row.
    pub fn storing(&self) -> MutexGuard<'_, ()> {
        self.storing.lock()
    }

    /// Whether a key that is fetched may still be stored, as far as the clients here are concerned.
    pub fn is_wanted(&self, table: &Table, wanted: &WantedKey) -> bool {
        let state = self.state.lock();
        let flight = state.flights.get(&(table.number(), wanted.key.clone()));
        flight.is_some_and(|flight| flight.number == wanted.number && !flight.spoiled)
    }

    /// A key has arrived. `stored`: and its row is stored.
    pub fn arrive(&self, table: &Table, wanted: &WantedKey, fetched: &Fetched, stored: bool) {
        let place = (table.number(), wanted.key.clone());
        let mut state = self.state.lock();
        let is_own = state.flights.get(&place).is_some_and(|flight| flight.number == wanted.number);
        let flight = if is_own { state.flights.remove(&place) } else { None };
        drop(state);
        let count = match fetched {
            Fetched::Look if stored => Some(&self.counts.fills),
            Fetched::Row(_) => Some(&self.counts.refused),
            // Of which it was said that its time is over, it was counted then.
            Fetched::Failed if is_own => Some(&self.counts.failed),
            Fetched::Look | Fetched::Absent | Fetched::Failed => None,
        };
        if let Some(count) = count {
            count.fetch_add(1, Ordering::Relaxed);
        }
        deliver(&place, flight, fetched);
    }

    /// Remembers that the source has no row of a key. Only while it is [wanted](Self::is_wanted).
    pub fn remember_absent(&self, table: &Table, wanted: &WantedKey, now_ns: u64) {
        if let Some(ms) = table.def().options.miss_ttl_ms {
            let until_ns = now_ns.saturating_add(ms.saturating_mul(1_000_000));
            self.state.lock().absent.add((table.number(), wanted.key.clone()), until_ns);
        }
    }

    /// A row of this key may be there by now; none: of any.
    pub fn forget_absent(&self, table: u64, key: Option<&[u8]>) {
        let mut state = self.state.lock();
        if state.absent.is_empty() {
            return;
        }
        match key {
            Some(key) => state.absent.forget(&(table, key.into())),
            None => state.absent.forget_table(table),
        }
    }

    /// Somebody is about to delete or write a key (none: any of the table): what was read of it before is not stored.
    /// When this returns, no such row is being stored.
    pub fn spoil(&self, table: u64, key: Option<&[u8]>) {
        if self.mark_spoiled(table, key) {
            drop(self.storing.lock());
        }
        self.forget_absent(table, key);
    }

    fn mark_spoiled(&self, table: u64, key: Option<&[u8]>) -> bool {
        let mut state = self.state.lock();
        if state.flights.is_empty() {
            return false;
        }
        if let Some(key) = key {
            return state.flights.get_mut(&(table, key.into())).is_some_and(Flight::spoil);
        }
        let own = state.flights.iter_mut().filter(|((number, _), _)| *number == table);
        own.fold(false, |any, (_, flight)| flight.spoil() | any)
    }

    /// Nobody waits any more for keys whose time is over.
    pub fn expire(&self, now_ns: u64) {
        let mut state = self.state.lock();
        let State { flights, waiting, .. } = &mut *state;
        let over: Vec<_> = flights.extract_if(|_, flight| flight.deadline_ns <= now_ns).collect();
        if over.is_empty() {
            return;
        }
        waiting.retain(|place| flights.contains_key(place));
        drop(state);
        self.fail(over);
    }

    /// The source cannot be reached: until then nobody waits for it.
    pub fn set_away(&self, until_ns: u64) {
        let mut state = self.state.lock();
        state.away_until_ns = until_ns;
        let waiting = std::mem::take(&mut state.waiting);
        let over: Vec<_> =
            waiting.into_iter().filter_map(|place| state.flights.remove_entry(&place)).collect();
        drop(state);
        self.fail(over);
    }

    /// Nobody fetches any more.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.waiting.clear();
        let over: Vec<_> = state.flights.drain().collect();
        drop(state);
        self.work.notify_all();
        self.fail(over);
    }

    /// The figures.
    pub fn facts(&self) -> FetchFacts {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { queries, fills, refused, failed } = &self.counts;
        FetchFacts {
            queries: load(queries),
            fills: load(fills),
            refused: load(refused),
            failed: load(failed),
        }
    }

    fn fail(&self, over: Vec<(Place, Flight)>) {
        self.counts.failed.fetch_add(over.len() as u64, Ordering::Relaxed);
        for (place, flight) in over {
            deliver(&place, Some(flight), &Fetched::Failed);
        }
    }
}

fn deliver(place: &Place, flight: Option<Flight>, fetched: &Fetched) {
    for waiter in flight.into_iter().flat_map(|flight| flight.waiters) {
        waiter.arrive(place.0, &place.1, fetched.clone());
    }
}

impl Flight {
    /// Says whether somebody fetches it.
    fn spoil(&mut self) -> bool {
        self.spoiled |= self.taken;
        self.taken
    }
}

impl State {
    fn take(&mut self) -> Option<FetchBatch> {
        let first = self.waiting.front()?.0;
        let mut batch: Option<FetchBatch> = None;
        let mut others = VecDeque::new();
        while let Some(place) = self.waiting.pop_front() {
            if batch.as_ref().is_some_and(|batch| batch.keys.len() >= FETCH_BATCH_KEYS) {
                self.waiting.push_front(place);
                break;
            }
            if place.0 != first {
                others.push_back(place);
                continue;
            }
            let Some(flight) = self.flights.get_mut(&place) else { continue };
            flight.taken = true;
            let wanted = WantedKey { key: place.1, number: flight.number };
            let batch = batch.get_or_insert_with(|| FetchBatch {
                table: Arc::clone(&flight.table),
                keys: Vec::new(),
                deadline_ns: flight.deadline_ns,
            });
            batch.keys.push(wanted);
        }
        others.append(&mut self.waiting);
        self.waiting = others;
        batch
    }
}
