//! The databases behind the cache: the change streams of PostgreSQL and MariaDB invalidate rows here.
//!
//! Each foreign server that a table names has a thread and two connections. One carries the stream of changes from a
//! temporary slot; the other is for questions. What a table depends on (`depends`) says which rows a change removes.
//! The deletes go through a session of the engine's, as everybody's do, in one transaction for each of the source's.
//!
//! A cache may forget. So the slot is temporary: when the connection is lost, rows here are emptied by one step each
//! time the source was away for `max_lag`, and once more when it is back, and then refilled on demand.
#![forbid(unsafe_code)]

mod apply;
mod batch;
mod change;
mod check;
mod checker;
mod error;
mod fetch;
mod fit;
mod follow;
mod forward;
mod gate;
mod limits;
mod login;
mod mariadb;
pub mod messages;
mod mirror;
mod pgoutput;
mod plan;
mod query;
mod row;
mod running;
mod settle;
mod slot;
mod socket;
mod source;
mod stream;
mod time;
mod tls;
mod values;
mod views;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use engine::{Behind, Engine, Lag, LagVerdict, SourceColumn, SourceFacts, SourceNote, SourceRows, SqlError};
use store::definition::{MaterializedDef, Mode, ServerDef, TableDef, Wrapper};
use store::{Catalog, Table};

pub use error::Error;

use ::forward::{Forwards, Hub, keeps_answers};
use apply::Applier;
use fetch::Fetchers;
use forward::{Askers, Sessions};
use gate::{Followed, Gate};
use limits::{COMMIT_TRIES, IDLE_INTERVAL, RETRY_PAUSES, START_WAIT, SUPERVISE_INTERVAL};
use login::{Purpose, connect};
use plan::{Plan, Target};
use source::Source;
use time::now;
use views::Pool;

/// All sources. They end when this is dropped.
#[derive(Debug)]
pub struct Sources {
    stop: Arc<AtomicBool>,
    supervisor: Option<JoinHandle<()>>,
}

impl Sources {
    /// Follows the definitions from now on: a source for each server that a table names.
    ///
    /// # Errors
    ///
    /// The system gives no thread.
    pub fn start(engine: &Arc<Engine>, forwards: &Arc<Forwards>) -> std::io::Result<Self> {
        let views = Arc::new(Pool::default());
        engine.sources.attach(Box::new(Databases(Arc::clone(&views))));
        forwards.attach(Box::new(Sessions));
        let stop = Arc::new(AtomicBool::new(false));
        // Before anybody is served: what a source may have changed meanwhile is not believed.
        let mut applier = Applier::new(engine);
        let mut running = adjusted(engine, forwards, Vec::new(), &mut applier);
        catch_up(engine, &mut running, &mut applier);
        let (own, engine, forwards) = (Arc::clone(&stop), Arc::clone(engine), Arc::clone(forwards));
        let supervisor = thread::Builder::new()
            .name("sources".into())
            .spawn(move || supervise(&engine, &forwards, running, &own, &views))?;
        Ok(Self { stop, supervisor: Some(supervisor) })
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        // Relaxed: the flag carries no data.
        self.stop.store(true, Ordering::Relaxed);
        if let Some(supervisor) = self.supervisor.take() {
            supervisor.thread().unpark();
            let _panicked = supervisor.join();
        }
    }
}

/// Rows of the process before are served when the changes of the time between are applied. Where these do not come, the
/// rows are not believed.
fn catch_up(engine: &Engine, running: &mut [Running], applier: &mut Applier) {
    for own in running {
        let until = own.lag.since() + Source::max_lag(&own.server).min(START_WAIT);
        while !own.follows() && own.believes(engine) && now() < until {
            thread::sleep(SUPERVISE_INTERVAL);
        }
        if !own.follows() && own.believes(engine) {
            own.empty(engine, applier);
        }
    }
}

/// What statements ask of sources, each time over a connection of its own or of the views'.
struct Databases(Arc<Pool>);

impl Behind for Databases {
    fn check(&self, server: &ServerDef, table: &TableDef) -> Result<Vec<SourceNote>, SqlError> {
        ask(server, table)
    }

    fn describe(&self, server: &ServerDef, sql: &str) -> Result<Vec<SourceColumn>, SqlError> {
        Ok(views::describe(server, sql)?)
    }

