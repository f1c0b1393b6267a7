//! What takes a definition back that a transaction made: it took effect at once, and `ROLLBACK` undoes it.

use std::sync::Arc;

use pgcatalog::sequence;
use store::definition::access::take_back;
use store::definition::{
    EnumDef, Grant, IndexDef, NamespaceDef, Privileges, RoutineDef, SequenceDef, ServerDef, TableDef, ViewDef,
};
use store::{DdlError, Expect, Store, Table};

use super::grant::hand_over;
use crate::error::SqlError;

/// Bytes that a step is counted as: a definition of some dozens of columns.
const STEP_BYTES: usize = 8 << 10;

/// Bytes that a key is counted as.
const KEY_BYTES: usize = 64;

/// How a definition is taken back.
#[derive(Clone, Debug)]
pub(crate) enum Undo {
    /// It cannot be: its rows are gone.
    Impossible,
    /// The table is dropped.
    Table(Arc<Table>),
    /// The table is made again without its rows, with the sequences that went with it.
    TableGone(Arc<Table>, Vec<SequenceDef>),
    /// The table gets this definition again.
    Altered(Arc<Table>, Box<TableDef>),
    /// The same where rows may have come since this stamp that it does not allow: they go. Where every row was written
    /// again, values of columns that were dropped before are lost.
    Loosened {
        /// The table.
        table: Arc<Table>,
        /// What it was.
        before: Box<TableDef>,
        /// The last stamp before.
        since: u64,
        /// Every row was written again.
        rewritten: bool,
    },
    /// The rows of these keys go: the transaction wrote them, and committed them before a definition. `None`: all rows
    /// of the table.
    Written(Arc<Table>, Option<Vec<Vec<u8>>>),
    /// An index of the table, or the constraint of its key, is called again as before.
    IndexRenamed {
        /// The table.
        table: Arc<Table>,
        /// What the index was called; `None`: it is the key's.
        before: Option<String>,
        /// What it is called now.
        now: String,
        /// What the constraint of the key was called.
        key_name: Option<String>,
    },
    /// The view is dropped.
    View(String),
    /// The view is made again.
    ViewGone(Box<ViewDef>),
    /// The view of now this name is again what it was.
    ViewAltered(String, Box<ViewDef>),
    /// The function or procedure is dropped.
    Routine(String),
    /// The function or procedure is made again, or is as it was.
    RoutineGone(Box<RoutineDef>),
    /// The function or procedure of this name gets its other one again.
    RoutineRenamed(String, String),
    /// The foreign server of now this name is again what it was; none: it is dropped.
    Server(String, Option<Box<ServerDef>>),
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
    /// What became of tables when steps behind a savepoint were undone.
    undone: Undone,
}

#[derive(Debug)]
enum Step {
    Undo(Undo),
    /// What has the next start take a definition back.
    Written(store::Step),
    /// A savepoint's name.
    Savepoint(String),
}

/// What became of tables while definitions were undone.
#[derive(Debug, Default)]
pub(crate) struct Undone {
    /// Tables that were dropped, each with the one that was made again.
    revived: Vec<(Arc<Table>, Arc<Table>)>,
    /// Tables whose rows lost the values of columns that are to come back.
    rewritten: Vec<Arc<Table>>,
}

impl Undone {
    /// The table as it is defined now, though it may have been dropped meanwhile.
    fn current(&self, store: &Store, table: &Table) -> Option<Arc<Table>> {
        let catalog = store.catalog();
        if let Some(now) = catalog.current(table) {
            return Some(Arc::clone(now));
        }
        let again = self.revived.iter().rev().find(|(gone, _)| store::Table::is_same(gone, table))?;
        catalog.current(&again.1).cloned()
    }
}

impl Undoing {
    /// Notes how a definition is taken back.
    pub(crate) fn add(&mut self, store: &Arc<Store>, undo: Undo) {
        self.store.get_or_insert_with(|| Arc::clone(store));
        match undo {
            Undo::Impossible => {}
            // Last of all: the transaction goes on behind its savepoints with what it committed.
            Undo::Written(..) => self.steps.insert(0, Step::Undo(undo)),
            undo => self.steps.push(Step::Undo(undo)),
        }
    }

