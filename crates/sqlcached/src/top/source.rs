//! What is asked of the server: a few system tables, by one connection that is made again when it is lost.

use std::fmt;
use std::path::Path;
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::{Client, Config, NoTls, Row};

/// How long an answer may take: a server that says nothing so long is shown as lost.
const PATIENCE: Duration = Duration::from_secs(3);

/// Tables that are asked for: more do not fit a screen, and all of them would be much to send each second.
const TABLES: i64 = 500;

/// Invalidations that are shown.
const INVALIDATIONS: i64 = 5;

/// Hot keys that are shown.
const HOT_KEYS: i64 = 5;

/// Where the server is, as whom it is asked.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) role: Option<String>,
    pub(super) password: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.host, self.port)
    }
}

/// What the server was asked, or why it did not answer.
pub(super) type News = Result<Sample, String>;

/// Figures at a moment. What is counted is counted since the server's start.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub(super) taken: Option<Instant>,
    pub(super) uptime_s: f64,
    pub(super) memory_limit: String,
    /// Per second, by the server's own ring.
    pub(super) second: Second,
    pub(super) tables: Vec<TableFigures>,
    pub(super) hot: Vec<HotKey>,
    pub(super) invalidations: Vec<Invalidation>,
}

/// The last whole second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Second {
    pub(super) hits: f64,
    pub(super) misses: f64,
    pub(super) operations: f64,
    pub(super) evicted: f64,
    pub(super) connections: i64,
    pub(super) rows: i64,
    pub(super) bytes: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TableFigures {
    pub(super) name: String,
    pub(super) rows: i64,
    pub(super) bytes: i64,
    pub(super) hits: i64,
    pub(super) misses: i64,
    pub(super) written: i64,
    pub(super) evicted: i64,
    pub(super) expired: i64,
    pub(super) invalidated: i64,
}

/// A key that was used much in the last minute.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HotKey {
    pub(super) table: String,
    pub(super) key: String,
    pub(super) reads: i64,
    pub(super) writes: i64,
    pub(super) share: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Invalidation {
    pub(super) at: String,
    pub(super) role: String,
    pub(super) rows: i64,
    pub(super) statement: String,
}

const SECOND: &str = "SELECT (hits / seconds)::float8, (misses / seconds)::float8, \
     ((gets + sets + deletes + others + postgresql_statements + memcached_statements + http_statements) / seconds)::float8, \
     (evicted / seconds)::float8, connections::int8, rows::int8, segment_bytes::int8 \
     FROM sqlcached_history WHERE resolution = 1 AND seconds > 0 ORDER BY at DESC LIMIT 1";

const SERVER: &str = "SELECT extract(epoch FROM now() - pg_postmaster_start_time())::float8, \
     (SELECT setting FROM sqlcached_limits WHERE table_name IS NULL LIMIT 1)::text";

const OF_TABLES: &str = "SELECT table_name::text, rows, bytes, hits, misses, written, evicted, expired, \
     invalidated + flushed FROM sqlcached_tables ORDER BY hits + misses + written DESC LIMIT $1";

const HOT: &str = "SELECT table_name::text, key, reads, writes, share FROM sqlcached_hot \
     ORDER BY reads + writes DESC LIMIT $1";

const INVALIDATED: &str = "SELECT to_char(at, 'HH24:MI:SS')::text, role_name, rows, statement \
     FROM sqlcached_invalidations ORDER BY at DESC LIMIT $1";

/// Begins to ask, in a thread that ends when nobody listens any more.
pub(super) fn begin(place: Place, interval: Duration, news: SyncSender<News>) -> Result<(), String> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let ask = move || {
        let mut connection = None;
        loop {
            let begun = now();
            let answer = look(&runtime, &place, &mut connection);
            if answer.is_err() {
                connection = None;
            }
            if news.send(answer).is_err() {
                return;
            }
            // The connection's own task needs the runtime, too: a server that goes is noticed meanwhile.
            runtime.block_on(async { tokio::time::sleep(interval.saturating_sub(begun.elapsed())).await });
        }
    };
    thread::Builder::new().name("top".into()).spawn(ask).map(drop).map_err(|error| error.to_string())
}

