//! One ordered index of one table: the tree, the values its entries are ordered by, and unique values spoken for.

pub(crate) mod elements;
pub mod ordered;
pub(crate) mod readiness;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arena::{Arenas, CommitSlot, Hash, Location};
use parking_lot::{Mutex, RwLock};

use crate::codec::{prefix_end, sort_key_column};
use crate::definition::{Collation, ColumnDef, IndexDef, TableDef};
use crate::index::elements::{ElementKeys, ElementsOf};
use crate::index::ordered::{OrderedIndex, Range, SortKeys};
use crate::index::readiness::Readiness;
use crate::limits::ELEMENTS_MAX;
use crate::row::RowBuf;
use crate::row::layout::RowLayout;
use crate::value::{Value, ValueRef};

/// Bits of a key's hash that an entry bears above its row's location: a leaf keeps them beside 32 bits of the location,
/// as the others are mostly the same for a whole table.
const TAG_BITS: u32 = 16;
/// Those of them that say the index shard.
const SHARD_BITS: u32 = arena::SHARDS.trailing_zeros();

/// What an index keeps of a row beside its sort key: the location, and bits of its key's hash above it. So rows of
/// equal sort keys stand in an order that a new version of a row does not change. It is that in which a commit applies
/// its rows, reversed, so that rows of one value which are removed together leave from the end.
#[inline]
pub(crate) fn entry_of(hash: Hash, location: Location) -> u64 {
    let shard = (arena::Arena::shard_of(hash) as u64) << (TAG_BITS - SHARD_BITS);
    let rest = hash.0 >> (64 - TAG_BITS + SHARD_BITS);
    (!(shard | rest) << (64 - TAG_BITS)) | location.bits()
}

/// What an index over elements keeps beside an element: the location, and the element's ordinal above it, so that the
/// entry tells which of the row's elements it is of.
#[inline]
pub(crate) fn entry_of_element(ordinal: usize, location: Location) -> u64 {
    ((ordinal as u64) << (64 - TAG_BITS)) | location.bits()
}

/// The entry of a row that moved.
#[inline]
pub(crate) fn moved(entry: u64, to: Location) -> u64 {
    (entry >> (64 - TAG_BITS) << (64 - TAG_BITS)) | to.bits()
}

/// An ordered index. Its entries name rows by their place in the arena; a row stays readable while an entry names it,
/// because a segment is recycled only after its rows left every index.
#[derive(Debug)]
pub struct Index {
    def: IndexDef,
    layout: RowLayout,
    /// How the columns are ordered, the leading one first.
    form: Vec<KeyColumn>,
    /// What it has of its column, if it is one over elements.
    of: ElementsOf,
    /// Taken after a shard lock, never before one. Shared with the same index under other definitions of its table.
    pub(crate) tree: Arc<RwLock<OrderedIndex>>,
    /// Unique values that commits in staging are about to take, with the commit's slot in the arena. Taken after
    /// `tree`.
    pub(crate) reserved: Arc<Mutex<HashMap<Box<[u8]>, CommitSlot>>>,
    /// Set under `tree`'s lock when the index is dropped: a scan that is under way must not take it for complete.
    retired: Arc<AtomicBool>,
    /// Whether it knows every row: after a start it is filled behind.
    readiness: Arc<Readiness>,
}

/// One column of an index.
#[derive(Clone, Copy, Debug)]
struct KeyColumn {
    column: usize,
    collation: Collation,
    descending: bool,
}

/// The predicate's value in rows that a partial index holds.
const HELD: ValueRef<'static> = ValueRef::Integer(1);

/// A range of an index: values for its leading columns. An included bound takes in everything that starts with these
/// values, an excluded one leaves all of that out.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyBounds {
    /// Where the range begins.
    pub lower: Bound<Vec<Value>>,
    /// Where it ends.
    pub upper: Bound<Vec<Value>>,
}

impl KeyBounds {
    /// The whole index.
    pub const ALL: Self = Self { lower: Bound::Unbounded, upper: Bound::Unbounded };

    /// All entries whose leading columns equal the values.
    pub fn equal(values: Vec<Value>) -> Self {
        Self { lower: Bound::Included(values.clone()), upper: Bound::Included(values) }
    }

    /// The bounds as sort keys: the lower one included or absent, the upper one excluded or absent.
    pub(crate) fn encoded(&self, index: &Index) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let encode = |values: &[Value]| index.encoded(values.iter().map(Value::as_ref));
        let lower = match &self.lower {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(values) => Bound::Included(encode(values)),
            Bound::Excluded(values) => {
                prefix_end(&encode(values)).map_or_else(|| Bound::Excluded(vec![0xFF; 9]), Bound::Included)
            }
        };
        let upper = match &self.upper {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(values) => prefix_end(&encode(values)).map_or(Bound::Unbounded, Bound::Excluded),
            Bound::Excluded(values) => Bound::Excluded(encode(values)),
        };
        (lower, upper)
    }
}

