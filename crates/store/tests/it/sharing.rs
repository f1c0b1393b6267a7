//! Tables that other processes may read: a reader of the file says what the store says.

use std::sync::Arc;
use std::time::Duration;

use store::value::Value;
use store::{
    BUILT_IN, Clock, Expect, Expiry, Found, Freshness, ManualClock, Reader, RowBuf, Start, Store, hits_path,
    shared_path_beside,
};

use crate::common::{all_rows, delete, get, options, put, seed, set, table};
use crate::restart::TempArena;

/// A store whose files go with it, and the hands of its clock.
struct Shared {
    file: TempArena,
    hands: Arc<ManualClock>,
}

impl Shared {
    fn new(name: &str) -> Self {
        Self { file: TempArena::new(name), hands: ManualClock::new(1_700_000_000) }
    }

    fn open(&self) -> Arc<Store> {
        Store::open(&options(Some(self.file.0.clone()), 16, &self.hands)).unwrap().store
    }

    fn reader(&self) -> Reader {
        let own = [rustix::process::geteuid().as_raw()];
        Reader::open(&shared_path_beside(&self.file.0), &own, Clock::Manual(Arc::clone(&self.hands))).unwrap()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let shared = shared_path_beside(&self.file.0);
        let _ = std::fs::remove_file(
            shared.with_file_name(format!("{}.hits", shared.file_name().unwrap().to_string_lossy())),
        );
        let _ = std::fs::remove_file(shared);
    }
}

fn read(reader: &Reader, table: &str, key: &[u8]) -> Option<(Vec<u8>, Freshness)> {
    let definitions = reader.definitions();
    let table = definitions.table(table)?;
    let mut value = Vec::new();
    match reader.value(table, key, reader.begin()?, &mut value) {
        Found::Hit(seen) => Some((value, seen.freshness)),
        Found::Miss => None,
        Found::Unanswered => panic!("nobody writes meanwhile"),
    }
}

#[test]
fn a_reader_says_what_the_store_says_as_time_goes_on() {
    reader_agrees_with_store("reader", Duration::ZERO);
}

/// 4.25 years after an arena was made moments become whole seconds, for readers in other processes too.
#[test]
fn a_reader_says_what_the_store_says_when_moments_become_seconds() {
    let edge = Duration::from_nanos(((1 << 31) - 1) * store::TICK_NS);
    reader_agrees_with_store("reader-years", edge.saturating_sub(Duration::from_mins(3)));
}

/// Beginning so long after the arena was made.
fn reader_agrees_with_store(name: &str, begin: Duration) {
    let files = Shared::new(name);
    let store = files.open();
    files.hands.advance(begin);
    store.tick();
    let rules = [
        &[("ttl", "60 s")][..],
        &[("ttl", "20 s"), ("refresh_before", "5 s"), ("stale_for", "10 s")],
        &[("max_ops", "300")],
        &[],
    ];
    let tables: Vec<_> = (0..rules.len())
        .map(|at| {
            let prefix = format!("t{at}:");
            let mut options = vec![("shared_memory", "on"), ("value", "v"), ("prefix", &prefix)];
            options.extend_from_slice(rules[at]);
            store
                .create_table(table(&format!("t{at}"), &[("k", "TEXT"), ("v", "TEXT")], 1, &options))
                .unwrap()
        })
        .collect();
    let reader = files.reader();
    let mut rng = fastrand::Rng::with_seed(seed());
    let mut hits = 0;
    for step in 0..6_000 {
        let table = &tables[rng.usize(..tables.len())];
        let key = rng.u8(..30).to_string().into_bytes();
        match rng.u8(..20) {
            0 => drop(store.delete(table, &key, Expect::Anything, store.now()).unwrap()),
            1 => drop(
                store.touch(table, &key, Expiry::At(store.now() + rng.u32(1..400)), store.now()).unwrap(),
            ),
            2..=5 => files.hands.advance(Duration::from_millis(rng.u64(..700))),
            6 => store.tick(),
            7 if step % 40 == 0 => store.flush(table),
            8 if step % 30 == 0 => store.flush_reachable(Some(store.now() + rng.u32(1..60))),
            _ => {
                let expiry = match rng.u8(..4) {
                    0 => Expiry::At(store.now() + rng.u32(1..400)),
                    1 => Expiry::Never,
                    _ => Expiry::Table,
                };
                set(&store, table, &key, &vec![b'x'; rng.usize(..2_000)], expiry);
            }
        }
        // Often the cleaner has not run since the clock moved: a reader does not need it.
        let expected = get(&store, table, &key);
        let found = read(&reader, table.name(), &key);
        hits += usize::from(found.is_some());
        assert_eq!(
            found.as_ref().map(|(value, _)| value),
            expected.as_ref(),
            "step {step}, {}",
            table.name()
        );
        if let Some((meta, _)) = store.look(table, &key, store.now(), false) {
            let state = store.freshness(table, &meta, store.now());
            assert_eq!(found.map(|(_, state)| state), Some(state), "step {step}, {}", table.name());
        }
    }
    assert!(hits > 500, "{hits} hits show little");
}

