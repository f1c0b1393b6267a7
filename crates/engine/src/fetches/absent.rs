//! Keys of which the source has no row (`miss_ttl`).

use std::collections::{HashMap, VecDeque};

use crate::limits::{ABSENT_BYTES_MAX, ABSENT_KEYS_MAX};

/// A table's number, and a key in it.
pub(crate) type Place = (u64, Box<[u8]>);

/// Keys without a row, until a moment. The oldest go first where there is no room.
#[derive(Debug, Default)]
pub(super) struct Absent {
    /// Until when, by the clock's nanoseconds; and which entry of the queue it is.
    keys: HashMap<Place, (u64, u64)>,
    queue: VecDeque<(Place, u64)>,
    bytes: usize,
    serial: u64,
}

impl Absent {
    pub(super) fn add(&mut self, place: Place, until_ns: u64) {
        self.serial += 1;
        self.bytes += place.1.len();
        self.queue.push_back((place.clone(), self.serial));
        self.keys.insert(place, (until_ns, self.serial));
        while self.queue.len() > ABSENT_KEYS_MAX || self.bytes > ABSENT_BYTES_MAX {
            let Some((oldest, serial)) = self.queue.pop_front() else { return };
            self.bytes -= oldest.1.len();
            if self.keys.get(&oldest).is_some_and(|(_, own)| *own == serial) {
                self.keys.remove(&oldest);
            }
        }
    }

    pub(super) fn has(&mut self, place: &Place, now_ns: u64) -> bool {
        match self.keys.get(place) {
            Some((until, _)) if *until > now_ns => true,
            Some(_) => {
                self.keys.remove(place);
                false
            }
            None => false,
        }
    }

    /// Such a row may be there by now.
    pub(super) fn forget(&mut self, place: &Place) {
        self.keys.remove(place);
    }

    /// The same for all of a table.
    pub(super) fn forget_table(&mut self, table: u64) {
        if !self.keys.is_empty() {
            self.keys.retain(|(number, _), _| *number != table);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: usize) -> Place {
        (1, number.to_be_bytes().into())
    }

    #[test]
    fn what_is_absent_is_bounded_and_ends() {
        let mut absent = Absent::default();
        for number in 0..=ABSENT_KEYS_MAX {
            absent.add(place(number), 10);
        }
        assert!(!absent.has(&place(0), 0) && absent.has(&place(1), 0));
        assert!(!absent.has(&place(1), 10), "its time has passed");
        absent.add(place(2), 30);
        absent.forget(&place(3));
        assert_eq!([2, 3, 4].map(|number| absent.has(&place(number), 9)), [true, false, true]);
        assert!(absent.queue.len() <= ABSENT_KEYS_MAX);
        absent.forget_table(1);
        assert!(absent.is_empty());
        absent.add((1, vec![0; ABSENT_BYTES_MAX + 1].into()), 10);
        assert!(absent.is_empty() && absent.bytes == 0);
    }
}
