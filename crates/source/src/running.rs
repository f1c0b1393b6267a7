//! Which transactions are under way at a source.

use crate::error::Error;
use crate::wire::Connection;

/// The transactions that are under way, of which some may be in the log already. Each keeps the lock of its own number
/// until others see what it did; a snapshot does not list those behind the last that others see.
pub(crate) fn unshown(beside: &mut Connection) -> Result<Vec<u64>, Error> {
    let rows = beside.query(
        "SELECT transactionid FROM pg_catalog.pg_locks
             WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock' AND granted",
    )?;
    let number = |row: &Vec<Option<String>>| row.first()?.as_deref()?.parse().ok();
    let numbers = rows.iter().map(number).collect::<Option<_>>();
    numbers.ok_or_else(|| Error::connection("the transactions of the source cannot be read"))
}
