//! Expiry rules: `CREATE EXPIRY RULE`, `DROP EXPIRY RULE`, `SHOW EXPIRY RULES`, and the runs of those that are due.
//!
//! A run asks for the rows of which the condition is true, as a query that any client could send: it finds them by an
//! index where there is one, works for a moment and rests for longer, and holds nothing that others wait for. The store
//! lets those go that are still what the query saw.

use pgcatalog::system;
use store::definition::{ExpiryRule, parse_span};

use crate::core::Core;
use crate::define::Defined;
use crate::error::{SqlError, state};
use crate::text::storage::Reader;
use crate::text::token::{Kind, Token, Tokens, quoted_name};

/// How long after one run the next begins where a rule does not say.
const EVERY_DEFAULT_MS: u64 = 10_000;
/// A change of the rules, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RuleChange {
    /// `CREATE EXPIRY RULE [IF NOT EXISTS] name ON table WHEN condition [EVERY 'span']`
    Create { if_not_exists: bool, table: String, rule: ExpiryRule },
    /// `DROP EXPIRY RULE [IF EXISTS] name`
    Drop { if_exists: bool, name: String },
}

/// Reads a change of the rules.
pub(crate) fn read(sql: &str) -> Result<RuleChange, SqlError> {
    let tokens: Vec<Token<'_>> = Tokens::new(sql).collect();
    let mut reader = Reader { sql, tokens: &tokens, at: 0 };
    reader.skip_semicolons();
    let creates = reader.keyword("CREATE").is_ok();
    if !creates {
        reader.keyword("DROP")?;
    }
    reader.keyword("EXPIRY")?;
    reader.keyword("RULE")?;
    let conditional = reader.keyword("IF").is_ok();
    if conditional && creates {
        reader.keyword("NOT")?;
    }
    if conditional {
        reader.keyword("EXISTS")?;
    }
    let name = reader.name()?;
    if !creates {
        reader.end()?;
        return Ok(RuleChange::Drop { if_exists: conditional, name });
    }
    reader.keyword("ON")?;
    let table = reader.table_name()?;
    reader.keyword("WHEN")?;
    let (condition, every_ms) = condition_and_span(&mut reader)?;
    let rule = ExpiryRule { name, condition, every_ms };
    Ok(RuleChange::Create { if_not_exists: conditional, table, rule })
}

/// The condition reaches to `EVERY 'span'` or to the end.
fn condition_and_span(reader: &mut Reader<'_, '_>) -> Result<(String, u64), SqlError> {
    let sql = reader.sql;
    let mut tokens = reader.tokens.get(reader.at..).unwrap_or_default();
    while let [rest @ .., last] = tokens
        && last.is_sign(";")
    {
        tokens = rest;
    }
    let mut every_ms = EVERY_DEFAULT_MS;
    if let [rest @ .., word, span] = tokens
        && word.is("EVERY")
        && matches!(span.kind, Kind::Text | Kind::Number)
    {
        let text = crate::text::token::unquoted(span.text);
        let parsed = parse_span(&text).map_err(|reason| {
            SqlError::new(state::BAD_PARAMETER, format!("EVERY '{text}': {reason}")).at(sql, span.start)
        })?;
        every_ms = parsed.ok_or_else(|| {
            SqlError::new(state::BAD_PARAMETER, "EVERY needs a time above zero").at(sql, span.start)
        })?;
        tokens = rest;
    }
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
        reader.at = reader.tokens.len();
        return Err(reader.unexpected());
    };
    check_condition(sql, tokens)?;
    Ok((sql.get(first.start..last.end()).unwrap_or_default().to_owned(), every_ms))
}

