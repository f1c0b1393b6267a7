//! Privileges: what was granted to whom by whom.

use sqltext::grant::Kind;
use store::Table;
use store::definition::{Access, Grant, Privileges};
use store::value::Value;

use super::super::System;
use super::super::relation::{columns_of, tables_of};
use super::super::rows::{Rows, int, text, yes_or_no};
use super::fixed::{DATABASE_OWNER_NAME, OWNER, PUBLIC_NAME, namespace_named, schema_of, schema_of_view};
use super::relations::array;

/// What stands for the group of the file that other processes read: it reads every table of shared memory.
pub(crate) const READERS: &str = "shared_memory";

/// The number of the owner of a table, view or sequence.
pub(super) fn owner_oid(system: &System, access: &Access) -> Value {
    let Some(owner) = &access.owner else { return int(OWNER) };
    let roles = system.server().roles();
    int(roles.iter().find(|role| role.name == *owner).map_or(OWNER, |role| role.oid))
}

/// The name of the owner of a table, view or sequence.
pub(super) fn owner_name(system: &System, access: &Access) -> String {
    access.owner.clone().unwrap_or_else(|| system.owner())
}

/// `relacl` of a table or view: NULL while nothing was ever granted.
pub(super) fn of_relation(system: &System, access: &Access, shared: bool) -> Value {
    if access.grants.is_none() && !shared {
        return Value::Null;
    }
    let owner = owner_name(system, access);
    array(all_of(access, &owner, shared, Kind::Table).iter().map(|grant| item(grant, &owner)))
}

/// `proacl`: NULL while everybody may call it, as PostgreSQL has it.
pub(super) fn of_routine(system: &System, access: &Access) -> Value {
    let all = Privileges::EXECUTE;
    let owner = owner_name(system, access);
    let listed = access.listed(all);
    let is_new = |grant: &Grant| grant.grantable.is_none() || grant.to.as_deref() == Some(&*owner);
    let everybody = listed.iter().any(|grant| grant.to.is_none());
    if access.grants.is_none() || everybody && listed.len() <= 2 && listed.iter().all(is_new) {
        let others = listed.iter().any(|grant| grant.to.as_deref().is_some_and(|to| to != owner));
        if !others {
            return Value::Null;
        }
    }
    let own = access.owner.is_none().then(|| Grant::of_owner(&owner, all));
    array(own.into_iter().chain(listed).map(|grant| item(&grant, &owner)))
}

/// `relacl` of a sequence.
pub(super) fn of_sequence(system: &System, access: &Access) -> Value {
    if access.grants.is_none() {
        return Value::Null;
    }
    let owner = owner_name(system, access);
    array(all_of(access, &owner, false, Kind::Sequence).iter().map(|grant| item(grant, &owner)))
}

/// `srvacl` of a foreign server.
pub(super) fn of_server(system: &System, access: &Access) -> Value {
    let Some(grants) = &access.grants else { return Value::Null };
    let owner = owner_name(system, access);
    array(grants.iter().map(|grant| item(grant, &owner)))
}

/// `attacl` of a column.
pub(super) fn of_column(system: &System, access: &Access, grants: &[Grant]) -> Value {
    if grants.is_empty() {
        return Value::Null;
    }
    let owner = owner_name(system, access);
    array(grants.iter().map(|grant| item(grant, &owner)))
}

/// What was granted, what the owner has where it is a superuser, and what the file's group has.
fn all_of(access: &Access, owner: &str, shared: bool, kind: Kind) -> Vec<Grant> {
    let own = access.owner.is_none().then(|| Grant::of_owner(owner, kind.all()));
    let mut all: Vec<Grant> = own.into_iter().collect();
    all.extend(access.listed(kind.all()));
    if shared {
        let (to, by) = (Some(READERS.to_owned()), access.owner.clone());
        all.push(Grant { to, by, privileges: Privileges::SELECT, grantable: Privileges::NONE });
    }
    all
}

/// One grant in PostgreSQL's form: `grantee=rw*/grantor`.
fn item(grant: &Grant, owner: &str) -> String {
    let letters = letters(grant.privileges, grant.grantable);
    let to = grant.to.as_deref().map(quoted).unwrap_or_default();
    format!("{to}={letters}/{}", quoted(grant.by.as_deref().unwrap_or(owner)))
}

fn letters(privileges: Privileges, grantable: Privileges) -> String {
    let mut letters = String::new();
    for (one, letter, _) in privileges.each() {
        letters.push(*letter);
        if grantable.has(*one) {
            letters.push('*');
        }
    }
    letters
}

/// A role's name, in quotes where it has more than letters, digits and underscores.
pub(in crate::system) fn quoted(name: &str) -> String {
    if name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `nspacl`: everybody may use a schema; who may make tables in it was granted that.
pub(super) fn of_schema(system: &System, schema: &str) -> Value {
    let creators = system.server().creators(schema);
    let is_public = schema == PUBLIC_NAME;
    if creators.is_empty() && !is_public {
        return Value::Null;
    }
    let owner = if is_public { DATABASE_OWNER_NAME.to_owned() } else { quoted(&system.owner()) };
    let everybody = if creators.contains(&None) { "UC" } else { "U" };
    let listed = [format!("{owner}=UC/{owner}"), format!("={everybody}/{owner}")];
    let named = creators.iter().flatten().map(|role| format!("{}=UC/{owner}", quoted(role)));
    array(listed.into_iter().chain(named))
}

/// `pg_default_acl`
pub(super) fn defaults(system: &System, rows: &mut Rows) {
    let roles = system.server().roles();
    for (at, defaults) in (1_u32..).zip(system.server().default_grants()) {
        let owner = &defaults.owner;
        let oid = roles.iter().find(|role| role.name == *owner).map_or(OWNER, |role| role.oid);
        // Those of a schema are added to those of all, where the owner's own stand.
        let own = defaults.schema.is_none().then(|| Grant::of_owner(owner, defaults.kind.all()));
        let all = own.into_iter().chain(defaults.grants);
        rows.add([
            ("oid", int(at)),
            ("defaclrole", int(oid)),
            ("defaclnamespace", int(defaults.schema.as_deref().map_or(0, namespace_named))),
            ("defaclobjtype", text(defaults.kind.letter())),
            ("defaclacl", array(all.map(|grant| item(&grant, owner)))),
        ]);
    }
}

/// A table or view with its privileges.
struct Relation<'c> {
    schema: &'c str,
    name: &'c str,
    access: &'c Access,
    table: Option<&'c Table>,
}

