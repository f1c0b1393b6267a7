//! PostgreSQL's own programs at the PostgreSQL listener: psql, pgbench, PgBouncer in front, and a PostgreSQL with
//! postgres_fdw.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::Client as Memcached;
use crate::daemon::{Folder, free_port, run};
use crate::drivers::place::{Place, SqlDaemon};
use crate::drivers::postgresql::{PostgreSql, is_root};

/// A statement that ends only when it is cancelled.
const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) \
                       SELECT count(*) FROM n";

/// Says so while another session runs `ENDLESS`.
const RUNNING: &str =
    "SELECT 'it ' || 'runs' FROM pg_stat_activity WHERE state = 'active' AND query ILIKE 'with rec%';";

/// How long to wait for another program.
const PATIENCE: Duration = Duration::from_secs(30);

/// A psql that reads no settings of the user's; what it printed, errors too.
fn psql(place: &Place, script: &str) -> String {
    let mut child = spawn_psql(place);
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    said(child)
}

fn spawn_psql(place: &Place) -> Child {
    let mut command = place.program("psql");
    command.args(["-X", "--no-password"]).env("PAGER", "cat").env("LC_ALL", "C.UTF-8");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn said(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Each of these words must be there.
fn contains(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no '{word}' in\n{text}");
    }
}

fn tables(place: &Place) {
    let made = psql(
        place,
        "DROP TABLE IF EXISTS psql_page;
         CREATE TABLE psql_page (id INTEGER PRIMARY KEY, path VARCHAR(50) NOT NULL, hits BIGINT DEFAULT 0);
         CREATE UNIQUE INDEX psql_page_path ON psql_page (path);
         INSERT INTO psql_page (id, path) VALUES (1, '/a'), (2, '/b');\n",
    );
    contains(&made, &["CREATE TABLE\n", "CREATE INDEX\n", "INSERT 0 2\n"]);
}

/// What holds at a PostgreSQL and here.
fn psql_session(place: &Place) {
    tables(place);
    let said = psql(place, "\\pset null -\nSELECT id, path, NULL AS empty FROM psql_page ORDER BY id;\n");
    contains(&said, &[" id | path | empty \n", "  1 | /a   | -\n", "(2 rows)\n"]);
    let said = psql(place, "SELECT * FROM psql_none;\n\\echo state :SQLSTATE\n");
    contains(&said, &["LINE 1: SELECT * FROM psql_none;\n                      ^", "state 42P01\n"]);
    let said = psql(place, "\\timing on\n\\x on\nSELECT id, path FROM psql_page WHERE id = 2;\n");
    contains(&said, &["Timing is on.", "-[ RECORD 1 ]", "path | /b", "Time: "]);
    let said = psql(place, "SELECT 1 AS a, 'x' AS b, count(*) FROM psql_page \\gdesc\n");
    contains(&said, &["a      | integer", "b      | text", "count  | bigint"]);
    let said = psql(
        place,
        "PREPARE p(int) AS SELECT path FROM psql_page WHERE id = $1;\nEXECUTE p(2);\nDEALLOCATE p;\n",
    );
    contains(&said, &["PREPARE\n", " /b\n", "DEALLOCATE\n"]);
    let said =
        psql(place, "BEGIN;\nDELETE FROM psql_page;\nROLLBACK;\nSELECT count(*) AS n FROM psql_page;\n");
    contains(&said, &["BEGIN\n", "DELETE 2\n", "ROLLBACK\n", " 2\n"]);
    let said = psql(
        place,
        "SELECT id FROM psql_page ORDER BY id \\gset\n\\set FETCH_COUNT 1\nSELECT * FROM psql_page;\n",
    );
    contains(&said, &["more than one row returned for \\gset", "/a", "/b", "(2 rows)"]);
}

/// `\d` and similar commands.
fn psql_describes(place: &Place) {
    tables(place);
    let said = psql(place, "\\d psql_page\n");
    contains(
        &said,
        &["able \"public.psql_page\"", "id     | integer", "not null", "character varying(50)", "bigint"],
    );
    contains(&said, &["\"psql_page_pkey\" PRIMARY KEY", "\"psql_page_path\" UNIQUE"]);
    contains(&psql(place, "\\d+ psql_page\n"), &["able \"public.psql_page\"", "Storage"]);
    contains(&psql(place, "\\dt\n"), &["List of relations", "public | psql_page"]);
    contains(&psql(place, "\\di\n"), &["psql_page_path", "psql_page_pkey"]);
    contains(&psql(place, "\\l\n"), &["List of databases", place.database]);
    contains(&psql(place, "\\dn\n"), &["List of schemas", "public"]);
    contains(&psql(place, "\\d no_such_table\n"), &["Did not find any relation named \"no_such_table\"."]);
    contains(&psql(place, "\\conninfo\n"), &["You are connected to database"]);
    contains(&psql(place, "\\du\n"), &["List of roles", place.user]);
    contains(&psql(place, "\\dv\n\\df psql_none\n"), &["Did not find any relations."]);
    // psql asks other questions of a table with a foreign key; one of them was a syntax error once.
    let linked = "CREATE TABLE psql_link (id INTEGER PRIMARY KEY, page INTEGER REFERENCES psql_page (id));\n\\d psql_link\n\\d+ psql_link\nDROP TABLE psql_link;\n";
    let said = psql(place, linked);
    contains(
        &said,
        &["\"psql_link_page_fkey\" FOREIGN KEY (page) REFERENCES psql_page(id)", "Storage", "DROP TABLE"],
    );
    assert!(!said.contains("ERROR"), "{said}");
}

fn psql_copies(place: &Place) {
    tables(place);
    let folder = Folder::new();
    let file = folder.write("rows.csv", "10,\"/x,y\",5\n11,/z,6\n");
    let out = folder.0.join("out.csv");
    let script = format!(
        "\\copy psql_page FROM '{}' WITH (FORMAT csv)\n\\copy (SELECT id, path FROM psql_page WHERE id > 9 ORDER BY id) \
         TO '{}' WITH (FORMAT csv, HEADER)\nCOPY psql_page (id, path) FROM STDIN;\n20\t/in\n\\.\n\
         COPY psql_page (path) TO STDOUT;\n",
        file.display(),
        out.display()
    );
    contains(&psql(place, &script), &["COPY 2\nCOPY 2\nCOPY 1\n", "/x,y\n", "/in\n"]);
    assert_eq!(std::fs::read_to_string(out).unwrap(), "id,path\n10,\"/x,y\"\n11,/z\n");
}

/// Ctrl-C: psql asks the server to cancel. Running a script, it ends then.
fn psql_cancels(place: &Place) {
    let mut child = spawn_psql(place);
    writeln!(child.stdin.take().unwrap(), "{ENDLESS};").unwrap();
    // A signal that comes before the statement runs would end psql itself.
    let end = Instant::now() + PATIENCE;
    while !psql(place, RUNNING).contains("it runs") {
        assert!(Instant::now() < end, "the statement does not begin");
    }
    assert!(Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap().success());
    contains(&said(child), &["Cancel request sent", "canceling statement due to user request"]);
}

#[test]
fn psql_at_a_postgresql() {
    let server = PostgreSql::start();
    for check in [psql_session, psql_describes, psql_copies, psql_cancels] {
        check(&server.place);
    }
}

#[test]
fn psql_at_the_daemon() {
    let daemon = SqlDaemon::start(&[]);
    psql_session(&daemon.place);
    psql_copies(&daemon.place);
    psql_cancels(&daemon.place);
}

#[test]
fn psql_describes_tables() {
    let daemon = SqlDaemon::start(&[]);
    psql_describes(&daemon.place);
    let options = "CREATE TABLE psql_frag (key TEXT PRIMARY KEY, body TEXT) WITH (prefix = 'f:', value = 'body', ttl = '10 min');\n";
    contains(&psql(&daemon.place, options), &["CREATE TABLE"]);
    contains(&psql(&daemon.place, "\\d+ psql_frag\n"), &["prefix", "ttl"]);
}

/// A point read and an upsert, in each of pgbench's modes. Each client has its own paths: if two clients insert one
/// path at the same moment, PostgreSQL may report a duplicate, for `ON CONFLICT` names only the index on `id`.
fn pgbench_runs(place: &Place) {
    tables(place);
    let folder = Folder::new();
    let script = folder.write(
        "script.sql",
        "\\set id random(1, 1000)\n\
         SELECT path, hits FROM psql_page WHERE id = :id;\n\
         INSERT INTO psql_page (id, path) VALUES (:id, 'p' || :id || '-' || :client_id) ON CONFLICT (id) DO UPDATE SET hits = psql_page.hits + 1;\n",
    );
    for mode in ["simple", "extended", "prepared"] {
        let mut pgbench = place.program("pgbench");
        pgbench.args(["-n", "-M", mode, "-c", "4", "-t", "100", "-f"]).arg(&script);
        let (code, out, error) = run(&mut pgbench);
        assert_eq!(code, Some(0), "{mode}: {out}{error}");
        contains(
            &out,
            &["number of transactions actually processed: 400/400", "number of failed transactions: 0 "],
        );
    }
    // Rows 1 and 2 had no hits at first, the others were made by an upsert; each of 1,200 counts once.
    let found = psql(place, "\\t on\n\\a\nSELECT sum(hits) + count(*) - 2 FROM psql_page;\n");
    contains(&found, &["\n1200\n"]);
}

#[test]
fn pgbench() {
    let daemon = SqlDaemon::start(&[]);
    pgbench_runs(&daemon.place);
}

/// A PgBouncer that pools by transaction.
struct PgBouncer {
    child: Child,
    place: Place,
    folder: Folder,
}

impl PgBouncer {
    fn start(behind: &Place) -> Self {
        let folder = Folder::new();
        let port = free_port();
        let (path, user) = (folder.0.display(), behind.user);
        folder.write("users", &format!("\"{user}\" \"\"\n"));
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir = {path}\nauth_type = trust\nauth_file = {path}/users\nadmin_users = {user}\n\
             pool_mode = transaction\ndefault_pool_size = 2\nlogfile = {path}/log\npidfile = {path}/pid\n",
            behind.port
        );
        let file = folder.write("pgbouncer.ini", &settings);
        let mut command = Command::new("pgbouncer");
        command.arg("-q").arg(&file);
        if is_root() {
            // It refuses to run as root.
            assert_eq!(run(Command::new("chown").arg("-R").arg("nobody").arg(&folder.0)).0, Some(0));
            command.args(["-u", "nobody"]);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let place = Place { port, sockets: folder.0.clone(), ..behind.clone() };
        let bouncer = Self { child, place, folder };
        let end = Instant::now() + PATIENCE;
        while run(bouncer.place.program("pg_isready").arg("-q")).0 != Some(0) {
            assert!(Instant::now() < end, "PgBouncer does not answer\n{}", bouncer.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        bouncer
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.0.join("log")).unwrap_or_default()
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Twelve clients in transactions share two connections to the server.
fn pools_by_transaction(behind: &Place) {
    tables(behind);
    let bouncer = PgBouncer::start(behind);
    let folder = Folder::new();
    let script = folder.write(
        "script.sql",
        "BEGIN;\nUPDATE psql_page SET hits = hits + 1 WHERE id = :client_id + 100;\n\
         SELECT hits FROM psql_page WHERE id = :client_id + 100;\nCOMMIT;\n",
    );
    let rows: Vec<String> = (100..112).map(|id| format!("({id}, '/{id}')")).collect();
    psql(&bouncer.place, &format!("INSERT INTO psql_page (id, path) VALUES {};\n", rows.join(", ")));
    // PgBouncer of this age keeps no prepared statements in this mode; unnamed ones pass.
    for mode in ["simple", "extended"] {
        let mut pgbench = bouncer.place.program("pgbench");
        pgbench.args(["-n", "-M", mode, "-c", "12", "-t", "20", "-f"]).arg(&script);
        let (code, out, error) = run(&mut pgbench);
        assert_eq!(code, Some(0), "{mode}: {out}{error}\n{}", bouncer.log());
        contains(&out, &["number of transactions actually processed: 240/240"]);
    }
    contains(&psql(&bouncer.place, "\\t on\n\\a\nSELECT sum(hits) FROM psql_page;\n"), &["\n480\n"]);
    let mut admin = bouncer.place.clone();
    admin.database = "pgbouncer";
    let servers = psql(&admin, "\\t on\n\\a\nSHOW SERVERS;\n");
    let count = servers.lines().filter(|line| line.starts_with("S|")).count();
    assert!((1..=2).contains(&count), "{count} connections to the server\n{servers}");
}

#[test]
fn pgbouncer() {
    let daemon = SqlDaemon::start(&[]);
    pools_by_transaction(&daemon.place);
}

/// A PostgreSQL reads and writes a table at `far` as if it were its own.
fn foreign_tables(near: &Place, far: &Place) {
    let made = psql(
        far,
        "DROP TABLE IF EXISTS fdw_page;
         CREATE TABLE fdw_page (id INTEGER PRIMARY KEY, path TEXT NOT NULL, hits BIGINT, at TIMESTAMPTZ);
         INSERT INTO fdw_page VALUES (1, '/a', 10, '2026-02-03 04:05:06+00'), (2, '/b', NULL, NULL);\n",
    );
    contains(&made, &["INSERT 0 2\n"]);
    let (port, user, database) = (far.port, far.user, far.database);
    let said = psql(
        near,
        &format!(
            "CREATE EXTENSION postgres_fdw;
             CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw
                 OPTIONS (host '127.0.0.1', port '{port}', dbname '{database}');
             CREATE USER MAPPING FOR CURRENT_USER SERVER far OPTIONS (user '{user}');
             CREATE SCHEMA foreign_tables;
             IMPORT FOREIGN SCHEMA public LIMIT TO (fdw_page) FROM SERVER far INTO foreign_tables;
             SET search_path = foreign_tables;\n\\d fdw_page\n"
        ),
    );
    contains(&said, &["IMPORT FOREIGN SCHEMA", "id     | integer", "not null", "timestamp with time zone"]);
    let said = psql(
        near,
        "SET search_path = foreign_tables;\nSET TIME ZONE 'UTC';\n\\t on\n\\a\n\
         SELECT * FROM fdw_page ORDER BY id;\nINSERT INTO fdw_page VALUES (3, '/c', 30, NULL);\n\
         INSERT INTO fdw_page SELECT n, '/n' || n, n, now() FROM generate_series(10, 250) n;\n\
         UPDATE fdw_page SET hits = hits + 1 WHERE id = 3;\nDELETE FROM fdw_page WHERE id = 2;\n\
         SELECT path, hits FROM fdw_page WHERE id = 3;\nSELECT count(*), sum(hits) FROM fdw_page;\n\
         SELECT f.path FROM fdw_page f JOIN (VALUES (1), (3)) v(id) USING (id) ORDER BY 1;\n\
         BEGIN;\nDELETE FROM fdw_page;\nROLLBACK;\nSELECT 'left ' || count(*) FROM fdw_page;\n",
    );
    contains(&said, &["1|/a|10|2026-02-03 04:05:06+00\n2|/b||\n", "INSERT 0 1\n", "INSERT 0 241\n"]);
    contains(&said, &["UPDATE 1\n", "DELETE 1\n", "/c|31\n", "243|31371\n", "/a\n/c\n", "left 243\n"]);
}

#[test]
fn postgres_fdw() {
    let postgresql = PostgreSql::start();
    let daemon = SqlDaemon::start(&[]);
    foreign_tables(&postgresql.place, &daemon.place);
    // Its rows are memcached's like all others.
    let table =
        "CREATE TABLE fdw_frag (key TEXT PRIMARY KEY, body TEXT) WITH (prefix = 'fdw:', value = 'body');\n";
    psql(&daemon.place, table);
    psql(
        &postgresql.place,
        "IMPORT FOREIGN SCHEMA public LIMIT TO (fdw_frag) FROM SERVER far INTO foreign_tables;\n\
         INSERT INTO foreign_tables.fdw_frag VALUES ('a', 'from PostgreSQL');\n",
    );
    assert_eq!(
        Memcached::tcp(daemon.daemon.port).get("fdw:a").as_deref(),
        Some(b"from PostgreSQL".as_slice())
    );
}

/// What the tests above expect of us, a PostgreSQL does too.
#[test]
fn programs_at_a_postgresql() {
    let (near, far) = (PostgreSql::start(), PostgreSql::start());
    pgbench_runs(&far.place);
    pools_by_transaction(&far.place);
    foreign_tables(&near.place, &far.place);
}
