//! The tree against a sorted set of full keys, and its own shape.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

use super::target::RowReader;
use super::{EntryList, OrderedIndex, Range, Resume, SortKeys};
use crate::codec::{prefix_end, sort_key, sort_key_column, text_prefix};
use crate::definition::Collation;
use crate::testing::seeded;
use crate::value::ValueRef;

/// Rows by location. A tree that asks for a row that is not here breaks its invariant.
#[derive(Default)]
struct Rows(HashMap<u64, Vec<u8>>);

impl SortKeys for Rows {
    fn sort_key(&self, location: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.get(&location).expect("only rows of live entries are read"));
    }
}

/// The bits of a location that two versions of a row share.
const LOCATION_TAG: u64 = u64::MAX << 48;

type Model = BTreeSet<(Vec<u8>, u64)>;

fn key(values: &[ValueRef<'_>]) -> Vec<u8> {
    let mut key = Vec::new();
    sort_key(values, &mut key);
    key
}

/// Keys of several shapes: exact, long with long common beginnings, and both with many duplicates.
const SHAPES: usize = 15;
/// One more: columns that descend have bytes of zero where blobs have 255, many in a row, and end in 255.
const ZEROS: usize = SHAPES;

fn random_key(shape: usize, random: &mut fastrand::Rng) -> Vec<u8> {
    let number = random.i64(0..3000);
    match shape {
        0 => key(&[ValueRef::Integer(number)]),
        1 => key(&[ValueRef::Text(&format!("https://example.com/page/{number}"))]),
        2 => key(&[ValueRef::Integer(number / 100), ValueRef::Text(&format!("user:{number}"))]),
        3 => key(&[ValueRef::Text(["a", "tag", "long enough to tie"][random.usize(0..3)])]),
        4 => key(&[ValueRef::Real(number as f64 / 8.0), ValueRef::Null]),
        // Bytes of zero at the end, which leaves leave out.
        5 => key(&[ValueRef::Integer(number * 128)]),
        6 => key(&[ValueRef::Integer((1 << 40) + (number - 9) * 65_536 * 128)]),
        // More bytes than a head has, then more than a run keeps, of which neighbours share some.
        7 => key(&[ValueRef::Integer((number / 90) << 40), ValueRef::Integer(-(number << 30))]),
        8 => key(&[ValueRef::Real(number as f64 / 8.0), ValueRef::Real(number as f64 / 3.0)]),
        // Seldom one that is longer than its neighbours.
        9 if number % 500 == 0 => key(&[ValueRef::Text(&format!("{number} and what it is called"))]),
        9 => key(&[ValueRef::Text(&format!("{number}"))]),
        // What neighbours share grows, shrinks and exceeds what a node can skip.
        10 => {
            let shared = "/deep".repeat(random.usize(0..20));
            key(&[ValueRef::Text(&format!("{shared}{}", number % 50)), ValueRef::Integer(number)])
        }
        // All types in one column, numbers of every length and both signs.
        11 => key(&[any_value(number, random)]),
        12 => {
            let mut bytes = Vec::new();
            sort_key_column(any_value(number, random), Collation::Binary, true, &mut bytes);
            sort_key_column(ValueRef::Integer(number % 7), Collation::Binary, false, &mut bytes);
            bytes
        }
        // As long as what a run keeps behind the shared bytes, a byte less and more, with zeros at the end.
        13 => key(&[
            ValueRef::Blob(&number.to_be_bytes()),
            ValueRef::Integer((number % 3) << (6 + number % 50)),
        ]),
        ZEROS => {
            let mut bytes = vec![0xff; if number % 4 == 0 { 0 } else { random.usize(0..24) }];
            bytes.last_mut().filter(|_| random.bool()).into_iter().for_each(|last| *last = 0xfe);
            let mut key = Vec::new();
            sort_key_column(ValueRef::Blob(&bytes), Collation::Binary, true, &mut key);
            key
        }
        // Crowds of equal keys between single ones: leaves side by side are as narrow and as wide as can be.
        _ => match number % 3 {
            0 => key(&[ValueRef::Integer(number / 1000), ValueRef::Integer(0)]),
            1 => key(&[ValueRef::Integer(number / 1000), ValueRef::Integer(random.i64(..))]),
            _ => key(&[ValueRef::Integer(number / 1000), ValueRef::Text("a key that no leaf knows whole")]),
        },
    }
}

fn any_value(number: i64, random: &mut fastrand::Rng) -> ValueRef<'static> {
    match number % 8 {
        0 => ValueRef::Null,
        1 => ValueRef::Real(f64::from_bits(random.u64(..) & !(0x7ff << 52) | random.u64(970..1100) << 52)),
        2 => ValueRef::Real(number as f64 / -4.0),
        3 => ValueRef::Text(["", "a", "a\0", "b"][random.usize(0..4)]),
        4 => ValueRef::Blob([&b""[..], b"\0", b"\0\0", b"\xff\xff"][random.usize(0..4)]),
        5 => ValueRef::Integer(random.choice([i64::MIN, i64::MIN + 1, i64::MAX]).unwrap_or_default()),
        _ => ValueRef::Integer(random.i64(..) >> random.u8(0..64)),
    }
}

