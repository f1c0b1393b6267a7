//! What bounds a table, where it stands, and what it took: `sqlcached_limits`, `sqlcached_expiry_rules`.

use store::definition::Privileges;
use store::definition::print_span;
use store::value::Value;
use store::{RemovalCause, Table, TableStats};

use super::super::System;
use super::super::relation::tables_of;
use super::super::rows::{Rows, int, text};
use super::super::time::moment_of;
use super::activity::optional;

/// One option that bounds a table.
struct Limit {
    option: &'static str,
    /// What setting and current value are counted in.
    unit: &'static str,
    /// Where the table stands.
    current: Option<fn(&TableStats) -> u64>,
    /// Rows that left by it.
    removed: Option<RemovalCause>,
}

const LIMITS: &[Limit] = &[
    Limit { option: "ttl", unit: "time", current: None, removed: Some(RemovalCause::Ttl) },
    Limit {
        option: "max_ops",
        unit: "operations",
        current: Some(|stats| stats.operations),
        removed: Some(RemovalCause::Operations),
    },
    Limit {
        option: "max_rows",
        unit: "rows",
        current: Some(|stats| stats.rows),
        removed: Some(RemovalCause::MaxRows),
    },
    Limit {
        option: "max_memory",
        unit: "bytes",
        current: Some(|stats| stats.segment_bytes),
        removed: Some(RemovalCause::MaxMemory),
    },
    Limit { option: "min_memory", unit: "bytes", current: Some(|stats| stats.segment_bytes), removed: None },
    Limit { option: "weight", unit: "factor", current: None, removed: None },
];

/// `sqlcached_limits`
pub(super) fn limits(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    let (mut bytes, mut evicted) = (0, 0);
    for table in tables_of(&catalog) {
        limits_of(table, rows);
        bytes += table.stats().segment_bytes;
        evicted += table.stats().left(RemovalCause::Memory);
    }
    let settings = system.server().settings();
    let memory = settings.iter().find(|setting| setting.name == "memory_mb");
    rows.add([
        ("table_name", Value::Null),
        ("rule", text("memory")),
        ("setting", text(&memory.map_or_else(String::new, |setting| format!("{} MB", setting.setting)))),
        ("unit", text("bytes")),
        ("current", int(bytes)),
        ("removed", int(evicted)),
    ]);
}

fn limits_of(table: &Table, rows: &mut Rows) {
    let (stats, def) = (table.stats(), table.def());
    let set = def.options.list(&def.columns);
    for limit in LIMITS {
        let setting = set.iter().find(|(name, _)| *name == limit.option).map(|(_, value)| value.as_str());
        let removed = limit.removed.map(|leaving| stats.left(leaving));
        // Rows go by a rule that was changed since, or by deadlines of their own.
        if setting.is_none() && removed.unwrap_or(0) == 0 {
            continue;
        }
        rows.add([
            ("table_name", text(table.name())),
            ("rule", text(limit.option)),
            ("setting", text(setting.unwrap_or("off"))),
            ("unit", text(limit.unit)),
            ("current", limit.current.map_or(Value::Null, |current| int(current(&stats)))),
            ("removed", removed.map_or(Value::Null, int)),
        ]);
    }
    let evicted = stats.left(RemovalCause::Memory);
    if evicted == 0 {
        return;
    }
    rows.add([
        ("table_name", text(table.name())),
        ("rule", text("memory")),
        ("setting", text("the server's")),
        ("unit", text("bytes")),
        ("current", int(stats.segment_bytes)),
        ("removed", int(evicted)),
    ]);
}

/// `sqlcached_expiry_rules`
pub(super) fn rules(system: &System, rows: &mut Rows) {
    const NS_PER_MS: f64 = 1e6;
    let catalog = system.catalog();
    let holder = system.identity().holder();
    for table in tables_of(&catalog) {
        let reads = holder.on_rows(table.def()).has(Privileges::SELECT);
        for rule in &table.def().rules {
            let figures = table.rule_figures(&rule.name);
            // It may say a value of a row.
            let last_error = figures.last_error.as_deref().filter(|_| reads);
            let ms = |ns: u64| Value::Real(ns as f64 / NS_PER_MS);
            rows.add([
                ("rule_name", text(&rule.name)),
                ("table_name", text(table.name())),
                ("condition", text(&rule.condition)),
                ("every", text(&print_span(rule.every_ms))),
                ("runs", int(figures.runs)),
                ("rows", int(figures.rows)),
                ("errors", int(figures.errors)),
                ("total_ms", ms(figures.total_ns)),
                ("last_run", moment_of(figures.last_run_ms)),
                ("last_ms", ms(figures.last_ns)),
                ("last_rows", int(figures.last_rows)),
                ("last_error", optional(last_error)),
                ("plan", optional(figures.plan.as_deref())),
            ]);
        }
    }
}
