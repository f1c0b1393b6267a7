//! Death after every single store: recovery finds, for each key, the value before or after the operation in
//! flight, and every finished operation whole.

use super::{Rig, TABLE, Value, in_place, seeded, warm};
use crate::{Arena, CommitState, Image, RedoEntry, RowParts, TableId};

/// A key and the value it must have after recovery.
type Expected = (Vec<u8>, Option<Value>);

/// What recovery may find: per key, the values allowed.
struct Allowed {
    before: Vec<Expected>,
    after: Vec<Expected>,
}

impl Allowed {
    fn check(&self, rig: &Rig, context: &str) {
        for ((key, before), (_, after)) in self.before.iter().zip(&self.after) {
            let found = rig.get(TABLE, key);
            assert!(
                found == *before || found == *after,
                "{context}: key {:?} is {found:?}, neither {before:?} nor {after:?}",
                String::from_utf8_lossy(key)
            );
        }
    }

    /// Whether the rig shows everything as after the operation, or everything as before.
    fn is_whole(&self, rig: &Rig) -> bool {
        let shows = |side: &[Expected]| side.iter().all(|(key, value)| rig.get(TABLE, key) == *value);
        shows(&self.before) || shows(&self.after)
    }
}

fn snapshot(rig: &Rig, keys: &[Vec<u8>]) -> Vec<Expected> {
    keys.iter().map(|key| (key.clone(), rig.get(TABLE, key))).collect()
}

/// Runs an operation and kills the process after each of its stores; returns how many there were.
fn kill_after_each_store(
    name: &str,
    rig: &mut Rig,
    keys: &[Vec<u8>],
    whole: bool,
    operation: impl FnOnce(&mut Rig),
) -> usize {
    let mut image = rig.arena.image();
    let before = snapshot(rig, keys);
    rig.arena.start_recording();
    operation(rig);
    let log = rig.arena.stop_recording();
    let allowed = Allowed { before, after: snapshot(rig, keys) };
    for (stores, store) in [None].into_iter().chain(log.iter().map(Some)).enumerate() {
        if let Some((word, value)) = store {
            image.store(*word, *value);
        }
        die(&image, &allowed, whole, &format!("{name} after {stores} of {} stores", log.len()));
    }
    // The last image is the file as it is.
    let (last, _) = warm(&image);
    let last = Rig::over(last);
    for (key, value) in &allowed.after {
        assert_eq!(last.get(TABLE, key), *value, "{name}, finished");
    }
    log.len()
}

fn die(image: &Image, allowed: &Allowed, whole: bool, context: &str) {
    let (arena, recovery) = warm(image);
    assert_eq!(recovery.dropped, 0, "{context}: nothing was torn that anybody could reach");
    let stamp = arena.last_stamp();
    let mut rig = Rig::over(arena);
    allowed.check(&rig, context);
    assert!(!whole || allowed.is_whole(&rig), "{context}: half of a commit");
    // It serves: a write, a further death, another recovery.
    assert!(rig.put(TABLE, b"later", &Value::plain(b"life goes on")), "{context}");
    assert!(rig.arena.last_stamp() > stamp);
    let (arena, recovery) = warm(&rig.arena.image());
    assert_eq!(recovery.dropped, 0, "{context}");
    let rig = Rig::over(arena);
    allowed.check(&rig, context);
    assert!(!whole || allowed.is_whole(&rig), "{context}: half of a commit");
    assert_eq!(rig.get(TABLE, b"later"), Some(Value::plain(b"life goes on")));
}

fn key(i: u32) -> Vec<u8> {
    format!("key-{i}").into_bytes()
}

fn filled(memory_bytes: u64, rows: u32) -> (Rig, Vec<Vec<u8>>) {
    let mut rig = Rig::new(memory_bytes);
    let keys: Vec<_> = (0..rows).map(key).collect();
    for (i, key) in keys.iter().enumerate() {
        let value = Value { expiry: i as u32 % 3, ..Value::plain(format!("value {i}").as_bytes()) };
        assert!(rig.put(TABLE, key, &value));
    }
    (rig, keys)
}

