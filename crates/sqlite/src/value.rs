//! Values across the border: a call's arguments, and where its result goes.

use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::slice;

use libsqlite3_sys as ffi;
use store::value::{Value, ValueRef, text_or_blob};

use super::connection::UTF8;

/// The values that xFilter is given, in the order in which conditions were taken.
pub struct Arguments<'a> {
    values: &'a [*mut ffi::sqlite3_value],
}

impl fmt::Debug for Arguments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arguments").field("len", &self.values.len()).finish()
    }
}

impl<'a> Arguments<'a> {
    /// Values that SQLite keeps for `'a`.
    pub(crate) fn new(values: &'a [*mut ffi::sqlite3_value]) -> Self {
        Self { values }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// The value at this place; NULL beyond the last.
    pub fn value(&self, at: usize) -> Value {
        self.value_ref(at).to_owned()
    }

    /// The same, lent.
    pub fn value_ref(&self, at: usize) -> ValueRef<'_> {
        let Some(&value) = self.values.get(at) else { return ValueRef::Null };
        // SAFETY: SQLite keeps the arguments for the length of xFilter, which this struct does not outlive.
        unsafe { value_of(value) }
    }

    /// All values of an `IN` that was taken at once.
    pub fn list(&self, at: usize) -> Result<Vec<Value>, String> {
        let mut list = Vec::new();
        self.each_of_list(at, &mut |value| list.push(value.to_owned()))?;
        Ok(list)
    }

    /// Lends each value of an `IN` that was taken at once.
    pub fn each_of_list(&self, at: usize, take: &mut dyn FnMut(ValueRef<'_>)) -> Result<(), String> {
        let Some(&handle) = self.values.get(at) else { return Ok(()) };
        let mut value = ptr::null_mut();
        // SAFETY: the argument was taken with `take_in_at_once`, so it is a handle to a list.
        let mut code = unsafe { ffi::sqlite3_vtab_in_first(handle, &raw mut value) };
        while code == ffi::SQLITE_OK && !value.is_null() {
            // SAFETY: valid until the next call on the list, which the borrow does not outlive.
            take(unsafe { value_of(value) });
            // SAFETY: as for the first.
            code = unsafe { ffi::sqlite3_vtab_in_next(handle, &raw mut value) };
        }
        if code == ffi::SQLITE_OK || code == ffi::SQLITE_DONE {
            Ok(())
        } else {
            Err("the list after IN could not be read".to_owned())
        }
    }
}

/// Where a column's value goes. SQLite copies it, because the row's buffer is reused for the next row while
/// registers may still show this one.
pub struct Output<'a> {
    context: *mut ffi::sqlite3_context,
    lives: PhantomData<&'a ()>,
}

impl fmt::Debug for Output<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Output")
    }
}

impl Output<'_> {
    /// The place of the result of one call.
    ///
    /// # Safety
    /// The context is live for `'_`.
    pub(crate) unsafe fn new(context: *mut ffi::sqlite3_context) -> Self {
        Self { context, lives: PhantomData }
    }

    /// Hands out the value.
    pub fn set(self, value: ValueRef<'_>) {
        let context = self.context;
        match value.for_sqlite() {
            // SAFETY: the context is live for the length of the callback (so too below).
            ValueRef::Null => unsafe { ffi::sqlite3_result_null(context) },
            // SAFETY: see above.
            ValueRef::Integer(integer) => unsafe { ffi::sqlite3_result_int64(context, integer) },
            // SAFETY: see above.
            ValueRef::Real(real) => unsafe { ffi::sqlite3_result_double(context, real) },
            ValueRef::Text(text) => {
                let (at, length) = (text.as_ptr().cast(), text.len() as u64);
                // SAFETY: the text is `length` bytes long; SQLite copies it at once.
                unsafe { ffi::sqlite3_result_text64(context, at, length, ffi::SQLITE_TRANSIENT(), UTF8) }
            }
            ValueRef::Blob(bytes) => {
                let (at, length) = (bytes.as_ptr().cast(), bytes.len() as u64);
                // SAFETY: as for text.
                unsafe { ffi::sqlite3_result_blob64(context, at, length, ffi::SQLITE_TRANSIENT()) }
            }
        }
    }
}

/// A value of SQLite's, borrowed.
///
/// # Safety
/// `value` is live and unchanged for `'a`.
pub(crate) unsafe fn value_of<'a>(value: *mut ffi::sqlite3_value) -> ValueRef<'a> {
    // SAFETY: the caller's promise (so too below).
    match unsafe { ffi::sqlite3_value_type(value) } {
        // SAFETY: see above.
        ffi::SQLITE_INTEGER => ValueRef::Integer(unsafe { ffi::sqlite3_value_int64(value) }),
        // SAFETY: see above.
        ffi::SQLITE_FLOAT => ValueRef::Real(unsafe { ffi::sqlite3_value_double(value) }),
        ffi::SQLITE_TEXT => {
            // SAFETY: see above.
            let at = unsafe { ffi::sqlite3_value_text(value) };
            // SAFETY: see above.
            text_or_blob(unsafe { bytes_of(value, at) })
        }
        ffi::SQLITE_BLOB => {
            // SAFETY: see above.
            let at = unsafe { ffi::sqlite3_value_blob(value) };
            // SAFETY: see above.
            ValueRef::Blob(unsafe { bytes_of(value, at.cast()) })
        }
        _ => ValueRef::Null,
    }
}

/// # Safety
/// `at` is where the text or blob of this live value starts, just asked for.
unsafe fn bytes_of<'a>(value: *mut ffi::sqlite3_value, at: *const u8) -> &'a [u8] {
    // SAFETY: the caller's promise (so too below).
    let length = usize::try_from(unsafe { ffi::sqlite3_value_bytes(value) }).unwrap_or(0);
    if at.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: see above.
    unsafe { slice::from_raw_parts(at, length) }
}
