//! The rows of a second table that those of the first lead to.

use std::sync::Arc;

use store::definition::ColumnKind;
use store::value::{Value, ValueRef};
use store::{RowBuf, Table};

use super::access::{Equals, Range, Stop, Walk, Way, way};
use super::scope::Row;
use super::values::with_stored;
use crate::table::KeyList;
use crate::write::Operand;

/// Rows of the outer table whose inner rows are asked for together: what a core can wait for at once.
const ROWS_AHEAD: usize = 16;

/// How the rows of a second table are found for each of the first.
#[derive(Debug)]
pub(super) struct Join {
    pub(super) table: Arc<Table>,
    cells: Vec<(usize, Cell)>,
    way: Way,
    /// A row for which there is none comes alone.
    left: bool,
    row: RowBuf,
    key: Vec<u8>,
    ahead: Ahead,
}

/// Keys of inner rows that were asked for ahead.
#[derive(Debug, Default)]
struct Ahead {
    keys: KeyList,
    /// The outer rows, by their keys and stamps: together these say which version of which row it is. And whether one
    /// leads to a key.
    outer: KeyList,
    rows: Vec<(u64, bool)>,
    next: usize,
}

/// What is known of an outer row.
enum Foreseen<'k> {
    /// It leads to this key.
    Key(&'k [u8]),
    /// It leads nowhere.
    Nothing,
    Unknown,
}

impl Ahead {
    fn clear(&mut self) {
        self.keys.clear();
        self.outer.clear();
        self.rows.clear();
        self.next = 0;
    }

    /// Where an outer row leads. Rows come in the order in which they were looked at, but for those that the statement
    /// does not see.
    fn take(&mut self, row: &RowBuf) -> Foreseen<'_> {
        // The transaction's own come in between.
        if row.is_uncommitted() {
            return Foreseen::Unknown;
        }
        while let Some(&(stamp, leads)) = self.rows.get(self.next) {
            self.next += 1;
            let is_same = self.outer.next() == Some(row.key()) && stamp == row.stamp();
            // The keys are in the same order.
            if is_same {
                let key = if leads { self.keys.next() } else { None };
                return key.map_or(Foreseen::Nothing, Foreseen::Key);
            }
            if leads {
                self.keys.next();
            }
        }
        Foreseen::Unknown
    }
}

/// What a column of the second table equals.
#[derive(Clone, Debug)]
enum Cell {
    /// This column of the first.
    Outer(usize),
    Given(Operand),
}

/// What columns of the second table equal for a row of the first.
#[inline]
fn values_of<'v>(
    table: &'v Table,
    cells: &'v [(usize, Cell)],
    (outer, row): Row<'v>,
    parameters: &'v [Value],
) -> impl ExactSizeIterator<Item = (ColumnKind, ValueRef<'v>)> + Clone {
    cells.iter().map(move |(own, cell)| {
        let value = match cell {
            Cell::Outer(column) => outer.column(row, *column),
            Cell::Given(operand) => operand.value(parameters).as_ref(),
        };
        (table.def().columns[*own].kind, value)
    })
}

impl Join {
    /// A second table whose columns equal those of the first, `(own, outer)`, and what is given; `None` where nothing
    /// leads from there to its rows.
    pub(super) fn of(
        table: &Arc<Table>,
        links: &[(usize, usize)],
        given: &Equals,
        left: bool,
    ) -> Option<Self> {
        let links_cells = links.iter().map(|&(own, outer)| (own, Cell::Outer(outer)));
        let given_cells = given.iter().map(|(own, operand)| (*own, Cell::Given(operand.clone())));
        let cells: Vec<(usize, Cell)> = links_cells.chain(given_cells).collect();
        let (cells, way) = way(table, &cells).filter(|_| !links.is_empty())?;
        Some(Self {
            table: Arc::clone(table),
            cells,
            way,
            left,
            row: RowBuf::new(),
            key: Vec::new(),
            ahead: Ahead::default(),
        })
    }

    /// The rows for one of the outer table.
    pub(super) fn each(
        &mut self,
        walk: &mut Walk<'_>,
        outer: Row<'_>,
        take: &mut impl FnMut(Option<Row<'_>>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let found = match self.ahead.take(outer.1) {
            Foreseen::Nothing => false,
            Foreseen::Key(key) => {
                let found = walk.view.get(&self.table, key, &mut self.row)?;
                if found {
                    take(Some((&*self.table, &self.row)))?;
                } else {
                    walk.core.sight.missing.note(&self.table, key);
                }
                found
            }
            Foreseen::Unknown => self.look_up(walk, outer, take)?,
        };
        if self.left && !found { take(None) } else { Ok(()) }
    }

    /// The rows for one of the outer table that nobody looked at ahead; whether there is any.
    fn look_up(
        &mut self,
        walk: &mut Walk<'_>,
        outer: Row<'_>,
        take: &mut impl FnMut(Option<Row<'_>>) -> Result<(), Stop>,
    ) -> Result<bool, Stop> {
        let Self { table, cells, way, row, key, .. } = self;
        let values = values_of(table, cells, outer, walk.parameters);
        let mut found = false;
        with_stored(values, |values| {
            let Some(values) = values else { return Ok(()) };
            walk.each((table, *way), values, (row, key), Range::default(), &mut |_, inner, _| {
                found = true;
                take(Some(inner))
            })
        })?;
        Ok(found)
    }

    /// A walk begins.
    pub(super) fn begin(&mut self) {
        self.ahead.clear();
    }

    /// Asks memory for what the next rows of the outer table lead to, when what was asked for is used up.
    #[inline]
    pub(super) fn look_ahead<'r>(
        &mut self,
        walk: &Walk<'_>,
        outer: &Table,
        rows: impl Iterator<Item = &'r RowBuf>,
    ) {
        let Self { table, cells, way, ahead, .. } = self;
        if *way != Way::Key || ahead.next < ahead.rows.len() {
            return;
        }
        ahead.clear();
        for row in rows.take(ROWS_AHEAD) {
            let values = values_of(table, cells, (outer, row), walk.parameters);
            let leads =
                with_stored(values, |values| values.is_some_and(|values| ahead.keys.encode(table, values)));
            ahead.outer.push(row.key());
            ahead.rows.push((row.stamp(), leads));
        }
        ahead.keys.prefetch(&walk.core.store, table);
    }
}
