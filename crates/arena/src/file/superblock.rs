//! The superblock and what hangs on it: creation, stamps, dead rows by table, definitions, heartbeat.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::file::map::Map;
use crate::index::index_word;
use crate::layout::{
    BYTE_ORDER_MARK, CATALOGUE_HALF_BYTES, FIRST_LEVEL, LAYOUT_VERSION, Layout, MAGIC, PAGE_BYTES,
    STATE_READY, STATE_RETIRED, TableId, UNIT_BYTES, word,
};
use crate::limits::MAX_CATALOGUE_BYTES;
use crate::{Arena, ArenaError, CatalogueError, Geometry};

/// Stamps reserved by one store: a crash skips at most so many of 2^48.
const STAMP_RANGE: u64 = 1 << 20;
/// Nobody else may read the private arena.
const PRIVATE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// The file's group may read the shared one.
const SHARED_MODE: Mode = PRIVATE_MODE.union(Mode::RGRP);
/// Units that the smallest arena commits at once.
const FIRST_UNITS: u64 = 32;

/// Where the next stamp comes from. Alone on its line: every write takes one.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Stamps {
    next: AtomicU64,
    ceiling: AtomicU64,
    raise: Mutex<()>,
}

impl Stamps {
    /// Begins at `next`; the first stamp reserves a range.
    pub(crate) fn new(next: u64) -> Self {
        Self { next: AtomicU64::new(next), ceiling: AtomicU64::new(next), raise: Mutex::new(()) }
    }
}

/// Pages for other definitions, and the right to write them.
pub(crate) struct CatalogueRoom<'a> {
    root: u64,
    _guard: MutexGuard<'a, ()>,
}

impl Arena {
    /// Creates an arena in a file of its own, which must not exist; without a path, in anonymous memory.
    ///
    /// The file is sparse: it is as large as the arena may ever grow, and takes memory as it is used.
    pub fn create(path: Option<&Path>, geometry: &Geometry, now_ns: u64) -> Result<Self, ArenaError> {
        Self::create_with(path, geometry, now_ns, None)
    }

    /// Creates the shared arena of an owner whose private one this is, as large as that may grow.
    pub(crate) fn create_shared(path: &Path, owner: &Self, now_ns: u64) -> Result<Self, ArenaError> {
        let geometry = Geometry { memory_bytes: owner.layout.reserve_bytes / 4 };
        Self::create_with(Some(path), &geometry, now_ns, Some(owner))
    }

    fn create_with(
        path: Option<&Path>,
        geometry: &Geometry,
        now_ns: u64,
        owner: Option<&Self>,
    ) -> Result<Self, ArenaError> {
        let layout = Layout::reserve_for(geometry.memory_bytes)
            .and_then(Layout::new)
            .ok_or(ArenaError::Geometry(geometry.memory_bytes))?;
        let shown = path.unwrap_or_else(|| Path::new("anonymous memory"));
        let file = match path {
            Some(path) => create_file(path, if owner.is_some() { SHARED_MODE } else { PRIVATE_MODE })?,
            None => {
                crate::file::map::anonymous_file().map_err(|errno| system("memfd_create", shown, errno))?
            }
        };
        // A second descriptor of the same lock: who removes the file must have it, and the first goes with the mapping.
        let lock = file.try_clone();
        let made = Self::fill_file(file, layout, geometry, now_ns, shown, owner);
        if let (Err(_), Some(path), Ok(_lock)) = (&made, path, lock) {
            // A file without a complete superblock is of no use to anybody; that it stays is no further error.
            let _ = fs::remove_file(path);
        }
        made
    }

    fn fill_file(
        file: OwnedFd,
        layout: Layout,
        geometry: &Geometry,
        now_ns: u64,
        shown: &Path,
        owner: Option<&Self>,
    ) -> Result<Self, ArenaError> {
        if !cfg!(miri) {
            rustix::fs::ftruncate(&file, layout.total_bytes)
                .map_err(|errno| system("ftruncate", shown, errno))?;
        }
        let unmapped = |source| unmapped(shown, layout.total_bytes, source);
        let map = Map::new(file, layout.total_bytes).map_err(unmapped)?;
        let units = FIRST_UNITS.min(geometry.memory_bytes.div_ceil(UNIT_BYTES as u64));
        let first_buckets = crate::layout::BUCKET_BYTES << FIRST_LEVEL;
        for (from, bytes) in [
            (0, layout.catalogue * 8),
            (layout.index * 8, first_buckets),
            (layout.segments * 8, units * UNIT_BYTES as u64),
        ] {
            map.commit(from, bytes).map_err(|source| no_space(shown, bytes, source))?;
        }
        let seed = fastrand::u64(..);
        write_constants(&map, &layout, seed, now_ns, owner);
        map.store(word::PID, u64::from(std::process::id()), Ordering::Relaxed);
        map.store(word::STAMP_CEILING, 1, Ordering::Relaxed);
        map.store(word::INDEX, index_word(FIRST_LEVEL, 0), Ordering::Relaxed);
        map.store(word::HEARTBEAT, now_ns, Ordering::Relaxed);
        // Release: whoever finds the file ready finds all of the above.
        map.store(word::STATE, STATE_READY, Ordering::Release);
        let arena = Self::with_map(map, layout, geometry, seed, 1, owner).map_err(unmapped)?;
        arena.buckets.lock().main_committed = 1 << FIRST_LEVEL;
        arena.segments.pool.lock().adopt_pages(0, units as u32);
        Ok(arena)
    }

