//! Functions that a table may be asked about as operators.

use std::ffi::{c_int, c_void};

use libsqlite3_sys as ffi;

/// Of so many arguments is a function that is an operator.
pub(crate) const OPERANDS: c_int = 2;

/// A function of two arguments that a table may be asked about as an operator, see
/// [`Module::operator`](super::vtab::Module::operator). SQLite calls it all the same where the table does not answer.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub(crate) call: Call,
    pub(crate) client: *mut c_void,
}

/// What SQLite calls.
pub(crate) type Call = unsafe extern "C" fn(*mut ffi::sqlite3_context, c_int, *mut *mut ffi::sqlite3_value);
