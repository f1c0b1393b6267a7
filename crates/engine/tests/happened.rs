//! What happened recently: the figures over time, slow statements, invalidations, what a table holds.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use engine::{
    Answer, Cancel, ClientSink, ColumnDescription, CopyOptions, Engine, EngineOptions, Executor, Finished,
    Identity, RowSink, Session, SqlError, SqlSession, SqlThreadContext, ThreadContext, ValueRef, Verb,
};
use store::{Clock, ManualClock, Store, StoreOptions};

struct Bench {
    engine: Arc<Engine>,
    clock: Arc<ManualClock>,
    context: ThreadContext,
    executor: Executor,
}

struct Nobody;

impl ClientSink for Nobody {
    fn begin_copy(&mut self, _: &CopyOptions, _: &Cancel) {}
}

impl RowSink for Nobody {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, _: &[ValueRef<'_>]) -> Result<(), SqlError> {
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

    /// As a memcached client sends it; the rows of its answer.
    fn sql(&mut self, statement: &str) -> String {
        let mut out = Vec::new();
        let (session, cancel) = (Session::local(), Cancel::new());
        let text = statement.as_bytes();
        let finished = session.sql(&mut self.context, &mut self.executor, text, None, &cancel, &mut out);
        assert!(!matches!(finished, Finished::Failed(_)), "{statement}: {finished:?}");
        String::from_utf8(out).expect("text").trim().replace("\r\n", "\n")
    }

    fn set(&mut self, key: &str, value: &[u8]) {
        let stored = Session::local().store(&mut self.context, Verb::Set, key.as_bytes(), 0, 0, value);
        assert_eq!(stored, Answer::Stored);
    }

    /// Lets so many ticks of the housekeeping pass.
    fn pass(&self, ticks: u32) {
        for _ in 0..ticks {
            self.clock.advance(Duration::from_nanos(store::TICK_NS));
            self.engine.tick();
        }
    }

    fn client(&self) -> Client {
        let context = SqlThreadContext::new(self.engine.context());
        let mut session = SqlSession::local(Arc::clone(&self.engine));
        let identity =
            Identity { pid: 7, user: "ada".to_owned(), role: "ada".to_owned(), ..Identity::default() };
        session.start(identity, Some("192.0.2.1".to_owned()), None, &[]).expect("a session");
        Client { context, session }
    }
}

/// A PostgreSQL client.
struct Client {
    context: SqlThreadContext,
    session: SqlSession,
}

impl Client {
    fn run(&mut self, statement: &str) {
        self.session.run_text(&mut self.context, statement, true, &mut Nobody).expect(statement);
    }

