//! More ways around the gate, by where they begin: the start of a connection, texts of errors, what outlives a change
//! of the role, system tables, memcached's protocols. `grants::ways_around_the_gate` has statements that read a table.

use std::fmt::Write as _;
use std::io::Read as _;
use std::time::Duration;

use crate::grants::{done, filled, guarded, make, memcached, refusal, sql};
use crate::harness::Daemon;
use crate::pg::{Pg, bind, copy_in, execute, message, packet, parse};

/// A value that nobody but `chief` may see.
const SECRET: &str = "s3cr3t";

/// A daemon whose `chief` has a table `secret` and others, of which `a` and `b` were granted little.
fn besieged(more: &str) -> (Daemon, Pg) {
    let daemon =
        guarded(&format!("CREATE ROLE team; CREATE USER a PASSWORD 'x' IN ROLE team; CREATE USER b; {more}"));
    let mut chief = sql(&daemon, "chief");
    make(&mut chief);
    filled(&mut chief);
    done(
        &mut chief,
        &[
            "CREATE TABLE secret (k INT PRIMARY KEY, v TEXT, w TEXT UNIQUE, n INT CHECK (n < 100),
             UNIQUE (v, w)) WITH (prefix = 'secret:', value = v)",
            &format!(
                "INSERT INTO secret VALUES (1, '{SECRET}', '{SECRET}', 7), (2, '{SECRET}2', '{SECRET}2', 8)"
            ),
            "CREATE SEQUENCE numbers",
        ],
    );
    (daemon, chief)
}

/// The start of a session with these parameters behind the user's name.
fn started(daemon: &Daemon, role: &str, parameters: &[(&str, &str)]) -> (Pg, Vec<String>) {
    let mut body = format!("user\0{role}\0");
    for (name, value) in parameters {
        let _grows = write!(body, "{name}\0{value}\0");
    }
    body.push('\0');
    let mut pg = Pg::plain(daemon);
    pg.send(&packet(3 << 16, body.as_bytes()));
    let mut said = Vec::new();
    while let Some(one) = pg.next() {
        let ends = one.starts_with('Z');
        said.push(one);
        if ends {
            break;
        }
    }
    (pg, said)
}

/// A client named the role of somebody else among the settings of its session, and had that role's rights.
#[test]
fn a_session_begins_with_no_role_of_others() {
    let (daemon, _chief) = besieged("");
    for parameters in [
        &[("role", "chief")][..],
        &[("ROLE", "chief")],
        &[("options", "-c role=chief")],
        &[("options", "--role=chief")],
        &[("options", "-crole=chief")],
        &[("options", "-c role=a -c role=chief")],
        &[("role", "a"), ("role", "chief")],
        &[("session_authorization", "chief")],
        &[("options", "-c session_authorization=chief")],
        &[("role", "nobody")],
        &[("role", "b")],
    ] {
        let (mut pg, said) = started(&daemon, "a", parameters);
        let began = said.last().is_some_and(|last| last.starts_with('Z'));
        if began {
            let said = pg.ask("SELECT v FROM secret");
            assert_eq!(refusal(&said), Some("42501"), "{parameters:?}: {said:?}");
            assert_eq!(pg.ask("SELECT current_user")[1], "D a", "{parameters:?}");
        } else {
            assert!(matches!(refusal(&said), Some("42501" | "22023" | "42704")), "{parameters:?}: {said:?}");
        }
    }
    // Its own, and one that it is a member of.
    for role in ["a", "team", "none"] {
        let (mut pg, said) = started(&daemon, "a", &[("role", role)]);
        assert!(said.last().is_some_and(|last| last.starts_with('Z')), "{role}: {said:?}");
        assert_eq!(refusal(&pg.ask("SELECT v FROM secret")), Some("42501"));
        // Back to where it began, and not to more.
        done(&mut pg, &["RESET ALL", "DISCARD ALL", "RESET ROLE"]);
        assert_eq!(refusal(&pg.ask("SELECT v FROM secret")), Some("42501"));
    }
}

