//! A text as tokens: PostgreSQL's strings, operators and subscripts, and SQLite's where they do not differ.

use store::value::Value;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A keyword or a bare name.
    Word,
    /// A name in quotes of any sort.
    Quoted,
    /// A plain text literal.
    Text,
    /// `E'..'`, `U&'..'` or `$$..$$`, or a text that goes on behind a line break: SQLite spells it otherwise.
    Foreign,
    /// `x'..'`
    Blob,
    /// A number.
    Number,
    /// `?`, `?1`, `$1`, `:name`, `@name`
    Parameter,
    /// An operator or a sign.
    Sign,
}

/// A token with the blanks and comments before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// As written.
    pub text: &'a str,
    /// Where it begins, in bytes.
    pub start: usize,
    /// Whether something stands between it and the token before.
    pub apart: bool,
}

impl Token<'_> {
    /// Whether it is this keyword (given in any case).
    pub fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Whether it is one of these keywords.
    pub fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    /// Whether it is this sign.
    pub fn is_sign(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }

    /// Where it ends, in bytes.
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// Operators of several characters, the longest first.
const OPERATORS: &[&str] = &[
    "!~~*", "!~~", "!~*", "~~*", "#>>", "->>", "::", "->", "#>", "@>", "<@", "#-", "!~", "~~", "~*", "||",
    "<>", "!=", "<=", ">=", "==", "=>", ":=", "<<", ">>", "&&", "@@",
];

/// The characters of these behind their first.
const IN_OPERATORS: &[u8] = b"~*>:@-|=<&";

/// The tokens of a text; blanks and comments are skipped. An unfinished literal reaches to the end: the parser will
/// refuse it.
#[derive(Clone, Debug)]
pub struct Tokens<'a> {
    sql: &'a str,
    at: usize,
    before: Option<Token<'a>>,
}

impl<'a> Tokens<'a> {
    /// The tokens of this text.
    pub fn new(sql: &'a str) -> Self {
        Self { sql, at: 0, before: None }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let start = skip_blanks(self.sql, self.at);
        if start >= self.sql.len() {
            self.at = start;
            return None;
        }
        let apart = start > self.at;
        let (kind, length) = one(self.sql, start, self.before.as_ref(), apart || self.before.is_none());
        // Every token ends before an ASCII byte, or with the text.
        let text = self.sql.get(start..start + length).unwrap_or_else(|| &self.sql[start..]);
        self.at = start + text.len();
        self.before = Some(Token { kind, text, start, apart });
        self.before
    }
}

/// All tokens of a text.
pub fn tokens(sql: &str) -> Vec<Token<'_>> {
    let mut found = Vec::with_capacity(sql.len() / 4);
    found.extend(Tokens::new(sql));
    found
}

fn skip_blanks(sql: &str, mut at: usize) -> usize {
    let bytes = sql.as_bytes();
    loop {
        at += bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        match &bytes[at..] {
            [b'-', b'-', rest @ ..] => {
                at += 2 + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            }
            [b'/', b'*', rest @ ..] => {
                let end = rest.windows(2).position(|pair| pair == b"*/");
                at += 2 + end.map_or(rest.len(), |end| end + 2);
            }
            _ => return at,
        }
    }
}

