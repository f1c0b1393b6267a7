//! `CREATE MATERIALIZED VIEW` and `REFRESH MATERIALIZED VIEW`.

use super::reader::Reader;
use super::{Name, Part, Read, Setting};
use crate::error::{SqlError, state};

/// `CREATE MATERIALIZED VIEW`
#[derive(Debug)]
pub struct CreateMaterialized {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The name.
    pub name: Name,
    /// The names of its columns.
    pub columns: Vec<Name>,
    /// `WITH (...)`
    pub settings: Vec<Setting>,
    /// What its rows are.
    pub query: Part<Read>,
    /// `WITH DATA`
    pub populated: bool,
}

/// `REFRESH MATERIALIZED VIEW`
#[derive(Debug)]
pub struct Refresh {
    /// `CONCURRENTLY`
    pub concurrently: bool,
    /// The view.
    pub name: Name,
    /// `WITH DATA`
    pub populated: bool,
}

impl Reader<'_, '_> {
    /// What stands behind `CREATE MATERIALIZED VIEW`.
    pub(super) fn create_materialized(&mut self) -> Result<CreateMaterialized, SqlError> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.new_object()?;
        let columns = self.names()?;
        if self.word("USING") {
            self.name()?;
        }
        let settings = if self.word("WITH") { self.settings()? } else { Vec::new() };
        if self.word("TABLESPACE") {
            self.name()?;
        }
        self.expect_word("AS")?;
        let query = self.query_with_data()?;
        let populated = self.with_data()?;
        Ok(CreateMaterialized { if_not_exists, name, columns, settings, query, populated })
    }

    /// What stands behind `REFRESH`.
    pub(super) fn refresh(&mut self) -> Result<Refresh, SqlError> {
        self.expect_word("MATERIALIZED")?;
        self.expect_word("VIEW")?;
        let concurrently = self.word("CONCURRENTLY");
        let name: Name = self.object()?;
        let populated = self.with_data()?;
        if concurrently && !populated {
            let message = "REFRESH options CONCURRENTLY and WITH NO DATA cannot be used together";
            return Err(SqlError::new(state::SYNTAX, message));
        }
        Ok(Refresh { concurrently, name, populated })
    }

    /// `WITH DATA`, which is so anyway, or `WITH NO DATA`.
    fn with_data(&mut self) -> Result<bool, SqlError> {
        if !self.word("WITH") {
            return Ok(true);
        }
        let populated = !self.word("NO");
        self.expect_word("DATA")?;
        Ok(populated)
    }
}
