//! Concurrent clients of one row through every protocol: memcached's text and meta commands over TCP and a Unix socket,
//! `sql`, PostgreSQL's protocol, and reads in shared memory. What they were answered is what some order of their
//! operations one after the other would answer; also across `kill -9`, where what was under way may have happened or
//! not.
//!
//! `OPERATIONS=1000000` asks for a longer run, `SEED=...` begins with the same random numbers.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;
use sqlcached_client::{Client as Near, Lookup, Meta, Options, Renewal};
use tokio::runtime::Runtime;
use tokio_postgres::{NoTls, SimpleQueryMessage};

use crate::client::Client;
use crate::daemon::{Daemon, Folder, free_port};
use crate::seed;

#[path = "../../crates/engine/tests/linear/mod.rs"]
mod linear;

use linear::run::{Checked, Phase, Plan, Worker, check};
use linear::{Answer, Op, Seen, Ttl, number, seen_in_json, sql_of};

const CLIENTS: usize = 4;

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, body TEXT, n INT DEFAULT 0) \
                     WITH (prefix = 't:', value = 'body', shared_memory = on)";

/// Where a daemon listens; it comes back at the same place.
#[derive(Clone)]
struct Place {
    socket: PathBuf,
    port: u16,
    sql_port: u16,
}

/// A client of the daemon with a connection of each kind, made when it is used.
struct Everywhere {
    place: Place,
    random: fastrand::Rng,
    memcached: Option<Client>,
    postgres: Option<(Runtime, tokio_postgres::Client)>,
    near: Option<Near>,
}

/// The connection broke.
struct Broken;

impl From<std::io::Error> for Broken {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

/// What a statement came to: how many rows, and the one that it showed; or its SQLSTATE.
type Outcome = Result<(u64, Option<Value>), String>;

fn word(line: &str) -> Result<&str, Broken> {
    if line.is_empty() { Err(Broken) } else { Ok(line) }
}

fn plain(line: &str) -> Answer {
    match line {
        "STORED" | "TOUCHED" | "DELETED" | "HD" => Answer::Done,
        "NOT_STORED" | "NOT_FOUND" | "NS" | "NF" | "EN" => Answer::Not,
        "EXISTS" | "EX" => Answer::Exists,
        line if line.contains("non-numeric") => Answer::NoNumber,
        line => Answer::Number(line.parse().unwrap_or_else(|_| panic!("{line:?}"))),
    }
}

impl Everywhere {
    fn new(place: &Place, seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self { place: place.clone(), random, memcached: None, postgres: None, near: None }
    }

    fn forget(&mut self) {
        (self.memcached, self.postgres, self.near) = (None, None, None);
    }

    fn memcached(&mut self) -> Result<&mut Client, Broken> {
        if self.memcached.is_none() {
            self.memcached = Some(if self.random.bool() {
                Client::try_at("127.0.0.1", self.place.port)?
            } else {
                Client::try_unix(&self.place.socket)?
            });
        }
        self.memcached.as_mut().ok_or(Broken)
    }

    /// A request with its data, and the line that answers.
    fn ask(&mut self, request: &str) -> Result<String, Broken> {
        let client = self.memcached()?;
        client.try_send(request.as_bytes())?;
        word(&client.try_line()?).map(str::to_owned)
    }

    fn plain(&mut self, request: &str) -> Result<Answer, Broken> {
        self.ask(request).map(|line| plain(&line))
    }

    fn line(&mut self) -> Result<String, Broken> {
        Ok(self.memcached()?.try_line()?)
    }

    /// Stores by memcached's command, or by `ms` with its mode. `cas` is the value to compare with.
    fn store(
        &mut self,
        (verb, mode): (&str, char),
        key: usize,
        value: &str,
        (flags, exptime): (u32, u64),
        cas: Option<u64>,
    ) -> Result<Answer, Broken> {
        let bytes = value.len();
        let head = match (self.random.bool(), cas) {
            (true, None) => format!("{verb} t:{key} {flags} {exptime} {bytes}"),
            (true, Some(cas)) => format!("{verb} t:{key} {flags} {exptime} {bytes} {cas}"),
            (false, None) => format!("ms t:{key} {bytes} M{mode} F{flags} T{exptime}"),
            (false, Some(cas)) => format!("ms t:{key} {bytes} M{mode} F{flags} T{exptime} C{cas}"),
        };
        self.plain(&format!("{head}\r\n{value}\r\n"))
    }

    /// `gets` or `gats`.
    fn get(&mut self, request: &str) -> Result<Answer, Broken> {
        let head = self.ask(request)?;
        if head == "END" {
            return Ok(Answer::Not);
        }
        let words: Vec<&str> = head.split(' ').collect();
        let [_, _, flags, _, cas] = words[..] else { panic!("{head:?}") };
        let value = self.line()?.into_bytes();
        word(&self.line()?)?;
        let (flags, cas) = (flags.parse().ok(), cas.parse().ok());
        Ok(Answer::Row(Seen { value: Some(value), flags, cas, ..Seen::default() }))
    }

