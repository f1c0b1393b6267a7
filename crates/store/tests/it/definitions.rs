//! Tables and indexes come and go; indexes agree with the rows at every moment.

use std::ops::Bound;
use std::sync::Arc;

use store::definition::IndexDef;
use store::value::Value;
use store::{BUILT_IN, Expect, Expiry, KeyBounds, RowBuf, Store, Table, WriteError};

use crate::common::{Bench, all_rows, delete, get, put, seed, set, table, values};

fn index(name: &str, columns: &[usize], unique: bool) -> IndexDef {
    IndexDef::new(name, columns.to_vec(), unique)
}

/// Rows of a range in the order in which the index gives them.
fn range(
    store: &Store,
    table: &Arc<Table>,
    name: &str,
    bounds: &KeyBounds,
    reverse: bool,
) -> Vec<Vec<Value>> {
    let view = store.view();
    let index = table.indexes().iter().find(|index| index.name() == name).unwrap();
    let mut scan = view.range(table, index, bounds, reverse);
    let mut row = RowBuf::new();
    let mut rows = Vec::new();
    while scan.next(&view, &mut row).unwrap() {
        rows.push(values(table, &row));
    }
    rows
}

fn current(store: &Store, name: &str) -> Arc<Table> {
    Arc::clone(store.catalog().table(name).unwrap())
}

#[test]
fn an_index_over_existing_rows_gives_ranges() {
    let bench = Bench::new(16);
    let fragments = bench
        .store
        .create_table(table("f", &[("k", "TEXT"), ("page", "INT"), ("body", "TEXT")], 1, &[]))
        .unwrap();
    for n in 0..1_000_i64 {
        let row = [Value::Text(format!("k{n}")), Value::Integer(n % 50), Value::Text("x".repeat(30))];
        bench.store.commit(&[put(&fragments, &row, Expect::Absent)]).unwrap();
    }
    bench.store.create_index("f", index("f_page", &[1], false)).unwrap();
    let fragments = current(&bench.store, "f");
    let rows = range(&bench.store, &fragments, "f_page", &KeyBounds::equal(vec![Value::Integer(17)]), false);
    assert_eq!(rows.len(), 20);
    assert!(rows.iter().all(|row| row[1] == Value::Integer(17)));
    let above = KeyBounds { lower: Bound::Excluded(vec![Value::Integer(47)]), upper: Bound::Unbounded };
    let rows = range(&bench.store, &fragments, "f_page", &above, true);
    assert_eq!(rows.len(), 40);
    assert_eq!(rows[0][1], Value::Integer(49));
    bench.store.drop_index("f_page").unwrap();
    assert!(current(&bench.store, "f").indexes().is_empty());
}

#[test]
fn random_writes_keep_indexes_and_rows_together() {
    let mut random = fastrand::Rng::with_seed(seed());
    let bench = Bench::new(16);
    let mut def = table("t", &[("a", "INT"), ("b", "TEXT"), ("c", "INT"), ("d", "TEXT")], 2, &[]);
    def.indexes = vec![index("by_c", &[2], false), index("by_d_c", &[3, 2], false)];
    let t = bench.store.create_table(def).unwrap();
    for _ in 0..20_000 {
        let key = [Value::Integer(random.i64(0..20)), Value::Text(format!("b{}", random.u32(0..10)))];
        let write = if random.u32(0..3) == 0 {
            delete(&t, &key, Expect::Anything)
        } else {
            let c = if random.u32(0..8) == 0 { Value::Null } else { Value::Integer(random.i64(-3..3)) };
            let d =
                Value::Text("same-long-prefix-".repeat(random.usize(0..3)) + &random.u32(0..3).to_string());
            put(&t, &[key[0].clone(), key[1].clone(), c, d], Expect::Anything)
        };
        bench.store.commit(&[write]).unwrap();
    }
    let mut scanned = all_rows(&bench.store, &t);
    for name in ["by_c", "by_d_c", "t_pkey"] {
        let mut ranged = range(&bench.store, &t, name, &KeyBounds::ALL, false);
        let backwards = range(&bench.store, &t, name, &KeyBounds::ALL, true);
        assert!(ranged.iter().rev().eq(backwards.iter()), "{name} backwards");
        ranged.sort_by_key(|row| format!("{row:?}"));
        assert_eq!(ranged, scanned, "{name}");
    }
    bench.store.truncate(&t);
    scanned.clear();
    assert_eq!(all_rows(&bench.store, &t), scanned);
}

