//! A hash over all messages of a stream, each with what came before it. Two caches that have the same hash at the same
//! place have heard the same, whatever the stream's name, age and numbers say: a stream that lost its messages keeps
//! name and age, and one that was made again has the same numbers.

use std::collections::VecDeque;

use rapidhash::v3::{DEFAULT_RAPID_SECRETS, rapidhash_v3_seeded};

use crate::limits::CHAIN_KEPT;

/// How far a cache has heard, and by which history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The last message.
    pub(crate) sequence: u64,
    /// The chain there.
    pub(crate) chain: u64,
    /// The number that the chain began with.
    pub(crate) epoch: u64,
}

/// What a cache writes down for its next process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Noted {
    pub(crate) seen: Seen,
    /// The hash of the last message alone.
    pub(crate) hash: u64,
}

/// What somebody else's [`Seen`] says of our own history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    Same,
    /// It lies before what is remembered, or nothing is known yet.
    Unknown,
    Other,
}

/// The chain so far.
#[derive(Debug)]
pub(crate) struct Chain {
    epoch: Option<u64>,
    /// The last message.
    last: u64,
    /// The hashes of the last messages, the newest last, and the chain at each, once it is known.
    kept: VecDeque<(u64, Option<u64>)>,
    /// The hash of the message before these, and the chain there.
    before: (Option<u64>, Option<u64>),
}

impl Chain {
    /// From this place on; what is known of it there.
    pub(crate) fn at(sequence: u64, known: Option<Noted>) -> Self {
        let known = known.filter(|known| known.seen.sequence == sequence);
        let before = known.map(|known| (known.hash, known.seen.chain)).unzip();
        Self { epoch: known.map(|known| known.seen.epoch), last: sequence, kept: VecDeque::new(), before }
    }

    /// The last message.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The number that it began with, once it is known.
    pub(crate) fn epoch(&self) -> Option<u64> {
        self.epoch
    }

    /// How far it goes.
    pub(crate) fn seen(&self) -> Option<Seen> {
        let chain = self.value(self.last)?;
        Some(Seen { sequence: self.last, chain, epoch: self.epoch? })
    }

    /// What is to be written down for the next process.
    pub(crate) fn noted(&self) -> Option<Noted> {
        Some(Noted { seen: self.seen()?, hash: self.hash(self.last)? })
    }

    /// Whether this is what was heard as this number.
    pub(crate) fn recall(&self, sequence: u64, message: &[u8]) -> Compared {
        match self.hash(sequence) {
            None => Compared::Unknown,
            Some(hash) if hash == hash_of(message) => Compared::Same,
            Some(_) => Compared::Other,
        }
    }

    /// Whether [`Self::recall`] knows the last message.
    pub(crate) fn knows_last(&self) -> bool {
        self.hash(self.last).is_some()
    }

    /// The next message.
    pub(crate) fn push(&mut self, message: &[u8]) {
        let hash = hash_of(message);
        let chain = self.value(self.last).map(|chain| link(chain, hash));
        self.last += 1;
        self.kept.push_back((hash, chain));
        if self.kept.len() > CHAIN_KEPT
            && let Some((hash, chain)) = self.kept.pop_front()
        {
            self.before = (Some(hash), chain);
        }
    }

    /// The last message gives the chain its beginning.
    pub(crate) fn begin(&mut self, epoch: u64) {
        if let Some((_, chain)) = self.kept.back_mut() {
            *chain = Some(epoch);
            self.epoch = Some(epoch);
        }
    }

    /// Takes what another cache knows, where nothing is known here. It is of no use where it lies outside of what was
    /// heard here.
    pub(crate) fn learn(&mut self, seen: Seen) {
        if self.epoch.is_some() {
            return;
        }
        let Some(at) = self.place(seen.sequence) else { return };
        self.epoch = Some(seen.epoch);
        let mut chain = seen.chain;
        match at.checked_sub(1).and_then(|at| self.kept.get_mut(at)) {
            Some((_, own)) => *own = Some(chain),
            None => self.before.1 = Some(chain),
        }
        for (hash, own) in self.kept.iter_mut().skip(at) {
            chain = link(chain, *hash);
            *own = Some(chain);
        }
    }

    pub(crate) fn compare(&self, seen: Seen) -> Compared {
        let Some(epoch) = self.epoch else { return Compared::Unknown };
        if epoch != seen.epoch {
            return Compared::Other;
        }
        match self.value(seen.sequence) {
            None => Compared::Unknown,
            Some(chain) if chain == seen.chain => Compared::Same,
            Some(_) => Compared::Other,
        }
    }

    /// How many of the messages that are remembered lie up to this one; none: it lies outside.
    fn place(&self, sequence: u64) -> Option<usize> {
        let behind = usize::try_from(self.last.checked_sub(sequence)?).ok()?;
        self.kept.len().checked_sub(behind)
    }

