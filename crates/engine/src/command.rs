//! What the memcached commands mean.

use std::sync::Arc;

use store::{
    Absence, ComingItem, Edit, Edited, Expect, Expiry, InPlace, Item, ItemMeta, ItemSink, Mark, Outcome,
    Store, Touch, WriteError,
};

use sql::Invalidation;

use crate::activity::Happening;
use crate::answer::Answer;
use crate::buses::KeyChange;
use crate::counters::Counter;
use crate::exptime::expiry;
use crate::limits::CONTENDED_ROUNDS;
use crate::number;
use crate::observe::status;
use crate::on_key::answer_of;
use crate::privilege::Command;
use crate::session::Session;
use crate::thread_context::{Route, ThreadContext};
use crate::watch::Seen;

/// Under which condition a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Always.
    Set,
    /// If the key is not there.
    Add,
    /// If the key is there.
    Replace,
    /// Behind the value that is there.
    Append,
    /// Before the value that is there.
    Prepend,
    /// If nobody has changed it since the peer saw this CAS.
    Cas(u64),
}

impl Verb {
    /// What the gate is asked for.
    #[inline]
    fn command(self) -> Command {
        match self {
            Self::Set => Command::Set,
            Self::Add => Command::Add,
            Self::Replace | Self::Append | Self::Prepend | Self::Cas(_) => Command::Replace,
        }
    }
}

/// memcached's words.
const FLUSH_REFUSED: Answer = Answer::NotAllowed("flush_all not allowed");

impl Session {
    /// Gives the value of `key` to `sink`; says whether there is one.
    #[inline]
    pub fn get(
        &self,
        context: &mut ThreadContext,
        key: &[u8],
        sink: &mut impl ItemSink,
    ) -> Result<bool, Answer> {
        self.on_key(context, key, Command::Get, |context| {
            let route = context.route(key);
            let found = match route.key {
                Ok(key) if route.table.may_withhold() && route.answers_missing(key) => Err(Absence::Missing),
                Ok(key) => route.engine.store.find_item(route.table, key, route.now, sink),
                // Text that is no key of the table names no row.
                Err(_) => Err(Absence::Missing),
            };
            let hit = found.is_ok();
            if let Err(why @ (Absence::Ended | Absence::Flushed)) = found {
                route.count(if why == Absence::Ended { Counter::GetExpired } else { Counter::GetFlushed });
            }
            route.count_get(hit);
            if !hit && route.table.reads_through() {
                context.missed = true;
            }
            if context.is_observed() {
                context.observe_fetch(key, hit);
            }
            Ok(hit)
        })
    }

    /// Gives the value of `key` to `sink` and the row a new deadline; says whether there is one.
    pub fn get_and_touch(
        &self,
        context: &mut ThreadContext,
        exptime: i64,
        key: &[u8],
        sink: &mut impl ItemSink,
    ) -> Result<bool, Answer> {
        self.on_key(context, key, Command::GetAndTouch, |context| {
            let route = context.route(key);
            let hit = match &route.key {
                Ok(key) if route.table.may_withhold() && route.answers_missing(key) => false,
                Ok(key) => get_and_touch(&route, key, exptime, sink)?,
                Err(_) => false,
            };
            route.count_get(hit);
            route.count_touch(hit);
            if !hit && route.table.reads_through() {
                context.missed = true;
            }
            if context.is_observed() {
                context.observe_fetch(key, hit);
            }
            Ok(hit)
        })
    }

    /// The storage commands.
    #[inline]
    pub fn store(
        &self,
        context: &mut ThreadContext,
        verb: Verb,
        key: &[u8],
        flags: u32,
        exptime: i64,
        value: &[u8],
    ) -> Answer {
        self.store_by(context, verb, key, exptime, value.len(), |route| match verb {
            Verb::Append | Verb::Prepend => join(route, verb, value),
            _ => put(route, verb, value.len(), |store, key, expect| {
                let expiry = expiry(store, exptime);
                let item = Item { value, client_flags: flags, expiry, cas: None, lease: None, tags: None };
                store.put_item(route.table, key, &item, expect, route.now)
            }),
        })
    }

