//! Definitions that somebody wrote into the file with a right check field: they are refused, and nobody panics.

use std::sync::Arc;

use arena::{Arena, Attach, Geometry};
use serde_json::{Value as Json, json};
use store::value::Value;
use store::{Clock, Expect, Expiry, ManualClock, Reader, RowBuf, Store};

use crate::common::{all_rows, get, options, put, set, table};
use crate::restart::TempArena;

const MEMORY_MIB: u64 = 8;

/// What is wrong, and the edit that makes it so.
type Fault<T> = (&'static str, fn(&mut T));

/// An arena with a table `t` that was altered, and what its file says of definitions.
fn specimen(path: &TempArena, hands: &Arc<ManualClock>) -> Json {
    let store = Store::open(&options(Some(path.0.clone()), MEMORY_MIB, hands)).unwrap().store;
    let columns = [("k", "TEXT"), ("gone", "INT"), ("v", "TEXT"), ("n", "INT")];
    store.create_table(table("t", &columns, 1, &[("value", "v")])).unwrap();
    store.create_table(table("u", &[("k", "TEXT"), ("v", "TEXT")], 1, &[])).unwrap();
    let t = store
        .alter_table("t", &mut |def| {
            def.remove_column(1);
            Ok(())
        })
        .unwrap();
    set(&store, &t, b"key", b"value", Expiry::Table);
    drop(store);
    let Ok(Attach::Warm(arena)) = Arena::attach(&path.0, &Geometry { memory_bytes: MEMORY_MIB << 20 }) else {
        panic!("it is usable");
    };
    serde_json::from_slice(&arena.catalogue().unwrap()).unwrap()
}

/// Opens the file with these definitions in it, as a client and as the next process.
fn open(path: &TempArena, hands: &Arc<ManualClock>, definitions: &Json) -> (Reader, Arc<Store>) {
    let geometry = Geometry { memory_bytes: MEMORY_MIB << 20 };
    let Ok(Attach::Warm(arena)) = Arena::attach(&path.0, &geometry) else { panic!("it is usable") };
    arena.set_catalogue(definitions.to_string().as_bytes()).unwrap();
    drop(arena);
    let own = [rustix::process::geteuid().as_raw()];
    let reader = Reader::open(&path.0, &own, Clock::Manual(Arc::clone(hands))).unwrap();
    for table in reader.definitions().tables() {
        let (mut value, mut row) = (Vec::new(), RowBuf::new());
        let now = reader.begin().unwrap();
        let _any = reader.value(table, b"key", now, &mut value);
        let _any = reader.row(table, b"key", now, &mut row);
        for column in 0..table.def().columns.len() {
            let _any = table.column(&row, column);
        }
    }
    (reader, Store::open(&options(Some(path.0.clone()), MEMORY_MIB, hands)).unwrap().store)
}

/// The place of a column in payloads comes from the file, and was followed as it stood: a client that read the file,
/// and the next start, panicked.
#[test]
fn crafted_definitions_are_refused_by_readers_and_by_the_next_start() {
    let faults: &[Fault<Json>] = &[
        ("a place beyond the payload", |t| t["columns"][1]["slot"] = json!(60_000)),
        ("a place that another column has", |t| t["columns"][1]["slot"] = json!(2)),
        ("a place that no table has", |t| t["slots"]["now"] = json!(65_535)),
        ("fewer places than there were", |t| t["slots"]["first"] = json!(9)),
        ("no places for its columns", |t| t["slots"] = json!({"first": 0, "now": 0})),
        ("a number beyond all tables", |t| t["id"] = json!(4_096)),
        ("a key that is not there", |t| t["primary_key"] = json!([0, 1, 2, 3, 4, 5, 6])),
        ("a key twice", |t| t["primary_key"] = json!([0, 0, 0, 0])),
        ("a value that is not there", |t| t["options"]["value"] = json!(17)),
        ("altered too often", |t| t["schema"] = json!(u32::MAX)),
        ("a span without end", |t| t["options"]["ttl_ms"] = json!(u64::MAX)),
        ("a pending column that is the key", |t| {
            t["columns"][0]["pending"] = json!(true);
            t["primary_key"] = json!([0, 1, 2, 0, 1]);
        }),
    ];
    for (fault, edit) in faults {
        let (path, hands) = (TempArena::new("crafted"), ManualClock::new(1_700_000_000));
        let mut definitions = specimen(&path, &hands);
        let at = definitions.as_array().unwrap().iter().position(|def| def["name"] == "t").unwrap();
        edit(&mut definitions[at]);
        let (reader, store) = open(&path, &hands, &definitions);
        assert!(reader.definitions().table("t").is_none(), "{fault}");
        assert!(store.catalog().table("t").is_none(), "{fault}");
        store.create_table(table("t", &[("k", "TEXT"), ("v", "TEXT")], 1, &[])).unwrap();
    }
}

/// What is bounded is each definition, and all of them together.
#[test]
fn definitions_that_contradict_each_other_are_refused_by_the_next_start() {
    let faults: &[Fault<[Json]>] = &[
        ("two tables of one number", |all| all[1]["id"] = all[2]["id"].clone()),
        ("two tables of one name", |all| all[1]["name"] = json!("U")),
        ("no number", |all| all[1]["id"] = json!(0)),
        ("a private number and the shared file", |all| all[1]["options"]["shared_memory"] = json!(true)),
        ("a built-in table without its value", |all| all[0]["options"]["value"] = json!(null)),
        ("a built-in table of numbers", |all| all[0]["columns"][1]["kind"] = json!("Integer")),
        ("no built-in table", |all| all[0]["name"] = json!("another")),
    ];
    for (fault, edit) in faults {
        let (path, hands) = (TempArena::new("contradict"), ManualClock::new(1_700_000_000));
        let mut definitions = specimen(&path, &hands);
        let all = definitions.as_array_mut().unwrap();
        all.sort_by_key(|def| def["id"].as_u64());
        edit(all);
        let (_, store) = open(&path, &hands, &definitions);
        assert_eq!(store.catalog().tables().count(), 1, "{fault}");
        set(&store, store.catalog().built_in(), b"key", b"value", Expiry::Table);
        assert_eq!(get(&store, store.catalog().built_in(), b"key").as_deref(), Some(&b"value"[..]));
    }
}

/// As they stand they are taken over.
#[test]
fn definitions_that_were_written_are_taken_over() {
    let (path, hands) = (TempArena::new("written"), ManualClock::new(1_700_000_000));
    let definitions = specimen(&path, &hands);
    let (reader, store) = open(&path, &hands, &definitions);
    assert!(reader.definitions().table("t").is_some());
    let t = Arc::clone(store.catalog().table("t").unwrap());
    let row = [Value::from("more"), Value::from("v"), Value::Integer(3)];
    store.commit(&[put(&t, &row, Expect::Absent)]).unwrap();
    assert_eq!(
        all_rows(&store, &t),
        [vec![Value::from("key"), Value::from("value"), Value::Null], row.to_vec()]
    );
}
