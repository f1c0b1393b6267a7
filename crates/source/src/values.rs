//! Values of a source as the store has them.

use engine::{SqlError, Value, ValueRef};
use postgres::oid;
use store::Table;
use store::scalar::simple::without_blanks as without_final_blanks;

/// A value that PostgreSQL wrote as text, as our type with this OID has it.
pub(crate) fn value(oid: u32, text: &[u8]) -> Result<Value, SqlError> {
    let read = postgres::decode(oid, postgres::Format::Text, text);
    let read = read.map_err(|error| SqlError::new(error.state, error.message))?;
    Ok(match read {
        postgres::Value::Null => Value::Null,
        postgres::Value::Integer(number) => Value::Integer(number),
        // NaN has a form of its own in the store.
        postgres::Value::Real(number) => Value::from(number),
        postgres::Value::Text(text) if oid == oid::BPCHAR => without_final_blanks(Value::Text(text)),
        postgres::Value::Text(text) => Value::Text(text),
        postgres::Value::Bytes(bytes) => Value::Blob(bytes),
    })
}

/// The key of these values, in the order of the primary key.
pub(crate) fn encode(table: &Table, values: impl Iterator<Item = Value>) -> Option<Vec<u8>> {
    let def = table.def();
    let accept = |(&column, value)| def.accept(column, value).ok();
    let values: Vec<Value> = def.primary_key.iter().zip(values).map(accept).collect::<Option<_>>()?;
    let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    let mut key = Vec::new();
    table.keys().encode(&values, &mut key).ok()?;
    Some(key)
}

/// A value of `char(n)` without the blanks behind it, which mean nothing there, and something in a text.
pub(crate) fn without_blanks(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &text[..end]
}
