//! The keys that are used most: whether a sample finds them, and who sees them.

mod common;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use engine::{
    Answer, Cancel, Engine, EngineOptions, Executor, Finished, ItemMeta, ItemSink, Session, ThreadContext,
    Verb,
};
use store::{Clock, ManualClock, Store, StoreOptions};

/// Keys of the load.
const KEYS: usize = 100_000;
/// Reads of a minute: 50,000 a second.
const READS: usize = 3_000_000;
/// Reads between two ticks.
const READS_PER_TICK: usize = READS / 60 / 16;

struct Bench {
    engine: Arc<Engine>,
    clock: Arc<ManualClock>,
    context: ThreadContext,
    executor: Executor,
}

/// Takes values in and forgets them.
#[derive(Default)]
struct Sink(Vec<u8>);

impl ItemSink for Sink {
    fn open(&mut self, _: &ItemMeta) -> &mut Vec<u8> {
        self.0.clear();
        &mut self.0
    }
    fn close(&mut self) {}
    fn discard(&mut self) {}
}

impl Bench {
    fn new() -> Self {
        let clock = ManualClock::new(1_700_000_000);
        let options = StoreOptions {
            path: None,
            memory_bytes: 64 << 20,
            cold: true,
            clock: Clock::Manual(Arc::clone(&clock)),
            row_bytes_max: 2 << 20,
        };
        let engine = Engine::new(Store::open(&options).expect("a store").store, EngineOptions::default());
        let context = engine.context();
        let executor = engine.executor(None).expect("an executor");
        Self { engine, clock, context, executor }
    }

    /// The rows of a statement.
    fn sql(&mut self, statement: &str) -> Vec<String> {
        let mut out = Vec::new();
        let (session, cancel) = (Session::local(), Cancel::new());
        let text = statement.as_bytes();
        let finished = session.sql(&mut self.context, &mut self.executor, text, None, &cancel, &mut out);
        assert!(!matches!(finished, Finished::Failed(_)), "{statement}: {finished:?}");
        String::from_utf8(out).expect("text").lines().map(ToOwned::to_owned).collect()
    }

    fn get(&mut self, key: &str) {
        Session::local().get(&mut self.context, key.as_bytes(), &mut Sink::default()).expect("may read");
    }

    fn set(&mut self, key: &str) {
        let stored = Session::local().store(&mut self.context, Verb::Set, key.as_bytes(), 0, 0, b"1");
        assert_eq!(stored, Answer::Stored, "{key}");
    }

    fn tick(&mut self) {
        self.clock.advance(Duration::from_nanos(store::TICK_NS));
        self.engine.tick();
        self.context.begin_batch();
    }
}

/// Keys whose frequency falls with their rank, as those of web pages do.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(keys: usize) -> Self {
        let mut sum = 0.0;
        let sums = (1..=keys).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Self(sums.collect())
    }

    fn next(&self, random: &mut fastrand::Rng) -> usize {
        let at = random.f64() * self.0[self.0.len() - 1];
        self.0.partition_point(|sum| *sum < at)
    }
}

/// Loads whose results are taken together: of one, chance decides about some keys at the hundredth place.
const LOADS: usize = 3;

/// Fifty thousand reads a second of a hundred thousand keys: of the hundred that were read most, 95 are found, and the
/// numbers are right to a fifth.
#[test]
fn the_hottest_keys_of_a_load_are_found() {
    let mut random = fastrand::Rng::with_seed(common::seed());
    let found: usize = (0..LOADS).map(|_| found_of_a_load(&mut random)).sum();
    println!("{found} of the {LOADS} times 100 hottest keys found");
    assert!(found >= 95 * LOADS, "{found} of {LOADS} hundred");
}

