//! Everything at once in little memory: afterwards rows, indexes and counters agree.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use store::definition::IndexDef;
use store::value::Value;
use store::{Expect, Expiry, KeyBounds, ReadError, Removals, RowBuf, Store, Table, WriteError};

use crate::common::{BOTH_WAYS, Bench, all_rows, get, item, put, seed, table, values};

/// Rounds of each writer.
const ROUNDS: usize = 12_000;
/// Different keys, few enough to be overwritten often and too many to fit.
const KEYS: u64 = 6_000;

/// A value that names its key and its own length, so that a torn or foreign one shows.
fn value(key: u64, random: &mut fastrand::Rng) -> Vec<u8> {
    let len = random.usize(0..8_000);
    let mut value = format!("{key}:{len}:").into_bytes();
    value.resize(value.len() + len, b'a' + u8::try_from(key % 26).unwrap());
    value
}

fn certify(key: u64, value: &[u8]) {
    let text = std::str::from_utf8(value).unwrap();
    let mut parts = text.splitn(3, ':');
    assert_eq!(parts.next().unwrap(), key.to_string(), "a value under another key");
    let len: usize = parts.next().unwrap().parse().unwrap();
    let rest = parts.next().unwrap();
    assert_eq!(rest.len(), len, "key {key}");
    assert!(rest.bytes().all(|byte| u64::from(byte - b'a') == key % 26), "key {key} is torn");
}

fn name(key: u64) -> Vec<u8> {
    key.to_string().into_bytes()
}

/// Counts a write that was refused for want of room; no other refusal is expected.
fn refusal<T>(result: Result<T, WriteError>) -> usize {
    match result {
        Ok(_) | Err(WriteError::Lost(_)) => 0,
        Err(WriteError::Full) => 1,
        Err(error) => panic!("{error:?}"),
    }
}

/// Writes and reads at random; returns how many writes were refused.
fn write(store: &Store, t: &Arc<Table>, random: &mut fastrand::Rng) -> usize {
    let now = store.now();
    let mut refused = 0;
    for _ in 0..ROUNDS {
        let key = random.u64(0..KEYS);
        match random.u32(0..100) {
            0..50 => {
                let bytes = value(key, random);
                let item = item(&bytes, Expiry::Table);
                refused += refusal(store.put_item(t, &name(key), &item, Expect::Anything, now));
            }
            50..60 => {
                store.delete(t, &name(key), Expect::Anything, now).unwrap();
            }
            60..70 => {
                let bytes = value(key, random);
                let mut edit = |_: &[u8], new: &mut Vec<u8>| {
                    new.extend_from_slice(&bytes);
                    true
                };
                refused += refusal(store.rewrite_item(t, &name(key), now, &mut edit));
            }
            70..75 => {
                let first = random.u64(0..KEYS - 20);
                let rows = (first..first + 20).map(|key| {
                    let text = String::from_utf8(value(key, random)).unwrap();
                    put(t, &[Value::Text(key.to_string()), Value::Text(text)], Expect::Anything)
                });
                refused += refusal(store.commit(&rows.collect::<Vec<_>>()));
            }
            75..77 => remove_some(store, t, &value(key, random)),
            _ => {
                if let Some(found) = get(store, t, &name(key)) {
                    certify(key, &found);
                }
            }
        }
    }
    refused
}

/// Removes some rows, as they were read along the index; others may write them meanwhile.
fn remove_some(store: &Store, t: &Arc<Table>, from: &[u8]) {
    let mut list = Removals::default();
    {
        let view = store.view();
        let from = Value::Text(String::from_utf8(from.to_vec()).unwrap());
        let bounds = KeyBounds { lower: Bound::Included(vec![from]), upper: Bound::Unbounded };
        let mut scan = view.range(t, &t.indexes()[0], &bounds, false);
        let mut row = RowBuf::new();
        while list.len() < 20 && scan.next(&view, &mut row).unwrap_or(false) {
            store.list_removal(&mut list, t, &row);
        }
    }
    let removed = store.remove_all(t, &list);
    assert!(matches!(removed, Ok(_) | Err(WriteError::Lost(_))), "{removed:?}");
}

