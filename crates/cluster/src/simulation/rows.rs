//! Rows that travel, in the same worlds: caches write few keys at once, by chance, on a bus that loses, repeats and
//! cuts messages. A fresh cache has no row that is older than one that was acknowledged before; and when nobody writes
//! any more, all caches that have a row of a key have the same one.

use std::collections::HashMap;

use engine::{Ends, KeyChange, Operation, Replica, Said, TableName, Value};

use super::cache::Cache;
use super::world::World;
use super::{MAX_LAG_NS, Mistake, heal, seed, told};
use crate::follow::Numbered;
use crate::rejoin::Check;
use crate::wire::{Body, Message};

pub(super) const KEYS: u16 = 12;
/// Steps in which much goes wrong, and how often they come.
const STEPS: usize = 200;
const PHASES: usize = 5;
pub(super) const NAME: &str = "sess";

/// What clients wrote.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// By their number, in the order in which they began.
    all: Vec<Write>,
    removals: Vec<Removal>,
}

#[derive(Debug)]
struct Write {
    /// The cache where that was.
    node: u64,
    key: u16,
    /// The stream has it, or had it.
    is_stored: bool,
    began: u64,
    acknowledged: Option<u64>,
    told_by: String,
    is_lost: bool,
}

/// A client removed rows.
#[derive(Debug)]
struct Removal {
    /// The cache where that was.
    node: u64,
    keys: Keys,
    began: u64,
    acknowledged: Option<u64>,
    told_by: String,
    is_lost: bool,
}

/// Which rows are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    One(u16),
    /// Those that a condition chooses.
    Odd,
    All,
}

impl Keys {
    fn has(self, key: u16) -> bool {
        match self {
            Self::One(own) => own == key,
            Self::Odd => key % 2 == 1,
            Self::All => true,
        }
    }

    /// Those that an operation removes where it is told.
    fn of(operation: &Operation) -> Option<Self> {
        match operation {
            Operation::Key { key, change: KeyChange::Delete, .. } => Some(Self::One(key_of(key))),
            Operation::Statement { .. } => Some(Self::Odd),
            Operation::Whole { .. } => Some(Self::All),
            Operation::Key { .. } | Operation::Row { .. } => None,
        }
    }
}

impl Written {
    /// A removal of a row that began after the row was acknowledged, and was acknowledged itself before a moment.
    fn removed_since(&self, own: &Write, fresh: u64) -> Option<&Removal> {
        let when = own.acknowledged.filter(|_| !own.is_lost)?;
        self.removals.iter().rev().take_while(|removal| removal.began > when).find(|removal| {
            removal.keys.has(own.key)
                && !removal.is_lost
                && removal.acknowledged.is_some_and(|acknowledged| acknowledged < fresh)
        })
    }
}

pub(super) fn table() -> TableName {
    TableName { name: NAME.into(), likeness: 1 }
}

/// A row that some write has made.
pub(super) fn replica(number: usize) -> Replica {
    let values = vec![Value::Integer(i64::try_from(number).unwrap())];
    Replica { values, client_flags: 0, ends: Ends::Table, stale: false }
}

fn row(key: u16, number: usize) -> Operation {
    Operation::Row { table: table(), key: key.to_le_bytes().into(), row: Box::new(replica(number)) }
}

/// A statement whose condition chooses rows with odd keys.
fn statement() -> Operation {
    let (text, values, types) = ("DELETE FROM sess WHERE id % 2 = 1".into(), Vec::new(), Box::default());
    let said = Said { text, values, types, zone: None, like_of_sqlite: false };
    Operation::Statement { table: table(), said: Box::new(said) }
}

pub(super) fn number_of(row: &Replica) -> usize {
    let Value::Integer(number) = row.values[0] else { panic!("it is a number") };
    usize::try_from(number).unwrap()
}

pub(super) fn key_of(key: &[u8]) -> u16 {
    u16::from_le_bytes([key[0], key[1]])
}

impl Cache {
    /// A message of its own came back; `again`: it had come back before.
    pub(super) fn hear_own_rows(&mut self, operations: &[Operation], again: bool) {
        for operation in operations {
            if !again {
                self.outbox.note_back(operation);
            }
            self.apply_rows(std::slice::from_ref(operation), true);
        }
    }

    /// Does what a message says of rows; `own`: it came back.
    pub(super) fn apply_rows(&mut self, operations: &[Operation], own: bool) {
        for operation in operations.iter().filter(|operation| &*operation.table().name == NAME) {
            match operation {
                Operation::Row { key, row, .. } if !own && self.may_change(key) => {
                    if let Some(before) = self.held.insert(key_of(key), number_of(row)) {
                        self.replaced.push((before, number_of(row)));
                    }
                }
                Operation::Key { key, change, .. }
                    if (!own || *change == KeyChange::Withdraw) && self.may_change(key) =>
                {
                    self.held.remove(&key_of(key));
                }
                Operation::Whole { .. } | Operation::Statement { .. } => {
                    let removed = Keys::of(operation).unwrap();
                    let held = std::mem::take(&mut self.held);
                    let stays =
                        |(key, _): &(u16, usize)| !removed.has(*key) || !self.may_change(&key.to_le_bytes());
                    self.held = held.into_iter().filter(stays).collect();
                }
                _ => {}
            }
        }
    }

