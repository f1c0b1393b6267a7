//! Which definition it is, by its first words. What there is not is answered with what to do instead, whatever
//! its grammar.

use super::grant::grants;
use super::reader::Reader;
use super::{ObjectKind, What};
use crate::error::{SqlError, state};

/// What `CREATE` and `DROP` may name, how it is called, and what does its work here.
const REFUSED: &[(&str, &str, &str)] = &[
    ("TRIGGER", "a trigger", "use generated columns for derived values and CHECK to refuse rows"),
    ("DATABASE", "a database of your own", "there is one database; any name connects to it"),
    ("AGGREGATE", "an aggregate of your own", "docs/functions.md lists the available functions"),
    ("DOMAIN", "a domain", "use a CHECK to limit the values of a column"),
    ("RULE", "a rule for writes", "CREATE EXPIRY RULE lets rows expire by a condition"),
    ("ROLE", "a role", "there is no authentication yet: every client may do everything"),
    ("USER", "a user", "there is no authentication yet: every client may do everything"),
];

/// Words that may stand before.
const BEFORE: &[&str] = &["OR", "REPLACE", "TEMP", "TEMPORARY", "CONSTRAINT", "TRUSTED"];

impl Reader<'_, '_> {
    pub(super) fn definition(&mut self) -> Result<What, SqlError> {
        while self.sign(";") {}
        match self.any_word(&[
            "CREATE", "DROP", "ALTER", "TRUNCATE", "COMMENT", "GRANT", "REVOKE", "ANALYZE", "REINDEX",
            "VACUUM", "REFRESH",
        ]) {
            Some("CREATE") => {
                self.refuse_absent()?;
                self.create()
            }
            Some("DROP") => {
                self.refuse_absent()?;
                self.drop_what()
            }
            Some("ALTER") => self.alter(),
            Some("TRUNCATE") => self.truncate().map(What::Truncate),
            Some("REFRESH") => self.refresh().map(What::Refresh),
            Some("COMMENT") => self.comment().map(What::Comment),
            Some(verb @ ("GRANT" | "REVOKE")) => grants(self, verb == "REVOKE").map(What::Grant),
            Some(tag) => self.upkeep(tag).map(What::Upkeep),
            None => Err(self.unexpected()),
        }
    }

    /// Refuses a definition of something that this server does not have.
    fn refuse_absent(&self) -> Result<(), SqlError> {
        if self.at_server() {
            return Ok(());
        }
        let mut at = 0;
        while self.peek_at(at).is_some_and(|token| token.is_any(BEFORE)) {
            at += 1;
        }
        let Some(kind) = self.peek_at(at) else { return Ok(()) };
        match REFUSED.iter().find(|(word, ..)| kind.is(word)) {
            Some((_, what, instead)) => {
                Err(SqlError::not_supported(what).with_hint(*instead).at(self.sql, kind.start))
            }
            None => Ok(()),
        }
    }

    fn create(&mut self) -> Result<What, SqlError> {
        if self.at_server() {
            return self.create_server();
        }
        let replace = self.words(&["OR", "REPLACE"]);
        let temporary = self.any_word(&["TEMP", "TEMPORARY"]).is_some();
        let unlogged = self.word("UNLOGGED");
        let unique = !unlogged && self.word("UNIQUE");
        let only: &[&'static str] = match (unique, unlogged) {
            (true, _) => &["INDEX"],
            (_, true) => &["TABLE"],
            _ => &[
                "TABLE",
                "INDEX",
                "VIEW",
                "MATERIALIZED",
                "TYPE",
                "VIRTUAL",
                "SCHEMA",
                "SEQUENCE",
                "EXTENSION",
                "EXPIRY",
                "FUNCTION",
                "PROCEDURE",
            ],
        };
        let place = self.place();
        let Some(kind) = self.any_word(only) else { return Err(self.unexpected()) };
        if replace && !["VIEW", "FUNCTION", "PROCEDURE"].contains(&kind) {
            return Err(SqlError::not_supported("OR REPLACE of other objects than views and functions"));
        }
        Ok(match kind {
            "TABLE" => What::CreateTable(Box::new(self.create_table(temporary)?)),
            "INDEX" => What::CreateIndex(Box::new(self.create_index(unique)?)),
            "VIEW" => What::CreateView(Box::new(self.create_view(replace, temporary)?)),
            "MATERIALIZED" => {
                self.expect_word("VIEW")?;
                What::CreateMaterialized(Box::new(self.create_materialized()?))
            }
            "TYPE" => What::CreateEnum(self.create_enum()?),
            "SCHEMA" => What::CreateSchema(self.create_schema()?),
            "SEQUENCE" => What::CreateSequence(Box::new(self.create_sequence(temporary)?)),
            "EXTENSION" => What::Known(self.known(false, place)?),
            "FUNCTION" | "PROCEDURE" => {
                What::CreateRoutine(Box::new(self.create_routine(replace, kind == "FUNCTION")?))
            }
            "EXPIRY" => {
                self.expect_word("RULE")?;
                What::CreateRule(self.create_rule()?)
            }
            _ => {
                self.expect_word("TABLE")?;
                self.if_not_exists()?;
                self.object()?;
                self.expect_word("USING")?;
                return Err(SqlError::new(
                    state::FORBIDDEN,
                    "CREATE VIRTUAL TABLE is not allowed: a table is made by CREATE TABLE",
                ));
            }
        })
    }

    fn drop_what(&mut self) -> Result<What, SqlError> {
        if self.at_server() {
            return self.drop_server();
        }
        let place = self.place();
        if let Some(word) = self.any_word(&["FUNCTION", "PROCEDURE", "ROUTINE"]) {
            return self.drop_routine(word).map(What::DropRoutine);
        }
        let kinds =
            &["TABLE", "INDEX", "VIEW", "MATERIALIZED", "TYPE", "SCHEMA", "SEQUENCE", "EXTENSION", "EXPIRY"];
        Ok(match self.any_word(kinds) {
            Some("TABLE") => What::Drop(self.drop(ObjectKind::Table)?),
            Some("INDEX") => What::Drop(self.drop(ObjectKind::Index)?),
            Some("VIEW") => What::Drop(self.drop(ObjectKind::View)?),
            Some("MATERIALIZED") => {
                self.expect_word("VIEW")?;
                What::Drop(self.drop(ObjectKind::Materialized)?)
            }
            Some("TYPE") => What::Drop(self.drop(ObjectKind::Enum)?),
            Some("SCHEMA") => What::Drop(self.drop(ObjectKind::Schema)?),
            Some("SEQUENCE") => What::Drop(self.drop(ObjectKind::Sequence)?),
            Some("EXTENSION") => What::Known(self.known(true, place)?),
            Some("EXPIRY") => {
                self.expect_word("RULE")?;
                What::DropRule(self.drop_rule()?)
            }
            _ => return Err(self.unexpected()),
        })
    }
}
