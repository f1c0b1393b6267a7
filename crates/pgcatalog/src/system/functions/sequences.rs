//! `nextval`, `currval`, `lastval`, `setval`, `pg_sequence_last_value`.

use sqltext::error::{SqlError, state};
use store::definition::Privileges;
use store::value::Value;

use super::definitions::relation_oid;
use super::{Call, FunctionDef, fallible, function};
use crate::sequence::{SEES, Source, given, last_given, last_of};
use crate::system::relation::all_sequences;
use crate::system::rows::{int, text};
use crate::system::{SEQUENCE_CALLED, SEQUENCE_LAST, System};

pub(super) static FUNCTIONS: &[FunctionDef] = &[
    fallible("currval", (1, 1), current_value),
    fallible("lastval", (0, 0), |system, _| {
        let known = last_given(&system.numbers());
        let (numbered, number) =
            known.ok_or_else(|| undefined("lastval is not yet defined in this session"))?;
        let catalog = system.catalog();
        let of = all_sequences(&catalog).into_iter().find(|own| own.source.numbered() == numbered);
        of.map_or(Ok(()), |own| own.source.allow(&system.identity().holder(), SEES))?;
        Ok(int(number))
    }),
    fallible("nextval", (1, 1), |system, call| {
        let Some(source) = named(system, call)? else { return Ok(Value::Null) };
        Ok(int(source.next(system.store())?))
    }),
    function("pg_sequence_last_value", (1, 1), |system, call| match named(system, call) {
        Ok(Some(source)) if source.is_allowed(&system.identity().holder(), SEES) => {
            source.last().map_or(Value::Null, int)
        }
        _ => Value::Null,
    }),
    // What a sequence shows as a table of one row.
    function(SEQUENCE_CALLED, (1, 1), |system, call| match named(system, call) {
        Ok(Some(source)) => text(if source.last().is_some() { "t" } else { "f" }),
        _ => Value::Null,
    }),
    function(SEQUENCE_LAST, (1, 1), |system, call| {
        let catalog = system.catalog();
        let facts =
            call.oid(0).and_then(|oid| all_sequences(&catalog).into_iter().find(|own| own.oid == oid));
        facts.map_or(Value::Null, |facts| int(facts.source.last().unwrap_or(facts.start)))
    }),
    fallible("setval", (2, 3), set_value),
];

/// The number that this session was given last.
fn current_value(system: &System, call: &Call) -> Result<Value, SqlError> {
    let Some(source) = named(system, call)? else { return Ok(Value::Null) };
    source.allow(&system.identity().holder(), SEES)?;
    let wanted = Some(source.numbered());
    let known = given(wanted).or_else(|| last_of(&system.numbers(), wanted));
    known.map(int).ok_or_else(|| {
        let name = call.text(0).unwrap_or_default();
        undefined(&format!("currval of sequence \"{name}\" is not yet defined in this session"))
    })
}

fn undefined(message: &str) -> SqlError {
    SqlError::new(state::NOT_IN_STATE, message).with_hint("nextval() or an INSERT defines it")
}

/// The numbers go on behind this one, or with it where the third argument says that it was not given out.
fn set_value(system: &System, call: &Call) -> Result<Value, SqlError> {
    let (Some(source), Some(number)) = (named(system, call)?, call.integer(1)) else {
        return Ok(Value::Null);
    };
    source.allow(&system.identity().holder(), Privileges::UPDATE)?;
    let called = call.0.get(2).is_none_or(|given| !given.is_null() && call.truth(2));
    source.set(system.store(), number, called)?;
    Ok(int(number))
}

/// The sequence that is named or given by its number; none for NULL.
pub(super) fn named(system: &System, call: &Call) -> Result<Option<Source>, SqlError> {
    named_at(system, call, 0)
}

/// The same by another argument.
pub(super) fn named_at(system: &System, call: &Call, at: usize) -> Result<Option<Source>, SqlError> {
    let Some(name) = call.text(at) else { return Ok(None) };
    let oid = call.oid(at).or_else(|| relation_oid(system, &name));
    let catalog = system.catalog();
    let of = |oid| all_sequences(&catalog).into_iter().find(|sequence| sequence.oid == oid);
    if let Some(found) = oid.and_then(of) {
        return Ok(Some(found.source));
    }
    if oid.is_some_and(|_| call.oid(at).is_none()) {
        return Err(SqlError::new("42809", format!("\"{name}\" is not a sequence")));
    }
    Err(SqlError::new(state::UNKNOWN_TABLE, format!("relation \"{name}\" does not exist")))
}
