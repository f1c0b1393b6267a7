//! Clauses that SQLite's grammar has no words for, brought into words that it has.

use std::borrow::Cow;
use std::ops::Range;

use sqltext::places::Places;

use crate::core::Core;
use crate::error::SqlError;
use crate::text::parse::check_nesting;
use crate::text::token::{Kind, Token, Tokens, unquoted};

/// What stands for `AS IDENTITY` in the text that is parsed: a generated column of this one name.
pub(super) const IDENTITY_ALWAYS: &str = "ALWAYS AS IDENTITY";
/// See above.
pub(super) const IDENTITY_BY_DEFAULT: &str = "BY DEFAULT AS IDENTITY";

/// Words of a column's definition that end the expression of its `DEFAULT`.
const AFTER_DEFAULT: &[&str] = &[
    "NOT",
    "NULL",
    "CHECK",
    "UNIQUE",
    "PRIMARY",
    "REFERENCES",
    "COLLATE",
    "GENERATED",
    "CONSTRAINT",
    "DEFAULT",
    "AS",
];

/// A change of the text: what lies between the two places becomes this.
type Edit = (usize, usize, String);

/// A definition in words that the grammar knows.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    pub(super) sql: Cow<'a, str>,
    /// It began with `CREATE OR REPLACE`.
    pub(super) replace: bool,
    places: Places,
}

impl Prepared<'_> {
    /// The same error with its place in the text that was prepared.
    pub(super) fn relocate(&self, error: SqlError, user: &str) -> SqlError {
        self.places.relocate(error, &self.sql, user)
    }
}

/// Makes the text for the grammar.
///
/// Expressions and queries within it are brought from PostgreSQL's dialect into SQLite's. `GENERATED ... AS IDENTITY`
/// becomes a generated column that [`super::table`] knows; a `DEFAULT` that is no single word gets parentheses; `OR
/// REPLACE`, the method of an index, and words that say what is so anyway are left out.
pub(super) fn prepared<'a>(core: &Core, sql: &'a str) -> Result<Prepared<'a>, SqlError> {
    check_nesting(sql)?;
    let tokens: Vec<Token<'_>> = Tokens::new(sql).collect();
    let table = table_of(&tokens);
    rewritten(sql, &tokens, &|range| {
        let text = &sql[range.clone()];
        let translated = dialect::translate_part(&core.catalog, table.as_deref(), text);
        translated.map_err(|error| SqlError {
            position: error.position.map(|at| at + sql[..range.start].chars().count()),
            ..error
        })
    })
}

/// Brings one part of the text into SQLite's dialect.
type Translate<'t> = dyn Fn(Range<usize>) -> Result<String, SqlError> + 't;

fn rewritten<'a>(
    sql: &'a str,
    tokens: &[Token<'_>],
    translate: &Translate<'_>,
) -> Result<Prepared<'a>, SqlError> {
    let mut edits: Vec<Edit> = Vec::new();
    let mut replace = false;
    if let [create, or, word, ..] = tokens
        && create.is("CREATE")
        && or.is("OR")
        && word.is("REPLACE")
    {
        replace = true;
        edits.push((or.start, word.end(), String::new()));
    }
    edits.extend(needless(tokens));
    let mut depth = 0_usize;
    let alters = tokens.first().is_some_and(|token| token.is("ALTER"));
    let of_table = alters || tokens.iter().take(4).any(|token| token.is("TABLE"));
    for at in (0..tokens.len()).filter(|_| of_table) {
        let rest = &tokens[at..];
        depth += usize::from(tokens[at].is_sign("("));
        depth = depth.saturating_sub(usize::from(tokens[at].is_sign(")")));
        let from = edits.last().map_or(0, |edit| edit.1);
        if tokens[at].start < from {
            continue;
        }
        match rest {
            [generated, ..] if generated.is("GENERATED") => edits.extend(identity(sql, rest)?),
            [default, next, ..] if default.is("DEFAULT") && !next.is("AS") => {
                edits.extend(default_of(&rest[1..], translate)?);
            }
            [word, open, ..]
                if (word.is("CHECK") || word.is("AS")) && open.is_sign("(") && (alters || depth > 0) =>
            {
                edits.extend(within(&rest[1..], translate)?);
            }
            _ => {}
        }
    }
    edits.extend(queries(sql, tokens, translate)?);
    edits.sort_by_key(|edit| edit.0);
    let (sql, places) = edited(sql, &edits);
    Ok(Prepared { sql, replace, places })
}

