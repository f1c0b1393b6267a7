//! The ghost queue of S3-FIFO: which rows were evicted a short while ago.
//!
//! A row that comes back while its ghost is remembered was evicted too soon, so it goes straight to the main
//! queue. The queue keeps no rows, only that they were there: eight bytes for each, in buckets of one cache
//! line. Age is counted by what left since, so nothing is ever moved: an entry that is older than the capacity is
//! simply no member any more, and its place is free.
//!
//! What leaves is counted in rows where a table has a limit of rows, and in bytes where memory is the limit: a few
//! large rows in the main queue take the place of many small ones, and as many must be remembered.
//!
//! Membership is approximate both ways, which costs the policy nothing that can be measured: two rows whose
//! fingerprints agree are one to it (with a million rows one miss in 4,000: six entries in a bucket that
//! shares 2^32 fingerprints with 167,000 others), and a crowded bucket forgets its oldest entry before its
//! time (about one in forty).

/// Entries of a bucket: eight of eight bytes are a cache line.
const WAYS: usize = 8;
/// Entries expected in a full bucket. Buckets fill unevenly; three free places keep early forgetting at one in forty.
const WAYS_USED: usize = 5;
/// A set with so many times the buckets that it needs gives them back.
const SPARSE: usize = 4;
/// One remembered row. Fingerprint 0 marks a free place.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    fingerprint: u32,
    /// The insertion counter when it came; it wraps, and so does the subtraction that gives the age.
    inserted: u32,
}

/// A bucket, aligned so that looking at it touches one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Bucket([Entry; WAYS]);

/// Bytes in which the size of a row counts: an age is 31 bits of these, which is 128 GiB.
const GRAIN_BYTES: u64 = 64;
/// Rows of which the mean size is taken.
const SIZES_MEASURED: u32 = 1_024;
/// Rows that a small table remembers.
const ROWS_MIN: u64 = 1_024;
/// The window in per cent of the main queue: a row that comes back a little later than it would have left there is
/// worth its place, too.
const WINDOW_PER_CENT: u64 = 140;

/// A bounded first-in-first-out set of row hashes.
#[derive(Debug, Default)]
pub struct Ghost {
    buckets: Vec<Bucket>,
    /// For how much of what leaves an entry is remembered.
    capacity: u32,
    /// What left so far, wrapping.
    insertions: u32,
    /// The sizes of rows, as they leave.
    sizes: Sizes,
}

/// The mean size of rows, in grains.
#[derive(Debug, Default)]
struct Sizes {
    sum: u64,
    rows: u32,
    /// Of the rows measured last; 0: none were.
    mean: u64,
}

impl Sizes {
    fn add(&mut self, grains: u32) {
        self.sum += u64::from(grains);
        self.rows += 1;
        if self.rows == SIZES_MEASURED || self.mean == 0 {
            self.mean = (self.sum / u64::from(self.rows)).max(1);
        }
        if self.rows == SIZES_MEASURED {
            (self.sum, self.rows) = (0, 0);
        }
    }
}

impl Ghost {
    /// A set that remembers the last `capacity` insertions; of none, it is always empty.
    pub fn new(capacity: usize) -> Self {
        let capacity = bounded(capacity);
        let buckets = vec![Bucket::default(); buckets_for(capacity)];
        Self { buckets, capacity, ..Self::default() }
    }

