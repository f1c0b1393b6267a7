//! Random changes and random definitions at a real database, while tables here follow it in every mode. After each
//! round, when the daemon says that it has caught up, every cached row is compared with the source's.
//!
//! `SEED=n` replays a run. `CHANGES=350000 DEFINITIONS=1750` asks for so many that take effect, of each database.

mod effects;
mod source;
mod statements;

use std::process::Child;
use std::time::{Duration, Instant};

use effects::Effects;
use source::{Source, Step, fed, rows_of};
use statements::{HERE, Kind, MARIADB, Mode, POSTGRES, Statement, TABLES};

use crate::drivers::mariadb::MariaDb;
use crate::drivers::place::SqlDaemon;
use crate::drivers::postgresql::PostgreSql;
use crate::sources::{PATIENCE, asked, psql, until_within};

/// How long what the stream does not tell may take to be noticed: looks each 2 s, a new stream, new copies of mirrors.
const NOTICED: Duration = Duration::from_secs(30);

/// What is said of a mirror that is being copied.
const NOT_WHOLE: &str = "is not whole";

/// Changes of a round at least; and definitions of a round that has some.
const ROUND: usize = 60;
const DEFINED: usize = 4;

/// A long run has at most about so many pairs of rounds, one with definitions and one without: each waits for the
/// daemon, and so it has more in each. More definitions in one round would hide each other.
const PAIRS_MAX: usize = 120;

/// Keys run from 1 to this at least. There are more in a larger round: a second change of a key hides that the first
/// was lost.
const KEYS: usize = 40;
const CHANGES_OF_A_KEY: usize = 4;

fn finish(mut child: Child) {
    child.wait().unwrap();
}

/// What is asked for, and how it is spread over rounds.
#[derive(Clone, Copy, Debug)]
struct Plan {
    changes: usize,
    definitions: usize,
    pairs: usize,
    /// Changes of each round, and definitions of every other one.
    size: usize,
    defined: usize,
    keys: usize,
}

impl Plan {
    fn asked() -> Self {
        let changes = asked_for("CHANGES", USUAL.changes);
        let definitions = asked_for("DEFINITIONS", USUAL.definitions);
        let pairs = (changes / (2 * ROUND)).max(definitions / DEFINED).clamp(1, PAIRS_MAX);
        let size = changes.div_ceil(2 * pairs).max(ROUND);
        let keys = (size / CHANGES_OF_A_KEY).max(KEYS);
        Self { changes, definitions, pairs, size, defined: definitions.div_ceil(pairs), keys }
    }

    fn is_done(&self, effects: &Effects) -> bool {
        effects.changes >= self.changes && effects.definitions >= self.definitions
    }

    /// A statement with what does not depend on chance.
    fn with_keys(&self, statement: &str) -> String {
        statement.replace("{keys}", &self.keys.to_string())
    }
}

/// What a run found.
#[derive(Debug, Default)]
struct Figures {
    effects: Effects,
    statements: usize,
    rounds: usize,
    restarts: usize,
    compared: usize,
    stale: usize,
}

struct Run {
    plan: Plan,
    kind: &'static Kind,
    source: Source,
    daemon: SqlDaemon,
    random: fastrand::Rng,
    figures: Figures,
}

fn asked_for(name: &str, usual: usize) -> usize {
    std::env::var(name).map_or(usual, |text| text.parse().expect(name))
}

/// The columns of a table that are cached, without blanks behind its key.
fn trimmed(table: &str, key: &[&str]) -> String {
    let columns = columns(table, key);
    if table == "chars" { columns.replacen('k', "trim(k)", 1) } else { columns }
}

/// The columns of a table that are cached.
fn columns(table: &str, key: &[&str]) -> String {
    let mood = if table == "plain" { ", mood" } else { "" };
    format!("{}, v, n{mood}", key.join(", "))
}

