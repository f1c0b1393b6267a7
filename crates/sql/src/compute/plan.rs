//! How one table's expressions are computed.

use std::collections::HashMap;
use std::rc::Rc;

use sqlite::{Connection, Failure, Statement};
use store::definition::{ColumnDef, TableDef};
use store::scalar::zone::{self, Zone};
use store::value::{Value, ValueRef};
use store::{Made, Task, WriteError};

use super::TOO_MUCH_WORK;
use super::direct::Direct;
use super::row::{CurrentRow, RowModule};
use crate::error::{SqlError, state};
use crate::table::is_stored_as_it_is;
use crate::text::token::{Kind, Tokens, quoted_name, unquoted};

/// The class of SQLSTATEs for values that cannot be computed with.
const BAD_DATA: &str = "22";

/// The expressions of a table, compiled.
#[derive(Debug)]
pub(super) struct TablePlan {
    /// Computed without SQLite, of the row as it came.
    direct: Vec<(usize, Direct)>,
    /// Computed one after the other: each step reads what those before it made.
    steps: Vec<Step>,
    checks: Option<Statement>,
    /// Compiled when first needed.
    defaults: HashMap<usize, Statement>,
    /// The columns that steps and checks read.
    reads: Vec<usize>,
    connection: Rc<Connection>,
}

/// Columns that depend on none of each other.
#[derive(Debug)]
struct Step {
    columns: Vec<usize>,
    statement: Statement,
}

impl TablePlan {
    pub(super) fn new(
        connection: &Rc<Connection>,
        row: &Rc<CurrentRow>,
        def: &TableDef,
    ) -> Result<Self, SqlError> {
        super::register_orders(connection, def)?;
        connection.register(def.own_name(), RowModule::new(def, row))?;
        let mut plan = Self {
            direct: Vec::new(),
            steps: Vec::new(),
            checks: None,
            defaults: HashMap::new(),
            reads: Vec::new(),
            connection: Rc::clone(connection),
        };
        let mut waiting: Vec<usize> = Vec::new();
        for (at, column) in def.columns.iter().enumerate() {
            let Some(generated) = &column.generated else { continue };
            match Direct::of(&generated.sql, def) {
                Some(direct) => plan.direct.push((at, direct)),
                None => waiting.push(at),
            }
        }
        plan.add_steps(def, waiting)?;
        if !def.checks.is_empty() {
            // What is neither true nor false holds.
            let all: Vec<String> =
                def.checks.iter().map(|check| format!("({}) IS NOT FALSE", check.sql)).collect();
            plan.checks = Some(compile(connection, def, &all)?);
        }
        let sources = def.columns.iter().filter_map(|column| Some(column.generated.as_ref()?.sql.as_str()));
        let sources: Vec<&str> = sources.chain(def.checks.iter().map(|check| check.sql.as_str())).collect();
        plan.reads = (0..def.columns.len())
            .filter(|&at| sources.iter().any(|sql| mentions(sql, &def.columns[at].name)))
            .collect();
        Ok(plan)
    }

    /// Puts the columns into an order in which each comes after those that it reads.
    fn add_steps(&mut self, def: &TableDef, mut waiting: Vec<usize>) -> Result<(), SqlError> {
        while !waiting.is_empty() {
            let reads_waiting = |&at: &usize| {
                let sql = sql_of(&def.columns[at]);
                waiting.iter().any(|&other| mentions(sql, &def.columns[other].name))
            };
            let (later, ready): (Vec<usize>, Vec<usize>) = waiting.iter().copied().partition(reads_waiting);
            if ready.is_empty() {
                let name = &def.columns[waiting[0]].name;
                let message = format!("generated column \"{name}\" depends on itself");
                return Err(SqlError::new(state::BAD_DEFINITION, message));
            }
            let all: Vec<String> =
                ready.iter().map(|&at| format!("({})", sql_of(&def.columns[at]))).collect();
            let statement = compile(&self.connection, def, &all)?;
            self.steps.push(Step { columns: ready, statement });
            waiting = later;
        }
        Ok(())
    }

    pub(super) fn run(
        &mut self,
        row: &CurrentRow,
        task: &Task<'_>,
        made: &mut Made,
        zone: Option<Zone>,
    ) -> Result<(), WriteError> {
        let def = task.table.def();
        for &column in task.defaults {
            let value = zone::within(zone, || self.default(def, column))?;
            made.push((column, accepted(task, column, value)?));
        }
        for (column, direct) in &self.direct {
            let given = |at: usize| latest(task, made, at);
            let value = match direct.part(&given) {
                None => Value::Null,
                Some(part) => match task.table.plain_integer(*column, &part) {
                    Some(integer) => Value::Integer(integer),
                    None => accepted(task, *column, Value::Text(part.into_owned()))?,
                },
            };
            made.push((*column, value));
        }
        if self.steps.is_empty() && (self.checks.is_none() || !task.checks) {
            return Ok(());
        }
        self.fill(row, task, made);
        let connection = &self.connection;
        for Step { columns, statement } in &mut self.steps {
            let computed =
                values(statement).map_err(|failure| culprit(connection, def, columns, &failure))?;
            for (value, &column) in computed.into_iter().zip(columns.iter()) {
                let value = accepted(task, column, value)?;
                row.0.borrow_mut()[column].clone_from(&value);
                made.push((column, value));
            }
        }
        match &mut self.checks {
            Some(statement) if task.checks => check(statement, def),
            _ => Ok(()),
        }
    }

