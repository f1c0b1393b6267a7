//! Rows found again by the place that they were copied from: that very version, or nothing.

use super::{Rig, TABLE, Value, seeded};
use crate::{Arena, Hash, Location, Lookup, Place, TableId, UNIT_BYTES};

/// A row as a reader remembers it.
struct Read {
    hash: Hash,
    table: TableId,
    key: Vec<u8>,
    place: Place,
}

fn read(rig: &Rig, table: TableId, key: &[u8]) -> Option<Read> {
    let hash = rig.arena.hash(table, key);
    let Lookup::Hit(row) = rig.arena.lookup(hash, table, key) else { return None };
    let place = Place { location: row.location(), generation: row.generation() };
    Some(Read { hash, table, key: key.to_vec(), place })
}

/// Where a row is found by its place.
fn found(rig: &Rig, read: &Read) -> Option<Location> {
    let token = &rig.tokens[Arena::shard_of(read.hash)];
    let (seen, head) = rig.arena.find_place(token, read.hash, &read.place)?;
    assert_eq!((seen.location(), head.table), (read.place.location, read.table));
    assert!(rig.arena.row(seen.location()).unwrap().key_equals(&read.key), "of another key");
    Some(seen.location())
}

#[test]
fn the_same_key_in_the_same_memory_is_another_row_when_that_was_recycled() {
    let mut rig = Rig::new(4 * UNIT_BYTES as u64);
    assert!(rig.put(TABLE, b"key", &Value::plain(b"value")));
    let first = read(&rig, TABLE, b"key").unwrap();
    assert_eq!(found(&rig, &first), Some(first.place.location));
    // Gone; its bytes are all there.
    rig.evict();
    assert_eq!(found(&rig, &first), None);
    let again = (0..8).find_map(|_| {
        assert!(rig.put(TABLE, b"key", &Value::plain(b"value")));
        let again = read(&rig, TABLE, b"key").unwrap();
        (again.place.location == first.place.location).then_some(again).or_else(|| {
            rig.evict();
            None
        })
    });
    let again = again.expect("memory is used again");
    assert_eq!(found(&rig, &first), None, "of the generation before");
    assert_eq!(found(&rig, &again), Some(again.place.location));
}

#[test]
fn a_row_of_another_key_in_the_same_memory_is_not_found() {
    let mut rig = Rig::new(4 * UNIT_BYTES as u64);
    for table in [TABLE, TableId(8)] {
        assert!(rig.put(table, b"key", &Value::plain(b"value")));
    }
    let (one, other) = (read(&rig, TABLE, b"key").unwrap(), read(&rig, TableId(8), b"key").unwrap());
    assert!(found(&rig, &one).is_some() && found(&rig, &other).is_some());
    // Replaced in its slot: the old version lies where it lay.
    assert!(rig.put(TABLE, b"key", &Value::plain(b"other")));
    assert_eq!(found(&rig, &one), None);
    assert!(found(&rig, &other).is_some());
    rig.evict();
    for n in 0..2_000u32 {
        while !rig.put(TABLE, &n.to_le_bytes(), &Value::plain(b"value")) {
            rig.evict();
        }
        assert!(found(&rig, &one).is_none() && found(&rig, &other).is_none());
    }
}

/// Copies a row to a place of its own, as compaction does.
fn relocate(rig: &mut Rig, table: TableId, key: &[u8]) {
    if let Some(value) = rig.get(table, key) {
        rig.put(table, key, &value);
    }
}

/// Removed, replaced, moved, evicted, its slot split, its memory used again by the same key and by others: whatever was
/// read is found where it lay as long as it lies there.
#[test]
fn a_place_finds_the_version_that_was_read_or_nothing() {
    let mut rng = seeded("a_place_finds_the_version_that_was_read_or_nothing");
    let mut rig = Rig::new(6 * UNIT_BYTES as u64);
    let (mut reads, mut same, mut refused, mut reused) = (Vec::<Read>::new(), 0, 0, 0);
    for _ in 0..40_000 {
        let (table, key) = (TableId(rng.u16(7..9)), rng.u16(..1_500).to_le_bytes());
        match rng.u8(0..9) {
            0 => drop(rig.delete(table, &key)),
            1 => relocate(&mut rig, table, &key),
            2 | 3 => reads.extend(read(&rig, table, &key)),
            _ => {
                while !rig.put(table, &key, &Value::plain(&key.repeat(rng.usize(0..60)))) {
                    rig.evict();
                }
                rig.grow();
            }
        }
        if reads.is_empty() {
            continue;
        }
        let at = rng.usize(..reads.len());
        let now = read(&rig, reads[at].table, &reads[at].key).map(|now| now.place);
        let is_there = now == Some(reads[at].place);
        assert_eq!(found(&rig, &reads[at]).is_some(), is_there);
        if is_there {
            same += 1;
        } else {
            refused += 1;
            reused += u32::from(rig.arena.row(reads[at].place.location).is_some());
            reads.swap_remove(at);
        }
    }
    assert!(same > 100 && refused > 100 && reused > 30, "{same} found, {refused} refused, {reused} reused");
}
