//! Unique values that a commit speaks for before it turns, so that none can be refused afterwards.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use arena::{CommitSlot, Location, TableId};

use super::Commit;
use crate::clock::Tick;
use crate::commit::Commits;
use crate::error::WriteError;
use crate::index::Index;
use crate::limits::EQUAL_ROWS_MAX;
use crate::row::RowBuf;
use crate::table::Table;
use crate::versions::commit::StagedRows;

/// Rounds a commit waits for another that has spoken for a value, before it gives way. Nobody waits in a circle: the
/// other waits for values behind this one only.
const WAIT_ROUNDS: usize = 1_000_000;

/// The rows that a commit writes: what they hold is the commit's to give.
type OwnKeys<'c> = HashSet<(TableId, &'c [u8])>;

/// The values that a commit's new rows bring to unique indexes.
#[derive(Debug, Default)]
struct Values {
    indexes: Vec<Arc<Index>>,
    /// The values as sort keys, one behind the other.
    keys: Vec<u8>,
    list: Vec<Value>,
}

#[derive(Clone, Copy, Debug)]
struct Value {
    /// Among the indexes.
    index: usize,
    /// Where its sort key begins and ends.
    key: (usize, usize),
    /// The write that brings it.
    write: usize,
}

impl Values {
    fn key(&self, value: &Value) -> &[u8] {
        &self.keys[value.key.0..value.key.1]
    }

    /// By index and value, the same order for all commits: two that want the same values meet at the first of them.
    fn sort(&mut self) {
        let mut list = std::mem::take(&mut self.list);
        list.sort_unstable_by(|one, other| self.compare(one, other));
        self.list = list;
    }

    fn compare(&self, one: &Value, other: &Value) -> Ordering {
        // By name first, so that of several broken ones the same is reported each time. An index is the same under
        // every definition of its table by the values that are spoken for in it.
        let place = |value: &Value| {
            let index = &self.indexes[value.index];
            (index.name(), Arc::as_ptr(&index.reserved).addr())
        };
        let by_key = || self.key(one).cmp(self.key(other));
        place(one).cmp(&place(other)).then_with(by_key).then_with(|| one.write.cmp(&other.write))
    }
}

impl Commits {
    /// Speaks for the unique values of the new rows, so that none can be refused once the commit has turned.
    pub(super) fn reserve_unique(&self, commit: &Commit, now: Tick) -> Result<(), WriteError> {
        let rows = &commit.rows;
        if rows.iter().all(|staged| staged.new.is_none())
            || !rows.tables().iter().any(|table| table.has_unique())
        {
            return Ok(());
        }
        // By key, not by place: eviction may move a row that the commit replaces.
        let own: OwnKeys<'_> =
            rows.iter().map(|staged| (rows.table(staged).id(), rows.key(staged))).collect();
        let values = self.unique_values(rows);
        for value in &values.list {
            let (table, index) = (rows.table(rows.row(value.write)), &values.indexes[value.index]);
            if !self.reserve_value(commit.slot, table, index, values.key(value), &own, now) {
                return Err(WriteError::Unique { index: index.name().to_owned(), write: value.write });
            }
        }
        Ok(())
    }

    /// The unique values of the new rows, in the order in which they are spoken for.
    fn unique_values(&self, rows: &StagedRows) -> Values {
        let mut values = Values::default();
        let mut of_tables = Vec::with_capacity(rows.tables().len());
        for table in rows.tables() {
            let begin = values.indexes.len();
            let maintained = table.state.maintained.load();
            values.indexes.extend(maintained.iter().filter(|index| index.def().unique).cloned());
            of_tables.push(begin..values.indexes.len());
        }
        let (mut row, mut key) = (RowBuf::new(), Vec::new());
        for (write, staged) in rows.iter().enumerate() {
            let indexes = of_tables[staged.table].clone();
            let Some(location) = staged.new.filter(|_| !indexes.is_empty()) else { continue };
            if !self.load_stable(location, &mut row) {
                continue;
            }
            for index in indexes {
                if values.indexes[index].sort_key(&row, &mut key) {
                    let begin = values.keys.len();
                    values.keys.extend_from_slice(&key);
                    values.list.push(Value { index, key: (begin, values.keys.len()), write });
                }
            }
        }
        values.sort();
        values
    }

