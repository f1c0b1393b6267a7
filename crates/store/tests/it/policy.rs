//! What a table bounded by `max_rows` misses, beside S3-FIFO as its inventors describe it, on accesses of one object
//! each.

use std::collections::{HashMap, VecDeque};

use store::Expiry;

use crate::common::{Bench, get, seed, set, table};

/// Accesses of one trace.
const ACCESSES: usize = 120_000;
/// Objects that they are drawn from.
const OBJECTS: f64 = 12_000.0;

/// S3-FIFO over keys alone: a tenth is the small queue, counters have two bits, two hits earn a place in the main
/// queue, and as many keys are remembered as the main queue holds.
struct Reference {
    small_max: usize,
    main_max: usize,
    hits: HashMap<u32, u8>,
    small: VecDeque<u32>,
    main: VecDeque<u32>,
    ghost: VecDeque<u32>,
}

impl Reference {
    fn new(size: usize) -> Self {
        let small_max = (size / 10).max(1);
        Self {
            small_max,
            main_max: size - small_max,
            hits: HashMap::new(),
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghost: VecDeque::new(),
        }
    }

    fn access(&mut self, key: u32) -> bool {
        if let Some(hits) = self.hits.get_mut(&key) {
            *hits = (*hits + 1).min(3);
            return true;
        }
        let known = self.ghost.iter().position(|&left| left == key);
        if let Some(at) = known {
            self.ghost.remove(at);
        }
        while self.hits.len() >= self.small_max + self.main_max {
            if self.main.len() > self.main_max || self.small.is_empty() {
                self.leave_main();
            } else {
                self.leave_small();
            }
        }
        self.hits.insert(key, 0);
        if known.is_some() { &mut self.main } else { &mut self.small }.push_back(key);
        false
    }

    fn leave_small(&mut self) {
        while let Some(key) = self.small.pop_front() {
            if self.hits[&key] >= 2 {
                self.hits.insert(key, 0);
                self.main.push_back(key);
                continue;
            }
            self.hits.remove(&key);
            self.ghost.push_back(key);
            if self.ghost.len() > self.main_max {
                self.ghost.pop_front();
            }
            return;
        }
    }

    fn leave_main(&mut self) {
        while let Some(key) = self.main.pop_front() {
            let hits = self.hits.get_mut(&key).unwrap();
            if *hits == 0 {
                self.hits.remove(&key);
                return;
            }
            *hits -= 1;
            self.main.push_back(key);
        }
    }
}

/// Some keys are asked for often and some once, and many are asked for again soon.
fn trace(random: &mut fastrand::Rng) -> Vec<u32> {
    let mut keys: Vec<u32> = Vec::with_capacity(ACCESSES);
    while keys.len() < ACCESSES {
        let again = random.usize(1..400);
        let key = match random.u32(0..10) {
            0..3 if again <= keys.len() => keys[keys.len() - again],
            3 => 1_000_000 + u32::try_from(keys.len()).unwrap(),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below OBJECTS")]
            _ => OBJECTS.powf(random.f64()) as u32,
        };
        keys.push(key);
    }
    keys
}

#[test]
fn a_bounded_table_misses_what_s3_fifo_misses() {
    let mut random = fastrand::Rng::with_seed(seed());
    let keys = trace(&mut random);
    for size in [240, 2_400] {
        let mut reference = Reference::new(size);
        let expected = keys.iter().filter(|&&key| !reference.access(key)).count();
        let bench = Bench::new(32);
        let rows = size.to_string();
        let options = [("max_rows", rows.as_str()), ("prefix", "t:"), ("value", "v")];
        let t = bench.store.create_table(table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &options)).unwrap();
        let mut missed = 0;
        for key in &keys {
            let key = key.to_string();
            if get(&bench.store, &t, key.as_bytes()).is_none() {
                missed += 1;
                set(&bench.store, &t, key.as_bytes(), b"v", Expiry::Table);
            }
        }
        let ratio = |misses: usize| misses as f64 / keys.len() as f64;
        let (ours, reference) = (ratio(missed), ratio(expected));
        assert!((ours - reference).abs() <= 0.01, "{size} rows: {ours:.4} beside {reference:.4}");
    }
}
