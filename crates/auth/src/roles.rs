//! The roles that exist. A set of roles is a value: a statement makes the next one of it, which is kept and then put in
//! force, or not at all.

use std::collections::BTreeMap;
use std::fmt;

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use sqltext::definition::Name;
use sqltext::error::{SqlError, state};
use sqltext::grant::{GrantedOn, Grants};
pub use sqltext::role::Rights;
use sqltext::role::{FLAGS, RoleFlag, RoleOption, RoleRef, RoleStatement};

use crate::limits::{ROLE_SETTINGS_MAX, ROLES_MAX};
use crate::random;
use crate::standing::{Change, Standing, grantee};
use crate::verifier::{Key, Verifier};

/// The roles that PostgreSQL has from its beginning, as far as they mean something here.
pub const PREDEFINED: &[&str] =
    &["pg_monitor", "pg_read_all_data", "pg_read_all_settings", "pg_signal_backend", "pg_write_all_data"];

/// One role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Its number in the catalogue. It is another one after a restart, and nothing that is kept refers to it.
    pub id: u32,
    /// What it is, one bit a [`RoleFlag`].
    flags: u8,
    /// Connections at once; negative: any number.
    pub connection_limit: i32,
    /// The moment its password ends.
    pub valid_until: Option<Timestamp>,
    /// What is stored of its password.
    pub verifier: Option<Verifier>,
    /// The roles that it is a member of, and whether it may grant them.
    pub member_of: BTreeMap<String, bool>,
    /// The settings that its sessions begin with, by their names in lower case.
    pub settings: BTreeMap<String, String>,
}

impl Role {
    fn new(id: u32) -> Self {
        let flags = bit(RoleFlag::Inherit);
        Self {
            id,
            flags,
            connection_limit: -1,
            valid_until: None,
            verifier: None,
            member_of: BTreeMap::new(),
            settings: BTreeMap::new(),
        }
    }

    /// Whether it is so.
    pub fn is(&self, flag: RoleFlag) -> bool {
        self.flags & bit(flag) != 0
    }

    /// When its password ends, in Unix milliseconds.
    pub fn valid_until_ms(&self) -> Option<i64> {
        self.valid_until.map(Timestamp::as_millisecond)
    }

    /// Whether its password has ended.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.valid_until.is_some_and(|end| end <= now)
    }

    fn set(&mut self, option: &RoleOption) -> Result<(), SqlError> {
        match option {
            RoleOption::Flag(flag, true) => self.flags |= bit(*flag),
            RoleOption::Flag(flag, false) => self.flags &= !bit(*flag),
            RoleOption::ConnectionLimit(limit) => self.connection_limit = *limit,
            RoleOption::Password(password) => {
                self.verifier = password.as_deref().map(verifier).transpose()?.flatten();
            }
            RoleOption::ValidUntil(text) => self.valid_until = moment(text)?,
            // They are about other roles.
            RoleOption::InRoles(_) | RoleOption::Members(..) => {}
        }
        Ok(())
    }
}

fn bit(flag: RoleFlag) -> u8 {
    1 << flag as u8
}

/// What is stored of a password; nothing of an empty one, which PostgreSQL does not take for a password either.
fn verifier(password: &str) -> Result<Option<Verifier>, SqlError> {
    let md5 = password.len() == 35 && password.starts_with("md5");
    if md5 && password.bytes().skip(3).all(|byte| byte.is_ascii_hexdigit()) {
        let error = SqlError::new(state::BAD_PARAMETER, "MD5 passwords are not supported");
        return Err(error.with_hint("give the password itself, or its SCRAM-SHA-256 verifier"));
    }
    let stored = Verifier::parse(password);
    Ok(stored.or_else(|| (!password.is_empty()).then(|| Verifier::derive(password))))
}

/// A moment as `VALID UNTIL` has it, in UTC where it names no zone.
fn moment(text: &str) -> Result<Option<Timestamp>, SqlError> {
    if text.eq_ignore_ascii_case("infinity") {
        return Ok(None);
    }
    let local = || {
        text.parse::<DateTime>()
            .and_then(|moment| moment.to_zoned(TimeZone::UTC))
            .map(|moment| moment.timestamp())
    };
    let found: Result<Timestamp, _> = text.parse().or_else(|_| local());
    let wrong = |_| {
        SqlError::new("22007", format!("invalid input syntax for type timestamp with time zone: \"{text}\""))
    };
    found.map(Some).map_err(wrong)
}