/// What an error says of a row is known to the role already, or not said.
#[test]
fn errors_show_no_values() {
    let (daemon, mut chief) = besieged("");
    done(&mut chief, &["GRANT INSERT, UPDATE ON secret TO a", "GRANT SELECT (k, n) ON secret TO b"]);
    done(&mut chief, &["GRANT UPDATE (n) ON secret TO b", "GRANT DELETE ON secret TO b"]);
    let mut wrong = Vec::new();
    for (role, statement) in [
        ("a", "UPDATE secret SET n = 1000"),
        ("a", "UPDATE secret SET k = 1"),
        ("a", "UPDATE secret SET w = 'same'"),
        ("a", "UPDATE secret SET v = 'same', w = 'same'"),
        ("a", "INSERT INTO secret (k, v) VALUES (1, 'x')"),
        ("a", "INSERT INTO secret (k, n) VALUES (3, 1000)"),
        ("a", "INSERT INTO secret (k) VALUES (NULL)"),
        ("a", "UPDATE secret SET k = NULL"),
        ("a", "UPDATE secret SET n = v::int"),
        ("a", "INSERT INTO secret (k) SELECT v::int FROM secret"),
        ("b", "UPDATE secret SET n = 1000 WHERE k = 1"),
        ("b", "UPDATE secret SET n = n + 1000"),
        ("b", "UPDATE secret SET n = 'x'"),
        ("b", "UPDATE secret SET n = v::int WHERE k = 1"),
        ("b", "SELECT k FROM secret WHERE v::int = 1"),
        ("b", "SELECT k FROM secret ORDER BY v::int"),
        ("b", "SELECT CASE WHEN k = 1 THEN 1 / 0 END, v FROM secret"),
        ("b", "DELETE FROM secret WHERE v::int = 1"),
        ("b", "DELETE FROM secret WHERE k = 1 RETURNING v::int"),
        ("b", "SELECT to_json(secret)::text::int FROM secret"),
    ] {
        let mut pg = sql(&daemon, role);
        done(&mut pg, &["BEGIN"]);
        let (message, detail) = pg.failure(statement);
        done(&mut pg, &["ROLLBACK"]);
        if message.is_empty() || message.contains(SECRET) || detail.contains(SECRET) {
            wrong.push(format!("{role}: {statement}: {message} {detail}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Statements that are refused for what they want (42501), and not for how they are written.
#[test]
fn more_ways_around_the_gate() {
    let (daemon, mut chief) = besieged(
        "CREATE USER maker; GRANT CREATE ON SCHEMA public TO maker; CREATE USER boss CREATEROLE;
         CREATE ROLE reader IN ROLE pg_read_all_data; CREATE USER signaler IN ROLE pg_signal_backend;",
    );
    done(&mut chief, &["GRANT SELECT (k), UPDATE (n) ON secret TO b"]);
    let mut wrong = Vec::new();
    let pid = chief.ask("SELECT pg_backend_pid()")[1][2..].to_owned();
    for (role, statement) in [
        ("a", "SELECT 1 FROM generate_series(1, 3) AS g WHERE g IN (SELECT k FROM secret)"),
        ("a", "SELECT * FROM (SELECT * FROM secret) AS x LIMIT 0"),
        ("a", "SELECT x.* FROM secret AS x CROSS JOIN secret AS y"),
        ("a", "SELECT 1 UNION ALL SELECT k FROM secret"),
        ("a", "SELECT 1 INTERSECT SELECT k FROM secret"),
        ("a", "SELECT 1 EXCEPT SELECT k FROM secret"),
        ("a", "WITH secret2 AS (SELECT * FROM secret), x AS (SELECT 1) SELECT * FROM x"),
        (
            "a",
            "WITH RECURSIVE x(v) AS (SELECT v FROM secret UNION ALL SELECT v FROM x WHERE false) SELECT v FROM x",
        ),
        ("a", "WITH x AS MATERIALIZED (SELECT max(v) FROM secret) SELECT * FROM x"),
        ("a", "SELECT exists(SELECT 1 FROM secret WHERE v LIKE 's%')"),
        ("a", "SELECT (SELECT count(*) FROM secret) > 0"),
        ("a", "SELECT min(k) FROM secret"),
        ("a", "SELECT count(*) FROM secret"),
        ("a", "SELECT string_agg(v, ',') FROM secret"),
        ("a", "SELECT array_agg(v) FROM secret"),
        ("a", "SELECT jsonb_agg(secret) FROM secret"),
        ("a", "SELECT json_object_agg(k, v) FROM secret"),
        ("a", "SELECT row_number() OVER (ORDER BY v) FROM secret"),
        ("a", "SELECT 1 FROM (VALUES (1)) AS x LEFT JOIN secret ON true"),
        ("a", "SELECT 1 ORDER BY (SELECT count(*) FROM secret)"),
        ("a", "SELECT 1 GROUP BY (SELECT count(*) FROM secret)"),
        ("a", "SELECT 1 OFFSET (SELECT count(*) FROM secret)"),
        ("a", "SELECT set_config('x.y', (SELECT v FROM secret LIMIT 1), false)"),
        ("a", "SELECT pg_notify('x', (SELECT v FROM secret LIMIT 1))"),
        ("a", "SELECT nextval('numbers') WHERE EXISTS (SELECT 1 FROM secret)"),
        ("a", "SELECT pg_advisory_lock((SELECT k FROM secret LIMIT 1))"),
        ("a", "EXPLAIN QUERY PLAN SELECT * FROM secret"),
        ("a", "PREPARE p AS SELECT v FROM secret; EXECUTE p"),
        ("a", "DECLARE c CURSOR WITH HOLD FOR SELECT v FROM secret"),
        ("a", "BEGIN; DECLARE c CURSOR FOR SELECT v FROM secret; FETCH c"),
        ("a", "COPY (SELECT * FROM secret) TO STDOUT (FORMAT csv)"),
        ("a", "COPY secret TO STDOUT (FORMAT binary)"),
        ("a", "COPY secret (v) TO STDOUT"),
        ("a", "COPY secret FROM '/etc/passwd'"),
        ("a", "COPY secret TO PROGRAM 'cat'"),
        ("a", "INSERT INTO secret VALUES (9) ON CONFLICT DO NOTHING"),
        ("a", "INSERT INTO t SELECT k, v, n FROM secret"),
        ("a", "DELETE FROM t USING secret"),
        ("a", "UPDATE t SET v = secret.v FROM secret"),
        ("a", "UPDATE t SET v = (SELECT v FROM secret LIMIT 1)"),
        ("a", "DELETE FROM secret WHERE false"),
        ("a", "UPDATE secret SET v = '' WHERE false"),
        ("a", "TRUNCATE t, secret"),
        ("a", "TRUNCATE secret RESTART IDENTITY CASCADE"),
        ("a", "SELECT setval('numbers', 1)"),
        ("a", "SELECT currval('numbers')"),
        ("a", "SELECT last_value FROM numbers"),
        ("a", "CREATE TABLE mine AS SELECT * FROM numbers"),
        ("a", "COPY (SELECT is_called FROM numbers) TO STDOUT"),
        ("a", "INSERT INTO t SELECT 'k', last_value, 1 FROM numbers"),
        ("a", "ALTER SEQUENCE numbers RESTART"),
        ("a", "ALTER SEQUENCE numbers OWNED BY NONE"),
        ("a", "DROP SEQUENCE IF EXISTS numbers"),
        ("a", "REASSIGN OWNED BY chief TO a"),
        ("a", "DROP OWNED BY chief CASCADE"),
        ("a", "DROP OWNED BY b"),
        ("a", "ALTER TABLE secret DROP COLUMN v"),
        ("a", "ALTER TABLE secret ADD COLUMN z TEXT DEFAULT 'x'"),
        ("a", "ALTER TABLE secret ALTER COLUMN v SET DEFAULT 'x'"),
        ("a", "ALTER TABLE secret ALTER COLUMN n TYPE TEXT"),
        ("a", "ALTER TABLE secret RENAME COLUMN v TO x"),
        ("a", "ALTER TABLE secret ADD CONSTRAINT c CHECK (k > 0)"),
        ("a", "ALTER TABLE secret RESET (prefix)"),
        ("a", "ALTER TABLE IF EXISTS secret OWNER TO a"),
        ("a", "ALTER VIEW seen OWNER TO a"),
        ("a", "ALTER TABLE memcached SET (ttl = '1 s')"),
        ("a", "ALTER TABLE memcached OWNER TO a"),
        ("a", "ALTER INDEX secret_w_key RENAME TO x"),
        ("a", "DROP INDEX secret_w_key"),
        ("a", "COMMENT ON TABLE secret IS 'x'"),
        ("a", "COMMENT ON INDEX secret_w_key IS 'x'"),
        ("a", "CREATE UNIQUE INDEX CONCURRENTLY ON secret (v)"),
        ("a", "CREATE EXPIRY RULE r ON secret WHEN v = 'x'"),
        ("a", "REVOKE SELECT ON secret FROM PUBLIC"),
        ("a", "GRANT SELECT ON memcached TO a"),
        ("a", "ALTER DEFAULT PRIVILEGES FOR ROLE chief GRANT USAGE ON SEQUENCES TO a"),
        ("a", "SELECT * FROM memcached"),
        ("a", "INSERT INTO memcached (key, value) VALUES ('a', 'b')"),
        ("b", "SELECT v FROM secret WHERE k = 1"),
        ("b", "SELECT k FROM secret WHERE length(v) > 1"),
        ("b", "SELECT k, (SELECT s.v FROM secret s WHERE s.k = secret.k) FROM secret"),
        ("b", "SELECT count(v) FROM secret"),
        ("b", "SELECT count(DISTINCT v) FROM secret"),
        ("b", "SELECT max(v) FROM secret"),
        ("b", "SELECT k FROM secret GROUP BY k, v"),
        ("b", "SELECT k FROM secret ORDER BY 1, v"),
        ("b", "SELECT k, lag(v) OVER (ORDER BY k) FROM secret"),
        ("b", "SELECT k, sum(k) OVER w FROM secret WINDOW w AS (PARTITION BY v)"),
        ("b", "SELECT count(*) FILTER (WHERE v > '') FROM secret"),
        ("b", "SELECT CASE v WHEN 'x' THEN 1 END FROM secret"),
        ("b", "SELECT coalesce(NULL, v) FROM secret"),
        ("b", "SELECT k FROM secret WHERE v IN ('x')"),
        ("b", "SELECT k FROM secret WHERE v BETWEEN 'a' AND 'z'"),
        ("b", "SELECT k FROM secret WHERE v IS NOT NULL"),
        ("b", "SELECT k FROM secret WHERE (k, v) > (0, '')"),
        ("b", "WITH x AS (SELECT * FROM secret) SELECT k FROM x"),
        ("b", "SELECT k FROM (SELECT k, v FROM secret) AS x"),
        ("b", "UPDATE secret SET n = 1 WHERE v = 'x'"),
        ("b", "UPDATE secret SET n = length(v)"),
        ("b", "UPDATE secret SET n = 1 RETURNING v"),
        ("b", "UPDATE secret SET n = 1 RETURNING *"),
        ("b", "UPDATE secret SET v = 'x'"),
        ("b", "UPDATE secret SET (n, v) = (1, 'x')"),
        ("b", "UPDATE secret SET n = x.n FROM secret AS x WHERE x.v = secret.v"),
        ("b", "UPDATE secret SET _stale = true"),
        ("b", "DELETE FROM secret WHERE k = 1"),
        ("b", "COPY secret TO STDOUT"),
        ("b", "COPY secret (k, v) TO STDOUT"),
        ("maker", "CREATE TABLE x (LIKE secret)"),
        ("maker", "CREATE TABLE x (a INT) WITH (prefix = 'secret:1')"),
        ("maker", "CREATE TABLE x (a INT) WITH (min_memory = '1 GB')"),
        ("maker", "CREATE SCHEMA chief"),
        ("maker", "CREATE SCHEMA \"$user\""),
        ("maker", "CREATE OR REPLACE VIEW seen AS SELECT 1 AS other"),
        ("maker", "DROP VIEW seen"),
        ("maker", "ALTER DEFAULT PRIVILEGES FOR USER chief GRANT ALL ON TABLES TO maker"),
        ("maker", "CREATE TYPE x AS ENUM ('a'); DROP TYPE x"),
        ("boss", "CREATE ROLE x SUPERUSER"),
        ("boss", "ALTER ROLE boss SUPERUSER"),
        ("boss", "ALTER ROLE chief NOSUPERUSER"),
        ("boss", "ALTER ROLE chief PASSWORD 'x'"),
        ("boss", "ALTER ROLE chief RENAME TO x"),
        ("boss", "DROP ROLE chief"),
        ("boss", "GRANT chief TO boss"),
        ("boss", "GRANT pg_read_all_data TO boss"),
        ("boss", "GRANT pg_monitor TO boss"),
        ("boss", "GRANT reader TO boss"),
        ("boss", "CREATE ROLE x IN ROLE reader"),
        ("boss", "CREATE ROLE x IN ROLE chief"),
        ("boss", "CREATE ROLE x IN ROLE pg_write_all_data"),
        ("boss", "REVOKE pg_read_all_data FROM reader"),
        ("boss", "GRANT CREATE ON SCHEMA public TO boss"),
        ("boss", "SET ROLE reader"),
        ("signaler", &format!("SELECT pg_cancel_backend({pid})")),
        ("b", &format!("SELECT pg_cancel_backend({pid})")),
    ] {
        let said = sql(&daemon, role).ask(statement);
        let shown =
            said.iter().any(|one| one.starts_with("D ") || one.contains(SECRET) || one.starts_with("d "));
        if refusal(&said) != Some("42501") || shown {
            wrong.push(format!("{role}: {statement}: {said:?}"));
        }
    }
    for (role, statement) in [("a", "COPY secret FROM STDIN"), ("b", "COPY secret (k, n) FROM STDIN")] {
        // Refused when it begins: the client is not asked for its rows.
        let said = copy_in(&mut sql(&daemon, role), statement, b"");
        if refusal(&said) != Some("42501") || said.iter().any(|one| one.starts_with('G')) {
            wrong.push(format!("{role}: {statement}: {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(chief.ask("SELECT count(*), max(v) FROM secret")[1], format!("D 2|{SECRET}2"));
}

/// System tables show names, and neither rows nor what others do.
#[test]
fn system_tables_show_no_rows() {
    let (daemon, mut chief) = besieged("");
    done(
        &mut chief,
        &[
            &format!("SELECT v, '{SECRET}' FROM secret WHERE v = '{SECRET}'"),
            &format!("PREPARE p AS SELECT '{SECRET}'"),
            "SET application_name = 'x'",
            "ANALYZE secret",
            &format!("CREATE EXPIRY RULE r ON secret WHEN v = 'x{SECRET}'::text::int::text"),
        ],
    );
    for _ in 0..8 {
        daemon.advance(Duration::from_mins(1));
    }
    let mut a = sql(&daemon, "a");
    let said = a.ask("SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('v', 'r') AND nspname IN ('pg_catalog', 'information_schema')");
    let names: Vec<String> =
        said.iter().filter_map(|one| one.strip_prefix("D ")).map(|one| one.replace('|', ".")).collect();
    assert!(names.len() > 80, "{names:?}");
    let (mut read, mut wrong) = (0, Vec::new());
    // What a definition says is no secret: the condition of a rule, a default, a view's query.
    let definitions = ["sqlcached_expiry_rules.condition"];
    for name in &names {
        let said = a.ask(&format!("SELECT * FROM {name}"));
        assert_eq!(refusal(&said), None, "{name}: {said:?}");
        read += 1;
        if said.iter().any(|one| one.contains(SECRET))
            && !definitions.iter().any(|known| known.starts_with(&name["pg_catalog.".len()..]))
        {
            wrong.push(name.clone());
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(read > 80, "{read}");
    let said = a.ask("SELECT last_error FROM sqlcached_expiry_rules WHERE rule_name = 'r'");
    assert_eq!(said[1], "D NULL", "{said:?}");
    let said = a.ask("SELECT count(client_addr), count(*) FROM pg_stat_activity WHERE usename <> 'a'");
    assert!(said[1].starts_with("D 0|") && said[1] != "D 0|0", "{said:?}");
}

/// What a session began while it might do more: portals, statements and cursors after another role or a `REVOKE`, in
/// transactions and out of them; and names that mean another table for another role.
#[test]
fn what_began_as_another_role() {
    let (daemon, mut chief) = besieged("CREATE USER c; CREATE ROLE small; GRANT small TO c;");
    done(
        &mut chief,
        &[
            "GRANT SELECT ON secret TO c",
            "CREATE SCHEMA c",
            "CREATE SCHEMA small",
            "CREATE TABLE c.own (a TEXT)",
            "INSERT INTO c.own VALUES ('of c')",
            "CREATE TABLE small.own (a TEXT)",
            "INSERT INTO small.own VALUES ('of small')",
            "GRANT SELECT ON c.own TO c",
            "GRANT SELECT ON small.own TO small",
        ],
    );
    let mut c = sql(&daemon, "c");
    done(&mut c, &["PREPARE p AS SELECT v FROM secret", "PREPARE own AS SELECT a FROM own", "EXECUTE p"]);
    c.send(&[parse("s", "SELECT v FROM secret"), bind("", "s", &[]), message(b'S', b"")].concat());
    c.until_ready();
    let refused = |c: &mut Pg, statement: &str| {
        let said = c.ask(statement);
        assert_eq!(refusal(&said), Some("42501"), "{statement}: {said:?}");
    };
    // In a transaction, by either way, and what comes of it when it ends.
    done(&mut c, &["BEGIN", "SET LOCAL ROLE small"]);
    refused(&mut c, "SELECT v FROM secret");
    done(
        &mut c,
        &["ROLLBACK", "EXECUTE p", "BEGIN", "SAVEPOINT s", "SET ROLE small", "ROLLBACK TO s", "EXECUTE p"],
    );
    done(&mut c, &["SET ROLE small", "COMMIT"]);
    refused(&mut c, "EXECUTE p");
    refused(&mut c, "SELECT v FROM secret");
    c.send(&[bind("", "s", &[]), execute("", 0), message(b'S', b"")].concat());
    assert_eq!(refusal(&c.until_ready()), Some("42501"));
    // `$user` is the role that acts: the same text means another table.
    assert_eq!(c.ask("SELECT a FROM own")[1], "D of small");
    done(&mut c, &["RESET ROLE"]);
    assert_eq!(c.ask("SELECT a FROM own")[1], "D of c");
    assert_eq!(c.ask("EXECUTE own")[1], "D of c");
    done(&mut c, &["SET ROLE small"]);
    let said = c.ask("EXECUTE own");
    assert!(said.iter().all(|one| !one.contains("of c")), "{said:?}");
    done(&mut c, &["RESET ROLE"]);
    assert_eq!(c.ask("SELECT current_user")[1], "D c");
    done(&mut c, &["SET ROLE small"]);
    assert_eq!(c.ask("SELECT current_user")[1], "D small");
    assert_eq!(c.ask("SELECT session_user")[1], "D c");
    done(&mut c, &["RESET ROLE"]);
    // Bound before the REVOKE and run after it, by another session's hand in between.
    c.send(&[parse("", "SELECT v FROM secret"), bind("late", "", &[]), message(b'H', b"")].concat());
    done(&mut chief, &["REVOKE SELECT ON secret FROM c"]);
    c.send(&[execute("late", 0), message(b'S', b"")].concat());
    assert_eq!(refusal(&c.until_ready()), Some("42501"));
    // The role itself goes while its session is open.
    done(&mut chief, &["GRANT SELECT ON secret TO c"]);
    done(&mut c, &["EXECUTE p"]);
    done(&mut chief, &["DROP OWNED BY c", "DROP ROLE c"]);
    refused(&mut c, "EXECUTE p");
    refused(&mut c, "SELECT v FROM secret");
    // One of the same name is somebody else, whom the old session now is.
    done(&mut chief, &["CREATE USER c SUPERUSER"]);
    assert_eq!(c.ask("SELECT current_user")[1], "D c");
}

/// memcached's commands: keys of several tables, answers that nobody reads, quiet and large ones.
#[test]
fn ways_around_the_gate_by_memcached() {
    let (daemon, mut chief) = besieged("");
    done(&mut chief, &["GRANT ALL ON t TO a", "GRANT SELECT (k, v, w) ON secret TO b"]);
    let mut wrong = Vec::new();
    let large = "y".repeat(20_000);
    let huge = "y".repeat(300_000);
    for request in [
        "get secret:1".to_owned(),
        "get t:1 secret:1".into(),
        "get secret:1 t:1".into(),
        "gets t:1 secret:1".into(),
        "gat 0 t:1 secret:1".into(),
        "gats 100 secret:1".into(),
        "mg secret:1".into(),
        "mg secret:1 v k f t s c O1".into(),
        "mg secret:1 q v".into(),
        "mg c2VjcmV0OjE= b v".into(),
        "mg secret:1 E5 v".into(),
        "mg secret:1 R30 v".into(),
        "mg nothing N30 v".into(),
        "ms secret:1 1 T0\r\ny".into(),
        "ms secret:1 1 q\r\ny".into(),
        "ms c2VjcmV0OjE= 1 b\r\ny".into(),
        "ms secret:1 1 I C1\r\ny".into(),
        "ms secret:1 1 MP\r\ny".into(),
        "md secret:1 q".into(),
        "md secret:1 I T30".into(),
        "md secret:1 x".into(),
        "md c2VjcmV0OjE= b".into(),
        "ma secret:1 MD".into(),
        "ma secret:1 N0 J5 q".into(),
        "me secret:1".into(),
        "me c2VjcmV0OjE= b".into(),
        format!("set secret:1 0 0 {}\r\n{large}", large.len()),
        format!("set secret:1 0 0 {} noreply\r\n{large}", large.len()),
        format!("set secret:1 0 0 {}\r\n{huge}", huge.len()),
        format!("ms secret:1 {}\r\n{huge}", huge.len()),
        format!("append secret:1 0 0 {}\r\n{large}", large.len()),
        format!("cas secret:1 0 0 {} 1\r\n{large}", large.len()),
        "set secret:1 0 0 1 noreply\r\ny".into(),
        "add secret:9 0 0 1 noreply\r\ny".into(),
        "delete secret:1 noreply".into(),
        "incr secret:1 1 noreply".into(),
        "touch secret:1 1 noreply".into(),
        "flush_all noreply".into(),
        "flush_all 0".into(),
        "stats".into(),
        "stats items".into(),
        "stats settings".into(),
        "stats conns".into(),
        "stats cachedump 1 10".into(),
        "stats detail dump".into(),
        "stats detail on".into(),
        "stats sizes".into(),
        "stats reset".into(),
        "lru_crawler metadump all".into(),
        "lru_crawler metadump hash".into(),
        "lru_crawler mgdump all".into(),
        "lru_crawler crawl all".into(),
        "cache_memlimit 64".into(),
        "verbosity 2".into(),
        "watch fetchers".into(),
        "watch mutations evictions".into(),
        "watch connevents".into(),
        "refresh_certs".into(),
        "shutdown".into(),
        "shutdown graceful".into(),
        "sql 20\r\nSELECT v FROM secret".into(),
        "sql 14\r\nSET ROLE chief".into(),
        "sql 30\r\nDELETE FROM secret WHERE k = k".into(),
    ] {
        let mut client = memcached(&daemon, "a");
        client.send(format!("{request}\r\nmn\r\n").as_bytes());
        let mut said = Vec::new();
        loop {
            let line = client.line();
            if line == "MN" {
                break;
            }
            said.push(line);
        }
        let quiet = request.contains("noreply") || request.contains(" q");
        let refused = said.iter().any(|line| line.contains("permission denied") || line.contains("42501"));
        let harmless = said.first().is_some_and(|line| {
            line == "ERROR" || line.starts_with("CLIENT_ERROR") || line.starts_with("ERROR 0A000")
        });
        if said.iter().any(|line| line.contains(SECRET)) || !(refused || harmless || quiet) {
            wrong.push(format!("{}: {said:?}", &request[..request.len().min(60)]));
        }
    }
    // Columns of a table are no row: a key that memcached reads needs all of them.
    let mut b = sql(&daemon, "chief");
    done(&mut b, &["ALTER ROLE b PASSWORD 'x'"]);
    for request in ["get secret:1", "mg secret:1 v", "me secret:1"] {
        let mut client = memcached(&daemon, "b");
        client.send(format!("{request}\r\n").as_bytes());
        let line = client.line();
        if line != "CLIENT_ERROR permission denied" {
            wrong.push(format!("b: {request}: {line}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let left = chief.ask("SELECT count(*), min(v), max(n) FROM secret");
    assert_eq!(left[1], format!("D 2|{SECRET}|8"));
    assert!(daemon.connect().stream.peer_addr().is_ok());
}

/// Every opcode of the binary protocol, the quiet ones among them: an error is answered by each.
#[test]
fn ways_around_the_gate_by_the_binary_protocol() {
    let (daemon, mut chief) = besieged("");
    let mut wrong = Vec::new();
    for opcode in 0..=0xff_u8 {
        // No-op, version, quit, the list of mechanisms and the exchange are for everybody.
        if matches!(opcode, 0x07 | 0x17 | 0x0a | 0x0b | 0x20..=0x22) {
            continue;
        }
        for extras in [0, 4, 8, 20] {
            let mut client = daemon.connect();
            let key: &[u8] = if matches!(opcode, 0x08 | 0x18) { b"" } else { b"secret:1" };
            let value: &[u8] =
                if extras == 8 || matches!(opcode, 0x0e | 0x0f | 0x19 | 0x1a) { b"y" } else { b"" };
            let bytes = [
                frame(0x21, b"", b"PLAIN", b"\0a\0x"),
                frame(opcode, &vec![0; extras], key, value),
                frame(0x0a, b"", b"", b""),
            ];
            client.send(&bytes.concat());
            assert_eq!(response(&mut client.stream).map(|(_, status, _)| status), Some(0));
            while let Some((of, status, body)) = response(&mut client.stream) {
                if of == 0x0a {
                    break;
                }
                let text = String::from_utf8_lossy(&body).into_owned();
                // 1: no statistics of that name; 4: wrong extras; 0x20: not allowed; 0x81: unknown.
                let refused = matches!(status, 0x04 | 0x20 | 0x81) || (opcode, status) == (0x10, 0x01);
                if !refused || text.contains(SECRET) {
                    wrong.push(format!("opcode {opcode:#04x}, {extras} bytes of extras: {status:#x} {text}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(chief.ask("SELECT count(*), min(v) FROM secret")[1], format!("D 2|{SECRET}"));
}

fn frame(opcode: u8, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let total = u32::try_from(extras.len() + key.len() + value.len()).unwrap();
    let mut frame =
        vec![0x80, opcode, 0, u8::try_from(key.len()).unwrap(), u8::try_from(extras.len()).unwrap(), 0, 0, 0];
    frame.extend(total.to_be_bytes());
    frame.extend([0; 12]);
    [&frame, extras, key, value].concat()
}

/// The next response: its opcode, status and body; none where the server has closed.
fn response(stream: &mut std::net::TcpStream) -> Option<(u8, u16, Vec<u8>)> {
    let mut head = [0; 24];
    stream.read_exact(&mut head).ok()?;
    let mut body = vec![0; u32::from_be_bytes(head[8..12].try_into().unwrap()) as usize];
    stream.read_exact(&mut body).ok()?;
    Some((head[1], u16::from_be_bytes([head[6], head[7]]), body))
}
