//! A connection before its session begins.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use engine::{Identity, SqlSession, Tick};
use postgres::backend::{self, Status};
use postgres::opening::{NEWEST_MINOR, Opening as Packet, Refusal, parse};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::SqlDoor;
use super::connection::Connection;
use super::turn::fatal;
use crate::limits::OPENING_BUFFER_BYTES;
use crate::shared::Permit;

/// The parameters that every session is told at its start, beside those of its own.
const SERVER_PARAMETERS: &[(&str, &str)] = &[
    ("server_version", "15.0 (sqlcached)"),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("TimeZone", "UTC"),
    ("IntervalStyle", "postgres"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
    ("is_superuser", "on"),
];

/// What a connection is between `accept` and its session. Encryption is asked for and refused here, and whoever is let
/// in by the listener is trusted; a password exchange would be a second step behind the startup packet.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) fd: OwnedFd,
    permit: Permit,
    input: Vec<u8>,
    /// When it was accepted.
    pub(crate) since: Tick,
}

/// What became of it.
pub(crate) enum Step {
    /// It waits for more bytes.
    Wait(Opening),
    /// Its session begins.
    Begin(Box<Connection>),
    /// It is over.
    End,
}

impl Opening {
    pub(crate) fn new(fd: OwnedFd, permit: Permit, since: Tick) -> Self {
        Self { fd, permit, input: Vec::new(), since }
    }

    /// Reads and answers what has come.
    pub(crate) fn step(mut self, door: &Arc<SqlDoor>, now: Tick) -> Step {
        if !self.receive() {
            return Step::End;
        }
        loop {
            match parse(&self.input) {
                Packet::Incomplete => return Step::Wait(self),
                Packet::Encryption { consumed } => {
                    self.input.drain(..consumed);
                    let mut out = Vec::new();
                    backend::no_encryption(&mut out);
                    // What follows the question before it is answered was not meant for plain text.
                    if !self.input.is_empty() || !self.send(&out) {
                        return Step::End;
                    }
                }
                Packet::Cancel { process, secret } => {
                    door.cancels.cancel(process, &secret);
                    return Step::End;
                }
                Packet::Startup { consumed, minor, parameters } => {
                    self.input.drain(..consumed);
                    return self.begin(door, minor, &parameters, now);
                }
                Packet::Refused(refusal) => {
                    self.refuse(refusal);
                    return Step::End;
                }
            }
        }
    }

    /// Tells the peer that its time is over.
    pub(crate) fn expire(&self) {
        let mut out = Vec::new();
        fatal("08006", "no startup packet arrived in time", &mut out);
        self.send(&out);
    }

    fn receive(&mut self) -> bool {
        let mut buffer = [0; OPENING_BUFFER_BYTES];
        loop {
            match rustix::net::recv(&self.fd, &mut buffer, RecvFlags::empty()) {
                Ok((0, _)) => return false,
                Ok((count, _)) => {
                    self.input.extend_from_slice(&buffer[..count]);
                    // More than a packet can be: what is there decides.
                    if count < buffer.len() || self.input.len() > 2 * OPENING_BUFFER_BYTES {
                        return true;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
    }

    /// A reply at this stage fits into an empty socket; a peer that makes it not fit is given up.
    fn send(&self, bytes: &[u8]) -> bool {
        rustix::net::send(&self.fd, bytes, SendFlags::NOSIGNAL) == Ok(bytes.len())
    }

    fn refuse(&self, refusal: Refusal) {
        let mut out = Vec::new();
        match refusal {
            Refusal::Length => {
                let message = "invalid length of startup packet; this port speaks PostgreSQL's protocol";
                fatal("08P01", message, &mut out);
            }
            Refusal::Version { major, minor } => {
                let message =
                    format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.2");
                fatal("0A000", &message, &mut out);
            }
            Refusal::Layout => fatal("08P01", "invalid startup packet layout", &mut out),
        }
        self.send(&out);
    }

    fn begin(self, door: &Arc<SqlDoor>, minor: u16, parameters: &[(String, String)], now: Tick) -> Step {
        let mut out = Vec::new();
        let unknown: Vec<String> = parameters
            .iter()
            .filter(|(name, _)| name.starts_with("_pq_."))
            .map(|(name, _)| name.clone())
            .collect();
        if minor > NEWEST_MINOR || minor == 1 || !unknown.is_empty() {
            backend::negotiate_protocol(NEWEST_MINOR.min(minor), unknown, &mut out);
        }
        let mut session = SqlSession::local();
        let Ok(key) = door.cancels.admit(session.cancel().clone(), minor >= 2) else { return Step::End };
        self.introduce(&mut session, door, key.process, parameters);
        backend::authentication_ok(&mut out);
        for (name, value) in SERVER_PARAMETERS {
            backend::parameter_status(name, value, &mut out);
        }
        backend::backend_key(key.process, &key.secret, &mut out);
        backend::ready(Status::Idle, &mut out);
        let sent = self.send(&out);
        let Self { fd, permit, input, .. } = self;
        let connection = Connection::new(fd, Arc::clone(door), permit, session, key, input, now);
        if sent { Step::Begin(Box::new(connection)) } else { Step::End }
    }

    /// Who the client says it is, for others to see. A client that names no database means one called as itself.
    fn introduce(
        &self,
        session: &mut SqlSession,
        door: &SqlDoor,
        number: i32,
        parameters: &[(String, String)],
    ) {
        let given = |name: &str| {
            let found = parameters.iter().find(|(given, value)| given == name && !value.is_empty());
            found.map(|(_, value)| value.clone())
        };
        let user = given("user").unwrap_or_else(|| Identity::default().user);
        let database = given("database").unwrap_or_else(|| user.clone());
        let peer = rustix::net::getpeername(&self.fd).ok().flatten();
        let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
        session.introduce(
            &door.shared.engine,
            Identity { pid: number, user, database },
            &given("application_name").unwrap_or_default(),
            peer.map(|peer| peer.ip().to_string()),
        );
    }
}
