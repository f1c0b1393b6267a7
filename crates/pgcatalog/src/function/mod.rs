//! The functions that a statement may call: one table of them, of which the registration, the allow-list, the types and
//! the user's page are made.

mod builtin;
mod cast;
mod def;
mod digits;
mod float;
mod format;
mod json;
mod jsonb;
pub mod like;
mod maths;
mod moment;
mod more;
mod numeric;
mod only;
pub mod order;
mod ordered;
mod patch;
mod pattern;
mod search;
mod series;
mod shown;
mod span;
mod spread;
mod text;

use std::rc::Rc;

use sqlite::meter;
use sqlite::{Arguments, Connection, Volatility};
use sqltext::error::SqlError;
use store::definition::SqlType;
use store::value::Value;

pub(crate) use cast::PREFIX as CAST_PREFIX;
pub use cast::{bound, is_formed};
pub use def::{Caller, Now, Numeric, Returns, Spans};
use def::{FunctionDef, Run, Source};
pub use json::each_json;
pub(crate) use jsonb::{Member, json_elements, json_members, json_value_text, jsonb_text_of};
pub use moment::bare_word;
pub(crate) use moment::moment_series;
pub use numeric::Sum;
pub use only::ONLY_ROW;
pub use ordered::is_ordered;
pub(crate) use pattern::{regexp_matches, regexp_parts};
pub(crate) use text::text_parts;

/// Tables that are functions.
pub const TABLE_FUNCTIONS: &[&str] = &["json_each", "json_tree", "jsonb_each", "jsonb_tree"];

/// All functions in groups, with the headings that they have on the user's page.
const GROUPS: &[(&str, &[FunctionDef])] = &[
    ("Texts and bytes", text::FUNCTIONS),
    ("Texts, SQLite's", builtin::TEXTS),
    ("Patterns", like::FUNCTIONS),
    ("Regular expressions", pattern::FUNCTIONS),
    ("Dates and times", moment::FUNCTIONS),
    ("Dates and times, SQLite's", builtin::DATES),
    ("Spans of time", span::FUNCTIONS),
    ("Values as texts", shown::FUNCTIONS),
    ("Numbers", maths::FUNCTIONS),
    ("Numbers, SQLite's", builtin::NUMBERS),
    ("Decimal numbers", numeric::FUNCTIONS),
    ("Floats and large integers", float::FUNCTIONS),
    ("Numbers, JSON and choices of PostgreSQL's", more::FUNCTIONS),
    ("JSON, PostgreSQL's operators", jsonb::FUNCTIONS),
    ("Choices and kinds", builtin::VALUES),
    ("JSON", builtin::JSON_FUNCTIONS),
    ("Groups", builtin::GROUPS),
    ("Groups, PostgreSQL's", spread::FUNCTIONS),
    ("Groups in an order", ordered::FUNCTIONS),
    ("Windows", builtin::WINDOWS),
];

