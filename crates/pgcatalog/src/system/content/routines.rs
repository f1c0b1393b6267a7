//! Functions and procedures: those that are built in, and those of users.

use store::definition::{ParameterMode, RoutineDef, RoutineParameter, SqlType};
use store::value::Value;

use super::super::System;
use super::super::oid::{FIRST_FUNCTION, oid_of_routine};
use super::super::rows::{Rows, flag, int, text, yes_or_no};
use super::activity::optional;
use super::fixed::{CATALOG, LANGUAGE_SQL, OWNER, PUBLIC_NAME, namespace_named, schema_of_enum};
use super::grants;
use super::relations::array;
use super::types::RECORD;
use crate::function;

/// PostgreSQL's pseudo-type of an argument or result that may be anything.
const ANY: u32 = 2_276;
/// PostgreSQL's guess at the rows of a function that returns a set.
const ROWS_OF_SET: f64 = 1_000.0;

/// What a call gives or is answered with, as clients are shown it.
struct Shown<'r> {
    name: &'r str,
    ty: u32,
    /// PostgreSQL's letter, and the word of the standard.
    mode: (&'static str, &'static str),
    default: Option<&'r str>,
}

impl<'r> Shown<'r> {
    /// Those of a routine: its parameters, and the columns of its `TABLE`.
    fn all(routine: &'r RoutineDef) -> Vec<Self> {
        let of = |own: &'r RoutineParameter| {
            let letter = match own.mode {
                ParameterMode::In => "i",
                ParameterMode::Out => "o",
                ParameterMode::InOut => "b",
            };
            Self {
                name: &own.name,
                ty: own.ty,
                mode: (letter, own.mode.word()),
                default: own.default.as_deref(),
            }
        };
        let table = routine.returns.as_ref().filter(|returns| returns.is_table());
        let columns = table.into_iter().flat_map(|returns| &returns.columns);
        let columns =
            columns.map(|own| Self { name: &own.name, ty: own.ty, mode: ("t", "OUT"), default: None });
        routine.parameters.iter().map(of).chain(columns).collect()
    }
}

/// `pg_proc`: what a statement may call. Arguments and results of functions of our own are of any type.
pub(super) fn functions(system: &System, rows: &mut Rows) {
    for routine in system.catalog().routines() {
        add(system, routine, rows);
    }
    for (oid, name) in (FIRST_FUNCTION..).zip(super::super::functions::names()) {
        rows.add([
            ("oid", int(oid)),
            ("proname", text(name)),
            ("pronamespace", int(CATALOG)),
            ("proowner", int(OWNER)),
            ("prolang", int(12)),
            ("procost", Value::Real(1.0)),
            ("provariadic", int(ANY)),
            ("prokind", text(function::kind(name))),
            ("provolatile", text("s")),
            ("proparallel", text("s")),
            ("prorettype", int(ANY)),
            ("prosrc", text(name)),
        ]);
    }
}

fn add(system: &System, routine: &RoutineDef, rows: &mut Rows) {
    let all = Shown::all(routine);
    let types: Vec<String> = routine.inputs().map(|own| own.ty.to_string()).collect();
    let given = |shows: bool, items: Vec<String>| if shows { array(items.into_iter()) } else { Value::Null };
    let modes = all.iter().any(|own| own.mode.0 != "i");
    let named = all.iter().any(|own| !own.name.is_empty());
    let returns = routine.returns.as_ref();
    let set = returns.is_some_and(|returns| returns.set);
    let defaults: Vec<&str> = all.iter().filter_map(|own| own.default).collect();
    let body = (!routine.text).then_some(routine.written.as_str());
    rows.add([
        ("oid", int(oid_of_routine(routine))),
        ("proname", text(routine.own_name())),
        ("pronamespace", int(namespace_named(schema_of(routine)))),
        ("proowner", grants::owner_oid(system, &routine.access)),
        ("prolang", int(LANGUAGE_SQL)),
        ("procost", Value::Real(100.0)),
        ("prorows", Value::Real(if set { ROWS_OF_SET } else { 0.0 })),
        ("prosupport", text("-")),
        ("prokind", text(if returns.is_some() { "f" } else { "p" })),
        ("prosecdef", flag(routine.definer)),
        ("proconfig", routine.path.as_deref().map_or(Value::Null, path_shown)),
        ("proisstrict", flag(routine.strict)),
        ("proretset", flag(set)),
        ("provolatile", text("v")),
        ("proparallel", text("u")),
        ("pronargs", int(types.len())),
        ("pronargdefaults", int(defaults.len())),
        ("prorettype", int(result_of(routine))),
        ("proargtypes", text(&types.join(" "))),
        ("proallargtypes", given(modes, all.iter().map(|own| own.ty.to_string()).collect())),
        ("proargmodes", given(modes, all.iter().map(|own| own.mode.0.to_owned()).collect())),
        ("proargnames", given(named, all.iter().map(|own| own.name.to_owned()).collect())),
        ("proargdefaults", if defaults.is_empty() { Value::Null } else { text(&defaults.join(", ")) }),
        ("prosrc", text(if routine.text { &routine.written } else { "" })),
        ("prosqlbody", optional(body)),
        ("proacl", grants::of_routine(system, &routine.access)),
    ]);
}

