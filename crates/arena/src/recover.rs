//! Recovery: a file that another process left is proved word by word, repaired, and served.
//!
//! Nothing in the file is trusted. The superblock must bear its check; every number is bounded before it is
//! followed; a row counts only if its slot, its segment's header, its own header, its check and its key's hash
//! agree. The walk goes by the index, not by the segments: what no slot points at is not a row.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::index::{bucket_of, header, overflow_link, shape, version};
use crate::layout::{
    BUCKET_BYTES, BYTE_ORDER_MARK, FIRST_LEVEL, Hash, INDEX_STEP_BYTES, LAYOUT_VERSION, LOCATION_MASK,
    Layout, Location, MAGIC, MAX_CHAIN, MAX_KEY_BYTES, MAX_TABLES, STATE_READY, SUPERBLOCK_BYTES, SegmentId,
    SlotId, TABLE_LINE_BYTES, UNIT_BYTES, UNIT_WORDS, slot_prefix, word,
};
use crate::map::Map;
use crate::row::{Check, FLAG_CAS, FLAG_CLIENT, FLAG_LONG, RowHead, has_check, optional_words};
use crate::segments::{Kind, UNIT_FREE, UNIT_HEAD, UNIT_TAIL};
use crate::superblock::{STAMP_LIMIT, boot_id, constants_check, lock, system};
use crate::{Arena, ArenaError, Geometry, RedoEntry};

/// The smallest row: two header words.
const MIN_ROW_BYTES: u64 = 16;

/// What [`Arena::attach`] found.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one, for a moment, at start-up")]
pub enum Attach {
    /// A usable arena and what recovery did.
    Warm(Arena, Recovery),
    /// The file cannot be used, and why. The caller logs, unlinks and creates.
    Unusable(String),
}

/// What recovery found in an arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Rows kept.
    pub rows: u64,
    /// Index slots cleared because what they pointed at was not a row of theirs.
    pub dropped: u64,
    /// Rows of committed transactions that were swapped in.
    pub redone: u64,
}

/// Why a file is unusable.
type Reason = String;

impl Arena {
    /// Opens the arena that another process left, and recovers it.
    pub fn attach(path: &Path, geometry: &Geometry) -> Result<Attach, ArenaError> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::NOENT => ArenaError::NotFound(path.to_owned()),
            errno => system("open", path, errno),
        })?;
        let stat = rustix::fs::fstat(&file).map_err(|errno| system("fstat", path, errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(Attach::Unusable("it is not a regular file".into()));
        }
        // Whoever else owns the file could change it under us, or have made it to be believed.
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Ok(Attach::Unusable("it belongs to another user".into()));
        }
        lock(&file, path)?;
        Ok(Self::attach_file(file, geometry))
    }

    /// Recovers from a file that is already open and locked.
    pub(crate) fn attach_file(file: OwnedFd, geometry: &Geometry) -> Attach {
        match Self::prove(file, geometry) {
            Ok((arena, recovery)) => Attach::Warm(arena, recovery),
            Err(reason) => Attach::Unusable(reason),
        }
    }

    /// Recovers from an image of a file.
    #[cfg(any(test, feature = "record"))]
    pub fn attach_image(image: &crate::Image, geometry: &Geometry) -> Attach {
        match image.to_file() {
            Ok(file) => Self::attach_file(file, geometry),
            Err(error) => Attach::Unusable(error.to_string()),
        }
    }

    fn prove(file: OwnedFd, geometry: &Geometry) -> Result<(Self, Recovery), Reason> {
        let (layout, seed) = prove_constants(&file)?;
        if geometry.memory_bytes == 0 || geometry.memory_bytes > layout.reserve_bytes {
            return Err(format!(
                "it can grow to {} bytes, and {} are asked for",
                layout.reserve_bytes, geometry.memory_bytes
            ));
        }
        let map = Map::new(file, layout.total_bytes).map_err(|error| format!("mmap: {error}"))?;
        // Whatever lies before the catalogue was committed at creation.
        map.commit(0, layout.catalogue * 8).map_err(|error| format!("fallocate: {error}"))?;
        if map.load(word::STATE, Ordering::Acquire) != STATE_READY {
            return Err("it was never completed".into());
        }
        let ceiling = map.load(word::STAMP_CEILING, Ordering::Acquire);
        if ceiling == 0 || ceiling >= STAMP_LIMIT {
            return Err("its stamps are used up".into());
        }
        let arena =
            Self::with_map(map, layout, geometry, seed, ceiling).map_err(|error| format!("mmap: {error}"))?;
        let mut work = Work {
            arena: &arena,
            ceiling,
            units_used: 0,
            recovery: Recovery::default(),
            strays: Vec::new(),
            key: Vec::new(),
        };
        work.run()?;
        let recovery = work.recovery;
        Ok((arena, recovery))
    }
}

