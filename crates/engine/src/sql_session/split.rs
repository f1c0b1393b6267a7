//! A text that must be one statement.

use sql::{SqlError, split_statements};

/// The one statement of a text; empty when there is none. A prepared statement is never several.
pub(crate) fn single(text: &str) -> Result<&str, SqlError> {
    let mut all = split_statements(text);
    let first = all.next().map_or("", |piece| piece.sql);
    if all.next().is_some() {
        return Err(SqlError::new("42601", "cannot insert multiple commands into a prepared statement"));
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_statement_or_none() {
        assert_eq!(single(" SELECT 2; ").unwrap(), "SELECT 2");
        assert_eq!(single(" ; -- nothing").unwrap(), "");
        assert!(single("SELECT 1; SELECT 2").is_err());
    }
}
