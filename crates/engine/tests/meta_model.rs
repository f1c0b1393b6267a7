//! The meta commands against a simple model, with a clock that the test moves: what is there, how long, stale or not,
//! and who was asked to refresh it. `SEED=...` replays a run.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that fails says where")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::{
    Answer, Condition, Engine, EngineOptions, MetaArithmetic, MetaDelete, MetaDone, MetaGet, MetaGot,
    MetaItem, MetaSet, MetaSink, Session, ThreadContext, Verb,
};
use store::{Clock, ManualClock, Store, StoreOptions};

const STEPS: usize = 60_000;
const KEYS: usize = 4;

/// What an item is to its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Model {
    value: String,
    flags: u32,
    cas: u64,
    /// Milliseconds of the test's time.
    deadline: Option<u64>,
    written: u64,
    fetched: bool,
    stale: bool,
    claimed: bool,
}

#[derive(Default)]
struct Found {
    item: MetaItem,
    bytes: Vec<u8>,
}

impl MetaSink for Found {
    fn open(&mut self, item: &MetaItem) -> &mut Vec<u8> {
        self.item = *item;
        &mut self.bytes
    }
    fn close(&mut self) {}
    fn discard(&mut self) {
        self.bytes.clear();
    }
}

struct Pair {
    hands: Arc<ManualClock>,
    context: ThreadContext,
    session: Session,
    now_ms: u64,
    model: BTreeMap<String, Model>,
    random: fastrand::Rng,
}

impl Pair {
    fn new(random: fastrand::Rng) -> Self {
        let hands = ManualClock::new(1_800_000_000);
        let options = StoreOptions {
            path: None,
            memory_bytes: 64 << 20,
            cold: true,
            clock: Clock::Manual(Arc::clone(&hands)),
            row_bytes_max: 2 << 20,
        };
        let engine = Engine::new(Store::open(&options).unwrap().store, EngineOptions::default());
        // In the middle of a tick: a deadline is rounded down to its tick, and no step of the test lands between.
        hands.advance(Duration::from_micros(31_250));
        Self {
            hands,
            context: engine.context(),
            session: Session::local(),
            now_ms: 0,
            model: BTreeMap::new(),
            random,
        }
    }

    fn advance(&mut self, ms: u64) {
        self.hands.advance(Duration::from_millis(ms));
        self.now_ms += ms;
        self.context.engine().tick();
        self.context.begin_batch();
        let now = self.now_ms;
        self.model.retain(|_, item| item.deadline.is_none_or(|deadline| now < deadline));
    }

    fn key(&mut self) -> String {
        format!("k{}", self.random.usize(..KEYS))
    }

    fn deadline(&self, exptime: i64) -> Option<u64> {
        (exptime != 0).then(|| self.now_ms + exptime.unsigned_abs() * 1_000)
    }

    fn exptime(&mut self) -> i64 {
        [0, 10, 60, 600][self.random.usize(..4)]
    }

