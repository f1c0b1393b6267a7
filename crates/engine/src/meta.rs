//! What the meta commands mean.
//!
//! `mg` is `get` with duties: of many who find a value missing, stale or near its end, one is asked to refresh it (it
//! *wins*), the others that somebody does. What a table's `refresh_before` and `stale_for` ask for comes on top of what
//! the request asks for.

use store::{
    Edit, Edited, Expect, Expiry, Freshness, Hits, InPlace, Item, ItemMeta, ItemSink, Mark, Outcome, Store,
    Tick, Touch, WriteError, Writer, ticks_between, write_as,
};

use crate::answer::Answer;
use crate::counters::Counter;
use crate::exptime::{expiry, seconds_ahead};
use crate::limits::CONTENDED_ROUNDS;
use crate::number;
use crate::privilege::Command;
use crate::session::Session;
use crate::thread_context::{Route, ThreadContext};

/// What `mg` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaGet {
    /// The value is wanted.
    pub value: bool,
    /// A hit does not count as a use.
    pub unnoticed: bool,
    /// A new expiry time.
    pub exptime: Option<i64>,
    /// A missing value's place is taken, until this expiry time.
    pub vivify: Option<i64>,
    /// Whoever first sees fewer seconds left wins.
    pub recache: Option<i64>,
    /// The seconds left are those of the new expiry time.
    pub recache_as_touched: bool,
    /// The CAS of a place that is taken.
    pub own_cas: Option<u64>,
    /// The CAS of a value that need not be sent.
    pub known: Option<u64>,
    /// It was asked for at its source, after it was missed and counted.
    pub fetched: bool,
}

/// What is known of an item that was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaItem {
    /// The client's 32 bits.
    pub client_flags: u32,
    /// Its CAS.
    pub cas: u64,
    /// Bytes of its value.
    pub bytes: usize,
    /// Seconds left, none without a deadline.
    pub ttl: Option<u64>,
    /// Seconds left by the deadline that the request gave it.
    pub new_ttl: Option<Option<u64>>,
    /// It was fetched before.
    pub fetched: bool,
    /// Seconds since it was used last: written or fetched.
    pub unused_seconds: u64,
    /// Somebody else was asked to refresh it.
    pub claimed: bool,
    /// It is stale.
    pub stale: bool,
    /// Whoever asked is to refresh it.
    pub won: bool,
    /// It was not there: this is the place that was taken, first without a deadline.
    pub made: bool,
}

/// Takes in what `mg` found.
pub trait MetaSink {
    /// Writes what precedes the value and hands out the buffer that the value is appended to.
    fn open(&mut self, item: &MetaItem) -> &mut Vec<u8>;
    /// The value is whole.
    fn close(&mut self);
    /// Undoes `open` and all that was appended.
    fn discard(&mut self);
}

/// What `mg` came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaGot {
    /// There is nothing.
    Miss,
    /// This, and the value was not asked for.
    Head(MetaItem),
    /// The sink has it.
    Value,
    /// There is nothing, and the source may have it.
    Fetch,
}

/// What `ms` and the storage commands of the binary protocol ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaSet<'t> {
    /// Under which condition the value is stored.
    pub condition: Condition,
    /// The client's 32 bits.
    pub client_flags: u32,
    /// When it ends.
    pub exptime: i64,
    /// Only over the value with this CAS.
    pub compare: Option<u64>,
    /// Over a value with a later CAS as well, and then as stale.
    pub even_if_invalidated: bool,
    /// A missing value is made by append and prepend, with this expiry time.
    pub vivify: Option<i64>,
    /// The CAS that it gets.
    pub own_cas: Option<u64>,
    /// Its tags, with commas between them; no UTF-8 is refused. They go to the column that the table's option names.
    pub tags: Option<&'t [u8]>,
}

impl MetaSet<'_> {
    pub(crate) fn expectation(&self) -> Expect {
        match (self.condition, self.compare) {
            (Condition::Absent, _) => Expect::Absent,
            (_, Some(cas)) => Expect::Version(cas),
            (Condition::Present, None) => Expect::Present,
            (_, None) => Expect::Anything,
        }
    }
}

