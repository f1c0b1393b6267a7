//! `sqlcached`: a client, and what is asked of it by memcached's keys.

use std::ffi::{c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sqlcached_client::{Client, Lookup, Options};

use crate::error::{Failure, guard, release};
use crate::pointer::{array, array_mut, bytes, exclusive, free, give, shared, store, text};
use crate::status::Status;
use crate::value::Value;

/// A client. Its tables keep what they need of it, so that it may be closed before them.
#[derive(Debug)]
pub struct Handle(Arc<Client>);

impl Handle {
    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.0
    }
}

/// `sqlcached_options`, as far as this version knows it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawOptions {
    size: usize,
    socket: *const c_char,
    arena: *const c_char,
    timeout_ms: u32,
}

/// `sqlcached_bytes`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawBytes {
    data: *const c_void,
    length: usize,
}

/// See `sqlcached.h`.
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub extern "C" fn sqlcached_version() -> *const c_char {
    // The version has no 0 in it but the one that ends it.
    const VERSION: &std::ffi::CStr =
        match std::ffi::CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_open(options: *const RawOptions, client: *mut *mut Handle) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { exclusive(client, "the place for the client") }?;
        // SAFETY: the caller's promise.
        let options = match unsafe { options.as_ref() } {
            // SAFETY: the caller's promise.
            Some(options) => unsafe { read_options(options) }?,
            None => Options::new(Options::default_socket()),
        };
        *place = give(Handle(Arc::new(Client::connect(&options)?)));
        Ok(Status::Ok)
    })
}

