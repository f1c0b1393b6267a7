//! Aggregates over a whole table mean to the native executor what they mean to SQLite: each statement runs by both.

use crate::common::{Db, seed};
use sql::Limits;
use store::value::Value;

#[test]
fn whole_numbers_are_folded_and_what_an_index_serves_is_not() {
    let mut db = Db::new();
    db.run(
        "CREATE TABLE t (k TEXT PRIMARY KEY, n INT, m INT, page INT, w REAL, tag TEXT, fold TEXT COLLATE NOCASE);
         CREATE INDEX t_page ON t (page);
         CREATE VIEW v AS SELECT * FROM t;
         INSERT INTO t VALUES ('a', 1, 2, 3, 0.5, 'x', 'X'), ('b', NULL, 2, 3, 0.5, 'y', 'x')",
    );
    for sql in [
        "SELECT count(*), sum(n) FROM t",
        "SELECT sum(n) FROM main.t",
        "SELECT count(k), count(n + 1), total(n), avg(m), min(n), max(m * -1) FROM t WHERE n > 0 AND NOT m = 3",
        "SELECT n % 10, count(*) FROM t GROUP BY n % 10",
        "SELECT count(*) AS c, n % 10 AS g FROM t GROUP BY g",
        "SELECT tag, sum(n) FROM t GROUP BY 1",
        "SELECT tag, m, sum(n) FROM t WHERE n BETWEEN 1 AND 5 OR m IS NOT NULL GROUP BY m, tag",
        "SELECT m FROM t GROUP BY (1)",
        "SELECT page, max(page) FROM t GROUP BY page",
        "SELECT count(*) FROM t WHERE n <> 3",
        "SELECT sum(x.n) FROM t AS x",
        "SELECT sum(n) FROM t WHERE page = 3",
        "SELECT tag, sum(n) FROM t WHERE page = 3 AND m > 1 GROUP BY tag",
        "SELECT x.tag, n FROM t x WHERE x.k = 'a'",
    ] {
        assert!(db.is_native(sql), "{sql}");
    }
    for sql in [
        "SELECT sum(w) FROM t",
        "SELECT sum(n) FROM t WHERE k > 'a'",
        "SELECT sum(n) FROM t WHERE page = 3 AND tag = 'x'",
        "SELECT n FROM t AS x WHERE page = 3 AND m > 1",
        "SELECT n FROM t AS x",
        "SELECT max(page) FROM t",
        "SELECT fold, count(*) FROM t GROUP BY fold",
        "SELECT count(DISTINCT n) FROM t",
        "SELECT sum(n) FILTER (WHERE n > 1) FROM t",
        "SELECT sum(n) FROM v",
        "SELECT sum(n) + 1 FROM t",
        "SELECT sum(n) FROM t GROUP BY m HAVING sum(n) > 1",
        "SELECT sum(_ttl) FROM t",
        "SELECT rowid AS oid, count(*) FROM t GROUP BY oid",
        "SELECT sum(n) FROM t WHERE w > 1",
    ] {
        assert!(!db.is_native(sql), "{sql}");
    }
    db.run("CREATE INDEX t_n ON t (n) WHERE n > 5");
    assert!(!db.is_native("SELECT sum(m) FROM t WHERE n > 6"));
    db.run("DROP INDEX t_n;\nCREATE INDEX t_n ON t (n % 10)");
    assert!(!db.is_native("SELECT sum(m) FROM t WHERE n % 10 = 6"));
    assert!(db.is_native("SELECT n % 10, count(*) FROM t GROUP BY n % 10"));
}

/// Statements of the form, some of them with an end that is SQLite's to say: sums that overflow, parameters that are no
/// whole numbers.
struct Statements(fastrand::Rng);

impl Statements {
    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.0.usize(..list.len())]
    }

    fn number(&mut self, depth: u32) -> String {
        if depth > 0 && self.0.bool() {
            let (left, right) = (self.number(depth - 1), self.number(depth - 1));
            return format!("({left} {} {right})", self.pick(&["+", "-", "*", "/", "%", "%", "%"]));
        }
        self.pick(&["n", "m", "t.n", "-m", "big", "3", "10", "-1", "0", "?1", "NULL", "true"]).to_owned()
    }

    fn test(&mut self, depth: u32) -> String {
        let a = self.number(1);
        match self.0.u32(..if depth > 0 { 7 } else { 4 }) {
            0 => format!("{a} IS NULL"),
            1 => format!("{a} NOTNULL"),
            2 => format!("{a} {}BETWEEN {} AND {}", self.pick(&["", "NOT "]), self.number(0), self.number(0)),
            3 | 4 => format!("{a} {} {}", self.pick(&["=", "<>", "<", "<=", ">", ">="]), self.number(1)),
            5 => format!("NOT ({})", self.test(depth - 1)),
            _ => format!("({} {} {})", self.test(depth - 1), self.pick(&["AND", "OR"]), self.test(depth - 1)),
        }
    }

    fn aggregate(&mut self) -> String {
        if self.0.u32(..4) == 0 {
            return self.pick(&["count(*)", "count(tag)", "COUNT(body)"]).to_owned();
        }
        let function = self.pick(&["sum", "total", "avg", "min", "max", "count", "Sum"]);
        format!("{function}({})", self.number(2))
    }

    fn statement(&mut self) -> String {
        let mut items: Vec<String> = (0..self.0.usize(1..4)).map(|_| self.aggregate()).collect();
        let condition = if self.0.bool() { format!(" WHERE {}", self.test(2)) } else { String::new() };
        let mut keys = Vec::new();
        for at in 0..self.0.usize(..3) {
            let key = if self.0.u32(..3) == 0 { "tag".to_owned() } else { self.number(1) };
            let place = self.0.usize(..=items.len());
            let (item, term) = match self.0.u32(..3) {
                0 => (format!("{key} AS g{at}"), format!("g{at}")),
                _ => (key.clone(), key),
            };
            items.insert(place, item);
            keys.push(term);
        }
        let group = if keys.is_empty() { String::new() } else { format!(" GROUP BY {}", keys.join(", ")) };
        format!("SELECT {} FROM t{condition}{group}", items.join(", "))
    }

    fn parameter(&mut self) -> Value {
        match self.0.u32(..8) {
            0 => Value::Null,
            1 => Value::from("3"),
            2 => Value::Real(2.5),
            _ => Value::Integer(self.0.i64(-3..6)),
        }
    }
}

