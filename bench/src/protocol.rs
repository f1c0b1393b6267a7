//! The bytes of a request, and how many bytes its answer has.
//!
//! The load program never parses: keys have one length and every read is a hit, so the length of a whole
//! answer is known before it is asked for. That keeps its own cost below the server's.

use std::io::Write;

use crate::address::Stream;
use crate::failure::{Failure, Result};
use crate::postgres;

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Protocol {
    /// memcached's text protocol.
    Memcached,
    /// memcached's binary protocol.
    Binary,
    /// Redis' protocol.
    Resp,
    /// PostgreSQL's, with prepared statements on the rows of one table.
    Postgres,
    /// MariaDB's. The load program does not speak it.
    #[value(skip)]
    MariaDb,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Operation {
    /// Reads one key.
    Get,
    /// Writes one key.
    Set,
}

/// What ends memcached's answer to a get, after the values of all keys.
const MEMCACHED_END: &[u8] = b"END\r\n";

impl Operation {
    /// The word for tables.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Set => "set",
        }
    }
}

impl Protocol {
    /// Makes a new connection ready for requests.
    pub(crate) fn open(self, stream: Stream) -> Result<Stream> {
        match self {
            Self::Memcached | Self::Binary | Self::Resp => Ok(stream),
            Self::Postgres => postgres::open(stream),
            Self::MariaDb => Err(Failure::new("the load program does not speak MariaDB's protocol")),
        }
    }

