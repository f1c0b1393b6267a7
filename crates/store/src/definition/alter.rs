//! Columns that come and go: every row written before keeps its bytes, and is read through the new definition.
//!
//! A payload column has a slot, its place in payloads, which it keeps for good. Rows say how many slots they have
//! when that is not the table's first number (`codec.rs`), so a row needs no other version of the definition to be
//! read: a slot that it does not have belongs to a column that was added later, and a slot that no column has to one
//! that was dropped.

use super::{ColumnDef, DefinitionError, IndexDef, Slots, TableDef, TableOptions};
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
        let gone =
            |index: &IndexDef| !self.indexes.iter().any(|now| now.name.eq_ignore_ascii_case(&index.name));
        before.payload_slots().any(looser)
            || before.checks.iter().any(|check| !self.checks.contains(check))
            || before.indexes.iter().filter(matters).any(gone)
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
