//! A statement whose common table expressions write: several statements over what was there before, and one commit.
//!
//! Each part is compiled as a statement of its own. What one returns, the parts behind it read as arrays, one for each
//! column, which are parameters behind those of the client. So each part is run once, whether or not it is read.

use hashbrown::HashSet;
use store::definition::SqlType;
use store::value::{Value, ValueRef};
use store::{TableId, Write};

use crate::core::Core;
use crate::describe::ColumnDescription;
use crate::done::{Done, RowSink};
use crate::error::{SqlError, state};
use crate::journal::{Reach, value_bytes};
use crate::limits::{PART_BYTES_MAX, PART_ROWS_MAX, RETRIES_MAX};
use crate::prepared::Prepared;

/// The parts of a statement.
#[derive(Debug)]
pub(crate) struct Compound {
    /// Those that write, in their order.
    writes: Vec<Prepared>,
    /// What stands behind the common table expressions.
    main: Box<Prepared>,
    /// How many parameters the client gives.
    pub(crate) parameters: usize,
}

impl Compound {
    pub(crate) fn new(writes: Vec<Prepared>, main: Prepared, parameters: usize) -> Self {
        Self { writes, main: Box::new(main), parameters }
    }

    pub(crate) fn tag(&self) -> &'static str {
        self.main.plan().head().1
    }

    pub(crate) fn columns(&self) -> Option<&[ColumnDescription]> {
        self.main.plan().columns()
    }

    /// What it is called as a statement that writes.
    pub(crate) fn writes(&self) -> Option<&'static str> {
        let writes = self.writes.iter().map(|part| part.plan().writes());
        self.main.plan().writes().or_else(|| writes.flatten().next())
    }

    /// What it shows beside the tables that its parts read.
    pub(crate) fn reach(&self) -> Reach {
        match self.main.plan().reach() {
            Reach::Reads(table) => Reach::Reads(table),
            Reach::Blind(table) => Reach::Reads(Some(table)),
            Reach::Puts => Reach::Reads(None),
        }
    }

    /// Runs all parts, and commits what they wrote if the statement stands alone. Its rows are given when they are
    /// true.
    pub(crate) fn run(
        &mut self,
        core: &Core,
        parameters: &[Value],
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        for _ in 0..RETRIES_MAX {
            core.sight.check_watch()?;
            let mut rows = Kept::default();
            let done = self.compute(core, parameters, &mut rows);
            // What a part has written does not stand without the others.
            let done = done.map_err(|error| SqlError { partial: false, ..error })?;
            if core.commit_own()? {
                rows.give(out)?;
                return Ok(done);
            }
            std::thread::yield_now();
        }
        let message =
            format!("the rows changed each of the {RETRIES_MAX} times that they were computed; try again");
        Err(SqlError::new(state::LOST, message))
    }

    fn compute(&mut self, core: &Core, parameters: &[Value], rows: &mut Kept) -> Result<Done, SqlError> {
        let view = core.view();
        let _shared = core.share(&view);
        let mut values = parameters.to_vec();
        for part in &mut self.writes {
            let mut returned = Arrays::new(part.plan().columns().unwrap_or_default());
            run_part(part, core, &values, &mut returned)?;
            values.extend(returned.into_values());
        }
        let done = run_part(&mut self.main, core, &values, rows)?;
        check_once(&core.written.borrow())?;
        Ok(done)
    }
}

/// Runs a part with as many of the parameters as it takes.
fn run_part(
    part: &mut Prepared,
    core: &Core,
    values: &[Value],
    out: &mut dyn RowSink,
) -> Result<Done, SqlError> {
    let count = part.plan().head().0;
    part.run(core, values.get(..count).unwrap_or(values), out)
}

