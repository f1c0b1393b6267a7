//! What objects are called, how they were defined, how large they are.

use std::sync::Arc;

use sqltext::error::SqlError;
use sqltext::token::{Kind, text_of, tokens};
use store::definition::{SqlType, ViewDef};
use store::value::Value;
use store::{BUILT_IN, Catalog, Table};

use super::{Call, FunctionDef, fallible, function, optional, truth};
use crate::function::order;
use crate::names::name_parts;
use crate::system::System;
use crate::system::columns::{LAYOUTS, Schema};
use crate::system::comments::comment_on;
use crate::system::content::{
    DATABASE_OWNER, DATABASE_OWNER_NAME, OWN_NAME, OWNER, PUBLIC_NAME, RECORD, namespace_name, namespace_oid,
    schema_of, schema_of_view,
};
use crate::system::oid::{oid_of_table, oid_of_view};
use crate::system::relation::{
    IndexFacts, SequenceFacts, all_sequences, check_oid, checks_of, foreign_key_definition, identifier,
    indexes_of, number_of as column_number, shown_at,
};
use crate::system::rows::{int, text};
use crate::words::in_postgresqls_words;

pub(super) static FUNCTIONS: &[FunctionDef] = &[
    function("col_description", (2, 2), |system, call| {
        let column =
            call.text(1).and_then(|number| number.parse::<usize>().ok()).filter(|&number| number > 0);
        optional(call.oid(0).zip(column).and_then(|(oid, column)| comment_on(system, oid, column)))
    }),
    fallible("enum_in", (2, 2), enum_in),
    function("greatest_of", (-1, -1), |system, call| extreme(system, call, true)),
    function("least_of", (-1, -1), |system, call| extreme(system, call, false)),
    function("format_type", (2, 2), format_type),
    function("obj_description", (1, 2), |system, call| {
        let of_class = call.text(1).is_none_or(|class| class == "pg_class");
        optional(call.oid(0).filter(|_| of_class).and_then(|oid| comment_on(system, oid, 0)))
    }),
    function("pg_collation_is_visible", (1, 1), |_, _| truth(true)),
    function("pg_conversion_is_visible", (1, 1), |_, _| truth(true)),
    function("pg_database_size", (1, 1), |system, _| int(system.store().usage().segment_bytes)),
    function("pg_get_constraintdef", (1, 2), constraint_definition),
    function("pg_get_expr", (2, 3), expression),
    function("pg_get_indexdef", (1, 3), index_definition),
    function("pg_get_partkeydef", (1, 1), |_, _| Value::Null),
    // There are no partitions: PostgreSQL gives no row, and who asks compares with what comes.
    function("pg_partition_ancestors", (1, 1), |_, _| Value::Null),
    function("pg_get_ruledef", (1, 2), |_, _| Value::Null),
    function("pg_get_serial_sequence", (2, 2), serial_sequence),
    function("pg_get_statisticsobjdef_columns", (1, 1), |_, _| Value::Null),
    function("pg_get_triggerdef", (1, 2), |_, _| Value::Null),
    function("pg_stat_get_numscans", (1, 1), |_, _| int(0)),
    function("pg_get_userbyid", (1, 1), user_by_id),
    function("pg_get_viewdef", (1, 2), |system, call| {
        let by_name = || call.text(0).and_then(|name| relation_oid(system, &name));
        let oid = call.oid(0).or_else(by_name);
        let catalog = system.catalog();
        let view = catalog.views().find(|view| Some(oid_of_view(view)) == oid);
        let materialized = || {
            let table = catalog.tables().find(|table| Some(oid_of_table(table)) == oid)?;
            table.def().materialized.as_ref().map(|view| view.shown())
        };
        optional(view.map(|view| view.shown()).or_else(materialized))
    }),
    function("pg_index_column_has_property", (3, 3), index_column_has),
    function("pg_indexes_size", (1, 1), |system, call| size_of(system, call, |sizes| sizes.indexes)),
    function("pg_opclass_is_visible", (1, 1), |_, _| truth(true)),
    function("pg_operator_is_visible", (1, 1), |_, _| truth(true)),
    function("pg_opfamily_is_visible", (1, 1), |_, _| truth(true)),
    function("pg_relation_is_publishable", (1, 1), |_, _| truth(false)),
    function("pg_relation_size", (1, 2), |system, call| size_of(system, call, |sizes| sizes.rows)),
    function("pg_size_pretty", (1, 1), size_pretty),
    function("pg_statistics_obj_is_visible", (1, 1), |_, _| truth(true)),
    function("pg_table_is_visible", (1, 1), table_is_visible),
    function("pg_table_size", (1, 1), |system, call| size_of(system, call, |sizes| sizes.rows)),
    function("pg_tablespace_location", (1, 1), |_, _| text("")),
    function("pg_tablespace_size", (1, 1), |system, _| int(system.store().usage().segment_bytes)),
    function("pg_total_relation_size", (1, 1), |system, call| {
        size_of(system, call, |sizes| sizes.rows + sizes.indexes)
    }),
    function("pg_ts_config_is_visible", (1, 1), |_, _| truth(true)),
    function("pg_ts_dict_is_visible", (1, 1), |_, _| truth(true)),
    function("pg_ts_parser_is_visible", (1, 1), |_, _| truth(true)),
    function("pg_ts_template_is_visible", (1, 1), |_, _| truth(true)),
    function("pg_type_is_visible", (1, 1), type_is_visible),
    function("quote_ident", (1, 1), |_, call| optional(call.text(0).map(|name| identifier(&name)))),
    fallible("regclass", (1, 1), |system, call| {
        number_of(call, "42P01", "relation", |name| relation_oid(system, name))
    }),
    function("regclass_name", (1, 1), |system, call| name_of(call, |oid| relation_name(system, oid))),
    fallible("regnamespace", (1, 1), |system, call| {
        number_of(call, "3F000", "schema", |name| namespace_of(system, name))
    }),
    function("regnamespace_name", (1, 1), |system, call| {
        name_of(call, |oid| namespace_name(&system.catalog(), oid).map(|name| identifier(&name)))
    }),
    fallible("regrole", (1, 1), |system, call| {
        number_of(call, "42704", "role", |name| role_number(system, name))
    }),
    function("regrole_name", (1, 1), |system, call| {
        name_of(call, |oid| role_name(system, oid).map(|name| identifier(&name)))
    }),
    fallible("regtype", (1, 1), |system, call| {
        number_of(call, "42704", "type", |name| type_oid(system, name))
    }),
    function("regtype_name", (1, 1), |system, call| {
        name_of(call, |oid| SqlType::of_oid(oid).map(|ty| system.type_name(ty)))
    }),
    function("shobj_description", (2, 2), |_, _| Value::Null),
    function("to_regclass", (1, 1), |system, call| {
        int_or_null(call.text(0).and_then(|name| relation_oid(system, &name)))
    }),
    function("to_regnamespace", (1, 1), |system, call| {
        int_or_null(call.text(0).and_then(|name| namespace_of(system, &name)))
    }),
    function("to_regtype", (1, 1), |system, call| {
        int_or_null(call.text(0).and_then(|name| type_oid(system, &name)))
    }),
];

