//! Commands that name versions: they compare the CAS of what is there, and say that of what they wrote. They are the
//! binary protocol's, and what the meta commands do.

use store::{ComingItem, Expect, InPlace, Outcome, Touch, Writer, write_as};

use crate::answer::Answer;
use crate::buses::KeyChange;
use crate::command::refuse_store;
use crate::counters::Counter;
use crate::exptime::expiry;
use crate::limits::CONTENDED_ROUNDS;
use crate::meta::{Condition, MetaArithmetic, MetaDelete, MetaDone, MetaSet, Told};
use crate::observe::status;
use crate::privilege::Command;
use crate::session::Session;
use crate::thread_context::{Route, ThreadContext};
use crate::watch::Seen;

/// A version whose deadline is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The client's 32 bits.
    pub client_flags: u32,
    /// Its CAS, which stays as it was.
    pub cas: u64,
}

impl Session {
    /// Stores a value.
    #[inline]
    pub fn put(
        &self,
        context: &mut ThreadContext,
        key: &[u8],
        asked: &MetaSet<'_>,
        value: &[u8],
    ) -> Result<MetaDone, Answer> {
        self.put_by(context, key, asked, value.len(), |route| route.meta_set(asked, value))
    }

    /// As [`Session::reserve`], for [`Session::put`].
    pub fn put_reserve(
        &self,
        context: &mut ThreadContext,
        key: &[u8],
        asked: &MetaSet<'_>,
        value_bytes: usize,
    ) -> Option<InPlace> {
        let joins = matches!(asked.condition, Condition::Append | Condition::Prepend);
        // Tags lie beside the value, so that the row is made when both are there.
        if joins || asked.tags.is_some() || (asked.even_if_invalidated && asked.compare.is_some()) {
            return None;
        }
        let expiry = expiry(&context.engine.store, asked.exptime);
        let item = ComingItem { value_bytes, client_flags: asked.client_flags, expiry, cas: asked.own_cas };
        self.reserve_item(context, key, &item, asked.expectation(), asked.command())
    }

    /// As [`Session::put`], of a value that has come to where it was reserved for.
    pub fn put_in_place(
        &self,
        context: &mut ThreadContext,
        key: &[u8],
        asked: &MetaSet<'_>,
        in_place: InPlace,
    ) -> Result<MetaDone, Answer> {
        let bytes = in_place.value_bytes();
        self.put_by(context, key, asked, bytes, |route| {
            let key = route.meta_set_key(bytes)?;
            route.meta_put_by(asked, bytes, |store, expect| {
                let expiry = expiry(store, asked.exptime);
                store.put_in_place(route.table, key, in_place, expiry, expect, route.now)
            })
        })
    }

