//! A daemon of the test's own: the real program in a temporary directory, ended when the test ends.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::client::Client;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_sqlcached");

/// A start takes milliseconds; a loaded machine may need more.
const START_PATIENCE: Duration = Duration::from_mins(1);

/// Sends a signal to a process. One that is to stop has stopped: its threads may go on for a while after the signal.
pub(crate) fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
    let end = Instant::now() + START_PATIENCE;
    while name == "STOP" && !is_stopped(pid) {
        assert!(Instant::now() < end, "{pid} does not stop");
        std::thread::yield_now();
    }
}

/// All threads of a process have stopped or ended.
fn is_stopped(pid: u32) -> bool {
    fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten().all(|thread| {
        let status = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The state follows the name, which is in parentheses and may hold some of its own.
        status.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['T', 't', 'Z', 'X']))
    })
}

/// A directory that goes with its owner. In shared memory, as the daemon's own are.
#[derive(Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only different numbers matter.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let parent =
            if Path::new("/dev/shm").is_dir() { PathBuf::from("/dev/shm") } else { std::env::temp_dir() };
        let path = parent.join(format!("sqlcached-test-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running daemon.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    pub(crate) port: u16,
    pub(crate) folder: Folder,
    flags: Vec<String>,
}

impl Daemon {
    /// Starts with these flags besides the places; panics with the log when it does not serve.
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::start_in(Folder::new(), flags)
    }

    /// As [`Daemon::start`], in a directory where something may lie already.
    pub(crate) fn start_in(folder: Folder, flags: &[&str]) -> Self {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let port = free_port();
        let child = spawn(&folder, port, &flags);
        let mut daemon = Self { child, port, folder, flags };
        daemon.wait_until_it_serves();
        daemon
    }

    /// A connection over the Unix socket.
    pub(crate) fn connect(&self) -> Client {
        Client::unix(&self.socket())
    }

    /// A connection over TCP.
    pub(crate) fn connect_tcp(&self) -> Client {
        Client::tcp(self.port)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.0.join("sock")
    }

    /// What the daemon printed on standard output and standard error since the test began.
    pub(crate) fn printed(&self) -> String {
        let read = |name| fs::read_to_string(self.folder.0.join(name)).unwrap_or_default();
        read("out") + &read("err")
    }

    /// The only connection there is: a worker notices that a peer has closed when it meets the close.
    pub(crate) fn connect_alone(&self) -> Client {
        let end = Instant::now() + START_PATIENCE;
        let mut client = self.connect();
        while client.stat("curr_connections") != 1 {
            assert!(Instant::now() < end, "there are {} connections", client.stat("curr_connections"));
            std::thread::sleep(Duration::from_millis(5));
        }
        client
    }

    /// A signal is obeyed at some later moment, and the greeting comes after the sockets; what is said tells when.
    pub(crate) fn wait_until_it_says(&self, words: &str) {
        let end = Instant::now() + START_PATIENCE;
        while !self.printed().contains(words) {
            assert!(Instant::now() < end, "no '{words}' in\n{}", self.printed());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until it would say that clients should come, as who started it a while ago finds it.
    pub(crate) fn wait_until_ready(&self) {
        self.wait_until_it_says("try:");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Bytes of memory that belong to the process alone, and all its resident bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// Ends the process between any two instructions.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to stop and waits for it.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + START_PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "it does not stop\n{}", self.printed());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts it again where it was, with its first flags.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(&self.folder, self.port, &self.flags);
        self.wait_until_it_serves();
    }

    /// As [`Daemon::restart`], with further flags.
    pub(crate) fn restart_with(&mut self, flags: &[&str]) {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self.restart();
    }

    /// The daemon tells nobody when it is ready, so this asks until it answers.
    fn wait_until_it_serves(&mut self) {
        let end = Instant::now() + START_PATIENCE;
        loop {
            if UnixStream::connect(self.socket()).is_ok() {
                return;
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the daemon ended with {status}\n{}", self.printed());
            }
            assert!(Instant::now() < end, "the daemon does not answer\n{}", self.printed());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("--- the daemon said:\n{}", self.printed());
        }
    }
}

/// Ports for servers. They lie below those that Linux gives to clients: one of these may be a client's own by the time
/// that a server, or one that was killed and starts again, listens on it.
const PORTS: std::ops::Range<u32> = 12_000..32_000;

/// A port that nobody listens on at the moment, and that nobody else in this process was given.
pub(crate) fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let count = PORTS.end - PORTS.start;
    // Processes begin at different places.
    let begin = std::process::id().wrapping_mul(7_919);
    for _ in 0..count {
        // Relaxed: only that no two are the same.
        let at = begin.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % count;
        let port = u16::try_from(PORTS.start + at).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free");
}

fn spawn(folder: &Folder, port: u16, flags: &[String]) -> Child {
    let append = |name| File::options().create(true).append(true).open(folder.0.join(name)).unwrap();
    let mut command = program();
    command.arg("-p").arg(port.to_string()).arg("-s").arg(folder.0.join("sock"));
    command.arg("--arena").arg(folder.0.join("arena")).args(flags);
    command.stdin(Stdio::null()).stdout(append("out")).stderr(append("err"));
    command.spawn().unwrap()
}

/// The program with none of our environment's settings.
pub(crate) fn program() -> Command {
    let mut command = Command::new(PROGRAM);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SQLCACHED_") {
            command.env_remove(name);
        }
    }
    // Tests run side by side, and the default ports of PostgreSQL's clients and of HTTP are one each.
    command.env("SQLCACHED_SQL_PORT", "0").env("SQLCACHED_HTTP_PORT", "0");
    command
}

/// Runs the program to its end: its exit status, standard output and standard error.
pub(crate) fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}
