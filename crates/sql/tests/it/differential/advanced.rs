//! Queries with the clauses that few statements have: filters, frames, recursion, correlation, compounds of several.

use super::World;

/// What a window looks at.
const FRAMES: &[&str] = &[
    "",
    "ROWS UNBOUNDED PRECEDING",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING EXCLUDE GROUP",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE TIES",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW",
];

impl World {
    /// A query, and whether its rows have one order.
    pub(crate) fn advanced_select(&mut self) -> (String, bool) {
        let at = self.rng.usize(0..2);
        match self.rng.u32(0..14) {
            0 => (self.filtered(at), false),
            1 | 2 => (self.windowed(at), false),
            3 => self.compound(),
            4 => (self.with_queries(at), false),
            5 => (self.recursive(at), false),
            6 | 7 => (self.correlated(at), false),
            8 => (self.joined(), false),
            9 => (self.derived(at), false),
            10 => (self.values(at), false),
            11 => self.sorted(at),
            12 => (self.grouped(at), false),
            _ => {
                let (call, other) = (self.call(&[at]), self.call(&[at]));
                let condition = self.condition(&[at], 1);
                (format!("SELECT {call}, {other} FROM {} WHERE {condition}", self.tables[at].name), false)
            }
        }
    }

    /// All columns, and then all by their bytes: rows that are equal in these are the same row.
    fn total_order(&mut self, at: usize) -> String {
        let mut order = self.tables[at].qualified();
        self.rng.shuffle(&mut order);
        let direction = self.pick(&["", " DESC", " NULLS LAST"]);
        let bytes: Vec<String> = order.iter().map(|column| format!("{column} COLLATE BINARY")).collect();
        if let Some(first) = order.first_mut() {
            first.push_str(&direction);
        }
        order.extend(bytes);
        order.join(", ")
    }

    fn filtered(&mut self, at: usize) -> String {
        let (group, of, expression) = (self.column(at), self.column(at), self.expression(&[at], 1));
        let (first, second) = (self.condition(&[at], 1), self.condition(&[at], 0));
        let source = self.tables[at].name.clone();
        format!(
            "SELECT {group}, count(*) FILTER (WHERE {first}), max({of}) FILTER (WHERE {second}), count(DISTINCT {of}), \
             total(length({expression})) FILTER (WHERE {second}), min({expression}) FROM {source} GROUP BY {group}"
        )
    }

    fn windowed(&mut self, at: usize) -> String {
        let (table, order) = (self.tables[at].name.clone(), self.total_order(at));
        let (of, group, condition) = (self.plain_column_of(&[at]), self.column(at), self.condition(&[at], 1));
        let function = match self.rng.u32(0..10) {
            0 => format!("lag({of}, {}, 'none')", self.rng.u32(0..3)),
            1 => format!("lead({of})"),
            2 => format!("first_value({of})"),
            3 => format!("last_value({of})"),
            4 => format!("nth_value({of}, 2)"),
            5 => format!("ntile({})", self.rng.u32(1..4)),
            6 => self.pick(&["percent_rank()", "cume_dist()", "row_number()", "rank()"]),
            7 => format!("count({of}) FILTER (WHERE {})", self.condition(&[at], 0)),
            8 => format!("total(length({of}))"),
            _ => format!("{}({of})", self.pick(&["min", "max", "count"])),
        };
        let frame = FRAMES[self.rng.usize(0..FRAMES.len())];
        let partition = if self.rng.bool() { format!("PARTITION BY {group} ") } else { String::new() };
        let all = self.tables[at].qualified().join(", ");
        let window = format!("({partition}ORDER BY {order} {frame})");
        if self.rng.bool() {
            return format!(
                "SELECT {all}, {function} OVER w, count(*) OVER (w) FROM {table} WHERE {condition} WINDOW w AS ({partition}ORDER BY {order})"
            );
        }
        format!("SELECT {all}, {function} OVER {window} FROM {table} WHERE {condition}")
    }

    fn compound(&mut self) -> (String, bool) {
        let mut sql = String::new();
        for part in 0..self.rng.usize(2..4) {
            let at = self.rng.usize(0..2);
            let (a, b) = (self.column(at), self.column(at));
            let condition = self.condition(&[at], 1);
            if part > 0 {
                sql.push_str(&self.pick(&[" UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT "]));
            }
            let select = format!("SELECT {a}, {b} FROM {} WHERE {condition}", self.tables[at].name);
            sql.push_str(&select);
        }
        if self.rng.bool() {
            return (format!("SELECT count(*) FROM ({sql})"), false);
        }
        (format!("{sql} ORDER BY 1, 2"), true)
    }

