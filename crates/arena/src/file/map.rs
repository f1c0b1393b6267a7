//! The mapping: an array of atomic words, and the calls that commit and release its pages.
//!
//! Everything that changes the file passes [`Map::store`] or [`Map::compare_exchange`] (or, for the bulk of a
//! large payload, [`Map::store_bytes`]), so that tests can record each store and run recovery after every one.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::failpoint::{self, Point};
use crate::layout::{EXTENT_BYTES, PAGE_BYTES};
use crate::limits::SPARE_BYTES_MAX;
use crate::order;

/// And no more than this part of a small one.
const SPARE_SHARE: u64 = 64;
/// Linux's number for it, since 6.1; libraries do not have the name for every kind of machine.
const MADV_COLLAPSE: libc::c_int = 25;

/// The whole file, mapped once for as long as the arena lives.
///
/// Nobody ever sees a reference to the bytes: other processes may change them, so they are atomic words.
pub(crate) struct Map {
    words: NonNull<[AtomicU64]>,
    file: OwnedFd,
    #[cfg(any(test, feature = "record"))]
    recorder: crate::record::Recorder,
}

// SAFETY: the mapping belongs to this value and is only accessed as atomic words.
unsafe impl Send for Map {}
// SAFETY: as above; atomic words may be shared between threads.
unsafe impl Sync for Map {}

impl std::fmt::Debug for Map {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Map").field("words", &self.words.len()).finish_non_exhaustive()
    }
}

