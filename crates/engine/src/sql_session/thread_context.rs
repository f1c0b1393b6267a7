//! What a SQL thread brings to the sessions that it serves.

use std::time::Duration;

use sql::{Executor, SqlError};

use crate::engine::Engine;
use crate::thread_context::ThreadContext;

/// A thread's own context and executor.
#[derive(Debug)]
pub struct SqlThreadContext {
    context: ThreadContext,
    /// None before the first statement, and after one that panicked: what it left behind is not trusted.
    executor: Option<Executor>,
    /// How long a statement may run.
    timeout: Option<Duration>,
    /// The executor's limits: that, and whether statements that need no SQLite are run without it.
    in_force: (Option<Duration>, bool),
}

impl SqlThreadContext {
    /// A context for the calling thread.
    pub fn new(context: ThreadContext) -> Self {
        Self { context, executor: None, timeout: None, in_force: (None, true) }
    }

    /// The thread's context.
    #[inline]
    pub fn context(&self) -> &ThreadContext {
        &self.context
    }

    /// The thread's context, to read the clock with.
    #[inline]
    pub fn context_mut(&mut self) -> &mut ThreadContext {
        &mut self.context
    }

    /// How long statements may run whose session says nothing.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// How long the next statements may run.
    #[inline]
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// The context and the executor.
    pub fn tools(&mut self) -> Result<(&mut ThreadContext, &mut Executor), SqlError> {
        self.executor()?;
        match &mut self.executor {
            Some(executor) => Ok((&mut self.context, executor)),
            None => Err(SqlError::new("XX000", "no executor")),
        }
    }

    /// The executor, with the timeout in force.
    #[inline]
    pub fn executor(&mut self) -> Result<&mut Executor, SqlError> {
        let engine = self.context.engine();
        let wanted = (self.timeout, engine.native_execution());
        if wanted != self.in_force
            && let Some(executor) = &mut self.executor
        {
            executor.set_limits(Engine::limits(wanted.0, wanted.1));
            self.in_force = wanted;
        }
        if self.executor.is_none() {
            self.executor = Some(engine.executor(self.timeout)?);
            self.in_force = wanted;
        }
        self.executor.as_mut().ok_or_else(|| SqlError::new("XX000", "no executor"))
    }

    /// Throws the executor away: a statement panicked in it.
    pub fn distrust(&mut self) {
        self.executor = None;
    }
}
