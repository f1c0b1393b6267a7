//! The application's side: asks, fills, expires, and counts.

use std::io::Write as _;

use hashbrown::HashSet;

use crate::client::Client;
use crate::clock;
use crate::failure::{Failure, Result};
use crate::histogram::Histogram;
use crate::trace::Object;

use super::model::{Miss, Model};

/// Expires the parts of one object.
const EXPIRE_OBJECT: &str = "DELETE FROM orm WHERE type = ? AND id = ?";
/// Expires all objects of one type.
const EXPIRE_TYPE: &str = "DELETE FROM orm WHERE type = ?";

/// The replay of a trace against a daemon.
#[derive(Debug)]
pub(crate) struct Replay {
    client: Client,
    model: Model,
    /// Keys that the next `get` asks for, all different.
    batch: Vec<u64>,
    batch_max: usize,
    /// The same keys, to see a repetition.
    asked: HashSet<u64>,
    body: String,
    /// What was seen so far.
    pub(crate) tally: Tally,
}

/// What was seen so far.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Keys that were there.
    pub(crate) hits: u64,
    /// Keys that were not.
    pub(crate) misses: u64,
    /// Misses of keys never asked for before.
    pub(crate) first_misses: u64,
    /// Misses of keys that were filled and not expired: evicted.
    pub(crate) unexpected_misses: u64,
    /// Values that should have been expired.
    pub(crate) stale: u64,
    /// Rows that the daemon said it expired.
    pub(crate) expired_rows: u64,
    /// Those of them that went with a whole type.
    pub(crate) expired_rows_by_type: u64,
    /// Expiries that removed another number of rows than the model.
    pub(crate) wrong_expiries: u64,
    /// Round trips of expiries of an object, in nanoseconds.
    pub(crate) objects: Histogram,
    /// Round trips of expiries of a type.
    pub(crate) types: Histogram,
    /// Round trips of expiries of an object since the last line of progress.
    pub(crate) recent_expiry: Histogram,
    began: u64,
    recent_began: u64,
    recent_accesses: u64,
}

impl Tally {
    fn new() -> Self {
        let now = clock::now_ns();
        Self {
            hits: 0,
            misses: 0,
            first_misses: 0,
            unexpected_misses: 0,
            stale: 0,
            expired_rows: 0,
            expired_rows_by_type: 0,
            wrong_expiries: 0,
            objects: Histogram::default(),
            types: Histogram::default(),
            recent_expiry: Histogram::default(),
            began: now,
            recent_began: now,
            recent_accesses: 0,
        }
    }

    /// Keys asked for.
    pub(crate) fn accesses(&self) -> u64 {
        self.hits + self.misses
    }

    /// Since the beginning.
    pub(crate) fn elapsed_seconds(&self) -> f64 {
        clock::seconds(clock::now_ns() - self.began)
    }

    /// Accesses a second since the last call.
    pub(crate) fn recent_rate(&mut self) -> f64 {
        let now = clock::now_ns();
        let accesses = self.accesses() - self.recent_accesses;
        let rate = accesses as f64 / clock::seconds(now - self.recent_began).max(1e-9);
        self.recent_began = now;
        self.recent_accesses = self.accesses();
        rate
    }
}

impl Replay {
    /// A replay that asks for up to `batch_max` keys at once.
    pub(crate) fn new(client: Client, batch_max: usize) -> Self {
        Self {
            client,
            model: Model::default(),
            batch: Vec::new(),
            batch_max,
            asked: HashSet::new(),
            body: String::new(),
            tally: Tally::new(),
        }
    }

    /// Asks for a key, at once or together with those that follow.
    pub(crate) fn access(&mut self, key: u64) -> Result<()> {
        if self.asked.contains(&key) {
            self.ask()?;
        }
        self.batch.push(key);
        self.asked.insert(key);
        if self.batch.len() >= self.batch_max { self.ask() } else { Ok(()) }
    }