/// A rule judges a row by what is in it, and is one expression.
fn check_condition(sql: &str, tokens: &[Token<'_>]) -> Result<(), SqlError> {
    let mut depth = 0_usize;
    for token in tokens {
        match token.kind {
            Kind::Sign if token.is_sign("(") => depth += 1,
            Kind::Sign if token.is_sign(")") && depth == 0 => {
                return Err(SqlError::syntax(sql, token));
            }
            Kind::Sign if token.is_sign(")") => depth -= 1,
            Kind::Sign if token.is_sign(";") => return Err(SqlError::syntax(sql, token)),
            Kind::Word if token.is("SELECT") => {
                return Err(SqlError::not_supported("a subquery in an expiry rule")
                    .with_hint(
                        "a rule can use the columns of the row itself, also hidden ones such as _age and _hits",
                    )
                    .at(sql, token.start));
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err(
            SqlError::new(state::SYNTAX, "a parenthesis of the condition is not closed").at(sql, sql.len())
        );
    }
    Ok(())
}

/// The query for the rows of a rule.
pub(crate) fn query(table: &str, condition: &str) -> String {
    format!("SELECT _row FROM {} WHERE ({condition}\n)", quoted_name(table))
}

/// Carries out a change that was checked.
pub(crate) fn apply(core: &Core, change: RuleChange) -> Result<Defined, SqlError> {
    match change {
        RuleChange::Create { if_not_exists, table, rule } => {
            const TAG: &str = "CREATE EXPIRY RULE";
            system::refuse_change(&table)?;
            let name = rule.name.clone();
            match core.store.create_rule(&table, rule) {
                Err(error) if error.state == state::DUPLICATE_OBJECT && if_not_exists => {
                    Ok(Defined::present(TAG, &name))
                }
                result => Ok(result.map(|()| TAG.into())?),
            }
        }
        RuleChange::Drop { if_exists, name } => {
            const TAG: &str = "DROP EXPIRY RULE";
            match core.store.drop_rule(&name) {
                Err(error) if error.state == state::UNKNOWN_OBJECT && if_exists => {
                    Ok(Defined::missing(TAG, "expiry rule", &name))
                }
                result => Ok(result.map(|()| TAG.into())?),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read() {
        let created = |sql: &str| match read(sql) {
            Ok(RuleChange::Create { table, rule, .. }) => (table, rule.name, rule.condition, rule.every_ms),
            other => panic!("{sql}: {other:?}"),
        };
        let row = |table: &str, name: &str, condition: &str, every| {
            (table.to_owned(), name.to_owned(), condition.to_owned(), every)
        };
        for (sql, expected) in [
            ("CREATE EXPIRY RULE r ON t WHEN a > 1", row("t", "r", "a > 1", 10_000)),
            (
                "create expiry rule if not exists \"R r\" on main.t when _hits = 0 AND (_age > 60) every '5 min';",
                row("t", "R r", "_hits = 0 AND (_age > 60)", 300_000),
            ),
            ("CREATE EXPIRY RULE r ON t WHEN every = 'x' EVERY 2 -- so", row("t", "r", "every = 'x'", 2_000)),
        ] {
            assert_eq!(created(sql), expected);
        }
        assert_eq!(
            read("DROP EXPIRY RULE IF EXISTS r").unwrap(),
            RuleChange::Drop { if_exists: true, name: "r".to_owned() }
        );
    }

    #[test]
    fn faulty_rules_are_refused() {
        for (sql, state) in [
            ("CREATE EXPIRY RULE r ON t", "42601"),
            ("CREATE EXPIRY RULE r ON t WHEN", "42601"),
            ("CREATE EXPIRY RULE r ON t WHEN EVERY '10 s'", "42601"),
            ("CREATE EXPIRY RULE r ON t WHEN a) OR (b", "42601"),
            ("CREATE EXPIRY RULE r ON t WHEN (a", "42601"),
            ("CREATE EXPIRY RULE r ON t WHEN a; DELETE FROM t", "42601"),
            ("CREATE EXPIRY RULE r ON t WHEN a IN (SELECT b FROM u)", "0A000"),
            ("CREATE EXPIRY RULE r ON t WHEN a EVERY 'never'", "22023"),
            ("CREATE EXPIRY RULE r ON t WHEN a EVERY '0 s'", "22023"),
            ("DROP EXPIRY RULE r CASCADE", "42601"),
        ] {
            assert_eq!(read(sql).unwrap_err().state, state, "{sql}");
        }
    }
}
