//! The second look at a change.
//!
//! PostgreSQL writes a transaction to its log, from which it is streamed, before others see it: in between a standby
//! may have to confirm it. Whoever asks the source in that time is given the old row, and may store it here behind the
//! change's first deletion. No event comes after that. So what a transaction invalidates is deleted once more when a
//! snapshot of the source itself shows the transaction. A fill that read before that moment is either stored by then,
//! and goes, or its lease goes, and it is refused.
//!
//! Where rows are updated instead, the newest row that was applied under the key is written once more: that of a later
//! transaction, if one waits that the source does not show yet.

use std::collections::VecDeque;

use crate::batch::Batch;
use crate::limits::{SETTLE_LOOKS_MAX, UNSETTLED_KEYS_MAX, UNSETTLED_MAX, VALUES_BYTES_MAX};

/// Transactions that were applied together, and what they invalidated.
#[derive(Debug)]
struct Applied {
    /// Where the first of them was committed.
    from: u64,
    transactions: Vec<u64>,
    batch: Batch,
}

/// What was applied once, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Unsettled {
    waiting: VecDeque<Applied>,
    /// How many keys they have, and what their values take.
    keys: usize,
    bytes: usize,
}

impl Unsettled {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many groups of transactions wait.
    pub(crate) fn len(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Where the oldest of them was committed: a stream that goes on elsewhere has to begin no later.
    pub(crate) fn from(&self) -> Option<u64> {
        self.waiting.front().map(|one| one.from)
    }

    /// Takes over what was applied, from this place on.
    pub(crate) fn add(&mut self, from: u64, transactions: Vec<u64>, mut batch: Batch) {
        if self.bytes + batch.value_bytes() > VALUES_BYTES_MAX {
            batch.strip();
        }
        self.keys += batch.len();
        self.bytes += batch.value_bytes();
        self.waiting.push_back(Applied { from, transactions, batch });
        if self.waiting.len() > UNSETTLED_MAX || (self.keys > UNSETTLED_KEYS_MAX && self.waiting.len() > 1) {
            // The oldest half waits as one.
            let from = self.from().unwrap_or(0);
            let mut all = Applied { from, transactions: Vec::new(), batch: Batch::default() };
            for one in self.waiting.drain(..self.waiting.len().div_ceil(2)) {
                all.transactions.extend(one.transactions);
                all.batch.absorb(one.batch);
            }
            self.waiting.push_front(all);
            self.count();
        }
    }

    fn count(&mut self) {
        self.keys = self.waiting.iter().map(|one| one.batch.len()).sum();
        self.bytes = self.waiting.iter().map(|one| one.batch.value_bytes()).sum();
    }

    /// The same for other numbers of the targets.
    pub(crate) fn renumber(&mut self, number: &dyn Fn(usize) -> Option<usize>) {
        self.waiting.iter_mut().for_each(|one| one.batch.renumber(number));
    }

    /// What is to be applied again: the source shows all transactions of it.
    pub(crate) fn settled(&mut self, snapshot: &Snapshot) -> Batch {
        let mut batch = Batch::default();
        self.waiting.retain_mut(|one| {
            one.transactions.retain(|one| !snapshot.shows(*one));
            if one.transactions.is_empty() {
                batch.absorb(std::mem::take(&mut one.batch));
            }
            !one.transactions.is_empty()
        });
        self.count();
        if batch.value_bytes() > 0 {
            self.renew(&mut batch);
        }
        batch
    }

    /// Puts the newest row that was applied in the place of an older one.
    fn renew(&self, batch: &mut Batch) {
        if batch.len() * self.waiting.len() > SETTLE_LOOKS_MAX {
            return batch.strip();
        }
        for one in &self.waiting {
            batch.renew(&one.batch);
        }
    }
}

/// Which transactions a reader of the source sees. Their numbers are those of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Snapshot {
    /// Of PostgreSQL: those before `end` that do not run.
    Running {
        /// The first that had not begun.
        end: u32,
        /// Those before that had not ended.
        running: Vec<u32>,
    },
    /// Of MariaDB: those that its log has before this place.
    Place(u64),
}

