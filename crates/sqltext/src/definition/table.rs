//! `CREATE TABLE`: its elements and options.

use super::reader::Reader;
use super::{Body, Constraint, ConstraintKind, CreateTable, Element, Including, Like, Setting, Term};
use crate::error::SqlError;

/// Words that begin a constraint.
const CONSTRAINTS: &[&str] = &["CONSTRAINT", "CHECK", "UNIQUE", "PRIMARY", "FOREIGN", "EXCLUDE"];

impl Reader<'_, '_> {
    /// What stands behind `CREATE TABLE`.
    pub(super) fn create_table(&mut self, temporary: bool) -> Result<CreateTable, SqlError> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.new_object()?;
        let mut settings = self.table_settings()?;
        let body = if self.word("AS") {
            Body::Query(self.query()?)
        } else {
            self.expect_sign("(")?;
            // PostgreSQL takes a table without columns; the definition's own check refuses it.
            let elements = if self.at_sign(")") { Vec::new() } else { self.list(Self::element)? };
            self.expect_sign(")")?;
            Body::Elements(elements)
        };
        if settings.is_empty() {
            settings = self.table_settings()?;
        }
        Ok(CreateTable { temporary, if_not_exists, name, body, settings })
    }

    /// `WITH (...)`, and SQLite's words for what is so anyway.
    fn table_settings(&mut self) -> Result<Vec<Setting>, SqlError> {
        let mut settings = Vec::new();
        loop {
            if self.at_word("WITH") && self.peek_at(1).is_some_and(|next| next.is_sign("(")) {
                self.skip();
                settings.extend(self.settings()?);
            } else if self.words(&["WITHOUT", "ROWID"]) || self.word("STRICT") {
                self.sign(",");
            } else {
                return Ok(settings);
            }
        }
    }

    fn element(&mut self) -> Result<Element, SqlError> {
        let word_next = self.peek_at(1).is_some_and(|next| !next.is_sign(",") && !next.is_sign(")"));
        if self.at_word("LIKE") && word_next {
            self.skip();
            return self.like().map(Element::Like);
        }
        if self.at_constraint() {
            self.constraint().map(Element::Constraint)
        } else {
            self.column().map(Element::Column)
        }
    }

    /// Whether a constraint is next. A column may be called `exclude`.
    pub(super) fn at_constraint(&self) -> bool {
        let excludes = || self.peek_at(1).is_some_and(|next| next.is_sign("(") || next.is("USING"));
        self.at_any(CONSTRAINTS) && (!self.at_word("EXCLUDE") || excludes())
    }

    fn like(&mut self) -> Result<Like, SqlError> {
        let table = self.object()?;
        let mut including = Including::default();
        while let Some(word) = self.any_word(&["INCLUDING", "EXCLUDING"]) {
            self.included(&mut including, word == "INCLUDING")?;
        }
        Ok(Like { table, including })
    }

    fn included(&mut self, including: &mut Including, copied: bool) -> Result<(), SqlError> {
        const WORDS: &[&str] = &[
            "ALL",
            "COMMENTS",
            "CONSTRAINTS",
            "DEFAULTS",
            "GENERATED",
            "IDENTITY",
            "INDEXES",
            "STORAGE",
            "COMPRESSION",
            "STATISTICS",
        ];
        let part = match self.any_word(WORDS) {
            Some("COMMENTS") => &mut including.comments,
            Some("CONSTRAINTS") => &mut including.constraints,
            Some("DEFAULTS") => &mut including.defaults,
            Some("GENERATED") => &mut including.generated,
            Some("IDENTITY") => &mut including.identity,
            Some("INDEXES") => &mut including.indexes,
            Some("STORAGE") => &mut including.storage,
            Some("ALL") => {
                *including = Including {
                    comments: copied,
                    constraints: copied,
                    defaults: copied,
                    generated: copied,
                    identity: copied,
                    indexes: copied,
                    storage: copied,
                };
                return Ok(());
            }
            Some(_) => return Ok(()),
            None => return Err(self.unexpected()),
        };
        *part = copied;
        Ok(())
    }

    pub(super) fn constraint(&mut self) -> Result<Constraint, SqlError> {
        let name = if self.word("CONSTRAINT") { Some(self.name()?.text) } else { None };
        let mut kind = match self.any_word(&["PRIMARY", "UNIQUE", "CHECK", "FOREIGN"]) {
            Some("PRIMARY") => {
                self.expect_word("KEY")?;
                ConstraintKind::PrimaryKey(self.key()?)
            }
            Some("UNIQUE") => {
                self.nulls_distinct()?;
                ConstraintKind::Unique(self.key()?)
            }
            Some("CHECK") => ConstraintKind::Check(self.parenthesized()?),
            Some("FOREIGN") => {
                self.expect_word("KEY")?;
                let columns = self.listed(Self::name)?;
                self.expect_word("REFERENCES")?;
                ConstraintKind::ForeignKey(columns, self.reference()?)
            }
            _ if self.at_word("EXCLUDE") => {
                return Err(SqlError::not_supported("EXCLUDE").at(self.sql, self.place()));
            }
            _ => return Err(self.unexpected()),
        };
        let mut deferrable = match &mut kind {
            ConstraintKind::ForeignKey(_, reference) => reference.deferrable,
            _ => false,
        };
        self.conflict_clause()?;
        loop {
            if self.deferrable()? {
                deferrable = true;
            } else if !self.words(&["NO", "INHERIT"]) && !self.words(&["NOT", "VALID"]) {
                return Ok(Constraint { name, kind, deferrable });
            }
        }
    }

    /// The terms of a key, with what may stand behind them.
    fn key(&mut self) -> Result<Vec<Term>, SqlError> {
        let terms = self.listed(Self::term)?;
        if self.word("INCLUDE") {
            self.listed(Self::name)?;
        }
        if self.at_word("WITH") && self.peek_at(1).is_some_and(|next| next.is_sign("(")) {
            self.skip();
            self.settings()?;
        }
        Ok(terms)
    }
}
