//! A stream as NATS has one, or as a log has one, and what may become of it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::broken::Origin;
use crate::follow::Numbered;
use crate::member::Stored;

/// Places of a log between two messages, at most, in steps of eight.
const APART_MAX: u64 = 50;

/// A message of it.
struct Kept {
    sequence: u64,
    name: String,
    bytes: Arc<[u8]>,
}

/// See the module.
pub(super) struct Stream {
    numbered: Numbered,
    /// How far apart places are.
    random: fastrand::Rng,
    messages: Vec<Kept>,
    names: HashMap<String, u64>,
    /// What lies before is not kept any more.
    begin: u64,
    end: u64,
    pub(super) origin: Origin,
}

impl Stream {
    pub(super) fn new(numbered: Numbered, seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self {
            numbered,
            random,
            messages: Vec::new(),
            names: HashMap::new(),
            begin: 0,
            end: 0,
            origin: Origin::default(),
        }
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Stores a message: where, and whether it was there. A log does not know it again, and asks nobody what came
    /// before.
    pub(super) fn store(
        &mut self,
        name: &str,
        bytes: &Arc<[u8]>,
        behind: Option<u64>,
    ) -> Result<(Stored, bool), ()> {
        let by_places = self.numbered == Numbered::ByPlaces;
        if let Some(known) = self.names.get(name).filter(|_| !by_places) {
            return Ok((Stored::at(*known), true));
        }
        if behind.is_some_and(|behind| by_places || behind != self.end) {
            return Err(());
        }
        let before = self.end;
        let mut apart = || if by_places { 8 * self.random.u64(1..APART_MAX) } else { 0 };
        let sequence = before + 1 + apart();
        self.end = sequence + apart();
        self.messages.push(Kept { sequence, name: name.to_owned(), bytes: Arc::clone(bytes) });
        self.names.insert(name.to_owned(), sequence);
        Ok((Stored { behind: before, by: self.end }, false))
    }

    /// The message of this number, or the next that there is.
    pub(super) fn next(&self, sequence: u64) -> Option<(u64, Arc<[u8]>)> {
        let at = self.messages.partition_point(|own| own.sequence < sequence);
        self.messages.get(at).map(|own| (own.sequence, Arc::clone(&own.bytes)))
    }

    /// Whether nobody knows what was here.
    pub(super) fn is_gone(&self, sequence: u64) -> bool {
        self.numbered == Numbered::ByPlaces && sequence <= self.begin
    }

    pub(super) fn expire(&mut self, count: usize) {
        let count = count.min(self.messages.len());
        if let Some(last) = self.messages.drain(..count).next_back() {
            self.begin = last.sequence;
        }
    }

    /// The last messages are gone, as after a power loss. Says which those were. A log may get another timeline then.
    pub(super) fn cut(&mut self, count: usize) -> Vec<String> {
        let left = self.messages.len().saturating_sub(count);
        let lost = self.messages.split_off(left);
        self.end = self.messages.last().map_or(self.begin, |last| last.sequence);
        let end = self.end;
        self.names.retain(|_, sequence| *sequence <= end);
        self.origin.timeline += u32::from(self.numbered == Numbered::ByPlaces && self.random.bool());
        lost.into_iter().map(|own| own.name).collect()
    }

    /// All is gone, and the numbers begin again.
    pub(super) fn empty(&mut self) -> Vec<String> {
        let lost = self.cut(self.messages.len());
        let (numbered, seed) = (self.numbered, self.random.u64(..));
        *self = Self::new(numbered, seed);
        if numbered == Numbered::ByPlaces {
            self.origin.system = seed.to_string();
        }
        lost
    }

    /// The last two messages change places. Says which.
    pub(super) fn swap_last(&mut self) -> Vec<String> {
        let [.., one, other] = self.messages.as_mut_slice() else { return Vec::new() };
        std::mem::swap(one, other);
        std::mem::swap(&mut one.sequence, &mut other.sequence);
        vec![one.name.clone(), other.name.clone()]
    }
}
