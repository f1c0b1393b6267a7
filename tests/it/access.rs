//! Roles, rules and passwords, with real clients: psql by SCRAM, memcached's clients by their own ways.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::client::Client;
use crate::daemon::{Daemon, Folder, free_port, program, run};
use crate::sources::until;

/// Rules for a superuser who is believed, and for everybody else.
const RULES: &str = "# of a test
host all chief 127.0.0.1/32 trust
host all all   127.0.0.1/32 scram-sha-256 protocol=sql
host all all   127.0.0.1/32 password      protocol=memcached
local all all  password
";

const ROLES: &str = "CREATE ROLE chief SUPERUSER LOGIN;
CREATE ROLE team;
GRANT pg_read_all_data TO team;
CREATE ROLE reader LOGIN PASSWORD 'r e a d';
GRANT team TO reader;
CREATE ROLE writer LOGIN PASSWORD 'write';
GRANT pg_read_all_data, pg_write_all_data TO writer;
CREATE ROLE nothing LOGIN PASSWORD 'nothing';
CREATE ROLE shut PASSWORD 'shut';
CREATE ROLE late LOGIN PASSWORD 'late' VALID UNTIL '2001-02-03';
";

/// A daemon with roles, and a psql for it.
struct Guarded {
    daemon: Daemon,
    sql_port: u16,
}

