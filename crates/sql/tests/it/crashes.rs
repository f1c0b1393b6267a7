//! Death behind every store of every definition, of what undoes it, and of what another client defines in between.
//!
//! A crash is a `ROLLBACK`: the next start has the definitions that a rollback at that moment would have left. It has
//! every acknowledged row, except those of tables whose rows may not fit the definition. Each story runs twice. The
//! first run records every store, so that the file can be opened as it was after any of them. The second run ends
//! with a rollback in place of the crash, once for each statement.
//!
//! `CRASHES=100000` asks for more, and for every store; `SEED` for the stories of an earlier run.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use sql::{Cancel, Executor, Limits, Session};
use store::definition::{EnumDef, NamespaceDef, RoutineDef, SequenceDef, TableDef, ViewDef};
use store::{Clock, Image, KeyBounds, ManualClock, RowBuf, Start, Store, StoreOptions, Table};

use crate::common::{Rows, seed};

/// Deaths of the usual run.
const CRASHES: usize = 800;
/// Statements of a transaction at most.
const STEPS: usize = 3;

const SETUP: &[&str] = &[
    "CREATE SCHEMA s",
    "CREATE TYPE mood AS ENUM ('sad', 'ok')",
    "CREATE SEQUENCE q",
    "CREATE TABLE t (id INT PRIMARY KEY, g INT, v TEXT) WITH (prefix = 't:', value = 'v')",
    "CREATE INDEX t_g ON t (g)",
    "CREATE TABLE u (a INT NOT NULL, b INT, m mood, CONSTRAINT less CHECK (a < b))",
    "CREATE UNIQUE INDEX u_a ON u (a)",
    "CREATE TABLE s.k (id SERIAL PRIMARY KEY, v TEXT)",
    "CREATE VIEW w AS SELECT id, g FROM t",
    "CREATE MATERIALIZED VIEW mv AS SELECT g, count(*) AS n FROM t GROUP BY g",
    "CREATE FUNCTION f(a INT) RETURNS INT LANGUAGE sql AS 'SELECT a + 1'",
    "CREATE SERVER pg FOREIGN DATA WRAPPER postgres OPTIONS (host 'db')",
    "CREATE EXPIRY RULE old ON u WHEN a > 1000 EVERY '1 h'",
    "INSERT INTO t SELECT n, n % 5, 'x' || n FROM generate_series(1, 40) AS n",
    "INSERT INTO u SELECT n, n + 1, 'ok' FROM generate_series(1, 20) AS n",
    "INSERT INTO s.k (v) VALUES ('one'), ('two')",
    "REFRESH MATERIALIZED VIEW mv",
];

