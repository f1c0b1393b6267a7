//! Functions that ask the catalogue or the session: those of PostgreSQL that its clients call beside the tables.

mod advisory;
mod arrays;
mod definitions;
mod effects;
mod privileges;
mod routines;
mod sequences;
mod session;

use std::rc::Rc;

use store::value::Value;

pub use self::effects::private_setting;
pub(super) use self::session::PRESET;
pub use self::session::preset;
use super::System;
use crate::function;
use sqlite::meter;
use sqlite::{Arguments, Connection, Volatility};
use sqltext::error::SqlError;

/// One function.
pub(super) struct FunctionDef {
    name: &'static str,
    /// The fewest and the most arguments.
    arguments: (i32, i32),
    run: Run,
}

/// What it does.
#[derive(Clone, Copy)]
enum Run {
    /// It always has an answer.
    Sure(fn(&System, &Call) -> Value),
    /// It may refuse.
    Fallible(fn(&System, &Call) -> Result<Value, SqlError>),
}

/// The arguments of one call.
#[derive(Debug)]
pub(super) struct Call(Vec<Value>);

/// A line of a table of functions.
const fn function(
    name: &'static str,
    arguments: (i32, i32),
    run: fn(&System, &Call) -> Value,
) -> FunctionDef {
    FunctionDef { name, arguments, run: Run::Sure(run) }
}

/// The same, of a function that may refuse.
const fn fallible(
    name: &'static str,
    arguments: (i32, i32),
    run: fn(&System, &Call) -> Result<Value, SqlError>,
) -> FunctionDef {
    FunctionDef { name, arguments, run: Run::Fallible(run) }
}

/// All of them.
fn all() -> impl Iterator<Item = &'static FunctionDef> {
    let groups = [
        advisory::FUNCTIONS,
        session::FUNCTIONS,
        effects::FUNCTIONS,
        privileges::FUNCTIONS,
        definitions::FUNCTIONS,
        routines::FUNCTIONS,
        sequences::FUNCTIONS,
        arrays::FUNCTIONS,
    ];
    groups.into_iter().flatten()
}

/// Whether a statement may call the function of this name.
pub fn is_allowed(name: &str) -> bool {
    function::is_allowed(name) || all().any(|function| function.name.eq_ignore_ascii_case(name))
}

/// Every function that a statement may call, but for operators and casts.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    function::names().chain(all().map(|function| function.name))
}

/// Makes the connection know all functions.
pub(super) fn register(system: &Rc<System>, connection: &Connection) -> Result<(), SqlError> {
    for function in all() {
        let of_arguments_only = arrays::FUNCTIONS.iter().any(|array| array.name == function.name);
        let volatility = if of_arguments_only { Volatility::Immutable } else { Volatility::Volatile };
        for count in function.arguments.0..=function.arguments.1 {
            let system = Rc::clone(system);
            let run = function.run;
            connection.create_function(function.name, count, volatility, move |arguments| {
                let result = meter::call(arguments, || {
                    let call = Call::of(arguments);
                    match run {
                        Run::Sure(run) => Ok(run(&system, &call)),
                        Run::Fallible(run) => run(&system, &call),
                    }
                });
                result.map_err(|error| system.fail(error))
            })?;
        }
    }
    Ok(())
}

impl Call {
    fn of(arguments: &Arguments<'_>) -> Self {
        Self((0..arguments.count()).map(|at| arguments.value(at)).collect())
    }

    /// An argument; NULL beyond the last.
    fn value(&self, at: usize) -> &Value {
        self.0.get(at).unwrap_or(&Value::Null)
    }

    /// How many arguments there are.
    fn count(&self) -> usize {
        self.0.len()
    }

    /// An argument as a text.
    fn text(&self, at: usize) -> Option<String> {
        match self.value(at) {
            Value::Null => None,
            Value::Text(text) => Some(text.clone()),
            other => {
                let mut bytes = Vec::new();
                other.as_ref().write_text(&mut bytes);
                String::from_utf8(bytes).ok()
            }
        }
    }

    /// An argument as an integer.
    fn integer(&self, at: usize) -> Option<i64> {
        match self.value(at) {
            Value::Integer(integer) => Some(*integer),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// Whether an argument is true; NULL is not.
    fn truth(&self, at: usize) -> bool {
        match self.value(at) {
            Value::Text(text) => {
                ["t", "true", "on", "yes", "y", "1"].contains(&text.to_ascii_lowercase().as_str())
            }
            _ => self.integer(at).is_some_and(|number| number != 0),
        }
    }

    /// An argument as an object's number.
    fn oid(&self, at: usize) -> Option<u32> {
        u32::try_from(self.integer(at)?).ok()
    }
}

/// A text, or NULL.
fn optional(text: Option<String>) -> Value {
    text.map_or(Value::Null, Value::Text)
}

/// A truth value.
fn truth(value: bool) -> Value {
    Value::Integer(i64::from(value))
}
