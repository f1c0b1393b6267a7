//! Start and stop.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use engine::auth::{Access, Protocol};
use engine::{Cancel, Engine};
use forward::Forwards;
use mio::{Poll, Waker};

use crate::accept::Acceptor;
use crate::config::{Config, Reload};
use crate::crew::{Crew, join, spawn};
use crate::dialogue::RequestLoop;
use crate::forward::Forwarder;
use crate::handover::Handover;
use crate::http::HttpListener;
use crate::limits::SQL_STAND_INS;
use crate::listen::{ListenError, Listener};
use crate::mailbox::Mailbox;
use crate::ports::Ports;
use crate::proofs::{self, Proofs, Queues};
use crate::shared::Shared;
use crate::sql_listener::{SqlAcceptor, SqlCall, SqlListener};
use crate::sql_threads::{self, Statements, Work};
use crate::tls::{Encryption, TlsError, TlsMaterial, Transport};
use crate::worker::{MAIL, Worker};

/// Why the server does not start.
#[derive(Debug)]
pub enum StartError {
    /// It cannot listen.
    Listen(ListenError),
    /// A thread or its epoll is refused.
    Thread(io::Error),
    /// A setting that makes no sense.
    Setting(&'static str),
    /// A certificate or key that cannot be used.
    Tls(TlsError),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(error) => error.fmt(f),
            Self::Thread(error) => write!(f, "cannot start a thread: {error}"),
            Self::Setting(message) => f.write_str(message),
            Self::Tls(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}

impl From<ListenError> for StartError {
    fn from(error: ListenError) -> Self {
        Self::Listen(error)
    }
}

impl From<TlsError> for StartError {
    fn from(error: TlsError) -> Self {
        Self::Tls(error)
    }
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::Thread(error)
    }
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Every connection got all its replies.
    Whole,
    /// The deadline came first; this many connections were cut.
    Cut(usize),
}

/// A running server. Dropping it stops it without patience; [`Server::drain`] is the polite way.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    acceptor: Option<JoinHandle<()>>,
    acceptor_waker: Arc<Waker>,
    /// Whether it listens on the Unix socket.
    socket: bool,
    listener: Arc<SqlListener>,
    sql_addresses: Vec<SocketAddr>,
    /// Whether it listens on the Unix socket for SQL.
    sql_socket: bool,
    sql_acceptor: Option<Arc<SqlCall>>,
    mailboxes: Vec<Arc<Mailbox>>,
    threads: Vec<JoinHandle<()>>,
    crew: Crew,
    http: Option<HttpListener>,
    http_addresses: Vec<SocketAddr>,
    /// There is an address with `mtls:`.
    demands_certificates: bool,
    /// Disconnected when the last worker has ended.
    workers_end: Receiver<()>,
    /// Kept until the end: the cleaner runs as long as it is there.
    cleaner: Option<Sender<()>>,
    /// The same for the expiry rules, and what stops the one that runs.
    rules: Option<(Sender<()>, Cancel)>,
    /// The same for the materialized views.
    views: Option<(Sender<()>, Cancel)>,
}

impl Server {
    /// Listens, starts all threads and returns. `forwards`: the servers that clients may name as their database.
    /// `handover`: who keeps its sockets for the next process; none: they are closed with it.
    pub fn start(
        config: &Config,
        engine: Arc<Engine>,
        forwards: Arc<Forwards>,
        handover: Option<&Handover>,
    ) -> Result<Self, StartError> {
        let encryption = config.tls.as_ref().map(Encryption::new).transpose()?;
        check(config, encryption.as_ref())?;
        let access = engine.access.current();
        // First: who finds the others there may ask here how they are.
        let http_listeners = listen_for_http(config, &access, handover)?;
        let http_addresses: Vec<_> = http_listeners.iter().filter_map(|listener| listener.address).collect();
        // Before memcached's: who finds that one finds all.
        let sql_listeners = listen_for_sql(config, &access, handover)?;
        let sql_addresses: Vec<_> = sql_listeners.iter().filter_map(|listener| listener.address).collect();
        let sql_socket = sql_addresses.len() < sql_listeners.len();
        let listeners = listen(config, &access, handover)?;
        let addresses: Vec<_> = listeners.iter().filter_map(|listener| listener.address).collect();
        let socket = addresses.len() < listeners.len();
        describe(config, (&addresses, socket), &engine);
        let ports = Ports::of(&addresses, &sql_addresses, &http_addresses);
        let shared = Shared::new(engine, config, encryption, ports);
        let (workers_alive, workers_end) = bounded(0);
        let forwarder = Forwarder::new(Arc::clone(&shared), forwards, config.threads, workers_alive.clone());
        let listener = SqlListener::new(Arc::clone(&shared), config.sql_threads, forwarder)?;
        let (statements, queue) = Statements::queue(config.sql_queue, Arc::clone(&listener));
        let mut polls = Vec::new();
        let mut mailboxes = Vec::new();
        for _ in 0..config.threads {
            let poll = Poll::new()?;
            mailboxes.push(Arc::new(Mailbox::new(Waker::new(poll.registry(), MAIL)?)));
            polls.push(poll);
        }
        let acceptor = Acceptor::new(listeners, mailboxes.clone(), Arc::clone(&shared))?;
        let mut server = Self {
            shared,
            addresses,
            socket,
            acceptor: None,
            acceptor_waker: acceptor.waker(),
            listener,
            sql_addresses,
            sql_socket,
            sql_acceptor: None,
            mailboxes,
            threads: Vec::new(),
            crew: Crew::new(),
            http: None,
            http_addresses,
            demands_certificates: config.transports.iter().any(|(_, is)| *is == Transport::Mutual),
            workers_end,
            cleaner: None,
            rules: None,
            views: None,
        };
        let proofs = server.start_proofs()?;
        server.open_http_listener(config, http_listeners, statements.clone())?;
        server.start_threads(config, polls, (statements, queue), &proofs, &workers_alive)?;
        server.open_sql_listener(sql_listeners, proofs, workers_alive)?;
        server.acceptor = Some(spawn("accept".into(), move || acceptor.run())?);
        server.shared.begin();
        Ok(server)
    }

