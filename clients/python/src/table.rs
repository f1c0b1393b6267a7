//! `Table`: by a table's own keys.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use sqlcached_client::{Client as Inner, Lookup, Meta, Table as Named};

use crate::client::Client;
use crate::convert::{self, bytes_of, duration};
use crate::errors::raise;
use crate::read::{self, Found, with_buffer};

/// A table, found once. See the stub file for what each method promises.
#[pyclass(subclass, frozen, module = "sqlcached")]
#[derive(Debug)]
pub(crate) struct Table {
    client: Arc<Inner>,
    table: Named,
}

#[pymethods]
impl Table {
    #[new]
    fn new(py: Python<'_>, client: &Client, name: &str) -> PyResult<Self> {
        let client = Arc::clone(client.inner());
        let table = py.detach(|| client.table(name)).map_err(|failure| raise(py, &failure))?;
        Ok(Self { client, table })
    }

    #[getter]
    fn name(&self) -> &str {
        self.table.name()
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

    fn get_many<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let keys = read::keys(keys)?;
        let bytes = keys.iter().map(bytes_of).collect::<PyResult<Vec<&[u8]>>>()?;
        let found = py.detach(|| self.client.multi_get(self.table.name(), &bytes));
        drop(bytes);
        read::dictionary(py, keys, found.map_err(|failure| raise(py, &failure))?)
    }

    fn row<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let key = bytes_of(key)?;
        let found =
            py.detach(|| self.client.row(self.table.name(), key)).map_err(|failure| raise(py, &failure))?;
        found.value().map(|row| convert::row(py, &row)).transpose()
    }

    fn column<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        column: &str,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = bytes_of(key)?;
        let found = py.detach(|| self.client.column(self.table.name(), key, column));
        let found = found.map_err(|failure| raise(py, &failure))?;
        found.value().map(|value| convert::column(py, &value)).transpose()
    }

    fn wait<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        timeout: f64,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let key = bytes_of(key)?;
        let slice = |patience| self.client.wait(&self.table, key, patience);
        let found = read::wait(py, duration(timeout)?, slice)?.map_err(|failure| raise(py, &failure))?;
        // What another still makes is no value yet.
        let made = Some(found).filter(|found| !found.is_made_by_another());
        Ok(made.and_then(|found| read::whole(py, found)).map(|(value, _)| value))
    }
}

impl Table {
    /// Reads a key, from shared memory or else from the daemon.
    #[inline]
    fn find(&self, py: Python<'_>, key: &[u8], buffer: &mut Vec<u8>) -> PyResult<Lookup<Meta>> {
        match self.client.peek(&self.table, key, buffer) {
            Ok(Some(found)) => Ok(found),
            // It says again what was wrong with the key.
            Ok(None) | Err(_) => py
                .detach(|| {
                    buffer.clear();
                    self.client.get_into(&self.table, key, buffer)
                })
                .map_err(|failure| raise(py, &failure)),
        }
    }
}
