//! A PostgreSQL of the test's own, and connections to it.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use inspect::{Catalogue, Failure};
use tokio::runtime::Runtime;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// Where Debian puts the programs that are not on the search path.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

/// Where `cargo xtask tools` puts those of version 17.
const PROGRAMS_17: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/drivers/postgresql-17/bin");

/// How often a connection is tried while the server starts: a minute in all.
const TRIES: usize = 1_200;

/// It ends with its owner.
pub(crate) struct PostgreSql {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl PostgreSql {
    /// Version 15.
    pub(crate) fn start() -> Self {
        Self::start_by(PROGRAMS)
    }

    /// Version 17. Its programs may lie where their user cannot read them; then there is none.
    pub(crate) fn start_17() -> Option<Self> {
        let version = unprivileged(PROGRAMS_17, "postgres").arg("--version").output();
        let runs = version.is_ok_and(|output| output.status.success());
        runs.then(|| Self::start_by(PROGRAMS_17))
    }

    fn start_by(programs: &str) -> Self {
        // Below the ports that Linux gives to clients, of whom one could have it before the server.
        let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
        let port = std::iter::repeat_with(|| fastrand::u16(12_000..32_000)).find(is_free).unwrap();
        let folder = PathBuf::from(format!("/dev/shm/sqlcached-inspect-{port}"));
        std::fs::create_dir(&folder).unwrap();
        if rustix::process::getuid().is_root() {
            assert!(Command::new("chown").arg("postgres").arg(&folder).status().unwrap().success());
        }
        let mut initdb = unprivileged(programs, "initdb");
        initdb.args(["--no-sync", "-A", "trust", "-U", "me", "-E", "UTF8", "--locale=C.UTF-8", "-D"]);
        let made = initdb.arg(folder.join("data")).stdout(Stdio::null()).status().unwrap();
        assert!(made.success(), "initdb, of the package postgresql-15");
        let mut server = unprivileged(programs, "postgres");
        server.arg("-D").arg(folder.join("data")).args(["-p", &port.to_string()]).arg("-k").arg(&folder);
        for setting in ["listen_addresses=127.0.0.1", "fsync=off", "wal_level=logical", "timezone=UTC"] {
            server.args(["-c", setting]);
        }
        let child = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { child, port, folder }
    }

    /// A connection as this role, which is tried until the server answers.
    pub(crate) fn connect(&self, user: &str) -> Connection {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let place = format!("host=127.0.0.1 port={} user={user} dbname=postgres", self.port);
        for _ in 0..TRIES {
            if let Ok((client, connection)) = runtime.block_on(tokio_postgres::connect(&place, NoTls)) {
                runtime.spawn(connection);
                return Connection { runtime, client };
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
fn unprivileged(programs: &str, program: &str) -> Command {
    let path = format!("{programs}/{program}");
    if !rustix::process::getuid().is_root() {
        return Command::new(path);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--pdeathsig=QUIT"]).arg(path);
    command
}

/// A connection.
pub(crate) struct Connection {
    runtime: Runtime,
    client: Client,
}

impl Connection {
    /// The rows of a query as texts; a test asks for nothing that fails.
    pub(crate) fn rows(&mut self, sql: &str) -> Vec<Vec<Option<String>>> {
        self.query(sql).unwrap_or_else(|failure| panic!("{}\n{sql}", failure.message))
    }

    /// The first column of the first row.
    pub(crate) fn value(&mut self, sql: &str) -> String {
        self.rows(sql)[0][0].clone().unwrap()
    }
}

impl Catalogue for Connection {
    fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Failure> {
        let messages =
            self.runtime.block_on(self.client.simple_query(sql)).map_err(|error| failure(&error))?;
        let rows = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect())
            }
            _ => None,
        });
        Ok(rows.collect())
    }

    fn parameter_types(&mut self, sql: &str, given: &[u32]) -> Result<Vec<u32>, Failure> {
        let types: Vec<Type> =
            given.iter().map(|oid| Type::from_oid(*oid).unwrap_or(Type::UNKNOWN)).collect();
        let prepared =
            self.runtime.block_on(self.client.prepare_typed(sql, &types)).map_err(|error| failure(&error))?;
        Ok(prepared.params().iter().map(Type::oid).collect())
    }
}

fn failure(error: &tokio_postgres::Error) -> Failure {
    let known = error.as_db_error();
    Failure {
        state: known.map_or_else(|| "08006".to_owned(), |error| error.code().code().to_owned()),
        message: known.map_or_else(|| error.to_string(), |error| error.message().to_owned()),
    }
}
