//! Functions that do something to a session: this one's settings and announcements, another one's statement, a wait.

use std::time::{Duration, Instant};

use sqltext::error::{SqlError, state};
use store::patience;
use store::scalar::interval::Interval;
use store::value::Value;

use super::session::preset;
use super::{Call, FunctionDef, fallible, truth};
use crate::effect::Effect;
use crate::system::System;
use crate::system::rows::text;

pub(super) static FUNCTIONS: &[FunctionDef] = &[
    fallible("bus_sequence", (1, 1), bus_sequence),
    fallible("current_setting", (1, 2), current_setting),
    fallible("pg_cancel_backend", (1, 1), cancel),
    fallible("pg_notify", (2, 2), notify),
    fallible("pg_terminate_backend", (1, 1), terminate),
    fallible("set_config", (3, 3), set_config),
    fallible("wait_for_bus", (2, 3), wait_for_bus),
    fallible("wait_for_source", (2, 3), wait_for_source),
];

/// How long a wait lasts until it looks whether its statement must stop, and what that counts as: the expressions of a
/// row may take a hundred thousand operations, for a memcached worker waits for them.
const WAIT_SLICE: (Duration, u64) = (Duration::from_millis(5), 500_000);
/// How long `wait_for_source()` and `wait_for_bus()` wait where they are not told.
const WAIT: Duration = Duration::from_secs(1);

/// What the session set, else what the daemon says; an unknown name is NULL only where the caller allows it.
fn current_setting(system: &System, call: &Call) -> Result<Value, SqlError> {
    let Some(name) = call.text(0) else { return Ok(Value::Null) };
    if let Some(value) = setting(system, &name) {
        return Ok(Value::Text(value));
    }
    let mut all = system.server().settings().into_iter();
    if all.any(|told| told.private && told.name.eq_ignore_ascii_case(&name)) {
        return Err(private_setting(&name));
    }
    if call.truth(1) {
        return Ok(Value::Null);
    }
    Err(SqlError::new(state::UNKNOWN_OBJECT, format!("unrecognized configuration parameter \"{name}\"")))
}

/// The error for a setting that tells where a file is.
#[cold]
pub fn private_setting(name: &str) -> SqlError {
    let message = format!("must be superuser or a member of pg_read_all_settings to examine \"{name}\"");
    SqlError::new(state::FORBIDDEN, message)
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
        .or_else(|| system.told_settings().find(|told| same(&told.name)).map(|told| told.setting))
        .or_else(|| preset(name).map(str::to_owned))
}

/// Stops a session's statement.
fn cancel(system: &System, call: &Call) -> Result<Value, SqlError> {
    let refusals = [
        "must be a superuser to cancel superuser query",
        "must be a member of the role whose query is being canceled or member of pg_signal_backend",
    ];
    signal(system, call, refusals, |pid| system.server().cancel(pid))
}

/// Ends a session.
fn terminate(system: &System, call: &Call) -> Result<Value, SqlError> {
    let refusals = [
        "must be a superuser to terminate superuser process",
        "must be a member of the role whose process is being terminated or member of pg_signal_backend",
    ];
    signal(system, call, refusals, |pid| system.server().terminate(pid))
}

/// Takes effect at once, whatever becomes of this statement, as in PostgreSQL.
fn signal(
    system: &System,
    call: &Call,
    refusals: [&'static str; 2],
    send: impl Fn(i32) -> bool,
) -> Result<Value, SqlError> {
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
        check_signal(system, &user, refusals)?;
    }
    Ok(truth(send(pid)))
}