fn private(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

impl Guarded {
    fn start(rules: &str, roles: &str) -> Self {
        Self::start_in(Folder::new(), rules, roles, &[])
    }

    fn start_in(folder: Folder, rules: &str, roles: &str, more: &[&str]) -> Self {
        let (rules, roles) = (folder.write("rules", rules), folder.write("roles", roles));
        private(&roles);
        let sql_port = free_port();
        let text = |path: &PathBuf| path.display().to_string();
        let flags =
            ["--hba-file", &text(&rules), "--roles-file", &text(&roles), "--sql-port", &sql_port.to_string()];
        Self { daemon: Daemon::start_in(folder, &[&flags[..], more].concat()), sql_port }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.daemon.folder.0.join(name)
    }

    /// What psql printed for statements of a role, errors with their states.
    fn ask(&self, role: &str, password: &str, statements: &[&str]) -> String {
        let mut command = Command::new("psql");
        command.args([
            "-X",
            "-w",
            "-At",
            "-v",
            "VERBOSITY=sqlstate",
            "-h",
            "127.0.0.1",
            "-U",
            role,
            "-d",
            "app",
        ]);
        command.args(["-p", &self.sql_port.to_string()]).env("PGPASSWORD", password).env("LC_ALL", "C.UTF-8");
        for statement in statements {
            command.args(["-c", statement]);
        }
        let (_, out, error) = run(&mut command);
        out + &error
    }

    fn memcached(&self) -> Client {
        self.daemon.connect_tcp()
    }

    fn login(&self, token: &str) -> (Client, String) {
        let mut client = self.memcached();
        client.send(format!("set login 0 0 {}\r\n{token}\r\n", token.len()).as_bytes());
        let answer = client.line();
        (client, answer)
    }
}

fn answer(client: &mut Client, line: &str) -> String {
    client.send(format!("{line}\r\n").as_bytes());
    client.line()
}

#[test]
fn roles_come_in_by_scram_and_may_what_they_may() {
    let guarded = Guarded::start(RULES, ROLES);
    let made = guarded.ask(
        "chief",
        "",
        &[
            "CREATE TABLE t (k INT PRIMARY KEY, v TEXT)",
            "INSERT INTO t VALUES (1, 'one')",
            "CREATE VIEW seen AS SELECT v FROM t",
        ],
    );
    assert_eq!(made, "CREATE TABLE\nINSERT 0 1\nCREATE VIEW\n");
    let refused = "42501";
    for (role, password, statement, expected) in [
        ("reader", "r e a d", "SELECT v FROM t WHERE k = 1", "one"),
        ("reader", "r e a d", "SELECT v FROM seen", "one"),
        ("reader", "r e a d", "WITH x AS (SELECT * FROM t) SELECT count(*) FROM x", "1"),
        ("reader", "r e a d", "COPY t TO STDOUT", "1\tone"),
        ("reader", "r e a d", "INSERT INTO t VALUES (2, 'two')", refused),
        ("reader", "r e a d", "INSERT INTO t SELECT * FROM t", refused),
        ("reader", "r e a d", "UPDATE t SET v = 'x'", refused),
        ("reader", "r e a d", "DELETE FROM t WHERE k = 1", refused),
        ("reader", "r e a d", "DELETE FROM t", refused),
        ("reader", "r e a d", "EXPLAIN DELETE FROM t", refused),
        ("reader", "r e a d", "TRUNCATE t", refused),
        ("reader", "r e a d", "DROP TABLE t", refused),
        ("reader", "r e a d", "CREATE TABLE u (k INT)", refused),
        ("reader", "r e a d", "DO $$ BEGIN CREATE TABLE u (k INT); END $$", refused),
        ("reader", "r e a d", "CREATE TYPE mood AS ENUM ('good')", refused),
        ("reader", "r e a d", "CREATE ROLE friend", refused),
        ("reader", "r e a d", "GRANT pg_write_all_data TO reader", refused),
        ("reader", "r e a d", "ALTER ROLE reader SUPERUSER", refused),
        ("reader", "r e a d", "SET ROLE chief", refused),
        ("reader", "r e a d", "SET ROLE nobody", "22023"),
        (
            "reader",
            "r e a d",
            "SET ROLE team; SELECT current_user, session_user; RESET ROLE; SELECT current_user",
            "SET\nteam|reader\nRESET\nreader",
        ),
        ("chief", "", "SET ROLE nothing; SELECT * FROM t", refused),
        (
            "chief",
            "",
            "BEGIN; SET LOCAL ROLE nothing; ROLLBACK; SELECT v FROM t",
            "BEGIN\nSET\nROLLBACK\none",
        ),
        ("reader", "r e a d", "SET SESSION AUTHORIZATION chief", "42501"),
        ("reader", "r e a d", "SELECT count(*) FROM pg_authid", "0"),
        ("reader", "r e a d", "SELECT count(*) > 5 FROM pg_roles", "t"),
        (
            "reader",
            "r e a d",
            "SELECT has_table_privilege('t', 'SELECT'), has_table_privilege('t', 'INSERT')",
            "t|f",
        ),
        (
            "reader",
            "r e a d",
            "SELECT has_table_privilege('writer', 't', 'INSERT'), pg_has_role('team', 'MEMBER')",
            "t|t",
        ),
        ("writer", "write", "INSERT INTO t VALUES (2, 'two')", "INSERT 0 1"),
        (
            "writer",
            "write",
            "INSERT INTO t VALUES (2, 'zwei') ON CONFLICT (k) DO UPDATE SET v = excluded.v",
            "INSERT 0 1",
        ),
        ("writer", "write", "UPDATE t SET v = v || '!' WHERE k = 2 RETURNING v", "zwei!\nUPDATE 1"),
        ("writer", "write", "DELETE FROM t WHERE k = 2", "DELETE 1"),
        ("writer", "write", "ALTER TABLE t ADD COLUMN w INT", refused),
        ("nothing", "nothing", "SELECT 1", "1"),
        ("nothing", "nothing", "SELECT * FROM t", refused),
        ("nothing", "nothing", "SELECT (SELECT v FROM t LIMIT 1)", refused),
        ("nothing", "nothing", "SELECT 1 WHERE EXISTS (SELECT 1 FROM t)", refused),
        ("nothing", "nothing", "SELECT * FROM seen", refused),
        (
            "nothing",
            "nothing",
            "SELECT l.v FROM (SELECT 1 AS x) o, LATERAL (SELECT v FROM t WHERE k = o.x) l",
            refused,
        ),
        ("nothing", "nothing", "SELECT 1 UNION ALL (SELECT k FROM t)", refused),
        ("nothing", "nothing", "SELECT * FROM (VALUES (1)) v(x) JOIN public.t ON k = x", refused),
        (
            "nothing",
            "nothing",
            "WITH RECURSIVE r AS (SELECT 1 UNION SELECT k FROM t) SELECT * FROM r",
            refused,
        ),
        ("nothing", "nothing", "SELECT array(SELECT v FROM t)", refused),
        (
            "nothing",
            "nothing",
            "SELECT max(k) FILTER (WHERE k IN (SELECT k FROM t)) FROM (SELECT 1 AS k)",
            refused,
        ),
        ("nothing", "nothing", "SELECT 1 ORDER BY (SELECT v FROM t)", refused),
        ("nothing", "nothing", "VALUES ((SELECT v FROM t))", refused),
        ("nothing", "nothing", "WITH t AS (SELECT 1 AS k) SELECT k FROM t", "1"),
        ("nothing", "nothing", "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM t", refused),
        ("nothing", "nothing", "PREPARE p AS SELECT * FROM t; EXECUTE p", refused),
        ("nothing", "nothing", "CREATE TABLE u AS SELECT * FROM t", refused),
        ("nothing", "nothing", "COPY (SELECT * FROM t) TO STDOUT", refused),
        ("nothing", "nothing", "COPY t TO STDOUT", refused),
        ("nothing", "nothing", "SELECT count(*) > 0 FROM pg_class", "t"),
        (
            "nothing",
            "nothing",
            "SELECT count(*) FROM pg_stat_activity WHERE usename <> current_user AND query NOT LIKE '<%'",
            "0",
        ),
        ("nothing", "nothing", "ALTER ROLE nothing PASSWORD 'nothing'", "ALTER ROLE"),
        ("chief", "", "SELECT rolname FROM pg_authid WHERE rolpassword IS NULL AND rolcanlogin", "chief"),
    ] {
        let said = guarded.ask(role, password, &[statement]);
        let held = if expected.len() == 5 { said.contains(expected) } else { said.trim_end() == expected };
        assert!(held, "{role}: {statement}: {said}");
    }
}

#[test]
fn who_is_not_let_in() {
    let guarded = Guarded::start(RULES, ROLES);
    for (role, password, words) in [
        ("reader", "read", "password authentication failed for user \"reader\""),
        ("reader", "", "no password supplied"),
        ("nobody", "x", "password authentication failed for user \"nobody\""),
        ("late", "late", "password authentication failed for user \"late\""),
        ("shut", "shut", "role \"shut\" is not permitted to log in"),
    ] {
        let said = guarded.ask(role, password, &["SELECT 1"]);
        assert!(said.contains(words), "{role}: {said}");
    }
    let log = guarded.daemon.printed();
    assert!(log.contains("role=\"nobody\"") && log.contains("address=127.0.0.1"), "{log}");
    assert!(!log.contains("SCRAM-SHA-256$") && !log.contains("r e a d"), "{log}");
}

#[test]
fn memcached_clients_show_their_password_first() {
    let guarded = Guarded::start(RULES, ROLES);
    let (mut writer, stored) = guarded.login("writer write");
    assert_eq!(stored, "STORED");
    assert_eq!(answer(&mut writer, "set k 0 0 1\r\nv"), "STORED");
    assert_eq!(answer(&mut writer, "flush_all"), "CLIENT_ERROR permission denied");
    let (mut reader, stored) = guarded.login("reader r e a d");
    assert_eq!(stored, "STORED");
    assert_eq!(answer(&mut reader, "set k 0 0 1\r\nw"), "CLIENT_ERROR permission denied");
    assert_eq!(answer(&mut reader, "incr k 1"), "CLIENT_ERROR permission denied");
    assert_eq!(answer(&mut reader, "mg k v"), "VA 1");
    assert_eq!(reader.line(), "v");
    assert_eq!(
        answer(&mut reader, "sql 21\r\nDELETE FROM memcached"),
        "ERROR 42501 permission denied for table memcached"
    );
    let (mut nothing, stored) = guarded.login("nothing nothing");
    assert_eq!(stored, "STORED");
    assert_eq!(answer(&mut nothing, "get k"), "CLIENT_ERROR permission denied");
    assert_eq!(
        answer(&mut nothing, "sql 25\r\nSELECT key FROM memcached"),
        "ERROR 42501 permission denied for table memcached"
    );
    let mut stranger = guarded.memcached();
    assert_eq!(answer(&mut stranger, "get any"), "CLIENT_ERROR unauthenticated");
    assert_eq!(answer(&mut stranger, "set k 0 0 9\r\nreader me"), "CLIENT_ERROR authentication failure");
    assert_eq!(answer(&mut stranger, "ms k 14\r\nreader r e a d"), "HD");
    assert_eq!(answer(&mut stranger, "mn"), "MN");
}

#[test]
fn sasl_of_a_real_client() {
    let python =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/drivers/bmemcached/bin/python"));
    assert!(python.exists(), "python-binary-memcached is not installed; make tools does it");
    let guarded = Guarded::start(RULES, ROLES);
    let script = format!(
        "import bmemcached
good = bmemcached.Client(('127.0.0.1:{0}',), 'writer', 'write')
print(good.set('a', 'b'), good.get('a'))
reader = bmemcached.Client(('127.0.0.1:{0}',), 'reader', 'r e a d')
print(reader.get('a'))
try:
    bad = bmemcached.Client(('127.0.0.1:{0}',), 'writer', 'wrong')
    print(bad.get('a'))
except bmemcached.exceptions.MemcachedException as error:
    print(error.code)
",
        guarded.daemon.port
    );
    let (_, out, error) = run(Command::new(python).args(["-c", &script]));
    assert_eq!(out, "True b\nb\n32\n", "{error}");
}

/// libmemcached takes the best mechanism that its SASL library has: SCRAM where Debian's modules are installed.
#[test]
fn sasl_of_libmemcached() {
    let guarded = Guarded::start(
        &RULES.replace("password      protocol=memcached", "scram-sha-256 protocol=memcached"),
        ROLES,
    );
    let script = format!(
        "foreach ([['writer', 'write'], ['writer', 'wrong'], ['reader', 'r e a d']] as [$user, $password]) {{
            $client = new Memcached();
            $client->setOption(Memcached::OPT_BINARY_PROTOCOL, true);
            $client->setSaslAuthData($user, $password);
            $client->addServer('127.0.0.1', {});
            echo json_encode([$client->set('a', 'b'), $client->get('a')]), PHP_EOL;
        }}",
        guarded.daemon.port
    );
    let (_, out, error) = run(Command::new("php").args(["-r", &script]));
    assert_eq!(out, "[true,\"b\"]\n[false,false]\n[false,\"b\"]\n", "{error}");
}

