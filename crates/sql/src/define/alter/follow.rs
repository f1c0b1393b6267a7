//! Views that follow when what they read gets another name.
//!
//! A view is kept as text. Where that says without doubt which of its words mean the table or the column, they are
//! replaced; otherwise the change is refused, as the caller does.

use std::sync::Arc;

use dialect::lateral::LATERAL;
use store::Catalog;
use store::definition::{ViewDef, qualified};

use crate::compute::mentions;
use crate::core::Core;
use crate::define::Undo;
use crate::define::written::{Level, follow, names_of_with};
use crate::error::SqlError;
use crate::text::token::{Kind, Token, quoted_name, tokens, unquoted};

/// Words behind the name of a table that are no other name for it.
const NO_ALIAS: &[&str] = &[
    "CROSS",
    "INNER",
    "JOIN",
    "LEFT",
    "RIGHT",
    "FULL",
    "NATURAL",
    "ON",
    "USING",
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
    "INDEXED",
    "NOT",
    "TABLESAMPLE",
    "LATERAL",
];

/// Words behind which a name is another name for something.
const GROUPS: &[&str] = &["GROUP", "ORDER", "HAVING", "WINDOW", "DISTINCT"];

/// A table or view, by its schema and its own name.
pub(in crate::define) struct Relation<'r> {
    pub(in crate::define) namespace: Option<&'r str>,
    pub(in crate::define) own: &'r str,
}

impl Relation<'_> {
    fn registered(&self) -> String {
        qualified(self.namespace, self.own)
    }
}

/// Views that read a relation, as they are when it has another name; `None`: it is not sure what one of them means.
pub(in crate::define) fn of_relation(
    core: &Core,
    before: &Relation<'_>,
    after: &Relation<'_>,
) -> Option<Vec<ViewDef>> {
    let catalog = core.store.catalog();
    let old = before.registered();
    let readers = catalog.views().filter(|view| !view.name.eq_ignore_ascii_case(&old));
    let readers = readers.filter(|view| mentions(&view.sql, &old) || mentions(&view.sql, before.own));
    let changed = |view: &Arc<ViewDef>| -> Option<ViewDef> {
        let sql = relation_renamed(&view.sql, before, &quoted_name(&after.registered()))?;
        let schema = after.namespace.unwrap_or("public");
        let shown = format!("{}.{}", quoted_name(schema), quoted_name(after.own));
        let written = relation_renamed(&view.written, before, &shown)?;
        Some(ViewDef { sql, written, ..ViewDef::clone(view) })
    };
    readers.map(changed).collect()
}

/// A query in which a relation is called by this text.
fn relation_renamed(sql: &str, before: &Relation<'_>, to: &str) -> Option<String> {
    let all = tokens(sql);
    let names = names_of_with(&all);
    let given = |name: &str| names.contains(&name.to_lowercase());
    if given(before.own) || given(&before.registered()) || all.iter().any(|token| token.is(LATERAL)) {
        // Names that `WITH` gives, and queries in texts.
        return None;
    }
    let (mut out, mut copied) = (String::new(), 0);
    let mut levels = vec![Level::default()];
    let mut at = 0;
    while at < all.len() {
        let parts = if expects_table(&levels, &all, at) { parts_of(&all, at) } else { 1 };
        let named = &all[at..at + parts];
        if expects_table(&levels, &all, at) && is_relation(named, before) {
            let called = all.get(at + parts).is_some_and(is_alias);
            let alias = if called { String::new() } else { format!(" AS {}", quoted_name(before.own)) };
            out.push_str(&sql[copied..all[at].start]);
            out.push_str(to);
            out.push_str(&alias);
            copied = named.last()?.end();
        } else if at > 0 && all[at - 1].is("IN") && is_relation(&all[at..=at], before) {
            return None;
        }
        (at..at + parts).for_each(|at| follow(&mut levels, &all, at));
        at += parts;
    }
    out.push_str(&sql[copied..]);
    Some(out)
}