impl Map {
    /// Maps `bytes` (a multiple of the page size) of the file, readable and writable.
    pub(crate) fn new(file: OwnedFd, bytes: u64) -> io::Result<Self> {
        Self::with(file, bytes, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// As [`Map::new`], for who only reads; a store would be a fault.
    pub(crate) fn read_only(file: OwnedFd, bytes: u64) -> io::Result<Self> {
        Self::with(file, bytes, ProtFlags::READ)
    }

    fn with(file: OwnedFd, bytes: u64, prot: ProtFlags) -> io::Result<Self> {
        let len = usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let base = if cfg!(miri) { zeroed(len)? } else { map_aligned(&file, len, prot)? };
        Ok(Self {
            words: NonNull::slice_from_raw_parts(base.cast(), len / 8),
            file,
            #[cfg(any(test, feature = "record"))]
            recorder: crate::record::Recorder::default(),
        })
    }

    /// All words. A page that was never committed is committed by reading it; callers check bounds first.
    #[inline]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds these words, which are aligned, lives as long as `self`, and atomics have interior
        // mutability, so nothing is claimed about what other threads and processes store.
        unsafe { self.words.as_ref() }
    }

    /// Loads one word.
    #[inline]
    pub(crate) fn load(&self, word: u64, order: Ordering) -> u64 {
        self.words()[word as usize].load(order)
    }

    /// Stores one word.
    #[inline]
    pub(crate) fn store(&self, word: u64, value: u64, order: Ordering) {
        let target = &self.words()[word as usize];
        #[cfg(any(test, feature = "record"))]
        if self.recorder.is_on() {
            return self.recorder.store(word, value, || target.store(value, order));
        }
        target.store(value, order);
    }

    /// Replaces one word if it still is `old`; whether it was.
    pub(crate) fn compare_exchange(&self, word: u64, old: u64, new: u64) -> bool {
        let target = &self.words()[word as usize];
        let swap = || target.compare_exchange(old, new, order::EXCHANGE, order::EXCHANGE_REFUSED).is_ok();
        #[cfg(any(test, feature = "record"))]
        if self.recorder.is_on() {
            return self.recorder.exchange(word, new, swap);
        }
        swap()
    }

    /// Stores whole words from bytes, whose number is a multiple of 8; what a row's bulk is written with.
    #[inline]
    pub(crate) fn store_bytes(&self, word: u64, bytes: &[u8]) {
        let first = word as usize;
        let target = &self.words()[first..first + bytes.len() / 8];
        #[cfg(any(test, feature = "record"))]
        if self.recorder.is_on() {
            for (i, chunk) in bytes.as_chunks::<8>().0.iter().enumerate() {
                self.store(word + i as u64, u64::from_le_bytes(*chunk), Ordering::Relaxed);
            }
            return;
        }
        crate::row::copy::into_words(target, bytes);
    }

    /// Stores bytes from any byte of the file on. The words that they begin and end in are nobody else's to write.
    pub(crate) fn store_at(&self, byte: u64, bytes: &[u8]) {
        let (mut word, skip) = (byte / 8, (byte % 8) as usize);
        let (head, rest) = bytes.split_at(bytes.len().min((8 - skip) % 8));
        if !head.is_empty() {
            self.merge(word, skip, head);
            word += 1;
        }
        let (whole, tail) = rest.split_at(rest.len() & !7);
        self.store_bytes(word, whole);
        if !tail.is_empty() {
            self.merge(word + whole.len() as u64 / 8, 0, tail);
        }
    }

    /// Puts up to seven bytes in the place of those of a word from `skip` on.
    fn merge(&self, word: u64, skip: usize, bytes: &[u8]) {
        let mask = !(u64::MAX << (8 * bytes.len())) << (8 * skip);
        let others = self.load(word, Ordering::Relaxed) & !mask;
        self.store(word, others | (crate::row::copy::padded(bytes) << (8 * skip)), Ordering::Relaxed);
    }

    /// Reads once from a descriptor into `len` bytes of the file from `byte` on, and what follows into `spill`; how
    /// many bytes came. The range is its writer's own: nothing leads a reader there, and nobody else stores to it.
    pub(crate) fn receive(
        &self,
        from: BorrowedFd<'_>,
        byte: u64,
        len: usize,
        spill: &mut [u8],
    ) -> io::Result<usize> {
        let (first, skip) = ((byte / 8) as usize, (byte % 8) as usize);
        let words = &self.words()[first..first + (skip + len).div_ceil(8)];
        let target = words.as_ptr().cast_mut().cast::<u8>().wrapping_add(skip);
        let pieces = [
            libc::iovec { iov_base: target.cast::<c_void>(), iov_len: len },
            libc::iovec { iov_base: spill.as_mut_ptr().cast::<c_void>(), iov_len: spill.len() },
        ];
        // SAFETY: both pieces are valid for their lengths while the call lasts: the first lies in `words`, which are
        // atomics and may be written through a shared reference, the second is borrowed for writing. No Rust reference
        // to the first exists, and the bytes are an unpublished row's, so no reader interprets them; one who comes with
        // the place of an earlier row may load words that the kernel is just storing, as he may load those of any other
        // process, and finds the generation changed.
        let count = unsafe { libc::readv(from.as_raw_fd(), pieces.as_ptr(), 2) };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        #[cfg(any(test, feature = "record"))]
        if self.recorder.is_on() {
            for word in byte / 8..(byte + count.min(len) as u64).div_ceil(8) {
                self.store(word, self.load(word, Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        Ok(count)
    }

    /// Makes the file system promise pages for a range, so that touching them cannot fault.
    pub(crate) fn commit(&self, from_byte: u64, bytes: u64) -> io::Result<()> {
        self.fallocate(FallocateFlags::empty(), from_byte, bytes)
    }

    /// Whether the file system has so many bytes, and some to spare: a reader of a page that was given back a moment
    /// ago makes one in its place, and where the file system has none is killed by SIGBUS. So what grows leaves it
    /// some.
    pub(crate) fn leaves_spare(&self, bytes: u64) -> bool {
        if cfg!(miri) {
            return true;
        }
        // A file system without a size has no number of blocks.
        let Some(stat) = rustix::fs::fstatfs(&self.file).ok().filter(|stat| stat.f_blocks > 0) else {
            return true;
        };
        let block = u64::try_from(stat.f_bsize).unwrap_or(PAGE_BYTES);
        let spare = SPARE_BYTES_MAX.min(stat.f_blocks.saturating_mul(block) / SPARE_SHARE);
        bytes == 0 || stat.f_bavail.saturating_mul(block) >= bytes.saturating_add(spare)
    }

    /// Commits extents that have no pages so far and are about to be written, if wanted each as one page of 2 MiB where
    /// the kernel has them; whether they are.
    pub(crate) fn commit_fresh(&self, from_byte: u64, bytes: u64, huge: bool) -> io::Result<bool> {
        if !self.leaves_spare(bytes) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let is_huge = if huge {
            self.commit_extents(from_byte, bytes)?
        } else {
            self.commit(from_byte, bytes)?;
            false
        };
        if !is_huge {
            self.populate(from_byte, bytes);
        }
        Ok(is_huge)
    }

    fn commit_extents(&self, from_byte: u64, bytes: u64) -> io::Result<bool> {
        // The kernel makes a large page of small ones, of which there must be one. Where the file system is full
        // already the last call says so.
        let first_pages = (from_byte..from_byte + bytes).step_by(EXTENT_BYTES as usize);
        let is_huge = first_pages.map(|at| self.commit(at, PAGE_BYTES)).all(|done| done.is_ok())
            && self.collapse(from_byte, bytes);
        // What is there already takes no time, and what is missing is missed here and not in a fault.
        let done = self.commit(from_byte, bytes);
        if done.is_err() {
            self.punch(from_byte, bytes)?;
        }
        done.map(|()| is_huge)
    }

    /// Has the kernel make each of these extents one page of 2 MiB, with what is missing of it; whether all of them
    /// are. Their bytes stay as they are, and who touches them meanwhile waits for the copy of an extent.
    pub(crate) fn collapse(&self, from_byte: u64, bytes: u64) -> bool {
        let words = &self.words()[(from_byte / 8) as usize..((from_byte + bytes) / 8) as usize];
        let start = words.as_ptr().cast_mut().cast::<c_void>();
        if cfg!(miri) || failpoint::ask(Point::Madvise).is_err() {
            return false;
        }
        // SAFETY: the range lies in the mapping, and the call changes which pages hold its bytes, not the bytes.
        let done = unsafe { libc::madvise(start, words.len() * 8, MADV_COLLAPSE) };
        done == 0
    }

    /// Has the kernel clear and map the pages of a range that is going to be written, all at once: half of what it
    /// takes page by page, when each is met. Where the kernel cannot, they are met one by one.
    pub(crate) fn populate(&self, from_byte: u64, bytes: u64) {
        let words = &self.words()[(from_byte / 8) as usize..((from_byte + bytes) / 8) as usize];
        let start = words.as_ptr().cast_mut().cast::<c_void>();
        if cfg!(miri) || failpoint::ask(Point::Madvise).is_err() {
            return;
        }
        // SAFETY: the range lies in the mapping, and populating changes no byte of it.
        let _by_and_by = unsafe { madvise(start, words.len() * 8, Advice::LinuxPopulateWrite) };
    }

    /// As [`Map::commit`], for a range that mostly has pages: asks for those only that are missing.
    pub(crate) fn commit_holes(&self, from_byte: u64, bytes: u64) -> io::Result<()> {
        let end = from_byte + bytes;
        let mut at = from_byte;
        while at < end {
            let hole = rustix::fs::seek(&self.file, SeekFrom::Hole(at)).unwrap_or(at);
            if hole >= end {
                break;
            }
            // Beyond the last page there is no data to seek.
            let data = rustix::fs::seek(&self.file, SeekFrom::Data(hole)).map_or(end, |data| data.min(end));
            // A promised page that was never written counts as a hole; to ask for it again costs a call only.
            let to = data.max(hole + 1);
            self.commit(hole, to - hole)?;
            at = to;
        }
        Ok(())
    }

    /// Gives the pages of a range back; it reads as zeros afterwards.
    pub(crate) fn punch(&self, from_byte: u64, bytes: u64) -> io::Result<()> {
        self.fallocate(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, from_byte, bytes)
    }

    fn fallocate(&self, flags: FallocateFlags, from_byte: u64, bytes: u64) -> io::Result<()> {
        let punches = flags.contains(FallocateFlags::PUNCH_HOLE);
        failpoint::ask(if punches { Point::Punch } else { Point::Fallocate })?;
        if cfg!(miri) {
            return Ok(());
        }
        loop {
            match rustix::fs::fallocate(&self.file, flags, from_byte, bytes) {
                // A signal interrupts tmpfs between pages; the call is idempotent.
                Err(rustix::io::Errno::INTR) => {}
                other => return other.map_err(io::Error::from),
            }
        }
    }

    pub(crate) fn file(&self) -> &OwnedFd {
        &self.file
    }

    #[cfg(any(test, feature = "record"))]
    pub(crate) fn recorder(&self) -> &crate::record::Recorder {
        &self.recorder
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` and nothing borrowed from `self` is left.
        unsafe { unmap(self.words.as_ptr().cast::<c_void>(), self.words.len() * 8) };
    }
}

/// A file that has no name.
pub(crate) fn anonymous_file() -> rustix::io::Result<OwnedFd> {
    // Miri has no such files: it keeps the bytes beside.
    #[cfg(miri)]
    return Ok(std::fs::File::open("/dev/null").map_err(|_| rustix::io::Errno::NOENT)?.into());
    #[cfg(not(miri))]
    rustix::fs::memfd_create("arena", rustix::fs::MemfdFlags::CLOEXEC)
}

/// Gives back what was mapped.
///
/// # Safety
/// The range was mapped as a whole, and nothing refers to it any more.
pub(super) unsafe fn unmap(base: *mut c_void, bytes: usize) {
    // SAFETY: as the caller says.
    #[cfg(not(miri))]
    let unmapped = unsafe { munmap(base, bytes) };
    // SAFETY: as the caller says; `zeroed` was asked for as many bytes.
    #[cfg(miri)]
    let unmapped = unsafe { libc::munmap(base, bytes) == 0 }.then_some(()).ok_or(());
    debug_assert!(unmapped.is_ok(), "a mapping of ours can be unmapped");
}

/// Zeros of which only the touched pages take memory.
pub(super) fn zeroed(bytes: usize) -> io::Result<NonNull<c_void>> {
    #[cfg(not(miri))]
    let base = {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: no address is asked for, so no mapping of ours is replaced.
        unsafe { mmap_anonymous(ptr::null_mut(), bytes, prot, flags) }?
    };
    #[cfg(miri)]
    let base = {
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: as above.
        unsafe { libc::mmap(ptr::null_mut(), bytes, prot, flags, -1, 0) }
    };
    NonNull::new(base).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
}

/// Maps a file from its beginning at an address that is a multiple of an extent, so that whoever maps the file finds
/// its pages of 2 MiB where a page table can name them.
fn map_aligned(file: &OwnedFd, len: usize, prot: ProtFlags) -> io::Result<NonNull<c_void>> {
    failpoint::ask(Point::Mmap)?;
    let extent = EXTENT_BYTES as usize;
    let nothing = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: no address is asked for, so no mapping of ours is replaced.
    let room = unsafe { mmap_anonymous(ptr::null_mut(), len + extent, ProtFlags::empty(), nothing) }?;
    let before = room.addr().next_multiple_of(extent) - room.addr();
    let start = room.wrapping_byte_add(before);
    let flags = MapFlags::SHARED | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: what is replaced is a part of the room above, which is ours and which nobody else knows of.
    let mapped = unsafe { mmap(start, len, prot, flags, file.as_fd(), 0) };
    let rest = match &mapped {
        Ok(_) => [(room, before), (start.wrapping_byte_add(len), extent - before)],
        Err(_) => [(room, len + extent), (room, 0)],
    };
    for (from, bytes) in rest.into_iter().filter(|(_, bytes)| *bytes > 0) {
        // SAFETY: these bytes of the room were not replaced, or nothing was; nobody else knows of them.
        let unmapped = unsafe { munmap(from, bytes) };
        debug_assert!(unmapped.is_ok(), "a mapping of ours can be unmapped");
    }
    NonNull::new(mapped?).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
}

/// A file of bytes that several processes count in.
pub(crate) struct Bytes(NonNull<[AtomicU8]>);

// SAFETY: the mapping belongs to this value and is only accessed as atomic bytes.
unsafe impl Send for Bytes {}
// SAFETY: as above; atomic bytes may be shared between threads.
unsafe impl Sync for Bytes {}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bytes").field("len", &self.0.len()).finish_non_exhaustive()
    }
}

impl Bytes {
    /// Maps the first `bytes` (more than 0) of a file, readable and writable.
    pub(crate) fn new(file: &OwnedFd, bytes: u64) -> io::Result<Self> {
        failpoint::ask(Point::Mmap)?;
        let len = usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: no address is asked for, so no mapping of ours is replaced.
        let base = unsafe { mmap(ptr::null_mut(), len, prot, MapFlags::SHARED, file.as_fd(), 0) }?;
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self(NonNull::slice_from_raw_parts(base, len)))
    }
}

impl std::ops::Deref for Bytes {
    type Target = [AtomicU8];

    #[inline]
    fn deref(&self) -> &[AtomicU8] {
        // SAFETY: the mapping holds these bytes, lives as long as `self`, and atomics have interior mutability, so
        // nothing is claimed about what other threads and processes store.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` and nothing borrowed from `self` is left.
        let unmapped = unsafe { munmap(self.0.as_ptr().cast::<c_void>(), self.0.len()) };
        debug_assert!(unmapped.is_ok(), "a mapping of ours can be unmapped");
    }
}

/// Types of which all-zero bytes are a value.
///
/// # Safety
/// The implementor is valid when zeroed, and has no destructor.
pub(crate) unsafe trait Zeroable {}
// SAFETY: zero is a value of every integer.
unsafe impl Zeroable for AtomicU16 {}
// SAFETY: zero is a value of every integer.
unsafe impl Zeroable for AtomicU64 {}

/// A large private array of zeros of which only the touched pages take memory.
pub(crate) struct Lazy<T: Zeroable>(NonNull<[T]>);

// SAFETY: the array belongs to this value alone.
unsafe impl<T: Zeroable + Send> Send for Lazy<T> {}
// SAFETY: it hands out shared references only.
unsafe impl<T: Zeroable + Sync> Sync for Lazy<T> {}

impl<T: Zeroable> std::fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lazy").field("len", &self.0.len()).finish_non_exhaustive()
    }
}

impl<T: Zeroable> Lazy<T> {
    /// An array of `len` zeros.
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        failpoint::ask(Point::Mmap)?;
        let base = zeroed((len * size_of::<T>()).max(1))?.cast();
        Ok(Self(NonNull::slice_from_raw_parts(base, len)))
    }
}

impl<T: Zeroable> std::ops::Deref for Lazy<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping is page-aligned, holds these values, zeroed at first, and lives as long as `self`.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Zeroable> Drop for Lazy<T> {
    fn drop(&mut self) {
        let bytes = (self.0.len() * size_of::<T>()).max(1);
        // SAFETY: the range was mapped by `new` and nothing borrowed from `self` is left.
        unsafe { unmap(self.0.as_ptr().cast::<c_void>(), bytes) };
    }
}
