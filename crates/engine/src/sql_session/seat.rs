//! What a SQL thread brings to the sessions that it serves.

use std::time::Duration;

use sql::{Executor, SqlError};

use crate::engine::Engine;
use crate::lane::Lane;

/// A thread's own lane and executor.
#[derive(Debug)]
pub struct SqlSeat {
    lane: Lane,
    /// None before the first statement, and after one that panicked: what it left behind is not trusted.
    executor: Option<Executor>,
    /// How long a statement may run.
    timeout: Option<Duration>,
    /// What the executor was told: that, and whether statements that need no SQLite are run without it.
    told: (Option<Duration>, bool),
}

impl SqlSeat {
    /// A seat for the calling thread.
    pub fn new(lane: Lane) -> Self {
        Self { lane, executor: None, timeout: None, told: (None, true) }
    }

    /// The thread's lane.
    #[inline]
    pub fn lane(&self) -> &Lane {
        &self.lane
    }

    /// The thread's lane, to read the clock with.
    #[inline]
    pub fn lane_mut(&mut self) -> &mut Lane {
        &mut self.lane
    }

    /// How long the next statements may run.
    #[inline]
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// The lane and the executor.
    pub fn tools(&mut self) -> Result<(&mut Lane, &mut Executor), SqlError> {
        self.executor()?;
        match &mut self.executor {
            Some(executor) => Ok((&mut self.lane, executor)),
            None => Err(SqlError::new("XX000", "no executor")),
        }
    }

    /// The executor, with the timeout in force.
    #[inline]
    pub fn executor(&mut self) -> Result<&mut Executor, SqlError> {
        let engine = self.lane.engine();
        let wanted = (self.timeout, engine.native_execution());
        if wanted != self.told
            && let Some(executor) = &mut self.executor
        {
            executor.set_limits(Engine::limits(wanted.0, wanted.1));
            self.told = wanted;
        }
        if self.executor.is_none() {
            self.executor = Some(engine.executor(self.timeout)?);
            self.told = wanted;
        }
        self.executor.as_mut().ok_or_else(|| SqlError::new("XX000", "no executor"))
    }

    /// Throws the executor away: a statement panicked in it.
    pub fn distrust(&mut self) {
        self.executor = None;
    }
}
