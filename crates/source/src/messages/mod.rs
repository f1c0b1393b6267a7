//! Messages in PostgreSQL's log: each is a transaction of its own, and all are heard in the order of their commits.
//!
//! One slot, the *keeper*, holds the log of the last minutes for all who listen. Each of them copies it to a slot of
//! its connection. So who was away for a while hears what was said meanwhile, nobody waits for transactions that are
//! open, and of one that never comes back nothing stays at the database.
//!
//! A message's number is the place of its commit. The places rise and lie apart.

mod keeper;
mod listener;
mod speaker;

use std::fmt;
use std::sync::Arc;

use store::definition::ServerDef;

use crate::check::check_server;
use crate::error::Error;
use crate::limits::{SLOT_FREE_WAIT, STREAM_WAIT};
use crate::login::{Purpose, connect, own_name};
use crate::pgoutput::literal;
use crate::slot::is_lasting;
use crate::time::now;
use crate::wire::Connection;

pub use listener::{Begun, Heard, Listener};
pub use speaker::{Said, Speaker};

/// PostgreSQL 14: before, its plugin does not tell messages.
const TELLS_MESSAGES: i32 = 140_000;

/// The publication that a stream has to name. It publishes nothing: messages are in every stream.
const PUBLICATION: &str = "sqlcached_bus";

/// The stream's name where none is said.
const STREAM: &str = "sqlcached";

/// Who calls, what is said to him meanwhile, and whether he has gone.
pub struct Caller<'c> {
    /// Takes note of what is waited for.
    pub say: &'c dyn Fn(String),
    /// Nobody waits for an answer any more.
    pub is_gone: &'c dyn Fn() -> bool,
}

impl fmt::Debug for Caller<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").finish_non_exhaustive()
    }
}

/// Which log has the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The number that the database's cluster was given when it was made.
    pub system: String,
    /// Another one with each promotion, and where it was restored.
    pub timeline: u32,
}

/// The messages of one stream in a database.
#[derive(Clone, Debug)]
pub struct Messages {
    server: Arc<ServerDef>,
    prefix: String,
    keeper: String,
}

impl Messages {
    /// Those of a server.
    pub fn of(server: &Arc<ServerDef>) -> Self {
        let stream = server.option("stream").unwrap_or(STREAM);
        let (prefix, keeper) = (format!("sqlcached bus {stream}"), format!("sqlcached_bus_{stream}"));
        Self { server: Arc::clone(server), prefix, keeper }
    }

    /// Connects to say something, and makes at the database what is not there. Connections of this process by these
    /// numbers are ended first: what was sent on them and not answered must not be stored later.
    ///
    /// # Errors
    ///
    /// The database cannot be used for it. The error says why, and what to do.
    pub fn speak(&self, ended: &[u32], caller: &Caller<'_>) -> Result<(Speaker, Log), Error> {
        let mut connection = connect(&self.server, Purpose::Questions)?;
        check(&mut connection, &self.server)?;
        end_processes(&mut connection, ended)?;
        keeper::publish(&mut connection)?;
        keeper::ensure(&self.server, &self.keeper, &mut connection, caller)?;
        let log = log_of(&mut connection)?;
        Ok((Speaker::over(connection, self.prefix.clone())?, log))
    }

    /// Connects to hear what was said from this place on.
    ///
    /// # Errors
    ///
    /// The stream does not begin. The error says why, and what to do.
    pub fn listen(&self, from: u64) -> Result<Begun, Error> {
        let changes = connect(&self.server, Purpose::Changes)?;
        Listener::begin(changes, &self.prefix, &self.keeper, from)
    }

    /// Has the log before this place go, and makes the keeper again if it is gone.
    ///
    /// # Errors
    ///
    /// It did not go. The error says why, and what to do.
    pub fn keep_from(&self, place: u64, caller: &Caller<'_>) -> Result<(), Error> {
        let mut connection = connect(&self.server, Purpose::Questions)?;
        keeper::ensure(&self.server, &self.keeper, &mut connection, caller)?;
        let moved = keeper::advance(&self.keeper, &mut connection, place);
        connection.end();
        moved
    }

    /// The stream ended with this error: if the database gives it each time that it reads this part of its log, the
    /// keeper is removed, and another one is made next time.
    pub fn give_up(&self, error: &Error) {
        if !is_lasting(error) {
            return;
        }
        tracing::warn!(bus = %self.server.name, "the database cannot read its log: {error}. Slot {} is made again", self.keeper);
        let removed = connect(&self.server, Purpose::Questions).and_then(|mut connection| {
            keeper::remove(&self.keeper, &mut connection)?;
            connection.end();
            Ok(())
        });
        if let Err(error) = removed {
            let keeper = &self.keeper;
            tracing::warn!(
                bus = %self.server.name,
                "slot {keeper} cannot be removed: {error}; SELECT pg_drop_replication_slot('{keeper}') there"
            );
        }
    }
}

/// Whether a server takes messages, and tells them.
fn check(connection: &mut Connection, server: &ServerDef) -> Result<(), Error> {
    let rows = connection.query("SELECT pg_is_in_recovery()")?;
    if rows.first().and_then(|row| row.first()?.as_deref()) == Some("t") {
        let message = format!("server \"{}\" is a standby, which takes no messages", server.name);
        return Err(Error::new("25006", message).with_hint(format!(
            "name the primary: ALTER SERVER {} OPTIONS (SET host '...', SET port '...')",
            server.name
        )));
    }
    let version = check_server(connection, server)?;
    if version < TELLS_MESSAGES {
        let message = format!("server \"{}\" is PostgreSQL {}", server.name, version / 10_000);
        return Err(Error::new("0A000", message).with_hint("install PostgreSQL 14 or later there"));
    }
    Ok(())
}

fn log_of(connection: &mut Connection) -> Result<Log, Error> {
    let rows = connection.query(
        "SELECT system_identifier, ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int8
         FROM pg_control_system()",
    )?;
    let cell = |at: usize| rows.first().and_then(|row| row.get(at)?.as_deref());
    let read = || Some(Log { system: cell(0)?.to_owned(), timeline: cell(1)?.parse().ok()? });
    read().ok_or_else(|| Error::connection("the database does not say which one it is"))
}

/// Ends connections of this process that the database believes in still, and waits until they are gone.
fn end_processes(connection: &mut Connection, ended: &[u32]) -> Result<(), Error> {
    if ended.is_empty() {
        return Ok(());
    }
    let numbers: Vec<String> = ended.iter().map(u32::to_string).collect();
    // Both: the number may be another's by now.
    let own = format!("pid IN ({}) AND application_name = {}", numbers.join(", "), literal(own_name()));
    connection.query(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {own}"))?;
    let until = now() + SLOT_FREE_WAIT;
    loop {
        let left = connection.query(&format!("SELECT pid FROM pg_stat_activity WHERE {own}"))?;
        if left.is_empty() {
            return Ok(());
        }
        if now() >= until {
            return Err(Error::connection(
                "an earlier connection of this cache does not end at the database",
            ));
        }
        std::thread::sleep(STREAM_WAIT);
    }
}

/// A place in the log that a query gives as a number.
fn place_of(row: Option<&Vec<Option<String>>>) -> Result<u64, Error> {
    let place = row.and_then(|row| row.first()?.as_deref()?.parse().ok());
    place.ok_or_else(|| Error::connection("the database says no place of its log"))
}
