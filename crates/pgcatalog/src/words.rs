//! Definitions in PostgreSQL's words: they are kept in those in which SQLite computes them.
//!
//! What a function of ours stands for is in the table of functions: its line begins with "what `a + b` is". So a call
//! of it is shown as that, with the arguments in the places of their names.

use std::ops::Range;

use sqltext::token::{Kind, Token, tokens};
use store::definition::SqlType;

use crate::function;

/// Words that are calls without parentheses in PostgreSQL, and with them in SQLite.
const BARE: &[&str] = &[
    "current_user",
    "current_role",
    "session_user",
    "current_catalog",
    "localtimestamp",
    "localtime",
    "current_timestamp",
    "current_time",
];

/// How the names of collations begin by which SQLite compares as PostgreSQL does.
const OWN_COLLATIONS: &str = "sqlcached_";

/// Functions that SQLite is given to compare or assign a value; PostgreSQL does so by itself.
const UNSEEN: &[&str] = &["interval_order", "interval_key", "interval_of_key", "zoned_as", "json_last_keys"];

/// The text of a definition as PostgreSQL has it.
pub(crate) fn in_postgresqls_words(sql: &str) -> String {
    let all = tokens(sql);
    Words { all: &all }.of(0..all.len())
}

struct Words<'s> {
    all: &'s [Token<'s>],
}

impl Words<'_> {
    /// These tokens.
    fn of(&self, range: Range<usize>) -> String {
        let mut out = String::new();
        let mut at = range.start;
        while at < range.end {
            let token = &self.all[at];
            let begins = at == range.start || out.ends_with('(');
            let apart = at.checked_sub(1).is_some_and(|before| self.all[before].end() < token.start);
            if apart && !begins {
                out.push(' ');
            }
            if self.is_own_collation(at) {
                // How SQLite compares values of a type, which PostgreSQL does by itself.
                out.truncate(out.trim_end().len());
                at += 2;
            } else if let Some((shown, behind)) = self.call_at(at, range.end) {
                out.push_str(&shown);
                at = behind;
            } else {
                out.push_str(if token.is("REGEXP") { "~" } else { token.text });
                at += 1;
            }
        }
        out
    }

    /// The call that begins there, where it is shown otherwise, and where it ends.
    fn call_at(&self, at: usize, end: usize) -> Option<(String, usize)> {
        let token = &self.all[at];
        if token.is("LIKE") && self.all.get(at + 1).is_some_and(|next| next.is("ilike_pattern")) {
            let close = self.closing(at + 2, end)?;
            return Some((format!("ILIKE {}", self.of(at + 3..close)), close + 1));
        }
        let close = self.closing(at + 1, end).filter(|_| token.kind == Kind::Word)?;
        if token.is("CAST") && self.is_own_collation(close + 1) {
            // `CAST(number AS TEXT) COLLATE ...`: a decimal number as SQLite has to see it.
            return Some((self.of(at + 2..close - 2), close + 3));
        }
        let arguments: Vec<String> =
            self.arguments(at + 2..close).into_iter().map(|part| self.of(part)).collect();
        let name = token.text.to_ascii_lowercase();
        shown(&name, &arguments).map(|shown| (shown, close + 1))
    }

    /// Whether a collation stands there that no user names.
    fn is_own_collation(&self, at: usize) -> bool {
        let name = self.all.get(at).filter(|token| token.is("COLLATE")).and_then(|_| self.all.get(at + 1));
        name.is_some_and(|name| name.text.starts_with(OWN_COLLATIONS))
    }

    /// Where the parenthesis that opens there closes.
    fn closing(&self, open: usize, end: usize) -> Option<usize> {
        self.all.get(open).filter(|token| token.is_sign("("))?;
        let mut depth = 0_usize;
        (open..end).find(|&at| {
            depth += usize::from(self.all[at].is_sign("("));
            depth -= usize::from(self.all[at].is_sign(")"));
            depth == 0
        })
    }

    /// The arguments of a call, between its parentheses.
    fn arguments(&self, inside: Range<usize>) -> Vec<Range<usize>> {
        let (mut found, mut depth, mut start) = (Vec::new(), 0_usize, inside.start);
        for at in inside.clone() {
            let token = &self.all[at];
            if token.is_sign(",") && depth == 0 {
                found.push(start..at);
                start = at + 1;
            }
            depth += usize::from(token.is_sign("("));
            depth = depth.saturating_sub(usize::from(token.is_sign(")")));
        }
        if start < inside.end {
            found.push(start..inside.end);
        }
        found
    }
}

/// A call as PostgreSQL writes it; `None`: as it stands.
fn shown(name: &str, arguments: &[String]) -> Option<String> {
    match (name, arguments) {
        (name, []) if BARE.contains(&name) => Some(name.to_ascii_uppercase()),
        // `CURRENT_TIMESTAMP(3)`
        ("moment_round", [moment, digits]) if BARE.contains(&moment.to_ascii_lowercase().as_str()) => {
            Some(format!("{moment}({digits})"))
        }
        ("int8_fit", [number]) => Some(number.clone()),
        (name, [value, ..]) if UNSEEN.contains(&name) => Some(value.clone()),
        (name, [value]) if name.starts_with(function::CAST_PREFIX) => {
            let ty = name.strip_prefix(function::CAST_PREFIX)?;
            let ty = SqlType::all().find(|own| own.name().trim_matches('"') == ty)?;
            Some(format!("{}::{}", cast_operand(value), ty.sql_name()))
        }
        _ => by_meaning(name, arguments),
    }
}