/// What PostgreSQL says of a column of an index; NULL where it is none, or the property is unknown.
fn index_column_has(system: &System, call: &Call) -> Value {
    let (Some(oid), Some(number), Some(property)) = (call.oid(0), call.integer(1), call.text(2)) else {
        return Value::Null;
    };
    let catalog = system.catalog();
    let found =
        catalog.tables().find_map(|table| indexes_of(table).into_iter().find(|index| index.oid == oid));
    let Some(index) = found else { return Value::Null };
    let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    let Some(at) = at.filter(|at| *at < index.columns.len()) else { return Value::Null };
    let ordered = index.method_name() == "btree";
    let descending = index.index.as_ref().is_some_and(|index| index.def().is_descending(at));
    truth(match property.to_ascii_lowercase().as_str() {
        "asc" | "nulls_last" => ordered && !descending,
        "desc" | "nulls_first" => ordered && descending,
        "orderable" | "returnable" | "search_array" | "search_nulls" => ordered,
        "distance_orderable" => false,
        _ => return Value::Null,
    })
}

/// An expression of a definition. A sequence or an enum type in `public` is named with its schema where it would not
/// be found.
fn expression(system: &System, call: &Call) -> Value {
    let Value::Text(shown) = call.value(0) else { return call.value(0).clone() };
    let catalog = system.catalog();
    if catalog.path().is_empty() {
        return call.value(0).clone();
    }
    let all = tokens(shown);
    let behind = |at: usize, sign: &str| all.get(at.wrapping_sub(1)).is_some_and(|token| token.is_sign(sign));
    let mut out = String::new();
    let mut copied = 0;
    for (at, token) in all.iter().enumerate() {
        let names_type = matches!(token.kind, Kind::Word | Kind::Quoted) && behind(at, "::");
        let names_sequence = behind(at, "(") && at > 1 && all[at - 2].is("NEXTVAL");
        let place = if names_sequence { token.start + 1 } else { token.start };
        let name = text_of(token).filter(|_| names_sequence).unwrap_or_else(|| token.text.to_owned());
        let bare = name_parts(&name).filter(|parts| parts.len() == 1).and_then(|mut parts| parts.pop());
        let hidden = bare.is_some_and(|bare| {
            (names_sequence || catalog.enumeration(&bare).is_some()) && !catalog.is_visible(None, &bare)
        });
        if (names_type || names_sequence) && hidden {
            out.push_str(&shown[copied..place]);
            out.push_str(PUBLIC_NAME);
            out.push('.');
            copied = place;
        }
    }
    out.push_str(&shown[copied..]);
    Value::Text(out)
}

