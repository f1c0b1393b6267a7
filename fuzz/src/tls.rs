//! What must hold for the records of TLS that reach a running server: whatever is changed on their way, a request is
//! executed as it was sent or not at all, and another connection still works.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::testing::{Clock, Store, StoreOptions};
use engine::{Counter, Engine, EngineOptions};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use server::{ClientCertificates, Config, Server, TlsMaterial};

/// A reply that takes longer does not come.
const PATIENCE: Duration = Duration::from_secs(30);

/// What each client hears.
const ANSWER: &[u8] = b"STORED\r\nEND\r\n";

/// Connections that may be open after an input: the healthy one, and those whose end is being noticed.
const CONNECTIONS_MAX: usize = 4;

/// A running server, and a healthy connection to it.
#[derive(Debug)]
pub struct Daemon {
    healthy: rustls::StreamOwned<ClientConnection, TcpStream>,
    engine: Arc<Engine>,
    server: Server,
    trusting: Arc<ClientConfig>,
    /// What each client sends within TLS.
    request: Vec<u8>,
}

impl Daemon {
    pub fn new() -> Self {
        Self::asked_for("absent")
    }

    /// One whose clients ask for this key, which nobody stores.
    pub fn asked_for(key: &str) -> Self {
        let request = format!("set sent 0 0 5\r\nwhole\r\nget {key}\r\n").into_bytes();
        let options = StoreOptions {
            path: None,
            memory_bytes: 32 << 20,
            cold: true,
            clock: Clock::System,
            row_bytes_max: 4 << 20,
        };
        let store = Store::open(&options).expect("a store in memory").store;
        let engine = Engine::new(store, EngineOptions::default());
        let key = rcgen::KeyPair::generate().expect("a key");
        let names = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("a name");
        let own = names.self_signed(&key).expect("a certificate");
        let config = Config {
            listen_addresses: vec!["127.0.0.1:0".parse().expect("an address")],
            tls: Some(TlsMaterial {
                certificates: own.pem().into_bytes(),
                key: key.serialize_pem().into_bytes(),
                authorities: None,
                revoked: None,
                only_1_3: false,
                clients: ClientCertificates::Ignored,
            }),
            threads: 1,
            sql_threads: 1,
            ..Config::default()
        };
        let server = Server::start(&config, Arc::clone(&engine), Arc::default(), None).expect("a server");
        let trusting = trusting(own.der());
        let stream = connect(server.addresses()[0]);
        let healthy = rustls::StreamOwned::new(session(&trusting), stream);
        Self { healthy, engine, server, trusting, request }
    }

    /// Sends what a client sends, with the edits of one input, and judges what came of it.
    pub fn check(&mut self, data: &[u8]) {
        let mut edits = Edits(data);
        let mut peer = connect(self.server.addresses()[0]);
        let mut client = session(&self.trusting);
        let mut heard = Vec::new();
        let mut sent = false;
        while heard.len() < ANSWER.len() {
            if !client.is_handshaking() && !sent {
                client.writer().write_all(&self.request).expect("it is buffered");
                sent = true;
            }
            let mut wire = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut wire).expect("it is copied");
            }
            if !edits.send(&wire, &mut peer) || !take(&mut client, &mut peer, &mut heard) {
                break;
            }
        }
        assert!(ANSWER.starts_with(&heard), "the client hears {}", heard.escape_ascii());
        drop(peer);
        self.check_health();
    }

    fn check_health(&mut self) {
        let question = b"get sent\r\nmn\r\n";
        self.healthy.write_all(question).expect("the healthy connection is open");
        let mut answer = Vec::new();
        while !answer.ends_with(b"MN\r\n") {
            let mut byte = [0];
            self.healthy.read_exact(&mut byte).expect("the healthy connection is answered");
            answer.push(byte[0]);
        }
        let whole = answer == b"VALUE sent 0 5\r\nwhole\r\nEND\r\nMN\r\n" || answer == b"END\r\nMN\r\n";
        assert!(whole, "what was stored was not sent: {}", answer.escape_ascii());
        assert_eq!(self.engine.totals().of(Counter::Panics), 0, "a command panicked");
        // Relaxed: a number to look at.
        let connections = self.engine.connections.load(Ordering::Relaxed);
        assert!(connections <= CONNECTIONS_MAX, "{connections} connections are left");
    }
}

fn trusting(own: &CertificateDer<'static>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(own.clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Arc::new(builder.expect("versions").with_root_certificates(roots).with_no_client_auth())
}

fn session(trusting: &Arc<ClientConfig>) -> ClientConnection {
    ClientConnection::new(Arc::clone(trusting), "localhost".try_into().expect("a name")).expect("a session")
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server accepts");
    stream.set_nodelay(true).expect("an option");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Reads what the server says; false when it says nothing any more that this client understands.
fn take(client: &mut ClientConnection, peer: &mut TcpStream, heard: &mut Vec<u8>) -> bool {
    match client.read_tls(peer) {
        Ok(count) if count > 0 => {}
        Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("the server is silent"),
        _ => return false,
    }
    if client.process_new_packets().is_err() {
        return false;
    }
    let mut piece = [0; 256];
    while let Ok(count @ 1..) = client.reader().read(&mut piece) {
        heard.extend_from_slice(&piece[..count]);
    }
    true
}

/// What an input changes, four bytes each: which bytes of the client's are lost, doubled, flipped or inserted.
struct Edits<'d>(&'d [u8]);

impl Edits<'_> {
    /// Sends bytes with the next edit; false when they were changed, and the client will send nothing more.
    fn send(&mut self, wire: &[u8], peer: &mut TcpStream) -> bool {
        let Some((&[kind, high, low, byte], rest)) = self.0.split_first_chunk().filter(|_| !wire.is_empty())
        else {
            return peer.write_all(wire).is_ok();
        };
        self.0 = rest;
        let at = usize::from(u16::from_be_bytes([high, low])) % wire.len();
        let mut changed = wire.to_vec();
        match kind % 6 {
            // In two pieces, which changes nothing.
            0 | 1 => {
                return peer.write_all(&wire[..at]).is_ok() && peer.write_all(&wire[at..]).is_ok();
            }
            2 => changed[at] ^= byte.max(1),
            3 => changed.truncate(at),
            4 => changed.insert(at, byte),
            _ => changed.extend_from_slice(&wire[at..]),
        }
        let _closed = peer.write_all(&changed);
        let _closed = peer.shutdown(Shutdown::Write);
        // Whatever it says to that, it ends.
        let _reset = peer.read_to_end(&mut Vec::new());
        false
    }
}
