//! Foreign servers and user mappings, as PostgreSQL lists them. Passwords are shown to nobody.

use store::definition::{MappingDef, ServerDef, ServerOption, Wrapper};
use store::value::Value;

use super::super::System;
use super::super::oid::{oid_of_mapping, oid_of_server};
use super::super::rows::{Rows, int, text};
use super::super::server::SourceFacts;
use super::super::time::moment_of;
use super::activity::optional;
use super::fixed::{OWNER, wrapper_oid};
use super::grants;
use super::relations::array;

/// `pg_foreign_data_wrapper`
pub(super) fn wrappers(_: &System, rows: &mut Rows) {
    for wrapper in Wrapper::ALL {
        let oid = int(wrapper_oid(wrapper));
        rows.add([("oid", oid), ("fdwname", text(wrapper.name())), ("fdwowner", int(OWNER))]);
    }
}

/// `pg_foreign_server`
pub(super) fn servers(system: &System, rows: &mut Rows) {
    for server in system.catalog().servers() {
        rows.add([
            ("oid", int(oid_of_server(server))),
            ("srvname", text(&server.name)),
            ("srvowner", grants::owner_oid(system, &server.access)),
            ("srvfdw", int(wrapper_oid(server.wrapper))),
            ("srvtype", optional(server.kind.as_deref())),
            ("srvversion", optional(server.version.as_deref())),
            ("srvacl", grants::of_server(system, &server.access)),
            ("srvoptions", options(server.options.iter().cloned())),
        ]);
    }
}

/// `pg_user_mapping`, for superusers
pub(super) fn mapping_rows(system: &System, rows: &mut Rows) {
    if !system.identity().rights.superuser {
        return;
    }
    for (server, mapping) in all(system.catalog().servers()) {
        rows.add([
            ("oid", int(oid_of_mapping(server, mapping))),
            ("umuser", role_oid(system, mapping)),
            ("umserver", int(oid_of_server(server))),
            ("umoptions", options(mapping.shown())),
        ]);
    }
}

/// `pg_user_mappings`: the options of a mapping are for who may change it.
pub(super) fn mappings(system: &System, rows: &mut Rows) {
    let holder = system.identity().holder();
    for (server, mapping) in all(system.catalog().servers()) {
        let visible = holder.rights.superuser || holder.owns(&server.access);
        rows.add([
            ("umid", int(oid_of_mapping(server, mapping))),
            ("srvid", int(oid_of_server(server))),
            ("srvname", text(&server.name)),
            ("umuser", role_oid(system, mapping)),
            ("usename", text(mapping.role.as_deref().unwrap_or("public"))),
            ("umoptions", if visible { options(mapping.shown()) } else { Value::Null }),
        ]);
    }
}

/// `sqlcached_cached_queries`
pub(super) fn queries(system: &System, rows: &mut Rows) {
    let holder = system.identity().holder();
    for server in system.catalog().servers() {
        let visible = holder.rights.superuser || holder.owns(&server.access);
        for query in &server.queries {
            rows.add([
                ("server_name", text(&server.name)),
                ("query_name", text(&query.name)),
                ("statement", if visible { text(&query.statement) } else { Value::Null }),
                ("options", options(query.options.iter().cloned())),
            ]);
        }
    }
}

/// `sqlcached_forwarded`
pub(super) fn forwarded(system: &System, rows: &mut Rows) {
    if !system.identity().rights.monitors {
        return;
    }
    for one in system.server().forwarded() {
        rows.add([
            ("server_name", text(&one.server)),
            ("id", int(one.number)),
            ("statement", text(&one.statement)),
            ("query_name", optional(one.name.as_deref())),
            ("user_name", if one.user.is_empty() { Value::Null } else { text(&one.user) }),
            ("state", text(one.state)),
            ("reason", optional(one.reason.as_deref())),
            ("cure", optional(one.cure.as_deref())),
            ("depends", array(one.depends.into_iter())),
            ("forwarded", int(one.forwarded)),
            ("forwarded_ms", Value::Real(one.forwarded_us as f64 / 1e3)),
            ("hits", int(one.hits)),
            ("joined", int(one.joined)),
            ("kept", int(one.kept)),
            ("late", int(one.late)),
        ]);
    }
}

/// `sqlcached_sources`
pub(super) fn sources(system: &System, rows: &mut Rows) {
    for source in system.server().sources() {
        rows.add([
            ("source_name", text(&source.name)),
            ("state", text(source.state)),
            ("since", moment_of(Some(source.since_ms))),
            ("slot", optional(source.slot.as_deref())),
            ("received_lsn", place(&source, source.received_lsn)),
            ("applied_lsn", place(&source, source.applied_lsn)),
            ("source_lsn", place(&source, source.source_lsn)),
            ("lag_ms", source.lag_ms.map_or(Value::Null, Value::Real)),
            ("lag_bytes", int(source.lag_bytes())),
            ("events", int(source.events)),
            ("invalidated", int(source.invalidated)),
            ("transactions", int(source.transactions)),
            ("reconnects", int(source.reconnects)),
            ("unsettled", int(source.unsettled)),
            ("emptied", int(source.emptied)),
            ("fetches", int(source.fetches.queries)),
            ("fills", int(source.fetches.fills)),
            ("fills_refused", int(source.fetches.refused)),
            ("fills_failed", int(source.fetches.failed)),
            ("updated", int(source.updated)),
            ("misfits", int(source.misfits)),
            ("checked", int(source.checked)),
            ("differing", int(source.differing)),
            ("wal_status", optional(source.wal_status.as_deref())),
            ("last_break", optional(source.last_break.as_deref())),
            ("last_error", optional(source.last_error.as_deref())),
        ]);
    }
}

/// A place in the source's log, as the source writes it: `0/14FFA38`, or `bin.000003:4711`.
fn place(source: &SourceFacts, place: u64) -> Value {
    let (high, low) = (place >> 32, place & 0xffff_ffff);
    match &source.log {
        None => text(&format!("{high:X}/{low:X}")),
        Some(log) => text(&format!("{log}.{high:06}:{low}")),
    }
}

fn all(servers: &[std::sync::Arc<ServerDef>]) -> impl Iterator<Item = (&ServerDef, &MappingDef)> {
    servers.iter().flat_map(|server| server.mappings.iter().map(move |mapping| (&**server, mapping)))
}

/// The number of the role that a mapping is of; 0 stands for everybody.
fn role_oid(system: &System, mapping: &MappingDef) -> Value {
    let Some(role) = &mapping.role else { return int(0) };
    let roles = system.server().roles();
    int(roles.iter().find(|known| known.name == *role).map_or(OWNER, |known| known.oid))
}

fn options(options: impl Iterator<Item = ServerOption>) -> Value {
    let mut options = options.map(|(name, value)| format!("{name}={value}")).peekable();
    if options.peek().is_none() { Value::Null } else { array(options) }
}