impl MetaGet {
    /// What the gate is asked for.
    #[inline]
    pub(crate) fn command(&self) -> Command {
        match (self.vivify, self.exptime) {
            (Some(_), _) => Command::GetOrMake,
            (None, Some(_)) => Command::GetAndTouch,
            (None, None) => Command::Get,
        }
    }
}

impl MetaSet<'_> {
    /// What the gate is asked for.
    pub(crate) fn command(&self) -> Command {
        match self.condition {
            Condition::Absent => Command::Add,
            Condition::Append | Condition::Prepend if self.vivify.is_some() => Command::Set,
            Condition::Present | Condition::Append | Condition::Prepend => Command::Replace,
            Condition::Always if self.compare.is_some() && !self.even_if_invalidated => Command::Replace,
            Condition::Always => Command::Set,
        }
    }
}

impl MetaDelete {
    /// What the gate is asked for.
    pub(crate) fn command(&self) -> Command {
        if self.invalidate || self.empty { Command::Invalidate } else { Command::Delete }
    }
}

impl MetaArithmetic {
    /// What the gate is asked for.
    pub(crate) fn command(&self) -> Command {
        if self.vivify.is_some() { Command::ArithmeticOrMake } else { Command::Arithmetic }
    }
}

/// Under which condition `ms` stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Always.
    #[default]
    Always,
    /// If the key is not there.
    Absent,
    /// If the key is there.
    Present,
    /// Behind the value.
    Append,
    /// Before the value.
    Prepend,
}

impl Condition {
    /// The command that stores under this condition.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Always => "set",
            Self::Absent => "add",
            Self::Present => "replace",
            Self::Append => "append",
            Self::Prepend => "prepend",
        }
    }
}

/// What other caches are told of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// To remove it.
    Delete,
    /// To mark it as stale.
    Stale,
}

/// What `md` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaDelete {
    /// Only the value with this CAS.
    pub compare: Option<u64>,
    /// Marks as stale instead of removing.
    pub invalidate: bool,
    /// Takes value and flags away, not the item.
    pub empty: bool,
    /// The deadline of what is marked.
    pub exptime: Option<i64>,
    /// The CAS of what is left.
    pub own_cas: Option<u64>,
}

impl MetaDelete {
    /// What other caches are to do with their row, whether there was one here or not. One that is named by its version
    /// is this cache's: they are told if it was here. None: nothing happened.
    pub(crate) fn told(&self, done: &MetaDone) -> Option<Told> {
        if self.compare.is_some() && !matches!(done, MetaDone::Done(_)) {
            return None;
        }
        Some(if self.invalidate && !self.empty { Told::Stale } else { Told::Delete })
    }
}

/// What `ma` and the arithmetic of the binary protocol ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaArithmetic {
    /// Takes away instead of adding.
    pub decrement: bool,
    /// How much.
    pub delta: u64,
    /// Only the value with this CAS.
    pub compare: Option<u64>,
    /// A missing number is made, with this expiry time.
    pub vivify: Option<i64>,
    /// And begins with this.
    pub initial: u64,
    /// A new expiry time.
    pub exptime: Option<i64>,
    /// The CAS that it gets.
    pub own_cas: Option<u64>,
}

/// What a command that names versions and writes came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaDone {
    /// Done, and this is what is there now.
    Done(MetaWritten),
    /// The condition did not hold.
    NotStored,
    /// The CAS is another.
    Exists,
    /// There is no such key.
    NotFound,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaWritten {
    /// Its CAS.
    pub cas: u64,
    /// Bytes of the value.
    pub bytes: usize,
    /// The result of arithmetic.
    pub number: u64,
    /// Seconds left as the item was found, and by a new deadline.
    pub ttl: Option<u64>,
    /// Seconds left by the deadline that the request gave it.
    pub new_ttl: Option<Option<u64>>,
    /// It was not there.
    pub made: bool,
}

/// What `me` and the dumps of keys report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaDebug {
    /// What `mg` would report.
    pub item: MetaItem,
    /// Bytes that the row takes.
    pub size: usize,
}

