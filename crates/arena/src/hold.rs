//! Rows held in their place, so that their bytes can be sent from where they lie.
//!
//! A segment is recycled only when nobody holds it. A writer holds it from its reservation on; whoever sends a row counts
//! as one, too, between finding it and letting it go. Whoever wants to recycle closes the segment first, which is
//! refused while somebody holds it, and from then on nobody can: a reader copies in place of holding.

use std::sync::atomic::Ordering;

use crate::arenas::Arenas;
use crate::failpoint::{self, Point};
use crate::layout::SegmentId;
use crate::read::RowRead;
use crate::{Arena, Mapped, fill, order};

/// Bytes of a row's payload that stay what and where they are until [`Arenas::let_go`]. Dropping one without that would
/// keep its segment for ever.
#[derive(Debug)]
#[must_use = "the segment stays until the row is let go"]
pub struct HeldRow {
    segment: SegmentId,
    /// The first word of the payload in its file.
    first_word: u64,
    /// Where the held bytes begin behind it, and how many they are.
    from: usize,
    len: usize,
    /// The mapping that they lie in.
    base: usize,
}

impl HeldRow {
    /// How many bytes are held.
    pub fn byte_count(&self) -> usize {
        self.len
    }
}

impl Arena {
    /// Closes a sealed segment, so that nobody can hold it any more. False: somebody does.
    pub fn close(&self, segment: SegmentId) -> bool {
        // Acquire: pairs with the Release in `release`; what holders wrote and read comes before.
        self.state(segment).fill.fetch_update(order::FILL_CLOSE, Ordering::Relaxed, fill::closed).is_ok()
    }

    /// Counts the caller among those who hold a segment; false if it is closed, or no segment begins there.
    pub(crate) fn hold_segment(&self, segment: SegmentId) -> bool {
        // Acquire: pairs with the Release in `open_fill`: who holds what was closed and opened again sees the
        // generation raised in between.
        self.state(segment).fill.fetch_update(order::FILL_HOLD, Ordering::Relaxed, fill::held).is_ok()
    }

    fn hold(&self, read: &RowRead<'_>, from: usize, len: usize) -> Option<HeldRow> {
        let end = from.checked_add(len).filter(|end| *end <= read.head().payload_len)?;
        let (location, first_word) = (read.inner_location(), read.payload_at());
        let segment = self.head_of(location);
        debug_assert!(first_word * 8 + (end as u64) <= self.map.words().len() as u64 * 8);
        failpoint::reach(Point::Hold);
        if !self.hold_segment(segment) {
            return None;
        }
        failpoint::reach(Point::Held);
        // Held now: if the row was whole until here, it stays so.
        if !read.is_valid() {
            self.release(segment);
            return None;
        }
        Some(HeldRow { segment, first_word, from, len, base: self.base() })
    }
}

impl Mapped {
    pub(crate) fn base(&self) -> usize {
        self.map.words().as_ptr().addr()
    }

    fn held_bytes(&self, row: &HeldRow) -> &[u8] {
        assert_eq!(row.base, self.base(), "a row of this arena");
        let first = row.first_word as usize;
        let words = &self.map.words()[first..first + (row.from + row.len).div_ceil(8)];
        // SAFETY: as many bytes as the words have, in the mapping. They are the payload of a row that was published, which
        // nobody writes to until its segment is recycled; that is not before the row is let go, which takes the value
        // that is borrowed here. No other process writes to the file.
        let payload = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), words.len() * 8) };
        &payload[row.from..row.from + row.len]
    }
}

impl Arenas {
    /// Holds bytes `from..from + len` of the payload of a row just found; `None` where the row was recycled, or is about
    /// to be: then it is copied, or looked for again.
    pub fn hold(&self, read: &RowRead<'_>, from: usize, len: usize) -> Option<HeldRow> {
        let arena = self.of(read.is_shared());
        let row = arena.hold(read, from, len)?;
        Some(HeldRow { segment: arena.outer_segment(row.segment), ..row })
    }

    /// The bytes that are held.
    pub fn held_bytes(&self, row: &HeldRow) -> &[u8] {
        self.in_segment(row.segment).0.held_bytes(row)
    }

    /// Gives the row up to recycling again.
    #[expect(clippy::needless_pass_by_value, reason = "nobody may look at the bytes afterwards")]
    pub fn let_go(&self, row: HeldRow) {
        let (arena, segment) = self.in_segment(row.segment);
        arena.release(segment);
    }

    /// See [`Arena::close`].
    pub fn close(&self, segment: SegmentId) -> bool {
        let (arena, segment) = self.in_segment(segment);
        arena.close(segment)
    }
}
