//! Sixty-four clients over sockets want one row that ends again and again: half speak memcached's meta commands, half
//! SQL through PostgreSQL's protocol. One refreshes it a period, and nobody waits.

use std::sync::Barrier;
use std::time::Duration;

use crate::harness::{self, Client, Daemon};
use crate::pg::Pg;

const CLIENTS: usize = 64;
const PERIODS: usize = 12;

/// What a client was given.
#[derive(Debug)]
struct Given {
    /// It is to refresh the row, which had this CAS.
    told: Option<String>,
    body: String,
    stale: bool,
}

enum Door {
    Memcached(Client<std::net::TcpStream>),
    Postgres(Pg),
}

impl Door {
    fn ask(&mut self) -> Given {
        match self {
            Self::Memcached(client) => {
                client.send(b"mg page:17 v c s\r\n");
                let head = client.line();
                let words: Vec<&str> = head.split(' ').collect();
                assert_eq!(words[0], "VA", "{head}");
                let (cas, won) = (words[2][1..].to_owned(), words.contains(&"W"));
                Given { told: won.then_some(cas), body: client.line(), stale: words.contains(&"X") }
            }
            Self::Postgres(pg) => {
                let claim = "UPDATE page SET _leased = TRUE WHERE key = '17' AND _due AND NOT _leased \
                             RETURNING _cas, body, _stale";
                let won = row(&pg.ask(claim));
                if let [cas, body, stale] = won.as_slice() {
                    return Given { told: Some(cas.clone()), body: body.clone(), stale: stale == "1" };
                }
                match row(&pg.ask("SELECT body, _stale FROM page WHERE key = '17'")).as_slice() {
                    [body, stale] => Given { told: None, body: body.clone(), stale: stale == "1" },
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    /// Stores what was made of the version with this CAS; whether that was taken.
    fn fill(&mut self, cas: &str, body: &str) -> bool {
        match self {
            Self::Memcached(client) => {
                client.send(format!("ms page:17 {} C{cas} T60\r\n{body}\r\n", body.len()).as_bytes());
                client.line() == "HD"
            }
            Self::Postgres(pg) => {
                let fill =
                    format!("UPDATE page SET body = '{body}', _ttl = 60 WHERE key = '17' AND _cas = {cas}");
                pg.ask(&fill).contains(&"C UPDATE 1".to_owned())
            }
        }
    }

    fn invalidate(&mut self) {
        match self {
            Self::Memcached(client) => client.ask(b"md page:17 I\r\n", b"HD\r\n"),
            Self::Postgres(pg) => {
                let heard = pg.ask("UPDATE page SET _stale = TRUE WHERE key = '17'");
                assert!(heard.contains(&"C UPDATE 1".to_owned()), "{heard:?}");
            }
        }
    }
}

/// The values of the one row that was heard of; nothing if there was none.
fn row(heard: &[String]) -> Vec<String> {
    let row = heard.iter().find_map(|line| line.strip_prefix("D "));
    row.map_or_else(Vec::new, |row| row.split('|').map(str::to_owned).collect())
}

/// All ask at the same moment.
fn rush(listeners: &mut [Door]) -> Vec<Given> {
    let barrier = Barrier::new(listeners.len());
    std::thread::scope(|scope| {
        let barrier = &barrier;
        let asking = |listener| {
            scope.spawn(move || {
                barrier.wait();
                Door::ask(listener)
            })
        };
        let threads: Vec<_> = listeners.iter_mut().map(asking).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// A rush in which so many are told, and everybody is given this body. Who was told, and of which version.
fn rush_for(listeners: &mut [Door], told: usize, body: &str, stale: bool) -> Option<(usize, String)> {
    let given = rush(listeners);
    assert!(given.iter().all(|given| given.body == body && given.stale == stale), "{body}: {given:?}");
    let winners: Vec<_> =
        given.iter().enumerate().filter_map(|(at, given)| given.told.clone().map(|cas| (at, cas))).collect();
    assert_eq!(winners.len(), told, "{body}: {given:?}");
    winners.into_iter().next()
}

fn listeners(daemon: &Daemon) -> Vec<Door> {
    let listener = |number: usize| match number % 2 {
        0 => Door::Memcached(daemon.connect()),
        _ => Door::Postgres(Pg::connect(daemon)),
    };
    (0..CLIENTS).map(listener).collect()
}

#[test]
fn one_recompute_a_period_through_both_protocols() {
    let config = server::Config { sql_addresses: vec!["127.0.0.1:0".parse().unwrap()], ..harness::config() };
    let daemon = harness::daemon_with(&config);
    let mut listeners = listeners(&daemon);
    let Door::Postgres(pg) = &mut listeners[1] else { panic!("the second speaks SQL") };
    pg.ask(
        "CREATE TABLE page (key TEXT PRIMARY KEY, body TEXT) WITH (prefix = 'page:', value = 'body', \
         refresh_before = '10 s', stale_for = '60 s', lease = '5 s')",
    );
    pg.ask("INSERT INTO page (key, body, _ttl) VALUES ('17', 'version 0', 60)");
    for period in 0..PERIODS {
        let (body, next) = (format!("version {period}"), format!("version {}", period + 1));
        daemon.advance(Duration::from_secs(45));
        rush_for(&mut listeners, 0, &body, false);
        let stale = period % 3 == 2;
        if stale {
            listeners[period % 4].invalidate();
        } else {
            daemon.advance(Duration::from_secs(6));
        }
        let (mut winner, mut cas) = rush_for(&mut listeners, 1, &body, stale).unwrap();
        rush_for(&mut listeners, 0, &body, stale);
        if period % 3 == 1 {
            // The winner is gone; when its lease has passed there is another, and what the first made still counts.
            daemon.advance(Duration::from_secs(6));
            (winner, cas) = rush_for(&mut listeners, 1, &body, stale).unwrap();
        }
        if period % 3 == 0 {
            // Invalidated while it was made: what was made is refused, and somebody refreshes it.
            listeners[(winner + 1) % CLIENTS].invalidate();
            assert!(!listeners[winner].fill(&cas, "of before the invalidation"), "period {period}");
            (winner, cas) = rush_for(&mut listeners, 1, &body, true).unwrap();
        }
        assert!(listeners[winner].fill(&cas, &next), "period {period}: {winner}");
        rush_for(&mut listeners, 0, &next, false);
    }
}
