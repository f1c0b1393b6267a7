//! Files that lie: random bits flipped anywhere must never panic, loop, or show a row that is none.

use super::{Rig, TABLE, Value, seeded};
use crate::index::{header, overflow_link, version};
use crate::layout::{FIRST_LEVEL, word};
use crate::{Arena, Attach, Geometry, Image, Location, RedoEntry};

/// Rows of the largest specimen.
const ROWS: u32 = 7000;

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
    let redo = rig.arena.write_redo(std::iter::once(entry)).unwrap();
    let slot = rig.arena.claim_commit().unwrap();
    assert!(rig.arena.seal_commit(slot, &redo));
    rig.arena.image()
}

/// Reads and writes rows of chains that are mended and proved by that.
fn use_some(rig: &mut Rig) {
    for i in (0..ROWS).step_by(3) {
        if rig.find(TABLE, &key(i)).is_some() {
            assert_eq!(rig.get(TABLE, &key(i)).unwrap().payload, value(i).payload);
        }
        if i % 9 == 0 {
            rig.put(TABLE, &key(i), &value(i));
            rig.grow();
        }
    }
}

/// Attaches; whatever is served is what was stored under that key, whether rows are used before all are proved or not,
/// and the arena works on. How many rows are served; `None`: the file is unusable.
fn survivors(image: &Image, used_before: bool) -> Option<usize> {
    let Attach::Warm(arena) = Arena::attach_image(image, &Geometry { memory_bytes: 4 << 20 }) else {
        return None;
    };
    let mut rig = Rig::over(arena);
    if used_before {
        use_some(&mut rig);
    }
    rig.arena.recover();
    let mut served = 0;
    for i in 0..ROWS {
        if let Some(found) = rig.get(TABLE, &key(i)) {
            assert_eq!(found.payload, value(i).payload);
            served += 1;
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
    Some(served)
}

fn survive(image: &Image) -> bool {
    let ways = [false, true].map(|used_before| survivors(image, used_before).is_some());
    assert_eq!(ways[0], ways[1], "use changes nothing in whether a file is usable");
    ways[0]
}

#[test]
fn flipped_bits_never_show_a_wrong_row() {
    let mut rng = seeded("flipped_bits_never_show_a_wrong_row");
    let image = specimen(ROWS);
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
fn links_that_lead_astray_are_cut() {
    let image = specimen(ROWS);
    let whole = survivors(&image, false).unwrap();
    let Attach::Warm(arena) = Arena::attach_image(&image, &Geometry { memory_bytes: 4 << 20 }) else {
        panic!("an undamaged file is usable");
    };
    let link_of = |at: u64| overflow_link(image.load(at));
    let first_words = (0..1 << FIRST_LEVEL).map(|bucket| arena.bucket_word(bucket));
    let chains: Vec<(u64, u64)> =
        first_words.map(|at| (at, link_of(at))).filter(|(_, link)| *link != 0).take(2).collect();
    let [(first, link), (_, other)] = chains[..] else { panic!("too few chains of two buckets") };
    let second = arena.bucket_word(arena.layout.max_buckets + link - 1);
    let beyond = image.load(word::OVERFLOW_COMMITTED) + 1;
    // Where the link stands, where it leads, and the rows that this may cost: those of the bucket that it led to.
    for (at, to, cost) in [
        (second, link, 0),
        (second, beyond, 0),
        (second, u64::from(u32::MAX), 0),
        (second, other, 7),
        (first, 0, 7),
        (first, beyond, 7),
    ] {
        let mut damaged = image.clone();
        damaged.store(at, header(version(image.load(at)), to));
        for used_before in [false, true] {
            let left = survivors(&damaged, used_before).unwrap();
            // A row that was written again is there again.
            assert!(
                (whole - cost..=whole + ROWS as usize / 99 + 1).contains(&left),
                "{to}: {left} of {whole}"
            );
        }
    }
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