#[test]
fn a_unique_index_refuses_a_second_row() {
    let bench = Bench::new(16);
    let mut def = table("u", &[("k", "INT"), ("mail", "TEXT")], 1, &[]);
    def.indexes = vec![index("u_mail_key", &[1], true)];
    let t = bench.store.create_table(def).unwrap();
    let row = |k: i64, mail: &str| [Value::Integer(k), Value::Text(mail.into())];
    bench.store.commit(&[put(&t, &row(1, "a"), Expect::Absent)]).unwrap();
    let refused = bench.store.commit(&[put(&t, &row(2, "a"), Expect::Absent)]);
    assert_eq!(refused, Err(WriteError::Unique { index: "u_mail_key".into(), write: 0 }));
    let refused =
        bench.store.commit(&[put(&t, &row(3, "c"), Expect::Absent), put(&t, &row(4, "a"), Expect::Absent)]);
    assert_eq!(refused, Err(WriteError::Unique { index: "u_mail_key".into(), write: 1 }));
    assert_eq!(all_rows(&bench.store, &t).len(), 1, "nothing of the refused commit was applied");
    // Two rows of one commit exchange their values.
    bench.store.commit(&[put(&t, &row(2, "b"), Expect::Absent)]).unwrap();
    bench
        .store
        .commit(&[put(&t, &row(1, "b"), Expect::Present), put(&t, &row(2, "a"), Expect::Present)])
        .unwrap();
    assert_eq!(all_rows(&bench.store, &t), vec![row(1, "b").to_vec(), row(2, "a").to_vec()]);
    // A value is free again once its row is gone.
    bench.store.commit(&[delete(&t, &[Value::Integer(1)], Expect::Present)]).unwrap();
    bench.store.commit(&[put(&t, &row(9, "b"), Expect::Absent)]).unwrap();
}

#[test]
fn a_unique_index_is_not_made_over_duplicates() {
    let bench = Bench::new(16);
    let t = bench.store.create_table(table("u", &[("k", "INT"), ("v", "INT")], 1, &[])).unwrap();
    for k in 0..2 {
        bench.store.commit(&[put(&t, &[Value::Integer(k), Value::Integer(5)], Expect::Absent)]).unwrap();
    }
    assert_eq!(bench.store.create_index("u", index("u_v", &[1], true)).unwrap_err().state, "23505");
    bench.store.commit(&[delete(&t, &[Value::Integer(0)], Expect::Present)]).unwrap();
    bench.store.create_index("u", index("u_v", &[1], true)).unwrap();
}

#[test]
fn a_new_table_takes_its_keys_from_the_built_in_one() {
    let bench = Bench::new(16);
    let catalog = bench.store.catalog();
    let built_in = catalog.table(BUILT_IN).unwrap();
    set(&bench.store, built_in, b"frag:a", b"old", Expiry::Table);
    set(&bench.store, built_in, b"other", b"kept", Expiry::Table);
    let def = table("frag", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("prefix", "frag:"), ("value", "v")]);
    let frag = bench.store.create_table(def).unwrap();
    assert!(get(&bench.store, built_in, b"frag:a").is_none());
    assert!(get(&bench.store, built_in, b"other").is_some());
    let catalog = bench.store.catalog();
    let (routed, rest) = catalog.route(b"frag:a");
    assert_eq!((routed.id(), rest), (frag.id(), &b"a"[..]));
    assert_eq!(catalog.route(b"other").0.name(), BUILT_IN);
}

