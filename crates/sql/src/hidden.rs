//! Queries of indexed expressions.
//!
//! The planner asks a virtual table about columns only. An indexed expression is a hidden column of its table, so a query
//! that contains the expression is compiled with that column in its place; the predicate of a partial index likewise is
//! a hidden column that is true in the rows of the index. Both say the same of each row, so the answer does not
//! change. Where the text leaves it open to which table a name belongs, it stays as it is, and the index is not used.

use store::definition::{ColumnDef, Generated, TableDef};
use store::{Catalog, Table};

use crate::error::SqlError;
use crate::text::token::{Kind, Token, Tokens, quoted_name, unquoted};

/// What stands around a predicate, so that its value is 1, 0 or NULL.
const PREDICATE: (&str, &str) = ("NOT NOT (", ")");

/// The hidden column of a partial index's predicate.
pub(crate) fn predicate_column(name: &str, sql: &str) -> Result<ColumnDef, SqlError> {
    let sql = format!("{}{sql}{}", PREDICATE.0, PREDICATE.1);
    let generated = Some(Generated { sql, stored: true });
    Ok(ColumnDef { hidden: true, generated, ..ColumnDef::new(name, "BOOLEAN")? })
}

/// The predicate of a partial index as it was written.
pub(crate) fn predicate_of(sql: &str) -> Option<&str> {
    sql.strip_prefix(PREDICATE.0)?.strip_suffix(PREDICATE.1)
}

/// An expression that an index knows.
struct Known<'c> {
    column: &'c ColumnDef,
    /// Its tokens.
    tokens: Vec<Token<'c>>,
    /// Whether the column is true where the expression is.
    predicate: bool,
}

/// The statement with hidden columns in the place of their expressions; `None` where there is nothing to replace.
pub(crate) fn rewritten(catalog: &Catalog, sql: &str) -> Option<String> {
    let with_hidden = |table: &&std::sync::Arc<Table>| table.def().columns.iter().any(|column| column.hidden);
    if !catalog.tables().any(|table| with_hidden(&table)) {
        return None;
    }
    let tokens: Vec<Token<'_>> = Tokens::new(sql).collect();
    let from = only_from(&tokens)?;
    let sources = sources(catalog, &tokens[from..])?;
    let mut edits: Vec<(usize, usize, String)> = Vec::new();
    for source in &sources {
        for known in known(source.table.def()) {
            for at in from..tokens.len() {
                let Some(length) = source.matches(&known, &tokens[at..], &sources) else { continue };
                let end = at + length;
                if !stands_alone(&known, &tokens[..at], tokens.get(end)) {
                    continue;
                }
                let column = format!("{}.{}", quoted_name(&source.name), quoted_name(&known.column.name));
                let text = if known.predicate { format!("{column} = 1") } else { column };
                edits.push((tokens[at].start, tokens[end - 1].end(), text));
            }
        }
    }
    replaced(sql, edits)
}

fn replaced(sql: &str, mut edits: Vec<(usize, usize, String)>) -> Option<String> {
    // The longest of those that begin at one place; what lies in another is left out.
    edits.sort_by_key(|(from, to, _)| (*from, std::cmp::Reverse(*to)));
    let mut out = String::with_capacity(sql.len());
    let mut copied = 0;
    for (from, to, text) in &edits {
        if *from >= copied {
            out.push_str(&sql[copied..*from]);
            out.push_str(text);
            copied = *to;
        }
    }
    out.push_str(&sql[copied..]);
    (!edits.is_empty()).then_some(out)
}

/// Where the one `FROM` of the statement stands: with several, names may belong to another query's tables.
fn only_from(tokens: &[Token<'_>]) -> Option<usize> {
    let selects = tokens.iter().filter(|token| token.is("SELECT")).count();
    let mut found = tokens.iter().enumerate().filter(|(at, token)| {
        // `IS DISTINCT FROM` is a comparison.
        token.is("FROM") && !at.checked_sub(1).is_some_and(|before| tokens[before].is("DISTINCT"))
    });
    let (at, _) = found.next()?;
    (found.next().is_none() && selects == 1).then_some(at)
}

/// A table of the `FROM` clause.
struct Source<'c> {
    table: &'c Table,
    /// What the statement calls it.
    name: String,
}

