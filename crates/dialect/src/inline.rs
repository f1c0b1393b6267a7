//! Calls of users' functions within larger statements.
//!
//! The body of such a function becomes a query that is given its arguments, as that of a `LATERAL` is: each argument is
//! computed once for a call, and no name of the body means anything of the statement around it. So a function must only
//! read. What its body reads the statement reads, with the rights of who runs it.

use std::rc::Rc;

use store::definition::{RoutineParameter, SqlType};
use store::value::Value;

use super::calls::Argument;
use super::cast::TypeName;
use super::lateral::{COLUMNS_MAX, LATERAL, TAKEN_MAX, column_name};
use super::out::Out;
use super::own::{Own, add_new};
use super::rows::{Rows, RowsColumn};
use super::{Step, Stop, Translator, numeric};
use sqltext::ast::{Function, FunctionArg, FunctionArguments, TableAlias};
use sqltext::error::{SqlError, state};
use sqltext::token::{Token, sql_literal};

impl<'a> Translator<'a, '_> {
    /// The user's function that is called where the next token stands.
    pub(super) fn own_function(&self) -> Option<Rc<Own>> {
        self.names.own_function(self.peek()?.start).cloned()
    }

    /// Whether a token begins a call of one that gives rows.
    pub(super) fn is_own_set(&self, token: Token<'a>) -> bool {
        self.names.own_function(token.start).is_some_and(|own| own.is_set())
    }

    /// A call in `FROM`.
    pub(super) fn own_table(
        &mut self,
        own: &Own,
        arguments: &[FunctionArg],
        alias: Option<&TableAlias>,
        out: &mut Out<'a>,
    ) -> Step<()> {
        let rows = self.own_rows(own, arguments)?;
        if self.next_is_words(&["WITH", "ORDINALITY"]) {
            let error = SqlError::not_supported("WITH ORDINALITY of a user's function");
            return Err(self.placed(error.with_hint("use row_number()"), self.peek()));
        }
        self.rows_in_from(rows, &own.def.own_name().to_lowercase(), alias, out)
    }

    /// A call as a value.
    pub(super) fn own_value(&mut self, own: &Own, function: &Function) -> Step<Out<'a>> {
        let place = self.peek();
        let FunctionArguments::List(list) = &function.args else { return Err(Stop::Unknown) };
        let bare = list.duplicate_treatment.is_none() && list.clauses.is_empty();
        if !bare || function.over.is_some() || function.filter.is_some() {
            let message = format!("{} is no aggregate function", own.def.name);
            return Err(self.error_at(place, "42809", message));
        }
        if own.is_set() {
            return self.own_in_list(own, &list.args);
        }
        let Rows { call, columns, .. } = self.own_rows(own, &list.args)?;
        let ty = match &columns[..] {
            [] => None,
            [one] => one.ty,
            _ => {
                let message = format!("a row of function {} as a value", own.def.name);
                let error = SqlError::not_supported(message).with_hint("call it in FROM");
                return Err(self.placed(error, place));
            }
        };
        let value = call.wrapped(&format!("(SELECT {} FROM", column_name(0)), ")").of_type(ty);
        let decimal = own.body.as_ref().is_ok_and(|body| body.decimals.first() == Some(&true));
        let value = if decimal { numeric::settled(value) } else { value };
        Ok(value.labelled(own.def.own_name()))
    }

    /// A call that gives rows, in the list of a `SELECT`.
    fn own_in_list(&mut self, own: &Own, arguments: &[FunctionArg]) -> Step<Out<'a>> {
        let place = self.peek();
        let Some(spread) = self.spread.take() else {
            let error = SqlError::not_supported("a function that returns a set, in this place");
            return Err(self.placed(error.with_hint("call it in FROM"), place));
        };
        let Rows { call, columns, .. } = self.own_rows(own, arguments)?;
        let [column] = &columns[..] else {
            let message = format!("rows of function {} as values", own.def.name);
            let error = SqlError::not_supported(message).with_hint("call it in FROM");
            return Err(self.placed(error, place));
        };
        let value = self.spread_out(spread, call, &column.own);
        let value = value.ok_or(Stop::Unknown)?;
        let start = place.map_or(0, |token| token.start);
        Ok(Out::made(value, start).of_type(column.ty).labelled(own.def.own_name()))
    }

    /// A call as a table.
    pub(super) fn own_rows(&mut self, own: &Own, arguments: &[FunctionArg]) -> Step<Rows<'a>> {
        let place = self.peek();
        if own.def.returns.is_none() {
            let error = SqlError::new("42809", format!("{} is a procedure", own.def.name));
            return Err(self.placed(error.with_hint("To call a procedure, use CALL."), place));
        }
        let body = own.body.as_ref().map_err(|error| self.placed(error.clone(), place))?;
        while !self.next_is_sign(0, "(") {
            self.token()?;
        }
        let before = self.columns_named;
        let given = self.own_arguments(own, arguments, place)?;
        let open = self.columns_named != before;
        let columns = own.def.columns();
        if given.len() > TAKEN_MAX || columns.len() > COLUMNS_MAX {
            let message = format!("function {} within a larger statement", own.def.name);
            let hint = format!("it has more than {TAKEN_MAX} parameters or {COLUMNS_MAX} columns");
            return Err(self.placed(SqlError::not_supported(message).with_hint(hint), place));
        }
        for read in &body.reads {
            if !self.reads.contains(read) {
                self.reads.push(read.clone());
            }
        }
        add_new(&mut self.calls, &body.calls);
        let text = sql_literal(&Value::Text(body.sql.clone()));
        let mut call = Out::made(format!("{LATERAL}({text}"), place.map_or(0, |token| token.start));
        for argument in given {
            call.push_str(",");
            call.push(argument);
        }
        call.push_str(")");
        // A type without columns of its own, or a single one, is called like the function.
        let named = own.def.has_outputs() || columns.len() > 1;
        let column = |(at, column): (usize, store::definition::ViewColumn)| RowsColumn {
            name: column.name,
            own: column_name(at),
            ty: SqlType::of_oid(column.ty),
        };
        let mut columns: Vec<RowsColumn> = columns.into_iter().enumerate().map(column).collect();
        if columns.is_empty() {
            let name = own.def.own_name().to_owned();
            columns.push(RowsColumn { name, own: column_name(0), ty: Some(SqlType::Void) });
        }
        Ok(Rows { call, columns, named, open })
    }

    /// The values that a call gives, in the order in which the body numbers them.
    fn own_arguments(
        &mut self,
        own: &Own,
        arguments: &[FunctionArg],
        place: Option<Token<'a>>,
    ) -> Step<Vec<Out<'a>>> {
        let inputs: Vec<&RoutineParameter> = own.def.inputs().collect();
        let unfit = |walk: &Self| {
            let message = format!("function {} with these arguments does not exist", own.def.name);
            let error = SqlError::new(state::UNKNOWN_FUNCTION, message);
            walk.placed(error.with_hint("its parameters have other names, or another number"), place)
        };
        let mut given: Vec<Option<Out<'a>>> = vec![None; inputs.len()];
        let mut named = false;
        self.sign("(")?;
        for (number, argument) in arguments.iter().enumerate() {
            if number > 0 {
                self.sign(",")?;
            }
            let (at, value) = match super::calls::argument_of(argument) {
                Some(Argument::Named(name, value)) => {
                    named = true;
                    // The name, and `=>` or `:=`.
                    self.at += 2;
                    (inputs.iter().position(|own| own.name.eq_ignore_ascii_case(name)), value)
                }
                Some(Argument::Value(value)) if !named => (Some(number), value),
                _ => return Err(unfit(self)),
            };
            let value = self.expression(value)?;
            match at.and_then(|at| given.get_mut(at)) {
                Some(slot) if slot.is_none() => *slot = Some(value),
                _ => return Err(unfit(self)),
            }
        }
        self.sign(")")?;
        let defaults = own.body.as_ref().map(|body| body.defaults.as_slice()).unwrap_or_default();
        let mut values = Vec::with_capacity(given.len());
        for (at, (value, own)) in given.into_iter().zip(&inputs).enumerate() {
            let default = defaults.get(at).and_then(Option::as_ref);
            values.push(match (value, default) {
                (Some(value), _) => self.own_argument(value, own)?,
                (None, Some(default)) => Out::made(default, place.map_or(0, |token| token.start)),
                (None, None) => return Err(unfit(self)),
            });
        }
        Ok(values)
    }

    /// A value in the type of its parameter.
    fn own_argument(&mut self, value: Out<'a>, own: &RoutineParameter) -> Step<Out<'a>> {
        match SqlType::of_oid(own.ty) {
            Some(ty) => self.cast(value, &TypeName::bare(ty)),
            None => Ok(value),
        }
    }

    fn placed(&self, error: SqlError, place: Option<Token<'a>>) -> Stop {
        let at = place.map_or(self.sql.len(), |token| token.start);
        Stop::Error(if error.position.is_none() { error.at(self.sql, at) } else { error })
    }
}
