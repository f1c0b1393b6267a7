//! Tables, their columns, indexes and constraints.

use sqltext::token::{Kind, Tokens, sql_literal, unquoted};
use store::definition::{ColumnDef, Identity, SqlType};
use store::value::Value;
use store::{Catalog, Table};

use super::super::System;
use super::super::array::Elements;
use super::super::columns::LAYOUTS;
use super::super::oid::{oid_of_default, oid_of_table, oid_of_view};
use super::super::relation::{
    ColumnFacts, IndexFacts, check_oid, checks_of, column_at, columns_of, columns_of_view, indexes_of,
    is_call, number_of, referenced, tables_of,
};
use super::super::rows::{Rows, flag, int, text};
use super::fixed::{
    CACHE_METHOD, DEFAULT_COLLATION, OWNER, namespace_named, namespace_of, namespace_of_table, schema_of,
    schema_of_view,
};
use super::grants;
use super::types::facts_of;
use crate::names::{KEY_OPTION, identifier};
use crate::words::{in_postgresqls_words, is_cast};

/// PostgreSQL's pages, in which it counts sizes.
const PAGE_BYTES: u64 = 8_192;

/// `pg_class`
pub(super) fn classes(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    for table in tables_of(&catalog) {
        table_class(system, table, rows);
        for index in indexes_of(table) {
            index_class(system, table, &index, rows);
        }
    }
    super::sequences::classes(system, rows);
    for view in catalog.views() {
        rows.add([
            ("oid", int(oid_of_view(view))),
            ("relname", text(view.own_name())),
            ("relnamespace", int(namespace_named(schema_of_view(view)))),
            ("relowner", grants::owner_oid(system, &view.access)),
            ("relacl", grants::of_relation(system, &view.access, false)),
            ("relpersistence", text("p")),
            ("relkind", text("v")),
            ("relnatts", int(view.shape.len())),
            ("relispopulated", flag(true)),
            ("relreplident", text("n")),
        ]);
    }
    for layout in LAYOUTS.iter() {
        rows.add([
            ("oid", int(layout.oid)),
            ("relname", text(layout.name)),
            ("relnamespace", int(namespace_of(layout.schema))),
            ("relowner", int(OWNER)),
            ("relam", int(if layout.kind == "r" { CACHE_METHOD } else { 0 })),
            ("relpersistence", text("p")),
            ("relkind", text(layout.kind)),
            ("relnatts", int(layout.columns.len())),
            ("relispopulated", flag(true)),
            ("relreplident", text("n")),
        ]);
    }
}

fn table_class(system: &System, table: &Table, rows: &mut Rows) {
    let stats = table.stats();
    let view = table.def().materialized.as_ref();
    rows.add([
        ("oid", int(oid_of_table(table))),
        ("relname", text(table.def().own_name())),
        ("relnamespace", int(namespace_of_table(table))),
        ("relowner", grants::owner_oid(system, &table.def().access)),
        ("relacl", grants::of_relation(system, &table.def().access, table.def().options.shared_memory)),
        ("relam", int(CACHE_METHOD)),
        ("relpages", int(stats.bytes.div_ceil(PAGE_BYTES))),
        ("reltuples", Value::Real(stats.rows as f64)),
        ("relchecks", int(checks_of(table).count())),
        ("relhasindex", flag(!indexes_of(table).is_empty())),
        // psql's \d looks for foreign keys where a table has triggers, for PostgreSQL enforces them so.
        ("relhastriggers", flag(!table.def().foreign_keys.is_empty())),
        // Rows are in memory only.
        ("relpersistence", text(if view.is_some() { "p" } else { "u" })),
        ("relkind", text(if view.is_some() { "m" } else { "r" })),
        ("relnatts", int(columns_of(table).len())),
        ("relispopulated", flag(view.is_none_or(|view| view.populated))),
        ("relreplident", text("d")),
        ("reloptions", options(table)),
    ]);
}