/// What a transaction does, and the tables that may come back empty when the daemon dies behind it: a definition that
/// forbids less than the one before, or has a column less, leaves rows of which nobody knows what the one before says.
const DEFINITIONS: &[(&str, &[&str])] = &[
    ("ALTER TABLE t ADD COLUMN zz INT", &[]),
    ("CREATE INDEX t_zz ON t (zz)", &[]),
    ("CREATE INDEX t_v ON t (v)", &[]),
    ("CREATE INDEX t_lower ON t (lower(v))", &[]),
    ("CREATE UNIQUE INDEX t_both ON t (g, id)", &[]),
    ("CREATE INDEX t_some ON t (g) WHERE id > 7", &[]),
    ("DROP INDEX t_g", &[]),
    ("DROP INDEX u_a", &["u"]),
    ("ALTER INDEX t_g RENAME TO t_gg", &[]),
    ("ALTER TABLE t ADD COLUMN twice INT GENERATED ALWAYS AS (g * 2) STORED", &[]),
    ("ALTER TABLE t ADD CONSTRAINT small CHECK (id < 100000)", &[]),
    ("ALTER TABLE u DROP CONSTRAINT less", &["u"]),
    ("ALTER TABLE u ALTER COLUMN a DROP NOT NULL", &["u"]),
    ("ALTER TABLE t ALTER COLUMN g SET NOT NULL", &[]),
    ("ALTER TABLE t ALTER COLUMN g SET DEFAULT 5", &[]),
    ("ALTER TABLE t ALTER COLUMN g TYPE BIGINT", &["t"]),
    ("ALTER TABLE u DROP COLUMN b CASCADE", &["u"]),
    ("ALTER TABLE t ADD COLUMN d INT, DROP COLUMN d", &[]),
    ("ALTER TABLE t RENAME TO t2", &[]),
    ("ALTER TABLE u RENAME COLUMN b TO bb", &[]),
    ("ALTER TABLE t SET (ttl = '1 day', prefix = 'tt:')", &[]),
    ("ALTER TABLE u SET SCHEMA s", &[]),
    ("INSERT INTO t (id, g, v) VALUES (900, 1, 'mine')", &[]),
    ("DROP TABLE t CASCADE", &["t", "mv"]),
    ("DROP TABLE u", &["u"]),
    ("DROP TABLE s.k", &["s.k"]),
    ("CREATE TABLE made (id INT PRIMARY KEY, v TEXT) WITH (prefix = 'made:')", &[]),
    ("CREATE TABLE t (other INT)", &[]),
    ("ALTER TABLE made RENAME TO made2", &[]),
    ("CREATE TYPE made_type AS ENUM ('a')", &[]),
    ("ALTER TYPE mood ADD VALUE 'glad'", &["u"]),
    ("ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'", &["u"]),
    ("DROP TYPE mood CASCADE", &["u"]),
    ("CREATE SEQUENCE made_seq", &[]),
    ("ALTER SEQUENCE q INCREMENT 7", &[]),
    ("DROP SEQUENCE q", &[]),
    ("CREATE SCHEMA made_schema", &[]),
    ("DROP SCHEMA s CASCADE", &["s.k", "s.u"]),
    ("CREATE VIEW made_view AS SELECT g FROM t", &[]),
    ("CREATE OR REPLACE VIEW w AS SELECT id FROM t", &[]),
    ("DROP VIEW w", &[]),
    ("DROP MATERIALIZED VIEW mv", &["mv"]),
    ("CREATE FUNCTION made_f(a INT) RETURNS INT LANGUAGE sql AS 'SELECT a'", &[]),
    ("DROP FUNCTION f", &[]),
    ("ALTER FUNCTION f RENAME TO ff", &[]),
    ("DROP SERVER pg", &[]),
    ("CREATE SERVER made_server FOREIGN DATA WRAPPER postgres OPTIONS (host 'other')", &[]),
    ("DROP EXPIRY RULE old", &[]),
    ("CREATE EXPIRY RULE newer ON t WHEN g > 100", &[]),
    ("COMMENT ON TABLE t IS 'new'", &[]),
    ("GRANT SELECT ON t TO PUBLIC", &[]),
    (
        "DO $$ BEGIN CREATE TABLE of_do (a INT); CREATE INDEX of_do_a ON of_do (a); DROP INDEX t_g; END $$",
        &[],
    ),
];

