//! The order of values whose texts sort otherwise: spans, times of the day in a zone, `jsonb`, arrays, labels of enums.
//!
//! SQLite compares such values by a collation that is written behind them. A function that chooses among several of
//! them is given their type.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::value::RawValue;
use sqlite::{Connection, Failure};
use store::definition::{Collation, SqlType};
use store::scalar::{moment, numeric};
use store::value::{Value, ValueRef};

use super::jsonb;

/// Of `jsonb`.
const JSONB: &str = "sqlcached_jsonb";
/// Of spans.
const INTERVAL: &str = "sqlcached_interval";
/// Of times of the day in a zone.
const TIMETZ: &str = "sqlcached_timetz";
/// What stands behind the collation of elements where arrays of them are compared.
const ARRAY: &str = "_array";
/// Of elements that are numbers.
const NUMBER: &str = "sqlcached_number";
/// Of elements that sort by their bytes: texts, moments, truths.
const BYTES: &str = "sqlcached_bytes";

/// The collation by which values of a type are sorted; `None`: SQLite sorts them as they are, or by the one that a
/// column of them has.
pub fn collation(ty: SqlType) -> Option<Cow<'static, str>> {
    if ty.is_array() {
        let plain = if ty.scalar().is_number() { NUMBER } else { BYTES };
        return Some(Cow::Owned(array_of(&collation(ty.scalar()).unwrap_or(Cow::Borrowed(plain)))));
    }
    Some(match ty {
        SqlType::Jsonb => Cow::Borrowed(JSONB),
        SqlType::Interval => Cow::Borrowed(INTERVAL),
        SqlType::Timetz => Cow::Borrowed(TIMETZ),
        SqlType::Enum(id) => Cow::Owned(Collation::Enum(id).name().into_owned()),
        _ => return None,
    })
}

/// Whether equal values of a type have several texts, of which a column or function may give any.
pub fn has_spellings(ty: SqlType) -> bool {
    let is_fraction = matches!(ty.scalar(), SqlType::Float4 | SqlType::Float8 | SqlType::Numeric);
    let elements = ty.is_array() && (is_fraction || has_spellings(ty.scalar()));
    elements || matches!(ty, SqlType::Interval | SqlType::Jsonb)
}

/// Makes the orders known that no definition changes.
pub(super) fn register(connection: &Connection) -> Result<(), Failure> {
    for &(name, order) in KNOWN {
        connection.create_collation(name, order)?;
        connection.create_collation(&array_of(name), move |a, b| arrays(a, b, order))?;
    }
    Ok(())
}

/// Makes the order of an enum type known, and that of arrays of it.
pub fn register_enum(
    connection: &Connection,
    id: u16,
    order: impl Fn(&str, &str) -> Ordering + Clone + 'static,
) -> Result<(), Failure> {
    let name = Collation::Enum(id).name();
    connection.create_collation(&name, order.clone())?;
    connection.create_collation(&array_of(&name), move |a, b| arrays(a, b, &order))
}

/// The order of two values of a type; `labels`: that of the labels of an enum type.
pub fn compare(ty: SqlType, labels: &dyn Fn(u16, &str, &str) -> Ordering, a: &Value, b: &Value) -> Ordering {
    let (Value::Text(left), Value::Text(right)) = (a, b) else {
        return numeric_texts(a, b).unwrap_or_else(|| ValueRef::compare(a.as_ref(), b.as_ref()));
    };
    let scalars = |a: &str, b: &str| match ty.scalar() {
        SqlType::Enum(id) => labels(id, a, b),
        number if number.is_number() => numeric::compare(a, b),
        other => {
            let name = collation(other);
            let known = KNOWN.iter().find(|(known, _)| name.as_deref() == Some(*known));
            known.map_or_else(|| a.cmp(b), |(_, order)| order(a, b))
        }
    };
    if ty.is_array() { arrays(left, right, scalars) } else { scalars(left, right) }
}

