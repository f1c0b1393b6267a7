//! The store's tables as SQLite sees them: read-only, with indexes it can plan by.

mod coerce;
mod cursor;
mod elements;
mod foresight;
mod identity;
mod keys;
mod lateral;
mod missing;
mod plan;
mod session_functions;
mod sight;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use sqlite::{Connection, Module, Operation, Request};
use store::Table;

use crate::text::token::quoted_name;

pub(crate) use coerce::{Sought, is_stored_as_it_is, sought};
pub(crate) use cursor::TableCursor;
pub(crate) use elements::{Asked, Lead, keys_with};
pub(crate) use identity::{Identity, word_of_expiry};
pub(crate) use keys::{KeyList, is_plain};
pub(crate) use lateral::LateralModule;
pub use missing::MissingKey;
pub(crate) use pgcatalog::shape::{Column, HIDDEN, Head, Shape, Shown, column_of_absence, declaration};
pub(crate) use plan::{Nulls, Plan};
pub(crate) use session_functions::register_session_functions;
pub use sight::Cancel;
pub(crate) use sight::{ColumnRead, ListRow, NEW_ROWS, OLD_ROWS, Rest, Sight};

/// One table, registered with one connection.
#[derive(Debug)]
pub(crate) struct TableModule {
    table: Arc<Table>,
    shape: Shape,
    sight: Rc<Sight>,
    /// Plans that SQLite was given a number for. Their number is bounded by the table's indexes, for no plan
    /// holds a value.
    plans: RefCell<Vec<Rc<Plan>>>,
    /// The functions that ask for the elements of an array, where it has an index over them.
    asking: Vec<Operation>,
}

impl TableModule {
    pub(crate) fn new(table: &Arc<Table>, sight: &Rc<Sight>, connection: &Connection) -> Rc<Self> {
        let has_elements = table.indexes().iter().any(|index| index.def().elements.is_some());
        let asking = if has_elements { Asked::operations(connection) } else { Vec::new() };
        Rc::new(Self {
            asking,
            table: Arc::clone(table),
            shape: Shape::of(table),
            sight: Rc::clone(sight),
            plans: RefCell::default(),
        })
    }

    /// The number of a plan; the same plan has the same number.
    fn number_of(&self, plan: Plan) -> i32 {
        let mut plans = self.plans.borrow_mut();
        let at = plans.iter().position(|known| **known == plan).unwrap_or_else(|| {
            plans.push(Rc::new(plan));
            plans.len() - 1
        });
        i32::try_from(at).unwrap_or(i32::MAX)
    }

    fn plan(&self, number: i32) -> Option<Rc<Plan>> {
        self.plans.borrow().get(usize::try_from(number).ok()?).cloned()
    }
}

impl Module for TableModule {
    type Cursor = TableCursor;

    fn declaration(&self) -> String {
        let columns: Vec<String> = self.shape.columns().iter().map(Shown::declaration).collect();
        format!("CREATE TABLE {} ({})", quoted_name(self.table.name()), columns.join(", "))
    }

    fn best_index(&self, request: &mut Request<'_>) -> bool {
        let choice = plan::choose(self.sight.store(), &self.table, &self.shape, request);
        choice.map(|choice| choice.answer(request, |plan| self.number_of(plan))).is_some()
    }

    fn operator(&self, function: &str) -> Option<(u8, Operation)> {
        let number = Asked::number(function)?;
        Some((number, *self.asking.get(usize::from(number))?))
    }

    fn open(self: &Rc<Self>) -> TableCursor {
        TableCursor::new(self)
    }
}
