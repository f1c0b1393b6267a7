//! What one thread pays: nanoseconds for a lookup with copy, a miss, a put. `cargo bench -p arena`.
#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    reason = "a benchmark measures real time and prints it"
)]

use std::hint::black_box;
use std::time::Instant;

use arena::{Arena, Attach, Geometry, Lookup, Queue, RowParts, SegmentId, SegmentTag, ShardToken, TableId};

const TABLE: TableId = TableId(1);

struct Rig {
    arena: Arena,
    tokens: Vec<ShardToken>,
    open: SegmentId,
}

impl Rig {
    fn new(memory_bytes: u64) -> Self {
        let mut arena = Arena::create(None, &Geometry { memory_bytes }, 1).unwrap();
        let open = arena.allocate(1, &tag()).unwrap();
        Self { tokens: arena.take_tokens(), arena, open }
    }

    fn put(&mut self, key: &[u8], payload: &[u8]) {
        let payload = [payload];
        let parts = RowParts {
            table: TABLE,
            multi: false,
            stale: false,
            lease: None,
            expiry: 0,
            client_flags: 0,
            cas: None,
            key,
            payload: &payload,
        };
        let arena = &self.arena;
        let location = loop {
            match arena.reserve(self.open, parts.total_bytes()) {
                Some(location) => break location,
                None => {
                    self.open = arena.allocate(1, &tag()).unwrap_or_else(|| evict(arena, &mut self.tokens));
                }
            }
        };
        arena.write_row(location, &parts);
        arena.stamp_row(location, arena.next_stamp());
        let hash = arena.hash(TABLE, key);
        let token = &mut self.tokens[Arena::shard_of(hash)];
        if let Some(entry) = arena.find(token, hash, TABLE, key) {
            let dead = arena.row(entry.location).unwrap().head().total_bytes;
            arena.replace(token, entry.slot, hash, TABLE, location);
            arena.sub_live(arena.head_of(entry.location), dead);
        } else {
            arena.insert(token, hash, TABLE, location).unwrap();
        }
        arena.add_live(self.open, parts.total_bytes());
        arena.release(self.open);
        while let Some(shard) = arena.split_due() {
            arena.split(&mut self.tokens[shard]);
        }
    }
}

/// Recycles the oldest segment and takes its place.
fn evict(arena: &Arena, tokens: &mut [ShardToken]) -> SegmentId {
    let oldest = arena.segments()[0];
    let mut key = Vec::new();
    for (location, head) in arena.rows(oldest, 0) {
        key.clear();
        arena.row(location).unwrap().copy_key(&mut key);
        let hash = arena.hash(head.table, &key);
        let token = &mut tokens[Arena::shard_of(hash)];
        if let Some(slot) = arena.find_location(token, hash, location) {
            arena.remove(token, slot);
        }
    }
    arena.recycle(oldest);
    arena.allocate(1, &tag()).unwrap()
}

fn tag() -> SegmentTag {
    SegmentTag { table: TABLE, queue: Queue::Small, ttl_class: 0, schema: 1 }
}

fn get(arena: &Arena, key: &[u8], out: &mut Vec<u8>) -> bool {
    let hash = arena.hash(TABLE, key);
    match arena.lookup(hash, TABLE, key) {
        Lookup::Hit(row) => {
            out.clear();
            row.copy_payload(0, row.head().payload_len, out);
            row.touch(0);
            row.is_valid()
        }
        _ => false,
    }
}

fn time(what: &str, times: u32, mut run: impl FnMut(u32)) {
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        for i in 0..times {
            run(i);
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(times));
    }
    println!("{what:40} {best:8.1} ns");
}

fn key(i: u32) -> [u8; 16] {
    let mut key = *b"key:000000000000";
    key[8..12].copy_from_slice(&i.to_le_bytes());
    key
}

/// How long the next process takes to serve a million rows.
fn recovery() {
    let path = std::env::temp_dir().join(format!("arena-bench-{}", std::process::id()));
    let geometry = Geometry { memory_bytes: 300 << 20 };
    let mut arena = Arena::create(Some(&path), &geometry, 1).unwrap();
    let mut rig = Rig { tokens: arena.take_tokens(), open: arena.allocate(1, &tag()).unwrap(), arena };
    for i in 0..1_000_000 {
        rig.put(&key(i), &[b'x'; 100]);
    }
    drop(rig);
    let start = Instant::now();
    let attached = Arena::attach(&path, &geometry);
    let seconds = start.elapsed().as_secs_f64();
    std::fs::remove_file(&path).unwrap();
    let Ok(Attach::Warm(mut arena)) = attached else { panic!("usable") };
    let recovery = arena.recover();
    println!("recovery of {} rows: {:.0} ns a row", recovery.rows, seconds * 1e9 / recovery.rows as f64);
}

fn main() {
    recovery();
    for (rows, len) in [(1000, 32), (1000, 100), (1000, 1024), (1_000_000, 100)] {
        let mut rig = Rig::new(if rows > 1000 { 300 << 20 } else { 4 << 20 });
        let payload = vec![b'x'; len];
        let start = Instant::now();
        for i in 0..rows {
            rig.put(&key(i), &payload);
        }
        let each = start.elapsed().as_nanos() as f64 / f64::from(rows);
        println!("insert {rows} rows of {len} B, index growing  {each:8.1} ns");
        let mut out = Vec::new();
        let mut rng = fastrand::Rng::with_seed(1);
        let order: Vec<[u8; 16]> = (0..1 << 20).map(|_| key(rng.u32(0..rows))).collect();
        time(&format!("hit, {len} B of {rows} rows"), 1 << 20, |i| {
            assert!(get(&rig.arena, &order[i as usize], &mut out));
            black_box(&out);
        });
        time(&format!("miss among {rows} rows"), 1 << 20, |i| {
            black_box(get(&rig.arena, &key(i | 1 << 30), &mut out));
        });
        // Half of what is written is in the index already; memory is full and recycled.
        time(&format!("put, {len} B of {rows} rows"), 1 << 18, |i| {
            rig.put(&order[i as usize], &payload);
        });
    }
}
