//! Ordered indexes are filled with the rows that are there, while everybody reads and writes.

use std::sync::Arc;

use arena::{Arena, Hash, Location, TableId};

use crate::clock::Tick;
use crate::error::{DdlError, WriteError, ddl};
use crate::index::{Index, entry_of};
use crate::limits::{ELEMENTS_MAX, EQUAL_ROWS_MAX};
use crate::patience;
use crate::patience::{OPERATIONS_PER_LOOK, ROWS_PER_LOOK};
use crate::recovery::Recovery;
use crate::row::RowBuf;
use crate::table::Table;

/// What became of a row on its way into a new index.
enum Entered {
    Done,
    /// A unique value stands in another row.
    Taken,
    /// A commit has spoken for its unique value and is swapping its rows in.
    Busy,
}

impl Recovery {
    /// Fills the indexes that do not know every row, those of small tables first, and has every plan made again.
    pub(super) fn fill_indexes(&self) {
        let catalog = self.catalog();
        let mut tables: Vec<&Arc<Table>> = catalog.tables().collect();
        tables.retain(|table| table.indexes().iter().any(|index| !index.is_ready()));
        if tables.is_empty() {
            return;
        }
        tables.sort_by_key(|table| table.rows());
        for table in tables {
            for index in table.indexes().iter().filter(|index| !index.is_ready()) {
                // What was unique when it was written is entered as it is.
                let _whole = self.fill_index(table, index, false);
                index.readiness().set();
            }
        }
        let _one = self.definitions.lock();
        // Where there is no room for the same definitions once more, plans without these indexes stay: slow, not wrong.
        let _slow = self.install(self.catalog().tables().cloned().collect());
    }

    /// Enters every row that is there into a new index, a few buckets at a time. `check`: unique values are proved.
    pub(crate) fn fill_index(&self, table: &Table, index: &Index, check: bool) -> Result<(), DdlError> {
        let mut row = RowBuf::new();
        let mut key = Vec::new();
        let now = self.now();
        let (mut refused, mut canceled, mut crowded) = (false, false, false);
        let mut looks = 0_u64;
        // Rows whose unique value a commit is just swapping in somewhere: entered when it has ended.
        let mut busy: Vec<(Hash, Vec<u8>)> = Vec::new();
        self.each_row(table.id(), |hash, location| {
            looks += 1;
            canceled |= looks.is_multiple_of(ROWS_PER_LOOK) && patience::must_stop(OPERATIONS_PER_LOOK);
            if refused || canceled || crowded {
                return false;
            }
            if !self.load_stable(location, &mut row) || !index.holds(&row) {
                return true;
            }
            if check && index.is_of_elements() && !index.has_room_for(&row) {
                crowded |= self.is_live(table, row.head(), now);
                return !crowded;
            }
            if !check || index.is_of_elements() {
                let rows = index.rows(&self.arena);
                let mut tree = index.tree.write();
                index.each_entry(hash, &row, &mut key, |key, entry| {
                    tree.insert(key, entry, &rows);
                });
                return true;
            }
            match self.enter_row(table, index, hash, &row, &mut key, now) {
                Entered::Done => {}
                Entered::Taken => refused = true,
                Entered::Busy => busy.push((hash, row.key().to_vec())),
            }
            true
        });
        for (hash, row_key) in busy {
            while !refused && !canceled && !self.enter_by_key(table, index, hash, &row_key, &mut refused, now)
            {
                std::thread::yield_now();
            }
        }
        if canceled {
            return Err(ddl("57014", WriteError::Canceled.to_string()));
        }
        if crowded {
            let message = format!(
                "could not create index \"{}\": a row has more than {ELEMENTS_MAX} different elements",
                index.name()
            );
            return Err(ddl("54000", message));
        }
        if refused {
            return Err(ddl(
                "23505",
                format!(
                    "could not create unique index \"{}\": more than one row has the same value",
                    index.name()
                ),
            ));
        }
        Ok(())
    }

    /// Enters the current version of a key into a new index. False: a commit is still busy with its unique value.
    fn enter_by_key(
        &self,
        table: &Table,
        index: &Index,
        hash: Hash,
        key: &[u8],
        refused: &mut bool,
        now: Tick,
    ) -> bool {
        let shard = self.shard(hash).lock();
        let mut row = RowBuf::new();
        let found = self.arena.of(table.id()).find(&shard.token, hash, table.id(), key);
        if !found.is_some_and(|entry| self.load_stable(entry.location, &mut row)) {
            return true;
        }
        let entered = self.enter_row(table, index, hash, &row, &mut Vec::new(), now);
        *refused |= matches!(entered, Entered::Taken);
        !matches!(entered, Entered::Busy)
    }

    /// Enters one row, whose shard is locked, into a new index.
    fn enter_row(
        &self,
        table: &Table,
        index: &Index,
        hash: Hash,
        row: &RowBuf,
        key: &mut Vec<u8>,
        now: Tick,
    ) -> Entered {
        if !index.holds(row) {
            return Entered::Done;
        }
        let entry = entry_of(hash, row.location());
        let unique = index.sort_key(row, key) && self.is_live(table, row.head(), now);
        let rows = index.rows(&self.arena);
        let mut tree = index.tree.write();
        let mut equal = Vec::new();
        if unique {
            tree.equal(key, &rows, EQUAL_ROWS_MAX, &mut equal);
        }
        let rival = |&at: &u64| at != entry && self.holds_values(table, Location::from_bits(at), now);
        if equal.iter().any(rival) {
            return Entered::Taken;
        }
        if unique && !equal.contains(&entry) && !self.claim_reserved(index, key) {
            return Entered::Busy;
        }
        tree.insert(key, entry, &rows);
        Entered::Done
    }

    /// Visits the rows of a table under their shard's lock, each once, until `visit` says that it is enough.
    fn each_row(&self, id: TableId, mut visit: impl FnMut(Hash, Location) -> bool) {
        let shape = self.arena.of(id).scan_shape();
        let mut locations = Vec::new();
        let mut key = Vec::new();
        for group in 0..shape.groups {
            let shard = self.shard_at(Arena::shard_of_group(group)).lock();
            locations.clear();
            self.arena.of(id).scan_group(&shard.token, shape, group, id, &mut locations);
            for &location in &locations {
                let Some(read) = self.arena.of(location).row(location).filter(|row| row.head().table == id)
                else {
                    continue;
                };
                key.clear();
                read.copy_key(&mut key);
                if !visit(self.arena.of(id).hash(id, &key), location) {
                    return;
                }
            }
        }
    }
}
