//! Functions of numbers, of JSON, and of several values.

use std::collections::HashSet;

use SqlType::{Bool, Float8, Int8, Jsonb, Text};
use serde_json::Value as Json;
use sqlite::meter;
use sqltext::error::{SqlError, state};
use store::definition::{Collation, SqlType};
use store::scalar::array::of_braces;
use store::scalar::simple::check_json_depth;
use store::value::{Value, ValueRef};
use store::{ElementKeys, ElementsOf};

use super::def::{FunctionDef, Now, Numeric, Returns, Source, Spans, integer, real, text};
use super::json::{contains, parsed};
use super::jsonb::{json_value_text, value_at, without_nulls};
use super::text::truth;
use crate::limits::NODE_UNITS;

#[expect(clippy::too_many_arguments, reason = "one line of a table, each part of it")]
const fn own(
    name: &'static str,
    arguments: &'static str,
    returns: Returns,
    types: &'static [SqlType],
    source: Source,
    meaning: &'static str,
    example: &'static str,
    answer: &'static str,
) -> FunctionDef {
    FunctionDef {
        name,
        arguments,
        returns,
        types,
        source,
        numeric: None,
        of_floats: None,
        of_spans: None,
        meaning,
        example,
        answer,
    }
}

const fn ty(ty: SqlType) -> Returns {
    Returns::Type(ty)
}

/// Numbers, JSON, and choices between values.
#[rustfmt::skip]
pub(super) const FUNCTIONS: &[FunctionDef] = &[
    own("array_contains", "(array, part)", ty(Bool), &[], Source::Own(array_contains, 2, 2),
        "what `array @> part` asks: whether it has all elements of the part", "ARRAY[1, 2, 3] @> ARRAY[3, 1]", "1").numeric(Numeric::Nearest),
    own("array_has", "(array, value)", ty(Bool), &[], Source::Own(array_has, 2, 2),
        "what `value = ANY (array)` asks: whether it is one of the elements", "array_has(ARRAY['a', 'b'], 'b')", "1").numeric(Numeric::Nearest),
    own("array_overlaps", "(array, array)", ty(Bool), &[], Source::Own(array_overlaps, 2, 2),
        "what `array && array` asks: whether they have an element in common", "ARRAY[1, 2] && ARRAY[2, 3]", "1").numeric(Numeric::Nearest),
    own("cbrt", "(number)", ty(Float8), &[Float8], Source::Own(|_, v| Ok(Value::from(real(v, 0)?.cbrt())), 1, 1),
        "the cube root", "cbrt(27)", "3.0").numeric(Numeric::Nearest),
    own("div", "(a, b)", Returns::Common, &[], Source::Own(div, 2, 2),
        "the whole part of the quotient", "div(9, 4)", "2").numeric(Numeric::Exact("numeric_quotient")),
    own("lcm", "(a, b)", Returns::Common, &[Int8, Int8], Source::Own(lcm, 2, 2),
        "the least common multiple", "lcm(4, 6)", "12").numeric(Numeric::Exact("numeric_lcm")),
    own("num_nonnulls", "(value, ...)", ty(SqlType::Int4), &[], Source::Raw(|_, v| Ok(counted(v, false)), -1, -1, false),
        "how many are not NULL", "num_nonnulls(1, NULL, 3)", "2").numeric(Numeric::Text),
    own("num_nulls", "(value, ...)", ty(SqlType::Int4), &[], Source::Raw(|_, v| Ok(counted(v, true)), -1, -1, false),
        "how many are NULL", "num_nulls(1, NULL, 3)", "1").numeric(Numeric::Text),
    own("width_bucket", "(number, low, high, count)", ty(SqlType::Int4), &[Float8, Float8, Float8, SqlType::Int4], Source::Own(width_bucket, 4, 4),
        "in which of so many equal parts of a range it lies, from 1", "width_bucket(5, 0, 10, 5)", "3").numeric(Numeric::Exact("numeric_width_bucket")),
    own("gcd", "(a, b)", Returns::Common, &[Int8, Int8], Source::Own(gcd, 2, 2),
        "the greatest common divisor", "gcd(12, 18)", "6").numeric(Numeric::Exact("numeric_gcd")),
    own("greatest", "(value, ...)", Returns::Common, &[], Source::Raw(|_, v| Ok(extreme(v, true)), -1, -1, false),
        "the largest; NULLs are left out", "greatest(1, NULL, 3)", "3").numeric(Numeric::Exact("numeric_greatest")).of_spans(Spans::Keys),
    own("json_extract_path", "(json, key, ...)", ty(SqlType::Json), &[SqlType::Json], Source::Own(|_, v| path(v, false), -1, -1),
        "the value at the end of the path", "json_extract_path('{\"a\":{\"b\":[1]}}', 'a', 'b')", "[1]"),
    own("json_extract_path_text", "(json, key, ...)", ty(Text), &[SqlType::Json], Source::Own(|_, v| path(v, true), -1, -1),
        "the same as text", "json_extract_path_text('{\"a\":\"x\"}', 'a')", "x"),
    own("json_strip_nulls", "(json)", ty(SqlType::Json), &[SqlType::Json], Source::Own(strip_nulls, 1, 1),
        "without members that are null", "json_strip_nulls('{\"a\":1,\"b\":null}')", "{\"a\":1}"),
    own("json_typeof", "(json)", ty(Text), &[SqlType::Json], Source::Own(json_typeof, 1, 1),
        "`object`, `array`, `string`, `number`, `boolean` or `null`", "json_typeof('[1]')", "array"),
    own("jsonb_contains", "(json, part)", ty(Bool), &[Jsonb, Jsonb], Source::Own(|_, v| Ok(truth(contains(&json(v, 0)?, &json(v, 1)?)?)), 2, 2),
        "what `json @> part` asks: whether it contains the part", "'{\"a\":1,\"b\":2}' @> '{\"a\":1}'", "1"),
    own("jsonb_extract_path_list", "(json, keys)", ty(Jsonb), &[Jsonb], Source::Own(|_, v| path_list(v, false), 2, 2),
        "what `json #> '{a,b}'` is", "'{\"a\":{\"b\":2}}' #> '{a,b}'", "2"),
    own("jsonb_extract_path_list_text", "(json, keys)", ty(Text), &[Jsonb], Source::Own(|_, v| path_list(v, true), 2, 2),
        "what `json #>> '{a,b}'` is", "'{\"a\":[\"x\"]}' #>> '{a,0}'", "x"),
    own("least", "(value, ...)", Returns::Common, &[], Source::Raw(|_, v| Ok(extreme(v, false)), -1, -1, false),
        "the smallest; NULLs are left out", "least(2, NULL, 1)", "1").numeric(Numeric::Exact("numeric_least")).of_spans(Spans::Keys),
    own("to_json", "(value)", ty(SqlType::Json), &[], Source::Own(|_, v| Ok(Value::Text(to_json(v)?.to_string())), 1, 1),
        "the value as JSON", "to_json('a\"b')", "\"a\\\"b\"").numeric(Numeric::Text),
    own("to_jsonb", "(value)", ty(Jsonb), &[], Source::Own(|_, v| Ok(Value::Text(to_json(v)?.to_string())), 1, 1),
        "the value as JSON", "to_jsonb(1.5)", "1.5").numeric(Numeric::Text),
];

