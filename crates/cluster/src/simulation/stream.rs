//! A stream as NATS has one, and what may become of it.

use std::collections::HashMap;
use std::sync::Arc;

/// See the module.
#[derive(Default)]
pub(super) struct Stream {
    messages: Vec<Arc<[u8]>>,
    names: HashMap<String, u64>,
    /// Messages that expired at its beginning.
    pub(super) expired: u64,
}

impl Stream {
    pub(super) fn end(&self) -> u64 {
        self.expired + self.messages.len() as u64
    }

    /// Stores a message: its number, and whether it was there.
    pub(super) fn store(
        &mut self,
        name: &str,
        bytes: &Arc<[u8]>,
        behind: Option<u64>,
    ) -> Result<(u64, bool), ()> {
        if let Some(known) = self.names.get(name) {
            return Ok((*known, true));
        }
        if behind.is_some_and(|behind| behind != self.end()) {
            return Err(());
        }
        self.messages.push(Arc::clone(bytes));
        self.names.insert(name.to_owned(), self.end());
        Ok((self.end(), false))
    }

    pub(super) fn get(&self, sequence: u64) -> Option<&Arc<[u8]>> {
        let at = sequence.checked_sub(self.expired + 1)?;
        self.messages.get(usize::try_from(at).ok()?)
    }

    pub(super) fn expire(&mut self, count: usize) {
        let count = count.min(self.messages.len());
        self.messages.drain(..count);
        self.expired += count as u64;
    }

    /// What was stored last is gone, as after a power loss.
    pub(super) fn cut(&mut self, count: usize) {
        let left = self.messages.len().saturating_sub(count);
        self.messages.truncate(left);
        let end = self.end();
        self.names.retain(|_, sequence| *sequence <= end);
    }

    /// The last two messages change places.
    pub(super) fn swap_last(&mut self) {
        if let [.., one, other] = self.messages.as_mut_slice() {
            std::mem::swap(one, other);
        }
    }
}
