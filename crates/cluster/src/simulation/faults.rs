//! What goes wrong with the stream, the network and the caches.

use super::world::World;
use super::{CUTS, SECOND_NS};
use crate::follow::Numbered;

/// A fault comes about once in so many steps; some twice as seldom.
const SELDOM: u32 = 400;

impl World {
    pub(super) fn break_something(&mut self) {
        self.break_stream();
        self.break_network();
        let at = self.random.usize(..self.caches.len());
        if self.chance(SELDOM / 4) {
            let warm = self.random.bool();
            self.start_again(at, warm);
            self.count(if warm { "started warm" } else { "started cold" });
        }
    }

    fn break_stream(&mut self) {
        if self.chance(SELDOM) {
            self.stream.expire(1_000_000);
            self.count("expired");
            // A connection to a database has its part of the log, or is ended.
            if self.numbered == Numbered::ByPlaces {
                self.end_deliveries();
            }
        }
        if self.chance(SELDOM * 2) {
            let lost = self.stream.empty();
            self.lose(&lost, "emptied or removed");
            self.end_deliveries();
        }
        if self.chance(SELDOM * 2) {
            let count = self.random.usize(CUTS);
            let lost = self.stream.cut(count);
            self.lose(&lost, "cut");
            self.end_deliveries();
        }
        if self.numbered == Numbered::OneByOne && self.chance(SELDOM * 2) {
            // Who has heard one of them may miss the other.
            let swapped = self.stream.swap_last();
            self.lose(&swapped, "reordered");
        }
        if self.chance(SELDOM * 2) {
            self.store_garbage();
            self.count("garbage");
        }
    }

    fn break_network(&mut self) {
        if self.chance(SELDOM / 4) {
            let at = self.random.usize(..self.caches.len());
            self.begin_delivery_again(at);
            self.count("delivered from the start");
        }
        if self.chance(SELDOM * 2) {
            self.away_until = self.now + self.random.u64(1..20) * SECOND_NS;
            self.count("away");
        }
        if self.chance(SELDOM / 4) {
            let at = self.random.usize(..self.caches.len());
            self.caches[at].cut_off_until = self.now + self.random.u64(1..40) * SECOND_NS;
            self.count("cut off");
        }
        if self.chance(SELDOM * 2) {
            let until = self.now + self.random.u64(1..40) * SECOND_NS;
            for at in 0..self.caches.len() {
                if self.random.bool() {
                    self.caches[at].cut_off_until = until;
                }
            }
            self.count("partition");
        }
    }
}
