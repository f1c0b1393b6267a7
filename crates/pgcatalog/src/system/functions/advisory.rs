//! Advisory locks: `pg_advisory_lock(key)` and similar ones.

use sqltext::error::{SqlError, state};
use store::value::Value;

use super::{Call, FunctionDef, fallible, truth};
use crate::advisory::LockMode::{Exclusive, Shared};
use crate::advisory::LockScope::{Session, Transaction};
use crate::advisory::{LockCall, LockKey, LockMode, LockScope};
use crate::effect::Effect;
use crate::system::System;
use crate::system::rows::text;

pub(super) static FUNCTIONS: &[FunctionDef] = &[
    fallible("pg_advisory_lock", (1, 2), |system, call| wait(system, call, Exclusive, Session)),
    fallible("pg_advisory_lock_shared", (1, 2), |system, call| wait(system, call, Shared, Session)),
    fallible("pg_advisory_unlock", (1, 2), |system, call| unlock(system, call, Exclusive)),
    fallible("pg_advisory_unlock_all", (0, 0), |system, _| {
        system.advisory(LockCall::UnlockAll).map(|_| text(""))
    }),
    fallible("pg_advisory_unlock_shared", (1, 2), |system, call| unlock(system, call, Shared)),
    fallible("pg_advisory_xact_lock", (1, 2), |system, call| wait(system, call, Exclusive, Transaction)),
    fallible("pg_advisory_xact_lock_shared", (1, 2), |system, call| wait(system, call, Shared, Transaction)),
    fallible("pg_try_advisory_lock", (1, 2), |system, call| attempt(system, call, Exclusive, Session)),
    fallible("pg_try_advisory_lock_shared", (1, 2), |system, call| attempt(system, call, Shared, Session)),
    fallible("pg_try_advisory_xact_lock", (1, 2), |system, call| {
        attempt(system, call, Exclusive, Transaction)
    }),
    fallible("pg_try_advisory_xact_lock_shared", (1, 2), |system, call| {
        attempt(system, call, Shared, Transaction)
    }),
];

fn wait(system: &System, call: &Call, mode: LockMode, scope: LockScope) -> Result<Value, SqlError> {
    let Some(key) = key_of(call)? else { return Ok(Value::Null) };
    system.advisory(LockCall::Wait(key, mode, scope)).map(|_| text(""))
}

fn attempt(system: &System, call: &Call, mode: LockMode, scope: LockScope) -> Result<Value, SqlError> {
    let Some(key) = key_of(call)? else { return Ok(Value::Null) };
    system.advisory(LockCall::Try(key, mode, scope)).map(truth)
}

fn unlock(system: &System, call: &Call, mode: LockMode) -> Result<Value, SqlError> {
    let Some(key) = key_of(call)? else { return Ok(Value::Null) };
    let released = system.advisory(LockCall::Unlock(key, mode))?;
    if !released {
        let message = format!("you don't own a lock of type {}", mode.name());
        // A statement with more warnings than it may send has said enough.
        let _sent = system.ask(Effect::Warn { state: "01000", message });
    }
    Ok(truth(released))
}

/// The lock that the arguments name; none where one of them is NULL.
fn key_of(call: &Call) -> Result<Option<LockKey>, SqlError> {
    if call.0.iter().any(Value::is_null) {
        return Ok(None);
    }
    let number = |at: usize| {
        call.integer(at).ok_or_else(|| SqlError::new(state::BAD_VALUE, "a lock is named by whole numbers"))
    };
    if call.0.len() == 1 {
        return number(0).map(|key| Some(LockKey::one(key)));
    }
    let half =
        |at: usize| i32::try_from(number(at)?).map_err(|_| SqlError::new("22003", "integer out of range"));
    Ok(Some(LockKey::two(half(0)?, half(1)?)))
}
