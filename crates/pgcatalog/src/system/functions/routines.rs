//! Users' functions and procedures, as clients are shown them.

use std::sync::Arc;

use sqltext::error::{SqlError, state};
use store::Catalog;
use store::definition::{ParameterMode, RoutineDef, RoutineParameter, SqlType};
use store::value::Value;

use super::{Call, FunctionDef, fallible, function, optional, truth};
use crate::names::name_parts;
use crate::system::System;
use crate::system::oid::{FIRST_FUNCTION, oid_of_routine};
use crate::system::relation::identifier;
use crate::system::rows::{int, text};

pub(super) static FUNCTIONS: &[FunctionDef] = &[
    function("oidvectortypes", (1, 1), |system, call| {
        let types = call.text(0).unwrap_or_default();
        let names: Vec<String> = types.split_whitespace().map(|oid| type_name(system, oid)).collect();
        text(&names.join(", "))
    }),
    function("pg_function_is_visible", (1, 1), |system, call| {
        let own = of(system, call);
        truth(own.is_none_or(|own| system.catalog().is_visible(own.namespace.as_deref(), own.own_name())))
    }),
    function("pg_get_function_arguments", (1, 1), |system, call| shown(system, call, Listing::Whole)),
    function("pg_get_function_identity_arguments", (1, 1), |system, call| {
        shown(system, call, Listing::Identity)
    }),
    function("pg_get_function_result", (1, 1), |system, call| match of(system, call) {
        Some(routine) => optional(result(system, &routine)),
        None => text("\"any\""),
    }),
    function("pg_get_function_sqlbody", (1, 1), |system, call| {
        optional(of(system, call).filter(|own| !own.text).map(|own| own.written.clone()))
    }),
    function("pg_get_functiondef", (1, 1), |system, call| {
        optional(of(system, call).map(|own| definition(system, &own)))
    }),
    fallible("regproc", (1, 1), regproc),
    function("regproc_name", (1, 1), |system, call| name(system, call, false)),
    fallible("regproc_oid", (1, 1), |_, call| match call.value(0) {
        Value::Text(name) if name.trim() == "-" => Ok(int(0)),
        Value::Text(name) => {
            let oid: Option<u32> = name.parse().ok().or_else(|| built_in(name));
            oid.map(int).ok_or_else(|| unknown(name))
        }
        number => Ok(number.clone()),
    }),
    fallible("regprocedure", (1, 1), regproc),
    function("regprocedure_name", (1, 1), |system, call| name(system, call, true)),
];

/// A function by its name, with its arguments or without: a user's is its number, a built-in one its name, as the
/// columns of the catalogue have it.
fn regproc(system: &System, call: &Call) -> Result<Value, SqlError> {
    let Value::Text(name) = call.value(0) else { return Ok(call.value(0).clone()) };
    let bare = name.split('(').next().unwrap_or(name).trim();
    if let Some(routine) = named(&system.catalog(), bare) {
        return Ok(int(oid_of_routine(&routine)));
    }
    let built_in_name = bare.strip_prefix("pg_catalog.").unwrap_or(bare);
    if bare == "-" || bare.parse::<u32>().is_ok() {
        return Ok(text(bare));
    }
    // Functions by which values of types are read and written have names only.
    let of_type = ["in", "out", "recv", "send", "handler"].iter().any(|end| built_in_name.ends_with(end));
    if of_type || built_in(built_in_name).is_some() { Ok(text(built_in_name)) } else { Err(unknown(bare)) }
}

fn unknown(name: &str) -> SqlError {
    SqlError::new(state::UNKNOWN_FUNCTION, format!("function \"{name}\" does not exist"))
}

/// The number of a function that is built in.
fn built_in(name: &str) -> Option<u32> {
    (FIRST_FUNCTION..).zip(super::names()).find(|(_, own)| own.eq_ignore_ascii_case(name)).map(|(oid, _)| oid)
}

/// A user's function or procedure by its name, with a schema or without.
fn named(catalog: &Catalog, name: &str) -> Option<Arc<RoutineDef>> {
    let mut parts = name_parts(name)?;
    let (own, schema) = (parts.pop()?, parts.pop());
    let is = |catalog: &Catalog, name: &str| catalog.routine(name).is_some();
    let found = match schema {
        None => catalog.found_name(&own, is),
        Some(schema) => catalog.name_in(&schema, &own)?,
    };
    catalog.routine(&found).cloned()
}