#[test]
fn a_dropped_table_leaves_nothing_behind() {
    let bench = Bench::new(16);
    for round in 0..5 {
        let t = bench.store.create_table(table("t", &[("k", "INT"), ("v", "TEXT")], 1, &[])).unwrap();
        assert!(all_rows(&bench.store, &t).is_empty(), "round {round}");
        for n in 0..2_000 {
            bench
                .store
                .commit(&[put(&t, &[Value::Integer(n), Value::Text("x".repeat(100))], Expect::Absent)])
                .unwrap();
        }
        bench.store.drop_table("t").unwrap();
        let gone = bench.store.commit(&[put(&t, &[Value::Integer(1), Value::Null], Expect::Anything)]);
        assert_eq!(gone, Err(WriteError::TableGone));
    }
    let usage = bench.store.usage();
    assert_eq!(usage.rows, 0);
    assert!(usage.segment_bytes < 1 << 20, "{usage:?}");
    assert_eq!(bench.store.drop_table(BUILT_IN).unwrap_err().state, "42501");
    assert_eq!(bench.store.drop_table("t").unwrap_err().state, "42P01");
}

/// A scan reads on while its index is dropped and its rows are written over: it ends with an error, never with rows of
/// another table.
#[test]
fn a_scan_of_a_dropped_index_meets_no_foreign_row() {
    let bench = Bench::new(16);
    let store = &bench.store;
    let mut def = table("t", &[("k", "INT"), ("v", "INT")], 1, &[]);
    def.indexes = vec![index("t_v", &[1], false)];
    let t = store.create_table(def).unwrap();
    for n in 0..1_000 {
        store.commit(&[put(&t, &[Value::Integer(n), Value::Integer(n)], Expect::Absent)]).unwrap();
    }
    let view = store.view();
    let mut scan = view.range(&t, &t.indexes()[0], &KeyBounds::ALL, false);
    let mut row = RowBuf::new();
    assert!(scan.next(&view, &mut row).unwrap());
    store.drop_index("t_v").unwrap();
    store.truncate(&t);
    bench.advance(std::time::Duration::from_secs(1));
    let other = store.catalog();
    for n in 0..5_000 {
        set(store, other.built_in(), format!("secret-{n}").as_bytes(), b"secret", Expiry::Table);
    }
    let mut seen = 1;
    let ended = loop {
        match scan.next(&view, &mut row) {
            Ok(true) => seen += 1,
            ended => break ended,
        }
        assert!(!row.key().starts_with(b"secret"), "a row of another table");
    };
    assert!(ended.is_err(), "{seen} rows were taken for all");
}

#[test]
fn an_index_that_finds_no_room_in_the_definitions_is_not_kept() {
    let bench = Bench::new(16);
    let store = &bench.store;
    let t = store.create_table(table("t", &[("k", "INT"), ("u", "INT")], 1, &[])).unwrap();
    // Fills the definitions to the last bytes.
    let mut made = 0;
    for bytes in [200_000, 20_000, 2_000, 200, 0] {
        loop {
            let mut def = table(&format!("wide{made}"), &[("k", "INT"), ("v", "TEXT")], 1, &[]);
            def.columns[1].default = Some(Value::Text("x".repeat(bytes)));
            if store.create_table(def).is_err() {
                break;
            }
            made += 1;
        }
    }
    let mut n = 0;
    while store.create_index("wide0", index(&format!("i{n}"), &[1], false)).is_ok() {
        n += 1;
    }
    let refused = store.create_index("t", index("an_index_with_a_longer_name", &[1], true)).unwrap_err();
    assert_eq!(refused.state, "53200");
    for k in 0..2 {
        store.commit(&[put(&t, &[Value::Integer(k), Value::Integer(7)], Expect::Absent)]).unwrap();
    }
}
