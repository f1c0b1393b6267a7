//! Which columns SQLite sees: those of the table, and those computed from a row's head.

use sqltext::token::quoted_name;
use store::Table;
use store::definition::{Collation, ColumnDef, ColumnKind, IndexDef, SqlType, TableDef};

/// Where a column's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The table's column at this position.
    Stored(usize),
    /// Whether the table's column at this position is NULL: 1 or 0.
    Absent(usize),
    /// The row's head.
    Head(Head),
}

/// What a row's head tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// Not a value: `= n` reads the rows of the executor's list `n` in place of the table's.
    List,
    /// Not a value: `= 1` reads the rows whose keys the executor picked.
    Pick,
    /// Key, version, deadline and flags: what a write needs to know of the row it replaces.
    Row,
    /// Seconds until the row expires, or NULL.
    Ttl,
    /// The Unix second at which it expires, or NULL.
    ExpiresAt,
    /// Seconds since it was written.
    Age,
    /// Bytes it takes in the arena.
    Size,
    /// Its CAS value.
    Cas,
    /// How often it was read, as eviction counts.
    Hits,
    /// The memcached client's flags.
    Flags,
    /// Whether it is stale.
    Stale,
    /// Whether it is to be refreshed.
    Due,
    /// Whether a client refreshes it.
    Leased,
}

/// What `DEFAULT` is for `_ttl` and `_expires_at`: the row ends when its table's `ttl` says.
pub const DEADLINE_OF_TABLE: &str = "default";

/// The hidden columns of every table: name, what it is, and for those that users may ask for, what it means.
///
/// The first one is the argument of `table(n)`.
pub const HIDDEN: &[(&str, Head, Option<&str>)] = &[
    ("_list", Head::List, None),
    ("_pick", Head::Pick, None),
    ("_row", Head::Row, None),
    ("_ttl", Head::Ttl, Some("seconds until the row expires; NULL: it does not expire")),
    ("_expires_at", Head::ExpiresAt, Some("the Unix time in seconds at which the row expires; NULL: never")),
    ("_age", Head::Age, Some("seconds since the row was written")),
    ("_size", Head::Size, Some("bytes that the row takes in memory")),
    ("_cas", Head::Cas, Some("the row's CAS value; every write changes it")),
    (
        "_hits",
        Head::Hits,
        Some("how often the row was read recently, as eviction counts: 0 to 3, where 3 is three or more"),
    ),
    ("_flags", Head::Flags, Some("the 32 bits of flags that a memcached client stored with the row")),
    (
        "_stale",
        Head::Stale,
        Some("1 if the row was invalidated softly, or is past its deadline in a table with stale_for"),
    ),
    (
        "_due",
        Head::Due,
        Some(
            "1 if the row is stale, or as close to its deadline as the table's refresh_before: a client should refresh it",
        ),
    ),
    ("_leased", Head::Leased, Some("1 while a client refreshes the row")),
];

/// What the built-in table shows beside its key and value.
const BUILT_IN: &[(&str, Head)] = &[
    ("flags", Head::Flags),
    ("expiry", Head::ExpiresAt),
    ("cas", Head::Cas),
    ("size", Head::Size),
    ("age", Head::Age),
];

/// One column as SQLite sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its name.
    pub name: String,
    /// Where its value comes from.
    pub column: Column,
    /// Left out of `*`.
    pub hidden: bool,
    affinity: &'static str,
    collation: Collation,
    not_null: bool,
}

impl Shown {
    fn stored(at: usize, column: &ColumnDef) -> Self {
        Self {
            name: column.name.clone(),
            column: Column::Stored(at),
            hidden: column.hidden,
            affinity: affinity(column.kind),
            collation: column.collation,
            // The store refuses NULL in these, so the planner may rely on it.
            not_null: column.not_null,
        }
    }

    /// The column as it stands in a `CREATE TABLE` statement.
    pub fn declaration(&self) -> String {
        let name = quoted_name(&self.name);
        let not_null = if self.not_null { " NOT NULL" } else { "" };
        let hidden = if self.hidden { " HIDDEN" } else { "" };
        let collation = self.collation.name();
        // The word HIDDEN alone would be a type of NUMERIC affinity.
        let affinity = if self.hidden && self.affinity.is_empty() { "BLOB" } else { self.affinity };
        format!("{name} {affinity}{hidden}{not_null} COLLATE {collation}")
    }

    fn absent(at: usize) -> Self {
        let (name, column) = (name_of_absence(at), Column::Absent(at));
        let (affinity, collation) = ("INTEGER", Collation::Binary);
        Self { name, column, hidden: true, affinity, collation, not_null: true }
    }

