//! JSON taken apart at its outermost level only: what lies within stays the text that it is, with its numbers as they
//! were written.

mod order;

pub(super) use order::collate;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use sqlite::meter;
use sqltext::error::{SqlError, state};
use store::definition::SqlType;
use store::scalar::array::of_braces;
use store::scalar::float;
use store::scalar::jsonb::{canonical, comparable, spaced};
use store::scalar::simple::{JSON_DEPTH_MAX, check_json_depth};
use store::value::Value;

use super::cast::take_elements;
use super::def::{FunctionDef, Now, Numeric, Returns, Source, text};
use super::text::truth;
use crate::limits::{JSON_MEMBERS_MAX, NODE_UNITS};

const JSONB: Returns = Returns::Type(SqlType::Jsonb);
const TEXT: Returns = Returns::Type(SqlType::Text);
const BOOL: Returns = Returns::Type(SqlType::Bool);

const fn own(
    name: &'static str,
    arguments: &'static str,
    returns: Returns,
    source: Source,
    meaning: &'static str,
    example: &'static str,
    answer: &'static str,
) -> FunctionDef {
    FunctionDef {
        name,
        arguments,
        returns,
        types: &[],
        source,
        numeric: Some(Numeric::Nearest),
        of_floats: None,
        of_spans: None,
        meaning,
        example,
        answer,
    }
}

/// What PostgreSQL's operators of `jsonb` are.
#[rustfmt::skip]
pub(super) const FUNCTIONS: &[FunctionDef] = &[
    own("array_cat", "(array, array)", Returns::Argument, Source::Raw(array_cat, 2, 2, false),
        "what `array || array` is", "array_cat(ARRAY[1], ARRAY[2, 3])", "[1,2,3]"),
    own("json_number", "(number)", TEXT, Source::Own(|_, v| Ok(number_text(v)), 1, 1),
        "a number as PostgreSQL writes it into JSON", "json_number(2.0)", "2"),
    own("json_numbers", "(array)", TEXT, Source::Own(|_, v| number_texts(v), 1, 1),
        "each float of an array as PostgreSQL writes it into JSON", "json_numbers('[2.0,1.5]')", "[2,1.5]"),
    own("json_last_keys", "(json)", Returns::Type(SqlType::Json), Source::Own(|_, v| { let json = text(v, 0)?; Ok(Value::Text(last_keys(&json)?.unwrap_or(json))) }, 1, 1),
        "the same with the last value of each key that an object has twice", "json_last_keys('{\"a\":1,\"a\":2}')", "{\"a\":2}"),
    own("json_object_of", "(keys, values)", Returns::Type(SqlType::Json), Source::Own(object_of, 1, 2),
        "what `json_object(keys, values)` is of arrays of texts; also `jsonb_object`, and both of one array of keys and values in turn", "json_object('{a,b}', '{1,2}')", "{\"a\" : \"1\", \"b\" : \"2\"}"),
    own("json_value_text", "(json)", TEXT, Source::Own(value_text, 1, 1),
        "what `json ->> key` makes of the value: a text without its quotes, `null` as NULL", "json_value_text('\"a\"')", "a"),
    own("jsonb_concat", "(json, json)", JSONB, Source::Own(concat, 2, 2),
        "what `jsonb || jsonb` is: members or elements of both", "jsonb_concat('{\"a\":1}', '{\"b\":2}')", "{\"a\":1,\"b\":2}"),
    own("jsonb_exists", "(json, key)", BOOL, Source::Own(exists_one, 2, 2),
        "what `jsonb ? key` asks: whether it is a member, or a text of an array", "'{\"a\":1}'::jsonb ? 'a'", "1"),
    own("jsonb_exists_all", "(json, keys)", BOOL, Source::Own(|_, v| exists(v, true), 2, 2),
        "what `jsonb ?& keys` asks: whether all of them are", "'[\"a\",\"b\"]'::jsonb ?& ARRAY['a', 'b']", "1"),
    own("jsonb_exists_any", "(json, keys)", BOOL, Source::Own(|_, v| exists(v, false), 2, 2),
        "what `jsonb ?| keys` asks: whether one of them is", "'{\"a\":1}'::jsonb ?| ARRAY['a', 'b']", "1"),
    own("jsonb_insert_path", "(json, path, value, behind)", JSONB, Source::Own(|_, v| put(v, Put::Insert(flag(v, false))), 3, 4),
        "what `jsonb_insert` is with a path of PostgreSQL's: with the value before the element, or as a new member",
        "jsonb_insert('[1,3]', '{1}', '2')", "[1,2,3]"),
    own("jsonb_set_path", "(json, path, value, create)", JSONB, Source::Own(|_, v| put(v, Put::Set(flag(v, true))), 3, 4),
        "what `jsonb_set` is with a path of PostgreSQL's: with the value in the place of what is there",
        "jsonb_set('{\"a\":[1,2]}', '{a,0}', '9')", "{\"a\":[9,2]}"),
    own("jsonb_compare", "(json, json)", Returns::Type(SqlType::Int4), Source::Own(order::compare, 2, 2),
        "-1, 0 or 1, as the first value is less than the second, equal to it, or greater", "jsonb_compare('9', '10')", "-1"),
    own("jsonb_comparable", "(json)", TEXT, Source::Own(|_, v| { let json = text(v, 0)?; meter::take(json.len())?; Ok(Value::Text(comparable(&json))) }, 1, 1),
        "a text that equal JSON values have in common", "jsonb_comparable('{\"a\":1.50}')", "{\"a\":1.5}"),
    own("jsonb_text", "(json)", TEXT, Source::Own(|_, v| { let json = text(v, 0)?; meter::take(2 * json.len())?; Ok(Value::Text(spaced(&json))) }, 1, 1),
        "what `jsonb::text` is: with a blank behind each colon and comma", "'{\"a\":[1,2]}'::jsonb::text", "{\"a\": [1, 2]}"),
    own("jsonb_value_text", "(json)", TEXT, Source::Own(jsonb_value_text, 1, 1),
        "what `jsonb ->> key` makes of the value: objects and arrays as `jsonb::text` has them", "jsonb_value_text('[1,2]')", "[1, 2]"),
    own("jsonb_delete", "(json, key or index)", JSONB, Source::Own(delete, 2, 2),
        "what `jsonb - key` is: without the member, the texts in an array, or the element", "'{\"a\":1,\"b\":2}'::jsonb - 'a'", "{\"b\":2}"),
    own("jsonb_delete_keys", "(json, keys)", JSONB, Source::Own(delete_keys, 2, 2),
        "what `jsonb - keys` is: without any of them", "'{\"a\":1,\"b\":2,\"c\":3}'::jsonb - ARRAY['a', 'c']", "{\"b\":2}"),
    own("jsonb_delete_path", "(json, path)", JSONB, Source::Own(delete_path, 2, 2),
        "what `jsonb #- path` is: without the value at its end", "'{\"a\":[1,2]}'::jsonb #- '{a,0}'", "{\"a\":[2]}"),
];

