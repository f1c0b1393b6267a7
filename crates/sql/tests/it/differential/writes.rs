//! Statements that write, with the clauses that few of them have: lists of columns, defaults, expressions of both rows
//! of a conflict, other tables' values, common table expressions.

use super::clauses::Change;
use super::values::listed;
use super::{Column, World};

impl World {
    pub(crate) fn advanced_change(&mut self, at: usize) -> Change {
        let name = self.tables[at].name.clone();
        match self.rng.u32(0..14) {
            0 => format!("INSERT INTO {name} DEFAULT VALUES RETURNING *").into(),
            1 | 2 => self.insert_of_some(at).into(),
            3 | 4 => self.upsert_of_both(at).into(),
            5 => self.update_of_several(at).into(),
            6 => self.update_by_other(at).into(),
            7 => self.update_from_sum(at).into(),
            8 => self.insert_with(at).into(),
            9 => self.update_with(at).into(),
            10 => self.delete_by_others(at).into(),
            11 => self.limited_behind(at),
            12 => {
                let (condition, call) = (self.condition(&[at], 1), self.returned_call(at));
                format!("DELETE FROM {name} WHERE {condition} RETURNING {call} AS c, *").into()
            }
            _ => {
                let (a, b) = (self.row(at), self.row(at));
                let (a, b) = (a.trim_matches(['(', ')']), b.trim_matches(['(', ')']));
                format!("INSERT OR IGNORE INTO {name} SELECT {a} UNION ALL SELECT {b} RETURNING *").into()
            }
        }
    }

    /// A call for `RETURNING`, of the row alone.
    fn returned_call(&mut self, at: usize) -> String {
        loop {
            let call = self.call(&[at]);
            if !call.contains("SELECT") {
                return call;
            }
        }
    }

    fn free_columns(&self, at: usize) -> Vec<Column> {
        let table = &self.tables[at];
        let free = (0..table.columns.len()).filter(|&column| table.is_free(column));
        free.map(|column| table.columns[column].clone()).collect()
    }

    fn free(&mut self, at: usize) -> Option<Column> {
        let free = self.free_columns(at);
        self.rng.choice(&free).cloned()
    }

    /// The others have their defaults.
    fn insert_of_some(&mut self, at: usize) -> String {
        let name = self.tables[at].name.clone();
        let mut columns: Vec<Column> = self.tables[at]
            .assigned()
            .into_iter()
            .map(|column| self.tables[at].columns[column].clone())
            .collect();
        self.rng.shuffle(&mut columns);
        let key = self.tables[at].key.clone();
        let keyed: Vec<String> = key.iter().map(|&part| self.tables[at].columns[part].name.clone()).collect();
        // Mostly with its key: without it the row is refused.
        let some = self.rng.usize(1..=columns.len());
        let (mut kept, rest) = (columns[..some].to_vec(), columns[some..].to_vec());
        let or = self.pick(&["", " OR IGNORE", " OR REPLACE", " OR FAIL"]);
        // Which of two faults of a row is met first, a NULL or a value of the wrong type, is up to the implementation:
        // only the first is one to ignore.
        let whole = or == " OR IGNORE";
        if whole || self.rng.u32(0..6) > 0 {
            kept.extend(
                rest.into_iter().filter(|column| keyed.contains(&column.name) || whole && column.not_null),
            );
        }
        let names: Vec<&str> = kept.iter().map(|column| column.name.as_str()).collect();
        let rows: Vec<String> = (0..self.rng.usize(1..4))
            .map(|_| {
                let values: Vec<String> = kept.iter().map(|column| self.value_for(column)).collect();
                format!("({})", values.join(", "))
            })
            .collect();
        let returning = self.pick(&["", " RETURNING *"]);
        format!("INSERT{or} INTO {name} ({}) VALUES {}{returning}", names.join(", "), rows.join(", "))
    }

