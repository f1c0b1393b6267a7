//! PostgreSQL's dialect in SQLite's words, and the types of what a statement takes and gives.
//!
//! One walk through the statement's tree in the order of the text. The tree says what comes next; the tokens are taken
//! one after the other, and are copied wherever SQLite spells the same. On the way the walk learns what it can about
//! types: those of the result's columns and of the parameters. What a `FROM` lists is looked at before the columns.
//!
//! A statement that writes is rendered piece by piece ([`lowered`]): what computes its rows is a query made of these.
//! The walk also says what an expression is, for those who compute without SQLite.
//!
//! [`translate`] is given a statement that a session runs, and [`definition`] the expressions and queries of a
//! definition. A query that our grammar does not know, or whose tree has what the walk does not know, is copied token
//! by token: SQLite has the last word on it. A statement that writes is wrong then.
//!
//! ```
//! use store::definition::SqlType;
//! use store::{Clock, Store, StoreOptions};
//!
//! let options = StoreOptions {
//!     path: None,
//!     memory_bytes: 16 << 20,
//!     cold: true,
//!     clock: Clock::System,
//!     row_bytes_max: 1 << 20,
//! };
//! let catalog = Store::open(&options).unwrap().store.catalog();
//! let found = dialect::translate(&catalog, "SELECT 'x' ILIKE $1", &[], None).unwrap();
//! assert_eq!(found.sql, "SELECT 'x' LIKE ilike_pattern( ?1)");
//! assert_eq!(found.parameters[0].ty, Some(SqlType::Text));
//! ```
#![forbid(unsafe_code)]

mod arms;
mod arrays;
mod binding;
mod blanks;
mod calls;
mod cast;
mod clauses;
mod comparison;
pub mod definition;
mod distinct;
mod distinct_texts;
mod equals;
mod expression;
mod grouped;
mod indexes;
mod inline;
mod joined;
pub mod lateral;
pub mod limits;
pub mod lowered;
mod merge;
mod moments;
mod names;
mod nulls;
mod numeric;
mod objects;
mod operand;
mod ordered;
mod out;
mod outputs;
mod own;
mod params;
mod rows;
mod schemas;
mod scope;
mod select;
mod single;
mod spelling;
mod stars;
mod statement;
mod structures;
mod texts;
mod types;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use pgcatalog::function::like::{self, LikeStyle};
use pgcatalog::system::{SEQUENCE_CALLED, SEQUENCE_LAST};
use store::definition::SqlType;
use store::{Catalog, Table, patience};

use indexes::Hidden;
use limits::WALKS_MAX;
use lowered::{Lowered, Select, Write};
use names::Names;
use numeric::Digits;
use out::Out;
use outputs::Output;
use own::Within;
use params::Parameters;
use scope::{Column, Scopes};
use sqltext::error::{SqlError, state};
use sqltext::places::Places;
use sqltext::token::{self, Kind, Token, Tokens};
use sqltext::{Fault, SyntaxError, Tree};

pub use cast::needs_clock;
pub use indexes::Forced;
pub use params::ParameterType;
pub use spelling::same_expression;

/// Words that are no names to SQLite unless they are quoted.
#[rustfmt::skip]
const RESERVED: &[&str] = &[
    "ADD", "ALL", "ALTER", "AND", "AS", "AUTOINCREMENT", "BETWEEN", "CASE", "CHECK", "COLLATE", "COMMIT",
    "CONSTRAINT", "CREATE", "DEFAULT", "DEFERRABLE", "DELETE", "DISTINCT", "DROP", "ELSE", "ESCAPE",
    "EXCEPT", "EXISTS", "FOREIGN", "FROM", "GROUP", "HAVING", "IN", "INDEX", "INSERT", "INTERSECT", "INTO",
    "IS", "ISNULL", "JOIN", "LIMIT", "NOT", "NOTHING", "NOTNULL", "NULL", "ON", "OR", "ORDER", "PRIMARY",
    "RAISE", "REFERENCES", "RETURNING", "SELECT", "SET", "TABLE", "THEN", "TO", "TRANSACTION", "UNION", "UNIQUE",
    "UPDATE", "USING", "VALUES", "WHEN", "WHERE",
];

