//! Random queries, at a PostgreSQL 15 and at a daemon: the same rows of the same types, or both fail.
//!
//! What is compared is the types of the columns, the rows, and the SQLSTATE of an error. The statements are of
//! numbers, decimals, texts, truths, dates, moments, spans, UUIDs, bytes, arrays and `jsonb`, of patterns, aggregates,
//! windows, functions that return rows, and `LATERAL`. What is known to differ is in `known.rs`, with its reason.
//! `STATEMENTS` says how many; `SEED` replays a run; `DIFFERENCES` says how many are shown before the test fails.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fastrand::Rng;
use server::Config;

use crate::harness::{Daemon, config, daemon_with, seed};
use crate::pg::{bind, execute, message, packet, parse, query};

mod bare;
mod comparisons;
mod known;
mod words;
mod world;

use known::{KNOWN, Known, is_known};
use world::World;

/// Where Debian puts the programs of PostgreSQL.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
/// Making a cluster and starting it takes a few seconds on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// Looks whether it does, 50 ms apart.
const TRIES: u32 = 1_200;
/// Statements of a short run.
const STATEMENTS: u64 = 3_000;

/// Its seed.
const SHORT_RUN: u64 = 15;

#[expect(clippy::disallowed_methods, reason = "the environment says which run to replay")]
fn seed_given() -> bool {
    std::env::var("SEED").is_ok()
}

