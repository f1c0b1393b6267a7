//! The commonest expression of a cache without SQLite: a part of the key.

use std::borrow::Cow;

use store::definition::{ColumnKind, TableDef};
use store::value::ValueRef;

use crate::text::token::{Kind, Token, Tokens, unquoted};

/// An expression that needs no SQLite.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Direct {
    /// `split_part(column, 'delimiter', n)` with n > 0.
    SplitPart { column: usize, delimiter: String, part: usize },
}

impl Direct {
    /// The expression, if it is one of these over columns that nothing computes.
    pub(super) fn of(sql: &str, def: &TableDef) -> Option<Self> {
        let tokens: Vec<Token<'_>> = Tokens::new(sql).collect();
        let column = |token: &Token<'_>| {
            let named = matches!(token.kind, Kind::Word | Kind::Quoted);
            let at = def.column_index(&unquoted(token.text)).filter(|_| named)?;
            let own = &def.columns[at];
            (own.generated.is_none() && own.kind == ColumnKind::Text).then_some(at)
        };
        match tokens.as_slice() {
            [function, open, name, c1, delimiter, c2, part, close]
                if function.is("split_part")
                    && open.is_sign("(")
                    && c1.is_sign(",")
                    && c2.is_sign(",")
                    && close.is_sign(")")
                    && delimiter.kind == Kind::Text =>
            {
                let (delimiter, part) = (unquoted(delimiter.text), part.text.parse().ok()?);
                let fits = part > 0 && !delimiter.is_empty();
                fits.then_some(Self::SplitPart { column: column(name)?, delimiter, part })
            }
            _ => None,
        }
    }

    /// The part, or `None` for NULL, of the values that the row has in the columns. A memcached key or value that is no
    /// UTF-8 has parts all the same, with what is no text replaced.
    pub(super) fn part<'a>(&self, given: &dyn Fn(usize) -> ValueRef<'a>) -> Option<Cow<'a, str>> {
        let Self::SplitPart { column, delimiter, part } = self;
        match given(*column) {
            ValueRef::Text(text) => Some(Cow::Borrowed(nth_part(text, delimiter, *part))),
            ValueRef::Blob(bytes) => {
                Some(Cow::Owned(nth_part(&String::from_utf8_lossy(bytes), delimiter, *part).to_owned()))
            }
            // A text column holds nothing else.
            _ => None,
        }
    }
}

/// The n-th part, from 1, of a text between delimiters; nothing where there are fewer.
fn nth_part<'t>(text: &'t str, delimiter: &str, part: usize) -> &'t str {
    let found = match delimiter.as_bytes() {
        // A search for a text prepares itself; most delimiters are one character.
        [byte] if byte.is_ascii() => text.split(char::from(*byte)).nth(part - 1),
        _ => text.split(delimiter).nth(part - 1),
    };
    found.unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_postgresqls() {
        for (text, delimiter, part, expected) in [
            ("frag:17:42", ":", 1, "frag"),
            ("frag:17:42", ":", 3, "42"),
            ("frag:17:42", ":", 4, ""),
            ("a::b", "::", 2, "b"),
            ("", ":", 1, ""),
        ] {
            assert_eq!(nth_part(text, delimiter, part), expected, "{text} {delimiter} {part}");
        }
    }
}
