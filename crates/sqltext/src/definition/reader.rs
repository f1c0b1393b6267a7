//! The cursor: our tokens one after the other, and the parser for what is an expression or a query.

use std::ops::Range;
use std::sync::Arc;

use sqlparser::parser::{Parser, ParserError};

use store::Catalog;
use store::definition::qualified;

use super::{Expression, Name, Part, Read, Setting};
use crate::error::{SqlError, state};
use crate::nesting::too_deep;
use crate::parse::{Fault, SyntaxError, error_of, parser_of, spelled_in, token_at};
use crate::token::{Kind, Token, text_of, unquoted};

/// Words that are no names without quotes, here and in PostgreSQL.
const RESERVED: &[&str] = &[
    "ALL",
    "AND",
    "AS",
    "CASE",
    "CHECK",
    "COLLATE",
    "CONSTRAINT",
    "CREATE",
    "DEFAULT",
    "DEFERRABLE",
    "DISTINCT",
    "ELSE",
    "EXCEPT",
    "FOREIGN",
    "FROM",
    "GROUP",
    "HAVING",
    "IN",
    "INTERSECT",
    "INTO",
    "LIMIT",
    "NOT",
    "NULL",
    "ON",
    "OR",
    "ORDER",
    "PRIMARY",
    "REFERENCES",
    "SELECT",
    "TABLE",
    "THEN",
    "TO",
    "UNION",
    "UNIQUE",
    "USING",
    "WHEN",
    "WHERE",
];

pub(crate) struct Reader<'t, 'a> {
    pub(crate) sql: &'a str,
    /// What names without a schema mean, and which schemas there are; none: all is in `public`.
    catalog: Option<Arc<Catalog>>,
    tokens: &'t [Token<'a>],
    parser: Parser<'static>,
}

