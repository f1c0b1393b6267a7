//! Rows that one cache gives another: which, in which steps, and what becomes of them there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use store::value::Value;
use store::{
    Ends, Expect, Expiry, GiveLimits, GivePlace, Mark, NoSuchPlace, Replica, RowBuf, RowTap, Store, Table,
    Time,
};

use crate::common::{Bench, all_rows, get, put, set, table};

const ALL: GiveLimits =
    GiveLimits { groups: u64::MAX, rows: usize::MAX, bytes: usize::MAX, row_bytes: 1 << 20 };

type Given = BTreeMap<Vec<u8>, Replica>;

fn cached(bench: &Bench, settings: &[(&str, &str)]) -> Arc<Table> {
    let settings: Vec<_> = [("prefix", "t:"), ("value", "v")].iter().chain(settings).copied().collect();
    bench.store.create_table(table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &settings)).unwrap()
}

/// All that is given in steps of this size. Between two steps `meanwhile` happens.
fn given(
    store: &Store,
    table: &Table,
    most: &GiveLimits,
    mut meanwhile: impl FnMut(usize),
) -> (Given, usize) {
    let (mut all, mut from, mut steps) = (Given::new(), None, 0);
    loop {
        let next = store.give_rows(table, from, most, &mut |key, row| {
            assert!(all.insert(key.to_vec(), row).is_none(), "{key:?} is given twice");
        });
        steps += 1;
        from = next.unwrap();
        if from.is_none() {
            return (all, steps);
        }
        meanwhile(steps);
    }
}

#[test]
fn each_row_is_given_once_in_steps_of_any_size() {
    let bench = Bench::new(64);
    let table = cached(&bench, &[]);
    for key in 0..2_000 {
        set(&bench.store, &table, format!("k{key}").as_bytes(), b"value", Expiry::Table);
    }
    for (rows, bytes, groups) in
        [(7, usize::MAX, u64::MAX), (usize::MAX, 500, u64::MAX), (usize::MAX, usize::MAX, 3)]
    {
        let most = GiveLimits { rows, bytes, groups, ..ALL };
        let (all, steps) = given(&bench.store, &table, &most, |_| {});
        assert_eq!(all.len(), 2_000);
        assert!(steps > 50, "{steps} steps");
    }
    // The index grows meanwhile, and rows come and go.
    let most = GiveLimits { rows: 40, ..ALL };
    let (all, _) = given(&bench.store, &table, &most, |step| {
        for key in (step * 500..(step + 1) * 500).take_while(|key| *key < 20_000) {
            set(&bench.store, &table, format!("new{key}").as_bytes(), b"value", Expiry::Table);
        }
        bench.store.tick();
    });
    assert_eq!(all.keys().filter(|key| key.starts_with(b"k")).count(), 2_000);
}

#[test]
fn rows_of_any_size_are_given_but_those_that_fit_nowhere() {
    let bench = Bench::new(64);
    let table = cached(&bench, &[]);
    for key in 0..60 {
        set(&bench.store, &table, format!("k{key}").as_bytes(), &vec![b'x'; 30_000], Expiry::Table);
    }
    set(&bench.store, &table, b"large", &vec![b'x'; 300_000], Expiry::Table);
    set(&bench.store, &table, b"larger", &vec![b'x'; 600_000], Expiry::Table);
    let most = GiveLimits { bytes: 100_000, row_bytes: 512 << 10, ..ALL };
    let (all, steps) = given(&bench.store, &table, &most, |_| {});
    assert_eq!((all.len(), all.contains_key(&b"larger"[..])), (61, false));
    assert!((20..=61).contains(&steps), "{steps}");
}

/// Whoever says a place may have made it up.
#[test]
fn places_that_are_none_are_refused() {
    let bench = Bench::new(64);
    let table = cached(&bench, &[]);
    set(&bench.store, &table, b"k", b"v", Expiry::Table);
    let at = |groups, group| {
        let place = Some(GivePlace { groups, group, behind: None });
        bench.store.give_rows(&table, place, &ALL, &mut |_, _| {})
    };
    for (groups, group) in [(0, 0), (3, 0), (1, 0), (128, 0), (1 << 40, 0), (256, 256), (u64::MAX, 7)] {
        assert_eq!(at(groups, group), Err(NoSuchPlace), "{groups} {group}");
    }
    assert_eq!(at(256, 255), Ok(None));
}

/// A write of one key is under way.
#[derive(Debug)]
struct Tap;

impl RowTap for Tap {
    fn wrote(&self, _: &Time, _: &Table, _: &[u8], _: Option<&RowBuf>) {}

    fn emptied(&self, _: &Table) {}

    fn is_under_way(&self, _: &Table, key: Option<&[u8]>) -> bool {
        key.is_none_or(|key| key == b"mine")
    }
}

