//! Statements with the rarer clauses: upserts of several targets, row values, windows, compounds, `WITH` before
//! writes, `LIMIT` on writes.

use super::World;
use super::schema::{Column, Table};
use super::values::text_of;

/// A statement, and how SQLite's own build has to be told the same, where it is not the same text.
pub(crate) struct Change {
    pub(crate) ours: String,
    pub(crate) native: String,
}

impl From<String> for Change {
    fn from(sql: String) -> Self {
        Self { native: sql.clone(), ours: sql }
    }
}

impl World {
    pub(crate) fn pick(&mut self, texts: &[&str]) -> String {
        texts[self.rng.usize(0..texts.len())].to_owned()
    }

    /// An expression over the columns of some tables, of any type.
    pub(crate) fn expression(&mut self, scope: &[usize], depth: u32) -> String {
        let column = self.plain_column_of(scope);
        if depth == 0 {
            return if self.rng.u32(0..3) == 0 { self.listed_value() } else { column };
        }
        let (left, right) = (self.expression(scope, depth - 1), self.expression(scope, depth - 1));
        match self.rng.u32(0..16) {
            0 => format!("coalesce({}, {})", text_of(&left), text_of(&right)),
            1 => format!("CASE WHEN {} THEN {left} ELSE {right} END", self.condition(scope, 1)),
            2 => format!("typeof({left})"),
            3 => format!("length({left})"),
            4 => format!("({} || {})", self.joinable(scope, &left), self.joinable(scope, &right)),
            5 => {
                // A division by zero is an error here, and so is the rest of a float.
                let sign = self.pick(&["+", "-", "*", "/", "%", "&", "|"]);
                let side = |operand: &str| match sign.as_str() {
                    "%" => self.whole_of(scope, operand),
                    _ => self.number_of(scope, operand),
                };
                let (left, right) = (side(&left), side(&right));
                let divides = matches!(sign.as_str(), "/" | "%");
                let right = if divides { format!("nullif({right}, 0)") } else { right };
                format!("({left} {sign} {right})")
            }
            // A truth is one here, as in PostgreSQL: a word in a text, and no match for other words. The sum makes it
            // the number that it is on SQLite.
            6 => format!("(({left} IS {right}) + 0)"),
            // Of what is no number, and for integers and texts, a cast is PostgreSQL's.
            7 if self.rng.bool() => format!("CAST({} AS REAL)", self.number_of(scope, &left)),
            7 => format!("CAST({left} AS BLOB)"),
            8 => format!("(({left} COLLATE NOCASE = {right}) + 0)"),
            9 => format!("iif({left}, {right}, {column})"),
            10 => format!("nullif({}, {})", text_of(&left), text_of(&right)),
            11 => format!("{}({left}, {right})", self.pick(&["min", "max"])),
            12 => {
                let other = self.rng.usize(0..2);
                let inner = self.column(other);
                let aggregates = if self.folds { &["count"][..] } else { &["count", "min", "max"] };
                let aggregate = self.pick(aggregates);
                let name = self.tables[other].name.clone();
                let condition = self.condition(&[other], 0);
                format!("(SELECT {aggregate}({inner}) FROM {name} WHERE {condition})")
            }
            13 => format!("hex({left})"),
            14 => format!("upper(substr(hex({left}), 1, 2))"),
            _ => left,
        }
    }

    /// An operand of arithmetic: what is no number is zero to SQLite, and an error here where the other side is a
    /// float. Of that it is the length.
    pub(crate) fn number_of(&self, scope: &[usize], operand: &str) -> String {
        let number = operand.parse::<f64>().is_ok()
            || operand.starts_with("CAST(") && operand.ends_with(" AS REAL)")
            || self.is_of(scope, operand, &["INT", "REAL"]);
        if number { operand.to_owned() } else { format!("coalesce(length({operand}), 0)") }
    }

    /// An operand of `||`: floats are joined as PostgreSQL writes them. Of what may be one it is the type.
    fn joinable(&self, scope: &[usize], operand: &str) -> String {
        let is_written = operand.starts_with(['\'', 'x']) || operand.parse::<i64>().is_ok();
        let is_worded = is_written || self.is_of(scope, operand, &["INT", "TEXT", "BLOB", "ANY"]);
        if is_worded { operand.to_owned() } else { format!("typeof({operand})") }
    }

    /// The same of whole numbers.
    pub(crate) fn whole_of(&self, scope: &[usize], operand: &str) -> String {
        let whole = operand.parse::<i64>().is_ok() || self.is_of(scope, operand, &["INT"]);
        if whole { operand.to_owned() } else { format!("coalesce(length({operand}), 0)") }
    }

    /// Whether an operand is a column of one of these types.
    fn is_of(&self, scope: &[usize], operand: &str, kinds: &[&str]) -> bool {
        let fits = |column: &Column| kinds.contains(&column.kind) && column.generated.is_none();
        let of_table = |table: &Table| {
            let names = table.qualified();
            table.columns.iter().zip(&names).any(|(column, name)| name == operand && fits(column))
        };
        scope.iter().any(|&at| of_table(&self.tables[at]))
    }

