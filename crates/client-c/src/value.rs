//! `sqlcached_value`: room that is filled again and again.

use std::ffi::{c_int, c_void};

use sqlcached_client::{Lookup, Meta, Renewal};

use crate::error::{guard_or, release};
use crate::pointer::{free, give, shared, store};
use crate::status::Status;

/// A value and what goes with it. What was read last stays until the next read; its memory stays for the next value.
#[derive(Debug, Default)]
pub struct Value {
    pub(crate) bytes: Vec<u8>,
    meta: Meta,
}

impl Value {
    /// Takes over what a read into `bytes` came to.
    pub(crate) fn read(&mut self, lookup: &Lookup<Meta>) -> Status {
        self.meta = match lookup {
            Lookup::Hit(meta) | Lookup::Stale(meta) | Lookup::Due(meta) => *meta,
            Lookup::Miss => {
                self.bytes.clear();
                Meta::default()
            }
        };
        Status::of_lookup(lookup)
    }

    /// Takes over a value that was read elsewhere.
    pub(crate) fn replace(&mut self, lookup: Lookup) -> Status {
        let status = Status::of_lookup(&lookup);
        let (bytes, meta) = lookup.value().map_or_else(Default::default, |value| (value.bytes, value.meta));
        (self.bytes, self.meta) = (bytes, meta);
        status
    }

    /// Nothing.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.meta = Meta::default();
    }
}

/// See `sqlcached.h`.
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub extern "C" fn sqlcached_value_new() -> *mut Value {
    guard_or(std::ptr::null_mut(), || Some(give(Value::default())))
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_value_free(value: *mut Value) {
    // SAFETY: the caller's promise.
    release(|| unsafe { free(value) });
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_value_data(value: *const Value, length: *mut usize) -> *const c_void {
    // SAFETY: the caller's promise.
    let bytes = unsafe { shared(value, "the value") }.map_or(&[][..], |value| value.bytes.as_slice());
    // SAFETY: the caller's promise.
    unsafe { store(length, bytes.len()) };
    // Never NULL, also for no bytes.
    bytes.as_ptr().cast()
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_value_flags(value: *const Value) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { shared(value, "the value") }.map_or(0, |value| value.meta.flags)
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_value_cas(value: *const Value) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { shared(value, "the value") }.map_or(0, |value| value.meta.cas)
}

/// See `sqlcached.h`.
///
/// # Safety
///
/// What every function of this library asks of its caller: [`crate`].
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlcached_value_renewal(value: *const Value) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { shared(value, "the value") }.map_or(0, |value| match value.meta.renewal {
        Renewal::Nobody => 0,
        Renewal::Another => 1,
        Renewal::Yours => 2,
    })
}
