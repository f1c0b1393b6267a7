//! Rows as memcached items: a value under a key, with flags and a deadline.

use std::cell::RefCell;

use crate::clock::Tick;
use crate::definition::ColumnKind;
use crate::error::WriteError;
use crate::layout::default;
use crate::row::RowBuf;
use crate::store::Store;
use crate::table::Table;
use crate::value::{Value, ValueRef};
use crate::write::{Expect, Expiry, NewParts, Outcome};

/// Rounds of reading, editing and publishing before a contended edit is refused; each lost round means that another
/// client's write of the same row went through.
const EDIT_ROUNDS: usize = 10_000;

/// An item that a memcached client stores.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// The value's bytes.
    pub value: &'a [u8],
    /// The client's 32 bits.
    pub client_flags: u32,
    /// When it ends.
    pub expiry: Expiry,
    /// A CAS value of the client's own.
    pub cas: Option<u64>,
}

thread_local! {
    /// The row and the values of an edit, kept so that an edit allocates nothing once they have grown.
    static EDIT: RefCell<(RowBuf, Vec<u8>, Vec<u8>)> = RefCell::default();
}

impl Store {
    /// Stores an item as `REPLACE` would: columns other than the value take their defaults.
    pub fn put_item(
        &self,
        table: &Table,
        key: &[u8],
        item: &Item<'_>,
        expect: Expect,
        now: Tick,
    ) -> Result<Outcome, WriteError> {
        let put = |payload: &[&[u8]]| {
            let Item { client_flags, expiry, cas, .. } = *item;
            self.put(table, &NewParts { key, payload, client_flags, expiry, cas }, expect, now)
        };
        table.check_defaults()?;
        match table.layout().item(item.value) {
            Some(payload) => put(&payload.parts()),
            None => put(&[&table.encode_item(None, item.value)?]),
        }
    }

    /// Edits the value of a live row and keeps its other columns, flags and deadline. `edit` gets the old value and
    /// appends the new one; when it returns false, the row stays as it is. It may be called again when another client
    /// was faster.
    pub fn rewrite_item(
        &self,
        table: &Table,
        key: &[u8],
        now: Tick,
        edit: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> bool,
    ) -> Result<Outcome, WriteError> {
        EDIT.with_borrow_mut(|(row, old, new)| {
            for _ in 0..EDIT_ROUNDS {
                if !self.read(table, key, now, row) {
                    return Ok(Outcome::Missing);
                }
                old.clear();
                new.clear();
                table.write_item_value(row, old);
                if !edit(old, new) {
                    return Ok(Outcome::Left);
                }
                let payload = table.encode_item(Some(row), new)?;
                let parts = NewParts {
                    key,
                    payload: &[&payload],
                    client_flags: row.client_flags(),
                    expiry: Expiry::of_word(row.head().expiry),
                    cas: None,
                };
                match self.put(table, &parts, Expect::Version(row.cas()), now)? {
                    Outcome::Exists | Outcome::Missing => {}
                    done => return Ok(done),
                }
            }
            Err(WriteError::Lost(vec![0]))
        })
    }

    /// Gives a live row another deadline.
    pub fn touch(&self, table: &Table, key: &[u8], expiry: Expiry, now: Tick) -> Result<Outcome, WriteError> {
        if expiry.has_come(now) {
            return self.delete(table, key, Expect::Anything, now);
        }
        let mut row = RowBuf::new();
        for _ in 0..EDIT_ROUNDS {
            if !self.read(table, key, now, &mut row) {
                return Ok(Outcome::Missing);
            }
            if let Some(outcome) = self.touch_in_place(table, &row, expiry, now) {
                return Ok(outcome);
            }
            let parts = NewParts {
                key,
                payload: &[row.payload()],
                client_flags: row.client_flags(),
                expiry,
                // The value is the same, so a client that read it before may still write it with `cas`.
                cas: Some(row.cas()),
            };
            match self.put(table, &parts, Expect::Version(row.cas()), now)? {
                Outcome::Exists | Outcome::Missing => {}
                done => return Ok(done),
            }
        }
        Err(WriteError::Lost(vec![0]))
    }

    /// Rewrites the one mutable word of a row, when it has one and stays in its time-to-live class. None: it must be
    /// written anew.
    fn touch_in_place(&self, table: &Table, row: &RowBuf, expiry: Expiry, now: Tick) -> Option<Outcome> {
        let word = expiry.word();
        if row.head().expiry == 0 || word == 0 {
            return None;
        }
        let hash = self.arena.hash(table.id(), row.key());
        let mut shard = self.shard(hash).lock();
        self.settle_mark(&mut shard, table, hash, row.key());
        self.arena.find_location(&shard.token, hash, row.location())?;
        // The same place may hold another version by now, and the segment be of another class.
        self.arena.row(row.location()).filter(|now| now.head().stamp == row.stamp())?;
        let segment = self.arena.head_of(row.location());
        if self.arena.tag(segment).ttl_class != crate::queue::ttl_class(word, now) {
            return None;
        }
        self.note_deadline(segment, word);
        self.arena.set_expiry(row.location(), word);
        Some(Outcome::Done(row.stamp()))
    }
}

impl Table {
    /// The value column as a memcached client reads it.
    pub(crate) fn write_item_value(&self, row: &RowBuf, out: &mut Vec<u8>) {
        if let Some(column) = self.def().options.value {
            match self.column(row, column) {
                ValueRef::Null => {}
                ValueRef::Blob(bytes) => out.extend_from_slice(bytes),
                value => value.write_text(out),
            }
        }
    }

    /// The payload of a row with this value; the other columns as in `row`, or their defaults.
    fn encode_item(&self, row: Option<&RowBuf>, value: &[u8]) -> Result<Vec<u8>, WriteError> {
        let Some(column) = self.def().options.value else {
            return Err(WriteError::Type(format!("table \"{}\" has no value column", self.name())));
        };
        if row.is_none()
            && let Some(payload) = self.layout().item(value)
        {
            return Ok(payload.parts().concat());
        }
        let value = self.item_value(column, value)?;
        let columns = self.def().payload_columns();
        let values = columns.into_iter().map(|own| match row {
            _ if own == column => value.as_ref(),
            Some(row) => self.column(row, own),
            None => default(self.def(), own),
        });
        let values: Vec<ValueRef<'_>> = values.collect();
        let mut payload = Vec::new();
        let encoded = self.layout().shape().encode(&values, &mut payload);
        encoded.map_err(|error| WriteError::TooLarge { bytes: error.bytes, limit: u32::MAX as usize })?;
        Ok(payload)
    }

    /// A client's bytes as a value of the column: text where they are UTF-8, a number where the column holds numbers.
    fn item_value(&self, column: usize, bytes: &[u8]) -> Result<Value, WriteError> {
        let value = match std::str::from_utf8(bytes) {
            Ok(text) if self.def().columns[column].kind != ColumnKind::Blob => Value::Text(text.to_owned()),
            _ => Value::Blob(bytes.to_vec()),
        };
        self.def().accept(column, value).map_err(|mismatch| WriteError::Type(mismatch.to_string()))
    }

    /// A row that a memcached client sets has its other columns from their defaults, so these must not be missing.
    fn check_defaults(&self) -> Result<(), WriteError> {
        match self.missing_default() {
            Some(column) => Err(WriteError::NotNull(column.to_owned())),
            None => Ok(()),
        }
    }
}
