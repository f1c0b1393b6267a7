//! An expression's words in one spelling, so that two spellings of it can be compared.

use sqltext::token::{Kind, Token, Tokens, unquoted};

/// One word, sign or literal.
#[derive(Clone, Debug)]
pub(super) struct Word {
    kind: Kind,
    /// Names without quotes and in small letters, operators in one spelling, all else as it was written.
    text: String,
    /// Of what an index holds: it is a column of the table. Whether its bare name can mean no other.
    pub(super) column: Option<bool>,
}

/// Operators of two spellings, and the one that stands for both.
const OPERATORS: &[(&str, &str)] = &[("==", "="), ("!=", "<>")];
/// Words that stand before an operand in parentheses.
const BEFORE_OPERAND: &[&str] = &[
    "and", "or", "not", "on", "where", "by", "then", "else", "when", "case", "between", "like", "glob", "is",
    "having",
];
/// Operators that compare, and the same with the sides exchanged.
const COMPARISONS: &[(&str, &str)] =
    &[("=", "="), ("<>", "<>"), ("<", ">"), (">", "<"), ("<=", ">="), (">=", "<=")];
/// Comparisons by a word.
const COMPARING_WORDS: &[&str] =
    &["in", "is", "like", "glob", "between", "isnull", "notnull", "match", "regexp", "not"];

impl Word {
    fn of(token: &Token<'_>) -> Self {
        let text = match token.kind {
            Kind::Word => token.text.to_ascii_lowercase(),
            Kind::Quoted => unquoted(token.text).to_ascii_lowercase(),
            Kind::Sign => {
                let known = OPERATORS.iter().find(|(written, _)| *written == token.text);
                known.map_or(token.text, |(_, text)| text).to_owned()
            }
            _ => token.text.to_owned(),
        };
        Self { kind: token.kind, text, column: None }
    }

    fn is_any(&self, words: &[&str]) -> bool {
        self.kind == Kind::Word && words.contains(&self.text.as_str())
    }

    pub(super) fn is(&self, word: &str) -> bool {
        self.is_any(&[word])
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }

    /// What it says if it is a name: that in small letters.
    pub(super) fn name(&self) -> Option<&str> {
        matches!(self.kind, Kind::Word | Kind::Quoted).then_some(self.text.as_str())
    }

    /// Whether two mean the same.
    pub(super) fn same(&self, other: &Self) -> bool {
        let kinds = self.kind == other.kind || (self.name().is_some() && other.name().is_some());
        kinds && self.text == other.text
    }

    /// The operator with the sides exchanged, if it compares by a sign.
    fn exchanged(&self) -> Option<&'static str> {
        COMPARISONS.iter().find(|(sign, _)| self.is_sign(sign)).map(|(_, exchanged)| *exchanged)
    }

    fn compares(&self) -> bool {
        self.exchanged().is_some() || self.is_any(COMPARING_WORDS)
    }

    fn is_literal(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Number | Kind::Blob)
    }
}

/// The words of an expression. Parentheses around one operand say nothing and are left out.
pub(super) fn words<'t>(tokens: impl Iterator<Item = Token<'t>>) -> Vec<Word> {
    let mut found = Vec::new();
    let mut open = Vec::new();
    for token in tokens {
        let word = Word::of(&token);
        if word.is_sign("(") {
            open.push(found.len());
        }
        if word.is_sign(")")
            && let Some(begin) = open.pop()
            && is_operand(&found, begin)
        {
            found.remove(begin);
            continue;
        }
        found.push(word);
    }
    while bare(&found).len() < found.len() {
        found.pop();
        found.remove(0);
    }
    found
}

/// Whether what stands behind this open parenthesis is one operand, so that the parentheses change nothing.
fn is_operand(words: &[Word], open: usize) -> bool {
    let before = open.checked_sub(1).map(|before| &words[before]);
    if before.is_some_and(|before| before.name().is_some() && !before.is_any(BEFORE_OPERAND)) {
        return false;
    }
    match &words[open + 1..] {
        [only] => only.kind != Kind::Sign,
        [table, point, column] if point.is_sign(".") => table.name().is_some() && column.name().is_some(),
        [name, inner @ ..] if name.name().is_some() => closes_last(inner),
        inner => closes_last(inner),
    }
}

