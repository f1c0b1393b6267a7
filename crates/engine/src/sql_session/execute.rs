//! `EXECUTE`, and `EXPLAIN` of it: a prepared statement with the values that a statement computes for it.

use std::sync::Arc;

use sql::{RowSink, SqlError, SqlType};
use store::value::{Value, ValueRef};

use super::prepared::{Body, Prepared};
use super::utility::Utility;
use super::{ClientSink, Outcome, SqlSession, SqlThreadContext};

impl SqlSession {
    /// `EXECUTE`: the values are computed first.
    pub(super) fn execute_prepared(
        &mut self,
        context: &mut SqlThreadContext,
        name: &str,
        values: &str,
        sink: &mut dyn ClientSink,
    ) -> Result<Outcome, SqlError> {
        let (prepared, given) = self.values_given(context, name, values)?;
        if let Body::Utility(Utility::Execute { .. } | Utility::Explain { .. }) = prepared.body() {
            return Err(SqlError::new("0A000", "EXECUTE of a statement that is an EXECUTE is not supported"));
        }
        self.run_prepared(context, &prepared, &given, sink)
    }

    /// A prepared statement and the values that an `EXECUTE` gives it.
    pub(super) fn values_given(
        &mut self,
        context: &mut SqlThreadContext,
        name: &str,
        values: &str,
    ) -> Result<(Arc<Prepared>, Vec<Value>), SqlError> {
        let prepared = Arc::clone(self.statements.get(name)?);
        let mut taken = OneRow::default();
        if !values.is_empty() {
            let values = cast_values(values, prepared.parameters());
            self.run_at_once(context, &format!("SELECT {values}"), &[], &mut taken)?;
        }
        let (given, taken_by) = (taken.values.len(), prepared.parameters().len());
        if given != taken_by {
            let message = format!(
                "wrong number of parameters for prepared statement \"{name}\": expected {taken_by}, but got {given}"
            );
            return Err(SqlError::new("42601", message));
        }
        Ok((prepared, taken.values))
    }
}

/// The text of a prepared statement behind `EXPLAIN` and its options.
pub(super) fn explained(head: &str, prepared: &Prepared) -> Result<String, SqlError> {
    match prepared.body() {
        Body::Sql => Ok(format!("{head}{}", prepared.text())),
        Body::Empty | Body::Utility(_) => {
            Err(SqlError::new("0A000", "EXPLAIN EXECUTE is supported for statements that read or write rows"))
        }
    }
}

/// Expressions with commas between, each cast to the type of its parameter: a value that does not fit is refused. What
/// has no type that a statement can name stays as it is.
fn cast_values(values: &str, types: &[SqlType]) -> String {
    let mut out = String::from("(");
    let (mut depth, mut number, mut done) = (0_usize, 0, 0);
    let end_one = |out: &mut String, number: &mut usize| {
        out.push(')');
        let named = types.get(*number).filter(|ty| **ty != SqlType::Unknown && ty.enumeration().is_none());
        if let Some(ty) = named {
            out.push_str("::");
            out.push_str(&ty.sql_name());
        }
        *number += 1;
    };
    for token in sql::token::Tokens::new(values) {
        depth += usize::from(token.is_sign("(") || token.is_sign("["));
        depth = depth.saturating_sub(usize::from(token.is_sign(")") || token.is_sign("]")));
        if token.is_sign(",") && depth == 0 {
            out.push_str(&values[done..token.start]);
            end_one(&mut out, &mut number);
            out.push_str(", (");
            done = token.end();
        }
    }
    out.push_str(&values[done..]);
    end_one(&mut out, &mut number);
    out
}

/// Takes the values of one row.
#[derive(Default)]
struct OneRow {
    values: Vec<Value>,
}

impl RowSink for OneRow {
    fn columns(&mut self, _columns: &[sql::ColumnDescription]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.values = values.iter().map(|value| ValueRef::to_owned(*value)).collect();
        Ok(())
    }
}
