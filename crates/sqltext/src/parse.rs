//! A text's tokens and their tree.
//!
//! The parser is given our tokens, and for the place of each the number of the token and of its first byte. So every
//! node of the tree leads back to the text as the user wrote it.

use std::fmt;

use sqlparser::ast::{Spanned, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span, Token as Spelled, TokenWithSpan, Word};

use crate::dialect::Sql;
use crate::limits::DEPTH_MAX;
use crate::nesting::too_deep;
use crate::token::{Kind, Token, text_of, tokens, unquoted};

/// Words that are names here, whatever other databases make of them.
const NAMES: &[&str] =
    &["USER", "MATCH_RECOGNIZE", "PIVOT", "UNPIVOT", "SAMPLE", "FINAL", "CONVERT", "TRY_CAST"];

/// A statement's text and what it says.
#[derive(Debug)]
pub struct Tree<'a> {
    /// The text.
    pub sql: &'a str,
    /// Its tokens.
    pub tokens: Vec<Token<'a>>,
    /// Their tree.
    pub statement: Statement,
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
    /// Another statement begins at the place.
    Another,
    /// It nests too deep to be read.
    Deep,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.fault {
            Fault::Unexpected => "unexpected text",
            Fault::Unfinished => "the statement ends too early",
            Fault::Literal => "a literal is not closed or has an unknown escape",
            Fault::Another => "another statement begins",
            Fault::Deep => "the statement nests too deep",
        })?;
        write!(f, " at byte {}", self.place)
    }
}

impl std::error::Error for SyntaxError {}

/// Reads one statement.
pub fn parse(sql: &str) -> Result<Tree<'_>, SyntaxError> {
    parse_tokens(sql, tokens(sql))
}

/// Reads one statement of which the tokens are known.
pub fn parse_tokens<'a>(sql: &'a str, tokens: Vec<Token<'a>>) -> Result<Tree<'a>, SyntaxError> {
    if let Some(place) = too_deep(&tokens) {
        return Err(SyntaxError { place, fault: Fault::Deep });
    }
    let mut spelled = Vec::with_capacity(tokens.len());
    for (at, token) in tokens.iter().enumerate() {
        let literal = SyntaxError { place: token.start, fault: Fault::Literal };
        let own = spelling(token).ok_or(literal)?;
        spelled.push(TokenWithSpan { token: own, span: span_of(at, token) });
    }
    let mut parser = Parser::new(&Sql).with_recursion_limit(DEPTH_MAX).with_tokens_with_locations(spelled);
    while parser.consume_token(&Spelled::SemiColon) {}
    let statement = parser.parse_statement().map_err(|error| error_of(sql, &tokens, &error))?;
    let mut ended = false;
    while parser.consume_token(&Spelled::SemiColon) {
        ended = true;
    }
    let rest = parser.peek_token_ref();
    if rest.token != Spelled::EOF {
        let fault = if ended { Fault::Another } else { Fault::Unexpected };
        return Err(SyntaxError { place: offset(rest.span.start).unwrap_or(sql.len()), fault });
    }
    Ok(Tree { sql, tokens, statement })
}

impl Tree<'_> {
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

/// Where the parser found what it did not expect.
fn error_of(sql: &str, tokens: &[Token<'_>], error: &ParserError) -> SyntaxError {
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
        None => SyntaxError { place: sql.len(), fault: Fault::Unfinished },
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
        "#>" => Spelled::HashArrow,
        "#>>" => Spelled::HashLongArrow,
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
