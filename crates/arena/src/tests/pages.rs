//! Pages of the file that readers make, and what becomes of them.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::files::Scratch;
use super::{Rig, TABLE, Value};
use crate::{Arena, Geometry, Lookup, Reader, SegmentId, UNIT_BYTES};

const GEOMETRY: Geometry = Geometry { memory_bytes: 8 << 20 };

fn rig_in(path: &Path) -> Rig {
    let rig = Rig::over(Arena::create(Some(path), &GEOMETRY, 1).unwrap());
    // The kernel's own pages of 2 MiB are another test's.
    rig.arena.set_huge_pages(false);
    rig
}

fn reader_of(path: &Path) -> Reader {
    Reader::open(path, &[rustix::process::geteuid().as_raw()]).unwrap()
}

/// Reads a word in every page of some of the file, as a process does that follows no rules.
fn read_all(reader: &Reader, from_word: u64, words: u64) {
    for word in (from_word..from_word + words).step_by(512) {
        assert_eq!(reader.map.load(word, Ordering::Relaxed), 0, "nothing is there");
    }
}

/// Whoever may read the shared file made pages wherever he read in it: up to four times the limit and more, counted by
/// nobody, until the next start.
#[test]
fn pages_that_a_reader_makes_are_given_back() {
    let path = Scratch::in_memory("pages");
    let mut rig = rig_in(&path.0);
    let reader = reader_of(&path.0);
    for key in 0..100u32 {
        assert!(rig.put(TABLE, &key.to_le_bytes(), &Value::plain(&[7; 3000])));
    }
    rig.arena.sweep_pages();
    let before = rig.arena.file_bytes().unwrap();
    let layout = rig.arena.layout;
    // Units that were never used, some of which lie between those that were; headers; buckets.
    read_all(&reader, layout.segments + (40 << 17), 16 << 17);
    read_all(&reader, layout.headers + (200 << 7), 1 << 15);
    read_all(&reader, layout.generations + (512 << 4), 1 << 10);
    read_all(&reader, layout.index + (1 << 17), 1 << 17);
    read_all(&reader, layout.index + layout.max_buckets * 8 + (1 << 17), 1 << 17);
    let made = rig.arena.file_bytes().unwrap() - before;
    if made == 0 {
        return println!("skipped: reading a hole makes no page on this file system");
    }
    assert!(made >= 18 << 20, "{made}");
    rig.arena.sweep_pages();
    assert_eq!(rig.arena.file_bytes().unwrap(), before);
    assert_eq!(rig.arena.swept_bytes(), made);
    for key in 0..100u32 {
        assert_eq!(rig.get(TABLE, &key.to_le_bytes()), Some(Value::plain(&[7; 3000])));
    }
    // And what is used afterwards has its pages.
    while rig.put(TABLE, &rig.arena.next_stamp().to_le_bytes(), &Value::plain(&[1; 3000])) {}
    rig.arena.sweep_pages();
    assert_eq!(rig.arena.swept_bytes(), made);
    assert_eq!(rig.get(TABLE, &7u32.to_le_bytes()), Some(Value::plain(&[7; 3000])));
}

/// A scan that had gathered its rows a while ago looked at each before it asked whether its unit was recycled: where
/// the pages were given back, it made one.
#[test]
fn a_row_that_was_gathered_and_recycled_is_not_looked_at() {
    let path = Scratch::in_memory("gathered");
    let mut rig = rig_in(&path.0);
    assert!(rig.put(TABLE, b"key", &Value::plain(&vec![7; UNIT_BYTES])));
    let (mut gathered, shape) = (Vec::new(), rig.arena.scan_shape());
    for group in 0..shape.groups {
        let token = &rig.tokens[Arena::shard_of_group(group)];
        rig.arena.gather_group(token, shape, group, TABLE, 0, &mut gathered);
    }
    assert!(rig.arena.gathered_row(&gathered[0]).is_some());
    rig.evict();
    rig.arena.trim();
    let before = rig.arena.file_bytes().unwrap();
    assert!(rig.arena.gathered_row(&gathered[0]).is_none());
    assert_eq!(rig.arena.file_bytes().unwrap(), before, "no page is made");
}