/// How rows lie.
#[derive(Clone, Copy, PartialEq)]
enum Lie {
    /// Anywhere.
    Far,
    /// As those of a table that takes less than 32 GiB.
    Near,
    /// As those of one that seldom takes more.
    Mixed,
    /// Near, with tags that most of them share.
    Crowded,
}

impl Lie {
    const ALL: [Self; 4] = [Self::Far, Self::Near, Self::Mixed, Self::Crowded];
}

struct Fixture {
    lie: Lie,
    tree: OrderedIndex,
    model: Model,
    rows: Rows,
    next: u64,
}

impl Fixture {
    fn new(lie: Lie) -> Self {
        Self { lie, tree: OrderedIndex::new(), model: Model::new(), rows: Rows::default(), next: 0 }
    }

    fn insert(&mut self, key: Vec<u8>, location: u64) {
        self.rows.0.insert(location, key.clone());
        assert!(self.tree.insert(&key, location, &self.rows));
        assert!(self.model.insert((key, location)));
    }

    /// Locations in no order, as the arena gives them.
    fn new_location(&mut self) -> u64 {
        self.next += 1;
        let number = self.next.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let near = number & LOCATION_TAG | number & 0xffff_ffff;
        match self.lie {
            Lie::Far => number,
            Lie::Mixed if self.next.is_multiple_of(700) => near | 3 << 32,
            Lie::Near | Lie::Mixed => near,
            Lie::Crowded => near & (1 << 63 | 0xffff_ffff),
        }
    }

    fn remove(&mut self, key: &[u8], location: u64) {
        assert!(self.tree.remove(key, location, &self.rows));
        assert!(self.model.remove(&(key.to_vec(), location)));
        self.rows.0.remove(&location);
    }

    /// Removes entries as a list, and a few that are not here. Their rows stay readable until the last has left.
    fn remove_together(&mut self, mut entries: Vec<(Vec<u8>, u64)>, random: &mut fastrand::Rng) {
        for at in 0..entries.len() / 50 {
            let nowhere = (entries[at].0.clone(), self.new_location());
            self.rows.0.insert(nowhere.1, nowhere.0.clone());
            entries.push(nowhere);
        }
        if random.bool() {
            entries.sort();
        } else {
            random.shuffle(&mut entries);
        }
        let mut list = EntryList::default();
        for some in entries.chunks(random.usize(1..200)) {
            list.clear();
            for (key, location) in some {
                list.push(key, *location);
            }
            self.tree.remove_listed(&list, &self.rows);
        }
        for entry in &entries {
            self.model.remove(entry);
            self.rows.0.remove(&entry.1);
        }
    }