/// What is to happen to a key that `mg` looked up.
enum Seen {
    Nothing,
    /// Its source may have it.
    AtSource,
    /// What is answered, and the version that it describes.
    Item {
        item: MetaItem,
        meta: ItemMeta,
    },
    /// The place of a value that is to come was taken.
    Made(MetaItem),
    /// Another client was faster: look again.
    Again,
}

impl Session {
    /// `mg`.
    pub fn meta_get(
        &self,
        context: &mut ThreadContext,
        key: &[u8],
        asked: &MetaGet,
        sink: &mut impl MetaSink,
    ) -> Result<MetaGot, Answer> {
        if asked.fetched {
            self.allow_key(context, key, asked.command())?;
            return context.route(key).meta_get(asked, sink);
        }
        self.on_key(context, key, asked.command(), |context| {
            let route = context.route(key);
            route.count(Counter::CmdMeta);
            let got = route.meta_get(asked, sink)?;
            let hit = !matches!(got, MetaGot::Miss | MetaGot::Fetch);
            route.count_get(hit);
            if asked.exptime.is_some() {
                route.count_touch(hit);
            }
            if context.is_observed() {
                context.observe_fetch(key, hit);
            }
            Ok(got)
        })
    }

    /// `ms`.
    pub fn meta_set(
        &self,
        context: &mut ThreadContext,
        key: &[u8],
        asked: &MetaSet<'_>,
        value: &[u8],
    ) -> Result<MetaDone, Answer> {
        self.count_meta(context, key, asked.command())?;
        self.put(context, key, asked, value)
    }

    /// As [`Session::meta_set`], of a value that has come to where it was reserved for.
    pub fn meta_set_in_place(
        &self,
        context: &mut ThreadContext,
        key: &[u8],
        asked: &MetaSet<'_>,
        in_place: InPlace,
    ) -> Result<MetaDone, Answer> {
        self.count_meta(context, key, asked.command())?;
        self.put_in_place(context, key, asked, in_place)
    }

    /// `md`.
    pub fn meta_delete(
        &self,
        context: &mut ThreadContext,
        key: &[u8],
        asked: &MetaDelete,
    ) -> Result<MetaDone, Answer> {
        self.count_meta(context, key, asked.command())?;
        self.remove_by(context, key, asked, "md")
    }

    /// `ma`.
    pub fn meta_arithmetic(
        &self,
        context: &mut ThreadContext,
        key: &[u8],
        asked: &MetaArithmetic,
    ) -> Result<MetaDone, Answer> {
        self.count_meta(context, key, asked.command())?;
        self.calculate(context, key, asked)
    }

    /// Counts a meta command that may be executed.
    fn count_meta(&self, context: &mut ThreadContext, key: &[u8], command: Command) -> Result<(), Answer> {
        self.allow_key(context, key, command)?;
        context.count(Counter::CmdMeta, 1);
        Ok(())
    }

    /// `me`: what is known of an item, without counting as a use.
    pub fn meta_debug(&self, context: &mut ThreadContext, key: &[u8]) -> Result<Option<MetaDebug>, Answer> {
        self.on_key(context, key, Command::Get, |context| {
            let route = context.route(key);
            route.count(Counter::CmdMeta);
            let Ok(key) = route.key else { return Ok(None) };
            let looked = route.engine.store.look(route.table, key, route.now, false);
            Ok(looked.map(|(meta, hits)| MetaDebug { item: route.describe(&meta, hits), size: meta.size }))
        })
    }
}

