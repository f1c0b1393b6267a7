//! What must hold of every text that is read as SQL.

use sqltext::literals::Literals;
use sqltext::token::tokens;

use crate::grammar::Decisions;

/// Reads an input as it is, and as decisions in a grammar of nearly-SQL.
pub fn fuzz_sqltext(data: &[u8]) {
    check(&String::from_utf8_lossy(data));
    check(&Decisions::new(data).statement());
}

/// Reads one text.
pub fn check(sql: &str) {
    let mut end = 0;
    for token in tokens(sql) {
        assert!(token.start >= end && !token.text.is_empty(), "tokens overlap");
        assert_eq!(sql.get(token.start..token.end()), Some(token.text), "a token is not of the text");
        end = token.end();
    }
    match sqltext::parse(sql) {
        Ok(tree) => check_literals(sql, &tree),
        Err(error) => assert!(sql.is_char_boundary(error.place), "an error is within a character"),
    }
}

/// A text with parameters in the place of its free literals is the same kind of statement.
fn check_literals(sql: &str, tree: &sqltext::Tree<'_>) {
    let Some(literals) = Literals::of(sql) else { return };
    let free = literals.free(tree);
    let text = literals.opened(&free);
    let opened = sqltext::parse(&text).expect("the text with parameters");
    let same = std::mem::discriminant(&opened.statement) == std::mem::discriminant(&tree.statement);
    assert!(same, "another statement: {text}");
    assert!(literals.values(&free).count() <= tokens(sql).len(), "values from nowhere");
}
