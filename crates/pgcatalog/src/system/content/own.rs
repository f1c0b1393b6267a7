//! The server's own figures: `sqlcached_*`.

use store::RemovalCause;
use store::value::Value;

use super::super::System;
use super::super::columns::ColumnLayout;
use super::super::oid::oid_of_table;
use super::super::relation::{indexes_of, tables_of};
use super::super::rows::{Rows, flag, int, text};
use super::super::time::{moment, moment_of};
use super::activity::{INSUFFICIENT, may_see, optional};
use super::fixed::{DATABASE, OWNER};
use super::happened::ms;
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
            ("hits", int(stats.hits)),
            ("misses", int(stats.misses)),
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

/// `pg_stat_statements`: the same counters under PostgreSQL's names. What does not exist here is 0; what is not
/// counted, NULL.
pub(super) fn statement_counts(system: &System, rows: &mut Rows) {
    let monitors = system.identity().rights.monitors;
    for statement in system.server().statements() {
        let mean = statement.total_ns.checked_div(statement.calls).unwrap_or(0);
        let of_query = monitors.then_some(&statement.query);
        let zeros = rows
            .layout()
            .columns
            .iter()
            .filter(|column| column.name.contains("_blk") || column.name.starts_with("jit_"));
        let zeros: Vec<_> = zeros.map(|column| (column.name, zero_of(column))).collect();
        rows.add(zeros.into_iter().chain([
            ("userid", int(OWNER)),
            ("dbid", int(DATABASE)),
            ("toplevel", flag(true)),
            ("queryid", of_query.map_or(Value::Null, |query| Value::Integer(query_id(query)))),
            ("query", text(of_query.map_or(INSUFFICIENT, |query| query))),
            ("plans", int(0)),
            ("total_plan_time", ms(0)),
            ("min_plan_time", ms(0)),
            ("max_plan_time", ms(0)),
            ("mean_plan_time", ms(0)),
            ("calls", int(statement.calls)),
            ("total_exec_time", ms(statement.total_ns)),
            ("min_exec_time", ms(statement.min_ns)),
            ("max_exec_time", ms(statement.max_ns)),
            ("mean_exec_time", ms(mean)),
            ("rows", int(statement.rows)),
            ("wal_records", int(0)),
            ("wal_fpi", int(0)),
            ("wal_bytes", text("0")),
        ]));
    }
}

fn zero_of(column: &ColumnLayout) -> Value {
    if column.is_integer() { int(0) } else { ms(0) }
}

/// The number of a statement by its text: FNV-1a, which is the same in every process and version.
fn query_id(query: &str) -> i64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = query.bytes().fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    hash.cast_signed()
}

/// `sqlcached_statements`
pub(super) fn statements(system: &System, rows: &mut Rows) {
    let monitors = system.identity().rights.monitors;
    for mut statement in system.server().statements() {
        if !monitors {
            (statement.query, statement.plan) = (INSUFFICIENT.to_owned(), None);
        }
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
    for setting in system.told_settings() {
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
