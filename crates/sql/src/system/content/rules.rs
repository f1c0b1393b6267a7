//! What bounds a table, where it stands, and what it took: `sqlcached_limits`.

use store::value::Value;
use store::{Leaving, Table, TableStats};

use super::super::System;
use super::super::relation::tables_of;
use super::super::rows::{Rows, int, text};

/// One option that bounds a table.
struct Limit {
    option: &'static str,
    /// What setting and current value are counted in.
    unit: &'static str,
    /// Where the table stands.
    current: Option<fn(&TableStats) -> u64>,
    /// Rows that left by it.
    removed: Option<Leaving>,
}

const LIMITS: &[Limit] = &[
    Limit { option: "ttl", unit: "time", current: None, removed: Some(Leaving::Ttl) },
    Limit {
        option: "max_ops",
        unit: "operations",
        current: Some(|stats| stats.operations),
        removed: Some(Leaving::Operations),
    },
    Limit {
        option: "max_rows",
        unit: "rows",
        current: Some(|stats| stats.rows),
        removed: Some(Leaving::MaxRows),
    },
    Limit {
        option: "max_memory",
        unit: "bytes",
        current: Some(|stats| stats.segment_bytes),
        removed: Some(Leaving::MaxMemory),
    },
    Limit { option: "min_memory", unit: "bytes", current: Some(|stats| stats.segment_bytes), removed: None },
    Limit { option: "weight", unit: "factor", current: None, removed: None },
];

/// `sqlcached_limits`
pub(super) fn limits(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    for table in tables_of(&catalog) {
        limits_of(table, rows);
    }
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
    rows.add([
        ("table_name", text(table.name())),
        ("rule", text("memory")),
        ("setting", text("the server's")),
        ("unit", text("bytes")),
        ("current", int(stats.segment_bytes)),
        ("removed", int(stats.left(Leaving::Memory))),
    ]);
}
