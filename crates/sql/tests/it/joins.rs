//! Joins of two tables mean to the native executor what they mean to SQLite: each statement runs by both, and on plain
//! SQLite's own tables.

use crate::common::native::Native;
use crate::common::{Answer, Db, seed};
use sql::Limits;
use store::value::Value;

const TABLES: &str =
    "CREATE TABLE t (k TEXT PRIMARY KEY, page INT, n INT, ref INT, name TEXT, fold TEXT COLLATE NOCASE);
     CREATE INDEX t_page ON t (page, n);
     CREATE INDEX t_name ON t (name);
     CREATE TABLE u (id INTEGER PRIMARY KEY, m INT, title TEXT, big INT, w REAL);
     CREATE INDEX u_title ON u (title, m DESC);
     CREATE TABLE v (a INT, b TEXT, c BLOB, d INT, PRIMARY KEY (a, b))";

/// What a transaction does before it joins.
const OWN: &[&str] = &[
    "BEGIN",
    "UPDATE t SET ref = 7, page = 2 WHERE k = '20'",
    "DELETE FROM u WHERE id IN (3, 4, 5)",
    "INSERT INTO t VALUES ('own', 2, 1, -7, 'b', NULL)",
    "INSERT INTO u VALUES (-7, 1, 'b', 3, 1)",
];

#[test]
fn equal_columns_lead_from_table_to_table() {
    let mut db = Db::new();
    db.run(TABLES);
    db.run("CREATE VIEW seen AS SELECT * FROM t;\nINSERT INTO t VALUES ('a', 1, 2, 3, 'x', 'x')");
    db.run("INSERT INTO u VALUES (1, 1, 'x', 1, 1);\nINSERT INTO v VALUES (3, 'x', NULL, 4)");
    for sql in [
        "SELECT count(*), sum(u.m) FROM t JOIN u ON u.id = t.ref WHERE t.page = 1",
        "SELECT t.name, title FROM t, u WHERE id = ref AND page = 1",
        "SELECT * FROM t AS a INNER JOIN u AS b ON (a.ref = b.id) WHERE (a.k = 'a')",
        "SELECT b.*, a.k FROM t AS a LEFT JOIN u AS b ON a.ref = b.id WHERE a.page = 1 AND a.n = 2",
        "SELECT a.k, b.m FROM t AS a LEFT OUTER JOIN u AS b ON b.title = a.name AND b.m = 3 WHERE a.page = 1",
        "SELECT a.k, b.k FROM t AS a JOIN t AS b ON b.name = a.k WHERE a.page = 1",
        "SELECT k, c FROM v CROSS JOIN t ON a = t.ref AND name = b WHERE page = 1",
        "SELECT k, c FROM t JOIN v ON a = ref AND b = 'x' WHERE page = 1",
        "SELECT title, count(*), max(big) FROM t JOIN u ON title = name WHERE page = 1 AND big > 0 GROUP BY title",
    ] {
        assert!(db.is_native(sql), "{sql}");
    }
    for sql in [
        // Nothing leads to the first rows, or from there to the others.
        "SELECT k, m FROM t JOIN u ON id = ref",
        "SELECT k, m FROM t JOIN u ON id = ref WHERE ref > 1",
        "SELECT k, m FROM t JOIN u ON m = ref WHERE page = 1",
        "SELECT k, d FROM t JOIN v ON a = ref WHERE page = 1 AND d = 1",
        "SELECT k, m FROM t JOIN u WHERE page = 1",
        // What is compared is of two kinds, or not by its bytes.
        "SELECT k, m FROM t JOIN u ON title = ref WHERE page = 1",
        "SELECT k, m FROM t JOIN u ON title = fold WHERE page = 1",
        // More than columns of all rows.
        "SELECT k, m + 1 FROM t JOIN u ON id = ref WHERE page = 1",
        "SELECT DISTINCT k, m FROM t JOIN u ON id = ref WHERE page = 1",
        "SELECT k, m FROM t JOIN u ON id = ref WHERE page = 1 ORDER BY m",
        "SELECT k, m FROM t JOIN u ON id = ref WHERE page = 1 AND m > 3",
        "SELECT k, _ttl FROM t LEFT JOIN u ON id = ref WHERE page = 1",
        // Other tables and other joins.
        "SELECT k, m FROM t JOIN u USING (n) WHERE page = 1",
        "SELECT k, m FROM t NATURAL JOIN u WHERE page = 1",
        "SELECT k, m FROM t RIGHT JOIN u ON id = ref WHERE page = 1",
        "SELECT k, m FROM t FULL JOIN u ON id = ref WHERE page = 1",
        "SELECT k, m FROM seen JOIN u ON id = ref WHERE page = 1",
        "SELECT k, m FROM t INDEXED BY t_page JOIN u ON id = ref WHERE page = 1",
        "SELECT k, m FROM t JOIN u ON id = ref JOIN v ON a = id WHERE page = 1",
        // Conditions that a left join puts elsewhere.
        "SELECT k, m FROM t LEFT JOIN u ON id = ref AND page = 1 WHERE n = 2 AND page = 1",
        "SELECT k, m FROM t LEFT JOIN u ON id = ref WHERE page = 1 AND title = 'x'",
        "SELECT k, m FROM t LEFT JOIN u ON id = ref WHERE id = 3",
        "SELECT count(*) FROM t LEFT JOIN u ON id = ref AND big > 3 WHERE page = 1",
        "SELECT k, m FROM t LEFT JOIN u WHERE id = ref AND page = 1",
    ] {
        let is_statement = db.execute(sql, &[]).is_ok();
        assert!(!is_statement || !db.is_native(sql), "{sql}");
    }
    // Where the other end has fewer rows than the conditions leave, the way begins there.
    let sql = "SELECT a.k, b.m FROM t AS a JOIN u AS b ON b.title = a.name WHERE a.page = 1";
    assert!(db.is_native(sql));
    db.run("INSERT INTO t VALUES ('b', 1, 2, 3, 'x', 'x')");
    assert!(!db.is_native(sql));
    assert_eq!(db.query(&format!("{sql} AND a.n = 2 ORDER BY 1")), "a,1;b,1");
}

