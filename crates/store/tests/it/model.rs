//! Random single-key operations against a map with deadlines.

use std::collections::BTreeMap;
use std::time::Duration;

use store::{BUILT_IN, Expect, Expiry, Outcome};

use crate::common::{Bench, get, item, seed, set};

/// Operations of the random walk.
const STEPS: usize = 60_000;
/// Different keys; few, so that they meet often.
const KEYS: u64 = 400;

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    value: Vec<u8>,
    /// In milliseconds of the test's clock.
    deadline_ms: Option<u64>,
}

#[derive(Default)]
struct Model {
    rows: BTreeMap<u64, Entry>,
    now_ms: u64,
}

impl Model {
    fn live(&self, key: u64) -> Option<&Entry> {
        self.rows.get(&key).filter(|entry| entry.deadline_ms.is_none_or(|deadline| self.now_ms < deadline))
    }
}

#[test]
fn random_operations_agree_with_a_map() {
    let mut random = fastrand::Rng::with_seed(seed());
    let bench = Bench::new(16);
    let store = &bench.store;
    let catalog = store.catalog();
    let table = catalog.table(BUILT_IN).unwrap();
    let mut model = Model::default();
    for step in 0..STEPS {
        let key = random.u64(0..KEYS);
        let name = format!("key-{key}").into_bytes();
        let now = store.now();
        match random.u32(0..100) {
            0..40 => {
                let expected = model.live(key).map(|entry| entry.value.clone());
                assert_eq!(get(store, table, &name), expected, "step {step} get {key}");
            }
            40..70 => {
                let value = random_value(&mut random);
                let seconds = random.bool().then(|| random.u64(1..100));
                let expiry = seconds.map_or(Expiry::Table, |seconds| {
                    Expiry::At(store.tick_after(Duration::from_secs(seconds)))
                });
                set(store, table, &name, &value, expiry);
                let deadline_ms = seconds.map(|seconds| deadline(model.now_ms, seconds));
                model.rows.insert(key, Entry { value, deadline_ms });
            }
            70..78 => {
                let outcome = store.delete(table, &name, Expect::Anything, now).unwrap();
                assert_eq!(
                    matches!(outcome, Outcome::Done(_)),
                    model.live(key).is_some(),
                    "step {step} delete {key}"
                );
                model.rows.remove(&key);
            }
            78..84 => {
                let value = random_value(&mut random);
                let outcome =
                    store.put_item(table, &name, &item(&value, Expiry::Table), Expect::Absent, now).unwrap();
                assert_eq!(outcome == Outcome::Exists, model.live(key).is_some(), "step {step} add {key}");
                if outcome != Outcome::Exists {
                    model.rows.insert(key, Entry { value, deadline_ms: None });
                }
            }
            84..90 => {
                let mut append = |old: &[u8], new: &mut Vec<u8>| {
                    new.extend_from_slice(&old[..old.len().min(3_000)]);
                    new.push(b'+');
                    true
                };
                let outcome = store.rewrite_item(table, &name, now, &mut append).unwrap();
                let live = model.live(key).cloned();
                assert_eq!(outcome == Outcome::Missing, live.is_none(), "step {step} append {key}");
                if let Some(mut entry) = live {
                    entry.value.truncate(3_000);
                    entry.value.push(b'+');
                    model.rows.insert(key, entry);
                }
            }
            90..95 => {
                let seconds = random.u64(1..400);
                let expiry = Expiry::At(store.tick_after(Duration::from_secs(seconds)));
                let outcome = store.touch(table, &name, expiry, now).unwrap();
                assert_eq!(outcome == Outcome::Missing, model.live(key).is_none(), "step {step} touch {key}");
                if let Some(mut entry) = model.live(key).cloned() {
                    entry.deadline_ms = Some(deadline(model.now_ms, seconds));
                    model.rows.insert(key, entry);
                }
            }
            95..99 => {
                let ms = random.u64(1..2_000);
                model.now_ms += ms;
                bench.advance(Duration::from_millis(ms));
            }
            _ if random.u32(0..20) == 0 => {
                store.flush(table);
                model.rows.clear();
            }
            _ => {}
        }
    }
    for key in 0..KEYS {
        let expected = model.live(key).map(|entry| entry.value.clone());
        assert_eq!(get(store, table, format!("key-{key}").as_bytes()), expected, "at the end: {key}");
    }
}

/// A deadline is rounded down to whole ticks of 62.5 ms; the first millisecond of that tick.
fn deadline(now_ms: u64, seconds: u64) -> u64 {
    ((now_ms + seconds * 1_000) * 2 / 125 * 125).div_ceil(2)
}

fn random_value(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = match random.u32(0..20) {
        0 => random.usize(0..20_000),
        1 => 0,
        _ => random.usize(0..200),
    };
    let byte = random.u8(b'a'..=b'z');
    vec![byte; len]
}
