//! The value of the only row of a query that stands for a value: a second row is an error, as in PostgreSQL.

use std::rc::Rc;

use sqlite::{Aggregate, Arguments, Connection};
use sqltext::error::{SqlError, state};
use store::value::Value;

use super::def::Caller;

/// What statements call it. It stands in the texts that are made of a client's, and in those of views.
pub const ONLY_ROW: &str = "_only_row";

/// The row so far.
struct Only<C> {
    caller: Rc<C>,
    value: Option<Value>,
}

impl<C: Caller> Aggregate for Only<C> {
    fn step(&mut self, arguments: &Arguments<'_>) -> Result<(), String> {
        if self.value.is_some() {
            let message = "more than one row returned by a subquery used as an expression";
            return Err(self.caller.fail(SqlError::new(state::CARDINALITY, message)));
        }
        self.value = Some(arguments.value(0));
        Ok(())
    }

    fn take_back(&mut self, _: &Arguments<'_>) -> Result<(), String> {
        self.value = None;
        Ok(())
    }

    fn value(&self) -> Result<Value, String> {
        Ok(self.value.clone().unwrap_or_default())
    }
}

/// Makes the connection know it.
pub(super) fn register<C: Caller>(connection: &Connection, caller: &Rc<C>) -> Result<(), SqlError> {
    let caller = Rc::clone(caller);
    connection.create_aggregate(ONLY_ROW, 1, move || Only { caller: Rc::clone(&caller), value: None })?;
    Ok(())
}