/// The table's options as an array of `name=value`; NULL without any.
pub(super) fn options(table: &Table) -> Value {
    let def = table.def();
    let mut options = def.options.list(&def.columns);
    let is_keyed_view = def.materialized.is_some() && !def.primary_key.is_empty();
    if options.is_empty() && !is_keyed_view {
        return Value::Null;
    }
    if def.options.prefix.is_some() || is_keyed_view {
        // A dump adds the key later, and such a table needs it from the start.
        let names = def.primary_key.iter().map(|&at| identifier(&def.columns[at].name));
        options.push((KEY_OPTION, names.collect::<Vec<_>>().join(", ")));
    }
    array(options.iter().map(|(name, value)| format!("{name}={value}")))
}

/// An array of texts as values hold it: JSON.
pub(super) fn array(items: impl Iterator<Item = String>) -> Value {
    super::super::array::of_texts(items)
}

fn index_class(system: &System, table: &Table, index: &IndexFacts, rows: &mut Rows) {
    rows.add([
        ("oid", int(index.oid)),
        ("relname", text(&index.name)),
        ("relnamespace", int(namespace_of_table(table))),
        ("relowner", grants::owner_oid(system, &table.def().access)),
        ("relam", int(index.method())),
        ("reltuples", Value::Real(table.rows() as f64)),
        ("relpersistence", text("u")),
        ("relkind", text("i")),
        ("relnatts", int(index.columns.len())),
        ("relispopulated", flag(true)),
        ("relreplident", text("n")),
    ]);
}

/// `pg_attribute`
pub(super) fn attributes(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    for table in tables_of(&catalog) {
        let columns = columns_of(table);
        for (number, column) in (1..).zip(&columns) {
            let granted = column.def.map(|def| def.grants.as_slice()).unwrap_or_default();
            let acl = grants::of_column(system, &table.def().access, granted);
            attribute(oid_of_table(table), number, column, acl, rows);
        }
        for index in indexes_of(table) {
            for (number, column) in (1..).zip(index.columns.iter().filter_map(|&at| column_at(table, at))) {
                attribute(
                    index.oid,
                    number,
                    &ColumnFacts { not_null: false, def: None, serial: None, ..column },
                    Value::Null,
                    rows,
                );
            }
        }
    }
    for view in catalog.views() {
        for (number, column) in (1..).zip(&columns_of_view(view)) {
            attribute(oid_of_view(view), number, column, Value::Null, rows);
        }
    }
    super::sequences::attributes(&catalog, rows);
    for layout in LAYOUTS.iter() {
        for (number, column) in (1..).zip(&layout.columns) {
            let (name, ty) = (column.name.to_owned(), column.ty);
            let column =
                ColumnFacts { name, ty, modifier: -1, not_null: column.not_null, def: None, serial: None };
            attribute(layout.oid, number, &column, Value::Null, rows);
        }
    }
}

pub(super) fn attribute(relation: u32, number: i64, column: &ColumnFacts<'_>, acl: Value, rows: &mut Rows) {
    let facts = facts_of(column.ty);
    let is = |what: fn(&ColumnDef) -> bool| column.def.is_some_and(what);
    let identity = match column.def.and_then(|def| def.identity) {
        Some(Identity::Always) => "a",
        Some(Identity::ByDefault) => "d",
        Some(Identity::Serial) | None => "",
    };
    rows.add([
        ("attrelid", int(relation)),
        ("attname", text(&column.name)),
        ("atttypid", int(column.ty.oid())),
        ("attstattarget", int(-1)),
        ("attlen", int(column.ty.size())),
        ("attnum", int(number)),
        ("attndims", int(u8::from(column.ty.is_array()))),
        ("attcacheoff", int(-1)),
        ("atttypmod", int(column.modifier)),
        ("attbyval", flag(facts.by_value)),
        ("attalign", text(facts.align)),
        ("attstorage", text(facts.storage)),
        ("attnotnull", flag(column.not_null)),
        ("atthasdef", flag(default_text(column).is_some())),
        ("attgenerated", text(if is(|def| def.generated.is_some()) { "s" } else { "" })),
        ("attidentity", text(identity)),
        ("attislocal", flag(true)),
        ("attacl", acl),
        ("attcollation", int(if facts.collated { DEFAULT_COLLATION } else { 0 })),
    ]);
}