/// The rows by an index, or in storage order; `None` where the index is dropped meanwhile, or where the versions that
/// the statement needs outgrew their bound: a delayed reader gets this error, and no writer waits for it.
fn read(store: &Store, t: &Arc<Table>, index: Option<&str>) -> Option<Vec<Vec<Value>>> {
    let view = store.view();
    let (mut row, mut rows) = (RowBuf::new(), Vec::new());
    let mut collect = |row: &RowBuf| rows.push(values(t, row));
    match index {
        None => {
            let mut scan = view.scan(t);
            while whole(scan.next(&view, &mut row))? {
                collect(&row);
            }
        }
        Some(index) => {
            let index = t.indexes().iter().find(|own| own.name() == index)?;
            let mut scan = view.range(t, index, &KeyBounds::ALL, false);
            while whole(scan.next(&view, &mut row))? {
                collect(&row);
            }
        }
    }
    rows.sort_by_key(|row| format!("{row:?}"));
    Some(rows)
}

fn whole(next: Result<bool, ReadError>) -> Option<bool> {
    match next {
        Ok(more) => Some(more),
        Err(ReadError::SnapshotTooOld) => None,
        Err(error) => panic!("{error:?}"),
    }
}

fn certify_rows(rows: &[Vec<Value>]) {
    for row in rows {
        let [Value::Text(key), Value::Text(value)] = &row[..] else { panic!("{row:?}") };
        certify(key.parse().unwrap(), value.as_bytes());
    }
}

#[test]
fn everything_at_once_leaves_rows_indexes_and_counters_in_agreement() {
    let bench = Bench::new(16);
    let store = &bench.store;
    let mut def = table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("prefix", "t:"), ("value", "v")]);
    def.indexes = vec![IndexDef::new("t_v", vec![1], false)];
    let t = store.create_table(def).unwrap();
    let seed = seed();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let done = &done;
        let writers: Vec<_> = (0..3_u64)
            .map(|writer| {
                let t = &t;
                scope.spawn(move || write(store, t, &mut fastrand::Rng::with_seed(seed ^ writer)))
            })
            .collect();
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                store.tick();
                // Commits by locks and by marks meet each other.
                store.set_locked_rows_max(BOTH_WAYS[fastrand::usize(..2)]);
                std::thread::yield_now();
            }
        });
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let t = Arc::clone(store.catalog().table("t").unwrap());
                for index in [None, Some("t_v"), Some("t_k")] {
                    read(store, &t, index).inspect(|rows| certify_rows(rows));
                }
            }
        });
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let def = IndexDef::new("t_k", vec![0], false);
                store.create_index("t", def).unwrap();
                store.drop_index("t_k").unwrap();
            }
        });
        let ended: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        let refused: usize = ended.into_iter().map(|writer| writer.unwrap()).sum();
        assert_eq!(
            refused, 0,
            "writes refused for want of room, which there always is: what others hold, they let go"
        );
    });
    let t = Arc::clone(store.catalog().table("t").unwrap());
    let rows = all_rows(store, &t);
    assert_eq!(read(store, &t, Some("t_v")).unwrap(), rows);
    assert_eq!(t.indexes()[0].len(), rows.len() as u64, "entries without a row");
    assert_eq!(t.rows(), rows.len() as u64);
    let usage = store.usage();
    assert_eq!(usage.rows, rows.len() as u64, "{usage:?}");
    assert!(usage.row_bytes <= usage.segment_bytes, "{usage:?}");
    assert!(usage.segment_bytes + usage.index_bytes + usage.heap_bytes <= 16 << 20, "{usage:?}");
    store.truncate(&t);
    bench.advance(std::time::Duration::from_secs(1));
    assert!(all_rows(store, &t).is_empty());
    // What lies in segments still open is counted until they are full; nothing is counted twice.
    let stats = t.stats();
    assert!(stats.bytes <= stats.segment_bytes, "{stats:?}");
    assert_eq!(t.indexes()[0].len(), stats.rows);
}
