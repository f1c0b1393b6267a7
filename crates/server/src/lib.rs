//! Sockets: listeners, connections, threads, backpressure. The only crate that has any.
//!
//! ```text
//!   acceptor --> mailbox --> worker (one epoll, many connections) --> engine --> store
//!                             |  ^
//!                   statement v  | reply
//!                           SQL threads
//! ```
//!
//! One *acceptor* takes connections in and hands them to the *workers* in turn. A worker owns its connections for
//! good: it reads what has arrived, executes all whole requests, and writes all replies at once. It never waits for
//! anything but its epoll: all it does is memory. SQL statements go to threads of their own through a bounded queue,
//! and the connection goes on when the reply comes back. A *cleaner* lets the store do its housekeeping each tick.
//!
//! An unpipelined `get` costs one `epoll_wait` (shared by all connections that are ready), one `recv` and one `send`.
#![forbid(unsafe_code)]

mod accept;
mod ahead;
mod cleaner;
mod config;
mod connection;
mod conns;
mod crew;
mod dialogue;
mod held;
mod limits;
mod listen;
mod mailbox;
mod meta;
mod operator;
mod pace;
mod reply;
mod rules;
mod seats;
mod server;
mod shared;
mod socket;
mod spare;
mod sql_door;
mod sql_threads;
mod stranger;
mod upload;
mod watch;
mod worker;

pub use config::{Config, Reload};
pub use limits::*;
pub use listen::ListenError;
pub use server::{Drained, Server, StartError};
