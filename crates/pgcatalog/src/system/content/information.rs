//! `information_schema`: the same as the catalogue, in the words of the SQL standard.

use store::Table;
use store::definition::{EnumDef, Identity, SqlType};
use store::value::Value;

use super::super::System;
use super::super::columns::LAYOUTS;
use super::super::relation::{
    ColumnFacts, checks_of, column_at, columns_of, columns_of_view, indexes_of, referenced, tables_of,
};
use super::super::rows::{Rows, int, text, yes_or_no};
use super::activity::optional;
use super::fixed::{namespace_names, schema_of, schema_of_enum, schema_of_view};
use super::relations::default_text;
use crate::words::in_postgresqls_words;

/// What PostgreSQL says of a text without a length.
const TEXT_BYTES: i64 = 1 << 30;
/// Bytes of a character of UTF-8, at most.
const CHARACTER_BYTES: i64 = 4;

/// `information_schema.schemata`
pub(super) fn schemata(system: &System, rows: &mut Rows) {
    for name in namespace_names(&system.catalog()) {
        rows.add([
            ("catalog_name", database(system)),
            ("schema_name", text(&name)),
            ("schema_owner", text(&system.owner())),
        ]);
    }
}

fn database(system: &System) -> Value {
    text(&system.identity().database)
}

/// `information_schema.information_schema_catalog_name`
pub(super) fn catalog_name(system: &System, rows: &mut Rows) {
    rows.add([("catalog_name", database(system))]);
}

/// `information_schema.character_sets`
pub(super) fn character_sets(system: &System, rows: &mut Rows) {
    rows.add([
        ("character_set_name", text("UTF8")),
        ("character_repertoire", text("UCS")),
        ("form_of_use", text("UTF8")),
        ("default_collate_catalog", database(system)),
    ]);
}

/// `information_schema.tables`
pub(super) fn tables(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    let mut add = |schema: &str, name: &str, base: bool, mine: bool| {
        rows.add([
            ("table_catalog", database(system)),
            ("table_schema", text(schema)),
            ("table_name", text(name)),
            ("table_type", text(if base { "BASE TABLE" } else { "VIEW" })),
            ("is_insertable_into", yes_or_no(mine)),
            ("is_typed", yes_or_no(false)),
        ]);
    };
    for table in tables_of(&catalog).into_iter().filter(|table| table.def().materialized.is_none()) {
        add(schema_of(table), table.def().own_name(), true, true);
    }
    for view in catalog.views() {
        add(schema_of_view(view), view.own_name(), false, false);
    }
    for layout in LAYOUTS.iter() {
        add(layout.schema.name(), layout.name, layout.kind == "r", false);
    }
}

/// `information_schema.columns`
pub(super) fn columns(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    for table in tables_of(&catalog).into_iter().filter(|table| table.def().materialized.is_none()) {
        for (number, column) in (1..).zip(columns_of(table)) {
            column_row(system, (schema_of(table), table.def().own_name()), number, &column, rows);
        }
    }
    for view in catalog.views() {
        for (number, column) in (1..).zip(columns_of_view(view)) {
            column_row(system, (schema_of_view(view), view.own_name()), number, &column, rows);
        }
    }
    for layout in LAYOUTS.iter() {
        for (number, column) in (1..).zip(&layout.columns) {
            let name = column.name.to_owned();
            let facts = ColumnFacts {
                name,
                ty: column.ty,
                modifier: -1,
                not_null: column.not_null,
                def: None,
                serial: None,
            };
            column_row(system, (layout.schema.name(), layout.name), number, &facts, rows);
        }
    }
}

