//! Random statements run here and on SQLite's own tables; the answers and the tables must be the same.
//!
//! `SEED=... cargo test -p sql --test differential` replays one run; `STATEMENTS=1000000` asks for more of them.

mod clauses;
#[path = "../common/mod.rs"]
mod common;
mod compare;

use clauses::Change;
use common::native::Native;
use common::{Db, Rows};
use compare::{compare, same_class};
use fastrand::Rng;
use sql::{Done, SqlError};
use store::value::Value;

/// Rounds with a schema of their own, and statements in each.
const ROUNDS: u64 = 60;
const STATEMENTS: usize = 60;

#[derive(Clone)]
struct Column {
    name: String,
    kind: &'static str,
    not_null: bool,
}

struct Table {
    name: String,
    columns: Vec<Column>,
    key: Vec<usize>,
    /// Columns in a unique index.
    unique: Vec<Vec<usize>>,
}

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
    #[expect(clippy::disallowed_methods, reason = "a test may be told its seed")]
    let given = std::env::var("SEED").ok().map(|seed| seed.parse().expect("SEED is a number"));
    let first: u64 = given.unwrap_or_else(|| fastrand::u64(..));
    #[expect(clippy::disallowed_methods, reason = "a test may be told how much to do")]
    let asked = std::env::var("STATEMENTS").ok().map(|count| count.parse::<u64>().expect("a number"));
    let rounds = asked.map_or(ROUNDS, |count| count.div_ceil(STATEMENTS as u64));
    for round in 0..if given.is_some() { 1 } else { rounds } {
        let seed = first.wrapping_add(round);
        let mut world = World::new(seed, transactional);
        for _ in 0..STATEMENTS {
            if let Err(difference) = world.step() {
                let log = world.log.join(";\n");
                let last = world.log.last().cloned().unwrap_or_default();
                let plan = world.db.execute(&format!("EXPLAIN QUERY PLAN {last}"), &[]);
                let plan = plan.map(|(_, rows)| common::shown(&rows.rows)).unwrap_or_default();
                panic!("SEED={seed}\n{log};\n-- {difference}\n-- {plan}");
            }
        }
    }
}

impl World {
    fn new(seed: u64, transactional: bool) -> Self {
        let mut rng = Rng::with_seed(seed);
        let db = Db::new();
        let native = Native::new();
        let tables = vec![random_table(&mut rng, "t"), random_table(&mut rng, "u")];
        let log = Vec::new();
        let mut world = Self { db, native, tables, rng, log, transactional, savepoints: None };
        for at in 0..world.tables.len() {
            world.create(at);
        }
        world
    }

    fn create(&mut self, at: usize) {
        let table = &self.tables[at];
        let mut columns: Vec<String> = table
            .columns
            .iter()
            .map(|column| {
                format!("{} {}{}", column.name, column.kind, if column.not_null { " NOT NULL" } else { "" })
            })
            .collect();
        if !table.key.is_empty() {
            columns.push(format!("PRIMARY KEY ({})", table.names(&table.key)));
        }
        for unique in &table.unique {
            columns.push(format!("UNIQUE ({})", table.names(unique)));
        }
        let sql = format!("CREATE TABLE {} ({})", table.name, columns.join(", "));
        self.native.query(&format!("{sql} STRICT")).expect("a table");
        let ordered = if !table.key.is_empty() && self.rng.bool() { " WITH (ordered = on)" } else { "" };
        let sql = format!("{sql}{ordered}");
        self.log.push(sql.clone());
        self.db.run(&sql);
        for index in 0..self.rng.usize(0..3) {
            let table = &self.tables[at];
            let count = self.rng.usize(1..3);
            let columns: Vec<usize> = self.rng.choose_multiple(0..table.columns.len(), count);
            let sql =
                format!("CREATE INDEX {}_i{index} ON {} ({})", table.name, table.name, table.names(&columns));
            self.log.push(sql.clone());
            self.db.run(&sql);
        }
    }

