//! The statements of an init file.

/// A statement with the line on which it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Statement<'t> {
    pub(super) line: usize,
    pub(super) text: &'t str,
}

impl Statement<'_> {
    /// Its first words in capitals, so many of them.
    pub(super) fn words(&self, count: usize) -> String {
        self.text.split_whitespace().take(count).collect::<Vec<_>>().join(" ").to_ascii_uppercase()
    }
}

/// Cuts a text at the semicolons that stand outside quotes and comments. Each piece comes with the line on which its
/// first word stands; pieces without a word are left out.
pub(super) fn statements(text: &str) -> Vec<Statement<'_>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let (mut at, mut begin) = (0, None);
    while at < bytes.len() {
        let next = skip(bytes, at);
        let is_comment = next > at + 1 && matches!(bytes[at], b'-' | b'/');
        match bytes[at] {
            b';' => {
                if let Some(begin) = begin.take() {
                    found.push((begin, at));
                }
            }
            byte if begin.is_none() && !byte.is_ascii_whitespace() && !is_comment => begin = Some(at),
            _ => {}
        }
        at = next;
    }
    if let Some(begin) = begin {
        found.push((begin, bytes.len()));
    }
    let line = |at: usize| 1 + text[..at].matches('\n').count();
    let statement =
        |(begin, end): (usize, usize)| Statement { line: line(begin), text: text[begin..end].trim_end() };
    found.into_iter().map(statement).collect()
}

/// The position after what begins at `at`: a comment, a quoted word, or one byte.
fn skip(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let after = |close: &[u8], from: usize| {
        let found = rest[from..].windows(close.len()).position(|window| window == close);
        at + found.map_or(rest.len(), |found| from + found + close.len())
    };
    match rest {
        [b'-', b'-', ..] => after(b"\n", 2),
        [b'/', b'*', ..] => after(b"*/", 2),
        [b'[', ..] => after(b"]", 1),
        // A doubled quote inside ends one word and begins the next, which comes to the same.
        [quote @ (b'\'' | b'"' | b'`'), ..] => after(&[*quote], 1),
        _ => at + 1,
    }
}

#[cfg(test)]
mod tests {
    fn statements(text: &str) -> Vec<(usize, &str)> {
        super::statements(text).iter().map(|own| (own.line, own.text)).collect()
    }

    #[test]
    fn semicolons_in_quotes_and_comments_do_not_count() {
        let text = "-- first; a comment\nCREATE TABLE a (x);\n\n/* ; */ INSERT INTO a VALUES ('it''s; fine'), (\";\");;\n SELECT [;]\n";
        assert_eq!(
            statements(text),
            [
                (2, "CREATE TABLE a (x)"),
                (4, "INSERT INTO a VALUES ('it''s; fine'), (\";\")"),
                (5, "SELECT [;]"),
            ]
        );
        assert!(statements(" ; -- nothing\n;/* open").is_empty());
        assert_eq!(statements("SELECT 'open"), [(1, "SELECT 'open")]);
    }
}