/// One column of a result, as far as the text tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// `*` or `t.*`, which stands for any number of columns.
    pub star: bool,
    /// What the star stands for, where that is known.
    columns: Option<Vec<Column>>,
    /// Its type, if that is known.
    pub ty: Option<SqlType>,
    /// The parameter that it is, from 0.
    pub parameter: Option<usize>,
    /// What PostgreSQL calls it.
    pub label: Option<String>,
    /// It is a query, or asks whether one has rows.
    pub query: bool,
    /// Another arm of the query has another type there: the first arm alone does not tell it.
    pub mixed: bool,
    /// What its type is made of where a query has several arms.
    told: types::Told,
    /// It may have the type of a column of numbers.
    counts: bool,
    /// Whether it is a decimal number or one of SQLite's.
    digits: Digits,
    /// Of the arms that have a type there, what they have in common; `None` where none has one.
    typed: Option<SqlType>,
    /// In one of the arms stands a text that has no type by itself.
    open: bool,
    /// The moments of an arm become those of another.
    widens: bool,
    /// The types of two arms that no column has together.
    unmatched: Option<(SqlType, SqlType)>,
}

impl Item {
    /// The columns of a result with what its stars stand for; `None` where that is not known. Columns that `USING`
    /// joins are there twice.
    pub fn expanded(items: &[Self]) -> Option<Vec<Self>> {
        let mut all = Vec::with_capacity(items.len());
        for item in items {
            match &item.columns {
                Some(columns) if item.star => {
                    all.extend(columns.iter().map(|(_, ty)| Self { ty: *ty, ..Self::default() }));
                }
                None if item.star => return None,
                _ => all.push(item.clone()),
            }
        }
        Some(all)
    }

    /// Whether its values are the texts of decimal numbers.
    pub fn is_decimal(&self) -> bool {
        self.ty == Some(SqlType::Numeric) && self.digits.are_texts()
    }

