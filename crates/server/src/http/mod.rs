//! The HTTP listener: metrics, health, statements, and a page that shows them.
//!
//! ```text
//!   thread "http": one runtime with one thread --> accept --> one task a connection --> guard --> route --> answer
//! ```
//!
//! It is a room of the server and no crate of its own: it needs the server's listeners, switches and SQL threads, and
//! what is left beside these is small. HTTP itself is hyper's. All connections share one thread, which never waits for
//! a statement or for a lock that is held for long. So a scrape delays no memcached client, and 64 connections that do
//! nothing cost nothing.

mod access;
mod answer;
mod assets;
mod exposition;
mod guard;
mod memcached_names;
mod places;
mod routes;
mod statement;

use std::cell::Cell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::thread::JoinHandle;

use engine::ThreadContext;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::task::LocalSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use assets::Assets;
use places::{Own, Place, Places};

use crate::limits::{ACCEPT_REST, HTTP_HEAD_BYTES_MAX, HTTP_HEADERS_MAX, HTTP_PATIENCE, HTTP_STATEMENTS_MAX};
use crate::listen::Listener;
use crate::shared::Shared;
use crate::sql_threads::Statements;

/// What a peer reads who came when all places were taken.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n\
    Connection: close\r\nContent-Length: 21\r\n\r\ntoo many connections\n";

/// A running listener.
#[derive(Debug)]
pub(crate) struct HttpListener {
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl HttpListener {
    /// Serves on a thread of its own. `names`: what the server is called beside its addresses.
    pub(crate) fn start(
        listeners: Vec<Listener>,
        shared: Arc<Shared>,
        statements: Statements,
        names: Vec<String>,
    ) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let sockets = listeners.into_iter().map(Listener::into_socket).collect::<io::Result<Vec<_>>>()?;
        let thread = crate::crew::spawn("http".into(), move || {
            let context = shared.engine.context();
            let door = Door {
                shared,
                names,
                statements,
                statement_places: Rc::new(Cell::new(HTTP_STATEMENTS_MAX)),
                assets: Assets::new(),
                context: context.into(),
            };
            serve(&runtime, sockets, door, &stopped);
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Stops, whatever is under way.
    pub(crate) fn end(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            crate::crew::join(thread);
        }
    }
}

/// What all connections share.
struct Door {
    shared: Arc<Shared>,
    names: Vec<String>,
    statements: Statements,
    /// For statements that run at once.
    statement_places: Rc<Cell<usize>>,
    assets: Assets,
    /// Lent for a command that needs one, and never across a wait.
    context: std::cell::RefCell<ThreadContext>,
}

fn serve(runtime: &Runtime, sockets: Vec<std::net::TcpListener>, door: Door, stop: &Notify) {
    let (door, places) = (Rc::new(door), Rc::new(Places::default()));
    LocalSet::new().block_on(runtime, async {
        for socket in sockets {
            match TcpListener::from_std(socket) {
                Ok(listener) => {
                    let (door, places) = (Rc::clone(&door), Rc::clone(&places));
                    tokio::task::spawn_local(accept(listener, door, places));
                }
                Err(error) => tracing::error!(%error, "the HTTP listener cannot wait for connections"),
            }
        }
        stop.notified().await;
    });
}

async fn accept(listener: TcpListener, door: Rc<Door>, places: Rc<Places>) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => match Place::take(&places, tokio::time::Instant::now()) {
                Some(place) => {
                    tokio::task::spawn_local(converse(stream, peer, Rc::clone(&door), place));
                }
                // What the socket does not take at once is not said.
                None => drop(stream.try_write(BUSY)),
            },
            Err(error) => {
                tracing::warn!(%error, "the HTTP listener cannot accept a connection");
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
struct From {
    address: IpAddr,
    /// It came by TLS.
    is_encrypted: bool,
}

/// Serves one connection to its end. A peer that does not send its head, or does not take its answer, is closed; and
/// one that does nothing, where another needs its place.
async fn converse(stream: TcpStream, peer: SocketAddr, door: Rc<Door>, place: Place) {
    let patience = u32::try_from(HTTP_PATIENCE.as_millis()).unwrap_or(u32::MAX);
    let (delay, slow) = (
        sockopt::set_tcp_nodelay(stream.as_fd(), true),
        sockopt::set_tcp_user_timeout(stream.as_fd(), patience),
    );
    if let Err(error) = delay.and(slow) {
        tracing::debug!(%error, "a socket option of an HTTP connection was refused");
    }
    let address: IpAddr = peer.ip().to_canonical();
    let mut served = pin!(choose(stream, address, door, Rc::clone(place.own())));
    let mut leave = pin!(place.own().leaves());
    let ended = poll_fn(|context| match leave.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(Ok(())),
        Poll::Pending => served.as_mut().poll(context),
    });
    if let Err(error) = ended.await {
        tracing::debug!(%address, error, "an HTTP connection ended early");
    }
}

/// The first byte of a client that begins with TLS. No request of HTTP begins with it.
const HANDSHAKE: u8 = 22;

/// Serves by TLS whom begins with it, where the server has a certificate. The rules say who must.
async fn choose(stream: TcpStream, address: IpAddr, door: Rc<Door>, own: Rc<Own>) -> Result<(), String> {
    let mut first = [0];
    let peeked = timeout(HTTP_PATIENCE, stream.peek(&mut first)).await;
    peeked.map_err(|_| "it sends nothing")?.map_err(|error| error.to_string())?;
    let encryption = door.shared.encryption().filter(|_| first[0] == HANDSHAKE);
    let from = From { address, is_encrypted: encryption.is_some() };
    let Some(encryption) = encryption else { return speak(stream, from, door, own).await };
    let agreed = timeout(HTTP_PATIENCE, TlsAcceptor::from(encryption.for_http()).accept(stream)).await;
    let stream = agreed.map_err(|_| "it does not agree on keys")?.map_err(|error| error.to_string())?;
    speak(stream, from, door, own).await
}

/// Answers requests.
async fn speak<S: AsyncRead + AsyncWrite + Unpin + 'static>(
    stream: S,
    from: From,
    door: Rc<Door>,
    own: Rc<Own>,
) -> Result<(), String> {
    let service = service_fn(move |request| {
        let (door, own) = (Rc::clone(&door), Rc::clone(&own));
        async move {
            own.begin();
            let answer = routes::answer(&door, request, from).await;
            own.end(tokio::time::Instant::now());
            Ok::<_, Infallible>(answer)
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HTTP_PATIENCE)
        .max_buf_size(HTTP_HEAD_BYTES_MAX)
        .max_headers(HTTP_HEADERS_MAX);
    http.serve_connection(TokioIo::new(stream), service).await.map_err(|error| error.to_string())
}
