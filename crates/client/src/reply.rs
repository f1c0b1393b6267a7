//! Requests sent together, and what comes back.

use serde_json::Value as Json;
use store::value::Value as SqlValue;

use crate::error::Error;
use crate::limits::{KEY_BYTES_MAX, WINDOW_BYTES};
use crate::row::{Row, from_json, to_json};
use crate::socket::{Connection, Connections};
use crate::{Lookup, Meta, Renewal, Value};

/// Requests that are sent together, so that they cost one way to the daemon and back.
#[derive(Debug, Default)]
pub struct Pipeline {
    requests: Vec<u8>,
    /// For each request what its reply looks like, and where it ends in `requests`.
    expected: Vec<(Expected, usize)>,
}

#[derive(Clone, Copy, Debug)]
enum Expected {
    Value,
    Stored,
    Number,
    Rows,
    Stats,
}

/// The answer to one request.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// To a `get`.
    Value(Lookup),
    /// To a write: whether it was done. Not done: a condition did not hold, or there was no such row.
    Done(bool),
    /// To `incr` and `decr`: the new number; none: there was no such row.
    Number(Option<u64>),
    /// To a statement that gives rows.
    Rows(Vec<Row>),
    /// To a statement that changes rows or definitions: how many rows.
    Changed(u64),
}

impl Pipeline {
    /// No requests.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many requests there are.
    pub fn len(&self) -> usize {
        self.expected.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.expected.is_empty()
    }

    /// Asks for the value under a memcached key.
    pub fn get(&mut self, key: &[u8]) -> Result<(), Error> {
        self.meta(b"mg", key, |_| {}, b" v c f", Expected::Value)
    }

    /// Asks for the value under a memcached key, and takes the place of a missing one for so many seconds: of many who
    /// ask, one wins it.
    pub fn get_or_claim(&mut self, key: &[u8], seconds: u32) -> Result<(), Error> {
        let flags = format!(" v c f N{seconds}");
        self.meta(b"mg", key, |_| {}, flags.as_bytes(), Expected::Value)
    }

    /// Stores a value under a memcached key. `exptime` is memcached's: seconds, 0 for the table's `ttl`.
    pub fn set(&mut self, key: &[u8], value: &[u8], flags: u32, exptime: i64) -> Result<(), Error> {
        self.store(key, value, &format!(" F{flags} T{exptime}"))
    }

    /// As [`Pipeline::set`], if the key is not there.
    pub fn add(&mut self, key: &[u8], value: &[u8], flags: u32, exptime: i64) -> Result<(), Error> {
        self.store(key, value, &format!(" F{flags} T{exptime} ME"))
    }

    /// As [`Pipeline::set`], if nobody has written, invalidated or removed the row since its CAS was seen.
    pub fn cas(&mut self, key: &[u8], value: &[u8], flags: u32, exptime: i64, cas: u64) -> Result<(), Error> {
        self.store(key, value, &format!(" F{flags} T{exptime} C{cas}"))
    }

    fn store(&mut self, key: &[u8], value: &[u8], flags: &str) -> Result<(), Error> {
        let length = |out: &mut Vec<u8>| out.extend_from_slice(format!(" {}", value.len()).as_bytes());
        self.meta(b"ms", key, length, flags.as_bytes(), Expected::Stored)?;
        self.requests.extend_from_slice(value);
        self.requests.extend_from_slice(b"\r\n");
        self.close();
        Ok(())
    }

