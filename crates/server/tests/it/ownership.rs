//! Sequences and their privileges, options that only superusers set, what becomes of the things of a role that goes.

use std::time::Duration;

use crate::grants::{done, guarded, memcached, refusal, sql};
use crate::pg::Pg;

/// What a role is granted on a sequence, and what that brings: `n`ext, `s`een, `c`hanged.
const GRANTED: &[(&str, &str)] = &[
    ("", ""),
    ("USAGE", "ns"),
    ("SELECT", "s"),
    ("UPDATE", "nc"),
    ("USAGE, SELECT", "ns"),
    ("SELECT, UPDATE", "nsc"),
    ("ALL", "nsc"),
];

/// Statements about a sequence `#`, and what they take: one of the letters, or `o`: its owner.
const STATEMENTS: &[(&str, char)] = &[
    ("SELECT nextval('#')", 'n'),
    ("SELECT nextval('#'::regclass)", 'n'),
    ("SELECT nextval('#') FROM generate_series(1, 2)", 'n'),
    ("INSERT INTO plain VALUES (nextval('#'))", 'n'),
    ("UPDATE plain SET a = nextval('#') WHERE a IS NULL OR a = a", 'n'),
    ("SELECT currval('#')", 's'),
    ("SELECT setval('#', 100)", 'c'),
    ("SELECT setval('#', 100, false)", 'c'),
    ("ALTER SEQUENCE # RESTART", 'o'),
    ("ALTER SEQUENCE # INCREMENT BY 1", 'o'),
    ("ALTER SEQUENCE # RENAME TO other", 'o'),
    ("ALTER SEQUENCE # OWNER TO a", 'o'),
    ("DROP SEQUENCE #", 'o'),
    ("GRANT USAGE ON SEQUENCE # TO PUBLIC", 'o'),
    ("REVOKE USAGE ON SEQUENCE # FROM PUBLIC", 'o'),
];

/// What writes numbers without naming the sequence, by the tables' defaults.
const WRITES: &[(&str, &str)] = &[
    ("own", "INSERT INTO of_own (v) VALUES ('x')"),
    ("own", "INSERT INTO of_own (id, v) VALUES (DEFAULT, 'x'), (DEFAULT, 'y')"),
    ("own", "INSERT INTO of_own (v) SELECT 'x' FROM generate_series(1, 2)"),
    ("serial_id_seq", "INSERT INTO serial (v) VALUES ('x')"),
    ("serial_id_seq", "INSERT INTO serial (id, v) VALUES (DEFAULT, 'x')"),
    ("serial_id_seq", "INSERT INTO serial (v) VALUES ('x'), ('y') RETURNING id"),
    ("serial_id_seq", "INSERT INTO serial (v) SELECT 'x'"),
];

fn made(chief: &mut Pg) {
    done(
        chief,
        &[
            "CREATE SEQUENCE own",
            "CREATE TABLE of_own (id INT PRIMARY KEY DEFAULT nextval('own'), v TEXT)",
            "CREATE TABLE serial (id SERIAL PRIMARY KEY, v TEXT) WITH (prefix = 'serial:', value = v)",
            "CREATE TABLE always (id INT PRIMARY KEY GENERATED ALWAYS AS IDENTITY, v TEXT)",
            "CREATE TABLE plain (a BIGINT)",
            "INSERT INTO plain VALUES (1)",
            "GRANT SELECT, INSERT, UPDATE ON of_own, serial, always, plain TO a",
        ],
    );
}

