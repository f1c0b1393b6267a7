//! `sqlcached top`: as text for pipes, and in a pseudo terminal.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::daemon::{Daemon, Folder, PROGRAM, free_port};

/// How long something may take to be shown, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(90);

fn top(port: u16, flags: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["top", "--port", &port.to_string()]).args(flags).env_remove("PGHOST").env_remove("PGPORT");
    command
}

#[test]
fn it_prints_text_for_pipes_and_says_when_nobody_answers() {
    let port = free_port();
    let daemon = Daemon::start(&["--sql-port", &port.to_string()]);
    let mut client = daemon.connect();
    client.change("CREATE TABLE frag (k TEXT PRIMARY KEY, v TEXT) WITH (prefix = 'f:', value = 'v')");
    client.set("f:1", b"v");
    let said = top(port, &["--once"]).output().unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert!(text.contains("hit ratio") && text.contains("of 64 MB"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("frag ")), "{text}");
    assert!(text.contains("HOT KEY OF"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    drop(daemon);
    let said = top(port, &["--once"]).output().unwrap();
    assert_eq!(said.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&said.stderr).contains("sqlcached top: 127.0.0.1:"));
}

/// The program in a terminal that `script` makes.
struct Terminal {
    child: Child,
    /// Where the name of its device stands.
    folder: Folder,
    seen: std::sync::mpsc::Receiver<u8>,
    text: Vec<u8>,
}

impl Terminal {
    fn start(port: u16, size: &str) -> Self {
        let folder = Folder::new();
        let device = folder.0.join("device");
        let line = format!(
            "tty > {}; stty {size}; {PROGRAM} top --port {port}; stty -a | tr ' ' '\\n' | grep -x -e '-*echo'; echo left",
            device.display()
        );
        let mut child = Command::new("script")
            .args(["-qfc", &line, "/dev/null"])
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        let (sender, seen) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut byte = [0];
            while out.read_exact(&mut byte).is_ok() && sender.send(byte[0]).is_ok() {}
        });
        Self { child, folder, seen, text: Vec::new() }
    }

    /// Waits until something new was shown.
    fn wait_for(&mut self, words: &str) {
        let end = Instant::now() + PATIENCE;
        while !String::from_utf8_lossy(&self.text).contains(words) {
            let left = end.saturating_duration_since(Instant::now());
            let byte = self.seen.recv_timeout(left);
            self.text.push(byte.unwrap_or_else(|_| panic!("no '{words}' in {}", self.text.escape_ascii())));
        }
        self.text.clear();
    }

    /// As somebody who pulls at the window does.
    fn resize(&self, size: &str) {
        let device = std::fs::read_to_string(self.folder.0.join("device")).unwrap();
        let resized =
            Command::new("stty").args(["-F", device.trim()]).args(size.split(' ')).status().unwrap();
        assert!(resized.success(), "{device}");
    }

    fn press(&mut self, keys: &str) {
        self.child.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_terminal_is_sorted_loses_its_server_and_is_left_as_it_was() {
    let port = free_port();
    let mut daemon = Daemon::start(&["--sql-port", &port.to_string()]);
    let mut terminal = Terminal::start(port, "cols 80 rows 24");
    terminal.wait_for("sorted by operations");
    terminal.wait_for("memcached");
    terminal.press("r");
    terminal.wait_for("sorted by rows");
    daemon.kill();
    terminal.wait_for("DISCONNECTED");
    daemon.restart();
    terminal.wait_for("sqlcached 127.0.0.1:");
    terminal.wait_for("  up ");
    terminal.press("q");
    terminal.wait_for("\u{1b}[?1049l");
    terminal.wait_for("echo\r\n");
    terminal.wait_for("left");
}

/// The head of the tables, whose first column takes what the others leave.
fn head(name_width: usize) -> String {
    format!("{:<name_width$} {:>7}", "TABLE", "ROWS")
}

#[test]
fn a_terminal_that_gets_another_size_is_drawn_again() {
    let port = free_port();
    let _daemon = Daemon::start(&["--sql-port", &port.to_string()]);
    let mut terminal = Terminal::start(port, "cols 80 rows 24");
    terminal.wait_for(&head(14));
    terminal.resize("cols 100 rows 24");
    terminal.wait_for(&head(34));
    // A line ends where the terminal does, here before the third column has a letter.
    terminal.resize("cols 25 rows 6");
    terminal.wait_for(&format!("{}     \u{1b}[K", head(12)));
    terminal.resize("cols 80 rows 24");
    terminal.wait_for(&head(14));
    terminal.press("q");
    terminal.wait_for("left");
}
