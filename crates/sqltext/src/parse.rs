//! A text's tokens and their tree.
//!
//! The parser is given our tokens, and for the place of each the number of the token and of its first byte. So every
//! node of the tree leads back to the text as the user wrote it.

use std::fmt;
use std::ops::Range;

use sqlparser::ast::{SetExpr, Spanned, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span, Token as Spelled, TokenWithSpan, Word};

use store::patience;

use crate::conflict::{self, Tail};
use crate::dialect::Sql;
use crate::error::{SqlError, state};
use crate::limits::{DEPTH_MAX, NESTING_MAX};
use crate::nesting::too_deep;
use crate::token::{Kind, Token, text_of, tokens, unquoted};

/// Words that are names here, whatever other databases make of them.
const NAMES: &[&str] =
    &["USER", "MATCH_RECOGNIZE", "PIVOT", "UNPIVOT", "SAMPLE", "FINAL", "CONVERT", "TRY_CAST", "UNNEST"];

/// Collations that compare text by its bytes, as everything here does.
const BYTEWISE: &[&str] = &["default", "C", "POSIX", "ucs_basic", "C.UTF-8"];

/// A statement's text and what it says.
#[derive(Debug)]
pub struct Tree<'a> {
    /// The text.
    pub sql: &'a str,
    /// Its tokens.
    pub tokens: Vec<Token<'a>>,
    /// Their tree.
    pub statement: Statement,
    /// What stands behind the rows of an `INSERT`, from `ON CONFLICT` on, or behind the number of a `LIMIT`.
    pub tail: Tail,
}

/// Why a text has no tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Where in the text it shows, in bytes.
    pub place: usize,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// What stands at the place does not belong there.
    Unexpected,
    /// The text ends before the statement does.
    Unfinished,
    /// A literal is not closed, or has an escape that stands for no character.
    Literal,
    /// Two texts stand side by side: SQLite would take the second for the name of a column.
    Texts,
    /// Another statement begins at the place.
    Another,
    /// It nests too deep to be read.
    Deep,
    /// Nothing: it was not read to its end, for the statement must stop.
    Stopped,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.fault {
            Fault::Unexpected | Fault::Texts => "unexpected text",
            Fault::Unfinished => "syntax error at end of input",
            Fault::Literal => "a literal is not closed or has an unknown escape",
            Fault::Another => "another statement begins",
            Fault::Deep => "the statement nests too deep",
            Fault::Stopped => "the statement was stopped",
        })?;
        write!(f, " at byte {}", self.place)
    }
}

impl std::error::Error for SyntaxError {}

impl SyntaxError {
    /// It as a client sees it.
    #[cold]
    pub fn into_error(self, sql: &str, tokens: &[Token<'_>]) -> SqlError {
        let error = |state, message: &str| SqlError::new(state, message).at(sql, self.place);
        let token = tokens.iter().find(|token| token.start >= self.place);
        match (self.fault, token) {
            (Fault::Unexpected, Some(token)) => SqlError::syntax(sql, token),
            (Fault::Texts, Some(token)) => SqlError::syntax(sql, token)
                .with_hint("a text goes on only behind a line break; || joins two texts"),
            (Fault::Unexpected | Fault::Unfinished | Fault::Texts, _) => {
                SqlError::new(state::SYNTAX, "syntax error at end of input").at(sql, sql.len())
            }
            (Fault::Literal, Some(Token { kind: Kind::Foreign, text, .. })) if !text.starts_with('\'') => {
                error("22025", "the text has an escape without a character")
            }
            (Fault::Literal, _) => error(state::SYNTAX, "a literal is not closed"),
            (Fault::Another, _) => {
                error(state::SYNTAX, "only one statement can be sent at a time; send the next one separately")
            }
            (Fault::Stopped, _) => SqlError::stopped(),
            (Fault::Deep, _) => error(
                state::TOO_COMPLEX,
                &format!("the statement nests more than {NESTING_MAX} operators; split it"),
            ),
        }
    }
}

/// Reads one statement.
pub fn parse(sql: &str) -> Result<Tree<'_>, SyntaxError> {
    parse_tokens(sql, tokens(sql))
}

