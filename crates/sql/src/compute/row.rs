//! A row under way as a table of one row.

use std::cell::RefCell;
use std::rc::Rc;

use sqlite::{Arguments, Cursor, Module, Output, Request};
use store::definition::TableDef;
use store::value::Value;

use crate::table::declaration;
use crate::text::token::quoted_name;

/// The row that expressions are computed of.
#[derive(Debug, Default)]
pub(super) struct CurrentRow(pub(super) RefCell<Vec<Value>>);

/// The one-row table.
#[derive(Debug)]
pub(super) struct RowModule {
    declaration: String,
    row: Rc<CurrentRow>,
}

impl RowModule {
    /// All columns of the table in their places.
    pub(super) fn new(def: &TableDef, row: &Rc<CurrentRow>) -> Rc<Self> {
        let columns = def.columns.iter().map(declaration);
        let columns: Vec<String> = columns.collect();
        let declaration = format!("CREATE TABLE {} ({})", quoted_name(def.own_name()), columns.join(", "));
        Rc::new(Self { declaration, row: Rc::clone(row) })
    }
}

impl Module for RowModule {
    type Cursor = RowCursor;

    fn declaration(&self) -> String {
        self.declaration.clone()
    }

    fn best_index(&self, request: &mut Request<'_>) -> bool {
        request.answer(0, "the row", 1.0, 1);
        true
    }

    fn open(self: &Rc<Self>) -> RowCursor {
        RowCursor { row: Rc::clone(&self.row), at_end: true }
    }
}

#[derive(Debug)]
pub(super) struct RowCursor {
    row: Rc<CurrentRow>,
    at_end: bool,
}

impl Cursor for RowCursor {
    fn filter(&mut self, _: i32, _: &Arguments<'_>) -> Result<(), String> {
        self.at_end = false;
        Ok(())
    }

    fn next(&mut self) -> Result<(), String> {
        self.at_end = true;
        Ok(())
    }

    fn at_end(&self) -> bool {
        self.at_end
    }

    fn column(&self, column: usize, output: Output<'_>) {
        let row = self.row.0.borrow();
        output.set(row.get(column).map(Value::as_ref).unwrap_or_default());
    }

    fn row_number(&self) -> i64 {
        1
    }
}