fn int_or_null(oid: Option<u32>) -> Value {
    oid.map_or(Value::Null, int)
}

/// The number of a table, an index or a system table by its name, with a schema or without; the database may stand
/// before the schema.
pub(super) fn relation_oid(system: &System, name: &str) -> Option<u32> {
    let mut parts = name_parts(name)?;
    let name = parts.pop()?;
    let schema = parts.pop();
    let database = parts.pop();
    if !parts.is_empty() || database.is_some_and(|database| database != system.identity().database) {
        return None;
    }
    user_relation(system, schema.as_deref(), &name).or_else(|| {
        let layout = LAYOUTS.iter().find(|layout| {
            layout.name == name
                && match &schema {
                    Some(schema) => schema == layout.schema.name(),
                    None => layout.schema == Schema::Catalog,
                }
        });
        layout.map(|layout| layout.oid)
    })
}

/// The number of what users made. The built-in table is found in its own schema and, as ever, in that of users' tables.
fn user_relation(system: &System, schema: Option<&str>, name: &str) -> Option<u32> {
    let catalog = system.catalog();
    let is = |catalog: &Catalog, name: &str| known_relation(catalog, name).is_some();
    let found = match schema {
        None => catalog.found_name(name, is),
        Some(OWN_NAME) if name == BUILT_IN => name.to_owned(),
        Some(schema) => catalog.name_in(schema, name)?,
    };
    known_relation(&catalog, &found)
}

/// The number of a table, a view, an index or a sequence by its name in the store.
fn known_relation(catalog: &Catalog, name: &str) -> Option<u32> {
    if let Some(table) = catalog.table(name) {
        return Some(oid_of_table(table));
    }
    if let Some(view) = catalog.view(name) {
        return Some(oid_of_view(view));
    }
    let is = |table: &Table, own: &str| table.def().qualified(own).eq_ignore_ascii_case(name);
    let index = |table: &Arc<Table>| indexes_of(table).into_iter().find(|of| is(table, &of.name));
    let found = catalog.tables().find_map(index).map(|index| index.oid);
    found.or_else(|| sequence_named(catalog, name).map(|sequence| sequence.oid))
}