    fn maybe<T>(&mut self, per_cent: u8, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.random.u8(..100) < per_cent).then(|| value(self))
    }

    /// The CAS of what is there, or a wrong one.
    fn compared(&mut self, key: &str) -> u64 {
        let wrong = self.random.u64(..3);
        let right = self.model.get(key).map_or(7, |item| item.cas);
        if self.random.u8(..3) == 0 { right.wrapping_add(wrong).wrapping_sub(1) } else { right }
    }

    fn left(&self, deadline: Option<u64>) -> Option<u64> {
        // Ticks of 1/16 s, one more for the one that has begun, to the nearest second.
        deadline.map(|deadline| ((deadline - self.now_ms) * 16 / 1_000 + 8) / 16)
    }

    fn get(&mut self) {
        let key = self.key();
        let asked = MetaGet {
            value: self.random.bool(),
            unnoticed: self.random.u8(..5) == 0,
            exptime: self.maybe(15, Self::exptime),
            vivify: self.maybe(30, Self::exptime),
            recache: self.maybe(30, |pair| pair.random.i64(0..100)),
            recache_as_touched: false,
            own_cas: None,
            known: None,
            fetched: false,
        };
        let mut sink = Found::default();
        let got = self.session.meta_get(&mut self.context, key.as_bytes(), &asked, &mut sink).unwrap();
        let (now, touched) = (self.now_ms, asked.exptime.map(|exptime| self.deadline(exptime)));
        let Some(old) = self.model.get(&key).cloned() else {
            let Some(exptime) = asked.vivify else {
                assert_eq!(got, MetaGot::Miss, "{key} {asked:?}");
                return;
            };
            let item = found(&got, &sink);
            assert!(item.won && !item.stale && !item.claimed && item.bytes == 0, "{item:?}");
            let deadline = self.deadline(exptime);
            assert_eq!((item.made, item.ttl, item.new_ttl), (true, None, Some(self.left(deadline))));
            let (cas, written) = (item.cas, now);
            let fetched = asked.value && !asked.unnoticed;
            let place = Model {
                value: String::new(),
                flags: 0,
                cas,
                deadline,
                written,
                fetched,
                stale: false,
                claimed: true,
            };
            self.model.insert(key, place);
            return;
        };
        let item = found(&got, &sink);
        let left = self.left(old.deadline);
        let near = asked.recache.zip(old.deadline);
        let near = near.is_some_and(|(seconds, deadline)| deadline - now < seconds.unsigned_abs() * 1_000);
        let won = !old.claimed && (old.stale || near);
        let idle = if old.fetched { item.unused_seconds } else { (now - old.written) / 1_000 };
        let expected = MetaItem {
            client_flags: old.flags,
            cas: old.cas,
            bytes: old.value.len(),
            ttl: left,
            new_ttl: touched.map(|deadline| self.left(deadline)),
            fetched: old.fetched,
            unused_seconds: idle,
            claimed: old.claimed,
            stale: old.stale,
            won,
            made: false,
        };
        assert_eq!(item, expected, "{key} {asked:?} {old:?}");
        if asked.value {
            assert_eq!((got, sink.bytes), (MetaGot::Value, old.value.clone().into_bytes()));
        }
        let entry = self.model.get_mut(&key).unwrap();
        entry.claimed |= won;
        entry.fetched |= !asked.unnoticed;
        if let Some(deadline) = touched {
            entry.fetched = true;
            entry.deadline = deadline;
        }
    }

    fn set(&mut self) {
        let key = self.key();
        let value = "v".repeat(self.random.usize(..20));
        let conditions = [
            Condition::Always,
            Condition::Always,
            Condition::Absent,
            Condition::Present,
            Condition::Append,
            Condition::Prepend,
        ];
        let asked = MetaSet {
            condition: conditions[self.random.usize(..conditions.len())],
            client_flags: self.random.u32(..5),
            exptime: self.exptime(),
            compare: self.maybe(40, |pair| pair.compared(&key)),
            even_if_invalidated: self.random.bool(),
            vivify: self.maybe(30, Self::exptime),
            own_cas: None,
            tags: None,
        };
        let done =
            self.session.meta_set(&mut self.context, key.as_bytes(), &asked, value.as_bytes()).unwrap();
        let fresh = Model {
            value: value.clone(),
            flags: asked.client_flags,
            cas: 0,
            deadline: self.deadline(asked.exptime),
            written: self.now_ms,
            fetched: false,
            stale: false,
            claimed: false,
        };
        let joins = matches!(asked.condition, Condition::Append | Condition::Prepend);
        let vivified =
            asked.vivify.map(|exptime| Model { deadline: self.deadline(exptime), ..fresh.clone() });
        let refills = asked.even_if_invalidated && !joins;
        let expected = match (self.model.get(&key), asked.condition, asked.compare) {
            (Some(_), Condition::Absent, _) | (None, Condition::Present, None) => Err(MetaDone::NotStored),
            (None, Condition::Absent, _) => Ok(fresh),
            (None, Condition::Append | Condition::Prepend, _) => vivified.ok_or(MetaDone::NotStored),
            (None, _, Some(_)) => Err(MetaDone::NotFound),
            (Some(old), _, Some(cas)) if cas < old.cas && refills => {
                Ok(Model { deadline: old.deadline, stale: true, claimed: old.claimed, ..fresh })
            }
            (Some(old), _, Some(cas)) if cas != old.cas => Err(MetaDone::Exists),
            (Some(old), Condition::Append, _) => Ok(Model {
                value: old.value.clone() + &value,
                flags: old.flags,
                deadline: old.deadline,
                ..fresh
            }),
            (Some(old), Condition::Prepend, _) => {
                Ok(Model { value: value + &old.value, flags: old.flags, deadline: old.deadline, ..fresh })
            }
            _ => Ok(fresh),
        };
        self.written(&key, done, expected, &format!("{asked:?}"));
    }

    fn written(&mut self, key: &str, done: MetaDone, expected: Result<Model, MetaDone>, asked: &str) {
        let before = self.model.get(key).cloned();
        match (done, expected) {
            (MetaDone::Done(made), Ok(model)) => {
                self.model.insert(key.to_owned(), Model { cas: made.cas, ..model });
            }
            (done, expected) => {
                assert_eq!(Err(done), expected, "{key} {asked} on {before:?}");
                self.take_hint(key);
            }
        }
    }

    /// A write that was refused has looked at the item, which may count as a use.
    fn take_hint(&mut self, key: &str) {
        if let Some(debug) = self.session.meta_debug(&mut self.context, key.as_bytes()).unwrap() {
            self.model.get_mut(key).unwrap().fetched = debug.item.fetched;
        }
    }

    fn delete(&mut self) {
        let key = self.key();
        let asked = MetaDelete {
            compare: self.maybe(40, |pair| pair.compared(&key)),
            invalidate: self.random.u8(..3) > 0,
            empty: self.random.u8(..6) == 0,
            exptime: self.maybe(50, Self::exptime),
            own_cas: None,
        };
        let done = self.session.meta_delete(&mut self.context, key.as_bytes(), &asked).unwrap();
        let old = match (self.model.get(&key).cloned(), asked.compare) {
            (None, _) => {
                assert_eq!(done, MetaDone::NotFound);
                return;
            }
            (Some(old), Some(cas)) if cas != old.cas => {
                assert_eq!(done, MetaDone::Exists);
                self.take_hint(&key);
                return;
            }
            (Some(old), _) => old,
        };
        if !asked.invalidate && !asked.empty {
            assert!(matches!(done, MetaDone::Done(_)), "{done:?}");
            self.model.remove(&key);
            return;
        }
        let deadline = asked.exptime.filter(|_| asked.invalidate).map(|exptime| self.deadline(exptime));
        let left = Model {
            value: if asked.empty { String::new() } else { old.value.clone() },
            flags: if asked.empty { 0 } else { old.flags },
            deadline: deadline.unwrap_or(old.deadline),
            written: self.now_ms,
            fetched: false,
            stale: asked.invalidate,
            claimed: false,
            ..old
        };
        self.written(&key, done, Ok(left), &format!("{asked:?}"));
    }

    fn arithmetic(&mut self) {
        let key = format!("n{}", self.random.usize(..KEYS));
        let asked = MetaArithmetic {
            decrement: self.random.bool(),
            delta: self.random.u64(..1_000),
            compare: self.maybe(20, |pair| pair.compared(&key)),
            vivify: self.maybe(60, Self::exptime),
            initial: self.random.u64(..50),
            exptime: self.maybe(20, Self::exptime),
            own_cas: None,
        };
        let done = self.session.meta_arithmetic(&mut self.context, key.as_bytes(), &asked).unwrap();
        let fresh = |value: u64, deadline| Model {
            value: value.to_string(),
            flags: 0,
            cas: 0,
            deadline,
            written: self.now_ms,
            fetched: false,
            stale: false,
            claimed: false,
        };
        let expected = match (self.model.get(&key), asked.compare, asked.vivify) {
            (None, _, None) => Err(MetaDone::NotFound),
            (None, _, Some(exptime)) => Ok(fresh(asked.initial, self.deadline(exptime))),
            (Some(old), Some(cas), _) if cas != old.cas => Err(MetaDone::Exists),
            (Some(old), ..) => {
                let number: u64 = old.value.trim_end().parse().unwrap();
                let number =
                    if asked.decrement { number.saturating_sub(asked.delta) } else { number + asked.delta };
                let deadline = asked.exptime.map_or(old.deadline, |exptime| self.deadline(exptime));
                Ok(fresh(number, deadline))
            }
        };
        if let (MetaDone::Done(made), Ok(model)) = (done, &expected) {
            assert_eq!(made.number.to_string(), model.value);
        }
        self.written(&key, done, expected, &format!("{asked:?}"));
    }

    /// A plain `set` ends whatever was the matter with an item.
    fn plain(&mut self) {
        let key = self.key();
        let answer = self.session.store(&mut self.context, Verb::Set, key.as_bytes(), 3, 0, b"plain");
        assert_eq!(answer, Answer::Stored);
        let debug = self.session.meta_debug(&mut self.context, key.as_bytes()).unwrap().unwrap();
        let item = Model {
            value: "plain".into(),
            flags: 3,
            cas: debug.item.cas,
            deadline: None,
            written: self.now_ms,
            fetched: false,
            stale: false,
            claimed: false,
        };
        self.model.insert(key, item);
    }
}

fn found(got: &MetaGot, sink: &Found) -> MetaItem {
    match got {
        MetaGot::Head(item) => *item,
        MetaGot::Value => sink.item,
        MetaGot::Miss | MetaGot::Fetch => panic!("a miss"),
    }
}

#[test]
fn meta_commands_agree_with_a_model() {
    let mut pair = Pair::new(fastrand::Rng::with_seed(common::seed()));
    for _ in 0..STEPS {
        match pair.random.u8(..100) {
            0..45 => pair.get(),
            45..70 => pair.set(),
            70..80 => pair.delete(),
            80..90 => pair.arithmetic(),
            90..94 => pair.plain(),
            _ => {
                let ms = pair.random.u64(1..300) * 125;
                pair.advance(ms);
            }
        }
    }
}
