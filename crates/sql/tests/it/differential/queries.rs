//! Queries: joins, groups, windows, compounds, orders, views, indexes asked for by name.

use super::World;

impl World {
    pub(crate) fn select(&mut self) -> (String, bool) {
        let join = self.rng.u32(0..3) == 0;
        let scope: Vec<usize> = if join { vec![0, 1] } else { vec![self.rng.usize(0..2)] };
        let columns: Vec<String> = scope.iter().flat_map(|&at| self.tables[at].qualified()).collect();
        let from = if join {
            let (left, right) = (self.column(0), self.column(1));
            let kind = ["JOIN", "LEFT JOIN", "FULL JOIN"][self.rng.usize(0..3)];
            let operator = if self.rng.u32(0..5) == 0 { "<" } else { "=" };
            format!("t {kind} u ON {left} {operator} {right}")
        } else {
            self.source(scope[0])
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
                // Texts that are equal by their collation have an order by their bytes.
                let bytes: Vec<String> =
                    order.iter().map(|column| format!("{column} COLLATE BINARY{direction}")).collect();
                let order = order.iter().map(|column| format!("{column}{direction}"));
                let order: Vec<String> = order.chain(bytes).collect();
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
                let known = &self.tables[scope[0]].expressions;
                let order = match self.rng.choice(known).filter(|_| !join) {
                    Some(expression) => expression.clone(),
                    None => self.column_of(&scope),
                };
                let direction = if self.rng.bool() { " DESC" } else { "" };
                (format!("SELECT {order} FROM {from} WHERE {condition} ORDER BY {order}{direction}"), true)
            }
            _ => (format!("SELECT {} FROM {from} WHERE {condition}", columns.join(", ")), false),
        }
    }

    /// A query, and whether its rows have one order.
    pub(crate) fn rare_select(&mut self) -> (String, bool) {
        let at = self.rng.usize(0..2);
        let table = self.tables[at].name.clone();
        let all = self.tables[at].qualified().join(", ");
        let condition = self.condition(&[at], 2);
        match self.rng.u32(0..14) {
            0 => (format!("SELECT count(*) FROM {table}"), false),
            1 => (format!("SELECT count(*) FROM {table} WHERE {}", self.condition(&[at], 0)), false),
            2 => {
                let (column, aggregate) = (self.column(at), self.pick(&["min", "max"]));
                (format!("SELECT {aggregate}({column}) FROM {table}"), false)
            }
            3 => {
                let operator = self.pick(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]);
                let (a, b) = (self.column(0), self.column(1));
                (format!("SELECT {a} FROM t {operator} SELECT {b} FROM u"), false)
            }
            4 => {
                let group = self.column(at);
                let window = self.pick(&["row_number()", "rank()", "count(*)", "dense_rank()"]);
                (
                    format!(
                        "SELECT {all}, {window} OVER (PARTITION BY {group} ORDER BY {all}) FROM {table} WHERE {condition}"
                    ),
                    false,
                )
            }
            5 => {
                let nulls = self.pick(&["NULLS FIRST", "NULLS LAST", "DESC NULLS LAST", "DESC NULLS FIRST"]);
                let column = self.column(at);
                (format!("SELECT {column} FROM {table} WHERE {condition} ORDER BY {column} {nulls}"), true)
            }
            6 => {
                let expression = self.expression(&[at], 2);
                (format!("SELECT {expression} FROM {table} WHERE {condition}"), false)
            }
            7 => {
                let (inner, outer) = (self.condition(&[at], 1), self.column_of(&[at]));
                let name = outer.rsplit('.').next().unwrap_or_default().to_owned();
                (
                    format!(
                        "WITH c AS (SELECT * FROM {table} WHERE {inner}) SELECT c.{name}, count(*) FROM c GROUP BY c.{name}"
                    ),
                    false,
                )
            }
            8 => {
                let (group, column) = (self.expression(&[at], 1), self.column(at));
                let list = format!("{group} AS g, count(*), total(length({column}) IS NULL)");
                (format!("SELECT {list} FROM {table} GROUP BY g HAVING count(*) > 1"), false)
            }
            9 => (
                format!(
                    "SELECT a.*, b.* FROM {table} AS a JOIN {table} AS b ON a.{} = b.{} WHERE a.{} IS NOT NULL",
                    self.bare(at),
                    self.bare(at),
                    self.bare(at)
                ),
                false,
            ),
            10 => {
                let (condition, other) = (self.rare_condition(&[0, 1]), self.condition(&[0, 1], 1));
                (format!("SELECT t.*, u.* FROM t, u WHERE {condition} AND {other}"), false)
            }
            11 | 12 => (self.aggregates(at), false),
            _ => {
                let condition = self.rare_condition(&[at]);
                (format!("SELECT {all} FROM {table} WHERE {condition}"), false)
            }
        }
    }

    /// Aggregates over whole numbers, so small that their sum does not depend on the order of the rows.
    fn aggregates(&mut self, at: usize) -> String {
        let table = self.tables[at].name.clone();
        let (group, of) = (self.whole(at), self.whole(at));
        let function = self.pick(&["sum", "total", "avg", "min", "max", "count"]);
        let mut called = format!("{function}({of} % 100)");
        if function == "avg" {
            // A mean of integers is a decimal number here.
            called = format!("round(CAST({called} AS REAL), 6)");
        }
        let list = format!("count(*), {called}, count({of})");
        let condition = match self.rng.u32(0..3) {
            0 => String::new(),
            1 => format!(" WHERE {of} > {}", self.rng.i32(-3..5)),
            _ => format!(" WHERE NOT ({group} = {of} OR {of} IS NULL)"),
        };
        match self.rng.u32(0..3) {
            0 => format!("SELECT {list} FROM {table}{condition}"),
            1 => format!("SELECT {list}, {group} FROM {table}{condition} GROUP BY {group}"),
            _ => format!("SELECT {group} % 3 AS g, {list} FROM {table}{condition} GROUP BY g"),
        }
    }

    /// A column of whole numbers, if the table has one.
    fn whole(&mut self, at: usize) -> String {
        let table = &self.tables[at];
        let whole: Vec<&str> = table
            .columns
            .iter()
            .filter(|column| column.kind == "INT")
            .map(|column| column.name.as_str())
            .collect();
        self.rng.choice(&whole).map_or_else(|| "7".to_owned(), |name| (*name).to_owned())
    }

    /// A table, as it stands or through its view, by an index or not.
    fn source(&mut self, at: usize) -> String {
        let name = self.tables[at].name.clone();
        if self.tables[at].view.is_some() && self.rng.u32(0..4) == 0 {
            return format!("{name}v AS {name}");
        }
        format!("{name}{}", self.indexed(at))
    }
}
