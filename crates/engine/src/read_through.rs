//! What a memcached client misses in a table with `query`, and then gets of its source.

use std::sync::Arc;

use store::{Freshness, ItemMeta, ItemSink, Table};

use crate::activity::Counted;
use crate::answer::Answer;
use crate::engine::Engine;
use crate::fetches::{Fetched, FetchedRow, Waiter, Wake};
use crate::privilege::Command;
use crate::session::Session;
use crate::thread_context::{Route, ThreadContext};

/// What a key that was asked for at the source came to.
#[derive(Clone, Debug)]
pub enum Arrival {
    /// It was stored, and is looked up as any other.
    Look,
    /// Nothing is known. Where the source says nothing, a row that is stale is better than none.
    Failed,
    /// There is no such row.
    Absent,
    /// This value, which is not stored.
    Value(Arc<FetchedRow>),
}

impl ThreadContext {
    /// Whether the last lookup missed a row that its source may have. Says so once.
    #[inline]
    pub fn take_missed(&mut self) -> bool {
        std::mem::take(&mut self.missed)
    }
}

impl Session {
    /// Asks the source for keys that are missing: the first, and those of the others that are in tables of the same
    /// source. `wake` is called when all have arrived, unless [`Waiter::is_over`] says that they have. None: the
    /// table's source does not run.
    #[cold]
    pub fn fetch<'k>(
        &self,
        context: &mut ThreadContext,
        keys: impl IntoIterator<Item = &'k [u8]>,
        wake: Wake,
    ) -> Option<Arc<Waiter>> {
        let now_ns = context.engine.store.clock().now_ns();
        let mut wanted: Vec<(Arc<Table>, Vec<u8>)> = Vec::new();
        for key in keys {
            if self.allow_key(context, key, Command::Get).is_err() {
                continue;
            }
            let route = context.way_to(key);
            let Ok(key) = route.key else { continue };
            let of_one = wanted.first().is_none_or(|(table, _)| table.number() == route.table.number());
            // Who may not read it gets no row of the source's either.
            if of_one && route.table.reads_through() && !route.table.fails() && route.is_to_be_fetched(key) {
                wanted.push((Arc::clone(route.table), key.to_vec()));
            }
        }
        let (table, _) = wanted.first()?;
        let source = context.engine.sources.of(table)?;
        let keys = wanted.iter().map(|(_, key)| &key[..]);
        Some(source.fetches.ask(table, keys, wake, now_ns))
    }

    /// What became of a key that was asked for; none: it was not.
    #[cold]
    pub fn arrival(&self, context: &mut ThreadContext, key: &[u8], waiter: &Waiter) -> Option<Arrival> {
        let route = context.way_to(key);
        Some(match waiter.fetched(route.table.number(), route.key.ok()?)? {
            Fetched::Look => Arrival::Look,
            Fetched::Failed => Arrival::Failed,
            Fetched::Absent => Arrival::Absent,
            Fetched::Row(row) => Arrival::Value(row),
        })
    }

    /// Gives what arrived of a key to `sink`; says whether there is a value. It was counted when it was missed.
    #[cold]
    pub fn get_arrived(
        &self,
        context: &mut ThreadContext,
        key: &[u8],
        arrival: &Arrival,
        sink: &mut impl ItemSink,
    ) -> Result<bool, Answer> {
        self.allow_key(context, key, Command::Get)?;
        let route = context.way_to(key);
        Ok(match arrival {
            Arrival::Absent => false,
            Arrival::Look | Arrival::Failed => match route.key {
                Ok(key) => route.engine.store.get_item(route.table, key, route.now, sink),
                Err(_) => false,
            },
            Arrival::Value(row) => match &row.value {
                None => false,
                Some(value) => {
                    sink.open(&ItemMeta::of_value(value.len())).extend_from_slice(value);
                    sink.close();
                    true
                }
            },
        })
    }
}

impl Engine {
    /// A statement is about to write to tables that read through: what is being read of their sources is older.
    #[cold]
    pub(crate) fn spoil_fetches_of(&self, counted: &Counted) {
        let catalog = self.store.catalog();
        for table in catalog.tables().filter(|table| table.reads_through() && counted.names(table)) {
            self.sources.spoil_fetches(table, None);
        }
    }
}

impl Route<'_> {
    /// The key is about to be written or deleted: what is being read of the source is older.
    #[inline]
    pub(crate) fn spoil_fetch(&self) {
        let _watched = self.begin_write();
    }

    /// The same of a command that may write. Says whether anybody is to know when it has:
    /// [`ThreadContext::note_written`].
    #[inline]
    pub(crate) fn begin_write(&self) -> bool {
        let watched = self.table.watches_writes();
        if watched {
            self.spoil();
        }
        watched
    }

    #[cold]
    fn spoil(&self) {
        if let Ok(key) = self.key
            && self.table.reads_through()
        {
            self.engine.sources.spoil_fetches(self.table, Some(key));
        }
    }

    /// Whether a row is missing, or is there and this client's to refresh.
    fn is_to_be_fetched(&self, key: &[u8]) -> bool {
        let store = &self.engine.store;
        let Some((meta, _)) = store.look(self.table, key, self.now, false) else { return true };
        self.table.renews() && store.freshness(self.table, &meta, self.now) != Freshness::Fresh
    }
}
