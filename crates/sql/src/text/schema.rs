//! `SHOW EXPIRY RULES`, and texts without schemas.

use std::borrow::Cow;

use super::token::Tokens;
use crate::error::SqlError;

/// What `SHOW EXPIRY RULES` is.
const SHOWN: &str = "SELECT rule_name, table_name, condition, every, runs, rows, errors, last_error \
     FROM sqlcached_expiry_rules ORDER BY rule_name";

/// The query that `SHOW EXPIRY RULES` stands for, if that is what a text is.
pub(super) fn shown(sql: &str) -> Option<&'static str> {
    let mut tokens = Tokens::new(sql).filter(|token| !token.is_sign(";"));
    let words = ["SHOW", "EXPIRY", "RULES"];
    let all = words.iter().all(|word| tokens.next().is_some_and(|token| token.is(word)));
    (all && tokens.next().is_none()).then_some(SHOWN)
}

/// A text without schemas. `SHOW EXPIRY RULES` becomes the query that it stands for.
pub(crate) fn resolved(sql: &str) -> Result<Cow<'_, str>, SqlError> {
    match shown(sql) {
        Some(query) => Ok(Cow::Borrowed(query)),
        None => dialect::schemas::resolved(sql),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn showing_rules_is_a_query() {
        assert_eq!(shown(" show expiry RULES ;"), Some(SHOWN));
        assert_eq!(shown("SHOW EXPIRY RULES FOR t"), None);
    }
}
