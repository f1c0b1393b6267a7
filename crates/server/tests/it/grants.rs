//! Privileges of tables and columns: every command of every protocol for every grant, from one table, and the ways
//! around the gate that were thought of.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use engine::auth::{Access, Roles, Rules};
use server::Config;

use crate::harness::{Client, Daemon, config, daemon_with};
use crate::pg::{Pg, bind, execute, message, packet, parse, query};

/// What a role is granted on `t`, whose columns are `k`, `v` and `n`, and what that brings.
const GRANTED: &[(&str, &str)] = &[
    ("", ""),
    ("SELECT", "r*"),
    ("INSERT", "a*"),
    ("UPDATE", "w*"),
    ("DELETE", "d"),
    ("TRUNCATE", "D"),
    ("SELECT (v)", "rv"),
    ("SELECT (k, v)", "rk rv"),
    ("SELECT (k, v, n)", "r*"),
    ("INSERT (k, v)", "ak av"),
    ("UPDATE (v)", "wv"),
    ("UPDATE (k, v, n)", "w*"),
    ("SELECT, UPDATE", "r* w*"),
    ("INSERT, UPDATE", "a* w*"),
    ("SELECT (v), UPDATE (v)", "rv wv"),
    ("SELECT (k), INSERT (k, v), UPDATE (v)", "rk ak av wv"),
    ("SELECT, INSERT, UPDATE, DELETE", "r* a* w* d"),
    ("ALL", "r* a* w* d D"),
];

/// A privilege that a command takes: a letter of PostgreSQL's, and the columns. `*` is all of them, `?` any one.
type Takes = &'static [&'static str];

/// Commands of memcached's text protocol on the row of `t` with the key 1, and what they take.
const TEXT: &[(&str, Takes)] = &[
    ("get t:1", &["r*"]),
    ("gets t:1", &["r*"]),
    ("gat 60 t:1", &["r*", "w*"]),
    ("set t:1 0 0 1\r\nx", &["a*", "w*"]),
    ("add t:1 0 0 1\r\nx", &["a*"]),
    ("replace t:1 0 0 1\r\nx", &["w*"]),
    ("append t:1 0 0 1\r\nx", &["w*"]),
    ("prepend t:1 0 0 1\r\nx", &["w*"]),
    ("cas t:1 0 0 1 7\r\nx", &["w*"]),
    ("delete t:1", &["d"]),
    ("incr t:1 1", &["r*", "w*"]),
    ("decr t:1 1", &["r*", "w*"]),
    ("touch t:1 60", &["w*"]),
    ("mg t:1 v", &["r*"]),
    ("mg t:1 s", &["r*"]),
    ("mg t:1 v T30", &["r*", "w*"]),
    ("mg t:1 v N30", &["r*", "a*", "w*"]),
    ("ms t:1 1\r\nx", &["a*", "w*"]),
    ("ms t:1 1 ME\r\nx", &["a*"]),
    ("ms t:1 1 MR\r\nx", &["w*"]),
    ("ms t:1 1 MA\r\nx", &["w*"]),
    ("ms t:1 1 MA N60\r\nx", &["a*", "w*"]),
    ("md t:1", &["d"]),
    ("md t:1 I", &["w*"]),
    ("ma t:1", &["r*", "w*"]),
    ("ma t:1 N60", &["r*", "w*", "a*"]),
    ("me t:1", &["r*"]),
    // Of every table that memcached reaches, and one has nothing of the others.
    ("flush_all", &["superuser"]),
    ("lru_crawler metadump all", &["superuser"]),
    ("watch mutations", &["superuser"]),
    ("verbosity 1", &["superuser"]),
    ("stats reset", &["superuser"]),
    ("stats items", &["monitor"]),
];

/// Requests of the binary protocol: opcode, extras, value.
const BINARY: &[(u8, &[u8], &[u8], Takes)] = &[
    (0x00, b"", b"", &["r*"]),
    (0x0c, b"", b"", &["r*"]),
    (0x1d, b"\0\0\0\x3c", b"", &["r*", "w*"]),
    (0x1c, b"\0\0\0\x3c", b"", &["w*"]),
    (0x01, &[0; 8], b"x", &["a*", "w*"]),
    (0x02, &[0; 8], b"x", &["a*"]),
    (0x03, &[0; 8], b"x", &["w*"]),
    (0x04, b"", b"", &["d"]),
    (0x05, &[0; 20], b"", &["r*", "w*", "a*"]),
    (0x0e, b"", b"x", &["w*"]),
    (0x0f, b"", b"x", &["w*"]),
];

