//! PostgreSQL's protocol, as much of it as the experiments say: a blocking client, and the bytes of a prepared point
//! query for the load program.

use std::io::{BufReader, Read, Write};
use std::time::Duration;

use crate::address::{Address, Stream};
use crate::failure::{Context, Failure, Result};
use crate::protocol::Operation;
use crate::server::ROLE;

/// Version 3.0 of the protocol.
const VERSION: i32 = 196_608;
/// A server that does not answer for so long is given up.
const TIMEOUT: Duration = Duration::from_mins(1);
/// No answer here is longer.
const MESSAGE_BYTES_MAX: usize = 1 << 24;

/// The rows that the load program reads and writes.
pub(crate) const POINTS: &str = "CREATE TABLE points (key TEXT PRIMARY KEY, value TEXT)";
/// The name and text of the statement for an operation on one of them.
const fn statement(operation: Operation) -> (&'static str, &'static str) {
    match operation {
        Operation::Get => ("get", "SELECT value FROM points WHERE key = $1"),
        Operation::Set => (
            "set",
            "INSERT INTO points VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        ),
    }
}

/// A connection on which each request waits for its answer.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: BufReader<Stream>,
    out: Vec<u8>,
}

/// What a statement came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Rows that came back.
    pub(crate) rows: u64,
    /// The number in the command tag.
    pub(crate) affected: u64,
}

impl Wire {
    /// Connects and waits until the server is ready.
    pub(crate) fn connect(address: &Address) -> Result<Self> {
        let stream = address.connect().context(|| format!("connect to {address}"))?;
        stream.set_read_timeout(TIMEOUT)?;
        Self::open(stream)
    }

    fn open(stream: Stream) -> Result<Self> {
        let mut wire = Self { stream: BufReader::with_capacity(64 * 1024, stream), out: Vec::new() };
        let mut body = VERSION.to_be_bytes().to_vec();
        for word in ["user", ROLE, "database", ROLE, ""] {
            text(word, &mut body);
        }
        length(body.len(), &mut wire.out);
        wire.out.extend_from_slice(&body);
        wire.finish()?;
        Ok(wire)
    }

    /// Runs statements as one string.
    pub(crate) fn run(&mut self, statements: &str) -> Result<Done> {
        message(b'Q', &mut self.out, |body| text(statements, body));
        self.finish().context(|| statements.chars().take(100).collect())
    }

    /// The rows that a query gives, their values as text.
    pub(crate) fn rows(&mut self, query: &str) -> Result<Vec<Vec<Option<String>>>> {
        message(b'Q', &mut self.out, |body| text(query, body));
        let mut rows = Vec::new();
        self.finish_with(|body| rows.push(values(body))).context(|| query.to_owned())?;
        rows.into_iter().collect::<Option<_>>().ok_or_else(|| Failure::new(format!("{query}: a row is cut")))
    }

    /// Prepares a statement under a name.
    pub(crate) fn prepare(&mut self, name: &str, statement: &str) -> Result<()> {
        parse(name, statement, &mut self.out);
        sync(&mut self.out);
        self.finish().context(|| statement.to_owned())?;
        Ok(())
    }

    /// Runs a prepared statement with parameters as text.
    pub(crate) fn execute(&mut self, name: &str, parameters: &[&[u8]]) -> Result<Done> {
        bind(name, parameters, &mut self.out);
        execute(&mut self.out);
        sync(&mut self.out);
        self.finish().context(|| name.to_owned())
    }

    /// Sends what is put together and reads until the server is ready.
    fn finish(&mut self) -> Result<Done> {
        self.finish_with(|_| ())
    }

    /// The same, with each row handed over.
    fn finish_with(&mut self, mut row: impl FnMut(&[u8])) -> Result<Done> {
        self.stream.get_mut().write_all(&self.out)?;
        self.out.clear();
        let (mut done, mut error) = (Done::default(), None);
        loop {
            let (kind, body) = match self.read() {
                Ok(message) => message,
                // A server that ends a connection says before why.
                Err(closed) => return Err(error.map_or(closed, Failure::new)),
            };
            match kind {
                b'D' => {
                    done.rows += 1;
                    row(&body);
                }
                b'C' => done.affected = affected(&body),
                b'E' => error = Some(error_message(&body)),
                b'Z' => return error.map_or(Ok(done), |error| Err(Failure::new(error))),
                _ => {}
            }
        }
    }

    fn read(&mut self) -> Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).context(|| "waiting for an answer".into())?;
        let [kind, length @ ..] = head;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if !(4..MESSAGE_BYTES_MAX).contains(&length) {
            return Err(Failure::new(format!("a message of {length} bytes")));
        }
        let mut body = vec![0; length - 4];
        self.stream.read_exact(&mut body)?;
        Ok((kind, body))
    }
}