fn one(sql: &str, start: usize, before: Option<&Token<'_>>, apart: bool) -> (Kind, usize) {
    let rest = &sql.as_bytes()[start..];
    let next = rest.get(1).copied().unwrap_or(0);
    match rest[0] {
        b'\'' => {
            let first = quoted(rest, b'\'');
            let all = continued(rest, first, |part| quoted(part, b'\''));
            (if all > first { Kind::Foreign } else { Kind::Text }, all)
        }
        b'e' | b'E' if next == b'\'' => (Kind::Foreign, continued(rest, 1 + escaped(&rest[1..]), escaped)),
        b'u' | b'U' if rest[1..].starts_with(b"&'") => {
            let first = 2 + quoted(&rest[2..], b'\'');
            (Kind::Foreign, continued(rest, first, |part| quoted(part, b'\'')))
        }
        b'x' | b'X' if next == b'\'' => (Kind::Blob, 1 + quoted(&rest[1..], b'\'')),
        quote @ (b'"' | b'`') => (Kind::Quoted, quoted(rest, quote)),
        b'[' if !subscripts(before, apart) => {
            (Kind::Quoted, rest.iter().position(|&byte| byte == b']').map_or(rest.len(), |at| at + 1))
        }
        b'?' if let Some(length) = asks_for_key(rest, before) => (Kind::Sign, length),
        b'?' => (Kind::Parameter, 1 + rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count()),
        b'$' => dollar(rest),
        // `[1:2]`, where a parameter would stand behind a number.
        b':' if next.is_ascii_digit() && before.is_some_and(|before| before.kind == Kind::Number) => {
            (Kind::Sign, 1)
        }
        b':' | b'@' if in_word(next) => (Kind::Parameter, 1 + word(&rest[1..])),
        b'0'..=b'9' => (Kind::Number, number(rest)),
        b'.' if next.is_ascii_digit() => (Kind::Number, number(rest)),
        byte if in_word(byte) => (Kind::Word, word(rest)),
        // Nothing longer begins with these.
        b'(' | b')' | b',' | b';' | b'.' | b'[' | b']' | b'+' | b'*' | b'/' | b'%' => (Kind::Sign, 1),
        // Behind the first character of an operator of several stands another one that no operand begins with.
        _ if !IN_OPERATORS.contains(&next) => (Kind::Sign, 1),
        _ => {
            (Kind::Sign, OPERATORS.iter().find(|op| rest.starts_with(op.as_bytes())).map_or(1, |op| op.len()))
        }
    }
}

/// Words behind which an operand stands: there `?` is a parameter.
const BEFORE_OPERANDS: &[&str] = &[
    "SELECT",
    "DISTINCT",
    "ALL",
    "WHERE",
    "AND",
    "OR",
    "NOT",
    "ON",
    "HAVING",
    "WHEN",
    "THEN",
    "ELSE",
    "CASE",
    "BY",
    "IN",
    "LIKE",
    "ILIKE",
    "BETWEEN",
    "RETURNING",
    "LIMIT",
    "OFFSET",
    "VALUES",
    "SET",
    "IS",
    "FROM",
    "ESCAPE",
];

/// The length of `?`, `?|` or `?&` where it is an operator of `jsonb`: between two operands, of which the second is a
/// text, a parameter, an array or something in brackets. No operand stands behind a parameter.
fn asks_for_key(rest: &[u8], before: Option<&Token<'_>>) -> Option<usize> {
    let before = before?;
    let operand = match before.kind {
        Kind::Word => !before.is_any(BEFORE_OPERANDS),
        Kind::Sign => before.is_sign(")") || before.is_sign("]"),
        _ => true,
    };
    let length = if matches!(rest.get(1), Some(b'|' | b'&')) { 2 } else { 1 };
    let behind = rest.get(length..)?.trim_ascii_start();
    let operand_behind = matches!(behind.first(), Some(b'\'' | b'$' | b'?' | b'('))
        || behind.get(..5).is_some_and(|word| word.eq_ignore_ascii_case(b"ARRAY"));
    (operand && operand_behind).then_some(length)
}

/// Whether `[` here begins a subscript or an array rather than a name in brackets.
fn subscripts(before: Option<&Token<'_>>, apart: bool) -> bool {
    let Some(before) = before else { return false };
    if before.is("ARRAY") || before.is_sign("[") {
        return true;
    }
    let operand = matches!(before.kind, Kind::Word | Kind::Quoted | Kind::Parameter)
        || before.is_sign(")")
        || before.is_sign("]");
    operand && !apart
}