    /// Removes the row under a memcached key.
    pub fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.meta(b"md", key, |_| {}, b"", Expected::Stored)
    }

    /// Marks the row under a memcached key as stale: it may be served for so many seconds, and one client is asked to
    /// refresh it.
    pub fn invalidate(&mut self, key: &[u8], seconds: u32) -> Result<(), Error> {
        let flags = format!(" I T{seconds}");
        self.meta(b"md", key, |_| {}, flags.as_bytes(), Expected::Stored)
    }

    /// Gives the row under a memcached key another deadline.
    pub fn touch(&mut self, key: &[u8], exptime: i64) -> Result<(), Error> {
        let flags = format!(" T{exptime}");
        self.meta(b"mg", key, |_| {}, flags.as_bytes(), Expected::Stored)
    }

    /// Adds to the number under a memcached key; a negative delta takes away and stops at 0.
    pub fn incr(&mut self, key: &[u8], delta: i64) -> Result<(), Error> {
        let flags = format!(" v D{} M{}", delta.unsigned_abs(), if delta < 0 { 'D' } else { 'I' });
        self.meta(b"ma", key, |_| {}, flags.as_bytes(), Expected::Number)
    }

    /// Runs one statement with these values for `?1`, `?2` and so on.
    pub fn sql(&mut self, statement: &str, parameters: &[SqlValue]) {
        let parameters = Json::Array(parameters.iter().map(to_json).collect()).to_string();
        let head = format!("sqlp {} {}\r\n", statement.len(), parameters.len());
        for part in [head.as_str(), statement, "\r\n", &parameters, "\r\n"] {
            self.requests.extend_from_slice(part.as_bytes());
        }
        self.expected.push((Expected::Rows, self.requests.len()));
    }

    /// Asks for `stats settings`.
    pub(crate) fn settings(&mut self) {
        self.requests.extend_from_slice(b"stats settings\r\n");
        self.expected.push((Expected::Stats, self.requests.len()));
    }

    /// One meta command; `middle` writes what stands between key and flags.
    fn meta(
        &mut self,
        verb: &[u8],
        key: &[u8],
        middle: impl FnOnce(&mut Vec<u8>),
        flags: &[u8],
        expected: Expected,
    ) -> Result<(), Error> {
        let plain = !key.iter().any(|byte| *byte <= b' ' || *byte == 0x7f);
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(Error::Key(format!(
                "it has {} bytes; a memcached key has 1 to {KEY_BYTES_MAX}",
                key.len()
            )));
        }
        self.requests.extend_from_slice(verb);
        self.requests.push(b' ');
        if plain {
            self.requests.extend_from_slice(key);
        } else {
            crate::row::write_base64(key, &mut self.requests);
        }
        middle(&mut self.requests);
        if !plain {
            self.requests.extend_from_slice(b" b");
        }
        self.requests.extend_from_slice(flags);
        self.requests.extend_from_slice(b"\r\n");
        self.expected.push((expected, self.requests.len()));
        Ok(())
    }

    /// The last request goes on to here.
    fn close(&mut self) {
        let end = self.requests.len();
        if let Some((_, last)) = self.expected.last_mut() {
            *last = end;
        }
    }

    /// Sends all requests; the answers in their order. An error of one request is that answer's; an error of the
    /// connection is all of theirs, and whether the requests were carried out is then unknown.
    pub(crate) fn run(self, connections: &Connections) -> Result<Vec<Result<Reply, Error>>, Error> {
        let mut connection = connections.take()?;
        let replies = self.run_on(&mut connection)?;
        connections.give_back(connection);
        Ok(replies)
    }

    pub(crate) fn run_on(self, connection: &mut Connection) -> Result<Vec<Result<Reply, Error>>, Error> {
        let mut replies = Vec::with_capacity(self.expected.len());
        let (mut sent, mut next) = (0, 0);
        while next < self.expected.len() {
            let first = next;
            let fits = |end: usize| end - sent <= WINDOW_BYTES;
            while next < self.expected.len() && (next == first || fits(self.expected[next].1)) {
                next += 1;
            }
            let end = self.expected[next - 1].1;
            connection.send(&self.requests[sent..end])?;
            sent = end;
            for (expected, _) in &self.expected[first..next] {
                replies.push(receive(*expected, connection)?);
            }
        }
        Ok(replies)
    }
}

