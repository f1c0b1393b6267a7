//! The functions that return what a session's statements wrote: `changes()`, `last_insert_rowid()` and the others of
//! [`OF_SESSION`].

use std::rc::Rc;

use pgcatalog::function::{Caller, OF_SESSION};
use sqlite::{Connection, Failure, Volatility};
use store::value::Value;

use super::sight::Sight;
use crate::error::{SqlError, state};
use crate::facts::Facts;

fn nothing_made() -> SqlError {
    SqlError::new(state::NOT_IN_STATE, "lastval is not yet defined in this session")
        .with_hint("insert a row into a table with an identity first")
}

/// Makes the functions known to a connection.
pub(crate) fn register_session_functions(connection: &Connection, sight: &Rc<Sight>) -> Result<(), Failure> {
    let numbers: [fn(Facts) -> Option<i64>; 4] = [
        |facts| Some(facts.changes),
        |facts| Some(facts.total),
        |facts| Some(facts.last_row),
        |facts| facts.made,
    ];
    for (name, number) in OF_SESSION.iter().zip(numbers) {
        let sight = Rc::clone(sight);
        connection.create_function(name, 0, Volatility::Volatile, move |_| {
            number(sight.facts()).map(Value::Integer).ok_or_else(|| sight.fail(nothing_made()))
        })?;
    }
    Ok(())
}
