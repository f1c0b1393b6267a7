//! A session may not hold more than its allowance, and all sessions together not more than theirs, whatever it is that
//! they hold.
//!
//! Each kind of thing once had a bound of its own and no common one: 256 cursors of 50 MB made 12 GB in one session, a
//! cursor in each of a hundred sessions 5 GB, prepared statements 16 MiB times the sessions, and a daemon without that
//! memory was gone with all its clients.

use std::sync::Arc;

use engine::{
    Cancel, ClientSink, ColumnDescription, CopyOptions, Engine, EngineOptions, Formats, RowSink, SqlError,
    SqlSession, SqlThreadContext, Value, ValueRef,
};
use store::{Clock, ManualClock, Store, StoreOptions};

const SESSION: usize = 1 << 20;
const ALL: usize = 3 << 20;
/// More of anything than a session can hold.
const ENOUGH: usize = 20_000;

struct Nothing;

impl ClientSink for Nothing {
    fn begin_copy(&mut self, _: &CopyOptions, _: &Cancel) {}
}

impl RowSink for Nothing {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, _: &[ValueRef<'_>]) -> Result<(), SqlError> {
        Ok(())
    }
}

struct Client {
    context: SqlThreadContext,
    session: SqlSession,
}

impl Client {
    fn new(engine: &Arc<Engine>) -> Self {
        let mut session = SqlSession::local(Arc::clone(engine));
        session.set_wake(Box::new(|| {}));
        Self { context: SqlThreadContext::new(engine.context()), session }
    }

    fn run(&mut self, text: &str) -> Result<(), SqlError> {
        let result = self.session.run_text(&mut self.context, text, true, &mut Nothing).map(|_| ());
        result.inspect_err(|error| self.session.fail(error))
    }

    fn bind(&mut self, portal: &str, values: Vec<Value>) -> Result<(), SqlError> {
        let prepared = Arc::clone(self.session.prepared("")?);
        self.session.bind(portal, prepared, values, Formats::Text)
    }
}

fn engine() -> Arc<Engine> {
    let store = StoreOptions {
        path: None,
        memory_bytes: 64 << 20,
        cold: true,
        clock: Clock::Manual(ManualClock::new(1_700_000_000)),
        row_bytes_max: 2 << 20,
    };
    let options =
        EngineOptions { session_bytes_max: SESSION, sessions_bytes_max: ALL, ..EngineOptions::default() };
    Engine::new(Store::open(&store).expect("a store").store, options)
}

/// What a session can hold: its name, what comes before, and how one more is held.
type Kind = (&'static str, &'static str, fn(&mut Client, usize) -> Result<(), SqlError>);

const KINDS: &[Kind] = &[
    ("cursors", "BEGIN", |client, n| {
        client.run(&format!("DECLARE c{n} CURSOR FOR SELECT repeat('x', 1000) FROM generate_series(1, 100)"))
    }),
    ("cursors with hold", "", |client, n| {
        client.run(&format!("DECLARE c{n} CURSOR WITH HOLD FOR SELECT repeat('x', 50000)"))
    }),
    ("one cursor", "", |client, n| {
        client.run(&format!(
            "DECLARE c{n} CURSOR WITH HOLD FOR SELECT repeat('x', 1000) FROM generate_series(1, 2000)"
        ))
    }),
    ("a cursor of empty rows", "", |client, n| {
        client.run(&format!("DECLARE c{n} CURSOR WITH HOLD FOR SELECT NULL FROM generate_series(1, 200000)"))
    }),
    ("portals that are suspended", "BEGIN", |client, n| {
        client.session.parse(
            &mut client.context,
            "",
            "SELECT repeat('x', 1000) FROM generate_series(1, 20)",
            std::iter::empty(),
        )?;
        let portal = format!("p{n}");
        client.bind(&portal, Vec::new())?;
        client.session.execute(&mut client.context, &portal, 1, false, &mut Nothing).map(|_| ())
    }),
    ("values of portals", "BEGIN", |client, n| {
        client.session.parse(&mut client.context, "", "SELECT $1::text", std::iter::empty())?;
        client.bind(&format!("p{n}"), vec![Value::Text("x".repeat(10_000))])
    }),
    ("values of the unnamed portal", "BEGIN", |client, n| {
        client.session.parse(&mut client.context, "", "SELECT $1::text", std::iter::empty())?;
        client.bind("", vec![Value::Text("x".repeat(100_000 * n))])
    }),
    ("prepared statements", "", |client, n| {
        let text = format!("SELECT '{}'", "x".repeat(1000));
        client.session.parse(&mut client.context, &format!("s{n}"), &text, std::iter::empty())
    }),
    ("prepared statements of SQL", "", |client, n| {
        client.run(&format!("PREPARE s{n} AS SELECT '{}'", "x".repeat(1000)))
    }),
    ("the unnamed statement", "", |client, n| {
        let text = format!("SELECT '{}', '{}'", "x".repeat(50_000 * n), "y".repeat(50_000 * n));
        client.session.parse(&mut client.context, "", &text, std::iter::empty())
    }),
    ("rows of a transaction", "BEGIN", |client, n| {
        client.run(&format!("INSERT INTO t VALUES ({n}, repeat('x', 10000))"))
    }),
    ("savepoints", "BEGIN", |client, n| client.run(&format!("SAVEPOINT s{n}"))),
    ("settings of a transaction", "BEGIN", |client, n| {
        client.run(&format!("SET application_name = '{}'", n.to_string().repeat(500)))
    }),
    ("resets of a transaction", "BEGIN", |client, _| client.run("RESET ALL")),
    ("announcements", "BEGIN", |client, n| client.run(&format!("NOTIFY c{n}, '{}'", "x".repeat(1000)))),
    ("channels", "", |client, n| client.run(&format!("LISTEN channel_{n}"))),
    ("channels of a transaction", "BEGIN", |client, n| client.run(&format!("LISTEN channel_{n}"))),
    ("rows of a COPY", "", |client, n| {
        if client.session.copy_columns().is_none() {
            client.run("COPY t FROM STDIN")?;
        }
        let values =
            [Ok(Value::Integer(i64::try_from(n).expect("a key"))), Ok(Value::Text("x".repeat(100_000)))];
        client.session.copy_row(&mut client.context, 1, values.into_iter())
    }),
];

