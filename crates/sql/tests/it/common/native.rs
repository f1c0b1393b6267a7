//! Plain SQLite in the same process: the oracle.
#![allow(dead_code, clippy::unwrap_used, reason = "a test's own tools, of which each binary uses a part")]

use std::ffi::{CStr, CString};
use std::ptr;
use std::slice;

use libsqlite3_sys as ffi;
use sqltext::token::tokens;
use store::value::Value;

/// A private in-memory database with native tables.
pub(crate) struct Native(*mut ffi::sqlite3);

impl Native {
    pub(crate) fn new() -> Self {
        let mut raw = ptr::null_mut();
        // SAFETY: the name is a C string and `raw` is a place for the result.
        let code = unsafe { ffi::sqlite3_open(c":memory:".as_ptr(), &raw mut raw) };
        assert_eq!(code, ffi::SQLITE_OK);
        Self(raw)
    }

    fn message(&self) -> String {
        // SAFETY: the connection is open.
        let text = unsafe { ffi::sqlite3_errmsg(self.0) };
        // SAFETY: SQLite returns a C string.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    /// Rows written by the last statement that wrote.
    pub(crate) fn changes(&self) -> u64 {
        // SAFETY: the connection is open.
        u64::try_from(unsafe { ffi::sqlite3_changes64(self.0) }).unwrap()
    }

    pub(crate) fn query(&self, sql: &str) -> Result<Vec<Vec<Value>>, String> {
        let text = CString::new(with_nulls_last(sql)).unwrap();
        let mut statement = ptr::null_mut();
        // SAFETY: the text is a C string; the result has a place.
        let code = unsafe {
            ffi::sqlite3_prepare_v2(self.0, text.as_ptr(), -1, &raw mut statement, ptr::null_mut())
        };
        if code != ffi::SQLITE_OK {
            return Err(self.message());
        }
        let mut rows = Vec::new();
        let result = loop {
            // SAFETY: the statement is live.
            match unsafe { ffi::sqlite3_step(statement) } {
                ffi::SQLITE_ROW => rows.push(row(statement)),
                ffi::SQLITE_DONE => break Ok(()),
                _ => break Err(self.message()),
            }
        };
        // SAFETY: finalized once.
        unsafe { ffi::sqlite3_finalize(statement) };
        result.map(|()| rows)
    }
}

/// What ends a list of terms behind `ORDER BY`.
const BEHIND_ORDER: &[&str] =
    &["LIMIT", "OFFSET", "FETCH", "ROWS", "RANGE", "GROUPS", "RETURNING", "UNION", "EXCEPT", "INTERSECT"];

/// The same text where each order that does not say where NULL comes says what PostgreSQL takes for granted.
fn with_nulls_last(sql: &str) -> String {
    let all = tokens(sql);
    let (mut out, mut copied) = (String::new(), 0);
    // Parentheses that are open, and the list of terms that stands in each.
    let mut lists: Vec<Option<(bool, bool)>> = vec![None];
    let mut say = |list: Option<(bool, bool)>, at: usize| {
        if let Some((descending, false)) = list {
            out.push_str(&sql[copied..at]);
            copied = at;
            out.push_str(if descending { " NULLS FIRST " } else { " NULLS LAST " });
        }
    };
    for (number, token) in all.iter().enumerate() {
        let Some(list) = lists.last_mut() else { break };
        let ends = token.is_sign(")") || token.is_sign(";") || token.is_any(BEHIND_ORDER);
        if token.is("BY") && number > 0 && all[number - 1].is("ORDER") {
            *list = Some((false, false));
        } else if token.is_sign(",") || ends {
            say(*list, token.start);
            *list = list.filter(|_| !ends).map(|_| (false, false));
        } else if let Some((descending, said)) = list {
            *descending |= token.is("DESC");
            *said |= token.is("NULLS");
        }
        if token.is_sign("(") {
            lists.push(None);
        } else if token.is_sign(")") {
            lists.pop();
        }
    }
    say(lists.pop().flatten(), sql.trim_end().len());
    out.push_str(&sql[copied..]);
    out
}

impl Drop for Native {
    fn drop(&mut self) {
        // SAFETY: closed once, all statements are finalized.
        unsafe { ffi::sqlite3_close(self.0) };
    }
}

fn row(statement: *mut ffi::sqlite3_stmt) -> Vec<Value> {
    // SAFETY: the statement stands on a row (so too below).
    let count = unsafe { ffi::sqlite3_column_count(statement) };
    (0..count).map(|column| value(statement, column)).collect()
}

fn value(statement: *mut ffi::sqlite3_stmt, column: i32) -> Value {
    // SAFETY: the statement stands on a row (so too below).
    match unsafe { ffi::sqlite3_column_type(statement, column) } {
        // SAFETY: see above.
        ffi::SQLITE_INTEGER => Value::Integer(unsafe { ffi::sqlite3_column_int64(statement, column) }),
        // SAFETY: see above.
        ffi::SQLITE_FLOAT => Value::Real(unsafe { ffi::sqlite3_column_double(statement, column) }),
        ffi::SQLITE_TEXT => {
            // A cast can make text of any bytes, which is shown as them.
            String::from_utf8(bytes(statement, column))
                .map_or_else(|error| Value::Blob(error.into_bytes()), Value::Text)
        }
        ffi::SQLITE_BLOB => Value::Blob(bytes(statement, column)),
        _ => Value::Null,
    }
}

fn bytes(statement: *mut ffi::sqlite3_stmt, column: i32) -> Vec<u8> {
    // SAFETY: the statement stands on a row (so too below).
    let at = unsafe { ffi::sqlite3_column_blob(statement, column) };
    // SAFETY: see above.
    let length = usize::try_from(unsafe { ffi::sqlite3_column_bytes(statement, column) }).unwrap();
    if at.is_null() {
        return Vec::new();
    }
    // SAFETY: SQLite keeps these bytes until the next step.
    unsafe { slice::from_raw_parts(at.cast::<u8>(), length) }.to_vec()
}
