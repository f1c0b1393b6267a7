//! Random schemas: types, collations, defaults, generated columns, checks, keys, indexes of every kind, views.

use super::World;

#[derive(Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) not_null: bool,
    collation: &'static str,
    default: Option<String>,
    /// The server makes its values.
    pub(crate) generated: Option<String>,
}

#[derive(Default)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) key: Vec<usize>,
    /// What `ON CONFLICT` can name.
    pub(crate) targets: Vec<String>,
    /// Columns that a key or a unique index reads.
    pub(crate) watched: Vec<usize>,
    /// Expressions and conditions that definitions are made of, so that queries ask for the same.
    pub(crate) expressions: Vec<String>,
    pub(crate) conditions: Vec<String>,
    /// What indexes are of, and what checks say.
    pub(crate) terms: Vec<String>,
    pub(crate) checks: Vec<String>,
    /// Indexes of all rows, by name.
    pub(crate) indexes: Vec<String>,
    /// The condition of its view, which is called like the table with a `v` behind it.
    pub(crate) view: Option<String>,
}

const COLLATIONS: &[&str] = &["", "", "", " COLLATE NOCASE", " COLLATE RTRIM", " COLLATE BINARY"];

impl Table {
    pub(crate) fn names(&self, columns: &[usize]) -> String {
        columns.iter().map(|&column| self.columns[column].name.as_str()).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn qualified(&self) -> Vec<String> {
        self.columns.iter().map(|column| format!("{}.{}", self.name, column.name)).collect()
    }

    /// Columns that statements give values.
    pub(crate) fn assigned(&self) -> Vec<usize> {
        (0..self.columns.len()).filter(|&at| self.columns[at].generated.is_none()).collect()
    }

    /// A column that no constraint watches: updates of many rows agree whatever their order.
    pub(crate) fn is_free(&self, column: usize) -> bool {
        self.columns[column].generated.is_none() && !self.watched.contains(&column)
    }

    /// Takes note that the order of updates of what this text reads tells.
    fn watch(&mut self, text: &str) {
        let reads = |name: &str, text: &str| {
            text.split(|sign: char| !sign.is_alphanumeric()).any(|word| word == name)
        };
        for at in 0..self.columns.len() {
            if reads(&self.columns[at].name, text) && !self.watched.contains(&at) {
                self.watched.push(at);
                if let Some(generated) = self.columns[at].generated.clone() {
                    self.watch(&generated);
                }
            }
        }
    }
}

impl World {
    /// A table with its indexes and its view, made on both sides.
    pub(crate) fn create(&mut self, name: &str) -> Table {
        let kinds = ["INT", "INT", "REAL", "TEXT", "TEXT", "BLOB", "ANY"];
        let mut table = Table { name: name.to_owned(), ..Table::default() };
        for at in 0..self.rng.usize(2..6) {
            let kind = kinds[self.rng.usize(0..kinds.len())];
            table.columns.push(self.column_of_kind(format!("{name}{at}"), kind));
        }
        let count = self.rng.usize(0..3).min(table.columns.len());
        table.key = self.rng.choose_multiple(0..table.columns.len(), count);
        for &column in &table.key {
            table.columns[column].not_null = true;
            table.columns[column].default = None;
        }
        if self.rng.bool() {
            let generated = Some(self.made_expression(&table));
            let at = table.columns.len();
            let column = self.column_of_kind(format!("{name}{at}"), "ANY");
            table.columns.push(Column { not_null: false, default: None, generated, ..column });
        }
        let (constraints, options) = self.constraints(&mut table);
        let mut parts: Vec<String> =
            table.columns.iter().map(|column| column.definition(self.rng.bool())).collect();
        parts.extend(constraints);
        let sql = format!("CREATE TABLE {name} ({})", parts.join(", "));
        self.define(&format!("{sql}{options}"), &format!("{sql} STRICT"));
        for number in 0..self.rng.usize(0..4) {
            self.create_index(&mut table, number);
        }
        // Through a view a text beside a BLOB is its bytes, as in PostgreSQL: only a column's own table says `BLOB`.
        let has_blobs = table.columns.iter().any(|column| column.kind == "BLOB");
        if self.rng.u32(0..3) == 0 && !has_blobs {
            let condition = self.made_condition(&table);
            let sql = format!("CREATE VIEW {name}v AS SELECT * FROM {name} WHERE {condition}");
            self.define(&sql, &sql);
            table.view = Some(condition);
        }
        table
    }

