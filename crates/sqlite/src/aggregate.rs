//! Aggregates of ours, of groups and of windows, as safe code, and the C shims that carry them.

use std::ffi::{c_int, c_void};
use std::mem::size_of;
use std::{ptr, slice};

use libsqlite3_sys as ffi;
use store::value::Value;

use super::connection::{Connection, Failure, c_string};
use super::guard::{FaultPoint, guarded};
use super::value::{Arguments, Output};

/// A group under way.
pub trait Aggregate: 'static {
    /// Takes a row in.
    fn step(&mut self, arguments: &Arguments<'_>) -> Result<(), String>;
    /// Takes a row out that a window has left.
    fn take_back(&mut self, arguments: &Arguments<'_>) -> Result<(), String>;
    /// What the rows come to.
    fn value(&self) -> Result<Value, String>;
}

/// What makes a new group; behind the client pointer.
type Maker<A> = Box<dyn Fn() -> A>;

impl Connection {
    /// Makes an aggregate known under this name and number of arguments.
    pub fn create_aggregate<A: Aggregate>(
        &self,
        name: &str,
        arguments: i32,
        maker: impl Fn() -> A + 'static,
    ) -> Result<(), Failure> {
        let name = c_string(name)?;
        let maker: Maker<A> = Box::new(maker);
        let client = Box::into_raw(Box::new(maker)).cast::<c_void>();
        let flags = ffi::SQLITE_UTF8 | ffi::SQLITE_INNOCUOUS | ffi::SQLITE_DETERMINISTIC;
        // SAFETY: the name is a C string; SQLite owns the boxed maker from here on and gives it to `release`, also when
        // it refuses the aggregate; the other shims take it for what it is.
        let code = unsafe {
            ffi::sqlite3_create_window_function(
                self.as_ptr(),
                name.as_ptr(),
                arguments,
                flags,
                client,
                Some(step::<A>),
                Some(finish::<A>),
                Some(value::<A>),
                Some(take_back::<A>),
                Some(release::<A>),
            )
        };
        self.check(code)
    }
}

// SAFETY: SQLite alone calls it, with the client pointer that it was given and once for each registration.
unsafe extern "C" fn release<A: Aggregate>(client: *mut c_void) {
    // SAFETY: the box that `create_aggregate` gave away, given back once.
    drop(unsafe { Box::from_raw(client.cast::<Maker<A>>()) });
}

/// The place where SQLite keeps the pointer to a group; null where there is none and none is to be made.
///
/// # Safety
/// The context is that of a call of an aggregate of ours.
unsafe fn place_of<A>(context: *mut ffi::sqlite3_context, make: bool) -> *mut *mut A {
    let bytes = if make { c_int::try_from(size_of::<*mut A>()).unwrap_or(0) } else { 0 };
    // SAFETY: the caller's promise. SQLite returns zeroed memory of that size, aligned for any type, the same one for
    // all calls about a group.
    unsafe { ffi::sqlite3_aggregate_context(context, bytes) }.cast()
}

/// The group that is under way, made where it is the first call.
///
/// # Safety
/// As for `place_of`; `'g` is no longer than the call.
unsafe fn group_of<'g, A: Aggregate>(context: *mut ffi::sqlite3_context) -> Option<&'g mut A> {
    // SAFETY: the caller's promise.
    let place = unsafe { place_of::<A>(context, true) };
    if place.is_null() {
        return None;
    }
    // SAFETY: the place holds null at first, and then what is put there below.
    if unsafe { *place }.is_null() {
        // SAFETY: the context is live.
        let client = unsafe { ffi::sqlite3_user_data(context) };
        // SAFETY: the maker that `create_aggregate` boxed, which lives as long as the aggregate is known.
        let maker = unsafe { &*client.cast::<Maker<A>>() };
        let group = Box::into_raw(Box::new(maker()));
        // SAFETY: the place is ours, see above.
        unsafe { *place = group };
    }
    // SAFETY: the place is ours, see above.
    let group = unsafe { *place };
    // SAFETY: a box that `finish` alone takes back, after which SQLite forgets the place; one thread uses a connection,
    // and the calls about a group do not nest.
    Some(unsafe { &mut *group })
}

type Taking<A> = fn(&mut A, &Arguments<'_>) -> Result<(), String>;

/// # Safety
/// SQLite's arguments of a call.
unsafe fn take<A: Aggregate>(
    context: *mut ffi::sqlite3_context,
    argc: c_int,
    argv: *mut *mut ffi::sqlite3_value,
    taking: Taking<A>,
) {
    let panicked = || Err("the aggregate failed".to_owned());
    let result = guarded(FaultPoint::Function, panicked(), || {
        let count = usize::try_from(argc).unwrap_or(0);
        // SAFETY: SQLite passes `argc` values.
        let values = if count == 0 { &[][..] } else { unsafe { slice::from_raw_parts(argv, count) } };
        // SAFETY: the context of this call.
        match unsafe { group_of::<A>(context) } {
            Some(group) => taking(group, &Arguments::new(values)),
            None => Err("out of memory".to_owned()),
        }
    });
    if let Err(words) = result {
        // SAFETY: the context is live until the call returns.
        unsafe { fail(context, &words) }
    }
}

/// # Safety
/// The context is live.
unsafe fn fail(context: *mut ffi::sqlite3_context, words: &str) {
    let length = c_int::try_from(words.len()).unwrap_or(c_int::MAX);
    let at = if words.is_empty() { ptr::null() } else { words.as_ptr().cast() };
    // SAFETY: the text is `length` bytes long; SQLite copies it at once.
    unsafe { ffi::sqlite3_result_error(context, at, length) }
}

unsafe extern "C" fn step<A: Aggregate>(
    context: *mut ffi::sqlite3_context,
    argc: c_int,
    argv: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: SQLite's own arguments.
    unsafe { take::<A>(context, argc, argv, A::step) }
}

unsafe extern "C" fn take_back<A: Aggregate>(
    context: *mut ffi::sqlite3_context,
    argc: c_int,
    argv: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: SQLite's own arguments.
    unsafe { take::<A>(context, argc, argv, A::take_back) }
}

/// # Safety
/// The context is live, and the group lives until this returns.
unsafe fn answer<A: Aggregate>(context: *mut ffi::sqlite3_context, group: *const A) {
    let panicked = || Err("the aggregate failed".to_owned());
    let result = guarded(FaultPoint::Function, panicked(), || {
        if group.is_null() {
            // SAFETY: the context is live.
            let client = unsafe { ffi::sqlite3_user_data(context) };
            // SAFETY: the maker that `create_aggregate` boxed.
            let maker = unsafe { &*client.cast::<Maker<A>>() };
            return maker().value();
        }
        // SAFETY: the caller's promise.
        unsafe { &*group }.value()
    });
    match result {
        // SAFETY: the context is live until this returns.
        Ok(value) => unsafe { Output::new(context) }.set(value.as_ref()),
        // SAFETY: as above.
        Err(words) => unsafe { fail(context, &words) },
    }
}

unsafe extern "C" fn value<A: Aggregate>(context: *mut ffi::sqlite3_context) {
    // SAFETY: the context of a call about a group.
    let place = unsafe { place_of::<A>(context, false) };
    // SAFETY: a place that is there holds null or a group.
    let group = if place.is_null() { ptr::null_mut() } else { unsafe { *place } };
    // SAFETY: the group is given back by `finish` alone.
    unsafe { answer::<A>(context, group) }
}

unsafe extern "C" fn finish<A: Aggregate>(context: *mut ffi::sqlite3_context) {
    // SAFETY: the context of a call about a group.
    let place = unsafe { place_of::<A>(context, false) };
    let mut group = ptr::null_mut();
    if !place.is_null() {
        // SAFETY: a place that is there holds null or a group.
        group = unsafe { ptr::replace(place, ptr::null_mut()) };
    }
    // SAFETY: the group lives until the box below is dropped.
    unsafe { answer::<A>(context, group) };
    if !group.is_null() {
        // SAFETY: the box of `group_of`, taken out of its place, so given back once.
        drop(unsafe { Box::from_raw(group) });
    }
}