/// Each privilege of a sequence, granted to the role itself, to a role that it is a member of, and to everybody.
#[test]
fn each_cell_of_the_matrix_of_sequences() {
    let daemon = guarded("CREATE ROLE team; CREATE USER a IN ROLE team;");
    let mut chief = sql(&daemon, "chief");
    made(&mut chief);
    let (mut cells, mut wrong) = (0, Vec::new());
    for (granted, brings) in GRANTED {
        for to in ["a", "team", "PUBLIC"] {
            for sequence in ["own", "serial_id_seq"] {
                if !granted.is_empty() {
                    done(&mut chief, &[&format!("GRANT {granted} ON SEQUENCE {sequence} TO {to}")]);
                }
                let mut a = sql(&daemon, "a");
                let mut check = |a: &mut Pg, statement: &str, may: bool| {
                    let said = a.ask(statement);
                    let refused = refusal(&said) == Some("42501");
                    // No number was taken yet in this session: 55000.
                    if refused == may {
                        wrong.push(format!("{granted} to {to}: {statement}: {said:?}"));
                    }
                    cells += 1;
                };
                for native in ["on", "off"] {
                    done(&mut a, &[&format!("SET native_execution = {native}")]);
                    for (statement, takes) in STATEMENTS {
                        check(&mut a, &statement.replace('#', sequence), brings.contains(*takes));
                    }
                    for (_, statement) in WRITES.iter().filter(|(of, _)| *of == sequence) {
                        check(&mut a, statement, brings.contains('n'));
                    }
                    // An identity column's numbers belong to the table.
                    check(&mut a, "INSERT INTO always (v) VALUES ('x')", true);
                    check(&mut a, "INSERT INTO serial (id, v) VALUES (-1, 'x') ON CONFLICT DO NOTHING", true);
                }
                if !granted.is_empty() {
                    done(&mut chief, &[&format!("REVOKE {granted} ON SEQUENCE {sequence} FROM {to}")]);
                }
                check(&mut a, &format!("SELECT nextval('{sequence}')"), false);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cells > 1_000, "{cells}");
}

/// `lastval` names no sequence, and a copy no statement: they are refused like the others.
#[test]
fn numbers_that_nobody_names() {
    let daemon = guarded("CREATE USER a;");
    let mut chief = sql(&daemon, "chief");
    made(&mut chief);
    let mut a = sql(&daemon, "a");
    done(&mut chief, &["GRANT UPDATE ON SEQUENCE own TO a"]);
    done(&mut a, &["SELECT nextval('own')"]);
    assert_eq!(refusal(&a.ask("SELECT lastval()")), Some("42501"));
    assert_eq!(refusal(&a.ask("SELECT currval('own')")), Some("42501"));
    assert_eq!(a.ask("SELECT last_value IS NULL FROM pg_sequences WHERE sequencename = 'own'")[1], "D t");
    done(&mut chief, &["REVOKE UPDATE ON SEQUENCE own FROM a", "GRANT SELECT ON SEQUENCE own TO a"]);
    done(&mut a, &["SELECT lastval(), currval('own')"]);
    assert_eq!(a.ask("SELECT last_value FROM pg_sequences WHERE sequencename = 'own'")[1], "D 1");
    for (table, data) in [("of_own (v)", "x\n"), ("serial (v)", "x\n")] {
        let copied = crate::pg::copy_in(&mut a, &format!("COPY {table} FROM STDIN"), data.as_bytes());
        assert_eq!(refusal(&copied), Some("42501"), "{table}: {copied:?}");
    }
    done(&mut chief, &["GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO a"]);
    for (table, data) in [("of_own (v)", "x\n"), ("serial (v)", "x\n")] {
        let copied = crate::pg::copy_in(&mut a, &format!("COPY {table} FROM STDIN"), data.as_bytes());
        assert_eq!(refusal(&copied), None, "{table}: {copied:?}");
    }
    // `RESTART IDENTITY` needs more than `TRUNCATE`.
    done(&mut chief, &["GRANT TRUNCATE ON serial, plain TO a"]);
    assert_eq!(refusal(&a.ask("TRUNCATE serial RESTART IDENTITY")), Some("42501"));
    done(&mut a, &["TRUNCATE serial", "TRUNCATE plain RESTART IDENTITY"]);
    // A memcached client writes rows of a key that it names itself: privileges of the table are enough.
    done(&mut chief, &["REVOKE USAGE ON ALL SEQUENCES IN SCHEMA public FROM a", "ALTER ROLE a PASSWORD 'x'"]);
    memcached(&daemon, "a").ask(b"set serial:7 0 0 1\r\nx\r\n", b"STORED\r\n");
}

/// Owners of sequences, what is granted of new ones, and what the catalogue and functions say of it.
#[test]
fn sequences_have_owners() {
    let daemon = guarded(
        "CREATE USER maker; CREATE USER friend; GRANT CREATE ON SCHEMA public TO maker;
         ALTER DEFAULT PRIVILEGES FOR ROLE maker GRANT USAGE ON SEQUENCES TO friend;
         ALTER DEFAULT PRIVILEGES FOR ROLE maker IN SCHEMA other GRANT ALL ON TABLES TO friend;",
    );
    let mut chief = sql(&daemon, "chief");
    done(&mut chief, &["CREATE SCHEMA other", "GRANT CREATE ON SCHEMA other TO maker"]);
    let (mut maker, mut friend) = (sql(&daemon, "maker"), sql(&daemon, "friend"));
    done(
        &mut maker,
        &[
            "CREATE SEQUENCE s",
            "CREATE TABLE t (id SERIAL PRIMARY KEY, n INT)",
            "CREATE TABLE other.t (id INT PRIMARY KEY)",
        ],
    );
    done(&mut friend, &["SELECT nextval('s'), nextval('t_id_seq')", "SELECT * FROM other.t"]);
    // What is granted of tables in one schema is not granted of those in others.
    assert_eq!(refusal(&friend.ask("SELECT * FROM t")), Some("42501"));
    for (statement, expected) in [
        ("SELECT array_to_string(relacl, ' ') FROM pg_class WHERE relname = 's'", "maker=rwU/maker friend=U/maker"),
        ("SELECT array_to_string(relacl, ' ') FROM pg_class WHERE relname = 't_id_seq'", "maker=rwU/maker friend=U/maker"),
        ("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relname = 's'", "maker"),
        ("SELECT sequenceowner FROM pg_sequences WHERE sequencename = 't_id_seq'", "maker"),
        ("SELECT has_sequence_privilege('friend', 's', 'USAGE')", "t"),
        ("SELECT has_sequence_privilege('friend', 's', 'SELECT, UPDATE')", "f"),
        ("SELECT has_sequence_privilege('friend', 's', 'USAGE WITH GRANT OPTION')", "f"),
        ("SELECT has_sequence_privilege('maker', 't_id_seq', 'USAGE WITH GRANT OPTION')", "t"),
        (
            "SELECT string_agg(defaclobjtype || coalesce(nspname, '-') || array_to_string(defaclacl, ','), ' '
             ORDER BY defaclobjtype) FROM pg_default_acl LEFT JOIN pg_namespace n ON n.oid = defaclnamespace",
            "S-maker=rwU/maker,friend=U/maker rotherfriend=arwdDxt/maker",
        ),
    ] {
        let said = chief.ask(statement);
        assert_eq!(said[1], format!("D {expected}"), "{statement}: {said:?}");
    }
    for (role, statement, expected) in [
        ("friend", "SELECT has_sequence_privilege('s', 'DELETE')", Some("22023")),
        ("friend", "SELECT has_sequence_privilege('t', 'USAGE')", Some("42809")),
        ("friend", "ALTER SEQUENCE s RESTART", Some("42501")),
        ("friend", "DROP SEQUENCE s", Some("42501")),
        ("maker", "GRANT DELETE ON SEQUENCE s TO friend", Some("0LP01")),
        ("maker", "GRANT USAGE (a) ON SEQUENCE s TO friend", Some("0LP01")),
        ("maker", "GRANT USAGE ON SEQUENCE t TO friend", Some("42809")),
        ("maker", "GRANT USAGE ON SEQUENCE nowhere TO friend", Some("42P01")),
        ("maker", "GRANT USAGE ON t TO friend", Some("0LP01")),
        ("maker", "ALTER SEQUENCE t OWNER TO maker", Some("42809")),
        ("maker", "ALTER SEQUENCE s OWNER TO friend", Some("42501")),
        ("chief", "ALTER SEQUENCE t_id_seq OWNER TO friend", Some("0A000")),
        // A table's name is enough, as in PostgreSQL.
        ("maker", "GRANT SELECT ON s TO friend", None),
        ("friend", "SELECT currval('s')", None),
        ("maker", "ALTER SEQUENCE s OWNED BY t.n", None),
        ("chief", "ALTER SEQUENCE s OWNER TO friend", Some("0A000")),
        // The table's new owner has its sequences.
        ("chief", "ALTER TABLE t OWNER TO friend", None),
        ("friend", "ALTER SEQUENCE s RESTART WITH 5", None),
        ("friend", "SELECT setval('t_id_seq', 9)", None),
        ("maker", "SELECT nextval('s')", Some("42501")),
        ("maker", "SELECT nextval('t_id_seq')", Some("42501")),
        ("chief", "GRANT EXECUTE ON FUNCTION nowhere(int) TO friend", Some("42883")),
        ("chief", "GRANT EXECUTE ON FUNCTION nowhere TO friend", Some("42883")),
        ("chief", "REVOKE ALL ON PROCEDURE nowhere() FROM PUBLIC", Some("42883")),
        ("chief", "GRANT EXECUTE ON FUNCTION lower(text), upper TO friend", None),
        ("chief", "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO friend", None),
        ("chief", "ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC", None),
    ] {
        let pg = match role {
            "chief" => &mut chief,
            "maker" => &mut maker,
            _ => &mut friend,
        };
        let said = pg.ask(statement);
        assert_eq!(refusal(&said), expected, "{role}: {statement}: {said:?}");
    }
    // A grant of a transaction is taken back with it.
    done(&mut friend, &["BEGIN", "GRANT USAGE ON SEQUENCE t_id_seq, s TO maker", "ROLLBACK"]);
    assert_eq!(refusal(&maker.ask("SELECT nextval('s')")), Some("42501"));
    assert_eq!(refusal(&maker.ask("SELECT nextval('t_id_seq')")), Some("42501"));
}

/// A table like another one had its options `shared_memory` and `min_memory`, which an ordinary role may not set.
#[test]
fn a_copy_of_a_table_has_no_options_of_superusers() {
    let daemon = guarded("CREATE USER maker; GRANT CREATE ON SCHEMA public TO maker;");
    let (mut chief, mut maker) = (sql(&daemon, "chief"), sql(&daemon, "maker"));
    done(
        &mut chief,
        &[
            "CREATE TABLE reserved (a INT) WITH (min_memory = '1 MB')",
            "CREATE TABLE plain (a INT) WITH (ttl = '1 h')",
            "GRANT SELECT ON reserved, plain TO maker",
        ],
    );
    for (statement, expected) in [
        ("CREATE TABLE one (LIKE reserved INCLUDING STORAGE)", Some("42501")),
        ("CREATE TABLE one (LIKE reserved INCLUDING ALL)", Some("42501")),
        ("CREATE TABLE one (LIKE reserved INCLUDING ALL EXCLUDING STORAGE)", None),
        ("CREATE TABLE two (LIKE reserved)", None),
        ("CREATE TABLE three (LIKE plain INCLUDING ALL)", None),
    ] {
        let said = maker.ask(statement);
        assert_eq!(refusal(&said), expected, "{statement}: {said:?}");
    }
}

/// A role that owns something or was granted something stays, and the error says why. Its things go to another role.
#[test]
fn a_role_that_goes() {
    let daemon = guarded(
        "CREATE USER maker; CREATE USER friend; CREATE USER heir; CREATE USER outsider;
         GRANT CREATE ON SCHEMA public TO maker; GRANT CREATE ON SCHEMA public TO outsider;
         ALTER DEFAULT PRIVILEGES FOR ROLE maker GRANT SELECT ON TABLES TO friend;",
    );
    let mut chief = sql(&daemon, "chief");
    let (mut maker, mut outsider) = (sql(&daemon, "maker"), sql(&daemon, "outsider"));
    done(
        &mut maker,
        &[
            "CREATE TABLE t (id SERIAL PRIMARY KEY, a INT)",
            "CREATE VIEW v AS SELECT a FROM t",
            "CREATE SEQUENCE s",
            "GRANT UPDATE (a) ON t TO friend",
            "GRANT USAGE ON SEQUENCE t_id_seq TO friend",
        ],
    );
    done(&mut outsider, &["CREATE TABLE o (a INT)", "GRANT SELECT ON o TO maker WITH GRANT OPTION"]);
    done(&mut maker, &["GRANT SELECT ON o TO friend"]);
    let details = |pg: &mut Pg, role: &str| {
        let (message, detail) = pg.failure(&format!("DROP ROLE {role}"));
        format!("{message}\n{detail}")
    };
    let said = details(&mut chief, "maker");
    for part in [
        "role \"maker\" cannot be dropped because some objects depend on it",
        "owner of table t",
        "owner of view v",
        "owner of sequence s",
        "privileges for table o",
        "privileges for schema public",
        "owner of default privileges on new relations belonging to role maker",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = details(&mut chief, "friend");
    for part in [
        "privileges for table t",
        "privileges for column a of table t",
        "privileges for sequence t",
        "privileges for default privileges on new relations belonging to role maker",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    for (role, statement, expected) in [
        ("outsider", "REASSIGN OWNED BY maker TO outsider", Some("42501")),
        ("outsider", "DROP OWNED BY maker", Some("42501")),
        ("maker", "REASSIGN OWNED BY maker TO heir", Some("42501")),
        ("chief", "REASSIGN OWNED BY nobody TO heir", Some("42704")),
        ("chief", "REASSIGN OWNED BY maker TO nobody", Some("42704")),
        ("chief", "BEGIN; REASSIGN OWNED BY maker TO heir", Some("25001")),
        ("chief", "ROLLBACK", None),
        ("chief", "REASSIGN OWNED BY maker TO heir", None),
        // Only what it owned went over; what it was granted is still there.
        ("chief", "DROP ROLE maker", Some("2BP01")),
        ("maker", "SELECT * FROM t", Some("42501")),
        ("maker", "SELECT * FROM o", None),
        ("chief", "DROP OWNED BY maker", None),
        ("maker", "SELECT * FROM o", Some("42501")),
        ("maker", "CREATE TABLE x (a INT)", Some("42501")),
        ("chief", "DROP ROLE maker", None),
        ("chief", "DROP OWNED BY friend CASCADE", None),
        ("chief", "DROP ROLE friend", None),
        ("chief", "SELECT * FROM t", None),
        ("chief", "DROP OWNED BY heir", None),
        ("chief", "SELECT * FROM t", Some("42P01")),
        ("chief", "SELECT * FROM v", Some("42P01")),
        ("chief", "SELECT nextval('s')", Some("42P01")),
        ("chief", "SELECT * FROM o", None),
        ("chief", "DROP ROLE heir", None),
    ] {
        let pg = match role {
            "chief" => &mut chief,
            "maker" => &mut maker,
            _ => &mut outsider,
        };
        let said = pg.ask(statement);
        assert_eq!(refusal(&said), expected, "{role}: {statement}: {said:?}");
    }
    // Nothing of a role that went is anybody's.
    assert_eq!(
        chief.ask("SELECT array_to_string(relacl, ' ') FROM pg_class WHERE relname = 'o'")[1],
        "D outsider=arwdDxt/outsider"
    );
}

/// The last refusals and the counts of each role, for those who monitor: without values, and of bounded length.
#[test]
fn refusals_are_listed() {
    let daemon = guarded("CREATE USER a PASSWORD 'x'; CREATE USER watcher IN ROLE pg_monitor;");
    let mut chief = sql(&daemon, "chief");
    done(
        &mut chief,
        &["CREATE TABLE t (k TEXT PRIMARY KEY, v TEXT) WITH (prefix = 't:', value = v)", "CREATE SEQUENCE s"],
    );
    let (mut a, mut watcher) = (sql(&daemon, "a"), sql(&daemon, "watcher"));
    for statement in
        ["SELECT v FROM t WHERE k = 'hidden'", "ALTER ROLE chief PASSWORD 'hidden'", "SELECT nextval('s')"]
    {
        assert_eq!(refusal(&a.ask(statement)), Some("42501"), "{statement}");
    }
    memcached(&daemon, "a").ask(b"get t:hidden\r\n", b"CLIENT_ERROR permission denied\r\n");
    let statement = "SELECT v FROM t WHERE k = 'hidden'";
    memcached(&daemon, "a").ask(
        format!("sql {}\r\n{statement}\r\n", statement.len()).as_bytes(),
        b"ERROR 42501 permission denied for table t\r\n",
    );
    let mut wrong = daemon.connect();
    wrong.send(b"set login 0 0 6\r\na wron\r\n");
    wrong.stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    while wrong.stream.peek(&mut [0]).is_err() {
        daemon.advance(Duration::from_millis(200));
    }
    assert_eq!(wrong.line(), "CLIENT_ERROR authentication failure");
    let listed = "SELECT role_name, protocol, client_addr, request, reason FROM sqlcached_refusals";
    let rows = |pg: &mut Pg, statement: &str| {
        let said = pg.ask(statement);
        said.into_iter().filter_map(|one| one.strip_prefix("D ").map(str::to_owned)).collect::<Vec<_>>()
    };
    let expected = [
        "a|postgresql|127.0.0.1|select v from t where k = ?|permission denied for table t",
        "a|postgresql|127.0.0.1|ALTER ROLE|permission denied to alter superusers",
        "a|postgresql|127.0.0.1|select nextval(?)|permission denied for sequence s",
        "a|memcached|127.0.0.1|get t|permission denied",
        "a|memcached|127.0.0.1|select v from t where k = ?|permission denied for table t",
        "a|memcached|127.0.0.1|connect|authentication failure",
    ];
    assert_eq!(rows(&mut watcher, listed), expected);
    assert_eq!(rows(&mut a, listed), Vec::<String>::new());
    let counts =
        "SELECT role_name, logins, failures, refusals FROM sqlcached_roles WHERE role_name IN ('a', 'chief')";
    assert_eq!(rows(&mut watcher, counts), ["a|3|1|5", "chief|1|0|0"]);
    assert_eq!(rows(&mut a, counts), ["a|3|1|5"]);
    let mut stats = memcached(&daemon, "a");
    done(&mut chief, &["GRANT pg_monitor TO a"]);
    stats.send(b"stats\r\n");
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line| line != "END") {
        lines.push(stats.line());
    }
    for line in ["STAT auth_cmds 4", "STAT auth_errors 1", "STAT permission_denied 5"] {
        assert!(lines.iter().any(|own| own == line), "{line}: {lines:?}");
    }
    // A role that is gone is not counted any more.
    done(&mut chief, &["CREATE ROLE gone", "DROP ROLE gone"]);
    assert_eq!(rows(&mut watcher, "SELECT count(*) FROM sqlcached_roles WHERE role_name = 'gone'"), ["0"]);
}

/// A schema that is dropped takes along what was granted in it: another one of its name began with these grants.
#[test]
fn a_schema_of_the_same_name_begins_with_nothing() {
    let daemon = guarded("CREATE USER maker; CREATE USER friend;");
    let (mut chief, mut maker, mut friend) =
        (sql(&daemon, "chief"), sql(&daemon, "maker"), sql(&daemon, "friend"));
    done(
        &mut chief,
        &[
            "CREATE SCHEMA s",
            "GRANT CREATE ON SCHEMA s TO maker",
            "ALTER DEFAULT PRIVILEGES IN SCHEMA s GRANT SELECT ON TABLES TO friend",
        ],
    );
    done(&mut maker, &["CREATE TABLE s.t (a INT)", "DROP TABLE s.t"]);
    done(&mut chief, &["DROP SCHEMA s", "CREATE SCHEMA s", "CREATE TABLE s.t (a INT)"]);
    assert_eq!(refusal(&maker.ask("CREATE TABLE s.u (a INT)")), Some("42501"));
    assert_eq!(refusal(&friend.ask("SELECT * FROM s.t")), Some("42501"));
    assert_eq!(refusal(&chief.ask("GRANT CREATE ON SCHEMA nowhere TO maker")), Some("3F000"));
    assert_eq!(
        refusal(&chief.ask("ALTER DEFAULT PRIVILEGES IN SCHEMA nowhere GRANT SELECT ON TABLES TO friend")),
        Some("3F000")
    );
}

/// A superuser makes servers; their owner may change them and say as whom they are asked. Nobody is shown a password.
#[test]
fn foreign_servers_are_their_owners() {
    let daemon = guarded("CREATE USER a; CREATE USER b;");
    let (mut chief, mut a, mut b) = (sql(&daemon, "chief"), sql(&daemon, "a"), sql(&daemon, "b"));
    let made = "CREATE SERVER pg FOREIGN DATA WRAPPER postgres OPTIONS (host 'db')";
    assert_eq!(refusal(&a.ask(made)), Some("42501"));
    done(&mut chief, &[made, "ALTER SERVER pg OWNER TO a"]);
    for (statement, state) in [
        ("ALTER SERVER pg OPTIONS (SET host 'other')", "42501"),
        ("ALTER SERVER pg OWNER TO b", "42501"),
        ("CREATE USER MAPPING FOR b SERVER pg", "42501"),
        ("DROP SERVER pg", "42501"),
    ] {
        assert_eq!(refusal(&b.ask(statement)), Some(state), "{statement}");
    }
    done(
        &mut a,
        &[
            "CREATE USER MAPPING FOR CURRENT_USER SERVER pg OPTIONS (user 'cache', password 'hidden')",
            "CREATE USER MAPPING FOR b SERVER pg OPTIONS (user 'b')",
        ],
    );
    let options = "SELECT usename, umoptions FROM pg_user_mappings ORDER BY usename";
    let shown = a.ask(options);
    assert!(shown.contains(&"D a|{user=cache,password=********}".to_owned()), "{shown:?}");
    let hidden = b.ask(options);
    assert!(hidden.iter().all(|line| !line.contains("cache") && !line.contains("hidden")), "{hidden:?}");
    assert_eq!(b.ask("SELECT count(*) FROM pg_user_mapping")[1], "D 0");
    for table in ["sqlcached_statements", "pg_stat_activity", "sqlcached_sessions", "sqlcached_refusals"] {
        let shown = chief.ask(&format!("SELECT * FROM {table}"));
        assert!(shown.iter().all(|line| !line.contains("hidden")), "{table}: {shown:?}");
    }
    // What a role is called, and whether it may go.
    assert_eq!(refusal(&chief.ask("DROP ROLE b")), Some("2BP01"));
    assert_eq!(refusal(&chief.ask("DROP ROLE a")), Some("2BP01"));
    done(&mut chief, &["ALTER ROLE a RENAME TO c"]);
    assert_eq!(chief.ask("SELECT count(*) FROM pg_user_mappings WHERE usename = 'c'")[1], "D 1");
    done(&mut chief, &["DROP OWNED BY b", "DROP ROLE b", "REASSIGN OWNED BY c TO chief", "DROP OWNED BY c"]);
    done(&mut chief, &["DROP ROLE c", "DROP SERVER pg"]);
}
