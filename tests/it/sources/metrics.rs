//! What Prometheus reads of a source.

use super::{cache_with, fill, psql, shop, until, until_stored, wait};
use crate::daemon::free_port;
use crate::http::{is_content, page};
use crate::skipped;

/// Each metric of a source counts what happened, and an operator's tools read it.
#[test]
fn the_metrics_follow_the_source() {
    let (database, port) = (shop(&[]), free_port());
    let daemon = cache_with(&database, &["--http-port", &port.to_string()]);
    let mut client = daemon.daemon.connect();
    fill(&daemon, &mut client);
    psql(
        &database.place,
        "BEGIN; DELETE FROM product WHERE id < 3; UPDATE product SET price = 0 WHERE id = 3; COMMIT",
    );
    until_stored(&daemon, &mut client, &[4, 5, 6, 7, 8, 9, 10]);
    psql(&database.place, "SELECT pg_terminate_backend(pid) FROM pg_stat_replication");
    until("it was lost", || psql(&daemon.place, "SELECT reconnects FROM sqlcached_sources") == "1");
    wait(&daemon, "streaming");
    let sample = |page: &str, name: &str| -> Option<f64> {
        page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    };
    let of = |page: &str, name: &str| sample(page, &format!("sqlcached_source_{name}{{source=\"pg\"}}"));
    until("a sign of life came back", || of(&page(port, "/metrics"), "lag_seconds").is_some());
    let page = page(port, "/metrics");
    for (name, at_least) in [
        ("lag_seconds", 0.0),
        ("lag_bytes", 0.0),
        ("events_total", 3.0),
        ("invalidated_rows_total", 3.0),
        ("transactions_total", 1.0),
        ("reconnects_total", 1.0),
        ("emptied_tables_total", 2.0),
        ("updated_rows_total", 0.0),
        ("misfits_total", 0.0),
        ("checked_rows_total", 0.0),
        ("differing_rows_total", 0.0),
        ("queries_total", 0.0),
    ] {
        let found = of(&page, name);
        assert!(found.is_some_and(|found| found >= at_least), "{name}: {found:?}\n{page}");
    }
    for (state, expected) in [("connecting", 0.0), ("streaming", 1.0), ("lagging", 0.0), ("lost", 0.0)] {
        let name = format!("sqlcached_source_state{{source=\"pg\",state=\"{state}\"}}");
        assert_eq!(sample(&page, &name), Some(expected), "{page}");
    }
    if !is_content(&page) {
        skipped("promtool is not installed");
    }
}
