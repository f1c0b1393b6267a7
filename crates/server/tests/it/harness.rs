//! A server with a clock that the test holds, and a client that speaks bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use engine::testing::{Clock, ManualClock, Store, StoreOptions};
use engine::{Engine, EngineOptions};
use server::{Config, Server};

/// A reply that takes longer does not come; nothing here waits for time.
const PATIENCE: Duration = Duration::from_secs(20);

/// The wall-clock time at which a test begins.
pub(crate) const UNIX_SECONDS: u64 = 1_800_000_000;

/// The seed of a random test: `SEED`, or a new one. It is printed, so that a failure can be replayed.
#[allow(clippy::print_stdout, reason = "a failure shows what its test printed")]
pub(crate) fn seed() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the environment says which run to replay")]
    let given = std::env::var("SEED");
    let given = given.ok().map(|seed| seed.parse().expect("SEED is a number"));
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("SEED={seed}");
    seed
}

/// A running server and its hands.
pub(crate) struct Daemon {
    pub(crate) server: Server,
    pub(crate) engine: Arc<Engine>,
    pub(crate) clock: Arc<ManualClock>,
}

pub(crate) fn config() -> Config {
    Config {
        listen_addresses: vec!["127.0.0.1:0".parse().unwrap()],
        threads: 2,
        cleaner: false,
        ..Config::default()
    }
}

pub(crate) fn daemon() -> Daemon {
    daemon_with(&config())
}

pub(crate) fn daemon_with(config: &Config) -> Daemon {
    let clock = ManualClock::new(UNIX_SECONDS);
    // Time 0 is the arena's epoch; a little later nothing is at a boundary by chance.
    clock.advance(Duration::from_secs(5));
    let opened = Store::open(&StoreOptions {
        path: None,
        memory_bytes: 64 << 20,
        cold: true,
        clock: Clock::Manual(Arc::clone(&clock)),
        row_bytes_max: 4 << 20,
    });
    let engine = Engine::new(opened.unwrap().store, EngineOptions::default());
    let server = Server::start(config, Arc::clone(&engine), Arc::default(), None).unwrap();
    Daemon { server, engine, clock }
}

impl Daemon {
    pub(crate) fn address(&self) -> SocketAddr {
        self.server.addresses()[0]
    }

    pub(crate) fn connect(&self) -> Client<TcpStream> {
        Client::tcp(self.address())
    }

    /// Moves the clock and lets the store work, as the cleaner would.
    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
        self.engine.tick();
    }
}

/// A client over any stream.
pub(crate) struct Client<S> {
    pub(crate) stream: S,
}

impl Client<TcpStream> {
    pub(crate) fn tcp(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream }
    }
}

impl<S: Read + Write> Client<S> {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Reads exactly what is expected.
    pub(crate) fn expect(&mut self, expected: &[u8]) {
        let mut reply = vec![0; expected.len()];
        let mut filled = 0;
        while filled < reply.len() {
            match self.stream.read(&mut reply[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    panic!("{error}: so far {:?}, expected {:?}", shown(&reply[..filled]), shown(expected))
                }
            }
        }
        assert_eq!(shown(&reply[..filled]), shown(expected));
    }

    /// Sends and expects; nothing more may come, which a command with a known answer proves.
    pub(crate) fn ask(&mut self, request: &[u8], expected: &[u8]) {
        self.send(request);
        self.send(b"mn\r\n");
        self.expect(&[expected, b"MN\r\n"].concat());
    }

    /// Reads up to the end of a line.
    pub(crate) fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while !line.ends_with(b"\r\n") {
            match self.stream.read(&mut byte) {
                Ok(1) => line.push(byte[0]),
                other => panic!("{other:?} after {:?}", shown(&line)),
            }
        }
        String::from_utf8(line).unwrap().trim_end().to_owned()
    }

    /// Reads up to these bytes, which are the last of an answer.
    pub(crate) fn until(&mut self, last: &[u8]) -> Vec<u8> {
        let (mut found, mut buffer) = (Vec::new(), [0; 4_096]);
        while !found.windows(last.len()).any(|part| part == last) {
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the connection was closed after {:?}", shown(&found));
            found.extend_from_slice(&buffer[..count]);
        }
        found
    }

    /// Reads until the server closes.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("{error}: so far {:?}", shown(&rest)),
        }
        rest
    }
}

fn shown(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(2_000)];
    cut.escape_ascii().to_string()
}
