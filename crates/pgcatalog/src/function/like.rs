//! `LIKE` and `ILIKE`, as PostgreSQL has them: with case, and with a backslash before what is meant as it stands.
//!
//! SQLite has one operator. A pattern without a mark means what `LIKE` means; a mark at its beginning says that it is
//! meant otherwise. So all of them find rows by an index of their column: whoever computes the range sees the mark. It
//! is a function that puts it there, which SQLite calls once for a statement.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use SqlType::Text;
use memchr::memmem;
use sqlite::meter;
use sqltext::error::SqlError;
use store::definition::SqlType;
use store::value::Value;

use super::def::{FunctionDef, Now, Returns, Run, Source, text};
use super::text::truth;
use crate::limits::LIKE_PATTERN_KEPT_BYTES;

/// What `LIKE` means to a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LikeStyle {
    /// Case counts, and a backslash escapes.
    #[default]
    Postgresql,
    /// The case of ASCII letters does not, and there is no escape.
    Sqlite,
}

thread_local! {
    static STYLE: Cell<LikeStyle> = const { Cell::new(LikeStyle::Postgresql) };
    /// The pattern that was used last: a statement has one for many rows.
    static LAST: RefCell<Option<Rc<Pattern>>> = const { RefCell::new(None) };
}

/// What `LIKE` means in the statements that the thread translates.
pub fn style() -> LikeStyle {
    STYLE.get()
}

/// Changes that.
#[inline]
pub fn set_style(style: LikeStyle) {
    STYLE.set(style);
}

/// Translates something in which it means this, whatever it means to the session.
pub fn within<T>(style: LikeStyle, body: impl FnOnce() -> T) -> T {
    let before = STYLE.replace(style);
    let result = body();
    STYLE.set(before);
    result
}

/// The mark of a pattern of which the case of ASCII letters does not count.
const ANY_ASCII_CASE: char = '\u{1}';
/// The mark of a pattern of which no letter's case counts.
const ANY_CASE: char = '\u{2}';

/// What `text LIKE pattern` becomes where it is not SQLite's `LIKE` of an unmarked pattern.
pub const LIKE_PATTERN: &str = "like_pattern";
/// The same of `ILIKE`.
pub const ILIKE_PATTERN: &str = "ilike_pattern";
/// The same of SQLite's `LIKE`.
pub const SQLITE_PATTERN: &str = "sqlite_like_pattern";

/// The functions behind the operators.
#[rustfmt::skip]
pub(super) const FUNCTIONS: &[FunctionDef] = &[
    pattern(ILIKE_PATTERN, |_, values| changed(Some(ANY_CASE), "\\", values),
        "a pattern as `ILIKE` means it, with another escape character", "'Abc' ILIKE 'a%'"),
    FunctionDef { name: "like", arguments: "(pattern, text)", returns: Returns::Type(SqlType::Bool), types: &[Text, Text],
        source: Source::Own(like, 2, 2), numeric: None, of_floats: None, of_spans: None,
        meaning: "what `text LIKE pattern` asks", example: "like('a%', 'abc')", answer: "1" },
    pattern(LIKE_PATTERN, |_, values| changed(None, "\\", values),
        "a pattern as `LIKE` means it, with another escape character", "'a_c' LIKE 'a\\_%'"),
    pattern(SQLITE_PATTERN, |_, values| changed(Some(ANY_ASCII_CASE), "", values),
        "a pattern as SQLite's `LIKE` means it: ASCII letters in any case, no escape character of its own",
        "'ABC' LIKE sqlite_like_pattern('a%')"),
];

const fn pattern(name: &'static str, run: Run, meaning: &'static str, example: &'static str) -> FunctionDef {
    FunctionDef {
        name,
        arguments: "(pattern, escape)",
        returns: Returns::Type(Text),
        types: &[Text, Text],
        source: Source::Own(run, 1, 2),
        numeric: None,
        of_floats: None,
        of_spans: None,
        meaning,
        example,
        answer: "1",
    }
}

