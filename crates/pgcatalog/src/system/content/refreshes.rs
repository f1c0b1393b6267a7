//! The materialized views, and what their refreshes did: `sqlcached_views`.

use store::definition::{Privileges, print_span};
use store::value::Value;

use super::super::System;
use super::super::oid::oid_of_table;
use super::super::relation::tables_of;
use super::super::rows::{Rows, flag, int, text};
use super::super::time::moment_of;
use super::activity::optional;
use super::happened::ms;

/// `sqlcached_views`
pub(super) fn views(system: &System, rows: &mut Rows) {
    let catalog = system.catalog();
    let holder = system.identity().holder();
    let now = system.store().now();
    for table in tables_of(&catalog) {
        let def = table.def();
        let (Some(view), Some(figures)) = (&def.materialized, table.refresh_figures()) else { continue };
        // It may say a value of a row.
        let reads = holder.on_rows(def).has(Privileges::SELECT);
        let refresh = def.options.refresh_ms.map(print_span);
        rows.add([
            ("view_name", text(table.name())),
            ("oid", int(oid_of_table(table))),
            ("query", text(&view.written)),
            ("populated", flag(view.populated)),
            ("stale", flag(table.is_stale_view())),
            ("rows", int(table.stats().rows)),
            ("source", optional(def.source_of_view())),
            ("refresh", optional(refresh.as_deref())),
            ("refresh_on", optional(def.options.refresh_on.as_deref())),
            ("refreshes", int(figures.refreshes)),
            ("errors", int(figures.errors)),
            ("total_ms", ms(figures.total_ns)),
            ("last_refresh", moment_of(figures.last_refresh_ms)),
            ("last_ms", ms(figures.last_ns)),
            ("last_changed", int(figures.last_changed)),
            ("next_in", table.refreshed_in(now).map_or(Value::Null, int)),
            ("last_error", optional(figures.last_error.as_deref().filter(|_| reads))),
        ]);
    }
}
