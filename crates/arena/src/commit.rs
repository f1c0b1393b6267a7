//! Commits of many rows: one word each in the superblock, and the redo record that recovery finishes them with.

use std::sync::atomic::Ordering;

use crate::layout::{COMMIT_SLOTS, Hash, Location, Queue, SegmentId, SegmentTag, TableId, UNIT_WORDS, word};
use crate::{Arena, order};

/// States of a commit word, in its low byte; a committed one has the redo's first segment above.
const FREE: u64 = 0;
const STAGING: u64 = 1;
const DOOMED: u64 = 2;
const COMMITTED: u64 = 3;

/// First word of a redo segment: `REDORECO` in little-endian bytes.
const REDO_MAGIC: u64 = u64::from_le_bytes(*b"REDORECO");
/// Words before the entries: magic, next segment + 1, entries here, check.
const REDO_HEADER_WORDS: u64 = 8;
/// Words of one entry: hash, table and what is there, new, old, old stamp, done.
const ENTRY_WORDS: u64 = 6;
/// The word of an entry that says it is swapped in; not covered by the check.
const DONE_WORD: u64 = 5;
/// Entries of one redo segment.
const ENTRIES: usize = ((UNIT_WORDS - REDO_HEADER_WORDS) / ENTRY_WORDS) as usize;
/// Entries that lie on one page of the kernel's, of 4 KiB, or fewer.
const ENTRIES_A_PAGE: usize = 4_096 / (8 * ENTRY_WORDS as usize);
/// Bits of an entry's second word, above the table: there is a new version, there is an old one.
const HAS_NEW: u64 = 1 << 16;
const HAS_OLD: u64 = 1 << 17;

/// State of a commit of many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitState {
    /// Nobody's.
    Free,
    /// Marks are being set; any single-key write may doom it.
    Staging,
    /// It must start again or fail.
    Doomed,
    /// It cannot fail any more; its rows are being swapped in.
    Committed,
}

/// One word of the superblock, claimed by one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommitSlot(pub u8);

/// One row of a commit of many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedoEntry {
    /// Hash of its key.
    pub hash: Hash,
    /// Its table.
    pub table: TableId,
    /// The new version; `None` deletes.
    pub new: Option<Location>,
    /// The version that it replaces.
    pub old: Option<Location>,
    /// That version's stamp; 0 if there is none.
    pub old_stamp: u64,
}

/// A redo record in the arena: a chain of segments.
#[derive(Debug)]
#[must_use = "a redo record takes memory until it is freed"]
pub struct Redo {
    segments: Vec<SegmentId>,
}

impl Redo {
    /// The first segment of the chain.
    pub fn head(&self) -> SegmentId {
        self.segments[0]
    }
}

/// Where the words of an entry lie.
fn entry_word(arena: &Arena, segment: SegmentId, index: usize) -> u64 {
    arena.layout.at(Location::in_run(segment.0, REDO_HEADER_WORDS + index as u64 * ENTRY_WORDS))
}

fn encode(entry: &RedoEntry) -> [u64; 5] {
    let there =
        (if entry.new.is_some() { HAS_NEW } else { 0 }) | (if entry.old.is_some() { HAS_OLD } else { 0 });
    [
        entry.hash.0,
        u64::from(entry.table.0) | there,
        entry.new.map_or(0, Location::bits),
        entry.old.map_or(0, Location::bits),
        entry.old_stamp,
    ]
}

fn decode(words: [u64; 5]) -> RedoEntry {
    let there = |bit, location| (words[1] & bit != 0).then(|| Location::from_bits(location));
    RedoEntry {
        hash: Hash(words[0]),
        table: TableId(words[1] as u16),
        new: there(HAS_NEW, words[2]),
        old: there(HAS_OLD, words[3]),
        old_stamp: words[4],
    }
}

fn check_words<const N: usize>(crc: u32, words: &[u64; N]) -> u32 {
    let bytes = words.map(u64::to_le_bytes);
    crc32c::crc32c_append(crc, bytes.as_flattened())
}

