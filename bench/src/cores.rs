//! Which processor core runs what. The server and the load each get a core of their own; a process inherits
//! the cores of the thread that starts it, so a server is started from its own core.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::failure::Result;

/// The cores for a one-thread figure; `None` where there is only one core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cores(Option<(usize, usize)>);

impl Cores {
    /// The server gets the highest core we may use: interrupts tend to land on the lowest.
    pub(crate) fn choose() -> Self {
        let Ok(set) = sched_getaffinity(None) else { return Self(None) };
        let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect();
        match (allowed.first(), allowed.last()) {
            (Some(&load), Some(&server)) if load != server => Self(Some((load, server))),
            _ => Self(None),
        }
    }

    /// Nothing is pinned.
    pub(crate) fn free() -> Self {
        Self(None)
    }

    /// Moves the calling thread to the load's core.
    pub(crate) fn pin_load(self) -> Result<()> {
        self.0.map_or(Ok(()), |(load, _)| pin(load))
    }

    /// Lets the calling thread run on every core that the system lets it have, whatever it was pinned to.
    pub(crate) fn release() -> Result<()> {
        let mut set = CpuSet::new();
        (0..CpuSet::MAX_CPU).for_each(|core| set.set(core));
        sched_setaffinity(None, &set)?;
        Ok(())
    }

    /// Runs `start` on the server's core, so that what it starts stays there.
    pub(crate) fn start_server<T>(self, start: impl FnOnce() -> Result<T>) -> Result<T> {
        let Some((load, server)) = self.0 else { return start() };
        pin(server)?;
        let started = start();
        pin(load)?;
        started
    }

    /// For the report.
    pub(crate) fn describe(self) -> String {
        match self.0 {
            Some((load, server)) => format!("server on core {server}, load on core {load}"),
            None => "not pinned".into(),
        }
    }
}

fn pin(core: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set)?;
    Ok(())
}
