//! The queries within a statement: which tables each reads, under which names, and where its conditions stand.
//!
//! Told from the tokens alone. Where a clause is not understood, the query has no sources, and nothing is rewritten in
//! it.

use std::collections::HashSet;
use std::ops::Range;

use store::{Catalog, Table};

use crate::limits::{NESTING_MAX, QUERIES_MAX};
use crate::text::token::{Kind, Token, Tokens, unquoted};

/// A statement's tokens and what lies within what.
#[derive(Debug)]
pub(super) struct Text<'a> {
    pub(super) tokens: Vec<Token<'a>>,
    /// How many parentheses each token stands in.
    depth: Vec<usize>,
    /// For each token the `SELECT` that it belongs to.
    owner: Vec<Option<usize>>,
    /// For each parenthesis its other half; the number of tokens for all else.
    other_half: Vec<usize>,
    /// How deep parentheses lie within each other, and how many `SELECT` there are.
    deepest: usize,
    selects: usize,
}

/// One `SELECT` with a `FROM`.
#[derive(Debug)]
pub(super) struct Query<'c> {
    /// The token `SELECT`.
    pub(super) at: usize,
    pub(super) sources: Vec<Source<'c>>,
    /// The tokens behind `WHERE`, and those behind each `ON` with the source that it joins.
    pub(super) conditions: Vec<(Range<usize>, Option<usize>)>,
    /// The tokens behind `GROUP BY`, `HAVING` and `ORDER BY`.
    pub(super) orders: Vec<Range<usize>>,
    /// Whether a bare name may stand for columns of two tables: `USING`, `NATURAL`.
    pub(super) merged: bool,
    /// Whether rows of any source may be missing: `RIGHT JOIN`, `FULL JOIN`.
    pub(super) all_optional: bool,
}

/// What a query reads.
#[derive(Debug)]
pub(super) struct Source<'c> {
    /// `None`: a view, a subquery, a function, a common table expression, of whose columns nothing is known.
    pub(super) table: Option<&'c Table>,
    /// What the query calls it.
    pub(super) name: String,
    /// Where the table's own name ends, in bytes.
    pub(super) end: usize,
    /// Whether NULLs stand in the place of its row where there is none: the right side of a `LEFT JOIN`.
    pub(super) optional: bool,
    pub(super) indexed: Option<Indexed>,
}

/// `INDEXED BY name` or `NOT INDEXED`, and where it stands in the text.
#[derive(Debug)]
pub(super) struct Indexed {
    pub(super) index: Option<String>,
    pub(super) span: Range<usize>,
}

/// Words that end the list of tables, or a clause behind it.
const CLAUSES: &[&str] = &["WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT"];
const COMPOUND: &[&str] = &["UNION", "INTERSECT", "EXCEPT"];
/// Words that stand before the next table.
const JOINS: &[&str] = &["JOIN", "NATURAL", "LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS"];
const BEHIND_TABLES: &[&str] = &["ON", "USING", "INDEXED", "NOT"];

fn is_any(token: &Token<'_>, words: &[&str]) -> bool {
    words.iter().any(|word| token.is(word))
}

pub(super) fn is_name(token: &Token<'_>) -> bool {
    matches!(token.kind, Kind::Word | Kind::Quoted)
}

impl<'a> Text<'a> {
    pub(super) fn new(sql: &'a str) -> Self {
        let tokens: Vec<Token<'a>> = Tokens::new(sql).collect();
        let count = tokens.len();
        let mut text = Self {
            tokens,
            depth: vec![0; count],
            owner: vec![None; count],
            other_half: vec![count; count],
            deepest: 0,
            selects: 0,
        };
        // Of each open parenthesis its token, and the SELECT within it, or else that around it.
        let mut open: Vec<usize> = Vec::new();
        let mut owners: Vec<Option<usize>> = vec![None];
        for at in 0..count {
            let token = text.tokens[at];
            if token.is_sign(")")
                && let Some(begin) = open.pop()
            {
                owners.pop();
                (text.other_half[begin], text.other_half[at]) = (at, begin);
            }
            let around = owners.last().copied().flatten();
            let owner = if token.is("SELECT") { Some(at) } else { around };
            if token.is("SELECT")
                && let Some(own) = owners.last_mut()
            {
                *own = owner;
                text.selects += 1;
            }
            (text.depth[at], text.owner[at]) = (open.len(), owner);
            if token.is_sign("(") {
                open.push(at);
                owners.push(owner);
                text.deepest = text.deepest.max(open.len());
            }
        }
        text
    }

    /// Whether it is too deep or has too many queries to be looked at: that takes a walk for each.
    pub(super) fn is_endless(&self) -> bool {
        self.deepest > NESTING_MAX || self.selects > QUERIES_MAX
    }

    /// Where the parenthesis is opened that this token closes.
    pub(super) fn opening(&self, at: usize) -> Option<usize> {
        self.tokens[at].is_sign(")").then_some(self.other_half[at]).filter(|open| *open < at)
    }

