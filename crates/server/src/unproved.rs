//! Connections of peers that have proved nothing: they get a part of all places, so that nobody who may come in is kept
//! out by those who may not.
//!
//! Both listeners take these places. Where all are taken, one who has failed makes room for a newcomer, or else the
//! oldest. It loses its place at once, and its connection with the next sweep of the thread that has it.

use std::collections::BTreeMap;
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
    pub(crate) fn admit(shared: &Arc<Shared>, now: Tick) -> Option<Self> {
        let places = shared.engine.connections_max.load(Ordering::Relaxed) / UNPROVED_SHARE;
        let mut taken = shared.unproved.0.lock();
        if taken.places.len() >= places.max(UNPROVED_MIN) {
            taken.make_room(now)?;
        }
        let order = Order { hopeful: true, serial: taken.next };
        taken.next += 1;
        let place = Arc::new(Place { since: now, lost: AtomicBool::new(false) });
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
    /// Takes the place of somebody who has failed, or of the oldest, unless that is so young that an honest client may
    /// still need it.
    fn make_room(&mut self, now: Tick) -> Option<()> {
        let first = self.places.first_entry()?;
        if first.key().hopeful && ticks_between(first.get().since, now) <= ticks(UNPROVED_SAFE) {
            return None;
        }
        first.remove().lost.store(true, Ordering::Relaxed);
        Some(())
    }
}

impl Drop for Unproved {
    fn drop(&mut self) {
        self.shared.unproved.0.lock().places.remove(&self.order);
    }
}
