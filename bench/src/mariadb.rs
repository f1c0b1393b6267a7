//! MariaDB's protocol, as much of it as the experiments say: a blocking client that runs statements as text, and
//! prepared statements whose one parameter is a number.

use std::io::{BufReader, Read, Write};
use std::time::Duration;

use crate::address::{Address, Stream};
use crate::failure::{Context, Failure, Result};

/// A server that does not answer for so long is given up.
const TIMEOUT: Duration = Duration::from_mins(1);
/// What we can: the protocol since 4.1, its passwords, and plug-ins for them.
const CAPABILITIES: u32 = 0x0000_0200 | 0x0000_8000 | 0x0008_0000;
/// No packet here is longer.
const PACKET_BYTES_MAX: u32 = 1 << 24;
/// `latin1_swedish_ci`: a byte is a character.
const CHARACTER_SET: u8 = 8;
/// The user of a server made here, which asks for no password.
const USER: &str = "root";

/// Commands.
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
/// The parameter type of a 64-bit number.
const LONGLONG: u8 = 0x08;

/// First bytes of answers.
const OK: u8 = 0x00;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;
/// A longer packet that begins with [`END`] is a row.
const END_BYTES_MAX: usize = 8;

/// A connection on which each request waits for its answer.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: BufReader<Stream>,
    /// Number of the next packet in this exchange.
    sequence: u8,
}

/// What a statement came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Rows that came back.
    pub(crate) rows: u64,
    /// Rows that a write changed.
    pub(crate) affected: u64,
}

/// A prepared statement of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prepared(u32);

impl Wire {
    /// Connects and signs in.
    pub(crate) fn connect(address: &Address) -> Result<Self> {
        let stream = address.connect().context(|| format!("connect to {address}"))?;
        stream.set_read_timeout(TIMEOUT)?;
        let mut wire = Self { stream: BufReader::with_capacity(64 * 1024, stream), sequence: 0 };
        refuse_error(&wire.read()?)?;
        wire.write(&sign_in())?;
        let mut answer = wire.read()?;
        if answer.first() == Some(&END) {
            // Another plug-in is asked for; an empty password is empty in each.
            wire.write(&[])?;
            answer = wire.read()?;
        }
        refuse_error(&answer)?;
        Ok(wire)
    }

    /// Runs one statement.
    pub(crate) fn run(&mut self, statement: &str) -> Result<Done> {
        self.command(QUERY, statement.as_bytes())?;
        self.read_result().context(|| statement.chars().take(100).collect())
    }

    /// Prepares a statement with one parameter.
    pub(crate) fn prepare(&mut self, statement: &str) -> Result<Prepared> {
        self.command(PREPARE, statement.as_bytes())?;
        let head = self.read()?;
        refuse_error(&head).context(|| statement.to_owned())?;
        let [_, a, b, c, d, columns @ ..] = head.as_slice() else {
            return Err(Failure::new("a short answer to a preparation"));
        };
        let columns = columns.first().copied().unwrap_or(0);
        self.skip_definitions(1)?;
        if columns > 0 {
            self.skip_definitions(usize::from(columns))?;
        }
        Ok(Prepared(u32::from_le_bytes([*a, *b, *c, *d])))
    }

    /// Runs a prepared statement.
    pub(crate) fn execute(&mut self, Prepared(id): Prepared, parameter: u64) -> Result<Done> {
        let mut body = id.to_le_bytes().to_vec();
        // No cursor, one iteration, no NULL, a new type follows.
        body.extend_from_slice(&[0, 1, 0, 0, 0, 0, 1, LONGLONG, 0]);
        body.extend_from_slice(&parameter.to_le_bytes());
        self.command(EXECUTE, &body)?;
        self.read_result()
    }

    fn command(&mut self, command: u8, body: &[u8]) -> Result<()> {
        self.sequence = 0;
        let mut packet = vec![command];
        packet.extend_from_slice(body);
        self.write(&packet)
    }