    /// A column whose values keep their type: a key column of type ANY keeps a float without fraction as an integer.
    pub(crate) fn plain_column_of(&mut self, scope: &[usize]) -> String {
        let at = scope[self.rng.usize(0..scope.len())];
        let table = &self.tables[at];
        let plain = (0..table.columns.len())
            .filter(|column| table.columns[*column].kind != "ANY" || !table.key.contains(column));
        let plain: Vec<usize> = plain.collect();
        match self.rng.choice(&plain) {
            Some(&column) => self.tables[at].qualified()[column].clone(),
            None => self.listed_value(),
        }
    }

    /// An expression for `RETURNING`. Not of the table itself: what a query there sees of a statement that is under
    /// way is not defined.
    fn returned(&mut self, at: usize) -> String {
        loop {
            let expression = self.expression(&[at], 2);
            if !expression.contains("SELECT") {
                return expression;
            }
        }
    }

    /// A condition that only these clauses have.
    pub(crate) fn rare_condition(&mut self, scope: &[usize]) -> String {
        let (a, b) = (self.column_of(scope), self.column_of(scope));
        let other = self.rng.usize(0..2);
        let name = self.tables[other].name.clone();
        match self.rng.u32(0..8) {
            0 => format!("({a}, {b}) = ({}, {})", self.any_value(), self.any_value()),
            1 => format!(
                "({a}, {b}) {} ({}, {})",
                self.pick(&["<", "<=", ">", ">="]),
                self.any_value(),
                self.any_value()
            ),
            2 => {
                let (x, y) = (self.column(other), self.column(other));
                // SQLite's own tables lose sight of NULLs in an index that they look at for this (docs/dialect.md),
                // which they do not where the query has a condition.
                format!("({a}, {b}) IN (SELECT {x}, {y} FROM {name} WHERE 1)")
            }
            3 => {
                // The inner table has another name, so that the condition may speak of both.
                let inner = self.tables[other].columns[0].name.clone();
                format!("EXISTS (SELECT 1 FROM {name} AS i WHERE i.{inner} = {a})")
            }
            4 => format!("{a} COLLATE NOCASE {} {}", self.pick(&["=", "<", ">", "IS"]), self.any_value()),
            5 => format!("{a} NOT IN ({}, {})", self.any_value(), self.any_value()),
            6 => format!("{a} IS NOT DISTINCT FROM {}", self.any_value()),
            _ => format!("{} {} {}", self.expression(scope, 1), self.operator(), self.any_value()),
        }
    }

    pub(crate) fn bare(&mut self, at: usize) -> String {
        let columns = &self.tables[at].columns;
        columns[self.rng.usize(0..columns.len())].name.clone()
    }

    /// A statement that writes.
    pub(crate) fn rare_change(&mut self, at: usize) -> Change {
        let name = self.tables[at].name.clone();
        match self.rng.u32(0..10) {
            0 | 1 => self.limited(at),
            2 => self.upsert_of_several(at).into(),
            3 => self.update_from(at).into(),
            4 => {
                let condition = self.condition(&[at], 1);
                format!("WITH c AS (SELECT * FROM {name} WHERE {condition}) DELETE FROM {name} WHERE EXISTS (SELECT 1 FROM c WHERE c.{0} IS {name}.{0}) RETURNING *", self.bare(at)).into()
            }
            5 => {
                let (condition, expression) = (self.rare_condition(&[at]), self.returned(at));
                format!("DELETE FROM {name} WHERE {condition} RETURNING {expression}").into()
            }
            6 => self.pair_update(at).into(),
            7 => {
                let or = self.pick(&["ABORT", "FAIL", "REPLACE", "IGNORE"]);
                let expression = self.returned(at);
                format!("INSERT OR {or} INTO {name} VALUES {} RETURNING {expression}", self.row(at)).into()
            }
            8 => self.keyed_update(at).into(),
            _ => {
                let columns = self.tables[at].names(&self.tables[at].assigned());
                format!(
                    "INSERT INTO {name} SELECT {columns} FROM {name} WHERE {} ON CONFLICT DO NOTHING",
                    self.condition(&[at], 1)
                )
                .into()
            }
        }
    }

