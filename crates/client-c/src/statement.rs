//! `sqlcached_sql` and what it answers.

use std::ffi::{c_char, c_int};

use sqlcached_client::{Reply, SqlValue};

use crate::client::Handle;
use crate::error::{Failure, guard, guard_or, release};
use crate::pointer::{array, bytes, exclusive, free, give, shared};
use crate::row::{Columns, Parameter};
use crate::status::Status;

/// What a statement answered.
#[derive(Debug, Default)]
pub struct Answer {
    rows: Vec<Columns>,
    /// None where the statement was one that gives rows.
    changed: Option<u64>,
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_sql(
    client: *mut Handle,
    statement: *const c_char,
    statement_length: usize,
    parameters: *const Parameter,
    count: usize,
    result: *mut Answer,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let client = unsafe { shared(client, "the client") }?;
        // SAFETY: the caller's promise.
        let result = unsafe { exclusive(result, "the result") }?;
        *result = Answer::default();
        // SAFETY: the caller's promise.
        let statement = unsafe { bytes(statement.cast(), statement_length, "the statement") }?;
        let statement =
            std::str::from_utf8(statement).map_err(|_| Failure::argument("the statement is not UTF-8"))?;
        // SAFETY: the caller's promise.
        let parameters = unsafe { array(parameters, count, "the array of parameters") }?;
        // SAFETY: the caller's promise, for each parameter's data.
        let values = parameters.iter().map(|parameter| unsafe { parameter.value() });
        let values: Vec<SqlValue> = values.collect::<Result<_, _>>()?;
        match client.client().sql(statement, &values)? {
            Reply::Rows(rows) => result.rows = rows.into_iter().map(Columns::from).collect(),
            Reply::Changed(changed) => result.changed = Some(changed),
            other => return Err(Failure::argument(format!("a statement was answered with {other:?}"))),
        }
        Ok(Status::Ok)
    })
}

/// See `sqlcached.h`.
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub extern "C" fn sqlcached_result_new() -> *mut Answer {
    guard_or(std::ptr::null_mut(), || Some(give(Answer::default())))
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_result_free(result: *mut Answer) {
    // SAFETY: the caller's promise.
    release(|| unsafe { free(result) });
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_result_count(result: *const Answer) -> usize {
    // SAFETY: the caller's promise.
    unsafe { shared(result, "the result") }.map_or(0, |result| result.rows.len())
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_result_row(result: *const Answer, row: usize) -> *const Columns {
    // SAFETY: the caller's promise.
    let result = unsafe { result.as_ref() };
    result.and_then(|result| result.rows.get(row)).map_or(std::ptr::null(), std::ptr::from_ref)
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_result_changed(result: *const Answer) -> i64 {
    // SAFETY: the caller's promise.
    let changed = unsafe { shared(result, "the result") }.ok().and_then(|result| result.changed);
    changed.map_or(-1, |changed| i64::try_from(changed).unwrap_or(i64::MAX))
}
