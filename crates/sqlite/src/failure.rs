//! What SQLite says when it fails, as errors with a SQLSTATE and a place.

use libsqlite3_sys as ffi;
use sqltext::error::{SqlError, state};
use sqltext::token::{Kind, Token, Tokens, unquoted};

use super::Failure;

/// What SQLite says when a table has no way to answer: here, when it was asked for by an index that lacks rows.
const UNSOLVED: &str = "no query solution";

impl Failure {
    /// The error, with its place in the text that was compiled.
    pub fn in_text(self, sql: &str) -> SqlError {
        // SQLite knows no place for a missing table.
        let offset = self.offset.or_else(|| place_of_table(&self.message, sql));
        let error = SqlError::from(self);
        match offset {
            Some(offset) if error.position.is_none() => error.at(sql, offset),
            _ => error,
        }
    }
}

/// Where the table stands that a message misses: at its first mention.
fn place_of_table(message: &str, sql: &str) -> Option<usize> {
    let name = message.strip_prefix("no such table: ")?;
    let name = name.rsplit('.').next().unwrap_or(name);
    let is_name = |token: &Token<'_>| {
        matches!(token.kind, Kind::Word | Kind::Quoted) && unquoted(token.text).eq_ignore_ascii_case(name)
    };
    Tokens::new(sql).find(is_name).map(|token| token.start)
}

/// What SQLite says of a row that stands where a value is wanted.
const ROW_VALUE: &str = "row value misused";

/// How a message of SQLite begins or what it contains, and the SQLSTATE it stands for; the first match counts.
const MESSAGES: &[(&str, &str)] = &[
    ("prohibited in ", state::BAD_EXPRESSION_PLACE),
    ("unsafe use of", state::FORBIDDEN),
    ("no such table", state::UNKNOWN_TABLE),
    ("no such column", state::UNKNOWN_COLUMN),
    ("has no column named", state::UNKNOWN_COLUMN),
    ("ambiguous column name", "42702"),
    ("no such function", "42883"),
    ("wrong number of arguments to function", "42883"),
    ("no such index", state::UNKNOWN_OBJECT),
    // `INDEXED BY` an index that does not have all rows that the statement asks for.
    (UNSOLVED, state::UNKNOWN_OBJECT),
    ("no such collation", state::UNKNOWN_OBJECT),
    ("no such window", state::UNKNOWN_OBJECT),
    ("syntax error", state::SYNTAX),
    ("incomplete input", state::SYNTAX),
    ("unrecognized token", state::SYNTAX),
    ("prohibited", state::FORBIDDEN),
    ("not authorized", state::FORBIDDEN),
    ("may not be dropped", state::FORBIDDEN),
    ("Expression tree is too large", state::TOO_COMPLEX),
    ("too many", state::TOO_COMPLEX),
    ("stack overflow", state::TOO_COMPLEX),
    ("Recursion limit", state::TOO_COMPLEX),
    ("at most", state::TOO_COMPLEX),
    ("pattern too complex", state::TOO_LARGE),
    ("integer overflow", state::OUT_OF_RANGE),
    ("needs more memory than allowed", state::OUT_OF_MEMORY),
    ("malformed JSON", "22032"),
    ("JSON path error", "22033"),
    ("bad JSON path", "22033"),
    ("misuse of aggregate", "42803"),
    ("misuse of window", "42P20"),
    (ROW_VALUE, state::NOT_SUPPORTED),
    ("term out of range", "42P10"),
    ("expected 1", state::SYNTAX),
    ("number of result columns", state::SYNTAX),
    ("same number of terms", state::SYNTAX),
    ("variable number must be", state::SYNTAX),
    ("no tables specified", state::SYNTAX),
];