    fn fail(&mut self, statement: &str) {
        self.session.run_text(&mut self.context, statement, true, &mut Nobody).expect_err(statement);
    }
}

const TABLE: &str = "CREATE TABLE t (k TEXT PRIMARY KEY, page INT, v TEXT) WITH (prefix = 't:', value = 'v')";

#[test]
fn each_second_and_each_minute_is_a_point() {
    let mut bench = Bench::new();
    bench.sql(TABLE);
    bench.pass(16);
    for number in 0..3 {
        bench.set(&format!("t:{number}"), b"x");
    }
    let mut client = bench.client();
    client.run("SELECT v FROM t WHERE k = '0'");
    client.run("SELECT v FROM t WHERE k = 'none'");
    client.fail("SELECT 1 / json('x')");
    bench.pass(16);
    bench.pass(16);
    let points = "SELECT resolution AS r, seconds AS s, hits, misses, sets, postgresql_statements AS p, \
                  memcached_statements AS m, errors AS e, rows FROM sqlcached_history ORDER BY resolution, at";
    let second = r#""r":1,"s":1.0,"#;
    assert_eq!(
        bench.sql(points).lines().collect::<Vec<_>>(),
        [
            format!(r#"{{{second}"hits":0,"misses":0,"sets":0,"p":0,"m":1,"e":0,"rows":0}}"#),
            format!(r#"{{{second}"hits":1,"misses":1,"sets":3,"p":3,"m":0,"e":1,"rows":3}}"#),
            format!(r#"{{{second}"hits":0,"misses":0,"sets":0,"p":0,"m":0,"e":0,"rows":3}}"#),
        ]
    );
    bench.pass(60 * 16);
    let told = bench.sql(
        "SELECT at, sets, jsonb_object_keys(tables) AS largest FROM sqlcached_history WHERE resolution = 60",
    );
    assert_eq!(told, r#"{"at":"2023-11-14 22:14:20.000+00","sets":3,"largest":"t"}"#);
    // A housekeeping that was late makes one long point; a sum over the points is still everything.
    bench.clock.advance(Duration::from_secs(30));
    bench.set("t:9", b"x");
    bench.engine.tick();
    let told = bench
        .sql("SELECT max(seconds) AS longest, sum(sets) AS sets FROM sqlcached_history WHERE resolution = 1");
    assert_eq!(told, r#"{"longest":30.0,"sets":4}"#);
    bench.pass(400 * 16);
    assert_eq!(bench.sql("SELECT count(*) AS n FROM sqlcached_history WHERE resolution = 1"), r#"{"n":300}"#);
}

/// The history ended with the process: who looked after a crash for what was before it found nothing.
#[test]
fn the_history_goes_on_where_an_earlier_process_ended() {
    let path = std::env::temp_dir().join(format!("history-of-engine-{}", std::process::id()));
    let file =
        File::options().read(true).write(true).create(true).truncate(true).open(&path).expect("a file");
    std::fs::remove_file(&path).expect("the name is not needed");
    let keep = |bench: &Bench, known| {
        bench.engine.keep_history(file.try_clone().expect("a file"), known).expect("a history");
    };
    let asked = "SELECT sum(sets) AS sets, count(*) AS n, max(tables::text) AS t FROM sqlcached_history \
                 WHERE resolution = 60";
    let mut first = Bench::new();
    keep(&first, false);
    first.sql(TABLE);
    first.set("t:1", b"x");
    first.pass(60 * 16);
    drop(first);
    // An arena that is attached again has the same tables under the same numbers; another one may have others.
    for (known, tables) in [(true, r#"{\"t\": 65536}"#), (false, "{}")] {
        let mut later = Bench::new();
        later.sql(TABLE);
        keep(&later, known);
        assert_eq!(later.sql(asked), format!(r#"{{"sets":1,"n":1,"t":"{tables}"}}"#));
    }
}

/// A flush with a time to come was listed once, with 0 rows, and no word said later how many went.
#[test]
fn a_flush_to_come_is_listed_with_its_rows_when_they_go() {
    let mut bench = Bench::new();
    let asked = "SELECT statement AS s, rows AS n FROM sqlcached_invalidations ORDER BY at, n";
    for number in 0..500 {
        bench.set(&format!("x{number}"), b"1");
    }
    assert_eq!(Session::local().flush_all(&mut bench.context, Some(2)), Answer::Ok);
    let to_come = r#"{"s":"flush_all 2","n":0}"#;
    bench.pass(16);
    assert_eq!(bench.sql(asked), to_come);
    bench.pass(32);
    assert_eq!(bench.sql(asked), format!("{to_come}\n{}", r#"{"s":"flush_all 2","n":500}"#));
    bench.pass(64);
    // Another takes the place of one that has not come.
    for number in 0..7 {
        bench.set(&format!("y{number}"), b"1");
    }
    Session::local().flush_all(&mut bench.context, Some(3));
    bench.pass(20);
    Session::local().flush_all(&mut bench.context, Some(4));
    bench.pass(200);
    let listed = bench.sql("SELECT sum(rows) AS rows, count(*) AS n FROM sqlcached_invalidations");
    assert_eq!(listed, r#"{"rows":507,"n":5}"#);
    // So does one that is at once.
    Session::local().flush_all(&mut bench.context, Some(3));
    bench.pass(20);
    Session::local().flush_all(&mut bench.context, None);
    bench.pass(100);
    assert_eq!(bench.sql("SELECT count(*) AS n FROM sqlcached_invalidations"), r#"{"n":7}"#);
}

#[test]
fn invalidations_name_who_and_what() {
    let mut bench = Bench::new();
    bench.sql(TABLE);
    for number in 0..40 {
        bench.sql(&format!("INSERT INTO t VALUES ('{number}', {}, 'x')", number % 4));
    }
    // The removal of one row by its key is not listed.
    assert_eq!(Session::local().delete(&mut bench.context, b"t:39"), Answer::Deleted);
    bench.sql("DELETE FROM t WHERE k = '38'");
    let mut client = bench.client();
    client.run("DELETE FROM t WHERE k = '37'");
    assert_eq!(bench.sql("SELECT * FROM sqlcached_invalidations"), "");
    client.run("DELETE FROM t WHERE page = 1");
    client.run("UPDATE t SET _stale = TRUE WHERE page = 2");
    client.run("DELETE FROM t WHERE page = 0 AND length(v) = 1 AND random() IS NOT NULL");
    bench.sql("DELETE FROM t WHERE k IN ('3', '7')");
    Session::local().flush_all(&mut bench.context, None);
    // Until the housekeeping has cleared them, rows that were flushed count.
    bench.pass(32);
    bench.sql("INSERT INTO t VALUES ('a', 1, 'x'), ('b', 1, 'x')");
    client.run("TRUNCATE t");
    let asked = "SELECT role_name AS r, pid, client_addr AS a, protocol AS p, statement AS s, table_name AS t, what AS w, \
                 rows AS n FROM sqlcached_invalidations ORDER BY at";
    let ada = r#"{"r":"ada","pid":7,"a":"192.0.2.1","p":"postgresql","#;
    let nobody = r#"{"r":"","pid":null,"a":null,"p":"memcached","#;
    assert_eq!(
        bench.sql(asked).lines().collect::<Vec<_>>(),
        [
            format!(r#"{ada}"s":"delete from t where page = ?","t":"t","w":"deleted","n":9}}"#),
            format!(r#"{ada}"s":"update t set _stale = true where page = ?","t":"t","w":"stale","n":9}}"#),
            format!(
                r#"{ada}"s":"delete from t where page = ? and length(v) = ? and random() is not null","t":"t","w":"deleted","n":10}}"#
            ),
            format!(r#"{nobody}"s":"delete from t where k in (?, ...)","t":"t","w":"deleted","n":2}}"#),
            format!(r#"{nobody}"s":"flush_all","t":null,"w":"flushed","n":16}}"#),
            format!(r#"{ada}"s":"truncate t","t":"t","w":"flushed","n":2}}"#),
        ]
    );
}

/// What a transaction takes back did not happen.
#[test]
fn a_transaction_is_noted_when_it_commits() {
    let mut bench = Bench::new();
    bench.sql(TABLE);
    bench.sql("INSERT INTO t VALUES ('a', 1, 'x'), ('b', 2, 'x'), ('c', 3, 'x')");
    let mut client = bench.client();
    let rows = "SELECT rows, times FROM sqlcached_invalidations";
    client.run("BEGIN");
    client.run("DELETE FROM t WHERE page = 1");
    client.run("SAVEPOINT s");
    client.run("DELETE FROM t WHERE page >= 2");
    client.run("ROLLBACK TO s");
    assert_eq!(bench.sql(rows), "");
    client.run("COMMIT");
    assert_eq!(bench.sql(rows), r#"{"rows":1,"times":1}"#);
    client.run("BEGIN");
    client.run("DELETE FROM t WHERE page = 2");
    client.run("ROLLBACK");
    assert_eq!(bench.sql(rows), r#"{"rows":1,"times":1}"#);
    // A procedure's deletions are the call's.
    client.run(
        "CREATE PROCEDURE p() LANGUAGE sql AS 'DELETE FROM t WHERE page = 2; DELETE FROM t WHERE page = 3'",
    );
    client.run("CALL p()");
    let told = bench.sql("SELECT statement, rows FROM sqlcached_invalidations WHERE statement LIKE 'call%'");
    assert_eq!(told, r#"{"statement":"call p()","rows":2}"#);
}

#[test]
fn rules_and_sources_are_noted() {
    let mut bench = Bench::new();
    bench.sql(TABLE);
    bench.sql("INSERT INTO t VALUES ('a', 1, 'x'), ('b', 2, 'x')");
    bench.sql("CREATE EXPIRY RULE old ON t WHEN page = 1 EVERY '1 s'");
    let mut runner = bench.engine.rule_runner().expect("a runner");
    runner.run_due(&Cancel::new());
    bench.clock.advance(Duration::from_secs(2));
    runner.run_due(&Cancel::new());
    for rows in [3, 0, 4] {
        let statement = "DELETE FROM t WHERE page = $1";
        bench.engine.note_source("shop", ("t", false), statement, rows, Duration::from_millis(2));
    }
    let told = bench.sql("SELECT role_name AS r, protocol AS p, statement AS s, what AS w, rows, times FROM sqlcached_invalidations");
    assert_eq!(
        told,
        concat!(
            r#"{"r":"","p":"rule","s":"expiry rule old","w":"expired","rows":1,"times":1}"#,
            "\n",
            r#"{"r":"shop","p":"source","s":"DELETE FROM t WHERE page = $1","w":"deleted","rows":7,"times":2}"#
        )
    );
}

#[test]
fn slow_statements_are_kept_without_their_values() {
    let mut bench = Bench::new();
    bench.sql(TABLE);
    let mut client = bench.client();
    client.run("SELECT v FROM t WHERE k = 'hidden'");
    let told = "SELECT role_name AS r, protocol AS p, statement AS s, parameters AS v, rows, sqlstate AS e FROM sqlcached_slow";
    assert_eq!(bench.sql(told), "");
    bench.engine.set_slow_log(Some(0), 0);
    client.run("SELECT v FROM t WHERE k = 'hidden'");
    client.fail("SELECT 1 / json('x')");
    assert_eq!(
        bench.sql(told),
        concat!(
            r#"{"r":"ada","p":"postgresql","s":"select v from t where k = ?","v":null,"rows":0,"e":null}"#,
            "\n",
            r#"{"r":"ada","p":"postgresql","s":"select ? / json(?)","v":null,"rows":0,"e":"22032"}"#
        )
    );
    bench.engine.set_slow_log(Some(0), 100);
    client.run("DELETE FROM t WHERE v = 'shown'");
    bench.engine.set_slow_log(None, 100);
    client.run("DELETE FROM t WHERE v = 'other'");
    let last = bench.sql("SELECT statement FROM sqlcached_slow ORDER BY at DESC LIMIT 1");
    assert!(!last.contains("hidden"), "{last}");
    let told = bench.sql("SELECT statement FROM sqlcached_slow WHERE statement LIKE 'DELETE%'");
    assert_eq!(told, r#"{"statement":"DELETE FROM t WHERE v = 'shown'"}"#);
    let told = bench.sql("SELECT statement FROM sqlcached_invalidations WHERE statement LIKE '%other%'");
    assert_eq!(told, r#"{"statement":"DELETE FROM t WHERE v = 'other'"}"#);
}

/// A sample has the same size whatever the table has, and its shares are right to some hundredths.
#[test]
fn prefixes_and_largest_rows_are_sampled() {
    let mut bench = Bench::new();
    bench.sql("CREATE TABLE few (k TEXT PRIMARY KEY, v TEXT) WITH (prefix = 'few:', value = 'v')");
    for number in 0..60_000 {
        let (prefix, bytes) = if number % 4 == 0 { ("page", 300) } else { ("user", 20) };
        bench.set(&format!("{prefix}:{number}"), &vec![b'x'; bytes]);
    }
    bench.set("few:a/1", &[b'x'; 100]);
    bench.set("few:b", &vec![b'x'; 50_000]);
    let told = bench.sql(
        "SELECT prefix, rows BETWEEN 13500 AND 16500 AS fourth, mean_bytes > 300 AS large, sampled FROM sqlcached_prefixes \
         WHERE table_name = 'memcached'",
    );
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines.len(), 2, "{told}");
    assert!(lines[0].starts_with(r#"{"prefix":"page:","fourth":1,"large":1,"#), "{told}");
    assert!(lines[1].starts_with(r#"{"prefix":"user:","fourth":0,"large":0,"#), "{told}");
    let sampled =
        bench.sql("SELECT sum(sampled) AS n FROM sqlcached_prefixes WHERE table_name = 'memcached'");
    assert_eq!(sampled, r#"{"n":16384}"#);
    let told =
        bench.sql("SELECT key, bytes > 50000 AS large FROM sqlcached_largest WHERE table_name = 'few'");
    assert_eq!(told, "{\"key\":\"b\",\"large\":1}\n{\"key\":\"a/1\",\"large\":0}");
    let told = bench.sql("SELECT count(*) AS n, max(bytes) < 500 AS small FROM sqlcached_largest WHERE table_name = 'memcached'");
    assert_eq!(told, r#"{"n":100,"small":1}"#);
    assert_eq!(bench.sql("SELECT * FROM sqlcached_largest WHERE table_name = 'none'"), "");
}

#[test]
fn postgresql_names_the_statements_too() {
    let mut bench = Bench::new();
    bench.sql(TABLE);
    for key in 0..5 {
        bench.sql(&format!("SELECT v FROM t WHERE k = '{key}'"));
    }
    let told = bench.sql(
        "SELECT query, calls, rows, shared_blks_hit AS b, mean_exec_time * calls - total_exec_time < 1 AS m, queryid IS NULL AS n \
         FROM pg_stat_statements WHERE query LIKE 'select v%'",
    );
    assert_eq!(told, r#"{"query":"select v from t where k = ?","calls":5,"rows":0,"b":0,"m":1,"n":0}"#);
}
