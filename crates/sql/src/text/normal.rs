//! A statement's text with its literals taken out: what is counted as one statement.

use sqltext::secret::is_password_word;

use super::token::{Kind, Token, Tokens};
use crate::limits::NORMALIZED_BYTES_MAX;

/// The text in one line, with `?` for each literal and parameter, keywords and bare names in lower case, comments
/// left out. A list of literals, however long, is `?, ...`, and so is a list of such lists.
pub fn normalized(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len().min(NORMALIZED_BYTES_MAX));
    let mut before: Option<Token<'_>> = None;
    for token in Tokens::new(sql) {
        if out.len() > NORMALIZED_BYTES_MAX {
            out.truncate(out.floor_char_boundary(NORMALIZED_BYTES_MAX));
            out.push_str(" ...");
            return out;
        }
        if before.is_some_and(|before| before.end() < token.start) && !out.is_empty() {
            out.push(' ');
        }
        match token.kind {
            // A password in quotes for names is none, and is not shown either.
            Kind::Quoted if before.is_some_and(|before| is_password_word(before.text)) => value(&mut out),
            Kind::Text | Kind::Foreign | Kind::Blob | Kind::Number | Kind::Parameter => value(&mut out),
            Kind::Word => out.push_str(&token.text.to_ascii_lowercase()),
            _ => out.push_str(token.text),
        }
        if token.is_sign(")") {
            shorten(&mut out);
        }
        before = Some(token);
    }
    while out.ends_with([';', ' ']) {
        out.pop();
    }
    out
}

/// A literal: one more in a list of them adds nothing.
fn value(out: &mut String) {
    for list in ["?, ", "?,", "?, ..., ", "?, ...,"] {
        if let Some(rest) = out.strip_suffix(list) {
            let length = rest.len();
            out.truncate(length);
            out.push_str("?, ...");
            return;
        }
    }
    out.push('?');
}

/// `(?), (?)` is `(?), ...`
fn shorten(out: &mut String) {
    for row in ["(?, ...)", "(?)"] {
        for between in [", ", ",", ", ..., ", ", ...,"] {
            let list = format!("{row}{between}{row}");
            if let Some(rest) = out.strip_suffix(list.as_str()) {
                let length = rest.len();
                out.truncate(length);
                out.push_str(row);
                out.push_str(", ...");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_go_and_lists_are_one() {
        for (sql, expected) in [
            ("SELECT  *\nFROM T WHERE a='x' AND b = -1.5;", "select * from t where a=? and b = -?"),
            ("SELECT 1 -- one", "select ?"),
            ("SELECT * FROM t WHERE a IN (1, 2,3, $1)", "select * from t where a in (?, ...)"),
            ("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')", "insert into t values (?, ...), ..."),
            ("INSERT INTO t VALUES (1),(2),(3)", "insert into t values (?), ..."),
            ("SELECT \"A\", x'00' FROM t", "select \"A\", ? from t"),
            ("SELECT $$it's$$, E'\\'', a::int[], b[1] FROM t", "select ?, ..., a::int[], b[?] from t"),
            ("", ""),
        ] {
            assert_eq!(normalized(sql), expected);
        }
        assert!(normalized(&"a ".repeat(100_000)).len() < 2 * NORMALIZED_BYTES_MAX);
    }
}