impl From<Failure> for SqlError {
    fn from(failure: Failure) -> Self {
        let message = failure.message;
        match failure.code {
            ffi::SQLITE_INTERRUPT => Self::new(state::CANCELED, "the statement was stopped"),
            ffi::SQLITE_NOMEM => Self::out_of_memory(),
            ffi::SQLITE_TOOBIG => Self::new(state::TOO_LARGE, message),
            ffi::SQLITE_AUTH => Self::new(state::FORBIDDEN, message),
            ffi::SQLITE_RANGE => Self::new(state::PROTOCOL, message),
            ffi::SQLITE_CORRUPT | ffi::SQLITE_INTERNAL | ffi::SQLITE_MISUSE => {
                Self::new(state::INTERNAL, message)
            }
            _ => of_message(message),
        }
    }
}

fn of_message(message: String) -> SqlError {
    let state = MESSAGES.iter().find(|(part, _)| message.contains(part)).map_or("42000", |(_, state)| state);
    let message = match message.split_once(": ") {
        Some(("no such table", name)) => format!("table \"{name}\" does not exist"),
        Some(("no such column", name)) => format!("column \"{}\" does not exist", bare_name(name)),
        Some(("no such function", name)) => format!("function {name} does not exist"),
        _ => message,
    };
    let is_row = message == ROW_VALUE;
    let error = SqlError::new(state, if is_row { "a row is no value here".to_owned() } else { message });
    if is_row {
        error.with_hint("name its columns one by one, or compare it with another row")
    } else {
        error
    }
}

/// A name as SQLite reports it, without the quotes and the advice that it adds where the name was quoted.
fn bare_name(name: &str) -> String {
    let quoted = name.split_once(" - should this be").and_then(|(name, _)| {
        let inner = name.strip_prefix('"')?.strip_suffix('"')?;
        Some(inner.replace("\"\"", "\""))
    });
    quoted.unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_the_states_of_postgresql() {
        for (code, message, state) in [
            (ffi::SQLITE_ERROR, "no such table: frag", "42P01"),
            (ffi::SQLITE_ERROR, "no such column: x", "42703"),
            (ffi::SQLITE_ERROR, "ambiguous column name: id", "42702"),
            (ffi::SQLITE_ERROR, "no such function: now", "42883"),
            (ffi::SQLITE_ERROR, "row value misused", "0A000"),
            (ffi::SQLITE_ERROR, "wrong number of arguments to function abs()", "42883"),
            (ffi::SQLITE_ERROR, "near \"FORM\": syntax error", "42601"),
            (ffi::SQLITE_ERROR, "incomplete input", "42601"),
            (ffi::SQLITE_ERROR, "access to sqlite_master.sql is prohibited", "42501"),
            (ffi::SQLITE_ERROR, "not authorized to use function: load_extension", "42501"),
            (ffi::SQLITE_AUTH, "not authorized", "42501"),
            (ffi::SQLITE_INTERRUPT, "interrupted", "57014"),
            (ffi::SQLITE_NOMEM, "out of memory", "53200"),
            (ffi::SQLITE_TOOBIG, "string or blob too big", "54000"),
            (ffi::SQLITE_ERROR, "Expression tree is too large (maximum depth 1000)", "54001"),
            (ffi::SQLITE_ERROR, "too many terms in compound SELECT", "54001"),
            (ffi::SQLITE_ERROR, "integer overflow", "22003"),
            (ffi::SQLITE_ERROR, "malformed JSON", "22032"),
            (ffi::SQLITE_ERROR, "misuse of aggregate: count()", "42803"),
            (ffi::SQLITE_ERROR, "something new", "42000"),
            (ffi::SQLITE_MISUSE, "bad parameter or other API misuse", "XX000"),
        ] {
            let failure = Failure { code, message: message.to_owned(), offset: None };
            assert_eq!(SqlError::from(failure).state, state, "{message}");
        }
    }

    #[test]
    fn a_missing_table_has_a_place() {
        let place = |message: &str, sql: &str| place_of_table(message, sql);
        assert_eq!(place("no such table: none", "SELECT none.a FROM t, None"), Some(7));
        assert_eq!(place("no such table: main.a b", "SELECT 'a b' FROM \"a b\""), Some(18));
        assert_eq!(place("no such column: none", "SELECT none"), None);
    }
}