/// Statements, and what they take. `#` is a new number each time.
const STATEMENTS: &[(&str, Takes)] = &[
    ("SELECT k, v FROM t", &["rk", "rv"]),
    ("SELECT v FROM t", &["rv"]),
    ("SELECT * FROM t", &["r*"]),
    ("SELECT t.* FROM t", &["r*"]),
    ("SELECT count(*) FROM t", &["r?"]),
    ("SELECT 1 FROM t", &["r?"]),
    ("SELECT count(n) FROM t", &["rn"]),
    ("SELECT v FROM t WHERE k = '1'", &["rv", "rk"]),
    ("SELECT v FROM t WHERE (k = '1')", &["rv", "rk"]),
    ("SELECT x.v FROM t AS x WHERE x.n > 0", &["rv", "rn"]),
    ("SELECT v FROM t ORDER BY n LIMIT 1", &["rv", "rn"]),
    ("SELECT max(v) FROM t GROUP BY n", &["rv", "rn"]),
    ("SELECT v FROM t GROUP BY v HAVING min(k) > ''", &["rv", "rk"]),
    ("SELECT sum(n) OVER (ORDER BY k) FROM t", &["rn", "rk"]),
    ("WITH x AS (SELECT v FROM t) SELECT * FROM x", &["rv"]),
    ("WITH x AS (SELECT v FROM t), y AS (SELECT v FROM x) SELECT 1 FROM y", &["rv"]),
    ("WITH RECURSIVE x(a) AS (SELECT n FROM t UNION SELECT a FROM x) SELECT a FROM x", &["rn"]),
    ("WITH seen AS (SELECT v FROM t) SELECT v FROM seen", &["rv"]),
    ("SELECT y.v FROM (SELECT v FROM t) AS y", &["rv"]),
    ("SELECT y.v FROM (SELECT v FROM t) AS seen(v) JOIN t AS y ON true", &["rv"]),
    ("SELECT (SELECT v FROM t LIMIT 1)", &["rv"]),
    ("SELECT 1 WHERE EXISTS (SELECT 1 FROM t WHERE n = 1)", &["rn"]),
    ("SELECT a.v FROM t a JOIN t b ON a.k = b.k", &["rv", "rk"]),
    ("SELECT v FROM t UNION SELECT k FROM t", &["rv", "rk"]),
    // Which columns these compare, SQLite does not tell: all are needed.
    ("SELECT a.k FROM t a JOIN t b USING (k)", &["r*"]),
    ("SELECT a.k FROM t a NATURAL JOIN t b", &["r*"]),
    ("SELECT row_to_json(t) FROM t", &["r*"]),
    ("SELECT v FROM t WHERE n IN (SELECT n FROM t)", &["rv", "rn"]),
    ("SELECT CASE WHEN n = 1 THEN 2 END FROM t", &["rn"]),
    ("EXPLAIN SELECT v FROM t", &["rv"]),
    ("COPY t TO STDOUT", &["r*"]),
    ("COPY t (v) TO STDOUT", &["rv"]),
    ("COPY (SELECT k FROM t) TO STDOUT", &["rk"]),
    ("SELECT other FROM seen", &["view"]),
    ("INSERT INTO t (k, v) VALUES ('#', 'x')", &["ak", "av"]),
    ("INSERT INTO t VALUES ('#', 'x', 1)", &["a*"]),
    ("INSERT INTO t (k, v) SELECT 's#', v FROM t LIMIT 1", &["ak", "av", "rv"]),
    ("INSERT INTO t (k, v) VALUES ('#', 'x') RETURNING n", &["ak", "av", "rn"]),
    ("INSERT INTO t (k, v) VALUES ('1', 'x') ON CONFLICT DO NOTHING", &["ak", "av"]),
    ("INSERT INTO t (k, v) VALUES ('1', 'x') ON CONFLICT (k) DO NOTHING", &["ak", "av", "rk"]),
    (
        "INSERT INTO t (k, v) VALUES ('1', 'x') ON CONFLICT (k) DO UPDATE SET v = excluded.v",
        &["ak", "av", "wv", "rk", "rv"],
    ),
    (
        "INSERT INTO t (k, v) VALUES ('1', 'x') ON CONFLICT (k) DO UPDATE SET v = 'y' WHERE t.n = 0",
        &["ak", "av", "wv", "rk", "rn"],
    ),
    ("UPDATE t SET v = 'x'", &["wv"]),
    ("UPDATE t SET v = 'x' WHERE k = '1'", &["wv", "rk"]),
    ("UPDATE t SET v = v || 'x' WHERE k = '1'", &["wv", "rv", "rk"]),
    ("UPDATE t SET v = (SELECT max(n) FROM t)", &["wv", "rn"]),
    ("UPDATE t SET (v, n) = ('a', 1)", &["wv", "wn"]),
    ("UPDATE t SET v = 'x' RETURNING k", &["wv", "rk"]),
    ("UPDATE t SET v = o.v FROM t AS o WHERE o.k = '2'", &["wv", "rv", "rk"]),
    (
        "MERGE INTO t USING (SELECT '1' AS k, 'x' AS v) AS o ON t.k = o.k WHEN MATCHED THEN UPDATE SET v = o.v",
        &["wv", "rk"],
    ),
    (
        "MERGE INTO t USING (SELECT '9' AS k) AS o ON t.k = o.k WHEN MATCHED AND n = 0 THEN DELETE \
         WHEN NOT MATCHED AND false THEN INSERT (k, v) VALUES (o.k, 'x')",
        &["d", "ak", "av", "rk", "rn"],
    ),
    ("DELETE FROM t WHERE k = '9'", &["d", "rk"]),
    ("DELETE FROM t WHERE k = '9' RETURNING v", &["d", "rk", "rv"]),
    // What a part writes and reads.
    ("WITH x AS (UPDATE t SET v = 'x' RETURNING k) SELECT k FROM x", &["wv", "rk"]),
    ("WITH x AS (DELETE FROM t WHERE k = '9' RETURNING v) SELECT 1", &["d", "rk", "rv"]),
    ("WITH x AS (INSERT INTO t (k, v) VALUES ('#', 'x')) SELECT n FROM t", &["ak", "av", "rn"]),
    (
        "WITH x AS (SELECT 1), y AS (DELETE FROM t WHERE k = '9') UPDATE t SET n = 1 WHERE k = '8'",
        &["d", "rk", "wn"],
    ),
    ("EXPLAIN ANALYZE DELETE FROM t WHERE k = '9'", &["d", "rk"]),
    ("EXPLAIN (FORMAT JSON) SELECT v FROM t", &["rv"]),
    ("DELETE FROM t USING t AS o WHERE o.n = -1", &["d", "rn"]),
    ("TRUNCATE t", &["D"]),
    ("ALTER TABLE t ADD COLUMN z INT", &["owner"]),
    ("CREATE INDEX z ON t (v)", &["owner"]),
    ("DROP TABLE t", &["owner"]),
    ("COMMENT ON TABLE t IS 'x'", &["owner"]),
    ("ALTER TABLE t OWNER TO CURRENT_USER", &["owner"]),
    ("CREATE EXPIRY RULE z ON t WHEN n > 5 EVERY '1 min'", &["owner"]),
    ("GRANT SELECT ON t TO PUBLIC", &["owner"]),
    ("CREATE TABLE z (a INT)", &["superuser"]),
    ("CREATE VIEW z AS SELECT * FROM t", &["superuser"]),
    ("CREATE TYPE z AS ENUM ('a')", &["superuser"]),
    ("VACUUM t", &["superuser"]),
    ("SELECT rolpassword FROM pg_authid WHERE 1 / (rolname = 'chief')::int = 1 AND rolname = 'nobody'", &[]),
];