fn expects_table(levels: &[Level], all: &[Token<'_>], at: usize) -> bool {
    let name = matches!(all[at].kind, Kind::Word | Kind::Quoted) && !all[at].is_any(&["ONLY", "LATERAL"]);
    name && levels.last().is_some_and(|level| level.expects_table())
}

/// How many tokens a name has, its schema included.
fn parts_of(all: &[Token<'_>], at: usize) -> usize {
    let mut parts = 1;
    while all.get(at + parts).is_some_and(|point| point.is_sign(".")) && all.len() > at + parts + 1 {
        parts += 2;
    }
    parts
}

fn is_relation(named: &[Token<'_>], relation: &Relation<'_>) -> bool {
    let parts: Vec<String> = named.iter().step_by(2).map(|token| unquoted(token.text)).collect();
    let is = |name: &str, other: &str| name.eq_ignore_ascii_case(other);
    match &parts[..] {
        [name] => is(name, &relation.registered()),
        [.., schema, name] if is(schema, "main") => is(name, &relation.registered()),
        [.., schema, name] => is(schema, relation.namespace.unwrap_or("public")) && is(name, relation.own),
        [] => false,
    }
}

fn is_alias(token: &Token<'_>) -> bool {
    token.is("AS") || matches!(token.kind, Kind::Word | Kind::Quoted) && !token.is_any(NO_ALIAS)
}

/// A view of which a column that it reads is called otherwise; its own columns keep their names. `None`: it is not sure
/// what it means.
pub(in crate::define) fn of_column(
    catalog: &Catalog,
    view: &ViewDef,
    table: &str,
    (from, to): (&str, &str),
) -> Option<ViewDef> {
    let others = dialect::reads_of_view(catalog, &view.sql)?;
    let others = others.iter().filter(|name| !name.eq_ignore_ascii_case(table));
    for other in others {
        if has_column(catalog, other, from)? || has_column(catalog, other, to)? {
            return None;
        }
    }
    if view.shape.is_empty() {
        return None;
    }
    let columns = view.shape.iter().map(|column| column.name.clone()).collect();
    let sql = column_renamed(&view.sql, from, to)?;
    let written = column_renamed(&view.written, from, to)?;
    Some(ViewDef { columns, sql, written, ..view.clone() })
}

/// Whether a relation has a column of this name; `None`: that is not known.
fn has_column(catalog: &Catalog, relation: &str, name: &str) -> Option<bool> {
    if let Some(table) = catalog.table(relation) {
        return Some(table.def().column_index(name).is_some());
    }
    let view = catalog.view(relation).filter(|view| !view.shape.is_empty())?;
    Some(view.shape.iter().any(|column| column.name.eq_ignore_ascii_case(name)))
}

/// A query in which a column is called otherwise, wherever its name means a column.
fn column_renamed(sql: &str, from: &str, to: &str) -> Option<String> {
    let all = tokens(sql);
    if all.iter().any(|token| token.is(LATERAL)) || mentions(sql, to) {
        return None;
    }
    let groups = all.iter().any(|token| token.is_any(GROUPS));
    let (mut out, mut copied, mut depth) = (String::new(), 0, 0_usize);
    let (mut levels, mut table_end) = (vec![Level::default()], 0);
    for (at, token) in all.iter().enumerate() {
        if expects_table(&levels, &all, at) {
            table_end = at + parts_of(&all, at);
        }
        follow(&mut levels, &all, at);
        depth += usize::from(token.is_sign("("));
        depth = depth.saturating_sub(usize::from(token.is_sign(")")));
        let is_name = matches!(token.kind, Kind::Word | Kind::Quoted);
        if !is_name || at < table_end || !unquoted(token.text).eq_ignore_ascii_case(from) {
            continue;
        }
        match place_of(&all, at) {
            Place::Other => {}
            // A column of the result has its name by itself, unless something else speaks of it.
            Place::Alias if depth == 0 && !groups => {}
            Place::Alias => return None,
            Place::Column => {
                out.push_str(&sql[copied..token.start]);
                out.push_str(&quoted_name(to));
                copied = token.end();
            }
        }
    }
    out.push_str(&sql[copied..]);
    Some(out)
}

/// What a name is at its place.
enum Place {
    Column,
    /// A name that is given.
    Alias,
    /// A function, or a table before its column.
    Other,
}

fn place_of(all: &[Token<'_>], at: usize) -> Place {
    let next = |sign: &str| all.get(at + 1).is_some_and(|next| next.is_sign(sign));
    if next(".") || next("(") {
        return Place::Other;
    }
    let Some(before) = at.checked_sub(1).map(|before| &all[before]) else { return Place::Column };
    if before.is("AS") {
        return Place::Alias;
    }
    // Behind an operand stands an operator, or a name that it is given.
    let ends_operand = match before.kind {
        Kind::Sign => matches!(before.text, ")" | "]"),
        Kind::Word => before.is_any(&["END", "NULL", "TRUE", "FALSE"]) || !is_keyword(before),
        _ => true,
    };
    if ends_operand { Place::Alias } else { Place::Column }
}

/// Words behind which an operand begins.
fn is_keyword(token: &Token<'_>) -> bool {
    token.is_any(&[
        "SELECT", "DISTINCT", "ALL", "WHERE", "AND", "OR", "NOT", "ON", "HAVING", "BY", "CASE", "WHEN",
        "THEN", "ELSE", "IN", "LIKE", "ILIKE", "GLOB", "BETWEEN", "IS", "FROM", "ESCAPE", "USING", "COLLATE",
        "FILTER", "EXISTS", "ANY", "SOME",
    ])
}

/// Changes views to these.
pub(in crate::define) fn install(core: &Core, views: Vec<ViewDef>) -> Result<Vec<Undo>, SqlError> {
    let mut undo = Vec::with_capacity(views.len());
    for view in views {
        let name = view.name.clone();
        undo.push(change(core, &name, &mut |known| {
            let access = known.access.clone();
            *known = ViewDef { access, ..view.clone() };
        })?);
    }
    Ok(undo)
}

/// Changes a view, and says how it is taken back.
pub(in crate::define) fn change(
    core: &Core,
    name: &str,
    change: &mut dyn FnMut(&mut ViewDef),
) -> Result<Undo, SqlError> {
    let before = core.store.catalog().view(name).map(|view| ViewDef::clone(view));
    let before = before.ok_or_else(|| SqlError::unknown_table(name))?;
    let mut now = name.to_owned();
    core.store.alter_view(name, &mut |view| {
        change(view);
        now.clone_from(&view.name);
    })?;
    Ok(Undo::ViewAltered(now, Box::new(before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_renamed_where_they_are_read() {
        let (t, of_s) = (Relation { namespace: None, own: "t" }, Relation { namespace: Some("s"), own: "t" });
        for (relation, sql, expected) in [
            (&t, "SELECT t.a FROM t", Some("SELECT t.a FROM \"n\" AS \"t\"")),
            (&t, "SELECT x.t FROM t x JOIN u AS t ON 1", Some("SELECT x.t FROM \"n\" x JOIN u AS t ON 1")),
            (
                &t,
                "SELECT 1 FROM u, (SELECT a FROM t WHERE t = 1)",
                Some("SELECT 1 FROM u, (SELECT a FROM \"n\" AS \"t\" WHERE t = 1)"),
            ),
            (&t, "SELECT a FROM public.t ORDER BY t", Some("SELECT a FROM \"n\" AS \"t\" ORDER BY t")),
            (&t, "SELECT a FROM s.t", Some("SELECT a FROM s.t")),
            (
                &of_s,
                "SELECT a FROM s.t, \"s.t\" AS x, t",
                Some("SELECT a FROM \"n\" AS \"t\", \"n\" AS x, t"),
            ),
            (&t, "SELECT a IN t FROM u", None),
            (&t, "WITH t AS (SELECT 1) SELECT * FROM t", None),
        ] {
            assert_eq!(relation_renamed(sql, relation, "\"n\"").as_deref(), expected, "{sql}");
        }
    }

    #[test]
    fn columns_are_renamed_where_they_are_meant() {
        for (sql, expected) in [
            (
                "SELECT a, t.a + 1 FROM t WHERE a = 'a'",
                Some("SELECT \"n\", t.\"n\" + 1 FROM t WHERE \"n\" = 'a'"),
            ),
            ("SELECT upper(a) AS a FROM t", Some("SELECT upper(\"n\") AS a FROM t")),
            ("SELECT a(1), a.b FROM a", Some("SELECT a(1), a.b FROM a")),
            ("SELECT a FROM s.a, a AS x", Some("SELECT \"n\" FROM s.a, a AS x")),
            ("SELECT extract(year FROM a) FROM t", Some("SELECT extract(year FROM \"n\") FROM t")),
            ("SELECT q.a FROM (SELECT a FROM t) q", Some("SELECT q.\"n\" FROM (SELECT \"n\" FROM t) q")),
            ("SELECT upper(a) AS a FROM t ORDER BY a", None),
            ("SELECT q.a FROM (SELECT b AS a FROM t) q", None),
            ("SELECT b a FROM t WHERE a = 1 ORDER BY 1", None),
            ("SELECT a, n FROM t", None),
        ] {
            assert_eq!(column_renamed(sql, "a", "n").as_deref(), expected, "{sql}");
        }
    }
}