/// `pg_attrdef`
pub(super) fn defaults(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    for table in tables_of(&catalog) {
        let oid = oid_of_table(table);
        for (at, column) in columns_of(table).iter().enumerate() {
            let Some(default) = default_text(column) else { continue };
            rows.add([
                ("oid", int(oid_of_default(oid, at))),
                ("adrelid", int(oid)),
                ("adnum", int(at + 1)),
                ("adbin", text(&default)),
            ]);
        }
    }
}

/// A column's default as SQL; PostgreSQL shows the type of a text behind it, and clients take it off.
pub(super) fn default_text(column: &ColumnFacts<'_>) -> Option<String> {
    let def = column.def?;
    if let Some(sequence) = &column.serial {
        return Some(format!("nextval({}::regclass)", sql_literal(&Value::from(sequence.as_str()))));
    }
    if let Some(generated) = &def.generated {
        return Some(in_postgresqls_words(&generated.sql));
    }
    if let Some(expression) = &def.default_sql {
        let shown = in_postgresqls_words(&super::sequences::shown_default(expression));
        if shown.eq_ignore_ascii_case("NULL") {
            return null_default(column);
        }
        // The parentheses around a call are ours.
        let bare = shown
            .strip_prefix('(')
            .and_then(|shown| shown.strip_suffix(')'))
            .filter(|bare| is_call(bare) || is_cast(bare));
        return Some(bare.map_or_else(|| shown.clone(), str::to_owned));
    }
    let default = def.default.as_ref()?;
    Some(match (column.ty, default) {
        (_, Value::Null) => return null_default(column),
        (SqlType::Bool, Value::Integer(truth)) => if *truth == 0 { "false" } else { "true" }.to_owned(),
        (ty, Value::Text(_)) if ty.is_array() => {
            let braces = Value::Text(braces(default));
            format!("{}::{}", sql_literal(&braces), column.type_name(ty))
        }
        (ty, Value::Text(_)) => format!("{}::{}", sql_literal(default), column.type_name(ty)),
        _ => sql_literal(default),
    })
}

/// What is shown of `DEFAULT NULL`: nothing, unless the column's type says how long its values are.
fn null_default(column: &ColumnFacts<'_>) -> Option<String> {
    let has_length = column.modifier >= 0;
    has_length.then(|| format!("NULL::{}", column.type_name(column.ty)))
}