    /// Reserves room for the value of a storage command where it is going to lie. `None`: it is to be received
    /// elsewhere, and stored with [`Session::store`].
    pub fn reserve(
        &self,
        context: &mut ThreadContext,
        verb: Verb,
        key: &[u8],
        flags: u32,
        exptime: i64,
        value_bytes: usize,
    ) -> Option<InPlace> {
        if matches!(verb, Verb::Append | Verb::Prepend) {
            return None;
        }
        let expiry = expiry(&context.engine.store, exptime);
        let item = ComingItem { value_bytes, client_flags: flags, expiry, cas: None };
        self.reserve_item(context, key, &item, expectation(verb), verb.command())
    }

    /// As [`Session::store`], of a value that has come to where it was reserved for.
    pub fn store_in_place(
        &self,
        context: &mut ThreadContext,
        verb: Verb,
        key: &[u8],
        exptime: i64,
        in_place: InPlace,
    ) -> Answer {
        let bytes = in_place.value_bytes();
        self.store_by(context, verb, key, exptime, bytes, |route| {
            put(route, verb, bytes, |store, key, expect| {
                store.put_in_place(route.table, key, in_place, expiry(store, exptime), expect, route.now)
            })
        })
    }

    pub(crate) fn reserve_item(
        &self,
        context: &mut ThreadContext,
        key: &[u8],
        item: &ComingItem,
        expect: Expect,
        command: Command,
    ) -> Option<InPlace> {
        self.allow_key(context, key, command).ok()?;
        let route = context.way_to(key);
        let key = route.key.as_ref().ok()?;
        if item.value_bytes > route.engine.options.item_size_max {
            return None;
        }
        route.engine.store.reserve_item(route.table, key, item, expect, route.now)
    }

