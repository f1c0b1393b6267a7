//! The last step of recovery: when every row is proved, the segments they lie in are put in order.
//!
//! A segment is walked from row to row. Where the walk of an earlier process's segment would lose its way, in bytes
//! that a dying writer left half written, the places of its rows are kept in private memory instead, and the walk goes
//! by these. Nothing in the file is changed: readers may be at it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::file::map::Lazy;
use crate::layout::{Location, SegmentId, SegmentTag, UNIT_WORDS};
use crate::row::FILLER_TABLE;
use crate::{Arena, Recovery};

/// What settling an arena came to.
#[derive(Debug, Default)]
pub struct Settled {
    /// The segments of the earlier process that hold rows, by order of allocation; sealed.
    pub segments: Vec<SegmentId>,
    /// Those that held none and are free now: what they were for, and how many units they had.
    pub freed: Vec<(SegmentTag, u32)>,
    /// Rows that share bytes with another: one is an image of a row inside the other's payload. They are to be taken
    /// out of the index.
    pub overlapping: Vec<Location>,
}

impl Arena {
    /// Puts the segments of the earlier process in order, and frees those without rows. Every row is proved; a second
    /// call finds nothing to do.
    pub fn settle(&self) -> Settled {
        debug_assert!(self.is_proved(), "rows are proved before segments are settled");
        let mut settled = Settled::default();
        let Some(starts) = self.proof.take_starts() else { return settled };
        for segment in std::mem::take(&mut *self.proof.adopted.lock()) {
            let (tag, units) = (self.tag(segment), self.units(segment));
            if self.settle_segment(segment, &starts, &mut settled.overlapping) {
                settled.segments.push(segment);
            } else {
                settled.freed.push((tag, units));
            }
        }
        settled.segments.sort_by_key(|segment| self.order(*segment));
        settled.segments.iter_mut().for_each(|segment| *segment = self.outer_segment(*segment));
        settled.overlapping.iter_mut().for_each(|row| *row = self.outer_location(*row));
        self.proof.dropped.fetch_add(settled.overlapping.len() as u64, Ordering::Relaxed);
        self.proof.rows.fetch_sub(settled.overlapping.len() as u64, Ordering::Relaxed);
        settled
    }

    /// Proves and settles at once: nobody else uses the arena yet.
    pub fn recover(&mut self) -> Recovery {
        while let Some(chains) = self.unproved() {
            for bucket in chains {
                self.ensure_proved(bucket);
            }
        }
        let mut key = Vec::new();
        for location in self.settle().overlapping {
            let location = location.in_file();
            let Some(hash) = self.hash_of_row(location, &mut key) else { continue };
            let token = crate::ShardToken { shard: Self::shard_of(hash) as u16 };
            if let Some(slot) = self.find_location(&token, hash, location) {
                self.clear_slot(slot, false);
                self.sub_live(
                    self.head_of(location),
                    self.parse(location).map_or(0, |head| head.total_bytes),
                );
            }
        }
        self.recovery()
    }

    /// Settles one segment; false if there was no row in it, and it is free now.
    fn settle_segment(
        &self,
        segment: SegmentId,
        starts: &Lazy<AtomicU64>,
        overlapping: &mut Vec<Location>,
    ) -> bool {
        let first = u64::from(segment.0) * UNIT_WORDS;
        let words = u64::from(self.units(segment)) * UNIT_WORDS;
        let (mut end, mut walks, mut rows) = (first, true, Vec::new());
        for start in set_bits(starts, first, first + words) {
            let location = Location::from_bits(start);
            let head = self.parse(location);
            let Some(head) = head.filter(|_| start >= end) else {
                overlapping.push(location);
                continue;
            };
            walks = walks && self.walk_arrives(end, start);
            rows.push((start - first) as u32);
            end = start + head.total_bytes as u64 / 8;
        }
        if rows.is_empty() {
            self.recycle(segment);
            return false;
        }
        if !walks {
            self.segments.listed.keep(segment, rows);
        }
        self.set_used(segment, (end - first) * 8);
        true
    }

    /// Whether a walk from row to row, begun at one place, comes to the other.
    fn walk_arrives(&self, from: u64, to: u64) -> bool {
        let mut at = from;
        while at < to {
            let location = Location::from_bits(at);
            let first = self.map.load(self.layout.at(location), Ordering::Relaxed);
            let words = if first as u16 == FILLER_TABLE {
                first >> 16
            } else {
                self.parse(location).map_or(0, |head| head.total_bytes as u64 / 8)
            };
            if words == 0 {
                return false;
            }
            at = at.saturating_add(words);
        }
        at == to
    }
}

/// The numbers of the set bits from `first` to before `end`, both multiples of 64.
fn set_bits(bits: &[AtomicU64], first: u64, end: u64) -> impl Iterator<Item = u64> {
    (first / 64..end / 64).flat_map(move |word| {
        // Relaxed: whoever proved the last chain has passed them on.
        let mut rest = bits.get(word as usize).map_or(0, |bits| bits.load(Ordering::Relaxed));
        std::iter::from_fn(move || {
            let bit = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            (bit < 64).then(|| word * 64 + u64::from(bit))
        })
    })
}
