//! Proving rows behind the start.
//!
//! An earlier process left an index full of slots. Proving them all takes time, and nobody waits for it: a chain of
//! buckets is proved by whoever needs it first, under its shard's lock, and the rest by whoever has the time. A chain
//! that is not proved yet hides all its rows from lookups without a lock, which say [`crate::Lookup::Busy`].
//!
//! A row counts if its slot, its segment's header, its own header, its check and its key's hash agree. The proof goes
//! by the index, not by the segments: what no slot points at is not a row.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};

use crate::file::map::Lazy;
use crate::index::bucket_of;
use crate::layout::{Hash, LOCATION_MASK, Location, Queue, SHARDS, SegmentId, SlotId, slot_prefix};
use crate::limits::{MAX_KEY_BYTES, MAX_TABLES};
use crate::recovery::Recovery;
use crate::row::{
    Check, FLAG_CAS, FLAG_CLIENT, FLAG_EXPIRY, FLAG_LONG, MIN_ROW_BYTES, RowHead, has_check, header_flags,
    optional_words,
};
use crate::{Arena, ShardToken, order};

/// Chains handed out at once by [`Arena::unproved`]: about a tenth of a millisecond of work.
const CHAINS_AT_ONCE: u64 = 64;
/// How many chains ahead the rows of a chain are asked for.
const CHAINS_AHEAD: u64 = 4;

/// Hears of every row that recovery has proved, once, under the lock of the row's shard.
pub trait Witness: std::fmt::Debug + Send + Sync {
    /// A row is served from now on.
    fn row(&self, head: &RowHead, queue: Queue, key: &[u8]);
}

/// What of an earlier process's index is proved.
#[derive(Debug)]
pub(crate) struct Proof {
    /// Some chain is not proved yet. Release when the last one is, Acquire by who looks: the slots are as proved then.
    pending: AtomicBool,
    /// Buckets that were there; later ones are made by splits of proved ones.
    buckets: u64,
    /// Every stamp of the earlier processes is smaller.
    ceiling: u64,
    /// No segment of theirs lies beyond.
    units_used: u32,
    /// A bit for each bucket. Set with Release after the proof, asked with Acquire.
    proved: Box<[AtomicU64]>,
    /// A bit for each word at which a proved row starts; given back when the segments are settled.
    starts: RwLock<Option<Lazy<AtomicU64>>>,
    /// The next bucket to hand out.
    next: AtomicU64,
    /// Chains not proved yet.
    left: AtomicU64,
    pub(crate) rows: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) redone: AtomicU64,
    witness: OnceLock<Arc<dyn Witness>>,
    /// The segments that were there.
    pub(crate) adopted: Mutex<Vec<SegmentId>>,
}

/// A row of a chain that is being proved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proved {
    slot: SlotId,
    hash: Hash,
    location: Location,
    head: RowHead,
}

impl Proof {
    /// Nothing to prove: the arena is new.
    pub(crate) fn none() -> Self {
        Self {
            pending: AtomicBool::new(false),
            buckets: 0,
            ceiling: 0,
            units_used: 0,
            proved: Box::default(),
            starts: RwLock::default(),
            next: AtomicU64::new(0),
            left: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            redone: AtomicU64::new(0),
            witness: OnceLock::new(),
            adopted: Mutex::default(),
        }
    }

    /// What rows are measured by.
    pub(crate) fn expect(&mut self, ceiling: u64, units_used: u32) {
        self.ceiling = ceiling;
        self.units_used = units_used;
    }

    /// From here on these chains count as unproved. Nobody else uses the arena yet.
    pub(crate) fn begin(&mut self, buckets: u64) -> std::io::Result<()> {
        self.buckets = buckets;
        self.proved = (0..buckets.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let words = self.units_used as usize * (crate::layout::UNIT_WORDS / 64) as usize;
        *self.starts.get_mut() = Some(Lazy::new(words)?);
        *self.left.get_mut() = buckets;
        *self.pending.get_mut() = true;
        Ok(())
    }

    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        // Acquire: pairs with the Release in `finish`.
        self.pending.load(order::PENDING_LOAD)
    }

    #[inline]
    pub(crate) fn is_proved(&self, bucket: u64) -> bool {
        // Acquire: pairs with the Release in `finish`; who sees the bit sees the chain as it was proved.
        bucket >= self.buckets
            || self.proved[(bucket / 64) as usize].load(order::PROVED_LOAD) & (1 << (bucket % 64)) != 0
    }

