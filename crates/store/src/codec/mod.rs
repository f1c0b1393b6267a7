//! How a row's values become bytes.
//!
//! A row in the arena has a key and a payload. The payload holds the columns outside the primary key:
//!
//! ```text
//! descriptor of each payload column, one byte each, in column order
//! data of each payload column in the same order, except that the value column's data come last
//! ```
//!
//! A descriptor says what a value is and how its length is written, so a column is found by walking the
//! descriptors before it, and a small row costs little more than its bytes:
//!
//! | descriptor | value | data |
//! |---|---|---|
//! | 0 | NULL | none |
//! | 1, 2, 3, 4 | integer | 1, 2, 4 or 8 bytes, little-endian, the fewest that hold it |
//! | 5, 6 | the integers 0 and 1 | none |
//! | 7 | real | 8 bytes, little-endian |
//! | 8, 9, 10 | text | length in 1, 2 or 4 bytes, then UTF-8 |
//! | 11, 12, 13 | blob | length in 1, 2 or 4 bytes, then bytes |
//! | 14, 15, 16 | what a memcached client stored | as blob; reads as text where it is UTF-8 |
//!
//! A table whose columns came or went has another number of places in its payloads than when it was made. Rows
//! written since then say so: they begin with the byte 255 and the number of descriptors in two bytes. A place that a
//! row does not have belongs to a column that was added later; the place of a dropped column is written as NULL. So
//! a row is read without a look at anything but itself and the newest definition, wherever it was copied to.
//!
//! The encoder writes each value in exactly one way, so equal keys are equal bytes. The value column (the one
//! that memcached clients see) comes last so that a `get` knows where its bytes lie after reading the first few
//! bytes of the row, and sends them from where they are.

use std::fmt;

use crate::definition::{ColumnKind, Slots, TableDef};
use crate::limits::LEAD_BYTES_MAX;
use crate::value::{ValueRef, text_or_blob};

mod key;
mod misfit;
mod sort;

pub use key::{KeyCodec, KeyError};
pub use misfit::{key_shape, misfit};
pub use sort::{Prefix, column_ends, prefix_end, prefix8, sort_key, sort_key_column, text_prefix};

const NULL: u8 = 0;
const INT8: u8 = 1;
const INT16: u8 = 2;
const INT32: u8 = 3;
const INT64: u8 = 4;
const ZERO: u8 = 5;
const ONE: u8 = 6;
const REAL: u8 = 7;
/// The first of three descriptors each: lengths of 1, 2 and 4 bytes.
const TEXT: u8 = 8;
const BLOB: u8 = 11;
const BYTES: u8 = 14;
const BYTES_LAST: u8 = 16;
/// In the place of the first descriptor: the number of descriptors follows.
const COUNTED: u8 = 255;
/// Bytes of [`COUNTED`] and the number.
const COUNT_BYTES: usize = 3;

/// A row whose bytes do not follow the layout: memory is not what we wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorruptRow;

impl fmt::Display for CorruptRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("row does not decode")
    }
}

impl std::error::Error for CorruptRow {}

/// A text or blob of 4 GiB or more, which no length field holds; limits on rows are far below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueTooLong {
    /// Its length.
    pub bytes: usize,
}

impl fmt::Display for ValueTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "value is {} bytes; a row holds at most {}", self.bytes, u32::MAX)
    }
}

impl std::error::Error for ValueTooLong {}

/// What payloads of a table look like: how many places they have, and which of them is stored last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadShape {
    /// Places of a payload that does not say.
    first: usize,
    /// Places of a payload written now.
    columns: usize,
    /// The place of the value column, the same in all rows.
    value: Option<usize>,
}

/// One payload, taken apart.
#[derive(Clone, Copy)]
struct Parts<'a> {
    descriptors: &'a [u8],
    data: &'a [u8],
}

