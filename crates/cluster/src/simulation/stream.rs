//! A stream as NATS has one, and what may become of it.

use std::collections::HashMap;
use std::sync::Arc;

/// See the module.
#[derive(Default)]
pub(super) struct Stream {
    /// Each with its name.
    messages: Vec<(String, Arc<[u8]>)>,
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
        self.messages.push((name.to_owned(), Arc::clone(bytes)));
        self.names.insert(name.to_owned(), self.end());
        Ok((self.end(), false))
    }

    pub(super) fn get(&self, sequence: u64) -> Option<&Arc<[u8]>> {
        let at = sequence.checked_sub(self.expired + 1)?;
        self.messages.get(usize::try_from(at).ok()?).map(|(_, bytes)| bytes)
    }

    pub(super) fn expire(&mut self, count: usize) {
        let count = count.min(self.messages.len());
        self.messages.drain(..count);
        self.expired += count as u64;
    }

    /// What was stored last is gone, as after a power loss. Says what that was.
    pub(super) fn cut(&mut self, count: usize) -> Vec<String> {
        let left = self.messages.len().saturating_sub(count);
        let lost = self.messages.split_off(left);
        let end = self.end();
        self.names.retain(|_, sequence| *sequence <= end);
        lost.into_iter().map(|(name, _)| name).collect()
    }

    /// All is gone, and the numbers begin again.
    pub(super) fn empty(&mut self) -> Vec<String> {
        let lost = self.cut(self.messages.len());
        *self = Self::default();
        lost
    }

    /// The last two messages change places. Says which.
    pub(super) fn swap_last(&mut self) -> Vec<String> {
        let [.., one, other] = self.messages.as_mut_slice() else { return Vec::new() };
        std::mem::swap(one, other);
        vec![one.0.clone(), other.0.clone()]
    }
}
