//! What must hold for every file that is given to be attached.
//!
//! An input is a list of edits to the image of a real arena. However it was damaged, recovery serves it or refuses
//! it; what it serves under a key was stored under that key, and the arena works on.

use arena::{
    Arena, Attach, Geometry, Image, Location, Lookup, Queue, RedoEntry, RowParts, SegmentId, SegmentTag,
    ShardToken, TableId,
};

const TABLE: TableId = TableId(7);
const GEOMETRY: Geometry = Geometry { memory_bytes: 4 << 20 };

/// Keys stored: enough for chains of buckets and a few segments.
const ROWS: u32 = 1_500;

/// Edits of one input.
const EDITS_MAX: usize = 64;

/// The superblock's words that never change, and the word that bears their check.
const CONSTANTS: u64 = 11;

/// An arena's image, and what was stored in it.
#[derive(Debug)]
pub struct Specimen {
    image: Image,
    /// Words in pages that are not all zeros.
    words: Vec<u64>,
    /// What the values begin with.
    pub salt: u8,
}

impl Specimen {
    /// An arena with a little of everything: many rows, dead ones, a run, definitions, a commit in flight.
    pub fn new(salt: u8) -> Self {
        let mut shelf = Shelf::new(Arena::create(None, &GEOMETRY, 1).expect("an arena in memory"));
        for i in 0..ROWS {
            assert!(shelf.put(&key(i), &value(salt, i)));
            shelf.grow();
        }
        assert!(shelf.put(&key(ROWS), &value(salt, ROWS).repeat(5_000)));
        for i in (0..ROWS).step_by(11) {
            shelf.delete(&key(i));
        }
        shelf.arena.set_catalogue(b"definitions").expect("it fits");
        shelf.arena.checkpoints().record(5, 100);
        shelf.leave_a_commit(salt);
        let image = shelf.arena.image();
        let words = image.occupied_words();
        Self { image, words, salt }
    }
}

fn key(i: u32) -> Vec<u8> {
    format!("key-{i}").into_bytes()
}

fn value(salt: u8, i: u32) -> Vec<u8> {
    let words = format!("{salt}: the value of {i}");
    words.repeat(1 + i as usize % 7).into_bytes()
}

/// Runs one input against a specimen. Says whether the arena could be used.
pub fn fuzz_attach(specimen: &Specimen, data: &[u8]) -> bool {
    let image = damaged(specimen, data);
    let Attach::Warm(mut arena) = Arena::attach_image(&image, &GEOMETRY) else {
        return false;
    };
    let recovery = arena.recover();
    let mut shelf = Shelf::new(arena);
    let served = (0..=ROWS).filter(|i| shelf.serves(specimen.salt, *i)).count();
    assert!(served as u64 <= recovery.rows, "{served} rows are served, {} were found", recovery.rows);
    assert!(shelf.scan() <= recovery.rows);
    while !shelf.put(b"more", b"after recovery") {
        let oldest = shelf.arena.segments()[0];
        shelf.evict(oldest);
    }
    shelf.grow();
    for segment in shelf.arena.segments() {
        shelf.evict(segment);
    }
    assert_eq!(shelf.arena.usage().rows, 0, "every slot points into a segment");
    true
}

/// The bytes of an input that are not yet used up; then zeros.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn number(&mut self, bytes: usize) -> u64 {
        (0..bytes).fold(0, |number, _| {
            let Some((&byte, rest)) = self.0.split_first() else { return number << 8 };
            self.0 = rest;
            (number << 8) | u64::from(byte)
        })
    }
}

fn damaged(specimen: &Specimen, data: &[u8]) -> Image {
    let mut image = specimen.image.clone();
    let mut bytes = Bytes(data);
    for _ in 0..EDITS_MAX {
        if bytes.0.is_empty() {
            break;
        }
        edit(&mut image, &specimen.words, &mut bytes);
    }
    image
}

fn edit(image: &mut Image, words: &[u64], bytes: &mut Bytes<'_>) {
    let what = bytes.number(1);
    if what == 77 {
        return resize(image, bytes);
    }
    let place = bytes.number(3) as usize;
    // Half of the edits are aimed at the head of the file, where a word says most.
    let word = if what & 1 == 0 { place as u64 % 128 } else { words[place % words.len()] };
    let value = match (what >> 1) & 7 {
        0..3 => image.load(word) ^ (1 << (bytes.number(1) % 64)),
        3 => bytes.number(8),
        4 => bytes.number(1),
        5 => image.load(words[bytes.number(3) as usize % words.len()]),
        6 => image.load(word).wrapping_add(bytes.number(1)).wrapping_sub(128),
        _ => u64::MAX << (bytes.number(1) % 64),
    };
    // A wrong check of the constants ends everything early: some inputs bear a right one, as a forger's would, and
    // most leave them alone.
    if word <= CONSTANTS && what & 16 == 0 {
        return;
    }
    image.store(word, value);
    if word < CONSTANTS && what & 32 == 0 {
        image.store(CONSTANTS, check_of_constants(image));
    }
}

fn resize(image: &mut Image, bytes: &mut Bytes<'_>) {
    let length = image.bytes();
    let to = match bytes.number(1) {
        0..64 => bytes.number(2),
        64..128 => bytes.number(2) << 12,
        128..192 => length.saturating_add(bytes.number(2)).saturating_sub(1 << 15),
        192..224 => length * 2,
        _ => return,
    };
    image.set_bytes(to);
}

fn check_of_constants(image: &Image) -> u64 {
    let append = |crc, word| crc32c::crc32c_append(crc, &image.load(word).to_le_bytes());
    u64::from((0..CONSTANTS).fold(0, append))
}

