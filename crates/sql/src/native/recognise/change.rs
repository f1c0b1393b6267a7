//! `DELETE`, and what writes one row by its key or rows in one go.

use std::sync::Arc;

use dialect::lowered::{
    Conflict as Clause, ConflictTarget, Delete, Resolve, Rows, Set, Source, Term, Values, Verb as Lowered,
    Write,
};
use store::Table;

use super::super::access::Way;
use super::super::bulk::BulkPlan;
use super::super::delete::Deletion;
use super::super::scope::Scope;
use super::super::single::{Conflict, Sets, SinglePlan, Verb, is_key_alone, is_open_to};
use super::super::{Job, NativePlan};
use super::condition::{Where, branches};
use super::names::{changed, place};
use super::terms::term;
use crate::core::Core;
use crate::write::{self, Operand, WritePlan, plain_row};

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
    if matches!(write.verb, Lowered::Delete(_) | Lowered::Merge(_)) {
        return None;
    }
    // Of a view there is no such table.
    let scope = changed(core, &write.table)?;
    let table = &scope.first.table;
    let single = verb(&scope, write).map(|verb| Box::new(SinglePlan::new(table, verb)));
    let bulk = match &general.verb {
        write::Verb::Insert(plan) if general.returning.is_none() => BulkPlan::of(table, plan).map(Box::new),
        _ => None,
    };
    let any = single.is_some() || bulk.is_some();
    any.then(|| NativePlan::new(general.parameters, Job::Write { single, bulk }))
}

fn verb(scope: &Scope, write: &Write) -> Option<Verb> {
    let table = &scope.first.table;
    if !is_open_to(table) || !is_bare(write) {
        return None;
    }
    match &write.verb {
        Lowered::Insert(insert) => {
            let Source::Query { rows: Some(rows), .. } = &insert.source else { return None };
            if write.table.alias.is_some() {
                return None;
            }
            let cells = cells(table, insert.columns.as_deref(), &plain_row(rows)?)?;
            Some(Verb::Insert { cells, conflict: conflict(scope, write.resolve, &insert.conflicts)? })
        }
        Lowered::Update(update) => {
            let Rows { indexed: None, condition: Some(condition), order: None, limit: None } = &update.rows
            else {
                return None;
            };
            if write.resolve.is_some() || update.from.is_some() {
                return None;
            }
            let access = Where::of(scope, Some(&condition.node))?.access(scope)?;
            let sets = assignments(scope, &update.sets, false)?;
            (access.way == Way::Key).then(|| Verb::Update { access: Box::new(access), sets })
        }
        Lowered::Delete(_) | Lowered::Merge(_) => None,
    }
}

/// The operand of each column; those not named have their default.
fn cells(table: &Arc<Table>, names: Option<&[String]>, row: &[Operand]) -> Option<Vec<Operand>> {
    let columns = &table.def().columns;
    let Some(names) = names else {
        return (row.len() == columns.len()).then(|| row.to_vec());
    };
    let mut cells: Vec<Operand> =
        columns.iter().map(|column| Operand::Literal(column.default.clone().unwrap_or_default())).collect();
    for (name, operand) in names.iter().zip(row) {
        cells[table.def().column_index(name)?] = operand.clone();
    }
    (names.len() == row.len()).then_some(cells)
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
                    Some(Conflict::Update(assignments(scope, &update.sets, true)?))
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

/// The assignments, none of them to the key.
fn assignments(scope: &Scope, sets: &[Set], excluded: bool) -> Option<Sets> {
    let table = &scope.first.table;
    let mut found: Sets = Vec::with_capacity(sets.len());
    for set in sets {
        let ([name], Values::One(value)) = (&set.columns[..], &set.values) else { return None };
        let column = table.def().column_index(name)?;
        let again = found.iter().any(|(known, _)| *known == column);
        if again || table.def().is_key(column) {
            return None;
        }
        found.push((column, term(scope, &value.node, excluded)?));
    }
    Some(found)
}
