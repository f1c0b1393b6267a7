//! Runs: entries on their way from some leaves into others.
//!
//! A leaf that an entry does not fit into is written again, alone or together with its neighbours: their entries become
//! one run, which is dealt out again, each part in the form that takes least. What exact leaves know of their keys is
//! all that is needed, so no row is read.

use std::ops::Range;

use super::SortKeys;
use super::leaf::{Form, Leaf, middle};
use super::target::{RowReader, Sorted, common_len};
use crate::limits::{HEAD_MAX, SHARED_MAX};

/// Inexact leaves skip multiples of this, so that neighbours mostly skip the same and can exchange heads as they are.
const SKIP_STEP: usize = 4;
/// Bytes of a key that a run keeps behind what all its keys share: the heads of several leaves, and what only some
/// share.
pub(super) const KEPT_BYTES: usize = size_of::<u128>();
/// Where as many leaves as before hold a run, each keeps such a part of its room free, or it would soon be full again.
pub(super) const FREE_PART: usize = 16;

/// An entry that comes in.
#[derive(Clone, Copy)]
pub(super) struct New<'a> {
    /// How many entries of the leaf where it belongs are before it.
    pub(super) at: usize,
    pub(super) key: &'a [u8],
    pub(super) location: u64,
}

/// A part of a run, and how a leaf keeps it.
pub(super) type Part = (Range<usize>, Form);

/// Entries in their order.
pub(super) struct Run {
    /// What all keys begin with and `keys` leave out.
    shared: Vec<u8>,
    /// What follows in each, the first byte on top.
    keys: Vec<u128>,
    locations: Vec<u64>,
    /// Whether these are their whole keys, zeros at the end aside.
    exact: bool,
    /// Whether a location is expected that is far from these.
    far: bool,
}

impl Run {
    /// One entry.
    pub(super) fn single(key: &[u8], location: u64) -> Self {
        Self {
            shared: Vec::new(),
            keys: vec![kept(key)],
            locations: vec![location],
            exact: key.len() <= KEPT_BYTES,
            far: false,
        }
    }

    /// The entries of one leaf.
    pub(super) fn of(leaf: &Leaf) -> Self {
        Self::gather(std::iter::once(leaf), None)
    }

    /// The entries of neighbours, and a new one with the number of its leaf among these.
    pub(super) fn gather<'l>(
        leaves: impl Iterator<Item = &'l Leaf> + Clone,
        new: Option<(usize, New<'_>)>,
    ) -> Self {
        let key = new.map(|(_, new)| new.key);
        let mut shared = key.or_else(|| leaves.clone().next().map(Leaf::shared)).unwrap_or_default();
        let (mut known, mut exact, mut len) = (key.map_or(0, <[u8]>::len), true, usize::from(key.is_some()));
        for leaf in leaves.clone() {
            shared = &shared[..common_len(shared, leaf.shared())];
            known = known.max(leaf.known_bytes());
            exact &= leaf.is_exact();
            len += leaf.len();
        }
        exact &= known - shared.len() <= KEPT_BYTES;
        let skip = if exact { shared.len() } else { skip_for(shared.len()) };
        let mut run = Self {
            shared: shared[..skip].to_vec(),
            keys: Vec::with_capacity(len),
            locations: Vec::with_capacity(len),
            exact,
            far: false,
        };
        for (number, leaf) in leaves.enumerate() {
            let new = new.filter(|(of, _)| *of == number).map(|(_, new)| new);
            run.take(leaf, 0..new.map_or(leaf.len(), |new| new.at));
            if let Some(new) = new {
                run.keys.push(kept(&new.key[skip..]));
                run.locations.push(new.location);
                run.take(leaf, new.at..leaf.len());
            }
        }
        run
    }

    /// The entries of a leaf, of which rows say the whole keys; these begin with as many equal bytes.
    fn read<K: SortKeys + ?Sized>(
        leaf: &Leaf,
        first: &[u8],
        skip: usize,
        rows: &mut RowReader<'_, K>,
    ) -> Self {
        let mut run = Self {
            shared: first[..skip].to_vec(),
            keys: Vec::with_capacity(leaf.len()),
            locations: leaf.locations(0..leaf.len()).collect(),
            exact: true,
            far: false,
        };
        for &location in &run.locations {
            let key = rows.take(location);
            let rest = key.get(skip..).unwrap_or_default();
            run.exact &= rest.len() <= HEAD_MAX;
            run.keys.push(kept(rest));
            rows.give_back(key);
        }
        run
    }