/// A store as small as one can be: one thread, one open segment.
struct Shelf {
    arena: Arena,
    tokens: Vec<ShardToken>,
    open: Option<SegmentId>,
}

impl Shelf {
    fn new(mut arena: Arena) -> Self {
        let tokens = arena.take_tokens();
        Self { arena, tokens, open: None }
    }

    /// Reserves room for a row; its segment has one more writer.
    fn reserve(&mut self, bytes: usize) -> Option<Location> {
        let tag = SegmentTag { table: TABLE, queue: Queue::Small, ttl_class: 3, schema: 1 };
        if bytes > 8 << 10 {
            let segment = self.arena.allocate(16, &tag)?;
            let location = self.arena.reserve(segment, bytes);
            self.arena.seal(segment);
            return location;
        }
        if let Some(location) = self.open.and_then(|segment| self.arena.reserve(segment, bytes)) {
            return Some(location);
        }
        if let Some(full) = self.open.take() {
            self.arena.seal(full);
        }
        let segment = self.arena.allocate(1, &tag)?;
        self.open = Some(segment);
        self.arena.reserve(segment, bytes)
    }

    fn write(&mut self, key: &[u8], value: &[u8]) -> Option<(Location, usize)> {
        let parts = RowParts {
            table: TABLE,
            multi: false,
            stale: false,
            lease: None,
            expiry: 0,
            client_flags: 0,
            cas: None,
            key,
            payload: &[value],
        };
        let bytes = parts.total_bytes();
        let location = self.reserve(bytes)?;
        self.arena.write_row(location, &parts);
        self.arena.stamp_row(location, self.arena.next_stamp());
        Some((location, bytes))
    }

    /// Stores a row under a new key; false if there is no memory.
    fn put(&mut self, key: &[u8], value: &[u8]) -> bool {
        let Some((location, bytes)) = self.write(key, value) else { return false };
        let hash = self.arena.hash(TABLE, key);
        let segment = self.arena.head_of(location);
        let inserted =
            self.arena.insert(&mut self.tokens[Arena::shard_of(hash)], hash, TABLE, location).is_ok();
        if inserted {
            self.arena.add_live(segment, bytes);
        } else {
            self.arena.write_filler(location, bytes);
        }
        self.arena.release(segment);
        inserted
    }

    fn grow(&mut self) {
        while let Some(shard) = self.arena.split_due() {
            // No space for another bucket is no fault.
            if !self.arena.split(&mut self.tokens[shard]) {
                return;
            }
        }
    }

    fn delete(&mut self, key: &[u8]) {
        let hash = self.arena.hash(TABLE, key);
        let token = &mut self.tokens[Arena::shard_of(hash)];
        let entry = self.arena.find(token, hash, TABLE, key).expect("it was stored");
        let bytes = self.arena.row(entry.location).expect("it is there").head().total_bytes;
        self.arena.remove(token, entry.slot);
        self.arena.sub_live(self.arena.head_of(entry.location), bytes);
    }

    /// A commit that is decided, with one row that is not swapped in.
    fn leave_a_commit(&mut self, salt: u8) {
        let key = key(0);
        let (location, _) = self.write(&key, &value(salt, 0)).expect("there is memory");
        let hash = self.arena.hash(TABLE, &key);
        let old = Some(Location::from_bits(99));
        let entry = RedoEntry { hash, table: TABLE, new: Some(location), old, old_stamp: 4 };
        let redo = self.arena.write_redo(std::iter::once(entry)).expect("there is memory");
        let slot = self.arena.claim_commit().expect("a free slot");
        assert!(self.arena.seal_commit(slot, &redo));
    }

    /// Whether a key is found; what is found must be what was stored.
    fn serves(&self, salt: u8, i: u32) -> bool {
        let key = key(i);
        let hash = self.arena.hash(TABLE, &key);
        let row = match self.arena.lookup(hash, TABLE, &key) {
            Lookup::Hit(row) => row,
            Lookup::Miss => return false,
            Lookup::Busy => panic!("nobody writes, so nothing is busy"),
        };
        let (mut found, mut payload) = (Vec::new(), Vec::new());
        row.copy_key(&mut found);
        row.copy_payload(0, row.head().payload_len, &mut payload);
        assert!(row.is_valid() && row.key_equals(&key) && found == key && row.head().table == TABLE);
        let stored = value(salt, i).repeat(if i == ROWS { 5_000 } else { 1 });
        assert!(payload == stored, "key-{i} has another value");
        true
    }

    fn scan(&self) -> u64 {
        let shape = self.arena.scan_shape();
        let mut found = Vec::new();
        for group in 0..shape.groups {
            let token = &self.tokens[Arena::shard_of_group(group)];
            self.arena.scan_group(token, shape, group, TABLE, &mut found);
        }
        found.len() as u64
    }

    /// Takes every row of a segment out of the index and frees it.
    fn evict(&mut self, segment: SegmentId) {
        if self.open == Some(segment) {
            self.open = None;
        }
        self.arena.seal(segment);
        for (location, head) in self.arena.rows(segment, 0) {
            let mut key = Vec::new();
            self.arena.row(location).expect("a segment in use").copy_key(&mut key);
            let hash = self.arena.hash(head.table, &key);
            let token = &mut self.tokens[Arena::shard_of(hash)];
            if let Some(slot) = self.arena.find_location(token, hash, location) {
                self.arena.remove(token, slot);
                self.arena.sub_live(segment, head.total_bytes);
            }
        }
        assert_eq!(self.arena.live(segment), 0, "live bytes are those of the rows in the index");
        self.arena.recycle(segment);
    }
}
