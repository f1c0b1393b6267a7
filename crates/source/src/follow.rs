//! What every stream does with what it reads: transactions come whole, are applied in their order, and once more when
//! the source shows them ([`crate::settle`]).

use store::definition::ServerDef;

use crate::apply::Applier;
use crate::batch::{Batch, Keys};
use crate::error::Error;
use crate::limits::BATCH_CHANGES_MAX;
use crate::plan::{Plan, Routes};
use crate::settle::{Snapshot, Unsettled};
use crate::stream::{Source, of_cache};

/// What a stream has read and applied.
pub(crate) struct Following<'s> {
    pub(crate) source: &'s Source,
    pub(crate) plan: Plan,
    pub(crate) routes: Routes,
    /// What the transaction under way invalidates.
    pub(crate) under_way: Batch,
    /// How far the source was read.
    pub(crate) received: u64,
    applier: &'s mut Applier,
    /// What whole transactions invalidate that were not applied yet, and which these are.
    ready: Batch,
    transactions: Vec<u64>,
    unsettled: Unsettled,
    applied: u64,
}

impl<'s> Following<'s> {
    pub(crate) fn new(source: &'s Source, applier: &'s mut Applier, plan: Plan) -> Self {
        let (routes, ready, under_way) = (Routes::default(), Batch::default(), Batch::default());
        let (transactions, unsettled) = (Vec::new(), Unsettled::default());
        Self {
            source,
            plan,
            routes,
            under_way,
            received: 0,
            applier,
            ready,
            transactions,
            unsettled,
            applied: 0,
        }
    }

    /// Goes on with the definitions of now; false: the server is another one. `before`: a transaction that stands
    /// before all that a new table is told.
    pub(crate) fn follow_definitions(&mut self, before: u64) -> Result<bool, Error> {
        let catalog = self.source.engine.store().catalog();
        if catalog.generation == self.plan.generation {
            return Ok(true);
        }
        let is_same = |known: &std::sync::Arc<ServerDef>| **known == *self.source.server;
        if !catalog.server(&self.source.server.name).is_some_and(is_same) {
            return Ok(false);
        }
        let plan = Plan::of(&catalog, &self.source.server.name);
        let old = std::mem::replace(&mut self.plan, plan);
        let number = |target: usize| self.plan.number_of(old.targets.get(target)?);
        self.unsettled.renumber(&number);
        self.routes.replan(&self.plan);
        // What is new here was not followed before: rows that came meanwhile may be old.
        let mut new = Batch::default();
        for (target, own) in self.plan.targets.iter().enumerate() {
            if old.number_of(own).is_none() {
                self.applier.distrust(own, true).map_err(of_cache)?;
                *new.keys(target) = Keys::All;
            }
        }
        if !new.is_empty() {
            self.source.state.update(|facts| facts.emptied += new.len() as u64);
            self.source.tell_gate(&self.plan, &new, &[before]);
            self.unsettled.add(self.received, vec![before], new);
        }
        Ok(true)
    }

    /// The transaction under way took effect.
    pub(crate) fn commit(&mut self, transaction: u64) {
        let batch = std::mem::take(&mut self.under_way);
        if !batch.is_empty() {
            self.ready.absorb(batch);
            self.transactions.push(transaction);
        }
    }

    /// Applies what whole transactions invalidate, if that is much.
    pub(crate) fn apply_much(&mut self) -> Result<(), Error> {
        if self.ready.len() >= BATCH_CHANGES_MAX { self.apply() } else { Ok(()) }
    }

    /// Applies what whole transactions invalidate.
    pub(crate) fn apply(&mut self) -> Result<(), Error> {
        let (batch, transactions) = (std::mem::take(&mut self.ready), std::mem::take(&mut self.transactions));
        if batch.is_empty() {
            return Ok(());
        }
        let (unsettled, count) = (self.unsettled.len() + 1, transactions.len() as u64);
        // First: whoever misses a row finds that it is not settled.
        self.source.state.update(|facts| facts.unsettled = unsettled);
        self.source.tell_gate(&self.plan, &batch, &transactions);
        let rows = self.applier.apply(&self.plan, &batch).map_err(of_cache)?.removed;
        self.source.state.update(|facts| {
            facts.invalidated += rows;
            facts.transactions += count;
        });
        self.unsettled.add(self.received, transactions, batch);
        Ok(())
    }

    /// All that was read is applied: whoever waits for that learns it.
    pub(crate) fn advance(&mut self) {
        if self.applied != self.received {
            self.applied = self.received;
            self.source.state.advance(self.received, self.applied);
        }
    }

    /// Whether the source shows all that was applied.
    pub(crate) fn is_settled(&self) -> bool {
        self.unsettled.is_empty()
    }

    /// Deletes once more what the source shows by now.
    pub(crate) fn settle(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        self.source.gate.show(snapshot);
        let batch = self.unsettled.settled(snapshot);
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

    /// Nothing that depends on the source is believed: rows from before the stream may be old.
    pub(crate) fn distrust(&mut self) -> Result<(), Error> {
        let mut targets = self.plan.targets.iter();
        targets.try_for_each(|target| self.applier.distrust(target, true)).map_err(of_cache)?;
        let count = self.plan.targets.len() as u64;
        self.source.state.update(|facts| facts.emptied += count);
        Ok(())
    }
}
