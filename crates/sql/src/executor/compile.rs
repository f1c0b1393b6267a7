//! From a statement's text to its plan.

use dialect::lowered::{Lowered, Select, Write};
use dialect::{Chosen, Translated};
use sqltext::Tree;
use store::Catalog;

use super::Executor;
use crate::error::{SqlError, state};
use crate::governed::MATERIALIZED;
use crate::limits::NESTED_VIEWS_MAX;
use crate::native;
use crate::needs::Needs;
use crate::plan::explain::{EXPLAIN, Explained, Form};
use crate::plan::{General, Plan};
use crate::prepared::Prepared;
use crate::query::ReadPlan;
use crate::tell::Tells;
use crate::text::explain::Explain;
use crate::text::kind::{StatementKind, kind_of};
use crate::write;

/// What `SHOW EXPIRY RULES` is.
const RULES_SHOWN: &str = "SELECT rule_name, table_name, condition, every, runs, rows, errors, last_error \
     FROM sqlcached_expiry_rules ORDER BY rule_name";

impl Executor {
    /// Compiles a statement that reads or writes rows, in whichever dialect it is written.
    pub(super) fn prepare(
        &self,
        kind: StatementKind,
        sql: &str,
        chosen: Chosen<'_>,
        known: Option<&Tree<'_>>,
    ) -> Result<Prepared, SqlError> {
        if kind == StatementKind::Compound {
            return self.prepare_compound(sql, chosen);
        }
        let blanked;
        let sql = match kind {
            StatementKind::ShowRules => RULES_SHOWN,
            StatementKind::Explain(options) => {
                blanked = options.blanked(sql);
                &blanked
            }
            _ => sql,
        };
        let began = self.core.store.clock().precise_ns();
        self.set_words();
        let mut translated = dialect::translate(&self.core.catalog, sql, chosen, known)?;
        check_populated(&self.core.catalog, &translated.reads, NESTED_VIEWS_MAX)?;
        let needs = Needs::of(&self.core, &translated);
        // A stage that gave up may not have said so, and what it found is not all.
        self.core.sight.check_stage()?;
        let mut tells = None;
        let mut plan = if let Some(write) = translated.take_write() {
            if self.core.catalog.has_told() {
                tells = Tells::of(&self.core.catalog, &write, sql, chosen);
            }
            self.compile_write(kind, write)
                .map_err(|error| self.core.about_routine(write::placed(error, sql), sql))?
        } else {
            refuse_unread(kind, sql, &translated)?;
            self.compile_read(kind, &translated)
                .map_err(|error| self.core.about_routine(error_of_read(error, sql, &translated), sql))?
        };
        if let Plan::Explained(explained) = &mut plan {
            explained.note_planning(self.core.store.clock().precise_ns().saturating_sub(began));
        }
        self.core.sight.check_stage()?;
        Ok(Prepared::translated(plan, translated, needs, sql, chosen).telling(tells))
    }

    /// Compiles the query of a materialized view, which is in SQLite's words: it may name what a client may not.
    pub(super) fn prepare_view(&self, sql: &str) -> Result<Prepared, SqlError> {
        self.set_words();
        let Some(translated) = dialect::translate_view(&self.core.catalog, sql) else {
            return self.prepare(StatementKind::Read, sql, &[], None);
        };
        check_populated(&self.core.catalog, &translated.reads, NESTED_VIEWS_MAX)?;
        let needs = Needs::of(&self.core, &translated);
        let plan = self.compile_read(StatementKind::Read, &translated)?;
        self.core.sight.check_stage()?;
        Ok(Prepared::translated(plan, translated, needs, sql, &[]))
    }

    /// The plan of a statement that reads, in SQLite's words.
    fn compile_read(&self, kind: StatementKind, translated: &Translated) -> Result<Plan, SqlError> {
        let select = match &translated.lowered {
            Lowered::Read(Some(select)) => Some((&**select, translated.parameters.len())),
            _ => None,
        };
        let sql = translated.sql.as_str();
        match kind {
            StatementKind::Explain(options) => {
                let form = select.map(|(select, _)| Form::of_select(select)).unwrap_or_default();
                self.compile_explained(options, sql, (self.compile_query(sql, select)?, form))
            }
            StatementKind::Read | StatementKind::ShowRules => self.compile_query(sql, select),
            _ => Ok(Plan::Read(ReadPlan::new(&self.core, sql, EXPLAIN)?)),
        }
    }