    /// `mg` with these flags, and the row's facts.
    fn meta(&mut self, key: usize, exptime: Option<u64>) -> Result<Answer, Broken> {
        let touch = exptime.map_or_else(String::new, |exptime| format!(" T{exptime}"));
        let head = self.ask(&format!("mg t:{key} f t c v{touch}\r\n"))?;
        if head == "EN" {
            return Ok(Answer::Not);
        }
        let value = self.line()?.into_bytes();
        let mut seen = Seen { value: Some(value), stale: Some(false), won: Some(false), ..Seen::default() };
        for fact in head.split(' ').skip(2) {
            let (name, rest) = fact.split_at(1);
            match name {
                "f" => seen.flags = rest.parse().ok(),
                // Of one that is touched it is the new one.
                "t" if exptime.is_none() => seen.ttl = Some(Ttl::shown(rest.parse().ok())),
                "c" => seen.cas = rest.parse().ok(),
                "W" => seen.won = Some(true),
                "X" => seen.stale = Some(true),
                _ => {}
            }
        }
        Ok(Answer::Row(seen))
    }

    fn meta_incr(&mut self, request: &str) -> Result<Answer, Broken> {
        let line = self.ask(request)?;
        if !line.starts_with("VA ") {
            return Ok(plain(&line));
        }
        let number = self.line()?;
        Ok(plain(word(&number)?))
    }

    /// A statement, by either protocol.
    fn sql(&mut self, statement: &str) -> Result<Answer, Broken> {
        let outcome =
            if self.random.bool() { self.by_memcached(statement)? } else { self.by_postgres(statement)? };
        match outcome {
            Ok((0, _)) => Ok(Answer::Not),
            Ok((1, None)) => Ok(Answer::Done),
            Ok((1, Some(row))) => Ok(seen_in_json(&row.to_string())),
            Err(state) if state == "23505" && !statement.contains("CONFLICT") => Ok(Answer::Not),
            other => panic!("{statement}: {other:?}"),
        }
    }

    fn by_memcached(&mut self, statement: &str) -> Result<Outcome, Broken> {
        let mut row = None;
        let mut line = self.ask(&format!("sql {}\r\n{statement}\r\n", statement.len()))?;
        loop {
            if let Some(count) = line.strip_prefix("OK ") {
                return Ok(Ok((count.parse().unwrap(), None)));
            }
            if let Some(error) = line.strip_prefix("ERROR ") {
                return Ok(Err(error[..5].to_owned()));
            }
            if line == "END" {
                return Ok(Ok((u64::from(row.is_some()), row)));
            }
            row = Some(serde_json::from_str(word(&line)?).unwrap());
            line = self.line()?;
        }
    }

    fn postgres(&mut self) -> Result<&(Runtime, tokio_postgres::Client), Broken> {
        if self.postgres.is_none() {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let config = format!("host=127.0.0.1 port={} user=app dbname=sqlcached", self.place.sql_port);
            let connected = runtime.block_on(tokio_postgres::connect(&config, NoTls));
            let (client, connection) = connected.map_err(|_| Broken)?;
            runtime.spawn(connection);
            self.postgres = Some((runtime, client));
        }
        self.postgres.as_ref().ok_or(Broken)
    }

    fn by_postgres(&mut self, statement: &str) -> Result<Outcome, Broken> {
        let (runtime, client) = self.postgres()?;
        let messages = match runtime.block_on(client.simple_query(statement)) {
            Ok(messages) => messages,
            Err(error) => {
                // A server that ends says so to its clients.
                let state = error.code().map(|code| code.code().to_owned());
                return state.filter(|state| !state.starts_with("57P")).map(Err).ok_or(Broken);
            }
        };
        let (mut count, mut found) = (0, None);
        for message in messages {
            match message {
                SimpleQueryMessage::Row(row) => {
                    let cell = |at: usize| match row.get(at) {
                        None => Value::Null,
                        Some(text) if row.columns()[at].name() == "body" => Value::from(text),
                        Some("t") => Value::from(1),
                        Some("f") => Value::from(0),
                        Some(text) => Value::from(text.parse::<i64>().unwrap()),
                    };
                    let cells = (0..row.len()).map(|at| (row.columns()[at].name().to_owned(), cell(at)));
                    found = Some(Value::Object(cells.collect()));
                }
                SimpleQueryMessage::CommandComplete(rows) => count = rows,
                _ => {}
            }
        }
        Ok(Ok((count, found)))
    }

    fn near(&mut self, key: usize) -> Result<Answer, Broken> {
        if self.near.is_none() {
            self.near = Some(Near::connect(&Options::new(&self.place.socket)).map_err(|_| Broken)?);
        }
        let near = self.near.as_ref().ok_or(Broken)?;
        let found = near.get_key(format!("t:{key}").as_bytes()).map_err(|_| Broken)?;
        let stale = Some(matches!(found, Lookup::Stale(_)));
        let Some(found) = found.value() else { return Ok(Answer::Not) };
        let Meta { flags, cas, renewal } = found.meta;
        let (flags, cas, won) = (Some(flags), Some(cas), Some(renewal == Renewal::Yours));
        Ok(Answer::Row(Seen { value: Some(found.bytes), flags, cas, stale, won, ..Seen::default() }))
    }