/// Proves the words that never change, before anything is mapped; yields layout and seed.
pub(crate) fn prove_constants(file: &OwnedFd) -> Result<(Layout, u64), Reason> {
    let mut bytes = vec![0; SUPERBLOCK_BYTES as usize];
    let mut read = 0;
    while read < bytes.len() {
        match rustix::io::pread(file, &mut bytes[read..], read as u64) {
            Ok(0) => return Err("it is shorter than a superblock".into()),
            Ok(n) => read += n,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(format!("read: {errno}")),
        }
    }
    let words = bytes.as_chunks::<8>().0;
    let load = |at: u64| u64::from_le_bytes(words[at as usize]);
    if load(word::MAGIC) != MAGIC || load(word::BYTE_ORDER) != BYTE_ORDER_MARK {
        return Err("it is not an arena".into());
    }
    if load(word::VERSION) != LAYOUT_VERSION {
        return Err(format!("its layout is version {}, this is {LAYOUT_VERSION}", load(word::VERSION)));
    }
    if load(word::CHECK) != constants_check(load) {
        return Err("its superblock does not bear its check".into());
    }
    let boot = boot_id().ok_or("this boot of the machine has no identity")?;
    if [load(word::BOOT), load(word::BOOT + 1)] != boot {
        return Err("it is from before the machine was restarted".into());
    }
    let layout = Layout::new(load(word::RESERVE)).ok_or("its size is none")?;
    let stat = rustix::fs::fstat(file).map_err(|errno| format!("fstat: {errno}"))?;
    if load(word::TOTAL) != layout.total_bytes || u64::try_from(stat.st_size) != Ok(layout.total_bytes) {
        return Err("its length is not that of its layout".into());
    }
    Ok((layout, load(word::SEED)))
}

/// One recovery in progress.
struct Work<'a> {
    arena: &'a Arena,
    /// Every stamp ever issued is smaller.
    ceiling: u64,
    units_used: u32,
    recovery: Recovery,
    /// Rows met in a bucket that is not theirs.
    strays: Vec<(Hash, Location)>,
    /// Room for a key or a row to be checked.
    key: Vec<u8>,
}

