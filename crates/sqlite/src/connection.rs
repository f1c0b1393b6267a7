//! A private, empty, in-memory connection that computes and can do nothing else.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::ptr::{self, NonNull};
use std::rc::Rc;

use libsqlite3_sys as ffi;
use sqltext::token::quoted_name;
use store::patience::Watch;

use super::guard::{FaultPoint, guarded};
use super::heap;
use super::operation::Operation;
use crate::limits;

/// The encoding of every text that goes in; SQLite's functions want it as a byte.
#[expect(clippy::cast_possible_truncation, reason = "SQLite's constant is 1")]
pub(crate) const UTF8: u8 = ffi::SQLITE_UTF8 as u8;

/// What a statement wants to do, as SQLite's authorizer tells it while the statement is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// It is a `SELECT`, or contains one.
    Select,
    /// It reads a column of a table.
    Read {
        /// The table.
        table: &'a str,
        /// The column.
        column: &'a str,
        /// The innermost view that reads it, where it is not the statement itself.
        view: Option<&'a str>,
    },
    /// It counts the rows of a table, or of a common table expression, without a look at a column.
    Rows(&'a str),
    /// It calls a function.
    Function(&'a str),
    /// It is a recursive common table expression.
    Recursive,
    /// Anything else: writes, definitions, pragmas, transactions, attached files.
    Other,
}

/// What the owner of a connection decides for it.
pub trait Policy: Watch {
    /// Whether a statement may do this; asked while it is compiled.
    fn allows(&self, action: Action<'_>) -> bool;
    /// After how many operations it is asked whether the running statement must stop.
    fn progress_operations(&self) -> c_int {
        limits::PROGRESS_OPERATIONS
    }
}

/// Allows everything and never stops a statement: for a connection that holds nobody's data and goes at once.
#[derive(Clone, Copy, Debug)]
pub struct Unrestricted;

impl Policy for Unrestricted {
    fn allows(&self, _: Action<'_>) -> bool {
        true
    }
}

impl Watch for Unrestricted {
    fn must_stop(&self, _: u64) -> bool {
        false
    }
}

/// An error as SQLite reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The primary result code.
    pub code: i32,
    /// SQLite's words.
    pub message: String,
    /// Where in the statement's text, in bytes, if SQLite knows.
    pub offset: Option<usize>,
}

/// An open connection. It stays with the thread that opened it (`Rc` keeps it there).
pub struct Connection {
    raw: NonNull<ffi::sqlite3>,
    /// Boxed, because SQLite holds this address for the authorizer and the progress handler.
    policy: Box<Rc<dyn Policy>>,
    /// The functions of two arguments by their names.
    operations: RefCell<HashMap<String, Operation>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Opens an in-memory database and takes from it all that a cache's computing needs not.
    pub fn open(policy: Rc<dyn Policy>) -> Result<Rc<Self>, Failure> {
        heap::install();
        let mut raw = ptr::null_mut();
        let flags = ffi::SQLITE_OPEN_READWRITE
            | ffi::SQLITE_OPEN_CREATE
            | ffi::SQLITE_OPEN_MEMORY
            | ffi::SQLITE_OPEN_NOMUTEX
            | ffi::SQLITE_OPEN_PRIVATECACHE;
        // SAFETY: the name is a C string, `raw` is a valid place for the result, no VFS is named.
        let code = unsafe { ffi::sqlite3_open_v2(c":memory:".as_ptr(), &raw mut raw, flags, ptr::null()) };
        let Some(raw) = NonNull::new(raw) else { return Err(Failure::of_code(code)) };
        let connection = Self { raw, policy: Box::new(policy), operations: RefCell::default() };
        connection.check(code)?;
        connection.harden()?;
        Ok(Rc::new(connection))
    }

    /// A function of two arguments, as a table that serves it as an operator names it. It is known for as long as the
    /// connection.
    pub fn operation(&self, name: &str) -> Option<Operation> {
        self.operations.borrow().get(name).copied()
    }

    pub(crate) fn note_operation(&self, name: &str, operation: Operation) {
        self.operations.borrow_mut().insert(name.to_owned(), operation);
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::sqlite3 {
        self.raw.as_ptr()
    }

    fn harden(&self) -> Result<(), Failure> {
        self.execute(c"PRAGMA temp_store = MEMORY")?;
        self.execute(c"PRAGMA recursive_triggers = OFF")?;
        for (option, value) in [
            (ffi::SQLITE_DBCONFIG_DEFENSIVE, 1),
            (ffi::SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
            (ffi::SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
            (ffi::SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
            (ffi::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0),
            (ffi::SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, 0),
            (ffi::SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, 0),
            (ffi::SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0),
            // A double-quoted word is a name and never silently a string.
            (ffi::SQLITE_DBCONFIG_DQS_DML, 0),
            (ffi::SQLITE_DBCONFIG_DQS_DDL, 0),
            // A plan holds for all values of its parameters: one that looked at `LIMIT ?` would be made again for each.
            (ffi::SQLITE_DBCONFIG_ENABLE_QPSG, 1),
        ] {
            self.configure(option, value)?;
        }
        for (limit, value) in limits::SQLITE {
            // SAFETY: the connection is open; SQLite clamps the value.
            unsafe { ffi::sqlite3_limit(self.as_ptr(), *limit, *value) };
        }
        let policy = ptr::from_ref::<Rc<dyn Policy>>(&self.policy).cast_mut().cast::<c_void>();
        // SAFETY: the policy's address lives in a box as long as the connection, which drops it after closing.
        let code = unsafe { ffi::sqlite3_set_authorizer(self.as_ptr(), Some(authorize), policy) };
        self.check(code)?;
        let every = self.policy.progress_operations();
        // SAFETY: as for the authorizer.
        unsafe { ffi::sqlite3_progress_handler(self.as_ptr(), every, Some(progress), policy) };
        Ok(())
    }

    fn configure(&self, option: c_int, value: c_int) -> Result<(), Failure> {
        // SAFETY: each of these options takes an int and a pointer to an int, which may be null.
        let code = unsafe { ffi::sqlite3_db_config(self.as_ptr(), option, value, ptr::null_mut::<c_int>()) };
        self.check(code)
    }

    /// Makes a view known.
    pub fn create_view(&self, name: &str, columns: &[String], sql: &str) -> Result<(), Failure> {
        let columns: Vec<String> = columns.iter().map(|column| quoted_name(column)).collect();
        let columns = if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) };
        self.execute(&c_string(&format!("CREATE VIEW {}{columns} AS {sql}", quoted_name(name)))?)
    }

    /// Makes a view unknown.
    pub fn drop_view(&self, name: &str) -> Result<(), Failure> {
        self.execute(&c_string(&format!("DROP VIEW {}", quoted_name(name)))?)
    }

    fn execute(&self, sql: &CStr) -> Result<(), Failure> {
        // SAFETY: the text is a C string; no callback and no message are asked for.
        let code =
            unsafe { ffi::sqlite3_exec(self.as_ptr(), sql.as_ptr(), None, ptr::null_mut(), ptr::null_mut()) };
        self.check(code)
    }

    pub(crate) fn check(&self, code: c_int) -> Result<(), Failure> {
        if code == ffi::SQLITE_OK { Ok(()) } else { Err(self.failure(code)) }
    }

    /// What SQLite says about the call that just failed on this connection.
    #[cold]
    pub(crate) fn failure(&self, code: c_int) -> Failure {
        // SAFETY: the connection is open; the text is valid until the next call on it.
        let message = unsafe { ffi::sqlite3_errmsg(self.as_ptr()) };
        // SAFETY: the connection is open.
        let offset = unsafe { ffi::sqlite3_error_offset(self.as_ptr()) };
        // SAFETY: SQLite returns a C string or null.
        let message = unsafe { text_of(message) }.unwrap_or_default();
        Failure { code: code & 0xff, message, offset: usize::try_from(offset).ok() }
    }
}

/// Bytes of SQLite's generator, which the system's randomness seeds.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let length = c_int::try_from(N).unwrap_or(0);
    // SAFETY: the place is `N` bytes long, and `length` is no more.
    unsafe { ffi::sqlite3_randomness(length, bytes.as_mut_ptr().cast()) };
    bytes
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; statements hold the connection alive, so none is left.
        unsafe { ffi::sqlite3_close(self.as_ptr()) };
    }
}

impl Failure {
    fn of_code(code: c_int) -> Self {
        // SAFETY: SQLite returns a static C string for every code.
        let message = unsafe { ffi::sqlite3_errstr(code) };
        // SAFETY: as above.
        let message = unsafe { text_of(message) }.unwrap_or_default();
        Self { code: code & 0xff, message, offset: None }
    }

    /// Whether the statement was stopped.
    pub fn is_interrupt(&self) -> bool {
        self.code == ffi::SQLITE_INTERRUPT
    }

    /// A misuse that this crate found before SQLite could.
    pub(crate) fn misuse(message: &str) -> Self {
        Self { code: ffi::SQLITE_MISUSE, message: message.to_owned(), offset: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The text behind a C string; bytes that are no UTF-8 are replaced.
///
/// # Safety
/// `text` is null or a C string.
unsafe fn text_of(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_string_lossy().into_owned())
}

/// A C string from Rust text; a NUL inside is the caller's mistake.
pub(crate) fn c_string(text: &str) -> Result<CString, Failure> {
    CString::new(text).map_err(|_| Failure::misuse("the text contains a zero byte"))
}

/// # Safety
/// `policy` is the address that `harden` gave, and the connection is open.
unsafe fn policy_of<'a>(policy: *mut c_void) -> &'a dyn Policy {
    // SAFETY: the caller's promise; the box outlives every callback.
    let policy = unsafe { &*policy.cast::<Rc<dyn Policy>>() };
    policy.as_ref()
}

unsafe extern "C" fn authorize(
    policy: *mut c_void,
    code: c_int,
    first: *const c_char,
    second: *const c_char,
    _database: *const c_char,
    view: *const c_char,
) -> c_int {
    guarded(FaultPoint::Authorize, ffi::SQLITE_DENY, || {
        // SAFETY: SQLite passes C strings or null.
        let (first, second) = (unsafe { text_of(first) }, unsafe { text_of(second) });
        // SAFETY: as above.
        let view = unsafe { text_of(view) };
        let action = match code {
            ffi::SQLITE_SELECT => Action::Select,
            ffi::SQLITE_READ if second.as_deref().is_none_or(str::is_empty) => {
                Action::Rows(first.as_deref().unwrap_or_default())
            }
            ffi::SQLITE_READ => Action::Read {
                table: first.as_deref().unwrap_or_default(),
                column: second.as_deref().unwrap_or_default(),
                view: view.as_deref(),
            },
            ffi::SQLITE_FUNCTION => Action::Function(second.as_deref().unwrap_or_default()),
            ffi::SQLITE_RECURSIVE => Action::Recursive,
            _ => Action::Other,
        };
        // SAFETY: the address came from `harden`.
        let policy = unsafe { policy_of(policy) };
        if policy.allows(action) { ffi::SQLITE_OK } else { ffi::SQLITE_DENY }
    })
}

unsafe extern "C" fn progress(policy: *mut c_void) -> c_int {
    guarded(FaultPoint::Progress, 1, || {
        // SAFETY: the address came from `harden`.
        let policy = unsafe { policy_of(policy) };
        let operations = u64::from(policy.progress_operations().unsigned_abs());
        c_int::from(policy.must_stop(operations))
    })
}
