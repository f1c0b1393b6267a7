//! `DELETE`, `UPDATE`, and what inserts one row by its key or rows in one go.

use dialect::lowered::{
    Conflict as Clause, ConflictTarget, Delete, Insert, Resolve, Rows, Set, Term, Update, Values,
    Verb as Lowered, Write,
};
use store::Table;
use store::definition::{ColumnDef, IndexDef};

use super::super::access::Way;
use super::super::assign::{COLUMNS_MAX, Heads, Sets};
use super::super::bulk::BulkPlan;
use super::super::delete::Deletion;
use super::super::scope::Scope;
use super::super::single::{Conflict, SinglePlan, Verb, is_key_alone, is_open_to, is_plain};
use super::super::update::Update as ManyUpdate;
use super::super::{Job, NativePlan};
use super::condition::branches;
use super::names::{changed, place};
use super::terms::term;
use crate::core::Core;
use crate::table::Shape;
use crate::write::{
    self, ChangeKind, ChangePlan, HeadColumn, InsertPlan, Operand, Target, UpdateConflict, WritePlan, operand,
};

/// The plan of a `DELETE` that needs no SQLite: of rows that equal columns lead to, or of all rows.
pub(crate) fn of_deletion(core: &Core, write: &Write) -> Option<NativePlan> {
    let Lowered::Delete(Delete { using: None, rows }) = &write.verb else { return None };
    if !is_bare(write) {
        return None;
    }
    let Rows { indexed: None, condition, order: None, limit: None } = rows else { return None };
    let scope = changed(core, &write.table)?;
    let branches = branches(&scope, condition.as_ref().map(|condition| &condition.node))?;
    let deletion = Deletion::new(&scope.first.table, branches);
    Some(NativePlan::new(write.parameters, Job::Delete(Box::new(deletion))))
}

/// Whether nothing stands before and behind it.
fn is_bare(write: &Write) -> bool {
    write.with.is_empty() && write.returning.is_none()
}

/// What an `INSERT` or `UPDATE` needs no SQLite for, beside its general plan.
pub(crate) fn of_change(core: &Core, write: &Write, general: &WritePlan) -> Option<NativePlan> {
    if !is_bare(write) {
        return None;
    }
    // Of a view there is no such table.
    let scope = changed(core, &write.table)?;
    let job = match (&write.verb, &general.verb) {
        (Lowered::Insert(insert), write::Verb::Insert(plan)) => insertion(&scope, write, insert, plan),
        (Lowered::Update(update), write::Verb::Change(plan)) => updating(&scope, update, plan),
        _ => None,
    };
    Some(NativePlan::new(general.parameters, job?))
}

fn insertion(scope: &Scope, write: &Write, insert: &Insert, plan: &InsertPlan) -> Option<Job> {
    let table = &scope.first.table;
    let single = single_insertion(scope, write, insert, plan);
    let single = single.map(|verb| Box::new(SinglePlan::new(table, verb)));
    let bulk = BulkPlan::of(table, plan).map(Box::new);
    (single.is_some() || bulk.is_some()).then_some(Job::Write { single, bulk })
}

fn single_insertion(scope: &Scope, write: &Write, insert: &Insert, plan: &InsertPlan) -> Option<Verb> {
    let table = &scope.first.table;
    let write::Source::Values(rows) = &plan.source else { return None };
    let [row] = &rows[..] else { return None };
    if !is_open_to(table) || write.table.alias.is_some() {
        return None;
    }
    // Columns that are not named have their default.
    let default = |column: &ColumnDef| Operand::Literal(column.default.clone().unwrap_or_default());
    let mut cells: Vec<Operand> = table.def().columns.iter().map(default).collect();
    let mut heads = Heads::new();
    for (target, operand) in plan.targets.iter().zip(row) {
        match *target {
            Target::Stored(column) => cells[column] = operand.clone(),
            Target::Head(column) => heads.push((column, operand.clone())),
        }
    }
    let conflict = conflict(scope, write.resolve, &insert.conflicts)?;
    Some(Verb::Insert { cells, heads, conflict })
}

