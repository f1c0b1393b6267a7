//! The file of the roles: the statements that make them, as `pg_dumpall --roles-only` writes them, and the secret.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use sqltext::token::Tokens;

use crate::limits::FILE_BYTES_MAX;
use crate::roles::Roles;
use crate::verifier::Key;

/// A mistake in a file of roles or rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// Its line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for FileError {}

/// What stands before the secret.
const SECRET: &str = "-- secret: ";

impl Roles {
    /// Reads a file. `SET`, which `pg_dumpall` writes too, says nothing here and is passed over.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        if text.len() > FILE_BYTES_MAX {
            return Err(FileError { line: 1, message: format!("longer than {FILE_BYTES_MAX} bytes") });
        }
        let mut roles = Self::new();
        if let Some(secret) = text.lines().find_map(|line| line.strip_prefix(SECRET)) {
            let key = BASE64.decode(secret.trim()).ok().and_then(|key| Key::try_from(key).ok());
            let line = line_of(text, text.find(SECRET).unwrap_or(0));
            roles.secret =
                key.ok_or_else(|| FileError { line, message: "the secret has 32 bytes in base64".into() })?;
        }
        for (start, statement) in statements(text) {
            let fails = |message: String| FileError { line: line_of(text, start), message };
            let mut words = Tokens::new(statement);
            let Some(first) = words.next() else { continue };
            if first.is("SET") {
                continue;
            }
            let read = sqltext::role::read(statement).map_err(|error| fails(error.message))?;
            let read = read.ok_or_else(|| fails("not a statement about roles".into()))?;
            roles = roles.after(&read, None).map_err(|error| fails(error.message))?;
        }
        Ok(roles)
    }

    /// The file's text.
    pub fn to_file(&self) -> String {
        format!(
            "-- The roles of sqlcached. The server writes this file; on SIGHUP it reads it again.\n{SECRET}{}\n{self}",
            BASE64.encode(self.secret)
        )
    }
}

/// The statements and where each begins.
fn statements(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut start = None;
    for token in Tokens::new(text) {
        if token.is_sign(";") {
            found.extend(start.take().map(|start| (start, &text[start..token.start])));
        } else {
            start.get_or_insert(token.start);
        }
    }
    found.extend(start.map(|start| (start, &text[start..])));
    found
}

fn line_of(text: &str, place: usize) -> usize {
    text[..place].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_makes_the_same_roles() {
        let text = "CREATE ROLE root SUPERUSER LOGIN PASSWORD 'a;b';\nSET client_encoding = 'UTF8';\n\
                    CREATE ROLE \"A b\" NOINHERIT CREATEROLE CONNECTION LIMIT 3 VALID UNTIL '2030-01-02 03:04:05+00';\n\
                    ALTER ROLE root WITH BYPASSRLS;\nGRANT root TO \"A b\" WITH ADMIN OPTION;\n\
                    GRANT pg_read_all_data TO \"A b\" GRANTED BY root;\n\
                    ALTER ROLE \"A b\" SET search_path TO 's', 'it''s';";
        let roles = Roles::parse(text).unwrap();
        assert!(roles.get("root").unwrap().verifier.as_ref().unwrap().is_of("a;b"));
        let again = Roles::parse(&roles.to_file()).unwrap();
        assert_eq!(again.to_file(), roles.to_file());
        assert_eq!(again, roles);
    }

    #[test]
    fn mistakes_are_named_by_line() {
        for (text, line) in [
            ("CREATE ROLE a;\n\nCREATE ROLE a;", 3),
            ("CREATE ROLE a;\nDROP TABLE t;", 2),
            ("\nGRANT a TO b", 2),
            ("CREATE ROLE a\nSUPER;", 1),
            ("CREATE ROLE a;\n-- secret: AAAA\n", 2),
            ("ALTER ROLE CURRENT_USER LOGIN", 1),
        ] {
            assert_eq!(Roles::parse(text).unwrap_err().line, line, "{text}");
        }
        assert!(Roles::parse(&" ".repeat(FILE_BYTES_MAX + 1)).is_err());
    }
}
