//! Which units are free, and which have pages: the memory behind the segments.
//!
//! Single units are carved out of 1 MiB blocks, so that runs of 16 remain possible; longer runs take contiguous blocks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Layout;
use crate::file::map::Map;
use crate::layout::{BLOCK_UNITS, EXTENT_BYTES, SEGMENT_HEADER_BYTES, UNIT_BYTES};
use crate::segments::ahead::Ahead;
use crate::segments::huge::HugePages;

/// Units of an extent, which is committed by one call where the limit allows.
pub(crate) const EXTENT_UNITS: u32 = (EXTENT_BYTES / UNIT_BYTES as u64) as u32;
/// Blocks of an extent.
const EXTENT_BLOCKS: u32 = EXTENT_UNITS / BLOCK_UNITS;
/// Units whose headers are committed by one call: 36 KiB of them.
const HEADER_STEP_UNITS: u32 = 512;

/// A unit keeps its pages for so many ticks after it was freed, unless memory is short: whoever found a row there, and
/// was stopped before he read it, finds bytes that are no row's, and not a hole, in which reading would make a page.
const CALM_TICKS: u32 = 2;

/// The room in a block that is free as a whole.
const WHOLE: usize = BLOCK_UNITS as usize;

/// Units of all arenas of one owner together. Relaxed: numbers that order nothing.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) limit: AtomicU64,
    pub(crate) used: AtomicU64,
    pub(crate) committed: AtomicU64,
    pub(crate) next_order: AtomicU64,
    pub(crate) huge: HugePages,
    pub(crate) ahead: Ahead,
}

impl Budget {
    pub(crate) fn new(limit_units: u64) -> Self {
        Self {
            limit: AtomicU64::new(limit_units),
            used: AtomicU64::new(0),
            committed: AtomicU64::new(0),
            next_order: AtomicU64::new(1),
            huge: HugePages::default(),
            ahead: Ahead::default(),
        }
    }

    /// Counts units as used if the limit leaves room for them.
    pub(crate) fn take(&self, units: u64) -> bool {
        let taken = self.used.fetch_add(units, Ordering::Relaxed) + units <= self.limit();
        if !taken {
            self.used.fetch_sub(units, Ordering::Relaxed);
        }
        taken
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    pub(crate) fn committed(&self) -> u64 {
        self.committed.load(Ordering::Relaxed)
    }

    /// Units with pages beyond the limit.
    pub(crate) fn over(&self, more: u64) -> u64 {
        (self.committed() + more).saturating_sub(self.limit())
    }
}

/// Which units are free and which have pages. Guarded by `Segments::pool`; taken after any lock of the caller.
#[derive(Debug)]
pub(crate) struct Pool {
    /// Per block, a bit for each unit in use.
    used: Vec<u16>,
    /// Per block, a bit for each unit that has pages.
    committed: Vec<u16>,
    /// Per block, the tick in which a unit of it was freed last.
    freed: Vec<u32>,
    /// Ticks so far.
    ticks: u32,
    /// Per extent, whether it is known to be one page.
    huge: Vec<bool>,
    pub(crate) huge_extents: u64,
    /// The extent that is being made one page: it must not lose units meanwhile.
    collapsing: Option<u32>,
    /// Where the search for one begins.
    next_extent: u32,
    /// Blocks by the longest run of free units in them, so that a run takes the least room that it fits into: what gaps
    /// two long runs leave is for short ones, and no long one looks at them.
    by_room: [BTreeSet<u32>; WHOLE + 1],
    /// Blocks by the longest run of free units in them that have pages; not among them where there is none.
    by_ready_room: [BTreeSet<u32>; WHOLE + 1],
    max_blocks: u32,
    pub(crate) budget: Arc<Budget>,
    pub(crate) used_units: u64,
    pub(crate) committed_units: u64,
    /// Units whose generation and header words have pages.
    pub(crate) header_units: u32,
}

impl Pool {
    pub(crate) fn new(max_units: u32, budget: Arc<Budget>) -> Self {
        Self {
            used: Vec::new(),
            committed: Vec::new(),
            freed: Vec::new(),
            ticks: CALM_TICKS,
            huge: Vec::new(),
            huge_extents: 0,
            collapsing: None,
            next_extent: 0,
            by_room: Default::default(),
            by_ready_room: Default::default(),
            max_blocks: max_units / BLOCK_UNITS,
            budget,
            used_units: 0,
            committed_units: 0,
            header_units: 0,
        }
    }