    fn value(&self, sequence: u64) -> Option<u64> {
        match self.place(sequence)?.checked_sub(1) {
            None => self.before.1,
            Some(at) => self.kept.get(at)?.1,
        }
    }

    /// The hash of a message that is remembered.
    fn hash(&self, sequence: u64) -> Option<u64> {
        match self.place(sequence)?.checked_sub(1) {
            None => self.before.0,
            Some(at) => Some(self.kept.get(at)?.0),
        }
    }
}

fn hash_of(message: &[u8]) -> u64 {
    rapidhash_v3_seeded(message, &DEFAULT_RAPID_SECRETS)
}

fn link(chain: u64, hash: u64) -> u64 {
    let mut both = [0; 16];
    both[..8].copy_from_slice(&chain.to_le_bytes());
    both[8..].copy_from_slice(&hash.to_le_bytes());
    rapidhash_v3_seeded(&both, &DEFAULT_RAPID_SECRETS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(messages: &[&[u8]]) -> Chain {
        let mut chain = Chain::at(0, None);
        for (at, message) in messages.iter().enumerate() {
            chain.push(message);
            if at == 0 {
                chain.begin(7);
            }
        }
        chain
    }

    #[test]
    fn the_same_messages_give_the_same_chain() {
        let (one, other) = (begun(&[b"a", b"b", b"c"]), begun(&[b"a", b"b", b"c"]));
        assert_eq!(one.seen(), other.seen());
        assert_eq!(one.compare(other.seen().unwrap()), Compared::Same);
        let swapped = begun(&[b"a", b"c", b"b"]);
        assert_eq!(one.compare(swapped.seen().unwrap()), Compared::Other);
        let earlier = begun(&[b"a", b"b"]).seen().unwrap();
        assert_eq!(one.compare(earlier), Compared::Same);
        assert_eq!(begun(&[b"a", b"x", b"c"]).compare(earlier), Compared::Other);
    }

    #[test]
    fn a_cold_cache_learns_the_chain() {
        let all: Vec<Vec<u8>> = (0..20_u8).map(|byte| vec![byte]).collect();
        let mut known = begun(&[]);
        let mut seen = Vec::new();
        for message in &all {
            known.push(message);
            if known.last() == 1 {
                known.begin(7);
            }
            seen.push(known.seen().unwrap());
        }
        for (from, taught) in [(5, 5), (5, 9), (5, 20), (12, 13)] {
            let mut cold = Chain::at(from, None);
            for message in &all[usize::try_from(from).unwrap()..] {
                cold.push(message);
            }
            assert_eq!(cold.compare(seen[0]), Compared::Unknown);
            cold.learn(seen[3]);
            assert_eq!(cold.seen(), None, "that was before it came");
            cold.learn(seen[taught - 1]);
            assert_eq!(cold.seen(), known.seen(), "{from} {taught}");
            assert_eq!(cold.compare(seen[19]), Compared::Same);
        }
        let went_on = Chain::at(20, known.noted());
        assert_eq!(went_on.seen(), known.seen());
        assert_eq!(Chain::at(19, known.noted()).seen(), None);
    }

    #[test]
    fn a_message_is_known_again() {
        let mut chain = begun(&[b"a", b"b", b"c"]);
        assert_eq!((chain.recall(3, b"c"), chain.recall(2, b"b")), (Compared::Same, Compared::Same));
        assert_eq!((chain.recall(3, b"x"), chain.recall(2, b"c")), (Compared::Other, Compared::Other));
        assert_eq!((chain.recall(0, b"a"), chain.recall(4, b"a")), (Compared::Unknown, Compared::Unknown));
        // The next process knows the last one, and none before.
        let next = Chain::at(3, chain.noted());
        assert!(next.knows_last() && !Chain::at(3, None).knows_last());
        assert_eq!((next.recall(3, b"c"), next.recall(3, b"x")), (Compared::Same, Compared::Other));
        assert_eq!(next.recall(2, b"b"), Compared::Unknown);
        for _ in 0..CHAIN_KEPT {
            chain.push(b"more");
        }
        assert_eq!((chain.recall(3, b"c"), chain.recall(3, b"x")), (Compared::Same, Compared::Other));
        assert_eq!(chain.recall(2, b"b"), Compared::Unknown, "it lies too far back");
    }

    #[test]
    fn what_lies_far_back_is_not_compared() {
        let mut chain = begun(&[b"a"]);
        let first = chain.seen().unwrap();
        for _ in 0..=CHAIN_KEPT {
            chain.push(b"more");
        }
        assert_eq!(chain.compare(first), Compared::Unknown);
        assert!(chain.kept.len() <= CHAIN_KEPT);
        let other = Seen { epoch: 8, ..first };
        assert_eq!(chain.compare(other), Compared::Other);
    }
}