    /// The TCP addresses that it listens on, in the order of the configuration.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Whether it listens on the Unix socket.
    pub fn serves_socket(&self) -> bool {
        self.socket
    }

    /// The TCP addresses of the PostgreSQL listener, in the order of the configuration.
    pub fn sql_addresses(&self) -> &[SocketAddr] {
        &self.sql_addresses
    }

    /// The TCP addresses of the HTTP listener, in the order of the configuration.
    pub fn http_addresses(&self) -> &[SocketAddr] {
        &self.http_addresses
    }

    /// Whether it listens on the Unix socket for SQL.
    pub fn serves_sql_socket(&self) -> bool {
        self.sql_socket
    }

    /// Changes what can change while it runs.
    pub fn reload(&self, reload: &Reload) {
        self.shared.reload(reload);
    }

    /// Encrypts new connections with other keys and certificates. With a mistake in them all stays as it is.
    pub fn reload_tls(&self, material: &TlsMaterial) -> Result<(), TlsError> {
        let encryption = Encryption::new(material)?;
        if self.demands_certificates && !encryption.serves(Transport::Mutual) {
            let message = "an address with mtls: needs it".to_owned();
            return Err(TlsError { setting: "ssl_ca_file", message });
        }
        self.shared.set_encryption(encryption);
        Ok(())
    }

    /// Accepts nothing new, finishes what was begun, sends the replies, and ends; after `patience` it ends anyway.
    pub fn drain(mut self, patience: Duration) -> Drained {
        self.close_listeners();
        self.wake_workers();
        let outcome = match self.workers_end.recv_timeout(patience) {
            Err(RecvTimeoutError::Timeout) => {
                Drained::Cut(self.shared.engine.connections.load(Ordering::Relaxed))
            }
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Drained::Whole,
        };
        self.end();
        outcome
    }

    fn start_threads(
        &mut self,
        config: &Config,
        polls: Vec<Poll>,
        (statements, queue): (Statements, Receiver<Work>),
        proofs: &Proofs,
        alive: &Sender<()>,
    ) -> io::Result<()> {
        for number in 0..config.sql_threads + SQL_STAND_INS {
            let (shared, listener, queue) =
                (Arc::clone(&self.shared), Arc::clone(&self.listener), queue.clone());
            self.crew.start(format!("sql-{number}"), move || sql_threads::run(&shared, &listener, &queue))?;
        }
        let queues = (statements, proofs.clone());
        let colleagues: Arc<[Arc<Mailbox>]> = self.mailboxes.as_slice().into();
        for (number, poll) in polls.into_iter().enumerate() {
            let mailbox = Arc::clone(&self.mailboxes[number]);
            let context = self.shared.engine.context();
            let (shared, own) = (Arc::clone(&self.shared), Arc::clone(&mailbox));
            let requests = RequestLoop::new(context, shared, queues.clone(), own, Arc::clone(&colleagues));
            let worker = Worker::new(poll, requests, mailbox);
            let alive = alive.clone();
            let thread = spawn(format!("worker-{number}"), move || {
                worker.run();
                drop(alive);
            })?;
            self.threads.push(thread);
        }
        if config.cleaner {
            let (keep, stop) = bounded(0);
            let engine = Arc::clone(&self.shared.engine);
            self.threads.push(spawn("cleaner".into(), move || crate::cleaner::run(&engine, &stop))?);
            self.cleaner = Some(keep);
            let engine = Arc::clone(&self.shared.engine);
            engine.store().begin_ready();
            self.threads.push(spawn("memory".into(), move || engine.store().make_ready())?);
            if !self.shared.engine.store().recovered().complete {
                let engine = Arc::clone(&self.shared.engine);
                spawn("recovery".into(), move || crate::cleaner::recover(&engine))?;
            }
            self.start_rules()?;
            self.start_views()?;
        }
        Ok(())
    }

