//! JSON values as trees that take no more memory than the statement may have, and what is asked of them.

use std::collections::HashSet;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};
use sqlite::meter;
use sqltext::error::{SqlError, state};

use crate::limits::NODE_UNITS;

/// What a member of an object takes beside its key's text: its place in the list, in the index, and the key's own.
const MEMBER_BYTES: usize = 3 * (size_of::<Json>() + size_of::<String>() + 2 * size_of::<usize>());
/// Elements for which an array has room at first.
const FIRST_ELEMENTS: usize = 4;
/// Fewer parts than this are looked for one by one.
const PARTS_TO_HASH: usize = 8;

/// Reads a JSON value.
pub(super) fn parsed(text: &str) -> Result<Json, SqlError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let tree = Tree.deserialize(&mut reader).and_then(|tree| reader.end().map(|()| tree));
    // If it was the meter that refused, the call fails with its words in any case.
    tree.map_err(|error| {
        SqlError::new(state::BAD_VALUE, format!("invalid input syntax for type json: {error}"))
    })
}

/// Reads JSON values that stand one after the other, up to the first that is none.
pub fn each_json(text: &str, mut take: impl FnMut(Json)) {
    let mut reader = serde_json::Deserializer::from_str(text);
    while let Ok(tree) = Tree.deserialize(&mut reader) {
        take(tree);
    }
}

/// Builds a tree whose every part is asked for before it is made.
struct Tree;

fn refused<E: de::Error>(error: SqlError) -> E {
    E::custom(error.message)
}

fn node<E: de::Error>() -> Result<(), E> {
    meter::work(NODE_UNITS).map_err(refused)
}

impl<'de> DeserializeSeed<'de> for Tree {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Json, E> {
        meter::take(value.len()).map_err(refused)?;
        Ok(Json::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = access.next_element_seed(Self)? {
            node()?;
            if elements.len() == elements.capacity() {
                let capacity = (elements.capacity() * 2).max(FIRST_ELEMENTS);
                let before = elements.capacity() * size_of::<Json>();
                meter::retake(before, capacity * size_of::<Json>()).map_err(refused)?;
                elements.reserve_exact(capacity - elements.len());
            }
            elements.push(element);
        }
        Ok(Json::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut members = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            node()?;
            meter::take(key.len() + MEMBER_BYTES).map_err(refused)?;
            let value = access.next_value_seed(Self)?;
            members.insert(key, value);
        }
        Ok(Json::Object(members))
    }
}

/// Whether every part of the second is found in the first, at the same place; an array's elements at any.
pub(super) fn contains(whole: &Json, part: &Json) -> Result<bool, SqlError> {
    match (whole, part) {
        (Json::Array(whole), part) if !part.is_object() && !part.is_array() => among(whole, part),
        _ => has(whole, part),
    }
}

/// The same of what stands within: only the array around all contains a value that is none.
fn has(whole: &Json, part: &Json) -> Result<bool, SqlError> {
    meter::work(NODE_UNITS)?;
    match (whole, part) {
        (Json::Object(whole), Json::Object(part)) => {
            for (key, value) in part {
                match whole.get(key) {
                    Some(own) if has(own, value)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (Json::Array(whole), Json::Array(part)) => all_among(whole, part),
        _ => Ok(same(whole, part)),
    }
}

/// Whether each of the parts is contained in one of the elements. Many are looked up by what they are, so that it takes
/// time in proportion to both; only arrays and objects of which no equal one is there are compared one by one.
fn all_among(whole: &[Json], parts: &[Json]) -> Result<bool, SqlError> {
    if parts.len() < PARTS_TO_HASH {
        for part in parts {
            if !among(whole, part)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    meter::take(whole.len() * 4 * size_of::<Alike<'_>>())?;
    let mut known = HashSet::with_capacity(whole.len());
    for own in whole {
        meter::work(NODE_UNITS)?;
        known.insert(Alike(own));
    }
    for part in parts {
        meter::work(NODE_UNITS)?;
        if known.contains(&Alike(part)) {
            continue;
        }
        if !(part.is_array() || part.is_object()) || !among(whole, part)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether one of the elements contains the part. An array holds no elements of its elements.
fn among(whole: &[Json], part: &Json) -> Result<bool, SqlError> {
    for own in whole {
        let found = match (own, part) {
            (Json::Array(_), Json::Array(_)) | (Json::Object(_), Json::Object(_)) => has(own, part)?,
            _ => {
                meter::work(NODE_UNITS)?;
                same(own, part)
            }
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Equal as JSON: `1` is `1.0`.
fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

/// A value that is equal to those that are [`same`].
struct Alike<'j>(&'j Json);

impl PartialEq for Alike<'_> {
    fn eq(&self, other: &Self) -> bool {
        same(self.0, other.0)
    }
}

impl Eq for Alike<'_> {}

impl std::hash::Hash for Alike<'_> {
    /// Arrays and objects by their lengths and their first element: what is equal has the same.
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        std::mem::discriminant(self.0).hash(hasher);
        match self.0 {
            Json::Null => {}
            Json::Bool(truth) => truth.hash(hasher),
            // `-0.0` is `0.0`.
            Json::Number(number) => (number.as_f64().unwrap_or(0.0) + 0.0).to_bits().hash(hasher),
            Json::String(text) => text.hash(hasher),
            Json::Array(elements) => {
                elements.len().hash(hasher);
                elements.iter().filter_map(Json::as_str).for_each(|text| text.hash(hasher));
            }
            Json::Object(members) => members.len().hash(hasher),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(whole: &str, part: &str) -> bool {
        contains(&parsed(whole).unwrap(), &parsed(part).unwrap()).unwrap()
    }

    #[test]
    fn what_contains_what() {
        let many = |of: &str| format!("[{}]", vec![of; 20].join(","));
        for (whole, part, expected) in [
            (r#"{"a":1,"b":2}"#, r#"{"a":1}"#, true),
            (r#"{"a":{"b":[1,2]}}"#, r#"{"a":{"b":[2]}}"#, true),
            (r#"{"a":1}"#, r#"{"a":2}"#, false),
            ("[1,2,3]", "[3,1]", true),
            ("[1,2]", "[3]", false),
            ("[1,2]", "1.0", true),
            ("[[1]]", "1", false),
            ("[[1,2]]", "[[2]]", true),
            (r#"["a"]"#, r#""a""#, true),
            (r#"[{"a":1,"b":2}]"#, r#"[{"b":2}]"#, true),
            (r#"[{"a":1}]"#, r#"{"a":1}"#, false),
            ("[1.0]", &many("1"), true),
            ("[[1,2]]", &many("[1]"), true),
            ("[[2]]", &many("[1]"), false),
            ("[null]", &many("null"), true),
        ] {
            assert_eq!(asked(whole, part), expected, "{whole} @> {part}");
        }
    }
}
