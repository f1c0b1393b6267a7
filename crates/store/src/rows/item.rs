//! Rows as memcached items: a value under a key, with flags and a deadline.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use crate::clock::Tick;
use crate::definition::ColumnKind;
use crate::error::WriteError;
use crate::mutation::Mutation;
use crate::row::RowBuf;
use crate::row::layout::default;
use crate::row::new::NewParts;
use crate::row::renewal::Renewal;
use crate::row::request::{Expect, Expiry, Outcome, Touch, check};
use crate::rows::Rows;
use crate::scalar::has_form;
use crate::schema::compute::{Made, Task};
use crate::table::Table;
use crate::value::{Value, ValueRef, text_or_blob};

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
    /// Until when somebody refreshes it: it holds the place of a value that is still to come.
    pub lease: Option<Tick>,
    /// Its tags, with commas between them, for the column that the table's option `tags` names. None, or a table
    /// without that option: the column takes its default.
    pub tags: Option<&'a [u8]>,
}

/// How another version of a row is written; what is none stays as it is.
#[derive(Clone, Copy, Debug)]
pub struct Edit {
    /// What the row must be.
    pub expect: Expect,
    /// The client's 32 bits.
    pub client_flags: Option<u32>,
    /// When it ends.
    pub expiry: Option<Expiry>,
    /// A CAS value of the client's own.
    pub cas: Option<u64>,
    /// What becomes of staleness and lease.
    pub mark: Mark,
}

/// What becomes of a row's staleness and lease when it is edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The new version is fresh.
    Fresh,
    /// It is as the old one.
    Same,
    /// It is stale, and nobody refreshes it yet.
    Stale,
    /// It is stale, and whoever refreshed the old one still does.
    StaleSameLease,
}

/// What an edit came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edited {
    /// The row stays as it is.
    Refused,
    /// A new version with the same value.
    Same,
    /// A new version with the new value.
    New,
}

impl Default for Edit {
    fn default() -> Self {
        Self { expect: Expect::Anything, client_flags: None, expiry: None, cas: None, mark: Mark::Fresh }
    }
}

impl Mark {
    /// Whether the new version holds what is old: then it is as old as the one before, too.
    fn is_of_old(self) -> bool {
        matches!(self, Self::Stale | Self::StaleSameLease)
    }

    fn on(self, row: &RowBuf) -> Renewal {
        let old = Renewal::kept(row.head());
        match self {
            Self::Fresh => Renewal::default(),
            Self::Same => old,
            Self::Stale => Renewal { stale: true, lease: Some(0), same_lease: false },
            Self::StaleSameLease => Renewal { stale: true, ..old },
        }
    }
}

thread_local! {
    /// The row and the values of an edit, kept so that an edit allocates nothing once they have grown.
    static EDIT: RefCell<(RowBuf, Vec<u8>, Vec<u8>)> = RefCell::default();
}

impl Rows {
    /// Stores an item as `REPLACE` would: columns other than the value take their defaults.
    pub fn put_item(
        &self,
        table: &Table,
        key: &[u8],
        item: &Item<'_>,
        expect: Expect,
        now: Tick,
    ) -> Result<Outcome, WriteError> {
        self.by_newest(table, |table| self.put_item_by(table, key, item, expect, now))
    }

    /// Writes by a table's newest definition: one that was changed since the caller looked it up is looked up again.
    pub(crate) fn by_newest<T>(
        &self,
        table: &Table,
        mut write: impl FnMut(&Table) -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        let mut result = write(table);
        while matches!(result, Err(WriteError::TableChanged)) {
            let catalog = self.catalog();
            let newest = catalog.tables().find(|newest| Arc::ptr_eq(&newest.state, &table.state));
            result = write(newest.ok_or(WriteError::TableGone)?);
        }
        result
    }