/// memcached's other clients that can log in, each by its own library.
#[test]
fn sasl_of_pylibmc_memjs_and_spymemcached() {
    let guarded = Guarded::start(RULES, ROLES);
    let port = guarded.daemon.port;
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let python = format!(
        "import pylibmc\n\
         for password in ('write', 'wrong'):\n\
         \x20   client = pylibmc.Client(['127.0.0.1:{port}'], binary=True, username='writer', password=password)\n\
         \x20   try:\n\
         \x20       client['pylibmc'] = 'x'\n\
         \x20       print(client['pylibmc'])\n\
         \x20   except pylibmc.Error as error:\n\
         \x20       print('AUTHENTICATION FAILURE' in str(error))"
    );
    let (_, out, error) = run(Command::new("/usr/bin/python3").args(["-c", &python]));
    assert_eq!(out, "x\nTrue\n", "{error}");
    let node = format!(
        "const login = {{ username: 'writer', password: 'write' }};
         const client = require('memjs').Client.create('127.0.0.1:{port}', login);
         client.set('memjs', 'x', {{}}).then(() => client.get('memjs')).then((found) => {{
             console.log(found.value.toString());
             client.close();
         }});"
    );
    let modules = folder.join("target/drivers/memjs/node_modules");
    let (_, out, error) = run(Command::new("node").env("NODE_PATH", modules).args(["-e", &node]));
    assert_eq!(out, "x\n", "{error}");
    let mut java = Command::new("java");
    java.arg("-cp").arg(folder.join("target/drivers/spymemcached/*"));
    java.arg(folder.join("tests/drivers/spymemcached/Login.java"));
    let (_, out, error) = run(java.args([&port.to_string(), "writer", "write"]));
    assert_eq!(out, "held\n", "{error}");
}