/// How many of the hundred keys are found that a load reads most.
fn found_of_a_load(random: &mut fastrand::Rng) -> usize {
    let (mut bench, zipf) = (Bench::new(), Zipf::new(KEYS));
    let names: Vec<String> =
        (0..KEYS).map(|key| format!("page:{}", key.wrapping_mul(7_919) % 1_000_003)).collect();
    let mut counts = vec![0_u64; KEYS];
    for read in 0..READS {
        if read % READS_PER_TICK == 0 {
            bench.tick();
        }
        let key = zipf.next(random);
        counts[key] += 1;
        bench.get(&names[key]);
    }
    bench.engine.tick();
    let mut ranks: Vec<usize> = (0..KEYS).collect();
    ranks.sort_by_key(|key| std::cmp::Reverse(counts[*key]));
    let hot = bench
        .sql("SELECT key FROM sqlcached_hot WHERE table_name = 'memcached' ORDER BY reads DESC LIMIT 100");
    let hot: HashSet<&str> = hot.iter().filter_map(|row| row.split('"').nth(3)).collect();
    let found = ranks[..100].iter().filter(|key| hot.contains(&*names[**key])).count();
    // The window is the last minute, of which its first seconds may be over.
    let first = &names[ranks[0]];
    let row = bench.sql(&format!("SELECT reads, share FROM sqlcached_hot WHERE key = '{first}'")).join("");
    let numbers: Vec<f64> = row.split([':', ',', '}']).filter_map(|part| part.parse().ok()).collect();
    let (reads, share) = (counts[ranks[0]] as f64, counts[ranks[0]] as f64 / READS as f64);
    assert!((0.6..1.2).contains(&(numbers[0] / reads)), "{row}: {reads}");
    assert!((0.8..1.2).contains(&(numbers[1] / share)), "{row}: {share}");
    found
}

/// Keys are shown by table, with the columns that the table has; reads and writes have a count each; a minute
/// later there is nothing.
#[test]
fn reads_and_writes_are_counted_by_table_for_a_minute() {
    let mut bench = Bench::new();
    bench.sql("CREATE TABLE frag (page INT, part TEXT, body TEXT, PRIMARY KEY (page, part)) WITH (prefix = 'frag:', value = 'body')");
    bench.tick();
    for _ in 0..5 {
        bench.get("frag:17:head");
    }
    bench.set("frag:17:head");
    bench.set("plain");
    // A text that is no key of the table is none.
    bench.get("frag:none");
    bench.tick();
    let hot = "SELECT table_name AS t, key AS k, reads AS r, writes AS w, round(share::numeric, 2) AS s FROM sqlcached_hot ORDER BY 1";
    let frag = r#"{"t":"frag","k":"17, head","r":5,"w":1,"s":1.00}"#;
    assert_eq!(bench.sql(hot), [frag, r#"{"t":"memcached","k":"plain","r":0,"w":1,"s":1.00}"#]);
    let delete = Session::local().delete(&mut bench.context, b"plain");
    assert_eq!(delete, Answer::Deleted);
    bench.tick();
    assert_eq!(
        bench.sql("SELECT writes FROM sqlcached_hot WHERE table_name = 'memcached'"),
        [r#"{"writes":2}"#]
    );
    assert_eq!(bench.sql("SELECT key FROM sqlcached_hot WHERE table_name = 'none'"), [""; 0]);
    // The keys of a table that was dropped are shown under no other name.
    bench.sql("DROP TABLE frag");
    bench.sql("CREATE TABLE frag (page INT PRIMARY KEY, body TEXT) WITH (prefix = 'frag:', value = 'body')");
    assert_eq!(bench.sql("SELECT key FROM sqlcached_hot WHERE table_name = 'frag'"), [""; 0]);
    for _ in 0..60 * 16 {
        bench.tick();
    }
    assert_eq!(bench.sql("SELECT key FROM sqlcached_hot"), [""; 0]);
}

/// The threads' samples are bounded, and so are the keys of a slice.
#[test]
fn a_flood_of_keys_leaves_the_hot_one() {
    let mut bench = Bench::new();
    for round in 0..200 {
        bench.tick();
        for key in 0..300 {
            bench.get(&format!("once:{round}:{key}"));
            bench.get("hot");
        }
    }
    bench.engine.tick();
    let hot = bench.sql("SELECT key, share > 0.4 AS s FROM sqlcached_hot ORDER BY reads DESC LIMIT 1");
    assert_eq!(hot, [r#"{"key":"hot","s":1}"#]);
    let shown = bench.sql("SELECT count(*) AS n FROM sqlcached_hot");
    assert_eq!(shown, [r#"{"n":100}"#]);
}
