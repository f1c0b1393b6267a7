//! The databases: statements run there, and rows read there and here, with one client for all tables.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use super::effects::{self, CHANGE, DEFINITION, Effects};
use crate::drivers::mariadb::MariaDb;
use crate::drivers::place::Place;
use crate::drivers::postgresql::PostgreSql;
use crate::sources::psql;

pub(super) enum Source {
    Postgres(PostgreSql),
    MariaDb(MariaDb),
}

/// A statement of a round.
pub(super) struct Step {
    pub(super) text: String,
    pub(super) is_definition: bool,
}

/// The rows of a table, or the SQLSTATE of why it cannot be read.
pub(super) type Rows = Result<HashSet<String>, String>;

/// Reads tables with one client of PostgreSQL's. The queries by the names of what they read.
pub(super) fn rows_of(place: &Place, queries: &[(String, String)]) -> HashMap<String, Rows> {
    let each = |(name, query): &(String, String)| format!("{query};\n\\echo ={name} :SQLSTATE\n");
    let mut client = place.program("psql");
    let printed = told(client.args(["-X", "-A", "-t", "-q"]), queries.iter().map(each).collect());
    let mut rows = HashMap::new();
    let mut read = HashSet::new();
    for line in printed.lines() {
        match line.strip_prefix('=').and_then(|end| end.split_once(' ')) {
            Some((name, "00000")) => _ = rows.insert(name.to_owned(), Ok(std::mem::take(&mut read))),
            Some((name, state)) => _ = rows.insert(name.to_owned(), Err(state.to_owned())),
            None => _ = read.insert(line.to_owned()),
        }
    }
    assert_eq!(rows.len(), queries.len(), "a client ended before it had read all\n{printed}");
    rows
}

impl Source {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Postgres(database) => format!("PostgreSQL at {}", database.place.port),
            Self::MariaDb(_) => "MariaDB".to_owned(),
        }
    }

    /// Runs statements one after the other; one that fails is passed over, for the random ones do not always apply.
    pub(super) fn run(&self, steps: &[Step]) -> Effects {
        let kind = |step: &Step| if step.is_definition { DEFINITION } else { CHANGE };
        match self {
            Self::Postgres(server) => {
                let each = |step: &Step| format!("\\echo {}\n{}", kind(step), step.text);
                effects::of_psql(&told(
                    server.place.program("psql").arg("-X"),
                    steps.iter().map(each).collect(),
                ))
            }
            Self::MariaDb(server) => {
                let each = |step: &Step| format!("SELECT '{}';\n{}", kind(step), step.text);
                let text = format!("USE shop;\n{}", steps.iter().map(each).collect::<String>());
                effects::of_mariadb(&told(server.client().args(["--force", "-vv"]), text))
            }
        }
    }

    /// The rows of its tables.
    pub(super) fn rows(&self, queries: &[(String, String)]) -> HashMap<String, HashSet<String>> {
        match self {
            Self::Postgres(server) => rows_of(&server.place, queries)
                .into_iter()
                .map(|(name, rows)| (name, rows.expect("a table of the source is there")))
                .collect(),
            Self::MariaDb(server) => {
                let each = |(name, query): &(String, String)| format!("{query}; SELECT '={name}';");
                let text = queries.iter().map(each).collect::<String>();
                let printed = server.ask(&format!("USE shop; {text}")).replace('\t', "|");
                let mut rows = HashMap::new();
                let mut read = HashSet::new();
                for line in printed.lines() {
                    match line.strip_prefix('=') {
                        Some(name) => _ = rows.insert(name.to_owned(), std::mem::take(&mut read)),
                        None => _ = read.insert(line.to_owned()),
                    }
                }
                rows
            }
        }
    }

    /// Where its log is, as `wait_for_source` takes it.
    pub(super) fn place(&self) -> String {
        match self {
            Self::Postgres(server) => psql(&server.place, "SELECT pg_current_wal_insert_lsn()"),
            Self::MariaDb(server) => server.ask(crate::mariadb::PLACE),
        }
    }

    /// Ends it as a crash does, and starts it again.
    pub(super) fn restart(&mut self) {
        match self {
            Self::Postgres(server) => {
                server.stop();
                server.start_again();
            }
            Self::MariaDb(server) => {
                server.stop();
                server.start_again();
            }
        }
    }
}

/// A client that runs statements beside us. What it prints is nobody's.
pub(super) fn fed(client: &mut Command, statements: &str) -> Child {
    let mut child = client.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(statements.as_bytes()).unwrap();
    child
}

/// What a client prints while it runs statements: it prints before it has read all of them.
fn told(client: &mut Command, statements: String) -> String {
    let mut child =
        client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let written = std::thread::spawn(move || input.write_all(statements.as_bytes()));
    let printed = child.wait_with_output().unwrap().stdout;
    // A client that the server cut off has not read all; what it printed says how far it came.
    let _ = written.join();
    String::from_utf8_lossy(&printed).into_owned()
}
