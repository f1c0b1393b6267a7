//! What the server is told at its start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::limits::{
    AUTHENTICATION_TIMEOUT, BACKLOG, CONNECTION_MEMORY_MAX, CONNECTIONS_MAX, SQL_QUEUE, SQL_THREADS,
    STATEMENT_TIMEOUT,
};
use crate::tls::{TlsMaterial, Transport};

/// Where to listen and how much to allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// TCP addresses; others than loopback ones where the rules ask for a proof. Port 0 takes any free port.
    pub listen_addresses: Vec<SocketAddr>,
    /// Those of them that do not speak as [`Transport::Usual`].
    pub transports: Vec<(SocketAddr, Transport)>,
    /// With it memcached's TCP clients must speak TLS, and PostgreSQL's may.
    pub tls: Option<TlsMaterial>,
    /// The path of a Unix socket.
    pub unix_socket: Option<PathBuf>,
    /// Whether it starts without the Unix socket where that is in use, and there is an address.
    pub unix_optional: bool,
    /// The permissions of the Unix socket; it is never wider, not for an instant.
    pub unix_socket_mode: u32,
    /// TCP addresses of the PostgreSQL listener; loopback only, as long as there is no authentication.
    pub sql_addresses: Vec<SocketAddr>,
    /// The path of the PostgreSQL listener's Unix socket. Its permissions are those of `unix_socket`.
    pub sql_socket: Option<PathBuf>,
    /// Whether it starts without an address for SQL that is in use.
    pub sql_optional: bool,
    /// The same for its socket.
    pub sql_socket_optional: bool,
    /// TCP addresses of the HTTP listener; others than loopback ones where the rules ask for a password.
    pub http_addresses: Vec<SocketAddr>,
    /// Whether it starts without an address for HTTP that is in use.
    pub http_optional: bool,
    /// Names by which HTTP clients may call it, beside addresses and `localhost`.
    pub http_hosts: Vec<String>,
    /// Worker threads.
    pub threads: usize,
    /// Connections at once.
    pub max_connections: usize,
    /// Connections at once of one address; 0: no limit but that of all.
    pub max_connections_per_address: usize,
    /// Connections that the kernel holds for the acceptor.
    pub backlog: i32,
    /// Threads for SQL statements.
    pub sql_threads: usize,
    /// Statements that wait for a SQL thread.
    pub sql_queue: usize,
    /// A statement that runs longer is stopped.
    pub statement_timeout: Option<Duration>,
    /// Whether statements that need no SQLite are run without it.
    pub native_execution: bool,
    /// A connection that sends nothing for so long is closed.
    pub idle_timeout: Option<Duration>,
    /// A connection that has not begun its session after this time is closed.
    pub authentication_timeout: Duration,
    /// Bytes of requests and replies that may wait on all connections together.
    pub connection_memory_max: usize,
    /// Whether a thread calls the store's housekeeping; tests that hold the clock do it themselves.
    pub cleaner: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen_addresses: Vec::new(),
            transports: Vec::new(),
            tls: None,
            unix_socket: None,
            unix_optional: false,
            unix_socket_mode: 0o700,
            sql_addresses: Vec::new(),
            sql_socket: None,
            sql_optional: false,
            sql_socket_optional: false,
            http_addresses: Vec::new(),
            http_optional: false,
            http_hosts: Vec::new(),
            threads: 4,
            max_connections: CONNECTIONS_MAX,
            max_connections_per_address: 0,
            backlog: BACKLOG,
            sql_threads: SQL_THREADS,
            sql_queue: SQL_QUEUE,
            statement_timeout: Some(STATEMENT_TIMEOUT),
            native_execution: true,
            idle_timeout: None,
            authentication_timeout: AUTHENTICATION_TIMEOUT,
            connection_memory_max: CONNECTION_MEMORY_MAX,
            cleaner: true,
        }
    }
}

/// What may change while the server runs. Connections that are there stay, even above a lowered limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reload {
    /// See [`Config::max_connections`].
    pub max_connections: usize,
    /// See [`Config::max_connections_per_address`].
    pub max_connections_per_address: usize,
    /// See [`Config::statement_timeout`].
    pub statement_timeout: Option<Duration>,
    /// See [`Config::native_execution`].
    pub native_execution: bool,
    /// See [`Config::idle_timeout`].
    pub idle_timeout: Option<Duration>,
    /// See [`Config::authentication_timeout`].
    pub authentication_timeout: Duration,
}

impl From<&Config> for Reload {
    fn from(config: &Config) -> Self {
        Self {
            max_connections: config.max_connections,
            max_connections_per_address: config.max_connections_per_address,
            statement_timeout: config.statement_timeout,
            native_execution: config.native_execution,
            idle_timeout: config.idle_timeout,
            authentication_timeout: config.authentication_timeout,
        }
    }
}
