//! SQLite behind a safe interface: exactly what we need of its C interface, and the daemon's only `unsafe` above the
//! arena.
//!
//! A [`Connection`] is hardened when it is opened and never touches a file; its [`Policy`] decides what a statement may
//! do and when it must stop. A [`Statement`] is run as a whole by one call, so that nothing bound to it outlives the
//! values it was bound to. Virtual tables are safe traits ([`Module`], [`Cursor`]), functions are closures; their C
//! shims run inside a guard against panics. [`meter`] counts what functions take of a statement's memory and time.
//!
//! ```
//! use std::rc::Rc;
//!
//! use sqlite::{Connection, Unrestricted, Volatility};
//! use store::value::Value;
//!
//! let connection = Connection::open(Rc::new(Unrestricted)).unwrap();
//! connection.create_function("seven", 0, Volatility::Immutable, |_| Ok(Value::Integer(7))).unwrap();
//! ```

mod aggregate;
mod collation;
mod connection;
mod failure;
mod function;
mod guard;
pub mod heap;
mod index_info;
mod lent;
pub mod limits;
pub mod meter;
mod operation;
mod pulled;
mod statement;
mod value;
mod vtab;

pub use aggregate::Aggregate;
pub use connection::{Action, Connection, Failure, Policy, Unrestricted, random_bytes};

pub use function::Volatility;
#[cfg(debug_assertions)]
pub use guard::{FaultPoint, arm_fault};
pub use guard::{count_panic, panics_caught};
pub use heap::{give_memory_back, note_freed};
pub use index_info::{Constraint, Operator, Request};
pub use lent::LentView;
pub use operation::Operation;
pub use pulled::Pulled;
pub use statement::{Row, Statement};
pub use value::{Arguments, Output};
pub use vtab::{Cursor, Module};
