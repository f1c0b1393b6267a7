//! Rows of either arena that are used where they lie: pinned until they are sent, or received piece by piece.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::BorrowedFd;

use crate::Arena;
use crate::arenas::Arenas;
use crate::in_place::{InPlace, Received};
use crate::read::RowRead;
use crate::read::pin::PinnedRow;

impl Arenas {
    /// Holds bytes `from..from + len` of the payload of a row just found; `None` where the row was recycled, or is
    /// about to be: then it is copied, or looked for again.
    pub fn pin(&self, read: &RowRead<'_>, from: usize, len: usize) -> Option<PinnedRow> {
        self.file(read.is_shared()).pin(read, from, len)
    }

    /// The bytes that are pinned.
    pub fn pinned_bytes(&self, row: &PinnedRow) -> &[u8] {
        self.file(row.is_shared).pinned_bytes(row)
    }

    /// Gives the row up to recycling again.
    pub fn unpin(&self, row: PinnedRow) {
        let row = ManuallyDrop::new(row);
        self.file(row.is_shared).release(row.segment);
    }
}

impl Arenas {
    /// Appends bytes to the value. Panics if there are more than are missing.
    pub fn append(&self, in_place: &mut InPlace, bytes: &[u8]) {
        assert!(bytes.len() <= in_place.missing(), "no more than the value has");
        self.in_place_arena(in_place).append(in_place, bytes);
    }

    /// Reads once from a descriptor, up to `most` bytes of what is missing; when these are the last, what follows them
    /// goes to `spill`. `Ok` with nothing received and nothing spilled is the end of the stream.
    pub fn receive(
        &self,
        in_place: &mut InPlace,
        from: BorrowedFd<'_>,
        most: usize,
        spill: &mut [u8],
    ) -> io::Result<Received> {
        self.in_place_arena(in_place).receive(in_place, from, most, spill)
    }

    /// The value is whole: its row gets its check, and may be published.
    pub fn finish_in_place(&self, in_place: &InPlace) {
        self.in_place_arena(in_place).finish_in_place(in_place);
    }

    /// What has come of the value.
    pub fn received_bytes<'a>(&'a self, in_place: &'a InPlace) -> &'a [u8] {
        self.in_place_arena(in_place).received_bytes(in_place)
    }

    fn in_place_arena(&self, in_place: &InPlace) -> &Arena {
        let arena = self.of(in_place.location);
        assert_eq!(in_place.base, arena.base(), "a row of this arena");
        arena
    }
}
