//! Sockets: listeners, connections, threads, backpressure. The only crate that has any.
//!
//! ```text
//!   acceptor --> mailbox --> worker (one epoll, many connections) --> engine --> store
//!                             |  ^
//!                   statement v  | reply
//!                           SQL threads
//! ```
//!
//! One *acceptor* accepts connections and distributes them to the *workers* in turn. A connection stays with its
//! worker. The worker reads the bytes that have arrived, executes all complete requests, and writes all replies at
//! once. It only ever waits for its epoll. SQL statements go to separate threads through a bounded queue, and the
//! connection continues when the reply comes back. A *cleaner* thread calls the store's housekeeping every tick.
//!
//! An unpipelined `get` costs one `epoll_wait` (shared by all connections that are ready), one `recv` and one `send`.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//!
//! use engine::testing::{Clock, Store, StoreOptions};
//! use engine::{Engine, EngineOptions};
//! use server::{Config, Server};
//!
//! let options = StoreOptions {
//!     path: None,
//!     memory_bytes: 16 << 20,
//!     cold: true,
//!     clock: Clock::System,
//!     row_bytes_max: 1 << 20,
//! };
//! let engine = Engine::new(Store::open(&options).unwrap().store, EngineOptions::default());
//! let config = Config { listen_addresses: vec!["127.0.0.1:0".parse().unwrap()], ..Config::default() };
//! let server = Server::start(&config, engine, Default::default(), None).unwrap();
//! let mut client = TcpStream::connect(server.addresses()[0]).unwrap();
//! client.write_all(b"set greeting 0 0 5\r\nhello\r\n").unwrap();
//! let mut answer = [0; 8];
//! client.read_exact(&mut answer).unwrap();
//! assert_eq!(&answer, b"STORED\r\n");
//! ```
#![forbid(unsafe_code)]

mod accept;
mod addresses;
mod ahead;
mod binary;
mod cancels;
mod cleaner;
mod config;
mod connection;
mod conns;
mod crew;
mod dialogue;
mod exchange;
mod fatal;
mod fetching;
mod forward;
mod frame;
mod handover;
mod http;
mod limits;
mod listen;
mod listing;
mod login;
mod mailbox;
mod meta;
mod operator;
mod origin;
mod pace;
mod password;
mod pinned;
mod ports;
mod proofs;
mod receive;
mod receiving;
mod reply;
mod rules;
mod run_permits;
mod server;
mod shared;
mod socket;
mod spare;
mod sql_listener;
mod sql_threads;
mod stranger;
mod telling;
mod tls;
mod unproved;
mod views;
mod watch;
mod worker;

pub use config::{Config, Reload};
pub use handover::{Handover, Kept};
pub use limits::*;
pub use listen::ListenError;
pub use server::{Drained, Server, StartError};
pub use tls::{ClientCertificates, TlsError, TlsMaterial, Transport};
