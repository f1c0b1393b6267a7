//! The same figures under the names of Prometheus' exporter for memcached, so that boards and alerts made for it go on
//! working. The exporter reads `stats`, `stats settings` and `stats items`; this page is made of the same lines.

use std::collections::BTreeMap;

use engine::MetricKind::{self, Counter, Gauge};
use engine::{Answer, Measured, Session, Subject, ThreadContext};

use super::exposition::{Family, Page};

/// A metric: its name, how it behaves, the line of `stats` that it is, what it is.
type Line = (&'static str, MetricKind, &'static str, &'static str);

/// Read from `stats`.
const GENERAL: &[Line] = &[
    ("memcached_uptime_seconds", Gauge, "uptime", "Seconds since the start."),
    ("memcached_time_seconds", Gauge, "time", "The server's Unix time."),
    ("memcached_process_user_cpu_seconds_total", Counter, "rusage_user", "Processor time in user mode."),
    (
        "memcached_process_system_cpu_seconds_total",
        Counter,
        "rusage_system",
        "Processor time in system mode.",
    ),
    ("memcached_read_bytes_total", Counter, "bytes_read", "Bytes received."),
    ("memcached_written_bytes_total", Counter, "bytes_written", "Bytes sent."),
    ("memcached_current_connections", Gauge, "curr_connections", "Open connections."),
    ("memcached_connections_total", Counter, "total_connections", "Connections accepted."),
    (
        "memcached_connections_rejected_total",
        Counter,
        "rejected_connections",
        "Connections refused: too many.",
    ),
    ("memcached_connections_yielded_total", Counter, "conn_yields", "Turns that ended early for others."),
    ("memcached_connections_listener_disabled_total", Counter, "listen_disabled_num", "Always 0 here."),
    (
        "memcached_accepting_connections",
        Gauge,
        "accepting_conns",
        "1 while there are places for connections.",
    ),
    ("memcached_current_bytes", Gauge, "bytes", "Bytes of items."),
    ("memcached_limit_bytes", Gauge, "limit_maxbytes", "Memory for items."),
    ("memcached_malloced_bytes", Gauge, "total_malloced", "Bytes of segments that hold items."),
    ("memcached_current_items", Gauge, "curr_items", "Items."),
    ("memcached_items_total", Counter, "total_items", "Items stored."),
    ("memcached_items_evicted_total", Counter, "evictions", "Items evicted because room was needed."),
    ("memcached_items_reclaimed_total", Counter, "reclaimed", "Items cleared after they expired."),
    ("memcached_item_too_large_total", Counter, "store_too_large", "Items refused for their size."),
    ("memcached_item_no_memory_total", Counter, "store_no_memory", "Items refused for want of memory."),
    ("memcached_direct_reclaims_total", Counter, "direct_reclaims", "Always 0 here."),
    ("memcached_lru_crawler_starts_total", Counter, "lru_crawler_starts", "Always 0 here."),
    ("memcached_lru_crawler_reclaimed_total", Counter, "crawler_reclaimed", "Always 0 here."),
    ("memcached_lru_crawler_items_checked_total", Counter, "crawler_items_checked", "Always 0 here."),
    ("memcached_lru_crawler_moves_to_cold_total", Counter, "moves_to_cold", "Always 0 here."),
    ("memcached_lru_crawler_moves_to_warm_total", Counter, "moves_to_warm", "Always 0 here."),
    ("memcached_lru_crawler_moves_within_lru_total", Counter, "moves_within_lru", "Always 0 here."),
];

/// Read from `stats items`, with the slab class as label.
const ITEMS: &[Line] = &[
    ("memcached_slab_current_items", Gauge, "number", "Items of the class."),
    ("memcached_slab_items_age_seconds", Gauge, "age", "Age of the oldest item, at most."),
    ("memcached_slab_items_evicted_total", Counter, "evicted", "Items evicted."),
    ("memcached_slab_items_reclaimed_total", Counter, "reclaimed", "Items cleared after they expired."),
    ("memcached_slab_items_outofmemory_total", Counter, "outofmemory", "Items refused for want of memory."),
    ("memcached_slab_mem_requested_bytes", Gauge, "mem_requested", "Bytes of items."),
    ("memcached_slab_cold_items", Gauge, "number_cold", "Items; there is one queue."),
];

const COMMANDS: Family = Family {
    name: "memcached_commands_total",
    kind: Counter,
    labels: &["command", "status"],
    help: "Commands by outcome.",
};

/// The commands whose hits and misses are counted.
const COUNTED: [&str; 6] = ["get", "delete", "incr", "decr", "cas", "touch"];

/// What `stats` says of a subject.
struct Said(BTreeMap<String, String>);

impl Said {
    fn of(session: &Session, context: &mut ThreadContext, subject: Subject) -> Result<Self, Answer> {
        let mut said = BTreeMap::new();
        session.stats(context, subject, &mut |name, value| {
            said.insert(name.to_owned(), value.to_owned());
        })?;
        Ok(Self(said))
    }

    fn measured(&self, name: &str) -> Option<Measured<'static>> {
        let text = self.0.get(name)?;
        text.parse().map(Measured::Count).or_else(|_| text.parse().map(Measured::Real)).ok()
    }

    fn count(&self, name: &str) -> u64 {
        self.0.get(name).and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

/// Writes all of them.
pub(super) fn write(session: &Session, context: &mut ThreadContext, page: &mut Page) -> Result<(), Answer> {
    let said = Said::of(session, context, Subject::General)?;
    let settings = Said::of(session, context, Subject::Settings)?;
    let items = Said::of(session, context, Subject::Items)?;
    let slabs = Said::of(session, context, Subject::Slabs)?;
    let family = |name, labels, help| Family { name, kind: Gauge, labels, help };
    page.add_to(&family("memcached_up", &[], "1: the server answers."), &[], Measured::Count(1));
    let version = said.0.get("version").map(String::as_str).unwrap_or_default();
    let labelled = family("memcached_version", &["version"], "The version that clients are told.");
    page.add_to(&labelled, &[version], Measured::Count(1));
    let most = family("memcached_max_connections", &[], "Connections that may be open.");
    page.add_to(&most, &[], Measured::Count(settings.count("maxconns")));
    for (name, kind, line, help) in GENERAL {
        if let Some(measured) = said.measured(line).or_else(|| slabs.measured(line)) {
            page.add_to(&Family { name, kind: *kind, labels: &[], help }, &[], measured);
        }
    }
    write_commands(&said, page);
    for (name, kind, line, help) in ITEMS {
        if let Some(measured) = items.measured(&format!("items:1:{line}")) {
            page.add_to(&Family { name, kind: *kind, labels: &["slab"], help }, &["1"], measured);
        }
    }
    Ok(())
}

/// A `cas` is counted by memcached as a `set` too, and the exporter takes it away again.
fn write_commands(said: &Said, page: &mut Page) {
    let mut add = |command: &str, status: &str, count| {
        page.add_to(&COMMANDS, &[command, status], Measured::Count(count));
    };
    for command in COUNTED {
        add(command, "hit", said.count(&format!("{command}_hits")));
        add(command, "miss", said.count(&format!("{command}_misses")));
    }
    add("cas", "badval", said.count("cas_badval"));
    add("flush", "hit", said.count("cmd_flush"));
    let compared: u64 = ["cas_hits", "cas_misses", "cas_badval"].iter().map(|name| said.count(name)).sum();
    add("set", "hit", said.count("cmd_set").saturating_sub(compared));
}