impl Index {
    /// The ranges of the entries that begin with these values and have NULL behind them, and of those that have not.
    pub fn by_null_behind(&self, equal: Vec<Value>) -> [KeyBounds; 2] {
        let descending = self.def.is_descending(equal.len());
        let end = |equal: Vec<Value>| {
            if equal.is_empty() { Bound::Unbounded } else { Bound::Included(equal) }
        };
        let null: Vec<Value> = equal.iter().cloned().chain([Value::Null]).collect();
        let (end, behind) = (end(equal), Bound::Excluded(null.clone()));
        let others = if descending {
            KeyBounds { lower: end, upper: behind }
        } else {
            KeyBounds { lower: behind, upper: end }
        };
        [KeyBounds::equal(null), others]
    }

    pub(crate) fn new(def: IndexDef, table: &TableDef) -> Self {
        let of = def.elements.and_then(|at| table.columns.get(at)).map(ColumnDef::sql_type);
        Self {
            form: form_of(&def, table),
            of: of.map_or(ElementsOf::Array, ElementsOf::column),
            def,
            layout: RowLayout::new(table),
            tree: Arc::new(RwLock::new(OrderedIndex::new())),
            reserved: Arc::default(),
            retired: Arc::default(),
            readiness: Arc::new(Readiness::ready()),
        }
    }

    /// An index of rows that are there already and are to be entered behind the start.
    pub(crate) fn unfilled(def: IndexDef, table: &TableDef) -> Self {
        Self { readiness: Arc::default(), ..Self::new(def, table) }
    }

    /// The same index under a changed definition of its table.
    pub(crate) fn renewed(&self, def: IndexDef, table: &TableDef) -> Self {
        Self {
            form: form_of(&def, table),
            of: self.of,
            def,
            layout: RowLayout::new(table),
            tree: Arc::clone(&self.tree),
            reserved: Arc::clone(&self.reserved),
            retired: Arc::clone(&self.retired),
            readiness: Arc::clone(&self.readiness),
        }
    }

