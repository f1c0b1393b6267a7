//! Columns that come and go: every row written before keeps its bytes, and is read through the new definition.
//!
//! A payload column has a slot, its place in payloads, which it keeps for good. Rows say how many slots they have
//! when that is not the table's first number (`codec.rs`), so a row needs no other version of the definition to be
//! read: a slot that it does not have belongs to a column that was added later, and a slot that no column has to one
//! that was dropped.

use super::{CheckDef, ColumnDef, DefinitionError, IndexDef, Slots, TableDef, TableOptions};
pub use crate::limits::SLOTS_MAX;

impl TableDef {
    /// Adds a column behind the others; older rows hold `absent` in it.
    pub fn add_column(&mut self, mut column: ColumnDef) -> Result<usize, DefinitionError> {
        let slots = self.pin_slots();
        if slots.now >= SLOTS_MAX {
            let message = format!(
                "table \"{}\" has had {SLOTS_MAX} columns, dropped ones included; create a new table",
                self.name
            );
            return Err(DefinitionError::new("54011", message));
        }
        column.slot = Some(slots.now);
        self.slots = Some(Slots { now: slots.now + 1, ..slots });
        self.columns.push(column);
        Ok(self.columns.len() - 1)
    }

    /// Drops a column that nothing else in the definition reads.
    pub fn remove_column(&mut self, at: usize) {
        self.pin_slots();
        self.columns.remove(at);
        let moved = |column: &mut usize| *column -= usize::from(*column > at);
        self.primary_key.iter_mut().for_each(moved);
        for index in &mut self.indexes {
            index.columns.iter_mut().chain(&mut index.elements).chain(&mut index.predicate).for_each(moved);
        }
        self.options.value.iter_mut().chain(&mut self.options.tags).for_each(moved);
    }

    /// An earlier definition of this table, to be put in force again with these of its indexes. Places in payloads that
    /// were given out since stay taken, and options and privileges are what they are now.
    #[must_use]
    pub fn taken_back(&self, before: &Self, indexes: Vec<IndexDef>) -> Self {
        let mut again = before.clone();
        again.pin_slots();
        again.slots = self.slots.or(again.slots);
        let tags = self.options.tags.and_then(|at| before.column_index(&self.columns[at].name));
        let options = TableOptions { value: before.options.value, tags, ..self.options.clone() };
        for column in &mut again.columns {
            if let Some(now) = self.column_index(&column.name) {
                column.grants.clone_from(&self.columns[now].grants);
            }
        }
        let (access, numbers_grants) = (self.access.clone(), self.numbers_grants.clone());
        let (schema, numbers_below) = (self.schema, self.numbers_below);
        Self { schema, indexes, options, access, numbers_grants, numbers_below, ..again }
    }

    /// Whether rows may have been written under this definition that an earlier one does not allow, or that lack what
    /// it has.
    pub fn allows_more_than(&self, before: &Self) -> bool {
        let column_in = |slot: usize| self.payload_slots().find(|&(_, now)| now == slot).map(|(at, _)| at);
        let looser = |(at, slot): (usize, usize)| {
            column_in(slot).is_none_or(|now| before.columns[at].not_null && !self.columns[now].not_null)
        };
        // The hidden columns of an indexed expression go with their index.
        let matters = |index: &&IndexDef| index.unique || index.reads().any(|at| before.columns[at].hidden);
        let gone = |index: &IndexDef| !self.indexes.iter().any(|now| self.has_index_of(before, index, now));
        let lifted = |check: &CheckDef| !self.checks.iter().any(|now| self.has_check_of(before, check, now));
        before.payload_slots().any(looser)
            || before.checks.iter().any(lifted)
            || before.indexes.iter().filter(matters).any(gone)
    }

    /// Where a column of an earlier definition is by now, whatever its name is.
    fn column_of(&self, before: &Self, at: usize) -> Option<usize> {
        if let Some(of_key) = before.primary_key.iter().position(|&own| own == at) {
            return self.primary_key.get(of_key).copied();
        }
        let (_, slot) = before.payload_slots().find(|&(own, _)| own == at)?;
        self.payload_slots().find(|&(_, now)| now == slot).map(|(now, _)| now)
    }

    /// Whether an index is one of an earlier definition, whatever its name is: it forbids the same.
    fn has_index_of(&self, before: &Self, index: &IndexDef, now: &IndexDef) -> bool {
        let is_at = |own: &usize, now: &usize| self.column_of(before, *own) == Some(*now);
        let same = |own: &[usize], now: &[usize]| {
            own.len() == now.len() && own.iter().zip(now).all(|(own, now)| is_at(own, now))
        };
        now.unique == index.unique
            && now.collations == index.collations
            && same(&index.columns, &now.columns)
            && same(index.elements.as_slice(), now.elements.as_slice())
            && same(index.predicate.as_slice(), now.predicate.as_slice())
    }

    /// Whether a condition is one of an earlier definition, in which columns may have had other names.
    fn has_check_of(&self, before: &Self, check: &CheckDef, now: &CheckDef) -> bool {
        let renamed = |own: &str, other: &str| {
            let at = before.column_index(own).and_then(|at| self.column_of(before, at));
            at.is_some() && at == self.column_index(other)
        };
        let (own, other) = (words(&check.sql), words(&now.sql));
        let pairs = own.iter().zip(&other);
        own.len() == other.len() && pairs.into_iter().all(|(own, other)| own == other || renamed(own, other))
    }

    /// Writes down which slot each payload column has, for ranks are about to change.
    fn pin_slots(&mut self) -> Slots {
        let slots = self.slot_counts();
        let places: Vec<(usize, usize)> = self.payload_slots().collect();
        for (column, slot) in places {
            self.columns[column].slot = u16::try_from(slot).ok();
        }
        self.slots = Some(slots);
        slots
    }
}

/// The names of an expression, and what stands between them.
fn words(sql: &str) -> Vec<&str> {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    sql.split_inclusive(|c| !is_of_name(c))
        .flat_map(|part| match part.char_indices().next_back() {
            Some((at, last)) if !is_of_name(last) => vec![&part[..at], &part[at..]],
            _ => vec![part],
        })
        // A name is the same with quotation marks and without.
        .filter(|part| !part.is_empty() && *part != "\"")
        .collect()
}
