//! The stream of one source: from a slot of its own to deletes here.

mod mirrors;
mod signs;

use std::time::Instant;

use bytes::Bytes;
use forward::Ticket;
use store::Followed;
use store::definition::ServerDef;

use crate::apply::Applier;
use crate::batch::Keys;
use crate::check::{check, named, publication_of, published};
use crate::checker::Checker;
use crate::error::Error;
use crate::fit;
use crate::follow::{Definitions, Following};
use crate::forward::{DEFINITIONS, PLACE, Tags, recover_tags};
use crate::limits::{FEEDBACK_INTERVAL, PUBLISHED_INTERVAL, STREAM_WAIT};
use crate::login::{Purpose, connect};
use crate::mirror::Mirrors;
use crate::pgoutput::{Message, Reader, Tuple};
use crate::plan::{Plan, Target};
use crate::running::unshown;
use crate::settle::Snapshot;
use crate::slot::{Begin, give_up, is_lasting, status};
use crate::source::Source;
use crate::time::now;
use crate::wire::{COPY_DATA, Connection, ERROR, error_of};
use signs::SIGN;
pub(crate) use signs::report_of;

/// Data of the stream, and a sign of the source's own.
pub(crate) const WAL_DATA: u8 = b'w';
pub(crate) const KEEPALIVE: u8 = b'k';

/// Streams until it is to stop or something breaks. Rows here from before the slot are gone when it streams.
pub(crate) fn run(source: &Source, applier: &mut Applier) -> Result<(), Error> {
    let server = &source.server;
    let plan = Plan::of(&source.engine.store().catalog(), &server.name);
    let mut beside = connect(server, Purpose::Questions)?;
    let publication = publication_of(server)?;
    // Before anything is checked: what is redefined from here on is noticed.
    let published = published(&mut beside, publication, &plan)?;
    let named = named(&mut beside, &plan)?;
    check_plan(&mut beside, server, &plan)?;
    let mut changes = connect(server, Purpose::Changes)?;
    let (engine, state) = (&*source.engine, &*source.state);
    let process = changes.process();
    let must_stop = || source.must_stop();
    let mut begin = Begin {
        engine,
        server,
        state,
        must_stop: &must_stop,
        publication,
        published: &published,
        beside: &mut beside,
        changes: &mut changes,
    };
    let begun = begin.begin()?;
    let Some(begun) = begun else { return Ok(()) };
    source.state.update(|facts| facts.stream_process = process);
    // A transaction that is written to the log and not shown yet is streamed by no slot that was made in between.
    let unshown = unshown(&mut beside)?;
    source.gate.follow(unshown.clone());
    if let Some(hub) = &source.hub {
        hub.follow(unshown.clone());
    }
    let replays = replays(&mut beside)?;
    let began = now();
    let mut stream = Streaming {
        follow: Following::new(source, applier, plan),
        beside,
        changes,
        slot: begun.slot,
        nonce: format!("{:016x}", fastrand::u64(..)),
        reader: Reader::new(),
        in_transaction: false,
        xid: 0,
        commits_at: 0,
        mirrors: Mirrors::default(),
        copying: false,
        checker: Checker::new(server.option("check_rate").and_then(|rate| rate.parse().ok()).unwrap_or(0)),
        began,
        confirmed: 0,
        is_awaited: server.option("freshness") == Some("commit"),
        awaited_to: 0,
        published,
        replayed: (begun.followed.is_some() && begun.believed.is_none()).then_some(begun.end),
        followed: begun.followed,
        behind: begun.believed.is_some().then_some(begun.end),
        feedback_at: began,
        settle_at: began,
        published_at: began + PUBLISHED_INTERVAL,
        heard: began,
        signs: !replays,
        is_refused: false,
        place: None,
        redefined: false,
    };
    stream.follow.routes.name(named);
    let result = stream.begin(&begun.believed.unwrap_or_default(), unshown).and_then(|()| stream.run());
    stream.changes.end();
    if let (Err(error), true) = (&result, stream.is_refused && stream.followed.is_some()) {
        give_up(&mut stream.beside, server, &stream.slot, error);
    }
    stream.beside.end();
    result
}

