//! `(a, b) IN (SELECT ...)`.
//!
//! SQLite offers a virtual table each part of it as an equality, and compares what comes back with a value that has
//! lost the type of its column: text that reads as a number then misses that number. Where that may be, the condition
//! is kept from the planner: a unary plus stands before it, and the subquery is looked up row by row. Where no text
//! meets a number the parts stay, and an index serves them.

use std::ops::Range;

use store::Catalog;
use store::definition::ColumnKind;

use super::Edit;
use super::piece::may_be_column;
use super::scope::{Text, is_name};
use crate::text::token::{Kind, unquoted};

/// Words of a subquery that say nothing of types.
const PLAIN: &[&str] = &[
    "SELECT", "VALUES", "FROM", "WHERE", "AND", "OR", "NOT", "NULL", "IS", "IN", "DISTINCT", "ALL", "AS",
    "ORDER", "BY", "LIMIT", "OFFSET", "ASC", "DESC", "UNION", "BETWEEN", "LIKE", "GLOB",
];
/// Words that stand before an operand; any other before a parenthesis is a function.
const BEFORE: &[&str] = &[
    "WHERE", "AND", "OR", "NOT", "ON", "HAVING", "WHEN", "THEN", "ELSE", "CASE", "SELECT", "BY", "DISTINCT",
    "ALL", "IS",
];

/// Puts a plus before each such condition that might miss rows.
pub(super) fn edit(catalog: &Catalog, text: &Text<'_>, edits: &mut Vec<Edit>) {
    for at in 0..text.tokens.len() {
        if let Some((begin, end)) = membership(text, at)
            && may_miss(catalog, text, begin, at + 1)
        {
            edits.push(Edit::insert(text.tokens[begin].start, "+("));
            edits.push(Edit::insert(text.tokens[end].end(), ")"));
        }
    }
}

/// Whether a text has what this module is for.
pub(super) fn concerns(text: &Text<'_>) -> bool {
    (0..text.tokens.len()).any(|at| membership(text, at).is_some())
}

/// Where a membership of a row begins and ends whose `IN` is this token.
fn membership(text: &Text<'_>, at: usize) -> Option<(usize, usize)> {
    if !text.tokens[at].is("IN") {
        return None;
    }
    let before = at.checked_sub(1)?;
    let close = if text.tokens[before].is("NOT") { before.checked_sub(1)? } else { before };
    let open = text.opening(close)?;
    let calls = open.checked_sub(1).is_some_and(|before| {
        let token = &text.tokens[before];
        is_name(token) && !BEFORE.iter().any(|word| token.is(word))
    });
    let row = text.tokens[open..close].iter().any(|token| token.is_sign(","));
    let end = right_side(text, at + 1)?;
    (row && !calls).then_some((open, end))
}

/// The last token of what stands behind `IN`: a list or subquery, a table, a function of rows.
fn right_side(text: &Text<'_>, at: usize) -> Option<usize> {
    let sign = |at: usize, sign: &str| text.tokens.get(at).is_some_and(|token| token.is_sign(sign));
    let mut last = at;
    if is_name(text.tokens.get(at)?) {
        if sign(at + 1, ".") {
            last = at + 2;
        }
        if !sign(last + 1, "(") {
            return text.tokens.get(last).map(|_| last);
        }
        last += 1;
    }
    let close = if sign(last, "(") { text.closing(last) } else { return None };
    (close < text.tokens.len()).then_some(close)
}

/// Whether text in a part of the row may meet a number in the same part of what it is looked for in.
fn may_miss(catalog: &Catalog, text: &Text<'_>, row: usize, query: usize) -> bool {
    let parts = parts(text, row + 1..text.closing(row));
    let columns = columns(text, query).filter(|columns| columns.len() == parts.len());
    let mut texts =
        parts.into_iter().enumerate().filter(|(_, part)| !is_textless(catalog, text, part.clone()));
    if let Some(columns) = columns {
        return texts.any(|(at, _)| !is_numberless(catalog, text, query, columns[at].clone()));
    }
    let whole = query + 1..text.closing(query).min(text.tokens.len());
    texts.next().is_some() && !is_numberless(catalog, text, query, whole)
}

