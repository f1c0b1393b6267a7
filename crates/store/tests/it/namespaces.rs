//! Schemas and what is in them outlive the process, and definitions that do not go together are none.

use store::Store;
use store::definition::{EnumDef, IndexDef, NamespaceDef, TableDef};

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
