//! Servers: started on a free port, asked for their processor time and memory, stopped at the end.

mod mariadb;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use hashbrown::HashMap;

use crate::address::Address;
use crate::client::Client;
use crate::clock;
use crate::cores::Cores;
use crate::failure::{Context, Failure, Result};
use crate::postgres::Wire;
use crate::protocol::Protocol;

/// A server that is not up after so long is given up.
const START_NS: u64 = 10_000_000_000;
/// A server that has not stopped after so long is killed.
const STOP_NS: u64 = 10_000_000_000;
/// How often a start or a stop is looked at.
const GLANCE: Duration = Duration::from_millis(10);
/// A server that was busy goes to sleep within this time; its counters then stand still.
const SETTLE: Duration = Duration::from_millis(5);

/// What can be started.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A build of ours.
    Sqlcached {
        /// Its program.
        program: PathBuf,
        /// What tables call it.
        label: String,
    },
    /// The system's memcached.
    Memcached,
    /// The system's Redis.
    Redis,
    /// The system's PostgreSQL 15.
    PostgreSql,
    /// The system's MariaDB.
    MariaDb,
}

/// Where Debian has the programs of PostgreSQL's server.
const POSTGRESQL: &str = "/usr/lib/postgresql/15/bin";
/// The role of a cluster made here.
pub(crate) const ROLE: &str = "postgres";

impl Kind {
    /// What tables call it.
    pub(crate) fn label(&self) -> &str {
        match self {
            Self::Sqlcached { label, .. } => label,
            Self::Memcached => "memcached",
            Self::Redis => "redis",
            Self::PostgreSql => "postgresql",
            Self::MariaDb => "mariadb",
        }
    }

    fn program(&self) -> &Path {
        match self {
            Self::Sqlcached { program, .. } => program,
            Self::Memcached => Path::new("memcached"),
            Self::Redis => Path::new("redis-server"),
            Self::PostgreSql => Path::new("/usr/lib/postgresql/15/bin/postgres"),
            Self::MariaDb => Path::new("mariadbd"),
        }
    }

    fn protocol(&self) -> Protocol {
        match self {
            Self::Sqlcached { .. } | Self::Memcached => Protocol::Memcached,
            Self::Redis => Protocol::Resp,
            Self::PostgreSql => Protocol::Postgres,
            Self::MariaDb => Protocol::MariaDb,
        }
    }

    /// The first line of its `--version`; `None` if it cannot be run.
    pub(crate) fn version(&self) -> Option<String> {
        let output = Command::new(self.program()).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Some(text.lines().next().unwrap_or_default().trim().to_owned())
    }
}

/// How a server is started.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Its memory limit in MiB.
    pub(crate) memory_mib: u64,
    /// Further arguments.
    pub(crate) extra: Vec<String>,
    /// Where it runs.
    pub(crate) cores: Cores,
    /// Whether a server of ours opens its PostgreSQL listener.
    pub(crate) sql_listener: bool,
    /// Threads that answer memcached's requests.
    pub(crate) threads: usize,
    /// A memcached listens on its Unix socket, and then on nothing else.
    pub(crate) unix: bool,
    /// Where the arena of a server of ours lies, if not in shared memory's usual place.
    pub(crate) arena_folder: Option<PathBuf>,
}

impl Setup {
    /// A memory limit, the rest as every experiment has it.
    pub(crate) fn new(memory_mib: u64, cores: Cores) -> Self {
        let arena_folder = None;
        Self {
            memory_mib,
            extra: Vec::new(),
            cores,
            sql_listener: false,
            threads: 1,
            unix: false,
            arena_folder,
        }
    }
}

/// A server that runs.
#[derive(Debug)]
pub(crate) struct Server {
    /// What tables call it.
    pub(crate) label: String,
    /// What it speaks.
    pub(crate) protocol: Protocol,
    /// Where it listens on TCP, or where it was said to run.
    pub(crate) address: Address,
    /// Where PostgreSQL's clients connect, if they can.
    pub(crate) sql: Option<Address>,
    /// Its Unix socket, if it has one.
    pub(crate) socket: Option<Address>,
    /// The command line, for the report.
    pub(crate) command: String,
    pid: u32,
    child: Option<Child>,
    /// How it was started.
    launch: Option<Command>,
    arena: Option<PathBuf>,
    directory: Option<PathBuf>,
}

