//! Tables and indexes as PostgreSQL's catalogue sees them: with numbers, and the primary key as an index.

use std::fmt::Write;
use std::sync::Arc;

use sqltext::token::{Kind, tokens};
use store::definition::{CheckDef, ColumnDef, EnumDef, ForeignKey, Identity, SqlType, ViewColumn, ViewDef};
use store::{BUILT_IN, Catalog, Index, Table};

use super::content::{PUBLIC_NAME, schema_of};
use super::oid::{Named, oid_of_name, oid_of_sequence, oid_of_table};
pub(super) use crate::names::{identifier, qualified};
use crate::predicate::predicate_of;
use crate::sequence::{Source, column_sequence};
use crate::shape::type_of;
use crate::shape::{Column, Shape};
use crate::words::in_postgresqls_words;

/// PostgreSQL's numbers for the index methods.
pub(super) const BTREE: u32 = 403;
/// See [`BTREE`].
pub(super) const HASH: u32 = 405;
/// See [`BTREE`].
pub(super) const GIN: u32 = 2742;

/// One column of a table, hidden ones left out.
#[derive(Debug)]
pub(super) struct ColumnFacts<'t> {
    pub name: String,
    pub ty: SqlType,
    /// What stood in parentheses behind the type, in PostgreSQL's form; -1: nothing.
    pub modifier: i64,
    pub not_null: bool,
    /// None for the columns of the built-in table that are made of a row's head.
    pub def: Option<&'t ColumnDef>,
    /// The sequence of a column that was declared `SERIAL`, as SQL names it.
    pub serial: Option<String>,
}

impl ColumnFacts<'_> {
    /// The name of its type as SQL spells it.
    pub(super) fn type_name(&self, ty: SqlType) -> String {
        let brackets = if ty.is_array() { "[]" } else { "" };
        match self.enumeration() {
            Some(own) => format!("{}{brackets}", shown_enum(own)),
            None => ty.sql_name(),
        }
    }

    /// Its enum type.
    pub(super) fn enumeration(&self) -> Option<&EnumDef> {
        self.def?.enumeration.as_deref()
    }
}

/// The columns that `*` stands for.
pub(super) fn columns_of(table: &Table) -> Vec<ColumnFacts<'_>> {
    let shape = Shape::of(table);
    let facts = |shown: &crate::shape::Shown| match shown.column {
        Column::Stored(at) => column_at(table, at),
        Column::Head(_) | Column::Absent(_) => None,
    };
    let head = |shown: &crate::shape::Shown| ColumnFacts {
        name: shown.name.clone(),
        ty: SqlType::Int8,
        modifier: -1,
        not_null: false,
        def: None,
        serial: None,
    };
    shape.visible().iter().map(|shown| facts(shown).unwrap_or_else(|| head(shown))).collect()
}

/// The columns of a view.
pub(super) fn columns_of_view(view: &ViewDef) -> Vec<ColumnFacts<'static>> {
    let facts = |column: &ViewColumn| ColumnFacts {
        name: column.name.clone(),
        ty: SqlType::of_oid(column.ty).unwrap_or(SqlType::Text),
        modifier: i64::from(modifier(&column.declared)),
        not_null: false,
        def: None,
        serial: None,
    };
    view.shape.iter().map(facts).collect()
}

/// The column at a position in the table's definition; one made for an index is called `expr`.
pub(super) fn column_at(table: &Table, at: usize) -> Option<ColumnFacts<'_>> {
    let def = table.def().columns.get(at)?;
    Some(ColumnFacts {
        name: if def.hidden { "expr".to_owned() } else { def.name.clone() },
        ty: type_of(table, at),
        modifier: i64::from(modifier(&def.declared)),
        not_null: def.not_null,
        def: Some(def),
        serial: (def.identity == Some(Identity::Serial)).then(|| {
            let sequence = column_sequence(table.def(), &def.name);
            qualified(table.def().namespace.as_deref(), &sequence)
        }),
    })
}

/// The number by which clients know the column at a position, from 1; 0 for an expression.
pub(super) fn number_of(table: &Table, at: usize) -> usize {
    table.def().visible_columns().position(|(own, _)| own == at).map_or(0, |rank| rank + 1)
}

/// The number of a condition that all rows meet.
pub(super) fn check_oid(table: &Table, name: &str) -> u32 {
    oid_of_name(Named::Constraint, oid_of_table(table), name)
}