/// Checks the source for all that depends on it. A mirror is checked when it is copied, and fails alone.
fn check_plan(beside: &mut Connection, server: &ServerDef, plan: &Plan) -> Result<(), Error> {
    let named = plan.targets.iter().filter(|target| !target.has_answers());
    let depends: Vec<_> = named.map(|target| target.on.clone()).collect();
    check(beside, server, &depends)?;
    for target in plan.targets.iter().filter(|target| !target.is_mirror()) {
        if let Some(copied) = &target.copied {
            fit::check(beside, target.table.def(), copied)?;
        }
    }
    Ok(())
}

/// Whether the source only replays the log of another one: nothing can be written into it.
fn replays(beside: &mut Connection) -> Result<bool, Error> {
    let rows = beside.query("SELECT pg_is_in_recovery()")?;
    Ok(rows.first().and_then(|row| row.first()?.as_deref()) == Some("t"))
}

/// What a reader of the source sees now.
fn snapshot(beside: &mut Connection) -> Result<Snapshot, Error> {
    let rows = beside.query("SELECT pg_current_snapshot()::text")?;
    let text = rows.first().and_then(|row| row.first()?.as_deref());
    text.and_then(Snapshot::read).ok_or_else(|| Error::connection("a snapshot of the source cannot be read"))
}

struct Streaming<'s> {
    follow: Following<'s>,
    /// For questions beside the stream.
    beside: Connection,
    changes: Connection,
    slot: String,
    /// Begins the signs of this stream: a named slot brings those of earlier ones again.
    nonce: String,
    reader: Reader,
    in_transaction: bool,
    xid: u32,
    /// Where the transaction under way was committed.
    commits_at: u64,
    mirrors: Mirrors,
    /// Some of them are copied, or follow their copies.
    copying: bool,
    checker: Checker,
    /// What our signs count from.
    began: Instant,
    /// The source may forget what is before this.
    confirmed: u64,
    /// Commits may wait for this stream, and were told that they are applied up to this place.
    is_awaited: bool,
    awaited_to: u64,
    /// What its publication tells.
    published: String,
    /// Of a named slot: what rows here have followed, as it was written last.
    followed: Option<Followed>,
    /// Rows from before are behind the source until all before this is applied.
    behind: Option<u64>,
    /// Changes from before a break come again until this place, and write what rows were then. So rows that are
    /// updated are not believed until all of them have come.
    replayed: Option<u64>,
    feedback_at: Instant,
    settle_at: Instant,
    published_at: Instant,
    /// When the last sign was sent that came back.
    heard: Instant,
    /// The source lets signs be written: a standby does not.
    signs: bool,
    /// The source cannot read its log behind the slot.
    is_refused: bool,
    /// The last place that was marked in the stream, and is passed when all before it is applied.
    place: Option<Ticket>,
    /// Whole transactions that are not applied yet change definitions.
    redefined: bool,
}