    /// Units below this one have been used at some time.
    pub(crate) fn frontier(&self) -> u32 {
        self.used.len() as u32
    }

    /// Extends the bookkeeping to `blocks` blocks; the new ones count as free.
    fn extend(&mut self, blocks: u32) {
        for block in self.frontier()..blocks {
            self.used.push(0);
            self.committed.push(0);
            self.freed.push(0);
            self.by_room[WHOLE].insert(block);
        }
        let extents = self.frontier().div_ceil(EXTENT_BLOCKS) as usize;
        self.huge.resize(self.huge.len().max(extents), false);
    }

    /// Finds the first unit of a free run, without taking it: one that has pages, where there is one, for the kernel
    /// has to find and clear others, and at the limit somebody else has to give his for them.
    fn find(&mut self, units: u32) -> Option<u32> {
        if let Some(unit) = self.find_with_pages(units, u32::MAX).or_else(|| self.find_in_parts(units)) {
            return Some(unit);
        }
        let blocks = units.div_ceil(BLOCK_UNITS);
        let mut run = (0, 0);
        for &block in &self.by_room[WHOLE] {
            run = if run.0 + run.1 == block && run.1 > 0 { (run.0, run.1 + 1) } else { (block, 1) };
            if run.1 == blocks {
                return Some(run.0 * BLOCK_UNITS);
            }
        }
        // A free run that touches the frontier is extended by blocks that were never used.
        let start = if run.1 > 0 && run.0 + run.1 == self.frontier() { run.0 } else { self.frontier() };
        let end = start.checked_add(blocks)?;
        if end > self.max_blocks {
            return None;
        }
        self.extend(end);
        Some(start * BLOCK_UNITS)
    }

    /// Finds a free run in a block of which some units are in use.
    fn find_in_parts(&self, units: u32) -> Option<u32> {
        let rooms = self.by_room.get(units as usize..WHOLE)?;
        let &block = rooms.iter().find_map(BTreeSet::first)?;
        let (at, _) = bit_runs(!self.used[block as usize]).find(|&(_, length)| length >= units)?;
        Some(block * BLOCK_UNITS + at)
    }

    /// Marks a run as used or free.
    pub(crate) fn mark(&mut self, first: u32, units: u32, in_use: bool) {
        for (block, mask) in block_masks(first, units) {
            self.by_room[room(self.used[block as usize])].remove(&block);
            self.change(block, |used, _| *used = if in_use { *used | mask } else { *used & !mask });
            if !in_use {
                self.freed[block as usize] = self.ticks;
            }
            self.by_room[room(self.used[block as usize])].insert(block);
        }
        if in_use {
            self.used_units += u64::from(units);
        } else {
            self.used_units -= u64::from(units);
        }
    }

    /// Changes which units of a block are in use or have pages, and so what is ready in it.
    fn change(&mut self, block: u32, change: impl FnOnce(&mut u16, &mut u16)) {
        let (used, committed) = (&mut self.used[block as usize], &mut self.committed[block as usize]);
        let before = room(*used | !*committed);
        change(used, committed);
        let after = room(*used | !*committed);
        if before != after {
            self.by_ready_room[before].remove(&block);
            if after > 0 {
                self.by_ready_room[after].insert(block);
            }
        }
    }

    /// Takes a free run and makes sure that it has pages, of the kind that is for large rows or for small ones. The
    /// caller has counted it as used.
    pub(crate) fn take(&mut self, map: &Map, layout: &Layout, units: u32, large_rows: bool) -> Option<u32> {
        let unit = self.find(units)?;
        if self.commit_headers(map, layout, unit + units) {
            // Marked first, so that making room for its pages does not take the pages that it has.
            self.mark(unit, units, true);
            if self.commit(map, layout, unit, units, large_rows) {
                self.ask_ahead(large_rows);
                return Some(unit);
            }
            self.mark(unit, units, false);
        }
        self.take_where_full(map, layout, unit, units)
    }

    /// Another tick.
    pub(crate) fn pass_tick(&mut self) {
        self.ticks += 1;
    }

    /// Whether no unit of a block was freed a moment ago.
    fn is_calm(&self, block: usize) -> bool {
        self.freed[block] + CALM_TICKS <= self.ticks
    }

