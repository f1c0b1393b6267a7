//! Rows by what they have in common, and how far the aggregates of each group have come.

use hashbrown::HashMap;
use store::definition::{Collation, ColumnKind};
use store::value::{Value, ValueRef};

use super::aggregate::Running;
use super::expr::{Beyond, Term};
use super::scope::{Given, Place, Scope};

/// What a group takes in the table beside its words: an entry and its share of empty places.
const ENTRY_BYTES: usize = 64;

/// A term of `GROUP BY`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Key {
    Number(Term),
    /// A column of texts that compare by their bytes.
    Text(Place),
}

/// One group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) key: Vec<Value>,
    pub(super) running: Vec<Running>,
}

/// All groups met so far.
#[derive(Debug, Default)]
pub(super) struct Groups {
    all: Vec<Group>,
    /// Where each is, by its key as bytes.
    places: HashMap<Box<[u8]>, usize>,
    /// The key of the row at hand.
    key: Vec<u8>,
    /// About what all of them take.
    heap_bytes: usize,
}

impl Key {
    pub(super) fn text(scope: &Scope, place: Place) -> Option<Self> {
        (scope.kind(place)? == ColumnKind::Text).then_some(Self::Text(place))
    }

    fn value<'g>(&self, given: Given<'g>) -> Result<ValueRef<'g>, Beyond> {
        match self {
            Self::Number(number) => Ok(number.whole(given)?.map_or(ValueRef::Null, ValueRef::Integer)),
            Self::Text(place) => match given.column(*place) {
                ValueRef::Integer(_) | ValueRef::Real(_) => Err(Beyond),
                value => Ok(value),
            },
        }
    }
}

impl Groups {
    /// The groups of a statement without `GROUP BY`: one, even of no rows.
    pub(super) fn one(aggregates: usize) -> Self {
        let one = Group { key: Vec::new(), running: vec![Running::default(); aggregates] };
        Self { all: vec![one], ..Self::default() }
    }

    /// The group of a row, made if it is the first of its kind; so many aggregates and bytes are there for it.
    #[inline]
    pub(super) fn of_row(
        &mut self,
        keys: &[Key],
        given: Given<'_>,
        aggregates: usize,
        heap_bytes_max: usize,
    ) -> Result<&mut Group, Beyond> {
        if keys.is_empty() {
            return self.all.first_mut().ok_or(Beyond);
        }
        self.key.clear();
        for key in keys {
            write(key.value(given)?, &mut self.key)?;
        }
        let place = match self.places.get(self.key.as_slice()) {
            Some(&place) => place,
            None => self.enter(keys, given, aggregates, heap_bytes_max)?,
        };
        self.all.get_mut(place).ok_or(Beyond)
    }

    #[cold]
    fn enter(
        &mut self,
        keys: &[Key],
        given: Given<'_>,
        aggregates: usize,
        heap_bytes_max: usize,
    ) -> Result<usize, Beyond> {
        let key: Result<Vec<Value>, Beyond> =
            keys.iter().map(|key| Ok(key.value(given)?.to_owned())).collect();
        self.heap_bytes += ENTRY_BYTES
            + size_of::<Group>()
            + 2 * self.key.len()
            + keys.len() * size_of::<Value>()
            + aggregates * size_of::<Running>();
        if self.heap_bytes > heap_bytes_max {
            return Err(Beyond);
        }
        let place = self.all.len();
        self.all.push(Group { key: key?, running: vec![Running::default(); aggregates] });
        self.places.insert(self.key.as_slice().into(), place);
        Ok(place)
    }

    /// The groups in the order of their keys, in which SQLite's own way brings them.
    pub(super) fn in_order(mut self) -> Vec<Group> {
        self.all.sort_by(|a, b| {
            let pairs = a.key.iter().zip(&b.key);
            let compared = pairs.map(|(a, b)| Collation::Binary.compare(a.as_ref(), b.as_ref()));
            compared.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
        self.all
    }
}

/// Appends a value so that equal values are equal bytes, and none is the beginning of another.
fn write(value: ValueRef<'_>, key: &mut Vec<u8>) -> Result<(), Beyond> {
    let (sort, bytes) = match value {
        ValueRef::Null => (0, &[][..]),
        ValueRef::Integer(integer) => {
            key.push(1);
            key.extend_from_slice(&integer.to_le_bytes());
            return Ok(());
        }
        ValueRef::Text(text) => (2, text.as_bytes()),
        ValueRef::Blob(bytes) => (3, bytes),
        ValueRef::Real(_) => return Err(Beyond),
    };
    key.push(sort);
    key.extend_from_slice(&bytes.len().to_le_bytes());
    key.extend_from_slice(bytes);
    Ok(())
}
