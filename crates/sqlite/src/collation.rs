//! Orders of texts as safe closures, and the C shims that carry them.

use std::cmp::Ordering;
use std::ffi::{c_int, c_void};
use std::slice;

use libsqlite3_sys as ffi;

use super::connection::{Connection, Failure, c_string};
use super::guard::{FaultPoint, guarded};

impl Connection {
    /// Makes an order of texts known under this name, in place of an earlier one.
    pub fn create_collation<F>(&self, name: &str, order: F) -> Result<(), Failure>
    where
        F: Fn(&str, &str) -> Ordering + 'static,
    {
        let name = c_string(name)?;
        let client = Box::into_raw(Box::new(order));
        // SAFETY: the name is a C string. SQLite owns the boxed closure from here on and gives it to `release`, unless
        // it refuses the collation; `compare` takes it for what it is.
        let code = unsafe {
            ffi::sqlite3_create_collation_v2(
                self.as_ptr(),
                name.as_ptr(),
                ffi::SQLITE_UTF8,
                client.cast::<c_void>(),
                Some(compare::<F>),
                Some(release::<F>),
            )
        };
        if code != ffi::SQLITE_OK {
            // SAFETY: unlike a function's, a collation's client data stay the caller's when SQLite refuses.
            drop(unsafe { Box::from_raw(client) });
        }
        self.check(code)
    }
}

// SAFETY: SQLite alone calls it, with the client pointer that it was given and once for each registration.
unsafe extern "C" fn release<F>(client: *mut c_void) {
    // SAFETY: the box that `create_collation` gave away, given back once.
    drop(unsafe { Box::from_raw(client.cast::<F>()) });
}

unsafe extern "C" fn compare<F>(
    client: *mut c_void,
    length: c_int,
    text: *const c_void,
    other_length: c_int,
    other: *const c_void,
) -> c_int
where
    F: Fn(&str, &str) -> Ordering + 'static,
{
    let order = guarded(FaultPoint::Compare, Ordering::Equal, || {
        // SAFETY: what `create_collation` boxed, which lives as long as the collation is known.
        let order = unsafe { &*client.cast::<F>() };
        // SAFETY: SQLite passes two texts with their lengths, which live until this returns.
        let text = unsafe { bytes_of(text, length) };
        // SAFETY: as above.
        let other = unsafe { bytes_of(other, other_length) };
        match (str::from_utf8(text), str::from_utf8(other)) {
            (Ok(text), Ok(other)) => order(text, other),
            _ => text.cmp(other),
        }
    });
    order as c_int
}

/// # Safety
/// There are `length` bytes at `at`, which live as long as `'t`.
unsafe fn bytes_of<'t>(at: *const c_void, length: c_int) -> &'t [u8] {
    match usize::try_from(length) {
        // SAFETY: the caller's promise.
        Ok(length) if length > 0 => unsafe { slice::from_raw_parts(at.cast(), length) },
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::{Statement, Unrestricted};

    #[test]
    fn texts_come_in_an_order_of_ours() {
        let connection = Connection::open(Rc::new(Unrestricted)).unwrap();
        connection.create_collation("backwards", |a, b| b.cmp(a)).unwrap();
        let sql = "SELECT group_concat(a, '') FROM \
                   (SELECT a FROM (VALUES ('b'), ('a'), ('c')) AS v(a) ORDER BY column1 COLLATE backwards)";
        let sql = sql.replace(
            "SELECT a FROM (VALUES ('b'), ('a'), ('c')) AS v(a)",
            "SELECT column1 AS a FROM (VALUES ('b'), ('a'), ('c'))",
        );
        let (statement, _) = Statement::prepare(&connection, &sql).unwrap();
        let mut found = String::new();
        let mut statement = statement.unwrap();
        statement
            .run(std::iter::empty(), &mut |row| {
                found = format!("{:?}", row.value(0).to_owned());
                Ok::<(), Failure>(())
            })
            .unwrap();
        assert_eq!(found, "Text(\"cba\")");
    }
}