#[test]
fn only_what_everybody_may_have_is_given() {
    let bench = Bench::new(64);
    let (store, table) = (&bench.store, cached(&bench, &[("stale_for", "1 min")]));
    for key in ["a", "mine", "old", "over", "claimed"] {
        set(store, &table, key.as_bytes(), b"v", Expiry::Table);
    }
    let until = store.tick_after(Duration::from_secs(5));
    set(store, &table, b"over", b"v", Expiry::At(until));
    let stale = store::Edit { mark: Mark::Stale, ..store::Edit::default() };
    store.edit_item(&table, b"old", &stale, store.now(), &mut |_, _| store::Edited::Same).unwrap();
    let (seen, _) = store.look(&table, b"claimed", store.now(), false).unwrap();
    let lease = store.tick_after(Duration::from_mins(1));
    assert!(store.take_lease(&table, b"claimed", &seen, lease, store.now()));
    bench.advance(Duration::from_secs(6));
    // It is served stale, and refreshed by somebody.
    assert!(get(store, &table, b"over").is_some());
    store.tap_rows(Arc::new(Tap));
    let (all, _) = given(store, &table, &ALL, |_| {});
    assert_eq!(all.keys().collect::<Vec<_>>(), [b"a"]);
}

/// A deadline is a moment, also that of a table's `ttl`.
#[test]
fn a_row_ends_when_it_ends_where_it_was() {
    let bench = Bench::new(64);
    let (store, table) = (&bench.store, cached(&bench, &[("ttl", "100 s")]));
    let in_seconds = |seconds| Expiry::At(store.tick_after(Duration::from_secs(seconds)));
    set(store, &table, b"own", b"v", in_seconds(500));
    set(store, &table, b"table", b"v", Expiry::Table);
    set(store, &table, b"never", b"v", Expiry::Never);
    bench.advance(Duration::from_secs(30));
    let (all, _) = given(store, &table, &ALL, |_| {});
    let now = store.clock().unix_ms();
    let left = |key: &str| match all[key.as_bytes()].ends {
        Ends::At(ms) => Some(ms.saturating_sub(now).div_ceil(1_000)),
        _ => None,
    };
    assert_eq!((left("own"), left("table"), all[&b"never"[..]].ends), (Some(470), Some(70), Ends::Never));
}

#[test]
fn a_row_is_put_in_where_there_is_none() {
    let bench = Bench::new(64);
    let (store, table) = (&bench.store, cached(&bench, &[]));
    let row = |value: &str, ends| Replica {
        values: vec![Value::Text(value.to_owned())],
        client_flags: 7,
        ends,
        stale: false,
    };
    let put_to = |key: &[u8], row: &Replica, stale_to| {
        store.put_given(&table, key, row, (stale_to, store.now())).unwrap()
    };
    let put_in = |key: &[u8], row: &Replica| put_to(key, row, 0);
    store.tap_rows(Arc::new(Tap));
    assert!(put_in(b"a", &row("given", Ends::Table)));
    assert!(!put_in(b"a", &row("again", Ends::Table)), "there is one");
    assert!(!put_in(b"mine", &row("given", Ends::Table)), "a write is under way");
    assert!(!put_in(b"b", &row("given", Ends::At(store.clock().unix_ms()))), "its time has come");
    assert!(!put_in(&vec![b'x'; 70_000], &row("given", Ends::Table)), "no key is so long");
    set(store, &table, b"old", b"old", Expiry::Table);
    let stale = store::Edit { mark: Mark::Stale, ..store::Edit::default() };
    store.edit_item(&table, b"old", &stale, store.now(), &mut |_, _| store::Edited::Same).unwrap();
    assert!(!put_in(b"old", &row("given", Ends::Table)), "it was invalidated");
    assert!(put_to(b"old", &row("given", Ends::Table), store.last_stamp()), "what is not believed gives way");
    let text = |text: &str| Value::Text(text.to_owned());
    assert_eq!(
        all_rows(store, &table),
        [[text("a"), text("given")], [text("old"), text("given")]].map(|row| row.to_vec())
    );
    store.delete(&table, b"a", Expect::Anything, store.now()).unwrap();
    assert!(put_in(b"a", &row("given", Ends::Table)), "who forbids it has noted that");
}

/// Bytes that are no key of the table.
#[test]
fn what_is_no_key_is_refused() {
    let bench = Bench::new(64);
    let columns = [("a", "INT"), ("b", "TEXT"), ("v", "TEXT")];
    let table = bench.store.create_table(table("t", &columns, 2, &[])).unwrap();
    let write = put(&table, &[Value::Integer(7), Value::Text("x".into()), Value::Null], Expect::Absent);
    let row = Replica { values: vec![Value::Null], client_flags: 0, ends: Ends::Table, stale: false };
    let mut random = fastrand::Rng::with_seed(crate::common::seed());
    for _ in 0..10_000 {
        let mut key = write.key.clone();
        match random.u8(..3) {
            0 => key.truncate(random.usize(..key.len())),
            1 => key.push(random.u8(..)),
            _ => key = (0..random.usize(..20)).map(|_| random.u8(..)).collect(),
        }
        let put_in = bench.store.put_given(&table, &key, &row, (0, bench.store.now())).unwrap();
        assert!(!put_in || table.keys().is_key(&key), "{key:?}");
    }
    assert!(bench.store.put_given(&table, &write.key, &row, (0, bench.store.now())).unwrap());
    all_rows(&bench.store, &table);
}
