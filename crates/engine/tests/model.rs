//! Both ways in against a simple model: random memcached commands and SQL statements on the same rows, with a clock
//! that the test moves. `SEED=...` replays a run.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that fails says where")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::{
    Answer, Cancel, Engine, EngineOptions, Executor, Finished, ItemMeta, ItemSink, Session, ThreadContext,
    Verb,
};
use store::{Clock, ManualClock, Store, StoreOptions};

const STEPS: usize = 6_000;
const KEYS: usize = 6;

/// What a row is to its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    value: String,
    flags: u32,
    /// The row is there before this moment.
    deadline: Option<u64>,
}

/// When the test begins, by the wall clock.
const BEGIN_UNIX: u64 = 1_800_000_000;

/// Expiry times as clients send them: spans, moments near and far, what has passed, numbers that were negative.
const EXPTIMES: [i64; 16] = [
    0,
    0,
    0,
    1,
    1,
    3,
    60,
    2_592_000,
    2_592_001,
    BEGIN_UNIX.cast_signed() + 100,
    BEGIN_UNIX.cast_signed() + 3_000_000,
    BEGIN_UNIX.cast_signed() + 150_000_000,
    i32::MAX as i64,
    -1,
    i32::MIN as i64,
    i64::MIN,
];

/// The number of a moment: sixteenths of a second for the first 2^31 of them, 4.25 years; whole seconds after that.
fn moment(us: u64) -> u64 {
    let (ticks, near) = (us / 62_500, (1 << 31) - 1);
    if ticks < near { ticks } else { near + (ticks - near) / 16 }
}

#[derive(Default)]
struct Found {
    bytes: Vec<u8>,
    flags: u32,
    cas: u64,
}

impl ItemSink for Found {
    fn open(&mut self, meta: &ItemMeta) -> &mut Vec<u8> {
        (self.flags, self.cas) = (meta.client_flags, meta.cas);
        &mut self.bytes
    }
    fn close(&mut self) {}
    fn discard(&mut self) {
        self.bytes.clear();
    }
}

/// The engine and the model side by side.
struct Pair {
    hands: Arc<ManualClock>,
    context: ThreadContext,
    session: Session,
    executor: Executor,
    now_ms: u64,
    /// By memcached key.
    model: BTreeMap<String, Row>,
}

impl Pair {
    fn new() -> Self {
        let hands = ManualClock::new(BEGIN_UNIX);
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
        let executor = engine.executor(None).unwrap();
        let mut pair = Self {
            hands,
            context: engine.context(),
            session: Session::local(),
            executor,
            now_ms: 0,
            model: BTreeMap::new(),
        };
        let create = "CREATE TABLE t (key TEXT PRIMARY KEY, n INT DEFAULT 5, body TEXT) \
                      WITH (prefix = 't:', value = 'body')";
        assert_eq!(pair.sql(create).0, Finished::Changed(0));
        assert_eq!(pair.sql("CREATE INDEX t_body ON t (body)").0, Finished::Changed(0));
        pair
    }

    fn sql(&mut self, statement: &str) -> (Finished, String) {
        let mut out = Vec::new();
        let Self { session, context, executor, .. } = self;
        let finished = session.sql(context, executor, statement.as_bytes(), None, &Cancel::new(), &mut out);
        (finished, String::from_utf8(out).unwrap())
    }

    fn get(&mut self, key: &str) -> Option<Found> {
        let mut found = Found::default();
        let hit = self.session.get(&mut self.context, key.as_bytes(), &mut found).unwrap();
        hit.then_some(found)
    }

    fn advance(&mut self, ms: u64) {
        self.hands.advance(Duration::from_millis(ms));
        self.now_ms += ms;
        self.context.engine().tick();
        self.context.begin_batch();
        let now = moment(self.now_us());
        self.model.retain(|_, row| row.deadline.is_none_or(|deadline| now < deadline));
    }

    /// What the store's clock shows.
    fn now_us(&self) -> u64 {
        self.now_ms * 1_000 + 31_250
    }

    /// The moment that an expiry time names; `Some(0)` has passed.
    fn deadline(&self, exptime: i64) -> Option<u64> {
        match exptime {
            0 => None,
            ..0 => Some(0),
            1..=2_592_000 => Some(moment(self.now_us() + exptime.unsigned_abs() * 1_000_000)),
            _ => Some(moment(exptime.unsigned_abs().saturating_sub(BEGIN_UNIX) * 1_000_000)),
        }
    }

