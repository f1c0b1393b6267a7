//! What operators ask for beside statistics: keys, events, limits, the end.

use std::sync::Arc;

use store::Dump;

use crate::answer::Answer;
use crate::privilege::Command;
use crate::session::Session;
use crate::thread_context::{Route, ThreadContext};
use crate::watch::{Watch, Watched, WatcherEnd, Watching};

/// A walk through all keys that memcached can reach, in steps.
#[derive(Debug)]
pub struct KeyDump(Dump);

/// A key in a list, and what is known of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedKey<'a> {
    /// The whole key.
    pub key: &'a [u8],
    /// Unix second of its end, none without one.
    pub expires_at: Option<u64>,
    /// Unix second of its last use.
    pub used_at: u64,
    /// Its CAS.
    pub cas: u64,
    /// It was fetched.
    pub fetched: bool,
    /// Bytes that the row takes.
    pub size: usize,
    /// Bytes of its value.
    pub value_bytes: usize,
}

impl KeyDump {
    /// Gives the keys of the next few buckets. False: those were the last.
    pub fn step(&mut self, context: &ThreadContext, give: &mut dyn FnMut(&ListedKey<'_>)) -> bool {
        let engine = &context.engine;
        let now_seconds = engine.store.clock().unix_seconds();
        engine.store.dump_step(&mut self.0, context.now(), &mut |found| {
            let route = Route::of_row(context, found.table);
            let left = engine.store.remaining(found.table, &found.meta, route.now);
            let item = route.describe(&found.meta, found.hits);
            give(&ListedKey {
                key: found.key,
                expires_at: left.map(|left| engine.unix_second_in(left)),
                used_at: now_seconds.saturating_sub(item.unused_seconds),
                cas: item.cas,
                fetched: item.fetched,
                size: found.meta.size,
                value_bytes: found.meta.len,
            });
        })
    }
}

impl Session {
    /// Begins a walk through all keys; none where that is switched off.
    pub fn dump_keys(&self, context: &ThreadContext) -> Result<Option<KeyDump>, Answer> {
        self.allow(Command::DumpKeys)?;
        let engine = &context.engine;
        Ok(engine.options.dump_enabled.then(|| KeyDump(engine.store.begin_dump())))
    }

    /// Begins to watch; none where that is switched off.
    pub fn watch(
        &self,
        context: &ThreadContext,
        wish: Watch,
        end: WatcherEnd,
    ) -> Result<Option<Watching>, Answer> {
        self.allow(Command::Watch)?;
        let engine = &context.engine;
        if !engine.options.watch_enabled {
            return Ok(None);
        }
        let watching = engine.watchers.add(wish, end);
        engine.store.watch_evictions(engine.watchers.wanted().has(Watched::EVICTIONS));
        Ok(Some(watching))
    }

    /// `cache_memlimit`: another memory limit. False: it cannot be so high.
    pub fn set_memory_limit(&self, context: &ThreadContext, mebibytes: u64) -> Result<bool, Answer> {
        self.allow(Command::Configure)?;
        let bytes = mebibytes.checked_mul(1 << 20);
        Ok(bytes.is_some_and(|bytes| context.engine.store.set_memory_bytes(bytes)))
    }

    /// `verbosity`: logs more or less from now on.
    pub fn set_verbosity(&self, context: &ThreadContext, level: u32) -> Result<(), Answer> {
        self.allow(Command::Configure)?;
        context.engine.change_verbosity(u64::from(level));
        Ok(())
    }

    /// `refresh_certs`: certificates are read again, a moment later.
    pub fn refresh_certificates(&self, context: &ThreadContext) -> Result<(), Answer> {
        self.allow(Command::Configure)?;
        context.engine.refresh_certificates();
        Ok(())
    }

    /// `shutdown`: whether the server is to stop. False where clients may not stop it.
    pub fn may_shut_down(&self, context: &ThreadContext) -> Result<bool, Answer> {
        self.allow(Command::Shutdown)?;
        Ok(context.engine.options.shutdown_enabled)
    }

    /// `lru_crawler crawl`: what has expired gives its memory back with the next tick, without a look whether that is
    /// due.
    pub fn crawl(&self, context: &ThreadContext) -> Result<(), Answer> {
        self.allow(Command::Configure)?;
        context.engine.store.look_for_expired();
        Ok(())
    }

    /// `debugtime`: stops the clock, lets it go on (`None`: neither), or moves it forward. The answer says so where it
    /// cannot: time does not go back here, for the kernel's count that deadlines are kept by never does.
    #[cfg(debug_assertions)]
    pub fn move_clock(
        &self,
        context: &ThreadContext,
        runs: Option<bool>,
        seconds: i64,
    ) -> Result<(), Answer> {
        self.allow(Command::Configure)?;
        let store::Clock::Debug(clock) = context.engine.store.clock() else {
            return Err(Answer::server_error("this server's clock cannot be moved"));
        };
        let Ok(seconds) = u64::try_from(seconds) else {
            return Err(Answer::client_error("debugtime takes p, r, or seconds to move forward"));
        };
        match runs {
            Some(true) => clock.go_on(),
            Some(false) => clock.stop(),
            None => clock.advance(std::time::Duration::from_secs(seconds)),
        }
        Ok(())
    }

    /// `stats detail on` and `off`.
    pub fn count_prefixes(&self, context: &ThreadContext, on: bool) -> Result<(), Answer> {
        self.allow(Command::Configure)?;
        context.engine.watchers.set(Watched::PREFIXES, on);
        Ok(())
    }

    /// `stats detail dump`: each prefix with how often it was fetched, found, stored and removed.
    pub fn dump_prefixes(
        &self,
        context: &ThreadContext,
        give: &mut dyn FnMut(&[u8], [u64; 4]),
    ) -> Result<(), Answer> {
        self.allow(Command::Stats)?;
        context.engine.prefixes.dump(give);
        Ok(())
    }
}

impl<'k> Route<'k> {
    /// The way to a row that was found.
    fn of_row(context: &'k ThreadContext, table: &'k Arc<store::Table>) -> Self {
        Self {
            engine: &context.engine,
            counters: context.counters(),
            table,
            key: Ok(&[]),
            now: context.now(),
        }
    }
}
