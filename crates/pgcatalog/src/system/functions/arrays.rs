//! Arrays, which values hold as JSON.

use sqlite::meter::Text;
use sqltext::error::SqlError;
use store::definition::SqlType;
use store::scalar::float;
use store::value::Value;

use super::{Call, FunctionDef, function, optional};
use crate::function::order;
use crate::system::array::{self, Elements};
use crate::system::rows::int;

pub(super) static FUNCTIONS: &[FunctionDef] = &[
    // The fields of a row of `_pg_expandarray` in the list of a SELECT.
    function("_row_expand", (2, 2), |_, call| match call.integer(1) {
        Some(number) => {
            array::record([("x", call.value(0).clone()), ("n", Value::Integer(number))].into_iter())
        }
        None => Value::Null,
    }),
    function("array_append", (2, 2), |_, call| {
        let items = Elements::read(call.value(0)).unwrap_or_default().items;
        array::of_values(items.into_iter().chain([call.value(1).clone()]))
    }),
    function("array_element", (2, 2), |_, call| match (Elements::read(call.value(0)), call.integer(1)) {
        (Some(elements), Some(number)) => elements.get(number),
        _ => Value::Null,
    }),
    function("array_length", (2, 2), |_, call| dimension(call, |elements| int(elements.items.len()))),
    function("array_lower", (2, 2), |_, call| dimension(call, |elements| int(elements.first))),
    function("array_ndims", (1, 1), |_, call| match Elements::read(call.value(0)) {
        Some(elements) if !elements.items.is_empty() => int(1),
        _ => Value::Null,
    }),
    function("array_position", (2, 2), |_, call| position(call, None)),
    function("array_position_of", (3, 3), |_, call| position(call, call.oid(2))),
    function("array_prepend", (2, 2), |_, call| {
        let items = Elements::read(call.value(1)).unwrap_or_default().items;
        array::of_values([call.value(0).clone()].into_iter().chain(items))
    }),
    function("array_replace", (3, 3), |_, call| replaced(call, None)),
    function("array_replace_of", (4, 4), |_, call| replaced(call, call.oid(3))),
    function("array_slice", (3, 3), |_, call| match Elements::read(call.value(0)) {
        None => Value::Null,
        Some(elements) => {
            let first = call.integer(1).unwrap_or(elements.first);
            let last = call.integer(2).unwrap_or_else(|| elements.last());
            let numbered = (elements.first..).zip(elements.items);
            array::of_values(
                numbered.filter(|(number, _)| (first..=last).contains(number)).map(|(_, item)| item),
            )
        }
    }),
    function("array_remove", (2, 2), |_, call| without(call, None)),
    function("array_remove_of", (3, 3), |_, call| without(call, call.oid(2))),
    function("array_to_string", (2, 3), |_, call| array_to_string(call)),
    function("texts_joined", (2, 2), |_, call| texts_joined(call)),
    function("array_upper", (2, 2), |_, call| dimension(call, |elements| int(elements.last()))),
    function("cardinality", (1, 1), |_, call| {
        Elements::read(call.value(0)).map_or(Value::Null, |elements| int(elements.items.len()))
    }),
];

/// An answer about the first dimension: all arrays here have but one, and an empty array has none.
fn dimension(call: &Call, answer: fn(&Elements) -> Value) -> Value {
    match (Elements::read(call.value(0)), call.integer(1)) {
        (Some(elements), Some(1)) if !elements.items.is_empty() => answer(&elements),
        _ => Value::Null,
    }
}

/// Where the first element stands that equals a value. `ty` here and below: see [`same`].
fn position(call: &Call, ty: Option<u32>) -> Value {
    let Some(elements) = Elements::read(call.value(0)) else { return Value::Null };
    let found = elements.items.iter().position(|item| same(item, call.value(1), ty));
    found.map_or(Value::Null, |at| int(elements.first + i64::try_from(at).unwrap_or(0)))
}

/// The array with another value in the place of each element that equals one.
fn replaced(call: &Call, ty: Option<u32>) -> Value {
    let Some(elements) = Elements::read(call.value(0)) else { return Value::Null };
    let goes = |item: &Value| same(item, call.value(1), ty) || (item.is_null() && call.value(1).is_null());
    let items = elements.items.into_iter();
    array::of_values(items.map(|item| if goes(&item) { call.value(2).clone() } else { item }))
}

/// The array without the elements that equal a value.
fn without(call: &Call, ty: Option<u32>) -> Value {
    let Some(elements) = Elements::read(call.value(0)) else { return Value::Null };
    array::of_values(elements.items.into_iter().filter(|item| !same(item, call.value(1), ty)))
}

/// Elements of an array may be numbers where the other is a text. `ty`: their type, if its equal values have several
/// texts.
fn same(left: &Value, right: &Value, ty: Option<u32>) -> bool {
    let spelled = ty.and_then(SqlType::of_oid).filter(|_| !left.is_null() && !right.is_null());
    let equal = |ty| order::compare(ty, &|_, a, b| a.cmp(b), left, right).is_eq();
    left == right || (shown(left).is_some() && shown(left) == shown(right)) || spelled.is_some_and(equal)
}

/// An element as PostgreSQL writes it.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Real(real) => Some(float::text(*real)),
        other => Call(vec![other.clone()]).text(0),
    }
}

fn array_to_string(call: &Call) -> Value {
    let (Some(elements), Some(separator)) = (Elements::read(call.value(0)), call.text(1)) else {
        return Value::Null;
    };
    let null = call.text(2);
    optional(joined(&elements, &separator, null.as_deref()).ok())
}

/// The texts of a group; NULL of a group that has none.
fn texts_joined(call: &Call) -> Value {
    let Some(elements) = Elements::read(call.value(0)) else { return Value::Null };
    if elements.items.iter().all(Value::is_null) {
        return Value::Null;
    }
    let separator = call.text(1).unwrap_or_default();
    optional(joined(&elements, &separator, None).ok())
}

fn joined(elements: &Elements, separator: &str, null: Option<&str>) -> Result<String, SqlError> {
    let mut text = Text::new();
    let mut first = true;
    for item in &elements.items {
        let shown = shown(item);
        let Some(part) = shown.as_deref().or(null) else { continue };
        if !std::mem::take(&mut first) {
            text.push(separator)?;
        }
        text.push(part)?;
    }
    Ok(text.finish())
}
