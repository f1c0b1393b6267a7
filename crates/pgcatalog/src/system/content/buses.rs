//! The buses on which caches tell one another what is not valid any more, and the caches that are heard there.

use store::value::Value;

use super::super::System;
use super::super::rows::{Rows, int, text};
use super::super::time::moment_of;
use super::activity::optional;

/// `sqlcached_buses`
pub(super) fn buses(system: &System, rows: &mut Rows) {
    for bus in system.server().buses() {
        rows.add([
            ("bus_name", text(&bus.name)),
            ("state", text(bus.state)),
            ("since", moment_of(Some(bus.since_ms))),
            ("node", number(bus.node)),
            ("epoch", bus.epoch.map_or(Value::Null, number)),
            ("applied", int(bus.applied)),
            ("sent", int(bus.sent)),
            ("lag_ms", bus.lag_ms.map_or(Value::Null, Value::Real)),
            ("outbox", int(bus.outbox)),
            ("published", int(bus.published)),
            ("invalidated", int(bus.invalidated)),
            ("rows_heard", int(bus.rows_heard)),
            ("rows_taken", int(bus.rows_taken)),
            ("rows_given", int(bus.rows_given)),
            ("tables_wanted", int(bus.tables_wanted)),
            ("breaks", int(bus.breaks)),
            ("unapplied", int(bus.unapplied)),
            ("emptied", int(bus.emptied)),
            ("reconnects", int(bus.reconnects)),
            ("namesakes", int(bus.namesakes)),
            ("last_break", optional(bus.last_break.as_deref())),
            ("last_unapplied", optional(bus.last_unapplied.as_deref())),
            ("last_error", optional(bus.last_error.as_deref())),
        ]);
    }
}

/// `sqlcached_nodes`
pub(super) fn nodes(system: &System, rows: &mut Rows) {
    for node in system.server().nodes() {
        rows.add([
            ("bus_name", text(&node.bus)),
            ("node", number(node.node)),
            ("name", text(&node.name)),
            ("own", Value::Integer(i64::from(node.own))),
            ("namesake", Value::Integer(i64::from(node.namesake))),
            ("applied", node.applied.map_or(Value::Null, int)),
            ("lag_ms", int(node.lag_ms)),
            ("outbox", int(node.outbox)),
            ("heard_ms", int(node.heard_ms)),
        ]);
    }
}

/// A number that was drawn by lot.
fn number(drawn: u64) -> Value {
    text(&format!("{drawn:016x}"))
}
