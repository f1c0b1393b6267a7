//! `LOCK TABLE`. No statement here waits for another's rows, so there is nothing to lock: `COMMIT` finds out whether
//! somebody else changed what a transaction wrote.

use sql::{ColumnDescription, RowSink, SqlError};
use store::value::{Value, ValueRef};

use super::utility::Lock;
use super::{Outcome, SqlSession, SqlThreadContext};

impl SqlSession {
    /// Checks what is named, and says so where a client relies on more than that.
    pub(super) fn lock(&mut self, context: &mut SqlThreadContext, lock: &Lock) -> Result<Outcome, SqlError> {
        if !self.in_block() {
            return Err(SqlError::new("25P01", "LOCK TABLE can only be used in transaction blocks"));
        }
        for name in &lock.names {
            let values = [name.as_str(), lock.privileges].map(|text| Value::Text(text.into()));
            let (asked, mut may) = ("SELECT has_table_privilege($1, $2)", Truth(false));
            let read = self.run_at_once(context, asked, &values, &mut may);
            // A place in this text would be none in the client's.
            read.map_err(|error| SqlError { position: None, ..error })?;
            if !may.0 {
                return Err(SqlError::new("42501", format!("permission denied for table {name}")));
            }
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

/// The one value of an answer.
struct Truth(bool);

impl RowSink for Truth {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.0 = matches!(values, [ValueRef::Integer(1)]);
        Ok(())
    }
}
