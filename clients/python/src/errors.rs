//! Exceptions.

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use sqlcached_client::Error as Failure;

create_exception!(sqlcached, Error, PyException, "What this package raises, but for wrong arguments.");
create_exception!(sqlcached, UnavailableError, Error, "No daemon answers, or not in time.");
create_exception!(sqlcached, RefusedError, Error, "The file of shared memory cannot be read.");
create_exception!(sqlcached, NoTableError, Error, "There is no such table, or no such column.");
create_exception!(sqlcached, StatementError, Error, "A statement failed: `sqlstate` says how.");
create_exception!(sqlcached, ServerError, Error, "The daemon refused the request.");

/// The exception that a failure becomes.
pub(crate) fn raise(py: Python<'_>, failure: &Failure) -> PyErr {
    let text = failure.to_string();
    match failure {
        Failure::Socket(_) => UnavailableError::new_err(text),
        Failure::Arena(_) => RefusedError::new_err(text),
        Failure::NoTable(_) | Failure::NoColumn(_) => NoTableError::new_err(text),
        Failure::Key(_) | Failure::Unreachable(_) => PyValueError::new_err(text),
        Failure::Sql { state, .. } => {
            let error = StatementError::new_err(text);
            // An exception takes any attribute; were it not so, the text still begins with the state.
            let _ = error.value(py).setattr("sqlstate", state);
            error
        }
        _ => ServerError::new_err(text),
    }
}
