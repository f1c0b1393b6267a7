//! From a statement's text to its plan.

use std::borrow::Cow;

use super::{EXPLAIN, Executor};
use crate::dialect::{self, Chosen};
use crate::direct;
use crate::error::SqlError;
use crate::plan::Plan;
use crate::prepared::Prepared;
use crate::query::ReadPlan;
use crate::text::kind::{StatementKind, kind_of};
use crate::text::set_returning;
use crate::write;

impl Executor {
    /// Compiles a statement that reads or writes rows, in whichever dialect it is written.
    pub(super) fn prepare(
        &self,
        kind: StatementKind,
        sql: &str,
        chosen: Chosen<'_>,
    ) -> Result<Prepared, SqlError> {
        let Some(translated) = dialect::translate(&self.core.catalog, sql, chosen)? else {
            return Ok(Prepared::new(self.compile(kind, sql)?));
        };
        let compiled = kind_of(&translated.sql).and_then(|kind| self.compile(kind, &translated.sql));
        let plan = compiled.map_err(|error| translated.relocate(error, sql))?;
        Ok(Prepared::translated(plan, translated, sql, chosen))
    }

    /// The plan of a statement in SQLite's words.
    fn compile(&self, kind: StatementKind, sql: &str) -> Result<Plan, SqlError> {
        match set_returning::rewritten(sql) {
            None => self.compile_text(kind, sql),
            // A place in the new text would be none in the user's.
            Some(text) => self
                .compile_text(kind_of(&text)?, &text)
                .map_err(|error| SqlError { position: None, ..error }),
        }
    }

    fn compile_text(&self, kind: StatementKind, sql: &str) -> Result<Plan, SqlError> {
        let core = &self.core;
        if core.native
            && matches!(kind, StatementKind::Read | StatementKind::Write)
            && let Some(plan) = direct::plan(core, sql)
        {
            return Ok(Plan::Direct(Box::new(plan)));
        }
        Ok(match kind {
            StatementKind::Write => Plan::Write(Box::new(write::build(core, sql)?)),
            StatementKind::ExplainWrite(start) => {
                let plan = write::build(core, &sql[start..])?;
                let explained = format!("EXPLAIN QUERY PLAN {}", plan.source_sql);
                Plan::Read(ReadPlan::new(core, &explained, EXPLAIN)?)
            }
            StatementKind::Explain(start) => return self.compile_explained(&sql[start..]),
            StatementKind::Read => Plan::Read(ReadPlan::new(core, sql, "SELECT")?.with_fold(core, sql)),
            _ => Plan::Read(ReadPlan::new(core, sql, EXPLAIN)?),
        })
    }

    /// `EXPLAIN` of this statement: who runs it, and SQLite's plan of it, in PostgreSQL's shape.
    fn compile_explained(&self, sql: &str) -> Result<Plan, SqlError> {
        let kind = kind_of(sql)?;
        let explained = self.compile_text(kind, sql)?;
        let text = match kind {
            StatementKind::Write => Cow::Owned(write::build(&self.core, sql)?.source_sql),
            _ => Cow::Borrowed(sql),
        };
        let plan = ReadPlan::new(&self.core, &format!("EXPLAIN QUERY PLAN {text}"), EXPLAIN)?;
        Ok(Plan::Read(plan.in_lines(explained)))
    }
}
