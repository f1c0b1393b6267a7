//! Regular expressions: in time linear in the text, with bounds on what a pattern may become.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use SqlType::{Bool, Int4, Text};
use regex::{Regex, RegexBuilder};
use sqlite::meter::{self, Text as Growing, TextArray};
use sqltext::error::{SqlError, state};
use store::definition::SqlType;
use store::value::Value;

use super::def::{FunctionDef, Now, Returns, Source, text};
use super::text::truth;
use crate::limits::{NODE_UNITS, PATTERN_BYTES_MAX, PATTERN_PROGRAM_BYTES_MAX, PATTERNS_KEPT};

const fn own(
    name: &'static str,
    arguments: &'static str,
    ty: SqlType,
    source: Source,
    meaning: &'static str,
    example: &'static str,
    answer: &'static str,
) -> FunctionDef {
    FunctionDef {
        name,
        arguments,
        returns: Returns::Type(ty),
        types: &[Text, Text, Text, Text],
        source,
        numeric: None,
        of_floats: None,
        of_spans: None,
        meaning,
        example,
        answer,
    }
}

/// One that gives an array.
const fn texts(
    name: &'static str,
    arguments: &'static str,
    ty: SqlType,
    source: Source,
    meaning: &'static str,
    example: &'static str,
    answer: &'static str,
) -> FunctionDef {
    FunctionDef { returns: Returns::Texts, ..own(name, arguments, ty, source, meaning, example, answer) }
}

/// Regular expressions. They are those of the Rust `regex` crate: nearly PostgreSQL's, without look-around and back
/// references. Flags are `i`, `g`, `n`/`m`, `s`, `x`.
#[rustfmt::skip]
pub(super) const FUNCTIONS: &[FunctionDef] = &[
    own("match", "(pattern, text)", Bool, Source::Own(|_, v| Ok(truth(compiled(&text(v, 0)?, "i")?.is_match(&text(v, 1)?))), 2, 2),
        "what `text ~* pattern` asks: whether it matches, in any case", "'Hello' ~* '^hel'", "1"),
    own("regexp", "(pattern, text)", Bool, Source::Own(|_, v| Ok(truth(compiled(&text(v, 0)?, "")?.is_match(&text(v, 1)?))), 2, 2),
        "what `text ~ pattern` and `text REGEXP pattern` ask: whether it matches", "'frag:17' ~ '^frag:\\d+$'", "1"),
    own("regexp_count", "(text, pattern)", Int4, Source::Own(count, 2, 2),
        "how often it matches", "regexp_count('a1b22', '\\d+')", "2"),
    own("regexp_like", "(text, pattern, flags)", Bool, Source::Own(|_, v| Ok(truth(of_arguments(v, 2)?.is_match(&text(v, 0)?))), 2, 3),
        "whether it matches", "regexp_like('ABC', 'b', 'i')", "1"),
    texts("regexp_match", "(text, pattern, flags)", Text, Source::Own(matched, 2, 3),
        "what the groups of the first match hold, as an array", "regexp_match('frag:17:42', '(\\d+):(\\d+)')", "[\"17\",\"42\"]"),
    own("regexp_replace", "(text, pattern, replacement, flags)", Text, Source::Own(replaced, 3, 4),
        "with the first match replaced, or all (`g`); `\\1` is a group, `\\&` the match", "regexp_replace('a1b2', '(\\d)', '<\\1>', 'g')", "a<1>b<2>"),
    texts("regexp_split_to_array", "(text, pattern)", Text, Source::Own(split, 2, 2),
        "the parts between matches, as an array", "regexp_split_to_array('a, b;c', '[,;] *')", "[\"a\",\"b\",\"c\"]"),
    own("regexp_substr", "(text, pattern)", Text, Source::Own(substr, 2, 2),
        "the first match, or its first group", "regexp_substr('page 17', '\\d+')", "17"),
];

thread_local! {
    static KEPT: RefCell<HashMap<(String, String), Rc<Regex>>> = RefCell::default();
}

/// The compiled pattern; the commonest are kept.
fn compiled(pattern: &str, flags: &str) -> Result<Rc<Regex>, SqlError> {
    let key = (pattern.to_owned(), flags.to_owned());
    if let Some(known) = KEPT.with_borrow(|kept| kept.get(&key).cloned()) {
        return Ok(known);
    }
    let regex = Rc::new(build(pattern, flags)?);
    KEPT.with_borrow_mut(|kept| {
        if kept.len() >= PATTERNS_KEPT {
            kept.clear();
        }
        kept.insert(key, Rc::clone(&regex));
    });
    Ok(regex)
}

fn build(pattern: &str, flags: &str) -> Result<Regex, SqlError> {
    if pattern.len() > PATTERN_BYTES_MAX {
        let message = format!("regular expression is longer than {PATTERN_BYTES_MAX} bytes");
        return Err(SqlError::new(state::TOO_LARGE, message));
    }
    let mut builder = RegexBuilder::new(&spelled(pattern));
    builder
        .size_limit(PATTERN_PROGRAM_BYTES_MAX)
        .dfa_size_limit(PATTERN_PROGRAM_BYTES_MAX)
        .dot_matches_new_line(true);
    for flag in flags.chars() {
        match flag {
            'i' => builder.case_insensitive(true),
            'c' => builder.case_insensitive(false),
            'n' | 'm' => builder.multi_line(true).dot_matches_new_line(false),
            's' => builder.dot_matches_new_line(true),
            'x' => builder.ignore_whitespace(true),
            'g' => &mut builder,
            other => {
                return Err(SqlError::new(
                    "22023",
                    format!("invalid regular expression option: \"{other}\""),
                ));
            }
        };
    }
    builder.build().map_err(|error| {
        let words = error.to_string();
        let reason = words.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        SqlError::new("2201B", format!("invalid regular expression: {reason}"))
    })
}

