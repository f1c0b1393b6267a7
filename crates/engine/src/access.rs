//! Roles and rules in force, and how they change while the server runs.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use auth::statement::{RoleFlag, RoleStatement};
use auth::{
    Access, Authenticated, Failures, Giver, KnownPasswords, Peer, Proving, Refusal, Role, Roles, Standing,
};
use parking_lot::Mutex;
use sql::{Holder, OWNER, Rights, RoleFacts, SqlError};
use store::Store;

use crate::owned;

/// Writes the roles to where they are kept; the error says why it cannot.
pub type KeepRoles = Box<dyn Fn(&Roles) -> Result<(), String> + Send + Sync>;

/// What decides who comes in, for all protocols.
#[derive(Default)]
pub struct AccessControl {
    current: ArcSwap<Access>,
    /// Rises with each change: a session whose rights are of another version asks again.
    version: AtomicU64,
    /// Taken by who changes it.
    change: Mutex<()>,
    keep: OnceLock<KeepRoles>,
    known: KnownPasswords,
    failures: Failures,
}

impl fmt::Debug for AccessControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessControl").finish_non_exhaustive()
    }
}

impl AccessControl {
    /// What is in force.
    pub fn current(&self) -> Arc<Access> {
        self.current.load_full()
    }

    /// Puts other rules and roles in force.
    pub fn set(&self, access: Access) {
        let _change = self.change.lock();
        self.put(access);
    }

    /// Says where roles are kept; once.
    pub fn on_change(&self, keep: KeepRoles) {
        let _had = self.keep.set(keep);
    }

    /// Changes only while `change` is held.
    fn put(&self, access: Access) {
        self.current.store(Arc::new(access));
        // Release: who sees the version sees the roles. Pairs with the load in `version`.
        self.version.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn version(&self) -> u64 {
        // Acquire: pairs with the addition in `put`.
        self.version.load(Ordering::Acquire)
    }

    /// Carries out a statement about roles: it is kept, then in force, or neither.
    pub(crate) fn change_roles(
        &self,
        statement: &RoleStatement,
        giver: Giver<'_>,
        store: &Store,
    ) -> Result<(), SqlError> {
        let _change = self.change.lock();
        let current = self.current();
        let (Some(roles), Some(keep)) = (&current.roles, self.keep.get()) else {
            let error = SqlError::new("55000", "no roles are kept");
            return Err(error.with_hint("start the server with roles_file"));
        };
        let roles = roles.after(statement, Some(giver))?;
        if let RoleStatement::Drop { names, .. } = statement {
            names.iter().try_for_each(|name| owned::refuse_drop(&store.catalog(), &name.text))?;
        }
        keep(&roles).map_err(|why| SqlError::new("58030", format!("the roles could not be kept: {why}")))?;
        self.put(Access { roles: Some(roles), ..Access::clone(&current) });
        match statement {
            RoleStatement::Rename { name, to } => owned::rename(store, &name.text, &to.text),
            _ => Ok(()),
        }
    }

    /// What a session of a role may do now. Where no roles are kept, everybody is a superuser; a role that is gone has
    /// nothing.
    pub(crate) fn holder_of(&self, role: &str) -> Holder {
        let kept = self.current.load().roles.is_some();
        if kept { self.holder(role).unwrap_or_else(Holder::nobody) } else { Holder::superuser() }
    }

    /// A role's rights, and the roles whose privileges it has.
    pub(crate) fn holder(&self, role: &str) -> Option<Holder> {
        let current = self.current.load();
        let roles = current.roles.as_ref()?;
        roles.get(role)?;
        let inherited = roles.inherited(role).into_iter().map(ToOwned::to_owned).collect();
        Some(Holder { rights: rights_of(roles, role), roles: inherited })
    }

    /// What roles may do where no table says it.
    pub(crate) fn standing(&self) -> Standing {
        let current = self.current.load();
        current.roles.as_ref().map(|roles| roles.standing().clone()).unwrap_or_default()
    }

    /// The role who owns everything: the oldest superuser.
    pub(crate) fn owner(&self) -> Option<String> {
        let current = self.current.load();
        let roles = current.roles.as_ref()?;
        let superusers = roles.iter().filter(|(_, role)| role.is(RoleFlag::Superuser));
        superusers.min_by_key(|(_, role)| role.id).map(|(name, _)| name.to_owned())
    }

    /// The roles as the catalogue shows them.
    pub(crate) fn facts(&self) -> Vec<RoleFacts> {
        let owner = self.owner();
        let current = self.current.load();
        let Some(roles) = &current.roles else { return Vec::new() };
        let number = |name: &str| {
            if owner.as_deref() == Some(name) { OWNER } else { roles.get(name).map_or(0, |role| role.id) }
        };
        let facts = |(name, role): (&str, &Role)| RoleFacts {
            oid: number(name),
            name: name.to_owned(),
            superuser: role.is(RoleFlag::Superuser),
            inherit: role.is(RoleFlag::Inherit),
            create_role: role.is(RoleFlag::CreateRole),
            create_db: role.is(RoleFlag::CreateDb),
            login: role.is(RoleFlag::Login),
            replication: role.is(RoleFlag::Replication),
            bypass_rls: role.is(RoleFlag::BypassRls),
            connection_limit: role.connection_limit,
            valid_until_ms: role.valid_until_ms(),
            verifier: role.verifier.as_ref().map(ToString::to_string),
            member_of: role.member_of.iter().map(|(of, admin)| (number(of), *admin)).collect(),
            rights: rights_of(roles, name),
            privileges_of: roles.inherited(name).into_iter().map(ToOwned::to_owned).collect(),
        };
        roles.iter().map(facts).collect()
    }

    /// See [`Access::finish_scram`].
    pub fn finish_scram(&self, proving: Proving, message: &[u8]) -> Result<(String, Authenticated), Refusal> {
        self.current.load().finish_scram(proving, message)
    }

    /// See [`Access::check_password`].
    pub fn check_password(&self, role: &str, password: &str) -> Result<Authenticated, Refusal> {
        self.current.load().check_password(&self.known, role, password)
    }

    /// See [`Access::check_memcached`].
    pub fn check_memcached(
        &self,
        peer: Peer<'_>,
        role: &str,
        password: &str,
    ) -> Result<Authenticated, Refusal> {
        self.current.load().check_memcached(&self.known, peer, role, password)
    }

    /// Counts a failure of an address at a moment. Returns for how many milliseconds its answer waits.
    pub fn count_failure(&self, address: Option<IpAddr>, now_ms: u64) -> u64 {
        self.failures.count(address, now_ms)
    }

    /// An address has shown a right proof.
    pub fn forget_failures(&self, address: Option<IpAddr>) {
        self.failures.forget(address);
    }
}

fn rights_of(roles: &Roles, role: &str) -> Rights {
    let auth::Rights { superuser, reads, writes, monitors, signals } = roles.rights(role);
    Rights { superuser, reads, writes, monitors, signals }
}
