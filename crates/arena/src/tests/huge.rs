//! Pages of 2 MiB: where mappings begin, what the arena says of its pages and what the kernel says, and memory that
//! goes and comes back.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering;

use super::files::Scratch;
use super::{Rig, TABLE, Value, seeded};
use crate::file::map::Map;
use crate::layout::EXTENT_BYTES;
use crate::{Arena, Arenas, Attach, Geometry, Reader, UNIT_BYTES};

const GEOMETRY: Geometry = Geometry { memory_bytes: 32 << 20 };
/// Looks that are more than the arena has extents, and more than a first pause, and than are left out after dear ones.
const LOOKS: usize = 256;

fn start(map: &Map) -> usize {
    map.words().as_ptr().addr()
}

/// Bytes of this mapping that the kernel has in its page table as large pages.
fn large_by_the_kernel(map: &Map) -> u64 {
    // Each page is met once: only what was met stands in the table.
    for word in (0..map.words().len()).step_by(EXTENT_BYTES as usize / 8) {
        if has_pages(map, word as u64 * 8) {
            map.load(word as u64, Ordering::Relaxed);
        }
    }
    let from = format!("{:x}-", start(map));
    let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
    let mut lines = smaps.lines().skip_while(|line| !line.starts_with(&from));
    let mapped = lines.find_map(|line| line.strip_prefix("ShmemPmdMapped:")).unwrap();
    mapped.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

fn has_pages(map: &Map, byte: u64) -> bool {
    rustix::fs::seek(map.file(), rustix::fs::SeekFrom::Data(byte)).is_ok_and(|data| data == byte)
}

/// Whether the kernel gives large pages, and has plenty of them: more than the arenas here ask for.
fn kernel_has_plenty() -> bool {
    let bytes = 2 * GEOMETRY.memory_bytes;
    let file = rustix::fs::memfd_create("probe", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&file, bytes).unwrap();
    Map::new(file, bytes).unwrap().commit_fresh(0, bytes, true).unwrap()
}

fn fill(rig: &mut Rig, rows: u32) {
    for key in 0..rows {
        assert!(rig.put(TABLE, &key.to_le_bytes(), &Value::plain(&key.to_le_bytes().repeat(250))));
        rig.grow();
    }
}

fn check(rig: &Rig, rows: u32) {
    for key in 0..rows {
        assert_eq!(rig.get(TABLE, &key.to_le_bytes()), Some(Value::plain(&key.to_le_bytes().repeat(250))));
    }
}

#[test]
fn whoever_maps_the_file_begins_at_a_multiple_of_an_extent() {
    for _ in 0..8 {
        let path = Scratch::in_memory("aligned");
        let arena = Arena::create(Some(&path.0), &GEOMETRY, 1).unwrap();
        let reader = Reader::open(&path.0, &[rustix::process::getuid().as_raw()]).unwrap();
        for map in [&arena.map, &reader.mapped.map] {
            assert!(start(map).is_multiple_of(EXTENT_BYTES as usize));
        }
        let layout = arena.layout;
        let overflow = arena.bucket_word(layout.max_buckets);
        for word in [layout.index, overflow, layout.segments] {
            assert!((word * 8).is_multiple_of(EXTENT_BYTES));
        }
    }
}

#[test]
fn what_is_said_to_be_large_is_large() {
    let plenty = kernel_has_plenty();
    let mut rig = Rig::new(GEOMETRY.memory_bytes);
    fill(&mut rig, 20_000);
    for _ in 0..LOOKS {
        rig.arena.enlarge_pages();
    }
    let said = rig.arena.usage().huge_bytes;
    println!("{said} bytes on large pages; the kernel has plenty: {plenty}");
    assert_eq!(said, large_by_the_kernel(&rig.arena.map));
    assert!(rig.arena.usage().committed_bytes > 8 * EXTENT_BYTES);
    assert!(said > 0 || !plenty);
    check(&rig, 20_000);
}

/// A file system on a disk has no such pages for a file that is written, and one may ask for none.
#[test]
fn small_pages_do_where_there_are_no_others() {
    let path = Scratch::new("small");
    let on_disk = Arena::create(Some(&path.0), &GEOMETRY, 1).unwrap();
    let mut rigs = [Rig::over(on_disk), Rig::new(GEOMETRY.memory_bytes)];
    rigs[1].arena.set_huge_pages(false);
    for rig in &mut rigs {
        fill(rig, 20_000);
        for _ in 0..LOOKS {
            rig.arena.enlarge_pages();
        }
        check(rig, 20_000);
        assert!(rig.arena.usage().committed_bytes > 8 * EXTENT_BYTES);
        assert_eq!(rig.arena.usage().huge_bytes, large_by_the_kernel(&rig.arena.map));
    }
    assert_eq!(rigs[1].arena.usage().huge_bytes, 0);
}

/// Segments come and go at random, so that extents lose units and regain them, under a limit that moves. No row
/// changes, and the file never takes more than it says.
#[test]
fn memory_goes_back_and_comes_again() {
    let mut rng = seeded("memory_goes_back_and_comes_again");
    let path = Scratch::in_memory("churn");
    let arena = Arena::create(Some(&path.0), &Geometry { memory_bytes: 16 << 20 }, 1).unwrap();
    let mut rig = Rig::over(arena);
    let mut model = std::collections::HashMap::new();
    let mut limit: u64 = 16 << 20;
    for _ in 0..600 {
        match rng.u32(0..12) {
            0 => {
                limit = rng.u64(4..=256) * UNIT_BYTES as u64;
                rig.arena.set_limit(limit);
                while rig.arena.usage().segments_bytes > limit {
                    rig.evict().iter().for_each(|gone| drop(model.remove(gone)));
                }
                rig.arena.trim();
            }
            1 => (0..4).for_each(|_| rig.arena.enlarge_pages()),
            2 => {
                let segments = rig.arena.segments();
                if !segments.is_empty() {
                    let segment = segments[rng.usize(..segments.len())];
                    rig.evict_segment(segment).iter().for_each(|gone| drop(model.remove(gone)));
                }
            }
            _ => {
                let key = rng.u16(0..400).to_le_bytes().to_vec();
                let len = [1_000, 60_000, 300_000, 3_000_000][rng.usize(0..4)];
                let value = Value::plain(&[rng.u8(..)].repeat(rng.usize(0..len)));
                if rig.put(TABLE, &key, &value) {
                    model.insert((TABLE, key), value);
                }
            }
        }
        let usage = rig.arena.usage();
        let taken = usage.committed_bytes + usage.index_bytes + usage.frame_bytes;
        // Whole pages: beside what is counted there are the rests of some.
        let blocks = fs::metadata(&path.0).unwrap().blocks() * 512;
        assert!(blocks <= taken + 8 * 4096, "{blocks} bytes in {usage:?}");
        assert!(usage.huge_bytes <= usage.committed_bytes + usage.index_bytes);
        assert!(usage.committed_bytes <= limit.max(usage.segments_bytes));
    }
    for ((table, key), value) in &model {
        assert_eq!(rig.get(*table, key).as_ref(), Some(value));
    }
    assert_eq!(rig.arena.usage().huge_bytes, large_by_the_kernel(&rig.arena.map));
}

/// Who takes the file over finds rows and pages as they were.
#[test]
fn large_pages_outlive_their_owner() {
    let path = Scratch::in_memory("outlive");
    let mut rig = Rig::over(Arena::create(Some(&path.0), &GEOMETRY, 1).unwrap());
    fill(&mut rig, 20_000);
    for _ in 0..LOOKS {
        rig.arena.enlarge_pages();
    }
    let before = rig.arena.usage();
    // One segment in nine goes: what is free between rows must not cost the pages of the rows.
    let segments = rig.arena.segments();
    let gone: Vec<_> = segments.iter().step_by(9).flat_map(|segment| rig.evict_segment(*segment)).collect();
    drop(rig);
    let Ok(Attach::Warm(mut arena)) = super::files::try_attach(&path.0, &GEOMETRY) else { panic!("usable") };
    assert_eq!(arena.recover().rows, 20_000 - gone.len() as u64);
    let kept = large_by_the_kernel(&arena.map);
    assert!(kept >= before.huge_bytes.saturating_sub(EXTENT_BYTES), "{kept} of {before:?}");
    let rig = Rig::over(arena);
    for _ in 0..LOOKS {
        rig.arena.enlarge_pages();
    }
    assert_eq!(rig.arena.usage().huge_bytes, large_by_the_kernel(&rig.arena.map));
    for key in (0..20_000u32).filter(|key| !gone.contains(&(TABLE, key.to_le_bytes().to_vec()))) {
        assert!(rig.get(TABLE, &key.to_le_bytes()).is_some());
    }
}

/// Ends the thread that makes memory ready, also where the test fails.
struct End<'a>(&'a Arenas);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end_ready();
    }
}