    /// `ORDER BY ... LIMIT` on a write; SQLite's own build lacks it.
    fn limited(&mut self, at: usize) -> Change {
        let name = self.tables[at].name.clone();
        let mut order = self.tables[at].qualified();
        self.rng.shuffle(&mut order);
        // Texts that are equal by their collation have an order by their bytes.
        let bytes: Vec<String> = order.iter().map(|column| format!("{column} COLLATE BINARY")).collect();
        order.extend(bytes);
        let (order, limit) = (order.join(", "), self.rng.u32(0..4));
        let condition = self.condition(&[at], 1);
        let rows = format!("WHERE {condition} ORDER BY {order} LIMIT {limit}");
        let these = format!("WHERE rowid IN (SELECT rowid FROM {name} {rows})");
        // Of rows that are the same in all columns, any may be taken.
        if self.rng.bool() {
            return Change {
                ours: format!("DELETE FROM {name} {rows}"),
                native: format!("DELETE FROM {name} {these}"),
            };
        }
        match self.free_column(at) {
            Some(column) => {
                let value = self.value_for(&column);
                let set = format!("UPDATE {name} SET {} = {value}", column.name);
                Change { ours: format!("{set} {rows}"), native: format!("{set} {these}") }
            }
            None => Change {
                ours: format!("DELETE FROM {name} {rows}"),
                native: format!("DELETE FROM {name} {these}"),
            },
        }
    }

    fn free_column(&mut self, at: usize) -> Option<super::Column> {
        let table = &self.tables[at];
        let free: Vec<usize> = (0..table.columns.len()).filter(|&column| table.is_free(column)).collect();
        self.rng.choice(&free).map(|&column| self.tables[at].columns[column].clone())
    }

    /// A clause for each constraint, and one for whatever is left.
    fn upsert_of_several(&mut self, at: usize) -> String {
        let (name, row) = (self.tables[at].name.clone(), self.row(at));
        let free = self.free_column(at);
        let targets = self.tables[at].targets.clone();
        let mut clauses = Vec::new();
        for target in targets {
            clauses.push(match &free {
                Some(column) if self.rng.bool() => {
                    let value = self.value_for(column);
                    format!("ON CONFLICT {target} DO UPDATE SET {} = {value}", column.name)
                }
                _ => format!("ON CONFLICT {target} DO NOTHING"),
            });
        }
        clauses.truncate(self.rng.usize(0..=clauses.len()));
        if clauses.is_empty() || self.rng.bool() {
            clauses.push("ON CONFLICT DO NOTHING".to_owned());
        }
        format!("INSERT INTO {name} VALUES {row} {} RETURNING *", clauses.join(" "))
    }

    /// A row may meet several of the other table's ('1' and '1.0' are one number): which of them it takes is up to the
    /// implementation, so all of them bring the same.
    fn update_from(&mut self, at: usize) -> String {
        let name = self.tables[at].name.clone();
        let other = 1 - at;
        let (own, join, inner) = (self.bare(at), self.bare(other), self.tables[other].name.clone());
        match self.free_column(at) {
            Some(column) => format!(
                "UPDATE {name} SET {} = {} FROM (SELECT {join} AS j, count(*) > 0 AS n FROM {inner} GROUP BY {join}) AS v WHERE v.j = {name}.{own}",
                column.name,
                if column.kind == "INT" { "v.n".to_owned() } else { self.value_for(&column) },
            ),
            None => format!("DELETE FROM {name} WHERE {own} IN (SELECT {join} FROM {inner})"),
        }
    }

    fn pair_update(&mut self, at: usize) -> String {
        let name = self.tables[at].name.clone();
        let pair = self.free_column(at).zip(self.free_column(at));
        // The parser refuses a column twice in one pair, where SQLite lets the rightmost count.
        let Some((first, second)) = pair.filter(|(first, second)| first.name != second.name) else {
            return format!("UPDATE {name} SET {0} = {0} WHERE {1}", self.bare(at), self.condition(&[at], 1));
        };
        let (a, b, condition) = (self.value_for(&first), self.value_for(&second), self.condition(&[at], 1));
        if self.rng.bool() {
            format!(
                "UPDATE {name} SET ({}, {}) = ({a}, {b}) WHERE {condition} RETURNING *",
                first.name, second.name
            )
        } else {
            format!(
                "UPDATE {name} SET ({}, {}) = (SELECT {a}, {b}) WHERE {condition}",
                first.name, second.name
            )
        }
    }

    /// A new key for at most one row.
    fn keyed_update(&mut self, at: usize) -> String {
        let table = &self.tables[at];
        let (name, key) = (table.name.clone(), table.key.clone());
        let Some(&moved) = key.first() else {
            return format!("DELETE FROM {name} WHERE {}", self.rare_condition(&[at]));
        };
        let column = self.tables[at].columns[moved].clone();
        let conditions: Vec<String> = key
            .iter()
            .map(|&part| {
                let part = self.tables[at].columns[part].clone();
                format!("{} = {}", part.name, self.value_for(&part))
            })
            .collect();
        let or = self.pick(&["", "OR IGNORE ", "OR REPLACE ", "OR ABORT ", "OR FAIL "]);
        let value = self.value_for(&column);
        format!(
            "UPDATE {or}{name} SET {} = {value} WHERE {} RETURNING *",
            column.name,
            conditions.join(" AND ")
        )
    }
}
