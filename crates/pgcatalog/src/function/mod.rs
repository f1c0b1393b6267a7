//! The functions that a statement may call: one table of them, of which the registration, the allow-list, the types and
//! the user's page are made.

mod builtin;
mod cast;
mod def;
mod format;
mod json;
mod jsonb;
pub mod like;
mod maths;
mod moment;
mod more;
mod numeric;
mod patch;
mod pattern;
mod search;
mod spread;
mod text;

use std::rc::Rc;

use sqlite::meter;
use sqlite::{Arguments, Connection, Volatility};
use sqltext::error::SqlError;
use store::definition::SqlType;
use store::value::Value;

pub use cast::{bound, is_formed};
pub use def::{Caller, Now, Returns};
use def::{FunctionDef, Run, Source};
pub use json::each_json;
pub(crate) use jsonb::{Member, json_elements, json_members, json_value_text};
pub(crate) use moment::moment_series;
pub use numeric::Sum;
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
    ("Numbers", maths::FUNCTIONS),
    ("Numbers, SQLite's", builtin::NUMBERS),
    ("Decimal numbers", numeric::FUNCTIONS),
    ("Numbers, JSON and choices of PostgreSQL's", more::FUNCTIONS),
    ("JSON, PostgreSQL's operators", jsonb::FUNCTIONS),
    ("Choices and kinds", builtin::VALUES),
    ("JSON", builtin::JSON_FUNCTIONS),
    ("Groups", builtin::GROUPS),
    ("Groups, PostgreSQL's", spread::FUNCTIONS),
    ("Windows", builtin::WINDOWS),
];