    /// Notes what the next start would take back.
    pub(crate) fn add_written(&mut self, store: &Arc<Store>, step: store::Step) {
        self.store.get_or_insert_with(|| Arc::clone(store));
        self.steps.push(Step::Written(step));
    }

    /// The transaction as the store knows it; `None`: it has not defined anything.
    pub(crate) fn transaction(&self) -> Option<store::Transaction> {
        self.steps.iter().find_map(|step| match step {
            Step::Written(step) => Some(step.transaction()),
            Step::Undo(_) | Step::Savepoint(_) => None,
        })
    }

    /// Bytes that it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        let keys = |step: &Step| match step {
            Step::Undo(Undo::Written(_, Some(keys))) => keys.len() * KEY_BYTES,
            _ => 0,
        };
        self.steps.len() * STEP_BYTES + self.steps.iter().map(keys).sum::<usize>()
    }

    /// The transaction is committed: its definitions stay. An error says that they are not written so yet; the next
    /// definition of anybody does that.
    pub(crate) fn keep(&mut self) -> Result<(), SqlError> {
        let Some(store) = &self.store else { return Ok(()) };
        let written = |step| match step {
            Step::Written(step) => Some(step),
            Step::Undo(_) | Step::Savepoint(_) => None,
        };
        let steps: Vec<store::Step> = self.steps.drain(..).filter_map(written).collect();
        Ok(store.close_steps(&steps)?)
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
        self.steps.extend(tail.into_iter().filter(|step| !matches!(step, Step::Savepoint(_))));
    }

    fn mark(&self, name: &str) -> Option<usize> {
        self.steps.iter().rposition(|step| matches!(step, Step::Savepoint(own) if own == name))
    }

    fn take_back(&mut self, from: usize) -> Vec<SqlError> {
        let steps = self.steps.split_off(from);
        match &self.store {
            Some(store) if !steps.is_empty() => {
                store.define_alone(|| undo_steps(store, steps, &mut self.undone))
            }
            _ => Vec::new(),
        }
    }
}

/// Undoes steps, the newest first, and has the next start do nothing of it. What went wrong is returned.
fn undo_steps(store: &Store, steps: Vec<Step>, undone: &mut Undone) -> Vec<SqlError> {
    let (mut written, mut failed) = (Vec::new(), Vec::new());
    for step in steps.into_iter().rev() {
        match step {
            Step::Undo(undo) => failed.extend(undo.run(store, undone).err()),
            Step::Written(step) => written.push(step),
            Step::Savepoint(_) => {}
        }
    }
    if !written.is_empty() {
        failed.extend(store.close_steps(&written).err().map(SqlError::from));
    }
    failed
}

/// Undoes definitions, the last first. The first that fails ends it.
pub(crate) fn undo_all(store: &Store, steps: impl DoubleEndedIterator<Item = Undo>) -> Result<(), SqlError> {
    let mut undone = Undone::default();
    steps.rev().try_for_each(|undo| undo.run(store, &mut undone))
}

impl Drop for Undoing {
    fn drop(&mut self) {
        // There is no client left to warn.
        self.roll_back();
    }
}

