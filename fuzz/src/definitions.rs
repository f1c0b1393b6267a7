//! What must hold for all definitions that a file may have under a right check field.
//!
//! An input is a list of edits to the definitions of a real store. However they were changed, a client that reads the
//! file and the next start take them or refuse them, and what they take can be used: written, read, altered, dropped.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena::{Arena, Geometry};
use serde_json::{Value as Json, json};
use store::definition::{
    CheckDef, ColumnDef, ColumnKind, Generated, Identity, IndexDef, TableDef, TableOptions,
};
use store::value::{Value, ValueRef};
use store::{
    Change, Clock, Compute, Expect, Expiry, Item, KeyBounds, Made, NewRow, Reader, Renewal, RowBuf, Store,
    StoreOptions, Table, Task, Write, WriteError,
};

const MEMORY_BYTES: u64 = 4 << 20;

/// Edits of one input.
const EDITS_MAX: usize = 8;

/// What numbers become: around the bounds of what they count.
const NUMBERS: [i64; 20] = [
    0,
    1,
    2,
    3,
    7,
    31,
    32,
    255,
    256,
    2_000,
    2_047,
    2_048,
    4_095,
    4_096,
    32_767,
    65_535,
    65_536,
    1 << 32,
    i64::MAX,
    -1,
];

/// The definitions of a store with a little of everything.
#[derive(Debug)]
pub struct Specimen {
    definitions: Json,
}

/// A file that goes with its owner.
#[derive(Debug)]
pub struct File(pub PathBuf);

impl File {
    /// A path that nobody else uses, in memory where there is such a place.
    pub fn new(name: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        Self(parent.join(format!("sqlcached-fuzz-{name}-{}", std::process::id())))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(store::hits_path(&store::shared_path_beside(&self.0)));
        let _ = std::fs::remove_file(store::shared_path_beside(&self.0));
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Specimen {
    /// Made by a store at this path.
    pub fn new(file: &File) -> Self {
        let _ = std::fs::remove_file(&file.0);
        let store = open(file);
        let column = |name: &str, declared: &str| ColumnDef::new(name, declared).expect("a type");
        let generated = Some(Generated { sql: "1".into(), stored: true });
        let made = |name: &str| ColumnDef { generated: generated.clone(), ..column(name, "INT") };
        let number = ColumnDef { identity: Some(Identity::ByDefault), not_null: true, ..column("id", "INT") };
        let default = ColumnDef { default: Some(Value::Real(0.5)), ..column("w", "double precision") };
        let computed = ColumnDef { default_sql: Some("1 + 1".into()), ..column("d", "ANY") };
        let mut t =
            TableDef::new("t", vec![column("k", "TEXT"), column("v", "TEXT"), default, made("g")], vec![0]);
        t.options = TableOptions {
            prefix: Some("t:".into()),
            value: Some(1),
            ttl_ms: Some(60_000),
            ..TableOptions::default()
        };
        t.indexes =
            vec![IndexDef { descending: vec![true, false], ..IndexDef::new("t_w", vec![2, 3], false) }];
        let mut u = TableDef::new("u", vec![number, column("b", "bytea"), computed], vec![0, 1]);
        u.checks = vec![CheckDef { name: "c".into(), sql: "1".into(), not_null: None }];
        u.options = TableOptions { shared_memory: true, max_rows: Some(9), ..TableOptions::default() };
        let v = TableDef::new("v", vec![column("a", "text[]"), column("b", "timestamptz")], Vec::new());
        for def in [t, u, v] {
            store.create_table(def).expect("a definition");
        }
        let altered = store.alter_table("t", &mut |def| {
            def.add_column(ColumnDef { absent: Some(Value::Integer(1)), ..ColumnDef::new("late", "INT")? })
                .map(|_| ())
        });
        altered.expect("a column more");
        drop(store);
        let attached = Arena::attach(&file.0, &Geometry { memory_bytes: MEMORY_BYTES }).expect("an arena");
        let arena::Attach::Warm(arena) = attached else { panic!("it is usable") };
        let bytes = arena.catalogue().expect("definitions");
        Self { definitions: serde_json::from_slice(&bytes).expect("JSON") }
    }

    /// Its definitions with the edits of an input.
    pub fn edited(&self, data: &[u8]) -> Json {
        let mut definitions = self.definitions.clone();
        let mut bytes = Bytes(data);
        for _ in 0..EDITS_MAX {
            if bytes.0.is_empty() {
                break;
            }
            edit(&mut definitions, &mut bytes);
        }
        definitions
    }
}

/// The bytes of an input that are not yet used up; then zeros.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> usize {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(byte)
    }