    fn may_change(&self, key: &[u8]) -> bool {
        self.mistake == Some(Mistake::SparesNothing) || !self.outbox.is_under_way(NAME, Some(key))
    }
}

impl World {
    /// A client writes a row, deletes one, or more.
    pub(super) fn write_row(&mut self, at: usize) {
        let (key, what) = (self.random.u16(..KEYS), self.random.u32(..60));
        match what {
            0..16 => self.put_row(at, key),
            16..19 => self.remove_rows(at, Keys::One(key)),
            19 if self.chance(4) => self.remove_rows(at, Keys::All),
            19 => self.remove_rows(at, Keys::Odd),
            _ => {}
        }
    }

    pub(super) fn put_row(&mut self, at: usize, key: u16) {
        let (number, now) = (self.written.all.len(), self.now);
        let cache = &mut self.caches[at];
        self.written.all.push(Write {
            node: cache.member.node(),
            key,
            is_stored: false,
            began: now,
            acknowledged: None,
            told_by: String::new(),
            is_lost: false,
        });
        cache.held.insert(key, number);
        cache.outbox.push_row(row(key, number), now);
    }

    fn remove_rows(&mut self, at: usize, keys: Keys) {
        let (cache, now) = (&mut self.caches[at], self.now);
        let removal = Removal {
            node: cache.member.node(),
            keys,
            began: now,
            acknowledged: None,
            told_by: String::new(),
            is_lost: false,
        };
        self.written.removals.push(removal);
        let delete = |key: u16| {
            let key = key.to_le_bytes().into();
            Operation::Key { table: table(), key, change: KeyChange::Delete }
        };
        match keys {
            Keys::One(key) => cache.outbox.push_row(delete(key), now),
            Keys::All => cache.outbox.push_row(Operation::Whole { table: table() }, now),
            // First what it chooses, and then what became of each here.
            Keys::Odd => {
                cache.outbox.push(vec![statement()], None, now);
                for key in cache.held.keys().copied().filter(|key| keys.has(*key)) {
                    cache.outbox.push_row(delete(key), now);
                }
            }
        }
        cache.held.retain(|key, _| !keys.has(*key));
    }

    /// The stream has the rows in this message.
    pub(super) fn note_stored(&mut self, bytes: &[u8]) {
        let Ok(Message { body: Body::Operations(operations), .. }) = Message::decode(bytes) else { return };
        for operation in operations {
            if let Operation::Row { row, .. } = operation {
                self.written.all[number_of(&row)].is_stored = true;
            }
        }
    }

    /// The clients are answered whose rows are in this message.
    pub(super) fn acknowledge_rows(&mut self, name: &str, bytes: &[u8]) {
        let Ok(Message { node, body: Body::Operations(operations), .. }) = Message::decode(bytes) else {
            return;
        };
        for operation in operations.iter().filter(|operation| &*operation.table().name == NAME) {
            if let Operation::Row { row, .. } = operation {
                let write = &mut self.written.all[number_of(row)];
                write.acknowledged.get_or_insert(self.now);
                name.clone_into(&mut write.told_by);
            } else if let Some(keys) = Keys::of(operation) {
                self.acknowledge_removal(node, keys, name);
            }
        }
    }

    /// Of those that are alike, the first: what a later one says an earlier one says, too.
    fn acknowledge_removal(&mut self, node: u64, keys: Keys, name: &str) {
        let is_it = |own: &&mut Removal| own.node == node && own.keys == keys && own.acknowledged.is_none();
        if let Some(own) = self.written.removals.iter_mut().find(is_it) {
            own.acknowledged = Some(self.now);
            name.clone_into(&mut own.told_by);
        }
    }

    pub(super) fn lose_rows(&mut self, names: &[String]) {
        for write in self.written.all.iter_mut().filter(|write| names.contains(&write.told_by)) {
            write.is_lost = true;
        }
        for removal in self.written.removals.iter_mut().filter(|removal| names.contains(&removal.told_by)) {
            removal.is_lost = true;
        }
    }