    /// Some entries: neighbours, or here and there.
    fn some_entries(&self, random: &mut fastrand::Rng) -> Vec<(Vec<u8>, u64)> {
        let (first, step) = (random.usize(0..self.model.len().max(1)), random.usize(1..20));
        let step = if random.bool() { 1 } else { step };
        let most = random.usize(1..600);
        self.model.iter().skip(first).step_by(step).take(most).cloned().collect()
    }

    fn some_entry(&self, random: &mut fastrand::Rng) -> Option<(Vec<u8>, u64)> {
        let location = self.tree.location_at(random.usize(0..self.tree.len().max(1)))?;
        Some((self.rows.0[&location].clone(), location))
    }

    fn step(&mut self, shape: usize, growing: bool, random: &mut fastrand::Rng) {
        match random.u8(0..10) {
            0..=6 if growing => {
                let location = self.new_location();
                self.insert(random_key(shape, random), location);
            }
            7 => {
                let new = self.new_location();
                if let Some((key, old)) = self.some_entry(random) {
                    // Mostly in the place that it has, as the store's entries of one key.
                    let beside = old & LOCATION_TAG | new & !LOCATION_TAG;
                    let new = if random.bool() || self.rows.0.contains_key(&beside) { new } else { beside };
                    self.rows.0.insert(new, key.clone());
                    assert!(self.tree.replace_location(&key, old, new, &self.rows));
                    self.model.remove(&(key.clone(), old));
                    self.rows.0.remove(&old);
                    self.model.insert((key, new));
                }
            }
            8 => {
                let key = random_key(shape, random);
                let nowhere = self.new_location();
                self.rows.0.insert(nowhere, key.clone());
                assert!(!self.tree.remove(&key, nowhere, &self.rows));
                assert!(!self.tree.replace_location(&key, nowhere, nowhere, &self.rows));
                self.rows.0.remove(&nowhere);
                if let Some((key, location)) = self.some_entry(random) {
                    assert!(!self.tree.insert(&key, location, &self.rows), "inserted twice");
                }
            }
            _ => {
                if let Some((key, location)) = self.some_entry(random) {
                    self.remove(&key, location);
                }
            }
        }
    }

    fn check(&self) {
        assert_eq!(self.tree.len(), self.model.len());
        let mut all = Vec::new();
        assert_eq!(self.tree.range(&Range::ALL, &self.rows, usize::MAX, &mut all), None);
        assert!(all.iter().eq(self.model.iter().map(|(_, location)| location)));
        if let Some(root) = &self.tree.root {
            let mut tally = super::Tally::default();
            root.check(&mut RowReader::new(&self.rows), &mut tally);
            assert_eq!(tally, self.tree.tally);
        }
    }

    fn check_range(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>, random: &mut fastrand::Rng) {
        let inside = |key: &Vec<u8>| {
            let key = key.as_slice();
            (match lower {
                Bound::Included(lower) => key >= lower,
                Bound::Excluded(lower) => key > lower,
                Bound::Unbounded => true,
            }) && (match upper {
                Bound::Included(upper) => key <= upper,
                Bound::Excluded(upper) => key < upper,
                Bound::Unbounded => true,
            })
        };
        let mut expected: Vec<u64> =
            self.model.iter().filter(|(key, _)| inside(key)).map(|(_, location)| *location).collect();
        let range = Range { lower, upper, ..Range::ALL };
        assert_eq!(self.tree.estimate(&range, &self.rows), expected.len());
        let limit = random.usize(1..400);
        assert_eq!(self.in_chunks(range, limit), expected);
        expected.reverse();
        assert_eq!(self.in_chunks(Range { reverse: true, ..range }, limit), expected);
    }

