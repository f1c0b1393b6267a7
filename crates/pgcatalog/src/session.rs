//! What the catalogue shows of the session that asks.

use std::collections::BTreeMap;
use std::sync::Arc;

pub use sqltext::role::Rights;
use store::definition::{Access, Grant, Privileges, TableDef, access};

use crate::numbers::Numbers;

/// Whom privileges are of: a role's rights, and the roles whose privileges it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// What it may do with every table.
    pub rights: Rights,
    /// Itself, and the roles that it inherits from.
    pub roles: Arc<[String]>,
}

impl Holder {
    /// A superuser.
    pub fn superuser() -> Self {
        Self { rights: Rights::ALL, roles: Arc::default() }
    }

    /// Somebody who was given nothing.
    pub fn nobody() -> Self {
        Self { rights: Rights::NONE, roles: Arc::default() }
    }

    /// Whether it is this role, or has its privileges.
    pub fn is(&self, role: &str) -> bool {
        self.roles.iter().any(|own| own == role)
    }

    /// Whether it may do with a table or view what its owner may.
    pub fn owns(&self, access: &Access) -> bool {
        self.rights.superuser || access.owner.as_deref().is_some_and(|owner| self.is(owner))
    }

    /// The privileges that it has on a table or view, and those that it may grant.
    pub fn on(&self, access: &Access) -> (Privileges, Privileges) {
        if self.rights.superuser {
            return (Privileges::EVERY, Privileges::EVERY);
        }
        let (held, grantable) = access.held(&|role| self.is(role));
        (held.and(self.rights.on_every_table()), grantable)
    }

    /// The privileges that it has on whole rows of a table: on all of it, or on each of its columns.
    pub fn on_rows(&self, def: &TableDef) -> Privileges {
        let (held, _) = self.on(&def.access);
        let columns = def.visible_columns().map(|(_, column)| self.on_column(&column.grants).0);
        held.and(columns.reduce(Privileges::among).unwrap_or_default())
    }

    /// The same of a column by what was granted of it alone.
    pub fn on_column(&self, grants: &[Grant]) -> (Privileges, Privileges) {
        access::held(grants, &|role| self.is(role))
    }
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
    /// What the acting role may do.
    pub rights: Rights,
    /// The roles whose privileges the acting role has.
    pub roles: Arc<[String]>,
    /// It applies the changes of a source, so it may write mirrors.
    pub is_source: bool,
}

impl Identity {
    /// Somebody who may do nothing yet.
    pub fn stranger() -> Self {
        Self { rights: Rights::NONE, ..Self::default() }
    }

    /// Whom privileges must be of.
    pub fn holder(&self) -> Holder {
        Holder { rights: self.rights, roles: Arc::clone(&self.roles) }
    }
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            pid: 0,
            user: "sqlcached".to_owned(),
            role: "sqlcached".to_owned(),
            database: "sqlcached".to_owned(),
            rights: Rights::ALL,
            roles: Arc::default(),
            is_source: false,
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
    /// What numbers of sequences it was given.
    pub numbers: &'s Arc<Numbers>,
    /// The session outlives the statement, so it can do what functions ask.
    pub lasting: bool,
}