    /// One of so many.
    fn below(&mut self, count: usize) -> usize {
        (self.next() << 8 | self.next()) % count.max(1)
    }
}

/// The way to each value in a document.
fn places(json: &Json, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match json {
        Json::Array(list) => {
            for (number, inner) in list.iter().enumerate() {
                places(inner, &format!("{at}/{number}"), found);
            }
        }
        Json::Object(fields) => {
            for (name, inner) in fields {
                places(inner, &format!("{at}/{name}"), found);
            }
        }
        _ => {}
    }
}

fn edit(definitions: &mut Json, bytes: &mut Bytes<'_>) {
    let mut all = Vec::new();
    places(definitions, "", &mut all);
    let what = bytes.next();
    let from = definitions.pointer(&all[bytes.below(all.len())]).cloned().unwrap_or_default();
    let Some(target) = definitions.pointer_mut(&all[bytes.below(all.len())]) else { return };
    let number = NUMBERS[bytes.below(NUMBERS.len())];
    match (what % 8, &mut *target) {
        (0, target) => *target = from,
        (1, Json::Array(list)) if !list.is_empty() => {
            let at = bytes.below(list.len());
            list.remove(at);
        }
        (2, Json::Array(list)) if !list.is_empty() => {
            let again = list[bytes.below(list.len())].clone();
            list.push(again);
        }
        (1 | 2, Json::Object(fields)) if !fields.is_empty() => {
            let name = fields.keys().nth(bytes.below(fields.len())).cloned().unwrap_or_default();
            fields.remove(&name);
        }
        (_, Json::Bool(flag)) => *flag = !*flag,
        (3, target) => *target = Json::Null,
        (4, Json::Object(fields)) => {
            let names =
                ["slot", "slots", "pending", "hidden", "absent", "predicate", "generated", "identity"];
            let value = if what & 16 == 0 {
                json!(number)
            } else {
                json!({"first": number, "now": number.wrapping_add(1) })
            };
            fields.insert(names[bytes.below(names.len())].to_owned(), value);
        }
        (_, Json::Number(_)) => *target = json!(number),
        (_, Json::String(text)) => text.insert(0, char::from(b'a' + u8::try_from(what % 26).unwrap_or(0))),
        (_, Json::Array(list)) => list.push(json!(number)),
        _ => {}
    }
}

fn open(file: &File) -> Arc<Store> {
    let options = StoreOptions {
        path: Some(file.0.clone()),
        memory_bytes: MEMORY_BYTES,
        cold: false,
        clock: Clock::System,
        row_bytes_max: 1 << 20,
    };
    let store = Store::open(&options).expect("definitions that make no sense are none").store;
    store.set_compute(Arc::new(|| Box::new(Constants)));
    store
}

/// Computes a value that fits for each expression.
#[derive(Debug)]
struct Constants;

impl Compute for Constants {
    fn row(&mut self, task: &Task<'_>, made: &mut Made) -> Result<(), WriteError> {
        let columns = task.table.def().columns.iter().enumerate();
        let generated = columns.filter(|(_, column)| column.generated.is_some()).map(|(at, _)| at);
        for at in task.defaults.iter().copied().chain(generated) {
            made.push((at, fitting(task.table, at)));
        }
        Ok(())
    }
}

fn fitting(table: &Table, column: usize) -> Value {
    match table.def().columns[column].kind {
        ColumnKind::Integer | ColumnKind::Numeric => Value::Integer(1),
        ColumnKind::Real => Value::Real(1.5),
        ColumnKind::Text | ColumnKind::Any => Value::from("x"),
        ColumnKind::Blob => Value::Blob(vec![0xff]),
    }
}

