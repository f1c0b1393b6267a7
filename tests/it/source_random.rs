//! Random changes and random definitions at a real database, while tables here follow it in every mode. After each
//! round, when the daemon says that it has caught up, every cached row is compared with the source's.
//!
//! `SEED=n` replays a run. `CHANGES=1000000` asks for so many changes, `DEFINITIONS=10000` for so many definitions.

use std::collections::HashSet;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::drivers::mariadb::MariaDb;
use crate::drivers::place::SqlDaemon;
use crate::drivers::postgresql::PostgreSql;
use crate::sources::{asked, psql, until};

/// How long what the stream does not tell may take to be noticed: looks each 2 s, a new stream, new copies of mirrors.
const NOTICED: Duration = Duration::from_secs(30);

/// Changes of a round, and most rounds before these have more: each waits for the daemon.
const ROUND: usize = 60;
const ROUNDS_MAX: usize = 200;

/// Keys run from 1 to this.
const KEYS: u32 = 40;

/// A statement with random numbers: `{id}` and `{other}` are keys, `{y}` and `{z}` partitions, `{n}` is any.
type Statement = &'static str;

/// The tables of the source that are followed, with their keys and other columns.
const TABLES: &[(&str, &[&str])] = &[("plain", &["id"]), ("part", &["id", "y"]), ("chars", &["k"])];

/// A source, its statements, and what tables here may do with it.
struct Kind {
    changes: &'static [Statement],
    definitions: &'static [Statement],
    modes: &'static [Mode],
}

/// How a table here gets its rows.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// Clients store them, and changes remove them.
    Page,
    /// Clients store them, and changes write them.
    Updated,
    /// A miss asks for them.
    Through,
    /// All of them are copied.
    Mirror,
}