    /// Stores a row in the model, or removes the one that is there if its time has come.
    fn put(&mut self, key: &str, row: Row) {
        if row.deadline.is_some_and(|deadline| deadline <= moment(self.now_us())) {
            self.model.remove(key);
        } else {
            self.model.insert(key.to_owned(), row);
        }
    }

    fn store(&mut self, verb: Verb, key: &str, value: &str, flags: u32, exptime: i64) {
        let answer =
            self.session.store(&mut self.context, verb, key.as_bytes(), flags, exptime, value.as_bytes());
        let row = Row { value: value.to_owned(), flags, deadline: self.deadline(exptime) };
        let there = self.model.get(key).cloned();
        let (expected, new) = match (verb, there) {
            (Verb::Set, _) | (Verb::Add, None) | (Verb::Replace, Some(_)) => (Answer::Stored, Some(row)),
            (Verb::Append, Some(old)) => {
                (Answer::Stored, Some(Row { value: old.value.clone() + value, ..old }))
            }
            (Verb::Prepend, Some(old)) => {
                (Answer::Stored, Some(Row { value: value.to_owned() + &old.value, ..old }))
            }
            _ => (Answer::NotStored, None),
        };
        assert_eq!(answer, expected, "{verb:?} {key}");
        if let Some(row) = new {
            self.put(key, row);
        }
    }

    fn arithmetic(&mut self, incr: bool, key: &str, delta: u64) {
        let answer = self.session.arithmetic(&mut self.context, incr, key.as_bytes(), delta);
        let Some(row) = self.model.get_mut(key) else {
            assert_eq!(answer, Answer::NotFound);
            return;
        };
        // memcached looks at what stands before the first space.
        let Ok(old) = row.value.split(' ').next().unwrap_or_default().parse::<u64>() else {
            assert!(matches!(answer, Answer::NotANumber), "{answer:?} for {row:?}");
            return;
        };
        let new = if incr { old.wrapping_add(delta) } else { old.saturating_sub(delta) };
        assert_eq!(answer, Answer::Number(new));
        let width = row.value.len();
        row.value = format!("{new:<width$}");
    }

    fn touch(&mut self, key: &str, exptime: i64, and_get: bool) {
        let deadline = self.deadline(exptime);
        let there = self.model.contains_key(key);
        if and_get {
            let mut found = Found::default();
            let hit = self.session.get_and_touch(&mut self.context, exptime, key.as_bytes(), &mut found);
            assert_eq!(hit, Ok(there));
        } else {
            let answer = self.session.touch(&mut self.context, key.as_bytes(), exptime);
            assert_eq!(answer, if there { Answer::Touched } else { Answer::NotFound });
        }
        if let Some(row) = self.model.get(key).cloned() {
            self.put(key, Row { deadline, ..row });
        }
    }

    fn delete(&mut self, key: &str) {
        let answer = self.session.delete(&mut self.context, key.as_bytes());
        let there = self.model.remove(key).is_some();
        assert_eq!(answer, if there { Answer::Deleted } else { Answer::NotFound });
    }

    fn compare_and_swap(&mut self, key: &str, value: &str, meddle: bool) {
        let Some(found) = self.get(key) else { return };
        if meddle {
            self.store(Verb::Append, key, "!", 0, 0);
        }
        let answer = self.session.store(
            &mut self.context,
            Verb::Cas(found.cas),
            key.as_bytes(),
            1,
            0,
            value.as_bytes(),
        );
        if meddle {
            assert_eq!(answer, Answer::Exists);
        } else {
            assert_eq!(answer, Answer::Stored);
            self.model.insert(key.to_owned(), Row { value: value.to_owned(), flags: 1, deadline: None });
        }
    }

    /// A statement that writes one row.
    fn write_by_sql(&mut self, key: &str, value: &str, replace: bool) {
        let (table, column, rest) = place(key);
        let verb = if replace { "REPLACE" } else { "INSERT" };
        let statement = format!("{verb} INTO {table} (key, {column}) VALUES ('{rest}', '{value}')");
        let (finished, _) = self.sql(&statement);
        if !replace && self.model.contains_key(key) {
            assert!(matches!(&finished, Finished::Failed(error) if error.state == "23505"), "{finished:?}");
            return;
        }
        assert_eq!(finished, Finished::Changed(1), "{statement}");
        self.model.insert(key.to_owned(), Row { value: value.to_owned(), flags: 0, deadline: None });
    }

