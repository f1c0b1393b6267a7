//! One row written by its whole key, without SQLite: `INSERT`, `REPLACE`, a plain upsert, `SET n = n + 1`.
//!
//! A statement that fits has this beside its general plan, and tries it first. It means exactly what the general plan
//! would make of it; where a value needs a conversion, a sum overflows, a NULL stands where none may, the general plan
//! takes over before anything is written.

use std::sync::Arc;

use sqlite3_parser::ast::{
    Expr, InsertBody, Name, Operator, ResolveType, Set, SortedColumn, Stmt, Upsert, UpsertDo,
};
use store::definition::{ColumnDef, TableDef};
use store::value::{Value, ValueRef};
use store::{
    BUILT_IN, Change, Expect, Expiry, Index, Met, NewRow, Renewal, RowBuf, Table, Write, WriteError,
};

use super::build::{operand, plain_row};
use super::insert::Operand;
use super::plan::refused;
use super::target::is_stored_as_it_is;
use crate::error::{SqlError, state};
use crate::executor::{ComputedBy, Core, Done, DoneKind};
use crate::limits::RETRIES_MAX;
use crate::text::token::unquoted;

/// Tables of more columns take the general way: a row's values are gathered on the stack.
const COLUMNS_MAX: usize = 16;

/// A statement on one row.
#[derive(Debug)]
pub(crate) struct SinglePlan {
    table: Arc<Table>,
    verb: Verb,
    /// The row as it is.
    old: RowBuf,
    /// The one write, kept so that its buffers are used again.
    write: Write,
}

#[derive(Debug)]
enum Verb {
    /// One operand for each column of the table.
    Insert { cells: Vec<Operand>, conflict: Conflict },
    /// One operand for each key column.
    Update { key: Vec<Operand>, sets: Vec<(usize, Term)> },
}

/// What happens when the key is taken.
#[derive(Debug)]
enum Conflict {
    Abort,
    Replace,
    Leave,
    Update(Vec<(usize, Term)>),
}

/// An expression that needs no SQLite.
#[derive(Debug)]
enum Term {
    Operand(Operand),
    /// A column of the row as it is.
    Own(usize),
    /// A column of the row that was to be inserted.
    Excluded(usize),
    /// A sum, or with `true` a difference.
    Sum(Box<(Self, Self)>, bool),
}

type Cells<'a> = [ValueRef<'a>; COLUMNS_MAX];

/// What terms are computed of.
struct Sources<'a> {
    table: &'a Table,
    parameters: &'a [Value],
    /// The row as it is.
    old: &'a RowBuf,
    /// The row that was to be inserted.
    excluded: &'a Cells<'a>,
}

/// The short way of a statement, if it has one.
pub(super) fn of_tree(table: &Arc<Table>, tree: &Stmt<'_>) -> Option<SinglePlan> {
    let def = table.def();
    if is_routed(table) || !is_plain(def) || def.has_row_id() || def.columns.len() > COLUMNS_MAX {
        return None;
    }
    let verb = match tree {
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
            Verb::Insert { cells, conflict: conflict(table, *or_conflict, *upsert)? }
        }
        Stmt::Update {
            with: None,
            or_conflict: None,
            tbl_name,
            indexed: None,
            sets,
            from: None,
            where_clause: Some(condition),
            returning: None,
            order_by,
            limit: None,
        } if tbl_name.alias.is_none() && order_by.is_none_or(<[SortedColumn<'_>]>::is_empty) => {
            Verb::Update { key: key_of(table, condition)?, sets: terms(table, sets, false)? }
        }
        _ => return None,
    };
    let new = NewRow {
        payload: Vec::new(),
        expiry: Expiry::Table,
        client_flags: 0,
        cas: None,
        renewal: Renewal::default(),
    };
    let write = Write {
        table: Arc::clone(table),
        key: Vec::new(),
        change: Change::Put(new),
        expect: Expect::Anything,
    };
    Some(SinglePlan { table: Arc::clone(table), verb, old: RowBuf::new(), write })
}

/// Whether memcached clients look for its rows by a prefix: the longest owns a key, which takes a look at all tables.
pub(super) fn is_routed(table: &Table) -> bool {
    table.def().options.prefix.is_some() || table.name() == BUILT_IN
}

