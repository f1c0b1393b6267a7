//! What takes a definition back that a transaction made: it took effect at once, and `ROLLBACK` undoes it.

use std::sync::Arc;

use pgcatalog::sequence;
use store::definition::access::take_back;
use store::definition::{EnumDef, Grant, IndexDef, NamespaceDef, Privileges, SequenceDef, TableDef, ViewDef};
use store::{Store, Table};

use super::grant::hand_over;
use crate::error::SqlError;

/// Bytes that a step is counted as: a definition of some dozens of columns.
const STEP_BYTES: usize = 8 << 10;

/// How a definition is taken back.
#[derive(Clone, Debug)]
pub(crate) enum Undo {
    /// It cannot be: what it destroyed is gone.
    Impossible,
    /// The table is dropped.
    Table(Arc<Table>),
    /// The table gets this definition again.
    Altered(Arc<Table>, Box<TableDef>),
    /// The view is dropped.
    View(String),
    /// The view is made again.
    ViewGone(Box<ViewDef>),
    /// The enum type is dropped.
    Enum(String),
    /// The enum type is made again.
    EnumGone(Arc<EnumDef>),
    /// The enum type of now this name is again what it was.
    EnumAltered(String, Arc<EnumDef>),
    /// The sequence is dropped.
    Sequence(String),
    /// The sequence is made again.
    SequenceGone(Box<SequenceDef>),
    /// The sequence of now this name is again what it was, and where it was if it had begun elsewhere.
    SequenceAltered(String, Box<SequenceDef>, bool),
    /// The schema is dropped.
    Schema(String),
    /// The schema is made again.
    SchemaGone(Arc<NamespaceDef>),
    /// The view gets this comment again.
    ViewComment(String, Option<String>),
    /// What was granted of a table, view or sequence is as before, but for what others changed since.
    Access {
        /// Its name.
        relation: String,
        /// Of all of it and of each column, by their names.
        before: Vec<(Option<String>, Vec<Grant>)>,
        /// The same after the change.
        after: Vec<(Option<String>, Vec<Grant>)>,
    },
    /// A table, view or sequence gets this owner again.
    Owner(String, Option<String>),
}

/// The definitions of an open transaction, the newest last. Dropped, it takes them back: also where the client is gone.
#[derive(Debug, Default)]
pub(crate) struct Undoing {
    store: Option<Arc<Store>>,
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Undo(Undo),
    /// A savepoint's name.
    Savepoint(String),
}

impl Undoing {
    /// Notes how a definition is taken back.
    pub(crate) fn add(&mut self, store: &Arc<Store>, undo: Undo) {
        if !matches!(undo, Undo::Impossible) {
            self.store.get_or_insert_with(|| Arc::clone(store));
            self.steps.push(Step::Undo(undo));
        }
    }

    /// Bytes that it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        self.steps.len() * STEP_BYTES
    }

    /// The transaction is committed: its definitions stay.
    pub(crate) fn keep(&mut self) {
        self.steps.clear();
    }

    /// Sets a mark, if there is anything to go back from.
    pub(crate) fn savepoint(&mut self, name: &str) {
        if !self.steps.is_empty() {
            self.steps.push(Step::Savepoint(name.to_owned()));
        }
    }

    /// Takes back what came after the newest mark of this name: all, if that lies before the first definition. What
    /// went wrong is returned.
    pub(crate) fn roll_back_to(&mut self, name: &str) -> Vec<SqlError> {
        let from = self.mark(name).map_or(0, |mark| mark + 1);
        self.take_back(from)
    }

    /// Takes back everything.
    pub(crate) fn roll_back(&mut self) -> Vec<SqlError> {
        self.take_back(0)
    }

    /// Forgets the newest mark of this name and those after it.
    pub(crate) fn release(&mut self, name: &str) {
        let tail = self.steps.split_off(self.mark(name).unwrap_or(0));
        self.steps.extend(tail.into_iter().filter(|step| matches!(step, Step::Undo(_))));
    }

    fn mark(&self, name: &str) -> Option<usize> {
        self.steps.iter().rposition(|step| matches!(step, Step::Savepoint(own) if own == name))
    }

    fn take_back(&mut self, from: usize) -> Vec<SqlError> {
        let steps = self.steps.split_off(from);
        let Some(store) = &self.store else { return Vec::new() };
        let undo = |step| match step {
            Step::Undo(undo) => undo.run(store).err(),
            Step::Savepoint(_) => None,
        };
        steps.into_iter().rev().filter_map(undo).collect()
    }
}

impl Drop for Undoing {
    fn drop(&mut self) {
        // There is no client left to warn.
        self.roll_back();
    }
}

