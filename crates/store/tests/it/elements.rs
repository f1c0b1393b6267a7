//! An index over the elements of an array: each row is found by each of its elements, for as long as it is there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use store::definition::IndexDef;
use store::value::{Value, ValueRef};
use store::{
    BUILT_IN, Change, Expect, Expiry, ManualClock, NewRow, RowBuf, Store, Table, View, Write, WriteSet,
};

use crate::common::{delete, options, put, seed, set, table, values};
use crate::restart::TempArena;

/// The tags of each key.
type Model = BTreeMap<i64, Tags>;

#[derive(Clone, Debug)]
struct Tags {
    tags: BTreeSet<String>,
    ends: Option<u64>,
}

/// A short tag, a long one with a beginning that others share, or one with a sign that JSON spells otherwise.
fn tag(number: usize) -> String {
    match number % 3 {
        0 => format!("t{number}"),
        1 => format!("a-tag-with-a-long-beginning:{number}"),
        _ => format!("\"{number}\"\u{e9}\\"),
    }
}

const TAGS: usize = 12;
const KEYS: i64 = 60;

fn json(tags: &[String]) -> Value {
    Value::Text(serde_json::to_string(tags).unwrap())
}

fn made(store: &Store) -> Arc<Table> {
    let mut def = table("t", &[("k", "INT"), ("tags", "TEXT"), ("v", "TEXT")], 1, &[]);
    let plain = IndexDef::new("t_v", vec![0], false);
    def.indexes = vec![IndexDef::of_elements("t_tags", 1), plain];
    store.create_table(def).unwrap()
}

fn current(store: &Store) -> Arc<Table> {
    Arc::clone(store.catalog().table("t").unwrap())
}

/// The keys of the rows that an element leads to, each once.
fn found(view: &View<'_>, table: &Arc<Table>, tag: &str, reverse: bool) -> BTreeSet<i64> {
    let index = table.indexes().iter().find(|index| index.name() == "t_tags").unwrap();
    let mut scan = view.equal(table, index, &[ValueRef::Text(tag)], reverse);
    let (mut row, mut keys) = (RowBuf::new(), BTreeSet::new());
    while scan.next(view, &mut row).unwrap() {
        let Value::Integer(key) = values(table, &row)[0] else { panic!("no key") };
        assert!(keys.insert(key), "{key} twice by {tag}");
    }
    keys
}

fn agree(view: &View<'_>, table: &Arc<Table>, model: &Model, now: u64, step: usize) {
    for number in 0..TAGS {
        let tag = tag(number);
        let live = model.iter().filter(|(_, row)| row.ends.is_none_or(|ends| ends > now));
        let expected: BTreeSet<i64> =
            live.filter(|(_, row)| row.tags.contains(&tag)).map(|(key, _)| *key).collect();
        assert_eq!(found(view, table, &tag, step % 2 == 1), expected, "step {step}, {tag}");
    }
}

fn written(table: &Arc<Table>, key: i64, tags: &[String], expiry: Expiry, bytes: usize) -> Write {
    let row = [Value::Integer(key), json(tags), Value::Text("x".repeat(bytes))];
    let mut write = put(table, &row, Expect::Anything);
    if let Change::Put(NewRow { expiry: own, .. }) = &mut write.change {
        *own = expiry;
    }
    write
}

/// Random writes, one or several at once, deletions, deadlines, flushes, restarts: after each the rows of every
/// element are those that have it, in a transaction's view too, and no entry is left of a row that went.
#[test]
fn rows_are_found_by_their_elements_for_as_long_as_they_are_there() {
    let file = TempArena::new("elements");
    let hands = ManualClock::new(1_700_000_000);
    let options = options(Some(file.0.clone()), 16, &hands);
    let mut store = Store::open(&options).unwrap().store;
    let mut t = made(&store);
    let (mut model, mut now) = (Model::new(), 0_u64);
    let mut random = fastrand::Rng::with_seed(seed());
    for step in 0..1_500 {
        let mut one = |model: &mut Model, t: &Arc<Table>, store: &Store| {
            let key = random.i64(0..KEYS);
            if random.u8(..5) == 0 {
                model.remove(&key);
                return delete(t, &[Value::Integer(key)], Expect::Anything);
            }
            let tags: Vec<String> = (0..random.usize(..5)).map(|_| tag(random.usize(..TAGS))).collect();
            let seconds = (random.u8(..4) == 0).then(|| random.u64(1..30));
            let expiry = seconds
                .map_or(Expiry::Table, |seconds| Expiry::At(store.tick_after(Duration::from_secs(seconds))));
            let row =
                Tags { tags: tags.iter().cloned().collect(), ends: seconds.map(|seconds| now + seconds) };
            model.insert(key, row);
            written(t, key, &tags, expiry, random.usize(..3_000))
        };
        match step % 50 {
            10 => {
                store.flush(&t);
                model.clear();
            }
            20 => {
                drop((store, t));
                store = Store::open(&options).unwrap().store;
                t = current(&store);
            }
            30 => {
                hands.advance(Duration::from_secs(3));
                now += 3;
                store.tick();
            }
            40 => {
                store.drop_index("t_tags").unwrap();
                let def = IndexDef::of_elements("t_tags", 1);
                store.create_index("t", def).unwrap();
                t = current(&store);
            }
            at if at % 7 == 0 => {
                let (mut laid, mut own) = (model.clone(), WriteSet::new());
                own.lay((0..6).map(|_| one(&mut laid, &t, &store)).collect());
                agree(&store.view_over(&own), &t, &laid, now, step);
                if at % 2 == 0 {
                    store.commit(&own.into_writes()).unwrap();
                    model = laid;
                }
            }
            _ => {
                let write = one(&mut model, &t, &store);
                store.commit(&[write]).unwrap();
            }
        }
        agree(&store.view(), &t, &model, now, step);
    }
    // Rows that ended lie here until their memory is wanted; new ones want it.
    let left = model.keys().map(|&key| delete(&t, &[Value::Integer(key)], Expect::Anything));
    store.commit(&left.collect::<Vec<_>>()).unwrap();
    for number in 0..30_000 {
        set(
            &store,
            store.catalog().table(BUILT_IN).unwrap(),
            number.to_string().as_bytes(),
            &[b'x'; 1_000],
            Expiry::Table,
        );
        if number % 100 == 0 {
            hands.advance(Duration::from_secs(1));
            store.tick();
        }
    }
    let entries: Vec<u64> = t.indexes().iter().map(|index| index.len()).collect();
    assert_eq!(entries, [0, 0], "entries without rows");
}
