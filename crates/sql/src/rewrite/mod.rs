//! What a query says that SQLite cannot ask a virtual table, in words that it can.
//!
//! A text of SQLite's dialect is rewritten just before it is compiled. Some of it must be: [`indexed`] and
//! [`row_values`] change what the text would do. The rest only makes it faster ([`expression`]), and is left out where
//! it does not compile.

mod expression;
mod indexed;
mod piece;
mod row_values;
mod scope;

use store::Catalog;

use crate::error::SqlError;
use crate::limits::REWRITTEN_BYTES_MAX;
use crate::text::token::Tokens;
use scope::Text;

pub(crate) use indexed::Forced;
pub(crate) use piece::same_expression;

/// A change of the text.
#[derive(Debug)]
struct Edit {
    from: usize,
    to: usize,
    text: String,
}

impl Edit {
    fn replace(from: usize, to: usize, text: String) -> Self {
        Self { from, to, text }
    }

    fn insert(at: usize, text: impl Into<String>) -> Self {
        Self { from: at, to: at, text: text.into() }
    }
}

/// The same statement in other words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Rewritten {
    /// With what must be rewritten; `None`: nothing.
    pub(crate) needed: Option<String>,
    /// That, and what brings indexes of expressions and of some rows into play. It is sound where the other compiles: a
    /// name that could be two columns is an error there, and is taken for one of them here.
    pub(crate) better: Option<String>,
}

/// Whether a text names an index: SQLite knows none of ours.
pub(crate) fn asks_for_index(sql: &str) -> bool {
    Tokens::new(sql).any(|token| token.is("INDEXED"))
}

/// Rewrites a text for the tables of this catalogue.
pub(crate) fn rewritten(catalog: &Catalog, sql: &str) -> Result<Rewritten, SqlError> {
    let hidden = catalog.tables().any(|table| expression::concerns(table));
    let indexed = asks_for_index(sql);
    if !hidden && !indexed && !Tokens::new(sql).any(|token| token.is("IN")) {
        return Ok(Rewritten::default());
    }
    let text = Text::new(sql);
    if text.is_endless() || (!hidden && !indexed && !row_values::concerns(&text)) {
        return Ok(Rewritten::default());
    }
    let queries = text.queries(catalog);
    let mut needed = Vec::new();
    row_values::edit(catalog, &text, &mut needed);
    for query in queries.iter().filter(|_| indexed) {
        indexed::edit(catalog, query, &mut needed)?;
    }
    let mut better = Vec::new();
    for query in queries.iter().filter(|_| sql.len() <= REWRITTEN_BYTES_MAX) {
        expression::edit(&text, query, &mut better);
    }
    let with = |edits: &[&[Edit]]| {
        let all: Vec<&Edit> = edits.iter().copied().flatten().collect();
        (!all.is_empty()).then(|| edited(sql, all))
    };
    let better = if better.is_empty() { None } else { with(&[&needed, &better]) };
    Ok(Rewritten { needed: with(&[&needed]), better })
}

/// The text with its changes: of those that begin at one place the insertions, then the longest of the others; what
/// lies within another is left out.
fn edited(sql: &str, mut edits: Vec<&Edit>) -> String {
    edits.sort_by_key(|edit| (edit.from, edit.to != edit.from, std::cmp::Reverse(edit.to)));
    let mut out = String::with_capacity(sql.len() + 16 * edits.len());
    let mut copied = 0;
    for Edit { from, to, text } in edits {
        if *from >= copied {
            out.push_str(sql.get(copied..*from).unwrap_or_default());
            out.push_str(text);
            copied = *to;
        }
    }
    out.push_str(sql.get(copied..).unwrap_or_default());
    out
}
