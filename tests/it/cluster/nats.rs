//! Servers of NATS for tests: the real program, alone or three together.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::daemon::{Folder, free_port, signal};
use crate::sources::until;

/// Installed by the step `tools`.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/drivers/nats/bin/nats-server");

/// An answer that has not come by then does not come.
const ANSWER: Duration = Duration::from_secs(10);

/// A server of NATS, with JetStream unless it is made without.
pub(super) struct Nats {
    child: Child,
    pub(super) port: u16,
    /// The address where it listens.
    host: String,
    /// It goes with the server.
    _folder: Folder,
    flags: Vec<String>,
}

impl Nats {
    pub(super) fn start(flags: &[&str]) -> Self {
        let folder = Folder::new();
        let stored = folder.0.to_str().unwrap().to_owned();
        Self::start_in(folder, &[&["-js", "-sd", &stored], flags].concat())
    }

    /// With these flags only.
    pub(super) fn start_in(folder: Folder, flags: &[&str]) -> Self {
        Self::start_at("127.0.0.1", free_port(), folder, flags)
    }

    fn start_at(host: &str, port: u16, folder: Folder, flags: &[&str]) -> Self {
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let child = spawn(host, port, &flags);
        let own = Self { child, port, host: host.to_owned(), _folder: folder, flags };
        own.wait();
        own
    }

    /// One of several that keep each message together, each on a machine of its own with this address. It is started
    /// there.
    pub(super) fn one_of(hosts: &[String], at: usize) -> Self {
        const PORTS: (u16, u16) = (4222, 6222);
        let route = |host: &String| format!("nats://{host}:{}", PORTS.1);
        let (own, all) = (route(&hosts[at]), hosts.iter().map(route).collect::<Vec<_>>().join(","));
        let (folder, name) = (Folder::new(), format!("n{at}"));
        let stored = folder.0.to_str().unwrap().to_owned();
        let flags = ["-js", "-sd", &stored, "-n", &name, "--cluster_name", "machines", "--cluster", &own];
        Self::start_at(
            &hosts[at],
            PORTS.0,
            folder,
            &[&flags[..], &["--routes", &all, "--no_advertise"]].concat(),
        )
    }

    /// Three that keep each message together.
    pub(super) fn three() -> [Self; 3] {
        let routes = [(); 3].map(|()| free_port());
        let all = routes.map(|port| format!("nats://127.0.0.1:{port}")).join(",");
        [0, 1, 2].map(|at| {
            let own = format!("nats://127.0.0.1:{}", routes[at]);
            let name = format!("n{at}");
            let flags = ["-n", &name, "--cluster_name", "three", "--cluster", &own, "--routes", &all];
            Self::start(&[&flags[..], &["--no_advertise"]].concat())
        })
    }

    fn wait(&self) {
        until("NATS answers", || TcpStream::connect((&*self.host, self.port)).is_ok());
    }

    pub(super) fn url(&self) -> String {
        format!("nats://{}:{}", self.host, self.port)
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(super) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    pub(super) fn terminate(&mut self) {
        self.signal("TERM");
        self.child.wait().unwrap();
    }

    pub(super) fn start_again(&mut self) {
        self.child = spawn(&self.host, self.port, &self.flags);
        self.wait();
    }

    /// Publishes something, and returns what is answered, if that is asked for; nothing, if nobody answers.
    pub(super) fn publish(&self, subject: &str, payload: &[u8], answered: bool) -> String {
        let Ok(socket) = TcpStream::connect((&*self.host, self.port)) else { return String::new() };
        socket.set_read_timeout(Some(ANSWER)).unwrap();
        let mut from = BufReader::new(socket.try_clone().unwrap());
        let mut to = &socket;
        let reply = if answered { "_INBOX.test " } else { "" };
        let size = payload.len();
        write!(
            to,
            "CONNECT {{\"verbose\":false,\"pedantic\":false}}\r\nSUB _INBOX.test 1\r\n\
             PUB {subject} {reply}{size}\r\n"
        )
        .unwrap();
        to.write_all(payload).unwrap();
        to.write_all(b"\r\nPING\r\n").unwrap();
        loop {
            let mut line = String::new();
            // Servers that have just begun may not know who is to answer.
            if !from.read_line(&mut line).is_ok_and(|count| count > 0) {
                return String::new();
            }
            if let Some(head) = line.strip_prefix("MSG ") {
                let size: usize = head.trim().rsplit(' ').next().unwrap().parse().unwrap();
                let mut body = vec![0; size];
                from.read_exact(&mut body).unwrap();
                return String::from_utf8(body).unwrap();
            }
            if line.starts_with("PONG") && !answered {
                return String::new();
            }
        }
    }

    /// Asks for something that JetStream does to a stream.
    pub(super) fn ask(&self, what: &str, payload: &str) -> String {
        self.publish(&format!("$JS.API.STREAM.{what}"), payload.as_bytes(), true)
    }

    /// Has everything that delivers the stream go on at another message, by the one where it began. Says how many there
    /// are.
    pub(super) fn deliver_from(&self, place: impl Fn(u64) -> u64) -> usize {
        let ask = |what: &str, payload: &str| {
            self.publish(&format!("$JS.API.CONSUMER.{what}"), payload.as_bytes(), true)
        };
        let said = ask("LIST.sqlc", "");
        // Each is described by its name, and then by where it began.
        let told = |text: &str, name: &str| {
            let (_, rest) = text.split_once(&format!("\"{name}\":"))?;
            Some(rest.split([',', '}']).next()?.trim_matches('"').to_owned())
        };
        let all: Vec<&str> = said.split("\"stream_name\":").skip(1).collect();
        for consumer in &all {
            let name = told(consumer, "name").expect("a consumer has a name");
            let began = told(consumer, "opt_start_seq").expect("it began at a message").parse().unwrap();
            let answer = ask(&format!("RESET.sqlc.{name}"), &format!("{{\"seq\":{}}}", place(began)));
            assert!(answer.contains("\"reset_seq\""), "{answer}");
        }
        all.len()
    }

    /// Has it done, too.
    pub(super) fn command(&self, what: &str, payload: &str) {
        let answer = self.ask(what, payload);
        assert!(!answer.is_empty() && !answer.contains("\"error\""), "{what}: {answer}");
    }

    pub(super) fn remove_stream(&self) {
        self.command("DELETE.sqlc", "");
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

fn spawn(host: &str, port: u16, flags: &Vec<String>) -> Child {
    assert!(Path::new(PROGRAM).exists(), "{PROGRAM} is missing: cargo xtask ci tools installs it");
    let mut command = Command::new(PROGRAM);
    command.args(["-a", host, "-p", &port.to_string()]).args(flags);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}