#[test]
fn random_aggregates_answer_like_sqlite() {
    let seed = seed();
    let mut random = Statements(fastrand::Rng::with_seed(seed));
    let mut db = Db::new();
    db.run("CREATE TABLE t (k INTEGER PRIMARY KEY, n INT, m INT, big INT, tag TEXT, body TEXT)");
    let mut answered = 0;
    for round in 0..1_200 {
        if round % 20 == 0 {
            let big = [i64::MAX, i64::MIN, 4_611_686_018_427_387_904, 7][random.0.usize(..4)];
            let tag = random.pick(&["'a'", "'b'", "'B'", "NULL", "''", "'ab'"]);
            let (n, m) = (random.0.i64(-9..9), random.0.i64(-2..3));
            db.run(&format!("INSERT INTO t VALUES ({round}, {n}, nullif({m}, 0), {big}, {tag}, 'x')"));
        }
        let within = random.0.bool();
        if within {
            db.run("BEGIN;\nUPDATE t SET n = 7 WHERE k = 20;\nDELETE FROM t WHERE k = 40");
            db.run("INSERT INTO t VALUES (-1, 5, NULL, NULL, 'own', NULL)");
        }
        let sql = random.statement();
        let values = [random.parameter()];
        let values = if sql.contains('?') { &values[..] } else { &[] };
        let [a, b] = db.both(|db| db.answer(within, &sql, values));
        assert_eq!(a, b, "SEED={seed} round {round}: {sql} {values:?}");
        answered += usize::from(a.is_ok());
        if within {
            db.run("ROLLBACK");
        }
    }
    assert!(answered > 600, "SEED={seed}: only {answered} statements answered");
}

#[test]
fn a_fold_that_begins_anew_is_one_operation_and_keeps_to_its_heap() {
    let mut db = Db::with_limits(Limits { heap_bytes_max: 256 << 10, ..Limits::default() });
    db.run("CREATE TABLE t (k INTEGER PRIMARY KEY, n INT) WITH (max_ops = 1000)");
    for k in 0..500 {
        db.run(&format!("INSERT INTO t VALUES ({k}, {})", i64::MAX - k));
    }
    let left = |db: &mut Db| db.query("SELECT count(*) FROM t WHERE n + 0 > 0");
    // Five hundred more operations leave the first row in its place.
    for _ in 0..400 {
        assert_eq!(db.state("SELECT sum(n) FROM t"), "22003");
    }
    assert_eq!(left(&mut db), "500");
    db.run("CREATE TABLE wide (k INTEGER PRIMARY KEY, n INT, tag TEXT)");
    for k in 0..2_000 {
        db.run(&format!("INSERT INTO wide VALUES ({k}, {k}, '{k:0200}')"));
    }
    assert!(
        db.execute("SELECT tag, count(*) FROM wide GROUP BY tag", &[])
            .is_err_and(|error| error.state == "53200")
    );
    assert_eq!(db.query("SELECT n % 3, count(*) FROM wide GROUP BY 1"), "0,667;1,667;2,666");
}

#[test]
fn a_fold_stops_when_it_is_told_to() {
    let mut db = Db::with_limits(Limits { operations_max: Some(2_000), ..Limits::default() });
    db.session.set_native(Some(true));
    db.run("CREATE TABLE t (k INTEGER PRIMARY KEY, n INT)");
    for k in 0..1_000 {
        db.run(&format!("INSERT INTO t VALUES ({k}, {k})"));
    }
    assert_eq!(db.query("SELECT sum(n) FROM t"), "499500");
    for k in 1_000..5_000 {
        db.run(&format!("INSERT INTO t VALUES ({k}, {k})"));
    }
    assert_eq!(db.state("SELECT sum(n) FROM t"), "57014");
}