/// A key without the escapes of its text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key<'j>(Cow<'j, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Keys)
    }
}

/// The outermost level of a JSON text.
enum Level<'j> {
    Object(Vec<(Key<'j>, &'j str)>),
    Array(Vec<&'j str>),
    Scalar(&'j str),
}

struct Members<'j>(Vec<(Key<'j>, &'j str)>);
struct Items<'j>(Vec<&'j str>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Found;
        impl<'de> Visitor<'de> for Found {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut found = Vec::new();
                while let Some((key, value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                    if found.len() >= JSON_MEMBERS_MAX {
                        return Err(serde::de::Error::custom(TOO_MANY));
                    }
                    meter::take(MEMBER_BYTES + key.0.len()).map_err(serde::de::Error::custom)?;
                    meter::work(NODE_UNITS).map_err(serde::de::Error::custom)?;
                    found.push((key, value.get()));
                }
                Ok(Members(found))
            }
        }
        deserializer.deserialize_map(Found)
    }
}

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Found;
        impl<'de> Visitor<'de> for Found {
            type Value = Items<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut found = Vec::new();
                while let Some(item) = items.next_element::<&'de RawValue>()? {
                    if found.len() >= JSON_MEMBERS_MAX {
                        return Err(serde::de::Error::custom(TOO_MANY));
                    }
                    meter::take(MEMBER_BYTES).map_err(serde::de::Error::custom)?;
                    meter::work(NODE_UNITS).map_err(serde::de::Error::custom)?;
                    found.push(item.get());
                }
                Ok(Items(found))
            }
        }
        deserializer.deserialize_seq(Found)
    }
}

