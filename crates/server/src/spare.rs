//! Large input buffers between two uses.

use crate::limits::{READ_BUFFER_BYTES, SPARE_BUFFERS_BYTES};

/// The buffers that a worker keeps for large values, empty and with their memory.
#[derive(Debug, Default)]
pub(crate) struct SpareBuffers {
    buffers: Vec<Vec<u8>>,
    /// Capacity of all of them.
    bytes: usize,
}

impl SpareBuffers {
    /// A buffer, with memory where there is one.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let buffer = self.buffers.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
        buffer
    }

    /// Takes a buffer that is not used any more: a large one is kept while there is room.
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        if bytes >= READ_BUFFER_BYTES && self.bytes + bytes <= SPARE_BUFFERS_BYTES {
            buffer.clear();
            self.bytes += bytes;
            self.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SpareBuffers;
    use crate::limits::{READ_BUFFER_BYTES, SPARE_BUFFERS_BYTES};

    #[test]
    fn what_is_kept_is_bounded() {
        let mut spare = SpareBuffers::default();
        assert_eq!(spare.take().capacity(), 0);
        spare.give(Vec::with_capacity(READ_BUFFER_BYTES - 1));
        assert_eq!(spare.take().capacity(), 0, "a small one is made anew");
        let large = SPARE_BUFFERS_BYTES / 2;
        for _ in 0..3 {
            spare.give(vec![1; large]);
        }
        let kept: Vec<Vec<u8>> =
            std::iter::from_fn(|| Some(spare.take()).filter(|one| one.capacity() > 0)).collect();
        assert!(kept.len() == 2 && kept.iter().all(|one| one.is_empty() && one.capacity() >= large));
    }
}
