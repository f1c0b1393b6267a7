//! Rows kept for later: the result of a portal with a limit, or of a cursor.
//!
//! A suspended result is made whole and kept here, so that a client that never asks for the rest holds no row of the
//! store back. The values lie behind one another in one buffer.

use sql::{ColumnDescription, Held, RowSink, SqlError};
use store::value::ValueRef;

/// Kept rows, limited in bytes.
#[derive(Debug)]
pub(crate) struct Rows {
    columns: Vec<ColumnDescription>,
    bytes: Vec<u8>,
    /// Where each row begins.
    starts: Vec<usize>,
    limit: usize,
    /// What they take of the session's allowance.
    held: Held,
}

impl Rows {
    pub(crate) fn new(limit: usize, held: Held) -> Self {
        Self { columns: Vec::new(), bytes: Vec::new(), starts: Vec::new(), limit, held }
    }

    /// All rows are here: gives back what was taken for more.
    pub(crate) fn complete(&mut self) {
        self.bytes.shrink_to_fit();
        self.starts.shrink_to_fit();
        self.held.set(self.memory());
    }

    /// What they take.
    fn memory(&self) -> usize {
        self.bytes.capacity() + self.starts.capacity() * size_of::<usize>()
    }

    /// Makes room for a row whose values take so many bytes, if the session may hold it.
    fn reserve(&mut self, more: usize) -> Result<(), SqlError> {
        if self.bytes.capacity() - self.bytes.len() >= more && self.starts.len() < self.starts.capacity() {
            return Ok(());
        }
        let bytes = self.bytes.len() + more;
        if bytes + self.starts.len() * size_of::<usize>() > self.limit {
            return Err(too_large(self.limit));
        }
        // Half as much again, so that growing costs little, and no more than may ever be needed.
        let bytes = if bytes <= self.bytes.capacity() { 0 } else { (bytes + bytes / 2).min(self.limit) };
        let starts = if self.starts.len() < self.starts.capacity() { 0 } else { self.starts.len() / 2 + 16 };
        // What is moved is there twice for a moment.
        let moved = if bytes == 0 { 0 } else { self.bytes.capacity() };
        self.held.try_set(self.memory().max(bytes) + moved + starts * size_of::<usize>())?;
        self.bytes.reserve_exact(bytes.saturating_sub(self.bytes.len()));
        self.starts.reserve_exact(starts);
        self.held.set(self.memory());
        Ok(())
    }

    /// Bytes of all values.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it is known of what columns: a statement that gives no rows has none.
    pub(crate) fn has_columns(&self) -> bool {
        !self.columns.is_empty()
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
        sink.columns(&self.columns);
        let mut values = Vec::with_capacity(self.columns.len());
        for row in wanted {
            let Some(start) = self.starts.get(row) else { break };
            let mut rest = &self.bytes[*start..];
            values.clear();
            for _ in 0..self.columns.len() {
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
    fn columns(&mut self, columns: &[ColumnDescription]) {
        self.columns = columns.to_vec();
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.reserve(values.iter().map(|value| written(*value)).sum())?;
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

/// Bytes that [`write`] writes.
fn written(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Null => 1,
        ValueRef::Integer(_) | ValueRef::Real(_) => 1 + size_of::<u64>(),
        ValueRef::Text(text) => 1 + size_of::<usize>() + text.len(),
        ValueRef::Blob(bytes) => 1 + size_of::<usize>() + bytes.len(),
    }
}

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
        fn columns(&mut self, columns: &[ColumnDescription]) {
            self.0.push(format!("{}", columns.len()));
        }

        fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
            self.0.push(format!("{values:?}"));
            Ok(())
        }
    }

    #[test]
    fn rows_come_back_as_they_were() {
        let account = sql::Account::new(1 << 20);
        let mut rows = Rows::new(1 << 10, sql::Allowance::new(&account, 1 << 20).account());
        let name = || "a".to_owned();
        let column = || ColumnDescription {
            name: name(),
            label: name(),
            ty: sql::SqlType::Text,
            table: None,
            modifier: -1,
        };
        rows.columns(&[column(), column(), column(), column(), column()]);
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
        rows.complete();
        assert_eq!(account.bytes(), rows.memory());
        drop(rows);
        assert_eq!(account.bytes(), 0);
    }
}