    /// Takes a run although the file system gives no more pages: one that has its own, if there is such a run; else
    /// this one, with those of pieces that are too short, if they are enough. What is given up may be taken by others
    /// first, also by who makes memory ready.
    fn take_where_full(&mut self, map: &Map, layout: &Layout, unit: u32, units: u32) -> Option<u32> {
        self.note_full();
        // Its headers have pages, too.
        if let Some(unit) = self.find_with_pages(units, self.header_units / BLOCK_UNITS) {
            self.mark(unit, units, true);
            return Some(unit);
        }
        if self.budget.used.load(Ordering::Relaxed) > self.budget.limit() {
            return None;
        }
        self.mark(unit, units, true);
        self.release_free(map, layout, u64::MAX);
        let byte = unit_byte(layout, unit);
        let done = self.commit_headers(map, layout, unit + units)
            && map.commit(byte, u64::from(units) * UNIT_BYTES as u64).is_ok();
        if !done {
            self.mark(unit, units, false);
            return None;
        }
        self.note_committed(unit, units);
        Some(unit)
    }

    /// Finds a free run within one of the first `blocks` blocks, all of which has pages: the least room that it fits
    /// into.
    fn find_with_pages(&self, units: u32, blocks: u32) -> Option<u32> {
        let rooms = self.by_ready_room.get(units as usize..)?;
        let &block = rooms.iter().find_map(|found| found.range(..blocks).next())?;
        let ready = self.committed[block as usize] & !self.used[block as usize];
        let (at, _) = bit_runs(ready).find(|&(_, length)| length >= units)?;
        Some(block * BLOCK_UNITS + at)
    }

    /// Units of a run that have no pages.
    fn missing(&self, first: u32, units: u32) -> u32 {
        block_masks(first, units)
            .map(|(block, mask)| (mask & !self.committed[block as usize]).count_ones())
            .sum()
    }

    /// Makes sure that a run, marked as used, has pages; false if the file system is full.
    fn commit(&mut self, map: &Map, layout: &Layout, first: u32, units: u32, large_rows: bool) -> bool {
        let missing = self.missing(first, units);
        if missing == 0 {
            return true;
        }
        // Where a thread makes memory ready and has not come to it yet, the caller waits for small pages only, and for
        // no more than he needs.
        let is_alone = self.budget.ahead.units(self.budget.limit()) == 0;
        if is_alone && self.commit_step(map, layout, first, units, large_rows) {
            return true;
        }
        let over = self.budget.over(u64::from(missing));
        let grown = u64::from(missing).saturating_sub(self.release_free(map, layout, over));
        let (byte, bytes) = (unit_byte(layout, first), u64::from(units) * UNIT_BYTES as u64);
        let committed = map.leaves_spare(grown * UNIT_BYTES as u64) && map.commit(byte, bytes).is_ok();
        if committed {
            map.populate(byte, bytes);
            self.note_committed(first, units);
        }
        committed
    }

    /// Commits the whole extents around a run at once where the limit leaves room: fewer calls, and larger pages.
    fn commit_step(&mut self, map: &Map, layout: &Layout, first: u32, units: u32, large_rows: bool) -> bool {
        let from = first / EXTENT_UNITS * EXTENT_UNITS;
        let to = (first + units).next_multiple_of(EXTENT_UNITS).min(self.max_blocks * BLOCK_UNITS);
        if self.budget.committed() + u64::from(to - from) > self.budget.limit() {
            return false;
        }
        self.extend(to / BLOCK_UNITS);
        (from..to)
            .step_by(EXTENT_UNITS as usize)
            .all(|extent| self.commit_extent(map, layout, extent, EXTENT_UNITS.min(to - extent), large_rows))
    }

    fn commit_extent(
        &mut self,
        map: &Map,
        layout: &Layout,
        first: u32,
        units: u32,
        large_rows: bool,
    ) -> bool {
        let (byte, bytes) = (unit_byte(layout, first), u64::from(units) * UNIT_BYTES as u64);
        let is_fresh = block_masks(first, units).all(|(block, _)| self.committed[block as usize] == 0);
        if is_fresh {
            let Ok(is_huge) = self.budget.huge.commit_fresh(map, byte, bytes, large_rows) else {
                return false;
            };
            self.note_fresh(first, units, is_huge);
        } else {
            let missing = u64::from(self.missing(first, units)) * UNIT_BYTES as u64;
            if !map.leaves_spare(missing) || map.commit(byte, bytes).is_err() {
                return false;
            }
            map.populate(byte, bytes);
            self.note_committed(first, units);
        }
        true
    }