    fn put_item_by(
        &self,
        table: &Table,
        key: &[u8],
        item: &Item<'_>,
        expect: Expect,
        now: Tick,
    ) -> Result<Outcome, WriteError> {
        let put = |payload: &[&[u8]]| {
            let Item { client_flags, expiry, cas, lease, .. } = *item;
            let renewal = Renewal { lease, ..Renewal::default() };
            self.put(table, &NewParts { key, payload, client_flags, expiry, cas, renewal }, expect, now)
        };
        table.check_defaults()?;
        if let Some(at) = table.identity().filter(|at| table.def().is_key(*at))
            && let ValueRef::Integer(number) = table.key_column(key, at)
        {
            self.note_number(table, number)?;
        }
        let tags = item.tags.filter(|_| table.def().options.tags.is_some());
        match table.layout().item(item.value).filter(|_| tags.is_none() && !table.computes()) {
            Some(payload) => put(&payload.parts()),
            None => put(&[&self.encode_item(table, key, None, item.value, tags)?]),
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
        let edit =
            &mut |old: &[u8], new: &mut Vec<u8>| if edit(old, new) { Edited::New } else { Edited::Refused };
        self.edit_item(table, key, &Edit::default(), now, edit)
    }

    /// Writes another version of a live row that meets the expectation. `edit` gets the old value, appends the new one,
    /// and says what to do; it may be called again when another client was faster.
    pub fn edit_item(
        &self,
        table: &Table,
        key: &[u8],
        how: &Edit,
        now: Tick,
        edit: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> Edited,
    ) -> Result<Outcome, WriteError> {
        self.by_newest(table, |table| self.edit_item_by(table, key, how, now, edit))
    }

    fn edit_item_by(
        &self,
        table: &Table,
        key: &[u8],
        how: &Edit,
        now: Tick,
        edit: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> Edited,
    ) -> Result<Outcome, WriteError> {
        EDIT.with_borrow_mut(|(row, old, new)| {
            for _ in 0..EDIT_ROUNDS {
                if !self.read(table, key, now, row) {
                    return Ok(Outcome::Missing);
                }
                if let Err(outcome) = check(how.expect, Some(row.head())) {
                    return Ok(outcome);
                }
                old.clear();
                new.clear();
                table.write_item_value(row, old);
                let payload = match edit(old, new) {
                    Edited::Refused => return Ok(Outcome::Left),
                    Edited::New => Cow::Owned(self.encode_item(table, key, Some(row), new, None)?),
                    Edited::Same => Cow::Borrowed(row.payload()),
                };
                let kept = || match row.expiry() {
                    0 if how.mark.is_of_old() => self.kept_or_own(table, row.stamp()),
                    word => Expiry::Kept(word),
                };
                let parts = NewParts {
                    key,
                    payload: &[&payload],
                    client_flags: how.client_flags.unwrap_or_else(|| row.client_flags()),
                    expiry: how.expiry.unwrap_or_else(kept),
                    cas: how.cas,
                    renewal: how.mark.on(row),
                };
                match self.put(table, &parts, Expect::Stamp(row.stamp()), now)? {
                    Outcome::Exists | Outcome::Missing => {}
                    done => return Ok(done),
                }
            }
            Err(WriteError::Lost(vec![0]))
        })
    }

    /// Gives a live row another deadline.
    pub fn touch(&self, table: &Table, key: &[u8], expiry: Expiry, now: Tick) -> Result<Outcome, WriteError> {
        self.touch_if(table, key, &Touch { expect: Expect::Anything, expiry, lease: None }, now)
    }

    /// The same for a row that must be what the caller saw of it, and may claim it in the same step.
    pub fn touch_if(
        &self,
        table: &Table,
        key: &[u8],
        touch: &Touch,
        now: Tick,
    ) -> Result<Outcome, WriteError> {
        if touch.expiry.has_come(now) {
            return self.delete(table, key, touch.expect, now);
        }
        self.by_newest(table, |table| self.touch_by(table, key, touch, now))
    }

    fn touch_by(&self, table: &Table, key: &[u8], touch: &Touch, now: Tick) -> Result<Outcome, WriteError> {
        let Touch { expect, expiry, lease } = *touch;
        let mut row = RowBuf::new();
        for _ in 0..EDIT_ROUNDS {
            if !self.read(table, key, now, &mut row) {
                return Ok(Outcome::Missing);
            }
            if let Err(outcome) = check(expect, Some(row.head())) {
                return Ok(outcome);
            }
            if let Some(outcome) = self.touch_in_place(table, &row, touch, now) {
                return Ok(outcome);
            }
            let kept = Renewal::kept(row.head());
            let completed = self.completed_payload(table, &row)?;
            let parts = NewParts {
                key,
                payload: &[completed.as_deref().unwrap_or_else(|| row.payload())],
                client_flags: row.client_flags(),
                expiry,
                // The value is the same, so a client that read it before may still write it with `cas`.
                cas: Some(row.cas()),
                renewal: lease.map_or(kept, |_| Renewal { lease, same_lease: false, ..kept }),
            };
            let same = match expect {
                Expect::Unclaimed { .. } => expect,
                _ => Expect::Stamp(row.stamp()),
            };
            match self.put(table, &parts, same, now)? {
                Outcome::Exists | Outcome::Missing => {}
                done => {
                    // The same value in another place: that it was used is still so.
                    let _used = self.look(table, key, now, true);
                    return Ok(done);
                }
            }
        }
        Err(WriteError::Lost(vec![0]))
    }

    /// The payload of a row with this value and these tags; the other columns as in `row`, or their defaults, and what
    /// is computed of them.
    fn encode_item(
        &self,
        table: &Table,
        key: &[u8],
        row: Option<&RowBuf>,
        value: &[u8],
        tags: Option<&[u8]>,
    ) -> Result<Vec<u8>, WriteError> {
        let def = table.def();
        let tags = tags.map(tags_column).transpose()?;
        let Some(column) = def.options.value else {
            return Err(WriteError::Type(format!("table \"{}\" has no value column", table.name())));
        };
        let converted;
        let value = match def.columns[column].kind {
            ColumnKind::Text | ColumnKind::Any if !has_form(table.column_type(column)) => text_or_blob(value),
            ColumnKind::Blob => ValueRef::Blob(value),
            _ => {
                converted = table.item_value(column, value)?;
                converted.as_ref()
            }
        };
        let own = |at: usize| match row {
            _ if at == column => value,
            _ if tags.is_some() && def.options.tags == Some(at) => {
                tags.as_deref().map_or(ValueRef::Null, ValueRef::Text)
            }
            Some(row) => table.column(row, at),
            None if def.is_key(at) => table.key_column(key, at),
            None => default(def, at),
        };
        let mut values: Vec<ValueRef<'_>> = (0..def.columns.len()).map(own).collect();
        let mut made = Made::new();
        if let Some(at) = table.identity().filter(|at| row.is_none() && !def.is_key(*at)) {
            made.push((at, Value::Integer(self.next_number(table)?)));
        }
        if table.computes() {
            let defaults = if row.is_none() { table.computed_defaults() } else { &[] };
            self.complete(&Task { table, values: &values, defaults, checks: true }, &mut made)?;
        }
        for (column, value) in &made {
            values[*column] = value.as_ref();
        }
        let mut payload = Vec::new();
        table.layout().encode_payload(&values, &mut payload)?;
        Ok(payload)
    }

    /// The payload of a row that was written before a computed column was added; `None` where it has all of them.
    pub(crate) fn completed_payload(
        &self,
        table: &Table,
        row: &RowBuf,
    ) -> Result<Option<Vec<u8>>, WriteError> {
        if table.has_computed(row) {
            return Ok(None);
        }
        let mut values: Vec<ValueRef<'_>> =
            (0..table.def().columns.len()).map(|at| table.column(row, at)).collect();
        let mut made = Made::new();
        self.complete(&Task { table, values: &values, defaults: &[], checks: false }, &mut made)?;
        for (column, value) in &made {
            values[*column] = value.as_ref();
        }
        let mut payload = Vec::new();
        table.layout().encode_payload(&values, &mut payload)?;
        Ok(Some(payload))
    }

    /// Rewrites the one mutable word of a row, when it has one and stays in its time-to-live class. None: it must be
    /// written again.
    pub(crate) fn touch_in_place(
        &self,
        table: &Table,
        row: &RowBuf,
        touch: &Touch,
        now: Tick,
    ) -> Option<Outcome> {
        let word = touch.expiry.word();
        // Another deadline is told as another version is.
        if row.head().expiry == 0 || word == 0 || table.replicates_rows() {
            return None;
        }
        let hash = self.arena.of(table.id()).hash(table.id(), row.key());
        let mut shard = self.shard(hash).lock();
        let _mutation = Mutation;
        self.settle_mark(&mut shard, table, hash, row.key());
        self.find_copied(&shard, hash, row)?;
        // The lease may have been taken since the row was copied.
        let head = *self.arena.of(row.location()).row(row.location())?.head();
        check(touch.expect, Some(&head)).ok()?;
        let segment = self.arena.of(row.location()).head_of(row.location());
        if self.arena.of(segment).tag(segment).ttl_class != crate::table::queue::ttl_class(word, now) {
            return None;
        }
        self.note_deadline(segment, word);
        table.state.row_count.note_deadline(word);
        self.arena.of(row.location()).set_times(row.location(), word, touch.lease.unwrap_or(head.lease));
        Some(Outcome::Done(row.stamp()))
    }
}

/// A client's list of tags as an array of texts.
fn tags_column(list: &[u8]) -> Result<String, WriteError> {
    let list = std::str::from_utf8(list).map_err(|_| WriteError::Type("tags are not UTF-8".to_owned()))?;
    let tags = list.split(',').filter(|tag| !tag.is_empty());
    Ok(tags.collect::<serde_json::Value>().to_string())
}

impl Table {
    /// The value column as a memcached client reads it.
    pub(crate) fn write_item_value(&self, row: &RowBuf, out: &mut Vec<u8>) {
        self.layout().write_item_value(self.def(), row, out);
    }

    /// A client's bytes as a value of the column: text where they are UTF-8, a number where the column holds numbers.
    fn item_value(&self, column: usize, bytes: &[u8]) -> Result<Value, WriteError> {
        let value = match std::str::from_utf8(bytes) {
            Ok(text) if self.def().columns[column].kind != ColumnKind::Blob => Value::Text(text.to_owned()),
            _ => Value::Blob(bytes.to_vec()),
        };
        self.accept(column, value).map_err(|mismatch| WriteError::Type(mismatch.to_string()))
    }

    /// A row that a memcached client sets has its other columns from their defaults, so these must not be missing.
    fn check_defaults(&self) -> Result<(), WriteError> {
        match self.missing_default() {
            Some(column) => Err(WriteError::NotNull(column.to_owned())),
            None => Ok(()),
        }
    }
}
