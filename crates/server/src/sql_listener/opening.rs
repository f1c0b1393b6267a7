//! A connection before its session begins: what it is encrypted with, what it wants, and as whom it comes in.

use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::sync::Arc;

use engine::auth::scram::{SCRAM, SCRAM_PLUS};
use engine::auth::{Admission, Authenticated, Method, Peer, Protocol, Proving, Refusal as Refused};
use engine::{Cancel, Identity, SqlError, SqlSession, Tick};
use forward::Start;
use postgres::backend::{self, Status};
use postgres::opening::{
    Encryption, NEWEST_MINOR, Opening as Packet, Proof, Refusal, TLS_FIRST, first_of_exchange, parse,
    password, proof,
};
use rustix::net::SendFlags;
use store::definition::ServerDef;

use super::SqlListener;
use super::connection::Connection;
use crate::cancels::Canceller;
use crate::fatal::fatal;
use crate::forward::{Request, server_of};
use crate::limits::OPENING_BUFFER_BYTES;
use crate::origin::{Place, address_of, failed};
use crate::pace::milliseconds;
use crate::password::RolePassword;
use crate::shared::{Full, Permit};
use crate::socket::Socket;
use crate::stranger::Stranger;
use crate::tls::Tls;
use crate::unproved::Unproved;

/// What a connection is between `accept` and its session.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) socket: Socket,
    input: Vec<u8>,
    /// Bytes that have come, without those of TLS itself.
    come: usize,
    /// Its place among those who have proved nothing.
    pub(crate) unproved: Unproved,
    /// It has asked whether it may encrypt by TLS, or began with it...
    asked_tls: bool,
    /// ...and by GSSAPI: once each.
    asked_gss: bool,
    /// It began with TLS without asking.
    direct: bool,
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
    /// Its password is being checked.
    checking: Option<Checking>,
}

/// A password that is being checked. When its connection ends, it need not be.
#[derive(Debug)]
struct Checking(Cancel);

impl Drop for Checking {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// What became of it.
pub(crate) enum Step {
    /// It waits for more bytes.
    Wait(Opening),
    /// It waits for what becomes of its password.
    Check(Opening, RolePassword),
    /// Its session begins.
    Begin(Box<Connection>),
    /// Its session is to begin at a server.
    Forward(Box<Request>),
    /// It is not let in, and hears it after so many milliseconds.
    Refused(Opening, Vec<u8>, u64),
    /// It is over.
    End,
}

impl Opening {
    pub(crate) fn new(socket: Socket, unproved: Unproved, since: Tick) -> Self {
        Self {
            socket,
            input: Vec::new(),
            come: 0,
            unproved,
            asked_tls: false,
            asked_gss: false,
            direct: false,
            since,
            asked: None,
        }
    }

    /// Reads and answers what has come.
    pub(crate) fn step(mut self, listener: &Arc<SqlListener>, now: Tick) -> Step {
        let is_there = self.receive();
        if self.begins_with_tls() {
            let first = std::mem::take(&mut self.input);
            self.direct = true;
            self.come = 0;
            if !self.encrypt(listener, first) {
                listener.shared.strangers.mention(Stranger::Tls, now);
                return Step::End;
            }
        }
        self.note_failure();
        if !is_there || self.socket.broken || self.speaks_another_protocol() {
            return Step::End;
        }
        let step = match self.asked.take() {
            Some(asked) if asked.checking.is_some() => {
                self.asked = Some(asked);
                Step::Wait(self)
            }
            Some(asked) => self.prove(listener, *asked, now),
            None => self.start(listener, now),
        };
        match step {
            Step::Wait(opening) if opening.come > OPENING_BUFFER_BYTES => {
                opening.end("08P01", "too many bytes before the session began")
            }
            step => step,
        }
    }

    /// Whether the client begins with TLS, without asking whether it may.
    fn begins_with_tls(&self) -> bool {
        self.input.first() == Some(&TLS_FIRST) && !self.asked_tls && address_of(&self.socket).is_some()
    }

