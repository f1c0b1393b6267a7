//! What SQLite's grammar has no words for: storage parameters in PostgreSQL's syntax, and `TRUNCATE`.

use super::token::{Kind, Token, Tokens, unquoted};
use crate::error::{SqlError, state};

/// A table option and its text.
pub(crate) type Setting = (String, String);

/// `CREATE TABLE ... WITH (...)`: the text with the parameters blanked out, so that positions stay, and what they
/// say.
pub(crate) fn split_parameters(sql: &str) -> Result<(String, Vec<Setting>), SqlError> {
    let tokens: Vec<Token<'_>> = Tokens::new(sql).collect();
    let Some(at) = find_with(&tokens) else { return Ok((sql.to_owned(), Vec::new())) };
    let mut rest = Reader { sql, tokens: &tokens[at + 1..], at: 0 };
    let settings = rest.settings()?;
    let end = rest.tokens[rest.at - 1].end();
    let mut text = sql.to_owned();
    let start = tokens[at].start;
    text.replace_range(start..end, &" ".repeat(end - start));
    Ok((text, settings))
}

/// `WITH` outside all parentheses, followed by one.
fn find_with(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Sign if token.is_sign("(") => depth += 1,
            Kind::Sign if token.is_sign(")") => depth = depth.saturating_sub(1),
            Kind::Word if depth == 0 && token.is("WITH") && opens(tokens.get(at + 1)) => return Some(at),
            _ => {}
        }
    }
    None
}

fn opens(token: Option<&Token<'_>>) -> bool {
    token.is_some_and(|token| token.is_sign("("))
}

/// `TRUNCATE [TABLE] name [, name]*`
pub(crate) fn truncate(sql: &str) -> Result<Vec<String>, SqlError> {
    let tokens: Vec<Token<'_>> = Tokens::new(sql).collect();
    let mut reader = Reader { sql, tokens: &tokens, at: 0 };
    reader.skip_semicolons();
    reader.keyword("TRUNCATE")?;
    // A table may be called "table" in quotes only, so the word is the noise word.
    let _ = reader.keyword("TABLE");
    let mut names = vec![reader.table_name()?];
    while reader.sign(",").is_ok() {
        names.push(reader.table_name()?);
    }
    reader.end()?;
    Ok(names)
}

/// Reads tokens one after the other.
pub(crate) struct Reader<'t, 'a> {
    pub(crate) sql: &'a str,
    pub(crate) tokens: &'t [Token<'a>],
    pub(crate) at: usize,
}

impl<'t, 'a> Reader<'t, 'a> {
    pub(crate) fn new(sql: &'a str, tokens: &'t [Token<'a>]) -> Self {
        Self { sql, tokens, at: 0 }
    }

    pub(crate) fn peek(&self) -> Option<&Token<'a>> {
        self.tokens.get(self.at)
    }

    /// Whether a keyword or a bare name comes.
    pub(crate) fn at_word(&self) -> bool {
        self.peek().is_some_and(|token| token.kind == Kind::Word)
    }

    pub(crate) fn skip_semicolons(&mut self) {
        while self.sign(";").is_ok() {}
    }

    pub(crate) fn unexpected(&self) -> SqlError {
        match self.peek() {
            Some(token) => SqlError::syntax(self.sql, token),
            None => SqlError::new(state::SYNTAX, "syntax error at end of input").at(self.sql, self.sql.len()),
        }
    }

    fn take_if(&mut self, fits: impl FnOnce(&Token<'a>) -> bool) -> Result<Token<'a>, SqlError> {
        match self.peek().copied() {
            Some(token) if fits(&token) => {
                self.at += 1;
                Ok(token)
            }
            _ => Err(self.unexpected()),
        }
    }

    pub(crate) fn keyword(&mut self, word: &str) -> Result<(), SqlError> {
        self.take_if(|token| token.is(word)).map(|_| ())
    }

    pub(crate) fn sign(&mut self, sign: &str) -> Result<(), SqlError> {
        self.take_if(|token| token.is_sign(sign)).map(|_| ())
    }

    pub(crate) fn name(&mut self) -> Result<String, SqlError> {
        self.take_if(|token| matches!(token.kind, Kind::Word | Kind::Quoted))
            .map(|token| unquoted(token.text))
    }

    /// A table's name; the only schema is `main`.
    pub(crate) fn table_name(&mut self) -> Result<String, SqlError> {
        let name = self.name()?;
        if self.sign(".").is_err() {
            return Ok(name);
        }
        if !name.eq_ignore_ascii_case("main") {
            return Err(SqlError::new(state::UNKNOWN_SCHEMA, format!("schema \"{name}\" does not exist")));
        }
        self.name()
    }

    pub(crate) fn end(&mut self) -> Result<(), SqlError> {
        self.skip_semicolons();
        if self.peek().is_some() { Err(self.unexpected()) } else { Ok(()) }
    }

    /// `(name = value, name, ...)`
    pub(crate) fn settings(&mut self) -> Result<Vec<Setting>, SqlError> {
        self.sign("(")?;
        let mut settings = Vec::new();
        loop {
            let name = self.name()?;
            let value = if self.sign("=").is_ok() { self.setting_value()? } else { String::new() };
            settings.push((name, value));
            if self.sign(",").is_err() {
                break;
            }
        }
        self.sign(")")?;
        Ok(settings)
    }

    fn setting_value(&mut self) -> Result<String, SqlError> {
        let sign = if self.sign("-").is_ok() { "-" } else { "" };
        let token = self
            .take_if(|token| matches!(token.kind, Kind::Word | Kind::Quoted | Kind::Text | Kind::Number))?;
        Ok(format!("{sign}{}", unquoted(token.text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &str, value: &str) -> Setting {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn parameters_are_split_off() {
        let (text, settings) =
            split_parameters("CREATE TABLE t (a) WITH (ttl = '5 min', max_rows=10, ordered) ;").unwrap();
        assert_eq!(text.trim_end_matches([' ', ';']), "CREATE TABLE t (a)");
        assert_eq!(text.len(), "CREATE TABLE t (a) WITH (ttl = '5 min', max_rows=10, ordered) ;".len());
        assert_eq!(settings, [setting("ttl", "5 min"), setting("max_rows", "10"), setting("ordered", "")]);
        assert_eq!(split_parameters("CREATE TABLE t (a)").unwrap().1, []);
        assert_eq!(split_parameters("CREATE TABLE t (a) WITH (ttl = )").unwrap_err().position, Some(32));
        assert_eq!(split_parameters("CREATE TABLE t (a) WITH (").unwrap_err().state, "42601");
    }

    #[test]
    fn truncate_names_tables() {
        assert_eq!(truncate("TRUNCATE TABLE a, main.\"b\";").unwrap(), ["a", "b"]);
        assert_eq!(truncate("truncate a").unwrap(), ["a"]);
        assert_eq!(truncate("truncate a cascade").unwrap_err().position, Some(12));
    }
}
