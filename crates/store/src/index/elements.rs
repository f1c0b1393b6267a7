//! The sort keys of a row in an index: one, or of an index over the elements of an array one for each of them.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::codec::sort_key_column;
use crate::definition::{Collation, SqlType};
use crate::value::{Value, ValueRef};

/// What of a value an index has entries for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementsOf {
    /// The elements of an array. Arrays within it are as if their elements stood in it.
    Array,
    /// What `jsonb ? key` asks for: the keys of an object, the texts in an array, or the text that the value is.
    Json,
}

/// The different keys of one row in their order. The place of a key among them is the ordinal that its entry bears.
#[derive(Debug, Default)]
pub struct ElementKeys {
    bytes: Vec<u8>,
    /// Where each begins and ends.
    places: Vec<(usize, usize)>,
}

impl ElementKeys {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(crate) fn get(&self, ordinal: usize) -> Option<&[u8]> {
        self.places.get(ordinal).map(|&(begin, end)| &self.bytes[begin..end])
    }

    /// The keys with their ordinals.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.places.iter().map(|&(begin, end)| &self.bytes[begin..end]).enumerate()
    }

    /// The ordinal of a key.
    pub(crate) fn ordinal(&self, key: &[u8]) -> Option<usize> {
        self.places.binary_search_by(|&(begin, end)| self.bytes[begin..end].cmp(key)).ok()
    }

    /// The elements of a value, each once.
    pub fn of(value: ValueRef<'_>, of: ElementsOf) -> Self {
        let mut keys = Self::default();
        keys.read(value, of, Collation::Binary);
        keys
    }

    /// Takes the keys of a value's elements.
    pub(crate) fn read(&mut self, value: ValueRef<'_>, of: ElementsOf, collation: Collation) {
        self.clear();
        let Self { bytes, places } = self;
        of.each(value, &mut |value| {
            let begin = bytes.len();
            sort_key_column(value, collation, false, bytes);
            places.push((begin, bytes.len()));
        });
        places.sort_unstable_by(|a, b| bytes[a.0..a.1].cmp(&bytes[b.0..b.1]));
        places.dedup_by(|a, b| bytes[a.0..a.1] == bytes[b.0..b.1]);
    }

    /// Whether one of them equals a value, as the index compares them.
    pub fn contains(&self, value: ValueRef<'_>, collation: Collation) -> bool {
        let mut key = Vec::new();
        sort_key_column(value, collation, false, &mut key);
        self.ordinal(&key).is_some()
    }

    /// The different elements as an array of so many bytes has at most.
    pub(crate) fn most_in(bytes: usize) -> usize {
        // A digit and a comma each.
        bytes / 2
    }
}

impl ElementsOf {
    /// What an index over a column of this type has.
    pub fn column(ty: SqlType) -> Self {
        if ty == SqlType::Jsonb { Self::Json } else { Self::Array }
    }

    /// The elements of a value, as often as they stand in it.
    pub fn list(self, value: ValueRef<'_>) -> Vec<Value> {
        let mut found = Vec::new();
        self.each(value, &mut |value| found.push(value.to_owned()));
        found
    }

    /// Hands out the elements of a value as it is stored, which is as JSON. What is no array has none, or the texts
    /// that JSON has. NULL is none: nothing equals it.
    fn each(self, value: ValueRef<'_>, take: &mut dyn FnMut(ValueRef<'_>)) {
        let ValueRef::Text(text) = value else { return };
        if self == Self::Array && !text.starts_with('[') {
            return;
        }
        let mut json = serde_json::Deserializer::from_str(text);
        // What is no JSON has the elements that were read until then: an index may have too many, for what is found by
        // it is looked at again.
        let _broken = Elements { take, of: self, within: false }.deserialize(&mut json);
    }
}

/// Reads JSON, and takes the elements that it has.
struct Elements<'t> {
    take: &'t mut dyn FnMut(ValueRef<'_>),
    of: ElementsOf,
    /// Within an array.
    within: bool,
}

impl Elements<'_> {
    fn take(self, value: ValueRef<'_>) {
        if self.of == ElementsOf::Array || matches!(value, ValueRef::Text(_)) {
            (self.take)(value);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_bool<E>(self, truth: bool) -> Result<(), E> {
        self.take(ValueRef::Integer(truth.into()));
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.take(ValueRef::Integer(number));
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        // Beyond 64 bits with a sign SQLite reads a float.
        self.take(i64::try_from(number).map_or(ValueRef::Real(number as f64), ValueRef::Integer));
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.take(ValueRef::Real(number));
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.take(ValueRef::Text(text));
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { take, of, within } = self;
        if within && of == ElementsOf::Json {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
        }
        while seq.next_element_seed(Elements { take: &mut *take, of, within: true })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, IgnoredAny)) = map.next_entry::<Cow<'_, str>, IgnoredAny>()? {
            if self.of == ElementsOf::Json && !self.within {
                (self.take)(ValueRef::Text(&key));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(array: &str) -> ElementKeys {
        let mut keys = ElementKeys::default();
        keys.read(ValueRef::Text(array), ElementsOf::Array, Collation::Binary);
        keys
    }

    fn key(value: ValueRef<'_>) -> Vec<u8> {
        let mut key = Vec::new();
        sort_key_column(value, Collation::Binary, false, &mut key);
        key
    }

    #[test]
    fn each_element_is_a_key_once() {
        let found = keys(r#"["b", "a", null, "b", 3, -1.5, true, ["it's", []], {"x": ["y"]}, "\u00e9"]"#);
        let text = |text: &'static str| key(ValueRef::Text(text));
        let mut expected = vec![
            key(ValueRef::Integer(3)),
            key(ValueRef::Real(-1.5)),
            key(ValueRef::Integer(1)),
            text("a"),
            text("b"),
            text("it's"),
            text("\u{e9}"),
        ];
        expected.sort();
        assert_eq!(found.iter().map(|(_, key)| key.to_vec()).collect::<Vec<_>>(), expected);
        for (ordinal, key) in found.iter() {
            assert_eq!(found.ordinal(key), Some(ordinal));
            assert_eq!(found.get(ordinal), Some(key));
        }
        assert_eq!(found.ordinal(&text("y")), None);
    }

    #[test]
    fn what_is_no_array_has_no_elements() {
        for other in ["", "x", "{\"a\": [1]}", "\"a\"", "5", "[]", "[null]"] {
            assert_eq!(keys(other).len(), 0, "{other}");
        }
        let mut keys = ElementKeys::default();
        keys.read(ValueRef::Null, ElementsOf::Array, Collation::Binary);
        assert_eq!(keys.len(), 0);
    }

    #[test]
    fn json_has_texts_at_its_first_level() {
        let list = |json| {
            let texts = ElementsOf::Json.list(ValueRef::Text(json)).into_iter().map(|value| match value {
                Value::Text(text) => text,
                other => panic!("{other:?}"),
            });
            texts.collect::<Vec<_>>().join(",")
        };
        assert_eq!(list(r#"["b", "a", null, 3, 1.5, true, ["c"], {"d": "e"}, "\u00e9"]"#), "b,a,\u{e9}");
        assert_eq!(list(r#"{"b": ["c"], "a\n": {"d": 1}}"#), "b,a\n");
        assert_eq!(list(r#""a""#), "a");
        for other in ["5", "null", "true", "-1.5", "18446744073709551615", "[]", "{}", "[1, [\"x\"]]"] {
            assert_eq!(list(other), "", "{other}");
        }
    }
}