/// A thread makes memory ready while another takes and frees it, under a limit that moves: together they stay within
/// it, no two get the same memory, and the thread ends when it is told to, in the midst of work or asleep.
#[test]
fn memory_is_made_ready_beside_writers() {
    let mut rng = seeded("memory_is_made_ready_beside_writers");
    for round in 0..6 {
        let arenas = Arenas::new(super::tiny(1 << 30), None);
        arenas.private().set_huge_pages(round % 2 == 0);
        arenas.begin_ready();
        std::thread::scope(|scope| {
            let end = End(&arenas);
            let thread = scope.spawn(|| arenas.make_ready());
            let mut limit = 192 << 20;
            arenas.private().set_limit(limit);
            let mut taken = Vec::new();
            let steps = rng.usize(0..400);
            for _ in 0..steps {
                match rng.u32(0..8) {
                    0 if !taken.is_empty() => {
                        let segment = taken.swap_remove(rng.usize(..taken.len()));
                        arenas.of(segment).recycle(segment);
                    }
                    1 if rng.u32(0..20) == 0 => {
                        limit = rng.u64(128..=256) << 20;
                        arenas.private().set_limit(limit);
                        arenas.trim(u64::MAX);
                    }
                    _ => taken.extend(arenas.allocate(rng.u32(1..40), &Rig::tag(), 0)),
                }
                if arenas.usage().committed_bytes > limit {
                    arenas.trim(u64::MAX);
                }
                let usage = arenas.usage();
                assert!(usage.segments_bytes <= usage.committed_bytes, "{usage:?}");
                // What the thread was about to take when the limit fell.
                let beyond = 4 * EXTENT_BYTES;
                assert!(usage.committed_bytes <= limit.max(usage.segments_bytes) + beyond, "{usage:?}");
            }
            drop(end);
            thread.join().unwrap();
            let units: u64 = taken.iter().map(|segment| u64::from(arenas.of(*segment).units(*segment))).sum();
            let mut runs: Vec<_> = taken
                .iter()
                .map(|segment| (segment.0, segment.0 + arenas.of(*segment).units(*segment)))
                .collect();
            runs.sort_unstable();
            assert!(runs.windows(2).all(|pair| pair[0].1 <= pair[1].0), "two segments share memory");
            assert_eq!(arenas.usage().segments_bytes, units * UNIT_BYTES as u64);
            for segment in taken {
                arenas.of(segment).recycle(segment);
            }
            (0..2).for_each(|tick| arenas.heartbeat(tick));
            arenas.trim(u64::MAX);
            assert_eq!(arenas.usage().committed_bytes, 0);
        });
    }
}