/// Run time of a server's threads by their ids, in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Cpu(HashMap<u64, u64>);

/// What a server holds of the machine's memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// Pages of its own.
    pub(crate) private_bytes: u64,
    /// Blocks allocated to its arena file.
    pub(crate) arena_bytes: u64,
}

impl Memory {
    /// All of it.
    pub(crate) fn total(self) -> u64 {
        self.private_bytes + self.arena_bytes
    }
}

impl Server {
    /// Starts a server and waits until it answers.
    pub(crate) fn start(kind: &Kind, setup: &Setup) -> Result<Self> {
        let port = Address::free_port()?;
        let directory = private_directory(kind.label(), port.port())?;
        let socket = directory.join("socket");
        let folder = setup.arena_folder.clone().unwrap_or_else(|| arena_directory(&directory));
        let arena = folder.join(format!("sqlcached-bench-{}.arena", port.port()));
        let sql = match kind {
            Kind::Sqlcached { .. } if setup.sql_listener => Some(Address::free_port()?),
            Kind::PostgreSql => Some(port),
            _ => None,
        };
        let mut command = match kind {
            Kind::PostgreSql => postgresql(&directory)?,
            Kind::MariaDb => mariadb::prepare(&directory)?,
            _ => Command::new(kind.program()),
        };
        match kind {
            Kind::Sqlcached { .. } => {
                sqlcached_arguments(&mut command, setup, port, &socket, &arena);
                command.arg("--sql-port").arg(sql.map_or(0, |address| address.port()).to_string());
            }
            Kind::PostgreSql => postgresql_arguments(&mut command, port, &directory),
            Kind::MariaDb => mariadb::arguments(&mut command, port, &socket, &directory),
            Kind::Memcached => memcached_arguments(&mut command, setup, port, &socket),
            Kind::Redis => redis_arguments(&mut command, setup, port, &socket, &directory),
        }
        command.args(&setup.extra).stdin(Stdio::null());
        let log = fs::File::create(directory.join("log"))?;
        command.stdout(log.try_clone()?).stderr(log);
        let line = command_line(&command);
        let has_socket = match kind {
            Kind::Sqlcached { .. } | Kind::Redis => true,
            Kind::Memcached => setup.unix,
            Kind::PostgreSql | Kind::MariaDb => false,
        };
        let socket = has_socket.then_some(Address::Unix(socket));
        let only_socket = socket.clone().filter(|_| matches!(kind, Kind::Memcached));
        let child = setup.cores.start_server(|| command.spawn().context(|| format!("start {line}")))?;
        let mut server = Self {
            label: kind.label().to_owned(),
            protocol: kind.protocol(),
            address: only_socket.unwrap_or(Address::Tcp(port)),
            sql: sql.map(Address::Tcp),
            socket,
            command: line,
            pid: child.id(),
            child: Some(child),
            launch: Some(command),
            arena: matches!(kind, Kind::Sqlcached { .. }).then_some(arena),
            directory: Some(directory),
        };
        server.wait_until_up()?;
        Ok(server)
    }

    /// A server that already runs. Its process is asked for, and must be on this machine to be measured.
    pub(crate) fn running(address: &Address, protocol: Protocol) -> Result<Self> {
        let pid = Client::connect(address)?.server_pid(protocol == Protocol::Resp)?;
        Ok(Self {
            label: "running".into(),
            protocol,
            address: address.clone(),
            sql: None,
            socket: matches!(address, Address::Unix(_)).then(|| address.clone()),
            command: format!("already running at {address}"),
            pid: pid.ok_or_else(|| Failure::new("the server does not say its process id"))?,
            child: None,
            launch: None,
            arena: None,
            directory: None,
        })
    }

    fn wait_until_up(&mut self) -> Result<()> {
        let began = clock::now_ns();
        while clock::now_ns() - began < START_NS {
            if let Some(status) = self.child.as_mut().map(Child::try_wait).transpose()?.flatten() {
                return Err(Failure::new(format!(
                    "{} ended at its start ({status}): {}",
                    self.command,
                    self.log()
                )));
            }
            if self.answers() {
                return Ok(());
            }
            thread::sleep(GLANCE);
        }
        Err(Failure::new(format!("{} does not listen: {}", self.command, self.log())))
    }