/// What another client does between two of these.
const OTHERS: &[&str] = &[
    "CREATE TABLE t (id INT PRIMARY KEY, v TEXT) WITH (prefix = 't:', value = 'v')",
    "CREATE TABLE beside (id INT PRIMARY KEY, v TEXT) WITH (prefix = 't:', value = 'v')",
    "CREATE TABLE third (id INT PRIMARY KEY, v TEXT) WITH (prefix = 'third:')",
    "CREATE INDEX t_g ON s.k (v)",
    "CREATE TABLE holder (v TEXT)",
    "CREATE INDEX t_g ON holder (v)",
    "CREATE INDEX u_a ON t (v)",
    "CREATE TYPE mood AS ENUM ('x')",
    "CREATE TYPE other_type AS ENUM ('x')",
    "CREATE SEQUENCE q START 50",
    "CREATE SEQUENCE other_seq START 50",
    "CREATE SCHEMA s",
    "CREATE SCHEMA other_schema",
    "CREATE VIEW other_view AS SELECT 1 AS one",
    "CREATE FUNCTION f(a INT) RETURNS INT LANGUAGE sql AS 'SELECT a + 100'",
    "CREATE FUNCTION other_f(a INT) RETURNS INT LANGUAGE sql AS 'SELECT a'",
    "CREATE SERVER pg FOREIGN DATA WRAPPER postgres OPTIONS (host 'theirs')",
    "CREATE SERVER other_server FOREIGN DATA WRAPPER postgres OPTIONS (host 'theirs')",
    "INSERT INTO beside VALUES (7, 'acknowledged')",
    "INSERT INTO third VALUES (7, 'acknowledged')",
    "INSERT INTO t (id, v) VALUES (7000, 'acknowledged')",
    "INSERT INTO u (a, b) VALUES (500, 600)",
    "INSERT INTO s.k (v) VALUES ('acknowledged')",
    "DELETE FROM t WHERE id = 3",
];

/// Who says a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Who {
    Transaction,
    Other,
}

