//! Rows by the elements of an array or of JSON: what is asked of these, and what of an index over them leads to the
//! rows.

use std::sync::Arc;

use sqlite::{Connection, Operation};
use store::definition::Collation;
use store::value::{Value, ValueRef};
use store::{ElementKeys, ElementsOf, Index, KeyBounds, ReadError, RowBuf, Table, View};

use super::keys::KeyList;

/// What is asked of the elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Whether one of them is this value: `value = ANY (array)`.
    Has,
    /// Whether all of these are among them: `array @> these`.
    Contains,
    /// The same of what is in the JSON that is asked for, and more that the index does not know: `jsonb @> these`.
    ContainsJson,
    /// Whether one of these is among them: `array && these`.
    Overlaps,
}

/// What of an index over elements leads to the rows that are asked for.
#[derive(Debug, PartialEq)]
pub(crate) enum Lead {
    /// There is no such row.
    Nothing,
    /// Any row may be one.
    Everything,
    /// The rows with any of these. `exact`: each of them is asked for.
    Elements { any: Vec<Value>, exact: bool },
}

impl Asked {
    /// The functions that ask so, of what, and their words in a plan; the best to find rows by first.
    pub(super) const ALL: [(Self, ElementsOf, &'static str, &'static str); 7] = [
        (Self::Has, ElementsOf::Array, "array_has", "has"),
        (Self::Has, ElementsOf::Json, "jsonb_exists", "?"),
        (Self::Contains, ElementsOf::Array, "array_contains", "@>"),
        (Self::Contains, ElementsOf::Json, "jsonb_exists_all", "?&"),
        (Self::ContainsJson, ElementsOf::Json, "jsonb_contains", "@>"),
        (Self::Overlaps, ElementsOf::Array, "array_overlaps", "&&"),
        (Self::Overlaps, ElementsOf::Json, "jsonb_exists_any", "?|"),
    ];

    /// The functions as a connection knows them.
    pub(super) fn operations(connection: &Connection) -> Vec<Operation> {
        Self::ALL.iter().filter_map(|(.., function, _)| connection.operation(function)).collect()
    }

    /// The number of a function among them.
    pub(super) fn number(function: &str) -> Option<u8> {
        let at = Self::ALL.iter().position(|(.., own, _)| *own == function)?;
        u8::try_from(at).ok()
    }

    /// What a function asks of an array.
    pub(crate) fn of(function: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, of, own, _)| *own == function && *of == ElementsOf::Array);
        found.map(|(asked, ..)| *asked)
    }

    /// The elements that are asked for by a value, or by an array of them; `None`: by NULL, which no row has.
    pub(crate) fn wanted(self, value: ValueRef<'_>) -> Option<Vec<Value>> {
        match (self, value) {
            (_, ValueRef::Null) => None,
            (Self::Has, value) => Some(vec![value.to_owned()]),
            (Self::Contains | Self::Overlaps, array) => Some(ElementsOf::Array.list(array)),
            (Self::ContainsJson, json) => Some(ElementsOf::Json.list(json)),
        }
    }

    /// What leads to the rows.
    pub(crate) fn lead(self, view: &View<'_>, index: &Index, wanted: Vec<Value>) -> Lead {
        let mut any = wanted;
        if !matches!(self, Self::Contains | Self::ContainsJson) {
            return if any.is_empty() { Lead::Nothing } else { Lead::Elements { any, exact: true } };
        }
        let exact = any.len() == 1;
        let rows = |element: &Value| view.estimate(index, &KeyBounds::equal(vec![element.clone()]));
        // Every array has all elements of an empty one. Of several the rarest leads to the fewest rows.
        match (0..any.len()).min_by_key(|&at| rows(&any[at])) {
            Some(rarest) => Lead::Elements { any: vec![any.swap_remove(rarest)], exact },
            None => Lead::Everything,
        }
    }

    /// Whether an array has what is asked for.
    pub(crate) fn is_true_of(self, array: ValueRef<'_>, wanted: &[Value]) -> bool {
        let keys = ElementKeys::of(array, ElementsOf::Array);
        let has = |value: &Value| keys.contains(value.as_ref(), Collation::Binary);
        match self {
            Self::Has | Self::Overlaps => wanted.iter().any(has),
            Self::Contains | Self::ContainsJson => wanted.iter().all(has),
        }
    }
}

/// The keys of the rows with any of these elements, each once.
pub(crate) fn keys_with(
    view: &View<'_>,
    table: &Arc<Table>,
    index: &Arc<Index>,
    any: &[Value],
) -> Result<KeyList, ReadError> {
    let (mut keys, mut row) = (KeyList::default(), RowBuf::new());
    for element in any {
        let mut rows = view.equal(table, index, &[element.as_ref()], false);
        while rows.next(view, &mut row)? {
            keys.push(row.key());
        }
    }
    keys.sort();
    Ok(keys)
}
