//! Calls of functions and procedures: all their statements are one transaction, and take effect whole or not at all.
//!
//! Each statement is the caller's, so the gate asks for the caller's privileges.

use std::cell::Cell;
use std::sync::Arc;

use dialect::Chosen;
use sqltext::literals::StatementText;
use store::definition::{Privileges, Returns, RoutineDef, RoutineParameter, SqlType};
use store::value::{Value, ValueRef};

use super::{Done, Executor, RowSink};
use crate::define::routine::unknown;
use crate::define::typed_column;
use crate::describe::{ColumnDescription, Description};
use crate::done::{ComputedBy, DoneKind, Nobody};
use crate::error::{SqlError, state};
use crate::limits::{CALLS_AGAIN_MAX, CALLS_DEEP_MAX};
use crate::needs::denied;
use crate::session::Session;
use crate::text::call::{Argument, Call};
use crate::transaction;

/// Takes the values that a call gives.
#[derive(Default)]
struct Values(Vec<Value>);

impl RowSink for Values {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.0 = values.iter().map(|value| Value::from(*value)).collect();
        Ok(())
    }
}

/// Hands the rows of a function's last statement on, under the names of its result.
struct Returned<'o> {
    out: &'o mut dyn RowSink,
    columns: Vec<ColumnDescription>,
    /// There is one row.
    single: bool,
    /// Whether the client has been sent something: then nothing runs again.
    began: &'o Cell<bool>,
    rows: u64,
}

impl RowSink for Returned<'_> {
    fn columns(&mut self, _: &[ColumnDescription]) {
        if !self.began.replace(true) {
            self.out.columns(&self.columns);
        }
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.columns(&[]);
        if self.single && self.rows > 0 {
            return Ok(());
        }
        self.rows += 1;
        self.out.row(values)
    }
}

impl Returned<'_> {
    /// A function of one value has one row, whatever its last statement found.
    fn finish(&mut self) -> Result<Done, SqlError> {
        self.columns(&[]);
        if self.single && self.rows == 0 {
            let nothing = vec![ValueRef::Null; self.columns.len()];
            self.rows = 1;
            self.out.row(&nothing)?;
        }
        Ok(Done { kind: DoneKind::Rows, affected: self.rows, tag: "SELECT", by: ComputedBy::Nobody })
    }
}

impl Executor {
    /// Runs a statement that is a call of a user's function or procedure; `None`: it is none.
    pub(super) fn run_call(
        &mut self,
        session: &mut Session,
        sql: &str,
        parameters: &[Value],
        chosen: Chosen<'_>,
        out: &mut dyn RowSink,
    ) -> Result<Option<Done>, SqlError> {
        let Some((call, routine)) = self.called(sql)? else { return Ok(None) };
        if !session.identity().holder().on(&routine.access).0.has(Privileges::EXECUTE) {
            return Err(denied(routine.word(), &routine.name));
        }
        if self.depth >= CALLS_DEEP_MAX {
            let message = format!("functions call one another more than {CALLS_DEEP_MAX} deep");
            return Err(SqlError::new(state::TOO_COMPLEX, message));
        }
        let mut given = Values::default();
        if let Some((query, _)) = arguments(&call, &routine, sql)? {
            let done = self.run_once(session, &StatementText::new(&query), parameters, chosen, &mut given);
            done.map_err(|error| SqlError { position: None, ..error })?;
            self.accept(&routine, &mut given.0)?;
        } else {
            crate::core::check_count(parameters.len(), 0)?;
        }
        self.depth += 1;
        let done = self.run_routine(session, &routine, &given.0, out);
        self.depth -= 1;
        done.map(Some)
    }