/// How an `UPDATE` runs: of one row by its key, or of those that conditions lead to.
fn updating(scope: &Scope, update: &Update, plan: &ChangePlan) -> Option<Job> {
    let Rows { indexed: None, condition, order: None, limit: None } = &update.rows else { return None };
    let alone = matches!(&plan.kind, ChangeKind::Update { conflict: UpdateConflict::Abort, .. });
    if !alone || update.from.is_some() {
        return None;
    }
    let table = &scope.first.table;
    let (sets, heads) = assignments(scope, &update.sets, false)?;
    let mut branches = branches(scope, condition.as_ref().map(|condition| &condition.node))?;
    // Of those who claim a row one gets it: that takes more than a look at its version.
    let claims = heads.iter().any(|(column, _)| *column == HeadColumn::Leased);
    let of_one = matches!(&branches[..], [access] if access.way == Way::Key);
    if of_one && !sets.is_empty() && !claims && is_open_to(table) {
        let verb = Verb::Update { access: Box::new(branches.pop()?), sets, heads };
        return Some(Job::Write { single: Some(Box::new(SinglePlan::new(table, verb))), bulk: None });
    }
    let free = sets.is_empty()
        || (is_plain(table.def()) && !sets.iter().any(|(column, _)| is_unique(table, *column)));
    free.then(|| Job::Update(Box::new(ManyUpdate::new(table, branches, sets, heads))))
}

/// Whether no two rows may have the same value in a column.
fn is_unique(table: &Table, column: usize) -> bool {
    let has = |index: &IndexDef| index.unique && index.columns.contains(&column);
    table.indexes().iter().any(|index| has(index.def()))
}

fn conflict(scope: &Scope, or: Option<Resolve>, clauses: &[Clause]) -> Option<Conflict> {
    match (or, clauses) {
        (None | Some(Resolve::Abort), []) => Some(Conflict::Abort),
        // Other unique values may be in the way too.
        _ if !is_key_alone(&scope.first.table) => None,
        (Some(Resolve::Replace), []) => Some(Conflict::Replace),
        (Some(Resolve::Ignore), []) => Some(Conflict::Leave),
        (None, [Clause { target, update }]) => {
            let keyed = target.as_ref().is_some_and(|target| is_key(scope, target));
            match update {
                None if keyed || target.is_none() => Some(Conflict::Leave),
                Some(update) if keyed && update.condition.is_none() => {
                    let (sets, heads) = assignments(scope, &update.sets, true)?;
                    Some(Conflict::Update(sets, heads))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether `ON CONFLICT` names the key.
fn is_key(scope: &Scope, target: &ConflictTarget) -> bool {
    let column = |term: &Term| Some(place(scope, &term.piece.node).filter(|_| !term.collated)?.column);
    let columns: Option<Vec<usize>> = target.terms.iter().map(column).collect();
    target.condition.is_none()
        && columns.is_some_and(|columns| columns == scope.first.table.def().primary_key)
}

/// The assignments to columns, none of them of the key, and to the row's head.
fn assignments(scope: &Scope, sets: &[Set], excluded: bool) -> Option<(Sets, Heads)> {
    let table = &scope.first.table;
    let shape = Shape::of(table);
    let (mut found, mut heads) = (Sets::new(), Heads::new());
    for set in sets {
        let ([name], Values::One(value)) = (&set.columns[..], &set.values) else { return None };
        match Target::named(table, &shape, name).ok()? {
            Target::Stored(column) => {
                let again = found.iter().any(|(known, _)| *known == column);
                if again || table.def().is_key(column) {
                    return None;
                }
                found.push((column, term(scope, &value.node, excluded)?));
            }
            Target::Head(column) => {
                let again = heads.iter().any(|(known, _)| *known == column);
                heads.push((column, operand(&value.node).filter(|_| !again)?));
            }
        }
    }
    (found.len() <= COLUMNS_MAX).then_some((found, heads))
}
