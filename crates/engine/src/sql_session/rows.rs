//! Rows kept for later: the result of a portal with a limit, or of a cursor.
//!
//! A suspended result is made whole and kept here, so that a client that never asks for the rest holds no row of the
//! store back. The values lie behind one another in one buffer.

use sql::{Column, OwnedColumn, RowSink, SqlError};
use store::value::ValueRef;

/// Kept rows, limited in bytes.
#[derive(Debug)]
pub(crate) struct Rows {
    columns: Vec<OwnedColumn>,
    bytes: Vec<u8>,
    /// Where each row begins.
    starts: Vec<usize>,
    limit: usize,
}

impl Rows {
    pub(crate) fn new(limit: usize) -> Self {
        Self { columns: Vec::new(), bytes: Vec::new(), starts: Vec::new(), limit }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Gives some of them to a sink.
    pub(crate) fn replay(
        &self,
        wanted: impl Iterator<Item = usize>,
        sink: &mut dyn RowSink,
    ) -> Result<(), SqlError> {
        let columns: Vec<Column<'_>> = self.columns.iter().map(OwnedColumn::as_column).collect();
        sink.columns(&columns);
        let mut values = Vec::with_capacity(columns.len());
        for row in wanted {
            let Some(start) = self.starts.get(row) else { break };
            let mut rest = &self.bytes[*start..];
            values.clear();
            for _ in 0..columns.len() {
                let (value, after) =
                    read(rest).ok_or_else(|| SqlError::new("XX000", "a kept row is damaged"))?;
                values.push(value);
                rest = after;
            }
            sink.row(&values)?;
        }
        Ok(())
    }
}

impl RowSink for Rows {
    fn columns(&mut self, columns: &[Column<'_>]) {
        self.columns = columns
            .iter()
            .map(|column| OwnedColumn {
                name: column.name.to_owned(),
                label: column.label.to_owned(),
                ty: column.ty,
                table: column.table,
            })
            .collect();
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.starts.push(self.bytes.len());
        for value in values {
            write(*value, &mut self.bytes);
        }
        if self.bytes.len() + self.starts.len() * size_of::<usize>() > self.limit {
            return Err(too_large(self.limit));
        }
        Ok(())
    }
}

/// The error for a result beyond `max_result_size`.
#[cold]
pub fn too_large(limit: usize) -> SqlError {
    SqlError::new("54000", format!("result is larger than {limit} bytes (max_result_size)"))
        .with_hint("use LIMIT, ask for fewer columns, or COPY (SELECT ...) TO STDOUT")
}

const NULL: u8 = 0;
const INTEGER: u8 = 1;
const REAL: u8 = 2;
const TEXT: u8 = 3;
const BLOB: u8 = 4;

fn write(value: ValueRef<'_>, out: &mut Vec<u8>) {
    let mut variable = |kind: u8, bytes: &[u8]| {
        out.push(kind);
        out.extend_from_slice(&bytes.len().to_le_bytes());
        out.extend_from_slice(bytes);
    };
    match value {
        ValueRef::Text(text) => variable(TEXT, text.as_bytes()),
        ValueRef::Blob(bytes) => variable(BLOB, bytes),
        ValueRef::Null => out.push(NULL),
        ValueRef::Integer(number) => {
            out.push(INTEGER);
            out.extend_from_slice(&number.to_le_bytes());
        }
        ValueRef::Real(number) => {
            out.push(REAL);
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
}

fn read(bytes: &[u8]) -> Option<(ValueRef<'_>, &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    if *kind == NULL {
        return Some((ValueRef::Null, rest));
    }
    let (word, rest) = rest.split_first_chunk::<8>()?;
    Some(match *kind {
        INTEGER => (ValueRef::Integer(i64::from_le_bytes(*word)), rest),
        REAL => (ValueRef::Real(f64::from_le_bytes(*word)), rest),
        kind => {
            let (value, rest) = rest.split_at_checked(usize::from_le_bytes(*word))?;
            if kind == TEXT {
                (ValueRef::Text(std::str::from_utf8(value).ok()?), rest)
            } else {
                (ValueRef::Blob(value), rest)
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Taken(Vec<String>);

    impl RowSink for Taken {
        fn columns(&mut self, columns: &[Column<'_>]) {
            self.0.push(format!("{}", columns.len()));
        }

        fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
            self.0.push(format!("{values:?}"));
            Ok(())
        }
    }

    #[test]
    fn rows_come_back_as_they_were() {
        let mut rows = Rows::new(1 << 10);
        let column = Column { name: "a", label: "a", ty: sql::SqlType::Text, table: None };
        rows.columns(&[column; 5]);
        let row = [
            ValueRef::Null,
            ValueRef::Integer(-7),
            ValueRef::Real(1.5),
            ValueRef::Text("x"),
            ValueRef::Blob(&[0, 255]),
        ];
        for _ in 0..3 {
            rows.row(&row).unwrap();
        }
        let mut taken = Taken(Vec::new());
        rows.replay(1..3, &mut taken).unwrap();
        assert_eq!(taken.0, ["5".to_owned(), format!("{row:?}"), format!("{row:?}")]);
        let error = (0..100).find_map(|_| rows.row(&row).err()).unwrap();
        assert_eq!(error.state, "54000");
    }
}