    /// Brings what a call gives into the types of the parameters, as a column of the type takes it.
    fn accept(&self, routine: &RoutineDef, values: &mut [Value]) -> Result<(), SqlError> {
        for (own, value) in routine.parameters.iter().zip(values) {
            let column = typed_column(&self.core.catalog, "parameter", &own.declared)?;
            let taken = std::mem::replace(value, Value::Null);
            *value = column.accept(taken).map_err(|error| {
                let message =
                    format!("invalid input for parameter \"{}\" of type {}", own.name, own.declared);
                SqlError::new(state::BAD_VALUE, message).with_detail(error.to_string())
            })?;
        }
        Ok(())
    }

    /// The call that a statement is, with what it calls.
    fn called<'a>(&self, sql: &'a str) -> Result<Option<(Call<'a>, Arc<RoutineDef>)>, SqlError> {
        let catalog = &self.core.catalog;
        if catalog.routines().is_empty() && !Call::begins(sql) {
            return Ok(None);
        }
        let Some(call) = Call::of(catalog, sql) else { return Ok(None) };
        let wrong = |what: &str, hint: &str| {
            Err(SqlError::new(state::NOT_A_TABLE, format!("{} is {what}", call.name))
                .with_hint(hint)
                .at(sql, call.place))
        };
        match catalog.routine(&call.name) {
            Some(routine) if call.calls && routine.returns.is_some() => {
                wrong("not a procedure", "To call a function, use SELECT.")
            }
            Some(routine) if !call.calls && routine.returns.is_none() => {
                wrong("a procedure", "To call a procedure, use CALL.")
            }
            Some(routine) => {
                let routine = Arc::clone(routine);
                Ok(Some((call, routine)))
            }
            None if call.calls => Err(unknown("procedure", &call.name).at(sql, call.place)),
            None => Ok(None),
        }
    }

    /// What a call takes and gives; `None`: the statement is none.
    pub(super) fn describe_call(
        &mut self,
        sql: &str,
        chosen: Chosen<'_>,
    ) -> Result<Option<Description>, SqlError> {
        let Some((call, routine)) = self.called(sql)? else { return Ok(None) };
        let mut description = match arguments(&call, &routine, sql)? {
            Some((query, given)) => {
                let mut description = self.described(&query, chosen)?;
                let open = |at: usize| !matches!(chosen.get(at), Some(Some(_)));
                for (value, own) in given.iter().zip(&routine.parameters) {
                    let at = number(value).and_then(|number| number.checked_sub(1)).filter(|at| open(*at));
                    if let Some(ty) = at.and_then(|at| description.parameters.get_mut(at)) {
                        *ty = SqlType::of_oid(own.ty).unwrap_or(*ty);
                    }
                }
                description
            }
            None => Description::default(),
        };
        description.columns = routine.returns.as_ref().map(columns_of);
        description.tag = if call.calls { "CALL" } else { "SELECT" };
        Ok(Some(description))
    }

    /// Runs a body. Alone, it is a transaction; what others changed meanwhile makes it run again.
    fn run_routine(
        &mut self,
        session: &mut Session,
        routine: &RoutineDef,
        values: &[Value],
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let Some(returns) = &routine.returns else {
            let began = Cell::new(false);
            self.run_alone(session, &began, &mut |own, session| {
                own.run_body(session, routine, values, &mut Nobody)
            })?;
            return Ok(Done::of_nobody("CALL"));
        };
        let columns = columns_of(returns);
        let began = Cell::new(false);
        let mut out = Returned { out, columns, single: !returns.set, began: &began, rows: 0 };
        if !(routine.strict && values.contains(&Value::Null)) {
            self.run_alone(session, &began, &mut |own, session| {
                if returns.columns.is_empty() {
                    own.run_body(session, routine, values, &mut Nobody)
                } else {
                    own.run_body(session, routine, values, &mut out)
                }
            })?;
        }
        out.finish()
    }

    fn run_alone(
        &mut self,
        session: &mut Session,
        began: &Cell<bool>,
        body: &mut dyn FnMut(&mut Self, &mut Session) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        if session.block.is_some() {
            return body(self, session);
        }
        for _ in 0..CALLS_AGAIN_MAX {
            match self.run_as_transaction(session, body) {
                Err(error) if error.state == state::LOST && !began.get() => self.check_watch()?,
                result => return result,
            }
        }
        self.run_as_transaction(session, body)
    }

    fn run_as_transaction(
        &mut self,
        session: &mut Session,
        body: &mut dyn FnMut(&mut Self, &mut Session) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        transaction::begin_call(session);
        let result = body(self, session).and_then(|()| {
            if session.block.as_ref().is_some_and(|block| block.is_blind()) {
                self.commit_again(session)?;
            }
            transaction::commit_call(&self.core.store, session)
        });
        session.block = None;
        result
    }

    fn run_body(
        &mut self,
        session: &mut Session,
        routine: &RoutineDef,
        values: &[Value],
        out: &mut dyn RowSink,
    ) -> Result<(), SqlError> {
        let types: Vec<Option<SqlType>> =
            routine.parameters.iter().map(|own| SqlType::of_oid(own.ty)).collect();
        let last = routine.body.len();
        for (at, statement) in routine.body.iter().enumerate() {
            self.core.sight.check_watch()?;
            let (values, types) = (&values[..statement.parameters], &types[..statement.parameters]);
            let text = StatementText::new(&statement.sql);
            let result = if at + 1 == last {
                self.run(session, &text, values, types, out)
            } else {
                self.run(session, &text, values, types, &mut Nobody)
            };
            result.map_err(|error| SqlError { position: None, ..error })?;
        }
        Ok(())
    }
}