    /// The units of a fresh extent have pages, which are one or not.
    fn note_fresh(&mut self, first: u32, units: u32, is_huge: bool) {
        self.note_committed(first, units);
        self.note_huge(first / EXTENT_UNITS, is_huge);
    }

    /// Units that any run finds room in without waiting for the kernel: gaps between runs are not among them.
    pub(crate) fn ready_units(&self) -> u32 {
        self.by_ready_room[WHOLE].len() as u32 * BLOCK_UNITS
    }

    /// Asks for memory to be made ready, after some was taken for large rows or for small ones, if there is little left
    /// and the limit has room.
    fn ask_ahead(&self, large_rows: bool) {
        let units = self.budget.ahead.units(self.budget.limit());
        if self.ready_units() < units && self.has_room_ahead() {
            self.budget.ahead.ask(large_rows);
        }
    }

    /// Whether the limit leaves room for one more extent.
    fn has_room_ahead(&self) -> bool {
        self.budget.committed() + u64::from(EXTENT_UNITS) <= self.budget.limit()
    }

    /// Takes an extent that was never used, to be made ready; its first unit. None: there is enough, or no room.
    pub(crate) fn begin_ahead(&mut self) -> Option<u32> {
        let block = self.frontier().next_multiple_of(EXTENT_BLOCKS);
        let end = block.checked_add(EXTENT_BLOCKS).filter(|end| *end <= self.max_blocks)?;
        let enough = self.ready_units() >= self.budget.ahead.units(self.budget.limit());
        if enough || !self.has_room_ahead() {
            return None;
        }
        self.extend(end);
        let first = block * BLOCK_UNITS;
        // Nobody takes them meanwhile; and they count against the limit, but as what no row uses.
        self.mark(first, EXTENT_UNITS, true);
        self.used_units -= u64::from(EXTENT_UNITS);
        self.budget.committed.fetch_add(u64::from(EXTENT_UNITS), Ordering::Relaxed);
        Some(first)
    }

    /// The extent has pages now, one large one or not; or none.
    pub(crate) fn end_ahead(&mut self, first: u32, is_huge: Option<bool>) {
        self.used_units += u64::from(EXTENT_UNITS);
        self.mark(first, EXTENT_UNITS, false);
        self.budget.committed.fetch_sub(u64::from(EXTENT_UNITS), Ordering::Relaxed);
        if let Some(is_huge) = is_huge {
            self.note_fresh(first, EXTENT_UNITS, is_huge);
        }
    }

    fn note_huge(&mut self, extent: u32, is_huge: bool) {
        let was_huge = std::mem::replace(&mut self.huge[extent as usize], is_huge);
        self.huge_extents = self.huge_extents + u64::from(is_huge) - u64::from(was_huge);
    }

    /// The next extent all of whose units have pages, which are small as far as is known. It keeps them until
    /// [`Pool::end_collapse`].
    pub(crate) fn begin_collapse(&mut self, looks: u32) -> Option<u32> {
        let extents = self.frontier() / EXTENT_BLOCKS;
        if self.collapsing.is_some() {
            return None;
        }
        for _ in 0..looks.min(extents) {
            let extent = self.next_extent % extents;
            self.next_extent = extent + 1;
            let blocks = &self.committed[self.blocks_of(extent)];
            if !self.huge[extent as usize] && blocks.iter().all(|units| *units == u16::MAX) {
                self.collapsing = Some(extent);
                return self.collapsing;
            }
        }
        None
    }

    /// The extent is one page now, or not.
    pub(crate) fn end_collapse(&mut self, is_huge: bool) {
        if let Some(extent) = self.collapsing.take()
            && is_huge
        {
            self.note_huge(extent, true);
        }
    }

    /// Makes sure that generations and headers of the first `units` units have pages.
    pub(crate) fn commit_headers(&mut self, map: &Map, layout: &Layout, units: u32) -> bool {
        let from = self.header_units;
        if units <= from {
            return true;
        }
        let to = units.next_multiple_of(HEADER_STEP_UNITS).min(self.max_blocks * BLOCK_UNITS);
        let mut commit = |first: u64, bytes: u64| {
            let (byte, bytes) = (first * 8 + u64::from(from) * bytes, u64::from(to - from) * bytes);
            self.commit_beside(map, layout, byte, bytes)
        };
        let done = commit(layout.generations, 8) && commit(layout.headers, SEGMENT_HEADER_BYTES);
        if done {
            self.header_units = to;
        }
        done
    }