    /// Starts the threads that check passwords: the way to them.
    fn start_proofs(&mut self) -> io::Result<Proofs> {
        let (proofs, Queues { idle, late, end }) = Proofs::queue();
        let context = self.shared.engine.context();
        self.threads.push(spawn("proofs".into(), move || proofs::run(context, &idle))?);
        let context = self.shared.engine.context();
        self.threads.push(spawn("late-proofs".into(), move || proofs::run_late(context, &late, &end))?);
        Ok(proofs)
    }

    fn start_views(&mut self) -> io::Result<()> {
        let (keep, stop) = bounded(0);
        let (engine, cancel) = (Arc::clone(&self.shared.engine), Cancel::new());
        let canceled = cancel.clone();
        self.crew.start("views".into(), move || crate::views::run(&engine, &stop, &canceled))?;
        self.views = Some((keep, cancel));
        Ok(())
    }

    fn start_rules(&mut self) -> io::Result<()> {
        let (keep, stop) = bounded(0);
        let (engine, cancel) = (Arc::clone(&self.shared.engine), Cancel::new());
        let canceled = cancel.clone();
        self.crew.start("rules".into(), move || crate::rules::run(&engine, &stop, &canceled))?;
        self.rules = Some((keep, cancel));
        Ok(())
    }

    /// Starts the PostgreSQL listener's acceptor, where there is something to listen on.
    fn open_sql_listener(
        &mut self,
        listeners: Vec<Listener>,
        proofs: Proofs,
        alive: Sender<()>,
    ) -> io::Result<()> {
        if listeners.is_empty() {
            return Ok(());
        }
        let acceptor = SqlAcceptor::new(listeners, Arc::clone(&self.listener), proofs)?;
        self.sql_acceptor = Some(acceptor.call());
        self.threads.push(spawn("sql-accept".into(), move || {
            acceptor.run();
            drop(alive);
        })?);
        Ok(())
    }

    /// Starts the HTTP listener, where there is something to listen on. It is the first to serve, and says that the
    /// others do not yet.
    fn open_http_listener(
        &mut self,
        config: &Config,
        listeners: Vec<Listener>,
        statements: Statements,
    ) -> io::Result<()> {
        if !listeners.is_empty() {
            let shared = Arc::clone(&self.shared);
            self.http = Some(HttpListener::start(listeners, shared, statements, config.http_hosts.clone())?);
        }
        Ok(())
    }

    /// Stops accepting; the listening sockets are closed on return.
    fn close_listeners(&mut self) {
        self.shared.drain();
        self.listener.forwarder.close();
        // It can fail only when the acceptor is awake.
        let _awake = self.acceptor_waker.wake();
        if let Some(sql_acceptor) = &self.sql_acceptor {
            sql_acceptor.wake();
        }
        if let Some(acceptor) = self.acceptor.take() {
            join(acceptor);
        }
    }

    fn wake_workers(&self) {
        for mailbox in &self.mailboxes {
            mailbox.wake();
        }
    }

