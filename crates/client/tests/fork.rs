//! A child after `fork` goes on with its parent's client: it reads in the mapping, and its requests go over connections
//! of its own.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use sqlcached_client::{Client, Lookup, Options, Table};
use store::definition::{ColumnDef, TableDef, TableOptions};
use store::{Clock, Expect, Expiry, Item, Outcome, Store, StoreOptions, shared_path_beside};

/// Rows of the table.
const ROWS: usize = 500;

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

/// Starts a child that runs this and ends; its process id.
fn child_that(run: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child runs `run` on its copy of this thread and ends without returning into the harness. What `run`
    // uses of other threads' is the allocator, which the C library keeps usable in a child.
    let process = unsafe { fork() };
    if process == 0 {
        let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or(false);
        // SAFETY: ends the process, and nothing else.
        unsafe { _exit(i32::from(!good)) };
    }
    assert!(process > 0, "fork failed");
    process
}

/// Waits for a child; whether what it ran was good.
fn was_good(process: i32) -> bool {
    let mut status = -1;
    // SAFETY: `status` is an integer of this function's, and the call writes nothing else.
    let waited = unsafe { waitpid(process, &raw mut status, 0) };
    waited == process && status == 0
}

/// A folder that goes with the test, in the process that made it.
struct Folder(PathBuf, u32);

impl Folder {
    fn new(name: &str) -> Self {
        let process = std::process::id();
        let path = std::env::temp_dir().join(format!("sqlcached-{name}-{process}"));
        std::fs::create_dir_all(&path).unwrap();
        Self(path, process)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.1 == std::process::id() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

fn key(row: usize) -> String {
    format!("key-{row}")
}

fn value(row: usize, version: u8) -> Vec<u8> {
    vec![version; row % 300]
}

fn put(store: &Store, table: &store::Table, row: usize, version: u8) {
    let value = value(row, version);
    let item =
        Item { value: &value, client_flags: 0, expiry: Expiry::Table, cas: None, lease: None, tags: None };
    let outcome = store.put_item(table, key(row).as_bytes(), &item, Expect::Anything, store.now()).unwrap();
    assert!(matches!(outcome, Outcome::Done(_)));
}

fn filled(folder: &Folder) -> (Arc<Store>, Arc<store::Table>) {
    let options = StoreOptions {
        path: Some(folder.0.join("arena")),
        memory_bytes: 16 << 20,
        cold: true,
        clock: Clock::System,
        row_bytes_max: 2 << 20,
    };
    let store = Store::open(&options).unwrap().store;
    let columns = vec![ColumnDef::new("k", "TEXT").unwrap(), ColumnDef::new("v", "TEXT").unwrap()];
    let mut set = TableOptions::default();
    set.set("shared_memory", "on", &columns).unwrap();
    set.set("value", "v", &columns).unwrap();
    let table =
        store.create_table(TableDef { options: set, ..TableDef::new("t", columns, vec![0]) }).unwrap();
    for row in 0..ROWS {
        put(&store, &table, row, 1);
    }
    (store, table)
}

/// Whether every row has this version, one by one and together.
fn reads(client: &Client, table: &Table, version: u8) -> bool {
    let keys: Vec<String> = (0..ROWS).map(key).collect();
    let one_by_one = keys.iter().enumerate().all(|(row, key)| {
        let found = client.get_from(table, key.as_bytes()).unwrap();
        matches!(found, Lookup::Hit(found) if found.bytes == value(row, version))
    });
    let keys: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
    let together = client.multi_get("t", &keys).unwrap();
    one_by_one
        && together
            .iter()
            .enumerate()
            .all(|(row, found)| matches!(found, Lookup::Hit(found) if found.bytes == value(row, version)))
}

#[test]
fn a_child_reads_in_the_mapping() {
    let folder = Folder::new("fork-reads");
    let (store, own) = filled(&folder);
    let mut options = Options::new(folder.0.join("no-socket"));
    options.arena = Some(shared_path_beside(&folder.0.join("arena")));
    let client = Client::connect(&options).unwrap();
    let table = client.table("t").unwrap();
    assert!(reads(&client, &table, 1));
    let child = child_that(|| reads(&client, &table, 1) && client.arena().is_some());
    assert!(was_good(child));
    // What the owner writes later, a child sees as its parent does.
    (0..ROWS).for_each(|row| put(&store, &own, row, 2));
    let child = child_that(|| reads(&client, &table, 2));
    assert!(was_good(child) && reads(&client, &table, 2));
}

/// Answers each request of a connection with the connection's number as the value.
fn answer(stream: UnixStream, number: usize) {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let (mut stream, mut line) = (stream, String::new());
    while lines.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        let text = number.to_string();
        let reply = format!("VA {} c1 f0\r\n{text}\r\n", text.len());
        // A client that went away has read what it wanted.
        let _ = stream.write_all(reply.as_bytes());
        line.clear();
    }
}

#[test]
fn a_child_asks_over_a_connection_of_its_own() {
    let folder = Folder::new("fork-asks");
    let socket = folder.0.join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let _daemon = thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let stream = stream.unwrap();
            thread::spawn(move || answer(stream, number));
        }
    });
    let mut options = Options::new(&socket);
    options.shared_memory = false;
    let client = Client::connect(&options).unwrap();
    let connection = |client: &Client| match client.get_key(b"any").unwrap() {
        Lookup::Hit(found) => String::from_utf8(found.bytes).unwrap(),
        other => panic!("{other:?}"),
    };
    let own = connection(&client);
    assert_eq!(connection(&client), own, "a connection is kept");
    let child = child_that(|| {
        let childs = connection(&client);
        childs != own && connection(&client) == childs
    });
    assert!(was_good(child));
    assert_eq!(connection(&client), own, "the parent's is as it was");
}