/// Where the value column's bytes lie in a payload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueSpan {
    /// Text or bytes, stored as they are from `offset`, `len` of them.
    Raw {
        /// Where they begin in the payload.
        offset: usize,
        /// How many.
        len: usize,
    },
    /// NULL or a number, which a reader prints with [`write_as_text`].
    Number(ValueRef<'static>),
    /// The bytes given end too early; with this many the answer may be known.
    Short {
        /// How many payload bytes to come back with.
        need: usize,
    },
}

impl PayloadShape {
    /// The shape of a table's payloads.
    pub fn of(table: &TableDef) -> Self {
        let value = table.options.value.and_then(|value| {
            table.payload_slots().find(|&(column, _)| column == value).map(|(_, slot)| slot)
        });
        let Slots { first, now } = table.slot_counts();
        Self { first: usize::from(first), columns: usize::from(now), value }
    }

    /// A shape of so many columns, the value column at a payload position.
    pub fn new(columns: usize, value: Option<usize>) -> Self {
        Self { first: columns, columns, value: value.filter(|&value| value < columns) }
    }

    /// How many places a payload has that is written now.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The place of the value column.
    pub fn value(&self) -> Option<usize> {
        self.value
    }

    /// Bytes before the descriptors of a payload that is written now.
    fn lead_bytes(&self) -> usize {
        if self.columns == self.first { 0 } else { COUNT_BYTES }
    }

    /// Appends the payload of these values, one for each place.
    pub fn encode(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) -> Result<(), ValueTooLong> {
        debug_assert_eq!(values.len(), self.columns, "one value for each place");
        if self.columns != self.first {
            out.push(COUNTED);
            out.extend_from_slice(&u16::try_from(self.columns).unwrap_or(u16::MAX).to_le_bytes());
        }
        for value in values {
            out.push(descriptor(*value)?);
        }
        for position in data_order(self.columns, self.value) {
            if let Some(value) = values.get(position) {
                write_data(*value, out);
            }
        }
        Ok(())
    }