impl<'t, 'a> Reader<'t, 'a> {
    pub(crate) fn new(sql: &'a str, tokens: &'t [Token<'a>]) -> Result<Self, SqlError> {
        if let Some(place) = too_deep(tokens) {
            return Err(SyntaxError { place, fault: Fault::Deep }.into_error(sql, tokens));
        }
        let spelled = spelled_in(tokens, 0..tokens.len()).map_err(|error| error.into_error(sql, tokens))?;
        Ok(Self { sql, catalog: None, tokens, parser: parser_of(spelled) })
    }

    /// With the definitions in which names are looked for.
    pub(crate) fn with_catalog(self, catalog: Option<Arc<Catalog>>) -> Self {
        Self { catalog, ..self }
    }

    /// The number of the next token.
    pub(crate) fn number(&self) -> usize {
        token_at(self.parser.peek_token_ref().span.start).unwrap_or(self.tokens.len())
    }

    pub(crate) fn peek(&self) -> Option<&'t Token<'a>> {
        self.tokens.get(self.number())
    }

    pub(crate) fn peek_at(&self, ahead: usize) -> Option<&'t Token<'a>> {
        self.tokens.get(self.number() + ahead)
    }

    /// The token that begins at a place.
    pub(crate) fn at_place(&self, place: usize) -> Option<&'t Token<'a>> {
        let at = self.tokens.partition_point(|token| token.start < place);
        self.tokens.get(at)
    }

    /// The first of these tokens that is a keyword.
    pub(crate) fn among(&self, tokens: Range<usize>, word: &str) -> Option<&'t Token<'a>> {
        self.tokens.get(tokens)?.iter().find(|token| token.is(word))
    }

    /// Where the next token begins, in bytes.
    pub(crate) fn place(&self) -> usize {
        self.peek().map_or(self.sql.len(), |token| token.start)
    }

    pub(crate) fn skip(&mut self) {
        self.parser.advance_token();
    }

    #[cold]
    pub(crate) fn unexpected(&self) -> SqlError {
        match self.peek() {
            Some(token) => SqlError::syntax(self.sql, token),
            None => SyntaxError { place: self.sql.len(), fault: Fault::Unfinished }
                .into_error(self.sql, self.tokens),
        }
    }

    #[cold]
    fn refused(&self, error: &ParserError) -> SqlError {
        error_of(self.sql.len(), self.tokens, error).into_error(self.sql, self.tokens)
    }

    pub(crate) fn at_word(&self, word: &str) -> bool {
        self.peek().is_some_and(|token| token.is(word))
    }

    pub(crate) fn at_any(&self, words: &[&str]) -> bool {
        self.peek().is_some_and(|token| token.is_any(words))
    }

    pub(crate) fn at_sign(&self, sign: &str) -> bool {
        self.peek().is_some_and(|token| token.is_sign(sign))
    }

    /// Takes a keyword if it is next.
    pub(crate) fn word(&mut self, word: &str) -> bool {
        let there = self.at_word(word);
        if there {
            self.skip();
        }
        there
    }

    /// Takes one of these keywords if it is next.
    pub(crate) fn any_word(&mut self, words: &[&'static str]) -> Option<&'static str> {
        let token = self.peek()?;
        let found = words.iter().copied().find(|word| token.is(word))?;
        self.skip();
        Some(found)
    }

    /// Takes these keywords if they are next.
    pub(crate) fn words(&mut self, words: &[&str]) -> bool {
        let there =
            words.iter().enumerate().all(|(at, word)| self.peek_at(at).is_some_and(|token| token.is(word)));
        for _ in words.iter().filter(|_| there) {
            self.skip();
        }
        there
    }

    pub(crate) fn expect_word(&mut self, word: &str) -> Result<(), SqlError> {
        if self.word(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(crate) fn sign(&mut self, sign: &str) -> bool {
        let there = self.at_sign(sign);
        if there {
            self.skip();
        }
        there
    }

    pub(crate) fn expect_sign(&mut self, sign: &str) -> Result<(), SqlError> {
        if self.sign(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// `IF EXISTS`
    pub(crate) fn if_exists(&mut self) -> Result<bool, SqlError> {
        let conditional = self.word("IF");
        if conditional {
            self.expect_word("EXISTS")?;
        }
        Ok(conditional)
    }

    /// `IF NOT EXISTS`
    pub(crate) fn if_not_exists(&mut self) -> Result<bool, SqlError> {
        let conditional = self.word("IF");
        if conditional {
            self.expect_word("NOT")?;
            self.expect_word("EXISTS")?;
        }
        Ok(conditional)
    }

    /// A name that stands alone.
    pub(crate) fn name(&mut self) -> Result<Name, SqlError> {
        let Some(token) = self.peek() else { return Err(self.unexpected()) };
        let named = match token.kind {
            Kind::Word => !token.is_any(RESERVED),
            Kind::Quoted => true,
            _ => false,
        };
        if !named {
            return Err(self.unexpected());
        }
        self.skip();
        Ok(Name { text: unquoted(token.text), namespace: None, place: token.start })
    }

    /// The name of a table or its like that is there, or that is to be looked for.
    pub(crate) fn object(&mut self) -> Result<Name, SqlError> {
        let name = self.name()?;
        if self.sign(".") { self.object_of(&name) } else { Ok(self.found(name)) }
    }

    /// The name of a table or its like that is to be made.
    pub(crate) fn new_object(&mut self) -> Result<Name, SqlError> {
        let name = self.name()?;
        if self.sign(".") {
            return self.object_of(&name);
        }
        let schema = self.catalog.as_ref().and_then(|catalog| catalog.current_namespace());
        Ok(match schema {
            Some(schema) => in_schema(&name, &schema.name),
            None => name,
        })
    }

    /// What a name without a schema means.
    pub(crate) fn found(&self, name: Name) -> Name {
        match &self.catalog {
            Some(catalog) => Name { text: catalog.found_name(&name.text, Catalog::has), ..name },
            None => name,
        }
    }

    /// The same of the name of a function or procedure.
    pub(crate) fn found_routine(&self, name: Name) -> Name {
        let is = |catalog: &Catalog, name: &str| catalog.routine(name).is_some();
        match &self.catalog {
            Some(catalog) => Name { text: catalog.found_name(&name.text, is), ..name },
            None => name,
        }
    }

    /// These tokens as they are written.
    pub(crate) fn written(&self, tokens: Range<usize>) -> String {
        let all = self.tokens.get(tokens).unwrap_or_default();
        let place = all.first().map_or(0, |first| first.start)..all.last().map_or(0, Token::end);
        self.sql.get(place).unwrap_or_default().to_owned()
    }

    /// What the name of a type without a schema means.
    pub(crate) fn found_type(&self, name: Name) -> Name {
        let is = |catalog: &Catalog, name: &str| catalog.enumeration(name).is_some();
        let Some(catalog) = self.catalog.as_ref().filter(|catalog| !catalog.path().is_empty()) else {
            return name;
        };
        let found = catalog.found_name(&name.text, is);
        // A word of PostgreSQL's own types is in no schema.
        let of_users = is(catalog, &found) || is(catalog, &name.text);
        if of_users { Name { text: found, ..name } } else { name }
    }

    /// The name of a role, or a word that stands for one.
    pub(crate) fn role_name(&mut self) -> Result<Option<Name>, SqlError> {
        if self.any_word(&["CURRENT_USER", "CURRENT_ROLE", "SESSION_USER"]).is_some() {
            return Ok(None);
        }
        self.name().map(Some)
    }

    /// The name of something in a schema: the database may stand before that.
    pub(crate) fn object_of(&mut self, schema: &Name) -> Result<Name, SqlError> {
        let name = self.name()?;
        if !self.sign(".") {
            return self.named_in(schema, name);
        }
        // The database, which is called as everybody likes.
        let last = self.name()?;
        self.named_in(&name, last)
    }

    /// A name in a schema.
    pub(crate) fn named_in(&self, schema: &Name, name: Name) -> Result<Name, SqlError> {
        match schema.text.to_ascii_lowercase().as_str() {
            "main" | "public" | "pg_catalog" => return Ok(name),
            "sqlcached" if name.text.eq_ignore_ascii_case(store::BUILT_IN) => return Ok(name),
            "information_schema" => {
                return Ok(Name {
                    text: format!("information_schema_{}", name.text.to_ascii_lowercase()),
                    place: schema.place,
                    ..name
                });
            }
            _ => {}
        }
        let known = self.catalog.as_ref().and_then(|catalog| catalog.namespace(&schema.text));
        match known {
            Some(known) => Ok(in_schema(&name, &known.name)),
            None => Err(unknown_schema(&schema.text).at(self.sql, schema.place)),
        }
    }

    /// As [`Reader::object`], where nothing need be of that name: nor need the schema be.
    pub(crate) fn object_if_there(&mut self, if_exists: bool) -> Result<Name, SqlError> {
        let (name, schema) = (self.number(), self.peek().map(|token| unquoted(token.text)));
        match self.object() {
            Err(error) if if_exists && error.state == state::UNKNOWN_SCHEMA => {
                let own = self.tokens[name..self.number()].last().map(|token| unquoted(token.text));
                let text = format!("{}.{}", schema.unwrap_or_default(), own.unwrap_or_default());
                Ok(Name { text, namespace: None, place: self.tokens[name].start })
            }
            named => named,
        }
    }

    /// One or more, with commas between.
    pub(crate) fn list<T>(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Result<T, SqlError>,
    ) -> Result<Vec<T>, SqlError> {
        let mut all = vec![one(self)?];
        while self.sign(",") {
            all.push(one(self)?);
        }
        Ok(all)
    }

    /// The same in parentheses.
    pub(crate) fn listed<T>(
        &mut self,
        one: impl FnMut(&mut Self) -> Result<T, SqlError>,
    ) -> Result<Vec<T>, SqlError> {
        self.expect_sign("(")?;
        let all = self.list(one)?;
        self.expect_sign(")")?;
        Ok(all)
    }

    /// Names in parentheses, if these come.
    pub(crate) fn names(&mut self) -> Result<Vec<Name>, SqlError> {
        if self.at_sign("(") { self.listed(Self::name) } else { Ok(Vec::new()) }
    }

    pub(crate) fn expression(&mut self) -> Result<Expression, SqlError> {
        let first = self.number();
        let node = self.parser.parse_expr().map_err(|error| self.refused(&error))?;
        // What the parser passed over behind it is no part of it.
        let last = token_at(self.parser.get_current_token().span.start);
        Ok(Part { node: Box::new(node), tokens: first..last.map_or(first, |last| last + 1) })
    }

    /// An expression in parentheses, of which these are no part.
    pub(crate) fn parenthesized(&mut self) -> Result<Expression, SqlError> {
        self.expect_sign("(")?;
        let expression = self.expression()?;
        self.expect_sign(")")?;
        Ok(expression)
    }

    /// An expression that ends where this token is, which the parser would take for a part of it.
    pub(crate) fn expression_to(&mut self, end: usize) -> Result<Expression, SqlError> {
        let tokens = self.number()..end;
        if tokens.is_empty() {
            return Err(self.unexpected());
        }
        let spelled = spelled_in(self.tokens, tokens.clone())
            .map_err(|error| error.into_error(self.sql, self.tokens))?;
        let mut parser = parser_of(spelled);
        let node = parser.parse_expr().map_err(|error| {
            let place = self.tokens.get(end).map_or(self.sql.len(), |token| token.start);
            let error = error_of(place, self.tokens, &error);
            let unfinished = error.fault == Fault::Unfinished && place < self.sql.len();
            let fault = if unfinished { Fault::Unexpected } else { error.fault };
            SyntaxError { fault, ..error }.into_error(self.sql, self.tokens)
        })?;
        let rest = token_at(parser.peek_token_ref().span.start);
        if let Some(token) = rest.and_then(|rest| self.tokens.get(rest)) {
            return Err(SqlError::syntax(self.sql, token));
        }
        while self.number() < end {
            self.skip();
        }
        Ok(Part { node: Box::new(node), tokens })
    }

    /// A query, which ends the statement.
    pub(crate) fn query(&mut self) -> Result<Part<Read>, SqlError> {
        self.query_to(|reader, at| reader.tokens.get(at).is_none_or(|token| token.is_sign(";")))
    }

    /// As [`Reader::query`], with `WITH DATA` or `WITH NO DATA` behind it, or nothing.
    pub(crate) fn query_with_data(&mut self) -> Result<Part<Read>, SqlError> {
        self.query_to(|reader, at| {
            let word =
                |ahead: usize, word: &str| reader.tokens.get(at + ahead).is_some_and(|own| own.is(word));
            let last = |ahead: usize| reader.tokens.get(at + ahead).is_none_or(|token| token.is_sign(";"));
            let data = if word(1, "NO") { 2 } else { 1 };
            last(0) || (word(0, "WITH") && word(data, "DATA") && last(data + 1))
        })
    }

    /// A query up to where something ends it.
    fn query_to(&mut self, is_end: impl Fn(&Self, usize) -> bool) -> Result<Part<Read>, SqlError> {
        if !self.at_any(&["SELECT", "VALUES", "WITH", "TABLE"]) && !self.at_sign("(") {
            return Err(self.unexpected());
        }
        let first = self.number();
        let mut node = self.parser.parse_query().ok();
        if !is_end(self, self.number()) {
            node = None;
        }
        let mut end = self.number();
        if node.is_none() {
            end = (first..self.tokens.len()).find(|&at| is_end(self, at)).unwrap_or(self.tokens.len());
            while self.peek().is_some() && self.number() < end {
                self.skip();
            }
        }
        Ok(Part { node, tokens: first..end })
    }

    /// A text literal.
    pub(crate) fn text(&mut self) -> Result<String, SqlError> {
        let token = self.peek().filter(|token| matches!(token.kind, Kind::Text | Kind::Foreign));
        let text = token.and_then(text_of).ok_or_else(|| self.unexpected())?;
        self.skip();
        Ok(text)
    }

    /// `(name = value, name, ...)`
    pub(crate) fn settings(&mut self) -> Result<Vec<Setting>, SqlError> {
        self.listed(|reader| {
            let name = reader.any_name()?;
            let value = if reader.sign("=") { reader.setting_value()? } else { String::new() };
            Ok((name, value))
        })
    }

    /// A name, whatever it is elsewhere.
    pub(crate) fn any_name(&mut self) -> Result<String, SqlError> {
        let token = self.peek().filter(|token| matches!(token.kind, Kind::Word | Kind::Quoted));
        let name = token.map(|token| unquoted(token.text)).ok_or_else(|| self.unexpected())?;
        self.skip();
        Ok(name)
    }

    fn setting_value(&mut self) -> Result<String, SqlError> {
        let sign = if self.sign("-") { "-" } else { "" };
        let value =
            |token: &&Token<'_>| matches!(token.kind, Kind::Word | Kind::Quoted | Kind::Text | Kind::Number);
        let token = self.peek().filter(value).ok_or_else(|| self.unexpected())?;
        self.skip();
        Ok(format!("{sign}{}", unquoted(token.text)))
    }

    /// Nothing but semicolons is left.
    pub(crate) fn end(&mut self) -> Result<(), SqlError> {
        let mut ended = false;
        while self.sign(";") {
            ended = true;
        }
        match self.peek() {
            None => Ok(()),
            Some(token) if ended => {
                Err(SyntaxError { place: token.start, fault: Fault::Another }
                    .into_error(self.sql, self.tokens))
            }
            Some(_) => Err(self.unexpected()),
        }
    }
}

/// A name as it is in a schema.
fn in_schema(name: &Name, schema: &str) -> Name {
    let text = qualified(Some(schema), &name.text);
    Name { text, namespace: Some(schema.to_owned()), place: name.place }
}

fn unknown_schema(name: &str) -> SqlError {
    SqlError::new(state::UNKNOWN_SCHEMA, format!("schema \"{name}\" does not exist"))
}