/// The sequence of this name in the store.
fn sequence_named(catalog: &Catalog, name: &str) -> Option<SequenceFacts> {
    let is = |facts: &SequenceFacts| {
        store::definition::qualified(facts.namespace.as_deref(), &facts.name).eq_ignore_ascii_case(name)
    };
    all_sequences(catalog).into_iter().find(is)
}

/// The name of a table or an index by its number, with the schema where it is not visible without.
pub(super) fn relation_name(system: &System, oid: u32) -> Option<String> {
    let catalog = system.catalog();
    let qualified = |schema: &str, namespace: Option<&str>, name: &str| {
        let visible = schema != OWN_NAME
            && catalog.is_visible(namespace, &store::definition::qualified(namespace, name));
        if visible { identifier(name) } else { format!("{}.{}", identifier(schema), identifier(name)) }
    };
    let of_table =
        |table: &Table, name: &str| qualified(schema_of(table), table.def().namespace.as_deref(), name);
    match relation(system, oid) {
        Some(Relation::Table(table)) => Some(of_table(&table, table.def().own_name())),
        Some(Relation::Index(table, index)) => Some(of_table(&table, &index.name)),
        Some(Relation::Sequence(sequence)) => {
            let namespace = sequence.namespace.as_deref();
            Some(qualified(namespace.unwrap_or(PUBLIC_NAME), namespace, &sequence.name))
        }
        Some(Relation::View(view)) => {
            Some(qualified(schema_of_view(&view), view.namespace.as_deref(), view.own_name()))
        }
        None => LAYOUTS.iter().find(|layout| layout.oid == oid).map(|layout| match layout.schema {
            Schema::Catalog => layout.name.to_owned(),
            Schema::Information => format!("{}.{}", layout.schema.name(), layout.name),
        }),
    }
}

/// What `::regclass` and similar ones make of a value: the number of the object that it names.
fn number_of(
    call: &Call,
    state: &'static str,
    kind: &str,
    find: impl Fn(&str) -> Option<u32>,
) -> Result<Value, SqlError> {
    let Some(name) = call.text(0) else { return Ok(Value::Null) };
    if name == "-" {
        return Ok(int(0));
    }
    let found = name.parse().ok().or_else(|| find(&name));
    let unknown = || SqlError::new(state, format!("{kind} \"{name}\" does not exist"));
    found.map(int).ok_or_else(unknown)
}

/// The name of an object by its number; what is no number, or nobody's, stays.
fn name_of(call: &Call, find: impl Fn(u32) -> Option<String>) -> Value {
    match (call.value(0), call.oid(0)) {
        (Value::Integer(_), Some(0)) => text("-"),
        (Value::Integer(_), Some(oid)) => Value::Text(find(oid).unwrap_or_else(|| oid.to_string())),
        (value, _) => value.clone(),
    }
}

/// The greatest of several values, or the least; the last argument says their type.
fn extreme(system: &System, call: &Call, largest: bool) -> Value {
    let Some(last) = call.count().checked_sub(1) else { return Value::Null };
    let ty = call.oid(last).and_then(SqlType::of_oid).unwrap_or(SqlType::Unknown);
    let labels = |id, a: &str, b: &str| system.compare_labels(id, a, b);
    let order = |a: &&Value, b: &&Value| order::compare(ty, &labels, a, b);
    let there = (0..last).map(|at| call.value(at)).filter(|value| !value.is_null());
    let found = if largest { there.max_by(order) } else { there.min_by(order) };
    found.cloned().unwrap_or_default()
}