    /// Issues the next stamp; it never repeats, not even across a crash.
    #[inline]
    pub fn next_stamp(&self) -> u64 {
        let stamp = self.stamps.next.fetch_add(1, Ordering::Relaxed);
        // Acquire: pairs with the Release in `raise_ceiling`; the range is in the file before a stamp of it is used.
        if stamp >= self.stamps.ceiling.load(Ordering::Acquire) {
            self.raise_ceiling(stamp);
        }
        stamp
    }

    #[cold]
    fn raise_ceiling(&self, stamp: u64) {
        let _guard = self.stamps.raise.lock();
        let ceiling = self.stamps.ceiling.load(Ordering::Relaxed);
        if stamp >= ceiling {
            let ceiling = stamp + STAMP_RANGE;
            self.map.store(word::STAMP_CEILING, ceiling, Ordering::Release);
            self.stamps.ceiling.store(ceiling, Ordering::Release);
        }
    }

    /// The last stamp issued; 0 before the first.
    pub fn last_stamp(&self) -> u64 {
        self.stamps.next.load(Ordering::Acquire) - 1
    }

    /// Raises `dead_below`; a smaller value is ignored, for what is dead stays dead.
    pub fn set_dead_below(&self, table: TableId, stamp: u64) {
        self.raise(self.table_word(table), stamp);
    }

    /// Raises `aged_below`; a smaller value is ignored, for what is dead stays dead.
    pub fn set_aged_below(&self, table: TableId, stamp: u64) {
        self.raise(self.table_word(table) + 1, stamp);
    }

    /// Sets the tick of a flush to come in the place of another; 0: there is none any more.
    pub fn set_flush_at(&self, table: TableId, tick: u32) {
        self.map.store(self.table_word(table) + 2, u64::from(tick), Ordering::Release);
    }

    /// Says that the flush of this tick was carried out, `dead_below` with it.
    pub fn end_flush_at(&self, table: TableId, tick: u32) {
        // What was set in its place meanwhile stays.
        self.map.compare_exchange(self.table_word(table) + 2, u64::from(tick), 0);
    }

    fn raise(&self, at: u64, stamp: u64) {
        let mut now = self.map.load(at, Ordering::Acquire);
        while now < stamp && !self.map.compare_exchange(at, now, stamp) {
            now = self.map.load(at, Ordering::Acquire);
        }
    }

    /// The table definitions, if any were stored.
    pub fn catalogue(&self) -> Option<Vec<u8>> {
        let _guard = self.catalogue_lock.lock();
        self.read_catalogue().ok().flatten()
    }

    /// Replaces the table definitions by one store.
    pub fn set_catalogue(&self, bytes: &[u8]) -> Result<(), CatalogueError> {
        self.ready_catalogue(bytes.len()).map(|ready| self.write_catalogue(&ready, bytes))
    }

    /// Makes room for definitions of so many bytes. Others wait until they are written or given up.
    pub(crate) fn ready_catalogue(&self, bytes: usize) -> Result<CatalogueRoom<'_>, CatalogueError> {
        if bytes > MAX_CATALOGUE_BYTES {
            return Err(CatalogueError::TooLarge(bytes));
        }
        let guard = self.catalogue_lock.lock();
        // Beyond counting it would start at 1, never at 0.
        let root = self.map.load(word::CATALOGUE, Ordering::Relaxed).checked_add(1).unwrap_or(1);
        if !self.commit_beside(self.catalogue_half(root) * 8, 16 + bytes as u64) {
            return Err(CatalogueError::NoSpace);
        }
        Ok(CatalogueRoom { root, _guard: guard })
    }

    /// Writes definitions for which room was made, and puts them in force.
    pub(crate) fn write_catalogue(&self, room: &CatalogueRoom<'_>, bytes: &[u8]) {
        let half = self.catalogue_half(room.root);
        let (whole, tail) = bytes.split_at(bytes.len() & !7);
        self.map.store_bytes(half + 2, whole);
        if !tail.is_empty() {
            self.map.store(
                half + 2 + whole.len() as u64 / 8,
                crate::row::copy::padded(tail),
                Ordering::Relaxed,
            );
        }
        self.map.store(half + 1, u64::from(crc32c::crc32c(bytes)), Ordering::Relaxed);
        self.map.store(half, bytes.len() as u64, Ordering::Relaxed);
        // Release: pairs with the Acquire in `read_catalogue` and `Reader::definitions`; the half is complete behind
        // the root.
        self.map.store(word::CATALOGUE, room.root, Ordering::Release);
    }

    /// Bytes with pages before the generations: superblock, lines of tables, checkpoints, and the halves of the
    /// catalogue, each taken for as long as the one in force.
    pub(crate) fn front_bytes(&self) -> u64 {
        let root = self.map.load(word::CATALOGUE, Ordering::Relaxed);
        let half =
            if root == 0 { 0 } else { 16 + self.map.load(self.catalogue_half(root), Ordering::Relaxed) };
        let halves = root.min(2) * half.min(CATALOGUE_HALF_BYTES).next_multiple_of(PAGE_BYTES);
        self.layout.catalogue * 8 + halves
    }

    /// The random number of this file.
    pub(crate) fn instance(&self) -> u64 {
        self.map.load(word::INSTANCE, Ordering::Relaxed)
    }

    /// Tells readers that nothing in this file counts any more.
    pub fn retire(&self) {
        // Release: pairs with the Acquire in `Reader::is_in_use`.
        self.map.store(word::STATE, STATE_RETIRED, Ordering::Release);
    }

    /// Tells readers that the owner lives. Called once a tick.
    pub fn heartbeat(&self, now_ns: u64) {
        self.segments.pool.lock().pass_tick();
        self.map.store(word::HEARTBEAT, now_ns, Ordering::Release);
    }
}

