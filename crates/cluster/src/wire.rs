//! The bytes of a message: a version, who sends it, what it has heard, and what it says. What is read is bounded, and
//! nothing that does not fit is guessed at.

use std::fmt;

use engine::{Ends, KeyChange, Operation, Replica, Said, SqlType, TableName, Value};

use crate::chain::Seen;
use crate::limits::{COLUMNS_MAX, MESSAGE_BYTES_MAX, NAME_BYTES_MAX, OPERATIONS_MAX, PARAMETERS_MAX};

/// The first byte. Another layout gets another number.
const VERSION: u8 = 1;

/// What one cache says to the others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    /// The sender, by a number that it drew when it started.
    pub(crate) node: u64,
    /// How many messages it has sent, with this one.
    pub(crate) counter: u64,
    /// How far it has heard, where it knows the history.
    pub(crate) seen: Option<Seen>,
    pub(crate) body: Body,
}

/// What it says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    /// That it lives.
    Heartbeat(Heartbeat),
    /// Which rows are not valid any more.
    Operations(Vec<Operation>),
}

/// How a cache is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heartbeat {
    /// How it calls itself.
    pub(crate) name: String,
    /// Milliseconds that it is behind.
    pub(crate) lag_ms: u64,
    /// Operations that it has not sent.
    pub(crate) outbox: u64,
    /// The history begins with this message: nobody knew one before.
    pub(crate) epoch: Option<u64>,
    /// It does so only if this was the last message before it.
    pub(crate) behind: Option<u64>,
}

/// Why a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// It is of another version of this program.
    Version(u8),
    /// It is none.
    Garbage(&'static str),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(
                f,
                "a message has version {version}, and this program reads version {VERSION}; let all caches of a bus \
                 have one version"
            ),
            Self::Garbage(what) => {
                write!(f, "a message is none of a cache: {what}; nobody else may write to the stream")
            }
        }
    }
}

pub(crate) type Read<T> = Result<T, Unreadable>;

impl Message {
    /// Its bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.node.to_le_bytes());
        put_number(self.counter, &mut out);
        match self.seen {
            None => out.push(0),
            Some(Seen { sequence, chain, epoch }) => {
                out.push(1);
                put_number(sequence, &mut out);
                out.extend_from_slice(&chain.to_le_bytes());
                out.extend_from_slice(&epoch.to_le_bytes());
            }
        }
        match &self.body {
            Body::Heartbeat(heartbeat) => {
                out.push(0);
                put_bytes(heartbeat.name.as_bytes(), &mut out);
                put_number(heartbeat.lag_ms, &mut out);
                put_number(heartbeat.outbox, &mut out);
                put_epoch(heartbeat, &mut out);
            }
            Body::Operations(operations) => {
                out.push(1);
                put_number(operations.len() as u64, &mut out);
                for operation in operations {
                    put_operation(operation, &mut out);
                }
            }
        }
        out
    }

    /// Reads one.
    pub(crate) fn decode(bytes: &[u8]) -> Read<Self> {
        if bytes.len() > MESSAGE_BYTES_MAX {
            return Err(Unreadable::Garbage("it is too long"));
        }
        let mut from = Reader(bytes);
        match from.byte()? {
            VERSION => {}
            version => return Err(Unreadable::Version(version)),
        }
        let (node, counter) = (from.fixed()?, from.number()?);
        let seen = match from.byte()? {
            0 => None,
            1 => Some(Seen { sequence: from.number()?, chain: from.fixed()?, epoch: from.fixed()? }),
            _ => return Err(Unreadable::Garbage("nothing begins so")),
        };
        let body = match from.byte()? {
            0 => {
                let name = from.text(NAME_BYTES_MAX)?.to_owned();
                let (lag_ms, outbox) = (from.number()?, from.number()?);
                let (epoch, behind) = from.epoch()?;
                Body::Heartbeat(Heartbeat { name, lag_ms, outbox, epoch, behind })
            }
            1 => {
                let count = from.count(OPERATIONS_MAX)?;
                Body::Operations((0..count).map(|_| operation(&mut from)).collect::<Read<_>>()?)
            }
            _ => return Err(Unreadable::Garbage("it says nothing that is known")),
        };
        if !from.0.is_empty() {
            return Err(Unreadable::Garbage("something stands behind its end"));
        }
        Ok(Self { node, counter, seen, body })
    }
}