/// All roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles {
    by_name: BTreeMap<String, Role>,
    /// What the salts of roles that do not exist come from. Kept with the roles, so that a restart does not change
    /// them.
    pub(crate) secret: Key,
    /// What they may do where no table says it.
    standing: Standing,
    /// The number of the next role.
    next: u32,
}

/// The number of the first role; PostgreSQL's first of users' objects.
const FIRST_ID: u32 = 16_384;

/// Who gives a statement about roles.
#[derive(Clone, Copy, Debug)]
pub struct Giver<'a> {
    /// The role that acts.
    pub current: &'a str,
    /// The role that connected.
    pub session: &'a str,
}

impl Roles {
    /// None but the predefined ones.
    pub fn new() -> Self {
        let mut roles = Self {
            by_name: BTreeMap::new(),
            secret: random(),
            standing: Standing::default(),
            next: FIRST_ID,
        };
        for (name, id) in PREDEFINED.iter().zip(3373..) {
            roles.by_name.insert((*name).to_owned(), Role::new(id));
        }
        roles
    }

    /// Those of a new file: one superuser.
    pub fn with_superuser(name: &str) -> Self {
        let mut roles = Self::new();
        let mut role = Role::new(roles.next);
        role.flags |= bit(RoleFlag::Superuser) | bit(RoleFlag::CreateRole) | bit(RoleFlag::Login);
        roles.next += 1;
        roles.by_name.insert(name.to_owned(), role);
        roles
    }

    /// A role by its name.
    pub fn get(&self, name: &str) -> Option<&Role> {
        self.by_name.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Role)> {
        self.by_name.iter().map(|(name, role)| (name.as_str(), role))
    }

    /// What proves a role's password. A role that does not exist has one too, which no password fits.
    pub fn verifier_of(&self, name: &str) -> (Verifier, bool) {
        let real = self.by_name.get(name).filter(|role| !role.is_expired(Timestamp::now()));
        match real.and_then(|role| role.verifier.clone()) {
            Some(verifier) => (verifier, true),
            None => (Verifier::mock(&self.secret, name), false),
        }
    }

    /// What a role may do: its own rights, and those that it inherits.
    pub fn rights(&self, name: &str) -> Rights {
        let mut rights = Rights::default();
        let superuser = self.by_name.get(name).is_some_and(|role| role.is(RoleFlag::Superuser));
        for role in self.with_inherited(name) {
            match role {
                "pg_read_all_data" => rights.reads = true,
                "pg_write_all_data" => rights.writes = true,
                "pg_monitor" => (rights.monitors, rights.settings) = (true, true),
                "pg_read_all_settings" => rights.settings = true,
                "pg_signal_backend" => rights.signals = true,
                _ => {}
            }
        }
        if superuser { Rights::ALL } else { rights }
    }

    /// Whether a role is a member of another one, directly or not, or is it itself.
    pub fn is_member(&self, name: &str, of: &str) -> bool {
        self.reachable(name, |_| true).contains(&of)
    }

    fn with_inherited(&self, name: &str) -> Vec<&str> {
        self.reachable(name, |role| role.is(RoleFlag::Inherit))
    }

