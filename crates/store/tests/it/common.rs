//! A store on an arena of its own, with a clock that the test moves.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use store::definition::{ColumnDef, TableDef, TableOptions};
use store::value::{Value, ValueRef};
use store::{
    Change, Clock, Expect, Expiry, Item, ItemMeta, ItemSink, ManualClock, NewRow, Renewal, RowBuf, Store,
    StoreOptions, Table, Write,
};

/// Rows of a commit up to which it holds the locks of its shards: none, so that it marks its rows, and as many as it
/// may.
pub(crate) const BOTH_WAYS: [usize; 2] = [0, usize::MAX];

/// A store and the hands of its clock.
pub(crate) struct Bench {
    pub(crate) store: Arc<Store>,
    pub(crate) hands: Arc<ManualClock>,
}

impl Bench {
    pub(crate) fn new(memory_mib: u64) -> Self {
        let hands = ManualClock::new(1_700_000_000);
        let options = options(None, memory_mib, &hands);
        Self { store: Store::open(&options).unwrap().store, hands }
    }

    /// Moves the clock, and lets the cleaner run as it would have.
    pub(crate) fn advance(&self, by: Duration) {
        self.hands.advance(by);
        self.store.tick();
    }
}

pub(crate) fn options(path: Option<PathBuf>, memory_mib: u64, hands: &Arc<ManualClock>) -> StoreOptions {
    StoreOptions {
        path,
        memory_bytes: memory_mib << 20,
        cold: false,
        clock: Clock::Manual(Arc::clone(hands)),
        row_bytes_max: 2 << 20,
    }
}

/// The seed of a random test: `SEED` in the environment replays one.
pub(crate) fn seed() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a test replays the seed it is told")]
    let told = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = told.unwrap_or_else(|| fastrand::u64(..));
    println!("SEED={seed}");
    seed
}

/// A definition from (name, declared type) pairs; the first `keys` columns are the primary key.
pub(crate) fn table(name: &str, columns: &[(&str, &str)], keys: usize, options: &[(&str, &str)]) -> TableDef {
    let columns: Vec<ColumnDef> =
        columns.iter().map(|(name, kind)| ColumnDef::new(name, kind).unwrap()).collect();
    let mut set = TableOptions::default();
    for (name, text) in options {
        set.set(name, text, &columns).unwrap();
    }
    TableDef { options: set, ..TableDef::new(name, columns, (0..keys).collect()) }
}

/// A write of a whole row.
pub(crate) fn put(table: &Arc<Table>, values: &[Value], expect: Expect) -> Write {
    let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    let (mut key, mut payload) = (Vec::new(), Vec::new());
    table.encode_row(&values, &mut key, &mut payload).unwrap();
    let row =
        NewRow { payload, expiry: Expiry::Table, client_flags: 0, cas: None, renewal: Renewal::default() };
    Write { table: Arc::clone(table), key, change: Change::Put(row), expect }
}

/// A removal of the row with these key values.
pub(crate) fn delete(table: &Arc<Table>, key: &[Value], expect: Expect) -> Write {
    Write { table: Arc::clone(table), key: key_of(table, key), change: Change::Delete, expect }
}

pub(crate) fn key_of(table: &Table, key: &[Value]) -> Vec<u8> {
    let values: Vec<ValueRef<'_>> = key.iter().map(Value::as_ref).collect();
    let mut bytes = Vec::new();
    table.keys().encode(&values, &mut bytes).unwrap();
    bytes
}

/// All columns of a copied row.
pub(crate) fn values(table: &Table, row: &RowBuf) -> Vec<Value> {
    (0..table.def().columns.len()).map(|column| table.column(row, column).to_owned()).collect()
}

/// Every row that a statement sees now, sorted by their debug text.
pub(crate) fn all_rows(store: &Store, table: &Arc<Table>) -> Vec<Vec<Value>> {
    let view = store.view();
    let mut scan = view.scan(table);
    let mut row = RowBuf::new();
    let mut rows = Vec::new();
    while scan.next(&view, &mut row).unwrap() {
        rows.push(values(table, &row));
    }
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

pub(crate) fn item(value: &[u8], expiry: Expiry) -> Item<'_> {
    Item { value, client_flags: 7, expiry, cas: None, lease: None, tags: None }
}

/// Collects one item.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) value: Vec<u8>,
    pub(crate) meta: Option<ItemMeta>,
}

impl ItemSink for Collected {
    fn open(&mut self, meta: &ItemMeta) -> &mut Vec<u8> {
        self.meta = Some(*meta);
        &mut self.value
    }
    fn close(&mut self) {}
    fn discard(&mut self) {
        self.value.clear();
    }
}

pub(crate) fn get(store: &Store, table: &Table, key: &[u8]) -> Option<Vec<u8>> {
    let mut sink = Collected::default();
    store.get_item(table, key, store.now(), &mut sink).then_some(sink.value)
}

pub(crate) fn set(store: &Store, table: &Table, key: &[u8], value: &[u8], expiry: Expiry) {
    store.checkpoint(store.now());
    let outcome = store.put_item(table, key, &item(value, expiry), Expect::Anything, store.now()).unwrap();
    assert!(matches!(outcome, store::Outcome::Done(_)), "{outcome:?}");
}
