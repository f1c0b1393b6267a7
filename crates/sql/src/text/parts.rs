//! A statement whose common table expressions write, taken apart: `WITH moved AS (DELETE ... RETURNING *) INSERT ...`.

use super::token::{Kind, Token, tokens};

/// What a common table expression begins with that writes.
const VERBS: &[&str] = &["INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE"];

/// The parts of such a statement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    pub(crate) recursive: bool,
    pub(crate) commons: Vec<Common<'a>>,
    /// What stands behind them.
    pub(crate) main: Piece<'a>,
    /// The greatest number of a parameter.
    pub(crate) parameters: usize,
    /// All of them have a number.
    pub(crate) counted: bool,
}

/// A common table expression.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Common<'a> {
    pub(crate) name: &'a str,
    /// The names of its columns, in brackets.
    pub(crate) columns: Option<&'a str>,
    /// All of it.
    pub(crate) whole: &'a str,
    pub(crate) body: Piece<'a>,
    pub(crate) writes: bool,
    /// It has a `WITH` of its own.
    pub(crate) nested: bool,
}

/// A text and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) sql: &'a str,
    pub(crate) start: usize,
}

impl<'a> Parts<'a> {
    /// Those of a text; `None` where it is no such statement.
    pub(crate) fn of(sql: &'a str) -> Option<Self> {
        let tokens = tokens(sql);
        let mut reader = Reader { sql, tokens: &tokens, at: 0 };
        while reader.take(";") {}
        if !reader.take("WITH") {
            return None;
        }
        let recursive = reader.take("RECURSIVE");
        let mut commons = vec![reader.common()?];
        while reader.take(",") {
            commons.push(reader.common()?);
        }
        let (main, last) = (reader.token()?.start, tokens.iter().rfind(|token| !token.is_sign(";"))?);
        let main = Piece { sql: sql.get(main..last.end())?, start: main };
        let all = || tokens.iter().filter(|token| token.kind == Kind::Parameter);
        let number = |token: &Token<'_>| token.text.strip_prefix(['$', '?'])?.parse::<usize>().ok();
        let parameters = all().filter_map(number).max().unwrap_or(0);
        let counted = all().all(|token| number(token).is_some());
        let writes = commons.iter().any(|common| common.writes);
        writes.then_some(Self { recursive, commons, main, parameters, counted })
    }
}

struct Reader<'a, 't> {
    sql: &'a str,
    tokens: &'t [Token<'a>],
    at: usize,
}

impl<'a> Reader<'a, '_> {
    fn token(&self) -> Option<&Token<'a>> {
        self.tokens.get(self.at)
    }

    /// Takes a word or sign, if it is next.
    fn take(&mut self, text: &str) -> bool {
        let next = self.token().is_some_and(|token| token.is(text) || token.is_sign(text));
        self.at += usize::from(next);
        next
    }

    /// What stands in brackets, if they are next: where it begins and ends, brackets included.
    fn brackets(&mut self) -> Option<(usize, usize)> {
        let begin = self.token().filter(|token| token.is_sign("("))?.start;
        let mut depth = 0_usize;
        loop {
            let token = self.tokens.get(self.at)?;
            self.at += 1;
            if token.is_sign("(") {
                depth += 1;
            } else if token.is_sign(")") {
                depth -= 1;
            }
            if depth == 0 {
                return Some((begin, token.end()));
            }
        }
    }

    /// `name (columns) AS MATERIALIZED (body)`
    fn common(&mut self) -> Option<Common<'a>> {
        let (name, begin) = self.token().map(|token| (token.text, token.start))?;
        self.at += 1;
        let columns = self.brackets().and_then(|(begin, end)| self.sql.get(begin..end));
        if !self.take("AS") {
            return None;
        }
        self.take("NOT");
        self.take("MATERIALIZED");
        let first = self.tokens.get(self.at + 1)?;
        let (begins, nested, open) = (first.is_any(VERBS), first.is("WITH"), self.at);
        let (from, end) = self.brackets()?;
        let writes = begins || nested && has_verb(self.tokens.get(open + 1..self.at - 1)?);
        let body = Piece { sql: self.sql.get(from + 1..end - 1)?, start: from + 1 };
        Some(Common { name, columns, whole: self.sql.get(begin..end)?, body, writes, nested })
    }
}

/// Whether a query behind a `WITH` of its own writes: its verb stands outside all brackets.
fn has_verb(body: &[Token<'_>]) -> bool {
    let mut depth = 0_usize;
    body.iter().any(|token| {
        depth += usize::from(token.is_sign("("));
        depth = depth.saturating_sub(usize::from(token.is_sign(")")));
        depth == 0 && token.is_any(VERBS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_statement() {
        let sql = "WITH a (x, y) AS (SELECT ')', $2), \"b\" AS NOT MATERIALIZED (DELETE FROM t WHERE k IN (1, 2) \
                   RETURNING *) INSERT INTO u SELECT * FROM b WHERE c = $3;";
        let parts = Parts::of(sql).unwrap();
        assert_eq!((parts.recursive, parts.parameters, parts.commons.len()), (false, 3, 2));
        let [a, b] = &parts.commons[..] else { unreachable!() };
        assert_eq!(
            (a.name, a.columns, a.writes, a.whole),
            ("a", Some("(x, y)"), false, "a (x, y) AS (SELECT ')', $2)")
        );
        assert_eq!((b.name, b.columns, b.writes), ("\"b\"", None, true));
        assert_eq!(b.body.sql, "DELETE FROM t WHERE k IN (1, 2) RETURNING *");
        assert!(sql[b.body.start..].starts_with("DELETE"));
        assert_eq!(parts.main.sql, "INSERT INTO u SELECT * FROM b WHERE c = $3");
    }

    #[test]
    fn one_with_a_with_of_its_own_writes_too() {
        let parts = Parts::of("WITH a AS (WITH b AS (SELECT (1)) DELETE FROM t RETURNING k) SELECT * FROM a")
            .unwrap();
        assert!(parts.commons[0].writes && parts.commons[0].nested);
    }

    #[test]
    fn other_statements_have_none() {
        for sql in [
            "WITH a AS (SELECT 1) DELETE FROM t",
            "WITH delete AS (SELECT 1) SELECT * FROM delete",
            "WITH a AS (DELETE FROM t",
            "WITH a AS (WITH b AS (SELECT 1) SELECT * FROM b) SELECT * FROM a",
            "WITH a AS DELETE FROM t",
            "WITH",
            "",
            "DELETE FROM t",
        ] {
            assert_eq!(Parts::of(sql), None, "{sql}");
        }
    }
}
