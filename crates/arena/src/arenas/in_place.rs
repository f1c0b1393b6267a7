//! Rows of either arena that are used where they lie: held until they are sent, or received piece by piece.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::BorrowedFd;

use crate::Arena;
use crate::arenas::Arenas;
use crate::landing::{Landing, Received};
use crate::read::RowRead;
use crate::read::hold::HeldRow;

impl Arenas {
    /// Holds bytes `from..from + len` of the payload of a row just found; `None` where the row was recycled, or is
    /// about to be: then it is copied, or looked for again.
    pub fn hold(&self, read: &RowRead<'_>, from: usize, len: usize) -> Option<HeldRow> {
        self.file(read.is_shared()).hold(read, from, len)
    }

    /// The bytes that are held.
    pub fn held_bytes(&self, row: &HeldRow) -> &[u8] {
        self.file(row.is_shared).held_bytes(row)
    }

    /// Gives the row up to recycling again.
    pub fn let_go(&self, row: HeldRow) {
        let row = ManuallyDrop::new(row);
        self.file(row.is_shared).release(row.segment);
    }
}

impl Arenas {
    /// Appends bytes to the value. Panics if there are more than are missing.
    pub fn land(&self, landing: &mut Landing, bytes: &[u8]) {
        assert!(bytes.len() <= landing.missing(), "no more than the value has");
        self.landing_arena(landing).land(landing, bytes);
    }

    /// Reads once from a descriptor, up to `most` bytes of what is missing; when these are the last, what follows them
    /// goes to `spill`. `Ok` with nothing landed and nothing spilled is the end of the stream.
    pub fn receive(
        &self,
        landing: &mut Landing,
        from: BorrowedFd<'_>,
        most: usize,
        spill: &mut [u8],
    ) -> io::Result<Received> {
        self.landing_arena(landing).receive(landing, from, most, spill)
    }

    /// The value is whole: its row gets its check, and may be published.
    pub fn finish_landing(&self, landing: &Landing) {
        self.landing_arena(landing).finish_landing(landing);
    }

    /// What has come of the value.
    pub fn landed_bytes<'a>(&'a self, landing: &'a Landing) -> &'a [u8] {
        self.landing_arena(landing).landed_bytes(landing)
    }

    fn landing_arena(&self, landing: &Landing) -> &Arena {
        let arena = self.of(landing.location);
        assert_eq!(landing.base, arena.base(), "a row of this arena");
        arena
    }
}
