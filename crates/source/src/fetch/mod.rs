//! Read-through: fetches the rows that clients miss.
//!
//! A source has a few threads for it, each with a connection of its own. One takes keys of a table out of the source's
//! queue, asks for all of them by one query, and stores what comes, unless the [gate](crate::gate) refuses it.

mod answer;
mod ask;
mod check;
mod fill;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use engine::{Engine, FetchBatch, Fetched, SourceState};
use store::definition::ServerDef;

use crate::error::Error;
use crate::gate::Gate;
use crate::limits::{FETCH_AWAY, FETCH_CONNECTIONS, FETCH_IDLE};
use crate::time::now;
pub(crate) use answer::{Answer, Form, Taken, form_of, key_text};
pub(crate) use ask::Asker;
pub(crate) use check::{check, check_columns};
use fill::Filler;

/// The threads that fetch from a source.
pub(crate) struct Fetchers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// What one of them works with.
struct Fetcher {
    engine: Arc<Engine>,
    server: Arc<ServerDef>,
    state: Arc<SourceState>,
    gate: Arc<Gate>,
    stop: Arc<AtomicBool>,
    connect: Connect,
    /// The connection, once there is one.
    asker: Option<Box<dyn Ask>>,
}

/// A connection that asks for rows.
pub(crate) trait Ask: Send {
    /// Asks for the rows of a batch.
    fn ask(&mut self, batch: &FetchBatch, deadline: Instant) -> Result<Answer, Error>;

    /// Whether nothing more can be asked.
    fn is_broken(&self) -> bool;

    /// Whether the source has ended it meanwhile.
    fn is_gone(&mut self) -> bool;

    /// Says that it ends.
    fn end(&mut self);
}

/// Makes a new connection to a source.
pub(crate) type Connect = fn(&ServerDef) -> Result<Box<dyn Ask>, Error>;

impl Fetchers {
    pub(crate) fn start(
        engine: &Arc<Engine>,
        server: &Arc<ServerDef>,
        state: &Arc<SourceState>,
        gate: &Arc<Gate>,
        connect: Connect,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let said = server.option("fetch_connections").and_then(|count| count.parse().ok());
        let start = |number| {
            let mut fetcher = Fetcher {
                engine: Arc::clone(engine),
                server: Arc::clone(server),
                state: Arc::clone(state),
                gate: Arc::clone(gate),
                stop: Arc::clone(&stop),
                connect,
                asker: None,
            };
            let name = format!("fetch-{}-{number}", server.id);
            let spawned = thread::Builder::new().name(name).spawn(move || fetcher.run());
            spawned
                .inspect_err(|error| tracing::error!(source = %server.name, %error, "a source has no thread"))
                .ok()
        };
        let threads = (0..said.unwrap_or(FETCH_CONNECTIONS)).filter_map(start).collect();
        Self { stop, threads }
    }

    /// Ends them. The queue was closed before.
    pub(crate) fn end(self) {
        // Relaxed: the flag carries no data.
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            let _panicked = thread.join();
        }
    }
}

impl Fetcher {
    fn run(&mut self) {
        let mut filler = Filler::new(&self.engine);
        // Relaxed: the flag carries no data.
        while !self.stop.load(Ordering::Relaxed) {
            match self.state.fetches.take(FETCH_IDLE) {
                Some(batch) => self.fetch(&mut filler, &batch),
                None => self.look_at_connection(),
            }
        }
        if let Some(asker) = &mut self.asker {
            asker.end();
        }
    }

    /// A source that ended the connection meanwhile is noticed before somebody waits for it.
    fn look_at_connection(&mut self) {
        if self.asker.as_mut().is_some_and(|asker| asker.is_gone()) {
            self.asker = None;
        }
    }

    fn fetch(&mut self, filler: &mut Filler, batch: &FetchBatch) {
        let left = batch.deadline_ns.saturating_sub(self.engine.store().clock().now_ns());
        let deadline = now() + Duration::from_nanos(left);
        let mut result = self.fetch_once(filler, batch, deadline);
        // A connection that was idle may be gone, and the source there.
        if self.asker.is_none() && result.is_err() && now() < deadline {
            result = self.fetch_once(filler, batch, deadline);
        }
        let Err(error) = result else { return };
        self.state
            .update(|facts| facts.last_error = Some(format!("query of {}: {error}", batch.table.name())));
        tracing::debug!(source = %self.server.name, table = batch.table.name(), "a fetch failed: {error}");
        for wanted in &batch.keys {
            self.state.fetches.arrive(&batch.table, wanted, &Fetched::Failed, false);
        }
    }

    fn fetch_once(
        &mut self,
        filler: &mut Filler,
        batch: &FetchBatch,
        deadline: Instant,
    ) -> Result<(), Error> {
        let asker = match &mut self.asker {
            Some(asker) => asker,
            none => match (self.connect)(&self.server) {
                Ok(asker) => none.insert(asker),
                Err(error) => {
                    let clock = self.engine.store().clock();
                    let away = u64::try_from(FETCH_AWAY.as_nanos()).unwrap_or(u64::MAX);
                    self.state.fetches.set_away(clock.now_ns().saturating_add(away));
                    return Err(error);
                }
            },
        };
        let pass = self.gate.begin();
        let result = asker.ask(batch, deadline);
        let result =
            result.and_then(|answer| filler.fill(batch, &answer, (&self.state.fetches, &self.gate), &pass));
        self.gate.end(pass);
        if asker.is_broken() {
            self.asker = None;
        }
        result
    }
}
