//! What mirrors need of a stream: they are copied, followed in parts, and fail alone.

use super::Streaming;
use super::signs::report_of;
use crate::error::{Error, of_cache};
use crate::limits::{FEEDBACK_INTERVAL, PART_BYTES, PART_KEYS};
use crate::mirror;
use crate::pgoutput::Message;
use crate::plan::Target;
use crate::time::now;

impl Streaming<'_> {
    /// Copies the mirrors that are not here yet. Who waits for the source waits for them, too.
    pub(super) fn tend_mirrors(&mut self) {
        let has_mirrors = self.follow.plan.targets.iter().any(Target::is_mirror);
        if self.in_transaction || !has_mirrors && self.mirrors.is_empty() {
            return;
        }
        while let Some(number) = self.mirrors.due(&self.follow.plan) {
            let Some(target) = self.follow.plan.targets.get(number) else { break };
            self.follow.source.enter("copying");
            self.copying = true;
            let (changes, mut report_at) = (&mut self.changes, now());
            let (applied, confirmed) = (self.follow.applied, self.confirmed);
            let source = self.follow.source;
            let mut pulse = || {
                if now() >= report_at {
                    report_at = now() + FEEDBACK_INTERVAL;
                    changes.send(&report_of(applied, confirmed)?)?;
                }
                Ok(!source.must_stop())
            };
            match mirror::copy((&source.server, &source.state), self.follow.applier, target, &mut pulse) {
                Ok(None) => return,
                Ok(Some(copy)) => {
                    self.mirrors.copied(target, copy);
                    self.follow.source.state.update(|facts| facts.last_error = None);
                    self.feedback_at = now();
                }
                Err(error) => self.fail_mirror(number, &error.to_string()),
            }
        }
        let evicted: Vec<usize> = self
            .mirrors
            .advance(&self.follow.plan, self.follow.applied)
            .into_iter()
            .filter_map(|target| self.follow.plan.number_of(target))
            .collect();
        for number in evicted {
            self.fail_mirror(number, "it does not fit into memory, and rows of it were evicted");
        }
        if self.copying && !self.mirrors.is_behind() {
            self.copying = false;
            // No sign was sent meanwhile.
            self.heard = now();
            self.enter_state();
        }
    }

    /// A mirror is not what the source's table is: nobody reads it until it is copied again.
    pub(super) fn fail_mirror(&mut self, number: usize, why: &str) {
        let Some(target) = self.follow.plan.targets.get(number) else { return };
        self.mirrors.fail(target);
        let said = format!("mirror {}: {why}", target.table.name());
        tracing::warn!(source = %self.follow.source.server.name, "{said}");
        self.follow.source.state.update(|facts| facts.last_error = Some(said));
    }

    /// What mirrors need of a message before it is met: a transaction has its parts, for a mirror cannot be emptied
    /// instead, and a table that is emptied or redefined is so between two of them.
    pub(super) fn meet_mirrors(&mut self, message: &Message) -> Result<(), Error> {
        let numbers: Vec<usize> = match message {
            Message::Truncate { relations } => {
                relations.iter().flat_map(|relation| self.follow.routes.mirrors(*relation)).collect()
            }
            Message::Relation(relation) => {
                for number in self.follow.routes.retyped(&self.follow.plan, relation) {
                    self.fail_mirror(number, "a column has another type at the source");
                }
                return Ok(());
            }
            Message::Change { relation, .. } if self.follow.routes.mirrors(*relation).next().is_some() => {
                let is_large = self.follow.under_way.len() >= PART_KEYS
                    || self.follow.under_way.value_bytes() >= PART_BYTES;
                return if is_large { self.apply_part() } else { Ok(()) };
            }
            _ => return Ok(()),
        };
        if !numbers.is_empty() {
            self.apply_part()?;
        }
        for number in numbers {
            let Some(target) = self.follow.plan.targets.get(number) else { continue };
            if self.mirrors.is_followed(target) && !self.mirrors.has(target, self.commits_at) {
                self.follow.applier.truncate(target).map_err(of_cache)?;
            }
        }
        Ok(())
    }

    /// What a copy has already is not applied to it: of rows that went without an event since, nothing would end them.
    pub(super) fn leave_out_copied(&mut self) {
        let (targets, mirrors, at) = (&self.follow.plan.targets, &self.mirrors, self.commits_at);
        let has = |number: usize| targets.get(number).is_some_and(|target| mirrors.has(target, at));
        self.follow.under_way = std::mem::take(&mut self.follow.under_way).without(has);
    }

    /// Applies what came of the transaction under way.
    pub(super) fn apply_part(&mut self) -> Result<(), Error> {
        self.leave_out_copied();
        self.follow.commit(self.xid.into(), self.follow.applied);
        self.apply()
    }
}
