//! The cleaner: the store's housekeeping, a bounded piece each tick.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use engine::{Clock, Engine, TICK_NS};

use crate::limits::{
    CLEAN_INTERVAL, CLEANER_NICENESS, CLEANER_SHARE, CLEANER_WORK_NS, GIVE_BACK_INTERVAL_NS,
};

/// Lets the store work each tick until the other end of `stop` is dropped.
pub(crate) fn run(engine: &Arc<Engine>, stop: &Receiver<()>) {
    // To Linux this is the calling thread alone. A system that refuses lets it compete as an equal.
    let _refused = rustix::process::setpriority_process(None, CLEANER_NICENESS);
    let clock = engine.store().clock();
    let mut rest = CLEAN_INTERVAL;
    let mut given_back = clock.precise_ns();
    while stop.recv_timeout(rest) == Err(RecvTimeoutError::Timeout) {
        let begin = clock.precise_ns();
        let until = begin + TICK_NS;
        let mut turn = Turn { clock, until, since: begin, work: CLEANER_WORK_NS };
        engine.tick_with_pauses(&mut || turn.give_way());
        if begin.saturating_sub(given_back) >= GIVE_BACK_INTERVAL_NS {
            given_back = begin;
            engine::give_memory_back();
        }
        rest = CLEAN_INTERVAL.min(Duration::from_nanos(until.saturating_sub(clock.precise_ns())));
    }
}

/// The cleaner's turn on a processor.
///
/// To Linux a thread that has slept is owed time, and one that wakes up after it waits until it had some milliseconds.
/// Who gives way is owed nothing: from then on the others come first when they wake up.
struct Turn<'c> {
    clock: &'c Clock,
    /// The next tick.
    until: u64,
    /// When it gave way last.
    since: u64,
    /// How long it works until it does again.
    work: u64,
}

impl Turn<'_> {
    /// Gives way if it has worked for long enough. `Break`: the next tick has come.
    fn give_way(&mut self) -> ControlFlow<()> {
        let now = self.clock.precise_ns();
        if now >= self.until {
            return ControlFlow::Break(());
        }
        if now.saturating_sub(self.since) >= self.work {
            std::thread::yield_now();
            self.since = self.clock.precise_ns();
            // A processor that others keep busy is shared with them, or giving way would leave the cleaner nothing.
            self.work = CLEANER_WORK_NS.max(self.since.saturating_sub(now) / CLEANER_SHARE);
        }
        ControlFlow::Continue(())
    }
}

/// Proves and indexes what an earlier process left, while everybody else works. Nobody waits for this thread at a stop:
/// the next start does what is left.
pub(crate) fn recover(engine: &Arc<Engine>) {
    let clock = engine.store().clock();
    let before = clock.now_ns();
    let recovered = engine.store().recover();
    let milliseconds = (clock.now_ns() - before) / 1_000_000;
    let (rows, dropped) = (recovered.rows, recovered.dropped);
    tracing::info!(
        "{rows} rows were checked and indexed in {milliseconds} ms; {dropped} torn rows were dropped"
    );
}