    fn run(
        &self,
        server: &ServerDef,
        view: &MaterializedDef,
        timeout: Duration,
        rows: &mut dyn SourceRows,
    ) -> Result<(), SqlError> {
        self.0.run(server, view, timeout, rows)
    }
}

/// Asks a source whether it can tell what changes. What should be done there comes back.
fn ask(server: &ServerDef, table: &TableDef) -> Result<Vec<SourceNote>, SqlError> {
    if !table.follows_source() {
        return Ok(Vec::new());
    }
    if server.wrapper == Wrapper::MariaDb {
        refuse_of_mariadb(table)?;
        mariadb::ask(server, &table.dependences(), table.options.query.is_some().then_some(table))?;
        return Ok(Vec::new());
    }
    let mut connection = connect(server, Purpose::Questions)?;
    let result = check::check(&mut connection, server, &table.dependences())
        .and_then(|()| table.copied().map_or(Ok(()), |copied| fit::check(&mut connection, table, &copied)))
        .and_then(|()| fetch::check(&mut connection, table))
        .and_then(|()| {
            let note = server.option("slot").map(|_| slot::size_note(&mut connection)).transpose()?;
            Ok(note.flatten().into_iter().collect())
        });
    connection.end();
    Ok(result?)
}

/// What only PostgreSQL can be asked for.
fn refuse_of_mariadb(table: &TableDef) -> Result<(), SqlError> {
    let refuse = |message, hint: &str| Err(SqlError::new("0A000", message).with_hint(hint));
    if table.options.mode != Mode::Invalidate {
        return refuse(
            "rows cannot be copied from MariaDB: its changes only invalidate rows",
            "leave out mode, or set it to 'invalidate'",
        );
    }
    Ok(())
}

/// A source's thread.
struct Running {
    server: Arc<ServerDef>,
    state: Arc<engine::SourceState>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    gate: Arc<Gate>,
    /// The threads that fetch missing rows, once a table asks for some.
    fetchers: Option<Fetchers>,
    /// How long it was not followed.
    lag: Lag,
    /// What forwarded sessions share, where their answers are kept, and who asks the source for it.
    hub: Option<Arc<Hub>>,
    askers: Option<Askers>,
}

impl Running {
    /// Starts one. What depends on it was not followed so far.
    fn start(
        engine: &Arc<Engine>,
        server: &Arc<ServerDef>,
        hub: Option<Arc<Hub>>,
        applier: &mut Applier,
    ) -> Self {
        let state = engine.sources.add(&server.name, engine.store().clock());
        let stop = Arc::new(AtomicBool::new(false));
        let gate = Arc::new(Gate::default());
        let source = Source {
            engine: Arc::clone(engine),
            server: Arc::clone(server),
            state: Arc::clone(&state),
            gate: Arc::clone(&gate),
            stop: Arc::clone(&stop),
            hub: hub.clone(),
        };
        let spawned =
            thread::Builder::new().name(format!("source-{}", server.id)).spawn(move || follow(&source));
        let thread = spawned
            .inspect_err(|error| tracing::error!(source = %server.name, %error, "a source has no thread"))
            .ok();
        let (server, fetchers) = (Arc::clone(server), None);
        let lag = Lag::new(Source::max_lag(&server), now());
        let askers = hub.as_ref().map(|hub| Askers::start(engine, &server, hub));
        let mut own = Self { server, state, stop, thread, gate, fetchers, lag, hub, askers };
        if !own.believes(engine) {
            own.empty(engine, applier);
        }
        own
    }

    /// Whether rows from before it may turn out to have followed it.
    fn believes(&self, engine: &Engine) -> bool {
        self.server.option("slot").is_some() && engine.store().followed(&self.server.name).is_some()
    }

    fn follows(&self) -> bool {
        let facts = self.state.facts();
        if facts.state != "streaming" || !self.is_alive() {
            return false;
        }
        let late = is_late(&facts, self.lag.max());
        if let Some(hub) = self.hub.as_ref().filter(|_| late) {
            hub.set_live(false);
        }
        if late && self.state.enter("lagging") {
            tracing::info!(source = %self.server.name, "source is lagging");
        }
        !late
    }