#[test]
fn put_replace_delete_touch() {
    let (mut rig, mut keys) = filled(1 << 20, 20);
    keys.push(b"new".to_vec());
    let large = Value { client_flags: 9, cas: Some(77), ..Value::plain(&[b'x'; 500]) };
    kill_after_each_store("put", &mut rig, &keys, true, |rig| assert!(rig.put(TABLE, b"new", &large)));
    let other = Value { expiry: 1234, ..Value::plain(b"other") };
    kill_after_each_store("replace", &mut rig, &keys, true, |rig| assert!(rig.put(TABLE, &key(3), &other)));
    kill_after_each_store("touch", &mut rig, &keys, true, |rig| {
        let entry = rig.find(TABLE, &key(3)).unwrap();
        rig.arena.set_expiry(entry.location, 5678);
    });
    kill_after_each_store("delete", &mut rig, &keys, true, |rig| assert!(rig.delete(TABLE, &key(4))));
    keys.push(b"huge".to_vec());
    let huge = Value::plain(&[b'y'; 2100]);
    kill_after_each_store("put of a run", &mut rig, &keys, true, |rig| {
        assert!(rig.put(TABLE, b"huge", &huge));
    });
    let mut random = seeded("in_place");
    keys.push(b"landed".to_vec());
    let come = Value::plain(&[7; 300]);
    kill_after_each_store("a value that comes in pieces", &mut rig, &keys, true, |rig| {
        let mut in_place = in_place::begin(rig, b"landed", b"", &come);
        in_place::bring(&mut random, &rig.arena, &mut in_place, &come.payload);
        in_place::publish(rig, b"landed", &in_place);
    });
    kill_after_each_store("filler", &mut rig, &keys, true, |rig| {
        let location = rig.reserve(64).unwrap();
        rig.arena.write_filler(location, 64);
        rig.arena.release(rig.arena.head_of(location));
    });
}

#[test]
fn recycle_and_reuse() {
    let (mut rig, keys) = filled(256 << 10, 40);
    // Eviction forgets its rows one by one; each is there whole or gone.
    kill_after_each_store("recycle", &mut rig, &keys, false, |rig| assert_eq!(rig.evict().len(), 40));
    kill_after_each_store("reuse", &mut rig, &keys, true, |rig| {
        assert!(rig.put(TABLE, &key(0), &Value::plain(b"into recycled memory")));
    });
}

#[test]
fn reinsertion() {
    let (mut rig, keys) = filled(256 << 10, 12);
    kill_after_each_store("reinsertion", &mut rig, &keys, true, |rig| {
        let first = rig.arena.segments()[0];
        rig.arena.seal(first);
        rig.open = None;
        for key in &keys {
            let (entry, value) = (rig.find(TABLE, key).unwrap(), rig.get(TABLE, key).unwrap());
            let stamp = rig.arena.row(entry.location).unwrap().head().stamp;
            let (location, _) = rig.write(TABLE, key, &value).unwrap();
            rig.arena.stamp_row(location, stamp);
            let hash = rig.arena.hash(TABLE, key);
            rig.arena.replace(&mut rig.tokens[Arena::shard_of(hash)], entry.slot, hash, TABLE, location);
            rig.arena.release(rig.arena.head_of(location));
        }
        rig.arena.recycle(first);
    });
}

#[test]
fn split() {
    let mut rig = Rig::new(1 << 20);
    let mut keys = Vec::new();
    // Well above the load at which a split is due, so that chains have overflow buckets to divide.
    for i in 0..11_000 {
        rig.put(TABLE, &key(i), &Value::plain(b""));
    }
    let shape = |rig: &Rig| rig.arena.scan_shape().groups;
    let before = shape(&rig);
    let mut rng = super::seeded("split");
    let mut stores = 0;
    for round in 0..40 {
        let shard = rig.arena.split_due().unwrap();
        keys.clear();
        keys.extend((0..11_000).map(key).filter(|key| {
            // The keys of the bucket that splits, and of its neighbours.
            rig.arena.hash(TABLE, key).0 % 1024 / 2 == shard as u64 / 2
        }));
        // Deaths in a few rounds are enough: each costs a recovery of all rows.
        if round % 20 == rng.usize(0..20) % 20 || round == 39 {
            stores += kill_after_each_store("split", &mut rig, &keys, true, |rig| {
                assert!(rig.arena.split(&mut rig.tokens[shard]));
            });
        } else {
            assert!(rig.arena.split(&mut rig.tokens[shard]));
        }
    }
    assert!(stores > 10 && shape(&rig) == before);
}