    fn in_chunks(&self, range: Range<'_>, limit: usize) -> Vec<u64> {
        let mut found = Vec::new();
        let mut resume: Option<Resume> = None;
        loop {
            let range = Range { resume_after: resume.as_ref(), ..range };
            let before = found.len();
            resume = self.tree.range(&range, &self.rows, limit, &mut found);
            assert!(found.len() - before <= limit);
            if resume.is_none() {
                return found;
            }
        }
    }

    fn check_ranges(&self, shape: usize, random: &mut fastrand::Rng) {
        for _ in 0..10 {
            let (a, b) = (random_key(shape, random), random_key(shape, random));
            let (a, b) = if a < b { (a, b) } else { (b, a) };
            let a_end = prefix_end(&a).unwrap();
            let first = crate::codec::column_ends(&a).next().unwrap();
            let first_end = prefix_end(&a[..first]).unwrap();
            self.check_range(Bound::Included(&a), Bound::Excluded(&b), random);
            self.check_range(Bound::Excluded(&a), Bound::Included(&b), random);
            self.check_range(Bound::Included(&a_end), Bound::Unbounded, random);
            self.check_range(Bound::Unbounded, Bound::Excluded(&a), random);
            self.check_range(Bound::Included(&a), Bound::Excluded(&a_end), random);
            self.check_range(Bound::Included(&a[..first]), Bound::Excluded(&first_end), random);
            self.check_range(Bound::Included(&b), Bound::Excluded(&a), random);
            let mut text = Vec::new();
            text_prefix("https://example.com/page/1", &mut text);
            let text_end = prefix_end(&text).unwrap();
            self.check_range(Bound::Included(&text), Bound::Excluded(&text_end), random);
        }
    }
}

/// A tree of one shape's keys that grows and shrinks twice.
fn agrees(shape: usize, lie: Lie, random: &mut fastrand::Rng) {
    let mut fixture = Fixture::new(lie);
    for growing in [true, false, true, false] {
        for _ in 0..2500 {
            fixture.step(shape, growing, random);
        }
        fixture.check();
        fixture.check_ranges(shape, random);
    }
}

#[test]
fn agrees_with_a_sorted_set() {
    let mut random = seeded();
    for (shape, lie) in (0..SHAPES).flat_map(|shape| Lie::ALL.map(|lie| (shape, lie))) {
        agrees(shape, lie, &mut random);
    }
}

#[test]
fn zeros_within_keys_and_greatest_heads_agree_too() {
    let mut random = seeded();
    for lie in Lie::ALL {
        agrees(ZEROS, lie, &mut random);
    }
}

#[test]
fn entries_leave_together_as_one_by_one() {
    let mut random = seeded();
    for (shape, lie) in (0..=ZEROS).flat_map(|shape| Lie::ALL.map(|lie| (shape, lie))) {
        let mut fixture = Fixture::new(lie);
        for round in 0..4 {
            for _ in 0..800 {
                let location = fixture.new_location();
                fixture.insert(random_key(shape, &mut random), location);
            }
            for _ in 0..3 {
                let some = fixture.some_entries(&mut random);
                fixture.remove_together(some, &mut random);
                fixture.check();
            }
            if round % 2 == 1 {
                fixture.check_ranges(shape, &mut random);
                let all = fixture.model.iter().cloned().collect();
                fixture.remove_together(all, &mut random);
                fixture.check();
                assert_eq!(fixture.tree.memory_bytes(), 0);
            }
        }
    }
}

#[test]
fn a_deep_tree_loses_any_part_of_its_entries() {
    let mut random = seeded();
    for text in [false, true] {
        let mut fixture = Fixture::new(Lie::Near);
        for _ in 0..60_000 {
            let location = fixture.new_location();
            let number = random.i64(..);
            let url = format!("https://example.com/{}/{number}", number % 40);
            let value = if text { ValueRef::Text(&url) } else { ValueRef::Integer(number) };
            fixture.insert(key(&[value]), location);
        }
        let full = fixture.tree.memory_bytes();
        let mut entries: Vec<_> = fixture.model.iter().cloned().collect();
        let middle = entries.drain(20_000..35_000).collect();
        fixture.remove_together(middle, &mut random);
        fixture.check();
        random.shuffle(&mut entries);
        let most = entries.drain(6_000..).collect();
        fixture.remove_together(most, &mut random);
        fixture.check();
        assert!(fixture.tree.memory_bytes() < full / 3, "sparse nodes are joined");
        fixture.remove_together(entries, &mut random);
        assert_eq!((fixture.tree.memory_bytes(), fixture.tree.len()), (0, 0));
    }
}

