//! Roles and rules in force, and how they change while the server runs.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use auth::statement::{GrantedOn, RoleFlag, RoleStatement};
use auth::{
    Access, Authenticated, Failures, Giver, KnownPasswords, Peer, Proving, Refusal, Role, Roles, Standing,
};
use parking_lot::Mutex;
use sql::{Holder, OWNER, RoleCounts, RoleFacts, SqlError};
use store::{Catalog, Clock, Store};

use crate::audit::Audit;
use crate::owned;
use crate::refusals::{Failure, Refusals};

/// Writes the roles to where they are kept; the error says why it cannot.
pub type KeepRoles = Box<dyn Fn(&Roles) -> Result<(), String> + Send + Sync>;

/// What decides who comes in, for all protocols.
pub struct AccessControl {
    current: ArcSwap<Access>,
    /// Rises with each change: a session whose rights are of another version asks again.
    version: AtomicU64,
    /// Taken by who changes it.
    change: Mutex<()>,
    keep: OnceLock<KeepRoles>,
    known: KnownPasswords,
    failures: Failures,
    pub(crate) refusals: Arc<Refusals>,
}

impl fmt::Debug for AccessControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessControl").finish_non_exhaustive()
    }
}

impl AccessControl {
    /// Everybody on this machine may come in; the refusals have the time of this clock.
    pub(crate) fn new(clock: Clock, audit: Arc<Audit>) -> Self {
        Self {
            current: ArcSwap::default(),
            version: AtomicU64::new(0),
            change: Mutex::default(),
            keep: OnceLock::new(),
            known: KnownPasswords::default(),
            failures: Failures::default(),
            refusals: Arc::new(Refusals::new(clock, audit)),
        }
    }

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
        self.refusals.retain(|role| access.roles.as_ref().is_some_and(|roles| roles.get(role).is_some()));
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
        let roles =
            roles.after(statement, Some(giver)).map_err(|error| with_dependents(error, statement, store))?;
        if let RoleStatement::Drop { names, .. } = statement {
            for name in names {
                let dependents = owned::dependents(&store.catalog(), &name.text);
                if !dependents.is_empty() {
                    return Err(auth::refuse_drop(&name.text, &dependents));
                }
            }
        }
        check_schemas(statement, store)?;
        keep(&roles).map_err(|why| not_kept(&why))?;
        self.put(Access { roles: Some(roles), ..Access::clone(&current) });
        match statement {
            RoleStatement::Rename { name, to } => owned::rename(store, &name.text, &to.text),
            RoleStatement::DropOwned { of, .. } => {
                Roles::named(of, giver).iter().try_for_each(|role| owned::revoke_all(store, role))
            }
            RoleStatement::ReassignOwned { of, to } => {
                let to = Roles::named(std::slice::from_ref(to), giver);
                to.iter().try_for_each(|to| owned::reassign(store, &Roles::named(of, giver), to))
            }
            _ => Ok(()),
        }
    }

    /// Forgets what was granted in schemas that are gone: a later one of the same name begins with nothing.
    #[cold]
    pub(crate) fn forget_schemas(&self, store: &Store) -> Result<(), SqlError> {
        let _change = self.change.lock();
        let current = self.current();
        let (Some(roles), Some(keep)) = (&current.roles, self.keep.get()) else { return Ok(()) };
        let catalog = store.catalog();
        let Some(roles) = roles.without_schemas(&|schema| is_schema(&catalog, schema)) else { return Ok(()) };
        keep(&roles).map_err(|why| not_kept(&why))?;
        self.put(Access { roles: Some(roles), ..Access::clone(&current) });
        Ok(())
    }

    /// The statements by which `DROP OWNED BY` drops what these roles own, if that is allowed.
    pub(crate) fn drops(
        &self,
        statement: &RoleStatement,
        giver: Giver<'_>,
        store: &Store,
    ) -> Result<Vec<String>, SqlError> {
        let RoleStatement::DropOwned { of, cascade } = statement else { return Ok(Vec::new()) };
        let current = self.current();
        let Some(roles) = &current.roles else { return Ok(Vec::new()) };
        roles.after(statement, Some(giver))?;
        Ok(owned::drops(&store.catalog(), &Roles::named(of, giver), *cascade))
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
        Some(Holder { rights: roles.rights(role), roles: inherited })
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
            settings: role.settings.iter().map(|(name, value)| format!("{name}={value}")).collect(),
            rights: roles.rights(name),
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

    /// See [`Access::knows_password`].
    pub fn knows_password(&self, role: &str, password: &str) -> bool {
        self.current.load().knows_password(&self.known, role, password)
    }

    /// See [`Access::knows_memcached`].
    pub fn knows_memcached(&self, role: &str, password: &str) -> bool {
        self.current.load().knows_memcached(&self.known, role, password)
    }

    /// See [`Access::check_by_http`].
    pub fn check_by_http(
        &self,
        peer: Peer<'_>,
        role: &str,
        password: &str,
    ) -> Result<Authenticated, Refusal> {
        self.current.load().check_by_http(&self.known, peer, role, password)
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

    /// Takes note of a peer that was not let in.
    pub fn note_failure(&self, failure: Failure<'_>) {
        let current = self.current.load();
        let exists = |role: &str| current.roles.as_ref().is_some_and(|roles| roles.get(role).is_some());
        self.refusals.note_failure(failure, failure.role.is_some_and(exists));
    }

    /// Takes note of a memcached client's password, or of the end of its proof.
    pub fn note_password(&self, right: bool) {
        self.refusals.note_password(right);
    }

    /// How often each role logged in, failed and was refused.
    pub(crate) fn role_counts(&self) -> Vec<RoleCounts> {
        let current = self.current.load();
        let roles = current.roles.iter().flat_map(Roles::iter);
        self.refusals.counts(roles.map(|(name, _)| name))
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

/// A role that cannot be dropped is shown with all that depends on it.
fn with_dependents(error: SqlError, statement: &RoleStatement, store: &Store) -> SqlError {
    let RoleStatement::Drop { names, .. } = statement else { return error };
    let Some(known) = error.detail.as_deref().filter(|_| error.state == "2BP01") else { return error };
    let of = |name: &String| error.message.contains(&format!("\"{name}\""));
    let catalog = store.catalog();
    let named = names.iter().map(|name| &name.text).find(|name| of(name));
    let more = named.map(|name| owned::dependents(&catalog, name)).unwrap_or_default();
    let all: Vec<String> = more.into_iter().chain([known.clone()]).collect();
    error.with_detail(all.join("\n"))
}

fn not_kept(why: &str) -> SqlError {
    SqlError::new("58030", format!("the roles could not be kept: {why}"))
}

fn is_schema(catalog: &Catalog, name: &str) -> bool {
    name.eq_ignore_ascii_case("public") || catalog.namespace(name).is_some()
}

/// Refuses privileges in schemas that are not there.
fn check_schemas(statement: &RoleStatement, store: &Store) -> Result<(), SqlError> {
    let RoleStatement::Privileges(grants) = statement else { return Ok(()) };
    let (GrantedOn::Schemas(schemas) | GrantedOn::Future { schemas, .. }) = &grants.on else { return Ok(()) };
    let catalog = store.catalog();
    match schemas.iter().find(|schema| !is_schema(&catalog, &schema.text)) {
        Some(missing) => Err(SqlError::new("3F000", format!("schema \"{}\" does not exist", missing.text))),
        None => Ok(()),
    }
}