    /// A chain is proved; whether it was the last.
    fn finish(&self, bucket: u64) -> bool {
        self.proved[(bucket / 64) as usize].fetch_or(1 << (bucket % 64), order::PROVED_STORE);
        // AcqRel: whoever proves the last chain passes on what the others did.
        let was_last = self.left.fetch_sub(1, order::LEFT) == 1;
        if was_last {
            self.pending.store(false, order::PENDING_STORE);
        }
        was_last
    }

    pub(crate) fn take_starts(&self) -> Option<Lazy<AtomicU64>> {
        self.starts.write().take()
    }
}

impl Arena {
    /// Names who hears of the rows that are proved. Called once, before anybody uses the arena; a second witness hears
    /// nothing.
    pub fn watch(&self, witness: Arc<dyn Witness>) {
        let _second = self.proof.witness.set(witness);
    }

    /// Whether every row of the earlier process is proved.
    pub fn is_proved(&self) -> bool {
        !self.proof.is_pending()
    }

    /// Hands out some chains to be proved, by the numbers of their buckets. `None`: all are handed out.
    pub fn unproved(&self) -> Option<Range<u64>> {
        let proof = &self.proof;
        if !proof.is_pending() || proof.next.load(Ordering::Relaxed) >= proof.buckets {
            return None;
        }
        // Relaxed: only that no two callers get the same.
        let first = proof.next.fetch_add(CHAINS_AT_ONCE, Ordering::Relaxed);
        (first < proof.buckets).then(|| first..(first + CHAINS_AT_ONCE).min(proof.buckets))
    }

    /// The shard that a chain belongs to.
    pub fn shard_of_chain(bucket: u64) -> usize {
        bucket as usize % SHARDS
    }

    /// Proves a chain, unless somebody did.
    pub fn prove(&self, token: &ShardToken, bucket: u64) {
        debug_assert_eq!(token.shard(), Self::shard_of_chain(bucket), "the token of the chain's shard");
        if bucket + CHAINS_AHEAD < self.proof.buckets {
            self.prefetch_chain(bucket + CHAINS_AHEAD);
        }
        self.ensure_proved(bucket);
    }

    /// What recovery has found so far.
    pub fn recovery(&self) -> Recovery {
        let proof = &self.proof;
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        Recovery { rows: count(&proof.rows), dropped: count(&proof.dropped), redone: count(&proof.redone) }
    }

    /// Proves a bucket's chain before it is used. The caller holds the token of its shard.
    #[inline]
    pub(crate) fn ensure_proved(&self, bucket: u64) {
        if self.proof.is_pending() && !self.proof.is_proved(bucket) {
            self.prove_chain(bucket);
        }
    }

    #[cold]
    fn prove_chain(&self, bucket: u64) {
        let mut key = Vec::new();
        let kept = self.check_chain(bucket, &mut key);
        {
            let starts = self.proof.starts.read();
            for row in &kept {
                self.take_in(row, starts.as_ref(), &mut key);
            }
        }
        if self.proof.finish(bucket) {
            self.buckets.lock().overflow_free.extend(self.mending.unlinked());
        }
    }

    /// Counts a row as live, and tells the witness.
    fn take_in(&self, row: &Proved, starts: Option<&Lazy<AtomicU64>>, key: &mut Vec<u8>) {
        let segment = self.head_of(row.location);
        self.add_live(segment, row.head.total_bytes);
        self.note_expiry(segment, row.head.expiry);
        let bits = row.location.bits();
        if let Some(word) = starts.and_then(|starts| starts.get((bits / 64) as usize)) {
            // Relaxed: read when the last chain is proved, which orders it.
            word.fetch_or(1 << (bits % 64), Ordering::Relaxed);
        }
        self.proof.rows.fetch_add(1, Ordering::Relaxed);
        if let Some(witness) = self.proof.witness.get() {
            key.clear();
            self.append_key(row.location, &row.head, key);
            witness.row(&row.head, self.tag(segment).queue, key);
        }
    }