    fn compile_query(&self, sql: &str, select: Option<(&Select, usize)>) -> Result<Plan, SqlError> {
        let core = &self.core;
        let known = select.filter(|_| core.native);
        let native = known.and_then(|(select, count)| native::of_query(core, select, (sql, count)));
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

    /// The plan of a statement that writes, or of its `EXPLAIN`.
    fn compile_write(&self, kind: StatementKind, write: Box<Write>) -> Result<Plan, SqlError> {
        match kind {
            StatementKind::ExplainWrite(_) => {
                let source = write::build(&self.core, &write)?.source_sql;
                Ok(Plan::Read(ReadPlan::new(&self.core, &format!("EXPLAIN QUERY PLAN {source}"), EXPLAIN)?))
            }
            StatementKind::Explain(options) => {
                let source = write::build(&self.core, &write)?.source_sql;
                let form = Form::of_write(&write);
                self.compile_explained(options, &source, (self.compile_change(write)?, form))
            }
            _ => self.compile_change(write),
        }
    }

    fn compile_change(&self, write: Box<Write>) -> Result<Plan, SqlError> {
        let core = &self.core;
        core.catalog.table(&write.table.name).map_or(Ok(()), |table| table.check_changeable())?;
        if core.native
            && let Some(native) = native::of_deletion(core, &write)
        {
            return Ok(Plan::Native { native: Box::new(native), general: General::Pieces(write) });
        }
        let plan = write::build(core, &write)?;
        let native = if core.native { native::of_change(core, &write, &plan) } else { None };
        let plan = Plan::Write(Box::new(plan));
        Ok(match native.map(Box::new) {
            Some(native) => Plan::Native { native, general: General::Ready(Box::new(plan)) },
            None => plan,
        })
    }

    fn compile_explained(
        &self,
        options: Explain,
        query: &str,
        explained: (Plan, Form),
    ) -> Result<Plan, SqlError> {
        Ok(Plan::Explained(Box::new(Explained::new(&self.core, options, query, explained)?)))
    }
}

/// Refuses to read a materialized view that was never filled, by its name or through views.
fn check_populated(catalog: &Catalog, reads: &[String], views: usize) -> Result<(), SqlError> {
    for name in reads {
        let materialized = catalog.table(name).and_then(|table| table.def().materialized.as_ref());
        if materialized.is_some_and(|own| !own.populated) {
            let message = format!("{MATERIALIZED} \"{name}\" has not been populated");
            return Err(SqlError::new(state::NOT_IN_STATE, message)
                .with_hint("Use the REFRESH MATERIALIZED VIEW command."));
        }
        if let Some(view) = catalog.view(name).filter(|_| views > 0) {
            let reads = dialect::reads_of_view(catalog, &view.sql).unwrap_or_default();
            check_populated(catalog, &reads, views - 1)?;
        }
    }
    Ok(())
}

/// What writes is not handed to SQLite, whatever SQLite can read of it.
fn refuse_unread(kind: StatementKind, sql: &str, translated: &Translated) -> Result<(), SqlError> {
    if translated.lowered != Lowered::Unread {
        return Ok(());
    }
    let (inner, start) = match kind {
        StatementKind::Explain(options) => (kind_of(&sql[options.start..])?, options.start),
        StatementKind::ExplainWrite(start) => (StatementKind::Write, start),
        kind => (kind, 0),
    };
    if inner == StatementKind::Write { Err(dialect::error_of(sql, start)) } else { Ok(()) }
}

/// An error of a query, at its place in the user's text.
#[cold]
fn error_of_read(error: SqlError, sql: &str, translated: &Translated) -> SqlError {
    let error = translated.relocate(error, sql);
    if translated.lowered == Lowered::Unread { dialect::further_error(sql, error) } else { error }
}
