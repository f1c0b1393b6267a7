//! Read-only virtual tables as safe traits, and the C shims that carry them.
//!
//! A module is eponymous: registering it under a name makes a table of that name, with no `CREATE VIRTUAL
//! TABLE`. Every shim runs inside the panic guard.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::mem;
use std::ptr;
use std::rc::Rc;
use std::slice;

use libsqlite3_sys as ffi;

use super::connection::{Connection, Failure, c_string};
use super::guard::{FaultPoint, guarded};
use super::index_info::{FUNCTIONS, Request};
use super::operation::{Call, OPERANDS, Operation};
use super::value::{Arguments, Output};

/// A table's side of a virtual table.
pub trait Module: 'static {
    /// What reads it.
    type Cursor: Cursor;

    /// Its columns, as a `CREATE TABLE` statement.
    fn declaration(&self) -> String;

    /// Answers the planner's question; false when no plan works with the conditions at hand.
    fn best_index(&self, request: &mut Request<'_>) -> bool;

    /// A function of two arguments that the planner may ask about as [`Operator::Function`] of this number, where its
    /// first argument is a column of the table.
    ///
    /// [`Operator::Function`]: super::Operator::Function
    fn operator(&self, _function: &str) -> Option<(u8, Operation)> {
        None
    }

    /// A new cursor, before its first row.
    fn open(self: &Rc<Self>) -> Self::Cursor;
}