    /// Appends a payload as it is but for the places that have another value. False: it must be encoded whole, for it
    /// was written when the table had other places; what was appended is of no use.
    pub fn edit<'v>(
        &self,
        payload: &[u8],
        change: impl Fn(usize) -> Option<ValueRef<'v>>,
        out: &mut Vec<u8>,
    ) -> Result<bool, ValueTooLong> {
        let Ok(Parts { descriptors, mut data }) = self.parts(payload) else { return Ok(false) };
        let lead = payload.len() - descriptors.len() - data.len();
        if descriptors.len() != self.columns || lead != self.lead_bytes() {
            return Ok(false);
        }
        out.extend_from_slice(&payload[..lead]);
        for (place, &old) in descriptors.iter().enumerate() {
            out.push(change(place).map_or(Ok(old), descriptor)?);
        }
        for place in data_order(self.columns, self.value) {
            let Ok((_, rest)) = split_data(descriptors[place], data) else { return Ok(false) };
            match change(place) {
                Some(value) => write_data(value, out),
                None => out.extend_from_slice(&data[..data.len() - rest.len()]),
            }
            data = rest;
        }
        Ok(true)
    }

    /// Where the descriptors of a payload begin, and how many there are; `None` where the beginning is too short.
    fn descriptors(&self, head: &[u8]) -> Option<(usize, usize)> {
        match head {
            [COUNTED, low, high, ..] => Some((COUNT_BYTES, usize::from(u16::from_le_bytes([*low, *high])))),
            [COUNTED, ..] => None,
            _ => Some((0, self.first)),
        }
    }

    fn parts<'a>(&self, payload: &'a [u8]) -> Result<Parts<'a>, CorruptRow> {
        let (from, count) = self.descriptors(payload).ok_or(CorruptRow)?;
        let (descriptors, data) = payload[from..].split_at_checked(count).ok_or(CorruptRow)?;
        Ok(Parts { descriptors, data })
    }

    /// The value in one place; `None` where the row was written before there was such a place.
    pub fn stored<'a>(&self, payload: &'a [u8], place: usize) -> Result<Option<ValueRef<'a>>, CorruptRow> {
        let Parts { descriptors, mut data } = self.parts(payload)?;
        let Some(&wanted) = descriptors.get(place) else { return Ok(None) };
        // The value's data lie behind those of all others.
        let last = self.value.filter(|&value| value < descriptors.len());
        let before = if last == Some(place) { descriptors.len() } else { place };
        for (position, &descriptor) in descriptors[..before].iter().enumerate() {
            if Some(position) != last {
                (_, data) = split_data(descriptor, data)?;
            }
        }
        let (found, _) = split_data(wanted, data)?;
        decode(wanted, found).map(Some)
    }

    /// The value in one place; NULL where the row has no such place.
    pub fn column<'a>(&self, payload: &'a [u8], place: usize) -> Result<ValueRef<'a>, CorruptRow> {
        self.stored(payload, place).map(Option::unwrap_or_default)
    }

    /// Appends the values of all places in their order; NULL for those that the row does not have.
    pub fn decode<'a>(&self, payload: &'a [u8], out: &mut Vec<ValueRef<'a>>) -> Result<(), CorruptRow> {
        let Parts { descriptors, mut data } = self.parts(payload)?;
        let base = out.len();
        out.resize(base + self.columns.max(descriptors.len()), ValueRef::Null);
        for position in data_order(descriptors.len(), self.value) {
            let (found, rest) = split_data(descriptors[position], data)?;
            out[base + position] = decode(descriptors[position], found)?;
            data = rest;
        }
        if data.is_empty() { Ok(()) } else { Err(CorruptRow) }
    }

    /// As [`PayloadShape::value_span`], of a payload with nothing but a value of text or bytes, from its first eight
    /// bytes as a little-endian number. `None`: it is another one.
    #[inline]
    pub fn lone_value(&self, first: u64, payload_len: usize) -> Option<(usize, usize)> {
        let kind = first.to_le_bytes()[0].checked_sub(TEXT)?;
        if self.first != 1 || self.value != Some(0) || kind > BYTES_LAST - TEXT {
            return None;
        }
        let width = 1 << (kind % 3);
        let field = (first >> 8) & (u64::MAX >> (64 - 8 * width));
        let (offset, len) = (1 + width, usize::try_from(field).ok()?);
        (payload_len.checked_sub(offset) == Some(len)).then_some((offset, len))
    }

    /// Where the value column's bytes lie, from the first bytes of a payload.
    ///
    /// `head` is the beginning of a payload of `payload_len` bytes, as much of it as the caller has copied. A
    /// table without a value column has a NULL one. Once `head` is the whole payload, the answer is never
    /// [`ValueSpan::Short`].
    pub fn value_span(&self, head: &[u8], payload_len: usize) -> Result<ValueSpan, CorruptRow> {
        let Some(value) = self.value else {
            return Ok(ValueSpan::Number(ValueRef::Null));
        };
        let Some((from, count)) = self.descriptors(head) else {
            return short(head, COUNT_BYTES, payload_len);
        };
        let Some(descriptors) = head.get(from..from + count) else {
            return short(head, from + count, payload_len);
        };
        if value >= count {
            return Err(CorruptRow);
        }
        let mut offset = from + count;
        for &descriptor in descriptors[..value].iter().chain(&descriptors[value + 1..]) {
            match DataSpan::at(descriptor, head, offset)? {
                Some(span) => offset = span.end()?,
                None => return short(head, offset, payload_len),
            }
        }
        let descriptor = descriptors[value];
        match DataSpan::at(descriptor, head, offset)? {
            None => short(head, offset, payload_len),
            Some(span) if span.end()? != payload_len => Err(CorruptRow),
            Some(DataSpan { offset, len }) if descriptor >= TEXT => Ok(ValueSpan::Raw { offset, len }),
            Some(span) => match head.get(span.offset..payload_len) {
                Some(data) => decode_number(descriptor, data).map(ValueSpan::Number),
                None => short(head, offset, payload_len),
            },
        }
    }
}