impl Undo {
    pub(crate) fn run(self, store: &Store) -> Result<(), SqlError> {
        match self {
            Self::Impossible => Ok(()),
            Self::Table(table) => match store.catalog().current(&table) {
                Some(now) => Ok(store.drop_table(now.name())?),
                None => Ok(()),
            },
            Self::Altered(table, before) => match store.catalog().current(&table) {
                Some(now) => redefine(store, now.name(), &before),
                None => Ok(()),
            },
            Self::View(name) => Ok(store.drop_view(&name)?),
            Self::ViewGone(mut view) => {
                // One that was replaced keeps the privileges of now.
                if let Some(now) = store.catalog().view(&view.name) {
                    view.access.clone_from(&now.access);
                }
                Ok(store.create_view(*view, true)?)
            }
            Self::Enum(name) => Ok(store.drop_enum(&name)?),
            Self::EnumGone(own) => Ok(store.create_enum(EnumDef::clone(&own))?),
            Self::EnumAltered(name, before) => {
                store.alter_enum(&name, &mut |own| {
                    own.clone_from(&before);
                    Ok(())
                })?;
                Ok(())
            }
            Self::Sequence(name) => Ok(store.drop_sequence(&name)?),
            Self::SequenceGone(own) => Ok(store.create_sequence(*own)?),
            Self::SequenceAltered(name, before, restarted) => {
                store.alter_sequence(&name, &mut |def| {
                    let place = if restarted { before.place } else { def.place };
                    let access = def.access.clone();
                    *def = SequenceDef { place, access, ..SequenceDef::clone(&before) };
                    Ok(())
                })?;
                Ok(())
            }
            Self::Schema(name) => Ok(store.drop_namespace(&name)?),
            Self::SchemaGone(own) => Ok(store.create_namespace(NamespaceDef::clone(&own))?),
            Self::ViewComment(name, comment) => Ok(store.comment_view(&name, comment.as_deref())?),
            Self::Access { relation, before, after } => regrant(store, &relation, &before, &after),
            Self::Owner(relation, owner) => {
                if let Some(owner) = owner {
                    return hand_over(store, &relation, &owner);
                }
                store.change_access(&relation, &mut |access| {
                    access.whole.owner = None;
                    Ok(())
                })?;
                Ok(())
            }
        }
    }
}

/// Puts grants back that a change made.
fn regrant(
    store: &Store,
    relation: &str,
    before: &[(Option<String>, Vec<Grant>)],
    after: &[(Option<String>, Vec<Grant>)],
) -> Result<(), SqlError> {
    let catalog = store.catalog();
    let is_relation = catalog.table(relation).is_some() || catalog.view(relation).is_some();
    if !is_relation && sequence::access_of(&catalog, relation).is_none() {
        return Ok(());
    }
    let all = if is_relation { Privileges::ALL } else { Privileges::OF_SEQUENCE };
    sequence::change_access(store, relation, &mut |access| {
        let mut whole = access.whole.listed(all);
        for ((of, before), (_, after)) in before.iter().zip(after) {
            match of {
                None => take_back(&mut whole, before, after),
                Some(name) => {
                    let column = access.columns.iter_mut().find(|(own, _)| own == name);
                    if let Some((_, now)) = column {
                        take_back(now, before, after);
                    }
                }
            }
        }
        access.whole.grants = Some(whole);
        Ok(())
    })?;
    Ok(())
}

/// Puts the definition in force that was there before. A value in a column that was dropped and is there again is the
/// row's own, unless somebody wrote the row meanwhile.
pub(super) fn redefine(store: &Store, table: &str, before: &TableDef) -> Result<(), SqlError> {
    let def = |name: &str| {
        let catalog = store.catalog();
        catalog.table(name).map(|table| table.def().clone()).ok_or_else(|| SqlError::unknown_table(name))
    };
    let after = def(table)?;
    let is_in =
        |indexes: &[IndexDef], name: &str| indexes.iter().any(|other| other.name.eq_ignore_ascii_case(name));
    for index in after.indexes.iter().filter(|index| !is_in(&before.indexes, &index.name)) {
        store.drop_index(&after.qualified(&index.name))?;
    }
    if def(table)? != *before {
        store.alter_table(table, &mut |def| {
            // In the order of now: the store pairs a definition with its entries by their place, and an index that was
            // made again stands last.
            let earlier = |now: &IndexDef| {
                before.indexes.iter().find(|index| index.name.eq_ignore_ascii_case(&now.name)).cloned()
            };
            let indexes = def.indexes.iter().filter_map(earlier).collect();
            *def = def.taken_back(before, indexes);
            Ok(())
        })?;
    }
    if after.options != before.options {
        store.set_options(&before.name, &mut |options, _| {
            options.clone_from(&before.options);
            Ok(())
        })?;
    }
    for index in before.indexes.iter().filter(|index| !is_in(&after.indexes, &index.name)) {
        store.create_index(&before.name, index.clone())?;
    }
    Ok(())
}
