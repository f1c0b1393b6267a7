//! The rows of a statement, one after the other, each with that of the second table which it leads to.

use std::sync::Arc;

use store::value::{Value, ValueRef};
use store::{ReadError, RowBuf, Table, View};

use super::WATCH_ROWS;
use super::lead::Lead;
use super::number::Beyond;
use super::scope::{Given, Side, Standing};
use crate::direct::{CONDITIONS_MAX, Conditions, Way, way, with_stored, with_values};
use crate::error::SqlError;
use crate::executor::Core;
use crate::table::KeyList;
use crate::write::Operand;

/// Rows of the outer table whose inner rows are asked for together: what a core can wait for at once.
const ROWS_AHEAD: usize = 16;

/// Why a walk ends early.
#[derive(Debug)]
pub(super) enum Stop {
    /// It is SQLite's to answer.
    Beyond,
    /// Boxed: each row brings a result that may hold it.
    Failed(Box<SqlError>),
}

impl From<Beyond> for Stop {
    fn from(Beyond: Beyond) -> Self {
        Self::Beyond
    }
}

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Self {
        Self::Failed(Box::new(error))
    }
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        Self::from(SqlError::from(error))
    }
}

/// What a statement walks with.
pub(super) struct Walk<'c> {
    core: &'c Core,
    view: &'c View<'c>,
    parameters: &'c [Value],
    rows: usize,
}

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
    /// The outer rows, by their keys and stamps: together these say which version of which row it is. And whether one leads
    /// to a key.
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

impl Cell {
    fn value<'v>(&'v self, (table, row): Standing<'v>, parameters: &'v [Value]) -> ValueRef<'v> {
        match self {
            Self::Outer(column) => table.column(row, *column),
            Self::Given(operand) => operand.value(parameters).as_ref(),
        }
    }
}

impl<'c> Walk<'c> {
    pub(super) fn new(core: &'c Core, view: &'c View<'c>, parameters: &'c [Value]) -> Self {
        Self { core, view, parameters, rows: 0 }
    }

    /// One more row was met: looks at the deadline now and then.
    #[inline]
    fn pass(&mut self) -> Result<(), Stop> {
        self.rows += 1;
        if self.rows.is_multiple_of(WATCH_ROWS) {
            self.core.sight.check_watch()?;
        }
        Ok(())
    }

