//! A hash over all messages of a stream, each with what came before it. Two caches that have the same hash at the same
//! place have heard the same, whatever the stream's name, age and numbers say: a stream that lost its messages keeps
//! name and age, and one that was made again has the same numbers.
//!
//! A place is the number of a message. The numbers rise, and others may lie between those of two messages: NATS counts,
//! and PostgreSQL has places in its log.

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
    /// The last messages, the newest last.
    kept: VecDeque<Link>,
    /// The one before these, or the place where the history was taken up.
    before: Before,
}

/// A message that is remembered.
#[derive(Clone, Copy, Debug)]
struct Link {
    sequence: u64,
    hash: u64,
    /// The chain there, once it is known.
    chain: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Before {
    sequence: u64,
    hash: Option<u64>,
    chain: Option<u64>,
}

/// Where a number lies.
enum Place {
    Outside,
    Before,
    At(usize),
    /// Among those that are remembered, and none of them has it.
    Between,
}

impl Chain {
    /// From this place on; what is known of it there.
    pub(crate) fn at(sequence: u64, known: Option<Noted>) -> Self {
        let known = known.filter(|known| known.seen.sequence == sequence);
        let (hash, chain) = known.map(|known| (known.hash, known.seen.chain)).unzip();
        let before = Before { sequence, hash, chain };
        Self { epoch: known.map(|known| known.seen.epoch), kept: VecDeque::new(), before }
    }

    /// The last message.
    pub(crate) fn last(&self) -> u64 {
        self.kept.back().map_or(self.before.sequence, |link| link.sequence)
    }

    /// The number that it began with, once it is known.
    pub(crate) fn epoch(&self) -> Option<u64> {
        self.epoch
    }

    /// How far it goes.
    pub(crate) fn seen(&self) -> Option<Seen> {
        let sequence = self.last();
        Some(Seen { sequence, chain: self.value(sequence)?, epoch: self.epoch? })
    }

    /// What is to be written down for the next process.
    pub(crate) fn noted(&self) -> Option<Noted> {
        Some(Noted { seen: self.seen()?, hash: self.hash(self.last())? })
    }

    /// Whether this is what was heard as this number.
    pub(crate) fn recall(&self, sequence: u64, message: &[u8]) -> Compared {
        match (self.place(sequence), self.hash(sequence)) {
            (Place::Between, _) => Compared::Other,
            (_, None) => Compared::Unknown,
            (_, Some(hash)) if hash == hash_of(message) => Compared::Same,
            (_, Some(_)) => Compared::Other,
        }
    }

    /// Whether [`Self::recall`] knows the last message.
    pub(crate) fn knows_last(&self) -> bool {
        self.hash(self.last()).is_some()
    }

    /// The next message, and its number.
    pub(crate) fn push(&mut self, sequence: u64, message: &[u8]) {
        let hash = hash_of(message);
        let chain = self.value(self.last()).map(|chain| link(chain, hash));
        self.kept.push_back(Link { sequence, hash, chain });
        if self.kept.len() > CHAIN_KEPT
            && let Some(Link { sequence, hash, chain }) = self.kept.pop_front()
        {
            self.before = Before { sequence, hash: Some(hash), chain };
        }
    }

    /// The last message gives the chain its beginning.
    pub(crate) fn begin(&mut self, epoch: u64) {
        if let Some(last) = self.kept.back_mut() {
            last.chain = Some(epoch);
            self.epoch = Some(epoch);
        }
    }

    /// Takes what another cache knows, where nothing is known here. It is of no use where it lies outside of what was
    /// heard here.
    pub(crate) fn learn(&mut self, seen: Seen) {
        if self.epoch.is_some() {
            return;
        }
        let behind = match self.place(seen.sequence) {
            Place::Outside | Place::Between => return,
            Place::Before => {
                self.before.chain = Some(seen.chain);
                0
            }
            Place::At(at) => {
                self.kept[at].chain = Some(seen.chain);
                at + 1
            }
        };
        self.epoch = Some(seen.epoch);
        let mut chain = seen.chain;
        for own in self.kept.iter_mut().skip(behind) {
            chain = link(chain, own.hash);
            own.chain = Some(chain);
        }
    }

