//! Migrations in a transaction, and the daemon dies: each of them is there whole or not at all.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use crate::client::Client;
use crate::drivers::place::SqlDaemon;
use crate::seed;

/// Deaths in one test run; `KILLS=1000` asks for more.
const KILLS: usize = 12;

/// Migrations in one life at most.
const MIGRATIONS: usize = 40;

/// Rows of a table that a migration changes only in what rows do not say.
const ROWS: u64 = 200;

const FIRST: &str = "\
    CREATE TABLE keeps (id INT PRIMARY KEY, a TEXT, c INT);
    INSERT INTO keeps SELECT i, 'a' || i, i FROM generate_series(1, 200) AS i;
    CREATE TABLE other (id INT PRIMARY KEY, v INT NOT NULL);
    CREATE TABLE goes (id INT PRIMARY KEY, x TEXT CHECK (x <> ''));
    ";

const UP: &str = "\
    BEGIN;
    CREATE TYPE mood AS ENUM ('sad', 'ok');
    CREATE SCHEMA own;
    CREATE SEQUENCE own.q START 5;
    CREATE TABLE own.made (id SERIAL PRIMARY KEY, m mood DEFAULT 'ok', n INT DEFAULT nextval('own.q'));
    INSERT INTO own.made (m) VALUES ('sad');
    CREATE INDEX made_n ON own.made (n, id);
    CREATE VIEW seen AS SELECT id FROM own.made;
    COMMENT ON TABLE keeps IS 'kept';
    ALTER TABLE keeps RENAME COLUMN a TO b;
    CREATE INDEX keeps_c ON keeps (c);
    INSERT INTO other VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET v = other.v + 1;
    ALTER TABLE other ADD COLUMN w INT, ALTER COLUMN v DROP NOT NULL;
    ALTER TABLE goes RENAME TO gone;
    DROP TABLE gone;
    COMMIT;
    ";

const DOWN: &str = "\
    BEGIN;
    CREATE TABLE goes (id INT PRIMARY KEY, x TEXT CHECK (x <> ''));
    DELETE FROM other WHERE v IS NULL;
    ALTER TABLE other DROP COLUMN w, ALTER COLUMN v SET NOT NULL;
    DROP INDEX keeps_c;
    ALTER TABLE keeps RENAME COLUMN b TO a;
    COMMENT ON TABLE keeps IS NULL;
    DROP VIEW seen;
    DROP TABLE own.made;
    DROP SCHEMA own CASCADE;
    DROP TYPE mood;
    COMMIT;
    ";

/// What is defined, in words.
fn defined(client: &mut Client) -> String {
    const OF_USERS: &str = "NOT IN ('pg_catalog', 'information_schema', 'sqlcached')";
    let queries = [
        format!(
            "SELECT table_schema, table_name, column_name, data_type, is_nullable, column_default \
             FROM information_schema.columns WHERE table_schema {OF_USERS} ORDER BY 1, 2, ordinal_position"
        ),
        format!("SELECT schemaname, indexdef FROM pg_indexes WHERE schemaname {OF_USERS} ORDER BY 1, 2"),
        "SELECT viewname FROM pg_views WHERE schemaname = 'public' ORDER BY 1".to_owned(),
        "SELECT enumlabel FROM pg_enum ORDER BY enumsortorder".to_owned(),
        format!("SELECT sequencename FROM pg_sequences WHERE schemaname {OF_USERS} ORDER BY 1"),
        format!("SELECT nspname FROM pg_namespace WHERE nspname {OF_USERS} ORDER BY 1"),
        "SELECT obj_description('keeps'::regclass) AS said".to_owned(),
        "SELECT conname FROM pg_constraint ORDER BY 1".to_owned(),
    ];
    queries.iter().map(|query| format!("{:?}", client.rows(query))).collect::<Vec<_>>().join("\n")
}

/// A migration that was under way at a crash was left half applied, and could neither be run again nor taken back.
#[test]
fn a_migration_is_whole_or_not_there_after_kill_9() {
    let mut random = fastrand::Rng::with_seed(seed());
    let mut server = SqlDaemon::start(&["-m", "32"]);
    let psql = |server: &SqlDaemon, script: &str| {
        let mut command = server.place.program("psql");
        command.args(["-X", "-v", "ON_ERROR_STOP=1"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // It may be gone before it has read everything.
        let _cut = child.stdin.take().unwrap().write_all(script.as_bytes());
        child
    };
    let done = |server: &SqlDaemon, script| psql(server, script).wait_with_output().unwrap();
    assert!(done(&server, FIRST).status.success());
    let down = defined(&mut server.daemon.connect());
    assert!(done(&server, UP).status.success());
    let up = defined(&mut server.daemon.connect());
    assert_ne!(up, down);
    assert!(done(&server, DOWN).status.success());
    assert_eq!(defined(&mut server.daemon.connect()), down);

    let kills = std::env::var("KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let mut is_up = false;
    for round in 0..kills {
        let script: String =
            (0..MIGRATIONS).map(|at| if (at % 2 == 0) == is_up { DOWN } else { UP }).collect();
        let client = psql(&server, &script);
        std::thread::sleep(Duration::from_micros(random.u64(..150_000)));
        server.daemon.kill();
        let said = String::from_utf8(client.wait_with_output().unwrap().stdout).unwrap();
        let committed = said.lines().filter(|line| *line == "COMMIT").count();
        server.daemon.restart();
        let mut client = server.daemon.connect();
        let found = defined(&mut client);
        let after = |count: usize| if count.is_multiple_of(2) == is_up { &up } else { &down };
        let whole = found == *after(committed) || found == *after(committed + 1);
        assert!(
            whole,
            "round {round}, {committed} migrations were committed:\n{found}\nup:\n{up}\ndown:\n{down}"
        );
        is_up = found == up;
        let rows = client.rows("SELECT count(*) AS n FROM keeps");
        assert_eq!(rows[0]["n"].as_u64(), Some(ROWS), "round {round}: rows of a table that kept its columns");
        assert_eq!(
            client.rows("SELECT id FROM keeps WHERE c = 7").len(),
            1,
            "round {round}: by index or scan"
        );
    }
}
