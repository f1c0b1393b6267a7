//! `ANALYZE`, `REINDEX` and `VACUUM`: accepted, and nothing is left to do. The planner asks the tables themselves how
//! many rows they have, an index is kept with each write, and memory comes back while the server runs.

use store::definition::Collation;

use crate::core::Core;
use crate::error::{SqlError, state};
use crate::text::storage::Reader;
use crate::text::token::{Kind, Token, Tokens};

/// Words that may stand before a name.
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

/// Checks what is named, so that a mistake does not pass in silence.
pub(super) fn run(core: &Core, sql: &str) -> Result<&'static str, SqlError> {
    let tokens: Vec<Token<'_>> = Tokens::new(sql).collect();
    let mut reader = Reader { sql, tokens: &tokens, at: 0 };
    reader.skip_semicolons();
    let tag = ["ANALYZE", "REINDEX", "VACUUM"].into_iter().find(|word| reader.keyword(word).is_ok());
    let Some(tag) = tag else { return Err(reader.unexpected()) };
    if reader.sign("(").is_ok() {
        while reader.peek().is_some_and(|token| !token.is_sign(")")) {
            reader.at += 1;
        }
        reader.sign(")")?;
    }
    while NOISE.iter().any(|word| reader.keyword(word).is_ok()) {}
    while reader.peek().is_some_and(|token| matches!(token.kind, Kind::Word | Kind::Quoted)) {
        if reader.peek().is_some_and(|token| token.is("INTO")) {
            return Err(SqlError::new(state::FORBIDDEN, "VACUUM INTO would write a file"));
        }
        let name = reader.table_name()?;
        let known = core.catalog.table(&name).is_some()
            || core.catalog.index_owner(&name).is_some()
            || Collation::of_name(&name).is_some()
            || name.eq_ignore_ascii_case("main");
        if !known {
            return Err(SqlError::unknown_table(&name));
        }
        if reader.sign(",").is_err() && !reader.peek().is_some_and(|token| token.is("INTO")) {
            break;
        }
    }
    reader.end()?;
    Ok(tag)
}
