//! What a transaction does with the statements in its [`Journal`]: it keeps them beside its list, and `COMMIT` computes
//! them again.

use std::sync::Arc;

use dialect::Chosen;
use hashbrown::HashSet;
use sqltext::literals::StatementText;
use store::definition::RoutineDef;
use store::value::Value;
use store::{TableId, Write, WriteError, WriteSet};

use crate::done::Nobody;
use crate::error::{SqlError, state};
use crate::executor::Executor;
use crate::journal::{Journal, Reach, Step, naming_bytes};
use crate::limits::{FIRM_COMMITS_MAX, OVERTAKEN_MAX};
use crate::session::Session;
use crate::transaction::{Block, moved, refused};

impl Block {
    /// Lays what a statement wrote. `worked`: it did, so that it counts though it found no row.
    pub(crate) fn lay(&mut self, writes: Vec<Write>, reach: Reach, mut read: Vec<TableId>, worked: bool) {
        let journal = &mut self.journal;
        match reach {
            Reach::Blind(_) if journal.again => return self.own.lay_blind(writes),
            _ if journal.again => {}
            Reach::Blind(table) if !journal.shown.contains(&table) => {
                if worked {
                    if journal.is_empty() {
                        self.own.mark_base();
                    }
                    let (text, parameters, chosen, body) = Default::default();
                    journal.push(Step::Blind { table, text, parameters, chosen, body });
                    self.own.lay_blind(writes);
                }
                return;
            }
            Reach::Puts => {}
            Reach::Blind(table) | Reach::Reads(Some(table)) => {
                read.push(table);
                self.show(&read);
            }
            Reach::Reads(None) => self.show(&read),
        }
        if !self.journal.is_empty() && !self.journal.again && !writes.is_empty() {
            self.journal.push(Step::Fixed(writes.clone()));
        }
        self.own.lay(writes);
    }

    /// The client was shown these tables. Where it sees what a blind statement left, that statement is none any more.
    fn show(&mut self, read: &[TableId]) {
        let journal = &mut self.journal;
        journal
            .shown
            .extend(read.iter().filter(|table| !journal.shown.contains(table)).copied().collect::<Vec<_>>());
        let is_shown = |step: &Step| matches!(step, Step::Blind { table, .. } if read.contains(table));
        if journal.steps.iter().any(is_shown) {
            journal.truncate(0);
            self.own.settle();
        }
    }

    /// Says what the blind statement was that has just worked, and in which function's body it stands.
    pub(crate) fn name_step(
        &mut self,
        sql: &str,
        (values, types): (&[Value], Chosen<'_>),
        of: Option<&Arc<RoutineDef>>,
    ) {
        let journal = &mut self.journal;
        if let Some(Step::Blind { text, parameters, chosen, body, .. }) = journal.steps.last_mut()
            && text.is_empty()
        {
            (*text, *parameters, *chosen) = (sql.into(), values.to_vec(), types.into());
            *body = of.cloned();
            journal.bytes += naming_bytes(sql, values, types);
            self.count();
        }
    }

    /// Whether `COMMIT` has something to compute again.
    pub(crate) fn is_blind(&self) -> bool {
        !self.failed && !self.journal.is_empty()
    }

    /// A table was emptied: nothing of it is to be done again.
    pub(crate) fn forget_steps(&mut self, gone: impl Fn(TableId) -> bool) {
        self.journal.retain(|step| match step {
            Step::Blind { table, .. } => !gone(*table),
            Step::Fixed(writes) => {
                writes.retain(|write| !gone(write.table.id()));
                true
            }
            Step::Savepoint(_) => true,
        });
        if self.journal.is_empty() {
            self.own.settle();
        }
    }
}

impl Executor {
    /// Applies a transaction whose blind statements are computed again. It is refused for what others did to its other
    /// rows, never because they wrote rows that it deletes or makes stale.
    pub(crate) fn commit_again(&mut self, session: &mut Session) -> Result<(), SqlError> {
        let telling = session.begin_telling_block();
        let result = self.compute_and_commit(session);
        if telling {
            session.end_telling(result.is_ok());
        }
        match &mut session.block {
            // What was written is in the store.
            Some(block) if result.is_ok() => block.clear(),
            _ => session.roll_back(),
        }
        result
    }