/// The conditions that users declared; one that stands for `NOT NULL` while it is made is none.
pub(super) fn checks_of(table: &Table) -> impl Iterator<Item = &CheckDef> {
    table.def().checks.iter().filter(|check| check.not_null.is_none())
}

/// `varchar(20)` and `numeric(10, 2)` as PostgreSQL keeps them in `atttypmod`.
pub fn modifier(declared: &str) -> i32 {
    const HEADER: i32 = 4;
    /// A scale may be negative, and has so many bits.
    const SCALE: i32 = 0x7ff;
    let inside = declared.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    let Some((inside, _)) = inside else { return -1 };
    let numbers: Vec<i32> = inside.split(',').filter_map(|number| number.trim().parse().ok()).collect();
    match (SqlType::of_declared(declared), numbers.as_slice()) {
        (Some(SqlType::Varchar | SqlType::Bpchar), [length]) => length.saturating_add(HEADER),
        (Some(SqlType::Numeric), [precision]) => (precision << 16) + HEADER,
        (Some(SqlType::Numeric), [precision, scale]) => (precision << 16 | scale & SCALE) + HEADER,
        (Some(SqlType::Timestamp | SqlType::Timestamptz | SqlType::Time | SqlType::Timetz), [digits]) => {
            *digits
        }
        _ => -1,
    }
}

/// An index, or the primary key.
#[derive(Debug)]
pub(super) struct IndexFacts {
    pub oid: u32,
    pub name: String,
    /// Positions of the table's columns.
    pub columns: Vec<usize>,
    pub unique: bool,
    pub primary: bool,
    /// Made by `UNIQUE` or `PRIMARY KEY` and not by `CREATE INDEX`.
    pub constraint: bool,
    /// None for a primary key that is found by hash only.
    pub index: Option<Arc<Index>>,
}

/// The primary key first, then the indexes in the order of their making.
pub(super) fn indexes_of(table: &Table) -> Vec<IndexFacts> {
    let key = &table.def().primary_key;
    let key_name = table.def().key_name().into_owned();
    let oid = |name: &str| oid_of_name(Named::Index, oid_of_table(table), name);
    let mut found = Vec::new();
    if !key.is_empty() && !table.def().key_dropped {
        let index = table.indexes().iter().find(|index| index.name().eq_ignore_ascii_case(&key_name));
        found.push(IndexFacts {
            oid: oid(&key_name),
            columns: key.clone(),
            unique: true,
            primary: true,
            constraint: true,
            index: index.cloned(),
            name: key_name.clone(),
        });
    }
    // A key that was added to rows which lie under numbers is an index like any other, with the name of a key.
    let is_key = |name: &str| !key.is_empty() && name.eq_ignore_ascii_case(&key_name);
    for index in table.indexes().iter().filter(|index| !is_key(index.name())) {
        let def = index.def();
        found.push(IndexFacts {
            oid: oid(index.name()),
            name: index.name().to_owned(),
            columns: def.named().to_vec(),
            unique: def.unique,
            primary: def.primary,
            constraint: def.constraint
                || (def.unique && is_of_constraint(table.def().own_name(), index.name())),
            index: Some(Arc::clone(index)),
        });
    }
    found
}

/// `UNIQUE` in a table's definition names its index `table_columns_key`, as PostgreSQL does.
fn is_of_constraint(table: &str, index: &str) -> bool {
    let rest = index.strip_prefix(table).and_then(|rest| rest.strip_prefix('_'));
    rest.is_some_and(|rest| rest.trim_end_matches(|digit: char| digit.is_ascii_digit()).ends_with("_key"))
}

impl IndexFacts {
    pub(super) fn method(&self) -> u32 {
        match &self.index {
            Some(index) if index.def().elements.is_some() => GIN,
            Some(_) => BTREE,
            None => HASH,
        }
    }

