//! The words by which a cache gets rows of others. They travel beside the stream: any of them may be lost, late or
//! repeated, and nobody is worse off for that.

use std::sync::Arc;

use engine::{Replica, TableName};
use store::GivePlace;

use crate::chain::Seen;
use crate::limits::{GIVEN_ROWS_MAX, MESSAGE_BYTES_MAX};
use crate::wire::{Read, Reader, Unreadable, put_bytes, put_number, put_optional, put_row, row};

/// The first byte. Another layout gets another number.
const VERSION: u8 = 1;

/// What a cache says to another one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Word {
    /// The sender.
    pub(crate) node: u64,
    pub(crate) what: What,
}

/// See [`Word`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// It lacks rows of a table that others may have.
    Wants(TableName),
    /// It has so many.
    Offers { table: Arc<str>, rows: u64 },
    /// It has none to give.
    Lacks { table: Arc<str> },
    /// Its table of this name is another one.
    Differs { table: Arc<str> },
    /// It is to be given rows.
    Asks(Ask),
    /// Those are some.
    Gives(Given),
    /// It gives none: it has lost its own, or there is no such place.
    Refuses { number: u64 },
}

/// A question for rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    /// Each has another one.
    pub(crate) number: u64,
    pub(crate) table: TableName,
    /// None: from the beginning.
    pub(crate) from: Option<GivePlace>,
    /// They are to be read when this message of the stream was applied, or a later one.
    pub(crate) at_least: u64,
}

/// Rows as they were when a message of the stream had been applied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Given {
    /// The number of the question.
    pub(crate) number: u64,
    /// That message, and the history up to it.
    pub(crate) seen: Seen,
    /// Each with its key.
    pub(crate) rows: Vec<(Box<[u8]>, Replica)>,
    /// Where to go on; none: those were the last.
    pub(crate) next: Option<GivePlace>,
}

impl Word {
    /// Its bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.node.to_le_bytes());
        match &self.what {
            What::Wants(table) => {
                out.push(0);
                put_table(table, &mut out);
            }
            What::Offers { table, rows } => {
                out.push(1);
                put_bytes(table.as_bytes(), &mut out);
                put_number(*rows, &mut out);
            }
            What::Lacks { table } => {
                out.push(2);
                put_bytes(table.as_bytes(), &mut out);
            }
            What::Differs { table } => {
                out.push(3);
                put_bytes(table.as_bytes(), &mut out);
            }
            What::Asks(ask) => {
                out.push(4);
                put_ask(ask, &mut out);
            }
            What::Gives(given) => {
                out.push(5);
                put_given(given, &mut out);
            }
            What::Refuses { number } => {
                out.push(6);
                put_number(*number, &mut out);
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
        let node = from.fixed()?;
        let what = what(&mut from)?;
        if !from.0.is_empty() {
            return Err(Unreadable::Garbage("something stands behind its end"));
        }
        Ok(Self { node, what })
    }
}

fn what(from: &mut Reader<'_>) -> Read<What> {
    Ok(match from.byte()? {
        0 => What::Wants(table(from)?),
        1 => What::Offers { table: name(from)?, rows: from.number()? },
        2 => What::Lacks { table: name(from)? },
        3 => What::Differs { table: name(from)? },
        4 => What::Asks(ask(from)?),
        5 => What::Gives(given(from)?),
        6 => What::Refuses { number: from.number()? },
        _ => return Err(Unreadable::Garbage("it says nothing that is known")),
    })
}

fn put_table(table: &TableName, out: &mut Vec<u8>) {
    put_bytes(table.name.as_bytes(), out);
    out.extend_from_slice(&table.likeness.to_le_bytes());
}

fn table(from: &mut Reader<'_>) -> Read<TableName> {
    Ok(TableName { name: name(from)?, likeness: from.fixed()? })
}

fn name(from: &mut Reader<'_>) -> Read<Arc<str>> {
    from.text(MESSAGE_BYTES_MAX).map(Into::into)
}

fn put_ask(ask: &Ask, out: &mut Vec<u8>) {
    put_number(ask.number, out);
    put_table(&ask.table, out);
    put_place(ask.from, out);
    put_number(ask.at_least, out);
}

fn ask(from: &mut Reader<'_>) -> Read<Ask> {
    Ok(Ask { number: from.number()?, table: table(from)?, from: place(from)?, at_least: from.number()? })
}

fn put_given(given: &Given, out: &mut Vec<u8>) {
    put_number(given.number, out);
    put_number(given.seen.sequence, out);
    out.extend_from_slice(&given.seen.chain.to_le_bytes());
    out.extend_from_slice(&given.seen.epoch.to_le_bytes());
    put_place(given.next, out);
    put_number(given.rows.len() as u64, out);
    for (key, row) in &given.rows {
        put_bytes(key, out);
        put_row(row, out);
    }
}

fn given(from: &mut Reader<'_>) -> Read<Given> {
    let number = from.number()?;
    let seen = Seen { sequence: from.number()?, chain: from.fixed()?, epoch: from.fixed()? };
    let next = place(from)?;
    let count = from.count(GIVEN_ROWS_MAX)?;
    let rows = (0..count).map(|_| Ok((from.bytes(MESSAGE_BYTES_MAX)?.into(), row(from)?)));
    Ok(Given { number, seen, rows: rows.collect::<Read<_>>()?, next })
}

fn put_place(place: Option<GivePlace>, out: &mut Vec<u8>) {
    out.push(u8::from(place.is_some()));
    if let Some(GivePlace { groups, group, behind }) = place {
        put_number(groups, out);
        put_number(group, out);
        put_optional(behind, out);
    }
}

fn place(from: &mut Reader<'_>) -> Read<Option<GivePlace>> {
    Ok(match from.byte()? {
        0 => None,
        1 => Some(GivePlace { groups: from.number()?, group: from.number()?, behind: from.optional()? }),
        _ => return Err(Unreadable::Garbage("no place is said so")),
    })
}

#[cfg(test)]
mod tests {
    use engine::{Ends, Value};

