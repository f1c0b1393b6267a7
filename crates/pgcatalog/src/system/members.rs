//! Functions that give a row for each member of a JSON value.

use sqltext::error::SqlError;
use store::definition::SqlType::{Json, Jsonb, Text};
use store::value::Value;

use super::series::{RowColumn, RowFunction, RowSource, each, named, single};
use crate::function::{self, Member};

const fn elements(
    name: &'static str,
    columns: &'static [RowColumn],
    source: fn(&[Value]) -> Result<RowSource, SqlError>,
) -> RowFunction {
    named(name, columns, (1, 1), source)
}

/// What `jsonb_each` is called: SQLite has another of this name.
pub const JSONB_EACH: &str = "_jsonb_each";

const JSON: &[RowColumn] = &[RowColumn::is("value", Json)];
const JSONB: &[RowColumn] = &[RowColumn::is("value", Jsonb)];
const TEXTS: &[RowColumn] = &[RowColumn::is("value", Text)];
const PAIRS: &[RowColumn] = &[RowColumn::is("key", Text), RowColumn::is("value", Jsonb)];
const TEXT_PAIRS: &[RowColumn] = &[RowColumn::is("key", Text), RowColumn::is("value", Text)];

pub(super) static FUNCTIONS: &[RowFunction] = &[
    elements("json_array_elements", JSON, |of| element_values(of, |value| Ok(Value::from(value)))),
    elements("jsonb_array_elements", JSONB, |of| element_values(of, |value| Ok(Value::from(value)))),
    elements("json_array_elements_text", TEXTS, |of| element_values(of, function::json_value_text)),
    elements("jsonb_array_elements_text", TEXTS, |of| element_values(of, function::jsonb_text_of)),
    named(JSONB_EACH, PAIRS, (1, 1), |arguments| pairs(arguments, |value| Ok(Value::from(value)))),
    named("json_each_text", TEXT_PAIRS, (1, 1), |arguments| pairs(arguments, function::json_value_text)),
    named("jsonb_each_text", TEXT_PAIRS, (1, 1), |arguments| pairs(arguments, function::jsonb_text_of)),
    single("json_object_keys", TEXTS, (1, 1), keys),
    single("jsonb_object_keys", TEXTS, (1, 1), keys),
];

fn element_values(
    arguments: &[Value],
    value: fn(&str) -> Result<Value, SqlError>,
) -> Result<RowSource, SqlError> {
    Ok(each(function::json_elements(&arguments[0], value)?))
}

fn pairs(arguments: &[Value], value: fn(&str) -> Result<Value, SqlError>) -> Result<RowSource, SqlError> {
    let members = function::json_members(&arguments[0], value)?;
    Ok(Box::new(members.into_iter().map(|Member { key, value }| vec![Value::Text(key), value])))
}

fn keys(arguments: &[Value]) -> Result<RowSource, SqlError> {
    let members = function::json_members(&arguments[0], |_| Ok(Value::Null))?;
    Ok(each(members.into_iter().map(|member| Value::Text(member.key)).collect()))
}