    /// A statement that removes all rows with some value, in one of the tables.
    fn delete_by_sql(&mut self, prefix: &str, value: &str) {
        let (table, column, _) = place(prefix);
        let doomed: Vec<String> = self
            .model
            .iter()
            .filter(|(key, row)| key.starts_with("t:") == (table == "t") && row.value == value)
            .map(|(key, _)| key.clone())
            .collect();
        let (finished, _) = self.sql(&format!("DELETE FROM {table} WHERE {column} = '{value}'"));
        assert_eq!(finished, Finished::Changed(doomed.len() as u64));
        for key in doomed {
            self.model.remove(&key);
        }
    }

    /// Every key through both protocols.
    fn check(&mut self) {
        for number in 0..KEYS {
            for key in [format!("k{number}"), format!("t:{number}")] {
                let expected = self.model.get(&key).cloned();
                let found = self.get(&key);
                let shown = found.map(|found| (String::from_utf8(found.bytes).unwrap(), found.flags));
                assert_eq!(shown, expected.as_ref().map(|row| (row.value.clone(), row.flags)), "get {key}");
                let (table, column, rest) = place(&key);
                let (finished, rows) =
                    self.sql(&format!("SELECT {column} AS v FROM {table} WHERE key = '{rest}'"));
                assert_eq!(finished, Finished::Rows);
                let expected = expected.map(|row| format!("{{\"v\":\"{}\"}}\r\n", row.value));
                assert_eq!(rows, expected.unwrap_or_default(), "SELECT {key}");
            }
        }
        let in_table = self.model.keys().filter(|key| key.starts_with("t:")).count();
        let (_, rows) = self.sql("SELECT count(*) AS n FROM t");
        assert_eq!(rows, format!("{{\"n\":{in_table}}}\r\n"));
    }
}

/// Table, value column and key in the table.
fn place(key: &str) -> (&'static str, &'static str, &str) {
    match key.strip_prefix("t:") {
        Some(rest) => ("t", "body", rest),
        None => ("memcached", "value", key),
    }
}

#[test]
fn both_protocols_agree_with_the_model() {
    let mut random = fastrand::Rng::with_seed(common::seed());
    let mut pair = Pair::new();
    for step in 0..STEPS {
        let number = random.usize(0..KEYS);
        let key = if random.bool() { format!("k{number}") } else { format!("t:{number}") };
        let value = random.choice(["a", "7", "100", "18446744073709551615", "", "b\u{e4}r"]).unwrap();
        let exptime = random.choice(EXPTIMES).unwrap();
        let delta = random.choice([0, 1, 93, u64::MAX]).unwrap();
        let flags = random.u32(..);
        match random.u32(0..16) {
            0 | 1 => pair.store(Verb::Set, &key, value, flags, exptime),
            2 => pair.store(Verb::Add, &key, value, flags, exptime),
            3 => pair.store(Verb::Replace, &key, value, flags, exptime),
            4 => pair.store(Verb::Append, &key, value, flags, exptime),
            5 => pair.store(Verb::Prepend, &key, value, flags, exptime),
            6 => pair.arithmetic(random.bool(), &key, delta),
            7 => pair.touch(&key, exptime, random.bool()),
            8 => pair.delete(&key),
            9 => pair.compare_and_swap(&key, value, random.bool()),
            10 | 11 => pair.write_by_sql(&key, value, random.bool()),
            12 => pair.delete_by_sql(&key, value),
            13 if random.u8(0..20) == 0 => {
                assert_eq!(pair.session.flush_all(&mut pair.context, None), Answer::Ok);
                pair.model.clear();
            }
            // Beyond the first years, too, in which moments are sixteenths of a second.
            _ if random.u8(0..60) == 0 => pair.advance(random.u64(0..400 * 86_400_000)),
            _ => pair.advance(250 * random.u64(0..8)),
        }
        if step % 4 == 0 {
            pair.check();
        }
    }
}
