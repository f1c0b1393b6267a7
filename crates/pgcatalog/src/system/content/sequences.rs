//! Sequences: `pg_sequence`, `pg_sequences`, their rows in other tables, and what depends on what.

use sqltext::token::{tokens, unquoted};
use store::Catalog;
use store::definition::{Identity, SqlType};
use store::value::Value;

use super::super::System;
use super::super::comments::CLASSES;
use super::super::oid::{oid_of_default, oid_of_table, oid_of_view};
use super::super::relation::{ColumnFacts, SequenceFacts, all_sequences, tables_of};
use super::super::rows::{Rows, flag, int, text, yes_or_no};
use super::fixed::{PUBLIC_NAME, namespace_named};
use super::grants;
use super::relations::attribute;
use crate::sequence::{SEES, calls_in, named_in, source};

/// The number of `pg_attrdef`.
const DEFAULTS: u32 = 2_604;

fn schema_of(sequence: &SequenceFacts) -> &str {
    sequence.namespace.as_deref().unwrap_or(PUBLIC_NAME)
}

/// The sequences among `pg_class`.
pub(super) fn classes(system: &System, rows: &mut Rows) {
    for sequence in all_sequences(&system.catalog()) {
        let access = sequence.source.access();
        rows.add([
            ("oid", int(sequence.oid)),
            ("relname", text(&sequence.name)),
            ("relnamespace", int(namespace_named(schema_of(&sequence)))),
            ("relowner", grants::owner_oid(system, &access)),
            ("relpages", int(1)),
            ("reltuples", Value::Real(1.0)),
            // A dump expects of the sequence of an identity column what its table is.
            (
                "relpersistence",
                text(if sequence.owner.is_some_and(|owner| owner.2 == "i") { "u" } else { "p" }),
            ),
            ("relkind", text("S")),
            ("relnatts", int(COLUMNS.len())),
            ("relispopulated", flag(true)),
            ("relreplident", text("n")),
            ("relacl", grants::of_sequence(system, &access)),
        ]);
    }
}

/// The columns of a sequence.
const COLUMNS: &[(&str, SqlType)] =
    &[("last_value", SqlType::Int8), ("log_cnt", SqlType::Int8), ("is_called", SqlType::Bool)];

/// The sequences' columns among `pg_attribute`.
pub(super) fn attributes(catalog: &Catalog, rows: &mut Rows) {
    for sequence in all_sequences(catalog) {
        for (number, (name, ty)) in (1..).zip(COLUMNS) {
            let (name, ty) = ((*name).to_owned(), *ty);
            let column = ColumnFacts { name, ty, modifier: -1, not_null: true, def: None, serial: None };
            attribute(sequence.oid, number, &column, Value::Null, rows);
        }
    }
}

/// `pg_sequence`
pub(super) fn sequences(system: &System, rows: &mut Rows) {
    for sequence in all_sequences(&system.catalog()) {
        rows.add([
            ("seqrelid", int(sequence.oid)),
            ("seqtypid", int(sequence.ty.oid())),
            ("seqstart", int(sequence.start)),
            ("seqincrement", int(sequence.increment)),
            ("seqmax", int(sequence.max)),
            ("seqmin", int(sequence.min)),
            ("seqcache", int(sequence.cache)),
            ("seqcycle", flag(sequence.cycle)),
        ]);
    }
}

/// `pg_sequences`
pub(super) fn sequence_list(system: &System, rows: &mut Rows) {
    let holder = system.identity().holder();
    for sequence in all_sequences(&system.catalog()) {
        let last = if sequence.source.is_allowed(&holder, SEES) { sequence.source.last() } else { None };
        let access = sequence.source.access();
        rows.add([
            ("schemaname", text(schema_of(&sequence))),
            ("sequencename", text(&sequence.name)),
            ("sequenceowner", text(&grants::owner_name(system, &access))),
            ("data_type", int(sequence.ty.oid())),
            ("start_value", int(sequence.start)),
            ("min_value", int(sequence.min)),
            ("max_value", int(sequence.max)),
            ("increment_by", int(sequence.increment)),
            ("cycle", flag(sequence.cycle)),
            ("cache_size", int(sequence.cache)),
            ("last_value", last.map_or(Value::Null, int)),
        ]);
    }
}

