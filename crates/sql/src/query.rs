//! Queries as SQLite runs them, or a fold in its stead.

use store::value::{Value, ValueRef};

use crate::describe::{OwnedColumn, lent};
use crate::error::{SqlError, state};
use crate::executor::{Core, Done, DoneKind, RowSink};
use crate::fold::{self, Fold};
use crate::limits::PARAMETERS_MAX;
use crate::sqlite::Statement;
use crate::text::parameter::dollars_replaced;

/// A query with its columns.
#[derive(Debug)]
pub(crate) struct ReadPlan {
    statement: Statement,
    pub(crate) columns: Vec<OwnedColumn>,
    pub(crate) parameters: usize,
    pub(crate) tag: &'static str,
    /// The way without SQLite, where there is one.
    fold: Option<Box<Fold>>,
}

impl ReadPlan {
    pub(crate) fn new(core: &Core, sql: &str, tag: &'static str) -> Result<Self, SqlError> {
        let text = dollars_replaced(sql);
        let statement = core.rewritten(&text, |failure| core.failed(SqlError::of_sqlite(failure, sql)))?;
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
        Ok(Self { statement, columns, parameters, tag, fold: None })
    }

    /// The same plan with the way without SQLite, where there is one.
    pub(crate) fn with_fold(self, core: &Core, sql: &str) -> Self {
        let fold = fold::plan(core, sql).filter(|fold| fold.width() == self.columns.len());
        Self { fold: fold.map(Box::new), ..self }
    }

    pub(crate) fn run(
        &mut self,
        core: &Core,
        parameters: &[Value],
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let columns = &self.columns;
        let mut rows = 0;
        let mut values: Vec<ValueRef<'static>> = Vec::new();
        let mut view = core.view();
        if let Some(fold) = &mut self.fold {
            if let Some(rows) = fold.run(core, &view, parameters, columns, out)? {
                return Ok(Done { kind: DoneKind::Rows, affected: rows, tag: self.tag });
            }
            view.begin_anew();
        }
        core.sight.lend(&view, || {
            core.run(&mut self.statement, parameters, &mut |row| {
                // Not before: a statement that told nothing can begin anew.
                if rows == 0 {
                    out.columns(&lent(columns));
                }
                rows += 1;
                // The buffer is reused; its lifetime is renewed for each row.
                let mut shown: Vec<ValueRef<'_>> = recycled(std::mem::take(&mut values));
                shown.extend((0..row.len()).map(|column| row.value(column)));
                let result = out.row(&shown);
                values = recycled(shown);
                result
            })
        })?;
        if rows == 0 {
            out.columns(&lent(columns));
        }
        Ok(Done { kind: DoneKind::Rows, affected: rows, tag: self.tag })
    }
}

/// An emptied buffer for values of another lifetime, without a new allocation.
pub(crate) fn recycled<'b>(mut values: Vec<ValueRef<'_>>) -> Vec<ValueRef<'b>> {
    values.clear();
    values.into_iter().map(|_| ValueRef::Null).collect()
}
