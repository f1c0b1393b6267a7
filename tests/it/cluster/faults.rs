//! Processes that are killed, stopped and asked to end, and networks that are slow or cut: nothing that was
//! acknowledged is undone, and who cannot be sure believes nothing.

use std::time::{Duration, Instant};

use super::nats::Nats;
use super::relay::Relay;
use super::{PATIENT, cache, cache_on, count, figure, fill, hear, options, pages, state, until_noted, wait};
use crate::drivers::place::SqlDaemon;
use crate::sources::{asked, psql, until};

/// Deletes a page as often as it takes until the bus has acknowledged that.
fn delete(daemon: &SqlDaemon, id: u32) {
    let mut client = daemon.daemon.connect();
    until("a deletion is acknowledged", || {
        let answer = client.ask(&format!("delete page:{id}"));
        answer == "DELETED" || answer == "NOT_FOUND"
    });
}

/// Waits until all three servers have the stream, for two of them must be there.
fn until_whole(server: &Nats) {
    until("the stream is whole", || {
        let info = server.ask("INFO.sqlc", "");
        info.matches("\"current\":true").count() == 2 && !info.contains("\"offline\":true")
    });
}

/// A bus of three servers, of which each is away once, one after the other.
#[test]
fn servers_that_are_killed_in_turn_lose_nothing() {
    let mut servers = Nats::three();
    let all = servers.each_ref().map(Nats::url).join(",");
    let bus = format!("{}, replicas '3'", options(&all, PATIENT));
    let [a, b] = [cache_on(&bus), cache_on(&bus)];
    fill(&a);
    fill(&b);
    // One may go when each of them has what the others have.
    until_whole(&servers[0]);
    for (at, how) in ["kill", "stop", "terminate"].iter().enumerate() {
        match *how {
            "kill" => servers[at].kill(),
            "stop" => servers[at].signal("STOP"),
            _ => servers[at].terminate(),
        }
        let id = u32::try_from(at).unwrap() + 1;
        delete(&a, id);
        until("the other cache hears of it", || !pages(&b).split(' ').any(|page| page == id.to_string()));
        match *how {
            "stop" => servers[at].signal("CONT"),
            _ => servers[at].start_again(),
        }
        until_whole(&servers[at]);
    }
    assert_eq!(pages(&b), "4 5 6 7 8 9 10");
    assert_eq!(figure(&a, "breaks") + figure(&b, "breaks"), 0);
}

/// What delivers the stream forgets how far it came, as when its server is killed and soon there again: all comes once
/// more, and what was stored since stays.
#[test]
fn a_delivery_that_begins_again_breaks_nothing() {
    let nats = Nats::start(&[]);
    let [a, b] = [cache(&nats), cache(&nats)];
    fill(&b);
    delete(&a, 1);
    hear(&a, &b);
    fill(&b);
    assert_eq!(nats.deliver_from(|began| began), 2);
    delete(&a, 2);
    hear(&a, &b);
    assert_eq!(pages(&b), "1 3 4 5 6 7 8 9 10");
    assert_eq!(figure(&a, "breaks") + figure(&b, "breaks"), 0);
}

/// Some messages get lost on the way to the caches, which ask the stream for them.
#[test]
fn what_is_lost_on_the_way_is_asked_for() {
    let nats = Nats::start(&[]);
    let [a, b] = [cache(&nats), cache(&nats)];
    until_noted(&b);
    fill(&b);
    let lost = figure(&b, "applied") + 20;
    assert_eq!(nats.deliver_from(|_| lost), 2);
    delete(&a, 1);
    hear(&a, &b);
    assert_eq!(pages(&b), "2 3 4 5 6 7 8 9 10");
    // Each has also heard what comes behind those.
    until("the stream is longer", || figure(&a, "applied") > lost && figure(&b, "applied") > lost);
    assert_eq!(figure(&a, "breaks") + figure(&b, "breaks"), 0);
}