/// What an element takes in a list, and in a set of those that are there, with a short text of its own.
const SEEN_BYTES: usize = 3 * size_of::<&Json>() + 3 * size_of::<String>() + 32;

/// What a byte of a text becomes at most in JSON.
const JSON_TEXT_BYTES: usize = 6;

/// NULL equals nothing, so that an array with one is part of none. Elements of arrays within arrays count alike.
fn array_contains(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (there, asked) = (elements(&json(values, 0)?)?, elements(&json(values, 1)?)?);
    let there: HashSet<&String> = there.iter().flatten().collect();
    Ok(truth(asked.iter().all(|one| one.as_ref().is_some_and(|one| there.contains(one)))))
}

/// NULL where no element equals the value and one is NULL, which might.
fn array_has(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let array = values.first().unwrap_or(&Value::Null).as_ref();
    let bytes = if let ValueRef::Text(text) = array { text.len() } else { 0 };
    meter::take(bytes)?;
    meter::work(bytes)?;
    let wanted = values.get(1).unwrap_or(&Value::Null).as_ref();
    if ElementKeys::of(array, ElementsOf::Array).contains(wanted, Collation::Binary) {
        return Ok(truth(true));
    }
    let parts = elements(&json(values, 0)?)?;
    Ok(if parts.contains(&None) { Value::Null } else { truth(false) })
}

fn array_overlaps(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (there, asked) = (elements(&json(values, 0)?)?, elements(&json(values, 1)?)?);
    let there: HashSet<&String> = there.iter().flatten().collect();
    Ok(truth(asked.iter().flatten().any(|one| there.contains(one))))
}

/// The elements of an array as JSON; none for NULL.
fn elements(array: &Json) -> Result<Vec<Option<String>>, SqlError> {
    fn each<'j>(json: &'j Json, into: &mut Vec<&'j Json>) {
        match json {
            Json::Array(parts) => parts.iter().for_each(|part| each(part, into)),
            other => into.push(other),
        }
    }
    let mut found = Vec::new();
    each(array, &mut found);
    // Each is written once more, and kept.
    meter::take(found.len() * SEEN_BYTES)?;
    meter::work(found.len() * NODE_UNITS)?;
    Ok(found.into_iter().map(|one| (!one.is_null()).then(|| one.to_string())).collect())
}

