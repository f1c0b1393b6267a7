//! Recovery: a file that another process left is proved word by word, repaired, and served.
//!
//! Nothing in the file is trusted. The superblock must bear its check, and every number is bounded before it is
//! followed. What must be so before the first row is served is done here, and takes milliseconds: segment headers,
//! definitions, the index's bounds, commits that were decided. Behind the start the links between buckets are mended
//! (`chains.rs`), rows are proved (`proof.rs`), and their segments settled when all of them are (`segments.rs`).

pub(crate) mod chains;
pub(crate) mod proof;
pub(crate) mod segments;
pub(crate) mod shared_file;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::file::constants::{Reason, prove_constants};
use crate::file::map::Map;
use crate::file::superblock::{is_at, lock, no_space, system, unmapped};
use crate::index::{bucket_of, shape};
use crate::layout::{
    BUCKET_BYTES, CATALOGUE_HALF_BYTES, FIRST_LEVEL, INDEX_STEP_BYTES, LOCATION_MASK, Location, PAGE_BYTES,
    SEGMENT_HEADER_BYTES, STATE_READY, SegmentId, SlotId, TABLE_LINE_BYTES, UNIT_BYTES, UNIT_WORDS,
    slot_prefix, word,
};
use crate::limits::STAMP_LIMIT;
use crate::limits::{MAX_SEGMENT_UNITS, MAX_TABLES};
use crate::recovery::chains::Mending;
use crate::recovery::shared_file::{Role, SharedFile};
use crate::row::MIN_ROW_BYTES;
use crate::segments::kind::{Kind, UNIT_FREE, UNIT_HEAD, UNIT_TAIL};
use crate::{Arena, ArenaError, Geometry, RedoEntry};

/// What [`Arena::attach`] found.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one, for a moment, at start-up")]
pub enum Attach {
    /// A usable arena, whose rows are still to be proved: a chain of buckets is when it is first used, and all of them
    /// by [`Arena::prove`] and [`Arena::settle`], or [`Arena::recover`].
    Warm(Arena),
    /// The file cannot be used. Where it is for what it holds, the caller logs why, removes it and creates another.
    Unusable(Unusable),
}

/// A file that cannot be taken over. Nobody else takes it while this lives: two starts at once may find the same file,
/// and who removes it by its path alone may remove what the other one has put there since.
#[derive(Debug)]
pub struct Unusable {
    /// Why.
    pub reason: String,
    /// What the system refused, if nothing is wrong with the file: another start may be granted it, and find all rows.
    pub refused: Option<ArenaError>,
    /// The locked file, which is still at its path; none if it is nothing that can be locked.
    lock: Option<OwnedFd>,
}

impl Unusable {
    fn new(reason: impl Into<Reason>, lock: Option<OwnedFd>) -> Self {
        match reason.into() {
            Reason::Content(reason) => Self { reason, refused: None, lock },
            Reason::Refused(error) => Self { reason: error.to_string(), refused: Some(error), lock },
        }
    }

    /// Removes the file from the path where it was found. What no arena can be in is left where it is, with an error.
    pub fn remove(self, path: &Path) -> Result<(), ArenaError> {
        let Some(_lock) = self.lock else {
            return Err(ArenaError::InTheWay { path: path.to_owned(), reason: self.reason });
        };
        rustix::fs::unlink(path).map_err(|errno| system("unlink", path, errno))
    }
}

/// What recovery found in an arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Rows proved.
    pub rows: u64,
    /// Index slots cleared because what they pointed at was not a row of theirs.
    pub dropped: u64,
    /// Rows of committed transactions that were swapped in.
    pub redone: u64,
}

/// How often a start looks again where the file at a path was replaced while it took the lock. Each time another start
/// has come further, and the one that made the file keeps its lock.
const LOCK_ATTEMPTS: usize = 64;

/// Free units of an extent that are cleared at a start, ten microseconds each, for the sake of its page of 2 MiB.
const FREE_UNITS_KEPT: u32 = 4;

impl Arena {
    /// Opens the arena that another process left, and recovers it.
    pub fn attach(path: &Path, geometry: &Geometry) -> Result<Attach, ArenaError> {
        Self::attach_as(path, geometry, &mut Role::Private(&mut SharedFile::default()))
    }

