//! Rows pinned, so that their bytes can be sent from where they lie.
//!
//! A segment is recycled only when nobody holds it. A writer holds it from its reservation on; a thread that sends a
//! row counts as one, too, between finding it and letting it go. Whoever wants to recycle closes the segment first,
//! which is refused while somebody holds it, and from then on nobody can: a reader copies in place of holding.
//!
//! A panic may drop a row that is pinned without unpinning it. Such a row is put on a list, and whoever finds a segment
//! held looks there: so no segment stays for ever, and unpinning in the common way costs nothing of this.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::failpoint::{self, Point};
use crate::layout::SegmentId;
use crate::read::RowRead;
use crate::segments::fill;
use crate::{Arena, Mapped, order};

/// Rows that were dropped without being let go: the number of the mapping, and the segment in it.
static DROPPED: Mutex<Vec<(u64, SegmentId)>> = Mutex::new(Vec::new());
/// How many there are, so that nobody takes the lock for nothing. Release and Acquire: whoever sees one finds it.
static DROPPED_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Bytes of a row's payload that stay what and where they are until [`Arenas::unpin`]. One that is dropped without
/// that is let go by the next thread that wants its segment.
#[derive(Debug)]
#[must_use = "the segment stays until the row is let go"]
pub struct PinnedRow {
    /// As it is called in its file.
    pub(crate) segment: SegmentId,
    pub(crate) is_shared: bool,
    /// The first word of the payload in its file.
    first_word: u64,
    /// Where the pinned bytes begin behind it, and how many they are.
    from: usize,
    len: usize,
    /// The mapping that they lie in.
    mapping: u64,
}

impl Drop for PinnedRow {
    #[cold]
    fn drop(&mut self) {
        let mut dropped = DROPPED.lock();
        dropped.push((self.mapping, self.segment));
        DROPPED_COUNT.fetch_add(1, Ordering::Release);
    }
}

impl PinnedRow {
    /// How many bytes are pinned.
    pub fn byte_count(&self) -> usize {
        self.len
    }
}

impl Arena {
    /// Closes a sealed segment, so that nobody can hold it any more. False: somebody does.
    pub fn close(&self, segment: SegmentId) -> bool {
        // Acquire: pairs with the Release in `release`; what holders wrote and read comes before.
        let close =
            || self.state(segment).fill.fetch_update(order::FILL_CLOSE, Ordering::Relaxed, fill::closed);
        close().is_ok() || (self.release_dropped() && close().is_ok())
    }

    /// Lets go of the rows that were dropped without; whether there were any.
    #[inline]
    pub(crate) fn release_dropped(&self) -> bool {
        DROPPED_COUNT.load(Ordering::Acquire) > 0 && self.release_all_dropped()
    }

    #[cold]
    fn release_all_dropped(&self) -> bool {
        let mut dropped = DROPPED.lock();
        let before = dropped.len();
        dropped.retain(|&(mapping, segment)| {
            let is_mine = mapping == self.number;
            if is_mine {
                self.release(segment);
            }
            !is_mine
        });
        DROPPED_COUNT.fetch_sub(before - dropped.len(), Ordering::Release);
        dropped.len() < before
    }

    /// Counts the caller among those who hold a segment; false if it is closed, or no segment begins there.
    pub(crate) fn pin_segment(&self, segment: SegmentId) -> bool {
        // Acquire: pairs with the Release in `open_fill`: who holds what was closed and opened again sees the
        // generation raised in between.
        self.state(segment).fill.fetch_update(order::FILL_HOLD, Ordering::Relaxed, fill::held).is_ok()
    }

    pub(crate) fn pin(&self, read: &RowRead<'_>, from: usize, len: usize) -> Option<PinnedRow> {
        let end = from.checked_add(len).filter(|end| *end <= read.head().payload_len)?;
        let (location, first_word) = (read.inner_location(), read.payload_at());
        let segment = self.head_of(location);
        debug_assert!(first_word * 8 + (end as u64) <= self.map.words().len() as u64 * 8);
        failpoint::reach(Point::Pin);
        if !self.pin_segment(segment) {
            return None;
        }
        failpoint::reach(Point::Held);
        // Held now: if the row was whole until here, it stays so.
        if !read.is_valid() {
            self.release(segment);
            return None;
        }
        let (is_shared, mapping) = (self.is_shared, self.number);
        Some(PinnedRow { segment, is_shared, first_word, from, len, mapping })
    }
}

impl Mapped {
    pub(crate) fn base(&self) -> usize {
        self.map.words().as_ptr().addr()
    }

    pub(crate) fn pinned_bytes(&self, row: &PinnedRow) -> &[u8] {
        assert_eq!(row.mapping, self.number, "a row of this arena");
        let first = row.first_word as usize;
        let words = &self.map.words()[first..first + (row.from + row.len).div_ceil(8)];
        // SAFETY: as many bytes as the words have, in the mapping. They are the payload of a row that was published,
        // which nobody writes to until its segment is recycled; that is not before the row is let go, which takes the
        // value that is borrowed here. No other process writes to the file.
        let payload = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), words.len() * 8) };
        &payload[row.from..row.from + row.len]
    }
}
