//! Inspections by a real PostgreSQL.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test ends where something is missing, and says its seed"
)]

mod random;
mod server;
mod statement;
mod statements;
mod stream;