#[test]
fn grows_deep_and_frees_every_node() {
    let mut random = seeded();
    for text in [false, true] {
        let mut fixture = Fixture::new(Lie::Far);
        for _ in 0..60_000 {
            let location = fixture.new_location();
            let number = random.i64(..);
            let url = format!("https://example.com/{}/{number}", number % 40);
            fixture.insert(
                key(&[if text { ValueRef::Text(&url) } else { ValueRef::Integer(number) }]),
                location,
            );
        }
        fixture.check();
        let full = fixture.tree.memory_bytes();
        assert!(full < 60_000 * 24, "{full} bytes for 60,000 entries");
        drain(&mut fixture, full, &mut random);
        assert_eq!(fixture.tree.memory_bytes(), 0);
        assert!(fixture.tree.is_empty());
    }
}

fn drain(fixture: &mut Fixture, full: usize, random: &mut fastrand::Rng) {
    let mut entries: Vec<_> = fixture.model.iter().cloned().collect();
    random.shuffle(&mut entries);
    for (at, (key, location)) in entries.iter().enumerate() {
        fixture.remove(key, *location);
        if at % 10_000 == 0 {
            fixture.check();
        }
        if at == 54_000 {
            assert!(fixture.tree.memory_bytes() < full / 3, "sparse nodes are joined");
        }
    }
}

/// Rows that count how often they are asked.
struct Counted<'a>(&'a Rows, std::cell::Cell<usize>);

impl SortKeys for Counted<'_> {
    fn sort_key(&self, location: u64, out: &mut Vec<u8>) {
        self.1.set(self.1.get() + 1);
        self.0.sort_key(location, out);
    }
}

#[test]
fn rows_are_seldom_read() {
    let mut fixture = Fixture::new(Lie::Far);
    for number in 0..30_000_i64 {
        let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed());
        let location = fixture.new_location();
        fixture.insert(key(&[ValueRef::Text(&format!("https://example.com/{number}"))]), location);
    }
    let counted = Counted(&fixture.rows, std::cell::Cell::new(0));
    for (key, location) in fixture.model.iter().step_by(30) {
        assert_eq!(fixture.tree.first_equal(key, &counted), Some(*location));
    }
    let reads = counted.1.get();
    // One at each edge of the range of equal keys, and a few more.
    assert!(reads <= 2300, "{reads} rows read to find 1,000 keys");
}

#[test]
fn growing_and_shrinking_keys_fill_their_leaves() {
    for descending in [false, true] {
        let mut fixture = Fixture::new(Lie::Far);
        for number in 0..30_000 {
            let number = if descending { -number } else { number };
            fixture.insert(key(&[ValueRef::Integer(number)]), number.cast_unsigned());
        }
        fixture.check();
        // Numbers up to 60,000 differ in two bytes, a near location takes six.
        let each = fixture.tree.memory_bytes() as f64 / 30_000.0;
        assert!(each < 8.5, "{each} bytes an entry, descending {descending}");
    }
}

/// Numbers that grow or fall from one batch to the next, and come in no order within a batch.
fn in_batches(descending: bool, batches: i64, random: &mut fastrand::Rng) -> Vec<i64> {
    let batch = |number: i64| {
        let begin = if descending { -(number + 1) * BATCH } else { number * BATCH };
        let mut batch: Vec<i64> = (begin..begin + BATCH).collect();
        random.shuffle(&mut batch);
        batch
    };
    (0..batches).flat_map(batch).collect()
}