fn div(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let zero = || SqlError::new("22012", "division by zero");
    match (values.first(), values.get(1)) {
        (Some(Value::Integer(_)), Some(Value::Integer(0))) => Err(zero()),
        (Some(Value::Integer(a)), Some(Value::Integer(b))) => a
            .checked_div(*b)
            .map(Value::Integer)
            .ok_or_else(|| SqlError::new(state::OUT_OF_RANGE, "bigint out of range")),
        _ => {
            let (a, b) = (real(values, 0)?, real(values, 1)?);
            if b == 0.0 { Err(zero()) } else { Ok(Value::Real((a / b).trunc())) }
        }
    }
}

fn counted(values: &[Value], nulls: bool) -> Value {
    let count = values.iter().filter(|value| value.is_null() == nulls).count();
    Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}

fn lcm(now: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (a, b) = (integer(values, 0)?.unwrap_or(0), integer(values, 1)?.unwrap_or(0));
    if a == 0 || b == 0 {
        return Ok(Value::Integer(0));
    }
    let Value::Integer(divisor @ 1..) = gcd(now, values)? else { return Ok(Value::Integer(0)) };
    let multiple = (a / divisor).checked_mul(b).and_then(i64::checked_abs);
    multiple.map(Value::Integer).ok_or_else(|| SqlError::new(state::OUT_OF_RANGE, "bigint out of range"))
}

fn width_bucket(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (of, low, high) = (real(values, 0)?, real(values, 1)?, real(values, 2)?);
    let count = integer(values, 3)?.unwrap_or(0);
    let refused = |what: &str| Err(SqlError::new("2201G", what));
    if count <= 0 {
        return refused("count must be greater than zero");
    }
    if !(low.is_finite() && high.is_finite()) || of.is_nan() {
        return refused("operand, lower bound, and upper bound cannot be NaN");
    }
    #[expect(clippy::float_cmp, reason = "a range without width")]
    if low == high {
        return refused("lower bound cannot equal upper bound");
    }
    let share = (of - low) / (high - low);
    #[expect(clippy::cast_possible_truncation, reason = "between the ends")]
    let within = |share: f64| (share * count as f64).floor() as i64 + 1;
    Ok(Value::Integer(match share {
        share if share < 0.0 => 0,
        share if share >= 1.0 => count.saturating_add(1),
        share => within(share),
    }))
}

fn gcd(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let absolute = |at: usize| Ok::<_, SqlError>(integer(values, at)?.unwrap_or(0).unsigned_abs());
    let (mut a, mut b) = (absolute(0)?, absolute(1)?);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a)
        .map(Value::Integer)
        .map_err(|_| SqlError::new(state::OUT_OF_RANGE, "bigint out of range"))
}

fn extreme(values: &[Value], largest: bool) -> Value {
    let there = values.iter().filter(|value| !value.is_null());
    let order = |a: &&Value, b: &&Value| ValueRef::compare(a.as_ref(), b.as_ref());
    let found = if largest { there.max_by(order) } else { there.min_by(order) };
    found.cloned().unwrap_or_default()
}

fn json(values: &[Value], at: usize) -> Result<Json, SqlError> {
    let text = text(values, at)?;
    check_json_depth(&text)?;
    parsed(&text)
}

fn to_json(values: &[Value]) -> Result<Json, SqlError> {
    Ok(match values.first() {
        Some(Value::Integer(integer)) => Json::from(*integer),
        Some(Value::Real(real)) => Json::from(*real),
        _ => {
            let text = text(values, 0)?;
            // A control character is written as six.
            meter::take(text.len() * JSON_TEXT_BYTES)?;
            Json::from(text)
        }
    })
}

/// A JSON value as `->` or as `->>` gives it.
/// The value at the end of a path, as it is written.
fn shown(json: &str, keys: &[String], as_text: bool) -> Result<Value, SqlError> {
    Ok(match value_at(json, keys)? {
        None => Value::Null,
        Some(found) if as_text => json_value_text(&found)?,
        Some(found) => Value::Text(found),
    })
}

fn path(values: &[Value], as_text: bool) -> Result<Value, SqlError> {
    let keys: Result<Vec<String>, SqlError> = (1..values.len()).map(|at| text(values, at)).collect();
    shown(&text(values, 0)?, &keys?, as_text)
}

fn path_list(values: &[Value], as_text: bool) -> Result<Value, SqlError> {
    let list = text(values, 1)?;
    let keys: Option<Vec<String>> = match of_braces(list.trim()) {
        Some(elements) => (0..elements.len()).map(|at| text(&elements, at).ok()).collect(),
        None => serde_json::from_str(&list).ok(),
    };
    let keys = keys.ok_or_else(|| SqlError::new(state::BAD_VALUE, "a path is a list of keys: '{a,b}'"))?;
    shown(&text(values, 0)?, &keys, as_text)
}

fn strip_nulls(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    without_nulls(&text(values, 0)?).map(Value::Text)
}

fn json_typeof(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    Ok(Value::from(match json(values, 0)? {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }))
}
