//! Schemas, which SQLite does not have: a name with one becomes the name under which SQLite knows the object.
//!
//! `pg_catalog.`, `public.`, `sqlcached.` of the built-in table, and `OPERATOR(...)` go. `information_schema.` is
//! joined with the name behind it. Collations that change nothing are left out. The tokens that stay keep their places,
//! so places in errors are right.

use std::ops::Range;

use pgcatalog::system;
use sqltext::error::{SqlError, state};
use sqltext::token::{self, Kind, Token, unquoted};

/// Collations that compare text by its bytes, as everything here does.
const BYTEWISE: &[&str] = &["default", "C", "POSIX", "ucs_basic", "C.UTF-8"];
/// Words behind which a table's name stands.
const BEFORE_TABLES: &[&str] = &["FROM", "JOIN", "INTO", "UPDATE", "TABLE"];
/// Schemas that can be named.
const SCHEMAS: &[&str] = &["main", "public", "pg_catalog", "information_schema"];

/// Some tokens that become another one, or nothing.
struct Edit {
    tokens: Range<usize>,
    name: Option<&'static str>,
}

/// The tokens of a text without schemas.
pub fn tokens(sql: &str) -> Result<Vec<Token<'_>>, SqlError> {
    resolved(sql).map(|(tokens, _)| tokens)
}

/// The same, and whether the text has others.
pub(super) fn resolved(sql: &str) -> Result<(Vec<Token<'_>>, bool), SqlError> {
    let mut tokens = token::tokens(sql);
    let edits = edits(sql, &tokens)?;
    let changed = !edits.is_empty();
    for Edit { tokens: range, name } in edits.into_iter().rev() {
        let first = tokens[range.start];
        let joined = name.map(|text| Token { kind: Kind::Word, text, ..first });
        tokens.splice(range, joined);
    }
    Ok((tokens, changed))
}

/// What becomes of a text's tokens, in their order.
fn edits(sql: &str, tokens: &[Token<'_>]) -> Result<Vec<Edit>, SqlError> {
    let mut edits = Edits { sql, tokens, all: Vec::new() };
    // A table may be called like the schema; then what stands before a point is that table.
    let table_public = tokens.iter().enumerate().any(|(at, token)| {
        is_name(token, "public") && !tokens.get(at + 1).is_some_and(|next| next.is_sign("."))
    });
    let mut calls = Calls::default();
    for at in 0..tokens.len() {
        let rest = &tokens[at..];
        calls.pass(tokens, at);
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        match rest {
            [collate, ..] if collate.is("COLLATE") => edits.collation(at),
            [word, open, ..] if word.is("OPERATOR") && open.is_sign("(") => edits.operator(at),
            _ => {}
        }
        let [schema, point, _, ..] = rest else { continue };
        if !point.is_sign(".") || before.is_some_and(|before| before.is_sign(".")) {
            continue;
        }
        let own = is_name(schema, "sqlcached") && is_name(&rest[2], store::BUILT_IN);
        if own || is_name(schema, "pg_catalog") || (is_name(schema, "public") && !table_public) {
            edits.leave_out(at..at + 2);
        } else if is_name(schema, "information_schema") {
            edits.join(at)?;
        } else if !is_distinct_from(tokens, at)
            && !calls.takes_from()
            && before.is_some_and(|before| before.is_any(BEFORE_TABLES))
        {
            check_schema(sql, schema)?;
        }
    }
    edits.all.sort_by_key(|edit| edit.tokens.start);
    Ok(edits.all)
}

/// The changes under way; those that overlap an earlier one are part of it.
struct Edits<'t, 'a> {
    sql: &'t str,
    tokens: &'t [Token<'a>],
    all: Vec<Edit>,
}

impl Edits<'_, '_> {
    fn add(&mut self, tokens: Range<usize>, name: Option<&'static str>) {
        if !self.all.iter().any(|known| known.tokens.start < tokens.end && tokens.start < known.tokens.end) {
            self.all.push(Edit { tokens, name });
        }
    }

    fn leave_out(&mut self, tokens: Range<usize>) {
        self.add(tokens, None);
    }

    /// `information_schema.tables` is registered as `information_schema_tables`; its functions have no schema.
    fn join(&mut self, at: usize) -> Result<(), SqlError> {
        let name = unquoted(self.tokens[at + 2].text);
        let after = self.tokens.get(at + 3);
        if let Some(registered) = system::information_table(&name) {
            self.add(at..at + 3, Some(registered));
            Ok(())
        } else if after.is_some_and(|after| after.is_sign("(") || after.is_sign("::")) {
            self.leave_out(at..at + 2);
            Ok(())
        } else {
            let message = format!("relation \"information_schema.{name}\" does not exist");
            Err(SqlError::new(state::UNKNOWN_TABLE, message).at(self.sql, self.tokens[at].start))
        }
    }

    /// `OPERATOR(pg_catalog.~)` is `~`.
    fn operator(&mut self, at: usize) {
        let close = self.tokens[at..].iter().position(|token| token.is_sign(")"));
        if let Some(close) = close {
            self.leave_out(at..at + 2);
            self.leave_out(at + close..at + close + 1);
        }
    }

