//! Random statements run here and on SQLite's own tables; the answers and the tables must be the same.
//!
//! `SEED=... cargo test -p sql --test it differential` replays one run; `STATEMENTS=1000000` asks for more of them.

mod advanced;
mod changes;
mod clauses;
mod compare;
mod definitions;
mod functions;
mod queries;
mod schema;
mod values;
mod writes;

use crate::common::native::Native;
use crate::common::{Db, Rows};
use clauses::Change;
use compare::{compare, is_of_types, same_class};
use fastrand::Rng;
use schema::{Column, Table};
use sql::{Done, SqlError};
use store::value::Value;
use values::{NUMBERS_AS_TEXTS, WORDS};

/// Rounds with a schema of their own, and statements in each.
const ROUNDS: u64 = 60;
const SHORT_RUN: u64 = 2026;
const STATEMENTS: usize = 60;

struct World {
    db: Db,
    native: Native,
    tables: Vec<Table>,
    rng: Rng,
    log: Vec<String>,
    /// Whether statements are put into transactions.
    transactional: bool,
    /// Within a transaction: how many savepoints it has, which are called `s0`, `s1`...
    savepoints: Option<usize>,
    /// Whether columns hold texts that may be equal and not the same: which of them a group shows is up to the
    /// implementation.
    folds: bool,
    /// How many `OR`s the condition that is being made stands in.
    alternatives: u32,
}

#[test]
fn random_statements_agree_with_sqlite() {
    run(false);
}

/// A transaction's own writes are seen by its statements through every plan, and savepoints bring back what was.
#[test]
fn random_transactions_agree_with_sqlite() {
    run(true);
}

fn run(transactional: bool) {
    let given = crate::common::given_seed();
    #[expect(clippy::disallowed_methods, reason = "a test may be told how much to do")]
    let asked = std::env::var("STATEMENTS").ok().map(|count| count.parse::<u64>().expect("a number"));
    // A long run begins anywhere. The short one always repeats itself: one difference in some 100,000 statements is
    // left.
    let first: u64 = given.unwrap_or_else(|| if asked.is_some() { fastrand::u64(..) } else { SHORT_RUN });
    let rounds = asked.map_or(ROUNDS, |count| count.div_ceil(STATEMENTS as u64));
    for round in 0..if given.is_some() { 1 } else { rounds } {
        let seed = first.wrapping_add(round);
        let mut world = World::new(seed, transactional);
        for _ in 0..STATEMENTS {
            if let Err(difference) = world.step() {
                let log = world.log.join(";\n");
                let last = world.log.last().cloned().unwrap_or_default();
                let plan = world.db.execute(&format!("EXPLAIN QUERY PLAN {last}"), &[]);
                let plan = plan.map(|(_, rows)| crate::common::shown(&rows.rows)).unwrap_or_default();
                panic!("SEED={seed}\n{log};\n-- {difference}\n-- {plan}");
            }
        }
    }
}

/// Whether SQLite refused a number with a fraction for a column of integers.
fn is_fraction(error: &str) -> bool {
    error.contains("cannot store REAL value in INT") || error.contains("cannot store REAL value in BIGINT")
}

impl World {
    fn new(seed: u64, transactional: bool) -> Self {
        let rng = Rng::with_seed(seed);
        let mut db = Db::new();
        db.session.set_like(sql::LikeStyle::Sqlite);
        let native = Native::new();
        let (tables, log) = (Vec::new(), Vec::new());
        let mut world = Self {
            db,
            native,
            tables,
            rng,
            log,
            transactional,
            savepoints: None,
            folds: false,
            alternatives: 0,
        };
        for name in ["t", "u"] {
            let table = world.create(name);
            world.tables.push(table);
        }
        world
    }

    fn step(&mut self) -> Result<(), String> {
        if self.transactional && self.rng.u32(0..5) == 0 {
            return self.control();
        }
        // What a definition changes is no part of a transaction here.
        match self.rng.u32(0..40) {
            0 if !self.transactional => self.alter(),
            1 if !self.transactional => self.redefine(),
            2..18 => self.write(),
            _ => self.read(),
        }
    }

    /// Begins, ends or marks a transaction here and there.
    fn control(&mut self) -> Result<(), String> {
        let sql = match self.savepoints {
            None => "BEGIN".to_owned(),
            Some(count) => match (self.rng.u32(0..8), self.rng.usize(0..count.max(1))) {
                (0, _) => "ROLLBACK".to_owned(),
                (1, _) => "COMMIT".to_owned(),
                (2 | 3, at) if count > 0 => format!("ROLLBACK TO s{at}"),
                (4, at) if count > 0 => format!("RELEASE s{at}"),
                _ => format!("SAVEPOINT s{count}"),
            },
        };
        self.log.push(sql.clone());
        self.native.query(&sql)?;
        self.db.execute(&sql, &[]).map_err(|error| error.to_string())?;
        let number = sql.rsplit('s').next().and_then(|number| number.parse::<usize>().ok());
        self.savepoints = match (sql.split(' ').next(), number) {
            (Some("SAVEPOINT" | "ROLLBACK"), Some(at)) => Some(at + 1),
            (Some("RELEASE"), at) => at,
            (Some("BEGIN"), _) => Some(0),
            _ => None,
        };
        self.compare_tables()
    }

    /// Runs a statement here. Within a transaction an error takes back the statement only, as it does in SQLite, and
    /// nothing where the statement says `OR FAIL`.
    fn ours(&mut self, sql: &str) -> Result<(Done, Rows), SqlError> {
        if self.savepoints.is_none() {
            return self.db.execute(sql, &[]);
        }
        self.db.run("SAVEPOINT statement");
        let result = self.db.execute(sql, &[]);
        if result.as_ref().is_err_and(|error| !error.partial) {
            self.db.run("ROLLBACK TO statement");
        }
        self.db.run("RELEASE statement");
        result
    }