impl Route<'_> {
    fn meta_get(&self, asked: &MetaGet, sink: &mut impl MetaSink) -> Result<MetaGot, Answer> {
        let Ok(key) = self.key else { return Ok(MetaGot::Miss) };
        for _ in 0..CONTENDED_ROUNDS {
            let (item, meta) = match self.see(key, asked)? {
                Seen::Nothing => return Ok(MetaGot::Miss),
                Seen::AtSource => return Ok(MetaGot::Fetch),
                Seen::Again => continue,
                Seen::Made(item) if asked.value => {
                    // The empty value is read as any other.
                    let _read = self.engine.store.look(self.table, key, self.now, !asked.unnoticed);
                    sink.open(&item);
                    sink.close();
                    return Ok(MetaGot::Value);
                }
                Seen::Made(item) => return Ok(MetaGot::Head(item)),
                Seen::Item { item, meta } => (item, meta),
            };
            if !asked.value || asked.known == Some(item.cas) {
                if self.take(key, asked, &item, &meta)? {
                    return Ok(MetaGot::Head(item));
                }
                continue;
            }
            let count = !asked.unnoticed;
            let mut values = Values { item, stamp: meta.stamp, count, lost: false, sink: &mut *sink };
            if !self.engine.store.get_item(self.table, key, self.now, &mut values) {
                continue;
            }
            // A value that was replaced since is not the one that was described.
            let taken = if values.lost { Ok(false) } else { self.take(key, asked, &item, &meta) };
            if let Ok(true) = taken {
                sink.close();
                return Ok(MetaGot::Value);
            }
            sink.discard();
            taken?;
        }
        Err(Answer::server_error("the key is changed too often; try again"))
    }

    /// Gives the version that was described its new deadline and its lease. False: it is not there any more, or
    /// somebody else took the lease, so what was seen of it may not be answered.
    fn take(&self, key: &[u8], asked: &MetaGet, item: &MetaItem, meta: &ItemMeta) -> Result<bool, Answer> {
        let store = &self.engine.store;
        let until = item.won.then(|| store.lease_end(self.table, self.now));
        match (asked.exptime, until) {
            (None, None) => Ok(true),
            (None, Some(until)) => Ok(store.take_lease(self.table, key, meta, until, self.now)),
            (Some(exptime), lease) => {
                let expect = Expect::Unclaimed { stamp: meta.stamp, lease: meta.lease };
                let touch = Touch { expect, expiry: expiry(store, exptime), lease };
                let outcome = store.touch_if(self.table, key, &touch, self.now)?;
                Ok(matches!(outcome, Outcome::Done(_)))
            }
        }
    }

    /// Looks a key up, and decides who is to refresh it.
    fn see(&self, key: &[u8], asked: &MetaGet) -> Result<Seen, Answer> {
        let store = &self.engine.store;
        let count = !asked.unnoticed && !asked.value;
        if self.table.may_withhold() && self.table.fails() {
            return Ok(Seen::Nothing);
        }
        let Some((meta, hits)) = store.look(self.table, key, self.now, count) else {
            return match asked.vivify {
                _ if !asked.fetched && self.table.reads_through() => Ok(Seen::AtSource),
                Some(exptime) => self.vivify(key, exptime, asked.own_cas),
                None => Ok(Seen::Nothing),
            };
        };
        let mut item = self.describe(&meta, hits);
        item.new_ttl = asked.exptime.map(|exptime| seconds_of(store.as_ref(), exptime, self.now));
        item.won = !item.claimed && self.is_to_be_made_anew(&meta, &item, asked);
        Ok(Seen::Item { item, meta })
    }

    fn is_to_be_made_anew(&self, meta: &ItemMeta, item: &MetaItem, asked: &MetaGet) -> bool {
        item.stale
            || asked.recache.is_some_and(|moment| self.is_near(meta, asked, moment))
            || (self.table.renews()
                && self.engine.store.freshness(self.table, meta, self.now) != Freshness::Fresh)
    }

    /// Whether fewer seconds are left than `R` says.
    fn is_near(&self, meta: &ItemMeta, asked: &MetaGet, moment: i64) -> bool {
        let store = &self.engine.store;
        let Some(seconds) = seconds_ahead(moment, || store.clock().unix_seconds()) else { return false };
        let left = match asked.exptime.filter(|_| asked.recache_as_touched) {
            None => store.remaining(self.table, meta, self.now),
            Some(exptime) => match expiry(store, exptime) {
                Expiry::Never | Expiry::Table => None,
                Expiry::Now => Some(0),
                Expiry::At(tick) | Expiry::Kept(tick) | Expiry::KeptOr(tick) => {
                    Some(ticks_between(self.now, tick))
                }
            },
        };
        left.is_some_and(|left| left < seconds.saturating_mul(store::TICKS_PER_SECOND))
    }

    /// Takes the place of a value that is to come: an empty one, whose maker this is.
    fn vivify(&self, key: &[u8], exptime: i64, cas: Option<u64>) -> Result<Seen, Answer> {
        let store = &self.engine.store;
        let until = expiry(store, exptime);
        let lease = Some(store.lease_end(self.table, self.now));
        let place = Item { value: b"", client_flags: 0, expiry: until, cas, lease, tags: None };
        // The place is this cache's; see `Route::fills`.
        let _local = self.table.replicates_rows().then(|| write_as(Writer::Local));
        match store.put_item(self.table, key, &place, Expect::Absent, self.now)? {
            Outcome::Done(stamp) => {
                let ttl = seconds_of(store.as_ref(), exptime, self.now);
                let cas = cas.unwrap_or(stamp);
                let item = MetaItem { cas, new_ttl: Some(ttl), won: true, made: true, ..MetaItem::default() };
                Ok(Seen::Made(item))
            }
            _ => Ok(Seen::Again),
        }
    }

    /// An item in the words of the protocol.
    pub(crate) fn describe(&self, meta: &ItemMeta, hits: Hits) -> MetaItem {
        let store = &self.engine.store;
        let left = store.remaining(self.table, meta, self.now);
        let age = store.age_ticks(meta.stamp);
        let unused = if hits.fetched { age.min(hits.ticks_ago.into()) } else { age };
        MetaItem {
            client_flags: meta.client_flags,
            cas: meta.cas,
            bytes: meta.len,
            ttl: left.map(seconds),
            new_ttl: None,
            fetched: hits.fetched,
            unused_seconds: unused / store::TICKS_PER_SECOND,
            claimed: meta.is_leased(self.now),
            stale: meta.stale || left == Some(0),
            won: false,
            made: false,
        }
    }

    pub(crate) fn meta_set(&self, asked: &MetaSet<'_>, value: &[u8]) -> Result<MetaDone, Answer> {
        let key = self.meta_set_key(value.len())?;
        match asked.condition {
            Condition::Append | Condition::Prepend => self.meta_join(key, asked, value),
            _ if asked.even_if_invalidated && asked.compare.is_some() => self.meta_refill(key, asked, value),
            _ => self.meta_put(key, asked, asked.exptime, value),
        }
    }

    /// The key under which a value of so many bytes may be stored.
    pub(crate) fn meta_set_key(&self, bytes: usize) -> Result<&[u8], Answer> {
        let key = self.key_to_store()?;
        if bytes > self.engine.options.item_size_max {
            return Err(Answer::TooLarge);
        }
        Ok(key)
    }

    fn meta_put(
        &self,
        key: &[u8],
        asked: &MetaSet<'_>,
        exptime: i64,
        value: &[u8],
    ) -> Result<MetaDone, Answer> {
        self.meta_put_by(asked, value.len(), |store, expect| {
            let (client_flags, expiry, cas) = (asked.client_flags, expiry(store, exptime), asked.own_cas);
            let item = Item { value, client_flags, expiry, cas, lease: None, tags: asked.tags };
            store.put_item(self.table, key, &item, expect, self.now)
        })
    }

    pub(crate) fn meta_put_by(
        &self,
        asked: &MetaSet<'_>,
        bytes: usize,
        put: impl FnOnce(&Store, Expect) -> Result<Outcome, WriteError>,
    ) -> Result<MetaDone, Answer> {
        let outcome = put(&self.engine.store, asked.expectation())?;
        if asked.compare.is_some() {
            self.count_cas(outcome);
        }
        Ok(match (outcome, asked.compare) {
            (Outcome::Done(stamp), _) => written(asked.own_cas.unwrap_or(stamp), bytes),
            (Outcome::Missing, Some(_)) => MetaDone::NotFound,
            (Outcome::Exists, Some(_)) if asked.condition != Condition::Absent => MetaDone::Exists,
            _ => MetaDone::NotStored,
        })
    }

    fn count_cas(&self, outcome: Outcome) {
        self.count(match outcome {
            Outcome::Done(_) => Counter::CasHits,
            Outcome::Missing => Counter::CasMisses,
            Outcome::Exists | Outcome::Left => Counter::CasBadval,
        });
    }

    /// `ms` with `C` and `I`: a value that was made of data from before an invalidation is better than none, but stale.
    fn meta_refill(&self, key: &[u8], asked: &MetaSet<'_>, value: &[u8]) -> Result<MetaDone, Answer> {
        let store = &self.engine.store;
        let wanted = asked.compare.unwrap_or_default();
        for _ in 0..CONTENDED_ROUNDS {
            match self.meta_put(key, asked, asked.exptime, value)? {
                MetaDone::Exists => {}
                done => return Ok(done),
            }
            let Some((meta, _)) = store.look(self.table, key, self.now, false) else { continue };
            if wanted > meta.cas {
                return Ok(MetaDone::Exists);
            }
            let how = Edit {
                expect: Expect::Stamp(meta.stamp),
                client_flags: Some(asked.client_flags),
                cas: asked.own_cas,
                mark: Mark::StaleSameLease,
                ..Edit::default()
            };
            let outcome = store.edit_item(self.table, key, &how, self.now, &mut |_, new| {
                new.extend_from_slice(value);
                Edited::New
            })?;
            if let Outcome::Done(stamp) = outcome {
                return Ok(written(asked.own_cas.unwrap_or(stamp), value.len()));
            }
        }
        Err(Answer::server_error("the key is changed too often; try again"))
    }

    /// `ms` that appends or prepends; with `N` a missing value is made.
    fn meta_join(&self, key: &[u8], asked: &MetaSet<'_>, value: &[u8]) -> Result<MetaDone, Answer> {
        let store = &self.engine.store;
        let limit = self.engine.options.item_size_max;
        let mut bytes = 0;
        let how = Edit {
            expect: asked.compare.map_or(Expect::Anything, Expect::Version),
            cas: asked.own_cas,
            ..Edit::default()
        };
        for _ in 0..CONTENDED_ROUNDS {
            let outcome = store.edit_item(self.table, key, &how, self.now, &mut |old, new| {
                bytes = old.len() + value.len();
                if bytes > limit {
                    return Edited::Refused;
                }
                let append = asked.condition == Condition::Append;
                let (first, second) = if append { (old, value) } else { (value, old) };
                new.extend_from_slice(first);
                new.extend_from_slice(second);
                Edited::New
            })?;
            let missing = match outcome {
                Outcome::Done(stamp) => return Ok(written(asked.own_cas.unwrap_or(stamp), bytes)),
                Outcome::Left => return Err(Answer::TooLarge),
                Outcome::Exists => return Ok(MetaDone::Exists),
                Outcome::Missing => asked.vivify,
            };
            let Some(exptime) = missing else { return Ok(MetaDone::NotStored) };
            let fresh = MetaSet { condition: Condition::Absent, compare: None, ..*asked };
            if let done @ MetaDone::Done(_) = self.meta_put(key, &fresh, exptime, value)? {
                return Ok(done);
            }
        }
        Err(Answer::server_error("the key is changed too often; try again"))
    }

    pub(crate) fn meta_delete(&self, asked: &MetaDelete) -> Result<MetaDone, Answer> {
        let Ok(key) = self.key else { return Ok(MetaDone::NotFound) };
        let store = &self.engine.store;
        let expect = asked.compare.map_or(Expect::Anything, Expect::Version);
        let outcome = if asked.invalidate || asked.empty {
            let how = Edit {
                expect,
                client_flags: asked.empty.then_some(0),
                expiry: asked.exptime.filter(|_| asked.invalidate).map(|exptime| expiry(store, exptime)),
                cas: asked.own_cas,
                mark: if asked.invalidate { Mark::Stale } else { Mark::Fresh },
            };
            let edited = if asked.empty { Edited::New } else { Edited::Same };
            store.edit_item(self.table, key, &how, self.now, &mut |_, _| edited)?
        } else {
            store.delete(self.table, key, expect, self.now)?
        };
        Ok(match outcome {
            Outcome::Done(stamp) => written(asked.own_cas.unwrap_or(stamp), 0),
            Outcome::Exists | Outcome::Left => MetaDone::Exists,
            Outcome::Missing => MetaDone::NotFound,
        })
    }

    pub(crate) fn meta_arithmetic(&self, asked: &MetaArithmetic) -> Result<MetaDone, Answer> {
        let Ok(key) = self.key else { return Ok(MetaDone::NotFound) };
        for _ in 0..CONTENDED_ROUNDS {
            let done = self.calculate(key, asked)?;
            let Some(exptime) = asked.vivify.filter(|_| done == MetaDone::NotFound) else { return Ok(done) };
            let text = asked.initial.to_string();
            let fresh =
                MetaSet { condition: Condition::Absent, own_cas: asked.own_cas, ..MetaSet::default() };
            if let MetaDone::Done(made) = self.meta_put(key, &fresh, exptime, text.as_bytes())? {
                let ttl = seconds_of(self.engine.store.as_ref(), exptime, self.now);
                let new_ttl = Some(ttl);
                return Ok(MetaDone::Done(MetaWritten {
                    number: asked.initial,
                    new_ttl,
                    made: true,
                    ..made
                }));
            }
        }
        Err(Answer::server_error("the key is changed too often; try again"))
    }

    /// Adds to a number that is there, or takes away.
    fn calculate(&self, key: &[u8], asked: &MetaArithmetic) -> Result<MetaDone, Answer> {
        let store = &self.engine.store;
        let before = store.look(self.table, key, self.now, false);
        let ttl = before.and_then(|(meta, _)| store.remaining(self.table, &meta, self.now)).map(seconds);
        let how = Edit {
            expect: asked.compare.map_or(Expect::Anything, Expect::Version),
            expiry: asked.exptime.map(|exptime| expiry(store, exptime)),
            cas: asked.own_cas,
            // A number is changed where it is, and stays what it was.
            mark: Mark::Same,
            ..Edit::default()
        };
        let mut result = None;
        let outcome = store.edit_item(self.table, key, &how, self.now, &mut |old, new| {
            result = number::step(old, asked.decrement, asked.delta, new);
            if result.is_some() { Edited::New } else { Edited::Refused }
        })?;
        Ok(match (outcome, result) {
            (Outcome::Done(stamp), Some(number)) => MetaDone::Done(MetaWritten {
                cas: asked.own_cas.unwrap_or(stamp),
                bytes: 0,
                number,
                ttl,
                new_ttl: asked.exptime.map(|exptime| seconds_of(store.as_ref(), exptime, self.now)),
                made: false,
            }),
            (Outcome::Left, _) => return Err(Answer::NotANumber),
            (Outcome::Exists, _) => MetaDone::Exists,
            _ => MetaDone::NotFound,
        })
    }
}

