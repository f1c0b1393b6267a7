//! One connection's identity, and the gate that every command passes.

use std::cell::Cell;
use std::net::IpAddr;
use std::sync::Arc;

use auth::Authenticated;
use sql::{Holder, Identity, Rights, SqlError};
use store::{Table, TableId};

use crate::access::AccessControl;
use crate::activity::Who;
use crate::answer::Answer;
use crate::privilege::{Command, Mask};
use crate::refusals::Trail;
use crate::thread_context::ThreadContext;

/// The SQLSTATE of what is not allowed.
const NOT_ALLOWED: &str = "42501";

/// Why nobody writes a table that mirrors another one.
const MIRRORED: &str = "the table mirrors its source";

/// Whether a key is of a table that mirrors another one. A call, so that who has no mirror pays nothing for it.
#[cold]
#[inline(never)]
fn is_of_mirror(context: &mut ThreadContext, key: &[u8]) -> bool {
    context.way_to(key).table.is_mirror()
}

/// What a session may do with a table.
#[derive(Clone, Copy, Debug)]
struct OnTable {
    /// By which version of the definitions; 0: by none, for there is none of this number.
    generation: u64,
    table: TableId,
    may: Mask,
}

impl OnTable {
    const NOTHING: Self = Self { generation: 0, table: TableId(0), may: Mask::NONE };
}

/// Who speaks on a connection and what they may do.
#[derive(Clone, Debug)]
pub struct Session {
    /// What the gate compares.
    may: Mask,
    rights: Rights,
    /// The roles whose privileges it has.
    roles: Arc<[String]>,
    /// What it may do with the table that it asked for last.
    last: Cell<OnTable>,
    /// Its role; nobody in particular has all rights.
    role: Option<Arc<str>>,
    /// The role that connected.
    login: Option<Arc<str>>,
    /// The version of the roles that the rights are of.
    version: u64,
    /// Where what it is refused is noted; none for a stranger and for this program's own.
    trail: Option<Arc<Trail>>,
}

impl Session {
    /// A session of this program's own, and of somebody on this machine where no roles are kept.
    pub fn local() -> Self {
        Self::with(Rights::ALL, Mask::of(Rights::ALL))
    }

    /// A session of somebody who has not proved anything.
    pub fn stranger() -> Self {
        Self::with(Rights::NONE, Mask::NONE)
    }

    fn with(rights: Rights, may: Mask) -> Self {
        let (roles, last) = (Arc::default(), Cell::new(OnTable::NOTHING));
        Self { may, rights, roles, last, role: None, login: None, version: 0, trail: None }
    }

    /// A session of somebody who was let in, from an address (none: a Unix socket) and by a protocol.
    pub fn of(
        who: &Authenticated,
        access: &AccessControl,
        address: Option<IpAddr>,
        protocol: &'static str,
    ) -> Self {
        let login: Option<Arc<str>> = who.role().map(Arc::from);
        let refusals = Arc::clone(&access.refusals);
        let known = login.as_deref().filter(|role| access.holder(role).is_some());
        if let Some(role) = known {
            refusals.note_login(role, address, protocol);
        }
        let trail = Some(Arc::new(Trail { refusals, address, protocol }));
        let mut session = Self { role: login.clone(), login, trail, ..Self::local() };
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
        self.may == Mask::NONE
    }

    /// What it may do with tables.
    pub fn holder(&self) -> Holder {
        Holder { rights: self.rights, roles: Arc::clone(&self.roles) }
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
        let holder = self.role().map_or_else(Holder::superuser, |role| access.holder_of(role));
        (self.rights, self.roles) = (holder.rights, holder.roles);
        self.may = Mask::of(self.rights);
        self.last.set(OnTable::NOTHING);
        self.version = version;
    }

    /// The identity of a statement that comes alone.
    pub(crate) fn identity(&self) -> Option<Identity> {
        let role = self.role()?;
        Some(Identity {
            user: role.to_owned(),
            role: role.to_owned(),
            rights: self.rights,
            roles: Arc::clone(&self.roles),
            ..Identity::default()
        })
    }