/// What the dialect's other names for functions return.
const RENAMED: &[(&str, Returns)] = &[
    ("array_agg", Returns::Array),
    ("json_agg", Returns::Type(SqlType::Json)),
    ("jsonb_agg", Returns::Type(SqlType::Jsonb)),
    ("json_object_agg", Returns::Type(SqlType::Json)),
    ("jsonb_object_agg", Returns::Type(SqlType::Jsonb)),
    ("json_build_object", Returns::Type(SqlType::Json)),
    ("jsonb_build_object", Returns::Type(SqlType::Jsonb)),
    ("json_build_array", Returns::Type(SqlType::Json)),
    ("jsonb_build_array", Returns::Type(SqlType::Jsonb)),
    ("jsonb_array_length", Returns::Type(SqlType::Int4)),
    ("jsonb_typeof", Returns::Type(SqlType::Text)),
    ("jsonb_strip_nulls", Returns::Type(SqlType::Jsonb)),
    ("jsonb_pretty", Returns::Type(SqlType::Text)),
    ("array_to_json", Returns::Type(SqlType::Json)),
    ("numeric_avg", Returns::Type(SqlType::Numeric)),
    ("numeric_sum", Returns::Type(SqlType::Numeric)),
    ("bool_and", Returns::Type(SqlType::Bool)),
    ("bool_or", Returns::Type(SqlType::Bool)),
    ("every", Returns::Type(SqlType::Bool)),
    ("exists", Returns::Type(SqlType::Bool)),
    ("chr", Returns::Type(SqlType::Text)),
    ("char_length", Returns::Type(SqlType::Int4)),
    ("character_length", Returns::Type(SqlType::Int4)),
    // Of the catalogue and of the session.
    ("array_length", Returns::Type(SqlType::Int4)),
    ("cardinality", Returns::Type(SqlType::Int4)),
    ("array_position", Returns::Type(SqlType::Int4)),
    ("array_append", Returns::Argument),
    ("array_remove", Returns::Argument),
    ("array_prepend", Returns::Second),
    ("array_replace", Returns::Argument),
    ("array_cat", Returns::Argument),
    ("row_to_json", Returns::Type(SqlType::Json)),
    ("pg_advisory_lock", Returns::Type(SqlType::Void)),
    ("pg_advisory_lock_shared", Returns::Type(SqlType::Void)),
    ("pg_advisory_unlock", Returns::Type(SqlType::Bool)),
    ("pg_advisory_unlock_all", Returns::Type(SqlType::Void)),
    ("pg_advisory_unlock_shared", Returns::Type(SqlType::Bool)),
    ("pg_advisory_xact_lock", Returns::Type(SqlType::Void)),
    ("pg_advisory_xact_lock_shared", Returns::Type(SqlType::Void)),
    ("pg_try_advisory_lock", Returns::Type(SqlType::Bool)),
    ("pg_try_advisory_lock_shared", Returns::Type(SqlType::Bool)),
    ("pg_try_advisory_xact_lock", Returns::Type(SqlType::Bool)),
    ("pg_try_advisory_xact_lock_shared", Returns::Type(SqlType::Bool)),
    ("pg_backend_pid", Returns::Type(SqlType::Int4)),
    ("pg_cancel_backend", Returns::Type(SqlType::Bool)),
    ("pg_notify", Returns::Type(SqlType::Void)),
    ("wait_for_source", Returns::Type(SqlType::Bool)),
    ("set_config", Returns::Type(SqlType::Text)),
    ("current_setting", Returns::Type(SqlType::Text)),
    ("currval", Returns::Type(SqlType::Int8)),
    ("lastval", Returns::Type(SqlType::Int8)),
    ("nextval", Returns::Type(SqlType::Int8)),
    ("pg_sequence_last_value", Returns::Type(SqlType::Int8)),
    ("setval", Returns::Type(SqlType::Int8)),
    ("current_database", Returns::Type(SqlType::Name)),
    ("current_schema", Returns::Type(SqlType::Name)),
    ("current_schemas", Returns::Texts),
    ("current_user", Returns::Type(SqlType::Name)),
    ("session_user", Returns::Type(SqlType::Name)),
    ("version", Returns::Type(SqlType::Text)),
    ("to_regclass", Returns::Type(SqlType::Regclass)),
    ("to_regnamespace", Returns::Type(SqlType::Regnamespace)),
    ("to_regtype", Returns::Type(SqlType::Regtype)),
    ("format_type", Returns::Type(SqlType::Text)),
    ("pg_postmaster_start_time", Returns::Type(SqlType::Timestamptz)),
    ("pg_conf_load_time", Returns::Type(SqlType::Timestamptz)),
    ("pg_get_userbyid", Returns::Type(SqlType::Name)),
    ("pg_encoding_to_char", Returns::Type(SqlType::Name)),
    ("pg_stat_get_numscans", Returns::Type(SqlType::Int8)),
    ("pg_is_in_recovery", Returns::Type(SqlType::Bool)),
    ("pg_table_is_visible", Returns::Type(SqlType::Bool)),
    ("pg_type_is_visible", Returns::Type(SqlType::Bool)),
    ("pg_function_is_visible", Returns::Type(SqlType::Bool)),
    ("pg_total_relation_size", Returns::Type(SqlType::Int8)),
    ("pg_relation_size", Returns::Type(SqlType::Int8)),
    ("pg_table_size", Returns::Type(SqlType::Int8)),
    ("pg_indexes_size", Returns::Type(SqlType::Int8)),
    ("pg_database_size", Returns::Type(SqlType::Int8)),
    ("has_any_column_privilege", Returns::Type(SqlType::Bool)),
    ("has_column_privilege", Returns::Type(SqlType::Bool)),
    ("has_database_privilege", Returns::Type(SqlType::Bool)),
    ("has_schema_privilege", Returns::Type(SqlType::Bool)),
    ("has_sequence_privilege", Returns::Type(SqlType::Bool)),
    ("has_table_privilege", Returns::Type(SqlType::Bool)),
    ("acldefault", Returns::Texts),
    ("pg_has_role", Returns::Type(SqlType::Bool)),
    ("xid_age", Returns::Type(SqlType::Int4)),
    ("txid_current", Returns::Type(SqlType::Int8)),
    ("changes", Returns::Type(SqlType::Int8)),
    ("total_changes", Returns::Type(SqlType::Int8)),
    ("last_insert_rowid", Returns::Type(SqlType::Int8)),
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
        || numeric::AGGREGATES.contains(&name)
        || OF_SESSION.contains(&name)
        || SQLITE_WORDS.contains(&name)
        || cast::is_cast(name)
}

/// What a session's statements wrote; the session itself registers them.
pub const OF_SESSION: &[&str] = &["changes", "total_changes", "last_insert_rowid"];

/// Functions that SQLite knows without parentheses.
const SQLITE_WORDS: &[&str] = &["current_date", "current_time", "current_timestamp"];

/// The functions that need nothing of the catalogue, but for operators and casts.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let own = all().map(|function| function.name);
    own.filter(|name| name.starts_with(|first: char| first.is_ascii_alphabetic()))
}

/// What a function returns; the name is in lower case.
pub fn returns(name: &str) -> Option<Returns> {
    let renamed = RENAMED.iter().find(|(own, _)| *own == name).map(|(_, returns)| *returns);
    renamed.or_else(|| find(name).map(|function| function.returns))
}

/// The types of a function's first arguments.
pub fn argument_types(name: &str) -> &'static [SqlType] {
    if name.starts_with("pg_") && name.contains("advisory_") {
        return &[SqlType::Int8, SqlType::Int8];
    }
    find(name).map_or(&[], |function| function.types)
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
    numeric::register(connection, caller)?;
    spread::register(connection, caller)?;
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

/// Functions of groups; a few of them are functions of a row when they have several arguments.
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
    "numeric_avg",
    "numeric_sum",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "total",
    "var_pop",
    "var_samp",
    "variance",
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
    if AGGREGATES.contains(&name) {
        "a"
    } else if WINDOWS.contains(&name) {
        "w"
    } else {
        "f"
    }
}
