//! A table by name: where it is read, by the definition in force.

use std::cell::RefCell;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use store::{Found, Freshness, Reader, Seen, SharedTable, Ticket};

use crate::error::Error;
use crate::limits::AHEAD;
use crate::remote::Remote;
use crate::{Lookup, Meta, Renewal};

/// A table of the daemon's. Kept by who reads it often: a read then begins without looking for its name.
#[derive(Debug)]
pub struct Table {
    name: String,
    pub(crate) shared: ArcSwapOption<Shared>,
    /// How the daemon is asked for it.
    pub(crate) remote: ArcSwapOption<Remote>,
}

/// A table in shared memory.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) reader: Arc<Reader>,
    pub(crate) table: Arc<SharedTable>,
}

thread_local! {
    /// The encoded key of a table whose keys are not plain text.
    static KEY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Table {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), shared: ArcSwapOption::empty(), remote: ArcSwapOption::empty() }
    }

    /// Its name, as it was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is read in shared memory at this moment.
    pub fn is_shared(&self) -> bool {
        self.shared.load().is_some()
    }
}

impl Shared {
    /// Whether it still says what holds: the file is in use, and the definition in force.
    #[inline]
    pub(crate) fn moment(&self) -> Option<store::Tick> {
        self.reader.begin().filter(|_| self.reader.is_current(&self.table))
    }

    /// Appends the value under a key, which is written as memcached's clients write it, without the prefix.
    #[inline]
    pub(crate) fn value(&self, key: &[u8], now: store::Tick, out: &mut Vec<u8>) -> Result<Found, Error> {
        // Text that is no key may be a row of the table for all other keys, which is the daemon's to look for.
        let absent = if self.table.def().options.loose_keys { Found::Unanswered } else { Found::Miss };
        self.with_key(key, absent, |key| self.known(self.reader.value(&self.table, key, now, out)))
    }

    /// What is known of a row: one that is missing in a table that reads through is the daemon's to fetch.
    #[inline]
    fn known(&self, found: Found) -> Found {
        if found == Found::Miss && self.reads_through() { Found::Unanswered } else { found }
    }

    /// Whether missing rows are fetched from a database.
    pub(crate) fn reads_through(&self) -> bool {
        self.table.def().options.query.is_some()
    }

    /// To be taken before a row that may be waited for is read.
    pub(crate) fn ticket(&self, key: &[u8]) -> Result<Option<Ticket>, Error> {
        let mut ticket = None;
        self.with_key(key, Found::Miss, |key| {
            ticket = Some(self.reader.ticket(&self.table, key));
            Found::Miss
        })?;
        Ok(ticket)
    }

    /// As [`Shared::value`] for some keys: their buckets are asked of memory, then their rows, then they are read.
    /// Where each value ends in `out` is told with what was found; nothing of what is unanswered stays there. False:
    /// the keys of this table are to be read one by one.
    pub(crate) fn values(
        &self,
        keys: &[&[u8]],
        now: store::Tick,
        out: &mut Vec<u8>,
        found: &mut [(Found, usize); AHEAD],
    ) -> bool {
        if !self.table.keys().is_raw() || keys.len() > AHEAD {
            return false;
        }
        let Some(first) = keys.first() else { return true };
        let mut ahead = [self.reader.prefetch(&self.table, first); AHEAD];
        for (ahead, key) in ahead.iter_mut().zip(keys).skip(1) {
            *ahead = self.reader.prefetch(&self.table, key);
        }
        for ahead in &ahead[..keys.len()] {
            self.reader.prefetch_row(&self.table, *ahead);
        }
        for ((place, ahead), key) in found.iter_mut().zip(ahead).zip(keys) {
            let begin = out.len();
            let seen = self.known(self.reader.value_ahead(&self.table, ahead, key, now, out));
            if !matches!(seen, Found::Hit(_)) {
                out.truncate(begin);
            }
            *place = (seen, out.len());
        }
        true
    }

    /// Runs a read with the encoded key. `absent`: what is found under a text that is no key of the table.
    #[inline]
    pub(crate) fn with_key(
        &self,
        key: &[u8],
        absent: Found,
        read: impl FnOnce(&[u8]) -> Found,
    ) -> Result<Found, Error> {
        if self.table.keys().is_raw() {
            return Ok(read(key));
        }
        KEY.with_borrow_mut(|encoded| {
            encoded.clear();
            match self.table.key_from_text(key, encoded) {
                Ok(()) => Ok(read(encoded)),
                Err(store::codec::KeyError::Unreachable) => {
                    Err(Error::Unreachable(self.table.def().name.clone()))
                }
                Err(_) => Ok(absent),
            }
        })
    }
}

/// The state of a row that was seen, with what goes with its value.
pub(crate) fn state_of(seen: &Seen) -> Lookup<Meta> {
    let renewal = if seen.lease == 0 { Renewal::Nobody } else { Renewal::Another };
    let meta = Meta { flags: seen.client_flags, cas: seen.cas, renewal };
    match seen.freshness {
        Freshness::Fresh => Lookup::Hit(meta),
        Freshness::Due => Lookup::Due(meta),
        Freshness::Stale => Lookup::Stale(meta),
    }
}