const POSTGRES: Kind = Kind {
    changes: &[
        "INSERT INTO plain VALUES ({id}, 'i{n}', 'w{n}', {n}, 'sad') ON CONFLICT (id) DO UPDATE SET v = 'c{n}'",
        "UPDATE plain SET v = 'u{n}', n = {n} WHERE id = {id}",
        "UPDATE plain SET id = {other} WHERE id = {id} AND NOT EXISTS (SELECT FROM plain WHERE id = {other})",
        "DELETE FROM plain WHERE id = {id}",
        "UPDATE plain SET mood = 'ok', n = n + 1 WHERE id % 7 = {y}",
        "INSERT INTO part VALUES ({id}, {y}, 'i{n}', {n}) ON CONFLICT (id, y) DO UPDATE SET v = 'c{n}'",
        "UPDATE part SET v = 'u{n}' WHERE id = {id}",
        "UPDATE part SET y = {z} WHERE id = {id} AND y = {y} AND NOT EXISTS (SELECT FROM part WHERE id = {id} AND y = {z})",
        "DELETE FROM part WHERE id = {id}",
        "INSERT INTO chars VALUES ('{id}', 'i{n}', {n}) ON CONFLICT (k) DO UPDATE SET v = 'c{n}'",
        "UPDATE chars SET v = 'u{n}' WHERE k = '{id}'",
        "UPDATE chars SET k = '{other}' WHERE k = '{id}' AND NOT EXISTS (SELECT FROM chars WHERE k = '{other}')",
        "BEGIN; UPDATE plain SET v = 'never'; UPDATE part SET v = 'never'; ROLLBACK",
        "BEGIN; UPDATE plain SET v = 'a{n}' WHERE id = {id}; SAVEPOINT s; DELETE FROM part; ROLLBACK TO s; COMMIT",
        "BEGIN; UPDATE plain SET v = 'p{n}' WHERE id = {id}; PREPARE TRANSACTION 'p'; UPDATE part SET v = 'q{n}' WHERE id = {id}; COMMIT PREPARED 'p'",
        "BEGIN; DELETE FROM plain WHERE id = {id}; PREPARE TRANSACTION 'p'; ROLLBACK PREPARED 'p'",
    ],
    definitions: &[
        "TRUNCATE part_{y}",
        "TRUNCATE plain; INSERT INTO plain SELECT g, 'x{n}', 'w', g, 'sad' FROM generate_series(1, 40) g",
        "ALTER TABLE part DETACH PARTITION part_{y}",
        "ALTER TABLE part ATTACH PARTITION part_{y} FOR VALUES IN ({y})",
        "ALTER TABLE part DETACH PARTITION part_{y}; UPDATE part_{y} SET v = 'd{n}'; ALTER TABLE part ATTACH PARTITION part_{y} FOR VALUES IN ({y})",
        "DROP TABLE part_{y}",
        "CREATE TABLE part_{y} (id INT NOT NULL, y INT NOT NULL, v TEXT, n INT, PRIMARY KEY (id, y)); INSERT INTO part_{y} VALUES ({id}, {y}, 'n{n}', {n}); ALTER TABLE part ATTACH PARTITION part_{y} FOR VALUES IN ({y})",
        "ALTER TABLE part_{y} SET UNLOGGED; UPDATE part SET v = 'l{n}'; ALTER TABLE part_{y} SET LOGGED",
        "ALTER TABLE part_{y} REPLICA IDENTITY FULL",
        "ALTER TABLE part_{y} REPLICA IDENTITY DEFAULT",
        "ALTER TABLE plain REPLICA IDENTITY FULL",
        "ALTER TABLE plain REPLICA IDENTITY DEFAULT",
        "CREATE TABLE child () INHERITS (plain); INSERT INTO child VALUES ({id} + 100, 'c', 'w', 1, 'sad'); DROP TABLE child",
        "ALTER TABLE plain ALTER n TYPE INT USING n + 1",
        "ALTER TABLE part ALTER v TYPE TEXT USING v || '!'",
        "ALTER TABLE chars ALTER v TYPE TEXT USING upper(v)",
        "ALTER TABLE plain DROP n; ALTER TABLE plain ADD n INT DEFAULT {n}",
        "ALTER TABLE plain RENAME v TO t; ALTER TABLE plain RENAME w TO v; ALTER TABLE plain RENAME t TO w",
        "BEGIN; ALTER TABLE plain RENAME TO t; ALTER TABLE twin RENAME TO plain; ALTER TABLE t RENAME TO twin; COMMIT",
        "ALTER TABLE plain RENAME TO t; UPDATE t SET v = 'r{n}' WHERE id = {id}; ALTER TABLE t RENAME TO plain",
        "BEGIN; ALTER TABLE plain RENAME TO t; DELETE FROM t WHERE id = {id}; ALTER TABLE t RENAME TO plain; COMMIT",
        "ALTER TABLE chars SET SCHEMA aside; UPDATE aside.chars SET v = 's{n}' WHERE k = '{id}'; ALTER TABLE aside.chars SET SCHEMA public",
        "ALTER TABLE part RENAME TO t; UPDATE t SET v = 'r{n}' WHERE id = {id}; ALTER TABLE t RENAME TO part",
        "BEGIN; ALTER TABLE plain RENAME TO t; ALTER TABLE twin RENAME TO plain; UPDATE plain SET v = 'w{n}'; ALTER TABLE plain RENAME TO twin; ALTER TABLE t RENAME TO plain; COMMIT",
        "ALTER SCHEMA public RENAME TO p; UPDATE p.plain SET v = 'p{n}' WHERE id = {id}; UPDATE p.part SET v = 'p{n}' WHERE id = {id}; ALTER SCHEMA p RENAME TO public",
        "ALTER TABLE plain RENAME v TO t; UPDATE plain SET t = 't{n}' WHERE id = {id}; ALTER TABLE plain RENAME t TO v",
        "ALTER TABLE part RENAME id TO i; UPDATE part SET v = 'k{n}' WHERE i = {id}; ALTER TABLE part RENAME i TO id",
        "CREATE TABLE part_rest PARTITION OF part DEFAULT; INSERT INTO part VALUES ({id}, 9, 'o{n}', {n}); UPDATE part SET y = {y} WHERE y = 9 AND NOT EXISTS (SELECT FROM part WHERE id = {id} AND y = {y}); DROP TABLE part_rest",
        "ALTER TABLE part DETACH PARTITION part_{y}; ALTER TABLE part_{y} RENAME TO part_old; CREATE TABLE part_{y} PARTITION OF part FOR VALUES IN ({y}) PARTITION BY RANGE (id); CREATE TABLE part_{y}_low PARTITION OF part_{y} FOR VALUES FROM (MINVALUE) TO (20); CREATE TABLE part_{y}_high PARTITION OF part_{y} DEFAULT; INSERT INTO part SELECT * FROM part_old; DROP TABLE part_old",
        "TRUNCATE part_{y}_low",
        "ALTER PUBLICATION cache SET TABLE plain WHERE (n > 1000), twin, part, chars; UPDATE plain SET v = 'f{n}'; ALTER PUBLICATION cache SET TABLE plain, twin, part, chars",
        "ALTER PUBLICATION cache SET TABLE plain (id, n), twin, part, chars; UPDATE plain SET v = 'l{n}'; ALTER PUBLICATION cache SET TABLE plain, twin, part, chars",
        "ALTER PUBLICATION cache SET (publish = 'insert'); DELETE FROM plain WHERE id = {id}; ALTER PUBLICATION cache SET (publish = 'insert, update, delete, truncate')",
        "ALTER PUBLICATION cache SET (publish_via_partition_root = false); UPDATE part SET v = 'b{n}'; ALTER PUBLICATION cache SET (publish_via_partition_root = true)",
        "ALTER PUBLICATION cache RENAME TO hidden; DELETE FROM plain WHERE id = {id}; ALTER PUBLICATION hidden RENAME TO cache",
        "ALTER TABLE plain ALTER id TYPE BIGINT",
        "ALTER TABLE plain ALTER id TYPE INT",
        "ALTER TABLE chars ALTER k TYPE TEXT",
        "ALTER TABLE chars ALTER k TYPE CHAR(6)",
        "ALTER PUBLICATION cache DROP TABLE plain; UPDATE plain SET v = 'h{n}'; ALTER PUBLICATION cache ADD TABLE plain",
        "ALTER TYPE mood RENAME VALUE 'sad' TO 'low'; ALTER TYPE mood RENAME VALUE 'ok' TO 'sad'; ALTER TYPE mood RENAME VALUE 'low' TO 'ok'",
        "VACUUM FULL plain",
    ],
    modes: &[Mode::Page, Mode::Updated, Mode::Through, Mode::Mirror],
};

