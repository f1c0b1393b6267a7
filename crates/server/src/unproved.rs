//! Connections of peers that have proved nothing: they get a part of all places, so that nobody who may come in is kept
//! out by those who may not.
//!
//! Both listeners take these places. Where all are taken, one who has failed makes room for a newcomer, or else the
//! oldest. It loses its place at once, and its connection with the next sweep of the thread that has it.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{Tick, ticks_between};
use parking_lot::Mutex;

use crate::limits::{UNPROVED_MIN, UNPROVED_SAFE, UNPROVED_SHARE};
use crate::pace::ticks;
use crate::shared::Shared;

/// The places that are taken.
#[derive(Debug, Default)]
pub(crate) struct UnprovedPlaces(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    /// Who makes room first comes first.
    places: BTreeMap<Order, Arc<Place>>,
}

/// In which order places are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    /// Its peer may still prove something. One who has failed is known to need no more time.
    hopeful: bool,
    /// Rises.
    serial: u64,
}

#[derive(Debug)]
struct Place {
    since: Tick,
    /// Where its peer is; none: on this machine, by a socket's file.
    address: Option<IpAddr>,
    /// Another connection has it now. Relaxed: the thread that serves the connection looks again and again.
    lost: AtomicBool,
}

/// One of them. Given back when it is dropped: the peer has proved its role, or is gone.
#[derive(Debug)]
pub(crate) struct Unproved {
    shared: Arc<Shared>,
    place: Arc<Place>,
    order: Order,
}

impl Unproved {
    /// A place for one more, if there is one or somebody makes room.
    pub(crate) fn admit(shared: &Arc<Shared>, now: Tick, address: Option<IpAddr>) -> Option<Self> {
        let places = shared.engine.connections_max.load(Ordering::Relaxed) / UNPROVED_SHARE;
        let mut taken = shared.unproved.0.lock();
        taken.admit(now, address, places.max(UNPROVED_MIN))?;
        let order = Order { hopeful: true, serial: taken.next };
        taken.next += 1;
        let place = Arc::new(Place { since: now, address, lost: AtomicBool::new(false) });
        taken.places.insert(order, Arc::clone(&place));
        drop(taken);
        Some(Self { shared: Arc::clone(shared), place, order })
    }

    /// The peer's proof was wrong: it is the first to make room.
    pub(crate) fn note_failure(&mut self) {
        let mut taken = self.shared.unproved.0.lock();
        if let Some(place) = taken.places.remove(&self.order) {
            self.order.hopeful = false;
            taken.places.insert(self.order, place);
        }
    }

    /// Whether it had to make room: its connection is to be closed.
    pub(crate) fn is_lost(&self) -> bool {
        self.place.lost.load(Ordering::Relaxed)
    }
}

impl Taken {
    /// Makes sure that there is a place. Where one address has most of them it makes room for the others, and for its
    /// own: a flood from it keeps nobody else out.
    fn admit(&mut self, now: Tick, address: Option<IpAddr>, places: usize) -> Option<()> {
        if self.places.len() < places {
            return Some(());
        }
        match self.crowd() {
            Some(crowd) if address == Some(crowd) => {
                self.make_room(|place| place.address == address, Some(now))
            }
            Some(crowd) => self.make_room(|place| place.address == Some(crowd), None),
            None => self.make_room(|_| true, Some(now)),
        }
    }

    /// The address that has more than half of the places.
    fn crowd(&self) -> Option<IpAddr> {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for address in self.places.values().filter_map(|place| place.address) {
            *counts.entry(address).or_default() += 1;
        }
        counts.into_iter().find(|(_, count)| 2 * count > self.places.len()).map(|(address, _)| address)
    }

    /// Takes a place away from a connection that has failed, or else from the oldest one. Given the time, it spares one
    /// that is so young that an honest client may still need it.
    fn make_room(&mut self, of: impl Fn(&Place) -> bool, now: Option<Tick>) -> Option<()> {
        let (&order, place) = self.places.iter().find(|(_, place)| of(place))?;
        let is_young = |now| ticks_between(place.since, now) <= ticks(UNPROVED_SAFE);
        if order.hopeful && now.is_some_and(is_young) {
            return None;
        }
        self.places.remove(&order)?.lost.store(true, Ordering::Relaxed);
        Some(())
    }
}

impl Drop for Unproved {
    fn drop(&mut self) {
        self.shared.unproved.0.lock().places.remove(&self.order);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(taken: &mut Taken, now: Tick, address: Option<IpAddr>, places: usize) -> bool {
        if taken.admit(now, address, places).is_none() {
            return false;
        }
        let order = Order { hopeful: true, serial: taken.next };
        taken.next += 1;
        taken.places.insert(order, Arc::new(Place { since: now, address, lost: AtomicBool::new(false) }));
        true
    }

    /// A thousand new connections a second from one address kept half of the right logins from others out.
    #[test]
    fn one_address_makes_room_for_others() {
        const PLACES: usize = 64;
        let now = Tick::default();
        let address = |last: u8| Some(IpAddr::from([10, 0, 0, last]));
        let mut taken = Taken::default();
        let came = (0..1_000).filter(|_| place(&mut taken, now, address(1), PLACES)).count();
        assert_eq!(came, PLACES);
        for last in 2..10 {
            assert!(place(&mut taken, now, address(last), PLACES), "{last} finds no place");
        }
        assert!(place(&mut taken, now, None, PLACES));
        // Those of the flood are as young as before, and make no room for each other.
        assert!(!place(&mut taken, now, address(1), PLACES));
        let stay = |last| taken.places.values().any(|place| place.address == address(last));
        assert!((2..10).all(stay));
    }
}
