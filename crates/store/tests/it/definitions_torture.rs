//! Definitions that change under everybody, in little memory: every acknowledged row is accounted for.
//!
//! Tables are created, dropped, truncated, altered, indexed and moved between the private and the shared file, while
//! others write as memcached's clients and as transactions do, read by key, scan, and read the shared file as another
//! process does. A value says whose it is and which version. So each thing that is read is either what the last
//! acknowledged write left, or one of the writes since; never another table's row, another key's, or an older version.
//! Without evictions it is not missing either.
//!
//! `TORTURE_SECONDS=3600` asks for a longer run, `SEED` for the choices of an earlier one.

#![allow(
    clippy::disallowed_methods,
    reason = "a test of many threads runs for a while, and its settings are its own"
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use store::definition::{ColumnDef, Generated, IndexDef, TableDef};
use store::value::{Value, ValueRef};
use store::{
    Change, Clock, Compute, Expect, Expiry, Found, KeyBounds, Made, ManualClock, Outcome, Reader, RowBuf,
    Store, Table, Task, Write, WriteError, hits_path, shared_path_beside,
};

use crate::common::{delete, get, item, options, put, seed, table};
use crate::restart::TempArena;

/// Tables that come and go.
const TABLES: usize = 4;
/// Keys of each: few enough that each is written often.
const KEYS: usize = 250;
/// Threads that write; a key is written by one of them only, so that its versions have an order.
const WRITERS: usize = 2;
/// How long a run takes when nobody asks for more.
const SECONDS: u64 = 3;

/// A value with more bytes has a run of segments of its own.
const LARGE_BYTES: usize = 260 << 10;

/// What a writer knows of one key, and everybody checks against. A writer stores before and after each write.
#[derive(Default)]
struct Key {
    /// The version that was written last, acknowledged or not.
    issued: AtomicU64,
    /// The version of the last removal, acknowledged or not.
    removed: AtomicU64,
    /// The last acknowledged write: its version, the era in which it began, whether it left a row.
    acked: AtomicU64,
    /// Versions up to this one were acknowledged before the table was emptied last.
    dead: AtomicU64,
}

/// The tables of one name, one after the other.
#[derive(Default)]
struct Place {
    /// Odd while the table is being created, dropped, emptied, or given to the other file.
    era: AtomicU64,
    keys: Vec<Key>,
}

/// An acknowledged write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Acked {
    version: u64,
    era: u64,
    row: bool,
}

impl Acked {
    fn pack(self) -> u64 {
        self.era << 33 | self.version << 1 | u64::from(self.row)
    }

    fn of(word: u64) -> Self {
        Self { version: (word >> 1) & 0xffff_ffff, era: word >> 33, row: word & 1 == 1 }
    }
}

/// What was known of a key before it was read.
#[derive(Clone, Copy, Debug)]
struct Before {
    era: u64,
    acked: Acked,
    dead: u64,
}

struct World {
    store: Arc<Store>,
    places: Vec<Place>,
    evicts: bool,
    stop: AtomicBool,
    /// Definitions changed, writes acknowledged, rows read by key, whole scans, rows read in shared memory.
    counts: [AtomicU64; 5],
}

fn table_name(place: usize) -> String {
    format!("t{place}")
}

fn key_name(key: usize) -> String {
    format!("key-{key}")
}

fn body(place: usize, key: usize, version: u64, bytes: usize) -> String {
    let mut text = format!("{place}:{key}:{version}:{bytes}:");
    text.extend(std::iter::repeat_n(char::from(b'a' + u8::try_from(version % 26).unwrap()), bytes));
    text
}

/// Takes a value apart that must be whole: its table, its key, its version.
fn parse(value: &[u8]) -> (usize, usize, u64) {
    let text =
        std::str::from_utf8(value).unwrap_or_else(|_| panic!("no value: {}", value[..40].escape_ascii()));
    let mut parts = text.splitn(5, ':');
    let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok());
    let (Some(place), Some(key), Some(version), Some(bytes)) = (number(), number(), number(), number())
    else {
        panic!("no value: {:?}", &text[..text.len().min(80)]);
    };
    let rest = parts.next().unwrap_or_default();
    let letter = b'a' + u8::try_from(version % 26).unwrap();
    assert!(
        rest.len() as u64 == bytes && rest.bytes().all(|byte| byte == letter),
        "torn: {place}:{key}:{version}"
    );
    (usize::try_from(place).unwrap(), usize::try_from(key).unwrap(), version)
}