/// An array as PostgreSQL writes it.
fn braces(array: &Value) -> String {
    let element = |item: &Value| match item {
        Value::Null => "NULL".to_owned(),
        Value::Text(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        other => sql_literal(other),
    };
    let items = Elements::read(array).unwrap_or_default().items;
    format!("{{{}}}", items.iter().map(element).collect::<Vec<_>>().join(","))
}

/// `pg_index`
pub(super) fn indexes(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    for table in tables_of(&catalog) {
        for index in indexes_of(table) {
            let count = index.columns.len();
            let vector = |value: &str| text(&vec![value; count].join(" "));
            let def = index.index.as_ref().map(|index| index.def());
            // As PostgreSQL counts `DESC`, behind which it has NULLs first.
            let order = |at: usize| if def.is_some_and(|def| def.is_descending(at)) { "3" } else { "0" };
            let orders: Vec<&str> = (0..count).map(order).collect();
            let numbers: Vec<String> =
                index.columns.iter().map(|&column| number_of(table, column).to_string()).collect();
            rows.add([
                ("indexrelid", int(index.oid)),
                ("indrelid", int(oid_of_table(table))),
                ("indnatts", int(count)),
                ("indnkeyatts", int(count)),
                ("indisunique", flag(index.unique)),
                ("indisprimary", flag(index.primary)),
                ("indimmediate", flag(true)),
                ("indisvalid", flag(true)),
                ("indisready", flag(true)),
                ("indislive", flag(true)),
                ("indkey", text(&numbers.join(" "))),
                ("indcollation", vector("0")),
                ("indclass", vector("0")),
                ("indoption", text(&orders.join(" "))),
                ("indpred", index.condition(table).map_or(Value::Null, Value::Text)),
            ]);
        }
    }
}

/// `pg_constraint`
pub(super) fn constraints(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    for table in tables_of(&catalog) {
        check_constraints(table, rows);
        foreign_keys(&catalog, table, rows);
        for index in indexes_of(table).iter().filter(|index| index.constraint) {
            let numbers: Vec<String> =
                index.columns.iter().map(|&column| number_of(table, column).to_string()).collect();
            rows.add([
                ("oid", int(index.constraint_oid(table))),
                ("conname", text(&index.name)),
                ("connamespace", int(namespace_of_table(table))),
                ("contype", text(if index.primary { "p" } else { "u" })),
                ("convalidated", flag(true)),
                ("conrelid", int(oid_of_table(table))),
                ("conindid", int(index.oid)),
                ("confupdtype", text(" ")),
                ("confdeltype", text(" ")),
                ("confmatchtype", text(" ")),
                ("conislocal", flag(true)),
                ("connoinherit", flag(true)),
                ("conkey", text(&format!("[{}]", numbers.join(",")))),
            ]);
        }
    }
}

/// The conditions among `pg_constraint`.
fn check_constraints(table: &Table, rows: &mut Rows) {
    for check in checks_of(table) {
        let columns: Vec<String> =
            named_in(table, &check.sql).map(|at| number_of(table, at).to_string()).collect();
        let columns =
            if columns.is_empty() { Value::Null } else { text(&format!("[{}]", columns.join(","))) };
        rows.add([
            ("oid", int(check_oid(table, &check.name))),
            ("conname", text(&check.name)),
            ("connamespace", int(namespace_of_table(table))),
            ("contype", text("c")),
            ("convalidated", flag(true)),
            ("conrelid", int(oid_of_table(table))),
            ("confupdtype", text(" ")),
            ("confdeltype", text(" ")),
            ("confmatchtype", text(" ")),
            ("conislocal", flag(true)),
            ("conkey", columns),
            ("conbin", text(&in_postgresqls_words(&check.sql))),
        ]);
    }
}

/// The columns that a condition names.
fn named_in(table: &Table, sql: &str) -> impl Iterator<Item = usize> {
    let words: Vec<String> = Tokens::new(sql)
        .filter(|token| matches!(token.kind, Kind::Word | Kind::Quoted))
        .map(|token| unquoted(token.text))
        .collect();
    let columns = table.def().columns.iter().enumerate().filter(|(_, column)| !column.hidden);
    let is_named = |name: &str| words.iter().any(|word| word.eq_ignore_ascii_case(name));
    columns.filter(|(_, column)| is_named(&column.name)).map(|(at, _)| at).collect::<Vec<_>>().into_iter()
}

/// The foreign keys among `pg_constraint`: kept as they were declared, and not enforced.
fn foreign_keys(catalog: &Catalog, table: &Table, rows: &mut Rows) {
    let numbers = |table: &Table, columns: &[usize]| {
        let numbers: Vec<String> = columns.iter().map(|&at| number_of(table, at).to_string()).collect();
        text(&format!("[{}]", numbers.join(",")))
    };
    let named = |table: &Table, names: &[String]| -> Vec<usize> {
        names.iter().filter_map(|name| table.def().column_index(name)).collect()
    };
    for key in &table.def().foreign_keys {
        let other = referenced(catalog, key);
        let referred = other.as_ref().map(|(other, columns)| numbers(other, columns));
        let unique = other.as_ref().and_then(|(other, columns)| unique_index(other, columns));
        rows.add([
            ("oid", int(check_oid(table, &key.name))),
            ("conname", text(&key.name)),
            ("connamespace", int(namespace_of_table(table))),
            ("contype", text("f")),
            ("convalidated", flag(true)),
            ("conrelid", int(oid_of_table(table))),
            ("conindid", int(unique.unwrap_or(0))),
            ("confrelid", int(other.map_or(0, |(other, _)| oid_of_table(other)))),
            ("confupdtype", text(action(&key.on_update))),
            ("confdeltype", text(action(&key.on_delete))),
            ("confmatchtype", text("s")),
            ("conislocal", flag(true)),
            ("connoinherit", flag(true)),
            ("conkey", numbers(table, &named(table, &key.columns))),
            ("confkey", referred.unwrap_or(Value::Null)),
        ]);
    }
}

/// The index that a foreign key refers to: it makes these columns unique.
fn unique_index(table: &Table, columns: &[usize]) -> Option<u32> {
    let covers = |index: &IndexFacts| {
        index.unique
            && index.columns.len() == columns.len()
            && columns.iter().all(|at| index.columns.contains(at))
    };
    let indexes = indexes_of(table);
    let found = indexes.iter().find(|index| index.primary && covers(index));
    found.or_else(|| indexes.iter().find(|index| covers(index))).map(|index| index.oid)
}

/// The letter of an action.
fn action(name: &str) -> &'static str {
    match name {
        "RESTRICT" => "r",
        "CASCADE" => "c",
        "SET NULL" => "n",
        "SET DEFAULT" => "d",
        _ => "a",
    }
}

