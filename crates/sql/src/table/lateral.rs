//! A query that is run once for each row of the tables before it: `LATERAL (SELECT ...)`, which SQLite does not have.
//!
//! It is a table whose arguments are the query's text and what the text takes of the row. The query is compiled
//! when the first row is there, on the connection of the statement around it. So it sees the same rows, may do no
//! more, and its memory and time are those of that statement.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use dialect::lateral::{COLUMNS_MAX, TAKEN_MAX, column_name};
use pgcatalog::function::Caller;
use sqlite::{Arguments, Connection, Cursor, Failure, Module, Operator, Output, Pulled, Request, Statement};
use store::value::{Value, ValueRef};

use super::Sight;
use crate::error::{SqlError, state};
use crate::limits::LATERAL_DEPTH_MAX;

/// Rows that SQLite is told to expect, and what they cost: more than a look into an index.
const ROWS: u64 = 4;
const COST: f64 = 1_000.0;

/// The table, registered with one connection.
pub(crate) struct LateralModule {
    connection: Weak<Connection>,
    sight: Rc<Sight>,
    /// How many of its queries run within one another.
    depth: Cell<usize>,
}

impl LateralModule {
    pub(crate) fn new(connection: &Rc<Connection>, sight: &Rc<Sight>) -> Rc<Self> {
        Rc::new(Self { connection: Rc::downgrade(connection), sight: Rc::clone(sight), depth: Cell::new(0) })
    }

    fn compiled(&self, text: &Value) -> Result<Pulled, SqlError> {
        let (Some(connection), Value::Text(text)) = (self.connection.upgrade(), text) else {
            return Err(SqlError::new(state::SYNTAX, "the text of a query was expected"));
        };
        let (statement, end) =
            Statement::prepare(&connection, text).map_err(|failure| self.error(failure))?;
        let statement = statement.filter(|statement| statement.is_read_only() && end == text.len());
        let statement = statement.ok_or_else(|| SqlError::new(state::FORBIDDEN, "one query was expected"))?;
        if statement.columns() > COLUMNS_MAX {
            return Err(SqlError::new(
                state::TOO_COMPLEX,
                format!("more than {COLUMNS_MAX} columns of LATERAL"),
            ));
        }
        Ok(Pulled::new(statement))
    }

    /// The reason that a table or the watch gave, or else what SQLite says.
    fn error(&self, failure: Failure) -> SqlError {
        self.sight.take_failure().unwrap_or_else(|| failure.into())
    }

    /// Runs a part of a query; queries that call themselves would have no end.
    fn within<T>(&self, body: impl FnOnce() -> Result<T, SqlError>) -> Result<T, String> {
        if self.depth.get() >= LATERAL_DEPTH_MAX {
            let message = format!("more than {LATERAL_DEPTH_MAX} LATERAL queries within one another");
            return Err(self.sight.fail(SqlError::new(state::TOO_COMPLEX, message)));
        }
        self.depth.set(self.depth.get() + 1);
        let result = body();
        self.depth.set(self.depth.get() - 1);
        result.map_err(|error| self.sight.fail(error))
    }
}

/// The column of the text, behind those of the query.
fn text_column() -> i32 {
    i32::try_from(COLUMNS_MAX).unwrap_or(i32::MAX)
}

impl Module for LateralModule {
    type Cursor = LateralCursor;

    fn declaration(&self) -> String {
        let shown = (0..COLUMNS_MAX).map(column_name);
        let taken = (0..TAKEN_MAX).map(|at| format!("_taken{at} HIDDEN"));
        let all: Vec<String> = shown.chain(["_query HIDDEN".to_owned()]).chain(taken).collect();
        format!("CREATE TABLE x ({})", all.join(", "))
    }

    /// The text and what it takes are conditions on hidden columns. A plan without one of them would be another query.
    fn best_index(&self, request: &mut Request<'_>) -> bool {
        let first = text_column();
        let behind = first + 1 + i32::try_from(TAKEN_MAX).unwrap_or(0);
        if request.waits_for(first..behind) {
            return false;
        }
        let equal = request.constraints().filter(|constraint| constraint.operator == Operator::Equal);
        let mut taken: Vec<_> = equal.filter(|found| (first..behind).contains(&found.column)).collect();
        taken.sort_by_key(|constraint| constraint.column);
        let in_order = (first..).zip(&taken).all(|(column, constraint)| constraint.column == column);
        for (at, constraint) in taken.iter().enumerate() {
            request.take(*constraint, at, true);
        }
        request.answer(0, "a query for each row", COST, ROWS);
        in_order && !taken.is_empty()
    }

    fn open(self: &Rc<Self>) -> LateralCursor {
        LateralCursor { module: Rc::clone(self), text: Value::Null, query: None, there: false, row: 0 }
    }
}

/// Runs the query for one row after the other.
pub(crate) struct LateralCursor {
    module: Rc<LateralModule>,
    text: Value,
    query: Option<Pulled>,
    /// Whether it stands on a row.
    there: bool,
    row: i64,
}

impl Cursor for LateralCursor {
    fn filter(&mut self, _: i32, arguments: &Arguments<'_>) -> Result<(), String> {
        let module = Rc::clone(&self.module);
        module.within(|| {
            if self.query.is_none() || self.text.as_ref() != arguments.value_ref(0) {
                self.text = arguments.value(0);
                self.query = Some(module.compiled(&self.text)?);
            }
            let taken = (1..arguments.count()).map(|at| arguments.value_ref(at));
            if let Some(query) = &mut self.query {
                query.begin(taken).map_err(|failure| module.error(failure))?;
            }
            Ok(())
        })?;
        self.row = 0;
        self.next()
    }

    fn next(&mut self) -> Result<(), String> {
        let (module, query) = (Rc::clone(&self.module), &mut self.query);
        let next =
            || query.as_mut().map_or(Ok(false), Pulled::advance).map_err(|failure| module.error(failure));
        self.there = module.within(next)?;
        self.row += 1;
        Ok(())
    }

    fn at_end(&self) -> bool {
        !self.there
    }

    fn column(&self, column: usize, output: Output<'_>) {
        match &self.query {
            Some(query) if self.there && column < query.columns() => output.set(query.row().value(column)),
            _ => output.set(ValueRef::Null),
        }
    }

    fn row_number(&self) -> i64 {
        self.row
    }
}
