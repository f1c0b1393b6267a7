//! Readers in other processes, beside a writer that is stopped, killed and begun again.
//!
//! A writer process replaces, deletes, expires and evicts rows of a small arena whose index splits, and notes in a file
//! what it acknowledged. Reader processes map the arena read-only, look keys up, and check that what they get is a
//! whole row of that key, and none older than what was acknowledged before they asked. The test stops and kills all of
//! them at random. `READS=1000000000 cargo test --release -p arena --test processes` is the long run; `SEED` replays a
//! choice of victims.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test that fails says where")]

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arena::{
    Arena, Attach, Geometry, Lookup, Queue, Reader, RowParts, SegmentId, SegmentTag, ShardToken, TableId,
};
use rustix::process::{Pid, Signal, getuid, kill_process};

const TABLE: TableId = TableId(7);
/// Keys in play: a third more than fit.
const KEYS: u32 = 40_000;
const MEMORY: Geometry = Geometry { memory_bytes: 6 << 20 };
/// Arenas that one run goes through: the index splits only as long as it grows.
const ARENAS: u64 = 4;
/// Reads of the run in CI.
const READS: u64 = 4_000_000;
/// How often the wanted reads are made until an eighth of them has hit.
const READS_MAX: u64 = 100;
const READERS: usize = 3;
/// Reads between two notes of how many there were.
const BATCH: u64 = 2_048;
/// One in so many reads asks first what was acknowledged, which is a system call.
const ASKS: u32 = 32;
/// How long somebody stands still who is stopped, in milliseconds at most.
const STANDSTILL: u64 = 30;

