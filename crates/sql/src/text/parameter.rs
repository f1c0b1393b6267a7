//! Parameters as SQLite has them: `$2` is `?2`.

use std::borrow::Cow;

use super::token::{Kind, Tokens};
use sqltext::limits::PARAMETERS_MAX;

/// `$2` to `?2` and nothing else, byte for byte in place, so that SQLite's positions stay right.
pub(crate) fn dollars_replaced(sql: &str) -> Cow<'_, str> {
    if !sql.contains('$') {
        return Cow::Borrowed(sql);
    }
    let mut out = sql.to_owned();
    for token in Tokens::new(sql) {
        if token.kind == Kind::Parameter && is_numbered(token.text) {
            out.replace_range(token.start..=token.start, "?");
        }
    }
    Cow::Owned(out)
}

/// Whether a parameter is `$2` or `?2`, with a number that SQLite takes.
fn is_numbered(parameter: &str) -> bool {
    let digits =
        parameter.strip_prefix(['?', '$']).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).is_some_and(|number| (1..=PARAMETERS_MAX).contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_become_question_marks_in_place() {
        assert_eq!(dollars_replaced("$2 + $x + '$1'"), "?2 + $x + '$1'");
    }
}
