//! A password that a client has shown.

use std::fmt;
use std::net::IpAddr;

use engine::auth::{Authenticated, Certificate, Origin, Peer, Protocol};
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
    let who = is_known.then(|| proved(engine, shown)).flatten()?;
    Some(let_in(engine, shown, &who, out))
}

/// Whom a password proves its client to be: a millisecond's work, of which nobody takes note.
pub(crate) fn proved(engine: &Engine, shown: &Shown) -> Option<Authenticated> {
    let Shown { role, password, origin, certificate, .. } = shown;
    let certificate = certificate.as_ref();
    let peer = Peer { origin, protocol: Protocol::Memcached, database: None, certificate };
    engine.access.check_memcached(peer, role, password).ok()
}

/// The session of somebody whose password is right, and the answer.
fn let_in(engine: &Engine, shown: &Shown, who: &Authenticated, out: &mut Vec<u8>) -> Session {
    engine.access.forget_failures(shown.address);
    engine.access.note_password(true);
    succeed(shown.form, out);
    Session::of(who, &engine.access, shown.address, MEMCACHED)
}

/// Takes note of what became of a password, and appends the answer.
pub(crate) fn verdict(
    engine: &Engine,
    shown: &Shown,
    who: Option<Authenticated>,
    now: Tick,
    out: &mut Vec<u8>,
) -> Verdict {
    if let Some(who) = who {
        return Verdict { session: Some(let_in(engine, shown, &who, out)), wait_ms: 0 };
    }
    let Shown { role, form, address, .. } = shown;
    tracing::warn!(address = %Place(*address), role, "memcached client refused: authentication failure");
    engine.access.note_password(false);
    engine.access.note_failure(failed(Some(role), *address, MEMCACHED, "authentication failure"));
    fail(*form, out);
    Verdict { session: None, wait_ms: engine.access.count_failure(*address, milliseconds(now)) }
}