fn put_operation(operation: &Operation, out: &mut Vec<u8>) {
    let (kind, table) = (kind_of(operation), operation.table());
    out.push(kind);
    put_bytes(table.name.as_bytes(), out);
    out.extend_from_slice(&table.likeness.to_le_bytes());
    match operation {
        Operation::Key { key, change, .. } => {
            put_bytes(key, out);
            match change {
                KeyChange::Delete => out.push(0),
                KeyChange::Stale(seconds) => {
                    out.push(1);
                    put_optional(seconds.map(u64::from), out);
                }
                KeyChange::Withdraw => out.push(2),
            }
        }
        Operation::Row { key, row, .. } => {
            put_bytes(key, out);
            put_row(row, out);
        }
        Operation::Statement { said, .. } => put_said(said, out),
        Operation::Whole { .. } => {}
    }
}

fn kind_of(operation: &Operation) -> u8 {
    match operation {
        Operation::Key { .. } => 0,
        Operation::Statement { .. } => 1,
        Operation::Whole { .. } => 2,
        Operation::Row { .. } => 3,
    }
}

pub(crate) fn put_row(row: &Replica, out: &mut Vec<u8>) {
    put_number(row.client_flags.into(), out);
    match row.ends {
        Ends::Table => out.push(0),
        Ends::Never => out.push(1),
        Ends::At(unix_ms) => {
            out.push(2);
            put_number(unix_ms, out);
        }
    }
    out.push(u8::from(row.stale));
    put_number(row.values.len() as u64, out);
    row.values.iter().for_each(|value| put_value(value, out));
}

fn put_said(said: &Said, out: &mut Vec<u8>) {
    put_bytes(said.text.as_bytes(), out);
    put_number(said.values.len() as u64, out);
    said.values.iter().for_each(|value| put_value(value, out));
    put_number(said.types.len() as u64, out);
    for ty in &said.types {
        // The number of an enum type is another one in each cache.
        let oid = ty.filter(|ty| ty.enumeration().is_none()).map_or(0, SqlType::oid);
        put_number(u64::from(oid), out);
    }
    put_bytes(said.zone.as_deref().unwrap_or_default().as_bytes(), out);
    out.push(u8::from(said.like_of_sqlite));
}

fn put_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0),
        Value::Integer(number) => {
            out.push(1);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Value::Real(number) => {
            out.push(2);
            out.extend_from_slice(&number.to_bits().to_le_bytes());
        }
        Value::Text(text) => {
            out.push(3);
            put_bytes(text.as_bytes(), out);
        }
        Value::Blob(bytes) => {
            out.push(4);
            put_bytes(bytes, out);
        }
    }
}

fn operation(from: &mut Reader<'_>) -> Read<Operation> {
    let kind = from.byte()?;
    let table = TableName { name: from.text(MESSAGE_BYTES_MAX)?.into(), likeness: from.fixed()? };
    Ok(match kind {
        0 => {
            let key = from.bytes(MESSAGE_BYTES_MAX)?.into();
            let change = match from.byte()? {
                0 => KeyChange::Delete,
                1 => KeyChange::Stale(from.optional()?.map(|own| u32::try_from(own).unwrap_or(u32::MAX))),
                2 => KeyChange::Withdraw,
                _ => return Err(Unreadable::Garbage("nothing is done so to a key")),
            };
            Operation::Key { table, key, change }
        }
        1 => Operation::Statement { table, said: Box::new(said(from)?) },
        2 => Operation::Whole { table },
        3 => {
            let key = from.bytes(MESSAGE_BYTES_MAX)?.into();
            Operation::Row { table, key, row: Box::new(row(from)?) }
        }
        _ => return Err(Unreadable::Garbage("an operation is none that is known")),
    })
}

pub(crate) fn row(from: &mut Reader<'_>) -> Read<Replica> {
    let client_flags =
        u32::try_from(from.number()?).map_err(|_| Unreadable::Garbage("flags are too large"))?;
    let ends = match from.byte()? {
        0 => Ends::Table,
        1 => Ends::Never,
        2 => Ends::At(from.number()?),
        _ => return Err(Unreadable::Garbage("a row does not end so")),
    };
    let stale = from.byte()? != 0;
    let values = from.count(COLUMNS_MAX)?;
    let values = (0..values).map(|_| value(from)).collect::<Read<_>>()?;
    Ok(Replica { values, client_flags, ends, stale })
}