const MARIADB: Kind = Kind {
    changes: &[
        "INSERT INTO plain VALUES ({id}, 'i{n}', 'w{n}', {n}, 'sad') ON DUPLICATE KEY UPDATE v = 'c{n}'",
        "UPDATE plain SET v = 'u{n}', n = {n} WHERE id = {id}",
        "UPDATE IGNORE plain SET id = {other} WHERE id = {id}",
        "DELETE FROM plain WHERE id = {id}",
        "REPLACE INTO part VALUES ({id}, {y}, 'r{n}', {n})",
        "UPDATE part SET v = 'u{n}' WHERE id = {id}",
        "UPDATE IGNORE part SET y = {z} WHERE id = {id} AND y = {y}",
        "DELETE FROM part WHERE id = {id}",
        "INSERT INTO chars VALUES ('{id}', 'i{n}', {n}) ON DUPLICATE KEY UPDATE v = 'c{n}'",
        "UPDATE chars SET v = 'u{n}' WHERE k = '{id}'",
        "UPDATE IGNORE chars SET k = '{other}' WHERE k = '{id}'",
        "BEGIN; UPDATE plain SET v = 'never'; UPDATE part SET v = 'never'; ROLLBACK",
        "BEGIN; UPDATE plain SET v = 'a{n}' WHERE id = {id}; SAVEPOINT s; DELETE FROM part; ROLLBACK TO s; COMMIT",
        "XA START 'x'; UPDATE plain SET v = 'p{n}' WHERE id = {id}; XA END 'x'; XA PREPARE 'x'; XA COMMIT 'x'",
    ],
    definitions: &[
        "TRUNCATE plain",
        "ALTER TABLE part TRUNCATE PARTITION part_{y}",
        "ALTER TABLE part DROP PARTITION part_{y}",
        "ALTER TABLE part ADD PARTITION (PARTITION part_{y} VALUES IN ({y}))",
        "CREATE TABLE spare LIKE part; ALTER TABLE spare REMOVE PARTITIONING; INSERT INTO spare VALUES ({id}, {y}, 'e{n}', {n}); ALTER TABLE part EXCHANGE PARTITION part_{y} WITH TABLE spare; DROP TABLE spare",
        "ALTER TABLE plain DROP COLUMN n; ALTER TABLE plain ADD COLUMN n INT DEFAULT {n}",
        "ALTER TABLE plain RENAME COLUMN v TO t; ALTER TABLE plain RENAME COLUMN w TO v; ALTER TABLE plain RENAME COLUMN t TO w",
        "RENAME TABLE plain TO t, twin TO plain, t TO twin",
        "RENAME TABLE plain TO t; UPDATE t SET v = 'r{n}' WHERE id = {id}; RENAME TABLE t TO plain",
        "RENAME TABLE plain TO t, twin TO plain; UPDATE plain SET v = 'w{n}'; RENAME TABLE plain TO twin, t TO plain",
        "CREATE DATABASE IF NOT EXISTS aside; RENAME TABLE chars TO aside.chars; UPDATE aside.chars SET v = 's{n}' WHERE k = '{id}'; RENAME TABLE aside.chars TO chars",
        "ALTER TABLE plain RENAME COLUMN v TO t; UPDATE plain SET t = 't{n}' WHERE id = {id}; ALTER TABLE plain RENAME COLUMN t TO v",
        "ALTER TABLE part REORGANIZE PARTITION part_{y} INTO (PARTITION part_{y} VALUES IN ({y}))",
        "ALTER TABLE plain MODIFY id BIGINT",
        "ALTER TABLE plain MODIFY id INT",
        "ALTER TABLE chars MODIFY k VARCHAR(9)",
        "ALTER TABLE chars MODIFY k CHAR(6)",
        "ALTER TABLE plain MODIFY mood ENUM('ok', 'sad')",
        "OPTIMIZE TABLE plain",
        "FLUSH BINARY LOGS",
    ],
    modes: &[Mode::Page, Mode::Through],
};

