//! `SELECT` of columns, of groups, or of a number of rows.
//!
//! Columns are given as the rows come. Aggregates are of whole numbers, where arithmetic has one meaning. What turns
//! out to be anything else while it runs (a sum that overflows, a parameter that is a text) is left to SQLite, which
//! begins again: nothing was given until then.

use store::value::{Value, ValueRef};

use super::Ran;
use super::access::{Range, Stop, Walk, Way};
use super::expr::Test;
use super::grouping::Grouping;
use super::groups::Groups;
use super::scope::{Given, Place};
use super::source::Source;
use crate::core::Core;
use crate::describe::ColumnDescription;
use crate::done::{ComputedBy, Done, DoneKind, RowSink};
use crate::error::SqlError;
use crate::table::Nulls;
use crate::write::Operand;

/// Columns whose values are gathered on the stack; of more they lie on the heap.
const COLUMNS_AT_HAND: usize = 16;

/// A query.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) source: Source,
    /// What is to hold of a row beside what led to it.
    pub(super) filter: Option<Test>,
    pub(super) output: Output,
    pub(super) extent: Extent,
    /// Its columns as clients see them; `None`: SQLite compiles the statement to say that.
    pub(super) columns: Option<Vec<ColumnDescription>>,
}

/// What is given of the rows.
#[derive(Debug)]
pub(super) enum Output {
    Columns(Vec<Place>),
    Groups(Grouping),
    /// How many there are.
    Count,
}

/// Which of the rows of an index are given.
#[derive(Debug, Default)]
pub(super) struct Extent {
    /// From the end of the index to its beginning.
    pub(super) reverse: bool,
    pub(super) nulls: Nulls,
    pub(super) limit: Option<Operand>,
    pub(super) offset: Option<Operand>,
}

impl Extent {
    /// How many rows are passed over, and how many given at most; `None` where SQLite has to say.
    fn of(&self, parameters: &[Value]) -> Option<(u64, u64)> {
        let number = |operand: &Option<Operand>, negative: u64, none: u64| match operand {
            None => Some(none),
            Some(operand) => match operand.value(parameters) {
                Value::Integer(number) => Some(u64::try_from(*number).unwrap_or(negative)),
                _ => None,
            },
        };
        Some((number(&self.offset, 0, 0)?, number(&self.limit, u64::MAX, u64::MAX)?))
    }
}

impl Query {
    /// How many columns its rows have.
    pub(super) fn width(&self) -> usize {
        match &self.output {
            Output::Columns(places) => places.len(),
            Output::Groups(grouping) => grouping.width(),
            Output::Count => 1,
        }
    }

    /// Whether it runs here with these parameters, as far as that is known before a row was looked at.
    pub(super) fn runs_with(&self, core: &Core, parameters: &[Value]) -> bool {
        self.extent.of(parameters).is_some()
            && self.source.is_plain(parameters)
            && !self.source.is_long_way(&core.view(), parameters)
    }

    /// `described`: its columns as SQLite describes them, where it was asked.
    pub(super) fn run<'c>(
        &mut self,
        core: &'c Core,
        parameters: &[Value],
        described: Option<&[ColumnDescription]>,
        out: &mut dyn RowSink,
    ) -> Result<Ran<'c>, SqlError> {
        let Some(extent) = self.extent.of(parameters) else { return Ok(Ran::Left(None)) };
        let mut view = core.view().of_query();
        let Self { source, filter, output, columns, extent: Extent { reverse, nulls, .. } } = self;
        let columns = columns.as_deref().or(described).unwrap_or_default();
        let mut walk = Walk::new(core, &view, parameters);
        let result = if source.is_long_way(&view, parameters) {
            Err(Stop::Beyond)
        } else {
            match output {
                Output::Columns(places) => {
                    let given = Giver { places, columns, out, rows: 0 };
                    given.give(source, &mut walk, (*reverse, *nulls), extent)
                }
                Output::Groups(grouping) => {
                    group(source, &mut walk, filter.as_ref(), grouping).and_then(|groups| {
                        let groups = groups.in_order();
                        // What one of them does not come to is SQLite's to say, of all.
                        let results = groups.iter().map(|group| grouping.results(group));
                        let results = results.collect::<Result<Vec<_>, _>>()?;
                        out.columns(columns);
                        for (group, results) in groups.iter().zip(&results) {
                            out.row(&grouping.row(group, results))?;
                        }
                        Ok(groups.len() as u64)
                    })
                }
                Output::Count => count(source, &mut walk).and_then(|rows| {
                    out.columns(columns);
                    out.row(&[ValueRef::Integer(rows.cast_signed())])?;
                    Ok(1)
                }),
            }
        };
        match result {
            Ok(rows) => {
                let by = ComputedBy::Native;
                let (kind, tag) = (DoneKind::Rows, "SELECT");
                Ok(Ran::Done(Done { kind, affected: rows, tag, by, invalidated: None }))
            }
            Err(Stop::Failed(error)) => Err(*error),
            Err(Stop::Beyond | Stop::Enough) => {
                view.begin_anew();
                Ok(Ran::Left(Some(view)))
            }
        }
    }
}