#[test]
fn insert_into_a_full_chain() {
    let mut rig = Rig::new(1 << 20);
    let chain: Vec<Vec<u8>> =
        (0..).map(key).filter(|key| rig.arena.hash(TABLE, key).0 % 1024 == 5).take(16).collect();
    for key in &chain[..7] {
        rig.put(TABLE, key, &Value::plain(b"v"));
    }
    let stores = kill_after_each_store("overflow", &mut rig, &chain, true, |rig| {
        rig.put(TABLE, &chain[7], &Value::plain(b"v"));
    });
    assert!(stores > 10);
    for key in &chain[8..14] {
        rig.put(TABLE, key, &Value::plain(b"v"));
    }
    kill_after_each_store("second overflow", &mut rig, &chain, true, |rig| {
        rig.put(TABLE, &chain[14], &Value::plain(b"v"));
    });
}

/// A commit of many rows: replaces, inserts and deletes, sealed by one store.
#[test]
fn commit_of_many_rows() {
    let (mut rig, mut keys) = filled(1 << 20, 10);
    keys.extend((100..104).map(key));
    let operation = |rig: &mut Rig| {
        let slot = rig.arena.claim_commit().unwrap();
        let stamp = rig.arena.next_stamp();
        let mut entries = Vec::new();
        for i in [0, 1, 2, 100, 101, 102, 103] {
            let payload: &[u8] = b"committed";
            let parts = RowParts {
                table: TABLE,
                multi: true,
                stale: false,
                lease: None,
                expiry: 0,
                client_flags: 0,
                cas: None,
                key: &key(i),
                payload: &[payload],
            };
            let location = rig.reserve(parts.total_bytes()).unwrap();
            rig.arena.write_row(location, &parts);
            rig.arena.stamp_row(location, stamp);
            entries.push(entry_of(rig, &key(i), Some(location)));
        }
        for i in [5, 6] {
            entries.push(entry_of(rig, &key(i), None));
        }
        let redo = rig.arena.write_redo(entries.iter().copied()).unwrap();
        assert!(rig.arena.seal_commit(slot, &redo));
        assert!(!rig.arena.doom(slot));
        assert_eq!(rig.arena.commit_state(slot), CommitState::Committed);
        for (index, entry) in entries.iter().enumerate() {
            let old = entry.old.and_then(|old| {
                rig.arena.find_location(&rig.tokens[Arena::shard_of(entry.hash)], entry.hash, old)
            });
            let token = &mut rig.tokens[Arena::shard_of(entry.hash)];
            match (old, entry.new) {
                (Some(slot), Some(new)) => rig.arena.replace(token, slot, entry.hash, TABLE, new),
                (None, Some(new)) => drop(rig.arena.insert(token, entry.hash, TABLE, new).unwrap()),
                (Some(slot), None) => rig.arena.remove(token, slot),
                (None, None) => {}
            }
            rig.arena.redo_done(&redo, index);
            if let Some(new) = entry.new {
                rig.arena.release(rig.arena.head_of(new));
            }
        }
        // Done and written over by somebody else: recovery must not put the commit's version back.
        rig.arena.finish_commit(slot);
        rig.arena.free_redo(redo);
        assert_eq!(rig.arena.commit_state(slot), CommitState::Free);
    };
    let stores = kill_after_each_store("commit", &mut rig, &keys, true, operation);
    assert!(stores > 100, "{stores} stores");
}

fn entry_of(rig: &Rig, key: &[u8], new: Option<crate::Location>) -> RedoEntry {
    let old = rig.find(TABLE, key).map(|entry| entry.location);
    let old_stamp = old.map_or(0, |old| rig.arena.row(old).unwrap().head().stamp);
    RedoEntry { hash: rig.arena.hash(TABLE, key), table: TABLE, new, old, old_stamp }
}

/// A row that a commit swapped in and that was deleted since stays deleted, although the commit is not finished.
#[test]
fn what_came_after_a_swap_stays() {
    let (mut rig, keys) = filled(1 << 20, 4);
    let (location, _) = rig.write(TABLE, &key(0), &Value::plain(b"committed")).unwrap();
    let entries = [entry_of(&rig, &key(0), Some(location)), entry_of(&rig, &key(1), None)];
    let redo = rig.arena.write_redo(entries.iter().copied()).unwrap();
    let slot = rig.arena.claim_commit().unwrap();
    assert!(rig.arena.seal_commit(slot, &redo));
    let entry = rig.find(TABLE, &key(0)).unwrap();
    let hash = entries[0].hash;
    rig.arena.replace(&mut rig.tokens[Arena::shard_of(hash)], entry.slot, hash, TABLE, location);
    rig.arena.redo_done(&redo, 0);
    assert!(rig.delete(TABLE, &key(0)));
    let (again, recovery) = warm(&rig.arena.image());
    let again = Rig::over(again);
    assert_eq!(recovery.redone, 1);
    assert_eq!(again.get(TABLE, &key(0)), None);
    assert_eq!(again.get(TABLE, &key(1)), None, "the deletion was not swapped in, and is redone");
    assert_eq!(again.get(TABLE, &keys[2]), rig.get(TABLE, &keys[2]));
}

