//! Eviction policies over keys alone: what a cache of so many objects would have missed. They hold no values
//! and serve nobody; the daemon's own figure is compared with them in the same run.

use std::collections::VecDeque;

use hashbrown::HashMap;

/// A cache of keys.
pub(crate) trait Policy {
    /// Asks for a key and keeps it; true if it was there.
    fn access(&mut self, key: u64) -> bool;
}

/// The share of accesses that missed.
pub(crate) fn miss_ratio(policy: &mut dyn Policy, keys: &[u64]) -> f64 {
    let misses = keys.iter().filter(|&&key| !policy.access(key)).count();
    misses as f64 / keys.len().max(1) as f64
}

/// The policies by name.
pub(crate) fn all(size: usize) -> Vec<(&'static str, Box<dyn Policy>)> {
    vec![
        ("FIFO", Box::new(Fifo::new(size))),
        ("LRU", Box::new(Lru::new(size))),
        ("S3-FIFO", Box::new(S3Fifo::new(size))),
    ]
}

/// The oldest goes first.
#[derive(Debug)]
pub(crate) struct Fifo {
    size: usize,
    held: HashMap<u64, ()>,
    queue: VecDeque<u64>,
}

impl Fifo {
    /// A cache of `size` keys.
    pub(crate) fn new(size: usize) -> Self {
        Self { size, held: HashMap::new(), queue: VecDeque::new() }
    }
}

impl Policy for Fifo {
    fn access(&mut self, key: u64) -> bool {
        if self.held.contains_key(&key) {
            return true;
        }
        if self.queue.len() >= self.size
            && let Some(oldest) = self.queue.pop_front()
        {
            self.held.remove(&oldest);
        }
        self.queue.push_back(key);
        self.held.insert(key, ());
        false
    }
}

/// The one longest not asked for goes first.
#[derive(Debug)]
pub(crate) struct Lru {
    size: usize,
    /// The number of each key's last access.
    last: HashMap<u64, u64>,
    /// Every access in order; those that are not the key's last are passed over.
    accesses: VecDeque<(u64, u64)>,
    clock: u64,
}

impl Lru {
    /// A cache of `size` keys.
    pub(crate) fn new(size: usize) -> Self {
        Self { size, last: HashMap::new(), accesses: VecDeque::new(), clock: 0 }
    }

    fn evict(&mut self) {
        while let Some((key, at)) = self.accesses.pop_front() {
            if self.last.get(&key) == Some(&at) {
                self.last.remove(&key);
                return;
            }
        }
    }
}

impl Policy for Lru {
    fn access(&mut self, key: u64) -> bool {
        self.clock += 1;
        let hit = self.last.contains_key(&key);
        if !hit && self.last.len() >= self.size {
            self.evict();
        }
        self.last.insert(key, self.clock);
        self.accesses.push_back((key, self.clock));
        hit
    }
}

/// A small queue filters what is asked for once; what left it lately comes back into the main queue.
#[derive(Debug)]
pub(crate) struct S3Fifo {
    small_size: usize,
    main_size: usize,
    /// Hits of each key held, at most [`HITS_MAX`].
    hits: HashMap<u64, u8>,
    small: VecDeque<u64>,
    main: VecDeque<u64>,
    ghost: Ghost,
}

/// Counters have two bits.
const HITS_MAX: u8 = 3;
/// So many hits in the small queue earn a place in the main queue.
const PROMOTION_HITS: u8 = 2;

impl S3Fifo {
    /// A cache of `size` keys, a tenth of them in the small queue.
    pub(crate) fn new(size: usize) -> Self {
        let small_size = (size / 10).max(1);
        let main_size = size.saturating_sub(small_size);
        Self {
            small_size,
            main_size,
            hits: HashMap::new(),
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghost: Ghost { size: main_size, entered: HashMap::new(), queue: VecDeque::new(), clock: 0 },
        }
    }

    fn evict(&mut self) {
        if self.main.len() > self.main_size || self.small.is_empty() {
            self.evict_main();
        } else {
            self.evict_small();
        }
    }

    fn evict_small(&mut self) {
        while let Some(key) = self.small.pop_front() {
            if self.hits.get(&key).copied().unwrap_or(0) >= PROMOTION_HITS {
                self.hits.insert(key, 0);
                self.main.push_back(key);
            } else {
                self.hits.remove(&key);
                self.ghost.enter(key);
                return;
            }
        }
    }

    fn evict_main(&mut self) {
        while let Some(key) = self.main.pop_front() {
            match self.hits.get_mut(&key) {
                Some(hits) if *hits > 0 => {
                    *hits -= 1;
                    self.main.push_back(key);
                }
                _ => {
                    self.hits.remove(&key);
                    return;
                }
            }
        }
    }
}

impl Policy for S3Fifo {
    fn access(&mut self, key: u64) -> bool {
        if let Some(hits) = self.hits.get_mut(&key) {
            *hits = (*hits + 1).min(HITS_MAX);
            return true;
        }
        let known = self.ghost.leave(key);
        while self.hits.len() >= self.small_size + self.main_size {
            self.evict();
        }
        self.hits.insert(key, 0);
        let queue = if known { &mut self.main } else { &mut self.small };
        queue.push_back(key);
        false
    }
}

/// Keys that left the small queue, oldest first; no values.
#[derive(Debug)]
struct Ghost {
    size: usize,
    /// When each key entered; a queue entry of another moment is stale.
    entered: HashMap<u64, u64>,
    queue: VecDeque<(u64, u64)>,
    clock: u64,
}

impl Ghost {
    fn enter(&mut self, key: u64) {
        self.clock += 1;
        self.entered.insert(key, self.clock);
        self.queue.push_back((key, self.clock));
        while self.queue.len() > self.size {
            let Some((oldest, at)) = self.queue.pop_front() else { return };
            if self.entered.get(&oldest) == Some(&at) {
                self.entered.remove(&oldest);
            }
        }
    }

    fn leave(&mut self, key: u64) -> bool {
        self.entered.remove(&key).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::{Fifo, Lru, Policy, S3Fifo};

    fn hits(policy: &mut dyn Policy, keys: &[u64]) -> Vec<bool> {
        keys.iter().map(|&key| policy.access(key)).collect()
    }

    #[test]
    fn fifo_ignores_hits_and_lru_does_not() {
        let keys = [1, 2, 1, 3, 1];
        assert_eq!(hits(&mut Fifo::new(2), &keys), [false, false, true, false, false]);
        assert_eq!(hits(&mut Lru::new(2), &keys), [false, false, true, false, true]);
    }

    #[test]
    fn s3_fifo_keeps_what_is_asked_for_again_through_a_scan() {
        let mut policy = S3Fifo::new(10);
        for _ in 0..3 {
            policy.access(1);
        }
        for key in 100..200 {
            assert!(!policy.access(key));
        }
        assert!(policy.access(1));
        assert_eq!(policy.hits.len(), 10);
    }
}