#[expect(clippy::disallowed_methods, reason = "a test is told its part, its length and its seed")]
fn told(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The bytes of a version of a key, which certify themselves: version, then what key and version make.
fn payload(key: u32, version: u64, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&version.to_le_bytes());
    let mut state = (u64::from(key) << 32 ^ version).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    // One row in some thousands has a run of units of its own.
    let words = if state >> 52 == 7 { 9_000 } else { state >> 40 & 31 };
    for _ in 0..words {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
}

/// The word of expiry that a key's rows are written with, and the one that they are touched to.
fn expiries(key: u32) -> [u32; 2] {
    [1_000_000 + key, 2_000_000 + key]
}

/// The writer: one thread over an arena that it makes, or takes over from the writer that was killed.
struct Writer {
    arena: Arena,
    tokens: Vec<ShardToken>,
    open: Option<SegmentId>,
    acknowledged: File,
    version: u64,
    bytes: Vec<u8>,
}

impl Writer {
    fn begin(folder: &Path, life: u64) -> Self {
        let path = folder.join("arena");
        let mut arena = if path.exists() {
            match Arena::attach(&path, &MEMORY).unwrap() {
                Attach::Warm(arena) => arena,
                Attach::Unusable(unusable) => {
                    panic!("a killed writer leaves a usable arena: {}", unusable.reason)
                }
            }
        } else {
            Arena::create(Some(&path), &MEMORY, 1).unwrap()
        };
        let tokens = arena.take_tokens();
        arena.set_huge_pages(true);
        let acknowledged = File::options().write(true).read(true).open(folder.join("acknowledged")).unwrap();
        Self { arena, tokens, open: None, acknowledged, version: life << 32, bytes: Vec::new() }
    }

    fn run(&mut self) -> ! {
        let mut random = fastrand::Rng::new();
        loop {
            let key = random.u32(..KEYS);
            self.version += 1;
            match random.u8(..) {
                0..180 => self.put(key),
                180..230 => self.delete(key),
                _ => self.touch(key),
            }
            if random.u8(..) == 0 {
                self.prove_some();
            }
            if random.u16(..) == 0 {
                // Readers read in the extent meanwhile, and the writer may be killed in the middle.
                self.arena.enlarge_pages();
            }
            while let Some(shard) = self.arena.split_due() {
                assert!(self.arena.split(&mut self.tokens[shard]));
            }
        }
    }

    /// What an earlier writer left is proved a little at a time, beside the writes.
    fn prove_some(&mut self) -> bool {
        let Some(chains) = self.arena.unproved() else { return false };
        for bucket in chains {
            self.arena.prove(&self.tokens[Arena::shard_of_chain(bucket)], bucket);
        }
        true
    }

    fn acknowledge(&self, key: u32) {
        self.acknowledged.write_all_at(&self.version.to_le_bytes(), u64::from(key) * 8).unwrap();
    }

    fn put(&mut self, key: u32) {
        let mut bytes = std::mem::take(&mut self.bytes);
        payload(key, self.version, &mut bytes);
        let encoded = key.to_le_bytes();
        let [expiry, _] = expiries(key);
        let parts = RowParts {
            table: TABLE,
            multi: false,
            stale: false,
            lease: None,
            expiry,
            client_flags: 0,
            cas: None,
            key: &encoded,
            payload: &[&bytes],
        };
        let (segment, location) = self.reserve(parts.total_bytes());
        self.arena.write_row(location, &parts);
        let hash = self.arena.hash(TABLE, &encoded);
        let token = &mut self.tokens[Arena::shard_of(hash)];
        self.arena.stamp_row(location, self.arena.next_stamp());
        self.arena.add_live(segment, parts.total_bytes());
        match self.arena.find(token, hash, TABLE, &encoded) {
            Some(old) => {
                let dead = self.arena.row(old.location).unwrap().head().total_bytes;
                self.arena.replace(token, old.slot, hash, TABLE, location);
                self.arena.sub_live(self.arena.head_of(old.location), dead);
            }
            None => {
                self.arena.insert(token, hash, TABLE, location).unwrap();
            }
        }
        self.arena.release(segment);
        self.acknowledge(key);
        self.bytes = bytes;
    }

    fn delete(&mut self, key: u32) {
        let encoded = key.to_le_bytes();
        let hash = self.arena.hash(TABLE, &encoded);
        let token = &mut self.tokens[Arena::shard_of(hash)];
        if let Some(old) = self.arena.find(token, hash, TABLE, &encoded) {
            let dead = self.arena.row(old.location).unwrap().head().total_bytes;
            self.arena.remove(token, old.slot);
            self.arena.sub_live(self.arena.head_of(old.location), dead);
        }
        self.acknowledge(key);
    }

    fn touch(&mut self, key: u32) {
        let encoded = key.to_le_bytes();
        let hash = self.arena.hash(TABLE, &encoded);
        let found = self.arena.find(&self.tokens[Arena::shard_of(hash)], hash, TABLE, &encoded);
        if let Some(found) = found {
            let now = self.arena.row(found.location).unwrap().head().expiry;
            let [one, other] = expiries(key);
            self.arena.set_expiry(found.location, if now == one { other } else { one });
        }
    }

    fn reserve(&mut self, bytes: usize) -> (SegmentId, arena::Location) {
        loop {
            let units = u32::try_from(bytes.div_ceil(arena::UNIT_BYTES)).unwrap();
            let own = units > 1;
            if !own
                && let Some(segment) = self.open
                && let Some(location) = self.arena.reserve(segment, bytes)
            {
                return (segment, location);
            }
            let tag = SegmentTag { table: TABLE, queue: Queue::Small, ttl_class: 0, schema: 1 };
            let Some(segment) = self.arena.allocate(units, &tag) else {
                self.evict();
                continue;
            };
            let location = self.arena.reserve(segment, bytes).unwrap();
            if own {
                self.arena.seal(segment);
            } else if let Some(full) = self.open.replace(segment) {
                self.arena.seal(full);
            }
            return (segment, location);
        }
    }

    /// Empties the oldest segment. Those of an earlier writer can be when all of its rows are proved.
    fn evict(&mut self) {
        while self.prove_some() {}
        assert_eq!(self.arena.settle().overlapping, [], "no two rows share bytes");
        let segment = self.arena.segments().into_iter().find(|segment| Some(*segment) != self.open).unwrap();
        for (location, head) in self.arena.rows(segment, 0) {
            let mut key = Vec::new();
            self.arena.row(location).unwrap().copy_key(&mut key);
            let hash = self.arena.hash(head.table, &key);
            let token = &mut self.tokens[Arena::shard_of(hash)];
            if let Some(slot) = self.arena.find_location(token, hash, location) {
                self.arena.remove(token, slot);
                self.arena.sub_live(segment, head.total_bytes);
            }
        }
        assert_eq!(self.arena.live(segment), 0, "live bytes are those of the rows in the index");
        self.arena.recycle(segment);
    }
}

/// What a reader's lookups came to.
#[derive(Default)]
struct Seen {
    reads: u64,
    hits: u64,
    busy: u64,
}

/// Looks one key up, and checks what it finds. `least`: a smaller version was replaced before.
fn look(reader: &Reader, key: u32, least: u64, seen: &mut Seen, room: &mut [Vec<u8>; 2]) {
    let [found, wanted] = room;
    let encoded = key.to_le_bytes();
    seen.reads += 1;
    match reader.lookup(reader.hash(TABLE, &encoded), TABLE, &encoded) {
        Lookup::Miss => {}
        Lookup::Busy => seen.busy += 1,
        Lookup::Hit(row) => {
            let head = *row.head();
            found.clear();
            row.copy_payload(0, head.payload_len, found);
            if !row.is_valid() {
                seen.busy += 1;
                return;
            }
            seen.hits += 1;
            let version = found.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            payload(key, version, wanted);
            assert!(found == wanted, "key {key} version {version}: a torn or foreign row");
            assert!(version >= least, "key {key}: version {version} after {least} was acknowledged");
            assert!(expiries(key).contains(&head.expiry), "key {key}: expiry {}", head.expiry);
        }
    }
}

#[test]
#[ignore = "run by `readers_of_other_processes_see_whole_and_current_rows`"]
fn inside_writer() {
    let folder = PathBuf::from(told("TORTURE_FOLDER").unwrap());
    let life = told("TORTURE_LIFE").unwrap().parse().unwrap();
    Writer::begin(&folder, life).run();
}

#[test]
#[ignore = "run by `readers_of_other_processes_see_whole_and_current_rows`"]
fn inside_reader() {
    let folder = PathBuf::from(told("TORTURE_FOLDER").unwrap());
    let life = told("TORTURE_LIFE").unwrap();
    let reader = loop {
        match Reader::open(&folder.join("arena"), &[getuid().as_raw()]) {
            Ok(reader) => break reader,
            // The writer is about to make it.
            Err(_) => std::thread::yield_now(),
        }
    };
    let acknowledged = File::open(folder.join("acknowledged")).unwrap();
    let count = File::create(folder.join(format!("reads-{life}"))).unwrap();
    let (mut random, mut seen, mut room) = (fastrand::Rng::new(), Seen::default(), [Vec::new(), Vec::new()]);
    loop {
        for _ in 0..BATCH {
            let key = random.u32(..KEYS);
            let mut least = [0; 8];
            if random.u32(..ASKS) == 0 {
                acknowledged.read_exact_at(&mut least, u64::from(key) * 8).unwrap();
            }
            look(&reader, key, u64::from_le_bytes(least), &mut seen, &mut room);
        }
        let words = [seen.reads, seen.hits, seen.busy].map(u64::to_le_bytes).concat();
        count.write_all_at(&words, 0).unwrap();
    }
}

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = place.join(format!("arena-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process with a part in the test, killed in the end.
struct Part {
    child: Child,
}

impl Part {
    fn start(part: &str, folder: &Path, life: u64) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", part])
            .env("TORTURE_FOLDER", folder)
            .env("TORTURE_LIFE", life.to_string())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        Self { child }
    }

    fn assert_alive(&mut self) {
        let status = self.child.try_wait().unwrap();
        assert!(status.is_none(), "a process ended by itself: {status:?}; its complaint stands above");
    }

    /// Stops it at whatever instruction it is, and lets it go on later.
    fn hold(&self, milliseconds: u64) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::STOP).unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        kill_process(pid, Signal::CONT).unwrap();
    }

    fn kill(&mut self) {
        self.assert_alive();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What all readers of a folder have counted: reads, hits, busy.
fn counted(folder: &Path) -> [u64; 3] {
    let mut sums = [0; 3];
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_string_lossy().starts_with("reads-") {
            let bytes = fs::read(entry.path()).unwrap();
            for (sum, word) in sums.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *sum += u64::from_le_bytes(*word);
            }
        }
    }
    sums
}

