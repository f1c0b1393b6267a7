//! Large values that are sent from where they lie in the store.
//!
//! A turn's replies are bytes in the worker's buffer, and between them such values. They are pinned while the turn
//! lasts and no longer: what the socket does not take at once is copied behind the other replies that wait, so a peer
//! that reads slowly keeps no row from being evicted.

use std::io::IoSlice;

use engine::{Engine, PinnedRow};

use crate::limits::PINNED_VALUES_MAX;

/// Pieces of a turn's replies: a value, what stands before each, and what follows the last.
const SLICES: usize = 2 * PINNED_VALUES_MAX + 1;

/// The values of a turn's replies.
#[derive(Debug, Default)]
pub(crate) struct Pinned {
    values: Vec<Value>,
    bytes: usize,
}

#[derive(Debug)]
struct Value {
    /// The byte of the buffer that it stands before.
    at: usize,
    row: PinnedRow,
}

impl Pinned {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Bytes of all values.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is room for one more.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.values.len() < PINNED_VALUES_MAX
    }

    pub(crate) fn push(&mut self, at: usize, row: PinnedRow) {
        self.bytes += row.byte_count();
        self.values.push(Value { at, row });
    }

    /// Lets go of the values behind a byte of the buffer, which belong to a reply that is given up.
    pub(crate) fn truncate(&mut self, len: usize, engine: &Engine) {
        while let Some(value) = self.values.pop_if(|value| value.at > len) {
            self.bytes -= value.row.byte_count();
            engine.unpin(value.row);
        }
    }

    /// Lets go of all.
    pub(crate) fn unpin(&mut self, engine: &Engine) {
        self.bytes = 0;
        for value in self.values.drain(..) {
            engine.unpin(value.row);
        }
    }

    /// Gives the replies to `send`, buffer and values in their order.
    pub(crate) fn with_slices<T>(
        &self,
        out: &[u8],
        engine: &Engine,
        send: impl FnOnce(&[IoSlice<'_>]) -> T,
    ) -> T {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let (mut from, mut count) = (0, 0);
        for value in &self.values {
            slices[count] = IoSlice::new(&out[from..value.at]);
            slices[count + 1] = IoSlice::new(engine.pinned_bytes(&value.row));
            (from, count) = (value.at, count + 2);
        }
        slices[count] = IoSlice::new(&out[from..]);
        send(&slices[..=count])
    }
}
