//! `stats conns`: what each connection is and does.

use std::fmt::Write;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use engine::{TICKS_PER_SECOND, Tick};
use rustix::net::SocketAddrUnix;

use crate::connection::Connection;

/// The lines of some connections.
pub(crate) fn lines_of<'c>(connections: impl Iterator<Item = &'c Connection>, now: Tick) -> String {
    let mut lines = String::new();
    for connection in connections {
        describe(connection, now, &mut lines);
    }
    lines
}

fn describe(connection: &Connection, now: Tick, lines: &mut String) {
    let fd = connection.raw_fd();
    let named = |address: Option<SocketAddr>| match address {
        Some(address) => format!("tcp:{address}"),
        None => format!("unix:{}", own_path(connection)),
    };
    let state = connection.state();
    let idle = connection.idle_ticks(now) / TICKS_PER_SECOND;
    // Writing to a string does not fail.
    let _ = write!(
        lines,
        "STAT {fd}:addr {}\r\nSTAT {fd}:listen_addr {}\r\nSTAT {fd}:state {state}\r\n\
         STAT {fd}:secs_since_last_cmd {idle}\r\n",
        named(peer(connection)),
        named(own(connection)),
    );
}

/// The peer's address; none on the Unix socket, and when it is gone.
pub(crate) fn peer(connection: &Connection) -> Option<SocketAddr> {
    let address = rustix::net::getpeername(connection.socket.as_fd()).ok()??;
    SocketAddr::try_from(address).ok()
}

/// The path of the Unix socket that it came by.
fn own_path(connection: &Connection) -> String {
    let address = rustix::net::getsockname(connection.socket.as_fd()).ok();
    let address = address.and_then(|address| SocketAddrUnix::try_from(address).ok());
    let path = address.as_ref().and_then(SocketAddrUnix::path_bytes).unwrap_or_default();
    String::from_utf8_lossy(path).into_owned()
}

fn own(connection: &Connection) -> Option<SocketAddr> {
    SocketAddr::try_from(rustix::net::getsockname(connection.socket.as_fd()).ok()?).ok()
}