    /// Whether it knows every row. One that does not yet is written, but not read.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.readiness.is_ready()
    }

    pub(crate) fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Whether a plan should use it: after a start that is not so until it is filled. The first who asks waits a
    /// little.
    pub fn is_usable(&self) -> bool {
        self.readiness.is_soon()
    }

    /// Empties an index that is being dropped.
    pub(crate) fn retire(&self) {
        let mut tree = self.tree.write();
        // Relaxed: the lock orders it with the look of a scan.
        self.retired.store(true, Ordering::Relaxed);
        tree.clear();
    }

    /// Whether the index was dropped. Asked under the lock of `tree`.
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// The definition: name, columns, whether unique.
    pub fn def(&self) -> &IndexDef {
        &self.def
    }

    /// The index's name.
    pub fn name(&self) -> &str {
        &self.def.name
    }

    /// Entries, counting those of rows that expired but were not yet cleared away.
    pub fn len(&self) -> u64 {
        self.tree.read().len() as u64
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how many entries lie within the bounds.
    pub(crate) fn estimate_in(&self, arena: &Arenas, bounds: &KeyBounds) -> u64 {
        let (lower, upper) = bounds.encoded(self);
        let tree = self.tree.read();
        tree.estimate(
            &Range { lower: as_slice(&lower), upper: as_slice(&upper), ..Range::ALL },
            &self.rows(arena),
        ) as u64
    }

    /// Bytes of the heap that it takes.
    pub fn heap_bytes(&self) -> usize {
        self.tree.read().memory_bytes()
    }

    /// How texts of the column at this place compare.
    pub fn collation(&self, at: usize) -> Collation {
        self.form.get(at).map_or(Collation::Binary, |column| column.collation)
    }

    /// Whether the index has an entry for this row: a partial one has not for each.
    pub(crate) fn holds(&self, row: &RowBuf) -> bool {
        self.def.predicate.is_none_or(|predicate| self.layout.column(row, predicate) == HELD)
    }

    /// The sort key of a row; false when a unique index does not count it, for a column is NULL or the index does not
    /// hold the row.
    pub(crate) fn sort_key(&self, row: &RowBuf, out: &mut Vec<u8>) -> bool {
        out.clear();
        self.append_sort_key(row, out)
    }

    fn append_sort_key(&self, row: &RowBuf, out: &mut Vec<u8>) -> bool {
        let mut unique = self.def.unique && self.holds(row);
        for form in &self.form {
            let value = self.layout.column(row, form.column);
            unique &= !matches!(value, ValueRef::Null);
            sort_key_column(value, form.collation, form.descending, out);
        }
        unique
    }

    /// What it has of its column, if it is one over elements.
    pub fn elements_of(&self) -> ElementsOf {
        self.of
    }

    /// Whether it has an entry for each element of an array.
    #[inline]
    pub(crate) fn is_of_elements(&self) -> bool {
        self.def.elements.is_some()
    }

    /// The keys of the elements that a row has, and has entries for.
    pub(crate) fn element_keys(&self, row: &RowBuf, keys: &mut ElementKeys) {
        if !self.read_elements(row, keys) {
            // It had ended when the index was made (`has_room_for`), and nobody reads it.
            keys.clear();
        }
    }

    /// Whether it can have an entry for each element of a row.
    pub(crate) fn has_room_for(&self, row: &RowBuf) -> bool {
        self.read_elements(row, &mut ElementKeys::default())
    }

    /// Takes the keys of a row's elements. False: they are more than have ordinals.
    fn read_elements(&self, row: &RowBuf, keys: &mut ElementKeys) -> bool {
        keys.clear();
        if let Some(form) = self.form.first().filter(|_| self.holds(row)) {
            keys.read(self.layout.column(row, form.column), self.of, form.collation);
        }
        keys.len() <= ELEMENTS_MAX
    }

    /// Hands out each key of a row, which is made in `key`, with the entry that it has.
    pub(crate) fn each_entry(
        &self,
        hash: Hash,
        row: &RowBuf,
        key: &mut Vec<u8>,
        mut take: impl FnMut(&[u8], u64),
    ) {
        if self.is_of_elements() {
            ELEMENTS.with_borrow_mut(|keys| {
                self.element_keys(row, keys);
                keys.iter().for_each(|(ordinal, key)| take(key, entry_of_element(ordinal, row.location())));
            });
        } else if self.holds(row) {
            self.sort_key(row, key);
            take(key, entry_of(hash, row.location()));
        }
    }

    /// Whether two rows have the same values in its columns, so that their sort keys are equal. False says nothing:
    /// other values may be equal by its collations.
    pub(crate) fn knows_alike(&self, a: &RowBuf, b: &RowBuf) -> bool {
        let value = |row, form: &KeyColumn| self.layout.column(row, form.column);
        self.form.iter().all(|form| value(a, form) == value(b, form))
    }

    /// The values of a row by which this unique index knows it; `None` where it does not count the row.
    pub fn unique_key(&self, values: &[Value]) -> Option<Vec<u8>> {
        let held = self.def.predicate.is_none_or(|predicate| values[predicate].as_ref() == HELD);
        if !held || self.form.iter().any(|form| values[form.column].is_null()) {
            return None;
        }
        let mut key = Vec::new();
        for form in &self.form {
            sort_key_column(values[form.column].as_ref(), form.collation, form.descending, &mut key);
        }
        Some(key)
    }

    /// Values of the leading columns as the beginning of sort keys.
    pub(crate) fn encoded<'v>(&self, values: impl Iterator<Item = ValueRef<'v>>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (value, form) in values.zip(&self.form) {
            sort_key_column(value, form.collation, form.descending, &mut bytes);
        }
        bytes
    }

    /// Reads the sort keys of entries from the rows they name.
    pub(crate) fn rows<'a>(&'a self, arena: &'a Arenas) -> RowKeys<'a> {
        RowKeys { index: self, arena }
    }
}

fn form_of(def: &IndexDef, table: &TableDef) -> Vec<KeyColumn> {
    let form = def.named().iter().enumerate().map(|(at, &column)| KeyColumn {
        column,
        collation: def.collation(at, &table.columns),
        descending: def.is_descending(at),
    });
    form.collect()
}

pub(crate) fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(bytes) => Bound::Included(bytes),
        Bound::Excluded(bytes) => Bound::Excluded(bytes),
    }
}

/// The rows behind the entries of an index.
#[derive(Debug)]
pub(crate) struct RowKeys<'a> {
    index: &'a Index,
    arena: &'a Arenas,
}

thread_local! {
    /// The elements of the row whose entries are handed out.
    static ELEMENTS: RefCell<ElementKeys> = RefCell::default();
    /// Row copies for comparisons within a tree, and the keys of their elements.
    static COMPARED: RefCell<(RowBuf, ElementKeys)> = RefCell::default();
}

impl SortKeys for RowKeys<'_> {
    fn sort_key(&self, entry: u64, out: &mut Vec<u8>) {
        let location = Location::from_bits(entry);
        COMPARED.with_borrow_mut(|(row, keys)| {
            let Some(read) = self.arena.of(location).row(location) else { return };
            if !row.load(&read) {
                return;
            }
            if !self.index.is_of_elements() {
                self.index.append_sort_key(row, out);
                return;
            }
            self.index.element_keys(row, keys);
            let ordinal = usize::try_from(entry >> (64 - TAG_BITS)).unwrap_or(usize::MAX);
            out.extend_from_slice(keys.get(ordinal).unwrap_or_default());
        });
    }
}