    /// Stores a value of so many bytes in the given way.
    #[inline]
    fn store_by(
        &self,
        context: &mut ThreadContext,
        verb: Verb,
        key: &[u8],
        exptime: i64,
        bytes: usize,
        store: impl FnOnce(&Route<'_>) -> Result<Answer, Answer>,
    ) -> Answer {
        answer_of(self.on_key(context, key, verb.command(), |context| {
            let route = context.route(key);
            let watched = route.begin_write();
            route.count(Counter::CmdSet);
            let answer = match store(&route) {
                Ok(answer) => answer,
                Err(answer) => refuse_store(&route, verb == Verb::Set, answer),
            };
            if watched {
                context.note_written();
            }
            if context.is_observed() {
                let (command, status) = (verb.name(), status(&answer));
                context.observe(key, Seen::Stored { command, status, bytes, exptime });
            }
            Ok(answer)
        }))
    }

    /// Removes what a storage command would have replaced, had it not been malformed: the peer believes that the old
    /// value is gone.
    pub fn invalidate(&self, context: &mut ThreadContext, key: &[u8]) {
        if self.allow_key(context, key, Command::Set).is_ok() {
            let route = context.route(key);
            route.spoil_fetch();
            route.count(Counter::StoreTooLarge);
            remove(&route);
        }
    }

    /// `delete`.
    #[inline]
    pub fn delete(&self, context: &mut ThreadContext, key: &[u8]) -> Answer {
        answer_of(self.on_key(context, key, Command::Delete, |context| {
            let bytes = if context.is_observed() { context.value_bytes(key) } else { None };
            let route = context.route(key);
            route.spoil_fetch();
            let outcome = match route.key {
                Ok(key) => route.engine.store.delete(route.table, key, Expect::Anything, route.now)?,
                Err(_) => Outcome::Missing,
            };
            let receipt = route.tell(KeyChange::Delete);
            let deleted = matches!(outcome, Outcome::Done(_));
            route.count(if deleted { Counter::DeleteHits } else { Counter::DeleteMisses });
            if context.is_observed() {
                let bytes = bytes.filter(|_| deleted);
                context.observe(key, Seen::Deleted { command: "delete", bytes });
            }
            if receipt.is_some() {
                context.receipt = receipt;
            }
            Ok(if deleted { Answer::Deleted } else { Answer::NotFound })
        }))
    }

    /// `incr` and `decr`: `incr` wraps at 2^64, `decr` stops at 0.
    pub fn arithmetic(&self, context: &mut ThreadContext, incr: bool, key: &[u8], delta: u64) -> Answer {
        answer_of(self.on_key(context, key, Command::Arithmetic, |context| {
            let route = context.route(key);
            let answer = match route.key {
                Ok(key) => step(&route, incr, key, delta)?,
                Err(_) => Answer::NotFound,
            };
            match answer {
                Answer::Number(_) => route.count_arithmetic(!incr, true),
                Answer::NotFound => route.count_arithmetic(!incr, false),
                _ => {}
            }
            if route.table.replicates_rows() {
                context.note_written();
            }
            Ok(answer)
        }))
    }

    /// `touch`.
    pub fn touch(&self, context: &mut ThreadContext, key: &[u8], exptime: i64) -> Answer {
        answer_of(self.on_key(context, key, Command::Touch, |context| {
            let route = context.route(key);
            let store = &route.engine.store;
            let outcome = match route.key {
                Ok(key) => store.touch(route.table, key, expiry(store, exptime), route.now),
                Err(_) => Ok(Outcome::Missing),
            };
            let touched = matches!(outcome, Ok(Outcome::Done(_)));
            route.count_touch(touched);
            if route.table.replicates_rows() {
                context.note_written();
            }
            outcome?;
            Ok(if touched { Answer::Touched } else { Answer::NotFound })
        }))
    }

    /// `flush_all`: what memcached can reach and was stored until now, or until a moment to come, is gone.
    pub fn flush_all(&self, context: &mut ThreadContext, delay: Option<i64>) -> Answer {
        if let Err(refusal) = self.allow_flush(context) {
            return refusal;
        }
        context.timed(Command::FlushAll, None, |context| self.flush(context, delay))
    }

    fn flush(&self, context: &mut ThreadContext, delay: Option<i64>) -> Answer {
        context.count(Counter::CmdFlush, 1);
        let engine = Arc::clone(context.engine());
        if !engine.options.flush_enabled {
            return FLUSH_REFUSED;
        }
        let store = &engine.store;
        let began = store.clock().precise_ns();
        engine.note_flush_that_came();
        let catalog = store.catalog();
        for table in catalog.tables().filter(|table| table.def().is_flushed()) {
            engine.sources.spoil_fetches(table, None);
        }
        let rows = engine.rows_reached();
        let at = match expiry(store, delay.unwrap_or(0)) {
            Expiry::At(moment) => Some(moment),
            Expiry::Now | Expiry::Table | Expiry::Never | Expiry::Kept(_) | Expiry::KeptOr(_) => None,
        };
        let flush = Happening {
            who: self.who("memcached"),
            statement: delay.map_or_else(|| "flush_all".into(), |delay| format!("flush_all {delay}").into()),
            parameters: None,
            table: None,
            how: Invalidation::Flushed,
            // One to come does nothing yet.
            rows: if at.is_some() { 0 } else { rows },
            took_ns: None,
        };
        engine.flush_to_come.announce(at.map(|at| (at, flush.clone())), || store.flush_reachable(at));
        let took_ns = Some(store.clock().precise_ns().saturating_sub(began));
        engine.activity.keep(Happening { took_ns, ..flush });
        if at.is_none() {
            context.receipt = engine.tell_flush();
            context.note_written_too();
        }
        Answer::Ok
    }

    /// The version that clients compare: memcached's whose behaviour this is.
    pub fn version(&self) -> &'static str {
        VERSION
    }
}

/// Client libraries decide by this number what they may send, so it names memcached's version that we follow, and
/// nothing else: some read the first three numbers of the line, some the last three, some want one word. Our own is in
/// `stats`.
pub(crate) const VERSION: &str = "1.6.45";

/// Adds to a number, or takes away.
fn step(route: &Route<'_>, incr: bool, key: &[u8], delta: u64) -> Result<Answer, Answer> {
    let mut result = None;
    // A number is changed in place. It stays stale, and a client that refreshes it keeps its lease.
    let how = Edit { mark: Mark::Same, ..Edit::default() };
    let outcome = route.engine.store.edit_item(route.table, key, &how, route.now, &mut |old, new| {
        result = number::step(old, !incr, delta, new);
        if result.is_some() { Edited::New } else { Edited::Refused }
    })?;
    Ok(match (outcome, result) {
        (Outcome::Done(_), Some(number)) => Answer::Number(number),
        (Outcome::Left, _) => Answer::NotANumber,
        _ => Answer::NotFound,
    })
}

