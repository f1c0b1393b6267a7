//! How the rows of one table are found, and the walk to them: the one choice between key, keys, index and all rows.

use std::sync::Arc;

use store::value::{Value, ValueRef};
use store::{ElementsOf, Index, IndexScan, KeyBounds, ReadError, RowBuf, Table, View};

use super::expr::Beyond;
use super::scope::Row;
use super::values::{CONDITIONS_MAX, with_values};
use crate::core::Core;
use crate::error::SqlError;
use crate::table::{Asked, KeyList, Lead, Nulls, is_plain, keys_with};
use crate::write::Operand;

/// Rows between two looks at the deadline.
const WATCH_ROWS: usize = 1_024;

/// Columns of a table and what they equal.
pub(super) type Equals = Vec<(usize, Operand)>;

/// By what rows are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// All rows.
    All,
    /// By the whole primary key.
    Key,
    /// By a primary key of one column, which each of the conditions may say.
    Keys,
    /// By leading columns of the index at this position.
    Index(usize),
    /// By what is asked of an array, along an index over its elements.
    Elements(Elements),
}

/// What is asked of the elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Elements {
    /// The position of the index.
    index: usize,
    asked: Asked,
    /// The values are elements; otherwise the only one is an array of them.
    listed: bool,
}

/// The elements that are asked for.
#[derive(Debug)]
pub(super) enum Wanted {
    /// A value, or an array of values.
    One(Operand),
    /// `ARRAY[a, b]`
    List(Vec<Operand>),
}

/// The rows of a table that conditions lead to.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) table: Arc<Table>,
    /// In the order of the way's columns.
    pub(super) equals: Equals,
    pub(super) way: Way,
    row: RowBuf,
    key: Vec<u8>,
    keys: KeyList,
}

/// Which end of an index comes first, and how many rows are wanted, where that is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Range {
    pub(super) reverse: bool,
    pub(super) nulls: Nulls,
    pub(super) wanted: Option<usize>,
}

/// Why a walk ends early.
#[derive(Debug)]
pub(super) enum Stop {
    /// It is SQLite's to answer.
    Beyond,
    /// No more rows are wanted.
    Enough,
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
    pub(super) core: &'c Core,
    pub(super) view: &'c View<'c>,
    pub(super) parameters: &'c [Value],
    rows: usize,
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