    fn column_of_kind(&mut self, name: String, kind: &'static str) -> Column {
        let text = matches!(kind, "TEXT" | "ANY");
        let collation = if text { COLLATIONS[self.rng.usize(0..COLLATIONS.len())] } else { "" };
        self.folds |= collation.contains("NOCASE") || collation.contains("RTRIM");
        let mut column = Column {
            name,
            kind,
            not_null: self.rng.u32(0..6) == 0,
            collation,
            default: None,
            generated: None,
        };
        if self.rng.u32(0..4) == 0 {
            let value = if kind == "ANY" { self.literal("TEXT") } else { self.literal(kind) };
            column.default = Some(match (self.rng.u32(0..4), kind) {
                (0, "INT") => "(abs(-3) + 1)".to_owned(),
                (0, "REAL") => "(3 / 2.0)".to_owned(),
                (0, "TEXT" | "ANY") => "(lower('A') || 'b')".to_owned(),
                (0 | 1, _) => format!("({value})"),
                _ => value,
            });
        }
        column
    }

    /// The table's constraints, and options that only we have.
    fn constraints(&mut self, table: &mut Table) -> (Vec<String>, &'static str) {
        let mut constraints = Vec::new();
        let mut options = "";
        if !table.key.is_empty() {
            let key = table.names(&table.key);
            table.watch(&key);
            constraints.push(format!("PRIMARY KEY ({key})"));
            table.targets.push(format!("({key})"));
            options = if self.rng.bool() { " WITH (ordered = on)" } else { "" };
        }
        if self.rng.u32(0..3) == 0 {
            let count = self.rng.usize(1..3);
            let columns: Vec<usize> = self.rng.choose_multiple(0..table.columns.len(), count);
            let mut sorted = (columns.clone(), table.key.clone());
            sorted.0.sort_unstable();
            sorted.1.sort_unstable();
            if sorted.0 != sorted.1 {
                let names = table.names(&columns);
                table.watch(&names);
                constraints.push(format!("UNIQUE ({names})"));
                table.targets.push(format!("({names})"));
            }
        }
        if self.rng.u32(0..3) == 0 {
            let (column, other) = (self.name_of(table), self.name_of(table));
            let checks = [
                format!("{column} IS NOT 3"),
                format!("length({column}) < 5"),
                format!("{} <> 'B' OR {other} IS NULL", self.lettered(table)),
                format!("{} > -3", self.counted(table)),
                format!("typeof({column}) <> 'real' OR {other} IS NOT NULL"),
            ];
            let check = checks[self.rng.usize(0..checks.len())].clone();
            table.checks.push(check.clone());
            constraints.push(format!("CHECK ({check})"));
        }
        (constraints, options)
    }