    use super::*;

    fn any_place(random: &mut fastrand::Rng) -> Option<GivePlace> {
        let behind = random.bool().then(|| random.u64(..));
        random.bool().then(|| GivePlace { groups: random.u64(..), group: random.u64(..), behind })
    }

    fn any_given(random: &mut fastrand::Rng) -> Given {
        let mut row = || {
            let key: Vec<u8> = (0..random.usize(..40)).map(|_| random.u8(..)).collect();
            let values = vec![Value::Null, Value::Integer(random.i64(..)), Value::Text("x".repeat(7))];
            let ends = [Ends::Table, Ends::Never, Ends::At(random.u64(..))][random.usize(..3)];
            (key.into(), Replica { values, client_flags: random.u32(..), ends, stale: random.bool() })
        };
        let rows = (0..5).map(|_| row()).collect();
        let seen = Seen { sequence: random.u64(..), chain: random.u64(..), epoch: random.u64(..) };
        Given { number: random.u64(..), seen, rows, next: any_place(random) }
    }

    fn any_word(random: &mut fastrand::Rng) -> Word {
        let table: Arc<str> = ["sess", "shop.sess", "caf\u{e9}"][random.usize(..3)].into();
        let named = TableName { name: Arc::clone(&table), likeness: random.u64(..) };
        let what = match random.u8(..7) {
            0 => What::Wants(named),
            1 => What::Offers { table, rows: random.u64(..) },
            2 => What::Lacks { table },
            3 => What::Differs { table },
            4 => {
                let (number, at_least) = (random.u64(..), random.u64(..));
                What::Asks(Ask { number, table: named, from: any_place(random), at_least })
            }
            5 => What::Gives(any_given(random)),
            _ => What::Refuses { number: random.u64(..) },
        };
        Word { node: random.u64(..), what }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut random = fastrand::Rng::with_seed(crate::simulation::seed());
        for _ in 0..2_000 {
            let word = any_word(&mut random);
            assert_eq!(Word::decode(&word.encode()), Ok(word));
        }
    }

    /// No bytes stop the reader, and none that were cut or changed take more memory than they have.
    #[test]
    fn whatever_comes_is_read_or_refused() {
        let mut random = fastrand::Rng::with_seed(crate::simulation::seed());
        let mut refused = 0;
        for _ in 0..50_000 {
            let mut bytes = any_word(&mut random).encode();
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
            match Word::decode(&bytes) {
                Ok(word) => assert_eq!(Word::decode(&word.encode()).unwrap().node, word.node),
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 10_000, "{refused}");
    }

    /// A word says how many rows it has, and how long they are. Who lies about that is not believed.
    #[test]
    fn lengths_that_are_lies_are_refused() {
        let given = any_given(&mut fastrand::Rng::with_seed(1));
        let said =
            Word { node: 1, what: What::Gives(Given { next: None, rows: Vec::new(), ..given }) }.encode();
        let with = |tail: &[u8]| Word::decode(&[&said[..said.len() - 1], tail].concat());
        assert!(with(&[0]).is_ok());
        let ends_early = Err(Unreadable::Garbage("it has more than fits"));
        assert_eq!(with(&[1]), ends_early, "a row, and there is none");
        assert_eq!(with(&[0xff, 0xff, 0xff, 0xff, 0x0f]), ends_early, "four thousand million rows");
        assert_eq!(with(&[1, 0xff, 0xff, 0x7f]), ends_early, "a key of two million bytes");
        assert!(with(&[1, 1, b'k', 0, 0, 0, 0xff, 0x7f]).is_err(), "sixteen thousand values");
        assert!(with(&[0, 0]).is_err(), "something behind its end");
        assert_eq!(Word::decode(&[9]), Err(Unreadable::Version(9)));
        assert!(Word::decode(&vec![VERSION; MESSAGE_BYTES_MAX + 1]).is_err() && Word::decode(&[]).is_err());
    }
}
