//! Functions that return rows, as tables: `FROM unnest(x)`, `FROM generate_series(1, 3)`.

use std::fmt;
use std::rc::Rc;

use sqlite::meter::{self, Kept};
use sqlite::{Arguments, Connection, Cursor, Module, Operator, Output, Request};
use sqltext::error::SqlError;
use store::value::{Value, ValueRef};

use super::array::Elements;
use super::keywords::KEYWORDS;
use super::rows::text;

/// Rows that SQLite is told to expect.
const ROWS: u64 = 10;

/// A function that returns rows.
pub struct RowFunction {
    pub name: &'static str,
    /// What a row has.
    pub columns: &'static [&'static str],
    /// The fewest and the most arguments.
    arguments: (usize, usize),
    rows: fn(&[Value]) -> RowSource,
}

/// Makes one row after the other.
type RowSource = Box<dyn Iterator<Item = Vec<Value>>>;

impl fmt::Debug for RowFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// All of them.
pub(super) static ROW_FUNCTIONS: &[RowFunction] = &[
    RowFunction {
        name: "_pg_expandarray",
        columns: &["x", "n"],
        arguments: (1, 1),
        rows: |arguments| {
            let items = Elements::read(&arguments[0]).unwrap_or_default().items;
            Box::new((1..).zip(items).map(|(number, item)| vec![item, Value::Integer(number)]))
        },
    },
    RowFunction {
        name: "generate_series",
        columns: &["value"],
        arguments: (2, 3),
        rows: |arguments| {
            let step = arguments.get(2).map_or(Some(1), integer);
            match (integer(&arguments[0]), integer(&arguments[1]), step) {
                (Some(first), Some(last), Some(step)) => Box::new(series(first, last, step)),
                _ => Box::new(std::iter::empty()),
            }
        },
    },
    RowFunction {
        name: "generate_subscripts",
        columns: &["value"],
        arguments: (2, 3),
        rows: |arguments| match Elements::read(&arguments[0]) {
            Some(elements) if integer(&arguments[1]) == Some(1) => {
                Box::new(series(elements.first, elements.last(), 1))
            }
            _ => Box::new(std::iter::empty()),
        },
    },
    RowFunction {
        name: "pg_get_keywords",
        columns: &["word", "catcode", "catdesc"],
        arguments: (0, 0),
        rows: |_| Box::new(KEYWORDS.iter().map(|word| vec![text(word), text("R"), text("reserved")])),
    },
    RowFunction {
        name: "pg_options_to_table",
        columns: &["option_name", "option_value"],
        arguments: (1, 1),
        rows: |arguments| {
            let items = Elements::read(&arguments[0]).unwrap_or_default().items;
            Box::new(items.into_iter().filter_map(|item| match item {
                Value::Text(option) => {
                    let (name, value) = option.split_once('=').unwrap_or((&option, ""));
                    Some(vec![text(name), text(value)])
                }
                _ => None,
            }))
        },
    },
    // There are no partitions.
    RowFunction {
        name: "pg_partition_ancestors",
        columns: &["relid"],
        arguments: (1, 1),
        rows: |_| Box::new(std::iter::empty()),
    },
    RowFunction {
        name: "unnest",
        columns: &["value"],
        arguments: (1, 1),
        rows: |arguments| {
            let items = Elements::read(&arguments[0]).unwrap_or_default().items;
            Box::new(items.into_iter().map(|item| vec![item]))
        },
    },
];

/// A function by its name, in any case.
pub fn row_function(name: &str) -> Option<&'static RowFunction> {
    ROW_FUNCTIONS.iter().find(|function| function.name.eq_ignore_ascii_case(name))
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(integer) => Some(*integer),
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// From the first number to the last one, by steps; a step of 0 gives nothing.
fn series(first: i64, last: i64, step: i64) -> impl Iterator<Item = Vec<Value>> {
    let within = move |number: &i64| match step {
        0 => false,
        up if up > 0 => *number <= last,
        _ => *number >= last,
    };
    let numbers = std::iter::successors(Some(first).filter(within), move |number| {
        number.checked_add(step).filter(within)
    });
    numbers.map(|number| vec![Value::Integer(number)])
}

