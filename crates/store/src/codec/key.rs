//! Primary keys as bytes, and as the text by which memcached clients know them.

use std::fmt;

use super::{CorruptRow, PayloadShape, ValueTooLong};
use crate::definition::{ColumnKind, TableDef};
use crate::limits::KEY_COLUMNS_AT_HAND;
use crate::scalar::numeric::{self, Modifier};
use crate::value::{NAN, Value, ValueRef, text_or_blob};

/// What stands between the parts of a composite key in memcached text.
pub(super) const SEPARATOR: u8 = b':';

/// How a table's keys are written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// One TEXT or BLOB column: its bytes and nothing else.
    Raw,
    /// Everything else: the payload's encoding, over the key columns.
    Coded(PayloadShape),
    /// A hidden row number, coded in the same way, which no client can name.
    RowId,
}

/// Encodes and decodes the keys of one table.
///
/// Keys that SQL calls equal have equal bytes: -0.0 is written as 0.0, and in ANY columns a whole real is written as
/// the integer that it equals. Texts that a collation calls equal have other bytes: such a key has a unique index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyCodec {
    form: Form,
    kinds: Vec<ColumnKind>,
    /// What is in parentheses behind `NUMERIC`, of each column.
    modifiers: Vec<Option<Modifier>>,
}

/// Why values or text are no key of this table. Columns count within the key, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// A key column is NULL.
    Null {
        /// Which.
        column: usize,
    },
    /// A value does not fit its column, so no row has this key.
    Unfit {
        /// Which.
        column: usize,
    },
    /// The text has fewer parts than the key has columns.
    TooFewParts {
        /// How many the key has.
        columns: usize,
    },
    /// A part of the text is not how this column prints, so two texts would name one row ("007" and "7").
    NotCanonical {
        /// Which.
        column: usize,
    },
    /// This key cannot be written as text: it is a hidden row number, or a part other than the last
    /// contains ':'.
    Unreachable,
    /// A value of 4 GiB or more.
    TooLong,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null { column } => write!(f, "key column {} is NULL", column + 1),
            Self::Unfit { column } => write!(f, "value does not fit key column {}", column + 1),
            Self::TooFewParts { columns } => write!(f, "key needs {columns} parts joined with ':'"),
            Self::NotCanonical { column } => {
                write!(f, "part {} of the key is not a number in its shortest form", column + 1)
            }
            Self::Unreachable => f.write_str("memcached cannot name the key of this row"),
            Self::TooLong => f.write_str("key is too long"),
        }
    }
}

impl std::error::Error for KeyError {}

impl From<ValueTooLong> for KeyError {
    fn from(_: ValueTooLong) -> Self {
        Self::TooLong
    }
}

impl KeyCodec {
    /// The codec of a table.
    pub fn new(table: &TableDef) -> Self {
        let columns = || table.primary_key.iter().map(|&column| &table.columns[column]);
        let kinds: Vec<_> = columns().map(|column| column.kind).collect();
        let modifiers = columns().map(|column| Modifier::of_declared(&column.declared)).collect();
        let form = match kinds[..] {
            [] => Form::RowId,
            [ColumnKind::Text | ColumnKind::Blob] => Form::Raw,
            _ => Form::Coded(PayloadShape::new(kinds.len(), None)),
        };
        let kinds = if form == Form::RowId { vec![ColumnKind::Integer] } else { kinds };
        Self { form, kinds, modifiers }
    }

    /// How many columns a key has; a hidden row number is one.
    pub fn columns(&self) -> usize {
        self.kinds.len()
    }

    /// Whether memcached text is the key itself, byte for byte, so that [`KeyCodec::from_text`] only copies.
    pub fn is_raw(&self) -> bool {
        self.form == Form::Raw
    }

    /// Appends the key of these values, which went through `TableDef::accept`.
    pub fn encode(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) -> Result<(), KeyError> {
        debug_assert_eq!(values.len(), self.kinds.len(), "one value for each key column");
        match self.form {
            Form::Raw => {
                match values.first().copied().unwrap_or(ValueRef::Null) {
                    ValueRef::Text(text) => out.extend_from_slice(text.as_bytes()),
                    ValueRef::Blob(bytes) => out.extend_from_slice(bytes),
                    ValueRef::Null => return Err(KeyError::Null { column: 0 }),
                    _ => return Err(KeyError::Unfit { column: 0 }),
                }
                Ok(())
            }
            Form::Coded(shape) => {
                let columns = self.kinds.iter().zip(values).enumerate();
                let mut columns = columns.map(|(column, (kind, value))| canonical(*kind, *value, column));
                let mut few = [ValueRef::Null; KEY_COLUMNS_AT_HAND];
                let Some(few) = few.get_mut(..values.len()) else {
                    let all: Result<Vec<_>, _> = columns.collect();
                    return Ok(shape.encode(&all?, out)?);
                };
                for (place, value) in few.iter_mut().zip(&mut columns) {
                    *place = value?;
                }
                Ok(shape.encode(few, out)?)
            }
            Form::RowId => match values {
                [ValueRef::Integer(_)] => Ok(PayloadShape::new(1, None).encode(values, out)?),
                _ => Err(KeyError::Unfit { column: 0 }),
            },
        }
    }

