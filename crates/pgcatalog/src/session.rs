//! What the catalogue shows of the session that asks.

use std::collections::BTreeMap;
use std::sync::Arc;

/// What a session may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Everything, definitions among it.
    pub superuser: bool,
    /// Reading every table.
    pub reads: bool,
    /// Writing every table.
    pub writes: bool,
    /// Seeing what other sessions do.
    pub monitors: bool,
    /// Stopping other sessions' statements.
    pub signals: bool,
}

impl Rights {
    /// Those of a superuser.
    pub const ALL: Self = Self { superuser: true, reads: true, writes: true, monitors: true, signals: true };

    /// Those of a role that was given nothing.
    pub const NONE: Self =
        Self { superuser: false, reads: false, writes: false, monitors: false, signals: false };
}

/// Who speaks in a session, as the system tables tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The number by which a cancel request names the session.
    pub pid: i32,
    /// The user that the client named.
    pub user: String,
    /// The role that acts: the user's own, or another one by `SET ROLE`.
    pub role: String,
    /// The database that the client named; there is one, called as everybody likes.
    pub database: String,
    /// What it may do.
    pub rights: Rights,
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            pid: 0,
            user: "sqlcached".to_owned(),
            role: "sqlcached".to_owned(),
            database: "sqlcached".to_owned(),
            rights: Rights::ALL,
        }
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