/// No part writes a row that another wrote: neither could say what becomes of it.
fn check_once(written: &[Write]) -> Result<(), SqlError> {
    let mut places: HashSet<(TableId, &[u8])> = HashSet::with_capacity(written.len());
    match written.iter().find(|write| !places.insert((write.table.id(), &write.key))) {
        None => Ok(()),
        Some(write) => {
            let message = format!(
                "two parts of the statement write one row of table \"{}\"",
                write.table.def().own_name()
            );
            Err(SqlError::new(state::CARDINALITY, message).with_hint(
                "each part sees the rows as they were before the statement; write the row in one of them",
            ))
        }
    }
}

fn too_large(what: &str) -> SqlError {
    SqlError::new(state::TOO_LARGE, format!("a part of the statement returns more than {what}"))
        .with_hint("write fewer rows at a time")
}

/// The room that returned rows take.
#[derive(Debug, Default)]
struct Room {
    rows: usize,
    bytes: usize,
}

impl Room {
    fn take(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.rows += 1;
        self.bytes += bytes;
        match () {
            () if self.rows > PART_ROWS_MAX => Err(too_large(&format!("{PART_ROWS_MAX} rows"))),
            () if self.bytes > PART_BYTES_MAX => Err(too_large(&format!("{PART_BYTES_MAX} bytes"))),
            () => Ok(()),
        }
    }
}

/// The rows of the main part, kept until they are true.
#[derive(Debug, Default)]
struct Kept {
    columns: Option<Vec<ColumnDescription>>,
    rows: Vec<Vec<Value>>,
    room: Room,
}

impl Kept {
    fn give(self, out: &mut dyn RowSink) -> Result<(), SqlError> {
        let Some(columns) = &self.columns else { return Ok(()) };
        out.columns(columns);
        for row in &self.rows {
            let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
            out.row(&values)?;
        }
        Ok(())
    }
}

impl RowSink for Kept {
    fn columns(&mut self, columns: &[ColumnDescription]) {
        self.columns = Some(columns.to_vec());
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let row: Vec<Value> = values.iter().map(|value| Value::from(*value)).collect();
        self.room.take(row.iter().map(value_bytes).sum())?;
        self.rows.push(row);
        Ok(())
    }
}

/// What a part returns, as the texts of arrays.
#[derive(Debug)]
struct Arrays {
    types: Vec<SqlType>,
    texts: Vec<String>,
    room: Room,
}

impl Arrays {
    fn new(columns: &[ColumnDescription]) -> Self {
        let types: Vec<SqlType> = columns.iter().map(|column| column.ty).collect();
        Self { texts: vec!["{".to_owned(); types.len()], types, room: Room::default() }
    }

    fn into_values(self) -> impl Iterator<Item = Value> {
        self.texts.into_iter().map(|text| Value::Text(text + "}"))
    }
}

impl RowSink for Arrays {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let before: usize = self.texts.iter().map(String::len).sum();
        for ((text, ty), value) in self.texts.iter_mut().zip(&self.types).zip(values) {
            if text.len() > 1 {
                text.push(',');
            }
            write_element(*ty, *value, text);
        }
        let after: usize = self.texts.iter().map(String::len).sum();
        self.room.take(after - before)
    }
}

/// An element of an array in the text form of its type.
fn write_element(ty: SqlType, value: ValueRef<'_>, out: &mut String) {
    use std::fmt::Write;
    let text = match value {
        ValueRef::Null => {
            out.push_str("NULL");
            return;
        }
        ValueRef::Integer(integer) => integer.to_string(),
        ValueRef::Real(real) if real.is_infinite() => {
            if real < 0.0 { "-Infinity" } else { "Infinity" }.to_owned()
        }
        // As many digits as give the float back.
        ValueRef::Real(real) => format!("{real:?}"),
        ValueRef::Text(text) if ty != SqlType::Bytea => text.to_owned(),
        ValueRef::Text(text) => hex(text.as_bytes()),
        ValueRef::Blob(bytes) => hex(bytes),
    };
    out.push('"');
    for char in text.chars() {
        if matches!(char, '"' | '\\') {
            out.push('\\');
        }
        let _ = out.write_char(char);
    }
    out.push('"');
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut out = "\\x".to_owned();
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out
}
