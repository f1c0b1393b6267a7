//! A view's query as its maker wrote it, with the schemas that its names had then: so it means the same to whoever
//! reads it, and to who makes the view again.

use std::collections::HashSet;

use pgcatalog::identifier;
use sqltext::token::{Kind, Token, unquoted};
use store::Catalog;

/// Words that end the tables of a query.
const ENDS: &[&str] = &[
    "WHERE",
    "GROUP",
    "HAVING",
    "WINDOW",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "FETCH",
    "FOR",
    "UNION",
    "INTERSECT",
    "EXCEPT",
    "SELECT",
    "RETURNING",
    "SET",
];

/// What is known between two parentheses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Level {
    /// `SELECT` was there: `FROM` is no part of a call.
    query: bool,
    /// Between `FROM` and what ends it.
    tables: bool,
    /// A table's name comes next.
    expected: bool,
}

impl Level {
    /// Whether the name of a table comes next.
    pub(super) fn expects_table(self) -> bool {
        self.expected
    }
}

/// The text of a query with its tables and enum types in their schemas.
pub(super) fn qualified(catalog: &Catalog, sql: &str, tokens: &[Token<'_>]) -> String {
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return String::new() };
    let with = names_of_with(tokens);
    let (mut out, mut copied) = (String::new(), first.start);
    let mut levels = vec![Level::default()];
    for (at, token) in tokens.iter().enumerate() {
        let named = match levels.last_mut() {
            Some(&mut level) if is_table(level, tokens, at) => in_schema(catalog, token, &with),
            _ if at > 0 && tokens[at - 1].is_sign("::") => enum_in_schema(catalog, token),
            _ => None,
        };
        if let Some(named) = named {
            out.push_str(&sql[copied..token.start]);
            out.push_str(&named);
            copied = token.end();
        }
        follow(&mut levels, tokens, at);
    }
    out.push_str(&sql[copied..last.end()]);
    out
}