impl Undo {
    fn run(self, store: &Store, undone: &mut Undone) -> Result<(), SqlError> {
        match self {
            Self::Impossible => Ok(()),
            Self::Table(table) => match undone.current(store, &table) {
                Some(now) => Ok(store.drop_table(now.name())?),
                None => Ok(()),
            },
            Self::TableGone(gone, own) => {
                let again = store.revive_table(&gone, &own)?;
                undone.revived.push((gone, again));
                Ok(())
            }
            Self::Altered(table, before) => match undone.current(store, &table) {
                Some(now) => redefine(store, now.name(), &before, |_| {}),
                None => Ok(()),
            },
            Self::Loosened { table, before, since, rewritten } => {
                tighten(store, undone, &table, &before, since, rewritten)
            }
            Self::Written(table, keys) => {
                let Some(now) = undone.current(store, &table) else { return Ok(()) };
                let Some(keys) = keys else {
                    store.truncate(&now);
                    return Ok(());
                };
                let delete = |key: &Vec<u8>| store.delete(&now, key, Expect::Anything, store.now()).map(drop);
                Ok(keys.iter().try_for_each(delete)?)
            }
            Self::IndexRenamed { table, before, now, key_name } => {
                let Some(table) = undone.current(store, &table) else { return Ok(()) };
                store.alter_table(table.name(), &mut |def| {
                    let own = def.indexes.iter_mut().find(|index| index.name.eq_ignore_ascii_case(&now));
                    match (own, &before) {
                        (Some(index), Some(before)) => index.name.clone_from(before),
                        _ => def.key_name.clone_from(&key_name),
                    }
                    Ok(())
                })?;
                Ok(())
            }
            Self::View(name) => Ok(store.drop_view(&name)?),
            Self::ViewGone(mut view) => {
                // One that was replaced keeps the privileges of now.
                if let Some(now) = store.catalog().view(&view.name) {
                    view.access.clone_from(&now.access);
                }
                Ok(store.create_view(*view, true)?)
            }
            Self::ViewAltered(name, before) => Ok(store.alter_view(&name, &mut |view| {
                // It keeps the privileges of now.
                let access = view.access.clone();
                *view = ViewDef { access, ..ViewDef::clone(&before) };
            })?),
            Self::Routine(name) => Ok(store.drop_routine(&name)?),
            Self::RoutineRenamed(name, before) => Ok(store.rename_routine(&name, &before)?),
            Self::RoutineGone(routine) => {
                // One of the name that is another's stays.
                let is_it = |now: &Arc<RoutineDef>| now.id == routine.id;
                let replace = store.catalog().routine(&routine.name).is_some_and(is_it);
                Ok(store.create_routine(*routine, replace)?)
            }
            Self::Server(name, before) => {
                let before = before.as_deref();
                // One of the name that is another's stays.
                let is_other = |now: &ServerDef| before.is_some_and(|before| before.id != now.id);
                let taken =
                    || DdlError { state: "42710", message: format!("server \"{name}\" already exists") };
                Ok(store.change_server(&name, &mut |now| {
                    if now.is_some_and(is_other) { Err(taken()) } else { Ok(before.cloned()) }
                })?)
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

/// Puts a definition in force again that forbids more than the one of now, or has columns that are gone. Rows that came
/// meanwhile go.
fn tighten(
    store: &Store,
    undone: &mut Undone,
    table: &Arc<Table>,
    before: &TableDef,
    since: u64,
    rewritten: bool,
) -> Result<(), SqlError> {
    let Some(now) = undone.current(store, table) else { return Ok(()) };
    let lost = undone.rewritten.iter().any(|known| Table::is_same(known, &now));
    redefine(store, now.name(), before, |table| {
        if lost { store.truncate(table) } else { store.forget_since(table, since) }
    })?;
    if rewritten {
        undone.rewritten.push(now);
    }
    Ok(())
}

/// Puts the definition in force that was there before. `clear` removes rows that are none of it, before indexes are
/// made again. A value in a column that was dropped and is there again is the row's own, unless somebody wrote the row
/// meanwhile.
pub(super) fn redefine(
    store: &Store,
    table: &str,
    before: &TableDef,
    clear: impl FnOnce(&Table),
) -> Result<(), SqlError> {
    let def = |name: &str| {
        let catalog = store.catalog();
        catalog.table(name).map(|table| table.def().clone()).ok_or_else(|| SqlError::unknown_table(name))
    };
    let after = def(table)?;
    let is_in =
        |indexes: &[IndexDef], name: &str| indexes.iter().any(|other| other.name.eq_ignore_ascii_case(name));
    for rule in after.rules.iter().filter(|rule| !before.rules.contains(rule)) {
        store.drop_rule(&rule.name)?;
    }
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
    if let Some(table) = store.catalog().table(&before.name) {
        clear(table);
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