/// `$1`, `$name` or `$tag$ ... $tag$`
fn dollar(rest: &[u8]) -> (Kind, usize) {
    let tag = 1 + rest[1..].iter().take_while(|&&byte| in_word(byte) && byte != b'$').count();
    let is_tag = rest.get(tag) == Some(&b'$') && !rest.get(1).is_some_and(u8::is_ascii_digit);
    if !is_tag {
        return if tag == 1 { (Kind::Sign, 1) } else { (Kind::Parameter, tag) };
    }
    let open = &rest[..=tag];
    let body = &rest[open.len()..];
    let end = body.windows(open.len()).position(|window| window == open);
    (Kind::Foreign, end.map_or(rest.len(), |end| end + 2 * open.len()))
}

/// Whether a byte may stand in a word.
#[inline]
pub fn in_word(byte: u8) -> bool {
    IN_WORD[usize::from(byte)]
}

/// Looked up, because every byte of every text is asked for.
static IN_WORD: [bool; 256] = {
    let mut all = [false; 256];
    let mut byte = 0u8;
    loop {
        all[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80;
        if byte == u8::MAX {
            break all;
        }
        byte += 1;
    }
};

/// How long the word at the beginning is.
pub fn word(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|&&byte| in_word(byte)).count()
}

/// Digits, letters and points, and a sign after an exponent's `e`.
pub fn number(bytes: &[u8]) -> usize {
    let hexadecimal = matches!(bytes, [b'0', b'x' | b'X', ..]);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let exponent = !hexadecimal && matches!(byte, b'e' | b'E');
        if exponent && matches!(bytes.get(at + 1), Some(b'+' | b'-')) {
            at += 2;
        } else if byte == b'.' || in_word(byte) {
            at += 1;
        } else {
            break;
        }
    }
    at
}

/// A name without its quotes.
pub fn unquoted(name: &str) -> String {
    let (quote, close) = match name.as_bytes().first() {
        Some(b'"') => ('"', '"'),
        Some(b'`') => ('`', '`'),
        Some(b'\'') => ('\'', '\''),
        Some(b'[') => ('[', ']'),
        _ => return name.to_owned(),
    };
    let inner = name.strip_prefix(quote).unwrap_or(name);
    let inner = inner.strip_suffix(close).unwrap_or(inner);
    if quote == '[' {
        inner.to_owned()
    } else {
        inner.replace(&format!("{quote}{quote}"), &quote.to_string())
    }
}

/// A name in double quotes, as SQL takes any name.
pub fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A value as SQL spells it.
pub fn sql_literal(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(integer) => integer.to_string(),
        // A literal beyond the greatest float is the infinite one.
        Value::Real(real) if real.is_infinite() => if *real > 0.0 { "9e999" } else { "-9e999" }.to_owned(),
        Value::Real(real) => format!("{real:?}"),
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Blob(bytes) => {
            let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("x'{}'", digits.concat())
        }
    }
}