/// Whether a token is a table's name without a schema.
fn is_table(level: Level, tokens: &[Token<'_>], at: usize) -> bool {
    let follows = |sign: &str| tokens.get(at + 1).is_some_and(|next| next.is_sign(sign));
    let is_name = matches!(tokens[at].kind, Kind::Word | Kind::Quoted);
    level.expected && is_name && !tokens[at].is_any(&["ONLY", "LATERAL"]) && !follows(".") && !follows("(")
}

/// Follows the clauses of a query by one token.
pub(super) fn follow(levels: &mut Vec<Level>, tokens: &[Token<'_>], at: usize) {
    let token = &tokens[at];
    let Some(level) = levels.last_mut() else { return };
    if token.is_sign("(") {
        // Joins may stand in parentheses.
        let inner = Level { query: level.expected, tables: level.expected, expected: level.expected };
        level.expected = false;
        levels.push(inner);
    } else if token.is_sign(")") {
        levels.pop();
        if levels.is_empty() {
            levels.push(Level::default());
        }
    } else if token.is("FROM") {
        let compares = at > 0 && tokens[at - 1].is("DISTINCT");
        if level.query && !compares {
            (level.tables, level.expected) = (true, true);
        }
    } else if token.is("TABLE") {
        *level = Level { query: true, tables: true, expected: true };
    } else if token.is_any(ENDS) {
        *level = Level { query: level.query || token.is("SELECT"), tables: false, expected: false };
    } else if token.is("JOIN") || token.is_sign(",") {
        level.expected = level.tables;
    } else if !token.is_any(&["ONLY", "LATERAL"]) {
        level.expected = false;
    }
}

/// The names that `WITH` gives.
pub(super) fn names_of_with(tokens: &[Token<'_>]) -> HashSet<String> {
    let named = tokens.windows(2).enumerate().filter(|(_, pair)| {
        matches!(pair[0].kind, Kind::Word | Kind::Quoted) && (pair[1].is("AS") || pair[1].is_sign("("))
    });
    let is_query = |at: usize| {
        let rest = tokens.get(at + 1..).unwrap_or_default();
        let close = if rest.first().is_some_and(|token| token.is_sign("(")) {
            rest.iter().position(|token| token.is_sign(")")).map_or(rest.len(), |close| close + 1)
        } else {
            0
        };
        let rest = rest.get(close..).unwrap_or_default();
        let words = rest.iter().skip(1).find(|token| !token.is_any(&["NOT", "MATERIALIZED"]));
        rest.first().is_some_and(|token| token.is("AS")) && words.is_some_and(|token| token.is_sign("("))
    };
    named.filter(|(at, _)| is_query(*at)).map(|(_, pair)| folded(&pair[0])).collect()
}

/// A name as it counts.
fn folded(token: &Token<'_>) -> String {
    if token.kind == Kind::Quoted { unquoted(token.text) } else { token.text.to_lowercase() }
}

fn in_schema(catalog: &Catalog, token: &Token<'_>, with: &HashSet<String>) -> Option<String> {
    let name = folded(token);
    if with.contains(&name) || name == store::BUILT_IN {
        return None;
    }
    let is = |catalog: &Catalog, name: &str| catalog.table(name).is_some() || catalog.view(name).is_some();
    let found = catalog.found_name(&name, is);
    let table =
        catalog.table(&found).map(|table| shown(table.def().namespace.as_deref(), table.def().own_name()));
    let view = || catalog.view(&found).map(|view| shown(view.namespace.as_deref(), view.own_name()));
    table.or_else(view)
}

fn enum_in_schema(catalog: &Catalog, token: &Token<'_>) -> Option<String> {
    if !matches!(token.kind, Kind::Word | Kind::Quoted) {
        return None;
    }
    let found = catalog.found_name(&folded(token), |catalog, name| catalog.enumeration(name).is_some());
    let own = catalog.enumeration(&found)?;
    Some(shown(own.namespace.as_deref(), own.own_name()))
}

fn shown(namespace: Option<&str>, name: &str) -> String {
    format!("{}.{}", identifier(namespace.unwrap_or("public")), identifier(name))
}

#[cfg(test)]
mod tests {
    use store::definition::{ColumnDef, TableDef};
    use store::{Clock, Store, StoreOptions};

    use super::*;
    use crate::text::token::tokens;

    #[test]
    fn tables_are_named_in_their_schemas() {
        let options = StoreOptions {
            path: None,
            memory_bytes: 64 << 20,
            cold: true,
            clock: Clock::System,
            row_bytes_max: 4 << 20,
        };
        let store = Store::open(&options).unwrap().store;
        for name in ["t", "u"] {
            let column = ColumnDef::new("a", "INT").unwrap();
            store.create_table(TableDef::new(name, vec![column], vec![0])).unwrap();
        }
        let catalog = store.catalog();
        for (sql, expected) in [
            ("SELECT t.a FROM t", "SELECT t.a FROM public.t"),
            ("SELECT a, u FROM T AS u, u t", "SELECT a, u FROM public.t AS u, public.u t"),
            (
                "SELECT 1 FROM (t JOIN u ON t.a = u.a), s.t",
                "SELECT 1 FROM (public.t JOIN public.u ON t.a = u.a), s.t",
            ),
            ("TABLE t UNION TABLE u", "TABLE public.t UNION TABLE public.u"),
            ("SELECT extract(day FROM t) FROM \"u\"", "SELECT extract(day FROM t) FROM public.u"),
            ("SELECT a IS DISTINCT FROM t, t FROM u", "SELECT a IS DISTINCT FROM t, t FROM public.u"),
            (
                "WITH t AS (SELECT 1 FROM u) SELECT t FROM t",
                "WITH t AS (SELECT 1 FROM public.u) SELECT t FROM t",
            ),
            (
                "SELECT (SELECT a FROM t) FROM nowhere, t(1)",
                "SELECT (SELECT a FROM public.t) FROM nowhere, t(1)",
            ),
        ] {
            assert_eq!(qualified(&catalog, sql, &tokens(sql)), expected);
        }
    }
}