    /// Speaks TLS from now on; false where there is none. `first`: what has come of it already.
    fn encrypt(&mut self, listener: &SqlListener, mut first: Vec<u8>) -> bool {
        let Some(tls) = listener.shared.encryption().and_then(|encryption| Tls::for_sql(&encryption)) else {
            return false;
        };
        self.asked_tls = true;
        self.socket.begin_tls(tls, &mut first);
        self.come += first.len();
        self.input = first;
        // The records that came with the first ones.
        self.receive();
        true
    }

    /// A client that begins with TLS itself must say there what it speaks: by this another protocol's server cannot be
    /// taken for this one.
    fn speaks_another_protocol(&self) -> bool {
        let speaks = self.socket.tls().is_none_or(|tls| tls.is_handshaking() || tls.speaks_postgresql());
        if self.direct && !speaks {
            let address = Place(address_of(&self.socket));
            tracing::warn!(%address, "PostgreSQL client refused: direct TLS without ALPN \"postgresql\"");
        }
        self.direct && !speaks
    }

    /// Says in the log why the connection could not be encrypted.
    fn note_failure(&self) {
        if let Some(failure) = self.socket.tls().and_then(|tls| tls.failure.as_ref()) {
            let address = Place(address_of(&self.socket));
            tracing::warn!(%address, "PostgreSQL client refused: TLS: {failure}");
        }
    }