    /// Clears the slots of a chain that do not hold a row of it, and all but the newest of two for one key; the rest.
    pub(crate) fn check_chain(&self, bucket: u64, key: &mut Vec<u8>) -> Vec<Proved> {
        self.ensure_mended(bucket);
        let mut seen: Vec<Proved> = Vec::with_capacity(8);
        for (slot, value) in self.slots(bucket) {
            if value == 0 {
                continue;
            }
            let location = Location::from_bits(value);
            let found = self.prove_row(location, key);
            let found = found.filter(|(hash, head)| slot_prefix(*hash, head.table) == value & !LOCATION_MASK);
            let Some((hash, head)) = found else {
                self.clear_slot(slot, true);
                continue;
            };
            if bucket_of(self.index_word(), hash) != bucket {
                self.clear_slot(slot, !self.is_in_its_chain(bucket, hash, location));
                continue;
            }
            let row = Proved { slot, hash, location, head };
            let twin = seen.iter().position(|other| {
                other.hash == hash
                    && (other.location == location || self.same_key(other.location, location, &head))
            });
            match twin {
                None => seen.push(row),
                // An entry copied forward and not yet cleared at its old place is no loss.
                Some(twin) if seen[twin].location == location => self.clear_slot(slot, false),
                Some(twin) if seen[twin].head.stamp >= head.stamp => self.clear_slot(slot, true),
                Some(twin) => {
                    self.clear_slot(seen[twin].slot, true);
                    seen[twin] = row;
                }
            }
        }
        seen
    }

    /// Whether a row met outside its chain stands in it too: that is what an unfinished split left, and no loss. A
    /// split never leaves its shard, so a chain of another one need not be asked.
    fn is_in_its_chain(&self, met_in: u64, hash: Hash, location: Location) -> bool {
        let bucket = bucket_of(self.index_word(), hash);
        if Self::shard_of_chain(bucket) != Self::shard_of_chain(met_in) {
            return false;
        }
        self.ensure_mended(bucket);
        self.slots(bucket).any(|(_, value)| value != 0 && value & LOCATION_MASK == location.bits())
    }

    pub(crate) fn clear_slot(&self, slot: SlotId, lost: bool) {
        self.set_slot(slot, 0);
        self.rows.fetch_sub(1, Ordering::Relaxed);
        self.proof.dropped.fetch_add(u64::from(lost), Ordering::Relaxed);
    }

    fn same_key(&self, other: Location, location: Location, head: &RowHead) -> bool {
        let mut key = Vec::new();
        self.append_key(location, head, &mut key);
        let Some(other_head) = self.parse(other) else { return false };
        self.is_row_of(other, &other_head, head.table, &key)
    }

    /// Proves the row at a location: in a segment for rows, whole, stamped, bearing its check.
    pub(crate) fn prove_row(&self, location: Location, key: &mut Vec<u8>) -> Option<(Hash, RowHead)> {
        if location.unit() >= self.proof.units_used {
            return None;
        }
        let segment = self.head_of(location);
        // A word beyond the run could lie in pages that were never committed.
        if self.units(segment) == 0
            || self.tag(segment).queue == Queue::Redo
            || !self.fits_run(location, MIN_ROW_BYTES / 8)
        {
            return None;
        }
        let head = self.parse_within(location)?;
        if head.stamp == 0 || head.stamp >= self.proof.ceiling || usize::from(head.table.0) >= MAX_TABLES {
            return None;
        }
        if head.key_len > MAX_KEY_BYTES || !self.bears_check(location, &head, key) {
            return None;
        }
        key.clear();
        self.append_key(location, &head, key);
        Some((self.hash(head.table, key), head))
    }

    /// As `Arena::parse`, but looks at the words behind the header only if they lie in the run.
    fn parse_within(&self, location: Location) -> Option<RowHead> {
        let header = self.map.load(self.layout.at(location) + 1, Ordering::Relaxed);
        let words = 2 + optional_words(header_flags(header)) as u64;
        if !self.fits_run(location, words) {
            return None;
        }
        self.parse(location)
    }

    fn bears_check(&self, location: Location, head: &RowHead, scratch: &mut Vec<u8>) -> bool {
        let at = self.layout.at(location);
        let header = self.map.load(at + 1, Ordering::Relaxed);
        let mut check = Check::new(header);
        let mut next = at + 2;
        for flag in [FLAG_LONG, FLAG_EXPIRY, FLAG_CLIENT, FLAG_CAS] {
            if head.flags & flag != 0 {
                if flag != FLAG_EXPIRY {
                    check.word(self.map.load(next, Ordering::Relaxed));
                }
                next += 1;
            }
        }
        let words = &self.map.words()[next as usize..(at as usize + head.total_bytes / 8)];
        scratch.clear();
        crate::row::copy::append(words, 0, head.key_len, scratch);
        check.bytes(scratch);
        scratch.clear();
        let payload = &words[head.key_len.div_ceil(8)..];
        crate::row::copy::append(payload, 0, head.payload_len, scratch);
        check.bytes(scratch);
        has_check(header, &check)
    }
}