/// Two tables that are joined.
struct Pair {
    tables: (&'static str, &'static str),
    link: &'static str,
    condition: &'static str,
    /// Columns that may be asked for, and whole numbers among those of both.
    columns: Vec<&'static str>,
    numbers: Vec<&'static str>,
}

/// Joins of the form, in all its spellings.
struct Statements(fastrand::Rng);

impl Statements {
    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.0.usize(..list.len())]
    }

    /// The tables `a` and `b`.
    fn pair(&mut self) -> Pair {
        let conditions = ["a.page = ?1", "?1 = a.page AND a.n = ?2", "a.k = ?1", "a.name = ?1", "a.page = 2"];
        let condition = conditions[self.0.usize(..conditions.len())];
        let (mut columns, mut numbers) =
            (vec!["a.k", "a.page", "a.n", "a.name", "a.fold", "ref"], vec!["a.page", "a.n", "a.ref"]);
        let u = (["b.id", "b.m", "title", "b.w"], ["b.id", "m", "b.big"]);
        let (tables, link) = match self.0.u32(..6) {
            0 | 1 => (("t AS a", "u AS b"), "b.id = a.ref"),
            2 => (("t a", "u AS b"), "a.name = title"),
            3 => (("t AS a", "u AS b"), "b.title = a.name AND b.m = ?3"),
            4 => (("t AS a", "v AS b"), "b.a = a.ref AND b.b = a.name"),
            _ => (("t AS a", "t AS b"), "b.k = a.name"),
        };
        match tables.1 {
            "u AS b" => {
                columns.extend(u.0);
                numbers.extend(u.1);
            }
            "v AS b" => {
                columns.extend(["b.a", "b", "c", "d"]);
                numbers.extend(["b.a", "d"]);
            }
            _ => {
                columns.retain(|column| *column != "ref");
                columns.extend(["b.k", "b.n"]);
                numbers.extend(["b.page", "b.ref"]);
            }
        }
        Pair { tables, link, condition, columns, numbers }
    }

    fn statement(&mut self) -> String {
        let Pair { tables: (a, b), link, mut condition, columns, numbers } = self.pair();
        let from = match self.0.u32(..5) {
            0 => format!("{a}, {b} WHERE {link} AND "),
            1 => format!("{b} JOIN {a} ON {link} WHERE "),
            2 | 3 => format!("{a} LEFT JOIN {b} ON {link} WHERE "),
            _ => format!("{a} JOIN {b} ON ({link}) WHERE "),
        };
        let wider;
        let (list, group) = if self.0.bool() {
            let count = self.0.usize(1..4);
            let list: Vec<&str> = (0..count).map(|_| self.pick(&columns)).collect();
            let star = self.0.u32(..6);
            (if star == 0 { "*".to_owned() } else { list.join(", ") }, String::new())
        } else {
            let count = self.0.usize(1..4);
            let aggregate = |own: &mut Self| {
                let number = own.pick(&numbers);
                let function = own.pick(&["sum", "total", "avg", "min", "max", "count"]);
                format!("{function}({number})")
            };
            let mut list: Vec<String> = (0..count).map(|_| aggregate(self)).collect();
            list.push("count(*)".to_owned());
            if self.0.bool() {
                let test = self.pick(&["> 1", "IS NULL", "NOT BETWEEN 1 AND ?3", "% 2 = 0"]);
                wider = format!("{condition} AND {} {test}", self.pick(&numbers));
                condition = &wider;
            }
            let key = if self.0.bool() { self.pick(&numbers) } else { "a.name" };
            if self.0.bool() {
                list.push(key.to_owned());
                (list.join(", "), format!(" GROUP BY {key}"))
            } else {
                (list.join(", "), String::new())
            }
        };
        format!("SELECT {list} FROM {from}{condition}{group}")
    }

    fn value(&mut self) -> Value {
        match self.0.u32(..12) {
            0 => Value::Null,
            1 => Value::Real(f64::from(self.0.i8(0..6)) / 2.0),
            2 => Value::from("2"),
            3 => Value::Blob(vec![b'0' + self.0.u8(..6)]),
            4 | 5 => Value::from(self.pick(&["a", "b", "7", "x"])),
            _ => Value::Integer(self.0.i64(0..5)),
        }
    }

    fn text(&mut self) -> &'static str {
        let texts = ["NULL", "'a'", "'A'", "'b'", "'7'", "'8'", "'12'", "''", "x'ff'"];
        texts[self.0.usize(..texts.len())]
    }
}