    /// The roles that are reached from one by memberships, it first, through those that `pass`.
    fn reachable<'a>(&'a self, name: &str, pass: impl Fn(&Role) -> bool) -> Vec<&'a str> {
        let mut found: Vec<&str> =
            self.by_name.get_key_value(name).map(|(name, _)| name.as_str()).into_iter().collect();
        let mut at = 0;
        while let Some(role) = found.get(at).and_then(|name| self.by_name.get(*name)) {
            at += 1;
            if pass(role) {
                for next in role.member_of.keys() {
                    if !found.contains(&next.as_str()) {
                        found.push(next);
                    }
                }
            }
        }
        found
    }

    /// The roles as a statement leaves them. `giver` is nobody when a file says it.
    pub fn after(&self, statement: &RoleStatement, giver: Option<Giver<'_>>) -> Result<Self, SqlError> {
        let mut next = self.clone();
        next.apply(statement, giver)?;
        Ok(next)
    }

    fn apply(&mut self, statement: &RoleStatement, giver: Option<Giver<'_>>) -> Result<(), SqlError> {
        match statement {
            RoleStatement::Create { name, options } => self.create(name, options, giver),
            RoleStatement::Alter { role, options } => self.alter(&resolved(role, giver), options, giver),
            RoleStatement::Set { role, name, value } => {
                self.set(&resolved(role, giver), name.as_deref(), value.as_deref(), giver)
            }
            RoleStatement::Rename { name, to } => self.rename(&name.text, &to.text, giver),
            RoleStatement::Drop { if_exists, names } => self.drop_all(*if_exists, names, giver),
            RoleStatement::Grant { roles, members, admin } => {
                let members: Vec<_> = members.iter().map(|member| resolved(member, giver)).collect();
                roles.iter().try_for_each(|role| {
                    members.iter().try_for_each(|member| self.grant(&role.text, member, *admin, giver))
                })
            }
            RoleStatement::Revoke { roles, members, admin_only } => {
                let members: Vec<_> = members.iter().map(|member| resolved(member, giver)).collect();
                roles.iter().try_for_each(|role| {
                    members.iter().try_for_each(|member| self.revoke(&role.text, member, *admin_only, giver))
                })
            }
            RoleStatement::Privileges(grants) => self.set_standing(grants, giver),
            RoleStatement::DropOwned { of, .. } => {
                for role in of.iter().map(|role| resolved(role, giver)) {
                    self.check_owner(&role, giver, "drop objects", "may drop objects owned by it")?;
                    self.standing.forget(&role);
                }
                Ok(())
            }
            RoleStatement::ReassignOwned { of, to } => {
                for role in of.iter().map(|role| resolved(role, giver)) {
                    let may = "may reassign objects owned by it";
                    self.check_owner(&role, giver, "reassign objects", may)?;
                }
                let to = resolved(to, giver);
                self.check_owner(&to, giver, "reassign objects", "may reassign objects to it")
            }
        }
    }

    fn create(
        &mut self,
        name: &Name,
        options: &[RoleOption],
        giver: Option<Giver<'_>>,
    ) -> Result<(), SqlError> {
        self.check_giver(giver, sets_superuser(options), "create")?;
        self.check_attributes(giver, options, "create")?;
        check_new_name(&name.text)?;
        if self.by_name.contains_key(&name.text) {
            return Err(exists(&name.text));
        }
        if self.by_name.len() >= ROLES_MAX {
            return Err(SqlError::new(
                "54000",
                format!("there are {ROLES_MAX} roles, the most that there may be"),
            ));
        }
        let mut role = Role::new(self.next);
        options.iter().try_for_each(|option| role.set(option))?;
        self.next += 1;
        self.by_name.insert(name.text.clone(), role);
        // Who makes a role administers it, as in PostgreSQL 16: a superuser administers all.
        if let Some(giver) = giver.filter(|giver| !self.rights(giver.current).superuser)
            && let Some(maker) = self.by_name.get_mut(giver.current)
        {
            maker.member_of.insert(name.text.clone(), true);
        }
        for option in options {
            match option {
                RoleOption::InRoles(roles) => {
                    roles.iter().try_for_each(|role| self.grant(&role.text, &name.text, false, giver))?;
                }
                RoleOption::Members(members, admin) => {
                    members
                        .iter()
                        .try_for_each(|member| self.grant(&name.text, &member.text, *admin, giver))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn alter(
        &mut self,
        name: &str,
        options: &[RoleOption],
        giver: Option<Giver<'_>>,
    ) -> Result<(), SqlError> {
        let superuser = self.existing(name)?.is(RoleFlag::Superuser);
        // Everybody may change the own password.
        let own = giver.is_some_and(|giver| giver.current == name)
            && options.iter().all(|option| matches!(option, RoleOption::Password(_)));
        if !own {
            self.check_giver(giver, superuser || sets_superuser(options), "alter")?;
            self.check_administers(giver, name, "alter")?;
            self.check_attributes(giver, options, "alter")?;
        }
        check_no_predefined(name)?;
        let role = self.by_name.get_mut(name).ok_or_else(|| unknown(name))?;
        options.iter().try_for_each(|option| role.set(option))?;
        self.check_superuser_left(giver)
    }

    /// Sets or takes away what a role's sessions begin with. Everybody may do that with his own.
    fn set(
        &mut self,
        name: &str,
        setting: Option<&str>,
        value: Option<&str>,
        giver: Option<Giver<'_>>,
    ) -> Result<(), SqlError> {
        let superuser = self.existing(name)?.is(RoleFlag::Superuser);
        if giver.is_none_or(|giver| giver.current != name) {
            self.check_giver(giver, superuser, "alter")?;
            self.check_administers(giver, name, "alter")?;
        }
        check_no_predefined(name)?;
        let role = self.by_name.get_mut(name).ok_or_else(|| unknown(name))?;
        match (setting, value) {
            (None, _) => role.settings.clear(),
            (Some(setting), None) => drop(role.settings.remove(setting)),
            (Some(setting), Some(value)) => {
                if role.settings.len() >= ROLE_SETTINGS_MAX && !role.settings.contains_key(setting) {
                    let message = format!("a role has at most {ROLE_SETTINGS_MAX} settings");
                    return Err(SqlError::new("54000", message));
                }
                role.settings.insert(setting.to_owned(), value.to_owned());
            }
        }
        Ok(())
    }

    fn rename(&mut self, name: &str, to: &str, giver: Option<Giver<'_>>) -> Result<(), SqlError> {
        let superuser = self.existing(name)?.is(RoleFlag::Superuser);
        self.check_giver(giver, superuser, "rename")?;
        self.check_administers(giver, name, "rename")?;
        check_no_predefined(name)?;
        check_new_name(to)?;
        if giver.is_some_and(|giver| giver.current == name || giver.session == name) {
            return Err(SqlError::new(state::NOT_SUPPORTED, "session user cannot be renamed"));
        }
        if self.by_name.contains_key(to) {
            return Err(exists(to));
        }
        if let Some(role) = self.by_name.remove(name) {
            self.by_name.insert(to.to_owned(), role);
        }
        self.standing.rename(name, to);
        for role in self.by_name.values_mut() {
            if let Some(admin) = role.member_of.remove(name) {
                role.member_of.insert(to.to_owned(), admin);
            }
        }
        Ok(())
    }

    fn drop_all(
        &mut self,
        if_exists: bool,
        names: &[Name],
        giver: Option<Giver<'_>>,
    ) -> Result<(), SqlError> {
        for Name { text: name, .. } in names {
            let Some(role) = self.by_name.get(name) else {
                self.check_giver(giver, false, "drop")?;
                if if_exists {
                    continue;
                }
                return Err(unknown(name));
            };
            self.check_giver(giver, role.is(RoleFlag::Superuser), "drop")?;
            self.check_administers(giver, name, "drop")?;
            check_no_predefined(name)?;
            if giver.is_some_and(|giver| giver.current == name || giver.session == name) {
                return Err(SqlError::new("55006", "current user cannot be dropped"));
            }
            let dependents = self.standing.names(name);
            if !dependents.is_empty() {
                return Err(refuse_drop(name, &dependents));
            }
            self.by_name.remove(name);
            for role in self.by_name.values_mut() {
                role.member_of.remove(name);
            }
        }
        self.check_superuser_left(giver)
    }

    fn grant(
        &mut self,
        role: &str,
        member: &str,
        admin: bool,
        giver: Option<Giver<'_>>,
    ) -> Result<(), SqlError> {
        self.check_granter(role, giver, "grant")?;
        self.existing(role)?;
        self.existing(member)?;
        if self.is_member(role, member) {
            return Err(SqlError::new("0LP01", format!("role \"{member}\" is a member of role \"{role}\"")));
        }
        check_no_predefined(member)?;
        if let Some(found) = self.by_name.get_mut(member) {
            *found.member_of.entry(role.to_owned()).or_default() |= admin;
        }
        Ok(())
    }

    fn revoke(
        &mut self,
        role: &str,
        member: &str,
        admin_only: bool,
        giver: Option<Giver<'_>>,
    ) -> Result<(), SqlError> {
        self.check_granter(role, giver, "revoke")?;
        self.existing(role)?;
        self.existing(member)?;
        let Some(found) = self.by_name.get_mut(member) else { return Ok(()) };
        match found.member_of.get_mut(role) {
            Some(admin) if admin_only => *admin = false,
            _ => drop(found.member_of.remove(role)),
        }
        Ok(())
    }

    fn set_standing(&mut self, grants: &Grants, giver: Option<Giver<'_>>) -> Result<(), SqlError> {
        let to: Vec<_> = grants.to.iter().map(|to| grantee(to, |role| resolved(role, giver))).collect();
        to.iter().flatten().try_for_each(|role| self.existing(role).map(drop))?;
        let is_superuser = |giver: Giver<'_>| self.rights(giver.current).superuser;
        let by = match &grants.on {
            GrantedOn::Future { by, .. } if by.is_empty() => vec![resolved(&RoleRef::Current, giver)],
            GrantedOn::Future { by, .. } => by.iter().map(|role| resolved(role, giver)).collect(),
            GrantedOn::Schemas(schemas) if giver.is_some_and(|giver| !is_superuser(giver)) => {
                let schema = schemas.first().map_or("public", |schema| schema.text.as_str());
                let message = format!("permission denied for schema {schema}");
                return Err(SqlError::new(state::FORBIDDEN, message));
            }
            _ => Vec::new(),
        };
        for role in &by {
            self.existing(role)?;
            if giver.is_some_and(|giver| !is_superuser(giver) && !self.is_member(giver.current, role)) {
                let message = format!("permission denied to change default privileges of role \"{role}\"");
                return Err(SqlError::new(state::FORBIDDEN, message));
            }
        }
        self.standing.apply(&Change { grants, to, by })
    }

    /// The roles without what they were granted in schemas that are gone; none: nothing was.
    #[must_use]
    pub fn without_schemas(&self, exists: &dyn Fn(&str) -> bool) -> Option<Self> {
        let mut next = self.clone();
        next.standing.forget_schemas(exists).then_some(next)
    }

    /// What roles may do where no table says it.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// The roles whose privileges a role has: itself, and those that it inherits from.
    pub fn inherited(&self, name: &str) -> Vec<&str> {
        self.with_inherited(name)
    }

    fn existing(&self, name: &str) -> Result<&Role, SqlError> {
        self.by_name.get(name).ok_or_else(|| unknown(name))
    }

    /// Who changes roles is a superuser, or may create roles and none of those concerned is one.
    fn check_giver(&self, giver: Option<Giver<'_>>, superuser: bool, verb: &str) -> Result<(), SqlError> {
        let Some(giver) = giver else { return Ok(()) };
        let is = |flag| self.by_name.get(giver.current).is_some_and(|role| role.is(flag));
        if is(RoleFlag::Superuser) || is(RoleFlag::CreateRole) && !superuser {
            return Ok(());
        }
        let whom = if superuser { " superusers" } else { " role" };
        Err(SqlError::new(state::FORBIDDEN, format!("permission denied to {verb}{whom}")))
    }

    /// Refuses what only those may do who have a role's privileges.
    fn check_owner(
        &self,
        role: &str,
        giver: Option<Giver<'_>>,
        what: &str,
        may: &str,
    ) -> Result<(), SqlError> {
        self.existing(role)?;
        let Some(giver) = giver else { return Ok(()) };
        if self.rights(giver.current).superuser || self.inherited(giver.current).contains(&role) {
            return Ok(());
        }
        let error = SqlError::new(state::FORBIDDEN, format!("permission denied to {what}"));
        Err(error.with_detail(format!("Only roles with privileges of role \"{role}\" {may}.")))
    }

    /// The roles that a statement means.
    pub fn named(roles: &[RoleRef], giver: Giver<'_>) -> Vec<String> {
        roles.iter().map(|role| resolved(role, Some(giver))).collect()
    }

    /// A role with CREATEROLE changes only the roles that it administers, as in PostgreSQL 16. Otherwise it could give
    /// a role with more rights a new password, and log in as that.
    fn check_administers(&self, giver: Option<Giver<'_>>, role: &str, verb: &str) -> Result<(), SqlError> {
        let Some(giver) = giver else { return Ok(()) };
        if self.rights(giver.current).superuser || self.administers(giver.current, role) {
            return Ok(());
        }
        let error = SqlError::new(state::FORBIDDEN, format!("permission denied to {verb} role"));
        let who = "Only roles with the CREATEROLE attribute and the ADMIN option on role";
        Err(error.with_detail(format!("{who} \"{role}\" may {verb} this role.")))
    }

    /// Nobody gives an attribute that he has not.
    fn check_attributes(
        &self,
        giver: Option<Giver<'_>>,
        options: &[RoleOption],
        verb: &str,
    ) -> Result<(), SqlError> {
        const OWN: &[RoleFlag] = &[RoleFlag::CreateDb, RoleFlag::Replication, RoleFlag::BypassRls];
        let Some(giver) = giver else { return Ok(()) };
        let Some(own) = self.by_name.get(giver.current) else { return Err(unknown(giver.current)) };
        let lacks = |option: &RoleOption| match option {
            RoleOption::Flag(flag, true) => OWN.contains(flag) && !own.is(*flag),
            _ => false,
        };
        if own.is(RoleFlag::Superuser) || !options.iter().any(lacks) {
            return Ok(());
        }
        let error = SqlError::new(state::FORBIDDEN, format!("permission denied to {verb} role"));
        Err(error.with_detail("Only roles with an attribute may give it to others."))
    }

    /// Whether a role, or one that it is a member of, has another one with `ADMIN OPTION`.
    fn administers(&self, name: &str, role: &str) -> bool {
        let has =
            |name: &&str| self.by_name.get(*name).is_some_and(|own| own.member_of.get(role) == Some(&true));
        self.reachable(name, |_| true).iter().any(has)
    }

    /// Who grants a role is a superuser, or administers it and it is none of a superuser's.
    fn check_granter(&self, role: &str, giver: Option<Giver<'_>>, verb: &str) -> Result<(), SqlError> {
        let Some(giver) = giver else { return Ok(()) };
        let Some(own) = self.by_name.get(giver.current) else { return Err(unknown(giver.current)) };
        let superuser = self.by_name.get(role).is_some_and(|role| role.is(RoleFlag::Superuser));
        if own.is(RoleFlag::Superuser) || self.administers(giver.current, role) && !superuser {
            return Ok(());
        }
        let error = SqlError::new(state::FORBIDDEN, format!("permission denied to {verb} role \"{role}\""));
        let who = if superuser { "the SUPERUSER attribute" } else { "the ADMIN option on this role" };
        Err(error.with_detail(format!("Only roles with {who} may {verb} it.")))
    }

    /// Somebody must be left who can change roles.
    fn check_superuser_left(&self, giver: Option<Giver<'_>>) -> Result<(), SqlError> {
        let can = |role: &Role| role.is(RoleFlag::Superuser) && role.is(RoleFlag::Login);
        if giver.is_none() || self.by_name.values().any(can) {
            return Ok(());
        }
        let error = SqlError::new(state::DEPENDED_ON, "no superuser who may connect would be left");
        Err(error.with_hint("make another role SUPERUSER LOGIN first"))
    }
}

/// The error for a role on which these depend.
pub fn refuse_drop(role: &str, dependents: &[String]) -> SqlError {
    let message = format!("role \"{role}\" cannot be dropped because some objects depend on it");
    let error = SqlError::new(state::DEPENDED_ON, message).with_detail(dependents.join("\n"));
    error.with_hint("REASSIGN OWNED BY gives what it owns to another role; DROP OWNED BY takes the rest away")
}

impl Default for Roles {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Roles {
    /// The statements that make these roles; see [`Roles::parse`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut own: Vec<_> = self.iter().filter(|(name, _)| !PREDEFINED.contains(name)).collect();
        own.sort_by_key(|(_, role)| role.id);
        for (name, role) in &own {
            write!(f, "CREATE ROLE {}", quoted(name))?;
            for (with, without, flag) in FLAGS {
                let usual = *flag == RoleFlag::Inherit;
                if role.is(*flag) != usual {
                    write!(f, " {}", if usual { without } else { with })?;
                }
            }
            if role.connection_limit >= 0 {
                write!(f, " CONNECTION LIMIT {}", role.connection_limit)?;
            }
            if let Some(verifier) = &role.verifier {
                write!(f, " PASSWORD '{verifier}'")?;
            }
            if let Some(end) = role.valid_until {
                write!(f, " VALID UNTIL '{end}'")?;
            }
            f.write_str(";\n")?;
        }
        for (name, role) in &own {
            for (setting, value) in &role.settings {
                let value = value.replace('\'', "''");
                writeln!(f, "ALTER ROLE {} SET {} TO '{value}';", quoted(name), setting)?;
            }
        }
        for (name, role) in &own {
            for (of, admin) in &role.member_of {
                let admin = if *admin { " WITH ADMIN OPTION" } else { "" };
                writeln!(f, "GRANT {} TO {}{admin};", quoted(of), quoted(name))?;
            }
        }
        write!(f, "{}", self.standing)
    }
}

/// A name as it is written in a statement.
fn quoted(name: &str) -> String {
    sqltext::token::quoted_name(name)
}

fn resolved(role: &RoleRef, giver: Option<Giver<'_>>) -> String {
    match (role, giver) {
        (RoleRef::Named(name), _) => name.text.clone(),
        (RoleRef::Current, Some(giver)) => giver.current.to_owned(),
        (RoleRef::Session, Some(giver)) => giver.session.to_owned(),
        // A file has no session: a name that no role can have.
        (RoleRef::Current | RoleRef::Session, None) => String::new(),
    }
}

fn sets_superuser(options: &[RoleOption]) -> bool {
    options.iter().any(|option| matches!(option, RoleOption::Flag(RoleFlag::Superuser, _)))
}

fn check_new_name(name: &str) -> Result<(), SqlError> {
    if name.starts_with("pg_") || ["public", "none"].contains(&name) {
        return Err(SqlError::new(state::RESERVED_NAME, format!("role name \"{name}\" is reserved")));
    }
    Ok(())
}

fn check_no_predefined(name: &str) -> Result<(), SqlError> {
    if PREDEFINED.contains(&name) {
        return Err(SqlError::new(
            state::RESERVED_NAME,
            format!("role \"{name}\" is predefined and stays as it is"),
        ));
    }
    Ok(())
}

#[cold]
fn unknown(name: &str) -> SqlError {
    SqlError::new(state::UNKNOWN_OBJECT, format!("role \"{name}\" does not exist"))
}

#[cold]
fn exists(name: &str) -> SqlError {
    SqlError::new(state::DUPLICATE_OBJECT, format!("role \"{name}\" already exists"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: Giver<'_> = Giver { current: "root", session: "root" };

    fn roles(statements: &[&str]) -> Roles {
        let mut roles = Roles::new();
        for sql in ["CREATE ROLE root SUPERUSER LOGIN"].iter().chain(statements) {
            roles = run(&roles, sql, None).unwrap();
        }
        roles
    }

    fn run(roles: &Roles, sql: &str, giver: Option<Giver<'_>>) -> Result<Roles, SqlError> {
        roles.after(&sqltext::role::read(sql).unwrap().unwrap(), giver)
    }

    fn state(roles: &Roles, sql: &str, giver: &str) -> &'static str {
        run(roles, sql, Some(Giver { current: giver, session: giver }))
            .map_or_else(|error| error.state, |_| "00000")
    }

    #[test]
    fn rights_come_by_membership() {
        let roles = roles(&[
            "CREATE ROLE readers IN ROLE pg_read_all_data",
            "CREATE USER app IN ROLE readers",
            "CREATE USER shy NOINHERIT IN ROLE readers",
            "GRANT pg_write_all_data, pg_monitor TO app",
        ]);
        let expected =
            Rights { reads: true, writes: true, monitors: true, settings: true, ..Rights::default() };
        assert_eq!(roles.rights("app"), expected);
        assert_eq!(roles.rights("shy"), Rights::default());
        assert!(roles.is_member("shy", "pg_read_all_data"));
        assert!(roles.rights("root").superuser && roles.rights("root").signals);
        assert_eq!(roles.rights("nobody"), Rights::default());
        let roles = run(&roles, "REVOKE pg_read_all_data FROM readers", Some(ROOT)).unwrap();
        assert!(!roles.rights("app").reads);
    }

    #[test]
    fn who_may_change_roles() {
        let roles = roles(&[
            "CREATE USER app PASSWORD 'x'",
            "CREATE ROLE maker CREATEROLE",
            "CREATE ROLE team ADMIN app",
            "CREATE ROLE chiefs SUPERUSER",
        ]);
        for (giver, sql, expected) in [
            ("app", "CREATE ROLE x", "42501"),
            ("app", "ALTER ROLE app PASSWORD 'y'", "00000"),
            ("app", "ALTER ROLE app SUPERUSER", "42501"),
            ("app", "ALTER ROLE app SET work_mem = '1MB'", "00000"),
            ("app", "ALTER ROLE maker SET work_mem = '1MB'", "42501"),
            ("maker", "ALTER ROLE root RESET ALL", "42501"),
            ("maker", "ALTER ROLE pg_monitor SET work_mem = '1MB'", "42501"),
            ("app", "ALTER ROLE maker PASSWORD 'y'", "42501"),
            ("app", "GRANT team TO maker", "00000"),
            ("app", "GRANT pg_read_all_data TO app", "42501"),
            ("maker", "CREATE ROLE x LOGIN", "00000"),
            ("maker", "CREATE ROLE x SUPERUSER", "42501"),
            ("maker", "ALTER ROLE root NOLOGIN", "42501"),
            ("maker", "GRANT chiefs TO maker", "42501"),
            ("maker", "GRANT pg_read_all_data TO maker", "42501"),
            ("maker", "DROP ROLE root", "42501"),
            ("maker", "ALTER ROLE maker SUPERUSER", "42501"),
            ("maker", "ALTER ROLE app PASSWORD 'y'", "42501"),
            ("maker", "ALTER ROLE maker NOLOGIN", "42501"),
            ("maker", "ALTER ROLE app RENAME TO other", "42501"),
            ("maker", "DROP ROLE app", "42501"),
            ("maker", "GRANT team TO maker", "42501"),
            ("maker", "REVOKE team FROM app", "42501"),
            ("maker", "CREATE ROLE x IN ROLE team", "42501"),
            ("maker", "CREATE ROLE x CREATEDB", "42501"),
            ("maker", "CREATE ROLE x BYPASSRLS", "42501"),
            ("app", "ALTER ROLE team LOGIN", "42501"),
            ("root", "DROP ROLE root", "55006"),
            ("root", "ALTER ROLE root NOSUPERUSER", "2BP01"),
            ("root", "DROP ROLE IF EXISTS nobody, team", "00000"),
            ("root", "DROP ROLE nobody", "42704"),
            ("root", "CREATE ROLE app", "42710"),
            ("root", "CREATE ROLE pg_mine", "42939"),
            ("root", "DROP ROLE pg_monitor", "42939"),
            ("root", "GRANT app TO pg_monitor", "42939"),
            ("root", "GRANT team TO nobody", "42704"),
            ("root", "GRANT app TO team", "0LP01"),
            ("root", "GRANT app TO app", "0LP01"),
            ("root", "ALTER ROLE app VALID UNTIL 'soon'", "22007"),
            ("root", "ALTER ROLE app PASSWORD 'md50123456789abcdef0123456789abcdef'", "22023"),
        ] {
            assert_eq!(state(&roles, sql, giver), expected, "{giver}: {sql}");
        }
    }

    /// A role that may create roles gave a reader of everything a new password, and came in as it.
    #[test]
    fn who_creates_roles_changes_only_those_that_he_administers() {
        let roles = roles(&[
            "CREATE ROLE maker CREATEROLE",
            "CREATE ROLE other CREATEROLE",
            "CREATE USER auditor PASSWORD 'x' IN ROLE pg_read_all_data",
        ]);
        let maker = Giver { current: "maker", session: "maker" };
        let roles = run(&roles, "CREATE USER own", Some(maker)).unwrap();
        for (giver, sql, expected) in [
            ("maker", "ALTER ROLE auditor PASSWORD 'mine'", "42501"),
            ("maker", "ALTER ROLE auditor VALID UNTIL 'infinity'", "42501"),
            ("maker", "DROP ROLE auditor", "42501"),
            ("maker", "ALTER ROLE own PASSWORD 'mine'", "00000"),
            ("maker", "ALTER ROLE own RENAME TO mine", "00000"),
            ("maker", "GRANT own TO auditor", "00000"),
            ("maker", "DROP ROLE own", "00000"),
            ("other", "ALTER ROLE own PASSWORD 'mine'", "42501"),
            ("other", "DROP ROLE own", "42501"),
            ("own", "ALTER ROLE own PASSWORD 'mine'", "00000"),
            ("auditor", "ALTER ROLE own PASSWORD 'mine'", "42501"),
        ] {
            assert_eq!(state(&roles, sql, giver), expected, "{giver}: {sql}");
        }
        // What a role administers outlives a restart, and goes with the role that it is a member of.
        let kept = Roles::parse(&roles.to_file()).unwrap();
        assert_eq!(state(&kept, "ALTER ROLE own LOGIN", "maker"), "00000");
        let kept = run(&kept, "GRANT maker TO other", Some(ROOT)).unwrap();
        assert_eq!(state(&kept, "ALTER ROLE own LOGIN", "other"), "00000");
    }

    #[test]
    fn passwords_end() {
        let roles = roles(&[
            "CREATE USER a PASSWORD 'x' VALID UNTIL '2020-01-01'",
            "CREATE USER b PASSWORD 'x' VALID UNTIL '2999-01-01 00:00:00+02'",
            "CREATE USER c PASSWORD 'x' VALID UNTIL 'infinity'",
            "CREATE USER d PASSWORD ''",
        ]);
        let real: Vec<bool> =
            ["a", "b", "c", "d", "e"].iter().map(|name| roles.verifier_of(name).1).collect();
        assert_eq!(real, [false, true, true, false, false]);
    }

    #[test]
    fn a_renamed_role_keeps_its_members() {
        let roles = roles(&["CREATE ROLE team", "CREATE USER app IN ROLE team"]);
        let roles = run(&roles, "ALTER ROLE team RENAME TO crew", Some(ROOT)).unwrap();
        assert!(roles.is_member("app", "crew") && roles.get("team").is_none());
        let roles = run(&roles, "DROP ROLE crew", Some(ROOT)).unwrap();
        assert!(roles.get("app").unwrap().member_of.is_empty());
    }
}
