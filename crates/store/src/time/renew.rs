//! Refreshing rows, by one client for all: stale rows, leases, and the times before and after a deadline.
//!
//! A lease is the duty of one client to refresh a row. It stands in the row's one mutable word, as the tick at which
//! it lapses, and is taken under the shard's lock: of many who ask, one gets it. Whoever writes the row ends it, and
//! the CAS value that its holder was shown tells whether the row was invalidated since.

use std::sync::atomic::Ordering;

use arena::{Hash, Lookup, RowHead};

use crate::clock::{Tick, moment_after, moment_before, ticks_between};
use crate::definition::TableOptions;
use crate::mutation::Mutation;
use crate::row::request::Expiry;
use crate::row::{NEVER, RowBuf};
use crate::rows::read::ItemMeta;
use crate::rows::write::NewParts;
use crate::store::Store;
use crate::table::{Table, ticks};

/// How long the holder of a lease has in a table that refreshes rows and does not say: long enough for a page that is
/// slow to make, short enough for its readers if the holder is gone.
const LEASE_DEFAULT_MS: u64 = 10_000;

/// The lease that ends with the version only.
const UNTIL_REPLACED: Tick = Tick::MAX;

/// What a row bears for those who refresh it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Renewal {
    /// It was invalidated softly.
    pub stale: bool,
    /// Until when somebody refreshes it, 0 for nobody; none where the table decides whether there is room to say.
    pub lease: Option<Tick>,
    /// The lease is that of the row which is replaced, as it stands in the moment of the write.
    pub same_lease: bool,
}

/// Where a row stands between its write and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Within its time.
    Fresh,
    /// So near its deadline that the table wants it refreshed.
    Due,
    /// Invalidated softly, or past its deadline and still served.
    Stale,
}

impl Renewal {
    /// What the head of a row says.
    pub(crate) fn of(head: &RowHead) -> Self {
        Self { stale: head.is_stale(), lease: head.has_expiry().then_some(head.lease), same_lease: false }
    }

    /// The same for a version that leaves the lease to its holder.
    pub(crate) fn kept(head: &RowHead) -> Self {
        Self { same_lease: true, ..Self::of(head) }
    }
}

impl ItemMeta {
    /// Whether somebody refreshes this version.
    #[inline]
    pub fn is_leased(&self, now: Tick) -> bool {
        now < self.lease
    }
}

impl Store {
    /// Ticks until a row's deadline, its own or its table's, 0 when it has passed; none if it has none.
    pub fn remaining(&self, table: &Table, meta: &ItemMeta, now: Tick) -> Option<u64> {
        // Relaxed: a rule that changes takes effect soon.
        let ttl = table.state.limits.ttl_ticks.load(Ordering::Relaxed);
        match meta.word {
            NEVER => None,
            0 if ttl == 0 => None,
            0 => Some(u64::from(ttl).saturating_sub(self.age_ticks(meta.stamp))),
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
            ttl => {
                let written = moment_before(self.now(), self.age_ticks(stamp)).unwrap_or(0);
                Expiry::At(moment_after(written, ttl.into()))
            }
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

    /// Takes the lease of a version, if it is still the current one, with the deadline that was seen, and nobody holds
    /// it. One of all who try gets it.
    pub fn take_lease(&self, table: &Table, key: &[u8], seen: &ItemMeta, until: Tick, now: Tick) -> bool {
        let hash = self.arena.hash(table.id(), key);
        {
            let mut shard = self.shard(hash).lock();
            let _mutation = Mutation;
            self.settle_mark(&mut shard, table, hash, key);
            let Some(entry) = self.arena.find(&shard.token, hash, table.id(), key) else { return false };
            let is_seen = |head: &RowHead| (head.stamp, head.expiry) == (seen.stamp, seen.word);
            let head = self.live_head(table, entry.location, now).filter(is_seen);
            let Some(head) = head else { return false };
            if head.has_expiry() {
                let free = head.lease <= now;
                if free {
                    self.arena.set_lease(entry.location, until);
                }
                return free;
            }
        }
        let mut row = RowBuf::new();
        // Not a read of the row, so its hint stays.
        let Lookup::Hit(found) = self.arena.lookup(hash, table.id(), key) else { return false };
        let same = row.load(&found) && row.stamp() == seen.stamp && !row.head().has_expiry();
        same && self.is_live(table, row.head(), now) && self.lease_copy(table, hash, &row, until, now)
    }

    /// As [`Store::take_lease`], for a row without a word for it: a copy that has one takes its place, with the same
    /// stamp, so that age and CAS value stay.
    pub(crate) fn lease_copy(&self, table: &Table, hash: Hash, row: &RowBuf, until: Tick, now: Tick) -> bool {
        let parts = NewParts {
            key: row.key(),
            payload: &[row.payload()],
            client_flags: row.client_flags(),
            expiry: Expiry::Table,
            cas: row.head().explicit_cas,
            renewal: Renewal { lease: Some(until), ..Renewal::of(row.head()) },
        };
        // Without room nobody gets the lease; the row goes on being served as it is.
        let queue = self.queue_of(row.location());
        let Ok(placed) = self.place_copy(table, queue, &parts, row.head().is_multi(), now) else {
            return false;
        };
        let mut shard = self.shard(hash).lock();
        let _mutation = Mutation;
        self.settle_mark(&mut shard, table, hash, row.key());
        !table.is_gone() && self.relocate(&mut shard, table, hash, row, &placed).is_some()
    }

    /// Whether a row with this deadline is no row any more.
    pub(crate) fn has_ended(table: &Table, expiry: Expiry, now: Tick) -> bool {
        match expiry {
            // The deadline of a row that is written again while it is served stale.
            Expiry::At(tick) | Expiry::KeptOr(tick) => {
                tick <= now && !table.state.limits.is_in_grace(tick, now)
            }
            other => other.has_come(now),
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