impl Work<'_> {
    fn run(&mut self) -> Result<(), Reason> {
        self.adopt_segments()?;
        self.prove_tables()?;
        self.walk_index()?;
        self.finish_commits()?;
        let starts = self.row_starts();
        self.settle_segments(&starts);
        let arena = self.arena;
        arena.load_checkpoints(self.ceiling);
        arena.map.store(word::PID, u64::from(std::process::id()), Ordering::Relaxed);
        Ok(())
    }

    /// Reads the segment headers; a run counts if its head and all its tails agree.
    fn adopt_segments(&mut self) -> Result<(), Reason> {
        let arena = self.arena;
        let used = arena.map.load(word::UNITS_USED, Ordering::Acquire);
        if used > u64::from(arena.layout.max_units) {
            return Err("it claims more segments than fit".into());
        }
        self.units_used = used as u32;
        let mut pool = arena.segments.pool.lock();
        if !pool.commit_headers(&arena.map, &arena.layout, self.units_used) {
            return Err("no space for segment headers".into());
        }
        let (mut unit, mut last_order, mut free_from) = (0, 0, 0);
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
            let byte = (arena.layout.segments + u64::from(unit) * UNIT_WORDS) * 8;
            let bytes = u64::from(kind.units) * UNIT_BYTES as u64;
            arena.map.commit(byte, bytes).map_err(|error| format!("fallocate: {error}"))?;
            self.punch(free_from, unit)?;
            // An order beyond all counting is a damaged one; such a segment counts as the oldest.
            let order = if order < STAMP_LIMIT { order } else { 0 };
            last_order = last_order.max(order);
            arena.adopt_segment(unit, kind, schema, order);
            pool.adopt(unit, kind.units);
            unit += kind.units;
            free_from = unit;
        }
        // Free units may have pages that nobody counts: give them back.
        self.punch(free_from, arena.layout.max_units)?;
        pool.set_next_order(last_order + 1);
        Ok(())
    }

    fn punch(&self, from: u32, to: u32) -> Result<(), Reason> {
        if from >= to {
            return Ok(());
        }
        let byte = (self.arena.layout.segments + u64::from(from) * UNIT_WORDS) * 8;
        let bytes = u64::from(to - from) * UNIT_BYTES as u64;
        self.arena.map.punch(byte, bytes).map_err(|error| format!("fallocate: {error}"))
    }

    fn is_run(&self, unit: u32, kind: Kind) -> bool {
        kind.state == UNIT_HEAD
            && kind.units > 0
            && kind.units <= self.units_used - unit
            && kind.has_queue()
            && (1..kind.units).all(|distance| {
                let tail = Kind::of(self.arena.stored_header(unit + distance)[0]);
                tail.state == UNIT_TAIL && tail.units == distance
            })
    }

    /// Definitions must be whole; a table cannot be dead beyond the stamps ever issued.
    fn prove_tables(&self) -> Result<(), Reason> {
        let arena = self.arena;
        let root = arena.map.load(word::CATALOGUE, Ordering::Acquire);
        if root != 0 {
            let half = arena.catalogue_half(root);
            arena
                .map
                .commit(half * 8, crate::layout::CATALOGUE_HALF_BYTES)
                .map_err(|error| format!("fallocate: {error}"))?;
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

    /// Proves every slot of every chain, mends links and versions, and rebuilds the lists of free buckets.
    fn walk_index(&mut self) -> Result<(), Reason> {
        let arena = self.arena;
        let index_word = arena.index_word();
        let (level, split) = shape(index_word);
        // A bucket splits only when the index is full of rows, so rows that fit the segments bound the buckets.
        let rows_at_most = u64::from(self.units_used) * (UNIT_BYTES as u64 / MIN_ROW_BYTES);
        let buckets_at_most = ((2 << FIRST_LEVEL) + rows_at_most / 5).min(arena.layout.max_buckets);
        if index_word >> 62 != 0 || !(FIRST_LEVEL..40).contains(&level) || split >= 1 << level {
            return Err("its index has no shape".into());
        }
        let buckets = (1u64 << level) + split;
        let overflow = arena.map.load(word::OVERFLOW_COMMITTED, Ordering::Acquire);
        let overflow_at_most =
            (buckets_at_most + INDEX_STEP_BYTES / BUCKET_BYTES).min(arena.layout.max_overflow);
        if buckets > buckets_at_most || overflow > overflow_at_most {
            return Err("its index is larger than its rows can be".into());
        }
        let main = buckets.next_multiple_of(INDEX_STEP_BYTES / BUCKET_BYTES).min(arena.layout.max_buckets);
        for (first, count) in [(0, main), (arena.layout.max_buckets, overflow)] {
            if count > 0 {
                arena
                    .map
                    .commit(arena.bucket_word(first) * 8, count * BUCKET_BYTES)
                    .map_err(|error| format!("fallocate: {error}"))?;
            }
        }
        let mut linked = vec![false; overflow as usize];
        for bucket in 0..buckets {
            self.mend_chain(bucket, &mut linked);
            self.prove_chain(bucket, index_word);
        }
        self.recovery.dropped += self.lost_strays(index_word);
        let used = linked.iter().rposition(|linked| *linked).map_or(0, |last| last as u64 + 1);
        let mut state = arena.buckets.lock();
        state.main_committed = main;
        state.overflow_committed = overflow;
        state.overflow_used = used;
        state.overflow_free = (1..=used).filter(|link| !linked[*link as usize - 1]).collect();
        Ok(())
    }

    /// Cuts a chain at a link that is out of bounds, leads into another chain, or makes it too long.
    fn mend_chain(&self, bucket: u64, linked: &mut [bool]) {
        let arena = self.arena;
        let mut at = arena.bucket_word(bucket);
        let first = arena.map.load(at, Ordering::Relaxed);
        if version(first) % 2 == 1 {
            arena.map.store(
                at,
                header((version(first) + 1) & 0xffff_ffff, overflow_link(first)),
                Ordering::Release,
            );
        }
        for place in 1..=MAX_CHAIN {
            let now = arena.map.load(at, Ordering::Relaxed);
            let link = overflow_link(now);
            if link == 0 {
                return;
            }
            match linked.get_mut(link as usize - 1) {
                Some(seen) if !*seen && place < MAX_CHAIN => *seen = true,
                _ => {
                    arena.map.store(at, header(version(now), 0), Ordering::Release);
                    return;
                }
            }
            at = arena.bucket_word(arena.layout.max_buckets + link - 1);
        }
    }

    /// Clears the slots of a chain that do not hold a row of it, and all but the newest of two for one key.
    fn prove_chain(&mut self, bucket: u64, index_word: u64) {
        let arena = self.arena;
        let mut seen: Vec<(SlotId, Hash, Location, u64)> = Vec::new();
        for (slot, value) in arena.slots(bucket) {
            if value == 0 {
                continue;
            }
            let location = Location::from_bits(value);
            let found = self.prove_row(location);
            let found = found.filter(|(hash, head)| slot_prefix(*hash, head.table) == value & !LOCATION_MASK);
            let Some((hash, head)) = found else {
                self.drop_slot(slot);
                continue;
            };
            if bucket_of(index_word, hash) != bucket {
                arena.set_slot(slot, 0);
                self.strays.push((hash, location));
                continue;
            }
            let twin = seen.iter().position(|(_, other_hash, other, _)| {
                *other_hash == hash && (*other == location || self.same_key(*other, location, &head))
            });
            match twin {
                None => seen.push((slot, hash, location, head.stamp)),
                // An entry copied forward and not yet cleared at its old place is no loss.
                Some(twin) if seen[twin].2 == location => arena.set_slot(slot, 0),
                Some(twin) if seen[twin].3 >= head.stamp => self.drop_slot(slot),
                Some(twin) => {
                    self.drop_slot(seen[twin].0);
                    seen[twin] = (slot, hash, location, head.stamp);
                }
            }
        }
    }

    /// Rows met outside their bucket and not in it either. One that is there is what an unfinished split left.
    fn lost_strays(&mut self, index_word: u64) -> u64 {
        let strays = std::mem::take(&mut self.strays);
        let is_lost = |(hash, location): &(Hash, Location)| {
            let mut slots = self.arena.slots(bucket_of(index_word, *hash));
            !slots.any(|(_, value)| value != 0 && value & LOCATION_MASK == location.bits())
        };
        strays.iter().filter(|stray| is_lost(stray)).count() as u64
    }

    fn drop_slot(&mut self, slot: SlotId) {
        self.arena.set_slot(slot, 0);
        self.recovery.dropped += 1;
    }

    fn same_key(&self, other: Location, location: Location, head: &RowHead) -> bool {
        let mut key = Vec::new();
        self.arena.append_key(location, head, &mut key);
        let Some(other_head) = self.arena.parse(other) else { return false };
        self.arena.is_row_of(other, &other_head, head.table, &key)
    }

    /// Proves the row at a location: in a segment for rows, whole, stamped, bearing its check.
    fn prove_row(&mut self, location: Location) -> Option<(Hash, RowHead)> {
        let arena = self.arena;
        if location.unit() >= self.units_used {
            return None;
        }
        let segment = arena.head_of(location);
        // A word beyond the run could lie in pages that were never committed.
        if arena.units(segment) == 0
            || arena.tag(segment).queue == crate::Queue::Redo
            || !arena.fits_run(location, MIN_ROW_BYTES / 8)
        {
            return None;
        }
        let head = self.parse_within(location)?;
        if head.stamp == 0 || head.stamp >= self.ceiling || usize::from(head.table.0) >= MAX_TABLES {
            return None;
        }
        if head.key_len > MAX_KEY_BYTES || !self.bears_check(location, &head) {
            return None;
        }
        self.key.clear();
        arena.append_key(location, &head, &mut self.key);
        Some((arena.hash(head.table, &self.key), head))
    }

    /// As `Arena::parse`, but looks at the words behind the header only if they lie in the run.
    fn parse_within(&self, location: Location) -> Option<RowHead> {
        let header = self.arena.map.load(self.arena.layout.at(location) + 1, Ordering::Relaxed);
        let words = 2 + optional_words(crate::row::header_flags(header)) as u64;
        if !self.arena.fits_run(location, words) {
            return None;
        }
        self.arena.parse(location)
    }

    fn bears_check(&mut self, location: Location, head: &RowHead) -> bool {
        let map = &self.arena.map;
        let at = self.arena.layout.at(location);
        let header = map.load(at + 1, Ordering::Relaxed);
        let mut check = Check::new(header);
        let mut next = at + 2;
        for flag in [FLAG_LONG, crate::row::FLAG_EXPIRY, FLAG_CLIENT, FLAG_CAS] {
            if head.flags & flag != 0 {
                if flag != crate::row::FLAG_EXPIRY {
                    check.word(map.load(next, Ordering::Relaxed));
                }
                next += 1;
            }
        }
        let words = &map.words()[next as usize..(at as usize + head.total_bytes / 8)];
        self.key.clear();
        crate::copy::append(words, 0, head.key_len, &mut self.key);
        check.bytes(&self.key);
        self.key.clear();
        let payload = &words[head.key_len.div_ceil(8)..];
        crate::copy::append(payload, 0, head.payload_len, &mut self.key);
        check.bytes(&self.key);
        has_check(header, &check)
    }

    /// Swaps in what committed transactions had not swapped in yet.
    fn finish_commits(&mut self) -> Result<(), Reason> {
        for entry in self.arena.unfinished_commits(self.units_used)? {
            self.redo(&entry);
        }
        self.arena.clear_commits();
        Ok(())
    }

    fn redo(&mut self, entry: &RedoEntry) {
        let arena = self.arena;
        let mut tokens = [crate::ShardToken { shard: Arena::shard_of(entry.hash) as u16 }];
        let token = &mut tokens[0];
        let new = entry.new.and_then(|new| Some((new, self.prove_row(new)?)));
        let new = new.filter(|(_, (hash, head))| *hash == entry.hash && head.table == entry.table);
        let Some((location, (hash, head))) = new else {
            // A deletion; or a new version that is damaged, and then serving the old one would undo the commit.
            self.recovery.dropped += u64::from(entry.new.is_some());
            if let Some(slot) = self.find_old(entry) {
                arena.set_slot(slot, 0);
                self.recovery.redone += 1;
            }
            return;
        };
        let mut key = Vec::new();
        arena.append_key(location, &head, &mut key);
        let found = arena.find(token, hash, entry.table, &key);
        let done = match found {
            Some(found) if found.location == location => return,
            Some(found) => {
                arena.replace(token, found.slot, hash, entry.table, location);
                true
            }
            None => arena.insert(token, hash, entry.table, location).is_ok(),
        };
        if done {
            self.recovery.redone += 1;
        } else {
            self.recovery.dropped += 1;
        }
    }

    /// The slot of the version that a redo entry replaces, wherever the cleaner moved that version.
    fn find_old(&mut self, entry: &RedoEntry) -> Option<SlotId> {
        let arena = self.arena;
        let prefix = slot_prefix(entry.hash, entry.table);
        let bucket = bucket_of(arena.index_word(), entry.hash);
        let candidates: Vec<(SlotId, u64)> =
            arena.slots(bucket).filter(|(_, value)| *value & !LOCATION_MASK == prefix).collect();
        candidates.into_iter().find_map(|(slot, value)| {
            let location = Location::from_bits(value);
            let (hash, head) = self.prove_row(location)?;
            let same = hash == entry.hash && head.stamp == entry.old_stamp;
            (same || entry.old == Some(location)).then_some(slot)
        })
    }

    /// A bit for every word of the used units at which a row starts.
    fn row_starts(&mut self) -> Vec<u64> {
        let arena = self.arena;
        let mut starts = vec![0u64; (u64::from(self.units_used) * UNIT_WORDS / 64) as usize];
        let (level, split) = shape(arena.index_word());
        let mut rows = 0;
        for bucket in 0..(1u64 << level) + split {
            for (_, value) in arena.slots(bucket) {
                if value != 0 {
                    let bits = value & LOCATION_MASK;
                    starts[(bits / 64) as usize] |= 1 << (bits % 64);
                    rows += 1;
                }
            }
        }
        arena.rows.store(rows, Ordering::Relaxed);
        self.recovery.rows = rows;
        starts
    }

    /// Counts the live rows of each segment, fills the gaps between them, and frees segments without any.
    fn settle_segments(&mut self, starts: &[u64]) {
        for segment in self.arena.segments() {
            self.settle_segment(segment, starts);
        }
    }

    fn settle_segment(&mut self, segment: SegmentId, starts: &[u64]) {
        let arena = self.arena;
        let first = u64::from(segment.0) * UNIT_WORDS;
        let words = u64::from(arena.units(segment)) * UNIT_WORDS;
        let (mut end, mut gaps, mut live) = (first, Vec::new(), 0);
        for start in set_bits(starts, first, first + words) {
            let location = Location::from_bits(start);
            let head = arena.parse(location);
            let Some(head) = head.filter(|_| start >= end) else {
                // Two rows cannot share bytes: one is an image of a row inside the other's payload.
                self.drop_overlapping(location);
                continue;
            };
            if start > end {
                gaps.push((end, start));
            }
            end = start + head.total_bytes as u64 / 8;
            live += head.total_bytes;
            arena.note_expiry(segment, head.expiry);
        }
        if live == 0 {
            arena.recycle(segment);
            return;
        }
        if !gaps.is_empty() {
            self.fill_gaps(segment, &gaps);
        }
        arena.add_live(segment, live);
        arena.set_used(segment, (end - first) * 8);
    }

    /// Fillers overwrite dead rows, so the generation rises first; live rows of the segment stay as they are.
    fn fill_gaps(&self, segment: SegmentId, gaps: &[(u64, u64)]) {
        let arena = self.arena;
        for unit in segment.0..segment.0 + arena.units(segment) {
            let at = arena.layout.generations + u64::from(unit);
            let generation = arena.map.load(at, Ordering::Relaxed);
            arena.map.store(at, generation.wrapping_add(1), Ordering::Release);
        }
        fence(Ordering::Release);
        for (from, to) in gaps {
            arena.write_filler(Location::from_bits(*from), (to - from) as usize * 8);
        }
    }

    fn drop_overlapping(&mut self, location: Location) {
        let arena = self.arena;
        let Some(hash) = arena.hash_of_row(location, &mut self.key) else { return };
        let token = crate::ShardToken { shard: Arena::shard_of(hash) as u16 };
        if let Some(slot) = arena.find_location(&token, hash, location) {
            arena.set_slot(slot, 0);
            arena.rows.fetch_sub(1, Ordering::Relaxed);
            self.recovery.rows -= 1;
            self.recovery.dropped += 1;
        }
    }
}

/// The numbers of the set bits from `first` to before `end`, both multiples of 64.
fn set_bits(bits: &[u64], first: u64, end: u64) -> impl Iterator<Item = u64> {
    (first / 64..end / 64).flat_map(move |word| {
        let mut rest = bits[word as usize];
        std::iter::from_fn(move || {
            let bit = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            (bit < 64).then(|| word * 64 + u64::from(bit))
        })
    })
}
