//! Random operations on a tiny arena against a map.

use std::collections::HashMap;

use super::{Rig, TABLE, Value, seeded, warm};
use crate::{Arena, Lookup, RowParts, TableId, UNIT_BYTES};

type Model = HashMap<(TableId, Vec<u8>), Value>;

fn random_value(rng: &mut fastrand::Rng) -> Value {
    let len = match rng.u32(0..40) {
        0 => rng.usize(8000..9000),
        1 => rng.usize(0..200_000),
        2..10 => rng.usize(0..2000),
        _ => rng.usize(0..150),
    };
    let seed = rng.u8(..);
    Value {
        payload: (0..len).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect(),
        expiry: if rng.bool() { rng.u32(1..) } else { 0 },
        client_flags: if rng.bool() { rng.u32(1..) } else { 0 },
        cas: rng.bool().then(|| rng.u64(..)),
    }
}

fn random_key(rng: &mut fastrand::Rng, keys: u32) -> (TableId, Vec<u8>) {
    let number = rng.u32(0..keys);
    let mut key = format!("k{number}").into_bytes();
    if number.is_multiple_of(50) {
        key.resize(300 + number as usize % 100, b'x');
    }
    // Tables 3 and 515 look the same in a slot.
    (TableId([3, 515, 9][number as usize % 3]), key)
}

fn check(rig: &Rig, model: &Model) {
    for ((table, key), value) in model {
        assert_eq!(rig.get(*table, key).as_ref(), Some(value), "{}", String::from_utf8_lossy(key));
    }
    assert_eq!(rig.arena.usage().rows, model.len() as u64);
    for table in [3, 515, 9].map(TableId) {
        let scanned = rig.scan(table).len();
        assert_eq!(scanned, model.keys().filter(|(of, _)| *of == table).count());
    }
}

#[test]
fn random_operations_agree_with_a_map() {
    let mut rng = seeded("random_operations_agree_with_a_map");
    for round in 0..6 {
        let units = [8, 16, 100][round % 3];
        let mut rig = Rig::new(units * UNIT_BYTES as u64);
        let mut model = Model::new();
        let keys = [200, 20_000][round % 2];
        for step in 0..12_000 {
            let (table, key) = random_key(&mut rng, keys);
            if rng.u32(0..100) == 0 {
                rig.arena.enlarge_pages();
            }
            match rng.u32(0..10) {
                0 => assert_eq!(rig.delete(table, &key), model.remove(&(table, key)).is_some()),
                1 | 2 => assert_eq!(rig.get(table, &key).as_ref(), model.get(&(table, key))),
                _ => {
                    let value = random_value(&mut rng);
                    while !rig.put(table, &key, &value) {
                        for gone in rig.evict() {
                            model.remove(&gone);
                        }
                    }
                    rig.grow();
                    model.insert((table, key), value);
                }
            }
            if step % 3000 == 0 {
                check(&rig, &model);
                assert!(rig.arena.usage().segments_bytes <= units * UNIT_BYTES as u64);
                assert!(rig.arena.usage().committed_bytes <= units * UNIT_BYTES as u64);
            }
        }
        check(&rig, &model);
        // Another process finds the same, and goes on from there.
        let (again, recovery) = warm(&rig.arena.image());
        assert_eq!((recovery.rows, recovery.dropped), (model.len() as u64, 0));
        assert!(again.next_stamp() > rig.arena.last_stamp());
        let mut again = Rig::over(again);
        check(&again, &model);
        while !again.arena.segments().is_empty() {
            for gone in again.evict() {
                assert!(model.remove(&gone).is_some());
            }
        }
        assert!(model.is_empty());
        again.arena.trim();
        assert_eq!(again.arena.usage().committed_bytes, 0);
    }
}

