//! Values that are received where they are going to lie, while memory is wanted and definitions change.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use store::{BUILT_IN, ComingItem, Expect, Expiry, InPlace, Outcome, Store, Table};

use crate::common::{Bench, get, set};

fn begin(store: &Arc<Store>, table: &Arc<Table>, key: &[u8], bytes: usize) -> Option<InPlace> {
    let item = ComingItem { value_bytes: bytes, client_flags: 0, expiry: Expiry::Table, cas: None };
    store.reserve_item(table, key, &item, Expect::Anything, store.now())
}

fn value(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect()
}

fn finish(store: &Store, table: &Arc<Table>, key: &[u8], in_place: InPlace) {
    let stored = store.put_in_place(table, key, in_place, Expiry::Table, Expect::Anything, store.now());
    assert!(matches!(stored, Ok(Outcome::Done(_))), "{stored:?}");
}

#[test]
fn a_value_comes_whole_while_all_memory_is_wanted() {
    let bench = Bench::new(16);
    let store = &bench.store;
    let catalog = store.catalog();
    let t = catalog.table(BUILT_IN).unwrap();
    let filler = vec![b'v'; 20_000];
    for bytes in [16_000, 100_000, 400_000, 900_000] {
        let value = value(bytes);
        let mut in_place = begin(store, t, b"k", bytes).expect("room");
        let (first, second) = value.split_at(bytes / 3);
        in_place.append(first);
        for n in 0..4_000 {
            set(store, t, format!("{n}").as_bytes(), &filler, Expiry::Table);
        }
        store.flush(t);
        bench.advance(Duration::from_secs(1));
        // The rest from a socket, with something behind it.
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut spill = [0; 6];
        for piece in second.chunks(50_000) {
            there.write_all(piece).unwrap();
            if piece.len() == in_place.missing() {
                there.write_all(b"behind").unwrap();
            }
            let mut left = piece.len();
            while left > 0 {
                left -= in_place.receive(here.as_fd(), 30_000, &mut spill).unwrap().received;
            }
        }
        assert!(in_place.missing() == 0 && spill == *b"behind");
        finish(store, t, b"k", in_place);
        assert!(get(store, t, b"k") == Some(value), "{bytes} bytes");
        // Nothing stays behind: all that was flushed comes back.
        store.flush(t);
        bench.advance(Duration::from_secs(1));
        bench.advance(Duration::from_secs(1));
        let usage = store.usage();
        assert!(usage.segment_bytes < 3 << 20, "{usage:?}");
    }
}

#[test]
fn rows_received_in_place_hold_an_eighth_of_the_memory_at_most_and_give_it_back() {
    let bench = Bench::new(16);
    let store = &bench.store;
    let catalog = store.catalog();
    let t = catalog.table(BUILT_IN).unwrap();
    for _ in 0..100 {
        let in_place_rows: Vec<InPlace> =
            (0..10).map_while(|n| begin(store, t, format!("{n}").as_bytes(), 900_000)).collect();
        assert_eq!(in_place_rows.len(), 2);
        // Another table's, or a short one's, find none either; ordinary rows do.
        assert!(begin(store, t, b"short", 20_000).is_none());
        set(store, t, b"other", &value(900_000), Expiry::Table);
    }
    let usage = store.usage();
    assert!(usage.evicted == 0 && usage.rows == 1, "what was given up is used again: {usage:?}");
    bench.advance(Duration::from_secs(1));
    let in_place = begin(store, t, b"last", 900_000).expect("all was given back");
    drop(in_place);
}

#[test]
fn a_dropped_table_keeps_no_memory_for_a_value_that_was_coming() {
    let bench = Bench::new(16);
    let store = &bench.store;
    let def =
        crate::common::table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("prefix", "t:"), ("value", "v")]);
    let t = store.create_table(def).unwrap();
    let mut in_place = begin(store, &t, b"k", 500_000).expect("room");
    in_place.append(&value(500_000));
    store.drop_table("t").unwrap();
    let stored = store.put_in_place(&t, b"k", in_place, Expiry::Table, Expect::Anything, store.now());
    assert!(stored.is_err(), "{stored:?}");
    assert_eq!(store.usage().segment_bytes, 0);
}