/// What a member takes in a list that grows, and in what finds it by its key.
const MEMBER_BYTES: usize = 6 * size_of::<(Key<'_>, &str)>();

const TOO_MANY: &str = "too many members";

fn refused(error: &serde_json::Error) -> SqlError {
    if error.to_string().starts_with(TOO_MANY) {
        let message = format!("JSON has more than {JSON_MEMBERS_MAX} members at one level");
        return SqlError::new(state::TOO_LARGE, message);
    }
    SqlError::new(state::BAD_VALUE, format!("invalid input syntax for type json: {error}"))
}

impl<'j> Level<'j> {
    fn of(json: &'j str) -> Result<Self, SqlError> {
        check_json_depth(json)?;
        let json = json.trim();
        match json.as_bytes().first() {
            Some(b'{') => serde_json::from_str(json).map(|Members(members)| Self::Object(members)),
            Some(b'[') => serde_json::from_str(json).map(|Items(items)| Self::Array(items)),
            _ => serde_json::from_str::<IgnoredAny>(json).map(|_| Self::Scalar(json)),
        }
        .map_err(|error| refused(&error))
    }

    fn write(&self) -> String {
        match self {
            Self::Scalar(text) => (*text).to_owned(),
            Self::Array(items) => format!("[{}]", items.join(",")),
            Self::Object(members) => {
                let mut out = String::from("{");
                for (at, (key, value)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    out.push_str(&serde_json::Value::from(key.0.as_ref()).to_string());
                    out.push(':');
                    out.push_str(value);
                }
                out.push('}');
                out
            }
        }
    }

    /// Its elements; anything else is the one element of an array.
    fn into_items(self, whole: &'j str) -> Vec<&'j str> {
        match self {
            Self::Array(items) => items,
            _ => vec![whole.trim()],
        }
    }
}

/// A JSON text of which each object has a key once: with its last value, at the first one's place. `None`: it is so.
fn last_keys(json: &str) -> Result<Option<String>, SqlError> {
    match Level::of(json)? {
        Level::Scalar(_) => Ok(None),
        Level::Array(items) => {
            let inner: Vec<Option<String>> =
                items.iter().map(|item| last_keys(item)).collect::<Result<_, _>>()?;
            let is_so = inner.iter().all(Option::is_none);
            let texts = inner.iter().zip(items).map(|(changed, own)| changed.as_deref().unwrap_or(own));
            Ok((!is_so).then(|| Level::Array(texts.collect()).write()))
        }
        Level::Object(members) => {
            let count = members.len();
            let (mut last, mut places) = (Vec::with_capacity(count), HashMap::with_capacity(count));
            for (key, value) in members {
                let member = (key, last_keys(value)?, value);
                if let Some(&at) = places.get(&member.0.0) {
                    last[at] = member;
                } else {
                    places.insert(member.0.0.clone(), last.len());
                    last.push(member);
                }
            }
            let is_so = last.len() == count && last.iter().all(|(_, changed, _)| changed.is_none());
            let members = last
                .iter()
                .map(|(key, changed, own)| (Key(key.0.clone()), changed.as_deref().unwrap_or(own)));
            Ok((!is_so).then(|| Level::Object(members.collect()).write()))
        }
    }
}

fn written(level: &Level<'_>) -> Result<Value, SqlError> {
    in_form(&level.write())
}

/// A valid JSON value in the form of `jsonb`.
fn in_form(json: &str) -> Result<Value, SqlError> {
    take_form(json)?;
    Ok(Value::Text(canonical(json)))
}

/// Asks for what it takes to bring JSON into the form of `jsonb`: its texts twice more, and a place for each member.
pub(super) fn take_form(json: &str) -> Result<(), SqlError> {
    let members = json.bytes().filter(|byte| *byte == b':').count();
    meter::take(3 * json.len() + members * MEMBER_BYTES)?;
    meter::work(3 * json.len() + members * NODE_UNITS)
}

/// An object whose values are texts or null.
fn object_of(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let subscript = |message: &str| SqlError::new("2202E", message);
    let pairs: Vec<(Option<String>, Option<String>)> = if values.len() > 1 {
        let (keys, values) = (list(values, 0)?, list(values, 1)?);
        if keys.len() != values.len() {
            return Err(subscript("mismatched array dimensions"));
        }
        keys.into_iter().zip(values).collect()
    } else {
        let all = list(values, 0)?;
        if !all.len().is_multiple_of(2) {
            return Err(subscript("array must have even number of elements"));
        }
        let mut all = all.into_iter();
        std::iter::from_fn(|| all.next().zip(all.next())).collect()
    };
    let members = pairs.into_iter().map(|(key, value)| {
        let key = key.ok_or_else(|| SqlError::new("22004", "null value not allowed for object key"))?;
        Ok(format!("{} : {}", serde_json::Value::from(key), serde_json::Value::from(value)))
    });
    let members: Vec<String> = members.collect::<Result<_, SqlError>>()?;
    Ok(Value::Text(format!("{{{}}}", members.join(", "))))
}

/// Whether one of the keys, or all of them, are members of an object or texts of an array.
fn exists(values: &[Value], all: bool) -> Result<Value, SqlError> {
    let (json, keys) = (text(values, 0)?, list(values, 1)?);
    let level = Level::of(&json)?;
    let there: std::collections::HashSet<Cow<'_, str>> = match &level {
        Level::Object(members) => members.iter().map(|(key, _)| key.0.clone()).collect(),
        Level::Array(items) => items.iter().filter_map(|item| text_of(item)).collect(),
        Level::Scalar(json) => text_of(json).into_iter().collect(),
    };
    let mut keys = keys.iter().flatten();
    let found = |key: &String| there.contains(key.as_str());
    Ok(truth(if all { keys.all(found) } else { keys.any(found) }))
}

/// The text that a JSON value is.
fn text_of(json: &str) -> Option<Cow<'_, str>> {
    json.starts_with('"').then(|| serde_json::from_str::<Key<'_>>(json).ok()).flatten().map(|key| key.0)
}

fn exists_one(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (json, key) = (text(values, 0)?, text(values, 1)?);
    Ok(truth(match Level::of(&json)? {
        Level::Object(members) => members.iter().any(|(name, _)| name.0 == key),
        Level::Array(items) => items.iter().any(|item| is_text(item, &key)),
        Level::Scalar(json) => is_text(json, &key),
    }))
}

/// What `jsonb_set` and `jsonb_insert` do at the end of the path.
#[derive(Clone, Copy, PartialEq)]
enum Put {
    /// In the place of what is there; the flag: also where nothing is.
    Set(bool),
    /// Beside it; the flag: behind it.
    Insert(bool),
}

fn put(values: &[Value], put: Put) -> Result<Value, SqlError> {
    let (json, value) = (text(values, 0)?, text(values, 2)?);
    Level::of(&value)?;
    let path: Option<Vec<String>> = list(values, 1)?.into_iter().collect();
    let Some(path) = path else { return Ok(Value::Null) };
    if matches!(Level::of(&json)?, Level::Scalar(_)) {
        return Err(bad("cannot set path in scalar"));
    }
    let changed = with_value(&json, &path, 1, &value, put)?;
    in_form(&changed.unwrap_or(json))
}

/// The JSON with the value at the path's end; `None` where it stays as it is.
fn with_value(
    json: &str,
    path: &[String],
    position: usize,
    value: &str,
    put: Put,
) -> Result<Option<String>, SqlError> {
    let Some((step, rest)) = path.split_first() else { return Ok(None) };
    if position > JSON_DEPTH_MAX {
        return Ok(None);
    }
    let mut level = Level::of(json)?;
    let inner;
    match &mut level {
        Level::Scalar(_) => return Ok(None),
        Level::Object(members) => {
            let at = members.iter().rposition(|(key, _)| key.0 == step.as_str());
            match (at, rest.is_empty(), put) {
                (Some(at), false, _) => {
                    let Some(found) = with_value(members[at].1, rest, position + 1, value, put)? else {
                        return Ok(None);
                    };
                    inner = found;
                    members[at].1 = &inner;
                }
                (Some(at), true, Put::Set(_)) => members[at].1 = value,
                (Some(_), true, Put::Insert(_)) => return Err(bad("cannot replace existing key")),
                (None, true, Put::Set(true) | Put::Insert(_)) => {
                    members.push((Key(Cow::Borrowed(step.as_str())), value));
                }
                (None, ..) => return Ok(None),
            }
        }
        Level::Array(items) => {
            let index: i64 = step.parse().map_err(|_| {
                let message = format!("path element at position {position} is not an integer: \"{step}\"");
                SqlError::new(state::BAD_VALUE, message)
            })?;
            let at = place(index, items.len());
            let end = if index < 0 { 0 } else { items.len() };
            match (at, rest.is_empty(), put) {
                (Some(at), false, _) => {
                    let Some(found) = with_value(items[at], rest, position + 1, value, put)? else {
                        return Ok(None);
                    };
                    inner = found;
                    items[at] = &inner;
                }
                (Some(at), true, Put::Set(_)) => items[at] = value,
                (Some(at), true, Put::Insert(behind)) => items.insert(at + usize::from(behind), value),
                (None, true, Put::Set(true) | Put::Insert(_)) => items.insert(end, value),
                (None, ..) => return Ok(None),
            }
        }
    }
    Ok(Some(level.write()))
}

/// A flag behind the value; it may be left out.
fn flag(values: &[Value], without: bool) -> bool {
    match values.get(3) {
        None => without,
        Some(Value::Integer(flag)) => *flag != 0,
        Some(Value::Text(flag)) => flag.eq_ignore_ascii_case("t") || flag.eq_ignore_ascii_case("true"),
        Some(_) => false,
    }
}

fn concat(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (left, right) = (text(values, 0)?, text(values, 1)?);
    match (Level::of(&left)?, Level::of(&right)?) {
        (Level::Object(mut members), Level::Object(more)) => {
            let mut places: std::collections::HashMap<Key<'_>, usize> =
                members.iter().enumerate().map(|(at, (key, _))| (key.clone(), at)).collect();
            for (key, value) in more {
                if let Some(&at) = places.get(&key) {
                    members[at].1 = value;
                } else {
                    places.insert(key.clone(), members.len());
                    members.push((key, value));
                }
            }
            written(&Level::Object(members))
        }
        (ours, theirs) => {
            let mut items = ours.into_items(&left);
            items.extend(theirs.into_items(&right));
            written(&Level::Array(items))
        }
    }
}

fn bad(message: &str) -> SqlError {
    SqlError::new(state::BAD_PARAMETER, message)
}

/// An element's place, counted from the end if it is negative.
fn place(index: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let at = if index < 0 { index.checked_add(length)? } else { index };
    usize::try_from(at).ok().filter(|_| at < length)
}

/// Whether a JSON text is this text.
fn is_text(json: &str, text: &str) -> bool {
    json.starts_with('"') && serde_json::from_str::<Key<'_>>(json).is_ok_and(|key| key.0 == text)
}

fn delete(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let json = text(values, 0)?;
    let mut level = Level::of(&json)?;
    if let Some(Value::Integer(index)) = values.get(1) {
        match &mut level {
            Level::Object(_) => return Err(bad("cannot delete from object using integer index")),
            Level::Scalar(_) => return Err(bad("cannot delete from scalar")),
            Level::Array(items) => {
                if let Some(at) = place(*index, items.len()) {
                    items.remove(at);
                }
            }
        }
        return written(&level);
    }
    let key = text(values, 1)?;
    retain(&mut level, |name| name != key, |item| !is_text(item, &key))?;
    written(&level)
}

fn delete_keys(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let json = text(values, 0)?;
    let keys = list(values, 1)?;
    let mut level = Level::of(&json)?;
    let gone: std::collections::HashSet<&str> = keys.iter().filter_map(|key| key.as_deref()).collect();
    retain(
        &mut level,
        |name| !gone.contains(name),
        |item| !serde_json::from_str::<Key<'_>>(item).is_ok_and(|key| gone.contains(key.0.as_ref())),
    )?;
    written(&level)
}

/// Leaves the members and elements that stay.
fn retain(
    level: &mut Level<'_>,
    member: impl Fn(&str) -> bool,
    item: impl Fn(&str) -> bool,
) -> Result<(), SqlError> {
    match level {
        Level::Object(members) => members.retain(|(key, _)| member(&key.0)),
        Level::Array(items) => items.retain(|json| item(json)),
        Level::Scalar(_) => return Err(bad("cannot delete from scalar")),
    }
    Ok(())
}

/// The texts of an array; `None` for NULL.
fn list(values: &[Value], at: usize) -> Result<Vec<Option<String>>, SqlError> {
    let list = text(values, at)?;
    let not_a_list = || SqlError::new(state::BAD_VALUE, "an array of texts was expected: '{a,b}'");
    if let Some(elements) = of_braces(list.trim()) {
        let shown = |at: usize| {
            if elements[at].is_null() { Ok(None) } else { text(&elements, at).map(Some) }
        };
        return (0..elements.len()).map(shown).collect();
    }
    serde_json::from_str(&list).map_err(|_| not_a_list())
}

fn delete_path(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let json = text(values, 0)?;
    let path: Option<Vec<String>> = list(values, 1)?.into_iter().collect();
    let Some(path) = path else { return Ok(Value::Null) };
    if matches!(Level::of(&json)?, Level::Scalar(_)) {
        return Err(bad("cannot delete path in scalar"));
    }
    in_form(&without(&json, &path, 1)?.unwrap_or(json))
}

/// The JSON without the value at the path's end; `None` where nothing is there.
fn without(json: &str, path: &[String], position: usize) -> Result<Option<String>, SqlError> {
    let Some((step, rest)) = path.split_first() else { return Ok(None) };
    if position > JSON_DEPTH_MAX {
        return Ok(None);
    }
    let mut level = Level::of(json)?;
    let changed = match &mut level {
        Level::Scalar(_) => None,
        Level::Object(members) => {
            let Some(at) = members.iter().rposition(|(key, _)| key.0 == step.as_str()) else {
                return Ok(None);
            };
            if rest.is_empty() {
                members.remove(at);
                return Ok(Some(level.write()));
            }
            without(members[at].1, rest, position + 1)?.map(|inner| (at, inner))
        }
        Level::Array(items) => {
            let index: i64 = step.parse().map_err(|_| {
                let message = format!("path element at position {position} is not an integer: \"{step}\"");
                SqlError::new(state::BAD_VALUE, message)
            })?;
            let Some(at) = place(index, items.len()) else { return Ok(None) };
            if rest.is_empty() {
                items.remove(at);
                return Ok(Some(level.write()));
            }
            without(items[at], rest, position + 1)?.map(|inner| (at, inner))
        }
    };
    let Some((at, inner)) = changed else { return Ok(None) };
    match &mut level {
        Level::Object(members) => members[at].1 = &inner,
        Level::Array(items) => items[at] = &inner,
        Level::Scalar(_) => {}
    }
    Ok(Some(level.write()))
}

/// What `->>` gives of a JSON value.
fn value_text(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    json_value_text(&text(values, 0)?)
}

fn jsonb_value_text(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    jsonb_text_of(&text(values, 0)?)
}

/// The same of a value that is known: objects and arrays as `jsonb::text` has them.
pub(crate) fn jsonb_text_of(json: &str) -> Result<Value, SqlError> {
    if !json.starts_with(['{', '[']) {
        return json_value_text(json);
    }
    meter::take(2 * json.len())?;
    Ok(Value::Text(spaced(json)))
}

/// A JSON value as a text: without its quotes, `null` as NULL.
pub(crate) fn json_value_text(json: &str) -> Result<Value, SqlError> {
    if json == "null" {
        return Ok(Value::Null);
    }
    if !json.starts_with('"') {
        return Ok(Value::from(json));
    }
    serde_json::from_str::<String>(json).map(Value::Text).map_err(|error| refused(&error))
}

/// A member of an object.
pub(crate) struct Member {
    pub(crate) key: String,
    pub(crate) value: Value,
}

/// The elements of a JSON array; NULL has none.
pub(crate) fn json_elements(
    array: &Value,
    value: fn(&str) -> Result<Value, SqlError>,
) -> Result<Vec<Value>, SqlError> {
    if array.is_null() {
        return Ok(Vec::new());
    }
    let json = text(std::slice::from_ref(array), 0)?;
    match Level::of(&json)? {
        Level::Array(items) => items.into_iter().map(value).collect(),
        Level::Object(_) => Err(bad("cannot extract elements from an object")),
        Level::Scalar(_) => Err(bad("cannot extract elements from a scalar")),
    }
}

/// The members of a JSON object; NULL has none.
pub(crate) fn json_members(
    object: &Value,
    value: fn(&str) -> Result<Value, SqlError>,
) -> Result<Vec<Member>, SqlError> {
    if object.is_null() {
        return Ok(Vec::new());
    }
    let json = text(std::slice::from_ref(object), 0)?;
    let Level::Object(members) = Level::of(&json)? else {
        return Err(bad("cannot take the members of a JSON value that is no object"));
    };
    let member = |(key, json): (Key<'_>, &str)| Ok(Member { key: key.0.into_owned(), value: value(json)? });
    members.into_iter().map(member).collect()
}

/// The value at the end of a path, as it is written; `None` where nothing is.
pub(super) fn value_at(json: &str, keys: &[String]) -> Result<Option<String>, SqlError> {
    let mut found = json.trim().to_owned();
    for key in keys {
        let next = match Level::of(&found)? {
            Level::Object(members) => {
                members.iter().rfind(|(name, _)| name.0 == key.as_str()).map(|(_, json)| *json)
            }
            Level::Array(items) => {
                let at = key.parse().ok().and_then(|index| place(index, items.len()));
                at.map(|at| items[at])
            }
            Level::Scalar(_) => None,
        };
        let Some(next) = next.map(str::to_owned) else { return Ok(None) };
        found = next;
    }
    // What is no JSON is refused without a path, too.
    Level::of(&found)?;
    Ok(Some(found))
}

/// Without members that are null, at every level.
pub(super) fn without_nulls(json: &str) -> Result<String, SqlError> {
    let kept: Vec<String>;
    let level = match Level::of(json)? {
        Level::Object(members) => {
            let members: Vec<_> = members.into_iter().filter(|(_, value)| *value != "null").collect();
            kept = members.iter().map(|(_, value)| without_nulls(value)).collect::<Result<_, _>>()?;
            let keys = members.into_iter().map(|(key, _)| key);
            Level::Object(keys.zip(kept.iter().map(String::as_str)).collect())
        }
        Level::Array(items) => {
            kept = items.into_iter().map(without_nulls).collect::<Result<_, _>>()?;
            Level::Array(kept.iter().map(String::as_str).collect())
        }
        scalar @ Level::Scalar(_) => scalar,
    };
    Ok(level.write())
}

fn number_text(values: &[Value]) -> Value {
    match values.first() {
        Some(Value::Real(real)) if real.is_finite() => Value::Text(float::text(*real)),
        Some(Value::Real(real)) => Value::Text(format!("\"{}\"", float::text(*real))),
        Some(Value::Integer(integer)) => Value::Text(integer.to_string()),
        // A decimal number is its text. One without digits is a text in JSON.
        Some(Value::Text(text)) if text.ends_with(['y', 'N']) => Value::Text(format!("\"{text}\"")),
        Some(other) => other.clone(),
        None => Value::Null,
    }
}

/// The same of each number of an array.
fn number_texts(values: &[Value]) -> Result<Value, SqlError> {
    let array = text(values, 0)?;
    take_elements(&array)?;
    let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(&array) else { return Ok(Value::Text(array)) };
    let number = |item: &&RawValue| match item.get().parse() {
        Ok(real) => float::text(real),
        Err(_) => item.get().to_owned(),
    };
    Ok(Value::Text(format!("[{}]", items.iter().map(number).collect::<Vec<_>>().join(","))))
}

/// NULL is no array beside one.
fn array_cat(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (Some(left), Some(right)) = (values.first(), values.get(1)) else { return Ok(Value::Null) };
    if left.is_null() || right.is_null() {
        return Ok(if left.is_null() { right.clone() } else { left.clone() });
    }
    let (left, right) = (array_text(values, 0)?, array_text(values, 1)?);
    let (ours, theirs) = (Level::of(&left)?, Level::of(&right)?);
    let mut items = ours.into_items(&left);
    items.extend(theirs.into_items(&right));
    Ok(Value::Text(Level::Array(items).write()))
}

/// An array as JSON; PostgreSQL's braces are taken too.
fn array_text(values: &[Value], at: usize) -> Result<String, SqlError> {
    let array = text(values, at)?;
    if !array.trim_start().starts_with('{') {
        return Ok(array);
    }
    let of_texts = SqlType::Text.array().unwrap_or(SqlType::Json);
    match store::scalar::accept(of_texts, Value::Text(array))? {
        Value::Text(json) => Ok(json),
        _ => Ok("[]".to_owned()),
    }
}
