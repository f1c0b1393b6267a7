//! Readers without a lock while writers replace, recycle and split.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Rig, TABLE, Value, seeded};
use crate::{Arena, Lookup};

/// Keys that always are somewhere: a reader that misses one has found a fault.
const KEYS: u32 = 600;

fn payload(key: u32, version: u32, len: usize) -> Vec<u8> {
    let mut bytes = [key.to_le_bytes(), version.to_le_bytes()].concat();
    let mut rng = fastrand::Rng::with_seed(u64::from(key) << 32 | u64::from(version));
    bytes.extend(std::iter::repeat_with(|| rng.u8(..)).take(len));
    let check = crc32c::crc32c(&bytes);
    bytes.extend(check.to_le_bytes());
    bytes
}

fn certify(key: u32, bytes: &[u8]) {
    let (body, check) = bytes.split_at(bytes.len() - 4);
    assert_eq!(body[..4], key.to_le_bytes(), "the value of another key");
    assert_eq!(crc32c::crc32c(body).to_le_bytes(), check, "two rows mixed");
}

/// Reads random keys until told to stop; the hits.
fn read(arena: &Arena, stop: &AtomicBool, seed: u64) -> u64 {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut hits, mut bytes) = (0, Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let key = rng.u32(0..KEYS);
        let name = key.to_le_bytes();
        let hash = arena.hash(TABLE, &name);
        match arena.lookup(hash, TABLE, &name) {
            Lookup::Hit(row) => {
                bytes.clear();
                row.copy_payload(0, row.head().payload_len, &mut bytes);
                if row.is_valid() {
                    certify(key, &bytes);
                    hits += 1;
                }
                row.touch(0);
            }
            Lookup::Miss => panic!("key {key} is always there"),
            Lookup::Busy => {}
        }
    }
    hits
}

#[test]
fn readers_never_see_a_mixture_or_a_false_miss() {
    let mut rng = seeded("readers_never_see_a_mixture_or_a_false_miss");
    let mut rig = Rig::new(1 << 20);
    let mut version = 0;
    for key in 0..KEYS {
        assert!(rig.put(TABLE, &key.to_le_bytes(), &Value::plain(&payload(key, 0, 100))));
    }
    let stop = AtomicBool::new(false);
    let hits = AtomicU64::new(0);
    // The readers borrow the arena as another thread would; the writer has the tokens.
    let arena: &Arena = &rig.arena;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let seed = rng.u64(..);
            let (stop, hits) = (&stop, &hits);
            scope.spawn(move || hits.fetch_add(read(arena, stop, seed), Ordering::Relaxed));
        }
        let mut writer = Writer { arena, tokens: std::mem::take(&mut rig.tokens), open: rig.open };
        let mut extra = KEYS;
        for step in 0..if cfg!(miri) { 300 } else { 60_000 } {
            version += 1;
            let key = rng.u32(0..KEYS);
            let len = if rng.u32(0..20) == 0 { rng.usize(0..3000) } else { rng.usize(0..300) };
            writer.put(key, &payload(key, version, len));
            // Further keys make the index split; they may be evicted.
            if step % 4 == 0 && extra < 9000 {
                writer.put(extra, &payload(extra, 0, 8));
                extra += 1;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(hits.load(Ordering::Relaxed) > 0);
}

/// The writer of the test: replaces rows, and copies the ever-present ones out of what it recycles.
struct Writer<'a> {
    arena: &'a Arena,
    tokens: Vec<crate::ShardToken>,
    open: Option<crate::SegmentId>,
}

impl Writer<'_> {
    fn put(&mut self, key: u32, payload: &[u8]) {
        let name = key.to_le_bytes();
        let hash = self.arena.hash(TABLE, &name);
        let parts = crate::RowParts {
            table: TABLE,
            multi: false,
            stale: false,
            lease: None,
            expiry: 0,
            client_flags: 0,
            cas: None,
            key: &name,
            payload: &[payload],
        };
        let location = self.append(&parts, true);
        self.arena.stamp_row(location, self.arena.next_stamp());
        let token = &mut self.tokens[Arena::shard_of(hash)];
        match self.arena.find(token, hash, TABLE, &name) {
            Some(entry) => self.arena.replace(token, entry.slot, hash, TABLE, location),
            None => {
                self.arena.insert(token, hash, TABLE, location).unwrap();
            }
        }
        self.arena.release(self.arena.head_of(location));
        while let Some(shard) = self.arena.split_due() {
            self.arena.split(&mut self.tokens[shard]);
        }
    }

    fn append(&mut self, parts: &crate::RowParts<'_>, clean: bool) -> crate::Location {
        loop {
            if let Some(segment) = self.open {
                if let Some(location) = self.arena.reserve(segment, parts.total_bytes()) {
                    self.arena.write_row(location, parts);
                    return location;
                }
                self.arena.seal(segment);
                self.open = None;
            }
            // Cleaning keeps some units free, for it copies rows itself.
            if clean && self.arena.free_bytes() < 4 * crate::UNIT_BYTES as u64 {
                self.clean();
            } else {
                self.open = Some(self.arena.allocate(1, &Rig::tag()).unwrap());
            }
        }
    }

    fn clean(&mut self) {
        let segment = self.arena.segments()[0];
        for (location, head) in self.arena.rows(segment, 0) {
            let row = self.arena.row(location).unwrap();
            let (mut name, mut payload) = (Vec::new(), Vec::new());
            row.copy_key(&mut name);
            row.copy_payload(0, head.payload_len, &mut payload);
            let hash = self.arena.hash(TABLE, &name);
            let shard = Arena::shard_of(hash);
            let Some(slot) = self.arena.find_location(&self.tokens[shard], hash, location) else { continue };
            if u32::from_le_bytes(name[..].try_into().unwrap()) >= KEYS {
                self.arena.remove(&mut self.tokens[shard], slot);
                continue;
            }
            let parts = crate::RowParts {
                table: TABLE,
                multi: false,
                stale: false,
                lease: None,
                expiry: 0,
                client_flags: 0,
                cas: None,
                key: &name,
                payload: &[&payload],
            };
            let copy = self.append(&parts, false);
            self.arena.stamp_row(copy, head.stamp);
            self.arena.replace(&mut self.tokens[shard], slot, hash, TABLE, copy);
            self.arena.release(self.arena.head_of(copy));
        }
        self.arena.recycle(segment);
    }
}

#[test]
fn stamps_never_repeat() {
    let arena = super::tiny(1 << 20);
    let mut all: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| (0..5000).map(|_| arena.next_stamp()).collect())).collect();
        threads.into_iter().flat_map(|thread| -> Vec<u64> { thread.join().unwrap() }).collect()
    });
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 20_000);
    let (again, _) = super::warm(&arena.image());
    assert!(again.next_stamp() > *all.last().unwrap());
}
