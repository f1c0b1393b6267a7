//! Rows on their way: the private copy of one, what a write asks for, and where each column lies.
//!
//! A private copy is reused from read to read so that reading allocates nothing.

pub(crate) mod layout;
pub(crate) mod meta;
pub(crate) mod new;
pub(crate) mod renewal;
pub(crate) mod request;
pub(crate) mod version;

use arena::{Location, Place, RowHead, RowParts, RowRead, TableId};

use crate::clock::Tick;
use crate::row::new::NewRow;
use crate::row::renewal::Renewal;
use crate::row::request::Expiry;

/// A reusable private copy of one row. Nothing in it is interpreted before it was validated.
#[derive(Clone, Debug)]
pub struct RowBuf {
    head: RowHead,
    location: Location,
    /// The generation of its place when it was copied.
    generation: u64,
    /// What the row of a transaction's list takes over, which its head does not say.
    listed: Option<Listed>,
    /// As in the arena: the key, zeros up to a whole word, the payload.
    bytes: Vec<u8>,
}

/// Deadline and lease as a transaction's list has them.
#[derive(Clone, Copy, Debug)]
struct Listed {
    deadline: Expiry,
    same_lease: bool,
}

/// The head of an empty buffer.
const NO_ROW: RowHead = RowHead {
    table: TableId(0),
    stamp: 0,
    flags: 0,
    key_len: 0,
    payload_len: 0,
    expiry: 0,
    lease: 0,
    client_flags: 0,
    explicit_cas: None,
    total_bytes: 0,
};

impl Default for RowBuf {
    fn default() -> Self {
        Self {
            head: NO_ROW,
            location: Location::from_bits(0),
            generation: 0,
            listed: None,
            bytes: Vec::new(),
        }
    }
}

impl RowBuf {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// A row that no commit gave a stamp yet.
    pub(crate) fn uncommitted(table: TableId, key: &[u8], row: &NewRow) -> Self {
        let parts = RowParts {
            table,
            multi: false,
            stale: row.renewal.stale,
            expiry: row.expiry.word(),
            lease: row.renewal.lease,
            client_flags: row.client_flags,
            cas: row.cas,
            key,
            payload: &[&row.payload],
        };
        let head = parts.head();
        let mut bytes = Vec::with_capacity(payload_at(key.len()) + row.payload.len());
        bytes.extend_from_slice(key);
        bytes.resize(payload_at(key.len()), 0);
        bytes.extend_from_slice(&row.payload);
        let listed = Some(Listed { deadline: row.expiry, same_lease: row.renewal.same_lease });
        Self { head, location: Location::from_bits(0), generation: 0, listed, bytes }
    }

    /// Copies a row and says whether the copy is whole; a torn copy must not be looked at.
    pub(crate) fn load(&mut self, row: &RowRead<'_>) -> bool {
        self.head = *row.head();
        self.location = row.location();
        self.generation = row.generation();
        self.listed = None;
        self.bytes.clear();
        row.copy_key_and_payload(&mut self.bytes);
        row.is_valid()
    }

    /// Takes over the contents of another copy.
    pub(crate) fn clone_from_row(&mut self, other: &Self) {
        self.head = other.head;
        self.location = other.location;
        self.generation = other.generation;
        self.listed = other.listed;
        self.bytes.clone_from(&other.bytes);
    }

    pub(crate) fn duplicate(&self) -> Self {
        let mut copy = Self::new();
        copy.clone_from_row(self);
        copy
    }

    pub(crate) fn head(&self) -> &RowHead {
        &self.head
    }

    pub(crate) fn location(&self) -> Location {
        self.location
    }

    /// Where it was copied from, to find that very version again; none of a row that lies nowhere yet.
    pub(crate) fn place(&self) -> Option<Place> {
        let place = Place { location: self.location, generation: self.generation };
        (!self.is_uncommitted()).then_some(place)
    }

    /// Whether what lies at a place is what was copied: the same version, in memory that was not recycled since.
    pub(crate) fn is_copy_of(&self, there: &RowRead<'_>) -> bool {
        let (copied, now) = (&self.head, there.head());
        self.generation == there.generation() && (copied.stamp, copied.table) == (now.stamp, now.table)
    }

    /// Whether the row stands in a transaction's list only.
    pub fn is_uncommitted(&self) -> bool {
        self.head.stamp == 0
    }

    /// The global number of the write that made this version; 0 as long as it is uncommitted.
    pub fn stamp(&self) -> u64 {
        self.head.stamp
    }

    /// The CAS value: the stamp, unless a client set its own.
    pub fn cas(&self) -> u64 {
        self.head.cas()
    }

    /// The row's own deadline in ticks; 0 when only the table's rules end it, `Tick::MAX` when not even these do.
    pub fn expiry(&self) -> Tick {
        self.head.expiry
    }

    /// The 32 bits that a memcached client stored beside the value.
    pub fn client_flags(&self) -> u32 {
        self.head.client_flags
    }

    /// Whether it is stale, and who refreshes it, for a version after it that leaves both as they are.
    pub fn renewal(&self) -> Renewal {
        let same_lease = self.listed.is_none_or(|listed| listed.same_lease);
        Renewal { same_lease, ..Renewal::of(&self.head) }
    }

    /// The deadline of a version after it that leaves it as it is.
    pub fn deadline(&self) -> Expiry {
        self.listed.map_or(Expiry::Kept(self.head.expiry), |listed| listed.deadline)
    }

    /// The encoded primary key.
    pub fn key(&self) -> &[u8] {
        &self.bytes[..self.head.key_len]
    }

    /// The encoded columns outside the key.
    pub fn payload(&self) -> &[u8] {
        &self.bytes[payload_at(self.head.key_len)..]
    }

    pub(crate) fn into_payload(mut self) -> Vec<u8> {
        self.bytes.drain(..payload_at(self.head.key_len));
        self.bytes
    }

    /// Bytes the row takes in the arena.
    pub fn size(&self) -> usize {
        self.head.total_bytes
    }

    /// Bytes of the copy on the heap, for accounting.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity()
    }
}

/// Where the payload begins behind a key.
fn payload_at(key_len: usize) -> usize {
    key_len.next_multiple_of(8)
}
