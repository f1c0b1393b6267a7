//! Functions that return rows, as tables: `FROM unnest(x)`, `FROM generate_series(1, 3)`.

use std::fmt;
use std::rc::Rc;

use sqlite::meter::{self, Kept};
use sqlite::{Arguments, Connection, Cursor, Module, Operator, Output, Request};
use sqltext::error::{SqlError, state};
use store::definition::SqlType;
use store::value::{Value, ValueRef};

use super::System;
use super::array::Elements;
use super::members;
use super::rows::text;
use crate::function;
use crate::keywords::{KEYWORDS, Keyword};

/// Rows that SQLite is told to expect.
const ROWS: u64 = 10;

/// A function that returns rows.
pub struct RowFunction {
    /// What it is called.
    pub name: &'static str,
    /// What a row has.
    pub columns: &'static [RowColumn],
    /// Its only column keeps its name whatever the table is called, for the function names it.
    pub named: bool,
    /// The fewest and the most arguments.
    arguments: (usize, usize),
    rows: Rows,
}

/// A column of such a function.
#[derive(Debug)]
pub struct RowColumn {
    /// What it is called.
    pub name: &'static str,
    ty: ColumnType,
}

#[derive(Clone, Copy, Debug)]
enum ColumnType {
    /// It depends on the arguments.
    Open,
    Is(SqlType),
    ArrayOf(SqlType),
}

impl RowColumn {
    const fn open(name: &'static str) -> Self {
        Self { name, ty: ColumnType::Open }
    }

    pub(super) const fn is(name: &'static str, ty: SqlType) -> Self {
        Self { name, ty: ColumnType::Is(ty) }
    }

    /// Its type, where it is always the same.
    pub fn ty(&self) -> Option<SqlType> {
        match self.ty {
            ColumnType::Open => None,
            ColumnType::Is(ty) => Some(ty),
            ColumnType::ArrayOf(ty) => ty.array(),
        }
    }
}

/// Makes one row after the other.
pub(super) type RowSource = Box<dyn Iterator<Item = Vec<Value>>>;

/// The rows of one call.
pub(super) type Rows = fn(&[Value]) -> Result<RowSource, SqlError>;

impl fmt::Debug for RowFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A function whose only column is called like its table.
pub(super) const fn single(
    name: &'static str,
    column: &'static [RowColumn],
    arguments: (usize, usize),
    rows: Rows,
) -> RowFunction {
    RowFunction { name, columns: column, named: false, arguments, rows }
}

/// A function that names its columns.
pub(super) const fn named(
    name: &'static str,
    columns: &'static [RowColumn],
    arguments: (usize, usize),
    rows: Rows,
) -> RowFunction {
    RowFunction { name, columns, named: true, arguments, rows }
}

fn nothing() -> RowSource {
    Box::new(std::iter::empty())
}

const VALUE: &[RowColumn] = &[RowColumn::open("value")];
const INTEGER: &[RowColumn] = &[RowColumn::is("value", SqlType::Int4)];
const TEXT: &[RowColumn] = &[RowColumn::is("value", SqlType::Text)];
const TEXTS: &[RowColumn] = &[RowColumn { name: "value", ty: ColumnType::ArrayOf(SqlType::Text) }];
const MOMENT: &[RowColumn] = &[RowColumn::is("value", SqlType::Timestamptz)];

/// Those of numbers, moments, arrays and texts, and of the catalogue.
static FUNCTIONS: &[RowFunction] = &[
    named(
        "_pg_expandarray",
        &[RowColumn::open("x"), RowColumn::is("n", SqlType::Int4)],
        (1, 1),
        |arguments| {
            let items = Elements::read(&arguments[0]).unwrap_or_default().items;
            Ok(Box::new((1..).zip(items).map(|(number, item)| vec![item, Value::Integer(number)])))
        },
    ),
    single(MOMENT_SERIES, MOMENT, (3, 3), |arguments| {
        Ok(Box::new(function::moment_series(arguments)?.map(|moment| vec![moment])))
    }),
    single("generate_series", VALUE, (2, 3), |arguments| {
        let step = arguments.get(2).cloned().unwrap_or(Value::Integer(1));
        match (number(&arguments[0]), number(&arguments[1]), number(&step)) {
            (_, _, Some(Number::Integer(0))) => {
                Err(SqlError::new(state::BAD_PARAMETER, "step size cannot equal zero"))
            }
            (Some(Number::Integer(first)), Some(Number::Integer(last)), Some(Number::Integer(step))) => {
                Ok(Box::new(series(first, last, step)))
            }
            (Some(first), Some(last), Some(step)) => {
                Ok(Box::new(real_series(first.real(), last.real(), step.real())))
            }
            _ => Ok(nothing()),
        }
    }),
    single("generate_subscripts", INTEGER, (2, 3), |arguments| {
        Ok(match Elements::read(&arguments[0]) {
            Some(elements) if integer(&arguments[1]) == Some(1) => {
                Box::new(series(elements.first, elements.last(), 1))
            }
            _ => nothing(),
        })
    }),
    named(
        "pg_available_extension_versions",
        &[RowColumn::is("name", SqlType::Name), RowColumn::is("version", SqlType::Text)],
        (0, 0),
        |_| Ok(nothing()),
    ),
    named(
        "pg_get_keywords",
        &[
            RowColumn::is("word", SqlType::Text),
            RowColumn::is("catcode", SqlType::Char),
            RowColumn::is("barelabel", SqlType::Bool),
            RowColumn::is("catdesc", SqlType::Text),
            RowColumn::is("baredesc", SqlType::Text),
        ],
        (0, 0),
        |_| {
            let row = |own: &Keyword| {
                let label = if own.bare { "can be bare label" } else { "requires AS" };
                let bare = Value::Integer(i64::from(own.bare));
                vec![text(own.word), text(own.category), bare, text(own.meaning()), text(label)]
            };
            Ok(Box::new(KEYWORDS.iter().map(row)))
        },
    ),
    named(
        "pg_options_to_table",
        &[RowColumn::is("option_name", SqlType::Text), RowColumn::is("option_value", SqlType::Text)],
        (1, 1),
        |arguments| {
            let items = Elements::read(&arguments[0]).unwrap_or_default().items;
            Ok(Box::new(items.into_iter().filter_map(|item| match item {
                Value::Text(option) => {
                    let (name, value) = option.split_once('=').unwrap_or((&option, ""));
                    Some(vec![text(name), text(value)])
                }
                _ => None,
            })))
        },
    ),
    // No table is a part of another.
    named("pg_partition_ancestors", &[RowColumn::is("relid", SqlType::Regclass)], (1, 1), |_| Ok(nothing())),
    single("regexp_matches", TEXTS, (2, 3), |arguments| Ok(each(function::regexp_matches(arguments)?))),
    single("regexp_split_to_table", TEXT, (2, 3), |arguments| Ok(each(function::regexp_parts(arguments)?))),
    single("string_to_table", TEXT, (2, 3), |arguments| Ok(each(function::text_parts(arguments)?))),
    single("unnest", VALUE, (1, 1), |arguments| {
        Ok(each(Elements::read(&arguments[0]).unwrap_or_default().items))
    }),
];

