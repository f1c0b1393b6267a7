//! What must hold for every stream of bytes sent to a running server.
//!
//! The server is real, with its sockets and threads, and lives on from input to input as a server does. Each input
//! comes on a connection of its own; another connection, which only ever asks sensible things, must stay well.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use engine::testing::{Clock, Store, StoreOptions};
use engine::{Counter, Engine, EngineOptions};
use server::{Config, Server};

/// Makes a peer a watcher, who hears of events until it is gone, although it has said its last word.
const WATCH: &[u8] = b"watch";

/// So long such a peer is listened to.
const WATCHER_PATIENCE: Duration = Duration::from_millis(20);

/// A reply that takes longer does not come.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the healthy connection asks, and what it must hear: a command, a statement, another command.
const QUESTION: &[u8] = b"mn\r\nsql 8\r\nSELECT 1\r\nverbosity 1\r\n";
const ANSWER: &[u8] = b"MN\r\n{\"1\":1}\r\nEND\r\nOK\r\n";

/// Connections that may be open after an input: the healthy one, and those whose end is being noticed.
const CONNECTIONS_MAX: usize = 4;

/// A running server and a healthy connection to it.
#[derive(Debug)]
pub struct Daemon {
    // Dropped in this order: clients, server, folder.
    healthy: UnixStream,
    engine: Arc<Engine>,
    _server: Server,
    folder: Folder,
}

/// A folder that goes with its content.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // Relaxed: it only has to differ.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("sqlcached-fuzz-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the socket");
        Self(path)
    }

    fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.0);
    }
}

impl Daemon {
    pub fn new() -> Self {
        let folder = Folder::new();
        let options = StoreOptions {
            path: None,
            memory_bytes: 32 << 20,
            cold: true,
            clock: Clock::System,
            row_bytes_max: 4 << 20,
        };
        let store = Store::open(&options).expect("a store in memory").store;
        let engine = Engine::new(store, EngineOptions::default());
        let config = Config {
            unix_socket: Some(folder.socket()),
            threads: 1,
            sql_threads: 1,
            statement_timeout: Some(Duration::from_secs(1)),
            ..Config::default()
        };
        let server = Server::start(&config, Arc::clone(&engine), Arc::default(), None).expect("a server");
        let healthy = connect(&folder.socket());
        Self { healthy, engine, _server: server, folder }
    }

    /// Sends one input, reads to the end, and judges what came and how the server is.
    pub fn check(&mut self, data: &[u8]) {
        let Some((&choice, stream)) = data.split_first() else { return };
        let peer = connect(&self.folder.socket());
        if contains(stream, WATCH) {
            peer.set_read_timeout(Some(WATCHER_PATIENCE)).expect("a timeout");
        }
        send(&peer, stream, choice);
        let reply = read_to_end(&peer, stream);
        drop(peer);
        check_reply(stream, &reply);
        self.check_health();
    }

    fn check_health(&mut self) {
        self.healthy.write_all(QUESTION).expect("the healthy connection is open");
        let mut answer = vec![0; ANSWER.len()];
        self.healthy.read_exact(&mut answer).expect("the healthy connection is answered");
        assert!(answer == ANSWER, "the healthy connection hears {}", answer.escape_ascii());
        assert_eq!(self.engine.totals().of(Counter::Panics), 0, "a command panicked");
        // Relaxed: a number to look at.
        let connections = self.engine.connections.load(Ordering::Relaxed);
        assert!(connections <= CONNECTIONS_MAX, "{connections} connections are left");
    }
}

