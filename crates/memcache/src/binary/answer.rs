//! From answers to frames. Each function appends to the buffer that it is given and cannot fail.

use super::header::{ANSWER_MAGIC, HEADER_BYTES, Id};
use crate::limits::ERROR_TEXT_MAX;

/// What became of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u16)]
pub enum Status {
    /// Done.
    #[default]
    Done = 0x00,
    /// There is no such key.
    NotFound = 0x01,
    /// The key is there, or has another CAS.
    Exists = 0x02,
    /// The value is longer than the limit.
    TooLarge = 0x03,
    /// The request is not what its opcode needs.
    InvalidArguments = 0x04,
    /// The value was not stored: there is nothing to append to, or the table does not take it.
    NotStored = 0x05,
    /// The value is no number.
    NonNumeric = 0x06,
    /// The peer may not do this.
    NotAllowed = 0x20,
    /// The exchange that proves a role goes on.
    Continue = 0x21,
    /// No such command.
    UnknownCommand = 0x81,
    /// There is no room.
    OutOfMemory = 0x82,
}

impl Status {
    /// Its text, which is the value of an answer that says nothing else; memcached's words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Done | Self::Continue => "",
            Self::NotFound => "Not found",
            Self::Exists => "Data exists for key.",
            Self::TooLarge => "Too large.",
            Self::InvalidArguments => "Invalid arguments",
            Self::NotStored => "Not stored.",
            Self::NonNumeric => "Non-numeric server-side value for incr or decr",
            Self::NotAllowed => "Auth failure.",
            Self::UnknownCommand => "Unknown command",
            Self::OutOfMemory => "Out of memory",
        }
    }
}

/// An answer that is written at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer<'a> {
    /// What became of the request.
    pub status: Status,
    /// The CAS of what was written or found.
    pub cas: u64,
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

impl Id {
    /// Appends an answer without extras.
    pub fn answer(self, answer: &Answer<'_>, out: &mut Vec<u8>) {
        let Answer { status, cas, key, value } = *answer;
        self.header(status, 0, key.len(), key.len().saturating_add(value.len()), cas, out);
        out.extend_from_slice(key);
        out.extend_from_slice(value);
    }

    /// Appends a refusal with the text of its status.
    pub fn refuse(self, status: Status, out: &mut Vec<u8>) {
        self.answer(&Answer { status, value: status.text().as_bytes(), ..Answer::default() }, out);
    }

    /// Appends a refusal with a text of its own, cut to a bounded length.
    pub fn refuse_with(self, status: Status, text: &str, out: &mut Vec<u8>) {
        let text = text.get(..text.floor_char_boundary(ERROR_TEXT_MAX)).unwrap_or_default();
        self.answer(&Answer { status, value: text.as_bytes(), ..Answer::default() }, out);
    }

    /// Appends what precedes a value that was found: header, flags, and the key if there is one. So many bytes of value
    /// follow.
    #[inline]
    pub fn found(self, key: &[u8], flags: u32, bytes: usize, cas: u64, out: &mut Vec<u8>) {
        let flags = flags.to_be_bytes();
        let body = flags.len().saturating_add(key.len()).saturating_add(bytes);
        self.header(Status::Done, 4, key.len(), body, cas, out);
        out.extend_from_slice(&flags);
        out.extend_from_slice(key);
    }

    /// Appends the result of arithmetic.
    pub fn number(self, number: u64, cas: u64, out: &mut Vec<u8>) {
        self.answer(&Answer { cas, value: &number.to_be_bytes(), ..Answer::default() }, out);
    }

    /// Appends a statistic; one without a name ends them.
    pub fn stat(self, name: &str, value: &[u8], out: &mut Vec<u8>) {
        self.answer(&Answer { key: name.as_bytes(), value, ..Answer::default() }, out);
    }

    /// Appends a header. No value is as long as its fields allow, and no key.
    #[inline]
    fn header(self, status: Status, extras: u8, key: usize, body: usize, cas: u64, out: &mut Vec<u8>) {
        let [s0, s1] = (status as u16).to_be_bytes();
        let [k0, k1] = u16::try_from(key).unwrap_or(u16::MAX).to_be_bytes();
        let [b0, b1, b2, b3] = u32::try_from(body).unwrap_or(u32::MAX).to_be_bytes();
        let [o0, o1, o2, o3] = self.opaque;
        let [c0, c1, c2, c3, c4, c5, c6, c7] = cas.to_be_bytes();
        let header: [u8; HEADER_BYTES] = [
            ANSWER_MAGIC,
            self.opcode,
            k0,
            k1,
            extras,
            0,
            s0,
            s1,
            b0,
            b1,
            b2,
            b3,
            o0,
            o1,
            o2,
            o3,
            c0,
            c1,
            c2,
            c3,
            c4,
            c5,
            c6,
            c7,
        ];
        out.extend_from_slice(&header);
    }
}
