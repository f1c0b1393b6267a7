//! libsqlcached: `sqlcached-client` for C, and for languages that call C.
//!
//! `include/sqlcached.h` is the interface and says what holds of each function; a test compares it with what is
//! exported here. Each function checks its pointers, calls the client, and turns errors and panics into a status
//! ([`error`]).
//!
//! # Safety
//!
//! Every exported function that takes pointers asks the same of its caller: a pointer is NULL or points to what the
//! header says, objects come from this library and were not freed, `length` bytes lie behind the pointer that goes with
//! it, and the objects that the header gives to one thread at a time are used so.

pub mod client;
pub mod error;
mod limits;
pub mod pointer;
pub mod row;
pub mod statement;
pub mod status;
pub mod table;
pub mod value;
