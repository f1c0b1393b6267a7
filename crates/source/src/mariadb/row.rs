//! Rows of an event: of the columns that something depends on, as text.

use std::ops::Range;

use super::columns::Column;
use super::cursor::{Cursor, cut};
use super::event::{Change, Rows};
use super::table::TableMap;
use super::value;
use crate::error::Error;
use crate::row::{Cell, Cells};

/// A table that something depends on.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) map: TableMap,
    /// Its columns; none: they cannot be told from what the log has.
    pub(super) columns: Vec<Column>,
    /// The places of the columns whose values are needed.
    pub(super) wanted: Vec<bool>,
}

/// A value, or where it stands in the text of its row.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Unknown,
    Null,
    Text(Range<usize>),
}

/// The values of a row that are needed.
#[derive(Debug, Default)]
pub(super) struct Values {
    text: Vec<u8>,
    cells: Vec<Value>,
}

impl Cells for Values {
    fn cell(&self, at: usize) -> Cell<'_> {
        match self.cells.get(at) {
            None | Some(Value::Unknown) => Cell::Unchanged,
            Some(Value::Null) => Cell::Null,
            Some(Value::Text(range)) => Cell::Text(&self.text[range.clone()]),
        }
    }
}

/// Reads the rows of an event: each is handed over as it was before, and as it is now. Returns how many there are.
pub(super) fn each(
    table: &Table,
    rows: &Rows<'_>,
    mut met: impl FnMut(Option<&Values>, Option<&Values>),
) -> Result<u64, Error> {
    if rows.columns != table.map.types.len() {
        return Err(Error::connection("rows of the binary log have other columns than their table"));
    }
    let (mut before, mut after) = (Values::default(), Values::default());
    let mut rest = Cursor(rows.values.bytes());
    let mut count = 0;
    while !rest.0.is_empty() {
        before.read(table, rows.present, &mut rest)?;
        match rows.change {
            Change::Insert => met(None, Some(&before)),
            Change::Delete => met(Some(&before), None),
            Change::Update => {
                after.read(table, rows.present_after, &mut rest)?;
                met(Some(&before), Some(&after));
            }
        }
        count += 1;
    }
    Ok(count)
}

impl Values {
    fn read(&mut self, table: &Table, present: &[u8], rest: &mut Cursor<'_>) -> Result<(), Error> {
        self.text.clear();
        self.cells.clear();
        let columns = table.map.types.len();
        let is_present = |at: &usize| bit(present, *at);
        let count = (0..columns).filter(is_present).count();
        // A row of nothing would be followed by another one without end.
        if count == 0 {
            return Err(cut());
        }
        let nulls = rest.take(count.div_ceil(8))?;
        let mut number = 0;
        for at in 0..columns {
            let value = if is_present(&at) {
                number += 1;
                if bit(nulls, number - 1) { Value::Null } else { self.value(table, at, rest)? }
            } else {
                Value::Unknown
            };
            self.cells.push(value);
        }
        Ok(())
    }

    fn value(&mut self, table: &Table, at: usize, rest: &mut Cursor<'_>) -> Result<Value, Error> {
        let of = table.map.types[at];
        let raw = of.split(rest)?;
        let kind = table.columns.get(at).and_then(|column| column.kind.as_ref());
        let Some(kind) = kind.filter(|_| table.wanted.get(at) == Some(&true)) else {
            return Ok(Value::Unknown);
        };
        let begin = self.text.len();
        let told = value::write(&mut self.text, of, kind, raw)?;
        Ok(if told { Value::Text(begin..self.text.len()) } else { Value::Unknown })
    }
}

fn bit(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}
