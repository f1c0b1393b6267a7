//! What the threads of one server share.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use engine::Engine;
use parking_lot::Mutex;

use crate::addresses::Addresses;
use crate::config::{Config, Reload};
use crate::ports::Ports;
use crate::stranger::StrangerLog;
use crate::tls::Encryption;
use crate::unproved::UnprovedPlaces;

/// Switches and gauges. Each is one word, and readers need no order between them.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) engine: Arc<Engine>,
    pub(crate) strangers: StrangerLog,
    pub(crate) ports: Ports,
    /// What new connections are encrypted with; none without TLS. Held for a copy of the pointer.
    encryption: Option<Mutex<Arc<Encryption>>>,
    /// Connections whose peers have proved nothing.
    pub(crate) unproved: UnprovedPlaces,
    addresses: Addresses,
    /// Connections of one address; 0 = no limit.
    address_connections_max: AtomicUsize,
    /// Every listener serves.
    serving: AtomicBool,
    /// The server stops: nothing new is accepted, what was begun is finished.
    draining: AtomicBool,
    /// The deadline has come: connections are closed as they are.
    stopping: AtomicBool,
    /// Bytes of requests and replies that wait on all connections.
    waiting_bytes: AtomicUsize,
    waiting_bytes_max: usize,
    /// Milliseconds, 0 = none.
    statement_timeout_ms: AtomicU64,
    /// Milliseconds, 0 = none.
    idle_timeout_ms: AtomicU64,
    /// Milliseconds.
    authentication_timeout_ms: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        engine: Arc<Engine>,
        config: &Config,
        encryption: Option<Encryption>,
        ports: Ports,
    ) -> Arc<Self> {
        let shared = Self {
            engine,
            strangers: StrangerLog::default(),
            ports,
            encryption: encryption.map(|encryption| Mutex::new(Arc::new(encryption))),
            unproved: UnprovedPlaces::default(),
            addresses: Addresses::default(),
            address_connections_max: AtomicUsize::new(0),
            serving: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            waiting_bytes: AtomicUsize::new(0),
            waiting_bytes_max: config.connection_memory_max,
            statement_timeout_ms: AtomicU64::new(0),
            idle_timeout_ms: AtomicU64::new(0),
            authentication_timeout_ms: AtomicU64::new(0),
        };
        shared.reload(&Reload::from(config));
        Arc::new(shared)
    }

    pub(crate) fn reload(&self, reload: &Reload) {
        // Relaxed throughout: settings that take effect soon.
        self.engine.connections_max.store(reload.max_connections, Ordering::Relaxed);
        self.address_connections_max.store(reload.max_connections_per_address, Ordering::Relaxed);
        self.engine.set_native_execution(reload.native_execution);
        self.statement_timeout_ms.store(milliseconds(reload.statement_timeout), Ordering::Relaxed);
        self.idle_timeout_ms.store(milliseconds(reload.idle_timeout), Ordering::Relaxed);
        let timeout = milliseconds(Some(reload.authentication_timeout));
        self.authentication_timeout_ms.store(timeout, Ordering::Relaxed);
    }

    /// What a new connection is encrypted with.
    pub(crate) fn encryption(&self) -> Option<Arc<Encryption>> {
        self.encryption.as_ref().map(|encryption| Arc::clone(&encryption.lock()))
    }

    /// Encrypts new connections with other keys.
    pub(crate) fn set_encryption(&self, new: Encryption) {
        if let Some(encryption) = &self.encryption {
            *encryption.lock() = Arc::new(new);
        }
    }

    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        duration(self.statement_timeout_ms.load(Ordering::Relaxed))
    }

    pub(crate) fn idle_timeout(&self) -> Option<Duration> {
        duration(self.idle_timeout_ms.load(Ordering::Relaxed))
    }

    /// How long a connection may take to begin its session.
    pub(crate) fn authentication_timeout(&self) -> Duration {
        Duration::from_millis(self.authentication_timeout_ms.load(Ordering::Relaxed))
    }

    /// Every listener serves from now on.
    pub(crate) fn begin(&self) {
        // Relaxed: a switch by itself.
        self.serving.store(true, Ordering::Relaxed);
    }

    /// Whether clients should come: the start is over, and the end has not begun.
    pub(crate) fn is_ready(&self) -> bool {
        self.serving.load(Ordering::Relaxed) && !self.is_draining()
    }

    pub(crate) fn drain(&self) {
        // Release: pairs with the Acquire in `is_draining`; the waker's system call orders it anyway.
        self.draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    pub(crate) fn stop(&self) {
        // Release: pairs with the Acquire in `is_stopping`.
        self.stopping.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Accounts for a connection's waiting bytes, which were `before` and are `after`. False: the limit is passed.
    pub(crate) fn account(&self, before: usize, after: usize) -> bool {
        // Relaxed: a sum that only this comparison reads. Wrapping: a decrease is the addition of its complement.
        let change = after.wrapping_sub(before);
        let total = self.waiting_bytes.fetch_add(change, Ordering::Relaxed).wrapping_add(change);
        after <= before || total <= self.waiting_bytes_max
    }

    /// A place for one more connection, if there is one. `address`: of its peer; none: it came by a socket's file.
    pub(crate) fn admit(self: &Arc<Self>, address: Option<IpAddr>) -> Result<Permit, Full> {
        let engine = &self.engine;
        // Relaxed: only the acceptor adds, so the limit is never passed; a place that is just being given back may
        // be seen late.
        let now = engine.connections.load(Ordering::Relaxed);
        if now >= engine.connections_max.load(Ordering::Relaxed) {
            engine.connections_rejected.fetch_add(1, Ordering::Relaxed);
            return Err(Full::Server);
        }
        let most = self.address_connections_max.load(Ordering::Relaxed);
        if !address.is_none_or(|address| self.addresses.add(address, most)) {
            engine.connections_rejected.fetch_add(1, Ordering::Relaxed);
            return Err(Full::Address);
        }
        engine.connections.fetch_add(1, Ordering::Relaxed);
        engine.connections_total.fetch_add(1, Ordering::Relaxed);
        Ok(Permit { shared: Arc::clone(self), address })
    }
}

/// Which limit of connections is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// `max_connections`
    Server,
    /// `max_connections_per_address`
    Address,
}

/// Asks this process to stop as a service manager would, on behalf of a client that may.
pub(crate) fn ask_to_stop() {
    // It fails for no process of its own.
    let _sent = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM);
}

/// A connection's place among `max_connections`, given back when it is dropped, however that comes about.
#[derive(Debug)]
pub(crate) struct Permit {
    shared: Arc<Shared>,
    address: Option<IpAddr>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(address) = self.address {
            self.shared.addresses.remove(address);
        }
        // Relaxed: see `Shared::admit`.
        self.shared.engine.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn milliseconds(duration: Option<Duration>) -> u64 {
    duration.map_or(0, |duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).max(1))
}

fn duration(milliseconds: u64) -> Option<Duration> {
    (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
}
