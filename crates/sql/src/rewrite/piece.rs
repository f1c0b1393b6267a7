//! An expression's tokens in one spelling, so that two spellings of it can be compared.

use std::ops::Range;

use super::scope::{Text, is_name};
use crate::text::token::{Kind, Token, unquoted};

/// A token with the part of the text that it stands for: the parentheses around an operand are part of it.
#[derive(Clone, Debug)]
pub(super) struct Piece<'a> {
    kind: Kind,
    /// Operators in one spelling; everything else as it was written.
    text: &'a str,
    pub(super) from: usize,
    pub(super) to: usize,
    /// Of a query within this one.
    foreign: bool,
}

/// Operators of two spellings, and the one that stands for both.
const OPERATORS: &[(&str, &str)] = &[("==", "="), ("!=", "<>")];
/// Words that stand before an operand in parentheses.
const BEFORE_OPERAND: &[&str] = &[
    "AND", "OR", "NOT", "ON", "WHERE", "BY", "THEN", "ELSE", "WHEN", "CASE", "BETWEEN", "LIKE", "GLOB", "IS",
    "HAVING",
];
/// Operators that compare, and the same with the sides exchanged.
pub(super) const COMPARISONS: &[(&str, &str)] =
    &[("=", "="), ("<>", "<>"), ("<", ">"), (">", "<"), ("<=", ">="), (">=", "<=")];
/// Comparisons by a word.
const COMPARING_WORDS: &[&str] =
    &["IN", "IS", "LIKE", "GLOB", "BETWEEN", "ISNULL", "NOTNULL", "MATCH", "REGEXP", "NOT"];

impl Piece<'_> {
    pub(super) fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    pub(super) fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }

    pub(super) fn is_any_sign(&self, signs: &[&str]) -> bool {
        signs.iter().any(|sign| self.is_sign(sign))
    }

    pub(super) fn is_name(&self) -> bool {
        matches!(self.kind, Kind::Word | Kind::Quoted)
    }

    /// The name without its quotes.
    pub(super) fn name(&self) -> String {
        unquoted(self.text)
    }

    /// Whether two mean the same, names in any case.
    pub(super) fn same(&self, other: &Self) -> bool {
        if self.foreign || other.foreign {
            return false;
        }
        if self.is_name() && other.is_name() {
            return self.name().eq_ignore_ascii_case(&other.name());
        }
        self.kind == other.kind && self.text == other.text
    }

    /// Whether it compares its sides.
    pub(super) fn compares(&self) -> bool {
        COMPARISONS.iter().any(|(sign, _)| self.is_sign(sign)) || self.is_any(COMPARING_WORDS)
    }
}

/// The pieces of some tokens of a text. What belongs to a query within `query` equals nothing.
pub(super) fn pieces<'a>(text: &Text<'a>, tokens: Range<usize>, query: Option<usize>) -> Vec<Piece<'a>> {
    let mut found: Vec<Piece<'a>> = Vec::with_capacity(tokens.len());
    let mut open: Vec<usize> = Vec::new();
    for at in tokens {
        let mut piece = one(&text.tokens[at]);
        piece.foreign = query.is_some_and(|query| !text.is_of(at, query));
        if piece.is_sign("(") {
            open.push(found.len());
        }
        if piece.is_sign(")")
            && let Some(begin) = open.pop()
            && is_operand(&found, begin)
        {
            let from = found.remove(begin).from;
            found[begin].from = from;
            if let Some(last) = found.last_mut() {
                last.to = piece.to;
            }
            continue;
        }
        found.push(piece);
    }
    found
}

/// The piece that a token is.
fn one<'a>(token: &Token<'a>) -> Piece<'a> {
    let spelled = OPERATORS.iter().find(|(written, _)| token.kind == Kind::Sign && *written == token.text);
    let text = spelled.map_or(token.text, |(_, text)| text);
    Piece { kind: token.kind, text, from: token.start, to: token.end(), foreign: false }
}

/// Whether what stands behind this open parenthesis is one operand, so that the parentheses change nothing.
fn is_operand(pieces: &[Piece<'_>], open: usize) -> bool {
    let before = open.checked_sub(1).map(|before| &pieces[before]);
    if before.is_some_and(|before| before.is_name() && !before.is_any(BEFORE_OPERAND)) {
        return false;
    }
    let inner = &pieces[open + 1..];
    if inner.iter().any(|piece| piece.foreign) {
        return false;
    }
    match inner {
        [only] => only.kind != Kind::Sign,
        [table, point, column] if point.is_sign(".") => table.is_name() && column.is_name(),
        [name, open, .., _] if open.is_sign("(") && name.is_name() => closes_last(&inner[1..]),
        [open, ..] if open.is_sign("(") => closes_last(inner),
        _ => false,
    }
}

/// Whether the parenthesis that the first piece opens is closed by the last.
fn closes_last(pieces: &[Piece<'_>]) -> bool {
    let mut depth = 0_usize;
    let closing = pieces.iter().position(|piece| {
        depth += usize::from(piece.is_sign("("));
        depth -= usize::from(piece.is_sign(")"));
        depth == 0
    });
    closing == Some(pieces.len() - 1)
}

/// The same without the parentheses around all of it.
pub(super) fn bare<'p, 'a>(mut pieces: &'p [Piece<'a>]) -> &'p [Piece<'a>] {
    while let [open, inner @ .., _] = pieces
        && open.is_sign("(")
        && closes_last(pieces)
    {
        pieces = inner;
    }
    pieces
}

