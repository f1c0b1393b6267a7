//! The users of memcached's own authentication (`-Y FILE`): a line `user:password` for each.

use std::collections::BTreeMap;

use crate::file::FileError;
use crate::limits::{FILE_BYTES_MAX, ROLES_MAX};
use crate::random;
use crate::verifier::{Key, Verifier};

/// Who may use memcached's protocols, all of them with all rights, as in memcached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users {
    by_name: BTreeMap<String, Verifier>,
    /// Makes the salts of users that do not exist.
    secret: Key,
}

impl Users {
    /// Reads a file. Empty lines and those that begin with `#` say nothing.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        if text.len() > FILE_BYTES_MAX {
            return Err(FileError { line: 1, message: format!("longer than {FILE_BYTES_MAX} bytes") });
        }
        let mut users = Self { by_name: BTreeMap::new(), secret: random() };
        for (line, text) in (1..).zip(text.lines()) {
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let fails = |message: &str| FileError { line, message: message.to_owned() };
            let (name, password) = text.split_once(':').ok_or_else(|| fails("expected user:password"))?;
            if name.is_empty() || name.contains(' ') || password.is_empty() {
                return Err(fails("user and password have at least one character, and a user has no blank"));
            }
            if users.by_name.len() >= ROLES_MAX {
                return Err(fails("too many users"));
            }
            users.by_name.insert(name.to_owned(), Verifier::derive(password));
        }
        if users.by_name.is_empty() {
            return Err(FileError { line: 1, message: "there is no user in it".to_owned() });
        }
        Ok(users)
    }

    pub(crate) fn verifier_of(&self, name: &str) -> Option<&Verifier> {
        self.by_name.get(name)
    }

    /// What a user gets that does not exist: nobody learns which do.
    pub(crate) fn mock(&self, name: &str) -> Verifier {
        Verifier::mock(&self.secret, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file() {
        let users = Users::parse("# us\n\nme:a:b\nyou:x\n").unwrap();
        assert!(users.verifier_of("me").unwrap().is_of("a:b"));
        assert!(users.verifier_of("they").is_none());
        for (text, line) in [("", 1), ("a:b\nc", 2), ("a:", 1), (":b", 1), ("a b:c", 1)] {
            assert_eq!(Users::parse(text).unwrap_err().line, line, "{text}");
        }
    }
}
