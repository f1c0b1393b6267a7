//! A small blocking client: memcached's text protocol, and `sqlp`.

use std::io::{BufRead, BufReader, Read, Write};
use std::time::Duration;

use crate::address::{Address, Stream};
use crate::failure::{Context, Failure, Result};

/// A server that does not answer for so long is given up.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A connection with its read buffer and its requests not yet sent.
#[derive(Debug)]
pub(crate) struct Client {
    reader: BufReader<Stream>,
    /// Requests put together, sent by [`Client::send`].
    pub(crate) out: Vec<u8>,
    line: Vec<u8>,
}

impl Client {
    /// Connects.
    pub(crate) fn connect(address: &Address) -> Result<Self> {
        let stream = address.connect().context(|| format!("connect to {address}"))?;
        stream.set_read_timeout(TIMEOUT)?;
        Ok(Self { reader: BufReader::with_capacity(64 * 1024, stream), out: Vec::new(), line: Vec::new() })
    }

    /// Sends everything put together so far.
    pub(crate) fn send(&mut self) -> Result<()> {
        self.reader.get_mut().write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// One line of the answer, without its end.
    pub(crate) fn read_line(&mut self) -> Result<&[u8]> {
        self.line.clear();
        self.reader.read_until(b'\n', &mut self.line).context(|| "waiting for an answer".into())?;
        match self.line.strip_suffix(b"\r\n") {
            Some(line) => Ok(line),
            None => Err(Failure::new("the server closed the connection")),
        }
    }

    /// One line of the answer without its end, which may be a line feed alone: so some lists of memcached's end theirs.
    pub(crate) fn read_line_feed(&mut self) -> Result<&[u8]> {
        self.line.clear();
        self.reader.read_until(b'\n', &mut self.line).context(|| "waiting for an answer".into())?;
        if self.line.is_empty() {
            return Err(Failure::new("the server closed the connection"));
        }
        Ok(self.line.trim_ascii_end())
    }

    /// Reads the answer of a `get`: each value found is handed over with its key, then `END` is taken.
    pub(crate) fn read_values(&mut self, mut found: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let mut value = Vec::new();
        loop {
            self.read_line()?;
            let line = self.line.trim_ascii_end();
            if line == b"END" {
                return Ok(());
            }
            let mut words = line.split(|&byte| byte == b' ');
            let (Some(b"VALUE"), Some(key), Some(_), Some(length)) =
                (words.next(), words.next(), words.next(), words.next())
            else {
                return Err(unexpected(line));
            };
            let length: usize = decimal(length).ok_or_else(|| unexpected(line))?;
            value.resize(length + 2, 0);
            self.reader.read_exact(&mut value)?;
            found(key, value.get(..length).unwrap_or_default());
        }
    }

    /// Puts a `sqlp` request together: a statement and its parameters, a JSON array.
    pub(crate) fn put_sql(&mut self, statement: &str, parameters: &str) {
        // A write to a vector cannot fail.
        let _ = write!(
            self.out,
            "sqlp {} {}\r\n{statement}\r\n{parameters}\r\n",
            statement.len(),
            parameters.len()
        );
    }

    /// Puts one of Redis' commands together.
    pub(crate) fn put_command(&mut self, words: &[&[u8]]) {
        // A write to a vector cannot fail.
        let _ = write!(self.out, "*{}\r\n", words.len());
        for word in words {
            let _ = write!(self.out, "${}\r\n", word.len());
            self.out.extend_from_slice(word);
            self.out.extend_from_slice(b"\r\n");
        }
    }

    /// Takes one of Redis' answers.
    pub(crate) fn read_reply(&mut self) -> Result<Reply> {
        let line = self.read_line()?.to_vec();
        let (kind, rest) = line.split_first().ok_or_else(|| unexpected(&line))?;
        let number: i64 = if *kind == b'+' { 0 } else { decimal(rest).ok_or_else(|| unexpected(&line))? };
        match (kind, usize::try_from(number)) {
            (b'+', _) => Ok(Reply::Done),
            (b':', _) => Ok(Reply::Number(number)),
            (b'$' | b'*', Err(_)) => Ok(Reply::Nothing),
            (b'$', Ok(length)) => {
                let mut bytes = vec![0; length + 2];
                self.reader.read_exact(&mut bytes)?;
                bytes.truncate(length);
                Ok(Reply::Bytes(bytes))
            }
            (b'*', Ok(length)) => {
                (0..length).map(|_| self.read_reply()).collect::<Result<_>>().map(Reply::List)
            }
            _ => Err(unexpected(&line)),
        }
    }

    /// Takes the next line, which has to be this.
    pub(crate) fn expect(&mut self, wanted: &[u8]) -> Result<()> {
        let line = self.read_line()?;
        if line == wanted { Ok(()) } else { Err(unexpected(line)) }
    }

    /// Runs a statement that writes; the number of rows it changed.
    pub(crate) fn execute(&mut self, statement: &str, parameters: &str) -> Result<u64> {
        self.put_sql(statement, parameters);
        self.send()?;
        self.read_affected().context(|| statement.chars().take(100).collect())
    }

    /// Takes the answer of one statement that writes.
    pub(crate) fn read_affected(&mut self) -> Result<u64> {
        let line = self.read_line()?;
        match line.strip_prefix(b"OK") {
            Some(rest) => Ok(decimal(rest.trim_ascii()).unwrap_or(0)),
            None => Err(unexpected(line)),
        }
    }

    /// The `stats` of a server on a subject, or in general where that is empty; one name and value each.
    pub(crate) fn stats(&mut self, subject: &str) -> Result<Vec<(String, String)>> {
        let request = if subject.is_empty() { "stats\r\n".into() } else { format!("stats {subject}\r\n") };
        self.out.extend_from_slice(request.as_bytes());
        self.send()?;
        let mut stats = Vec::new();
        loop {
            let line = String::from_utf8_lossy(self.read_line()?).into_owned();
            if line == "END" {
                return Ok(stats);
            }
            let mut words = line.splitn(3, ' ');
            match (words.next(), words.next(), words.next()) {
                (Some("STAT"), Some(name), value) => {
                    stats.push((name.to_owned(), value.unwrap_or_default().to_owned()));
                }
                _ => return Err(unexpected(line.as_bytes())),
            }
        }
    }

    /// One number of `stats`.
    pub(crate) fn stat(&mut self, name: &str) -> Result<Option<u64>> {
        let stats = self.stats("")?;
        Ok(stats.into_iter().find(|(found, _)| found == name).and_then(|(_, value)| value.parse().ok()))
    }

    /// The process that serves, as it says itself: `stats` of memcached and sqlcached, `INFO` of Redis.
    pub(crate) fn server_pid(&mut self, resp: bool) -> Result<Option<u32>> {
        if !resp {
            return Ok(self.stat("pid")?.and_then(|pid| u32::try_from(pid).ok()));
        }
        self.out.extend_from_slice(b"INFO server\r\n");
        self.send()?;
        let length = self.read_line()?.strip_prefix(b"$").and_then(decimal).unwrap_or(0);
        let mut info = vec![0; length + 2];
        self.reader.read_exact(&mut info)?;
        let info = String::from_utf8_lossy(&info).into_owned();
        Ok(info.lines().find_map(|line| line.strip_prefix("process_id:")?.trim().parse().ok()))
    }
}

/// What Redis answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// `+OK`.
    Done,
    /// A number.
    Number(i64),
    /// A string.
    Bytes(Vec<u8>),
    /// No such thing.
    Nothing,
    /// Answers in an answer.
    List(Vec<Self>),
}

fn decimal<N: std::str::FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn unexpected(line: &[u8]) -> Failure {
    Failure::new(format!("the server answered: {}", line.escape_ascii()))
}