    /// Whether a token belongs to this query and to none within it.
    pub(super) fn is_of(&self, at: usize, query: usize) -> bool {
        self.owner.get(at).copied().flatten() == Some(query)
    }

    /// Where the parenthesis that this token opens is closed; the number of tokens where it is not.
    pub(super) fn closing(&self, at: usize) -> usize {
        self.other_half[at]
    }

    /// The queries whose clauses are understood.
    pub(super) fn queries<'c>(&self, catalog: &'c Catalog) -> Vec<Query<'c>> {
        let named = self.common_tables();
        let selects = (0..self.tokens.len()).filter(|&at| self.tokens[at].is("SELECT"));
        selects.filter_map(|at| self.query(catalog, &named, at)).collect()
    }

    /// Names of common table expressions, which hide tables.
    fn common_tables(&self) -> HashSet<String> {
        if !self.tokens.iter().any(|token| token.is("WITH")) {
            return HashSet::new();
        }
        let defined = |at: &usize| {
            let mut next = at + 1;
            if self.tokens.get(next).is_some_and(|token| token.is_sign("(")) {
                next = self.closing(next) + 1;
            }
            is_name(&self.tokens[*at]) && self.tokens.get(next).is_some_and(|token| token.is("AS"))
        };
        let names = (0..self.tokens.len()).filter(defined);
        names.map(|at| unquoted(self.tokens[at].text).to_lowercase()).collect()
    }

    fn query<'c>(&self, catalog: &'c Catalog, named: &HashSet<String>, select: usize) -> Option<Query<'c>> {
        let (from, end) = self.extent(select)?;
        let mut query = Query {
            at: select,
            sources: Vec::new(),
            conditions: Vec::new(),
            orders: Vec::new(),
            merged: false,
            all_optional: false,
        };
        let tables = from + 1..self.next_clause(from + 1, end);
        let mut at = tables.end;
        self.sources(catalog, named, tables, &mut query)?;
        while at < end {
            let (clause, next) = (&self.tokens[at], self.next_clause(at + 1, end));
            if clause.is("WHERE") {
                query.conditions.push((at + 1..next, None));
            } else if is_any(clause, &["GROUP", "HAVING", "ORDER"]) {
                query.orders.push(at + 1..next);
            }
            at = next;
        }
        Some(query)
    }

    /// Where a query's `FROM` is, and where the query ends. The order of a compound is no clause of its last part.
    fn extent(&self, select: usize) -> Option<(usize, usize)> {
        let depth = self.depth[select];
        let of_compound = self.follows_compound(select);
        let mut from = None;
        for at in select + 1..self.tokens.len() {
            let token = &self.tokens[at];
            if self.depth[at] < depth {
                return Some((from?, at));
            }
            if self.depth[at] > depth {
                continue;
            }
            let ends = is_any(token, COMPOUND)
                || token.is_sign(";")
                || (of_compound && is_any(token, &["ORDER", "LIMIT"]));
            if ends {
                return Some((from?, at));
            }
            // `IS DISTINCT FROM` is a comparison.
            if from.is_none() && token.is("FROM") && !self.tokens[at - 1].is("DISTINCT") {
                from = Some(at);
            }
        }
        Some((from?, self.tokens.len()))
    }

    fn follows_compound(&self, select: usize) -> bool {
        let before = |back: usize| select.checked_sub(back).map(|at| &self.tokens[at]);
        let compound = |token: Option<&Token<'_>>| token.is_some_and(|token| is_any(token, COMPOUND));
        compound(before(1)) || (before(1).is_some_and(|token| token.is("ALL")) && compound(before(2)))
    }

    fn next_clause(&self, from: usize, end: usize) -> usize {
        let depth = self.depth.get(from.saturating_sub(1)).copied().unwrap_or_default();
        (from..end).find(|&at| self.depth[at] == depth && is_any(&self.tokens[at], CLAUSES)).unwrap_or(end)
    }

    /// The tables of a `FROM`; `None` where it is not understood.
    fn sources<'c>(
        &self,
        catalog: &'c Catalog,
        named: &HashSet<String>,
        tokens: Range<usize>,
        query: &mut Query<'c>,
    ) -> Option<()> {
        let mut at = tokens.start;
        let mut optional = false;
        loop {
            let (source, next) = self.source(catalog, named, at, tokens.end)?;
            query.sources.push(Source { optional, ..source });
            at = next;
            if at < tokens.end && self.tokens[at].is("ON") {
                let end = self.next_join(at + 1, tokens.end);
                query.conditions.push((at + 1..end, Some(query.sources.len() - 1)));
                at = end;
            } else if at < tokens.end && self.tokens[at].is("USING") {
                query.merged = true;
                at = self.closing(at + 1) + 1;
            }
            if at >= tokens.end {
                return Some(());
            }
            let first = at;
            optional = false;
            while at < tokens.end && is_any(&self.tokens[at], JOINS) {
                query.merged |= self.tokens[at].is("NATURAL");
                query.all_optional |= is_any(&self.tokens[at], &["RIGHT", "FULL"]);
                optional |= self.tokens[at].is("LEFT");
                at += 1;
            }
            if at == first {
                if !self.tokens[at].is_sign(",") {
                    return None;
                }
                at += 1;
            }
        }
    }

    /// Where the condition of a join ends. A function may be called `left`.
    fn next_join(&self, from: usize, end: usize) -> usize {
        let depth = self.depth[from - 1];
        let ends = |&at: &usize| {
            let token = &self.tokens[at];
            let calls = self.tokens.get(at + 1).is_some_and(|next| next.is_sign("("));
            self.depth[at] == depth && (token.is_sign(",") || (is_any(token, JOINS) && !calls))
        };
        (from..end).find(ends).unwrap_or(end)
    }

    fn source<'c>(
        &self,
        catalog: &'c Catalog,
        named: &HashSet<String>,
        begin: usize,
        end: usize,
    ) -> Option<(Source<'c>, usize)> {
        let sign = |at: usize, sign: &str| at < end && self.tokens[at].is_sign(sign);
        let mut at = begin;
        let mut source = Source { table: None, name: String::new(), end: 0, optional: false, indexed: None };
        if at < end && is_name(&self.tokens[at]) {
            if sign(at + 1, ".") {
                at += 2;
            }
            let token = self.tokens.get(at).filter(|token| at < end && is_name(token))?;
            source.name = unquoted(token.text);
            source.end = token.end();
            at += 1;
            if !sign(at, "(") && !named.contains(&source.name.to_lowercase()) {
                source.table = catalog.table(&source.name).map(AsRef::as_ref);
            }
        } else if !sign(at, "(") {
            return None;
        }
        if sign(at, "(") {
            at = self.closing(at) + 1;
        }
        let has_as = at < end && self.tokens[at].is("AS");
        at += usize::from(has_as);
        let alias = (at < end).then(|| &self.tokens[at]).filter(|token| {
            is_name(token) && (has_as || !is_any(token, JOINS) && !is_any(token, BEHIND_TABLES))
        });
        if let Some(alias) = alias {
            source.name = unquoted(alias.text);
            at += 1;
        }
        at = self.indexed(at, end, &mut source)?;
        Some((source, at))
    }

    fn indexed(&self, at: usize, end: usize, source: &mut Source<'_>) -> Option<usize> {
        let rest = self.tokens.get(at..end)?;
        let (index, last) = match rest {
            [not, word, ..] if not.is("NOT") && word.is("INDEXED") => (None, word),
            [word, by, name, ..] if word.is("INDEXED") && by.is("BY") => (Some(unquoted(name.text)), name),
            _ => return Some(at),
        };
        let next = at + if index.is_some() { 3 } else { 2 };
        source.indexed = Some(Indexed { index, span: rest[0].start..last.end() });
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sql: &str) -> Vec<(Vec<String>, Vec<String>)> {
        let text = Text::new(sql);
        let options = store::StoreOptions {
            path: None,
            memory_bytes: 16 << 20,
            cold: true,
            clock: store::Clock::System,
            row_bytes_max: 1 << 20,
        };
        let catalog = store::Store::open(&options).unwrap().store.catalog();
        let shown = |range: &Range<usize>| {
            let words: Vec<&str> = text.tokens[range.clone()].iter().map(|token| token.text).collect();
            words.join(" ")
        };
        let query = |query: Query<'_>| {
            let sources = query.sources.iter().map(|source| source.name.clone()).collect();
            (
                sources,
                query.conditions.iter().map(|(range, _)| range).chain(&query.orders).map(shown).collect(),
            )
        };
        text.queries(&catalog).into_iter().map(query).collect()
    }

    #[test]
    fn queries_have_their_own_tables_and_conditions() {
        let of = |sources: &[&str], clauses: &[&str]| {
            let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
            (owned(sources), owned(clauses))
        };
        for (sql, expected) in [
            ("SELECT 1", vec![]),
            ("SELECT a FROM t x WHERE a = 1 ORDER BY a", vec![of(&["x"], &["a = 1", "BY a"])]),
            (
                "SELECT * FROM t AS x LEFT JOIN u ON left(a, 1) = b, v NOT INDEXED WHERE c",
                vec![of(&["x", "u", "v"], &["left ( a , 1 ) = b", "c"])],
            ),
            (
                "SELECT (SELECT 1 FROM u WHERE b) FROM t INDEXED BY i WHERE a IN (SELECT c FROM v)",
                vec![of(&["t"], &["a IN ( SELECT c FROM v )"]), of(&["u"], &["b"]), of(&["v"], &[])],
            ),
            (
                "SELECT a FROM t WHERE b UNION ALL SELECT c FROM u WHERE d ORDER BY 1",
                vec![of(&["t"], &["b"]), of(&["u"], &["d"])],
            ),
            ("SELECT a FROM (SELECT 1) AS s JOIN f(2) USING (a)", vec![of(&["s", "f"], &[])]),
            ("SELECT a IS DISTINCT FROM b FROM main.t;", vec![of(&["t"], &[])]),
        ] {
            assert_eq!(found(sql), expected, "{sql}");
        }
    }
}
