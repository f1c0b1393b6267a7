//! Compiled statements whose rows are taken one by one, by cursors of virtual tables.

use libsqlite3_sys as ffi;
use store::value::ValueRef;

use super::connection::{Failure, UTF8};
use super::statement::{Row, Statement};

/// A statement that runs while another one of its connection does.
#[derive(Debug)]
pub struct Pulled {
    statement: Statement,
}

impl Pulled {
    /// Nothing runs yet.
    pub fn new(statement: Statement) -> Self {
        Self { statement }
    }

    /// How many columns a row has.
    pub fn columns(&self) -> usize {
        self.statement.columns()
    }

    /// Starts again with these values, which SQLite copies, before the first row.
    pub fn begin<'v>(&mut self, values: impl Iterator<Item = ValueRef<'v>>) -> Result<(), Failure> {
        let raw = self.statement.as_ptr();
        // SAFETY: the statement is live; the error of its last step was already taken.
        unsafe { ffi::sqlite3_reset(raw) };
        for (value, number) in values.zip(1..) {
            let code = match value.for_sqlite() {
                // SAFETY: the statement is live and not running (so too below).
                ValueRef::Null => unsafe { ffi::sqlite3_bind_null(raw, number) },
                // SAFETY: see above.
                ValueRef::Integer(integer) => unsafe { ffi::sqlite3_bind_int64(raw, number, integer) },
                // SAFETY: see above.
                ValueRef::Real(real) => unsafe { ffi::sqlite3_bind_double(raw, number, real) },
                ValueRef::Text(text) => {
                    let (at, length) = (text.as_ptr().cast(), text.len() as u64);
                    // SAFETY: the text is `length` bytes long; SQLite copies it at once.
                    unsafe {
                        ffi::sqlite3_bind_text64(raw, number, at, length, ffi::SQLITE_TRANSIENT(), UTF8)
                    }
                }
                ValueRef::Blob(bytes) => {
                    let (at, length) = (bytes.as_ptr().cast(), bytes.len() as u64);
                    // SAFETY: as for text.
                    unsafe { ffi::sqlite3_bind_blob64(raw, number, at, length, ffi::SQLITE_TRANSIENT()) }
                }
            };
            self.statement.check(code)?;
        }
        Ok(())
    }

    /// Goes to the next row; false behind the last one.
    pub fn advance(&mut self) -> Result<bool, Failure> {
        self.statement.step()
    }

    /// The row that it stands on.
    pub fn row(&self) -> Row<'_> {
        Row::of(&self.statement)
    }
}
