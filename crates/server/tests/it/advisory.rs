//! Advisory locks over the PostgreSQL listener: sessions that wait keep no thread, and whatever ends a session or its
//! statement ends its wait.

use std::time::Duration;

use server::Config;

use crate::harness::{Daemon, config, daemon_with};
use crate::pg::{Pg, SYNC, bind, execute, packet, parse, query};

fn daemon() -> Daemon {
    daemon_with(&Config { sql_addresses: vec!["127.0.0.1:0".parse().unwrap()], sql_threads: 2, ..config() })
}

const GOT: [&str; 4] = ["T", "D ", "C SELECT 1", "Z I"];

/// Waits until so many sessions wait for a lock, as `pg_locks` shows it.
fn until_waiting(pg: &mut Pg, count: usize) {
    let expected = format!("D {count}");
    while pg.ask("SELECT count(*) FROM pg_locks WHERE NOT granted")[1] != expected {
        std::thread::yield_now();
    }
}

#[test]
fn sessions_that_wait_keep_no_thread() {
    let daemon = daemon();
    let mut holder = Pg::connect(&daemon);
    assert_eq!(holder.ask("SELECT pg_advisory_lock(7)"), GOT[..3]);
    let mut waiters: Vec<Pg> = (0..40).map(|_| Pg::connect(&daemon)).collect();
    for (at, waiter) in waiters.iter_mut().enumerate() {
        if at % 2 == 0 {
            waiter.send(&query("SELECT 1; SELECT pg_advisory_lock(7); SELECT pg_advisory_unlock(7)"));
        } else {
            let locks = [parse("", "SELECT pg_advisory_lock($1)"), bind("", "", &["7"]), execute("", 0)];
            let unlocks = [parse("", "SELECT pg_advisory_unlock($1)"), bind("", "", &["7"]), execute("", 0)];
            waiter.send(&[locks.concat(), unlocks.concat(), SYNC.to_vec()].concat());
        }
    }
    // The two threads serve others.
    until_waiting(&mut holder, 40);
    assert_eq!(holder.ask("SELECT pg_try_advisory_lock(7), pg_advisory_unlock(7)")[1], "D t|t");
    for waiter in &mut waiters {
        assert!(waiter.stream.set_nonblocking(true).is_ok());
        let mut letter = [0];
        let heard = waiter.stream.peek(&mut letter).is_ok();
        // A simple query has answered its first statement.
        assert!(!heard || letter == *b"T" || letter == *b"1");
        waiter.stream.set_nonblocking(false).unwrap();
    }
    assert_eq!(holder.ask("SELECT pg_advisory_unlock(7)")[1], "D t");
    for (at, waiter) in waiters.iter_mut().enumerate() {
        let heard = waiter.until_ready();
        let expected: &[&str] = if at % 2 == 0 {
            &["T", "D 1", "C SELECT 1", "T", "D ", "C SELECT 1", "T", "D t", "C SELECT 1", "Z I"]
        } else {
            &["1", "2", "D ", "C SELECT 1", "1", "2", "D t", "C SELECT 1", "Z I"]
        };
        assert_eq!(heard, expected);
    }
    assert_eq!(holder.ask("SELECT count(*) FROM pg_locks")[1], "D 0");
}