/// A call of a function by what the table of functions says that it stands for.
fn by_meaning(name: &str, arguments: &[String]) -> Option<String> {
    let (names, meaning) = function::stands_for(name)?;
    let all = tokens(meaning);
    match (&all[..], arguments) {
        ([sign], [left, right]) if sign.kind == Kind::Sign => {
            return Some(format!("({} {meaning} {})", operand(left, 1), operand(right, 1)));
        }
        ([word], _) if word.kind == Kind::Word => {
            return Some(format!("{meaning}({})", arguments.join(", ")));
        }
        _ => {}
    }
    if names.len() != arguments.len() || !names.iter().all(|name| all.iter().any(|token| token.text == *name))
    {
        return None;
    }
    // An operator has operands, and a call of another function arguments.
    let is_call = all.get(1).is_some_and(|second| second.is_sign("("));
    let is_cast = all.get(1).is_some_and(|second| second.is_sign("::"));
    let part = |argument: &str| match (is_call, is_cast) {
        (true, _) => argument.to_owned(),
        (_, true) => cast_operand(argument),
        _ => operand(argument, 1),
    };
    let mut left: Vec<(&str, &String)> = names.iter().copied().zip(arguments).collect();
    let (mut out, mut end) = (String::new(), 0);
    for token in &all {
        out.push_str(&meaning[end..token.start]);
        end = token.end();
        match left.iter().position(|(name, _)| token.text == *name) {
            Some(at) => {
                let argument = left[at].1;
                out.push_str(&part(argument));
                // Of two arguments of one name each stands once.
                if left.iter().filter(|(name, _)| token.text == *name).count() > 1 {
                    left.remove(at);
                }
            }
            None => out.push_str(token.text),
        }
    }
    Some(if is_call || is_cast { out } else { format!("({out})") })
}

/// What is cast: PostgreSQL has parentheses around all but a literal.
fn cast_operand(text: &str) -> String {
    let is_name = text.starts_with(|first: char| first.is_alphabetic() || first == '"');
    let is_name = is_name && !text.eq_ignore_ascii_case("NULL");
    if is_name && tokens(text).len() == 1 { format!("({text})") } else { operand(text, 0) }
}

/// Whether a text is one cast, around which PostgreSQL shows no parentheses.
pub(crate) fn is_cast(text: &str) -> bool {
    let all = tokens(text);
    let Some(at) = all.iter().rposition(|token| token.is_sign("::")) else { return false };
    let is_type = all[at + 1..]
        .iter()
        .all(|token| matches!(token.kind, Kind::Word | Kind::Number) || "(),[]".contains(token.text));
    let is_enclosed = Words { all: &all }.closing(0, at).is_some_and(|close| close + 1 == at);
    is_type && (at == 1 || is_enclosed)
}

/// A part of a larger expression: a token, a call, what is in parentheses already, or else in them now.
/// `call`: how many tokens stand before the parentheses of a call.
fn operand(text: &str, call: usize) -> String {
    let all = tokens(text);
    let closes = |open: usize| {
        let close = Words { all: &all }.closing(open, all.len());
        close.is_some_and(|close| close + 1 == all.len())
    };
    let is_whole = all.len() == 1 || (0..=call).any(closes);
    if is_whole { text.to_owned() } else { format!("({text})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_ours_are_shown_as_what_they_stand_for() {
        for (kept, shown) in [
            ("CURRENT_DATE", "CURRENT_DATE"),
            ("localtimestamp()", "LOCALTIMESTAMP"),
            ("moment_round( CURRENT_TIMESTAMP, 3)", "CURRENT_TIMESTAMP(3)"),
            ("now()", "now()"),
            ("cast_date(now())", "(now())::date"),
            ("cast_int4(s) > 0", "(s)::integer > 0"),
            ("cast_int4('7')", "'7'::integer"),
            ("cast_text( NULL)", "NULL::text"),
            ("moment_plus( now(), '1 day')", "(now() + '1 day')"),
            ("zoned_text(now())", "(now())::text"),
            ("array_cat(a, json_array(1))", "(a || json_array(1))"),
            ("numeric_fit(a, 10, 2)", "(a)::numeric(10, 2)"),
            ("numeric_abs( a)", "abs(a)"),
            ("lower( upper(cast_varchar(s)))", "lower(upper((s)::character varying))"),
            ("s LIKE ilike_pattern( 'a%') AND s REGEXP  '^a'", "s ILIKE 'a%' AND s ~ '^a'"),
            ("'cast_date(now())' || \"now\"", "'cast_date(now())' || \"now\""),
            ("timezone('utc', now())", "(now() AT TIME ZONE 'utc')"),
        ] {
            assert_eq!(in_postgresqls_words(kept), shown, "{kept}");
        }
    }

    #[test]
    fn a_cast_is_told_from_what_has_one_in_it() {
        for (text, is) in [
            ("(now())::date", true),
            ("'1'::numeric(10, 2)", true),
            ("NULL::character varying", true),
            ("a + '1'::int", false),
            ("(a)::int + (b)::int", false),
            ("'1'::int + 2", false),
            ("now()", false),
        ] {
            assert_eq!(is_cast(text), is, "{text}");
        }
    }
}