    /// Whether it lets clients in. PostgreSQL listens before it does.
    fn answers(&self) -> bool {
        match self.protocol {
            Protocol::Postgres => Wire::connect(&self.address).is_ok(),
            _ => self.address.connect().is_ok(),
        }
    }

    /// Kills it between two instructions and starts it again where it was. It may not answer yet.
    pub(crate) fn die_and_start_again(&mut self) -> Result<()> {
        let (Some(child), Some(launch)) = (&mut self.child, &mut self.launch) else {
            return Err(Failure::new("only a server that was started here is started again"));
        };
        child.kill()?;
        child.wait()?;
        let again = launch.spawn()?;
        self.pid = again.id();
        self.child = Some(again);
        Ok(())
    }

    /// Whether it was started here as one of ours.
    pub(crate) fn is_ours(&self) -> bool {
        self.arena.is_some()
    }

    /// The last lines the server wrote.
    pub(crate) fn log(&self) -> String {
        let path = self.directory.as_ref().map(|directory| directory.join("log"));
        let text = path.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }

    /// The best way in: the Unix socket where there is one.
    pub(crate) fn nearest(&self) -> &Address {
        self.socket.as_ref().unwrap_or(&self.address)
    }

    /// Run time of all its threads in nanoseconds, once it has gone to sleep. Where threads or processes end meanwhile,
    /// [`Server::cpu_since`] knows better.
    pub(crate) fn cpu_ns(&self) -> Result<u64> {
        Ok(self.cpu()?.0.values().sum())
    }

    /// Run time of each of its threads, once it has gone to sleep.
    pub(crate) fn cpu(&self) -> Result<Cpu> {
        thread::sleep(SETTLE);
        let mut threads = HashMap::new();
        threads_cpu_ns(self.pid, &mut threads)?;
        for child in self.children() {
            // A server of processes: one that has ended meanwhile is left out.
            let _ = threads_cpu_ns(child, &mut threads);
        }
        Ok(Cpu(threads))
    }

    /// What its threads ran since then, in nanoseconds. A thread that ended is left out with all that it ever ran.
    pub(crate) fn cpu_since(&self, before: &Cpu) -> Result<u64> {
        let now = self.cpu()?.0;
        Ok(now.iter().map(|(thread, ns)| ns.saturating_sub(before.0.get(thread).copied().unwrap_or(0))).sum())
    }