impl Arena {
    fn commit_word(slot: CommitSlot) -> u64 {
        word::COMMITS + u64::from(slot.0) % COMMIT_SLOTS as u64
    }

    /// Claims a free commit word and sets it to staging.
    pub fn claim_commit(&self) -> Option<CommitSlot> {
        (0..COMMIT_SLOTS as u8)
            .map(CommitSlot)
            .find(|slot| self.map.compare_exchange(Self::commit_word(*slot), FREE, STAGING))
    }

    /// The state of a commit.
    #[inline]
    pub fn commit_state(&self, slot: CommitSlot) -> CommitState {
        // Acquire: pairs with `seal_commit`; who sees a commit committed sees its redo record.
        match self.map.load(Self::commit_word(slot), order::COMMIT_LOOK) & 0xff {
            STAGING => CommitState::Staging,
            DOOMED => CommitState::Doomed,
            COMMITTED => CommitState::Committed,
            _ => CommitState::Free,
        }
    }

    /// Dooms a staging commit; false if it is not staging.
    pub fn doom(&self, slot: CommitSlot) -> bool {
        self.map.compare_exchange(Self::commit_word(slot), STAGING, DOOMED)
    }

    /// Commits: staging to committed in one store, the commit point; false if it was doomed.
    pub fn seal_commit(&self, slot: CommitSlot, redo: &Redo) -> bool {
        self.map.compare_exchange(
            Self::commit_word(slot),
            STAGING,
            COMMITTED | (u64::from(redo.head().0) << 8),
        )
    }

    /// A doomed commit stages again.
    pub fn reset_commit(&self, slot: CommitSlot) {
        self.map.compare_exchange(Self::commit_word(slot), DOOMED, STAGING);
    }

    /// Frees the commit word: the commit is applied whole, or given up.
    pub fn finish_commit(&self, slot: CommitSlot) {
        self.map.store(Self::commit_word(slot), FREE, Ordering::Release);
    }

    /// Writes the redo record of a commit. `None`: no memory.
    pub fn write_redo(&self, entries: impl ExactSizeIterator<Item = RedoEntry>) -> Option<Redo> {
        let redo = self.reserve_redo(entries.len())?;
        self.fill_redo(&redo, entries);
        Some(redo)
    }

    /// Makes room for the redo record of so many rows, and has the kernel bring its memory, so that to write it waits
    /// for nothing. `None`: no memory.
    pub fn reserve_redo(&self, rows: usize) -> Option<Redo> {
        let tag = SegmentTag { table: TableId(0), queue: Queue::Redo, ttl_class: 0, schema: 0 };
        let count = rows.div_ceil(ENTRIES).max(1);
        let segments: Vec<_> = (0..count).map_while(|_| self.allocate(1, &tag)).collect();
        if segments.len() < count {
            self.free_redo(Redo { segments });
            return None;
        }
        for (place, segment) in segments.iter().enumerate() {
            self.seal(*segment);
            let here = rows.saturating_sub(place * ENTRIES).min(ENTRIES);
            for index in (0..here).step_by(ENTRIES_A_PAGE) {
                self.map.store(entry_word(self, *segment, index), 0, Ordering::Relaxed);
            }
        }
        Some(Redo { segments })
    }

    /// Writes a redo record into its room; there are as many entries as it was made for.
    pub fn fill_redo(&self, redo: &Redo, mut entries: impl ExactSizeIterator<Item = RedoEntry>) {
        for (place, segment) in redo.segments.iter().enumerate() {
            let here = entries.len().min(ENTRIES);
            self.write_redo_segment(*segment, redo.segments.get(place + 1), here, &mut entries);
        }
    }

