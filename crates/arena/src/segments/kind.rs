//! The first word of a segment's header: what its units are used for.

use crate::layout::{Queue, SegmentTag, TableId, UNIT_BYTES};

/// State of a unit in its header word: free.
pub(crate) const UNIT_FREE: u64 = 0;

/// State of a unit: the first of a segment.
pub(crate) const UNIT_HEAD: u64 = 1;

/// State of a unit: a further one of the segment whose head lies `units` before it.
pub(crate) const UNIT_TAIL: u64 = 2;

/// Takes a header word apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) state: u64,
    /// Units of a head; distance from the head of a tail.
    pub(crate) units: u32,
    pub(crate) table: TableId,
    pub(crate) queue: u8,
    pub(crate) ttl_class: u8,
}

impl Kind {
    pub(crate) fn head(units: u32, tag: &SegmentTag) -> Self {
        let queue = match tag.queue {
            Queue::Small => 0,
            Queue::Main => 1,
            Queue::Redo => 2,
        };
        Self { state: UNIT_HEAD, units, table: tag.table, queue, ttl_class: tag.ttl_class }
    }

    pub(crate) fn tail(distance: u32) -> Self {
        Self { state: UNIT_TAIL, units: distance, table: TableId(0), queue: 0, ttl_class: 0 }
    }

    pub(crate) fn word(self) -> u64 {
        self.state
            | (u64::from(self.units) << 8)
            | (u64::from(self.table.0) << 32)
            | (u64::from(self.queue) << 48)
            | (u64::from(self.ttl_class) << 56)
    }

    #[inline]
    pub(crate) fn of(word: u64) -> Self {
        Self {
            state: word & 0xff,
            units: (word >> 8) as u32 & 0xff_ffff,
            table: TableId((word >> 32) as u16),
            queue: (word >> 48) as u8,
            ttl_class: (word >> 56) as u8,
        }
    }

    /// Bytes of a head's segment; none of what is no head.
    #[inline]
    pub(crate) fn bytes(self) -> u64 {
        if self.state == UNIT_HEAD { u64::from(self.units) * UNIT_BYTES as u64 } else { 0 }
    }

    pub(crate) fn queue(self) -> Queue {
        match self.queue {
            0 => Queue::Small,
            1 => Queue::Main,
            _ => Queue::Redo,
        }
    }

    /// Whether the queue is one that exists: asked of words that nobody vouches for.
    pub(crate) fn has_queue(self) -> bool {
        self.queue <= 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_round_trip() {
        let tag = SegmentTag { table: TableId(4095), queue: Queue::Main, ttl_class: 7, schema: 3 };
        let kind = Kind::head(2048, &tag);
        assert_eq!(Kind::of(kind.word()), kind);
        assert_eq!(kind.queue(), Queue::Main);
    }
}