type Story = Vec<(Who, &'static str)>;

/// A daemon with two clients.
struct Daemon {
    store: Arc<Store>,
    executor: Executor,
    sessions: [Session; 2],
}

impl Daemon {
    fn over(store: Arc<Store>) -> Self {
        let limits = Limits { statement_timeout: None, ..Limits::default() };
        let executor = Executor::new(Arc::clone(&store), limits).unwrap();
        Self { store, executor, sessions: [Session::new(), Session::new()] }
    }

    fn say(&mut self, who: Who, sql: &str) -> Result<(), String> {
        let session = &mut self.sessions[usize::from(who == Who::Other)];
        let done = self.executor.execute(session, sql, &[], &Cancel::new(), &mut Rows::default());
        done.map(drop).map_err(|error| error.message.clone())
    }
}

/// The file that each death leaves.
struct Grave(PathBuf);

impl Grave {
    fn new() -> Self {
        let shm = PathBuf::from("/dev/shm");
        let place = if shm.is_dir() { shm } else { std::env::temp_dir() };
        Self(place.join(format!("sqlcached-crashes-{}.arena", std::process::id())))
    }

    /// The next process.
    fn open(&self, image: &Image, clock: &Arc<ManualClock>) -> Arc<Store> {
        self.remove();
        let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&self.0).unwrap();
        std::fs::set_permissions(&self.0, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        image.write_to(&file).unwrap();
        drop(file);
        let opened = Store::open_with(&options(Some(self.0.clone()), clock), None).unwrap();
        assert!(matches!(opened.start, Start::Warm { .. }), "{:?}", opened.start);
        opened.store.recover();
        opened.store
    }

    fn remove(&self) {
        let _absent = std::fs::remove_file(&self.0);
    }
}

impl Drop for Grave {
    fn drop(&mut self) {
        self.remove();
    }
}

fn options(path: Option<PathBuf>, clock: &Arc<ManualClock>) -> StoreOptions {
    let clock = Clock::Manual(Arc::clone(clock));
    StoreOptions { path, memory_bytes: 8 << 20, cold: false, clock, row_bytes_max: 1 << 20 }
}

/// All definitions, and the rows of each table.
#[derive(Debug, Default, PartialEq)]
struct World {
    definitions: BTreeMap<String, String>,
    rows: BTreeMap<String, Vec<String>>,
}

fn json(text: serde_json::Result<String>) -> String {
    text.unwrap()
}

impl World {
    fn of(store: &Arc<Store>) -> Self {
        let mut found = Self::default();
        let catalog = store.catalog();
        for table in catalog.tables() {
            let def = shape(table.def());
            found.definitions.insert(format!("table {}", def.name), json(serde_json::to_string(&def)));
            found.rows.insert(def.name.clone(), rows(store, table));
        }
        let mut add = |kind: &str, name: &str, text: String| {
            let before = found.definitions.insert(format!("{kind} {name}"), text);
            assert_eq!(before, None, "two of {kind} {name}");
        };
        catalog.views().for_each(|own| {
            add("view", &own.name, json(serde_json::to_string(&ViewDef { id: 0, ..ViewDef::clone(own) })));
        });
        catalog
            .enums()
            .iter()
            .for_each(|own| add("type", &own.name, json(serde_json::to_string(&EnumDef::clone(own)))));
        catalog
            .namespaces()
            .iter()
            .for_each(|own| add("schema", &own.name, json(serde_json::to_string(&NamespaceDef::clone(own)))));
        catalog
            .routines()
            .iter()
            .for_each(|own| add("function", &own.name, json(serde_json::to_string(&RoutineDef::clone(own)))));
        catalog.servers().iter().for_each(|own| add("server", &own.name, format!("{own:?}")));
        for own in catalog.sequences() {
            let mut def = SequenceDef::clone(own.def());
            def.place = store::definition::Place { last: 0, called: false };
            add("sequence", &own.def().name, json(serde_json::to_string(&def)));
        }
        let prefixes = catalog.tables().filter_map(|table| table.def().options.prefix.clone());
        no_two("prefix", prefixes);
        let indexes = |table: &Arc<Table>| -> Vec<String> {
            table.indexes().iter().map(|index| table.def().qualified(index.name())).collect()
        };
        no_two("index", catalog.tables().flat_map(indexes));
        found
    }
}

/// A definition without what a change that was undone may leave: places in payloads, and counters.
fn shape(def: &TableDef) -> TableDef {
    let mut def = TableDef { schema: 0, slots: None, numbers_below: 0, ..def.clone() };
    def.columns.iter_mut().for_each(|column| column.slot = None);
    // Nothing granted is no grant.
    def.access.grants = def.access.grants.filter(|grants| !grants.is_empty());
    def.indexes.sort_by(|one, other| one.name.cmp(&other.name));
    def
}

fn no_two(what: &str, names: impl Iterator<Item = String>) {
    let mut seen = HashSet::new();
    names.for_each(|name| assert!(seen.insert(name.clone()), "two tables have the {what} {name}"));
}

/// The rows of a table. Every index of all rows has as many.
fn rows(store: &Arc<Store>, table: &Arc<Table>) -> Vec<String> {
    let (view, mut row) = (store.view(), RowBuf::new());
    let mut scan = view.scan(table);
    let visible: Vec<usize> =
        (0..table.def().columns.len()).filter(|&at| table.def().columns[at].is_visible()).collect();
    let mut all = Vec::new();
    while scan.next(&view, &mut row).unwrap() {
        let values: Vec<String> = visible.iter().map(|&at| format!("{:?}", table.column(&row, at))).collect();
        all.push(values.join(" "));
    }
    all.sort();
    for index in table.indexes().iter().filter(|index| index.def().predicate.is_none()) {
        let mut scan = view.range(table, index, &KeyBounds::ALL, false);
        let mut met = 0;
        while scan.next(&view, &mut row).unwrap() {
            met += 1;
        }
        assert_eq!(met, all.len(), "rows by index {} of {}", index.name(), table.name());
    }
    all
}

/// A story: a transaction of definitions, what others do in between, and its end.
fn story(random: &mut fastrand::Rng, first: usize) -> Story {
    let mut story = vec![(Who::Transaction, "BEGIN")];
    for step in 0..=random.usize(..STEPS) {
        if step == 1 && random.u8(..4) == 0 {
            story.push((Who::Transaction, "SAVEPOINT x"));
        }
        let at = if step == 0 { first } else { random.usize(..DEFINITIONS.len()) };
        story.push((Who::Transaction, DEFINITIONS[at].0));
        // The one that needs the column of the other.
        if at == 0 && random.bool() {
            story.push((Who::Transaction, DEFINITIONS[1].0));
        }
        for _ in 0..random.usize(..3) {
            story.push((Who::Other, OTHERS[random.usize(..OTHERS.len())]));
        }
    }
    if story.contains(&(Who::Transaction, "SAVEPOINT x")) && random.bool() {
        story.push((Who::Transaction, "ROLLBACK TO x"));
    }
    story.push((Who::Transaction, if random.u8(..4) == 0 { "COMMIT" } else { "ROLLBACK" }));
    story.push((Who::Other, OTHERS[random.usize(..OTHERS.len())]));
    story
}

/// The tables that may come back empty.
fn may_be_empty(story: &[(Who, &str)]) -> HashSet<&'static str> {
    let of =
        |sql: &str| DEFINITIONS.iter().find(|(own, _)| *own == sql).map_or(&[][..], |(_, tables)| *tables);
    let mut all: HashSet<&str> = story.iter().flat_map(|(_, sql)| of(sql).iter().copied()).collect();
    // What a transaction wrote was committed before it altered the table.
    let says =
        |begin: &str| story.iter().any(|(who, sql)| *who == Who::Transaction && sql.starts_with(begin));
    if says("INSERT INTO t") && says("ALTER TABLE t") {
        all.insert("t");
    }
    all
}