    pub(crate) fn create_index(&mut self, table: &mut Table, number: usize) {
        let name = format!("{}_i{number}", table.name);
        let terms: Vec<String> = (0..self.rng.usize(1..4))
            .map(|_| {
                let term =
                    if self.rng.u32(0..3) == 0 { self.made_expression(table) } else { self.name_of(table) };
                if term.contains(['(', ' ']) {
                    table.expressions.push(term.clone());
                }
                let collation = if self.rng.u32(0..4) == 0 { COLLATIONS[self.rng.usize(3..6)] } else { "" };
                format!("{term}{collation}{}", ["", " ASC", " DESC"][self.rng.usize(0..3)])
            })
            .collect();
        let mut unrepeated = terms.clone();
        unrepeated.sort_unstable();
        unrepeated.dedup_by(|a, b| a.split(' ').next() == b.split(' ').next());
        // A column stands once in an index of ours.
        let terms = if unrepeated.len() == terms.len() { terms } else { unrepeated };
        let condition = (self.rng.u32(0..3) == 0).then(|| self.made_condition(table));
        let unique = self.rng.u32(0..5) == 0;
        let sql = format!(
            "CREATE {}INDEX {name} ON {} ({}){}",
            if unique { "UNIQUE " } else { "" },
            table.name,
            terms.join(", "),
            condition.as_ref().map(|condition| format!(" WHERE {condition}")).unwrap_or_default()
        );
        self.log.push(sql.clone());
        let (theirs, ours) = (self.native.query(&sql), self.db.execute(&sql, &[]));
        assert_eq!(theirs.is_ok(), ours.is_ok(), "{}\n{theirs:?}\n{ours:?}", self.log.join(";\n"));
        if ours.is_err() {
            return;
        }
        table.terms.extend(terms.iter().cloned());
        if unique {
            let bare: Vec<&str> =
                terms.iter().map(|term| term.trim_end_matches(" DESC").trim_end_matches(" ASC")).collect();
            table.watch(&terms.join(", "));
            table.watch(condition.as_deref().unwrap_or_default());
            let condition = condition.as_ref().map(|condition| format!(" WHERE {condition}"));
            table.targets.push(format!("({}){}", bare.join(", "), condition.unwrap_or_default()));
        }
        match condition {
            Some(condition) => table.conditions.push(condition),
            None => table.indexes.push(name),
        }
    }

    /// A column or an index that comes, or an index that goes, while there are rows.
    pub(crate) fn alter(&mut self) -> Result<(), String> {
        let at = self.rng.usize(0..self.tables.len());
        let mut table = std::mem::take(&mut self.tables[at]);
        match self.rng.u32(0..3) {
            0 if table.columns.len() < 8 => {
                let name = format!("{}a{}", table.name, self.log.len());
                let kind = ["INT", "TEXT", "REAL", "ANY"][self.rng.usize(0..4)];
                let mut column = self.column_of_kind(name, kind);
                // SQLite refuses what is computed here.
                column.default = column.default.filter(|value| !value.starts_with('('));
                column.not_null = false;
                let sql = format!("ALTER TABLE {} ADD COLUMN {}", table.name, column.definition(false));
                self.define(&sql, &sql);
                table.columns.push(column);
            }
            1 if !table.indexes.is_empty() => {
                let index = table.indexes.swap_remove(self.rng.usize(0..table.indexes.len()));
                let of_index = |target: &String| target.contains('(');
                let sql = format!("DROP INDEX {index}");
                self.define(&sql, &sql);
                // Which target was the index's is not told: none but the key's is used from now on.
                table.targets.truncate(usize::from(!table.key.is_empty()));
                table.targets.retain(of_index);
            }
            _ => {
                let number = 10 + self.log.len();
                self.create_index(&mut table, number);
            }
        }
        self.tables[at] = table;
        self.compare_table(at)
    }

    /// A definition that both sides must take.
    fn define(&mut self, ours: &str, native: &str) {
        self.log.push(ours.to_owned());
        if let Err(error) = self.native.query(native) {
            panic!("{}\n{error}", self.log.join(";\n"));
        }
        if let Err(error) = self.db.execute(ours, &[]) {
            panic!("{}\n{error}", self.log.join(";\n"));
        }
    }

    /// A column whose values keep their type: a key column of type ANY keeps a float without fraction as an integer.
    fn name_of(&mut self, table: &Table) -> String {
        let plain = |at: &usize| table.columns[*at].kind != "ANY" || !table.key.contains(at);
        let plain: Vec<usize> = (0..table.columns.len()).filter(plain).collect();
        self.rng.choice(&plain).map_or_else(|| "'a'".to_owned(), |&at| table.columns[at].name.clone())
    }

