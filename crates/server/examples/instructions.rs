//! A fixed number of requests, parsed, executed and answered without a socket, for counting their instructions:
//! `cargo xtask ci callgrind` runs it under valgrind. Arguments: what is asked, and how often. `get` and `set` are
//! memcached's, with `binary-` before them those of its binary protocol; `sql-select`, `sql-upsert` and `sql-delete`
//! are prepared statements, bound and executed; `sql-text` is the first with its value in the text, `sql-cold`
//! prepares a text that was not seen before.

#![allow(clippy::unwrap_used, reason = "a count of something that failed would be worse than none")]

use std::sync::Arc;

use engine::testing::{Clock, ManualClock, Store, StoreOptions};
use engine::{
    Answer, Cancel, ClientSink, ColumnDescription, CopyOptions, Engine, EngineOptions, Formats, ItemMeta,
    ItemSink, MetaDone, MetaSet, RowSink, Session, SqlError, SqlSession, SqlThreadContext, ThreadContext,
    Value, ValueRef, Verb,
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
        panic!(
            "usage: instructions get|set|binary-get|binary-set|sql-select|sql-text|sql-upsert|sql-delete|sql-cold count"
        );
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
    if let Some(verb) = verb.strip_prefix("sql-") {
        return count_sql(&engine, verb, count);
    }
    let (mut context, parser, mut out) = (engine.context(), Parser::default(), Vec::with_capacity(1 << 20));
    let session = Session::local();
    let sets: Vec<Vec<u8>> = (0..KEYS).map(set).collect();
    let gets: Vec<Vec<u8>> =
        (0..KEYS).map(|number| format!("get key:{number:06}\r\n").into_bytes()).collect();
    for request in &sets {
        serve(&parser, &session, &mut context, request, &mut out);
    }
    if let Some(verb) = verb.strip_prefix("binary-") {
        return count_binary(&mut context, verb, count, &mut out);
    }
    let requests = if verb == "get" { &gets } else { &sets };
    for (number, request) in requests.iter().cycle().take(count).enumerate() {
        serve(&parser, &session, &mut context, request, &mut out);
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

fn serve(parser: &Parser, session: &Session, context: &mut ThreadContext, bytes: &[u8], out: &mut Vec<u8>) {
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

/// Takes rows in and forgets them.
#[derive(Default)]
struct Rows(usize);

impl ClientSink for Rows {
    fn begin_copy(&mut self, _: &CopyOptions, _: &Cancel) {}
}

impl RowSink for Rows {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, _: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.0 += 1;
        Ok(())
    }
}

/// One client of the SQL listener.
struct SqlClient {
    context: SqlThreadContext,
    session: SqlSession,
}

impl SqlClient {
    fn prepare(&mut self, name: &str, text: &str) {
        self.session.parse(&mut self.context, name, text, std::iter::empty()).unwrap();
    }

    fn run(&mut self, name: &str, parameters: impl IntoIterator<Item = Value>) -> usize {
        let prepared = Arc::clone(self.session.prepared(name).unwrap());
        let mut values = self.session.recycled_values();
        values.extend(parameters);
        self.session.bind("", prepared, values, Formats::default()).unwrap();
        let mut rows = Rows::default();
        self.session.execute(&mut self.context, "", 0, false, &mut rows).unwrap();
        self.session.sync(&mut self.context).unwrap();
        rows.0
    }
}

/// Runs so many statements of one kind.
fn count_sql(engine: &Arc<Engine>, verb: &str, count: usize) {
    let mut session = SqlSession::local(Arc::clone(engine));
    session.set_wake(Box::new(|| {}));
    let mut client = SqlClient { context: SqlThreadContext::new(engine.context()), session };
    for text in ["CREATE TABLE t (k INT PRIMARY KEY, page INT, v TEXT)", "CREATE INDEX t_page ON t (page)"] {
        client.session.run_text(&mut client.context, text, true, &mut Rows::default()).unwrap();
    }
    client.prepare("insert", "INSERT INTO t (k, page, v) VALUES ($1, $2, 'a value of a row')");
    client.prepare("select", "SELECT page, v FROM t WHERE k = $1");
    let upsert =
        "INSERT INTO t (k, page, v) VALUES ($1, $1, $2) ON CONFLICT (k) DO UPDATE SET v = excluded.v";
    client.prepare("upsert", upsert);
    client.prepare("delete", "DELETE FROM t WHERE page = $1");
    let integer = |number: usize| Value::Integer(i64::try_from(number).unwrap());
    for key in 0..KEYS {
        client.run("insert", [integer(key), integer(key)]);
    }
    for number in 0..count {
        let key = integer(number % KEYS);
        match verb {
            "select" => assert_eq!(client.run(verb, [key]), 1),
            "upsert" => assert_eq!(client.run(verb, [key, Value::Text("another".into())]), 0),
            // The row comes back, so this is a pair.
            "delete" => {
                client.run(verb, [key.clone()]);
                client.run("insert", [key.clone(), key]);
            }
            "text" => {
                let text = format!("SELECT page, v FROM t WHERE k = {}", number % KEYS);
                let mut rows = Rows::default();
                client.session.run_text(&mut client.context, &text, true, &mut rows).unwrap();
                assert_eq!(rows.0, 1);
            }
            "cold" => {
                let text = format!("SELECT page, v, k + {number} FROM t WHERE page = $1 ORDER BY k");
                client.prepare("", &text);
            }
            other => panic!("{other}"),
        }
        if number % TURN == 0 {
            client.context.context_mut().begin_batch();
        }
    }
}