    fn end(&mut self) {
        self.shared.stop();
        self.wake_workers();
        self.listener.stop();
        self.close_listeners();
        if let Some(mut http) = self.http.take() {
            http.end();
        }
        self.cleaner = None;
        self.shared.engine.store().end_ready();
        if let Some((_, cancel)) = self.views.take() {
            cancel.cancel();
        }
        if let Some((_, cancel)) = self.rules.take() {
            cancel.cancel();
        }
        for thread in self.threads.drain(..) {
            join(thread);
        }
        self.listener.forwarder.end();
        self.crew.end();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn check(config: &Config, encryption: Option<&Encryption>) -> Result<(), StartError> {
    let asks = |(_, transport): &(SocketAddr, Transport)| match encryption {
        None => matches!(transport, Transport::Basic | Transport::Mutual),
        Some(encryption) => !encryption.serves(*transport),
    };
    let refused = [
        (
            config.transports.iter().any(asks),
            "btls: before an address needs ssl = on (-Z), and mtls: also ssl_ca_file (-o ssl_ca_cert)",
        ),
        (config.threads == 0, "threads must be at least 1"),
        (config.sql_threads == 0, "sql_threads must be at least 1"),
        (config.sql_queue == 0, "sql_queue must be at least 1"),
        (config.max_connections == 0, "max_connections must be at least 1"),
        (
            config.listen_addresses.is_empty()
                && config.unix_socket.is_none()
                && config.sql_addresses.is_empty()
                && config.sql_socket.is_none(),
            "no address and no Unix socket to listen on",
        ),
    ];
    match refused.iter().find(|(wrong, _)| *wrong) {
        Some((_, message)) => Err(StartError::Setting(message)),
        None => Ok(()),
    }
}

fn listen(
    config: &Config,
    access: &Access,
    handover: Option<&Handover>,
) -> Result<Vec<Listener>, ListenError> {
    let ways = (config.backlog, handover);
    let asks = (access, Protocol::Memcached);
    let tcp = config.listen_addresses.iter().map(|address| {
        let own = config.transports.iter().find(|(of, _)| of == address);
        let transport = own.map_or(Transport::Usual, |(_, transport)| *transport);
        let listener = Listener::tcp(*address, ways, asks);
        listener.map(|listener| listener.speaking(transport))
    });
    let unix = config.unix_socket.iter().map(|path| Listener::unix(path, config.unix_socket_mode, ways));
    let optional = config.unix_optional && !config.listen_addresses.is_empty();
    let without = "no memcached client can connect there (choose another with -s)";
    tcp.chain(unix.filter_map(|listener| unless_in_use(listener, optional, without))).collect()
}

/// Leaves out a place that nobody asked for and another process has; the log says what is not there.
fn unless_in_use(
    listener: Result<Listener, ListenError>,
    optional: bool,
    without: &str,
) -> Option<Result<Listener, ListenError>> {
    match listener {
        Err(error) if optional && error.is_in_use() => {
            tracing::warn!("{error}; {without}");
            None
        }
        listener => Some(listener),
    }
}

fn listen_for_sql(
    config: &Config,
    access: &Access,
    handover: Option<&Handover>,
) -> Result<Vec<Listener>, ListenError> {
    let ways = (config.backlog, handover);
    let asks = (access, Protocol::Sql);
    let tcp = config.sql_addresses.iter().map(|address| Listener::tcp(*address, ways, asks));
    let unix = config.sql_socket.iter().map(|path| Listener::unix(path, config.unix_socket_mode, ways));
    let without = "SQL clients cannot connect there (choose another with --sql-port)";
    let tcp = tcp.filter_map(|listener| unless_in_use(listener, config.sql_optional, without));
    let unix = unix.filter_map(|listener| unless_in_use(listener, config.sql_socket_optional, without));
    tcp.chain(unix).collect()
}

fn listen_for_http(
    config: &Config,
    access: &Access,
    handover: Option<&Handover>,
) -> Result<Vec<Listener>, ListenError> {
    let ways = (config.backlog, handover);
    let asks = (access, Protocol::Http);
    let tcp = config.http_addresses.iter().map(|address| Listener::tcp(*address, ways, asks));
    let without = "there is no HTTP there (choose another port with --http-port)";
    tcp.filter_map(|listener| unless_in_use(listener, config.http_optional, without)).collect()
}

/// What `stats settings` shows of the server.
fn describe(config: &Config, (addresses, socket): (&[SocketAddr], bool), engine: &Engine) {
    let port = addresses.first().map_or(0, SocketAddr::port);
    let path = config.unix_socket.as_ref().filter(|_| socket);
    let path = path.map_or_else(|| "NULL".into(), |path| path.display().to_string());
    let inter: Vec<String> = addresses.iter().map(|address| address.ip().to_string()).collect();
    let shared =
        engine.store().shared_path().map_or_else(|| "NULL".into(), |path| path.display().to_string());
    engine.workers.store(config.threads, Ordering::Relaxed);
    engine.describe(vec![
        ("tcpport", port.to_string()),
        ("inter", inter.join(",")),
        ("domain_socket", path),
        ("shared_memory_file", shared),
        ("umask", format!("{:o}", config.unix_socket_mode)),
        ("tcp_backlog", config.backlog.to_string()),
        ("idle_timeout", config.idle_timeout.map_or(0, |timeout| timeout.as_secs()).to_string()),
        ("sql_threads", config.sql_threads.to_string()),
        ("sql_queue", config.sql_queue.to_string()),
    ]);
}