/// What a rollback left.
struct Left(World);

impl Left {
    /// Whether a rollback may have left it, but for these tables, which may be empty.
    fn allows(&self, found: &World, empty: &HashSet<&str>) -> bool {
        let one = |table: &String, rows: &Vec<String>| {
            rows.is_empty() && empty.contains(table.as_str()) || self.has_rows(table, rows)
        };
        found.rows.iter().all(|(table, rows)| one(table, rows)) && populated(&self.0) == populated(found)
    }

    fn has_rows(&self, table: &str, rows: &Vec<String>) -> bool {
        self.0.rows.get(table) == Some(rows)
    }
}

/// What a death within a statement may leave: what a rollback before it leaves, or behind it. The rows of a `COMMIT`
/// may be there without its definitions.
struct Allowed<'l> {
    left: [&'l Left; 2],
    commits: bool,
    empty: HashSet<&'static str>,
}

impl Allowed<'_> {
    fn check(&self, found: &World, context: &str) {
        let of_commit = |left: &Left| {
            let rows = found.rows.iter();
            let either = rows.filter(|(table, rows)| self.left.iter().any(|left| left.has_rows(table, rows)));
            let known: HashSet<&String> = either.map(|(table, _)| table).collect();
            let world = World { definitions: found.definitions.clone(), rows: BTreeMap::new() };
            left.allows(&world, &self.empty) && found.rows.keys().all(|table| known.contains(table))
        };
        let fits = |left: &Left| left.allows(found, &self.empty) || (self.commits && of_commit(left));
        if self.left.iter().any(|left| fits(left)) {
            return;
        }
        let mut differences = String::new();
        for (at, Left(world)) in self.left.iter().enumerate() {
            let beside = ["before the statement", "after it"][at];
            let _ = write!(differences, "\nbeside {beside}:");
            differences += &difference(&populated(world), &populated(found));
            differences += &difference(&world.rows, &found.rows);
        }
        panic!("{context}{differences}");
    }
}

/// The definitions; a view that lost its rows says so, which is as good.
fn populated(world: &World) -> BTreeMap<String, String> {
    let each = |(name, text): (&String, &String)| {
        (name.clone(), text.replace("\"populated\":true", "\"populated\":false"))
    };
    world.definitions.iter().map(each).collect()
}

fn difference<V: PartialEq + std::fmt::Debug>(
    expected: &BTreeMap<String, V>,
    found: &BTreeMap<String, V>,
) -> String {
    let names: HashSet<&String> = expected.keys().chain(found.keys()).collect();
    let other = names.into_iter().filter(|name| expected.get(*name) != found.get(*name));
    let mut text = String::new();
    for name in other {
        let (should, is) = (expected.get(name), found.get(name));
        let _ = write!(text, "\n  {name}\n   should be {should:?}\n   is        {is:?}");
    }
    text
}