    /// A column whose values have a text of their own: bytes need not be one.
    fn worded(&mut self, table: &Table) -> String {
        let worded = |column: &&Column| matches!(column.kind, "INT" | "REAL" | "TEXT");
        let names: Vec<&Column> = table.columns.iter().filter(worded).collect();
        self.rng.choice(&names).map_or_else(|| "'17'".to_owned(), |column| column.name.clone())
    }

    /// A column that may hold a letter: one of numbers is not compared with any.
    fn lettered(&mut self, table: &Table) -> String {
        let lettered = |column: &&Column| matches!(column.kind, "TEXT" | "BLOB" | "ANY");
        let names: Vec<&Column> = table.columns.iter().filter(lettered).collect();
        self.rng.choice(&names).map_or_else(|| "'a'".to_owned(), |column| column.name.clone())
    }

    /// A column that may hold a number: one of bytes is not compared with any.
    fn counted(&mut self, table: &Table) -> String {
        let counted = |column: &&Column| matches!(column.kind, "INT" | "REAL" | "ANY");
        let names: Vec<&Column> = table.columns.iter().filter(counted).collect();
        self.rng.choice(&names).map_or_else(|| "17".to_owned(), |column| column.name.clone())
    }

    /// Two columns whose values may stand in one, or are compared.
    fn alike(&mut self, table: &Table) -> [String; 2] {
        let group = |kind: &'static str| if kind == "REAL" { "INT" } else { kind };
        let at = self.rng.usize(0..table.columns.len());
        let kind = group(table.columns[at].kind);
        let alike: Vec<&Column> = table.columns.iter().filter(|column| group(column.kind) == kind).collect();
        let other = self.rng.usize(0..alike.len());
        [table.columns[at].name.clone(), alike[other].name.clone()]
    }

    /// What a generated column or an index can be made of.
    fn made_expression(&mut self, table: &Table) -> String {
        let ([a, b], counted) = (self.alike(table), self.counted(table));
        let (word, other) = (self.worded(table), self.worded(table));
        let expressions = [
            format!("length({a})"),
            format!("coalesce({a}, {b})"),
            format!("{word} || {other}"),
            format!("upper({word})"),
            format!("substr({word}, 1, 1)"),
            format!("CASE WHEN {counted} > 2 THEN {a} ELSE {b} END"),
            format!("CAST({a} AS BLOB)"),
            format!("({a} IS NULL) + 0"),
            format!("typeof({a})"),
            format!("nullif({a}, {b})"),
            format!("{word} * 2"),
            format!("(coalesce({counted}, 0) > 2) + 0"),
        ];
        expressions[self.rng.usize(0..expressions.len())].clone()
    }

    /// What a partial index or a view has rows of.
    fn made_condition(&mut self, table: &Table) -> String {
        let ([a, b], counted) = (self.alike(table), self.counted(table));
        let letters = self.lettered(table);
        let conditions = [
            format!("{counted} > 2"),
            format!("{a} IS NOT NULL"),
            format!("{a} = {b}"),
            format!("length({a}) < 3"),
            format!("{letters} <> 'B'"),
            format!("{counted} BETWEEN 1 AND 4"),
            format!("{b} IS NOT NULL AND {counted} > 1"),
            format!("'a' <= {letters}"),
        ];
        conditions[self.rng.usize(0..conditions.len())].clone()
    }
}

impl Column {
    fn definition(&self, stored: bool) -> String {
        let Self { name, kind, collation, .. } = self;
        let not_null = if self.not_null { " NOT NULL" } else { "" };
        let default = self.default.as_ref().map(|value| format!(" DEFAULT {value}")).unwrap_or_default();
        let word = if stored { " STORED" } else { "" };
        let generated = self.generated.as_ref().map(|sql| format!(" AS ({sql}){word}")).unwrap_or_default();
        format!("{name} {kind}{collation}{not_null}{default}{generated}")
    }
}
