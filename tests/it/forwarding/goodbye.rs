//! What a client sends right before it goes reaches the database, as without a cache in front of it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use super::Shop;
use super::caching::WARES;
use super::joining::{locked, working};
use super::talk::Talk;
use crate::drivers::place::Place;
use crate::sources::{psql, until};

/// How a client goes.
#[derive(Clone, Copy, Debug)]
enum Going {
    /// It says that it sends nothing more, and reads on.
    HalfClosed,
    /// It has read all answers, and closes.
    Closed,
    /// It closes with answers that it has not read: its system tells the other side that the connection is broken.
    Unread,
}

/// Clients of each kind.
const CLIENTS: usize = 20;

const PATIENCE: Duration = Duration::from_secs(30);

fn message(kind: &[u8], body: &str) -> Vec<u8> {
    let len = u32::try_from(4 + body.len() + 1).unwrap().to_be_bytes();
    [kind, &len, body.as_bytes(), b"\0"].concat()
}

/// Logs in, and returns when the last message of it is here: read, or to be read.
fn connect(place: &Place, reads: bool) -> TcpStream {
    let mut client = TcpStream::connect(("127.0.0.1", place.port)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let version = "\0\u{3}\0\0";
    let login = format!("{version}user\0{}\0database\0{}\0", place.user, place.database);
    client.write_all(&message(b"", &login)).unwrap();
    let ready = [b'Z', 0, 0, 0, 5, b'I'];
    let mut come = vec![0; 65_536];
    until("it is logged in", || {
        let count = client.peek(&mut come).unwrap();
        come[..count].ends_with(&ready)
    });
    if reads {
        let count = client.read(&mut come).unwrap();
        assert!(come[..count].ends_with(&ready));
    }
    client
}

fn go(mut client: TcpStream, going: Going, requests: &[u8]) {
    client.write_all(requests).unwrap();
    if matches!(going, Going::HalfClosed) {
        client.shutdown(Shutdown::Write).unwrap();
        let mut answers = Vec::new();
        client.read_to_end(&mut answers).unwrap();
        assert!(!answers.is_empty());
    }
}

/// What was sent behind a request that waited, for the session's state or for another session's answer, was lost.
#[test]
fn what_is_sent_last_arrives() {
    let shop = Shop::cached(WARES);
    psql(&shop.direct, "CREATE TABLE last (client TEXT)");
    for going in [Going::HalfClosed, Going::Closed, Going::Unread] {
        for (side, place) in [("direct", &shop.direct), ("through", &shop.through)] {
            let name = format!("{going:?} {side}");
            for number in 0..CLIENTS {
                let client = connect(place, !matches!(going, Going::Unread));
                let read = message(b"Q", &format!("SELECT count(*) FROM ware WHERE id > {number}"));
                let write = message(b"Q", &format!("INSERT INTO last VALUES ('{name}')"));
                // The answer to a read would break the connection in front of the write, if nobody reads it.
                let read = if matches!(going, Going::Unread) { Vec::new() } else { read };
                go(client, going, &[&read[..], &write, b"X\0\0\0\x04"].concat());
            }
            let sql = format!("SELECT count(*) FROM last WHERE client = '{name}'");
            until(&format!("all of {name} are there: {}", psql(&shop.direct, &sql)), || {
                psql(&shop.direct, &sql) == CLIENTS.to_string()
            });
        }
    }
}

/// The same, where the request in front waits for another session's answer.
#[test]
fn what_is_sent_behind_a_wait_arrives() {
    let shop = Shop::cached(WARES);
    psql(&shop.direct, "CREATE TABLE last (client TEXT)");
    let slow = "SELECT count(*) FROM ware a, ware b, ware c WHERE a.id + b.id > c.id";
    let talk = Talk::with(&shop.through);
    until("it is kept", || {
        talk.must(slow);
        shop.count("kept", slow) > 0
    });
    for going in [Going::HalfClosed, Going::Closed] {
        psql(&shop.direct, "UPDATE ware SET ratio = ratio + 1");
        shop.settle();
        let lock = locked(&shop);
        thread::scope(|scope| {
            let first = scope.spawn(|| talk.simple(slow));
            until("the first waits for the lock", || working(&shop) == "1");
            let client = connect(&shop.through, true);
            let write = message(b"Q", &format!("INSERT INTO last VALUES ('{going:?}')"));
            let requests = [&message(b"Q", slow)[..], &write, b"X\0\0\0\x04"].concat();
            let other = scope.spawn(move || go(client, going, &requests));
            lock.must("COMMIT");
            first.join().unwrap().unwrap();
            other.join().unwrap();
        });
        let sql = format!("SELECT count(*) FROM last WHERE client = '{going:?}'");
        until(&format!("what {going:?} has sent is there"), || psql(&shop.direct, &sql) == "1");
    }
}

/// While a client that has said its last word does not read, and the source is gone, its worker turned without an end.
#[test]
fn who_does_not_read_costs_no_processor() {
    let shop = Shop::cached(WARES);
    let mut client = connect(&shop.through, true);
    let much = "SELECT repeat('x', 1000) FROM generate_series(1, 2000)";
    client.write_all(&message(b"Q", much)).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    until("its session at the source has ended", || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT repeat%'";
        psql(&shop.direct, sql) == "0"
    });
    let pid = shop.daemon.daemon.pid();
    let before = processor_ticks(pid);
    thread::sleep(Duration::from_secs(1));
    // Of a second of one processor, less than a third: others of its threads work, too.
    assert!(processor_ticks(pid) - before < 30, "{} ticks", processor_ticks(pid) - before);
    let mut answers = Vec::new();
    client.read_to_end(&mut answers).unwrap();
    assert!(answers.len() > 2_000_000, "{} bytes", answers.len());
}

/// Hundredths of a second that a process has worked.
fn processor_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let behind = stat.rsplit(") ").next().unwrap();
    let times = behind.split(' ').skip(11).take(2);
    times.map(|time| time.parse::<u64>().unwrap()).sum()
}