    /// `DO UPDATE` with expressions of the row that is there and of the one that came.
    fn upsert_of_both(&mut self, at: usize) -> String {
        let name = self.tables[at].name.clone();
        // One: a row that a statement meets twice is an error here, as in PostgreSQL.
        let (row, targets) = (self.row(at), self.tables[at].targets.clone());
        let (Some(target), Some(column)) = (self.rng.choice(&targets).cloned(), self.free(at)) else {
            return format!("INSERT OR IGNORE INTO {name} VALUES {row}");
        };
        let (bare, own) = (self.bare(at), column.name.clone());
        let condition = match self.rng.u32(0..3) {
            0 => String::new(),
            1 => format!(" WHERE excluded.{bare} IS NOT {name}.{bare} OR {}", self.condition(&[at], 0)),
            _ => format!(" WHERE {}", self.condition(&[at], 1)),
        };
        let value = self.value_for(&column);
        let set = match self.rng.u32(0..5) {
            0 => {
                format!("{own} = CASE WHEN excluded.{own} > {name}.{own} THEN excluded.{own} ELSE {own} END")
            }
            1 => format!("{own} = coalesce(excluded.{own}, {name}.{own}, {value})"),
            2 => format!("{own} = iif({own} IS NULL, excluded.{own}, {own})"),
            3 => format!("({own}) = (excluded.{own})"),
            _ => format!("{own} = {value}, {own} = excluded.{own}"),
        };
        let returning = format!(" RETURNING *, {}", self.returned_call(at));
        let rest = self.pick(&["", " ON CONFLICT DO NOTHING"]);
        format!(
            "INSERT INTO {name} VALUES {row} ON CONFLICT {target} DO UPDATE SET {set}{condition}{rest}{returning}"
        )
    }

    /// Columns that change places, and expressions of others.
    fn update_of_several(&mut self, at: usize) -> String {
        let (name, free) = (self.tables[at].name.clone(), self.free_columns(at));
        let condition = self.condition(&[at], 1);
        let (Some(first), Some(second)) = (self.rng.choice(&free).cloned(), self.rng.choice(&free).cloned())
        else {
            return format!("DELETE FROM {name} WHERE {condition}");
        };
        let returning = format!("RETURNING {}", self.returned_call(at));
        // A text in a BLOB column is its bytes here, and refused there.
        if first.name == second.name || (first.kind == "BLOB") != (second.kind == "BLOB") {
            let (value, other) = (self.value_for(&first), self.bare(at));
            return format!(
                "UPDATE {name} SET {0} = CASE WHEN {other} IS NULL THEN {0} ELSE {value} END WHERE {condition} {returning}",
                first.name
            );
        }
        let (a, b) = (first.name, second.name);
        let set = self.pick(&["{a} = {b}, {b} = {a}", "({a}, {b}) = ({b}, {a})", "{b} = coalesce({b}, {a})"]);
        let set = set.replace("{a}", &a).replace("{b}", &b);
        format!("UPDATE {name} SET {set} WHERE {condition} {returning}, {a}, {b}")
    }

    /// A value of another table, found by the row.
    fn update_by_other(&mut self, at: usize) -> String {
        // Of the other table: SQLite's UPDATE sees in a table the rows that it wrote itself.
        let (name, other) = (self.tables[at].name.clone(), 1 - at);
        let (inner, x, y, own) =
            (self.tables[other].name.clone(), self.bare(other), self.bare(other), self.bare(at));
        let condition = self.condition(&[at], 1);
        let Some(column) = self.free(at) else {
            return format!(
                "DELETE FROM {name} WHERE {own} = (SELECT max(i.{x}) FROM {inner} AS i WHERE i.{y} = {name}.{own})"
            );
        };
        let value = match column.kind {
            "INT" => "count(*)".to_owned(),
            "TEXT" => format!("iif(max(i.{x}) IS NULL, 'none', 'some')"),
            _ => self.value_for(&column),
        };
        format!(
            "UPDATE {name} SET {} = (SELECT {value} FROM {inner} AS i WHERE i.{y} = {name}.{own}) WHERE {condition}",
            column.name
        )
    }

    /// One row of the other table's sums, so that it is the same for everybody.
    fn update_from_sum(&mut self, at: usize) -> String {
        let (name, other) = (self.tables[at].name.clone(), 1 - at);
        let (inner, x) = (self.tables[other].name.clone(), self.bare(other));
        let condition = self.condition(&[at], 1);
        let Some(column) = self.free(at) else {
            return format!("DELETE FROM {name} WHERE {condition}");
        };
        let value = match column.kind {
            "INT" => "v.n".to_owned(),
            "TEXT" => "'n' || v.n".to_owned(),
            "REAL" => "v.n / 2.0".to_owned(),
            _ => self.value_for(&column),
        };
        let or = self.pick(&["", " OR IGNORE", " OR REPLACE"]);
        format!(
            "UPDATE{or} {name} SET {} = {value} FROM (SELECT count({x}) AS n FROM {inner}) AS v WHERE v.n > 0 AND ({condition})",
            column.name
        )
    }

