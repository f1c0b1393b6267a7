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
#![forbid(unsafe_code)]

mod accept;
mod ahead;
mod binary;
mod cleaner;
mod config;
mod connection;
mod conns;
mod crew;
mod dialogue;
mod frame;
mod limits;
mod listen;
mod listing;
mod mailbox;
mod meta;
mod operator;
mod pace;
mod pinned;
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
mod watch;
mod worker;

pub use config::{Config, Reload};
pub use limits::*;
pub use listen::ListenError;
pub use server::{Drained, Server, StartError};
