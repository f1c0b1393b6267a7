//! Refreshing rows, by one client for all: stale rows, leases, and the times before and after a deadline.
//!
//! A lease is the duty of one client to refresh a row. It stands in the row's one mutable word, as the tick at which
//! it lapses, and is taken under the shard's lock: of many who ask, one gets it. Whoever writes the row ends it, and
//! the CAS value that its holder was shown tells whether the row was invalidated since.

use std::sync::atomic::Ordering;

use crate::clock::{NEVER, Tick, age_at, moment_after, moment_before, ticks_between};
use crate::definition::TableOptions;
use crate::row::RowBuf;
use crate::row::meta::ItemMeta;
use crate::row::renewal::Freshness;
use crate::row::request::Expiry;
use crate::table::{Table, ticks};
use crate::time::Time;

/// How long the holder of a lease has in a table that refreshes rows and does not say: long enough for a page that is
/// slow to make, short enough for its readers if the holder is gone.
const LEASE_DEFAULT_MS: u64 = 10_000;

/// The lease that ends with the version only.
const UNTIL_REPLACED: Tick = Tick::MAX;

impl Time {
    /// Ticks until a row's deadline, its own or its table's, 0 when it has passed; none if it has none.
    pub fn remaining(&self, table: &Table, meta: &ItemMeta, now: Tick) -> Option<u64> {
        // Relaxed: a rule that changes takes effect soon.
        let ttl = table.state.limits.ttl_ticks.load(Ordering::Relaxed);
        match meta.word {
            NEVER => None,
            0 if ttl == 0 => None,
            0 => {
                let age = age_at(now, self.written_at(meta.stamp));
                Some(u64::from(ttl).saturating_sub(age))
            }
            deadline => Some(ticks_between(now, deadline)),
        }
    }

    /// Where a row that was copied stands, and whether somebody refreshes it.
    pub fn renewal_of(&self, table: &Table, row: &RowBuf, now: Tick) -> (Freshness, bool) {
        let meta = ItemMeta::of(row.head(), 0);
        (self.freshness(table, &meta, now), meta.is_leased(now))
    }

    /// The end that a table's `ttl` gives the version with this stamp, as a deadline that the version after it can
    /// bear: a mark on a row makes it no younger.
    fn own_deadline(&self, table: &Table, stamp: u64) -> Expiry {
        // Relaxed: a rule that changes takes effect soon.
        match table.state.limits.ttl_ticks.load(Ordering::Relaxed) {
            0 => Expiry::Table,
            ttl => Expiry::At(moment_after(self.written_at(stamp), ttl.into())),
        }
    }

    /// The deadline of a version that marks the one with this stamp, which had none of its own: what a touch has given
    /// it since, or the end that its table gives it.
    pub fn kept_or_own(&self, table: &Table, stamp: u64) -> Expiry {
        match self.own_deadline(table, stamp) {
            Expiry::At(own) => Expiry::KeptOr(own),
            _ => Expiry::Kept(0),
        }
    }

    /// Where a row stands by the rules of its table.
    pub fn freshness(&self, table: &Table, meta: &ItemMeta, now: Tick) -> Freshness {
        if meta.stale {
            return Freshness::Stale;
        }
        match self.remaining(table, meta, now) {
            Some(0) => Freshness::Stale,
            Some(left) if left <= u64::from(ticks(table.def().options.refresh_before_ms)) => Freshness::Due,
            None | Some(_) => Freshness::Fresh,
        }
    }

    /// When a lease that is taken now lapses. Without a word of the table it is memcached's win token, which ends with
    /// the version.
    pub fn lease_end(&self, table: &Table, now: Tick) -> Tick {
        match ticks(table.def().options.lease_ms) {
            0 if table.renews() => moment_after(now, ticks(Some(LEASE_DEFAULT_MS)).into()),
            0 => UNTIL_REPLACED,
            lease => moment_after(now, lease.into()),
        }
    }

    /// Before a table serves rows stale for longer: notes which of them have ended, for they do not come back.
    pub(crate) fn keep_ended(&self, table: &Table, new: &mut TableOptions) {
        let old = &table.def().options;
        if new.stale_for_ms > old.stale_for_ms {
            let ended = moment_before(self.now(), ticks(old.stale_for_ms).into()).unwrap_or(0);
            new.stale_from = ended.max(old.stale_from);
        }
    }
}
