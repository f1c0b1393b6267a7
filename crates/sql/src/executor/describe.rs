//! What statements take and give, and statements whose parameters have types that the client chose.
//!
//! A statement is compiled once for all clients, and once more for each list of chosen types that changes what it
//! means: other text, other types of its columns, or other conversions of its values.

use std::rc::Rc;

use dialect::Chosen;
use pgcatalog::began;
use sqltext::Tree;
use sqltext::literals::StatementText;
use store::definition::SqlType;
use store::value::Value;

use super::{Done, Executor, RowSink, check_size};
use crate::describe::Description;
use crate::error::SqlError;
use crate::meter;
use crate::prepared::{self, Prepared};
use crate::session::{Session, TransactionStatus};
use crate::table::Sight;
use crate::text::kind::{StatementKind, kind_of};
use crate::text::transaction::ending;

impl Executor {
    /// What a statement takes and gives, without running it. `parameter_types` are those that the client chose; what
    /// it left open follows from the statement, and is text where nothing is to be found.
    pub fn describe(
        &mut self,
        session: &Session,
        sql: &str,
        parameter_types: &[Option<SqlType>],
    ) -> Result<Description, SqlError> {
        if session.status() == TransactionStatus::Failed {
            return ending(sql).map(|_| Description::default());
        }
        self.refresh()?;
        self.choose_executor(session);
        let timeout = session.statement_timeout(self.core.limits.statement_timeout);
        self.core.sight.start_watch(&self.core.limits, timeout, session.cancel());
        let heap_bytes = self.core.limits.heap_bytes_max;
        let policy = Rc::<Sight>::clone(&self.core.sight);
        let result = meter::statement(policy, heap_bytes, || self.described(sql, parameter_types));
        began::end();
        result.map_err(|error| self.core.sight.take_failure().unwrap_or(error))
    }

    /// Refuses a statement that the session may not run, without running it.
    pub fn check_allowed(&mut self, session: &Session, sql: &str) -> Result<(), SqlError> {
        self.describe(session, sql, &[])?;
        let prepared = self.cache.get(sql);
        prepared.map_or(Ok(()), |prepared| prepared.check_needs(&self.core, session.identity()))
    }

    pub(super) fn described(&mut self, sql: &str, chosen: Chosen<'_>) -> Result<Description, SqlError> {
        if let Some(description) = self.describe_call(sql, chosen)? {
            return Ok(description);
        }
        if self.cache.get(sql).is_none() {
            match self.prepare_rows(sql, &[], None) {
                Ok(Some(prepared)) => self.cache.put(sql, prepared),
                Ok(None) => return Ok(Description::default()),
                // It may be right for the types that the client chose.
                Err(error) if chosen.iter().all(Option::is_none) => return Err(error),
                Err(_) => return self.described_chosen(sql, chosen),
            }
        }
        let alike = match self.cache.get(sql) {
            Some(prepared) => prepared.agrees(chosen) || self.means_the_same(sql, chosen)?,
            // The cache keeps nothing.
            None => chosen.iter().all(Option::is_none),
        };
        if !alike {
            return self.described_chosen(sql, chosen);
        }
        let Some(prepared) = self.cache.get(sql) else {
            let prepared = self.prepare_rows(sql, &[], None)?;
            return Ok(prepared.map(|prepared| prepared.description(chosen)).unwrap_or_default());
        };
        prepared.note_agreement(chosen);
        Ok(prepared.description(chosen))
    }

    /// The same of a statement that means something else by the types that the client chose.
    fn described_chosen(&mut self, sql: &str, chosen: Chosen<'_>) -> Result<Description, SqlError> {
        let key = key_of(sql, chosen);
        if self.cache.get(&key).is_none() {
            let Some(prepared) = self.prepare_rows(sql, chosen, None)? else {
                return Ok(Description::default());
            };
            let description = prepared.description(chosen);
            self.cache.put(&key, prepared);
            return Ok(Description { chosen: chosen.to_vec(), ..description });
        }
        let description = self.cache.get(&key).map(|prepared| prepared.description(chosen));
        Ok(Description { chosen: chosen.to_vec(), ..description.unwrap_or_default() })
    }

    /// Whether a statement is the same whether the client chose these types or none. The answer is kept with the
    /// statement: drivers choose by the size of a number, and ask again each time.
    fn means_the_same(&self, sql: &str, chosen: Chosen<'_>) -> Result<bool, SqlError> {
        self.set_words();
        let catalog = &self.core.catalog;
        let blanked;
        let sql = match kind_of(sql)? {
            StatementKind::Explain(options) => {
                blanked = options.blanked(sql);
                &blanked
            }
            _ => sql,
        };
        let open = dialect::translate(catalog, sql, &[], None)?;
        let closed = dialect::translate(catalog, sql, chosen, None)?;
        Ok(prepared::are_alike(&open, &closed, chosen))
    }

    /// Compiles a statement that reads or writes rows; `None` for any other. `known`: its tree, or that of the same
    /// statement with literals in the place of parameters.
    pub(super) fn prepare_rows(
        &self,
        sql: &str,
        chosen: Chosen<'_>,
        known: Option<&Tree<'_>>,
    ) -> Result<Option<Prepared>, SqlError> {
        check_size(sql)?;
        let kind = kind_of(sql)?;
        if matches!(
            kind,
            StatementKind::Define
                | StatementKind::Call
                | StatementKind::Block
                | StatementKind::Transaction
                | StatementKind::Empty
        ) {
            return Ok(None);
        }
        self.prepare(kind, sql, chosen, known).map(Some)
    }

    /// Runs a statement whose parameters have types that the client chose. It is compiled for these.
    pub(super) fn run_chosen(
        &mut self,
        session: &mut Session,
        text: &StatementText<'_>,
        parameters: &[Value],
        chosen: Chosen<'_>,
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let sql = text.sql;
        if session.status() == TransactionStatus::Failed {
            return self.control(session, sql);
        }
        let key = key_of(sql, chosen);
        let Self { core, cache, .. } = self;
        if let Some(prepared) = cache.get(&key) {
            return core.run_prepared(session, prepared, parameters, out);
        }
        if let Some(done) = self.run_call(session, sql, parameters, chosen, out)? {
            return Ok(done);
        }
        let Some(mut prepared) = self.prepare_rows(sql, chosen, None)? else {
            return self.run_unchosen(session, text, parameters, out);
        };
        let result = self.core.run_prepared(session, &mut prepared, parameters, out);
        self.cache.put(&key, prepared);
        result
    }
}

/// Under which a statement is kept that is compiled for types that the client chose. No statement has a zero byte.
pub(super) fn key_of(sql: &str, chosen: Chosen<'_>) -> String {
    use std::fmt::Write;
    let mut key = String::with_capacity(sql.len() + 1 + 6 * chosen.len());
    key.push_str(sql);
    key.push('\0');
    for ty in chosen {
        let _ = write!(key, "{},", ty.map_or(0, SqlType::oid));
    }
    key
}