/// The places of a payload in the order of their data.
fn data_order(places: usize, value: Option<usize>) -> impl Iterator<Item = usize> {
    let value = value.filter(|&value| value < places);
    (0..places).filter(move |&position| Some(position) != value).chain(value)
}

/// Asks for the payload up to `offset` and a number or length behind it.
fn short(head: &[u8], offset: usize, payload_len: usize) -> Result<ValueSpan, CorruptRow> {
    let need = payload_len.min(offset.saturating_add(LEAD_BYTES_MAX));
    if need > head.len() { Ok(ValueSpan::Short { need }) } else { Err(CorruptRow) }
}

/// Appends a value as memcached clients see it: numbers in SQLite's text form, NULL as nothing.
pub fn write_as_text(value: ValueRef<'_>, out: &mut Vec<u8>) {
    value.write_text(out);
}

/// The columns of a new row except its value, encoded once, for every `set` of a table.
#[derive(Clone, Debug)]
pub struct PayloadTemplate {
    /// Descriptors and the other columns' data, for value lengths of 1, 2 and 4 bytes. Empty where the value
    /// is the only payload column, whose descriptor then goes into the inline header.
    heads: [Vec<u8>; 3],
    /// The first of the three descriptors that the value takes.
    value_descriptor: u8,
}

impl PayloadTemplate {
    /// A template of these payload columns, whose value at the value column's position is ignored.
    ///
    /// `None` where raw bytes are not what the value column holds (an INTEGER counter, say, or no value
    /// column at all): such rows are encoded value by value after [`TableDef::accept`].
    pub fn new(
        shape: PayloadShape,
        value_kind: ColumnKind,
        columns: &[ValueRef<'_>],
    ) -> Result<Option<Self>, ValueTooLong> {
        let value_descriptor = match value_kind {
            ColumnKind::Text | ColumnKind::Any => BYTES,
            ColumnKind::Blob => BLOB,
            ColumnKind::Integer | ColumnKind::Real | ColumnKind::Numeric => return Ok(None),
        };
        let Some(value) = shape.value else {
            return Ok(None);
        };
        let mut heads = [Vec::new(), Vec::new(), Vec::new()];
        if shape.columns > 1 {
            let mut values = columns.to_vec();
            values[value] = ValueRef::Null;
            let mut head = Vec::new();
            shape.encode(&values, &mut head)?;
            for (width, slot) in (0_u8..).zip(&mut heads) {
                head[shape.lead_bytes() + value] = value_descriptor + width;
                slot.clone_from(&head);
            }
        }
        Ok(Some(Self { heads, value_descriptor }))
    }
}

/// The payload of one `set`, in parts that are copied into the arena one after another; nothing is allocated.
#[derive(Clone, Copy, Debug)]
pub struct ValuePayload<'a> {
    head: &'a [u8],
    /// The value's descriptor, where it is the only column, and its length.
    lead: [u8; LEAD_BYTES_MAX],
    lead_len: usize,
    value: &'a [u8],
}

impl<'a> ValuePayload<'a> {
    /// The payload with these bytes in the value column.
    #[inline]
    pub fn new(template: &'a PayloadTemplate, value: &'a [u8]) -> Result<Self, ValueTooLong> {
        Ok(Self { value, ..Self::before(template, value.len())? })
    }