/// A flush whose moment comes while the daemon does not run was not seen by readers of its file.
#[test]
fn a_reader_judges_a_flush_by_its_moment() {
    let files = Shared::new("flush-moment");
    let store = files.open();
    let options = [("prefix", "t:"), ("value", "v"), ("shared_memory", "on")];
    let t = store.create_table(table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &options)).unwrap();
    set(&store, &t, b"t:before", b"1", Expiry::Table);
    store.flush_reachable(Some(store.tick_after(Duration::from_secs(5))));
    let reader = files.reader();
    let found = |key: &[u8]| read(&reader, "t", key).is_some();
    files.hands.advance(Duration::from_secs(4));
    assert!(found(b"t:before"));
    // The store does nothing at the moment, as a daemon that was stopped.
    files.hands.advance(Duration::from_secs(2));
    assert!(!found(b"t:before"));
    set(&store, &t, b"t:after", b"1", Expiry::Table);
    assert!(!found(b"t:before") && found(b"t:after"));
    store.tick();
    assert!(!found(b"t:before") && found(b"t:after"));
}

#[test]
fn only_shared_tables_are_seen_and_prefixes_lead_where_they_lead_the_daemon() {
    let files = Shared::new("prefixes");
    let store = files.open();
    let make = |name: &str, prefix: &str, shared: &str| {
        let options = [("prefix", prefix), ("value", "v"), ("shared_memory", shared)];
        store.create_table(table(name, &[("k", "TEXT"), ("v", "TEXT")], 1, &options)).unwrap()
    };
    make("a", "a:", "on");
    make("ab", "a:b:", "off");
    make("abc", "a:b:c:", "on");
    make("z", "z:", "off");
    let reader = files.reader();
    let mut names: Vec<String> =
        reader.definitions().tables().map(|table| table.def().name.clone()).collect();
    names.sort();
    assert_eq!(names, ["a", "abc"]);
    let mut rng = fastrand::Rng::with_seed(seed());
    let agree = |rng: &mut fastrand::Rng| {
        for _ in 0..2_000 {
            let len = rng.usize(1..9);
            let key: Vec<u8> = std::iter::repeat_with(|| b"abcz::"[rng.usize(..6)]).take(len).collect();
            let catalog = store.catalog();
            let (table, rest) = catalog.route(&key);
            let definitions = reader.definitions();
            let seen = definitions.route(&key).map(|(table, rest)| (table.def().name.as_str(), rest));
            let expected = table.def().options.shared_memory.then_some((table.name(), rest));
            assert_eq!(seen, expected, "{}", String::from_utf8_lossy(&key));
        }
    };
    agree(&mut rng);
    store.set_options(BUILT_IN, &mut |options, columns| options.set("shared_memory", "on", columns)).unwrap();
    agree(&mut rng);
    store.set_options("a", &mut |options, _| options.reset("shared_memory")).unwrap();
    agree(&mut rng);
    store.drop_table("ab").unwrap();
    agree(&mut rng);
}