/// What users do here meanwhile. Each stream learns what follows it from definitions.
const HERE: &[Statement] = &[
    "CREATE TABLE other (id INT PRIMARY KEY, v TEXT) WITH (source = 'src', depends = 'plain(id)')",
    "DROP TABLE other",
    "ALTER TABLE page_plain RENAME TO moved; SELECT pg_sleep(0.05); ALTER TABLE moved RENAME TO page_plain",
    "ALTER TABLE through_plain RESET (query); SELECT pg_sleep(0.1); ALTER TABLE through_plain SET (query = '{query}')",
];

enum Source {
    Postgres(PostgreSql),
    MariaDb(MariaDb),
}

impl Source {
    /// Runs statements one after the other; one that fails is passed over, for the random ones do not always apply.
    fn run(&self, statements: &str) {
        let (mut client, before) = match self {
            Self::Postgres(server) => (server.place.program("psql"), ""),
            Self::MariaDb(server) => (server.client(), "USE shop;"),
        };
        let flags: &[&str] = if before.is_empty() { &["-X", "-q"] } else { &["--force"] };
        finish(fed(client.args(flags), &format!("{before}{statements}")));
    }

    fn rows(&self, sql: &str) -> HashSet<String> {
        let text = match self {
            Self::Postgres(server) => psql(&server.place, sql),
            Self::MariaDb(server) => server.ask(&format!("USE shop; {sql}")).replace('\t', "|"),
        };
        text.lines().map(str::to_owned).collect()
    }