    fn insert_with(&mut self, at: usize) -> String {
        let name = self.tables[at].name.clone();
        let columns: Vec<Column> = self.tables[at]
            .assigned()
            .into_iter()
            .map(|column| self.tables[at].columns[column].clone())
            .collect();
        let names: Vec<String> = (0..columns.len()).map(|column| format!("c{column}")).collect();
        let rows: Vec<String> = (0..2)
            .map(|_| {
                let values = columns.iter().map(|column| listed(self.value_for(column)));
                format!("({})", values.collect::<Vec<_>>().join(", "))
            })
            .collect();
        let or = self.pick(&["", " OR IGNORE", " OR REPLACE"]);
        // The first comes first: which of two equal keys is written is told by the order.
        format!(
            "WITH c ({0}) AS (VALUES {1}) INSERT{or} INTO {name} SELECT {0} FROM c WHERE {2} RETURNING *",
            names.join(", "),
            rows.join(", "),
            self.pick(&["1", "c0 IS NOT NULL", "typeof(c0) <> 'blob'"]),
        )
    }

    fn update_with(&mut self, at: usize) -> String {
        let (name, own) = (self.tables[at].name.clone(), self.bare(at));
        let other = self.rng.usize(0..2);
        let (inner, x) = (self.tables[other].name.clone(), self.bare(other));
        let condition = self.condition(&[other], 0);
        let Some(column) = self.free(at) else {
            return format!(
                "WITH c (v) AS (SELECT {x} FROM {inner} WHERE {condition}) DELETE FROM {name} WHERE {own} IN c"
            );
        };
        let value = self.value_for(&column);
        format!(
            "WITH c (v) AS (SELECT {x} FROM {inner} WHERE {condition}), d (w) AS (SELECT {value}) \
             UPDATE {name} SET {} = (SELECT w FROM d) WHERE {own} IN c RETURNING *",
            column.name
        )
    }

    fn delete_by_others(&mut self, at: usize) -> String {
        let (name, own, x) = (self.tables[at].name.clone(), self.bare(at), self.bare(at));
        let other = 1 - at;
        let (inner, y) = (self.tables[other].name.clone(), self.bare(other));
        match self.rng.u32(0..4) {
            0 => format!("DELETE FROM {name} WHERE {own} = (SELECT max({own}) FROM {name}) RETURNING *"),
            1 => format!(
                "DELETE FROM {name} WHERE EXISTS (SELECT 1 FROM {name} AS i WHERE i.{x} > {name}.{own})"
            ),
            2 => format!(
                "DELETE FROM {name} WHERE {own} IN (SELECT {y} FROM {inner} WHERE {y} IS NOT NULL) RETURNING {x}"
            ),
            _ => format!(
                "DELETE FROM {name} AS a WHERE (SELECT count(*) FROM {inner} WHERE {y} = a.{own}) > 1"
            ),
        }
    }

    /// `LIMIT ... OFFSET` on a write; SQLite's own build lacks it.
    fn limited_behind(&mut self, at: usize) -> Change {
        let name = self.tables[at].name.clone();
        let mut order = self.tables[at].qualified();
        self.rng.shuffle(&mut order);
        let bytes: Vec<String> = order.iter().map(|column| format!("{column} COLLATE BINARY")).collect();
        order.extend(bytes);
        let (order, condition) = (order.join(", "), self.condition(&[at], 1));
        let (limit, offset) = (self.rng.u32(1..4), self.rng.u32(0..3));
        let rows = format!("ORDER BY {order} LIMIT {limit} OFFSET {offset}");
        Change {
            ours: format!("DELETE FROM {name} WHERE {condition} RETURNING * {rows}"),
            native: format!(
                "DELETE FROM {name} WHERE rowid IN (SELECT rowid FROM {name} WHERE {condition} {rows}) RETURNING *"
            ),
        }
    }
}
