//! From a statement's text to its plan.

use std::borrow::Cow;

use dialect::Chosen;
use sqltext::Tree;

use super::Executor;
use crate::error::SqlError;
use crate::native;
use crate::plan::{EXPLAIN, General, Plan};
use crate::prepared::Prepared;
use crate::query::ReadPlan;
use crate::text::kind::{StatementKind, kind_of};
use crate::text::token::Tokens;
use crate::write;

impl Executor {
    /// Compiles a statement that reads or writes rows, in whichever dialect it is written.
    pub(super) fn prepare(
        &self,
        kind: StatementKind,
        sql: &str,
        chosen: Chosen<'_>,
        known: Option<&Tree<'_>>,
    ) -> Result<Prepared, SqlError> {
        let Some(translated) = dialect::translate(&self.core.catalog, sql, chosen, known)? else {
            let plan = self.compile(kind, sql).map_err(|error| dialect::further_error(sql, error))?;
            return Ok(Prepared::new(plan));
        };
        let compiled = kind_of(&translated.sql).and_then(|kind| self.compile(kind, &translated.sql));
        let plan = compiled.map_err(|error| translated.relocate(error, sql))?;
        Ok(Prepared::translated(plan, translated, sql, chosen))
    }

    /// The plan of a statement in SQLite's words.
    fn compile(&self, kind: StatementKind, sql: &str) -> Result<Plan, SqlError> {
        let core = &self.core;
        Ok(match kind {
            StatementKind::Write => return self.compile_write(sql),
            StatementKind::ExplainWrite(start) => {
                let plan = write::build(core, &sql[start..])?;
                let explained = format!("EXPLAIN QUERY PLAN {}", plan.source_sql);
                Plan::Read(ReadPlan::new(core, &explained, EXPLAIN)?)
            }
            StatementKind::Explain(start) => return self.compile_explained(&sql[start..]),
            StatementKind::Read => return self.compile_read(sql),
            _ => Plan::Read(ReadPlan::new(core, sql, EXPLAIN)?),
        })
    }

    fn compile_read(&self, sql: &str) -> Result<Plan, SqlError> {
        let core = &self.core;
        let native = if core.native { native::of_text(core, sql) } else { None };
        let native = match native.map(Box::new) {
            Some(native) if !native.needs_general() => {
                return Ok(Plan::Native { native, general: General::Text(sql.to_owned()) });
            }
            native => native,
        };
        let plan = ReadPlan::new(core, sql, "SELECT")?;
        Ok(match native.filter(|native| native.width() == Some(plan.columns.len())) {
            Some(native) => Plan::Native { native, general: General::Ready(Box::new(Plan::Read(plan))) },
            None => Plan::Read(plan),
        })
    }

    fn compile_write(&self, sql: &str) -> Result<Plan, SqlError> {
        let core = &self.core;
        let deletes = Tokens::new(sql).next().is_some_and(|verb| verb.is("DELETE"));
        if core.native
            && deletes
            && let Some(native) = native::of_text(core, sql)
        {
            let (native, general) = (Box::new(native), General::Text(sql.to_owned()));
            return Ok(Plan::Native { native, general });
        }
        let (plan, native) = write::build_for_both(core, sql)?;
        let plan = Plan::Write(Box::new(plan));
        Ok(match native.map(Box::new) {
            Some(native) => Plan::Native { native, general: General::Ready(Box::new(plan)) },
            None => plan,
        })
    }

    /// `EXPLAIN` of this statement: who runs it, and SQLite's plan of it, in PostgreSQL's shape.
    fn compile_explained(&self, sql: &str) -> Result<Plan, SqlError> {
        let kind = kind_of(sql)?;
        let explained = self.compile(kind, sql)?;
        let text = match kind {
            StatementKind::Write => Cow::Owned(write::build(&self.core, sql)?.source_sql),
            _ => Cow::Borrowed(sql),
        };
        let plan = ReadPlan::new(&self.core, &format!("EXPLAIN QUERY PLAN {text}"), EXPLAIN)?;
        Ok(Plan::Read(plan.in_lines(explained)))
    }
}
