//! Hits that readers of shared memory tell of: a file beside the shared arena, a byte for each slot of its index.
//!
//! Readers cannot write to the arena, so without this file the rows that they read most would look unused, and be
//! evicted first. It is advice: a process that may write it can spoil what is evicted next, and nothing else. So the
//! owner never maps it (a writer could cut it short, and touching what is gone is a fault) but reads it piece by piece,
//! and clears what it has read; a hit that comes in between is lost.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::failpoint::{self, Point};
use crate::file::map::Bytes;
use crate::file::superblock::{system, unmapped};
use crate::index::{BUCKET_WORDS, hint};
use crate::layout::word;
use crate::limits::HITS_TOLD_MAX;
use crate::mapped::Counts;
use crate::{Arena, ArenaError, Reader, RowRead};

/// Bytes that one look of the owner's reads at most: some ten microseconds.
const PIECE_BYTES: u64 = 64 << 10;
/// The owner and the file's group may write it.
const MODE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::WGRP);

/// The owner's side.
#[derive(Debug)]
pub(crate) struct HitsFile {
    file: OwnedFd,
    /// Bytes with pages; slots beyond are not counted. Changed by the one thread that looks.
    bytes: AtomicU64,
    /// Where the next look begins.
    next: AtomicU64,
}

/// Opens a plain file of this user's.
fn open(path: &Path, owners: &[u32], flags: OFlags) -> Result<OwnedFd, ArenaError> {
    let flags = flags | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, MODE).map_err(|errno| match errno {
        Errno::NOENT => ArenaError::NotFound(path.to_owned()),
        errno => system("open", path, errno),
    })?;
    let stat = rustix::fs::fstat(&file).map_err(|errno| system("fstat", path, errno))?;
    let plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !plain || !owners.contains(&stat.st_uid) {
        let reason = "it is not a plain file of the arena's owner".to_owned();
        return Err(ArenaError::InTheWay { path: path.to_owned(), reason });
    }
    Ok(file)
}

impl Arena {
    /// Bytes of a file with a byte for each slot of the first buckets of chains.
    fn hits_bytes(&self, buckets: u64) -> u64 {
        buckets.min(self.layout.max_buckets) * BUCKET_WORDS
    }

    /// Listens to readers through a file, which is made where there is none.
    pub(crate) fn use_hits(&self, path: &Path) -> Result<(), ArenaError> {
        let own = [rustix::process::geteuid().as_raw()];
        let file = open(path, &own, OFlags::CREATE)?;
        rustix::fs::fchmod(&file, MODE).map_err(|errno| system("fchmod", path, errno))?;
        rustix::fs::ftruncate(&file, self.hits_bytes(u64::MAX))
            .map_err(|errno| system("ftruncate", path, errno))?;
        let hits = HitsFile { file, bytes: AtomicU64::new(0), next: AtomicU64::new(0) };
        // A second file for the same arena would be nobody's.
        let _second = self.hits.set(hits);
        self.grow_hits();
        Ok(())
    }

    /// Gives the slots of the buckets that there are now their bytes, and tells readers.
    fn grow_hits(&self) {
        let Some(hits) = self.hits.get() else { return };
        let (level, split) = crate::index::shape(self.index_word());
        let wanted = self.hits_bytes(((1u64 << level) + split).next_multiple_of(PIECE_BYTES / BUCKET_WORDS));
        let from = hits.bytes.load(Ordering::Relaxed);
        if wanted <= from {
            return;
        }
        let commit = || rustix::fs::fallocate(&hits.file, FallocateFlags::empty(), from, wanted - from);
        if failpoint::ask(Point::Fallocate).and_then(|()| commit()).is_ok() {
            hits.bytes.store(wanted, Ordering::Relaxed);
            // Release: pairs with the Acquire in `note_hit`; bytes below the word have pages.
            self.map.store(word::HITS_BYTES, wanted, Ordering::Release);
        }
    }

    /// Bytes of the file that have pages.
    pub(crate) fn hits_used(&self) -> u64 {
        self.hits.get().map_or(0, |hits| hits.bytes.load(Ordering::Relaxed))
    }

    /// Takes over what readers have counted in the next piece of the file. Called by one thread.
    pub(crate) fn take_hits(&self, now: u32) {
        let Some(hits) = self.hits.get() else { return };
        self.grow_hits();
        let bytes = hits.bytes.load(Ordering::Relaxed);
        let from = hits.next.load(Ordering::Relaxed) % bytes.max(1);
        let mut piece = vec![0_u8; PIECE_BYTES.min(bytes - from) as usize];
        hits.next.store(from + piece.len() as u64, Ordering::Relaxed);
        // A file that was cut short says nothing; who can write it may do that.
        let read = rustix::io::pread(&hits.file, &mut piece, from).unwrap_or(0);
        let mut found = false;
        for (at, count) in piece[..read].iter().enumerate().filter(|(_, count)| **count > 0) {
            found = true;
            let Some(own) = self.hints.get(from as usize + at) else { continue };
            for _ in 0..(*count).min(HITS_TOLD_MAX) {
                own.store(hint::after_hit(own.load(Ordering::Relaxed), now), Ordering::Relaxed);
            }
        }
        if found {
            piece.fill(0);
            let _ = rustix::io::pwrite(&hits.file, &piece[..read], from);
        }
    }
}

impl Reader {
    /// Tells the owner of hits through the file beside the arena; where that may not be written, of none.
    pub fn tell_hits(&mut self, path: &Path, owners: &[u32]) -> Result<(), ArenaError> {
        let file = open(path, owners, OFlags::empty())?;
        let bytes = self.layout.max_buckets * BUCKET_WORDS;
        let stat = rustix::fs::fstat(&file).map_err(|errno| system("fstat", path, errno))?;
        if u64::try_from(stat.st_size) != Ok(bytes) {
            let reason = "its length is not that of the arena's index".to_owned();
            return Err(ArenaError::InTheWay { path: path.to_owned(), reason });
        }
        let mapped = Bytes::new(&file, bytes).map_err(|source| unmapped(path, bytes, source))?;
        self.mapped.counts = Some(Counts { bytes: mapped, known: AtomicU64::new(0) });
        Ok(())
    }

    /// Counts a hit on a row. A hot row costs one load.
    #[inline]
    pub fn note_hit(&self, row: &RowRead<'_>) {
        let (Some(counts), Some(slot)) = (&self.counts, row.inner_slot()) else { return };
        // Relaxed: what has pages keeps them, so an older number does.
        if slot.0 >= counts.known.load(Ordering::Relaxed) && slot.0 >= self.learn_hits(counts) {
            return;
        }
        if let Some(count) = counts.bytes.get(slot.0 as usize) {
            let before = count.load(Ordering::Relaxed);
            // Relaxed, and a lost update is harmless: it is advice.
            if before < HITS_TOLD_MAX {
                count.store(before + 1, Ordering::Relaxed);
            }
        }
    }

    /// Asks how many bytes of the file have pages now.
    #[cold]
    fn learn_hits(&self, counts: &Counts) -> u64 {
        // Acquire: pairs with the Release in `grow_hits`.
        let known = self.map.load(word::HITS_BYTES, Ordering::Acquire);
        counts.known.fetch_max(known, Ordering::Relaxed);
        known
    }
}