/// The name of what a number or a name means.
fn name(system: &System, call: &Call, arguments: bool) -> Value {
    let Some(routine) = of_number(system, call) else { return call.value(0).clone() };
    let visible = system.catalog().is_visible(routine.namespace.as_deref(), routine.own_name());
    let schema = routine.namespace.as_deref().unwrap_or("public");
    let schema = if visible { String::new() } else { format!("{}.", identifier(schema)) };
    let types: Vec<String> = routine.inputs().map(|own| type_shown(system, own)).collect();
    let types = if arguments { format!("({})", types.join(",")) } else { String::new() };
    text(&format!("{schema}{}{types}", identifier(routine.own_name())))
}

/// The statement that makes it.
fn definition(system: &System, routine: &RoutineDef) -> String {
    let schema = identifier(routine.namespace.as_deref().unwrap_or("public"));
    let (word, name) = (routine.word(), identifier(routine.own_name()));
    let returns = result(system, routine).map(|returns| format!("\n RETURNS {returns}"));
    let options = [(routine.strict, " STRICT"), (routine.definer, " SECURITY DEFINER")];
    let mut options: String = options.iter().filter(|(is, _)| *is).map(|(_, words)| *words).collect();
    if !options.is_empty() {
        options.insert(0, '\n');
    }
    if let Some(path) = &routine.path {
        let names: Vec<String> = path.iter().map(|name| format!("'{}'", name.replace('\'', "''"))).collect();
        options.push_str("\n SET search_path TO ");
        options.push_str(&names.join(", "));
    }
    format!(
        "CREATE OR REPLACE {} {schema}.{name}({}){}\n LANGUAGE sql{options}\n{}\n",
        word.to_ascii_uppercase(),
        listed(system, routine, Listing::Whole),
        returns.unwrap_or_default(),
        body(routine, word),
    )
}

/// The body; the sign around a text is one that the text does not have.
fn body(routine: &RoutineDef, word: &str) -> String {
    if !routine.text {
        return routine.written.clone();
    }
    let mut sign = format!("${word}");
    while routine.written.contains(&sign) {
        sign.push('x');
    }
    format!("AS {sign}${}{sign}$", routine.written)
}

/// What it returns; `None` for a procedure.
fn result(system: &System, routine: &RoutineDef) -> Option<String> {
    let returns = routine.returns.as_ref()?;
    let named = |ty: u32, declared: &str| match SqlType::of_oid(ty) {
        Some(ty) => system.type_name(ty),
        None => declared.to_owned(),
    };
    let set = if returns.set && !returns.is_table() { "SETOF " } else { "" };
    Some(match &returns.columns[..] {
        columns if returns.is_table() => {
            let one = |own: &store::definition::ViewColumn| {
                format!("{} {}", identifier(&own.name), named(own.ty, &own.declared))
            };
            format!("TABLE({})", columns.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        [] => returns.declared.clone(),
        [one] => format!("{set}{}", named(one.ty, &one.declared)),
        _ => format!("{set}record"),
    })
}

/// The function or procedure of a number, or of a name.
fn of(system: &System, call: &Call) -> Option<Arc<RoutineDef>> {
    match call.value(0) {
        Value::Text(name) if name.parse::<u32>().is_err() => named(&system.catalog(), name),
        _ => of_number(system, call),
    }
}

fn of_number(system: &System, call: &Call) -> Option<Arc<RoutineDef>> {
    let oid = call.oid(0)?;
    system.catalog().routines().iter().find(|routine| oid_of_routine(routine) == oid).cloned()
}

/// Which parameters a list has, and what it says of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listing {
    /// All, with defaults.
    Whole,
    /// The same without defaults.
    Identity,
}

/// The parameters. Functions of our own take anything.
fn shown(system: &System, call: &Call, listing: Listing) -> Value {
    of(system, call).map_or_else(|| text("\"any\""), |routine| text(&listed(system, &routine, listing)))
}

fn listed(system: &System, routine: &RoutineDef, listing: Listing) -> String {
    let procedure = routine.returns.is_none();
    let one = |own: &RoutineParameter| {
        let named = if own.name.is_empty() { String::new() } else { format!("{} ", identifier(&own.name)) };
        let default = own.default.as_ref().filter(|_| listing == Listing::Whole);
        let default = default.map(|default| format!(" DEFAULT {default}")).unwrap_or_default();
        let mode = if procedure || own.mode != ParameterMode::In { own.mode.word() } else { "" };
        let space = if mode.is_empty() { "" } else { " " };
        format!("{mode}{space}{named}{}{default}", type_shown(system, own))
    };
    routine.parameters.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A type as PostgreSQL shows it, which says nothing of a length.
fn type_shown(system: &System, own: &RoutineParameter) -> String {
    SqlType::of_oid(own.ty).map_or_else(|| own.declared.clone(), |ty| system.type_name(ty))
}

fn type_name(system: &System, oid: &str) -> String {
    let ty = oid.parse().ok().and_then(SqlType::of_oid);
    ty.map_or_else(|| "-".to_owned(), |ty| system.type_name(ty))
}