    fn answer(&mut self, key: usize, op: &Op) -> Result<Answer, Broken> {
        let whole = |value: u64| value.to_string();
        match *op {
            Op::Set { value, flags, exptime } => {
                self.store(("set", 'S'), key, &whole(value), (flags, exptime), None)
            }
            Op::Add { value, flags, exptime } => {
                self.store(("add", 'E'), key, &whole(value), (flags, exptime), None)
            }
            Op::Replace { value, flags, exptime } => {
                self.store(("replace", 'R'), key, &whole(value), (flags, exptime), None)
            }
            Op::Cas { cas, value, flags, exptime } => {
                self.store(("cas", 'S'), key, &whole(value), (flags, exptime), Some(cas))
            }
            Op::Append(byte) => self.store(("append", 'A'), key, &char::from(byte).to_string(), (0, 0), None),
            Op::Prepend(byte) => {
                self.store(("prepend", 'P'), key, &char::from(byte).to_string(), (0, 0), None)
            }
            Op::Incr(delta) => self.plain(&format!("incr t:{key} {delta}\r\n")),
            Op::Decr(delta) => self.plain(&format!("decr t:{key} {delta}\r\n")),
            Op::Get => self.get(&format!("gets t:{key}\r\n")),
            Op::GetAndTouch(exptime) => self.get(&format!("gats {exptime} t:{key}\r\n")),
            Op::Touch(exptime) => self.plain(&format!("touch t:{key} {exptime}\r\n")),
            Op::Delete if self.random.bool() => self.plain(&format!("md t:{key}\r\n")),
            Op::Delete => self.plain(&format!("delete t:{key}\r\n")),
            Op::MetaGet => self.meta(key, None),
            Op::MetaGetAndTouch(exptime) => self.meta(key, Some(exptime)),
            Op::MetaIncr { delta, exptime } => {
                self.meta_incr(&format!("ma t:{key} D{delta} T{exptime} v\r\n"))
            }
            Op::Invalidate => self.plain(&format!("md t:{key} I\r\n")),
            Op::Near => self.near(key),
            _ => self.sql(&sql_of(key, op)),
        }
    }
}

impl Worker for Everywhere {
    fn run(&mut self, key: usize, op: &Op) -> Answer {
        // Now and then over another connection.
        if self.random.u8(..) == 0 {
            self.forget();
        }
        self.answer(key, op).unwrap_or_else(|Broken| {
            self.forget();
            Answer::Unknown
        })
    }
}

fn start() -> (Daemon, Place) {
    let folder = Folder::new();
    let sql_port = free_port();
    let (port, sockets) = (sql_port.to_string(), folder.0.display().to_string());
    let daemon =
        Daemon::start_in(folder, &["-m", "64", "-t", "4", "--sql-port", &port, "--sql-socket-dir", &sockets]);
    daemon.connect().change(TABLE);
    let place = Place { socket: daemon.socket(), port: daemon.port, sql_port };
    (daemon, place)
}

fn report(checked: Result<Checked, String>) {
    println!("{}", checked.unwrap_or_else(|found| panic!("{found}")));
}

/// While the daemon lives, no connection breaks.
struct Alive(Everywhere);

impl Worker for Alive {
    fn run(&mut self, key: usize, op: &Op) -> Answer {
        let answer = self.0.run(key, op);
        assert_ne!(answer, Answer::Unknown, "{op:?}");
        answer
    }
}

#[test]
fn operations_through_every_protocol_take_effect_one_after_the_other() {
    let seed = seed();
    let (_daemon, place) = start();
    let plan = Plan { seed, operations: number("OPERATIONS").unwrap_or(10_000), clients: CLIENTS };
    report(check(plan, |client| Alive(Everywhere::new(&place, seed ^ client as u64)), |_, _| {}));
}

#[test]
fn operations_take_effect_one_after_the_other_across_deaths() {
    const WINDOWS_PER_LIFE: u64 = 20;
    let seed = seed();
    let (daemon, place) = start();
    let daemon = Mutex::new(daemon);
    let mut random = fastrand::Rng::with_seed(seed);
    // A death takes as long as some hundred operations.
    let operations = number("OPERATIONS").map_or(5_000, |operations| operations / 10);
    let at = |phase, window: u64| {
        if window % WINDOWS_PER_LIFE != WINDOWS_PER_LIFE - 1 {
            return;
        }
        let mut daemon = daemon.lock().unwrap();
        match phase {
            Phase::Begun => {
                std::thread::sleep(Duration::from_micros(random.u64(..3_000)));
                daemon.kill();
            }
            Phase::Resting => daemon.restart(),
        }
    };
    let plan = Plan { seed, operations, clients: CLIENTS };
    report(check(plan, |client| Everywhere::new(&place, seed ^ client as u64), at));
}
