//! The servers that sessions are forwarded to, and who connects to them.

use std::collections::HashMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use engine::{ForwardedFacts, Forwarding, SqlError};
use inspect::{Refusal, may_be_read};
use parking_lot::Mutex;
use rustls::ClientConnection;
use store::definition::{MappingDef, ServerDef};

use crate::facts::of_hub;
use crate::hub::Hub;

/// As whom a session begins at its source, and with which settings.
#[derive(Clone, Debug)]
pub struct Start {
    /// The server.
    pub server: Arc<ServerDef>,
    /// The mapping of its client's role.
    pub mapping: MappingDef,
    /// What the client has sent at its start, without its user and database.
    pub parameters: Vec<(String, String)>,
}

/// Whether answers of a server are kept.
pub fn keeps_answers(server: &ServerDef) -> bool {
    server.option("cache").is_some_and(|cache| cache != "off")
}

/// A connection to a source whose session has begun.
pub struct Opened {
    /// Its socket, which does not block.
    pub socket: OwnedFd,
    /// What encrypts it.
    pub tls: Option<Box<ClientConnection>>,
    /// What the source said at its start that is the client's: parameters and notices, as messages.
    pub greeting: Vec<u8>,
    /// What a request to cancel has to name.
    pub secret: Vec<u8>,
    /// Which server it is; 0: not known. See [`Hub::set_identity`].
    pub identity: u64,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// Who connects to sources. All of it may block.
pub trait Gateway: Send + Sync {
    /// Begins a session at a source. `hub`: answers are kept there.
    ///
    /// # Errors
    ///
    /// The source's own, or why it is not reached.
    fn open(&self, start: &Start, hub: Option<&Arc<Hub>>) -> Result<Opened, SqlError>;

    /// Has a source end the statement that a session runs.
    fn cancel(&self, server: &ServerDef, secret: &[u8]);
}

/// See the module.
#[derive(Default)]
pub struct Forwards {
    hubs: Mutex<HashMap<String, Arc<Hub>>>,
    gateway: OnceLock<Box<dyn Gateway>>,
}

impl fmt::Debug for Forwards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forwards").field("hubs", &self.hubs).finish_non_exhaustive()
    }
}

impl Forwards {
    /// Who connects from now on.
    pub fn attach(&self, gateway: Box<dyn Gateway>) {
        // Only the first counts: a process has one.
        let _had = self.gateway.set(gateway);
    }

    /// Who connects to a server.
    ///
    /// # Errors
    ///
    /// This program connects to none.
    pub fn gateway(&self, server: &str) -> Result<&dyn Gateway, SqlError> {
        let found = self.gateway.get().map(|gateway| &**gateway);
        found.ok_or_else(|| {
            SqlError::new("08001", format!("server \"{server}\" is not reached from this program"))
        })
    }

    /// What the sessions of a server share.
    pub fn hub(&self, server: &str) -> Arc<Hub> {
        let mut hubs = self.hubs.lock();
        Arc::clone(hubs.entry(server.to_owned()).or_insert_with(|| Arc::new(Hub::new(server))))
    }

    /// A server is gone, or another one.
    pub fn forget(&self, server: &str) {
        if let Some(hub) = self.hubs.lock().remove(server) {
            hub.lose();
        }
    }
}

impl Forwarding for Forwards {
    fn check(&self, statement: &str) -> Result<(), SqlError> {
        let refused = |refusal: Refusal| {
            let error = SqlError::new("22023", format!("its answers cannot be kept: {}", refusal.reason));
            match refusal.cure {
                Some(cure) => error.with_hint(cure),
                None => error,
            }
        };
        may_be_read(statement).map_err(refused)
    }

    fn facts(&self) -> Vec<ForwardedFacts> {
        let hubs: Vec<Arc<Hub>> = self.hubs.lock().values().cloned().collect();
        let mut facts: Vec<_> = hubs.iter().flat_map(|hub| of_hub(hub)).collect();
        facts.sort_by(|one, other| (&one.server, one.number).cmp(&(&other.server, other.number)));
        facts
    }
}
