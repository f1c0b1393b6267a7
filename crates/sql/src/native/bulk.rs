//! Many rows inserted by their keys, without a draft for each: `INSERT` and `REPLACE` of literals and parameters.
//!
//! It bets that all goes well: that every value fits its column and no key is taken. The store applies all rows or
//! none, so a bet that is lost has changed nothing, and the general way finds out what is wrong and says so in its
//! words.

use std::sync::Arc;

use store::value::{Value, ValueRef};
use store::{Catalog, Change, Expect, Table, Write};

use super::single::{empty_write, is_key_alone, is_plain};
use crate::core::Core;
use crate::done::Done;
use crate::error::SqlError;
use crate::limits::{BULK_WRITES_KEPT, BYTES_PER_STATEMENT_MAX};
use crate::table::is_stored_as_it_is;
use crate::text::rows::Rows;
use crate::write::{Draft, InsertPlan, OnConflict, Operand, Source, Target, accept, route};

/// How a statement writes its rows in one go.
#[derive(Debug)]
pub(super) struct BulkPlan {
    table: Arc<Table>,
    /// The columns that the values of a row go to.
    columns: Vec<usize>,
    /// What the other columns hold.
    defaults: Vec<Value>,
    expect: Expect,
    /// Kept so that their buffers are used again.
    writes: Vec<Write>,
    /// A key as memcached clients write it.
    text: Vec<u8>,
}

/// The rows that one run writes.
pub(super) enum Tuples<'a> {
    /// Those of its `VALUES`.
    Operands(&'a [Vec<Operand>]),
    /// Those that were read from the text.
    Rows(&'a Rows<'a>),
}

impl BulkPlan {
    /// The way in one go of an `INSERT`, if it has one.
    pub(super) fn of(table: &Arc<Table>, plan: &InsertPlan) -> Option<Self> {
        let def = table.def();
        if !is_plain(def) || def.has_row_id() || !matches!(plan.source, Source::Values(_)) {
            return None;
        }
        let expect = match plan.conflict {
            OnConflict::Abort => Expect::Absent,
            OnConflict::Replace if is_key_alone(table) => Expect::Anything,
            _ => return None,
        };
        let stored = |target: &Target| match target {
            Target::Stored(at) => Some(*at),
            Target::Head(_) => None,
        };
        let columns = plan.targets.iter().map(stored).collect::<Option<Vec<usize>>>()?;
        let (table, defaults) = (Arc::clone(table), Draft::defaults(table).values);
        Some(Self { table, columns, defaults, expect, writes: Vec::new(), text: Vec::new() })
    }

    /// Writes all rows; `None` where the general way must.
    pub(super) fn run(
        &mut self,
        core: &Core,
        parameters: &[Value],
        tuples: &Tuples<'_>,
    ) -> Result<Option<Done>, SqlError> {
        // Within a transaction, what a row breaks must be reported before it is written.
        if core.in_transaction() {
            return Ok(None);
        }
        core.sight.check_watch()?;
        let written = self.encode(&core.catalog, parameters, tuples).and_then(|count| {
            let writes = &self.writes[..count];
            core.store.commit(writes).ok()?;
            core.sight.note_inserted(&self.table, &writes.last()?.key);
            Some(count as u64)
        });
        self.writes.truncate(BULK_WRITES_KEPT);
        Ok(written.map(|rows| Done::wrote("INSERT", rows)))
    }

    /// Makes the list of writes and says how long it is; `None` where something does not fit.
    fn encode(&mut self, catalog: &Catalog, parameters: &[Value], tuples: &Tuples<'_>) -> Option<usize> {
        let Self { table, columns, defaults, expect, writes, text } = self;
        let count = tuples.len();
        let mut values: Vec<ValueRef<'_>> = Vec::with_capacity(defaults.len());
        let mut bytes = 0;
        for row in 0..count {
            values.clear();
            values.extend(defaults.iter().map(Value::as_ref));
            for (at, &column) in columns.iter().enumerate() {
                values[column] = tuples.value(parameters, row, at);
            }
            if row == writes.len() {
                writes.push(empty_write(table, *expect));
            }
            bytes += encode_row(table, &values, &mut writes[row])?;
            // The general way says where the row is to be written.
            if route::other(catalog, table, &writes[row].key, text).is_some() {
                return None;
            }
        }
        (bytes <= BYTES_PER_STATEMENT_MAX).then_some(count)
    }
}

impl Tuples<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Operands(rows) => rows.len(),
            Self::Rows(rows) => rows.len(),
        }
    }

    fn value<'a>(&'a self, parameters: &'a [Value], row: usize, at: usize) -> ValueRef<'a> {
        match self {
            Self::Operands(rows) => rows[row][at].value(parameters).as_ref(),
            Self::Rows(rows) => rows.value(row, at),
        }
    }
}

/// Encodes a row into its write and returns how long it is; `None` where a value is none of its column's.
fn encode_row(table: &Table, values: &[ValueRef<'_>], write: &mut Write) -> Option<usize> {
    let Change::Put(row) = &mut write.change else { return None };
    write.key.clear();
    row.payload.clear();
    if values.iter().enumerate().all(|(at, value)| is_stored_as_it_is(table, at, *value)) {
        table.encode_row(values, &mut write.key, &mut row.payload).ok()?;
    } else {
        let convert = |(at, value): (usize, &ValueRef<'_>)| accept(table, at, (*value).to_owned()).ok();
        let converted = values.iter().enumerate().map(convert).collect::<Option<Vec<Value>>>()?;
        let values: Vec<ValueRef<'_>> = converted.iter().map(Value::as_ref).collect();
        table.encode_row(&values, &mut write.key, &mut row.payload).ok()?;
    }
    Some(write.key.len() + row.payload.len())
}
