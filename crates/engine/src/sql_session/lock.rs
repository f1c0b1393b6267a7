//! `LOCK TABLE`. No statement here waits for another's rows, so there is nothing to lock: `COMMIT` finds out whether
//! somebody else changed what a transaction wrote.

use sql::SqlError;

use super::utility::Lock;
use super::{NoRows, Outcome, SqlSession, SqlThreadContext};

impl SqlSession {
    /// Checks what is named, and says so where a client relies on more than that.
    pub(super) fn lock(&mut self, context: &mut SqlThreadContext, lock: &Lock) -> Result<Outcome, SqlError> {
        if !self.in_block() {
            return Err(SqlError::new("25P01", "LOCK TABLE can only be used in transaction blocks"));
        }
        for name in &lock.names {
            let read = self.run_at_once(context, &format!("SELECT 1 FROM {name} LIMIT 0"), &[], &mut NoRows);
            // A place in this text would be none in the client's.
            read.map_err(|error| SqlError { position: None, ..error })?;
        }
        if !lock.only_read {
            self.sql.note(
                "LOCK TABLE locks nothing: no transaction here waits for another",
                "COMMIT fails (40001) if another client changed a row that the transaction wrote",
            );
        }
        Ok(Outcome::Complete { tag: "LOCK TABLE", count: None })
    }
}