    /// Where its log is, as `wait_for_source` takes it.
    fn place(&self) -> String {
        match self {
            Self::Postgres(server) => psql(&server.place, "SELECT pg_current_wal_insert_lsn()"),
            Self::MariaDb(server) => server.ask(crate::mariadb::PLACE),
        }
    }

    /// Ends it as a crash does, and starts it again.
    fn restart(&mut self) {
        match self {
            Self::Postgres(server) => {
                server.stop();
                server.start_again();
            }
            Self::MariaDb(server) => {
                server.stop();
                server.start_again();
            }
        }
    }
}

fn fed(client: &mut Command, statements: &str) -> Child {
    let mut child = client.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(statements.as_bytes()).unwrap();
    child
}

fn finish(mut child: Child) {
    child.wait().unwrap();
}

/// What a run found.
#[derive(Debug, Default)]
struct Figures {
    changes: usize,
    definitions: usize,
    restarts: usize,
    compared: usize,
    stale: usize,
}

struct Run {
    kind: &'static Kind,
    source: Source,
    daemon: SqlDaemon,
    random: fastrand::Rng,
    /// Changes of a round.
    size: usize,
    figures: Figures,
}

fn asked_for(name: &str, usual: usize) -> usize {
    std::env::var(name).map_or(usual, |text| text.parse().expect(name))
}

/// The columns of a table that are cached.
fn columns(table: &str, key: &[&str]) -> String {
    let mood = if table == "plain" { ", mood" } else { "" };
    format!("{}, v, n{mood}", key.join(", "))
}

impl Mode {
    const fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Updated => "updated",
            Self::Through => "through",
            Self::Mirror => "mirror",
        }
    }

    /// Its options beside those that all have.
    fn options(self, query: &str) -> String {
        match self {
            Self::Page => String::new(),
            Self::Updated => ", mode = 'update'".to_owned(),
            Self::Through => format!(", query = '{query}'"),
            Self::Mirror => ", mode = 'mirror'".to_owned(),
        }
    }
}

impl Run {
    fn start(kind: &'static Kind, source: Source, server: &str) -> Self {
        let daemon = SqlDaemon::start(&[]);
        psql(&daemon.place, server);
        let run = Self {
            kind,
            source,
            daemon,
            random: fastrand::Rng::with_seed(crate::seed()),
            size: ROUND,
            figures: Figures::default(),
        };
        for (table, key) in TABLES {
            let typed = match *table {
                "chars" => "k CHAR(6)",
                "part" => "id INT, y INT",
                _ => "id INT",
            };
            let mood = if *table == "plain" { ", mood TEXT" } else { "" };
            for mode in run.kind.modes {
                psql(
                    &run.daemon.place,
                    &format!(
                        "CREATE TABLE {}_{table} ({typed}, v TEXT, n INT{mood}, PRIMARY KEY ({key}))
                             WITH (source = 'src', depends = '{table}({key})'{})",
                        mode.name(),
                        mode.options(&run.query(table, key)),
                        key = key.join(", "),
                    ),
                );
            }
        }
        run.catch_up();
        run
    }

