//! A PostgreSQL of the test's own, in a temporary directory: Debian's 15, or 17.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::daemon::{Folder, free_port, run, signal};
use crate::drivers::place::Place;

/// Where Debian puts the programs that are not on the search path.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

/// Where `cargo xtask tools` puts those of version 17.
const PROGRAMS_17: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/drivers/postgresql-17/bin");

/// Making a cluster and starting it takes a few seconds on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running server; it ends with its owner.
#[derive(Debug)]
pub(crate) struct PostgreSql {
    child: Child,
    pub(crate) place: Place,
    folder: Folder,
    settings: Vec<String>,
    programs: PathBuf,
}

impl PostgreSql {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// With settings of the test's own. The role `cache` must show its password by SCRAM, all others are believed.
    pub(crate) fn start_with(settings: &[&str]) -> Self {
        Self::start_by(Path::new(PROGRAMS), settings)
    }

    /// Version 17. Its programs may lie where their user cannot read them; then there is none.
    pub(crate) fn start_17(settings: &[&str]) -> Option<Self> {
        let programs = Path::new(PROGRAMS_17);
        let runs = run(unprivileged(programs, "postgres").arg("--version")).0 == Some(0);
        runs.then(|| Self::start_by(programs, settings))
    }

    /// A standby of this server, which is stopped while its files are copied.
    pub(crate) fn standby(&mut self, settings: &[&str]) -> Self {
        let folder = Folder::new();
        self.stop();
        let copied = run(Command::new("cp").arg("-a").arg(self.folder.0.join("data")).arg(&folder.0));
        assert_eq!(copied.0, Some(0), "{}", copied.2);
        std::fs::write(folder.0.join("data/standby.signal"), "").unwrap();
        if is_root() {
            assert_eq!(run(Command::new("chown").args(["-R", "postgres"]).arg(&folder.0)).0, Some(0));
        }
        self.start_again();
        let mut all = self.settings.clone();
        all.push(format!(
            "primary_conninfo=host=127.0.0.1 port={} user=postgres dbname=postgres",
            self.place.port
        ));
        all.extend(settings.iter().map(|setting| (*setting).to_owned()));
        let place = Place { port: free_port(), sockets: folder.0.clone(), ..self.place.clone() };
        let child = serve(&self.programs, &folder, place.port, &all);
        let server = Self { child, place, folder, settings: all, programs: self.programs.clone() };
        server.wait_until_it_serves();
        server
    }