fn changed(mark: Option<char>, escape: &str, values: &[Value]) -> Result<Value, SqlError> {
    let pattern = text(values, 0)?;
    let given = if values.len() > 1 { Some(text(values, 1)?) } else { None };
    with_mark(mark, &pattern, given.as_deref().unwrap_or(escape)).map(Value::Text)
}

/// A pattern with a mark, in which a backslash escapes. `escape`: what does in the pattern; empty is nothing.
fn with_mark(mark: Option<char>, pattern: &str, escape: &str) -> Result<String, SqlError> {
    let mut characters = escape.chars();
    let (escape, more) = (characters.next(), characters.next());
    if more.is_some() {
        return Err(SqlError::new("22025", "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    meter::take(2 * pattern.len())?;
    let mut out = String::with_capacity(pattern.len() + 1);
    out.extend(mark);
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        if Some(character) == escape {
            let escaped = rest.next().ok_or_else(unfinished)?;
            if matches!(escaped, '%' | '_' | '\\') {
                out.push('\\');
            }
            out.push(escaped);
        } else {
            if character == '\\' {
                out.push('\\');
            }
            out.push(character);
        }
    }
    Ok(out)
}

fn unfinished() -> SqlError {
    SqlError::new("22025", "LIKE pattern must not end with escape character")
}

/// How letters are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Counts,
    /// In every alphabet.
    Any,
    /// Of ASCII.
    AnyAscii,
}

impl Case {
    fn fold(self, text: String) -> String {
        match self {
            Self::Counts => text,
            Self::AnyAscii => text.to_ascii_lowercase(),
            Self::Any if text.is_ascii() => text.to_ascii_lowercase(),
            Self::Any => text.chars().map(lower).collect(),
        }
    }
}

/// A letter in lower case, where that is one letter of the same alphabet: an index is read for ASCII alone.
fn lower(letter: char) -> char {
    let mut lower = letter.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(one), None) if one.is_ascii() == letter.is_ascii() => one,
        _ => letter,
    }
}

/// What stands between two `%`.
#[derive(Debug, Default)]
struct Segment {
    /// Texts, with any one character between two of them.
    parts: Vec<String>,
}

impl Segment {
    /// Where it ends if it begins at this place of a text.
    fn end_at(&self, text: &str, at: usize) -> Option<usize> {
        let mut end = at;
        for (number, part) in self.parts.iter().enumerate() {
            if number > 0 {
                end += text.get(end..)?.chars().next()?.len_utf8();
            }
            if !text.as_bytes().get(end..)?.starts_with(part.as_bytes()) {
                return None;
            }
            end += part.len();
        }
        Some(end)
    }

    /// Where it ends if it begins as soon as it can from this place on.
    fn end_from(&self, text: &str, from: usize) -> Result<Option<usize>, SqlError> {
        let rest = &text[from..];
        let first = self.parts.first().map_or("", String::as_str);
        if let [only] = &self.parts[..] {
            return Ok(memmem::find(rest.as_bytes(), only.as_bytes()).map(|at| from + at + only.len()));
        }
        let finder = memmem::Finder::new(first.as_bytes());
        let (mut at, mut tried) = (from, 0);
        loop {
            let Some(found) = finder.find(&text.as_bytes()[at..]) else {
                return Ok(None);
            };
            at += found;
            if let Some(end) = self.end_at(text, at) {
                return Ok(Some(end));
            }
            tried += self.parts.len();
            if tried > 1_000 {
                meter::work(std::mem::take(&mut tried))?;
            }
            let Some(next) = text.get(at..).and_then(|rest| rest.chars().next()) else {
                return Ok(None);
            };
            at += next.len_utf8();
        }
    }