    pub(crate) fn attach_as(
        path: &Path,
        geometry: &Geometry,
        role: &mut Role<'_>,
    ) -> Result<Attach, ArenaError> {
        match open_own(path)? {
            Ok(file) => Ok(Self::attach_file_as(file, path, geometry, role)),
            Err(unusable) => Ok(Attach::Unusable(unusable)),
        }
    }

    /// Recovers from a file that is already open and locked.
    #[cfg(any(test, feature = "record"))]
    pub(crate) fn attach_file(file: OwnedFd, geometry: &Geometry) -> Attach {
        let role = &mut Role::Private(&mut SharedFile::default());
        Self::attach_file_as(file, Path::new("an image"), geometry, role)
    }

    fn attach_file_as(file: OwnedFd, path: &Path, geometry: &Geometry, role: &mut Role<'_>) -> Attach {
        // A second descriptor of the same lock, for the first goes with the mapping.
        let lock = rustix::io::fcntl_dupfd_cloexec(&file, 0);
        match Self::prepare(file, path, geometry, role) {
            Ok(arena) => Attach::Warm(arena),
            Err(reason) => Attach::Unusable(Unusable::new(reason, lock.ok())),
        }
    }

    /// Recovers from an image of a file.
    #[cfg(any(test, feature = "record"))]
    pub fn attach_image(image: &crate::Image, geometry: &Geometry) -> Attach {
        match image.to_file() {
            Ok(file) => Self::attach_file(file, geometry),
            Err(error) => Attach::Unusable(Unusable::new(error.to_string(), None)),
        }
    }

    fn prepare(file: OwnedFd, path: &Path, geometry: &Geometry, role: &mut Role<'_>) -> Result<Self, Reason> {
        let (layout, seed) = prove_constants(&file, path)?;
        if geometry.memory_bytes == 0 || geometry.memory_bytes > layout.reserve_bytes {
            return Err(format!(
                "it can grow to {} bytes, but {} are requested",
                layout.reserve_bytes, geometry.memory_bytes
            )
            .into());
        }
        let unmapped = |source| unmapped(path, layout.total_bytes, source);
        let map = Map::new(file, layout.total_bytes).map_err(unmapped)?;
        // Whatever lies before the catalogue was committed at creation.
        let front = layout.catalogue * 8;
        map.commit(0, front).map_err(|source| no_space(path, front, source))?;
        if map.load(word::STATE, Ordering::Acquire) != STATE_READY {
            return Err("it was never completed".into());
        }
        if map.load(word::OWNER, Ordering::Relaxed) != role.owner().map_or(0, Self::instance) {
            return Err("it belongs to another arena".into());
        }
        let ceiling = match role {
            Role::Private(_) => map.load(word::STAMP_CEILING, Ordering::Acquire),
            Role::Shared { ceiling, .. } => *ceiling,
        };
        if ceiling == 0 || ceiling >= STAMP_LIMIT {
            return Err("its numbers for versions are used up".into());
        }
        let mut arena =
            Self::with_map(map, layout, geometry, seed, ceiling, role.owner()).map_err(unmapped)?;
        Work { arena: &mut arena, path, role, ceiling, units_used: 0, key: Vec::new() }.run()?;
        Ok(arena)
    }
}

/// Opens a file of this user's and takes its lock; or why it cannot be one. The file that is returned is the one at the
/// path, and stays it while it is locked: nobody removes or replaces a file without its lock.
pub(crate) fn open_own(path: &Path) -> Result<Result<OwnedFd, Unusable>, ArenaError> {
    for _ in 0..LOCK_ATTEMPTS {
        if let Some(locked) = lock_own(open_at(path)?, path)? {
            return Ok(locked);
        }
    }
    Err(ArenaError::Locked(path.to_owned()))
}

pub(crate) fn open_at(path: &Path) -> Result<OwnedFd, ArenaError> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::NOENT => ArenaError::NotFound(path.to_owned()),
        errno => system("open", path, errno),
    })
}