/// The columns of a function's rows.
fn columns_of(returns: &Returns) -> Vec<ColumnDescription> {
    let own = returns.columns.iter().map(|column| ColumnDescription {
        ty: SqlType::of_oid(column.ty).unwrap_or(SqlType::Text),
        ..ColumnDescription::text(column.name.clone())
    });
    let columns: Vec<ColumnDescription> = own.collect();
    if columns.is_empty() {
        return vec![ColumnDescription { ty: SqlType::Void, ..ColumnDescription::text("void".to_owned()) }];
    }
    columns
}

/// The number of a parameter that is all of an expression.
fn number(value: &str) -> Option<usize> {
    value.strip_prefix('$')?.parse().ok()
}

/// The query that computes what a call gives, and its expressions, in the order of the parameters; `None`: there are
/// none.
fn arguments<'a>(
    call: &Call<'a>,
    routine: &'a RoutineDef,
    sql: &str,
) -> Result<Option<(String, Vec<&'a str>)>, SqlError> {
    let unfit = || {
        let error = unknown(routine.word(), &format!("{} with these arguments", routine.name));
        error.with_hint("its parameters have other names, or another number").at(sql, call.place)
    };
    let mut given: Vec<Option<&'a str>> = vec![None; routine.parameters.len()];
    let mut named = false;
    for (at, Argument { name, sql }) in call.arguments.iter().enumerate() {
        let at = match name {
            Some(name) => {
                named = true;
                routine.parameters.iter().position(|own| own.name.eq_ignore_ascii_case(name))
            }
            None if named => None,
            None => Some(at),
        };
        match at.and_then(|at| given.get_mut(at)) {
            Some(place) if place.is_none() => *place = Some(sql),
            _ => return Err(unfit()),
        }
    }
    let values = given.into_iter().zip(&routine.parameters);
    let values = values.map(|(given, own)| given.or(own.default.as_deref()).ok_or_else(unfit));
    let values = values.collect::<Result<Vec<_>, _>>()?;
    // A parameter of the statement has the type that it is for.
    let item = |(value, own): (&&str, &RoutineParameter)| match number(value) {
        Some(_) => format!("CAST({value} AS {})", own.declared),
        None => (*value).to_owned(),
    };
    let items: Vec<String> = values.iter().zip(&routine.parameters).map(item).collect();
    Ok((!items.is_empty()).then(|| (format!("SELECT {}", items.join(", ")), values)))
}
