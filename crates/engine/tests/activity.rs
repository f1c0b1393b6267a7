//! Statements are counted where they pass, and the system tables tell of them.

use std::sync::Arc;
use std::time::Duration;

use engine::{
    Cancel, ClientSink, CopyOptions, Engine, EngineOptions, Finished, Identity, Session, SettingFacts,
    SqlSession, SqlThreadContext, ThreadContext,
};
use engine::{ColumnDescription, Executor, RowSink, SqlError, ValueRef};
use store::{Clock, ManualClock, Store, StoreOptions};

struct Bench {
    engine: Arc<Engine>,
    clock: Arc<ManualClock>,
    context: ThreadContext,
    executor: Executor,
}

/// Rows as text: columns by commas, rows by semicolons.
#[derive(Default)]
struct Rows(String);

impl ClientSink for Rows {
    fn begin_copy(&mut self, _: &CopyOptions, _: &Cancel) {}
}

impl RowSink for Rows {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        if !self.0.is_empty() {
            self.0.push(';');
        }
        let shown = |value: &ValueRef<'_>| match value {
            ValueRef::Null => "NULL".to_owned(),
            other => {
                let mut text = Vec::new();
                other.write_text(&mut text);
                String::from_utf8(text).expect("text")
            }
        };
        self.0 += &values.iter().map(shown).collect::<Vec<_>>().join(",");
        Ok(())
    }
}

impl Bench {
    fn new() -> Self {
        let clock = ManualClock::new(1_700_000_000);
        let options = StoreOptions {
            path: None,
            memory_bytes: 64 << 20,
            cold: true,
            clock: Clock::Manual(Arc::clone(&clock)),
            row_bytes_max: 2 << 20,
        };
        let engine = Engine::new(Store::open(&options).expect("a store").store, EngineOptions::default());
        let context = engine.context();
        let executor = engine.executor(None).expect("an executor");
        Self { engine, clock, context, executor }
    }

    /// As a memcached client sends it.
    fn sql(&mut self, statement: &str) -> Result<String, SqlError> {
        let mut out = Vec::new();
        let finished = Session::local().sql(
            &mut self.context,
            &mut self.executor,
            statement.as_bytes(),
            None,
            &Cancel::new(),
            &mut out,
        );
        match finished {
            Finished::Failed(error) => Err(error),
            _ => Ok(String::from_utf8(out).expect("text")),
        }
    }
}

