//! Parameters: `?`, `?2`, `$2` and `:name` become `?n`, numbered as they would be in the whole statement.

use std::borrow::Cow;

use super::token::{Kind, Tokens};
use crate::error::{SqlError, state};
use sqltext::limits::PARAMETERS_MAX;

/// A text whose parameters all have numbers, so that its parts can be compiled apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Numbered<'a> {
    pub(crate) sql: Cow<'a, str>,
    /// The highest number.
    pub(crate) count: usize,
}

/// Numbers all parameters as SQLite does: a plain `?` is one more than the highest before it, a name keeps the
/// number of its first appearance. `$2` means `?2`, as in PostgreSQL.
pub(crate) fn numbered(sql: &str) -> Result<Numbered<'_>, SqlError> {
    if !sql.bytes().any(|byte| matches!(byte, b'?' | b'$' | b':' | b'@')) {
        return Ok(Numbered { sql: Cow::Borrowed(sql), count: 0 });
    }
    let mut out = String::with_capacity(sql.len() + 16);
    let mut copied = 0;
    let mut count = 0;
    let mut names: Vec<(&str, usize)> = Vec::new();
    for token in Tokens::new(sql).filter(|token| token.kind == Kind::Parameter) {
        let number = match explicit_number(token.text) {
            Some(number) => number.map_err(|error| error.at(sql, token.start))?,
            None if token.text == "?" => count + 1,
            None => {
                let known = names.iter().find(|(name, _)| *name == token.text).map(|&(_, number)| number);
                known.unwrap_or_else(|| {
                    names.push((token.text, count + 1));
                    count + 1
                })
            }
        };
        if number > PARAMETERS_MAX {
            return Err(too_many().at(sql, token.start));
        }
        count = count.max(number);
        out.push_str(&sql[copied..token.start]);
        out.push('?');
        out.push_str(&number.to_string());
        copied = token.end();
    }
    if copied == 0 {
        return Ok(Numbered { sql: Cow::Borrowed(sql), count });
    }
    out.push_str(&sql[copied..]);
    Ok(Numbered { sql: Cow::Owned(out), count })
}

/// `$2` to `?2` and nothing else, byte for byte in place, so that SQLite's positions stay right.
pub(crate) fn dollars_replaced(sql: &str) -> Cow<'_, str> {
    if !sql.contains('$') {
        return Cow::Borrowed(sql);
    }
    let mut out = sql.to_owned();
    for token in Tokens::new(sql) {
        if token.kind == Kind::Parameter && matches!(explicit_number(token.text), Some(Ok(_))) {
            out.replace_range(token.start..=token.start, "?");
        }
    }
    Cow::Owned(out)
}

/// The number in `?2` or `$2`; `None` for a plain `?` or a name.
fn explicit_number(parameter: &str) -> Option<Result<usize, SqlError>> {
    let digits = parameter.strip_prefix(['?', '$'])?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(match digits.parse() {
        Ok(number @ 1..=PARAMETERS_MAX) => Ok(number),
        Ok(0) => Err(SqlError::new(state::SYNTAX, "parameters are numbered from 1")),
        _ => Err(too_many()),
    })
}

fn too_many() -> SqlError {
    SqlError::new(state::TOO_COMPLEX, format!("more parameters than {PARAMETERS_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_get_numbers() {
        for (sql, expected, count) in [
            ("a = 1", "a = 1", 0),
            ("? + ?", "?1 + ?2", 2),
            ("$2, $1", "?2, ?1", 2),
            ("?3, ?", "?3, ?4", 4),
            (":a, :b, :a, ?", "?1, ?2, ?1, ?3", 3),
            ("'?' -- ?\n ?", "'?' -- ?\n ?1", 1),
            ("json ->> '$.a' || $1", "json ->> '$.a' || ?1", 1),
        ] {
            let numbered = numbered(sql).unwrap();
            assert_eq!((&*numbered.sql, numbered.count), (expected, count));
        }
        assert_eq!(numbered("$0").unwrap_err().state, "42601");
        assert_eq!(numbered("?99999").unwrap_err().state, "54001");
    }

    #[test]
    fn dollars_become_question_marks_in_place() {
        assert_eq!(dollars_replaced("$2 + $x + '$1'"), "?2 + $x + '$1'");
    }
}
