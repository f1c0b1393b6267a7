//! Where each column of a table lies: in the encoded key or in the payload.

use crate::codec::{KeyCodec, PayloadShape, PayloadTemplate, ValuePayload, ValueTooLong};
use crate::definition::{ColumnKind, TableDef};
use crate::error::WriteError;
use crate::row::RowBuf;
use crate::scalar::{SqlType, has_form};
use crate::value::{Value, ValueRef};

/// The way from columns to a row's two byte strings and back.
#[derive(Clone, Debug)]
pub(crate) struct RowLayout {
    keys: KeyCodec,
    shape: PayloadShape,
    /// For each column of the table its place.
    places: Vec<Place>,
    /// For each column its value in rows that do not have it; empty where all have all.
    absent: Vec<Value>,
    /// The other columns of a row that a memcached client sets; none when the value column does not hold raw bytes.
    template: Option<PayloadTemplate>,
}

/// Values of a payload that are put in order on the stack; those of more columns take the heap.
const FEW_PLACES: usize = 16;

#[derive(Clone, Copy, Debug)]
enum Place {
    Key(usize),
    Payload(usize),
}

impl RowLayout {
    pub(crate) fn new(def: &TableDef) -> Self {
        let mut places = vec![Place::Key(0); def.columns.len()];
        for (at, &column) in def.primary_key.iter().enumerate() {
            places[column] = Place::Key(at);
        }
        let shape = PayloadShape::of(def);
        let mut defaults = vec![ValueRef::Null; shape.columns()];
        for (column, slot) in def.payload_slots() {
            places[column] = Place::Payload(slot);
            defaults[slot] = default(def, column);
        }
        // A type with a form of its own has every value looked at, as numbers have.
        let raw = |&value: &usize| {
            matches!(def.columns[value].sql_type(), SqlType::Bytea)
                || !has_form(def.columns[value].sql_type())
        };
        let kind = def.options.value.filter(raw).map_or(ColumnKind::Integer, |value| def.columns[value].kind);
        // A default too long for a row would be refused with the definition; such a table has no short way.
        let template = PayloadTemplate::new(shape, kind, &defaults).ok().flatten();
        let absent = def.columns.iter().map(|column| column.absent.clone().unwrap_or_default());
        let absent = if def.slots.is_some() { absent.collect() } else { Vec::new() };
        Self { keys: KeyCodec::new(def), shape, places, absent, template }
    }

    pub(crate) fn keys(&self) -> &KeyCodec {
        &self.keys
    }

    pub(crate) fn shape(&self) -> &PayloadShape {
        &self.shape
    }

    /// One column of a row; damaged bytes read as NULL, for a check field guards rows where they are taken over.
    pub(crate) fn column<'a>(&'a self, row: &'a RowBuf, column: usize) -> ValueRef<'a> {
        match self.places.get(column) {
            Some(&Place::Key(at)) => self.keys.column(row.key(), at).unwrap_or_default(),
            Some(&Place::Payload(at)) => match self.shape.stored(row.payload(), at) {
                Ok(Some(value)) => value,
                Ok(None) => self.absent.get(column).map_or(ValueRef::Null, Value::as_ref),
                Err(_) => ValueRef::Null,
            },
            None => ValueRef::Null,
        }
    }

    /// Appends the value column of a row as a memcached client reads it.
    pub(crate) fn write_item_value(&self, def: &TableDef, row: &RowBuf, out: &mut Vec<u8>) {
        let value = def.options.value.map_or(ValueRef::Null, |column| self.column(row, column));
        match value {
            ValueRef::Null => {}
            ValueRef::Blob(bytes) => out.extend_from_slice(bytes),
            value => value.write_text(out),
        }
    }

    /// One column of an encoded key; NULL for one that is none of it.
    pub(crate) fn key_column<'a>(&'a self, key: &'a [u8], column: usize) -> ValueRef<'a> {
        match self.places.get(column) {
            Some(&Place::Key(at)) => self.keys.column(key, at).unwrap_or_default(),
            _ => ValueRef::Null,
        }
    }

    /// Whether a row was written with this column in it.
    pub(crate) fn has(&self, row: &RowBuf, column: usize) -> bool {
        match self.places.get(column) {
            Some(&Place::Payload(at)) => matches!(self.shape.stored(row.payload(), at), Ok(Some(_))),
            place => place.is_some(),
        }
    }

    /// Encodes a whole row, values in the order of the columns. The key of a table without one is given by the caller.
    pub(crate) fn encode(
        &self,
        def: &TableDef,
        values: &[ValueRef<'_>],
        key: &mut Vec<u8>,
        payload: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        self.encode_key(def, values, key)?;
        self.encode_payload(values, payload)
    }

    /// Encodes the key of a row, values in the order of the columns; nothing for a table without one.
    pub(crate) fn encode_key(
        &self,
        def: &TableDef,
        values: &[ValueRef<'_>],
        key: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let encoded = match def.primary_key[..] {
            _ if def.has_row_id() => Ok(()),
            [column] => self.keys.encode(&[values[column]], key),
            _ => {
                let parts: Vec<_> = def.primary_key.iter().map(|&column| values[column]).collect();
                self.keys.encode(&parts, key)
            }
        };
        encoded.map_err(|error| WriteError::Key(error.to_string()))
    }

    /// Appends the payload of a row with other values in columns outside the key; see [`PayloadShape::edit`].
    pub(crate) fn edit_payload(
        &self,
        row: &RowBuf,
        changes: &[(usize, ValueRef<'_>)],
        out: &mut Vec<u8>,
    ) -> Result<bool, WriteError> {
        let stands = |column: usize, place: usize| matches!(self.places.get(column), Some(&Place::Payload(at)) if at == place);
        let change =
            |place: usize| changes.iter().find(|(column, _)| stands(*column, place)).map(|(_, new)| *new);
        self.shape.edit(row.payload(), change, out).map_err(too_large)
    }

    /// Encodes the columns outside the key, of values in the order of the columns.
    pub(crate) fn encode_payload(
        &self,
        values: &[ValueRef<'_>],
        payload: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let (mut few, mut many) = ([ValueRef::Null; FEW_PLACES], Vec::new());
        let places = if let Some(few) = few.get_mut(..self.shape.columns()) {
            few
        } else {
            many.resize(self.shape.columns(), ValueRef::Null);
            &mut many[..]
        };
        for (place, value) in self.places.iter().zip(values) {
            if let Place::Payload(at) = place {
                places[*at] = *value;
            }
        }
        self.shape.encode(places, payload).map_err(too_large)
    }

    /// The payload of a row that a memcached client sets, if its value is stored as it is.
    pub(crate) fn item<'a>(&'a self, value: &'a [u8]) -> Option<ValuePayload<'a>> {
        ValuePayload::new(self.template.as_ref()?, value).ok()
    }

    /// The same up to its value, which is still to come.
    pub(crate) fn item_before(&self, value_bytes: usize) -> Option<ValuePayload<'_>> {
        ValuePayload::before(self.template.as_ref()?, value_bytes).ok()
    }
}

fn too_large(error: ValueTooLong) -> WriteError {
    WriteError::TooLarge { bytes: error.bytes, limit: u32::MAX as usize }
}

/// The value of a column that a row does not name.
pub(crate) fn default(def: &TableDef, column: usize) -> ValueRef<'_> {
    def.columns[column].default.as_ref().map_or(ValueRef::Null, Value::as_ref)
}
