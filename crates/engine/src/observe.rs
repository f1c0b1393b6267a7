//! What commands report to those who watch, and those who count by prefix. Only called while there is somebody.

use crate::answer::Answer;
use crate::command::Verb;
use crate::engine::Engine;
use crate::thread_context::ThreadContext;
use crate::watch::{Happening, Seen, Watched};

impl ThreadContext {
    /// Whether anybody wants to hear of commands. As of the beginning of the batch.
    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        !self.watched.is_nothing()
    }

    /// The connection whose commands follow, by its descriptor.
    #[inline]
    pub fn serves(&mut self, connection: i32) {
        self.connection = connection;
    }

    /// Reports a command on a key.
    #[cold]
    pub(crate) fn observe(&self, key: &[u8], seen: Seen<'_>) {
        let engine = &self.engine;
        if self.watched.has(Watched::PREFIXES) {
            engine.prefixes.count(key, &seen);
        }
        let what = match seen {
            Seen::Fetched(_) => Watched::FETCHERS,
            Seen::Stored { .. } => Watched::MUTATIONS,
            // memcached reports removed keys, not missing ones.
            Seen::Deleted { bytes: None, .. } => return,
            Seen::Deleted { .. } => Watched::DELETIONS,
        };
        if self.watched.has(what) {
            let what_happened = Happening::Command { key, connection: self.connection, seen };
            engine.watchers.notify(what, engine.store.clock(), what_happened);
        }
    }

    /// Looks how long a value is, for [`ThreadContext::observe`]; the look counts as no use.
    #[cold]
    pub(crate) fn observe_fetch(&mut self, key: &[u8], hit: bool) {
        let bytes = hit.then(|| self.value_bytes(key).unwrap_or(0));
        self.observe(key, Seen::Fetched(bytes));
    }

    /// How long a value is, if it is there.
    #[cold]
    pub(crate) fn value_bytes(&mut self, key: &[u8]) -> Option<usize> {
        let route = self.way_to(key);
        let looked = route.engine.store.look(route.table, route.key.ok()?, route.now, false);
        looked.map(|(meta, _)| meta.len)
    }
}

impl Verb {
    /// The command's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Add => "add",
            Self::Replace => "replace",
            Self::Append => "append",
            Self::Prepend => "prepend",
            Self::Cas(_) => "cas",
        }
    }
}

/// How `item_store` reports an outcome.
pub(crate) fn status(answer: &Answer) -> &'static str {
    match answer {
        Answer::Stored => "stored",
        Answer::Exists => "exists",
        Answer::NotFound => "not_found",
        Answer::TooLarge => "too_large",
        Answer::OutOfMemory => "no_memory",
        _ => "not_stored",
    }
}

impl Engine {
    /// Tells watchers which rows made room for others since the last tick.
    pub(crate) fn notify_evictions(&self) {
        for eviction in self.store.take_evictions() {
            self.watchers.notify(Watched::EVICTIONS, self.store.clock(), Happening::Evicted(&eviction));
        }
        // Again each tick, so that a client that begins or ends to watch is noticed with the next tick at the latest.
        self.store.watch_evictions(self.watchers.wanted().has(Watched::EVICTIONS));
    }

    /// Whether anybody watches connections.
    pub fn watches_connections(&self) -> bool {
        self.watchers.wanted().has(Watched::CONNECTIONS)
    }

    /// Tells watchers of a connection that came or went.
    pub fn notify_connection(&self, what: Happening<'_>) {
        self.watchers.notify(Watched::CONNECTIONS, self.store.clock(), what);
    }
}