    fn note_committed(&mut self, first: u32, units: u32) {
        for (block, mask) in block_masks(first, units) {
            let added = u64::from((mask & !self.committed[block as usize]).count_ones());
            self.committed_units += added;
            self.budget.committed.fetch_add(added, Ordering::Relaxed);
            self.change(block, |_, committed| *committed |= mask);
        }
    }

    /// Gives back the pages of at least `units` free units, as far as there are so many; of how many. Those that were
    /// freed a moment ago come last.
    pub(crate) fn release_free(&mut self, map: &Map, layout: &Layout, units: u64) -> u64 {
        let released = self.release_calm(map, layout, units);
        released + self.release_where(map, layout, units.saturating_sub(released), false)
    }

    /// The same, but not of those.
    pub(crate) fn release_calm(&mut self, map: &Map, layout: &Layout, units: u64) -> u64 {
        self.release_where(map, layout, units, true)
    }

    /// Whole extents first: to take a piece of a page of 2 MiB is to split it.
    fn release_where(&mut self, map: &Map, layout: &Layout, units: u64, calm: bool) -> u64 {
        let mut released = 0;
        for whole in [true, false] {
            for extent in (0..self.huge.len() as u32).rev() {
                if released >= units {
                    return released;
                }
                if self.collapsing != Some(extent) && (!whole || self.is_idle(extent)) {
                    released += self.release_extent(map, layout, extent, whole, calm);
                }
            }
        }
        released
    }

    /// Runs of units from one on that are free and have no pages, as far as is known, and at last what was never used;
    /// at most so many.
    pub(crate) fn gaps_without_pages(&self, from: u32, most: usize) -> Vec<(u32, u32)> {
        let mut gaps: Vec<(u32, u32)> = Vec::new();
        let first = from / BLOCK_UNITS;
        for block in first..self.frontier() {
            let idle = !(self.used[block as usize] | self.committed[block as usize]);
            for (at, length) in bit_runs(idle) {
                let (from, to) = (block * BLOCK_UNITS + at, block * BLOCK_UNITS + at + length);
                if let Some(last) = gaps.last_mut().filter(|last| last.1 == from) {
                    last.1 = to;
                } else if gaps.len() == most {
                    return gaps;
                } else {
                    gaps.push((from, to));
                }
            }
        }
        if gaps.len() < most {
            gaps.push((self.frontier() * BLOCK_UNITS, self.max_blocks * BLOCK_UNITS));
        }
        gaps
    }

    /// The free units of extents that have few of them: at most `few` each, and `room` all together; as (first, end).
    pub(crate) fn gaps(&self, few: u32, mut room: u64) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        for extent in 0..self.frontier() / EXTENT_BLOCKS {
            let before = found.len();
            for block in self.blocks_of(extent) {
                let first = block as u32 * BLOCK_UNITS;
                found.extend(bit_runs(!self.used[block]).map(|(at, units)| (first + at, first + at + units)));
            }
            let free: u32 = found[before..].iter().map(|(from, to)| to - from).sum();
            if free > few || u64::from(free) > room {
                found.truncate(before);
            } else {
                room -= u64::from(free);
            }
        }
        found
    }

    /// Whether all units of an extent have pages and none is in use.
    fn is_idle(&self, extent: u32) -> bool {
        self.blocks_of(extent).len() == EXTENT_BLOCKS as usize
            && self.blocks_of(extent).all(|block| self.committed[block] == u16::MAX && self.used[block] == 0)
    }

    /// The blocks of an extent that there are.
    fn blocks_of(&self, extent: u32) -> std::ops::Range<usize> {
        let end = ((extent + 1) * EXTENT_BLOCKS).min(self.frontier());
        (extent * EXTENT_BLOCKS) as usize..end as usize
    }

    /// Gives back the pages of the free units of an extent, all of it at once if it is idle; how many there were.
    fn release_extent(&mut self, map: &Map, layout: &Layout, extent: u32, whole: bool, calm: bool) -> u64 {
        let mut runs = Vec::with_capacity(2);
        let may_go = |block: usize| !calm || self.is_calm(block);
        if whole {
            if self.blocks_of(extent).all(may_go) {
                runs.push((extent * EXTENT_UNITS, EXTENT_UNITS));
            }
        } else {
            for block in self.blocks_of(extent).filter(|block| may_go(*block)) {
                let idle = self.committed[block] & !self.used[block];
                runs.extend(bit_runs(idle).map(|(at, length)| (block as u32 * BLOCK_UNITS + at, length)));
            }
        }
        let mut released = 0;
        for (first, units) in runs {
            if map.punch(unit_byte(layout, first), u64::from(units) * UNIT_BYTES as u64).is_ok() {
                self.note_released(first, units);
                released += u64::from(units);
            }
        }
        released
    }

