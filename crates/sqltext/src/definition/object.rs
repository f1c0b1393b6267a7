//! Indexes, views, and what is said of objects by their names.

use super::reader::Reader;
use super::{
    Comment, Commented, CreateIndex, CreateView, Drop, Known, Name, ObjectKind, Term, Truncate, Upkeep,
};
use crate::error::{SqlError, state};
use crate::token::Kind;

/// Words that may stand before a name of what is kept up.
const NOISE: &[&str] = &[
    "TABLE",
    "INDEX",
    "DATABASE",
    "SCHEMA",
    "SYSTEM",
    "CONCURRENTLY",
    "VERBOSE",
    "FULL",
    "FREEZE",
    "ANALYZE",
];

impl Reader<'_, '_> {
    /// What stands behind `CREATE [UNIQUE] INDEX`.
    pub(super) fn create_index(&mut self, unique: bool) -> Result<CreateIndex, SqlError> {
        self.word("CONCURRENTLY");
        let if_not_exists = self.if_not_exists()?;
        let name = if self.at_word("ON") && !if_not_exists { None } else { Some(self.name()?) };
        self.expect_word("ON")?;
        self.word("ONLY");
        let table = self.object()?;
        let method = if self.word("USING") { Some(self.name()?) } else { None };
        let terms = self.listed(Self::term)?;
        let include = if self.word("INCLUDE") { self.listed(Self::name)? } else { Vec::new() };
        self.nulls_distinct()?;
        let settings = if self.word("WITH") { self.settings()? } else { Vec::new() };
        let condition = if self.word("WHERE") { Some(self.expression()?) } else { None };
        Ok(CreateIndex { unique, if_not_exists, name, table, method, terms, include, settings, condition })
    }

    fn refuse_settings(&mut self) -> Result<(), SqlError> {
        if self.at_word("WITH") && self.peek_at(1).is_some_and(|next| next.is_sign("(")) {
            return Err(SqlError::not_supported("WITH (...) on anything but a table"));
        }
        Ok(())
    }

    /// An expression with its order. An operator class says how values compare, which is so anyway.
    pub(super) fn term(&mut self) -> Result<Term, SqlError> {
        let expression = self.expression()?;
        if self.peek().is_some_and(|token| {
            matches!(token.kind, Kind::Word | Kind::Quoted) && !token.is_any(&["ASC", "DESC", "NULLS"])
        }) {
            self.operator_class()?;
        }
        let descending = self.any_word(&["ASC", "DESC"]) == Some("DESC");
        if self.word("NULLS") && self.any_word(&["FIRST", "LAST"]).is_none() {
            return Err(self.unexpected());
        }
        Ok(Term { expression, descending })
    }

    fn operator_class(&mut self) -> Result<(), SqlError> {
        let name = self.object()?;
        if !name.text.ends_with("_ops") {
            let token = self.at_place(name.place);
            return Err(token.map_or_else(|| self.unexpected(), |token| SqlError::syntax(self.sql, token)));
        }
        if self.at_sign("(") {
            self.settings()?;
        }
        Ok(())
    }