fn fill(db: &mut Db, random: &mut Statements) {
    db.run(TABLES);
    for number in 0..60 {
        let (page, n, reference) = (random.0.u8(0..5), random.0.u8(0..4), random.0.i8(-2..40));
        let (name, fold) = (random.text(), random.pick(&["'a'", "'A'", "NULL"]));
        let insert = format!(
            "INSERT INTO t VALUES ('{number}', nullif({page}, 0), nullif({n}, 0), nullif({reference}, -1), {name}, {fold})"
        );
        // A column of texts may refuse bytes.
        if db.execute(&insert, &[]).is_err() {
            db.run(&insert.replace("x'ff'", "'ff'"));
        }
        // None below zero: then it does not hang on the order of the rows whether a sum overflows.
        let big = random.pick(&["1", "9223372036854775807", "7", "NULL"]);
        let title = random.text().replace("x'ff'", "'ff'");
        db.run(&format!(
            "INSERT INTO u VALUES ({number} / 2 * 2 + {number} % 2, {n}, {title}, {big}, {n} / 2.0)"
        ));
        let b = random.text().replace("NULL", "'z'").replace("x'ff'", "'ff'");
        db.run(&format!("INSERT INTO v VALUES ({number} % 20, {b}, x'0{n}', {n}) ON CONFLICT DO NOTHING"));
    }
}

/// An answer in the order of its rows' text.
fn answer(db: &mut Db, within: bool, sql: &str, values: &[Value]) -> Answer {
    let mut answer = db.answer(within, sql, values);
    if let Ok((.., rows)) = &mut answer {
        rows.rows.sort_by_cached_key(|row| format!("{row:?}"));
    }
    answer
}

/// A value as it is written in a statement.
fn literal(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("'{text}'"),
        Value::Blob(bytes) => {
            let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("x'{}'", digits.concat())
        }
        other => crate::common::show(other),
    }
}