/// Runs that leave gaps behind them, which longer runs do not fit into, are no reason to make nothing ready: whoever
/// takes the next run finds its memory there.
#[test]
fn gaps_are_not_taken_for_ready_memory() {
    let mut rng = seeded("gaps_are_not_taken_for_ready_memory");
    for huge in [false, true] {
        let arenas = Arenas::new(super::tiny(1 << 30), None);
        arenas.private().set_huge_pages(huge);
        arenas.begin_ready();
        let make_ready = || arenas.each().for_each(|arena| assert!(arena.commit_ahead()));
        make_ready();
        let most = rng.u32(7..=16);
        for taken in 0..200 {
            let before = arenas.usage().committed_bytes;
            let units = if taken % 4 == 0 { rng.u32(1..=most) } else { most };
            arenas.allocate(units, &Rig::tag(), 0).unwrap();
            assert_eq!(arenas.usage().committed_bytes, before, "run {taken}, of {units} units");
            make_ready();
        }
        arenas.end_ready();
    }
}

/// Where memory is made ready by a thread that has not come to it yet, a writer takes small pages for what he needs,
/// and no more; what is ready he takes first, however much room without pages there is.
#[test]
fn a_writer_waits_for_no_more_pages_than_he_needs() {
    let mut rng = seeded("a_writer_waits_for_no_more_pages_than_he_needs");
    for _ in 0..20 {
        let arenas = Arenas::new(super::tiny(1 << 30), None);
        arenas.private().set_huge_pages(true);
        arenas.begin_ready();
        let mut taken = Vec::new();
        for _ in 0..200 {
            match rng.u32(0..6) {
                0 => arenas.each().for_each(|arena| assert!(arena.commit_ahead())),
                1 if !taken.is_empty() => {
                    let segment = taken.swap_remove(rng.usize(..taken.len()));
                    arenas.of(segment).recycle(segment);
                }
                2 if rng.u32(0..10) == 0 => arenas.trim(u64::MAX),
                _ => {
                    let units = rng.u32(1..=16);
                    let ready = arenas.private().segments.pool.lock().ready_units();
                    let before = arenas.usage();
                    taken.push(arenas.allocate(units, &Rig::tag(), 0).unwrap());
                    let after = arenas.usage();
                    let grown = after.committed_bytes - before.committed_bytes;
                    assert!(grown <= u64::from(units) * UNIT_BYTES as u64, "{grown} for {units} units");
                    assert!(grown == 0 || ready == 0, "{grown} although {ready} units are ready");
                    assert_eq!(after.huge_bytes, before.huge_bytes, "a writer asks for no large page");
                }
            }
        }
        arenas.end_ready();
    }
}