/// All servers of a bus are killed at once. They may have lost the stream. Then it is a break, and a cache that did not
/// hear what was acknowledged before believes nothing.
#[test]
fn servers_that_are_killed_together_bring_nothing_back() {
    let mut servers = Nats::three();
    let all = servers.each_ref().map(Nats::url).join(",");
    let bus = format!("{}, replicas '3'", options(&all, PATIENT));
    let [a, b] = [cache_on(&bus), cache_on(&bus)];
    fill(&a);
    fill(&b);
    until_noted(&b);
    // It does not hear of this before they are gone.
    b.daemon.signal("STOP");
    delete(&a, 1);
    servers.iter_mut().for_each(Nats::kill);
    servers.iter_mut().for_each(Nats::start_again);
    b.daemon.signal("CONT");
    delete(&a, 2);
    hear(&a, &b);
    let breaks = figure(&b, "breaks");
    println!("{breaks} breaks");
    assert_eq!(pages(&b), if breaks == 0 { "3 4 5 6 7 8 9 10" } else { "" });
}

/// A cache that was paused has not heard for a while. It says so, and hears it all.
#[test]
fn a_cache_that_was_paused_hears_what_it_missed() {
    let nats = Nats::start(&[]);
    let [a, b] = [cache(&nats), cache(&nats)];
    fill(&a);
    fill(&b);
    b.daemon.signal("STOP");
    (1..=5).for_each(|id| delete(&a, id));
    b.daemon.signal("CONT");
    hear(&a, &b);
    assert_eq!(pages(&b), "6 7 8 9 10");
    assert_eq!(figure(&b, "breaks"), 0);
}

/// NATS was paused: it is away as long, and then what was told arrives once.
#[test]
fn a_server_that_was_paused_is_away() {
    let nats = Nats::start(&[]);
    let [a, b] = [cache(&nats), cache(&nats)];
    fill(&b);
    nats.signal("STOP");
    let answer = a.daemon.connect().ask("delete page:1");
    assert!(answer.starts_with("SERVER_ERROR the bus has not acknowledged it"), "{answer}");
    nats.signal("CONT");
    until("it is told later", || pages(&b) == "2 3 4 5 6 7 8 9 10");
    delete(&a, 2);
    hear(&a, &b);
    assert_eq!(pages(&b), "3 4 5 6 7 8 9 10");
    assert_eq!(figure(&a, "breaks") + figure(&b, "breaks"), 0);
}

/// A cache that is asked to end says what it has to say, and finds its rows when it starts again.
#[test]
fn a_cache_that_ends_says_what_it_has_to_say() {
    let nats = Nats::start(&[]);
    let [mut a, b] = [cache(&nats), cache(&nats)];
    fill(&a);
    fill(&b);
    until_noted(&a);
    // Nobody waits for it to be told.
    a.daemon.connect().send(b"delete page:1 noreply\r\n");
    psql(&a.place, "ALTER TABLE page SET (acknowledge = 'local')");
    assert_eq!(a.daemon.connect().ask("delete page:2"), "DELETED");
    assert!(a.daemon.terminate().success());
    until("it is told", || pages(&b) == "3 4 5 6 7 8 9 10");
    delete(&b, 3);
    a.daemon.restart();
    assert_eq!(pages(&a), "4 5 6 7 8 9 10");
    // It has nothing to make good.
    delete(&a, 4);
    hear(&a, &b);
    assert_eq!(pages(&b), "5 6 7 8 9 10");
}

/// A cache that is killed while it waits for the bus has told nobody, and does not know of what. All rows may be meant.
#[test]
fn a_cache_that_was_killed_before_it_told_empties_the_others() {
    let mut nats = Nats::start(&[]);
    let [mut a, b] = [cache(&nats), cache(&nats)];
    fill(&b);
    nats.kill();
    let answer = a.daemon.connect().ask("delete page:1");
    assert!(answer.starts_with("SERVER_ERROR the bus has not acknowledged it"), "{answer}");
    a.daemon.kill();
    nats.start_again();
    wait(&b, "streaming");
    a.daemon.restart();
    until("what it had to tell is made good", || pages(&b).is_empty());
    assert_eq!(count(&b, "sess"), "0");
}

