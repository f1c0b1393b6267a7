//! What the kernel refuses: pages, addresses, and to take pages back. Nothing that was there is lost, what is counted
//! is what there is, and the next try succeeds.

use std::collections::HashMap;

use rustix::io::Errno;

use super::files::{Scratch, try_attach};
use super::{Rig, TABLE, Value, seeded};
use crate::failpoint::{Point, disarm, refuse, refuse_after};
use crate::{Arena, ArenaError, Attach, CatalogueError, Geometry, Reader, UNIT_BYTES, Unusable};

const GEOMETRY: Geometry = Geometry { memory_bytes: 8 << 20 };
/// More calls than anything here makes.
const ALWAYS: usize = 1_000;

/// A call that is refused from the first, the second, ... time on, until it is made so seldom that none is refused.
fn each_refusal(point: Point, why: Errno, mut attempt: impl FnMut(usize)) {
    for passes in 0.. {
        refuse_after(point, passes, ALWAYS, why);
        attempt(passes);
        if disarm() >= ALWAYS {
            return;
        }
    }
}

/// Rows as they were acknowledged.
struct Model {
    rig: Rig,
    rows: HashMap<u32, Value>,
}

impl Model {
    /// Writes a row; where there is no memory, the row that was there stays.
    fn put(&mut self, key: u32, len: usize) -> bool {
        let value = Value::plain(&key.to_le_bytes().repeat(len / 4));
        let done = self.rig.put(TABLE, &key.to_le_bytes(), &value);
        if done {
            self.rows.insert(key, value);
        }
        done
    }

    fn evict(&mut self) {
        for (_, key) in self.rig.evict() {
            self.rows.remove(&u32::from_le_bytes(key[..].try_into().unwrap()));
        }
    }

    fn step(&mut self, rng: &mut fastrand::Rng) {
        match rng.u32(0..100) {
            0..85 => {
                let len = if rng.u32(0..20) == 0 { rng.usize(..300_000) } else { rng.usize(..3_000) };
                if !self.put(rng.u32(..2_000), len) && rng.bool() && !self.rig.arena.segments().is_empty() {
                    self.evict();
                }
            }
            85..90 => {
                let key = rng.u32(..2_000);
                assert_eq!(self.rig.delete(TABLE, &key.to_le_bytes()), self.rows.remove(&key).is_some());
            }
            90..92 => drop(self.rig.arena.release_units(rng.u64(..40))),
            92..94 => self.rig.arena.sweep_pages(),
            94..96 => self.rig.arena.enlarge_pages(),
            // As the owner divides the memory once a tick.
            96..98 => self.rig.arena.set_limit(GEOMETRY.memory_bytes),
            _ => {
                if let Some(shard) = self.rig.arena.split_due() {
                    self.rig.arena.split(&mut self.rig.tokens[shard]);
                }
            }
        }
    }

    fn check(&self) {
        for key in 0..2_000u32 {
            assert_eq!(self.rig.get(TABLE, &key.to_le_bytes()).as_ref(), self.rows.get(&key), "{key}");
        }
    }

    /// What is counted has pages, and nothing else has any but what the sweep does not look for.
    fn check_pages(&self) {
        (0..4).for_each(|_| self.rig.arena.sweep_pages());
        let (own, taken) = (self.rig.arena.asked_bytes(), self.rig.arena.file_bytes().unwrap());
        assert!(own <= taken && taken < own + UNIT_BYTES as u64, "{own} are counted, {taken} are there");
    }
}

/// The kernel refuses at random: pages, pages of 2 MiB, taking pages back.
#[test]
fn what_is_refused_at_random_costs_no_row_and_no_page() {
    let mut rng = seeded("what_is_refused_at_random_costs_no_row_and_no_page");
    for round in 0..12 {
        let rig = Rig::new(GEOMETRY.memory_bytes);
        rig.arena.set_huge_pages(round % 2 == 0);
        let mut model = Model { rig, rows: HashMap::new() };
        for _ in 0..2_000 {
            if rng.u32(0..8) == 0 {
                let points = [Point::Fallocate, Point::Fallocate, Point::Punch, Point::Madvise];
                let point = points[rng.usize(..points.len())];
                let why = [Errno::NOSPC, Errno::NOMEM, Errno::OPNOTSUPP][rng.usize(..3)];
                refuse_after(point, rng.usize(..3), rng.usize(1..6), why);
            }
            model.step(&mut rng);
        }
        disarm();
        model.check();
        model.check_pages();
        // And all memory is to be had again.
        model.rig.arena.set_limit(GEOMETRY.memory_bytes);
        while !model.rig.arena.segments().is_empty() {
            model.evict();
        }
        assert!((0..20u32).all(|key| model.put(key, 300_000)), "{:?}", model.rig.arena.usage());
        model.check();
        model.check_pages();
    }
}

/// The definitions in force stay until others have pages.
#[test]
fn definitions_without_pages_change_nothing() {
    let arena = super::tiny(1 << 20);
    arena.set_catalogue(&[1; 100]).unwrap();
    each_refusal(Point::Fallocate, Errno::NOSPC, |_| match arena.set_catalogue(&[2; 9_000]) {
        Ok(()) => assert_eq!(arena.catalogue().as_deref(), Some(&[2; 9_000][..])),
        Err(error) => {
            assert_eq!(error, CatalogueError::NoSpace);
            assert_eq!(arena.catalogue().as_deref(), Some(&[1; 100][..]));
        }
    });
    assert_eq!(arena.catalogue().as_deref(), Some(&[2; 9_000][..]));
}