fn each_relation(system: &System, visit: &mut dyn FnMut(&Relation<'_>)) {
    let catalog = system.catalog();
    for table in tables_of(&catalog) {
        let (schema, access) = (schema_of(table), &table.def().access);
        visit(&Relation { schema, name: table.def().own_name(), access, table: Some(table) });
    }
    for view in catalog.views() {
        let (schema, name) = (schema_of_view(view), view.own_name());
        visit(&Relation { schema, name, access: &view.access, table: None });
    }
}

/// Whether who asks is shown a grant: it is to it, by it, or to everybody.
fn is_shown(system: &System, grant: &Grant, owner: &str) -> bool {
    let holder = system.identity().holder();
    let by = grant.by.as_deref().unwrap_or(owner);
    holder.rights.superuser || holder.is(by) || grant.to.as_deref().is_none_or(|to| holder.is(to))
}

fn add_each(
    system: &System,
    rows: &mut Rows,
    of: &Relation<'_>,
    grants: &[Grant],
    more: &[(&'static str, Value)],
) {
    let owner = owner_name(system, of.access);
    for grant in grants.iter().filter(|grant| is_shown(system, grant, &owner)) {
        for (one, _, privilege) in grant.privileges.each() {
            let grantable = grant.grantable.has(*one) || grant.to.as_deref() == Some(&owner);
            let mut row = vec![
                ("grantor", text(grant.by.as_deref().unwrap_or(&owner))),
                ("grantee", text(grant.to.as_deref().unwrap_or("PUBLIC"))),
                ("table_catalog", text(&system.identity().database)),
                ("table_schema", text(of.schema)),
                ("table_name", text(of.name)),
                ("privilege_type", text(privilege)),
                ("is_grantable", yes_or_no(grantable)),
            ];
            row.extend(more.iter().cloned());
            if more.is_empty() {
                row.push(("with_hierarchy", yes_or_no(*privilege == "SELECT")));
            }
            rows.add(row);
        }
    }
}

/// `information_schema.table_privileges`, `role_table_grants`
pub(super) fn table_privileges(system: &System, rows: &mut Rows) {
    each_relation(system, &mut |of| {
        let owner = owner_name(system, of.access);
        add_each(system, rows, of, &all_of(of.access, &owner, false, Kind::Table), &[]);
    });
}

/// `information_schema.column_privileges`, `role_column_grants`: those of the table are each column's, too.
pub(super) fn column_privileges(system: &System, rows: &mut Rows) {
    each_relation(system, &mut |of| {
        let Some(table) = of.table else { return };
        let owner = owner_name(system, of.access);
        let mut whole = all_of(of.access, &owner, false, Kind::Table);
        for grant in &mut whole {
            grant.privileges = grant.privileges.among(Privileges::OF_COLUMN);
        }
        for column in columns_of(table) {
            let own = column.def.map(|def| def.grants.as_slice()).unwrap_or_default();
            let all: Vec<Grant> = whole.iter().chain(own).cloned().collect();
            add_each(system, rows, of, &all, &[("column_name", text(&column.name))]);
        }
    });
}

/// `information_schema.enabled_roles`
pub(super) fn enabled_roles(system: &System, rows: &mut Rows) {
    let identity = system.identity();
    if identity.roles.is_empty() {
        rows.add([("role_name", text(&system.owner()))]);
    }
    for role in identity.roles.iter() {
        rows.add([("role_name", text(role))]);
    }
}

/// `information_schema.applicable_roles`
pub(super) fn applicable_roles(system: &System, rows: &mut Rows) {
    let roles = system.server().roles();
    let name = |oid: u32| roles.iter().find(|role| role.oid == oid).map(|role| role.name.as_str());
    let identity = system.identity();
    for role in roles.iter().filter(|role| identity.roles.contains(&role.name)) {
        for (of, admin) in &role.member_of {
            rows.add([
                ("grantee", text(&role.name)),
                ("role_name", text(name(*of).unwrap_or_default())),
                ("is_grantable", yes_or_no(*admin)),
            ]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_spelled_as_postgresql_spells_them() {
        let all = Grant::of_owner("o", Privileges::ALL);
        assert_eq!(item(&all, "x"), "o=arwdDxt/o");
        let to = |to: Option<&str>| Grant {
            to: to.map(Into::into),
            by: None,
            privileges: Privileges::SELECT.and(Privileges::UPDATE),
            grantable: Privileges::UPDATE,
        };
        assert_eq!(item(&to(None), "my role"), "=rw*/\"my role\"");
        assert_eq!(item(&to(Some("a\"b")), "o"), "\"a\"\"b\"=rw*/o");
    }
}