/// What the dialect's other names for functions return.
const RENAMED: &[(&str, Returns, Option<Numeric>)] = &[
    ("array_agg", Returns::Array, Some(Numeric::Text)),
    ("json_agg", Returns::Type(SqlType::Json), Some(Numeric::Text)),
    ("jsonb_agg", Returns::Type(SqlType::Jsonb), Some(Numeric::Text)),
    ("json_object_agg", Returns::Type(SqlType::Json), Some(Numeric::Text)),
    ("jsonb_object_agg", Returns::Type(SqlType::Jsonb), Some(Numeric::Text)),
    ("json_build_object", Returns::Type(SqlType::Json), Some(Numeric::Text)),
    ("jsonb_build_object", Returns::Type(SqlType::Jsonb), Some(Numeric::Text)),
    ("json_build_array", Returns::Type(SqlType::Json), Some(Numeric::Text)),
    ("jsonb_build_array", Returns::Type(SqlType::Jsonb), Some(Numeric::Text)),
    ("jsonb_array_length", Returns::Type(SqlType::Int4), None),
    ("jsonb_typeof", Returns::Type(SqlType::Text), None),
    ("jsonb_strip_nulls", Returns::Type(SqlType::Jsonb), None),
    ("jsonb_pretty", Returns::Type(SqlType::Text), None),
    ("array_to_json", Returns::Type(SqlType::Json), None),
    ("numeric_avg", Returns::Type(SqlType::Numeric), Some(Numeric::Text)),
    ("numeric_sum", Returns::Type(SqlType::Numeric), Some(Numeric::Text)),
    ("bool_and", Returns::Type(SqlType::Bool), None),
    ("bool_or", Returns::Type(SqlType::Bool), None),
    ("every", Returns::Type(SqlType::Bool), None),
    ("exists", Returns::Type(SqlType::Bool), None),
    ("chr", Returns::Type(SqlType::Text), None),
    ("char_length", Returns::Type(SqlType::Int4), None),
    ("character_length", Returns::Type(SqlType::Int4), None),
    ("pg_typeof", Returns::Type(SqlType::Regtype), Some(Numeric::Text)),
    // Of the catalogue and of the session.
    ("array_length", Returns::Type(SqlType::Int4), None),
    ("cardinality", Returns::Type(SqlType::Int4), None),
    ("array_position", Returns::Type(SqlType::Int4), Some(Numeric::Text)),
    ("array_append", Returns::Argument, Some(Numeric::Text)),
    ("array_remove", Returns::Argument, Some(Numeric::Text)),
    ("array_prepend", Returns::Second, Some(Numeric::Text)),
    ("array_replace", Returns::Argument, Some(Numeric::Text)),
    ("array_cat", Returns::Argument, Some(Numeric::Nearest)),
    ("row_to_json", Returns::Type(SqlType::Json), Some(Numeric::Text)),
    ("pg_advisory_lock", Returns::Type(SqlType::Void), Some(Numeric::Nearest)),
    ("pg_advisory_lock_shared", Returns::Type(SqlType::Void), Some(Numeric::Nearest)),
    ("pg_advisory_unlock", Returns::Type(SqlType::Bool), Some(Numeric::Nearest)),
    ("pg_advisory_unlock_all", Returns::Type(SqlType::Void), Some(Numeric::Nearest)),
    ("pg_advisory_unlock_shared", Returns::Type(SqlType::Bool), Some(Numeric::Nearest)),
    ("pg_advisory_xact_lock", Returns::Type(SqlType::Void), Some(Numeric::Nearest)),
    ("pg_advisory_xact_lock_shared", Returns::Type(SqlType::Void), Some(Numeric::Nearest)),
    ("pg_try_advisory_lock", Returns::Type(SqlType::Bool), Some(Numeric::Nearest)),
    ("pg_try_advisory_lock_shared", Returns::Type(SqlType::Bool), Some(Numeric::Nearest)),
    ("pg_try_advisory_xact_lock", Returns::Type(SqlType::Bool), Some(Numeric::Nearest)),
    ("pg_try_advisory_xact_lock_shared", Returns::Type(SqlType::Bool), Some(Numeric::Nearest)),
    ("pg_backend_pid", Returns::Type(SqlType::Int4), None),
    ("pg_cancel_backend", Returns::Type(SqlType::Bool), None),
    ("pg_terminate_backend", Returns::Type(SqlType::Bool), None),
    ("pg_notify", Returns::Type(SqlType::Void), None),
    ("wait_for_source", Returns::Type(SqlType::Bool), Some(Numeric::Nearest)),
    ("bus_sequence", Returns::Type(SqlType::Int8), None),
    ("wait_for_bus", Returns::Type(SqlType::Bool), Some(Numeric::Nearest)),
    ("set_config", Returns::Type(SqlType::Text), None),
    ("current_setting", Returns::Type(SqlType::Text), None),
    ("currval", Returns::Type(SqlType::Int8), None),
    ("lastval", Returns::Type(SqlType::Int8), None),
    ("nextval", Returns::Type(SqlType::Int8), None),
    ("pg_sequence_last_value", Returns::Type(SqlType::Int8), None),
    ("setval", Returns::Type(SqlType::Int8), Some(Numeric::Nearest)),
    ("current_database", Returns::Type(SqlType::Name), None),
    ("current_schema", Returns::Type(SqlType::Name), None),
    ("current_schemas", Returns::Texts, None),
    ("current_user", Returns::Type(SqlType::Name), None),
    ("session_user", Returns::Type(SqlType::Name), None),
    ("version", Returns::Type(SqlType::Text), None),
    ("to_regclass", Returns::Type(SqlType::Regclass), None),
    ("to_regnamespace", Returns::Type(SqlType::Regnamespace), None),
    ("to_regtype", Returns::Type(SqlType::Regtype), None),
    ("format_type", Returns::Type(SqlType::Text), None),
    ("pg_postmaster_start_time", Returns::Type(SqlType::Timestamptz), None),
    ("pg_conf_load_time", Returns::Type(SqlType::Timestamptz), None),
    ("pg_get_userbyid", Returns::Type(SqlType::Name), None),
    ("pg_encoding_to_char", Returns::Type(SqlType::Name), None),
    ("pg_index_column_has_property", Returns::Type(SqlType::Bool), None),
    ("pg_stat_get_numscans", Returns::Type(SqlType::Int8), None),
    ("pg_is_in_recovery", Returns::Type(SqlType::Bool), None),
    ("pg_table_is_visible", Returns::Type(SqlType::Bool), None),
    ("pg_type_is_visible", Returns::Type(SqlType::Bool), None),
    ("pg_function_is_visible", Returns::Type(SqlType::Bool), None),
    ("pg_total_relation_size", Returns::Type(SqlType::Int8), None),
    ("pg_relation_size", Returns::Type(SqlType::Int8), None),
    ("pg_table_size", Returns::Type(SqlType::Int8), None),
    ("pg_indexes_size", Returns::Type(SqlType::Int8), None),
    ("pg_database_size", Returns::Type(SqlType::Int8), None),
    ("has_any_column_privilege", Returns::Type(SqlType::Bool), None),
    ("has_column_privilege", Returns::Type(SqlType::Bool), None),
    ("has_database_privilege", Returns::Type(SqlType::Bool), None),
    ("has_schema_privilege", Returns::Type(SqlType::Bool), None),
    ("has_sequence_privilege", Returns::Type(SqlType::Bool), None),
    ("has_table_privilege", Returns::Type(SqlType::Bool), None),
    ("acldefault", Returns::Texts, None),
    ("pg_has_role", Returns::Type(SqlType::Bool), None),
    ("xid_age", Returns::Type(SqlType::Int4), None),
    ("txid_current", Returns::Type(SqlType::Int8), None),
    ("changes", Returns::Type(SqlType::Int8), None),
    ("total_changes", Returns::Type(SqlType::Int8), None),
    ("last_insert_rowid", Returns::Type(SqlType::Int8), None),
];