    /// Says that it is to end, and waits until it has. `gone`: for good, so its slot goes, too.
    fn end(mut self, engine: &Arc<Engine>, gone: bool) {
        // Relaxed: the flag carries no data.
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
        engine.sources.remove(&self.state);
        if let Some(fetchers) = self.fetchers.take() {
            fetchers.end();
        }
        if let Some(askers) = self.askers.take() {
            askers.end();
        }
        if let Some(hub) = self.hub.take() {
            hub.lose();
        }
        if gone && self.server.option("slot").is_some() {
            remove_slot(engine, self.server);
        }
    }

    /// Has rows fetched as soon as a table wants them.
    fn fetch(&mut self, engine: &Arc<Engine>, catalog: &Catalog) {
        let own = |table: &Arc<Table>| {
            let source = table.def().options.source.as_deref();
            table.reads_through() && source.is_some_and(|own| own.eq_ignore_ascii_case(&self.server.name))
        };
        if self.fetchers.is_none() && catalog.tables().any(own) {
            self.fetchers = Some(Fetchers::start(engine, &self.server, &self.state, &self.gate, asker_to));
        }
    }

    /// Empties what depends on a source that does not follow, each time that `max_lag` has passed: so no row gets older
    /// than twice that.
    fn distrust(&mut self, engine: &Engine, applier: &mut Applier) {
        let follows = self.follows();
        let (state, max) = (Arc::clone(&self.state), self.lag.max());
        match self.lag.judge(now(), follows, || is_late(&state.facts(), max)) {
            LagVerdict::Wait => {}
            LagVerdict::Recovered => {
                lookers(engine, &self.server).for_each(|table| table.set_behind(false));
            }
            LagVerdict::Behind => self.fall_behind(engine, applier),
            LagVerdict::Distrust => self.empty(engine, applier),
        }
    }

    /// Tells the tables that want to know it that what they have is older than `max_lag`, and empties them.
    fn fall_behind(&self, engine: &Engine, applier: &mut Applier) {
        self.distrust_each(engine, applier, |target| {
            target.table.set_behind(target.looks_at_source());
            target.looks_at_source()
        });
    }

    /// Distrusts what depends on it, and once more where a definition changed meanwhile: statements name tables, and a
    /// name may have meant another one.
    fn distrust_each(&self, engine: &Engine, applier: &mut Applier, is_one: impl Fn(&Target) -> bool) {
        for _ in 0..COMMIT_TRIES {
            let plan = Plan::of(&engine.store().catalog(), &self.server.name);
            for target in plan.targets.iter().filter(|target| is_one(target)) {
                self.distrust_one(target, applier);
            }
            if engine.store().catalog().generation == plan.generation {
                return;
            }
        }
    }

    fn distrust_one(&self, target: &Target, applier: &mut Applier) {
        match applier.distrust(target, false) {
            Ok(()) if target.is_view() => {}
            Ok(()) => self.state.update(|facts| facts.emptied += 1),
            Err(error) => {
                tracing::error!(source = %self.server.name, error = %error.message, "a table was not emptied");
            }
        }
    }

    fn empty(&mut self, engine: &Engine, applier: &mut Applier) {
        self.lag.note_distrusted(now());
        self.distrust_each(engine, applier, |target| {
            target.table.set_behind(target.looks_at_source());
            true
        });
    }

    fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

/// Whether nothing was heard of a source for too long. Its thread may wait for an answer that does not come: nobody
/// says that a network was cut.
fn is_late(facts: &SourceFacts, max_lag: Duration) -> bool {
    facts.heard.is_none_or(|heard| heard.elapsed() > max_lag)
}

/// The tables of a server that want to know whether it is followed.
fn lookers(engine: &Engine, server: &ServerDef) -> impl Iterator<Item = Arc<Table>> {
    let plan = Plan::of(&engine.store().catalog(), &server.name);
    plan.targets.into_iter().filter(Target::looks_at_source).map(|target| target.table)
}

/// A new connection to a source, for its rows.
fn asker_to(server: &ServerDef) -> Result<Box<dyn fetch::Ask>, error::Error> {
    Ok(match server.wrapper {
        Wrapper::Postgres => Box::new(fetch::Asker::connect(server)?),
        Wrapper::MariaDb => Box::new(mariadb::Asker::connect(server)?),
        Wrapper::Nats => return Err(no_database(server)),
    })
}

/// No table has a bus as its source, unless its definition was written by something else.
#[cold]
fn no_database(server: &ServerDef) -> error::Error {
    error::Error::new("0A000", format!("server \"{}\" is a bus, and no database", server.name))
}

fn supervise(
    engine: &Arc<Engine>,
    forwards: &Forwards,
    mut running: Vec<Running>,
    stop: &AtomicBool,
    views: &Pool,
) {
    let mut applier = Applier::new(engine);
    // Relaxed: the flag carries no data.
    while !stop.load(Ordering::Relaxed) {
        running = adjusted(engine, forwards, running, &mut applier);
        for own in &mut running {
            own.distrust(engine, &mut applier);
        }
        views.tend(&engine.store().catalog());
        let is_idle = running.is_empty() && engine.store().catalog().servers().is_empty();
        // Who ends it wakes it up.
        thread::park_timeout(if is_idle { IDLE_INTERVAL } else { SUPERVISE_INTERVAL });
    }
    for own in running {
        own.end(engine, false);
    }
}

/// Ends the sources whose definition is another one now, and starts those that are new.
fn adjusted(
    engine: &Arc<Engine>,
    forwards: &Forwards,
    running: Vec<Running>,
    applier: &mut Applier,
) -> Vec<Running> {
    let catalog = engine.store().catalog();
    let used = |server: &&Arc<ServerDef>| {
        let names = |name: &String| name.eq_ignore_ascii_case(&server.name);
        let follows = |table: &Arc<Table>| table.def().follows_source();
        catalog.tables().any(|table| follows(table) && table.def().options.source.as_ref().is_some_and(names))
    };
    let wanted: Vec<_> = catalog.servers().iter().filter(used).collect();
    let stays =
        |own: &Running| own.is_alive() && wanted.iter().any(|server| own.server.is_same_source(server));
    let (mut kept, ended): (Vec<_>, Vec<_>) = running.into_iter().partition(stays);
    for own in ended {
        let gone = !wanted.iter().any(|server| has_same_slot(server, &own.server));
        own.end(engine, gone);
    }
    for server in wanted {
        let hub = keeps_answers(server).then(|| forwards.hub(&server.name));
        if let Some(hub) = &hub {
            hub.choose(server);
        }
        if !kept.iter().any(|own| own.server.name == server.name) {
            kept.push(Running::start(engine, server, hub, applier));
        }
    }
    for own in &mut kept {
        own.fetch(engine, &catalog);
    }
    kept
}

/// Nobody waits for the source: it may not answer.
fn remove_slot(engine: &Arc<Engine>, server: Arc<ServerDef>) {
    let engine = Arc::clone(engine);
    let spawned =
        thread::Builder::new().name("slot-removal".into()).spawn(move || slot::remove(&server, &engine));
    if let Err(error) = spawned {
        tracing::error!(%error, "a slot is not removed from its source, for there is no thread");
    }
}

fn has_same_slot(one: &ServerDef, other: &ServerDef) -> bool {
    ["host", "port", "dbname", "slot"].iter().all(|name| one.option(name) == other.option(name))
}

/// Connects again and again, until it is to stop.
fn follow(source: &Source) {
    let mut applier = Applier::new(&source.engine);
    let mut pause = RETRY_PAUSES.0;
    while !source.must_stop() {
        let began = now();
        let followed = Followed(&source.gate);
        let ended = match source.server.wrapper {
            Wrapper::Postgres => stream::run(source, &mut applier),
            Wrapper::MariaDb => mariadb::run(source, &mut applier),
            Wrapper::Nats => Err(no_database(&source.server)),
        };
        drop(followed);
        if let Some(hub) = &source.hub {
            hub.lose();
        }
        match ended {
            // Its definition is another one now, or it is to stop: the supervisor knows.
            Ok(()) => return,
            Err(error) => {
                source.state.update(|facts| {
                    facts.slot = None;
                    facts.lag_ms = None;
                    facts.unsettled = 0;
                    facts.last_error = Some(error.to_string());
                });
                if source.state.enter("lost") {
                    tracing::warn!(source = %source.server.name, "source is lost: {error}");
                }
            }
        }
        if began.elapsed() > RETRY_PAUSES.1 {
            pause = RETRY_PAUSES.0;
        }
        rest(source, pause);
        pause = (pause * 2).min(RETRY_PAUSES.1);
    }
}

/// Sleeps, unless it is to stop.
fn rest(source: &Source, pause: Duration) {
    let until = now() + pause;
    while now() < until && !source.must_stop() {
        thread::sleep(SUPERVISE_INTERVAL.min(until.saturating_duration_since(now())));
    }
}