/// Reads one statement of which the tokens are known.
pub fn parse_tokens<'a>(sql: &'a str, tokens: Vec<Token<'a>>) -> Result<Tree<'a>, SyntaxError> {
    let cut = conflicts(&tokens);
    let mut spelled = all_spelled(&tokens)?;
    let behind = cut.map(|cut| {
        let at = spelled.partition_point(|spelled| token_at(spelled.span.start) < Some(cut));
        spelled.split_off(at)
    });
    let mut parser = parser_of(spelled);
    while parser.consume_token(&Spelled::SemiColon) {}
    let end = cut.map_or(sql.len(), |cut| tokens[cut].start);
    let statement = parser.parse_statement().map_err(|error| match error_of(end, &tokens, &error) {
        error if patience::is_over() => SyntaxError { fault: Fault::Stopped, ..error },
        SyntaxError { place, fault: Fault::Unfinished } if cut.is_some() => {
            SyntaxError { place, fault: Fault::Unexpected }
        }
        error => error,
    })?;
    let tail = match behind {
        None if ends_with_limit(&statement) => {
            let second_limit =
                conflict::second_limit(&mut parser).map_err(|error| error_of(end, &tokens, &error))?;
            Tail { second_limit, ..Tail::default() }
        }
        None => Tail::default(),
        Some(behind) => {
            expect_end(sql, &mut parser, end)?;
            parser = parser_of(behind);
            conflict::tail(&mut parser).map_err(|error| error_of(sql.len(), &tokens, &error))?
        }
    };
    expect_end(sql, &mut parser, sql.len())?;
    Ok(Tree { sql, tokens, statement, tail })
}

pub(crate) fn parser_of(spelled: Vec<TokenWithSpan>) -> Parser<'static> {
    Parser::new(&Sql).with_recursion_limit(DEPTH_MAX).with_tokens_with_locations(spelled)
}

