//! `Client`: by memcached's keys, and statements.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use sqlcached_client::{Client as Inner, Lookup, Meta, Options, Reply};

use crate::convert::{bytes_of, duration, parameter, row};
use crate::errors::raise;
use crate::read::{self, Found, with_buffer};

/// A client of one daemon. See the stub file for what each method promises.
#[pyclass(subclass, frozen, module = "sqlcached")]
#[derive(Debug)]
pub(crate) struct Client {
    inner: Arc<Inner>,
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (socket=None, *, arena=None, timeout=None))]
    fn new(
        py: Python<'_>,
        socket: Option<PathBuf>,
        arena: Option<PathBuf>,
        timeout: Option<f64>,
    ) -> PyResult<Self> {
        let mut options = Options::new(socket.unwrap_or_else(Options::default_socket));
        options.arena = arena;
        if let Some(timeout) = timeout {
            options.timeout = duration(timeout)?;
        }
        let inner = py.detach(|| Inner::connect(&options)).map_err(|failure| raise(py, &failure))?;
        Ok(Self { inner: Arc::new(inner) })
    }

    fn get<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let key = bytes_of(key)?;
        with_buffer(|buffer| {
            let found = self.find(py, key, buffer)?;
            Ok(read::value(py, &found, buffer))
        })
    }

    fn _lookup<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Found<'py>> {
        let key = bytes_of(key)?;
        with_buffer(|buffer| {
            let found = self.find(py, key, buffer)?;
            Ok(read::found(py, &found, buffer))
        })
    }

    fn _claim<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>, seconds: u32) -> PyResult<Found<'py>> {
        let key = bytes_of(key)?;
        let found =
            py.detach(|| self.inner.get_or_claim(key, seconds)).map_err(|failure| raise(py, &failure))?;
        let mut bytes = Vec::new();
        let found = found.map(|value| {
            bytes = value.bytes;
            value.meta
        });
        Ok(read::found(py, &found, &bytes))
    }

    fn peek<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, u32, u64)>> {
        let key = bytes_of(key)?;
        Ok(with_buffer(|buffer| match self.inner.peek_key(key, buffer) {
            Some(Lookup::Hit(meta)) => Some((PyBytes::new(py, buffer), meta.flags, meta.cas)),
            _ => None,
        }))
    }

    fn peek_many<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let keys = read::keys(keys)?;
        let found = read::many(py, &keys, |keys| self.inner.peek_keys(keys))?;
        read::fresh(py, found)
    }

    fn get_many<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let keys = read::keys(keys)?;
        let bytes = keys.iter().map(bytes_of).collect::<PyResult<Vec<&[u8]>>>()?;
        // What shared memory does not answer is asked of the daemon.
        let found = py.detach(|| self.inner.multi_get_key(&bytes)).map_err(|failure| raise(py, &failure))?;
        drop(bytes);
        read::dictionary(py, keys, found)
    }

    #[pyo3(signature = (key, value, expire=0, flags=0))]
    fn set(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        expire: i64,
        flags: u32,
    ) -> PyResult<()> {
        let (key, value) = (bytes_of(key)?, bytes_of(value)?);
        py.detach(|| self.inner.set_key(key, value, flags, expire)).map_err(|failure| raise(py, &failure))
    }

    #[pyo3(signature = (key, value, expire=0, flags=0))]
    fn add(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        expire: i64,
        flags: u32,
    ) -> PyResult<bool> {
        let (key, value) = (bytes_of(key)?, bytes_of(value)?);
        py.detach(|| self.inner.add_key(key, value, flags, expire)).map_err(|failure| raise(py, &failure))
    }

    #[pyo3(signature = (key, value, cas, expire=0, flags=0))]
    fn cas(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        cas: u64,
        expire: i64,
        flags: u32,
    ) -> PyResult<bool> {
        let (key, value) = (bytes_of(key)?, bytes_of(value)?);
        py.detach(|| self.inner.cas_key(key, value, flags, expire, cas))
            .map_err(|failure| raise(py, &failure))
    }

    #[pyo3(signature = (key, delta=1))]
    fn increment(&self, py: Python<'_>, key: &Bound<'_, PyAny>, delta: i64) -> PyResult<Option<u64>> {
        let key = bytes_of(key)?;
        py.detach(|| self.inner.incr_key(key, delta)).map_err(|failure| raise(py, &failure))
    }

    fn delete(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = bytes_of(key)?;
        py.detach(|| self.inner.delete_key(key)).map_err(|failure| raise(py, &failure))
    }

    #[pyo3(signature = (statement, *parameters))]
    fn sql<'py>(
        &self,
        py: Python<'py>,
        statement: &str,
        parameters: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let parameters = parameters.iter().map(|object| parameter(&object)).collect::<PyResult<Vec<_>>>()?;
        let reply =
            py.detach(|| self.inner.sql(statement, &parameters)).map_err(|failure| raise(py, &failure))?;
        match reply {
            Reply::Rows(rows) => {
                let rows = rows.iter().map(|each| row(py, each)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyList::new(py, rows)?.into_any())
            }
            Reply::Changed(changed) => Ok(changed.into_pyobject(py)?.into_any()),
            other => Err(PyRuntimeError::new_err(format!("a statement was answered with {other:?}"))),
        }
    }

    fn close(&self) {
        self.inner.disconnect();
    }
}

impl Client {
    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Reads a key, from shared memory or else from the daemon.
    #[inline]
    fn find(&self, py: Python<'_>, key: &[u8], buffer: &mut Vec<u8>) -> PyResult<Lookup<Meta>> {
        match self.inner.peek_key(key, buffer) {
            Some(found) => Ok(found),
            None => py
                .detach(|| {
                    buffer.clear();
                    self.inner.get_key_into(key, buffer)
                })
                .map_err(|failure| raise(py, &failure)),
        }
    }
}
