//! What the source is asked for forwarded sessions: connections for them, what their statements depend on, places in
//! its log, and whether its definitions are others now.

mod awaited;
mod definitions;
mod gateway;
mod inspector;
mod places;
mod tags;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use engine::Engine;
use forward::Hub;
use store::definition::ServerDef;

use crate::time::now;

pub(crate) use definitions::DEFINITIONS;
pub(crate) use gateway::Sessions;
pub(crate) use places::PLACE;
pub(crate) use tags::{Tags, recover_tags};

/// The threads that ask a source for the hub of its forwarded sessions.
pub(crate) struct Askers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// What one of them works with.
struct Asking {
    engine: Arc<Engine>,
    server: Arc<ServerDef>,
    hub: Arc<Hub>,
    stop: Arc<AtomicBool>,
}

impl Askers {
    pub(crate) fn start(engine: &Arc<Engine>, server: &Arc<ServerDef>, hub: &Arc<Hub>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let asking = || Asking {
            engine: Arc::clone(engine),
            server: Arc::clone(server),
            hub: Arc::clone(hub),
            stop: Arc::clone(&stop),
        };
        let (places, inspections) = (asking(), asking());
        let id = server.id;
        let threads = [
            thread::Builder::new().name(format!("places-{id}")).spawn(move || places::run(&places)),
            thread::Builder::new()
                .name(format!("inspector-{id}"))
                .spawn(move || inspector::run(&inspections)),
        ];
        let failed = |error: &std::io::Error| {
            tracing::error!(source = %server.name, %error, "answers are not kept, for there is no thread");
        };
        Self {
            stop,
            threads: threads.into_iter().filter_map(|spawned| spawned.inspect_err(failed).ok()).collect(),
        }
    }

    pub(crate) fn end(self) {
        // Relaxed: the flag carries no data.
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            let _panicked = thread.join();
        }
    }
}

impl Asking {
    fn must_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sleeps before it connects again, unless it is to stop.
    fn rest(&self) {
        let until = now() + crate::limits::ASKER_PAUSE;
        while now() < until && !self.must_stop() {
            thread::sleep(crate::limits::SUPERVISE_INTERVAL);
        }
    }
}