impl Streaming<'_> {
    /// The stream has begun: rows of targets that have not followed it so far are not believed. Only now, for a row
    /// that was stored while the slot was made may be older than its first change.
    fn begin(&mut self, believed: &[String], unshown: Vec<u64>) -> Result<(), Error> {
        let forgets = !self.knows_tags(believed);
        let is_doubted =
            |target: &Target| !believed.contains(&target.name()) || forgets && target.has_answers();
        let emptied = self.follow.distrust(is_doubted, unshown)?;
        self.note_followed()?;
        self.follow.source.state.update(|facts| {
            facts.slot = Some(self.slot.clone());
            facts.heard = Some(self.heard);
            (facts.received_lsn, facts.applied_lsn, facts.source_lsn) = (0, 0, self.behind.unwrap_or(0));
            facts.unsettled = 0;
            facts.last_error = None;
            facts.emptied += emptied;
        });
        self.follow.source.enter(if self.behind.is_some() { "lagging" } else { "streaming" });
        if let Some(hub) = &self.follow.source.hub {
            hub.set_live(self.behind.is_none());
        }
        Ok(())
    }

    /// Whether this process knows the tag columns of all answers that are believed.
    fn knows_tags(&mut self, believed: &[String]) -> bool {
        let Following { source, plan, .. } = &self.follow;
        let Some(hub) = source.hub.as_ref().filter(|hub| hub.is_first_stream()) else { return true };
        let any = plan.targets.iter().any(|target| target.has_answers() && believed.contains(&target.name()));
        let recovered = if any { recover_tags(source, &mut self.beside, hub) } else { Ok(()) };
        let failed = |error: &Error| {
            tracing::warn!(source = %source.server.name, "answers of before are not believed: {error}");
        };
        recovered.inspect_err(failed).is_ok()
    }

    /// Writes which stream the rows here have followed, and how far, before the source may forget what is before that.
    /// What was applied and not yet settled has to come again if this process ends.
    fn note_followed(&mut self) -> Result<(), Error> {
        let safe = self.follow.unsettled.from().unwrap_or(self.follow.applied).min(self.follow.applied);
        let Some(followed) = &self.followed else {
            self.confirmed = self.follow.applied;
            return Ok(());
        };
        let answers = self.follow.source.hub.is_some();
        let (lsn, targets) = (safe.max(followed.lsn), self.follow.plan.names(answers));
        let now = Followed { lsn, targets, published: self.published.clone(), ..followed.clone() };
        if self.confirmed != now.lsn || now != *followed {
            let written = self
                .follow
                .source
                .engine
                .store()
                .note_followed(&self.follow.source.server.name, Some(now.clone()));
            written.map_err(|error| Error::new(error.state, error.message))?;
            self.confirmed = now.lsn;
            self.followed = Some(now);
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), Error> {
        while !self.follow.source.must_stop() && self.follow_definitions()? {
            self.tend_mirrors();
            let wait = self.follow.patience().min(STREAM_WAIT);
            if !self.is_awaited {
                self.follow.gather();
            }
            let mut frame = self.changes.next_within(wait)?;
            while let Some(next) = frame {
                match next.tag {
                    COPY_DATA => self.take(&next.body)?,
                    ERROR => return Err(self.refused(error_of(&next.body))),
                    b'c' => return Err(Error::connection("the source ended the stream")),
                    _ => {}
                }
                if self.follow.has_much() {
                    self.apply()?;
                }
                frame = self.changes.take_frame()?;
            }
            self.apply()?;
            self.look_at_time()?;
        }
        Ok(())
    }

    /// An error that ends the stream.
    fn refused(&mut self, error: Error) -> Error {
        self.is_refused = is_lasting(&error);
        error
    }

    /// Goes on with the definitions of now; false: the server is another one.
    fn follow_definitions(&mut self) -> Result<bool, Error> {
        if self.in_transaction {
            return Ok(true);
        }
        match self.follow.definitions() {
            Definitions::Same => Ok(true),
            Definitions::OtherServer => Ok(false),
            Definitions::Changed(plan) => self.replan(plan).map(|()| true),
        }
    }

    fn replan(&mut self, plan: Plan) -> Result<(), Error> {
        let server = &self.follow.source.server;
        // In this order: what is redefined in between differs from one of both.
        let published = published(&mut self.beside, publication_of(server)?, &plan)?;
        let named = named(&mut self.beside, &plan)?;
        self.look_at_publication()?;
        let server = &self.follow.source.server;
        check_plan(&mut self.beside, server, &plan)?;
        self.published = published;
        let unshown = unshown(&mut self.beside)?;
        self.follow.routes.name(named);
        self.follow.replan(plan, unshown)?;
        self.note_followed()
    }

    /// A message of the stream.
    fn take(&mut self, body: &Bytes) -> Result<(), Error> {
        let number = |at: usize| {
            let bytes = body.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u64::from_be_bytes).ok_or_else(|| Error::connection("a message of the stream is cut"))
        };
        match body.first() {
            Some(&WAL_DATA) if body.len() > 25 => {
                self.follow.received = self.follow.received.max(number(1)?);
                let message = self.reader.read(body.slice(25..))?;
                self.meet_mirrors(&message)?;
                self.meet(message);
                Ok(())
            }
            Some(&KEEPALIVE) => {
                let end = number(1)?;
                self.follow.received = self.follow.received.max(end);
                self.follow.source.state.update(|facts| facts.source_lsn = facts.source_lsn.max(end));
                if !self.signs {
                    self.heard = now();
                    self.follow.source.state.update(|facts| facts.heard = Some(now()));
                }
                // It wants to know at once how far we are.
                if body.get(17) == Some(&1) { self.report() } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    fn meet(&mut self, message: Message) {
        match message {
            Message::Begin { xid, at } => {
                (self.xid, self.commits_at, self.in_transaction) = (xid, at, true);
            }
            Message::Change { relation, old, new } => {
                let met = self.follow.routes.change(
                    &mut self.follow.under_way,
                    relation,
                    old.as_ref(),
                    new.as_ref(),
                );
                let told = self.tell_change(relation, old.as_ref(), new.as_ref());
                self.follow.source.state.update(|facts| facts.events += u64::from(met || told));
            }
            Message::Truncate { relations } => {
                for relation in relations {
                    self.tell_whole(relation);
                    let met = self.follow.routes.truncate(&mut self.follow.under_way, relation);
                    self.follow.source.state.update(|facts| facts.events += u64::from(met));
                }
            }
            Message::Commit { at, end } => {
                self.in_transaction = false;
                self.follow.received = self.follow.received.max(end);
                self.leave_out_copied();
                self.follow.commit(self.xid.into(), at);
            }
            Message::Relation(relation) => {
                if self.follow.routes.relation(relation.id).is_some_and(|known| *known != relation) {
                    self.tell_whole(relation.id);
                }
                for target in self.follow.routes.learn(&self.follow.plan, relation) {
                    tracing::warn!(
                        source = %self.follow.source.server.name,
                        "{} does not tell the columns that {} depends on; each change of it empties the table",
                        target.on,
                        target.table.name()
                    );
                }
            }
            Message::Note { prefix, content } if prefix == SIGN => self.hear(&content),
            Message::Note { prefix, content } if prefix == PLACE => {
                let mark = std::str::from_utf8(&content).ok();
                let hub = self.follow.source.hub.as_ref();
                self.place = hub.and_then(|hub| hub.place_of(mark?)).or(self.place);
            }
            Message::Note { prefix, .. } if prefix == DEFINITIONS => self.tell_definitions(),
            Message::Note { .. } | Message::Other => {}
        }
    }

    /// Applies what whole transactions invalidate.
    fn apply(&mut self) -> Result<(), Error> {
        let mirrors = &self.mirrors;
        let broken = self.follow.apply(|target| target.is_mirror() && !mirrors.is_followed(target))?;
        for (number, why) in broken {
            self.fail_mirror(number, &why);
        }
        if !self.in_transaction {
            if let Some(hub) = self.follow.source.hub.as_ref().filter(|_| std::mem::take(&mut self.redefined))
            {
                hub.redefine();
            }
            self.follow.advance();
            if let (Some(hub), Some(place)) = (&self.follow.source.hub, self.place.take()) {
                hub.pass(place);
            }
            self.confirm()?;
        }
        Ok(())
    }

    /// Lets go the commits that wait until they are applied here. The source has not shown them yet, so what they
    /// changed is deleted once more when it does. If this process ends before that, no row from before is believed: the
    /// slot is ahead of what was noted.
    fn confirm(&mut self) -> Result<(), Error> {
        let place = self.follow.applied;
        if self.is_awaited && place > self.awaited_to {
            self.awaited_to = place;
            self.changes.send(&report_of(place, place)?)?;
        }
        Ok(())
    }

    /// Tells the answers of forwarded statements that a row of a table changed. True: some may depend on it.
    fn tell_change(&mut self, relation: u64, old: Option<&Tuple>, new: Option<&Tuple>) -> bool {
        let Following { source, plan, routes, under_way, .. } = &mut self.follow;
        let Some(hub) = source.hub.as_deref() else { return false };
        let Some(table) = routes.relation(relation) else { return false };
        let mut any = false;
        for target in plan.answers() {
            any |= Tags { under_way, target, hub }.change(table, old, new);
        }
        any
    }

    /// The same of all tables: their definitions are others now. None of what was known of statements holds, once the
    /// transaction is applied.
    fn tell_definitions(&mut self) {
        let Following { source, plan, under_way, .. } = &mut self.follow;
        if source.hub.is_none() {
            return;
        }
        self.redefined = true;
        for target in plan.answers() {
            *under_way.keys(target) = Keys::All;
        }
    }

    /// The same of a whole table.
    fn tell_whole(&mut self, relation: u64) {
        let Following { source, plan, under_way, .. } = &mut self.follow;
        let Some(hub) = source.hub.as_deref() else { return };
        for target in plan.answers() {
            Tags { under_way, target, hub }.whole(relation);
        }
    }

    /// Compares some rows here with the source's.
    fn check_rows(&mut self) -> Result<(), Error> {
        let hands = (&mut *self.follow.applier, &mut self.beside);
        let found = self.checker.round(&self.follow.plan, hands, self.follow.applied)?;
        self.follow.source.state.update(|facts| {
            facts.checked += found.checked;
            facts.differing += found.differing;
        });
        Ok(())
    }

    fn look_at_time(&mut self) -> Result<(), Error> {
        let time = now();
        if self.follow.awaits_snapshot() && time >= self.settle_at {
            self.settle()?;
            self.settle_at = now() + self.follow.patience();
        }
        if time >= self.feedback_at {
            self.feedback_at = time + FEEDBACK_INTERVAL;
            self.report()?;
            self.send_sign()?;
            self.check_rows()?;
            self.enter_state();
        } else if self.behind.is_some_and(|end| self.follow.applied >= end) {
            self.behind = None;
            self.enter_state();
        }
        if self.replayed.is_some_and(|end| self.follow.applied >= end) {
            self.replayed = None;
            let unshown = unshown(&mut self.beside)?;
            let emptied = self.follow.distrust(Target::is_updated, unshown)?;
            self.follow.source.state.update(|facts| facts.emptied += emptied);
        }
        if time >= self.published_at {
            self.published_at = time + PUBLISHED_INTERVAL;
            self.look_at_publication()?;
            let status = status(&mut self.beside, &self.slot)?;
            self.follow.source.state.update(|facts| facts.wal_status = status);
        }
        Ok(())
    }

    /// What is not published any more does not come, and nothing in the stream tells it. A new stream begins, for which
    /// all is checked.
    fn look_at_publication(&mut self) -> Result<(), Error> {
        let publication = publication_of(&self.follow.source.server)?;
        if published(&mut self.beside, publication, &self.follow.plan)? == self.published {
            return Ok(());
        }
        let message = format!("publication \"{publication}\", or a table that it has, is another one now");
        Err(Error::new("55000", message))
    }

    /// Deletes once more what the source shows by now.
    fn settle(&mut self) -> Result<(), Error> {
        let snapshot = snapshot(&mut self.beside)?;
        self.follow.settle(&snapshot)
    }
}
