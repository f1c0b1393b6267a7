//! A connection to PostgreSQL: bytes, frames, and questions with their answers. It waits no longer than it is told.

use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use postgres_protocol::message::frontend;

use crate::error::Error;
use crate::limits::{ANSWER_LOOK, ANSWER_ROWS_MAX, ANSWER_TIMEOUT, MESSAGE_BYTES_MAX};
use crate::socket::{Inbox, Parts, Stream};
use crate::time::now;

/// The tag of `CopyBothResponse`.
pub(crate) const COPY_BOTH: u8 = b'W';
/// The tag of `CopyData`.
pub(crate) const COPY_DATA: u8 = b'd';
/// The tag of `ErrorResponse`.
pub(crate) const ERROR: u8 = b'E';
/// Messages that may come at any time and change nothing here: notices, parameters, notifications.
const ASIDE: &[u8] = b"NSA";

/// A connection that was made.
pub(crate) struct Connection {
    inbox: Inbox,
    /// Nothing more comes, or not in time: what follows would answer another question.
    broken: bool,
    /// What a request to cancel its statement proves itself with: the process there, and a secret.
    pub(crate) secret: Option<Bytes>,
    /// What came aside of answers, as messages, where somebody wants it.
    aside: Option<BytesMut>,
}

/// A message: its tag, and what stands behind its length.
pub(crate) struct Frame {
    pub(crate) tag: u8,
    pub(crate) body: Bytes,
}

impl Connection {
    pub(crate) fn over(stream: Stream) -> Result<Self, Error> {
        Ok(Self { inbox: Inbox::over(stream)?, broken: false, secret: None, aside: None })
    }

    /// The process of the source that serves it.
    pub(crate) fn process(&self) -> Option<u32> {
        self.secret.as_ref()?.first_chunk().copied().map(u32::from_be_bytes)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.inbox.stream.write_all(bytes)?)
    }

    /// Keeps what comes aside of answers from now on.
    pub(crate) fn keep_aside(&mut self) {
        self.aside = Some(BytesMut::new());
    }

    /// What has come aside.
    pub(crate) fn take_aside(&mut self) -> Vec<u8> {
        self.aside.take().map_or_else(Vec::new, Vec::from)
    }

    /// The socket, which does not block any more, what encrypts it, and what has come and was not taken.
    pub(crate) fn into_parts(self) -> Result<(Parts, Vec<u8>), Error> {
        let rest = self.inbox.received().to_vec();
        Ok((self.inbox.stream.into_parts()?, rest))
    }

    /// The certificate that the other side showed, if it speaks TLS.
    pub(crate) fn certificate(&self) -> Option<Vec<u8>> {
        match &self.inbox.stream {
            Stream::Tls(stream) => Some(stream.conn.peer_certificates()?.first()?.to_vec()),
            Stream::Tcp(_) | Stream::Unix(_) => None,
        }
    }

    /// The next message, if it comes within this time.
    pub(crate) fn next_within(&mut self, wait: Duration) -> Result<Option<Frame>, Error> {
        loop {
            if let Some(frame) = self.take_frame()? {
                return Ok(Some(frame));
            }
            if !self.inbox.receive_within(wait)? {
                return Ok(None);
            }
        }
    }

    /// The next message of those that have come already.
    pub(crate) fn take_frame(&mut self) -> Result<Option<Frame>, Error> {
        let [tag, a, b, c, d, ..] = *self.inbox.received() else { return Ok(None) };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(Error::connection(format!("a message of {length} bytes: is this PostgreSQL?")));
        }
        if self.inbox.received().len() <= length {
            return Ok(None);
        }
        let whole = self.inbox.take(length + 1).freeze();
        Ok(Some(Frame { tag, body: whole.slice(5..) }))
    }

    /// Whether no further question may be asked on it.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// What is still to come answers nobody.
    pub(crate) fn give_up(&mut self) {
        self.broken = true;
    }

    /// The next message that answers; an error that was sent is one.
    pub(crate) fn answer(&mut self, until: Instant) -> Result<Frame, Error> {
        self.answer_while(until, &mut || Ok(()))
    }

    /// The same; while nothing comes, `look` says whether it is to be waited for.
    pub(crate) fn answer_while(
        &mut self,
        until: Instant,
        look: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<Frame, Error> {
        loop {
            // Until a message has come.
            self.broken = true;
            let left = until.saturating_duration_since(now());
            let frame =
                if left.is_zero() { self.take_frame()? } else { self.next_within(left.min(ANSWER_LOOK))? };
            self.broken = frame.is_none();
            match frame {
                None if left.is_zero() => return Err(Error::connection("the source does not answer")),
                None => look()?,
                Some(frame) if frame.tag == ERROR => return Err(error_of(&frame.body)),
                Some(frame) if ASIDE.contains(&frame.tag) => {
                    if let Some(aside) = &mut self.aside {
                        aside.put_u8(frame.tag);
                        // It came with such a length.
                        aside.put_u32(u32::try_from(frame.body.len() + 4).unwrap_or(u32::MAX));
                        aside.extend_from_slice(&frame.body);
                    }
                }
                Some(frame) => return Ok(frame),
            }
        }
    }

    /// The rows that a query gives, as text.
    pub(crate) fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Error> {
        self.query_within(sql, ANSWER_TIMEOUT)
    }

    /// The same, if all of them come within this time.
    pub(crate) fn query_within(
        &mut self,
        sql: &str,
        wait: Duration,
    ) -> Result<Vec<Vec<Option<String>>>, Error> {
        self.ask(sql)?;
        let until = now() + wait;
        let mut rows = Vec::new();
        loop {
            let frame = match self.answer(until) {
                Ok(frame) => frame,
                Err(error) => {
                    // An error of the statement is followed by the sign that the next one may come.
                    self.pass_to_ready(until);
                    return Err(error);
                }
            };
            match frame.tag {
                b'D' if rows.len() >= ANSWER_ROWS_MAX => {
                    return Err(Error::new("54000", "the answer has too many rows"));
                }
                b'D' => rows.push(row_of(&frame.body)?),
                b'Z' => return Ok(rows),
                _ => {}
            }
        }
    }

    /// Passes what is left of an answer.
    pub(crate) fn pass_to_ready(&mut self, until: Instant) {
        while let Ok(frame) = self.answer(until) {
            if frame.tag == b'Z' {
                return;
            }
        }
    }

    /// Sends a query, and leaves its answer to others.
    pub(crate) fn ask(&mut self, sql: &str) -> Result<(), Error> {
        let mut bytes = BytesMut::new();
        frontend::query(sql, &mut bytes)?;
        self.send(&bytes)
    }

    /// Says that it ends. Who does not hear it will see that nobody is there.
    pub(crate) fn end(&mut self) {
        let mut bytes = BytesMut::new();
        frontend::terminate(&mut bytes);
        let _gone = self.send(&bytes);
    }
}