    /// A count of changed rows, or columns and rows.
    fn read_result(&mut self) -> Result<Done> {
        let head = self.read()?;
        refuse_error(&head)?;
        match head.as_slice() {
            [OK, rest @ ..] => Ok(Done { rows: 0, affected: number(rest) }),
            [columns, ..] => {
                self.skip_definitions(usize::from(*columns))?;
                let mut rows = 0;
                while !is_end(&self.read()?) {
                    rows += 1;
                }
                Ok(Done { rows, affected: 0 })
            }
            [] => Err(Failure::new("an empty answer")),
        }
    }

    /// Passes over so many definitions and the mark behind them.
    fn skip_definitions(&mut self, count: usize) -> Result<()> {
        for _ in 0..=count {
            self.read()?;
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<u8>> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).context(|| "waiting for an answer".into())?;
        let [low, middle, high, sequence] = head;
        self.sequence = sequence.wrapping_add(1);
        let length = u32::from_le_bytes([low, middle, high, 0]);
        let mut body = vec![0; usize::try_from(length).unwrap_or(0)];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }

    fn write(&mut self, body: &[u8]) -> Result<()> {
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        if length >= PACKET_BYTES_MAX {
            return Err(Failure::new(format!("a statement of {length} bytes is too long for one packet")));
        }
        let [low, middle, high, _] = length.to_le_bytes();
        let mut packet = vec![low, middle, high, self.sequence];
        packet.extend_from_slice(body);
        self.stream.get_mut().write_all(&packet)?;
        Ok(())
    }
}

fn sign_in() -> Vec<u8> {
    let mut body = CAPABILITIES.to_le_bytes().to_vec();
    body.extend_from_slice(&PACKET_BYTES_MAX.to_le_bytes());
    body.push(CHARACTER_SET);
    body.extend_from_slice(&[0; 23]);
    body.extend_from_slice(USER.as_bytes());
    // The end of the name, a password of no bytes, the plug-in that would check it.
    body.extend_from_slice(b"\0\0mysql_native_password\0");
    body
}

fn is_end(packet: &[u8]) -> bool {
    matches!(packet, [END, rest @ ..] if rest.len() < END_BYTES_MAX)
}

/// Code and message of an error.
fn refuse_error(packet: &[u8]) -> Result<()> {
    match packet {
        [ERROR, low, high, message @ ..] => {
            let code = u16::from_le_bytes([*low, *high]);
            Err(Failure::new(format!("{code} {}", String::from_utf8_lossy(message))))
        }
        _ => Ok(()),
    }
}

/// A number in one byte, or in the two, three or eight behind a mark.
fn number(bytes: &[u8]) -> u64 {
    let little_endian = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    match bytes {
        [0xfc, a, b, ..] => little_endian(&[*a, *b]),
        [0xfd, a, b, c, ..] => little_endian(&[*a, *b, *c]),
        [0xfe, rest @ ..] => little_endian(rest.get(..8).unwrap_or_default()),
        [small, ..] => u64::from(*small),
        [] => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::{is_end, number, refuse_error};

    #[test]
    fn numbers_of_all_lengths() {
        assert_eq!(number(&[7]), 7);
        assert_eq!(number(&[0xfc, 1, 2]), 0x0201);
        assert_eq!(number(&[0xfd, 1, 2, 3]), 0x0003_0201);
        assert_eq!(number(&[0xfe, 1, 0, 0, 0, 0, 0, 0, 1]), 0x0100_0000_0000_0001);
    }

    #[test]
    fn ends_and_errors() {
        assert!(is_end(&[0xfe, 0, 0, 2, 0]));
        assert!(!is_end(&[0xfe; 20]) && !is_end(&[0, 0xfe]));
        let refused = refuse_error(b"\xff\x7a\x04#42S02no such table").unwrap_err();
        assert_eq!(refused.to_string(), "1146 #42S02no such table");
    }
}
