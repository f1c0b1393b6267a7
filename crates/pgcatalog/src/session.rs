//! What the catalogue shows of the session that asks.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Who speaks in a session, as the system tables tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The number by which a cancel request names the session.
    pub pid: i32,
    /// The user that the client named.
    pub user: String,
    /// The database that the client named; there is one, called as everybody likes.
    pub database: String,
}

impl Default for Identity {
    fn default() -> Self {
        Self { pid: 0, user: "sqlcached".to_owned(), database: "sqlcached".to_owned() }
    }
}

/// What a session set, by the names of settings as they are shown.
pub type OwnSettings = BTreeMap<&'static str, String>;

/// Whose statement it is that asks.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'s> {
    /// Who.
    pub identity: &'s Arc<Identity>,
    /// What the session set.
    pub settings: &'s Arc<OwnSettings>,
    /// The session outlives the statement, so it can do what functions ask.
    pub lasting: bool,
}