/// `information_schema.sequences`: not those of identity columns, as in PostgreSQL.
pub(super) fn information(system: &System, rows: &mut Rows) {
    let of_identity = |sequence: &SequenceFacts| sequence.owner.is_some_and(|(_, _, kind)| kind == "i");
    for sequence in all_sequences(&system.catalog()).iter().filter(|sequence| !of_identity(sequence)) {
        let number = |number: i64| text(&number.to_string());
        rows.add([
            ("sequence_catalog", text(&system.identity().database)),
            ("sequence_schema", text(schema_of(sequence))),
            ("sequence_name", text(&sequence.name)),
            ("data_type", text(&sequence.ty.sql_name())),
            ("numeric_precision", int(8 * i64::from(sequence.ty.size()))),
            ("numeric_precision_radix", int(2)),
            ("numeric_scale", int(0)),
            ("start_value", number(sequence.start)),
            ("minimum_value", number(sequence.min)),
            ("maximum_value", number(sequence.max)),
            ("increment", number(sequence.increment)),
            ("cycle_option", yes_or_no(sequence.cycle)),
        ]);
    }
}

/// `pg_depend`: which sequence goes with which column, and which default needs which sequence.
pub(super) fn dependencies(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    super::fixed::extension_members(&catalog, rows);
    let mut add = |class: u32, object: u32, (refers, column): (u32, usize), kind: &str| {
        rows.add([
            ("classid", int(class)),
            ("objid", int(object)),
            ("objsubid", int(0)),
            ("refclassid", int(CLASSES)),
            ("refobjid", int(refers)),
            ("refobjsubid", int(column)),
            ("deptype", text(kind)),
        ]);
    };
    let all = all_sequences(&catalog);
    for sequence in &all {
        if let Some((table, column, kind)) = sequence.owner {
            add(CLASSES, sequence.oid, (table, column), kind);
        }
    }
    // PostgreSQL says so of the view's rule, and a dump asks for nothing more than what needs what.
    for view in catalog.views() {
        let words: Vec<String> =
            tokens(&view.sql).iter().map(|token| unquoted(token.text).to_lowercase()).collect();
        let reads = |name: &str| words.contains(&name.to_lowercase());
        for table in catalog.tables().filter(|table| reads(table.name())) {
            add(CLASSES, oid_of_view(view), (oid_of_table(table), 0), "n");
        }
        for other in catalog.views().filter(|other| other.name != view.name && reads(&other.name)) {
            add(CLASSES, oid_of_view(view), (oid_of_view(other), 0), "n");
        }
    }
    for view in tables_of(&catalog) {
        let Some(query) = &view.def().materialized else { continue };
        let words: Vec<String> =
            tokens(&query.sql).iter().map(|token| unquoted(token.text).to_lowercase()).collect();
        let reads = |name: &str| words.contains(&name.to_lowercase()) && name != view.name();
        for table in catalog.tables().filter(|table| reads(table.name())) {
            add(CLASSES, oid_of_table(view), (oid_of_table(table), 0), "n");
        }
        for other in catalog.views().filter(|other| reads(&other.name)) {
            add(CLASSES, oid_of_table(view), (oid_of_view(other), 0), "n");
        }
    }
    for table in tables_of(&catalog) {
        let oid = oid_of_table(table);
        for (at, (_, column)) in table.def().visible_columns().enumerate() {
            let serial = column.identity == Some(Identity::Serial);
            let own = all
                .iter()
                .find(|facts| serial && facts.owner.is_some_and(|of| of.0 == oid && of.1 == at + 1));
            if let Some(facts) = own {
                add(DEFAULTS, oid_of_default(oid, at), (facts.oid, 0), "n");
            }
            let Some(sql) = &column.default_sql else { continue };
            let used = named_in(sql).into_iter().filter_map(|name| source(&catalog, &name));
            for used in used {
                let facts = all.iter().find(|facts| facts.source.numbered() == used.numbered());
                facts.inspect(|facts| add(DEFAULTS, oid_of_default(oid, at), (facts.oid, 0), "n"));
            }
        }
    }
}

/// A default as clients read it: `nextval('s'::regclass)`.
pub(super) fn shown_default(sql: &str) -> String {
    let all = tokens(sql);
    let mut out = String::new();
    let mut copied = 0;
    for text in calls_in(&all) {
        out.push_str(&sql[copied..text.end()]);
        out.push_str("::regclass");
        copied = text.end();
    }
    out.push_str(&sql[copied..]);
    let bare = out.strip_prefix('(').and_then(|out| out.strip_suffix(')'));
    // The parentheses are ours.
    bare.filter(|bare| copied > 0 && bare.ends_with("::regclass)")).map_or_else(|| out.clone(), str::to_owned)
}