/// Takes the lock of an open file. `None`: the path leads to another one by now, which is to be opened.
pub(crate) fn lock_own(file: OwnedFd, path: &Path) -> Result<Option<Result<OwnedFd, Unusable>>, ArenaError> {
    let stat = rustix::fs::fstat(&file).map_err(|errno| system("fstat", path, errno))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(Some(Err(Unusable::new("it is not a regular file", None))));
    }
    lock(&file, path)?;
    if !is_at(&file, path)? {
        return Ok(None);
    }
    // Whoever else owns the file could change it under us, or have made it to be believed.
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Ok(Some(Err(Unusable::new("it belongs to another user", Some(file)))));
    }
    Ok(Some(Ok(file)))
}

/// What is done before the first row is served.
struct Work<'a, 'r> {
    arena: &'a mut Arena,
    path: &'a Path,
    role: &'a mut Role<'r>,
    /// Every stamp ever issued is smaller.
    ceiling: u64,
    units_used: u32,
    /// Room for a key or a row to be checked.
    key: Vec<u8>,
}

impl Work<'_, '_> {
    fn run(&mut self) -> Result<(), Reason> {
        self.adopt_segments()?;
        self.arena.proof.expect(self.ceiling, self.units_used);
        self.prove_tables()?;
        let buckets = self.adopt_index()?;
        self.finish_split();
        self.finish_commits()?;
        let arena = &mut *self.arena;
        let total = arena.layout.total_bytes;
        arena.proof.begin(buckets).map_err(|source| unmapped(self.path, total, source))?;
        arena.load_checkpoints(self.ceiling);
        arena.map.store(word::PID, u64::from(std::process::id()), Ordering::Relaxed);
        Ok(())
    }

    /// Reads the segment headers; a run counts if its head and all its tails agree.
    fn adopt_segments(&mut self) -> Result<(), Reason> {
        let arena = &*self.arena;
        let used = arena.map.load(word::UNITS_USED, Ordering::Acquire);
        if used > u64::from(arena.layout.max_units) {
            return Err("it has more segments than fit".into());
        }
        self.units_used = used as u32;
        let mut pool = arena.segments.pool.lock();
        if !pool.commit_headers(&arena.map, &arena.layout, self.units_used) {
            let bytes = u64::from(self.units_used) * (8 + SEGMENT_HEADER_BYTES);
            return Err(ArenaError::NoSpace { path: self.path.to_owned(), bytes }.into());
        }
        let mut adopted = arena.proof.adopted.lock();
        let (mut unit, mut last_order) = (0, 0);
        while unit < self.units_used {
            let [kind_word, schema, order] = arena.stored_header(unit);
            let kind = Kind::of(kind_word);
            if !self.is_run(unit, kind) {
                if kind_word != UNIT_FREE {
                    arena.clear_stored_header(unit);
                }
                unit += 1;
                continue;
            }
            // An order beyond all counting is a damaged one; such a segment counts as the oldest.
            let order = if order < STAMP_LIMIT { order } else { 0 };
            last_order = last_order.max(order);
            arena.adopt_segment(unit, kind, schema, order);
            pool.adopt(unit, kind.units);
            adopted.push(SegmentId(unit));
            unit += kind.units;
        }
        pool.set_next_order(last_order + 1);
        drop(pool);
        self.settle_pages(&adopted)
    }

    /// Segments have pages, whatever the file says; free units may have some that nobody counts: these are given back.
    /// But where little of an extent is free and the limit has room, the free units are cleared instead, for a page of
    /// 2 MiB that loses a piece is one no more.
    fn settle_pages(&self, adopted: &[SegmentId]) -> Result<(), Reason> {
        let arena = &*self.arena;
        let used = joined(adopted.iter().map(|segment| (segment.0, segment.0 + arena.units(*segment))));
        let mut pool = arena.segments.pool.lock();
        let room = pool.budget.limit().saturating_sub(pool.budget.committed());
        let mut kept = pool.gaps(FREE_UNITS_KEPT, room);
        // Where the file system is full those without pages stay so: no reason not to serve the rows.
        kept.retain(|&(first, end)| self.commit(first, end).is_ok());
        for &(first, end) in &kept {
            let words = arena.layout.segments + u64::from(first) * UNIT_WORDS;
            for word in words..words + u64::from(end - first) * UNIT_WORDS {
                arena.map.store(word, 0, Ordering::Relaxed);
            }
            pool.adopt_pages(first, end - first);
        }
        let mut all = [used, kept].concat();
        all.sort_unstable();
        let mut free_from = 0;
        for (first, end) in joined(all.into_iter()) {
            self.punch(free_from, first);
            self.commit(first, end)?;
            free_from = end;
        }
        self.punch(free_from, arena.layout.max_units);
        Ok(())
    }

