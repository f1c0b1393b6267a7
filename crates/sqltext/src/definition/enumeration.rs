//! Enum types: `CREATE TYPE ... AS ENUM` and `ALTER TYPE`.

use super::reader::Reader;
use super::{AlterEnum, CreateEnum, EnumChange};
use crate::error::SqlError;

impl Reader<'_, '_> {
    /// What stands behind `CREATE TYPE`.
    pub(super) fn create_enum(&mut self) -> Result<CreateEnum, SqlError> {
        let name = self.new_object()?;
        let place = self.place();
        if !self.words(&["AS", "ENUM"]) {
            return Err(SqlError::not_supported("a type other than an enum")
                .with_hint("use a CHECK to limit the values of a column, or JSONB for a record")
                .at(self.sql, place));
        }
        self.expect_sign("(")?;
        let labels = if self.at_sign(")") { Vec::new() } else { self.list(Self::text)? };
        self.expect_sign(")")?;
        Ok(CreateEnum { name, labels })
    }

    /// What stands behind `ALTER TYPE`.
    pub(super) fn alter_enum(&mut self) -> Result<AlterEnum, SqlError> {
        let name = self.object()?;
        let place = self.place();
        let change = if self.words(&["ADD", "VALUE"]) {
            self.added_label()?
        } else if self.words(&["RENAME", "VALUE"]) {
            let from = self.text()?;
            self.expect_word("TO")?;
            EnumChange::RenameValue(from, self.text()?)
        } else if self.words(&["RENAME", "TO"]) {
            EnumChange::Rename(self.name()?)
        } else if self.words(&["OWNER", "TO"]) {
            self.role_name()?;
            EnumChange::Nothing
        } else {
            return Err(SqlError::not_supported("this change of a type")
                .with_hint("ADD VALUE, RENAME VALUE and RENAME TO are")
                .at(self.sql, place));
        };
        Ok(AlterEnum { name, change })
    }

    fn added_label(&mut self) -> Result<EnumChange, SqlError> {
        let if_not_exists = self.if_not_exists()?;
        let label = self.text()?;
        let beside = match self.any_word(&["BEFORE", "AFTER"]) {
            Some(word) => Some((self.text()?, word == "AFTER")),
            None => None,
        };
        Ok(EnumChange::Add { if_not_exists, label, beside })
    }
}
