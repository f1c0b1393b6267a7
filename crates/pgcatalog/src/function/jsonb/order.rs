//! The order of `jsonb` values, as PostgreSQL has it: objects come behind arrays, these behind truths, numbers, texts
//! and
//! `null`; of two objects or arrays the longer one is greater, whatever is in it.

use std::cmp::Ordering;

use sqltext::error::SqlError;
use store::scalar::numeric;
use store::value::Value;

use super::super::def::{Now, text};
use super::{Key, Level, text_of};

/// -1, 0 or 1, as the first value is less than the second, equal to it, or greater.
pub(super) fn compare(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    Ok(Value::Integer(whole(&text(values, 0)?, &text(values, 1)?)? as i64))
}

fn whole(left: &str, right: &str) -> Result<Ordering, SqlError> {
    Ok(match (Level::of(left)?, Level::of(right)?) {
        // A value by itself is an array of one to PostgreSQL, which it compares with other arrays by their length.
        (Level::Array(items), Level::Scalar(_)) => beside_scalar(items.len()),
        (Level::Scalar(_), Level::Array(items)) => beside_scalar(items.len()).reverse(),
        (left, right) => levels(left, right)?,
    })
}

/// The order of two texts of `jsonb` values, for the terms of `ORDER BY`. What is no JSON sorts as the text that it is.
pub(in super::super) fn collate(left: &str, right: &str) -> Ordering {
    whole(left, right).unwrap_or_else(|_| left.cmp(right))
}

fn beside_scalar(items: usize) -> Ordering {
    if items == 0 { Ordering::Less } else { Ordering::Greater }
}

fn values(left: &str, right: &str) -> Result<Ordering, SqlError> {
    levels(Level::of(left)?, Level::of(right)?)
}

fn levels(left: Level<'_>, right: Level<'_>) -> Result<Ordering, SqlError> {
    match (left, right) {
        (Level::Scalar(left), Level::Scalar(right)) => Ok(scalars(left, right)),
        (Level::Array(left), Level::Array(right)) => arrays(&left, &right),
        (Level::Object(left), Level::Object(right)) => objects(left, right),
        (left, right) => Ok(depth(&left).cmp(&depth(&right))),
    }
}

fn depth(level: &Level<'_>) -> u8 {
    match level {
        Level::Scalar(_) => 0,
        Level::Array(_) => 1,
        Level::Object(_) => 2,
    }
}

fn arrays(left: &[&str], right: &[&str]) -> Result<Ordering, SqlError> {
    let longer = left.len().cmp(&right.len());
    if longer.is_ne() {
        return Ok(longer);
    }
    first_difference(left.iter().zip(right).map(|(left, right)| values(left, right)))
}

/// Member by member, the shorter keys first.
fn objects(left: Members<'_>, right: Members<'_>) -> Result<Ordering, SqlError> {
    let longer = left.len().cmp(&right.len());
    if longer.is_ne() {
        return Ok(longer);
    }
    let pairs = in_order(left).into_iter().zip(in_order(right));
    let member = |((left, ours), (right, theirs)): ((Key<'_>, &str), (Key<'_>, &str))| {
        let keys = left.0.cmp(&right.0);
        if keys.is_ne() { Ok(keys) } else { values(ours, theirs) }
    };
    first_difference(pairs.map(member))
}

/// The members of an object.
type Members<'j> = Vec<(Key<'j>, &'j str)>;

fn in_order(mut members: Members<'_>) -> Members<'_> {
    members.sort_by(|(left, _), (right, _)| (left.0.len(), &left.0).cmp(&(right.0.len(), &right.0)));
    members
}

fn first_difference(
    mut orders: impl Iterator<Item = Result<Ordering, SqlError>>,
) -> Result<Ordering, SqlError> {
    let differs = |order: &Result<Ordering, SqlError>| !matches!(order, Ok(Ordering::Equal));
    orders.find(differs).unwrap_or(Ok(Ordering::Equal))
}

/// A value that has no others in it, in the order of PostgreSQL's kinds.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Null,
    Text,
    Number,
    Truth,
}

fn kind(json: &str) -> Kind {
    match json.as_bytes().first() {
        Some(b'n') => Kind::Null,
        Some(b'"') => Kind::Text,
        Some(b't' | b'f') => Kind::Truth,
        _ => Kind::Number,
    }
}

fn scalars(left: &str, right: &str) -> Ordering {
    match (kind(left), kind(right)) {
        (Kind::Text, Kind::Text) => text_of(left).cmp(&text_of(right)),
        (Kind::Number, Kind::Number) => numeric::compare(left, right),
        // `false` is less than `true`, as its word is.
        (Kind::Truth, Kind::Truth) => left.cmp(right),
        (left, right) => left.cmp(&right),
    }
}