/// Makes the connection know all of them.
pub(super) fn register(connection: &Connection) -> Result<(), SqlError> {
    for function in ROW_FUNCTIONS {
        connection.register(function.name, Rc::new(SeriesModule { function }))?;
    }
    Ok(())
}

/// One function, registered with one connection. Behind its columns come its arguments and the row's number, hidden.
#[derive(Debug)]
struct SeriesModule {
    function: &'static RowFunction,
}

impl SeriesModule {
    /// The position of the first argument among the columns.
    fn first_argument(&self) -> i32 {
        i32::try_from(self.function.columns.len()).unwrap_or(i32::MAX)
    }
}

impl Module for SeriesModule {
    type Cursor = SeriesCursor;

    fn declaration(&self) -> String {
        let shown = self.function.columns.iter().map(|column| format!("\"{column}\""));
        let arguments = (0..self.function.arguments.1).map(|at| format!("_argument{at} HIDDEN"));
        let all: Vec<String> = shown.chain(arguments).chain(["ordinality INT HIDDEN".to_owned()]).collect();
        format!("CREATE TABLE x ({})", all.join(", "))
    }

    /// The arguments are conditions on hidden columns; a plan without all that are needed is none.
    fn best_index(&self, request: &mut Request<'_>) -> bool {
        let constraints: Vec<_> = request.constraints().collect();
        let mut given = 0;
        for at in 0..self.function.arguments.1 {
            let column = self.first_argument() + i32::try_from(at).unwrap_or(0);
            let found = constraints
                .iter()
                .find(|constraint| constraint.operator == Operator::Equal && constraint.column == column);
            let Some(constraint) = found else { break };
            request.take(*constraint, at, true);
            given += 1;
        }
        request.answer(0, "by arguments", ROWS as f64, ROWS);
        given >= self.function.arguments.0
    }

    fn open(self: &Rc<Self>) -> SeriesCursor {
        SeriesCursor { function: self.function, rows: None, kept: Kept::default(), row: None, number: 0 }
    }
}

/// Reads what one call returns.
struct SeriesCursor {
    function: &'static RowFunction,
    rows: Option<RowSource>,
    /// What they take of the statement's memory.
    kept: Kept,
    row: Option<Vec<Value>>,
    number: i64,
}

impl Cursor for SeriesCursor {
    fn filter(&mut self, _: i32, arguments: &Arguments<'_>) -> Result<(), String> {
        let values: Vec<Value> = (0..arguments.count()).map(|at| arguments.value(at)).collect();
        if values.len() < self.function.arguments.0 {
            return Err(format!("{} takes more arguments", self.function.name));
        }
        // The rows before go first: what they take is free.
        (self.rows, self.kept) = (None, Kept::default());
        let (rows, kept) = meter::kept(|| (self.function.rows)(&values)).map_err(|error| error.message)?;
        (self.rows, self.kept) = (Some(rows), kept);
        self.number = 0;
        self.next()
    }

    fn next(&mut self) -> Result<(), String> {
        self.row = self.rows.as_mut().and_then(Iterator::next);
        self.number += 1;
        Ok(())
    }

    fn at_end(&self) -> bool {
        self.row.is_none()
    }

    fn column(&self, column: usize, output: Output<'_>) {
        if column == self.function.columns.len() + self.function.arguments.1 {
            return output.set(ValueRef::Integer(self.number));
        }
        let value = self.row.as_ref().and_then(|row| row.get(column));
        output.set(value.map_or(ValueRef::Null, Value::as_ref));
    }

    fn row_number(&self) -> i64 {
        self.number
    }
}
