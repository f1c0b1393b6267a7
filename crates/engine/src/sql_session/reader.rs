//! Reads the statements that a session answers itself, word by word.

use sql::SqlError;
use sql::token::{Kind, Token, Tokens, text_of, unquoted};

/// The tokens of a statement, with one looked at ahead.
pub(crate) struct Reader<'t> {
    text: &'t str,
    tokens: std::iter::Peekable<Tokens<'t>>,
}

impl<'t> Reader<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, tokens: Tokens::new(text).peekable() }
    }

    /// Takes a keyword, if it is there.
    pub(crate) fn keyword(&mut self, word: &str) -> bool {
        self.tokens.next_if(|token| token.is(word)).is_some()
    }

    /// Whether the next token is this keyword.
    pub(crate) fn at_keyword(&mut self, word: &str) -> bool {
        self.tokens.peek().is_some_and(|token| token.is(word))
    }

    /// Takes a keyword that must be there.
    pub(crate) fn expect(&mut self, word: &str) -> Result<(), SqlError> {
        if self.keyword(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Takes one of these keywords.
    pub(crate) fn one_of(&mut self, words: &[&'static str]) -> Option<&'static str> {
        words.iter().copied().find(|word| self.keyword(word))
    }

    /// Takes a sign, if it is there.
    pub(crate) fn sign(&mut self, sign: &str) -> bool {
        self.tokens.next_if(|token| token.is_sign(sign)).is_some()
    }

    /// Whether the next token is this sign.
    pub(crate) fn at_sign(&mut self, sign: &str) -> bool {
        self.tokens.peek().is_some_and(|token| token.is_sign(sign))
    }

    /// A name: in lower case, unless it is quoted.
    pub(crate) fn name(&mut self) -> Result<String, SqlError> {
        let token = self.tokens.next_if(|token| matches!(token.kind, Kind::Word | Kind::Quoted));
        let token = token.ok_or_else(|| self.unexpected())?;
        Ok(folded(&token))
    }

    /// A name as it is written, quotes and parts separated by points included.
    pub(crate) fn written_name(&mut self) -> Result<&'t str, SqlError> {
        let start = self.start();
        self.name()?;
        while self.sign(".") {
            self.name()?;
        }
        let end = self.start();
        Ok(self.text.get(start..end).unwrap_or("").trim_end())
    }

    /// The next token, if it is of such a kind.
    pub(crate) fn any_of(&mut self, kinds: &[Kind]) -> Option<Token<'t>> {
        self.tokens.next_if(|token| kinds.contains(&token.kind))
    }

    /// A text literal.
    pub(crate) fn literal(&mut self) -> Result<String, SqlError> {
        self.literal_if_any().ok_or_else(|| self.unexpected())
    }

    /// The text literal that is next, if one is.
    pub(crate) fn literal_if_any(&mut self) -> Option<String> {
        let text = self.tokens.peek().and_then(text_of)?;
        self.tokens.next();
        Some(text)
    }

    /// A whole number, perhaps with a sign.
    pub(crate) fn number(&mut self) -> Option<i64> {
        let negative = self.sign("-");
        let _plus = !negative && self.sign("+");
        let token = self.tokens.next_if(|token| token.kind == Kind::Number)?;
        let number: i64 = token.text.parse().ok()?;
        Some(if negative { -number } else { number })
    }

    /// Where the next token begins.
    pub(crate) fn start(&mut self) -> usize {
        self.tokens.peek().map_or(self.text.len(), |token| token.start)
    }

    /// What was not read.
    pub(crate) fn rest(&mut self) -> &'t str {
        let start = self.start();
        self.text.get(start..).unwrap_or("").trim_end()
    }

    /// The text within the parentheses that begin here.
    pub(crate) fn parenthesised(&mut self) -> Result<&'t str, SqlError> {
        if !self.sign("(") {
            return Err(self.unexpected());
        }
        let start = self.start();
        let mut depth = 1;
        for token in self.tokens.by_ref() {
            depth += usize::from(token.is_sign("("));
            depth -= usize::from(token.is_sign(")"));
            if depth == 0 {
                return Ok(self.text.get(start..token.start).unwrap_or("").trim_end());
            }
        }
        Err(self.unexpected())
    }

    /// Nothing more may follow.
    pub(crate) fn end(&mut self) -> Result<(), SqlError> {
        if self.tokens.peek().is_none() { Ok(()) } else { Err(self.unexpected()) }
    }

    /// The error for what stands here.
    pub(crate) fn unexpected(&mut self) -> SqlError {
        match self.tokens.peek() {
            Some(token) => {
                let position = self.text.get(..token.start).map(|before| before.chars().count() + 1);
                let message = format!("syntax error at or near \"{}\"", token.text);
                SqlError { position, ..SqlError::new("42601", message) }
            }
            None => SqlError::new("42601", "syntax error at end of input"),
        }
    }
}

/// A name as it counts.
pub(crate) fn folded(token: &Token<'_>) -> String {
    if token.kind == Kind::Word { token.text.to_lowercase() } else { unquoted(token.text) }
}