/// Replaced, removed, evicted, moved by a split, and its memory used again by others: what was seen is found where it
/// is what the key has now, and nowhere else. An empty slot and the place of the first row of all are the same number.
#[test]
fn the_first_row_of_all_is_not_found_again_when_it_is_gone() {
    let mut rig = Rig::new(8 * UNIT_BYTES as u64);
    let (table, key) = (TableId(9), b"first");
    assert!(rig.put(table, key, &Value::plain(b"v")));
    let hash = rig.arena.hash(table, key);
    let Lookup::Hit(row) = rig.arena.lookup_place(hash, table, key) else { panic!("no row") };
    let (location, seen) = (row.location(), row.seen().unwrap());
    assert_eq!(location.bits(), 0);
    let shard = Arena::shard_of(hash);
    assert!(rig.arena.find_seen(&rig.tokens[shard], &seen).is_some());
    assert!(rig.delete(table, key));
    assert!(rig.arena.find_seen(&rig.tokens[shard], &seen).is_none());
}

#[test]
fn what_a_lookup_saw_is_found_again_or_not_at_all() {
    let mut rng = seeded("what_a_lookup_saw_is_found_again_or_not_at_all");
    let mut rig = Rig::new(8 * UNIT_BYTES as u64);
    let (mut seen, mut again, mut changed) = (Vec::new(), 0, 0);
    for _ in 0..30_000 {
        let (table, key) = random_key(&mut rng, 3_000);
        match rng.u32(0..8) {
            0 => drop(rig.delete(table, &key)),
            1 => {
                let hash = rig.arena.hash(table, &key);
                if let Lookup::Hit(row) = rig.arena.lookup_place(hash, table, &key) {
                    seen.push((hash, table, key.clone(), row.seen().unwrap()));
                }
            }
            _ => {
                while !rig.put(table, &key, &Value::plain(&key.repeat(rng.usize(0..9)))) {
                    rig.evict();
                }
                rig.grow();
            }
        }
        if seen.is_empty() {
            continue;
        }
        let at = rng.usize(..seen.len());
        let (hash, table, key, place) = &seen[at];
        let token = &rig.tokens[Arena::shard_of(*hash)];
        let now = rig.arena.find_row(token, *hash, *table, key);
        if let Some(found) = rig.arena.find_seen(token, place) {
            assert_eq!(Some(found), now);
            again += 1;
            continue;
        }
        // It left or moved; where it is now it is seen and found.
        if let Lookup::Hit(row) = rig.arena.lookup_place(*hash, *table, key) {
            assert_eq!(rig.arena.find_seen(token, &row.seen().unwrap()), now);
            changed += 1;
        } else {
            assert!(now.is_none());
        }
        seen.swap_remove(at);
    }
    // Some hundred are changed: below 100 in one run of twelve.
    assert!(again > 100 && changed > 30, "{again} found again, {changed} changed");
}

#[test]
fn a_million_small_rows_split_the_index() {
    let mut rig = Rig::new(64 << 20);
    let rows = 100_000u32;
    for i in 0..rows {
        assert!(rig.put(super::TABLE, &i.to_le_bytes(), &Value::plain(&i.to_be_bytes())));
        rig.grow();
    }
    for i in 0..rows {
        assert_eq!(rig.get(super::TABLE, &i.to_le_bytes()).unwrap().payload, i.to_be_bytes());
    }
    assert_eq!(rig.get(super::TABLE, b"absent"), None);
    let usage = rig.arena.usage();
    let per_row = usage.index_bytes as f64 / f64::from(rows);
    assert!(per_row < 18.0, "the index takes {per_row} bytes a row");
}

#[test]
fn hits_are_counted_and_survive_a_split() {
    let mut rig = Rig::new(4 << 20);
    for i in 0..4000u32 {
        rig.put(super::TABLE, &i.to_le_bytes(), &Value::plain(b"v"));
        let hash = rig.arena.hash(super::TABLE, &i.to_le_bytes());
        for _ in 0..i % 5 {
            let Lookup::Hit(row) = rig.arena.lookup(hash, super::TABLE, &i.to_le_bytes()) else { panic!() };
            row.touch(0);
        }
    }
    // More rows make every bucket split at least once.
    for i in 4000..16_000u32 {
        rig.put(super::TABLE, &i.to_le_bytes(), &Value::plain(b"v"));
        rig.grow();
    }
    for i in 0..4000u32 {
        let entry = rig.find(super::TABLE, &i.to_le_bytes()).unwrap();
        assert_eq!(u32::from(rig.arena.frequency(entry.slot)), (i % 5).min(3), "row {i}");
    }
    let entry = rig.find(super::TABLE, &7u32.to_le_bytes()).unwrap();
    rig.arena.set_frequency(entry.slot, 9);
    assert_eq!(rig.arena.frequency(entry.slot), 3);
}

