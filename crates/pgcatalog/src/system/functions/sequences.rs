//! The sequences of numbered columns: `nextval`, `setval`, `pg_sequence_last_value`.

use std::sync::Arc;

use sqltext::error::{SqlError, state};
use store::Table;
use store::value::Value;

use super::definitions::relation_oid;
use super::{Call, FunctionDef, fallible, function};
use crate::system::System;
use crate::system::relation::sequences_of;
use crate::system::rows::int;

pub(super) static FUNCTIONS: &[FunctionDef] = &[
    fallible("nextval", (1, 1), |system, call| {
        let Some(table) = numbered(system, call)? else { return Ok(Value::Null) };
        Ok(int(system.store().next_number(&table)?))
    }),
    function("pg_sequence_last_value", (1, 1), |system, call| match numbered(system, call) {
        Ok(Some(table)) => table.last_number().map_or(Value::Null, int),
        _ => Value::Null,
    }),
    fallible("setval", (2, 3), set_value),
];

/// The numbers go on behind this one, or with it where the third argument says that it was not given out.
fn set_value(system: &System, call: &Call) -> Result<Value, SqlError> {
    let (Some(table), Some(number)) = (numbered(system, call)?, call.integer(1)) else {
        return Ok(Value::Null);
    };
    if number < 1 {
        let message = format!("setval: value {number} is out of bounds for a sequence that begins with 1");
        return Err(SqlError::new(state::OUT_OF_RANGE, message));
    }
    let given = call.0.get(2).is_none_or(|given| !given.is_null() && call.truth(2));
    system.store().set_number(&table, if given { number.saturating_add(1) } else { number })?;
    Ok(int(number))
}

/// The table whose column a sequence numbers, which is named or given by its number; none for NULL.
fn numbered(system: &System, call: &Call) -> Result<Option<Arc<Table>>, SqlError> {
    let Some(name) = call.text(0) else { return Ok(None) };
    let oid = call.oid(0).or_else(|| relation_oid(system, &name));
    let catalog = system.catalog();
    let of = |table: &&Arc<Table>| sequences_of(table).iter().any(|sequence| Some(sequence.oid) == oid);
    match catalog.tables().find(of) {
        Some(table) => Ok(Some(Arc::clone(table))),
        None => Err(SqlError::new(state::UNKNOWN_TABLE, format!("sequence \"{name}\" does not exist"))
            .with_hint("only numbered columns have sequences; INSERT ... RETURNING returns the number")),
    }
}