/// What an `ErrorResponse` says.
pub(crate) fn error_of(body: &[u8]) -> Error {
    let mut error = Error::new("XX000", "an error without a message");
    for field in body.split(|byte| *byte == 0) {
        let [kind, text @ ..] = field else { continue };
        let text = String::from_utf8_lossy(text).into_owned();
        match kind {
            b'C' => error.state = text,
            b'M' => error.message = text,
            b'H' => error.hint = Some(text),
            _ => {}
        }
    }
    error
}

pub(crate) fn cut() -> Error {
    Error::connection("a message of the source is cut")
}

/// The values of a `DataRow`.
pub(crate) fn cells_of(body: &[u8]) -> Result<Vec<Option<&[u8]>>, Error> {
    let (count, mut rest) = body.split_first_chunk::<2>().ok_or_else(cut)?;
    let mut cells = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, behind) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        rest = behind;
        // A negative length is NULL.
        cells.push(match usize::try_from(i32::from_be_bytes(*length)) {
            Err(_) => None,
            Ok(length) => {
                let (value, behind) = rest.split_at_checked(length).ok_or_else(cut)?;
                rest = behind;
                Some(value)
            }
        });
    }
    Ok(cells)
}

/// The values of a `DataRow`, as text.
pub(crate) fn row_of(body: &[u8]) -> Result<Vec<Option<String>>, Error> {
    let text = |cell: Option<&[u8]>| cell.map(|cell| String::from_utf8_lossy(cell).into_owned());
    Ok(cells_of(body)?.into_iter().map(text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_rows_are_read() {
        let error = error_of(b"SERROR\0C42704\0Mno such thing\0Hmake it\0\0");
        assert_eq!((error.state.as_str(), error.message.as_str()), ("42704", "no such thing"));
        assert_eq!(error.hint.as_deref(), Some("make it"));
        let row = row_of(b"\0\x02\0\0\0\x01a\xff\xff\xff\xff").unwrap();
        assert_eq!(row, [Some("a".to_owned()), None]);
        for cut in [&b"\0"[..], b"\0\x01", b"\0\x01\0\0\0\x09a"] {
            assert!(row_of(cut).is_err());
        }
    }
}