    pub(crate) fn compare(&self, seen: Seen) -> Compared {
        let Some(epoch) = self.epoch else { return Compared::Unknown };
        if epoch != seen.epoch {
            return Compared::Other;
        }
        match (self.place(seen.sequence), self.value(seen.sequence)) {
            // The other one has heard a message there.
            (Place::Between, _) => Compared::Other,
            (_, None) => Compared::Unknown,
            (_, Some(chain)) if chain == seen.chain => Compared::Same,
            (_, Some(_)) => Compared::Other,
        }
    }

    fn place(&self, sequence: u64) -> Place {
        if sequence < self.before.sequence || sequence > self.last() {
            return Place::Outside;
        }
        if sequence == self.before.sequence {
            return Place::Before;
        }
        self.kept.binary_search_by_key(&sequence, |own| own.sequence).map_or(Place::Between, Place::At)
    }

    fn value(&self, sequence: u64) -> Option<u64> {
        match self.place(sequence) {
            Place::Outside | Place::Between => None,
            Place::Before => self.before.chain,
            Place::At(at) => self.kept[at].chain,
        }
    }

    /// The hash of a message that is remembered.
    fn hash(&self, sequence: u64) -> Option<u64> {
        match self.place(sequence) {
            Place::Outside | Place::Between => None,
            Place::Before => self.before.hash,
            Place::At(at) => Some(self.kept[at].hash),
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
            chain.push(at as u64 + 1, message);
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
            known.push(known.last() + 1, message);
            if known.last() == 1 {
                known.begin(7);
            }
            seen.push(known.seen().unwrap());
        }
        for (from, taught) in [(5, 5), (5, 9), (5, 20), (12, 13)] {
            let mut cold = Chain::at(from, None);
            for message in &all[usize::try_from(from).unwrap()..] {
                cold.push(cold.last() + 1, message);
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
            chain.push(chain.last() + 1, b"more");
        }
        assert_eq!((chain.recall(3, b"c"), chain.recall(3, b"x")), (Compared::Same, Compared::Other));
        assert_eq!(chain.recall(2, b"b"), Compared::Unknown, "it lies too far back");
    }

    #[test]
    fn what_lies_far_back_is_not_compared() {
        let mut chain = begun(&[b"a"]);
        let first = chain.seen().unwrap();
        for _ in 0..=CHAIN_KEPT {
            chain.push(chain.last() + 1, b"more");
        }
        assert_eq!(chain.compare(first), Compared::Unknown);
        assert!(chain.kept.len() <= CHAIN_KEPT);
        let other = Seen { epoch: 8, ..first };
        assert_eq!(chain.compare(other), Compared::Other);
    }

    /// As in PostgreSQL's log, where a place is no count.
    #[test]
    fn numbers_may_lie_apart() {
        let heard = |places: &[u64], from: u64| {
            let mut chain = Chain::at(from, None);
            for (at, place) in places.iter().enumerate() {
                chain.push(*place, &[u8::try_from(at).unwrap()]);
                if at == 0 {
                    chain.begin(7);
                }
            }
            chain
        };
        let chain = heard(&[100, 180, 300], 90);
        let seen = |sequence, of: &Chain| Seen { sequence, chain: of.value(sequence).unwrap(), epoch: 7 };
        assert_eq!(chain.seen().unwrap().sequence, 300);
        assert_eq!(chain.compare(seen(180, &chain)), Compared::Same);
        // Another one has heard a message where none was heard here.
        assert_eq!(chain.compare(seen(200, &heard(&[100, 200], 90))), Compared::Other);
        assert_eq!(chain.compare(seen(90, &heard(&[90], 80))), Compared::Unknown, "it is no message here");
        assert_eq!(chain.recall(200, &[1]), Compared::Other);
        assert_eq!((chain.recall(180, &[1]), chain.recall(80, &[1])), (Compared::Same, Compared::Unknown));
        // One that came later learns it from the first place that both have.
        let mut cold = Chain::at(150, None);
        cold.push(180, &[1]);
        cold.push(300, &[2]);
        cold.learn(seen(100, &chain));
        assert_eq!(cold.seen(), None);
        cold.learn(seen(180, &chain));
        assert_eq!(cold.seen(), chain.seen());
    }
}
