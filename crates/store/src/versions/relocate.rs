//! A version that moves to another place, or takes over what the one before it was given.

use arena::{Hash, RowHead, SegmentId, SlotId};

use crate::clock::{NEVER, Tick};
use crate::index::moved;
use crate::row::RowBuf;
use crate::row::version::Version;
use crate::table::Table;
use crate::versions::Versions;
use crate::versions::shard::Shard;

impl Versions {
    /// Points slot and index entries of a row at a copy of it, and keeps the hits; none if the slot does not name the
    /// version that was copied any more.
    pub(crate) fn relocate(
        &self,
        shard: &mut Shard,
        table: &Table,
        hash: Hash,
        row: &RowBuf,
        to: &Version,
    ) -> Option<SlotId> {
        let slot = self.find_copied(shard, hash, row)?;
        self.arena.of(to.location).stamp_row(to.location, row.stamp());
        self.carry_deadline(row, to);
        self.arena.of(table.id()).relocate(&mut shard.token, slot, hash, table.id(), to.location);
        if !table.state.maintained.is_empty() {
            for index in table.state.maintained.load().iter() {
                let rows = index.rows(&self.arena);
                index.each_entry(hash, row, &mut Vec::new(), |key, entry| {
                    index.tree.write().replace_location(key, entry, moved(entry, to.location), &rows);
                });
            }
        }
        self.account_moved(table, row.location(), to);
        Some(slot)
    }

    /// Gives the copy of a row the deadline and the lease that were set since it was copied. The shard is locked.
    fn carry_deadline(&self, copied: &RowBuf, to: &Version) {
        let Some(row) = self.arena.of(copied.location()).row(copied.location()) else { return };
        let (now, then) = (row.head(), copied.head());
        if now.expiry != then.expiry {
            self.note_deadline(to.segment, now.expiry);
            self.arena.of(to.location).set_expiry(to.location, now.expiry);
        }
        if now.lease != then.lease {
            self.arena.of(to.location).set_lease(to.location, now.lease);
        }
    }

    /// Notes a row's expiry word for its segment, which comes back whole when the last deadline has passed.
    pub(crate) fn note_deadline(&self, segment: SegmentId, word: Tick) {
        self.arena.of(segment).note_expiry(segment, if word == NEVER { 0 } else { word });
    }

    /// Gives a version in its place what it keeps of the row that it is going to replace, whose shard is locked. False:
    /// the place has no word for it. The row was written again since it was read, in a way that its CAS value does not
    /// show, so the caller reads it again.
    pub(crate) fn take_over(&self, version: &mut Version, found: &RowHead) -> bool {
        let Some(new) = self.arena.of(version.location).row(version.location).map(|row| *row.head()) else {
            return false;
        };
        if version.keep.lease && new.lease != found.lease {
            if !new.has_expiry() {
                return false;
            }
            self.arena.of(version.location).set_lease(version.location, found.lease);
        }
        let Some(own) = version.keep.deadline else { return true };
        let word = if found.expiry == 0 { own } else { found.expiry };
        if (word == 0) != (new.expiry == 0) {
            return false;
        }
        if word != new.expiry {
            self.note_deadline(version.segment, word);
            self.arena.of(version.location).set_expiry(version.location, word);
            version.expiry = word;
        }
        true
    }
}
