//! Definitions of a session: `CREATE`, `ALTER`, `DROP`, and `DO`, which has several of them.

use std::sync::Arc;

use pgcatalog::system;
use sqltext::block;
use sqltext::definition::{CreateRule, Definition, Name, What};
use store::{Table, WriteSet};

use super::{Done, Executor};
use crate::define::{self, Defined, Fill, Note, Undo, undo_all};
use crate::error::{SqlError, state};
use crate::journal::Reach;
use crate::limits::UNDONE_ROWS_MAX;
use crate::rule;
use crate::session::Session;
use crate::text::kind::StatementKind;
use crate::told::{Told, ToldRows};

impl Executor {
    /// A definition takes effect at once, within a transaction too.
    pub(super) fn define(&mut self, session: &mut Session, sql: &str) -> Result<Done, SqlError> {
        let (defined, emptied) = self.in_step(session, |own, session| own.carry_out(session, sql))?;
        self.finish_definition(session, defined, &emptied)
    }

    /// Carries out what a `ROLLBACK` undoes, and the next start if the transaction does not come to its end.
    fn in_step<T>(
        &mut self,
        session: &mut Session,
        carry_out: impl FnOnce(&mut Self, &mut Session) -> T,
    ) -> T {
        let Some(block) = &session.block else { return carry_out(self, session) };
        let of = block.undoing.transaction();
        let store = Arc::clone(&self.core.store);
        let (result, step) = store.define_in_transaction(of, || carry_out(self, session));
        if let Some(block) = &mut session.block {
            block.undoing.add_written(&store, step);
        }
        result
    }

    /// All definitions of a block, or none. An error that it swallows ends it without one.
    pub(super) fn run_block(&mut self, session: &mut Session, sql: &str) -> Result<Done, SqlError> {
        self.in_step(session, |own, session| own.run_statements(session, sql))
    }

    fn run_statements(&mut self, session: &mut Session, sql: &str) -> Result<Done, SqlError> {
        let block = block::read(sql)?;
        let mut made = Vec::new();
        for sql in &block.statements {
            match self.carry_out_in_block(session, sql) {
                Ok(one) => made.push(one),
                Err(error) => {
                    let undo = made.into_iter().flat_map(|(defined, _)| defined.undo);
                    undo_all(&self.core.store, undo.collect::<Vec<_>>().into_iter())?;
                    // A place in the body is none in the statement.
                    let error = SqlError { position: None, ..error };
                    return if block.swallows(error.state) { Ok(Done::of_nobody("DO")) } else { Err(error) };
                }
            }
        }
        for (defined, emptied) in made {
            self.finish_definition(session, defined, &emptied)?;
        }
        Ok(Done::of_nobody("DO"))
    }

    fn carry_out_in_block(
        &mut self,
        session: &mut Session,
        sql: &str,
    ) -> Result<(Defined, Vec<Name>), SqlError> {
        self.refresh()?;
        let one = self.carry_out(session, sql)?;
        match one.0.fill {
            None => Ok(one),
            Some(_) => Err(SqlError::not_supported("CREATE TABLE ... AS, and REFRESH, in DO")),
        }
    }

    /// What a definition was, and the tables that it emptied.
    fn carry_out(&mut self, session: &mut Session, sql: &str) -> Result<(Defined, Vec<Name>), SqlError> {
        self.set_words();
        let definition = define::read(&self.core.catalog, sql)?;
        define::rights::check(&self.core, session.identity(), &definition)?;
        match &definition.what {
            What::CreateRule(rule) => self.check_rule(session, &definition, rule)?,
            What::AlterTable(alter) => self.write_before(session, &alter.table.text)?,
            _ => {}
        }
        let made = match &definition.what {
            What::CreateRoutine(wanted) => {
                let place = (wanted.definer, wanted.path.as_deref());
                Some((self.looking_in(place, |own| own.routine_of(wanted))?, wanted.replace))
            }
            _ => None,
        };
        let reach = Reach::Reads(None);
        let defined = self.core.within(session, Some("a definition"), reach, |core| {
            if let Some((made, replace)) = made {
                return define::routine::create(core, made, replace);
            }
            define::run(core, &definition).map_err(|error| core.about_routine(error, sql))
        })?;
        let emptied = match definition.what {
            What::Truncate(truncate) => truncate.names,
            _ => Vec::new(),
        };
        Ok((defined, emptied))
    }

    /// What is wrong with the condition of an expiry rule is reported now, not by its runs.
    fn check_rule(
        &self,
        session: &Session,
        definition: &Definition<'_>,
        rule: &CreateRule,
    ) -> Result<(), SqlError> {
        system::refuse_change(&rule.table.text)?;
        let Some(table) = self.core.catalog.table(&rule.table.text) else {
            return Err(SqlError::unknown_table(&rule.table.text));
        };
        // A place in the query would be none in the user's text.
        let query = rule::query(table.def(), &rule::condition(definition, rule));
        let prepared = self
            .prepare(StatementKind::Read, &query, &[], None)
            .map_err(|error| SqlError { position: None, ..error })?;
        prepared.check_needs(&self.core, session.identity())?;
        if prepared.plan().head().0 > 0 {
            return Err(SqlError::new(state::SYNTAX, "an expiry rule cannot have parameters"));
        }
        Ok(())
    }

