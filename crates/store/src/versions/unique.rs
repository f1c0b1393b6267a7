//! Unique values: who holds one, and who has spoken for it.

use std::sync::Arc;

use arena::Location;

use crate::clock::Tick;
use crate::error::WriteError;
use crate::index::{Index, entry_of};
use crate::limits::EQUAL_ROWS_MAX;
use crate::row::RowBuf;
use crate::table::Table;
use crate::versions::Versions;
use crate::versions::swap::Pair;

impl Versions {
    /// Enters the new row into the unique indexes first, for they may refuse. Returns how many indexes were passed.
    pub(crate) fn take_unique(
        &self,
        table: &Table,
        maintained: &[Arc<Index>],
        versions: &Pair<'_>,
        now: Tick,
        keys: &mut [Vec<u8>; 2],
    ) -> Result<usize, WriteError> {
        let Pair { hash, old, held, new: Some(new), .. } = *versions else { return Ok(0) };
        for (at, index) in maintained.iter().enumerate() {
            let [old_key, new_key] = keys;
            if !index.def().unique || !index.sort_key(new, new_key) {
                continue;
            }
            if let Some(old) = old.filter(|_| held)
                && index.sort_key(old, old_key)
                && old_key == new_key
            {
                continue;
            }
            let entry = entry_of(hash, new.location());
            if !self.enter_unique(table, index, new_key, old.map(RowBuf::location), entry, now) {
                self.give_back(&maintained[..at], versions, &mut keys[1]);
                return Err(WriteError::Unique { index: index.name().to_owned(), write: 0 });
            }
        }
        Ok(maintained.len())
    }

    /// Checks and enters a unique value under one lock. `own` is the version being replaced.
    fn enter_unique(
        &self,
        table: &Table,
        index: &Index,
        key: &[u8],
        own: Option<Location>,
        entry: u64,
        now: Tick,
    ) -> bool {
        let location = Location::from_bits(entry);
        let rows = index.rows(&self.arena);
        let mut tree = index.tree.write();
        let mut equal = Vec::new();
        tree.equal(key, &rows, EQUAL_ROWS_MAX, &mut equal);
        let taken = equal
            .iter()
            .map(|&other| Location::from_bits(other))
            .any(|other| Some(other) != own && other != location && self.holds_values(table, other, now));
        if taken || !self.claim_reserved(index, key) {
            return false;
        }
        tree.insert(key, entry, &rows);
        true
    }

    /// Whether no commit has spoken for the value. One still in staging loses it: a single-key write never waits.
    pub(crate) fn claim_reserved(&self, index: &Index, key: &[u8]) -> bool {
        let mut reserved = index.reserved.lock();
        let Some(&slot) = reserved.get(key) else { return true };
        if !self.arena.private().doom(slot) {
            return false;
        }
        reserved.remove(key);
        true
    }

    /// Whether the row behind an index entry holds its unique values: it is live, or its writer entered it and is
    /// about to stamp and publish it.
    pub(crate) fn holds_values(&self, table: &Table, location: Location, now: Tick) -> bool {
        self.arena
            .of(location)
            .row(location)
            .is_some_and(|row| row.head().stamp == 0 || self.is_live(table, row.head(), now))
    }

    /// Takes the new row out of the unique indexes that it was entered into.
    pub(crate) fn give_back(&self, passed: &[Arc<Index>], versions: &Pair<'_>, key: &mut Vec<u8>) {
        let Some(new) = versions.new else { return };
        let entry = entry_of(versions.hash, new.location());
        for index in passed {
            if index.def().unique && index.sort_key(new, key) {
                index.tree.write().remove(key, entry, &index.rows(&self.arena));
            }
        }
    }
}