    /// Holds the rows of a cache against what it promises.
    pub(super) fn check_rows(&mut self, at: usize) {
        let replaced = std::mem::take(&mut self.caches[at].replaced);
        let cache = &self.caches[at];
        let Some(fresh) = cache.member.follower().fresh_ns() else { return };
        if cache.doubtful_ns.is_some() || self.now - fresh > MAX_LAG_NS {
            return;
        }
        let newer = |key: u16, since: u64| {
            self.written.all.iter().enumerate().rev().find(|(_, write)| {
                let done = write.acknowledged.is_some_and(|when| when < fresh);
                write.key == key && done && !write.is_lost && write.began > since
            })
        };
        for (&key, &number) in &cache.held {
            self.checks += 1;
            let own = &self.written.all[number];
            if let Some(when) = own.acknowledged.filter(|_| !own.is_lost)
                && let Some((other, _)) = newer(key, when)
            {
                self.violation.get_or_insert_with(|| {
                    format!("cache {at} has write {number} of key {key}, and write {other} began after it was acknowledged and was, too")
                });
            }
            if !own.is_stored && own.node != cache.member.node() {
                self.violation.get_or_insert_with(|| {
                    format!("cache {at} has write {number} of key {key}, which only another one knows")
                });
            }
            if let Some(removal) = self.written.removed_since(own, fresh) {
                let removed = format!("{removal:?}");
                self.violation.get_or_insert_with(|| {
                    format!("cache {at} has write {number} of key {key}, {own:?}, and is fresh since {fresh}: {removed}")
                });
            }
        }
        self.check_replaced(at, &replaced);
    }

    /// No row takes the place of one that was written after it was acknowledged.
    fn check_replaced(&mut self, at: usize, replaced: &[(usize, usize)]) {
        for &(before, after) in replaced {
            let (old, new) = (&self.written.all[before], &self.written.all[after]);
            if new.acknowledged.is_some_and(|when| when < old.began) && !new.is_lost && !old.is_lost {
                let key = old.key;
                self.violation.get_or_insert_with(|| {
                    format!(
                        "in cache {at} write {after} of key {key} took the place of the later one {before}"
                    )
                });
            }
        }
    }

    /// Nobody writes any more: who has a row has the one that the others have.
    pub(super) fn check_equal(&mut self) {
        let mut first: HashMap<u16, (usize, usize)> = HashMap::new();
        for (at, cache) in self.caches.iter().enumerate() {
            assert!(!cache.outbox.is_under_way(NAME, None), "cache {at} waits for what it told");
            for (&key, &number) in &cache.held {
                let &mut (other, there) = first.entry(key).or_insert((at, number));
                if there != number {
                    self.violation.get_or_insert_with(|| {
                        format!(
                            "of key {key} cache {other} has write {there}, and cache {at} has write {number}"
                        )
                    });
                }
            }
        }
    }
}

/// Again and again clients write while much goes wrong, and then nobody writes and nothing goes wrong. Returns how many
/// rows there were each time then, all together.
fn run(seed: u64, mistake: Option<Mistake>) -> (World, usize) {
    let (mut world, mut held) = (World::new(seed, Numbered::OneByOne, 5, mistake), 0);
    world.follows_rows = true;
    for _ in 0..PHASES {
        world.writes_rows = true;
        for _ in 0..STEPS {
            world.step(true);
            if world.violation.is_some() {
                return (world, held);
            }
        }
        world.writes_rows = false;
        heal(&mut world);
        world.check_equal();
        if world.violation.is_some() {
            return (world, held);
        }
        held += world.caches.iter().map(|cache| cache.held.len()).sum::<usize>();
    }
    (world, held)
}

#[test]
fn caches_come_to_the_same_rows() {
    let seed = seed();
    let (mut checks, mut held, mut faults) = (0, 0, 0);
    for round in 0..told("ROUNDS").unwrap_or(8) {
        let (world, rows) = run(seed.wrapping_add(round), None);
        assert_eq!(world.violation, None, "SEED={} {:?}", seed.wrapping_add(round), world.faults);
        checks += world.checks;
        held += rows;
        faults += world.faults.values().sum::<u64>();
    }
    println!("{checks} checks, {held} rows in the end, {faults} faults");
    assert!(checks > 50_000 && held > 100 && faults > 100, "{checks} {held} {faults}");
}

/// Without faults every cache has every row.
#[test]
fn without_faults_all_caches_have_all_rows() {
    let mut world = World::new(seed(), Numbered::OneByOne, 5, None);
    (0..100).for_each(|_| world.step(false));
    world.writes_rows = true;
    (0..1_000).for_each(|_| world.step(false));
    world.writes_rows = false;
    world.follows_rows = true;
    (0..100).for_each(|_| world.step(false));
    world.check_equal();
    assert_eq!(world.violation, None);
    let [first, others @ ..] = &world.caches[..] else { panic!("there are five") };
    assert!(!first.held.is_empty() && others.iter().all(|cache| cache.held == first.held));
}

#[test]
fn mistakes_with_rows_are_found() {
    // Each with a world shortly before the first in which it is found.
    for (mistake, first) in
        [(Mistake::SparesNothing, 1), (Mistake::TrustsAfterBreaks, 1), (Mistake::Takes(Check::History), 255)]
    {
        let found = (first..first + 300).find(|seed| run(*seed, Some(mistake)).0.violation.is_some());
        println!("{mistake:?}: found in world {found:?}");
        assert!(found.is_some(), "{mistake:?} is not found");
    }
}
