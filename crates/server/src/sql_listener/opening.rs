//! A connection before its session begins: what it wants, and as whom it comes in.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use engine::auth::scram::SCRAM;
use engine::auth::{Admission, Authenticated, Method, Peer, Protocol, Proving, Refusal as Refused};
use engine::{Identity, Rights, SqlError, SqlSession, Tick};
use postgres::backend::{self, Status};
use postgres::opening::{
    NEWEST_MINOR, Opening as Packet, Proof, Refusal, first_of_exchange, parse, password, proof,
};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::SqlListener;
use super::connection::Connection;
use super::turn::fatal;
use crate::limits::OPENING_BUFFER_BYTES;
use crate::origin::{Place, address_of, origin_of};
use crate::pace::milliseconds;
use crate::stranger::Stranger;

/// What a connection is between `accept` and its session.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) fd: OwnedFd,
    input: Vec<u8>,
    /// When it was accepted.
    pub(crate) since: Tick,
    /// What it wants, once it has said so and must prove its role.
    asked: Option<Box<Asked>>,
}

/// A session that a client wants.
#[derive(Debug)]
struct Wanted {
    minor: u16,
    role: String,
    database: String,
    parameters: Vec<(String, String)>,
}

/// A client that must prove its role.
#[derive(Debug)]
struct Asked {
    wanted: Wanted,
    method: Method,
    proving: Option<Proving>,
}

/// What became of it.
pub(crate) enum Step {
    /// It waits for more bytes.
    Wait(Opening),
    /// Its session begins.
    Begin(Box<Connection>),
    /// It is not let in, and hears it after so many milliseconds.
    Refused(Opening, Vec<u8>, u64),
    /// It is over.
    End,
}

impl Opening {
    pub(crate) fn new(fd: OwnedFd, since: Tick) -> Self {
        Self { fd, input: Vec::new(), since, asked: None }
    }

    /// Reads and answers what has come.
    pub(crate) fn step(mut self, listener: &Arc<SqlListener>, now: Tick) -> Step {
        if !self.receive() {
            return Step::End;
        }
        match self.asked.take() {
            Some(asked) => self.prove(listener, *asked, now),
            None => self.start(listener, now),
        }
    }

