//! The stream of one source: from a slot of its own to deletes here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use engine::{Engine, SourceState};
use postgres_protocol::message::frontend::CopyData;
use store::definition::ServerDef;

use crate::apply::Applier;
use crate::batch::Batch;
use crate::check::{check, publication_of};
use crate::error::Error;
use crate::limits::{
    ANSWER_TIMEOUT, BATCH_CHANGES_MAX, FEEDBACK_INTERVAL, MAX_LAG, MAX_LAG_MIN, SETTLE_WAIT, STREAM_WAIT,
};
use crate::login::{Purpose, connect};
use crate::pgoutput::{Message, Reader, literal, quoted};
use crate::plan::{Plan, Routes};
use crate::settle::{Snapshot, Unsettled};
use crate::time::now;
use crate::wire::{COPY_BOTH, COPY_DATA, Connection, ERROR, error_of};

/// The prefix of our signs of life in the stream.
const SIGN: &str = "sqlcached";
/// Data of the stream, and a sign of the source's own.
const WAL_DATA: u8 = b'w';
const KEEPALIVE: u8 = b'k';
/// Seconds from 1970 to PostgreSQL's year 2000.
const EPOCH_SECONDS: u64 = 946_684_800;

/// What a source's thread works with.
pub(crate) struct Source {
    pub(crate) engine: Arc<Engine>,
    pub(crate) server: Arc<ServerDef>,
    pub(crate) state: Arc<SourceState>,
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

    /// Says in the log and in `sqlcached_sources` what it does from now on.
    fn enter(&self, state: &'static str) {
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
    let mut changes = connect(server, Purpose::Changes)?;
    let slot = format!("sqlcached_{}_{:08x}", std::process::id(), fastrand::u32(..));
    if !make_slot(source, &mut changes, &slot)? {
        return Ok(());
    }
    start(&mut changes, &slot, publication_of(server)?)?;
    // Only now: a row that was stored while the slot was made may be older than its first change.
    plan.targets.iter().try_for_each(|target| applier.empty(target)).map_err(of_cache)?;
    source.state.update(|facts| {
        facts.slot = Some(slot);
        (facts.received_lsn, facts.applied_lsn, facts.source_lsn) = (0, 0, 0);
        facts.unsettled = 0;
        facts.last_error = None;
        facts.emptied += plan.targets.len() as u64;
    });
    source.enter("streaming");
    let began = now();
    let mut stream = Streaming {
        source,
        applier,
        plan,
        beside,
        changes,
        reader: Reader::new(),
        routes: Routes::default(),
        under_way: Batch::default(),
        in_transaction: false,
        xid: 0,
        ready: Batch::default(),
        xids: Vec::new(),
        unsettled: Unsettled::default(),
        began,
        received: 0,
        applied: 0,
        feedback_at: began,
        settle_at: began,
        heard: began,
        signs: true,
    };
    let result = stream.run();
    stream.changes.end();
    stream.beside.end();
    result
}

/// Makes a slot that goes with its connection. That waits for transactions that are open on the source; false: it was
/// to stop meanwhile.
fn make_slot(source: &Source, changes: &mut Connection, slot: &str) -> Result<bool, Error> {
    changes.ask(&format!(
        "CREATE_REPLICATION_SLOT {} TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT",
        quoted(slot)
    ))?;
    loop {
        if source.must_stop() {
            return Ok(false);
        }
        match changes.next_within(STREAM_WAIT)? {
            Some(frame) if frame.tag == ERROR => return Err(of_slot(error_of(&frame.body))),
            Some(frame) if frame.tag == b'Z' => return Ok(true),
            _ => {}
        }
    }
}

fn of_slot(error: Error) -> Error {
    match error.state.as_str() {
        "53400" => error.with_hint("raise max_replication_slots on the source"),
        "53300" => error.with_hint("raise max_wal_senders on the source"),
        _ => error,
    }
}

fn start(changes: &mut Connection, slot: &str, publication: &str) -> Result<(), Error> {
    changes.ask(&format!(
        "START_REPLICATION SLOT {} LOGICAL 0/0 (proto_version '1', publication_names {}, messages 'true')",
        quoted(slot),
        literal(&quoted(publication)),
    ))?;
    let frame = changes.answer(now() + ANSWER_TIMEOUT)?;
    if frame.tag == COPY_BOTH { Ok(()) } else { Err(Error::connection("the stream does not begin")) }
}

/// A place in the log, as PostgreSQL writes it.
fn lsn_of(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    Some(u64::from(u32::from_str_radix(high, 16).ok()?) << 32 | u64::from(u32::from_str_radix(low, 16).ok()?))
}

/// An error of the cache's own.
#[expect(clippy::needless_pass_by_value, reason = "map_err hands it over so")]
fn of_cache(error: engine::SqlError) -> Error {
    Error::new(error.state, format!("invalidation failed: {}", error.message))
}

struct Streaming<'s> {
    source: &'s Source,
    applier: &'s mut Applier,
    plan: Plan,
    /// For questions beside the stream.
    beside: Connection,
    changes: Connection,
    reader: Reader,
    routes: Routes,
    /// What the transaction under way invalidates.
    under_way: Batch,
    in_transaction: bool,
    xid: u32,
    /// What whole transactions invalidate that were not applied yet.
    ready: Batch,
    /// These.
    xids: Vec<u32>,
    unsettled: Unsettled,
    /// What our signs count from.
    began: Instant,
    /// How far the source was read, and what was applied.
    received: u64,
    applied: u64,
    feedback_at: Instant,
    settle_at: Instant,
    /// When the last sign was sent that came back.
    heard: Instant,
    /// The source lets signs be written: a standby does not.
    signs: bool,
}

