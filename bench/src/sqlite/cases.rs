//! The table of statements that are measured, and the rows they work on.

use fastrand::Rng;
use store::value::Value;

use super::sides::Side;
use crate::failure::Result;

/// Rows of one page: what an index leads to.
const PAGE: u64 = 100;
/// Bytes of a row's text.
const BODY: usize = 100;

/// What a line should reach.
#[derive(Clone, Copy)]
pub(crate) enum Reach {
    /// At most this share of SQLite's time.
    Ratio(f64),
    /// At most so many nanoseconds.
    Nanoseconds(f64),
}

/// Puts rows back, as the values of a run say.
type Restore = fn(&mut dyn Side, &[Value]) -> Result<()>;

/// One line of the table.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
    /// The values of one run.
    pub(crate) values: fn(&mut Rng, u64) -> Vec<Value>,
    /// How many rows it must answer with or write.
    pub(crate) answers: Option<u64>,
    pub(crate) reach: Reach,
    /// The smallest table it makes sense on.
    pub(crate) rows_min: u64,
    /// Puts back what the run with these values took away.
    pub(crate) restore: Option<Restore>,
    /// Runs between two calls of `restore`, which meanwhile must not meet each other.
    pub(crate) batch: u64,
    /// It reads `u` too.
    pub(crate) joined: bool,
}

/// A line that only reads.
const READ: Case = Case {
    name: "",
    sql: "",
    values: |_, _| Vec::new(),
    answers: Some(1),
    reach: Reach::Ratio(1.0),
    rows_min: 0,
    restore: None,
    batch: 100_000,
    joined: false,
};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "point SELECT",
        sql: "SELECT n FROM t WHERE key = ?1",
        values: |random, rows| vec![key(random.u64(..rows))],
        reach: Reach::Ratio(0.6),
        ..READ
    },
    Case {
        name: "first 10 of 100 by a secondary index",
        sql: "SELECT key, n FROM t WHERE page = ?1 LIMIT 10",
        values: |random, rows| vec![page(random, rows)],
        answers: Some(10),
        reach: Reach::Ratio(0.8),
        ..READ
    },
    Case {
        name: "join of 100 rows",
        sql: "SELECT count(*), sum(u.n) FROM t JOIN u ON u.key = t.key WHERE t.page = ?1",
        values: |random, rows| vec![page(random, rows)],
        reach: Reach::Ratio(0.9),
        joined: true,
        ..READ
    },
    Case {
        name: "IN of 10 keys",
        sql: "SELECT n FROM t WHERE key IN (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        values: |random, rows| {
            let first = random.u64(..rows / 10) * 10;
            (first..first + 10).map(|number| key(number * 7_919 % (rows / 10 * 10))).collect()
        },
        answers: Some(10),
        reach: Reach::Ratio(0.6),
        ..READ
    },
    Case {
        name: "UPSERT, the row is there",
        sql: "INSERT INTO t VALUES (?1, ?2, ?3, ?4) ON CONFLICT (key) DO UPDATE SET n = n + excluded.n",
        values: |random, rows| row(random.u64(..rows)),
        reach: Reach::Ratio(0.4),
        ..READ
    },
    Case {
        name: "UPDATE n = n + 1 by key",
        sql: "UPDATE t SET n = n + 1 WHERE key = ?1",
        values: |random, rows| vec![key(random.u64(..rows))],
        reach: Reach::Ratio(0.45),
        ..READ
    },
    Case {
        name: "REPLACE",
        sql: "REPLACE INTO t VALUES (?1, ?2, ?3, ?4)",
        values: |random, rows| row(random.u64(..rows)),
        reach: Reach::Ratio(0.15),
        ..READ
    },
    Case {
        name: "DELETE of 100 rows by an index",
        sql: "DELETE FROM t WHERE page = ?1",
        values: |random, rows| vec![page(random, rows)],
        answers: Some(PAGE),
        reach: Reach::Ratio(0.5),
        restore: Some(refill),
        batch: 1,
        ..READ
    },
    Case { name: "scan with sum", sql: "SELECT count(*), sum(n) FROM t", rows_min: 100_000, ..READ },
    Case {
        name: "scan with GROUP BY expression",
        sql: "SELECT n % 10, count(*) FROM t GROUP BY n % 10",
        answers: None,
        reach: Reach::Ratio(1.4),
        rows_min: 100_000,
        ..READ
    },
    Case { name: "count(*)", sql: "SELECT count(*) FROM t", reach: Reach::Nanoseconds(10_000.0), ..READ },
    Case {
        name: "indexed max()",
        sql: "SELECT max(page) FROM t",
        reach: Reach::Nanoseconds(10_000.0),
        ..READ
    },
];

/// Makes the tables: `t`, and `u` where something is joined to it.
pub(crate) fn fill(side: &mut dyn Side, rows: u64, joined: bool) -> Result<()> {
    let storage = side.storage();
    let inserts: &[(&str, &'static str)] =
        &[("t", "INSERT INTO t VALUES (?1, ?2, ?3, ?4)"), ("u", "INSERT INTO u VALUES (?1, ?2, ?3, ?4)")];
    let inserts = if joined { inserts } else { &inserts[..1] };
    for (table, _) in inserts {
        side.define(&format!(
            "CREATE TABLE {table} (key TEXT PRIMARY KEY, page INT, body TEXT, n INT){storage}"
        ))?;
    }
    side.define("CREATE INDEX t_page ON t (page)")?;
    let [begin, end] = side.fill().map_or([None; 2], |words| words.map(Some));
    begin.map_or(Ok(()), |begin| side.define(begin))?;
    for number in 0..rows {
        for &(_, insert) in inserts {
            side.run(insert, &row(number))?;
        }
    }
    end.map_or(Ok(()), |end| side.define(end))
}

fn refill(side: &mut dyn Side, values: &[Value]) -> Result<()> {
    let Some(Value::Integer(page)) = values.first() else { return Ok(()) };
    let first = page.unsigned_abs() * PAGE;
    for number in first..first + PAGE {
        side.run("INSERT INTO t VALUES (?1, ?2, ?3, ?4)", &row(number))?;
    }
    Ok(())
}

/// 21 bytes.
fn key(number: u64) -> Value {
    // Neighbours in number are no neighbours in order.
    Value::Text(format!("key:{:017}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8))
}

fn page(random: &mut Rng, rows: u64) -> Value {
    Value::Integer(random.u64(..rows / PAGE).cast_signed())
}

fn row(number: u64) -> Vec<Value> {
    let page = (number / PAGE).cast_signed();
    let body = "x".repeat(BODY);
    vec![key(number), Value::Integer(page), Value::Text(body), Value::Integer(number.cast_signed())]
}