    fn with_queries(&mut self, at: usize) -> String {
        let table = self.tables[at].name.clone();
        let other = self.rng.usize(0..2);
        let (a, b, condition) = (self.column(at), self.column(at), self.condition(&[at], 1));
        let (x, name) = (self.column(other), self.tables[other].name.clone());
        let hint = self.pick(&["", "MATERIALIZED ", "NOT MATERIALIZED "]);
        format!(
            "WITH c (p, q) AS {hint}(SELECT {a}, {b} FROM {table} WHERE {condition}), d AS (SELECT p, count(*) AS n FROM c GROUP BY p) \
             SELECT d.n, c.q, {x} FROM c JOIN d ON d.p IS c.p LEFT JOIN {name} ON {x} = c.q"
        )
    }

    fn recursive(&mut self, at: usize) -> String {
        let (a, b, table) = (self.column(at), self.column(at), self.tables[at].name.clone());
        // Which of several equal texts goes on is up to the implementation.
        if self.folds || self.rng.bool() {
            return format!(
                "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5) SELECT n, {b} FROM c LEFT JOIN {table} ON {a} = n"
            );
        }
        format!(
            "WITH RECURSIVE c (v, depth) AS (SELECT {a}, 0 FROM {table} UNION SELECT {b}, depth + 1 FROM c JOIN {table} ON {a} = c.v WHERE depth < 3) SELECT v, depth FROM c"
        )
    }

    fn correlated(&mut self, at: usize) -> String {
        let table = self.tables[at].name.clone();
        let other = self.rng.usize(0..2);
        let inner = self.tables[other].name.clone();
        let (x, y) = (self.bare(other), self.bare(other));
        let (a, b, operator) = (self.column(at), self.column(at), self.operator());
        let aggregate = self.pick(if self.folds { &["count"] } else { &["count", "min", "max"] });
        match self.rng.u32(0..7) {
            0 => format!(
                "SELECT {a}, (SELECT {aggregate}(i.{x}) FROM {inner} AS i WHERE i.{y} {operator} {b}) FROM {table}"
            ),
            1 => format!(
                "SELECT {a} FROM {table} WHERE NOT EXISTS (SELECT 1 FROM {inner} AS i WHERE i.{x} {operator} {a} AND i.{y} IS {b})"
            ),
            2 => format!(
                "SELECT {a} FROM {table} WHERE {a} IN (SELECT i.{x} FROM {inner} AS i WHERE i.{y} {operator} {b})"
            ),
            3 => format!(
                "SELECT {a} FROM {table} WHERE {a} {operator} (SELECT i.{x} FROM {inner} AS i WHERE i.{y} IS NOT {b} ORDER BY i.{x}, i.{x} COLLATE BINARY LIMIT 1)"
            ),
            4 => format!(
                "SELECT {a} FROM {table} WHERE {a} NOT IN (SELECT i.{x} FROM {inner} AS i WHERE i.{y} = {b})"
            ),
            5 => format!(
                "SELECT {a}, EXISTS (SELECT 1 FROM {inner} AS i WHERE i.{x} = {a} LIMIT 1 OFFSET {}) + 0 FROM {table}",
                self.rng.u32(0..2)
            ),
            _ => format!(
                "SELECT {a} FROM {table} WHERE ({a}, {b}) = (SELECT i.{x}, i.{y} FROM {inner} AS i ORDER BY i.{x}, i.{y}, i.{x} COLLATE BINARY, i.{y} COLLATE BINARY LIMIT 1)"
            ),
        }
    }

    fn joined(&mut self) -> String {
        let (left, right, third) = (self.column(0), self.column(1), self.bare(0));
        let first = self.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"]);
        let second = self.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN"]);
        let on = if first == "CROSS JOIN" && self.rng.bool() {
            String::new()
        } else {
            format!(" ON {left} {} {right} AND {}", self.pick(&["=", "IS", "<="]), self.condition(&[0, 1], 0))
        };
        let (expression, condition) = (self.expression(&[0, 1], 1), self.condition(&[0, 1], 1));
        format!(
            "SELECT {expression}, x.{third}, {left} FROM t {first} u{on} {second} t AS x ON x.{third} = {right} WHERE {condition}"
        )
    }

