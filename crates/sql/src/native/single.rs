//! One row written by its whole key: `INSERT`, `REPLACE`, a plain upsert, `SET n = n + 1`.
//!
//! Where a column does not take a value, a sum overflows or a key belongs to another table, SQLite computes the
//! statement: nothing was written until then.

use std::sync::Arc;

use store::definition::{Collation, ColumnDef, TableDef};
use store::value::{Value, ValueRef};
use store::{Change, Expect, Expiry, Index, Met, NewRow, Renewal, RowBuf, Table, Write, WriteError};

use super::access::Access;
use super::assign::{COLUMNS_MAX, Converted, Heads, Sets, assign_heads, edit};
use super::scope::{Given, Row, Standing};
use crate::core::Core;
use crate::done::{Done, Invalidation};
use crate::error::{SqlError, state};
use crate::limits::RETRIES_MAX;
use crate::write::{HeadColumn, NewHead, Operand, refused, route};

/// A statement on one row.
#[derive(Debug)]
pub(super) struct SinglePlan {
    table: Arc<Table>,
    verb: Verb,
    /// The key is all that a row may break.
    key_alone: bool,
    /// The row as it is.
    old: RowBuf,
    /// The one write, kept so that its buffers are used again.
    write: Write,
    /// The key as memcached clients write it.
    text: Vec<u8>,
}

/// What it does.
#[derive(Debug)]
pub(super) enum Verb {
    /// One operand for each column of the table.
    Insert { cells: Vec<Operand>, heads: Heads, conflict: Conflict },
    /// By the key.
    Update { access: Box<Access>, sets: Sets, heads: Heads },
}

/// What happens when the key is taken.
#[derive(Debug)]
pub(super) enum Conflict {
    Abort,
    Replace,
    Leave,
    /// The row that was to be inserted is the second side.
    Update(Sets, Heads),
}

type Cells<'a> = [ValueRef<'a>; COLUMNS_MAX];

/// Whether statements on one row of a table can be run so.
pub(super) fn is_open_to(table: &Table) -> bool {
    let def = table.def();
    is_plain(def) && !def.has_row_id() && def.columns.len() <= COLUMNS_MAX
}

/// Whether a row of the table is what a statement gives: nothing is computed, numbered or checked.
pub(super) fn is_plain(def: &TableDef) -> bool {
    let plain = |(at, column): (usize, &ColumnDef)| {
        // Nothing but an index asks how other columns than those of the key compare.
        let decimal = column.collation == Collation::Numeric && !def.is_key(at);
        column.default_sql.is_none()
            && column.generated.is_none()
            && column.identity.is_none()
            && !column.hidden
            && !column.pending
            && (column.collation.is_binary() || decimal)
    };
    def.checks.is_empty() && def.columns.iter().enumerate().all(plain)
}

/// Whether an index says nothing that the key does not say.
fn stands_for_key(table: &Table, index: &Index) -> bool {
    let columns = &index.def().columns;
    *columns == table.def().primary_key && (0..columns.len()).all(|at| index.collation(at).is_binary())
}

/// Whether the key is the only unique thing of a table.
pub(super) fn is_key_alone(table: &Table) -> bool {
    table.indexes().iter().all(|index| !index.def().unique || stands_for_key(table, index))
}

/// A write without a key or a row.
pub(super) fn empty_write(table: &Arc<Table>, expect: Expect) -> Write {
    let row = NewRow {
        payload: Vec::new(),
        expiry: Expiry::Table,
        client_flags: 0,
        cas: None,
        renewal: Renewal::default(),
    };
    Write { table: Arc::clone(table), key: Vec::new(), change: Change::Put(row), expect }
}

impl SinglePlan {
    pub(super) fn new(table: &Arc<Table>, verb: Verb) -> Self {
        let write = empty_write(table, Expect::Anything);
        let key_alone = is_key_alone(table);
        let (table, old, text) = (Arc::clone(table), RowBuf::new(), Vec::new());
        Self { table, verb, key_alone, old, write, text }
    }

    /// Whether it runs here: within a transaction, what a row breaks is reported at once, and only a look at the key is
    /// taken for that.
    pub(super) fn runs_in(&self, core: &Core) -> bool {
        self.key_alone || !core.in_transaction()
    }