/// Lookups of rows that are not there say little: a slow machine's readers may be ahead of its writer.
fn enough([reads, hits, _]: [u64; 3], wanted: u64) -> bool {
    assert!(reads < wanted * READS_MAX, "hardly a key is there: {hits} of {reads} lookups hit");
    reads >= wanted && hits >= wanted / 8
}

/// One arena's life. Gives back reads, hits, busy, and how many processes were killed.
fn torture(round: u64, reads: u64, random: &mut fastrand::Rng) -> ([u64; 3], u64) {
    let folder = Folder::new(&format!("torture-{round}"));
    File::create(folder.0.join("acknowledged")).unwrap().set_len(u64::from(KEYS) * 8).unwrap();
    let mut life = 1;
    let mut writer = Part::start("inside_writer", &folder.0, life);
    let mut readers: Vec<Part> = (0..READERS)
        .map(|_| {
            life += 1;
            Part::start("inside_reader", &folder.0, life)
        })
        .collect();
    let mut kills = 0;
    while !enough(counted(&folder.0), reads) {
        // What is paced here is how often something happens to the others, not what they do.
        std::thread::sleep(Duration::from_millis(random.u64(2..60)));
        life += 1;
        let reader = random.usize(..READERS);
        match random.u8(..8) {
            0..3 => writer.hold(random.u64(1..STANDSTILL)),
            3..5 => {
                writer.kill();
                writer = Part::start("inside_writer", &folder.0, life);
                kills += 1;
            }
            5..7 => readers[reader].hold(random.u64(1..STANDSTILL)),
            _ => {
                readers[reader].kill();
                readers[reader] = Part::start("inside_reader", &folder.0, life);
                kills += 1;
            }
        }
        for part in readers.iter_mut().chain([&mut writer]) {
            part.assert_alive();
        }
    }
    writer.kill();
    readers.iter_mut().for_each(Part::kill);
    (counted(&folder.0), kills)
}