fn column_row(
    system: &System,
    (schema, table): (&str, &str),
    number: i64,
    column: &ColumnFacts<'_>,
    rows: &mut Rows,
) {
    let size = size_of(column);
    let known = |size: Option<i64>| size.map_or(Value::Null, Value::Integer);
    let array = column.ty.is_array();
    let is_generated = column.def.is_some_and(|def| def.generated.is_some());
    let default = default_text(column).map_or(Value::Null, Value::Text);
    let identity = column.def.and_then(|def| def.identity).and_then(|identity| match identity {
        Identity::Always => Some("ALWAYS"),
        Identity::ByDefault => Some("BY DEFAULT"),
        Identity::Serial => None,
    });
    // A view's column has no definition.
    let catalog = system.catalog();
    let of_type = || column.ty.enumeration().and_then(|id| catalog.enum_of(id)).map(|own| &**own);
    let own = column.enumeration().or_else(of_type).map(EnumDef::own_name);
    let udt = format!("{}{}", if array { "_" } else { "" }, own.unwrap_or_else(|| column.ty.name()));
    let data_type = match own {
        _ if array => "ARRAY".to_owned(),
        Some(_) => "USER-DEFINED".to_owned(),
        None => column.ty.sql_name(),
    };
    rows.add([
        ("table_catalog", database(system)),
        ("table_schema", text(schema)),
        ("table_name", text(table)),
        ("column_name", text(&column.name)),
        ("ordinal_position", int(number)),
        ("column_default", if is_generated { Value::Null } else { default.clone() }),
        ("is_nullable", yes_or_no(!column.not_null)),
        ("data_type", text(&data_type)),
        ("character_maximum_length", known(size.characters)),
        ("character_octet_length", known(size.bytes)),
        ("numeric_precision", known(size.digits)),
        ("numeric_precision_radix", known(size.radix)),
        ("numeric_scale", known(size.scale)),
        ("datetime_precision", known(size.fraction)),
        ("udt_catalog", database(system)),
        ("udt_schema", text(column.enumeration().map_or("pg_catalog", schema_of_enum))),
        ("udt_name", text(&udt)),
        ("dtd_identifier", text(&number.to_string())),
        ("is_self_referencing", yes_or_no(false)),
        ("is_identity", yes_or_no(identity.is_some())),
        ("identity_generation", optional(identity)),
        ("identity_cycle", yes_or_no(false)),
        ("is_generated", text(if is_generated { "ALWAYS" } else { "NEVER" })),
        ("generation_expression", if is_generated { default.clone() } else { Value::Null }),
        ("is_updatable", yes_or_no(column.def.is_some())),
    ]);
}

/// What the standard calls the sizes of a type.
#[derive(Debug, Default)]
struct Size {
    characters: Option<i64>,
    bytes: Option<i64>,
    digits: Option<i64>,
    radix: Option<i64>,
    scale: Option<i64>,
    fraction: Option<i64>,
}

fn size_of(column: &ColumnFacts<'_>) -> Size {
    const HEADER: i64 = 4;
    let bits = |digits: i64, scale: Option<i64>| Size {
        digits: Some(digits),
        radix: Some(2),
        scale,
        ..Size::default()
    };
    let fraction = |digits: i64| Size { fraction: Some(digits), ..Size::default() };
    let length = (column.modifier > HEADER).then_some(column.modifier - HEADER);
    match column.ty {
        SqlType::Int2 => bits(16, Some(0)),
        SqlType::Int4 => bits(32, Some(0)),
        SqlType::Int8 => bits(64, Some(0)),
        SqlType::Float4 => bits(24, None),
        SqlType::Float8 => bits(53, None),
        SqlType::Numeric => Size {
            digits: length.map(|packed| packed >> 16),
            radix: Some(10),
            scale: length.map(|packed| packed & 0xffff),
            ..Size::default()
        },
        SqlType::Text => Size { bytes: Some(TEXT_BYTES), ..Size::default() },
        SqlType::Varchar | SqlType::Bpchar => Size {
            characters: length,
            bytes: Some(length.map_or(TEXT_BYTES, |length| length * CHARACTER_BYTES)),
            ..Size::default()
        },
        SqlType::Date => fraction(0),
        SqlType::Time | SqlType::Timetz | SqlType::Timestamp | SqlType::Timestamptz | SqlType::Interval => {
            fraction(if column.modifier >= 0 { column.modifier } else { 6 })
        }
        _ => Size::default(),
    }
}

/// `information_schema.table_constraints`
pub(super) fn table_constraints(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    for table in tables_of(&catalog) {
        let mut add = |name: &str, kind: &str| {
            rows.add([
                ("constraint_catalog", database(system)),
                ("constraint_schema", text(schema_of(table))),
                ("constraint_name", text(name)),
                ("table_catalog", database(system)),
                ("table_schema", text(schema_of(table))),
                ("table_name", text(table.def().own_name())),
                ("constraint_type", text(kind)),
                ("is_deferrable", yes_or_no(false)),
                ("initially_deferred", yes_or_no(false)),
                ("enforced", yes_or_no(kind != "FOREIGN KEY")),
                ("nulls_distinct", if kind == "UNIQUE" { yes_or_no(true) } else { Value::Null }),
            ]);
        };
        for index in indexes_of(table).iter().filter(|index| index.constraint) {
            add(&index.name, if index.primary { "PRIMARY KEY" } else { "UNIQUE" });
        }
        table.def().foreign_keys.iter().for_each(|key| add(&key.name, "FOREIGN KEY"));
        checks_of(table).for_each(|check| add(&check.name, "CHECK"));
    }
}