    /// Where it begins if it ends with the text.
    fn begin_of_end(&self, text: &str) -> Option<usize> {
        let wanted: usize = self.parts.len().saturating_sub(1);
        let bytes: usize = self.parts.iter().map(String::len).sum();
        // Between the parts stand so many characters of one to four bytes.
        let shortest = text.len().checked_sub(bytes + wanted)?;
        let longest = text.len().saturating_sub(bytes + 4 * wanted);
        (longest..=shortest)
            .rev()
            .filter(|at| text.is_char_boundary(*at))
            .find(|at| self.end_at(text, *at) == Some(text.len()))
    }
}

/// What a sign of a pattern takes in lists that grow, with a short text behind it.
const SIGN_BYTES: usize = 3 * (size_of::<Segment>() + size_of::<String>()) + 64;

/// A pattern, taken apart.
#[derive(Debug)]
struct Pattern {
    /// As it was given, with its mark.
    given: String,
    case: Case,
    /// One more than there are `%`.
    segments: Vec<Segment>,
}

impl Pattern {
    fn new(given: &str) -> Result<Self, SqlError> {
        let (case, body) = split(given);
        let signs = body.bytes().filter(|byte| matches!(byte, b'%' | b'_')).count();
        meter::take(3 * given.len() + (signs + 1) * SIGN_BYTES)?;
        let mut segments = vec![Segment { parts: vec![String::new()] }];
        let mut rest = body.chars();
        while let Some(character) = rest.next() {
            let Some(segment) = segments.last_mut() else {
                break;
            };
            match character {
                '%' => segments.push(Segment { parts: vec![String::new()] }),
                '_' => segment.parts.push(String::new()),
                _ => {
                    let escaped = character == '\\';
                    let meant = if escaped { rest.next().ok_or_else(unfinished)? } else { character };
                    if let Some(part) = segment.parts.last_mut() {
                        part.push(meant);
                    }
                }
            }
        }
        for part in segments.iter_mut().flat_map(|segment| segment.parts.iter_mut()) {
            *part = case.fold(std::mem::take(part));
        }
        Ok(Self { given: given.to_owned(), case, segments })
    }

    fn matches(&self, text: &str) -> Result<bool, SqlError> {
        let Some((first, rest)) = self.segments.split_first() else {
            return Ok(false);
        };
        let Some(mut at) = first.end_at(text, 0) else {
            return Ok(false);
        };
        let Some((last, middle)) = rest.split_last() else {
            return Ok(at == text.len());
        };
        for segment in middle {
            match segment.end_from(text, at)? {
                Some(end) => at = end,
                None => return Ok(false),
            }
        }
        Ok(last.begin_of_end(text).is_some_and(|begin| begin >= at))
    }
}

/// What a mark says, and the pattern without it.
fn split(given: &str) -> (Case, &str) {
    if let Some(body) = given.strip_prefix(ANY_CASE) {
        (Case::Any, body)
    } else if let Some(body) = given.strip_prefix(ANY_ASCII_CASE) {
        (Case::AnyAscii, body)
    } else {
        (Case::Counts, given)
    }
}

/// A text, or what SQLite takes for one: bytes up to a zero, whether they are characters or not.
fn characters(values: &[Value], at: usize) -> Result<String, SqlError> {
    let mut own = match values.get(at) {
        Some(Value::Blob(bytes)) => {
            meter::take(2 * bytes.len())?;
            String::from_utf8_lossy(bytes).into_owned()
        }
        _ => text(values, at)?,
    };
    if let Some(zero) = memchr::memchr(0, own.as_bytes()) {
        own.truncate(zero);
    }
    Ok(own)
}

fn like(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (given, of) = (characters(values, 0)?, characters(values, 1)?);
    let kept = LAST.with_borrow(|last| last.clone().filter(|last| last.given == given));
    let pattern = if let Some(pattern) = kept {
        pattern
    } else {
        let made = Rc::new(Pattern::new(&given)?);
        if given.len() <= LIKE_PATTERN_KEPT_BYTES {
            LAST.set(Some(Rc::clone(&made)));
        }
        made
    };
    if pattern.case != Case::Counts {
        meter::take(of.len())?;
    }
    Ok(truth(pattern.matches(&pattern.case.fold(of))?))
}