    fn derived(&mut self, at: usize) -> String {
        let (a, b, condition) = (self.column(at), self.column(at), self.condition(&[at], 1));
        let table = self.tables[at].name.clone();
        let other = self.rng.usize(0..2);
        let (x, name) = (self.column(other), self.tables[other].name.clone());
        let distinct = self.pick(&["", "DISTINCT "]);
        match self.rng.u32(0..3) {
            0 => format!(
                "SELECT s.p, s.n, {x} FROM (SELECT {a} AS p, count(*) AS n FROM {table} GROUP BY {a}) AS s JOIN {name} ON s.p = {x}"
            ),
            1 => format!(
                "SELECT count(*), count(s.q) FROM (SELECT {distinct}{a} AS p, {b} AS q FROM {table} WHERE {condition}) AS s WHERE s.p {} {}",
                self.operator(),
                self.any_value()
            ),
            _ => format!(
                "SELECT s.p, j.value FROM (SELECT {a} AS p FROM {table} WHERE {condition}) AS s, json_each('[1, \"a\", null, 2.5]') AS j WHERE j.value IS NOT s.p"
            ),
        }
    }

    fn values(&mut self, at: usize) -> String {
        let (a, b, table) = (self.column(at), self.column(at), self.tables[at].name.clone());
        let list: Vec<String> =
            (0..3).map(|_| format!("({}, {})", self.listed_value(), self.listed_value())).collect();
        let list = list.join(", ");
        match self.rng.u32(0..4) {
            0 => format!("SELECT {a}, v.column2 FROM (VALUES {list}) AS v JOIN {table} ON v.column1 = {a}"),
            1 => format!("SELECT {a}, {b} FROM {table} WHERE ({a}, {b}) IN (VALUES {list})"),
            2 => format!("VALUES {list} UNION ALL SELECT {a}, {b} FROM {table}"),
            _ => {
                let (x, y) = (self.any_value(), self.any_value());
                format!("SELECT {a} FROM {table} WHERE {a} IN (VALUES ({x}), ({y})) OR {b} NOT IN ({x}, {y})")
            }
        }
    }

    fn sorted(&mut self, at: usize) -> (String, bool) {
        let (order, table, condition) =
            (self.total_order(at), self.tables[at].name.clone(), self.condition(&[at], 1));
        let (first, all) = (self.plain_column_of(&[at]), self.tables[at].qualified().join(", "));
        let nulls = self.pick(&["", " DESC", " NULLS LAST", " DESC NULLS FIRST"]);
        let (limit, offset) = (self.rng.i32(-1..5), self.rng.u32(0..3));
        match self.rng.u32(0..3) {
            0 => (
                format!(
                    "SELECT {all} FROM {table} WHERE {condition} ORDER BY {first}{nulls}, {order} LIMIT {limit} OFFSET {offset}"
                ),
                true,
            ),
            1 => (
                format!(
                    "SELECT {first} AS a, typeof({first}) AS b FROM {table} WHERE {condition} ORDER BY b DESC, a{nulls}"
                ),
                true,
            ),
            _ => (
                format!(
                    "SELECT count(*) FROM (SELECT {all} FROM {table} WHERE {condition} ORDER BY {order} LIMIT {offset}, {limit})"
                ),
                false,
            ),
        }
    }

    fn grouped(&mut self, at: usize) -> String {
        let (a, b, table) = (self.column(at), self.plain_column_of(&[at]), self.tables[at].name.clone());
        let (call, condition) = (self.call(&[at]), self.condition(&[at], 1));
        let word = self.wordy(at);
        match self.rng.u32(0..6) {
            0 => format!("SELECT {call} AS g, count(*) FROM {table} GROUP BY 1"),
            1 => format!(
                "SELECT {a}, {b}, count(*) FROM {table} WHERE {condition} GROUP BY {a}, {b} HAVING count({b}) < 2 OR {a} IS NULL"
            ),
            2 => format!(
                "SELECT count(*), count(DISTINCT {call}), max({a}) IS NULL FROM {table} HAVING count(*) > 1"
            ),
            3 => format!(
                "SELECT {a}, group_concat({word}, '-' ORDER BY {word} COLLATE BINARY) FROM {table} GROUP BY {a}"
            ),
            4 => format!(
                "SELECT {a}, json_group_array({word} ORDER BY {word} COLLATE BINARY), count(DISTINCT typeof({b})) FROM {table} GROUP BY {a}"
            ),
            _ => format!("SELECT DISTINCT {call} AS c, {a} FROM {table} WHERE {condition} GROUP BY c, {a}"),
        }
    }
}
