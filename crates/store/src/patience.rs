//! Lets definitions that go through all rows of a table be stopped half-way: what they had begun they take back.

use std::cell::RefCell;
use std::rc::Rc;

/// Says whether the thread's definition must stop.
pub type MustStop = Rc<dyn Fn() -> bool>;

thread_local! {
    static ASKED: RefCell<Option<MustStop>> = const { RefCell::new(None) };
}

/// Runs a definition that `must_stop` may end with SQLSTATE 57014: each time that some hundred rows are done it is
/// asked.
pub fn stoppable<T>(must_stop: MustStop, body: impl FnOnce() -> T) -> T {
    struct Restore(Option<MustStop>);
    impl Drop for Restore {
        fn drop(&mut self) {
            ASKED.set(self.0.take());
        }
    }
    let _before = Restore(ASKED.replace(Some(must_stop)));
    body()
}

/// Whether the thread's definition must stop. A thread that is given nothing to ask goes on.
pub(crate) fn must_stop() -> bool {
    let asked = ASKED.with_borrow(Clone::clone);
    asked.is_some_and(|must_stop| must_stop())
}

/// Rows that are computed between two looks whether to stop: each may take as long as its expressions may.
pub(crate) const ROWS_PER_LOOK: u64 = 16;