/// Rows that one statement brings.
const BATCH: i64 = 1000;

#[test]
fn batches_at_an_edge_agree_with_a_sorted_set() {
    let mut random = seeded();
    for (descending, text) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut fixture = Fixture::new(Lie::Near);
        for (count, number) in (1..).zip(in_batches(descending, 20, &mut random)) {
            let location = fixture.new_location();
            // Numbers of as many digits order as texts do.
            let url = format!("https://example.com/page/{}/of a book", number + 5_000_000);
            let value = if text { ValueRef::Text(&url) } else { ValueRef::Integer(number) };
            fixture.insert(key(&[value]), location);
            if count % 4 == 0 {
                let (key, location) = fixture.some_entry(&mut random).expect("an entry");
                fixture.remove(&key, location);
            }
            if count % 2000 == 0 {
                fixture.check();
            }
        }
    }
}

/// What an entry takes in an index of numbers whose rows come in this order.
fn bytes_an_entry(lie: Lie, numbers: impl Iterator<Item = i64>) -> f64 {
    let mut fixture = Fixture::new(lie);
    let mut bytes = Vec::new();
    for (count, number) in (1..).zip(numbers) {
        let location = fixture.new_location();
        fixture.insert(key(&[ValueRef::Integer(number)]), location);
        // A smaller index has leaves that are as full or empty as chance will have it.
        if count >= 50_000 && count % 5000 == 0 {
            bytes.push(fixture.tree.memory_bytes() as f64 / f64::from(count));
        }
    }
    fixture.check();
    bytes.into_iter().fold(0.0, f64::max)
}

#[test]
fn an_entry_takes_few_bytes() {
    let mut random = seeded();
    let days = std::iter::repeat_with(|| random.i64(0..86_400)).take(100_000);
    let at_random = bytes_an_entry(Lie::Near, days);
    let in_turn = bytes_an_entry(Lie::Near, (0..100_000).map(|number| number % 1000));
    let growing = bytes_an_entry(Lie::Near, (0..100_000).map(|number| number / 3));
    let far = bytes_an_entry(Lie::Far, (0..100_000).map(|number| number / 3));
    let ascending = bytes_an_entry(Lie::Near, in_batches(false, 100, &mut random).into_iter());
    let descending = bytes_an_entry(Lie::Near, in_batches(true, 100, &mut random).into_iter());
    // Seven bytes where all is well, nine for a location that is kept whole.
    assert!(at_random < 11.0, "{at_random}");
    assert!(in_turn < 9.5, "{in_turn}");
    assert!(growing < 9.0, "{growing}");
    assert!(far < 11.0, "{far}");
    assert!(ascending < 11.0, "{ascending}");
    assert!(descending < 11.0, "{descending}");
}

#[test]
fn equal_keys_and_distinct_values() {
    let mut fixture = Fixture::new(Lie::Far);
    for number in 0..12_000 {
        let (user, page) = (number % 100, number % 4000);
        fixture.insert(key(&[ValueRef::Integer(user), ValueRef::Integer(page)]), number.cast_unsigned());
    }
    let wanted = key(&[ValueRef::Integer(7), ValueRef::Integer(107)]);
    let mut found = Vec::new();
    fixture.tree.equal(&wanted, &fixture.rows, usize::MAX, &mut found);
    assert_eq!(found, [107, 4107, 8107]);
    assert_eq!(fixture.tree.first_equal(&wanted, &fixture.rows), Some(107));
    assert_eq!(fixture.tree.first_equal(&key(&[ValueRef::Integer(7), ValueRef::Null]), &fixture.rows), None);
    assert_eq!(fixture.tree.distinct_estimate(&fixture.rows, 2), [100, 4000]);
    assert_eq!(OrderedIndex::new().distinct_estimate(&fixture.rows, 2), [0, 0]);
}