    fn head(name: &str, head: Head, hidden: bool) -> Self {
        let affinity = match head {
            Head::List | Head::Pick => "",
            Head::Row => "BLOB",
            _ => "INTEGER",
        };
        let (name, column, collation) = (name.to_owned(), Column::Head(head), Collation::Binary);
        Self { name, column, hidden, affinity, collation, not_null: false }
    }
}

/// A column of a table as it stands in a `CREATE TABLE` statement for the rows of it that are under way.
pub fn declaration(column: &ColumnDef) -> String {
    format!("{} {} COLLATE {}", quoted_name(&column.name), affinity(column.kind), column.collation.name())
}

/// All columns of a table in SQLite's numbering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    columns: Vec<Shown>,
    /// How many are not hidden.
    visible: usize,
}

impl Shape {
    /// The columns of a table.
    pub fn of(table: &Table) -> Self {
        let def = table.def();
        let stored = def.visible_columns().map(|(at, column)| Shown::stored(at, column));
        let built_in = if table.name() == store::BUILT_IN { BUILT_IN } else { &[] };
        let built_in = built_in.iter().map(|(name, head)| Shown::head(name, *head, false));
        let mut columns: Vec<Shown> = stored.chain(built_in).collect();
        let visible = columns.len();
        columns.extend(HIDDEN.iter().map(|(name, head, _)| Shown::head(name, *head, true)));
        let made = def.columns.iter().enumerate().filter(|(_, column)| column.hidden && !column.pending);
        columns.extend(made.map(|(at, column)| Shown::stored(at, column)));
        columns.extend((0..def.columns.len()).filter(|&at| has_absence(def, at)).map(Shown::absent));
        Self { columns, visible }
    }

    /// All of them, hidden ones included.
    pub fn columns(&self) -> &[Shown] {
        &self.columns
    }

    /// The columns that `*` stands for, and that `INSERT` without a list of columns fills.
    pub fn visible(&self) -> &[Shown] {
        &self.columns[..self.visible]
    }

    /// The column at a position in SQLite's numbering.
    pub fn column(&self, at: usize) -> Option<Column> {
        Some(self.columns.get(at)?.column)
    }

    /// A column by its name, in any ASCII case.
    pub fn named(&self, name: &str) -> Option<&Shown> {
        self.columns.iter().find(|shown| shown.name.eq_ignore_ascii_case(name))
    }
}

/// The beginning of the names of columns that say where others are NULL. A name with a space is nobody's by accident.
const ABSENCE: &str = "_null ";

/// Whether a table has a hidden column that says where this one is NULL.
///
/// SQLite has NULL before all values and PostgreSQL behind them, and SQLite never asks a virtual table for PostgreSQL's
/// order. So a statement asks for the order of two columns, this one first, which an index can give.
pub fn has_absence(def: &TableDef, column: usize) -> bool {
    let of = |index: &IndexDef| index.elements.is_none() && index.columns.contains(&column);
    let is_free = || def.column_index(&name_of_absence(column)).is_none();
    def.may_be_null(column) && !def.columns[column].pending && def.indexes.iter().any(of) && is_free()
}

/// The name of the column that says where this one is NULL.
pub fn name_of_absence(column: usize) -> String {
    format!("{ABSENCE}{column}")
}

/// The column of which a column of this name says where it is NULL.
pub fn column_of_absence(name: &str) -> Option<usize> {
    let (head, number) = name.split_at_checked(ABSENCE.len())?;
    number.parse().ok().filter(|_| head.eq_ignore_ascii_case(ABSENCE))
}

/// The type of a table's column as clients see it.
pub fn type_of(table: &Table, column: usize) -> SqlType {
    match table.column_type(column) {
        SqlType::Unknown => SqlType::Text,
        known => known,
    }
}

/// The type that gives a column this affinity. `ANY` would mean NUMERIC to SQLite, so it is left out.
fn affinity(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Integer => "INTEGER",
        ColumnKind::Real => "REAL",
        // Texts of decimal numbers compare by a collation of their own.
        ColumnKind::Text | ColumnKind::Numeric => "TEXT",
        ColumnKind::Blob => "BLOB",
        ColumnKind::Any => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_columns_are_on_the_users_page() {
        let page = include_str!("../../../docs/tables.md");
        for (name, _, meaning) in HIDDEN {
            if let Some(meaning) = meaning {
                let line = format!("| `{name}` | {meaning} |");
                assert!(page.contains(&line), "{line}");
            }
        }
    }
}
