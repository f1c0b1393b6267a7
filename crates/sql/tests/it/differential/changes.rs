//! Statements that write, as everybody writes them.

use super::clauses::Change;
use super::{Column, World};

impl World {
    pub(crate) fn change(&mut self, at: usize) -> String {
        let name = self.tables[at].name.clone();
        match self.rng.u32(0..12) {
            0..6 => self.insert(at),
            6..9 => self.update(at),
            9 => {
                let indexed = self.indexed(at);
                format!("DELETE FROM {name}{indexed} WHERE {}", self.condition(&[at], 2))
            }
            10 => self.insert_select(at),
            _ => format!("DELETE FROM {name} WHERE {} RETURNING *", self.condition(&[at], 1)),
        }
    }

    pub(crate) fn row(&mut self, at: usize) -> String {
        let columns = self.assigned(at);
        let values: Vec<String> = columns.iter().map(|column| self.value_for(column)).collect();
        format!("({})", values.join(", "))
    }

    /// The columns that an `INSERT` without a list fills.
    fn assigned(&self, at: usize) -> Vec<Column> {
        let table = &self.tables[at];
        table.assigned().into_iter().map(|column| table.columns[column].clone()).collect()
    }

    fn insert(&mut self, at: usize) -> String {
        let rows: Vec<String> = (0..self.rng.usize(1..6)).map(|_| self.row(at)).collect();
        let name = self.tables[at].name.clone();
        // A row that a statement meets twice is an error here, as in PostgreSQL.
        let one = rows[0].clone();
        let rows = rows.join(", ");
        let target = self.conflict_target(at);
        let own = self.tables[at].columns.len();
        let set = self.rng.usize(0..own);
        let free = self.tables[at].is_free(set);
        let column = self.tables[at].columns[set].name.clone();
        match self.rng.u32(0..9) {
            6 => format!("INSERT OR FAIL INTO {name} VALUES {rows}"),
            // It would end the transaction, and with it the savepoint that this test holds.
            7 if !self.transactional => format!("INSERT OR ROLLBACK INTO {name} VALUES {rows}"),
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
                    "INSERT INTO {name} VALUES {one} ON CONFLICT {target} DO UPDATE SET {column} = excluded.{column}{condition} RETURNING *"
                )
            }
            4 if free && !target.is_empty() => {
                format!(
                    "INSERT INTO {name} VALUES {one} ON CONFLICT {target} DO UPDATE SET {column} = coalesce({column}, excluded.{column})"
                )
            }
            5 => format!("REPLACE INTO {name} VALUES {rows}"),
            _ => format!("INSERT INTO {name} VALUES {rows}"),
        }
    }

    fn conflict_target(&mut self, at: usize) -> String {
        match self.rng.choice(&self.tables[at].targets) {
            Some(target) if self.rng.u32(0..4) > 0 => target.clone(),
            _ => String::new(),
        }
    }

    fn insert_select(&mut self, at: usize) -> String {
        let source = self.rng.usize(0..self.tables.len());
        let condition = self.condition(&[source], 1);
        let values: Vec<String> = self
            .assigned(at)
            .iter()
            .map(|column| {
                // A key column of type ANY keeps a float without fraction as an integer.
                let own = &self.tables[source];
                let is_kept = |at: usize| own.columns[at].kind != "ANY" || !own.key.contains(&at);
                let same = own
                    .columns
                    .iter()
                    .enumerate()
                    .find(|(at, other)| other.kind == column.kind && is_kept(*at));
                match same.map(|(_, same)| same) {
                    Some(same) if !column.not_null || same.not_null => {
                        format!("{}.{}", self.tables[source].name, same.name)
                    }
                    _ => self.value_for(column),
                }
            })
            .collect();
        let order = values.iter().map(|value| format!("{value} COLLATE BINARY"));
        let order: Vec<String> = order.collect();
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
        format!(
            "UPDATE {name}{} SET {} = {value} WHERE {condition}{returning}",
            self.indexed(at),
            column.name
        )
    }

    /// A write through the table's view, which SQLite has to be told of the table.
    pub(crate) fn change_of_view(&mut self, at: usize) -> Change {
        let (name, condition) = (self.tables[at].name.clone(), self.condition(&[at], 1));
        let shown = self.tables[at].view.clone().unwrap_or_default();
        let rows = format!("WHERE ({shown}) AND ({condition})");
        let free: Vec<usize> =
            (0..self.tables[at].columns.len()).filter(|&column| self.tables[at].is_free(column)).collect();
        match (self.rng.u32(0..3), self.rng.choice(&free).copied()) {
            (0, _) => Change {
                ours: format!("DELETE FROM {name}v AS {name} WHERE {condition} RETURNING *"),
                native: format!("DELETE FROM {name} {rows} RETURNING *"),
            },
            (1, Some(set)) => {
                let column = self.tables[at].columns[set].clone();
                let value = self.value_for(&column);
                let set = format!("SET {} = {value}", column.name);
                Change {
                    ours: format!("UPDATE {name}v AS {name} {set} WHERE {condition} RETURNING *"),
                    native: format!("UPDATE {name} {set} {rows} RETURNING *"),
                }
            }
            _ => {
                let columns: Vec<String> = self.assigned(at).into_iter().map(|column| column.name).collect();
                let insert = format!("({}) VALUES {} RETURNING *", columns.join(", "), self.row(at));
                Change {
                    ours: format!("INSERT INTO {name}v {insert}"),
                    native: format!("INSERT INTO {name} {insert}"),
                }
            }
        }
    }

    /// `INDEXED BY` an index that has all rows, now and then.
    pub(crate) fn indexed(&mut self, at: usize) -> String {
        match self.rng.u32(0..8) {
            0 => " NOT INDEXED".to_owned(),
            1 => {
                let index = self.rng.choice(&self.tables[at].indexes);
                index.map(|index| format!(" INDEXED BY {index}")).unwrap_or_default()
            }
            _ => String::new(),
        }
    }
}