/// A value as one of an enum type, or of arrays of it, which is named by its number.
fn enum_in(system: &System, call: &Call) -> Result<Value, SqlError> {
    let ty = call.oid(1).and_then(SqlType::of_oid);
    let catalog = system.catalog();
    let own = ty.and_then(SqlType::enumeration).and_then(|id| catalog.enum_of(id));
    match (own, call.value(0)) {
        (_, Value::Null) | (None, _) => Ok(call.value(0).clone()),
        (Some(own), value) if ty.is_some_and(SqlType::is_array) => Ok(own.accept_array(value.clone())?),
        (Some(own), value) => Ok(own.accept(value.clone())?),
    }
}

/// The number of a type by one of its names.
fn type_oid(system: &System, name: &str) -> Option<u32> {
    if let Some(ty) = enum_type(system, name) {
        return Some(ty.oid());
    }
    let bare = name.replace('"', "");
    let name = bare.trim();
    let name = ["pg_catalog.", "public."].iter().find_map(|schema| name.strip_prefix(schema)).unwrap_or(name);
    let lower = name.to_ascii_lowercase();
    let own = |name: &str| SqlType::all().find(|ty| ty.name() == name || ty.sql_name() == name);
    let array = || {
        let element =
            lower.strip_suffix("[]").and_then(own).or_else(|| lower.strip_prefix('_').and_then(own));
        element.and_then(SqlType::array)
    };
    own(&lower).or_else(array).or_else(|| SqlType::of_declared(name)).map(SqlType::oid)
}

/// An enum type, or the type of arrays of it, by its name.
fn enum_type(system: &System, name: &str) -> Option<SqlType> {
    let (bare, brackets) = match name.trim().strip_suffix("[]") {
        Some(bare) => (bare, true),
        None => (name, false),
    };
    let mut parts = name_parts(bare)?;
    let (name, schema) = (parts.pop()?, parts.pop());
    let catalog = system.catalog();
    let named = |name: &str| {
        let is = |catalog: &Catalog, name: &str| catalog.enumeration(name).is_some();
        let found = match &schema {
            None => catalog.found_name(name, is),
            Some(schema) => catalog.name_in(schema, name)?,
        };
        catalog.enumeration(&found).map(|own| SqlType::Enum(own.id))
    };
    match named(&name) {
        Some(ty) if brackets => ty.array(),
        None => named(name.strip_prefix('_')?)?.array(),
        found => found,
    }
}

/// The number of a schema, whose name may stand in quotes.
fn namespace_of(system: &System, name: &str) -> Option<u32> {
    let [name] = <[String; 1]>::try_from(name_parts(name)?).ok()?;
    namespace_oid(&system.catalog(), &name)
}

/// The sequence of a numbered column, or one that goes with a column, with its schema.
fn serial_sequence(system: &System, call: &Call) -> Value {
    let (Some(table), Some(column)) = (call.text(0), call.text(1)) else { return Value::Null };
    let Some(Relation::Table(table)) = relation_oid(system, &table).and_then(|oid| relation(system, oid))
    else {
        return Value::Null;
    };
    let Some(at) = table.def().column_index(&column) else { return Value::Null };
    let owner = (oid_of_table(&table), column_number(&table, at));
    let goes = |sequence: &SequenceFacts| sequence.owner.is_some_and(|(table, at, _)| (table, at) == owner);
    let found = all_sequences(&system.catalog()).into_iter().find(goes);
    optional(found.map(|found| {
        let schema = found.namespace.as_deref().unwrap_or(PUBLIC_NAME);
        format!("{}.{}", identifier(schema), identifier(&found.name))
    }))
}

/// What a number of a user's object stands for.
enum Relation {
    Table(Arc<Table>),
    Index(Arc<Table>, IndexFacts),
    Sequence(SequenceFacts),
    View(Arc<ViewDef>),
}

