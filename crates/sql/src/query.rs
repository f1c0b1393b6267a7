//! Queries as SQLite runs them.

use sqlite::Statement;
use sqltext::limits::PARAMETERS_MAX;
use store::View;
use store::value::{Value, ValueRef};

use crate::core::Core;
use crate::describe::ColumnDescription;
use crate::done::{ComputedBy, Done, DoneKind, RowSink};
use crate::error::{SqlError, state};

/// A query with its columns.
#[derive(Debug)]
pub(crate) struct ReadPlan {
    statement: Statement,
    pub(crate) columns: Vec<ColumnDescription>,
    pub(crate) parameters: usize,
    pub(crate) tag: &'static str,
}

impl ReadPlan {
    pub(crate) fn new(core: &Core, sql: &str, tag: &'static str) -> Result<Self, SqlError> {
        let statement = core.statement(sql, |failure| core.failed(failure.in_text(sql)))?;
        let Some(statement) = statement else {
            return Err(SqlError::new(state::SYNTAX, "a statement was expected"));
        };
        if !statement.is_read_only() {
            return Err(SqlError::new(state::FORBIDDEN, "the statement would write"));
        }
        let columns = core.columns_of(&statement);
        let parameters = statement.parameter_count();
        if parameters > PARAMETERS_MAX {
            return Err(SqlError::new(state::TOO_COMPLEX, format!("more parameters than {PARAMETERS_MAX}")));
        }
        Ok(Self { statement, columns, parameters, tag })
    }

    /// Runs it through a view that was begun, or a new one.
    pub(crate) fn run_from<'c>(
        &mut self,
        core: &'c Core,
        view: Option<View<'c>>,
        parameters: &[Value],
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let view = view.unwrap_or_else(|| core.view().of_query());
        self.query(core, &view, parameters, out)
    }

    pub(crate) fn run(
        &mut self,
        core: &Core,
        parameters: &[Value],
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        self.run_from(core, None, parameters, out)
    }

    fn query(
        &mut self,
        core: &Core,
        view: &View<'_>,
        parameters: &[Value],
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let columns = &self.columns;
        let mut rows = 0;
        let mut values: Vec<ValueRef<'static>> = Vec::new();
        core.sight.lend(view, || {
            core.run(&mut self.statement, parameters, &mut |row| {
                // Not before: a statement that answered nothing can start again.
                if rows == 0 {
                    out.columns(columns);
                }
                rows += 1;
                // The buffer is reused; its lifetime is renewed for each row.
                let mut shown: Vec<ValueRef<'_>> = recycled(std::mem::take(&mut values));
                shown.extend((0..row.columns()).map(|column| row.value(column)));
                let result = out.row(&shown);
                values = recycled(shown);
                result
            })
        })?;
        if rows == 0 {
            out.columns(columns);
        }
        let by = ComputedBy::Sqlite;
        Ok(Done { kind: DoneKind::Rows, affected: rows, tag: self.tag, by, invalidated: None })
    }
}

/// An emptied buffer for values of another lifetime, without a new allocation.
pub(crate) fn recycled<'b>(mut values: Vec<ValueRef<'_>>) -> Vec<ValueRef<'b>> {
    values.clear();
    values.into_iter().map(|_| ValueRef::Null).collect()
}