/// More deletions than a cache keeps while the bus is away: the table goes elsewhere, and no other one.
#[test]
fn an_outbox_that_is_full_tells_the_table() {
    let mut nats = Nats::start(&[]);
    let [a, b] = [cache(&nats), cache(&nats)];
    fill(&b);
    nats.kill();
    // Until it is noticed some thousand keys would be on their way, and none of those that are kept.
    until("the bus is away", || state(&a) != "streaming");
    let many = (11..10_100).map(|id| format!("delete page:{id} noreply\r\n")).collect::<Vec<_>>().concat();
    let mut client = a.daemon.connect();
    client.send(many.as_bytes());
    assert_eq!(client.ask("mn"), "MN");
    assert!(figure(&a, "outbox") < 200, "{} are kept", figure(&a, "outbox"));
    nats.start_again();
    until("the table is told", || pages(&b).is_empty());
    assert_eq!(count(&b, "sess"), "10");
    assert_eq!(figure(&a, "breaks") + figure(&b, "breaks"), 0);
}

/// A network that takes long takes long, and breaks nothing.
#[test]
fn a_slow_bus_is_slow() {
    let nats = Nats::start(&[]);
    let relay = Relay::to(nats.port);
    let a = cache_on(&options(&relay.url(), PATIENT));
    let b = cache(&nats);
    fill(&a);
    fill(&b);
    relay.delay(200);
    let began = Instant::now();
    assert_eq!(a.daemon.connect().ask("delete page:1"), "DELETED");
    assert!(began.elapsed() >= Duration::from_millis(400), "{:?}", began.elapsed());
    delete(&b, 2);
    hear(&b, &a);
    assert_eq!(pages(&a), "3 4 5 6 7 8 9 10");
    hear(&a, &b);
    assert_eq!((pages(&b).as_str(), state(&a).as_str()), ("3 4 5 6 7 8 9 10", "streaming"));
    assert_eq!(figure(&a, "breaks") + figure(&b, "breaks"), 0);
}

/// A bus is away, and is defined at another place: tables that failed meanwhile serve again.
#[test]
fn a_bus_that_moves_is_heard_at_its_new_place() {
    let mut nats = Nats::start(&[]);
    let daemon = cache_on(&options(&nats.url(), "2 s"));
    psql(&daemon.place, "ALTER TABLE page SET (on_lag = 'fail')");
    let serves = || asked(&daemon.place, "SELECT count(*) FROM page").is_ok();
    nats.kill();
    until("the table fails", || !serves());
    let other = Nats::start(&[]);
    psql(&daemon.place, &format!("ALTER SERVER bus OPTIONS (SET servers '{}')", other.url()));
    wait(&daemon, "streaming");
    until("the table serves", serves);
}

/// A cable is out, and nobody is told. Who is behind it believes nothing after `max_lag`, the others go on, and when it
/// is in again nothing is missing.
#[test]
fn who_is_cut_off_believes_nothing() {
    let nats = Nats::start(&[]);
    let relay = Relay::to(nats.port);
    let a = cache_on(&options(&relay.url(), "3 s"));
    let b = cache(&nats);
    fill(&a);
    fill(&b);
    relay.cut(true);
    delete(&b, 1);
    until("who is cut off believes nothing", || pages(&a).is_empty());
    assert_ne!(state(&a), "streaming");
    assert_eq!(pages(&b), "2 3 4 5 6 7 8 9 10");
    let answer = a.daemon.connect().ask("delete page:2");
    assert!(answer.starts_with("SERVER_ERROR the bus has not acknowledged it"), "{answer}");
    relay.cut(false);
    wait(&a, "streaming");
    until("what it had to tell is told", || pages(&b) == "3 4 5 6 7 8 9 10");
    fill(&a);
    delete(&b, 3);
    hear(&b, &a);
    assert!(!pages(&a).split(' ').any(|page| page == "3"));
    assert_eq!(figure(&a, "breaks") + figure(&b, "breaks"), 0);
}