    fn commit(&self, from: u32, to: u32) -> Result<(), Reason> {
        let bytes = u64::from(to - from) * UNIT_BYTES as u64;
        let committed = self.arena.map.commit_holes(unit_byte(self.arena, from), bytes);
        committed.map_err(|source| no_space(self.path, bytes, source).into())
    }

    fn punch(&self, from: u32, to: u32) {
        if from < to {
            let bytes = u64::from(to - from) * UNIT_BYTES as u64;
            // Pages that stay are found by the sweep, so they are no reason not to serve the rows.
            let _swept_later = self.arena.map.punch(unit_byte(self.arena, from), bytes);
        }
    }

    fn is_run(&self, unit: u32, kind: Kind) -> bool {
        kind.state == UNIT_HEAD
            && kind.units > 0
            && kind.units <= (self.units_used - unit).min(MAX_SEGMENT_UNITS)
            && kind.has_queue()
            && (1..kind.units).all(|distance| {
                let tail = Kind::of(self.arena.stored_header(unit + distance)[0]);
                tail.state == UNIT_TAIL && tail.units == distance
            })
    }

    /// Definitions must be whole; a table cannot be dead beyond the stamps ever issued.
    fn prove_tables(&self) -> Result<(), Reason> {
        let arena = &*self.arena;
        let root = arena.map.load(word::CATALOGUE, Ordering::Acquire);
        if root != 0 {
            let half = arena.catalogue_half(root);
            let commit = |bytes: u64| {
                let committed = arena.map.commit(half * 8, bytes);
                committed.map_err(|source| no_space(self.path, bytes, source))
            };
            // No more than it fills: its length first. One beyond its place is refused below.
            commit(PAGE_BYTES)?;
            let length = arena.map.load(half, Ordering::Relaxed);
            commit(length.saturating_add(16).min(CATALOGUE_HALF_BYTES))?;
        }
        arena.read_catalogue()?;
        for table in 0..MAX_TABLES as u64 {
            let at = arena.layout.tables + table * (TABLE_LINE_BYTES / 8);
            if arena.map.load(at, Ordering::Relaxed) > self.ceiling {
                // Everything in it counts as invalidated: forgetting is allowed, undoing a flush is not.
                arena.map.store(at, self.ceiling, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Bounds the index, and gives it pages where it has none; how many buckets there are. Its chains are mended one by
    /// one, each before it is walked, so until the last one is, new overflow buckets are taken from behind those that
    /// were there.
    fn adopt_index(&mut self) -> Result<u64, Reason> {
        let (buckets, overflow) = self.bound_index()?;
        let arena = &mut *self.arena;
        let main = buckets.next_multiple_of(INDEX_STEP_BYTES / BUCKET_BYTES).min(arena.layout.max_buckets);
        for (first, count) in [(0, main), (arena.layout.max_buckets, overflow)] {
            if count > 0 {
                let committed = arena.map.commit_holes(arena.bucket_word(first) * 8, count * BUCKET_BYTES);
                committed.map_err(|source| no_space(self.path, count * BUCKET_BYTES, source))?;
            }
        }
        arena.mending = Mending::new(buckets, overflow);
        let state = arena.buckets.get_mut();
        state.main_committed = main;
        state.overflow_committed = overflow;
        state.overflow_used = overflow;
        Ok(buckets)
    }

    /// Main buckets and committed overflow buckets, if the rows that fit the segments can have made so many.
    fn bound_index(&self) -> Result<(u64, u64), Reason> {
        let arena = &*self.arena;
        let index_word = arena.index_word();
        let (level, split) = shape(index_word);
        // A bucket splits only when the index is full of rows.
        let rows_at_most = u64::from(self.units_used) * (UNIT_BYTES as u64 / MIN_ROW_BYTES);
        let buckets_at_most = ((2 << FIRST_LEVEL) + rows_at_most / 5).min(arena.layout.max_buckets);
        if index_word >> 62 != 0 || !(FIRST_LEVEL..40).contains(&level) || split >= 1 << level {
            return Err("its index is not valid".into());
        }
        let buckets = (1u64 << level) + split;
        let overflow = arena.map.load(word::OVERFLOW_COMMITTED, Ordering::Acquire);
        let overflow_at_most =
            (buckets_at_most + INDEX_STEP_BYTES / BUCKET_BYTES).min(arena.layout.max_overflow);
        if buckets > buckets_at_most || overflow > overflow_at_most {
            return Err("its index is larger than its rows allow".into());
        }
        Ok((buckets, overflow))
    }

    /// Clears what the last split may have left in the bucket that it split, while nobody can have changed the other.
    fn finish_split(&mut self) {
        let (level, split) = shape(self.arena.index_word());
        let last = split.checked_sub(1).unwrap_or((1 << (level - 1)) - 1);
        self.arena.check_chain(last, &mut self.key);
    }

    fn finish_entries(&mut self, entries: &[RedoEntry]) {
        for entry in entries {
            let chain = bucket_of(self.arena.index_word(), entry.hash);
            self.arena.check_chain(chain, &mut self.key);
            self.redo(entry);
        }
    }

    /// Swaps in what committed transactions had not swapped in yet.
    fn finish_commits(&mut self) -> Result<(), Reason> {
        if let Role::Shared { redo, .. } = self.role {
            let entries = std::mem::take(redo);
            self.finish_entries(&entries);
            return Ok(());
        }
        let entries = self.arena.unfinished_commits(self.units_used)?;
        let (shared, own): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.table.is_shared());
        self.finish_entries(&own);
        if let Role::Private(file) = self.role {
            file.recover(self.arena, self.ceiling, shared);
            if file.has_failed() {
                return Err("its shared arena cannot be opened".into());
            }
        }
        // Only now: until both arenas have their rows, the record stands for the next try.
        self.arena.clear_commits();
        Ok(())
    }

    fn redo(&mut self, entry: &RedoEntry) {
        let arena = &*self.arena;
        let mut token = crate::ShardToken { shard: Arena::shard_of(entry.hash) as u16 };
        let new = entry.new.and_then(|new| Some((new, arena.prove_row(new, &mut self.key)?)));
        let new = new.filter(|(_, (hash, head))| *hash == entry.hash && head.table == entry.table);
        let Some((location, (hash, head))) = new else {
            // A deletion; or a new version that is damaged, and then serving the old one would undo the commit.
            count(&arena.proof.dropped, entry.new.is_some());
            if let Some(slot) = self.find_old(entry) {
                self.arena.clear_slot(slot, false);
                count(&self.arena.proof.redone, true);
            }
            return;
        };
        let mut key = Vec::new();
        arena.append_key(location, &head, &mut key);
        let done = match arena.find(&token, hash, entry.table, &key) {
            Some(found) if found.location == location => return,
            Some(found) => {
                arena.replace(&mut token, found.slot, hash, entry.table, location);
                true
            }
            None => arena.insert(&mut token, hash, entry.table, location).is_ok(),
        };
        count(&arena.proof.redone, done);
        count(&arena.proof.dropped, !done);
    }

    /// The slot of the version that a redo entry replaces, wherever the cleaner moved that version.
    fn find_old(&mut self, entry: &RedoEntry) -> Option<SlotId> {
        let arena = &*self.arena;
        let prefix = slot_prefix(entry.hash, entry.table);
        let bucket = bucket_of(arena.index_word(), entry.hash);
        let candidates: Vec<(SlotId, u64)> =
            arena.slots(bucket).filter(|(_, value)| *value & !LOCATION_MASK == prefix).collect();
        candidates.into_iter().find_map(|(slot, value)| {
            let location = Location::from_bits(value);
            let (hash, head) = arena.prove_row(location, &mut self.key)?;
            let same = hash == entry.hash && head.stamp == entry.old_stamp;
            (same || entry.old == Some(location)).then_some(slot)
        })
    }
}

/// Runs in the order of their beginnings, those that touch or overlap made one: fewer calls.
fn joined(runs: impl Iterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
    let mut joined: Vec<(u32, u32)> = Vec::new();
    for (from, to) in runs {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

fn unit_byte(arena: &Arena, unit: u32) -> u64 {
    (arena.layout.segments + u64::from(unit) * UNIT_WORDS) * 8
}

fn count(counter: &AtomicU64, happened: bool) {
    counter.fetch_add(u64::from(happened), Ordering::Relaxed);
}