    /// All rows of a table.
    pub(super) fn whole(
        &mut self,
        table: &Arc<Table>,
        row: &mut RowBuf,
        take: &mut impl FnMut(Given<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let mut rows = self.view.scan(table);
        while rows.next(self.view, row)? {
            self.pass()?;
            take(Given { first: Some((&**table, &*row)), second: None, parameters: self.parameters })?;
        }
        Ok(())
    }

    /// The rows that something leads to.
    pub(super) fn led(
        &mut self,
        lead: &mut Lead,
        row: &mut RowBuf,
        take: &mut impl FnMut(Given<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let Lead { table, side, conditions, way, join, .. } = lead;
        let (view, parameters, table, side) = (self.view, self.parameters, &*table, *side);
        with_values(table, conditions, parameters, |values| {
            let Some(values) = values else { return Ok(()) };
            let Way::Index(index) = *way else {
                let mut key = Vec::new();
                let there = table.keys().encode(values, &mut key).is_ok() && view.get(table, &key, row)?;
                return if there { self.outer((&**table, &*row), side, join.as_mut(), take) } else { Ok(()) };
            };
            let mut rows = view.equal(table, &table.indexes()[index], values, false);
            if let Some(join) = join {
                join.ahead.clear();
            }
            while rows.next(view, row)? {
                self.pass()?;
                if let Some(join) = join {
                    let ahead = std::iter::once(&*row).chain(rows.ahead());
                    join.look_ahead(self, table, ahead);
                }
                self.outer((&**table, &*row), side, join.as_mut(), take)?;
            }
            Ok(())
        })
    }

    /// A row of the outer table.
    fn outer(
        &mut self,
        outer: Standing<'_>,
        side: Side,
        join: Option<&mut Join>,
        take: &mut impl FnMut(Given<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let parameters = self.parameters;
        let mut pair = |inner: Option<Standing<'_>>| {
            let (first, second) = match side {
                Side::First => (Some(outer), inner),
                Side::Second => (inner, Some(outer)),
            };
            take(Given { first, second, parameters })
        };
        match join {
            None => pair(None),
            Some(join) => join.each(self, outer, &mut pair),
        }
    }
}

impl Join {
    /// A second table whose columns equal those of the first, `(own, outer)`, and what is given; `None` where nothing
    /// leads from there to its rows.
    pub(super) fn of(
        table: &Arc<Table>,
        links: &[(usize, usize)],
        given: &Conditions,
        left: bool,
    ) -> Option<Self> {
        let links_cells = links.iter().map(|&(own, outer)| (own, Cell::Outer(outer)));
        let given_cells = given.iter().map(|(own, operand)| (*own, Cell::Given(operand.clone())));
        let cells: Vec<(usize, Cell)> = links_cells.chain(given_cells).collect();
        let again = |at: usize, own: usize| cells[..at].iter().any(|(known, _)| *known == own);
        let repeats = cells.iter().enumerate().any(|(at, (own, _))| again(at, *own));
        if links.is_empty() || repeats || cells.len() > CONDITIONS_MAX {
            return None;
        }
        let (cells, way) = way(table, &cells)?;
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
    fn each(
        &mut self,
        walk: &mut Walk<'_>,
        outer: Standing<'_>,
        take: &mut impl FnMut(Option<Standing<'_>>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let found = match self.ahead.take(outer.1) {
            Foreseen::Nothing => false,
            Foreseen::Key(key) => {
                let found = walk.view.get(&self.table, key, &mut self.row)?;
                if found {
                    take(Some((&*self.table, &self.row)))?;
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
        outer: Standing<'_>,
        take: &mut impl FnMut(Option<Standing<'_>>) -> Result<(), Stop>,
    ) -> Result<bool, Stop> {
        let Self { table, cells, way, row, key, .. } = self;
        let (view, parameters, table) = (walk.view, walk.parameters, &*table);
        let columns = &table.def().columns;
        let values = cells.iter().map(|(own, cell)| (columns[*own].kind, cell.value(outer, parameters)));
        with_stored(values, |values| match (values, *way) {
            (None, _) => Ok(false),
            (Some(values), Way::Index(index)) => {
                let mut rows = view.equal(table, &table.indexes()[index], values, false);
                let mut found = false;
                while rows.next(view, row)? {
                    walk.pass()?;
                    found = true;
                    take(Some((&**table, &*row)))?;
                }
                Ok(found)
            }
            (Some(values), _) => {
                key.clear();
                let found = table.keys().encode(values, key).is_ok() && view.get(table, key, row)?;
                if found {
                    take(Some((&**table, &*row)))?;
                }
                Ok(found)
            }
        })
    }

    /// Asks memory for what the next rows of the outer table lead to, when what was asked for is used up.
    #[inline]
    fn look_ahead<'r>(&mut self, walk: &Walk<'_>, outer: &Table, rows: impl Iterator<Item = &'r RowBuf>) {
        let Self { table, cells, way, ahead, .. } = self;
        if *way != Way::Key || ahead.next < ahead.rows.len() {
            return;
        }
        ahead.clear();
        let columns = &table.def().columns;
        for row in rows.take(ROWS_AHEAD) {
            let values = cells
                .iter()
                .map(|(own, cell)| (columns[*own].kind, cell.value((outer, row), walk.parameters)));
            let leads =
                with_stored(values, |values| values.is_some_and(|values| ahead.keys.encode(table, values)));
            ahead.outer.push(row.key());
            ahead.rows.push((row.stamp(), leads));
        }
        ahead.keys.prefetch(&walk.core.store, table);
    }
}
