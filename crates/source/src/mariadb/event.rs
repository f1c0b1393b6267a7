//! Events of a binary log, as MariaDB writes them. What is not known is an error: nothing may be passed over that may
//! have changed rows.

use super::compressed::inflated;
use super::cursor::{Cursor, cut, hex};
use super::table::TableMap;
use crate::error::Error;

/// The length of an event's header.
const HEADER: usize = 19;
/// The length of a checksum.
const CHECKSUM: usize = 4;
/// An event that is not in the log, but made for whoever reads it.
const ARTIFICIAL: u16 = 0x20;
/// An event that whoever does not know it may pass over.
const IGNORABLE: u16 = 0x80;
/// What a transaction's first event says of it: a statement that is whole by itself.
const STANDALONE: u8 = 1;
/// Where a format description tells how events are checked: behind the version, the server's name and the time.
const HEADER_LENGTH_AT: usize = 2 + 50 + 4;

/// What an event says.
#[derive(Debug)]
pub(super) enum Event<'e> {
    /// The log goes on in another file.
    Rotate { file: String, offset: u64 },
    /// A transaction begins, or a statement that is one by itself comes next.
    Begin { standalone: bool },
    /// The transaction ends, and took effect.
    Commit,
    /// It is prepared: another one says by this name whether it takes effect.
    Prepare { name: String },
    /// A table whose changes come next.
    Table(TableMap),
    /// Rows that came, changed or went.
    Rows(Rows<'e>),
    /// A statement.
    Statement { text: String },
    /// Changes are missing in the log.
    Incident,
    /// Nothing came for a while: the source has read its log up to here.
    Idle { file: String },
    /// Of no interest.
    Other,
}

/// Which values a rows event has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Insert,
    Update,
    Delete,
}

/// Rows of one table. Their values are read with what is known of it.
#[derive(Debug)]
pub(super) struct Rows<'e> {
    pub(super) table: u64,
    pub(super) change: Change,
    /// How many columns the table has.
    pub(super) columns: usize,
    /// Bits of the columns that rows have before and after.
    pub(super) present: &'e [u8],
    pub(super) present_after: &'e [u8],
    pub(super) values: Values<'e>,
}

/// The values of rows.
#[derive(Debug)]
pub(super) enum Values<'e> {
    Plain(&'e [u8]),
    Inflated(Vec<u8>),
}

impl Values<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Plain(bytes) => bytes,
            Self::Inflated(bytes) => bytes,
        }
    }
}

/// An event with its header.
#[derive(Debug)]
pub(super) struct Read<'e> {
    /// Where the log goes on behind it; `None`: it is not in the log.
    pub(super) end: Option<u64>,
    pub(super) event: Event<'e>,
}

/// Reads events, one after the other.
#[derive(Debug)]
pub(super) struct Reader {
    /// They end with a checksum.
    checked: bool,
}

impl Reader {
    /// `checked`: events end with a checksum until the log says how it is.
    pub(super) fn new(checked: bool) -> Self {
        Self { checked }
    }

    pub(super) fn read<'e>(&mut self, bytes: &'e [u8]) -> Result<Read<'e>, Error> {
        let mut header = Cursor(bytes.get(..HEADER).ok_or_else(cut)?);
        header.take(4)?;
        let kind = header.byte()?;
        header.take(4)?;
        if header.size(4)? != bytes.len() {
            return Err(Error::connection("an event of the binary log is not as long as it says"));
        }
        let (end, flags) = (header.number(4)?, header.number(2)?);
        let flags = u16::try_from(flags).unwrap_or(0);
        let body = if kind == FORMAT_DESCRIPTION { self.describe(bytes)? } else { self.body(bytes)? };
        let event = event_of(kind, flags, body)?;
        let end = Some(end).filter(|end| *end > 0 && flags & ARTIFICIAL == 0);
        Ok(Read { end, event })
    }

    /// What stands between header and checksum.
    fn body<'e>(&self, bytes: &'e [u8]) -> Result<&'e [u8], Error> {
        if !self.checked {
            return Ok(&bytes[HEADER..]);
        }
        let end = bytes.len().checked_sub(CHECKSUM).filter(|end| *end >= HEADER).ok_or_else(cut)?;
        let (event, sum) = bytes.split_at(end);
        if crc32fast::hash(event).to_le_bytes() != *sum {
            return Err(Error::connection("an event of the binary log does not have its checksum"));
        }
        Ok(&event[HEADER..])
    }

    /// Learns from the log how its events are checked. The description itself has always room for a checksum.
    fn describe<'e>(&mut self, bytes: &'e [u8]) -> Result<&'e [u8], Error> {
        let end = bytes.len().checked_sub(CHECKSUM + 1).filter(|end| *end >= HEADER).ok_or_else(cut)?;
        let body = &bytes[HEADER..end];
        if body.get(HEADER_LENGTH_AT).copied() != u8::try_from(HEADER).ok() {
            return Err(Error::connection("the binary log is of a format that is not known"));
        }
        self.checked = match bytes[end] {
            0 => false,
            1 => true,
            other => {
                let message = format!("the binary log has checksums of kind {other}");
                return Err(Error::new("0A000", message)
                    .with_hint("SET GLOBAL binlog_checksum = CRC32 on the source"));
            }
        };
        Ok(body)
    }
}