fn connect(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).expect("the server accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Sends the stream whole, or in pieces, or a half and then nothing. The server may close before it is done.
fn send(mut peer: &UnixStream, stream: &[u8], choice: u8) {
    let piece = match choice & 3 {
        0 | 1 => stream.len().max(1),
        2 => 1 + usize::from(choice >> 2),
        _ => 1,
    };
    for bytes in stream.chunks(piece) {
        match peer.write_all(bytes) {
            Ok(()) => {}
            Err(error) if is_closed(error.kind()) => return,
            Err(error) => panic!("{error}: the server does not read: {}", stream.escape_ascii()),
        }
    }
    let _closed = peer.shutdown(Shutdown::Write);
}

fn is_closed(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
}

fn read_to_end(mut peer: &UnixStream, stream: &[u8]) -> Vec<u8> {
    let mut reply = Vec::new();
    match peer.read_to_end(&mut reply) {
        Ok(_) => {}
        Err(error) if is_closed(error.kind()) => {}
        Err(error) if error.kind() == ErrorKind::WouldBlock && contains(stream, WATCH) => {}
        Err(error) => panic!("{error}: neither answered nor closed: {}", stream.escape_ascii()),
    }
    reply
}

fn check_reply(stream: &[u8], reply: &[u8]) {
    let shown = || format!("{} was answered {}", stream.escape_ascii(), reply.escape_ascii());
    if stream.first() == Some(&0x80) {
        assert!(are_frames(reply), "a frame without end: {}", shown());
        return;
    }
    assert!(reply.is_empty() || ends_a_line(reply), "a line without end: {}", shown());
    for sign in [&b"internal error"[..], b"ERROR XX"] {
        let ours = contains(reply, sign) && !contains(stream, sign);
        assert!(!ours, "a mistake of ours: {}", shown());
    }
}

/// Whether an answer is frames of the binary protocol, all of them whole.
fn are_frames(mut reply: &[u8]) -> bool {
    while let Some(head) = reply.first_chunk::<24>() {
        let body = u32::from_be_bytes([head[8], head[9], head[10], head[11]]) as usize;
        let Some(rest) = reply.get(24 + body..).filter(|_| head[0] == 0x81) else { return false };
        reply = rest;
    }
    reply.is_empty()
}

/// An answer ends with CR LF; a line for a watcher with LF alone, as memcached's log does.
fn ends_a_line(reply: &[u8]) -> bool {
    let Some(line) = reply.strip_suffix(b"\n") else { return false };
    let start = line.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    line.ends_with(b"\r") || line[start..].starts_with(b"ts=")
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// What a generated stream is made of, beside the words of a dictionary: requests that are whole.
pub const REQUESTS: &[&[u8]] = &[
    b"set k 1 0 2\r\n17\r\n",
    b"set k 1 0 2 noreply\r\nxx\r\n",
    b"add n 0 0 1\r\n5\r\n",
    b"append k 0 0 1\r\n8\r\n",
    b"cas k 0 0 1 1\r\nz\r\n",
    b"set frag:a 0 10 1\r\n1\r\n",
    b"get k n frag:a\r\n",
    b"gets k k k k\r\n",
    b"gat 100 k frag:a\r\n",
    b"incr k 18446744073709551615\r\n",
    b"decr k 1\r\n",
    b"touch k -1\r\n",
    b"delete k\r\n",
    b"flush_all\r\n",
    b"flush_all 1 noreply\r\n",
    b"stats\r\n",
    b"stats settings\r\n",
    b"stats items\r\n",
    b"stats conns\r\n",
    b"mn\r\n",
    b"version\r\n",
    b"sql 22\r\nSELECT * FROM memcached\r\n",
    b"sql 23\r\nSELECT * FROM memcached\r\n",
    b"sql 63\r\nCREATE TABLE frag (k TEXT PRIMARY KEY, v) WITH (prefix='frag:')\r\n",
    b"sql 15\r\nDROP TABLE frag\r\n",
    b"sql 28\r\nUPDATE memcached SET key = 1\r\n",
    b"sql 43\r\nINSERT INTO memcached VALUES ('k', '\xff\xfe'), 1\r\n",
    b"sqlp 47 12\r\nINSERT OR REPLACE INTO memcached VALUES ($1, 2)\r\n[\"from sql\"]\r\n",
    b"sqlp 37 5\r\nDELETE FROM memcached WHERE key <> $1\r\n[\"k\"]\r\n",
    b"sqlp 9 12\r\nSELECT $1\r\n[{\"base64\":1\r\n",
    b"sqlp 9 32\r\nSELECT $1\r\n[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\r\n",
    b"sql 45\r\nSELECT zeroblob(100000) FROM json_each('[1]')\r\n",
];

/// The same in the binary protocol.
pub const FRAMES: &[&[u8]] = &[
    b"\x80\x01\0\x01\x08\0\0\0\0\0\0\x0b\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0\0k17",
    b"\x80\x11\0\x01\x08\0\0\0\0\0\0\x0b\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0\0k17",
    b"\x80\x02\0\x01\x08\0\0\0\0\0\0\x0a\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0\x0an5",
    b"\x80\x00\0\x01\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\0k",
    b"\x80\x0d\0\x01\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\0k",
    b"\x80\x0e\0\x01\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0\0\0\0\0\0k8",
    b"\x80\x04\0\x01\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\0k",
    b"\x80\x05\0\x01\x14\0\0\0\0\0\0\x15\0\0\0\x01\0\0\0\0\0\0\0\0\
      \0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0n",
    b"\x80\x1c\0\x01\x04\0\0\0\0\0\0\x05\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x05k",
    b"\x80\x1d\0\x01\x04\0\0\0\0\0\0\x05\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x05k",
    b"\x80\x08\0\0\x04\0\0\0\0\0\0\x04\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01",
    b"\x80\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0",
    b"\x80\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0",
    b"\x80\x10\0\x05\0\0\0\0\0\0\0\x05\0\0\0\x01\0\0\0\0\0\0\0\0items",
    b"\x80\x21\0\x05\0\0\0\0\0\0\0\x09\0\0\0\x01\0\0\0\0\0\0\0\0PLAIN\0u\0p",
];
