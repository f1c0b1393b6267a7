//! What goes wrong with a source, and what to do about it.

use std::{fmt, io};

use engine::SqlError;

/// An error of a source: PostgreSQL's, the network's, or ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// SQLSTATE.
    pub(crate) state: String,
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: Option<String>,
}

impl Error {
    pub(crate) fn new(state: &str, message: impl Into<String>) -> Self {
        Self { state: state.to_owned(), message: message.into(), hint: None }
    }

    /// The connection is broken, or speaks another protocol.
    pub(crate) fn connection(message: impl Into<String>) -> Self {
        Self::new("08006", message)
    }

    /// Nobody said as whom a server is read.
    pub(crate) fn no_mapping(server: &str) -> Self {
        Self::new("42704", format!("user mapping not found for server \"{server}\"")).with_hint(format!(
            "CREATE USER MAPPING FOR PUBLIC SERVER {server} OPTIONS (user '...', password '...')"
        ))
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.state)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::connection(error.to_string())
    }
}

impl From<Error> for SqlError {
    fn from(error: Error) -> Self {
        // The states that this crate and PostgreSQL give here; any other is a failure of the source.
        const STATES: &[&str] = &[
            "08001", "08006", "08P01", "0A000", "22023", "25006", "28000", "28P01", "3D000", "42501",
            "42601", "42701", "42703", "42704", "42804", "42830", "42883", "428C9", "42P01", "42P02",
            "53300", "53400", "54000", "55000", "55006", "57014", "57P03", "HV00J",
        ];
        let known = STATES.iter().find(|known| **known == error.state).copied();
        let mut made = Self::new(known.unwrap_or("HV000"), error.message);
        if let Some(hint) = error.hint {
            made = made.with_hint(hint);
        }
        made
    }
}

/// An error of the cache's own.
#[expect(clippy::needless_pass_by_value, reason = "map_err hands it over so")]
pub(crate) fn of_cache(error: engine::SqlError) -> Error {
    Error::new(error.state, format!("invalidation failed: {}", error.message))
}
