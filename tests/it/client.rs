//! A connection that sends bytes and reads answers; and statements over it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

/// No answer takes this long, except where a test means it to.
const PATIENCE: Duration = Duration::from_secs(30);

/// Either kind of socket.
trait Socket: Read + Write + Send {
    fn half_close(&self);
}

impl Socket for TcpStream {
    fn half_close(&self) {
        self.shutdown(Shutdown::Write).unwrap();
    }
}

impl Socket for UnixStream {
    fn half_close(&self) {
        self.shutdown(Shutdown::Write).unwrap();
    }
}

/// One connection.
pub(crate) struct Client {
    socket: BufReader<Box<dyn Socket>>,
}

/// What a statement came to: rows, a count, or SQLSTATE and message.
#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    Rows(Vec<Value>),
    Changed(u64),
    Error(String, String),
}

impl Client {
    pub(crate) fn unix(path: &Path) -> Self {
        Self::try_unix(path).unwrap()
    }

    /// A connection over a Unix socket, if somebody listens there.
    pub(crate) fn try_unix(path: &Path) -> std::io::Result<Self> {
        let socket = UnixStream::connect(path)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { socket: BufReader::new(Box::new(socket)) })
    }

    pub(crate) fn tcp(port: u16) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        Self { socket: BufReader::new(Box::new(socket)) }
    }

    /// A connection to any address, if somebody listens there.
    pub(crate) fn try_at(address: &str, port: u16) -> std::io::Result<Self> {
        let socket = TcpStream::connect((address, port))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_nodelay(true)?;
        Ok(Self { socket: BufReader::new(Box::new(socket)) })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).unwrap();
    }

    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.socket.get_mut().write_all(bytes)
    }

    /// One line, without its end; empty when the peer closed.
    pub(crate) fn line(&mut self) -> String {
        self.try_line().unwrap()
    }

    pub(crate) fn try_line(&mut self) -> std::io::Result<String> {
        let mut line = Vec::new();
        self.socket.read_until(b'\n', &mut line)?;
        while line.last().is_some_and(|byte| matches!(byte, b'\r' | b'\n')) {
            line.pop();
        }
        Ok(String::from_utf8_lossy(&line).into_owned())
    }

    /// So many bytes; none when the peer closed before.
    pub(crate) fn bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.socket.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Everything until the peer closes.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // A reset ends the reading like a close.
        let _ = self.socket.read_to_end(&mut bytes);
        bytes
    }

    /// Sends a line and reads the line that answers.
    pub(crate) fn ask(&mut self, request: &str) -> String {
        self.send(request.as_bytes());
        self.send(b"\r\n");
        self.line()
    }

    pub(crate) fn set(&mut self, key: &str, value: &[u8]) -> String {
        self.store(&format!("set {key} 0 0"), value)
    }

    /// A storage command with its data.
    pub(crate) fn store(&mut self, command: &str, value: &[u8]) -> String {
        let mut request = format!("{command} {}\r\n", value.len()).into_bytes();
        request.extend_from_slice(value);
        request.extend_from_slice(b"\r\n");
        self.send(&request);
        self.line()
    }

    pub(crate) fn get(&mut self, key: &str) -> Option<Vec<u8>> {
        let head = self.ask(&format!("get {key}"));
        if head == "END" {
            return None;
        }
        let length: usize =
            head.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{head}"));
        let mut value = vec![0; length + 2];
        self.socket.read_exact(&mut value).unwrap();
        value.truncate(length);
        assert_eq!(self.line(), "END");
        Some(value)
    }

    /// Reads one number of `stats`.
    pub(crate) fn stat(&mut self, name: &str) -> u64 {
        self.send(b"stats\r\n");
        let mut found = None;
        loop {
            let line = self.line();
            if line == "END" {
                return found.unwrap_or_else(|| panic!("stats has no {name}"));
            }
            if let Some(value) = line.strip_prefix(&format!("STAT {name} ")) {
                found = Some(value.parse().unwrap());
            }
        }
    }

    /// Runs a statement.
    pub(crate) fn sql(&mut self, statement: &str) -> Reply {
        self.send(format!("sql {}\r\n{statement}\r\n", statement.len()).as_bytes());
        self.reply()
    }

    /// Runs a statement with parameters.
    pub(crate) fn sqlp(&mut self, statement: &str, parameters: &Value) -> Reply {
        let parameters = parameters.to_string();
        let head = format!("sqlp {} {}", statement.len(), parameters.len());
        self.send(format!("{head}\r\n{statement}\r\n{parameters}\r\n").as_bytes());
        self.reply()
    }

    pub(crate) fn reply(&mut self) -> Reply {
        let mut rows = Vec::new();
        loop {
            let line = self.line();
            if line == "END" {
                return Reply::Rows(rows);
            }
            if let Some(count) = line.strip_prefix("OK ") {
                return Reply::Changed(count.parse().unwrap());
            }
            if let Some(error) = line.strip_prefix("ERROR ") {
                let (state, message) = error.split_once(' ').unwrap_or((error, ""));
                return Reply::Error(state.to_owned(), message.to_owned());
            }
            rows.push(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}")));
        }
    }

    /// Runs a statement that must give rows.
    pub(crate) fn rows(&mut self, statement: &str) -> Vec<Value> {
        match self.sql(statement) {
            Reply::Rows(rows) => rows,
            other => panic!("{statement}: {other:?}"),
        }
    }

    /// Runs a statement that must change rows; how many.
    pub(crate) fn change(&mut self, statement: &str) -> u64 {
        match self.sql(statement) {
            Reply::Changed(count) => count,
            other => panic!("{statement}: {other:?}"),
        }
    }

    pub(crate) fn half_close(&self) {
        self.socket.get_ref().half_close();
    }
}
