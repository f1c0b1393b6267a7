//! Sixty-four clients of every protocol want one row that is invalidated again and again. Each time exactly one of them
//! is asked to refresh it.

use std::sync::Barrier;

use sqlcached_client::{Client as Shared, Lookup, Options, Renewal};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{NoTls, SimpleQueryMessage};

use crate::client::{Client, Reply};
use crate::daemon::{Daemon, free_port};

const CLIENTS: usize = 64;
const PERIODS: usize = 15;
const DOORS: usize = 5;

const TABLE: &str = "CREATE TABLE page (key TEXT PRIMARY KEY, body TEXT) WITH (prefix = 'page:', value = 'body', \
                     shared_memory = on, stale_for = '1 h', lease = '1 h')";
const CLAIM: &str =
    "UPDATE page SET _leased = TRUE WHERE key = '17' AND _due AND NOT _leased RETURNING _cas, body";

/// What a client was given.
#[derive(Debug)]
struct Given {
    /// It is to refresh the row, which had this CAS. An unmodified client learns of it as a miss, and of no CAS.
    told: Option<String>,
    /// What it may use meanwhile.
    body: Option<String>,
}

impl Given {
    fn read(body: String) -> Self {
        Self { told: None, body: Some(body) }
    }
}

/// A client, by its protocol.
enum Door {
    /// memcached's text commands, from a client that knows nothing of all this.
    Text(Client),
    /// memcached's meta commands.
    Meta(Client),
    /// SQL through the memcached port.
    Sql(Client),
    /// SQL through PostgreSQL's protocol.
    Postgres(Runtime, tokio_postgres::Client),
    /// The daemon's memory, mapped by another process: what is read there asks the socket only to claim.
    Memory(Shared),
}

impl Door {
    fn open(number: usize, daemon: &Daemon, sql_port: u16) -> Self {
        match number % DOORS {
            0 => Self::Text(daemon.connect()),
            1 => Self::Meta(daemon.connect()),
            2 => Self::Sql(daemon.connect()),
            3 => {
                let runtime = Builder::new_current_thread().enable_all().build().unwrap();
                let config = format!("host=127.0.0.1 port={sql_port} user=app dbname=sqlcached");
                let (client, connection) = runtime.block_on(tokio_postgres::connect(&config, NoTls)).unwrap();
                runtime.spawn(connection);
                Self::Postgres(runtime, client)
            }
            _ => Self::Memory(Shared::connect(&Options::new(daemon.socket())).unwrap()),
        }
    }

    fn ask(&mut self) -> Given {
        match self {
            Self::Text(client) => match client.get("page:17") {
                Some(body) => Given::read(String::from_utf8(body).unwrap()),
                None => Given { told: Some(String::new()), body: None },
            },
            Self::Meta(client) => {
                client.send(b"mg page:17 v c\r\n");
                let head = client.line();
                let words: Vec<&str> = head.split(' ').collect();
                assert_eq!(words[0], "VA", "{head}");
                let told = words.contains(&"W").then(|| words[2][1..].to_owned());
                Given { told, body: Some(client.line()) }
            }
            Self::Memory(client) => {
                let found = client.get_or_claim(b"page:17", 30).unwrap();
                let fresh = matches!(found, Lookup::Hit(_));
                let value = found.value().unwrap();
                let told = value.meta.renewal == Renewal::Yours;
                assert!(!(fresh && told), "a fresh row is nobody's to make");
                let body = String::from_utf8(value.bytes).unwrap();
                Given { told: told.then(|| value.meta.cas.to_string()), body: Some(body) }
            }
            Self::Sql(_) | Self::Postgres(..) => match self.rows(CLAIM).as_slice() {
                [row] => Given { told: Some(row[0].clone()), body: Some(row[1].clone()) },
                [] => {
                    let rows = self.rows("SELECT body FROM page WHERE key = '17'");
                    Given::read(rows[0][0].clone())
                }
                more => panic!("{more:?}"),
            },
        }
    }

