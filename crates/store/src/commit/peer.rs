//! Lists that another cache has told of a table whose rows travel. They are carried out row by row, so that each key is
//! spared of which a write of this cache is under way. Who reads meanwhile sees some of it done: so far transactions do
//! not travel.

use std::sync::Arc;

use super::{Change, Commits, Removals, Write};
use crate::clock::Tick;
use crate::error::WriteError;
use crate::row::request::Expect;
use crate::table::Table;

impl Commits {
    pub(super) fn commit_of_peer(&self, writes: &[Write], now: Tick) -> Result<u64, WriteError> {
        for Write { table, key, change, expect } in writes {
            let new = match change {
                Change::Put(row) => Some(row),
                Change::Delete => None,
            };
            // What is another row by now was written here, and that is under way.
            self.publish_of_peer(table, key, new, *expect, now)?;
        }
        Ok(self.arena.private().last_stamp())
    }

    pub(super) fn remove_of_peer(
        &self,
        table: &Arc<Table>,
        removals: &Removals,
        now: Tick,
    ) -> Result<u64, WriteError> {
        for (key, cas) in removals.iter() {
            self.publish_of_peer(table, key, None, Expect::Version(cas), now)?;
        }
        Ok(self.arena.private().last_stamp())
    }
}