    /// Applies what the transaction wrote so far. It goes on, under the same savepoints.
    pub(crate) fn commit_so_far(&mut self, session: &mut Session) -> Result<(), SqlError> {
        let telling = session.begin_telling_block();
        let Some(block) = &session.block else { return Ok(()) };
        let result = if block.is_blind() {
            self.compute_and_commit(session)
        } else {
            self.store().commit(&block.own.writes_again().0).map(drop).map_err(refused)
        };
        if telling {
            session.end_telling(result.is_ok());
        }
        result?;
        if let Some(block) = &mut session.block {
            block.journal.restart();
            block.own.begin_again();
            let told = block.to_tell.take();
            session.tell_all(told);
        }
        Ok(())
    }

    fn compute_and_commit(&mut self, session: &mut Session) -> Result<(), SqlError> {
        for _ in 0..OVERTAKEN_MAX {
            self.refresh()?;
            let (writes, blind) = self.compute_again(session)?;
            match self.store().commit(&writes) {
                Ok(_) => return Ok(()),
                Err(WriteError::Lost(lost)) if lost.iter().all(|&at| blind[at]) => {}
                Err(error) => return Err(refused(error)),
            }
        }
        for _ in 0..FIRM_COMMITS_MAX {
            self.refresh()?;
            if self.commit_first(session)? {
                return Ok(());
            }
        }
        let message = format!(
            "could not serialize access: the rows changed each of the {} times that they were computed",
            OVERTAKEN_MAX + FIRM_COMMITS_MAX
        );
        Err(SqlError::new(state::LOST, message).with_hint("run the transaction again, in smaller parts"))
    }

    /// Lets writers of the transaction's rows wait while its list is made again. False: it was overtaken all the same.
    fn commit_first(&mut self, session: &mut Session) -> Result<bool, SqlError> {
        let (keys, _) = self.compute_again(session)?;
        let store = std::sync::Arc::clone(self.store());
        let mut blind = Vec::new();
        let result = store.commit_firmly(&keys, || {
            let (writes, all) = self.compute_again(session)?;
            // A row that fits only now came after `COMMIT` began: it stays.
            let held: HashSet<_> = keys.iter().map(place).collect();
            let stays = |(write, blind): &(Write, bool)| !blind || held.contains(&place(write));
            let made: (Vec<Write>, Vec<bool>) = writes.into_iter().zip(all).filter(stays).unzip();
            blind = made.1;
            Ok::<_, SqlError>(made.0)
        })?;
        match result {
            Ok(_) => Ok(true),
            Err(WriteError::Lost(lost)) if lost.iter().all(|&at| blind[at]) => Ok(false),
            Err(error) => Err(refused(error)),
        }
    }

    /// Makes the transaction's list again from what its statements were.
    fn compute_again(&mut self, session: &mut Session) -> Result<(Vec<Write>, Vec<bool>), SqlError> {
        self.check_watch()?;
        let notices = session.notices();
        let steps = session.block.as_mut().map(|block| block.begin_again()).unwrap_or_default();
        for step in &steps {
            match step {
                Step::Blind { text, parameters, chosen, body, .. } => {
                    let text = StatementText::new(text);
                    let run = |own: &mut Self, session: &mut Session| {
                        own.run_once(session, &text, parameters, chosen, &mut Nobody)
                    };
                    match body {
                        Some(routine) => self.acting(session, routine, run)?,
                        None => run(self, session)?,
                    };
                }
                Step::Fixed(writes) => {
                    if let Some(block) = &mut session.block {
                        block.own.lay(writes.clone());
                    }
                }
                Step::Savepoint(_) => {}
            }
        }
        session.forget_notices(notices);
        let block = session.block.as_mut().ok_or_else(|| SqlError::new(state::INTERNAL, "no transaction"))?;
        block.journal.steps = steps;
        block.own.rebase(self.catalog()).map_err(moved)?;
        Ok(block.own.writes_again())
    }
}

impl Block {
    /// Takes back what is to be made again, and gives the steps that make it.
    fn begin_again(&mut self) -> Vec<Step> {
        self.own.back_to_base();
        self.own.mark_base();
        self.journal.again = true;
        std::mem::take(&mut self.journal.steps)
    }

    fn clear(&mut self) {
        self.own = WriteSet::new();
        self.journal = Journal::default();
    }
}

fn place(write: &Write) -> (TableId, &[u8]) {
    (write.table.id(), &write.key)
}