fn relation(system: &System, oid: u32) -> Option<Relation> {
    let catalog = system.catalog();
    let of_table = |table: &Arc<Table>| {
        if oid_of_table(table) == oid {
            return Some(Relation::Table(Arc::clone(table)));
        }
        let index = indexes_of(table).into_iter().find(|index| index.oid == oid)?;
        Some(Relation::Index(Arc::clone(table), index))
    };
    let sequence = || all_sequences(&catalog).into_iter().find(|sequence| sequence.oid == oid);
    let view = || catalog.views().find(|view| oid_of_view(view) == oid).cloned().map(Relation::View);
    catalog.tables().find_map(of_table).or_else(view).or_else(|| sequence().map(Relation::Sequence))
}

/// A type's name with what stands in parentheses behind it.
fn format_type(system: &System, call: &Call) -> Value {
    const HEADER: i64 = 4;
    let Some(oid) = call.oid(0) else { return Value::Null };
    let Some(ty) = SqlType::of_oid(oid) else {
        return text(match oid {
            0 => "-",
            RECORD => "record",
            _ => "???",
        });
    };
    if ty.enumeration().is_some_and(|id| system.catalog().enum_of(id).is_none()) {
        return text("???");
    }
    let modifier = call.integer(1).filter(|modifier| *modifier >= 0);
    let name = system.type_name(ty);
    let Some(modifier) = modifier else { return text(&name) };
    text(&match ty {
        SqlType::Varchar | SqlType::Bpchar => format!("{name}({})", modifier - HEADER),
        SqlType::Numeric => {
            let packed = modifier - HEADER;
            format!("{name}({},{})", packed >> 16, packed & 0xffff)
        }
        SqlType::Timestamp | SqlType::Timestamptz | SqlType::Time | SqlType::Timetz => {
            match name.split_once(' ') {
                Some((first, rest)) => format!("{first}({modifier}) {rest}"),
                None => format!("{name}({modifier})"),
            }
        }
        _ => name,
    })
}

/// The whole statement, or the name of one column where its number is given.
fn index_definition(system: &System, call: &Call) -> Value {
    let Some(Relation::Index(table, index)) = call.oid(0).and_then(|oid| relation(system, oid)) else {
        return Value::Null;
    };
    match call.integer(1) {
        None | Some(0) => text(&index.definition(&table)),
        Some(number) => {
            let at = usize::try_from(number - 1).ok().and_then(|at| index.columns.get(at));
            optional(at.and_then(|&at| shown_at(&table, at)))
        }
    }
}

fn constraint_definition(system: &System, call: &Call) -> Value {
    let Some(oid) = call.oid(0) else { return Value::Null };
    let catalog = system.catalog();
    let found = catalog.tables().find_map(|table| {
        let constraints = indexes_of(table).into_iter().filter(|index| index.constraint);
        let mut constraints = constraints.filter(|index| index.constraint_oid(table) == oid);
        let of_index = constraints.next().map(|index| index.constraint_definition(table));
        of_index
            .or_else(|| {
                let check = checks_of(table).find(|check| check_oid(table, &check.name) == oid);
                check.map(|check| format!("CHECK ({})", in_postgresqls_words(&check.sql)))
            })
            .or_else(|| {
                let keys = &table.def().foreign_keys;
                let key = keys.iter().find(|key| check_oid(table, &key.name) == oid);
                key.map(|key| foreign_key_definition(&catalog, key))
            })
    });
    optional(found)
}

fn role_number(system: &System, name: &str) -> Option<u32> {
    let roles = system.server().roles();
    let found = roles.iter().find(|role| role.name == name).map(|role| role.oid);
    found.or_else(|| (*name == *system.owner()).then_some(OWNER))
}

fn role_name(system: &System, oid: u32) -> Option<String> {
    if oid == OWNER {
        return Some(system.owner());
    }
    if oid == DATABASE_OWNER {
        return Some(DATABASE_OWNER_NAME.to_owned());
    }
    system.server().roles().into_iter().find(|role| role.oid == oid).map(|role| role.name)
}

