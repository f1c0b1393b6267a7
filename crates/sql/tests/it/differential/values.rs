//! Values of every kind, and conditions on them.

use super::{Column, World};

/// Texts that read as numbers.
pub(crate) const NUMBERS_AS_TEXTS: &[&str] = &["1", "2", "1.0", "1.5", " 3", "17", "1e1"];

/// The other texts.
pub(crate) const WORDS: &[&str] =
    &["a", "A", "ab", "aB", "b", "B1", "", "\u{65e5}", "a ", "B  ", "a%", "2026-01-31", "[1, 2]"];

impl World {
    pub(crate) fn column(&mut self, at: usize) -> String {
        let columns = self.tables[at].qualified();
        columns[self.rng.usize(0..columns.len())].clone()
    }

    pub(crate) fn column_of(&mut self, scope: &[usize]) -> String {
        let at = scope[self.rng.usize(0..scope.len())];
        self.column(at)
    }

    pub(crate) fn condition(&mut self, scope: &[usize], depth: u32) -> String {
        if depth > 0 {
            match self.rng.u32(0..6) {
                0 => {
                    self.alternatives += 1;
                    let (one, other) = (self.condition(scope, depth - 1), self.condition(scope, depth - 1));
                    self.alternatives -= 1;
                    return format!("({one} OR {other})");
                }
                1 => return format!("NOT ({})", self.condition(scope, depth - 1)),
                2 | 3 => {
                    return format!(
                        "{} AND {}",
                        self.condition(scope, depth - 1),
                        self.condition(scope, depth - 1)
                    );
                }
                _ => {}
            }
        }
        if self.rng.u32(0..8) == 0 {
            return self.rare_condition(scope);
        }
        if self.rng.u32(0..8) == 0
            && let Some(condition) = self.known_condition(scope)
        {
            return condition;
        }
        let column = self.column_of(scope);
        match self.rng.u32(0..14) {
            0 => format!("{column} IS NULL"),
            1 => format!("{column} IS NOT NULL"),
            2 => format!("{column} BETWEEN {} AND {}", self.any_value(), self.any_value()),
            3 => {
                let values: Vec<String> = (0..self.rng.usize(0..4)).map(|_| self.any_value()).collect();
                format!("{column} IN ({})", values.join(", "))
            }
            4 => {
                let patterns = [
                    "'a%'",
                    "'B%'",
                    "'1%'",
                    "'%b'",
                    "'a_'",
                    "'ab'",
                    "'%'",
                    "17",
                    "'a\\%' ESCAPE '\\'",
                    "'a|%%' ESCAPE '|'",
                ];
                let pattern = patterns[self.rng.usize(0..patterns.len())];
                format!("{} LIKE {pattern}", self.seen(&column))
            }
            5 => {
                let pattern = ["'a*'", "'B*'", "'1*'", "'*b'", "'a?'", "'ab'"][self.rng.usize(0..6)];
                format!("{} GLOB {pattern}", self.seen(&column))
            }
            6 => format!("{column} {} {}", self.operator(), self.column_of(scope)),
            7 => {
                let other = self.rng.usize(0..2);
                let inner = self.tables[other].qualified();
                let inner = &inner[self.rng.usize(0..inner.len())];
                format!("{column} IN (SELECT {inner} FROM {})", self.tables[other].name)
            }
            8 => format!("{column} IS {}", self.any_value()),
            9 => format!("+{column} {} {}", self.operator(), self.any_value()),
            _ => format!("{column} {} {}", self.operator(), self.any_value()),
        }
    }

    /// A column for a pattern. Of two patterns joined by `OR`, SQLite's own index loses sight of bytes
    /// (docs/dialect.md), so it is not to be used there.
    fn seen(&self, column: &str) -> String {
        if self.alternatives > 0 { format!("+{column}") } else { column.to_owned() }
    }

    /// A condition that an index or a view was made with, or one on an expression that an index has.
    fn known_condition(&mut self, scope: &[usize]) -> Option<String> {
        let at = scope[self.rng.usize(0..scope.len())];
        let table = &self.tables[at];
        if self.rng.bool() {
            let condition = self.rng.choice(&table.conditions)?.clone();
            let wrapped = self.rng.bool();
            return Some(if wrapped { format!("({condition})") } else { condition });
        }
        let expression = self.rng.choice(&table.expressions)?.clone();
        let (operator, value) = (self.operator(), self.any_value());
        Some(match self.rng.u32(0..3) {
            0 => format!("{value} {operator} ({expression})"),
            1 => format!("({expression}) IN ({value}, {})", self.any_value()),
            _ => format!("({expression}) {operator} {value}"),
        })
    }

    pub(crate) fn operator(&mut self) -> &'static str {
        ["=", "=", "=", "<", "<=", ">", ">=", "<>"][self.rng.usize(0..8)]
    }

    pub(crate) fn any_value(&mut self) -> String {
        let kind = ["INT", "REAL", "TEXT", "BLOB"][self.rng.usize(0..4)];
        if self.rng.u32(0..12) == 0 { "NULL".to_owned() } else { self.literal(kind) }
    }

    /// A value that is computed with, or in a list that a query reads: numbers with a fraction are floats there if they
    /// are told to be.
    pub(crate) fn listed_value(&mut self) -> String {
        listed(self.any_value())
    }

    pub(crate) fn value_for(&mut self, column: &Column) -> String {
        if !column.not_null && self.rng.u32(0..5) == 0 {
            return "NULL".to_owned();
        }
        // Now and then a value that has to be converted, or refused.
        let kind = match (column.kind, self.rng.u32(0..25)) {
            ("ANY", _) => ["INT", "REAL", "TEXT", "BLOB"][self.rng.usize(0..4)],
            ("INT" | "REAL", 0) => "TEXT",
            ("INT" | "TEXT", 1) => "REAL",
            ("TEXT", 2) => "INT",
            (kind, _) => kind,
        };
        self.literal(kind)
    }

    pub(crate) fn literal(&mut self, kind: &str) -> String {
        match kind {
            "INT" => match self.rng.u32(0..12) {
                0 => "9223372036854775807".to_owned(),
                1 => "-9223372036854775808".to_owned(),
                2 => "9007199254740993".to_owned(),
                _ => self.rng.i32(-4..12).to_string(),
            },
            "REAL" => match self.rng.u32(0..10) {
                0 => "9223372036854775808.0".to_owned(),
                1 => "-0.0".to_owned(),
                2 => "9007199254740992.0".to_owned(),
                _ => format!("{:?}", f64::from(self.rng.i32(-8..16)) / 2.0),
            },
            "TEXT" => {
                let at = self.rng.usize(0..WORDS.len() + NUMBERS_AS_TEXTS.len());
                format!("'{}'", WORDS.get(at).unwrap_or_else(|| &NUMBERS_AS_TEXTS[at - WORDS.len()]))
            }
            _ => ["x''", "x'61'", "x'00'", "x'ff00'"][self.rng.usize(0..4)].to_owned(),
        }
    }
}

/// The value as a text where it is one that reads as a number: beside a number it would be taken as one.
pub(crate) fn text_of(value: &str) -> String {
    let inner = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let number = inner.is_some_and(|inner| NUMBERS_AS_TEXTS.contains(&inner));
    if number { format!("CAST({value} AS TEXT)") } else { value.to_owned() }
}

/// See [`World::listed_value`].
pub(crate) fn listed(value: String) -> String {
    if value.parse::<i64>().is_err() && value.parse::<f64>().is_ok() {
        format!("CAST({value} AS REAL)")
    } else {
        value
    }
}
