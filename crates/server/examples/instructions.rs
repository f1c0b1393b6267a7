//! A fixed number of memcached requests, parsed, executed and answered without a socket, for counting their
//! instructions: `cargo xtask ci callgrind` runs it under valgrind. Arguments: `get`, `set`, or with `binary-` before
//! them the same in the binary protocol, and how many.

#![allow(clippy::unwrap_used, reason = "a count of something that failed would be worse than none")]

use engine::testing::{Clock, ManualClock, Store, StoreOptions};
use engine::{
    Answer, Engine, EngineOptions, ItemMeta, ItemSink, MetaDone, MetaSet, Session, ThreadContext, Verb,
};
use memcache::compose::{value_end, value_header};
use memcache::{Limits, Parsed, Parser, Reply, Request, binary, compose};

/// Keys in play: few enough to fit every cache, for instructions are counted and not time.
const KEYS: usize = 1_000;
/// Bytes of each value.
const VALUE_BYTES: usize = 100;
/// Requests whose answers are thrown away at once.
const TURN: usize = 64;

/// Takes values in as the server does.
struct Sink<'o> {
    out: &'o mut Vec<u8>,
    key: &'o [u8],
}

impl ItemSink for Sink<'_> {
    fn open(&mut self, meta: &ItemMeta) -> &mut Vec<u8> {
        value_header(self.key, meta.client_flags, meta.len, None, self.out);
        self.out
    }
    fn close(&mut self) {
        value_end(self.out);
    }
    fn discard(&mut self) {
        self.out.clear();
    }
}

/// The same for frames.
struct Frames<'o> {
    out: &'o mut Vec<u8>,
    id: binary::Id,
}

impl ItemSink for Frames<'_> {
    fn open(&mut self, meta: &ItemMeta) -> &mut Vec<u8> {
        self.id.found(b"", meta.client_flags, meta.len, meta.cas, self.out);
        self.out
    }
    fn close(&mut self) {}
    fn discard(&mut self) {
        self.out.clear();
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(verb), Some(count)) = (arguments.next(), arguments.next()) else {
        panic!("usage: instructions get|set|binary-get|binary-set count");
    };
    let count: usize = count.parse().unwrap();
    let options = StoreOptions {
        path: None,
        memory_bytes: 64 << 20,
        cold: true,
        clock: Clock::Manual(ManualClock::new(1_800_000_000)),
        row_bytes_max: 2 << 20,
    };
    let engine = Engine::new(Store::open(&options).unwrap().store, EngineOptions::default());
    let (mut context, parser, mut out) = (engine.context(), Parser::default(), Vec::with_capacity(1 << 20));
    let sets: Vec<Vec<u8>> = (0..KEYS).map(set).collect();
    let gets: Vec<Vec<u8>> =
        (0..KEYS).map(|number| format!("get key:{number:06}\r\n").into_bytes()).collect();
    for request in &sets {
        serve(&parser, &mut context, request, &mut out);
    }
    if let Some(verb) = verb.strip_prefix("binary-") {
        return count_binary(&mut context, verb, count, &mut out);
    }
    let requests = if verb == "get" { &gets } else { &sets };
    for (number, request) in requests.iter().cycle().take(count).enumerate() {
        serve(&parser, &mut context, request, &mut out);
        if number % TURN == 0 {
            assert!(out.ends_with(if verb == "get" { b"END\r\n" } else { b"STORED\r\n" }));
            out.clear();
            context.begin_batch();
        }
    }
}

fn set(number: usize) -> Vec<u8> {
    let mut request = format!("set key:{number:06} 0 0 {VALUE_BYTES}\r\n").into_bytes();
    request.extend_from_slice(&[b'x'; VALUE_BYTES]);
    request.extend_from_slice(b"\r\n");
    request
}

/// Serves so many requests of the binary protocol.
fn count_binary(context: &mut ThreadContext, verb: &str, count: usize, out: &mut Vec<u8>) {
    let (opcode, extras, value): (_, &[u8], &[u8]) =
        if verb == "get" { (0x00, b"", b"") } else { (0x01, &[0; 8], &[b'x'; VALUE_BYTES]) };
    let request = |number| {
        let key = format!("key:{number:06}");
        let body = u8::try_from(extras.len() + key.len() + value.len()).unwrap();
        let mut frame = vec![binary::MAGIC, opcode, 0, u8::try_from(key.len()).unwrap()];
        frame.extend([u8::try_from(extras.len()).unwrap(), 0, 0, 0, 0, 0, 0, body]);
        frame.extend([0; 12]);
        [&frame[..], extras, key.as_bytes(), value].concat()
    };
    let requests: Vec<Vec<u8>> = (0..KEYS).map(request).collect();
    let (session, limits) = (Session::local(), Limits::default());
    for (number, bytes) in requests.iter().cycle().take(count).enumerate() {
        let binary::Parsed::Complete { request, .. } = binary::parse(&limits, bytes) else {
            panic!("no frame")
        };
        let binary::Request { id, key, value, .. } = request;
        if let binary::Command::Get { .. } = request.command {
            assert!(session.get(context, key, &mut Frames { out, id }).unwrap());
        } else {
            let done = session.put(context, key, &MetaSet::default(), value);
            let Ok(MetaDone::Done(made)) = done else { panic!("{done:?}") };
            id.answer(&binary::Answer { cas: made.cas, ..binary::Answer::default() }, out);
        }
        if number % TURN == 0 {
            out.clear();
            context.begin_batch();
        }
    }
}

fn serve(parser: &Parser, context: &mut ThreadContext, bytes: &[u8], out: &mut Vec<u8>) {
    let session = Session::local();
    let Parsed::Complete { request, .. } = parser.parse(bytes) else { panic!("not a request") };
    match request {
        Request::Get { keys, .. } => {
            for key in keys {
                assert!(session.get(context, key, &mut Sink { out, key }).unwrap());
            }
            compose(&Reply::End, out);
        }
        Request::Store { key, flags, exptime, value, .. } => {
            assert_eq!(session.store(context, Verb::Set, key, flags, exptime, value), Answer::Stored);
            compose(&Reply::Stored, out);
        }
        other => panic!("{other:?}"),
    }
}
