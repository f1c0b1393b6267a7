//! Which statements need no SQLite: the only reader of a statement's conditions and names outside of SQLite.
//!
//! It reads what the dialect made of a statement into the few forms that this module runs; what it does not know it
//! declines.

mod change;
mod condition;
mod names;
mod query;
mod terms;

pub(crate) use change::{of_change, of_deletion};
pub(super) use condition::Where;
pub(crate) use query::of_query;
