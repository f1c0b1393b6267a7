//! Places for connections. Where all are taken, one that does nothing makes room: pages that somebody left open must
//! not make a health check fail, for a server that fails it is started again.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits::{HTTP_CONNECTIONS_MAX, HTTP_IDLE_SAFE};

/// The places that are taken, by the order in which they were.
#[derive(Debug, Default)]
pub(crate) struct Places {
    next: Cell<u64>,
    taken: RefCell<BTreeMap<u64, Rc<Own>>>,
}

/// What is known of a connection.
#[derive(Debug)]
pub(crate) struct Own {
    /// Requests under way.
    busy: Cell<u32>,
    /// Since when it does nothing, if none is.
    since: Cell<Instant>,
    leave: Notify,
}

/// A place, given back when it is dropped.
pub(crate) struct Place {
    places: Rc<Places>,
    number: u64,
    own: Rc<Own>,
}

impl Own {
    fn new(now: Instant) -> Self {
        Self { busy: Cell::new(0), since: Cell::new(now), leave: Notify::new() }
    }

    /// A request begins.
    pub(crate) fn begin(&self) {
        self.busy.set(self.busy.get() + 1);
    }

    /// Its answer is there.
    pub(crate) fn end(&self, now: Instant) {
        self.busy.set(self.busy.get().saturating_sub(1));
        self.since.set(now);
    }

    /// Waits until another needs the place.
    pub(crate) async fn leaves(&self) {
        self.leave.notified().await;
    }

    fn idle(&self, now: Instant) -> Duration {
        if self.busy.get() > 0 { Duration::ZERO } else { now.saturating_duration_since(self.since.get()) }
    }
}

impl Place {
    /// A free one, or that of the connection that has done nothing for longest.
    pub(crate) fn take(places: &Rc<Places>, now: Instant) -> Option<Self> {
        if places.taken.borrow().len() >= HTTP_CONNECTIONS_MAX {
            places.make_room(now)?;
        }
        let number = places.next.get();
        places.next.set(number + 1);
        let own = Rc::new(Own::new(now));
        places.taken.borrow_mut().insert(number, Rc::clone(&own));
        Some(Self { places: Rc::clone(places), number, own })
    }

    pub(crate) fn own(&self) -> &Rc<Own> {
        &self.own
    }
}

impl Places {
    fn make_room(&self, now: Instant) -> Option<()> {
        let mut taken = self.taken.borrow_mut();
        let (&number, _) = taken.iter().max_by_key(|(_, own)| own.idle(now))?;
        if taken.get(&number)?.idle(now) < HTTP_IDLE_SAFE {
            return None;
        }
        taken.remove(&number)?.leave.notify_one();
        Some(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken.borrow_mut().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sixty-four idle pages made a health check fail.
    #[test]
    fn the_one_that_does_nothing_for_longest_makes_room() {
        let (places, start) = (Rc::new(Places::default()), Instant::now());
        let mut all: Vec<Place> =
            (0..HTTP_CONNECTIONS_MAX).map(|_| Place::take(&places, start).unwrap()).collect();
        assert!(Place::take(&places, start).is_none(), "all of them have just come");
        let later = start + HTTP_IDLE_SAFE;
        all[0].own().begin();
        all[1].own().begin();
        all[1].own().end(later);
        let newcomer = Place::take(&places, later).unwrap();
        let lost = |place: &Place| !places.taken.borrow().contains_key(&place.number);
        let losers: Vec<usize> = (0..all.len()).filter(|&at| lost(&all[at])).collect();
        assert_eq!(losers.len(), 1);
        assert!(losers[0] > 1, "one that was busy lost its place");
        // Who lost a place gives none back.
        drop(all.swap_remove(losers[0]));
        assert_eq!(places.taken.borrow().len(), HTTP_CONNECTIONS_MAX);
        drop(newcomer);
        assert_eq!(places.taken.borrow().len(), HTTP_CONNECTIONS_MAX - 1);
    }
}
