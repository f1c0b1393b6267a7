//! SQLite's heap, counted by thread, so that one statement can be refused memory without harm to another.
//!
//! SQLite's own cap (`sqlite3_hard_heap_limit64`) is one number for the whole process: a greedy statement
//! would make its neighbours fail. A connection here belongs to one thread, and a thread runs one statement at
//! a time, so a count in thread-local storage is a count by statement. It also lets SQLite's global memory
//! statistics, and the lock around them, be switched off.

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use libsqlite3_sys as ffi;
use store::patience;

use crate::limits::MUCH_FREED_BYTES;

/// Bytes in front of each block that hold its size: SQLite asks for it back (`xSize`).
const HEADER: usize = 8;
/// What SQLite requires of every block.
const ALIGN: usize = 8;

thread_local! {
    static USED: Cell<i64> = const { Cell::new(0) };
    static CAP: Cell<i64> = const { Cell::new(i64::MAX) };
    /// Whether SQLite compiles a statement.
    static COMPILES: Cell<bool> = const { Cell::new(false) };
}

/// Gives SQLite this allocator; does nothing when the process has already initialised SQLite.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let methods = ffi::sqlite3_mem_methods {
            xMalloc: Some(allocate),
            xFree: Some(free),
            xRealloc: Some(resize),
            xSize: Some(size),
            xRoundup: Some(round_up),
            xInit: Some(initialise),
            xShutdown: Some(shut_down),
            pAppData: ptr::null_mut(),
        };
        // SAFETY: SQLite copies the table of methods; the operation takes one pointer to it.
        unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_MALLOC, &raw const methods) };
        // SAFETY: the operation takes one int.
        unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0 as c_int) };
    });
}

/// Runs `body` with at most `bytes` more of SQLite's heap for this thread than it holds now.
pub fn capped<T>(bytes: usize, body: impl FnOnce() -> T) -> T {
    struct Restore(i64);
    impl Drop for Restore {
        fn drop(&mut self) {
            CAP.set(self.0);
        }
    }
    let before = Restore(CAP.get());
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    CAP.set(USED.get().saturating_add(bytes).min(before.0));
    body()
}

/// Has SQLite compile a statement, which ends with the thread's statement. SQLite itself asks in a few of its loops,
/// but compares each constant of a statement with all before it, for one. Whatever it does, it allocates.
pub(crate) fn compiling<T>(body: impl FnOnce() -> T) -> T {
    let before = COMPILES.replace(true);
    let result = body();
    COMPILES.set(before);
    result
}

/// Whether SQLite gets no more memory for what it compiles, because the statement must stop.
fn gives_up() -> bool {
    COMPILES.get() && patience::step()
}

/// Whether `more` bytes fit under the cap; counts them if so.
fn charge(more: i64) -> bool {
    let used = USED.get().saturating_add(more);
    if more > 0 && used > CAP.get() {
        return false;
    }
    USED.set(used);
    true
}

/// Whether so much was freed that the allocator should give memory back to the system.
static MUCH_FREED: AtomicBool = AtomicBool::new(false);

/// Takes note of what was freed at once.
pub fn note_freed(bytes: usize) {
    if bytes >= MUCH_FREED_BYTES {
        // Relaxed: a hint, in no order with anything.
        MUCH_FREED.store(true, Ordering::Relaxed);
    }
}

/// Gives memory back to the system where much was freed since the last call. glibc keeps what threads free for
/// their next statements: hundreds of megabytes after one that used as much, for hours.
pub fn give_memory_back() {
    if MUCH_FREED.load(Ordering::Relaxed) && MUCH_FREED.swap(false, Ordering::Relaxed) {
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        // SAFETY: it may be called at any time, by any thread.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

/// Counts memory that is not SQLite's but a function's which SQLite called, if so much fits under the cap.
pub fn take(bytes: usize) -> bool {
    charge(length(bytes))
}

/// Takes it from the count again.
pub fn give(bytes: usize) {
    note_freed(bytes);
    charge(-length(bytes));
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.checked_add(HEADER)?, ALIGN).ok()
}

fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

extern "C" fn allocate(bytes: c_int) -> *mut c_void {
    let Some(bytes) = usize::try_from(bytes).ok().filter(|&bytes| bytes > 0) else { return ptr::null_mut() };
    let Some(layout) = layout(bytes) else { return ptr::null_mut() };
    if gives_up() || !charge(length(bytes)) {
        return ptr::null_mut();
    }
    // SAFETY: the layout is never empty, for it has the header.
    let block = unsafe { alloc(layout) };
    if block.is_null() {
        charge(-length(bytes));
        return ptr::null_mut();
    }
    // SAFETY: the block is new and longer than HEADER.
    unsafe { after_header(block, bytes) }
}

/// Notes the size in the block and returns what SQLite gets of it.
///
/// # Safety
/// The block is ours and longer than HEADER.
unsafe fn after_header(block: *mut u8, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { block.cast::<[u8; HEADER]>().write(bytes.to_le_bytes()) };
    // SAFETY: the caller's promise.
    unsafe { block.add(HEADER) }.cast()
}

/// The block's start and the size that was asked for.
///
/// # Safety
/// `at` came from [`allocate`] or [`resize`] and was not freed.
unsafe fn block_of(at: *mut c_void) -> (*mut u8, usize) {
    // SAFETY: the caller's promise: HEADER bytes lie before it in the same block.
    let block = unsafe { at.cast::<u8>().sub(HEADER) };
    // SAFETY: the header was written when the block was made.
    let header = unsafe { block.cast::<[u8; HEADER]>().read() };
    (block, usize::from_le_bytes(header))
}

unsafe extern "C" fn free(at: *mut c_void) {
    if at.is_null() {
        return;
    }
    // SAFETY: SQLite frees only what this allocator gave out, once.
    let (block, bytes) = unsafe { block_of(at) };
    note_freed(bytes);
    charge(-length(bytes));
    if let Some(layout) = layout(bytes) {
        // SAFETY: the block was allocated with this very layout.
        unsafe { dealloc(block, layout) };
    }
}

unsafe extern "C" fn resize(at: *mut c_void, bytes: c_int) -> *mut c_void {
    // SAFETY: SQLite passes a live block of this allocator.
    let (block, before) = unsafe { block_of(at) };
    let Some(bytes) = usize::try_from(bytes).ok().filter(|&bytes| bytes > 0) else { return ptr::null_mut() };
    let (Some(old), Some(new)) = (layout(before), layout(bytes)) else { return ptr::null_mut() };
    if gives_up() || !charge(length(bytes) - length(before)) {
        return ptr::null_mut();
    }
    // SAFETY: the block has the old layout; the new size is not zero and was checked not to overflow.
    let block = unsafe { realloc(block, old, new.size()) };
    if block.is_null() {
        charge(length(before) - length(bytes));
        return ptr::null_mut();
    }
    // SAFETY: as in `allocate`.
    unsafe { after_header(block, bytes) }
}

unsafe extern "C" fn size(at: *mut c_void) -> c_int {
    if at.is_null() {
        return 0;
    }
    // SAFETY: SQLite passes a live block of this allocator.
    let (_, bytes) = unsafe { block_of(at) };
    c_int::try_from(bytes).unwrap_or(c_int::MAX)
}

extern "C" fn round_up(bytes: c_int) -> c_int {
    bytes.saturating_add(7) & !7
}

extern "C" fn initialise(_: *mut c_void) -> c_int {
    ffi::SQLITE_OK
}

extern "C" fn shut_down(_: *mut c_void) {}
