//! `DELETE`, and what writes one row by its key or rows in one go.

use std::sync::Arc;

use sqlite3_parser::ast::{
    InsertBody, Name, ResolveType, Set, SortedColumn, Stmt, Upsert, UpsertDo, UpsertIndex,
};
use store::Table;

use super::super::access::Way;
use super::super::bulk::BulkPlan;
use super::super::delete::Deletion;
use super::super::scope::Scope;
use super::super::single::{Conflict, Sets, SinglePlan, Verb, is_open_to, stands_for_key};
use super::super::{Job, NativePlan};
use super::condition::{Where, branches};
use super::names::{changed, place};
use super::terms::term;
use crate::core::Core;
use crate::text::token::unquoted;
use crate::write::{self, Operand, WritePlan, plain_row};

/// A `DELETE` of rows that equal columns lead to, or of all rows.
pub(super) fn deletion(core: &Core, tree: &Stmt<'_>) -> Option<Deletion> {
    let Stmt::Delete {
        with: None,
        tbl_name,
        indexed: None,
        where_clause,
        returning: None,
        order_by: None,
        limit: None,
    } = tree
    else {
        return None;
    };
    let scope = changed(core, tbl_name)?;
    let branches = branches(&scope, where_clause.as_ref())?;
    Some(Deletion::new(&scope.first.table, branches))
}

/// What an `INSERT` or `UPDATE` needs no SQLite for, beside its general plan.
pub(crate) fn of_change(core: &Core, tree: &Stmt<'_>, general: &WritePlan) -> Option<NativePlan> {
    let (Stmt::Insert { tbl_name, .. } | Stmt::Update { tbl_name, .. }) = tree else { return None };
    // Of a view there is no such table.
    let scope = changed(core, tbl_name)?;
    let table = &scope.first.table;
    let single = verb(&scope, tree).map(|verb| Box::new(SinglePlan::new(table, verb)));
    let bulk = match &general.verb {
        write::Verb::Insert(plan) if general.returning.is_none() => BulkPlan::of(table, plan).map(Box::new),
        _ => None,
    };
    let job = Job::Write { single, bulk };
    let any = matches!(job, Job::Write { single: Some(_), .. } | Job::Write { bulk: Some(_), .. });
    any.then(|| NativePlan::new(general.parameters, job))
}

fn verb(scope: &Scope, tree: &Stmt<'_>) -> Option<Verb> {
    let table = &scope.first.table;
    if !is_open_to(table) {
        return None;
    }
    match tree {
        Stmt::Insert {
            with: None,
            or_conflict,
            tbl_name,
            columns,
            body: InsertBody::Select(select, upsert),
            returning: None,
        } if tbl_name.alias.is_none() => {
            let row = plain_row(select)?;
            let cells = cells(table, columns.as_deref().map(|names| &names[..]), &row)?;
            Some(Verb::Insert { cells, conflict: conflict(scope, *or_conflict, *upsert)? })
        }
        Stmt::Update {
            with: None,
            or_conflict: None,
            indexed: None,
            sets,
            from: None,
            where_clause: Some(condition),
            returning: None,
            order_by,
            limit: None,
            ..
        } if order_by.is_none_or(<[SortedColumn<'_>]>::is_empty) => {
            let access = Where::of(scope, Some(condition))?.access(scope)?;
            let sets = assignments(scope, sets, false)?;
            (access.way == Way::Key).then(|| Verb::Update { access: Box::new(access), sets })
        }
        _ => None,
    }
}

/// The operand of each column; those not named have their default.
fn cells(table: &Arc<Table>, names: Option<&[Name<'_>]>, row: &[Operand]) -> Option<Vec<Operand>> {
    let columns = &table.def().columns;
    let Some(names) = names else {
        return (row.len() == columns.len()).then(|| row.to_vec());
    };
    let mut cells: Vec<Operand> =
        columns.iter().map(|column| Operand::Literal(column.default.clone().unwrap_or_default())).collect();
    for (name, operand) in names.iter().zip(row) {
        cells[table.def().column_index(&unquoted(name.0))?] = operand.clone();
    }
    (names.len() == row.len()).then_some(cells)
}

fn conflict(scope: &Scope, or: Option<ResolveType>, upsert: Option<&Upsert<'_>>) -> Option<Conflict> {
    let table = &scope.first.table;
    let alone = table.indexes().iter().all(|index| !index.def().unique || stands_for_key(table, index));
    match (or, upsert) {
        (None | Some(ResolveType::Abort), None) => Some(Conflict::Abort),
        // Other unique values may be in the way too.
        _ if !alone => None,
        (Some(ResolveType::Replace), None) => Some(Conflict::Replace),
        (Some(ResolveType::Ignore), None) => Some(Conflict::Leave),
        (None, Some(Upsert { index, do_clause, next: None })) => {
            let keyed = index.as_ref().is_some_and(|index| is_key(scope, index));
            match do_clause {
                UpsertDo::Nothing if keyed || index.is_none() => Some(Conflict::Leave),
                UpsertDo::Set { sets, where_clause: None } if keyed => {
                    Some(Conflict::Update(assignments(scope, sets, true)?))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether `ON CONFLICT` names the key.
fn is_key(scope: &Scope, index: &UpsertIndex<'_>) -> bool {
    let columns = index.targets.iter().map(|target| Some(place(scope, &target.expr)?.column));
    let columns: Option<Vec<usize>> = columns.collect();
    index.where_clause.is_none()
        && columns.is_some_and(|columns| columns == scope.first.table.def().primary_key)
}

/// The assignments, none of them to the key.
fn assignments(scope: &Scope, sets: &[Set<'_>], excluded: bool) -> Option<Sets> {
    let table = &scope.first.table;
    let mut found: Sets = Vec::with_capacity(sets.len());
    for set in sets {
        let [name] = &set.col_names[..] else { return None };
        let column = table.def().column_index(&unquoted(name.0))?;
        let again = found.iter().any(|(known, _)| *known == column);
        if again || table.def().is_key(column) {
            return None;
        }
        found.push((column, term(scope, &set.expr, excluded)?));
    }
    Some(found)
}
