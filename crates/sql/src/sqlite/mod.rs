//! SQLite behind a safe wall: exactly what this crate needs of its C interface, and the only `unsafe` here.
//!
//! A [`Connection`] is hardened when it is opened and never touches a file. A [`Statement`] is run as a whole
//! by one call, so that nothing bound to it outlives the values it was bound to. Virtual tables are safe
//! traits ([`Module`], [`Cursor`]); their C shims are in `vtab`, and each runs inside the panic guard.

mod aggregate;
mod connection;
mod failure;
mod function;
mod guard;
pub(crate) mod heap;
mod index_info;
mod lent;
mod statement;
mod vtab;

pub(crate) use aggregate::Aggregate;
pub(crate) use connection::{Action, Connection, Failure, Policy, random_bytes};
pub(crate) use failure::UNSOLVED;
pub(crate) use function::Volatility;
pub(crate) use guard::count_panic;
pub use guard::panics_caught;
#[cfg(feature = "failpoints")]
pub use guard::{FaultPoint, arm_fault};
pub use heap::{give_memory_back, note_freed};
pub(crate) use index_info::{Constraint, Operator, Request};
pub(crate) use lent::LentView;
pub(crate) use statement::{Row, Statement};
pub(crate) use vtab::{Arguments, Cursor, Module, Output};
