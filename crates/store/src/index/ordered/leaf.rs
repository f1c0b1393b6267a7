//! Leaves: the sorted entries at the bottom of the tree, packed.
//!
//! An entry is a head, which is some bytes of its row's sort key, and a location. A leaf keeps once what all of its
//! entries have in common: the bytes that all keys begin with (`https://...`, one page's number before many users'),
//! and mostly the middle of their locations. Of the rest it keeps heads of one, two, four or eight bytes, as few as
//! tell its keys apart. Where these are the whole rest of every key the leaf is *exact*: it answers by itself, and a
//! row is never read. Otherwise heads are eight bytes, and where they tie the rows are asked.
//!
//! All leaves are equally long, so that memory of one serves another; how many entries one holds follows from its form:
//!
//! ```text
//! form | shared bytes | heads, `width` bytes each | near: tags, two bytes each, then places, four each; else locations
//! ```
//!
//! Heads, tags and places stand apart, so that a search reads heads only, and tags where keys are equal. What it reads
//! in any case stands at the beginning, where heads are: that is one line of memory less to wait for.
//!
//! An exact leaf does not know how long its keys are: it sees them with zeros behind. That is no loss. No key is the
//! beginning of another, nor of a bound of a range, so whatever differs does so with zeros behind, too.

use std::ops::Range;

use super::SortKeys;
use super::entries::Entries;
use super::run::{FREE_PART, New, Run, tighten};
use super::target::{RowReader, Sorted, Target, below};

use crate::limits::HEAD_MAX;

/// What a leaf takes, with what an allocator adds half a page. An insertion moves half of its entries on average, so a
/// longer one costs more time, and a shorter one more memory for what leads to it.
pub(super) const LEAF_BYTES: usize = 2040;
/// Bytes for entries.
const ROOM: usize = LEAF_BYTES - size_of::<Form>() - 4;
/// Bytes of a location where all of a leaf are near each other.
const NEAR_BYTES: usize = size_of::<u16>() + size_of::<u32>();

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;
/// Lines of a leaf that are asked for ahead: heads of two bytes. The processor foresees what is behind them.
const HEAD_LINES: usize = 8;

/// How a leaf keeps its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// How many entries there is room for.
    capacity: u16,
    /// Bits 32 to 47 of all locations, where these are near each other.
    middle: u16,
    /// How many bytes all keys share that heads leave out.
    skip: u8,
    /// Bytes of a head: 1, 2, 4 or 8.
    width: u8,
    /// Whether the heads are the whole rest of their keys, but for zeros at the end.
    exact: bool,
    /// Whether locations agree in the bits of `middle`.
    near: bool,
}

impl Form {
    pub(super) fn new(skip: usize, width: usize, exact: bool, near: Option<u16>) -> Self {
        let location = if near.is_some() { NEAR_BYTES } else { size_of::<u64>() };
        let byte = |bytes: usize| u8::try_from(bytes).unwrap_or(u8::MAX);
        Self {
            capacity: small((ROOM - skip) / (width + location)),
            middle: near.unwrap_or(0),
            skip: byte(skip),
            width: byte(width),
            exact,
            near: near.is_some(),
        }
    }

    /// How many bytes all keys share that heads leave out, and how many bits a head has.
    pub(super) fn heads(self) -> (usize, u32) {
        (usize::from(self.skip), 8 * u32::from(self.width))
    }

    #[inline]
    pub(super) fn capacity(self) -> usize {
        usize::from(self.capacity)
    }

    /// How many entries leave some room for those to come.
    pub(super) fn filled(self) -> usize {
        self.capacity() - self.capacity() / FREE_PART
    }
}

/// Bits of a location that say which of equal keys comes first, before the others do.
fn tag(location: u64) -> u16 {
    (location >> 48) as u16
}

/// Bits of a location that are mostly the same for all rows of a table.
pub(super) fn middle(location: u64) -> u16 {
    (location >> 32 & 0xffff) as u16
}

pub(super) struct Leaf {
    len: u16,
    form: Form,
    bytes: [u8; ROOM],
}