    /// How many insertions are remembered.
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// The heap that the set takes.
    pub fn memory_bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<Bucket>()
    }

    /// Remembers a row; one that is remembered already counts as inserted now.
    pub fn insert(&mut self, hash: u64) {
        self.insertions = self.insertions.wrapping_add(1);
        let entry = Entry { fingerprint: fingerprint(hash), inserted: self.insertions };
        self.put(entry);
    }

    /// Remembers a row of so many bytes until as many have left as the main queue holds, and a part more.
    pub fn insert_sized(&mut self, hash: u64, bytes: u64, main_bytes: u64) {
        let grains = bounded(usize::try_from(bytes.div_ceil(GRAIN_BYTES)).unwrap_or(usize::MAX));
        self.sizes.add(grains);
        self.fit(main_bytes);
        self.insertions = self.insertions.wrapping_add(grains);
        self.put(Entry { fingerprint: fingerprint(hash), inserted: self.insertions });
    }

    /// Has a window for a main queue of so many bytes, and room in it for rows of the sizes that left last.
    fn fit(&mut self, main_bytes: u64) {
        let mean = self.sizes.mean.max(1);
        let window = (main_bytes / GRAIN_BYTES * WINDOW_PER_CENT / 100).max(ROWS_MIN * mean);
        let rows = u32::try_from(window / mean).unwrap_or(u32::MAX);
        let window = bounded(usize::try_from(window).unwrap_or(usize::MAX));
        let buckets = buckets_for(rows);
        if buckets > self.buckets.len() || buckets * SPARSE < self.buckets.len() {
            // Somewhat more, so that it is seldom made again while it grows.
            self.rebuild(window, buckets + buckets / 4);
        }
        self.capacity = window;
    }

    /// Whether a row is remembered.
    pub fn contains(&self, hash: u64) -> bool {
        let fingerprint = fingerprint(hash);
        let bucket = self.buckets.get(self.bucket_of(fingerprint));
        bucket.is_some_and(|bucket| bucket.0.iter().any(|entry| self.is_member(*entry, fingerprint)))
    }

    /// Forgets a row; whether it was remembered.
    pub fn remove(&mut self, hash: u64) -> bool {
        let fingerprint = fingerprint(hash);
        let at = self.bucket_of(fingerprint);
        let Some(bucket) = self.buckets.get(at) else {
            return false;
        };
        let Some(way) = bucket.0.iter().position(|entry| self.is_member(*entry, fingerprint)) else {
            return false;
        };
        self.buckets[at].0[way] = Entry::default();
        true
    }

    /// Forgets every row.
    pub fn clear(&mut self) {
        self.buckets.fill(Bucket::default());
    }

    /// Remembers from now on so many insertions. The buckets are made again where their number changes;
    /// entries that are young enough stay members.
    pub fn set_capacity(&mut self, capacity: usize) {
        let capacity = bounded(capacity);
        self.rebuild(capacity, buckets_for(capacity));
    }

    fn rebuild(&mut self, capacity: u32, buckets: usize) {
        // Entries that are too old under the old capacity must not come back to life under a larger one.
        let limit = capacity.min(self.capacity);
        let insertions = self.insertions;
        let mut kept: Vec<Entry> = self.buckets.iter().flat_map(|bucket| bucket.0).collect();
        kept.retain(|entry| entry.fingerprint != 0 && insertions.wrapping_sub(entry.inserted) < limit);
        // Oldest first, so that a crowded bucket keeps the youngest.
        kept.sort_unstable_by_key(|entry| std::cmp::Reverse(insertions.wrapping_sub(entry.inserted)));
        self.capacity = capacity;
        self.buckets = vec![Bucket::default(); buckets];
        for entry in kept {
            self.put(entry);
        }
    }

    /// Puts an entry where it is already, else in a free place, else where the oldest was.
    fn put(&mut self, new: Entry) {
        let at = self.bucket_of(new.fingerprint);
        let insertions = self.insertions;
        let Some(bucket) = self.buckets.get_mut(at) else {
            return;
        };
        let rank = |entry: &Entry| {
            if entry.fingerprint == new.fingerprint {
                return u64::MAX;
            }
            if entry.fingerprint == 0 {
                return u64::MAX - 1;
            }
            u64::from(insertions.wrapping_sub(entry.inserted))
        };
        if let Some(place) = bucket.0.iter_mut().max_by_key(|entry| rank(entry)) {
            *place = new;
        }
    }

    /// The bucket of a fingerprint: its share of the whole range, so that every number of buckets works and a
    /// fingerprint alone says where it belongs.
    fn bucket_of(&self, fingerprint: u32) -> usize {
        let scaled = u64::from(fingerprint) * self.buckets.len() as u64;
        (scaled >> 32) as usize
    }

    fn is_member(&self, entry: Entry, fingerprint: u32) -> bool {
        entry.fingerprint == fingerprint && self.insertions.wrapping_sub(entry.inserted) < self.capacity
    }
}

/// Half the counter's range, so that an age is never mistaken for a younger one while its entry is in use.
fn bounded(capacity: usize) -> u32 {
    u32::try_from(capacity).unwrap_or(u32::MAX).min(u32::MAX / 2)
}

fn buckets_for(capacity: u32) -> usize {
    (capacity as usize).div_ceil(WAYS_USED)
}

