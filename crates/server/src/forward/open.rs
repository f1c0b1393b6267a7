//! How a forwarded session begins.

use std::sync::Arc;

use engine::{Engine, SqlSession, Tick};
use forward::{Answers, Start, definition_of, keeps_answers};
use postgres::backend::{self, Status};
use store::definition::{ServerDef, Wrapper};

use super::Forwarder;
use super::session::Forwarded;
use crate::cancels::{Canceller, Cancels, Target};
use crate::fatal::fatal;
use crate::shared::Permit;
use crate::socket::Socket;

/// A client that was let in, and wants a session at a server.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) socket: Socket,
    /// What it has sent already of its session.
    pub(crate) input: Vec<u8>,
    pub(crate) cancels: Arc<Cancels>,
    pub(crate) permit: Permit,
    /// Who it is here.
    pub(crate) session: SqlSession,
    /// Whether it takes a long secret for requests to cancel.
    pub(crate) long_secret: bool,
    pub(crate) start: Start,
    /// What it hears first.
    pub(crate) out: Vec<u8>,
    pub(crate) now: Tick,
}

impl Request {
    /// Ends it with an error.
    pub(crate) fn refuse(mut self, state: &str, message: &str) {
        fatal(state, message, &mut self.out);
        self.socket.deliver(&mut self.out, self.now);
    }
}

/// The foreign server that a database names, if it can be spoken to as a client speaks.
pub(crate) fn server_of(engine: &Engine, database: &str) -> Option<Arc<ServerDef>> {
    let catalog = engine.store().catalog();
    let server =
        catalog.server(database).filter(|server| server.wrapper == Wrapper::Postgres && !server.is_bus())?;
    Some(Arc::clone(server))
}

/// Connects to the source; none: the client was told why not.
pub(super) fn open(forwarder: &Forwarder, request: Request) -> Option<Forwarded> {
    let server = Arc::clone(&request.start.server);
    let hub = keeps_answers(&server).then(|| forwarder.forwards.hub(&server.name));
    if hub.is_some() {
        define_answers(&forwarder.shared.engine, &server.name);
    }
    let opened = forwarder
        .forwards
        .gateway(&server.name)
        .and_then(|gateway| gateway.open(&request.start, hub.as_ref()));
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let hint = error.hint.as_deref().map_or(String::new(), |hint| format!(" ({hint})"));
            request.refuse(error.state, &format!("server \"{}\": {}{hint}", server.name, error.message));
            return None;
        }
    };
    let target = Arc::new(Target { server, secret: opened.secret });
    let Request { mut socket, input, cancels, permit, session, long_secret, mut out, now, .. } = request;
    let key = cancels.admit(Canceller::Source(Arc::clone(&target)), long_secret).ok()?;
    backend::authentication_ok(&mut out);
    out.extend_from_slice(&opened.greeting);
    backend::backend_key(key.process, &key.secret, &mut out);
    backend::ready(Status::Idle, &mut out);
    socket.deliver(&mut out, now);
    let mut source = Socket::new(opened.socket);
    if let Some(tls) = opened.tls {
        source.speak_tls(*tls);
    }
    let forwarded = forward::Session::new(hub, opened.identity);
    let places = (Arc::clone(&forwarder.shared), cancels);
    Some(Forwarded::new(socket, source, forwarded, (places, permit, session, key, target), input, now))
}

/// Makes the table of a server's answers, where there is none.
fn define_answers(engine: &Arc<Engine>, server: &str) {
    let name = format!("{server}_answers");
    if engine.store().catalog().table(&name).is_some() {
        return;
    }
    let made = Answers::new(engine).define(&definition_of(server));
    if let Err(error) = made {
        tracing::warn!(server, "answers are not kept, for they have no table: {}", error.message);
    }
}