/// Runs one input. Says how many tables beside the built-in one were taken over.
pub fn fuzz_definitions(specimen: &Specimen, file: &File, data: &[u8]) -> usize {
    let _ = std::fs::remove_file(&file.0);
    let arena = Arena::create(Some(&file.0), &Geometry { memory_bytes: MEMORY_BYTES }, 1).expect("an arena");
    arena.set_catalogue(specimen.edited(data).to_string().as_bytes()).expect("it fits");
    drop(arena);
    read_as_client(&file.0);
    let store = open(file);
    let catalog = store.catalog();
    let taken: Vec<String> = catalog.tables().map(|table| table.name().to_owned()).collect();
    drop(catalog);
    for name in &taken {
        use_table(&store, name);
    }
    taken.len() - 1
}

/// What a client does that maps the file.
fn read_as_client(path: &Path) {
    let own = [std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(path).expect("a file"))];
    let Ok(reader) = Reader::open(path, &own, Clock::System) else { return };
    let definitions = reader.definitions();
    let _routed = definitions.route(b"t:key");
    for table in definitions.tables() {
        let Some(now) = reader.begin() else { return };
        let (mut key, mut value, mut row) = (Vec::new(), Vec::new(), RowBuf::new());
        if table.key_from_text(b"key", &mut key).is_ok() {
            let _found = reader.value(table, &key, now, &mut value);
            let _found = reader.row(table, &key, now, &mut row);
        }
        for column in 0..table.def().columns.len() {
            let _value = table.column(&row, column);
        }
    }
}

/// Writes, reads, alters and drops a table. All of it may be refused.
fn use_table(store: &Arc<Store>, name: &str) {
    let Some(table) = store.catalog().table(name).cloned() else { return };
    let now = store.now();
    if table.def().options.value.is_some() {
        let item = Item {
            value: b"value",
            client_flags: 0,
            expiry: Expiry::Table,
            cas: None,
            lease: None,
            tags: None,
        };
        let _refused = store.put_item(&table, b"key", &item, Expect::Anything, now);
        let _refused = store.touch(&table, b"key", Expiry::At(now + 100), now);
    }
    let values: Vec<Value> = (0..table.def().columns.len()).map(|at| fitting(&table, at)).collect();
    let written = write_row(store, &table, &values);
    let (view, mut row, mut rows) = (store.view(), RowBuf::new(), 0);
    let mut scan = view.scan(&table);
    while scan.next(&view, &mut row).unwrap_or(false) {
        rows += 1;
        for column in 0..values.len() {
            let _value = table.column(&row, column);
        }
    }
    assert!(!written || rows > 0, "a row that was written to {name} is not there");
    for index in table.indexes() {
        let mut scan = view.range(&table, index, &KeyBounds::ALL, false);
        while scan.next(&view, &mut row).unwrap_or(false) {}
    }
    drop(view);
    let _refused =
        store.alter_table(name, &mut |def| def.add_column(ColumnDef::new("more", "INT")?).map(|_| ()));
    let _refused = store.create_index(name, IndexDef::new("more", vec![values.len()], false));
    store.tick();
    let _refused = store.drop_table(name);
}

/// Whether a row is there for sure: neither the table's limits nor its time may have taken it.
fn write_row(store: &Arc<Store>, table: &Arc<Table>, values: &[Value]) -> bool {
    let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    let (mut key, mut payload) = (Vec::new(), Vec::new());
    if table.encode_row(&values, &mut key, &mut payload).is_err() {
        return false;
    }
    if table.def().has_row_id() {
        let number = ValueRef::Integer(store.next_row_id(table));
        if table.keys().encode(&[number], &mut key).is_err() {
            return false;
        }
    }
    let row =
        NewRow { payload, expiry: Expiry::Never, client_flags: 0, cas: None, renewal: Renewal::default() };
    let write = Write { table: Arc::clone(table), key, change: Change::Put(row), expect: Expect::Anything };
    let options = &table.def().options;
    let limited = options.max_rows.is_some() || options.max_memory.is_some() || options.max_ops.is_some();
    store.commit(&[write]).is_ok() && !limited
}