impl Leaf {
    /// An empty leaf of a form; `first` begins with the bytes that all keys share.
    pub(super) fn new(form: Form, first: &[u8]) -> Self {
        let mut leaf = Self { len: 0, form, bytes: [0; ROOM] };
        let skip = usize::from(form.skip);
        leaf.bytes[..skip].copy_from_slice(&first[..skip]);
        leaf
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    pub(super) fn form(&self) -> Form {
        self.form
    }

    pub(super) fn is_exact(&self) -> bool {
        self.form.exact
    }

    /// How many entries more there is room for.
    pub(super) fn room(&self) -> usize {
        self.form.capacity().saturating_sub(self.len())
    }

    /// The bytes that all keys begin with.
    #[inline]
    pub(super) fn shared(&self) -> &[u8] {
        &self.bytes[..self.heads_at()]
    }

    #[inline]
    fn width(&self) -> usize {
        usize::from(self.form.width)
    }

    /// How many bytes of its keys an exact leaf knows.
    pub(super) fn known_bytes(&self) -> usize {
        usize::from(self.form.skip) + self.width()
    }

    #[inline]
    fn heads_at(&self) -> usize {
        usize::from(self.form.skip)
    }

    /// Where tags begin, or else locations.
    #[inline]
    fn tags_at(&self) -> usize {
        self.heads_at() + self.form.capacity() * self.width()
    }

    #[inline]
    fn places_at(&self) -> usize {
        self.tags_at() + self.form.capacity() * size_of::<u16>()
    }

    /// A head, right-aligned.
    #[inline]
    pub(super) fn head(&self, at: usize) -> u64 {
        let heads = self.heads_at();
        match self.form.width {
            1 => u64::from(self.bytes[heads + at]),
            2 => u64::from(u16::from_le_bytes(self.word(heads, at))),
            4 => u64::from(u32::from_le_bytes(self.word(heads, at))),
            _ => u64::from_le_bytes(self.word(heads, at)),
        }
    }

    /// The head with its first byte on top, as a key's bytes stand in a big-endian word.
    #[inline]
    pub(super) fn head_bytes(&self, at: usize) -> u64 {
        self.head(at) << (64 - 8 * self.width())
    }

    #[inline]
    fn heads_in(&self, range: Range<usize>) -> &[u8] {
        let heads = &self.bytes[self.heads_at()..];
        &heads[range.start * self.width()..range.end * self.width()]
    }

    /// Appends the heads of a range, as [`Leaf::head_bytes`] gives each.
    pub(super) fn heads(&self, range: Range<usize>, mut each: impl FnMut(u64)) {
        let heads = self.heads_in(range);
        match self.form.width {
            1 => heads.iter().for_each(|&head| each(u64::from(head) << 56)),
            2 => heads.as_chunks().0.iter().for_each(|head| each(u64::from(u16::from_le_bytes(*head)) << 48)),
            4 => heads.as_chunks().0.iter().for_each(|head| each(u64::from(u32::from_le_bytes(*head)) << 32)),
            _ => heads.as_chunks().0.iter().for_each(|head| each(u64::from_le_bytes(*head))),
        }
    }

    /// Appends the locations of a range.
    pub(super) fn append_locations(&self, range: Range<usize>, out: &mut Vec<u64>) {
        let tags = self.tags_at();
        if !self.form.near {
            let whole = &self.bytes[tags + range.start * 8..tags + range.end * 8];
            return out.extend(whole.as_chunks().0.iter().map(|own| u64::from_le_bytes(*own)));
        }
        let places = self.places_at();
        let tags = &self.bytes[tags + range.start * 2..tags + range.end * 2];
        let places = &self.bytes[places + range.start * 4..places + range.end * 4];
        let middle = u64::from(self.form.middle) << 32;
        out.extend(tags.as_chunks().0.iter().zip(places.as_chunks().0).map(|(tag, place)| {
            u64::from(u16::from_le_bytes(*tag)) << 48 | middle | u64::from(u32::from_le_bytes(*place))
        }));
    }

    /// Fills an empty leaf with entries that its form holds; heads are right-aligned.
    pub(super) fn fill(&mut self, heads: impl ExactSizeIterator<Item = u64>, locations: &[u64]) {
        let (width, begin, tags, places) = (self.width(), self.heads_at(), self.tags_at(), self.places_at());
        self.len = small(heads.len()).min(self.form.capacity);
        let own = &mut self.bytes[begin..tags];
        match width {
            1 => put_all(own.as_chunks_mut().0, heads, first_bytes::<1>),
            2 => put_all(own.as_chunks_mut().0, heads, first_bytes::<2>),
            4 => put_all(own.as_chunks_mut().0, heads, first_bytes::<4>),
            _ => put_all(own.as_chunks_mut().0, heads, u64::to_le_bytes),
        }
        let locations = locations.iter().copied();
        if self.form.near {
            put_all(self.bytes[tags..places].as_chunks_mut().0, locations.clone(), |own| {
                tag(own).to_le_bytes()
            });
            put_all(self.bytes[places..].as_chunks_mut().0, locations, first_bytes::<4>);
        } else {
            put_all(self.bytes[tags..].as_chunks_mut().0, locations, u64::to_le_bytes);
        }
    }

    #[inline]
    fn word<const N: usize>(&self, from: usize, at: usize) -> [u8; N] {
        let from = from + at * N;
        self.bytes[from..from + N].try_into().unwrap_or([0; N])
    }

    /// The first location; a leaf in the tree is never empty.
    pub(super) fn first(&self) -> u64 {
        self.location(0)
    }

    pub(super) fn locations(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = u64> {
        (range.start..range.end.min(self.len())).map(|at| self.location(at))
    }

    /// The key of an entry, with zeros behind where the leaf knows it.
    pub(super) fn key<K: SortKeys + ?Sized>(&self, at: usize, rows: &mut RowReader<'_, K>) -> Vec<u8> {
        if !self.form.exact {
            return rows.take(self.location(at));
        }
        let mut key = rows.buffer();
        key.extend_from_slice(self.shared());
        key.extend_from_slice(&self.head_bytes(at).to_be_bytes()[..self.width()]);
        key
    }

    /// How many heads are below one, those before `from` among them.
    #[expect(clippy::cast_possible_truncation, reason = "a head has no bits above its width")]
    fn below_from(&self, head: u64, from: usize) -> usize {
        let heads = self.heads_in(from..self.len());
        let found = match self.form.width {
            1 => below(heads, head as u8, |head| head),
            2 => below(heads.as_chunks().0, head as u16, u16::from_le_bytes),
            4 => below(heads.as_chunks().0, head as u32, u32::from_le_bytes),
            _ => below(heads.as_chunks().0, head, u64::from_le_bytes),
        };
        from + found
    }

    /// How many entries lie before a position.
    pub(super) fn position<K: SortKeys + ?Sized>(&self, target: &mut Target<'_, K>) -> usize {
        let key = target.key();
        let Some(rest) = key.strip_prefix(self.shared()) else {
            // The key differs from the shared bytes, or ends within them and so lies before all that go on.
            return if key > self.shared() { self.len() } else { 0 };
        };
        let head = self.head_of(rest);
        match self.form.exact {
            // All keys of this head are smaller: they end with it.
            true if !self.ends(rest) => self.through(head, self.below(head)),
            true => target.position(head, true, self),
            false => target.position(head, rest.len() <= HEAD_MAX, self),
        }
    }

    /// The head of a key that goes on so behind the shared bytes.
    #[inline]
    fn head_of(&self, rest: &[u8]) -> u64 {
        crate::codec::prefix8(rest).bytes >> (64 - 8 * self.width())
    }

    /// Where the entry that the target names is, or else belongs.
    pub(super) fn find<K: SortKeys + ?Sized>(&self, target: &mut Target<'_, K>) -> Result<usize, usize> {
        let after = self.position(target);
        match after.checked_sub(1) {
            Some(at) if target.names(self.location(at)) => Ok(at),
            _ => Err(after),
        }
    }

    /// Adds the entry that the target names; false where it is here already. An error, the place where it belongs,
    /// where there is no room for it.
    pub(super) fn insert<K: SortKeys + ?Sized>(
        &mut self,
        location: u64,
        target: &mut Target<'_, K>,
    ) -> Result<bool, usize> {
        let Err(at) = self.find(target) else { return Ok(false) };
        if !self.insert_as_it_is(at, target.key(), location) {
            self.refit(New { at, key: target.key(), location })?;
        }
        // A leaf that is split looks at what its keys share; one that has not been yet looks now and then.
        if !self.form.exact && self.len.is_power_of_two() {
            tighten(self, target.rows());
        }
        Ok(true)
    }

    /// Inserts an entry where there is room for it in this form; else nothing changes.
    fn insert_as_it_is(&mut self, at: usize, key: &[u8], location: u64) -> bool {
        if self.room() == 0 || !self.form_holds(location) {
            return false;
        }
        let Some(rest) = key.strip_prefix(self.shared()) else { return false };
        let fits = !self.form.exact || self.ends(rest);
        if fits {
            self.insert_head(at, self.head_of(rest), location);
        }
        fits
    }

    /// Takes the form that an entry asks for besides those here, if there is room for it then.
    fn refit(&mut self, new: New<'_>) -> Result<(), usize> {
        let run = Run::gather(std::iter::once(&*self), Some((0, new)));
        let form = run.form(0..run.len());
        if form.capacity() < run.len() {
            return Err(new.at);
        }
        *self = run.leaf(0..run.len(), form);
        Ok(())
    }

    /// Whether a key that goes on so behind the shared bytes ends with its head, zeros aside.
    #[inline]
    fn ends(&self, rest: &[u8]) -> bool {
        rest.get(self.width()..).is_none_or(|behind| behind.iter().all(|&byte| byte == 0))
    }

    fn form_holds(&self, location: u64) -> bool {
        !self.form.near || middle(location) == self.form.middle
    }

    /// Inserts an entry that this form holds, where there is room.
    fn insert_head(&mut self, at: usize, head: u64, location: u64) {
        self.shift(at, at + 1);
        self.len += 1;
        self.put(at, head, location);
    }

    fn put(&mut self, at: usize, head: u64, location: u64) {
        let (begin, width) = (self.heads_at(), self.width());
        let own = &mut self.bytes[begin + at * width..][..width];
        match width {
            1 => own.copy_from_slice(&first_bytes::<1>(head)),
            2 => own.copy_from_slice(&first_bytes::<2>(head)),
            4 => own.copy_from_slice(&first_bytes::<4>(head)),
            _ => own.copy_from_slice(&head.to_le_bytes()),
        }
        self.put_location(at, location);
    }

    fn put_location(&mut self, at: usize, location: u64) {
        let bytes = location.to_le_bytes();
        let (tags, places) = (self.tags_at(), self.places_at());
        if self.form.near {
            self.bytes[tags + at * 2..][..2].copy_from_slice(&bytes[6..]);
            self.bytes[places + at * 4..][..4].copy_from_slice(&bytes[..4]);
        } else {
            self.bytes[tags + at * 8..][..8].copy_from_slice(&bytes);
        }
    }

    /// Moves the entries from a place on to another place.
    fn shift(&mut self, from: usize, to: usize) {
        let (heads, tags, places) = (self.heads_at(), self.tags_at(), self.places_at());
        let (len, width) = (self.len(), self.width());
        let mut shift = |begin: usize, bytes: usize| {
            self.bytes.copy_within(begin + from * bytes..begin + len * bytes, begin + to * bytes);
        };
        shift(heads, width);
        if self.form.near {
            shift(tags, 2);
            shift(places, 4);
        } else {
            shift(tags, 8);
        }
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.remove_range(at..at + 1);
    }

    fn remove_range(&mut self, range: Range<usize>) {
        self.shift(range.end, range.start);
        self.len -= small(range.len());
    }

    /// Removes those of these entries that are here, and says how many were. Neighbours leave with one move of what is
    /// behind them.
    pub(super) fn remove_ordered<'l, K: SortKeys + ?Sized>(
        &mut self,
        entries: Entries<'l>,
        target: &mut Target<'l, K>,
    ) -> usize {
        let before = self.len();
        let mut leaving = before..before;
        for entry in (0..entries.len()).rev() {
            // A location has one entry, so the next one to the left need not be searched for.
            let beside = leaving.start.checked_sub(1);
            if beside.is_some_and(|at| self.location(at) == entries.location(entry)) {
                leaving.start -= 1;
                continue;
            }
            entries.aim(entry, target);
            if let Ok(at) = self.find(target) {
                self.remove_range(std::mem::replace(&mut leaving, at..at + 1));
            }
        }
        self.remove_range(leaving);
        before - self.len()
    }

    /// Asks memory for the heads.
    pub(super) fn prefetch(&self) {
        // The length is in a line that has not come.
        self.bytes.iter().step_by(LINE_BYTES).take(HEAD_LINES).for_each(arena::prefetch_line);
    }

    /// Whether so little is left that a neighbour should take it.
    pub(super) fn is_sparse(&self) -> bool {
        self.len() * 4 < self.form.capacity()
    }

    /// Whether one leaf should hold the entries of two, so that it does not split again soon.
    pub(super) fn joins(&self, other: &Self) -> bool {
        (self.len() + other.len()) * 4 <= self.form.capacity().min(other.form.capacity()) * 3
    }

    /// Keeps a range of the entries only.
    pub(super) fn keep(&mut self, range: Range<usize>) {
        let range = range.start..range.end.min(self.len());
        self.len = small(range.end);
        self.shift(range.start, 0);
        self.len = small(range.len());
    }

    /// Gives the entry at `at`, which the target names, another location. False, and nothing changed, where it
    /// may belong into another leaf then.
    pub(super) fn move_entry<K: SortKeys + ?Sized>(
        &mut self,
        at: usize,
        new: u64,
        target: &mut Target<'_, K>,
    ) -> bool {
        if !self.form_holds(new) && !self.widen(new) {
            return false;
        }
        let (head, old) = (self.head(at), self.location(at));
        // A neighbour stays on its side if its key is another, or if its location lies so to the new one as to the old.
        let stays = |other: Option<usize>| {
            other.is_some_and(|other| {
                let location = self.location(other);
                self.head(other) != head || (location < old) == (location < new)
            })
        };
        if stays(at.checked_sub(1)) && stays(Some(at + 1).filter(|&after| after < self.len())) {
            self.put_location(at, new);
            return true;
        }
        self.remove(at);
        let to = target.at_entry(new, |target| self.position(target));
        let inside = 0 < to && to < self.len();
        let (at, location) = if inside { (to, new) } else { (at, old) };
        self.insert_head(at, head, location);
        inside
    }

    /// Keeps whole locations, so that it holds this one, too; false where there is no room for them.
    fn widen(&mut self, location: u64) -> bool {
        let mut run = Run::of(self);
        run.far(location);
        let form = run.form(0..run.len());
        let fits = form.capacity() >= run.len();
        if fits {
            *self = run.leaf(0..run.len(), form);
        }
        fits
    }
}

/// A number of entries, of which a leaf has no more than bytes.
fn small(entries: usize) -> u16 {
    u16::try_from(entries).unwrap_or(u16::MAX)
}

/// The first bytes of a word in memory, which are its lowest.
#[inline]
fn first_bytes<const N: usize>(word: u64) -> [u8; N] {
    std::array::from_fn(|at| word.to_le_bytes()[at])
}

#[inline]
fn put_all<const N: usize>(
    own: &mut [[u8; N]],
    words: impl Iterator<Item = u64>,
    bytes: impl Fn(u64) -> [u8; N],
) {
    own.iter_mut().zip(words).for_each(|(own, word)| *own = bytes(word));
}

impl Sorted for Leaf {
    fn below(&self, head: u64) -> usize {
        self.below_from(head, 0)
    }