/// Pages of 2 MiB are not counted where there are none, and small ones do.
#[test]
fn refused_advice_is_not_counted_and_changes_no_row() {
    let mut rig = Rig::new(GEOMETRY.memory_bytes);
    refuse(Point::Madvise, ALWAYS, Errno::INVAL);
    for key in 0..4_000u32 {
        assert!(rig.put(TABLE, &key.to_le_bytes(), &Value::plain(&[7; 1_000])));
        rig.arena.enlarge_pages();
    }
    assert!(disarm() < ALWAYS, "it was asked");
    assert_eq!(rig.arena.usage().huge_bytes, 0);
    assert_eq!(rig.get(TABLE, &7u32.to_le_bytes()), Some(Value::plain(&[7; 1_000])));
}

/// Pages that cannot be given back are counted on, and go the next time.
#[test]
fn pages_that_stay_are_counted() {
    let mut rig = Rig::new(GEOMETRY.memory_bytes);
    let large = vec![7; 300_000];
    assert!((0..20u32).all(|key| rig.put(TABLE, &key.to_le_bytes(), &Value::plain(&large))));
    while !rig.arena.segments().is_empty() {
        rig.evict();
    }
    let before = rig.arena.usage().committed_bytes;
    refuse(Point::Punch, ALWAYS, Errno::OPNOTSUPP);
    assert_eq!(rig.arena.release_units(u64::MAX), 0);
    assert!(disarm() < ALWAYS);
    assert_eq!(rig.arena.usage().committed_bytes, before);
    assert_eq!(rig.arena.release_units(u64::MAX) * UNIT_BYTES as u64, before);
    assert_eq!(rig.arena.usage().committed_bytes, 0);
}

/// An arena that cannot be made leaves no file.
#[test]
fn a_start_that_is_refused_leaves_nothing_behind() {
    let path = Scratch::new("refused-create");
    for (point, why) in [(Point::Mmap, Errno::NOMEM), (Point::Fallocate, Errno::NOSPC)] {
        each_refusal(point, why, |_| match Arena::create(Some(&path.0), &GEOMETRY, 1) {
            Ok(arena) => {
                drop(arena);
                std::fs::remove_file(&path.0).unwrap();
            }
            Err(error) => {
                assert!(explains(&error, point, &path), "{error}");
                assert!(!path.0.exists());
            }
        });
    }
}

/// Whether an error names the file and says what to do.
fn explains(error: &ArenaError, point: Point, path: &Scratch) -> bool {
    let text = error.to_string();
    let names = text.contains(&path.0.display().to_string());
    let advice = if point == Point::Mmap { "ulimit -v" } else { "--shm-size" };
    names && text.contains(advice)
}

/// An arena whose mapping was refused for want of addresses passed for an unusable file: the start removed it, and all
/// rows with it.
#[test]
fn a_start_that_is_refused_keeps_the_file_for_the_next_one() {
    let path = Scratch::new("refused-attach");
    let mut rig = Rig::over(Arena::create(Some(&path.0), &GEOMETRY, 1).unwrap());
    for key in 0..500u32 {
        assert!(rig.put(TABLE, &key.to_le_bytes(), &Value::plain(&[7; 1_000])));
        rig.grow();
    }
    rig.arena.set_catalogue(&[1; 9_000]).unwrap();
    drop(rig);
    let mut refusals = 0;
    for (point, why) in [
        (Point::Mmap, Errno::NOMEM),
        (Point::Fallocate, Errno::NOSPC),
        (Point::Fallocate, Errno::OPNOTSUPP),
        (Point::Punch, Errno::OPNOTSUPP),
        (Point::Madvise, Errno::INVAL),
    ] {
        each_refusal(point, why, |passes| match try_attach(&path.0, &GEOMETRY).unwrap() {
            Attach::Warm(mut arena) => {
                let recovery = arena.recover();
                assert_eq!((recovery.rows, recovery.dropped), (500, 0), "{point:?} {passes}");
                assert_eq!(arena.catalogue().as_deref(), Some(&[1; 9_000][..]));
            }
            Attach::Unusable(Unusable { refused: Some(error), .. }) => {
                refusals += 1;
                assert!(why == Errno::OPNOTSUPP || explains(&error, point, &path), "{error}");
            }
            Attach::Unusable(unusable) => panic!("{point:?} {passes}: {}", unusable.reason),
        });
    }
    assert!(refusals > 3, "{refusals}");
}

/// A reader that has no addresses left learns just that: nothing is wrong with the file.
#[test]
fn a_reader_that_is_refused_blames_no_file() {
    let path = Scratch::new("refused-reader");
    let hits = Scratch::new("refused-hits");
    let mut rig = Rig::over(Arena::create(Some(&path.0), &GEOMETRY, 1).unwrap());
    rig.arena.use_hits(&hits.0).unwrap();
    assert!(rig.put(TABLE, b"key", &Value::plain(b"value")));
    let own = [rustix::process::geteuid().as_raw()];
    each_refusal(Point::Mmap, Errno::NOMEM, |passes| match Reader::open(&path.0, &own) {
        Ok(mut reader) => {
            let told = reader.tell_hits(&hits.0, &own);
            assert!(told.is_ok() || explains(&told.unwrap_err(), Point::Mmap, &hits), "{passes}");
            let hash = reader.hash(TABLE, b"key");
            assert!(matches!(reader.lookup(hash, TABLE, b"key"), crate::Lookup::Hit(_)));
        }
        Err(error) => assert!(explains(&error, Point::Mmap, &path), "{error}"),
    });
}