/// The text with the changes made, which are in order; of two that overlap the first is.
fn edited<'a>(sql: &'a str, edits: &[Edit]) -> (Cow<'a, str>, Places) {
    let mut places = Places::unchanged();
    if edits.is_empty() {
        return (Cow::Borrowed(sql), places);
    }
    let mut text = String::with_capacity(sql.len() + 8 * edits.len());
    let mut copied = 0;
    for (from, to, new) in edits.iter().filter(|(from, to, _)| from < to) {
        if *from >= copied {
            text.push_str(&sql[copied..*from]);
            places.push(text.len(), *from);
            text.push_str(new);
            places.push(text.len(), *to);
            copied = *to;
        }
    }
    text.push_str(&sql[copied..]);
    (Cow::Owned(text), places)
}

/// The word that says what is so anyway: no table is logged, and an index is made while others read and write.
fn needless(tokens: &[Token<'_>]) -> Option<Edit> {
    let mut head = tokens.iter().take(4);
    let word = match tokens {
        [create, unlogged, table, ..]
            if create.is("CREATE") && unlogged.is("UNLOGGED") && table.is("TABLE") =>
        {
            unlogged
        }
        _ => {
            head.find(|token| token.is("INDEX"))?;
            head.next().filter(|token| token.is("CONCURRENTLY"))?
        }
    };
    Some((word.start, word.end(), String::new()))
}

/// The table whose columns expressions may name.
fn table_of(tokens: &[Token<'_>]) -> Option<String> {
    let is_index = tokens.first()?.is("CREATE") && tokens.iter().take(3).any(|token| token.is("INDEX"));
    let before = if is_index { "ON" } else { "TABLE" };
    let at = tokens.iter().position(|token| token.is(before))?;
    let words = ["IF", "EXISTS", "ONLY", "main"];
    let named =
        tokens[at + 1..].iter().find(|token| is_name(token) && !words.iter().any(|word| token.is(word)));
    named.map(|token| unquoted(token.text))
}

/// The query of a view or a table that is made of one, what an index is made of, and the expression of a new type.
fn queries(sql: &str, tokens: &[Token<'_>], translate: &Translate<'_>) -> Result<Vec<Edit>, SqlError> {
    let [first, ..] = tokens else { return Ok(Vec::new()) };
    let outside = |word: &str| {
        let mut depth = 0_usize;
        tokens.iter().position(|token| {
            depth += usize::from(token.is_sign("("));
            depth = depth.saturating_sub(usize::from(token.is_sign(")")));
            depth == 0 && token.is(word)
        })
    };
    let tail = |at: usize| {
        let end = tokens.iter().rev().find(|token| !token.is_sign(";")).map_or(sql.len(), Token::end);
        let start = tokens[at].end();
        if start >= end { Ok(None) } else { translate(start..end).map(|text| Some((start, end, text))) }
    };
    let mut edits = Vec::new();
    let kind = |word: &str| tokens.iter().take(4).any(|token| token.is(word));
    if first.is("CREATE") && kind("INDEX") {
        if let Some(on) = outside("ON")
            && let Some(open) = tokens[on..].iter().position(|token| token.is_sign("("))
        {
            if let [.., using, _] = &tokens[on..on + open]
                && using.is("USING")
            {
                edits.push((using.start, tokens[on + open - 1].end(), String::new()));
            }
            edits.extend(within(&tokens[on + open..], translate)?);
        }
        if let Some(at) = outside("WHERE") {
            edits.extend(tail(at)?);
        }
    } else if first.is("CREATE") && (kind("VIEW") || kind("TABLE")) {
        if let Some(at) = outside("AS") {
            edits.extend(tail(at)?);
        }
    } else if first.is("ALTER")
        && let Some(at) = outside("USING")
    {
        let rest = &tokens[at + 1..];
        edits.extend(part(&rest[..extent(rest, &[])], translate)?);
    }
    Ok(edits)
}

/// What stands in parentheses.
fn within(tokens: &[Token<'_>], translate: &Translate<'_>) -> Result<Option<Edit>, SqlError> {
    let inner = closing(tokens).and_then(|close| tokens.get(1..close));
    inner.map_or(Ok(None), |inner| part(inner, translate))
}

fn part(tokens: &[Token<'_>], translate: &Translate<'_>) -> Result<Option<Edit>, SqlError> {
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return Ok(None) };
    let text = translate(first.start..last.end())?;
    Ok(Some((first.start, last.end(), text.trim().to_owned())))
}

/// The expression of a `DEFAULT`; a single word, literal or number stays as it is.
fn default_of(tokens: &[Token<'_>], translate: &Translate<'_>) -> Result<Option<Edit>, SqlError> {
    let tokens = &tokens[..extent(tokens, AFTER_DEFAULT)];
    match tokens {
        [] | [_] => Ok(None),
        [sign, _] if sign.is_sign("-") || sign.is_sign("+") => Ok(None),
        [open, ..] if open.is_sign("(") && closing(tokens) == Some(tokens.len() - 1) => {
            within(tokens, translate)
        }
        _ => Ok(part(tokens, translate)?.map(|(from, to, text)| (from, to, format!("({text})")))),
    }
}

/// How many tokens an expression has that is followed by a comma, the end, or one of these words.
fn extent(tokens: &[Token<'_>], after: &[&str]) -> usize {
    let mut depth = 0_usize;
    let ends = |(at, token): (usize, &Token<'_>)| {
        if token.is_sign("(") {
            depth += 1;
        } else if token.is_sign(")") {
            if depth == 0 {
                return true;
            }
            depth -= 1;
        }
        depth == 0
            && (token.is_sign(",")
                || token.is_sign(";")
                || (at > 0 && after.iter().any(|word| token.is(word))))
    };
    tokens.iter().enumerate().position(ends).unwrap_or(tokens.len())
}

/// `GENERATED ALWAYS AS IDENTITY` or `GENERATED BY DEFAULT AS IDENTITY`.
fn identity(sql: &str, tokens: &[Token<'_>]) -> Result<Option<(usize, usize, String)>, SqlError> {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token: &Token<'_>| token.is(word));
    let (last, name) = if is(1, "ALWAYS") && is(2, "AS") && is(3, "IDENTITY") {
        (3, IDENTITY_ALWAYS)
    } else if is(1, "BY") && is(2, "DEFAULT") && is(3, "AS") && is(4, "IDENTITY") {
        (4, IDENTITY_BY_DEFAULT)
    } else {
        return Ok(None);
    };
    if let Some(open) = tokens.get(last + 1).filter(|token| token.is_sign("(")) {
        return Err(SqlError::not_supported("an option of IDENTITY")
            .with_hint("numbers start at 1 and continue after the largest number inserted explicitly")
            .at(sql, open.start));
    }
    Ok(Some((tokens[0].start, tokens[last].end(), format!("AS (\"{name}\")"))))
}

fn is_name(token: &Token<'_>) -> bool {
    matches!(token.kind, Kind::Word | Kind::Quoted)
}

/// The position of the parenthesis that closes the first token.
fn closing(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0_usize;
    tokens.iter().position(|token| {
        depth += usize::from(token.is_sign("("));
        depth -= usize::from(token.is_sign(")") && depth > 0);
        depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with what would be translated in capitals.
    fn prepared(sql: &str) -> Result<String, SqlError> {
        let tokens: Vec<Token<'_>> = Tokens::new(sql).collect();
        let shown = |range: Range<usize>| Ok(sql[range].to_uppercase());
        rewritten(sql, &tokens, &shown).map(|prepared| prepared.sql.into_owned())
    }

    #[test]
    fn foreign_clauses_find_words() {
        for (sql, expected) in [
            (
                "CREATE TABLE t (a INT GENERATED ALWAYS AS IDENTITY, b INT)",
                "CREATE TABLE t (a INT AS (\"ALWAYS AS IDENTITY\"), b INT)",
            ),
            (
                "create table t (a int generated by default as identity primary key)",
                "create table t (a int AS (\"BY DEFAULT AS IDENTITY\") primary key)",
            ),
            (
                "CREATE TABLE t (a TEXT DEFAULT now(), b INT DEFAULT f(g(1), 2) NOT NULL)",
                "CREATE TABLE t (a TEXT DEFAULT (NOW()), b INT DEFAULT (F(G(1), 2)) NOT NULL)",
            ),
            ("CREATE OR REPLACE VIEW v AS SELECT a;", "CREATE  VIEW v AS SELECT A;"),
            ("create table t as select a", "create table t as SELECT A"),
            (
                "create table t (a int default -1 null, b text default 'x'::text, check (a > 0))",
                "create table t (a int default -1 null, b text default ('X'::TEXT), check (A > 0))",
            ),
            ("create index i on t using btree (f(a), b) where c", "create index i on t  (F(A), B) where C"),
            (
                "alter table t alter a type int using f(a, 1), add b int",
                "alter table t alter a type int using F(A, 1), add b int",
            ),
            (
                "alter table t alter a set default a || b, alter b drop default",
                "alter table t alter a set default (A || B), alter b drop default",
            ),
            (
                "CREATE TABLE t (a INT GENERATED ALWAYS AS (b + 1), b INT DEFAULT (1))",
                "CREATE TABLE t (a INT GENERATED ALWAYS AS (B + 1), b INT DEFAULT (1))",
            ),
        ] {
            let found = prepared(sql).unwrap();
            assert_eq!(
                found.split_whitespace().collect::<Vec<_>>(),
                expected.split_whitespace().collect::<Vec<_>>()
            );
        }
        let refused = prepared("CREATE TABLE t (a INT GENERATED ALWAYS AS IDENTITY (START WITH 9))");
        assert_eq!(refused.unwrap_err().state, "0A000");
    }
}
