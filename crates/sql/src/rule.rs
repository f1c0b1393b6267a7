//! Expiry rules: `CREATE EXPIRY RULE`, `DROP EXPIRY RULE`, and the runs of those that are due.
//!
//! A run asks for the rows of which the condition is true, as a query that any client could send: it finds them by an
//! index where there is one, works for a moment and rests for longer, and holds nothing that others wait for. The store
//! lets those go that are still what the query saw.

use pgcatalog::system;
use sqltext::definition::{CreateRule, Definition, DropRule, Name};
use store::definition::{ExpiryRule, TableDef, parse_span};

use crate::core::Core;
use crate::define::{Defined, altered_by_name, materialized};
use crate::error::{SqlError, state};
use crate::text::token::quoted_name;

/// How long after one run the next begins where a rule does not say.
const EVERY_DEFAULT_MS: u64 = 10_000;

/// The query for the rows of a rule.
pub(crate) fn query(table: &TableDef, condition: &str) -> String {
    let (name, own) = (quoted_name(&table.name), quoted_name(table.own_name()));
    format!("SELECT _row FROM {name} AS {own} WHERE ({condition}\n)")
}

/// The condition of a rule, as the user wrote it.
pub(crate) fn condition(definition: &Definition<'_>, rule: &CreateRule) -> String {
    let tokens = definition.tokens.get(rule.condition.tokens.clone()).unwrap_or_default();
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return String::new() };
    definition.sql.get(first.start..last.end()).unwrap_or_default().to_owned()
}

/// How long after one run the next begins.
fn every_ms(definition: &Definition<'_>, every: Option<&Name>) -> Result<u64, SqlError> {
    let Some(Name { text, place, .. }) = every else { return Ok(EVERY_DEFAULT_MS) };
    let error = |message: String| SqlError::new(state::BAD_PARAMETER, message).at(definition.sql, *place);
    let parsed = parse_span(text).map_err(|reason| error(format!("EVERY '{text}': {reason}")))?;
    parsed.ok_or_else(|| error("EVERY needs a time above zero".to_owned()))
}

/// Makes a rule whose condition was checked.
pub(crate) fn create(
    core: &Core,
    definition: &Definition<'_>,
    wanted: &CreateRule,
) -> Result<Defined, SqlError> {
    const TAG: &str = "CREATE EXPIRY RULE";
    system::refuse_change(&wanted.table.text)?;
    core.catalog.table(&wanted.table.text).map_or(Ok(()), |table| materialized::refuse(table))?;
    let every_ms = every_ms(definition, wanted.every.as_ref())?;
    let name = wanted.name.text.clone();
    let rule = ExpiryRule { name, condition: condition(definition, wanted), every_ms };
    let undo = altered_by_name(&core.store, &wanted.table.text);
    match core.store.create_rule(&wanted.table.text, rule) {
        Err(error) if error.state == state::DUPLICATE_OBJECT && wanted.if_not_exists => {
            Ok(Defined::present(TAG, &wanted.name.text))
        }
        result => Ok(result.map(|()| Defined { undo: undo.into_iter().collect(), ..TAG.into() })?),
    }
}

/// `DROP EXPIRY RULE`
pub(crate) fn drop(core: &Core, dropped: &DropRule) -> Result<Defined, SqlError> {
    const TAG: &str = "DROP EXPIRY RULE";
    let catalog = core.store.catalog();
    let owner = catalog.rule(&dropped.name.text).map(|(table, _)| table.name());
    let undo = owner.and_then(|table| altered_by_name(&core.store, table));
    match core.store.drop_rule(&dropped.name.text) {
        Err(error) if error.state == state::UNKNOWN_OBJECT && dropped.if_exists => {
            Ok(Defined::missing(TAG, "expiry rule", &dropped.name.text))
        }
        result => Ok(result.map(|()| Defined { undo: undo.into_iter().collect(), ..TAG.into() })?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqltext::definition::{What, read};

    fn rule(sql: &str) -> Result<(String, String, String, u64), SqlError> {
        let definition = read(sql, sqltext::token::tokens(sql), None)?;
        let What::CreateRule(rule) = &definition.what else { panic!("{sql}") };
        let every = every_ms(&definition, rule.every.as_ref())?;
        Ok((rule.table.text.clone(), rule.name.text.clone(), condition(&definition, rule), every))
    }

    #[test]
    fn rules_are_read() {
        let created = |sql: &str| rule(sql).unwrap();
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
            assert_eq!(rule(sql).unwrap_err().state, state, "{sql}");
        }
    }
}
