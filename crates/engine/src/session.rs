//! One connection's identity, and the gate that every command passes.

use std::sync::Arc;

use auth::Authenticated;
use sql::{Identity, Rights};

use crate::access::AccessControl;
use crate::answer::Answer;
use crate::privilege::{Command, Privileges};

/// Who speaks on a connection and what they may do.
#[derive(Clone, Debug)]
pub struct Session {
    /// What the gate compares.
    may: Privileges,
    rights: Rights,
    /// Its role; nobody in particular has all rights.
    role: Option<Arc<str>>,
    /// The role that connected.
    login: Option<Arc<str>>,
    /// The version of the roles that the rights are of.
    version: u64,
}

impl Session {
    /// A session of this program's own, and of somebody on this machine where no roles are kept.
    pub fn local() -> Self {
        Self { may: Privileges::of(Rights::ALL), rights: Rights::ALL, role: None, login: None, version: 0 }
    }

    /// A session of somebody who has not proved anything.
    pub fn stranger() -> Self {
        let rights = Rights::NONE;
        Self { may: Privileges::NONE, rights, role: None, login: None, version: 0 }
    }

    /// A session of somebody who was let in.
    pub fn of(who: &Authenticated, access: &AccessControl) -> Self {
        let login: Option<Arc<str>> = who.role().map(Arc::from);
        let mut session = Self { role: login.clone(), login, ..Self::local() };
        session.take_rights(access, access.version());
        session
    }

    /// Acts by another role from now on, or by its own again (`SET ROLE`).
    pub(crate) fn set_role(&mut self, role: Option<&str>, access: &AccessControl) {
        if self.login.is_some() && role.is_none_or(|role| self.role() != Some(role)) {
            self.role = role.map(Arc::from).or_else(|| self.login.clone());
            self.take_rights(access, access.version());
        }
    }

    /// The role that connected.
    pub(crate) fn login(&self) -> Option<&str> {
        self.login.as_deref()
    }

    /// The role's name.
    pub fn role(&self) -> Option<&str> {
        self.role.as_deref()
    }

    /// Whether nothing was proved.
    #[inline]
    pub fn is_stranger(&self) -> bool {
        self.may == Privileges::NONE
    }

    /// What it may do with tables.
    pub fn rights(&self) -> Rights {
        self.rights
    }

    /// Takes other rights if roles have changed. Says whether it did.
    #[inline]
    pub fn refresh(&mut self, access: &AccessControl) -> bool {
        // A session without a role keeps what it has: a stranger's nothing, this machine's everything.
        if self.role.is_none() {
            return false;
        }
        let version = access.version();
        if version == self.version {
            return false;
        }
        self.take_rights(access, version);
        true
    }

    #[cold]
    fn take_rights(&mut self, access: &AccessControl, version: u64) {
        self.rights = access.rights(self.role());
        self.may = Privileges::of(self.rights);
        self.version = version;
    }

    /// The identity of a statement that comes alone.
    pub(crate) fn identity(&self) -> Option<Identity> {
        let role = self.role()?;
        Some(Identity {
            user: role.to_owned(),
            role: role.to_owned(),
            rights: self.rights,
            ..Identity::default()
        })
    }

    /// The gate: the only place where a command is allowed or refused. What a statement needs of tables is compared
    /// with the same rights when it runs.
    #[inline]
    pub(crate) fn allow(&self, command: Command) -> Result<(), Answer> {
        if self.may.has(command.takes()) { Ok(()) } else { Err(self.refused()) }
    }

    #[cold]
    fn refused(&self) -> Answer {
        Answer::NotAllowed(if self.may == Privileges::NONE { "unauthenticated" } else { "permission denied" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_refuses() {
        let nobody = Session::stranger();
        assert_eq!(nobody.allow(Command::Get), Err(Answer::NotAllowed("unauthenticated")));
        assert_eq!(Session::local().allow(Command::Sql), Ok(()));
    }
}
