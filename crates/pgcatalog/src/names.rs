//! Names as SQL has them: quoted where they must be, with their schema, and taken apart again.

use sqltext::token::{Kind, Token, quoted_name, tokens, unquoted};

use crate::keywords::is_keyword;
use crate::limits::QUALIFIED_BYTES_MAX;

/// The option of `CREATE TABLE` that names the columns of a key whose constraint is added later, as a dump has it.
pub const KEY_OPTION: &str = "key";

/// A name with its schema where that is not `public`.
pub(crate) fn qualified(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{}.{}", identifier(namespace), identifier(name)),
        None => identifier(name),
    }
}

/// A name as SQL has to be given it: in quotes where it is not plain.
pub fn identifier(name: &str) -> String {
    let mut bytes = name.bytes();
    let plain = bytes.next().is_some_and(|first| first.is_ascii_lowercase() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if plain && !is_keyword(name) { name.to_owned() } else { quoted_name(name) }
}

/// The parts of a name between points, those without quotes in lower case; none for what is no name.
pub(crate) fn name_parts(name: &str) -> Option<Vec<String>> {
    if name.len() > QUALIFIED_BYTES_MAX {
        return None;
    }
    let tokens = tokens(name);
    let is_point = |token: &Token<'_>| token.is_sign(".");
    let (names, points): (Vec<_>, Vec<_>) = tokens.iter().enumerate().partition(|(at, _)| at % 2 == 0);
    let fits = names.len() == points.len() + 1
        && points.iter().all(|(_, token)| is_point(token))
        && names.iter().all(|(_, token)| matches!(token.kind, Kind::Word | Kind::Quoted));
    let part = |token: &Token<'_>| match token.kind {
        Kind::Quoted => unquoted(token.text),
        _ => token.text.to_lowercase(),
    };
    fits.then(|| names.into_iter().map(|(_, token)| part(token)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_must_be() {
        for (name, shown) in
            [("frag", "frag"), ("Frag", "\"Frag\""), ("order", "\"order\""), ("a b", "\"a b\"")]
        {
            assert_eq!(identifier(name), shown);
        }
    }
}