/// Whether a row of the table is what a statement gives: nothing is computed, numbered or checked.
pub(super) fn is_plain(def: &TableDef) -> bool {
    let plain = |column: &ColumnDef| {
        column.default_sql.is_none()
            && column.generated.is_none()
            && column.identity.is_none()
            && !column.hidden
            && !column.pending
            && column.collation.is_binary()
    };
    def.checks.is_empty() && def.columns.iter().all(plain)
}

/// The operand of each column; those not named have their default.
fn cells(table: &Table, names: Option<&[Name<'_>]>, row: &[Operand]) -> Option<Vec<Operand>> {
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

fn conflict(table: &Table, or: Option<ResolveType>, upsert: Option<&Upsert<'_>>) -> Option<Conflict> {
    let alone = table.indexes().iter().all(|index| !index.def().unique || stands_for_key(table, index));
    match (or, upsert) {
        (None | Some(ResolveType::Abort), None) => Some(Conflict::Abort),
        // Other unique values may be in the way too.
        _ if !alone => None,
        (Some(ResolveType::Replace), None) => Some(Conflict::Replace),
        (Some(ResolveType::Ignore), None) => Some(Conflict::Leave),
        (None, Some(Upsert { index, do_clause, next: None })) => {
            let keyed = index.as_ref().is_some_and(|index| {
                let names = index.targets.iter().map(|target| column_of(table, &target.expr));
                let named: Option<Vec<usize>> = names.collect();
                index.where_clause.is_none() && named.is_some_and(|named| named == table.def().primary_key)
            });
            match do_clause {
                UpsertDo::Nothing if keyed || index.is_none() => Some(Conflict::Leave),
                UpsertDo::Set { sets, where_clause: None } if keyed => {
                    Some(Conflict::Update(terms(table, sets, true)?))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether an index says nothing that the key does not say.
pub(super) fn stands_for_key(table: &Table, index: &Index) -> bool {
    let columns = &index.def().columns;
    *columns == table.def().primary_key && (0..columns.len()).all(|at| index.collation(at).is_binary())
}

/// `key = operand AND ...`, every column of the key once and nothing else.
fn key_of(table: &Table, condition: &Expr<'_>) -> Option<Vec<Operand>> {
    let mut found = Vec::new();
    gather(table, condition, &mut found)?;
    let key = &table.def().primary_key;
    if found.len() != key.len() {
        return None;
    }
    let find =
        |column: &usize| found.iter().find(|(known, _)| known == column).map(|(_, value)| value.clone());
    key.iter().map(find).collect()
}

fn gather(table: &Table, condition: &Expr<'_>, found: &mut Vec<(usize, Operand)>) -> Option<()> {
    match condition {
        Expr::Binary(left, Operator::And, right) => {
            gather(table, left, found)?;
            gather(table, right, found)
        }
        Expr::Binary(left, Operator::Equals, right) => {
            found.push((column_of(table, left)?, operand(right)?));
            Some(())
        }
        _ => None,
    }
}

/// A column of the table by its bare name, or behind the table's.
fn column_of(table: &Table, expression: &Expr<'_>) -> Option<usize> {
    let name = match expression {
        Expr::Id(id) => id.0,
        Expr::Name(name) => name.0,
        Expr::Qualified(of, name) if unquoted(of.0).eq_ignore_ascii_case(table.name()) => name.0,
        _ => return None,
    };
    table.def().column_index(&unquoted(name))
}

/// The assignments, none of them to the key.
fn terms(table: &Table, sets: &[Set<'_>], excluded: bool) -> Option<Vec<(usize, Term)>> {
    let mut terms: Vec<(usize, Term)> = Vec::with_capacity(sets.len());
    for set in sets {
        let [name] = &set.col_names[..] else { return None };
        let column = table.def().column_index(&unquoted(name.0))?;
        let again = terms.iter().any(|(known, _)| *known == column);
        if again || table.def().is_key(column) {
            return None;
        }
        terms.push((column, term(table, &set.expr, excluded)?));
    }
    Some(terms)
}

fn term(table: &Table, expression: &Expr<'_>, excluded: bool) -> Option<Term> {
    if let Some(operand) = operand(expression) {
        return Some(Term::Operand(operand));
    }
    if let Some(column) = column_of(table, expression) {
        return Some(Term::Own(column));
    }
    match expression {
        Expr::Qualified(of, name) if excluded && unquoted(of.0).eq_ignore_ascii_case("excluded") => {
            table.def().column_index(&unquoted(name.0)).map(Term::Excluded)
        }
        Expr::Binary(left, operator @ (Operator::Add | Operator::Subtract), right) => {
            let both = (term(table, left, excluded)?, term(table, right, excluded)?);
            Some(Term::Sum(Box::new(both), matches!(operator, Operator::Subtract)))
        }
        _ => None,
    }
}

impl Term {
    /// What it comes to; `None` where that is SQLite's to say.
    fn value<'a>(&'a self, sources: &Sources<'a>) -> Option<ValueRef<'a>> {
        match self {
            Self::Operand(operand) => Some(operand.value(sources.parameters).as_ref()),
            Self::Own(column) => Some(sources.table.column(sources.old, *column)),
            Self::Excluded(column) => sources.excluded.get(*column).copied(),
            Self::Sum(both, difference) => {
                let left = both.0.value(sources)?;
                let right = both.1.value(sources)?;
                match (left, right) {
                    (ValueRef::Null, _) | (_, ValueRef::Null) => Some(ValueRef::Null),
                    (ValueRef::Integer(left), ValueRef::Integer(right)) => {
                        let sum = if *difference { left.checked_sub(right) } else { left.checked_add(right) };
                        sum.map(ValueRef::Integer)
                    }
                    _ => None,
                }
            }
        }
    }
}

impl SinglePlan {
    /// Runs the statement; `None` where the general plan must.
    pub(super) fn run(&mut self, core: &Core, parameters: &[Value]) -> Result<Option<Done>, SqlError> {
        if core.in_transaction() {
            return Ok(None);
        }
        for _ in 0..RETRIES_MAX {
            let Self { table, verb, old, write } = self;
            let step = match verb {
                Verb::Insert { cells, conflict } => {
                    insert(core, table, cells, conflict, parameters, old, write)
                }
                Verb::Update { key, sets } => update(core, table, key, sets, parameters, old, write),
            };
            let step = step?;
            let is_new = matches!(step, Step::Insert);
            let (tag, written) = match (step, &write.change) {
                (Step::Done(done), _) => return Ok(Some(done)),
                (Step::Insert, _) => ("INSERT", core.store.commit(std::slice::from_ref(&*write))),
                (Step::Rewrite(tag, met), Change::Put(row)) => {
                    (tag, core.store.rewrite(table, &met, old, row))
                }
                (Step::Rewrite(..) | Step::General, _) => return Ok(None),
            };
            match written {
                Ok(_) => {
                    if is_new {
                        core.sight.note_inserted(table, &write.key);
                    }
                    return Ok(Some(wrote(tag, 1)));
                }
                Err(WriteError::Lost(_)) => {
                    if let Some(done) = self.after_loss()? {
                        return Ok(Some(done));
                    }
                    core.sight.check_watch()?;
                }
                Err(error) => return Err(refused(table, error)),
            }
        }
        Err(SqlError::new(state::LOST, "the row kept changing while it was written; try again"))
    }

    /// The write did not find what it expected.
    fn after_loss(&self) -> Result<Option<Done>, SqlError> {
        match &self.verb {
            Verb::Insert { conflict: Conflict::Abort, .. } => {
                Err(SqlError::unique(&format!("{}_pkey", self.table.name())))
            }
            Verb::Insert { conflict: Conflict::Leave, .. } => Ok(Some(wrote("INSERT", 0))),
            _ => Ok(None),
        }
    }
}

/// What a look at the row came to.
enum Step {
    Done(Done),
    /// The write is ready, and its row is a new one.
    Insert,
    /// The write is ready, and its row is another version of the one that was met.
    Rewrite(&'static str, Met),
    General,
}

fn wrote(tag: &'static str, rows: u64) -> Done {
    Done { kind: DoneKind::Write, affected: rows, tag, by: ComputedBy::Native }
}

fn insert(
    core: &Core,
    table: &Table,
    cells: &[Operand],
    conflict: &Conflict,
    parameters: &[Value],
    old: &mut RowBuf,
    write: &mut Write,
) -> Result<Step, SqlError> {
    let mut new: Cells<'_> = [ValueRef::Null; COLUMNS_MAX];
    for (place, cell) in new.iter_mut().zip(cells) {
        *place = cell.value(parameters).as_ref();
    }
    let values = &new[..cells.len()];
    if !values.iter().enumerate().all(|(column, value)| fits(table, column, *value)) {
        return Ok(Step::General);
    }
    write.key.clear();
    table.encode_key(values, &mut write.key)?;
    write.expect = match conflict {
        Conflict::Abort | Conflict::Leave => Expect::Absent,
        Conflict::Replace => Expect::Anything,
        Conflict::Update(sets) => {
            if let Some(met) = core.store.meet(table, &write.key, core.sight.tick(), old) {
                let sources = Sources { table, parameters, old, excluded: &new };
                let fits = rewrite(&sources, sets, write)?;
                return Ok(if fits { Step::Rewrite("INSERT", met) } else { Step::General });
            }
            Expect::Absent
        }
    };
    let Change::Put(row) = &mut write.change else { return Ok(Step::General) };
    row.payload.clear();
    table.encode_payload(values, &mut row.payload)?;
    head(write, Expiry::Table, 0);
    Ok(Step::Insert)
}

fn update(
    core: &Core,
    table: &Table,
    key: &[Operand],
    sets: &[(usize, Term)],
    parameters: &[Value],
    old: &mut RowBuf,
    write: &mut Write,
) -> Result<Step, SqlError> {
    let mut values: Cells<'_> = [ValueRef::Null; COLUMNS_MAX];
    for ((place, operand), &column) in values.iter_mut().zip(key).zip(&table.def().primary_key) {
        let value = operand.value(parameters);
        // NULL equals no key; what is no value of the column's may yet compare as one.
        if value.is_null() || !is_stored_as_it_is(table, column, value.as_ref()) {
            return Ok(Step::General);
        }
        *place = value.as_ref();
    }
    write.key.clear();
    let nothing = Ok(Step::Done(wrote("UPDATE", 0)));
    if table.keys().encode(&values[..key.len()], &mut write.key).is_err() {
        return nothing;
    }
    let Some(met) = core.store.meet(table, &write.key, core.sight.tick(), old) else { return nothing };
    let sources = Sources { table, parameters, old, excluded: &[ValueRef::Null; COLUMNS_MAX] };
    let fits = rewrite(&sources, sets, write)?;
    Ok(if fits { Step::Rewrite("UPDATE", met) } else { Step::General })
}

/// The row as it is, with the assignments. The write has its key already; False: the general plan must.
fn rewrite(sources: &Sources<'_>, sets: &[(usize, Term)], write: &mut Write) -> Result<bool, SqlError> {
    let Sources { table, old, .. } = *sources;
    let Change::Put(row) = &mut write.change else { return Ok(false) };
    let mut changes = [(0, ValueRef::Null); COLUMNS_MAX];
    for (change, (column, term)) in changes.iter_mut().zip(sets) {
        let value = term.value(sources).filter(|value| fits(table, *column, *value));
        let Some(value) = value else { return Ok(false) };
        *change = (*column, value);
    }
    row.payload.clear();
    if !table.edit_payload(old, &changes[..sets.len()], &mut row.payload)? {
        return Ok(false);
    }
    head(write, old.deadline(), old.client_flags());
    Ok(true)
}

/// Whether a column stores a value as it is.
fn fits(table: &Table, column: usize, value: ValueRef<'_>) -> bool {
    let not_null = table.def().columns[column].not_null;
    !(not_null && matches!(value, ValueRef::Null)) && is_stored_as_it_is(table, column, value)
}

fn head(write: &mut Write, expiry: Expiry, client_flags: u32) {
    if let Change::Put(row) = &mut write.change {
        row.expiry = expiry;
        row.client_flags = client_flags;
    }
}