#[test]
fn a_scan_meets_every_row_once_while_the_index_splits() {
    let mut rig = Rig::new(16 << 20);
    for i in 0..5000u32 {
        rig.put(super::TABLE, &i.to_le_bytes(), &Value::plain(b"v"));
        rig.grow();
    }
    let before = rig.scan(super::TABLE).len();
    assert_eq!(before, 5000);
    let shape = rig.arena.scan_shape();
    let (mut found, mut next) = (Vec::new(), 5000u32);
    for group in 0..shape.groups {
        rig.arena.scan_group(
            &rig.tokens[Arena::shard_of_group(group)],
            shape,
            group,
            super::TABLE,
            &mut found,
        );
        for _ in 0..20 {
            rig.put(super::TABLE, &next.to_le_bytes(), &Value::plain(b"v"));
            rig.grow();
            next += 1;
        }
    }
    let mut old: Vec<u32> = Vec::new();
    for location in found {
        let mut key = Vec::new();
        rig.arena.row(location).unwrap().copy_key(&mut key);
        old.extend(Some(u32::from_le_bytes(key.try_into().unwrap())).filter(|i| *i < 5000));
    }
    old.sort_unstable();
    assert_eq!(old, (0..5000).collect::<Vec<_>>());
}

#[test]
fn a_large_row_lies_in_a_run_and_is_read_in_parts() {
    let mut rig = Rig::new(64 << 20);
    let payload: Vec<u8> = (0..20_000_001u32).map(|i| (i % 251) as u8).collect();
    assert!(rig.put(super::TABLE, b"large", &Value::plain(&payload)));
    assert_eq!(rig.get(super::TABLE, b"large").unwrap().payload, payload);
    let entry = rig.find(super::TABLE, b"large").unwrap();
    let row = rig.arena.row(entry.location).unwrap();
    let mut part = Vec::new();
    row.copy_payload(19_999_990, 100, &mut part);
    assert_eq!(part, &payload[19_999_990..]);
    row.copy_payload(30_000_000, 100, &mut part);
    assert_eq!(part.len(), 11);
    let segment = rig.arena.head_of(entry.location);
    assert_eq!(rig.arena.units(segment) as usize, 20_000_040usize.div_ceil(UNIT_BYTES));
    let (again, recovery) = warm(&rig.arena.image());
    assert_eq!(recovery.rows, 1);
    assert_eq!(Rig::over(again).get(super::TABLE, b"large").unwrap().payload, payload);
}

#[test]
fn a_segment_refuses_what_does_not_fit_and_what_comes_after_sealing() {
    let rig = Rig::new(1 << 20);
    let segment = rig.arena.allocate(1, &Rig::tag()).unwrap();
    assert_eq!(rig.arena.tag(segment), Rig::tag());
    assert!(rig.arena.reserve(segment, UNIT_BYTES - 8).is_some());
    assert!(rig.arena.reserve(segment, 16).is_none());
    assert_eq!(rig.arena.writers(segment), 1);
    rig.arena.write_filler(crate::Location::in_run(segment.0, 0), UNIT_BYTES - 8);
    rig.arena.release(segment);
    rig.arena.seal(segment);
    assert!(rig.arena.reserve(segment, 8).is_none());
    assert!(rig.arena.is_sealed(segment) && rig.arena.writers(segment) == 0);
    assert_eq!(rig.arena.used(segment), UNIT_BYTES - 8);
    assert_eq!(rig.arena.rows(segment, 0).count(), 0);
    let order = rig.arena.order(segment);
    rig.arena.recycle(segment);
    // The limit is 16 units: 17 singles do not fit, and after one is freed one does.
    let all: Vec<_> = (0..16).map(|_| rig.arena.allocate(1, &Rig::tag()).unwrap()).collect();
    assert!(rig.arena.order(all[0]) > order);
    assert!(rig.arena.allocate(1, &Rig::tag()).is_none());
    assert_eq!(rig.arena.free_bytes(), 0);
    rig.arena.recycle(all[3]);
    assert!(rig.arena.allocate(2, &Rig::tag()).is_none());
    assert!(rig.arena.allocate(1, &Rig::tag()).is_some());
    rig.arena.set_limit(20 * UNIT_BYTES as u64);
    // Four units more, elsewhere: memory stays within the limit all the same.
    assert!(rig.arena.allocate(4, &Rig::tag()).is_some());
    assert!(rig.arena.usage().committed_bytes <= 32 * UNIT_BYTES as u64);
}

