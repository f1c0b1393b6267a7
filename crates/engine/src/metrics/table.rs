//! The table of metrics.

use std::sync::atomic::Ordering;

use sql::{BUS_STATES, BusFacts, FetchFacts, SOURCE_STATES, SourceFacts};

use super::Measured::{Count, Real, Spread};
use super::MetricKind::{self, Counter, Gauge, Histogram};
use super::figures::{CAUSES, Figures, OfTable, OfView};
use super::{Give, Measured, Metric};
use crate::counters::Counter as Counted;
use crate::latency::CLASSES;

/// Every metric, in the order in which they are written.
pub static METRICS: &[Metric] = &[
    metric("sqlcached_info", Gauge, &["version"], "The version, as a label of the value 1.", |_, give| {
        give(&[env!("CARGO_PKG_VERSION")], Count(1));
    }),
    metric("sqlcached_uptime_seconds", Gauge, &[], "Time since the start.", |figures, give| {
        give(&[], Real(figures.uptime_seconds()));
    }),
    metric(
        "sqlcached_housekeeping_age_seconds",
        Gauge,
        &[],
        "Time since the last tick of the housekeeping thread, which comes sixteen times a second.",
        |figures, give| give(&[], Real(figures.tick_age_seconds())),
    ),
    metric(
        "sqlcached_recovery_complete",
        Gauge,
        &[],
        "1 when all rows of an earlier process have been checked; 0 while they are.",
        |figures, give| give(&[], Count(u64::from(figures.engine.store.recovered().complete))),
    ),
    metric(
        "sqlcached_cpu_seconds_total",
        Counter,
        &["mode"],
        "Processor time of the process.",
        |figures, give| {
            for (mode, ticks) in ["user", "system"].into_iter().zip(figures.processor) {
                give(&[mode], Real(ticks as f64 / 100.0));
            }
        },
    ),
    metric(
        "sqlcached_resident_memory_bytes",
        Gauge,
        &[],
        "Memory of the process that is resident, including the part of the arena that it has touched.",
        |figures, give| give(&[], Count(figures.resident_bytes)),
    ),
    metric("sqlcached_memory_limit_bytes", Gauge, &[], "Memory for rows (memory_mb).", |figures, give| {
        give(&[], Count(figures.usage.memory_bytes));
    }),
    metric(
        "sqlcached_segment_bytes",
        Gauge,
        &[],
        "Bytes of the segments that hold rows.",
        |figures, give| {
            give(&[], Count(figures.usage.segment_bytes));
        },
    ),
    metric(
        "sqlcached_index_bytes",
        Gauge,
        &["kind"],
        "Bytes of indexes: hash is in the arena, ordered is on the heap with versions kept for running statements.",
        |figures, give| {
            give(&["hash"], Count(figures.usage.index_bytes));
            give(&["ordered"], Count(figures.usage.heap_bytes));
        },
    ),
    metric(
        "sqlcached_rows",
        Gauge,
        &[],
        "Rows, including expired rows that were not cleared yet.",
        |figures, give| {
            give(&[], Count(figures.usage.rows));
        },
    ),
    metric("sqlcached_row_bytes", Gauge, &[], "Bytes of these rows.", |figures, give| {
        give(&[], Count(figures.usage.row_bytes));
    }),
    metric(
        "sqlcached_connections",
        Gauge,
        &[],
        "Open connections of memcached and PostgreSQL clients.",
        |figures, give| {
            give(&[], Count(figures.engine.connections.load(Ordering::Relaxed) as u64));
        },
    ),
    metric(
        "sqlcached_connections_limit",
        Gauge,
        &[],
        "Connections that may be open (max_connections).",
        |figures, give| {
            give(&[], Count(figures.engine.connections_max.load(Ordering::Relaxed) as u64));
        },
    ),
    metric(
        "sqlcached_connections_opened_total",
        Counter,
        &[],
        "Connections that were accepted.",
        |figures, give| {
            give(&[], Count(figures.engine.connections_total.load(Ordering::Relaxed)));
        },
    ),
    metric(
        "sqlcached_connections_rejected_total",
        Counter,
        &[],
        "Connections that were refused because there were too many.",
        |figures, give| give(&[], Count(figures.engine.connections_rejected.load(Ordering::Relaxed))),
    ),
    metric(
        "sqlcached_connections_kicked_total",
        Counter,
        &["reason"],
        "Connections that the server closed: idle too long, too slow, or with too many replies waiting.",
        |figures, give| {
            let kicks = [
                ("idle", Counted::IdleKicks),
                ("slow", Counted::SlowKicks),
                ("output", Counted::OutputKicks),
            ];
            counts(figures, give, &kicks);
        },
    ),
    metric("sqlcached_sessions", Gauge, &["state"], "SQL sessions by what they do.", |figures, give| {
        let sessions = figures.engine.activity.sessions.all();
        for state in ["active", "idle", "idle in transaction", "idle in transaction (aborted)"] {
            give(&[state], Count(sessions.iter().filter(|session| session.state == state).count() as u64));
        }
    }),
    metric(
        "sqlcached_network_bytes_total",
        Counter,
        &["direction"],
        "Bytes received and sent.",
        |figures, give| {
            counts(figures, give, &[("received", Counted::BytesRead), ("sent", Counted::BytesWritten)]);
        },
    ),
    metric(
        "sqlcached_commands_total",
        Counter,
        &["command", "status"],
        "Commands of memcached clients, by outcome; SQL statements of all clients, by whether they worked.",
        commands,
    ),
    metric(
        "sqlcached_command_duration_seconds",
        Histogram,
        &["listener", "command"],
        "Time of commands in the server, without the socket. At least one memcached command in 64 and one statement in 16 is timed, and counts for as many.",
        |figures, give| {
            for ((listener, command), spread) in CLASSES.iter().zip(&figures.latencies) {
                give(&[listener, command], Spread(spread));
            }
        },
    ),
    metric(
        "sqlcached_refused_writes_total",
        Counter,
        &["reason"],
        "Values that memcached clients could not store.",
        |figures, give| {
            counts(
                figures,
                give,
                &[("too_large", Counted::StoreTooLarge), ("no_memory", Counted::StoreNoMemory)],
            );
        },
    ),
    metric(
        "sqlcached_rows_removed_total",
        Counter,
        &["cause"],
        "Rows that left: expired, evicted, invalidated one by one, flushed with a table.",
        |figures, give| {
            for (cause, (name, _)) in CAUSES.iter().enumerate() {
                give(&[name], Count(figures.removed(cause)));
            }
        },
    ),
    metric("sqlcached_table_rows", Gauge, &["table"], "Rows by table.", |figures, give| {
        by_table(figures, give, |table| table.rows);
    }),
    metric("sqlcached_table_bytes", Gauge, &["table"], "Bytes of rows by table.", |figures, give| {
        by_table(figures, give, |table| table.bytes);
    }),
    metric(
        "sqlcached_table_segment_bytes",
        Gauge,
        &["table"],
        "Bytes of segments by table.",
        |figures, give| {
            by_table(figures, give, |table| table.segment_bytes);
        },
    ),
    metric(
        "sqlcached_table_written_total",
        Counter,
        &["table"],
        "Rows written, by table.",
        |figures, give| {
            by_table(figures, give, |table| table.written);
        },
    ),
    metric(
        "sqlcached_table_hits_total",
        Counter,
        &["table"],
        "Lookups by a whole primary key that found a row, by table.",
        |figures, give| by_table(figures, give, |table| table.hits),
    ),
    metric(
        "sqlcached_table_misses_total",
        Counter,
        &["table"],
        "Lookups by a whole primary key that found none, by table.",
        |figures, give| by_table(figures, give, |table| table.misses),
    ),
    metric(
        "sqlcached_table_rows_removed_total",
        Counter,
        &["table", "cause"],
        "Rows that left, by table and cause.",
        |figures, give| {
            for table in &figures.tables {
                for ((name, _), count) in CAUSES.iter().zip(table.removed) {
                    give(&[&table.name, name], Count(count));
                }
            }
        },
    ),
    metric(
        "sqlcached_bus_state",
        Gauge,
        &["bus", "state"],
        "1 for the state that the connection to a bus of caches has, 0 for the others.",
        |figures, give| {
            for bus in &figures.buses {
                for state in BUS_STATES {
                    give(&[&bus.name, state], Count(u64::from(bus.state == state)));
                }
            }
        },
    ),
    metric(
        "sqlcached_bus_lag_seconds",
        Gauge,
        &["bus"],
        "Time since the newest message of this cache that came back on the bus was sent; none while it is away.",
        |figures, give| {
            for bus in &figures.buses {
                if let Some(ms) = bus.lag_ms {
                    give(&[&bus.name], Real(ms / 1_000.0));
                }
            }
        },
    ),
    metric(
        "sqlcached_bus_outbox",
        Gauge,
        &["bus"],
        "Invalidations that the bus has not acknowledged.",
        |figures, give| by_bus(figures, give, |bus| bus.outbox),
    ),
    metric(
        "sqlcached_bus_published_total",
        Counter,
        &["bus"],
        "Messages of this cache that the bus has acknowledged.",
        |figures, give| by_bus(figures, give, |bus| bus.published),
    ),
    metric(
        "sqlcached_bus_invalidated_total",
        Counter,
        &["bus"],
        "Invalidations of other caches that were applied.",
        |figures, give| by_bus(figures, give, |bus| bus.invalidated),
    ),
    metric(
        "sqlcached_bus_rows_total",
        Counter,
        &["bus"],
        "Rows of other caches that were applied.",
        |figures, give| by_bus(figures, give, |bus| bus.rows_heard),
    ),
    metric(
        "sqlcached_bus_rows_taken_total",
        Counter,
        &["bus"],
        "Rows that other caches gave to this one, which lacked them.",
        |figures, give| by_bus(figures, give, |bus| bus.rows_taken),
    ),
    metric(
        "sqlcached_bus_rows_given_total",
        Counter,
        &["bus"],
        "Rows that this cache gave to others, which lacked them.",
        |figures, give| by_bus(figures, give, |bus| bus.rows_given),
    ),
    metric(
        "sqlcached_bus_tables_wanted",
        Gauge,
        &["bus"],
        "Tables of which this cache lacks rows that others may have.",
        |figures, give| by_bus(figures, give, |bus| bus.tables_wanted),
    ),
    metric(
        "sqlcached_bus_breaks_total",
        Counter,
        &["bus"],
        "How often the bus had lost something, and all of its tables were distrusted.",
        |figures, give| by_bus(figures, give, |bus| bus.breaks),
    ),
    metric(
        "sqlcached_bus_unapplied_total",
        Counter,
        &["bus"],
        "Invalidations of other caches that could not be applied, so that their tables were emptied.",
        |figures, give| by_bus(figures, give, |bus| bus.unapplied),
    ),
    metric(
        "sqlcached_bus_emptied_total",
        Counter,
        &["bus"],
        "How often rows of a table were not believed any more because the bus was not heard.",
        |figures, give| by_bus(figures, give, |bus| bus.emptied),
    ),
    metric(
        "sqlcached_bus_namesakes",
        Gauge,
        &["bus"],
        "Other caches on the bus that have the name of this one.",
        |figures, give| by_bus(figures, give, |bus| bus.namesakes),
    ),
    metric(
        "sqlcached_source_state",
        Gauge,
        &["source", "state"],
        "1 for the state that the change stream of a source has, 0 for the others.",
        |figures, give| {
            for source in &figures.sources {
                for state in SOURCE_STATES {
                    give(&[&source.name, state], Count(u64::from(source.state == state)));
                }
            }
        },
    ),
    metric(
        "sqlcached_source_lag_seconds",
        Gauge,
        &["source"],
        "Time that the last sign of life took from the source's log to here; none while there is no stream.",
        |figures, give| {
            for source in &figures.sources {
                if let Some(ms) = source.lag_ms {
                    give(&[&source.name], Real(ms / 1_000.0));
                }
            }
        },
    ),
    metric(
        "sqlcached_source_lag_bytes",
        Gauge,
        &["source"],
        "Bytes of the source's log that were not applied, as far as was heard of it.",
        |figures, give| by_source(figures, give, SourceFacts::lag_bytes),
    ),
    metric(
        "sqlcached_source_events_total",
        Counter,
        &["source"],
        "Changes of tables there that a table here depends on.",
        |figures, give| by_source(figures, give, |source| source.events),
    ),
    metric(
        "sqlcached_source_invalidated_rows_total",
        Counter,
        &["source"],
        "Rows here that these changes invalidated one by one.",
        |figures, give| by_source(figures, give, |source| source.invalidated),
    ),
    metric(
        "sqlcached_source_transactions_total",
        Counter,
        &["source"],
        "Transactions there that invalidated something.",
        |figures, give| by_source(figures, give, |source| source.transactions),
    ),
    metric(
        "sqlcached_source_reconnects_total",
        Counter,
        &["source"],
        "How often the stream was begun again.",
        |figures, give| by_source(figures, give, |source| source.reconnects),
    ),
    metric(
        "sqlcached_source_emptied_tables_total",
        Counter,
        &["source"],
        "How often a table here was emptied because the source was not followed.",
        |figures, give| by_source(figures, give, |source| source.emptied),
    ),
    metric(
        "sqlcached_source_updated_rows_total",
        Counter,
        &["source"],
        "Rows here that took over the source's new values, in mode update or mirror.",
        |figures, give| by_source(figures, give, |source| source.updated),
    ),
    metric(
        "sqlcached_source_misfits_total",
        Counter,
        &["source"],
        "Changes whose values do not fit the columns here.",
        |figures, give| by_source(figures, give, |source| source.misfits),
    ),
    metric(
        "sqlcached_source_checked_rows_total",
        Counter,
        &["source"],
        "Sampled rows here that were compared with the source.",
        |figures, give| by_source(figures, give, |source| source.checked),
    ),
    metric(
        "sqlcached_source_differing_rows_total",
        Counter,
        &["source"],
        "Those of them that were not as the source has them.",
        |figures, give| by_source(figures, give, |source| source.differing),
    ),
    metric(
        "sqlcached_source_queries_total",
        Counter,
        &["source"],
        "Queries that fetched missing rows of the source.",
        |figures, give| by_source(figures, give, |source| source.fetches.queries),
    ),
    metric(
        "sqlcached_source_fills_total",
        Counter,
        &["source", "result"],
        "Missing rows that clients waited for: stored, given to them and not stored, or not had.",
        |figures, give| {
            for source in &figures.sources {
                let FetchFacts { fills, refused, failed, .. } = source.fetches;
                for (result, count) in [("stored", fills), ("refused", refused), ("failed", failed)] {
                    give(&[&source.name, result], Count(count));
                }
            }
        },
    ),
    metric(
        "sqlcached_view_refreshes_total",
        Counter,
        &["view"],
        "How often a materialized view was refreshed, or that was tried.",
        |figures, give| by_view(figures, give, |view| Some(Count(view.refreshes))),
    ),
    metric(
        "sqlcached_view_refresh_errors_total",
        Counter,
        &["view"],
        "How often that failed.",
        |figures, give| by_view(figures, give, |view| Some(Count(view.errors))),
    ),
    metric(
        "sqlcached_view_failing",
        Gauge,
        &["view"],
        "1 if the last refresh failed, so that the rows are those from before.",
        |figures, give| by_view(figures, give, |view| Some(Count(u64::from(view.failing)))),
    ),
    metric(
        "sqlcached_view_refresh_seconds",
        Gauge,
        &["view"],
        "Time of the last refresh.",
        |figures, give| by_view(figures, give, |view| Some(Real(view.last_ns as f64 / 1e9))),
    ),
    metric(
        "sqlcached_view_age_seconds",
        Gauge,
        &["view"],
        "Time since the query of the rows began; none before the first refresh of this process.",
        |figures, give| by_view(figures, give, |view| view.age_ms.map(|ms| Real(ms as f64 / 1e3))),
    ),
    metric(
        "sqlcached_passwords_total",
        Counter,
        &["status"],
        "Passwords that memcached clients showed.",
        |figures, give| {
            let refused = figures.engine.access.refusals.totals();
            let wrong = refused.wrong_passwords.load(Ordering::Relaxed);
            give(&["right"], Count(refused.passwords.load(Ordering::Relaxed).saturating_sub(wrong)));
            give(&["wrong"], Count(wrong));
        },
    ),
    metric(
        "sqlcached_permission_denied_total",
        Counter,
        &[],
        "Commands and statements that a role was not allowed.",
        |figures, give| {
            let refused = figures.engine.access.refusals.totals();
            give(&[], Count(refused.refusals.load(Ordering::Relaxed)));
        },
    ),
    metric(
        "sqlcached_panics_total",
        Counter,
        &[],
        "Commands that ended in a defect of the server; each cost one connection.",
        |figures, give| give(&[], Count(figures.totals.of(Counted::Panics))),
    ),
];

