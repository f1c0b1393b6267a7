//! What a text says by itself, before the source is asked.

use sqltext::token::{Kind, Token, text_of, tokens};

use crate::verdict::Refusal;
use crate::words::clock_word;

/// Words with which a statement that only reads begins.
const READS: &[&str] = &["SELECT", "WITH", "VALUES", "TABLE"];

/// Words that make a `WITH` write.
const WRITES: &[&str] = &["INSERT", "UPDATE", "DELETE", "MERGE"];

/// Whether a text may be one whose answer can be kept; `Err` says why it is not. What names mean only the source
/// knows.
pub fn may_be_read(sql: &str) -> Result<(), Refusal> {
    let tokens = tokens(sql);
    let begin = tokens.iter().take_while(|token| token.is_sign(";")).count();
    let first = tokens.iter().skip(begin).find(|token| !token.is_sign("("));
    if !first.is_some_and(|first| first.is_any(READS)) {
        return Err(Refusal::new("it is no SELECT"));
    }
    let end = tokens.iter().rposition(|token| !token.is_sign(";")).unwrap_or_default();
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &tokens[before]);
        blanks(sql, before.map_or(0, Token::end), token.start)?;
        match token.kind {
            Kind::Sign if token.text == ";" && (begin..end).contains(&at) => {
                return Err(Refusal::new("the text has more than one statement"));
            }
            Kind::Word => word(token, before, tokens.get(at + 1))?,
            Kind::Text | Kind::Foreign => literal(token, before)?,
            Kind::Quoted if !token.text.starts_with('"') => return Err(unclear(token)),
            Kind::Number if token.text.contains('$') => return Err(unclear(token)),
            _ => {}
        }
    }
    blanks(sql, tokens.last().map_or(0, Token::end), sql.len())
}

/// The text without semicolons at its ends.
pub(crate) fn single(sql: &str) -> &str {
    let tokens = tokens(sql);
    let stands = |token: &Token<'_>| !token.is_sign(";");
    let begin = tokens.iter().find(|token| stands(token)).map_or(0, |token| token.start);
    let end = tokens.iter().rfind(|token| stands(token)).map_or(begin, Token::end);
    &sql[begin..end]
}

fn word(token: &Token<'_>, before: Option<&Token<'_>>, next: Option<&Token<'_>>) -> Result<(), Refusal> {
    let behind = |words: &[&str]| before.is_some_and(|before| before.is_any(words));
    let opened = before.is_some_and(|before| before.is_sign("(") || before.is_sign(")"));
    let reason = if token.is_any(&["UPDATE", "SHARE"]) && behind(&["FOR", "KEY"])
        || token.is("KEY") && behind(&["FOR", "NO"])
    {
        "it locks rows (FOR UPDATE, FOR SHARE)"
    } else if token.is_any(WRITES) && opened {
        "it writes in a WITH"
    } else if token.is("TABLESAMPLE") && next.is_some_and(|next| next.kind == Kind::Word) {
        "TABLESAMPLE reads other rows each time"
    } else if token.is("INTO") {
        "SELECT INTO makes a table"
    } else if token.is("UESCAPE") {
        "a literal has an escape of its own (UESCAPE)"
    } else {
        return Ok(());
    };
    Err(Refusal::new(reason))
}

/// A literal must not say `now`. Two that stand side by side, and not on lines of their own, are none to PostgreSQL.
fn literal(token: &Token<'_>, before: Option<&Token<'_>>) -> Result<(), Refusal> {
    if before.is_some_and(|before| matches!(before.kind, Kind::Text | Kind::Foreign)) {
        return Err(Refusal::new("a literal is written in two parts").with_cure("write it as one"));
    }
    let text = text_of(token).ok_or_else(|| unclear(token))?;
    match clock_word(text.as_bytes()) {
        None => Ok(()),
        Some(word) => {
            Err(Refusal::new(format!("a literal contains the word '{word}', which may mean a time"))
                .with_cure("send the text as a parameter, or the time itself"))
        }
    }
}

/// Comments that PostgreSQL ends elsewhere than the lexer here are not read: what it takes for text would be code.
fn blanks(sql: &str, from: usize, to: usize) -> Result<(), Refusal> {
    let gap = sql.get(from..to).unwrap_or_default();
    let nested = gap.contains("/*") && gap.matches("/*").count() != gap.matches("*/").count()
        || gap.split("*/").any(|comment| comment.matches("/*").count() > 1);
    let returns = gap.contains("--") && gap.replace("\r\n", "\n").contains('\r');
    if nested || returns {
        return Err(Refusal::new("it has a comment within a comment, or one that a carriage return ends"));
    }
    Ok(())
}

fn unclear(token: &Token<'_>) -> Refusal {
    Refusal::new(format!("it is not clear how PostgreSQL reads {:?}", token.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_select_may_be_read() {
        for sql in [
            "SELECT 1",
            " ; select * from t where id = $1 ;; ",
            "(SELECT 1) UNION (SELECT 2)",
            "WITH a AS (SELECT 1) SELECT * FROM a -- now",
            "VALUES (1), (2)",
            "TABLE t",
            "SELECT now() /* now */, 'know', \"now\", update, share FROM t",
            "SELECT substring(a FROM 2 FOR 3) FROM t",
            "SELECT E'a\\'b', $$x$$, a[1], ARRAY[1]",
        ] {
            assert_eq!(may_be_read(sql), Ok(()), "{sql}");
        }
    }

    #[test]
    fn all_else_may_not() {
        for (sql, reason) in [
            ("", "no SELECT"),
            ("INSERT INTO t VALUES (1)", "no SELECT"),
            ("EXPLAIN SELECT 1", "no SELECT"),
            ("SELECT 1; SELECT 2", "more than one"),
            ("SELECT * FROM t FOR UPDATE", "locks"),
            ("SELECT * FROM t FOR NO KEY UPDATE", "locks"),
            ("SELECT * FROM t FOR KEY SHARE", "locks"),
            ("WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a", "writes"),
            ("SELECT * INTO u FROM t", "makes a table"),
            ("SELECT * FROM t TABLESAMPLE SYSTEM (10)", "TABLESAMPLE"),
            ("SELECT 'now'::timestamp", "'now'"),
            ("SELECT date E'\\x74oday'", "'today'"),
            ("SELECT date $$Tomorrow$$", "'tomorrow'"),
            ("SELECT date U&'\\006eow'", "'now'"),
            ("SELECT date U&'!006eow' UESCAPE '!'", "UESCAPE"),
            ("SELECT date 'to'\n'day'", "'today'"),
            ("SELECT date E'to' -- a\n '\\x64ay'", "'today'"),
            ("SELECT date 'to' 'day'", "two parts"),
            ("SELECT 1 /* /* */ ' */ , date 'now' -- '", "comment"),
            ("SELECT 1 -- \r, date 'now'", "comment"),
            ("SELECT a ['now'::date] FROM t", "not clear"),
            ("SELECT `a`", "not clear"),
            ("SELECT 'a", "not clear"),
        ] {
            let refused = may_be_read(sql).expect_err(sql);
            assert!(refused.reason.contains(reason), "{sql}: {}", refused.reason);
        }
    }

    #[test]
    fn semicolons_at_the_ends_go() {
        assert_eq!(single(" ;; SELECT ';' ; "), "SELECT ';'");
        assert_eq!(single(";"), "");
    }
}
