//! Where each column of a table lies: in the encoded key or in the payload.

use crate::codec::{KeyCodec, PayloadShape, PayloadTemplate, ValuePayload};
use crate::definition::{ColumnKind, SqlType, TableDef};
use crate::error::WriteError;
use crate::row::RowBuf;
use crate::scalar::has_form;
use crate::value::{Value, ValueRef};

/// The way from columns to a row's two byte strings and back.
#[derive(Clone, Debug)]
pub(crate) struct RowLayout {
    keys: KeyCodec,
    shape: PayloadShape,
    /// For each column of the table its place.
    places: Vec<Place>,
    /// The other columns of a row that a memcached client sets; none when the value column does not hold raw bytes.
    template: Option<PayloadTemplate>,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Key(usize),
    Payload(usize),
}

impl RowLayout {
    pub(crate) fn new(def: &TableDef) -> Self {
        let payload = def.payload_columns();
        let place = |column| {
            let key = def.primary_key.iter().position(|&key| key == column).map(Place::Key);
            key.unwrap_or_else(|| Place::Payload(payload.iter().position(|&own| own == column).unwrap_or(0)))
        };
        let shape = PayloadShape::of(def);
        let defaults: Vec<ValueRef<'_>> = payload.iter().map(|&column| default(def, column)).collect();
        // A type with a form of its own has every value looked at, as numbers have.
        let raw = |&value: &usize| {
            matches!(def.columns[value].sql_type(), SqlType::Bytea)
                || !has_form(def.columns[value].sql_type())
        };
        let kind = def.options.value.filter(raw).map_or(ColumnKind::Integer, |value| def.columns[value].kind);
        // A default too long for a row would be refused with the definition; such a table has no short way.
        let template = PayloadTemplate::new(shape, kind, &defaults).ok().flatten();
        Self {
            keys: KeyCodec::new(def),
            shape,
            places: (0..def.columns.len()).map(place).collect(),
            template,
        }
    }

    pub(crate) fn keys(&self) -> &KeyCodec {
        &self.keys
    }

    pub(crate) fn shape(&self) -> &PayloadShape {
        &self.shape
    }

    /// One column of a row; damaged bytes read as NULL, for a check field guards rows where they are taken over.
    pub(crate) fn column<'a>(&self, row: &'a RowBuf, column: usize) -> ValueRef<'a> {
        let value = match self.places.get(column) {
            Some(&Place::Key(at)) => self.keys.column(row.key(), at),
            Some(&Place::Payload(at)) => self.shape.column(row.payload(), at),
            None => return ValueRef::Null,
        };
        value.unwrap_or(ValueRef::Null)
    }

    /// Encodes a whole row, values in the order of the columns. The key of a table without one is given by the caller.
    pub(crate) fn encode(
        &self,
        def: &TableDef,
        values: &[ValueRef<'_>],
        key: &mut Vec<u8>,
        payload: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let key_values: Vec<ValueRef<'_>> = def.primary_key.iter().map(|&column| values[column]).collect();
        if !def.has_row_id() {
            self.keys.encode(&key_values, key).map_err(|error| WriteError::Key(error.to_string()))?;
        }
        let columns = self.places.iter().zip(values).filter(|(place, _)| matches!(place, Place::Payload(_)));
        let columns: Vec<ValueRef<'_>> = columns.map(|(_, value)| *value).collect();
        self.shape
            .encode(&columns, payload)
            .map_err(|error| WriteError::TooLarge { bytes: error.bytes, limit: u32::MAX as usize })
    }

    /// The payload of a row that a memcached client sets, if its value is stored as it is.
    pub(crate) fn item<'a>(&'a self, value: &'a [u8]) -> Option<ValuePayload<'a>> {
        ValuePayload::new(self.template.as_ref()?, value).ok()
    }
}

/// The value of a column that a row does not name.
pub(crate) fn default(def: &TableDef, column: usize) -> ValueRef<'_> {
    def.columns[column].default.as_ref().map_or(ValueRef::Null, Value::as_ref)
}