#[test]
fn expiries_of_a_segment_are_noted_and_a_row_is_touched() {
    let mut rig = Rig::new(1 << 20);
    let value = Value { expiry: 40, ..Value::plain(b"soon") };
    rig.put(super::TABLE, b"a", &value);
    rig.put(super::TABLE, b"b", &Value { expiry: 30, ..value.clone() });
    let entry = rig.find(super::TABLE, b"a").unwrap();
    let segment = rig.arena.head_of(entry.location);
    assert_eq!(rig.arena.max_expiry(segment), Some(40));
    rig.arena.set_expiry(entry.location, 50);
    assert_eq!(rig.get(super::TABLE, b"a").unwrap().expiry, 50);
    rig.arena.note_expiry(segment, 50);
    let (again, _) = warm(&rig.arena.image());
    assert_eq!(again.max_expiry(segment), Some(50));
    rig.put(super::TABLE, b"c", &Value::plain(b"for ever"));
    assert_eq!(rig.arena.max_expiry(segment), None);
}

#[test]
fn a_held_row_keeps_its_segment_and_a_closed_segment_is_not_held() {
    let arenas = crate::Arenas::new(super::tiny(1 << 20), None);
    let segment = arenas.allocate(1, &Rig::tag(), 0).unwrap();
    let payload: Vec<u8> = (0..200).collect();
    let parts = RowParts {
        table: TABLE,
        multi: false,
        stale: false,
        expiry: 0,
        lease: None,
        client_flags: 0,
        cas: None,
        key: b"key",
        payload: &[&payload],
    };
    let location = arenas.of(segment).reserve(segment, parts.total_bytes()).unwrap();
    arenas.of(location).write_row(location, &parts);
    arenas.of(location).stamp_row(location, 1);
    assert!(!arenas.of(segment).close(segment), "its writer is not done");
    arenas.of(segment).release(segment);
    arenas.of(segment).seal(segment);
    let row = arenas.of(location).row(location).unwrap();
    assert!(arenas.pin(&row, 150, 51).is_none(), "beyond the payload");
    let held = [arenas.pin(&row, 3, 197).unwrap(), arenas.pin(&row, 0, 0).unwrap()];
    assert_eq!(arenas.pinned_bytes(&held[0]), &payload[3..]);
    for held in held {
        assert!(!arenas.of(segment).close(segment));
        arenas.unpin(held);
    }
    assert!(!arenas.of(location).is_noted_dead(location));
    arenas.of(location).note_dead(location);
    assert!(arenas.of(location).is_noted_dead(location) && arenas.of(segment).close(segment));
    assert!(arenas.pin(&row, 0, 1).is_none(), "closed");
    arenas.of(segment).recycle(segment);
    // The place of the old row leads to nothing in what is opened there now.
    let again = arenas.allocate(1, &Rig::tag(), 0).unwrap();
    assert!(
        again == segment && !arenas.of(location).is_noted_dead(location) && arenas.pin(&row, 0, 1).is_none()
    );
    assert_eq!(arenas.of(again).writers(again), 0);
}