    /// One column of a key.
    pub fn column<'a>(&self, key: &'a [u8], column: usize) -> Result<ValueRef<'a>, CorruptRow> {
        match self.form {
            Form::Raw if column != 0 => Err(CorruptRow),
            Form::Raw if self.kinds[0] == ColumnKind::Blob => Ok(ValueRef::Blob(key)),
            Form::Raw => Ok(text_or_blob(key)),
            Form::Coded(shape) => shape.column(key, column),
            Form::RowId => PayloadShape::new(1, None).column(key, column),
        }
    }

    /// Whether these bytes are a key: what another machine says of a key need not be one.
    pub fn is_key(&self, bytes: &[u8]) -> bool {
        let values: Result<Vec<_>, _> =
            (0..self.columns()).map(|column| self.column(bytes, column)).collect();
        let mut again = Vec::with_capacity(bytes.len());
        values.is_ok_and(|values| self.encode(&values, &mut again).is_ok()) && again == bytes
    }

    /// Appends the key that memcached text names (the prefix already taken off).
    ///
    /// A composite key is its parts joined with ':'; the last part takes the rest, colons included.
    pub fn from_text(&self, text: &[u8], out: &mut Vec<u8>) -> Result<(), KeyError> {
        match self.form {
            Form::Raw => {
                out.extend_from_slice(text);
                Ok(())
            }
            Form::RowId => Err(KeyError::Unreachable),
            Form::Coded(shape) => {
                let columns = self.kinds.len();
                let mut values = Vec::with_capacity(columns);
                let mut parts = text.splitn(columns, |&byte| byte == SEPARATOR);
                for (column, kind) in self.kinds.iter().enumerate() {
                    let part = parts.next().ok_or(KeyError::TooFewParts { columns })?;
                    let value = parse_part((*kind, self.modifier(column)), part);
                    values.push(value.ok_or(KeyError::NotCanonical { column })?);
                }
                Ok(shape.encode(&values, out)?)
            }
        }
    }

    fn modifier(&self, column: usize) -> Option<Modifier> {
        self.modifiers.get(column).copied().flatten()
    }

    /// Appends the memcached text of a key, which [`KeyCodec::from_text`] turns back into that key.
    pub fn to_text(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), KeyError> {
        let begin = out.len();
        match self.form {
            Form::Raw => out.extend_from_slice(key),
            Form::RowId => return Err(KeyError::Unreachable),
            Form::Coded(shape) => {
                for (column, kind) in self.kinds.iter().enumerate() {
                    let value = shape.column(key, column).map_err(|_| KeyError::Unfit { column })?;
                    if column > 0 {
                        out.push(SEPARATOR);
                    }
                    let last = column + 1 == self.kinds.len();
                    if !write_part((*kind, self.modifier(column)), value, last, out) {
                        out.truncate(begin);
                        return Err(KeyError::Unreachable);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The one form in which a key column holds a value.
fn canonical(kind: ColumnKind, value: ValueRef<'_>, column: usize) -> Result<ValueRef<'_>, KeyError> {
    use ValueRef::{Blob, Integer, Null, Real, Text};
    Ok(match (kind, value) {
        (_, Null) => return Err(KeyError::Null { column }),
        (_, Real(real)) if real.is_nan() => return Err(KeyError::Null { column }),
        (ColumnKind::Any, Real(real)) => equal_integer(real).map_or(Real(real), Integer),
        (ColumnKind::Real, Real(real)) => Real(positive_zero(real)),
        (ColumnKind::Real, Text(NAN))
        | (ColumnKind::Integer | ColumnKind::Any, Integer(_))
        | (ColumnKind::Any | ColumnKind::Text | ColumnKind::Numeric, Text(_))
        | (ColumnKind::Any | ColumnKind::Blob, Blob(_)) => value,
        (ColumnKind::Text, Blob(bytes)) => text_or_blob(bytes),
        (ColumnKind::Blob, Text(text)) => Blob(text.as_bytes()),
        _ => return Err(KeyError::Unfit { column }),
    })
}

fn positive_zero(real: f64) -> f64 {
    if real == 0.0 { 0.0 } else { real }
}

/// The integer that compares equal to a real; unlike column affinity it knows the smallest one too.
fn equal_integer(real: f64) -> Option<i64> {
    const MIN: f64 = -9_223_372_036_854_775_808.0;
    if !(MIN..-MIN).contains(&real) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked above")]
    let integer = real as i64;
    #[expect(clippy::float_cmp, reason = "equality after the round trip is the very question")]
    (integer as f64 == real).then_some(integer)
}

/// The value that a part of memcached text stands for; `None` where it is not that value's one spelling.
fn parse_part((kind, modifier): (ColumnKind, Option<Modifier>), part: &[u8]) -> Option<ValueRef<'_>> {
    match kind {
        ColumnKind::Text | ColumnKind::Any => Some(text_or_blob(part)),
        ColumnKind::Blob => Some(ValueRef::Blob(part)),
        ColumnKind::Integer => parse_integer(part),
        ColumnKind::Real => parse_real(part),
        ColumnKind::Numeric => parse_decimal(modifier, part),
    }
}

/// One text of each number: that with the declared digits behind its point, or without zeros at its end.
fn parse_decimal(modifier: Option<Modifier>, part: &[u8]) -> Option<ValueRef<'_>> {
    let text = std::str::from_utf8(part).ok()?;
    let is_canonical = match modifier {
        Some(_) => numeric::accept(modifier, Value::from(text)) == Ok(Value::from(text)),
        None => numeric::text(&numeric::parse(text)?.normalized()) == text,
    };
    is_canonical.then_some(ValueRef::Text(text))
}

fn parse_integer(part: &[u8]) -> Option<ValueRef<'static>> {
    let integer = ValueRef::Integer(std::str::from_utf8(part).ok()?.parse().ok()?);
    prints_as(integer, part).then_some(integer)
}

fn parse_real(part: &[u8]) -> Option<ValueRef<'static>> {
    if part == NAN.as_bytes() {
        return Some(ValueRef::Text(NAN));
    }
    let real = ValueRef::Real(std::str::from_utf8(part).ok()?.parse().ok()?);
    prints_as(real, part).then_some(real)
}

fn prints_as(value: ValueRef<'_>, text: &[u8]) -> bool {
    let mut printed = Vec::with_capacity(text.len());
    value.write_text(&mut printed);
    printed == text
}

/// Appends one part; false where `from_text` would not give this value back.
fn write_part(
    kind: (ColumnKind, Option<Modifier>),
    value: ValueRef<'_>,
    last: bool,
    out: &mut Vec<u8>,
) -> bool {
    let begin = out.len();
    value.write_text(out);
    let part = &out[begin..];
    (last || !part.contains(&SEPARATOR)) && parse_part(kind, part) == Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::ColumnDef;

    fn codec(types: &[&str]) -> KeyCodec {
        let column = |(at, declared): (usize, &&str)| ColumnDef::new(&format!("c{at}"), declared).unwrap();
        let columns: Vec<_> = types.iter().enumerate().map(column).collect();
        let keys = (0..columns.len()).collect();
        KeyCodec::new(&TableDef::new("t", columns, keys))
    }

    fn encoded(codec: &KeyCodec, values: &[ValueRef<'_>]) -> Result<Vec<u8>, KeyError> {
        let mut key = Vec::new();
        codec.encode(values, &mut key).map(|()| key)
    }

    fn from_text(codec: &KeyCodec, text: &str) -> Result<Vec<u8>, KeyError> {
        let mut key = Vec::new();
        codec.from_text(text.as_bytes(), &mut key).map(|()| key)
    }

    #[test]
    fn one_text_column_is_its_bytes() {
        let codec = codec(&["TEXT"]);
        assert!(codec.is_raw());
        assert_eq!(encoded(&codec, &[ValueRef::Text("a:b")]), Ok(b"a:b".to_vec()));
        assert_eq!(from_text(&codec, "a:b"), Ok(b"a:b".to_vec()));
        assert_eq!(codec.column(b"a:b", 0), Ok(ValueRef::Text("a:b")));
        assert_eq!(codec.column(&[0xff], 0), Ok(ValueRef::Blob(&[0xff])));
        assert_eq!(encoded(&codec, &[ValueRef::Null]), Err(KeyError::Null { column: 0 }));
        assert_eq!(encoded(&codec, &[ValueRef::Integer(1)]), Err(KeyError::Unfit { column: 0 }));
    }

    #[test]
    fn one_blob_column_stays_a_blob() {
        let codec = codec(&["BLOB"]);
        assert_eq!(encoded(&codec, &[ValueRef::Blob(b"a")]), Ok(b"a".to_vec()));
        assert_eq!(codec.column(b"a", 0), Ok(ValueRef::Blob(b"a")));
    }

    #[test]
    fn composite_keys_are_parts_joined_with_colons() {
        let codec = codec(&["TEXT", "INT", "TEXT"]);
        let key =
            encoded(&codec, &[ValueRef::Text("p"), ValueRef::Integer(17), ValueRef::Text("x:y")]).unwrap();
        assert_eq!(from_text(&codec, "p:17:x:y"), Ok(key.clone()));
        let mut text = Vec::new();
        codec.to_text(&key, &mut text).unwrap();
        assert_eq!(text, b"p:17:x:y");
        for (text, error) in [
            ("p:007:x", KeyError::NotCanonical { column: 1 }),
            ("p:+7:x", KeyError::NotCanonical { column: 1 }),
            ("p:-0:x", KeyError::NotCanonical { column: 1 }),
            ("p::x", KeyError::NotCanonical { column: 1 }),
            ("p:17", KeyError::TooFewParts { columns: 3 }),
            ("", KeyError::NotCanonical { column: 1 }),
        ] {
            let error = if text.is_empty() { KeyError::TooFewParts { columns: 3 } } else { error };
            assert_eq!(from_text(&codec, text), Err(error), "{text}");
        }
    }

    #[test]
    fn text_that_would_not_come_back_is_unreachable() {
        let two = codec(&["TEXT", "INT"]);
        let key = encoded(&two, &[ValueRef::Text("a:b"), ValueRef::Integer(1)]).unwrap();
        let mut text = b"kept".to_vec();
        assert_eq!(two.to_text(&key, &mut text), Err(KeyError::Unreachable));
        assert_eq!(text, b"kept");
        let any = codec(&["ANY"]);
        let key = encoded(&any, &[ValueRef::Integer(1)]).unwrap();
        assert_eq!(any.to_text(&key, &mut text), Err(KeyError::Unreachable));
        assert_eq!(from_text(&any, "1"), encoded(&any, &[ValueRef::Text("1")]));
    }

    #[test]
    fn equal_numbers_are_equal_keys() {
        let any = codec(&["ANY"]);
        for (real, integer) in [(1.0, 1), (-0.0, 0), (-9_223_372_036_854_775_808.0, i64::MIN)] {
            assert_eq!(encoded(&any, &[ValueRef::Real(real)]), encoded(&any, &[ValueRef::Integer(integer)]));
        }
        let real = codec(&["REAL"]);
        let zero = encoded(&real, &[ValueRef::Real(0.0)]).unwrap();
        assert_eq!(encoded(&real, &[ValueRef::Real(-0.0)]), Ok(zero.clone()));
        assert_eq!(real.column(&zero, 0), Ok(ValueRef::Real(0.0)));
        assert_eq!(from_text(&real, "0.5"), encoded(&real, &[ValueRef::Real(0.5)]));
        assert_eq!(from_text(&real, ".5"), Err(KeyError::NotCanonical { column: 0 }));
        let numeric = codec(&["NUMERIC"]);
        assert_eq!(from_text(&numeric, "5"), encoded(&numeric, &[ValueRef::Text("5")]));
        assert_eq!(from_text(&numeric, "5.0"), Err(KeyError::NotCanonical { column: 0 }));
        assert_eq!(from_text(&numeric, "5.5"), encoded(&numeric, &[ValueRef::Text("5.5")]));
        let price = codec(&["NUMERIC(10, 2)"]);
        let key = encoded(&price, &[ValueRef::Text("5.50")]);
        assert_eq!(from_text(&price, "5.50"), key);
        for other in ["5.5", "5.500", "05.50", "123456789.00", "NaN "] {
            assert_eq!(from_text(&price, other), Err(KeyError::NotCanonical { column: 0 }), "{other}");
        }
        let mut text = Vec::new();
        price.to_text(&key.unwrap(), &mut text).unwrap();
        assert_eq!(text, b"5.50");
    }

    #[test]
    fn hidden_row_numbers_are_out_of_reach() {
        let codec = codec(&[]);
        let key = encoded(&codec, &[ValueRef::Integer(300)]).unwrap();
        assert_eq!(codec.column(&key, 0), Ok(ValueRef::Integer(300)));
        assert_eq!(from_text(&codec, "300"), Err(KeyError::Unreachable));
        assert_eq!(codec.to_text(&key, &mut Vec::new()), Err(KeyError::Unreachable));
    }
}