/// Each privilege by itself: `r*` is `rk`, `rv` and `rn`.
fn each(privileges: &str) -> BTreeSet<String> {
    let columns = |one: &str| match one.strip_suffix('*') {
        Some(letter) => ["k", "v", "n"].map(|column| format!("{letter}{column}")).to_vec(),
        None => vec![one.to_owned()],
    };
    privileges.split_whitespace().flat_map(columns).collect()
}

/// Whether what was granted is enough.
fn is_enough(granted: &str, takes: Takes) -> bool {
    let granted = each(granted);
    takes.iter().all(|one| match one.strip_suffix('?') {
        Some(letter) => granted.iter().any(|own| own.starts_with(letter)),
        None => each(one).is_subset(&granted),
    })
}

/// How a grant comes to a role.
const WAYS: &[&str] = &["self", "group", "everybody"];

fn user(grant: usize, way: usize) -> String {
    format!("u{grant}_{way}")
}

/// A daemon with a role for each grant and each way, and a table for each of them: `PUBLIC` is everybody.
pub(crate) fn guarded(more: &str) -> Daemon {
    let addresses = vec!["127.0.0.1:0".parse().unwrap()];
    let daemon = daemon_with(&Config { sql_addresses: addresses, ..config() });
    let rules = "host all all 127.0.0.1/32 trust protocol=sql\nhost all all 127.0.0.1/32 password";
    let mut roles = format!("CREATE USER chief SUPERUSER; {more}");
    for (grant, way) in (0..GRANTED.len()).flat_map(|grant| (0..WAYS.len()).map(move |way| (grant, way))) {
        let name = user(grant, way);
        let _grows = write!(roles, "CREATE ROLE g_{name}; CREATE USER {name} PASSWORD 'x' IN ROLE g_{name};");
    }
    let (rules, roles) = (Rules::parse(rules).unwrap(), Roles::parse(&roles).unwrap());
    daemon.engine.access.set(Access { rules, roles: Some(roles), ..Access::default() });
    daemon.engine.access.on_change(Box::new(|_| Ok(())));
    daemon
}

pub(crate) fn sql(daemon: &Daemon, role: &str) -> Pg {
    let mut pg = Pg::plain(daemon);
    pg.send(&packet(3 << 16, format!("user\0{role}\0\0").as_bytes()));
    let said = pg.until_ready();
    assert!(said.last().is_some_and(|last| last.starts_with('Z')), "{role}: {said:?}");
    pg
}

/// Gives statements that must work.
pub(crate) fn done(pg: &mut Pg, statements: &[&str]) {
    for statement in statements {
        let said = pg.ask(statement);
        assert!(!said.iter().any(|one| one.starts_with('E')), "{statement}: {said:?}");
    }
}

/// The SQLSTATE of an error; nothing of an answer.
pub(crate) fn refusal(said: &[String]) -> Option<&str> {
    said.iter().find(|one| one.starts_with('E')).and_then(|one| one.split_whitespace().nth(2))
}

pub(crate) fn memcached(daemon: &Daemon, role: &str) -> Client<TcpStream> {
    let mut client = daemon.connect();
    client.ask(format!("set login 0 0 {}\r\n{role} x\r\n", role.len() + 2).as_bytes(), b"STORED\r\n");
    client
}

/// The table as the commands expect it.
pub(crate) fn filled(chief: &mut Pg) {
    done(chief, &["DELETE FROM t", "INSERT INTO t VALUES ('1', '5', 1), ('2', '6', 2)"]);
}

pub(crate) fn make(chief: &mut Pg) {
    done(
        chief,
        &[
            "CREATE TABLE t (k TEXT PRIMARY KEY, v TEXT, n INT) WITH (prefix = 't:', value = v)",
            "CREATE TABLE base (other INT)",
            "CREATE VIEW seen AS SELECT other FROM base",
        ],
    );
}