/// Computes the one generated column that there is: the bytes of the value.
#[derive(Debug)]
struct Lengths;

impl Compute for Lengths {
    fn row(&mut self, task: &Task<'_>, made: &mut Made) -> Result<(), WriteError> {
        for (at, column) in task.table.def().columns.iter().enumerate() {
            if column.generated.is_some() {
                made.push((at, length(task.table, task.values)));
            }
        }
        Ok(())
    }
}

fn bytes(bytes: usize) -> Value {
    Value::Integer(i64::try_from(bytes).unwrap())
}

fn length(table: &Table, values: &[ValueRef<'_>]) -> Value {
    match values[table.def().column_index("body").unwrap()] {
        ValueRef::Text(text) => bytes(text.len()),
        ValueRef::Blob(blob) => bytes(blob.len()),
        other => panic!("a body is text, not {other:?}"),
    }
}

impl World {
    fn count(&self, what: usize) {
        self.counts[what].fetch_add(1, SeqCst);
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(SeqCst)
    }

    fn before(&self, place: usize, key: usize) -> Before {
        let Place { era, keys } = &self.places[place];
        let era = era.load(SeqCst);
        let (acked, dead) = (keys[key].acked.load(SeqCst), keys[key].dead.load(SeqCst));
        Before { era, acked: Acked::of(acked), dead }
    }

    /// Judges what was read under a key since `before`. `handle`: the era in which the table was looked up.
    fn judge(
        &self,
        (place, key): (usize, usize),
        before: &Before,
        handle: u64,
        found: Option<&[u8]>,
        how: &str,
    ) {
        let Place { era, keys } = &self.places[place];
        let own = &keys[key];
        let stable = before.era == era.load(SeqCst) && before.era.is_multiple_of(2);
        let Before { acked, dead, .. } = *before;
        let Some(value) = found else {
            let must_be_there =
                stable && !self.evicts && handle == before.era && acked.row && acked.era == handle;
            if must_be_there {
                let removed = own.removed.load(SeqCst);
                assert!(
                    removed > acked.version,
                    "{how}: {place}:{key} is lost, {before:?}, removed {removed}"
                );
            }
            return;
        };
        let (of_place, of_key, version) = parse(value);
        assert_eq!((of_place, of_key), (place, key), "{how}: another row, {before:?}");
        let issued = own.issued.load(SeqCst);
        assert!(version <= issued, "{how}: {place}:{key} has version {version} of {issued}");
        assert!(
            version >= acked.version,
            "{how}: {place}:{key} is old, version {version}, {before:?}, handle of era {handle}, era {}, issued {issued}, \
             removed {}, acknowledged {:?}",
            era.load(SeqCst),
            own.removed.load(SeqCst),
            Acked::of(own.acked.load(SeqCst))
        );
        if stable {
            assert!(version > dead, "{how}: {place}:{key} was emptied, version {version}, {before:?}");
        }
    }

    /// The table of a name, and the era in which it was looked up.
    fn look_up(&self, place: usize) -> (u64, Option<Arc<Table>>) {
        let era = self.places[place].era.load(SeqCst);
        (era, self.store.catalog().table(&table_name(place)).cloned())
    }
}

/// A handle that is kept for a while, so that it is one of a table that went, or went on.
#[derive(Default)]
struct Handles([Option<(u64, Arc<Table>)>; TABLES]);

impl Handles {
    fn get(&mut self, world: &World, place: usize, random: &mut fastrand::Rng) -> Option<(u64, Arc<Table>)> {
        if self.0[place].is_none() || random.u8(..) < 200 {
            let (era, table) = world.look_up(place);
            self.0[place] = table.map(|table| (era, table));
        }
        self.0[place].clone()
    }
}

/// One write by the thread that the key belongs to. Some are of several keys at once.
fn write(world: &World, own: usize, handles: &mut Handles, random: &mut fastrand::Rng) {
    let place = random.usize(..TABLES);
    let Some((_, table)) = handles.get(world, place, random) else { return };
    let key_of = |random: &mut fastrand::Rng| random.usize(..KEYS / WRITERS) * WRITERS + own;
    let mut keys = vec![key_of(random)];
    let kind = random.u8(..20);
    if kind >= 17 {
        // A long one is under way for some time, and what it replaces is kept for statements that began before.
        let most = if random.u8(..) < 64 { KEYS } else { 20 };
        keys.extend((0..random.usize(1..most)).map(|_| key_of(random)));
        keys.sort_unstable();
        keys.dedup();
    }
    let era = world.places[place].era.load(SeqCst);
    let mut writes = Vec::new();
    for &key in &keys {
        let known = &world.places[place].keys[key];
        let version = known.issued.load(SeqCst) + 1;
        known.issued.store(version, SeqCst);
        let bytes = match random.u8(..) {
            0 if key < 10 => random.usize(LARGE_BYTES / 2..LARGE_BYTES),
            1..=8 => random.usize(4_000..12_000),
            _ => random.usize(..if world.evicts { 6_000 } else { 1_500 }),
        };
        let removes = matches!(kind, 0 | 1) || (kind == 17 && random.bool());
        if removes {
            known.removed.store(version, SeqCst);
        }
        writes.push((key, version, (!removes).then(|| body(place, key, version, bytes))));
    }
    if !apply(world, &table, kind, &writes) {
        return;
    }
    for (key, version, body) in writes {
        let acked = Acked { version, era, row: body.is_some() };
        world.places[place].keys[key].acked.store(acked.pack(), SeqCst);
        world.count(1);
    }
}

/// Whether the writes were acknowledged.
fn apply(world: &World, table: &Arc<Table>, kind: u8, writes: &[(usize, u64, Option<String>)]) -> bool {
    let store = &world.store;
    let now = store.now();
    let outcome = match writes {
        [(key, _, None)] => {
            store.delete(table, key_name(*key).as_bytes(), Expect::Anything, now).map(|_| true)
        }
        [(key, _, Some(body))] if kind < 5 => {
            let mut edit = |_: &[u8], new: &mut Vec<u8>| {
                new.extend_from_slice(body.as_bytes());
                true
            };
            store
                .rewrite_item(table, key_name(*key).as_bytes(), now, &mut edit)
                .map(|outcome| matches!(outcome, Outcome::Done(_)))
        }
        [(key, _, Some(body))] => {
            let item = item(body.as_bytes(), Expiry::Table);
            store
                .put_item(table, key_name(*key).as_bytes(), &item, Expect::Anything, now)
                .map(|outcome| matches!(outcome, Outcome::Done(_)))
        }
        many => {
            let list: Vec<Write> =
                many.iter().map(|(key, _, body)| row_of(table, *key, body.as_deref())).collect();
            store.commit(&list).map(|_| true)
        }
    };
    match outcome {
        Ok(acknowledged) => acknowledged,
        Err(WriteError::TableGone | WriteError::TableChanged | WriteError::Full | WriteError::Lost(_)) => {
            false
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// A write of a transaction: all columns are computed by who writes.
fn row_of(table: &Arc<Table>, key: usize, body: Option<&str>) -> Write {
    let name = Value::Text(key_name(key));
    let Some(body) = body else { return delete(table, &[name], Expect::Anything) };
    let columns = &table.def().columns;
    let values: Vec<Value> = columns
        .iter()
        .map(|column| match column.name.as_str() {
            "k" => name.clone(),
            "body" => Value::from(body),
            _ if column.generated.is_some() => bytes(body.len()),
            _ => Value::Null,
        })
        .collect();
    let write = put(table, &values, Expect::Anything);
    assert!(matches!(write.change, Change::Put(_)));
    write
}

/// Reads one key, or a whole table.
fn read(world: &World, handles: &mut Handles, random: &mut fastrand::Rng) {
    let place = random.usize(..TABLES);
    let Some((handle, table)) = handles.get(world, place, random) else { return };
    if random.u8(..) < 250 {
        let key = random.usize(..KEYS);
        let before = world.before(place, key);
        let found = get(&world.store, &table, key_name(key).as_bytes());
        world.judge((place, key), &before, handle, found.as_deref(), "get");
        world.count(2);
    } else if random.u8(..) < 128 || table.indexes().is_empty() {
        scan_whole(world, place, handle, &table);
    } else {
        let index = &table.indexes()[random.usize(..table.indexes().len())];
        let befores: Vec<Before> = (0..KEYS).map(|key| world.before(place, key)).collect();
        let view = world.store.view();
        let (mut scan, mut row) = (view.range(&table, index, &KeyBounds::ALL, random.bool()), RowBuf::new());
        while scan.next(&view, &mut row).unwrap_or(false) {
            judge_row(world, place, handle, &befores, &table, &row, "index scan");
        }
    }
}

/// A scan of all rows meets each key once.
fn scan_whole(world: &World, place: usize, handle: u64, table: &Arc<Table>) {
    let befores: Vec<Before> = (0..KEYS).map(|key| world.before(place, key)).collect();
    let mut met = vec![false; KEYS];
    let view = world.store.view();
    let (mut scan, mut row) = (view.scan(table), RowBuf::new());
    loop {
        match scan.next(&view, &mut row) {
            Ok(true) => {
                let key = judge_row(world, place, handle, &befores, table, &row, "scan");
                assert!(!std::mem::replace(&mut met[key], true), "scan: {place}:{key} came twice");
            }
            Ok(false) => break,
            // The table was dropped.
            Err(_) => return,
        }
    }
    for (key, before) in befores.iter().enumerate().filter(|(key, _)| !met[*key]) {
        world.judge((place, key), before, handle, None, "scan");
    }
    world.count(3);
}

/// Judges a whole row of a scan, computed columns included.
fn judge_row(
    world: &World,
    place: usize,
    handle: u64,
    befores: &[Before],
    table: &Table,
    row: &RowBuf,
    how: &str,
) -> usize {
    let columns = &table.def().columns;
    let values: Vec<ValueRef<'_>> = (0..columns.len()).map(|at| table.column(row, at)).collect();
    let at = |name: &str| columns.iter().position(|column| column.name == name).unwrap();
    let bytes = match values[at("body")] {
        ValueRef::Text(text) => text.as_bytes(),
        ValueRef::Blob(bytes) => bytes,
        other => panic!("{how}: {place} has {other:?} for a body"),
    };
    let (_, key, _) = parse(bytes);
    assert!(key < KEYS, "{how}: key {key}");
    assert_eq!(values[at("k")], ValueRef::Text(&key_name(key)), "{how}: {place}:{key}");
    world.judge((place, key), &befores[key], handle, Some(bytes), how);
    for (at, column) in columns.iter().enumerate().filter(|(_, column)| column.is_visible()) {
        if column.generated.is_some() {
            // In rows that were written since the column was dropped it is NULL.
            let stays = world.store.catalog().table(&table_name(place)).is_some_and(|now| {
                now.id() == table.id() && now.def().columns.iter().any(|now| now.slot == column.slot)
            });
            let right = values[at].to_owned() == length(table, &values);
            assert!(right || !stays, "{how}: {place}:{key} is computed wrongly: {:?}", values[at]);
        } else if column.name.starts_with('c') {
            let valid = matches!(values[at], ValueRef::Null) || values[at] == ValueRef::Text("absent");
            assert!(valid, "{how}: {place}:{key} has {:?} in {}", values[at], column.name);
        }
    }
    key
}

/// Reads the shared file as another process does: by definitions that it looked at before.
fn read_shared(world: &World, reader: &Reader, random: &mut fastrand::Rng) {
    let place = random.usize(..TABLES);
    let handle = world.places[place].era.load(SeqCst);
    let definitions = reader.definitions();
    let Some(table) = definitions.table(&table_name(place)) else { return };
    for _ in 0..random.usize(1..30) {
        let key = random.usize(..KEYS);
        let before = world.before(place, key);
        let Some(now) = reader.begin().filter(|_| reader.is_current(table)) else { return };
        let mut value = Vec::new();
        let found = match reader.value(table, key_name(key).as_bytes(), now, &mut value) {
            Found::Hit(_) => Some(value.as_slice()),
            Found::Miss => None,
            // What the file does not say the daemon would.
            Found::Unanswered => continue,
        };
        world.judge((place, key), &before, handle, found, "shared memory");
        world.count(4);
    }
}

/// Changes a definition. Each thread that does has tables of its own.
fn define(world: &World, place: usize, random: &mut fastrand::Rng) {
    let (store, name) = (&world.store, table_name(place));
    let Some(table) = store.catalog().table(&name).cloned() else {
        return emptying(world, place, || create(world, place, random));
    };
    let columns = &table.def().columns;
    let plain: Vec<usize> = (0..columns.len()).filter(|&at| columns[at].name.starts_with('c')).collect();
    let generated = columns.iter().position(|column| column.name == "len");
    let fresh = format!("c{}", random.u32(..));
    match random.u8(..24) {
        0 => emptying(world, place, || store.drop_table(&name).unwrap()),
        1..=3 => emptying(world, place, || {
            store.drop_table(&name).unwrap();
            create(world, place, random);
        }),
        4 | 5 => emptying(world, place, || store.truncate(&table)),
        6 | 7 => emptying(world, place, || {
            let shared = if table.def().options.shared_memory { "off" } else { "on" };
            store
                .set_options(&name, &mut |options, columns| options.set("shared_memory", shared, columns))
                .unwrap();
        }),
        8..=11 if plain.len() < 6 => {
            let absent = random.bool().then(|| Value::from("absent"));
            let column = ColumnDef { absent, ..ColumnDef::new(&fresh, "TEXT").unwrap() };
            altered(store.alter_table(&name, &mut |def| def.add_column(column.clone()).map(|_| ())));
        }
        12..=14 if !plain.is_empty() => {
            let at = plain[random.usize(..plain.len())];
            altered(store.alter_table(&name, &mut |def| {
                def.remove_column(at);
                Ok(())
            }));
        }
        15 if !plain.is_empty() => {
            altered(store.alter_table(&name, &mut |def| {
                def.columns[plain[0]].name.clone_from(&fresh);
                Ok(())
            }));
        }
        16..=18 => match generated {
            None => altered(store.add_generated(&name, lengths())),
            Some(_) if table.def().indexes.iter().any(|index| index.name == format!("{name}_len")) => {
                store.drop_index(&format!("{name}_len")).unwrap();
            }
            Some(at) => altered(store.alter_table(&name, &mut |def| {
                def.remove_column(at);
                Ok(())
            })),
        },
        _ => {
            let (index, column) = if random.bool() { ("k", Some(0)) } else { ("len", generated) };
            let index = format!("{name}_{index}");
            if table.def().indexes.iter().any(|own| own.name == index) {
                store.drop_index(&index).unwrap();
            } else if let Some(column) = column {
                store.create_index(&name, IndexDef::new(index, vec![column], false)).unwrap();
            }
        }
    }
    world.count(0);
}

fn lengths() -> ColumnDef {
    let generated = Some(Generated { sql: "length(body)".into(), stored: true });
    ColumnDef { generated, ..ColumnDef::new("len", "INT").unwrap() }
}

/// A change of columns; one that finds no room for the rows that it computes leaves the table as it was.
fn altered(result: Result<Arc<Table>, store::DdlError>) {
    if let Err(error) = result {
        // Many columns came and went; or without evictions there may be no room for a row's new version.
        assert!(matches!(error.state, "53200" | "54011"), "{error:?}");
    }
}

/// Everything that was acknowledged before this is gone after it.
fn emptying(world: &World, place: usize, change: impl FnOnce()) {
    let Place { era, keys } = &world.places[place];
    era.fetch_add(1, SeqCst);
    for key in keys {
        key.dead.store(Acked::of(key.acked.load(SeqCst)).version, SeqCst);
    }
    change();
    era.fetch_add(1, SeqCst);
}

/// A table of a name, with its columns in one of several orders.
fn create(world: &World, place: usize, random: &mut fastrand::Rng) {
    let shared = if random.bool() { "on" } else { "off" };
    let mut columns = vec![("k", "TEXT")];
    columns.extend([("c1", "TEXT"), ("c2", "TEXT")].into_iter().take(random.usize(..3)));
    columns.insert(random.usize(1..=columns.len()), ("body", "TEXT"));
    let def: TableDef =
        table(&table_name(place), &columns, 1, &[("value", "body"), ("shared_memory", shared)]);
    world.store.create_table(def).unwrap();
}

/// Files that go with the test.
struct Files(TempArena);

impl Files {
    fn shared(&self) -> PathBuf {
        shared_path_beside(&self.0.0)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(hits_path(&self.shared()));
        let _ = std::fs::remove_file(self.shared());
    }
}

fn open(files: &Files, hands: &Arc<ManualClock>, evicts: bool) -> Arc<Store> {
    let store = Store::open(&options(Some(files.0.0.clone()), 12, hands)).unwrap().store;
    store.set_evictions(evicts);
    store.set_compute(Arc::new(|| Box::new(Lengths)));
    store
}

fn torture(name: &str, evicts: bool) {
    let seed = seed();
    let seconds = std::env::var("TORTURE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS);
    let files = Files(TempArena::new(name));
    let hands = ManualClock::new(1_700_000_000);
    let place = || Place { keys: (0..KEYS).map(|_| Key::default()).collect(), ..Place::default() };
    let mut world = World {
        store: open(&files, &hands, evicts),
        places: (0..TABLES).map(|_| place()).collect(),
        evicts,
        stop: AtomicBool::new(false),
        counts: Default::default(),
    };
    // A shared table makes the file that readers open.
    let first =
        table("first", &[("k", "TEXT"), ("v", "TEXT")], 1, &[("value", "v"), ("shared_memory", "on")]);
    world.store.create_table(first).unwrap();
    run(&world, &files, &hands, seed, Duration::from_secs(seconds));
    let [definitions, writes, gets, scans, shared] = world.counts.each_ref().map(|count| count.load(SeqCst));
    println!("{definitions} definitions, {writes} writes, {gets} gets, {scans} scans, {shared} shared reads");
    assert!(definitions > 10 && writes > 100 && gets > 100 && scans > 2 && shared > 100, "it shows little");
    settle(&world, &hands);
    check_all(&world, "at the end");
    // The same by the next process.
    // The file is locked until the first one is gone.
    drop(std::mem::replace(&mut world.store, Store::open(&options(None, 8, &hands)).unwrap().store));
    world.store = open(&files, &hands, evicts);
    check_all(&world, "after a restart");
    for place in 0..TABLES {
        let _absent = world.store.drop_table(&table_name(place));
    }
    settle(&world, &hands);
    let usage = world.store.usage();
    assert!(usage.segment_bytes <= 1 << 20 && usage.rows == 0, "dropped tables leave {usage:?}");
}

/// Lets the cleaner do what is left to do.
fn settle(world: &World, hands: &ManualClock) {
    for _ in 0..50 {
        hands.advance(Duration::from_millis(63));
        world.store.tick();
    }
}

/// Nobody writes any more: each key holds what was acknowledged last, by key and by scan, and is counted once.
fn check_all(world: &World, when: &str) {
    for place in 0..TABLES {
        let (handle, Some(table)) = world.look_up(place) else { continue };
        let mut rows = 0;
        for key in 0..KEYS {
            let before = world.before(place, key);
            let found = get(&world.store, &table, key_name(key).as_bytes());
            world.judge((place, key), &before, handle, found.as_deref(), when);
            rows += u64::from(found.is_some());
        }
        scan_whole(world, place, handle, &table);
        let view = world.store.view();
        for index in table.indexes() {
            let (mut scan, mut row, mut met) =
                (view.range(&table, index, &KeyBounds::ALL, false), RowBuf::new(), 0);
            while scan.next(&view, &mut row).unwrap() {
                met += 1;
            }
            assert_eq!(met, rows, "{when}: rows by index {}", index.name());
        }
    }
}

fn run(world: &World, files: &Files, hands: &Arc<ManualClock>, seed: u64, time: Duration) {
    let random =
        |thread: u64| fastrand::Rng::with_seed(seed ^ (thread + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let begin = Instant::now();
    std::thread::scope(|scope| {
        // Whoever fails ends the others.
        let guard = || Ending(world);
        for own in 0..WRITERS {
            let mut random = random(own as u64);
            scope.spawn(move || {
                let (_guard, mut handles) = (guard(), Handles::default());
                while world.goes_on() {
                    write(world, own, &mut handles, &mut random);
                }
            });
        }
        let mut of_reader = random(10);
        scope.spawn(move || {
            let (_guard, mut handles) = (guard(), Handles::default());
            while world.goes_on() {
                read(world, &mut handles, &mut of_reader);
            }
        });
        let mut of_shared = random(11);
        scope.spawn(move || {
            let _guard = guard();
            let own = [rustix::process::geteuid().as_raw()];
            let reader = Reader::open(&files.shared(), &own, Clock::Manual(Arc::clone(hands))).unwrap();
            while world.goes_on() {
                read_shared(world, &reader, &mut of_shared);
            }
        });
        for half in 0..2 {
            let mut random = random(20 + half as u64);
            scope.spawn(move || {
                let _guard = guard();
                while world.goes_on() {
                    define(world, random.usize(..TABLES / 2) * 2 + half, &mut random);
                    // Rows are to come between two changes.
                    std::thread::sleep(Duration::from_micros(random.u64(..3_000)));
                }
            });
        }
        let _guard = guard();
        while world.goes_on() && begin.elapsed() < time {
            hands.advance(Duration::from_millis(63));
            world.store.tick();
            std::thread::sleep(Duration::from_millis(2));
        }
    });
}

struct Ending<'w>(&'w World);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, SeqCst);
    }
}

#[test]
fn without_evictions_every_acknowledged_row_outlives_changes_of_definitions() {
    torture("definitions-kept", false);
}

#[test]
fn with_evictions_no_change_of_definitions_brings_back_or_mixes_up_a_row() {
    torture("definitions-evicted", true);
}