/// Reads one reply. The outer error ends the connection.
fn receive(expected: Expected, connection: &mut Connection) -> Result<Result<Reply, Error>, Error> {
    if let Expected::Rows = expected {
        return rows(connection);
    }
    if let Expected::Stats = expected {
        return stats(connection).map(Ok);
    }
    let line = connection.line()?;
    let mut words = line.split(|&byte| byte == b' ');
    let code = words.next().unwrap_or_default();
    let reply = match (expected, code) {
        (Expected::Value, b"VA" | b"HD") => Reply::Value(value(code, words, connection)?),
        (Expected::Value, b"EN") => Reply::Value(Lookup::Miss),
        (Expected::Number, b"VA") => {
            let mut digits = Vec::new();
            connection.block(number(words.next())?, &mut digits)?;
            Reply::Number(Some(number(Some(digits.trim_ascii()))?))
        }
        (Expected::Number, b"NF" | b"NS" | b"EX") => Reply::Number(None),
        (Expected::Stored, b"HD") => Reply::Done(true),
        (Expected::Stored, b"NS" | b"NF" | b"EX" | b"EN") => Reply::Done(false),
        (_, b"CLIENT_ERROR" | b"SERVER_ERROR") => {
            return Ok(Err(Error::Refused(String::from_utf8_lossy(&line).into_owned())));
        }
        _ => return Err(Error::Protocol(String::from_utf8_lossy(&line).into_owned())),
    };
    Ok(Ok(reply))
}

/// What `mg` found: flags and, behind `VA`, the value.
fn value<'w>(
    code: &[u8],
    mut words: impl Iterator<Item = &'w [u8]>,
    connection: &mut Connection,
) -> Result<Lookup, Error> {
    let mut bytes = Vec::new();
    let len = if code == b"VA" { Some(number(words.next())?) } else { None };
    let (mut meta, mut stale) = (Meta::default(), false);
    for word in words {
        match word.split_first() {
            Some((b'c', cas)) => meta.cas = number(Some(cas))?,
            Some((b'f', flags)) => meta.flags = number(Some(flags))?,
            Some((b'W', _)) => meta.renewal = Renewal::Yours,
            Some((b'Z', _)) => meta.renewal = Renewal::Another,
            Some((b'X', _)) => stale = true,
            _ => {}
        }
    }
    if let Some(len) = len {
        connection.block(len, &mut bytes)?;
    }
    let value = Value { bytes, meta };
    Ok(match (stale, meta.renewal) {
        (true, _) => Lookup::Stale(value),
        (false, Renewal::Nobody) => Lookup::Hit(value),
        (false, _) => Lookup::Due(value),
    })
}

fn rows(connection: &mut Connection) -> Result<Result<Reply, Error>, Error> {
    let mut rows = Vec::new();
    loop {
        let line = connection.line()?;
        if line.first() == Some(&b'{') {
            let row: Json = serde_json::from_slice(&line)
                .map_err(|error| Error::Protocol(format!("a row is not JSON: {error}")))?;
            rows.push(from_json(row));
            continue;
        }
        let line = String::from_utf8_lossy(&line).into_owned();
        if line == "END" {
            return Ok(Ok(Reply::Rows(rows)));
        }
        if let Some(changed) = line.strip_prefix("OK ") {
            return Ok(Ok(Reply::Changed(number(Some(changed.as_bytes()))?)));
        }
        let Some((state, message)) = line.strip_prefix("ERROR ").and_then(|rest| rest.split_once(' ')) else {
            if line.starts_with("SERVER_ERROR") || line.starts_with("CLIENT_ERROR") {
                return Ok(Err(Error::Refused(line)));
            }
            return Err(Error::Protocol(line));
        };
        return Ok(Err(Error::Sql { state: state.into(), message: message.into() }));
    }
}

/// The lines of `stats` as rows of a name and a value.
fn stats(connection: &mut Connection) -> Result<Reply, Error> {
    let mut rows = Vec::new();
    loop {
        let line = String::from_utf8_lossy(&connection.line()?).into_owned();
        if line == "END" {
            return Ok(Reply::Rows(rows));
        }
        let Some((name, value)) = line.strip_prefix("STAT ").and_then(|rest| rest.split_once(' ')) else {
            return Err(Error::Protocol(line));
        };
        rows.push(Row::new(vec![
            ("name".into(), SqlValue::Text(name.into())),
            ("value".into(), SqlValue::Text(value.into())),
        ]));
    }
}

fn number<T: std::str::FromStr>(digits: Option<&[u8]>) -> Result<T, Error> {
    let text = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    text.and_then(|text| text.parse().ok()).ok_or_else(|| Error::Protocol("a number is none".into()))
}
