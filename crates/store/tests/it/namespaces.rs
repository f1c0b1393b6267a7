//! Schemas, sequences and what is in them outlive the process.

use store::Store;
use store::definition::{EnumDef, IndexDef, NamespaceDef, Place, SequenceDef, TableDef};

use crate::common::{options, table};
use crate::restart::TempArena;
use store::ManualClock;

fn in_schema(name: &str, namespace: &str) -> TableDef {
    let def = table(&format!("{namespace}.{name}"), &[("k", "TEXT"), ("v", "TEXT")], 1, &[]);
    let indexes = vec![IndexDef::new("by_v", vec![1], false)];
    TableDef { namespace: Some(namespace.to_owned()), indexes, ..def }
}

#[test]
fn schemas_outlive_the_process() {
    let file = TempArena::new("namespaces");
    let hands = ManualClock::new(1_700_000_000);
    let options = options(Some(file.0.clone()), 16, &hands);
    {
        let store = Store::open(&options).unwrap().store;
        for name in ["a", "b", "gone"] {
            store.create_namespace(NamespaceDef { id: 0, name: name.to_owned() }).unwrap();
        }
        for namespace in ["a", "b"] {
            store.create_table(in_schema("t", namespace)).unwrap();
        }
        store.create_table(table("t", &[("k", "TEXT")], 1, &[])).unwrap();
        let own = EnumDef { namespace: Some("a".into()), ..EnumDef::new("a.mood", vec!["x".into()]) };
        store.create_enum(own).unwrap();
        store.drop_namespace("gone").unwrap();
        assert_eq!(store.drop_namespace("a").unwrap_err().state, "2BP01");
        let unknown = store.create_table(in_schema("t", "nosuch")).unwrap_err();
        assert_eq!(unknown.state, "3F000");
        store.drop_index("a.by_v").unwrap();
    }
    let store = Store::open(&options).unwrap().store;
    let catalog = store.catalog();
    let names: Vec<&str> = catalog.namespaces().iter().map(|own| own.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let inside: Vec<_> = catalog.names_in("A").collect();
    assert_eq!(inside, [("table", "a.t"), ("type", "a.mood")]);
    assert_eq!(catalog.table("b.t").unwrap().def().own_name(), "t");
    assert_eq!(catalog.index_owner("b.by_v").map(|table| table.name()), Some("b.t"));
    assert!(catalog.index_owner("a.by_v").is_none() && catalog.index_owner("by_v").is_none());
    assert!(catalog.table("t").unwrap().def().namespace.is_none());
    // Its number tells a schema from those that came after it.
    store.create_namespace(NamespaceDef { id: 0, name: "c".to_owned() }).unwrap();
    let catalog = store.catalog();
    let mut ids: Vec<u16> = catalog.namespaces().iter().map(|own| own.id).collect();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

fn sequence(name: &str, increment: i64) -> SequenceDef {
    SequenceDef {
        id: 0,
        name: name.to_owned(),
        namespace: None,
        bits: 64,
        start: 1,
        increment,
        min: 1,
        max: 5_000,
        cache: 1,
        cycle: false,
        owner: None,
        access: store::definition::Access::default(),
        place: Place { last: 1, called: false },
    }
}

/// A number is given out once, whatever becomes of the process: what it gave out last was never written down.
#[test]
fn no_number_is_given_out_twice() {
    let file = TempArena::new("sequences");
    let hands = ManualClock::new(1_700_000_000);
    let options = options(Some(file.0.clone()), 16, &hands);
    let store = Store::open(&options).unwrap().store;
    for (name, increment) in [("one", 1), ("three", 3)] {
        store.create_sequence(sequence(name, increment)).unwrap();
    }
    drop(store);
    let mut last = [0, 0];
    for life in 0..6 {
        let store = Store::open(&options).unwrap().store;
        let catalog = store.catalog();
        for (last, name) in last.iter_mut().zip(["one", "three"]) {
            let own = catalog.sequence(name).unwrap();
            // As many as a life may take before all are gone: each death leaves out a thousand.
            for _ in 0..life * 7 {
                match store.next_value(own) {
                    Ok(number) => {
                        assert!(number > *last && (number - 1) % own.def().increment == 0, "{name} {number}");
                        *last = number;
                    }
                    Err(error) => assert!(error.to_string().contains("reached maximum value"), "{error}"),
                }
            }
        }
    }
    assert!(last[0] > 3_000, "{last:?}");
}

#[test]
fn a_sequence_stands_where_it_was_put() {
    let file = TempArena::new("set-sequence");
    let hands = ManualClock::new(1_700_000_000);
    let options = options(Some(file.0.clone()), 16, &hands);
    for place in [
        Place { last: 40, called: true },
        Place { last: 40, called: false },
        Place { last: 2, called: false },
    ] {
        let store = Store::open(&options).unwrap().store;
        if store.catalog().sequence("s").is_none() {
            store.create_sequence(sequence("s", 1)).unwrap();
        }
        let catalog = store.catalog();
        let own = catalog.sequence("s").unwrap();
        store.next_value(own).unwrap();
        store.set_value(own, place).unwrap();
        drop(store);
        let store = Store::open(&options).unwrap().store;
        let next = store.next_value(store.catalog().sequence("s").unwrap()).unwrap();
        assert_eq!(next, place.last + i64::from(place.called));
        // An earlier definition and a later one give out from the same numbers.
        let earlier = store.catalog();
        store
            .alter_sequence("s", &mut |def| {
                def.cycle = !def.cycle;
                Ok(())
            })
            .unwrap();
        let later = store.catalog();
        let numbers = [&earlier, &later, &earlier]
            .map(|catalog| store.next_value(catalog.sequence("s").unwrap()).unwrap());
        assert_eq!(numbers, [next + 1, next + 2, next + 3]);
    }
    // Many threads never get the same.
    let store = Store::open(&options).unwrap().store;
    store
        .alter_sequence("s", &mut |def| {
            (def.max, def.place) = (i64::MAX, Place { last: 1, called: false });
            Ok(())
        })
        .unwrap();
    let catalog = store.catalog();
    let own = catalog.sequence("s").unwrap();
    let mut all: Vec<i64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..3_000).map(|_| store.next_value(own).unwrap()).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    all.sort_unstable();
    assert_eq!(all, (1..=12_000).collect::<Vec<_>>());
}