/// The length of a literal that starts with this quote; a doubled quote stands for itself.
pub fn quoted(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(found) = memchr::memchr(quote, &bytes[at..]) {
        at += found + 1;
        if bytes.get(at) != Some(&quote) {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

/// The same where a backslash takes the next character's meaning away.
fn escaped(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'\'' if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            b'\'' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Where a literal ends that goes on in quotes behind a line break, with nothing but blanks and comments between, once
/// or more often. `end`: where its first part does; `length`: that of a part.
fn continued(bytes: &[u8], end: usize, length: impl Fn(&[u8]) -> usize) -> usize {
    let mut end = end;
    while let Some(next) = next_part(bytes, end) {
        end = next + length(&bytes[next..]);
    }
    end
}

/// Where the part begins that continues a literal which ended before `end`.
fn next_part(bytes: &[u8], end: usize) -> Option<usize> {
    let (mut at, mut broken) = (end, false);
    loop {
        match bytes.get(at)? {
            b'\n' | b'\r' => (at, broken) = (at + 1, true),
            b' ' | b'\t' | b'\x0c' => at += 1,
            b'-' if bytes.get(at + 1) == Some(&b'-') => {
                at += memchr::memchr2(b'\n', b'\r', &bytes[at..])?;
            }
            b'\'' if broken => return Some(at),
            _ => return None,
        }
    }
}

/// The text that a literal stands for; `None` for a malformed one.
pub fn text_of(token: &Token<'_>) -> Option<String> {
    let text = token.text;
    let plain = |part: &str| Some(part.replace("''", "'"));
    match text.as_bytes().first()? {
        b'\'' => of_parts(text, 0, |part| quoted(part, b'\''), plain),
        b'e' | b'E' => of_parts(text, 1, escaped, unescaped),
        b'u' | b'U' => {
            of_parts(text, 2, |part| quoted(part, b'\''), |part| unicode(&part.replace("''", "'")))
        }
        b'$' => {
            let tag = text[1..].find('$')? + 2;
            Some(text.get(tag..text.len().checked_sub(tag)?)?.to_owned())
        }
        _ => None,
    }
}

/// The text of all parts of a literal, of which the first has its quote at a place. `length`: that of a part with its
/// quotes; `meaning`: what is within them.
fn of_parts(
    text: &str,
    quote: usize,
    length: impl Fn(&[u8]) -> usize,
    meaning: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let (mut whole, mut next) = (String::new(), Some(quote));
    while let Some(start) = next {
        let end = start + length(&text.as_bytes()[start..]);
        whole.push_str(&meaning(text.get(start + 1..end)?.strip_suffix('\'')?)?);
        next = next_part(text.as_bytes(), end);
    }
    Some(whole)
}

/// The body of `E'..'`.
fn unescaped(body: &str) -> Option<String> {
    let mut out: Vec<u8> = Vec::with_capacity(body.len());
    let mut rest = body.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        match first {
            b'\'' => {
                rest = rest.strip_prefix(b"'").unwrap_or(rest);
                out.push(b'\'');
            }
            b'\\' => rest = escape(rest, &mut out)?,
            other => out.push(*other),
        }
    }
    String::from_utf8(out).ok().filter(|text| !text.contains('\0'))
}

/// What follows a backslash; returns what is behind it.
fn escape<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (&first, behind) = rest.split_first()?;
    let digits = |from: &'a [u8], most: usize, radix: u32| {
        let count = from.iter().take(most).take_while(|byte| char::from(**byte).is_digit(radix)).count();
        let text = std::str::from_utf8(&from[..count]).ok()?;
        Some((u32::from_str_radix(text, radix).ok()?, &from[count..]))
    };
    let (byte, behind) = match first {
        b'b' => (8, behind),
        b'f' => (12, behind),
        b'n' => (b'\n', behind),
        b'r' => (b'\r', behind),
        b't' => (b'\t', behind),
        b'0'..=b'7' => {
            let (byte, behind) = digits(rest, 3, 8)?;
            (u8::try_from(byte).ok()?, behind)
        }
        b'x' if behind.first().is_some_and(u8::is_ascii_hexdigit) => {
            let (byte, behind) = digits(behind, 2, 16)?;
            (u8::try_from(byte).ok()?, behind)
        }
        b'u' | b'U' => {
            let (code, after) = digits(behind, if first == b'u' { 4 } else { 8 }, 16)?;
            let mut utf8 = [0; 4];
            out.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut utf8).as_bytes());
            return Some(after);
        }
        other => (other, behind),
    };
    out.push(byte);
    Some(behind)
}