    fn start_by(programs: &Path, settings: &[&str]) -> Self {
        let folder = Folder::new();
        let data = folder.0.join("data");
        if is_root() {
            assert_eq!(run(Command::new("chown").arg("postgres").arg(&folder.0)).0, Some(0));
        }
        let mut initdb = unprivileged(programs, "initdb");
        initdb.args(["--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "-D"]);
        let (code, out, error) = run(initdb.arg(&data));
        assert_eq!(code, Some(0), "initdb, in {}\n{out}{error}", programs.display());
        let rules = data.join("pg_hba.conf");
        let known = std::fs::read_to_string(&rules).unwrap();
        std::fs::write(
            &rules,
            format!(
                "host all cache all scram-sha-256
{known}"
            ),
        )
        .unwrap();
        let port = free_port();
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let place = Place {
            port,
            sockets: folder.0.clone(),
            user: "postgres",
            database: "postgres",
            memcached: None,
        };
        let child = serve(programs, &folder, port, &settings);
        let server = Self { child, place, folder, settings, programs: programs.to_owned() };
        server.wait_until_it_serves();
        server
    }

    /// Where it keeps its files.
    pub(crate) fn folder(&self) -> String {
        self.folder.0.display().to_string()
    }

    /// Ends it at once, without a checkpoint. Its own children go with it, which SIGKILL would not see to.
    pub(crate) fn stop(&mut self) {
        let _ = Command::new("kill").args(["-s", "QUIT", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }

    /// Its processes, the first of them first.
    fn processes(&self) -> Vec<u32> {
        let own = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap();
        let children = children.split_whitespace().map(|number| number.parse().unwrap());
        std::iter::once(own).chain(children).collect()
    }

    /// Sends all of its processes a signal.
    pub(crate) fn signal_all(&self, name: &str) {
        // The first of them makes no more once it is stopped, so the others are looked for then. Some may end
        // meanwhile.
        signal(self.child.id(), name);
        for process in self.processes() {
            let _ended = run(Command::new("kill").args(["-s", name, &process.to_string()]));
        }
    }

    /// Kills all of its processes, as a machine that loses its power does.
    pub(crate) fn kill_all(&mut self) {
        // It makes no more of them meanwhile.
        signal(self.child.id(), "STOP");
        let processes = self.processes();
        for process in &processes {
            // Those whose first process is gone end by themselves.
            let _ended = run(Command::new("kill").args(["-s", "KILL", &process.to_string()]));
        }
        self.child.wait().unwrap();
        let end = Instant::now() + PATIENCE;
        while processes.iter().any(|own| Path::new(&format!("/proc/{own}/exe")).exists()) {
            assert!(Instant::now() < end, "PostgreSQL is still there");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Puts a copy of its files aside. It is stopped meanwhile.
    pub(crate) fn copy_files(&mut self) {
        self.stop_cleanly();
        self.move_files("data", "copy");
        self.start_again();
    }

    /// Puts the copy in the place of its files.
    pub(crate) fn restore_files(&mut self) {
        self.stop();
        std::fs::remove_dir_all(self.folder.0.join("data")).unwrap();
        self.move_files("copy", "data");
        self.start_again();
    }

    fn move_files(&self, from: &str, to: &str) {
        let path = |name: &str| self.folder.0.join(name);
        let copied = run(Command::new("cp").arg("-a").arg(path(from)).arg(path(to)));
        assert_eq!(copied.0, Some(0), "{}", copied.2);
    }

    /// Ends it as an administrator does: all is written, and those who stream have all of it.
    pub(crate) fn stop_cleanly(&mut self) {
        let _ = Command::new("kill").args(["-s", "INT", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }

    /// Starts it again with what it has.
    pub(crate) fn start_again(&mut self) {
        self.child = serve(&self.programs, &self.folder, self.place.port, &self.settings);
        self.wait_until_it_serves();
    }

    /// A new database of this name, so that suites do not meet one another's tables.
    pub(crate) fn database(&self, name: &'static str) -> Place {
        let mut psql = self.place.program("psql");
        let (code, out, error) = run(psql.args(["-X", "-q", "-c", &format!("CREATE DATABASE \"{name}\"")]));
        assert_eq!(code, Some(0), "{out}{error}");
        Place { database: name, ..self.place.clone() }
    }

    fn wait_until_it_serves(&self) {
        let end = Instant::now() + PATIENCE;
        while run(self.place.program("pg_isready").arg("-q")).0 != Some(0) {
            assert!(Instant::now() < end, "PostgreSQL does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for PostgreSql {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(programs: &Path, folder: &Folder, port: u16, settings: &[String]) -> Child {
    let log = File::options().create(true).append(true).open(folder.0.join("log")).unwrap();
    let mut server = unprivileged(programs, "postgres");
    server.arg("-D").arg(folder.0.join("data")).args(["-p", &port.to_string()]).arg("-k").arg(&folder.0);
    let own = ["listen_addresses=127.0.0.1", "fsync=off", "shared_buffers=32MB"];
    for setting in own.into_iter().chain(settings.iter().map(String::as_str)) {
        server.args(["-c", setting]);
    }
    server.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
}

/// One of PostgreSQL's programs, which refuse to run as root.
fn unprivileged(programs: &Path, program: &str) -> Command {
    let path = programs.join(program);
    if !is_root() {
        return Command::new(path);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(path);
    command
}

pub(crate) fn is_root() -> bool {
    run(Command::new("id").arg("-u")).1.trim() == "0"
}
