//! Brings the stream to places in the log that sessions wait for, and looks whether definitions are others now.

use std::time::Instant;

use forward::{Answers, Ticket, table_of};

use super::Asking;
use super::awaited::look_whether_awaited;
use super::definitions::{digest, identity};
use crate::error::Error;
use crate::limits::{AWAITED_INTERVAL, DEFINITIONS_INTERVAL, PLACES_WAIT};
use crate::login::{Purpose, connect};
use crate::pgoutput::literal;
use crate::time::now;
use crate::wire::Connection;

/// The prefix of messages that mark a place in the stream.
pub(crate) const PLACE: &str = "sqlcached place";

/// Connects again and again, until it is to stop.
pub(super) fn run(asking: &Asking) {
    while !asking.must_stop() {
        if let Err(error) = follow(asking) {
            tracing::debug!(source = %asking.server.name, "places are not asked for: {error}");
            asking.rest();
        }
    }
}

fn follow(asking: &Asking) -> Result<(), Error> {
    let mut connection = connect(&asking.server, Purpose::Questions)?;
    // What the writers of the source wait for is their own choice, and not ours.
    connection.query("SET synchronous_commit = local")?;
    let (mut look_at, mut ask_at) = (now(), now());
    while !asking.must_stop() {
        if now() >= ask_at {
            look_whether_awaited(asking, &mut connection)?;
            ask_at = now() + AWAITED_INTERVAL;
        }
        if now() >= look_at {
            look(asking, &mut connection)?;
            look_at = now() + DEFINITIONS_INTERVAL;
        }
        if let Some(ticket) = asking.hub.next_place(PLACES_WAIT) {
            bring(asking, &mut connection, ticket, now())?;
        }
    }
    connection.end();
    Ok(())
}

/// Brings the stream behind a place of now.
fn bring(asking: &Asking, connection: &mut Connection, ticket: Ticket, now: Instant) -> Result<(), Error> {
    let rows = connection.query("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")?;
    let place = rows.first().and_then(|row| row.first()?.as_deref()?.parse().ok());
    let place: u64 = place.ok_or_else(|| Error::connection("the source says no place of its log"))?;
    if asking.hub.reaches(place, now) {
        asking.hub.pass(ticket);
        return Ok(());
    }
    let mark = asking.hub.mark_of(ticket);
    connection
        .query(&format!("SELECT pg_logical_emit_message(true, {}, {})", literal(PLACE), literal(&mark)))
        .map(drop)
}

/// Looks which server this is, and whether its definitions are others than before.
fn look(asking: &Asking, connection: &mut Connection) -> Result<(), Error> {
    asking.hub.set_identity(identity(connection)?);
    if !asking.hub.define(digest(connection)?) {
        return Ok(());
    }
    // Nothing finds them any more; they only take room.
    let empties = format!("TRUNCATE {}", table_of(&asking.server.name));
    if let Err(error) = Answers::new(&asking.engine).define(&[empties]) {
        tracing::warn!(source = %asking.server.name, "answers of before are not removed: {}", error.message);
    }
    Ok(())
}
