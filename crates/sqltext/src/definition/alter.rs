//! `ALTER TABLE` and `ALTER INDEX`.

use super::reader::Reader;
use super::role::role;
use super::{AlterTable, Change, ColumnChange, ObjectKind, Owner, RenameIndex, What};
use crate::error::SqlError;

impl Reader<'_, '_> {
    /// What stands behind `ALTER`.
    pub(super) fn alter(&mut self) -> Result<What, SqlError> {
        if self.at_server() {
            return self.alter_server();
        }
        if self.word("INDEX") {
            return self.rename_index().map(What::RenameIndex);
        }
        if self.word("TYPE") {
            return self.alter_enum().map(What::AlterEnum);
        }
        if self.word("SCHEMA") {
            return self.alter_schema();
        }
        if self.word("SEQUENCE") {
            return self.alter_sequence();
        }
        if let Some(word) = self.any_word(&["FUNCTION", "PROCEDURE", "ROUTINE"]) {
            return self.alter_routine(word).map(What::AlterRoutine);
        }
        let materialized = self.words(&["MATERIALIZED", "VIEW"]);
        let kind = if materialized { Some("MATERIALIZED") } else { self.any_word(&["TABLE", "VIEW"]) };
        let Some(kind) = kind else {
            return Err(SqlError::not_supported("ALTER of other objects than tables, indexes and types"));
        };
        let if_exists = self.if_exists()?;
        self.word("ONLY");
        let table = self.object_if_there(if_exists)?;
        self.sign("*");
        let view = kind == "VIEW";
        if self.words(&["OWNER", "TO"]) {
            let kind = match kind {
                "VIEW" => ObjectKind::View,
                "MATERIALIZED" => ObjectKind::Materialized,
                _ => ObjectKind::Table,
            };
            return Ok(What::Owner(Owner { if_exists, name: table, owner: role(self)?, kind }));
        }
        let changes = self.list(Self::change)?;
        Ok(What::AlterTable(AlterTable { materialized, view, if_exists, table, changes }))
    }

    fn rename_index(&mut self) -> Result<RenameIndex, SqlError> {
        let if_exists = self.if_exists()?;
        let name = self.object()?;
        self.expect_word("RENAME")?;
        self.expect_word("TO")?;
        Ok(RenameIndex { if_exists, name, to: self.name()? })
    }

    fn change(&mut self) -> Result<Change, SqlError> {
        match self.any_word(&["ADD", "DROP", "RENAME", "ALTER", "SET", "RESET"]) {
            Some("ADD") => self.add(),
            Some("DROP") => self.drop_part(),
            Some("RENAME") => self.rename(),
            Some("ALTER") => {
                self.word("COLUMN");
                let name = self.name()?;
                Ok(Change::Column(name, self.column_change()?))
            }
            Some("SET") if self.word("SCHEMA") => self.schema_name().map(Change::SetSchema),
            Some("SET") => self.settings().map(Change::Set),
            Some("RESET") => self.settings().map(Change::Reset),
            _ => match self.peek() {
                Some(word) => {
                    let what = format!("ALTER TABLE ... {}", word.text.to_ascii_uppercase());
                    Err(SqlError::not_supported(what)
                        .with_hint("ADD, DROP, RENAME, ALTER COLUMN, SET (...) and RESET (...) are")
                        .at(self.sql, word.start))
                }
                None => Err(self.unexpected()),
            },
        }
    }

    fn add(&mut self) -> Result<Change, SqlError> {
        if self.at_constraint() {
            return self.constraint().map(|constraint| Change::AddConstraint(Box::new(constraint)));
        }
        self.word("COLUMN");
        let if_not_exists = self.if_not_exists()?;
        Ok(Change::AddColumn { if_not_exists, column: Box::new(self.column()?) })
    }

    fn drop_part(&mut self) -> Result<Change, SqlError> {
        let constraint = self.word("CONSTRAINT");
        if !constraint {
            self.word("COLUMN");
        }
        let if_exists = self.if_exists()?;
        let name = self.name()?;
        let cascade = self.any_word(&["CASCADE", "RESTRICT"]) == Some("CASCADE");
        Ok(if constraint {
            Change::DropConstraint { if_exists, name }
        } else {
            Change::DropColumn { if_exists, name, cascade }
        })
    }

    fn rename(&mut self) -> Result<Change, SqlError> {
        if self.word("TO") {
            return self.name().map(Change::RenameTable);
        }
        let constraint = self.word("CONSTRAINT");
        if !constraint {
            self.word("COLUMN");
        }
        let from = self.name()?;
        self.expect_word("TO")?;
        let to = self.name()?;
        Ok(if constraint { Change::RenameConstraint(from, to) } else { Change::RenameColumn(from, to) })
    }

    /// What stands behind `ALTER COLUMN name`.
    fn column_change(&mut self) -> Result<ColumnChange, SqlError> {
        if self.word("TYPE") || self.words(&["SET", "DATA", "TYPE"]) {
            let declared = self.declared()?;
            let collation = if self.word("COLLATE") { Some(self.collation()?) } else { None };
            let using = if self.word("USING") { Some(self.expression()?) } else { None };
            return Ok(ColumnChange::Type { declared, collation, using });
        }
        if self.words(&["ADD", "GENERATED"]) {
            let always = self.generated_always()?;
            self.expect_word("AS")?;
            self.expect_word("IDENTITY")?;
            return Ok(ColumnChange::AddIdentity { always, start: self.identity_options()? });
        }
        if self.words(&["SET", "GENERATED"]) {
            return self.generated_always().map(ColumnChange::SetIdentity);
        }
        if self.words(&["DROP", "IDENTITY"]) {
            return self.if_exists().map(ColumnChange::DropIdentity);
        }
        if self.at_word("RESTART") {
            let options = self.sequence_options()?;
            return Ok(ColumnChange::Restart(options.restart.flatten()));
        }
        let set = self.word("SET");
        if !set {
            self.expect_word("DROP")?;
        }
        if self.word("DEFAULT") {
            return if set {
                self.default_value().map(ColumnChange::SetDefault)
            } else {
                Ok(ColumnChange::DropDefault)
            };
        }
        self.expect_word("NOT")?;
        self.expect_word("NULL")?;
        Ok(ColumnChange::NotNull(set))
    }
}