fn said(from: &mut Reader<'_>) -> Read<Said> {
    let text = from.text(MESSAGE_BYTES_MAX)?.into();
    let values = from.count(PARAMETERS_MAX)?;
    let values = (0..values).map(|_| value(from)).collect::<Read<_>>()?;
    let types = from.count(PARAMETERS_MAX)?;
    let types = (0..types).map(|_| from.number().map(type_of)).collect::<Read<_>>()?;
    let zone = from.text(NAME_BYTES_MAX)?;
    let zone = (!zone.is_empty()).then(|| zone.into());
    Ok(Said { text, values, types, zone, like_of_sqlite: from.byte()? != 0 })
}

fn type_of(oid: u64) -> Option<SqlType> {
    u32::try_from(oid).ok().and_then(SqlType::of_oid)
}

fn value(from: &mut Reader<'_>) -> Read<Value> {
    Ok(match from.byte()? {
        0 => Value::Null,
        1 => Value::Integer(from.fixed()?.cast_signed()),
        2 => Value::Real(f64::from_bits(from.fixed()?)),
        3 => Value::Text(from.text(MESSAGE_BYTES_MAX)?.to_owned()),
        4 => Value::Blob(from.bytes(MESSAGE_BYTES_MAX)?.to_owned()),
        _ => return Err(Unreadable::Garbage("a value is of no kind that is known")),
    })
}

/// Seven bits a byte, the lowest first.
pub(crate) fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7f).unwrap_or(0) | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap_or(0));
}

pub(crate) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

