//! What reads by key and reads by table have in common.

use std::cell::RefCell;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use sqlcached_client::{Lookup, Meta, Renewal, Value};

use crate::convert::bytes_of;

/// Reads of fewer keys from shared memory keep the interpreter's lock, because they are done before it is given to
/// anybody else.
const KEYS_WITH_LOCK: usize = 64;

/// A buffer larger than this is not kept for the thread's next read.
const BUFFER_KEPT: usize = 1 << 20;

/// How often a wait looks whether the user pressed Ctrl-C.
const SIGNALS_EVERY: Duration = Duration::from_millis(100);

/// State, value, flags, CAS, and who refreshes it.
pub(crate) type Found<'py> = (&'static str, Option<Bound<'py, PyBytes>>, u32, u64, &'static str);

thread_local! {
    /// Where a value is copied before Python has an object of its length.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Runs a read with the thread's buffer, empty.
pub(crate) fn with_buffer<T>(read: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    BUFFER.with(|place| {
        // A finaliser that Python runs in the middle of a read may read too: it gets a buffer of its own.
        let Ok(mut buffer) = place.try_borrow_mut() else { return read(&mut Vec::new()) };
        buffer.clear();
        let outcome = read(&mut buffer);
        if buffer.capacity() > BUFFER_KEPT {
            *buffer = Vec::new();
        }
        outcome
    })
}

/// What goes with a row that was found, and whether it was found fresh.
pub(crate) fn parts(lookup: &Lookup<Meta>) -> (&'static str, Option<Meta>) {
    match lookup {
        Lookup::Hit(meta) => ("hit", Some(*meta)),
        Lookup::Stale(meta) => ("stale", Some(*meta)),
        Lookup::Due(meta) => ("due", Some(*meta)),
        Lookup::Miss => ("miss", None),
    }
}

/// The value that was copied, or none for a miss.
#[inline]
pub(crate) fn value<'py>(
    py: Python<'py>,
    lookup: &Lookup<Meta>,
    bytes: &[u8],
) -> Option<Bound<'py, PyBytes>> {
    (!matches!(lookup, Lookup::Miss)).then(|| PyBytes::new(py, bytes))
}

/// All that there is to say of a read.
pub(crate) fn found<'py>(py: Python<'py>, lookup: &Lookup<Meta>, bytes: &[u8]) -> Found<'py> {
    let (state, meta) = parts(lookup);
    let meta = meta.unwrap_or_default();
    let renewal = match meta.renewal {
        Renewal::Nobody => "nobody",
        Renewal::Another => "another",
        Renewal::Yours => "you",
    };
    (state, value(py, lookup, bytes), meta.flags, meta.cas, renewal)
}

/// A value that was read into an object of its own, taken apart.
pub(crate) fn whole(py: Python<'_>, lookup: Lookup) -> Option<(Bound<'_, PyBytes>, Meta)> {
    lookup.value().map(|Value { bytes, meta }| (PyBytes::new(py, &bytes), meta))
}

/// The keys of a Python iterable, as they were given.
pub(crate) fn keys<'py>(iterable: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    iterable.try_iter()?.collect()
}

/// Reads many keys, without the interpreter's lock where they are many.
pub(crate) fn many<T: Send>(
    py: Python<'_>,
    keys: &[Bound<'_, PyAny>],
    read: impl FnOnce(&[&[u8]]) -> T + Send,
) -> PyResult<T> {
    let bytes = keys.iter().map(bytes_of).collect::<PyResult<Vec<&[u8]>>>()?;
    Ok(if bytes.len() < KEYS_WITH_LOCK { read(&bytes) } else { py.detach(|| read(&bytes)) })
}

/// A dictionary of the keys that were found, under the objects that asked for them.
pub(crate) fn dictionary<'py>(
    py: Python<'py>,
    keys: Vec<Bound<'py, PyAny>>,
    found: Vec<Lookup>,
) -> PyResult<Bound<'py, PyDict>> {
    let values = PyDict::new(py);
    for (key, lookup) in keys.into_iter().zip(found) {
        if let Some((value, _)) = whole(py, lookup) {
            values.set_item(key, value)?;
        }
    }
    Ok(values)
}

/// A list with a tuple of value, flags and CAS for each fresh row, and None for all else.
pub(crate) fn fresh(py: Python<'_>, found: Vec<Option<Lookup>>) -> PyResult<Bound<'_, PyList>> {
    let fresh = found.into_iter().map(|lookup| match lookup {
        Some(hit @ Lookup::Hit(_)) => whole(py, hit).map(|(value, meta)| (value, meta.flags, meta.cas)),
        _ => None,
    });
    PyList::new(py, fresh.collect::<Vec<_>>())
}

/// Waits in slices, so that Ctrl-C ends it.
pub(crate) fn wait<E: Send>(
    py: Python<'_>,
    timeout: Duration,
    slice: impl Fn(Duration) -> Result<Lookup, E> + Sync,
) -> PyResult<Result<Lookup, E>> {
    let mut left = timeout;
    loop {
        let patience = left.min(SIGNALS_EVERY);
        let outcome = py.detach(|| slice(patience));
        left -= patience;
        let unmade = outcome.as_ref().is_ok_and(Lookup::is_made_by_another);
        if !unmade || left.is_zero() {
            return Ok(outcome);
        }
        py.check_signals()?;
    }
}
