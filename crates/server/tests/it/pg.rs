//! A client of the PostgreSQL listener that speaks bytes and tells what it heard in a line for each message.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::harness::Daemon;

/// A reply that takes longer does not come; nothing here waits for time.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection.
pub(crate) struct Pg<S = TcpStream> {
    pub(crate) stream: S,
    /// What a cancel request must name.
    pub(crate) key: (i32, Vec<u8>),
}

/// A message with its length.
pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend_from_slice(&u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    message.extend_from_slice(body);
    message
}

/// A packet without a type.
pub(crate) fn packet(code: u32, body: &[u8]) -> Vec<u8> {
    let mut packet = u32::try_from(body.len() + 8).unwrap().to_be_bytes().to_vec();
    packet.extend_from_slice(&code.to_be_bytes());
    packet.extend_from_slice(body);
    packet
}

pub(crate) fn startup(minor: u32) -> Vec<u8> {
    packet(3 << 16 | minor, b"user\0me\0application_name\0tests\0\0")
}

pub(crate) fn query(text: &str) -> Vec<u8> {
    message(b'Q', &[text.as_bytes(), b"\0"].concat())
}

pub(crate) fn parse(name: &str, text: &str) -> Vec<u8> {
    message(b'P', &[name.as_bytes(), b"\0", text.as_bytes(), b"\0\0\0"].concat())
}

/// Binds texts; the results are text too.
pub(crate) fn bind(portal: &str, statement: &str, values: &[&str]) -> Vec<u8> {
    let mut body = [portal.as_bytes(), b"\0", statement.as_bytes(), b"\0\0\0"].concat();
    body.extend_from_slice(&u16::try_from(values.len()).unwrap().to_be_bytes());
    for value in values {
        body.extend_from_slice(&u32::try_from(value.len()).unwrap().to_be_bytes());
        body.extend_from_slice(value.as_bytes());
    }
    body.extend_from_slice(&[0, 0]);
    message(b'B', &body)
}

pub(crate) fn execute(portal: &str, rows: u32) -> Vec<u8> {
    message(b'E', &[portal.as_bytes(), b"\0", &rows.to_be_bytes()].concat())
}

pub(crate) fn describe(kind: u8, name: &str) -> Vec<u8> {
    message(b'D', &[&[kind], name.as_bytes(), b"\0"].concat())
}

pub(crate) const SYNC: &[u8] = b"S\0\0\0\x04";

impl Pg {
    /// Connects and begins a session.
    pub(crate) fn connect(daemon: &Daemon) -> Self {
        let mut pg = Self::plain(daemon);
        pg.send(&startup(0));
        let heard = pg.until_ready();
        assert!(heard.contains(&"R".to_owned()), "{heard:?}");
        pg
    }

    /// Connects, and says nothing.
    pub(crate) fn plain(daemon: &Daemon) -> Self {
        let stream = TcpStream::connect(daemon.server.sql_addresses()[0]).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self::over(stream)
    }
}

impl<S: Read + Write> Pg<S> {
    /// A client over any stream.
    pub(crate) fn over(stream: S) -> Self {
        Self { stream, key: (0, Vec::new()) }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends a text of statements and gives what came up to `ReadyForQuery`, without that.
    pub(crate) fn ask(&mut self, text: &str) -> Vec<String> {
        self.send(&query(text));
        let mut heard = self.until_ready();
        heard.pop();
        heard
    }

    pub(crate) fn until_ready(&mut self) -> Vec<String> {
        let mut heard = Vec::new();
        while heard.last().is_none_or(|last: &String| !last.starts_with('Z')) {
            match self.next() {
                Some(line) => heard.push(line),
                None => panic!("the server closed after {heard:?}"),
            }
        }
        heard
    }

    /// The next message; none when the server has closed.
    pub(crate) fn next(&mut self) -> Option<String> {
        self.heard().map(|(kind, body)| told(kind, &body))
    }

    /// Asks something that fails. Returns the message and the detail of its error.
    pub(crate) fn failure(&mut self, statement: &str) -> (String, String) {
        self.send(&query(statement));
        let mut fields = Vec::new();
        while let Some((kind, body)) = self.heard() {
            match kind {
                b'E' => fields = body.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect(),
                b'Z' => break,
                _ => {}
            }
        }
        let field = |code: u8| {
            let found = fields.iter().find(|field| field.first() == Some(&code));
            found.map(|field| String::from_utf8_lossy(&field[1..]).into_owned()).unwrap_or_default()
        };
        (field(b'M'), field(b'D'))
    }

    fn heard(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        match self.stream.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                return None;
            }
            Err(error) => panic!("{error}"),
        }
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut body = vec![0; usize::try_from(length).unwrap() - 4];
        self.stream.read_exact(&mut body).unwrap();
        if head[0] == b'K' {
            self.key = (i32::from_be_bytes(body[..4].try_into().unwrap()), body[4..].to_vec());
        }
        Some((head[0], body))
    }

    /// Everything until the server closes.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

/// A message in a line: its letter, and what matters of it.
fn told(kind: u8, body: &[u8]) -> String {
    let letter = char::from(kind);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
    match kind {
        b'E' | b'N' => {
            let field = |code: u8| {
                let found = body.split(|byte| *byte == 0).find(|field| field.first() == Some(&code));
                found.map(|field| text(&field[1..])).unwrap_or_default()
            };
            let context = field(b'W');
            let place = if context.is_empty() { String::new() } else { format!(" ({context})") };
            format!("{letter} {} {} {}{place}", field(b'S'), field(b'C'), field(b'M'))
        }
        b'D' => format!("D {}", values(body).join("|")),
        b'C' | b'Z' | b'd' => format!("{letter} {}", text(body)),
        b'A' => format!("A {}", text(&body[4..]).replace('\0', " ")),
        b'S' => format!("S {}", text(body).replace('\0', "=")),
        b't' => format!("t {:?}", body[2..].chunks(4).map(|oid| oid[3]).collect::<Vec<_>>()),
        _ => letter.to_string(),
    }
}

fn values(mut body: &[u8]) -> Vec<String> {
    let count = u16::from_be_bytes([body[0], body[1]]);
    body = &body[2..];
    let mut values = Vec::new();
    for _ in 0..count {
        let length = i32::from_be_bytes(body[..4].try_into().unwrap());
        body = &body[4..];
        let Ok(length) = usize::try_from(length) else {
            values.push("NULL".into());
            continue;
        };
        values.push(String::from_utf8_lossy(&body[..length]).into_owned());
        body = &body[length..];
    }
    values
}

/// Copies data into a table. Returns what was heard of it.
pub(crate) fn copy_in(pg: &mut Pg, statement: &str, data: &[u8]) -> Vec<String> {
    pg.send(&[query(statement), message(b'd', data), message(b'c', b"")].concat());
    pg.until_ready()
}