    /// A query's columns, given those of one more of its arms (`UNION`, or the next row of `VALUES`).
    fn join_arm(known: &mut [Self], arm: &[Self]) {
        if known.len() != arm.len() || known.iter().chain(arm).any(|item| item.star) {
            return;
        }
        for (known, other) in known.iter_mut().zip(arm) {
            known.counts |= other.counts;
            known.digits = known.digits.or(other.digits);
            known.open |= other.open;
            known.typed = match (known.typed, other.typed) {
                (Some(one), Some(other)) => {
                    if types::have_no_type(one, other) {
                        known.unmatched.get_or_insert((one, other));
                    }
                    known.widens |= types::one_widens(Some(one), Some(other));
                    Some(types::shared(one, other))
                }
                (one, other) => one.or(other),
            };
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
pub struct Translated {
    /// Its text, if it reads.
    pub sql: String,
    places: Places,
    /// What it is, or the pieces of a statement that writes.
    pub lowered: Lowered,
    /// What is known of the parameters.
    pub parameters: Vec<ParameterType>,
    /// The columns of the result.
    pub items: Vec<Item>,
    /// The same with what stars stand for; `None`: that is not known.
    columns: Option<Vec<Column>>,
    /// The tables and views that it reads by name, and the names of tables of the system among them.
    pub reads: Vec<String>,
    /// The users' functions that it calls, by their names in the store.
    pub calls: Vec<String>,
    /// The tables whose rows it asks to be locked.
    pub locks: Vec<String>,
    /// Something that the statement asked for and does not get.
    pub notice: Option<&'static str>,
}

impl Translated {
    /// The pieces of a statement that writes, which are taken out.
    pub fn take_write(&mut self) -> Option<Box<Write>> {
        match std::mem::replace(&mut self.lowered, Lowered::Read(None)) {
            Lowered::Write(write) => Some(write),
            read @ (Lowered::Read(_) | Lowered::Unread) => {
                self.lowered = read;
                None
            }
        }
    }

    /// Turns a place in the new text, in characters from 1, into one of the user's text.
    pub fn relocate(&self, error: SqlError, user: &str) -> SqlError {
        self.places.relocate(error, &self.sql, user)
    }
}

/// The walk through one statement.
struct Translator<'a, 'n> {
    sql: &'a str,
    tokens: &'a [Token<'a>],
    /// The next token.
    at: usize,
    names: &'n Names,
    scopes: Scopes,
    /// Types of names given by `AS`.
    learned: HashMap<String, SqlType>,
    parameters: Parameters,
    /// The columns of the query that is under way, innermost last.
    queries: Vec<Option<Vec<Item>>>,
    /// What the rows of an `INSERT` are assigned to: types, and defaults as SQL.
    targets: Option<Vec<clauses::Target>>,
    /// The table that the rows of an `INSERT` are of.
    written: Option<Arc<Table>>,
    notice: Option<&'static str>,
    /// A table that is written is not there; whatever else is wrong follows from it.
    missing: Option<SqlError>,
    /// The outermost query gives rows to an `INSERT`.
    inserts: bool,
    /// The statement writes.
    writes: bool,
    /// It is a part of a definition.
    defines: bool,
    /// It is an expression of a definition, and computed for each row.
    of_row: bool,
    /// It is in SQLite's words already.
    served: bool,
    /// The outermost query, where it is a plain one.
    select: Plain,
    /// Where the text of the last `SELECT`'s list ends, and where the keys of its `DISTINCT ON` begin.
    list_end: usize,
    /// The last `SELECT` makes groups of its rows.
    grouped: bool,
    distinct_keys: usize,
    /// The columns of the last `SELECT`, as names behind its `ORDER BY` may mean them.
    outputs: Vec<Output<'a>>,
    /// The names in lower case that the list of a `SELECT` gave its columns, while its `WHERE` is under way: SQLite
    /// would know them there.
    given: Vec<String>,
    /// What its list makes rows of, while the list of a `SELECT` is under way.
    spread: Option<rows::Spread<'a>>,
    /// One call of the list at most gives rows.
    alone: bool,
    /// The columns of the join that was just taken, where tables are joined by names.
    joined: Option<Vec<scope::StarColumn>>,
    /// How many names of columns there were so far.
    columns_named: usize,
    /// The `LATERAL` queries around the place, innermost last.
    laterals: Vec<lateral::Lateral<'a>>,
    /// Tables made of that so far, which need names.
    made: usize,
    /// The next query is a table: the query around it compares its columns.
    is_table: bool,
    /// Whether the queries under way are tables, innermost last.
    tables: Vec<bool>,
    /// Columns whose arms must be brought to one type, by where the query begins: an earlier walk found them.
    agreed: HashMap<usize, Vec<(usize, SqlType)>>,
    /// Those of the query under way, and how many queries stand around it.
    agreement: Option<(usize, Vec<(usize, SqlType)>)>,
    /// Equal values of the list under way are one, for it is that of a `DISTINCT` or of an arm: how many queries stand
    /// around that list.
    keyed: Option<usize>,
    /// The list under way is that of a query which gives a row to a function: how many queries stand around that list.
    row_of: Option<usize>,
    /// Indexes are written into the text: it is for the catalogue of now.
    by_index: bool,
    /// The hidden columns of indexes that the clause under way may use.
    hidden: Vec<Hidden>,
    /// The tables that were named in a `FROM`.
    reads: Vec<String>,
    /// The users' functions that were called.
    calls: Vec<String>,
    /// The tables whose rows are to be locked.
    locks: Vec<String>,
}

/// What a statement became.
enum Made<'a> {
    Text(Out<'a>, Option<Box<Select>>),
    Write(Box<Write>),
}

/// The outermost query as one that may need no SQLite.
enum Plain {
    Not,
    /// The next `SELECT` is it.
    Wanted,
    Found(Box<Select>),
}

impl Plain {
    /// Whether the `SELECT` that begins is it.
    fn begin(&mut self) -> bool {
        let wanted = matches!(self, Self::Wanted);
        if wanted {
            *self = Self::Not;
        }
        wanted
    }

    fn take(&mut self) -> Option<Box<Select>> {
        match std::mem::replace(self, Self::Not) {
            Self::Found(select) => Some(select),
            Self::Not | Self::Wanted => None,
        }
    }
}

/// Why the walk ended early.
enum Stop {
    /// The statement is wrong.
    Error(SqlError),
    /// The tree has what this walk does not know: the text is left as it is.
    Unknown,
    /// These columns of the query that begins here must be of these types, which the walk finds out too late.
    Again(usize, Vec<(usize, SqlType)>),
}

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Self {
        Self::Error(error)
    }
}

type Step<T> = Result<T, Stop>;

/// Ends the walk where the statement must stop.
#[inline]
fn go_on() -> Step<()> {
    if patience::step() { Err(Stop::Error(SqlError::stopped())) } else { Ok(()) }
}

/// What a client said of its parameters before anything is known of the statement; `None`: nothing.
pub type Chosen<'c> = &'c [Option<SqlType>];

/// A statement in SQLite's words. `known`: its tree, or that of the same statement with literals in the place of
/// parameters.
pub fn translate(
    catalog: &Catalog,
    sql: &str,
    chosen: Chosen<'_>,
    known: Option<&Tree<'_>>,
) -> Result<Translated, SqlError> {
    let walked = |tree: &Tree<'_>, tokens: &[Token<'_>]| {
        refuse_own_names(sql, tokens)?;
        walked(catalog, (sql, tokens), tree, chosen, Purpose::Statement)
    };
    let found = if let Some(tree) = known {
        walked(tree, &token::tokens(sql))?
    } else if let Some(tree) = tree_of(sql)? {
        walked(&tree, &tree.tokens)?
    } else {
        refuse_own_names(sql, &token::tokens(sql))?;
        None
    };
    Ok(found.unwrap_or_else(|| unread(sql, chosen)))
}

