//! Waiting for a row that another client refreshes, without a request.
//!
//! The superblock has a word for each shard. Whoever ends a lease (by a write, a removal, a flush) changes the word of
//! the row's shard after the row, and asks the kernel to wake who sleeps on it: `FUTEX_WAIT` needs no more than a
//! mapping that can be read. So a reader looks at the word, then at the row, and sleeps only while the word is as it
//! was: what happens in between keeps it awake. Rows that nobody had a lease for cost their writers nothing of this.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rustix::thread::futex;
use rustix::time::Timespec;

use crate::layout::{Hash, SHARDS, word};
use crate::{Arena, Mapped, Reader};

/// A look at the word of a row's shard, before the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    word: u64,
    value: u64,
}

fn wake_word(shard: usize) -> u64 {
    word::WAKES + shard as u64
}

impl Mapped {
    /// The half of a word that the kernel compares: the one that counts.
    fn futex(&self, word: u64) -> &AtomicU32 {
        let word: *const AtomicU64 = &raw const self.map.words()[word as usize];
        let half = word.cast::<AtomicU32>().wrapping_add(usize::from(cfg!(target_endian = "big")));
        // SAFETY: both halves lie inside the word, which lives as long as the mapping, and an AtomicU32 needs less
        // alignment than an AtomicU64. Through this reference nobody but the kernel looks at the word.
        unsafe { &*half }
    }
}

impl Arena {
    /// Wakes who waits for a row of this shard. Called after the row was published or removed.
    #[cold]
    pub fn wake(&self, shard: usize) {
        let at = wake_word(shard % SHARDS);
        // AcqRel in the exchange: pairs with the Acquire in `ticket`; who sees the new value sees the row.
        let mut now = self.map.load(at, Ordering::Relaxed);
        while !self.map.compare_exchange(at, now, now.wrapping_add(1)) {
            now = self.map.load(at, Ordering::Relaxed);
        }
        // That nobody could be woken is no error of the writer's: who waits looks again after a while.
        let _woken = futex::wake(self.futex(at), futex::Flags::empty(), i32::MAX as u32);
    }

    /// Wakes who waits for any row.
    pub fn wake_all(&self) {
        (0..SHARDS).for_each(|shard| self.wake(shard));
    }
}

impl Reader {
    /// To be taken before the row is looked at.
    pub fn ticket(&self, hash: Hash) -> Ticket {
        let word = wake_word(Arena::shard_of(hash));
        // Acquire: pairs with the exchange in `wake`.
        Ticket { word, value: self.map.load(word, Ordering::Acquire) }
    }

    /// Sleeps until somebody wakes the row's shard, at most so long. False: nobody did.
    pub fn wait(&self, ticket: Ticket, at_most: Duration) -> bool {
        let timeout = Timespec {
            tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: at_most.subsec_nanos().into(),
        };
        let slept =
            futex::wait(self.futex(ticket.word), futex::Flags::empty(), ticket.value as u32, Some(&timeout));
        slept != Err(rustix::io::Errno::TIMEDOUT)
    }
}
