//! A connection before its session begins.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use engine::{Identity, SqlError, SqlSession, Tick};
use postgres::backend::{self, Status};
use postgres::opening::{NEWEST_MINOR, Opening as Packet, Refusal, parse};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::SqlListener;
use super::connection::Connection;
use super::turn::fatal;
use crate::limits::OPENING_BUFFER_BYTES;
use crate::stranger::Stranger;

/// What a connection is between `accept` and its session. Encryption is asked for and refused here, and whoever is let
/// in by the listener is trusted; a password exchange would be a second step behind the startup packet.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) fd: OwnedFd,
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
    pub(crate) fn new(fd: OwnedFd, since: Tick) -> Self {
        Self { fd, input: Vec::new(), since }
    }

    /// Reads and answers what has come.
    pub(crate) fn step(mut self, listener: &Arc<SqlListener>, now: Tick) -> Step {
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
                    listener.cancels.cancel(process, &secret);
                    return Step::End;
                }
                Packet::Startup { consumed, minor, parameters } => {
                    self.input.drain(..consumed);
                    return self.begin(listener, minor, &parameters, now);
                }
                Packet::Refused(refusal) => {
                    if let Some(stranger) = Stranger::on_sql_port(&self.input) {
                        listener.shared.strangers.mention(stranger, now);
                    }
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

    fn begin(
        self,
        listener: &Arc<SqlListener>,
        minor: u16,
        parameters: &[(String, String)],
        now: Tick,
    ) -> Step {
        // Not before: a client that asked for encryption takes an error for an attack and does not show it, and a
        // statement can be cancelled however many clients there are.
        let Some(permit) = listener.shared.admit() else {
            refuse_place(&self.fd);
            return Step::End;
        };
        let mut out = Vec::new();
        let unknown: Vec<String> = parameters
            .iter()
            .filter(|(name, _)| name.starts_with("_pq_."))
            .map(|(name, _)| name.clone())
            .collect();
        if minor > NEWEST_MINOR || minor == 1 || !unknown.is_empty() {
            backend::negotiate_protocol(NEWEST_MINOR.min(minor), unknown, &mut out);
        }
        let mut session = SqlSession::local(Arc::clone(&listener.shared.engine));
        let Ok(key) = listener.cancels.admit(session.cancel().clone(), minor >= 2) else { return Step::End };
        if let Err(error) = begin_session(&mut session, listener, key.process, self.address(), parameters) {
            listener.cancels.forget(key.process);
            fatal(error.state, &error.message, &mut out);
            self.send(&out);
            return Step::End;
        }
        backend::authentication_ok(&mut out);
        for (name, value) in session.reported_settings() {
            backend::parameter_status(name, value, &mut out);
        }
        backend::backend_key(key.process, &key.secret, &mut out);
        backend::ready(Status::Idle, &mut out);
        let sent = self.send(&out);
        let Self { fd, input, .. } = self;
        let connection = Connection::new(fd, Arc::clone(listener), permit, session, key, input, now);
        if sent { Step::Begin(Box::new(connection)) } else { Step::End }
    }

    /// The address that the client comes from; none for a Unix socket.
    fn address(&self) -> Option<String> {
        let peer = rustix::net::getpeername(&self.fd).ok().flatten();
        let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
        peer.map(|peer| peer.ip().to_string())
    }
}

/// Tells a peer that all places are taken.
pub(super) fn refuse_place(fd: &OwnedFd) {
    let mut out = Vec::new();
    fatal("53300", "sorry, too many clients already (max_connections)", &mut out);
    let _gone = rustix::net::send(fd, &out, SendFlags::NOSIGNAL);
}

/// Makes the session what its client asks for.
fn begin_session(
    session: &mut SqlSession,
    listener: &SqlListener,
    pid: i32,
    address: Option<String>,
    parameters: &[(String, String)],
) -> Result<(), SqlError> {
    let mut identity = Identity { pid, user: String::new(), database: String::new() };
    let mut settings = Vec::new();
    for (name, value) in parameters {
        match name.as_str() {
            "user" => identity.user.clone_from(value),
            "database" => identity.database.clone_from(value),
            "options" => settings.extend(options(value)?),
            "replication" if value != "false" => {
                return Err(SqlError::new("0A000", "replication connections are not supported"));
            }
            "replication" => {}
            name if name.starts_with("_pq_.") => {}
            _ => settings.push((name.clone(), value.clone())),
        }
    }
    if identity.user.is_empty() {
        return Err(SqlError::new("28000", "no PostgreSQL user name specified in startup packet"));
    }
    if identity.database.is_empty() {
        identity.database.clone_from(&identity.user);
    }
    session.start(identity, address, listener.shared.statement_timeout(), &settings)
}

/// The settings in `-c name=value --name=value`, as a server's command line has them; a backslash keeps a blank.
fn options(text: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut words = vec![String::new()];
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        match next {
            '\\' => words.last_mut().into_iter().for_each(|word| word.extend(chars.next())),
            blank if blank.is_whitespace() => words.push(String::new()),
            other => words.last_mut().into_iter().for_each(|word| word.push(other)),
        }
    }
    let mut settings = Vec::new();
    let mut words = words.iter().filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        let setting = match word.as_str() {
            "-c" => words.next().map(String::as_str),
            word => word.strip_prefix("--").or_else(|| word.strip_prefix("-c")),
        };
        let wrong =
            || SqlError::new("42601", format!("invalid command-line argument for server process: {word}"));
        let (name, value) = setting.and_then(|setting| setting.split_once('=')).ok_or_else(wrong)?;
        settings.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::options;

    #[test]
    fn options_as_on_a_command_line() {
        let pairs = |text: &str| -> Vec<String> {
            options(text).unwrap().iter().map(|(name, value)| format!("{name}={value}")).collect()
        };
        assert_eq!(pairs("-c a=1 -cb=2  --c-d=x\\ y"), ["a=1", "b=2", "c_d=x y"]);
        assert!(pairs("").is_empty());
        for wrong in ["-c", "x", "--a", "-c a"] {
            assert_eq!(options(wrong).unwrap_err().state, "42601", "{wrong}");
        }
    }
}