    #[inline]
    fn put_by(
        &self,
        context: &mut ThreadContext,
        key: &[u8],
        asked: &MetaSet<'_>,
        bytes: usize,
        store: impl FnOnce(&Route<'_>) -> Result<MetaDone, Answer>,
    ) -> Result<MetaDone, Answer> {
        self.on_key(context, key, asked.command(), |context| {
            let route = context.route(key);
            let watched = route.begin_write();
            route.count(Counter::CmdSet);
            let fills = watched && route.fills(asked);
            let local = fills.then(|| write_as(Writer::Local));
            let done = store(&route)
                .map_err(|refusal| refuse_store(&route, asked.condition == Condition::Always, refusal));
            drop(local);
            if watched {
                context.note_written();
            }
            if context.is_observed() {
                let status = match &done {
                    Ok(MetaDone::Done(_)) => "stored",
                    Ok(MetaDone::Exists) => "exists",
                    Ok(MetaDone::NotFound) => "not_found",
                    Ok(MetaDone::NotStored) => "not_stored",
                    Err(refusal) => status(refusal),
                };
                let (command, exptime) = (asked.condition.name(), asked.exptime);
                context.observe(key, Seen::Stored { command, status, bytes, exptime });
            }
            done
        })
    }

    /// Removes a key, or only the version with this CAS.
    pub fn remove(
        &self,
        context: &mut ThreadContext,
        key: &[u8],
        compare: Option<u64>,
    ) -> Result<MetaDone, Answer> {
        let asked = MetaDelete { compare, ..MetaDelete::default() };
        self.remove_by(context, key, &asked, "delete")
    }

    pub(crate) fn remove_by(
        &self,
        context: &mut ThreadContext,
        key: &[u8],
        asked: &MetaDelete,
        command: &'static str,
    ) -> Result<MetaDone, Answer> {
        self.on_key(context, key, asked.command(), |context| {
            let bytes = if context.is_observed() { context.value_bytes(key) } else { None };
            let route = context.route(key);
            route.spoil_fetch();
            let done = route.meta_delete(asked)?;
            let receipt = asked.told(&done).and_then(|told| {
                route.tell(match told {
                    Told::Delete => KeyChange::Delete,
                    Told::Stale => {
                        KeyChange::Stale(asked.exptime.and_then(|exptime| route.seconds_until(exptime)))
                    }
                })
            });
            match done {
                MetaDone::Done(_) => route.count(Counter::DeleteHits),
                MetaDone::NotFound => route.count(Counter::DeleteMisses),
                MetaDone::NotStored | MetaDone::Exists => {}
            }
            if context.is_observed() {
                let bytes = bytes.filter(|_| matches!(done, MetaDone::Done(_)));
                context.observe(key, Seen::Deleted { command, bytes });
            }
            if receipt.is_some() {
                context.receipt = receipt;
            }
            Ok(done)
        })
    }

    /// Adds to a number, or takes away; may make a missing one.
    pub fn calculate(
        &self,
        context: &mut ThreadContext,
        key: &[u8],
        asked: &MetaArithmetic,
    ) -> Result<MetaDone, Answer> {
        self.on_key(context, key, asked.command(), |context| {
            let route = context.route(key);
            let done = route.meta_arithmetic(asked)?;
            match done {
                MetaDone::Done(_) => route.count_arithmetic(asked.decrement, true),
                MetaDone::NotFound => route.count_arithmetic(asked.decrement, false),
                MetaDone::NotStored | MetaDone::Exists => {}
            }
            if route.table.replicates_rows() {
                context.note_written();
            }
            Ok(done)
        })
    }

    /// As [`Session::touch`]; says which version has the new deadline, if there is one.
    pub fn touch_version(
        &self,
        context: &mut ThreadContext,
        key: &[u8],
        exptime: i64,
    ) -> Result<Option<Touched>, Answer> {
        self.on_key(context, key, Command::Touch, |context| {
            let route = context.route(key);
            let touched = route.touch_version(exptime);
            route.count_touch(matches!(touched, Ok(Some(_))));
            if route.table.replicates_rows() {
                context.note_written();
            }
            touched
        })
    }
}

impl Route<'_> {
    /// Whether a store ends a lease: the value was read at its source, maybe before another cache invalidated the key.
    /// So it stays here, where that invalidation removes it; what travels would undo it.
    #[cold]
    fn fills(&self, asked: &MetaSet<'_>) -> bool {
        let (Ok(key), Some(_), true) = (self.key, asked.compare, self.table.replicates_rows()) else {
            return false;
        };
        let seen = self.engine.store.look(self.table, key, self.now, false);
        seen.is_some_and(|(meta, _)| meta.is_leased(self.now))
    }

    /// Looks first, then gives the version that was seen its deadline: one that was replaced in between is looked at
    /// again.
    fn touch_version(&self, exptime: i64) -> Result<Option<Touched>, Answer> {
        let Ok(key) = self.key else { return Ok(None) };
        let store = &self.engine.store;
        for _ in 0..CONTENDED_ROUNDS {
            let Some((meta, _)) = store.look(self.table, key, self.now, false) else { return Ok(None) };
            let expect = Expect::Stamp(meta.stamp);
            let touch = Touch { expect, expiry: expiry(store, exptime), lease: None };
            if let Outcome::Done(_) = store.touch_if(self.table, key, &touch, self.now)? {
                return Ok(Some(Touched { client_flags: meta.client_flags, cas: meta.cas }));
            }
        }
        Err(Answer::server_error("the key is changed too often; try again"))
    }
}
