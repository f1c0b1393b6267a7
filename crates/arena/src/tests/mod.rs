//! What the unit tests share: a tiny store over an arena, with the discipline that a real one keeps.

mod arenas;
mod crash;
mod damage;
mod files;
mod fill;
mod generated;
mod huge;
mod in_place;
mod model;
mod pages;
mod place;
mod refused;
mod threads;

use crate::{
    Arena, Attach, Entry, Geometry, Image, Location, Lookup, Queue, Recovery, RowParts, SegmentId,
    SegmentTag, ShardToken, TableId, UNIT_BYTES,
};

/// An arena in anonymous memory.
pub(crate) fn tiny(memory_bytes: u64) -> Arena {
    Arena::create(None, &Geometry { memory_bytes }, 1).unwrap()
}

/// Recovers an image that must be usable.
pub(crate) fn warm(image: &Image) -> (Arena, Recovery) {
    match Arena::attach_image(image, &Geometry { memory_bytes: 1 << 20 }) {
        Attach::Warm(mut arena) => {
            let recovery = arena.recover();
            (arena, recovery)
        }
        Attach::Unusable(unusable) => panic!("unusable: {}", unusable.reason),
    }
}

/// A random generator whose seed is printed; `SEED=n` replays it.
pub(crate) fn seeded(test: &str) -> fastrand::Rng {
    #[allow(clippy::disallowed_methods, reason = "only tests replay seeds")]
    let seed =
        std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("{test}: SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

/// The value of a row as a test keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) payload: Vec<u8>,
    pub(crate) expiry: u32,
    pub(crate) client_flags: u32,
    pub(crate) cas: Option<u64>,
}

impl Value {
    pub(crate) fn plain(payload: &[u8]) -> Self {
        Self { payload: payload.to_vec(), expiry: 0, client_flags: 0, cas: None }
    }
}

/// A store as small as one can be: every call of one thread, one open segment.
pub(crate) struct Rig {
    pub(crate) arena: Arena,
    pub(crate) tokens: Vec<ShardToken>,
    open: Option<SegmentId>,
}

pub(crate) const TABLE: TableId = TableId(7);
/// Larger rows get a run of units of their own.
const RUN_BYTES: usize = 2048;

impl Rig {
    pub(crate) fn new(memory_bytes: u64) -> Self {
        Self::over(tiny(memory_bytes))
    }

    pub(crate) fn over(mut arena: Arena) -> Self {
        let tokens = arena.take_tokens();
        // Miri has no pages.
        arena.set_huge_pages(!cfg!(miri));
        Self { arena, tokens, open: None }
    }

    pub(crate) fn find(&self, table: TableId, key: &[u8]) -> Option<Entry> {
        let hash = self.arena.hash(table, key);
        self.arena.find(&self.tokens[Arena::shard_of(hash)], hash, table, key)
    }

    /// Reads without a lock, everything there is to a row.
    pub(crate) fn get(&self, table: TableId, key: &[u8]) -> Option<Value> {
        let hash = self.arena.hash(table, key);
        match self.arena.lookup(hash, table, key) {
            Lookup::Hit(row) => {
                let head = row.head();
                let (mut payload, mut copied) = (Vec::new(), Vec::new());
                row.copy_payload(0, head.payload_len, &mut payload);
                row.copy_key(&mut copied);
                assert!(row.is_valid() && copied == key && row.key_equals(key) && head.table == table);
                Some(Value {
                    payload,
                    expiry: head.expiry,
                    client_flags: head.client_flags,
                    cas: head.explicit_cas,
                })
            }
            Lookup::Miss => None,
            Lookup::Busy => panic!("nobody writes, so nothing is busy"),
        }
    }

    pub(crate) fn tag() -> SegmentTag {
        SegmentTag { table: TABLE, queue: Queue::Small, ttl_class: 3, schema: 1 }
    }

    /// Reserves room for a row; the segment it is in has one more writer.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Option<Location> {
        if bytes > RUN_BYTES {
            let units = bytes.div_ceil(UNIT_BYTES) as u32;
            let segment = self.arena.allocate(units, &Self::tag())?;
            let location = self.arena.reserve(segment, bytes);
            self.arena.seal(segment);
            return location;
        }
        loop {
            let segment = match self.open {
                Some(segment) => segment,
                None => self.arena.allocate(1, &Self::tag())?,
            };
            self.open = Some(segment);
            if let Some(location) = self.arena.reserve(segment, bytes) {
                return Some(location);
            }
            self.arena.seal(segment);
            self.open = None;
        }
    }

    /// Writes a row where nobody can reach it; its segment keeps a writer.
    pub(crate) fn write(&mut self, table: TableId, key: &[u8], value: &Value) -> Option<(Location, usize)> {
        let (first, second) = value.payload.split_at(value.payload.len() / 3);
        let payload: [&[u8]; 2] = [first, second];
        let parts = RowParts {
            table,
            multi: false,
            stale: false,
            lease: None,
            expiry: value.expiry,
            client_flags: value.client_flags,
            cas: value.cas,
            key,
            payload: &payload,
        };
        let bytes = parts.total_bytes();
        let location = self.reserve(bytes)?;
        self.arena.write_row(location, &parts);
        self.arena.stamp_row(location, self.arena.next_stamp());
        Some((location, bytes))
    }

    /// Stores a row; false if there is no memory.
    pub(crate) fn put(&mut self, table: TableId, key: &[u8], value: &Value) -> bool {
        let Some((location, bytes)) = self.write(table, key, value) else { return false };
        let hash = self.arena.hash(table, key);
        let old = self.find(table, key);
        let segment = self.arena.head_of(location);
        self.arena.add_live(segment, bytes);
        self.arena.note_expiry(segment, value.expiry);
        let token = &mut self.tokens[Arena::shard_of(hash)];
        match old {
            Some(entry) => {
                let dead = self.arena.row(entry.location).unwrap().head().total_bytes;
                self.arena.replace(token, entry.slot, hash, table, location);
                self.arena.sub_live(self.arena.head_of(entry.location), dead);
            }
            None => {
                if self.arena.insert(token, hash, table, location).is_err() {
                    self.arena.write_filler(location, bytes);
                    self.arena.sub_live(segment, bytes);
                    self.arena.release(segment);
                    return false;
                }
            }
        }
        self.arena.release(segment);
        true
    }

    /// Splits as long as one is due.
    pub(crate) fn grow(&mut self) {
        while let Some(shard) = self.arena.split_due() {
            assert!(self.arena.split(&mut self.tokens[shard]));
        }
    }

    pub(crate) fn delete(&mut self, table: TableId, key: &[u8]) -> bool {
        let Some(entry) = self.find(table, key) else { return false };
        let bytes = self.arena.row(entry.location).unwrap().head().total_bytes;
        let shard = Arena::shard_of(self.arena.hash(table, key));
        self.arena.remove(&mut self.tokens[shard], entry.slot);
        self.arena.sub_live(self.arena.head_of(entry.location), bytes);
        true
    }

    /// Clears the oldest segment and frees it; the keys that went with it.
    pub(crate) fn evict(&mut self) -> Vec<(TableId, Vec<u8>)> {
        let segment = self.arena.segments()[0];
        self.evict_segment(segment)
    }

    pub(crate) fn evict_segment(&mut self, segment: SegmentId) -> Vec<(TableId, Vec<u8>)> {
        if self.open == Some(segment) {
            self.open = None;
        }
        self.arena.seal(segment);
        let mut gone = Vec::new();
        let mut live = self.arena.live(segment);
        for (location, head) in self.arena.rows(segment, 0) {
            let mut key = Vec::new();
            self.arena.row(location).unwrap().copy_key(&mut key);
            let hash = self.arena.hash(head.table, &key);
            let token = &mut self.tokens[Arena::shard_of(hash)];
            if let Some(slot) = self.arena.find_location(token, hash, location) {
                self.arena.remove(token, slot);
                live = self.arena.sub_live(segment, head.total_bytes);
                gone.push((head.table, key));
            }
        }
        assert_eq!(live, 0, "live bytes are those of the rows in the index");
        self.arena.recycle(segment);
        gone
    }

    pub(crate) fn scan(&self, table: TableId) -> Vec<Location> {
        let shape = self.arena.scan_shape();
        let mut found = Vec::new();
        for group in 0..shape.groups {
            let token = &self.tokens[Arena::shard_of_group(group)];
            self.arena.scan_group(token, shape, group, table, &mut found);
        }
        found
    }
}
