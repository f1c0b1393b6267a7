//! Compiled statements, run as a whole.

use std::ffi::{CStr, c_int, c_uint};
use std::fmt;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::slice;

use libsqlite3_sys as ffi;
use store::value::{ValueRef, text_or_blob};

use super::connection::{Connection, Failure, UTF8};
use super::heap;

/// A compiled statement; keeps its connection open.
pub struct Statement {
    raw: NonNull<ffi::sqlite3_stmt>,
    connection: Rc<Connection>,
    columns: c_int,
    parameters: usize,
}

/// The row that a running statement stands on.
#[derive(Debug)]
pub struct Row<'a> {
    statement: &'a Statement,
}

impl fmt::Debug for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl Statement {
    /// Compiles the first statement of a text; `None` when there is none. Also says where it ended.
    pub fn prepare(connection: &Rc<Connection>, sql: &str) -> Result<(Option<Self>, usize), Failure> {
        let length = c_int::try_from(sql.len()).map_err(|_| Failure::misuse("the statement is too long"))?;
        let mut raw = ptr::null_mut();
        let mut tail = ptr::null();
        let flags: c_uint = ffi::SQLITE_PREPARE_PERSISTENT;
        // SAFETY: the text is `length` bytes long; both results are valid places.
        let code = heap::compiling(|| unsafe {
            ffi::sqlite3_prepare_v3(
                connection.as_ptr(),
                sql.as_ptr().cast(),
                length,
                flags,
                &raw mut raw,
                &raw mut tail,
            )
        });
        connection.check(code)?;
        let end = if tail.is_null() { sql.len() } else { tail.addr() - sql.as_ptr().addr() };
        let Some(raw) = NonNull::new(raw) else { return Ok((None, end)) };
        // SAFETY: the statement was just made.
        let columns = unsafe { ffi::sqlite3_column_count(raw.as_ptr()) };
        // SAFETY: the statement was just made.
        let parameters = unsafe { ffi::sqlite3_bind_parameter_count(raw.as_ptr()) };
        let parameters = usize::try_from(parameters).unwrap_or(0);
        Ok((Some(Self { raw, connection: Rc::clone(connection), columns, parameters }), end))
    }

    /// Whether running it changes nothing, by SQLite's own judgement.
    pub fn is_read_only(&self) -> bool {
        // SAFETY: the statement is live.
        unsafe { ffi::sqlite3_stmt_readonly(self.raw.as_ptr()) != 0 }
    }

    /// How many columns a row has; 0 when it returns none.
    pub fn columns(&self) -> usize {
        usize::try_from(self.columns).unwrap_or(0)
    }

    /// The name of a result column.
    pub fn column_name(&self, column: usize) -> String {
        let Ok(column) = c_int::try_from(column) else { return String::new() };
        // SAFETY: the statement is live; SQLite answers null for a column that is not there.
        let name = unsafe { ffi::sqlite3_column_name(self.raw.as_ptr(), column) };
        if name.is_null() {
            return String::new();
        }
        // SAFETY: a C string that stays until the statement is compiled again.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    }

    /// The table and the column of it that a result column shows unchanged; `None` for what is computed.
    pub fn origin(&self, column: usize) -> Option<(String, String)> {
        let column = c_int::try_from(column).ok()?;
        let raw = self.raw.as_ptr();
        // SAFETY: the statement is live; SQLite answers null for what is computed (so too below).
        let table = unsafe { ffi::sqlite3_column_table_name(raw, column) };
        // SAFETY: see above.
        let name = unsafe { ffi::sqlite3_column_origin_name(raw, column) };
        if table.is_null() || name.is_null() {
            return None;
        }
        // SAFETY: a C string that stays until the statement is compiled again (so too below).
        let table = unsafe { CStr::from_ptr(table) }.to_string_lossy().into_owned();
        // SAFETY: see above.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
        Some((table, name))
    }

    /// The highest number of a parameter.
    pub fn parameter_count(&self) -> usize {
        self.parameters
    }

    /// Runs the statement to its end, or until `row` refuses one.
    ///
    /// `values` are bound to the parameters in order, without copying; they are unbound before this returns, so
    /// they need not live longer.
    pub fn run<'v, E: From<Failure>>(
        &mut self,
        values: impl Iterator<Item = ValueRef<'v>>,
        row: &mut dyn FnMut(&Row<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let running = Running { statement: self };
        for (value, number) in values.zip(1..) {
            running.statement.bind(number, value)?;
        }
        while running.statement.step()? {
            row(&Row { statement: running.statement })?;
        }
        Ok(())
    }

    /// Binds one value by address; only `run` calls this, and it unbinds before the value can go.
    fn bind(&self, number: c_int, value: ValueRef<'_>) -> Result<(), Failure> {
        let raw = self.raw.as_ptr();
        let code = match value.for_sqlite() {
            // SAFETY: the statement is live and not running (so too below).
            ValueRef::Null => unsafe { ffi::sqlite3_bind_null(raw, number) },
            // SAFETY: see above.
            ValueRef::Integer(integer) => unsafe { ffi::sqlite3_bind_int64(raw, number, integer) },
            // SAFETY: see above.
            ValueRef::Real(real) => unsafe { ffi::sqlite3_bind_double(raw, number, real) },
            ValueRef::Text(text) => {
                let (at, length) = (text.as_ptr().cast(), text.len() as u64);
                // SAFETY: the text outlives the run (see `run`), so SQLite need not copy it.
                unsafe { ffi::sqlite3_bind_text64(raw, number, at, length, ffi::SQLITE_STATIC(), UTF8) }
            }
            ValueRef::Blob(bytes) => {
                let (at, length) = (bytes.as_ptr().cast(), bytes.len() as u64);
                // SAFETY: as for text. An empty slice's address is not null, so it binds an empty blob.
                unsafe { ffi::sqlite3_bind_blob64(raw, number, at, length, ffi::SQLITE_STATIC()) }
            }
        };
        self.connection.check(code)
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::sqlite3_stmt {
        self.raw.as_ptr()
    }

    pub(crate) fn check(&self, code: c_int) -> Result<(), Failure> {
        self.connection.check(code)
    }

    pub(crate) fn step(&self) -> Result<bool, Failure> {
        // SAFETY: the statement is live.
        match unsafe { ffi::sqlite3_step(self.raw.as_ptr()) } {
            ffi::SQLITE_ROW => Ok(true),
            ffi::SQLITE_DONE => Ok(false),
            code => Err(self.connection.failure(code)),
        }
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        // SAFETY: made once, finalized once.
        unsafe { ffi::sqlite3_finalize(self.raw.as_ptr()) };
    }
}

/// A statement that is being run: however the run ends, it is rewound and its values are unbound.
struct Running<'a> {
    statement: &'a Statement,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let raw = self.statement.raw.as_ptr();
        // SAFETY: the statement is live; the error of the last step was already taken.
        unsafe { ffi::sqlite3_reset(raw) };
        // SAFETY: the statement is live.
        unsafe { ffi::sqlite3_clear_bindings(raw) };
    }
}

