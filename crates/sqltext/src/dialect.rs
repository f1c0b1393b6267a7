//! The one dialect: PostgreSQL's forms, SQLite's where PostgreSQL has none.
//!
//! Tokens come from our own lexer, so what only a tokenizer asks is not answered here. How tightly operators bind is
//! PostgreSQL's table, and names are read without trying whether they begin a type: of the time that a short statement
//! takes that is half.

use std::any::TypeId;

use sqlparser::ast::{BinaryOperator, Expr, ObjectName, Statement, TrimWhereField, UnaryOperator};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, Word};
use store::patience;

/// How tightly operators bind, as PostgreSQL has it; higher is tighter.
mod power {
    pub(super) const NONE: u8 = 0;
    pub(super) const OR: u8 = 10;
    pub(super) const AND: u8 = 20;
    pub(super) const NOT: u8 = 30;
    pub(super) const IS: u8 = 40;
    pub(super) const COMPARE: u8 = 50;
    /// PostgreSQL takes no `a = b < c`. SQLite does, and means `a = (b < c)`.
    pub(super) const ORDER: u8 = 55;
    pub(super) const LIKE: u8 = 60;
    pub(super) const OTHER: u8 = 70;
    pub(super) const ADD: u8 = 80;
    pub(super) const MULTIPLY: u8 = 90;
    pub(super) const POWER: u8 = 100;
    pub(super) const ZONE: u8 = 110;
    pub(super) const SIGN: u8 = 130;
    pub(super) const CAST: u8 = 140;
}

/// Words that never begin an operand.
const NO_OPERAND: &[Keyword] = &[
    Keyword::AND,
    Keyword::AS,
    Keyword::ASC,
    Keyword::BETWEEN,
    Keyword::BY,
    Keyword::COLLATE,
    Keyword::CROSS,
    Keyword::DESC,
    Keyword::DISTINCT,
    Keyword::ELSE,
    Keyword::END,
    Keyword::ESCAPE,
    Keyword::EXCEPT,
    Keyword::FETCH,
    Keyword::FOR,
    Keyword::FROM,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::ILIKE,
    Keyword::IN,
    Keyword::INNER,
    Keyword::INTERSECT,
    Keyword::INTO,
    Keyword::IS,
    Keyword::JOIN,
    Keyword::LIMIT,
    Keyword::NATURAL,
    Keyword::NOTNULL,
    Keyword::OFFSET,
    Keyword::ON,
    Keyword::OR,
    Keyword::ORDER,
    Keyword::OUTER,
    Keyword::RETURNING,
    Keyword::SET,
    Keyword::THEN,
    Keyword::UNION,
    Keyword::USING,
    Keyword::WHEN,
    Keyword::WHERE,
    Keyword::WINDOW,
    Keyword::WITH,
];

/// Words that mean more than a name even where nothing follows that says so.
const NO_NAME: &[Keyword] = &[
    Keyword::NULL,
    Keyword::TRUE,
    Keyword::FALSE,
    Keyword::CASE,
    Keyword::NOT,
    Keyword::EXISTS,
    Keyword::CURRENT_CATALOG,
    Keyword::CURRENT_USER,
    Keyword::SESSION_USER,
    Keyword::CURRENT_TIMESTAMP,
    Keyword::CURRENT_TIME,
    Keyword::CURRENT_DATE,
    Keyword::LOCALTIME,
    Keyword::LOCALTIMESTAMP,
    Keyword::ARRAY,
    Keyword::SELECT,
    Keyword::VALUES,
];

/// Comparisons by a word.
const LIKES: &[Keyword] = &[
    Keyword::LIKE,
    Keyword::ILIKE,
    Keyword::SIMILAR,
    Keyword::IN,
    Keyword::BETWEEN,
    Keyword::REGEXP,
    Keyword::GLOB,
    Keyword::MATCH,
];

type Parsed<T> = Option<Result<T, ParserError>>;

/// What is read.
#[derive(Debug)]
pub(crate) struct Sql;

