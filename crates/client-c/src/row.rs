//! `sqlcached_row`: the columns of a row, as a read or a statement gave them.

use std::ffi::{CString, c_char, c_int, c_void};

use sqlcached_client::{Row, SqlValue};

use crate::error::{Failure, guard_or, release};
use crate::pointer::{bytes, free, give, shared, store};

const NULL: c_int = 0;
const INTEGER: c_int = 1;
const REAL: c_int = 2;
const TEXT: c_int = 3;
const BLOB: c_int = 4;

/// The columns of a row.
#[derive(Debug, Default)]
pub struct Columns(Vec<(CString, SqlValue)>);

impl From<Row> for Columns {
    fn from(row: Row) -> Self {
        let columns = row.into_columns().into_iter();
        // No name has a 0 in it; one that had would be told without it.
        Self(
            columns
                .map(|(name, value)| (CString::new(name.replace('\0', "")).unwrap_or_default(), value))
                .collect(),
        )
    }
}

/// `sqlcached_parameter`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Parameter {
    kind: c_int,
    integer: i64,
    real: f64,
    data: *const c_void,
    length: usize,
}

impl Parameter {
    /// The value that C means.
    ///
    /// # Safety
    ///
    /// Behind `data` of a text or a blob lie `length` bytes, or it is NULL.
    pub(crate) unsafe fn value(&self) -> Result<SqlValue, Failure> {
        // SAFETY: the caller's promise.
        let data = || unsafe { bytes(self.data, self.length, "a parameter's data") };
        Ok(match self.kind {
            NULL => SqlValue::Null,
            INTEGER => SqlValue::Integer(self.integer),
            REAL => SqlValue::Real(self.real),
            BLOB => SqlValue::Blob(data()?.to_vec()),
            TEXT => match std::str::from_utf8(data()?) {
                Ok(text) => SqlValue::Text(text.into()),
                Err(_) => {
                    return Err(Failure::argument("a parameter's text is not UTF-8; pass it as a blob"));
                }
            },
            kind => return Err(Failure::argument(format!("{kind} is not a type of a parameter"))),
        })
    }
}

/// See `sqlcached.h`.
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub extern "C" fn sqlcached_row_new() -> *mut Columns {
    guard_or(std::ptr::null_mut(), || Some(give(Columns::default())))
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_row_free(row: *mut Columns) {
    // SAFETY: the caller's promise.
    release(|| unsafe { free(row) });
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_row_count(row: *const Columns) -> usize {
    // SAFETY: the caller's promise.
    unsafe { shared(row, "the row") }.map_or(0, |row| row.0.len())
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_row_name(row: *const Columns, column: usize) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { at(row, column) }.map_or(std::ptr::null(), |(name, _)| name.as_ptr())
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_row_type(row: *const Columns, column: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { at(row, column) }.map_or(NULL, |(_, value)| match value {
        SqlValue::Null => NULL,
        SqlValue::Integer(_) => INTEGER,
        SqlValue::Real(_) => REAL,
        SqlValue::Text(_) => TEXT,
        SqlValue::Blob(_) => BLOB,
    })
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_row_integer(row: *const Columns, column: usize) -> i64 {
    // SAFETY: the caller's promise.
    match unsafe { at(row, column) } {
        Some((_, SqlValue::Integer(integer))) => *integer,
        _ => 0,
    }
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_row_real(row: *const Columns, column: usize) -> f64 {
    // SAFETY: the caller's promise.
    match unsafe { at(row, column) } {
        Some((_, SqlValue::Real(real))) => *real,
        _ => 0.0,
    }
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_row_data(
    row: *const Columns,
    column: usize,
    length: *mut usize,
) -> *const c_void {
    // SAFETY: the caller's promise.
    let data: &[u8] = match unsafe { at(row, column) } {
        Some((_, SqlValue::Text(text))) => text.as_bytes(),
        Some((_, SqlValue::Blob(blob))) => blob,
        _ => &[],
    };
    // SAFETY: the caller's promise.
    unsafe { store(length, data.len()) };
    data.as_ptr().cast()
}

/// A column by its place.
///
/// # Safety
///
/// The pointer is NULL or to a row that nobody changes for as long as the reference is used.
unsafe fn at<'a>(row: *const Columns, column: usize) -> Option<&'a (CString, SqlValue)> {
    // SAFETY: the caller's promise.
    let row = unsafe { row.as_ref() }?;
    row.0.get(column)
}
