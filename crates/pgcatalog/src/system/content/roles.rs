//! Roles: who exists, and who is a member of whom.

use store::value::Value;

use super::super::System;
use super::super::rows::{Rows, flag, int, text};
use super::activity::optional;
use super::fixed::{DATABASE_OWNER, DATABASE_OWNER_NAME, OWNER};
use super::relations::array;
use crate::system::server::RoleFacts;
use crate::system::time::moment_of;

/// What stands in the place of a password that only superusers may see.
const HIDDEN: &str = "********";

/// All roles; where none are kept, the one who asks.
fn all(system: &System) -> Vec<RoleFacts> {
    let roles = system.server().roles();
    if !roles.is_empty() {
        return roles;
    }
    vec![RoleFacts {
        oid: OWNER,
        name: system.owner(),
        superuser: true,
        inherit: true,
        login: true,
        bypass_rls: true,
        connection_limit: -1,
        ..RoleFacts::default()
    }]
}

/// `pg_authid`, for superusers
pub(super) fn authid(system: &System, rows: &mut Rows) {
    if system.identity().rights.superuser {
        shown(system, rows, |role| optional(role.verifier.as_deref()));
    }
}

/// `pg_roles`
pub(super) fn roles(system: &System, rows: &mut Rows) {
    shown(system, rows, |_| text(HIDDEN));
}

fn shown(system: &System, rows: &mut Rows, password: impl Fn(&RoleFacts) -> Value) {
    let mut all = all(system);
    if all.iter().all(|role| role.oid != DATABASE_OWNER) {
        let name = DATABASE_OWNER_NAME.to_owned();
        all.push(RoleFacts {
            oid: DATABASE_OWNER,
            name,
            inherit: true,
            connection_limit: -1,
            ..RoleFacts::default()
        });
    }
    for role in all {
        let password = password(&role);
        // `pg_authid` has no settings.
        let settings = (rows.layout().name == "pg_roles").then(|| ("rolconfig", settings_of(&role)));
        let cells = [
            ("oid", int(role.oid)),
            ("rolname", text(&role.name)),
            ("rolsuper", flag(role.superuser)),
            ("rolinherit", flag(role.inherit)),
            ("rolcreaterole", flag(role.create_role)),
            ("rolcreatedb", flag(role.create_db)),
            ("rolcanlogin", flag(role.login)),
            ("rolreplication", flag(role.replication)),
            ("rolconnlimit", int(role.connection_limit)),
            ("rolbypassrls", flag(role.bypass_rls)),
            ("rolvaliduntil", moment_of(role.valid_until_ms)),
            ("rolpassword", password),
        ];
        rows.add(cells.into_iter().chain(settings));
    }
}

/// What its sessions begin with; NULL: nothing.
fn settings_of(role: &RoleFacts) -> Value {
    if role.settings.is_empty() { Value::Null } else { array(role.settings.iter().cloned()) }
}

/// `pg_user`
pub(super) fn users(system: &System, rows: &mut Rows) {
    list_users(system, rows, |_| text(HIDDEN));
}

/// `pg_shadow`, for superusers
pub(super) fn shadow(system: &System, rows: &mut Rows) {
    if system.identity().rights.superuser {
        list_users(system, rows, |role| optional(role.verifier.as_deref()));
    }
}

fn list_users(system: &System, rows: &mut Rows, password: impl Fn(&RoleFacts) -> Value) {
    for role in all(system).into_iter().filter(|role| role.login) {
        let password = password(&role);
        rows.add([
            ("usename", text(&role.name)),
            ("usesysid", int(role.oid)),
            ("usecreatedb", flag(role.create_db)),
            ("usesuper", flag(role.superuser)),
            ("userepl", flag(role.replication)),
            ("usebypassrls", flag(role.bypass_rls)),
            ("passwd", password),
            ("valuntil", moment_of(role.valid_until_ms)),
            ("useconfig", settings_of(&role)),
        ]);
    }
}

/// `pg_db_role_setting`
pub(super) fn settings(system: &System, rows: &mut Rows) {
    for role in system.server().roles().into_iter().filter(|role| !role.settings.is_empty()) {
        rows.add([("setdatabase", int(0)), ("setrole", int(role.oid)), ("setconfig", settings_of(&role))]);
    }
}

/// `pg_auth_members`
pub(super) fn members(system: &System, rows: &mut Rows) {
    for role in system.server().roles() {
        for (of, admin) in role.member_of {
            rows.add([
                ("roleid", int(of)),
                ("member", int(role.oid)),
                ("grantor", int(OWNER)),
                ("admin_option", flag(admin)),
            ]);
        }
    }
}
