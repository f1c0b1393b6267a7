//! The elements of several arrays side by side, a row for each place: what `unnest(a, b)` in `FROM` and calls in the
//! list of a `SELECT` read. Each array is decoded once, when the rows begin.

use std::rc::Rc;

use sqlite::meter::{self, Kept};
use sqlite::{Arguments, Connection, Cursor, Module, Operator, Output, Request};
use sqltext::error::SqlError;
use store::value::{Value, ValueRef};

use super::array::Elements;
use crate::limits::UNNEST_ARRAYS_MAX;

/// What the table is called.
pub const NAME: &str = "_unnest";

/// Rows that SQLite is told to expect.
const ROWS: u64 = 10;

/// The column of the elements of an array, counted from 0. Shorter arrays end with NULLs, as PostgreSQL has it.
pub fn column(array: usize) -> String {
    format!("_element{array}")
}

/// The column of the elements' numbers.
pub fn subscript(array: usize) -> String {
    format!("_number{array}")
}

/// Makes the connection know the table.
pub(super) fn register(connection: &Connection) -> Result<(), SqlError> {
    Ok(connection.register(NAME, Rc::new(UnnestModule))?)
}

/// The columns: elements, their numbers, the arrays themselves, the row's number.
#[derive(Debug)]
struct UnnestModule;

/// What a column shows.
enum Shown {
    Element(usize),
    Number(usize),
    RowNumber,
    Nothing,
}

impl Shown {
    fn of(column: usize) -> Self {
        match (column / UNNEST_ARRAYS_MAX, column % UNNEST_ARRAYS_MAX) {
            (0, array) => Self::Element(array),
            (1, array) => Self::Number(array),
            (3, 0) => Self::RowNumber,
            _ => Self::Nothing,
        }
    }
}

fn first_argument() -> usize {
    2 * UNNEST_ARRAYS_MAX
}

impl Module for UnnestModule {
    type Cursor = UnnestCursor;

    fn declaration(&self) -> String {
        let arrays = 0..UNNEST_ARRAYS_MAX;
        let elements = arrays.clone().map(column);
        let numbers = arrays.clone().map(subscript);
        let arguments = arrays.map(|array| format!("_array{array} HIDDEN"));
        let all: Vec<String> =
            elements.chain(numbers).chain(arguments).chain(["ordinality HIDDEN".to_owned()]).collect();
        format!("CREATE TABLE x ({})", all.join(", "))
    }

    /// The arrays are conditions on hidden columns. All that the call has are needed: without one of them its rows
    /// would be missing.
    fn best_index(&self, request: &mut Request<'_>) -> bool {
        let number = |column: usize| i32::try_from(column).unwrap_or(i32::MAX);
        let (first, behind) = (number(first_argument()), number(first_argument() + UNNEST_ARRAYS_MAX));
        if request.waits_for(first..behind) {
            return false;
        }
        let equal = request.constraints().filter(|constraint| constraint.operator == Operator::Equal);
        let mut arrays: Vec<_> = equal.filter(|found| (first..behind).contains(&found.column)).collect();
        arrays.sort_by_key(|constraint| constraint.column);
        let in_order = (first..).zip(&arrays).all(|(column, constraint)| constraint.column == column);
        for (at, constraint) in arrays.iter().enumerate() {
            request.take(*constraint, at, true);
        }
        request.answer(0, "by arrays", ROWS as f64, ROWS);
        in_order && !arrays.is_empty()
    }

    fn open(self: &Rc<Self>) -> UnnestCursor {
        UnnestCursor::default()
    }
}

/// Reads the rows of one call.
#[derive(Default)]
struct UnnestCursor {
    arrays: Vec<Elements>,
    /// What they take of the statement's memory.
    kept: Kept,
    rows: usize,
    row: usize,
}

impl UnnestCursor {
    fn element(&self, array: usize) -> Option<&Value> {
        self.arrays.get(array)?.items.get(self.row)
    }
}

impl Cursor for UnnestCursor {
    fn filter(&mut self, _: i32, arguments: &Arguments<'_>) -> Result<(), String> {
        self.arrays.clear();
        self.kept = Kept::default();
        let read = |at| Elements::read(&arguments.value(at)).unwrap_or_default();
        let (arrays, kept) =
            meter::kept(|| (0..arguments.count()).map(read).collect()).map_err(|error| error.message)?;
        (self.arrays, self.kept) = (arrays, kept);
        self.rows = self.arrays.iter().map(|array| array.items.len()).max().unwrap_or(0);
        self.row = 0;
        Ok(())
    }

    fn next(&mut self) -> Result<(), String> {
        self.row += 1;
        Ok(())
    }

    fn at_end(&self) -> bool {
        self.row >= self.rows
    }

    fn column(&self, column: usize, output: Output<'_>) {
        match Shown::of(column) {
            Shown::Element(array) => output.set(self.element(array).map_or(ValueRef::Null, Value::as_ref)),
            Shown::Number(array) if self.element(array).is_some() => {
                let first = self.arrays.get(array).map_or(1, |array| array.first);
                output.set(ValueRef::Integer(first.saturating_add(self.place())));
            }
            Shown::RowNumber => output.set(ValueRef::Integer(self.row_number())),
            Shown::Number(_) | Shown::Nothing => output.set(ValueRef::Null),
        }
    }

    fn row_number(&self) -> i64 {
        self.place() + 1
    }
}

impl UnnestCursor {
    /// The row's place, from 0.
    fn place(&self) -> i64 {
        i64::try_from(self.row).unwrap_or(i64::MAX - 1)
    }
}