    /// The processes that it started and that run.
    fn children(&self) -> Vec<u32> {
        let path = format!("/proc/{pid}/task/{pid}/children", pid = self.pid);
        let listing = fs::read_to_string(path).unwrap_or_default();
        listing.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// What it holds of the machine's memory.
    pub(crate) fn memory(&self) -> Result<Memory> {
        let path = format!("/proc/{}/status", self.pid);
        let status = fs::read_to_string(&path).context(|| path.clone())?;
        let private_bytes = kibibytes(&status, "RssAnon:").unwrap_or(0) * 1024;
        let arena = self.arena.as_ref().and_then(|path| fs::metadata(path).ok());
        Ok(Memory { private_bytes, arena_bytes: arena.map_or(0, |data| data.blocks() * 512) })
    }

    fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            // A process that is gone already needs no signal.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let began = clock::now_ns();
        while matches!(child.try_wait(), Ok(None)) && clock::now_ns() - began < STOP_NS {
            thread::sleep(GLANCE);
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        // What cannot be removed lies in the folder for temporary files.
        if let Some(arena) = self.arena.take() {
            let shared = store::shared_path_beside(&arena);
            for file in [store::hits_path(&shared), shared, arena] {
                let _ = fs::remove_file(file);
            }
        }
        if let Some(directory) = self.directory.take() {
            let _ = fs::remove_dir_all(directory);
        }
    }
}

/// Run time of each thread of a process in nanoseconds.
fn threads_cpu_ns(pid: u32, threads: &mut HashMap<u64, u64>) -> Result<()> {
    let tasks = format!("/proc/{pid}/task");
    for task in fs::read_dir(&tasks).context(|| tasks.clone())? {
        let task = task?;
        let thread = task.file_name().to_str().and_then(|name| name.parse().ok()).unwrap_or(0);
        // A thread that ended between the listing and the reading is left out.
        let Ok(text) = fs::read_to_string(task.path().join("schedstat")) else { continue };
        let ns = text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
        threads.insert(thread, ns);
    }
    Ok(())
}

/// The server, over a cluster made in this folder. It refuses to run as root.
fn postgresql(directory: &Path) -> Result<Command> {
    let mut initdb = unprivileged("initdb");
    initdb.arg("-D").arg(directory.join("data"));
    initdb.args(["--no-sync", "-A", "trust", "-U", ROLE, "-E", "UTF8", "--locale=C.UTF-8"]);
    if rustix::process::geteuid().is_root() {
        run_to_end(Command::new("chown").arg(ROLE).arg(directory))?;
    }
    run_to_end(&mut initdb)?;
    Ok(unprivileged("postgres"))
}

fn unprivileged(program: &str) -> Command {
    let path = Path::new(POSTGRESQL).join(program);
    if !rustix::process::geteuid().is_root() {
        return Command::new(path);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", ROLE, "--regid", ROLE, "--clear-groups"]).arg(path);
    command
}

fn run_to_end(command: &mut Command) -> Result<()> {
    let output = command.output().context(|| command_line(command))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Failure::new(format!("{}: {said}", command_line(command))))
}

/// Nothing is made durable, as in a cache; the rest is generous.
fn postgresql_arguments(command: &mut Command, port: SocketAddr, directory: &Path) {
    command.arg("-D").arg(directory.join("data")).arg("-k").arg(directory);
    command.args(["-p", &port.port().to_string()]);
    for setting in [
        "listen_addresses=127.0.0.1",
        "max_connections=100",
        "fsync=off",
        "synchronous_commit=off",
        "full_page_writes=off",
        "shared_buffers=3GB",
        "jit=off",
        "autovacuum=off",
    ] {
        command.args(["-c", setting]);
    }
}

fn sqlcached_arguments(command: &mut Command, setup: &Setup, port: SocketAddr, socket: &Path, arena: &Path) {
    command.arg("-t").arg(setup.threads.to_string());
    command.args(["-c", "2048", "-l", "127.0.0.1", "-p"]).arg(port.port().to_string());
    command.arg("-m").arg(setup.memory_mib.to_string());
    command.arg("-s").arg(socket).arg("--arena").arg(arena);
}

fn memcached_arguments(command: &mut Command, setup: &Setup, port: SocketAddr, socket: &Path) {
    command.arg("-t").arg(setup.threads.to_string());
    command.args(["-c", "2048", "-U", "0", "-l", "127.0.0.1", "-p"]).arg(port.port().to_string());
    if setup.unix {
        command.arg("-s").arg(socket);
    }
    command.arg("-m").arg(setup.memory_mib.to_string());
    if rustix::process::geteuid().is_root() {
        command.args(["-u", "root"]);
    }
}

fn redis_arguments(command: &mut Command, setup: &Setup, port: SocketAddr, socket: &Path, directory: &Path) {
    command.args(["--bind", "127.0.0.1", "--port"]).arg(port.port().to_string());
    command.args(["--save", "", "--appendonly", "no", "--daemonize", "no", "--maxclients", "2048"]);
    command.arg("--maxmemory").arg(format!("{}mb", setup.memory_mib));
    command.arg("--unixsocket").arg(socket).arg("--dir").arg(directory);
}

/// A folder only we can enter, for the socket and the log.
fn private_directory(label: &str, port: u16) -> Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    let path = std::env::temp_dir().join(format!("sqlcached-bench-{label}-{port}"));
    fs::DirBuilder::new().mode(0o700).create(&path).context(|| path.display().to_string())?;
    Ok(path)
}

/// Arenas live in memory where the system has a place for that.
fn arena_directory(otherwise: &Path) -> PathBuf {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { shared.to_owned() } else { otherwise.to_owned() }
}

fn command_line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(if argument.is_empty() { "''" } else { argument.to_str().unwrap_or("?") });
    }
    line
}

fn kibibytes(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix("kB")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::kibibytes;

    #[test]
    fn memory_of_a_process() {
        assert_eq!(kibibytes("VmRSS:\t 9 kB\nRssAnon:\t    1234 kB\n", "RssAnon:"), Some(1234));
        assert_eq!(kibibytes("", "RssAnon:"), None);
    }
}