#[test]
fn roles_outlive_the_daemon_and_rights_change_at_once() {
    let mut guarded = Guarded::start(RULES, ROLES);
    assert_eq!(
        guarded.ask("chief", "", &["CREATE USER fresh PASSWORD 'new' IN ROLE pg_read_all_data"]),
        "CREATE ROLE\n"
    );
    let mode = fs::metadata(guarded.file("roles")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    guarded.daemon.kill();
    guarded.daemon.restart();
    assert_eq!(guarded.ask("fresh", "new", &["SELECT count(*) FROM memcached"]), "0\n");
    let (mut open, stored) = guarded.login("fresh new");
    assert_eq!(stored, "STORED");
    assert_eq!(answer(&mut open, "get any"), "END");
    // A session that is open loses its rights with the statement that takes them.
    assert_eq!(guarded.ask("chief", "", &["REVOKE pg_read_all_data FROM fresh"]), "REVOKE ROLE\n");
    assert_eq!(answer(&mut open, "get any"), "CLIENT_ERROR permission denied");
    assert_eq!(guarded.ask("chief", "", &["DROP ROLE fresh"]), "DROP ROLE\n");
    assert!(guarded.ask("fresh", "new", &["SELECT 1"]).contains("password authentication failed"));
}

#[test]
fn files_with_mistakes() {
    let guarded = Guarded::start(RULES, ROLES);
    fs::write(guarded.file("rules"), "host all all all trust\n").unwrap();
    guarded.daemon.signal("HUP");
    guarded.daemon.wait_until_it_says("access was not changed");
    assert!(
        guarded.daemon.printed().contains("line 1: trust is for Unix sockets"),
        "{}",
        guarded.daemon.printed()
    );
    assert_eq!(guarded.ask("reader", "r e a d", &["SELECT 1"]), "1\n");
    fs::write(guarded.file("rules"), "host all chief 127.0.0.1/32 trust\n").unwrap();
    guarded.daemon.signal("HUP");
    while !guarded.ask("reader", "r e a d", &["SELECT 1"]).contains("no rule (hba_file) lets in user") {}
    let folder = Folder::new();
    for (flag, name, text, words) in [
        ("--hba-file", "rules", "local all all peer\nhost all all", "line 2: an address is missing"),
        ("--roles-file", "roles", "CREATE ROLE a;\nCREATE ROLE a;\n", "line 2: role \"a\" already exists"),
        ("-Y", "users", "me\n", "line 1: expected user:password"),
        ("-Y", "empty", "\n", "there is no user in it"),
    ] {
        let path = folder.write(name, text);
        private(&path);
        let (code, _, said) = run(program().args(["-p", "0", "-s", "none", flag]).arg(&path));
        assert!(code == Some(1) && said.contains(words), "{said}");
    }
    let open = folder.write("open", "CREATE ROLE a;\n");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    let (code, _, said) = run(program().args(["-p", "0", "-s", "none", "--roles-file"]).arg(&open));
    assert!(code == Some(1) && said.contains("run chmod 600 on it"), "{said}");
}

/// memcached takes a file of users that others can read, and containers make the files of their secrets so: the start
/// failed there. It is a warning, each time the file is read.
#[test]
fn memcacheds_file_of_users_may_be_readable_for_others() {
    let folder = Folder::new();
    let users = folder.write("users", "me:pw\n");
    fs::set_permissions(&users, fs::Permissions::from_mode(0o644)).unwrap();
    let daemon = Daemon::start_in(folder, &["-Y", users.to_str().unwrap()]);
    daemon.wait_until_it_says("run chmod 600 on it");
    let mut client = daemon.connect_tcp();
    assert_eq!(client.ask("set auth 0 0 5\r\nme pw"), "STORED");
    assert_eq!(client.ask("mn"), "MN");
    fs::write(&users, "you:pw\n").unwrap();
    daemon.signal("HUP");
    daemon.wait_until_it_says("settings read again");
    assert_eq!(daemon.connect_tcp().ask("set auth 0 0 6\r\nyou pw"), "STORED");
}

#[test]
fn addresses_beyond_this_machine_need_a_proof() {
    let port = free_port().to_string();
    let (code, _, said) = run(program().args(["-p", &port, "-s", "none", "-l", "0.0.0.0"]));
    assert!(code == Some(1) && said.contains("no rule asks its clients for a proof"), "{said}");
    let folder = Folder::new();
    let users = folder.write("users", "# ours\nme:my pass\n");
    private(&users);
    let daemon = Daemon::start(&["-l", "0.0.0.0", "-Y", &users.display().to_string()]);
    let mut client = Client::try_at("127.0.0.1", daemon.port).unwrap();
    assert_eq!(answer(&mut client, "version"), "CLIENT_ERROR unauthenticated");
    assert_eq!(answer(&mut client, "set any 0 0 10\r\nme my pass"), "STORED");
    // As in memcached, a user of the file may do everything.
    assert_eq!(answer(&mut client, "flush_all"), "OK");
}

#[test]
fn a_file_of_roles_is_made_with_a_superuser() {
    let folder = Folder::new();
    let roles = folder.0.join("made").display().to_string();
    let daemon = Daemon::start_in(folder, &["--roles-file", &roles]);
    let text = fs::read_to_string(daemon.folder.0.join("made")).unwrap();
    assert!(text.contains(" SUPERUSER CREATEROLE LOGIN;"), "{text}");
}

/// Everybody was told where the files of roles, rules and keys are, and a stranger's `COMMENT` was carried out.
#[test]
fn where_files_are_is_for_who_reads_all_settings() {
    let guarded = Guarded::start(RULES, &format!("{ROLES}GRANT pg_read_all_settings TO reader;\n"));
    let asked = |role, password, statement: &str| guarded.ask(role, password, &[statement]);
    let roles = format!("{}\n", guarded.file("roles").display());
    for (role, password) in [("chief", ""), ("reader", "r e a d")] {
        assert_eq!(asked(role, password, "SHOW roles_file"), roles, "{role}");
    }
    for name in ["roles_file", "hba_file", "ssl_key_file", "arena"] {
        for statement in [format!("SHOW {name}"), format!("SELECT current_setting('{name}')")] {
            assert_eq!(asked("nothing", "nothing", &statement), "ERROR:  42501\n", "{statement}");
        }
        let listed = format!("SELECT count(*) FROM pg_settings WHERE name = '{name}'");
        assert_eq!(asked("nothing", "nothing", &listed), "0\n", "{name}");
    }
    assert_eq!(asked("nothing", "nothing", "SHOW max_connections"), "1024\n");
    asked("chief", "", "CREATE TABLE t (k INT PRIMARY KEY, v TEXT)");
    for of in ["TABLE t", "COLUMN t.v"] {
        let statement = format!("COMMENT ON {of} IS 'mine'");
        assert_eq!(asked("writer", "write", &statement), "ERROR:  42501\n", "{of}");
        assert_eq!(asked("chief", "", &statement), "COMMENT\n", "{of}");
    }
}

/// What tools show of privileges: psql's lists, and the functions and views that others ask.
#[test]
fn privileges_are_shown() {
    let guarded = Guarded::start(RULES, ROLES);
    let made = guarded.ask(
        "chief",
        "",
        &[
            "CREATE TABLE t (k INT PRIMARY KEY, v TEXT)",
            "GRANT SELECT, UPDATE ON t TO reader WITH GRANT OPTION",
            "GRANT SELECT (v) ON t TO nothing",
            "GRANT SELECT ON t TO PUBLIC",
            "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO team",
            "GRANT CREATE ON SCHEMA public TO writer",
            "GRANT SELECT, UPDATE (value) ON memcached TO nothing",
        ],
    );
    assert!(!made.contains("ERROR"), "{made}");
    let asked = |role, password, statement| guarded.ask(role, password, &[statement]);
    let listed = asked("chief", "", "\\dp t");
    let whole = "chief=arwdDxt/chief\nreader=r*w*/chief\n=r/chief";
    assert!(listed.contains(whole) && listed.contains("v:\n  nothing=r/chief"), "{listed}");
    let defaults = asked("chief", "", "\\ddp");
    assert!(defaults.contains("team=r/chief"), "{defaults}");
    let roles = asked("chief", "", "\\du");
    assert!(roles.contains("reader||{team}") && roles.contains("chief|Superuser"), "{roles}");
    let schemas = asked("chief", "", "\\dn+");
    assert!(schemas.contains("writer=UC/pg_database_owner"), "{schemas}");
    for (role, password, statement, expected) in [
        ("nothing", "nothing", "SELECT has_table_privilege('t', 'UPDATE')", "f"),
        ("nothing", "nothing", "SELECT has_table_privilege('t', 'UPDATE, SELECT')", "t"),
        ("nothing", "nothing", "SELECT has_table_privilege('reader', 't', 'UPDATE WITH GRANT OPTION')", "t"),
        ("nothing", "nothing", "SELECT has_column_privilege('writer', 't', 'v', 'SELECT')", "t"),
        ("nothing", "nothing", "SELECT has_any_column_privilege('nothing', 't', 'INSERT')", "f"),
        ("nothing", "nothing", "SELECT has_schema_privilege('writer', 'public', 'CREATE')", "t"),
        ("nothing", "nothing", "SELECT has_schema_privilege('public', 'CREATE')", "f"),
        (
            "nothing",
            "nothing",
            "SELECT count(*) FROM information_schema.role_table_grants WHERE grantee = 'reader'",
            "0",
        ),
        (
            "reader",
            "r e a d",
            "SELECT privilege_type, is_grantable FROM information_schema.table_privileges WHERE grantee = 'reader'",
            "SELECT|YES\nUPDATE|YES",
        ),
        ("chief", "", "SELECT tableowner FROM pg_tables WHERE tablename = 't'", "chief"),
        ("chief", "", "SELECT acldefault('r', 10)", "{chief=arwdDxt/chief}"),
        ("writer", "write", "CREATE TABLE own (a INT)", "CREATE TABLE"),
        ("chief", "", "SELECT tableowner FROM pg_tables WHERE tablename = 'own'", "writer"),
    ] {
        assert_eq!(asked(role, password, statement).trim_end(), expected, "{role}: {statement}");
    }
    // memcached's own table: its rows by the role's privileges alone.
    let (mut client, said) = guarded.login("nothing nothing");
    assert_eq!(said, "STORED");
    assert_eq!(answer(&mut client, "get a"), "END");
    assert_eq!(answer(&mut client, "delete a"), "CLIENT_ERROR permission denied");
    assert_eq!(answer(&mut client, "set a 0 0 1\r\nx"), "CLIENT_ERROR permission denied");
}

/// Privileges lie with the tables: a daemon that is killed and started again has them.
#[test]
fn privileges_survive_a_kill() {
    let mut guarded = Guarded::start(RULES, ROLES);
    let statements = [
        "CREATE TABLE t (k INT PRIMARY KEY, v TEXT)",
        "INSERT INTO t VALUES (1, 'one')",
        "CREATE VIEW seen AS SELECT v FROM t",
        "GRANT SELECT (v) ON t TO nothing",
        "GRANT SELECT ON seen TO nothing",
        "GRANT SELECT ON t TO shut",
        "REVOKE SELECT ON t FROM shut",
        "ALTER TABLE t OWNER TO writer",
        "GRANT INSERT ON memcached TO nothing",
        "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC",
        "CREATE FUNCTION lent() RETURNS TEXT LANGUAGE sql SECURITY DEFINER SET search_path = public AS 'SELECT max(v) FROM t'",
        "GRANT EXECUTE ON FUNCTION lent TO shut",
    ];
    let made = guarded.ask("chief", "", &statements);
    assert!(!made.contains("ERROR"), "{made}");
    let shown = |guarded: &Guarded| {
        guarded.ask("chief", "", &["\\dp t", "\\dp seen", "\\dp sqlcached.memcached", "\\ddp", "\\sf lent"])
    };
    let before = shown(&guarded);
    assert!(before.contains("writer=arwdDxt/writer"), "{before}");
    assert!(before.contains("function|chief=X/chief") && before.contains("SECURITY DEFINER"), "{before}");
    guarded.daemon.kill();
    guarded.daemon.restart();
    assert_eq!(shown(&guarded), before);
    assert_eq!(guarded.ask("nothing", "nothing", &["SELECT v FROM t", "SELECT v FROM seen"]), "one\none\n");
    assert!(guarded.ask("nothing", "nothing", &["SELECT k FROM t"]).contains("42501"));
    assert_eq!(
        guarded.ask("chief", "", &["CREATE FUNCTION later() RETURNS INT RETURN 1"]),
        "CREATE FUNCTION\n"
    );
    for statement in ["SELECT lent()", "SELECT later()"] {
        assert!(guarded.ask("nothing", "nothing", &[statement]).contains("42501"), "{statement}");
    }
    assert_eq!(guarded.ask("writer", "write", &["DROP VIEW seen", "TRUNCATE t"]).matches("42501").count(), 1);
}

/// What a role's sessions begin with. Before, each client had to send it, or it held for everybody.
#[test]
fn settings_of_a_role_are_those_of_its_sessions() {
    let mut guarded = Guarded::start(RULES, ROLES);
    let chief = |guarded: &Guarded, statement: &str| guarded.ask("chief", "", &[statement]);
    for statement in [
        "ALTER ROLE reader SET statement_timeout = '1500ms'",
        "ALTER ROLE reader SET search_path TO s, \"T\"",
        "ALTER USER reader SET TIME ZONE 'Europe/Berlin'",
        "ALTER ROLE reader SET work_mem = '1MB'",
        "ALTER ROLE reader RESET work_mem",
    ] {
        assert_eq!(chief(&guarded, statement), "ALTER ROLE\n", "{statement}");
    }
    for (statement, state) in [
        ("ALTER ROLE reader SET nonsense = 1", "42704"),
        ("ALTER ROLE reader SET statement_timeout = 'soon'", "22023"),
        ("ALTER ROLE reader SET server_version = '1'", "55P02"),
        ("ALTER ROLE reader IN DATABASE x SET work_mem = '1MB'", "0A000"),
        ("ALTER ROLE nobody SET work_mem = '1MB'", "42704"),
    ] {
        assert_eq!(chief(&guarded, statement), format!("ERROR:  {state}\n"), "{statement}");
    }
    let shown = ["SHOW statement_timeout", "SHOW search_path", "SHOW TimeZone"];
    let own = "1500ms\ns, T\nEurope/Berlin\n";
    assert_eq!(guarded.ask("reader", "r e a d", &shown), own);
    assert_eq!(guarded.ask("writer", "write", &shown[2..]), "UTC\n");
    let listed = "SELECT rolconfig FROM pg_roles WHERE rolname = 'reader'";
    let config = "{\"search_path=s, T\",statement_timeout=1500ms,timezone=Europe/Berlin}\n";
    assert_eq!(chief(&guarded, listed), config);
    let by_number = "SELECT setconfig FROM pg_db_role_setting WHERE setrole = 'reader'::regrole";
    assert_eq!(chief(&guarded, by_number), config);
    // It outlives the daemon. A role changes its own, and nobody else's.
    guarded.daemon.kill();
    guarded.daemon.restart();
    assert_eq!(guarded.ask("reader", "r e a d", &shown), own);
    assert_eq!(guarded.ask("reader", "r e a d", &["ALTER ROLE writer RESET ALL"]), "ERROR:  42501\n");
    assert_eq!(guarded.ask("reader", "r e a d", &["ALTER ROLE CURRENT_USER RESET ALL"]), "ALTER ROLE\n");
    assert_eq!(guarded.ask("reader", "r e a d", &shown[2..]), "UTC\n");
}

/// Who defined, granted, came in and invalidated, with no password in it; a file that was renamed is made again.
#[test]
fn the_audit_log_has_who_did_what() {
    let folder = Folder::new();
    let log = folder.0.join("audit.json");
    let guarded = Guarded::start_in(folder, RULES, ROLES, &["--audit-file", &log.display().to_string()]);
    let chief = |statements: &[&str]| guarded.ask("chief", "", statements);
    chief(&[
        "CREATE TABLE t (k INT PRIMARY KEY, v TEXT) WITH (prefix = 't:', value = 'v')",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "GRANT DELETE, SELECT ON t TO nothing",
        "ALTER ROLE nothing PASSWORD 'very secret'",
        "CREATE ROLE extra LOGIN PASSWORD 'also secret'",
    ]);
    guarded.ask("nothing", "very secret", &["DELETE FROM t WHERE v <> 'c'", "DROP TABLE t", "SELECT 1"]);
    guarded.ask("nothing", "wrong", &["SELECT 1"]);
    chief(&["BEGIN; DELETE FROM t; ROLLBACK"]);
    let (mut client, answer) = guarded.login("writer write");
    assert_eq!(answer, "STORED");
    client.send(b"flush_all\r\n");
    client.line();
    let lines = || fs::read_to_string(&log).unwrap_or_default();
    let text = lines();
    assert!(!text.contains("secret") && !text.contains("'a'"), "{text}");
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |event: &Value| {
        let shown = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let what = [shown("statement"), shown("request")].concat();
        format!("{} {} {} {what}", shown("event"), shown("role"), shown("protocol"))
    };
    let all: Vec<String> = events.iter().map(told).collect();
    for expected in [
        "login chief postgresql ",
        "definition chief postgresql create table t (k int primary key, v text) with (prefix = ?, value = ?)",
        "grant chief postgresql grant delete, select on t to nothing",
        "grant chief postgresql alter role nothing password ?",
        "grant chief postgresql create role extra login password ?",
        "login nothing postgresql ",
        "invalidation nothing postgresql delete from t where v <> ?",
        "refused nothing postgresql drop table t",
        "refused nothing postgresql connect",
        "login writer memcached ",
    ] {
        assert_eq!(
            all.iter().filter(|line| line.starts_with(expected)).count().min(1),
            1,
            "{expected}: {all:#?}"
        );
    }
    let deleted = events.iter().find(|event| event["event"] == "invalidation").unwrap();
    assert_eq!((&deleted["rows"], &deleted["table"]), (&Value::from(2), &Value::from("t")), "{deleted}");
    assert!(deleted["at"].as_str().unwrap().contains('T') && deleted["pid"].is_number(), "{deleted}");
    assert!(!all.iter().any(|line| line.contains("delete from t") && !line.contains("where")), "{all:#?}");
    fs::rename(&log, log.with_extension("1")).unwrap();
    guarded.daemon.signal("HUP");
    until("the file is made again", || log.exists());
    chief(&["DROP TABLE t"]);
    assert!(lines().contains("drop table t"), "{}", lines());
}
