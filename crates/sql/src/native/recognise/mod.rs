//! Which statements need no SQLite: the only reader of a statement's conditions and names outside of SQLite.
//!
//! It reads what the dialect made of a statement into the few forms that this module runs; what it does not know it
//! declines.

use dialect::lowered::{Select, Write};

use super::{Job, NativePlan};
use crate::core::Core;

mod change;
mod condition;
mod names;
mod query;
mod terms;

pub(crate) use change::of_change;
pub(super) use condition::Where;

/// The plan of a query that needs no SQLite, or SQLite only to say what its columns are. `sql` is its text, whose words
/// name some columns.
pub(crate) fn of_query(core: &Core, select: &Select, (sql, parameters): (&str, usize)) -> Option<NativePlan> {
    let query = query::of(core, select, sql)?;
    Some(NativePlan::new(parameters, Job::Query(Box::new(query))))
}

/// The plan of a `DELETE` that needs no SQLite.
pub(crate) fn of_deletion(core: &Core, write: &Write) -> Option<NativePlan> {
    let deletion = change::deletion(core, write)?;
    Some(NativePlan::new(write.parameters, Job::Delete(Box::new(deletion))))
}