    /// The payload up to a value of so many bytes, which is still to come.
    #[inline]
    pub fn before(template: &'a PayloadTemplate, value_bytes: usize) -> Result<Self, ValueTooLong> {
        let width = width_of(value_bytes)?;
        let head = template.heads[usize::from(width)].as_slice();
        let mut lead = [0; LEAD_BYTES_MAX];
        let mut lead_len = 0;
        if head.is_empty() {
            lead[0] = template.value_descriptor + width;
            lead_len = 1;
        }
        let length = value_bytes.to_le_bytes();
        let length = &length[..1 << width];
        lead[lead_len..lead_len + length.len()].copy_from_slice(length);
        lead_len += length.len();
        Ok(Self { head, lead, lead_len, value: &[] })
    }

    /// The payload's bytes, in order.
    pub fn parts(&self) -> [&[u8]; 3] {
        [self.head, &self.lead[..self.lead_len], self.value]
    }

    /// How many bytes the parts are together.
    pub fn total_bytes(&self) -> usize {
        self.head.len() + self.lead_len + self.value.len()
    }
}

/// The descriptor of a value; numbers take the narrowest.
fn descriptor(value: ValueRef<'_>) -> Result<u8, ValueTooLong> {
    Ok(match value {
        ValueRef::Null => NULL,
        ValueRef::Integer(0) => ZERO,
        ValueRef::Integer(1) => ONE,
        ValueRef::Integer(integer) if i8::try_from(integer).is_ok() => INT8,
        ValueRef::Integer(integer) if i16::try_from(integer).is_ok() => INT16,
        ValueRef::Integer(integer) if i32::try_from(integer).is_ok() => INT32,
        ValueRef::Integer(_) => INT64,
        ValueRef::Real(_) => REAL,
        ValueRef::Text(text) => TEXT + width_of(text.len())?,
        ValueRef::Blob(bytes) => BLOB + width_of(bytes.len())?,
    })
}

/// Which length field a length takes: 0, 1, 2 for 1, 2, 4 bytes.
fn width_of(len: usize) -> Result<u8, ValueTooLong> {
    match len {
        0..=0xff => Ok(0),
        0x100..=0xffff => Ok(1),
        _ if u32::try_from(len).is_ok() => Ok(2),
        _ => Err(ValueTooLong { bytes: len }),
    }
}

/// Appends a value's data; its descriptor was written before, so its length is known to fit.
fn write_data(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Null | ValueRef::Integer(0 | 1) => {}
        ValueRef::Integer(integer) => {
            let bytes = integer.to_le_bytes();
            let len = match descriptor(value) {
                Ok(INT8) => 1,
                Ok(INT16) => 2,
                Ok(INT32) => 4,
                _ => 8,
            };
            out.extend_from_slice(&bytes[..len]);
        }
        ValueRef::Real(real) => out.extend_from_slice(&real.to_le_bytes()),
        ValueRef::Text(text) => write_bytes(text.as_bytes(), out),
        ValueRef::Blob(bytes) => write_bytes(bytes, out),
    }
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let width = width_of(bytes.len()).unwrap_or(2);
    out.extend_from_slice(&bytes.len().to_le_bytes()[..1 << width]);
    out.extend_from_slice(bytes);
}

/// Where one column's data lie behind their length field.
#[derive(Clone, Copy)]
struct DataSpan {
    offset: usize,
    len: usize,
}

impl DataSpan {
    /// The span of the data that begin at `from`; `None` where the length field is not in `bytes`.
    fn at(descriptor: u8, bytes: &[u8], from: usize) -> Result<Option<Self>, CorruptRow> {
        let len = match descriptor {
            NULL | ZERO | ONE => 0,
            INT8 => 1,
            INT16 => 2,
            INT32 => 4,
            INT64 | REAL => 8,
            TEXT..=BYTES_LAST => {
                let width = 1 << ((descriptor - TEXT) % 3);
                let Some(field) = bytes.get(from..from + width) else {
                    return Ok(None);
                };
                let len = field.iter().rev().fold(0, |len, &byte| len << 8 | usize::from(byte));
                return Ok(Some(Self { offset: from + width, len }));
            }
            _ => return Err(CorruptRow),
        };
        Ok(Some(Self { offset: from, len }))
    }

