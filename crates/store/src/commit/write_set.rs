//! A transaction's list: changes that only its own statements see, laid over the store until they are committed.
//!
//! At most one change stands for each key: the newest. It goes on bearing what the first statement that touched the key
//! expected to find there, so that one commit checks the whole transaction. Rows stand in the list as they will in the
//! arena, encoded, and are ordered by every index of their table, so that a [`View`](crate::View) can merge them with
//! stored rows whichever way it reads.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasherDefault;
use std::ops::Bound;
use std::sync::Arc;

use arena::TableId;

use crate::clock::Tick;
use crate::commit::chosen::Chosen;
use crate::commit::{Change, Write};
use crate::index::Index;
use crate::row::RowBuf;
use crate::row::new::NewRow;
use crate::row::request::{Expect, Expiry};
use crate::table::Table;
use crate::table::catalog::Catalog;

/// Bytes that a change takes beside its row: its places in the maps.
const CHANGE_BYTES: usize = 128;

/// The changes of one transaction that was not committed yet.
#[derive(Debug, Default)]
pub struct WriteSet {
    /// A transaction writes few tables.
    tables: Vec<TableWrites>,
    /// What undoes the changes since the first savepoint, the newest last.
    log: Vec<Step>,
    savepoints: usize,
    /// Whether the log has a [base](WriteSet::mark_base).
    based: bool,
    changes: usize,
    bytes: usize,
    /// Tables that a statement read since this was last taken.
    read: RefCell<Vec<TableId>>,
    /// Rows that it has read to write them later.
    chosen: Chosen,
}

/// Why a transaction can no longer be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    /// A table that it wrote was dropped.
    Dropped(String),
    /// The columns of a table that it wrote are others now.
    Redefined(String),
}

#[derive(Debug)]
enum Step {
    /// A savepoint's name.
    Savepoint(String),
    /// See [`WriteSet::mark_base`].
    Base,
    /// The table's newest change came.
    Came(TableId),
    /// This change replaced an earlier one of the same key.
    Was { table: TableId, slot: usize, after: Option<Box<RowBuf>> },
}

/// What a transaction made of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Laid<'a> {
    /// This row.
    Row(&'a RowBuf),
    /// No row.
    Gone,
}

/// The changes of one table.
#[derive(Debug)]
pub(crate) struct TableWrites {
    table: Arc<Table>,
    slots: Vec<Slot>,
    by_key: HashMap<Arc<[u8]>, usize, BuildHasherDefault<rapidhash::fast::RapidHasher<'static>>>,
    /// For each index of the table the rows that stand in it: sort key and slot.
    ordered: Vec<BTreeSet<Place>>,
}

/// A row's place in an index: its sort key, and its slot to tell equals apart.
pub(crate) type Place = (Box<[u8]>, usize);

#[derive(Debug)]
struct Slot {
    key: Arc<[u8]>,
    /// What the transaction found under the key when it first touched it.
    before: Expect,
    /// The row as the transaction leaves it; `None`: it is gone.
    after: Option<Box<RowBuf>>,
    /// Whether only statements that can be computed again have found it so.
    blind: bool,
    /// Whether such a statement removed it: that others have no row here is to be asked even where the transaction
    /// leaves none.
    asked: bool,
}

impl WriteSet {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keys that the transaction changed.
    pub fn changes(&self) -> usize {
        self.changes
    }

    /// How many savepoints there are.
    pub fn savepoints(&self) -> usize {
        self.savepoints
    }

    /// Bytes that the list takes, what its savepoints keep included.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is a change of this table.
    pub fn writes(&self, table: &Table) -> bool {
        self.of(table.id()).is_some_and(|own| !own.slots.is_empty())
    }

    /// Notes that a statement reads a table.
    pub(crate) fn note_read(&self, table: TableId) {
        let mut read = self.read.borrow_mut();
        if !read.contains(&table) {
            read.push(table);
        }
    }

    /// The rows that are read from now on are read to be written later.
    pub fn begin_choosing(&self) {
        self.chosen.begin();
    }