    /// Runs a statement there. SQLite leaves the first rows of one that meets a value of the wrong type in its
    /// middle, where the statement ignores conflicts.
    fn native(&self, sql: &str) -> Result<Vec<Vec<Value>>, String> {
        self.native.query("SAVEPOINT statement")?;
        let result = self.native.query(sql);
        let stands = |error: &String| sql.contains(" OR FAIL ") && !error.contains("cannot store");
        let mut undone = Ok(Vec::new());
        if result.as_ref().is_err_and(|error| !stands(error)) {
            undone = self.native.query("ROLLBACK TO statement");
        }
        let ended = undone.and_then(|_| self.native.query("RELEASE statement"));
        // `OR ROLLBACK` ends the savepoint with the transaction that it began.
        if self.savepoints.is_some() {
            ended?;
        }
        result
    }

    /// Whether a statement compares a text with a number that is computed. PostgreSQL refuses that, and so do we; to
    /// SQLite the text is greater.
    fn compares_in_vain(&mut self, sql: &str) -> bool {
        let refused = self.ours(&format!("EXPLAIN QUERY PLAN {sql}")).err();
        refused.is_some_and(|error| is_of_types(error.state, &error.message))
    }

    /// Whether it would, if the texts in it that read as numbers had a type. They have none, so that they are taken as
    /// numbers beside one; to SQLite they are texts.
    fn reads_numbers(&mut self, sql: &str) -> bool {
        let typed = with_typed_texts(sql, NUMBERS_AS_TEXTS);
        typed != sql && self.compares_in_vain(&typed)
    }

    /// Whether it compares a text with bytes that are computed: the text is its bytes then, and less than all bytes to
    /// SQLite.
    fn reads_bytes(&mut self, sql: &str) -> bool {
        let typed = with_typed_texts(&with_typed_texts(sql, NUMBERS_AS_TEXTS), WORDS);
        let refused = self.ours(&format!("EXPLAIN QUERY PLAN {typed}")).err();
        refused.is_some_and(|error| error.state == "42883" && error.message.contains("bytea"))
    }

    /// Whether its answer need not be SQLite's, for one of these reasons.
    fn is_of_types(&mut self, sql: &str) -> bool {
        self.compares_in_vain(sql) || self.reads_numbers(sql) || self.reads_bytes(sql)
    }

    fn compare_tables(&mut self) -> Result<(), String> {
        for at in 0..self.tables.len() {
            self.compare_table(at)?;
        }
        Ok(())
    }

    fn compare_table(&mut self, at: usize) -> Result<(), String> {
        let all = format!("SELECT * FROM {}", self.tables[at].name);
        let ours = self.db.execute(&all, &[]).map_err(|error| error.to_string())?.1.rows;
        compare(self.native.query(&all)?, ours, false, false)
    }

    fn read(&mut self) -> Result<(), String> {
        let (sql, ordered) = match self.rng.u32(0..5) {
            0 | 1 => self.select(),
            2 => self.rare_select(),
            _ => self.advanced_select(),
        };
        if self.compares_in_vain(&sql) {
            return Ok(());
        }
        self.log.push(sql.clone());
        let native = self.native(&sql);
        let ours = self.ours(&sql);
        let (native, ours) = match (native, ours) {
            (Ok(native), Ok((_, ours))) => (native, ours.rows),
            (Err(native), Err(ours)) => {
                same_class(&native, ours.state)?;
                self.log.pop();
                return Ok(());
            }
            (native, ours) => return Err(format!("native {native:?}, ours {ours:?}")),
        };
        let folds = self.folds || sql.contains("COLLATE NOCASE") || sql.contains("COLLATE RTRIM");
        let result = compare(native, ours, ordered, folds);
        if result.is_ok() || self.reads_numbers(&sql) || self.reads_bytes(&sql) {
            self.log.pop();
            return Ok(());
        }
        result
    }

    fn write(&mut self) -> Result<(), String> {
        let at = self.rng.usize(0..self.tables.len());
        let Change { ours: sql, native } = match self.rng.u32(0..15) {
            0..4 => self.rare_change(at),
            12..15 => self.advanced_change(at),
            4 if self.tables[at].view.is_some() => self.change_of_view(at),
            _ => self.change(at).into(),
        };
        if self.is_of_types(&sql) {
            return Ok(());
        }
        self.log.push(sql.clone());
        let native = self.native(&native);
        if native.as_ref().is_err_and(|error| is_fraction(error)) {
            // We round it, as PostgreSQL does; `values_postgresql` and the server's tests look at that.
            return self.compare_table(at);
        }
        let ours = self.ours(&sql);
        match (native, ours) {
            (Ok(native), Ok((done, ours))) => {
                let changes =
                    if sql.contains("RETURNING") { native.len() as u64 } else { self.native.changes() };
                if changes != done.affected {
                    return Err(format!("native changed {changes} rows, we {}", done.affected));
                }
                compare(native, ours.rows, false, false)?;
            }
            (Err(native), Err(ours)) => same_class(&native, ours.state)?,
            (native, ours) => return Err(format!("native {native:?}, ours {ours:?}")),
        }
        self.compare_table(at)
    }
}

/// A statement in which these texts have a type.
fn with_typed_texts(sql: &str, texts: &[&str]) -> String {
    let mut typed = sql.to_owned();
    for text in texts {
        typed = typed.replace(&format!("'{text}'"), &format!("CAST('{text}' AS TEXT)"));
    }
    typed
}