/// The values of a row; `None` if it is cut.
fn values(body: &[u8]) -> Option<Vec<Option<String>>> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut values = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            values.push(None);
            rest = after;
            continue;
        };
        let (value, after) = after.split_at_checked(length)?;
        values.push(Some(String::from_utf8_lossy(value).into_owned()));
        rest = after;
    }
    Some(values)
}

/// Makes a connection ready for [`request`]: the start, then both statements.
pub(crate) fn open(stream: Stream) -> Result<Stream> {
    let mut wire = Wire::open(stream)?;
    for operation in [Operation::Get, Operation::Set] {
        let (name, text) = statement(operation);
        wire.prepare(name, text)?;
    }
    Ok(wire.stream.into_inner())
}

/// Appends one run of a prepared statement, as drivers do that keep what they were told of its columns.
pub(crate) fn request(operation: Operation, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let (name, _) = statement(operation);
    match operation {
        Operation::Get => bind(name, &[key], out),
        Operation::Set => bind(name, &[key, value], out),
    }
    execute(out);
    sync(out);
}

/// The answer to a request that finds or writes a row.
pub(crate) fn reply(operation: Operation, value: &[u8]) -> Vec<u8> {
    let mut reply = Vec::new();
    message(b'2', &mut reply, |_| {});
    match operation {
        Operation::Get => {
            message(b'D', &mut reply, |body| {
                body.extend_from_slice(&1_u16.to_be_bytes());
                field(value, body);
            });
            message(b'C', &mut reply, |body| text("SELECT 1", body));
        }
        Operation::Set => message(b'C', &mut reply, |body| text("INSERT 0 1", body)),
    }
    message(b'Z', &mut reply, |body| body.push(b'I'));
    reply
}

fn parse(name: &str, statement: &str, out: &mut Vec<u8>) {
    message(b'P', out, |body| {
        text(name, body);
        text(statement, body);
        // The server infers all types.
        body.extend_from_slice(&0_u16.to_be_bytes());
    });
}

/// Into the unnamed portal; everything as text.
fn bind(name: &str, parameters: &[&[u8]], out: &mut Vec<u8>) {
    message(b'B', out, |body| {
        text("", body);
        text(name, body);
        body.extend_from_slice(&0_u16.to_be_bytes());
        body.extend_from_slice(&u16::try_from(parameters.len()).unwrap_or(u16::MAX).to_be_bytes());
        for parameter in parameters {
            field(parameter, body);
        }
        body.extend_from_slice(&0_u16.to_be_bytes());
    });
}

/// All rows of the unnamed portal.
fn execute(out: &mut Vec<u8>) {
    message(b'E', out, |body| {
        text("", body);
        body.extend_from_slice(&0_u32.to_be_bytes());
    });
}

fn sync(out: &mut Vec<u8>) {
    message(b'S', out, |_| {});
}

/// Appends a message: its kind, its length, and what `write` puts behind.
fn message(kind: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// The length of a message without a kind.
fn length(body: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&u32::try_from(body + 4).unwrap_or(u32::MAX).to_be_bytes());
}

fn text(word: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(word.as_bytes());
    out.push(0);
}

fn field(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// The number at the end of a command tag.
fn affected(tag: &[u8]) -> u64 {
    let tag = String::from_utf8_lossy(tag).into_owned();
    let number = tag.trim_end_matches('\0').rsplit(' ').next();
    number.and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// SQLSTATE and message of an error.
fn error_message(body: &[u8]) -> String {
    let field = |kind: u8| {
        let found = body.split(|&byte| byte == 0).find(|field| field.first() == Some(&kind));
        String::from_utf8_lossy(found.and_then(|field| field.get(1..)).unwrap_or_default()).into_owned()
    };
    format!("{} {}", field(b'C'), field(b'M'))
}

#[cfg(test)]
mod tests {
    use super::{affected, error_message, reply, request};
    use crate::protocol::Operation;

    #[test]
    fn bytes_of_a_point_query() {
        let mut bytes = Vec::new();
        request(Operation::Get, b"k", b"", &mut bytes);
        let bind = b"B\0\0\0\x14\0get\0\0\0\0\x01\0\0\0\x01k\0\0";
        assert_eq!(bytes, [&bind[..], b"E\0\0\0\x09\0\0\0\0\0", b"S\0\0\0\x04"].concat());
        let row = b"D\0\0\0\x0c\0\x01\0\0\0\x02vv";
        let tag = b"C\0\0\0\x0dSELECT 1\0";
        assert_eq!(reply(Operation::Get, b"vv"), [&b"2\0\0\0\x04"[..], row, tag, b"Z\0\0\0\x05I"].concat());
    }

    #[test]
    fn tags_and_errors() {
        assert_eq!(affected(b"INSERT 0 12\0"), 12);
        assert_eq!(affected(b"CREATE TABLE\0"), 0);
        assert_eq!(error_message(b"SERROR\0C42P01\0Mno such table\0\0"), "42P01 no such table");
    }
}
