//! A connection to MariaDB: packets, and questions with their answers.

use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes, BytesMut};
use store::definition::ServerDef;

use super::cursor::{Cursor, cut};
use crate::error::Error;
use crate::limits::{ANSWER_ROWS_MAX, ANSWER_TIMEOUT, MESSAGE_BYTES_MAX};
use crate::socket::{Inbox, Stream};
use crate::time::now;
use crate::tls;

/// The length of a packet's header: three bytes of length, one that counts.
const HEADER: usize = 4;
/// A packet of this length goes on in the next one.
const PIECE: usize = 0xff_ffff;
/// The first bytes of answers.
pub(super) const OK: u8 = 0;
pub(super) const END: u8 = 0xfe;
pub(super) const ERROR: u8 = 0xff;
/// Longest packet that ends rows: a row that begins with the same byte is longer.
pub(super) const END_BYTES: usize = 9;
/// Commands.
const QUIT: u8 = 1;
const QUERY: u8 = 3;

/// A connection that was made.
pub(super) struct Connection {
    inbox: Inbox,
    /// The number of the next packet.
    sequence: u8,
    /// An answer did not come whole: nobody knows what comes next.
    broken: bool,
    /// The number by which the source knows it.
    pub(super) number: u64,
}

/// A column that a query gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    /// The number of its collation: 63 for bytes.
    pub(super) collation: u64,
    /// How many letters or digits it has at most.
    pub(super) length: u64,
    /// Its type, as a number of the protocol.
    pub(super) kind: u8,
    pub(super) is_unsigned: bool,
}

/// A bit of a column's flags.
const UNSIGNED: u64 = 1 << 5;

/// The values of a row as text; none is NULL.
pub(super) type Cells<'r> = [Option<&'r [u8]>];

impl Connection {
    pub(super) fn over(stream: Stream) -> Result<Self, Error> {
        Ok(Self { inbox: Inbox::over(stream)?, sequence: 0, broken: false, number: 0 })
    }

    /// Speaks TLS from now on. What came before in clear text does not count.
    pub(super) fn encrypted(self, server: &ServerDef, host: &str, mode: &str) -> Result<Self, Error> {
        if !self.inbox.received().is_empty() {
            return Err(Error::connection("the source speaks before it is asked"));
        }
        let stream = match self.inbox.stream {
            Stream::Tcp(socket) => tls::wrapped(socket, server, host, mode)?,
            other => other,
        };
        Ok(Self { inbox: Inbox::over(stream)?, ..self })
    }

    /// Whether nobody on the way can read what is sent.
    pub(super) fn is_private(&self) -> bool {
        matches!(self.inbox.stream, Stream::Tls(_) | Stream::Unix(_))
    }

    /// Sends a packet of less than a piece.
    pub(super) fn send(&mut self, body: &[u8]) -> Result<(), Error> {
        let length = u32::try_from(body.len()).ok().filter(|length| (*length as usize) < PIECE);
        let length = length.ok_or_else(|| Error::new("54000", "the statement is too long"))?;
        let mut bytes = Vec::with_capacity(HEADER + body.len());
        bytes.extend_from_slice(&length.to_le_bytes()[..3]);
        bytes.push(self.sequence);
        bytes.extend_from_slice(body);
        self.sequence = self.sequence.wrapping_add(1);
        Ok(self.inbox.stream.write_all(&bytes)?)
    }

    /// Begins an exchange: packets count from zero.
    pub(super) fn command(&mut self, kind: u8, body: &[u8]) -> Result<(), Error> {
        self.sequence = 0;
        self.send(&[&[kind], body].concat())
    }