fn all() -> impl Iterator<Item = &'static FunctionDef> {
    GROUPS.iter().flat_map(|(_, functions)| functions.iter())
}

fn find(name: &str) -> Option<&'static FunctionDef> {
    all().find(|function| function.name.eq_ignore_ascii_case(name))
}

/// Whether a statement may call this function, which needs nothing of the catalogue.
pub(crate) fn is_allowed(name: &str) -> bool {
    find(name).is_some()
        || numeric::is_aggregate(name)
        || float::is_aggregate(name)
        || OF_SESSION.contains(&name)
        || name == ONLY_ROW
        || cast::is_cast(name)
}

/// What a session's statements wrote; the session itself registers them.
pub const OF_SESSION: &[&str] = &["changes", "total_changes", "last_insert_rowid"];

/// The names of a function's arguments, and the expression that it stands for, where it stands for one.
pub(crate) fn stands_for(name: &str) -> Option<(Vec<&'static str>, &'static str)> {
    let def = find(name)?;
    let (expression, _) = def.meaning.strip_prefix("what `")?.split_once('`')?;
    let arguments = def.arguments.trim_start_matches('(').trim_end_matches(')').split(',');
    Some((arguments.map(str::trim).collect(), expression))
}

/// The functions that need nothing of the catalogue, but for operators and casts.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let own = all().map(|function| function.name);
    own.filter(|name| name.starts_with(|first: char| first.is_ascii_alphabetic()))
}

