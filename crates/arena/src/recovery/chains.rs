//! Mending the chains that an earlier process left, each before it is walked for the first time.
//!
//! A process that died in a split leaves a version odd, and a damaged file may hold any link. A chain that is mended
//! has an even version, and links that lead to buckets with pages that are in no other chain. To mend all of them at
//! the start would be to touch the whole index; who comes first mends one, under its shard's lock, just before its rows
//! are proved.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Arena;
use crate::index::{header, overflow_link, version};
use crate::layout::BUCKET_SLOTS;
use crate::limits::MAX_CHAIN;

/// Which chains of an earlier process are mended.
#[derive(Debug, Default)]
pub(crate) struct Mending {
    /// A bit for each bucket that was there. Changed and asked under the lock of the bucket's shard.
    mended: Box<[AtomicU64]>,
    /// A bit for each overflow bucket that was there: some chain leads to it.
    linked: Box<[AtomicU64]>,
    /// How many of both there were.
    buckets: u64,
    overflow: u64,
}

/// So many bits, none set.
fn bits(count: u64) -> Box<[AtomicU64]> {
    (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect()
}

/// Sets a bit; whether it was not set before.
fn set_first(bits: &[AtomicU64], number: u64) -> bool {
    // Relaxed: a chain's bit is its shard's, and of two chains that claim a bucket either may be the first.
    bits[(number / 64) as usize].fetch_or(1 << (number % 64), Ordering::Relaxed) & (1 << (number % 64)) == 0
}

impl Mending {
    /// All chains of so many buckets are to be mended.
    pub(crate) fn new(buckets: u64, overflow: u64) -> Self {
        Self { mended: bits(buckets), linked: bits(overflow), buckets, overflow }
    }

    /// Links of overflow buckets that were there and to which no chain leads. Every chain is mended.
    pub(crate) fn unlinked(&self) -> impl Iterator<Item = u64> {
        let is_linked = |link: u64| {
            let at = link - 1;
            self.linked[(at / 64) as usize].load(Ordering::Relaxed) & (1 << (at % 64)) != 0
        };
        (1..=self.overflow).filter(move |link| !is_linked(*link))
    }
}

impl Arena {
    /// Mends a chain, unless that is done. The caller holds the token of its shard, or is alone.
    #[inline]
    pub(crate) fn ensure_mended(&self, bucket: u64) {
        if bucket < self.mending.buckets && set_first(&self.mending.mended, bucket) {
            self.mend_chain(bucket);
        }
    }

    /// Makes a chain's version even, cuts it at a link that is out of bounds, leads into another chain or back into
    /// this one, or makes it too long, and counts its rows.
    fn mend_chain(&self, bucket: u64) {
        let mut at = self.bucket_word(bucket);
        let first = self.map.load(at, Ordering::Relaxed);
        if version(first) % 2 == 1 {
            let even = header((version(first) + 1) & 0xffff_ffff, overflow_link(first));
            self.map.store(at, even, Ordering::Release);
        }
        let mut rows = 0;
        for place in 1..=MAX_CHAIN {
            let now = self.map.load(at, Ordering::Relaxed);
            let used = |slot: &u64| self.map.load(at + slot, Ordering::Relaxed) != 0;
            rows += (1..=BUCKET_SLOTS).filter(used).count() as u64;
            let link = overflow_link(now);
            if link == 0 {
                break;
            }
            let leads_on = place < MAX_CHAIN && link <= self.mending.overflow;
            if !leads_on || !set_first(&self.mending.linked, link - 1) {
                self.map.store(at, header(version(now), 0), Ordering::Release);
                break;
            }
            at = self.bucket_word(self.layout.max_buckets + link - 1);
        }
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }
}
