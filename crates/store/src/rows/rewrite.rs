//! Another version of a row that was just read: where the row stands and what it holds is not asked again.

use arena::{Hash, Lookup};

use crate::clock::Tick;
use crate::error::WriteError;
use crate::mutation::Mutation;
use crate::row::RowBuf;
use crate::row::new::NewRow;
use crate::row::request::{Expect, Outcome};
use crate::rows::Rows;
use crate::rows::read::LOOKUP_ATTEMPTS;
use crate::rows::write::{Glance, Target};
use crate::table::Table;
use crate::versions::tap::applies_peers;

/// Where a row was read that is going to be written again.
#[derive(Clone, Copy, Debug)]
pub struct Met {
    hash: Hash,
    glance: Glance,
    /// When.
    now: Tick,
}

impl Rows {
    /// As [`Rows::read`], for who is going to write the row again with [`Rows::rewrite`].
    pub fn meet(&self, table: &Table, key: &[u8], now: Tick, row: &mut RowBuf) -> Option<Met> {
        let hash = self.arena.of(table.id()).hash(table.id(), key);
        for _ in 0..LOOKUP_ATTEMPTS {
            match self.arena.of(table.id()).lookup(hash, table.id(), key) {
                Lookup::Hit(read) => {
                    // Before the copy says whether it is whole: the segment may be another's by then.
                    let queue = self.queue_of(read.location());
                    if row.load(&read) {
                        read.touch(now);
                        let met = Met { hash, glance: Glance { queue, seen: read.seen() }, now };
                        return self.is_live(table, row.head(), now).then_some(met);
                    }
                }
                Lookup::Miss => return None,
                Lookup::Busy => {}
            }
        }
        let is_there = self.read_hashed(table, hash, key, now, row) && self.is_live(table, row.head(), now);
        let glance = self.glance(table, hash, key, Expect::Anything, now).ok().filter(|_| is_there)?;
        // It may be of another version than the copy.
        Some(Met { hash, glance: Glance { seen: None, ..glance }, now })
    }

    /// Puts another version in the place of a row, under its key; the stamp. `Lost`: the row has changed since it was
    /// read. It is what [`Commits::commit`](crate::Commits::commit) makes of this one write.
    pub fn rewrite(&self, table: &Table, met: &Met, row: &RowBuf, new: &NewRow) -> Result<u64, WriteError> {
        let _mutation = Mutation;
        let Met { hash, glance: Glance { queue, seen }, now } = *met;
        self.count_operation(table);
        let (expect, payload) = (Expect::Version(row.cas()), [new.payload.as_slice()]);
        if applies_peers(table) {
            self.publish_of_peer(table, row.key(), Some(new), expect, now)?;
            return Ok(self.last_stamp());
        }
        let outcome = if table.has_ended(new.expiry, now) {
            self.remove_for_expired(table, row.key(), expect, now)
        } else {
            let target = Target { hash, key: row.key(), seen, copy: Some(row) };
            self.put_at(table, &target, queue, &new.parts(row.key(), &payload), expect, now)
        };
        match outcome? {
            Outcome::Done(stamp) => Ok(stamp),
            _ => Err(WriteError::Lost(vec![0])),
        }
    }
}
