//! Files that lie: random bits flipped anywhere must never panic, loop, or show a row that is none.

use super::{Rig, TABLE, Value, seeded};
use crate::{Arena, Attach, Geometry, Image, Location, RedoEntry};

fn key(i: u32) -> Vec<u8> {
    format!("key-{i}").into_bytes()
}

fn value(i: u32) -> Value {
    Value::plain(format!("the value of {i}").repeat(1 + i as usize % 7).as_bytes())
}

/// An arena with a little of everything: overflow buckets, runs, definitions, a commit in flight.
fn specimen(rows: u32) -> Image {
    let mut rig = Rig::new(4 << 20);
    for i in 0..rows {
        rig.put(TABLE, &key(i), &value(i));
        if i % 3 == 0 {
            rig.grow();
        }
    }
    rig.put(TABLE, b"run", &Value::plain(&b"r".repeat(200_000)));
    for i in (0..rows).step_by(11) {
        rig.delete(TABLE, &key(i));
    }
    rig.arena.set_catalogue(b"definitions").unwrap();
    rig.arena.checkpoints().record(5, 100);
    let (location, _) = rig.write(TABLE, &key(0), &value(0)).unwrap();
    let hash = rig.arena.hash(TABLE, &key(0));
    let old = Some(Location::from_bits(99));
    let entry = RedoEntry { hash, table: TABLE, new: Some(location), old, old_stamp: 4 };
    let redo = rig.arena.write_redo(&[entry]).unwrap();
    let slot = rig.arena.claim_commit().unwrap();
    assert!(rig.arena.seal_commit(slot, &redo));
    rig.arena.image()
}

/// Attaches; whatever is served is what was stored under that key, and the arena works on.
fn survive(image: &Image) -> bool {
    let Attach::Warm(mut arena) = Arena::attach_image(image, &Geometry { memory_bytes: 4 << 20 }) else {
        return false;
    };
    arena.recover();
    let mut rig = Rig::over(arena);
    for i in 0..7000 {
        if let Some(found) = rig.get(TABLE, &key(i)) {
            assert_eq!(found.payload, value(i).payload);
        }
    }
    let rows = rig.scan(TABLE).len();
    assert!(rows as u64 <= rig.arena.usage().rows);
    while !rig.put(TABLE, b"more", &Value::plain(&[1; 100])) {
        rig.evict();
    }
    rig.grow();
    while !rig.arena.segments().is_empty() {
        rig.evict();
    }
    assert_eq!(rig.arena.usage().rows, 0, "every slot points into a segment");
    true
}

#[test]
fn flipped_bits_never_show_a_wrong_row() {
    let mut rng = seeded("flipped_bits_never_show_a_wrong_row");
    let image = specimen(7000);
    assert!(survive(&image));
    let words = image.occupied_words();
    let mut usable = 0;
    for round in 0..150 {
        let mut damaged = image.clone();
        for _ in 0..=round % 40 {
            let word = words[rng.usize(0..words.len())];
            let value = match rng.u32(0..3) {
                0 => rng.u64(..),
                1 => damaged.load(words[rng.usize(0..words.len())]),
                _ => damaged.load(word) ^ (1 << rng.u32(0..64)),
            };
            // The words that never change have a check of their own, tried below.
            if word >= 12 {
                damaged.store(word, value);
            }
        }
        usable += u32::from(survive(&damaged));
    }
    assert!(usable > 50, "most damage costs rows, not the arena: {usable} of 150");
}

#[test]
fn bits_of_the_superblock_may_flip() {
    let image = specimen(200);
    for word in (0..24).chain([32, 40, 64, 65]) {
        for bit in (0..64).step_by(if word < 12 { 9 } else { 1 }) {
            let mut damaged = image.clone();
            damaged.store(word, damaged.load(word) ^ (1 << bit));
            let attached = Arena::attach_image(&damaged, &Geometry { memory_bytes: 4 << 20 });
            let usable = matches!(attached, Attach::Warm(_));
            assert!(word >= 12 || !usable, "word {word} bit {bit} is covered by the check");
        }
    }
}

#[test]
fn a_truncated_or_foreign_file_is_refused() {
    let image = Image::empty(4096);
    assert!(!survive(&image));
    assert!(!survive(&Image::empty(0)));
    assert!(!survive(&Image::empty(1 << 31)));
    let mut short = specimen(10);
    short.set_bytes(1 << 20);
    assert!(!survive(&short));
}
