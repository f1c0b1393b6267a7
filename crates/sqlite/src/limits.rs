//! Bounds, each with its reason.

use std::ffi::c_int;

use libsqlite3_sys as ffi;

/// Bytes freed at once after which memory is given back to the system: far more than common statements use.
pub const MUCH_FREED_BYTES: usize = 1 << 20;
/// SQLite operations between two looks at the deadline: about 10 microseconds of work.
pub const PROGRESS_OPERATIONS: c_int = 1_000;
/// Bytes that a function looks at or copies for which it is counted one operation: what takes some ten nanoseconds.
pub const UNITS_PER_OPERATION: usize = 256;
/// SQLite's run-time limits, set on every connection.
pub const SQLITE: &[(c_int, c_int)] = &[
    // One value: the largest row plus room for escaping it.
    (ffi::SQLITE_LIMIT_LENGTH, 256 << 20),
    (ffi::SQLITE_LIMIT_SQL_LENGTH, 4 << 20),
    (ffi::SQLITE_LIMIT_COLUMN, 2_000 + 32),
    (ffi::SQLITE_LIMIT_EXPR_DEPTH, 1_000),
    (ffi::SQLITE_LIMIT_COMPOUND_SELECT, 500),
    (ffi::SQLITE_LIMIT_VDBE_OP, 25_000_000),
    (ffi::SQLITE_LIMIT_FUNCTION_ARG, 127),
    (ffi::SQLITE_LIMIT_ATTACHED, 0),
    // The cost of LIKE and GLOB grows with the product of pattern and text.
    (ffi::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 256),
    (ffi::SQLITE_LIMIT_VARIABLE_NUMBER, 32_766),
    (ffi::SQLITE_LIMIT_TRIGGER_DEPTH, 0),
    (ffi::SQLITE_LIMIT_WORKER_THREADS, 0),
];
