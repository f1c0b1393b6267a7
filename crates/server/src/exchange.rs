//! SASL in several steps over memcached's binary protocol: SCRAM, by which a client proves a password without showing
//! it. Each step takes some microseconds, so a worker has them.

use std::ops::ControlFlow;

use engine::auth::scram::{SCRAM, SCRAM_PLUS};
use engine::auth::{Peer, Protocol, Proving};
use engine::{Cancel, Session};
use memcache::binary::{Answer, Id, Status};
use memcache::login::PLAIN;

use crate::connection::{Connection, HeldAnswer, Sasl};
use crate::dialogue::RequestLoop;
use crate::origin::{MEMCACHED, Place, address_of, failed};
use crate::pace::{milliseconds, wait_ticks};

impl RequestLoop {
    /// Says which mechanisms there are, the best one first.
    pub(crate) fn offer(&mut self, connection: &Connection, id: Id) {
        let bound = connection.socket.tls().and_then(|tls| tls.end_point()).is_some();
        let first = if bound { &[SCRAM_PLUS][..] } else { &[] };
        let all = [first, &[SCRAM, PLAIN]].concat().join(" ");
        id.answer(&Answer { value: all.as_bytes(), ..Answer::default() }, &mut self.out);
    }

    /// A client's first message.
    pub(crate) fn begin_exchange(
        &mut self,
        connection: &mut Connection,
        id: Id,
        mechanism: &[u8],
        message: &[u8],
    ) {
        let end_point = connection.socket.tls().and_then(|tls| tls.end_point());
        let mechanism = String::from_utf8_lossy(mechanism);
        let access = self.shared.engine.access.current();
        connection.sasl = None;
        if let Ok((proving, answer)) = access.begin_memcached_scram(&mechanism, message, end_point) {
            connection.sasl = Some(Box::new(Sasl::Asked(proving)));
            self.go_on(id, &answer);
        } else {
            id.refuse(Status::NotAllowed, &mut self.out);
        }
    }

    /// A client's next message; `Break`: it is let in, or its answer waits.
    pub(crate) fn step_exchange(
        &mut self,
        connection: &mut Connection,
        id: Id,
        message: &[u8],
    ) -> ControlFlow<()> {
        match connection.sasl.take().map(|sasl| *sasl) {
            Some(Sasl::Asked(proving)) => self.prove(connection, id, proving, message),
            Some(Sasl::Proved(who)) if message.is_empty() => {
                let access = &self.shared.engine.access;
                access.forget_failures(address_of(&connection.socket));
                access.note_password(true);
                connection.let_in(Session::of(&who, access, address_of(&connection.socket), MEMCACHED));
                id.answer(&Answer { value: b"Authenticated", ..Answer::default() }, &mut self.out);
                ControlFlow::Break(())
            }
            _ => {
                id.refuse(Status::NotAllowed, &mut self.out);
                ControlFlow::Continue(())
            }
        }
    }

    fn prove(
        &mut self,
        connection: &mut Connection,
        id: Id,
        proving: Proving,
        message: &[u8],
    ) -> ControlFlow<()> {
        let role = proving.role().to_owned();
        let (origin, certificate) = (connection.socket.origin(), connection.socket.certificate());
        let certificate = certificate.as_ref();
        let peer = Peer { origin: &origin, protocol: Protocol::Memcached, database: None, certificate };
        let access = self.shared.engine.access.current();
        if let Ok((answer, who)) = access.finish_memcached_scram(peer, proving, message) {
            connection.sasl = Some(Box::new(Sasl::Proved(who)));
            self.go_on(id, &answer);
            return ControlFlow::Continue(());
        }
        self.hold_refusal(connection, id, &role);
        ControlFlow::Break(())
    }

    fn go_on(&mut self, id: Id, answer: &str) {
        let (status, value) = (Status::Continue, answer.as_bytes());
        id.answer(&Answer { status, value, ..Answer::default() }, &mut self.out);
    }

    /// A client with a wrong proof hears so later, and later each time. Nothing else is executed meanwhile.
    fn hold_refusal(&mut self, connection: &mut Connection, id: Id, role: &str) {
        let (address, since) = (address_of(&connection.socket), self.context.now());
        tracing::warn!(address = %Place(address), role, "memcached client refused: authentication failure");
        let access = &self.shared.engine.access;
        access.note_password(false);
        access.note_failure(failed(Some(role), address, MEMCACHED, "authentication failure"));
        let wait_ms = self.shared.engine.access.count_failure(address, milliseconds(since));
        let mut bytes = Vec::new();
        id.refuse(Status::NotAllowed, &mut bytes);
        let wait = wait_ticks(wait_ms);
        connection.hold_answer(HeldAnswer { bytes, since, wait });
        connection.statement = Some(Cancel::new());
    }
}
