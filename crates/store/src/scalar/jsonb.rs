//! The one text of each value of type `jsonb`: without blanks, each key once and the shortest first, numbers without an
//! exponent. So equal values are equal texts.

use std::borrow::Cow;
use std::ops::Range;

use super::numeric;
use crate::limits::JSONB_EXPONENT_MAX;

/// The text of a valid JSON value in that form.
pub fn canonical(json: &str) -> String {
    let mut reader = Reader { json, at: 0, out: String::with_capacity(json.len()) };
    reader.value();
    reader.out
}

/// A text that is the same for two values of which PostgreSQL says that they are equal: their numbers may have
/// different zeros at the end. The text is in canonical form.
pub fn comparable(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut in_string, mut escaped, mut number) = (false, false, 0..0);
    for c in json.chars().chain([' ']) {
        let digit = !in_string && (c.is_ascii_digit() || c == '.');
        if !digit {
            if number.end > number.start && out[number.clone()].contains('.') {
                out.truncate(out.trim_end_matches('0').trim_end_matches('.').len());
            }
            number = 0..0;
        } else if number.is_empty() {
            number = out.len()..out.len();
        }
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else {
            in_string = c == '"';
        }
        out.push(c);
        if digit {
            number.end = out.len();
        }
    }
    out.pop();
    out
}

/// With a blank behind each colon and comma, as PostgreSQL shows it. The text is in canonical form.
pub fn spaced(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 4);
    let (mut in_string, mut escaped) = (false, false);
    for c in json.chars() {
        out.push(c);
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else {
            in_string = c == '"';
            if matches!(c, ',' | ':') {
                out.push(' ');
            }
        }
    }
    out
}

struct Reader<'j> {
    json: &'j str,
    at: usize,
    out: String,
}

/// A member of an object: its key, and where its text is in what was written.
struct Member<'j> {
    key: Cow<'j, str>,
    text: Range<usize>,
}

impl<'j> Reader<'j> {
    fn byte(&self) -> u8 {
        self.json.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn skip_blanks(&mut self) {
        while self.byte().is_ascii_whitespace() {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let there = self.byte() == byte;
        self.at += usize::from(there);
        there
    }

    /// One value. The levels are bounded by who checked the text.
    fn value(&mut self) {
        self.skip_blanks();
        match self.byte() {
            b'{' => self.object(),
            b'[' => self.array(),
            b'"' => {
                let text = self.string();
                self.write_string(text);
            }
            _ => {
                let rest = &self.json[self.at..];
                let is_end = |c: char| matches!(c, ',' | ']' | '}') || c.is_ascii_whitespace();
                let word = &rest[..rest.find(is_end).unwrap_or(rest.len())];
                self.at += word.len();
                self.out.push_str(&plain(word));
            }
        }
    }

    fn array(&mut self) {
        self.at += 1;
        self.out.push('[');
        let mut first = true;
        while !self.take(b']') && self.at < self.json.len() {
            if !first {
                self.take(b',');
                self.out.push(',');
            }
            first = false;
            self.value();
        }
        self.out.push(']');
    }

    fn object(&mut self) {
        self.at += 1;
        let begin = self.out.len();
        let mut members: Vec<Member<'j>> = Vec::new();
        while !self.take(b'}') && self.at < self.json.len() {
            self.take(b',');
            self.skip_blanks();
            let raw = self.string();
            let start = self.out.len();
            self.write_string(raw);
            self.out.push(':');
            self.take(b':');
            self.value();
            members.push(Member { key: decoded(raw), text: start..self.out.len() });
        }
        self.write_members(begin, members);
    }

    /// Puts the members, which were written behind this place, in their order. Of equal keys the last one counts.
    fn write_members(&mut self, begin: usize, mut members: Vec<Member<'j>>) {
        let order = |member: &Member<'j>| (member.key.len(), member.key.clone());
        members.sort_by_key(order);
        let mut kept: Vec<Member<'j>> = Vec::with_capacity(members.len());
        for member in members {
            if kept.last().is_some_and(|last| last.key == member.key) {
                kept.pop();
            }
            kept.push(member);
        }
        let mut sorted = String::with_capacity(self.out.len() - begin + 2 + kept.len());
        sorted.push('{');
        for (at, member) in kept.iter().enumerate() {
            if at > 0 {
                sorted.push(',');
            }
            sorted.push_str(&self.out[member.text.clone()]);
        }
        sorted.push('}');
        self.out.truncate(begin);
        self.out.push_str(&sorted);
    }

    /// A text with its quotes.
    fn string(&mut self) -> &'j str {
        let rest = &self.json[self.at..];
        let mut escaped = false;
        let end = rest.bytes().skip(1).position(|byte| {
            let ends = !escaped && byte == b'"';
            escaped = !escaped && byte == b'\\';
            ends
        });
        let length = end.map_or(rest.len(), |end| end + 2);
        self.at += length;
        &rest[..length]
    }

    /// A text with escapes where they are needed alone.
    fn write_string(&mut self, raw: &str) {
        if !raw.contains('\\') {
            self.out.push_str(raw);
            return;
        }
        self.out.push_str(&serde_json::Value::from(decoded(raw)).to_string());
    }
}

fn decoded(raw: &str) -> Cow<'_, str> {
    if raw.contains('\\') {
        return Cow::Owned(serde_json::from_str(raw).unwrap_or_default());
    }
    Cow::Borrowed(raw.trim_matches('"'))
}

/// A number without an exponent; anything else as it is.
fn plain(word: &str) -> Cow<'_, str> {
    let number = word.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let exponent = word.split_once(['e', 'E']).map(|(_, exponent)| exponent.parse::<i64>());
    let bounded = matches!(exponent, Some(Ok(exponent)) if exponent.abs() <= JSONB_EXPONENT_MAX);
    let zero = word.starts_with('-') && !word.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if !number || !(bounded || (zero && exponent.is_none())) {
        return Cow::Borrowed(word);
    }
    numeric::parse(word).map_or(Cow::Borrowed(word), |number| Cow::Owned(numeric::text(&number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_equal_texts() {
        for (given, found) in [
            (r#" { "b" : 1, "aa": [ 1 , 2.50 ], "a":null } "#, r#"{"a":null,"b":1,"aa":[1,2.50]}"#),
            (r#"{"a":1,"b":{"d":1,"c":2},"a":3}"#, r#"{"a":3,"b":{"c":2,"d":1}}"#),
            (r#""x\u0041\n\/\u00e9""#, "\"xA\\n/\u{e9}\""),
            (r"[1e2, -1.5E-2, 1.0, 0, -0, true]", "[100,-0.015,1.0,0,0,true]"),
            (r#"{"\u0061":1,"a":2}"#, r#"{"a":2}"#),
            ("[]", "[]"),
            ("{}", "{}"),
            (r#"{"a,b:":"c,d:"}"#, r#"{"a,b:":"c,d:"}"#),
        ] {
            assert_eq!(canonical(given), found);
            assert_eq!(canonical(&canonical(given)), found);
            assert_eq!(canonical(&spaced(found)), found);
        }
        assert_eq!(spaced(r#"{"a":[1,2],"b,":"c:"}"#), r#"{"a": [1, 2], "b,": "c:"}"#);
    }
}
