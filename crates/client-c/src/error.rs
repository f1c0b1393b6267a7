//! What went wrong, as C hears it: a status, and a message that waits in the thread.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use sqlcached_client::Error;

use crate::limits::MESSAGE_BYTES_MAX;
use crate::status::Status;

/// A call that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    status: Status,
    message: String,
    sqlstate: String,
}

impl Failure {
    /// The caller passed what cannot be.
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self { status: Status::ErrorArgument, message: message.into(), sqlstate: String::new() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let sqlstate = match &error {
            Error::Sql { state, .. } => state.clone(),
            _ => String::new(),
        };
        Self { status: Status::of(&error), message: error.to_string(), sqlstate }
    }
}

/// The last failure of a thread, as C reads it.
#[derive(Debug, Default)]
struct Last {
    message: CString,
    sqlstate: CString,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::default();
}

/// Runs the body of a function of the interface. Neither its error nor its panic goes further: both become a status.
pub(crate) fn guard(body: impl FnOnce() -> Result<Status, Failure>) -> c_int {
    // What a panic leaves half done is an object of the caller's, which it may refill or free: every field of ours is
    // whole at any moment.
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(defect(&*panic)));
    match outcome {
        Ok(status) => status as c_int,
        Err(failure) => {
            let status = failure.status as c_int;
            remember(failure);
            status
        }
    }
}

/// As [`guard`], for functions that answer with something else than a status, and have `instead` when there is none.
pub(crate) fn guard_or<T>(instead: T, body: impl FnOnce() -> Option<T>) -> T {
    catch_unwind(AssertUnwindSafe(body)).ok().flatten().unwrap_or(instead)
}

/// As [`guard`], for functions that free something and say nothing.
pub(crate) fn release(body: impl FnOnce()) {
    // A destructor that panicked has freed what it could; there is nobody to tell.
    let _ = catch_unwind(AssertUnwindSafe(body));
}

fn defect(panic: &(dyn Any + Send)) -> Failure {
    let words = panic.downcast_ref::<&str>().copied();
    let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it panicked");
    let message = format!("a bug in libsqlcached: {words}");
    Failure { status: Status::ErrorInternal, message, sqlstate: String::new() }
}

fn remember(failure: Failure) {
    let text = |mut text: String| {
        let mut end = text.len().min(MESSAGE_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.retain(|letter| letter != '\0');
        CString::new(text).unwrap_or_default()
    };
    let last = Last { message: text(failure.message), sqlstate: text(failure.sqlstate) };
    // A thread that is ending has no place for it any more.
    let _ = LAST.try_with(|place| *place.borrow_mut() = last);
}

/// A string of [`LAST`], which lives until the thread's next failure.
fn told(which: impl FnOnce(&Last) -> &CStr) -> *const c_char {
    LAST.try_with(|last| which(&last.borrow()).as_ptr()).unwrap_or(c"".as_ptr())
}

/// See `sqlcached.h`.
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub extern "C" fn sqlcached_message() -> *const c_char {
    told(|last| &last.message)
}

/// See `sqlcached.h`.
// SAFETY: the library alone has names that begin with `sqlcached_`.
#[unsafe(no_mangle)]
pub extern "C" fn sqlcached_sqlstate() -> *const c_char {
    told(|last| &last.sqlstate)
}
