//! Memory for a page of 2 MiB, found and cleared before the page is asked for.
//!
//! A virtual machine that gives free memory back to its host gets it again piece by piece, at the first touch: some
//! milliseconds for 2 MiB. The kernel clears a file's page of 2 MiB in one go. Without preemption no other thread runs
//! on that processor meanwhile. A process's own page is cleared in pieces, and others run between them. So the memory
//! is taken as such a page first, and given back at once. The kernel gives out first what was given back last.

use std::ffi::c_void;
use std::io;

use rustix::mm::{Advice, madvise};

use crate::file::map::{unmap, zeroed};
use crate::layout::EXTENT_BYTES;

/// Has 2 MiB in one piece at hand for whom this thread asks next. A kernel that does not do so is as slow as before.
pub(crate) fn warm_extent() {
    if !cfg!(miri) {
        // Nobody waits for it, and what asks for the page comes out as it would have.
        let _as_before = touch_extent();
    }
}

fn touch_extent() -> io::Result<()> {
    let extent = EXTENT_BYTES as usize;
    // Somewhere in two extents one begins.
    let room = zeroed(2 * extent)?;
    let before = room.addr().get().next_multiple_of(extent) - room.addr().get();
    let start = room.as_ptr().wrapping_byte_add(before);
    // SAFETY: the extent lies in the room above, which is ours; the advice changes no byte of it.
    let advise = |advice| unsafe { madvise(start, extent, advice) };
    let advised = advise(Advice::LinuxHugepage).and_then(|()| advise(Advice::LinuxPopulateWrite));
    // SAFETY: it was mapped above as a whole, and nobody else knows of it.
    unsafe { unmap(room.as_ptr().cast::<c_void>(), 2 * extent) };
    Ok(advised?)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::touch_extent;

    #[test]
    fn an_extent_is_touched_and_given_back() {
        for _ in 0..64 {
            // A kernel without pages of 2 MiB refuses the first advice; nothing else may go wrong.
            let refused = touch_extent().err().and_then(|error| error.raw_os_error());
            assert!(refused.is_none_or(|errno| errno == libc::EINVAL), "{refused:?}");
        }
    }
}