    fn step(&mut self) -> Result<(), String> {
        if self.transactional && self.rng.u32(0..5) == 0 {
            return self.control();
        }
        match self.rng.u32(0..10) {
            0..4 => self.write(),
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

    /// Runs a statement here. Within a transaction an error takes back the statement only, as it does in SQLite.
    fn ours(&mut self, sql: &str) -> Result<(Done, Rows), SqlError> {
        if self.savepoints.is_none() {
            return self.db.execute(sql, &[]);
        }
        self.db.run("SAVEPOINT statement");
        let result = self.db.execute(sql, &[]);
        if result.is_err() {
            self.db.run("ROLLBACK TO statement");
        }
        self.db.run("RELEASE statement");
        result
    }

    /// Runs a statement there. SQLite leaves the first rows of one that meets a value of the wrong type in its
    /// middle, where the statement ignores conflicts.
    fn native(&self, sql: &str) -> Result<Vec<Vec<Value>>, String> {
        if self.savepoints.is_none() {
            return self.native.query(sql);
        }
        self.native.query("SAVEPOINT statement")?;
        let result = self.native.query(sql);
        if result.is_err() {
            self.native.query("ROLLBACK TO statement")?;
        }
        self.native.query("RELEASE statement")?;
        result
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
        compare(self.native.query(&all)?, ours, false)
    }

    fn read(&mut self) -> Result<(), String> {
        let (sql, ordered) = if self.rng.bool() { self.rare_select() } else { self.select() };
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
        let result = compare(native, ours, ordered);
        if result.is_ok() {
            self.log.pop();
        }
        result
    }

    fn write(&mut self) -> Result<(), String> {
        let at = self.rng.usize(0..self.tables.len());
        let Change { ours: sql, native } =
            if self.rng.u32(0..3) == 0 { self.rare_change(at) } else { self.change(at).into() };
        self.log.push(sql.clone());
        let native = self.native(&native);
        let ours = self.ours(&sql);
        match (native, ours) {
            (Ok(native), Ok((done, ours))) => {
                let changes =
                    if sql.contains("RETURNING") { native.len() as u64 } else { self.native.changes() };
                if changes != done.affected {
                    return Err(format!("native changed {changes} rows, we {}", done.affected));
                }
                compare(native, ours.rows, false)?;
            }
            (Err(native), Err(ours)) => same_class(&native, ours.state)?,
            (native, ours) => return Err(format!("native {native:?}, ours {ours:?}")),
        }
        self.compare_table(at)
    }

    fn change(&mut self, at: usize) -> String {
        let name = self.tables[at].name.clone();
        match self.rng.u32(0..12) {
            0..6 => self.insert(at),
            6..9 => self.update(at),
            9 => format!("DELETE FROM {name} WHERE {}", self.condition(&[at], 2)),
            10 => self.insert_select(at),
            _ => format!("DELETE FROM {name} WHERE {} RETURNING *", self.condition(&[at], 1)),
        }
    }

    fn row(&mut self, at: usize) -> String {
        let columns = self.tables[at].columns.clone();
        let values: Vec<String> = columns.iter().map(|column| self.value_for(column)).collect();
        format!("({})", values.join(", "))
    }

    fn insert(&mut self, at: usize) -> String {
        let rows: Vec<String> = (0..self.rng.usize(1..6)).map(|_| self.row(at)).collect();
        let name = self.tables[at].name.clone();
        let rows = rows.join(", ");
        let target = self.conflict_target(at);
        let own = self.tables[at].columns.len();
        let set = self.rng.usize(0..own);
        let free = self.tables[at].is_free(set);
        let column = self.tables[at].columns[set].name.clone();
        match self.rng.u32(0..7) {
            0 => format!("INSERT OR REPLACE INTO {name} VALUES {rows}"),
            1 => format!("INSERT OR IGNORE INTO {name} VALUES {rows} RETURNING *"),
            2 => format!("INSERT INTO {name} VALUES {rows} ON CONFLICT {target} DO NOTHING"),
            // Without a target, which of several conflicting rows is updated is up to the implementation.
            3 if free && !target.is_empty() => {
                let condition = if self.rng.bool() {
                    format!(" WHERE {name}.{column} IS NOT excluded.{column}")
                } else {
                    String::new()
                };
                format!(
                    "INSERT INTO {name} VALUES {rows} ON CONFLICT {target} DO UPDATE SET {column} = excluded.{column}{condition} RETURNING *"
                )
            }
            4 if free && !target.is_empty() => {
                format!(
                    "INSERT INTO {name} VALUES {rows} ON CONFLICT {target} DO UPDATE SET {column} = coalesce({column}, excluded.{column})"
                )
            }
            5 => format!("REPLACE INTO {name} VALUES {rows}"),
            _ => format!("INSERT INTO {name} VALUES {rows}"),
        }
    }

    fn conflict_target(&mut self, at: usize) -> String {
        let table = &self.tables[at];
        let mut targets: Vec<Vec<usize>> = table.unique.clone();
        if !table.key.is_empty() {
            targets.push(table.key.clone());
        }
        match self.rng.choice(&targets) {
            Some(target) if self.rng.u32(0..4) > 0 => format!("({})", table.names(target)),
            _ => String::new(),
        }
    }

    fn insert_select(&mut self, at: usize) -> String {
        let source = self.rng.usize(0..self.tables.len());
        let condition = self.condition(&[source], 1);
        let values: Vec<String> = self.tables[at]
            .columns
            .clone()
            .iter()
            .map(|column| {
                let same = self.tables[source].columns.iter().find(|other| other.kind == column.kind);
                match same {
                    Some(same) if !column.not_null || same.not_null => {
                        format!("{}.{}", self.tables[source].name, same.name)
                    }
                    _ => self.value_for(column),
                }
            })
            .collect();
        let order: Vec<String> = (1..=values.len()).map(|column| column.to_string()).collect();
        format!(
            "INSERT OR IGNORE INTO {} SELECT {} FROM {} WHERE {condition} ORDER BY {}",
            self.tables[at].name,
            values.join(", "),
            self.tables[source].name,
            order.join(", ")
        )
    }

    fn update(&mut self, at: usize) -> String {
        let table = &self.tables[at];
        let name = table.name.clone();
        let free: Vec<usize> = (0..table.columns.len()).filter(|&column| table.is_free(column)).collect();
        let Some(&set) = self.rng.choice(&free) else {
            let condition = self.condition(&[at], 1);
            return format!("DELETE FROM {name} WHERE {condition}");
        };
        let column = self.tables[at].columns[set].clone();
        let value = match (column.kind, self.rng.u32(0..3)) {
            ("INT", 0) => format!("{} + 1", column.name),
            ("TEXT", 0) => format!("{} || 'x'", column.name),
            ("REAL", 0) => format!("{} / 2", column.name),
            _ => self.value_for(&column),
        };
        let condition = self.condition(&[at], 2);
        let returning = if self.rng.bool() { " RETURNING *" } else { "" };
        format!("UPDATE {name} SET {} = {value} WHERE {condition}{returning}", column.name)
    }

    fn select(&mut self) -> (String, bool) {
        let join = self.rng.u32(0..3) == 0;
        let scope: Vec<usize> = if join { vec![0, 1] } else { vec![self.rng.usize(0..2)] };
        let columns: Vec<String> = scope.iter().flat_map(|&at| self.tables[at].qualified()).collect();
        let from = if join {
            let (left, right) = (self.column(0), self.column(1));
            let kind = ["JOIN", "LEFT JOIN", "FULL JOIN"][self.rng.usize(0..3)];
            let operator = if self.rng.u32(0..5) == 0 { "<" } else { "=" };
            format!("t {kind} u ON {left} {operator} {right}")
        } else {
            self.tables[scope[0]].name.clone()
        };
        let condition = self.condition(&scope, 3);
        match self.rng.u32(0..5) {
            0 => {
                let group = self.column_of(&scope);
                let of = self.column_of(&scope);
                (
                    format!(
                        "SELECT {group}, count(*), min({of}), max({of}), count(DISTINCT {of}) FROM {from} WHERE {condition} GROUP BY {group}"
                    ),
                    false,
                )
            }
            1 => {
                let of = self.column_of(&scope);
                (format!("SELECT DISTINCT {of} FROM {from} WHERE {condition}"), false)
            }
            2 => {
                // All columns in the order make it total; the first ones are random.
                let mut order = columns.clone();
                self.rng.shuffle(&mut order);
                let direction = if self.rng.bool() { " DESC" } else { "" };
                let order: Vec<String> = order.iter().map(|column| format!("{column}{direction}")).collect();
                let limit = self.rng.u32(0..6);
                let offset = self.rng.u32(0..3);
                (
                    format!(
                        "SELECT {} FROM {from} WHERE {condition} ORDER BY {} LIMIT {limit} OFFSET {offset}",
                        columns.join(", "),
                        order.join(", ")
                    ),
                    true,
                )
            }
            3 => {
                let order = self.column_of(&scope);
                let direction = if self.rng.bool() { " DESC" } else { "" };
                (format!("SELECT {order} FROM {from} WHERE {condition} ORDER BY {order}{direction}"), true)
            }
            _ => (format!("SELECT {} FROM {from} WHERE {condition}", columns.join(", ")), false),
        }
    }

    fn column(&mut self, at: usize) -> String {
        let columns = self.tables[at].qualified();
        columns[self.rng.usize(0..columns.len())].clone()
    }

    fn column_of(&mut self, scope: &[usize]) -> String {
        let at = scope[self.rng.usize(0..scope.len())];
        self.column(at)
    }

    fn condition(&mut self, scope: &[usize], depth: u32) -> String {
        if depth > 0 {
            match self.rng.u32(0..6) {
                0 => {
                    return format!(
                        "({} OR {})",
                        self.condition(scope, depth - 1),
                        self.condition(scope, depth - 1)
                    );
                }
                1 => return format!("NOT ({})", self.condition(scope, depth - 1)),
                2 | 3 => {
                    return format!(
                        "{} AND {}",
                        self.condition(scope, depth - 1),
                        self.condition(scope, depth - 1)
                    );
                }
                _ => {}
            }
        }
        if self.rng.u32(0..8) == 0 {
            return self.rare_condition(scope);
        }
        let column = self.column_of(scope);
        match self.rng.u32(0..14) {
            0 => format!("{column} IS NULL"),
            1 => format!("{column} IS NOT NULL"),
            2 => format!("{column} BETWEEN {} AND {}", self.any_value(), self.any_value()),
            3 => {
                let values: Vec<String> = (0..self.rng.usize(0..4)).map(|_| self.any_value()).collect();
                format!("{column} IN ({})", values.join(", "))
            }
            4 => {
                let pattern =
                    ["'a%'", "'B%'", "'1%'", "'%b'", "'a_'", "'ab'", "'%'", "17"][self.rng.usize(0..8)];
                format!("{column} LIKE {pattern}")
            }
            5 => {
                let pattern = ["'a*'", "'B*'", "'1*'", "'*b'", "'a?'", "'ab'"][self.rng.usize(0..6)];
                format!("{column} GLOB {pattern}")
            }
            6 => format!("{column} {} {}", self.operator(), self.column_of(scope)),
            7 => {
                let other = self.rng.usize(0..2);
                let inner = self.tables[other].qualified();
                let inner = &inner[self.rng.usize(0..inner.len())];
                format!("{column} IN (SELECT {inner} FROM {})", self.tables[other].name)
            }
            8 => format!("{column} IS {}", self.any_value()),
            9 => format!("+{column} {} {}", self.operator(), self.any_value()),
            _ => format!("{column} {} {}", self.operator(), self.any_value()),
        }
    }

    fn operator(&mut self) -> &'static str {
        ["=", "=", "=", "<", "<=", ">", ">=", "<>"][self.rng.usize(0..8)]
    }

    fn any_value(&mut self) -> String {
        let kind = ["INT", "REAL", "TEXT", "BLOB"][self.rng.usize(0..4)];
        if self.rng.u32(0..12) == 0 { "NULL".to_owned() } else { self.literal(kind) }
    }

    fn value_for(&mut self, column: &Column) -> String {
        if !column.not_null && self.rng.u32(0..5) == 0 {
            return "NULL".to_owned();
        }
        // Now and then a value that has to be converted, or refused.
        let kind = match (column.kind, self.rng.u32(0..25)) {
            ("ANY", _) => ["INT", "REAL", "TEXT", "BLOB"][self.rng.usize(0..4)],
            ("INT" | "REAL", 0) => "TEXT",
            ("INT" | "TEXT", 1) => "REAL",
            ("TEXT", 2) => "INT",
            (kind, _) => kind,
        };
        self.literal(kind)
    }

    fn literal(&mut self, kind: &str) -> String {
        match kind {
            "INT" => match self.rng.u32(0..12) {
                0 => "9223372036854775807".to_owned(),
                1 => "-9223372036854775808".to_owned(),
                2 => "9007199254740993".to_owned(),
                _ => self.rng.i32(-4..12).to_string(),
            },
            "REAL" => match self.rng.u32(0..10) {
                0 => "9223372036854775808.0".to_owned(),
                1 => "-0.0".to_owned(),
                2 => "9007199254740992.0".to_owned(),
                _ => format!("{:?}", f64::from(self.rng.i32(-8..16)) / 2.0),
            },
            "TEXT" => {
                let texts = [
                    "a", "A", "ab", "aB", "b", "B1", "", "1", "2", "1.0", "1.5", " 3", "17", "1e1", "\u{e9}",
                ];
                format!("'{}'", texts[self.rng.usize(0..texts.len())])
            }
            _ => ["x''", "x'61'", "x'00'", "x'ff00'"][self.rng.usize(0..4)].to_owned(),
        }
    }
}

impl Table {
    fn names(&self, columns: &[usize]) -> String {
        columns.iter().map(|&column| self.columns[column].name.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn qualified(&self) -> Vec<String> {
        self.columns.iter().map(|column| format!("{}.{}", self.name, column.name)).collect()
    }

    /// A column that no constraint watches: updates of many rows agree whatever their order.
    fn is_free(&self, column: usize) -> bool {
        !self.key.contains(&column) && !self.unique.iter().any(|unique| unique.contains(&column))
    }
}

fn random_table(rng: &mut Rng, name: &str) -> Table {
    let kinds = ["INT", "INT", "REAL", "TEXT", "TEXT", "BLOB", "ANY"];
    let mut columns: Vec<Column> = (0..rng.usize(2..6))
        .map(|at| Column {
            name: format!("{name}{at}"),
            kind: kinds[rng.usize(0..kinds.len())],
            not_null: rng.u32(0..6) == 0,
        })
        .collect();
    let count = rng.usize(0..3).min(columns.len());
    let key: Vec<usize> = rng.choose_multiple(0..columns.len(), count);
    for &column in &key {
        columns[column].not_null = true;
    }
    let mut unique = Vec::new();
    if rng.u32(0..3) == 0 {
        let count = rng.usize(1..3);
        let columns: Vec<usize> = rng.choose_multiple(0..columns.len(), count);
        let mut sorted = (columns.clone(), key.clone());
        sorted.0.sort_unstable();
        sorted.1.sort_unstable();
        if sorted.0 != sorted.1 {
            unique.push(columns);
        }
    }
    Table { name: name.to_owned(), columns, key, unique }
}