/// What `generate_series` of moments is called.
pub const MOMENT_SERIES: &str = "_moment_series";

/// A row for each value.
pub(super) fn each(values: Vec<Value>) -> RowSource {
    Box::new(values.into_iter().map(|value| vec![value]))
}

/// All of them.
fn all() -> impl Iterator<Item = &'static RowFunction> {
    FUNCTIONS.iter().chain(members::FUNCTIONS)
}

/// A function by its name, in any case.
pub fn row_function(name: &str) -> Option<&'static RowFunction> {
    all().find(|function| function.name.eq_ignore_ascii_case(name))
}

/// The table that a function is to SQLite. No statement calls it so: what the walk wrote once stays as it is.
pub fn rows_table(function: &RowFunction) -> String {
    format!("_{}", function.name)
}

/// Whether SQLite knows a function that returns rows as this table.
pub fn is_rows_table(name: &str) -> bool {
    row_function(name).is_some() || name.strip_prefix('_').is_some_and(|own| row_function(own).is_some())
}

#[derive(Clone, Copy)]
enum Number {
    Integer(i64),
    Real(f64),
}

impl Number {
    fn real(self) -> f64 {
        match self {
            Self::Integer(integer) => integer as f64,
            Self::Real(real) => real,
        }
    }
}

fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Real(real) => Some(Number::Real(*real)),
        Value::Text(text) if integer(value).is_none() => text.trim().parse().ok().map(Number::Real),
        other => integer(other).map(Number::Integer),
    }
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

/// The same of numbers with a fraction, each counted from the first: nothing adds up.
fn real_series(first: f64, last: f64, step: f64) -> impl Iterator<Item = Vec<Value>> {
    let within = move |number: &f64| match step {
        up if up > 0.0 => *number <= last,
        down if down < 0.0 => *number >= last,
        _ => false,
    };
    let numbers = (0_i64..).map(move |place| first + step * place as f64).take_while(within);
    numbers.map(|number| vec![Value::Real(number)])
}

/// Makes the connection know all of them.
pub(super) fn register(system: &Rc<System>, connection: &Connection) -> Result<(), SqlError> {
    for function in all() {
        for name in [function.name.to_owned(), rows_table(function)] {
            connection.register(&name, Rc::new(SeriesModule { function, system: Rc::clone(system) }))?;
        }
    }
    Ok(())
}

/// One function, registered with one connection. Behind its columns come its arguments and the row's number, hidden.
#[derive(Debug)]
struct SeriesModule {
    function: &'static RowFunction,
    system: Rc<System>,
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
        let shown = self.function.columns.iter().map(|column| format!("\"{}\"", column.name));
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
        let (function, system) = (self.function, Rc::clone(&self.system));
        SeriesCursor { function, system, rows: None, kept: Kept::default(), row: None, number: 0 }
    }
}

/// Reads what one call returns.
struct SeriesCursor {
    function: &'static RowFunction,
    system: Rc<System>,
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
        let made = meter::kept(|| (self.function.rows)(&values));
        let (rows, kept) =
            made.and_then(|(rows, kept)| Ok((rows?, kept))).map_err(|error| self.system.fail(error))?;
        (self.rows, self.kept) = (Some(rows), kept);
        self.number = 0;
        self.next()
    }

    fn next(&mut self) -> Result<(), String> {
        self.row = meter::part(|| self.rows.as_mut().and_then(Iterator::next));
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
