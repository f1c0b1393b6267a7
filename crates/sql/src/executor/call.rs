//! Calls of functions and procedures: all their statements are one transaction, and take effect whole or not at all.
//!
//! Each statement is the caller's, so the gate asks for the caller's privileges, or the owner's where the function says
//! so (`actor.rs`). The arguments are the caller's always.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use dialect::Chosen;
use sqltext::literals::StatementText;
use store::definition::{
    ColumnDef, Privileges, Returns, RoutineDef, RoutineParameter, RoutineStatement, SqlType, ViewColumn,
};
use store::value::{Value, ValueRef};

use super::describe::key_of;
use super::{Done, Executor, RowSink};
use crate::define::routine::unknown;
use crate::define::typed_column;
use crate::describe::{ColumnDescription, Description};
use crate::done::{DoneKind, Invalidated, Nobody};
use crate::error::{SqlError, state};
use crate::limits::{CACHED_STATEMENT_BYTES_MAX, CALLS_AGAIN_MAX, CALLS_DEEP_MAX, CALLS_KEPT_MAX};
use crate::needs::denied;
use crate::session::{Session, TransactionStatus};
use crate::text::call::{Argument, Call};
use crate::text::token::quoted_name;
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
    columns: &'o [ColumnDescription],
    /// There is one row.
    single: bool,
    tag: &'static str,
    /// Whether the client has been sent something: then nothing runs again.
    began: &'o Cell<bool>,
    rows: u64,
}

impl RowSink for Returned<'_> {
    fn columns(&mut self, _: &[ColumnDescription]) {
        if !self.began.replace(true) {
            self.out.columns(self.columns);
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
        let kind = DoneKind::Rows;
        Ok(Done { kind, affected: self.rows, ..Done::of_nobody(self.tag) })
    }
}

/// A call that ran before, or is about to: all of it that no value changes.
#[derive(Debug)]
pub(super) struct Ready {
    routine: Arc<RoutineDef>,
    /// What it answers with; empty: nothing.
    columns: Vec<ColumnDescription>,
    tag: &'static str,
    /// What takes the values that the body is given.
    inputs: Vec<ColumnDef>,
    types: Vec<Option<SqlType>>,
    given: Given,
    /// Under which the plan of each statement of the body is kept; `None`: it is a call.
    keys: Vec<Option<String>>,
}