/// The order of two numbers of which one is a text, as decimal numbers are.
fn numeric_texts(a: &Value, b: &Value) -> Option<Ordering> {
    let text = |value: &Value| match value {
        Value::Integer(_) | Value::Real(_) => Some(numeric::of_value(value).ok()?.text()),
        Value::Text(text) => Some(text.clone()),
        _ => None,
    };
    let mixed = matches!(a, Value::Text(_)) != matches!(b, Value::Text(_));
    mixed.then(|| Some(numeric::compare(&text(a)?, &text(b)?))).flatten()
}

/// How two texts compare.
type Order = fn(&str, &str) -> Ordering;

/// The orders that no definition changes, by their collations.
const KNOWN: &[(&str, Order)] = &[
    (JSONB, jsonb::collate),
    (INTERVAL, super::span::collate),
    (TIMETZ, times),
    (NUMBER, numeric::compare),
    (BYTES, |a, b| a.cmp(b)),
];

fn array_of(elements: &str) -> String {
    format!("{elements}{ARRAY}")
}

/// Of two times of the day in their zones the earlier one is less; of one moment the one further to the east.
fn times(left: &str, right: &str) -> Ordering {
    let parts = |text: &str| {
        let parts = moment::parse(text).ok()?;
        let offset = parts.offset.unwrap_or(0);
        Some((parts.time_us? - offset * 1_000_000, -offset))
    };
    match (parts(left), parts(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => left.cmp(right),
    }
}

/// Two arrays, element by element; what is not known is greatest, and of two that begin alike the shorter one is less.
/// What is no array, which no column of arrays holds, sorts as the text that it is.
fn arrays(left: &str, right: &str, order: impl Fn(&str, &str) -> Ordering) -> Ordering {
    let (Some(ours), Some(theirs)) = (elements(left), elements(right)) else { return left.cmp(right) };
    let pairs = ours.iter().zip(&theirs).map(|pair| match pair {
        (Some(left), Some(right)) => order(left, right),
        (left, right) => left.is_none().cmp(&right.is_none()),
    });
    pairs.into_iter().find(|found| found.is_ne()).unwrap_or_else(|| ours.len().cmp(&theirs.len()))
}

/// An element of an array; `None` is NULL.
type Element<'a> = Option<Cow<'a, str>>;

/// The texts of an array's elements.
fn elements(array: &str) -> Option<Vec<Element<'_>>> {
    let items: Vec<&RawValue> = serde_json::from_str(array).ok()?;
    items.into_iter().map(|item| element(item.get()).ok()).collect()
}

/// The text of one; a value of JSON that is a text is taken out of its quotes.
fn element(written: &str) -> Result<Element<'_>, serde_json::Error> {
    Ok(match written.as_bytes().first() {
        Some(b'n') => None,
        Some(b'"') => Some(serde_json::from_str(written)?),
        _ => Some(Cow::Borrowed(written)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_compared_by_their_elements() {
        let labels = |_, a: &str, b: &str| b.cmp(a);
        let of = |ty: SqlType, a: &str, b: &str| compare(ty, &labels, &Value::from(a), &Value::from(b));
        let array = |ty: SqlType| ty.array().unwrap();
        assert_eq!(of(array(SqlType::Int4), "[10]", "[9,1]"), Ordering::Greater);
        assert_eq!(of(array(SqlType::Int4), "[1]", "[1,null]"), Ordering::Less);
        assert_eq!(of(array(SqlType::Int4), "[null]", "[2]"), Ordering::Greater);
        assert_eq!(of(array(SqlType::Numeric), "[1.0,\"2\"]", "[\"1\",2.00]"), Ordering::Equal);
        assert_eq!(of(array(SqlType::Numeric), "[\"NaN\"]", "[9]"), Ordering::Greater);
        assert_eq!(of(array(SqlType::Text), "[\"a\"]", "[\"B\"]"), Ordering::Greater);
        assert_eq!(of(array(SqlType::Interval), "[\"1 mon\"]", "[\"30 days\"]"), Ordering::Equal);
        assert_eq!(of(array(SqlType::Enum(1)), "[\"a\"]", "[\"b\"]"), Ordering::Greater);
        assert_eq!(of(SqlType::Timetz, "10:00:00+02:00", "09:00:00+00:00"), Ordering::Less);
    }
}
