//! Who waits for rows.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use store::value::Value;

use super::absent::Place;

/// Calls a client back, from any thread.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// What became of a key that was missing.
#[derive(Clone, Debug)]
pub enum Fetched {
    /// It is looked for again: the row was stored, or somebody else stored one.
    Look,
    /// The source has no such row.
    Absent,
    /// The source has this row, which was not stored: a change of it is under way. It answers those who wait.
    Row(Arc<FetchedRow>),
    /// It is not known.
    Failed,
}

/// A row that was not stored.
#[derive(Debug)]
pub struct FetchedRow {
    /// The statement that makes it, with a parameter for each value.
    pub insert: Arc<str>,
    /// Its values.
    pub values: Vec<Value>,
    /// What memcached's clients get; none: the table has no value column, or the value is NULL.
    pub value: Option<Vec<u8>>,
}

/// Somebody who waits for some keys.
pub struct Waiter {
    state: Mutex<State>,
    wake: Wake,
}

#[derive(Debug, Default)]
struct State {
    /// Keys that have not arrived.
    left: usize,
    arrived: Vec<(Place, Fetched)>,
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Waiter {
    pub(super) fn new(wake: Wake) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), wake })
    }

    /// One more key is waited for.
    pub(super) fn expect(&self) {
        self.state.lock().left += 1;
    }

    /// What is known of a key at once.
    pub(super) fn know(&self, table: u64, key: &[u8], fetched: Fetched) {
        self.state.lock().arrived.push(((table, key.into()), fetched));
    }

    /// A key has arrived. The last one calls the client back.
    pub(super) fn arrive(&self, table: u64, key: &[u8], fetched: Fetched) {
        let mut state = self.state.lock();
        state.left -= 1;
        state.arrived.push(((table, key.into()), fetched));
        let over = state.left == 0;
        drop(state);
        if over {
            (self.wake)();
        }
    }

    /// Whether nothing more is waited for.
    pub fn is_over(&self) -> bool {
        self.state.lock().left == 0
    }

    /// What became of a key; none: it was not asked for.
    pub fn fetched(&self, table: u64, key: &[u8]) -> Option<Fetched> {
        let state = self.state.lock();
        let own = state.arrived.iter().find(|((number, own), _)| *number == table && **own == *key);
        own.map(|(_, fetched)| fetched.clone())
    }

    /// The keys whose rows were stored, by their tables' numbers.
    pub(crate) fn stored(&self) -> Vec<Place> {
        let state = self.state.lock();
        let stored = state.arrived.iter().filter(|(_, fetched)| matches!(fetched, Fetched::Look));
        stored.map(|(place, _)| place.clone()).collect()
    }

    /// The rows that were not stored.
    pub(crate) fn rows(&self) -> Vec<Arc<FetchedRow>> {
        let state = self.state.lock();
        let row = |fetched: &Fetched| match fetched {
            Fetched::Row(row) => Some(Arc::clone(row)),
            _ => None,
        };
        state.arrived.iter().filter_map(|(_, fetched)| row(fetched)).collect()
    }
}