/// `information_schema.referential_constraints`
pub(super) fn referential_constraints(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    let rule = |action: &str| text(if action.is_empty() { "NO ACTION" } else { action });
    for table in tables_of(&catalog) {
        for key in &table.def().foreign_keys {
            let unique = referenced(&catalog, key).and_then(|(other, columns)| {
                let unique =
                    indexes_of(other).into_iter().find(|index| index.unique && index.columns == columns);
                Some((schema_of(other), unique?.name))
            });
            let (schema, name) = unique.unzip();
            rows.add([
                ("constraint_catalog", database(system)),
                ("constraint_schema", text(schema_of(table))),
                ("constraint_name", text(&key.name)),
                ("unique_constraint_catalog", database(system)),
                ("unique_constraint_schema", optional(schema)),
                ("unique_constraint_name", optional(name.as_deref())),
                ("match_option", text("NONE")),
                ("update_rule", rule(&key.on_update)),
                ("delete_rule", rule(&key.on_delete)),
            ]);
        }
    }
}

/// `information_schema.check_constraints`
pub(super) fn check_constraints(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    for table in tables_of(&catalog) {
        for check in checks_of(table) {
            rows.add([
                ("constraint_catalog", database(system)),
                ("constraint_schema", text(schema_of(table))),
                ("constraint_name", text(&check.name)),
                ("check_clause", text(&in_postgresqls_words(&check.sql))),
            ]);
        }
    }
}

/// `information_schema.views`
pub(super) fn views(system: &System, rows: &mut Rows) {
    for view in system.catalog().views() {
        rows.add([
            ("table_catalog", database(system)),
            ("table_schema", text(schema_of_view(view))),
            ("table_name", text(view.own_name())),
            ("view_definition", text(&view.shown())),
            ("check_option", text("NONE")),
        ]);
    }
}

/// Each column of each constraint, with the constraint's name and the column's place in it.
fn constraint_columns(system: &System, mut each: impl FnMut(&Table, &str, &str, i64)) {
    let catalog = system.catalog();
    for table in tables_of(&catalog) {
        for index in indexes_of(table).iter().filter(|index| index.constraint) {
            for (place, column) in (1..).zip(index.columns.iter().filter_map(|&at| column_at(table, at))) {
                each(table, &index.name, &column.name, place);
            }
        }
    }
}

/// `information_schema.key_column_usage`
pub(super) fn key_column_usage(system: &System, rows: &mut Rows) {
    let mut add = |table: &Table, constraint: &str, column: &str, place: i64, refers: bool| {
        rows.add([
            ("constraint_catalog", database(system)),
            ("constraint_schema", text(schema_of(table))),
            ("constraint_name", text(constraint)),
            ("table_catalog", database(system)),
            ("table_schema", text(schema_of(table))),
            ("table_name", text(table.def().own_name())),
            ("column_name", text(column)),
            ("ordinal_position", int(place)),
            ("position_in_unique_constraint", if refers { int(place) } else { Value::Null }),
        ]);
    };
    constraint_columns(system, |table, constraint, column, place| {
        add(table, constraint, column, place, false);
    });
    let catalog = system.catalog();
    for table in tables_of(&catalog) {
        for key in &table.def().foreign_keys {
            for (place, column) in (1..).zip(&key.columns) {
                add(table, &key.name, column, place, true);
            }
        }
    }
}

/// `information_schema.constraint_column_usage`: of a foreign key, the columns that it refers to.
pub(super) fn constraint_column_usage(system: &System, rows: &mut Rows) {
    let mut add = |table: &Table, constraint: &str, column: &str| {
        rows.add([
            ("table_catalog", database(system)),
            ("table_schema", text(schema_of(table))),
            ("table_name", text(table.def().own_name())),
            ("column_name", text(column)),
            ("constraint_catalog", database(system)),
            ("constraint_schema", text(schema_of(table))),
            ("constraint_name", text(constraint)),
        ]);
    };
    constraint_columns(system, |table, constraint, column, _| add(table, constraint, column));
    let catalog = system.catalog();
    for key in tables_of(&catalog).into_iter().flat_map(|table| &table.def().foreign_keys) {
        let Some((other, columns)) = referenced(&catalog, key) else { continue };
        for column in columns.into_iter().filter_map(|at| column_at(other, at)) {
            add(other, &key.name, &column.name);
        }
    }
}

/// `information_schema.constraint_table_usage`: of a foreign key, the table that it refers to.
pub(super) fn constraint_table_usage(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    let mut add = |table: &Table, constraint: &str| {
        rows.add([
            ("table_catalog", database(system)),
            ("table_schema", text(schema_of(table))),
            ("table_name", text(table.def().own_name())),
            ("constraint_catalog", database(system)),
            ("constraint_schema", text(schema_of(table))),
            ("constraint_name", text(constraint)),
        ]);
    };
    for table in tables_of(&catalog) {
        let indexes = indexes_of(table);
        indexes.iter().filter(|index| index.constraint).for_each(|index| add(table, &index.name));
        for key in &table.def().foreign_keys {
            if let Some((other, _)) = referenced(&catalog, key) {
                add(other, &key.name);
            }
        }
    }
}