/// Gives the value of a row to `sink`, and the row a new deadline, in one step: a version that was replaced in between
/// is read again. Says whether there is a row.
fn get_and_touch(
    route: &Route<'_>,
    key: &[u8],
    exptime: i64,
    sink: &mut impl ItemSink,
) -> Result<bool, Answer> {
    let store = &route.engine.store;
    for _ in 0..CONTENDED_ROUNDS {
        let mut value = Open { stamp: 0, sink: &mut *sink };
        if !store.get_item(route.table, key, route.now, &mut value) {
            return Ok(false);
        }
        let expect = Expect::Stamp(value.stamp);
        let touch = Touch { expect, expiry: expiry(store, exptime), lease: None };
        let touched = store.touch_if(route.table, key, &touch, route.now);
        if let Ok(Outcome::Done(_)) = touched {
            sink.close();
            return Ok(true);
        }
        sink.discard();
        touched?;
    }
    Err(Answer::server_error("the key is changed too often; try again"))
}

/// Passes on a value, and leaves the reply open. It is copied: what is held in its place cannot be taken back.
struct Open<'s, S> {
    /// The version that was passed on.
    stamp: u64,
    sink: &'s mut S,
}

impl<S: ItemSink> ItemSink for Open<'_, S> {
    fn open(&mut self, meta: &ItemMeta) -> &mut Vec<u8> {
        self.stamp = meta.stamp;
        self.sink.open(meta)
    }

    fn close(&mut self) {}

    fn discard(&mut self) {
        self.sink.discard();
    }
}

/// What a storage command expects to find.
#[inline]
fn expectation(verb: Verb) -> Expect {
    match verb {
        Verb::Add => Expect::Absent,
        Verb::Replace => Expect::Present,
        Verb::Cas(cas) => Expect::Version(cas),
        Verb::Set | Verb::Append | Verb::Prepend => Expect::Anything,
    }
}

#[inline]
fn put(
    route: &Route<'_>,
    verb: Verb,
    bytes: usize,
    put: impl FnOnce(&Store, &[u8], Expect) -> Result<Outcome, WriteError>,
) -> Result<Answer, Answer> {
    let key = route.key_to_store()?;
    if bytes > route.engine.options.item_size_max {
        return Err(Answer::TooLarge);
    }
    let outcome = put(&route.engine.store, key, expectation(verb))?;
    Ok(match (verb, outcome) {
        (Verb::Cas(_), outcome) => cas_answer(route, outcome),
        (_, Outcome::Done(_)) => Answer::Stored,
        _ => Answer::NotStored,
    })
}

#[cold]
fn cas_answer(route: &Route<'_>, outcome: Outcome) -> Answer {
    let (counter, answer) = match outcome {
        Outcome::Done(_) => (Counter::CasHits, Answer::Stored),
        Outcome::Missing => (Counter::CasMisses, Answer::NotFound),
        Outcome::Exists | Outcome::Left => (Counter::CasBadval, Answer::Exists),
    };
    route.count(counter);
    answer
}

/// `append` and `prepend`; flags and deadline stay.
fn join(route: &Route<'_>, verb: Verb, value: &[u8]) -> Result<Answer, Answer> {
    let Ok(key) = route.key else { return Ok(Answer::NotStored) };
    let limit = route.engine.options.item_size_max;
    let outcome = route.engine.store.rewrite_item(route.table, key, route.now, &mut |old, new| {
        if old.len().saturating_add(value.len()) > limit {
            return false;
        }
        let (first, second) = if verb == Verb::Append { (old, value) } else { (value, old) };
        new.extend_from_slice(first);
        new.extend_from_slice(second);
        true
    })?;
    match outcome {
        Outcome::Done(_) => Ok(Answer::Stored),
        Outcome::Left => Err(Answer::TooLarge),
        Outcome::Exists | Outcome::Missing => Ok(Answer::NotStored),
    }
}

/// Counts a refused value. A `set` that found no room takes the old value away, which it was to replace.
#[cold]
pub(crate) fn refuse_store(route: &Route<'_>, set: bool, answer: Answer) -> Answer {
    let no_memory = answer == Answer::OutOfMemory;
    let too_large = answer == Answer::TooLarge;
    if too_large {
        route.count(Counter::StoreTooLarge);
    }
    if no_memory {
        route.count(Counter::StoreNoMemory);
    }
    if (too_large || no_memory) && set {
        remove(route);
    }
    answer
}

fn remove(route: &Route<'_>) {
    if let Ok(key) = route.key {
        // A delete takes no memory, so its only failure is a table that is gone, rows and all.
        let _gone = route.engine.store.delete(route.table, key, Expect::Anything, route.now);
    }
}
