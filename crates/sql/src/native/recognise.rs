//! Which statements need no SQLite: the only reader of a statement's conditions and names outside of SQLite.
//!
//! It reads the grammar's tree into the few forms that this module runs; what it does not know it declines.

use sqlite3_parser::ast::Stmt;

use super::{Job, NativePlan};
use crate::core::Core;
use crate::text::parameter::numbered;
use crate::text::parse::with_tree;
use crate::text::token::Tokens;

mod change;
mod condition;
mod names;
mod query;
mod terms;

pub(crate) use change::of_change;
pub(super) use condition::Where;

/// The plan of a `SELECT` or a `DELETE` that needs no SQLite, or SQLite only to say what its columns are.
pub(crate) fn of_text(core: &Core, sql: &str) -> Option<NativePlan> {
    // Without a table there is nothing to find.
    if !Tokens::new(sql).any(|token| token.is("FROM")) {
        return None;
    }
    let numbered = numbered(sql).ok()?;
    let read = |tree: &Stmt<'_>| {
        Ok(match tree {
            Stmt::Select(select) => {
                query::of(core, select, &numbered.sql).map(|query| Job::Query(Box::new(query)))
            }
            tree => change::deletion(core, tree).map(|deletion| Job::Delete(Box::new(deletion))),
        })
    };
    let job = with_tree(&numbered.sql, read).ok()??;
    Some(NativePlan::new(numbered.count, job))
}
