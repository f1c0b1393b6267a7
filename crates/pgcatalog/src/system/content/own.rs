//! The server's own figures: `sqlcached_*`.

use store::RemovalCause;
use store::value::Value;

use super::super::System;
use super::super::oid::oid_of_table;
use super::super::relation::{indexes_of, tables_of};
use super::super::rows::{Rows, flag, int, text};
use super::super::time::{moment, moment_of};
use super::activity::{INSUFFICIENT, may_see, optional};
use super::relations::options;

/// `sqlcached_tables`
pub(super) fn tables(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    for table in tables_of(&catalog) {
        let (stats, def) = (table.stats(), table.def());
        let option = |name: &str| {
            let set = def.options.list(&def.columns);
            let found = set.into_iter().find(|(known, _)| *known == name);
            found.map_or(Value::Null, |(_, value)| Value::Text(value))
        };
        let indexes: usize = table.indexes().iter().map(|index| index.heap_bytes()).sum();
        rows.add([
            ("table_name", text(table.name())),
            ("oid", int(oid_of_table(table))),
            ("rows", int(stats.rows)),
            ("bytes", int(stats.bytes)),
            ("segment_bytes", int(stats.segment_bytes)),
            ("index_bytes", int(indexes)),
            ("written", int(stats.written)),
            ("expired", int(stats.expired)),
            ("evicted", int(stats.evicted)),
            ("invalidated", int(stats.left(RemovalCause::Invalidated))),
            ("flushed", int(stats.left(RemovalCause::Flushed))),
            ("ttl", option("ttl")),
            ("max_rows", def.options.max_rows.map_or(Value::Null, int)),
            ("prefix", option("prefix")),
            ("value_column", option("value")),
            ("options", options(table)),
        ]);
    }
}

/// `sqlcached_indexes`
pub(super) fn indexes(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    for table in tables_of(&catalog) {
        for facts in indexes_of(table) {
            rows.add([
                ("index_name", text(&facts.name)),
                ("table_name", text(table.name())),
                ("oid", int(facts.oid)),
                ("columns", text(&facts.column_list(table))),
                ("is_unique", flag(facts.unique)),
                ("is_primary", flag(facts.primary)),
                ("ordered", flag(facts.index.is_some())),
                ("entries", int(facts.index.as_ref().map_or_else(|| table.rows(), |index| index.len()))),
                ("bytes", int(facts.index.as_ref().map_or(0, |index| index.heap_bytes()))),
            ]);
        }
    }
}

/// `sqlcached_sessions`
pub(super) fn sessions(system: &System, rows: &mut Rows) {
    let asker = system.identity();
    for session in system.server().sessions() {
        let shown = may_see(&asker, &session);
        let query = if shown { &session.query } else { INSUFFICIENT };
        let address = session.address.as_deref().filter(|_| shown);
        rows.add([
            ("pid", int(session.pid)),
            ("user_name", text(&session.user)),
            ("database_name", text(&session.database)),
            ("application_name", text(&session.application)),
            ("client_addr", optional(address)),
            ("protocol", text(session.protocol)),
            ("started", moment(session.started_ms)),
            ("state", text(session.state)),
            ("query", text(query)),
            ("query_started", moment_of(session.query_started_ms)),
            ("transaction_started", moment_of(session.transaction_started_ms)),
            ("state_changed", moment_of(session.state_changed_ms)),
            ("statements", int(session.statements)),
        ]);
    }
}

/// `sqlcached_statements`
pub(super) fn statements(system: &System, rows: &mut Rows) {
    const NS_PER_MS: f64 = 1e6;
    let monitors = system.identity().rights.monitors;
    for mut statement in system.server().statements() {
        if !monitors {
            (statement.query, statement.plan) = (INSUFFICIENT.to_owned(), None);
        }
        let ms = |ns: u64| Value::Real(ns as f64 / NS_PER_MS);
        let mean = statement.total_ns.checked_div(statement.calls).unwrap_or(0);
        rows.add([
            ("query", text(&statement.query)),
            ("calls", int(statement.calls)),
            ("errors", int(statement.errors)),
            ("total_ms", ms(statement.total_ns)),
            ("mean_ms", ms(mean)),
            ("min_ms", ms(statement.min_ns)),
            ("max_ms", ms(statement.max_ns)),
            ("rows", int(statement.rows)),
            ("plan", optional(statement.plan.as_deref())),
            ("native_calls", int(statement.native_calls)),
            ("sqlite_calls", int(statement.sqlite_calls)),
        ]);
    }
}

/// `sqlcached_settings`
pub(super) fn settings(system: &System, rows: &mut Rows) {
    for setting in system.server().settings() {
        rows.add([
            ("name", text(&setting.name)),
            ("setting", text(&setting.setting)),
            ("unit", optional(setting.unit.as_deref())),
            ("source", text(&setting.source)),
            ("description", text(&setting.description)),
            ("category", text(&setting.category)),
        ]);
    }
}

/// `sqlcached_refusals`: for those who monitor.
pub(super) fn refusals(system: &System, rows: &mut Rows) {
    if !system.identity().rights.monitors {
        return;
    }
    for refused in system.server().refusals() {
        rows.add([
            ("at", moment(refused.at_ms)),
            ("role_name", text(&refused.role)),
            ("client_addr", optional(refused.address.as_deref())),
            ("protocol", text(refused.protocol)),
            ("request", text(&refused.request)),
            ("reason", text(&refused.reason)),
        ]);
    }
}

/// `sqlcached_roles`: each role, for those who monitor; else the own ones.
pub(super) fn roles(system: &System, rows: &mut Rows) {
    let asker = system.identity().holder();
    let counts = system.server().role_counts();
    for counts in counts.iter().filter(|counts| asker.rights.monitors || asker.is(&counts.role)) {
        rows.add([
            ("role_name", text(&counts.role)),
            ("logins", int(counts.logins)),
            ("failures", int(counts.failures)),
            ("refusals", int(counts.refusals)),
        ]);
    }
}
