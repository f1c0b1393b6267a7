//! What roles may do: `has_table_privilege` and its like.

use sqltext::error::{SqlError, state};
use store::definition::{Access, Privileges, TableDef};
use store::value::Value;

use super::super::System;
use super::super::array::of_texts;
use super::super::content::acl_name;
use super::super::oid::{oid_of_table, oid_of_view};
use super::super::relation::{all_sequences, columns_of};
use super::definitions::relation_oid;
use super::sequences::named_at;
use super::{Call, FunctionDef, fallible, function, truth};
use crate::session::Holder;

pub(super) static FUNCTIONS: &[FunctionDef] = &[
    function("acldefault", (2, 2), default_acl),
    fallible("has_any_column_privilege", (2, 3), |system, call| on_table(system, call, Of::AnyColumn)),
    fallible("has_column_privilege", (3, 4), |system, call| on_table(system, call, Of::Column)),
    function("has_database_privilege", (2, 3), |_, _| truth(true)),
    function("has_foreign_data_wrapper_privilege", (2, 3), |_, _| truth(true)),
    function("has_function_privilege", (2, 3), |_, _| truth(true)),
    function("has_language_privilege", (2, 3), |_, _| truth(true)),
    fallible("has_schema_privilege", (2, 3), on_schema),
    fallible("has_sequence_privilege", (2, 3), on_sequence),
    function("has_server_privilege", (2, 3), |_, _| truth(true)),
    fallible("has_table_privilege", (2, 3), |system, call| on_table(system, call, Of::Table)),
    function("has_tablespace_privilege", (2, 3), |_, _| truth(true)),
    function("has_type_privilege", (2, 3), |_, _| truth(true)),
    fallible("pg_has_role", (2, 3), has_role),
];

/// What a privilege is asked of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Table,
    /// The column that stands behind the table.
    Column,
    AnyColumn,
}

/// `acldefault(kind, owner)`: what an object grants that was granted nothing of.
fn default_acl(system: &System, call: &Call) -> Value {
    let roles = system.server().roles();
    let owner = roles.into_iter().find(|role| call.oid(1) == Some(role.oid)).map(|role| role.name);
    let owner = owner.unwrap_or_else(|| system.owner());
    // What everybody has, and what the owner has.
    let (everybody, own) = match call.text(0).as_deref() {
        Some("r") => ("", "arwdDxt"),
        Some("s") => ("", "rwU"),
        Some("n") => ("", "UC"),
        Some("d") => ("Tc", "CTc"),
        Some("f") => ("X", "X"),
        Some("l" | "T") => ("U", "U"),
        Some("c") => ("", ""),
        _ => return Value::Null,
    };
    let owner = acl_name(&owner);
    let item = |(to, letters): (&str, &str)| format!("{to}={letters}/{owner}");
    let items =
        [("", everybody), (owner.as_str(), own)].into_iter().filter(|(_, letters)| !letters.is_empty());
    of_texts(items.map(item))
}

/// The privileges of the role that stands first, or of who asks: `given` arguments are those with a role. With the
/// place of the next argument.
fn holder(system: &System, call: &Call, given: usize) -> Result<(Holder, usize), SqlError> {
    if call.count() < given {
        return Ok((system.identity().holder(), 0));
    }
    Ok((named(system, call, 0)?.1, 1))
}

/// A role by its name or its number: the name and its privileges.
fn named(system: &System, call: &Call, at: usize) -> Result<(String, Holder), SqlError> {
    let roles = system.server().roles();
    let name = call.text(at).unwrap_or_default();
    let is = |oid: u32, known: &str| known == name || call.oid(at) == Some(oid);
    if let Some(found) = roles.into_iter().find(|role| is(role.oid, &role.name)) {
        return Ok((found.name, Holder { rights: found.rights, roles: found.privileges_of }));
    }
    if name == "public" {
        return Ok((name, Holder::nobody()));
    }
    if *name == *system.owner() {
        return Ok((name, Holder::superuser()));
    }
    Err(SqlError::new(state::UNKNOWN_OBJECT, format!("role \"{name}\" does not exist")))
}

/// `has_table_privilege([role,] table, privileges)`, and the same of columns.
fn on_table(system: &System, call: &Call, of: Of) -> Result<Value, SqlError> {
    if (0..call.count()).any(|at| call.value(at).is_null()) {
        return Ok(Value::Null);
    }
    let (holder, first) = holder(system, call, if of == Of::Column { 4 } else { 3 })?;
    let table = call.text(first).unwrap_or_default();
    let oid = table.parse().ok().or_else(|| relation_oid(system, &table));
    let oid: u32 = oid.ok_or_else(|| SqlError::unknown_table(&table))?;
    let asked = call.text(call.count() - 1).unwrap_or_default();
    let column = (of == Of::Column).then(|| call.text(first + 1).unwrap_or_default());
    let granted = granted(system, &holder, oid, of, column.as_deref())?;
    // One of several is enough, as in PostgreSQL.
    let mut any = false;
    for privilege in asked.split(',') {
        let (privilege, grantable) = privilege_of(privilege, Privileges::ALL)?;
        any |= if grantable { granted.1.has(privilege) } else { granted.0.has(privilege) };
    }
    Ok(truth(any))
}