    fn end(self) -> Result<usize, CorruptRow> {
        self.offset.checked_add(self.len).ok_or(CorruptRow)
    }
}

/// The data of one column, without their length, and what follows them.
fn split_data(descriptor: u8, data: &[u8]) -> Result<(&[u8], &[u8]), CorruptRow> {
    let span = DataSpan::at(descriptor, data, 0)?.ok_or(CorruptRow)?;
    let (found, rest) = data.split_at_checked(span.end()?).ok_or(CorruptRow)?;
    Ok((&found[span.offset..], rest))
}

fn decode(descriptor: u8, data: &[u8]) -> Result<ValueRef<'_>, CorruptRow> {
    match descriptor {
        TEXT..BLOB => std::str::from_utf8(data).map(ValueRef::Text).map_err(|_| CorruptRow),
        BLOB..BYTES => Ok(ValueRef::Blob(data)),
        BYTES..=BYTES_LAST => Ok(text_or_blob(data)),
        _ => decode_number(descriptor, data),
    }
}

fn decode_number(descriptor: u8, data: &[u8]) -> Result<ValueRef<'static>, CorruptRow> {
    fn array<const N: usize>(data: &[u8]) -> Result<[u8; N], CorruptRow> {
        data.try_into().map_err(|_| CorruptRow)
    }
    Ok(match descriptor {
        NULL => ValueRef::Null,
        ZERO => ValueRef::Integer(0),
        ONE => ValueRef::Integer(1),
        INT8 => ValueRef::Integer(i8::from_le_bytes(array(data)?).into()),
        INT16 => ValueRef::Integer(i16::from_le_bytes(array(data)?).into()),
        INT32 => ValueRef::Integer(i32::from_le_bytes(array(data)?).into()),
        INT64 => ValueRef::Integer(i64::from_le_bytes(array(data)?)),
        REAL => ValueRef::Real(f64::from_le_bytes(array(data)?)),
        _ => return Err(CorruptRow),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTEGERS: &[i64] = &[
        0,
        1,
        -1,
        2,
        127,
        128,
        -128,
        -129,
        32_767,
        32_768,
        -32_769,
        2_147_483_647,
        2_147_483_648,
        i64::MAX,
        i64::MIN,
    ];

    #[test]
    fn values_have_the_narrowest_encoding() {
        let shape = PayloadShape::new(1, None);
        let sizes = [1, 1, 2, 2, 2, 3, 2, 3, 3, 5, 5, 5, 9, 9, 9];
        for (integer, size) in INTEGERS.iter().zip(sizes) {
            let mut payload = Vec::new();
            shape.encode(&[ValueRef::Integer(*integer)], &mut payload).unwrap();
            assert_eq!(payload.len(), size, "{integer}");
            assert_eq!(shape.column(&payload, 0), Ok(ValueRef::Integer(*integer)));
        }
    }

    #[test]
    fn every_column_is_found_wherever_the_value_column_stands() {
        let long = "x".repeat(70_000);
        let values = [
            ValueRef::Text("body"),
            ValueRef::Null,
            ValueRef::Integer(-300),
            ValueRef::Real(0.5),
            ValueRef::Blob(&[0xff; 300]),
            ValueRef::Text(&long),
            ValueRef::Integer(1),
        ];
        for value in (0..values.len()).map(Some).chain([None]) {
            let shape = PayloadShape::new(values.len(), value);
            let mut payload = Vec::new();
            shape.encode(&values, &mut payload).unwrap();
            for (column, expected) in values.iter().enumerate() {
                assert_eq!(shape.column(&payload, column), Ok(*expected), "{column} of {value:?}");
            }
            let mut all = vec![ValueRef::Integer(9)];
            shape.decode(&payload, &mut all).unwrap();
            assert_eq!(all[1..], values);
            check_value_span(&shape, &payload, value.map(|value| values[value]));
        }
    }

    /// From every length of beginning, the span is either right or asks for more, and asking ends.
    fn check_value_span(shape: &PayloadShape, payload: &[u8], expected: Option<ValueRef<'_>>) {
        check_lone_value(shape, payload);
        let mut head = 0;
        loop {
            match shape.value_span(&payload[..head.min(payload.len())], payload.len()).unwrap() {
                ValueSpan::Short { need } => {
                    assert!(need > head);
                    head = need;
                }
                ValueSpan::Number(number) => return assert_eq!(number, expected.unwrap_or(ValueRef::Null)),
                ValueSpan::Raw { offset, len } => {
                    assert_eq!(offset + len, payload.len(), "the value column is stored last");
                    let mut text = Vec::new();
                    write_as_text(expected.unwrap(), &mut text);
                    return assert_eq!(&payload[offset..], text);
                }
            }
        }
    }

    /// What the first eight bytes say is what the whole payload says, and they say it of every payload of one value.
    fn check_lone_value(shape: &PayloadShape, payload: &[u8]) {
        let mut first = [0; 8];
        let known = payload.len().min(8);
        first[..known].copy_from_slice(&payload[..known]);
        let lone = shape.lone_value(u64::from_le_bytes(first), payload.len());
        let raw = match shape.value_span(payload, payload.len()) {
            Ok(ValueSpan::Raw { offset, len }) => Some((offset, len)),
            _ => None,
        };
        let is_lone = shape.first == 1 && shape.value == Some(0) && payload.first() != Some(&COUNTED);
        assert_eq!(lone, raw.filter(|_| is_lone), "{shape:?}: {payload:?}");
    }

    #[test]
    fn a_template_makes_what_the_encoder_makes() {
        let columns = [ValueRef::Integer(17), ValueRef::Null, ValueRef::Text("en")];
        for len in [0, 1, 255, 256, 65_535, 65_536] {
            let bytes = vec![b'v'; len];
            for (count, at) in [(3, 1), (3, 0), (1, 0)] {
                let shape = PayloadShape::new(count, Some(at));
                let template =
                    PayloadTemplate::new(shape, ColumnKind::Blob, &columns[..count]).unwrap().unwrap();
                let payload = ValuePayload::new(&template, &bytes).unwrap();
                check_lone_value(&shape, &payload.parts().concat());
                let mut values = columns[..count].to_vec();
                values[at] = ValueRef::Blob(&bytes);
                let mut expected = Vec::new();
                shape.encode(&values, &mut expected).unwrap();
                assert_eq!(payload.parts().concat(), expected);
                assert_eq!(payload.total_bytes(), expected.len());
            }
        }
    }

    #[test]
    fn rows_outlive_changes_of_their_table() {
        let old = PayloadShape::new(2, Some(1));
        let new = PayloadShape { columns: 4, ..old };
        let (mut before, mut after) = (Vec::new(), Vec::new());
        old.encode(&[ValueRef::Integer(7), ValueRef::Text("body")], &mut before).unwrap();
        let values = [ValueRef::Null, ValueRef::Text("body"), ValueRef::Real(0.5), ValueRef::Integer(300)];
        new.encode(&values, &mut after).unwrap();
        // Whoever still has the old definition reads new rows too.
        for shape in [old, new] {
            for (place, value) in values.iter().enumerate() {
                assert_eq!(shape.stored(&after, place), Ok(Some(*value)), "{place}");
            }
            assert_eq!(shape.stored(&before, 0), Ok(Some(ValueRef::Integer(7))));
            assert_eq!(shape.stored(&before, 2), Ok(None));
            check_value_span(&shape, &before, Some(values[1]));
            check_value_span(&shape, &after, Some(values[1]));
        }
        let template = PayloadTemplate::new(new, ColumnKind::Text, &values).unwrap().unwrap();
        let made = ValuePayload::new(&template, b"body").unwrap().parts().concat();
        assert_eq!(new.stored(&made, 3), Ok(Some(values[3])));
        assert_eq!(new.column(&made, 1), Ok(values[1]));
    }

    #[test]
    fn an_edited_payload_is_what_the_encoder_makes() {
        let mut random = crate::testing::seeded();
        let texts = ["", "x", "y".repeat(300).as_str(), "z".repeat(70_000).as_str()].map(str::to_owned);
        let any = |random: &mut fastrand::Rng| match random.u8(0..4) {
            0 => ValueRef::Null,
            1 => ValueRef::Real(random.f64()),
            2 => ValueRef::Integer(random.i64(..) >> random.u32(0..64)),
            _ => ValueRef::Text(&texts[random.usize(0..texts.len())]),
        };
        for _ in 0..2_000 {
            let columns = random.usize(1..7);
            let first = if random.bool() { columns } else { random.usize(1..9) };
            let value = random.bool().then(|| random.usize(0..columns.min(first)));
            let shape = PayloadShape { first, columns, value };
            let mut values: Vec<_> = (0..columns).map(|_| any(&mut random)).collect();
            let (mut payload, mut edited, mut expected) = (Vec::new(), Vec::new(), Vec::new());
            shape.encode(&values, &mut payload).unwrap();
            let changes: Vec<_> = (0..columns).map(|_| random.bool().then(|| any(&mut random))).collect();
            assert_eq!(shape.edit(&payload, |place| changes[place], &mut edited), Ok(true));
            for (value, change) in values.iter_mut().zip(&changes) {
                *value = change.unwrap_or(*value);
            }
            shape.encode(&values, &mut expected).unwrap();
            assert_eq!(edited, expected);
            let other = PayloadShape { columns: columns + 1, ..shape };
            assert_eq!(other.edit(&payload, |_| None, &mut Vec::new()), Ok(false));
        }
    }

    #[test]
    fn raw_bytes_read_as_text_where_they_are_text() {
        let shape = PayloadShape::new(1, Some(0));
        let template = PayloadTemplate::new(shape, ColumnKind::Text, &[ValueRef::Null]).unwrap().unwrap();
        for (bytes, value) in
            [(&b"abc"[..], ValueRef::Text("abc")), (&[0xff, 0xfe], ValueRef::Blob(&[0xff, 0xfe]))]
        {
            let payload = ValuePayload::new(&template, bytes).unwrap().parts().concat();
            assert_eq!(payload, [&[BYTES, u8::try_from(bytes.len()).unwrap()], bytes].concat());
            assert_eq!(shape.column(&payload, 0), Ok(value));
        }
        assert!(PayloadTemplate::new(shape, ColumnKind::Integer, &[ValueRef::Null]).unwrap().is_none());
    }

    #[test]
    fn corrupt_payloads_are_refused_not_followed() {
        let mut random = crate::testing::seeded();
        for _ in 0..20_000 {
            let columns = random.usize(1..6);
            let shape = PayloadShape::new(columns, Some(random.usize(0..8)));
            let mut payload: Vec<u8> = (0..random.usize(0..40)).map(|_| random.u8(0..20)).collect();
            if random.bool() && !payload.is_empty() {
                payload[0] = COUNTED;
            }
            let mut out = Vec::new();
            let whole = shape.decode(&payload, &mut out);
            for (column, value) in out.iter().enumerate().filter(|_| whole.is_ok()) {
                assert_eq!(shape.column(&payload, column), Ok(*value));
            }
            let _ = shape.column(&payload, random.usize(0..8));
            check_lone_value(&shape, &payload);
            if let Ok(ValueSpan::Short { .. }) = shape.value_span(&payload, payload.len()) {
                panic!("asks for more than there is: {payload:?}");
            }
        }
    }
}