/// The body of `U&'..'`: `\0061` and `\+000061` are characters.
fn unicode(body: &str) -> Option<String> {
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some((before, behind)) = rest.split_once('\\') {
        out.push_str(before);
        if let Some(behind) = behind.strip_prefix('\\') {
            out.push('\\');
            rest = behind;
            continue;
        }
        let (digits, length) = match behind.strip_prefix('+') {
            Some(digits) => (digits.get(..6)?, 7),
            None => (behind.get(..4)?, 4),
        };
        out.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
        rest = &behind[length..];
    }
    out.push_str(rest);
    Some(out).filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sql: &str) -> Vec<(Kind, &str)> {
        tokens(sql).iter().map(|token| (token.kind, token.text)).collect()
    }

    #[test]
    fn tokens_of_postgresql() {
        use Kind::{Foreign, Number, Parameter, Quoted, Sign, Text, Word};
        assert_eq!(
            texts("a::int[] [b] $1 $$x'y$$ $t$ $$ $t$ E'it\\'s' -- c\n a!~*'b' 1=-1"),
            [
                (Word, "a"),
                (Sign, "::"),
                (Word, "int"),
                (Sign, "["),
                (Sign, "]"),
                (Quoted, "[b]"),
                (Parameter, "$1"),
                (Foreign, "$$x'y$$"),
                (Foreign, "$t$ $$ $t$"),
                (Foreign, "E'it\\'s'"),
                (Word, "a"),
                (Sign, "!~*"),
                (Text, "'b'"),
                (Number, "1"),
                (Sign, "="),
                (Sign, "-"),
                (Number, "1"),
            ]
        );
    }

    #[test]
    fn texts_mean_what_postgresql_reads() {
        for (literal, text) in [
            ("'it''s'", Some("it's")),
            ("E'a\\n\\x41\\101\\u00e9\\\\'''", Some("a\nAA\u{e9}\\'")),
            ("U&'\\0061\\+000062\\\\'", Some("ab\\")),
            ("$$it's$$", Some("it's")),
            ("$q$a$$b$q$", Some("a$$b")),
            ("E'\\0'", None),
            ("U&'\\zzzz'", None),
            ("'foo'\n'bar'", Some("foobar")),
            ("'it''s' -- why\r\n\t-- so\n 'x'\n''", Some("it'sx")),
            ("E'a\\n'\n'b\\t'", Some("a\nb\t")),
            ("U&'\\0061'\n'\\0062'", Some("ab")),
            ("'foo'\n'bar", None),
        ] {
            let all = tokens(literal);
            assert_eq!(all.len(), 1, "{literal}");
            assert_eq!(text_of(&all[0]).as_deref(), text, "{literal}");
        }
        for apart in
            ["'a' 'b'", "'a' -- b\n, 'c'", "'a'\n\"b\"", "$$a$$\n'b'", "'a'\n/* c */'b'", "'a' -- 'b'"]
        {
            assert!(tokens(apart)[0].text.ends_with(['a', '\'', '$']), "{apart}");
            assert_eq!(text_of(&tokens(apart)[0]).as_deref(), Some("a"), "{apart}");
        }
    }

    #[test]
    fn names_lose_their_quotes() {
        for (written, name) in
            [("a", "a"), ("\"a\"\"b\"", "a\"b"), ("`a`", "a"), ("[a b]", "a b"), ("'a'", "a")]
        {
            assert_eq!(unquoted(written), name);
        }
        assert_eq!(quoted_name("a\"b"), "\"a\"\"b\"");
    }

    #[test]
    fn tokens_of_sqlite() {
        use Kind::{Blob, Number, Parameter, Quoted, Sign, Text, Word};
        assert_eq!(
            texts("a1 \"b\"\"c\" 'it''s' x'00' 1.5e-3 .5 0xAF ?2 $1 :n [a b] `c` -- c\n/* d */<"),
            [
                (Word, "a1"),
                (Quoted, "\"b\"\"c\""),
                (Text, "'it''s'"),
                (Blob, "x'00'"),
                (Number, "1.5e-3"),
                (Number, ".5"),
                (Number, "0xAF"),
                (Parameter, "?2"),
                (Parameter, "$1"),
                (Parameter, ":n"),
                (Quoted, "[a b]"),
                (Quoted, "`c`"),
                (Sign, "<"),
            ]
        );
        assert_eq!(texts("0xe-1").len(), 3);
        for operator in OPERATORS {
            assert_eq!(texts(operator), [(Sign, *operator)]);
        }
        assert_eq!(texts("'open"), [(Text, "'open")]);
        assert_eq!(texts("/* open"), []);
        assert_eq!(texts("\u{e9}t\u{e9}=?"), [(Word, "\u{e9}t\u{e9}"), (Sign, "="), (Parameter, "?")]);
    }
}