    /// The next packet, if it comes within this time.
    pub(super) fn next_within(&mut self, wait: Duration) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(packet) = self.take_packet()? {
                return Ok(Some(packet));
            }
            if !self.inbox.receive_within(wait)? {
                return Ok(None);
            }
        }
    }

    /// The next packet of those that have come already.
    pub(super) fn take_packet(&mut self) -> Result<Option<Bytes>, Error> {
        let Some((pieces, length)) = self.measure()? else { return Ok(None) };
        let mut whole = self.inbox.take(length);
        self.sequence = whole[length - pieces_tail(length, pieces) + 3].wrapping_add(1);
        if pieces == 1 {
            whole.advance(HEADER);
            return Ok(Some(whole.freeze()));
        }
        let mut joined = BytesMut::with_capacity(length - pieces * HEADER);
        while !whole.is_empty() {
            let piece = length_of(&whole).min(whole.len() - HEADER);
            joined.extend_from_slice(&whole[HEADER..HEADER + piece]);
            whole.advance(HEADER + piece);
        }
        Ok(Some(joined.freeze()))
    }

    /// Of how many pieces the next packet is, and of how many bytes with their headers; none: it has not come whole.
    fn measure(&self) -> Result<Option<(usize, usize)>, Error> {
        let (mut pieces, mut end) = (0, 0);
        loop {
            let Some(piece) = self.inbox.received().get(end..).filter(|rest| rest.len() >= HEADER) else {
                return Ok(None);
            };
            let length = length_of(piece);
            (pieces, end) = (pieces + 1, end + HEADER + length);
            if end > MESSAGE_BYTES_MAX {
                return Err(Error::connection("a message of more than 1 GiB: is this MariaDB?"));
            }
            if length < PIECE {
                return Ok((end <= self.inbox.received().len()).then_some((pieces, end)));
            }
        }
    }

    /// The next packet that answers; an error that was sent is one.
    pub(super) fn answer(&mut self, until: Instant) -> Result<Bytes, Error> {
        let packet = self.packet(until)?;
        if packet.first() == Some(&ERROR) { Err(error_of(&packet)) } else { Ok(packet) }
    }

    fn packet(&mut self, until: Instant) -> Result<Bytes, Error> {
        let left = until.saturating_duration_since(now());
        let packet = if left.is_zero() { None } else { self.next_within(left)? };
        packet.ok_or_else(|| Error::connection("the source does not answer"))
    }

    /// The rows that a query gives, as text.
    pub(super) fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Error> {
        self.ask(sql)?;
        let mut rows = Vec::new();
        self.result(now() + ANSWER_TIMEOUT, &mut |cells| {
            if rows.len() >= ANSWER_ROWS_MAX {
                return Err(Error::new("54000", "the answer has too many rows"));
            }
            rows.push(texts_of(cells));
            Ok(())
        })?;
        Ok(rows)
    }

    /// Sends a statement. Several may be sent before the first [`result`](Self::result) is taken.
    pub(super) fn ask(&mut self, sql: &str) -> Result<(), Error> {
        self.command(QUERY, sql.as_bytes()).inspect_err(|_| self.broken = true)
    }

    /// Whether nothing more can be asked.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Takes the answer to a statement to its end, gives each row to `take`, and says of which columns they are. An
    /// error of the statement, or of `take`, is returned then.
    pub(super) fn result(
        &mut self,
        until: Instant,
        take: &mut dyn FnMut(&Cells<'_>) -> Result<(), Error>,
    ) -> Result<Vec<Column>, Error> {
        let taken = self.take_result(until, take);
        taken.unwrap_or_else(|error| {
            self.broken = true;
            Err(error)
        })
    }

    /// The outer error is the connection's.
    fn take_result(
        &mut self,
        until: Instant,
        take: &mut dyn FnMut(&Cells<'_>) -> Result<(), Error>,
    ) -> Result<Result<Vec<Column>, Error>, Error> {
        let first = self.packet(until)?;
        match first.first() {
            Some(&OK) => return Ok(Ok(Vec::new())),
            Some(&ERROR) => return Ok(Err(error_of(&first))),
            _ => {}
        }
        let count = Cursor(&first).packed_size()?;
        if count > ANSWER_ROWS_MAX {
            return Err(cut());
        }
        let mut columns = Vec::new();
        for _ in 0..count {
            columns.push(Column::read(&self.packet(until)?)?);
        }
        // A packet ends the columns.
        self.packet(until)?;
        let mut result = Ok(());
        loop {
            let packet = self.packet(until)?;
            match packet.first() {
                Some(&END) if packet.len() < END_BYTES => return Ok(result.map(|()| columns)),
                Some(&ERROR) => return Ok(Err(error_of(&packet))),
                _ => {
                    let cells = cells_of(&packet, count)?;
                    result = result.and_then(|()| take(&cells));
                }
            }
        }
    }

    /// Says that it ends. Who does not hear it will see that nobody is there.
    pub(super) fn end(&mut self) {
        let _gone = self.command(QUIT, &[]);
    }
}

/// The length that a piece's header tells.
fn length_of(piece: &[u8]) -> usize {
    usize::from(piece[0]) | usize::from(piece[1]) << 8 | usize::from(piece[2]) << 16
}

/// Bytes of the last piece with its header: all others are as long as can be.
fn pieces_tail(length: usize, pieces: usize) -> usize {
    length - (pieces - 1) * (HEADER + PIECE)
}

/// What an error packet says.
pub(super) fn error_of(packet: &[u8]) -> Error {
    let mut rest = Cursor(packet.get(1..).unwrap_or_default());
    let code = rest.number(2).unwrap_or(0);
    if rest.0.first() == Some(&b'#') {
        // Five letters of a SQLSTATE.
        rest = Cursor(rest.0.get(6..).unwrap_or_default());
    }
    let text = String::from_utf8_lossy(rest.0);
    let state = match code {
        1045 | 1698 => "28P01",
        1129 | 1130 => "28000",
        1044 | 1142 | 1143 | 1227 => "42501",
        1049 => "3D000",
        1040 | 1203 | 1226 => "53300",
        1053 | 1077 | 1927 => "57P01",
        1146 => "42P01",
        1054 => "42703",
        1064 => "42601",
        1317 | 1969 => "57014",
        1792 => "25006",
        _ => "HV000",
    };
    Error::new(state, format!("{text} (MariaDB's error {code})"))
}

/// The same as texts.
pub(super) fn texts_of(cells: &Cells<'_>) -> Vec<Option<String>> {
    cells.iter().map(|cell| cell.map(|text| String::from_utf8_lossy(text).into_owned())).collect()
}

impl Column {
    pub(super) fn read(packet: &[u8]) -> Result<Self, Error> {
        let mut rest = Cursor(packet);
        // Before the name stand the catalogue, the schema, and two names of the table; behind it, what it was before.
        for _ in 0..4 {
            text_of(&mut rest)?;
        }
        let name = String::from_utf8_lossy(text_of(&mut rest)?).into_owned();
        text_of(&mut rest)?;
        rest.packed()?;
        let (collation, length) = (rest.number(2)?, rest.number(4)?);
        let (kind, flags) = (rest.byte()?, rest.number(2)?);
        Ok(Self { name, collation, length, kind, is_unsigned: flags & UNSIGNED != 0 })
    }
}

/// Bytes with their length before them.
fn text_of<'b>(rest: &mut Cursor<'b>) -> Result<&'b [u8], Error> {
    let length = rest.packed_size()?;
    rest.take(length)
}