/// Whether the first of these words opens a parenthesis that the last one closes.
fn closes_last(words: &[Word]) -> bool {
    let mut depth = 0_usize;
    let closing = words.iter().position(|word| {
        depth += usize::from(word.is_sign("("));
        depth = depth.saturating_sub(usize::from(word.is_sign(")")));
        depth == 0
    });
    closing.is_some_and(|closing| closing > 0 && closing + 1 == words.len())
}

/// The same without the parentheses around all of it.
fn bare(mut words: &[Word]) -> &[Word] {
    while let [open, inner @ .., _] = words
        && open.is_sign("(")
        && closes_last(words)
    {
        words = inner;
    }
    words
}

/// Positions outside parentheses of words that meet a condition.
fn outside(words: &[Word], meets: impl Fn(&Word) -> bool) -> impl Iterator<Item = usize> {
    let mut depth = 0_usize;
    words.iter().enumerate().filter_map(move |(at, word)| {
        depth += usize::from(word.is_sign("("));
        depth = depth.saturating_sub(usize::from(word.is_sign(")")));
        (depth == 0 && meets(word)).then_some(at)
    })
}

/// What `AND` joins, each without parentheses around it.
pub(super) fn conjuncts(words: &[Word]) -> Vec<&[Word]> {
    let mut waiting = vec![bare(words)];
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
fn first_and(words: &[Word]) -> Option<usize> {
    if outside(words, |word| word.is_any(&["or", "case"])).next().is_some() {
        return None;
    }
    let mut between = 0_usize;
    outside(words, |word| word.is_any(&["and", "between"])).find(|&at| {
        if words[at].is("between") {
            between += 1;
            return false;
        }
        let joins = between == 0;
        between = between.saturating_sub(1);
        joins
    })
}

/// The sides of an expression that compares once and does nothing else, and whether a sign compares them.
pub(super) fn sides(words: &[Word]) -> Option<(&[Word], &Word, &[Word])> {
    let loose = |word: &Word| word.is_any(&["or", "not", "case"]);
    if outside(words, loose).next().is_some() || first_and(words).is_some() {
        return None;
    }
    let mut found = outside(words, Word::compares);
    let at = found.next()?;
    found.next().is_none().then(|| (&words[..at], &words[at], &words[at + 1..]))
}

/// The operands of which one is not NULL where this condition holds.
pub(super) fn compared(words: &[Word]) -> impl Iterator<Item = &[Word]> {
    let (mut left, mut right) = (None, None);
    if let Some((before, operator, behind)) = sides(words) {
        let by_sign = operator.exchanged().is_some();
        left = (by_sign || operator.is_any(&["in", "like", "glob", "between"])).then_some(bare(before));
        right = by_sign.then_some(bare(behind));
    }
    left.into_iter().chain(right)
}

/// A comparison with a literal, its sides exchanged. Of two columns the first says how texts compare.
pub(super) fn mirrored(words: &[Word]) -> Option<Vec<Word>> {
    let (left, operator, right) = sides(words)?;
    let text = operator.exchanged()?.to_owned();
    let literal = |side: &[Word]| match side {
        [one] => one.is_literal(),
        [minus, one] => minus.is_sign("-") && one.is_literal(),
        _ => false,
    };
    if !literal(left) && !literal(right) {
        return None;
    }
    let operator = Word { kind: Kind::Sign, text, column: None };
    Some(right.iter().chain([&operator]).chain(left).cloned().collect())
}

/// The operand of a condition `operand IS NOT NULL`.
pub(super) fn not_null(words: &[Word]) -> Option<&[Word]> {
    match words {
        [operand @ .., is, not, null] if is.is("is") && not.is("not") && null.is("null") => {
            Some(bare(operand))
        }
        _ => None,
    }
}

/// Whether two expressions are the same but for blanks, the case of names, parentheses around operands, and the
/// spelling of operators.
pub fn same_expression(a: &str, b: &str) -> bool {
    let (a, b) = (words(Tokens::new(a)), words(Tokens::new(b)));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.same(b))
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
            assert_eq!(conjuncts(&words(Tokens::new(sql))).len(), parts, "{sql}");
        }
    }
}
