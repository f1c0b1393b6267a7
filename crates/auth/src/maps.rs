//! Which roles a user of the system, or the owner of a certificate, may have: lines in the form of PostgreSQL's
//! `pg_ident.conf`. Rules use them by `map=name`.
//!
//! ```text
//! # map    name that was proved  role
//! admins   alice                 chief
//! admins   bob                   chief
//! shop     CN=web,O=Shop         app
//! ```

use crate::file::FileError;
use crate::limits::{FILE_BYTES_MAX, RULES_MAX};
use crate::words::{Word, words};

/// All maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps {
    lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    map: String,
    /// The name that was proved.
    name: String,
    role: String,
}

impl Maps {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The first mistake.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        if text.len() > FILE_BYTES_MAX {
            return Err(FileError { line: 1, message: format!("longer than {FILE_BYTES_MAX} bytes") });
        }
        let mut lines = Vec::new();
        for (number, text) in (1..).zip(text.lines()) {
            let fails = |message| FileError { line: number, message };
            let words = words(text).map_err(fails)?;
            if !words.is_empty() {
                lines.push(line(&words).map_err(fails)?);
            }
            if lines.len() > RULES_MAX {
                return Err(fails(format!("more than {RULES_MAX} lines")));
            }
        }
        Ok(Self { lines })
    }

    /// Whether there is such a map.
    pub(crate) fn has(&self, map: &str) -> bool {
        self.lines.iter().any(|line| line.map == map)
    }

    /// Whether by a map somebody of this name may have a role.
    pub(crate) fn allows(&self, map: &str, name: &str, role: &str) -> bool {
        self.lines.iter().any(|line| line.map == map && line.name == name && line.role == role)
    }

    /// The roles that somebody of this name may have by any map.
    pub(crate) fn roles_of<'m>(&'m self, name: &'m str) -> impl Iterator<Item = &'m str> {
        self.lines.iter().filter(move |line| line.name == name).map(|line| line.role.as_str())
    }
}

fn line(words: &[Option<Word>]) -> Result<Line, String> {
    let [Some(map), Some(name), Some(role)] = words else {
        return Err("a line has a map, a name and a role".to_owned());
    };
    for word in [name, role] {
        let special = !word.quoted && (word.text.starts_with(['/', '+', '@']) || word.text == "all");
        if special {
            let text = &word.text;
            return Err(format!("'{text}': only names are supported, and no regular expressions or groups"));
        }
    }
    Ok(Line { map: map.text.clone(), name: name.text.clone(), role: role.text.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_roles() {
        let maps = Maps::parse("# one\nm alice chief\nm \"a b\" app # two\nother alice app\n").unwrap();
        assert!(maps.has("m") && maps.has("other") && !maps.has("alice"));
        for (map, name, role, expected) in [
            ("m", "alice", "chief", true),
            ("m", "a b", "app", true),
            ("m", "alice", "app", false),
            ("other", "alice", "app", true),
            ("other", "alice", "chief", false),
            ("m", "chief", "chief", false),
        ] {
            assert_eq!(maps.allows(map, name, role), expected, "{map} {name} {role}");
        }
        assert_eq!(maps.roles_of("alice").collect::<Vec<_>>(), ["chief", "app"]);
    }

    #[test]
    fn mistakes_are_named_by_line() {
        for wrong in [
            "m alice",
            "m alice chief app",
            "m /re chief",
            "m alice +chief",
            "m alice all",
            "m \"alice chief",
            "m, a b",
        ] {
            let error = Maps::parse(&format!("# one\n{wrong}\n")).unwrap_err();
            assert_eq!(error.line, 2, "{wrong}: {error}");
        }
    }
}
