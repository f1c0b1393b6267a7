//! Keys that left the small queue not long ago.

use std::collections::{HashSet, VecDeque};

/// A bounded FIFO set of row hashes.
#[derive(Debug, Default)]
pub struct Ghost {
    order: VecDeque<u64>,
    members: HashSet<u64>,
    capacity: usize,
}

impl Ghost {
    /// A ghost that remembers so many keys.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// How many keys it remembers.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Changes how many keys it remembers.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.shrink();
    }

    /// Takes a key in.
    pub fn insert(&mut self, hash: u64) {
        if self.members.insert(hash) {
            self.order.push_back(hash);
            self.shrink();
        }
    }

    /// Whether a key is remembered.
    pub fn contains(&self, hash: u64) -> bool {
        self.members.contains(&hash)
    }

    /// Bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        self.order.capacity() * 8 + self.members.capacity() * 9
    }

    fn shrink(&mut self) {
        while self.order.len() > self.capacity {
            if let Some(oldest) = self.order.pop_front() {
                self.members.remove(&oldest);
            }
        }
    }
}
