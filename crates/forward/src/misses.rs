//! Misses under way: of many sessions that miss one answer at the same time, one asks the source, and the others wait
//! until its answer is kept.
//!
//! Who waits looks for the answer again as for any other, so the [gate](crate::gate) has let it in, and it is as fresh
//! as one that is found later.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;

use crate::state::Hash;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Misses(Mutex<HashMap<Hash, Vec<Waker>>>);

/// A miss under way. It ends when this is dropped, whatever came of it.
#[derive(Debug)]
pub(crate) struct Miss {
    misses: Arc<Misses>,
    id: Hash,
}

impl Misses {
    /// One begins; none: the same is under way.
    pub(crate) fn begin(self: &Arc<Self>, id: &Hash) -> Option<Miss> {
        match self.0.lock().entry(*id) {
            Entry::Occupied(_) => None,
            Entry::Vacant(vacant) => {
                vacant.insert(Vec::new());
                Some(Miss { misses: Arc::clone(self), id: *id })
            }
        }
    }

    /// Whether one is under way.
    pub(crate) fn has(&self, id: &Hash) -> bool {
        self.0.lock().contains_key(id)
    }

    /// Wakes this one when it ends; false: it is not under way.
    pub(crate) fn wake(&self, id: &Hash, waker: &Waker) -> bool {
        let mut misses = self.0.lock();
        let Some(sleepers) = misses.get_mut(id) else { return false };
        // Many sessions of one thread are woken together.
        if !sleepers.iter().any(|own| own.will_wake(waker)) {
            sleepers.push(waker.clone());
        }
        true
    }
}

impl Drop for Miss {
    fn drop(&mut self) {
        let sleepers = self.misses.0.lock().remove(&self.id);
        sleepers.into_iter().flatten().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn one_asks_and_the_others_are_woken_once() {
        let (misses, woken) = (Arc::new(Misses::default()), Arc::new(Woken::default()));
        let (waker, id) = (Waker::from(Arc::clone(&woken)), [7; 32]);
        assert!(!misses.wake(&id, &waker), "nobody asks");
        let first = misses.begin(&id).expect("it is not under way");
        assert!(misses.begin(&id).is_none() && misses.begin(&[8; 32]).is_some());
        assert!(misses.wake(&id, &waker) && misses.wake(&id, &waker) && misses.has(&id));
        drop(first);
        assert_eq!((woken.0.load(Ordering::Relaxed), misses.has(&id)), (1, false));
        assert!(misses.begin(&id).is_some());
    }
}