    fn note_released(&mut self, first: u32, units: u32) {
        for (block, mask) in block_masks(first, units) {
            self.change(block, |_, committed| *committed &= !mask);
            self.note_huge(block / EXTENT_BLOCKS, false);
        }
        self.committed_units -= u64::from(units);
        self.budget.committed.fetch_sub(u64::from(units), Ordering::Relaxed);
    }

    /// What lies beside the segments is about to take the pages of a unit, until the owner divides the memory again.
    pub(crate) fn cede(&mut self, map: &Map, layout: &Layout) {
        let less = |limit: u64| Some(limit.saturating_sub(1));
        // Never refused: the closure always gives a number.
        let _limit = self.budget.limit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        let over = self.budget.over(0);
        self.release_free(map, layout, over);
    }

    /// What has pages is all there is, until the owner divides the memory again: it makes room as at its limit, and
    /// keeps the units free that it keeps free there.
    fn note_full(&self) {
        self.budget.limit.fetch_min(self.budget.committed(), Ordering::Relaxed);
    }

    /// What was ceded was not taken: who asks in vain again and again must not take the segments their memory.
    pub(crate) fn take_back(&self) {
        self.budget.limit.fetch_add(1, Ordering::Relaxed);
    }

    /// Commits pages beside the segments. Where the file system has none, free units give theirs.
    pub(crate) fn commit_beside(&mut self, map: &Map, layout: &Layout, byte: u64, bytes: u64) -> bool {
        if map.commit(byte, bytes).is_ok() {
            return true;
        }
        self.note_full();
        self.release_free(map, layout, bytes.div_ceil(UNIT_BYTES as u64));
        map.commit(byte, bytes).is_ok()
    }

    /// Takes over a segment that recovery found, with its pages.
    pub(crate) fn adopt(&mut self, first: u32, units: u32) {
        self.extend((first + units).div_ceil(BLOCK_UNITS));
        self.budget.used.fetch_add(u64::from(units), Ordering::Relaxed);
        self.mark(first, units, true);
        self.note_committed(first, units);
    }

    /// These units have pages, used or not.
    pub(crate) fn adopt_pages(&mut self, first: u32, units: u32) {
        self.extend((first + units).div_ceil(BLOCK_UNITS));
        self.note_committed(first, units);
    }

    pub(crate) fn set_next_order(&mut self, order: u64) {
        self.budget.next_order.fetch_max(order, Ordering::Relaxed);
    }
}

/// The blocks of a run, each with the bits of its units.
fn block_masks(first: u32, units: u32) -> impl Iterator<Item = (u32, u16)> {
    let end = first + units;
    (first / BLOCK_UNITS..end.div_ceil(BLOCK_UNITS)).map(move |block| {
        let from = first.max(block * BLOCK_UNITS) - block * BLOCK_UNITS;
        let to = end.min((block + 1) * BLOCK_UNITS) - block * BLOCK_UNITS;
        (block, (((1u32 << (to - from)) - 1) << from) as u16)
    })
}

/// How long the longest run of free units in a block is.
fn room(used: u16) -> usize {
    bit_runs(!used).map(|(_, length)| length as usize).max().unwrap_or(0)
}

/// The runs of set bits, as (first, length).
fn bit_runs(mut bits: u16) -> impl Iterator<Item = (u32, u32)> {
    let mut base = 0;
    std::iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let skip = bits.trailing_zeros();
        let length = (u32::from(bits) >> skip).trailing_ones();
        let run = (base + skip, length);
        bits = (u32::from(bits) >> (skip + length)) as u16;
        base += skip + length;
        Some(run)
    })
}

fn unit_byte(layout: &Layout, unit: u32) -> u64 {
    layout.segments * 8 + u64::from(unit) * UNIT_BYTES as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_cover_a_run_across_blocks() {
        let masks: Vec<_> = block_masks(14, 20).collect();
        assert_eq!(masks, [(0, 0xc000), (1, 0xffff), (2, 0x0003)]);
        assert_eq!(bit_runs(0b1110_0000_0001_0110).collect::<Vec<_>>(), [(1, 2), (4, 1), (13, 3)]);
        assert_eq!(bit_runs(u16::MAX).collect::<Vec<_>>(), [(0, 16)]);
    }
}