/// Passes on the value of the version that was described. The reply stays open: the version may still be lost.
struct Values<'s, S> {
    item: MetaItem,
    stamp: u64,
    count: bool,
    /// It is the value of another version.
    lost: bool,
    sink: &'s mut S,
}

impl<S: MetaSink> ItemSink for Values<'_, S> {
    #[inline]
    fn open(&mut self, meta: &ItemMeta) -> &mut Vec<u8> {
        self.lost = meta.stamp != self.stamp;
        self.sink.open(&MetaItem { bytes: meta.len, ..self.item })
    }

    #[inline]
    fn close(&mut self) {}

    fn discard(&mut self) {
        self.sink.discard();
    }

    #[inline]
    fn counts(&self) -> bool {
        self.count
    }
}

fn written(cas: u64, bytes: usize) -> MetaDone {
    MetaDone::Done(MetaWritten { cas, bytes, ..MetaWritten::default() })
}

/// Ticks as whole seconds, to the nearest: a deadline that was just set says the seconds that it was set to.
fn seconds(ticks: u64) -> u64 {
    (ticks + store::TICKS_PER_SECOND / 2) / store::TICKS_PER_SECOND
}

/// The seconds that an expiry time leaves from now, none for one without end.
fn seconds_of(store: &store::Store, exptime: i64, now: Tick) -> Option<u64> {
    match expiry(store, exptime) {
        Expiry::Never | Expiry::Table => None,
        Expiry::Now => Some(0),
        Expiry::At(tick) | Expiry::Kept(tick) | Expiry::KeptOr(tick) => {
            Some(seconds(ticks_between(now, tick)))
        }
    }
}
