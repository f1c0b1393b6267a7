//! The one wall between SQLite's C frames and Rust's panics.
//!
//! A panic must not cross C. Every callback runs inside [`guarded`]: a panic becomes the callback's failure
//! value, is counted, and the statement ends with an error; the daemon and the connection live on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Places where a test can ask for a panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(debug_assertions), allow(unreachable_pub, reason = "only tests name one from outside"))]
pub enum FaultPoint {
    /// A table is connected to a connection.
    Connect,
    /// The planner asks for the cost of a way to read.
    BestIndex,
    /// A cursor is opened.
    Open,
    /// A cursor starts to read.
    Filter,
    /// A cursor moves on.
    Next,
    /// A column is read.
    Column,
    /// A row's number is read.
    Rowid,
    /// A statement's action is judged.
    Authorize,
    /// A running statement asks whether to go on.
    Progress,
    /// A function of ours is called.
    Function,
    /// Two texts are compared.
    Compare,
}

static CAUGHT: AtomicU64 = AtomicU64::new(0);

/// Panics that were caught at the border to SQLite since the process started.
pub fn panics_caught() -> u64 {
    // Relaxed: a counter for people, nothing is ordered by it.
    CAUGHT.load(Ordering::Relaxed)
}

/// Counts a panic that was caught elsewhere in this crate.
pub fn count_panic() {
    // Relaxed: see `panics_caught`.
    CAUGHT.fetch_add(1, Ordering::Relaxed);
}

#[cfg(debug_assertions)]
thread_local! {
    static ARMED: std::cell::Cell<Option<FaultPoint>> = const { std::cell::Cell::new(None) };
}

/// Makes the next callback of this kind on this thread panic.
#[cfg(debug_assertions)]
pub fn arm_fault(point: FaultPoint) {
    ARMED.set(Some(point));
}

#[cfg_attr(not(debug_assertions), expect(unused_variables, reason = "nobody arms one"))]
#[inline]
fn trip(point: FaultPoint) {
    #[cfg(debug_assertions)]
    if ARMED.get() == Some(point) {
        ARMED.set(None);
        panic!("fault point {point:?}");
    }
}

/// Runs the body of a callback; after a panic, answers `failed`.
#[inline]
pub(crate) fn guarded<T>(point: FaultPoint, failed: T, body: impl FnOnce() -> T) -> T {
    let result = catch_unwind(AssertUnwindSafe(|| {
        trip(point);
        body()
    }));
    result.unwrap_or_else(|_| {
        count_panic();
        failed
    })
}
