//! Inside one process, without a socket: what the store itself takes for a read and a write.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use store::{Clock, Expect, Expiry, Item, ItemMeta, ItemSink, Store, StoreOptions, TICK_NS};

use crate::clock;
use crate::failure::{Context, Failure, Result};
use crate::load::{key, value};
use crate::summary::{Summary, digits, thousands};

/// Operations between two looks at the clock.
const SLICE: u64 = 200_000;
/// Slices of each measurement; the median counts.
const SLICES: usize = 9;
/// Key space of these rows.
const SPACE: u64 = 9;

/// What `inside` is told.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// How many rows.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Bytes of every value.
    #[arg(long, default_value_t = 100)]
    value_bytes: usize,
    /// The store's memory limit in MiB.
    #[arg(long, default_value_t = 1024)]
    memory_mib: u64,
}

/// A store of this process alone, with a thread that cleans it as the daemon's does.
pub(crate) fn open(memory_mib: u64) -> Result<Arc<Store>> {
    let options = StoreOptions {
        path: None,
        memory_bytes: memory_mib << 20,
        cold: true,
        clock: Clock::System,
        row_bytes_max: 1 << 20,
    };
    let store = Store::open(&options).context(|| "open a store".into())?.store;
    let cleaned = Arc::downgrade(&store);
    thread::spawn(move || {
        while let Some(store) = cleaned.upgrade() {
            store.tick();
            drop(store);
            thread::sleep(Duration::from_nanos(TICK_NS));
        }
    });
    Ok(store)
}

/// Fills the built-in table, then times reads and writes.
pub(crate) fn run(options: &Options) -> Result<()> {
    let store = open(options.memory_mib)?;
    let value = value(options.value_bytes);
    let began = clock::thread_cpu_ns();
    for index in 0..options.rows {
        put(&store, index, &value)?;
    }
    let each = (clock::thread_cpu_ns() - began) as f64 / options.rows as f64;
    println!(
        "fill      {} rows of 16 B + {} B: {} ns each",
        thousands(options.rows as f64),
        value.len(),
        digits(each)
    );
    show("get hit", options.rows, |index| get(&store, index))?;
    show("overwrite", options.rows, |index| put(&store, index, &value))?;
    let usage = store.usage();
    let beyond = |bytes: u64| digits(bytes as f64 / options.rows as f64);
    println!(
        "a row: segments {} B, index {} B, heap {} B; {} rows, {} evicted",
        beyond(usage.segment_bytes),
        beyond(usage.index_bytes),
        beyond(usage.heap_bytes),
        thousands(usage.rows as f64),
        thousands(usage.evicted as f64)
    );
    Ok(())
}

/// Times slices of random keys, in processor time of this thread.
fn show(what: &str, rows: u64, mut step: impl FnMut(u64) -> Result<()>) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(0x5eed);
    let mut slices = Vec::new();
    for _ in 0..SLICES {
        let began = clock::thread_cpu_ns();
        for _ in 0..SLICE {
            step(random.u64(..rows))?;
        }
        slices.push((clock::thread_cpu_ns() - began) as f64 / SLICE as f64);
    }
    let Summary { median, low, high } = Summary::of(&slices);
    println!("{what:<9} {} ns ({}-{})", digits(median), digits(low), digits(high));
    Ok(())
}

fn put(store: &Store, index: u64, value: &[u8]) -> Result<()> {
    let catalog = store.catalog();
    let item = Item { value, client_flags: 0, expiry: Expiry::Table, cas: None, lease: None, tags: None };
    store
        .put_item(catalog.built_in(), &key(SPACE, index), &item, Expect::Anything, store.now())
        .context(|| "put".into())?;
    Ok(())
}

fn get(store: &Store, index: u64) -> Result<()> {
    let catalog = store.catalog();
    let mut sink = Sink::default();
    if store.get_item(catalog.built_in(), &key(SPACE, index), store.now(), &mut sink) {
        return Ok(());
    }
    Err(Failure::new("a row that was put is not there"))
}

/// Takes a value and forgets it.
#[derive(Default)]
struct Sink(Vec<u8>);

impl ItemSink for Sink {
    fn open(&mut self, meta: &ItemMeta) -> &mut Vec<u8> {
        self.0.reserve(meta.len);
        &mut self.0
    }

    fn close(&mut self) {}

    fn discard(&mut self) {
        self.0.clear();
    }
}
