//! `sqlcached_table`: a table by name, and reads by its own keys.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::time::Duration;

use sqlcached_client::{Client, Table};

use crate::client::{Handle, RawBytes, many};
use crate::error::{Failure, guard, release};
use crate::pointer::{bytes, exclusive, free, give, shared, text};
use crate::row::Columns;
use crate::status::Status;
use crate::value::Value;

/// A table, and the client that reads it.
#[derive(Debug)]
pub struct Opened {
    client: Arc<Client>,
    table: Table,
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_table_open(
    client: *mut Handle,
    name: *const c_char,
    table: *mut *mut Opened,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let client = unsafe { shared(client, "the client") }?.client();
        // SAFETY: the caller's promise.
        let place = unsafe { exclusive(table, "the place for the table") }?;
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "the table's name") }?;
        let name = name.ok_or_else(|| Failure::argument("the table's name is NULL"))?;
        *place = give(Opened { client: Arc::clone(client), table: client.table(name)? });
        Ok(Status::Ok)
    })
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_table_free(table: *mut Opened) {
    // SAFETY: the caller's promise.
    release(|| unsafe { free(table) });
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_table_get(
    table: *mut Opened,
    key: *const c_void,
    key_length: usize,
    value: *mut Value,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        read(table, key, key_length, value, |opened, key, value| {
            let found = opened.client.get_into(&opened.table, key, &mut value.bytes)?;
            Ok(value.read(&found))
        })
    })
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_table_peek(
    table: *mut Opened,
    key: *const c_void,
    key_length: usize,
    value: *mut Value,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        read(table, key, key_length, value, |opened, key, value| {
            let found = opened.client.peek(&opened.table, key, &mut value.bytes)?;
            Ok(found.map_or(Status::Elsewhere, |found| value.read(&found)))
        })
    })
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_table_wait(
    table: *mut Opened,
    key: *const c_void,
    key_length: usize,
    timeout_ms: u32,
    value: *mut Value,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        read(table, key, key_length, value, |opened, key, value| {
            let timeout = Duration::from_millis(timeout_ms.into());
            match opened.client.wait(&opened.table, key, timeout)? {
                found if found.is_made_by_another() => Ok(Status::Timeout),
                found => Ok(value.replace(found)),
            }
        })
    })
}

/// A read of one key into a value.
///
/// # Safety
///
/// As of the exported functions.
unsafe fn read(
    table: *mut Opened,
    key: *const c_void,
    key_length: usize,
    value: *mut Value,
    body: impl FnOnce(&Opened, &[u8], &mut Value) -> Result<Status, Failure>,
) -> Result<Status, Failure> {
    // SAFETY: the caller's promise.
    let table = unsafe { shared(table, "the table") }?;
    // SAFETY: the caller's promise.
    let value = unsafe { exclusive(value, "the value") }?;
    value.clear();
    // SAFETY: the caller's promise.
    let key = unsafe { bytes(key, key_length, "the key") };
    let outcome = key.and_then(|key| body(table, key, value));
    if !matches!(outcome, Ok(Status::Ok | Status::Stale | Status::Due)) {
        value.clear();
    }
    outcome
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_table_get_many(
    table: *mut Opened,
    keys: *const RawBytes,
    count: usize,
    values: *const *mut Value,
    statuses: *mut c_int,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let table = unsafe { shared(table, "the table") }?;
        // SAFETY: the caller's promise.
        let (keys, mut places) = unsafe { many(keys, count, values, statuses) }?;
        let found = table.client.multi_get(table.table.name(), &keys)?;
        places.fill(found);
        Ok(Status::Ok)
    })
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_table_row(
    table: *mut Opened,
    key: *const c_void,
    key_length: usize,
    row: *mut Columns,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let table = unsafe { shared(table, "the table") }?;
        // SAFETY: the caller's promise.
        let row = unsafe { exclusive(row, "the row") }?;
        *row = Columns::default();
        // SAFETY: the caller's promise.
        let key = unsafe { bytes(key, key_length, "the key") }?;
        let found = table.client.row(table.table.name(), key)?;
        let status = Status::of_lookup(&found);
        *row = found.value().map(Columns::from).unwrap_or_default();
        Ok(status)
    })
}
