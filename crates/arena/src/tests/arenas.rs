//! Two arenas under one owner.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use crate::arenas::AttachBoth;
use crate::{
    Arena, ArenaError, Arenas, CommitSlot, Geometry, Location, Lookup, Queue, Recovery, Redo, RedoEntry,
    RowParts, SHARED_TABLES, SegmentTag, ShardToken, TableId,
};

const GEOMETRY: Geometry = Geometry { memory_bytes: 4 << 20 };
const PRIVATE: TableId = TableId(7);
const SHARED: TableId = TableId(SHARED_TABLES | 7);

/// Two paths that no other test uses, removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("arenas-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn private(&self) -> PathBuf {
        self.0.join("arena")
    }

    fn shared(&self) -> PathBuf {
        self.0.join("arena.shared")
    }

    fn create(&self) -> (Arenas, Vec<ShardToken>) {
        let mut arenas = Arenas::new(Arena::create(Some(&self.private()), &GEOMETRY, 42).unwrap(), None);
        let tokens = arenas.take_tokens();
        arenas.make_shared(&self.shared(), 50, 1, 1).unwrap();
        (arenas, tokens)
    }

    /// Attaches; a test that forks beside this one holds the locks until its child has become another program.
    fn attach(&self) -> (Arenas, Recovery) {
        for _ in 0..10_000 {
            match Arenas::attach(&self.private(), Some(&self.shared()), &GEOMETRY) {
                Err(ArenaError::Locked(_)) => std::thread::yield_now(),
                Ok(AttachBoth::Warm(arenas)) => return proved(arenas),
                other => panic!("usable, not {other:?}"),
            }
        }
        panic!("the lock is never free")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Proves and settles all, as the owner does behind its start.
fn proved(mut arenas: Arenas) -> (Arenas, Recovery) {
    let tokens = arenas.take_tokens();
    while let Some(chains) = arenas.unproved() {
        for chain in chains {
            arenas.prove(&tokens[Arena::shard_of_chain(chain)], chain);
        }
    }
    assert!(arenas.is_proved());
    assert!(arenas.settle().overlapping.is_empty());
    let recovery = arenas.recovery();
    (arenas, recovery)
}

/// Writes a row that nobody finds yet.
fn write(arenas: &Arenas, table: TableId, key: &[u8], value: &[u8]) -> Location {
    let tag = SegmentTag { table, queue: Queue::Small, ttl_class: 0, schema: 1 };
    let segment = arenas.allocate(1, &tag, 0).unwrap();
    let parts = RowParts {
        table,
        multi: false,
        stale: false,
        lease: None,
        expiry: 0,
        client_flags: 0,
        cas: None,
        key,
        payload: &[value],
    };
    let location = arenas.of(segment).reserve(segment, parts.total_bytes()).unwrap();
    arenas.of(location).write_row(location, &parts);
    arenas.of(location).stamp_row(location, arenas.private().next_stamp());
    arenas.of(segment).release(segment);
    arenas.of(segment).seal(segment);
    location
}

fn publish(arenas: &Arenas, tokens: &mut [ShardToken], table: TableId, key: &[u8], location: Location) {
    let hash = arenas.of(table).hash(table, key);
    let token = &mut tokens[Arena::shard_of(hash)];
    match arenas.of(table).find(token, hash, table, key) {
        Some(found) => arenas.of(table).replace(token, found.slot, hash, table, location),
        None => drop(arenas.of(table).insert(token, hash, table, location).unwrap()),
    }
}

fn value(arenas: &Arenas, table: TableId, key: &[u8]) -> Option<Vec<u8>> {
    match arenas.of(table).lookup(arenas.of(table).hash(table, key), table, key) {
        Lookup::Hit(row) => {
            let mut out = Vec::new();
            row.copy_payload(0, row.head().payload_len, &mut out);
            assert_eq!(arenas.of(row.location()).row(row.location()).unwrap().head(), row.head());
            Some(out)
        }
        _ => None,
    }
}

#[test]
fn rows_lie_in_the_file_of_their_table() {
    let files = Scratch::new("rows");
    let (arenas, mut tokens) = files.create();
    for (table, text) in [(PRIVATE, &b"private"[..]), (SHARED, b"shared")] {
        let location = write(&arenas, table, b"key", text);
        publish(&arenas, &mut tokens, table, b"key", location);
        assert_eq!(arenas.of(location).tag(arenas.of(location).head_of(location)).table, table);
        let hash = arenas.of(table).hash(table, b"key");
        let token = &tokens[Arena::shard_of(hash)];
        let slot = arenas.of(location).find_location(token, hash, location).unwrap();
        arenas.of(slot).set_frequency(slot, 3);
        let own = arenas.of(location).rows(arenas.of(location).head_of(location), 0).next().unwrap();
        assert_eq!(own.0, location);
    }
    assert_eq!(value(&arenas, PRIVATE, b"key").as_deref(), Some(&b"private"[..]));
    assert_eq!(value(&arenas, SHARED, b"key").as_deref(), Some(&b"shared"[..]));
    assert_eq!(arenas.usage().rows, 2);
    assert_eq!(arenas.shared().unwrap().usage().rows, 1);
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(files.private()), mode(files.shared())), (0o600, 0o640));
}