/// What a function returns; the name is in lower case.
pub fn returns(name: &str) -> Option<Returns> {
    let renamed = RENAMED.iter().find(|(own, ..)| *own == name).map(|(_, returns, _)| *returns);
    renamed.or_else(|| find(name).map(|function| function.returns))
}

/// What a function does with decimal numbers; the name is in lower case. `None`: it takes none. Of a function that is
/// not in the table nothing is known: it is given what SQLite has for numbers.
pub fn numeric(name: &str) -> Option<Numeric> {
    if name.starts_with("numeric_") || cast::is_cast(name) {
        return Some(Numeric::Text);
    }
    let renamed = RENAMED.iter().find(|(own, ..)| *own == name).map(|(_, _, numeric)| *numeric);
    renamed.unwrap_or_else(|| find(name).map_or(Some(Numeric::Nearest), |function| function.numeric))
}

/// The function that stands for one of floats; the name is in lower case.
pub fn of_floats(name: &str) -> Option<&'static str> {
    find(name).and_then(|function| function.of_floats)
}

/// What becomes of a function of intervals; the name is in lower case.
pub fn of_spans(name: &str) -> Option<Spans> {
    find(name).and_then(|function| function.of_spans)
}

/// Whether a function takes so many arguments. An aggregate takes one.
pub fn takes(name: &str, count: usize) -> bool {
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    match find(name).map(|function| function.source) {
        Some(Source::Own(_, fewest, most)) => (fewest..=most).contains(&count),
        _ => count == 1,
    }
}

/// The names of a function's parameters, and how many of them must be given at least; `None`: they have none.
pub fn parameters(name: &str) -> Option<(Vec<&'static str>, usize)> {
    let def = find(name)?;
    let Source::Own(_, fewest, most) = def.source else { return None };
    let names = def.arguments.trim_start_matches('(').trim_end_matches(')').split(',').map(str::trim);
    let names: Vec<&str> = names.collect();
    let all_are_named = usize::try_from(most).is_ok_and(|most| most == names.len());
    all_are_named.then(|| (names, usize::try_from(fewest).unwrap_or(0)))
}

/// The types of a function's first arguments.
pub fn argument_types(name: &str) -> &'static [SqlType] {
    if name.starts_with("pg_") && name.contains("advisory_") {
        return &[SqlType::Int8, SqlType::Int8];
    }
    find(name).map_or(&[], |function| function.types)
}

/// Whether a function of numbers takes intervals, too.
pub fn takes_spans(name: &str) -> bool {
    find(name).is_some_and(|function| function.of_spans.is_some())
}

/// Makes a connection know the functions that are written here.
pub fn register<C: Caller>(connection: &Connection, caller: &Rc<C>) -> Result<(), SqlError> {
    for function in all() {
        let (run, fewest, most, volatile, strict) = match function.source {
            Source::Sqlite | Source::Group => continue,
            Source::Json(run, arguments) => {
                let caller = Rc::clone(caller);
                connection.create_json_function(
                    function.name,
                    arguments,
                    Volatility::Immutable,
                    move |arguments| {
                        let result = meter::call(arguments, || called(run, true, caller.now(), arguments));
                        result.map_err(|error| caller.fail(error))
                    },
                )?;
                continue;
            }
            Source::Own(run, fewest, most) => (run, fewest, most, false, true),
            Source::Raw(run, fewest, most, volatile) => (run, fewest, most, volatile, false),
        };
        for count in fewest..=most {
            let caller = Rc::clone(caller);
            let volatility = if volatile { Volatility::Volatile } else { Volatility::Immutable };
            connection.create_function(function.name, count, volatility, move |arguments| {
                let result = meter::call(arguments, || called(run, strict, caller.now(), arguments));
                result.map_err(|error| caller.fail(error))
            })?;
        }
    }
    order::register(connection)?;
    numeric::register(connection, caller)?;
    spread::register(connection, caller)?;
    ordered::register(connection, caller)?;
    only::register(connection, caller)?;
    float::register(connection, caller)?;
    span::register(connection, caller)?;
    for (name, ty) in cast::all() {
        let caller = Rc::clone(caller);
        connection.create_function(&name, 1, Volatility::Immutable, move |arguments| {
            let result = meter::call(arguments, || cast::convert(caller.now(), ty, arguments.value(0)));
            result.map_err(|error| caller.fail(error))
        })?;
    }
    Ok(())
}