/// The options as the client takes them.
///
/// # Safety
///
/// The strings are NULL or end in 0.
unsafe fn read_options(raw: &RawOptions) -> Result<Options, Failure> {
    if raw.size < size_of::<RawOptions>() {
        return Err(Failure::argument("begin the options with SQLCACHED_OPTIONS_INIT: their size is wrong"));
    }
    // SAFETY: the caller's promise.
    let socket = unsafe { text(raw.socket, "the path of the socket") }?;
    // SAFETY: the caller's promise.
    let arena = unsafe { text(raw.arena, "the path of the arena") }?;
    let mut options = Options::new(socket.map_or_else(Options::default_socket, PathBuf::from));
    options.arena = arena.map(PathBuf::from);
    if raw.timeout_ms > 0 {
        options.timeout = Duration::from_millis(raw.timeout_ms.into());
    }
    Ok(options)
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_close(client: *mut Handle) {
    // SAFETY: the caller's promise.
    release(|| unsafe { free(client) });
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_get(
    client: *mut Handle,
    key: *const c_void,
    key_length: usize,
    value: *mut Value,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        read(client, key, key_length, value, |client, key, value| {
            value.bytes.clear();
            let found = client.get_key_into(key, &mut value.bytes)?;
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
pub unsafe extern "C" fn sqlcached_peek(
    client: *mut Handle,
    key: *const c_void,
    key_length: usize,
    value: *mut Value,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        read(client, key, key_length, value, |client, key, value| {
            value.bytes.clear();
            let found = client.peek_key(key, &mut value.bytes);
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
pub unsafe extern "C" fn sqlcached_claim(
    client: *mut Handle,
    key: *const c_void,
    key_length: usize,
    seconds: u32,
    value: *mut Value,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        read(client, key, key_length, value, |client, key, value| {
            Ok(value.replace(client.get_or_claim(key, seconds)?))
        })
    })
}

/// A read of one key.
///
/// # Safety
///
/// As of the exported functions.
unsafe fn read(
    client: *mut Handle,
    key: *const c_void,
    key_length: usize,
    value: *mut Value,
    body: impl FnOnce(&Client, &[u8], &mut Value) -> Result<Status, Failure>,
) -> Result<Status, Failure> {
    // SAFETY: the caller's promise.
    let client = unsafe { shared(client, "the client") }?;
    // SAFETY: the caller's promise.
    let value = unsafe { exclusive(value, "the value") }?;
    // SAFETY: the caller's promise.
    let key = unsafe { bytes(key, key_length, "the key") };
    let outcome = key.and_then(|key| body(client.client(), key, value));
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
pub unsafe extern "C" fn sqlcached_get_many(
    client: *mut Handle,
    keys: *const RawBytes,
    count: usize,
    values: *const *mut Value,
    statuses: *mut c_int,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let client = unsafe { shared(client, "the client") }?;
        // SAFETY: the caller's promise.
        let (keys, mut places) = unsafe { many(keys, count, values, statuses) }?;
        let found = client.client().multi_get_key(&keys)?;
        places.fill(found);
        Ok(Status::Ok)
    })
}

/// Where the answers to many keys go.
pub(crate) struct Places<'a> {
    values: Vec<&'a mut Value>,
    statuses: &'a mut [c_int],
}

impl Places<'_> {
    /// Stores each answer in its place.
    pub(crate) fn fill(&mut self, found: Vec<Lookup>) {
        let places = self.values.iter_mut().zip(self.statuses.iter_mut());
        for ((value, status), lookup) in places.zip(found) {
            *status = value.replace(lookup) as c_int;
        }
    }
}

/// Takes apart the arrays of a read of many keys.
///
/// # Safety
///
/// As of the exported functions; the values are different ones.
pub(crate) unsafe fn many<'a>(
    keys: *const RawBytes,
    count: usize,
    values: *const *mut Value,
    statuses: *mut c_int,
) -> Result<(Vec<&'a [u8]>, Places<'a>), Failure> {
    // SAFETY: the caller's promise.
    let keys = unsafe { array(keys, count, "the array of keys") }?;
    // SAFETY: the caller's promise.
    let values = unsafe { array(values, count, "the array of values") }?;
    // SAFETY: the caller's promise.
    let statuses = unsafe { array_mut(statuses, count, "the array of statuses") }?;
    // SAFETY: the caller's promise.
    let keys = keys.iter().map(|key| unsafe { bytes(key.data, key.length, "a key") });
    // SAFETY: the caller's promise.
    let values = values.iter().map(|value| unsafe { exclusive(*value, "a value") });
    let (keys, values) = (keys.collect::<Result<_, _>>()?, values.collect::<Result<_, _>>()?);
    Ok((keys, Places { values, statuses }))
}

/// A write's key and value.
///
/// # Safety
///
/// As of the exported functions.
unsafe fn write<'a>(
    client: *mut Handle,
    (key, key_length): (*const c_void, usize),
    (value, value_length): (*const c_void, usize),
) -> Result<(&'a Client, &'a [u8], &'a [u8]), Failure> {
    // SAFETY: the caller's promise.
    let client = unsafe { shared(client, "the client") }?;
    // SAFETY: the caller's promise.
    let key = unsafe { bytes(key, key_length, "the key") }?;
    // SAFETY: the caller's promise.
    let value = unsafe { bytes(value, value_length, "the value") }?;
    Ok((client.client(), key, value))
}

/// The status of a write that had a condition.
fn stored(done: bool) -> Status {
    if done { Status::Ok } else { Status::NotStored }
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_set(
    client: *mut Handle,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    flags: u32,
    exptime: i64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let (client, key, value) = unsafe { write(client, (key, key_length), (value, value_length)) }?;
        client.set_key(key, value, flags, exptime)?;
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
pub unsafe extern "C" fn sqlcached_add(
    client: *mut Handle,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    flags: u32,
    exptime: i64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let (client, key, value) = unsafe { write(client, (key, key_length), (value, value_length)) }?;
        Ok(stored(client.add_key(key, value, flags, exptime)?))
    })
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_cas(
    client: *mut Handle,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    flags: u32,
    exptime: i64,
    cas: u64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let (client, key, value) = unsafe { write(client, (key, key_length), (value, value_length)) }?;
        Ok(stored(client.cas_key(key, value, flags, exptime, cas)?))
    })
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_increment(
    client: *mut Handle,
    key: *const c_void,
    key_length: usize,
    delta: i64,
    number: *mut u64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let (client, key, _) = unsafe { write(client, (key, key_length), (std::ptr::null(), 0)) }?;
        let Some(now) = client.incr_key(key, delta)? else { return Ok(Status::Miss) };
        // SAFETY: the caller's promise.
        unsafe { store(number, now) };
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
pub unsafe extern "C" fn sqlcached_delete(
    client: *mut Handle,
    key: *const c_void,
    key_length: usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let (client, key, _) = unsafe { write(client, (key, key_length), (std::ptr::null(), 0)) }?;
        Ok(if client.delete_key(key)? { Status::Ok } else { Status::Miss })
    })
}