/// The values of a row in text.
pub(super) fn cells_of(packet: &[u8], columns: usize) -> Result<Vec<Option<&[u8]>>, Error> {
    let mut rest = Cursor(packet);
    let mut cells = Vec::new();
    for _ in 0..columns {
        cells.push(if let [0xfb, behind @ ..] = rest.0 {
            rest = Cursor(behind);
            None
        } else {
            Some(text_of(&mut rest)?)
        });
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read() {
        let mut packet = b"\x03def\x04shop\x01p\x07product\x05title\x04name\x0c".to_vec();
        packet.extend_from_slice(&[45, 0, 80, 0, 0, 0, 253, 0x20, 0, 0, 0, 0]);
        let column = Column::read(&packet).unwrap();
        assert_eq!((column.name.as_str(), column.kind, column.length), ("title", 253, 80));
        assert_eq!((column.collation, column.is_unsigned), (45, true));
        for end in 0..packet.len() - 3 {
            assert!(Column::read(&packet[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn rows_are_read() {
        let row = b"\x017\xfb\x00";
        assert_eq!(cells_of(row, 3).unwrap(), [Some(&b"7"[..]), None, Some(&b""[..])]);
        for end in 0..row.len() {
            assert!(cells_of(&row[..end], 3).is_err(), "{end}");
        }
    }
}
