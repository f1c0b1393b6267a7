//! SQL functions of ours as safe closures, and the C shims that carry them.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::slice;

use libsqlite3_sys as ffi;
use store::value::Value;

use super::connection::{Connection, Failure, c_string};
use super::guard::{FaultPoint, guarded};
use super::operation::{OPERANDS, Operation};
use super::value::{Arguments, Output};

/// Whether the same arguments always give the same answer, so that SQLite may call once for many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volatility {
    /// They do.
    Immutable,
    /// They do not.
    Volatile,
}

/// SQLite's mark for a text that is JSON, so that functions which build JSON take it in as such.
const JSON_SUBTYPE: u32 = 74;

/// What SQLite holds of a function.
struct Known<F> {
    function: F,
    is_json: bool,
}

impl Connection {
    /// Makes a function known under this name and number of arguments, in place of an earlier one.
    pub fn create_function<F>(
        &self,
        name: &str,
        arguments: i32,
        volatility: Volatility,
        function: F,
    ) -> Result<(), Failure>
    where
        F: Fn(&Arguments<'_>) -> Result<Value, String> + 'static,
    {
        self.create(name, arguments, volatility, Known { function, is_json: false })
    }

    /// The same of one whose texts are JSON.
    pub fn create_json_function<F>(
        &self,
        name: &str,
        arguments: i32,
        volatility: Volatility,
        function: F,
    ) -> Result<(), Failure>
    where
        F: Fn(&Arguments<'_>) -> Result<Value, String> + 'static,
    {
        self.create(name, arguments, volatility, Known { function, is_json: true })
    }

    fn create<F>(
        &self,
        name: &str,
        arguments: i32,
        volatility: Volatility,
        known: Known<F>,
    ) -> Result<(), Failure>
    where
        F: Fn(&Arguments<'_>) -> Result<Value, String> + 'static,
    {
        let (known_as, name) = (name, c_string(name)?);
        let stable = match volatility {
            Volatility::Immutable => ffi::SQLITE_DETERMINISTIC,
            Volatility::Volatile => 0,
        };
        let marked = if known.is_json { ffi::SQLITE_RESULT_SUBTYPE } else { 0 };
        let flags = ffi::SQLITE_UTF8 | ffi::SQLITE_INNOCUOUS | stable | marked;
        let client = Box::into_raw(Box::new(known)).cast::<c_void>();
        // SAFETY: the name is a C string; SQLite owns the boxed closure from here on and gives it to `release`, also
        // when it refuses the function; `call` takes it for what it is.
        let code = unsafe {
            ffi::sqlite3_create_function_v2(
                self.as_ptr(),
                name.as_ptr(),
                arguments,
                flags,
                client,
                Some(call::<F>),
                None,
                None,
                Some(release::<F>),
            )
        };
        self.check(code)?;
        if arguments == OPERANDS {
            self.note_operation(known_as, Operation { call: call::<F>, client });
        }
        Ok(())
    }
}

// SAFETY: SQLite alone calls it, with the client pointer that it was given and once for each registration.
unsafe extern "C" fn release<F>(client: *mut c_void) {
    // SAFETY: the box that `create` gave away, given back once.
    drop(unsafe { Box::from_raw(client.cast::<Known<F>>()) });
}

unsafe extern "C" fn call<F>(
    context: *mut ffi::sqlite3_context,
    argc: c_int,
    argv: *mut *mut ffi::sqlite3_value,
) where
    F: Fn(&Arguments<'_>) -> Result<Value, String> + 'static,
{
    let panicked = || Err("the function failed".to_owned());
    let result = guarded(FaultPoint::Function, panicked(), || {
        let count = usize::try_from(argc).unwrap_or(0);
        // SAFETY: SQLite passes `argc` values.
        let values = if count == 0 { &[][..] } else { unsafe { slice::from_raw_parts(argv, count) } };
        // SAFETY: the context is live.
        let client = unsafe { ffi::sqlite3_user_data(context) };
        // SAFETY: what `create` boxed, which lives as long as the function is known.
        let known = unsafe { &*client.cast::<Known<F>>() };
        (known.function)(&Arguments::new(values)).map(|value| (value, known.is_json))
    });
    match result {
        Ok((value, is_json)) => {
            // SAFETY: the context is live until this returns.
            unsafe { Output::new(context) }.set(value.as_ref());
            if is_json && matches!(value, Value::Text(_)) {
                // SAFETY: as above; the result is set.
                unsafe { ffi::sqlite3_result_subtype(context, JSON_SUBTYPE) };
            }
        }
        Err(words) => {
            let length = c_int::try_from(words.len()).unwrap_or(c_int::MAX);
            let at = if words.is_empty() { ptr::null() } else { words.as_ptr().cast() };
            // SAFETY: the text is `length` bytes long; SQLite copies it at once.
            unsafe { ffi::sqlite3_result_error(context, at, length) }
        }
    }
}
