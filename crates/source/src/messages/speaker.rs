//! Says messages: each is committed, and flushed, when its answer comes.

use std::fmt;

use super::place_of;
use crate::error::Error;
use crate::limits::MESSAGE_WAIT;
use crate::pgoutput::literal;
use crate::wire::Connection;

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// Its commit lies at this place or behind it.
    pub from: u64,
    /// And before this one. Up to here the log is flushed, so a stream of it comes here soon.
    pub before: u64,
}

/// See the module.
pub struct Speaker {
    connection: Connection,
    prefix: String,
}

impl fmt::Debug for Speaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Speaker").field("process", &self.process()).finish_non_exhaustive()
    }
}

impl Speaker {
    pub(super) fn over(mut connection: Connection, prefix: String) -> Result<Self, Error> {
        // An answer that a power loss undoes would be none. Whoever waits for standbys, too, does so here.
        connection.query(
            "SELECT set_config('synchronous_commit', 'on', false)
             WHERE current_setting('synchronous_commit') IN ('off', 'local')",
        )?;
        Ok(Self { connection, prefix })
    }

    /// The process there that serves it.
    pub fn process(&self) -> Option<u32> {
        self.connection.process()
    }

    /// Has a message committed. After an error nobody knows whether it is.
    ///
    /// # Errors
    ///
    /// The database does not answer in time, or refuses it.
    pub fn say(&mut self, content: &[u8]) -> Result<Said, Error> {
        let mut digits = String::with_capacity(2 * content.len());
        for byte in content {
            digits.extend(
                [byte >> 4, byte & 15].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])),
            );
        }
        let rows = self.connection.query_within(
            &format!(
                "BEGIN; SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn;
                 SELECT pg_logical_emit_message(true, {}, decode('{digits}', 'hex')); COMMIT;
                 SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn",
                literal(&self.prefix)
            ),
            MESSAGE_WAIT,
        )?;
        Ok(Said { from: place_of(rows.first())?, before: place_of(rows.get(2))? })
    }

    /// Says that it ends.
    pub fn end(mut self) {
        self.connection.end();
    }
}