#[test]
fn statements_are_counted_by_their_text_without_literals() {
    let mut bench = Bench::new();
    bench.sql("CREATE TABLE t (a INT PRIMARY KEY, b INT)").expect("a table");
    bench.sql("INSERT INTO t VALUES (1, 2), (2, 3)").expect("rows");
    for key in 1..=5 {
        bench.sql(&format!("SELECT b FROM t WHERE a = {key}")).expect("a row");
    }
    bench.sql("SELECT b FROM t WHERE a = 1 / 0 + json('x')").expect_err("not JSON");
    let told = bench
        .sql("SELECT calls, errors, rows, plan FROM sqlcached_statements WHERE query = 'select b from t where a = ?'")
        .expect("figures");
    assert_eq!(
        told.trim(),
        r#"{"calls":5,"errors":0,"rows":2,"plan":"SCAN t VIRTUAL TABLE INDEX 0:t_pkey (a=?)"}"#
    );
    let told = bench.sql("SELECT calls, errors FROM sqlcached_statements WHERE errors > 0").expect("figures");
    assert_eq!(told.trim(), r#"{"calls":1,"errors":1}"#);
    bench.sql("CREATE INDEX t_b ON t (b)").expect("an index");
    bench.sql("SELECT a FROM t WHERE b = 3").expect("a row");
    let told =
        bench.sql("SELECT plan FROM sqlcached_statements WHERE query LIKE '%where b = ?'").expect("figures");
    assert!(told.contains("t_b (b=?)"), "{told}");
    bench.sql("DROP INDEX t_b").expect("no index");
    bench.sql("SELECT a FROM t WHERE b = 4").expect("no row");
    let told =
        bench.sql("SELECT plan FROM sqlcached_statements WHERE query LIKE '%where b = ?'").expect("figures");
    assert!(told.contains("every row"), "{told}");
}

/// A session says by `SET` who runs its statements; others go by the daemon's setting.
#[test]
fn runs_are_counted_by_their_executor() {
    let mut bench = Bench::new();
    bench.sql("CREATE TABLE t (a INT PRIMARY KEY)").expect("a table");
    let mut context = SqlThreadContext::new(bench.engine.context());
    let mut session = SqlSession::local(Arc::clone(&bench.engine));
    session.start(Identity::default(), None, None, &[]).expect("a session");
    let mut rows = Rows::default();
    let mut run = |sql: &str| session.run_text(&mut context, sql, true, &mut rows).expect(sql);
    let select = "SELECT a FROM t WHERE a = 1";
    run(select);
    run("SET native_execution = off");
    run(select);
    run(select);
    run("RESET native_execution");
    run(select);
    bench.engine.set_native_execution(false);
    run(select);
    run("SET native_execution = on");
    run(select);
    run("SHOW native_execution");
    assert_eq!(rows.0, "on");
    let told =
        bench.sql("SELECT calls, native_calls, sqlite_calls FROM sqlcached_statements WHERE calls = 6");
    assert_eq!(told.expect("figures").trim(), r#"{"calls":6,"native_calls":3,"sqlite_calls":3}"#);
}

#[test]
fn sessions_are_seen_while_they_last() {
    let mut bench = Bench::new();
    let mut context = SqlThreadContext::new(bench.engine.context());
    let mut session = SqlSession::local(Arc::clone(&bench.engine));
    let identity = Identity {
        pid: 7,
        user: "ada".to_owned(),
        role: "ada".to_owned(),
        database: "shop".to_owned(),
        ..Identity::default()
    };
    let settings = [("application_name".to_owned(), "console".to_owned())];
    session.start(identity, Some("127.0.0.1".to_owned()), None, &settings).expect("a session");
    bench.clock.advance(Duration::from_secs(10));
    let ask = "SELECT pid, user_name, database_name, application_name, client_addr, state, query, started, \
               query_started, transaction_started, statements FROM sqlcached_sessions";
    let mut rows = Rows::default();
    session.run_text(&mut context, "BEGIN", true, &mut rows).expect("a transaction");
    bench.clock.advance(Duration::from_secs(5));
    assert_eq!(
        bench.sql(ask).expect("a session").trim(),
        r#"{"pid":7,"user_name":"ada","database_name":"shop","application_name":"console","client_addr":"127.0.0.1","state":"idle in transaction","query":"begin","started":"2023-11-14 22:13:20.000+00","query_started":"2023-11-14 22:13:30.000+00","transaction_started":"2023-11-14 22:13:30.000+00","statements":1}"#
    );
    session
        .run_text(
            &mut context,
            "SELECT state, pid, (SELECT datname FROM pg_database), pg_backend_pid(), current_user() FROM pg_stat_activity",
            true,
            &mut rows,
        )
        .expect("a session");
    assert_eq!(rows.0, "active,7,shop,7,ada");
    drop(session);
    assert_eq!(bench.sql("SELECT * FROM sqlcached_sessions").expect("no session"), "");
}

#[test]
fn settings_are_told() {
    let mut bench = Bench::new();
    bench.engine.describe_settings(vec![SettingFacts {
        name: "statement_timeout".to_owned(),
        setting: "30s".to_owned(),
        source: "the default".to_owned(),
        ..SettingFacts::default()
    }]);
    let told = bench.sql("SELECT name, setting, source FROM sqlcached_settings").expect("settings");
    assert_eq!(told.trim(), r#"{"name":"statement_timeout","setting":"30s","source":"the default"}"#);
    let told = bench.sql("SELECT current_setting('statement_timeout') AS a").expect("a setting");
    assert_eq!(told.trim(), r#"{"a":"30s"}"#);
}