/// The stores behind which a story dies: each, or those that end a run of words next to one another, which is where
/// something comes into force, and some others.
fn deaths(log: &[(u64, u64)], every: bool, random: &mut fastrand::Rng) -> Vec<usize> {
    let ends = |at: usize| log.get(at + 1).is_none_or(|next| next.0 != log[at].0 + 1);
    (0..log.len()).filter(|&at| every || (ends(at) && random.u8(..3) == 0) || random.u8(..100) == 0).collect()
}

struct Torture {
    image: Image,
    clock: Arc<ManualClock>,
    grave: Grave,
    every: bool,
}

impl Torture {
    fn new(every: bool) -> Self {
        let clock = ManualClock::new(1_700_000_000);
        let store = Store::open(&options(None, &clock)).unwrap().store;
        let mut daemon = Daemon::over(Arc::clone(&store));
        for sql in SETUP {
            daemon.say(Who::Other, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        Self { image: store.image(), clock, grave: Grave::new(), every }
    }

    /// What a rollback behind these statements leaves.
    fn rolled_back(&self, story: &[(Who, &str)]) -> Left {
        let mut daemon = Daemon::over(self.grave.open(&self.image, &self.clock));
        for (who, sql) in story {
            let _refused = daemon.say(*who, sql);
        }
        daemon.sessions[0].take_notices();
        let _none = daemon.say(Who::Transaction, "ROLLBACK");
        // Nobody is let into the way of what is to come back.
        let notices = daemon.sessions[0].take_notices();
        let left = notices.iter().find(|notice| notice.message.contains("was not taken back"));
        assert!(left.is_none(), "{left:?} in {story:#?}");
        Left(World::of(&daemon.store))
    }

    /// Tells a story and dies at its stores; how often.
    fn tell(&self, story: &Story, random: &mut fastrand::Rng) -> usize {
        let left: Vec<Left> = (0..=story.len()).map(|end| self.rolled_back(&story[..end])).collect();
        let mut daemon = Daemon::over(self.grave.open(&self.image, &self.clock));
        let mut image = daemon.store.image();
        let mut died = 0;
        let logs: Vec<_> = story
            .iter()
            .map(|(who, sql)| {
                daemon.store.start_recording();
                let _refused = daemon.say(*who, sql);
                daemon.store.stop_recording()
            })
            .collect();
        drop(daemon);
        for (at, log) in logs.iter().enumerate() {
            let empty = may_be_empty(&story[..=at]);
            let commits = story[at].1 == "COMMIT";
            let allowed = Allowed { left: [&left[at], &left[at + 1]], commits, empty };
            let deaths = deaths(log, self.every, random);
            let mut next = deaths.iter().peekable();
            for (store, (word, value)) in log.iter().enumerate() {
                image.store(*word, *value);
                if next.next_if(|death| **death == store).is_some() {
                    let context =
                        format!("behind store {store} of {} of {:?} in {story:#?}", log.len(), story[at].1);
                    allowed.check(&World::of(&self.grave.open(&image, &self.clock)), &context);
                    died += 1;
                }
            }
        }
        died
    }
}

/// A table came back empty after a death within the undoing of two definitions, and two tables had one prefix.
#[test]
fn a_death_at_any_store_of_definitions_and_their_undoing_is_a_rollback() {
    #[expect(clippy::disallowed_methods, reason = "the environment asks for a longer run")]
    let asked: Option<usize> = std::env::var("CRASHES").ok().and_then(|crashes| crashes.parse().ok());
    let wanted = asked.unwrap_or(CRASHES);
    let mut random = fastrand::Rng::with_seed(seed());
    let torture = Torture::new(asked.is_some());
    let (mut died, mut stories) = (0, random.usize(..DEFINITIONS.len()));
    while died < wanted {
        let story = story(&mut random, stories % DEFINITIONS.len());
        died += torture.tell(&story, &mut random);
        stories += 1;
    }
    println!("{died} deaths");
}
