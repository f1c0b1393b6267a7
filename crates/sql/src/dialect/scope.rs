//! Which tables a name may mean at a place of the statement: those of the `FROM` around it, innermost first.
//!
//! One walk over the tokens finds where each query begins and ends and what its `FROM` lists. Types are looked up when
//! they are asked for.

use std::collections::HashMap;

use crate::text::token::unquoted;
use sqltext::token::{Kind, Token};

/// Entries of one `FROM` that are looked at: SQLite joins no more tables.
const RELATIONS_MAX: usize = 64;

/// Words that end the list of a `FROM`.
const AFTER_FROM: &[&str] = &[
    "WHERE",
    "GROUP",
    "HAVING",
    "WINDOW",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "FETCH",
    "FOR",
    "SET",
    "RETURNING",
    "VALUES",
];
/// Words behind a table that are no alias of it.
const NO_ALIAS: &[&str] = &[
    "AS",
    "ON",
    "JOIN",
    "CROSS",
    "LEFT",
    "INNER",
    "OUTER",
    "NATURAL",
    "RIGHT",
    "FULL",
    "WITH",
    "USING",
    "INDEXED",
    "NOT",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "SELECT",
    "DO",
    "DEFAULT",
    "OVERRIDING",
];
/// Calls in which `FROM` stands between arguments.
const FROM_ARGUMENT: &[&str] = &["EXTRACT", "TRIM", "SUBSTRING", "OVERLAY"];

/// What one entry of a `FROM` is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A table, view or table of the system.
    Named(String),
    /// A query: the place of its opening parenthesis among the tokens, and the names given to its columns.
    Query(usize, Vec<String>),
    /// A function, of whose columns nothing is known here.
    Function,
}

/// An entry of a `FROM`, by the name that expressions use.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    pub(super) name: String,
    pub(super) source: Source,
}

/// A query or a statement that writes, and what it is about.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// The scope around it.
    parent: Option<usize>,
    pub(super) relations: Vec<Relation>,
}

/// A query of a `WITH`.
#[derive(Debug)]
struct Named {
    /// Where its parenthesis opens.
    open: usize,
    columns: Vec<String>,
}

/// All scopes of a statement.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    all: Vec<Scope>,
    /// For each token the innermost scope around it.
    innermost: Vec<Option<usize>>,
}

impl Scopes {
    pub(super) fn of(tokens: &[Token<'_>]) -> Self {
        let mut walk = Walk {
            tokens,
            closings: closings(tokens),
            scopes: Vec::new(),
            named: HashMap::new(),
            open: vec![Level::default()],
        };
        let mut innermost = Vec::with_capacity(tokens.len());
        for at in 0..tokens.len() {
            walk.pass(at);
            innermost.push(walk.current());
        }
        Self { all: walk.scopes, innermost }
    }

    /// The scopes around a place, innermost first.
    pub(super) fn around(&self, at: usize) -> impl Iterator<Item = &Scope> {
        let scope = |at: Option<usize>| at.and_then(|at| self.all.get(at));
        let first = scope(self.innermost.get(at).copied().flatten());
        std::iter::successors(first, move |inner| scope(inner.parent))
    }

    /// The table that the statement around a place writes, as it names it.
    pub(super) fn written(&self, at: usize) -> Option<&str> {
        match &self.around(at).last()?.relations.first()?.source {
            Source::Named(name) => Some(name),
            _ => None,
        }
    }
}

/// For each opening parenthesis the place of the one that closes it; the end of the text where none does.
fn closings(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut found = vec![tokens.len(); tokens.len()];
    let mut open = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.is_sign("(") {
            open.push(at);
        } else if token.is_sign(")")
            && let Some(begin) = open.pop()
        {
            found[begin] = at;
        }
    }
    found
}

/// What is known within one pair of parentheses.
#[derive(Debug, Default)]
struct Level {
    /// The scope that was under way where they open.
    outer: Option<usize>,
    /// The scope of the statement that writes.
    statement: Option<usize>,
    /// The scope of the query whose words are here.
    query: Option<usize>,
    /// A list of tables is under way.
    from: bool,
    /// These are arguments with `FROM` between.
    arguments: bool,
}

struct Walk<'a> {
    tokens: &'a [Token<'a>],
    closings: Vec<usize>,
    scopes: Vec<Scope>,
    named: HashMap<String, Named>,
    open: Vec<Level>,
}

