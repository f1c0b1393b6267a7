//! Who waits until a bus has what was told.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use sql::SqlError;

/// Calls back, once, with what became of it.
type Then = Box<dyn FnOnce(Result<(), SqlError>) + Send>;

/// What a client waits for that made rows invalid: the acknowledgement of each bus that was told.
pub struct Receipt {
    state: Mutex<State>,
}

struct State {
    /// Buses that have not acknowledged.
    left: usize,
    failed: Option<SqlError>,
    then: Option<Then>,
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receipt").field("left", &self.state.lock().left).finish_non_exhaustive()
    }
}

impl Receipt {
    /// Of so many buses.
    pub(crate) fn new(buses: usize) -> Self {
        Self { state: Mutex::new(State { left: buses, failed: None, then: None }) }
    }

    /// Of what two wait for.
    pub(crate) fn of_both(one: &Arc<Self>, other: &Arc<Self>) -> Arc<Self> {
        let both = Arc::new(Self::new(2));
        for part in [one, other] {
            let both = Arc::clone(&both);
            part.when_over(move |result| both.settle(result));
        }
        both
    }

    /// A bus has it, or not in time.
    pub(super) fn settle(&self, result: Result<(), SqlError>) {
        let mut state = self.state.lock();
        state.left = state.left.saturating_sub(1);
        if let Err(error) = result {
            state.failed.get_or_insert(error);
        }
        if state.left > 0 {
            return;
        }
        let (then, result) = (state.then.take(), state.result());
        drop(state);
        if let Some(then) = then {
            then(result);
        }
    }

    /// Whether nothing more is waited for.
    pub fn is_over(&self) -> bool {
        self.state.lock().left == 0
    }

    /// What became of it, as far as that is known.
    pub fn result(&self) -> Result<(), SqlError> {
        self.state.lock().result()
    }

    /// Calls back when it is over, from any thread; at once, if it is.
    pub fn when_over(&self, then: impl FnOnce(Result<(), SqlError>) + Send + 'static) {
        let mut state = self.state.lock();
        if state.left > 0 {
            state.then = Some(Box::new(then));
            return;
        }
        let result = state.result();
        drop(state);
        then(result);
    }
}

/// Calls back when all of these are over, with the first failure.
pub(crate) fn when_all_are_over(
    mut receipts: Vec<Arc<Receipt>>,
    so_far: Result<(), SqlError>,
    then: impl FnOnce(Result<(), SqlError>) + Send + 'static,
) {
    match receipts.pop() {
        None => then(so_far),
        // One of many is the exception, so the calls do not lie deep.
        Some(receipt) if receipts.is_empty() => receipt.when_over(move |result| then(so_far.and(result))),
        Some(receipt) => {
            let then: Then = Box::new(then);
            receipt.when_over(move |result| when_all_are_over(receipts, so_far.and(result), then));
        }
    }
}

impl State {
    fn result(&self) -> Result<(), SqlError> {
        self.failed.clone().map_or(Ok(()), Err)
    }
}
