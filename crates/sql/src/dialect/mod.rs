//! PostgreSQL's dialect in SQLite's words, and the types of what a statement takes and gives.
//!
//! One pass over the tokens, without a grammar of its own: expressions are taken apart by the precedence of their
//! operators, everything else is copied. So what PostgreSQL spells otherwise is rewritten wherever it stands, and what
//! is SQLite's alone goes through untouched. On the way the pass learns what it can about types: those of the result's
//! columns and of the parameters.

mod arrays;
mod calls;
mod cast;
mod clauses;
mod expression;
mod names;
mod numeric;
mod operand;
mod out;
mod params;
mod scope;
mod select;
mod structures;
mod types;

use store::Catalog;
use store::definition::SqlType;

use crate::error::SqlError;
use crate::text::places::Places;
use names::{Column, Learned, Names};
use out::Out;
use params::Parameters;
use scope::Scopes;
use sqltext::token::{self, Token};

pub(crate) use params::ParameterType;

/// Parentheses, subqueries and prefix operators that may lie within each other; a text that nests deeper is left as it
/// is. The pass is recursive, and a SQL thread's stack is bounded.
const DEPTH_MAX: usize = 150;

/// Passes over one statement: one for each level of subqueries whose columns are named and used further out.
const PASSES_MAX: usize = 5;

/// One column of a result, as far as the text tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Item {
    /// `*` or `t.*`, which stands for any number of columns.
    pub(crate) star: bool,
    /// What the star stands for, where that is known.
    columns: Option<Vec<Column>>,
    pub(crate) ty: Option<SqlType>,
    /// The parameter that it is, from 0.
    pub(crate) parameter: Option<usize>,
    /// What PostgreSQL calls it.
    pub(crate) label: Option<String>,
    /// Another arm of the query has another type there: the first arm alone does not tell it.
    pub(crate) mixed: bool,
    /// What its type is made of where a query has several arms.
    told: types::Told,
}

impl Item {
    /// A query's columns, given those of one more of its arms (`UNION`, or the next row of `VALUES`).
    fn join_arm(known: &mut [Self], arm: &[Self]) {
        if known.len() != arm.len() || known.iter().chain(arm).any(|item| item.star) {
            return;
        }
        for (known, other) in known.iter_mut().zip(arm).filter(|(known, _)| known.parameter.is_none()) {
            known.told = known.told.or(other.told);
            known.mixed |= known.ty.is_some() && known.ty != known.told.ty;
            known.ty = known.told.ty;
        }
    }
}

/// A statement in SQLite's words.
#[derive(Debug)]
pub(crate) struct Translated {
    pub(crate) sql: String,
    places: Places,
    /// What is known of the parameters.
    pub(crate) parameters: Vec<ParameterType>,
    /// The columns of the result.
    pub(crate) items: Vec<Item>,
    /// The same with what stars stand for; `None`: that is not known.
    columns: Option<Vec<Column>>,
    /// Something that the statement asked for and does not get.
    pub(crate) notice: Option<&'static str>,
}

impl Translated {
    /// Turns a place in the new text, in characters from 1, into one of the user's text.
    pub(crate) fn relocate(&self, error: SqlError, user: &str) -> SqlError {
        self.places.relocate(error, &self.sql, user)
    }
}

/// The pass over one statement.
struct Translator<'a, 'n> {
    sql: &'a str,
    tokens: &'a [Token<'a>],
    at: usize,
    names: &'n Names,
    scopes: &'n Scopes,
    /// What an earlier pass learned.
    known: &'n Learned,
    learned: Learned,
    parameters: Parameters,
    depth: usize,
    /// The columns of the query that is under way, innermost last.
    queries: Vec<Option<Vec<Item>>>,
    /// What the rows of an `INSERT` are assigned to: types, and defaults as SQL.
    targets: Option<Vec<clauses::Target>>,
    notice: Option<&'static str>,
    /// Columns of the outermost query may be exact decimal texts.
    shows: bool,
    /// Those that are.
    shown: numeric::Shown<'a>,
    /// The outermost query gives rows to an `INSERT`.
    inserts: bool,
}

/// Why a pass ended early.
enum Stop {
    /// The statement is wrong.
    Error(SqlError),
    /// It nests too deep to be looked at.
    Deep,
}

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Self {
        Self::Error(error)
    }
}

type Step<T> = Result<T, Stop>;

/// What a client said of its parameters before anything is known of the statement; `None`: nothing.
pub(crate) type Chosen<'c> = &'c [Option<SqlType>];

/// A statement in SQLite's words; `None` where it should be left as it is.
pub(crate) fn translate(
    catalog: &Catalog,
    sql: &str,
    chosen: Chosen<'_>,
) -> Result<Option<Translated>, SqlError> {
    translate_within(catalog, sql, chosen, 0, true)
}

/// The columns of a query; `None` where they are not known. `depth`: views within which it stands.
fn columns_of_query(catalog: &Catalog, sql: &str, depth: usize) -> Option<Vec<Column>> {
    translate_within(catalog, sql, &[], depth, false).ok().flatten()?.columns
}

/// `shows`: columns of the outermost query may be exact decimal texts.
fn translate_within(
    catalog: &Catalog,
    sql: &str,
    chosen: Chosen<'_>,
    depth: usize,
    shows: bool,
) -> Result<Option<Translated>, SqlError> {
    let tokens = token::tokens(sql);
    let names = Names::of(catalog, &tokens, depth);
    let scopes = Scopes::of(&tokens);
    let shows = shows && numeric::may_show(&tokens);
    let text = Text { sql, tokens: &tokens, names: &names, scopes: &scopes, chosen, shows };
    let first = pass(&text, &Learned::default())?;
    let Some((mut last, mut learned)) = first else { return Ok(None) };
    let inner = tokens.iter().filter(|token| token.is("SELECT")).count() > 1
        || tokens.iter().any(|token| token.is_any(calls::TABLES));
    if learned.is_empty() || !inner {
        return Ok(Some(last));
    }
    // Names given by subqueries are known now, also where they were used before; names that depend on these are known
    // after one more pass.
    for _ in 1..PASSES_MAX {
        let Some((next, more)) = pass(&text, &learned)? else { return Ok(None) };
        let is_last = more == learned;
        (last, learned) = (next, more);
        if is_last {
            break;
        }
    }
    Ok(Some(last))
}