    /// The query for rows that are missed.
    fn query(&self, table: &str, key: &[&str]) -> String {
        let columns = columns(table, key);
        let which = match (&self.source, table) {
            (Source::MariaDb(_), "part") => "(id, y) IN (?)".to_owned(),
            (Source::MariaDb(_), _) => format!("{} IN (?)", key[0]),
            (_, "part") => "(id, y) IN (SELECT * FROM unnest($1::int[], $2::int[]))".to_owned(),
            (_, "chars") => "k = ANY($1::text[])".to_owned(),
            _ => "id = ANY($1)".to_owned(),
        };
        format!("SELECT {columns} FROM {table} WHERE {which}")
    }

    /// Fills in the random numbers of a statement.
    fn made(&mut self, statement: &str) -> String {
        let mut text = statement.to_owned();
        for (name, below) in [("{id}", KEYS), ("{other}", KEYS), ("{y}", 4), ("{z}", 4), ("{n}", 1 << 20)] {
            let number = self.random.u32(1..=below).to_string();
            text = text.replace(name, &number);
        }
        text + ";\n"
    }

    fn chosen(&mut self, all: &'static [Statement]) -> String {
        let statement = all[self.random.usize(..all.len())];
        self.made(statement)
    }

    /// Waits until the daemon says that all is here that the source has now.
    fn catch_up(&self) {
        let place = self.source.place();
        let waited = format!(
            "SELECT wait_for_source('src', '{place}', '1 s') AND state = 'streaming' AND unsettled = 0
             FROM sqlcached_sources"
        );
        until("all is applied", || asked(&self.daemon.place, &waited).as_deref() == Ok("t"));
    }

    /// Stores rows as clients do, while nothing changes; and misses some.
    fn fill(&self) {
        for (table, key) in TABLES {
            let columns = columns(table, key);
            let quoted = |row: &String| format!("('{}')", row.replace('|', "','"));
            let rows: Vec<String> =
                self.source.rows(&format!("SELECT {columns} FROM {table}")).iter().map(quoted).collect();
            if rows.is_empty() {
                continue;
            }
            for mode in self.kind.modes.iter().filter(|mode| matches!(mode, Mode::Page | Mode::Updated)) {
                psql(
                    &self.daemon.place,
                    &format!(
                        "INSERT INTO {}_{table} ({columns}) VALUES {} ON CONFLICT DO NOTHING",
                        mode.name(),
                        rows.join(", ")
                    ),
                );
            }
        }
    }

    /// Statements that miss rows of the source.
    fn misses(&mut self, count: usize) -> String {
        let mut text = String::new();
        for _ in 0..count {
            let statement = self.random.choice([
                "SELECT * FROM through_plain WHERE id IN ({id}, {other})",
                "SELECT * FROM through_part WHERE id = {id} AND y = {y}",
                "SELECT * FROM through_chars WHERE k IN ('{id}', '{other}')",
            ]);
            text += &self.made(statement.unwrap());
        }
        text
    }

    /// A round. Definitions: whether some are among the changes.
    fn round(&mut self, definitions: usize) {
        self.fill();
        let misses = self.misses(ROUND);
        finish(self.talk(&misses));
        let mut statements: Vec<String> = (0..self.size).map(|_| self.chosen(self.kind.changes)).collect();
        for _ in 0..definitions {
            let at = self.random.usize(..=statements.len());
            let definition = self.chosen(self.kind.definitions);
            statements.insert(at, definition);
        }
        let here = self.chosen(HERE).replace("{query}", &self.query("plain", &["id"]));
        let (here, misses) = (self.talk(&here), self.misses(ROUND));
        let misses = self.talk(&misses);
        self.source.run(&statements.concat());
        finish(here);
        finish(misses);
        self.figures.changes += self.size;
        self.figures.definitions += definitions;
        self.catch_up();
        self.compare(definitions > 0, &statements);
    }

    /// A client of the daemon that runs statements one after the other.
    fn talk(&self, statements: &str) -> Child {
        fed(self.daemon.place.program("psql").args(["-X", "-q"]), statements)
    }