/// At the limit a run is taken where it has pages, though there is a better place for it that has none: others would
/// have to give theirs.
#[test]
fn what_has_pages_is_taken_first_at_the_limit() {
    let arena = super::tiny(64 * UNIT_BYTES as u64);
    let mut taken: Vec<_> = (0..64).map(|_| arena.allocate(1, &Rig::tag()).unwrap()).collect();
    taken.sort_unstable_by_key(|segment| segment.0);
    for segment in taken.drain(..15) {
        arena.recycle(segment);
    }
    arena.trim();
    arena.set_limit(49 * UNIT_BYTES as u64);
    for segment in taken.drain(33..) {
        arena.recycle(segment);
    }
    let units = [1, 2, 4, 8, 1].map(|units| arena.allocate(units, &Rig::tag()).unwrap().0 / 16);
    assert_eq!(units, [3; 5]);
    assert!(arena.allocate(1, &Rig::tag()).is_none());
}

/// While large pages are slow to allocate, rows above 2 KiB do without, also those that share a unit; smaller rows go
/// on.
#[test]
fn rows_of_some_size_do_without_dear_pages() {
    let plenty = kernel_has_plenty();
    let arenas = Arenas::new(super::tiny(1 << 30), None);
    arenas.private().set_huge_pages(true);
    arenas.private_budget().huge.note_cost(u64::MAX);
    let taken = |row_bytes| {
        let before = arenas.usage();
        assert!((0..320).all(|_| arenas.allocate(1, &Rig::tag(), row_bytes).is_some()));
        let usage = arenas.usage();
        assert!(usage.committed_bytes >= before.committed_bytes + 8 * EXTENT_BYTES);
        usage.huge_bytes - before.huge_bytes
    };
    assert_eq!(taken(6 << 10), 0);
    assert!(taken(1 << 10) > 0 || !plenty);
}

/// What is free keeps its pages but for as much as is asked for, and the rest of one large page.
#[test]
fn no_more_goes_back_than_is_asked_for() {
    let arenas = Arenas::new(super::tiny(64 << 20), None);
    let taken: Vec<_> = (0..300).map(|_| arenas.allocate(3, &Rig::tag(), 0).unwrap()).collect();
    for segment in taken {
        arenas.of(segment).recycle(segment);
    }
    (0..2).for_each(|tick| arenas.heartbeat(tick));
    for bytes in [1, 5 << 20, UNIT_BYTES as u64, 9 << 20] {
        let before = arenas.usage().committed_bytes;
        arenas.trim(bytes);
        let gone = before - arenas.usage().committed_bytes;
        assert!((bytes..bytes + EXTENT_BYTES).contains(&gone), "{gone} of {bytes}");
    }
    arenas.trim(u64::MAX);
    assert_eq!(arenas.usage().committed_bytes, 0);
}

/// Where two runs fit into a block two are put there, however many blocks there are with gaps too short for them, and
/// what they leave is for short ones.
#[test]
fn a_run_takes_the_least_room_that_it_fits_into() {
    let arena = super::tiny(512 << 20);
    let blocks = 150_u64;
    for _ in 0..2 * blocks {
        arena.allocate(7, &Rig::tag()).unwrap();
    }
    let most = blocks.next_multiple_of(2) << 20;
    assert!(arena.usage().committed_bytes <= most, "{:?}", arena.usage());
    for _ in 0..2 * blocks {
        arena.allocate(1, &Rig::tag()).unwrap();
    }
    assert_eq!(arena.usage().committed_bytes, most);
    assert_eq!(arena.usage().segments_bytes, blocks << 20);
}

/// While runs are taken and given back at random, what counts as ready is what a writer finds: a run of a whole block
/// takes no new memory, as often as there are ready blocks.
#[test]
fn as_much_is_ready_as_is_counted() {
    let mut rng = seeded("as_much_is_ready_as_is_counted");
    for _ in 0..20 {
        let arena = super::tiny(256 << 20);
        let mut taken = Vec::new();
        for _ in 0..rng.usize(0..300) {
            match rng.u32(0..5) {
                0 | 1 if !taken.is_empty() => arena.recycle(taken.swap_remove(rng.usize(..taken.len()))),
                2 if rng.u32(0..30) == 0 => arena.trim(),
                _ => taken.extend(arena.allocate(rng.u32(1..40), &Rig::tag())),
            }
        }
        let ready = arena.segments.pool.lock().ready_units() / crate::layout::BLOCK_UNITS;
        let before = arena.usage().committed_bytes;
        for _ in 0..ready {
            arena.allocate(crate::layout::BLOCK_UNITS, &Rig::tag()).unwrap();
        }
        assert_eq!(arena.usage().committed_bytes, before);
        assert_eq!(arena.segments.pool.lock().ready_units(), 0);
    }
}