impl Streaming<'_> {
    fn run(&mut self) -> Result<(), Error> {
        while !self.source.must_stop() && self.follow_definitions()? {
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
        let plan = Plan::of(&catalog, &self.source.server.name);
        let before = std::mem::replace(&mut self.plan, plan);
        let number = |old: usize| self.plan.number_of(before.targets.get(old)?);
        self.unsettled.renumber(&number);
        self.routes.replan(&self.plan);
        // What is new here was not followed before: rows that came meanwhile may be old.
        let new: Vec<_> = self.plan.targets.iter().filter(|own| before.number_of(own).is_none()).collect();
        new.iter().try_for_each(|target| self.applier.empty(target)).map_err(of_cache)?;
        self.source.state.update(|facts| facts.emptied += new.len() as u64);
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
                self.meet(message);
                Ok(())
            }
            Some(&KEEPALIVE) => {
                let end = number(1)?;
                self.received = self.received.max(end);
                self.source.state.update(|facts| facts.source_lsn = facts.source_lsn.max(end));
                if !self.signs {
                    self.heard = now();
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
            Message::Commit { end } => {
                self.in_transaction = false;
                self.received = self.received.max(end);
                let batch = std::mem::take(&mut self.under_way);
                if !batch.is_empty() {
                    self.ready.absorb(batch);
                    self.xids.push(self.xid);
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

    /// A sign of ours came back.
    fn hear(&mut self, content: &[u8]) {
        let own = std::str::from_utf8(content).ok().and_then(|text| text.split_once(' '));
        let Some((slot, nanos)) = own else { return };
        let facts = self.source.state.facts();
        if facts.slot.as_deref() != Some(slot) {
            return;
        }
        if let Ok(nanos) = nanos.parse() {
            self.heard = self.heard.max(self.began + Duration::from_nanos(nanos));
            let lag = self.heard.elapsed();
            self.source.state.update(|facts| facts.lag_ms = Some(lag.as_secs_f64() * 1_000.0));
        }
    }

    /// Applies what whole transactions invalidate.
    fn apply(&mut self) -> Result<(), Error> {
        let (batch, xids) = (std::mem::take(&mut self.ready), std::mem::take(&mut self.xids));
        if !batch.is_empty() {
            let unsettled = self.unsettled.len() + 1;
            // First: whoever misses a row finds that it is not settled.
            self.source.state.update(|facts| facts.unsettled = unsettled);
            let rows = self.applier.apply(&self.plan, &batch).map_err(of_cache)?;
            self.source.state.update(|facts| {
                facts.invalidated += rows;
                facts.transactions += xids.len() as u64;
            });
            self.unsettled.add(xids, batch);
        }
        if !self.in_transaction && self.applied != self.received {
            self.applied = self.received;
            self.source.state.advance(self.received, self.applied);
        }
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
            let late = self.heard.elapsed() > Source::max_lag(&self.source.server);
            self.source.enter(if late { "lagging" } else { "streaming" });
        }
        Ok(())
    }

    /// Deletes once more what the source shows by now.
    fn settle(&mut self) -> Result<(), Error> {
        let rows = self.beside.query("SELECT pg_current_snapshot()::text")?;
        let text = rows.first().and_then(|row| row.first()?.as_deref());
        let snapshot = text.and_then(Snapshot::read);
        let snapshot =
            snapshot.ok_or_else(|| Error::connection("a snapshot of the source cannot be read"))?;
        let batch = self.unsettled.settled(&snapshot);
        let mut rows = 0;
        if !batch.is_empty() {
            rows = self.applier.apply(&self.plan, &batch).map_err(of_cache)?;
        }
        let unsettled = self.unsettled.len();
        self.source.state.update(|facts| {
            facts.invalidated += rows;
            facts.unsettled = unsettled;
        });
        Ok(())
    }

    /// Tells the source how far it was read.
    fn report(&mut self) -> Result<(), Error> {
        let since_1970 = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let now = since_1970.saturating_sub(Duration::from_secs(EPOCH_SECONDS)).as_micros();
        let mut body = BytesMut::with_capacity(34);
        body.put_u8(b'r');
        for _ in ["written", "flushed", "applied"] {
            body.put_u64(self.applied);
        }
        body.put_u64(u64::try_from(now).unwrap_or(u64::MAX));
        body.put_u8(0);
        let mut bytes = BytesMut::new();
        CopyData::new(body.freeze())?.write(&mut bytes);
        self.changes.send(&bytes)?;
        self.source.state.advance(self.received, self.applied);
        Ok(())
    }

    /// Has the source write a sign into its log, which comes back with the stream.
    fn send_sign(&mut self) -> Result<(), Error> {
        if !self.signs {
            return Ok(());
        }
        let slot = self.source.state.facts().slot.unwrap_or_default();
        let sign = format!("{slot} {}", self.began.elapsed().as_nanos());
        let sent = self.beside.query(&format!(
            "SELECT pg_logical_emit_message(false, {}, {})",
            literal(SIGN),
            literal(&sign)
        ));
        match sent {
            Ok(rows) => {
                let end = rows.first().and_then(|row| lsn_of(row.first()?.as_deref()?));
                self.source.state.update(|facts| facts.source_lsn = facts.source_lsn.max(end.unwrap_or(0)));
                Ok(())
            }
            // Where nothing may be written, the source's own signs have to do.
            Err(error) if ["25006", "55000", "42501", "0A000"].contains(&error.state.as_str()) => {
                self.signs = false;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