    /// Answers whether the client may encrypt. `Break`: the connection is over.
    fn answer_encryption(&mut self, listener: &SqlListener, by: Encryption) -> ControlFlow<()> {
        let asked = match by {
            Encryption::Tls => &mut self.asked_tls,
            Encryption::Gss => &mut self.asked_gss,
        };
        let (again, has_tls) = (std::mem::replace(asked, true), self.socket.tls().is_some());
        let is_local = address_of(&self.socket).is_none();
        let offered =
            by == Encryption::Tls && !has_tls && !is_local && listener.shared.encryption().is_some();
        // What follows the question before it is answered was not meant for plain text.
        if again && !self.direct {
            self.refuse(Refusal::Version { major: 1_234, minor: 5_679 });
            return ControlFlow::Break(());
        }
        if !self.input.is_empty() {
            return ControlFlow::Break(());
        }
        let mut out = Vec::new();
        if offered {
            backend::encryption(&mut out);
        } else {
            backend::no_encryption(&mut out);
        }
        if !self.send(&out) || offered && !self.encrypt(listener, Vec::new()) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Reads what the client wants.
    fn start(mut self, listener: &Arc<SqlListener>, now: Tick) -> Step {
        loop {
            match parse(&self.input) {
                Packet::Incomplete => return Step::Wait(self),
                Packet::Encryption { consumed, by } => {
                    self.input.drain(..consumed);
                    if self.answer_encryption(listener, by).is_break() {
                        return Step::End;
                    }
                    self.note_failure();
                    if self.socket.broken {
                        return Step::End;
                    }
                }
                Packet::Cancel { process, secret } => {
                    if let Some(target) = listener.cancels.cancel(process, &secret) {
                        listener.forwarder.cancel(&target);
                    }
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
    fn admit(mut self, listener: &Arc<SqlListener>, wanted: Wanted, now: Tick) -> Step {
        if wanted.role.is_empty() {
            return self.end("28000", "no PostgreSQL user name specified in startup packet");
        }
        let (origin, certificate) = (self.socket.origin(), self.socket.certificate());
        let peer = Peer {
            origin: &origin,
            protocol: Protocol::Sql,
            database: Some(&wanted.database),
            certificate: certificate.as_ref(),
        };
        let admission = listener.shared.engine.access.current().admit(peer, &wanted.role);
        let mut out = wanted.greeting();
        match admission {
            Admission::In(who) => self.begin(listener, &wanted, &who, out, now),
            Admission::Out(refused) => self.turn_away(listener, &wanted, refused, now),
            Admission::Proof(method) => {
                match method {
                    Method::Password => backend::authentication_password(&mut out),
                    _ if self.end_point().is_some() => {
                        backend::authentication_sasl(&[SCRAM_PLUS, SCRAM], &mut out);
                    }
                    _ => backend::authentication_sasl(&[SCRAM], &mut out),
                }
                if !self.send(&out) {
                    return Step::End;
                }
                self.prove(listener, Asked { wanted, method, proving: None, checking: None }, now)
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
                (Method::Password, _) => {
                    let Some(text) = password(body) else {
                        return self.turn_away(listener, &asked.wanted, Refused::Proof, now);
                    };
                    let role = &asked.wanted.role;
                    if !access.knows_password(role, text) {
                        let shown = RolePassword { role: role.clone(), password: text.to_owned() };
                        self.input.drain(..consumed);
                        self.asked = Some(Box::new(asked));
                        return Step::Check(self, shown);
                    }
                    access.check_password(role, text)
                }
                (_, Some(proving)) => access.finish_scram(proving, body).map(|(answer, who)| {
                    backend::authentication_final(&answer, &mut out);
                    who
                }),
                (_, None) => {
                    let begun = first_of_exchange(body).and_then(|(mechanism, first)| {
                        let end_point = self.end_point();
                        access.current().begin_scram(&asked.wanted.role, mechanism, first, end_point).ok()
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
            return self.decide(listener, &asked.wanted, proved, out, now);
        }
    }

    /// Its password is being checked; `cancel` ends that.
    pub(crate) fn await_verdict(&mut self, cancel: Cancel) {
        let checking = Checking(cancel);
        if let Some(asked) = &mut self.asked {
            asked.checking = Some(checking);
        }
    }

    /// Goes on when its password was checked.
    pub(crate) fn hear(
        mut self,
        listener: &Arc<SqlListener>,
        proved: Result<Authenticated, Refused>,
        now: Tick,
    ) -> Step {
        match self.asked.take() {
            Some(asked) => self.decide(listener, &asked.wanted, proved, Vec::new(), now),
            None => Step::End,
        }
    }

    /// Lets a client in whose proof was right. `out`: what it hears first.
    fn decide(
        self,
        listener: &Arc<SqlListener>,
        wanted: &Wanted,
        proved: Result<Authenticated, Refused>,
        out: Vec<u8>,
        now: Tick,
    ) -> Step {
        match proved {
            Ok(who) => {
                listener.shared.engine.access.forget_failures(address_of(&self.socket));
                self.begin(listener, wanted, &who, out, now)
            }
            Err(refused) => self.turn_away(listener, wanted, refused, now),
        }
    }

    /// What a proof of a password is bound to.
    fn end_point(&self) -> Option<&[u8]> {
        self.socket.tls()?.end_point()
    }

    /// Tells the peer that its time is over, or that a newer one has its place.
    pub(crate) fn expire(&mut self) {
        let mut out = Vec::new();
        fatal("08006", "authentication_timeout: the session did not begin in time", &mut out);
        self.send(&out);
    }

    fn receive(&mut self) -> bool {
        let mut buffer = [0; OPENING_BUFFER_BYTES];
        let before = self.come;
        loop {
            let (count, more) = self.socket.receive(&mut buffer);
            self.input.extend_from_slice(&buffer[..count]);
            self.come += count;
            // More than a packet can be: what is there decides.
            if !more || self.input.len() > 2 * OPENING_BUFFER_BYTES {
                return self.come > before || !self.socket.ended && !self.socket.broken;
            }
        }
    }

    /// A reply at this stage fits into an empty socket; a peer that makes it not fit is given up.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.socket.deliver(&mut bytes.to_vec(), self.since);
        !self.socket.broken && self.socket.output_waiting() == 0
    }

    /// Ends a connection that did not speak as it should.
    fn end(mut self, state: &str, message: &str) -> Step {
        let mut out = Vec::new();
        fatal(state, message, &mut out);
        self.send(&out);
        Step::End
    }

    fn refuse(&mut self, refusal: Refusal) {
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
    fn turn_away(mut self, listener: &SqlListener, wanted: &Wanted, refused: Refused, now: Tick) -> Step {
        let address = address_of(&self.socket);
        let (state, message) = wanted.refusal(refused, Place(address), self.socket.tls().is_some());
        tracing::warn!(address = %Place(address), role = wanted.role, "PostgreSQL client refused: {message}");
        let access = &listener.shared.engine.access;
        access.note_failure(failed(Some(&wanted.role), address, "postgresql", &message));
        let wait = access.count_failure(address, milliseconds(now));
        self.unproved.note_failure();
        let mut out = Vec::new();
        fatal(state, &message, &mut out);
        Step::Refused(self, out, wait)
    }

    /// Begins the session. `out`: what the client hears first.
    fn begin(
        mut self,
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
        let permit = match listener.shared.admit(address_of(&self.socket)) {
            Ok(permit) => permit,
            Err(full) => {
                self.send(&no_place(full));
                return Step::End;
            }
        };
        let mut session = SqlSession::of(Arc::clone(engine), who, address_of(&self.socket));
        if let Some(server) = server_of(engine, &wanted.database) {
            return self.forward(listener, wanted, server, (permit, session), out, now);
        }
        let canceller = Canceller::Session(session.cancel().clone());
        let Ok(key) = listener.cancels.admit(canceller, wanted.minor >= 2) else {
            return Step::End;
        };
        if let Some(tls) = self.socket.tls() {
            session.set_encryption(tls.facts());
        }
        let address = address_of(&self.socket).map(|address| address.to_string());
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
        let Self { socket, input, .. } = self;
        let connection = Connection::new(socket, Arc::clone(listener), permit, session, key, input, now);
        if sent { Step::Begin(Box::new(connection)) } else { Step::End }
    }

    /// Begins the session at a server. `out`: what the client hears first.
    fn forward(
        mut self,
        listener: &Arc<SqlListener>,
        wanted: &Wanted,
        server: Arc<ServerDef>,
        (permit, session): (Permit, SqlSession),
        mut out: Vec<u8>,
        now: Tick,
    ) -> Step {
        let mapping = match session.mapping_at(&server, &wanted.role) {
            Ok(mapping) => mapping.clone(),
            Err(error) => {
                fatal(error.state, &error.message, &mut out);
                self.send(&out);
                return Step::End;
            }
        };
        let own = |(name, _): &&(String, String)| {
            !["user", "database", "replication"].contains(&name.as_str()) && !name.starts_with("_pq_.")
        };
        let parameters = wanted.parameters.iter().filter(own).cloned().collect();
        let Self { socket, input, .. } = self;
        Step::Forward(Box::new(Request {
            socket,
            input,
            cancels: Arc::clone(&listener.cancels),
            permit,
            session,
            long_secret: wanted.minor >= 2,
            start: Start { server, mapping, parameters },
            out,
            now,
        }))
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
    fn refusal(&self, refused: Refused, from: Place, encrypted: bool) -> (&'static str, String) {
        let Self { role, database, .. } = self;
        let encryption = if encrypted { "SSL encryption" } else { "no encryption" };
        match refused {
            Refused::Rule => (
                "28000",
                format!(
                    "no rule (hba_file) lets in user \"{role}\" from {from}, database \"{database}\", {encryption}"
                ),
            ),
            Refused::UnknownRole => ("28000", format!("role \"{role}\" does not exist")),
            Refused::NoLogin => ("28000", format!("role \"{role}\" is not permitted to log in")),
            Refused::Peer => ("28000", format!("Peer authentication failed for user \"{role}\"")),
            Refused::Certificate => {
                ("28000", format!("certificate authentication failed for user \"{role}\""))
            }
            Refused::Proof => ("28P01", format!("password authentication failed for user \"{role}\"")),
        }
    }
}

/// What a peer hears when all places are taken.
fn no_place(full: Full) -> Vec<u8> {
    let mut out = Vec::new();
    let message = match full {
        Full::Server => "sorry, too many clients already (max_connections)",
        Full::Address => "sorry, too many clients of this address already (max_connections_per_address)",
    };
    fatal("53300", message, &mut out);
    out
}

/// Tells a peer so that was just accepted.
pub(super) fn refuse_place(fd: impl AsFd) {
    let _gone = rustix::net::send(fd, &no_place(Full::Server), SendFlags::NOSIGNAL);
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
    let identity = Identity { pid, role: user.clone(), user, database, ..Identity::stranger() };
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
