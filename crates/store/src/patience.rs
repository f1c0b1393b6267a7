//! The one watch of the statement that a thread works on. Every stage of a statement asks it: what reads its text, what
//! walks through its tree, SQLite, and definitions that go through all rows of a table.
//!
//! A stage that has much to do takes a [`step`] for each token, node or allocation, which is cheap, and gives up where
//! that says so. With what error is all the same: who runs the statement asks the watch for the reason.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Knows when a statement must stop.
pub trait Watch {
    /// Whether it must, so many operations after this was asked last.
    fn must_stop(&self, operations: u64) -> bool;
}

/// Steps between two looks at the watch: each takes up to some microseconds, a look takes some hundredths of one.
const STEPS_PER_LOOK: u32 = 64;

thread_local! {
    static WATCH: RefCell<Option<Rc<dyn Watch>>> = const { RefCell::new(None) };
    /// Steps since the last look.
    static STEPS: Cell<u32> = const { Cell::new(0) };
    /// A look has said that the statement is over: it is not asked again.
    static OVER: Cell<bool> = const { Cell::new(false) };
}

/// Runs a statement, or a part of one that has a watch of its own, under this watch.
pub fn watched<T>(watch: Rc<dyn Watch>, body: impl FnOnce() -> T) -> T {
    struct Restore(Option<Rc<dyn Watch>>, bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            WATCH.set(self.0.take());
            OVER.set(self.1);
        }
    }
    let _before = Restore(WATCH.replace(Some(watch)), OVER.replace(false));
    body()
}

/// Whether the thread's statement must stop. A thread that is given nothing to ask goes on.
pub fn must_stop(operations: u64) -> bool {
    let watch = WATCH.with_borrow(Clone::clone);
    watch.is_some_and(|watch| watch.must_stop(operations))
}

/// Takes a step. True: the thread's statement must stop.
#[inline]
pub fn step() -> bool {
    let steps = STEPS.get() + 1;
    STEPS.set(steps);
    if steps < STEPS_PER_LOOK { OVER.get() } else { look() }
}

/// Whether a step has said so.
pub fn is_over() -> bool {
    OVER.get()
}

#[cold]
fn look() -> bool {
    STEPS.set(0);
    // A step is no operation: those are what a statement does when it runs.
    let over = OVER.get() || must_stop(0);
    OVER.set(over);
    over
}

/// Rows that are computed between two looks whether to stop: each may take as long as its expressions may.
pub(crate) const ROWS_PER_LOOK: u64 = 16;
/// The operations that these rows count.
pub(crate) const OPERATIONS_PER_LOOK: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Says stop at the look of this number.
    struct At(Cell<u32>);

    impl Watch for At {
        fn must_stop(&self, _: u64) -> bool {
            self.0.set(self.0.get().saturating_sub(1));
            self.0.get() == 0
        }
    }

    #[test]
    fn steps_end_with_the_watch_and_not_before() {
        let steps = || (1..10 * STEPS_PER_LOOK).take_while(|_| !step()).count();
        STEPS.set(0);
        let whole = steps();
        STEPS.set(0);
        let cut = watched(Rc::new(At(Cell::new(3))), || (steps(), step()));
        assert_eq!(cut, ((3 * STEPS_PER_LOOK - 1) as usize, true));
        STEPS.set(0);
        assert_eq!(steps(), whole, "the watch of an ended statement was asked");
    }
}
