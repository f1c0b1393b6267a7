//! All buses: a thread for each that a table names, with a runtime of its own, and one that ends the trust in its rows
//! in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use engine::{Bus, Engine};
use store::Table;
use store::definition::{ServerDef, Wrapper};

use crate::carrier::Carrier;
use crate::drive::Driver;
use crate::guard::{Guard, max_lag};
use crate::limits::{IDLE_INTERVAL, SUPERVISE_INTERVAL};
#[cfg(feature = "nats")]
use crate::nats::Nats;
use crate::postgres::Postgres;

/// All buses. They end when this is dropped, after what is in their outboxes was sent, if that is possible.
#[derive(Debug)]
pub struct Buses {
    stop: Arc<AtomicBool>,
    supervisor: Option<JoinHandle<()>>,
}

impl Buses {
    /// Follows the definitions from now on: a thread for each bus that a table names. Returns
    /// when what others have told meanwhile is applied, or when the tables are distrusted because a bus is away.
    ///
    /// # Errors
    ///
    /// The system gives no thread.
    pub fn start(engine: &Arc<Engine>) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let running = adjusted(engine, Vec::new());
        for own in &running {
            // Acquire: pairs with the Release of its thread, so that what it did to the rows came before.
            while !own.ready.load(Ordering::Acquire) && own.is_alive() {
                thread::sleep(SUPERVISE_INTERVAL);
            }
        }
        let (own, engine) = (Arc::clone(&stop), Arc::clone(engine));
        let supervisor =
            thread::Builder::new().name("buses".into()).spawn(move || supervise(&engine, running, &own))?;
        Ok(Self { stop, supervisor: Some(supervisor) })
    }
}

impl Drop for Buses {
    fn drop(&mut self) {
        // Relaxed: the flag carries no data.
        self.stop.store(true, Ordering::Relaxed);
        if let Some(supervisor) = self.supervisor.take() {
            supervisor.thread().unpark();
            let _panicked = supervisor.join();
        }
    }
}

/// A bus's threads: one that guards its rows, and has another one speak on the bus.
struct Running {
    server: Arc<ServerDef>,
    bus: Arc<Bus>,
    stop: Arc<AtomicBool>,
    ready: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(engine: &Arc<Engine>, server: &Arc<ServerDef>) -> Self {
        let bus = engine.buses.named(&server.name, engine.store().clock());
        let (stop, ready) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let own =
            (Arc::clone(engine), Arc::clone(server), Arc::clone(&bus), Arc::clone(&stop), Arc::clone(&ready));
        let spawned = thread::Builder::new().name(format!("lag-{}", server.id)).spawn(move || {
            let (engine, server, bus, stop, ready) = own;
            live(&engine, &server, &bus, (&stop, &ready));
        });
        let thread = spawned
            .inspect_err(|error| tracing::error!(bus = %server.name, %error, "a bus has no thread"))
            .ok();
        Self { server: Arc::clone(server), bus, stop, ready, thread }
    }

    fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Says that it is to end, and waits until it has. `gone`: no table names it any more.
    fn end(mut self, engine: &Engine, gone: bool) {
        self.bus.set_stopping(true);
        // Relaxed: the flag carries no data.
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
        self.bus.set_stopping(false);
        if gone {
            engine.buses.remove(&self.bus);
        }
    }
}

/// The life of a bus's threads.
fn live(
    engine: &Arc<Engine>,
    server: &Arc<ServerDef>,
    bus: &Arc<Bus>,
    (stop, ready): (&Arc<AtomicBool>, &Arc<AtomicBool>),
) {
    let guard = Guard::new(engine, bus, max_lag(server), ready);
    let own = (Arc::clone(engine), Arc::clone(server), Arc::clone(bus), Arc::clone(stop), Arc::clone(ready));
    let spawned = thread::Builder::new().name(format!("bus-{}", server.id)).spawn(move || {
        let (engine, server, bus, stop, ready) = own;
        speak(&engine, &server, &bus, (&stop, &ready));
    });
    match spawned {
        Ok(thread) => guard.run(|| thread.is_finished()),
        Err(error) => tracing::error!(bus = %server.name, %error, "a bus has no thread"),
    }
}

/// Speaks on the bus until it is to stop.
fn speak(
    engine: &Arc<Engine>,
    server: &Arc<ServerDef>,
    bus: &Arc<Bus>,
    flags: (&Arc<AtomicBool>, &Arc<AtomicBool>),
) {
    match server.wrapper {
        #[cfg(feature = "nats")]
        Wrapper::Nats => speak_by::<Nats>(engine, server, bus, flags),
        Wrapper::Postgres => speak_by::<Postgres>(engine, server, bus, flags),
        // None of them is a bus, or this program was built without it.
        _ => {
            tracing::error!(bus = %server.name, "this program has no bus of the wrapper {}", server.wrapper.name());
        }
    }
}

fn speak_by<C: Carrier>(
    engine: &Arc<Engine>,
    server: &Arc<ServerDef>,
    bus: &Arc<Bus>,
    flags: (&Arc<AtomicBool>, &Arc<AtomicBool>),
) {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let driver = Driver::new(engine, server, bus, flags, C::NUMBERED);
            runtime.block_on(driver.run(C::new(server, bus)));
            // A name that is being looked up ends when it does; nobody waits for it.
            runtime.shutdown_background();
        }
        Err(error) => tracing::error!(bus = %server.name, %error, "a bus has no runtime"),
    }
}

fn supervise(engine: &Arc<Engine>, mut running: Vec<Running>, stop: &AtomicBool) {
    // Relaxed: the flag carries no data.
    while !stop.load(Ordering::Relaxed) {
        running = adjusted(engine, running);
        // Who ends it wakes it up.
        thread::park_timeout(if running.is_empty() { IDLE_INTERVAL } else { SUPERVISE_INTERVAL });
    }
    for own in running {
        own.end(engine, false);
    }
}

/// Ends the buses whose definition is another one now, and starts those that are new.
fn adjusted(engine: &Arc<Engine>, running: Vec<Running>) -> Vec<Running> {
    let catalog = engine.store().catalog();
    if running.is_empty() && !catalog.has_told() {
        return running;
    }
    let used = |server: &&Arc<ServerDef>| {
        let names = |name: &String| name.eq_ignore_ascii_case(&server.name);
        let hears = |table: &Arc<Table>| table.def().options.bus.as_ref().is_some_and(names);
        server.is_bus() && catalog.tables().any(hears)
    };
    let wanted: Vec<_> = catalog.servers().iter().filter(used).collect();
    let stays = |own: &Running| own.is_alive() && wanted.iter().any(|server| *own.server == ***server);
    let (mut kept, ended): (Vec<_>, Vec<_>) = running.into_iter().partition(stays);
    for own in ended {
        let gone = !wanted.iter().any(|server| server.name == own.server.name);
        own.end(engine, gone);
    }
    for server in wanted {
        if !kept.iter().any(|own| own.server.name == server.name) {
            kept.push(Running::start(engine, server));
        }
    }
    kept
}