impl Dialect for Sql {
    fn dialect(&self) -> TypeId {
        TypeId::of::<PostgreSqlDialect>()
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_'
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || ch == '_' || ch == '$'
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_window_clause_named_window_reference(&self) -> bool {
        true
    }

    fn supports_named_fn_args_with_assignment_operator(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_start_transaction_modifier(&self) -> bool {
        true
    }

    fn supports_in_empty_list(&self) -> bool {
        true
    }

    fn supports_cross_join_constraint(&self) -> bool {
        true
    }

    fn supports_limit_comma(&self) -> bool {
        true
    }

    fn supports_asc_desc_in_column_definition(&self) -> bool {
        true
    }

    fn supports_notnull_operator(&self) -> bool {
        true
    }

    fn supports_create_index_with_clause(&self) -> bool {
        true
    }

    fn supports_explain_with_utility_options(&self) -> bool {
        true
    }

    fn supports_comment_on(&self) -> bool {
        true
    }

    fn supports_array_typedef_with_brackets(&self) -> bool {
        true
    }

    fn supports_alter_column_type_using(&self) -> bool {
        true
    }

    fn supports_interval_options(&self) -> bool {
        true
    }

    fn supports_insert_table_alias(&self) -> bool {
        true
    }

    fn supports_comma_separated_trim(&self) -> bool {
        true
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    fn supports_update_order_by(&self) -> bool {
        true
    }

    fn supports_listen_notify(&self) -> bool {
        true
    }

    fn allow_extract_custom(&self) -> bool {
        true
    }

    fn allow_extract_single_quotes(&self) -> bool {
        true
    }

    fn is_reserved_for_identifier(&self, word: Keyword) -> bool {
        PostgreSqlDialect {}.is_reserved_for_identifier(word)
    }

    fn is_table_alias(&self, word: &Keyword, parser: &mut Parser<'_>) -> bool {
        PostgreSqlDialect {}.is_table_alias(word, parser)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Period | Precedence::DoubleColon => power::CAST,
            Precedence::AtTz => power::ZONE,
            Precedence::MulDivModOp => power::MULTIPLY,
            Precedence::PlusMinus => power::ADD,
            Precedence::Caret => power::POWER,
            Precedence::Xor
            | Precedence::Ampersand
            | Precedence::Pipe
            | Precedence::Colon
            | Precedence::PgOther => power::OTHER,
            Precedence::Between | Precedence::Like => power::LIKE,
            Precedence::Eq => power::COMPARE,
            Precedence::Is => power::IS,
            Precedence::UnaryNot => power::NOT,
            Precedence::And => power::AND,
            Precedence::Or => power::OR,
        }
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        if patience::step() {
            return Some(Err(stopped()));
        }
        Some(Ok(match &parser.peek_token_ref().token {
            // These go by whether a column is being defined, which only the parser knows.
            Token::Word(word) if word.keyword == Keyword::COLLATE => {
                return PostgreSqlDialect {}.get_next_precedence(parser).or(Some(Ok(power::NONE)));
            }
            Token::Word(word) if word.keyword == Keyword::NOT && next_keyword(parser) == Keyword::NULL => {
                return None;
            }
            Token::Word(word) => word_power(parser, word.keyword),
            sign => sign_power(sign),
        }))
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Parsed<Expr> {
        if patience::step() {
            return Some(Err(stopped()));
        }
        match &parser.peek_token_ref().token {
            Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => {
                Some(parser.parse_value().map(Expr::Value))
            }
            Token::Minus => Some(signed(parser, UnaryOperator::Minus)),
            Token::Plus => Some(signed(parser, UnaryOperator::Plus)),
            Token::Tilde => Some(signed(parser, UnaryOperator::BitwiseNot)),
            Token::Word(word) if NO_OPERAND.contains(&word.keyword) => {
                let found = parser.peek_token_ref().clone();
                Some(parser.expected("an expression", found))
            }
            Token::Word(word) if word.keyword == Keyword::TRIM && trims_from(parser) => Some(trimmed(parser)),
            Token::Word(word) => named(parser, word.keyword),
            Token::LParen if next_keyword(parser) == Keyword::VALUES => Some(rows(parser)),
            _ => None,
        }
    }

    fn parse_infix(&self, parser: &mut Parser<'_>, left: &Expr, power: u8) -> Parsed<Expr> {
        let Token::Word(Word { keyword, value, .. }) = &parser.peek_token_ref().token else { return None };
        match *keyword {
            Keyword::GLOB => Some(matched(parser, left, BinaryOperator::Glob, 1)),
            Keyword::REGEXP => Some(matched(parser, left, BinaryOperator::Regexp, 1)),
            Keyword::MATCH => Some(matched(parser, left, BinaryOperator::Match, 1)),
            Keyword::IN => listed(parser, left, 1),
            Keyword::NOT if next_keyword(parser) == Keyword::IN => listed(parser, left, 2),
            Keyword::NOT => {
                let operator = match next_keyword(parser) {
                    Keyword::GLOB => BinaryOperator::Glob,
                    Keyword::REGEXP => BinaryOperator::Regexp,
                    Keyword::MATCH => BinaryOperator::Match,
                    _ => return None,
                };
                let found = matched(parser, left, operator, 2);
                Some(found.map(|found| Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(found) }))
            }
            // `spelling` gives both words this keyword.
            Keyword::NOTNULL if value.eq_ignore_ascii_case("ISNULL") => {
                parser.advance_token();
                Some(Ok(Expr::IsNull(Box::new(left.clone()))))
            }
            Keyword::IS => same(parser, left, power),
            Keyword::COLLATE => {
                parser.advance_token();
                let collation = parser.parse_object_name(false);
                Some(collation.map(|collation| Expr::Collate { expr: Box::new(left.clone()), collation }))
            }
            _ => None,
        }
    }

    fn parse_statement(&self, parser: &mut Parser<'_>) -> Parsed<Statement> {
        // Other databases leave the word out, and the mistake would show too late.
        let deletes = keyword_at(parser, 0) == Keyword::DELETE && next_keyword(parser) != Keyword::FROM;
        deletes.then(|| parser.expected_ref("FROM", parser.peek_nth_token_ref(1)))
    }
}

/// The statement must stop; its reader knows.
#[cold]
fn stopped() -> ParserError {
    ParserError::ParserError(String::new())
}

/// A sign before an operand binds tighter than any operator but a cast. `~` is to PostgreSQL one of the many others:
/// `~ a + b` is `~ (a + b)`.
fn signed(parser: &mut Parser<'_>, op: UnaryOperator) -> Result<Expr, ParserError> {
    parser.advance_token();
    let power = if op == UnaryOperator::BitwiseNot { power::OTHER } else { power::SIGN };
    let expr = parser.parse_subexpr(power)?;
    Ok(Expr::UnaryOp { op, expr: Box::new(expr) })
}

/// A name, or a function's call; `None` where the word may be more.
fn named(parser: &mut Parser<'_>, keyword: Keyword) -> Parsed<Expr> {
    let plain = keyword == Keyword::NoKeyword;
    let next = &parser.peek_nth_token_ref(1).token;
    let calls = *next == Token::LParen;
    let may_be_type = matches!(next, Token::SingleQuotedString(_) | Token::LBracket | Token::Word(_));
    // PostgreSQL has these without parentheses, SQLite's functions of these names have them.
    let both = [Keyword::CURRENT_CATALOG, Keyword::CURRENT_USER, Keyword::SESSION_USER].contains(&keyword);
    let bare = if plain || (calls && both) {
        !matches!(next, Token::SingleQuotedString(_))
    } else {
        !calls && !may_be_type && !NO_NAME.contains(&keyword)
    };
    if !bare {
        return None;
    }
    parser.advance_token();
    let token = parser.get_current_token();
    let Token::Word(word) = &token.token else { return None };
    let name = word.to_ident(token.span);
    Some(if calls { parser.parse_function(ObjectName::from(vec![name])) } else { Ok(Expr::Identifier(name)) })
}

/// Whether the call that is next is `trim(LEADING FROM text)`.
fn trims_from(parser: &Parser<'_>) -> bool {
    let side = [Keyword::LEADING, Keyword::TRAILING, Keyword::BOTH].contains(&keyword_at(parser, 2));
    let from = if side { 3 } else { 2 };
    parser.peek_nth_token_ref(1).token == Token::LParen && keyword_at(parser, from) == Keyword::FROM
}

fn trimmed(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let side = keyword_at(parser, 0) != Keyword::FROM;
    let trim_where = if side { Some(parser.parse_trim_where()?) } else { None };
    parser.expect_keyword(Keyword::FROM)?;
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_token(&Token::RParen)?;
    // Without a side it is both.
    let trim_where = trim_where.or(Some(TrimWhereField::Both));
    Ok(Expr::Trim { expr, trim_where, trim_what: None, trim_characters: None })
}

/// `(VALUES (1), (2))` where a value is expected.
fn rows(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let query = parser.parse_query()?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Subquery(query))
}

/// What may stand behind a query in parentheses that is a part of another one.
const QUERY_GOES_ON: &[Keyword] = &[
    Keyword::UNION,
    Keyword::INTERSECT,
    Keyword::EXCEPT,
    Keyword::ORDER,
    Keyword::LIMIT,
    Keyword::OFFSET,
    Keyword::FETCH,
    Keyword::FOR,
];

/// `left IN ((SELECT ...)::int, value)`: a list that begins with a query, which the parser takes for all of it. `None`
/// where the query goes on or is all.
fn list_behind_query(parser: &mut Parser<'_>, left: &Expr, words: usize) -> Parsed<Expr> {
    let token = |at: usize| &parser.peek_nth_token_ref(words + at).token;
    if *token(0) != Token::LParen || *token(1) != Token::LParen {
        return None;
    }
    let (mut at, mut depth) = (1, 0_usize);
    loop {
        match token(at) {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::EOF => return None,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    let goes_on = match token(at) {
        Token::Word(word) => QUERY_GOES_ON.contains(&word.keyword),
        Token::RParen | Token::EOF => true,
        _ => false,
    };
    if goes_on {
        return None;
    }
    for _ in 0..=words {
        parser.advance_token();
    }
    let (expr, negated) = (Box::new(left.clone()), words == 2);
    let list = parser.parse_comma_separated(Parser::parse_expr);
    Some(list.and_then(|list| {
        parser.expect_token(&Token::RParen)?;
        Ok(Expr::InList { expr, list, negated })
    }))
}

/// SQLite's `left IN table`, or `left IN function(argument)`; `None` where a list or query follows.
fn listed(parser: &mut Parser<'_>, left: &Expr, words: usize) -> Parsed<Expr> {
    if !matches!(parser.peek_nth_token_ref(words).token, Token::Word(_)) {
        return list_behind_query(parser, left, words);
    }
    for _ in 0..words {
        parser.advance_token();
    }
    let (expr, negated) = (Box::new(left.clone()), words == 2);
    Some(parser.parse_subexpr(power::CAST).map(|table| Expr::InUnnest {
        expr,
        array_expr: Box::new(table),
        negated,
    }))
}

/// `left GLOB pattern` and similar forms, whose operator is so many words long.
fn matched(
    parser: &mut Parser<'_>,
    left: &Expr,
    op: BinaryOperator,
    words: usize,
) -> Result<Expr, ParserError> {
    for _ in 0..words {
        parser.advance_token();
    }
    let right = parser.parse_subexpr(power::LIKE)?;
    Ok(Expr::BinaryOp { left: Box::new(left.clone()), op, right: Box::new(right) })
}

/// SQLite's `left IS right`; `None` where PostgreSQL has the form too.
fn same(parser: &mut Parser<'_>, left: &Expr, power: u8) -> Parsed<Expr> {
    let not = next_keyword(parser) == Keyword::NOT;
    let at = 1 + usize::from(not);
    let known = match &parser.peek_nth_token_ref(at).token {
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::NULL
                | Keyword::TRUE
                | Keyword::FALSE
                | Keyword::UNKNOWN
                | Keyword::DISTINCT
                | Keyword::JSON
        ),
        _ => false,
    };
    if known {
        return None;
    }
    for _ in 0..at {
        parser.advance_token();
    }
    let left = Box::new(left.clone());
    Some(parser.parse_subexpr(power).map(|right| {
        if not {
            Expr::IsDistinctFrom(left, Box::new(right))
        } else {
            Expr::IsNotDistinctFrom(left, Box::new(right))
        }
    }))
}

fn keyword_at(parser: &Parser<'_>, ahead: usize) -> Keyword {
    match &parser.peek_nth_token_ref(ahead).token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

fn next_keyword(parser: &Parser<'_>) -> Keyword {
    keyword_at(parser, 1)
}

/// How tightly an operator binds that is a word; `NONE`: it is none.
fn word_power(parser: &Parser<'_>, keyword: Keyword) -> u8 {
    match keyword {
        Keyword::NOT if LIKES.contains(&next_keyword(parser)) => power::LIKE,
        Keyword::IS | Keyword::NOTNULL => power::IS,
        Keyword::AND => power::AND,
        Keyword::OR => power::OR,
        Keyword::AT if next_keyword(parser) == Keyword::TIME && keyword_at(parser, 2) == Keyword::ZONE => {
            power::ZONE
        }
        Keyword::OPERATOR => power::OTHER,
        word if LIKES.contains(&word) => power::LIKE,
        _ => power::NONE,
    }
}

fn sign_power(sign: &Token) -> u8 {
    match sign {
        Token::Eq | Token::DoubleEq | Token::Neq => power::COMPARE,
        Token::Lt | Token::Gt | Token::LtEq | Token::GtEq => power::ORDER,
        Token::Plus | Token::Minus => power::ADD,
        Token::Mul | Token::Div | Token::Mod => power::MULTIPLY,
        Token::Caret => power::POWER,
        Token::DoubleColon => power::CAST,
        Token::StringConcat
        | Token::Arrow
        | Token::LongArrow
        | Token::HashArrow
        | Token::HashLongArrow
        | Token::HashMinus
        | Token::Question
        | Token::QuestionAnd
        | Token::QuestionPipe
        | Token::AtArrow
        | Token::ArrowAt
        | Token::AtAt
        | Token::Overlap
        | Token::Tilde
        | Token::TildeAsterisk
        | Token::ExclamationMarkTilde
        | Token::ExclamationMarkTildeAsterisk
        | Token::DoubleTilde
        | Token::DoubleTildeAsterisk
        | Token::ExclamationMarkDoubleTilde
        | Token::ExclamationMarkDoubleTildeAsterisk
        | Token::Ampersand
        | Token::Pipe
        | Token::ShiftLeft
        | Token::ShiftRight => power::OTHER,
        _ => power::NONE,
    }
}