    /// They are not any more. False: there were more than a transaction may have.
    pub fn end_choosing(&self) -> bool {
        self.chosen.end()
    }

    /// Notes a row that a statement reads, which sees what was there at this stamp.
    #[inline]
    pub(crate) fn note_row(&self, table: TableId, row: &RowBuf, since: u64) {
        self.chosen.note(table, row, since);
    }

    /// The tables that were read since this was asked last.
    pub fn take_read(&mut self) -> Vec<TableId> {
        self.read.take()
    }

    /// Lays a statement's list over the store and over what the transaction wrote before.
    pub fn lay(&mut self, writes: Vec<Write>) {
        for write in writes {
            self.lay_one(write, false);
        }
    }

    /// The same for a statement that can be computed again.
    pub fn lay_blind(&mut self, writes: Vec<Write>) {
        for write in writes {
            self.lay_one(write, true);
        }
    }

    /// Sets the one place to [go back to](WriteSet::back_to_base). Savepoints before it take it away when they are gone
    /// back to.
    pub fn mark_base(&mut self) {
        self.based = true;
        self.log.push(Step::Base);
    }

    /// Takes back everything since the base, and the base.
    pub fn back_to_base(&mut self) {
        while self.based {
            self.undo_last();
        }
    }

    /// What was laid since the base stands from now on, as any other list.
    pub fn settle(&mut self) {
        for slot in self.tables.iter_mut().flat_map(|own| &mut own.slots) {
            (slot.blind, slot.asked) = (false, false);
        }
        self.log.retain(|step| !matches!(step, Step::Base));
        self.based = false;
        if self.savepoints == 0 {
            self.drop_log();
        }
    }

    fn lay_one(&mut self, write: Write, blind: bool) {
        let Write { table, key, change, expect } = write;
        let expect = self.chosen.expectation(table.id(), &key, expect);
        let after = match change {
            Change::Put(row) if row.expiry != Expiry::Now => Some(Box::new(RowBuf::own(&table, &key, &row))),
            Change::Put(_) | Change::Delete => None,
        };
        self.bytes += weight(after.as_deref());
        let logged = self.savepoints > 0 || self.based;
        let own = self.of_mut(&table);
        let step = if let Some(&slot) = own.by_key.get(key.as_slice()) {
            own.expect_exactly(slot, expect, blind);
            let after = own.replace(slot, after);
            Step::Was { table: table.id(), slot, after }
        } else {
            own.add(key.into(), expect, after, blind);
            self.changes += 1;
            self.bytes += CHANGE_BYTES;
            Step::Came(table.id())
        };
        match step {
            step if logged => self.log.push(step),
            Step::Was { after, .. } => self.bytes -= weight(after.as_deref()),
            _ => {}
        }
    }

    /// Sets a mark to go back to.
    pub fn savepoint(&mut self, name: String) {
        self.bytes += CHANGE_BYTES + name.len();
        self.savepoints += 1;
        self.log.push(Step::Savepoint(name));
    }

    /// Takes back what was done since the newest mark of this name, which stays. False: there is none.
    pub fn rollback_to(&mut self, name: &str) -> bool {
        let Some(mark) = self.mark(name) else { return false };
        while self.log.len() > mark + 1 {
            self.undo_last();
        }
        true
    }

    fn undo_last(&mut self) {
        match self.log.pop() {
            Some(Step::Came(table)) => self.undo_came(table),
            Some(Step::Was { table, slot, after }) => self.undo_was(table, slot, after),
            Some(Step::Savepoint(name)) => self.count_out(&name),
            Some(Step::Base) | None => self.based = false,
        }
    }

    /// Forgets the newest mark of this name and those after it; what was done since stays. False: there is none.
    pub fn release(&mut self, name: &str) -> bool {
        let Some(mark) = self.mark(name) else { return false };
        let since = self.log.split_off(mark);
        for step in since {
            match step {
                Step::Savepoint(name) => self.count_out(&name),
                step if self.savepoints > 0 || self.based => self.log.push(step),
                Step::Was { after, .. } => self.bytes -= weight(after.as_deref()),
                Step::Came(_) | Step::Base => {}
            }
        }
        if self.savepoints == 0 && !self.based {
            self.drop_log();
        }
        true
    }