const fn metric(
    name: &'static str,
    kind: MetricKind,
    labels: &'static [&'static str],
    help: &'static str,
    read: fn(&Figures<'_>, &mut Give<'_>),
) -> Metric {
    Metric { name, kind, labels, help, read }
}

/// Counters under a label each.
fn counts(figures: &Figures<'_>, give: &mut Give<'_>, all: &[(&str, Counted)]) {
    for (label, counter) in all {
        give(&[label], Count(figures.totals.of(*counter)));
    }
}

fn by_table(figures: &Figures<'_>, give: &mut Give<'_>, of: impl Fn(&OfTable) -> u64) {
    for table in &figures.tables {
        give(&[&table.name], Count(of(table)));
    }
}

fn by_source(figures: &Figures<'_>, give: &mut Give<'_>, of: impl Fn(&SourceFacts) -> u64) {
    for source in &figures.sources {
        give(&[&source.name], Count(of(source)));
    }
}

fn by_bus(figures: &Figures<'_>, give: &mut Give<'_>, of: impl Fn(&BusFacts) -> u64) {
    for bus in &figures.buses {
        give(&[&bus.name], Count(of(bus)));
    }
}

fn by_view(figures: &Figures<'_>, give: &mut Give<'_>, of: impl Fn(&OfView) -> Option<Measured<'static>>) {
    for view in &figures.views {
        if let Some(measured) = of(view) {
            give(&[&view.name], measured);
        }
    }
}