/// Words that end the list of tables.
const AFTER_TABLES: &[&str] =
    &["WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "WINDOW", "UNION", "INTERSECT", "EXCEPT"];
/// Words between two tables.
const BETWEEN_TABLES: &[&str] = &["JOIN"];

/// The tables of the clause that begins here; `None` where one of them is none of ours.
fn sources<'c>(catalog: &'c Catalog, tokens: &[Token<'_>]) -> Option<Vec<Source<'c>>> {
    let mut sources = Vec::new();
    let mut expected = true;
    for (at, token) in tokens.iter().enumerate().skip(1) {
        if AFTER_TABLES.iter().any(|word| token.is(word)) {
            break;
        }
        if expected {
            let table = catalog.table(&unquoted(token.text)).filter(|_| is_name(token))?;
            let name = alias(&tokens[at + 1..]).unwrap_or_else(|| table.name().to_owned());
            sources.push(Source { table, name });
        }
        expected = token.is_sign(b',') || BETWEEN_TABLES.iter().any(|word| token.is(word));
        // Within parentheses commas mean something else; a function or a subquery is no table of ours.
        if token.is_sign(b'(') && !tokens[..at].iter().any(|token| token.is("ON") || token.is("USING")) {
            return None;
        }
        if token.is("ON") || token.is("USING") {
            // The conditions of a join may hold commas in parentheses; one table more behind them is not looked for.
            let rest = &tokens[at..];
            let more = rest.iter().take_while(|token| !AFTER_TABLES.iter().any(|word| token.is(word)));
            if more.into_iter().any(|token| token.is("JOIN")) {
                return None;
            }
            break;
        }
    }
    Some(sources)
}

fn is_name(token: &Token<'_>) -> bool {
    matches!(token.kind, Kind::Word | Kind::Quoted)
}

/// The alias that follows a table's name.
fn alias(rest: &[Token<'_>]) -> Option<String> {
    const NOT_ALIASES: &[&str] = &[
        "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "NATURAL", "ON", "USING", "INDEXED",
        "NOT",
    ];
    match rest {
        [word, name, ..] if word.is("AS") => Some(unquoted(name.text)),
        [name, ..] if is_name(name) => {
            let keyword = AFTER_TABLES.iter().chain(NOT_ALIASES).any(|word| name.is(word));
            (!keyword).then(|| unquoted(name.text))
        }
        _ => None,
    }
}

/// The expressions that the table's indexes know.
fn known(def: &TableDef) -> Vec<Known<'_>> {
    let mut known = Vec::new();
    for index in &def.indexes {
        for at in index.reads() {
            let column = &def.columns[at];
            let Some(generated) = column.generated.as_ref().filter(|_| column.hidden) else { continue };
            let predicate = index.predicate == Some(at);
            let sql = if predicate { predicate_of(&generated.sql) } else { Some(generated.sql.as_str()) };
            if let Some(sql) = sql {
                known.push(Known { column, tokens: Tokens::new(sql).collect(), predicate });
            }
        }
    }
    known
}

impl Source<'_> {
    /// How many tokens from here on are the expression, over columns of this table.
    fn matches(&self, known: &Known<'_>, tokens: &[Token<'_>], sources: &[Self]) -> Option<usize> {
        let mut at = 0;
        for (place, wanted) in known.tokens.iter().enumerate() {
            let is_column = self.is_column(wanted, known.tokens.get(place + 1));
            if is_column {
                at += self.qualifier(&tokens[at..], wanted, sources)?;
            }
            if !same(wanted, tokens.get(at)?) {
                return None;
            }
            at += 1;
        }
        Some(at)
    }

    /// Whether a token of an expression is a column of the table; a name before a parenthesis is a function.
    fn is_column(&self, token: &Token<'_>, next: Option<&Token<'_>>) -> bool {
        is_name(token)
            && !next.is_some_and(|next| next.is_sign(b'('))
            && self.table.def().column_index(&unquoted(token.text)).is_some()
    }

    /// How many tokens name this table before a column; `None` where the column may be another table's.
    fn qualifier(&self, tokens: &[Token<'_>], column: &Token<'_>, sources: &[Self]) -> Option<usize> {
        if let [name, point, ..] = tokens
            && point.is_sign(b'.')
        {
            return unquoted(name.text).eq_ignore_ascii_case(&self.name).then_some(2);
        }
        let name = unquoted(column.text);
        let owners = sources.iter().filter(|source| source.table.def().column_index(&name).is_some());
        (owners.count() == 1).then_some(0)
    }
}

/// Whether two expressions are the same but for blanks and the case of names.
pub(crate) fn same_tokens(a: &str, b: &str) -> bool {
    let (mut a, mut b) = (Tokens::new(a), Tokens::new(b));
    loop {
        match (a.next(), b.next()) {
            (Some(a), Some(b)) if same(&a, &b) => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

fn same(a: &Token<'_>, b: &Token<'_>) -> bool {
    if is_name(a) && is_name(b) {
        return unquoted(a.text).eq_ignore_ascii_case(&unquoted(b.text));
    }
    a.kind == b.kind && a.text == b.text
}

/// Whether an expression between these two tokens is an operand of its own: what binds tighter than its own operators
/// must not reach into it.
fn stands_alone(known: &Known<'_>, before: &[Token<'_>], after: Option<&Token<'_>>) -> bool {
    const BEFORE: &[&str] = &["WHERE", "AND", "OR", "ON", "BY", "HAVING", "WHEN", "THEN", "ELSE", "CASE"];
    const AFTER: &[&str] = &[
        "AND", "OR", "ORDER", "GROUP", "HAVING", "LIMIT", "ASC", "DESC", "WHEN", "THEN", "ELSE", "END",
        "NULLS",
    ];
    // Behind comparisons of every kind only an operand stands that binds tighter.
    const COMPARED: &[&str] = &["IN", "IS", "NOT", "LIKE", "GLOB", "BETWEEN", "ISNULL", "NOTNULL"];
    let operand = binds_tighter_than_comparisons(&known.tokens);
    // The AND of a BETWEEN joins operands only.
    if !operand && before.iter().any(|token| token.is("BETWEEN")) {
        return false;
    }
    // `->`, `->>`, `>>` and `<<` bind tighter than a comparison.
    let of_two = |token: &Token<'_>| token.is_sign(b'-') || token.is_sign(b'>') || token.is_sign(b'<');
    let compares = !before.iter().rev().nth(1).is_some_and(of_two);
    let sign = |token: &Token<'_>, signs: &[u8]| signs.iter().any(|&sign| token.is_sign(sign));
    let word = |token: &Token<'_>, words: &[&str]| words.iter().any(|word| token.is(word));
    let before = before.last().is_none_or(|token| {
        let compared = (sign(token, b"=<>") && compares) || token.is_sign(b'=') || token.is("BETWEEN");
        sign(token, b"(,") || word(token, BEFORE) || (operand && compared)
    });
    let after = after.is_none_or(|token| {
        sign(token, b"),;")
            || word(token, AFTER)
            || (operand && (sign(token, b"=<>!") || word(token, COMPARED)))
    });
    before && after
}

/// Whether the operators of an expression outside its parentheses all bind tighter than comparisons.
fn binds_tighter_than_comparisons(tokens: &[Token<'_>]) -> bool {
    const LOOSE: &[&str] =
        &["AND", "OR", "NOT", "IN", "IS", "LIKE", "GLOB", "BETWEEN", "ISNULL", "NOTNULL", "MATCH", "REGEXP"];
    let mut depth = 0_usize;
    let arrow = |at: usize| {
        at.checked_sub(1).is_some_and(|before| tokens[before].is_sign(b'-') || tokens[before].is_sign(b'>'))
    };
    tokens.iter().enumerate().all(|(at, token)| {
        match token.kind {
            Kind::Sign(b'(') => depth += 1,
            Kind::Sign(b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        let loose = LOOSE.iter().any(|word| token.is(word))
            || token.is_sign(b'=')
            || token.is_sign(b'!')
            || token.is_sign(b'<')
            || (token.is_sign(b'>') && !arrow(at));
        depth > 0 || !loose
    })
}