/// Refuses more joined queries than the stack has room for.
fn refuse_many_joined(sql: &str, tokens: &[Token<'_>]) -> Result<(), SqlError> {
    let joins = |token: &&Token<'_>| token.is_any(&["UNION", "INTERSECT", "EXCEPT"]);
    match tokens.iter().filter(joins).nth(limits::JOINED_MAX) {
        None => Ok(()),
        Some(token) => {
            let message = format!("a statement joins at most {} queries", limits::JOINED_MAX);
            Err(SqlError::new(state::TOO_COMPLEX, message).at(sql, token.start))
        }
    }
}

/// Refuses what only we may write, for privileges are not asked for it: a table that runs a text given to it, whatever
/// that reads, and the functions by which a sequence is a table.
fn refuse_own_names(sql: &str, tokens: &[Token<'_>]) -> Result<(), SqlError> {
    const QUOTES: [char; 4] = ['"', '`', '[', '\''];
    const OWN: [&str; 3] = [lateral::LATERAL, SEQUENCE_LAST, SEQUENCE_CALLED];
    refuse_many_joined(sql, tokens)?;
    // Their names begin so, and hardly any of a user's does.
    let may_be = |token: &&Token<'_>| {
        matches!(token.kind, Kind::Word | Kind::Quoted)
            && token.text.trim_start_matches(QUOTES).starts_with('_')
    };
    for token in tokens.iter().filter(may_be) {
        let name = token::unquoted(token.text);
        if OWN.iter().any(|own| own.eq_ignore_ascii_case(&name)) {
            return Err(SqlError::unknown_table(&name).at(sql, token.start));
        }
    }
    Ok(())
}

/// A view's query in the words that serve the tables of now best; its text is in SQLite's words already.
pub fn view(catalog: &Catalog, sql: &str) -> Option<String> {
    walked_view(catalog, sql).map(|view| view.sql)
}

/// A query that is in SQLite's words already, as a statement; `None`: our grammar does not know it.
pub fn translate_view(catalog: &Catalog, sql: &str) -> Option<Translated> {
    walked_view(catalog, sql)
}

/// The tables and views that a query in SQLite's words reads by name; `None`: our grammar does not know it.
pub fn reads_of_view(catalog: &Catalog, sql: &str) -> Option<Vec<String>> {
    walked_view(catalog, sql).map(|view| view.reads)
}

fn walked_view(catalog: &Catalog, sql: &str) -> Option<Translated> {
    let tree = sqltext::parse(sql).ok()?;
    // What `LIKE` meant to who made the view is in the text.
    let walk = || walked(catalog, (sql, &tree.tokens), &tree, &[], Purpose::View(0));
    like::within(LikeStyle::Postgresql, walk).ok().flatten()
}

/// The columns of a query; `None` where they are not known. `depth`: views within which it stands.
fn columns_of_query(catalog: &Catalog, sql: &str, depth: usize) -> Option<Vec<Column>> {
    let tree = sqltext::parse(sql).ok()?;
    walked(catalog, (sql, &tree.tokens), &tree, &[], Purpose::View(depth)).ok().flatten()?.columns
}

/// What a text is brought into SQLite's words for.
#[derive(Clone, Copy)]
enum Purpose<'w> {
    /// It is run.
    Statement,
    /// It is a view's, which stands within so many others.
    View(usize),
    /// It is that of a function, which the statement calls.
    Body(Within<'w>),
}

/// The tree of a text; `None` where our grammar does not know it.
fn tree_of(sql: &str) -> Result<Option<Tree<'_>>, SqlError> {
    match sqltext::parse(sql) {
        Ok(tree) => Ok(Some(tree)),
        Err(SyntaxError { fault: Fault::Stopped, .. }) => Err(SqlError::stopped()),
        Err(error @ SyntaxError { fault: Fault::Texts, .. }) => {
            Err(error.into_error(sql, &token::tokens(sql)))
        }
        Err(SyntaxError { fault: Fault::Literal, place }) => escape_refused(sql, place).map(|()| None),
        Err(_) => Ok(None),
    }
}