#[test]
fn one_limit_holds_for_both() {
    let files = Scratch::new("limit");
    let (arenas, _) = files.create();
    let tag = |table| SegmentTag { table, queue: Queue::Small, ttl_class: 0, schema: 1 };
    let units = 4 << 20 >> 16;
    let mut taken = Vec::new();
    for at in 0..units {
        taken.push(arenas.allocate(1, &tag(if at % 2 == 0 { PRIVATE } else { SHARED }), 0).unwrap());
    }
    assert_eq!(arenas.private().free_bytes(), 0);
    assert!(arenas.allocate(1, &tag(PRIVATE), 0).is_none() && arenas.allocate(1, &tag(SHARED), 0).is_none());
    for segment in taken {
        arenas.of(segment).seal(segment);
        arenas.of(segment).recycle(segment);
    }
    // What one gave back is the other's to have, with its pages.
    for _ in 0..units {
        assert!(arenas.allocate(1, &tag(SHARED), 0).is_some());
    }
    assert!(arenas.allocate(1, &tag(SHARED), 0).is_none());
    assert!(arenas.usage().committed_bytes <= GEOMETRY.memory_bytes, "{:?}", arenas.usage());
}

/// A sealed commit of one row in each file, of which the first `done` are swapped in.
fn commit(arenas: &Arenas, tokens: &mut [ShardToken], sealed: bool, done: usize) -> (CommitSlot, Redo) {
    let tables = [PRIVATE, SHARED];
    let entries = tables.map(|table| {
        let hash = arenas.of(table).hash(table, b"key");
        let old =
            arenas.of(table).find(&tokens[Arena::shard_of(hash)], hash, table, b"key").unwrap().location;
        let new = write(arenas, table, b"key", b"new");
        let old_stamp = arenas.of(old).row(old).unwrap().head().stamp;
        RedoEntry { hash, table, new: Some(new), old: Some(old), old_stamp }
    });
    let slot = arenas.private().claim_commit().unwrap();
    let redo = arenas.private().write_redo(entries.iter().copied()).unwrap();
    if sealed {
        assert!(arenas.private().seal_commit(slot, &redo));
        for (at, entry) in entries.iter().enumerate().take(done) {
            publish(arenas, tokens, entry.table, b"key", entry.new.unwrap());
            arenas.private().redo_done(&redo, at);
        }
    }
    (slot, redo)
}

