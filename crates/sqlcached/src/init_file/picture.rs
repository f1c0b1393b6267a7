//! What is defined, in words that are alike in every process: without numbers, places in payloads and grants.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fmt::Write as _;

use engine::Engine;
use store::Catalog;
use store::definition::{ColumnDef, IndexDef, TableDef};

/// What stands between an option's name and its text.
pub(super) const OPTION_IS: &str = " = ";

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Schema,
    Type,
    Sequence,
    Server,
    Table,
    /// What stood in a table's `WITH`.
    Options,
    /// The rows of a table.
    Rows,
    Index,
    Rule,
    View,
    Routine,
}

/// Something that has a definition. An index and a rule are named with their table's schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Object {
    pub(super) kind: Kind,
    pub(super) name: String,
}

impl Object {
    pub(super) fn new(kind: Kind, name: &str) -> Self {
        Self { kind, name: name.to_owned() }
    }

    /// What has to be there for this to be there: options and rows are their table's.
    pub(super) fn holder(&self) -> Self {
        match self.kind {
            Kind::Options | Kind::Rows => Self::new(Kind::Table, &self.name),
            _ => self.clone(),
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Schema => "schema",
            Kind::Type => "type",
            Kind::Sequence => "sequence",
            Kind::Server => "server",
            Kind::Table | Kind::Options | Kind::Rows => "table",
            Kind::Index => "index",
            Kind::Rule => "expiry rule",
            Kind::View => "view",
            Kind::Routine => "function",
        };
        write!(out, "{kind} {}", self.name)
    }
}

/// Every object with the clauses of its definition.
pub(super) type Picture = BTreeMap<Object, BTreeSet<String>>;

/// What is defined now.
pub(super) fn picture(catalog: &Catalog) -> Picture {
    let mut seen = Picture::new();
    let mut see = |kind, name: &str, clauses: Vec<String>| {
        seen.insert(Object::new(kind, name), clauses.into_iter().collect());
    };
    catalog.namespaces().iter().for_each(|own| see(Kind::Schema, &own.name, Vec::new()));
    catalog.enums().iter().for_each(|own| see(Kind::Type, &own.name, vec![own.labels.join(", ")]));
    for own in catalog.sequences() {
        let def = own.def();
        let numbers = format!("{} to {} by {} from {}", def.min, def.max, def.increment, def.start);
        see(Kind::Sequence, &def.name, vec![numbers, format!("{} bits, cycle: {}", def.bits, def.cycle)]);
    }
    for own in catalog.servers() {
        // The password of a mapping is none of a log's business.
        see(
            Kind::Server,
            &own.name,
            own.options.iter().map(|(name, value)| format!("{name} {value}")).collect(),
        );
    }
    for table in catalog.tables() {
        let def = table.def();
        see(Kind::Table, &def.name, table_clauses(def));
        let options = def.options.list(&def.columns);
        see(
            Kind::Options,
            &def.name,
            options.iter().map(|(name, text)| format!("{name}{OPTION_IS}{text}")).collect(),
        );
        for index in def.indexes.iter().filter(|index| !index.constraint && !index.primary) {
            see(Kind::Index, &def.qualified(&index.name), vec![index_clause(def, index)]);
        }
        for rule in &def.rules {
            let clauses =
                vec![def.name.clone(), rule.condition.clone(), format!("every {} ms", rule.every_ms)];
            see(Kind::Rule, &rule.name, clauses);
        }
    }
    catalog
        .views()
        .for_each(|own| see(Kind::View, &own.name, vec![own.columns.join(", "), own.written.clone()]));
    for own in catalog.routines() {
        let returns = own.returns.as_ref().map(|returns| &returns.declared);
        let head = format!("{:?} {returns:?} {} {} {:?}", own.parameters, own.strict, own.definer, own.path);
        see(Kind::Routine, &own.name, vec![head, own.written.clone()]);
    }
    seen
}

fn table_clauses(def: &TableDef) -> Vec<String> {
    let mut clauses: Vec<String> = def.visible_columns().map(|(_, column)| column_clause(column)).collect();
    if !def.primary_key.is_empty() {
        clauses.push(format!("PRIMARY KEY ({})", names(def, &def.primary_key)));
    }
    clauses.extend(def.checks.iter().map(|check| format!("CHECK ({})", check.sql)));
    let unique = def.indexes.iter().filter(|index| index.constraint);
    clauses.extend(unique.map(|index| format!("UNIQUE ({})", names(def, &index.columns))));
    clauses
}

fn column_clause(column: &ColumnDef) -> String {
    let mut clause = format!("{} {}", column.name, column.declared);
    if column.not_null {
        clause.push_str(" NOT NULL");
    }
    if let Some(default) = &column.default {
        let _ = write!(clause, " DEFAULT {default:?}");
    }
    if let Some(sql) = &column.default_sql {
        let _ = write!(clause, " DEFAULT {sql}");
    }
    if let Some(generated) = &column.generated {
        let _ = write!(clause, " AS ({})", generated.sql);
    }
    if let Some(identity) = column.identity {
        let _ = write!(clause, " {identity:?}");
    }
    if !column.collation.is_binary() && column.enumeration.is_none() {
        let _ = write!(clause, " COLLATE {}", column.collation.name());
    }
    clause
}

/// An index by the names of its columns; an expression stands for itself.
fn index_clause(def: &TableDef, index: &IndexDef) -> String {
    let unique = if index.unique { "UNIQUE " } else { "" };
    let elements = if index.elements.is_some() { "elements of " } else { "" };
    let rest = (&index.descending, &index.collations, index.predicate.map(|at| shown(def, at)));
    format!("{unique}ON {} ({elements}{}) {rest:?}", def.name, names(def, index.named()))
}

fn names(def: &TableDef, columns: &[usize]) -> String {
    columns.iter().map(|&at| shown(def, at)).collect::<Vec<_>>().join(", ")
}

fn shown(def: &TableDef, at: usize) -> &str {
    let column = &def.columns[at];
    match &column.generated {
        Some(generated) if column.hidden => &generated.sql,
        _ => &column.name,
    }
}

/// How much was ever written to each table: a statement that changes a figure wrote rows.
pub(super) fn writes(engine: &Engine) -> BTreeMap<String, (u64, u64)> {
    let catalog = engine.store().catalog();
    let figures = |table: &store::Table| (table.stats().written, table.stats().rows);
    catalog.tables().map(|table| (table.name().to_owned(), figures(table))).collect()
}
