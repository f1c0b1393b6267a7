//! The expressions of table definitions: defaults, generated columns, checks, what an index is made of.
//!
//! A row that any protocol writes has them computed here, by one mechanism, so that it means the same whichever
//! protocol it came through. Each thread that writes has a connection of its own that knows no table but rows
//! under way: a one-row virtual table with the columns of the real one, so that names, affinities and collations are
//! what they are in a query. The commonest expression of a cache, a part of the key, is computed without SQLite.

mod direct;
mod plan;
mod row;
mod scratch;

use std::cell::Cell;
use std::ffi::c_int;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;

use store::scalar::zone;
use store::value::Value;
use store::{Clock, Compute, Made, MakeCompute, Store, Task, WriteError};

use plan::TablePlan;

pub(crate) use plan::mentions;
use row::CurrentRow;
pub(crate) use scratch::check_definition;

use crate::error::{SqlError, state};
use crate::limits::{
    EXPRESSION_HEAP_BYTES_MAX, EXPRESSION_OPERATIONS_MAX, EXPRESSION_PROGRESS_OPERATIONS, EXPRESSION_TIME_MAX,
};
use crate::meter;
use pgcatalog::function::{self, Caller, Now, order};
use pgcatalog::session::Identity;
use pgcatalog::{began, sequence};
use sqlite::{Action, Connection, Failure, Policy, Volatility};
use store::definition::TableDef;
use store::patience::Watch;

/// Plans kept by one thread; beyond that all are compiled again.
const PLANS_MAX: usize = 256;

/// Why an expression was stopped.
const TOO_MUCH_WORK: &str = "the expressions of one row are too expensive";

/// Makes the orders of a table's enum types known to a connection.
fn register_orders(connection: &Connection, def: &TableDef) -> Result<(), Failure> {
    let types = def.columns.iter().filter_map(|column| column.enumeration.as_ref());
    types.into_iter().try_for_each(|own| {
        let (id, own) = (own.id, Arc::clone(own));
        order::register_enum(connection, id, move |a, b| own.compare(a, b))
    })
}

/// One thread's way to compute expressions.
pub(crate) struct Computer {
    connection: Rc<Connection>,
    policy: Rc<Bounded>,
    row: Rc<CurrentRow>,
    /// With the number of the table under its definition, the one used last in front.
    plans: Vec<(u64, TablePlan)>,
}

impl fmt::Debug for Computer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Computer").field("plans", &self.plans.len()).finish_non_exhaustive()
    }
}

/// How the store makes one for each thread.
pub(crate) fn maker(store: &Arc<Store>) -> MakeCompute {
    let (clock, store) = (store.clock().clone(), Arc::downgrade(store));
    Arc::new(move || -> Box<dyn Compute> {
        match Computer::new(clock.clone(), Weak::clone(&store)) {
            Ok(computer) => Box::new(computer),
            Err(error) => Box::new(Broken(error)),
        }
    })
}

impl Computer {
    pub(crate) fn new(clock: Clock, store: Weak<Store>) -> Result<Self, SqlError> {
        let policy = Rc::new(Bounded {
            operations: Cell::new(0),
            since: Cell::new(None),
            now_us: Cell::new(None),
            failed: Cell::new(None),
            clock,
        });
        let connection = Connection::open(Rc::<Bounded>::clone(&policy))?;
        function::register(&connection, &policy)?;
        register_nextval(&connection, store)?;
        register_names(&connection)?;
        Ok(Self { connection, policy, row: Rc::default(), plans: Vec::new() })
    }

    fn plan(&mut self, table: &store::Table) -> Result<&mut TablePlan, SqlError> {
        let number = table.number();
        if let Some(at) = self.plans.iter().position(|(known, _)| *known == number) {
            self.plans.swap(0, at);
        } else {
            if self.plans.len() >= PLANS_MAX {
                self.plans.clear();
            }
            let plan = TablePlan::new(&self.connection, &self.row, table.def())?;
            self.plans.insert(0, (number, plan));
        }
        let first = self.plans.first_mut().map(|(_, plan)| plan);
        first.ok_or_else(|| SqlError::new(crate::error::state::INTERNAL, "no plan"))
    }
}

/// `nextval('sequence')`: the only function of an expression that changes something.
fn register_nextval(connection: &Connection, store: Weak<Store>) -> Result<(), Failure> {
    connection.create_function("nextval", 1, Volatility::Volatile, move |arguments| {
        let Value::Text(name) = arguments.value(0) else { return Ok(Value::Null) };
        let store = store.upgrade().ok_or_else(|| "there is no store".to_owned())?;
        sequence::next_of(&store, &name).map(Value::Integer).map_err(|error| error.message)
    })
}