/// Positions outside parentheses of pieces that meet a condition.
pub(super) fn outside<'p, 'a>(
    pieces: &'p [Piece<'a>],
    meets: impl Fn(&Piece<'a>) -> bool + 'p,
) -> impl Iterator<Item = usize> + 'p {
    let mut depth = 0_usize;
    pieces.iter().enumerate().filter_map(move |(at, piece)| {
        depth += usize::from(piece.is_sign("("));
        depth = depth.saturating_sub(usize::from(piece.is_sign(")")));
        (depth == 0 && meets(piece)).then_some(at)
    })
}

/// What `AND` joins, each without parentheses around it.
pub(super) fn conjuncts<'p, 'a>(pieces: &'p [Piece<'a>]) -> Vec<&'p [Piece<'a>]> {
    let mut waiting = vec![bare(pieces)];
    let mut found = Vec::new();
    while let Some(one) = waiting.pop() {
        match first_and(one) {
            Some(at) => waiting.extend([bare(&one[at + 1..]), bare(&one[..at])]),
            None => found.push(one),
        }
    }
    found
}

/// An `AND` that joins all that stands before it with all behind it; that of `BETWEEN` does not.
fn first_and(pieces: &[Piece<'_>]) -> Option<usize> {
    if outside(pieces, |piece| piece.is_any(&["OR", "CASE"])).next().is_some() {
        return None;
    }
    let mut between = 0_usize;
    outside(pieces, |piece| piece.is_any(&["AND", "BETWEEN"])).find(|&at| {
        if pieces[at].is("BETWEEN") {
            between += 1;
            return false;
        }
        let joins = between == 0;
        between = between.saturating_sub(1);
        joins
    })
}

/// The one comparison of an expression that is nothing else.
pub(super) fn comparison(pieces: &[Piece<'_>]) -> Option<usize> {
    let loose = |piece: &Piece<'_>| piece.is_any(&["OR", "NOT", "CASE"]);
    if outside(pieces, loose).next().is_some() || first_and(pieces).is_some() {
        return None;
    }
    let mut found = outside(pieces, Piece::compares);
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// A comparison with a literal, its sides exchanged. Of two columns the first says how texts compare.
pub(super) fn mirrored<'a>(pieces: &[Piece<'a>]) -> Option<Vec<Piece<'a>>> {
    let at = comparison(pieces)?;
    let (_, exchanged) = COMPARISONS.iter().find(|(sign, _)| pieces[at].is_sign(sign))?;
    let operator = Piece { text: exchanged, ..pieces[at].clone() };
    let (left, right) = (pieces.get(..at)?, pieces.get(at + 1..)?);
    let literal = |side: &[Piece<'_>]| {
        let value = |piece: &Piece<'_>| matches!(piece.kind, Kind::Text | Kind::Number | Kind::Blob);
        matches!(side, [one] if value(one))
            || matches!(side, [minus, one] if minus.is_sign("-") && value(one))
    };
    if !literal(left) && !literal(right) {
        return None;
    }
    Some(right.iter().cloned().chain([operator]).chain(left.iter().cloned()).collect())
}

/// Whether two expressions are the same but for blanks, the case of names, parentheses around operands, and the
/// spelling of operators.
pub(crate) fn same_expression(a: &str, b: &str) -> bool {
    let (a, b) = (Text::new(a), Text::new(b));
    let all = |text: &Text<'_>| 0..text.tokens.len();
    let (a, b) = (pieces(&a, all(&a), None), pieces(&b, all(&b), None));
    let (a, b) = (bare(&a), bare(&b));
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b))
}

/// Whether a token may be a column's name.
pub(super) fn may_be_column(text: &Text<'_>, at: usize) -> bool {
    let next = |sign: &str| text.tokens.get(at + 1).is_some_and(|token| token.is_sign(sign));
    is_name(&text.tokens[at]) && !next("(") && !next(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_expression_are_the_same() {
        for (a, b, same) in [
            ("lower( A )", "LOWER(a)", true),
            ("(a) = ((1))", "a==1", true),
            ("((a + 1))", "a+1", true),
            ("(lower(a)) <> 'x'", "lower(a) != 'x'", true),
            ("(t.a) > 1", "t.a > 1", true),
            ("a - (b - c)", "a - b - c", false),
            ("f((a), b)", "f(a, b)", true),
            ("a IN (1)", "a IN 1", false),
            ("a -> 'b'", "a ->> 'b'", false),
            ("'A'", "'a'", false),
            ("a > = 1", "a >= 1", false),
        ] {
            assert_eq!(same_expression(a, b), same, "{a}, {b}");
        }
    }

    #[test]
    fn conjunctions_come_apart() {
        for (sql, parts) in [
            ("a AND b AND c", 3),
            ("(a AND (b)) AND c", 3),
            ("a AND b OR c", 1),
            ("a BETWEEN 1 AND 2 AND b", 2),
            ("a AND b BETWEEN 1 AND 2", 2),
            ("(a OR b) AND c", 2),
            ("CASE WHEN a AND b THEN 1 END", 1),
        ] {
            let text = Text::new(sql);
            assert_eq!(conjuncts(&pieces(&text, 0..text.tokens.len(), None)).len(), parts, "{sql}");
        }
    }
}
