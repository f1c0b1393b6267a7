//! The slot that keeps the log of the last minutes for all who listen to a stream.

use store::definition::ServerDef;

use super::{Caller, PUBLICATION, place_of};
use crate::error::Error;
use crate::limits::{FEEDBACK_INTERVAL, KEEPER_WAIT, STREAM_WAIT};
use crate::login::{Purpose, connect};
use crate::pgoutput::{literal, quoted};
use crate::slot::{STATUS, drop_slot, of_slot, size_note, wait_of_slot};
use crate::time::now;
use crate::wire::{Connection, ERROR, error_of};

/// Two make it at once: the other one has.
const EXISTS: [&str; 2] = ["42710", "23505"];

/// Makes the publication, unless it is there. The database looks for it when it reads its log, by the catalogue of that
/// time: so it is made before the slot.
pub(super) fn publish(connection: &mut Connection) -> Result<(), Error> {
    let known =
        connection.query(&format!("SELECT FROM pg_publication WHERE pubname = {}", literal(PUBLICATION)))?;
    if !known.is_empty() {
        return Ok(());
    }
    match connection.query(&format!("CREATE PUBLICATION {PUBLICATION}")) {
        Err(error) if EXISTS.contains(&error.state.as_str()) => Ok(()),
        Err(error) if error.state == "42501" => Err(error.with_hint(format!(
            "let the owner of the database run CREATE PUBLICATION {PUBLICATION} there, once; it publishes no table"
        ))),
        made => made.map(drop),
    }
}

/// Makes the keeper, unless it is there. That waits for transactions that are open at the database.
pub(super) fn ensure(
    server: &ServerDef,
    keeper: &str,
    beside: &mut Connection,
    caller: &Caller<'_>,
) -> Result<(), Error> {
    match status(keeper, beside)?.as_deref() {
        Some("lost") => {
            tracing::warn!(bus = %server.name, "slot {keeper} has lost its log, and is made again: raise \
                max_slot_wal_keep_size at the database if this happens often");
            remove(keeper, beside)?;
        }
        Some(_) => return Ok(()),
        None => {}
    }
    let mut maker = connect(server, Purpose::Changes)?;
    let made = make(keeper, &mut maker, beside, caller);
    maker.end();
    match made {
        Err(error) if EXISTS.contains(&error.state.as_str()) => Ok(()),
        Err(error) => Err(error),
        Ok(()) => {
            if let Some((message, hint)) = size_note(beside)? {
                tracing::warn!(bus = %server.name, "{message}; {hint}");
            }
            Ok(())
        }
    }
}

/// The state of the log that it keeps; none: it is not there.
fn status(keeper: &str, beside: &mut Connection) -> Result<Option<String>, Error> {
    let rows = beside.query(&format!(
        "SELECT coalesce({STATUS}, ''), plugin = 'pgoutput' AND database = current_database(), database
         FROM pg_replication_slots s WHERE slot_name = {}",
        literal(keeper)
    ))?;
    let Some(row) = rows.first() else { return Ok(None) };
    let cell = |at: usize| row.get(at).and_then(Option::as_deref);
    if cell(1) != Some("t") {
        let message = format!(
            "replication slot \"{keeper}\" is used for something else, in database {}",
            cell(2).unwrap_or("none")
        );
        return Err(Error::new("55006", message)
            .with_hint("name another stream: ALTER SERVER ... OPTIONS (ADD stream '...')"));
    }
    Ok(Some(cell(0).unwrap_or_default().to_owned()))
}

fn make(
    keeper: &str,
    maker: &mut Connection,
    beside: &mut Connection,
    caller: &Caller<'_>,
) -> Result<(), Error> {
    maker.ask(&format!("CREATE_REPLICATION_SLOT {} LOGICAL pgoutput NOEXPORT_SNAPSHOT", quoted(keeper)))?;
    let mut say_at = now() + FEEDBACK_INTERVAL;
    while !(caller.is_gone)() {
        if now() >= say_at {
            say_at = now() + FEEDBACK_INTERVAL;
            if let Some(said) = wait_of_slot(beside)? {
                (caller.say)(said);
            }
        }
        match maker.next_within(STREAM_WAIT)? {
            Some(frame) if frame.tag == ERROR => return Err(of_slot(error_of(&frame.body))),
            Some(frame) if frame.tag == b'Z' => return Ok(()),
            _ => {}
        }
    }
    Err(Error::connection("nobody waits for the slot any more"))
}

/// Has the database forget its log before a place. One of all caches does so at a time.
pub(super) fn advance(keeper: &str, connection: &mut Connection, place: u64) -> Result<(), Error> {
    let name = literal(keeper);
    let locked = connection.query(&format!("SELECT pg_try_advisory_lock(hashtext({name}))"))?;
    if locked.first().and_then(|row| row.first()?.as_deref()) != Some("t") {
        return Ok(());
    }
    let confirmed = place_in(keeper, connection)?;
    if confirmed >= place {
        return Ok(());
    }
    let advanced = connection.query_within(
        &format!("SELECT pg_replication_slot_advance({name}, '0/0'::pg_lsn + {place})"),
        KEEPER_WAIT,
    );
    advanced.map(drop)
}

/// The place from which a slot has the log.
pub(super) fn place_in(slot: &str, connection: &mut Connection) -> Result<u64, Error> {
    let rows = connection.query(&format!(
        "SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots WHERE slot_name = {}",
        literal(slot)
    ))?;
    place_of(rows.first())
}

pub(super) fn remove(keeper: &str, connection: &mut Connection) -> Result<(), Error> {
    drop_slot(connection, keeper)
}
