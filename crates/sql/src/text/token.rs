//! SQL text as tokens: enough to tell statements apart and to rewrite parameters, without a grammar.

use sqltext::token::quoted;
pub(crate) use sqltext::token::{in_word, number, word};
pub use sqltext::token::{quoted_name, unquoted};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A keyword or a bare name.
    Word,
    /// A name in `"`, `` ` `` or `[]`.
    Quoted,
    /// A text literal.
    Text,
    /// `x'..'`
    Blob,
    /// A number.
    Number,
    /// `?`, `?1`, `$1`, `:name`, `@name`
    Parameter,
    /// One character of anything else.
    Sign(u8),
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// As written.
    pub text: &'a str,
    /// Where it begins, in bytes.
    pub start: usize,
}

impl Token<'_> {
    /// Whether it is this keyword (given in any case).
    pub fn is(&self, keyword: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(keyword)
    }

    /// Whether it is this sign.
    pub fn is_sign(&self, sign: u8) -> bool {
        self.kind == Kind::Sign(sign)
    }

    /// Where it ends, in bytes.
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// The tokens of a text; blanks and comments are skipped. An unfinished literal reaches to the end: SQLite or
/// the parser will refuse it.
#[derive(Clone, Debug)]
pub struct Tokens<'a> {
    sql: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    /// The tokens of this text.
    pub fn new(sql: &'a str) -> Self {
        Self { sql, at: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        self.sql.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.at += blanks;
            match self.rest() {
                [b'-', b'-', comment @ ..] => {
                    self.at += 2 + comment.iter().position(|&byte| byte == b'\n').unwrap_or(comment.len());
                }
                [b'/', b'*', comment @ ..] => {
                    let end = comment.windows(2).position(|pair| pair == b"*/");
                    self.at += 2 + end.map_or(comment.len(), |end| end + 2);
                }
                _ => return,
            }
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blanks();
        let rest = self.rest();
        let (kind, length) = match *rest.first()? {
            b'\'' => (Kind::Text, quoted(rest, b'\'')),
            quote @ (b'"' | b'`') => (Kind::Quoted, quoted(rest, quote)),
            b'[' => {
                (Kind::Quoted, rest.iter().position(|&byte| byte == b']').map_or(rest.len(), |at| at + 1))
            }
            b'x' | b'X' if rest.get(1) == Some(&b'\'') => (Kind::Blob, 1 + quoted(&rest[1..], b'\'')),
            b'?' => (Kind::Parameter, 1 + rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count()),
            b'$' | b':' | b'@' if rest.get(1).copied().is_some_and(in_word) => {
                (Kind::Parameter, 1 + word(&rest[1..]))
            }
            b'0'..=b'9' => (Kind::Number, number(rest)),
            b'.' if rest.get(1).is_some_and(u8::is_ascii_digit) => (Kind::Number, number(rest)),
            byte if in_word(byte) => (Kind::Word, word(rest)),
            sign => (Kind::Sign(sign), 1),
        };
        let start = self.at;
        self.at += length;
        // A sign is one ASCII byte, everything else ends at an ASCII byte or at the end of the text.
        Some(Token { kind, text: self.sql.get(start..self.at)?, start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(sql: &str) -> Vec<(Kind, &str)> {
        Tokens::new(sql).map(|token| (token.kind, token.text)).collect()
    }

    #[test]
    fn tokens_of_each_kind() {
        assert_eq!(
            kinds("a1 \"b\"\"c\" 'it''s' x'00' 1.5e-3 .5 0xAF ?2 $1 :n [a b] -- c\n/* d */<"),
            [
                (Kind::Word, "a1"),
                (Kind::Quoted, "\"b\"\"c\""),
                (Kind::Text, "'it''s'"),
                (Kind::Blob, "x'00'"),
                (Kind::Number, "1.5e-3"),
                (Kind::Number, ".5"),
                (Kind::Number, "0xAF"),
                (Kind::Parameter, "?2"),
                (Kind::Parameter, "$1"),
                (Kind::Parameter, ":n"),
                (Kind::Quoted, "[a b]"),
                (Kind::Sign(b'<'), "<"),
            ]
        );
        assert_eq!(kinds("1-1"), [(Kind::Number, "1"), (Kind::Sign(b'-'), "-"), (Kind::Number, "1")]);
        assert_eq!(kinds("0xe-1").len(), 3);
        assert_eq!(kinds("'open"), [(Kind::Text, "'open")]);
        assert_eq!(kinds("/* open"), []);
        assert_eq!(
            kinds("\u{e9}t\u{e9}=?"),
            [(Kind::Word, "\u{e9}t\u{e9}"), (Kind::Sign(b'='), "="), (Kind::Parameter, "?")]
        );
    }
}