fn walked(
    catalog: &Catalog,
    (sql, tokens): (&str, &[Token<'_>]),
    tree: &Tree<'_>,
    chosen: Chosen<'_>,
    purpose: Purpose<'_>,
) -> Result<Option<Translated>, SqlError> {
    let left = Cell::new(0);
    let names = match purpose {
        Purpose::Statement => Names::of_statement(catalog, tokens, Within::new(&left)),
        Purpose::Body(within) => Names::of_statement(catalog, tokens, within),
        Purpose::View(depth) => Names::of(catalog, tokens, depth, false),
    };
    let mut agreed = HashMap::new();
    loop {
        let mut walk = Translator::new(sql, tokens, &names, chosen);
        walk.inserts = tokens.iter().any(|token| token.is("INSERT"));
        walk.agreed.clone_from(&agreed);
        walk.served = matches!(purpose, Purpose::View(_));
        match walk.whole(tree) {
            // Each time it is another query of the text.
            Err(Stop::Again(at, columns)) if agreed.len() < WALKS_MAX => agreed.insert(at, columns),
            out => return walk.finish(out),
        };
    }
}

/// What our grammar or the walk does not know, token by token.
#[cold]
fn unread(sql: &str, chosen: Chosen<'_>) -> Translated {
    let (tokens, names) = (token::tokens(sql), Names::default());
    let mut walk = Translator::new(sql, &tokens, &names, chosen);
    while walk.take_sign(";") {}
    if !walk.next_is_words(&["EXPLAIN", "QUERY"]) {
        walk.take_word("EXPLAIN");
    }
    let (sql, places) = walk.rest().finish();
    let (parameters, items) = (Vec::new(), Vec::new());
    let (lowered, reads, calls, locks) = (Lowered::Unread, Vec::new(), Vec::new(), Vec::new());
    Translated { sql, places, lowered, parameters, items, columns: None, reads, calls, locks, notice: None }
}

/// Refuses an escape that stands for no character; what is not closed is SQLite's to report.
fn escape_refused(sql: &str, place: usize) -> Result<(), SqlError> {
    let foreign = sql.get(place..).is_some_and(|rest| !rest.starts_with(['\'', 'x', 'X']));
    if foreign {
        return Err(SqlError::new("22025", "the text has an escape without a character").at(sql, place));
    }
    Ok(())
}

/// Of the errors that SQLite and our grammar find in a text that our grammar does not know, the one that is further
/// behind: up to there the other was content with the text.
pub fn further_error(sql: &str, error: SqlError) -> SqlError {
    let Err(SyntaxError { place, fault }) = sqltext::parse(sql) else { return error };
    let known = matches!(fault, Fault::Unexpected | Fault::Unfinished);
    if error.state != state::SYNTAX || !known {
        return error;
    }
    let own = syntax_error(sql, Tokens::new(sql).find(|token| token.start >= place));
    if own.position > error.position { own } else { error }
}

/// What is wrong with a text that has no tree. `start`: where the statement begins, behind `EXPLAIN`.
pub fn error_of(sql: &str, start: usize) -> SqlError {
    match sqltext::parse(&sql[start..]) {
        Ok(_) => syntax_error(sql, None),
        Err(error) => {
            SyntaxError { place: start + error.place, ..error }.into_error(sql, &token::tokens(sql))
        }
    }
}

fn syntax_error(sql: &str, token: Option<Token<'_>>) -> SqlError {
    match token {
        Some(token) => SqlError::syntax(sql, &token),
        None => SqlError::new(state::SYNTAX, "syntax error at end of input").at(sql, sql.len()),
    }
}

impl<'a, 'n> Translator<'a, 'n> {
    fn new(sql: &'a str, tokens: &'a [Token<'a>], names: &'n Names, chosen: Chosen<'_>) -> Self {
        Self::from(sql, (tokens, 0), names, chosen)
    }

    /// One that begins with the token at this place.
    fn from(
        sql: &'a str,
        (tokens, at): (&'a [Token<'a>], usize),
        names: &'n Names,
        chosen: Chosen<'_>,
    ) -> Self {
        let mut parameters = Parameters::new(chosen);
        for token in tokens[at..].iter().filter(|token| token.kind == Kind::Parameter) {
            parameters.add(token);
        }
        Self {
            sql,
            tokens,
            at,
            names,
            scopes: Scopes::default(),
            learned: HashMap::new(),
            parameters,
            queries: vec![None],
            targets: None,
            written: None,
            notice: None,
            missing: None,
            inserts: false,
            writes: false,
            defines: false,
            of_row: false,
            given: Vec::new(),
            served: false,
            select: Plain::Not,
            list_end: 0,
            grouped: false,
            distinct_keys: 0,
            outputs: Vec::new(),
            spread: None,
            alone: false,
            columns_named: 0,
            joined: None,
            laterals: Vec::new(),
            made: 0,
            by_index: sql.len() <= limits::INDEXED_BYTES_MAX,
            is_table: false,
            tables: Vec::new(),
            agreed: HashMap::new(),
            agreement: None,
            keyed: None,
            row_of: None,
            hidden: Vec::new(),
            reads: Vec::new(),
            calls: Vec::new(),
            locks: Vec::new(),
        }
    }

    /// The whole statement, with the semicolons around it.
    fn whole(&mut self, tree: &Tree<'_>) -> Step<Made<'a>> {
        let mut out = Out::default();
        self.pass_semicolons(&mut out);
        let made = self.statement(&tree.statement, &tree.tail)?;
        Ok(match made {
            Made::Text(text, select) => {
                out.push(text);
                self.pass_semicolons(&mut out);
                Made::Text(out, select)
            }
            Made::Write(write) => {
                self.pass_semicolons(&mut out);
                Made::Write(write)
            }
        })
    }

    fn pass_semicolons(&mut self, out: &mut Out<'a>) {
        while self.next_is_sign(0, ";") {
            self.pass(out);
        }
    }

    /// What became of the text; `None` where it stays as it is.
    fn finish(mut self, made: Step<Made<'a>>) -> Result<Option<Translated>, SqlError> {
        let made = match made {
            Ok(made) if self.at == self.tokens.len() => made,
            Ok(_) | Err(Stop::Unknown | Stop::Again(..)) if self.writes => {
                return Err(syntax_error(self.sql, self.peek()));
            }
            Ok(_) | Err(Stop::Unknown | Stop::Again(..)) => return Ok(None),
            Err(Stop::Error(error)) => return Err(self.missing.take().unwrap_or(error)),
        };
        let items = self.queries.pop().flatten().unwrap_or_default();
        let columns = self.columns_of_items(&items);
        let (sql, places, lowered) = match made {
            Made::Text(out, select) => {
                let (sql, places) = out.finish();
                (sql, places, Lowered::Read(select))
            }
            Made::Write(write) => (String::new(), Places::unchanged(), Lowered::Write(write)),
        };
        let parameters = self.parameters.finish();
        let Self { reads, calls, locks, notice, .. } = self;
        Ok(Some(Translated { sql, places, lowered, parameters, items, columns, reads, calls, locks, notice }))
    }

    /// Copies all that is left, without schemas and collations that change nothing.
    fn rest(&mut self) -> Out<'a> {
        let mut out = Out::default();
        loop {
            self.pass_collation();
            self.pass_schema();
            let Some(token) = self.peek() else { return out };
            match self.parameters.number(&token) {
                Some(number) => out.push(self.numbered(number)),
                None => self.pass(&mut out),
            }
        }
    }

    /// Takes the parameter that is next, of this number from 0.
    fn numbered(&mut self, number: usize) -> Out<'a> {
        let from = self.peek().map_or(0, |token| token.start);
        self.at += 1;
        Out::made(format!("?{}", number + 1), from)
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

    fn next_is_words(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(at, word)| self.peek_at(at).is_some_and(|token| token.is(word)))
    }

    fn next_is_sign(&self, ahead: usize, sign: &str) -> bool {
        self.peek_at(ahead).is_some_and(|token| token.is_sign(sign))
    }

    /// A token as it stands, with a blank before it where there was something.
    fn copied(&self, token: Token<'a>) -> Out<'a> {
        if !self.sql[token.start..].starts_with(token.text) {
            return Out::made(token.text, token.start);
        }
        let blank = token.start > 0 && self.sql.as_bytes()[token.start - 1].is_ascii_whitespace();
        if blank {
            return Out::source(&self.sql[token.start - 1..token.end()], token.start - 1);
        }
        let own = Out::source(&self.sql[token.start..token.end()], token.start);
        if token.apart { Out::joined([Out::made("", token.start), own], "") } else { own }
    }

    /// A name that was taken, as it stands, in quotes where SQLite keeps the word for itself. A function's is none.
    fn name_copied(&self, token: Token<'a>) -> Out<'a> {
        if token.kind == Kind::Word && !self.next_is_sign(0, "(") && token.is_any(RESERVED) {
            return Out::made(token::quoted_name(token.text), token.start);
        }
        self.copied(token)
    }

    /// The tokens from this one to the next, copied.
    fn copied_from(&self, begin: usize) -> Out<'a> {
        let tokens = self.tokens[begin..self.at].iter();
        Out::joined(tokens.map(|token| self.copied(*token)), "")
    }

    /// Copies the next token.
    fn pass(&mut self, out: &mut Out<'a>) {
        if let Some(token) = self.take() {
            out.push(self.copied(token));
        }
    }

    /// Copies the next tokens while they are of these words.
    fn pass_words(&mut self, words: &[&str], out: &mut Out<'a>) {
        while self.peek().is_some_and(|token| token.is_any(words)) {
            self.pass(out);
        }
    }

    /// Copies this sign, which must be next.
    fn pass_sign(&mut self, sign: &str, out: &mut Out<'a>) -> Step<()> {
        let token = self.sign(sign)?;
        out.push(self.copied(token));
        Ok(())
    }

    /// Copies this keyword, which must be next.
    fn pass_word(&mut self, word: &str, out: &mut Out<'a>) -> Step<()> {
        let token = self.keyword(word)?;
        out.push(self.copied(token));
        Ok(())
    }

    /// Takes the next token.
    fn token(&mut self) -> Step<Token<'a>> {
        go_on()?;
        self.take().ok_or(Stop::Unknown)
    }

    /// Takes this sign, which must be next.
    fn sign(&mut self, sign: &str) -> Step<Token<'a>> {
        self.token().and_then(|token| if token.is_sign(sign) { Ok(token) } else { Err(Stop::Unknown) })
    }

    /// Takes this keyword, which must be next.
    fn keyword(&mut self, word: &str) -> Step<Token<'a>> {
        self.token().and_then(|token| if token.is(word) { Ok(token) } else { Err(Stop::Unknown) })
    }

    fn error_at(&self, token: Option<Token<'a>>, state: &'static str, message: impl Into<String>) -> Stop {
        let at = token.map_or(self.sql.len(), |token| token.start);
        Stop::Error(SqlError::new(state, message).at(self.sql, at))
    }
}