    /// Compares all rows. What the stream does not tell may take until it is noticed; all else is here.
    fn compare(&mut self, is_noticed_later: bool, statements: &[String]) {
        let end = Instant::now() + NOTICED;
        loop {
            let (compared, stale) = self.difference();
            if stale.is_empty() || !is_noticed_later || Instant::now() > end {
                self.figures.compared += compared;
                self.figures.stale += stale.len();
                assert!(
                    stale.is_empty(),
                    "{stale:#?}\n{:?}\n{}\n{}",
                    self.figures,
                    psql(&self.daemon.place, "SELECT * FROM sqlcached_sources"),
                    statements.concat()
                );
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
            self.catch_up();
        }
    }

    /// How many rows were compared, and which differ.
    fn difference(&self) -> (usize, Vec<String>) {
        let (mut compared, mut differing) = (0, Vec::new());
        for (table, key) in TABLES {
            let columns = columns(table, key);
            let trimmed =
                if *table == "chars" { columns.replacen('k', "trim(k)", 1) } else { columns.clone() };
            let theirs = self.source.rows(&format!("SELECT {trimmed} FROM {table}"));
            for mode in self.kind.modes {
                let name = format!("{}_{table}", mode.name());
                // A mirror that is being copied says so.
                let read = asked(&self.daemon.place, &format!("SELECT {trimmed} FROM {name}"));
                let ours: HashSet<String> = match read {
                    Ok(text) => text.lines().map(str::to_owned).collect(),
                    Err(error) if *mode == Mode::Mirror && error.contains("55000") => {
                        differing.push(format!("{name} is not whole"));
                        continue;
                    }
                    Err(error) => panic!("{error}"),
                };
                compared += ours.len();
                differing.extend(ours.difference(&theirs).map(|row| format!("{name}: {row}")));
                if *mode == Mode::Mirror {
                    differing.extend(theirs.difference(&ours).map(|row| format!("{name} lacks {row}")));
                }
            }
        }
        (compared, differing)
    }

    /// As many rounds as are asked for.
    fn rounds(mut self, usual: usize) {
        let changes = asked_for("CHANGES", usual * ROUND);
        let wanted = asked_for("DEFINITIONS", usual);
        self.size = (changes / ROUNDS_MAX).max(ROUND);
        let rounds = changes.div_ceil(self.size);
        let restart_each = (rounds / 2).clamp(1, 50);
        for round in 0..rounds {
            let due = wanted * (round + 1) / rounds - wanted * round / rounds;
            // Every other round has none, and is to be right at once.
            let definitions = if round % 2 == 1 {
                due + wanted * round / rounds - wanted * (round - 1) / rounds
            } else {
                0
            };
            if round % restart_each == restart_each - 1 {
                self.source.restart();
                self.figures.restarts += 1;
                self.catch_up();
            }
            self.round(definitions);
        }
        println!("{:?}", self.figures);
    }
}

fn postgres(database: PostgreSql, slot: &str) {
    psql(
        &database.place,
        "CREATE ROLE cache LOGIN REPLICATION PASSWORD 'hidden';
         ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO cache;
         CREATE TYPE mood AS ENUM ('sad', 'ok');
         CREATE TABLE plain (id INT PRIMARY KEY, v TEXT, w TEXT, n INT, mood mood);
         CREATE TABLE twin (id INT PRIMARY KEY, v TEXT, w TEXT, n INT, mood mood);
         CREATE TABLE part (id INT, y INT, v TEXT, n INT, PRIMARY KEY (id, y)) PARTITION BY LIST (y);
         CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
         CREATE TABLE part_2 PARTITION OF part FOR VALUES IN (2);
         CREATE TABLE part_3 PARTITION OF part FOR VALUES IN (3);
         CREATE TABLE part_4 PARTITION OF part FOR VALUES IN (4);
         CREATE TABLE chars (k CHAR(6) PRIMARY KEY, v TEXT, n INT);
         CREATE SCHEMA aside;
         INSERT INTO plain SELECT g, 'v' || g, 'w' || g, g, 'ok' FROM generate_series(1, 40) g;
         INSERT INTO twin SELECT g, 'twin', 'w', g, 'sad' FROM generate_series(1, 40) g;
         INSERT INTO part SELECT g, g % 4 + 1, 'v', g FROM generate_series(1, 40) g;
         INSERT INTO chars SELECT g, 'v', g FROM generate_series(1, 40) g;
         CREATE PUBLICATION cache FOR TABLE plain, twin, part, chars WITH (publish_via_partition_root = true)",
    );
    let server = format!(
        "CREATE SERVER src FOREIGN DATA WRAPPER postgres OPTIONS (host '127.0.0.1', port '{}', dbname 'postgres',
             publication 'cache', max_lag '2 s'{slot});
         CREATE USER MAPPING FOR PUBLIC SERVER src OPTIONS (user 'cache', password 'hidden')",
        database.place.port
    );
    Run::start(&POSTGRES, Source::Postgres(database), &server).rounds(USUAL);
}

