//! The names of a function's parameters in its body, which become numbers.

use std::ops::Range;

use store::definition::SqlType;

use crate::error::SqlError;
use crate::text::token::{Kind, Token, Tokens, unquoted};

/// What a body's statements may name.
pub(super) struct Known {
    /// The function, whose name may stand before that of a parameter.
    pub(super) function: String,
    pub(super) names: Vec<String>,
    pub(super) types: Vec<Option<SqlType>>,
}

/// The number of the parameter that a word names, from 0.
pub(super) fn number_of(token: &Token<'_>, names: &[String]) -> Option<usize> {
    let name = unquoted(token.text);
    names.iter().position(|own| !own.is_empty() && own.eq_ignore_ascii_case(&name))
}

impl Known {
    /// Whether an error says that there is no column `function.parameter`, of one of the parameters.
    pub(super) fn is_meant_by(&self, error: &SqlError) -> bool {
        let is = |name: &String| {
            !name.is_empty()
                && error
                    .message
                    .eq_ignore_ascii_case(&format!("column \"{}.{name}\" does not exist", self.function))
        };
        self.names.iter().any(is)
    }

    /// The number of the parameter that `function.parameter` names, which begins with this token.
    fn qualified(&self, tokens: &[Token<'_>], at: usize) -> Option<usize> {
        let [function, point, parameter, behind @ ..] = tokens.get(at..)? else { return None };
        let is_word = |token: &Token<'_>| matches!(token.kind, Kind::Word | Kind::Quoted);
        let is_part = at.checked_sub(1).and_then(|at| tokens.get(at)).is_some_and(|last| last.is_sign("."));
        let means_more = behind.first().is_some_and(|next| next.is_sign("(") || next.is_sign("."));
        let is_so = is_word(function)
            && point.is_sign(".")
            && is_word(parameter)
            && unquoted(function.text).eq_ignore_ascii_case(&self.function);
        if is_so && !is_part && !means_more { number_of(parameter, &self.names) } else { None }
    }
}

/// A text with numbers in all places of `function.parameter`.
pub(super) fn all_qualified(sql: &str, known: &Known) -> String {
    let tokens: Vec<Token<'_>> = Tokens::new(sql).collect();
    replaced_qualified(sql, &tokens, 0..tokens.len(), known)
}

/// The same of those that begin among these tokens.
fn replaced_qualified(sql: &str, tokens: &[Token<'_>], among: Range<usize>, known: &Known) -> String {
    let (mut out, mut done) = (String::new(), 0);
    for at in among {
        let Some(number) = known.qualified(tokens, at) else { continue };
        out.push_str(&sql[done..tokens[at].start]);
        out.push('$');
        out.push_str(&(number + 1).to_string());
        done = tokens[at + 2].end();
    }
    out.push_str(&sql[done..]);
    out
}

/// Numbers in the places of names among the tokens that begin and end there: no column is there.
fn all_numbered(sql: &str, known: &Known, among: impl Fn(&[Token<'_>]) -> Option<Range<usize>>) -> String {
    let tokens: Vec<Token<'_>> = Tokens::new(sql).collect();
    let Some(range) = among(&tokens) else { return sql.to_owned() };
    let sql = replaced_qualified(sql, &tokens, range, known);
    let tokens: Vec<Token<'_>> = Tokens::new(&sql).collect();
    let Some(range) = among(&tokens) else { return sql };
    replaced(&sql, &tokens, range, |token| number_of(token, &known.names))
}

/// The arguments of a call with numbers in the places of names.
pub(super) fn with_numbers(sql: &str, known: &Known) -> String {
    all_numbered(sql, known, |tokens| {
        let begin = tokens.iter().position(|token| token.is_sign("("))?;
        Some(begin..tokens.len())
    })
}

/// The same of the rows of an `INSERT`.
pub(super) fn with_numbers_in_rows(sql: &str, known: &Known) -> String {
    all_numbered(sql, known, |tokens| {
        let inserts = tokens.first().is_some_and(|first| first.is("INSERT"));
        let begin = tokens.iter().position(|token| token.is("VALUES"))?;
        if !inserts || tokens.iter().any(|token| token.is("SELECT")) {
            return None;
        }
        let is_behind = |token: &Token<'_>| token.is_any(&["ON", "RETURNING"]);
        let end = tokens[begin..].iter().position(is_behind).map_or(tokens.len(), |end| begin + end);
        Some(begin..end)
    })
}

/// A text with numbers in the places of some of its names.
pub(super) fn replaced(
    sql: &str,
    tokens: &[Token<'_>],
    among: Range<usize>,
    number: impl Fn(&Token<'_>) -> Option<usize>,
) -> String {
    let (mut out, mut done) = (String::new(), 0);
    for at in among {
        let token = &tokens[at];
        let is_word = matches!(token.kind, Kind::Word | Kind::Quoted);
        let is_part = at.checked_sub(1).and_then(|at| tokens.get(at)).is_some_and(|last| last.is_sign("."));
        let means_more = tokens
            .get(at + 1)
            .is_some_and(|next| ["(", ".", "=>", ":="].iter().any(|sign| next.is_sign(sign)));
        let Some(number) = number(token).filter(|_| is_word && !is_part && !means_more) else { continue };
        out.push_str(&sql[done..token.start]);
        out.push('$');
        out.push_str(&(number + 1).to_string());
        done = token.end();
    }
    out.push_str(&sql[done..]);
    out
}

/// The greatest number of a parameter in a text.
pub(super) fn greatest_number(sql: &str) -> usize {
    let number = |token: Token<'_>| token.text.strip_prefix('$')?.parse().ok();
    Tokens::new(sql).filter_map(number).max().unwrap_or(0)
}