/// How many rows there are: by the store's own account where that is exact.
fn count(source: &mut Source, walk: &mut Walk<'_>) -> Result<u64, Stop> {
    if let Some(access) = source.alone().filter(|access| access.way == Way::All)
        && let Some(rows) = walk.view.known_rows(&access.table)
    {
        return Ok(rows);
    }
    let mut rows = 0;
    source.each(walk, Range::default(), &mut |_| {
        rows += 1;
        Ok(())
    })?;
    Ok(rows)
}

/// Takes all rows into their groups.
fn group(
    source: &mut Source,
    walk: &mut Walk<'_>,
    filter: Option<&Test>,
    grouping: &Grouping,
) -> Result<Groups, Stop> {
    let mut groups = grouping.begin();
    let heap_bytes_max = walk.core.heap_bytes_max();
    source.each(walk, Range::default(), &mut |given| {
        if let Some(filter) = filter
            && filter.holds(given)? != Some(true)
        {
            return Ok(());
        }
        Ok(grouping.take(&mut groups, given, heap_bytes_max)?)
    })?;
    Ok(groups)
}

/// Gives columns of each row. The columns are named before the first row and not sooner: a statement that has given
/// nothing can begin again.
struct Giver<'q, 'o> {
    places: &'q [Place],
    columns: &'q [ColumnDescription],
    out: &'o mut dyn RowSink,
    rows: u64,
}

impl Giver<'_, '_> {
    /// The rows behind the first `skip`, at most `most` of them; returns how many.
    fn give(
        mut self,
        source: &mut Source,
        walk: &mut Walk<'_>,
        (reverse, nulls): (bool, Nulls),
        (skip, most): (u64, u64),
    ) -> Result<u64, Stop> {
        let wanted = usize::try_from(skip.saturating_add(most)).unwrap_or(usize::MAX);
        let mut passed = 0;
        let result = match most {
            0 => Ok(()),
            _ => source.each(walk, Range { reverse, nulls, wanted: Some(wanted) }, &mut |given| {
                passed += 1;
                if passed > skip {
                    self.row(given)?;
                }
                if self.rows == most { Err(Stop::Enough) } else { Ok(()) }
            }),
        };
        match result {
            Ok(()) | Err(Stop::Enough) => {}
            Err(stop) => return Err(stop),
        }
        if self.rows == 0 {
            self.out.columns(self.columns);
        }
        Ok(self.rows)
    }

    fn row(&mut self, given: Given<'_>) -> Result<(), SqlError> {
        if self.rows == 0 {
            self.out.columns(self.columns);
        }
        self.rows += 1;
        let mut few = [ValueRef::Null; COLUMNS_AT_HAND];
        let Some(few) = few.get_mut(..self.places.len()) else {
            let all: Vec<_> = self.places.iter().map(|&place| given.column(place)).collect();
            return self.out.row(&all);
        };
        for (value, &place) in few.iter_mut().zip(self.places) {
            *value = given.column(place);
        }
        self.out.row(few)
    }
}