/// What somebody has on a relation, and may grant of it.
fn granted(
    system: &System,
    holder: &Holder,
    oid: u32,
    of: Of,
    column: Option<&str>,
) -> Result<(Privileges, Privileges), SqlError> {
    let catalog = system.catalog();
    let table = catalog.tables().find(|table| oid_of_table(table) == oid);
    if let Some(table) = table {
        let whole = holder.on(&table.def().access);
        let named = column.map(|name| column_name(table, name)).transpose()?;
        let own = on_columns(holder, table.def(), of, named.as_deref());
        return Ok((whole.0.and(own.0), whole.1.and(own.1)));
    }
    let sequences = all_sequences(&catalog);
    if let Some(sequence) = sequences.iter().find(|sequence| sequence.oid == oid) {
        return Ok(holder.on(&sequence.source.access()));
    }
    let view: Option<&Access> =
        catalog.views().find(|view| oid_of_view(view) == oid).map(|view| &view.access);
    Ok(match view {
        Some(access) => holder.on(access),
        // Everybody may read the system's tables, and a table's index is asked for by mistake.
        None if holder.rights.superuser => (Privileges::ALL, Privileges::ALL),
        None => (Privileges::SELECT, Privileges::NONE),
    })
}

fn on_columns(holder: &Holder, def: &TableDef, of: Of, column: Option<&str>) -> (Privileges, Privileges) {
    let wanted = |name: &str| of == Of::AnyColumn || column == Some(name);
    let columns = def.visible_columns().filter(|(_, own)| wanted(&own.name));
    columns
        .map(|(_, own)| holder.on_column(&own.grants))
        .fold(Default::default(), |all, own| (Privileges::and(all.0, own.0), Privileges::and(all.1, own.1)))
}

/// A column's name, which may be given by its number.
fn column_name(table: &store::Table, name: &str) -> Result<String, SqlError> {
    let columns = columns_of(table);
    let number = name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let numbered = number.and_then(|at| columns.get(at));
    let found = numbered.or_else(|| columns.iter().find(|column| column.name.eq_ignore_ascii_case(name)));
    found.map(|column| column.name.clone()).ok_or_else(|| SqlError::unknown_column(table.name(), name))
}

/// A privilege, and whether the right to grant it is meant.
fn privilege_of(text: &str, possible: Privileges) -> Result<(Privileges, bool), SqlError> {
    const OPTION: &str = " WITH GRANT OPTION";
    let upper = text.trim().to_ascii_uppercase();
    let (name, grantable) = match upper.strip_suffix(OPTION) {
        Some(name) => (name, true),
        None => (upper.as_str(), false),
    };
    let known = Privileges::named(name).filter(|privilege| possible.has(*privilege));
    known.map(|privilege| (privilege, grantable)).ok_or_else(|| {
        SqlError::new(state::BAD_PARAMETER, format!("unrecognized privilege type: \"{}\"", text.trim()))
    })
}

/// `has_sequence_privilege([role,] sequence, privileges)`
fn on_sequence(system: &System, call: &Call) -> Result<Value, SqlError> {
    if (0..call.count()).any(|at| call.value(at).is_null()) {
        return Ok(Value::Null);
    }
    let (holder, first) = holder(system, call, 3)?;
    let Some(source) = named_at(system, call, first)? else { return Ok(Value::Null) };
    let granted = holder.on(&source.access());
    let asked = call.text(call.count() - 1).unwrap_or_default();
    let mut any = false;
    for privilege in asked.split(',') {
        let (privilege, grantable) = privilege_of(privilege, Privileges::OF_SEQUENCE)?;
        any |= if grantable { granted.1.has(privilege) } else { granted.0.has(privilege) };
    }
    Ok(truth(any))
}

/// Everybody may use a schema; superusers create in it, and who was granted that.
fn on_schema(system: &System, call: &Call) -> Result<Value, SqlError> {
    let (holder, first) = holder(system, call, 3)?;
    let schema = call.text(first).unwrap_or_default();
    let asked = call.text(call.count() - 1).unwrap_or_default().to_ascii_uppercase();
    let has = |privilege: &str| match privilege {
        "USAGE" => true,
        _ => holder.rights.superuser || system.server().may_create(&schema, &holder.roles),
    };
    Ok(truth(asked.split(',').any(|privilege| has(privilege.trim()))))
}

/// `pg_has_role([member,] role, ...)`
fn has_role(system: &System, call: &Call) -> Result<Value, SqlError> {
    let (member, first) = match call.count() {
        2 => (system.identity().role.clone(), 0),
        _ => (named(system, call, 0)?.0, 1),
    };
    let (of, _) = named(system, call, first)?;
    let roles = system.server().roles();
    let superuser = roles.is_empty() || roles.iter().any(|role| role.name == member && role.superuser);
    Ok(truth(superuser || reaches(&roles, &member, &of)))
}

/// Whether one role is a member of another, directly or not.
fn reaches(roles: &[crate::system::server::RoleFacts], member: &str, of: &str) -> bool {
    let mut found: Vec<_> = roles.iter().filter(|role| role.name == member).collect();
    let mut at = 0;
    while let Some(role) = found.get(at).copied() {
        at += 1;
        for next in roles.iter().filter(|next| role.member_of.iter().any(|(oid, _)| *oid == next.oid)) {
            if !found.iter().any(|known| known.oid == next.oid) {
                found.push(next);
            }
        }
    }
    found.iter().any(|role| role.name == of)
}