/// Memory that is given back because it is not needed was given back at once: a reader who had just found a row there
/// made a page of it.
#[test]
fn what_was_freed_a_moment_ago_keeps_its_pages_for_a_while() {
    let mut rig = Rig::new(8 << 20);
    rig.arena.set_huge_pages(false);
    assert!(rig.put(TABLE, b"key", &Value::plain(&vec![7; 5 * UNIT_BYTES])));
    for tick in 0..9 {
        rig.arena.heartbeat(tick);
    }
    rig.evict();
    let committed = |rig: &Rig| rig.arena.usage().committed_bytes;
    let before = committed(&rig);
    let unused = rig.arena.release_calm_units(u64::MAX);
    assert!(committed(&rig) > 0 && committed(&rig) == before - unused * UNIT_BYTES as u64);
    rig.arena.heartbeat(9);
    assert_eq!(rig.arena.release_calm_units(u64::MAX), 0, "a tick has not gone by");
    rig.arena.heartbeat(10);
    assert!(rig.arena.release_calm_units(u64::MAX) > 5);
    assert_eq!(committed(&rig), 0);
    // Where memory is short, nobody waits.
    assert!(rig.put(TABLE, b"key", &Value::plain(&vec![7; 5 * UNIT_BYTES])));
    rig.evict();
    assert!(rig.arena.release_units(6) >= 6);
}

/// Runs in a process of its own, in which a file system of 6 MiB is mounted at `/mnt`: the owner takes what there is,
/// while readers of another mapping come late to rows that are gone. The page that each of them makes was one too many,
/// and the kernel killed the process that read.
#[test]
#[ignore = "run by `a_full_file_system_is_a_refusal_not_a_fault`"]
fn a_reader_inside_a_small_file_system() {
    let path = Path::new("/mnt/arena");
    let mut rig = Rig::over(Arena::create(Some(path), &Geometry { memory_bytes: 1 << 30 }, 1).unwrap());
    let reader = reader_of(path);
    // Each takes a block of its own, of which some units stay free: so single units lie elsewhere afterwards.
    let large = vec![7; 9 * UNIT_BYTES - 4096];
    for round in 0..5u64 {
        for key in 0..20u32 {
            while !rig.put(TABLE, &key.to_le_bytes(), &Value::plain(&large)) {
                rig.evict();
            }
        }
        let names = (0..20u32).map(u32::to_le_bytes);
        let found: Vec<_> = names
            .filter_map(|name| match reader.lookup(reader.hash(TABLE, &name), TABLE, &name) {
                Lookup::Hit(row) => Some(row),
                _ => None,
            })
            .collect();
        // The rows go, their pages with them, and somebody else's rows take all that there is.
        while !rig.arena.segments().is_empty() {
            rig.evict();
        }
        rig.arena.trim();
        rig.arena.set_limit(1 << 30);
        while rig.arena.allocate(1, &Rig::tag()).is_some() {}
        let free = |unit: u32| rig.arena.units(SegmentId(unit)) == 0;
        let late: Vec<_> = found.iter().filter(|row| free(row.location().unit())).collect();
        assert!(late.len() > 2, "{} of {}", late.len(), found.len());
        // More pages than a unit has, which the owner left because they were too few for it.
        for row in &late[late.len() - 3..] {
            let mut copy = Vec::new();
            row.copy_payload(0, 24 << 10, &mut copy);
            assert!(!row.is_valid(), "round {round}: the row is gone");
        }
        rig.arena.heartbeat(round);
        rig.arena.sweep_pages();
        for segment in rig.arena.segments() {
            rig.arena.seal(segment);
            rig.arena.recycle(segment);
        }
        rig.arena.set_limit(1 << 30);
    }
}