/// The texts between which everything lies that a pattern can match, the second not among them; none where it has no
/// fixed beginning. They hold for an index in the order of bytes, and for one that ignores the case of ASCII letters.
pub fn range(given: &str) -> Option<(String, String)> {
    let (case, body) = split(given);
    let mut fixed = String::new();
    let mut rest = body.chars();
    while let Some(character) = rest.next() {
        let meant = match character {
            '%' | '_' => break,
            '\\' => rest.next()?,
            other => other,
        };
        if case == Case::Any && !meant.is_ascii() {
            break;
        }
        fixed.push(meant);
    }
    let from = if case == Case::Counts { fixed.clone() } else { fixed.to_ascii_uppercase() };
    let mut last = if case == Case::Counts { fixed } else { fixed.to_ascii_lowercase() };
    // The next text after all that begin so: the last character raised by one.
    loop {
        let raised = last.pop()?.to_ascii_lowercase();
        if let Some(raised) = char::from_u32(u32::from(raised) + 1) {
            last.push(raised);
            return Some((from, last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without shortcuts: the definition of a pattern.
    fn plainly(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['%', rest @ ..] => (0..=text.len()).any(|at| plainly(rest, &text[at..])),
            ['_', rest @ ..] => !text.is_empty() && plainly(rest, &text[1..]),
            ['\\', meant, rest @ ..] | [meant, rest @ ..] => {
                text.first() == Some(meant) && plainly(rest, &text[1..])
            }
        }
    }

    #[test]
    fn random_patterns_match_what_they_mean() {
        let mut random = fastrand::Rng::with_seed(17);
        let letters = ['a', 'b', '\u{e9}', '%', '_', '\\', 'A'];
        for _ in 0..200_000 {
            let mut text =
                || -> Vec<char> { (0..random.usize(0..8)).map(|_| letters[random.usize(0..7)]).collect() };
            let (pattern, text) = (text(), text());
            let [given, of] = [&pattern, &text].map(|list| list.iter().collect::<String>());
            let Ok(made) = Pattern::new(&given) else { continue };
            let found = made.matches(&of).unwrap();
            assert_eq!(found, plainly(&pattern, &text), "{of:?} LIKE {given:?}");
            if let Some((from, to)) = range(&given).filter(|_| found) {
                assert!(from <= of && of < to, "{of:?} LIKE {given:?}: {from:?} {to:?}");
                let [from, to, of] = [from, to, of].map(|text| text.to_ascii_lowercase());
                assert!(from <= of && of < to, "in any case: {of:?} LIKE {given:?}");
            }
        }
    }

    #[test]
    fn patterns_become_ranges() {
        let of = |pattern: &str| range(pattern).map(|(from, to)| format!("{from} {to}"));
        let any = |pattern: &str| of(&with_mark(Some(ANY_ASCII_CASE), pattern, "").unwrap());
        assert_eq!(any("Frag:17:%").as_deref(), Some("FRAG:17: frag:17;"));
        assert_eq!(any("17").as_deref(), Some("17 18"));
        assert_eq!(any("%a"), None);
        assert_eq!(any(""), None);
        assert_eq!(any("a\u{10ffff}%").as_deref(), Some("A\u{10ffff} b"));
        assert_eq!(of("Frag:17:%").as_deref(), Some("Frag:17: Frag:17;"));
        assert_eq!(of("a\\_b%").as_deref(), Some("a_b a_c"));
        assert_eq!(of("fooZ%").as_deref(), Some("fooZ foo{"));
        let ilike = with_mark(Some(ANY_CASE), "ab\u{e9}%", "\\").unwrap();
        assert_eq!(of(&ilike).as_deref(), Some("AB ac"));
    }
}
