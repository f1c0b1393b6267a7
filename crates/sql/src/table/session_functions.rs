//! The functions that return what a session's statements wrote: `changes()`, `last_insert_rowid()` and the others of
//! [`OF_SESSION`].

use std::rc::Rc;

use pgcatalog::function::OF_SESSION;
use sqlite::{Connection, Failure, Volatility};
use store::value::Value;

use super::sight::Sight;
use crate::facts::Facts;

/// Makes the functions known to a connection.
pub(crate) fn register_session_functions(connection: &Connection, sight: &Rc<Sight>) -> Result<(), Failure> {
    let numbers: [fn(Facts) -> i64; 3] = [|facts| facts.changes, |facts| facts.total, |facts| facts.last_row];
    for (name, number) in OF_SESSION.iter().zip(numbers) {
        let sight = Rc::clone(sight);
        connection.create_function(name, 0, Volatility::Volatile, move |_| {
            Ok(Value::Integer(number(sight.facts())))
        })?;
    }
    Ok(())
}