/// Every cell of role, protocol, command and privilege.
#[test]
fn each_cell_of_the_matrix() {
    let daemon = guarded("");
    let mut chief = sql(&daemon, "chief");
    make(&mut chief);
    let (mut cells, mut refused, mut number, mut wrong) = (0, 0, 0, Vec::new());
    for (at, (grant, brings)) in GRANTED.iter().enumerate() {
        for (way, kind) in WAYS.iter().enumerate() {
            let role = user(at, way);
            let to = match *kind {
                "self" => role.clone(),
                "group" => format!("g_{role}"),
                _ => "PUBLIC".into(),
            };
            if !grant.is_empty() {
                done(&mut chief, &[&format!("GRANT {grant} ON t TO {to}")]);
            }
            let mut pg = sql(&daemon, &role);
            for native in ["on", "off"] {
                done(&mut pg, &[&format!("SET native_execution = {native}")]);
                for (statement, takes) in STATEMENTS {
                    number += 1;
                    let text = statement.replace('#', &number.to_string());
                    let said = pg.ask(&text);
                    let may = is_enough(brings, takes);
                    if (refusal(&said) != Some("42501")) != may {
                        wrong.push(format!("{grant} by {kind}: {text}: {said:?}"));
                    }
                    if !may {
                        refused += 1;
                    }
                    cells += 1;
                    if may && !statement.starts_with("SELECT") {
                        filled(&mut chief);
                    }
                }
            }
            filled(&mut chief);
            let mut client = memcached(&daemon, &role);
            for (request, takes) in TEXT {
                client.send(format!("{request}\r\nmn\r\n").as_bytes());
                let mut said = client.line();
                let first = said.clone();
                while said != "MN" {
                    said = client.line();
                }
                let may = is_enough(brings, takes);
                let was_refused = first == "CLIENT_ERROR permission denied";
                if was_refused == may {
                    wrong.push(format!("{grant} by {kind}: {request}: {first}"));
                }
                refused += usize::from(was_refused);
                cells += 1;
                if may {
                    filled(&mut chief);
                }
            }
            let (mut client, mut bytes) = (daemon.connect(), Vec::new());
            bytes.extend(frame(0x21, b"", b"PLAIN", format!("\0{role}\0x").as_bytes()));
            for (opcode, extras, value, takes) in BINARY {
                bytes.extend(frame(*opcode, extras, b"t:1", value));
                client.send(&bytes);
                if bytes.get(1) == Some(&0x21) {
                    assert_eq!(status(&mut client), 0);
                }
                bytes.clear();
                let (status, may) = (status(&mut client), is_enough(brings, takes));
                if (status != 0x20) != may {
                    wrong.push(format!("{grant} by {kind}: opcode {opcode:#x}: {status:#x}"));
                }
                refused += usize::from(!may);
                cells += 1;
                if may {
                    filled(&mut chief);
                }
            }
            if !grant.is_empty() {
                done(&mut chief, &[&format!("REVOKE {grant} ON t FROM {to}")]);
            }
            // What was taken away is gone for sessions that are open.
            assert_eq!(refusal(&pg.ask("SELECT v FROM t")), Some("42501"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{cells} cells, {refused} of them refused");
    assert!(cells > 7_000 && refused > 4_000, "{cells} {refused}");
}

fn frame(opcode: u8, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let total = u32::try_from(extras.len() + key.len() + value.len()).unwrap();
    let mut frame =
        vec![0x80, opcode, 0, u8::try_from(key.len()).unwrap(), u8::try_from(extras.len()).unwrap()];
    frame.extend([0; 3]);
    frame.extend(total.to_be_bytes());
    frame.extend([0; 12]);
    [frame, extras.to_vec(), key.to_vec(), value.to_vec()].concat()
}

/// The status of the next response of the binary protocol.
fn status(client: &mut Client<TcpStream>) -> u16 {
    use std::io::Read;
    let mut head = [0; 24];
    client.stream.read_exact(&mut head).unwrap();
    let body = u32::from_be_bytes([head[8], head[9], head[10], head[11]]);
    client.stream.read_exact(&mut vec![0; body as usize]).unwrap();
    u16::from_be_bytes([head[6], head[7]])
}

/// A statement that was prepared, a cursor and a portal that were opened while something was allowed, after that.
#[test]
fn what_was_prepared_before() {
    let daemon = guarded("CREATE USER a; CREATE USER b IN ROLE a;");
    let mut chief = sql(&daemon, "chief");
    make(&mut chief);
    filled(&mut chief);
    done(&mut chief, &["GRANT SELECT, UPDATE ON t TO b"]);
    let mut pg = sql(&daemon, "b");
    done(
        &mut pg,
        &["PREPARE p AS SELECT v FROM t", "PREPARE w AS UPDATE t SET v = 'x'", "EXECUTE p", "EXECUTE w"],
    );
    pg.send(&[parse("s", "SELECT v FROM t"), message(b'S', b"")].concat());
    pg.until_ready();
    // Another role of the same session.
    done(&mut pg, &["SET ROLE a"]);
    for statement in ["EXECUTE p", "EXECUTE w", "SELECT v FROM t"] {
        assert_eq!(refusal(&pg.ask(statement)), Some("42501"), "{statement}");
    }
    pg.send(&[bind("", "s", &[]), execute("", 0), message(b'S', b"")].concat());
    assert_eq!(refusal(&pg.until_ready()), Some("42501"));
    done(&mut pg, &["RESET ROLE", "EXECUTE p"]);
    // Taken away in the middle of a transaction: what comes next is refused.
    done(&mut pg, &["BEGIN", "DECLARE c CURSOR FOR SELECT v FROM t", "FETCH 1 FROM c"]);
    done(&mut chief, &["REVOKE SELECT ON t FROM b"]);
    assert_eq!(refusal(&pg.ask("EXECUTE p")), Some("42501"));
    done(&mut pg, &["ROLLBACK"]);
    assert_eq!(refusal(&pg.ask("DECLARE c CURSOR WITH HOLD FOR SELECT v FROM t")), Some("42501"));
    // One `Query` message with several statements, the first of which changes the role.
    let said = pg.ask("SET ROLE a; UPDATE t SET v = 'y'");
    assert_eq!(refusal(&said), Some("42501"));
}

/// A role without SELECT of a column does not learn by the hidden column where it is NULL.
#[test]
fn where_a_column_is_null_is_part_of_it() {
    let daemon = guarded("CREATE USER reader;");
    let (mut chief, mut reader) = (sql(&daemon, "chief"), sql(&daemon, "reader"));
    done(
        &mut chief,
        &[
            "CREATE TABLE q (k INT PRIMARY KEY, a INT, b INT)",
            "CREATE INDEX q_a ON q (a)",
            "CREATE INDEX q_b ON q (b)",
            "INSERT INTO q VALUES (1, 2, NULL)",
            "GRANT SELECT (k, a) ON q TO reader",
        ],
    );
    done(&mut reader, &["SELECT k FROM q ORDER BY a", "SELECT \"_null 1\" FROM q"]);
    for statement in
        ["SELECT k FROM q ORDER BY b", "SELECT \"_null 2\" FROM q", "SELECT k FROM q WHERE \"_null 2\" = 1"]
    {
        assert_eq!(refusal(&reader.ask(statement)), Some("42501"), "{statement}");
    }
}

/// Views read with the rights of their owners, and what stands under them is no way around.
#[test]
fn views_have_the_rights_of_their_owners() {
    let daemon = guarded("CREATE USER maker; CREATE USER reader; GRANT CREATE ON SCHEMA public TO maker;");
    let mut chief = sql(&daemon, "chief");
    make(&mut chief);
    filled(&mut chief);
    done(
        &mut chief,
        &[
            "GRANT SELECT (k, v), UPDATE (v) ON t TO maker",
            "GRANT SELECT ON t TO maker",
            "REVOKE SELECT ON t FROM maker",
        ],
    );
    done(&mut chief, &["GRANT SELECT (k, v) ON t TO maker"]);
    let (mut maker, mut reader) = (sql(&daemon, "maker"), sql(&daemon, "reader"));
    done(&mut maker, &["CREATE VIEW shown AS SELECT k, v FROM t", "CREATE VIEW hidden AS SELECT n FROM t"]);
    done(
        &mut maker,
        &["CREATE VIEW above AS SELECT v FROM shown", "GRANT SELECT ON shown, hidden, above TO reader"],
    );
    for (statement, expected) in [
        ("SELECT v FROM shown", None),
        ("SELECT v FROM above", None),
        ("SELECT n FROM hidden", Some("42501")),
        ("SELECT v FROM t", Some("42501")),
        ("WITH shown AS (SELECT v FROM t) SELECT * FROM shown", Some("42501")),
        ("WITH shown AS (SELECT n FROM t) SELECT * FROM shown", Some("42501")),
        ("SELECT x.v FROM shown x JOIN t ON true", Some("42501")),
        ("UPDATE shown SET v = 'x'", Some("42501")),
        ("DELETE FROM shown", Some("42501")),
    ] {
        let said = reader.ask(statement);
        assert_eq!(refusal(&said), expected, "{statement}: {said:?}");
    }
    // The owner loses what the view stands on.
    done(&mut chief, &["REVOKE SELECT (v) ON t FROM maker"]);
    assert_eq!(refusal(&reader.ask("SELECT v FROM above")), Some("42501"));
    done(&mut chief, &["GRANT SELECT ON t TO maker"]);
    done(&mut reader, &["SELECT v FROM above", "SELECT n FROM hidden"]);
    // Replaced, it keeps its owner and its grants.
    done(&mut maker, &["CREATE OR REPLACE VIEW shown AS SELECT k, v FROM t WHERE n > 0"]);
    done(&mut reader, &["SELECT v FROM shown"]);
    assert_eq!(refusal(&reader.ask("CREATE OR REPLACE VIEW shown AS SELECT 1")), Some("42501"));
    assert_eq!(refusal(&reader.ask("DROP VIEW shown")), Some("42501"));
}

/// Owners, grants that are handed on, defaults, and roles that go.
#[test]
fn owners_and_what_they_hand_on() {
    let daemon = guarded(
        "CREATE USER maker; CREATE USER friend; CREATE USER other; GRANT CREATE ON SCHEMA public TO maker;
         ALTER DEFAULT PRIVILEGES FOR ROLE maker GRANT SELECT ON TABLES TO other;",
    );
    let mut chief = sql(&daemon, "chief");
    let (mut maker, mut friend, mut other) =
        (sql(&daemon, "maker"), sql(&daemon, "friend"), sql(&daemon, "other"));
    done(&mut maker, &["CREATE TABLE own (a INT PRIMARY KEY, b INT)", "INSERT INTO own VALUES (1, 2)"]);
    done(&mut other, &["SELECT * FROM own"]);
    assert_eq!(refusal(&friend.ask("CREATE TABLE mine (a INT)")), Some("42501"));
    assert_eq!(refusal(&friend.ask("SELECT * FROM own")), Some("42501"));
    done(&mut maker, &["GRANT SELECT ON own TO friend WITH GRANT OPTION", "CREATE TABLE copied (LIKE own)"]);
    done(&mut friend, &["GRANT SELECT ON own TO other"]);
    assert_eq!(refusal(&friend.ask("GRANT UPDATE ON own TO other")), Some("42501"));
    assert_eq!(refusal(&maker.ask("REVOKE SELECT ON own FROM friend")), Some("2BP01"));
    done(&mut maker, &["REVOKE SELECT ON own FROM friend CASCADE"]);
    assert_eq!(refusal(&friend.ask("SELECT * FROM own")), Some("42501"));
    done(&mut other, &["SELECT * FROM own"]);
    for (role, statement, expected) in [
        ("chief", "DROP ROLE maker", Some("2BP01")),
        ("chief", "DROP ROLE other", Some("2BP01")),
        ("maker", "ALTER TABLE own OWNER TO friend", Some("42501")),
        ("maker", "CREATE TABLE p (k TEXT PRIMARY KEY, v TEXT) WITH (prefix = 'mine:')", Some("42501")),
        ("maker", "ALTER TABLE own SET (shared_memory = on)", Some("42501")),
        ("maker", "GRANT SELECT ON own TO nobody", Some("42704")),
        ("maker", "GRANT SELECT (c) ON own TO friend", Some("42703")),
        ("maker", "GRANT DELETE (a) ON own TO friend", Some("0LP01")),
        ("maker", "GRANT USAGE ON own TO friend", Some("0LP01")),
        ("maker", "GRANT SELECT ON nowhere TO friend", Some("42P01")),
        ("maker", "GRANT SELECT ON pg_class TO friend", Some("42501")),
        ("maker", "GRANT CREATE ON SCHEMA public TO friend", Some("42501")),
        ("friend", "ALTER DEFAULT PRIVILEGES FOR ROLE maker GRANT ALL ON TABLES TO friend", Some("42501")),
        ("chief", "ALTER TABLE own OWNER TO friend", None),
        ("friend", "SELECT * FROM own", None),
        ("maker", "SELECT * FROM own", Some("42501")),
    ] {
        let pg = match role {
            "chief" => &mut chief,
            "maker" => &mut maker,
            _ => &mut friend,
        };
        let said = pg.ask(statement);
        assert_eq!(refusal(&said), expected, "{role}: {statement}: {said:?}");
    }
    // Renamed, it keeps what it has.
    done(&mut chief, &["ALTER ROLE other RENAME TO another", "GRANT SELECT ON own TO another"]);
    done(&mut sql(&daemon, "another"), &["SELECT * FROM own"]);
    // A dropped role of the same name begins with nothing.
    done(
        &mut chief,
        &[
            "DROP TABLE own, copied",
            "ALTER DEFAULT PRIVILEGES FOR ROLE maker REVOKE ALL ON TABLES FROM another",
        ],
    );
    done(&mut chief, &["DROP ROLE another", "CREATE USER another", "CREATE TABLE own (a INT)"]);
    assert_eq!(refusal(&sql(&daemon, "another").ask("SELECT * FROM own")), Some("42501"));
}

/// `ROLLBACK` takes a grant back, and not what somebody else granted meanwhile.
#[test]
fn a_grant_of_a_transaction() {
    let daemon = guarded("CREATE USER a; CREATE USER b;");
    let (mut chief, mut second) = (sql(&daemon, "chief"), sql(&daemon, "chief"));
    make(&mut chief);
    let (mut a, mut b) = (sql(&daemon, "a"), sql(&daemon, "b"));
    done(&mut chief, &["BEGIN", "GRANT SELECT ON t TO a"]);
    done(&mut second, &["GRANT SELECT ON t TO b"]);
    done(&mut chief, &["ROLLBACK"]);
    assert_eq!(refusal(&a.ask("SELECT * FROM t")), Some("42501"));
    done(&mut b, &["SELECT * FROM t"]);
    // A table that is altered and rolled back keeps the privileges of now: one that was revoked does not come back.
    done(&mut chief, &["BEGIN", "ALTER TABLE t ADD COLUMN z INT"]);
    done(&mut second, &["REVOKE SELECT ON t FROM b"]);
    done(&mut chief, &["ROLLBACK"]);
    assert_eq!(refusal(&b.ask("SELECT * FROM t")), Some("42501"));
}

/// What a session hears and sees of others: rows that left a table, and statements.
#[test]
fn what_others_do_is_theirs() {
    let daemon = guarded("CREATE USER a; CREATE USER b IN ROLE pg_monitor;");
    let mut chief = sql(&daemon, "chief");
    make(&mut chief);
    done(&mut chief, &["ALTER TABLE t SET (notify = 'gone')"]);
    filled(&mut chief);
    let (mut a, mut b) = (sql(&daemon, "a"), sql(&daemon, "b"));
    assert_eq!(refusal(&a.ask("LISTEN gone")), Some("42501"));
    done(&mut chief, &["GRANT SELECT ON t TO a"]);
    done(&mut a, &["LISTEN gone", "LISTEN free"]);
    let heard = |a: &mut Pg, last: &str| {
        let mut all = Vec::new();
        // A tick announces the rows, and `NOTIFY` announces at once: the last announcement may come first.
        for _ in 0..200 {
            daemon.advance(Duration::from_millis(100));
            all.extend(a.ask("SELECT 1").into_iter().filter(|one| one.starts_with('A')));
            if all.len() > 1 && all.iter().any(|one| one.contains(last)) {
                break;
            }
        }
        all
    };
    done(&mut chief, &["DELETE FROM t WHERE k = '1'", "NOTIFY free, 'first'"]);
    let told = heard(&mut a, "first");
    assert_eq!(told.len(), 2, "{told:?}");
    // It may not read the rows any more, and hears of them no more.
    done(&mut chief, &["REVOKE SELECT ON t FROM a", "DELETE FROM t", "NOTIFY free, 'last'"]);
    let told = heard(&mut a, "last");
    assert_eq!(told.len(), 1, "{told:?}");
    let hidden = "SELECT count(*) FROM sqlcached_sessions WHERE user_name = 'chief' AND query NOT LIKE '<%'";
    let texts = "SELECT count(*) FROM sqlcached_statements WHERE query NOT LIKE '<%'";
    for statement in [hidden, texts] {
        let count = |pg: &mut Pg| {
            pg.ask(statement).iter().find_map(|one| one.strip_prefix("D ").map(ToOwned::to_owned))
        };
        assert_eq!(count(&mut a).as_deref(), Some("0"), "{statement}");
        assert_ne!(count(&mut b).as_deref(), Some("0"), "{statement}");
    }
}

/// Keys that others use are shown to who may read the rows, and to nobody for being allowed to monitor.
#[test]
fn hot_keys_are_shown_to_who_may_read_the_table() {
    let users =
        "CREATE USER a; CREATE USER b; CREATE USER c IN ROLE pg_monitor; CREATE USER app PASSWORD 'x';";
    let daemon = guarded(users);
    let mut chief = sql(&daemon, "chief");
    make(&mut chief);
    let grants = ["GRANT INSERT, UPDATE ON t TO app", "GRANT SELECT ON t TO a", "GRANT SELECT (v) ON t TO b"];
    done(&mut chief, &grants);
    let mut app = memcached(&daemon, "app");
    for _ in 0..300 {
        app.ask(b"set t:private 0 0 1\r\nx\r\n", b"STORED\r\n");
    }
    daemon.advance(Duration::from_millis(100));
    for (role, sees) in [("chief", true), ("a", true), ("b", false), ("c", false), ("app", false)] {
        let said = sql(&daemon, role).ask("SELECT key FROM sqlcached_hot WHERE table_name = 't'");
        assert_eq!(said.iter().any(|one| one == "D private"), sees, "{role}: {said:?}");
    }
}

/// Ways around the gate that a role may think of: `a` may make tables, `b` has nothing, and both know the names.
#[test]
fn ways_around_the_gate() {
    let daemon =
        guarded("CREATE USER a; CREATE USER b; CREATE ROLE team; GRANT CREATE ON SCHEMA public TO a;");
    let mut chief = sql(&daemon, "chief");
    make(&mut chief);
    filled(&mut chief);
    done(
        &mut chief,
        &["CREATE TABLE secret (k INT PRIMARY KEY, v TEXT)", "INSERT INTO secret VALUES (1, 'x')"],
    );
    done(&mut chief, &["GRANT INSERT ON t TO b", "GRANT SELECT (k) ON t TO b"]);
    let mut wrong = Vec::new();
    for (role, statement) in [
        ("a", "SET ROLE chief"),
        ("a", "SET ROLE team"),
        ("a", "BEGIN; SET LOCAL ROLE chief"),
        ("a", "SET SESSION AUTHORIZATION chief"),
        ("a", "SELECT set_config('role', 'chief', false)"),
        ("a", "SELECT set_config('session_authorization', 'chief', false)"),
        ("a", "CREATE ROLE x SUPERUSER"),
        ("a", "ALTER ROLE a SUPERUSER"),
        ("a", "ALTER ROLE chief PASSWORD 'x'"),
        ("a", "GRANT chief TO a"),
        ("a", "GRANT team TO a"),
        ("a", "GRANT pg_read_all_data TO a"),
        ("a", "DROP ROLE b"),
        ("a", "CREATE TABLE mine AS SELECT * FROM secret"),
        ("a", "CREATE TABLE mine (LIKE secret INCLUDING ALL)"),
        ("a", "CREATE TABLE t2 (k TEXT PRIMARY KEY, v TEXT) WITH (prefix = '', value = v)"),
        ("a", "CREATE TABLE t2 (k TEXT PRIMARY KEY, v TEXT) WITH (shared_memory = on)"),
        ("a", "DO $$ BEGIN DROP TABLE secret; END $$"),
        ("a", "DO $$ BEGIN ALTER TABLE secret OWNER TO a; END $$"),
        ("a", "BEGIN; DROP TABLE secret; COMMIT"),
        ("a", "SELECT 1; DELETE FROM secret"),
        ("a", "CREATE INDEX z ON secret (v)"),
        ("a", "COMMENT ON COLUMN secret.v IS 'x'"),
        ("a", "DROP TABLE IF EXISTS secret"),
        ("a", "DROP SCHEMA public CASCADE"),
        ("a", "CREATE SCHEMA mine"),
        ("a", "ALTER TABLE secret RENAME TO mine"),
        ("a", "ALTER TABLE secret SET SCHEMA public"),
        ("a", "ALTER TABLE secret SET (notify = 'x')"),
        ("a", "ALTER TABLE secret SET (ttl = '1s')"),
        ("a", "GRANT ALL ON secret TO a"),
        ("a", "GRANT ALL ON ALL TABLES IN SCHEMA public TO a"),
        ("a", "REVOKE ALL ON t FROM b"),
        ("a", "GRANT CREATE ON SCHEMA public TO b"),
        ("a", "ALTER DEFAULT PRIVILEGES FOR ROLE chief GRANT ALL ON TABLES TO a"),
        ("a", "COPY secret TO STDOUT"),
        ("a", "COPY (SELECT v FROM secret) TO STDOUT"),
        ("a", "COPY (DELETE FROM secret RETURNING v) TO STDOUT"),
        ("a", "EXPLAIN SELECT * FROM secret"),
        ("a", "EXPLAIN ANALYZE DELETE FROM secret"),
        ("a", "SELECT * FROM pg_catalog.secret"),
        ("a", "SELECT * FROM public.secret"),
        ("a", "SELECT * FROM \"secret\""),
        ("a", "SELECT * FROM _lateral('SELECT v FROM secret')"),
        ("a", "SELECT c0 FROM \"_lateral\"('SELECT v FROM secret', 1)"),
        ("a", "SELECT * FROM _lateral('SELECT v ' || 'FROM secret')"),
        ("a", "SELECT * FROM _lateral"),
        ("a", "SELECT v FROM secret(0)"),
        ("a", "SELECT v FROM secret(2)"),
        ("a", "SELECT v FROM secret('')"),
        ("a", "SELECT v FROM secret()"),
        ("a", "SELECT s.v FROM secret(5) AS s"),
        ("b", "SELECT v FROM t(2)"),
        ("a", "TABLE secret"),
        ("a", "(SELECT v FROM secret)"),
        ("a", "VALUES ((SELECT v FROM secret))"),
        ("a", "SELECT 1 ORDER BY (SELECT v FROM secret)"),
        ("a", "SELECT 1 LIMIT (SELECT k FROM secret)"),
        ("a", "SELECT s.v FROM (VALUES (1)) AS x(k), LATERAL (SELECT v FROM secret WHERE k = x.k) AS s"),
        ("a", "SELECT ARRAY(SELECT v FROM secret)"),
        ("a", "SELECT coalesce((SELECT v FROM secret), '')"),
        ("a", "SELECT count(*) FILTER (WHERE EXISTS (SELECT 1 FROM secret))"),
        ("a", "SELECT 1 FROM generate_series(1, (SELECT k FROM secret))"),
        ("a", "WITH x AS (SELECT v FROM secret) SELECT 1"),
        ("a", "DECLARE c CURSOR WITH HOLD FOR SELECT v FROM secret"),
        ("a", "UPDATE secret SET v = v"),
        ("a", "SELECT v FROM secret FOR UPDATE"),
        ("b", "INSERT INTO t (k, v) VALUES ('z', (SELECT v FROM secret))"),
        ("b", "INSERT INTO t SELECT k, v, 1 FROM secret"),
        ("b", "INSERT INTO t (k, v, n) VALUES ('1', 'x', 1) ON CONFLICT (k) DO UPDATE SET n = 5"),
        ("b", "INSERT INTO t (k, v, n) VALUES ('1', 'x', 1) ON CONFLICT (k) DO NOTHING RETURNING v"),
        ("b", "INSERT OR REPLACE INTO t (k, v, n) VALUES ('1', 'x', 1)"),
        ("b", "REPLACE INTO t (k, v, n) VALUES ('1', 'x', 1)"),
        ("b", "INSERT INTO t (k) VALUES ('y') RETURNING (SELECT v FROM secret)"),
        ("b", "SELECT t FROM t"),
        ("b", "SELECT (t).v FROM t"),
        ("b", "SELECT t.* FROM t"),
        ("b", "SELECT k FROM t WHERE v LIKE '5%'"),
        ("b", "SELECT k FROM t ORDER BY v"),
        ("b", "SELECT k FROM t GROUP BY k HAVING max(v) > ''"),
        ("b", "SELECT a.k FROM t a JOIN t b USING (k, v)"),
        ("b", "SELECT a.k FROM t a NATURAL JOIN t b"),
        ("b", "SELECT DISTINCT ON (v) k FROM t"),
        ("b", "SELECT to_json(t) FROM t"),
        ("b", "SELECT json_agg(t) FROM t"),
        ("b", "SELECT k, row_number() OVER (PARTITION BY v) FROM t"),
        ("b", "SELECT k FROM t WHERE (k, v) IN (SELECT k, v FROM t)"),
        ("b", "TRUNCATE t"),
        ("b", "VACUUM"),
        ("b", "LISTEN x; SELECT v FROM secret"),
        ("b", "SELECT pg_terminate_backend(1)"),
        ("b", "SELECT pg_cancel_backend(1)"),
        ("b", "SELECT rolpassword FROM pg_authid"),
        ("b", "CREATE TABLE mine (a INT)"),
        ("b", "CREATE EXTENSION pg_trgm"),
    ] {
        let mut pg = sql(&daemon, role);
        let said = pg.ask(statement);
        // A wrong statement is no proof: it must be refused for what it asks.
        let rows = said.iter().any(|one| one.starts_with("D "));
        let refused = matches!(
            refusal(&said),
            Some(
                "42501"
                    | "0A000"
                    | "42704"
                    | "42P01"
                    | "42601"
                    | "2BP01"
                    | "42883"
                    | "22023"
                    | "42809"
                    | "42703"
            )
        );
        if !(refused && !rows || is_harmless(statement, &said)) {
            wrong.push(format!("{role}: {statement}: {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mut copying = sql(&daemon, "a");
    copying.send(&[query("COPY secret FROM STDIN"), message(b'd', b"2\ty\n"), message(b'c', b"")].concat());
    assert_eq!(refusal(&copying.until_ready()), Some("42501"));
    // Nothing of it happened.
    assert_eq!(chief.ask("SELECT v FROM secret"), ["T", "D x", "C SELECT 1"]);
    assert_eq!(chief.ask("SELECT count(*) FROM t"), ["T", "D 2", "C SELECT 1"]);
    assert_eq!(chief.ask("SELECT count(*) FROM pg_class WHERE relname = 'mine'"), ["T", "D 0", "C SELECT 1"]);
    // What a view is made of is its owner's to read, however it is written.
    let mut maker = sql(&daemon, "a");
    done(&mut chief, &["GRANT SELECT (k) ON t TO a"]);
    for (at, body) in [
        "WITH x AS (SELECT v FROM secret) SELECT v FROM x",
        "SELECT 1 AS one FROM secret",
        "SELECT (SELECT v FROM secret) AS v",
        "SELECT s.v FROM (VALUES (1)) AS x(k), LATERAL (SELECT v FROM secret) AS s",
        "WITH x AS (SELECT v FROM t) SELECT v FROM x",
        "SELECT a.k FROM t a JOIN (VALUES ('5')) AS b(v) USING (v)",
        "SELECT a.k FROM t a NATURAL JOIN (SELECT '5' AS v) AS b",
        "SELECT s.v FROM (VALUES (1)) AS x(n), LATERAL (SELECT v FROM t LIMIT 1) AS s",
        "SELECT s.v FROM (VALUES (1)) AS x(n), LATERAL (SELECT v FROM t WHERE k = x.n::text) AS s",
        "SELECT s.v FROM (VALUES (1)) AS x(n), LATERAL (SELECT v FROM secret WHERE k = x.n) AS s",
    ]
    .iter()
    .enumerate()
    {
        assert_eq!(refusal(&maker.ask(body)), Some("42501"), "{body}");
        done(&mut maker, &[&format!("CREATE VIEW leak{at} AS {body}")]);
        let said = maker.ask(&format!("SELECT * FROM leak{at}"));
        assert_eq!(refusal(&said), Some("42501"), "{body}: {said:?}");
        // A superuser's view on it does not give it the superuser's rights.
        done(&mut chief, &[&format!("CREATE VIEW above{at} AS SELECT * FROM leak{at}")]);
        done(&mut chief, &[&format!("GRANT SELECT ON above{at} TO a")]);
        let said = maker.ask(&format!("SELECT * FROM above{at}"));
        assert_eq!(refusal(&said), Some("42501"), "above {body}: {said:?}");
    }
    // A rule looks at what the owner of its table may read, when it is made and when it runs.
    let mut a = sql(&daemon, "a");
    done(&mut a, &["CREATE TABLE probe (k INT PRIMARY KEY)", "INSERT INTO probe VALUES (1)"]);
    let rule = "CREATE EXPIRY RULE look ON probe WHEN EXISTS (SELECT 1 FROM secret WHERE v = 'x')";
    assert!(refusal(&a.ask(rule)).is_some());
}

/// Statements whose refusal comes behind a row that tells nothing.
fn is_harmless(statement: &str, said: &[String]) -> bool {
    let tells_nothing = ["pg_authid", "set_config", "SELECT 1;"].iter().any(|part| statement.contains(part));
    tells_nothing && (said.iter().all(|one| !one.starts_with('D')) || refusal(said) == Some("42501"))
}
