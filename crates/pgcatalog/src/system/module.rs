//! A system table as SQLite sees it: rows computed once for a statement, found by equality with any of its columns.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use sqlite::{Arguments, Cursor, Module, Operator, Output, Request};
use store::definition::Collation;
use store::value::{Value, ValueRef};

use super::System;
use super::columns::{LAYOUTS, Layout};

/// Rows of a table that SQLite is told to expect: enough to prefer a lookup over a walk.
const ROWS: u64 = 200;
/// Rows that one lookup is said to find.
const ROWS_FOUND: u64 = 2;
/// The plan that reads every row; the plan `n` finds by the column `n - 1`.
const EVERY_ROW: i32 = 0;

/// One system table, registered with one connection.
#[derive(Debug)]
pub(super) struct SystemModule {
    at: usize,
    system: Rc<System>,
}

/// The rows of one table in one statement.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub rows: Vec<Vec<Value>>,
    /// By column: which rows hold a value. Made when a cursor first asks.
    found: RefCell<HashMap<usize, Rc<Places>>>,
}

type Places = HashMap<Key, Vec<u32>>;

/// A value by which rows are found; others are compared by SQLite.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Integer(i64),
    Text(String),
}

impl Content {
    pub(super) fn new(rows: Vec<Vec<Value>>) -> Self {
        Self { rows, found: RefCell::default() }
    }

    /// The places of the rows whose column has a value.
    fn places(&self, column: usize) -> Rc<Places> {
        let mut found = self.found.borrow_mut();
        let made = || {
            let mut places = Places::new();
            for (place, row) in (0..).zip(&self.rows) {
                if let Some(key) = row.get(column).and_then(Key::stored) {
                    places.entry(key).or_default().push(place);
                }
            }
            Rc::new(places)
        };
        Rc::clone(found.entry(column).or_insert_with(made))
    }
}

impl Key {
    fn stored(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(integer) => Some(Self::Integer(*integer)),
            Value::Text(text) => Some(Self::Text(text.clone())),
            _ => None,
        }
    }

    /// What a column of integers or of texts is compared with; `None` where SQLite has to compare.
    fn sought(value: &Value, integer: bool) -> Option<Self> {
        match value {
            Value::Integer(sought) if integer => Some(Self::Integer(*sought)),
            Value::Text(text) if integer => text.parse().ok().map(Self::Integer),
            Value::Text(text) => Some(Self::Text(text.clone())),
            _ => None,
        }
    }
}

impl SystemModule {
    pub(super) fn new(at: usize, system: &Rc<System>) -> Rc<Self> {
        Rc::new(Self { at, system: Rc::clone(system) })
    }

    fn layout(&self) -> &'static Layout {
        &LAYOUTS[self.at]
    }
}

impl Module for SystemModule {
    type Cursor = SystemCursor;

    fn declaration(&self) -> String {
        self.layout().declaration()
    }

    fn best_index(&self, request: &mut Request<'_>) -> bool {
        let width = i32::try_from(self.layout().columns.len()).unwrap_or(0);
        let constraints: Vec<_> = request.constraints().collect();
        let found = constraints.into_iter().find(|constraint| {
            constraint.operator == Operator::Equal
                && (0..width).contains(&constraint.column)
                && request.collation(*constraint) == Some(Collation::Binary)
        });
        match found {
            Some(constraint) => {
                request.take(constraint, 0, false);
                request.answer(constraint.column + 1, "by value", ROWS_FOUND as f64 * 2.0, ROWS_FOUND);
            }
            None => request.answer(EVERY_ROW, "every row", ROWS as f64, ROWS),
        }
        true
    }

    fn open(self: &Rc<Self>) -> SystemCursor {
        SystemCursor { module: Rc::clone(self), content: Rc::default(), places: None, at: 0 }
    }
}

/// Reads the rows of one table.
#[derive(Debug)]
pub(super) struct SystemCursor {
    module: Rc<SystemModule>,
    content: Rc<Content>,
    /// The rows to show; `None` for all.
    places: Option<Vec<u32>>,
    at: usize,
}

impl SystemCursor {
    /// The row's place in the content.
    fn place(&self) -> usize {
        match &self.places {
            None => self.at,
            Some(places) => places.get(self.at).map_or(usize::MAX, |&place| place as usize),
        }
    }
}

/// The table that a lookup asks for, where rows are computed for one.
fn asked_table(layout: &Layout, column: Option<usize>, arguments: &Arguments<'_>) -> Option<Value> {
    (column == layout.position("table_name") && layout.is_by_table()).then(|| arguments.value(0))
}

/// The transaction that each row of the catalogue is of: PostgreSQL's first.
const FIRST_TRANSACTION: i64 = 3;

impl Cursor for SystemCursor {
    fn filter(&mut self, plan: i32, arguments: &Arguments<'_>) -> Result<(), String> {
        self.at = 0;
        let column = usize::try_from(plan - 1).ok();
        let table = match asked_table(self.module.layout(), column, arguments) {
            Some(Value::Text(name)) => Some(name),
            _ => None,
        };
        self.content = self.module.system.content(self.module.at, table);
        self.places = column.and_then(|column| {
            let integer = self.module.layout().columns[column].is_integer();
            let key = Key::sought(&arguments.value(0), integer)?;
            Some(self.content.places(column).get(&key).cloned().unwrap_or_default())
        });
        Ok(())
    }

    fn next(&mut self) -> Result<(), String> {
        self.at += 1;
        Ok(())
    }

    fn at_end(&self) -> bool {
        self.place() >= self.content.rows.len()
    }

    fn column(&self, column: usize, output: Output<'_>) {
        let layout = self.module.layout();
        if column == layout.columns.len() {
            return output.set(ValueRef::Integer(layout.oid.into()));
        }
        if column == layout.columns.len() + 1 {
            return output.set(ValueRef::Integer(FIRST_TRANSACTION));
        }
        let row = self.content.rows.get(self.place());
        output.set(row.and_then(|row| row.get(column)).map_or(ValueRef::Null, Value::as_ref));
    }

    fn row_number(&self) -> i64 {
        i64::try_from(self.place()).unwrap_or(i64::MAX)
    }
}
