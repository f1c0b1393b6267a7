//! Values between Python and SQL.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyString};
use sqlcached_client::{Row, SqlValue};
use std::time::Duration;

/// The bytes of a key or a value: those of `bytes`, or the UTF-8 of a `str`.
pub(crate) fn bytes_of<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(bytes.as_bytes());
    }
    match object.cast::<PyString>() {
        Ok(text) => Ok(text.to_str()?.as_bytes()),
        Err(_) => {
            Err(PyTypeError::new_err(format!("bytes or str are needed, not {}", object.get_type().name()?)))
        }
    }
}

/// A parameter of a statement.
pub(crate) fn parameter(object: &Bound<'_, PyAny>) -> PyResult<SqlValue> {
    if object.is_none() {
        return Ok(SqlValue::Null);
    }
    if let Ok(truth) = object.cast::<PyBool>() {
        return Ok(SqlValue::Integer(truth.is_true().into()));
    }
    if object.is_instance_of::<PyInt>() {
        let integer = object.extract::<i64>();
        return integer
            .map(SqlValue::Integer)
            .map_err(|_| PyOverflowError::new_err("an integer of SQL has 64 bits"));
    }
    if object.is_instance_of::<PyFloat>() {
        return Ok(SqlValue::Real(object.extract()?));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(SqlValue::Text(text.to_str()?.to_owned()));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(SqlValue::Blob(bytes.as_bytes().to_vec()));
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(SqlValue::Blob(bytes.to_vec()));
    }
    Err(PyTypeError::new_err(format!("a parameter cannot be {}", object.get_type().name()?)))
}

/// A column's value.
pub(crate) fn column<'py>(py: Python<'py>, value: &SqlValue) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        SqlValue::Null => py.None().into_bound(py),
        SqlValue::Integer(integer) => integer.into_pyobject(py)?.into_any(),
        SqlValue::Real(real) => real.into_pyobject(py)?.into_any(),
        SqlValue::Text(text) => PyString::new(py, text).into_any(),
        SqlValue::Blob(bytes) => PyBytes::new(py, bytes).into_any(),
    })
}

/// A row as a dictionary, in the order of its columns.
pub(crate) fn row<'py>(py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyDict>> {
    let named = PyDict::new(py);
    for (name, value) in row.columns() {
        named.set_item(name, column(py, value)?)?;
    }
    Ok(named)
}

/// Seconds, as Python counts time.
pub(crate) fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("{seconds} is no number of seconds to wait")))
}
