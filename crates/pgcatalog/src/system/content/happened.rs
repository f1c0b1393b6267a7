//! What happened recently: the server's figures over time, slow statements, invalidations. For those who monitor.

use store::value::Value;

use super::super::System;
use super::super::rows::{Rows, int, text};
use super::super::time::moment;
use super::activity::optional;

/// Nanoseconds as the milliseconds that are shown.
pub(super) fn ms(ns: u64) -> Value {
    const NS_PER_MS: f64 = 1e6;
    Value::Real(ns as f64 / NS_PER_MS)
}

/// `sqlcached_history`
pub(super) fn history(system: &System, rows: &mut Rows) {
    if !system.identity().rights.monitors {
        return;
    }
    for point in system.server().history() {
        let tables: serde_json::Map<_, _> =
            point.tables.into_iter().map(|(name, bytes)| (name, bytes.into())).collect();
        let counts = point.counts.each().map(|(name, count)| (name, int(count)));
        let own = [
            ("at", moment(point.at_ms)),
            ("resolution", int(point.resolution)),
            ("seconds", Value::Real(point.seconds)),
            ("connections", int(point.connections)),
            ("rows", int(point.rows)),
            ("row_bytes", int(point.row_bytes)),
            ("segment_bytes", int(point.segment_bytes)),
            ("index_bytes", int(point.index_bytes)),
            ("tables", text(&serde_json::Value::Object(tables).to_string())),
        ];
        rows.add(own.into_iter().chain(counts));
    }
}

/// `sqlcached_slow`
pub(super) fn slow(system: &System, rows: &mut Rows) {
    if !system.identity().rights.monitors {
        return;
    }
    for slow in system.server().slow_statements() {
        rows.add([
            ("at", moment(slow.at_ms)),
            ("role_name", text(&slow.role)),
            ("pid", slow.pid.map_or(Value::Null, int)),
            ("client_addr", optional(slow.address.as_deref())),
            ("protocol", text(slow.protocol)),
            ("statement", text(&slow.statement)),
            ("parameters", optional(slow.parameters.as_deref())),
            ("duration_ms", ms(slow.took_ns)),
            ("rows", int(slow.rows)),
            ("sqlstate", optional(slow.error)),
        ]);
    }
}

/// `sqlcached_invalidations`
pub(super) fn invalidations(system: &System, rows: &mut Rows) {
    if !system.identity().rights.monitors {
        return;
    }
    for one in system.server().invalidations() {
        rows.add([
            ("at", moment(one.at_ms)),
            ("since", moment(one.since_ms)),
            ("role_name", text(&one.role)),
            ("pid", one.pid.map_or(Value::Null, int)),
            ("client_addr", optional(one.address.as_deref())),
            ("protocol", text(one.protocol)),
            ("statement", text(&one.statement)),
            ("parameters", optional(one.parameters.as_deref())),
            ("table_name", optional(one.table.as_deref())),
            ("what", text(one.how)),
            ("rows", int(one.rows)),
            ("times", int(one.times)),
            ("duration_ms", one.took_ns.map_or(Value::Null, ms)),
        ]);
    }
}