    fn take(&mut self, leaf: &Leaf, range: Range<usize>) {
        let own = &leaf.shared()[self.shared.len()..];
        let above = kept(own);
        let bits = u32::try_from(8 * own.len()).unwrap_or(u32::MAX);
        leaf.heads(range.clone(), |head| {
            let head = u128::from(head) << 64;
            self.keys.push(above | head.checked_shr(bits).unwrap_or(0));
        });
        leaf.append_locations(range, &mut self.locations);
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// From here on locations are kept whole unless this one agrees with them.
    pub(super) fn far(&mut self, location: u64) {
        self.far = self.locations.iter().any(|&own| middle(own) != middle(location));
    }

    /// The form that takes least for a part; no part is empty.
    pub(super) fn form(&self, range: Range<usize>) -> Form {
        let (keys, locations) = (&self.keys[range.clone()], &self.locations[range]);
        let differ = locations.iter().fold(0, |differ, location| differ | (location ^ locations[0]));
        let near = !self.far && middle(differ) == 0;
        let near = near.then(|| middle(locations[0]));
        let skip = self.shared.len();
        if !self.exact {
            return Form::new(skip_for(skip), HEAD_MAX, false, near);
        }
        let any = keys.iter().fold(0, |any, key| any | key);
        let used = (KEPT_BYTES - any.trailing_zeros() as usize / 8).max(1);
        let differ = keys[0] ^ keys[keys.len() - 1];
        let common = (differ.leading_zeros() as usize / 8).min(used - 1).min(SHARED_MAX - skip);
        match used - common {
            1 => Form::new(skip + common, 1, true, near),
            2 => Form::new(skip + common, 2, true, near),
            3..=4 => Form::new(skip + common, 4, true, near),
            5..=HEAD_MAX => Form::new(skip + common, HEAD_MAX, true, near),
            _ => Form::new(skip_for(skip + common), HEAD_MAX, false, near),
        }
    }

    /// A leaf of a part, in the form that [`Run::form`] found for it.
    #[expect(clippy::cast_possible_truncation, reason = "a head has at most 64 bits")]
    pub(super) fn leaf(&self, range: Range<usize>, form: Form) -> Leaf {
        let mut first = self.shared.clone();
        first.extend_from_slice(&self.keys[range.start].to_be_bytes());
        let mut leaf = Leaf::new(form, &first);
        let (skip, bits) = form.heads();
        let lead = kept(self.shared.get(skip..).unwrap_or_default());
        let up = 8 * skip.saturating_sub(self.shared.len());
        let down = 8 * self.shared.len().saturating_sub(skip);
        let heads = self.keys[range.clone()].iter().map(|key| {
            let key = lead | (key >> down) << up;
            (key >> (u128::BITS - bits)) as u64
        });
        leaf.fill(heads, &self.locations[range]);
        leaf
    }

    /// The same in the form that takes least, and with heads that tell the keys apart.
    pub(super) fn tight_leaf<K: SortKeys + ?Sized>(
        &self,
        range: Range<usize>,
        rows: &mut RowReader<'_, K>,
    ) -> Leaf {
        let mut leaf = self.leaf(range.clone(), self.form(range));
        tighten(&mut leaf, rows);
        leaf
    }

    /// Parts for as few leaves as hold the run, at least as many as `leaves`.
    pub(super) fn deal(&self, leaves: usize) -> Vec<Part> {
        (leaves..=self.len())
            .find_map(|count| self.deal_among(count, if count == leaves { FREE_PART } else { usize::MAX }))
            .unwrap_or_default()
    }

    /// Parts that fill their leaves but for a little, and last the rest.
    pub(super) fn deal_full(&self) -> Vec<Part> {
        let (mut parts, mut begin) = (Vec::new(), 0);
        while begin < self.len() {
            let mut part = begin..self.len();
            let mut form = self.form(part.clone());
            // Fewer entries have a form in which no fewer of them fit.
            while part.len() > form.filled() {
                part.end = begin + form.filled();
                form = self.form(part.clone());
            }
            begin = part.end;
            parts.push((part, form));
        }
        parts
    }

    /// The same from the last entry on: the first part is the rest.
    pub(super) fn deal_full_at_end(&self) -> Vec<Part> {
        let (mut parts, mut end) = (Vec::new(), self.len());
        while end > 0 {
            let mut part = 0..end;
            let mut form = self.form(part.clone());
            while part.len() > form.filled() {
                part.start = end - form.filled();
                form = self.form(part.clone());
            }
            end = part.start;
            parts.push((part, form));
        }
        parts.reverse();
        parts
    }

    /// Parts of as nearly equal lengths as can be, where leaves hold them and a part of their room stays free.
    fn deal_among(&self, count: usize, free_part: usize) -> Option<Vec<Part>> {
        let begin = |part: usize| self.len() * part / count;
        let parts = (0..count).map(|part| {
            let range = begin(part)..begin(part + 1);
            let form = self.form(range.clone());
            (range.len() + form.capacity() / free_part < form.capacity()).then_some((range, form))
        });
        parts.collect()
    }
}

/// Skips more in an inexact leaf where the heads have become too much alike: their upper halves are all the same. It
/// reads two rows to see how much the keys share, and all of them where that is more than was known.
pub(super) fn tighten<K: SortKeys + ?Sized>(leaf: &mut Leaf, rows: &mut RowReader<'_, K>) {
    let Some(last) = leaf.len().checked_sub(1).filter(|&last| last > 0 && !leaf.is_exact()) else { return };
    if (leaf.head_bytes(0) ^ leaf.head_bytes(last)) >> 32 != 0 {
        return;
    }
    let (known, first) = (leaf.known_bytes(), rows.take(leaf.first()));
    // Keys that end within their heads are told apart already, or are equal.
    if first.len() > known {
        let last = rows.take(leaf.location(last));
        let skip = skip_for(common_len(&first, &last));
        rows.give_back(last);
        if skip > leaf.shared().len() {
            let run = Run::read(leaf, &first, skip, rows);
            let form = run.form(0..run.len());
            if form.capacity() >= run.len() {
                *leaf = run.leaf(0..run.len(), form);
            }
        }
    }
    rows.give_back(first);
}

/// The first bytes of a key's rest, with zeros behind.
fn kept(rest: &[u8]) -> u128 {
    let mut bytes = [0; KEPT_BYTES];
    let len = rest.len().min(KEPT_BYTES);
    bytes[..len].copy_from_slice(&rest[..len]);
    u128::from_be_bytes(bytes)
}

/// How many bytes inexact leaves skip where so many are shared.
pub(super) fn skip_for(shared: usize) -> usize {
    shared.min(SHARED_MAX) / SKIP_STEP * SKIP_STEP
}