    fn mark(&self, name: &str) -> Option<usize> {
        self.log.iter().rposition(|step| matches!(step, Step::Savepoint(own) if own == name))
    }

    fn count_out(&mut self, savepoint: &str) {
        self.savepoints -= 1;
        self.bytes -= CHANGE_BYTES + savepoint.len();
    }

    /// Without a savepoint nothing is ever undone.
    fn drop_log(&mut self) {
        for step in self.log.drain(..) {
            if let Step::Was { after, .. } = step {
                self.bytes -= weight(after.as_deref());
            }
        }
    }

    fn undo_came(&mut self, table: TableId) {
        let Some(own) = self.tables.iter_mut().find(|own| own.table.id() == table) else { return };
        let last = own.remove_last();
        self.changes -= 1;
        self.bytes -= CHANGE_BYTES + weight(last.as_deref());
    }

    fn undo_was(&mut self, table: TableId, slot: usize, after: Option<Box<RowBuf>>) {
        let Some(own) = self.tables.iter_mut().find(|own| own.table.id() == table) else { return };
        let newer = own.replace(slot, after);
        self.bytes -= weight(newer.as_deref());
    }

    /// Begins again without a change, under the same savepoints: what was written is in the store.
    pub fn begin_again(&mut self) {
        let Self { log, tables, mut chosen, .. } = std::mem::take(self);
        for own in &tables {
            own.slots.iter().for_each(|slot| chosen.forget(own.table.id(), &slot.key));
        }
        self.chosen = chosen;
        for step in log {
            if let Step::Savepoint(name) = step {
                self.savepoint(name);
            }
        }
    }

    /// Drops every change of a table for good: it was emptied or dropped, which no savepoint takes back.
    pub fn forget(&mut self, table: &Table) {
        let id = table.id();
        let Some(at) = self.tables.iter().position(|own| own.table.id() == id) else { return };
        let gone = self.tables.swap_remove(at);
        self.changes -= gone.slots.len();
        let held: usize = gone.slots.iter().map(|slot| CHANGE_BYTES + weight(slot.after.as_deref())).sum();
        self.bytes -= held;
        let bytes = &mut self.bytes;
        self.log.retain(|step| match step {
            Step::Was { table, after, .. } if *table == id => {
                *bytes -= weight(after.as_deref());
                false
            }
            Step::Came(table) => *table != id,
            _ => true,
        });
    }

    /// Drops the changes of tables that are no longer there.
    pub fn forget_dropped(&mut self, catalog: &Catalog) {
        let gone = |table: &Arc<Table>| catalog.current(table).is_none();
        let dropped: Vec<Arc<Table>> =
            self.tables.iter().map(|own| &own.table).filter(|table| gone(table)).cloned().collect();
        for table in dropped {
            self.forget(&table);
        }
    }

    /// Takes over the definitions of this moment. An index may have come or gone; where a table itself or its columns
    /// are others, the rows of the list mean nothing any more.
    pub fn rebase(&mut self, catalog: &Catalog) -> Result<(), Moved> {
        for own in &mut self.tables {
            let Some(now) = catalog.current(&own.table) else {
                return Err(Moved::Dropped(own.table.name().to_owned()));
            };
            if Arc::ptr_eq(now, &own.table) {
                continue;
            }
            let (new, old) = (now.def(), own.table.def());
            if new.schema != old.schema {
                return Err(Moved::Redefined(own.table.name().to_owned()));
            }
            own.table = Arc::clone(now);
            own.order_anew();
        }
        Ok(())
    }

    /// A copy of the list for [`Commits::commit`](crate::Commits::commit), and of each write whether it may be computed
    /// again.
    pub fn writes_again(&self) -> (Vec<Write>, Vec<bool>) {
        let mut found = (Vec::with_capacity(self.changes), Vec::with_capacity(self.changes));
        for TableWrites { table, slots, .. } in &self.tables {
            for slot in slots.iter().filter(|slot| !slot.leaves_nothing()) {
                let row = slot.after.as_deref().cloned();
                let change = row.map_or(Change::Delete, |row| Change::Put(row.into_new_row()));
                let (table, key) = (Arc::clone(table), slot.key.to_vec());
                found.0.push(Write { table, key, change, expect: slot.before });
                found.1.push(slot.blind);
            }
        }
        found
    }

