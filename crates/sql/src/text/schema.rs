//! Schemas, which SQLite does not have: a name with one becomes the name under which SQLite knows the object.
//!
//! Every change keeps the length of the text, so that positions in errors stay right.

use std::borrow::Cow;

use pgcatalog::system;

use super::token::{Kind, Token, Tokens, unquoted};
use crate::error::{SqlError, state};

/// Collations that compare text by its bytes, as everything here does.
const BYTEWISE: &[&str] = &["default", "C", "POSIX", "ucs_basic", "C.UTF-8"];
/// Words behind which a table's name stands.
const BEFORE_TABLES: &[&str] = &["FROM", "JOIN", "INTO", "UPDATE", "TABLE"];
/// Schemas that can be named.
const SCHEMAS: &[&str] = &["main", "public", "pg_catalog", "information_schema"];

/// What `SHOW EXPIRY RULES` is.
const SHOWN: &str = "SELECT rule_name, table_name, condition, every, runs, rows, errors, last_error \
     FROM sqlcached_expiry_rules ORDER BY rule_name";

/// The query that `SHOW EXPIRY RULES` stands for, if that is what a text is.
fn shown(sql: &str) -> Option<&'static str> {
    let mut tokens = Tokens::new(sql).filter(|token| !token.is_sign(";"));
    let words = ["SHOW", "EXPIRY", "RULES"];
    let all = words.iter().all(|word| tokens.next().is_some_and(|token| token.is(word)));
    (all && tokens.next().is_none()).then_some(SHOWN)
}

/// Takes `pg_catalog.`, `public.` and `OPERATOR(...)` away, joins `information_schema.` with the name behind it, and
/// leaves out collations that change nothing. `SHOW EXPIRY RULES` becomes the query that it stands for.
pub(crate) fn resolved(sql: &str) -> Result<Cow<'_, str>, SqlError> {
    if let Some(query) = shown(sql) {
        return Ok(Cow::Borrowed(query));
    }
    let tokens: Vec<Token<'_>> = Tokens::new(sql).collect();
    let mut text = Blanked { sql, out: None };
    // A table may be called like the schema; then what stands before a point is that table.
    let table_public = tokens.iter().enumerate().any(|(at, token)| {
        is_name(token, "public") && !tokens.get(at + 1).is_some_and(|next| next.is_sign("."))
    });
    let mut calls = Calls::default();
    for at in 0..tokens.len() {
        let rest = &tokens[at..];
        calls.pass(&tokens, at);
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        if let [collate, name @ ..] = rest
            && collate.is("COLLATE")
        {
            text.blank_collation(collate, name);
        }
        if let [word, open, inner @ ..] = rest
            && word.is("OPERATOR")
            && open.is_sign("(")
        {
            text.blank_operator(word, open, inner);
        }
        let [schema, point, name, ..] = rest else { continue };
        if !point.is_sign(".") || before.is_some_and(|before| before.is_sign(".")) {
            continue;
        }
        if is_name(schema, "pg_catalog") || (is_name(schema, "public") && !table_public) {
            text.blank(schema.start, point.end());
        } else if is_name(schema, "information_schema") {
            text.join(schema, name, rest.get(3))?;
        } else if !is_distinct_from(&tokens, at)
            && !calls.takes_from()
            && before.is_some_and(|before| BEFORE_TABLES.iter().any(|word| before.is(word)))
        {
            check_schema(sql, schema)?;
        }
    }
    Ok(text.out.map_or(Cow::Borrowed(sql), Cow::Owned))
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
            self.open.push(word.is_some_and(|word| FROM_ARGUMENT.iter().any(|known| word.is(known))));
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

/// The text under way, copied when it first changes.
struct Blanked<'a> {
    sql: &'a str,
    out: Option<String>,
}

impl Blanked<'_> {
    fn replace(&mut self, start: usize, end: usize, with: &str) {
        let padded = format!("{with:<width$}", width = end - start);
        self.out.get_or_insert_with(|| self.sql.to_owned()).replace_range(start..end, &padded);
    }

    fn blank(&mut self, start: usize, end: usize) {
        self.replace(start, end, "");
    }

    /// `information_schema.tables` is registered as `information_schema_tables`; its functions have no schema.
    fn join(
        &mut self,
        schema: &Token<'_>,
        name: &Token<'_>,
        after: Option<&Token<'_>>,
    ) -> Result<(), SqlError> {
        let registered = format!("information_schema_{}", unquoted(name.text).to_ascii_lowercase());
        if system::is_table(&registered) {
            self.replace(schema.start, name.end(), &registered);
            Ok(())
        } else if after.is_some_and(|after| after.is_sign("("))
            || after.is_some_and(|after| after.is_sign("::"))
        {
            self.blank(schema.start, name.start);
            Ok(())
        } else {
            let message = format!("relation \"information_schema.{}\" does not exist", unquoted(name.text));
            Err(SqlError::new(state::UNKNOWN_TABLE, message).at(self.sql, schema.start))
        }
    }

    /// `OPERATOR(pg_catalog.~)` is `~`.
    fn blank_operator(&mut self, word: &Token<'_>, open: &Token<'_>, inner: &[Token<'_>]) {
        if let Some(close) = inner.iter().find(|token| token.is_sign(")")) {
            self.blank(word.start, open.end());
            self.blank(close.start, close.end());
        }
    }

    fn blank_collation(&mut self, collate: &Token<'_>, name: &[Token<'_>]) {
        let name = match name {
            [schema, point, name, ..] if is_name(schema, "pg_catalog") && point.is_sign(".") => name,
            [name, ..] => name,
            [] => return,
        };
        if BYTEWISE.iter().any(|known| is_name(name, known)) {
            self.blank(collate.start, name.end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_go_and_positions_stay() {
        for (sql, expected) in [
            ("SELECT 1", "SELECT 1"),
            ("FROM pg_catalog.pg_class c", "FROM pg_class c"),
            ("FROM \"pg_catalog\".\"pg_class\"", "FROM \"pg_class\""),
            ("FROM public.t JOIN Public.u", "FROM t JOIN u"),
            ("SELECT public.a FROM t AS public", "SELECT public.a FROM t AS public"),
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
            let found = resolved(sql).unwrap();
            assert_eq!(found.len(), sql.len());
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(words(&found), words(expected), "{sql}");
        }
    }

    #[test]
    fn unknown_schemas_and_views_are_refused() {
        let error = resolved("SELECT 1 FROM information_schema.frob").unwrap_err();
        assert_eq!((error.state, error.position), ("42P01", Some(15)));
        let error = resolved("DELETE FROM other.t").unwrap_err();
        assert_eq!((error.state, error.position), ("3F000", Some(13)));
        let error = resolved("SELECT extract(year FROM (SELECT at FROM other.t))").unwrap_err();
        assert_eq!((error.state, error.position), ("3F000", Some(42)));
    }

    #[test]
    fn showing_rules_is_a_query() {
        assert_eq!(shown(" show expiry RULES ;"), Some(SHOWN));
        assert_eq!(shown("SHOW EXPIRY RULES FOR t"), None);
    }
}
