//! Random tables, statements and changes. Every query has two columns of integers, `k` and `v`, so that any can
//! stand in any other's place.

use fastrand::Rng;

/// Queries within each other.
const DEPTH: usize = 2;

/// A statement with its parameters.
pub(crate) struct Statement {
    pub(crate) sql: String,
    pub(crate) parameters: Vec<Option<String>>,
    types: Vec<&'static str>,
}

impl Statement {
    /// It with its parameters as literals.
    pub(crate) fn executable(&self) -> String {
        let mut sql = self.sql.clone();
        for (at, (value, ty)) in self.parameters.iter().zip(&self.types).enumerate().rev() {
            let value = value.as_ref().map_or_else(|| "NULL".to_owned(), |value| format!("'{value}'"));
            sql = sql.replace(&format!("${}", at + 1), &format!("CAST({value} AS {ty})"));
        }
        sql
    }
}

/// What a table, view or subquery of a FROM is called, and its columns.
#[derive(Clone)]
struct Source {
    alias: String,
    columns: &'static [(&'static str, Kind)],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    Text,
    Truth,
    /// Values that are written in several ways.
    Number,
    Moment,
    Bytes,
}

const OF_TABLE: &[(&str, Kind)] = &[
    ("id", Kind::Integer),
    ("a", Kind::Integer),
    ("b", Kind::Integer),
    ("t", Kind::Text),
    ("f", Kind::Truth),
    ("m", Kind::Number),
    ("w", Kind::Moment),
    ("y", Kind::Bytes),
];
const OF_QUERY: &[(&str, Kind)] = &[("k", Kind::Integer), ("v", Kind::Integer)];

