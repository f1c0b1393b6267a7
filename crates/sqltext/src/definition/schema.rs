//! Schemas: `CREATE SCHEMA` and `ALTER SCHEMA`.

use super::reader::Reader;
use super::{CreateSchema, Name, What};
use crate::error::SqlError;

impl Reader<'_, '_> {
    /// What stands behind `CREATE SCHEMA`.
    pub(super) fn create_schema(&mut self) -> Result<CreateSchema, SqlError> {
        let if_not_exists = self.if_not_exists()?;
        let name = if self.at_word("AUTHORIZATION") { None } else { Some(self.name()?) };
        let role = if self.word("AUTHORIZATION") { self.role_name()? } else { None };
        if self.at_any(&["CREATE", "GRANT"]) {
            return Err(SqlError::not_supported("a definition within CREATE SCHEMA")
                .with_hint("send it as a statement of its own")
                .at(self.sql, self.place()));
        }
        Ok(CreateSchema { if_not_exists, name, role })
    }

    /// What stands behind `ALTER SCHEMA`.
    pub(super) fn alter_schema(&mut self) -> Result<What, SqlError> {
        self.name()?;
        self.owner_to("ALTER SCHEMA ... RENAME TO")?;
        Ok(What::Nothing("ALTER SCHEMA"))
    }

    /// `OWNER TO role`, which changes nothing: `otherwise` is what is refused where something else stands.
    fn owner_to(&mut self, otherwise: &str) -> Result<(), SqlError> {
        let place = self.place();
        if !self.words(&["OWNER", "TO"]) {
            return Err(SqlError::not_supported(otherwise).at(self.sql, place));
        }
        self.role_name().map(drop)
    }

    /// A schema's name as the store has it; none is `public`.
    pub(super) fn schema_name(&mut self) -> Result<Option<Name>, SqlError> {
        let schema = self.name()?;
        // Any name of it will do to ask.
        let probe = Name { text: "x".to_owned(), namespace: None, place: schema.place };
        let own = self.named_in(&schema, probe)?.namespace;
        Ok(own.map(|text| Name { text, ..schema }))
    }
}
