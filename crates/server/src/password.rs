//! A password that a client has shown.

use std::fmt;
use std::net::IpAddr;

use engine::auth::{Certificate, Origin, Peer, Protocol};
use engine::{Engine, Session, Tick};
use memcache::binary;
use memcache::login::{FAILURE, Form};

use crate::origin::{MEMCACHED, Place, failed};
use crate::pace::milliseconds;

/// The password of a PostgreSQL client, which the rules ask for by name.
pub(crate) struct RolePassword {
    pub(crate) role: String,
    pub(crate) password: String,
}

impl fmt::Debug for RolePassword {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RolePassword").field("role", &self.role).finish_non_exhaustive()
    }
}

/// A memcached client's password to be checked.
pub(crate) struct Shown {
    pub(crate) role: String,
    pub(crate) password: String,
    /// How the client is answered.
    pub(crate) form: Form,
    pub(crate) address: Option<IpAddr>,
    pub(crate) origin: Origin,
    pub(crate) certificate: Option<Certificate>,
}

impl fmt::Debug for Shown {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown").field("role", &self.role).finish_non_exhaustive()
    }
}

/// What was found out about a password.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// The session of somebody who was let in.
    pub(crate) session: Option<Session>,
    /// How many milliseconds the answer waits.
    pub(crate) wait_ms: u64,
}

/// Says that a password was right.
fn succeed(form: Form, out: &mut Vec<u8>) {
    match form {
        Form::Set => out.extend_from_slice(b"STORED\r\n"),
        Form::MetaSet => out.extend_from_slice(b"HD\r\n"),
        Form::Binary(id) => {
            id.answer(&binary::Answer { value: b"Authenticated", ..binary::Answer::default() }, out);
        }
    }
}

/// Says that it was not.
pub(crate) fn fail(form: Form, out: &mut Vec<u8>) {
    match form {
        Form::Set | Form::MetaSet => out.extend_from_slice(FAILURE.as_bytes()),
        Form::Binary(id) => id.refuse(binary::Status::NotAllowed, out),
    }
}

/// The session of somebody whose password was right before, and the answer: a microsecond's work.
pub(crate) fn welcome(engine: &Engine, shown: &Shown, out: &mut Vec<u8>) -> Option<Session> {
    let is_known = engine.access.knows_memcached(&shown.role, &shown.password);
    is_known.then(|| session_of(engine, shown, out)).flatten()
}

/// The session of somebody whose password is right, and the answer.
fn session_of(engine: &Engine, shown: &Shown, out: &mut Vec<u8>) -> Option<Session> {
    let Shown { role, password, form, address, origin, certificate } = shown;
    let certificate = certificate.as_ref();
    let peer = Peer { origin, protocol: Protocol::Memcached, database: None, certificate };
    let who = engine.access.check_memcached(peer, role, password).ok()?;
    engine.access.forget_failures(*address);
    engine.access.note_password(true);
    succeed(*form, out);
    Some(Session::of(&who, &engine.access, *address, MEMCACHED))
}

/// Checks a password and appends the answer: a millisecond's work.
pub(crate) fn verdict(engine: &Engine, shown: &Shown, now: Tick, out: &mut Vec<u8>) -> Verdict {
    if let Some(session) = session_of(engine, shown, out) {
        return Verdict { session: Some(session), wait_ms: 0 };
    }
    let Shown { role, form, address, .. } = shown;
    tracing::warn!(address = %Place(*address), role, "memcached client refused: authentication failure");
    engine.access.note_password(false);
    engine.access.note_failure(failed(Some(role), *address, MEMCACHED, "authentication failure"));
    fail(*form, out);
    Verdict { session: None, wait_ms: engine.access.count_failure(*address, milliseconds(now)) }
}
