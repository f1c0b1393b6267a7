//! A memcached client before it is known who it is: it agrees on keys where the connection is encrypted, and proves its
//! role where the rules ask for that.
//!
//! A password that was right before is known here. Another one is checked elsewhere (`proofs`), for that takes a
//! millisecond, which no worker has. The answer to a wrong one waits, longer each time, and so does the connection.

use std::ops::ControlFlow;
use std::sync::Arc;

use engine::Session;
use engine::auth::{Peer, Protocol as Door};
use memcache::login::{self, Form, Login};
use memcache::{Then, binary};

use crate::accept::REFUSED;
use crate::connection::{Connection, Protocol};
use crate::dialogue::{RequestLoop, Run};
use crate::origin::{MEMCACHED, Place, address_of, failed};
use crate::password::{Shown, fail, welcome};
use crate::proofs::Proof;
use crate::stranger::Stranger;

impl RequestLoop {
    /// Whether a connection that agrees on keys has its turn later, because others had theirs in this round.
    #[cold]
    pub(crate) fn must_wait(&mut self, connection: &Connection) -> bool {
        if !connection.readable || !connection.socket.is_handshaking() {
            return false;
        }
        let waits = self.handshakes == 0;
        self.handshakes = self.handshakes.saturating_sub(1);
        waits
    }

    /// Asks the rules about a peer whose keys are agreed on.
    fn rule(&mut self, connection: &mut Connection) {
        let (origin, certificate) = (connection.socket.origin(), connection.socket.certificate());
        let access = &self.shared.engine.access;
        let peer = Peer {
            origin: &origin,
            protocol: Door::Memcached,
            database: None,
            certificate: certificate.as_ref(),
        };
        connection.ruled = true;
        match access.current().admit_nameless(peer) {
            None => {}
            Some(Ok(who)) => {
                let address = address_of(&connection.socket);
                connection.let_in(Session::of(&who, access, address, MEMCACHED));
            }
            Some(Err(_)) => {
                let address = address_of(&connection.socket);
                tracing::warn!(address = %Place(address), "memcached client refused by the rules");
                access.note_failure(failed(None, address, MEMCACHED, "refused by the rules"));
                self.out.extend_from_slice(REFUSED);
                connection.closing = true;
            }
        }
    }

    /// Says in the log why a connection could not be encrypted.
    fn mention_failure(&self, connection: &Connection) {
        let Some(failure) = connection.socket.tls().and_then(|tls| tls.failure.as_ref()) else { return };
        if matches!(failure, rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) {
            self.shared.strangers.mention(Stranger::Plain, self.context.now());
        } else {
            let address = Place(address_of(&connection.socket));
            tracing::warn!(%address, "memcached client refused: TLS: {failure}");
        }
    }

    /// Reads what a peer says of whom nothing is known.
    #[cold]
    pub(crate) fn run_login(&mut self, connection: &mut Connection, input: &[u8]) -> Run {
        if connection.socket.broken {
            self.mention_failure(connection);
        } else if !connection.ruled && !connection.socket.is_handshaking() {
            self.rule(connection);
            if !connection.session.is_stranger() {
                return self.run(connection, input);
            }
        }
        self.read_login(connection, input)
    }

    /// Reads what a peer says that has not proved its role.
    fn read_login(&mut self, connection: &mut Connection, input: &[u8]) -> Run {
        let mut run = Run { end: input.len(), ..Run::default() };
        connection.stalled = false;
        connection.needed = 0;
        let protocol = connection.protocol(input);
        while run.consumed < input.len() && !connection.closing {
            let rest = &input[run.consumed..];
            let said = match protocol {
                Protocol::Text => login::text(rest),
                Protocol::Binary => login::frame(rest),
            };
            let then = match said {
                Login::Incomplete => {
                    run.waits_for_peer = true;
                    break;
                }
                Login::Nothing => Then::Close,
                Login::Refused { consumed, answer, then } => {
                    run.consumed += consumed;
                    self.out.extend_from_slice(answer.as_bytes());
                    then
                }
                Login::RefusedFrame { consumed, id, status, then } => {
                    run.consumed += consumed;
                    id.refuse(status, &mut self.out);
                    then
                }
                Login::Mechanisms { consumed, id } => {
                    run.consumed += consumed;
                    self.offer(connection, id);
                    Then::Continue
                }
                Login::Begin { consumed, id, mechanism, message } => {
                    run.consumed += consumed;
                    self.begin_exchange(connection, id, mechanism, message);
                    Then::Continue
                }
                Login::Step { consumed, id, message } => {
                    run.consumed += consumed;
                    if self.step_exchange(connection, id, message).is_break() {
                        run.progress = true;
                        connection.stalled = run.consumed < input.len();
                        break;
                    }
                    Then::Continue
                }
                Login::Version { consumed, id } => {
                    run.consumed += consumed;
                    let value = connection.session.version().as_bytes();
                    id.answer(&binary::Answer { value, ..binary::Answer::default() }, &mut self.out);
                    Then::Continue
                }
                Login::Password { consumed, user, password, form } => {
                    run.consumed += consumed;
                    run.progress = true;
                    connection.sasl = None;
                    if self.check(connection, user, password, form).is_continue() {
                        connection.stalled = run.consumed < input.len();
                        break;
                    }
                    Then::Close
                }
            };
            connection.closing |= then == Then::Close;
        }
        self.whole = self.out.len();
        run
    }

    /// Lets in who shows a password that is known, and hands another one over to be checked; `Break`: there is no
    /// room, and the peer was told.
    fn check(
        &mut self,
        connection: &mut Connection,
        user: &[u8],
        password: &[u8],
        form: Form,
    ) -> ControlFlow<()> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let address = address_of(&connection.socket);
        let (origin, certificate) = (connection.socket.origin(), connection.socket.certificate());
        let work = Shown { role: text(user), password: text(password), form, address, origin, certificate };
        if let Some(session) = welcome(&self.shared.engine, &work, &mut self.out) {
            connection.let_in(session);
            return ControlFlow::Continue(());
        }
        let proof = Proof::of_memcached(connection.address, Arc::clone(&self.mailbox), work);
        match self.proofs.submit(proof) {
            ControlFlow::Continue(cancel) => {
                connection.statement = Some(cancel);
                ControlFlow::Continue(())
            }
            ControlFlow::Break(()) => {
                fail(form, &mut self.out);
                ControlFlow::Break(())
            }
        }
    }
}
