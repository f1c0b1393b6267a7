//! What a table's definition makes of a row: defaults, generated columns, checks. The store has no expressions of its
//! own; whoever opened it says how they are computed, and each thread that writes computes for itself.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use crate::error::WriteError;
use crate::schema::Schema;
use crate::table::Table;
use crate::value::{Value, ValueRef};

/// A row on its way into a table.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The table.
    pub table: &'a Table,
    /// A value for each column, converted to what the column stores. Those of generated columns are not looked at.
    pub values: &'a [ValueRef<'a>],
    /// The columns that take the value of their default expression.
    pub defaults: &'a [usize],
    /// Whether the table's checks are to hold.
    pub checks: bool,
}

/// Columns and the values made for them, as the columns store them.
pub type Made = Vec<(usize, Value)>;

/// Computes expressions. Each thread has one of its own.
pub trait Compute: fmt::Debug {
    /// Appends the values of the default expressions asked for and of every generated column, hidden ones among them,
    /// and tests the checks.
    fn row(&mut self, task: &Task<'_>, made: &mut Made) -> Result<(), WriteError>;
}

/// Makes a thread's [`Compute`].
pub type MakeCompute = Arc<dyn Fn() -> Box<dyn Compute> + Send + Sync>;

thread_local! {
    /// The thread's own, and the store that it is for.
    static COMPUTE: RefCell<Option<(u64, Box<dyn Compute>)>> = const { RefCell::new(None) };
}

impl Schema {
    /// Says how expressions are computed, once; later calls change nothing.
    pub fn set_compute(&self, make: MakeCompute) {
        let _first = self.compute.set(Maker(make));
    }

    /// Completes a row as its table's definition says, and checks it.
    pub fn complete(&self, task: &Task<'_>, made: &mut Made) -> Result<(), WriteError> {
        let Some(Maker(make)) = self.compute.get() else {
            let message = format!("nothing computes the expressions of table \"{}\"", task.table.name());
            return Err(WriteError::expression(message));
        };
        COMPUTE.with_borrow_mut(|own| {
            let compute = match own {
                Some((store, compute)) if *store == self.number => compute,
                own => &mut own.insert((self.number, make())).1,
            };
            compute.row(task, made)
        })?;
        let columns = &task.table.def().columns;
        match made.iter().find(|(column, value)| value.is_null() && columns[*column].not_null) {
            Some((column, _)) => Err(WriteError::NotNull(columns[*column].name.clone())),
            None => Ok(()),
        }
    }
}

/// How a thread's [`Compute`] is made.
pub(crate) struct Maker(MakeCompute);

impl fmt::Debug for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Maker")
    }
}
