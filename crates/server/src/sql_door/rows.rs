//! Rows of a result as `DataRow` messages.

use engine::{Column, Formats, ResultColumn, RowSink, SqlError, SqlType, ValueRef};
use postgres::backend::{Field, data_row, row_description};
use postgres::{Datum, Format, ValueError};

/// Writes the rows of a portal, whose columns the client knows.
pub(crate) struct PortalRows<'a> {
    pub(crate) columns: &'a [ResultColumn],
    pub(crate) formats: &'a Formats,
    pub(crate) out: &'a mut Vec<u8>,
    /// How long `out` may become.
    pub(crate) limit: usize,
    /// The rows are other than was said.
    pub(crate) changed: bool,
}

/// Writes a description of the columns and then the rows, all as text.
pub(crate) struct TextRows<'a> {
    types: Vec<u32>,
    out: &'a mut Vec<u8>,
    limit: usize,
}

impl RowSink for PortalRows<'_> {
    #[inline]
    fn columns(&mut self, columns: &[Column<'_>]) {
        let same = |(said, is): (&ResultColumn, &Column<'_>)| said.column.ty == is.ty;
        self.changed = self.columns.len() != columns.len() || !self.columns.iter().zip(columns).all(same);
    }

    #[inline]
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        if self.changed {
            return Err(SqlError::new("0A000", "cached plan must not change result type")
                .with_hint("a definition has changed; prepare the statement again"));
        }
        let columns = self.columns.iter().enumerate();
        let values = columns.zip(values).map(|((at, column), value)| {
            (column.type_oid, format_of(self.formats.is_binary(at)), datum(*value))
        });
        data_row(self.columns.len(), values, self.out).map_err(refused)?;
        within(self.out.len(), self.limit)
    }
}

impl<'a> TextRows<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, limit: usize) -> Self {
        let limit = out.len().saturating_add(limit);
        Self { types: Vec::new(), out, limit }
    }
}

impl RowSink for TextRows<'_> {
    fn columns(&mut self, columns: &[Column<'_>]) {
        self.types.clear();
        self.types.extend(columns.iter().map(|column| column.ty.oid()));
        row_description(columns.iter().map(|column| field(*column, column.ty, Format::Text)), self.out);
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let columns = self.types.iter().zip(values);
        let values = columns.map(|(type_oid, value)| (*type_oid, Format::Text, datum(*value)));
        data_row(self.types.len(), values, self.out).map_err(refused)?;
        within(self.out.len(), self.limit)
    }
}

/// A column as it is described to the client.
pub(crate) fn field(column: Column<'_>, ty: SqlType, format: Format) -> Field<'_> {
    let (table, number) = column.table.unwrap_or_default();
    Field { name: column.label, table, column: number, type_oid: ty.oid(), size: ty.size(), format }
}

pub(crate) fn format_of(binary: bool) -> Format {
    if binary { Format::Binary } else { Format::Text }
}

#[inline]
pub(crate) fn datum(value: ValueRef<'_>) -> Datum<'_> {
    match value {
        ValueRef::Null => Datum::Null,
        ValueRef::Integer(number) => Datum::Integer(number),
        ValueRef::Real(number) => Datum::Real(number),
        ValueRef::Text(text) => Datum::Text(text),
        ValueRef::Blob(bytes) => Datum::Bytes(bytes),
    }
}

#[cold]
pub(crate) fn refused(error: ValueError) -> SqlError {
    SqlError::new(error.state, error.message)
}

#[inline]
fn within(len: usize, limit: usize) -> Result<(), SqlError> {
    if len <= limit { Ok(()) } else { Err(engine::result_too_large(limit)) }
}