/// The queries for these columns of the tables at the source, by their names.
fn queries(columns: fn(&str, &[&str]) -> String) -> Vec<(String, String)> {
    let query = |(table, key): &(&str, &[&str])| {
        ((*table).to_owned(), format!("SELECT {} FROM {table}", columns(table, key)))
    };
    TABLES.iter().map(query).collect()
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
    fn start(plan: Plan, kind: &'static Kind, source: Source, server: &str) -> Self {
        let daemon = SqlDaemon::start(&[]);
        psql(&daemon.place, server);
        let run = Self {
            plan,
            kind,
            source,
            daemon,
            random: fastrand::Rng::with_seed(crate::seed()),
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
        let mut text = self.plan.with_keys(statement);
        let keys = self.plan.keys;
        for (name, below) in [("{id}", keys), ("{other}", keys), ("{y}", 4), ("{z}", 4), ("{n}", 1 << 20)] {
            let number = self.random.usize(1..=below).to_string();
            text = text.replace(name, &number);
        }
        text + ";\n"
    }

    fn chosen(&mut self, all: &'static [Statement]) -> String {
        let statement = all[self.random.usize(..all.len())];
        self.made(statement)
    }

    /// Changes in a random order, and definitions between them.
    fn steps(&mut self, changes: usize, definitions: usize) -> Vec<Step> {
        let step = |text, is_definition| Step { text, is_definition };
        let mut steps: Vec<Step> =
            (0..changes).map(|_| step(self.chosen(self.kind.changes), false)).collect();
        for _ in 0..definitions {
            let at = self.random.usize(..=steps.len());
            let definition = self.chosen(self.kind.definitions);
            steps.insert(at, step(definition, true));
        }
        steps
    }

    /// Waits until the daemon says that all is here that the source has now.
    fn catch_up(&self) {
        let place = self.source.place();
        let waited = format!(
            "SELECT wait_for_source('src', '{place}', '1 s') AND state = 'streaming' AND unsettled = 0
             FROM sqlcached_sources"
        );
        // Each definition may end the stream, and each new one copies mirrors.
        let patience = PATIENCE.max(NOTICED * u32::try_from(self.plan.defined).unwrap_or(u32::MAX));
        until_within(patience, "all is applied", || asked(&self.daemon.place, &waited).as_deref() == Ok("t"));
    }

    /// Stores rows as clients do, while nothing changes.
    fn fill(&self) {
        let theirs = self.source.rows(&queries(columns));
        let mut statements = Vec::new();
        for (table, key) in TABLES {
            let quoted = |row: &String| format!("('{}')", row.replace('|', "','"));
            let rows: Vec<String> = theirs[*table].iter().map(quoted).collect();
            if rows.is_empty() {
                continue;
            }
            let (columns, rows) = (columns(table, key), rows.join(", "));
            for mode in self.kind.modes.iter().filter(|mode| matches!(mode, Mode::Page | Mode::Updated)) {
                statements.push(format!(
                    "INSERT INTO {}_{table} ({columns}) VALUES {rows} ON CONFLICT DO NOTHING",
                    mode.name()
                ));
            }
        }
        psql(&self.daemon.place, &statements.join(";\n"));
    }

    /// Statements that miss rows of the source.
    fn misses(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..ROUND.max(self.plan.keys) {
            let statement = self.random.choice([
                "SELECT * FROM through_plain WHERE id IN ({id}, {other})",
                "SELECT * FROM through_part WHERE id = {id} AND y = {y}",
                "SELECT * FROM through_chars WHERE k IN ('{id}', '{other}')",
            ]);
            text += &self.made(statement.unwrap());
        }
        text
    }

    /// A round.
    fn round(&mut self, changes: usize, definitions: usize) {
        self.fill();
        let misses = self.misses();
        finish(self.talk(&misses));
        let steps = self.steps(changes, definitions);
        let here = self.chosen(HERE).replace("{query}", &self.query("plain", &["id"]));
        let (here, misses) = (self.talk(&here), self.misses());
        let misses = self.talk(&misses);
        let effects = self.source.run(&steps);
        finish(here);
        finish(misses);
        assert!(effects.changes > 0, "of a whole round nothing took effect");
        self.figures.effects.add(effects);
        self.figures.statements += steps.len();
        self.figures.rounds += 1;
        self.catch_up();
        self.compare(definitions > 0, &steps);
    }

    /// A client of the daemon that runs statements one after the other.
    fn talk(&self, statements: &str) -> Child {
        fed(self.daemon.place.program("psql").args(["-X", "-q"]), statements)
    }

    /// Compares all rows. What the stream does not tell may take until it is noticed; all else is here. A definition of
    /// the round before may be noticed in this one: its mirror is copied again, and says so meanwhile.
    fn compare(&mut self, is_noticed_later: bool, steps: &[Step]) {
        let end = Instant::now() + NOTICED;
        loop {
            let (compared, stale) = self.difference();
            let is_old = stale.iter().any(|found| !found.ends_with(NOT_WHOLE));
            if stale.is_empty() || (is_old && !is_noticed_later) || Instant::now() > end {
                self.figures.compared += compared;
                self.figures.stale += stale.len();
                assert!(
                    stale.is_empty(),
                    "{stale:#?}\n{:?}\n{}\n{}",
                    self.figures,
                    psql(&self.daemon.place, "SELECT * FROM sqlcached_sources"),
                    steps.iter().map(|step| step.text.as_str()).collect::<String>()
                );
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
            self.catch_up();
        }
    }

    /// How many rows were compared, and which differ.
    fn difference(&self) -> (usize, Vec<String>) {
        let named = |mode: &Mode, table: &str| format!("{}_{table}", mode.name());
        let here = TABLES.iter().flat_map(|(table, key)| {
            let columns = trimmed(table, key);
            let query = move |mode: &Mode| {
                (named(mode, table), format!("SELECT {columns} FROM {}", named(mode, table)))
            };
            self.kind.modes.iter().map(query)
        });
        let ours = rows_of(&self.daemon.place, &here.collect::<Vec<_>>());
        let theirs = self.source.rows(&queries(trimmed));
        let (mut compared, mut differing) = (0, Vec::new());
        for (table, mode) in
            TABLES.iter().flat_map(|(table, _)| self.kind.modes.iter().map(move |mode| (table, mode)))
        {
            let (name, theirs) = (named(mode, table), &theirs[*table]);
            match &ours[&name] {
                Ok(ours) => {
                    compared += ours.len();
                    differing.extend(ours.difference(theirs).map(|row| format!("{name}: {row}")));
                    if *mode == Mode::Mirror {
                        differing.extend(theirs.difference(ours).map(|row| format!("{name} lacks {row}")));
                    }
                }
                // A mirror that is being copied says so.
                Err(state) if *mode == Mode::Mirror && state == "55000" => {
                    differing.push(format!("{name} {NOT_WHOLE}"));
                }
                Err(state) => panic!("{name} cannot be read: {state}"),
            }
        }
        (compared, differing)
    }

    /// Rounds until so much took effect as is asked for. Every other round has no definitions, and is to be right at
    /// once.
    fn rounds(mut self) {
        let restart_each = self.plan.pairs.clamp(2, RESTART_EACH);
        while !self.plan.is_done(&self.figures.effects) {
            if self.figures.rounds % restart_each == restart_each - 1 {
                self.source.restart();
                self.figures.restarts += 1;
                self.catch_up();
            }
            let is_defined = self.figures.rounds % 2 == 1;
            self.round(self.plan.size, if is_defined { self.plan.defined } else { 0 });
            if self.figures.rounds.is_multiple_of(TOLD_EACH) {
                println!("{} {:?}", self.source.name(), self.figures);
            }
        }
        println!("{:?}", self.figures);
    }
}

fn postgres(database: PostgreSql, slot: &str) {
    let plan = Plan::asked();
    psql(
        &database.place,
        &plan.with_keys("CREATE ROLE cache LOGIN REPLICATION PASSWORD 'hidden';
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
         INSERT INTO plain SELECT g, 'v' || g, 'w' || g, g, 'ok' FROM generate_series(1, {keys}) g;
         INSERT INTO twin SELECT g, 'twin', 'w', g, 'sad' FROM generate_series(1, {keys}) g;
         INSERT INTO part SELECT g, g % 4 + 1, 'v', g FROM generate_series(1, {keys}) g;
         INSERT INTO chars SELECT g, 'v', g FROM generate_series(1, {keys}) g;
         CREATE PUBLICATION cache FOR TABLE plain, twin, part, chars WITH (publish_via_partition_root = true)"),
    );
    let server = format!(
        "CREATE SERVER src FOREIGN DATA WRAPPER postgres OPTIONS (host '127.0.0.1', port '{}', dbname 'postgres',
             publication 'cache', max_lag '2 s'{slot});
         CREATE USER MAPPING FOR PUBLIC SERVER src OPTIONS (user 'cache', password 'hidden')",
        database.place.port
    );
    Run::start(plan, &POSTGRES, Source::Postgres(database), &server).rounds();
}

/// What takes effect in the usual run.
const USUAL: Effects = Effects { changes: 2 * ROUND, rows: 0, definitions: DEFINED };

/// A long run tells how far it is after so many rounds.
const TOLD_EACH: usize = 20;

/// The source crashes after so many rounds, or after the first half of a short run.
const RESTART_EACH: usize = 50;

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
    let (database, plan) = (MariaDb::start(&[]), Plan::asked());
    database.ask(&plan.with_keys(
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
         INSERT INTO plain SELECT seq, 'v', 'w', seq, 'ok' FROM seq_1_to_{keys};
         INSERT INTO twin SELECT seq, 'twin', 'w', seq, 'sad' FROM seq_1_to_{keys};
         INSERT INTO part SELECT seq, seq % 4 + 1, 'v', seq FROM seq_1_to_{keys};
         INSERT INTO chars SELECT seq, 'v', seq FROM seq_1_to_{keys}",
    ));
    let server = format!(
        "CREATE SERVER src FOREIGN DATA WRAPPER mariadb
             OPTIONS (host '127.0.0.1', port '{}', dbname 'shop', max_lag '2 s');
         CREATE USER MAPPING FOR PUBLIC SERVER src OPTIONS (user 'cache', password 'hidden')",
        database.port
    );
    Run::start(plan, &MARIADB, Source::MariaDb(database), &server).rounds();
}