/// The one setting that a function can have.
fn path_shown(path: &[String]) -> Value {
    let names: Vec<_> = path.iter().map(|name| super::super::relation::identifier(name)).collect();
    array(std::iter::once(format!("search_path={}", names.join(", "))))
}

/// The number of the type that a call gives.
fn result_of(routine: &RoutineDef) -> u32 {
    match &routine.returns {
        Some(returns) if returns.columns.len() > 1 => RECORD,
        Some(returns) => returns.ty,
        None if routine.has_outputs() => RECORD,
        None => SqlType::Void.oid(),
    }
}

fn schema_of(routine: &RoutineDef) -> &str {
    routine.namespace.as_deref().unwrap_or(PUBLIC_NAME)
}

/// What a row says of the routine that it belongs to.
fn specific(system: &System, routine: &RoutineDef) -> [(&'static str, Value); 3] {
    let name = format!("{}_{}", routine.own_name(), oid_of_routine(routine));
    [
        ("specific_catalog", text(&system.identity().database)),
        ("specific_schema", text(schema_of(routine))),
        ("specific_name", text(&name)),
    ]
}

/// A type in the words of the standard: what it is called, and where it is.
fn standard(system: &System, ty: u32) -> (String, Option<(String, String)>) {
    let Some(ty) = SqlType::of_oid(ty) else {
        let name = "record".to_owned();
        return (name.clone(), Some((CATALOG_NAME.to_owned(), name)));
    };
    let catalog = system.catalog();
    let own = ty.enumeration().and_then(|id| catalog.enum_of(id));
    let schema = own.map_or(CATALOG_NAME, |own| schema_of_enum(own)).to_owned();
    let array = if ty.is_array() { "_" } else { "" };
    let name = own.map_or_else(|| ty.scalar().name().to_owned(), |own| own.own_name().to_owned());
    let word = match own {
        _ if ty.is_array() => "ARRAY".to_owned(),
        Some(_) => "USER-DEFINED".to_owned(),
        None => ty.sql_name(),
    };
    (word, Some((schema, format!("{array}{name}"))))
}

const CATALOG_NAME: &str = "pg_catalog";

/// `information_schema.routines`
pub(super) fn information(system: &System, rows: &mut Rows) {
    let database = text(&system.identity().database);
    for routine in system.catalog().routines() {
        let function = routine.returns.is_some();
        let (word, udt) = standard(system, result_of(routine));
        let udt = udt.filter(|_| function);
        let (schema, name) = udt.unzip();
        let shown = system.identity().holder().owns(&routine.access);
        let source = if routine.text { routine.written.as_str() } else { "" };
        let own = [
            ("routine_catalog", database.clone()),
            ("routine_schema", text(schema_of(routine))),
            ("routine_name", text(routine.own_name())),
            ("routine_type", text(if function { "FUNCTION" } else { "PROCEDURE" })),
            ("data_type", optional(function.then_some(word.as_str()))),
            ("type_udt_catalog", if function { database.clone() } else { Value::Null }),
            ("type_udt_schema", optional(schema.as_deref())),
            ("type_udt_name", optional(name.as_deref())),
            ("dtd_identifier", optional(function.then_some("0"))),
            ("routine_body", text("SQL")),
            ("routine_definition", optional(shown.then_some(source))),
            ("external_language", text("SQL")),
            ("parameter_style", text("GENERAL")),
            ("is_deterministic", yes_or_no(false)),
            ("sql_data_access", text("MODIFIES")),
            ("is_null_call", if function { yes_or_no(routine.strict) } else { Value::Null }),
            ("schema_level_routine", yes_or_no(true)),
            ("max_dynamic_result_sets", int(0)),
            ("security_type", text(if routine.definer { "DEFINER" } else { "INVOKER" })),
            ("as_locator", yes_or_no(false)),
            ("is_udt_dependent", yes_or_no(false)),
        ];
        rows.add(specific(system, routine).into_iter().chain(own));
    }
}

/// `information_schema.parameters`
pub(super) fn parameters(system: &System, rows: &mut Rows) {
    let database = text(&system.identity().database);
    for routine in system.catalog().routines() {
        for (number, own) in (1..).zip(Shown::all(routine)) {
            let (word, udt) = standard(system, own.ty);
            let (schema, name) = udt.unzip();
            let facts = [
                ("ordinal_position", Value::Integer(number)),
                ("parameter_mode", text(own.mode.1)),
                ("is_result", yes_or_no(false)),
                ("as_locator", yes_or_no(false)),
                ("parameter_name", optional(Some(own.name).filter(|name| !name.is_empty()))),
                ("data_type", text(&word)),
                ("udt_catalog", database.clone()),
                ("udt_schema", optional(schema.as_deref())),
                ("udt_name", optional(name.as_deref())),
                ("dtd_identifier", text(&number.to_string())),
                ("parameter_default", optional(own.default)),
            ];
            rows.add(specific(system, routine).into_iter().chain(facts));
        }
    }
}
