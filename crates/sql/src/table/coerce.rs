//! A value that a column is compared with, as the column's own kind of value.
//!
//! SQLite hands such values over as they are written: `'12'` for an INTEGER column. The store looks for stored
//! values, so the comparison's conversion has to be made here, neither missing a row nor needing more than the
//! recheck that SQLite makes.

use std::cmp::Ordering;

use store::Table;
use store::definition::ColumnKind;
use store::scalar::{has_form, numeric};
use store::value::{Affinity, NAN, Value, ValueRef};

/// What to look for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sought {
    /// This value.
    Value(Value),
    /// No stored value can equal it.
    Nothing,
    /// It depends on the other side's type, which is not known here: a number beside a TEXT or ANY column is
    /// the text of it if it was a literal, but equals every text that reads as it if it was a numeric column.
    Unclear,
}

/// What a column of this kind holds where it equals the value. `literal` says that the value has no type of its
/// own (a literal or parameter, not another column).
pub(crate) fn sought(kind: ColumnKind, value: Value, literal: bool) -> Sought {
    match (kind, value) {
        (_, Value::Null) => Sought::Nothing,
        (ColumnKind::Text, value @ (Value::Integer(_) | Value::Real(_))) => {
            if literal {
                Sought::Value(value.with_affinity(Affinity::Text))
            } else {
                Sought::Unclear
            }
        }
        (ColumnKind::Any, Value::Integer(_) | Value::Real(_)) | (ColumnKind::Numeric, Value::Real(_))
            if !literal =>
        {
            Sought::Unclear
        }
        (ColumnKind::Text | ColumnKind::Any, value) | (ColumnKind::Blob, value @ Value::Blob(_)) => {
            Sought::Value(value)
        }
        (ColumnKind::Blob, _) => Sought::Nothing,
        (ColumnKind::Numeric, value) => match decimal(&value) {
            Some(text) => Sought::Value(Value::Text(text)),
            None => Sought::Nothing,
        },
        (ColumnKind::Integer | ColumnKind::Real, value) => number(kind, value),
    }
}

/// The text of a decimal number.
fn decimal(value: &Value) -> Option<String> {
    numeric::of_value(value).ok().map(|number| number.text())
}

/// What a bound of a range compares as: texts that read as numbers are numbers beside a numeric column. `None`
/// leaves that side open, where the value's meaning is not known.
pub(crate) fn bound(kind: ColumnKind, value: Value, literal: bool) -> Option<Value> {
    match (kind, value) {
        (ColumnKind::Text, value @ (Value::Integer(_) | Value::Real(_))) => {
            literal.then(|| value.with_affinity(Affinity::Text))
        }
        (ColumnKind::Any, Value::Integer(_) | Value::Real(_)) | (ColumnKind::Numeric, Value::Real(_))
            if !literal =>
        {
            None
        }
        (ColumnKind::Integer | ColumnKind::Real, value) => Some(value.with_affinity(Affinity::Numeric)),
        (ColumnKind::Numeric, value @ (Value::Integer(_) | Value::Real(_))) => {
            decimal(&value).map(Value::Text)
        }
        (_, value) => Some(value),
    }
}

fn number(kind: ColumnKind, value: Value) -> Sought {
    let value = value.with_affinity(Affinity::Numeric);
    let candidate = match (kind, &value) {
        (ColumnKind::Real, Value::Text(text)) if text == NAN => value.clone(),
        (_, Value::Text(_) | Value::Blob(_) | Value::Null) => return Sought::Nothing,
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the conversion saturates; equality is checked below"
        )]
        (ColumnKind::Integer, Value::Real(real)) => Value::Integer(*real as i64),
        (ColumnKind::Real, Value::Integer(integer)) => Value::Real(*integer as f64),
        _ => value.clone(),
    };
    let equal = ValueRef::compare(candidate.as_ref(), value.as_ref()) == Ordering::Equal;
    if equal { Sought::Value(candidate) } else { Sought::Nothing }
}

/// Whether a column stores this value without a conversion, as it stores most.
pub(crate) fn is_stored_as_it_is(table: &Table, at: usize, value: ValueRef<'_>) -> bool {
    match (table.def().columns[at].kind, value) {
        (_, ValueRef::Null) => true,
        (ColumnKind::Integer, ValueRef::Integer(_)) | (ColumnKind::Text, ValueRef::Text(_)) => {
            !has_form(table.column_type(at))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_found_in_the_columns_own_kind() {
        use ColumnKind::{Any, Blob, Integer, Real, Text};
        let text = |text: &str| Value::from(text);
        let found = |value: Value| Sought::Value(value);
        for (kind, value, literal, expected) in [
            (Integer, text("12"), true, found(Value::Integer(12))),
            (Integer, text("x"), true, Sought::Nothing),
            (Integer, Value::Real(17.0), false, found(Value::Integer(17))),
            (Integer, Value::Real(17.5), false, Sought::Nothing),
            (Integer, Value::Real(-9_223_372_036_854_775_808.0), true, found(Value::Integer(i64::MIN))),
            (Integer, Value::Real(9_223_372_036_854_775_808.0), true, Sought::Nothing),
            (Integer, Value::Blob(b"1".to_vec()), true, Sought::Nothing),
            (Real, Value::Integer(2), true, found(Value::Real(2.0))),
            (Real, Value::Integer(9_007_199_254_740_993), true, Sought::Nothing),
            (Text, Value::Integer(12), true, found(text("12"))),
            (Text, Value::Integer(12), false, Sought::Unclear),
            (Text, text("12"), false, found(text("12"))),
            (Any, Value::Integer(1), true, found(Value::Integer(1))),
            (Any, Value::Integer(1), false, Sought::Unclear),
            (Blob, text("a"), true, Sought::Nothing),
            (Integer, Value::Null, true, Sought::Nothing),
        ] {
            assert_eq!(sought(kind, value.clone(), literal), expected, "{kind:?} {value:?} {literal}");
        }
    }

    #[test]
    fn bounds_keep_their_order() {
        use ColumnKind::{Integer, Text};
        assert_eq!(bound(Integer, Value::from("17"), true), Some(Value::Integer(17)));
        assert_eq!(bound(Integer, Value::Real(17.5), false), Some(Value::Real(17.5)));
        assert_eq!(bound(Integer, Value::from("x"), true), Some(Value::from("x")));
        assert_eq!(bound(Text, Value::Integer(1), true), Some(Value::from("1")));
        assert_eq!(bound(Text, Value::Integer(1), false), None);
    }
}