/// A commit of thousands of rows: its redo record is a chain of segments.
#[test]
fn a_long_redo_record_is_a_chain() {
    let mut rig = Rig::new(8 << 20);
    let mut entries = Vec::new();
    for i in 0..4000 {
        let (location, _) = rig.write(TABLE, &key(i), &Value::plain(b"v")).unwrap();
        entries.push(entry_of(&rig, &key(i), Some(location)));
    }
    let redo = rig.arena.write_redo(entries.iter().copied()).unwrap();
    let slot = rig.arena.claim_commit().unwrap();
    let unsealed = rig.arena.image();
    assert!(rig.arena.seal_commit(slot, &redo));
    for index in 0..1500 {
        rig.arena.redo_done(&redo, index);
    }
    let (none, recovery) = warm(&unsealed);
    assert_eq!((recovery.rows, recovery.redone), (0, 0));
    assert!(none.segments().is_empty(), "rows without a commit and their redo record are freed");
    let (again, recovery) = warm(&rig.arena.image());
    assert_eq!((recovery.rows, recovery.redone), (2500, 2500));
    assert!(Rig::over(again).get(TABLE, &key(3999)).is_some());
}

#[test]
fn staging_can_be_doomed_and_staged_again() {
    let rig = Rig::new(1 << 20);
    let slot = rig.arena.claim_commit().unwrap();
    assert!(rig.arena.doom(slot) && !rig.arena.doom(slot));
    let redo = rig.arena.write_redo(std::iter::empty()).unwrap();
    assert!(!rig.arena.seal_commit(slot, &redo));
    rig.arena.reset_commit(slot);
    assert_eq!(rig.arena.commit_state(slot), CommitState::Staging);
    assert!(rig.arena.seal_commit(slot, &redo));
    rig.arena.finish_commit(slot);
    rig.arena.free_redo(redo);
    let all: Vec<_> = std::iter::from_fn(|| rig.arena.claim_commit()).collect();
    assert_eq!(all.len(), crate::COMMIT_SLOTS);
    let (again, _) = warm(&rig.arena.image());
    assert!(again.claim_commit().is_some(), "what staged is void after a death");
}

#[test]
fn definitions_flushes_and_checkpoints() {
    let (mut rig, keys) = filled(1 << 20, 3);
    assert_eq!(rig.arena.catalogue(), None);
    for definitions in [&b"first definitions"[..], b"second", b"", &[7; 3000]] {
        let before = rig.arena.catalogue();
        let mut image = rig.arena.image();
        rig.arena.start_recording();
        rig.arena.set_catalogue(definitions).unwrap();
        let log = rig.arena.stop_recording();
        for (place, (word, value)) in log.iter().enumerate() {
            image.store(*word, *value);
            let found = warm(&image).0.catalogue();
            let last = place + 1 == log.len();
            assert!(if last { found.as_deref() == Some(definitions) } else { found == before });
        }
    }
    assert!(rig.arena.set_catalogue(&vec![0; crate::MAX_CATALOGUE_BYTES + 1]).is_err());
    kill_after_each_store("flush", &mut rig, &keys, true, |rig| {
        let stamp = rig.arena.next_stamp();
        rig.arena.set_dead_below(TABLE, stamp);
        rig.arena.set_dead_below(TABLE, 1);
    });
    let (again, _) = warm(&rig.arena.image());
    assert_eq!(again.dead_below(TABLE), rig.arena.dead_below(TABLE));
    assert_eq!(again.dead_below(TableId(8)), 0);
    kill_after_each_store("checkpoint", &mut rig, &keys, true, |rig| {
        rig.arena.checkpoints().record(5, rig.arena.last_stamp());
        rig.arena.heartbeat(99);
    });
}

#[test]
fn a_range_of_stamps() {
    let (mut rig, keys) = filled(1 << 20, 3);
    kill_after_each_store("range of stamps", &mut rig, &keys, true, |rig| {
        for _ in 0..=1 << 20 {
            rig.arena.next_stamp();
        }
        assert!(rig.put(TABLE, &key(0), &Value::plain(b"of the next range")));
    });
}