    /// Appends one request.
    pub(crate) fn request(self, operation: Operation, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
        match (self, operation) {
            (Self::Postgres, operation) => return postgres::request(operation, key, value, out),
            (Self::Binary, operation) => return binary_request(operation, key, value, out),
            // No connection was opened.
            (Self::MariaDb, _) => return,
            (Self::Memcached, Operation::Get) => {
                out.extend_from_slice(b"get ");
                out.extend_from_slice(key);
            }
            (Self::Memcached, Operation::Set) => {
                out.extend_from_slice(b"set ");
                out.extend_from_slice(key);
                out.extend_from_slice(b" 0 0 ");
                number(value.len(), out);
                out.extend_from_slice(value);
            }
            (Self::Resp, Operation::Get) => {
                out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
                bulk(key, out);
            }
            (Self::Resp, Operation::Set) => {
                out.extend_from_slice(b"*3\r\n$3\r\nSET\r\n");
                bulk(key, out);
                out.extend_from_slice(b"\r\n");
                bulk(value, out);
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Begins a request that reads so many keys.
    pub(crate) fn begin_many(self, keys: u64, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Memcached => out.extend_from_slice(b"get"),
            Self::Resp => {
                // A write to a vector cannot fail.
                let _ = write!(out, "*{}\r\n$4\r\nMGET\r\n", keys + 1);
            }
            Self::Binary | Self::Postgres | Self::MariaDb => {
                return Err(Failure::new("many keys are asked for through memcached's and Redis' protocols"));
            }
        }
        Ok(())
    }

    /// Appends one of its keys.
    pub(crate) fn one_of_many(self, key: &[u8], out: &mut Vec<u8>) {
        if self == Self::Memcached {
            out.push(b' ');
            out.extend_from_slice(key);
        } else {
            bulk(key, out);
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Ends it. Bytes of the answer beside those of the values.
    pub(crate) fn end_many(self, keys: u64, out: &mut Vec<u8>) -> usize {
        if self == Self::Memcached {
            out.extend_from_slice(b"\r\n");
            return MEMCACHED_END.len();
        }
        let mut head = Vec::new();
        number(usize::try_from(keys).unwrap_or(usize::MAX), &mut head);
        head.len() + 1
    }

    /// Bytes of one value among others, `empty` being the length of the answer to a get of a value of no bytes.
    pub(crate) fn many_reply_bytes(self, empty: usize, value_bytes: usize) -> usize {
        let end = if self == Self::Memcached { MEMCACHED_END.len() } else { 0 };
        self.reply_bytes(Operation::Get, empty, value_bytes) - end
    }

    /// The answer to one request that hits or stores.
    pub(crate) fn reply(self, operation: Operation, key: &[u8], value: &[u8]) -> Vec<u8> {
        let mut reply = Vec::new();
        match (self, operation) {
            (Self::Postgres, operation) => return postgres::reply(operation, value),
            (Self::Binary, operation) => return binary_reply(operation, value),
            (Self::MariaDb, _) => {}
            (Self::Memcached, Operation::Get) => {
                reply.extend_from_slice(b"VALUE ");
                reply.extend_from_slice(key);
                reply.extend_from_slice(b" 0 ");
                number(value.len(), &mut reply);
                reply.extend_from_slice(value);
                reply.extend_from_slice(b"\r\nEND\r\n");
            }
            (Self::Memcached, Operation::Set) => reply.extend_from_slice(b"STORED\r\n"),
            (Self::Resp, Operation::Get) => {
                bulk(value, &mut reply);
                reply.extend_from_slice(b"\r\n");
            }
            (Self::Resp, Operation::Set) => reply.extend_from_slice(b"+OK\r\n"),
        }
        reply
    }

    /// The length of that answer, `empty` being its length for a value of no bytes.
    pub(crate) fn reply_bytes(self, operation: Operation, empty: usize, value_bytes: usize) -> usize {
        match (self, operation) {
            (_, Operation::Set) => empty,
            (Self::Binary | Self::Postgres | Self::MariaDb, Operation::Get) => empty + value_bytes,
            // The value's length stands before it in decimal; zero has one digit too.
            (Self::Memcached | Self::Resp, Operation::Get) => {
                let more_digits = value_bytes.checked_ilog10().unwrap_or(0);
                empty + value_bytes + usize::try_from(more_digits).unwrap_or(0)
            }
        }
    }
}

/// A frame of the binary protocol: its header but for the CAS, and the extras.
fn frame(magic: u8, opcode: u8, key: usize, extras: &[u8], value: usize, out: &mut Vec<u8>) {
    let key_bytes = u16::try_from(key).unwrap_or(u16::MAX).to_be_bytes();
    let extras_bytes = u8::try_from(extras.len()).unwrap_or(u8::MAX);
    let body = u32::try_from(extras.len() + key + value).unwrap_or(u32::MAX);
    out.extend_from_slice(&[magic, opcode, key_bytes[0], key_bytes[1], extras_bytes, 0, 0, 0]);
    out.extend_from_slice(&body.to_be_bytes());
    out.extend_from_slice(&[0; 12]);
    out.extend_from_slice(extras);
}

fn binary_request(operation: Operation, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let (opcode, extras, value): (_, &[u8], _) = match operation {
        Operation::Get => (0x00, b"", &b""[..]),
        Operation::Set => (0x01, &[0; 8], value),
    };
    frame(0x80, opcode, key.len(), extras, value.len(), out);
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// The answer but for its CAS.
fn binary_reply(operation: Operation, value: &[u8]) -> Vec<u8> {
    let mut reply = Vec::new();
    match operation {
        Operation::Get => {
            frame(0x81, 0x00, 0, &[0; 4], value.len(), &mut reply);
            reply.extend_from_slice(value);
        }
        Operation::Set => frame(0x81, 0x01, 0, b"", 0, &mut reply),
    }
    reply
}

fn bulk(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'$');
    number(bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// A decimal number and a line end. A write to a vector cannot fail.
fn number(value: usize, out: &mut Vec<u8>) {
    let _ = write!(out, "{value}\r\n");
}

#[cfg(test)]
mod tests {
    use super::{Operation, Protocol};

    #[test]
    fn requests_and_replies() {
        let table: [(Protocol, Operation, &[u8], &[u8]); 6] = [
            (Protocol::Memcached, Operation::Get, b"get k\r\n", b"VALUE k 0 2\r\nvv\r\nEND\r\n"),
            (Protocol::Memcached, Operation::Set, b"set k 0 0 2\r\nvv\r\n", b"STORED\r\n"),
            (
                Protocol::Binary,
                Operation::Get,
                b"\x80\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0k",
                b"\x81\0\0\0\x04\0\0\0\0\0\0\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0vv",
            ),
            (
                Protocol::Binary,
                Operation::Set,
                b"\x80\x01\0\x01\x08\0\0\0\0\0\0\x0b\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0kvv",
                b"\x81\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            ),
            (Protocol::Resp, Operation::Get, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", b"$2\r\nvv\r\n"),
            (Protocol::Resp, Operation::Set, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nvv\r\n", b"+OK\r\n"),
        ];
        for (protocol, operation, request, reply) in table {
            let mut bytes = Vec::new();
            protocol.request(operation, b"k", b"vv", &mut bytes);
            assert_eq!(bytes, request);
            assert_eq!(protocol.reply(operation, b"k", b"vv"), reply);
        }
    }

    #[test]
    fn many_keys_in_one_request() {
        let table: [(Protocol, &[u8], &[u8]); 2] = [
            (Protocol::Memcached, b"get k l\r\n", b"VALUE k 0 2\r\nvv\r\nVALUE l 0 2\r\nvv\r\nEND\r\n"),
            (
                Protocol::Resp,
                b"*3\r\n$4\r\nMGET\r\n$1\r\nk\r\n$1\r\nl\r\n",
                b"*2\r\n$2\r\nvv\r\n$2\r\nvv\r\n",
            ),
        ];
        for (protocol, request, reply) in table {
            let empty = protocol.reply(Operation::Get, b"k", b"").len();
            let mut bytes = Vec::new();
            protocol.begin_many(2, &mut bytes).expect("spoken");
            protocol.one_of_many(b"k", &mut bytes);
            protocol.one_of_many(b"l", &mut bytes);
            let frame = protocol.end_many(2, &mut bytes);
            assert_eq!(bytes, request);
            assert_eq!(frame + 2 * protocol.many_reply_bytes(empty, 2), reply.len());
        }
    }

    #[test]
    fn the_length_of_an_answer_is_known_without_putting_it_together() {
        for protocol in [Protocol::Memcached, Protocol::Binary, Protocol::Resp, Protocol::Postgres] {
            for operation in [Operation::Get, Operation::Set] {
                let empty = protocol.reply(operation, b"key", b"").len();
                for size in [0, 1, 9, 10, 99, 100, 12_345] {
                    let whole = protocol.reply(operation, b"key", &vec![b'v'; size]).len();
                    assert_eq!(protocol.reply_bytes(operation, empty, size), whole, "{protocol:?} {size}");
                }
            }
        }
    }
}