    /// Reads what the client wants.
    fn start(mut self, listener: &Arc<SqlListener>, now: Tick) -> Step {
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
                    return self.admit(listener, Wanted::new(minor, parameters), now);
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

    /// Lets a client in, asks it for a proof, or refuses it, as the rules say.
    fn admit(self, listener: &Arc<SqlListener>, wanted: Wanted, now: Tick) -> Step {
        if wanted.role.is_empty() {
            return self.end("28000", "no PostgreSQL user name specified in startup packet");
        }
        let origin = origin_of(&self.fd);
        let peer = Peer { origin: &origin, protocol: Protocol::Sql, database: Some(&wanted.database) };
        let admission = listener.shared.engine.access.current().admit(peer, &wanted.role);
        let mut out = wanted.greeting();
        match admission {
            Admission::In(who) => self.begin(listener, &wanted, &who, out, now),
            Admission::Out(refused) => self.turn_away(listener, &wanted, refused, now),
            Admission::Proof(method) => {
                match method {
                    Method::Password => backend::authentication_password(&mut out),
                    _ => backend::authentication_sasl(&[SCRAM], &mut out),
                }
                if !self.send(&out) {
                    return Step::End;
                }
                self.prove(listener, Asked { wanted, method, proving: None }, now)
            }
        }
    }

    /// Reads a client's proof, or a part of it.
    fn prove(mut self, listener: &Arc<SqlListener>, mut asked: Asked, now: Tick) -> Step {
        let access = &listener.shared.engine.access;
        loop {
            let (consumed, body) = match proof(&self.input) {
                Proof::Incomplete => {
                    self.asked = Some(Box::new(asked));
                    return Step::Wait(self);
                }
                Proof::Message { consumed, body } => (consumed, body),
                Proof::Broken => return self.end("08P01", "expected a password or SASL response"),
            };
            let mut out = Vec::new();
            let proved = match (asked.method, asked.proving.take()) {
                (Method::Password, _) => password(body)
                    .map_or(Err(Refused::Proof), |text| access.check_password(&asked.wanted.role, text)),
                (_, Some(proving)) => access.finish_scram(proving, body).map(|(answer, who)| {
                    backend::authentication_final(&answer, &mut out);
                    who
                }),
                (_, None) => {
                    let begun = first_of_exchange(body).and_then(|(mechanism, first)| {
                        access.current().begin_scram(&asked.wanted.role, mechanism, first, None).ok()
                    });
                    let Some((proving, answer)) = begun else {
                        return self
                            .end("08P01", "malformed SCRAM message, or a mechanism that is not offered");
                    };
                    asked.proving = Some(proving);
                    self.input.drain(..consumed);
                    backend::authentication_continue(&answer, &mut out);
                    if !self.send(&out) {
                        return Step::End;
                    }
                    continue;
                }
            };
            self.input.drain(..consumed);
            return match proved {
                Ok(who) => {
                    access.forget_failures(address_of(&self.fd));
                    self.begin(listener, &asked.wanted, &who, out, now)
                }
                Err(refused) => self.turn_away(listener, &asked.wanted, refused, now),
            };
        }
    }

    /// Tells the peer that its time is over.
    pub(crate) fn expire(&self) {
        let mut out = Vec::new();
        fatal("08006", "authentication_timeout: the session did not begin in time", &mut out);
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
    pub(crate) fn send(&self, bytes: &[u8]) -> bool {
        rustix::net::send(&self.fd, bytes, SendFlags::NOSIGNAL) == Ok(bytes.len())
    }

    /// Ends a connection that did not speak as it should.
    fn end(self, state: &str, message: &str) -> Step {
        let mut out = Vec::new();
        fatal(state, message, &mut out);
        self.send(&out);
        Step::End
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

    /// Refuses a client for who it is. It hears so later, and later each time.
    #[cold]
    fn turn_away(self, listener: &SqlListener, wanted: &Wanted, refused: Refused, now: Tick) -> Step {
        let address = address_of(&self.fd);
        let (state, message) = wanted.refusal(refused, Place(address));
        tracing::warn!(address = %Place(address), role = wanted.role, "PostgreSQL client refused: {message}");
        let wait = listener.shared.engine.access.count_failure(address, milliseconds(now));
        let mut out = Vec::new();
        fatal(state, &message, &mut out);
        Step::Refused(self, out, wait)
    }

    /// Begins the session. `out`: what the client hears first.
    fn begin(
        self,
        listener: &Arc<SqlListener>,
        wanted: &Wanted,
        who: &Authenticated,
        mut out: Vec<u8>,
        now: Tick,
    ) -> Step {
        // Not before: a client that asked for encryption takes an error for an attack and does not show it, and a
        // statement can be cancelled however many clients there are.
        let engine = &listener.shared.engine;
        if !engine.has_place_for(who) {
            return self.end("53300", &format!("too many connections for role \"{}\"", wanted.role));
        }
        let Some(permit) = listener.shared.admit() else {
            refuse_place(&self.fd);
            return Step::End;
        };
        let mut session = SqlSession::of(Arc::clone(engine), who);
        let Ok(key) = listener.cancels.admit(session.cancel().clone(), wanted.minor >= 2) else {
            return Step::End;
        };
        let address = address_of(&self.fd).map(|address| address.to_string());
        if let Err(error) = begin_session(&mut session, listener, key.process, address, wanted) {
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
}

impl Wanted {
    fn new(minor: u16, parameters: Vec<(String, String)>) -> Self {
        let value = |wanted: &str| {
            let found = parameters.iter().rfind(|(name, _)| name == wanted);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let (role, database) = (value("user"), value("database"));
        let database = if database.is_empty() { role.clone() } else { database };
        Self { minor, role, database, parameters }
    }

    /// What a client hears that speaks a newer protocol, or asks for what is not known.
    fn greeting(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let names = self.parameters.iter().map(|(name, _)| name);
        let unknown: Vec<String> = names.filter(|name| name.starts_with("_pq_.")).cloned().collect();
        if self.minor > NEWEST_MINOR || self.minor == 1 || !unknown.is_empty() {
            backend::negotiate_protocol(NEWEST_MINOR.min(self.minor), unknown, &mut out);
        }
        out
    }

    /// Why the client is not let in: an SQLSTATE and PostgreSQL's words.
    fn refusal(&self, refused: Refused, from: Place) -> (&'static str, String) {
        let Self { role, database, .. } = self;
        match refused {
            Refused::Rule => (
                "28000",
                format!(
                    "no rule (hba_file) lets in user \"{role}\" from {from}, database \"{database}\", no encryption"
                ),
            ),
            Refused::UnknownRole => ("28000", format!("role \"{role}\" does not exist")),
            Refused::NoLogin => ("28000", format!("role \"{role}\" is not permitted to log in")),
            Refused::Peer => ("28000", format!("Peer authentication failed for user \"{role}\"")),
            Refused::Proof => ("28P01", format!("password authentication failed for user \"{role}\"")),
        }
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
    wanted: &Wanted,
) -> Result<(), SqlError> {
    let mut settings = Vec::new();
    for (name, value) in &wanted.parameters {
        match name.as_str() {
            "options" => settings.extend(options(value)?),
            "replication" if value != "false" => {
                return Err(SqlError::new("0A000", "replication connections are not supported"));
            }
            "user" | "database" | "replication" => {}
            name if name.starts_with("_pq_.") => {}
            _ => settings.push((name.clone(), value.clone())),
        }
    }
    let (user, database) = (wanted.role.clone(), wanted.database.clone());
    let identity = Identity { pid, role: user.clone(), user, database, rights: Rights::NONE };
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