/// `pg_views`
pub(super) fn views(system: &System, rows: &mut Rows) {
    for view in system.catalog().views() {
        rows.add([
            ("schemaname", text(schema_of_view(view))),
            ("viewname", text(view.own_name())),
            ("viewowner", text(&grants::owner_name(system, &view.access))),
            ("definition", text(&view.shown())),
        ]);
    }
}

/// `pg_matviews`
pub(super) fn materialized_views(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    for table in tables_of(&catalog) {
        let Some(view) = &table.def().materialized else { continue };
        rows.add([
            ("schemaname", text(schema_of(table))),
            ("matviewname", text(table.def().own_name())),
            ("matviewowner", text(&grants::owner_name(system, &table.def().access))),
            ("hasindexes", flag(!indexes_of(table).is_empty())),
            ("ispopulated", flag(view.populated)),
            ("definition", text(&view.shown())),
        ]);
    }
}

/// `pg_tables`
pub(super) fn table_list(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    let owner = system.owner();
    for table in tables_of(&catalog).into_iter().filter(|table| table.def().materialized.is_none()) {
        rows.add([
            ("schemaname", text(schema_of(table))),
            ("tablename", text(table.def().own_name())),
            ("tableowner", text(&grants::owner_name(system, &table.def().access))),
            ("hasindexes", flag(!indexes_of(table).is_empty())),
            ("hasrules", flag(false)),
            ("hastriggers", flag(false)),
            ("rowsecurity", flag(false)),
        ]);
    }
    for layout in LAYOUTS.iter().filter(|layout| layout.kind == "r") {
        rows.add([
            ("schemaname", text(layout.schema.name())),
            ("tablename", text(layout.name)),
            ("tableowner", text(&owner)),
            ("hasindexes", flag(false)),
            ("hasrules", flag(false)),
            ("hastriggers", flag(false)),
            ("rowsecurity", flag(false)),
        ]);
    }
}

/// `pg_indexes`
pub(super) fn index_definitions(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    for table in tables_of(&catalog) {
        for index in indexes_of(table) {
            rows.add([
                ("schemaname", text(schema_of(table))),
                ("tablename", text(table.def().own_name())),
                ("indexname", text(&index.name)),
                ("indexdef", text(&index.definition(table))),
            ]);
        }
    }
}
