//! Rows of a table that were gathered from their buckets, in the order of memory.

use arena::Gathered;

/// Rows gathered at once at most: over a table of a million the rows that are read one after the other are still
/// pages apart and no more, and the two lists of a batch take 2 MiB.
pub(super) const BATCH_ROWS: usize = 64 << 10;
/// Fewer are read in the order in which they came.
const ORDERED_MIN: usize = 256;
/// Into so many parts memory is divided to bring rows in its order: within a part the order does not matter, for its
/// rows lie a few pages apart.
const PARTS: usize = 2_048;
/// Rows asked for ahead of the one that is read: with 12 a row of 150 bytes took 98 ns, with 32 it takes 81, and 235
/// without.
const AHEAD: usize = 32;

/// One batch.
#[derive(Debug, Default)]
pub(super) struct Batch {
    rows: Vec<Gathered>,
    /// Room to bring them in order.
    other: Vec<Gathered>,
    /// The row to be read next.
    next: usize,
}

impl Batch {
    /// Forgets the rows of the batch before.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.next = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Lets `add` append the rows of one group. False: two of them may have one key, as far as their slots tell, so
    /// that the one could not be found again without the other; then none is taken.
    pub(super) fn take(&mut self, add: impl FnOnce(&mut Vec<Gathered>)) -> bool {
        let before = self.rows.len();
        add(&mut self.rows);
        let group = &self.rows[before..];
        let alike =
            group.iter().enumerate().any(|(at, row)| group[..at].iter().any(|other| row.is_like(other)));
        if alike {
            self.rows.truncate(before);
        }
        !alike
    }

    /// Brings the rows in the order of memory.
    pub(super) fn order(&mut self) {
        let Some(&first) = self.rows.first().filter(|_| self.rows.len() >= ORDERED_MIN) else { return };
        let places = self.rows.iter().map(Gathered::place);
        let (low, high) = places.fold((u64::MAX, 0), |(low, high), place| (low.min(place), high.max(place)));
        let width = (high - low) / PARTS as u64 + 1;
        let shift = width.next_power_of_two().trailing_zeros();
        #[expect(clippy::cast_possible_truncation, reason = "below PARTS, by the width")]
        let part = |row: &Gathered| ((row.place() - low) >> shift) as usize;
        let mut begins = [0_usize; PARTS];
        for row in &self.rows {
            begins[part(row)] += 1;
        }
        let mut begin = 0;
        for count in &mut begins {
            begin += std::mem::replace(count, begin);
        }
        self.other.clear();
        self.other.resize(self.rows.len(), first);
        for row in &self.rows {
            let at = &mut begins[part(row)];
            self.other[*at] = *row;
            *at += 1;
        }
        std::mem::swap(&mut self.rows, &mut self.other);
    }

    /// The next row, and the one that it is time to ask memory for.
    #[inline]
    pub(super) fn next(&mut self) -> Option<(Gathered, Option<&Gathered>)> {
        let row = *self.rows.get(self.next)?;
        self.next += 1;
        Some((row, self.rows.get(self.next - 1 + AHEAD)))
    }
}