/// Functions that say whose statement it is, as a default asks: `DEFAULT current_user`. What memcached clients write is
/// no statement, and has the names that a session has where no roles are kept.
fn register_names(connection: &Connection) -> Result<(), Failure> {
    type Name = fn(&Identity) -> &str;
    const NAMES: [(&str, Name); 6] = [
        ("current_user", |identity| &identity.role),
        ("current_role", |identity| &identity.role),
        ("user", |identity| &identity.role),
        ("session_user", |identity| &identity.user),
        ("current_catalog", |identity| &identity.database),
        ("current_database", |identity| &identity.database),
    ];
    NAMES.into_iter().try_for_each(|(function, name)| {
        connection.create_function(function, 0, Volatility::Volatile, move |_| {
            let named = |identity: &Identity| Ok(Value::from(name(identity)));
            sequence::speaker().map_or_else(|| named(&Identity::default()), |identity| named(&identity))
        })
    })
}

impl Compute for Computer {
    fn row(&mut self, task: &Task<'_>, made: &mut Made) -> Result<(), WriteError> {
        self.policy.begin();
        let row = Rc::clone(&self.row);
        let policy = Rc::<Bounded>::clone(&self.policy);
        let named = Rc::clone(&self.policy);
        let zone = zone::current();
        // They mean the same whoever writes the row, so they are computed in UTC; but defaults are the statement's.
        zone::within(None, || {
            meter::statement(policy, EXPRESSION_HEAP_BYTES_MAX, || {
                let plan =
                    self.plan(task.table).map_err(|error| WriteError::expression(error.to_string()))?;
                plan.run(&row, task, made, zone).map_err(|error| named.named(error))
            })
        })
    }
}

/// Stands in where a connection could not be opened.
#[derive(Debug)]
struct Broken(SqlError);

impl Compute for Broken {
    fn row(&mut self, _: &Task<'_>, _: &mut Made) -> Result<(), WriteError> {
        Err(WriteError::expression(self.0.to_string()))
    }
}

/// Lets expressions read their row and call functions, for a bounded number of operations: a memcached worker waits for
/// them.
#[derive(Debug)]
struct Bounded {
    operations: Cell<u64>,
    /// When the row's work was first looked at, in nanoseconds of the store's clock, and the thread's own time then.
    since: Cell<Option<(u64, Duration)>>,
    /// When a row came that no statement writes; `None` until an expression asks.
    now_us: Cell<Option<u64>>,
    /// The SQLSTATE with which a function failed: SQLite carries only its words.
    failed: Cell<Option<&'static str>>,
    clock: Clock,
}

impl Bounded {
    fn begin(&self) {
        self.operations.set(0);
        self.now_us.set(None);
        self.since.set(None);
        self.failed.set(None);
    }

    /// The error of an expression with the SQLSTATE of the function that failed.
    fn named(&self, error: WriteError) -> WriteError {
        match (error, self.failed.take()) {
            (WriteError::Expression { message, .. }, Some(state)) => {
                WriteError::Expression { state, message }
            }
            (error, _) => error,
        }
    }

    /// Whether the thread has worked for too long. That others kept the processor from it is not the row's fault, so
    /// the thread's own time is what counts; it costs a system call, and is asked only when the clock says so.
    fn took_too_long(&self) -> bool {
        let Some((began, worked)) = self.since.get() else {
            self.since.set(Some((self.clock.precise_ns(), thread_time())));
            return false;
        };
        Duration::from_nanos(self.clock.precise_ns().saturating_sub(began)) > EXPRESSION_TIME_MAX
            && thread_time().saturating_sub(worked) > EXPRESSION_TIME_MAX
    }
}

/// How long the thread has run.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

impl Caller for Bounded {
    fn now(&self) -> Now {
        // All rows of a statement have its moment, and all expressions of any other row have one.
        let now_us = began::statement_us(&self.clock).unwrap_or_else(|| {
            let now_us = self.now_us.get().unwrap_or_else(|| self.clock.unix_us());
            self.now_us.set(Some(now_us));
            now_us
        });
        Now { us: i64::try_from(now_us).unwrap_or(0) }
    }

    fn fail(&self, error: SqlError) -> String {
        if error.state == state::CANCELED {
            return TOO_MUCH_WORK.to_owned();
        }
        self.failed.set(Some(error.state));
        error.message
    }
}

impl Policy for Bounded {
    fn allows(&self, action: Action<'_>) -> bool {
        match action {
            Action::Select | Action::Read { .. } | Action::Rows(_) => true,
            Action::Function(name) => pgcatalog::system::is_function(name),
            Action::Recursive | Action::Other => false,
        }
    }

    fn progress_operations(&self) -> c_int {
        EXPRESSION_PROGRESS_OPERATIONS
    }
}

impl Watch for Bounded {
    fn must_stop(&self, operations: u64) -> bool {
        let operations = self.operations.get() + operations;
        self.operations.set(operations);
        operations > EXPRESSION_OPERATIONS_MAX || self.took_too_long()
    }
}