    /// The list for [`Commits::commit`](crate::Commits::commit). Rows that came and went within the transaction leave
    /// nothing.
    pub fn into_writes(self) -> Vec<Write> {
        let mut writes = Vec::with_capacity(self.changes);
        for TableWrites { table, slots, .. } in self.tables {
            for slot in slots.into_iter().filter(|slot| !slot.leaves_nothing()) {
                let Slot { key, before, after, .. } = slot;
                let change = after.map_or(Change::Delete, |row| Change::Put(row.into_new_row()));
                writes.push(Write { table: Arc::clone(&table), key: key.to_vec(), change, expect: before });
            }
        }
        writes
    }

    fn of(&self, table: TableId) -> Option<&TableWrites> {
        self.tables.iter().find(|own| own.table.id() == table)
    }

    fn of_mut(&mut self, table: &Arc<Table>) -> &mut TableWrites {
        let known = self.tables.iter().position(|own| own.table.id() == table.id());
        let at = known.unwrap_or_else(|| {
            self.tables.push(TableWrites::new(table));
            self.tables.len() - 1
        });
        &mut self.tables[at]
    }

    /// What the transaction made of a key; `None`: nothing, the store knows.
    pub(crate) fn laid(&self, table: TableId, key: &[u8]) -> Option<Laid<'_>> {
        let own = self.of(table)?;
        let slot = *own.by_key.get(key)?;
        Some(own.slots[slot].after.as_deref().map_or(Laid::Gone, Laid::Row))
    }

    /// The row in the slot at or after a number, and that slot's number.
    pub(crate) fn row_from(&self, table: TableId, first: usize) -> Option<(usize, &RowBuf)> {
        let own = self.of(table)?;
        let mut rest = own.slots.iter().enumerate().skip(first);
        rest.find_map(|(slot, change)| Some((slot, change.after.as_deref()?)))
    }

    /// The table's rows by one of its indexes, if there are any.
    pub(crate) fn ordered(&self, table: TableId, index: &Index) -> Option<OrderedWrites<'_>> {
        let own = self.of(table)?;
        let at = own.table.indexes().iter().position(|known| known.name() == index.name())?;
        Some(OrderedWrites { own, places: &own.ordered[at] })
    }
}

/// The bytes of a row, or of its absence.
fn weight(row: Option<&RowBuf>) -> usize {
    row.map_or(0, RowBuf::heap_bytes)
}

impl Slot {
    /// A row that came and went.
    fn leaves_nothing(&self) -> bool {
        self.after.is_none() && self.before == Expect::Absent && !self.asked
    }
}

impl TableWrites {
    fn new(table: &Arc<Table>) -> Self {
        Self {
            table: Arc::clone(table),
            slots: Vec::new(),
            by_key: HashMap::default(),
            ordered: vec![BTreeSet::new(); table.indexes().len()],
        }
    }

    fn add(&mut self, key: Arc<[u8]>, before: Expect, after: Option<Box<RowBuf>>, blind: bool) {
        let slot = self.slots.len();
        self.by_key.insert(Arc::clone(&key), slot);
        self.slots.push(Slot { key, before, after: None, blind, asked: false });
        self.replace(slot, after);
    }

    /// A list that stands was computed from what its statement saw. Laid over a row that another statement, computed
    /// again, found only now, it brings its own expectation along.
    fn expect_exactly(&mut self, slot: usize, expect: Expect, blind: bool) {
        let slot = &mut self.slots[slot];
        if slot.blind && !blind && slot.after.is_some() {
            (slot.before, slot.blind) = (expect, false);
        }
        slot.asked |= blind;
    }