/// Thirty-two bits of the hash, never 0.
fn fingerprint(hash: u64) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "the upper half is folded into the lower")]
    let folded = (hash ^ hash >> 32) as u32;
    folded.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded;

    #[test]
    fn remembers_the_last_insertions() {
        let mut random = seeded();
        let hashes: Vec<u64> = (0..5000).map(|_| random.u64(..)).collect();
        let mut ghost = Ghost::new(1000);
        for hash in &hashes {
            ghost.insert(*hash);
        }
        let remembered = |hashes: &[u64]| hashes.iter().filter(|hash| ghost.contains(**hash)).count();
        assert!(remembered(&hashes[4000..]) > 930, "a crowded bucket may forget a few early");
        assert!(remembered(&hashes[..4000]) < 5, "older ones are gone");
        assert!(ghost.memory_bytes() <= 1000 * 13);
    }

    #[test]
    fn a_few_large_rows_remember_as_many_small_ones_as_take_their_place() {
        let mut random = seeded();
        let main_bytes = 50_000_000;
        let mut ghost = Ghost::default();
        for _ in 0..100 {
            ghost.insert_sized(random.u64(..), 500_000, main_bytes);
        }
        assert!(ghost.memory_bytes() < 20_000, "{}", ghost.memory_bytes());
        let hashes: Vec<u64> = (0..1_000_000).map(|_| random.u64(..)).collect();
        for hash in &hashes {
            ghost.insert_sized(*hash, 128, main_bytes);
        }
        let remembered = |hashes: &[u64]| hashes.iter().filter(|hash| ghost.contains(**hash)).count();
        let kept = usize::try_from(main_bytes / 128).unwrap();
        assert!(remembered(&hashes[hashes.len() - kept..]) > kept * 93 / 100);
        assert!(remembered(&hashes[..hashes.len() - 2 * kept]) < 100, "older ones are gone");
        for _ in 0..20_000 {
            ghost.insert_sized(random.u64(..), 500_000, main_bytes);
        }
        assert!(ghost.memory_bytes() < 100_000, "{}", ghost.memory_bytes());
    }

    #[test]
    fn order_of_insertion_is_exact() {
        let mut ghost = Ghost::new(3);
        let hash = |number: u64| number << 61;
        (1..=4).for_each(|number| ghost.insert(hash(number)));
        assert!(!ghost.contains(hash(1)));
        assert!((2..=4).all(|number| ghost.contains(hash(number))));
        ghost.insert(hash(2));
        ghost.insert(hash(5));
        assert!(!ghost.contains(hash(3)), "three insertions ago");
        assert!(ghost.contains(hash(2)), "inserted again");
    }

    #[test]
    fn removing_forgets_once() {
        let mut ghost = Ghost::new(10);
        ghost.insert(7);
        assert!(ghost.remove(7));
        assert!(!ghost.remove(7));
        assert!(!ghost.contains(7));
        ghost.insert(0);
        assert!(ghost.contains(0), "a hash whose fingerprint would be 0");
        ghost.clear();
        assert!(!ghost.contains(0));
    }

    #[test]
    fn no_capacity_is_no_memory() {
        let mut ghost = Ghost::new(0);
        ghost.insert(1);
        assert!(!ghost.contains(1));
        assert!(!ghost.remove(1));
        assert_eq!(ghost.memory_bytes(), 0);
    }

    #[test]
    fn capacity_changes_keep_what_is_young_enough() {
        let mut random = seeded();
        let hashes: Vec<u64> = (0..2000).map(|_| random.u64(..)).collect();
        let mut ghost = Ghost::new(1000);
        for hash in &hashes {
            ghost.insert(*hash);
        }
        let remembered =
            |ghost: &Ghost, hashes: &[u64]| hashes.iter().filter(|hash| ghost.contains(**hash)).count();
        ghost.set_capacity(5000);
        assert!(remembered(&ghost, &hashes[1000..]) > 930);
        assert!(remembered(&ghost, &hashes[..1000]) < 5, "the dead stay dead");
        ghost.set_capacity(100);
        assert!(remembered(&ghost, &hashes[1900..]) > 80);
        assert!(remembered(&ghost, &hashes[..1900]) < 5);
        ghost.set_capacity(0);
        assert_eq!(remembered(&ghost, &hashes), 0);
    }

    #[test]
    fn the_counter_may_wrap() {
        let mut ghost = Ghost { insertions: u32::MAX - 2, ..Ghost::new(10) };
        (1..=8_u64).for_each(|number| ghost.insert(number << 40));
        assert!((1..=8_u64).all(|number| ghost.contains(number << 40)));
    }
}
