//! Rows of a whole table in the order of memory.
//!
//! Buckets lie in the order of hashes, rows in the order of their writes. Who reads many rows of a table first gathers
//! what the buckets name, group by group under the shards' locks, and reads the rows later, without a lock and in
//! whatever order suits memory. A row that was gathered never changes; only its memory may be recycled, which its
//! generation tells.

use std::sync::atomic::Ordering;

use crate::index::ScanShape;
use crate::layout::{Hash, LOCATION_MASK, Location, TAG_SHIFT, TableId, slot_tag};
use crate::read::RowRead;
use crate::{Arena, Mapped, ShardToken};

/// A row as its bucket named it, under the shard's lock.
#[derive(Clone, Copy, Debug)]
pub struct Gathered {
    /// The word of its slot.
    slot: u64,
    /// The low half of its unit's generation: no unit is recycled so often while a scan goes on.
    generation: u32,
    /// Its group, as the caller counts.
    group: u32,
}

impl Gathered {
    /// Where the row lies in its file.
    #[inline]
    pub fn place(&self) -> u64 {
        self.slot & LOCATION_MASK
    }

    /// The number that the caller gave its group.
    #[inline]
    pub fn group(&self) -> u32 {
        self.group
    }

    /// Whether two rows of one group may have the same key, as far as the index knows.
    #[inline]
    pub fn is_like(&self, other: &Self) -> bool {
        (self.slot ^ other.slot) >> TAG_SHIFT == 0
    }

    /// Whether it may be a row with this hash, which is of its group.
    #[inline]
    pub fn may_be(&self, hash: Hash) -> bool {
        slot_tag(hash) == self.slot >> TAG_SHIFT
    }
}

impl Arena {
    /// Appends what the index names of a table's rows in one group, which is to be called `number`; the token is of
    /// [`Arena::shard_of_group`]. A slot has nine bits of the table, so rows of another one may be among them.
    pub fn gather_group(
        &self,
        token: &ShardToken,
        shape: ScanShape,
        group: u64,
        table: TableId,
        number: u32,
        out: &mut Vec<Gathered>,
    ) {
        self.each_of_group(token, shape, group, table, |slot| {
            // Relaxed: no unit is recycled as long as a slot names it, and the lock keeps the slot.
            let generation = self.generation(Location::from_bits(slot)).load(Ordering::Relaxed) as u32;
            out.push(Gathered { slot, generation, group: number });
        });
    }
}

impl Mapped {
    /// The row that was gathered. `None`: its memory was recycled meanwhile.
    #[inline]
    pub fn gathered_row(&self, gathered: &Gathered) -> Option<RowRead<'_>> {
        self.row_of_slot(Location::from_bits(gathered.slot), gathered.generation)
    }

    /// Asks for the first so many bytes of a row that was gathered.
    #[inline]
    pub fn prefetch_gathered(&self, gathered: &Gathered, bytes: usize) {
        self.prefetch_bytes(Location::from_bits(gathered.slot), bytes);
    }
}
