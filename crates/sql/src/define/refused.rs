//! Definitions of what there is not, told by their first words: `CREATE SEQUENCE`, `CREATE TRIGGER` and their like are
//! answered with what to do instead, whatever their grammar.

use crate::error::SqlError;
use crate::text::token::{Token, Tokens};

/// What `CREATE` and `DROP` may name, how it is called, and what does its work here.
const REFUSED: &[(&str, &str, &str)] = &[
    ("TRIGGER", "a trigger", "use generated columns for derived values and CHECK to refuse rows"),
    (
        "SEQUENCE",
        "a sequence",
        "use INTEGER PRIMARY KEY or GENERATED AS IDENTITY to number rows; INSERT ... RETURNING returns the number",
    ),
    ("SCHEMA", "a schema of your own", "all tables are in \"public\""),
    ("DATABASE", "a database of your own", "there is one database; any name connects to it"),
    ("EXTENSION", "an extension", "docs/functions.md lists the available functions"),
    ("FUNCTION", "a function of your own", "docs/functions.md lists the available functions"),
    ("PROCEDURE", "a procedure", "send its statements, between BEGIN and COMMIT if they belong together"),
    ("AGGREGATE", "an aggregate of your own", "docs/functions.md lists the available functions"),
    ("TYPE", "a type of your own", "use a CHECK to limit the values of a column"),
    ("DOMAIN", "a domain", "use a CHECK to limit the values of a column"),
    ("MATERIALIZED", "a materialized view", "CREATE TABLE ... WITH (ttl = '5 min') AS keeps a query's rows"),
    ("RULE", "a rule for writes", "CREATE EXPIRY RULE lets rows expire by a condition"),
    ("ROLE", "a role", "there is no authentication yet: every client may do everything"),
    ("USER", "a user", "there is no authentication yet: every client may do everything"),
];

/// Words that may stand before.
const BEFORE: &[&str] = &["OR", "REPLACE", "TEMP", "TEMPORARY", "CONSTRAINT", "TRUSTED"];

/// Refuses a definition of something that this server does not have.
pub(super) fn check(sql: &str) -> Result<(), SqlError> {
    let mut tokens = Tokens::new(sql).skip_while(|token| token.is_sign(";")).skip(1);
    let is_before = |token: &Token<'_>| BEFORE.iter().any(|word| token.is(word));
    let Some(kind) = tokens.find(|token| !is_before(token)) else { return Ok(()) };
    match REFUSED.iter().find(|(word, ..)| kind.is(word)) {
        Some((_, what, instead)) => {
            Err(SqlError::not_supported(what).with_hint(*instead).at(sql, kind.start))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_by_their_words() {
        for sql in [
            "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1",
            "create or replace trigger t before update on a for each row execute function f()",
            "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON a",
            "CREATE TEMP SEQUENCE s",
            "DROP FUNCTION f(int)",
            "CREATE MATERIALIZED VIEW v AS SELECT 1",
        ] {
            let error = check(sql).unwrap_err();
            assert_eq!(error.state, "0A000", "{sql}");
            assert!(error.hint.is_some(), "{sql}");
        }
        for sql in ["CREATE TABLE trigger (a)", "CREATE UNIQUE INDEX i ON t (a)", "DROP VIEW v", "CREATE"] {
            assert_eq!(check(sql), Ok(()), "{sql}");
        }
    }
}
