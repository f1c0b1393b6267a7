//! Rows by their keys: reads and writes of one row, and items as memcached clients see them.

use std::ops::Deref;

use crate::memory::Memory;

pub(crate) mod dump;
pub(crate) mod given;
pub(crate) mod item;
pub(crate) mod judged;
pub(crate) mod lease;
pub(crate) mod read;
pub(crate) mod replica;
pub(crate) mod rewrite;
pub(crate) mod write;

/// Reads and writes of one row, over [`Memory`].
#[derive(Debug)]
pub struct Rows {
    memory: Memory,
}

impl Deref for Rows {
    type Target = Memory;

    #[inline]
    fn deref(&self) -> &Memory {
        &self.memory
    }
}

impl Rows {
    pub(crate) fn new(memory: Memory) -> Self {
        Self { memory }
    }
}