    fn finish_definition(
        &mut self,
        session: &mut Session,
        defined: Defined,
        emptied: &[Name],
    ) -> Result<Done, SqlError> {
        let Defined { tag, fill, notes, skipped, undo, invalidated } = defined;
        for Note { state, message, hint } in notes {
            match hint {
                Some(hint) => session.note(message, hint),
                None => session.notice(state, message),
            }
        }
        if skipped {
            return Ok(Done::of_nobody(tag));
        }
        self.tell_emptied(session, emptied);
        if let Some(block) = &mut session.block {
            emptied
                .iter()
                .filter_map(|name| self.core.catalog.table(&name.text))
                .for_each(|table| block.forget(table));
            if emptied.is_empty() {
                block.forget_dropped(&self.core.store.catalog());
            }
            let hint = undo.iter().map(hint_of).max_by_key(|&(rank, _)| rank).unwrap_or((1, UNDONE));
            for undo in undo {
                block.undoing.add(&self.core.store, undo);
            }
            let together = block.together;
            match hint {
                (_, "") => session.warn(
                    state::WARNING,
                    format!("{tag} took effect at once for all clients; ROLLBACK does not undo it"),
                ),
                (_, hint) if !together => {
                    session.note(format!("{tag} took effect at once for all clients"), hint);
                }
                _ => {}
            }
        }
        match fill {
            Some(Fill::Insert { table, insert }) => self.fill(session, &table, &insert),
            Some(Fill::Refresh { view, created }) => self.fill_view(session, &view, created),
            None => Ok(Done { invalidated, ..Done::of_nobody(tag) }),
        }
    }

    /// A table that was emptied is so at once, within a transaction too.
    fn tell_emptied(&self, session: &mut Session, emptied: &[Name]) {
        let told = emptied
            .iter()
            .filter_map(|name| self.core.catalog.table(&name.text))
            // One whose rows travel was told by the store, at the moment when it was emptied.
            .filter(|table| table.is_told() && !table.replicates_rows() && !session.is_silent())
            .map(|table| Told::new(table, ToldRows::All))
            .collect();
        session.tell_all(told);
    }

    /// What a transaction wrote is encoded by the definition of before, and no definition sees it. So it is committed
    /// before its table is altered. If the transaction is rolled back, these rows go.
    fn write_before(&mut self, session: &mut Session, table: &str) -> Result<(), SqlError> {
        let Some(block) = &session.block else { return Ok(()) };
        let table = self.core.catalog.table(table).cloned();
        let Some(table) = table.filter(|table| block.own.writes(table)) else { return Ok(()) };
        session.check_writable("ALTER TABLE")?;
        let undo = session.block.as_ref().map(|block| written(&block.own)).unwrap_or_default();
        let tables = undo.iter().filter_map(|undo| match undo {
            Undo::Written(table, _) => Some(table),
            _ => None,
        });
        self.core.store.will_write(tables)?;
        self.commit_so_far(session)?;
        let Some(block) = &mut session.block else { return Ok(()) };
        for undo in undo {
            block.undoing.add(&self.core.store, undo);
        }
        if !block.together {
            session.warn(
                state::WARNING,
                format!(
                    "what the transaction wrote so far was committed: ALTER TABLE \"{}\" takes effect at once; \
                     ROLLBACK removes these rows",
                    table.name()
                ),
            );
        }
        self.refresh()
    }
}

/// What removes the rows that a transaction wrote so far.
fn written(own: &WriteSet) -> Vec<Undo> {
    let mut undo: Vec<(Arc<Table>, Vec<Vec<u8>>)> = Vec::new();
    for write in own.writes_again().0 {
        match undo.iter_mut().find(|(table, _)| table.is_same(&write.table)) {
            Some((_, keys)) => keys.push(write.key),
            None => undo.push((write.table, vec![write.key])),
        }
    }
    let bounded = |keys: Vec<Vec<u8>>| Some(keys).filter(|keys| keys.len() <= UNDONE_ROWS_MAX);
    undo.into_iter().map(|(table, keys)| Undo::Written(table, bounded(keys))).collect()
}

/// What a client may want to know of how a definition is undone, and how much it matters; empty: it is not.
fn hint_of(undo: &Undo) -> (u8, &'static str) {
    match undo {
        Undo::Impossible => (4, ""),
        Undo::TableGone(..) => (3, "ROLLBACK makes the table again, without its rows"),
        Undo::Loosened { .. } => {
            (2, "ROLLBACK undoes it; rows of the table that were written meanwhile are forgotten then")
        }
        _ => (1, UNDONE),
    }
}

const UNDONE: &str = "ROLLBACK undoes it; so does a connection that ends before COMMIT";