    fn replace(&mut self, slot: usize, after: Option<Box<RowBuf>>) -> Option<Box<RowBuf>> {
        self.take_out(slot);
        let before = std::mem::replace(&mut self.slots[slot].after, after);
        self.put_in(slot);
        before
    }

    fn remove_last(&mut self) -> Option<Box<RowBuf>> {
        self.take_out(self.slots.len().checked_sub(1)?);
        let last = self.slots.pop()?;
        self.by_key.remove(&last.key);
        last.after
    }

    fn take_out(&mut self, slot: usize) {
        let Some(row) = &self.slots[slot].after else { return };
        let indexes = self.table.indexes().iter().zip(&mut self.ordered);
        for (index, places) in indexes.filter(|(index, _)| index.holds(row)) {
            each_key(index, row, |key| {
                places.remove(&(key, slot));
            });
        }
    }

    fn put_in(&mut self, slot: usize) {
        let Some(row) = &self.slots[slot].after else { return };
        let indexes = self.table.indexes().iter().zip(&mut self.ordered);
        for (index, places) in indexes.filter(|(index, _)| index.holds(row)) {
            each_key(index, row, |key| {
                places.insert((key, slot));
            });
        }
    }

    fn order_anew(&mut self) {
        self.ordered = vec![BTreeSet::new(); self.table.indexes().len()];
        for slot in 0..self.slots.len() {
            self.put_in(slot);
        }
    }
}

/// The keys by which an index knows a row of the list, which has no place in the arena.
fn each_key(index: &Index, row: &RowBuf, mut take: impl FnMut(Box<[u8]>)) {
    index.each_entry(arena::Hash(0), row, &mut Vec::new(), |key, _| take(key.into()));
}

/// A table's rows of the list in the order of one index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrderedWrites<'a> {
    own: &'a TableWrites,
    places: &'a BTreeSet<Place>,
}

impl<'a> OrderedWrites<'a> {
    /// The row that follows `after` within the bounds, in the index's order or the reverse.
    pub(crate) fn next(
        &self,
        lower: &Bound<Vec<u8>>,
        upper: &Bound<Vec<u8>>,
        after: Option<&Place>,
        reverse: bool,
    ) -> Option<(&'a Place, &'a RowBuf)> {
        let mut lower = edge(lower, 0, usize::MAX);
        let mut upper = edge(upper, usize::MAX, 0);
        if let Some(after) = after {
            *(if reverse { &mut upper } else { &mut lower }) = Bound::Excluded(after.clone());
        }
        if is_empty(&lower, &upper) {
            return None;
        }
        let mut range = self.places.range((lower, upper));
        let place = if reverse { range.next_back() } else { range.next() }?;
        let row = self.own.slots[place.1].after.as_deref()?;
        Some((place, row))
    }
}

/// A bound of sort keys as one of places: an included key takes all its slots in, an excluded one none.
fn edge(bound: &Bound<Vec<u8>>, included: usize, excluded: usize) -> Bound<Place> {
    match bound {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(key) => Bound::Included((key.as_slice().into(), included)),
        Bound::Excluded(key) => Bound::Excluded((key.as_slice().into(), excluded)),
    }
}

/// Whether nothing can lie between; the maps of the standard library refuse such a range.
fn is_empty(lower: &Bound<Place>, upper: &Bound<Place>) -> bool {
    match (lower, upper) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
        (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) => lower >= upper,
    }
}

/// Whether a row of the list is still there at a moment: it may have a deadline of its own, and a table's `ttl` counts
/// from the commit.
pub(crate) fn is_there(row: &RowBuf, now: Tick) -> bool {
    !Expiry::of_word(row.head().expiry).has_come(now)
}

impl RowBuf {
    /// A row of a list, as the arena would give it back but for its stamp.
    fn own(table: &Table, key: &[u8], row: &NewRow) -> Self {
        Self::uncommitted(table.id(), key, row)
    }

    fn into_new_row(self) -> NewRow {
        let (expiry, renewal) = (self.deadline(), self.renewal());
        let (client_flags, cas) = (self.client_flags(), self.head().explicit_cas);
        NewRow { payload: self.into_payload(), expiry, client_flags, cas, renewal }
    }
}
