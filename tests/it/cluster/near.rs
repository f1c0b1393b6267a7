//! What reads a cache's rows beside its sockets sees what the bus brings, and so does the console.

use sqlcached_client::{Client as Near, Lookup, Options};

use super::nats::Nats;
use super::{PATIENT, cache, define, figure, fill, hear, options, wait};
use crate::console::shows;
use crate::daemon::free_port;
use crate::drivers::place::SqlDaemon;
use crate::sources::{psql, until};

/// A process reads rows of one cache in shared memory, and somebody deletes them in another one.
#[test]
fn readers_of_shared_memory_see_what_the_bus_brings() {
    let nats = Nats::start(&[]);
    let [a, b] = [cache(&nats), cache(&nats)];
    for daemon in [&a, &b] {
        psql(&daemon.place, "ALTER TABLE page SET (shared_memory = on)");
    }
    // Each has heard some heartbeats since, so it follows the bus with the table of now.
    for daemon in [&a, &b] {
        let heard = figure(daemon, "applied");
        until("it hears the bus", || figure(daemon, "applied") > heard + 3);
    }
    fill(&b);
    let near = Near::connect(&Options::new(b.daemon.socket())).unwrap();
    let table = near.table("page").unwrap();
    assert!(table.is_shared());
    let has = |id: u32| matches!(near.get_key(format!("page:{id}").as_bytes()).unwrap(), Lookup::Hit(_));
    assert!((1..=10).all(has));
    assert_eq!(a.daemon.connect().ask("delete page:1"), "NOT_FOUND");
    hear(&a, &b);
    assert!(!has(1) && has(2));
    psql(&a.place, "DELETE FROM page WHERE uid = 2");
    hear(&a, &b);
    assert_eq!((1..=10).filter(|id| has(*id)).collect::<Vec<_>>(), [3, 4, 6, 7, 9, 10]);
    assert_eq!(a.daemon.connect().ask("flush_all"), "OK");
    hear(&a, &b);
    assert!(!(1..=10).any(has));
}

#[test]
fn the_console_shows_the_caches() {
    let nats = Nats::start(&[]);
    let port = free_port();
    let daemon = SqlDaemon::start(&["--http-port", &port.to_string()]);
    define(&daemon, &options(&nats.url(), PATIENT));
    wait(&daemon, "streaming");
    shows(
        port,
        &["buses/sqlcached_buses/lag ms/breaks/bus/streaming", "buses/sqlcached_nodes/heard ms/true"],
    );
}