/// A PostgreSQL of the test's own. It ends with its owner.
pub(crate) struct PostgreSql {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl PostgreSql {
    fn start() -> Self {
        // Below the ports that Linux gives to clients, of whom one could have it before the server.
        let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
        let port = std::iter::repeat_with(|| fastrand::u16(12_000..32_000)).find(is_free).unwrap();
        let folder = PathBuf::from(format!("/dev/shm/sqlcached-random-{port}"));
        std::fs::create_dir(&folder).unwrap();
        if rustix::process::getuid().is_root() {
            assert!(Command::new("chown").arg("postgres").arg(&folder).status().unwrap().success());
        }
        let mut initdb = unprivileged("initdb");
        initdb.args(["--no-sync", "-A", "trust", "-U", "me", "-E", "UTF8", "--locale=C.UTF-8", "-D"]);
        let made = initdb.arg(folder.join("data")).stdout(Stdio::null()).status().unwrap();
        assert!(made.success(), "initdb, of the package postgresql-15");
        let mut server = unprivileged("postgres");
        server.arg("-D").arg(folder.join("data")).args(["-p", &port.to_string()]).arg("-k").arg(&folder);
        server.args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "timezone=UTC"]);
        let child = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { child, port, folder }
    }

    fn connect(&self) -> Session {
        for _ in 0..TRIES {
            let connected = TcpStream::connect(("127.0.0.1", self.port)).ok();
            if let Some(session) = connected.and_then(|stream| Session::begin(stream, b"postgres")) {
                return session;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("PostgreSQL does not answer");
    }
}

impl Drop for PostgreSql {
    fn drop(&mut self) {
        // SIGQUIT: at once, with its own children.
        let _ = Command::new("kill").args(["-s", "QUIT", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A program of PostgreSQL, which does not run as root.
fn unprivileged(program: &str) -> Command {
    let path = format!("{PROGRAMS}/{program}");
    if !rustix::process::getuid().is_root() {
        return Command::new(path);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--pdeathsig=QUIT"]).arg(path);
    command
}

/// What a statement was answered.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// With this SQLSTATE.
    Failed(String),
    /// The names and types of the columns, and the rows as texts.
    Rows(Vec<Column>, Vec<Vec<Option<String>>>),
}

impl Answer {
    /// The same where the order of the rows does not count.
    fn sorted(self) -> Self {
        match self {
            Self::Rows(columns, mut rows) => {
                rows.sort();
                Self::Rows(columns, rows)
            }
            failed @ Self::Failed(_) => failed,
        }
    }

    /// The same where only the types of the columns count.
    fn without_names(self) -> Self {
        match self {
            Self::Rows(columns, rows) => {
                Self::Rows(columns.into_iter().map(|(_, ty)| (String::new(), ty)).collect(), rows)
            }
            failed @ Self::Failed(_) => failed,
        }
    }
}

/// A column's name and type.
pub(crate) type Column = (String, u32);

struct Session {
    stream: TcpStream,
}

impl Session {
    /// None where the server does not take it yet.
    fn begin(stream: TcpStream, database: &[u8]) -> Option<Self> {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut session = Self { stream };
        let parameters = [b"user\0me\0database\0", database, b"\0client_encoding\0UTF8\0\0"].concat();
        session.stream.write_all(&packet(3 << 16, &parameters)).ok()?;
        loop {
            match session.message()? {
                (b'Z', _) => return Some(session),
                (b'E', _) => return None,
                _ => {}
            }
        }
    }

    fn message(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes(head[1..].try_into().unwrap());
        let mut body = vec![0; usize::try_from(length).unwrap() - 4];
        self.stream.read_exact(&mut body).ok()?;
        Some((head[0], body))
    }

    fn ask(&mut self, sql: &str) -> Answer {
        self.send(sql);
        self.answer()
    }

    fn send(&mut self, sql: &str) {
        self.stream.write_all(&query(sql)).unwrap();
    }

    /// The same with parameters whose types are left open; nothing is said of the columns.
    fn ask_with(&mut self, sql: &str, parameters: &[&str]) -> Answer {
        let messages =
            [parse("", sql), bind("", "", parameters), execute("", 0), message(b'S', &[])].concat();
        self.stream.write_all(&messages).unwrap();
        self.answer()
    }

    fn answer(&mut self) -> Answer {
        let (mut types, mut rows, mut failed) = (Vec::new(), Vec::new(), None);
        loop {
            match self.message().expect("the server stays") {
                (b'T', body) => types = types_of(&body),
                (b'D', body) => rows.push(values_of(&body)),
                (b'E', body) => failed = Some(state_of(&body)),
                (b'Z', _) => return failed.map_or(Answer::Rows(types, rows), Answer::Failed),
                _ => {}
            }
        }
    }
}

/// The SQLSTATE of an error.
fn state_of(body: &[u8]) -> String {
    let mut fields = body.split(|byte| *byte == 0);
    let state = fields.find_map(|field| field.strip_prefix(b"C")).unwrap_or_default();
    String::from_utf8_lossy(state).into_owned()
}

fn types_of(mut body: &[u8]) -> Vec<Column> {
    let mut types = Vec::new();
    body = &body[2..];
    while let Some(end) = body.iter().position(|byte| *byte == 0) {
        let field = &body[end + 1..];
        let name = String::from_utf8_lossy(&body[..end]).into_owned();
        types.push((name, u32::from_be_bytes(field[6..10].try_into().unwrap())));
        body = &field[18..];
    }
    types
}

fn values_of(mut body: &[u8]) -> Vec<Option<String>> {
    let mut values = Vec::new();
    body = &body[2..];
    while !body.is_empty() {
        let length = i32::from_be_bytes(body[..4].try_into().unwrap());
        body = &body[4..];
        let Ok(length) = usize::try_from(length) else {
            values.push(None);
            continue;
        };
        let text = String::from_utf8_lossy(&body[..length]).into_owned();
        // SQLite has one zero.
        values.push(Some(if text == "-0" { "0".to_owned() } else { text }));
        body = &body[length..];
    }
    values
}

/// Both servers, with the same rows.
pub(crate) struct Both {
    theirs: Session,
    ours: Session,
}

impl Both {
    /// A PostgreSQL and a daemon, which end with the first of the two, and a session at each.
    pub(crate) fn start() -> ((PostgreSql, Daemon), Self) {
        let addresses = vec!["127.0.0.1:0".parse().unwrap()];
        let daemon = daemon_with(&Config { sql_addresses: addresses, ..config() });
        let server = PostgreSql::start();
        let ours = TcpStream::connect(daemon.server.sql_addresses()[0]).unwrap();
        let ours = Session::begin(ours, b"sqlcached").expect("a session");
        let both = Self { theirs: server.connect(), ours };
        ((server, daemon), both)
    }

    /// What both take.
    pub(crate) fn set(&mut self, statement: &str) {
        for session in [&mut self.theirs, &mut self.ours] {
            let answer = session.ask(statement);
            assert!(!matches!(answer, Answer::Failed(_)), "{statement}: {answer:?}");
        }
    }

    /// What PostgreSQL answers, and what the daemon does.
    pub(crate) fn ask(&mut self, sql: &str) -> (Answer, Answer) {
        (self.theirs.ask(sql), self.ours.ask(sql))
    }

    /// The same of several statements, which are sent before the first answer is read.
    pub(crate) fn ask_all(&mut self, statements: &[&str]) -> Vec<(Answer, Answer)> {
        for session in [&mut self.theirs, &mut self.ours] {
            for sql in statements {
                session.send(sql);
            }
        }
        statements.iter().map(|_| (self.theirs.answer(), self.ours.answer())).collect()
    }

    /// The same with parameters of no type.
    pub(crate) fn ask_with(&mut self, sql: &str, parameters: &[&str]) -> (Answer, Answer) {
        if parameters.is_empty() {
            let (theirs, ours) = self.ask(sql);
            return (theirs.without_names(), ours.without_names());
        }
        (self.theirs.ask_with(sql, parameters), self.ours.ask_with(sql, parameters))
    }

    fn set_up(&mut self, world: &mut World) {
        for statement in world.setup() {
            self.set(&statement);
        }
    }

    /// The two answers, if they differ.
    fn differ(&mut self, sql: &str) -> Option<(Answer, Answer)> {
        let (expected, found) = self.ask(sql);
        let (expected, found) = (expected.without_names(), found.without_names());
        (expected != found).then_some((expected, found))
    }
}

#[expect(clippy::disallowed_methods, reason = "a test may be told how much to do")]
fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|count| count.parse().expect("a number"))
}

#[test]
fn random_queries_answer_as_postgresql_does() {
    let asked = number_of("STATEMENTS");
    let (_servers, mut both) = Both::start();
    // A long run begins anywhere. The short one repeats itself, for a difference may be left.
    let replayed = asked.is_some() || seed_given();
    let mut world = World::new(Rng::with_seed(if replayed { seed() } else { SHORT_RUN }));
    both.set_up(&mut world);
    for Known { what, shown_by, reason, .. } in KNOWN {
        let differs = both.differ(shown_by).is_some();
        assert!(
            differs,
            "{what} ({reason}): {shown_by} is answered as PostgreSQL does; take it out of the list"
        );
    }
    let (mut left, mut listed) = (number_of("DIFFERENCES").unwrap_or(1), 0_u64);
    let (mut shown, mut met) = (Vec::new(), 0_u64);
    for _ in 0..asked.unwrap_or(STATEMENTS) {
        let sql = world.statement();
        met += 1;
        let Some((expected, found)) = both.differ(&sql) else { continue };
        if is_known(&expected, &found) {
            listed += 1;
            continue;
        }
        shown.push(format!("{sql}\n  PostgreSQL: {expected:?}\n  here:       {found:?}\n"));
        left -= 1;
        if left == 0 {
            break;
        }
    }
    eprintln!("{met} statements; {listed} differ as the list says");
    assert!(shown.is_empty(), "{}", shown.concat());
}
