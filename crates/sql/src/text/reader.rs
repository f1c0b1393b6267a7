//! A cursor over the tokens of what is no query: `BEGIN`, `COMMIT`, `SAVEPOINT` and their like.

use super::token::{Kind, Token, unquoted};
use crate::error::{SqlError, state};

/// Reads tokens one after the other.
pub(crate) struct Reader<'t, 'a> {
    pub(crate) sql: &'a str,
    pub(crate) tokens: &'t [Token<'a>],
    pub(crate) at: usize,
}

impl<'t, 'a> Reader<'t, 'a> {
    pub(crate) fn new(sql: &'a str, tokens: &'t [Token<'a>]) -> Self {
        Self { sql, tokens, at: 0 }
    }

    pub(crate) fn peek(&self) -> Option<&Token<'a>> {
        self.tokens.get(self.at)
    }

    /// Whether a keyword or a bare name comes.
    pub(crate) fn at_word(&self) -> bool {
        self.peek().is_some_and(|token| token.kind == Kind::Word)
    }

    pub(crate) fn skip_semicolons(&mut self) {
        while self.sign(";").is_ok() {}
    }

    pub(crate) fn unexpected(&self) -> SqlError {
        match self.peek() {
            Some(token) => SqlError::syntax(self.sql, token),
            None => SqlError::new(state::SYNTAX, "syntax error at end of input").at(self.sql, self.sql.len()),
        }
    }

    fn take_if(&mut self, fits: impl FnOnce(&Token<'a>) -> bool) -> Result<Token<'a>, SqlError> {
        match self.peek().copied() {
            Some(token) if fits(&token) => {
                self.at += 1;
                Ok(token)
            }
            _ => Err(self.unexpected()),
        }
    }

    pub(crate) fn keyword(&mut self, word: &str) -> Result<(), SqlError> {
        self.take_if(|token| token.is(word)).map(|_| ())
    }

    pub(crate) fn sign(&mut self, sign: &str) -> Result<(), SqlError> {
        self.take_if(|token| token.is_sign(sign)).map(|_| ())
    }

    pub(crate) fn name(&mut self) -> Result<String, SqlError> {
        self.take_if(|token| matches!(token.kind, Kind::Word | Kind::Quoted))
            .map(|token| unquoted(token.text))
    }

    pub(crate) fn end(&mut self) -> Result<(), SqlError> {
        self.skip_semicolons();
        if self.peek().is_some() { Err(self.unexpected()) } else { Ok(()) }
    }
}