#[test]
fn a_commit_in_both_files_is_finished_in_both_or_in_none() {
    for (sealed, done) in [(false, 0), (true, 0), (true, 1), (true, 2)] {
        let files = Scratch::new(&format!("commit-{sealed}-{done}"));
        let (arenas, mut tokens) = files.create();
        for table in [PRIVATE, SHARED] {
            let location = write(&arenas, table, b"key", b"old");
            publish(&arenas, &mut tokens, table, b"key", location);
        }
        let _redo = commit(&arenas, &mut tokens, sealed, done);
        // The process ends here.
        drop(arenas);
        let expected = if sealed { &b"new"[..] } else { b"old" };
        for _ in 0..2 {
            let (again, recovery) = files.attach();
            assert_eq!(recovery.rows, 2);
            for table in [PRIVATE, SHARED] {
                assert_eq!(value(&again, table, b"key").as_deref(), Some(expected), "{sealed} {done}");
            }
        }
    }
}

#[test]
fn a_shared_file_of_another_owner_is_put_out_of_use() {
    let files = Scratch::new("owner");
    let (arenas, mut tokens) = files.create();
    let location = write(&arenas, SHARED, b"key", b"value");
    publish(&arenas, &mut tokens, SHARED, b"key", location);
    let reader = crate::Reader::open(&files.shared(), &[rustix::process::geteuid().as_raw()]).unwrap();
    assert!(reader.is_in_use() && reader.is_at_its_path());
    drop(arenas);
    std::fs::remove_file(files.private()).unwrap();
    drop(Arena::create(Some(&files.private()), &GEOMETRY, 1).unwrap());
    let (again, recovery) = files.attach();
    assert_eq!(recovery.rows, 0);
    assert!(again.shared().is_none());
    assert!(!reader.is_in_use() && !reader.is_at_its_path());
    assert!(crate::Reader::open(&files.private(), &[0, rustix::process::geteuid().as_raw()]).is_ok());
    again.make_shared(&files.shared(), 60, 2, 1).unwrap();
    assert_eq!(value(&again, SHARED, b"key"), None);
}

#[test]
fn who_waits_is_woken_and_who_looked_too_early_does_not_sleep() {
    let files = Scratch::new("wait");
    let (arenas, _) = files.create();
    let reader = crate::Reader::open(&files.shared(), &[rustix::process::geteuid().as_raw()]).unwrap();
    let hash = arenas.of(SHARED).hash(SHARED, b"key");
    let long = std::time::Duration::from_mins(2);
    let early = reader.ticket(hash);
    assert!(!reader.wait(early, std::time::Duration::from_millis(1)), "nobody woke it");
    arenas.wake(hash);
    assert!(reader.wait(early, long), "the word is another one");
    // Three sleep at most until the word changes, however the threads run.
    let ticket = reader.ticket(hash);
    std::thread::scope(|scope| {
        let waiters = [0, 1, 2].map(|_| scope.spawn(|| reader.wait(ticket, long)));
        arenas.wake_all();
        for waiter in waiters {
            assert!(waiter.join().unwrap());
        }
    });
}

#[test]
fn what_is_not_ours_is_neither_followed_nor_removed() {
    let files = Scratch::new("squat");
    let other = files.0.join("other");
    std::fs::write(&other, "somebody's").unwrap();
    symlink(&other, files.shared()).unwrap();
    assert!(matches!(Arenas::discard_shared(&files.shared()), Err(ArenaError::InTheWay { .. })));
    let own = [rustix::process::geteuid().as_raw()];
    assert!(matches!(crate::Reader::open(&files.shared(), &own), Err(ArenaError::Refused { .. })));
    assert_eq!(std::fs::read(&other).unwrap(), b"somebody's");
    std::fs::remove_file(files.shared()).unwrap();
    std::fs::create_dir(files.shared()).unwrap();
    assert!(Arenas::discard_shared(&files.shared()).is_err());
    std::fs::remove_dir(files.shared()).unwrap();
    // A file of ours that is no arena is one that an earlier version may have left.
    std::fs::write(files.shared(), "of another layout").unwrap();
    Arenas::discard_shared(&files.shared()).unwrap();
    assert!(!files.shared().exists());
}