    pub(super) fn tag(&self) -> &'static str {
        match self.verb {
            Verb::Insert { .. } => "INSERT",
            Verb::Update { .. } => "UPDATE",
        }
    }

    /// Runs the statement; `None` where the general plan must.
    pub(super) fn run(&mut self, core: &Core, parameters: &[Value]) -> Result<Option<Done>, SqlError> {
        if !self.runs_in(core) {
            return Ok(None);
        }
        for _ in 0..RETRIES_MAX {
            let Self { table, verb, old, write, text, .. } = self;
            let step = match verb {
                Verb::Insert { cells, heads, conflict } => {
                    let of = Insertion { core, table, cells, heads, conflict, parameters };
                    of.step(old, write, text)
                }
                Verb::Update { access, sets, heads } => {
                    update(core, access, (sets, heads), parameters, old, write)
                }
            }?;
            let is_new = matches!(step, Step::Insert);
            let (tag, written) = match (step, &write.change) {
                (Step::Done(done), _) => return Ok(Some(done)),
                (Step::Insert, _) if core.in_transaction() => ("INSERT", join(core, write)),
                (Step::Insert, _) => ("INSERT", core.store.commit(std::slice::from_ref(&*write)).map(drop)),
                (Step::Rewrite(tag, Found::Stored(met)), Change::Put(row)) => {
                    (tag, core.store.rewrite(table, &met, old, row).map(drop))
                }
                (Step::Rewrite(tag, Found::Seen), _) => {
                    write.expect = Expect::Version(old.cas());
                    (tag, join(core, write))
                }
                (Step::Rewrite(..) | Step::General, _) => return Ok(None),
            };
            match written {
                Ok(()) => {
                    if is_new {
                        core.sight.note_inserted(table, &write.key);
                    }
                    return Ok(Some(self.verb.done(tag, &self.table)));
                }
                Err(WriteError::Lost(_)) => match &self.verb {
                    // The general plan says which value is taken, or finds that it is free again.
                    Verb::Insert { conflict: Conflict::Abort, .. } => return Ok(None),
                    Verb::Insert { conflict: Conflict::Leave, .. } => {
                        return Ok(Some(Done::wrote("INSERT", 0)));
                    }
                    _ => core.sight.check_watch()?,
                },
                // The general plan says what the row holds.
                Err(WriteError::Unique { .. } | WriteError::NotNull(_) | WriteError::Check(_)) => {
                    return Ok(None);
                }
                Err(error) => return Err(refused(table, error)),
            }
        }
        Err(SqlError::new(state::LOST, "the row kept changing while it was written; try again"))
    }
}

impl Verb {
    /// What it did with its row.
    fn done(&self, tag: &'static str, table: &Table) -> Done {
        let done = Done::wrote(tag, 1);
        match self {
            Self::Update { heads, .. } if heads.iter().any(|(column, _)| *column == HeadColumn::Stale) => {
                done.invalidating(table.id(), Invalidation::Stale)
            }
            _ => done,
        }
    }
}

/// What a look at the row came to.
enum Step {
    Done(Done),
    /// The write is ready, and its row is a new one.
    Insert,
    /// The write is ready, and its row is another version of the one that was found.
    Rewrite(&'static str, Found),
    General,
}

/// A row that was found under the key.
enum Found {
    /// In the store, and where.
    Stored(Met),
    /// By a statement of a transaction, which may have written it.
    Seen,
}

/// Copies the row under a key, if there is one.
fn find(core: &Core, table: &Table, key: &[u8], old: &mut RowBuf) -> Result<Option<Found>, SqlError> {
    if core.in_transaction() {
        return Ok(core.view().get(table, key, old)?.then_some(Found::Seen));
    }
    Ok(core.store.meet(table, key, core.store.now(), old).map(Found::Stored))
}

/// Hands the write to its transaction.
fn join(core: &Core, write: &Write) -> Result<(), WriteError> {
    core.apply(&mut vec![write.clone()])
}

/// What an `INSERT` is made of.
struct Insertion<'i> {
    core: &'i Core,
    table: &'i Table,
    cells: &'i [Operand],
    heads: &'i Heads,
    conflict: &'i Conflict,
    parameters: &'i [Value],
}