    /// What stands behind `CREATE VIEW`.
    pub(super) fn create_view(&mut self, replace: bool, temporary: bool) -> Result<CreateView, SqlError> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.new_object()?;
        let columns = self.names()?;
        self.refuse_settings()?;
        self.expect_word("AS")?;
        Ok(CreateView { replace, temporary, if_not_exists, name, columns, query: self.query()? })
    }

    /// What stands behind `DROP TABLE` and its like.
    pub(super) fn drop(&mut self, kind: ObjectKind) -> Result<Drop, SqlError> {
        if kind == ObjectKind::Index {
            self.word("CONCURRENTLY");
        }
        let if_exists = self.if_exists()?;
        let names = match kind {
            ObjectKind::Schema => self.list(Self::name)?,
            _ => self.list(|reader| reader.object_if_there(if_exists))?,
        };
        let cascade = self.any_word(&["CASCADE", "RESTRICT"]) == Some("CASCADE");
        Ok(Drop { kind, if_exists, names, cascade })
    }

    /// What stands behind `TRUNCATE`.
    pub(super) fn truncate(&mut self) -> Result<Truncate, SqlError> {
        // A table may be called "table" in quotes only, so the word is the noise word.
        self.word("TABLE");
        let names = self.list(|reader| {
            let only =
                reader.at_word("ONLY") && reader.peek_at(1).is_some_and(|next| next.kind != Kind::Sign);
            if only {
                reader.skip();
            }
            let name = reader.object()?;
            reader.sign("*");
            Ok(name)
        })?;
        let restart = self.words(&["RESTART", "IDENTITY"]);
        if !restart {
            self.words(&["CONTINUE", "IDENTITY"]);
        }
        self.any_word(&["CASCADE", "RESTRICT"]);
        Ok(Truncate { names, restart })
    }

    /// What stands behind `COMMENT`.
    pub(super) fn comment(&mut self) -> Result<Comment, SqlError> {
        self.expect_word("ON")?;
        let about = self.commented()?;
        self.expect_word("IS")?;
        let text = if self.word("NULL") { None } else { Some(self.text()?) };
        Ok(Comment { about, text })
    }

    fn commented(&mut self) -> Result<Commented, SqlError> {
        const KINDS: &[&str] = &[
            "TABLE",
            "INDEX",
            "VIEW",
            "MATERIALIZED",
            "COLUMN",
            "CONSTRAINT",
            "DATABASE",
            "SCHEMA",
            "EXTENSION",
            "TYPE",
            "SEQUENCE",
        ];
        let Some(kind) = self.any_word(KINDS) else {
            return match self.peek() {
                Some(word) if word.kind == Kind::Word => {
                    let what = format!("COMMENT ON {}", word.text.to_ascii_uppercase());
                    Err(SqlError::not_supported(what).at(self.sql, word.start))
                }
                _ => Err(self.unexpected()),
            };
        };
        Ok(match kind {
            "TABLE" => Commented::Object(ObjectKind::Table, self.object()?),
            "INDEX" => Commented::Object(ObjectKind::Index, self.object()?),
            "VIEW" => Commented::Object(ObjectKind::View, self.object()?),
            "MATERIALIZED" => {
                self.expect_word("VIEW")?;
                Commented::Object(ObjectKind::Materialized, self.object()?)
            }
            "COLUMN" => {
                let (table, column) = self.column_of_table()?;
                Commented::Column(table, column)
            }
            "CONSTRAINT" => {
                let name = self.name()?;
                self.expect_word("ON")?;
                Commented::Constraint(self.object()?, name)
            }
            "TYPE" => Commented::Object(ObjectKind::Enum, self.object()?),
            "SEQUENCE" => Commented::Object(ObjectKind::Sequence, self.object()?),
            _ => {
                self.name()?;
                Commented::Other
            }
        })
    }

    /// `[schema.]table.column`
    pub(super) fn column_of_table(&mut self) -> Result<(Name, Name), SqlError> {
        let mut parts = vec![self.name()?];
        while self.sign(".") {
            parts.push(self.name()?);
        }
        let column = parts.pop().ok_or_else(|| self.unexpected())?;
        let table = parts.pop().ok_or_else(|| self.unexpected())?;
        Ok((
            match parts.pop() {
                Some(schema) => self.named_in(&schema, table)?,
                None => self.found(table),
            },
            column,
        ))
    }

    /// What stands behind `CREATE EXTENSION` and `DROP EXTENSION`.
    pub(super) fn known(&mut self, drops: bool, place: usize) -> Result<Known, SqlError> {
        let conditional = if drops { self.if_exists()? } else { self.if_not_exists()? };
        let name = self.name()?;
        if drops {
            self.any_word(&["CASCADE", "RESTRICT"]);
        } else {
            self.word("WITH");
            while let Some(word) = self.any_word(&["SCHEMA", "VERSION", "CASCADE"]) {
                let quoted = self.peek().is_some_and(|token| token.kind == Kind::Text);
                match word {
                    "CASCADE" => {}
                    _ if quoted => self.skip(),
                    _ => drop(self.name()?),
                }
            }
        }
        Ok(Known { conditional, drops, name, place })
    }

    /// What stands behind `ANALYZE`, `REINDEX` or `VACUUM`.
    pub(super) fn upkeep(&mut self, tag: &'static str) -> Result<Upkeep, SqlError> {
        if self.sign("(") {
            while self.peek().is_some_and(|token| !token.is_sign(")")) {
                self.skip();
            }
            self.expect_sign(")")?;
        }
        while self.any_word(NOISE).is_some() {}
        let mut names = Vec::new();
        while self.peek().is_some_and(|token| matches!(token.kind, Kind::Word | Kind::Quoted)) {
            if self.at_word("INTO") {
                return Err(SqlError::new(state::FORBIDDEN, "VACUUM INTO would write a file"));
            }
            names.push(self.object()?);
            if self.at_sign("(") {
                self.names()?;
            }
            if !self.sign(",") && !self.at_word("INTO") {
                break;
            }
        }
        Ok(Upkeep { tag, names })
    }
}