    /// Copies what the expressions read to where SQLite reads it.
    fn fill(&self, row: &CurrentRow, task: &Task<'_>, made: &Made) {
        let mut current = row.0.borrow_mut();
        current.clear();
        current.resize(task.values.len(), Value::Null);
        for &at in &self.reads {
            current[at] = latest(task, made, at).to_owned();
        }
    }

    fn default(&mut self, def: &TableDef, column: usize) -> Result<Value, WriteError> {
        let own = &def.columns[column];
        let Some(sql) = &own.default_sql else { return Ok(own.default.clone().unwrap_or_default()) };
        let statement = match self.defaults.entry(column) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                let statement = prepare(&self.connection, &format!("SELECT {sql}"));
                new.insert(statement.map_err(|error| failed(own, &error.message, error.state))?)
            }
        };
        let computed = values(statement).map_err(|failure| failed(own, &failure, state_of(&failure)))?;
        Ok(computed.into_iter().next().unwrap_or_default())
    }
}

/// What a column holds by now.
fn latest<'a>(task: &Task<'a>, made: &'a Made, column: usize) -> ValueRef<'a> {
    let new = made.iter().rev().find(|(own, _)| *own == column).map(|(_, value)| value.as_ref());
    new.unwrap_or(task.values[column])
}

/// Whether an expression may read a column of this name.
pub(crate) fn mentions(sql: &str, column: &str) -> bool {
    let named = |token: &crate::text::token::Token<'_>| {
        matches!(token.kind, Kind::Word | Kind::Quoted) && unquoted(token.text).eq_ignore_ascii_case(column)
    };
    Tokens::new(sql).any(|token| named(&token))
}

fn sql_of(column: &ColumnDef) -> &str {
    column.generated.as_ref().map_or("NULL", |generated| &generated.sql)
}

fn compile(connection: &Rc<Connection>, def: &TableDef, all: &[String]) -> Result<Statement, SqlError> {
    prepare(connection, &format!("SELECT {} FROM {}", all.join(", "), quoted_name(def.own_name())))
}

fn prepare(connection: &Rc<Connection>, sql: &str) -> Result<Statement, SqlError> {
    let (statement, _) = Statement::prepare(connection, sql)?;
    statement.ok_or_else(|| SqlError::new(state::SYNTAX, "an expression was expected"))
}

/// The values of the one row that the statement answers with.
fn values(statement: &mut Statement) -> Result<Vec<Value>, Failure> {
    let mut values = Vec::new();
    let result = statement.run(std::iter::empty(), &mut |row| {
        values.extend((0..row.columns()).map(|at| row.value(at).to_owned()));
        Ok::<(), Failure>(())
    });
    result.map_err(explained)?;
    Ok(values)
}

/// The failure with the reason for which an expression is stopped here.
fn explained(failure: Failure) -> Failure {
    if failure.is_interrupt() {
        return Failure { message: TOO_MUCH_WORK.to_owned(), ..failure };
    }
    failure
}

/// Finds the column of a step that cannot be computed, for the error to name it.
fn culprit(connection: &Rc<Connection>, def: &TableDef, columns: &[usize], failure: &Failure) -> WriteError {
    let alone = |at: usize| {
        let mut statement = compile(connection, def, &[format!("({})", sql_of(&def.columns[at]))]).ok()?;
        values(&mut statement).err().map(|failure| failed(&def.columns[at], &failure, state_of(&failure)))
    };
    let found = columns.iter().find_map(|&at| alone(at));
    found.unwrap_or_else(|| failed(&def.columns[columns[0]], failure, state_of(failure)))
}

/// Tests the checks in their order.
fn check(statement: &mut Statement, def: &TableDef) -> Result<(), WriteError> {
    let mut broken = None;
    let result = statement.run(std::iter::empty(), &mut |row| {
        broken = (0..row.columns()).find(|&at| row.value(at) == ValueRef::Integer(0));
        Ok::<(), Failure>(())
    });
    result.map_err(|failure| {
        let failure = explained(failure);
        WriteError::Expression {
            state: of_row(state_of(&failure)),
            message: format!("a check of table \"{}\": {failure}", def.own_name()),
        }
    })?;
    match broken {
        Some(at) => Err(WriteError::Check(def.checks[at].name.clone())),
        None => Ok(()),
    }
}

fn accepted(task: &Task<'_>, column: usize, value: Value) -> Result<Value, WriteError> {
    // The common case needs no conversion.
    if is_stored_as_it_is(task.table, column, value.as_ref()) {
        return Ok(value);
    }
    task.table.accept(column, value).map_err(|mismatch| WriteError::Type(mismatch.to_string()))
}

fn failed(column: &ColumnDef, why: &dyn std::fmt::Display, state: &'static str) -> WriteError {
    let what = if column.hidden { "index expression" } else { "column" };
    WriteError::Expression {
        state: of_row(state),
        message: format!("{what} \"{}\" cannot be computed: {why}", column.name),
    }
}

/// The SQLSTATE for a writer: a failure of the row's values has its own, and any other one is a bad expression.
fn of_row(state: &'static str) -> &'static str {
    if state.starts_with(BAD_DATA) { state } else { state::BAD_EXPRESSION }
}

/// The SQLSTATE of an expression that fails for the values of a row.
fn state_of(failure: &Failure) -> &'static str {
    SqlError::from(failure.clone()).state
}
