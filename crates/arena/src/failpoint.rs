//! Places where a test steps in: between two steps of a thread, or where the kernel is asked for something.
//!
//! What another thread may do between two steps is done by the thread itself, by what was armed for that point: so an
//! encounter that takes a preemption at one instruction happens in every run. What the kernel refuses once a year is
//! refused when the test says so. What is armed holds for the thread that armed it.
//!
//! A build without debug assertions has nothing of this: the functions that the code calls are empty. A feature of
//! cargo would compile every crate once more for each set of features.

/// Where a test can step in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A reservation has looked at the fill word, and has not changed it.
    Reserve,
    /// Who is about to pin a row knows its segment, and has not pinned it.
    Pin,
    /// The segment is held, and whether the row is still there was not asked.
    Held,
    /// A row was found, and is about to be read.
    Found,
    /// A row was copied to another place, to which nothing leads yet.
    Copied,
    /// Other threads see new definitions; the thread that made them is still in the statement.
    Defined,
    /// The kernel is asked to promise pages.
    Fallocate,
    /// The kernel is asked to take pages back.
    Punch,
    /// The kernel is asked about pages of the mapping.
    Madvise,
    /// The kernel is asked to map memory.
    Mmap,
}

#[cfg(not(any(test, debug_assertions)))]
mod none {
    use rustix::io::Errno;

    use super::Point;

    /// Nothing: no test steps in here.
    #[allow(clippy::inline_always, reason = "nothing is to be left of it, in any profile")]
    #[inline(always)]
    pub fn reach(_point: Point) {}

    #[allow(clippy::inline_always, clippy::unnecessary_wraps, reason = "as above")]
    #[inline(always)]
    pub(crate) fn ask(_point: Point) -> Result<(), Errno> {
        Ok(())
    }
}
#[cfg(not(any(test, debug_assertions)))]
pub(crate) use none::ask;
#[cfg(not(any(test, debug_assertions)))]
pub use none::reach;

#[cfg(any(test, debug_assertions))]
mod armed {
    use std::cell::RefCell;

    use rustix::io::Errno;

    use super::Point;

    /// What happens at a point, once.
    enum Deed {
        Step(Box<dyn FnOnce()>),
        Refuse(Errno),
    }

    thread_local! {
        static ARMED: RefCell<Vec<(Point, Deed)>> = const { RefCell::new(Vec::new()) };
    }

    fn take(point: Point) -> Option<Deed> {
        ARMED.with_borrow_mut(|armed| {
            let at = armed.iter().position(|(own, _)| *own == point)?;
            Some(armed.remove(at).1)
        })
    }

    /// Has this thread do something the next time it comes to a point.
    pub fn step_in(point: Point, step: impl FnOnce() + 'static) {
        ARMED.with_borrow_mut(|armed| armed.push((point, Deed::Step(Box::new(step)))));
    }

    /// Has the kernel refuse this thread so many times.
    pub fn refuse(point: Point, times: usize, why: Errno) {
        ARMED.with_borrow_mut(|armed| armed.extend((0..times).map(|_| (point, Deed::Refuse(why)))));
    }

    /// The same from the call after so many on.
    pub fn refuse_after(point: Point, passes: usize, times: usize, why: Errno) {
        (0..passes).for_each(|_| step_in(point, || ()));
        refuse(point, times, why);
    }

    /// Disarms what is left of this thread's; how many there were that nothing came to.
    pub fn disarm() -> usize {
        ARMED.with_borrow_mut(std::mem::take).len()
    }

    /// Does what is armed for a point.
    pub fn reach(point: Point) {
        if let Some(Deed::Step(step)) = take(point) {
            step();
        }
    }

    /// As [`reach`], for what may be refused.
    pub(crate) fn ask(point: Point) -> Result<(), Errno> {
        match take(point) {
            Some(Deed::Refuse(why)) => Err(why),
            Some(Deed::Step(step)) => {
                step();
                Ok(())
            }
            None => Ok(()),
        }
    }
}
#[cfg(any(test, debug_assertions))]
pub(crate) use armed::ask;
#[cfg(any(test, debug_assertions))]
pub use armed::{disarm, reach, refuse, refuse_after, step_in};
