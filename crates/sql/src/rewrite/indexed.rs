//! `INDEXED BY` and `NOT INDEXED`.
//!
//! SQLite looks for the index among its own. So the clause becomes an argument of the table, as in `t(-3)`, which the
//! planner's question to the table carries: it then answers with this index or not at all.

use store::{Catalog, Table};

use super::Edit;
use super::scope::Query;
use crate::error::{SqlError, state};

/// What a table may be read by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forced {
    /// Anything but an index: the primary key stays, as in SQLite the row's number does.
    NoIndex,
    /// The index at this position; behind the last one, the primary key.
    Index(usize),
}

impl Forced {
    /// What a table's argument says; those from 0 on are the executor's lists.
    pub(crate) fn of_argument(argument: i64) -> Option<Self> {
        match argument {
            0.. => None,
            -1 => Some(Self::NoIndex),
            below => usize::try_from(below.checked_add(2)?.checked_neg()?).ok().map(Self::Index),
        }
    }

    /// The argument that says it.
    pub(crate) fn argument(self) -> i64 {
        match self {
            Self::NoIndex => -1,
            Self::Index(at) => -2 - i64::try_from(at).unwrap_or(i64::MAX >> 1),
        }
    }

    /// What a clause asks for; `None` is `NOT INDEXED`.
    pub(crate) fn named(table: &Table, index: Option<&str>) -> Result<Self, SqlError> {
        let Some(name) = index else { return Ok(Self::NoIndex) };
        let indexes = table.indexes();
        if let Some(at) = indexes.iter().position(|index| index.name().eq_ignore_ascii_case(name)) {
            return Ok(Self::Index(at));
        }
        let is_key = name.eq_ignore_ascii_case(&format!("{}_pkey", table.name()));
        if is_key && !table.def().has_row_id() {
            return Ok(Self::Index(indexes.len()));
        }
        let message = format!("table \"{}\" has no index \"{name}\"", table.name());
        Err(SqlError::new(state::UNKNOWN_OBJECT, message))
    }
}

/// Puts the arguments in the place of the clauses.
pub(super) fn edit(catalog: &Catalog, query: &Query<'_>, edits: &mut Vec<Edit>) -> Result<(), SqlError> {
    for source in &query.sources {
        let Some(indexed) = &source.indexed else { continue };
        let Some(table) = source.table else {
            let Some(name) = &indexed.index else { continue };
            if catalog.view(&source.name).is_none() {
                continue;
            }
            return Err(SqlError::new(state::UNKNOWN_OBJECT, format!("a view has no index \"{name}\"")));
        };
        let forced = Forced::named(table, indexed.index.as_deref())?;
        edits.push(Edit::insert(source.end, format!("({})", forced.argument())));
        edits.push(Edit::replace(indexed.span.start, indexed.span.end, String::new()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_say_what_is_forced() {
        for forced in [Forced::NoIndex, Forced::Index(0), Forced::Index(63)] {
            assert_eq!(Forced::of_argument(forced.argument()), Some(forced));
        }
        assert_eq!(Forced::of_argument(0), None);
        assert_eq!(Forced::of_argument(1), None);
        assert_eq!(Forced::of_argument(i64::MIN), Some(Forced::Index(9_223_372_036_854_775_806)));
    }
}