pub(crate) fn put_optional(number: Option<u64>, out: &mut Vec<u8>) {
    out.push(u8::from(number.is_some()));
    if let Some(number) = number {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

/// 0: none, 1: one, 2: one that begins behind a certain message.
fn put_epoch(heartbeat: &Heartbeat, out: &mut Vec<u8>) {
    match (heartbeat.epoch, heartbeat.behind) {
        (Some(epoch), Some(behind)) => {
            out.push(2);
            out.extend_from_slice(&epoch.to_le_bytes());
            put_number(behind, out);
        }
        (epoch, _) => put_optional(epoch, out),
    }
}

/// What was not read yet.
pub(crate) struct Reader<'b>(pub(crate) &'b [u8]);

impl<'b> Reader<'b> {
    pub(crate) fn take(&mut self, count: usize) -> Read<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Unreadable::Garbage("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn byte(&mut self) -> Read<u8> {
        self.take(1).map(|bytes| bytes.first().copied().unwrap_or_default())
    }

    pub(crate) fn fixed(&mut self) -> Read<u64> {
        let bytes = self.take(8)?.try_into().map_err(|_| Unreadable::Garbage("it ends too early"))?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(crate) fn number(&mut self) -> Read<u64> {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift >= u64::BITS || part << shift >> shift != part {
                return Err(Unreadable::Garbage("a number is too large"));
            }
            number |= part << shift;
            if byte < 0x80 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    /// A number of things of which each takes a byte at least.
    pub(crate) fn count(&mut self, most: usize) -> Read<usize> {
        let count = usize::try_from(self.number()?).ok().filter(|count| *count <= most.min(self.0.len()));
        count.ok_or(Unreadable::Garbage("it has more than fits"))
    }

    pub(crate) fn bytes(&mut self, most: usize) -> Read<&'b [u8]> {
        let length = self.count(most)?;
        self.take(length)
    }

    pub(crate) fn text(&mut self, most: usize) -> Read<&'b str> {
        std::str::from_utf8(self.bytes(most)?).map_err(|_| Unreadable::Garbage("a text is not UTF-8"))
    }

    pub(crate) fn optional(&mut self) -> Read<Option<u64>> {
        Ok(if self.byte()? == 0 { None } else { Some(self.fixed()?) })
    }

    fn epoch(&mut self) -> Read<(Option<u64>, Option<u64>)> {
        Ok(match self.byte()? {
            0 => (None, None),
            1 => (Some(self.fixed()?), None),
            2 => (Some(self.fixed()?), Some(self.number()?)),
            _ => return Err(Unreadable::Garbage("a history does not begin so")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any_operation(random: &mut fastrand::Rng) -> Operation {
        let table = TableName {
            name: ["page", "shop.page", "caf\u{e9}"][random.usize(..3)].into(),
            likeness: random.u64(..),
        };
        match random.u8(..4) {
            0 => {
                let key = (0..random.usize(..40)).map(|_| random.u8(..)).collect();
                let seconds = random.bool().then(|| random.u32(..));
                let all = [KeyChange::Delete, KeyChange::Stale(seconds), KeyChange::Withdraw];
                Operation::Key { table, key, change: all[random.usize(..3)] }
            }
            3 => {
                let key = (0..random.usize(..40)).map(|_| random.u8(..)).collect();
                let values = (0..random.usize(..5)).map(|_| any_value(random)).collect();
                let ends = [Ends::Table, Ends::Never, Ends::At(random.u64(..))][random.usize(..3)];
                let row = Replica { values, client_flags: random.u32(..), ends, stale: random.bool() };
                Operation::Row { table, key, row: Box::new(row) }
            }
            1 => {
                let values = (0..random.usize(..5)).map(|_| any_value(random)).collect();
                let types = (0..random.usize(..5))
                    .map(|_| [None, Some(SqlType::Int4), Some(SqlType::Text)][random.usize(..3)])
                    .collect();
                let zone = random.bool().then(|| "Europe/Berlin".into());
                let text = "DELETE FROM page WHERE uid = $1".into();
                let said = Said { text, values, types, zone, like_of_sqlite: random.bool() };
                Operation::Statement { table, said: Box::new(said) }
            }
            _ => Operation::Whole { table },
        }
    }

    fn any_value(random: &mut fastrand::Rng) -> Value {
        match random.u8(..5) {
            0 => Value::Null,
            1 => Value::Integer(random.i64(..)),
            2 => Value::Real(random.f64()),
            3 => Value::Text("x".repeat(random.usize(..200))),
            _ => Value::Blob(vec![random.u8(..); random.usize(..200)]),
        }
    }

    fn any_message(random: &mut fastrand::Rng) -> Message {
        let seen = random.bool().then(|| Seen {
            sequence: random.u64(..),
            chain: random.u64(..),
            epoch: random.u64(..),
        });
        let body = if random.bool() {
            let epoch = random.bool().then(|| random.u64(..));
            let name = "web-7".to_owned();
            let behind = epoch.filter(|_| random.bool()).map(|_| random.u64(..));
            Body::Heartbeat(Heartbeat {
                name,
                lag_ms: random.u64(..),
                outbox: random.u64(..5),
                epoch,
                behind,
            })
        } else {
            Body::Operations((0..random.usize(..20)).map(|_| any_operation(random)).collect())
        };
        Message { node: random.u64(..), counter: random.u64(..), seen, body }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut random = fastrand::Rng::with_seed(crate::simulation::seed());
        for _ in 0..2_000 {
            let message = any_message(&mut random);
            assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
    }

    /// No bytes stop the reader, and none that were cut or changed take more memory than they have.
    #[test]
    fn whatever_comes_is_read_or_refused() {
        let mut random = fastrand::Rng::with_seed(crate::simulation::seed());
        let mut refused = 0;
        for _ in 0..50_000 {
            let mut bytes = any_message(&mut random).encode();
            for _ in 0..random.usize(1..4) {
                match random.u8(..4) {
                    0 => bytes.truncate(random.usize(..=bytes.len())),
                    1 => bytes.push(random.u8(..)),
                    2 if !bytes.is_empty() => {
                        let at = random.usize(..bytes.len());
                        bytes[at] = random.u8(..);
                    }
                    _ => bytes = (0..random.usize(..60)).map(|_| random.u8(..)).collect(),
                }
            }
            match Message::decode(&bytes) {
                // A number may be written in more bytes than it needs, so the text is another one; not what it says.
                Ok(message) => {
                    assert_eq!(Message::decode(&message.encode()).unwrap().counter, message.counter);
                }
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 10_000, "{refused}");
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = any_message(&mut fastrand::Rng::with_seed(1)).encode();
        bytes[0] = 9;
        assert_eq!(Message::decode(&bytes), Err(Unreadable::Version(9)));
        assert!(Unreadable::Version(9).to_string().contains("version 9"));
        assert!(Message::decode(&vec![VERSION; MESSAGE_BYTES_MAX + 1]).is_err());
        assert!(Message::decode(&[]).is_err());
    }
}
