//! Functions that do something to a session: this one's settings and announcements, another one's statement.

use sqltext::error::{SqlError, state};
use store::value::Value;

use super::session::preset;
use super::{Call, FunctionDef, fallible, truth};
use crate::effect::Effect;
use crate::system::System;
use crate::system::rows::text;

pub(super) static FUNCTIONS: &[FunctionDef] = &[
    fallible("current_setting", (1, 2), current_setting),
    fallible("pg_cancel_backend", (1, 1), cancel),
    fallible("pg_notify", (2, 2), notify),
    fallible("set_config", (3, 3), set_config),
];

/// What the session set, else what the daemon says; an unknown name is NULL only where the caller allows it.
fn current_setting(system: &System, call: &Call) -> Result<Value, SqlError> {
    let Some(name) = call.text(0) else { return Ok(Value::Null) };
    if let Some(value) = setting(system, &name) {
        return Ok(Value::Text(value));
    }
    if call.truth(1) {
        return Ok(Value::Null);
    }
    Err(SqlError::new(state::UNKNOWN_OBJECT, format!("unrecognized configuration parameter \"{name}\"")))
}

fn setting(system: &System, name: &str) -> Option<String> {
    let same = |known: &str| known.eq_ignore_ascii_case(name);
    if let Some(value) = system.asked_setting(name) {
        return Some(value);
    }
    let own = system.settings();
    if let Some((_, value)) = own.iter().find(|(known, _)| same(known)) {
        return Some(value.clone());
    }
    let server = system.server();
    server
        .session_default(name)
        .map(str::to_owned)
        .or_else(|| server.settings().into_iter().find(|told| same(&told.name)).map(|told| told.setting))
        .or_else(|| preset(name).map(str::to_owned))
}

/// Takes effect at once, whatever becomes of this statement, as in PostgreSQL.
fn cancel(system: &System, call: &Call) -> Result<Value, SqlError> {
    if call.value(0).is_null() {
        return Ok(Value::Null);
    }
    let pid = call.integer(0).and_then(|pid| i32::try_from(pid).ok());
    let Some(pid) = pid else {
        return Err(SqlError::new(
            state::BAD_VALUE,
            "a session is named by its number, as pg_backend_pid() tells it",
        ));
    };
    let asker = system.identity();
    let session = system.server().sessions().into_iter().find(|other| other.pid == pid);
    if let Some(user) = session.map(|session| session.user).filter(|user| *user != asker.user) {
        check_signal(system, &user)?;
    }
    Ok(truth(system.server().cancel(pid)))
}

/// Refuses to stop the statement of another user's session.
fn check_signal(system: &System, user: &str) -> Result<(), SqlError> {
    let asker = system.identity();
    let superuser = system.server().roles().iter().any(|role| role.name == user && role.superuser);
    let message = match asker.rights {
        rights if rights.superuser => return Ok(()),
        _ if superuser => "must be a superuser to cancel superuser query",
        rights if rights.signals => return Ok(()),
        _ => "must be a member of the role whose query is being canceled or member of pg_signal_backend",
    };
    Err(SqlError::new(state::FORBIDDEN, message))
}

fn notify(system: &System, call: &Call) -> Result<Value, SqlError> {
    let channel = call.text(0).unwrap_or_default();
    let payload = call.text(1).unwrap_or_default();
    if channel.is_empty() {
        return Err(SqlError::new(state::BAD_PARAMETER, "channel name cannot be empty"));
    }
    system.server().check_notification(&channel, &payload)?;
    system.ask(Effect::Notify { channel, payload })?;
    Ok(text(""))
}

fn set_config(system: &System, call: &Call) -> Result<Value, SqlError> {
    let Some(name) = call.text(0) else {
        return Err(SqlError::new(state::NULL_NOT_ALLOWED, "SET requires parameter name"));
    };
    let value = call.text(1);
    let shown = system.server().check_setting(&name, value.as_deref())?;
    system.ask(Effect::Set { name, value: value.map(|_| shown.clone()), local: call.truth(2) })?;
    Ok(Value::Text(shown))
}