    fn collation(&mut self, at: usize) {
        let name = match &self.tokens[at + 1..] {
            [schema, point, _, ..] if is_name(schema, "pg_catalog") && point.is_sign(".") => at + 3,
            [_, ..] => at + 1,
            [] => return,
        };
        if BYTEWISE.iter().any(|known| is_name(&self.tokens[name], known)) {
            self.leave_out(at..name + 1);
        }
    }
}

/// Calls in which `FROM` stands between arguments.
const FROM_ARGUMENT: &[&str] = &["EXTRACT", "TRIM", "SUBSTRING", "OVERLAY"];

/// The parentheses that are open, and whether each is of a call in which `FROM` names no table.
#[derive(Default)]
struct Calls {
    open: Vec<bool>,
}

impl Calls {
    /// Goes past the token at this place.
    fn pass(&mut self, tokens: &[Token<'_>], at: usize) {
        let token = &tokens[at];
        if token.is_sign("(") {
            let word = at.checked_sub(1).and_then(|before| tokens.get(before));
            self.open.push(word.is_some_and(|word| word.is_any(FROM_ARGUMENT)));
        } else if token.is_sign(")") {
            self.open.pop();
        }
    }

    /// Whether a `FROM` here stands between the arguments of a call. A query among them has parentheses of its own.
    fn takes_from(&self) -> bool {
        self.open.last().copied().unwrap_or(false)
    }
}

/// Whether the name at a place stands behind `IS DISTINCT FROM`.
fn is_distinct_from(tokens: &[Token<'_>], at: usize) -> bool {
    at.checked_sub(2).and_then(|before| tokens.get(before)).is_some_and(|token| token.is("DISTINCT"))
}

fn check_schema(sql: &str, schema: &Token<'_>) -> Result<(), SqlError> {
    let name = unquoted(schema.text);
    if matches!(schema.kind, Kind::Word | Kind::Quoted)
        && !SCHEMAS.iter().any(|known| known.eq_ignore_ascii_case(&name))
    {
        return Err(SqlError::new(state::UNKNOWN_SCHEMA, format!("schema \"{name}\" does not exist"))
            .at(sql, schema.start));
    }
    Ok(())
}

fn is_name(token: &Token<'_>, name: &str) -> bool {
    match token.kind {
        Kind::Word => token.text.eq_ignore_ascii_case(name),
        Kind::Quoted => unquoted(token.text) == name,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_go() {
        for (sql, expected) in [
            ("SELECT 1", "SELECT 1"),
            ("FROM pg_catalog.pg_class c", "FROM pg_class c"),
            ("FROM \"pg_catalog\".\"pg_class\"", "FROM \"pg_class\""),
            ("FROM public.t JOIN Public.u", "FROM t JOIN u"),
            ("SELECT public.a FROM t AS public", "SELECT public.a FROM t AS public"),
            ("FROM sqlcached.memcached m JOIN \"sqlcached\".memcached", "FROM memcached m JOIN memcached"),
            ("FROM information_schema.tables t", "FROM information_schema_tables t"),
            ("FROM information_schema.\"Columns\"", "FROM information_schema_columns"),
            ("SELECT information_schema._pg_expandarray(a)", "SELECT _pg_expandarray(a)"),
            ("a OPERATOR(pg_catalog.~) 'x' COLLATE pg_catalog.default AND b", "a ~ 'x' AND b"),
            ("a OPERATOR(pg_catalog.!~~) 'x' COLLATE \"C\"", "a !~~ 'x'"),
            ("a COLLATE NOCASE", "a COLLATE NOCASE"),
            ("a::pg_catalog.text", "a:: text"),
            ("a IS DISTINCT FROM s.b", "a IS DISTINCT FROM s.b"),
            ("'pg_catalog.x' -- pg_catalog.y", "'pg_catalog.x' -- pg_catalog.y"),
            ("SELECT t.a FROM main.t", "SELECT t.a FROM main.t"),
            (
                "extract(year FROM t.a), trim(BOTH 'x' FROM \"t\".\"a\")",
                "extract(year FROM t.a), trim(BOTH 'x' FROM \"t\".\"a\")",
            ),
            ("SUBSTRING (s.a FROM s.b FOR 2) FROM public.t", "SUBSTRING (s.a FROM s.b FOR 2) FROM t"),
        ] {
            let texts =
                |tokens: Vec<Token<'_>>| tokens.iter().map(|token| token.text.to_owned()).collect::<Vec<_>>();
            assert_eq!(texts(tokens(sql).unwrap()), texts(token::tokens(expected)), "{sql}");
        }
    }

    #[test]
    fn unknown_schemas_and_views_are_refused() {
        let error = tokens("SELECT 1 FROM information_schema.frob").unwrap_err();
        assert_eq!((error.state, error.position), ("42P01", Some(15)));
        let error = tokens("DELETE FROM other.t").unwrap_err();
        assert_eq!((error.state, error.position), ("3F000", Some(13)));
        let error = tokens("SELECT extract(year FROM (SELECT at FROM other.t))").unwrap_err();
        assert_eq!((error.state, error.position), ("3F000", Some(42)));
    }
}