/// One call. A function of NULL is NULL, unless it says otherwise.
fn called(run: Run, strict: bool, now: Now, arguments: &Arguments<'_>) -> Result<Value, SqlError> {
    let values: Vec<Value> = (0..arguments.count()).map(|at| arguments.value(at)).collect();
    if strict && values.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    run(now, &values)
}

/// The user's page: each function with an example and its answer.
pub fn page() -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let mut lines = Vec::new();
    for (heading, functions) in GROUPS {
        lines.push(format!("\n## {heading}\n"));
        lines.push("| function | meaning | example | answer |".to_owned());
        lines.push("| --- | --- | --- | --- |".to_owned());
        for function in *functions {
            let name = if function.arguments.starts_with('(') { function.name } else { "" };
            lines.push(format!(
                "| `{}` | {} | `{}` | `{}` |",
                cell(&format!("{name}{}", function.arguments)),
                cell(function.meaning),
                cell(function.example),
                cell(function.answer)
            ));
        }
    }
    lines.join("\n") + "\n"
}

/// Each function's example with its answer.
pub fn examples() -> impl Iterator<Item = (&'static str, &'static str)> {
    all().map(|function| (function.example, function.answer))
}

/// SQLite's functions of groups; a few of them are functions of a row when they have several arguments.
const AGGREGATES: &[&str] = &[
    "avg",
    "count",
    "group_concat",
    "json_group_array",
    "json_group_object",
    "jsonb_group_array",
    "jsonb_group_object",
    "max",
    "min",
    "string_agg",
    "sum",
    "total",
];

/// Functions of windows only.
const WINDOWS: &[&str] = &[
    "cume_dist",
    "dense_rank",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "nth_value",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
];

/// `a`, `w` or `f`, as in `pg_proc.prokind`.
pub fn kind(name: &str) -> &'static str {
    let of_groups = find(name).is_some_and(|function| matches!(function.source, Source::Group));
    if of_groups || AGGREGATES.contains(&name) || numeric::is_aggregate(name) || float::is_aggregate(name) {
        "a"
    } else if WINDOWS.contains(&name) {
        "w"
    } else {
        "f"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function that does not say it would be given the nearest float, or the text, as it happens: `to_char` computed
    /// money so.
    #[test]
    fn every_function_of_a_number_says_what_it_does_with_decimal_ones() {
        let of_numbers = |function: &&FunctionDef| {
            let words = ["number", "value", "(x", "(a, b)"];
            function.types.contains(&SqlType::Float8)
                || words.iter().any(|word| function.arguments.contains(word))
        };
        for function in all().filter(of_numbers) {
            assert!(function.numeric.is_some(), "{}", function.name);
        }
    }

    #[test]
    fn functions_that_stand_for_others_are_there() {
        for function in all() {
            let exact = match function.numeric {
                Some(Numeric::Exact(exact) | Numeric::Wide(exact)) => Some(exact),
                _ => None,
            };
            for other in exact.into_iter().chain(function.of_floats) {
                assert!(is_allowed(other), "{other}, for {}", function.name);
            }
        }
    }
}