#[test]
fn whatever_ends_a_session_or_its_statement_ends_its_wait() {
    let daemon = daemon();
    let (mut holder, mut watcher) = (Pg::connect(&daemon), Pg::connect(&daemon));
    assert_eq!(holder.ask("SELECT pg_advisory_lock(1, 2)"), GOT[..3]);
    // A client that goes.
    let mut gone = Pg::connect(&daemon);
    gone.send(&query("SELECT pg_advisory_lock(1, 2)"));
    until_waiting(&mut watcher, 1);
    // Its end is heard of when the kernel says that both directions are closed.
    gone.stream.shutdown(std::net::Shutdown::Both).unwrap();
    drop(gone);
    // A cancel request, and a timeout.
    let mut stopped = Pg::connect(&daemon);
    stopped.send(&query("SELECT pg_advisory_lock_shared(1, 2)"));
    until_waiting(&mut watcher, 2);
    let mut canceller = Pg::plain(&daemon);
    let (process, secret) = stopped.key.clone();
    canceller.send(&packet(80_877_102, &[&process.to_be_bytes()[..], &secret].concat()));
    assert!(canceller.rest().is_empty());
    daemon.engine.tick();
    let message = "E ERROR 57014 canceling statement due to user request";
    assert_eq!(stopped.until_ready(), [message, "Z I"]);
    stopped.ask("SET lock_timeout = '2s'");
    stopped.send(&query("BEGIN; SELECT pg_advisory_xact_lock(1, 2); SELECT 1"));
    until_waiting(&mut watcher, 2);
    daemon.advance(Duration::from_secs(3));
    let message = "E ERROR 55P03 canceling statement due to lock timeout";
    assert_eq!(stopped.until_ready(), ["C BEGIN", message, "Z E"]);
    assert_eq!(stopped.ask("ROLLBACK"), ["C ROLLBACK"]);
    // The end of the holder.
    stopped.send(&query("SELECT pg_advisory_lock(1, 2)"));
    until_waiting(&mut watcher, 2);
    drop(holder);
    daemon.advance(Duration::from_secs(31));
    let heard = stopped.until_ready();
    assert_eq!(heard.last().unwrap(), "Z I");
    drop(stopped);
    while watcher.ask("SELECT count(*) FROM pg_locks")[1] != "D 0" {
        std::thread::yield_now();
    }
}

#[test]
fn locks_follow_transactions_as_in_postgresql() {
    let daemon = daemon();
    let (mut one, mut two) = (Pg::connect(&daemon), Pg::connect(&daemon));
    let free = |pg: &mut Pg, key: u8| {
        let text = format!("SELECT pg_try_advisory_lock({key}), pg_advisory_unlock({key})");
        let heard = pg.ask(&text);
        heard[if heard[0].starts_with('N') { 2 } else { 1 }] == "D t|t"
    };
    // Alone, a lock of the transaction ends with its statement.
    assert_eq!(one.ask("SELECT pg_advisory_xact_lock(1)"), GOT[..3]);
    assert!(free(&mut two, 1));
    one.ask("BEGIN; SELECT pg_advisory_xact_lock(1), pg_advisory_lock(3); SAVEPOINT a");
    one.ask("SELECT pg_advisory_xact_lock(2)");
    assert!(!free(&mut two, 1) && !free(&mut two, 2) && !free(&mut two, 3));
    one.ask("ROLLBACK TO a");
    assert!(!free(&mut two, 1) && free(&mut two, 2));
    one.ask("ROLLBACK");
    assert!(free(&mut two, 1) && !free(&mut two, 3), "the session's lock stays");
    assert_eq!(one.ask("DISCARD ALL"), ["C DISCARD ALL"]);
    assert!(free(&mut two, 3));
    let warning = "N WARNING 01000 you don't own a lock of type ExclusiveLock";
    let mut heard = one.ask("SELECT pg_advisory_unlock(3)");
    heard.sort();
    assert_eq!(heard, ["C SELECT 1", "D f", warning, "T"]);
    // Two that wait for each other.
    one.ask("SELECT pg_advisory_lock(1)");
    two.ask("SELECT pg_advisory_lock(2)");
    one.send(&query("SELECT pg_advisory_lock(2)"));
    let mut third = Pg::connect(&daemon);
    until_waiting(&mut third, 1);
    assert_eq!(two.ask("SELECT pg_advisory_lock(1)"), ["E ERROR 40P01 deadlock detected"]);
    two.ask("SELECT pg_advisory_unlock_all()");
    assert_eq!(one.until_ready(), GOT);
    let shown = "SELECT locktype, classid, objid, objsubid, mode, granted FROM pg_locks ORDER BY objid";
    assert_eq!(
        third.ask(shown)[1..3],
        ["D advisory|0|1|1|ExclusiveLock|t", "D advisory|0|2|1|ExclusiveLock|t"]
    );
    // What is a part of something else cannot wait.
    let heard = third.ask("COPY (SELECT pg_advisory_lock(1)) TO STDOUT");
    assert!(heard.last().unwrap().starts_with("E ERROR 55P03"), "{heard:?}");
    let heard = third.ask("SELECT pg_try_advisory_lock(1, 5000000000)");
    assert!(heard.last().unwrap().starts_with("E ERROR 22003"), "{heard:?}");
}
