//! The stream of one source: from a slot of its own to deletes here.

mod mirrors;
mod signs;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use engine::{Engine, SourceState};
use store::Followed;
use store::definition::ServerDef;

use crate::apply::Applier;
use crate::batch::Batch;
use crate::check::{check, publication_of, published};
use crate::checker::Checker;
use crate::error::Error;
use crate::fit;
use crate::gate::{Gate, Touched};
use crate::limits::{
    BATCH_CHANGES_MAX, FEEDBACK_INTERVAL, MAX_LAG, MAX_LAG_MIN, PUBLISHED_INTERVAL, SETTLE_WAIT, STREAM_WAIT,
};
use crate::login::{Purpose, connect};
use crate::mirror::Mirrors;
use crate::pgoutput::{Message, Reader};
use crate::plan::{Plan, Routes, Target};
use crate::settle::{Snapshot, Unsettled};
use crate::slot::{Begin, status};
use crate::time::now;
use crate::wire::{COPY_DATA, Connection, ERROR, error_of};
use signs::SIGN;

/// Data of the stream, and a sign of the source's own.
const WAL_DATA: u8 = b'w';
const KEEPALIVE: u8 = b'k';

/// What a source's thread works with.
pub(crate) struct Source {
    pub(crate) engine: Arc<Engine>,
    pub(crate) server: Arc<ServerDef>,
    pub(crate) state: Arc<SourceState>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) stop: Arc<AtomicBool>,
}

impl Source {
    /// Whether it is to end.
    pub(crate) fn must_stop(&self) -> bool {
        // Relaxed: the flag carries no data.
        self.stop.load(Ordering::Relaxed)
    }

    /// How old what was not applied may be.
    pub(crate) fn max_lag(server: &ServerDef) -> Duration {
        let said =
            server.option("max_lag").and_then(|text| store::definition::parse_span(text).ok().flatten());
        said.map_or(MAX_LAG, Duration::from_millis).max(MAX_LAG_MIN)
    }

    /// Has the gate refuse what was fetched before these changes, which are applied next.
    pub(crate) fn tell_gate(&self, plan: &Plan, batch: &Batch, transactions: &[u64]) {
        let touched = plan.touched(batch);
        self.gate.meet(transactions.to_vec(), touched.clone());
        for (table, touched) in touched {
            match touched {
                Touched::All => self.state.fetches.forget_absent(table, None),
                Touched::Keys(keys) => {
                    for key in &keys {
                        self.state.fetches.forget_absent(table, Some(key));
                    }
                }
            }
        }
    }

    /// Says in the log and in `sqlcached_sources` what it does from now on.
    pub(crate) fn enter(&self, state: &'static str) {
        if self.state.enter(state) {
            tracing::info!(source = %self.server.name, "source is {state}");
        }
    }
}

/// Streams until it is to stop or something breaks. Rows here from before the slot are gone when it streams.
pub(crate) fn run(source: &Source, applier: &mut Applier) -> Result<(), Error> {
    let server = &source.server;
    let plan = Plan::of(&source.engine.store().catalog(), &server.name);
    let mut beside = connect(server, Purpose::Questions)?;
    let depends: Vec<_> = plan.targets.iter().map(|target| target.on.clone()).collect();
    check(&mut beside, server, &depends)?;
    for target in plan.targets.iter().filter(|target| !target.is_mirror()) {
        if let Some(copied) = &target.copied {
            fit::check(&mut beside, target.table.def(), copied)?;
        }
    }
    let mut changes = connect(server, Purpose::Changes)?;
    let publication = publication_of(server)?;
    let (engine, state) = (&*source.engine, &*source.state);
    let must_stop = || source.must_stop();
    let mut begin = Begin {
        engine,
        server,
        state,
        must_stop: &must_stop,
        plan: &plan,
        publication,
        beside: &mut beside,
        changes: &mut changes,
    };
    let begun = begin.begin()?;
    let Some(begun) = begun else { return Ok(()) };
    // A transaction that is written to the log and not shown yet is streamed by no slot that was made in between.
    source.gate.follow(snapshot(&mut beside)?.running());
    let began = now();
    let mut stream = Streaming {
        source,
        applier,
        plan,
        beside,
        changes,
        slot: begun.slot,
        nonce: format!("{:016x}", fastrand::u64(..)),
        reader: Reader::new(),
        routes: Routes::default(),
        under_way: Batch::default(),
        in_transaction: false,
        xid: 0,
        ready: Batch::default(),
        xids: Vec::new(),
        ready_from: 0,
        unsettled: Unsettled::default(),
        mirrors: Mirrors::default(),
        copying: false,
        checker: Checker::new(server.option("check_rate").and_then(|rate| rate.parse().ok()).unwrap_or(0)),
        began,
        received: 0,
        applied: 0,
        confirmed: 0,
        published: begun.published,
        followed: begun.followed,
        behind: begun.believed.is_some().then_some(begun.end),
        feedback_at: began,
        settle_at: began,
        published_at: began + PUBLISHED_INTERVAL,
        heard: began,
        signs: true,
    };
    let result = stream.begin(&begun.believed.unwrap_or_default()).and_then(|()| stream.run());
    stream.changes.end();
    stream.beside.end();
    result
}