/// Where the values of a call come from.
#[derive(Debug)]
enum Given {
    /// They are the parameters of these numbers, from 0.
    Parameters(Vec<usize>),
    /// This query computes them.
    Query(String),
    Nothing,
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
        let Some(ready) = self.ready(sql, chosen)? else { return Ok(None) };
        let routine = &ready.routine;
        if !session.identity().rights.superuser
            && !session.identity().holder().on(&routine.access).0.has(Privileges::EXECUTE)
        {
            return Err(denied(routine.word(), &routine.name));
        }
        if self.depth >= CALLS_DEEP_MAX {
            let message = format!("functions call one another more than {CALLS_DEEP_MAX} deep");
            return Err(SqlError::new(state::TOO_COMPLEX, message));
        }
        let given = self.given(session, &ready, parameters, chosen)?;
        self.depth += 1;
        let done = self
            .acting(session, &ready.routine, |own, session| own.run_routine(session, &ready, &given, out));
        self.depth -= 1;
        done.map(Some)
    }

    /// The values that the body is given.
    fn given(
        &mut self,
        session: &mut Session,
        ready: &Ready,
        parameters: &[Value],
        chosen: Chosen<'_>,
    ) -> Result<Vec<Value>, SqlError> {
        let mut given = Values::default();
        match &ready.given {
            Given::Nothing => crate::core::check_count(parameters.len(), 0)?,
            Given::Parameters(numbers) => {
                crate::core::check_count(parameters.len(), numbers.len())?;
                given.0 = numbers.iter().map(|&at| parameters[at].clone()).collect();
            }
            Given::Query(query) => {
                let text = StatementText::new(query);
                let done = self.run_once(session, &text, parameters, chosen, &mut given);
                done.map_err(|error| SqlError { position: None, ..error })?;
            }
        }
        given.0.truncate(ready.inputs.len());
        for (column, value) in ready.inputs.iter().zip(&mut given.0) {
            accept(column, value)?;
        }
        Ok(given.0)
    }

    /// The call that a statement is, as it was made ready before or now; `None`: it is none.
    fn ready(&mut self, sql: &str, chosen: Chosen<'_>) -> Result<Option<Rc<Ready>>, SqlError> {
        if self.core.catalog.routines().is_empty() && !Call::begins(sql) {
            return Ok(None);
        }
        let key = if chosen.is_empty() { Cow::Borrowed(sql) } else { Cow::Owned(key_of(sql, chosen)) };
        if let Some(ready) = self.calls.get(&*key) {
            return Ok(Some(Rc::clone(ready)));
        }
        let Some((call, routine)) = self.called(sql)? else { return Ok(None) };
        let given = match Arguments::of(&call, &routine, sql, chosen)? {
            Some(arguments) => arguments.ready(&routine, chosen),
            None => Given::Nothing,
        };
        let inputs = routine.inputs().map(|own| typed_column(&self.core.catalog, &own.name, &own.declared));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let types: Vec<_> = routine.inputs().map(|own| SqlType::of_oid(own.ty)).collect();
        let key_of_statement = |statement: &RoutineStatement| {
            let is_call = Call::of(&self.core.catalog, &statement.sql)
                .is_some_and(|call| call.calls || self.core.catalog.routine(&call.name).is_some());
            let types = &types[..statement.parameters.min(types.len())];
            (!is_call)
                .then(|| if types.is_empty() { statement.sql.clone() } else { key_of(&statement.sql, types) })
        };
        let keys = routine.body.iter().map(key_of_statement).collect();
        let columns = if answers(&routine) { columns_of(&call, &routine) } else { Vec::new() };
        let tag = if call.calls { "CALL" } else { "SELECT" };
        let ready =
            Rc::new(Ready { routine: Arc::clone(&routine), columns, tag, inputs, types, given, keys });
        if self.cache.keeps_any() && key.len() <= CACHED_STATEMENT_BYTES_MAX {
            if self.calls.len() >= CALLS_KEPT_MAX {
                self.calls.clear();
            }
            self.calls.insert(key.into(), Rc::clone(&ready));
        }
        Ok(Some(ready))
    }

    /// The statement that calls a function or procedure, which is named as in a statement without quotes, with so many
    /// parameters. What a procedure answers with is given as NULL.
    pub fn text_of_call(&self, name: &str, count: usize) -> Result<String, SqlError> {
        let catalog = self.core.store.catalog();
        let found = match name.split_once('.') {
            Some((schema, own)) => catalog.name_in(schema, own),
            None => Some(name.to_owned()),
        };
        let routine = found.and_then(|found| catalog.routine(&found).cloned());
        let routine = routine.ok_or_else(|| unknown("procedure", name))?;
        let own: Vec<String> = name.split('.').map(quoted_name).collect();
        let own = own.join(".");
        if routine.returns.is_some() {
            let numbers: Vec<String> = (1..=count).map(|number| format!("${number}")).collect();
            return Ok(format!("SELECT * FROM {own}({})", numbers.join(", ")));
        }
        let (mut given, mut items) = (0, Vec::new());
        for parameter in &routine.parameters {
            let is_given = parameter.mode.is_given();
            if is_given && given < count {
                given += 1;
                items.push(format!("${given}"));
            } else if !is_given {
                // Behind what is left out there are names only.
                let named = items.len() < given || given == count && !parameter.name.is_empty();
                let name =
                    if named { format!("{} => ", quoted_name(&parameter.name)) } else { String::new() };
                items.push(format!("{name}NULL"));
            }
        }
        items.extend((given + 1..=count).map(|number| format!("${number}")));
        Ok(format!("CALL {own}({})", items.join(", ")))
    }

    /// The call that a statement is, with what it calls.
    fn called<'a>(&self, sql: &'a str) -> Result<Option<(Call<'a>, Arc<RoutineDef>)>, SqlError> {
        let catalog = &self.core.catalog;
        if catalog.routines().is_empty() && !Call::begins(sql) {
            return Ok(None);
        }
        let Some(call) = Call::of(catalog, sql) else { return Ok(None) };
        let wrong = |routine: &RoutineDef, what: &str, hint: &str| {
            Err(SqlError::new(state::NOT_A_TABLE, format!("{} is {what}", signature(routine)))
                .with_hint(hint)
                .at(sql, call.place))
        };
        match catalog.routine(&call.name) {
            Some(routine) if call.calls && routine.returns.is_some() => {
                wrong(routine, "not a procedure", "To call a function, use SELECT.")
            }
            Some(routine) if !call.calls && routine.returns.is_none() => {
                wrong(routine, "a procedure", "To call a procedure, use CALL.")
            }
            Some(routine) if !call.calls && !call.from && routine.columns().len() > 1 => {
                let message = format!("a row of function {} as a value", routine.name);
                Err(SqlError::not_supported(message).with_hint("call it in FROM").at(sql, call.place))
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
        let mut description = match Arguments::of(&call, &routine, sql, chosen)? {
            Some(Arguments { query, given, .. }) => {
                let mut description = self.described(&query, chosen)?;
                let open = |at: usize| !matches!(chosen.get(at), Some(Some(_)));
                for (value, own) in given {
                    let at = number(value).and_then(|number| number.checked_sub(1)).filter(|at| open(*at));
                    if let Some(ty) = at.and_then(|at| description.parameters.get_mut(at)) {
                        *ty = SqlType::of_oid(own.ty).unwrap_or(*ty);
                    }
                }
                description
            }
            None => Description::default(),
        };
        description.columns = answers(&routine).then(|| columns_of(&call, &routine));
        description.tag = if call.calls { "CALL" } else { "SELECT" };
        Ok(Some(description))
    }

    /// Runs a body. Alone, it is a transaction; what others changed meanwhile makes it run again.
    fn run_routine(
        &mut self,
        session: &mut Session,
        ready: &Ready,
        values: &[Value],
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let (began, invalidated) = (Cell::new(false), Cell::new(None));
        let routine = &ready.routine;
        if ready.columns.is_empty() {
            self.run_alone(session, (ready, &began), &mut |own, session| {
                invalidated.set(own.run_body(session, ready, values, &mut Nobody)?);
                Ok(())
            })?;
            return Ok(Done { invalidated: invalidated.get(), ..Done::of_nobody("CALL") });
        }
        let returns = routine.returns.as_ref();
        let single = returns.is_none_or(|returns| !returns.set);
        let is_void = returns.is_some_and(|returns| returns.columns.is_empty());
        let columns = &ready.columns;
        let mut out = Returned { out, columns, single, tag: ready.tag, began: &began, rows: 0 };
        if !(routine.strict && values.contains(&Value::Null)) {
            self.run_alone(session, (ready, &began), &mut |own, session| {
                let out = if is_void { &mut Nobody as &mut dyn RowSink } else { &mut out };
                invalidated.set(own.run_body(session, ready, values, out)?);
                Ok(())
            })?;
        }
        Ok(Done { invalidated: invalidated.get(), ..out.finish()? })
    }

    fn run_alone(
        &mut self,
        session: &mut Session,
        (ready, began): (&Ready, &Cell<bool>),
        body: &mut dyn FnMut(&mut Self, &mut Session) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        // A single statement is a transaction by itself.
        if session.block.is_some() || ready.keys.len() <= 1 {
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
        ready: &Ready,
        values: &[Value],
        out: &mut dyn RowSink,
    ) -> Result<Option<Invalidated>, SqlError> {
        let body = &ready.routine.body;
        let mut invalidated = None;
        for (at, (statement, key)) in body.iter().zip(&ready.keys).enumerate() {
            self.core.sight.check_watch()?;
            let given = (&values[..statement.parameters], &ready.types[..statement.parameters]);
            let result = if at + 1 == body.len() {
                self.run_step(session, (&statement.sql, key.as_deref()), given, out)
            } else {
                self.run_step(session, (&statement.sql, key.as_deref()), given, &mut Nobody)
            };
            let done = result.map_err(|error| SqlError { position: None, ..error })?;
            invalidated = Invalidated::and(invalidated, done.invalidated);
        }
        Ok(invalidated)
    }

    /// Runs a statement of a body by its plan, which is made where there is none.
    fn run_step(
        &mut self,
        session: &mut Session,
        (sql, key): (&str, Option<&str>),
        (values, types): (&[Value], Chosen<'_>),
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let failed = session.status() == TransactionStatus::Failed;
        let Some(key) = key.filter(|_| !failed && self.cache.keeps_any()) else {
            return self.run(session, &StatementText::new(sql), values, types, out);
        };
        if self.cache.get(key).is_none()
            && let Some(prepared) = self.prepare_rows(sql, types, None)?
        {
            self.cache.put(key, prepared);
        }
        let Self { core, cache, .. } = self;
        let Some(prepared) = cache.get(key) else {
            return self.run(session, &StatementText::new(sql), values, types, out);
        };
        let result = core.run_prepared(session, prepared, values, out);
        if result.is_ok() {
            session.name_step(sql, values, types);
        }
        result
    }
}

/// Brings a value into the type of a parameter, as a column of the type takes it.
fn accept(column: &ColumnDef, value: &mut Value) -> Result<(), SqlError> {
    let taken = std::mem::replace(value, Value::Null);
    *value = column.accept(taken).map_err(|error| {
        let message = format!("invalid input for parameter \"{}\" of type {}", column.name, column.declared);
        SqlError::new(state::BAD_VALUE, message).with_detail(error.to_string())
    })?;
    Ok(())
}

/// Whether a call answers with rows.
fn answers(routine: &RoutineDef) -> bool {
    routine.returns.is_some() || routine.has_outputs()
}

/// The columns of what a call answers with. A single value is called like the function, or by its alias; in `FROM` one
/// that a parameter has made keeps the name of that.
fn columns_of(call: &Call<'_>, routine: &RoutineDef) -> Vec<ColumnDescription> {
    let mut columns = routine.columns();
    if columns.is_empty() {
        let (name, declared) = (routine.own_name().to_owned(), String::new());
        columns.push(ViewColumn { name, ty: SqlType::Void.oid(), declared });
    }
    let named = routine.has_outputs() || routine.returns.as_ref().is_some_and(Returns::is_table);
    if let [one] = &mut columns[..]
        && !(call.calls || call.from && named)
    {
        one.name = call.alias.clone().unwrap_or_else(|| routine.own_name().to_owned());
    }
    let own = columns.into_iter().map(|column| ColumnDescription {
        ty: SqlType::of_oid(column.ty).unwrap_or(SqlType::Text),
        ..ColumnDescription::text(column.name)
    });
    own.collect()
}

/// A function as errors name it.
fn signature(routine: &RoutineDef) -> String {
    let ty = |own: &RoutineParameter| {
        SqlType::of_oid(own.ty).map_or_else(|| own.declared.clone(), SqlType::sql_name)
    };
    let types: Vec<String> = routine.inputs().map(ty).collect();
    format!("{}({})", routine.name, types.join(", "))
}

/// The number of a parameter that is all of an expression.
fn number(value: &str) -> Option<usize> {
    value.strip_prefix('$')?.parse().ok()
}

/// What a call gives.
struct Arguments<'c> {
    /// Computes it: first what the body takes, in its order, then what only stands there.
    query: String,
    /// Each expression with the parameter that it is for.
    given: Vec<(&'c str, &'c RoutineParameter)>,
    /// Something stands there that is for no parameter.
    more: bool,
}

impl<'c> Arguments<'c> {
    /// Those of a call; `None`: there are none. That of a procedure has something in the places of its outputs, too.
    fn of(
        call: &Call<'c>,
        routine: &'c RoutineDef,
        sql: &str,
        chosen: Chosen<'_>,
    ) -> Result<Option<Self>, SqlError> {
        let unfit = || {
            let error = unknown(routine.word(), &format!("{} with these arguments", routine.name));
            error.with_hint("its parameters have other names, or another number").at(sql, call.place)
        };
        let slots: Vec<&RoutineParameter> = if routine.returns.is_some() {
            routine.inputs().collect()
        } else {
            routine.parameters.iter().collect()
        };
        // What a driver gives for an output of a function is of no type, and counts for nothing, as in PostgreSQL.
        let is_void = |sql: &str| {
            let at = number(sql).and_then(|number| number.checked_sub(1));
            at.is_some_and(|at| matches!(chosen.get(at), Some(Some(SqlType::Void))))
        };
        let (void, listed): (Vec<_>, Vec<_>) =
            call.arguments.iter().partition(|one| routine.returns.is_some() && is_void(one.sql));
        let given = placed(&listed, &slots).ok_or_else(unfit)?;
        let values = given.into_iter().zip(&slots);
        let values = values.map(|(given, own)| {
            given.or(own.default.as_deref()).map(|value| (value, *own)).ok_or_else(unfit)
        });
        let given = values.collect::<Result<Vec<_>, _>>()?;
        // A parameter of the statement has the type that it is for.
        let item = |(value, own): &(&str, &RoutineParameter)| match number(value) {
            Some(_) => format!("CAST({value} AS {})", own.declared),
            None => (*value).to_owned(),
        };
        let (taken, other): (Vec<_>, Vec<_>) = given.iter().partition(|(_, own)| own.mode.is_given());
        let mut items: Vec<String> = taken.into_iter().chain(other).map(item).collect();
        items.extend(void.iter().map(|one| one.sql.to_owned()));
        let (query, more) = (format!("SELECT {}", items.join(", ")), !void.is_empty());
        Ok((!items.is_empty()).then_some(Self { query, given, more }))
    }
}

impl Arguments<'_> {
    /// How the values are found, each time.
    fn ready(self, routine: &RoutineDef, chosen: Chosen<'_>) -> Given {
        let known = |at: usize| chosen.get(at).copied().flatten().and_then(class_of);
        let plain = |(value, own): &(&str, &RoutineParameter)| {
            let at = number(value)?.checked_sub(1)?;
            let own = class_of(SqlType::of_oid(own.ty)?)?;
            known(at).is_none_or(|given| given == own).then_some(at)
        };
        let all: Option<Vec<usize>> = self.given.iter().map(plain).collect();
        let each_once = |numbers: &Vec<usize>| (0..numbers.len()).all(|at| numbers.contains(&at));
        match all.filter(each_once) {
            Some(numbers) if !self.more && routine.inputs().count() == numbers.len() => {
                Given::Parameters(numbers)
            }
            _ => Given::Query(self.query),
        }
    }
}

/// What types have in common whose values a column takes as they come; `None`: they are converted.
fn class_of(ty: SqlType) -> Option<u8> {
    match ty {
        SqlType::Int2 | SqlType::Int4 | SqlType::Int8 => Some(0),
        SqlType::Text | SqlType::Varchar => Some(1),
        _ => None,
    }
}

/// The expression in the place of each parameter; `None`: they do not fit.
fn placed<'c>(listed: &[&Argument<'c>], slots: &[&RoutineParameter]) -> Option<Vec<Option<&'c str>>> {
    let mut given: Vec<Option<&'c str>> = vec![None; slots.len()];
    let mut named = false;
    for (at, Argument { name, sql }) in listed.iter().enumerate() {
        let at = match name {
            Some(name) => {
                named = true;
                slots.iter().position(|own| own.name.eq_ignore_ascii_case(name))
            }
            None if named => None,
            None => Some(at),
        };
        let place = given.get_mut(at?)?;
        if place.is_some() {
            return None;
        }
        *place = Some(*sql);
    }
    Some(given)
}
