//! The grammar: SQLite's own, as the `sqlite3-parser` crate has ported it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use sqlite::count_panic;
use sqlite3_parser::ast::fmt::ToTokens;
use sqlite3_parser::ast::{Cmd, Stmt};
use sqlite3_parser::lexer::sql::{Error as ParseError, Parser};
use sqlite3_parser::{Bump, FallibleIterator};
use sqltext::limits::NESTING_MAX;

use super::token::Tokens;
use crate::error::{SqlError, state};

/// Parses one statement and hands its tree to `plan`. The tree lives no longer than this call.
///
/// The parser is known to panic on a few malformed inputs; that is a syntax error to us.
pub(crate) fn with_tree<T>(
    sql: &str,
    plan: impl FnOnce(&Stmt<'_>) -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    check_nesting(sql)?;
    let result = catch_unwind(AssertUnwindSafe(|| {
        let bump = Bump::new();
        let mut parser = Parser::new(&bump, sql.as_bytes());
        let tree = parser.next().map_err(|error| parse_error(sql, &error))?;
        if parser.next().map_err(|error| parse_error(sql, &error))?.is_some() {
            let message = "only one statement can be sent at a time; send the next one separately";
            return Err(SqlError::new(state::SYNTAX, message));
        }
        match &tree {
            Some(Cmd::Stmt(statement)) => plan(statement),
            _ => Err(SqlError::new(state::SYNTAX, "a statement was expected")),
        }
    }));
    result.unwrap_or_else(|_| {
        count_panic();
        Err(SqlError::new(state::SYNTAX, "the statement could not be parsed"))
    })
}

/// A part of the tree, printed as SQL.
pub(crate) struct Sql<'a, T: ?Sized>(pub(crate) &'a T);

impl<T: ToTokens + ?Sized> fmt::Display for Sql<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.to_fmt(f)
    }
}

/// Bounds how deep the tree can become, before it is made: printing it is recursive.
pub(crate) fn check_nesting(sql: &str) -> Result<(), SqlError> {
    match sqltext::too_deep(&sqltext::token::tokens(sql)) {
        None => Ok(()),
        Some(place) => {
            let message = format!("the statement nests more than {NESTING_MAX} operators; split it");
            Err(SqlError::new(state::TOO_COMPLEX, message).at(sql, place))
        }
    }
}

/// What the parser checks beyond the grammar, and the SQLSTATE for it.
const PARSER_MESSAGES: &[(&str, &str)] = &[
    ("duplicate column name", state::DUPLICATE_COLUMN),
    ("specified more than once", state::DUPLICATE_COLUMN),
    ("more than one primary key", state::BAD_DEFINITION),
    ("AUTOINCREMENT", state::BAD_DEFINITION),
];

fn parse_error(sql: &str, error: &ParseError) -> SqlError {
    let (message, place) = match error {
        ParseError::ParserError(error, place) => (error.to_string(), place.as_ref()),
        ParseError::UnrecognizedToken(place) => ("unrecognized token".to_owned(), place.as_ref()),
        ParseError::UnterminatedLiteral(place) => ("a literal is not closed".to_owned(), place.as_ref()),
        ParseError::UnterminatedBracket(place) => ("a bracket is not closed".to_owned(), place.as_ref()),
        ParseError::UnterminatedBlockComment(place) => ("a comment is not closed".to_owned(), place.as_ref()),
        ParseError::BadVariableName(place) => ("not a parameter".to_owned(), place.as_ref()),
        ParseError::BadNumber(place) => ("not a number".to_owned(), place.as_ref()),
        ParseError::ExpectedEqualsSign(place) => ("an equals sign was expected".to_owned(), place.as_ref()),
        ParseError::MalformedBlobLiteral(place) => ("not a blob literal".to_owned(), place.as_ref()),
        ParseError::MalformedHexInteger(place) => ("not a hexadecimal number".to_owned(), place.as_ref()),
        other => (other.to_string(), None),
    };
    let state = PARSER_MESSAGES
        .iter()
        .find(|(part, _)| message.contains(part))
        .map_or(state::SYNTAX, |(_, state)| state);
    let offset = place.and_then(|place| {
        let line = sql.split_inclusive('\n').take(place.line.saturating_sub(1)).map(str::len).sum::<usize>();
        Some(line + place.column.checked_sub(1)?)
    });
    let near = offset.and_then(|offset| Tokens::new(sql).find(|token| token.start >= offset));
    match (near, offset) {
        (Some(token), _) if message.contains("syntax error") => SqlError::syntax(sql, &token),
        (_, Some(offset)) => SqlError::new(state, message).at(sql, offset),
        _ => SqlError::new(state, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(sql: &str) -> SqlError {
        with_tree(sql, |_| Ok(())).unwrap_err()
    }

    #[test]
    fn syntax_errors_have_positions() {
        let found = error("DELETE FORM t");
        assert_eq!((found.state, found.position), ("42601", Some(8)), "{found}");
        let found = error("INSERT INTO t\nVALUES (1,, 2)");
        assert_eq!((found.state, found.position), ("42601", Some(25)), "{found}");
        assert_eq!(error("DELETE FROM t; DELETE FROM u").state, "42601");
        assert_eq!(error("DELETE FROM 'x").state, "42601");
    }

    #[test]
    fn deep_statements_are_refused_before_they_are_parsed() {
        for deep in [
            format!("DELETE FROM t WHERE a = {}1", "1+".repeat(100_000)),
            format!("DELETE FROM t WHERE a = {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
            format!("DELETE FROM t WHERE {} a", "NOT ".repeat(100_000)),
            format!("DELETE FROM t WHERE a = {}", "- ".repeat(100_000)),
            format!("DELETE FROM t WHERE a = {}", "~".repeat(100_000)),
            format!("DELETE FROM t WHERE a {}", "IS a ".repeat(100_000)),
            format!("DELETE FROM t WHERE a {}", "AND a ".repeat(100_000)),
            format!("DELETE FROM t WHERE a {}", "OR NOT a ".repeat(100_000)),
            format!("DELETE FROM t WHERE {}a{}", "(1 + ".repeat(100_000), ")".repeat(100_000)),
        ] {
            assert_eq!(error(&deep).state, "54001");
        }
        let wide = format!("INSERT INTO t VALUES {}(1, 2)", "(1, -2 + 3), ".repeat(20_000));
        assert_eq!(with_tree(&wide, |_| Ok(())), Ok(()));
        let many = format!("DELETE FROM t WHERE a = 1{}", " OR a = 2".repeat(900));
        assert_eq!(with_tree(&many, |_| Ok(())), Ok(()));
        let deepest = format!("DELETE FROM t WHERE a = {}1", "1+".repeat(NESTING_MAX - 1));
        assert_eq!(
            with_tree(&deepest, |tree| Ok(Sql(tree).to_string().len())).map(|length| length > 2_000),
            Ok(true)
        );
    }
}