/// What a reader of the source sees now.
fn snapshot(beside: &mut Connection) -> Result<Snapshot, Error> {
    let rows = beside.query("SELECT pg_current_snapshot()::text")?;
    let text = rows.first().and_then(|row| row.first()?.as_deref());
    text.and_then(Snapshot::read).ok_or_else(|| Error::connection("a snapshot of the source cannot be read"))
}

/// An error of the cache's own.
#[expect(clippy::needless_pass_by_value, reason = "map_err hands it over so")]
pub(crate) fn of_cache(error: engine::SqlError) -> Error {
    Error::new(error.state, format!("invalidation failed: {}", error.message))
}

struct Streaming<'s> {
    source: &'s Source,
    applier: &'s mut Applier,
    plan: Plan,
    /// For questions beside the stream.
    beside: Connection,
    changes: Connection,
    slot: String,
    /// Begins the signs of this stream: a named slot brings those of earlier ones again.
    nonce: String,
    reader: Reader,
    routes: Routes,
    /// What the transaction under way invalidates.
    under_way: Batch,
    in_transaction: bool,
    xid: u32,
    /// What whole transactions invalidate that were not applied yet.
    ready: Batch,
    /// These, and where the first of them was committed.
    xids: Vec<u64>,
    ready_from: u64,
    unsettled: Unsettled,
    mirrors: Mirrors,
    /// Some of them are copied, or follow their copies.
    copying: bool,
    checker: Checker,
    /// What our signs count from.
    began: Instant,
    /// How far the source was read, and what was applied.
    received: u64,
    applied: u64,
    /// The source may forget what is before this.
    confirmed: u64,
    /// What its publication tells.
    published: String,
    /// Of a named slot: what rows here have followed, as it was written last.
    followed: Option<Followed>,
    /// Rows from before are behind the source until all before this is applied.
    behind: Option<u64>,
    feedback_at: Instant,
    settle_at: Instant,
    published_at: Instant,
    /// When the last sign was sent that came back.
    heard: Instant,
    /// The source lets signs be written: a standby does not.
    signs: bool,
}

