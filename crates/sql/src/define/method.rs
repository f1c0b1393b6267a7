//! The method of an index, `CREATE INDEX ... USING method`: every index here is an ordered one.

use crate::error::{SqlError, state};
use crate::text::token::{Tokens, unquoted};

/// Methods of which an ordered index serves all that they serve.
const SERVED: &[&str] = &["btree", "hash"];
/// Other methods of PostgreSQL's: an ordered index takes their place, and serves comparisons of whole values alone.
const OTHER: &[&str] = &["gin", "gist", "spgist", "brin"];

/// What the user is told of the index.
const HINT: &str = "operators such as @> read every row: EXPLAIN shows it. Keep what is searched for in a table of its own, \
                    one row for each element, with an index";

/// The method that a `CREATE INDEX` names and that is not there; an error for one that PostgreSQL has not.
pub(crate) fn of_index(sql: &str) -> Result<Option<Method>, SqlError> {
    let tokens: Vec<_> = Tokens::new(sql).take_while(|token| !token.is_sign("(")).collect();
    let is_index = tokens.iter().take(3).any(|token| token.is("INDEX"));
    let [.., using, method] = &tokens[..] else { return Ok(None) };
    if !is_index || !tokens[0].is("CREATE") || !using.is("USING") {
        return Ok(None);
    }
    let name = unquoted(method.text).to_ascii_lowercase();
    if SERVED.contains(&name.as_str()) {
        return Ok(None);
    }
    if OTHER.contains(&name.as_str()) {
        return Ok(Some(Method(name)));
    }
    let message = format!("access method \"{name}\" does not exist");
    Err(SqlError::new(state::UNKNOWN_OBJECT, message).at(sql, method.start))
}

/// A method in whose place an ordered index was made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Method(String);

impl Method {
    /// What is said of it: the message and the hint.
    pub(crate) fn notice(&self) -> (String, &'static str) {
        (format!("there are no {} indexes; this is an ordered index of the whole value", self.0), HINT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_that_are_not_there_are_known() {
        let named = |sql: &str| {
            of_index(sql).map(|method| method.map(|method| method.0)).map_err(|error| error.state)
        };
        for (sql, method) in [
            ("CREATE INDEX i ON t USING gin (tags)", Ok(Some("gin".to_owned()))),
            ("create unique index i on t using \"brin\"(a)", Ok(Some("brin".to_owned()))),
            ("CREATE INDEX IF NOT EXISTS i ON t USING BTREE (a)", Ok(None)),
            ("CREATE INDEX i ON t (a)", Ok(None)),
            ("CREATE INDEX i ON t USING bloom (a)", Err("42704")),
            ("CREATE TABLE t (a int)", Ok(None)),
            ("ALTER TABLE t ALTER a TYPE int USING f(a)", Ok(None)),
        ] {
            assert_eq!(named(sql), method, "{sql}");
        }
    }
}