fn prepare_table(engine: &Arc<Engine>) {
    Client::new(engine).run("CREATE TABLE t (a INT PRIMARY KEY, b TEXT)").expect("a table");
}

#[test]
fn a_session_may_not_hold_more_than_its_allowance_of_anything() {
    for (kind, before, one_more) in KINDS {
        let engine = engine();
        prepare_table(&engine);
        let mut client = Client::new(&engine);
        client.run(before).expect(kind);
        let error = (1..ENOUGH).find_map(|n| {
            let error = one_more(&mut client, n).err();
            let held = engine.held().bytes();
            assert!(held <= SESSION + SESSION / 8, "{kind}: {held} bytes after {n}");
            error
        });
        let error = error.unwrap_or_else(|| panic!("{kind}: no end"));
        assert_eq!(error.state, "53400", "{kind}: {error:?}");
        assert!(error.hint.is_some(), "{kind}");
        drop(client);
        assert_eq!(engine.held().bytes(), 0, "{kind}: left behind");
    }
}

#[test]
fn all_sessions_may_not_hold_more_than_theirs_of_anything() {
    for (kind, before, one_more) in KINDS {
        let engine = engine();
        prepare_table(&engine);
        let mut clients: Vec<Client> = Vec::new();
        let mut refused = None;
        while refused.is_none() && clients.len() < 8 {
            let mut client = Client::new(&engine);
            client.run(before).expect(kind);
            let error = (1..ENOUGH).find_map(|n| one_more(&mut client, n).err());
            let held = engine.held().bytes();
            assert!(held <= ALL + ALL / 8, "{kind}: {held} bytes");
            clients.push(client);
            refused = error.filter(|error| error.state != "53400");
        }
        // A result that is too large for one session is refused there, and holds nothing.
        let Some(error) = refused else {
            assert!(engine.held().bytes() < ALL, "{kind}");
            continue;
        };
        assert_eq!(error.state, "53200", "{kind}: {error:?}");
        clients.clear();
        assert_eq!(engine.held().bytes(), 0, "{kind}: left behind");
    }
}

#[test]
fn what_is_closed_is_free() {
    let engine = engine();
    prepare_table(&engine);
    let mut client = Client::new(&engine);
    let mut empty = engine.held().bytes();
    let mut after = |engine: &Engine, what: &str| {
        assert_eq!(engine.held().bytes(), empty, "after {what}");
        empty = engine.held().bytes();
    };
    for ends in ["COMMIT", "ROLLBACK"] {
        client.run("BEGIN").expect("begun");
        client.run("DECLARE c CURSOR FOR SELECT repeat('x', 9999)").expect("a cursor");
        client.run("INSERT INTO t VALUES (1, 'x') ON CONFLICT DO NOTHING").expect("a row");
        client.run("SET application_name = 'x'").expect("set");
        client.run("NOTIFY a, 'b'").expect("announced");
        assert!(engine.held().bytes() > 9999);
        client.run(ends).expect(ends);
        after(&engine, ends);
    }
    for (makes, ends) in [
        ("DECLARE c CURSOR WITH HOLD FOR SELECT repeat('x', 9999)", "CLOSE c"),
        ("DECLARE c CURSOR WITH HOLD FOR SELECT repeat('x', 9999)", "CLOSE ALL"),
        ("PREPARE s AS SELECT 1", "DEALLOCATE s"),
        ("PREPARE s AS SELECT 1", "DEALLOCATE ALL"),
        ("PREPARE s AS SELECT 1", "DISCARD ALL"),
        ("LISTEN a", "UNLISTEN a"),
        ("LISTEN a", "UNLISTEN *"),
        ("LISTEN a", "DISCARD ALL"),
    ] {
        client.run(makes).expect(makes);
        assert!(engine.held().bytes() > 0, "{makes}");
        client.run(ends).expect(ends);
        after(&engine, ends);
    }
}

/// Messages for sessions that do not read them are bounded over all sessions, too.
#[test]
fn what_waits_for_listeners_is_counted() {
    let engine = engine();
    let mut listeners: Vec<Client> = (0..8).map(|_| Client::new(&engine)).collect();
    for (n, listener) in listeners.iter_mut().enumerate() {
        listener.run(&format!("LISTEN c{n}")).expect("listening");
    }
    let mut client = Client::new(&engine);
    for n in 0..8 {
        for _ in 0..900 {
            client.run(&format!("NOTIFY c{n}, '{}'", "x".repeat(1000))).expect("announced");
        }
        assert!(engine.held().bytes() <= ALL);
    }
    let lost =
        listeners.iter_mut().filter_map(|listener| listener.session.take_notifications().err()).count();
    assert!((1..8).contains(&lost), "{lost}");
    drop(listeners);
    assert_eq!(engine.held().bytes(), 0);
}
