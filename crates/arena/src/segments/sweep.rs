//! Pages that nobody asked for.
//!
//! On a tmpfs whoever reads a hole of the file through a mapping makes a page of zeros there, also where the mapping is
//! read-only. So a process that may read the shared file can fill it with pages, and an honest reader who is stopped
//! between finding a row and reading it makes one where the row's unit was given back meanwhile. The file system counts
//! them and the owner did not: they lay there until the next start, beside the limit.
//!
//! So once a tick the owner compares what the file takes with what it asked for. If there is more, it looks for data
//! where it has no pages, and gives them back.

use rustix::fs::SeekFrom;

use crate::Arena;
use crate::layout::{BUCKET_BYTES, SEGMENT_HEADER_BYTES, UNIT_BYTES};

/// The file may take so much more than was asked for before it is searched: a search finds nothing in whatever the file
/// system itself rounds up.
const SLACK_BYTES: u64 = 64 << 10;
/// Bytes of a block as the system counts the blocks of a file.
const BLOCK_BYTES: u64 = 512;
/// Gaps between segments that are searched in one tick, with the pool locked: a system call each.
const GAPS_PER_TICK: usize = 512;

/// What is known of pages that nobody asked for.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// What the file takes beyond what was asked for, and the last search did not find.
    unexplained: u64,
    /// The unit at which the next search begins.
    next_unit: u32,
    /// Bytes that were found and given back.
    found: u64,
}

impl Arena {
    /// Finds pages that readers made, and gives them back: a bounded piece of the file. Called once a tick by one
    /// thread.
    pub fn sweep_pages(&self) {
        let Some(taken) = self.file_bytes() else { return };
        let excess = taken.saturating_sub(self.asked_bytes());
        let mut sweep = self.sweep.lock();
        sweep.unexplained = sweep.unexplained.min(excess);
        if excess < sweep.unexplained + SLACK_BYTES {
            return;
        }
        let has_wrapped = self.sweep_segments(&mut sweep.next_unit);
        self.sweep_headers();
        self.sweep_index();
        let left = self.file_bytes().unwrap_or(taken);
        sweep.found += taken.saturating_sub(left);
        if has_wrapped {
            // What is left lies nowhere: extents that are being committed just now, or the file system's own.
            sweep.unexplained = left.saturating_sub(self.asked_bytes());
        }
    }

    /// Bytes that were found where nobody had asked for pages.
    pub fn swept_bytes(&self) -> u64 {
        self.sweep.lock().found
    }

    /// Bytes that the file takes.
    pub(crate) fn file_bytes(&self) -> Option<u64> {
        let stat = rustix::fs::fstat(self.map.file()).ok()?;
        Some(u64::try_from(stat.st_blocks).ok()? * BLOCK_BYTES)
    }

    /// Bytes of it that were asked for.
    pub(crate) fn asked_bytes(&self) -> u64 {
        let usage = self.usage();
        usage.committed_bytes + self.index_bytes() + usage.frame_bytes
    }

    /// Searches the units that have no pages, as far as is known; whether it came to the end.
    fn sweep_segments(&self, next_unit: &mut u32) -> bool {
        let pool = self.segments.pool.lock();
        let gaps = pool.gaps_without_pages(*next_unit, GAPS_PER_TICK);
        let byte = |unit: u32| self.layout.segments * 8 + u64::from(unit) * UNIT_BYTES as u64;
        for &(from, to) in &gaps {
            self.sweep_range(byte(from), byte(to));
        }
        let is_end = gaps.len() < GAPS_PER_TICK;
        *next_unit = if is_end { 0 } else { gaps.last().map_or(0, |(_, to)| *to) };
        is_end
    }

    fn sweep_headers(&self) {
        let pool = self.segments.pool.lock();
        let (from, to) = (u64::from(pool.header_units), u64::from(self.layout.max_units));
        self.sweep_range(self.layout.generations * 8 + from * 8, self.layout.generations * 8 + to * 8);
        let headers = self.layout.headers * 8;
        self.sweep_range(headers + from * SEGMENT_HEADER_BYTES, headers + to * SEGMENT_HEADER_BYTES);
    }

    fn sweep_index(&self) {
        let buckets = self.buckets.lock();
        let (main, all) = (self.layout.max_buckets, self.layout.max_buckets + self.layout.max_overflow);
        let byte = |bucket: u64| self.layout.index * 8 + bucket * BUCKET_BYTES;
        self.sweep_range(byte(buckets.main_committed), byte(main));
        self.sweep_range(byte(main + buckets.overflow_committed), byte(all));
    }

    /// Gives back what pages a range has. Nobody else asks for pages there meanwhile.
    fn sweep_range(&self, from: u64, to: u64) {
        let data = rustix::fs::seek(self.map.file(), SeekFrom::Data(from));
        if data.is_ok_and(|at| at < to) {
            // Where it cannot be, the next tick tries again.
            let _done = self.map.punch(from, to - from);
        }
    }
}