    /// The gate: the only place where a command is allowed or refused. What a statement needs of tables is compared
    /// with the same rights when it runs.
    #[inline]
    pub(crate) fn allow(&self, command: Command) -> Result<(), Answer> {
        if self.may.has(command.takes()) { Ok(()) } else { Err(self.refused(command.name())) }
    }

    /// The same for a command on a key: a role may have privileges on its table alone.
    #[inline]
    pub(crate) fn allow_key(
        &self,
        context: &mut ThreadContext,
        key: &[u8],
        command: Command,
    ) -> Result<(), Answer> {
        if command.writes() && context.has_mirrors() && is_of_mirror(context, key) {
            return Err(Answer::NotAllowed(MIRRORED));
        }
        let may = self.may.has(command.takes()) || self.may_with_table(context, key, command);
        if may { Ok(()) } else { Err(self.refused_key(context, key, command)) }
    }

    /// What it has on the key's table. A truth and no answer: who may everything pays nothing for it.
    #[inline(never)]
    fn may_with_table(&self, context: &mut ThreadContext, key: &[u8], command: Command) -> bool {
        if self.roles.is_empty() {
            return false;
        }
        let table = Arc::clone(context.way_to(key).table);
        let mut last = self.last.get();
        if (last.generation, last.table) != (context.generation(), table.id()) {
            let may = Mask::of_rows(self.holder().on_rows(table.def()));
            last = OnTable { generation: context.generation(), table: table.id(), may };
            self.last.set(last);
        }
        last.may.has(command.takes())
    }

    /// The same for `flush_all`, which is about every table that it empties.
    pub(crate) fn allow_flush(&self, context: &ThreadContext) -> Result<(), Answer> {
        let takes = Command::FlushAll.takes();
        let holder = self.holder();
        let may = |table: &Arc<Table>| Mask::of_rows(holder.on_rows(table.def())).has(takes);
        let catalog = context.engine().store.catalog();
        let mut reached = catalog.tables().filter(|table| table.def().is_flushed());
        if self.may.has(takes) || !self.roles.is_empty() && reached.all(may) {
            return Ok(());
        }
        Err(self.refused(Command::FlushAll.name()))
    }

    #[cold]
    fn refused_key(&self, context: &mut ThreadContext, key: &[u8], command: Command) -> Answer {
        let table = context.way_to(key).table.name().to_owned();
        self.refused(&format!("{} {table}", command.name()))
    }

    /// Refuses something, and takes note of it.
    #[cold]
    fn refused(&self, request: &str) -> Answer {
        let reason = if self.may == Mask::NONE { "unauthenticated" } else { "permission denied" };
        if let Some((trail, role)) = self.trail.as_ref().zip(self.role()) {
            trail.note(role, request, reason);
        }
        Answer::NotAllowed(reason)
    }

    /// The session as the lists of slow statements and invalidations show it. `protocol` is used where no login set
    /// one.
    #[cold]
    pub(crate) fn who(&self, protocol: &'static str) -> Arc<Who> {
        let trail = self.trail.as_deref();
        Arc::new(Who {
            role: self.login().unwrap_or_default().to_owned(),
            pid: None,
            address: trail.and_then(|trail| trail.address).map(|address| address.to_string()),
            protocol: trail.map_or(protocol, |trail| trail.protocol),
        })
    }

    /// Takes note of a statement that failed because it was not allowed.
    #[inline]
    pub(crate) fn note_failed(&self, statement: &str, error: &SqlError) {
        if error.state == NOT_ALLOWED {
            self.note_refused(statement, error);
        }
    }

    #[cold]
    fn note_refused(&self, statement: &str, error: &SqlError) {
        if let Some((trail, role)) = self.trail.as_ref().zip(self.role()) {
            trail.note_statement(role, statement, &error.message);
        }
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