const QUERY: u8 = 2;
const ROTATE: u8 = 4;
const FORMAT_DESCRIPTION: u8 = 15;
const XID: u8 = 16;
const EXECUTE_LOAD: u8 = 18;
const TABLE_MAP: u8 = 19;
const INCIDENT: u8 = 26;
const HEARTBEAT: u8 = 27;
const XA_PREPARE: u8 = 38;
const GTID: u8 = 162;
const QUERY_COMPRESSED: u8 = 165;

fn event_of(kind: u8, flags: u16, body: &[u8]) -> Result<Event<'_>, Error> {
    let mut rest = Cursor(body);
    Ok(match kind {
        ROTATE => {
            let offset = rest.number(8)?;
            Event::Rotate { offset, file: String::from_utf8_lossy(rest.0).into_owned() }
        }
        GTID => {
            rest.take(12)?;
            Event::Begin { standalone: rest.byte()? & STANDALONE != 0 }
        }
        XID => Event::Commit,
        XA_PREPARE => prepare(rest)?,
        TABLE_MAP => Event::Table(TableMap::read(rest)?),
        QUERY | QUERY_COMPRESSED => statement(rest, kind == QUERY_COMPRESSED)?,
        EXECUTE_LOAD => Event::Statement { text: "LOAD DATA".into() },
        INCIDENT => Event::Incident,
        HEARTBEAT => Event::Idle { file: String::from_utf8_lossy(rest.0).into_owned() },
        // Of rows: as MariaDB writes them, as MySQL does, and MariaDB's compressed ones of both.
        23..=25 => rows(rest, kind - 23, false, false)?,
        30..=32 => rows(rest, kind - 30, true, false)?,
        166..=168 => rows(rest, kind - 166, false, true)?,
        169..=171 => rows(rest, kind - 169, true, true)?,
        // The end of a file, variables of a statement, its first half, its text, MySQL's numbers of transactions,
        // where the log is complete, which transactions it has, how it is encrypted.
        3 | FORMAT_DESCRIPTION | 5 | 13 | 14 | 17 | 28 | 29 | 33..=35 | 160 | 161 | 163 | 164 => Event::Other,
        _ if flags & IGNORABLE != 0 => Event::Other,
        _ => {
            let message = format!("the binary log has an event of kind {kind}, which is not known");
            return Err(Error::new("0A000", message));
        }
    })
}

/// The name of a distributed transaction, as `XA COMMIT` has it in the log; one of one phase is committed at once.
fn prepare(mut rest: Cursor<'_>) -> Result<Event<'_>, Error> {
    if rest.byte()? != 0 {
        return Ok(Event::Commit);
    }
    let format = rest.number(4)?;
    let (global, branch) = (rest.size(4)?, rest.size(4)?);
    let (global, branch) = (hex(rest.take(global)?), hex(rest.take(branch)?));
    Ok(Event::Prepare { name: format!("X'{global}',X'{branch}',{format}") })
}

fn statement(mut rest: Cursor<'_>, compressed: bool) -> Result<Event<'_>, Error> {
    rest.take(8)?;
    let database = rest.size(1)?;
    rest.take(2)?;
    let variables = rest.size(2)?;
    rest.take(variables)?;
    rest.take(database + 1)?;
    let text = if compressed {
        String::from_utf8_lossy(&inflated(rest.0)?).into_owned()
    } else {
        String::from_utf8_lossy(rest.0).into_owned()
    };
    Ok(Event::Statement { text })
}

/// `which`: 0 to 2, in the order in which the kinds of events are numbered.
fn rows(mut rest: Cursor<'_>, which: u8, has_extra: bool, compressed: bool) -> Result<Event<'_>, Error> {
    let change = [Change::Insert, Change::Update, Change::Delete][usize::from(which.min(2))];
    let table = rest.number(6)?;
    rest.take(2)?;
    if has_extra {
        let extra = rest.size(2)?.checked_sub(2).ok_or_else(cut)?;
        rest.take(extra)?;
    }
    let columns = rest.packed_size()?;
    let present = rest.take(columns.div_ceil(8))?;
    let present_after = if change == Change::Update { rest.take(columns.div_ceil(8))? } else { present };
    let values = if compressed { Values::Inflated(inflated(rest.0)?) } else { Values::Plain(rest.0) };
    Ok(Event::Rows(Rows { table, change, columns, present, present_after, values }))
}
