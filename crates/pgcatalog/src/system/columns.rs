//! The columns of the system tables: one line a table in `columns.txt`.
//!
//! `name kind oid: column type!, ...`, where kind is that of `pg_class.relkind`, oid is PostgreSQL's number for the
//! table or 0, and `!` means that the column is never NULL: a row that does not name it has 0, false or an empty text.

use std::sync::LazyLock;

use store::definition::SqlType;
use store::value::Value;

/// A table of the system as clients expect it.
#[derive(Debug)]
pub(super) struct Layout {
    /// `pg_catalog` or `information_schema`.
    pub schema: Schema,
    pub name: &'static str,
    /// The name under which SQLite knows it.
    pub registered: String,
    /// `r` or `v`.
    pub kind: &'static str,
    pub oid: u32,
    pub columns: Vec<ColumnLayout>,
}

/// One of its columns.
#[derive(Debug)]
pub(super) struct ColumnLayout {
    pub name: &'static str,
    pub ty: SqlType,
    pub not_null: bool,
}

/// Where a table of the system lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schema {
    Catalog,
    Information,
}

/// The number of the first table that PostgreSQL gives none that clients know.
const FIRST_OID: u32 = 13_000;

/// Every table of the system, in the order of the file.
pub(super) static LAYOUTS: LazyLock<Vec<Layout>> =
    LazyLock::new(|| include_str!("columns.txt").lines().zip(FIRST_OID..).filter_map(layout).collect());

/// How the tables of `information_schema` are called within SQLite, which has but one schema.
pub(super) const INFORMATION_PREFIX: &str = "information_schema_";

fn layout((line, free_oid): (&'static str, u32)) -> Option<Layout> {
    let (head, columns) = line.split_once(": ")?;
    let mut words = head.split(' ');
    let (full, kind, oid) = (words.next()?, words.next()?, words.next()?.parse().ok()?);
    let (schema, name) = match full.split_once('.') {
        Some((_, name)) => (Schema::Information, name),
        None => (Schema::Catalog, full),
    };
    Some(Layout {
        schema,
        name,
        registered: full.replace('.', "_"),
        kind,
        oid: if oid == 0 { free_oid } else { oid },
        columns: columns.split(", ").filter_map(column).collect(),
    })
}

fn column(text: &'static str) -> Option<ColumnLayout> {
    let (name, ty) = text.split_once(' ')?;
    let (ty, not_null) = ty.strip_suffix('!').map_or((ty, false), |ty| (ty, true));
    let (element, is_array) = ty.strip_suffix("[]").map_or((ty, false), |element| (element, true));
    let ty = SqlType::all().find(|known| known.name() == element)?;
    Some(ColumnLayout { name, ty: if is_array { ty.array()? } else { ty }, not_null })
}

impl Schema {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Catalog => "pg_catalog",
            Self::Information => "information_schema",
        }
    }
}

impl Layout {
    /// The table as SQLite declares it; the type that SQLite does not know is followed by one that it does.
    pub(super) fn declaration(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(ColumnLayout::declaration).collect();
        // Consoles look for what changed since a transaction, and take all if each row is of the first.
        format!("CREATE TABLE x ({}, tableoid oid INT HIDDEN, xmin xid INT HIDDEN)", columns.join(", "))
    }

    /// Whether its rows are computed for one table of the user's, if the statement names it: they cost something.
    pub(super) fn is_by_table(&self) -> bool {
        ["sqlcached_hot", "sqlcached_largest", "sqlcached_prefixes"].contains(&self.name)
    }

    /// The position of a column.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

impl ColumnLayout {
    fn declaration(&self) -> String {
        let array = if self.ty.is_array() { "[]" } else { "" };
        format!("\"{}\" \"{}{array}\" {}", self.name, self.ty.name(), self.affinity())
    }

    fn affinity(&self) -> &'static str {
        if self.is_integer() {
            "INT"
        } else if self.ty == SqlType::Float8 || self.ty == SqlType::Float4 {
            "REAL"
        } else {
            "TEXT"
        }
    }

    /// Whether its values are integers.
    pub(super) fn is_integer(&self) -> bool {
        use SqlType::{Bool, Int2, Int4, Int8, Oid, Regclass, Regnamespace, Regproc, Regrole, Regtype, Xid};
        [Bool, Int2, Int4, Int8, Oid, Regclass, Regnamespace, Regproc, Regrole, Regtype, Xid]
            .contains(&self.ty)
    }

    /// What a row holds that says nothing of this column.
    pub(super) fn unset(&self) -> Value {
        match self.not_null {
            false => Value::Null,
            true if self.is_integer() => Value::Integer(0),
            true if self.affinity() == "REAL" => Value::Real(0.0),
            true => Value::Text(String::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_and_column_is_understood() {
        let text = include_str!("columns.txt");
        assert_eq!(LAYOUTS.len(), text.lines().count());
        for (line, layout) in text.lines().zip(LAYOUTS.iter()) {
            assert_eq!(layout.columns.len(), line.matches(", ").count() + 1, "{line}");
        }
        let mut oids: Vec<u32> = LAYOUTS.iter().map(|layout| layout.oid).collect();
        oids.sort_unstable();
        oids.dedup();
        assert_eq!(oids.len(), LAYOUTS.len());
    }
}