    fn reserve_value(
        &self,
        slot: CommitSlot,
        table: &Table,
        index: &Index,
        key: &[u8],
        own: &OwnKeys<'_>,
        now: Tick,
    ) -> bool {
        let mut row = RowBuf::new();
        for _ in 0..WAIT_ROUNDS {
            let rows = index.rows(&self.arena);
            let tree = index.tree.read();
            let mut equal = Vec::new();
            tree.equal(key, &rows, EQUAL_ROWS_MAX, &mut equal);
            let taken = equal.iter().map(|&at| Location::from_bits(at)).any(|at| {
                let foreign = self.load_stable(at, &mut row) && !own.contains(&(table.id(), row.key()));
                foreign && self.holds_values(table, at, now)
            });
            if taken {
                return false;
            }
            let mut reserved = index.reserved.lock();
            match reserved.get(key) {
                None => {
                    reserved.insert(key.into(), slot);
                    return true;
                }
                // Two rows of one commit want the same value.
                Some(&other) if other == slot => return false,
                Some(_) => {}
            }
            drop(reserved);
            drop(tree);
            std::thread::yield_now();
        }
        false
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails says where")]
mod tests {
    use super::*;
    use crate::clock::{Clock, ManualClock};
    use crate::commit::{Change, Write};
    use crate::definition::{ColumnDef, IndexDef, TableDef};
    use crate::row::new::NewRow;
    use crate::row::renewal::Renewal;
    use crate::row::request::{Expect, Expiry};
    use crate::store::{Store, StoreOptions};
    use crate::value::ValueRef;

    /// Two commits that want the same values in opposite order speak for them in the same one: neither has what the
    /// other waits for.
    #[test]
    fn commits_speak_for_values_in_the_same_order() {
        const VALUES: i64 = 50;
        let clock = Clock::Manual(ManualClock::new(1_700_000_000));
        let options =
            StoreOptions { path: None, memory_bytes: 16 << 20, cold: false, clock, row_bytes_max: 1 << 20 };
        let store = Store::open(&options).unwrap().store;
        let columns = ["k", "u", "v"].map(|name| ColumnDef::new(name, "INT").unwrap()).into();
        let mut def = TableDef::new("t", columns, vec![0]);
        def.indexes = vec![IndexDef::new("t_u", vec![1], true), IndexDef::new("t_v", vec![2], true)];
        let table = store.create_table(def).unwrap();
        let write = |key: i64, value: i64| {
            let values = [key, value, -value].map(ValueRef::Integer);
            let (mut key, mut payload) = (Vec::new(), Vec::new());
            table.encode_row(&values, &mut key, &mut payload).unwrap();
            let renewal = Renewal::default();
            let row = NewRow { payload, expiry: Expiry::Table, client_flags: 0, cas: None, renewal };
            Write { table: Arc::clone(&table), key, change: Change::Put(row), expect: Expect::Absent }
        };
        let up: Vec<Write> = (0..VALUES).map(|n| write(n, n)).collect();
        let down: Vec<Write> = (0..VALUES).rev().map(|n| write(VALUES + n, n)).collect();
        let spoken_for = |writes: &[Write]| {
            let (rows, placed) = store.stage(writes, store.now()).unwrap();
            let values = store.unique_values(&rows);
            let names = values
                .list
                .iter()
                .map(|value| (values.indexes[value.index].name().to_owned(), values.key(value).to_vec()));
            let names: Vec<(String, Vec<u8>)> = names.collect();
            for placed in &placed {
                store
                    .arena
                    .of(placed.version.location)
                    .write_filler(placed.version.location, placed.version.bytes);
            }
            names
        };
        let (first, second) = (spoken_for(&up), spoken_for(&down));
        assert_eq!(first.len(), 2 * up.len());
        assert_eq!(first, second);
    }
}