    /// The rows of a statement as text; none for another protocol.
    fn rows(&mut self, statement: &str) -> Vec<Vec<String>> {
        match self {
            Self::Sql(client) => {
                let Reply::Rows(rows) = client.sql(statement) else { return Vec::new() };
                let columns = ["_cas", "body", "_stale"];
                let text = |value: &serde_json::Value| {
                    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
                };
                rows.iter()
                    .map(|row| columns.iter().filter_map(|&name| row.get(name)).map(text).collect())
                    .collect()
            }
            Self::Postgres(runtime, client) => {
                let heard = runtime.block_on(client.simple_query(statement)).unwrap();
                let rows = heard.iter().filter_map(|message| match message {
                    SimpleQueryMessage::Row(row) => {
                        Some((0..row.len()).map(|at| row.get(at).unwrap_or("NULL").to_owned()).collect())
                    }
                    _ => None,
                });
                rows.collect()
            }
            _ => Vec::new(),
        }
    }

    /// Stores what was made of the version with this CAS; whether that was taken.
    fn fill(&mut self, cas: &str, body: &str) -> bool {
        match self {
            Self::Text(client) => client.set("page:17", body.as_bytes()) == "STORED",
            Self::Meta(client) => client.ask(&format!("ms page:17 {} C{cas}\r\n{body}", body.len())) == "HD",
            Self::Memory(client) => {
                client.cas_key(b"page:17", body.as_bytes(), 0, 0, cas.parse().unwrap()).unwrap()
            }
            Self::Sql(_) | Self::Postgres(..) => {
                let fill = format!(
                    "UPDATE page SET body = '{body}' WHERE key = '17' AND _cas = {cas} RETURNING body"
                );
                self.rows(&fill).len() == 1
            }
        }
    }

    /// Softly; an unmodified client has no word for it, so that another protocol does it.
    fn invalidate(&mut self) -> bool {
        match self {
            Self::Meta(client) => client.ask("md page:17 I") == "HD",
            Self::Sql(_) | Self::Postgres(..) => {
                self.rows("UPDATE page SET _stale = TRUE WHERE key = '17' RETURNING body").len() == 1
            }
            Self::Text(_) | Self::Memory(_) => false,
        }
    }
}

/// All ask at the same moment. Who was told, and of which version; everybody else was given this body.
fn rush(doors: &mut [Door], body: &str) -> Vec<(usize, String)> {
    let barrier = Barrier::new(doors.len());
    let given: Vec<Given> = std::thread::scope(|scope| {
        let barrier = &barrier;
        let asking = |door| {
            scope.spawn(move || {
                barrier.wait();
                Door::ask(door)
            })
        };
        let threads: Vec<_> = doors.iter_mut().map(asking).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut told = Vec::new();
    for (at, given) in given.into_iter().enumerate() {
        match given.body {
            Some(seen) => assert_eq!(seen, body, "client {at}"),
            None => assert!(given.told.is_some(), "client {at}"),
        }
        told.extend(given.told.map(|cas| (at, cas)));
    }
    told
}

#[test]
fn one_client_of_all_protocols_makes_the_row_anew() {
    let sql_port = free_port();
    let daemon = Daemon::start(&["--sql-port", &sql_port.to_string()]);
    daemon.connect().change(TABLE);
    daemon.connect().change("INSERT INTO page VALUES ('17', 'version 0')");
    let mut doors: Vec<Door> = (0..CLIENTS).map(|number| Door::open(number, &daemon, sql_port)).collect();
    let mut winners = [0; DOORS];
    for period in 0..PERIODS {
        let (body, next) = (format!("version {period}"), format!("version {}", period + 1));
        assert_eq!(rush(&mut doors, &body), [], "a fresh row is nobody's to make");
        // Another protocol each time.
        assert!(doors[1 + period % 3].invalidate());
        let told = rush(&mut doors, &body);
        assert_eq!(told.len(), 1, "period {period}: {told:?}");
        assert_eq!(rush(&mut doors, &body), [], "period {period}: one is at work");
        let (winner, cas) = &told[0];
        winners[winner % DOORS] += 1;
        assert!(doors[*winner].fill(cas, &next), "period {period}: client {winner}");
    }
    println!("who made it anew, by door: {winners:?}");
}