    pub(super) fn method_name(&self) -> &'static str {
        match self.method() {
            GIN => "gin",
            BTREE => "btree",
            _ => "hash",
        }
    }

    /// Its columns and expressions as they are declared.
    pub(super) fn column_list(&self, table: &Table) -> String {
        let def = self.index.as_ref().map(|index| index.def());
        let columns = self.columns.iter().enumerate().filter_map(|(at, &column)| {
            let column = table.def().columns.get(column)?;
            let name = shown(column);
            let collation = def.and_then(|def| def.collations.get(at).copied().flatten());
            let collation = collation.map_or_else(String::new, |own| format!(" COLLATE {}", own.name()));
            let order = if def.is_some_and(|def| def.is_descending(at)) { " DESC" } else { "" };
            Some(format!("{name}{collation}{order}"))
        });
        columns.collect::<Vec<_>>().join(", ")
    }

    /// The condition of an index of some rows; in parentheses where it is more than a column, as PostgreSQL shows it.
    pub(super) fn condition(&self, table: &Table) -> Option<String> {
        let predicate = self.index.as_ref().and_then(|index| index.def().predicate)?;
        let generated = table.def().columns.get(predicate)?.generated.as_ref()?;
        let condition = in_postgresqls_words(predicate_of(&generated.sql)?.trim());
        let is_name = tokens(&condition).len() == 1;
        Some(if is_name { condition } else { format!("({condition})") })
    }

    /// The statement that makes it.
    pub(super) fn definition(&self, table: &Table) -> String {
        let unique = if self.unique { "UNIQUE " } else { "" };
        format!(
            "CREATE {unique}INDEX {} ON {}.{} USING {} ({}){}",
            identifier(&self.name),
            identifier(schema_of(table)),
            identifier(table.def().own_name()),
            self.method_name(),
            self.column_list(table),
            self.condition(table).map_or_else(String::new, |condition| format!(" WHERE {condition}"))
        )
    }

    /// The constraint as it stands in a table's definition.
    pub(super) fn constraint_definition(&self, table: &Table) -> String {
        let what = if self.primary { "PRIMARY KEY" } else { "UNIQUE" };
        format!("{what} ({})", self.column_list(table))
    }

    pub(super) fn constraint_oid(&self, table: &Table) -> u32 {
        oid_of_name(Named::Constraint, oid_of_table(table), &self.name)
    }
}

/// The table that a foreign key refers to, and the positions of its columns there.
pub(super) fn referenced<'c>(catalog: &'c Catalog, key: &ForeignKey) -> Option<(&'c Arc<Table>, Vec<usize>)> {
    let table = catalog.table(&key.table)?;
    let columns = if key.references.is_empty() {
        let added = || table.def().added_key().map(|key| key.columns.clone()).unwrap_or_default();
        let own = &table.def().primary_key;
        if own.is_empty() { added() } else { own.clone() }
    } else {
        key.references.iter().filter_map(|name| table.def().column_index(name)).collect()
    };
    Some((table, columns))
}

/// A foreign key as it stands in a table's definition.
pub(super) fn foreign_key_definition(catalog: &Catalog, key: &ForeignKey) -> String {
    let list = |names: &[String]| names.iter().map(|name| identifier(name)).collect::<Vec<_>>().join(", ");
    let mut sql =
        format!("FOREIGN KEY ({}) REFERENCES {}", list(&key.columns), shown_name(catalog, &key.table));
    let names = |(table, columns): (&Arc<Table>, Vec<usize>)| -> Vec<String> {
        columns.into_iter().filter_map(|at| Some(table.def().columns.get(at)?.name.clone())).collect()
    };
    let references = referenced(catalog, key).map_or_else(|| key.references.clone(), names);
    if !references.is_empty() {
        let _ = write!(sql, "({})", list(&references));
    }
    for (clause, action) in [("ON UPDATE", &key.on_update), ("ON DELETE", &key.on_delete)] {
        if !action.is_empty() && action != "NO ACTION" {
            let _ = write!(sql, " {clause} {action}");
        }
    }
    sql
}

/// A column's name, or the expression that it was made for, by its position in the table's definition.
pub(super) fn shown_at(table: &Table, at: usize) -> Option<String> {
    table.def().columns.get(at).map(shown)
}

fn shown(column: &ColumnDef) -> String {
    match &column.generated {
        Some(generated) if column.hidden => {
            let shown = in_postgresqls_words(&generated.sql);
            if is_call(&shown) { shown } else { format!("({shown})") }
        }
        _ => identifier(&column.name),
    }
}

/// Whether an expression is one call, around which PostgreSQL shows no parentheses.
pub(super) fn is_call(sql: &str) -> bool {
    let all = tokens(sql);
    let [name, open, rest @ .., last] = all.as_slice() else { return false };
    let mut depth = 1_usize;
    let mut inside = rest.iter().all(|token| {
        depth += usize::from(token.is_sign("("));
        depth = depth.saturating_sub(usize::from(token.is_sign(")")));
        depth > 0
    });
    inside &= depth == 1;
    name.kind == Kind::Word
        && !name.is_any(&["CAST", "NOT"])
        && open.is_sign("(")
        && last.is_sign(")")
        && inside
}