/// Commands by outcome. A `cas` is no `set` here, as it is in memcached's own counters.
fn commands(figures: &Figures<'_>, give: &mut Give<'_>) {
    let of = |counter| figures.totals.of(counter);
    let outcomes = [
        ("get", "hit", Counted::GetHits),
        ("get", "miss", Counted::GetMisses),
        ("delete", "hit", Counted::DeleteHits),
        ("delete", "miss", Counted::DeleteMisses),
        ("incr", "hit", Counted::IncrHits),
        ("incr", "miss", Counted::IncrMisses),
        ("decr", "hit", Counted::DecrHits),
        ("decr", "miss", Counted::DecrMisses),
        ("cas", "hit", Counted::CasHits),
        ("cas", "miss", Counted::CasMisses),
        ("cas", "badval", Counted::CasBadval),
        ("touch", "hit", Counted::TouchHits),
        ("touch", "miss", Counted::TouchMisses),
        ("flush", "hit", Counted::CmdFlush),
        ("sql", "error", Counted::SqlErrors),
    ];
    for (command, status, counter) in outcomes {
        give(&[command, status], Count(of(counter)));
    }
    let compared = of(Counted::CasHits) + of(Counted::CasMisses) + of(Counted::CasBadval);
    give(&["set", "hit"], Count(of(Counted::CmdSet).saturating_sub(compared)));
    // A statement that cannot be parsed fails before it is counted as one that runs.
    give(&["sql", "ok"], Count(of(Counted::CmdSql).saturating_sub(of(Counted::SqlErrors))));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_say_what_they_are() {
        let names: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len(), "each name once");
        for metric in METRICS {
            assert!(metric.name.starts_with("sqlcached_"), "{}", metric.name);
            assert_eq!(
                metric.name.ends_with("_total"),
                metric.kind == MetricKind::Counter,
                "{}",
                metric.name
            );
            assert!(metric.help.ends_with('.'), "{}", metric.name);
        }
    }
}