    fn write_redo_segment(
        &self,
        segment: SegmentId,
        next: Option<&SegmentId>,
        count: usize,
        entries: &mut impl Iterator<Item = RedoEntry>,
    ) {
        let header = [next.map_or(0, |next| u64::from(next.0) + 1), count as u64];
        let mut crc = check_words(0, &header);
        // Pairs as in `write_row`.
        std::sync::atomic::fence(crate::order::WRITE_FENCE);
        for (index, entry) in entries.take(count).enumerate() {
            let words = encode(&entry);
            crc = check_words(crc, &words);
            let at = entry_word(self, segment, index);
            for (i, word) in words.into_iter().chain([0]).enumerate() {
                self.map.store(at + i as u64, word, Ordering::Relaxed);
            }
        }
        let at = self.layout.at(Location::in_run(segment.0, 0));
        for (i, word) in [REDO_MAGIC, header[0], header[1], u64::from(crc)].into_iter().enumerate() {
            self.map.store(at + i as u64, word, Ordering::Relaxed);
        }
    }

    /// Entry `index` is swapped in; called under the shard's lock, after the swap.
    pub fn redo_done(&self, redo: &Redo, index: usize) {
        let at = entry_word(self, redo.segments[index / ENTRIES], index % ENTRIES);
        self.map.store(at + DONE_WORD, 1, Ordering::Release);
    }

    /// Frees a redo record; its commit word is free, or was never sealed with it.
    pub fn free_redo(&self, redo: Redo) {
        for segment in redo.segments {
            self.recycle(segment);
        }
    }

    /// The commits that were sealed and not finished, as the unfinished entries of their redo records.
    pub(crate) fn unfinished_commits(&self, units_used: u32) -> Result<Vec<RedoEntry>, &'static str> {
        let mut entries = Vec::new();
        for slot in (0..COMMIT_SLOTS as u8).map(CommitSlot) {
            let word = self.map.load(Self::commit_word(slot), Ordering::Acquire);
            match (word & 0xff, word >> 8) {
                (FREE | STAGING | DOOMED, 0) => {}
                (COMMITTED, head) if head < u64::from(units_used) => {
                    self.read_redo(SegmentId(head as u32), units_used, &mut entries)?;
                }
                _ => return Err("a commit word is not valid"),
            }
        }
        Ok(entries)
    }

    /// Frees all commit words; what they stood for is applied or void.
    pub(crate) fn clear_commits(&self) {
        for slot in (0..COMMIT_SLOTS as u8).map(CommitSlot) {
            if self.commit_state(slot) != CommitState::Free {
                self.finish_commit(slot);
            }
        }
    }

    fn read_redo(
        &self,
        head: SegmentId,
        units_used: u32,
        out: &mut Vec<RedoEntry>,
    ) -> Result<(), &'static str> {
        let mut next = Some(head);
        // A chain cannot have more segments than there are, so a loop in it ends.
        for _ in 0..units_used {
            let Some(segment) = next else { return Ok(()) };
            if segment.0 >= units_used || self.units(segment) != 1 || self.tag(segment).queue != Queue::Redo {
                return Err("a redo record is not in a redo segment");
            }
            let at = self.layout.at(Location::in_run(segment.0, 0));
            let [magic, link, count, check] = [0, 1, 2, 3].map(|i| self.map.load(at + i, Ordering::Relaxed));
            if magic != REDO_MAGIC || count > ENTRIES as u64 || link > u64::from(units_used) {
                return Err("a redo record has no header");
            }
            let mut crc = check_words(0, &[link, count]);
            for index in 0..count as usize {
                let at = entry_word(self, segment, index);
                let words = [0, 1, 2, 3, 4].map(|i| self.map.load(at + i, Ordering::Relaxed));
                crc = check_words(crc, &words);
                if self.map.load(at + DONE_WORD, Ordering::Relaxed) == 0 {
                    out.push(decode(words));
                }
            }
            if u64::from(crc) != check {
                return Err("the check field of a redo record is wrong");
            }
            next = link.checked_sub(1).map(|unit| SegmentId(unit as u32));
        }
        if next.is_none() { Ok(()) } else { Err("a redo record does not end") }
    }
}