    /// Gives `take` the rows of a table in which the way's columns have these values, and the scan that holds those to
    /// come.
    #[inline]
    pub(super) fn each(
        &mut self,
        (table, way): (&Arc<Table>, Way),
        values: &[ValueRef<'_>],
        (row, key): (&mut RowBuf, &mut Vec<u8>),
        range: Range,
        take: &mut impl FnMut(&mut Self, Row<'_>, Option<&IndexScan>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let view = self.view;
        match way {
            Way::Key | Way::Keys => {
                key.clear();
                if table.keys().encode(values, key).is_ok() {
                    if view.get(table, key, row)? {
                        take(self, (table, row), None)?;
                    } else {
                        self.core.sight.missing.note(table, key);
                    }
                }
            }
            Way::Index(index) => {
                let index = &table.indexes()[index];
                // What is walked as it is has one part.
                let [first, second] = parts(index, values, range.nulls);
                for bounds in std::iter::once(first).chain(second.map(Some)) {
                    let rows = match bounds {
                        None => view.equal(table, index, values, range.reverse),
                        Some(bounds) => view.range(table, index, &bounds, range.reverse),
                    };
                    let mut rows = match range.wanted {
                        Some(wanted) => rows.expecting(wanted),
                        None => rows,
                    };
                    while rows.next(view, row)? {
                        self.pass()?;
                        take(self, (table, row), Some(&rows))?;
                    }
                }
            }
            Way::Elements(of) => {
                let mut rows = view.equal(table, &table.indexes()[of.index], values, false);
                while rows.next(view, row)? {
                    self.pass()?;
                    take(self, (table, row), None)?;
                }
            }
            Way::All => {
                let mut rows = view.scan(table);
                while rows.next(view, row)? {
                    self.pass()?;
                    take(self, (table, row), None)?;
                }
            }
        }
        Ok(())
    }
}

/// The parts of an index behind equal columns, in the order in which they are walked; `None`: all of it.
fn parts(index: &Index, equal: &[ValueRef<'_>], nulls: Nulls) -> [Option<KeyBounds>; 2] {
    if nulls == Nulls::AsIndexed {
        return [None, None];
    }
    let equal: Vec<Value> = equal.iter().copied().map(ValueRef::to_owned).collect();
    nulls.parts(index, &equal).map_or([None, None], |parts| parts.map(Some))
}

/// The rows of these keys.
fn each_of(
    table: &Arc<Table>,
    keys: &mut KeyList,
    row: &mut RowBuf,
    walk: &mut Walk<'_>,
    take: &mut impl FnMut(&mut Walk<'_>, Row<'_>, Option<&IndexScan>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    keys.prefetch(&walk.core.store, table);
    while let Some(key) = keys.next() {
        walk.pass()?;
        if walk.view.get(table, key, row)? {
            take(walk, (table, row), None)?;
        } else {
            walk.core.sight.missing.note(table, key);
        }
    }
    Ok(())
}

/// The conditions on just these columns, in their order; `None` unless they are all there is.
fn ordered<V: Clone>(conditions: &[(usize, V)], columns: &[usize]) -> Option<Vec<(usize, V)>> {
    if columns.len() != conditions.len() {
        return None;
    }
    let find = |column: &usize| conditions.iter().find(|(known, _)| known == column).cloned();
    columns.iter().map(find).collect()
}

/// How rows of these conditions are found: by the key, or along the first index that begins with just these columns.
pub(super) fn way<V: Clone>(table: &Table, conditions: &[(usize, V)]) -> Option<(Vec<(usize, V)>, Way)> {
    let again = |at: usize, column: usize| conditions[..at].iter().any(|(known, _)| *known == column);
    let repeats = conditions.iter().enumerate().any(|(at, (column, _))| again(at, *column));
    let count = conditions.len();
    if repeats || count == 0 || count > CONDITIONS_MAX {
        return None;
    }
    if let Some(conditions) = ordered(conditions, &table.def().primary_key) {
        return Some((conditions, Way::Key));
    }
    table.indexes().iter().enumerate().find_map(|(at, index)| {
        // The conditions compare by the columns' own collations, and no predicate is known to hold.
        let columns = index.def().columns.get(..count)?;
        let own =
            |(at, &column): (usize, &usize)| index.collation(at) == table.def().columns[column].collation;
        let fits =
            index.is_usable() && index.def().predicate.is_none() && columns.iter().enumerate().all(own);
        Some((ordered(conditions, columns).filter(|_| fits)?, Way::Index(at)))
    })
}

impl Access {
    fn new(table: &Arc<Table>, equals: Equals, way: Way) -> Self {
        let (row, key, keys) = (RowBuf::new(), Vec::new(), KeyList::default());
        Self { table: Arc::clone(table), equals, way, row, key, keys }
    }

    /// All rows.
    pub(super) fn all(table: &Arc<Table>) -> Self {
        Self::new(table, Vec::new(), Way::All)
    }

    /// The rows of which these hold; `None`: nothing leads to them.
    pub(super) fn by(table: &Arc<Table>, equals: &[(usize, Operand)]) -> Option<Self> {
        let (equals, way) = way(table, equals)?;
        Some(Self::new(table, equals, way))
    }

    /// The rows under a list of keys; `None`: the column is not the key.
    pub(super) fn by_keys(table: &Arc<Table>, column: usize, keys: &[Operand]) -> Option<Self> {
        let keys = keys.iter().map(|key| (column, key.clone())).collect();
        (table.def().primary_key == [column]).then(|| Self::new(table, keys, Way::Keys))
    }

    /// The rows with certain elements in an array; `None`: the column has no index over these.
    pub(super) fn by_elements(
        table: &Arc<Table>,
        column: usize,
        asked: Asked,
        wanted: &Wanted,
    ) -> Option<Self> {
        let serves = |index: &Arc<Index>| {
            let def = index.def();
            let of_array = def.elements == Some(column) && index.elements_of() == ElementsOf::Array;
            index.is_usable() && def.predicate.is_none() && of_array
        };
        let index = table.indexes().iter().position(serves)?;
        let (operands, listed) = match wanted {
            Wanted::One(operand) => (std::slice::from_ref(operand), false),
            Wanted::List(operands) => (&operands[..], true),
        };
        let equals = operands.iter().map(|operand| (column, operand.clone())).collect();
        Some(Self::new(table, equals, Way::Elements(Elements { index, asked, listed })))
    }

    /// Gives `take` each row.
    #[inline]
    pub(super) fn each(
        &mut self,
        walk: &mut Walk<'_>,
        range: Range,
        take: &mut impl FnMut(&mut Walk<'_>, Row<'_>, Option<&IndexScan>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        match self.way {
            Way::Keys => return self.each_key(walk, take),
            Way::Elements(of) => return self.each_with(of, walk, take),
            Way::All | Way::Key | Way::Index(_) => {}
        }
        let Self { table, equals, way, row, key, .. } = self;
        with_values(table, equals, walk.parameters, |values| match values {
            Some(values) => walk.each((table, *way), values, (row, key), range, take),
            None => Ok(()),
        })
    }

    /// The rows of a list of keys, each once.
    fn each_key(
        &mut self,
        walk: &mut Walk<'_>,
        take: &mut impl FnMut(&mut Walk<'_>, Row<'_>, Option<&IndexScan>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        if !self.is_plain(walk.parameters) {
            return Err(Stop::Beyond);
        }
        let Self { table, equals, row, keys, .. } = self;
        keys.clear();
        let values = equals.iter().map(|(_, operand)| operand.value(walk.parameters).as_ref());
        for value in values.filter(|value| *value != ValueRef::Null) {
            keys.encode(table, &[value]);
        }
        keys.sort();
        each_of(table, keys, row, walk, take)
    }

    /// The rows with the elements that are asked for, each once.
    fn each_with(
        &mut self,
        of: Elements,
        walk: &mut Walk<'_>,
        take: &mut impl FnMut(&mut Walk<'_>, Row<'_>, Option<&IndexScan>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let Elements { index, asked, .. } = of;
        let wanted = self.wanted(of, walk.parameters).ok_or(Stop::Beyond)?;
        let Self { table, equals, row, key, way, .. } = self;
        let Some(&(column, _)) = equals.first().filter(|_| !wanted.is_empty()) else { return Ok(()) };
        let (any, exact) = match asked.lead(walk.view, &table.indexes()[index], wanted.clone()) {
            Lead::Nothing => return Ok(()),
            Lead::Everything => return Err(Stop::Beyond),
            Lead::Elements { any, exact } => (any, exact),
        };
        let mut take = |walk: &mut Walk<'_>, (table, row): Row<'_>, scan: Option<&IndexScan>| {
            let meant = exact || asked.is_true_of(table.column(row, column), &wanted);
            if meant { take(walk, (table, row), scan) } else { Ok(()) }
        };
        if let [element] = &any[..] {
            return walk.each((table, *way), &[element.as_ref()], (row, key), Range::default(), &mut take);
        }
        let mut keys = keys_with(walk.view, table, &table.indexes()[index], &any)?;
        each_of(table, &mut keys, row, walk, &mut take)
    }

    /// The elements that are asked for: none where no row is. `None`: SQLite has to say what they equal.
    fn wanted(&self, of: Elements, parameters: &[Value]) -> Option<Vec<Value>> {
        let mut values = self.equals.iter().map(|(_, operand)| operand.value(parameters));
        let found = if of.listed {
            values.cloned().collect()
        } else {
            match values.next()? {
                Value::Null => return Some(Vec::new()),
                // No array has all of several where one is NULL. A text that only reads so is SQLite's, too.
                Value::Text(array) if of.asked == Asked::Contains && array.contains("null") => return None,
                value => of.asked.wanted(value.as_ref())?,
            }
        };
        let plain = |value: &Value| matches!(value, Value::Text(_) | Value::Integer(_));
        // Every array has all elements of an empty one.
        let every = found.is_empty() && of.asked == Asked::Contains;
        (!every && found.iter().all(plain)).then_some(found)
    }

    /// Whether each value that is looked for, of a list of keys or among elements, is one whose stored form equals it,
    /// or none: of others SQLite has to say what they equal.
    pub(super) fn is_plain(&self, parameters: &[Value]) -> bool {
        let mut values =
            self.equals.iter().map(|(column, operand)| (*column, operand.value(parameters).as_ref()));
        match self.way {
            Way::All | Way::Key | Way::Index(_) => true,
            Way::Elements(of) => self.wanted(of, parameters).is_some(),
            Way::Keys => values.all(|(column, value)| {
                value == ValueRef::Null || is_plain(self.table.def().columns[column].kind, value)
            }),
        }
    }

    /// Writes down the key that the conditions ask for. False: no row has it.
    pub(super) fn encode_key(&self, parameters: &[Value], key: &mut Vec<u8>) -> bool {
        key.clear();
        with_values(&self.table, &self.equals, parameters, |values| {
            values.is_some_and(|values| self.table.keys().encode(values, key).is_ok())
        })
    }

    /// Whether the conditions are true of a row.
    pub(super) fn is_true_of(&self, parameters: &[Value], row: &RowBuf) -> bool {
        let Self { table, equals, way, .. } = self;
        if let Way::Elements(of) = *way {
            let wanted = self.wanted(of, parameters).filter(|wanted| !wanted.is_empty());
            return equals.first().zip(wanted).is_some_and(|(&(column, _), wanted)| {
                of.asked.is_true_of(table.column(row, column), &wanted)
            });
        }
        if *way == Way::Keys {
            let is = |(column, operand): &(usize, Operand)| {
                let value = operand.value(parameters).as_ref();
                value != ValueRef::Null && table.column(row, *column) == value
            };
            return equals.iter().any(is);
        }
        with_values(table, equals, parameters, |values| {
            let holds = |(value, (column, _)): (&ValueRef<'_>, &(usize, Operand))| {
                let collation = table.def().columns[*column].collation;
                collation.compare(table.column(row, *column), *value).is_eq()
            };
            values.is_some_and(|values| values.iter().zip(equals).all(holds))
        })
    }
}