/// Another process compared definitions before it read, and not after: where the table was dropped in between and
/// another one had got its number, the reader returned that one's bytes.
#[test]
fn a_reader_does_not_answer_from_the_table_that_has_a_dropped_ones_number() {
    let files = Shared::new("numbers");
    let store = files.open();
    let options = [("shared_memory", "on"), ("value", "v")];
    let make =
        |name: &str| store.create_table(table(name, &[("k", "TEXT"), ("v", "TEXT")], 1, &options)).unwrap();
    let number = {
        let t = make("t");
        set(&store, &t, b"key", b"of t", Expiry::Table);
        t.id()
    };
    let reader = files.reader();
    // The reader is between its look at the definitions and its look at the row.
    let definitions = reader.definitions();
    let old = definitions.table("t").unwrap();
    let now = reader.begin().unwrap();
    let mut value = Vec::new();
    assert!(reader.is_current(old) && matches!(reader.value(old, b"key", now, &mut value), Found::Hit(_)));
    store.drop_table("t").unwrap();
    // Numbers come in turn.
    while make("u").id() != number {
        store.drop_table("u").unwrap();
    }
    set(&store, store.catalog().table("u").unwrap(), b"key", b"of u", Expiry::Table);
    assert_eq!(reader.value(old, b"key", now, &mut value), Found::Unanswered);
    assert_eq!(read(&reader, "u", b"key"), Some((b"of u".to_vec(), Freshness::Fresh)));
    assert_eq!(read(&reader, "t", b"key"), None);
}

#[test]
fn a_table_that_changes_its_file_is_empty_in_the_other_one() {
    let files = Shared::new("changes");
    let store = files.open();
    let t = store.create_table(table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("value", "v")])).unwrap();
    set(&store, &t, b"key", b"private", Expiry::Table);
    store.set_options("t", &mut |options, columns| options.set("shared_memory", "on", columns)).unwrap();
    let reader = files.reader();
    let catalog = store.catalog();
    let shared = catalog.table("t").unwrap();
    assert_eq!(get(&store, shared, b"key"), None);
    assert_eq!(
        store.put_item(&t, b"key", &crate::common::item(b"late", Expiry::Table), Expect::Anything, 1).ok(),
        None
    );
    set(&store, shared, b"key", b"shared", Expiry::Table);
    assert_eq!(read(&reader, "t", b"key"), Some((b"shared".to_vec(), Freshness::Fresh)));
    store.set_options("t", &mut |options, _| options.reset("shared_memory")).unwrap();
    assert_eq!(read(&reader, "t", b"key"), None);
    assert_eq!(get(&store, store.catalog().table("t").unwrap(), b"key"), None);
}