/// A sequence of either kind, as clients are shown it.
#[derive(Debug)]
pub(super) struct SequenceFacts {
    pub oid: u32,
    /// Its name in its schema.
    pub name: String,
    pub namespace: Option<String>,
    pub ty: SqlType,
    pub start: i64,
    pub increment: i64,
    pub min: i64,
    pub max: i64,
    pub cache: i64,
    pub cycle: bool,
    /// The column with which it goes: its table, its number from 1, and how it depends on it.
    pub owner: Option<(u32, usize, &'static str)>,
    pub source: Source,
}

/// The sequence of a table's numbered column.
pub(super) fn sequence_of(table: &Arc<Table>) -> Option<SequenceFacts> {
    let columns = columns_of(table);
    let (at, column) = columns.iter().enumerate().find(|(_, column)| is_numbered(column))?;
    let name = column_sequence(table.def(), &column.name);
    let serial = column.def.and_then(|def| def.identity) == Some(Identity::Serial);
    let max = match column.ty {
        SqlType::Int2 => i64::from(i16::MAX),
        SqlType::Int4 => i64::from(i32::MAX),
        _ => i64::MAX,
    };
    Some(SequenceFacts {
        oid: oid_of_name(Named::Sequence, oid_of_table(table), &name),
        name,
        namespace: table.def().namespace.clone(),
        ty: column.ty,
        start: 1,
        increment: 1,
        min: 1,
        max,
        cache: 1,
        cycle: false,
        owner: Some((oid_of_table(table), at + 1, if serial { "a" } else { "i" })),
        source: Source::Column(Arc::clone(table)),
    })
}

/// All sequences: those of columns, then those of their own.
pub(super) fn all_sequences(catalog: &Catalog) -> Vec<SequenceFacts> {
    let own = catalog.sequences().iter().map(|own| {
        let def = own.def();
        let owner = def.owner.as_ref().and_then(|(id, column)| {
            let table = catalog.tables().find(|table| table.def().id == *id)?;
            Some((oid_of_table(table), number_of(table, table.def().column_index(column)?), "a"))
        });
        SequenceFacts {
            oid: oid_of_sequence(def),
            name: def.own_name().to_owned(),
            namespace: def.namespace.clone(),
            ty: match def.bits {
                16 => SqlType::Int2,
                32 => SqlType::Int4,
                _ => SqlType::Int8,
            },
            start: def.start,
            increment: def.increment,
            min: def.min,
            max: def.max,
            cache: def.cache,
            cycle: def.cycle,
            owner,
            source: Source::Own(Arc::clone(own)),
        }
    });
    catalog.tables().filter_map(sequence_of).chain(own).collect()
}

/// Whether the server numbers the rows by this column.
pub(super) fn is_numbered(column: &ColumnFacts<'_>) -> bool {
    column.def.is_some_and(|def| def.identity.is_some())
}

/// All tables, the built-in one last, so that what users made comes first where nobody sorts.
pub(super) fn tables_of(catalog: &Catalog) -> Vec<&Arc<Table>> {
    let mut tables: Vec<_> = catalog.tables().collect();
    tables.sort_by_key(|table| table.name() == BUILT_IN);
    tables
}

/// A table's name, with its schema where that is not `public`, or where the session does not look there.
fn shown_name(catalog: &Catalog, name: &str) -> String {
    match catalog.table(name) {
        Some(table) if table.def().namespace.is_none() && !catalog.is_visible(None, table.name()) => {
            format!("{}.{}", PUBLIC_NAME, identifier(table.name()))
        }
        Some(table) => qualified(table.def().namespace.as_deref(), table.def().own_name()),
        None => identifier(name),
    }
}

/// The same of an enum type.
pub(super) fn shown_enum(own: &EnumDef) -> String {
    qualified(own.namespace.as_deref(), own.own_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_are_postgresqls() {
        for (declared, expected) in
            [("varchar(20)", 24), ("NUMERIC(10, 2)", (10 << 16) + 6), ("int(11)", -1), ("timestamp(3)", 3)]
        {
            assert_eq!(modifier(declared), expected, "{declared}");
        }
    }
}