impl Streaming<'_> {
    /// The stream has begun: rows of targets that have not followed it so far are not believed. Only now, for a row
    /// that was stored while the slot was made may be older than its first change.
    fn begin(&mut self, believed: &[String]) -> Result<(), Error> {
        let new: Vec<_> =
            self.plan.targets.iter().filter(|target| !believed.contains(&target.name())).collect();
        new.iter().try_for_each(|target| self.applier.distrust(target, true)).map_err(of_cache)?;
        let emptied = new.len() as u64;
        self.note_followed()?;
        self.source.state.update(|facts| {
            facts.slot = Some(self.slot.clone());
            facts.heard = Some(self.heard);
            (facts.received_lsn, facts.applied_lsn, facts.source_lsn) = (0, 0, self.behind.unwrap_or(0));
            facts.unsettled = 0;
            facts.last_error = None;
            facts.emptied += emptied;
        });
        self.source.enter(if self.behind.is_some() { "lagging" } else { "streaming" });
        Ok(())
    }

    /// Writes which stream the rows here have followed, and how far, before the source may forget what is before that.
    /// What was applied and not yet settled has to come again if this process ends.
    fn note_followed(&mut self) -> Result<(), Error> {
        let safe = self.unsettled.from().unwrap_or(self.applied).min(self.applied);
        let Some(followed) = &self.followed else {
            self.confirmed = self.applied;
            return Ok(());
        };
        let (lsn, targets) = (safe.max(followed.lsn), self.plan.names());
        let now = Followed { lsn, targets, published: self.published.clone(), ..followed.clone() };
        if self.confirmed != now.lsn || now != *followed {
            let written =
                self.source.engine.store().note_followed(&self.source.server.name, Some(now.clone()));
            written.map_err(|error| Error::new(error.state, error.message))?;
            self.confirmed = now.lsn;
            self.followed = Some(now);
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), Error> {
        while !self.source.must_stop() && self.follow_definitions()? {
            self.tend_mirrors();
            let wait = if self.unsettled.is_empty() { STREAM_WAIT } else { SETTLE_WAIT };
            let mut frame = self.changes.next_within(wait)?;
            while let Some(next) = frame {
                match next.tag {
                    COPY_DATA => self.take(&next.body)?,
                    ERROR => return Err(error_of(&next.body)),
                    b'c' => return Err(Error::connection("the source ended the stream")),
                    _ => {}
                }
                if self.ready.len() >= BATCH_CHANGES_MAX {
                    self.apply()?;
                }
                frame = self.changes.take_frame()?;
            }
            self.apply()?;
            self.look_at_time()?;
        }
        Ok(())
    }

    /// Goes on with the definitions of now; false: the server is another one.
    fn follow_definitions(&mut self) -> Result<bool, Error> {
        let catalog = self.source.engine.store().catalog();
        if catalog.generation == self.plan.generation || self.in_transaction {
            return Ok(true);
        }
        let known = catalog.server(&self.source.server.name);
        if !known.is_some_and(|known| **known == *self.source.server) {
            return Ok(false);
        }
        self.look_at_publication()?;
        let plan = Plan::of(&catalog, &self.source.server.name);
        let publication = publication_of(&self.source.server)?;
        self.published = published(&mut self.beside, publication, &plan)?;
        let before = std::mem::replace(&mut self.plan, plan);
        let number = |old: usize| self.plan.number_of(before.targets.get(old)?);
        self.unsettled.renumber(&number);
        self.routes.replan(&self.plan);
        // What is new here was not followed before: rows that came meanwhile may be old.
        let new: Vec<_> = self.plan.targets.iter().filter(|own| before.number_of(own).is_none()).collect();
        new.iter().try_for_each(|target| self.applier.distrust(target, true)).map_err(of_cache)?;
        self.source.state.update(|facts| facts.emptied += new.len() as u64);
        self.note_followed()?;
        Ok(true)
    }

    /// A message of the stream.
    fn take(&mut self, body: &Bytes) -> Result<(), Error> {
        let number = |at: usize| {
            let bytes = body.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u64::from_be_bytes).ok_or_else(|| Error::connection("a message of the stream is cut"))
        };
        match body.first() {
            Some(&WAL_DATA) if body.len() > 25 => {
                self.received = self.received.max(number(1)?);
                let message = self.reader.read(body.slice(25..))?;
                self.meet_mirrors(&message)?;
                self.meet(message);
                Ok(())
            }
            Some(&KEEPALIVE) => {
                let end = number(1)?;
                self.received = self.received.max(end);
                self.source.state.update(|facts| facts.source_lsn = facts.source_lsn.max(end));
                if !self.signs {
                    self.heard = now();
                    self.source.state.update(|facts| facts.heard = Some(now()));
                }
                // It wants to know at once how far we are.
                if body.get(17) == Some(&1) { self.report() } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    fn meet(&mut self, message: Message) {
        match message {
            Message::Begin { xid } => {
                (self.xid, self.in_transaction) = (xid, true);
            }
            Message::Change { relation, old, new } => {
                let met = self.routes.change(&mut self.under_way, relation, old.as_ref(), new.as_ref());
                self.source.state.update(|facts| facts.events += u64::from(met));
            }
            Message::Truncate { relations } => {
                for relation in relations {
                    let met = self.routes.truncate(&mut self.under_way, relation);
                    self.source.state.update(|facts| facts.events += u64::from(met));
                }
            }
            Message::Commit { at, end } => {
                self.in_transaction = false;
                self.received = self.received.max(end);
                let batch = std::mem::take(&mut self.under_way);
                if !batch.is_empty() {
                    if self.xids.is_empty() {
                        self.ready_from = at;
                    }
                    self.ready.absorb(batch);
                    self.xids.push(self.xid.into());
                }
            }
            Message::Relation(relation) => {
                for target in self.routes.learn(&self.plan, relation) {
                    tracing::warn!(
                        source = %self.source.server.name,
                        "{} does not tell the columns that {} depends on; each change of it empties the table",
                        target.on,
                        target.table.name()
                    );
                }
            }
            Message::Note { prefix, content } if prefix == SIGN => self.hear(&content),
            Message::Note { .. } | Message::Other => {}
        }
    }

    /// Applies what whole transactions invalidate.
    fn apply(&mut self) -> Result<(), Error> {
        let (batch, xids) = (std::mem::take(&mut self.ready), std::mem::take(&mut self.xids));
        if !batch.is_empty() {
            let unsettled = self.unsettled.len() + 1;
            let is_due = |number: usize| {
                let target = self.plan.targets.get(number);
                target.is_some_and(|target| target.is_mirror() && !self.mirrors.is_followed(target))
            };
            let batch = batch.without(is_due);
            // First: whoever misses a row finds that it is not settled.
            self.source.state.update(|facts| facts.unsettled = unsettled);
            self.source.tell_gate(&self.plan, &batch, &xids);
            let done = self.applier.apply(&self.plan, &batch).map_err(of_cache)?;
            self.source.state.update(|facts| {
                facts.invalidated += done.removed;
                facts.transactions += xids.len() as u64;
                facts.updated += done.rows;
                facts.misfits += done.misfits;
            });
            for (number, why) in done.broken {
                self.fail_mirror(number, &why);
            }
            // Nobody else fills a mirror.
            let is_mirror = |number: usize| self.plan.targets.get(number).is_some_and(Target::is_mirror);
            let rest = batch.without(is_mirror);
            if !rest.is_empty() {
                self.unsettled.add(self.ready_from, xids, rest);
            }
            let unsettled = self.unsettled.len();
            self.source.state.update(|facts| facts.unsettled = unsettled);
        }
        if !self.in_transaction && self.applied != self.received {
            self.applied = self.received;
            self.source.state.advance(self.received, self.applied);
        }
        Ok(())
    }

    /// Compares some rows here with the source's.
    fn check_rows(&mut self) -> Result<(), Error> {
        let hands = (&mut *self.applier, &mut self.beside);
        let found = self.checker.round(&self.plan, hands, self.applied)?;
        self.source.state.update(|facts| {
            facts.checked += found.checked;
            facts.differing += found.differing;
        });
        Ok(())
    }

    fn look_at_time(&mut self) -> Result<(), Error> {
        let time = now();
        if !self.unsettled.is_empty() && time >= self.settle_at {
            self.settle()?;
            self.settle_at = now() + SETTLE_WAIT;
        }
        if time >= self.feedback_at {
            self.feedback_at = time + FEEDBACK_INTERVAL;
            self.report()?;
            self.send_sign()?;
            self.check_rows()?;
            self.enter_state();
        } else if self.behind.is_some_and(|end| self.applied >= end) {
            self.behind = None;
            self.enter_state();
        }
        if time >= self.published_at {
            self.published_at = time + PUBLISHED_INTERVAL;
            self.look_at_publication()?;
            let status = status(&mut self.beside, &self.slot)?;
            self.source.state.update(|facts| facts.wal_status = status);
        }
        Ok(())
    }

    /// What is not published any more does not come, and nothing in the stream tells it. A new stream begins, for which
    /// all is checked.
    fn look_at_publication(&mut self) -> Result<(), Error> {
        let publication = publication_of(&self.source.server)?;
        if published(&mut self.beside, publication, &self.plan)? == self.published {
            return Ok(());
        }
        let message = format!("publication \"{publication}\", or a table that it has, is another one now");
        Err(Error::new("55000", message))
    }

    /// Deletes once more what the source shows by now.
    fn settle(&mut self) -> Result<(), Error> {
        let snapshot = snapshot(&mut self.beside)?;
        self.source.gate.show(&snapshot);
        let batch = self.unsettled.settled(&snapshot);
        let mut rows = 0;
        if !batch.is_empty() {
            rows = self.applier.apply(&self.plan, &batch).map_err(of_cache)?.removed;
        }
        let unsettled = self.unsettled.len();
        self.source.state.update(|facts| {
            facts.invalidated += rows;
            facts.unsettled = unsettled;
        });
        Ok(())
    }
}
