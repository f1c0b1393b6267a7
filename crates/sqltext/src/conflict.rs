//! `ON CONFLICT` of an `INSERT`, with SQLite's forms: several of them, of expressions, with a condition. And the second
//! number of a `LIMIT` of an `UPDATE` or `DELETE`.

use sqlparser::ast::{Assignment, Expr, OrderByExpr, SelectItem};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use crate::token;

/// One of them.
#[derive(Debug)]
pub struct Conflict {
    /// What is meant to be unique.
    pub target: Target,
    /// `DO UPDATE`; `None` is `DO NOTHING`.
    pub update: Option<Update>,
}

/// What is meant to be unique.
#[derive(Debug)]
pub enum Target {
    /// Anything.
    Any,
    /// The columns of a constraint.
    Constraint,
    /// These terms, in the rows for which a condition holds.
    Terms(Vec<OrderByExpr>, Option<Box<Expr>>),
}

/// `DO UPDATE SET a = 1 WHERE b`
#[derive(Debug)]
pub struct Update {
    /// What becomes of the row.
    pub assignments: Vec<Assignment>,
    /// Which rows are changed.
    pub selection: Option<Expr>,
}

/// What stands behind a statement that writes.
#[derive(Debug, Default)]
pub struct Tail {
    /// In their order.
    pub conflicts: Vec<Conflict>,
    /// The columns that are given back, where `ON CONFLICT` stands before them.
    pub returning: Option<Vec<SelectItem>>,
    /// What stands behind `OFFSET`, or behind the comma, of the `LIMIT` of an `UPDATE` or `DELETE`.
    pub second_limit: Option<Expr>,
}

/// Whether `ON CONFLICT` begins at a place.
pub(crate) fn begins(tokens: &[token::Token<'_>], at: usize) -> bool {
    tokens[at].is("ON") && tokens.get(at + 1).is_some_and(|next| next.is("CONFLICT"))
}

/// Reads the second number of a `LIMIT`.
pub(crate) fn second_limit(parser: &mut Parser<'_>) -> Result<Option<Expr>, ParserError> {
    let follows = parser.parse_keyword(Keyword::OFFSET) || parser.consume_token(&Token::Comma);
    follows.then(|| parser.parse_expr()).transpose()
}

/// Reads them all.
pub(crate) fn tail(parser: &mut Parser<'_>) -> Result<Tail, ParserError> {
    let mut found = Tail::default();
    while parser.parse_keywords(&[Keyword::ON, Keyword::CONFLICT]) {
        found.conflicts.push(conflict(parser)?);
    }
    if parser.parse_keyword(Keyword::RETURNING) {
        found.returning = Some(parser.parse_comma_separated(Parser::parse_select_item)?);
    }
    Ok(found)
}

fn conflict(parser: &mut Parser<'_>) -> Result<Conflict, ParserError> {
    let target = target(parser)?;
    parser.expect_keyword(Keyword::DO)?;
    if parser.parse_keyword(Keyword::NOTHING) {
        return Ok(Conflict { target, update: None });
    }
    parser.expect_keyword(Keyword::UPDATE)?;
    parser.expect_keyword(Keyword::SET)?;
    let assignments = parser.parse_comma_separated(Parser::parse_assignment)?;
    let selection = condition(parser)?;
    Ok(Conflict { target, update: Some(Update { assignments, selection }) })
}

fn target(parser: &mut Parser<'_>) -> Result<Target, ParserError> {
    if parser.parse_keywords(&[Keyword::ON, Keyword::CONSTRAINT]) {
        parser.parse_identifier()?;
        return Ok(Target::Constraint);
    }
    if !parser.consume_token(&Token::LParen) {
        return Ok(Target::Any);
    }
    let terms = parser.parse_comma_separated(Parser::parse_order_by_expr)?;
    parser.expect_token(&Token::RParen)?;
    Ok(Target::Terms(terms, condition(parser)?.map(Box::new)))
}

fn condition(parser: &mut Parser<'_>) -> Result<Option<Expr>, ParserError> {
    if parser.parse_keyword(Keyword::WHERE) { parser.parse_expr().map(Some) } else { Ok(None) }
}