#[test]
fn a_commit_of_both_kinds_and_a_warm_start() {
    let files = Shared::new("commit");
    let columns = [("a", "INT"), ("b", "INT"), ("c", "TEXT")];
    let expected = {
        let store = files.open();
        let kinds = ["on", "off"].map(|shared| {
            let mut def = table(&format!("t_{shared}"), &columns, 2, &[("shared_memory", shared)]);
            def.indexes =
                vec![store::definition::IndexDef::new(format!("{}_c", def.name), vec![2], shared == "on")];
            store.create_table(def).unwrap()
        });
        let row = |n: i64| [Value::Integer(n), Value::Integer(n * 2), Value::Text(format!("c{n}"))];
        let all: Vec<_> = (0..400)
            .flat_map(|n| kinds.each_ref().map(|table| put(table, &row(n), Expect::Absent)))
            .collect();
        store.commit(&all).unwrap();
        let some: Vec<_> = (0..100)
            .flat_map(|n| kinds.each_ref().map(|table| delete(table, &row(n * 3)[..2], Expect::Present)))
            .collect();
        store.commit(&some).unwrap();
        let refused = store
            .commit(&[put(&kinds[1], &row(1000), Expect::Absent), put(&kinds[0], &row(1), Expect::Absent)]);
        assert!(refused.is_err());
        kinds.map(|table| all_rows(&store, &table))
    };
    assert_eq!((expected[0].len(), &expected[0]), (300, &expected[1]));
    let reader = files.reader();
    let opened = Store::open(&options(Some(files.file.0.clone()), 16, &files.hands)).unwrap();
    assert!(matches!(opened.start, Start::Warm { redone: 0, .. }), "{:?}", opened.start);
    let store = opened.store;
    assert_eq!(store.recover(), store::Recovered { rows: 600, dropped: 0, complete: true });
    for (name, rows) in ["t_on", "t_off"].iter().zip(&expected) {
        assert_eq!(&all_rows(&store, store.catalog().table(name).unwrap()), rows);
    }
    // Who read before the restart reads on.
    let definitions = reader.definitions();
    let shared = definitions.table("t_on").unwrap();
    let (mut key, mut row) = (Vec::new(), RowBuf::new());
    shared.key_from_text(b"1:2", &mut key).unwrap();
    assert!(matches!(reader.row(shared, &key, reader.begin().unwrap(), &mut row), Found::Hit(_)));
    assert_eq!(shared.column(&row, 2).to_owned(), Value::Text("c1".into()));
    drop(store);
    // A cold start tells readers that what they have is nothing any more.
    let cold = store::StoreOptions { cold: true, ..options(Some(files.file.0.clone()), 16, &files.hands) };
    let _store = Store::open(&cold).unwrap();
    assert_eq!(reader.begin(), None);
}

#[test]
fn rows_that_only_readers_use_are_not_evicted_first() {
    let files = Shared::new("hits");
    let store = files.open();
    let options = [("value", "v"), ("shared_memory", "on"), ("max_rows", "1000")];
    let t = store.create_table(table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &options)).unwrap();
    let put = |n: usize| set(&store, &t, n.to_string().as_bytes(), &[b'x'; 200], Expiry::Table);
    (0..1_000).for_each(put);
    let reader = files.reader();
    let used: Vec<String> = (0..100).map(|n| (n * 10).to_string()).collect();
    for more in 0..40 {
        for key in &used {
            for _ in 0..3 {
                read(&reader, "t", key.as_bytes());
            }
        }
        store.tick();
        (0..100).for_each(|n| put(1_000 + more * 100 + n));
    }
    let kept = used.iter().filter(|key| get(&store, &t, key.as_bytes()).is_some()).count();
    assert!(kept > 90, "{kept} of the 100 rows that are read stay");
    // A file that was cut short by who may write it is no advice, and no harm.
    let hits = hits_path(&shared_path_beside(&files.file.0));
    std::fs::OpenOptions::new().write(true).open(&hits).unwrap().set_len(0).unwrap();
    store.tick();
    put(0);
    std::fs::remove_file(&hits).unwrap();
}

#[test]
fn without_a_file_there_are_no_shared_tables() {
    let bench = crate::common::Bench::new(16);
    let refused = bench.store.create_table(table("t", &[("k", "TEXT")], 1, &[("shared_memory", "on")]));
    assert_eq!(refused.unwrap_err().state, "0A000");
    // And a file of somebody else's is not taken.
    let files = Shared::new("squatted");
    let place = shared_path_beside(&files.file.0);
    std::os::unix::fs::symlink("/dev/null", &place).unwrap();
    let store = files.open();
    let make =
        |store: &Store| store.create_table(table("t", &[("k", "TEXT")], 1, &[("shared_memory", "on")]));
    let error = make(&store).unwrap_err();
    assert_eq!(error.state, "58030");
    assert!(error.message.contains("cannot be used: it is a symbolic link"), "{}", error.message);
    std::fs::remove_file(&place).unwrap();
    make(&store).unwrap();
}