fn user_by_id(system: &System, call: &Call) -> Value {
    match call.oid(0) {
        Some(oid) => match role_name(system, oid) {
            Some(name) => text(&name),
            None => text(&format!("unknown (OID={oid})")),
        },
        None => Value::Null,
    }
}

/// All types but the enums of schemas that are not looked into.
fn type_is_visible(system: &System, call: &Call) -> Value {
    let catalog = system.catalog();
    let id = call.oid(0).and_then(SqlType::of_oid).and_then(SqlType::enumeration);
    let own = id.and_then(|id| catalog.enum_of(id));
    truth(own.is_none_or(|own| {
        let is = |catalog: &Catalog, name: &str| catalog.enumeration(name).is_some();
        catalog.found_name(own.own_name(), is).eq_ignore_ascii_case(&own.name)
    }))
}

/// Tables of `information_schema` are found with their schema only. The built-in table is found without it; it counts
/// as hidden, because tools take all visible tables for the user's.
fn table_is_visible(system: &System, call: &Call) -> Value {
    let Some(oid) = call.oid(0) else { return Value::Null };
    if let Some(layout) = LAYOUTS.iter().find(|layout| layout.oid == oid) {
        return truth(layout.schema == Schema::Catalog);
    }
    let catalog = system.catalog();
    let of_table = |table: &Table, name: &str| {
        let visible = catalog.is_visible(table.def().namespace.as_deref(), &table.def().qualified(name));
        truth(schema_of(table) != OWN_NAME && visible)
    };
    match relation(system, oid) {
        Some(Relation::Table(table)) => of_table(&table, table.def().own_name()),
        Some(Relation::Index(table, IndexFacts { name, .. })) => of_table(&table, &name),
        Some(Relation::Sequence(SequenceFacts { name, namespace, .. })) => {
            let namespace = namespace.as_deref();
            truth(catalog.is_visible(namespace, &store::definition::qualified(namespace, &name)))
        }
        Some(Relation::View(view)) => truth(catalog.is_visible(view.namespace.as_deref(), &view.name)),
        None => Value::Null,
    }
}

/// Bytes that a table takes: rows in the arena, indexes in the heap.
struct Sizes {
    rows: u64,
    indexes: u64,
}

fn size_of(system: &System, call: &Call, part: fn(&Sizes) -> u64) -> Value {
    let by_name = || call.text(0).and_then(|name| relation_oid(system, &name));
    let Some(oid) = call.oid(0).or_else(by_name) else { return Value::Null };
    let heap = |index: &store::Index| index.heap_bytes() as u64;
    let sizes = match relation(system, oid) {
        Some(Relation::Table(table)) => Sizes {
            rows: table.stats().segment_bytes,
            indexes: table.indexes().iter().map(|index| heap(index)).sum(),
        },
        Some(Relation::Index(_, index)) => Sizes { rows: index.index.as_deref().map_or(0, heap), indexes: 0 },
        // System tables are computed when they are read.
        _ => Sizes { rows: 0, indexes: 0 },
    };
    int(part(&sizes))
}

/// As PostgreSQL shows sizes: whole units, the next one from ten thousand on.
fn size_pretty(_: &System, call: &Call) -> Value {
    const UNITS: &[&str] = &["bytes", "kB", "MB", "GB", "TB", "PB"];
    /// More than this is shown in the next unit.
    const SHOWN_MAX: i64 = 10 * 1_024;
    let Some(bytes) = call.integer(0) else { return Value::Null };
    // Halves are rounded up, and the rounding of one unit does not add to that of the next.
    let mut size = bytes;
    let mut halves = bytes.saturating_mul(2);
    for unit in UNITS {
        if size.abs() < SHOWN_MAX || *unit == UNITS[UNITS.len() - 1] {
            return text(&format!("{size} {unit}"));
        }
        halves /= 1_024;
        size = i64::midpoint(halves, halves.signum());
    }
    Value::Null
}