    fn through(&self, head: u64, below: usize) -> usize {
        if below == self.len() || self.head(below) != head {
            return below;
        }
        let widest = u64::MAX >> (64 - 8 * self.width());
        if head == widest { self.len() } else { self.below_from(head + 1, below) }
    }

    #[inline]
    fn location(&self, at: usize) -> u64 {
        if !self.form.near {
            return u64::from_le_bytes(self.word(self.tags_at(), at));
        }
        let tag = u16::from_le_bytes(self.word(self.tags_at(), at));
        let place = u32::from_le_bytes(self.word(self.places_at(), at));
        u64::from(tag) << 48 | u64::from(self.form.middle) << 32 | u64::from(place)
    }

    fn below_location(&self, ties: Range<usize>, location: u64) -> usize {
        let tags = self.tags_at();
        if !self.form.near {
            let found = &self.bytes[tags + ties.start * 8..tags + ties.end * 8];
            return ties.start + below(found.as_chunks().0, location, u64::from_le_bytes);
        }
        let found = &self.bytes[tags + ties.start * 2..tags + ties.end * 2];
        let smaller = ties.start + below(found.as_chunks().0, tag(location), u16::from_le_bytes);
        // Those of one tag may be all of a leaf: an element's entries bear no more than its ordinal.
        let mut ties = smaller..ties.end;
        while !ties.is_empty() {
            let middle = ties.start + ties.len() / 2;
            if self.location(middle) < location { ties.start = middle + 1 } else { ties.end = middle }
        }
        ties.start
    }
}

#[cfg(test)]
impl Leaf {
    /// Proves that heads and locations are what the rows say, in order.
    pub(super) fn check<K: SortKeys + ?Sized>(&self, rows: &mut RowReader<'_, K>) {
        assert!(self.len() <= self.form.capacity());
        let keys: Vec<_> =
            self.locations(0..self.len()).map(|location| (rows.take(location), location)).collect();
        assert!(keys.is_sorted());
        for (at, (key, _)) in keys.iter().enumerate() {
            let rest = key.strip_prefix(self.shared()).expect("shared");
            assert_eq!(self.head(at), self.head_of(rest));
            assert!(!self.form.exact || self.ends(rest));
        }
    }
}
