//! The native part of the Python package `sqlcached`: `sqlcached-client` as Python objects.
//!
//! A read from shared memory keeps the interpreter's lock: it takes less time than to give the lock back and to get it
//! again, and copies one value of at most 1 MiB. Whatever may wait (the daemon, a row that is not there yet) and reads
//! of many keys run without it.

#![forbid(unsafe_code)]

mod client;
mod convert;
mod errors;
mod read;
mod table;

use pyo3::prelude::*;

/// The module `sqlcached._native`.
#[pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use crate::client::Client;
    #[pymodule_export]
    use crate::errors::{Error, NoTableError, RefusedError, ServerError, StatementError, UnavailableError};
    #[pymodule_export]
    use crate::table::Table;

    /// The version of the package and of its native part, which are one.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
