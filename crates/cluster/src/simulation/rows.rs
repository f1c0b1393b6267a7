//! Rows that travel, in the same worlds: caches write few keys at once, by chance, on a bus that loses, repeats and
//! cuts messages. A fresh cache has no row that is older than one that was acknowledged before; and when nobody writes
//! any more, all caches that have a row of a key have the same one.

use std::collections::HashMap;

use engine::{Ends, KeyChange, Operation, Replica, TableName, Value};

use super::cache::Cache;
use super::world::World;
use super::{MAX_LAG_NS, Mistake, heal, seed, told};
use crate::follow::Numbered;
use crate::wire::{Body, Message};

const KEYS: u16 = 12;
/// Steps in which much goes wrong, and how often they come.
const STEPS: usize = 200;
const PHASES: usize = 5;
const NAME: &str = "sess";

/// What clients wrote.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// By their number, in the order in which they began.
    all: Vec<Write>,
}

#[derive(Debug)]
struct Write {
    key: u16,
    began: u64,
    acknowledged: Option<u64>,
    told_by: String,
    is_lost: bool,
}

fn table() -> TableName {
    TableName { name: NAME.into(), likeness: 1 }
}

fn row(key: u16, number: usize) -> Operation {
    let values = vec![Value::Integer(i64::try_from(number).unwrap())];
    let row = Replica { values, client_flags: 0, ends: Ends::Table, stale: false };
    Operation::Row { table: table(), key: key.to_le_bytes().into(), row: Box::new(row) }
}

fn number_of(row: &Replica) -> usize {
    let Value::Integer(number) = row.values[0] else { panic!("it is a number") };
    usize::try_from(number).unwrap()
}

fn key_of(key: &[u8]) -> u16 {
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
                    self.held.insert(key_of(key), number_of(row));
                }
                Operation::Key { key, change, .. }
                    if (!own || *change == KeyChange::Withdraw) && self.may_change(key) =>
                {
                    self.held.remove(&key_of(key));
                }
                Operation::Whole { .. } => {
                    let held = std::mem::take(&mut self.held);
                    let stays = |(key, _): &(u16, usize)| !self.may_change(&key.to_le_bytes());
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
    /// A client writes a row, deletes one, or all.
    pub(super) fn write_row(&mut self, at: usize) {
        let (key, what, now) = (self.random.u16(..KEYS), self.random.u32(..60), self.now);
        let cache = &mut self.caches[at];
        let bytes = key.to_le_bytes().into();
        let operation = match what {
            0..16 => {
                let number = self.written.all.len();
                let write =
                    Write { key, began: now, acknowledged: None, told_by: String::new(), is_lost: false };
                self.written.all.push(write);
                cache.held.insert(key, number);
                row(key, number)
            }
            16..19 => {
                cache.held.remove(&key);
                Operation::Key { table: table(), key: bytes, change: KeyChange::Delete }
            }
            19 => {
                cache.held.clear();
                Operation::Whole { table: table() }
            }
            _ => return,
        };
        cache.outbox.push_row(operation, now);
    }

    /// The clients are answered whose rows are in this message.
    pub(super) fn acknowledge_rows(&mut self, name: &str, bytes: &[u8]) {
        let Ok(Message { body: Body::Operations(operations), .. }) = Message::decode(bytes) else { return };
        for operation in operations {
            if let Operation::Row { row, .. } = operation {
                let write = &mut self.written.all[number_of(&row)];
                write.acknowledged.get_or_insert(self.now);
                name.clone_into(&mut write.told_by);
            }
        }
    }

    pub(super) fn lose_rows(&mut self, names: &[String]) {
        for write in self.written.all.iter_mut().filter(|write| names.contains(&write.told_by)) {
            write.is_lost = true;
        }
    }

    /// Holds the rows of a cache against what it promises.
    pub(super) fn check_rows(&mut self, at: usize) {
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
        }
    }

    /// Nobody writes any more: who has a row has the one that the others have.
    fn check_equal(&mut self) {
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
    for mistake in [Mistake::SparesNothing, Mistake::TrustsAfterBreaks] {
        let found = (1..60).find(|seed| run(*seed, Some(mistake)).0.violation.is_some());
        println!("{mistake:?}: found in world {found:?}");
        assert!(found.is_some(), "{mistake:?} is not found");
    }
}