/// Rounds of the usual run.
const USUAL: usize = 4;

const SETTINGS: &[&str] = &["wal_level=logical", "max_prepared_transactions=4", "max_slot_wal_keep_size=1GB"];

/// What no rule foresees: rows that change without an event, names that change hands, tables that are gone here.
#[test]
fn random_definitions_of_postgresql_leave_no_old_row() {
    postgres(PostgreSql::start_with(SETTINGS), "");
}

/// The same over PostgreSQL 17, with a slot that stays.
#[test]
fn random_definitions_of_postgresql_17_leave_no_old_row() {
    match PostgreSql::start_17(SETTINGS) {
        Some(database) => postgres(database, ", slot 'cache'"),
        None => crate::skipped("PostgreSQL 17 is not there, or its user cannot read it"),
    }
}

/// The same over MariaDB, whose log has the definitions.
#[test]
fn random_definitions_of_mariadb_leave_no_old_row() {
    let database = MariaDb::start(&[]);
    database.ask(
        "CREATE USER cache IDENTIFIED BY 'hidden';
         GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO cache;
         CREATE DATABASE shop CHARACTER SET utf8mb4;
         GRANT SELECT ON shop.* TO cache;
         USE shop;
         CREATE TABLE plain (id INT PRIMARY KEY, v VARCHAR(40), w VARCHAR(40), n INT, mood ENUM('sad', 'ok'));
         CREATE TABLE twin LIKE plain;
         CREATE TABLE part (id INT, y INT, v VARCHAR(40), n INT, PRIMARY KEY (id, y)) PARTITION BY LIST (y)
             (PARTITION part_1 VALUES IN (1), PARTITION part_2 VALUES IN (2), PARTITION part_3 VALUES IN (3),
              PARTITION part_4 VALUES IN (4));
         CREATE TABLE chars (k CHAR(6) PRIMARY KEY, v VARCHAR(40), n INT);
         INSERT INTO plain SELECT seq, 'v', 'w', seq, 'ok' FROM seq_1_to_40;
         INSERT INTO twin SELECT seq, 'twin', 'w', seq, 'sad' FROM seq_1_to_40;
         INSERT INTO part SELECT seq, seq % 4 + 1, 'v', seq FROM seq_1_to_40;
         INSERT INTO chars SELECT seq, 'v', seq FROM seq_1_to_40",
    );
    let server = format!(
        "CREATE SERVER src FOREIGN DATA WRAPPER mariadb
             OPTIONS (host '127.0.0.1', port '{}', dbname 'shop', max_lag '2 s');
         CREATE USER MAPPING FOR PUBLIC SERVER src OPTIONS (user 'cache', password 'hidden')",
        database.port
    );
    Run::start(&MARIADB, Source::MariaDb(database), &server).rounds(USUAL);
}