/// A part of a definition in SQLite's words: an expression, a list of them, or a query. `table` is the one whose
/// columns it may name.
pub(crate) fn translate_part(catalog: &Catalog, table: Option<&str>, sql: &str) -> Result<String, SqlError> {
    let tokens = token::tokens(sql);
    let mut names = Names::of(catalog, &tokens, 0);
    if let Some(table) = table.and_then(|name| catalog.table(name)) {
        names.add(table);
    }
    if tokens.iter().any(|token| token.is("SELECT")) {
        // Statements that read the view compute with its columns.
        let translated = translate_within(catalog, sql, &[], 0, false)?;
        return Ok(translated.map_or_else(|| sql.to_owned(), |translated| translated.sql));
    }
    let scopes = Scopes::of(&tokens);
    let passed = pass(
        &Text { sql, tokens: &tokens, names: &names, scopes: &scopes, chosen: &[], shows: false },
        &Learned::default(),
    )?;
    Ok(passed.map_or_else(|| sql.to_owned(), |(translated, _)| translated.sql))
}

type Passed = Option<(Translated, Learned)>;

/// What each pass over a statement looks at.
struct Text<'a, 'n> {
    sql: &'a str,
    tokens: &'a [Token<'a>],
    names: &'n Names,
    scopes: &'n Scopes,
    chosen: Chosen<'n>,
    /// Columns of the outermost query may be exact decimal texts.
    shows: bool,
}

fn pass(text: &Text<'_, '_>, known: &Learned) -> Result<Passed, SqlError> {
    let mut translator = Translator {
        sql: text.sql,
        tokens: text.tokens,
        at: 0,
        names: text.names,
        scopes: text.scopes,
        known,
        learned: Learned::default(),
        parameters: Parameters::new(text.chosen),
        depth: 0,
        queries: vec![None],
        targets: None,
        notice: None,
        shows: text.shows,
        shown: numeric::Shown::default(),
        inserts: text.tokens.iter().any(|token| token.is("INSERT")),
    };
    let out = match translator.whole() {
        Ok(out) => out,
        Err(Stop::Deep) => return Ok(None),
        Err(Stop::Error(error)) => return Err(error),
    };
    let items = translator.queries.pop().flatten().unwrap_or_default();
    let columns = translator.columns_of_items(&items);
    let (text, places) = out.finish();
    let translated = Translated {
        sql: text,
        places,
        parameters: translator.parameters.finish(),
        items,
        columns,
        notice: translator.notice,
    };
    Ok(Some((translated, translator.learned)))
}

impl<'a> Translator<'a, '_> {
    /// The whole statement; a parenthesis too many is copied for SQLite to complain about.
    fn whole(&mut self) -> Step<Out<'a>> {
        let mut out = Out::default();
        loop {
            out.push(self.sequence()?);
            match self.take() {
                Some(stray) => out.push(self.copied(stray)),
                None => return Ok(out),
            }
        }
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn peek_at(&self, ahead: usize) -> Option<Token<'a>> {
        self.tokens.get(self.at + ahead).copied()
    }

    fn take(&mut self) -> Option<Token<'a>> {
        let token = self.peek()?;
        self.at += 1;
        Some(token)
    }

    /// Takes a keyword if it is next.
    fn take_word(&mut self, word: &str) -> bool {
        let there = self.peek().is_some_and(|token| token.is(word));
        self.at += usize::from(there);
        there
    }

    /// Takes these keywords if they are next.
    fn take_words(&mut self, words: &[&str]) -> bool {
        let there =
            words.iter().enumerate().all(|(at, word)| self.peek_at(at).is_some_and(|token| token.is(word)));
        self.at += if there { words.len() } else { 0 };
        there
    }

    /// Takes a sign if it is next.
    fn take_sign(&mut self, sign: &str) -> bool {
        let there = self.next_is_sign(0, sign);
        self.at += usize::from(there);
        there
    }

    fn next_is_sign(&self, ahead: usize, sign: &str) -> bool {
        self.peek_at(ahead).is_some_and(|token| token.is_sign(sign))
    }

    /// A token as it stands, with a blank before it where there was something.
    fn copied(&self, token: Token<'a>) -> Out<'a> {
        let blank = token.start > 0 && self.sql.as_bytes()[token.start - 1].is_ascii_whitespace();
        if blank {
            return Out::source(&self.sql[token.start - 1..token.end()], token.start - 1);
        }
        let own = Out::source(&self.sql[token.start..token.end()], token.start);
        if token.apart { Out::joined([Out::made("", token.start), own], "") } else { own }
    }

    /// Runs a step one level deeper.
    fn deeper<T>(&mut self, step: impl FnOnce(&mut Self) -> Step<T>) -> Step<T> {
        if self.depth >= DEPTH_MAX {
            return Err(Stop::Deep);
        }
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        result
    }

    fn error_at(&self, token: Option<Token<'a>>, state: &'static str, message: impl Into<String>) -> Stop {
        let at = token.map_or(self.sql.len(), |token| token.start);
        Stop::Error(SqlError::new(state, message).at(self.sql, at))
    }
}