pub(crate) struct Generator {
    rng: Rng,
    /// Tables that are written, and all that are read: views and partitions, too.
    tables: Vec<String>,
    parts: Vec<String>,
    views: Vec<String>,
    /// Names of the statement: tables in it, common tables that are seen.
    aliases: usize,
    common: Vec<String>,
    parameters: Vec<Option<String>>,
    types: Vec<&'static str>,
    /// A view has no parameters.
    has_parameters: bool,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            tables: Vec::new(),
            parts: Vec::new(),
            views: Vec::new(),
            aliases: 0,
            common: Vec::new(),
            parameters: Vec::new(),
            types: Vec::new(),
            has_parameters: false,
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(..100) < percent
    }

    fn one(&mut self, of: &[&str]) -> String {
        of[self.rng.usize(..of.len())].to_owned()
    }

    /// Statements that make tables and views.
    pub(crate) fn definitions(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        for at in 0..self.rng.usize(2..5) {
            all.extend(self.table(&format!("t{at}")));
            self.tables.push(format!("t{at}"));
        }
        for at in 0..self.rng.usize(1..4) {
            let query = self.query(1, &[]);
            all.push(format!("CREATE VIEW v{at} AS {query}"));
            self.views.push(format!("v{at}"));
        }
        all
    }

    fn table(&mut self, name: &str) -> Vec<String> {
        let integer = self.one(&["int", "bigint", "smallint"]);
        let text = self.one(&["text", "varchar(9)", "char(3)"]);
        let columns =
            format!("id int, a {integer}, b int, t {text}, f boolean, m numeric, w timestamptz, y bytea");
        let mut all = match self.rng.u32(..4) {
            0 => {
                let key = self.one(&["", ", UNIQUE (a)", ", UNIQUE (b, a)"]);
                vec![format!("CREATE TABLE {name} ({columns}, PRIMARY KEY (id){key})")]
            }
            1 => vec![format!("CREATE TABLE {name} ({columns})")],
            2 => {
                let key = self.one(&["id, a", "id", "a, id"]);
                let how = self.one(&["HASH", "RANGE"]);
                let parts = if how == "HASH" {
                    ["WITH (MODULUS 2, REMAINDER 0)", "WITH (MODULUS 2, REMAINDER 1)"]
                } else {
                    ["FROM (MINVALUE) TO (3)", "FROM (3) TO (MAXVALUE)"]
                };
                self.parts.extend([format!("{name}_x"), format!("{name}_y")]);
                vec![
                    format!("CREATE TABLE {name} ({columns}, PRIMARY KEY ({key})) PARTITION BY {how} (id)"),
                    format!("CREATE TABLE {name}_x PARTITION OF {name} FOR VALUES {}", parts[0]),
                    format!(
                        "CREATE TABLE {name}_y (y bytea, w timestamptz, f boolean, m numeric, t {text}, b int, a {integer}, id int)"
                    ),
                    format!(
                        "ALTER TABLE {name}_y ALTER id SET NOT NULL, ALTER a {}",
                        if key == "id" { "DROP NOT NULL" } else { "SET NOT NULL" }
                    ),
                    format!("ALTER TABLE {name} ATTACH PARTITION {name}_y FOR VALUES {}", parts[1]),
                ]
            }
            _ => {
                self.parts.push(format!("{name}_x"));
                vec![
                    format!("CREATE TABLE {name} ({columns}, PRIMARY KEY (id))"),
                    format!("CREATE TABLE {name}_x (PRIMARY KEY (id)) INHERITS ({name})"),
                ]
            }
        };
        let keyless = all.len() == 1 && !all[0].contains("KEY");
        let own: Vec<String> = std::iter::once(name.to_owned())
            .chain(self.parts.iter().filter(|part| part.starts_with(name)).cloned())
            .collect();
        for table in own {
            if keyless || self.chance(50) {
                all.push(format!("ALTER TABLE {table} REPLICA IDENTITY FULL"));
            }
        }
        all
    }

    fn number(&mut self) -> String {
        self.rng.u32(..6).to_string()
    }

    fn word(&mut self) -> String {
        self.one(&["x", "y", "z"])
    }

    fn literal(&mut self, kind: Kind) -> String {
        if self.chance(8) {
            return "NULL".to_owned();
        }
        match kind {
            Kind::Integer => self.number(),
            Kind::Text => format!("'{}'", self.word()),
            Kind::Truth => self.one(&["true", "false"]),
            other => format!("'{}'", self.spelled(other)),
        }
    }

    /// A value in one of several spellings.
    fn spelled(&mut self, kind: Kind) -> String {
        match kind {
            Kind::Number => {
                self.one(&["1", "1.0", "1.00", "2.5", "+02.50", "2.5e0", "NaN", "12345678.9", "-0"])
            }
            Kind::Moment => self.one(&[
                "2026-01-01 00:00:00+00",
                "2026-01-01T01:30:00+01:30",
                "2026-01-01 00:00:00.500Z",
                "2025-12-31 23:00:00.5-01",
                "2026-01-01",
                "infinity",
            ]),
            Kind::Bytes => self.one(&["\\x01", "\\001", "\\x0A", "\\x0a", ""]),
            Kind::Integer | Kind::Text | Kind::Truth => self.word(),
        }
    }

    /// A statement that writes.
    pub(crate) fn change(&mut self) -> String {
        let at = self.rng.usize(..self.tables.len() + self.parts.len());
        let table = self.tables.get(at).or_else(|| self.parts.get(at - self.tables.len())).unwrap().clone();
        let table = if table.contains('_') && self.chance(70) { table[..2].to_owned() } else { table };
        let (column, kind) = OF_TABLE[self.rng.usize(..OF_TABLE.len())];
        let (other, other_kind) = OF_TABLE[self.rng.usize(..OF_TABLE.len())];
        let (value, wanted) = (self.literal(kind), self.literal(other_kind));
        let write = match self.rng.u32(..20) {
            0 => format!("TRUNCATE {table}"),
            1..8 => {
                let row: Vec<String> = OF_TABLE.iter().map(|(_, kind)| self.literal(*kind)).collect();
                format!(
                    "INSERT INTO {table} (id, a, b, t, f, m, w, y) VALUES ({}) ON CONFLICT DO NOTHING",
                    row.join(", ")
                )
            }
            8..15 => format!("UPDATE {table} SET {column} = {value} WHERE {other} = {wanted}"),
            _ => format!("DELETE FROM {table} WHERE {column} = {value}"),
        };
        // Keys that are there already, rows of another partition, NULL in a key: nothing is written then.
        format!("DO $do$ BEGIN {write}; EXCEPTION WHEN integrity_constraint_violation THEN NULL; END $do$")
    }

    /// A statement that reads.
    pub(crate) fn statement(&mut self) -> Statement {
        self.has_parameters = true;
        self.aliases = 0;
        let sql = if self.chance(15) {
            let own = self.query(1, &[]);
            self.common.push("c0".to_owned());
            let sql = format!("WITH c0 AS ({own}) {}", self.query(0, &[]));
            self.common.clear();
            sql
        } else if self.chance(60) {
            // Joins alone: they are quick, and most guards are theirs.
            self.select(DEPTH, &[])
        } else {
            self.query(0, &[])
        };
        self.has_parameters = false;
        Statement {
            sql,
            parameters: std::mem::take(&mut self.parameters),
            types: std::mem::take(&mut self.types),
        }
    }

    fn query(&mut self, depth: usize, around: &[Source]) -> String {
        if depth < DEPTH && self.chance(12) {
            let (left, right) = (self.select(depth + 1, around), self.select(depth + 1, around));
            let how = self.one(&["UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT"]);
            return format!("({left}) {how} ({right})");
        }
        self.select(depth, around)
    }

    fn select(&mut self, depth: usize, around: &[Source]) -> String {
        let mut here = Vec::new();
        let mut from = self.from(depth, around, &mut here);
        while here.len() < 2 && self.chance(15) {
            from = format!("{from}, {}", self.from(depth, around, &mut here));
        }
        let mut seen = here.clone();
        seen.extend_from_slice(around);
        let condition =
            if self.chance(85) { format!(" WHERE {}", self.condition(depth, &seen)) } else { String::new() };
        let (k, v) = (self.integer(&here), self.integer(&here));
        let rest = format!("FROM {from}{condition}");
        match self.rng.u32(..12) {
            0 => format!("SELECT {k} AS k, count(*)::int AS v {rest} GROUP BY 1"),
            1 => format!("SELECT {k} AS k, max({v}) AS v {rest} GROUP BY {k} HAVING count(*) > 1"),
            2 => format!("SELECT min({k}) AS k, sum({v})::int AS v {rest}"),
            3 => format!("SELECT DISTINCT {k} AS k, {v} AS v {rest}"),
            4 => format!("SELECT DISTINCT ON ({k}) {k} AS k, {v} AS v {rest} ORDER BY {k}, {v}"),
            5 => format!("SELECT {k} AS k, count(*) OVER (PARTITION BY {v})::int AS v {rest}"),
            6 => format!("SELECT {k} AS k, {v} AS v {rest} ORDER BY 1, 2 LIMIT 2"),
            7 => {
                let own = self.deeper(depth, &seen);
                format!("SELECT {k} AS k, (SELECT max(v)::int FROM ({own}) s) AS v {rest}")
            }
            8 => format!(
                "SELECT {k} AS k, CASE WHEN {} THEN 1 ELSE 0 END AS v {rest}",
                self.condition(depth, &seen)
            ),
            _ => format!("SELECT {k} AS k, {v} AS v {rest}"),
        }
    }

    /// A query further in, simple where it would be too deep.
    fn deeper(&mut self, depth: usize, around: &[Source]) -> String {
        if depth >= DEPTH { "SELECT 1 AS k, 2 AS v".to_owned() } else { self.query(depth + 1, around) }
    }

    /// One item of a FROM: its tables are added to those that are there. `ON` sees the item's own alone.
    fn from(&mut self, depth: usize, around: &[Source], here: &mut Vec<Source>) -> String {
        let mut own = Vec::new();
        let before: Vec<Source> = here.clone();
        let mut from = self.source(depth, around, &mut own, &before);
        while own.len() < 3 && self.chance(35) {
            let how = self.one(&["JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
            let left = own.clone();
            let right = if self.chance(20) {
                self.inner_join(depth, around, &mut own)
            } else {
                // Only these let the right side see the left one.
                let is_seen = matches!(how.as_str(), "JOIN" | "LEFT JOIN");
                self.source(depth, around, &mut own, if is_seen { &left } else { &[] })
            };
            let on = if how == "FULL JOIN" {
                self.of_full_join(&left, &own[left.len()..])
            } else {
                self.condition(DEPTH, &own.clone())
            };
            from = format!("{from} {how} {right} ON {on}");
        }
        here.extend(own);
        from
    }

    /// Two tables in parentheses.
    fn inner_join(&mut self, depth: usize, around: &[Source], own: &mut Vec<Source>) -> String {
        let mut inner = Vec::new();
        let one = self.source(depth, around, &mut inner, &[]);
        let other = self.source(depth, around, &mut inner, &[]);
        let how = self.one(&["JOIN", "LEFT JOIN", "RIGHT JOIN"]);
        let on = self.condition(DEPTH, &inner);
        own.extend(inner);
        format!("({one} {how} {other} ON {on})")
    }

    /// A full join must have an equality of columns, and none of a condition that cannot be hashed.
    fn of_full_join(&mut self, left: &[Source], right: &[Source]) -> String {
        let equal = format!("{} = {}", self.integer(left), self.integer(right));
        if self.chance(40) {
            format!("{equal} AND {} = {}", self.integer(left), self.number())
        } else {
            equal
        }
    }

    /// A table, view or subquery; `beside`: what a subquery may see of its neighbours.
    fn source(
        &mut self,
        depth: usize,
        around: &[Source],
        own: &mut Vec<Source>,
        beside: &[Source],
    ) -> String {
        let alias = format!("s{}", self.aliases);
        self.aliases += 1;
        let (text, columns) = match self.rng.u32(..12) {
            0 if depth < DEPTH => (format!("({})", self.query(depth + 1, around)), OF_QUERY),
            1 if depth < DEPTH && !beside.is_empty() => {
                let seen = [beside, around].concat();
                (format!("LATERAL ({})", self.query(depth + 1, &seen)), OF_QUERY)
            }
            2 | 3 if !self.views.is_empty() => {
                (self.views[self.rng.usize(..self.views.len())].clone(), OF_QUERY)
            }
            4 | 5 if !self.common.is_empty() => (self.common[0].clone(), OF_QUERY),
            6 if !self.parts.is_empty() => (self.parts[self.rng.usize(..self.parts.len())].clone(), OF_TABLE),
            _ => (self.tables[self.rng.usize(..self.tables.len())].clone(), OF_TABLE),
        };
        own.push(Source { alias: alias.clone(), columns });
        format!("{text} {alias}")
    }

    fn column(&mut self, sources: &[Source], kind: Kind) -> Option<String> {
        let all: Vec<String> = sources
            .iter()
            .flat_map(|source| source.columns.iter().map(move |(name, of)| (source, name, of)))
            .filter(|(_, _, of)| **of == kind)
            .map(|(source, name, _)| format!("{}.{name}", source.alias))
            .collect();
        (!all.is_empty()).then(|| all[self.rng.usize(..all.len())].clone())
    }

    fn integer(&mut self, sources: &[Source]) -> String {
        self.column(sources, Kind::Integer).unwrap()
    }

    fn parameter(&mut self, ty: &'static str, value: String) -> String {
        let value = (!self.chance(8)).then_some(value);
        self.parameters.push(value);
        self.types.push(ty);
        format!("${}", self.parameters.len())
    }

    fn condition(&mut self, depth: usize, sources: &[Source]) -> String {
        let atoms: Vec<String> = (0..self.rng.usize(1..4)).map(|_| self.atom(depth, sources)).collect();
        atoms.join(" AND ")
    }

    fn atom(&mut self, depth: usize, sources: &[Source]) -> String {
        let column = self.integer(sources);
        match self.rng.u32(..25) {
            22..25 => self.of_spelled(sources),
            0..5 => format!("{column} = {}", self.number()),
            5 | 6 if self.has_parameters => {
                let value = self.number();
                format!("{column} = {}", self.parameter("int", value))
            }
            7..11 => format!("{column} = {}", self.integer(sources)),
            11 => format!("{column} IN ({}, {})", self.number(), self.number()),
            12 if self.has_parameters => {
                let value = format!("{{{},{}}}", self.number(), self.number());
                format!("{column} = ANY (CAST({} AS int[]))", self.parameter("int[]", value))
            }
            13 => format!("({column} = {} OR {})", self.number(), self.atom(depth, sources)),
            14 => format!("({column} = {} OR {column} = {})", self.number(), self.number()),
            15 => format!("NOT ({})", self.atom(depth, sources)),
            16 => format!("{column} IS NULL"),
            17 | 18 => self.of_text(sources),
            19 => self.column(sources, Kind::Truth).unwrap_or_else(|| "true".to_owned()),
            20 => {
                let not = self.one(&["", "NOT "]);
                format!("{not}EXISTS ({})", self.deeper(depth, sources))
            }
            21 => {
                let not = self.one(&["", "NOT "]);
                format!("{column} {not}IN (SELECT k FROM ({}) q)", self.deeper(depth, sources))
            }
            _ => format!("{column} < {}", self.number()),
        }
    }

    fn of_spelled(&mut self, sources: &[Source]) -> String {
        let kinds = [(Kind::Number, "numeric"), (Kind::Moment, "timestamptz"), (Kind::Bytes, "bytea")];
        let (kind, ty) = kinds[self.rng.usize(..kinds.len())];
        let Some(column) = self.column(sources, kind) else { return "true".to_owned() };
        let value = self.spelled(kind);
        match self.rng.u32(..5) {
            0 => format!("{column} = {}", self.column(sources, kind).unwrap_or_else(|| column.clone())),
            1 if kind == Kind::Number => format!("{column} = {}", self.number()),
            2 if self.has_parameters && kind == Kind::Number => {
                let number = self.number();
                format!("{column} = {}", self.parameter("int", number))
            }
            3 if self.has_parameters => format!("{column} = {}", self.parameter(ty, value)),
            _ => format!("{column} = '{value}'"),
        }
    }

    fn of_text(&mut self, sources: &[Source]) -> String {
        let Some(column) = self.column(sources, Kind::Text) else { return "true".to_owned() };
        match self.rng.u32(..3) {
            0 => format!("{column} = {}", self.column(sources, Kind::Text).unwrap_or_else(|| column.clone())),
            1 => format!("{column} IN ('x', '{}')", self.word()),
            _ => format!("{column} = '{}'", self.word()),
        }
    }
}