/// Refuses to stop another user's session, a superuser's or anybody's.
fn check_signal(system: &System, user: &str, [of_superuser, of_other]: [&str; 2]) -> Result<(), SqlError> {
    let asker = system.identity();
    let superuser = system.server().roles().iter().any(|role| role.name == user && role.superuser);
    let message = match asker.rights {
        rights if rights.superuser => return Ok(()),
        _ if superuser => of_superuser,
        rights if rights.signals => return Ok(()),
        _ => of_other,
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

/// Waits until the changes of a source are applied up to a place of its log: who wrote there reads here what he wrote.
fn wait_for_source(system: &System, call: &Call) -> Result<Value, SqlError> {
    let (Some(name), Some(lsn)) = (call.text(0), call.text(1)) else { return Ok(Value::Null) };
    let lsn = place_of(&lsn)?;
    let waited = wait_until(call, |slice| system.server().source_applied(&name, lsn, slice))?;
    waited.map(truth).ok_or_else(|| {
        let message = format!("source \"{name}\" is not followed");
        SqlError::new(state::UNKNOWN_OBJECT, message)
            .with_hint("name a server that a table has as its source; sqlcached_sources lists them")
    })
}

/// The last message of this cache that a bus has: who waits for it in another cache reads there what was invalidated
/// here.
fn bus_sequence(system: &System, call: &Call) -> Result<Value, SqlError> {
    let Some(name) = call.text(0) else { return Ok(Value::Null) };
    let buses = system.server().buses();
    let bus = buses.iter().find(|bus| bus.name.eq_ignore_ascii_case(&name)).ok_or_else(|| no_bus(&name))?;
    Ok(Value::Integer(i64::try_from(bus.sent).unwrap_or(i64::MAX)))
}

/// Waits until what a bus carried up to a message is applied here.
fn wait_for_bus(system: &System, call: &Call) -> Result<Value, SqlError> {
    let (Some(name), Some(sequence)) = (call.text(0), call.integer(1)) else { return Ok(Value::Null) };
    let sequence = u64::try_from(sequence)
        .map_err(|_| SqlError::new(state::BAD_PARAMETER, "a message of a bus has a number from 0 on"))?;
    let waited = wait_until(call, |slice| system.server().bus_applied(&name, sequence, slice))?;
    waited.map(truth).ok_or_else(|| no_bus(&name))
}

fn no_bus(name: &str) -> SqlError {
    SqlError::new(state::UNKNOWN_OBJECT, format!("bus \"{name}\" is not followed"))
        .with_hint("name a server that a table has as its bus; sqlcached_buses lists them")
}

/// Asks again and again, as long as the third argument says, until the answer is yes or there is none.
fn wait_until(call: &Call, ask: impl Fn(Duration) -> Option<bool>) -> Result<Option<bool>, SqlError> {
    let wait = match call.text(2) {
        None => WAIT,
        Some(text) => {
            let span = Interval::parse(&text)?;
            if span.months != 0 || span.days != 0 || span.us < 0 {
                return Err(SqlError::new(state::BAD_PARAMETER, "a wait is less than a day, as '1 s'"));
            }
            Duration::from_micros(span.us.unsigned_abs())
        }
    };
    let end = now() + wait;
    loop {
        let slice = end.saturating_duration_since(now()).min(WAIT_SLICE.0);
        match ask(slice) {
            Some(false) if now() < end => {}
            answer => return Ok(answer),
        }
        if patience::must_stop(WAIT_SLICE.1) {
            return Err(SqlError::new(state::CANCELED, "the statement was stopped"));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a wait is measured by the machine's time")]
fn now() -> Instant {
    Instant::now()
}

/// A place in a source's log: PostgreSQL's `16/B374D848`, or MariaDB's `bin.000022:3011`.
fn place_of(text: &str) -> Result<u64, SqlError> {
    match text.trim().rsplit_once(':') {
        Some((file, offset)) => place_in_file(file, offset).ok_or_else(|| {
            let message = format!("invalid place in a binary log: \"{text}\"");
            SqlError::new(state::BAD_VALUE, message)
                .with_hint("a place is the name of the file, a colon and the position: bin.000001:4711")
        }),
        None => lsn_of(text),
    }
}

/// The number of the file is above the position in it.
fn place_in_file(file: &str, offset: &str) -> Option<u64> {
    let number = |digits: &str| {
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u32>().ok()).flatten()
    };
    let (_, file) = file.rsplit_once('.')?;
    Some(u64::from(number(file)?) << 32 | u64::from(number(offset)?))
}

fn lsn_of(text: &str) -> Result<u64, SqlError> {
    let half = |digits: &str| {
        let is_hex = (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)
    };
    let parts = text.trim().split_once('/').and_then(|(high, low)| Some((half(high)?, half(low)?)));
    parts.map(|(high, low)| u64::from(high) << 32 | u64::from(low)).ok_or_else(|| {
        SqlError::new(state::BAD_VALUE, format!("invalid input syntax for type pg_lsn: \"{text}\""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_the_log_are_read() {
        assert_eq!(lsn_of("16/B374D848").unwrap(), 0x16_b374_d848);
        assert_eq!(lsn_of(" 0/0 ").unwrap(), 0);
        for wrong in ["", "/", "1/", "/1", "1", "g/0", "+1/0", "1/123456789", "-1/0"] {
            assert_eq!(lsn_of(wrong).unwrap_err().state, "22P02", "{wrong}");
        }
        assert_eq!(place_of("16/B374D848").unwrap(), 0x16_b374_d848);
        assert_eq!(place_of("my.own-bin.000022:3011").unwrap(), (22 << 32) + 3011);
        for wrong in [":", "bin:4", "bin.:4", "bin.1:", "bin.+1:4", "bin.000001:-4", "bin.1:4294967296"] {
            assert_eq!(place_of(wrong).unwrap_err().state, "22P02", "{wrong}");
        }
    }
}