/// The words that never change, and their check.
fn write_constants(map: &Map, layout: &Layout, seed: u64, now_ns: u64, owner: Option<&Arena>) {
    let boot = boot_id().unwrap_or_default();
    let constants = [
        (word::MAGIC, MAGIC),
        (word::VERSION, LAYOUT_VERSION),
        (word::BYTE_ORDER, BYTE_ORDER_MARK),
        (word::RESERVE, layout.reserve_bytes),
        (word::TOTAL, layout.total_bytes),
        (word::SEED, seed),
        (word::INSTANCE, fastrand::u64(..)),
        (word::BOOT, boot[0]),
        (word::BOOT + 1, boot[1]),
        // Both arenas of an owner count the same ticks.
        (word::EPOCH, owner.map_or(now_ns, |owner| owner.epoch_ns())),
        (word::OWNER, owner.map_or(0, Arena::instance)),
    ];
    for (at, value) in constants {
        map.store(at, value, Ordering::Relaxed);
    }
    map.store(word::CHECK, constants_check(|at| map.load(at, Ordering::Relaxed)), Ordering::Relaxed);
}

/// The check over the words that never change.
pub(crate) fn constants_check(load: impl Fn(u64) -> u64) -> u64 {
    u64::from((0..word::CHECK).fold(0, |crc, at| crc32c::crc32c_append(crc, &load(at).to_le_bytes())))
}

/// The identity of this boot of the machine: monotonic time means nothing across two of them.
pub(crate) fn boot_id() -> Option<[u64; 2]> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let number = u128::from_str_radix(&digits, 16).ok()?;
    Some([(number >> 64) as u64, number as u64])
}

fn create_file(path: &Path, mode: Mode) -> Result<OwnedFd, ArenaError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, PRIVATE_MODE).map_err(|errno| match errno {
        Errno::EXIST => ArenaError::Exists(path.to_owned()),
        errno => system("open", path, errno),
    })?;
    // Whatever the umask says, it is what the documentation says.
    rustix::fs::fchmod(&file, mode).map_err(|errno| system("fchmod", path, errno))?;
    lock(&file, path)?;
    // Another start may have met the empty file before it was locked, and have put its own there.
    if !is_at(&file, path)? {
        return Err(ArenaError::Locked(path.to_owned()));
    }
    Ok(file)
}

/// Takes the lock that says who owns the arena; the kernel drops it with the process.
pub(crate) fn lock(file: &OwnedFd, path: &Path) -> Result<(), ArenaError> {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| match errno {
        Errno::WOULDBLOCK => ArenaError::Locked(path.to_owned()),
        errno => system("flock", path, errno),
    })
}

pub(crate) fn system(call: &'static str, path: &Path, errno: Errno) -> ArenaError {
    ArenaError::Io { call, path: path.to_owned(), source: errno.into() }
}

pub(crate) fn unmapped(path: &Path, bytes: u64, source: std::io::Error) -> ArenaError {
    ArenaError::Unmapped { path: path.to_owned(), bytes, source }
}

pub(crate) fn no_space(path: &Path, bytes: u64, source: std::io::Error) -> ArenaError {
    if source.kind() == std::io::ErrorKind::StorageFull {
        ArenaError::NoSpace { path: path.to_owned(), bytes }
    } else {
        ArenaError::Io { call: "fallocate", path: path.to_owned(), source }
    }
}

/// Whether a path leads to an open file. While its lock was awaited, another start may have put a new file there.
pub(crate) fn is_at(file: &OwnedFd, path: &Path) -> Result<bool, ArenaError> {
    let own = rustix::fs::fstat(file).map_err(|errno| system("fstat", path, errno))?;
    match rustix::fs::lstat(path) {
        Ok(there) => Ok((there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(system("lstat", path, errno)),
    }
}
