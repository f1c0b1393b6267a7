//! What can go wrong, and what to do about it.

use std::fmt;
use std::io;

/// Why a request failed. A missing row is not an error.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The daemon's socket cannot be reached, or did not answer in time.
    Socket(io::Error),
    /// The daemon refused the request: `SERVER_ERROR` or `CLIENT_ERROR`, in its words.
    Refused(String),
    /// The statement failed.
    Sql {
        /// PostgreSQL's five characters.
        state: String,
        /// What is wrong.
        message: String,
    },
    /// The daemon answered what this client does not understand.
    Protocol(String),
    /// The key cannot be one of the table's, or not be sent.
    Key(String),
    /// There is no such table.
    NoTable(String),
    /// There is no such column.
    NoColumn(String),
    /// The table cannot be reached by key over the socket: it has no prefix and no primary key.
    Unreachable(String),
    /// The arena's file is not to be read from: it is another's, a link, or of another layout.
    Arena(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(error) => write!(f, "the daemon's socket: {error}"),
            Self::Refused(text) => write!(f, "the daemon refused: {text}"),
            Self::Sql { state, message } => write!(f, "{state}: {message}"),
            Self::Protocol(text) => write!(f, "the daemon's answer is not valid: {text}"),
            Self::Key(text) => write!(f, "key: {text}"),
            Self::NoTable(name) => write!(f, "table \"{name}\" does not exist"),
            Self::NoColumn(name) => write!(f, "column \"{name}\" does not exist"),
            Self::Unreachable(name) => {
                write!(f, "table \"{name}\" has neither prefix nor primary key: use SQL")
            }
            Self::Arena(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Socket(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}
