//! All rows of a table removed in one step, as a commit of all of them would.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::commit::Commits;
use crate::error::{ReadError, WriteError};
use crate::mutation::Mutation;
use crate::row::RowBuf;
use crate::row::request::{Expect, Outcome};
use crate::table::Table;
use crate::table::standing::Standing;
use crate::versions::tap::applies_peers;

/// How long who removes all rows of a table waits for commits of many rows that are under way; those of some ten
/// thousand rows are through by then. After that the rows are removed one by one, which waits for none.
const COMMITS_PATIENCE: Duration = Duration::from_millis(100);

/// How many live rows a look at each of them found, and where the table stood then.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    pub(crate) rows: u64,
    pub(crate) standing: Standing,
}

impl Commits {
    /// A stamp up to which every write has taken effect and was told: who asks later finds no smaller one under way.
    /// None: a commit of many rows takes long.
    pub fn settled_stamp(&self) -> Option<u64> {
        let _none_commits = self.committing.try_write_for(COMMITS_PATIENCE)?;
        // A stamp is drawn and told under the lock of one of them.
        let _none_writes = self.lock_shards();
        Some(self.last_stamp())
    }

    /// Removes the rows of a table that were written after this stamp.
    pub fn remove_newer(&self, table: &Arc<Table>, stamp: u64) -> Result<u64, ReadError> {
        let (view, mut row, mut removed) = (self.view(), RowBuf::new(), 0);
        let mut scan = view.scan(table);
        while scan.next(&view, &mut row)? {
            if row.stamp() > stamp {
                let outcome = self.delete(table, row.key(), Expect::Stamp(row.stamp()), self.now());
                removed += u64::from(matches!(outcome, Ok(Outcome::Done(_))));
            }
        }
        Ok(removed)
    }

    /// Removes every row of a table in one step, as a commit of all of them would, and says how many there were. A
    /// statement that is reading the table fails. `None`, and nothing is done: only a look at each row can tell how
    /// many there are, or somebody wrote since they were `counted`.
    pub fn remove_whole(&self, table: &Table, counted: Option<Counted>) -> Result<Option<u64>, WriteError> {
        if self.is_unsettled() {
            return Ok(None);
        }
        let _mutation = Mutation;
        // A commit that has drawn its stamp and not swapped all its rows would be counted in part.
        let Some(_alone) = self.committing.try_write_for(COMMITS_PATIENCE) else { return Ok(None) };
        let all = self.lock_shards();
        table.check_removable()?;
        // Row by row, some of which are spared.
        if applies_peers(table) && self.is_under_way(table, None) {
            return Ok(None);
        }
        let now = self.now();
        let standing = Standing::of(table);
        let counted = counted.filter(|counted| counted.standing == standing).map(|counted| counted.rows);
        let rows = match table.state.row_count.exact(now, self.dead_below(table, now)).or(counted) {
            Some(rows @ 1..) => rows,
            none => return Ok(none),
        };
        self.statements.change(|| {
            let stamp = self.arena.private().next_stamp();
            // Relaxed: `flushed_below` is stored after it, with Release.
            table.state.removed_below.fetch_max(stamp, Ordering::Relaxed);
            self.raise_flushed(&all, table, stamp);
        });
        self.tell_emptied(table);
        drop(all);
        self.after_flush(table);
        self.count_operation(table);
        Ok(Some(rows))
    }
}
