//! What every stream does with what it reads: transactions come whole, are applied in their order, and once more when
//! the source shows them ([`crate::settle`]).

use std::sync::Arc;
use std::time::{Duration, Instant};

use store::definition::ServerDef;

use crate::apply::{Applier, Updates};
use crate::batch::{Batch, Keys};
use crate::error::{Error, of_cache};
use crate::limits::{BATCH_CHANGES_MAX, FEEDBACK_INTERVAL, GATHER, SETTLE_WAIT, STREAM_WAIT};
use crate::plan::{Plan, Routes, Target};
use crate::settle::{Snapshot, Unsettled};
use crate::source::Source;
use crate::time::now;

/// What became of the definitions that a stream follows.
pub(crate) enum Definitions {
    Same,
    /// The plan of now.
    Changed(Plan),
    /// The server is gone, or another one.
    OtherServer,
}

/// What a stream has read and applied.
pub(crate) struct Following<'s> {
    pub(crate) source: &'s Source,
    pub(crate) plan: Plan,
    pub(crate) routes: Routes,
    /// What the transaction under way invalidates.
    pub(crate) under_way: Batch,
    /// How far the source was read.
    pub(crate) received: u64,
    /// How far it was applied.
    pub(crate) applied: u64,
    pub(crate) applier: &'s mut Applier,
    pub(crate) unsettled: Unsettled,
    /// What whole transactions invalidate that were not applied yet, which these are, and where the first of them was
    /// committed.
    ready: Batch,
    transactions: Vec<u64>,
    ready_from: u64,
    /// When something was applied last.
    applied_at: Option<Instant>,
    /// What was applied while definitions changed, under names that may have meant other tables: it is applied again
    /// by the plan of now.
    again: Batch,
    /// Since when something waits to be shown, or when something was shown last.
    waits_since: Instant,
}

impl<'s> Following<'s> {
    pub(crate) fn new(source: &'s Source, applier: &'s mut Applier, plan: Plan) -> Self {
        Self {
            source,
            plan,
            routes: Routes::default(),
            under_way: Batch::default(),
            received: 0,
            applied: 0,
            applier,
            unsettled: Unsettled::default(),
            ready: Batch::default(),
            transactions: Vec::new(),
            ready_from: 0,
            applied_at: None,
            again: Batch::default(),
            waits_since: now(),
        }
    }

    /// The definitions of now, if they are others than the plan's.
    pub(crate) fn definitions(&self) -> Definitions {
        if self.is_current() {
            return Definitions::Same;
        }
        let catalog = self.source.engine.store().catalog();
        let is_same = |known: &Arc<ServerDef>| known.is_same_source(&self.source.server);
        if catalog.server(&self.source.server.name).is_some_and(is_same) {
            Definitions::Changed(Plan::of(&catalog, &self.source.server.name))
        } else {
            Definitions::OtherServer
        }
    }

    /// Whether the plan is that of the definitions of now.
    fn is_current(&self) -> bool {
        self.source.engine.store().catalog().generation == self.plan.generation
    }

    /// Goes on with another plan. Tables that are new in it were not followed before, so rows that came meanwhile may
    /// be old: see [`Self::distrust`].
    pub(crate) fn replan(&mut self, plan: Plan, unshown: Vec<u64>) -> Result<(), Error> {
        let before = std::mem::replace(&mut self.plan, plan);
        let number = |target: usize| self.plan.number_of(before.targets.get(target)?);
        self.unsettled.renumber(&number);
        self.again.renumber(&number);
        self.routes.replan(&self.plan);
        let is_new = |target: &Target| before.number_of(target).is_none();
        let emptied = self.distrust(is_new, unshown)?;
        // The source that such a table had before may be lost, and have said so.
        self.plan
            .targets
            .iter()
            .filter(|target| is_new(target))
            .for_each(|target| target.table.set_behind(false));
        self.source.state.update(|facts| facts.emptied += emptied);
        let again = std::mem::take(&mut self.again);
        self.change(&again).map(drop)
    }

    /// Applies a batch. Statements name tables, and a name may mean another table by now, or none. So what was applied
    /// while definitions changed is applied again when the plan is that of now.
    fn change(&mut self, batch: &Batch) -> Result<Updates, Error> {
        if batch.is_empty() {
            return Ok(Updates::default());
        }
        let done = self.applier.apply(&self.plan, batch).map_err(of_cache)?;
        if !self.is_current() {
            self.again.absorb(batch.clone());
        }
        Ok(done)
    }

