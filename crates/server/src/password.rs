//! A password that a memcached client has shown: checked on a SQL thread, which has the millisecond that it takes.

use std::fmt;
use std::net::IpAddr;

use engine::auth::{Certificate, Origin, Peer, Protocol};
use engine::{Engine, Session, Tick};
use memcache::binary;
use memcache::login::{FAILURE, Form};

use crate::origin::{MEMCACHED, Place, failed};
use crate::pace::milliseconds;

/// A password to be checked.
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

/// What a SQL thread found out about a password.
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

/// Checks a password and appends the answer, on a SQL thread.
pub(crate) fn verdict(engine: &Engine, shown: &Shown, now: Tick, out: &mut Vec<u8>) -> Verdict {
    let Shown { role, password, form, address, origin, certificate } = shown;
    let certificate = certificate.as_ref();
    let peer = Peer { origin, protocol: Protocol::Memcached, database: None, certificate };
    if let Ok(who) = engine.access.check_memcached(peer, role, password) {
        engine.access.forget_failures(*address);
        engine.access.note_password(true);
        succeed(*form, out);
        let session = Session::of(&who, &engine.access, *address, MEMCACHED);
        return Verdict { session: Some(session), wait_ms: 0 };
    }
    tracing::warn!(address = %Place(*address), role, "memcached client refused: authentication failure");
    engine.access.note_password(false);
    engine.access.note_failure(failed(Some(role), *address, MEMCACHED, "authentication failure"));
    fail(*form, out);
    Verdict { session: None, wait_ms: engine.access.count_failure(*address, milliseconds(now)) }
}