impl Walk<'_> {
    fn is(&self, at: usize, words: &[&str]) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is_any(words))
    }

    fn is_sign(&self, at: usize, sign: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is_sign(sign))
    }

    fn name_at(&self, at: usize) -> Option<String> {
        let token = self.tokens.get(at)?;
        matches!(token.kind, Kind::Word | Kind::Quoted).then(|| unquoted(token.text).to_lowercase())
    }

    fn level(&mut self) -> Option<&mut Level> {
        self.open.last_mut()
    }

    /// Goes past one token.
    fn pass(&mut self, at: usize) {
        let token = self.tokens[at];
        match token.kind {
            Kind::Sign if token.text == "(" => self.enter(at),
            Kind::Sign if token.text == ")" && self.open.len() > 1 => {
                self.open.pop();
            }
            Kind::Sign if token.text == "," && self.open.last().is_some_and(|level| level.from) => {
                self.relation(at + 1);
            }
            Kind::Word => self.word(at, &token),
            _ => {}
        }
    }

    fn enter(&mut self, at: usize) {
        let outer = self.open.last();
        let joined = outer.is_some_and(|level| level.from)
            && !self.is(at + 1, &["SELECT", "WITH", "VALUES"])
            && at > 0
            && (self.is(at - 1, &["FROM", "JOIN"]) || self.is_sign(at - 1, ",") || self.is_sign(at - 1, "("));
        let query = outer.and_then(|level| level.query).filter(|_| joined);
        let arguments = at > 0 && self.is(at - 1, FROM_ARGUMENT);
        let outer = self.current();
        self.open.push(Level { outer, statement: None, query, from: joined, arguments });
        if joined {
            self.relation(at + 1);
        }
    }

    /// The scope that is under way.
    fn current(&self) -> Option<usize> {
        self.open.last().and_then(|level| level.query.or(level.statement).or(level.outer))
    }

    fn begin(&mut self) -> usize {
        let parent = self.current();
        self.scopes.push(Scope { parent, relations: Vec::new() });
        self.scopes.len() - 1
    }

    fn end_query(&mut self) {
        if let Some(level) = self.level() {
            level.from = false;
            level.query = None;
        }
    }

    fn word(&mut self, at: usize, token: &Token<'_>) {
        let after = |word: &str| at > 0 && self.is(at - 1, &[word]);
        if after("AS") || (at > 0 && self.is_sign(at - 1, ".")) {
            return;
        }
        if token.is("SELECT") {
            self.end_query();
            let scope = self.begin();
            if let Some(level) = self.level() {
                level.query = Some(scope);
            }
        } else if token.is_any(&["UNION", "EXCEPT", "INTERSECT"]) {
            self.end_query();
        } else if token.is("RETURNING") || (token.is("ON") && self.is(at + 1, &["CONFLICT"])) {
            if self.open.last().is_some_and(|level| level.statement.is_some()) {
                self.end_query();
            }
        } else if token.is("FROM") && (after("DELETE") || !self.is_argument(at)) {
            self.from(at);
        } else if token.is("JOIN") {
            self.relation(at + 1);
        } else if token.is("INTO") {
            self.writes(at, true);
        } else if token.is("UPDATE") && !(after("DO") || after("FOR") || after("KEY")) {
            self.writes(at, false);
        } else if token.is("WITH") && !self.is(at + 1, &["TIME", "ORDINALITY", "TIES"]) {
            self.with(at);
        } else if token.is_any(AFTER_FROM)
            && let Some(level) = self.level()
        {
            level.from = false;
        }
    }

    /// Whether this `FROM` stands within an expression.
    fn is_argument(&self, at: usize) -> bool {
        let distinct = at > 1 && self.is(at - 1, &["DISTINCT"]) && self.is(at - 2, &["IS", "NOT"]);
        distinct || self.open.last().is_some_and(|level| level.arguments && level.query.is_none())
    }

    fn from(&mut self, at: usize) {
        if at > 0 && self.is(at - 1, &["DELETE"]) {
            return self.writes(at, false);
        }
        if let Some(level) = self.level() {
            level.from = true;
        }
        self.relation(at + 1);
    }

    /// The table that is written, behind the word at this place.
    fn writes(&mut self, at: usize, inserts: bool) {
        let scope = self.begin();
        if let Some(level) = self.level() {
            level.statement = Some(scope);
            level.query = None;
        }
        let mut name = at + 1;
        while self.is(name, &["ONLY", "OR", "ROLLBACK", "ABORT", "REPLACE", "FAIL", "IGNORE"]) {
            name += 1;
        }
        // What a WITH calls so is not written.
        if let Some(relation) = self.read(name, false) {
            self.scopes[scope].relations.push(relation);
        }
        if inserts && let Some(first) = self.scopes[scope].relations.first().cloned() {
            self.scopes[scope].relations.push(Relation { name: "excluded".to_owned(), ..first });
        }
    }

    /// Adds what is listed at this place to the query that is under way, or to the statement that writes.
    fn relation(&mut self, at: usize) {
        let Some(level) = self.open.last() else { return };
        let Some(scope) = level.query.or(level.statement) else { return };
        let mut at = at;
        while self.is(at, &["LATERAL", "ONLY"]) {
            at += 1;
        }
        if self.scopes[scope].relations.len() < RELATIONS_MAX
            && let Some(relation) = self.read(at, true)
        {
            self.scopes[scope].relations.push(relation);
        }
    }

    /// What is listed at this place; `reads`: it may be a query of a `WITH`, or a function.
    fn read(&self, at: usize, reads: bool) -> Option<Relation> {
        if self.is_sign(at, "(") {
            if !self.is(at + 1, &["SELECT", "WITH", "VALUES"]) {
                return None;
            }
            let (name, columns) = self.alias(self.closing(at) + 1);
            return Some(Relation { name: name.unwrap_or_default(), source: Source::Query(at, columns) });
        }
        let (mut last, mut own) = (at, self.name_at(at)?);
        while self.is_sign(last + 1, ".")
            && let Some(part) = self.name_at(last + 2)
        {
            (last, own) = (last + 2, part);
        }
        if reads && self.is_sign(last + 1, "(") {
            let (name, _) = self.alias(self.closing(last + 1) + 1);
            return Some(Relation { name: name.unwrap_or(own), source: Source::Function });
        }
        let (alias, _) = self.alias(last + 1);
        let name = alias.unwrap_or_else(|| own.clone());
        let source = match self.named.get(&own).filter(|_| reads) {
            Some(query) => Source::Query(query.open, query.columns.clone()),
            None => Source::Named(own),
        };
        Some(Relation { name, source })
    }

    /// `[AS] name [(columns)]`
    fn alias(&self, at: usize) -> (Option<String>, Vec<String>) {
        let explicit = self.is(at, &["AS"]);
        let at = at + usize::from(explicit);
        if !explicit && (self.is(at, NO_ALIAS) || self.is(at, AFTER_FROM)) {
            return (None, Vec::new());
        }
        let Some(name) = self.name_at(at) else { return (None, Vec::new()) };
        (Some(name), self.columns(at + 1))
    }

    /// `(a, b)`
    fn columns(&self, open: usize) -> Vec<String> {
        if !self.is_sign(open, "(") || self.is(open + 1, &["SELECT", "WITH", "VALUES"]) {
            return Vec::new();
        }
        let inside = open + 1..self.closing(open);
        let first = |at: &usize| *at == open + 1 || self.is_sign(*at - 1, ",");
        inside.filter(first).filter_map(|at| self.name_at(at)).collect()
    }

    /// Where the parenthesis that opens here is closed.
    fn closing(&self, open: usize) -> usize {
        self.closings.get(open).copied().unwrap_or(self.tokens.len())
    }

    /// `WITH [RECURSIVE] name [(columns)] AS [[NOT] MATERIALIZED] (query), ...`
    fn with(&mut self, at: usize) {
        let mut at = at + 1;
        while self.is(at, &["RECURSIVE"]) {
            at += 1;
        }
        while let Some(name) = self.name_at(at) {
            let columns = self.columns(at + 1);
            let mut open = if columns.is_empty() { at + 1 } else { self.closing(at + 1) + 1 };
            while self.is(open, &["AS", "NOT", "MATERIALIZED"]) {
                open += 1;
            }
            if !self.is_sign(open, "(") {
                return;
            }
            self.named.insert(name, Named { open, columns });
            let end = self.closing(open);
            if !self.is_sign(end + 1, ",") {
                return;
            }
            at = end + 2;
        }
    }
}