/// A cursor's side of a virtual table. An error's text reaches the user unless the owner of the connection
/// knows better words for it.
pub trait Cursor {
    /// Starts to read under the plan of this number, and goes to the first row.
    fn filter(&mut self, plan: i32, arguments: &Arguments<'_>) -> Result<(), String>;

    /// Goes to the next row.
    fn next(&mut self) -> Result<(), String>;

    /// Whether there is no row left.
    fn at_end(&self) -> bool;

    /// Hands out one column of the row.
    fn column(&self, column: usize, output: Output<'_>);

    /// The row's number: equal for the same row, different for different rows.
    fn row_number(&self) -> i64;
}

impl Connection {
    /// Makes the table known under this name, in place of an earlier one of the same name.
    ///
    /// No statement that uses the earlier one may be left.
    pub fn register<M: Module>(&self, name: &str, module: Rc<M>) -> Result<(), Failure> {
        let name = c_string(name)?;
        let client = Rc::into_raw(module).cast_mut().cast::<c_void>();
        let methods: &'static ffi::sqlite3_module = &Shims::<M>::METHODS;
        // SAFETY: a pointer to a function that SQLite alone calls, as its own words say.
        let release = Some(release::<M> as unsafe extern "C" fn(*mut c_void));
        // SAFETY: the methods live for ever; SQLite owns the counted reference and gives it to `release`, also
        // when it refuses the module.
        let code =
            unsafe { ffi::sqlite3_create_module_v2(self.as_ptr(), name.as_ptr(), methods, client, release) };
        self.check(code)
    }

    /// Makes a table unknown.
    pub fn unregister(&self, name: &str) -> Result<(), Failure> {
        let name = c_string(name)?;
        // SAFETY: a null module removes the one of this name.
        let code = unsafe {
            ffi::sqlite3_create_module_v2(self.as_ptr(), name.as_ptr(), ptr::null(), ptr::null_mut(), None)
        };
        self.check(code)
    }
}

// SAFETY: SQLite alone calls it, with the client pointer that it was given and once for each registration.
unsafe extern "C" fn release<M: Module>(client: *mut c_void) {
    // SAFETY: the reference that `register` gave away, given back once.
    drop(unsafe { Rc::from_raw(client.cast::<M>()) });
}

/// SQLite's part first, as it requires.
#[repr(C)]
struct RawTable<M> {
    base: ffi::sqlite3_vtab,
    module: Rc<M>,
}

#[repr(C)]
struct RawCursor<C> {
    base: ffi::sqlite3_vtab_cursor,
    cursor: C,
}

struct Shims<M>(PhantomData<M>);

impl<M: Module> Shims<M> {
    const METHODS: ffi::sqlite3_module = ffi::sqlite3_module {
        iVersion: 1,
        xCreate: None,
        xConnect: Some(connect::<M>),
        xBestIndex: Some(best_index::<M>),
        xDisconnect: Some(disconnect::<M>),
        xDestroy: None,
        xOpen: Some(open::<M>),
        xClose: Some(close::<M>),
        xFilter: Some(filter::<M>),
        xNext: Some(next::<M>),
        xEof: Some(at_end::<M>),
        xColumn: Some(column::<M>),
        xRowid: Some(row_number::<M>),
        xUpdate: None,
        xBegin: None,
        xSync: None,
        xCommit: None,
        xRollback: None,
        xFindFunction: Some(find_function::<M>),
        xRename: None,
        xSavepoint: None,
        xRelease: None,
        xRollbackTo: None,
        xShadowName: None,
        xIntegrity: None,
    };
}

// SAFETY: SQLite alone calls it, with a live connection and the client pointer of `register`.
unsafe extern "C" fn connect<M: Module>(
    db: *mut ffi::sqlite3,
    client: *mut c_void,
    _argc: c_int,
    _argv: *const *const c_char,
    table: *mut *mut ffi::sqlite3_vtab,
    _error: *mut *mut c_char,
) -> c_int {
    guarded(FaultPoint::Connect, ffi::SQLITE_ERROR, || {
        let client = client.cast::<M>();
        // SAFETY: the client data is the reference that `register` gave; this makes a second one.
        unsafe { Rc::increment_strong_count(client) };
        // SAFETY: owns the reference just made.
        let module = unsafe { Rc::from_raw(client) };
        let Ok(declaration) = CString::new(module.declaration()) else { return ffi::SQLITE_ERROR };
        // Reading a table has no effect, so views may read it too.
        // SAFETY: called within xConnect; this option takes no further argument.
        let code = unsafe { ffi::sqlite3_vtab_config(db, ffi::SQLITE_VTAB_INNOCUOUS) };
        if code != ffi::SQLITE_OK {
            return code;
        }
        // SAFETY: called within xConnect, with a C string.
        let code = unsafe { ffi::sqlite3_declare_vtab(db, declaration.as_ptr()) };
        if code != ffi::SQLITE_OK {
            return code;
        }
        // SAFETY: a struct of null pointers and a zero is this struct's empty form.
        let base = unsafe { mem::zeroed() };
        let raw = Box::into_raw(Box::new(RawTable { base, module }));
        // SAFETY: SQLite's place for the result.
        unsafe { table.write(raw.cast()) };
        ffi::SQLITE_OK
    })
}

unsafe extern "C" fn disconnect<M: Module>(table: *mut ffi::sqlite3_vtab) -> c_int {
    // SAFETY: made by `connect` as this type; SQLite disconnects once.
    drop(unsafe { Box::from_raw(table.cast::<RawTable<M>>()) });
    ffi::SQLITE_OK
}

unsafe extern "C" fn best_index<M: Module>(
    table: *mut ffi::sqlite3_vtab,
    info: *mut ffi::sqlite3_index_info,
) -> c_int {
    guarded(FaultPoint::BestIndex, ffi::SQLITE_ERROR, || {
        // SAFETY: made by `connect` as this type.
        let table = unsafe { &*table.cast::<RawTable<M>>() };
        // SAFETY: SQLite's question, for the length of this call.
        let mut request = unsafe { Request::new(info) };
        if table.module.best_index(&mut request) { ffi::SQLITE_OK } else { ffi::SQLITE_CONSTRAINT }
    })
}

unsafe extern "C" fn find_function<M: Module>(
    table: *mut ffi::sqlite3_vtab,
    arguments: c_int,
    name: *const c_char,
    function: *mut Option<Call>,
    client: *mut *mut c_void,
) -> c_int {
    guarded(FaultPoint::BestIndex, 0, || {
        // SAFETY: made by `connect` as this type.
        let table = unsafe { &*table.cast::<RawTable<M>>() };
        // SAFETY: SQLite passes a C string.
        let name = unsafe { CStr::from_ptr(name) };
        let found = name.to_str().ok().filter(|_| arguments == OPERANDS);
        let Some((number, operation)) = found.and_then(|name| table.module.operator(name)) else { return 0 };
        // SAFETY: SQLite's place for the answer. The function is what `create` registered with the client below, and
        // stays so for as long as the connection, of which this table is a part.
        unsafe { function.write(Some(operation.call)) };
        // SAFETY: as above.
        unsafe { client.write(operation.client) };
        FUNCTIONS + c_int::from(number)
    })
}

unsafe extern "C" fn open<M: Module>(
    table: *mut ffi::sqlite3_vtab,
    cursor: *mut *mut ffi::sqlite3_vtab_cursor,
) -> c_int {
    guarded(FaultPoint::Open, ffi::SQLITE_ERROR, || {
        // SAFETY: made by `connect` as this type.
        let table = unsafe { &*table.cast::<RawTable<M>>() };
        let base = ffi::sqlite3_vtab_cursor { pVtab: ptr::null_mut() };
        let raw = Box::into_raw(Box::new(RawCursor { base, cursor: table.module.open() }));
        // SAFETY: SQLite's place for the result.
        unsafe { cursor.write(raw.cast()) };
        ffi::SQLITE_OK
    })
}

unsafe extern "C" fn close<M: Module>(cursor: *mut ffi::sqlite3_vtab_cursor) -> c_int {
    // SAFETY: made by `open` as this type; SQLite closes once.
    drop(unsafe { Box::from_raw(cursor.cast::<RawCursor<M::Cursor>>()) });
    ffi::SQLITE_OK
}

/// Turns a cursor's refusal into SQLite's: the words go to the table, the code is an error.
///
/// # Safety
/// `cursor` was made by `open` for this module, and no reference to its Rust part is live.
unsafe fn outcome(cursor: *mut ffi::sqlite3_vtab_cursor, result: Result<(), String>) -> c_int {
    let Err(words) = result else { return ffi::SQLITE_OK };
    let words = words.replace('\0', " ");
    // SAFETY: the caller's promise; SQLite filled in the table after `open`.
    let table = unsafe { (*cursor).pVtab };
    let length = words.len();
    // SAFETY: SQLite's allocator, from which it also frees the message.
    let block = unsafe { ffi::sqlite3_malloc64(length as u64 + 1) }.cast::<u8>();
    if !block.is_null() {
        // SAFETY: room for the bytes and a zero.
        unsafe { ptr::copy_nonoverlapping(words.as_ptr(), block, length) };
        // SAFETY: within the block.
        let end = unsafe { block.add(length) };
        // SAFETY: the block's last byte.
        unsafe { end.write(0) };
        // SAFETY: the table is live while its cursor is.
        let earlier = unsafe { mem::replace(&mut (*table).zErrMsg, block.cast()) };
        // SAFETY: an earlier message, if any, came from SQLite's allocator.
        unsafe { ffi::sqlite3_free(earlier.cast()) };
    }
    ffi::SQLITE_ERROR
}

unsafe extern "C" fn filter<M: Module>(
    cursor: *mut ffi::sqlite3_vtab_cursor,
    number: c_int,
    _words: *const c_char,
    argc: c_int,
    argv: *mut *mut ffi::sqlite3_value,
) -> c_int {
    guarded(FaultPoint::Filter, ffi::SQLITE_ERROR, || {
        let count = usize::try_from(argc).unwrap_or(0);
        // SAFETY: SQLite passes `argc` values.
        let values = if count == 0 { &[][..] } else { unsafe { slice::from_raw_parts(argv, count) } };
        // SAFETY: made by `open` as this type; SQLite uses a cursor from one place at a time.
        let raw = unsafe { &mut *cursor.cast::<RawCursor<M::Cursor>>() };
        let result = raw.cursor.filter(number, &Arguments::new(values));
        // SAFETY: the reference above is no longer used.
        unsafe { outcome(cursor, result) }
    })
}

unsafe extern "C" fn next<M: Module>(cursor: *mut ffi::sqlite3_vtab_cursor) -> c_int {
    guarded(FaultPoint::Next, ffi::SQLITE_ERROR, || {
        // SAFETY: made by `open` as this type; SQLite uses a cursor from one place at a time.
        let result = unsafe { &mut *cursor.cast::<RawCursor<M::Cursor>>() }.cursor.next();
        // SAFETY: the reference above is no longer used.
        unsafe { outcome(cursor, result) }
    })
}

unsafe extern "C" fn at_end<M: Module>(cursor: *mut ffi::sqlite3_vtab_cursor) -> c_int {
    // SAFETY: made by `open` as this type.
    let raw = unsafe { &*cursor.cast::<RawCursor<M::Cursor>>() };
    c_int::from(raw.cursor.at_end())
}

unsafe extern "C" fn column<M: Module>(
    cursor: *mut ffi::sqlite3_vtab_cursor,
    context: *mut ffi::sqlite3_context,
    column: c_int,
) -> c_int {
    guarded(FaultPoint::Column, ffi::SQLITE_ERROR, || {
        // SAFETY: made by `open` as this type.
        let raw = unsafe { &*cursor.cast::<RawCursor<M::Cursor>>() };
        // SAFETY: SQLite keeps the context for the length of xColumn.
        let output = unsafe { Output::new(context) };
        raw.cursor.column(usize::try_from(column).unwrap_or(usize::MAX), output);
        ffi::SQLITE_OK
    })
}

// SAFETY: SQLite alone calls it, with a cursor that `open` made and a place for the number.
unsafe extern "C" fn row_number<M: Module>(
    cursor: *mut ffi::sqlite3_vtab_cursor,
    number: *mut ffi::sqlite3_int64,
) -> c_int {
    guarded(FaultPoint::Rowid, ffi::SQLITE_ERROR, || {
        // SAFETY: made by `open` as this type.
        let raw = unsafe { &*cursor.cast::<RawCursor<M::Cursor>>() };
        // SAFETY: SQLite's place for the result.
        unsafe { number.write(raw.cursor.row_number()) };
        ffi::SQLITE_OK
    })
}
