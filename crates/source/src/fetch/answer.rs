//! What a source answers: the rows of the keys that were asked for, and what it showed when it read them.

use std::collections::HashMap;
use std::sync::Arc;

use engine::Value;
use postgres::{Datum, Format, oid};
use store::Table;
use store::definition::TableDef;
use store::value::ValueRef;

use crate::error::Error;
use crate::limits::{FETCH_BYTES_MAX, FETCH_ROWS_MAX};
use crate::query::Cells;
use crate::settle::Snapshot;
use crate::values::{encode, value, without_blanks};

/// How the rows of a query are rows of a table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// Our column for each of the query's.
    pub(crate) columns: Vec<usize>,
    /// Where the columns of the key stand among the query's.
    pub(crate) key: Vec<usize>,
    /// Which of these are `char(n)`, by their places among the query's.
    pub(crate) padded: Vec<usize>,
}

/// A row by its key, as our table encodes it.
type Row = (Vec<u8>, Vec<Value>);

/// What came.
pub(crate) struct Answer {
    /// None: it does not say what was visible, as a server that only replays the log of another one.
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) form: Arc<Form>,
    /// By the key as our table encodes it.
    pub(crate) rows: HashMap<Vec<u8>, Vec<Value>>,
}

impl Answer {
    /// Takes a row, unless it is the one that comes where there is none.
    pub(crate) fn add(&mut self, table: &Table, cells: &Cells<'_>) -> Result<(), Error> {
        self.put(table, cells)?;
        let is_padded =
            |at: &usize| cells.get(*at).copied().flatten().is_some_and(|text| text.ends_with(b" "));
        if !self.form.padded.iter().any(is_padded) {
            return Ok(());
        }
        // The key may be asked for without the blanks behind a `char(n)`, which mean nothing, and with them.
        let mut plain = cells.to_vec();
        for &at in &self.form.padded {
            plain[at] = plain[at].map(without_blanks);
        }
        self.put(table, &plain)
    }

    fn put(&mut self, table: &Table, cells: &Cells<'_>) -> Result<(), Error> {
        let Some((key, values)) = row_of(table, &self.form, cells)? else { return Ok(()) };
        if self.rows.insert(key, values).is_some() {
            return Err(Error::new("21000", "the query gives several rows of one key"));
        }
        Ok(())
    }
}

/// How much of an answer was taken, which is bounded.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    rows: usize,
    bytes: usize,
}

impl Taken {
    pub(crate) fn take(&mut self, cells: &Cells<'_>) -> Result<(), Error> {
        self.rows += 1;
        if self.rows > FETCH_ROWS_MAX {
            let message = "the query gives more rows than keys were asked for";
            return Err(Error::new("54000", message).with_hint("it needs a condition by its parameters"));
        }
        self.bytes += cells.iter().flatten().map(|cell| cell.len()).sum::<usize>();
        if self.bytes > FETCH_BYTES_MAX {
            return Err(Error::new("54000", format!("the rows have more than {FETCH_BYTES_MAX} bytes")));
        }
        Ok(())
    }
}

/// How the columns of a query, by their names, are those of a table. They were compared when it was defined.
pub(crate) fn form_of(def: &TableDef, given: &[(String, u32)]) -> Result<Form, Error> {
    let find = |(name, _): &(String, u32)| {
        def.column_index(name).ok_or_else(|| {
            let message = format!("the query gives a column {name}, which table {} does not have", def.name);
            Error::new("42703", message)
        })
    };
    let columns: Vec<usize> = given.iter().map(find).collect::<Result<_, _>>()?;
    let place = |own: &usize| {
        columns.iter().position(|column| column == own).ok_or_else(|| {
            let name = &def.columns[*own].name;
            Error::new("42703", format!("the query does not give {name}, which is in the primary key"))
        })
    };
    let key: Vec<usize> = def.primary_key.iter().map(place).collect::<Result<_, _>>()?;
    // A column of the type itself keeps no blanks.
    let is_padded =
        |at: &usize| given[*at].1 == oid::BPCHAR && def.columns[columns[*at]].sql_type().oid() != oid::BPCHAR;
    let padded = key.iter().copied().filter(is_padded).collect();
    Ok(Form { columns, key, padded })
}

/// The key and the values of a row; none: it is the one that comes where there is no row.
fn row_of(table: &Table, form: &Form, cells: &Cells<'_>) -> Result<Option<Row>, Error> {
    if form.key.iter().any(|&at| cells.get(at).copied().flatten().is_none()) {
        return Ok(None);
    }
    let def = table.def();
    let read = |(&column, cell): (&usize, Option<&[u8]>)| match cell {
        None => Ok(Value::Null),
        Some(text) => {
            let own = &def.columns[column];
            let read = value(own.sql_type().oid(), text);
            read.map_err(|error| Error::new(error.state, format!("column {}: {}", own.name, error.message)))
        }
    };
    let values: Vec<Value> =
        form.columns.iter().zip(cells.iter().copied()).map(read).collect::<Result<_, _>>()?;
    let key = encode(table, form.key.iter().map(|&at| values[at].clone()))
        .ok_or_else(|| Error::new("22023", "the query gives a key that the table cannot have"))?;
    Ok(Some((key, values)))
}

/// One column of a key as PostgreSQL reads it.
pub(crate) fn key_text(table: &Table, key: &[u8], at: usize, oid: u32) -> Result<String, Error> {
    let wrong = || Error::new("22023", "a key has no text");
    let datum = match table.keys().column(key, at).map_err(|_| wrong())? {
        ValueRef::Null => Datum::Null,
        ValueRef::Integer(number) => Datum::Integer(number),
        ValueRef::Real(number) => Datum::Real(number),
        ValueRef::Text(text) => Datum::Text(text),
        ValueRef::Blob(bytes) => Datum::Bytes(bytes),
    };
    let mut out = Vec::new();
    postgres::encode(oid, Format::Text, datum, &mut out).map_err(|_| wrong())?;
    String::from_utf8(out).map_err(|_| wrong())
}