impl Snapshot {
    /// Reads PostgreSQL's `xmin:xmax:xip,...`: numbers of 64 bits, of which the stream has the lower half.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut parts = text.split(':').skip(1);
        let lower = |number: &str| u32::try_from(number.parse::<u64>().ok()? & 0xffff_ffff).ok();
        let end = lower(parts.next()?)?;
        let running = parts.next()?.split(',').filter(|number| !number.is_empty());
        Some(Self::Running { end, running: running.map(lower).collect::<Option<_>>()? })
    }

    /// Whether what a transaction of the stream did is seen. Numbers of 32 bits turn around, and are never as far apart
    /// as half of them.
    pub(crate) fn shows(&self, transaction: u64) -> bool {
        match self {
            Self::Running { end, running } => {
                let xid = (transaction & 0xffff_ffff) as u32;
                let began = xid.wrapping_sub(*end).cast_signed() < 0;
                began && !running.contains(&xid)
            }
            Self::Place(place) => transaction <= *place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Keys;
    use crate::change::{Field, Row};

    fn one(target: usize) -> Batch {
        let mut batch = Batch::default();
        *batch.keys(target) = Keys::All;
        batch
    }

    fn settled(unsettled: &mut Unsettled, snapshot: &str) -> Batch {
        unsettled.settled(&Snapshot::read(snapshot).unwrap())
    }

    #[test]
    fn snapshots_are_read() {
        let snapshot = Snapshot::read("739:741:739,740").unwrap();
        assert_eq!(
            [738, 739, 740, 741, 742].map(|xid| snapshot.shows(xid)),
            [true, false, false, false, false]
        );
        assert!(Snapshot::read("739:740:").unwrap().shows(739));
        // Behind the turn of 32 bits.
        let turned = Snapshot::read("4294967300:4294967302:4294967300").unwrap();
        assert_eq!(
            [u32::MAX.into(), 3, 4, 5, 6].map(|xid| turned.shows(xid)),
            [true, true, false, true, false]
        );
        assert_eq!([6, 7, 8].map(|place| Snapshot::Place(7).shows(place)), [true, true, false]);
        for wrong in ["", "1", "1:x:", "1:2:x"] {
            assert_eq!(Snapshot::read(wrong), None, "{wrong}");
        }
    }

    /// The table of the race: what was streamed is deleted again when the source shows it, and not before.
    #[test]
    fn a_change_is_settled_when_the_source_shows_it() {
        let mut unsettled = Unsettled::default();
        unsettled.add(10, vec![738], one(1));
        unsettled.add(20, vec![739, 740], one(2));
        assert_eq!(unsettled.from(), Some(10));
        assert_eq!(settled(&mut unsettled, "739:741:739"), one(1));
        assert_eq!(unsettled.from(), Some(20));
        assert_eq!(settled(&mut unsettled, "739:741:739"), Batch::default());
        assert_eq!(settled(&mut unsettled, "741:741:"), one(2));
        assert!(unsettled.is_empty());
    }

    fn row(text: &str) -> Batch {
        let mut batch = Batch::default();
        let key: crate::change::Key = [b"k"[..].into()].into();
        let fields = [Field::Text(text.as_bytes().into())].into();
        batch.keys(1).change(key, Row { fields, from: None });
        batch
    }

    /// A row that is written for the second time is not older than what was applied since.
    #[test]
    fn the_newest_row_is_written_again() {
        let mut unsettled = Unsettled::default();
        unsettled.add(0, vec![738], row("old"));
        unsettled.add(0, vec![739], row("new"));
        assert_eq!(settled(&mut unsettled, "739:741:739"), row("new"));
        assert_eq!(settled(&mut unsettled, "741:741:"), row("new"));
        unsettled.add(0, vec![741], row("old"));
        let mut gone = Batch::default();
        gone.keys(1).add(&[b"k"]);
        unsettled.add(0, vec![742], gone.clone());
        assert_eq!(settled(&mut unsettled, "742:743:742"), gone);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut unsettled = Unsettled::default();
        for xid in 1..=12_000 {
            unsettled.add(xid, vec![xid], one(1));
            assert!(unsettled.waiting.len() <= UNSETTLED_MAX);
            assert_eq!(unsettled.from(), Some(1));
        }
        assert_eq!(settled(&mut unsettled, "1:1000000:"), one(1));
    }
}