    /// Asks for what is left to ask for.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if self.batch.is_empty() { Ok(()) } else { self.ask() }
    }

    /// One `get` for the whole batch, behind the fills of the batch before; then the fills of what missed.
    fn ask(&mut self) -> Result<()> {
        self.client.out.extend_from_slice(b"get");
        for &key in &self.batch {
            self.client.out.push(b' ');
            put_key(&mut self.client.out, key);
        }
        self.client.out.extend_from_slice(b"\r\n");
        self.client.send()?;
        let batch = std::mem::take(&mut self.batch);
        let mut waiting = batch.iter().copied();
        let mut missed = Vec::new();
        let (model, body, stale) = (&self.model, &mut self.body, &mut self.tally.stale);
        let mut name = Vec::new();
        let mut hits = 0;
        self.client.read_values(|key, value| {
            // Values come in the order of their keys; a key passed over has missed.
            for asked in waiting.by_ref() {
                name.clear();
                put_key(&mut name, asked);
                if name == key {
                    hits += 1;
                    model.body(asked, body);
                    *stale += u64::from(value != body.as_bytes());
                    return;
                }
                missed.push(asked);
            }
        })?;
        missed.extend(waiting);
        self.tally.hits += hits;
        self.tally.misses += missed.len() as u64;
        if hits + missed.len() as u64 != batch.len() as u64 {
            return Err(Failure::new("a get was answered with a key that was not asked for"));
        }
        for key in missed {
            self.fill(key);
        }
        self.batch = batch;
        self.batch.clear();
        self.asked.clear();
        Ok(())
    }

    /// Puts a `set` in front of the next request.
    fn fill(&mut self, key: u64) {
        match self.model.fill(key) {
            Miss::First => self.tally.first_misses += 1,
            Miss::Evicted => self.tally.unexpected_misses += 1,
            Miss::Expired => {}
        }
        self.model.body(key, &mut self.body);
        let out = &mut self.client.out;
        out.extend_from_slice(b"set ");
        put_key(out, key);
        // A write to a vector cannot fail.
        let _ = write!(out, " 0 0 {} noreply\r\n{}\r\n", self.body.len(), self.body);
    }

    /// The object of a key changes.
    pub(crate) fn expire_object(&mut self, key: u64) -> Result<()> {
        let Object { kind, id, .. } = Object::from(key);
        let (rows, ns) = self.expire(EXPIRE_OBJECT, &format!("[{kind},{id}]"))?;
        self.tally.objects.record(ns);
        self.tally.recent_expiry.record(ns);
        let expected = self.model.expire_object(key);
        self.tally.wrong_expiries += u64::from(rows != expected);
        Ok(())
    }

    /// The type of a key changes.
    pub(crate) fn expire_type(&mut self, key: u64) -> Result<()> {
        let (rows, ns) = self.expire(EXPIRE_TYPE, &format!("[{}]", Object::from(key).kind))?;
        self.tally.types.record(ns);
        self.tally.expired_rows_by_type += rows;
        let expected = self.model.expire_type(key);
        self.tally.wrong_expiries += u64::from(rows != expected);
        Ok(())
    }

    /// Runs a statement once everything before it is done; rows and nanoseconds.
    fn expire(&mut self, statement: &str, parameters: &str) -> Result<(u64, u64)> {
        self.finish()?;
        self.client.out.extend_from_slice(b"version\r\n");
        self.client.send()?;
        self.client.read_line()?;
        let began = clock::now_ns();
        let rows = self.client.execute(statement, parameters)?;
        self.tally.expired_rows += rows;
        Ok((rows, clock::now_ns() - began))
    }
}

fn put_key(out: &mut Vec<u8>, key: u64) {
    let Object { kind, id, index } = Object::from(key);
    // A write to a vector cannot fail.
    let _ = write!(out, "orm:{kind}:{id}:{index}");
}
