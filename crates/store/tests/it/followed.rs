//! How far a source was followed, for the process that goes on with it.

use store::definition::{Access, ServerDef, Wrapper};
use store::{Followed, ManualClock, Store};

use crate::common::options;
use crate::restart::TempArena;

fn server(name: &str) -> ServerDef {
    ServerDef {
        id: 0,
        name: name.to_owned(),
        wrapper: Wrapper::Postgres,
        kind: None,
        version: None,
        options: Vec::new(),
        mappings: Vec::new(),
        access: Access::default(),
        queries: Vec::new(),
    }
}

fn make(store: &Store, name: &str) {
    store.change_server(name, &mut |_| Ok(Some(server(name)))).unwrap();
}

fn at(server: &str, lsn: u64) -> Followed {
    Followed { server: server.to_owned(), lsn, targets: vec!["1 page".to_owned()], ..Followed::default() }
}

/// The last position that was written is there after a restart, and only for a server that is still the same one.
#[test]
fn positions_outlive_the_process() {
    let file = TempArena::new("followed");
    let hands = ManualClock::new(1_700_000_000);
    let options = options(Some(file.0.clone()), 16, &hands);
    {
        let store = Store::open(&options).unwrap().store;
        for name in ["a", "b", "c"] {
            make(&store, name);
        }
        let generation = store.generation();
        for lsn in 1..=1_000 {
            store.note_followed("a", Some(at("a", lsn))).unwrap();
        }
        store.note_followed("b", Some(at("b", 7))).unwrap();
        store.note_followed("c", Some(at("c", 7))).unwrap();
        store.note_followed("c", None).unwrap();
        assert_eq!(store.generation(), generation, "statements are not compiled again for it");
        store.change_server("b", &mut |_| Ok(None)).unwrap();
        make(&store, "b");
        assert_eq!(store.followed("b"), None, "a server of the same name is another one");
    }
    let store = Store::open(&options).unwrap().store;
    assert_eq!(store.followed("A"), Some(at("a", 1_000)));
    assert_eq!((store.followed("b"), store.followed("c")), (None, None));
    // Other definitions leave it as it is.
    make(&store, "d");
    drop(store);
    assert_eq!(Store::open(&options).unwrap().store.followed("a"), Some(at("a", 1_000)));
}