/// All tokens as the parser has them, without those that it does not know and that change nothing else.
fn all_spelled(tokens: &[Token<'_>]) -> Result<Vec<TokenWithSpan>, SyntaxError> {
    if let Some(place) = too_deep(tokens) {
        return Err(SyntaxError { place, fault: Fault::Deep });
    }
    spelled_in(tokens, 0..tokens.len())
}

/// The same of some of them.
pub(crate) fn spelled_in(
    tokens: &[Token<'_>],
    range: Range<usize>,
) -> Result<Vec<TokenWithSpan>, SyntaxError> {
    let mut spelled = Vec::with_capacity(range.len());
    let mut at = range.start;
    while let Some(token) = tokens.get(at).filter(|_| at < range.end) {
        if patience::step() {
            return Err(SyntaxError { place: token.start, fault: Fault::Stopped });
        }
        if follows_text(tokens, at) {
            return Err(SyntaxError { place: token.start, fault: Fault::Texts });
        }
        let unknown = passed_over(tokens, at);
        if reads_table(tokens, at) {
            // The parser's own `TABLE` takes what stands behind the name, too.
            let words = [Spelled::make_keyword("SELECT"), Spelled::Mul, Spelled::make_keyword("FROM")];
            spelled.extend(words.map(|word| TokenWithSpan { token: word, span: span_of(at, token) }));
        } else if unknown == 0 {
            let literal = SyntaxError { place: token.start, fault: Fault::Literal };
            let own = if replaces(tokens, at) {
                Spelled::make_keyword("INSERT")
            } else {
                bare_name(tokens, at, spelling(token).ok_or(literal)?)
            };
            spelled.push(TokenWithSpan { token: own, span: span_of(at, token) });
        }
        at += unknown.max(1);
    }
    Ok(spelled)
}

/// Whether a text stands right behind another one.
fn follows_text(tokens: &[Token<'_>], at: usize) -> bool {
    let is_text = |token: &Token<'_>| matches!(token.kind, Kind::Text | Kind::Foreign);
    is_text(&tokens[at]) && at.checked_sub(1).is_some_and(|before| is_text(&tokens[before]))
}

/// A word of the grammar that stands where an operand begins is the name of a column there: PostgreSQL takes these as
/// names everywhere else too.
fn bare_name(tokens: &[Token<'_>], at: usize, spelled: Spelled) -> Spelled {
    use Keyword::{BETWEEN, BY, ESCAPE, EXISTS, SET, TRIM, VALUES};
    let Spelled::Word(Word { keyword, .. }) = &spelled else { return spelled };
    let is_name = match keyword {
        BETWEEN | BY | ESCAPE | SET => begins_operand(tokens, at),
        EXISTS | TRIM | VALUES => {
            let called = tokens.get(at + 1).is_some_and(|next| next.is_sign("("));
            !called && begins_operand(tokens, at)
        }
        _ => false,
    };
    if is_name { name(tokens[at].text.to_owned(), None) } else { spelled }
}

/// Words behind which an operand begins.
const BEFORE_OPERAND: &[&str] = &[
    "SELECT",
    "DISTINCT",
    "WHERE",
    "AND",
    "OR",
    "ON",
    "HAVING",
    "BY",
    "SET",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "RETURNING",
];

/// Whether what stands before says that an operand begins. A word there may be such a name itself.
fn begins_operand(tokens: &[Token<'_>], at: usize) -> bool {
    let named = |at: usize| tokens[at].is_any(&["BY", "SET"]) && follows_opening(tokens, at);
    follows_opening(tokens, at) && !at.checked_sub(1).is_some_and(named)
}

/// Whether a sign or a word stands before that an operand may follow.
fn follows_opening(tokens: &[Token<'_>], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).and_then(|before| tokens.get(before)) else { return false };
    match before.kind {
        Kind::Sign => !matches!(before.text, ")" | "]" | "." | ";"),
        Kind::Word => before.is_any(BEFORE_OPERAND),
        _ => false,
    }
}

/// Whether a statement that writes has a `LIMIT`, which is the last of it.
fn ends_with_limit(statement: &Statement) -> bool {
    match statement {
        Statement::Update(update) => update.limit.is_some(),
        Statement::Delete(delete) => delete.limit.is_some(),
        Statement::Explain { statement, .. } => ends_with_limit(statement),
        Statement::Query(query) => match &*query.body {
            SetExpr::Update(statement) | SetExpr::Delete(statement) => ends_with_limit(statement),
            _ => false,
        },
        _ => false,
    }
}

/// Nothing but semicolons is left.
fn expect_end(sql: &str, parser: &mut Parser<'_>, end: usize) -> Result<(), SyntaxError> {
    let mut ended = false;
    while parser.consume_token(&Spelled::SemiColon) {
        ended = true;
    }
    let rest = parser.peek_token_ref();
    if rest.token == Spelled::EOF {
        return Ok(());
    }
    let fault = if ended && end == sql.len() { Fault::Another } else { Fault::Unexpected };
    Err(SyntaxError { place: offset(rest.span.start).unwrap_or(end), fault })
}

/// The token at which `ON CONFLICT` begins, outside all parentheses and behind `INTO`.
fn conflicts(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut into = false;
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Sign if token.text == "(" => depth += 1,
            Kind::Sign if token.text == ")" => depth = depth.saturating_sub(1),
            Kind::Word if depth > 0 => {}
            Kind::Word if token.is("INTO") => into = true,
            Kind::Word if into && conflict::begins(tokens, at) => return Some(at),
            _ => {}
        }
    }
    None
}

/// Whether this is the word of `REPLACE INTO`, which is an `INSERT`.
fn replaces(tokens: &[Token<'_>], at: usize) -> bool {
    tokens[at].is("REPLACE")
        && tokens.get(at + 1).is_some_and(|next| next.is("INTO"))
        && !at.checked_sub(1).is_some_and(|before| tokens[before].is("OR"))
}

/// Whether this is the word of `TABLE name`, which is `SELECT * FROM name`.
fn reads_table(tokens: &[Token<'_>], at: usize) -> bool {
    const BEFORE: &[&str] = &["UNION", "INTERSECT", "EXCEPT", "ALL", "DISTINCT", "AS", "EXPLAIN", "FOR"];
    if !tokens[at].is("TABLE") {
        return false;
    }
    let name = |at: usize| tokens.get(at).is_some_and(|own| matches!(own.kind, Kind::Word | Kind::Quoted));
    let Some(before) = at.checked_sub(1).map(|before| &tokens[before]) else { return name(at + 1) };
    let begins = match before.kind {
        Kind::Sign => matches!(before.text, "(" | ")" | ";"),
        // `ANALYZE TABLE name` by itself is none.
        _ if before.is_any(&["ANALYZE", "VERBOSE"]) => tokens[0].is("EXPLAIN"),
        _ => before.is_any(BEFORE) || filled_by_query(tokens, at),
    };
    begins && name(at + 1)
}

/// Whether `INTO name` or `INTO schema.name` stands before a place.
fn filled_by_query(tokens: &[Token<'_>], at: usize) -> bool {
    match tokens.get(..at).unwrap_or_default() {
        [.., into, _name] if into.is("INTO") => true,
        [.., into, _schema, point, _name] => point.is_sign(".") && into.is("INTO"),
        _ => false,
    }
}

/// How many tokens from here on are a collation that changes nothing.
pub fn bytewise_collation(tokens: &[Token<'_>], at: usize) -> usize {
    let [collate, rest @ ..] = tokens.get(at..).unwrap_or_default() else { return 0 };
    if !collate.is("COLLATE") {
        return 0;
    }
    let (name, count) = match rest {
        [schema, point, name, ..] if point.is_sign(".") && unquoted(schema.text) == "pg_catalog" => (name, 4),
        [name, ..] => (name, 2),
        [] => return 0,
    };
    let is_name = |known: &&str| match name.kind {
        Kind::Word => name.text.eq_ignore_ascii_case(known),
        Kind::Quoted => unquoted(name.text) == **known,
        _ => false,
    };
    if BYTEWISE.iter().any(is_name) { count } else { 0 }
}

/// Whether this parenthesis closes `OPERATOR(`, of which the parser sees the operator alone.
fn closes_operator(tokens: &[Token<'_>], at: usize) -> bool {
    let before = tokens.get(..at).unwrap_or_default();
    match before {
        [.., word, open, _operator] if open.is_sign("(") => word.is("OPERATOR"),
        [.., word, open, _schema, point, _operator] if point.is_sign(".") => {
            open.is_sign("(") && word.is("OPERATOR")
        }
        _ => false,
    }
}

/// How many tokens from here on the parser does not know: `ONLY` before a table, `INDEXED BY`, `OVERRIDING`, the
/// `CROSS` of SQLite's `CROSS INNER JOIN`, the `EXCLUDE` of a window's frame, the `NO KEY` of a lock, what stands
/// around the operator in `OPERATOR(schema.~)`, collations that change nothing. Whoever walks the tree finds them
/// between its nodes.
fn passed_over(tokens: &[Token<'_>], at: usize) -> usize {
    let Some(token) = tokens.get(at) else { return 0 };
    if token.kind != Kind::Word {
        return usize::from(token.is_sign(")") && closes_operator(tokens, at));
    }
    let next = |ahead: usize, word: &str| tokens.get(at + ahead).is_some_and(|next| next.is(word));
    let behind = |words: &[&str]| at.checked_sub(1).is_some_and(|before| tokens[before].is_any(words));
    if token.is("ONLY") {
        let table = tokens.get(at + 1).is_some_and(|next| next.kind != Kind::Sign);
        return usize::from(table && behind(&["FROM", "JOIN", "UPDATE"]));
    }
    if token.is("CROSS") {
        return usize::from(next(1, "INNER") && next(2, "JOIN"));
    }
    if token.is("INDEXED") && next(1, "BY") && tokens.len() > at + 2 {
        return 3;
    }
    if token.is("NOT") && next(1, "INDEXED") {
        return 2;
    }
    if token.is("EXCLUDE") {
        let ends = |ahead: usize| tokens.get(at + ahead).is_some_and(|next| next.is_sign(")"));
        let short = (next(1, "TIES") || next(1, "GROUP")) && ends(2);
        let long =
            ((next(1, "CURRENT") && next(2, "ROW")) || (next(1, "NO") && next(2, "OTHERS"))) && ends(3);
        return if short { 2 } else { 3 * usize::from(long) };
    }
    // PostgreSQL's weaker locks.
    if behind(&["FOR"]) && token.is("NO") && next(1, "KEY") && next(2, "UPDATE") {
        return 2;
    }
    if behind(&["FOR"]) && token.is("KEY") && next(1, "SHARE") {
        return 1;
    }
    if token.is("OPERATOR") && tokens.get(at + 1).is_some_and(|next| next.is_sign("(")) {
        return if tokens.get(at + 3).is_some_and(|next| next.is_sign(".")) { 4 } else { 2 };
    }
    if token.is("COLLATE") {
        return bytewise_collation(tokens, at);
    }
    let overrides = token.is("OVERRIDING") && (next(1, "SYSTEM") || next(1, "USER")) && next(2, "VALUE");
    if overrides { 3 } else { 0 }
}

impl Tree<'_> {
    /// The text of these tokens.
    pub fn text(&self, tokens: Range<usize>) -> &str {
        let tokens = self.tokens.get(tokens).unwrap_or_default();
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return "" };
        self.sql.get(first.start..last.end()).unwrap_or_default()
    }

    /// The number of the first token of a node; `None` where the parser kept no place of it.
    pub fn token_of(&self, node: &impl Spanned) -> Option<usize> {
        token_at(node.span().start)
    }
}

/// The number of the token that begins at a location.
pub fn token_at(location: Location) -> Option<usize> {
    usize::try_from(location.line).ok()?.checked_sub(1)
}

/// Where a location is in the text, in bytes.
fn offset(location: Location) -> Option<usize> {
    usize::try_from(location.column).ok()?.checked_sub(1)
}

/// The place of a token: its number as the line, its first byte as the column, both from 1.
fn span_of(at: usize, token: &Token<'_>) -> Span {
    let location = |column: usize| Location::new(1 + at as u64, 1 + column as u64);
    Span::new(location(token.start), location(token.end()))
}

/// Where the parser found what it did not expect; `end`: where its tokens end.
pub(crate) fn error_of(end: usize, tokens: &[Token<'_>], error: &ParserError) -> SyntaxError {
    let words = match error {
        ParserError::RecursionLimitExceeded => {
            let place = tokens.first().map_or(0, |token| token.start);
            return SyntaxError { place, fault: Fault::Deep };
        }
        ParserError::TokenizerError(words) | ParserError::ParserError(words) => words,
    };
    // The message ends with the place, and there is no other way to it.
    let place = words.rsplit_once("Column: ").and_then(|(_, column)| column.trim().parse::<usize>().ok());
    match place.and_then(|column| column.checked_sub(1)) {
        Some(place) => SyntaxError { place, fault: Fault::Unexpected },
        None => SyntaxError { place: end, fault: Fault::Unfinished },
    }
}

/// A token as the parser has it; `None` for a literal that is not closed.
fn spelling(token: &Token<'_>) -> Option<Spelled> {
    Some(match token.kind {
        Kind::Word if token.is_any(NAMES) => name(token.text.to_owned(), None),
        // The parser has no keyword for it; the dialect tells the two apart.
        Kind::Word if token.is("ISNULL") => word(token.text.to_owned(), None, Keyword::NOTNULL),
        Kind::Word => Spelled::make_word(token.text, None),
        Kind::Quoted => name(unquoted(token.text), token.text.chars().next()),
        Kind::Text | Kind::Foreign => Spelled::SingleQuotedString(text_of(token)?),
        Kind::Blob => Spelled::HexStringLiteral(token.text.get(2..)?.strip_suffix('\'')?.to_owned()),
        Kind::Number => Spelled::Number(token.text.to_owned(), false),
        Kind::Parameter => Spelled::Placeholder(token.text.to_owned()),
        Kind::Sign => sign(token.text),
    })
}

fn name(value: String, quote_style: Option<char>) -> Spelled {
    word(value, quote_style, Keyword::NoKeyword)
}

fn word(value: String, quote_style: Option<char>, keyword: Keyword) -> Spelled {
    Spelled::Word(Word { value, quote_style, keyword })
}

fn sign(text: &str) -> Spelled {
    match text {
        "," => Spelled::Comma,
        "(" => Spelled::LParen,
        ")" => Spelled::RParen,
        "." => Spelled::Period,
        ";" => Spelled::SemiColon,
        "=" => Spelled::Eq,
        "==" => Spelled::DoubleEq,
        "<>" | "!=" => Spelled::Neq,
        "<" => Spelled::Lt,
        ">" => Spelled::Gt,
        "<=" => Spelled::LtEq,
        ">=" => Spelled::GtEq,
        "+" => Spelled::Plus,
        "-" => Spelled::Minus,
        "*" => Spelled::Mul,
        "/" => Spelled::Div,
        "%" => Spelled::Mod,
        "^" => Spelled::Caret,
        "||" => Spelled::StringConcat,
        "::" => Spelled::DoubleColon,
        ":" => Spelled::Colon,
        "[" => Spelled::LBracket,
        "]" => Spelled::RBracket,
        "->" => Spelled::Arrow,
        "->>" => Spelled::LongArrow,
        "=>" => Spelled::RArrow,
        ":=" => Spelled::Assignment,
        "#>" => Spelled::HashArrow,
        "#>>" => Spelled::HashLongArrow,
        "?" => Spelled::Question,
        "?|" => Spelled::QuestionPipe,
        "?&" => Spelled::QuestionAnd,
        "#-" => Spelled::HashMinus,
        "@>" => Spelled::AtArrow,
        "<@" => Spelled::ArrowAt,
        "@@" => Spelled::AtAt,
        "&&" => Spelled::Overlap,
        "&" => Spelled::Ampersand,
        "|" => Spelled::Pipe,
        "<<" => Spelled::ShiftLeft,
        ">>" => Spelled::ShiftRight,
        "~" => Spelled::Tilde,
        "~*" => Spelled::TildeAsterisk,
        "!~" => Spelled::ExclamationMarkTilde,
        "!~*" => Spelled::ExclamationMarkTildeAsterisk,
        "~~" => Spelled::DoubleTilde,
        "~~*" => Spelled::DoubleTildeAsterisk,
        "!~~" => Spelled::ExclamationMarkDoubleTilde,
        "!~~*" => Spelled::ExclamationMarkDoubleTildeAsterisk,
        other => Spelled::Char(other.chars().next().unwrap_or(' ')),
    }
}
