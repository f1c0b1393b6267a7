//! What roles may do: `has_table_privilege` and its like.
//!
//! Rights are those of every table, so the table that is named must only be one.

use sqltext::error::{SqlError, state};
use store::value::Value;

use super::super::System;
use super::definitions::relation_oid;
use super::{Call, FunctionDef, fallible, function, truth};
use crate::session::Rights;

pub(super) static FUNCTIONS: &[FunctionDef] = &[
    fallible("has_any_column_privilege", (2, 3), |system, call| on_table(system, call, 0)),
    fallible("has_column_privilege", (3, 4), |system, call| on_table(system, call, 1)),
    function("has_database_privilege", (2, 3), |_, _| truth(true)),
    function("has_foreign_data_wrapper_privilege", (2, 3), |_, _| truth(true)),
    function("has_function_privilege", (2, 3), |_, _| truth(true)),
    function("has_language_privilege", (2, 3), |_, _| truth(true)),
    fallible("has_schema_privilege", (2, 3), on_schema),
    fallible("has_sequence_privilege", (2, 3), |system, call| on_table(system, call, 0)),
    function("has_server_privilege", (2, 3), |_, _| truth(true)),
    fallible("has_table_privilege", (2, 3), |system, call| on_table(system, call, 0)),
    function("has_tablespace_privilege", (2, 3), |_, _| truth(true)),
    function("has_type_privilege", (2, 3), |_, _| truth(true)),
    fallible("pg_has_role", (2, 3), has_role),
];

/// The rights of the role that stands first, or of who asks: `given` arguments are those with a role.
fn rights(system: &System, call: &Call, given: usize) -> Result<(Rights, usize), SqlError> {
    if call.count() < given {
        return Ok((system.identity().rights, 0));
    }
    Ok((named(system, call, 0)?.1, 1))
}

/// A role by its name or its number: the name and its rights.
fn named(system: &System, call: &Call, at: usize) -> Result<(String, Rights), SqlError> {
    let roles = system.server().roles();
    let name = call.text(at).unwrap_or_default();
    let is = |oid: u32, known: &str| known == name || call.oid(at) == Some(oid);
    if let Some(found) = roles.into_iter().find(|role| is(role.oid, &role.name)) {
        return Ok((found.name, found.rights));
    }
    if *name == *system.owner() {
        return Ok((name, Rights::ALL));
    }
    Err(SqlError::new(state::UNKNOWN_OBJECT, format!("role \"{name}\" does not exist")))
}

/// `has_table_privilege([role,] table, privileges)`; `more`: arguments between the last two.
fn on_table(system: &System, call: &Call, more: usize) -> Result<Value, SqlError> {
    if (0..call.count()).any(|at| call.value(at).is_null()) {
        return Ok(Value::Null);
    }
    let (rights, first) = rights(system, call, 3 + more)?;
    let table = call.text(first).unwrap_or_default();
    let numbered = table.parse::<u32>().is_ok();
    if !numbered && relation_oid(system, &table).is_none() {
        return Err(SqlError::unknown_table(&table));
    }
    let asked = call.text(call.count() - 1).unwrap_or_default();
    // One of several is enough, as in PostgreSQL.
    let mut any = false;
    for privilege in asked.split(',') {
        any |= has(rights, privilege.trim())?;
    }
    Ok(truth(any))
}

fn has(rights: Rights, privilege: &str) -> Result<bool, SqlError> {
    let (name, grants) = match privilege.len().checked_sub(18).map(|at| privilege.split_at(at)) {
        Some((name, " WITH GRANT OPTION")) => (name, true),
        _ => (privilege, false),
    };
    let own = match name.to_ascii_uppercase().as_str() {
        "SELECT" => rights.reads,
        "INSERT" | "UPDATE" | "DELETE" => rights.writes,
        "TRUNCATE" | "REFERENCES" | "TRIGGER" | "USAGE" => rights.superuser,
        _ => {
            let message = format!("unrecognized privilege type: \"{privilege}\"");
            return Err(SqlError::new(state::BAD_PARAMETER, message));
        }
    };
    Ok(rights.superuser || own && !grants)
}

/// Everybody may use a schema; superusers create in it.
fn on_schema(system: &System, call: &Call) -> Result<Value, SqlError> {
    let (rights, _) = rights(system, call, 3)?;
    let asked = call.text(call.count() - 1).unwrap_or_default().to_ascii_uppercase();
    Ok(truth(rights.superuser || asked.split(',').any(|privilege| privilege.trim() == "USAGE")))
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