/// Tables of SQLite's own with the same rows.
fn mirrored(db: &mut Db) -> Native {
    let native = Native::new();
    for sql in TABLES.split(";\n") {
        native.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    for table in ["t", "u", "v"] {
        let all = format!("SELECT * FROM {table}");
        let (_, rows) = db.execute(&all, &[]).unwrap_or_else(|error| panic!("{all}: {error}"));
        for row in &rows.rows {
            let values: Vec<String> = row.iter().map(literal).collect();
            let sql = format!("INSERT INTO {table} VALUES ({})", values.join(", "));
            native.query(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }
    native
}

/// Rows as text in an order of their own. A float that sums up many numbers has its last digits from their order.
fn comparable(rows: &[Vec<Value>]) -> Vec<String> {
    // A mean of integers is a decimal number here, and a float to SQLite.
    let decimal = |text: &str| text.parse::<f64>().ok().filter(|_| text.contains('.') || text.len() > 16);
    let shown = |value: &Value| match value {
        Value::Real(real) => format!("{real:.9e}"),
        Value::Text(text) if let Some(number) = decimal(text) => format!("{number:.9e}"),
        other => format!("{other:?}"),
    };
    let mut rows: Vec<String> =
        rows.iter().map(|row| row.iter().map(shown).collect::<Vec<_>>().join(",")).collect();
    rows.sort();
    rows
}

#[test]
fn random_joins_answer_like_sqlite() {
    let seed = seed();
    let mut random = Statements(fastrand::Rng::with_seed(seed));
    let mut db = Db::new();
    fill(&mut db, &mut random);
    // Rows of one commit, some of which are over and not cleared away.
    db.run("UPDATE t SET page = 2 WHERE n = 2;\nUPDATE t SET _ttl = 10 WHERE n = 1;\nUPDATE u SET _ttl = 10 WHERE m = 1");
    db.clock.advance(std::time::Duration::from_secs(11));
    let native = mirrored(&mut db);
    let (mut answered, mut rows) = (0, 0);
    for round in 0..600 {
        let within = random.0.u32(..3) == 0;
        for sql in OWN.iter().filter(|_| within) {
            db.run(sql);
            native.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        let text = random.statement();
        let count = (1..=3).filter(|at| text.contains(&format!("?{at}"))).max().unwrap_or(0);
        let values: Vec<Value> = (0..count).map(|_| random.value()).collect();
        let [a, b] = db.both(|db| answer(db, within, &text, &values));
        assert_eq!(a, b, "SEED={seed} round {round}: {text} {values:?}");
        let mut sql = text.clone();
        // A text that is no number is not compared with one, as in PostgreSQL; to SQLite it is greater.
        let refused = a.as_ref().is_err_and(|state| *state == "22P02");
        for (at, value) in values.iter().enumerate() {
            sql = sql.replace(&format!("?{}", at + 1), &literal(value));
        }
        let plain = native.query(&sql).ok().map(|rows| comparable(&rows));
        let ours = a.as_ref().ok().map(|(.., rows)| comparable(&rows.rows));
        assert!(refused || ours == plain, "SEED={seed} round {round}: {sql}\n  {ours:?}\n  {plain:?}");
        answered += usize::from(a.is_ok());
        rows += a.map_or(0, |(.., rows)| rows.rows.len());
        if within {
            db.run("ROLLBACK");
            native.query("ROLLBACK").unwrap_or_else(|error| panic!("ROLLBACK: {error}"));
        }
    }
    assert!(answered > 400 && rows > 400, "SEED={seed}: {answered} statements answered, {rows} rows");
}

#[test]
fn a_join_stops_when_it_is_told_to() {
    let mut db = Db::with_limits(Limits { operations_max: Some(2_000), ..Limits::default() });
    db.run("CREATE TABLE a (k INTEGER PRIMARY KEY, page INT);\nCREATE INDEX a_page ON a (page)");
    db.run("CREATE TABLE b (k INTEGER PRIMARY KEY, page INT);\nCREATE INDEX b_page ON b (page)");
    for k in 0..100 {
        db.run(&format!("INSERT INTO a VALUES ({k}, 1);\nINSERT INTO b VALUES ({k}, 1)"));
    }
    let sql = "SELECT count(*) FROM a JOIN b ON b.page = a.page WHERE a.page = 1";
    assert_eq!(db.query("SELECT count(*) FROM a JOIN b ON b.k = a.k WHERE a.page = 1"), "100");
    assert_eq!(db.state(sql), "57014");
}