    /// Rows of these tables may be old: they go, and once more when the source shows these transactions, which are in
    /// its log already: no further event tells their changes, and nobody is to store what he reads before. Says how
    /// many tables there are.
    pub(crate) fn distrust(
        &mut self,
        is_one: impl Fn(&Target) -> bool,
        unshown: Vec<u64>,
    ) -> Result<u64, Error> {
        let (mut doubted, mut emptied) = (Batch::default(), 0);
        for (number, target) in self.plan.targets.iter().enumerate().filter(|(_, target)| is_one(target)) {
            self.applier.distrust(target, true).map_err(of_cache)?;
            emptied += 1;
            // Nobody else fills a mirror.
            if !target.is_mirror() {
                *doubted.keys(number) = Keys::All;
            }
        }
        if !self.is_current() {
            self.again.absorb(doubted.clone());
        }
        if !doubted.is_empty() && !unshown.is_empty() {
            self.source.tell_gate(&self.plan, &doubted, &unshown);
            self.wait_for(self.applied, unshown, doubted);
        }
        Ok(emptied)
    }

    fn wait_for(&mut self, from: u64, transactions: Vec<u64>, batch: Batch) {
        if self.unsettled.is_empty() {
            self.waits_since = now();
        }
        self.unsettled.add(from, transactions, batch);
    }

    /// How long to wait before the source is asked again what it shows: the longer nothing came of it, the longer.
    pub(crate) fn patience(&self) -> Duration {
        if !self.awaits_snapshot() {
            return STREAM_WAIT;
        }
        (self.waits_since.elapsed() / 10).clamp(SETTLE_WAIT, FEEDBACK_INTERVAL)
    }

    /// The transaction under way took effect, at this place of the source's log.
    pub(crate) fn commit(&mut self, transaction: u64, at: u64) {
        let batch = std::mem::take(&mut self.under_way);
        if batch.is_empty() {
            return;
        }
        if self.transactions.is_empty() {
            self.ready_from = at;
        }
        self.ready.absorb(batch);
        self.transactions.push(transaction);
    }

    /// Whether so much is ready that it is not to wait for more.
    pub(crate) fn has_much(&self) -> bool {
        self.ready.len() >= BATCH_CHANGES_MAX
    }

    /// Lets changes come that are applied together, if the last were applied just now.
    pub(crate) fn gather(&self) {
        let left = self.applied_at.map(|applied_at| GATHER.saturating_sub(applied_at.elapsed()));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            std::thread::sleep(left);
        }
    }

    /// Applies what whole transactions invalidate, except of tables that it is not for now. Returns the mirrors that
    /// are none any more, by their numbers, and why.
    pub(crate) fn apply(
        &mut self,
        is_for_later: impl Fn(&Target) -> bool,
    ) -> Result<Vec<(usize, String)>, Error> {
        let (batch, transactions) = (std::mem::take(&mut self.ready), std::mem::take(&mut self.transactions));
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let unsettled = self.unsettled.len() + 1;
        let batch = batch.without(|number| self.plan.targets.get(number).is_some_and(&is_for_later));
        // First: whoever misses a row finds that it is not settled.
        self.source.state.update(|facts| facts.unsettled = unsettled);
        self.source.tell_gate(&self.plan, &batch, &transactions);
        let done = self.change(&batch)?;
        self.source.state.update(|facts| {
            facts.invalidated += done.removed;
            facts.transactions += transactions.len() as u64;
            facts.updated += done.rows;
            facts.misfits += done.misfits;
        });
        // Nobody else fills a mirror.
        let rest = batch.without(|number| self.plan.targets.get(number).is_some_and(Target::is_mirror));
        if !rest.is_empty() {
            self.wait_for(self.ready_from, transactions, rest);
        }
        let unsettled = self.unsettled.len();
        self.source.state.update(|facts| facts.unsettled = unsettled);
        self.applied_at = Some(now());
        Ok(done.broken)
    }

    /// All that was read is applied: whoever waits for that learns it.
    pub(crate) fn advance(&mut self) {
        if self.applied != self.received && self.again.is_empty() {
            self.applied = self.received;
            self.source.state.advance(self.received, self.applied);
            if let Some(hub) = &self.source.hub {
                hub.advance(self.applied);
            }
        }
    }

    /// Whether a snapshot of the source is wanted.
    pub(crate) fn awaits_snapshot(&self) -> bool {
        !self.unsettled.is_empty() || self.source.hub.as_ref().is_some_and(|hub| hub.awaits_snapshot())
    }

    /// Whether the source shows all that was applied.
    pub(crate) fn is_settled(&self) -> bool {
        self.unsettled.is_empty()
    }

    /// Deletes once more what the source shows by now.
    pub(crate) fn settle(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        self.source.gate.show(snapshot);
        if let Some(hub) = &self.source.hub {
            hub.show(|transaction| snapshot.shows(transaction));
        }
        let batch = self.unsettled.settled(snapshot);
        let mut rows = 0;
        if !batch.is_empty() {
            self.waits_since = now();
            rows = self.change(&batch)?.removed;
        }
        let unsettled = self.unsettled.len();
        self.source.state.update(|facts| {
            facts.invalidated += rows;
            facts.unsettled = unsettled;
        });
        Ok(())
    }
}