#[allow(clippy::disallowed_methods, reason = "it watches a server from outside, in real time")]
pub(super) fn now() -> Instant {
    Instant::now()
}

fn look(runtime: &Runtime, place: &Place, connection: &mut Option<Client>) -> News {
    runtime.block_on(async {
        let asked = async {
            if connection.as_ref().is_none_or(Client::is_closed) {
                *connection = Some(connect(place).await?);
            }
            match connection {
                Some(client) => ask(client).await,
                None => Err("there is no connection".to_owned()),
            }
        };
        timeout(PATIENCE, asked).await.unwrap_or_else(|_| Err(format!("{place} does not answer")))
    })
}

async fn connect(place: &Place) -> Result<Client, String> {
    let mut config = Config::new();
    config.port(place.port).application_name("sqlcached top").connect_timeout(PATIENCE);
    if place.host.starts_with('/') {
        config.host_path(Path::new(&place.host))
    } else {
        config.host(&place.host)
    };
    config.user(place.role.as_deref().unwrap_or("sqlcached"));
    if let Some(password) = &place.password {
        config.password(password);
    }
    let (client, connection) =
        config.connect(NoTls).await.map_err(|error| format!("{place}: {}", explained(&error)))?;
    tokio::spawn(async move {
        // The next query returns the error that ended it.
        let _ended = connection.await;
    });
    Ok(client)
}

async fn ask(client: &Client) -> News {
    let explain = |error: tokio_postgres::Error| explained(&error);
    let second = client.query_opt(SECOND, &[]).await.map_err(explain)?;
    let server = client.query_one(SERVER, &[]).await.map_err(explain)?;
    let tables = client.query(OF_TABLES, &[&TABLES]).await.map_err(explain)?;
    let hot = client.query(HOT, &[&HOT_KEYS]).await.map_err(explain)?;
    let invalidated = client.query(INVALIDATED, &[&INVALIDATIONS]).await.map_err(explain)?;
    Ok(Sample {
        taken: Some(now()),
        uptime_s: server.get(0),
        memory_limit: server.get::<_, Option<String>>(1).unwrap_or_default(),
        second: second.as_ref().map(second_of).unwrap_or_default(),
        tables: tables.iter().map(table_of).collect(),
        hot: hot.iter().map(hot_key_of).collect(),
        invalidations: invalidated.iter().map(invalidation_of).collect(),
    })
}

fn second_of(row: &Row) -> Second {
    Second {
        hits: row.get(0),
        misses: row.get(1),
        operations: row.get(2),
        evicted: row.get(3),
        connections: row.get(4),
        rows: row.get(5),
        bytes: row.get(6),
    }
}

fn table_of(row: &Row) -> TableFigures {
    TableFigures {
        name: row.get(0),
        rows: row.get(1),
        bytes: row.get(2),
        hits: row.get(3),
        misses: row.get(4),
        written: row.get(5),
        evicted: row.get(6),
        expired: row.get(7),
        invalidated: row.get(8),
    }
}

fn hot_key_of(row: &Row) -> HotKey {
    HotKey { table: row.get(0), key: row.get(1), reads: row.get(2), writes: row.get(3), share: row.get(4) }
}

fn invalidation_of(row: &Row) -> Invalidation {
    Invalidation { at: row.get(0), role: row.get(1), rows: row.get(2), statement: row.get(3) }
}

/// The server's own words where it has some; else the system's.
fn explained(error: &tokio_postgres::Error) -> String {
    if let Some(refusal) = error.as_db_error() {
        return refusal.message().to_owned();
    }
    let cause = std::error::Error::source(error).map(ToString::to_string);
    cause.unwrap_or_else(|| error.to_string())
}