/// PostgreSQL's escapes for the borders of words in the words of the library.
fn spelled(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('y') => out.push_str("\\b"),
            Some('Y') => out.push_str("\\B"),
            Some('m') => out.push_str("\\b{start}"),
            Some('M') => out.push_str("\\b{end}"),
            Some('Z') => out.push_str("\\z"),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}

/// The pattern in the second argument, with flags in another.
fn of_arguments(values: &[Value], flags: usize) -> Result<Rc<Regex>, SqlError> {
    compiled(&text(values, 1)?, &text(values, flags)?)
}

fn count(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (regex, own) = (of_arguments(values, 2)?, text(values, 0)?);
    let mut found = 0_i64;
    for one in regex.find_iter(&own) {
        meter::work(NODE_UNITS + one.len())?;
        found += 1;
    }
    Ok(Value::Integer(found))
}

fn matched(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (regex, own) = (of_arguments(values, 2)?, text(values, 0)?);
    let Some(found) = regex.captures(&own) else { return Ok(Value::Null) };
    let first = usize::from(found.len() > 1);
    let mut groups = TextArray::new()?;
    found.iter().skip(first).try_for_each(|group| groups.push(group.map(|group| group.as_str())))?;
    groups.finish().map(Value::Text)
}

/// What the groups of each match hold, as arrays; of the first match alone without the flag `g`.
pub(crate) fn regexp_matches(values: &[Value]) -> Result<Vec<Value>, SqlError> {
    if values.iter().any(Value::is_null) {
        return Ok(Vec::new());
    }
    let all = text(values, 2)?.contains('g');
    let (regex, own) = (of_arguments(values, 2)?, text(values, 0)?);
    let mut arrays = Vec::new();
    for found in regex.captures_iter(&own).take(if all { usize::MAX } else { 1 }) {
        meter::work(NODE_UNITS)?;
        let mut groups = TextArray::new()?;
        let first = usize::from(found.len() > 1);
        found.iter().skip(first).try_for_each(|group| groups.push(group.map(|group| group.as_str())))?;
        arrays.push(Value::Text(groups.finish()?));
    }
    Ok(arrays)
}

/// The parts between matches.
pub(crate) fn regexp_parts(values: &[Value]) -> Result<Vec<Value>, SqlError> {
    if values.iter().any(Value::is_null) {
        return Ok(Vec::new());
    }
    let (regex, own) = (of_arguments(values, 2)?, text(values, 0)?);
    let mut parts = Vec::new();
    for part in regex.split(&own) {
        meter::take(size_of::<Value>() + part.len())?;
        parts.push(Value::from(part));
    }
    Ok(parts)
}

fn substr(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (regex, own) = (of_arguments(values, 2)?, text(values, 0)?);
    let Some(found) = regex.captures(&own) else { return Ok(Value::Null) };
    let group = found.get(1).or_else(|| found.get(0));
    Ok(group.map_or(Value::Null, |group| Value::from(group.as_str())))
}

fn split(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let (regex, own) = (of_arguments(values, 2)?, text(values, 0)?);
    let mut parts = TextArray::new()?;
    regex.split(&own).try_for_each(|part| parts.push(Some(part)))?;
    parts.finish().map(Value::Text)
}

fn replaced(_: Now, values: &[Value]) -> Result<Value, SqlError> {
    let flags = text(values, 3)?;
    let (regex, own, with) = (of_arguments(values, 3)?, text(values, 0)?, text(values, 2)?);
    let limit = usize::from(!flags.contains('g'));
    let mut out = Growing::new();
    let mut copied = 0;
    for (done, found) in regex.captures_iter(&own).enumerate() {
        let Some(whole) = found.get(0).filter(|_| limit == 0 || done < limit) else { break };
        meter::work(NODE_UNITS)?;
        out.push(&own[copied..whole.start()])?;
        expand(&with, &found, &mut out)?;
        copied = whole.end();
        if out.bytes() > crate::limits::TEXT_BYTES_MAX {
            return Err(SqlError::new(state::TOO_LARGE, "the replaced text is too long"));
        }
    }
    out.push(&own[copied..])?;
    Ok(Value::Text(out.finish()))
}

/// A replacement: `\1` is a group, `\&` the match, `\\` a backslash.
fn expand(with: &str, found: &regex::Captures<'_>, out: &mut Growing) -> Result<(), SqlError> {
    let mut rest = with;
    while let Some((before, behind)) = rest.split_once('\\') {
        out.push(before)?;
        let mut chars = behind.chars();
        match chars.next() {
            Some('&') => out.push(found.get(0).map_or("", |whole| whole.as_str()))?,
            Some(digit) if digit.is_ascii_digit() => {
                let group = digit.to_digit(10).and_then(|digit| found.get(digit as usize));
                out.push(group.map_or("", |group| group.as_str()))?;
            }
            Some('\\') | None => out.push("\\")?,
            Some(other) => {
                out.push("\\")?;
                out.push(other.encode_utf8(&mut [0; 4]))?;
            }
        }
        rest = chars.as_str();
    }
    out.push(rest)
}