#[test]
fn readers_of_other_processes_see_whole_and_current_rows() {
    let seed = told("SEED").and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    let reads: u64 = told("READS").and_then(|reads| reads.parse().ok()).unwrap_or(READS);
    println!("SEED={seed} READS={reads}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut sums, mut kills) = ([0; 3], 0);
    for round in 0..ARENAS {
        let (counts, killed) = torture(round, reads.div_ceil(ARENAS), &mut random);
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        kills += killed;
        println!(
            "arena {round}: {} reads, {} hits, {} busy, {killed} killed",
            counts[0], counts[1], counts[2]
        );
    }
    let [reads, hits, busy] = sums;
    println!("{reads} reads, {hits} hits, {busy} busy, {kills} processes killed; none torn, none too old");
}

/// Lookups of the run in CI over a file whose words are flipped meanwhile.
const HOSTILE_READS: u64 = 3_000_000;
/// The words of the superblock that bound all others: units used, overflow buckets committed, the index word. Readers
/// believe them, as they believe who may write the file.
const BOUNDS: [u64; 3] = [19, 20, 32];

/// The words of the pages that the file has.
fn words_with_pages(file: &File) -> Vec<u64> {
    use rustix::fs::{SeekFrom, seek};
    let (mut words, mut at) = (Vec::new(), 0);
    while let Ok(data) = seek(file, SeekFrom::Data(at)) {
        at = seek(file, SeekFrom::Hole(data)).unwrap();
        words.extend(data / 8..at / 8);
    }
    words
}

/// Flips words of a file until told to stop.
fn vandalise(file: &File, words: &[u64], bounds: bool, enough: &AtomicBool, random: &mut fastrand::Rng) {
    let load = |word: u64| {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, word * 8).unwrap();
        u64::from_le_bytes(bytes)
    };
    while !enough.load(Ordering::Relaxed) {
        let word = words[random.usize(..words.len())];
        // Half of them where one word says most: superblock, headers, buckets.
        let word = if random.bool() { word } else { words[random.usize(..words.len() / 4)] };
        if !bounds && BOUNDS.contains(&word) {
            continue;
        }
        let value = match random.u8(..4) {
            0 => random.u64(..),
            1 => load(words[random.usize(..words.len())]),
            2 => load(word).wrapping_add(random.u64(..64)).wrapping_sub(32),
            _ => load(word) ^ (1 << random.u32(..64)),
        };
        file.write_all_at(&value.to_le_bytes(), word * 8).unwrap();
    }
}

/// Reads an arena that somebody damages all the while. Whatever it finds, it comes to an end, within the file's pages.
fn read_hostile(bounds: bool, seed: u64) {
    let folder = Folder::new(if bounds { "hostile-bounds" } else { "hostile" });
    let path = folder.0.join("arena");
    let mut writer = {
        File::create(folder.0.join("acknowledged")).unwrap();
        Writer::begin(&folder.0, 1)
    };
    for key in 0..KEYS {
        writer.version += 1;
        writer.put(key);
        while let Some(shard) = writer.arena.split_due() {
            assert!(writer.arena.split(&mut writer.tokens[shard]));
        }
    }
    let reader = Reader::open(&path, &[getuid().as_raw()]).unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let words = words_with_pages(&file);
    let before = file.metadata().unwrap().blocks();
    let enough = AtomicBool::new(false);
    let answered = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let mut random = fastrand::Rng::with_seed(seed);
        let (file, words, enough) = (&file, &words, &enough);
        scope.spawn(move || vandalise(file, words, bounds, enough, &mut random));
        let (mut random, mut out) = (fastrand::Rng::with_seed(!seed), Vec::new());
        for _ in 0..HOSTILE_READS / 2 {
            let key = random.u32(..KEYS).to_le_bytes();
            if let Lookup::Hit(row) = reader.lookup(reader.hash(TABLE, &key), TABLE, &key) {
                out.clear();
                // A length that lies is bounded by the segment; a copy of it by what a client takes.
                row.copy_payload(0, row.head().payload_len.min(1 << 16), &mut out);
                answered.fetch_add(u64::from(row.is_valid()), Ordering::Relaxed);
            }
        }
        enough.store(true, Ordering::Relaxed);
    });
    println!("{} of {} reads were answered", answered.into_inner(), HOSTILE_READS / 2);
    if !bounds {
        let after = file.metadata().unwrap().blocks();
        assert_eq!(after, before, "reading took pages that the arena had not");
    }
}

#[test]
fn a_hostile_arena_neither_crashes_nor_holds_a_reader() {
    let seed = told("SEED").and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("SEED={seed}");
    read_hostile(false, seed);
    read_hostile(true, seed);
}