impl Insertion<'_> {
    fn step(&self, old: &mut RowBuf, write: &mut Write, text: &mut Vec<u8>) -> Result<Step, SqlError> {
        let Self { core, table, cells, heads, conflict, parameters } = *self;
        let given = cells.iter().map(|cell| cell.value(parameters));
        let Some(converted) = Converted::of(table, given.clone().enumerate()) else {
            return Ok(Step::General);
        };
        let mut new: Cells<'_> = [ValueRef::Null; COLUMNS_MAX];
        for (place, (column, value)) in new.iter_mut().zip(given.enumerate()) {
            *place = converted.stored(column, value.as_ref());
        }
        let values = &new[..cells.len()];
        let mut head = NewHead::default();
        assign_heads(&mut head, (&core.store, table), heads, parameters)?;
        write.key.clear();
        table.encode_key(values, &mut write.key)?;
        // The general plan says where the row is to be written.
        if route::other(&core.catalog, table, &write.key, text).is_some() {
            return Ok(Step::General);
        }
        write.expect = match conflict {
            Conflict::Abort | Conflict::Leave => Expect::Absent,
            Conflict::Replace => Expect::Anything,
            Conflict::Update(sets, heads) => {
                if let Some(found) = find(core, table, &write.key, old)? {
                    let second = Standing::Values(values);
                    let fits = rewrite(core, (table, old), second, parameters, (sets, heads), write)?;
                    return Ok(if fits { Step::Rewrite("INSERT", found) } else { Step::General });
                }
                Expect::Absent
            }
        };
        // The store would say it when the transaction ends.
        let early = core.in_transaction() && matches!(conflict, Conflict::Abort | Conflict::Leave);
        if early && find(core, table, &write.key, old)?.is_some() {
            let leaves = matches!(conflict, Conflict::Leave);
            return Ok(if leaves { Step::Done(Done::wrote("INSERT", 0)) } else { Step::General });
        }
        let Change::Put(row) = &mut write.change else { return Ok(Step::General) };
        row.payload.clear();
        table.encode_payload(values, &mut row.payload)?;
        Ok(if give_head(row, head) { Step::Insert } else { Step::General })
    }
}

fn update(
    core: &Core,
    access: &Access,
    assigned: (&Sets, &Heads),
    parameters: &[Value],
    old: &mut RowBuf,
    write: &mut Write,
) -> Result<Step, SqlError> {
    let nothing = Ok(Step::Done(Done::wrote("UPDATE", 0)));
    if !access.encode_key(parameters, &mut write.key) {
        return nothing;
    }
    let table = &access.table;
    let Some(found) = find(core, table, &write.key, old)? else { return nothing };
    let fits = rewrite(core, (table, old), Standing::Nothing, parameters, assigned, write)?;
    Ok(if fits { Step::Rewrite("UPDATE", found) } else { Step::General })
}

/// The row as it is, with the assignments. The write has its key already; False: the general plan must.
fn rewrite(
    core: &Core,
    (table, old): Row<'_>,
    second: Standing<'_>,
    parameters: &[Value],
    (sets, heads): (&Sets, &Heads),
    write: &mut Write,
) -> Result<bool, SqlError> {
    let given = Given { first: Standing::Row((table, old)), second, parameters };
    let Change::Put(row) = &mut write.change else { return Ok(false) };
    let Some(converted) = Converted::of_sets(table, sets, parameters) else { return Ok(false) };
    row.payload.clear();
    if !edit((table, old), given, (sets, &converted), &mut row.payload)? {
        return Ok(false);
    }
    let mut head = NewHead::fresh(old.deadline(), old.client_flags());
    assign_heads(&mut head, (&core.store, table), heads, parameters)?;
    Ok(give_head(row, head))
}

/// False: the row ends at once, so there is none.
fn give_head(row: &mut NewRow, head: NewHead) -> bool {
    let NewHead { expiry, client_flags, cas, renewal } = head;
    *row = NewRow { payload: std::mem::take(&mut row.payload), expiry, client_flags, cas, renewal };
    expiry != Expiry::Now
}