/// The parts of a list, between its commas.
fn parts(text: &Text<'_>, tokens: Range<usize>) -> Vec<Range<usize>> {
    let (mut parts, mut begin, mut at) = (Vec::new(), tokens.start, tokens.start);
    while at < tokens.end {
        if text.tokens[at].is_sign(",") {
            parts.push(begin..at);
            begin = at + 1;
        }
        at = if text.tokens[at].is_sign("(") { text.closing(at) } else { at } + 1;
    }
    parts.push(begin..tokens.end);
    parts
}

/// The columns of a plain `SELECT` in these parentheses.
fn columns(text: &Text<'_>, open: usize) -> Option<Vec<Range<usize>>> {
    let inner = open + 1..text.closing(open).min(text.tokens.len());
    let compound = inner
        .clone()
        .any(|at| ["UNION", "EXCEPT", "INTERSECT", "DISTINCT"].iter().any(|word| text.tokens[at].is(word)));
    if compound || !text.tokens.get(inner.start)?.is("SELECT") {
        return None;
    }
    let mut at = inner.start + 1;
    while at < inner.end && !text.tokens[at].is("FROM") {
        at = if text.tokens[at].is_sign("(") { text.closing(at) } else { at } + 1;
    }
    Some(parts(text, inner.start + 1..at))
}

/// Whether a part of the row is a column that is neither text nor anything: numbers and bytes stay what they are.
fn is_textless(catalog: &Catalog, text: &Text<'_>, tokens: Range<usize>) -> bool {
    tokens.into_iter().all(|at| match text.tokens[at].kind {
        Kind::Sign => matches!(text.tokens[at].text, "(" | "."),
        Kind::Word | Kind::Quoted => {
            let qualifier = text.tokens.get(at + 1).is_some_and(|next| next.is_sign("."));
            let textless = |kinds: Vec<ColumnKind>| kinds.iter().all(|kind| !holds_text(*kind));
            qualifier || kinds(catalog, text, at).is_some_and(textless)
        }
        _ => false,
    })
}

/// Whether these tokens of a query have no column that is a number.
fn is_numberless(catalog: &Catalog, text: &Text<'_>, open: usize, tokens: Range<usize>) -> bool {
    let queries = text.tokens.get(open + 1).is_some_and(|token| token.is("SELECT") || token.is("VALUES"));
    let plain = |at: usize| {
        let token = &text.tokens[at];
        match token.kind {
            Kind::Sign => token.text != "*",
            Kind::Word if PLAIN.iter().any(|word| token.is(word)) => true,
            Kind::Word | Kind::Quoted if !may_be_column(text, at) => !token.is("CAST"),
            Kind::Word | Kind::Quoted => {
                let numberless = |kinds: Vec<ColumnKind>| kinds.iter().all(|kind| !is_number(*kind));
                catalog.table(&unquoted(token.text)).is_some()
                    || kinds(catalog, text, at).is_some_and(numberless)
            }
            _ => true,
        }
    };
    queries && tokens.into_iter().all(plain)
}

fn holds_text(kind: ColumnKind) -> bool {
    matches!(kind, ColumnKind::Text | ColumnKind::Any)
}

fn is_number(kind: ColumnKind) -> bool {
    matches!(kind, ColumnKind::Integer | ColumnKind::Real | ColumnKind::Numeric)
}

/// The kinds of all columns of this name; `None` where no table has one.
fn kinds(catalog: &Catalog, text: &Text<'_>, at: usize) -> Option<Vec<ColumnKind>> {
    let name = unquoted(text.tokens[at].text);
    let of_table = |table: &std::sync::Arc<store::Table>| {
        let def = table.def();
        def.column_index(&name).map(|column| def.columns[column].kind)
    };
    let kinds: Vec<ColumnKind> = catalog.tables().filter_map(of_table).collect();
    (!kinds.is_empty()).then_some(kinds)
}