impl<'a> Row<'a> {
    /// The row that a statement stands on.
    pub(crate) fn of(statement: &'a Statement) -> Self {
        Self { statement }
    }

    /// How many columns the row has.
    pub fn columns(&self) -> usize {
        self.statement.columns()
    }

    /// A column's value; text that is not UTF-8 (a cast can make such) is shown as a blob.
    pub fn value(&self, column: usize) -> ValueRef<'_> {
        let raw = self.statement.raw.as_ptr();
        let Ok(column) = c_int::try_from(column) else { return ValueRef::Null };
        // SAFETY: the statement stands on a row; a column beyond the last is answered with NULL (so too below).
        match unsafe { ffi::sqlite3_column_type(raw, column) } {
            // SAFETY: see above.
            ffi::SQLITE_INTEGER => ValueRef::Integer(unsafe { ffi::sqlite3_column_int64(raw, column) }),
            // SAFETY: see above.
            ffi::SQLITE_FLOAT => ValueRef::Real(unsafe { ffi::sqlite3_column_double(raw, column) }),
            // SAFETY: see above.
            ffi::SQLITE_TEXT => {
                // SAFETY: see above.
                let at = unsafe { ffi::sqlite3_column_text(raw, column) };
                text_or_blob(self.bytes(column, at))
            }
            ffi::SQLITE_BLOB => {
                // SAFETY: see above.
                let at = unsafe { ffi::sqlite3_column_blob(raw, column) };
                ValueRef::Blob(self.bytes(column, at.cast()))
            }
            _ => ValueRef::Null,
        }
    }

    /// The bytes that a column's text or blob starts at.
    fn bytes(&self, column: c_int, at: *const u8) -> &[u8] {
        // SAFETY: the statement stands on a row; asked after the text, so that no conversion follows.
        let length = unsafe { ffi::sqlite3_column_bytes(self.statement.raw.as_ptr(), column) };
        let length = usize::try_from(length).unwrap_or(0);
        if at.is_null() || length == 0 {
            return &[];
        }
        // SAFETY: SQLite keeps the bytes until the next step, and the row borrows the statement until then.
        unsafe { slice::from_raw_parts(at, length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unrestricted;

    /// A statement with `LIMIT $1` was compiled again for each value.
    #[test]
    fn a_plan_holds_for_all_values() {
        let connection = Connection::open(Rc::new(Unrestricted)).unwrap();
        let sql = "SELECT column1 FROM (VALUES (1), (2)) WHERE column1 LIKE ?1 LIMIT ?2 OFFSET ?3";
        let (statement, _) = Statement::prepare(&connection, sql).unwrap();
        let mut statement = statement.unwrap();
        for number in 0..5 {
            let values = [ValueRef::Text("x%"), ValueRef::Integer(number), ValueRef::Integer(number)];
            statement.run::<Failure>(values.into_iter(), &mut |_| Ok(())).unwrap();
        }
        // SAFETY: the statement is live.
        let again =
            unsafe { ffi::sqlite3_stmt_status(statement.as_ptr(), ffi::SQLITE_STMTSTATUS_REPREPARE, 0) };
        assert_eq!(again, 0);
    }
}
