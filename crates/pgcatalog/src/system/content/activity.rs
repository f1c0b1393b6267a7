//! What goes on: sessions, settings, counts.

use store::value::Value;

use super::super::System;
use super::super::oid::oid_of_table;
use super::super::relation::tables_of;
use super::super::rows::{Rows, int, text};
use super::fixed::{DATABASE, OWNER, schema_of};
use crate::advisory::LockFacts;
use crate::session::Identity;
use crate::system::functions::PRESET;
use crate::system::server::SessionFacts;
use crate::system::time::{moment, moment_of};

/// A text, or NULL.
pub(super) fn optional(value: Option<&str>) -> Value {
    value.map_or(Value::Null, text)
}

/// What PostgreSQL shows in the place of what the asker may not know.
pub(super) const INSUFFICIENT: &str = "<insufficient privilege>";

/// Whether somebody is shown what a session does: it is its own, or it monitors.
pub(super) fn may_see(asker: &Identity, session: &SessionFacts) -> bool {
    asker.rights.superuser || asker.rights.monitors || session.user == asker.user
}

/// `pg_stat_activity`
pub(super) fn sessions(system: &System, rows: &mut Rows) {
    let asker = system.identity();
    for session in system.server().sessions() {
        let shown = may_see(&asker, &session);
        let query = if shown { &session.query } else { INSUFFICIENT };
        let address = session.address.as_deref().filter(|_| shown);
        rows.add([
            ("datid", int(DATABASE)),
            ("datname", text(&session.database)),
            ("pid", int(session.pid)),
            ("usesysid", int(OWNER)),
            ("usename", text(&session.user)),
            ("application_name", text(&session.application)),
            ("client_addr", optional(address)),
            ("backend_start", moment(session.started_ms)),
            ("xact_start", moment_of(session.transaction_started_ms)),
            ("query_start", moment_of(session.query_started_ms)),
            ("state_change", moment_of(session.state_changed_ms)),
            ("state", text(session.state)),
            ("query", text(query)),
            ("backend_type", text("client backend")),
        ]);
    }
}

/// `pg_stat_ssl`
pub(super) fn encryption(system: &System, rows: &mut Rows) {
    let asker = system.identity();
    for session in system.server().sessions() {
        let shown = may_see(&asker, &session);
        let pid = ("pid", int(session.pid));
        let Some(facts) = session.encryption.filter(|_| shown) else {
            rows.add([pid, ("ssl", if shown { int(0) } else { Value::Null })]);
            continue;
        };
        let client = facts.client.as_ref();
        let of_client = |at: usize| optional(client.map(|client| client[at].as_str()));
        rows.add([
            pid,
            ("ssl", int(1)),
            ("version", text(facts.version)),
            ("cipher", text(&facts.cipher)),
            ("bits", int(facts.bits)),
            ("client_dn", of_client(0)),
            ("client_serial", of_client(1)),
            ("issuer_dn", of_client(2)),
        ]);
    }
}

/// `pg_locks`: advisory locks. Rows are never locked.
pub(super) fn locks(system: &System, rows: &mut Rows) {
    for LockFacts { key, mode, pid, waits_since_ms } in system.server().advisory_locks() {
        rows.add([
            ("locktype", text("advisory")),
            ("database", int(DATABASE)),
            ("classid", int(key.upper)),
            ("objid", int(key.lower)),
            ("objsubid", int(if key.pair { 2 } else { 1 })),
            ("virtualtransaction", text(&format!("{pid}/0"))),
            ("pid", int(pid)),
            ("mode", text(mode.name())),
            ("granted", int(i32::from(waits_since_ms.is_none()))),
            ("fastpath", int(0)),
            ("waitstart", moment_of(waits_since_ms)),
        ]);
    }
}

/// `pg_stat_bgwriter`: one row, of nothing. No pages are written.
pub(super) fn background_writer(_: &System, rows: &mut Rows) {
    rows.add([
        ("checkpoints_timed", int(0)),
        ("checkpoints_req", int(0)),
        ("checkpoint_write_time", Value::Real(0.0)),
        ("checkpoint_sync_time", Value::Real(0.0)),
        ("buffers_checkpoint", int(0)),
        ("buffers_clean", int(0)),
        ("maxwritten_clean", int(0)),
        ("buffers_backend", int(0)),
        ("buffers_backend_fsync", int(0)),
        ("buffers_alloc", int(0)),
    ]);
}

/// `pg_stat_archiver`: the same. Nothing is archived.
pub(super) fn archiver(_: &System, rows: &mut Rows) {
    rows.add([("archived_count", int(0)), ("failed_count", int(0))]);
}

/// `pg_settings`
pub(super) fn settings(system: &System, rows: &mut Rows) {
    for setting in system.told_settings() {
        rows.add([
            ("name", text(&setting.name)),
            ("setting", text(&setting.setting)),
            ("unit", optional(setting.unit.as_deref())),
            ("category", text(&setting.category)),
            ("short_desc", text(&setting.description)),
            ("context", text("user")),
            ("vartype", text(kind_of(&setting.setting))),
            ("source", text(&setting.source)),
            ("boot_val", text(&setting.default)),
            ("reset_val", text(&setting.setting)),
            ("pending_restart", int(0)),
        ]);
    }
    for &(name, value) in PRESET {
        rows.add(setting(name, value, value, ("Preset Options", "internal")));
    }
    let own = system.settings();
    let told = system.server().settings();
    for (name, default) in system.server().session_settings() {
        let known =
            PRESET.iter().any(|(preset, _)| *preset == name) || told.iter().any(|told| told.name == name);
        if !known {
            let value = own.get(name).map_or(default, String::as_str);
            rows.add(setting(name, value, default, ("Client Connection Defaults", "user")));
        }
    }
}

fn setting(
    name: &str,
    value: &str,
    default: &str,
    (category, context): (&str, &str),
) -> [(&'static str, Value); 9] {
    [
        ("name", text(name)),
        ("setting", text(value)),
        ("category", text(category)),
        ("context", text(context)),
        ("vartype", text(kind_of(value))),
        ("source", text(if value == default { "default" } else { "session" })),
        ("boot_val", text(default)),
        ("reset_val", text(default)),
        ("pending_restart", int(0)),
    ]
}

/// What PostgreSQL calls the type of a setting.
fn kind_of(value: &str) -> &'static str {
    match value {
        "on" | "off" => "bool",
        number if number.parse::<i64>().is_ok() => "integer",
        _ => "string",
    }
}

/// `pg_statio_user_tables`: nothing is read from a disk.
pub(super) fn table_names(system: &System, rows: &mut Rows) {
    for table in tables_of(&system.catalog()) {
        rows.add([
            ("relid", int(oid_of_table(table))),
            ("schemaname", text(schema_of(table))),
            ("relname", text(table.def().own_name())),
            ("heap_blks_read", int(0)),
            ("heap_blks_hit", int(0)),
        ]);
    }
}

/// `pg_stat_user_tables`
pub(super) fn table_counts(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    for table in tables_of(&catalog) {
        let stats = table.stats();
        rows.add([
            ("relid", int(oid_of_table(table))),
            ("schemaname", text(schema_of(table))),
            ("relname", text(table.def().own_name())),
            ("n_tup_ins", int(stats.written)),
            ("n_tup_del", int(stats.evicted + stats.expired)),
            ("n_live_tup", int(stats.rows)),
            ("n_dead_tup", int(0)),
        ]);
    }
}
